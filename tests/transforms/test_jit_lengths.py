"""jit and functions of their own length: how many compilations fifty lengths cost."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import nn
from tests import laws

W = xp.asarray([1.0, 2.0, 3.0])
ORDERS = {
    "up": tuple(range(50)),
    "down": tuple(range(49, -1, -1)),
    "shuffled": tuple(np.random.default_rng(0).permutation(50).tolist()),
    "again": (7, 0, 7, 0, 1, *np.random.default_rng(1).permutation(50).tolist()),
}


def data(n: int) -> Any:
    """n numbers, different for every n."""
    return xp.asarray(np.random.default_rng(n).normal(size=n))


def _total(fun: Any) -> Callable[[Any], Any]:
    """The gradient of the sum of squares of its elements, which sees the length as fun does."""
    return ft.grad(lambda x: xp.sum(xp.abs(fun(x)) ** 2))


def _where_there_are_some(fun: Any) -> Callable[[Any], Any]:
    return lambda x: fun(x) if x.shape[0] else xp.sum(x)


# Lengths that are computed with, and stay symbolic: one capture serves all of them.
SYMBOLIC: dict[str, Any] = {
    "roll": lambda x: xp.roll(x, 1),
    "roll by a half": lambda x: xp.roll(x, x.shape[0] // 2),
    "roll far": lambda x: xp.roll(x, -13),
    "first half": lambda x: x[: x.shape[0] // 2],
    "second half": lambda x: x[x.shape[0] // 2 :],
    "halves": lambda x: x[: x.shape[0] // 2] - x[x.shape[0] - x.shape[0] // 2 :],
    "rounded up": lambda x: x[: -(-x.shape[0] // 3)],
    "quotient and rest": lambda x: x[divmod(x.shape[0], 3)[1] :],
    "eight tenths": lambda x: x[: x.shape[0] * 8 // 10],
    "split in two": lambda x: xp.concat(xp.split(x[: x.shape[0] // 2 * 2], 2)[::-1]),
    "split at": lambda x: xp.concat([k * p for k, p in enumerate(xp.split(x, [2, -3]))]),
    "pairs": lambda x: xp.reshape(x[: x.shape[0] // 2 * 2], (x.shape[0] // 2, 2)),
    "blocks": lambda x: xp.sum(xp.reshape(x[: x.shape[0] // 4 * 4], (-1, 4)), axis=1),
    "first ten": lambda x: x[:10],
    "last three": lambda x: x[-3:],
    "inner": lambda x: x[1:-1],
    "all but ten": lambda x: x[10:] * 2,
    "every second": lambda x: x[::2],
    "every third from the end": lambda x: x[::-3],
    "odd ones": lambda x: x[1::2],
    "some of the half": lambda x: x[1 : x.shape[0] // 2 : 2],
    "backwards": lambda x: x[::-1] + xp.flip(x),
    "rotated": lambda x: xp.concat([x[1:], x[:1]]),
    "differences": xp.diff,
    "convolve": _where_there_are_some(lambda x: xp.convolve(x, W)),
    "convolve, same": _where_there_are_some(lambda x: xp.convolve(x, W, mode="same")),
    "correlate": _where_there_are_some(lambda x: xp.correlate(x, W, mode="full")),
    "shifted spectrum": lambda x: xp.fft.fftshift(xp.fft.ifftshift(x) * 2),
    "transform": _where_there_are_some(lambda x: xp.abs(xp.fft.fft(x))),
    "positions": lambda x: x * xp.arange(x.shape[0]) / 10.0,
    "mask": lambda x: xp.where(xp.arange(x.shape[0]) < x.shape[0] // 2, x, -x),
    "triangle": lambda x: xp.tril(xp.outer(x, x)) @ xp.eye(x.shape[0]),
    "mean and variance": lambda x: (x - xp.mean(x)) / xp.sqrt(xp.var(x) + 1),
    "prefixes": lambda x: xp.cumulative_sum(x, include_initial=True),
    "order": lambda x: xp.sort(x, descending=True) + xp.argsort(x),
    "quantile": _where_there_are_some(lambda x: xp.quantile(x, 0.3) + xp.median(x)),
    "interp": _where_there_are_some(lambda x: xp.interp(W, xp.arange(x.shape[0]), x)),
    "kron": lambda x: xp.kron(x, W),
    "kron with itself": lambda x: xp.kron(x, x),
    "adaptive mean": _where_there_are_some(lambda x: nn.functional.adaptive_avg_pool1d(x[None], 4)),
    "vander": lambda x: xp.vander(x, 3),
    "grid": lambda x: xp.stack(xp.meshgrid(x, x)),
    "per example": ft.vmap(ft.grad(lambda r: xp.sin(r) * r)),
    "steps": lambda x: ft.scan(lambda c, r: (c * 0.5 + r, c), xp.asarray(0.0), x)[1],
}
# What can have a gradient of the same kind.
for _name in (
    "roll", "first half", "halves", "split in two", "pairs", "first ten", "last three", "inner",
    "every third from the end", "some of the half", "rotated", "convolve", "transform", "order",
    "quantile", "prefixes", "steps", "kron with itself", "adaptive mean",
):  # fmt: skip
    SYMBOLIC[f"grad of {_name}"] = _total(SYMBOLIC[_name])

# Lengths that become numbers of Python: captured for each length, with one code.
AS_NUMBERS: dict[str, Any] = {
    "len": lambda x: x * float(len(x)),
    "mean by len": lambda x: xp.sum(x) / max(len(x), 1),
    "root": lambda x: x / math.sqrt(max(x.shape[0], 1)),
    "power": lambda x: x / max(x.shape[0], 1) ** 0.5,
    "half of len": lambda x: x[: len(x) // 2] * len(x),
    "fraction": lambda x: x[: int(x.shape[0] * 0.8)],
    "linspace": lambda x: x * xp.linspace(0, 1, x.shape[0]),
    "downwards": lambda x: x * xp.arange(x.shape[0] - 1, -1, -1),
    "padded to even": lambda x: xp.pad(x, (0, x.shape[0] % 2)),
    "mirrored": lambda x: xp.pad(x, 1, mode="edge") if x.shape[0] else x,
    "diagonal": xp.diag,
    "middle": _where_there_are_some(lambda x: x[x.shape[0] // 2]),
    "frequencies": lambda x: x * xp.fft.fftfreq(x.shape[0]) if x.shape[0] else x,
    "permuted": lambda x: x[ft.random.permutation(ft.random.key(0), x.shape[0])],
    "numpy's window": lambda x: x * np.hanning(x.shape[0]),
    "steps of half": lambda x: ft.scan(lambda c, r: (c + r, c), xp.asarray(0.0), x[: len(x) // 2]),
    "moved into place": lambda x: x.at[1:].add(x[:-1]) if x.shape[0] else x,
    "branch and len": lambda x: ft.cond(xp.sum(x) > 0, lambda: x * 2, lambda: -x) * len(x),
}
for _name in ("mean by len", "linspace", "padded to even", "half of len"):
    AS_NUMBERS[f"grad of {_name}"] = _total(AS_NUMBERS[_name])


def _halving(x: Any) -> Any:
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        x = xp.concat([x[:half] + x[half : 2 * half], x[2 * half :]])
    return x


# Python itself decides on the length: (function, the ways that it can go).
BRANCHES: dict[str, tuple[Any, int]] = {
    "odd or even": (lambda x: x * 2 if x.shape[0] % 2 else x + 1, 2),
    "short or long": (lambda x: x * 2 if x.shape[0] < 8 else x + 1, 2),
    "Python's min": (lambda x: xp.top_k(x, min(x.shape[0], 10))[0], 2),
    "enough for a window": (lambda x: x[2:] + x[:-2] if x.shape[0] > 2 else x, 2),
    "slope": (lambda x: xp.gradient(x) if x.shape[0] > 1 else x, 2),
    "covariance": (lambda x: xp.cov(xp.stack([x, x * x])) if x.shape[0] > 1 else x, 2),
    "pooled": (lambda x: nn.functional.avg_pool1d(x[None], 2) if x.shape[0] > 1 else x, 2),
    "halved until one is left": (_halving, 7),  # how often: 0 to 6 times
    "grad of Python's min": (_total(lambda x: xp.top_k(x, min(x.shape[0], 10))[0]), 2),
}


def compared(fun: Any, lengths: tuple[int, ...]) -> Any:
    """What was compiled, after every result was compared with eager's."""
    f = ft.jit(fun)
    for n in lengths:
        with np.errstate(all="ignore"):
            expected = fun(data(n))
            laws.close(f(data(n)), expected, 1e-10, 1e-10)
    return f.cache_info()


