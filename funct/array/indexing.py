"""x[key]: every form of NumPy indexing, by `slice_`, `reshape` and `take`."""

from __future__ import annotations

import operator
from types import EllipsisType
from typing import Any

import numpy as np
from msgspec import Struct

from funct import ops
from funct.array.keys import BASIC, bare
from funct.core import OpenNumber, Shape, Size, Value
from funct.errors import IndexOutOfBoundsError, UnsupportedOperandError
from funct.kernels.indexing import gather as kernels
from funct.ops import fast
from funct.ops.broadcasting import broadcast_shapes
from funct.ops.fast import wrap
from funct.ops.indexing import on_axis
from funct.ops.refusals import shown
from funct.source import known_as

__all__ = [
    "entry", "index", "is_index", "is_mask", "is_of_rows", "nonzero_axes", "places", "selected",
    "width",
]  # fmt: skip


class _Extra(Struct, frozen=True, eq=False):
    """What a 0-d mask becomes: an axis of length 1 that x does not have, and the index on it."""

    at: Any


def index(x: Any, key: Any) -> Any:
    """x[key]: ints, slices, None, Ellipsis, integer arrays, masks and tuples of them."""
    if is_of_rows(key, x.shape):
        return ops.take(x, key, 0)
    items = _expand(x, key if isinstance(key, tuple) else (key,))
    x = _windows(x, items)
    y, adjacent = _basic(x, items)
    return _advanced(y, items, adjacent) if any(map(_is_array, items)) else y


known_as(index, "x[...]")


def selected(data: Any, key: Any) -> Any:
    """data[key] by NumPy, in C order where it is no view; None where that is left to `index`."""
    if key.__class__ is tuple:
        for k in key:
            if k.__class__ not in BASIC:
                break
        else:
            found = data[key]
            return found if found.__class__ is np.ndarray else data[(*key, ...)]
        if len(key) == 2 and key[0].__class__ is slice and key[0] == _WHOLE:
            at = key[1]
            known = at.__class__ is fast.Array and at.data.dtype.kind == "i"
            if known and data.ndim > 1 and data.size:
                few = kernels.few_taken.call(data, at.data, 1)  # in order, unlike data[:, at]
                return kernels.take(data, at.data, 1) if few is None else few
        each = [k.data for k in key if k.__class__ is fast.Array]
        if len(each) == len(key):
            picked = kernels.picked_at(data, tuple(each))
            if picked is not None:
                return picked
    elif key.__class__ in BASIC:
        return data[key]
    elif key.__class__ is fast.Array:
        picked = kernels.picked(data, key.data)
        if picked is not None:
            return picked
    at = bare(key)
    if at is NotImplemented:
        return None
    found = data[at]
    return found if found.ndim < 2 or found.flags.c_contiguous else found.copy()


_WHOLE = slice(None)


def _is_array(item: Any) -> bool:
    return isinstance(item, Value | _Extra)


def is_index(item: Any) -> bool:
    """Whether an entry is an array of integers."""
    return isinstance(item, Value) and item.dtype.kind in "iu"


def is_of_rows(key: Any, shape: Shape) -> bool:
    """Whether a key is one row of known positions on the first axis, as `take` and `scatter` want
    them: of arrays without elements these look at none.
    """
    if key.__class__ is not fast.Array or key.data.ndim != 1:
        return False
    return key.data.dtype.kind in "iu" and bool(shape) and 0 not in shape


def is_mask(item: Any) -> bool:
    """Whether an entry is an array of booleans."""
    return isinstance(item, Value) and item.dtype.kind == "b"


