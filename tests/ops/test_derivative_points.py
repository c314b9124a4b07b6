"""First and second derivatives at special and extreme points: those of the mathematics, by mpmath.

Where the derivative of the real function is a number that the dtype can hold, so is ours: a square
between that is infinite, or 0, loses nothing, and infinity times 0 makes no NaN. At poles, ends of
domains, 0 and the infinities the derivative is what the derivatives beside it tend to.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp

mp = pytest.importorskip("mpmath", reason="the derivatives are compared with mpmath's").mp

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

S = xp.special


def _erfcx(x: Any) -> Any:
    if x < 10**6:
        return mp.exp(x * x) * mp.erfc(x) if x > -(10**6) else 2 * mp.exp(x * x)
    r = 1 / (2 * x * x)  # mpmath's is slow, and overflows, far out
    return (1 - r * (1 - 3 * r * (1 - 5 * r * (1 - 7 * r)))) / (x * mp.sqrt(mp.pi))


def _erfc(x: Any) -> Any:
    return mp.erfc(x) if abs(x) < 10**6 else mp.exp(-x * x) * _erfcx(x)


def _ndtr(x: Any) -> Any:
    return _erfc(-x / mp.sqrt(2)) / 2


# Real functions of one operand, and mpmath's. They are complex outside of their domains.
UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "acos": (xp.acos, mp.acos), "acosh": (xp.acosh, mp.acosh), "asin": (xp.asin, mp.asin),
    "asinh": (xp.asinh, mp.asinh), "atan": (xp.atan, mp.atan), "atanh": (xp.atanh, mp.atanh),
    "cbrt": (S.cbrt, lambda x: mp.sign(x) * mp.cbrt(abs(x))),
    "cos": (xp.cos, mp.cos), "cosh": (xp.cosh, mp.cosh),
    "cosm1": (S.cosm1, mp.cos),
    "dawsn": (S.dawsn, lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)),
    "entr": (S.entr, lambda x: -x * mp.log(x)),
    "erf": (xp.special.erf, mp.erf), "erfc": (S.erfc, _erfc),
    "erfcx": (S.erfcx, _erfcx),
    "erfi": (S.erfi, mp.erfi),
    "exp": (xp.exp, mp.exp), "exp10": (S.exp10, lambda x: mp.mpf(10) ** x),
    "exp2": (S.exp2, lambda x: mp.mpf(2) ** x),
    "expit": (S.expit, lambda x: 1 / (1 + mp.exp(-x))), "expm1": (xp.expm1, mp.exp),
    "exprel": (S.exprel, lambda x: mp.expm1(x) / x),
    "log": (xp.log, mp.log), "log10": (xp.log10, lambda x: mp.log(x) / mp.log(10)),
    "log1p": (xp.log1p, mp.log1p), "log2": (xp.log2, lambda x: mp.log(x) / mp.log(2)),
    "log_expit": (S.log_expit, lambda x: -mp.log1p(mp.exp(-x))),
    "log_ndtr": (S.log_ndtr, lambda x: mp.log(_ndtr(x))),
    "logit": (S.logit, lambda x: mp.log(x / (1 - x))),
    "ndtr": (S.ndtr, _ndtr),
    "reciprocal": (xp.reciprocal, lambda x: 1 / x),
    "sin": (xp.sin, mp.sin), "sinc": (S.sinc, mp.sincpi),
    "sinh": (xp.sinh, mp.sinh), "softplus": (S.softplus, lambda x: mp.log1p(mp.exp(x))),
    "sqrt": (xp.sqrt, mp.sqrt), "square": (xp.square, lambda x: x * x),
    "tan": (xp.tan, mp.tan), "tanh": (xp.tanh, mp.tanh),
}  # fmt: skip


def points(dtype: str) -> np.ndarray[Any, Any]:
    """Zeros, the smallest and the largest numbers, the ends of domains, infinities, NaN."""
    info = np.finfo(dtype)
    large = (1e19, 3e30) if dtype == "float32" else (1e19, 1e160)
    sizes = [
        0.0, info.smallest_subnormal, info.tiny, 1 / large[1], 1e-9, 0.3, 0.5, 0.999,
        1 - 5 * info.epsneg, 1 - info.epsneg, 1.0,
        1 + info.eps, 2.0, 7.5, 30.0, 95.0, 740.0, *large, info.max, np.inf,
    ]  # fmt: skip
    x = np.asarray(sizes, dtype)
    return np.concatenate([x, -x, [np.asarray(np.nan, dtype)]])


def _real(y: Any) -> Any:
    if isinstance(y, mp.mpc):
        return y.real if y.imag == 0 else None
    return y if mp.isfinite(y) else None


def _difference(f: Any, x: Any, h: Any, order: int) -> Any:
    """A central difference, whose error is h**2 / x**2; None outside of f's domain."""
    ys = [_real(f(x + k * h)) for k in ((-1, 1) if order == 1 else (-1, 0, 1))]
    if None in ys:
        return None
    return (ys[1] - ys[0]) / (2 * h) if order == 1 else (ys[0] - 2 * ys[1] + ys[2]) / (h * h)


