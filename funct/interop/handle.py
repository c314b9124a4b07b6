"""`Array`: a handle on an immutable Tensor. Writing through it makes it hold another value.

No two handles share a cell: `x[i] = v` is `x.value = x.value.at[i].set(v)`, so a view taken before
keeps what it showed, and every other handle keeps its value. The payload may be a tracer; a write
is then an op like any other, and every transform sees through it.

What NumPy's code writes into `np.asarray(x)` the handle holds, too, as clients expect who give it
as `output=`. That ndarray is a copy of the Tensor; until `x[i] = v` the handle takes it for its
value in turn: as it is once nobody can write into it any more, and a copy of it before.

`lift` is the one way in and out: it makes of a function on Tensors the same function on handles.
"""

from __future__ import annotations

import functools
import operator
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from funct import array as plain
from funct import tree
from funct.array import Tensor
from funct.array.methods import Methods
from funct.errors import DTypeError, ShapeError

__all__ = ["Array", "lift", "unwrapped", "wrap", "wrapped"]

new = object.__new__


def unwrapped(x: Any) -> Any:
    """x with a Tensor in the place of every handle, in lists, tuples, dicts and slices too."""
    cls = x.__class__
    if cls is Array:
        return x.value
    if cls is tuple or cls is list:
        return cls([unwrapped(v) for v in x])
    if cls is dict:
        return {k: unwrapped(v) for k, v in x.items()}
    if cls is slice:
        return slice(unwrapped(x.start), unwrapped(x.stop), unwrapped(x.step))
    return x


def wrapped(x: Any) -> Any:
    """x with a new handle in the place of every Tensor, in lists, tuples and named tuples too."""
    if isinstance(x, Tensor):
        return _handle(x)
    if isinstance(x, tuple):
        parts = [wrapped(v) for v in x]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    return [wrapped(v) for v in x] if x.__class__ is list else x


