"""Elementwise functions whose values at the edges NumPy gives otherwise than the standard.

Each is called like a ufunc, `f(x, out)`, where out may be an operand; real numbers take the ufunc
at once, but for `floor_divide` and `power`. Source: Array API 2025.12, "Special cases"; for
complex functions also C99 Annex G.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from math import inf, isfinite, isinf
from typing import Any

import numpy as np

from funct.kernels.cpu import neural
from funct.kernels.cpu.elementwise import complexes
from funct.kernels.cpu.elementwise.guarded import Guarded
from funct.kernels.cpu.loops import ready
from funct.kernels.dtypes import FLOATING, INTEGER, is_half
from funct.kernels.elementwise.casting import in_dtype
from funct.kernels.elementwise.thresholds import FAR, MANY
from funct.kernels.linalg.dots import vdot

__all__ = [
    "as_it_is", "choice", "clip", "complex_of", "conj", "expm1", "floor_divide", "is_ufunc",
    "known_by_number", "log1p", "power", "real_ufunc", "relu", "remainder", "rint", "rounded",
    "sigmoid", "tanh", "times_sigmoid",
]  # fmt: skip

ndarray = np.ndarray

_DOUBLE, _SINGLE = np.dtype(np.float64), np.dtype(np.float32)
_REAL, _COMPLEX = tuple(map(np.dtype, "fd")), tuple(map(np.dtype, "FD"))
_WHOLE = tuple(map(np.dtype, "?bhilqBHILQ"))
_VECTORS = frozenset(_REAL)  # what `vdot` is quick for
_DECIMALS = 30  # powers of ten below are numbers of single precision
_TENS = {d: [np.asarray(10.0**k, d) for k in range(_DECIMALS)] for d in _REAL}
_WHOLE_IN_HALVES = 1 << 8  # integers below are numbers of float16 and bfloat16
_SQUARED = frozenset(map(np.dtype, "efdFD"))
_floor_divide, _remainder = np.floor_divide, np.remainder
_BYTES = {"int4": (np.int8, range(-8, 8)), "uint4": (np.uint8, range(16))}
# What `np.clip` calls, in as much time again.
_clipped: Any = getattr(getattr(getattr(np, "_core", None), "umath", None), "clip", np.clip)
_power = np.power


def as_it_is(name: str, raw: Callable[..., Any], operands: int) -> Callable[..., Any]:
    """raw, the function of elements of that name, which takes so many operands, for large arrays
    as for small ones.
    """
    return raw


def is_ufunc(raw: Any) -> bool:
    """Whether raw acts as a ufunc does: always a new result, laid out like the operands, or out."""
    return isinstance(raw, np.ufunc) or raw in _LIKE_UFUNCS


def _kind(x: Any) -> Any:
    try:
        return x.dtype.kind
    except AttributeError:
        return np.asarray(x).dtype.kind  # a Python number


def relu(x: Any) -> Any:
    """max(x, 0)."""
    return np.maximum(x, 0)


def complex_of(re: Any, im: Any, /) -> Any:
    """re + i im; NumPy's `re + 1j * im` is NaN in the real part where im is infinite."""
    z = np.empty_like(re, np.result_type(re, im, np.complex64), shape=np.broadcast(re, im).shape)
    z.real, z.imag = re, im
    return z


def conj(x: Any, /, out: Any = None) -> Any:
    """Complex conjugate; real numbers are their own, without a copy."""
    real = x.__class__ is ndarray and x.dtype.kind in "fiuV" and out is None
    return x if real else np.conj(x, out)


def _in_bytes(ufunc: np.ufunc, x: Any, y: Any, out: Any) -> Any:
    """Quotients or remainders of integers of 4 bits, None of others. The loops of ml_dtypes warn of
    a divisor of 0 while other threads run Python, which ends the process.
    """
    kinds = {v.dtype for v in (x, y) if hasattr(v, "dtype") and v.dtype != bool}
    kind = kinds.pop() if len(kinds) == 1 else _DOUBLE
    wide, known = _BYTES.get(kind.name, (kind, ()))
    if not known or any(v.__class__ in (int, float) and v not in known for v in (x, y)):
        return None
    z = ufunc(*[v.astype(wide) if hasattr(v, "dtype") else v for v in (x, y)]).astype(kind)
    return z if out is None else _put(out, True, z)


