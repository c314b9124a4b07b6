"""Manipulation of ndarrays with the standard's arguments, for shapes and axes of plain ints."""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from funct.kernels.cpu.indexing.runs import concatenate, lines
from funct.kernels.cpu.indexing.weaving import woven
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.scratch import fresh
from funct.kernels.dtypes import NAMED, NATIVE, NO_AXIS, USUAL
from funct.kernels.elementwise.casting import in_dtype
from funct.kernels.indexing import gather as indexing
from funct.kernels.indexing import runs
from funct.kernels.windows.borders import padded
from funct.kernels.windows.views import inverse_order, memory_order

__all__ = [
    "astype", "concat", "expand_dims", "flip", "pad", "pad_last", "permute_dims", "ravel", "repeat",
    "reshape", "roll", "squeeze", "stack", "tile", "transpose",
]  # fmt: skip

_MODES: Any = ("edge", "reflect", "symmetric", "wrap")
_OF_TORCH = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
_ALL, _BACK = slice(None), slice(None, None, -1)
_FILLED = {np.dtype(char) for char in "fdFD"}  # any number has a value there
_PLAIN_AXES, _WOVEN = 4, 1 << 10  # and elements, of what NumPy writes out in another order
_CAST = 1 << 12  # elements of two bytes that others are told of
_BRAIN: dict[Any, Any] = dict.fromkeys((bfloat16, np.dtype(bfloat16)), np.dtype(bfloat16))
_JOINED = _FILLED | {np.dtype(char) for char in "bhilBHI"}


def astype(x: Any, dtype: Any, copy: Any = True, device: Any = None) -> Any:
    """x in another dtype, in a new array."""
    found = NAMED.get(dtype) or _BRAIN.get(dtype)
    if found is None or copy is not True or device is not None:
        return None
    given = x.dtype
    if given.kind == "c" and found.kind not in "cb":
        return None
    if x.size >= _CAST and (given.itemsize == 2 or found.itemsize == 2):
        return None
    return in_dtype(x, found)


def reshape(x: Any, shape: Any, copy: Any = None) -> Any:
    """The same elements in another shape."""
    if shape.__class__ is int:
        return x.reshape(shape) if shape >= -1 else None
    if shape.__class__ is not tuple:
        return None
    for n in shape:
        if n.__class__ is not int or n < -1:
            return None
    return reshaped(x, shape)


def reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    """The same of lengths that fit. Of axes in another order few that come last are woven."""
    if x.ndim > _PLAIN_AXES and x.size >= _WOVEN and x.__class__ is np.ndarray:
        joins = not x.flags.c_contiguous and shape[-1:] != x.shape[-1:]
        if joins and ready(x.size) and (y := woven(x)) is not None:
            return y.reshape(shape)
    return x.reshape(shape)


def ravel(x: Any) -> Any:
    """The elements, 1-D."""
    return x.reshape(-1)


def permute_dims(x: Any, axes: Any) -> Any:
    """Axes in another order."""
    if axes.__class__ is not tuple and axes.__class__ is not list:
        return None
    for a in axes:
        if a.__class__ is not int or not -_MOST_AXES <= a < _MOST_AXES:
            return None  # NumPy takes the last 32 bits of others
    return x.transpose(axes)


def transpose(x: Any, axes: Any = None) -> Any:
    """Axes in another order, reversed for None."""
    return x.transpose() if axes is None else permute_dims(x, axes)


def squeeze(x: Any, axis: Any) -> Any:
    """x without axes of length 1."""
    return x.squeeze(axis) if axis.__class__ in _AXES and x.ndim else None


_AXES = (int, tuple)
_MOST_AXES = 64


def expand_dims(x: Any, axis: Any) -> Any:
    """x with a new axis."""
    if axis.__class__ is not int:
        return None
    n = x.ndim
    if axis < 0:
        axis += n + 1
    return x.reshape((*x.shape[:axis], 1, *x.shape[axis:])) if 0 <= axis <= n else None


