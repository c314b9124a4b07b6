"""NumPy's methods, for code that writes `x.sum()`; each calls the function of its name.

Also NumPy's own functions: `np.sin(x)`, `np.sum(x)` and `scipy.special.erf(x)` give Tensors, so
they are traced. Ufuncs that the namespace lacks, their other methods, and calls with further
options take the elements and give ndarrays.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import normal_axis
from funct.array.dtypes import as_dtype
from funct.array.operators import quotient_and_rest
from funct.core import Value, catalogue
from funct.errors import ArgumentError, DTypeError, ImmutableError
from funct.ops import fast
from funct.ops.fast import OWN
from funct.ops.refusals import shown

__all__ = ["Methods"]

asarray = np.asarray
ndarray = np.ndarray

_UFUNCS = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "conjugate": "conj",
    "invert": "bitwise_invert", "left_shift": "bitwise_left_shift", "power": "pow",
    "right_shift": "bitwise_right_shift", "rint": "round", "true_divide": "divide",
}  # fmt: skip


# ufuncs of two operands that an op is, and nothing else
_PLAIN = frozenset(
    [p.raw for p in catalogue() if isinstance(p.raw, np.ufunc) and len(p.rules) == 2]
)

# The package that this file is a part of: its functions are there by the time of a call.
_xp: Any = sys.modules["funct.array"]

# complex dtypes and those of their parts, either seen as the other
_PARTS = {np.complex64: np.float32, np.complex128: np.float64}
_SEEN = {
    (np.dtype(a), spelled): np.dtype(b)
    for z, r in _PARTS.items()
    for a, b in ((z, r), (r, z))
    for spelled in (b, np.dtype(b))
}


def _unused(method: str, argument: str, value: Any) -> ArgumentError:
    """What is raised for an argument of NumPy's that a Tensor has no use for."""
    return ArgumentError(f"{method}: {argument} must be None, got {shown(value)}")


def _off_axis(mode: str, x: Any, i: Any, axis: Any) -> Any:
    """Elements of x at i, which may be off the axis; None where that is left to `take`."""
    if axis is not None and (axis.__class__ is not int or not -x.ndim <= axis < x.ndim):
        return None
    n = x.size if axis is None else x.shape[axis]
    if not n or i.dtype.kind not in "iu" or i.dtype.char in "LQ":
        return None
    if mode == "clip":
        return x.take(i, axis, mode="clip")
    try:
        return x.take(i, axis)
    except IndexError:
        return x.take(i.astype(np.int64) % n, axis)


def _on_axis(mode: str, indices: Any, n: Any) -> Any:
    """Indices of an axis of length n, from any integers; what is none stays what it is."""
    at = _xp.asarray(indices)
    if at.dtype.kind not in "iu" or (n.__class__ is int and n == 0):
        return indices
    at = _xp.astype(at, _xp.int64)
    return _xp.clip(at, 0, n - 1) if mode == "clip" else at % n


def _one_of(method: str, argument: str, value: Any, known: tuple[str, ...]) -> Any:
    """value, which must be one of the words."""
    if not isinstance(value, str) or value not in known:
        words = " or ".join(map(repr, known))
        raise ArgumentError(f"{method}: {argument} must be {words}, got {shown(value)}")
    return value


def _elements(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, Value) else x


def _one_or_many(given: tuple[Any, ...]) -> Any:
    return given[0] if len(given) == 1 and not isinstance(given[0], int) else given


@functools.lru_cache(256)
def _function_of(ufunc: Any) -> Any:
    if ufunc is np.divmod:
        return quotient_and_rest
    name = _UFUNCS.get(ufunc.__name__, ufunc.__name__)
    return getattr(_xp, name, None) or getattr(_xp.special, name, None)


