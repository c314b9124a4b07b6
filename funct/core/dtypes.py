"""Kinds of dtypes as sets, and how Python numbers meet the narrow dtypes of ml_dtypes.

NumPy's own answers fail for those: `dtype.kind` is "V" for bfloat16, and a Python float beside one
gives float32. A look-up in a set also takes less time than `dtype.kind in "fc"`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

__all__ = [
    "FLOATING", "INEXACT", "NARROW", "NARROW_INTEGERS", "WIDE", "common_dtype", "in_wide",
    "narrow_of", "narrow_operands", "product_dtype", "product_in_wide",
]  # fmt: skip


def _dtypes(*types: Any) -> frozenset[np.dtype[Any]]:
    return frozenset([np.dtype(t) for t in types])


_NARROW_FLOATING = _dtypes(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
NARROW_INTEGERS = _dtypes(ml_dtypes.int4, ml_dtypes.uint4)

NARROW = _NARROW_FLOATING | NARROW_INTEGERS
# what sums and products are taken in: NumPy adds up float16 in float16, number by number
WIDE = {d: np.dtype(np.float32) for d in _NARROW_FLOATING | _dtypes(np.float16)} | {
    np.dtype(ml_dtypes.int4): np.dtype(np.int64), np.dtype(ml_dtypes.uint4): np.dtype(np.uint64)
}  # fmt: skip
_LOOPS = tuple(map(np.dtype, "bBhHiIlLefdFD"))  # in the order in which a ufunc tries its own
_OWN_PRODUCTS = _dtypes(np.float32, np.float64)  # what is asked most, and needs no asking
FLOATING = _NARROW_FLOATING | _dtypes(np.float16, np.float32, np.float64)
INEXACT = FLOATING | _dtypes(np.complex64, np.complex128)  # what derivatives are for


def in_wide(reduction: Callable[..., Any], x: Any, *params: Any) -> Any:
    """A reduction of an array of a dtype in WIDE, taken in the wide one.

    A float is rounded to x's dtype once, at the end; an integer stays wide, as for int8 in NumPy.
    """
    y = reduction(x.astype(WIDE[x.dtype]), *params)
    return y.astype(x.dtype) if x.dtype in FLOATING else y


_NUMBERS = (bool, int, float)
_WORD = 2**63


def narrow_of(x: Any, dtype: np.dtype[Any]) -> Any:
    """A Python number beside an array of a narrow dtype: 0-d of that dtype, where it has one.

    A float beside int4 and an integer that does not fit stay as they are, and NumPy promotes.
    """
    if dtype in NARROW_INTEGERS:
        limits: Any = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
        fits = x.__class__ is int and limits.min <= x <= limits.max
    else:
        fits = x.__class__ in (int, float)
    if x.__class__ is int and fits and not -_WORD <= x < _WORD:
        x = float(x)  # ml_dtypes takes no longer ones
    return np.asarray(x, dtype) if fits or x.__class__ is bool else x


def common_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which operands meet, in whatever order.

    NumPy promotes no integers of 16 bits or more, and no other narrow floats, with a narrow dtype;
    but its operators take both, in the first of their loops that holds them all.
    TypeError where there is none.
    """
    try:  # NumPy folds narrow ones in pairs, so that their order would decide
        return np.result_type(*sorted(set(dtypes), key=lambda d: d.num))
    except TypeError:
        for d in _LOOPS:
            if all(np.can_cast(given, d) for given in dtypes):
                return d
        raise  # what is no dtype of arrays has none


@functools.lru_cache(1024)
def product_dtype(x: np.dtype[Any], y: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of x * y, which is that of sums of products too; TypeError where there is none."""
    return np.multiply(np.empty(0, x), np.empty(0, y)).dtype


def product_in_wide(product: Callable[..., Any], x: Any, y: Any, *params: Any) -> Any:
    """product(x, y, *params) in `product_dtype`; a narrow one is rounded to once, at the end."""
    if x.dtype is y.dtype and x.dtype in _OWN_PRODUCTS:
        return product(x, y, *params)
    kind = product_dtype(x.dtype, y.dtype)
    wide = WIDE.get(kind, kind)
    found = product(x.astype(wide, copy=False), y.astype(wide, copy=False), *params)
    return found if wide is kind else found.astype(kind)


def narrow_operands(args: Sequence[Any]) -> Sequence[Any]:
    """Operands, of which Python numbers take the narrow dtype of the arrays beside them."""
    for a in args:
        if getattr(a, "dtype", None) in NARROW:
            break
    else:
        return args
    dtypes = [d for a in args if (d := getattr(a, "dtype", None)) is not None and d != np.bool_]
    if len(dtypes) == len(args) or not NARROW.issuperset(dtypes):
        return args
    kind = common_dtype(*dtypes)
    return [narrow_of(a, kind) if a.__class__ in _NUMBERS else a for a in args]
