"""x.at[key]: elements replaced or combined in a new array, for every form of index."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array.dtypes import DTYPES, in_native
from funct.array.indexing import BASIC, entry, is_mask
from funct.core import INEXACT, Shape, Value, is_one
from funct.errors import DTypeError, ShapeError
from funct.kernels import indexing as kernels
from funct.kernels.cpu.calls import maker
from funct.ops import fast
from funct.ops.fast import wrap
from funct.ops.refusals import out_of_memory

__all__ = ["At", "make_at"]

_ENDS = frozenset({int, type(None)})
_ZERO = np.zeros(())
_MANY = 256  # elements from which on machine code may pay
_BY_FACTORS = {np.divide, np.power}  # what comes to one position is multiplied up first
_EXACT = 1 << 53  # integers below are doubles
_BOOL, _INT64, _DOUBLE = np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.float64)


class At:
    """x.at[key].set(v) and friends: a new array with the elements at key changed."""

    __slots__ = ("_key", "_x")
    _key: Any
    _x: Any

    def __init__(self, x: Any) -> None:
        self._x, self._key = x, None

    def __getitem__(self, key: Any) -> At:
        r = make_at(None)
        r._x, r._key = self._x, key
        return r

    def get(self) -> Any:
        """x[key]."""
        return self._x[self._key]

    def _positions(self) -> Any:
        """Flat positions that key selects: one mechanism for every form of index."""
        x = self._x
        return wrap(np.arange(_size(x.shape)).reshape(x.shape))[self._key]

    def _write(self, name: str, v: Any, mode: str | None, into: Any = None) -> Any:
        """v written at the positions, into x or into another array of its shape."""
        x = self._x
        known = _combined(x, x if into is None else into, self._key, v, mode)
        if known is not None:
            return wrap(known)
        base = x if into is None else into
        under = self._under_mask(name, v)
        if under is not None:
            mask, v = under
            return ops.where(mask, v if mode is None else _COMBINED[mode](base, v), base)
        at = self._positions()
        v = _fitted(name, _operand(name, v), at.shape, x.dtype)
        n = _size(x.shape)
        flat = ops.reshape(base, (n,))
        v, at = (ops.reshape(a, (_size(a.shape),)) for a in (v, at))
        out = ops.scatter(flat, v, at) if mode is None else ops.scatter_combine(flat, v, at, mode)
        return ops.reshape(out, x.shape)

    def _under_mask(self, name: str, v: Any) -> tuple[Any, Any] | None:
        """(mask, v), where key is a mask and v the same for all that it selects.

        An update is then a `where`, which needs no positions: the mask may be traced.
        """
        found = _sole_mask(self._key, self._x.shape)
        if found is None:
            return None
        mask, rest, first = found
        v = _operand(name, v)
        extra = len(v.shape) - len(rest)
        if extra > 0 and all(is_one(n) for n in v.shape[:extra]):
            v = ops.reshape(v, v.shape[extra:])
        if len(v.shape) > (len(rest) if first else 0):
            return None
        v = _fitted(name, v, rest, self._x.dtype)
        return ops.reshape(mask, (*mask.shape, *(1,) * len(rest))), v

    def _factors(self, name: str, v: Any) -> Any:
        """Ones, with v multiplied in at the positions."""
        one = _number(1, self._x.dtype)
        return self._write(name, v, "multiply", ops.broadcast_to(one, self._x.shape))

    def set(self, v: Any) -> Any:
        """Replace; of several writes to one position the last stands."""
        known = _changed(self._x, self._key, v, None)
        if known is None:
            known = _assigned(self._x, self._key, v)
        return known if known is not None else self._write("set", v, None)

    def add(self, v: Any) -> Any:
        """Add; repeated positions add up."""
        known = _changed(self._x, self._key, v, np.add)
        if known is not None:
            return known
        known = _combined(self._x, None, self._key, v, "add")
        if known is not None:
            return wrap(np.add(self._x.data, known, out=known))
        under = self._under_mask("add", v)
        if under is not None:
            return self._x + ops.where(*under, _number(0, self._x.dtype))
        x, at = self._x, self._positions()  # x + put(v): the tape keeps the positions alone
        v = _fitted("add", _operand("add", v), at.shape, x.dtype)
        n = _size(x.shape)
        v, at = (ops.reshape(a, (_size(a.shape),)) for a in (v, at))
        return x + ops.reshape(ops.put(v, at, 0, n), x.shape)

    def multiply(self, v: Any) -> Any:
        """Multiply; repeated positions multiply repeatedly."""
        known = _changed(self._x, self._key, v, np.multiply)
        return self._write("multiply", v, "multiply") if known is None else known

    def divide(self, v: Any) -> Any:
        """Divide; repeated positions divide repeatedly. x must be floating or complex."""
        if self._x.dtype not in INEXACT:
            raise DTypeError(
                f"x.at[...].divide: x must be floating or complex, got {self._x.dtype}",
                fix="use set with the floor division, or x.astype first",
            )
        known = _changed(self._x, self._key, v, np.divide)
        return self._x / self._factors("divide", v) if known is None else known

    def power(self, v: Any) -> Any:
        """Raise to the power v; at repeated positions the exponents multiply."""
        known = _changed(self._x, self._key, v, np.power)
        return self._x ** self._factors("power", v) if known is None else known

    def min(self, v: Any) -> Any:
        """The smaller of the old value and v; equal ones share the derivative."""
        known = _changed(self._x, self._key, v, np.minimum)
        return self._write("min", v, "min") if known is None else known

    def max(self, v: Any) -> Any:
        """The larger of the old value and v; equal ones share the derivative."""
        known = _changed(self._x, self._key, v, np.maximum)
        return self._write("max", v, "max") if known is None else known


make_at = maker(At)
_ONCE = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
_COMBINED = {"multiply": ops.multiply, "min": ops.minimum, "max": ops.maximum}


def _number(n: int, dtype: Any) -> Any:
    return wrap(np.asarray(n, dtype))


def _sole_mask(key: Any, shape: Shape) -> tuple[Any, Shape, bool] | None:
    """(mask, lengths of the axes behind it, whether it stands first), where key is one mask and
    else whole axes.
    """
    entries = [entry(k) for k in (key if isinstance(key, tuple) else (key,))]
    at = [n for n, k in enumerate(entries) if is_mask(k)]
    others = [k for k in entries if not is_mask(k)]
    whole = all(k is Ellipsis or (isinstance(k, slice) and k == slice(None)) for k in others)
    if len(at) != 1 or not whole or others.count(Ellipsis) > 1:
        return None
    place, mask = at[0], entries[at[0]]
    behind = len(entries) - 1 - place
    start = len(shape) - behind - len(mask.shape) if Ellipsis in entries[:place] else place
    stop = start + len(mask.shape)
    fits = start >= 0 and stop + behind - others.count(Ellipsis) <= len(shape)
    if not fits or shape[start:stop] != mask.shape:
        return None
    return mask, shape[stop:], start == 0


def _changed(x: Any, key: Any, v: Any, change: Any) -> Any:
    """x with change(x[key], v) at key, or v itself, where key selects no element twice.

    None where something is traced, is no number of x's dtype, or has another form. At other
    elements the composition computes x + 0, x · 1, x / 1 or x ** 1: only the first is not x, if x
    is -0.
    """
    if x.__class__ is not fast.Array:
        return None
    a, kind, at = x.data, key.__class__, key
    floating = a.dtype is _DOUBLE or a.dtype.kind == "f"
    if not floating and (a.dtype.kind not in "iu" or change is np.power):
        return None
    if v.__class__ is fast.Array:
        v = v.data
        if v.dtype != a.dtype or (v.ndim and kind is fast.Array and key.data.dtype is _BOOL):
            return None
    elif v.__class__ is not float if floating else v.__class__ is not int:
        if v.__class__ is not int or not -_EXACT < v < _EXACT:
            return None
        v = float(v)
    masked = listed = False
    if kind is fast.Array:
        at = key.data
        if at.dtype is _BOOL:
            masked = True
            if at.shape != a.shape:
                return None
        else:
            listed = True  # positions may repeat
            if at.dtype is not _INT64:
                return None
            if change in _BY_FACTORS or (change is not None and a.size >= _MANY):
                return None
    elif kind is slice:
        if not _is_plain(key):
            return None
    elif kind is tuple:
        for k in key:
            if k.__class__ is not int and not (k.__class__ in BASIC and _is_plain(k)):
                return None
    elif kind is not int:
        return None
    try:
        if change is None:
            out = a.copy()
            out[at] = v
        elif change is np.add and a.size < _MANY and (floating or listed):
            out = np.zeros(a.shape, a.dtype)
            out[at] = v if masked or not floating else 0.0 + v  # which is never -0
            if listed and np.count_nonzero(out) * a.shape[0] != at.size * a.size:
                out[at] = 0
                # all that comes to one position is added up first
                np.add.at(out, at, np.asarray(v, a.dtype))
            np.add(a, out, out)
        else:
            zero = floating and change is np.add
            out = np.add(a, _ZERO if a.dtype is _DOUBLE else 0.0) if zero else a.copy()
            if masked:
                out[at] = change(a[at], v)
            elif listed:
                change.at(out, at, np.asarray(v, a.dtype))  # a bare number is taken as a double
            else:
                if kind is int:
                    at = at, ...
                elif kind is tuple and Ellipsis not in at:
                    at = (*at, ...)
                part = out[at]
                change(part, v, out=part)
    except (IndexError, OverflowError, TypeError, ValueError):
        return None  # refused by name
    except MemoryError as error:
        raise out_of_memory("x.at[...]", error) from None
    r = fast.make(None)
    r.data = out
    return r


def _is_plain(k: Any) -> bool:
    """Whether a slice has Python's integers for ends; others have none."""
    if k.__class__ is not slice:
        return True
    ends = k.start.__class__, k.stop.__class__, k.step.__class__
    return ends[0] in _ENDS and ends[1] in _ENDS and ends[2] in _ENDS


