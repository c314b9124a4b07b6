"""First and second derivatives at special and extreme points: those of the mathematics, by mpmath.

Where the derivative of the real function is a number that the dtype can hold, so is ours: a square
between that is infinite, or 0, loses nothing, and infinity times 0 makes no NaN. At poles, ends of
domains, 0 and the infinities the derivative is what the derivatives beside it tend to.
"""

from __future__ import annotations

import functools
import itertools
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


def _near(y: float, wanted: tuple[float, ...], dtype: str, units: int = 0) -> bool:
    """Whether y is one of those, up to rounding and underflow."""
    info = np.finfo(dtype)
    rtol, atol = (1e-5 if dtype == "float32" else 1e-12), info.tiny + units * info.eps
    with np.errstate(over="ignore"):
        fits = [np.asarray(w).astype(dtype).item() for w in wanted]
    return any(y == w or abs(y - w) <= rtol * abs(w) + atol for w in fits)


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", sorted(UNARY))
def test_of_one_operand(name: str, order: int, dtype: str) -> None:
    """At every point, in every way of asking."""
    x = points(dtype)
    wrong = []
    for way, slope in slopes(UNARY[name][0], order).items():
        found = np.asarray(slope(xp.asarray(x)))
        assert found.dtype == dtype
        for v, y in zip(x.tolist(), found.tolist(), strict=True):
            wanted = expected(name, v, order)
            if np.isnan(v):
                good = np.isnan(y) or (name == "square" and order == 2)
            else:
                good = not wanted or _near(y, wanted, dtype, COARSE.get(name, 0))
            if not good:
                wrong.append((way, v, y, wanted))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", sorted(UNARY))
def test_ways_agree_outside_of_domains(name: str, order: int, dtype: str) -> None:
    """What is a number in eager code is one in compiled code, where mathematics has no say."""
    x = xp.asarray(points(dtype))
    found = {way: np.asarray(f(x)) for way, f in slopes(UNARY[name][0], order).items()}
    for one, other in (("reverse", "jit"), ("forward", "jit forward"), ("reverse", "vmap")):
        a, b = np.isnan(found[one]), np.isnan(found[other])
        assert np.array_equal(a, b), (one, other, np.asarray(x)[a != b])


def _length(x: Any, y: Any) -> Any:
    return mp.sqrt(x * x + y * y)


def _share(x: Any, y: Any) -> Any:
    return 1 / (1 + mp.exp(y - x))


def _log(x: Any) -> Any:
    return mp.log(x) if x > 0 else mp.nan


def _root(d: Any, r: Any) -> Any:
    if d < 0:
        raise ValueError("pseudo_huber is infinite")
    return mp.sqrt(1 + (r / d) ** 2)


# Functions of two operands, and mpmath's derivatives in x, y, twice in x, twice in y, in both.
BINARY: dict[str, tuple[Callable[..., Any], ...]] = {
    "atan2": (
        xp.atan2,
        lambda x, y: y / _length(x, y) ** 2, lambda x, y: -x / _length(x, y) ** 2,
        lambda x, y: -2 * x * y / _length(x, y) ** 4, lambda x, y: 2 * x * y / _length(x, y) ** 4,
        lambda x, y: (x - y) * (x + y) / _length(x, y) ** 4,
    ),
    "divide": (
        xp.divide, lambda x, y: 1 / y, lambda x, y: -x / y**2,
        lambda x, y: mp.mpf(0), lambda x, y: 2 * x / y**3, lambda x, y: -1 / y**2,
    ),
    "hypot": (
        xp.hypot, lambda x, y: x / _length(x, y), lambda x, y: y / _length(x, y),
        lambda x, y: y * y / _length(x, y) ** 3, lambda x, y: x * x / _length(x, y) ** 3,
        lambda x, y: -x * y / _length(x, y) ** 3,
    ),
    "logaddexp": (
        xp.logaddexp, _share, lambda x, y: _share(y, x),
        *[lambda x, y: _share(x, y) * _share(y, x)] * 2,
        lambda x, y: -_share(x, y) * _share(y, x),
    ),
    "multiply": (
        xp.multiply, lambda x, y: y, lambda x, y: x,
        *[lambda x, y: mp.mpf(0)] * 2, lambda x, y: mp.mpf(1),
    ),
    "pow": (
        xp.pow, lambda x, y: y * x ** (y - 1), lambda x, y: x**y * _log(x),
        lambda x, y: y * (y - 1) * x ** (y - 2), lambda x, y: x**y * _log(x) ** 2,
        lambda x, y: x ** (y - 1) * (1 + y * _log(x)),
    ),
    "pseudo_huber": (
        S.pseudo_huber,
        lambda d, r: d * (_root(d, r) - 1) ** 2 / _root(d, r), lambda d, r: r / _root(d, r),
        lambda d, r: -((_root(d, r) - 1) ** 2) * (2 * _root(d, r) + 1) / _root(d, r) ** 3,
        lambda d, r: 1 / _root(d, r) ** 3, lambda d, r: (r / d) ** 3 / _root(d, r) ** 3,
    ),
    "rel_entr": (
        S.rel_entr, lambda x, y: mp.log(x / y) + 1,
        lambda x, y: -x / y, lambda x, y: 1 / x, lambda x, y: x / y**2, lambda x, y: -1 / y,
    ),
    "xlog1py": (
        S.xlog1py, lambda x, y: mp.log1p(y),
        lambda x, y: x / (1 + y), lambda x, y: mp.mpf(0), lambda x, y: -x / (1 + y) ** 2,
        lambda x, y: 1 / (1 + y),
    ),
    "xlogy": (
        S.xlogy, lambda x, y: mp.log(y), lambda x, y: x / y,
        lambda x, y: mp.mpf(0), lambda x, y: -x / y**2, lambda x, y: 1 / y,
    ),
}  # fmt: skip
_ORDERS = ((0,), (1,), (0, 0), (1, 1), (0, 1), (1, 0))
_PATHS = ((400, 400), (400, 900), (900, 400), (900, 900))


