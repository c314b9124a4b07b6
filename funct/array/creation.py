"""Chapter: creation functions, and dtypes by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import normal_shape
from funct.array.device import check_device
from funct.array.dtypes import as_dtype, result_type
from funct.array.tensor import Array, Tensor
from funct.core import Size, Value
from funct.errors import DTypeError, FunctError, ShapeError, UnsupportedOperandError
from funct.ops.families import wrap

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like",
    "linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    """Convert obj (Tensor, number, nested sequence, buffer, DLPack) to a Tensor.

    An object that stands for a Tensor, traced or not, gives it by a method `__funct_array__()`.

    Args: dtype: of the result; None keeps the data's own, Python floats give float64. copy: False
    forbids one, True forces one; NumPy arrays are copied unless copy is False.
    Raises: DTypeError: when the data is not numeric. ShapeError: when nested sequences are ragged.
    Example:
        >>> import funct.array as xp
        >>> xp.asarray([[1, 2], [3, 4]]).shape
        (2, 2)

    Source: Array API 2025.12 `asarray`.
    """
    check_device("asarray", device)
    if hasattr(obj, "__funct_array__"):
        obj = obj.__funct_array__()
    if isinstance(obj, Tensor):
        return _cast_tensor(obj, obj.dtype if dtype is None else as_dtype("asarray", dtype), copy)
    if isinstance(obj, list | tuple) and any(isinstance(v, Tensor) for v in _flat(obj)):
        return _stacked(obj, dtype)
    try:
        if isinstance(obj, np.ndarray) and copy is False:
            data = np.asarray(obj, dtype=dtype).view()
        else:
            if hasattr(obj, "__array__"):
                obj = np.asarray(obj)  # not every __array__ knows the argument copy
            data = np.array(obj, dtype=dtype, order="K")
    except ValueError as error:
        raise ShapeError(f"asarray: {error}") from None
    except TypeError as error:
        raise DTypeError(f"asarray: {error}") from None
    if data.dtype.kind not in "biufc" and data.dtype.kind != "V":
        raise DTypeError(f"asarray: elements must be numbers, got dtype {data.dtype}")
    return wrap(data if data.__class__ is np.ndarray else np.asarray(data))


def _cast_tensor(x: Any, dtype: Any, copy: bool | None) -> Any:
    if dtype == x.dtype:
        return x
    if copy is False:
        raise DTypeError(f"asarray: copy=False, but {x.dtype} must be cast to {dtype}")
    return ops.astype(x, dtype)


def _flat(obj: Any) -> list[Any]:
    return [w for v in obj for w in _flat(v)] if isinstance(obj, list | tuple) else [obj]


def _stacked(obj: Any, dtype: Any) -> Any:
    if not isinstance(obj, list | tuple):
        return asarray(obj, dtype=dtype)
    if not obj:
        return asarray([], dtype=dtype)
    parts = [_stacked(v, dtype) for v in obj]
    if len({p.shape for p in parts}) > 1:
        raise ShapeError(f"asarray: parts must have one shape, got {[p.shape for p in parts]}")
    return joined(promoted([ops.reshape(p, (1, *p.shape)) for p in parts]), 0)


def promoted(parts: list[Any]) -> list[Any]:
    """Parts in their common dtype: promotion in pairs would depend on the order."""
    if all(p.dtype == parts[0].dtype for p in parts):
        return parts
    common = result_type(*parts)
    return [p if p.dtype == common else ops.astype(p, common) for p in parts]


def joined(parts: list[Any], axis: int) -> Any:
    """Pairwise in halves: every element is copied log n times, not n."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return ops.concat(joined(parts[:half], axis), joined(parts[half:], axis), axis)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An Array of x's elements through DLPack; copied unless copy is False."""
    check_device("from_dlpack", device)
    if not hasattr(x, "__dlpack__"):
        raise UnsupportedOperandError(
            f"from_dlpack: x must have __dlpack__, got {type(x).__name__}", fix="use asarray"
        )
    data = np.from_dlpack(x)
    return wrap(data if copy is False else data.copy())


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of `shape` whose elements are all fill_value; O(1) memory until it is used."""
    return _constant("full", shape, fill_value, dtype, device)


def _constant(name: str, shape: Any, fill_value: Any, dtype: Any, device: Any) -> Any:
    check_device(name, device)
    shape = normal_shape(name, shape)
    value = fill_value if isinstance(fill_value, Value) else wrap(np.asarray(fill_value))
    if dtype is not None:
        value = ops.astype(value, as_dtype(name, dtype))
    return _spread(name, value, shape)


def lifted(x: Any, shape: Any) -> Any:
    """x, in the capture that a symbolic length of shape belongs to.

    An op on concrete arrays alone is computed at once, and would ask the length for its number.
    """
    lift = next((n.scope.lift for n in shape if isinstance(n, Size)), None)
    return lift(x) if lift is not None and x.__class__ is Array else x


def _spread(name: str, value: Any, shape: Any) -> Any:
    try:
        return ops.broadcast_to(lifted(value, shape), shape)
    except FunctError:
        raise
    except ValueError as error:
        raise ShapeError(f"{name}: {error}") from None


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros of `shape`, float64 by default."""
    return _constant("zeros", shape, 0.0, np.float64 if dtype is None else dtype, device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones of `shape`, float64 by default."""
    return _constant("ones", shape, 1.0, np.float64 if dtype is None else dtype, device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros of `shape`, float64 by default: an immutable array has no use for left-over bytes."""
    return _constant("empty", shape, 0.0, np.float64 if dtype is None else dtype, device)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """fill_value with x's shape and, unless given, dtype."""
    return _like("full_like", x, fill_value, dtype, device)


def _like(name: str, x: Any, fill_value: Any, dtype: Any, device: Any) -> Any:
    return _constant(name, x.shape, fill_value, x.dtype if dtype is None else dtype, device)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros with x's shape and, unless given, dtype."""
    return _like("zeros_like", x, 0, dtype, device)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones with x's shape and, unless given, dtype."""
    return _like("ones_like", x, 1, dtype, device)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros with x's shape and, unless given, dtype."""
    return _like("empty_like", x, 0, dtype, device)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Any:
    """start, start + step, … before stop; one argument is stop."""
    check_device("arange", device)
    low, high = (0, start) if stop is None else (start, stop)
    return wrap(np.arange(low, high, step, dtype=dtype))


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Any:
    """num evenly spaced values from start to stop."""
    check_device("linspace", device)
    return wrap(np.linspace(start, stop, num, dtype=dtype, endpoint=endpoint))


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Any:
    """Ones on the k-th diagonal, zeros elsewhere."""
    check_device("eye", device)
    return wrap(np.eye(n_rows, n_cols, k=k, dtype=np.float64 if dtype is None else dtype))


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Any, ...]:
    """Coordinate arrays from coordinate vectors; "xy" exchanges the first two axes."""
    n = len(arrays)
    out = []
    for k, a in enumerate(arrays):
        if len(a.shape) != 1:
            raise ShapeError(f"meshgrid: arrays must be 1-D, got shape {a.shape}")
        axis = 1 - k if indexing == "xy" and n > 1 and k < 2 else k
        shape = tuple([a.shape[0] if i == axis else 1 for i in range(n)])
        out.append(ops.reshape(a, shape))
    common = ops.families.broadcast_shapes(*[a.shape for a in out])
    return tuple([ops.broadcast_to(a, common) for a in out])


def _triangle(x: Any, k: int, lower: bool) -> Any:
    if len(x.shape) < 2:
        name = "tril" if lower else "triu"
        raise ShapeError(f"{name}: x must have at least 2 axes, got shape {x.shape}")
    rows, columns = np.ogrid[: int(x.shape[-2]), : int(x.shape[-1])]
    keep = columns - rows <= k if lower else columns - rows >= k
    return ops.where(wrap(keep), x, ops.astype(wrap(np.asarray(0)), x.dtype))


def tril(x: Any, /, *, k: int = 0) -> Any:
    """x with zeros above the k-th diagonal."""
    return _triangle(x, k, True)


def triu(x: Any, /, *, k: int = 0) -> Any:
    """x with zeros below the k-th diagonal."""
    return _triangle(x, k, False)