def _assigned(x: Any, key: Any, v: Any) -> Any:
    """NumPy's own assignment, in a copy, where all is concrete; else, or if NumPy refuses, None."""
    if x.__class__ is fast.Array and _is_listed(x.data, key, v):
        out = _copy(x.data)
        try:
            kernels.combine_into(out, v.data, key.data, "set")
        except IndexError:
            return None
        return wrap(out)
    keys = key if isinstance(key, tuple) else (key,)
    if not (_is_known(x) and _is_known(v) and all(map(_is_key, keys))):
        return None
    raw, out = _bare(v), _copy(np.asarray(x.concrete()))
    if raw.__class__ is not float:
        if np.ndim(raw) and all(isinstance(k, int) for k in keys):
            return None  # an array for one element, which NumPy is about to refuse
        if np.iscomplexobj(raw) and out.dtype.kind != "c":
            return None
    try:
        out[tuple([_bare(k) for k in keys])] = raw
    except (IndexError, OverflowError, TypeError, ValueError):
        return None  # the general way refuses by name
    return wrap(out)


def _combined(x: Any, into: Any, key: Any, v: Any, mode: str | None) -> Any:
    """What `_write` gives, into zeros for None, by the kernel of `scatter_combine` alone.

    None where something is traced, of another dtype or a mask, or where NumPy refuses.
    """
    if mode is None or x.__class__ is not fast.Array:
        return None
    a = x.data
    if _is_listed(a, key, v):
        out = _zeros(a) if into is None else _copy(into.data)
        try:
            kernels.combine_into(out, v.data, key.data, mode)
        except IndexError:
            return None
        return out
    keys = key if key.__class__ is tuple else (key,)
    if not all(map(_is_key, keys)):
        return None
    if v.__class__ is float and a.dtype.kind == "f":
        raw = np.asarray(v, a.dtype)
    elif v.__class__ is fast.Array and v.data.dtype == a.dtype:
        raw = v.data
    else:
        return None
    bare = tuple([_bare(k) for k in keys])
    if "b" in [k.dtype.kind for k in bare if k.__class__ is np.ndarray]:
        return None
    out = _zeros(a) if into is None else _copy(into.data)
    try:
        if mode in _ONCE and BASIC.issuperset(map(type, bare)):
            part = out[bare if Ellipsis in bare else (*bare, Ellipsis)]
            _ONCE[mode](part, raw, out=part)  # no element is selected twice
            return out
        one = a.ndim == len(bare) == 1 and bare[0].__class__ is np.ndarray
        at = bare[0] if one else np.arange(a.size).reshape(a.shape)[bare]
        if raw.shape != at.shape and (raw.ndim or at.size >= _MANY):
            raw = np.broadcast_to(raw, at.shape)
        raw = raw.reshape(-1) if raw.ndim else raw
        kernels.combine_into(out.reshape(-1), raw, at.reshape(-1), mode)
    except (IndexError, TypeError, ValueError, OverflowError):
        return None
    return out