def _floor_divide_anywhere(x: Any, y: Any, /, out: Any = None) -> Any:
    if out is None and _is_finite(x) and _is_finite(y):
        return _floor_divide(x, y)
    whole = (x.__class__ is int or _kind(x) not in "fV") and (  # V: the dtypes of ml_dtypes
        y.__class__ is int or _kind(y) not in "fV"
    )
    if not whole and (found := _in_bytes(_floor_divide, x, y, out)) is not None:
        return found
    if whole or not (_has_infinity(x) or _has_infinity(y)):
        return np.floor_divide(x, y, out)
    edge = np.isinf(x) | np.isinf(y)
    with np.errstate(invalid="ignore"):
        z = np.asarray(np.floor_divide(x, y))
        np.divide(x, y, out=z, where=edge)
    return z if out is None else _put(out, True, z)


_of_finite = Guarded(_floor_divide, _floor_divide_anywhere, looked=_REAL, taken=_WHOLE)


def floor_divide(x: Any, y: Any, /, out: Any = None) -> Any:
    """Quotient rounded towards minus infinity; with an infinity on one side it is x / y.

    There NumPy follows Python: NaN for inf // 2 and -1 for 1 // -inf.
    """
    return _of_finite.call(x, y) if out is None else _floor_divide_anywhere(x, y, out)


def remainder(x: Any, y: Any, /, out: Any = None) -> Any:
    """What is left of x when a multiple of y is taken from it, with the sign of y."""
    if (x.__class__ is ndarray and x.dtype.kind == "V") or (
        y.__class__ is ndarray and y.dtype.kind == "V"
    ):
        found = _in_bytes(_remainder, x, y, out)
        if found is not None:
            return found
    return _remainder(x, y, out)


def _cube(x: Any, out: Any = None) -> Any:
    z = np.square(x)
    return np.multiply(z, x, z if out is None and z.__class__ is ndarray else out)


def _fourth(x: Any, out: Any = None) -> Any:
    z = np.square(x)
    return np.square(z, z if out is None and z.__class__ is ndarray else out)


def _inverse_square(x: Any, out: Any = None) -> Any:
    z = np.reciprocal(x)  # not of the square, which may be too large
    return np.square(z, z if out is None and z.__class__ is ndarray else out)


# powers by a number that are products of few factors, within 1.5 ulp, and what computes them;
# compiled programs take the same factors (`compile/loops/scalars.py`)
_PRODUCTS: dict[float, Any] = {
    -2: _inverse_square, -1: np.reciprocal, 1: np.positive, 2: np.square, 3: _cube, 4: _fourth,
}  # fmt: skip


def _roots(x: Any) -> tuple[Any, Any]:
    """The square roots without their signs, and where x is -inf if it may be: NumPy's are NaN."""
    low = None if isfinite(vdot(x, x)) else np.equal(x, -inf)
    with np.errstate(invalid="ignore") if low is not None else nullcontext():
        return np.absolute(np.sqrt(x)), low


def _square_root(x: Any, out: Any = None) -> Any:
    z, low = _roots(x)
    if low is not None:
        z = np.asarray(z)
        z[low] = inf
    return z if out is None else _put(out, True, z)


_root_of_positive = Guarded(np.sqrt, _square_root, looked=_REAL, taken=(), low=5e-324)


def _inverse_root(x: Any, out: Any) -> Any:
    root, low = _roots(x)
    z = np.reciprocal(root, out)
    if low is None:
        return z
    z = np.asarray(z)
    z[low] = 0
    return z if out is None else out


def _by_number(x: Any, y: float, out: Any) -> Any:
    """x, in single or double precision, to the power y. Of whole y other than those NumPy takes
    45 ns for each x below 0, so the sign comes last.
    """
    if (product := _PRODUCTS.get(y)) is not None:
        return product(x, out)
    if y == -0.5:
        return _inverse_root(x, out)
    if y == 0.5:
        return _square_root(x, out) if out is not None else _root_of_positive.call(x)
    if y % 1:
        return _power(x, y, out)
    size = np.absolute(x)
    own = size if size.__class__ is ndarray else None
    if y % 2 == 0:
        return _power(size, y, own if out is None else out)
    return np.copysign(_power(size, y, own), x, out)  # out may be x


def known_by_number(y: Any) -> bool:
    """Whether a power is one number, and NumPy's functions for it are short."""
    if y.__class__ is ndarray:
        return bool(y.size == 1 and (y.ndim or known_by_number(y.item())))
    return y in (0.5, -0.5) or y in _PRODUCTS


def _root(x: Any, y: Any, out: Any) -> Any:
    """x to the power 0.5: NumPy's is NaN where x is -inf, and keeps the sign of 0."""
    low = np.equal(x, -inf)
    with np.errstate(invalid="ignore"):
        z = np.asarray(np.absolute(_power(x, y)))
    np.copyto(z, inf, where=low)
    return z if out is None else _put(out, True, z)


