"""What users give, as Tensors: `asarray`, `from_dlpack`, and operands of functions."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from funct import ops
from funct.array.device import CPU, as_device
from funct.array.direct import direct
from funct.array.dtypes import DTYPES, as_dtype, in_native, result_type
from funct.array.operands import expect_kept, number, opened
from funct.array.tensor import Array, Tensor
from funct.core import NARROW_INTEGERS, OpenNumber
from funct.device.memory import LARGE, serve
from funct.device.places import place_at
from funct.errors import (
    AllocationError,
    ArgumentError,
    DTypeError,
    ExchangeError,
    FunctError,
    RangeError,
    ShapeError,
    UnsupportedOperandError,
)
from funct.kernels import dlpack
from funct.ops.by_size import NOTED, SMALL_ONLY, arrived
from funct.ops.fast import BARE, OWN, wrap

__all__ = [
    "as_tensor", "as_tensors", "asarray", "check_allocation", "from_dlpack", "joined",
    "promoted",
]  # fmt: skip

_NUMBERS = (bool, int, float, complex)
_NUMBER = frozenset(_NUMBERS)
_LIST: frozenset[Any] = frozenset({list, tuple})
_INT64 = np.dtype(np.int64)
_DTYPE_OF: dict[Any, Any] = {kind: np.dtype(kind) for kind in BARE}
_UNNOTED = frozenset([d for d in OWN if d.itemsize != 2])  # unless arrays are large: no halves
_AXES = 64  # that NumPy's arrays have at most
_DEEP = 8  # lists in lists that are looked into
_HOST = frozenset({1, 3, 11, 13})  # DLPack's devices whose memory the host reads (`DLDeviceType`)
_REFUSALS = (AttributeError, BufferError, RuntimeError, TypeError, ValueError)  # of other libraries


def _at_once(obj: Any, dtype: Any, device: Any, copy: bool | None) -> Any:
    """NumPy's own conversion of what it takes for the same: numbers, its arrays, lists of these."""
    if device is not None or copy is False:
        return None
    c = obj.__class__
    if c is list or c is tuple:
        obj = _for_numpy(obj)
        if obj is None:
            return None
    elif c is np.ndarray:
        if obj.nbytes >= LARGE:
            return None
        if dtype is None:
            if obj.dtype in _UNNOTED:
                return obj.copy("K")
            if obj.nbytes < NOTED or not SMALL_ONLY:
                return obj.copy("K") if obj.dtype in OWN else None
    elif c not in BARE:
        return None
    data = np.array(obj) if dtype is None else np.array(obj, as_dtype("asarray", dtype))
    if data.dtype not in OWN or (c is int and dtype is None and data.dtype is not _INT64):
        return None  # refused, or another's affair
    if data.dtype in NARROW_INTEGERS:
        expect_kept(data, obj)
    if data.nbytes >= NOTED:
        arrived(data)
    return data


def _for_numpy(given: Any) -> Any:
    """A list with buffers in place of arrays; None if it holds anything unknown, or arrays of
    several dtypes, which NumPy promotes in pairs.
    """
    first = given[0].__class__ if given else float
    if first is Array:
        one, raws = given[0].data.dtype, []
        for v in given:
            if v.__class__ is not Array or v.data.dtype is not one:
                break
            raws.append(v.data)
        else:
            return raws
    elif _are_rows(given if first in _LIST else (given,)):
        return given
    dtypes: set[Any] = set()
    found = _bare_items(given, _DEEP, dtypes)
    return None if Array in dtypes and len(dtypes) > 2 else found


def _are_rows(obj: Any) -> bool:
    """Whether a list holds lists of numbers alone."""
    for row in obj:
        if row.__class__ not in _LIST:
            return False
        for v in row:
            if v.__class__ not in _NUMBER:
                return False
    return True


