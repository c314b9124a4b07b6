"""x.at[key]: elements replaced or combined in a new array, for every form of index."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from funct import ops
from funct.array.changes import cast, changed, operand
from funct.array.indexing import entry, is_index, is_mask, is_of_rows, places, width
from funct.core import INEXACT, Shape, is_one
from funct.errors import DTypeError, ShapeError
from funct.kernels.cpu.calls import maker
from funct.kernels.elementwise.functions import power
from funct.ops.fast import wrap
from funct.source import known_as

__all__ = ["At", "make_at"]


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
        arrays = [k for k in key if is_index(k)] if isinstance(key, tuple) else []
        if arrays and len(arrays) == lead == len(key):
            return places(list(shape[:lead]), arrays), lead
        plain = key if isinstance(key, tuple) else (key,)
        if all(_is_plain(k) for k in plain):
            return _stepped([int(n) for n in shape[:lead]], plain), lead
        return wrap(np.arange(_size(shape[:lead])).reshape(shape[:lead]))[key], lead

    def _write(self, name: str, v: Any, mode: str | None, into: Any = None) -> Any:
        """v written at the positions, into x or into another array of its shape."""
        x = self._x
        base = x if into is None else into
        if is_of_rows(self._key, x.shape):
            at = self._key
            v = _fitted(name, operand(name, v, x.dtype), (*at.shape, *x.shape[1:]), x.dtype)
            return _scattered(base, v, at, mode)
        under = self._under_mask(name, v)
        if under is not None:
            mask, v = under
            return ops.where(mask, v if mode is None else _COMBINED[mode](base, v), base)
        at, lead = self._positions()
        row = x.shape[lead:]
        v = _fitted(name, operand(name, v, x.dtype), (*at.shape, *row), x.dtype)
        flat, many = ops.reshape(base, (_size(x.shape[:lead]), *row)), _size(at.shape)
        v, at = ops.reshape(v, (many, *row)), ops.reshape(at, (many,))
        return ops.reshape(_scattered(flat, v, at, mode), x.shape)

    def _under_mask(self, name: str, v: Any) -> tuple[Any, Any] | None:
        """(mask, v), where key is a mask and v the same for all that it selects.

        An update is then a `where`, which needs no positions: the mask may be traced.
        """
        found = _sole_mask(self._key, self._x.shape)
        if found is None:
            return None
        mask, rest, first = found
        v = operand(name, v, self._x.dtype)
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
        known = changed(self._x, self._key, "set", v, None)
        return self._write("set", v, None) if known is None else known

    def add(self, v: Any) -> Any:
        """Add; repeated positions add up, one after the other.

        Example:
            >>> import funct.array as xp
            >>> xp.zeros(3).at[xp.asarray([0, 0, 2])].add(1.0).tolist()
            [2.0, 0.0, 1.0]
        """
        known = changed(self._x, self._key, "add", v, np.add)
        return self._write("add", v, "add") if known is None else known

    def multiply(self, v: Any) -> Any:
        """Multiply; repeated positions multiply repeatedly.

        Example:
            >>> import funct.array as xp
            >>> xp.asarray([1.0, 2.0, 3.0]).at[[1, 1]].multiply(10.0).tolist()
            [1.0, 200.0, 3.0]
        """
        known = changed(self._x, self._key, "multiply", v, np.multiply)
        return self._write("multiply", v, "multiply") if known is None else known

    def divide(self, v: Any) -> Any:
        """Divide; repeated positions divide repeatedly. x must be floating or complex.

        Example:
            >>> import funct.array as xp
            >>> xp.asarray([1.0, 2.0, 3.0]).at[1:].divide(2.0).tolist()
            [1.0, 1.0, 1.5]
        """
        known = changed(self._x, self._key, "divide", v, np.divide)
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
        known = changed(self._x, self._key, "power", v, power)
        return self._x ** self._factors("power", v) if known is None else known

    def min(self, v: Any) -> Any:
        """The smaller of the old value and v; equal ones share the derivative.

        Example:
            >>> import funct.array as xp
            >>> xp.asarray([5.0, 5.0]).at[xp.asarray([0, 0])].min(xp.asarray([3.0, 4.0])).tolist()
            [3.0, 5.0]
        """
        known = changed(self._x, self._key, "min", v, np.minimum)
        return self._write("min", v, "min") if known is None else known

    def max(self, v: Any) -> Any:
        """The larger of the old value and v; equal ones share the derivative.

        Example:
            >>> import funct.array as xp
            >>> xp.asarray([5.0, 5.0]).at[xp.asarray([0, 0])].max(xp.asarray([6.0, 7.0])).tolist()
            [7.0, 5.0]
        """
        known = changed(self._x, self._key, "max", v, np.maximum)
        return self._write("max", v, "max") if known is None else known


for _name in ("set", "add", "multiply", "divide", "power", "min", "max"):
    known_as(getattr(At, _name), f"x.at[...].{_name}")


make_at = maker(At)
_COMBINED = {"add": ops.add, "multiply": ops.multiply, "min": ops.minimum, "max": ops.maximum}


def _scattered(x: Any, v: Any, at: Any, mode: str | None) -> Any:
    """x with rows v written at positions of its first axis."""
    if mode is None:
        return ops.scatter(x, v, at)
    return ops.scatter_add(x, v, at) if mode == "add" else ops.scatter_combine(x, v, at, mode)


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


def _is_plain(k: Any) -> bool:
    """Whether an entry of a key is a number, a slice of numbers, or opens axes."""
    if k.__class__ is slice:
        return {k.start.__class__, k.stop.__class__, k.step.__class__} <= {int, type(None)}
    return k is None or k is Ellipsis or k.__class__ is int


def _stepped(shape: list[int], key: tuple[Any, ...]) -> Any:
    """Positions that a key of numbers and slices selects: from where its view would begin and how
    that would step. A view of all positions would be as long as x, for as long as it is kept.
    """
    nothing = np.zeros(1, np.int8)
    _ = wrap(np.broadcast_to(nothing[0], shape))[key]  # refuses what is no index
    steps = [_size(shape[k + 1 :]) for k in range(len(shape))]
    key = key if Ellipsis in key else (*key, Ellipsis)  # a view for numbers too: no element is read
    view = as_strided(nothing, shape, steps)[key]
    at: Any = np.asarray(view.__array_interface__["data"][0] - nothing.ctypes.data)
    for n, step in zip(view.shape, view.strides, strict=True):
        at = at[..., None] + np.arange(n) * step
    return wrap(at)


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


def _fitted(name: str, v: Any, shape: Shape, dtype: Any) -> Any:
    """v in x's dtype and the shape of what is selected; leading axes of length 1 are dropped."""
    extra = len(v.shape) - len(shape)
    if extra > 0 and all(is_one(n) for n in v.shape[:extra]):
        v = ops.reshape(v, v.shape[extra:])
    if v.dtype != dtype:
        v = cast(name, v, dtype)
    if v.shape == shape:
        return v
    try:
        return ops.broadcast_to(v, shape)
    except ShapeError:
        raise ShapeError(
            f"x.at[...].{name}: v of shape {v.shape} does not broadcast to {shape}, "
            "the shape of what is selected"
        ) from None


def _size(shape: Shape | list[int]) -> Any:
    n: Any = 1
    for k in shape:
        n = n * k
    return n