def _limit(near: Any, far: Any) -> Any:
    """What two derivatives, the second one much nearer to the point, tend to; None if unknown."""
    if near is None or far is None:
        return None
    if max(abs(near), abs(far)) < mp.mpf(10) ** -330:
        return mp.mpf(0)
    if abs(near - far) <= mp.mpf(10) ** -20 * abs(far):
        return far
    if abs(far) > 1.5 * abs(near):
        return mp.sign(far) * mp.inf
    return mp.mpf(0) if abs(far) < mp.mpf(10) ** -60 * abs(near) else None


# Without limits at infinity.
WAVES = {"cos", "cosm1", "sin", "sinc", "tan"}
# Absolute errors, in units of the last place of 1: 1 - y² and y (1 - y) have no more digits.
COARSE = {"expit": 1, "tanh": 4}
_ENDS = (0.0, 0.5, 1.0, -1.0, np.inf, -np.inf)
_NEAR, _FAR = (mp.mpf(10) ** -150, mp.mpf(10) ** -330), (mp.mpf(10) ** 150, mp.mpf(10) ** 290)


@functools.cache
def expected(name: str, x: float, order: int) -> tuple[float, ...]:
    """The derivative, or what it tends to from each side; nothing where it is unknown."""
    f = UNARY[name][1]
    if np.isnan(x) or (np.isinf(x) and name in WAVES) or (name == "sinc" and abs(x) > 100):
        return ()  # sinc rounds pi * x, as SciPy's does

    def at(v: Any, h: Any) -> Any:
        try:
            return _difference(f, v, h, order)
        except (ZeroDivisionError, ValueError):
            return None

    with mp.workdps(1100 if x in _ENDS or abs(x) < 1e-99 else 500):
        if np.isinf(x):
            seen = [[at(mp.sign(x) * v, v * mp.mpf(10) ** -30) for v in _FAR]]
        elif x in _ENDS:
            seen = [[at(x + s * t, t * mp.mpf(10) ** -30) for t in _NEAR] for s in (1, -1)]
        else:
            scale = min(abs(x), 1.0) if name in WAVES else abs(x)
            seen = [[at(mp.mpf(x), scale * mp.mpf(10) ** -40)] * 2]
        limits = [_limit(*two) for two in seen]
        return tuple(float(y) for y in limits if y is not None)


def slopes(f: Any, order: int) -> dict[str, Any]:
    """The derivative of that order, of each element, in every way of asking."""
    ones = xp.ones_like
    forward = lambda f: lambda x: ft.jvp(f, (x,), (ones(x),))[1]  # noqa: E731
    reverse = lambda f: ft.grad(lambda x: xp.sum(f(x)))  # noqa: E731
    twice = lambda *ways: functools.reduce(lambda g, way: way(g), ways[:order], f)  # noqa: E731
    return {
        "reverse": twice(reverse, reverse), "forward": twice(forward, forward),
        "mixed": twice(reverse, forward), "jit": ft.jit(twice(reverse, reverse)),
        "jit forward": ft.jit(twice(forward, forward)),
        "vmap": ft.vmap(functools.reduce(lambda g, w: w(g), [ft.grad] * order, f)),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", sorted(UNARY))
def test_of_one_operand(name: str, order: int, dtype: str) -> None:
    """At every point, in every way of asking."""
    x = points(dtype)
    f = UNARY[name][0]
    info = np.finfo(dtype)
    wrong = []
    for way, slope in slopes(f, order).items():
        found = np.asarray(slope(xp.asarray(x)))
        assert found.dtype == dtype
        room = info.tiny + COARSE.get(name, 0) * info.eps
        for v, y in zip(x.tolist(), found.tolist(), strict=True):
            wanted = expected(name, v, order)
            if np.isnan(v):
                good = np.isnan(y) or (name == "square" and order == 2)
            else:
                rtol = 1e-5 if dtype == "float32" else 1e-12
                with np.errstate(all="ignore"):
                    fits = [np.asarray(w).astype(dtype).item() for w in wanted]
                good = not fits or any(y == w or abs(y - w) <= rtol * abs(w) + room for w in fits)
            if not good:
                wrong.append((way, v, y, wanted))
    assert not wrong, "\n".join(map(str, wrong))
