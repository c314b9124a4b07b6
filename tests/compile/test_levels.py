"""Kernels over long rows are made at another level than short ones: it never shows in a result."""

import numpy as np
import pytest

import funct.array as xp
from funct.compile import program
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


@pytest.mark.parametrize("fun", [softmax, elementwise, integers])
@pytest.mark.parametrize("shape", [(40, 333), (333, 40), (13320,), (1, 13320), (3, 4440)])
def test_a_level_does_not_show_in_the_bits(monkeypatch, fun, shape):
    x = ROWS.reshape(shape).copy()
    if fun is not integers:
        x.flat[: len(SPECIAL)] = SPECIAL
    found = []
    for least in (0, 1 << 60):  # all kernels, and none
        monkeypatch.setattr(program, "_LONG_ROW", least)
        monkeypatch.setattr(program, "_codes", {})
        found.append([np.asarray(r) for r in made_of(fun, x).run(x)])
        assert program._codes, "the level was asked for"
    for ours, other in zip(*found, strict=True):
        assert ours.dtype == other.dtype
        assert ours.tobytes() == other.tobytes()


@pytest.mark.parametrize(
    ("shape", "light"), [((500, 8), False), ((8, 500), True), ((1 << 14,), True)]
)
def test_long_rows_are_light(shape, light):
    calls = made_of(lambda x: xp.exp(x) / xp.sum(x, axis=-1, keepdims=True), np.ones(shape)).calls
    assert {program._is_light(c) for c in calls if isinstance(c.kernel, Kernel)} == {light}