def _copy(a: Any) -> Any:
    try:
        return a.copy()
    except MemoryError as error:
        raise out_of_memory("x.at[...]", error) from None


def _zeros(a: Any) -> Any:
    try:
        return np.zeros(a.shape, a.dtype)
    except MemoryError as error:
        raise out_of_memory("x.at[...]", error) from None


def _is_listed(a: Any, key: Any, v: Any) -> bool:
    """Whether key has one position in a vector for each element of v, of a's dtype."""
    if key.__class__ is not fast.Array or v.__class__ is not fast.Array or a.ndim != 1:
        return False
    at, raw = key.data, v.data
    return at.dtype is _INT64 and raw.dtype is a.dtype and at.shape == raw.shape and at.ndim == 1


def _bare(x: Any) -> Any:
    return x.data if x.__class__ is fast.Array else x


def _is_known(x: Any) -> bool:
    if x.__class__ is fast.Array or x.__class__ is float:
        return True
    if isinstance(x, Value):
        return not x.level.transforms
    known = isinstance(x, np.generic) and x.dtype in DTYPES
    return known or isinstance(x, bool | int | float | complex)


def _is_key(k: Any) -> bool:
    if k.__class__ is int or k.__class__ is fast.Array:
        return True
    if isinstance(k, slice):
        ends = k.start, k.stop, k.step
        return _ENDS.issuperset(map(type, ends))
    return (
        k is None or k is Ellipsis or isinstance(k, int) or (isinstance(k, Value) and _is_known(k))
    )


def _operand(name: str, v: Any) -> Any:
    if isinstance(v, Value):
        return v
    try:
        raw = np.asarray(v)
    except ValueError:
        raise ShapeError(f"x.at[...].{name}: v must not be ragged, got {v!r}") from None
    return wrap(in_native(f"x.at[...].{name}", raw))


def _fitted(name: str, v: Any, shape: Shape, dtype: Any) -> Any:
    """v in x's dtype and the shape of what is selected; leading axes of length 1 are dropped."""
    extra = len(v.shape) - len(shape)
    if extra > 0 and all(is_one(n) for n in v.shape[:extra]):
        v = ops.reshape(v, v.shape[extra:])
    if v.dtype != dtype:
        v = ops.astype(v, dtype)
    if v.shape == shape:
        return v
    try:
        return ops.broadcast_to(v, shape)
    except ShapeError:
        raise ShapeError(
            f"x.at[...].{name}: v of shape {v.shape} does not broadcast to {shape}, "
            "the shape of what is selected"
        ) from None


def _size(shape: Shape) -> Any:
    n: Any = 1
    for k in shape:
        n = n * k
    return n
