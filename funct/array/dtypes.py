"""Data types, and what the standard asks about them.

The names are NumPy's scalar types, as in NumPy and JAX: `x.dtype == xp.float32` holds, and wherever
a dtype is asked for either will do. (A `numpy.dtype` itself would equal None where it is float64.)

Beyond the standard there are float16 and five dtypes for storage, from ml_dtypes: bfloat16, two
float8, int4 and uint4. NumPy computes with those in float32 or int8 and rounds; a Python number
beside them takes their dtype, as beside any other.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from msgspec import Struct

from funct import tree
from funct.core import FLOATING, INEXACT, NARROW, Value, common_dtype, narrow_of
from funct.errors import ArgumentError, DTypeError
from funct.ops.refusals import shown

__all__ = [
    "bfloat16", "bool", "can_cast", "complex64", "complex128", "finfo", "float16", "float32",
    "float64", "float8_e4m3fn", "float8_e5m2", "iinfo", "int4", "int8", "int16", "int32", "int64",
    "isdtype", "result_type", "uint4", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip

DType = np.dtype[Any]

bool = np.bool_
int4 = ml_dtypes.int4
int8 = np.int8
int16 = np.int16
int32 = np.int32
int64 = np.int64
uint4 = ml_dtypes.uint4
uint8 = np.uint8
uint16 = np.uint16
uint32 = np.uint32
uint64 = np.uint64
float8_e4m3fn = ml_dtypes.float8_e4m3fn
float8_e5m2 = ml_dtypes.float8_e5m2
bfloat16 = ml_dtypes.bfloat16
float16 = np.float16
float32 = np.float32
float64 = np.float64
complex64 = np.complex64
complex128 = np.complex128


def _dtypes(*types: Any) -> frozenset[DType]:
    return frozenset([np.dtype(t) for t in types])


_KINDS = {
    "bool": _dtypes(bool),
    "signed integer": _dtypes(int4, int8, int16, int32, int64),
    "unsigned integer": _dtypes(uint4, uint8, uint16, uint32, uint64),
    "real floating": FLOATING,
    "complex floating": INEXACT - FLOATING,
}
_KINDS["integral"] = _KINDS["signed integer"] | _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] | INEXACT

DTYPES = _KINDS["bool"] | _KINDS["numeric"]
_NUMBERS = (True.__class__, int, float, complex)
_SPELLED: dict[Any, DType] = {s: d for d in DTYPES for s in (d, d.type, d.name)} | {
    kind: np.dtype(kind) for kind in _NUMBERS
}


def in_native(name: str, raw: Any) -> Any:
    """NumPy's array or scalar in the machine's byte order; DTypeError if Tensors lack its dtype."""
    if raw.dtype in DTYPES:
        return raw
    native = raw.dtype.newbyteorder("=")
    if native not in DTYPES:
        fix = tree.remedy(raw.item()) if raw.dtype == object and raw.size == 1 else None
        raise DTypeError(f"{name}: elements must be numbers, got dtype {raw.dtype}", fix=fix)
    return raw.astype(native)


def as_dtype(name: str, dtype: Any) -> DType:
    """A dtype of arrays from what NumPy takes for one; DTypeError names the function."""
    try:
        return _SPELLED[dtype]
    except Exception:  # another spelling, or something without a hash
        pass
    try:
        found = np.dtype(dtype) if dtype is not None else None
    except Exception:  # NumPy parses strings and calls attributes: anything may come
        found = None
    if found is None:
        raise DTypeError(f"{name}: {shown(dtype)} is no dtype")
    if found not in DTYPES:
        native = found.newbyteorder("=")
        if native not in DTYPES:
            raise DTypeError(f"{name}: arrays hold numbers and booleans, not {shown(dtype)}")
        return native
    return found


def isdtype(dtype: Any, kind: Any) -> Any:
    """Whether dtype is of a kind: a dtype, a name such as "real floating", or a tuple of them.

    Raises: DTypeError: for a kind that does not exist.
    Example:
        >>> import funct.array as xp
        >>> xp.isdtype(xp.float32, "real floating"), xp.isdtype(xp.int8, ("bool", xp.int16))
        (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise DTypeError(f"isdtype: kind must be one of {sorted(_KINDS)}, got {kind!r}")
        return as_dtype("isdtype", dtype) in _KINDS[kind]
    return as_dtype("isdtype", dtype) == as_dtype("isdtype", kind)


def result_type(*arrays_scalars_and_dtypes: Any) -> Any:
    """The dtype that the operands promote to; Python numbers adopt the others' dtype.

    Example:
        >>> import funct.array as xp
        >>> xp.result_type(xp.float32, xp.asarray([1.0])), xp.result_type(xp.float32, 1.0)
        (dtype('float64'), dtype('float32'))
        >>> xp.result_type(xp.uint8, xp.int8), xp.result_type(xp.int32, xp.float32)
        (dtype('int16'), dtype('float64'))
    """
    key: list[Any] = []
    for a in arrays_scalars_and_dtypes:
        if a.__class__ is float:
            key.append(float)
        elif isinstance(a, Value):
            key.append(a.dtype)
        else:
            return _promoted(arrays_scalars_and_dtypes)
    return _known_promotion(*key)


@functools.cache
def _known_promotion(*kinds: Any) -> DType:
    return _promoted([1.0 if k is float else k for k in kinds])


def _promoted(operands: Sequence[Any]) -> DType:
    given = [_promotable(a) for a in operands]
    if not given:
        raise ArgumentError("result_type: at least one array, number or dtype is needed")
    kinds = [a for a in given if isinstance(a, np.dtype)]
    try:
        if kinds:  # NumPy weighs numbers wrongly beside a narrow dtype
            kind = common_dtype(*kinds)
            numbers = [a for a in given if not isinstance(a, np.dtype)]
            given = [kind, *[narrow_of(a, kind) if kind in NARROW else a for a in numbers]]
        return as_dtype("result_type", np.result_type(*given))
    except TypeError:
        names = ", ".join(str(a) for a in given)
        raise DTypeError(f"result_type: {names} have no common dtype") from None


def _promotable(a: Any) -> Any:
    if isinstance(a, Value | np.ndarray | np.generic):
        return a.dtype
    # true subclasses of numbers, such as np.float64, are dealt with; these four are weak
    return a if a.__class__ in _NUMBERS else as_dtype("result_type", a)


def can_cast(from_: Any, to: Any, /) -> Any:
    """Whether a cast follows the promotion rules.

    Example:
        >>> import funct.array as xp
        >>> xp.can_cast(xp.int32, xp.float64), xp.can_cast(xp.int64, xp.int32)
        (True, False)
    """
    source = from_.dtype if isinstance(from_, Value) else as_dtype("can_cast", from_)
    return np.can_cast(source, as_dtype("can_cast", to), "safe")


class FloatLimits(Struct, frozen=True):
    """Limits of a floating dtype, as Python floats."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


def finfo(type: Any, /) -> FloatLimits:
    """Limits of a floating dtype or of an array's; those of its parts for a complex one.

    Raises: DTypeError: for another dtype.
    Example:
        >>> import funct.array as xp
        >>> xp.finfo(xp.float32).eps, xp.finfo(xp.complex128).dtype
        (1.1920928955078125e-07, dtype('float64'))
    """
    dtype = type.dtype if isinstance(type, Value) else as_dtype("finfo", type)
    return _float_limits(dtype)


@functools.cache
def _float_limits(dtype: DType) -> FloatLimits:
    if dtype not in INEXACT:
        raise DTypeError(f"finfo: dtype must be floating, got {dtype}")
    info: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return FloatLimits(
        int(info.bits), float(info.eps), float(info.max), float(info.min),
        float(info.smallest_normal), np.dtype(info.dtype),
    )  # fmt: skip


class IntegerLimits(Struct, frozen=True):
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: Any


def iinfo(type: Any, /) -> IntegerLimits:
    """Limits of an integer dtype or of an array's.

    Raises: DTypeError: for another dtype.
    Example:
        >>> import funct.array as xp
        >>> xp.iinfo(xp.int8).min, xp.iinfo(xp.uint8).max
        (-128, 255)
    """
    dtype = type.dtype if isinstance(type, Value) else as_dtype("iinfo", type)
    return _integer_limits(dtype)


@functools.cache
def _integer_limits(dtype: DType) -> IntegerLimits:
    if dtype not in _KINDS["integral"]:
        raise DTypeError(f"iinfo: dtype must be of integers, got {dtype}")
    info: Any = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    return IntegerLimits(int(info.bits), int(info.max), int(info.min), dtype)