def pairs(dtype: str) -> np.ndarray[Any, Any]:
    """Every pair of awkward numbers."""
    info = np.finfo(dtype)
    large = 3e30 if dtype == "float32" else 1e160
    sizes = [0.0, info.tiny, 1 / large, 0.3, 1.0, 2.0, 40.0, large, info.max, np.inf]
    signed = np.asarray(sizes + [-v for v in sizes], dtype)
    return np.stack([a.ravel() for a in np.meshgrid(signed, signed)])


def _beside(v: float, side: int, k: int) -> Any:
    if np.isinf(v):
        return mp.sign(v) * mp.mpf(10) ** k
    return side * mp.mpf(10) ** -k if v == 0 else mp.mpf(v)


def _at(f: Any, x: Any, y: Any) -> Any:
    try:
        return _real(f(x, y))
    except (ZeroDivisionError, ValueError, OverflowError):
        return None


def _aside(name: str, x: float, y: float, order: int) -> bool:
    """Where a second derivative is 0, or a number, times a power that is none; and powers of and to
    infinity, those too large to be odd beside x < 0, and what has a convention.
    """
    least, most = sorted((abs(x), abs(y)))
    if order == 2 and (most < 1e-9 or (name == "pow" and abs(x) < 1e-9)):
        return name in ("atan2", "pow", "rel_entr", "xlogy")
    if name == "pow":
        return np.isinf(most) or (x < 0 and abs(y) > 1e6)
    if name == "rel_entr":
        return x < 0 or y < 0 or np.isinf(most)
    return name == "pseudo_huber" and most > 1e150 and (order == 2 or least > 1e150)


@functools.cache
def expected_of_two(name: str, x: float, y: float, which: tuple[int, ...]) -> tuple[float, ...]:
    """The derivative, or what it tends to from each side; nothing where paths differ."""
    if _aside(name, x, y, len(which)):
        return ()
    f = BINARY[name][1 + _ORDERS.index(tuple(sorted(which)))]
    found = []
    singular = any(v == 0 or np.isinf(v) for v in (x, y))
    sides = [(np.sign(v),) if v else (np.copysign(1, v),) for v in (x, y)]
    with mp.workdps(60):
        for side in itertools.product(*sides):
            beside = [
                [_beside(v, int(s), k) for v, s, k in zip((x, y), side, path, strict=True)]
                for path in (_PATHS if singular else _PATHS[:1])
            ]
            seen = [_at(f, *point) for point in beside]
            if None in seen:
                return ()
            each = [float(v) for v in seen]
            if not np.allclose(each, each[-1], 1e-13, 0):
                return ()
            found.append(each[-1])
    return tuple(found)


def _rounded(name: str, x: float, y: float) -> float:
    """Absolute errors of second derivatives that are differences, in units of the last place."""
    near = 1 / max(abs(x), abs(y), 1e-150)  # 1 over the length, if it is no smaller
    return {"atan2": 4 * near * near, "hypot": 4 * near, "pseudo_huber": 4}.get(name, 0)


