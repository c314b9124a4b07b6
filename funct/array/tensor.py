"""`Tensor`: what every array has, traced or not; `Array`: one immutable buffer.

`Ground` is level 0, the interpreter that computes. Tracers of the transforms derive from Tensor, so
`x.__array_namespace__()` is `funct.array` for all of them and client code runs unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import FunctionType, ModuleType
from typing import Any, ClassVar, NoReturn

import numpy as np

from funct import ops
from funct.array import reading
from funct.array.device import CPU, Device, as_device
from funct.array.exchange import Exchange
from funct.array.indexing import index
from funct.array.methods import Methods
from funct.array.operands import OpenOperandError, bare
from funct.array.operators import Operators, matmul
from funct.array.updates import At, make_at
from funct.core import (
    FLOATING,
    INEXACT,
    NARROW,
    Level,
    Primitive,
    Region,
    Shape,
    bind,
    narrow_operands,
)
from funct.errors import (
    ArgumentError,
    ConcretizationError,
    DTypeError,
    FunctError,
    ImmutableError,
    RangeError,
    ShapeError,
    UnsupportedOperandError,
)
from funct.kernels.manipulation import reshape
from funct.ops import fast
from funct.ops.fast import adopt, wrap
from funct.ops.refusals import explain, out_of_memory, shown
from funct.source import known_as

__all__ = ["Array", "Ground", "Tensor"]

_VERSIONS = ("2023.12", "2024.12", "2025.12")

_FEW = 256  # elements that may all be made when the first is asked for


class Tensor(Operators, Methods):
    """Any array: concrete (`Array`) or traced. Immutable.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> kinds = []
        >>> _ = ft.jit(lambda x: kinds.append(type(x).__name__) or 2.0 * x)(xp.ones(2))
        >>> kinds, isinstance(xp.ones(2), xp.Tensor)
        (['GraphTracer'], True)
    """

    __slots__ = ()

    value: Any  # what a tracer stands for, one level down

    def __getitem__(self, key: Any, /) -> Tensor:
        return index(self, key)

    def __setitem__(self, key: Any, value: Any, /) -> NoReturn:
        raise ImmutableError("x[...] = v: Tensors are immutable", fix="x = x.at[...].set(v)")

    def __delitem__(self, key: Any, /) -> NoReturn:
        raise ImmutableError("del x[...]: Tensors are immutable")

    @property
    def at(self) -> At:
        """Functional updates: `x.at[key].set(v)`, add, multiply, divide, power, min, max, get."""
        r = make_at(None)
        r._x, r._key = self, None
        return r

    def __bool__(self, /) -> bool:
        return bool(self.value)  # a tracer asks the value one level down

    def __int__(self, /) -> int:
        return int(self.value)

    def __float__(self, /) -> float:
        return float(self.value)

    def __complex__(self, /) -> complex:
        return complex(self.value)

    def __index__(self, /) -> int:
        return int(self.value.__index__())

    def __copy__(self) -> Tensor:
        return self  # immutable

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self

    def concrete(self) -> Any:
        """The elements as an ndarray, for what cannot be computed on tracers."""
        return self.value.concrete()

    def __len__(self, /) -> int:
        if not self.shape:
            raise UnsupportedOperandError("len: a 0-d array has no length")  # as Python: TypeError
        return self.shape[0]

    def __iter__(self, /) -> Iterator[Tensor]:
        return iter([self[i] for i in range(len(self))])

    def item(self) -> bool | int | float | complex:
        """The only element as a Python number."""
        if any(n != 1 for n in self.shape):
            raise ShapeError(f"item: the array must have one element, got shape {self.shape}")
        x = self if not self.shape else ops.reshape(self, ())
        if x.dtype in FLOATING:
            return float(x)
        return complex(x) if x.dtype in INEXACT else bool(x) if x.dtype == np.bool_ else int(x)

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        try:
            return self.concrete().tolist()
        except MemoryError as error:
            raise out_of_memory("tolist", error) from None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise _cut("__array__", "an ndarray")

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Refused: a tracer has no buffer to give away."""
        raise _cut("__dlpack__", "a buffer")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __reduce__(self) -> Any:
        raise _cut("pickle", "bytes")

    @property
    def shape(self) -> Shape:
        """Lengths of the axes."""
        return self.value.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""
        return self.value.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        n = 1
        for k in self.shape:
            n = n * k
        return n

    @property
    def device(self) -> Device:
        """Where the elements lie."""
        return self.value.device

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """The array on another device; itself where it is there already.

        Its derivative goes the way back. Raises: ArgumentError: without such a device, and for a
        stream: copies are ordered by the library's current one. MissingExtraError: without CuPy.
        """
        source, target = self.device, as_device("to_device", device)
        if stream is not None:
            raise ArgumentError(f"to_device: stream must be None, got {shown(stream)}")
        return self if source == target else ops.to_device(self, source.name, target.name)

    @property
    def T(self) -> Tensor:
        """Transpose of a 2-D array."""
        if len(self.shape) != 2:
            raise ShapeError(
                f"T: x must be 2-D, got shape {self.shape}", fix="use mT or permute_dims"
            )
        return ops.permute_dims(self, (1, 0))

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        if len(self.shape) < 2:
            raise ShapeError(f"mT: x must have at least 2 axes, got shape {self.shape}")
        return ops.swap_last(self)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        if api_version is not None and api_version not in _VERSIONS:
            raise ArgumentError(
                f"__array_namespace__: api_version must be one of {', '.join(_VERSIONS)} "
                f"or None, got {api_version!r}"
            )
        return sys.modules["funct.array"]


