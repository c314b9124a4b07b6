"""Looks: how a view sees its base, and how what is written into the view gets into the base.

`get(whole)` is what the view shows, and `put(whole, part)` is the whole with part in the place of
that: `put(x, get(x))` is x. A whole is a Tensor, traced or not; `get` understands an ndarray as
well, of which it gives a view. `LOOKS` says which functions give views: those of which NumPy does.
"""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import Any

import numpy as np

from funct import array as plain
from funct import ops
from funct.array.axes import normal_axes, normal_axis
from funct.core import Size
from funct.errors import ArgumentError

__all__ = ["ITSELF", "LOOKS", "Key", "Look", "Order", "View", "is_basic"]


class Look:
    """What stands between a view and its base."""

    __slots__ = ()

    def get(self, whole: Any) -> Any:
        """What the view shows of whole."""
        raise NotImplementedError

    def put(self, whole: Any, part: Any) -> Any:
        """whole, where the view shows part."""
        raise NotImplementedError


class Key(Look):
    """whole[key], for a key that `is_basic`."""

    __slots__ = ("_key",)

    def __init__(self, key: Any) -> None:
        self._key = key

    def get(self, whole: Any) -> Any:
        """The selected elements."""
        return whole[self._key]

    def put(self, whole: Any, part: Any) -> Any:
        """whole with part at the key."""
        return whole.at[self._key].set(part)


class Form(Look):
    """The elements in the same order, in another shape."""

    __slots__ = ("_shape",)

    def __init__(self, shape: Any) -> None:
        self._shape = shape

    def get(self, whole: Any) -> Any:
        """whole in the view's shape."""
        return whole.reshape(self._shape)

    def put(self, whole: Any, part: Any) -> Any:
        """part in the whole's shape."""
        return part.reshape(whole.shape)


class Order(Look):
    """The axes in another order: that in which `reorder` gives them."""

    __slots__ = ("_axes", "_reorder")

    def __init__(self, reorder: Callable[[Any], Any]) -> None:
        self._reorder = reorder
        self._axes: Any = None

    def axes(self, whole: Any) -> Any:
        """The order, and that which undoes it; found when it is first needed."""
        if self._axes is None:
            lengths = tuple(range(whole.ndim))  # a length names its axis
            axes = self._reorder(plain.empty(lengths)).shape
            self._axes = axes, tuple([axes.index(i) for i in lengths])
        return self._axes

    def get(self, whole: Any) -> Any:
        """whole's axes in the order."""
        return whole.transpose(self.axes(whole)[0])

    def put(self, whole: Any, part: Any) -> Any:
        """part's axes in the order of the whole's."""
        return part.transpose(self.axes(whole)[1])


class Half(Look):
    """The real or the imaginary parts of complex numbers."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def get(self, whole: Any) -> Any:
        """The parts."""
        return getattr(whole, self._name)

    def put(self, whole: Any, part: Any) -> Any:
        """Complex numbers of part and of whole's other parts."""
        halves = (part, whole.imag) if self._name == "real" else (whole.real, part)
        return ops.complex_of(*halves)


class Reading(Look):
    """Complex numbers as their parts side by side, or the reverse."""

    __slots__ = ("_dtype",)

    def __init__(self, dtype: Any) -> None:
        self._dtype = dtype

    def get(self, whole: Any) -> Any:
        """whole, read as the dtype."""
        return whole.view(self._dtype)

    def put(self, whole: Any, part: Any) -> Any:
        """part, read as whole's dtype."""
        return part.view(whole.dtype)


class View:
    """Where a handle gets its value from that is a view of another."""

    __slots__ = ("base", "look", "seen")

    def __init__(self, base: Any, look: Look, whole: Any, part: Any) -> None:
        self.base, self.look, self.seen = base, look, (whole, part)

    def value(self, handle: Any) -> Any:
        """What the look shows of the base's value."""
        whole = self.base.value
        seen, part = self.seen
        if whole is not seen:
            part = self.look.get(whole)
            self.seen = whole, part
        return part

    def layout(self) -> Any:
        """An ndarray laid out as the view would be, where what is no view lies in C order."""
        base, source = self.base, self.base._source
        view = source.__class__ is View
        return self.look.get(source.layout() if view else np.empty(base.shape, base.dtype))


ITSELF = Look()  # of a function that gives the array it was given