def _bare_items(obj: Any, deep: int, dtypes: set[Any]) -> Any:
    """A list with buffers in place of arrays; None if it holds anything unknown.

    Into dtypes go those of all that it holds, and Array if that holds one.
    """
    found: list[Any] = []
    for v in obj:
        c = v.__class__
        if c is Array or c is np.ndarray:
            if c is Array:
                dtypes.add(c)
                v = v.data
            if v.dtype not in OWN:
                return None
            dtypes.add(v.dtype)
        elif c is list or c is tuple:
            v = _bare_items(v, deep - 1, dtypes) if deep else None
            if v is None:
                return None
        elif c in _DTYPE_OF:
            dtypes.add(_DTYPE_OF[c])
        else:
            return None
        found.append(v)
    return found


@direct(_at_once, arrays=0)
def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    """Convert obj (Tensor, number, nested sequence, buffer, DLPack) to a Tensor.

    An object that stands for a Tensor, traced or not, gives it by a method `__funct_array__()`. A
    Tensor is never copied, for nobody can write into it. Other arrays and buffers are, unless
    copy is False: then the result shares their memory, and who writes into it changes the result.

    Args: dtype: of the result; None keeps the data's own, Python floats give float64.
    Raises: DTypeError: when the data is not numeric. ShapeError: when nested sequences are ragged.
    RangeError: when a Python integer does not fit. ArgumentError: when copy is False and the data
    cannot be shared.
    Example:
        >>> import funct.array as xp
        >>> xp.asarray([[1, 2], [3, 4]]).shape
        (2, 2)

    Source: Array API 2025.12 `asarray`.
    """
    if device is not None and device is not CPU:
        target = as_device("asarray", device)
        return asarray(obj, dtype=dtype, copy=copy).to_device(target)
    if dtype is not None:
        dtype = as_dtype("asarray", dtype)
    elif obj.__class__ is Array or isinstance(obj, Tensor):
        return obj
    if type(obj) in _NUMBERS and copy is not False:  # an open one says that it is of their class
        return wrap(number("asarray", obj, dtype))
    if copy is None and dtype is None and obj.__class__ is np.ndarray and obj.dtype in DTYPES:
        return wrap(_copied(obj))
    if hasattr(obj, "__funct_array__"):
        obj = opened("asarray", obj, dtype)
    if isinstance(obj, Tensor):
        return _cast_tensor(obj, obj.dtype if dtype is None else dtype, copy)
    if _lies_elsewhere(obj):
        found = from_dlpack(obj, copy=copy)
        return found if dtype is None else _cast_tensor(found, dtype, copy)
    if copy is False:
        return wrap(_shared(obj, dtype))
    if isinstance(obj, list | tuple) and _holds_tensor(obj):
        return _stacked(obj, dtype)
    if hasattr(obj, "__array__") or hasattr(obj, "__dlpack__"):
        obj = _array_of(obj)
    return wrap(_converted("asarray", obj, dtype))


def _copied(data: Any) -> Any:
    if data.nbytes >= NOTED:
        arrived(data)
    return data.copy("K")


def _lies_elsewhere(obj: Any) -> bool:
    """Whether obj is an array on a device that is not the host."""
    where = getattr(obj, "__dlpack_device__", None)
    if where is None or obj.__class__ is np.ndarray:
        return False
    try:
        return int(where()[0]) not in _HOST
    except _REFUSALS as error:
        raise ExchangeError(f"__dlpack_device__: {error}") from None


def _cast_tensor(x: Any, dtype: Any, copy: bool | None) -> Any:
    if dtype == x.dtype:
        return x
    if copy is False:
        raise ArgumentError(f"asarray: copy=False, but {x.dtype} must be cast to {dtype}")
    return ops.astype(x, dtype)


def _shared(obj: Any, dtype: Any) -> Any:
    """A view of what has a buffer."""
    try:
        given = hasattr(obj, "__array__") or hasattr(obj, "__dlpack__")
        data = _array_of(obj) if given else np.asarray(memoryview(obj))
    except (DTypeError, ExchangeError, TypeError, ValueError):
        raise ArgumentError(
            f"asarray: copy=False, but a {type(obj).__name__} has no buffer to share"
        ) from None
    found = _known("asarray", data)
    if dtype not in (None, found.dtype) or found is not data:
        to = found.dtype if dtype is None else dtype
        raise ArgumentError(f"asarray: copy=False, but {data.dtype} must be cast to {to}")
    return data.view()


