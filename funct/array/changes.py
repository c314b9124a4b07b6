"""Updates of concrete arrays by NumPy and by kernels: the short way of `updates.py`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funct import ops
from funct.array import reading
from funct.array.dtypes import DTYPES, in_native
from funct.array.keys import MASK, POSITIONS, VIEW, selection
from funct.array.operands import number, opened
from funct.core import INEXACT, NARROW, NARROW_INTEGERS, OpenNumber, Value
from funct.errors import DTypeError, ShapeError
from funct.kernels.elementwise.functions import power
from funct.kernels.indexing import combining as kernels
from funct.kernels.indexing.masks import combined_under, filled_under, replaced
from funct.kernels.quiet import quiet
from funct.ops import fast
from funct.ops.fast import wrap
from funct.ops.refusals import out_of_memory

__all__ = ["cast", "changed", "operand"]

ndarray = np.ndarray
_divide = np.divide
_MANY = 256  # elements from which on machine code may pay
_EXACT = 1 << 53  # integers below are doubles
_BY_ONE = 4  # positions
_AXES = 3  # with positions each, which have no call prepared
_OPERATORS = {np.add: operator.add, np.multiply: operator.mul}
_BOOL, _INT64 = np.dtype(bool), np.dtype(np.int64)
_OWN = {np.dtype(np.float64): float, np.dtype(np.complex128): complex}  # what numbers become
_INEXACT = INEXACT - NARROW
_NUMBERS: dict[str, tuple[type, ...]] = {
    "b": (bool,), "i": (int,), "u": (int,), "f": (float,), "c": (float, complex),
}  # fmt: skip
_QUICK = frozenset([np.dtype(c).num for c in "bBhHiIlLqQfd"])  # that NumPy's ufuncs are quick at
_MODES = {None: "set", np.add: "add", np.multiply: "multiply", np.minimum: "min", np.maximum: "max"}


def changed(x: Any, key: Any, name: str, v: Any, change: Any) -> Any:
    """x with change(x[key], v) at key, or v itself, by NumPy; None where something is traced, where
    NumPy refuses, or where it gives other bits than the composition.

    At other elements that computes x, x · 1, x / 1 or x ** 1: only a complex x / 1 is not x, whose
    parts are sums with products by 0.
    """
    array = fast.Array
    if x.__class__ is not array:
        return None
    a, c, kind = x.data, key.__class__, v.__class__
    positions = c is array
    if positions or kind is array or kind is float:
        at, w, out = key.data if positions else key, v.data if kind is array else v, None
        try:
            if (kind is array or kind is float) and (mode := _MODES.get(change)) is not None:
                several = c is tuple and len(key) >= _AXES and [*map(type, key)].count(array)
                if not several:
                    out = kernels.few_combined.call(a, w, at, mode)
                if out is None and c is tuple and several < _AXES:
                    each = [*map(type, key)]
                    if array in each:
                        bare = [k.data if t is array else k for k, t in zip(key, each)]
                        out = kernels.few_places.call(a, w, mode, *bare)
            if out is None and positions:
                out = _at_array(a, w, at, change)
        except (IndexError, ValueError):
            return None  # refused by name
        except MemoryError as error:
            raise out_of_memory("x.at[...]", error) from None
        if out is not None:
            r = fast.make(None)
            r.data = out
            return r
    d = a.dtype
    taken, left = _KNOWN[d]
    if change in left:
        return None
    viewed = c is int or c is slice
    if not viewed:
        key = reading.bare(key)
        if key is NotImplemented:
            return None
    c = v.__class__
    if c is array and v.data.dtype is d:
        v = v.data
    elif c not in taken and not (change is None and c is list and taken.issuperset(map(type, v))):
        v = _of_kind(name, v, d)
        if v is None:
            return None
    try:
        single = v.__class__ is ndarray and v.size == 1 and key.__class__ is not ndarray
        if single and v.ndim and selection(key) is VIEW and v.ndim > a[key].ndim:
            return None  # axes of length 1 are dropped by others
        if change is None:
            each = key[0] if key.__class__ is tuple and key else key
            many = each.__class__ is ndarray and each.size >= _MANY
            out = _set_by_kernel(a, v, key) if many else None
            if out is None:
                out = a.copy()
                if many and v.__class__ is key.__class__ is ndarray:
                    _write_many(out, key, v)
                else:
                    out[key] = v
        else:
            kind = VIEW if viewed else selection(key)
            if kind is POSITIONS:
                out = _scattered(a, key, v, change)
            else:
                out = _seen(a, key, v, change, kind is MASK)
    except (IndexError, OverflowError, TypeError, ValueError):
        return None  # refused by name
    except MemoryError as error:
        raise out_of_memory("x.at[...]", error) from None
    r = fast.make(None)
    r.data = out
    return r


def _at_array(a: Any, v: Any, at: Any, change: Any) -> Any:
    """a changed at an array, for a bare array or a number of its dtype; None for all else."""
    kind = v.__class__
    if kind is ndarray and change in _MODES and (change is not None or at.size >= _MANY):
        combined = kernels.combined_each if a.ndim == 1 else kernels.combined_rows
        return combined(a, v, at, _MODES[change])
    if change is None and kind is ndarray and at.dtype is _INT64:
        if v.dtype is a.dtype and v.size > 1:
            out = a.copy()
            out[at] = v
            return out
    elif change is None and kind is float and at.dtype is _BOOL and a.size >= _MANY:
        return replaced(a, v, at) if at.shape == a.shape and a.dtype.kind == "f" else None
    elif (
        change is not None and at.dtype is _INT64 and kind is _OWN.get(a.dtype)
        and change not in _KNOWN[a.dtype][1]
    ):  # fmt: skip
        return _scattered(a, at, v, change)
    return None


def _set_by_kernel(a: Any, v: Any, key: Any) -> Any:
    """a with v at an array of positions, or one for each axis, or a number under a mask; None where
    there is no code.
    """
    if key.__class__ is tuple or key.dtype.kind != "b":
        return kernels.combined_at(a, v, key, "set")
    if v.__class__ is list:
        return None
    if v.__class__ is ndarray and v.size != 1:
        return filled_under(a, v, key)
    if key.shape != a.shape or (v.__class__ is ndarray and v.ndim):
        return combined_under(a, v, key, "set")
    return replaced(a, v, key)


def _seen(a: Any, key: Any, v: Any, change: Any, masked: bool) -> Any:
    """`changed` of elements that are selected once each."""
    if change is _divide and a.dtype.kind == "c":
        return _by_factors(a, key, v, change)
    if masked and key.__class__ is ndarray and a.size >= _MANY and change in _MODES:
        made = combined_under(a, v, key, _MODES[change])
        if made is not None:
            return made
    out = a.copy()
    whole = masked and key.__class__ is ndarray and key.shape == a.shape
    if whole and a.size >= _MANY and v.__class__ is not ndarray:
        changed = quiet().run(change, out, v)  # where nothing is selected too
        return ops.where(wrap(key), wrap(changed), wrap(out)).data
    part = out[key]
    if part.base is out:
        change(part, v, out=part)
    else:
        out[key] = change(part, v)
    return out


def _is_left(change: Any, dtype: Any) -> bool:
    """Whether a change of elements of a dtype is left to the composition."""
    kind = dtype.kind
    return dtype in NARROW or (
        change in (power, np.minimum, np.maximum)
        if kind == "c"
        else kind != "f" and (kind == "b" or change is power or change is _divide)
    )


# For each dtype Python's numbers that it takes as they are, and the changes that are left.
_CHANGES = (np.add, np.multiply, np.divide, np.minimum, np.maximum, power)
_KNOWN = {
    d: (
        frozenset([] if d in NARROW else _NUMBERS[d.kind]),
        frozenset([c for c in _CHANGES if _is_left(c, d)]),
    )
    for d in DTYPES | NARROW
}


def _of_kind(name: str, v: Any, dtype: Any) -> Any:
    """v as a number that dtype takes as it is, or a bare array of that; None where it is traced."""
    c = v.__class__
    if dtype in _INEXACT:
        if c is np.float64:
            return float(v)
        if c is int and -_EXACT < v < _EXACT:
            return float(v)
    if c is not fast.Array:
        v = operand(name, v, dtype)
        if v.__class__ is not fast.Array:
            return None
    return v.data if v.data.dtype == dtype else cast(name, v, dtype).data


def _by_factors(a: Any, at: Any, v: Any, change: Any) -> Any:
    """change(a, f): f is 1, with all that comes to one position multiplied up."""
    f = kernels.combined_at(a, v, at, "factors")
    if f is None:
        f = a.copy()
        f.fill(1)
        if selection(at) is POSITIONS:
            _combine(f, at, v, np.multiply)
        else:
            f[at] = np.multiply(f[at], v)
    return change(a, f, f)


def _write_many(out: Any, at: Any, v: Any) -> None:
    """v written into out at an array of positions or under a mask."""
    if out.ndim == 1 and v.shape == at.shape and at.dtype.kind != "b":
        kernels.combine_into(out, v, at, "set")
    else:
        out[at] = v


def _scattered(a: Any, at: Any, v: Any, change: Any) -> Any:
    """`changed` where positions may repeat."""
    if change is _divide or change is power:
        return _by_factors(a, at, v, change)
    mode = _MODES[change]
    several = at.__class__ is tuple and len(at) > 1
    if several and at[0].__class__ is slice:
        out = kernels.combined_along(a, v, at, mode)
    elif several and at[1].__class__ is slice:
        out = kernels.combined_within(a, v, at, mode)
    else:
        out = kernels.combined_at(a, v, at, mode)
    if out is None:
        out = a.copy()
        _combine(out, at, v, change)
    return out


def _combine(out: Any, at: Any, v: Any, change: Any) -> None:
    """change(out[at], v) written into out, one position after the other."""
    if v.__class__ is not _OWN.get(out.dtype):
        v = np.asarray(v, out.dtype)  # a bare number would be taken as a double
    if out.size < _MANY and (out.dtype.num in _QUICK or at.__class__ is tuple):
        one = _OPERATORS.get(change)
        few = at.__class__ is ndarray and at.ndim == 1 == out.ndim and at.size <= _BY_ONE
        if few and one is not None and (v.__class__ is not ndarray or not v.ndim):
            v = v[()] if v.__class__ is ndarray else v
            for k in at.tolist():  # NumPy takes as long before it begins
                out[k] = one(out[k], v)
            return
        several = v.__class__ is ndarray and v.ndim and out.ndim == 1
        if several and (at.__class__ is not ndarray or v.shape != at.shape):
            v = np.broadcast_to(v, out[at].shape)  # NumPy would read on behind v's end
        change.at(out, at, v)
        return
    v, rows = np.asarray(v), kernels.leading(at, out.shape)
    if rows is not None:
        out, at = out.reshape(-1, *out.shape[len(at) :]), rows
    if out.ndim > 1 and at.__class__ is ndarray and at.dtype.kind != "b":
        kernels.combine_rows_into(out, v, at, _MODES[change])
        return
    if out.ndim > 1 or at.__class__ is not ndarray:
        at = np.arange(out.size).reshape(out.shape)[at]
    if v.shape != at.shape and (v.ndim or at.size >= _MANY):
        v = np.broadcast_to(v, at.shape)
    v = v.reshape(-1) if v.ndim else v
    kernels.combine_into(out.reshape(-1), v, at.reshape(-1), _MODES[change])


def operand(name: str, v: Any, dtype: Any) -> Any:
    """v as an operand of ops on an array of that dtype, which integers in v must fit.

    Raises: ShapeError, DTypeError: if it is ragged, or no number.
    """
    name = f"x.at[...].{name}"
    if isinstance(v, Value):
        return v
    if type(v) is OpenNumber:
        return opened(name, v, dtype)
    if v.__class__ is int:
        return wrap(number(name, v, dtype))
    try:
        raw = np.asarray(v)
    except ValueError:
        raise ShapeError(f"{name}: v must not be ragged, got {v!r}") from None
    integer = dtype.kind in "iu" or dtype in NARROW_INTEGERS
    if isinstance(v, list | tuple) and integer and _are_real(raw):
        raw = number(name, v, dtype)
    return wrap(in_native(name, raw))


def _are_real(raw: Any) -> bool:
    """Whether NumPy found real numbers alone, among them integers of more than 64 bits."""
    kind = raw.dtype.kind
    return kind in "iuf" or (kind == "O" and {int, float}.issuperset(map(type, raw.flat)))


def cast(name: str, v: Any, dtype: Any) -> Any:
    """v in a dtype. Raises: DTypeError: for complex numbers in a real one."""
    if v.dtype.kind == "c" and dtype.kind not in "cb":
        raise DTypeError(f"x.at[...].{name}: v must be real, as x of {dtype} is, got {v.dtype}")
    return ops.astype(v, dtype)