_BASIC = frozenset({int, slice, type(None), EllipsisType})


def is_basic(key: Any, part: Any) -> bool:
    """Whether NumPy gives x[key], which is part, as a view: an element by itself it copies."""
    entries = key if key.__class__ is tuple else (key,)
    for k in entries:
        if k.__class__ not in _BASIC and not isinstance(k, np.integer | Size):
            return False
    return bool(part.shape) or Ellipsis in entries


# How a function looked at whole, when it gave part: as a Look, several, or none for a copy. call is
# the function with all its arguments but the first, options are those by keyword, and source is
# where the first, a handle, has its value from.
Looked = Callable[[Any, Any, Callable[[Any], Any], dict[str, Any], Any], Any]


def _itself(whole: Any, part: Any, call: Any, options: dict[str, Any], source: Any) -> Any:
    return ITSELF if part is whole and options.get("copy") is not True else None


def _itself_if_asked(whole: Any, part: Any, call: Any, options: dict[str, Any], source: Any) -> Any:
    return ITSELF if part is whole and options.get("copy") is False else None


def _read(whole: Any, part: Any, call: Any, options: Any, source: Any) -> Any:
    return Reading(part.dtype)


def _real(whole: Any, part: Any, call: Any, options: Any, source: Any) -> Any:
    return ITSELF if part.dtype == whole.dtype else Half("real")


def _imag(whole: Any, part: Any, call: Any, options: Any, source: Any) -> Any:
    return None if part.dtype == whole.dtype else Half("imag")  # zeros are nobody's


def _taken(whole: Any, part: Any, call: Any, options: dict[str, Any], source: Any) -> Any:
    shared = options.get("copy") is not True and part.device == whole.device
    return ITSELF if shared else None


def _formed(whole: Any, part: Any, call: Any, options: Any, source: Any) -> Any:
    return Form(part.shape)


def _reshaped(whole: Any, part: Any, call: Any, options: dict[str, Any], source: Any) -> Any:
    """A view where the strides allow it; a whole that is no view lies in C order.

    Elements counted in another order are a copy, also where NumPy would give a view.
    """
    copy = options.get("copy")
    if copy is True or options.get("order", "C") != "C":
        return None
    old = source.layout() if source.__class__ is View else None
    if old is None or not old.size or np.may_share_memory(old, old.reshape(part.shape)):
        return Form(part.shape)
    if copy is False:
        raise ArgumentError(f"reshape: copy=False, but {part.shape} is no view of the array")
    return None


def _raveled(whole: Any, part: Any, call: Any, options: Any, source: Any) -> Any:
    """A view of what has no gaps alone, though the strides may allow more."""
    dense = source.__class__ is not View or source.layout().flags.c_contiguous
    return Form(part.shape) if dense else None


def _ordered(whole: Any, part: Any, call: Any, options: Any, source: Any) -> Any:
    return Order(call)


def _flipped(whole: Any, part: Any, call: Any, options: dict[str, Any], source: Any) -> Any:
    axes = normal_axes("flip", options.get("axis"), part.ndim)
    return Key(tuple([slice(None, None, -1 if i in axes else 1) for i in range(part.ndim)]))


def _unstacked(whole: Any, parts: Any, call: Any, options: dict[str, Any], source: Any) -> Any:
    if whole.ndim == 1:
        return None  # of elements by themselves
    before = (slice(None),) * normal_axis("unstack", options.get("axis", 0), whole.ndim)
    return tuple([Key((*before, i)) for i in range(len(parts))])


LOOKS: dict[str, Looked] = {
    "Array.astype": _itself_if_asked, "Array.conj": _itself, "Array.to_device": _itself,
    "asarray": _itself, "astype": _itself_if_asked, "from_dlpack": _taken,
    "expand_dims": _formed, "squeeze": _formed, "Array.squeeze": _formed, "Array.flat": _formed,
    "reshape": _reshaped, "Array.reshape": _reshaped,
    "ravel": _raveled, "Array.ravel": _raveled,
    "matrix_transpose": _ordered, "moveaxis": _ordered, "permute_dims": _ordered,
    "transpose": _ordered, "Array.transpose": _ordered, "Array.swapaxes": _ordered,
    "flip": _flipped, "unstack": _unstacked,
    "real": _real, "Array.real": _real, "imag": _imag, "Array.imag": _imag, "Array.view": _read,
}  # fmt: skip