def _array_of(obj: Any) -> Any:
    """The ndarray that obj gives by `__array__`, else by `__dlpack__`, as torch gives bfloat16."""
    refusal: Exception | None = None
    if hasattr(obj, "__array__"):
        try:
            return np.asarray(obj)  # not every __array__ knows the argument copy
        except FunctError:
            raise
        except _REFUSALS as error:
            refusal = error
    try:
        return dlpack.take(obj)
    except _REFUSALS as error:
        kind = ExchangeError if refusal is None else DTypeError
        text = f"asarray: a {type(obj).__name__} gives no array: {refusal or error}"
    raise kind(text)


def _converted(name: str, obj: Any, dtype: Any) -> Any:
    try:
        data = np.array(obj, dtype)
        expect_kept(data, obj)
    except OverflowError as error:
        raise RangeError(f"{name}: {error}") from None
    except MemoryError as error:
        raise AllocationError(f"{name}: {error}") from None
    except ValueError as error:
        text = f"{name}: {error}"
        if "sequence" in text:
            raise ShapeError(text) from None
        raise (DTypeError if "string" in text else ArgumentError)(text) from None
    except Exception as error:  # sequences of the user's own classes raise what they like
        raise DTypeError(f"{name}: {error}") from None
    if data.dtype.hasobject and not isinstance(obj, np.ndarray) and _all_integers(data):
        raise RangeError(f"{name}: a Python integer does not fit int64")
    return _known(name, data)


def _all_integers(data: Any) -> bool:
    return all(v.__class__ is int for v in data.flat)


def _known(name: str, data: Any) -> Any:
    """Data of a dtype that arrays have, in native byte order."""
    if data.nbytes >= NOTED:
        arrived(data)
    if data.dtype not in DTYPES:
        data = in_native(name, data)
    return data if data.__class__ is np.ndarray else np.asarray(data)