def _cut(name: str, what: str) -> ConcretizationError:
    return ConcretizationError(
        f"{name}: a traced array cannot become {what}: what is computed there would be a constant "
        "to the transform",
        fix="compute with funct.array",
    )


class Ground(Level):
    """Level 0: unwrap, compute, wrap."""

    __slots__ = ()
    transforms: ClassVar[bool] = False

    def __init__(self) -> None:
        self.serial = 0
        self.open = True
        self.label = ""
        self.fun = None

    def run(self, prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """Compute the op on buffers."""
        try:
            raws = [a.data if a.__class__ is Array else bare(prim.name, a) for a in args]
            d = prim.raw(*narrow_operands(raws), *params)
        except OpenOperandError as found:
            return bind(prim, found.lifted(args), params)
        except FunctError:  # with its cause
            raise
        except Exception as error:
            raise explain(prim, args, params, error) from None
        if prim.results == 1:
            out = wrap(d)
            if out.dtype.kind == "O":  # of Python's integers alone
                raise RangeError(f"{prim.name}: an integer does not fit in 64 bits")
            return out
        return tuple([wrap(r) for r in d])

    def region(self, region: Region, args: Sequence[Any]) -> tuple[Any, ...]:
        """Run the function."""
        return region.run(*args)


class Array(Exchange, Tensor):
    """One immutable buffer, at level 0.

    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([1.0, 2.0])
        >>> x.at[0].set(5.0).tolist(), x.tolist()
        ([5.0, 2.0], [1.0, 2.0])
        >>> x[0] = 5.0  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
            ...
        funct.errors.ImmutableError: x[...] = v: Tensors are immutable
    """

    __slots__ = ("data",)  # weak references would take 8 bytes each, and iteration 5 % longer
    data: Any
    level = Ground()

    def __new__(cls, *args: Any, **kwargs: Any) -> Array:
        """Refused; arrays are made by `asarray`, `zeros` and the like."""
        raise UnsupportedOperandError(
            "Array: the class cannot be called", fix="use funct.array.asarray"
        )

    @property
    def shape(self) -> Shape:
        """Lengths of the axes."""
        return self.data.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.data.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.data.size

    @property
    def device(self) -> Device:
        """The host."""
        return CPU

    def __getitem__(self, key: Any, /) -> Tensor:
        return reading.read(self, key)

    def __iter__(self, /) -> Iterator[Tensor]:
        if not self.data.ndim:
            return super().__iter__()
        return iter(reading.rows(self)) if len(self.data) <= _FEW else map(wrap, self.data)

    def reshape(self, *shape: Any, copy: bool | None = None, order: str = "C") -> Tensor:
        """The elements in another shape, given as one tuple or as several ints."""
        if copy is None:
            try:
                given = shape[0] if len(shape) == 1 else shape
                d = reshape(self.data, given) if order == "C" else None
            except Exception:
                d = None  # refused by name
            if d is not None:
                r = fast.make(None)
                r.data = d
                return r
        return super().reshape(*shape, copy=copy, order=order)

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """The array with two axes exchanged."""
        try:
            return wrap(self.data.swapaxes(axis1, axis2))
        except Exception:
            return super().swapaxes(axis1, axis2)  # which refuses by name

    def squeeze(self, axis: Any = None) -> Tensor:
        """Without axes of length 1: all of them, or those given."""
        return wrap(self.data.squeeze()) if axis is None else super().squeeze(axis)

    def dot(self, other: Any, /) -> Tensor:
        """Product with another array: the last axis with the next to last, or the only one."""
        if other.__class__ is Array and self.data.ndim and other.data.ndim:
            return matmul(self, other)
        return super().dot(other)

    @property
    def T(self) -> Tensor:
        """Transpose of a 2-D array."""
        return wrap(self.data.T) if self.data.ndim == 2 else super().T

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        return wrap(self.data.mT) if self.data.ndim > 1 else super().mT

    def item(self) -> bool | int | float | complex:
        """The only element as a Python number."""
        d = self.data
        return d.item() if d.size == 1 and d.dtype not in NARROW else super().item()

    def _number(self, name: str) -> Any:
        if self.data.size != 1:
            raise ShapeError(
                f"{name}: the array must have one element, got shape {self.data.shape}"
            )
        return self.data.item()

    def __bool__(self, /) -> bool:
        return bool(self._number("bool"))

    def __int__(self, /) -> int:
        v = self._number("int")
        try:
            return int(v)
        except (TypeError, ValueError, OverflowError) as error:
            raise _no_number("int", v, error) from None

    def __float__(self, /) -> float:
        v = self._number("float")
        try:
            return float(v)
        except TypeError as error:
            raise _no_number("float", v, error) from None

    def __complex__(self, /) -> complex:
        return complex(self._number("complex"))

    def __index__(self, /) -> int:
        if self.data.ndim or self.data.dtype.kind not in "iu":
            raise UnsupportedOperandError(
                "index: only a 0-d array of integers is an index, got "
                f"shape {self.data.shape} and dtype {self.data.dtype}"
            )
        return int(self.data)

    def concrete(self) -> Any:
        """The buffer."""
        return self.data

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis; 0 where an axis is repeated.

        Only an Array has a layout. Functions that move no element (`permute_dims`, slices,
        `expand_dims`, `squeeze`, `flip`, `broadcast_to`, `moveaxis`, `unstack`, and `reshape` of
        contiguous elements) are views of the same buffer.
        """
        return self.data.strides

    def is_contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps."""
        return bool(self.data.flags.c_contiguous)


def _no_number(name: str, v: Any, error: Exception) -> FunctError:
    kinds: dict[type, type[FunctError]] = {ValueError: ArgumentError, OverflowError: RangeError}
    return kinds.get(type(error), DTypeError)(f"{name}: {v} cannot be converted: {error}")


adopt(Array, Array.level)
for _class in (Methods, Tensor, Array):
    for _name, _fun in vars(_class).items():
        if isinstance(_fun, FunctionType) and not _name.startswith("_"):
            known_as(_fun, _name)