def _expand(x: Any, key: tuple[Any, ...]) -> list[Any]:
    """One entry per axis of x, plus None, _Extra and Ellipsis; masks become integer arrays."""
    entries = [entry(k) for k in key]
    if sum(1 for k in entries if k is Ellipsis) > 1:
        raise IndexOutOfBoundsError("x[...]: an index can have only one Ellipsis")
    rank, used = len(x.shape), sum(map(width, entries))
    if used > rank:
        raise IndexOutOfBoundsError(f"x[...]: {used} indices for an array of rank {rank}")
    at = next((n for n, k in enumerate(entries) if k is Ellipsis), len(entries))
    # an Ellipsis stays, for it separates index arrays even where it stands for no axis
    entries[at : at + 1] = [Ellipsis, *[slice(None)] * (rank - used)]
    items: list[Any] = []
    axis = 0
    for k in entries:
        items += _unmasked(x, k, axis) if is_mask(k) else [k]
        axis += width(k)
    return items


def entry(k: Any) -> Any:
    """One entry of a key, with everything that is an array as a Tensor."""
    if isinstance(k, bool | np.bool_ | list | np.ndarray):
        try:
            raw = np.asarray(k)
        except ValueError:
            raise IndexOutOfBoundsError(f"x[...]: an index must not be ragged, got {k}") from None
        k = wrap(raw if raw.size else raw.astype(np.int64))
    elif type(k) is OpenNumber:
        k = k.__funct_array__()
    if isinstance(k, Value) and k.dtype.kind not in "biu":
        raise IndexOutOfBoundsError(f"x[...]: an index must be of integers, got {k.dtype}")
    return k


def width(k: Any) -> int:
    """How many axes of x an entry stands for."""
    if k is None or k is Ellipsis:
        return 0
    return len(k.shape) if is_mask(k) else 1


def _unmasked(x: Any, mask: Any, axis: int) -> list[Any]:
    if not mask.shape:
        return [_Extra(wrap(np.zeros(int(bool(mask)), np.int64)))]
    covered = x.shape[axis : axis + len(mask.shape)]
    if any(n != m for n, m in zip(covered, mask.shape) if not (m.__class__ is int and m == 0)):
        raise IndexOutOfBoundsError(
            f"x[mask]: mask has shape {mask.shape}, the axes it selects have {covered}"
        )
    return nonzero_axes(mask)


def nonzero_axes(x: Any) -> list[Any]:
    """Indices of the true elements, one 1-D array per axis; asks for concrete values."""
    return [wrap(i) for i in np.nonzero(x.concrete())]


def _windows(x: Any, items: list[Any]) -> Any:
    """x, of which slices between open numbers are looked up; items has whole axes for them then.

    Their length is a decision: `x[i * n : (i + 1) * n]` has one for any i.
    """
    axis = 0
    for at, i in enumerate(items):
        if i is None or i is Ellipsis or isinstance(i, _Extra):
            continue
        if isinstance(i, slice) and type(i.start) is type(i.stop) is OpenNumber and i.step is None:
            length, n = i.stop - i.start, x.shape[axis]
            inside = not isinstance(n, Size) and i.start >= 0 and i.stop <= n
            if inside and length == (known := length.value) and known >= 0:
                first = i.start.__funct_array__()
                x = ops.take(x, ops.add(wrap(np.arange(known)), first), axis)
                items[at] = _WHOLE
        axis += 1
    return x


def _basic(x: Any, items: list[Any]) -> tuple[Any, bool]:
    """Slices, ints and None; integer arrays keep their axes. Also: are the arrays side by side?"""
    triples: list[Any] = []
    shape: list[Any] = []
    advanced: list[int] = []
    for place, i in enumerate(items):
        if i is Ellipsis:
            continue
        if i is None or isinstance(i, _Extra):
            shape.append(1)
        else:
            axis = len(triples)
            triples.append(_select(i, x.shape[axis], axis))
            if isinstance(i, slice):
                shape.append(ops.slice_length(x.shape[axis], triples[-1]))
            elif isinstance(i, Value):
                shape.append(x.shape[axis])
        if i is not None and not isinstance(i, slice):
            advanced.append(place)  # NumPy counts ints among the arrays here
    if any(t != (None, None, 1) for t in triples):
        x = ops.slice_(x, tuple(triples))
    if any(i is None or not isinstance(i, slice | Value | EllipsisType) for i in items):
        x = ops.reshape(x, tuple(shape))
    return x, not advanced or advanced[-1] - advanced[0] == len(advanced) - 1