def as_tensor(name: str, x: Any, argument: str = "x") -> Any:
    """An operand as a Tensor: Tensors pass, arrays and numbers are converted, the rest refused."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, np.ndarray | np.generic):
        return wrap(_converted(name, x, None))
    if hasattr(x, "__funct_array__"):
        return x.__funct_array__()
    if x.__class__ in _NUMBERS:
        return wrap(number(name, x))
    raise UnsupportedOperandError(
        f"{name}: {argument} must be a Tensor, got {type(x).__name__}",
        fix=f"funct.array.asarray({argument})" if isinstance(x, list | tuple) else None,
    )


def as_tensors(name: str, arrays: Any) -> list[Any]:
    """The arrays of a sequence, or along the first axis of one array."""
    try:
        given = list(arrays)
    except TypeError:
        raise UnsupportedOperandError(
            f"{name}: arrays must be a sequence of Tensors, got {type(arrays).__name__}"
        ) from None
    return [a if a.__class__ is Array else asarray(a) for a in given]


def _holds_tensor(obj: Any, deep: int = _AXES) -> bool:
    if not deep:  # a list may also be in itself
        raise ShapeError(f"asarray: lists are nested deeper than the {_AXES} axes that arrays have")
    for v in obj:
        if v.__class__ in _NUMBERS:
            continue
        if isinstance(v, Tensor | OpenNumber):
            return True
        if isinstance(v, list | tuple) and _holds_tensor(v, deep - 1):
            return True
    return False


def _stacked(obj: Any, dtype: Any, deep: int = _AXES) -> Any:
    if not isinstance(obj, list | tuple):
        return asarray(obj, dtype=dtype)
    if not obj:
        return asarray([], dtype=dtype)
    if not deep:
        raise ShapeError(f"asarray: lists are nested deeper than the {_AXES} axes that arrays have")
    parts = [_stacked(v, dtype, deep - 1) for v in obj]
    if len({p.shape for p in parts}) > 1:
        raise ShapeError(f"asarray: parts must have one shape, got {[p.shape for p in parts]}")
    return joined(promoted([ops.reshape(p, (1, *p.shape)) for p in parts]), 0)


def promoted(parts: list[Any]) -> list[Any]:
    """Parts in their common dtype: promotion in pairs would depend on the order."""
    first = parts[0].dtype
    if {p.dtype for p in parts} == {first}:
        return parts
    common = result_type(*parts)
    return [p if p.dtype == common else ops.astype(p, common) for p in parts]


def joined(parts: list[Any], axis: int) -> Any:
    """Pairwise in halves: every element is copied log n times, not n; once where all is known."""
    if len(parts) == 1:
        return parts[0]
    if {p.__class__ for p in parts} == {Array}:
        with contextlib.suppress(ValueError):  # which the op explains
            return wrap(np.concatenate([p.data for p in parts], axis))
    half = len(parts) // 2
    return ops.concat(joined(parts[:half], axis), joined(parts[half:], axis), axis)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An Array of x's elements through DLPack; copied unless copy is False.

    With copy=False the result shares x's memory, and who writes into x changes the result. A
    Tensor comes back as it is.

    Raises: UnsupportedOperandError: when x has no `__dlpack__`. ExchangeError: when x's library
    cannot hand it over.
    Example:
        >>> import funct.array as xp
        >>> import numpy as np
        >>> xp.from_dlpack(np.asarray([1.0, 2.0])).tolist()
        [1.0, 2.0]

    Source: Array API 2025.12 `from_dlpack`.
    """
    if device is not None:
        target = as_device("from_dlpack", device)
        if target is CPU and copy is not False and not isinstance(x, Tensor) and _lies_elsewhere(x):
            with contextlib.suppress(*_REFUSALS):  # which go the way of our own devices
                return wrap(_known("from_dlpack", dlpack.take(x, device="cpu")))
        found = from_dlpack(x, copy=copy)
        if copy is False and found.device != target:
            raise ExchangeError(f"from_dlpack: copy=False, but x is on {found.device}")
        return found.to_device(target)
    if x.__class__ is np.ndarray and copy is not False and x.dtype in DTYPES:
        return wrap(_copied(x))  # what DLPack would give
    if isinstance(x, Tensor):
        return x
    if not hasattr(x, "__dlpack__"):
        raise UnsupportedOperandError(
            f"from_dlpack: x must have __dlpack__, got {type(x).__name__}", fix="use asarray"
        )
    if _lies_elsewhere(x):
        code, number = x.__dlpack_device__()
        place = place_at(int(code), int(number))
        if place is None:
            raise ExchangeError(f"from_dlpack: x is on DLPack's device ({int(code)}, {number})")
        data = _taken(place.take, x)
        return wrap(data if copy is False else data.copy())
    data = _taken(dlpack.take, x)
    return wrap(_known("from_dlpack", data if copy is False else data.copy("K")))


def _taken(take: Callable[[Any], Any], x: Any) -> Any:
    """take(x); what the other library refuses is an ExchangeError."""
    try:
        return take(x)
    except _REFUSALS as error:
        raise ExchangeError(f"from_dlpack: {error}") from None


def check_allocation(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    """Refuse an array that is larger than the machine's memory, before it is asked for.

    For functions whose arguments name a size, in captures too: no loop should run over so many
    elements. What broadcasting makes of arrays may be larger, where nothing has to hold it.
    """
    known = [n for n in shape if n.__class__ is int]
    size = math.prod(known, start=np.dtype(dtype).itemsize)
    if size >= LARGE:
        serve(size)
    if size > _MEMORY:
        raise AllocationError(
            f"{name}: an array of shape {shape} and dtype {np.dtype(dtype)} takes {size} bytes, "
            f"the machine has {_MEMORY}"
        )


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return 2**48


_MEMORY = _memory()
