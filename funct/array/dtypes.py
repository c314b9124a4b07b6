"""Data types, and what the standard asks about them."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from funct.core import Value
from funct.errors import DTypeError

__all__ = [
    "bool", "can_cast", "complex64", "complex128", "finfo", "float16", "float32", "float64",
    "iinfo", "int8", "int16", "int32", "int64", "isdtype", "result_type", "uint8", "uint16",
    "uint32", "uint64",
]  # fmt: skip

DType = np.dtype[Any]

bool: DType = np.dtype(np.bool_)
int8: DType = np.dtype(np.int8)
int16: DType = np.dtype(np.int16)
int32: DType = np.dtype(np.int32)
int64: DType = np.dtype(np.int64)
uint8: DType = np.dtype(np.uint8)
uint16: DType = np.dtype(np.uint16)
uint32: DType = np.dtype(np.uint32)
uint64: DType = np.dtype(np.uint64)
float16: DType = np.dtype(np.float16)
float32: DType = np.dtype(np.float32)
float64: DType = np.dtype(np.float64)
complex64: DType = np.dtype(np.complex64)
complex128: DType = np.dtype(np.complex128)


def as_dtype(name: str, dtype: Any) -> DType:
    """A dtype from what NumPy takes for one, or DTypeError that names the function."""
    try:
        return np.dtype(dtype)
    except TypeError:
        raise DTypeError(f"{name}: {dtype!r} is no dtype") from None


_KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu",
    "real floating": "f", "complex floating": "c", "numeric": "iufc",
}  # fmt: skip


def isdtype(dtype: Any, kind: Any) -> Any:
    """Whether dtype is of a kind: a dtype, a name such as "real floating", or a tuple of them."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise DTypeError(f"isdtype: kind must be one of {sorted(_KINDS)}, got {kind!r}")
        return np.dtype(dtype).kind in _KINDS[kind]
    return np.dtype(dtype) == np.dtype(kind)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that the operands promote to; Python numbers adopt the others' dtype."""
    try:
        given = [a.dtype if isinstance(a, Value) else a for a in arrays_and_dtypes]
        return np.result_type(*given)
    except TypeError as error:
        raise DTypeError(f"result_type: {error}") from None


def can_cast(from_: Any, to: Any, /) -> Any:
    """Whether a cast follows the promotion rules."""
    source = from_.dtype if isinstance(from_, Value) else np.dtype(from_)
    return np.can_cast(source, np.dtype(to), "safe")


@attrs.frozen
class FloatLimits:
    """Limits of a floating dtype, as Python floats."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


def finfo(type: Any, /) -> FloatLimits:
    """Limits of a floating dtype or of an array's."""
    dtype = type.dtype if isinstance(type, Value) else np.dtype(type)
    if dtype.kind not in "fc":
        raise DTypeError(f"finfo: dtype must be floating, got {dtype}")
    info = np.finfo(dtype)
    return FloatLimits(
        int(info.bits), float(info.eps), float(info.max), float(info.min),
        float(info.smallest_normal), np.dtype(info.dtype),
    )  # fmt: skip


@attrs.frozen
class IntegerLimits:
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: Any


def iinfo(type: Any, /) -> IntegerLimits:
    """Limits of an integer dtype or of an array's."""
    dtype = type.dtype if isinstance(type, Value) else np.dtype(type)
    if dtype.kind not in "iu":
        raise DTypeError(f"iinfo: dtype must be of integers, got {dtype}")
    info = np.iinfo(dtype)
    return IntegerLimits(int(info.bits), int(info.max), int(info.min), np.dtype(info.dtype))