def _select(i: Any, n: Any, axis: int) -> Any:
    """The slice that an entry stands for; an int leaves one element."""
    if isinstance(i, slice):
        return _triple(i)
    if isinstance(i, Value):
        return None, None, 1
    k = _integer(i, n, axis)
    return k, k + 1 or None, 1


def _triple(s: slice) -> tuple[Any, Any, Any]:
    start, stop, step = (_end(v) for v in (s.start, s.stop, s.step))
    if step == 0:
        raise IndexOutOfBoundsError("x[...]: a slice step must not be 0")
    return start, stop, 1 if step is None else step


def _end(v: Any) -> Any:
    return v if v is None or isinstance(v, Size) else _int(v)


def _int(v: Any) -> int:
    try:
        return operator.index(v)
    except TypeError:
        raise UnsupportedOperandError(
            "x[...]: an index must be an int, slice, None, Ellipsis or Tensor, "
            f"got {type(v).__name__}"
        ) from None


def _integer(i: Any, n: Any, axis: int) -> int:
    k = _int(i)
    if n < -k if k < 0 else n <= k:  # one comparison: a symbolic n records each
        raise IndexOutOfBoundsError(
            f"x[...]: index {shown(k)} is out of bounds for axis {axis} of length {n}"
        )
    return k


def _advanced(x: Any, items: list[Any], adjacent: bool) -> Any:
    """Integer arrays, broadcast together, on axes of x that `_basic` left in place."""
    kept = [i for i in items if i is None or isinstance(i, slice | Value | _Extra)]
    axes = [n for n, i in enumerate(kept) if _is_array(i)]
    arrays: list[Any] = [i.at if isinstance(i, _Extra) else i for i in kept if _is_array(i)]
    if len(arrays) == 1:
        i, start = arrays[0], axes[0]
        if any(n.__class__ is int and n == 0 for n in x.shape):
            i = on_axis(i, x.shape[start])  # take looks at no index then, and x[key] does
        out = ops.take(x, i, start)
    else:
        out, start = _joint(x, arrays, axes), 0
    to = axes[0] if adjacent else 0
    rank = len(out.shape) - len(x.shape) + len(axes)
    return out if start == to else ops.move_block(out, start, rank, to)


def places(lengths: list[Any], arrays: list[Any]) -> Any:
    """Integer arrays, broadcast together, as one index into axes of these lengths laid flat.

    Of arrays that come to nothing no element is looked at, as in NumPy; an int is.
    """
    common = _common_shape(arrays)
    if any(n.__class__ is int and n == 0 for n in common):
        nothing = wrap(np.zeros([n if n.__class__ is int else int(n) for n in common], np.int64))
        arrays = [nothing if a.shape else a for a in arrays]
    flat: Any = None
    for a, n in zip(arrays, lengths, strict=True):
        a = on_axis(a, n)
        flat = a if flat is None else flat * n + a
    return flat if flat.shape == common else ops.broadcast_to(flat, common)


def _joint(x: Any, arrays: list[Any], axes: list[int]) -> Any:
    """Several index arrays as one into their axes folded together; its axes come first."""
    flat = places([x.shape[n] for n in axes], arrays)
    rest = [n for n in range(len(x.shape)) if n not in axes]
    y = ops.permute_dims(x, tuple(axes + rest))
    merged = ops.axis_count(x, tuple(axes))
    return ops.take(ops.reshape(y, (merged, *[x.shape[n] for n in rest])), flat, 0)


def _common_shape(arrays: list[Any]) -> Shape:
    shapes = [a.shape for a in arrays]
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        given = " and ".join(str(s) for s in shapes)
        raise IndexOutOfBoundsError(
            f"x[...]: index arrays must broadcast, got shapes {given}"
        ) from None