def partials(f: Any, which: tuple[int, ...]) -> dict[str, Any]:
    """The derivative in these operands, one after the other, of each element."""

    def reverse(f: Any, i: int) -> Any:
        return ft.grad(lambda x, y: xp.sum(f(x, y)), i)

    def forward(f: Any, i: int) -> Any:
        def slope(*args: Any) -> Any:
            along = lambda v: f(*args[:i], v, *args[i + 1 :])  # noqa: E731
            return ft.jvp(along, (args[i],), (xp.ones_like(args[i]),))[1]

        return slope

    back = functools.reduce(reverse, which, f)
    on = functools.reduce(forward, which, f)
    mixed = forward(reverse(f, which[0]), which[-1]) if len(which) > 1 else on
    return {
        "reverse": back, "forward": on, "mixed": mixed, "jit": ft.jit(back),
        "jit forward": ft.jit(on),
    }  # fmt: skip


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("which", _ORDERS)
@pytest.mark.parametrize("name", sorted(BINARY))
def test_of_two_operands(name: str, which: tuple[int, ...], dtype: str) -> None:
    """At every pair of points, in every way of asking."""
    points = pairs(dtype)
    there = np.isfinite(np.asarray(BINARY[name][0](*map(xp.asarray, points))))
    there |= np.isinf(points).any(0)  # elsewhere the function itself has no value
    wrong = []
    for way, slope in partials(BINARY[name][0], which).items():
        found = np.asarray(slope(*map(xp.asarray, points)))
        assert found.dtype == dtype
        for x, y, v in zip(*points[:, there].tolist(), found[there].tolist(), strict=True):
            wanted = expected_of_two(name, x, y, which)
            units = _rounded(name, x, y) if len(which) > 1 else 0
            if any(np.isinf(wanted)):
                good = not np.isfinite(v)  # no number stands for it
            else:
                good = not wanted or _near(v, wanted, dtype, units)
            if not good:
                wrong.append((way, x, y, v, wanted))
    assert not wrong, "\n".join(map(str, wrong))


def _cubed(z: Any, first: Any, sign: int) -> tuple[Any, Any]:
    return first, sign * z * first**3


# Complex functions, and the first and the second derivative at a point, by mpmath.
COMPLEX: dict[str, tuple[Callable[[Any], Any], Callable[[Any], tuple[Any, Any]]]] = {
    "acos": (xp.acos, lambda z: _cubed(z, -1 / (mp.sqrt(1 - z) * mp.sqrt(1 + z)), 1)),
    "acosh": (xp.acosh, lambda z: _cubed(z, 1 / (mp.sqrt(z - 1) * mp.sqrt(z + 1)), -1)),
    "asin": (xp.asin, lambda z: _cubed(z, 1 / (mp.sqrt(1 - z) * mp.sqrt(1 + z)), 1)),
    "asinh": (xp.asinh, lambda z: _cubed(z, 1 / (mp.sqrt(1 + 1j * z) * mp.sqrt(1 - 1j * z)), -1)),
    "atan": (xp.atan, lambda z: (1 / (1 + z * z), -2 * z / (1 + z * z) ** 2)),
    "atanh": (xp.atanh, lambda z: (1 / (1 - z * z), 2 * z / (1 - z * z) ** 2)),
    "log": (xp.log, lambda z: (1 / z, -1 / z**2)),
    "log1p": (xp.log1p, lambda z: (1 / (1 + z), -1 / (1 + z) ** 2)),
    "sqrt": (xp.sqrt, lambda z: (1 / (2 * mp.sqrt(z)), -1 / (4 * z * mp.sqrt(z)))),
}  # fmt: skip
_PLANE = [
    complex(a, b)
    for a in (0.0, -0.0, 1e-30, 0.3, 1 - 1e-9, 1 + 1e-9, -1 - 1e-9, 2.0, -2.0, 1e100, -1e200)
    for b in (0.0, -0.0, 1e-30, -0.3, 1 - 1e-9, -1 + 1e-9, 1 + 1e-9, 2.0, -2.0, 1e100, -1e200)
]


@pytest.mark.parametrize("name", sorted(COMPLEX))
def test_of_complex_operands(name: str) -> None:
    """Near poles and far out without a loss of digits, and on both sides of each branch cut."""
    f, other = COMPLEX[name]
    z = xp.asarray(_PLANE)
    forward = lambda f: lambda z: ft.jvp(f, (z,), (xp.ones_like(z),))[1]  # noqa: E731
    once, twice = forward(f), forward(forward(f))
    pulled = xp.conj(ft.vjp(f, z)[1](xp.ones_like(z))[0])
    found = [(0, once(z)), (0, ft.jit(once)(z)), (0, pulled), (1, twice(z)), (1, ft.jit(twice)(z))]
    for k, point in enumerate(_PLANE):
        with mp.workdps(400):
            sides = [mp.mpf(v) if v else mp.mpf(10) ** -390 * np.copysign(1, v)
                     for v in (point.real, point.imag)]  # fmt: skip
            try:
                wanted = other(mp.mpc(*sides))
            except ZeroDivisionError:
                continue
        for order, way in found:
            w, v = wanted[order], complex(np.asarray(way)[k])
            if abs(wanted[1]) < 1e290 and abs(wanted[0]) < 1e100:
                assert abs(v - complex(w)) <= 1e-12 * float(abs(w)) + 1e-15, (order, point, v, w)