_REPEATED = 1 << 11  # elements from which on a call of a kernel costs less than what it saves
_SEVERAL = 1 << 24  # elements of a result that every machine has room for
_COUNTED = 2**31  # NumPy's repeat does not see its product of sizes overflow, and crashes
_NARROW, _WIDE = 16, 1 << 12  # lines that are rolled element by element, and of how many elements
_COPIED = 1 << 15  # elements of two of one axis up to which machine code joins them
_TILED = 1 << 17  # elements of long lines up to which NumPy repeats them at once
_FEW = 1 << 7  # elements that NumPy joins at once
_RUN = 1 << 6  # bytes of a row, of which NumPy repeats some as they are
_RUNS = 1 << 8  # elements from which on machine code repeats each
_PADDED = 1 << 10  # elements that NumPy puts a number around as soon
_MANY = 1 << 13  # what is larger is announced to the allocator, and compared with the memory


def repeat(x: Any, repeats: Any, axis: Any = None) -> Any:
    """Each element as often, or as often as is said of it."""
    if axis is not None and (axis.__class__ is not int or axis == NO_AXIS or not x.ndim):
        return None
    if repeats.__class__ is np.ndarray:
        if axis is None:
            x, axis = x if x.ndim == 1 else x.reshape(-1), 0
        if repeats.dtype.kind not in "iu":
            return None
        made = runs.repeated(x, repeats) if x.ndim == 1 and repeats.size >= _RUNS else None
        if made is not None:
            return made
        if repeats.shape != (x.shape[axis],):
            return None
        counts = repeats.tolist() if 1 < repeats.size < _MANY else [-1]
        return x.repeat(repeats, axis) if min(counts) >= 0 and sum(counts) < _MANY else None
    if repeats.__class__ is not int or not 0 <= repeats < _COUNTED:
        return None
    made = runs.evenly(x, repeats, axis) if x.size >= _REPEATED else None
    return x.repeat(repeats, axis) if made is None else made


def tile(x: Any, repetitions: Any) -> Any:
    """x repeated as a whole along each axis."""
    if repetitions.__class__ is int:
        repetitions = (repetitions,)
    elif repetitions.__class__ is not tuple:
        return None
    for n in repetitions:
        if n.__class__ is not int or not 0 <= n < _MANY:
            return None
    if x.ndim == 1 == len(repetitions) and 0 < n < 100:
        return concatenate((x,) * n)
    if not x.flags.c_contiguous:
        x = x.copy()
    missing = len(repetitions) - x.ndim
    shape, strides = (1,) * missing + x.shape, (0,) * missing + x.strides
    repetitions = (1,) * -missing + repetitions
    wide = [k for pair in zip(repetitions, shape) for k in pair]
    steps = [k for stride in strides for k in (0, stride)]
    size = [n * r for n, r in zip(shape, repetitions)]
    count = prod(size)
    if count > _MANY and not (count < _TILED and shape[-1] * x.itemsize >= _RUN):
        return _tiled(x, shape, repetitions).reshape(size) if count < _SEVERAL else None
    return np.ndarray(wide, x.dtype, x, 0, steps).reshape(size) if x.size else None


def _tiled(x: Any, shape: tuple[int, ...], repetitions: tuple[int, ...]) -> Any:
    """x, which is dense, repeated along one axis after the other, as runs of what lies behind."""
    run = x.size
    for n, times in zip(shape, repetitions):
        if times > 1:
            rows = x.reshape(-1, run)
            made = runs.joined(rows, rows, 1) if times == 2 else None
            x = repeat(rows, times, 0) if made is None else made
        run //= n
    return x


def concat(arrays: Any, axis: Any = 0) -> Any:
    """Arrays joined along an existing axis."""
    few = runs.few_joined.call(*arrays, axis)
    if few is not None:
        return few
    if axis == NO_AXIS:
        return None
    if len(arrays) == 2:
        a, b = arrays
        if (d := a.dtype) is b.dtype and axis == 0 and a.ndim == b.ndim == 1:
            m = a.size
            n = m + b.size
            if n < _COPIED and d.num in USUAL and ready(n, 0):
                return lines(a, b, m, n)
        elif d is b.dtype and (axis == 0 or a.size < _FEW):
            return concatenate(arrays, axis)
    made = None
    if axis and len(arrays) == 2:
        made = runs.joined(a, b, axis) if a.size >= _MANY else None
    elif axis and arrays[0].size >= _FEW and axis.__class__ is int:
        made = runs.rows(arrays, range(arrays[0].ndim)[axis], False)
    if made is not None:
        return made
    return concatenate(arrays, axis) if _join(arrays) else None


