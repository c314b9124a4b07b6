"""Kernels over long rows are made at another level than short ones: it never shows in a result."""

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile import program
from funct.compile.fusion.calls import every_call
from funct.compile.loops.kernel import Kernel
from tests.compile.test_bounds import made_of

ROWS = np.random.default_rng(0).standard_normal((40, 333)).astype(np.float32)
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -3e38], np.float32)


def softmax(x):
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True), xp.sum(x * x), xp.max(x, axis=0)


def elementwise(x):
    return xp.where(x > 0, xp.log1p(xp.abs(x)), xp.tanh(x) * 2), xp.sign(x) == 1


def integers(x):
    k = xp.astype(xp.floor(xp.clip(x, -99, 99)), xp.int32)
    return k // 3, k % 5, xp.sum(k, axis=-1), xp.any(k > 2, axis=0)


def stepwise(x):
    def step(h, row):
        h = xp.tanh(h * 0.5 + row[:1])
        return h, xp.sum(h * row)

    return ft.scan(step, x[0, :1], x)


def products(x):
    y = x / 8
    return y @ y.T, y[0] @ y.T, y.T @ y[:, 0], xp.permute_dims(y, (1, 0)) + 1


def all_of(calls):
    return {c.kernel for c in every_call(calls)}


def none_of(calls):
    return set()


@pytest.mark.parametrize("fun", [softmax, elementwise, integers, stepwise, products])
@pytest.mark.parametrize("shape", [(40, 333), (333, 40), (13320,), (1, 13320), (3, 4440)])
def test_a_level_does_not_show_in_the_bits(monkeypatch, fun, shape):
    x = ROWS.reshape(shape).copy()
    if fun in (stepwise, products):
        x = x.reshape(-1, x.shape[-1])[:, :500]  # which has two axes, and no large square
    elif fun is not integers:
        x.flat[: len(SPECIAL)] = SPECIAL
    found = []
    for is_lean in (True, False):
        monkeypatch.setattr(program, "_lean", all_of if is_lean else none_of)
        monkeypatch.setattr(program, "_codes", {})
        found.append([np.asarray(r) for r in made_of(fun, x).run(x)])
        assert program._codes, "the level was asked for"
    for ours, other in zip(*found, strict=True):
        assert ours.dtype == other.dtype
        assert ours.tobytes() == other.tobytes()


@pytest.mark.parametrize(
    ("shape", "is_lean"),
    [((500, 8), False), ((8, 500), True), ((1 << 14,), True), ((16, 16), True), ((16, 17), False)],
)
def test_long_rows_and_few_elements_are_lean(shape, is_lean):
    calls = made_of(lambda x: xp.exp(x) / xp.sum(x, axis=-1, keepdims=True), np.ones(shape)).calls
    loops = {c.kernel for c in calls if isinstance(c.kernel, Kernel)}
    assert program._lean(calls) & loops == (loops if is_lean else set())