def in_turn() -> list[Any]:
    """Every function in every order: quick in one, in turn, the others slow."""
    return [
        pytest.param(name, order, marks=[] if (k + j) % len(ORDERS) == 0 else pytest.mark.slow)
        for k, name in enumerate([*SYMBOLIC, *AS_NUMBERS])
        for j, order in enumerate(ORDERS)
    ]


@pytest.mark.parametrize(("name", "order"), in_turn())
def test_fifty_lengths_cost_two_compilations(name: str, order: str) -> None:
    """0 and 1, even and odd ones among them, in any order. Those that stay symbolic are captured
    once: one path beside the first call's, and that of no elements.
    """
    fun = SYMBOLIC.get(name) or AS_NUMBERS[name]
    again = order == "again" and name not in SYMBOLIC  # no elements, asked for more than once
    found = compared(fun, ORDERS[order])
    assert found.misses <= 2 + again
    assert name not in SYMBOLIC or found.paths <= 3


@pytest.mark.in_turn
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_on_the_length_costs_one_compilation_each(name: str, order: str) -> None:
    """And one for the first call, which knows of no other length."""
    fun, ways = BRANCHES[name]
    assert compared(fun, ORDERS[order]).misses <= ways + 1


@pytest.mark.parametrize("name", SYMBOLIC)
def test_derivatives_of_what_was_compiled_for_any_length(name: str) -> None:
    """The gradient through the compiled function, where parts of it may have no elements."""
    f = ft.jit(SYMBOLIC[name])
    for n in (5, 6, 1, 2, 3, 0, 9, 1):
        with np.errstate(all="ignore"):
            laws.close(_total(f)(data(n)), _total(SYMBOLIC[name])(data(n)), 1e-9, 1e-9)


def test_broadcasting_sizes_beside_a_half() -> None:
    """A half of length 1 meets others, which no longer one does."""

    def fun(x: Any, y: Any) -> Any:
        return x[: x.shape[0] // 2] * y

    f = ft.jit(fun)
    for n, m in ((8, 4), (6, 3), (2, 3), (3, 1), (2, 7), (9, 4), (9, 1), (2, 1), (40, 20), (2, 0)):
        laws.close(f(data(n), data(m)), fun(data(n), data(m)))
    with pytest.raises(ValueError, match="cannot be broadcast"):
        f(data(8), data(3))


def test_a_first_call_without_elements_that_comes_again() -> None:
    """It is compiled then; once, whatever else comes."""
    f = ft.jit(lambda x: x * 2.0)
    for _ in range(4):
        assert f(data(0)).shape == (0,)
    assert f.cache_info() == (2, 1, 1)