def power(x: Any, y: Any, /, out: Any = None) -> Any:
    """x to the power y; see `_by_number` and `_root` for where NumPy does it otherwise."""
    if (c := y.__class__) is float or c is int:
        if c is int and y == 2 and x.__class__ is ndarray and x.dtype in _SQUARED:
            return np.square(x, out)
        if x.__class__ is ndarray and x.dtype in _VECTORS:
            return _by_number(x, y, out)
        if (y == 2 or y == 3) and x.__class__ is ndarray:
            if x.dtype in _COMPLEX:
                return _PRODUCTS[y](x, out)
            if c is int and x.dtype.kind in "iu" and out is None:
                return _PRODUCTS[y](x)
        half = y == 0.5
    elif c is ndarray and y.size == 1:
        if not y.ndim and y.dtype in _VECTORS and x.__class__ is ndarray and x.dtype is y.dtype:
            return _by_number(x, y.item(), out)
        half = y.dtype.kind == "f" and y == 0.5
    else:
        half = False
    return _root(x, y, out) if half and _kind(x) in "fiu" else _power(x, y, out)


def _is_finite(x: Any) -> bool:
    """Whether nothing in x is infinite, where that is told at once."""
    c = x.__class__
    if c is ndarray:
        return bool(isfinite(vdot(x, x))) if x.dtype in _VECTORS else x.dtype.kind in "iub"
    return c is int or (isinstance(x, float | np.integer) and isfinite(x))


def _has_infinity(x: Any) -> bool:
    if x.__class__ is float or x.__class__ is int:
        return isinf(x)
    return bool(np.count_nonzero(np.isinf(x)))


def _put(y: Any, where: Any, values: Any) -> Any:
    y = np.asarray(y)
    np.copyto(y, values, where=where)
    return y


def clip(x: Any, min: Any = None, max: Any = None) -> Any:
    """x limited by numbers of its kind, or by arrays of its dtype; None for others."""
    kind = x.dtype
    plain = float if kind.num > INTEGER else int
    if kind.num > FLOATING or not kind.num:
        return _clipped_in_single(x, min, max) if is_half(kind) and x.size >= MANY else None
    if {min.__class__, max.__class__} <= {plain, int, type(None)}:
        if min and max:
            return _clipped(x, min, max)  # one pass; at a limit of 0 it may give the other zero
        if x.size >= FAR and kind in _VECTORS:
            return None  # ops of large arrays and a number, for which NumPy has no vectors
    y = x
    if min is not None:
        if min.__class__ is not plain and not _limits(min, x, plain):
            return None
        y = np.maximum(y, min)
    if max is not None:
        if max.__class__ is not plain and not _limits(max, x, plain):
            return None
        y = np.minimum(y, max)
    return y if y is not x else None


def _clipped_in_single(x: Any, *limits: Any) -> Any:
    """The same of halves, which have vectors in float32 alone, by two numbers that they have."""
    for limit in limits:
        if limit.__class__ not in (float, int) or not 0 < abs(limit) < _WHOLE_IN_HALVES:
            return None
    low, high = [np.asarray(limit, x.dtype).astype(np.float32) for limit in limits]
    return in_dtype(_clipped(in_dtype(x, _SINGLE), low, high), x.dtype)


def _limits(limit: Any, x: Any, plain: type) -> bool:
    """Whether limit, which is no number of x's kind, leaves x its dtype nevertheless."""
    if limit.__class__ is ndarray:
        return limit.dtype is x.dtype
    return limit.__class__ is int and plain is float


def rint(x: Any, /, out: Any = None) -> Any:
    """The nearest integer, halves to even; integers keep their dtype."""
    return (np.positive if _kind(x) in "iu" else np.rint)(x, out)