def _join(arrays: Any) -> bool:
    """Whether NumPy joins them as is wanted: of one dtype, or of those that promote as there."""
    dtype = arrays[0].dtype
    for a in arrays:
        if a.dtype is not dtype and (a.dtype not in _JOINED or dtype not in _JOINED):
            return False
    return True


def stack(arrays: Any, axis: int = 0) -> Any:
    """Arrays joined along a new axis."""
    n = arrays[0].ndim
    if axis.__class__ is not int or not -n - 1 <= axis <= n or not _join(arrays):
        return None
    if n and (axis == 0 or axis == -n - 1):
        shape = arrays[0].shape
        for a in arrays:
            if a.shape != shape:
                return None
        return concatenate(arrays).reshape(len(arrays), *shape)
    k = axis if axis >= 0 else axis + n + 1
    made = runs.rows(arrays, k, True) if arrays[0].size >= _FEW and k < n else None
    if made is not None:
        return made
    at = (slice(None),) * k + (None,)
    new = []
    for a in arrays:
        if a.ndim != n:
            return None
        new.append(a[at])
    return concatenate(new, axis)


def flip(x: Any, axis: Any = None) -> Any:
    """Axes in reverse order: all, or one."""
    if not x.ndim:
        return None
    if axis is None:
        made = runs.backward(x, x.size)
        return x[(_BACK,) * x.ndim] if made is None else made
    if axis.__class__ is not int:
        return None
    if axis in (-1, x.ndim - 1):
        made = runs.backward(x, x.shape[-1])
        if made is not None:
            return made
    return x[_BACK] if axis == 0 else x[(_ALL,) * range(x.ndim)[axis] + (_BACK,)]


def pad(x: Any, pad_width: Any, mode: Any = "constant", constant_values: Any = 0) -> Any:
    """x with elements around it: of its own, or a number."""
    pairs = _pairs(pad_width, x.ndim)
    if pairs is None or not x.size:
        return None
    size = [n + low + high for n, (low, high) in zip(x.shape, pairs)]
    large = prod(size) > _MANY
    if large and x.size <= _MANY:
        return None
    if mode in _MODES:
        if large:
            return _around(x, pairs, size, mode, 0)
        for axis, (low, high) in enumerate(pairs):
            if low or high:
                x = x.take(_places(x.shape[axis], low, high, mode), axis)
        return x
    if mode != "constant" or constant_values.__class__ not in (float, int):
        return None
    if x.dtype.num >= NATIVE or (constant_values != 0 and x.dtype not in _FILLED):
        return None
    if large or x.size > _PADDED:
        return _around(x, pairs, size, mode, constant_values or 0)
    y = np.full(size, constant_values, x.dtype) if constant_values else np.zeros(size, x.dtype)
    y[tuple([slice(low, low + n) for n, (low, _) in zip(x.shape, pairs)])] = x
    return y


def pad_last(x: Any, width: Any, mode: Any = "constant", value: Any = None) -> Any:
    """x with elements around its last axes, by torch's arguments."""
    if width.__class__ is not tuple or mode.__class__ is not str:
        return None
    found = _by_torch(x.shape, mode, *width)
    if found is None or (value and mode != "constant"):
        return None
    pairs, known, inside, size = found
    if value is None:
        value = 0
    if inside is None:
        return pad(x, pairs, known, value)
    if x.dtype.num >= NATIVE or value.__class__ not in (float, int):
        return None
    if value and x.dtype not in _FILLED:
        return None
    if x.size > _PADDED:
        return _around(x, pairs, size, known, value or 0)
    y = np.full(size, value, x.dtype) if value else np.zeros(size, x.dtype)
    y[inside[0]] = x[inside[1]]
    return y


