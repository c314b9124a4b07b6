"""x.at[key]: elements replaced or combined in a new array, for every form of index."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funct import ops
from funct.array import reading
from funct.array.dtypes import DTYPES, in_native
from funct.array.indexing import entry, is_mask, width
from funct.array.keys import MASK, POSITIONS, VIEW, selection
from funct.core import INEXACT, NARROW, Shape, Value, is_one
from funct.errors import DTypeError, ShapeError
from funct.kernels import indexing as kernels
from funct.kernels.cpu.calls import maker
from funct.kernels.elementwise import power
from funct.kernels.quiet import quiet
from funct.ops import fast
from funct.ops.fast import wrap
from funct.ops.refusals import out_of_memory
from funct.source import known_as

__all__ = ["At", "make_at"]

ndarray = np.ndarray
_divide = np.divide
_MANY = 256  # elements from which on machine code may pay
_EXACT = 1 << 53  # integers below are doubles
_BY_ONE = 4  # positions
_OPERATORS = {np.add: operator.add, np.multiply: operator.mul}
_BOOL, _INT64 = np.dtype(bool), np.dtype(np.int64)
_OWN = {np.dtype(np.float64): float, np.dtype(np.complex128): complex}  # what numbers become
_INEXACT = INEXACT - NARROW
_NUMBERS: dict[str, tuple[type, ...]] = {
    "b": (bool,), "i": (int,), "u": (int,), "f": (float,), "c": (float, complex),
}  # fmt: skip


class At:
    """x.at[key].set(v) and friends: a new array with the elements at key changed.

    Raises: IndexOutOfBoundsError: for an index outside of x. UnsupportedOperandError: for a key
    that is no index. DTypeError: for a v that is no number, or a complex one in a real x.
    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([1.0, 2.0, 3.0])
        >>> x.at[0].set(9.0).tolist(), x.at[[1, 1]].add(10.0).tolist(), x.tolist()
        ([9.0, 2.0, 3.0], [1.0, 22.0, 3.0], [1.0, 2.0, 3.0])
    """

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
        """x[key].

        Example:
            >>> import funct.array as xp
            >>> xp.asarray([1.0, 2.0, 3.0]).at[1:].get().tolist()
            [2.0, 3.0]
        """
        return self._x[self._key]

    def _positions(self) -> tuple[Any, int]:
        """Positions that key selects along the first axes of x, as one, and how many axes that are:
        one mechanism for every form of index. Behind those, whole rows are selected.
        """
        shape = self._x.shape
        key, lead = _leading(self._key, len(shape))
        return wrap(np.arange(_size(shape[:lead])).reshape(shape[:lead]))[key], lead

    def _write(self, name: str, v: Any, mode: str | None, into: Any = None) -> Any:
        """v written at the positions, into x or into another array of its shape."""
        x = self._x
        base = x if into is None else into
        under = self._under_mask(name, v)
        if under is not None:
            mask, v = under
            return ops.where(mask, v if mode is None else _COMBINED[mode](base, v), base)
        at, lead = self._positions()
        row = x.shape[lead:]
        v = _fitted(name, _operand(name, v), (*at.shape, *row), x.dtype)
        flat, many = ops.reshape(base, (_size(x.shape[:lead]), *row)), _size(at.shape)
        v, at = ops.reshape(v, (many, *row)), ops.reshape(at, (many,))
        if mode is None:
            out = ops.scatter(flat, v, at)
        elif mode == "add":
            out = ops.scatter_add(flat, v, at)
        else:
            out = ops.scatter_combine(flat, v, at, mode)
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
        """Replace; of several writes to one position the last stands.

        Example:
            >>> import funct.array as xp
            >>> xp.zeros((2, 2)).at[:, 0].set(xp.asarray([1.0, 2.0])).tolist()
            [[1.0, 0.0], [2.0, 0.0]]
        """
        known = _changed(self, "set", v, None)
        return self._write("set", v, None) if known is None else known

    def add(self, v: Any) -> Any:
        """Add; repeated positions add up, one after the other.

        Example:
            >>> import funct.array as xp
            >>> xp.zeros(3).at[xp.asarray([0, 0, 2])].add(1.0).tolist()
            [2.0, 0.0, 1.0]
        """
        known = _changed(self, "add", v, np.add)
        return self._write("add", v, "add") if known is None else known

    def multiply(self, v: Any) -> Any:
        """Multiply; repeated positions multiply repeatedly.

        Example:
            >>> import funct.array as xp
            >>> xp.asarray([1.0, 2.0, 3.0]).at[[1, 1]].multiply(10.0).tolist()
            [1.0, 200.0, 3.0]
        """
        known = _changed(self, "multiply", v, np.multiply)
        return self._write("multiply", v, "multiply") if known is None else known

    def divide(self, v: Any) -> Any:
        """Divide; repeated positions divide repeatedly. x must be floating or complex.

        Example:
            >>> import funct.array as xp
            >>> xp.asarray([1.0, 2.0, 3.0]).at[1:].divide(2.0).tolist()
            [1.0, 1.0, 1.5]
        """
        known = _changed(self, "divide", v, np.divide)
        if known is not None:
            return known
        if self._x.dtype not in INEXACT:
            raise DTypeError(
                f"x.at[...].divide: x must be floating or complex, got {self._x.dtype}",
                fix="use set with the floor division, or x.astype first",
            )
        return self._x / self._factors("divide", v)

    def power(self, v: Any) -> Any:
        """Raise to the power v; at repeated positions the exponents multiply.

        Example:
            >>> import funct.array as xp
            >>> xp.asarray([1.0, 2.0, 3.0]).at[1:].power(2.0).tolist()
            [1.0, 4.0, 9.0]
        """
        known = _changed(self, "power", v, power)
        return self._x ** self._factors("power", v) if known is None else known

    def min(self, v: Any) -> Any:
        """The smaller of the old value and v; equal ones share the derivative.

        Example:
            >>> import funct.array as xp
            >>> xp.asarray([5.0, 5.0]).at[xp.asarray([0, 0])].min(xp.asarray([3.0, 4.0])).tolist()
            [3.0, 5.0]
        """
        known = _changed(self, "min", v, np.minimum)
        return self._write("min", v, "min") if known is None else known

    def max(self, v: Any) -> Any:
        """The larger of the old value and v; equal ones share the derivative.

        Example:
            >>> import funct.array as xp
            >>> xp.asarray([5.0, 5.0]).at[xp.asarray([0, 0])].max(xp.asarray([6.0, 7.0])).tolist()
            [7.0, 5.0]
        """
        known = _changed(self, "max", v, np.maximum)
        return self._write("max", v, "max") if known is None else known


for _name in ("set", "add", "multiply", "divide", "power", "min", "max"):
    known_as(getattr(At, _name), f"x.at[...].{_name}")
make_at = maker(At)
_MODES = {None: "set", np.add: "add", np.multiply: "multiply", np.minimum: "min", np.maximum: "max"}
_COMBINED = {"add": ops.add, "multiply": ops.multiply, "min": ops.minimum, "max": ops.maximum}


def _number(n: int, dtype: Any) -> Any:
    return wrap(np.asarray(n, dtype))


def _leading(key: Any, rank: int) -> tuple[Any, int]:
    """The key without the whole axes at its end, and how many axes it is then about; it selects
    rows of the others. A key that is to be refused stays as it is.
    """
    entries = [entry(k) for k in (key if isinstance(key, tuple) else (key,))]
    left, whole, open_end = list(entries), 0, False
    while left and (left[-1] is Ellipsis or _is_whole(left[-1])):
        if left.pop() is Ellipsis:
            open_end = True
        else:
            whole += 1
    used, spread = sum(map(width, left)), any(k is Ellipsis for k in left)
    if used + whole > rank or not rank or (spread and open_end):
        return key, rank
    if spread:
        return tuple(left), rank - whole
    return (tuple(left), used) if used else ((*left, slice(None)), 1)


def _is_whole(k: Any) -> bool:
    return isinstance(k, slice) and k.start is None and k.stop is None and k.step is None


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


def _changed(at: At, name: str, v: Any, change: Any) -> Any:
    """x with change(x[key], v) at key, or v itself, by NumPy; None where something is traced, where
    NumPy refuses, or where it gives other bits than the composition.

    At other elements that computes x, x · 1, x / 1 or x ** 1: only a complex x / 1 is not x, whose
    parts are sums with products by 0.
    """
    x, key, array = at._x, at._key, fast.Array
    if x.__class__ is not array:
        return None
    a, c = x.data, key.__class__
    if c is array:
        out, at_key, kind = None, key.data, v.__class__
        try:
            if kind is array and change in _MODES and (change is not None or at_key.size >= _MANY):
                combined = kernels.combined_each if a.ndim == 1 else kernels.combined_rows
                out = combined(a, v.data, at_key, _MODES[change])
            elif (
                change is None and kind is float and at_key.dtype is _BOOL and a.size >= _MANY
                and at_key.shape == a.shape and a.dtype.kind == "f"
            ):  # fmt: skip
                out = kernels.replaced(a, np.asarray(v, a.dtype), at_key)
            elif (
                change is not None and at_key.dtype is _INT64 and kind is _OWN.get(a.dtype)
                and change not in _KNOWN[a.dtype][1]
            ):  # fmt: skip
                out = _scattered(a, at_key, v, change)
        except IndexError:
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
            many = key.__class__ is ndarray and key.size >= _MANY
            out = _set_by_kernel(a, v, key) if many else None
            if out is None:
                out = a.copy()
                if many and v.__class__ is ndarray:
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


def _set_by_kernel(a: Any, v: Any, key: Any) -> Any:
    """a with v at an array of positions, or a number under a mask; None where there is no code."""
    if key.dtype.kind != "b":
        return kernels.combined_at(a, v, key, "set")
    if key.shape != a.shape or (v.__class__ is ndarray and v.ndim) or v.__class__ is list:
        return None
    return kernels.replaced(a, np.asarray(v, a.dtype), key)


def _seen(a: Any, key: Any, v: Any, change: Any, masked: bool) -> Any:
    """`_changed` of elements that are selected once each."""
    if change is _divide and a.dtype.kind == "c":
        return _by_factors(a, key, v, change)
    out = a.copy()
    if masked and a.size >= _MANY and v.__class__ is not ndarray and key.shape == a.shape:
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
        v = _operand(name, v)
        if v.__class__ is not fast.Array:
            return None
    return v.data if v.data.dtype == dtype else _cast(name, v, dtype).data


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
    """`_changed` where positions may repeat."""
    if change is _divide or change is power:
        return _by_factors(a, at, v, change)
    out = kernels.combined_at(a, v, at, _MODES[change])
    if out is None:
        out = a.copy()
        _combine(out, at, v, change)
    return out


def _combine(out: Any, at: Any, v: Any, change: Any) -> None:
    """change(out[at], v) written into out, one position after the other."""
    if v.__class__ is not _OWN.get(out.dtype):
        v = np.asarray(v, out.dtype)  # a bare number would be taken as a double
    if out.size < _MANY:
        one = _OPERATORS.get(change)
        few = at.__class__ is ndarray and at.ndim == 1 == out.ndim and at.size <= _BY_ONE
        if few and one is not None and (v.__class__ is not ndarray or not v.ndim):
            v = v[()] if v.__class__ is ndarray else v
            for k in at.tolist():  # NumPy takes as long before it begins
                out[k] = one(out[k], v)
        else:
            change.at(out, at, v)
        return
    v = np.asarray(v)
    if out.ndim > 1 and at.__class__ is ndarray and at.dtype.kind != "b":
        kernels.combine_rows_into(out, v, at, _MODES[change])
        return
    if out.ndim > 1 or at.__class__ is not ndarray:
        at = np.arange(out.size).reshape(out.shape)[at]
    if v.shape != at.shape and (v.ndim or at.size >= _MANY):
        v = np.broadcast_to(v, at.shape)
    v = v.reshape(-1) if v.ndim else v
    kernels.combine_into(out.reshape(-1), v, at.reshape(-1), _MODES[change])


def _operand(name: str, v: Any) -> Any:
    if isinstance(v, Value):
        return v
    try:
        raw = np.asarray(v)
    except ValueError:
        raise ShapeError(f"x.at[...].{name}: v must not be ragged, got {v!r}") from None
    return wrap(in_native(f"x.at[...].{name}", raw))


def _cast(name: str, v: Any, dtype: Any) -> Any:
    if v.dtype.kind == "c" and dtype.kind not in "cb":
        raise DTypeError(f"x.at[...].{name}: v must be real, as x of {dtype} is, got {v.dtype}")
    return ops.astype(v, dtype)


def _fitted(name: str, v: Any, shape: Shape, dtype: Any) -> Any:
    """v in x's dtype and the shape of what is selected; leading axes of length 1 are dropped."""
    extra = len(v.shape) - len(shape)
    if extra > 0 and all(is_one(n) for n in v.shape[:extra]):
        v = ops.reshape(v, v.shape[extra:])
    if v.dtype != dtype:
        v = _cast(name, v, dtype)
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