def _real_by(
    ufunc: Any, low: float = 0.0, high: float = inf
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Real numbers take the ufunc, and few complex ones whose parts are in [low, high) or, signs
    apart, for a low of 0 below high; what is decorated is called with others.
    """

    def declare(edges: Callable[..., Any]) -> Callable[..., Any]:
        def plain(x: Any, /, out: Any = None) -> Any:
            kind = x.dtype.kind if x.__class__ is ndarray else _kind(x)
            return edges(x, out) if kind == "c" else ufunc(x, out)

        few = Guarded(ufunc, plain, looked=_COMPLEX, taken=_REAL, low=low, high=high)

        @functools.wraps(edges)
        def call(x: Any, /, out: Any = None) -> Any:
            return few.call(x) if out is None else plain(x, out)

        return call

    return declare


@_real_by(np.tanh)
def tanh(x: Any, out: Any) -> Any:
    """Hyperbolic tangent; ±1 with the imaginary part's own zero where the real part is infinite."""
    edge = np.isinf(x.real)
    if not np.count_nonzero(edge):
        return np.tanh(x, out)
    zero = np.copysign(0.0, x.imag)
    with np.errstate(invalid="ignore"):
        y = np.asarray(np.tanh(x, out))
    _put(y.imag, edge, zero)
    return y


@_real_by(np.expm1, 1e-30, 80.0)  # nothing overflows, and nothing gives -0
def expm1(x: Any, out: Any) -> Any:
    """exp(x) - 1, accurate near 0; where that overflows or is not a number, by way of exp."""
    with np.errstate(over="ignore", invalid="ignore"):
        y = np.asarray(np.expm1(x))
        edge = ~np.isfinite(y)
    y.real += 0.0  # the standard has no -0 here
    if np.count_nonzero(edge):
        y = _put(y, edge, np.exp(x) - 1)
    return y if out is None else _put(out, True, y)


@_real_by(np.log1p, 0.5)
def log1p(x: Any, out: Any) -> Any:
    """log(1 + x), accurate near 0 too, where the length of 1 + x would be lost to rounding."""
    y = np.asarray(np.log1p(x))
    _correct(x, y)
    return y if out is None else _put(out, True, y)


def _correct(x: Any, y: Any) -> None:
    """The real part of log(1 + x) written into y where |x| < 1/2."""
    if x.__class__ is ndarray and x.flags.c_contiguous and ready(x.size, 0):
        complexes.log1p_near(x, y, x.size)
        return
    a, b = x.real, x.imag
    near = np.abs(x) < 0.5
    _put(y.real, near, np.log1p(np.where(near, a * (a + 2) + b * b, 0)) / 2)


def rounded(x: Any, decimals: int = 0) -> Any:
    """x to so many decimals; None where a product with a power of ten is not finite."""
    tens = _TENS.get(x.dtype)
    if tens is None or decimals.__class__ is not int or not 0 <= decimals < _DECIMALS:
        return None
    if not decimals:
        return np.rint(x)
    ten = tens[decimals]
    y = np.multiply(x, ten)
    if not isfinite(vdot(y, y)):
        return None
    np.rint(y, y)
    return np.divide(y, ten, y)


def choice(condition: Any, x: Any, y: Any) -> Any:
    """x where condition holds, else y. OverflowError: for a Python integer that the other's dtype
    has not, as of ufuncs; NumPy's `where` takes it modulo a power of two.
    """
    if x.__class__ is int:
        _fits(x, y)
    if y.__class__ is int:
        _fits(y, x)
    return np.where(condition, x, y)


def _fits(number: int, other: Any) -> None:
    if not 0 <= number < 128 and other.__class__ is not float:
        dtype = np.result_type(number, other)
        if dtype.kind in "iu":
            np.asarray(number, dtype)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    y = _few_sigmoids(x, False)
    return _sigmoid(x) if y is None else y


def times_sigmoid(x: Any) -> Any:
    """x sigmoid(x)."""
    y = _few_sigmoids(x, True)
    return x * _sigmoid(x) if y is None else y


def _sigmoid(x: Any) -> Any:
    if x.dtype.kind in "bu":
        x = x.astype(_DOUBLE)  # which has negative numbers
    elif is_half(x.dtype):  # computed in float32, and rounded once
        return in_dtype(sigmoid(in_dtype(x, _SINGLE)), x.dtype)
    e = np.exp(np.minimum(x, -x))  # at most 1: nothing overflows, small results keep their digits
    return np.exp(np.minimum(x, 0)) / (1 + e)


def _few_sigmoids(x: Any, times: bool) -> Any:
    """The same for few elements, in one call; None where that does not serve."""
    n = x.size
    if n >= MANY or x.__class__ is not ndarray or x.dtype not in _VECTORS or not ready(n):
        return None
    if not n or not x.flags.c_contiguous or not neural.usable():
        return None
    y = np.empty(x.shape, x.dtype)
    neural.sigmoid(x, y, n, times)
    return y


_LIKE_UFUNCS = frozenset({expm1, floor_divide, log1p, power, remainder, rint, tanh})
_OF_REALS = {
    expm1: np.expm1, log1p: np.log1p, power: np.power, remainder: np.remainder, tanh: np.tanh,
}  # fmt: skip


def real_ufunc(raw: Any) -> np.ufunc | None:
    """The ufunc that raw is on arrays of floating numbers; `power`: but for single exponents."""
    return raw if isinstance(raw, np.ufunc) else _OF_REALS.get(raw)