class Methods(Value):
    """The methods of `Tensor` that are functions of the namespace under another spelling."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            x = inputs[0]
            if x.__class__ is ndarray and ufunc in _PLAIN and x.dtype in OWN:
                y = inputs[1]
                if y.__class__ is fast.Array and y.data.dtype in OWN:
                    try:
                        d = ufunc(x, y.data)
                    except Exception:
                        d = None  # refused by name
                    if d is not None:
                        r = fast.make(None)
                        r.data = d if d.__class__ is ndarray else asarray(d)
                        return r
            function = _function_of(ufunc)
            if callable(function):
                return function(*inputs)
        if any(isinstance(v, Value) for v in kwargs.get("out", ())):
            raise ImmutableError(f"{ufunc.__name__}: out must be an ndarray: Tensors are immutable")
        options = {k: _elements(v) for k, v in kwargs.items()}
        return getattr(ufunc, method)(*map(_elements, inputs), **options)

    def __contains__(self, v: Any, /) -> bool:
        return bool(_xp.any(ops.equal(self, v)))

    def __format__(self, spec: str, /) -> str:
        x: Any = self
        return format(x.item() if spec and not x.shape else str(x), spec)

    @property
    def real(self) -> Any:
        """The real part."""
        return _xp.real(self)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return _xp.imag(self) if self.dtype.kind == "c" else _xp.zeros_like(self)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        n: int = self.dtype.itemsize
        return n

    @property
    def nbytes(self) -> Any:
        """Bytes of all elements; a view, whose elements may be fewer in memory, counts each."""
        return self.size * self.dtype.itemsize

    def astype(self, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
        """x in another dtype."""
        if copy is True and device is None:
            return _xp.astype(self, dtype)
        return _xp.astype(self, dtype, copy=copy, device=device)

    def view(self, dtype: Any = None) -> Any:
        """x as an array of complex numbers' parts, each pair along the last axis, or the reverse.

        Raises: DTypeError: for any other dtype than x's own; the bits of a number are no number.
        """
        x: Any = self
        if x.__class__ is fast.Array:
            try:
                return fast.wrap(x.data.view(_SEEN[x.data.dtype, dtype]))
            except (KeyError, TypeError, ValueError):
                pass  # another dtype, or it has gaps, or no pairs
        to = x.dtype if dtype is None else as_dtype("view", dtype)
        if to == x.dtype:
            return x
        paired = to.kind == "c"
        if (x.dtype, to) not in _SEEN or not x.shape or (paired and x.shape[-1] % 2):
            raise DTypeError(f"view: {x.dtype} of shape {x.shape} cannot be seen as {to}")
        if x.__class__ is fast.Array:
            return fast.wrap((x.data if x.data.flags.c_contiguous else x.data.copy()).view(to))
        if not paired:
            pairs = _xp.stack([x.real, x.imag], axis=-1)
            return pairs.reshape((*x.shape[:-1], 2 * x.shape[-1]))
        pairs = x.reshape((*x.shape[:-1], x.shape[-1] // 2, 2))
        return ops.complex_of(pairs[..., 0], pairs[..., 1])

    def reshape(self, *shape: Any, copy: bool | None = None, order: str = "C") -> Any:
        """The elements in another shape, given as one tuple or as several ints.

        order: in which they are counted, "C" or "F": the last axis fastest, or the first.
        """
        given = _one_or_many(shape)
        if _one_of("reshape", "order", order, ("C", "F")) == "F":
            back = tuple(reversed(given)) if isinstance(given, tuple | list) else given
            return _xp.transpose(_xp.reshape(_xp.transpose(self), back, copy=copy))
        return _xp.reshape(self, given) if copy is None else _xp.reshape(self, given, copy=copy)

    def ravel(self) -> Any:
        """The elements in one axis."""
        return _xp.ravel(self)

    flatten = ravel

    @property
    def flat(self) -> Any:
        """The elements in one axis."""
        return _xp.reshape(self, (-1,))

    def transpose(self, *axes: Any) -> Any:
        """The axes in another order; reversed where none is given."""
        return _xp.transpose(self, _one_or_many(axes)) if axes else _xp.transpose(self)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """The array with two axes exchanged."""
        order = list(range(self.ndim))
        a, b = (normal_axis("swapaxes", k, self.ndim) for k in (axis1, axis2))
        order[a], order[b] = b, a
        return _xp.permute_dims(self, tuple(order))

    def repeat(self, repeats: Any, axis: int | None = None) -> Any:
        """Every element several times along axis; of all of them in one axis where it is None."""
        return _xp.repeat(self, repeats, axis=axis)

    def take(
        self, indices: Any, axis: int | None = None, out: None = None, mode: str = "raise"
    ) -> Any:
        """Elements along axis, or of all of them, by indices of any shape. mode: what becomes of
        indices that are off the axis: "raise", "clip" (negative ones too) or "wrap".
        """
        if out is not None:
            raise _unused("take", "out", out)
        if mode.__class__ is not str or mode != "raise":
            _one_of("take", "mode", mode, ("raise", "clip", "wrap"))
            if mode != "raise":
                x: Any = self
                if x.__class__ is indices.__class__ is fast.Array:
                    few = _off_axis(mode, x.data, indices.data, axis)
                    if few is not None:
                        return fast.wrap(few)
                x = _xp.ravel(x) if axis is None else x
                indices = _on_axis(mode, indices, x.shape[normal_axis("take", axis or 0, x.ndim)])
        if axis.__class__ is int and indices.__class__ is fast.Array and indices.data.ndim == 1:
            return _xp.take(self, indices, axis=axis)
        key = indices if isinstance(indices, Value) else _xp.asarray(indices)
        if axis is None:
            return _xp.ravel(self)[key]
        if key.ndim == 1:
            return _xp.take(self, key, axis=axis)
        return self[(slice(None),) * normal_axis("take", axis, self.ndim) + (key,)]

    def squeeze(self, axis: Any = None) -> Any:
        """Without axes of length 1: all of them, or those given."""
        if axis is None:
            axis = tuple([i for i, n in enumerate(self.shape) if n == 1])
        return _xp.squeeze(self, axis)

    def copy(self) -> Any:
        """The array itself: nobody can write into it."""
        return self

    def conj(self) -> Any:
        """The complex conjugate."""
        return self if self.dtype.kind in "fiu" else _xp.conj(self)

    conjugate = conj

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        """The elements whose index along axis2 is that along axis1 and offset more."""
        x: Any = self
        # what is no int may refuse to be compared; `moveaxis` says so
        numbers = axis1.__class__ is axis2.__class__ is int
        if x.ndim != 2 or not numbers or (axis1, axis2) != (0, 1):
            x = _xp.moveaxis(x, (axis1, axis2), (-2, -1))
        return _xp.linalg.diagonal(x, offset=offset)

    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None
    ) -> Any:
        """Sum of a diagonal."""
        if out is not None:
            raise _unused("trace", "out", out)
        return _xp.sum(self.diagonal(offset, axis1, axis2), axis=-1, dtype=dtype)

    def ptp(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        """The largest element over axes less the smallest one."""
        return self.max(axis, out, keepdims) - self.min(axis, None, keepdims)

    def round(self, decimals: int = 0, out: None = None) -> Any:
        """x to the nearest multiple of 10**-decimals, ties to the even one; the dtype stays."""
        if out is not None:
            raise _unused("round", "out", out)
        return _xp.elementwise.rounded(self, decimals)

    def __round__(self, ndigits: int | None = None, /) -> Any:
        return self.round(0 if ndigits is None else ndigits)

    def clip(self, min: Any = None, max: Any = None, out: None = None) -> Any:
        """x limited to [min, max]."""
        if out is not None:
            raise _unused("clip", "out", out)
        return _xp.clip(self, min, max)

    def sum(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False
    ) -> Any:
        """Sum over axes."""
        if out is not None:
            raise _unused("sum", "out", out)
        if dtype is None and keepdims is False:
            return _xp.sum(self) if axis is None else _xp.sum(self, axis=axis)
        return _xp.sum(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def prod(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False
    ) -> Any:
        """Product over axes."""
        if out is not None:
            raise _unused("prod", "out", out)
        if dtype is None and keepdims is False:
            return _xp.prod(self) if axis is None else _xp.prod(self, axis=axis)
        return _xp.prod(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False
    ) -> Any:
        """Mean over axes."""
        if out is not None:
            raise _unused("mean", "out", out)
        if dtype is not None:
            return _xp.mean(self.astype(dtype), axis=axis, keepdims=keepdims)
        if axis is None and keepdims is False:
            return _xp.mean(self)
        return _xp.mean(self, axis=axis, keepdims=keepdims)

    def std(
        self, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0,
        keepdims: bool = False,
    ) -> Any:  # fmt: skip
        """Standard deviation over axes, with n - ddof in the denominator."""
        if out is not None:
            raise _unused("std", "out", out)
        x = self if dtype is None else self.astype(dtype)
        return _xp.std(x, axis=axis, correction=ddof, keepdims=keepdims)

    def var(
        self, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0,
        keepdims: bool = False,
    ) -> Any:  # fmt: skip
        """Variance over axes, with n - ddof in the denominator."""
        if out is not None:
            raise _unused("var", "out", out)
        x = self if dtype is None else self.astype(dtype)
        return _xp.var(x, axis=axis, correction=ddof, keepdims=keepdims)

    def max(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        """The largest element over axes."""
        if out is not None:
            raise _unused("max", "out", out)
        if axis is None and keepdims is False:
            return _xp.max(self)
        return _xp.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        """The smallest element over axes."""
        if out is not None:
            raise _unused("min", "out", out)
        if axis is None and keepdims is False:
            return _xp.min(self)
        return _xp.min(self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: Any = None, out: None = None, *, keepdims: bool = False) -> Any:
        """Position of the largest element."""
        if out is not None:
            raise _unused("argmax", "out", out)
        if axis is None and keepdims is False:
            return _xp.argmax(self)
        return _xp.argmax(self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: Any = None, out: None = None, *, keepdims: bool = False) -> Any:
        """Position of the smallest element."""
        if out is not None:
            raise _unused("argmin", "out", out)
        if axis is None and keepdims is False:
            return _xp.argmin(self)
        return _xp.argmin(self, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        """Whether all elements over axes are true."""
        if out is not None:
            raise _unused("all", "out", out)
        if axis is None and keepdims is False:
            return _xp.all(self)
        return _xp.all(self, axis=axis, keepdims=keepdims)

    def any(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        """Whether any element over axes is true."""
        if out is not None:
            raise _unused("any", "out", out)
        if axis is None and keepdims is False:
            return _xp.any(self)
        return _xp.any(self, axis=axis, keepdims=keepdims)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        """Sums up to each element; over all elements where axis is None."""
        if out is not None:
            raise _unused("cumsum", "out", out)
        return _xp.cumsum(self, axis, dtype)

    def cumprod(self, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        """Products up to each element; over all elements where axis is None."""
        if out is not None:
            raise _unused("cumprod", "out", out)
        return _xp.cumprod(self, axis, dtype)

    def argsort(self, axis: int = -1) -> Any:
        """Positions of the elements in rising order."""
        if axis.__class__ is int and axis == -1:
            return _xp.argsort(self)
        return _xp.argsort(self, axis=axis)

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Any:
        """Where v would go into the array, which is in rising order."""
        values = v if isinstance(v, Value) else _xp.asarray(v)
        if sorter is None and side.__class__ is str and side == "left":
            return _xp.searchsorted(self, values)
        return _xp.searchsorted(self, values, side=side, sorter=sorter)

    def nonzero(self) -> Any:
        """Positions of the elements that are not 0, one array per axis."""
        return _xp.nonzero(self)

    def dot(self, other: Any, /) -> Any:
        """Product with another array: the last axis with the next to last, or the only one."""
        if self.shape and getattr(other, "shape", ()):
            return _xp.matmul(self, other)
        return _xp.multiply(self, other)