def lift(fun: Callable[..., Any], module: str, name: str) -> Callable[..., Any]:
    """fun on handles: its Tensors in, handles of its Tensors out; signature and text as before.

    Args: module, name: where the new function is found, so that it pickles.
    """

    @functools.wraps(fun, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {k: unwrapped(v) for k, v in kwargs.items()}
        return wrapped(fun(*[unwrapped(a) for a in args], **kwargs))

    call.__module__ = module
    call.__name__, call.__qualname__ = name.rpartition(".")[2], name
    return call


def wrap(x: Any, /) -> Array:
    """A new handle on x: a Tensor, traced or not, another handle, or what `asarray` takes.

    Example:
        >>> import funct.array as xp
        >>> from funct.interop import rebind
        >>> x = xp.zeros(3)
        >>> y = rebind.wrap(x)
        >>> row = y[:2]
        >>> y[1] = 5.0
        >>> y.unwrap().tolist(), row.unwrap().tolist(), x.tolist()
        ([0.0, 5.0, 0.0], [0.0, 0.0], [0.0, 0.0, 0.0])
    """
    x = unwrapped(x)
    return _handle(x if isinstance(x, Tensor) else plain.asarray(x))


def _handle(value: Any) -> Array:
    r = new(Array)
    r._value, r._given = value, None
    return r


def _unary(op: Callable[[Any], Any]) -> Any:
    def method(self: Array, /) -> Array:
        return _handle(op(self.value))

    return method


def _comparison(op: Callable[[Any, Any], Any]) -> Any:
    def method(self: Array, other: Any, /) -> Array:
        return _handle(op(self.value, other.value if other.__class__ is Array else other))

    return method


def _arithmetic(op: Callable[[Any, Any], Any]) -> Any:
    """The three forms of a binary operator: x + y, y + x, and x += y, which keeps x's type."""

    def reflected(self: Array, other: Any, /) -> Array:
        return _handle(op(other, self.value))

    def in_place(self: Array, other: Any, /) -> Array:
        operand = other.value if other.__class__ is Array else other
        _rebind(self, lambda x: _held(op.__name__, x, op(x, operand)))
        return self

    return _comparison(op), reflected, in_place


def _attribute(of: Any) -> Any:
    """An attribute of the Tensor that is no array."""
    get = operator.attrgetter(f"value.{of.fget.__name__}")
    return property(get, doc=of.__doc__)


def _held(name: str, x: Any, y: Any) -> Any:
    """y, which takes the place of x: of its shape, and cast to its dtype."""
    if y.shape != x.shape:
        raise ShapeError(f"{name}: x of shape {x.shape} cannot hold shape {y.shape}")
    if y.dtype == x.dtype:
        return y
    if not np.can_cast(y.dtype, x.dtype, "same_kind"):
        raise DTypeError(f"{name}: x of dtype {x.dtype} cannot hold {y.dtype}")
    return plain.astype(y, x.dtype)


_lock = threading.Lock()


def _rebind(handle: Array, update: Callable[[Any], Any]) -> None:
    """Let the handle hold update(its value).

    Threads that fill one array part by part lose nothing: who comes second updates again.
    """
    while True:
        old = handle.value
        before = handle._value, handle._given
        value = update(old)
        with _lock:
            if handle._value is before[0] and handle._given is before[1]:
                handle._value, handle._given = value, None
                return


def _give(handle: Array) -> Any:
    """An ndarray of the elements; the handle will hold what is written into it."""
    seen = handle._given and handle._given[1]()
    if seen is not None:
        return seen
    value = handle.value
    data = value.__array__(None, True)
    if data.dtype.kind == "V":  # a dtype of ml_dtypes: no buffer format, and no code that writes
        return data
    seen = np.asarray(memoryview(data))  # the base of every view of it, for it is no view itself
    handle._value, handle._given = value, (data, weakref.ref(seen))
    return seen


def _read(handle: Array, data: Any, seen: Any) -> Any:
    """What a handle holds that gave data away."""
    if seen() is not None:
        return plain.asarray(data)
    handle._value, handle._given = plain.asarray(data, copy=False), None
    return handle._value


class Array:
    """An array that may be written into: a handle on a Tensor, which stays as it is.

    It takes whatever a Tensor takes, and gives handles. A pytree whose one leaf is the Tensor, so
    every transform takes functions of handles.
    """

    __slots__ = ("_given", "_value")
    __hash__ = None  # type: ignore[assignment]  # == is elementwise

    _value: Any
    _given: tuple[Any, Any] | None  # memory that NumPy may write into, and who still sees it

    def __new__(cls, x: Any, /) -> Array:
        """The same as `wrap`."""
        return wrap(x)

    @property
    def value(self) -> Any:
        """The Tensor that the handle holds now."""
        given = self._given
        return self._value if given is None else _read(self, *given)

    def unwrap(self) -> Any:
        """The Tensor that the handle holds now."""
        return self.value

    def __funct_array__(self) -> Any:
        return self.value

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        self.value.__array_namespace__(api_version=api_version)  # refuses what it does not know
        return sys.modules["funct.interop.rebind"]

    def __getitem__(self, key: Any, /) -> Array:
        return _handle(self.value[key if key.__class__ is int else unwrapped(key)])

    def __setitem__(self, key: Any, value: Any, /) -> None:
        key, value = unwrapped(key), unwrapped(value)
        _rebind(self, lambda x: x.at[key].set(value))

    __add__, __radd__, __iadd__ = _arithmetic(operator.add)
    __sub__, __rsub__, __isub__ = _arithmetic(operator.sub)
    __mul__, __rmul__, __imul__ = _arithmetic(operator.mul)
    __truediv__, __rtruediv__, __itruediv__ = _arithmetic(operator.truediv)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _arithmetic(operator.floordiv)
    __mod__, __rmod__, __imod__ = _arithmetic(operator.mod)
    __pow__, __rpow__, __ipow__ = _arithmetic(operator.pow)
    __matmul__, __rmatmul__, __imatmul__ = _arithmetic(operator.matmul)
    __and__, __rand__, __iand__ = _arithmetic(operator.and_)
    __or__, __ror__, __ior__ = _arithmetic(operator.or_)
    __xor__, __rxor__, __ixor__ = _arithmetic(operator.xor)
    __lshift__, __rlshift__, __ilshift__ = _arithmetic(operator.lshift)
    __rshift__, __rrshift__, __irshift__ = _arithmetic(operator.rshift)
    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)
    __eq__ = _comparison(operator.eq)
    __ne__ = _comparison(operator.ne)
    __neg__ = _unary(operator.neg)
    __pos__ = _unary(operator.pos)
    __abs__ = _unary(operator.abs)
    __invert__ = _unary(operator.invert)

    def __bool__(self, /) -> bool:
        return bool(self.value)

    def __int__(self, /) -> int:
        return int(self.value)

    def __float__(self, /) -> float:
        return float(self.value)

    def __complex__(self, /) -> complex:
        return complex(self.value)

    def __index__(self, /) -> int:
        return operator.index(self.value)

    def __len__(self, /) -> int:
        return len(self.value)

    def __iter__(self, /) -> Iterator[Array]:
        return map(_handle, iter(self.value))

    def __repr__(self) -> str:
        return f"rebind.wrap({self.value!r})"

    def _repr_html_(self) -> str | None:
        html = getattr(self.value, "_repr_html_", None)
        return html and html()

    def __format__(self, spec: str, /) -> str:
        return format(self.value, spec) if spec else repr(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return wrap, (self.value,)  # copy and deepcopy too: a new handle on the same value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is None and (dtype is None or np.dtype(dtype) == self.dtype):
            return _give(self)
        return self.value.__array__(dtype, copy)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        return self.value.__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.value.__dlpack_device__()

    @property
    def at(self) -> Updates:
        """The functional updates of a Tensor: `x.at[key].set(v)` is a new handle, x stays."""
        return Updates(self.value.at)

    shape = _attribute(Tensor.shape)
    dtype = _attribute(Tensor.dtype)
    ndim = _attribute(Tensor.ndim)
    size = _attribute(Tensor.size)
    device = _attribute(Tensor.device)

    @property
    def T(self) -> Array:
        """Transpose of a 2-D array."""
        return _handle(self.value.T)

    @property
    def mT(self) -> Array:
        """The last two axes exchanged."""
        return _handle(self.value.mT)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        """A handle on the array on another device."""
        return _handle(self.value.to_device(device, stream=stream))

    def item(self) -> bool | int | float | complex:
        """The only element as a Python number."""
        return self.value.item()

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        return self.value.tolist()


for _name, _member in vars(Methods).items():  # sum, reshape, real, __array_ufunc__, ...
    if _name in vars(Array):
        continue
    if isinstance(_member, FunctionType):
        setattr(Array, _name, lift(_member, __name__, f"Array.{_name}"))
    elif isinstance(_member, property) and _member.fget is not None:
        setattr(Array, _name, property(lift(_member.fget, __name__, f"Array.{_name}")))


class Updates:
    """`x.at` of a handle: the Tensor's own, lifted."""

    __slots__ = ("_at",)

    def __init__(self, at: Any) -> None:
        self._at = at

    def __getitem__(self, key: Any) -> Updates:
        return Updates(self._at[unwrapped(key)])

    def __getattr__(self, name: str) -> Any:
        return lift(getattr(self._at, name), __name__, name)


def _flatten(x: Any) -> tuple[tuple[Any], None, tuple[str]]:
    return (x.value,), None, ("value",)


def _unflatten(static: None, children: Any) -> Array:
    (value,) = children
    return _handle(value)  # not checked: a leaf may be anything


tree.register(Array, _flatten, _unflatten)