@functools.lru_cache(256, typed=True)  # True is no length, though it equals 1
def _by_torch(shape: Any, mode: str, *width: Any) -> Any:
    """A pair for each axis, NumPy's mode and, for a number around a few, where in the result stands
    what of x, and the shape of the result; None where others answer.
    """
    pairs, known = tuple(zip(width[-2::-2], width[::-2])), _OF_TORCH.get(mode)
    lead = len(shape) - len(pairs)
    if known is None or len(width) % 2 or lead < 0 or {int} != {n.__class__ for n in width}:
        return None
    whole = ((0, 0),) * lead + pairs
    if known != "constant":
        if not 1 <= len(pairs) <= 3 or not 1 <= lead <= 2:
            return None
        most = [n - (known == "reflect") for n in shape[lead:]]
        over = any(max(pair) > n for n, pair in zip(most, pairs))
        return None if over else (whole, known, None, None)
    size = tuple([n + low + high for n, (low, high) in zip(shape, whole)])
    if min((*size, *shape)) < 1 or any(n + min(p) < 1 for n, p in zip(shape, whole)):
        return None
    if prod(size) > _MANY >= prod(shape) or max(width) > _MANY:
        return None
    to = [slice(max(p[0], 0), m - max(p[1], 0)) for m, p in zip(size, whole)]
    kept = [slice(max(-p[0], 0), n + min(p[1], 0)) for n, p in zip(shape, whole)]
    return whole, known, (tuple(to), tuple(kept)), size


def _around(x: Any, pairs: Any, size: Any, mode: Any, value: Any) -> Any:
    """x with borders, in one pass over it; axes lie in memory as those of x do."""
    known = memory_order(x)
    order = known or range(x.ndim)
    if known or x.flags.c_contiguous:
        made = padded(x, pairs, mode, value, order)
        if made is not None:
            return made
    if any(min(pair) < 0 for pair in pairs):  # what is left out of x
        kept = [slice(max(-low, 0), n + min(high, 0)) for n, (low, high) in zip(x.shape, pairs)]
        x, pairs = x[tuple(kept)], [(max(low, 0), max(high, 0)) for low, high in pairs]
    y = fresh(tuple([size[k] for k in order]), x.dtype).transpose(inverse_order(order))
    inside = [slice(low, low + n) for n, (low, _) in zip(x.shape, pairs)]
    y[tuple(inside)] = x
    for axis, (low, high) in enumerate(pairs):
        n, done = x.shape[axis], (_ALL,) * axis
        for to, source in _borders(n, low, high, mode) if low or high else ():
            part = y[(*done, to, *inside[axis + 1 :])]
            part[...] = value if source is None else y[(*done, source, *inside[axis + 1 :])]
    return y


@functools.lru_cache(1024)
def _borders(n: int, low: int, high: int, mode: Any) -> Any:
    """The borders of a padded axis, and what stands there: nothing of the axis, or its places."""
    found = []
    for to in (slice(0, low), slice(low + n, low + n + high)):
        source: Any = None
        if mode != "constant":
            source = low + _places(n, low, high, mode)[to]
            steps = set(np.diff(source).tolist())
            if len(steps) <= 1 and source.size:  # no index array is needed
                step = steps.pop() if steps else 1
                end = source[-1] + step
                source = slice(source[0], end if end >= 0 else None, step) if step else source[:1]
        if to.start < to.stop:
            found.append((to, source))
    return found


def _pairs(width: Any, rank: int) -> Any:
    """A pair of numbers for each axis, from one number, one pair, or as many pairs."""
    if width.__class__ is int:
        width = (width, width)
    if width.__class__ is not tuple or not rank:
        return None
    pairs = (width,) * rank if len(width) == 2 and width[0].__class__ is int else width
    if len(pairs) != rank:
        return None
    for pair in pairs:
        if pair.__class__ is not tuple or len(pair) != 2:
            return None
        for n in pair:
            if n.__class__ is not int or not 0 <= n <= _MANY:
                return None
    return pairs


@functools.lru_cache(1024)
def _places(n: int, low: int, high: int, mode: Any) -> Any:
    """Which of n elements stand in the padded axis."""
    return np.pad(np.arange(n), (low, high), mode)


def roll(x: Any, shift: Any, axis: Any = None) -> Any:
    """Elements moved by shift along an axis, or all of them."""
    if shift.__class__ is not int or not x.size or not x.ndim:
        return None
    if axis is None and x.ndim > 1:
        return roll(x.reshape(-1), shift, 0).reshape(x.shape)
    if axis is not None and axis.__class__ is not int:
        return None
    k = range(x.ndim)[axis or 0]
    n = x.shape[k]
    at, before = -shift % n, (_ALL,) * k
    made = runs.rolled(x, at, k) if k and at and x.size >= _MANY else None
    if made is not None:
        return made
    if n <= _NARROW and k and k + 1 == x.ndim and x.size >= _WIDE:
        return indexing.take(x, (np.arange(n) + at) % n, k)
    return concatenate((x[(*before, slice(at, None))], x[(*before, slice(at))]), k)
