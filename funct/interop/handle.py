"""`Array`: a handle on an immutable Tensor. Writing through it makes it hold another value.

`x[i] = v` is `x.value = x.value.at[i].set(v)`. The payload may be a tracer; a write is then an op
like any other, and every transform sees through it.

What NumPy gives as a view is one here: a handle that holds no Tensor, but knows another handle and
a look at it (`looks.py`). It shows what the look shows of the other's value now, and a write into
it is one into the other. Nobody else shares a value.

What NumPy's code writes into `np.asarray(x)` the handle holds, too (`memory.py`).

`lift` is the one way in and out: it makes of a function on Tensors the same function on handles.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from funct import array as plain
from funct import tree
from funct.array import Tensor
from funct.array.methods import Methods
from funct.errors import DTypeError, ShapeError, UnsupportedOperandError
from funct.interop.looks import ITSELF, LOOKS, Key, Look, Order, View, is_basic
from funct.interop.memory import LOCK, give
from funct.source import known_as

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

    Where NumPy's function gives views, so does this one; `out` of a method may be a handle.

    Args: module, name: where the new function is found, so that it pickles.
    """
    looked = LOOKS.get(name)

    @functools.wraps(fun, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            out = kwargs.get("out")
            if out.__class__ is Array:
                return _into(out, name, call(*args, **{**kwargs, "out": None}))
            kwargs = {k: unwrapped(v) for k, v in kwargs.items()}
        given = [unwrapped(a) for a in args]
        result = fun(*given, **kwargs)
        if looked is None or not args or args[0].__class__ is not Array:
            return wrapped(result)
        whole, *rest = given

        def again(x: Any) -> Any:
            return fun(x, *rest, **kwargs)

        base = args[0]
        return _viewed(base, looked(whole, result, again, kwargs, base._source), whole, result)

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
        >>> part = y[:2]
        >>> part[1] = 5.0
        >>> y.unwrap().tolist(), part.unwrap().tolist(), x.tolist()
        ([0.0, 5.0, 0.0], [0.0, 5.0], [0.0, 0.0, 0.0])
    """
    x = unwrapped(x)
    return _handle(x if isinstance(x, Tensor) else plain.asarray(x))


known_as(wrap, "wrap")


def _handle(value: Any) -> Array:
    r = new(Array)
    r._value, r._source = value, None
    return r


def _view(base: Array, look: Look, whole: Any, part: Any) -> Array:
    """A handle on part, which look shows of the base's value whole."""
    r = new(Array)
    r._value, r._source = None, View(base, look, whole, part)
    return r


def _viewed(base: Array, look: Any, whole: Any, part: Any) -> Any:
    """What a function gave of a handle, as look says: a view, several, itself, or none."""
    if look is None:
        return wrapped(part)
    if look is ITSELF:
        return base
    if look.__class__ is tuple:
        return tuple([_view(base, k, whole, p) for k, p in zip(look, part, strict=True)])
    return _view(base, look, whole, part)


def _unary(op: Callable[[Any], Any]) -> Any:
    def method(self: Array, /) -> Array:
        return _handle(op(self.value))

    return method


def _comparison(op: Callable[[Any, Any], Any]) -> Any:
    def method(self: Array, other: Any, /) -> Any:
        return wrapped(op(self.value, other.value if other.__class__ is Array else other))

    return method


def _arithmetic(op: Callable[[Any, Any], Any]) -> Any:
    """The three forms of a binary operator: x + y, y + x, and x += y, which keeps x's type."""

    def reflected(self: Array, other: Any, /) -> Any:
        return wrapped(op(other, self.value))

    def in_place(self: Array, other: Any, /) -> Array:
        operand = other.value if other.__class__ is Array else other
        _rebind(self, lambda x: _held(op.__name__, x, op(x, operand)))
        return self

    return _comparison(op), reflected, in_place


_matrix_transpose = operator.attrgetter("mT")


def _attribute(of: Any) -> Any:
    """An attribute of the Tensor that is no array."""
    get = operator.attrgetter(f"value.{of.fget.__name__}")
    return property(get, doc=of.__doc__)


def _held(name: str, x: Any, y: Any) -> Any:
    """y, which takes the place of x: of its shape, and cast to its dtype."""
    if not isinstance(y, Tensor):  # the answer of an operand that knows more than elements
        raise UnsupportedOperandError(f"{name}: x cannot hold a {type(y).__name__}")
    if y.shape != x.shape:
        raise ShapeError(f"{name}: x of shape {x.shape} cannot hold shape {y.shape}")
    if y.dtype == x.dtype:
        return y
    if not np.can_cast(y.dtype, x.dtype, "same_kind"):
        raise DTypeError(f"{name}: x of dtype {x.dtype} cannot hold {y.dtype}")
    return plain.astype(y, x.dtype)


def _into(out: Any, name: str, result: Any) -> Any:
    """out, a handle, which holds the result from now on."""
    value = wrap(result).value
    _rebind(out, lambda x: _held(name, x, value))
    return out


def _rebind(handle: Array, update: Callable[[Any], Any]) -> None:
    """Let the handle hold update(its value).

    Threads that fill one array part by part lose nothing: who comes second updates again.
    """
    source = handle._source
    if source.__class__ is View:  # and always will be
        look = source.look
        _rebind(source.base, lambda whole: look.put(whole, update(look.get(whole))))
        return
    while True:
        before = handle._value, handle._source
        value = update(handle.value)
        with LOCK:
            if handle._value is before[0] and handle._source is before[1]:
                handle._value, handle._source = value, None
                return


class Array:
    """An array that may be written into: a handle on a Tensor, which stays as it is.

    It takes whatever a Tensor takes, and gives handles. A pytree whose one leaf is the Tensor, so
    every transform takes functions of handles.
    """

    __slots__ = ("_source", "_value")
    __hash__ = None  # type: ignore[assignment]  # == is elementwise

    _value: Any
    _source: Any  # None, or where the value comes from: View or Given

    def __new__(cls, x: Any, /) -> Array:
        """The same as `wrap`."""
        return wrap(x)

    @property
    def value(self) -> Any:
        """The Tensor that the handle holds now."""
        source = self._source
        return self._value if source is None else source.value(self)

    def unwrap(self) -> Any:
        """The Tensor that the handle holds now."""
        return self.value

    def __funct_array__(self) -> Any:
        return self.value

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        self.value.__array_namespace__(api_version=api_version)  # refuses what it does not know
        return sys.modules["funct.interop.rebind"]

    def __getitem__(self, key: Any, /) -> Array:
        if key.__class__ is not int:
            key = unwrapped(key)
        whole = self.value
        part = whole[key]
        return _view(self, Key(key), whole, part) if is_basic(key, part) else _handle(part)

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

    def __divmod__(self, other: Any, /) -> tuple[Array, Array]:
        return self // other, self % other

    def __rdivmod__(self, other: Any, /) -> tuple[Array, Array]:
        return other // self, other % self

    def __round__(self, ndigits: int | None = None, /) -> Array:
        return _handle(round(self.value, ndigits))

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
        whole = self.value
        parts = iter(whole)
        if whole.ndim == 1:
            return map(_handle, parts)
        return (_view(self, Key(i), whole, part) for i, part in enumerate(parts))

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
            return give(self)
        return self.value.__array__(dtype, copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        outs = kwargs.pop("out", ())
        if method == "at" and inputs[0].__class__ is Array:
            inputs = (np.asarray(inputs[0]), *inputs[1:])  # written into
        options = {k: unwrapped(v) for k, v in kwargs.items()}
        into = any(o.__class__ is Array for o in outs)
        if outs and not into:
            options["out"] = outs
        result = wrapped(getattr(ufunc, method)(*[unwrapped(x) for x in inputs], **options))
        if not into:
            return result
        results = result if ufunc.nout > 1 else (result,)
        held = [
            r if o is None else _into(o, ufunc.__name__, r)
            for o, r in zip(outs, results, strict=True)
        ]
        return tuple(held) if ufunc.nout > 1 else held[0]

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
        whole = self.value
        return _view(self, Order(_matrix_transpose), whole, whole.T)

    @property
    def mT(self) -> Array:
        """The last two axes exchanged."""
        whole = self.value
        return _view(self, Order(_matrix_transpose), whole, whole.mT)

    def item(self) -> bool | int | float | complex:
        """The only element as a Python number."""
        return self.value.item()

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        return self.value.tolist()


_MEMBERS = {"to_device": Tensor.to_device, **vars(Methods)}
for _name, _member in _MEMBERS.items():  # sum, reshape, real, __array_ufunc__, ...
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
