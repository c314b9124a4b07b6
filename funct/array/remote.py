"""Arrays on other devices: `Remote`, and `Away`, the level that computes on them.

An op whose operand is a Remote never takes a fast path, for it is no `Array`; `bind` hands it to
the level of the device, which stands between level 0 and every transform. That level calls the op's
one implementation: NumPy's functions, given buffers of another library, are that library's own.
Where they are not, the op is computed on the host, and a warning says so.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from funct.array.device import CPU, Device
from funct.array.tensor import Array, Tensor
from funct.core import Level, Primitive, Region, Shape, Size, Value, narrow_operands
from funct.device.places import Place, place_of
from funct.errors import (
    ArgumentError,
    ExchangeError,
    FallbackWarning,
    UnsupportedOperandError,
)
from funct.kernels.elsewhere import ADDING, ELSEWHERE
from funct.ops.fast import adopt_remote, wrap
from funct.ops.refusals import explain

__all__ = ["Away", "Remote", "is_remote"]


class Away(Level):
    """Level 0 of one device: unwrap, compute there, wrap."""

    __slots__ = ("place", "warned")
    transforms: ClassVar[bool] = False

    def __init__(self, place: Place) -> None:
        self.serial = _BELOW_TRANSFORMS
        self.open = True
        self.label = ""
        self.fun = None
        self.place = place
        self.warned: set[str] = set()

    def run(self, prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """Compute the op on the device; on the host, with one warning, what it has no way for."""
        raws = narrow_operands([self._buffer(prim, i, a) for i, a in enumerate(args)])
        with self.place.active():
            try:
                d = self._compute(prim, raws, params)
            except (AttributeError, NotImplementedError, TypeError) as refusal:
                d = self._on_the_host(prim, args, raws, params, refusal)
            except Exception as error:
                raise explain(prim, args, params, error) from None
        if prim.name == "to_device":
            return wrap(d)
        return self._kept(d) if prim.results == 1 else tuple(map(self._kept, d))

    def _kept(self, d: Any) -> Any:
        """A result as an array here: sizes and keys may have been computed on the host."""
        return wrap(d if d.__class__ is self.place.buffer else self.place.put(np.asarray(d)))

    def _compute(self, prim: Primitive, raws: Sequence[Any], params: tuple[Any, ...]) -> Any:
        if prim.fn.__module__.startswith("funct.ops.special."):  # SciPy's functions, SciPy's names
            kernel = self.place.special(prim.name)
            if kernel is not None:
                return kernel(*raws, *params)
        if prim.name in ADDING:
            return ADDING[prim.name](self.place.add_at, *raws, *params)
        return ELSEWHERE.get(prim.name, prim.raw)(*raws, *params)

    def _on_the_host(
        self,
        prim: Primitive,
        args: Sequence[Any],
        raws: Sequence[Any],
        params: tuple[Any, ...],
        refusal: Exception,
    ) -> Any:
        there = self.place.buffer
        try:
            near = [self.place.get(r) if r.__class__ is there else r for r in raws]
            d = prim.raw(*near, *params)
        except Exception as error:
            raise explain(prim, args, params, error) from None
        if prim.name not in self.warned:
            self.warned.add(prim.name)
            warnings.warn(
                f"{prim.name}: computed on the host, for {self.place.name} has no way: {refusal}",
                FallbackWarning,
                stacklevel=2,
            )
        return d

    def region(self, region: Region, args: Sequence[Any]) -> tuple[Any, ...]:
        """Run the function."""
        return region.run(*args)

    def _buffer(self, prim: Primitive, i: int, a: Any) -> Any:
        """The operand's buffer here. From the host come indices, and arrays of one number alone."""
        if a.__class__ is Remote and a.level is self:
            return a.data
        if a.__class__ is Array:
            if not any(a.data.strides):
                one = a.data[(0,) * a.data.ndim] if a.data.size else np.zeros((), a.data.dtype)
                return np.broadcast_to(self.place.put(np.asarray(one)), a.data.shape)
            if prim.rules[i] is None and a.data.dtype.kind in "iu":
                return self.place.put(a.data)
        if isinstance(a, Value):
            name = prim.operands[i]
            raise ArgumentError(
                f"{prim.name}: {name} is on {a.device}, another operand on {self.place.name}",  # type: ignore[attr-defined]
                fix=f"{name}.to_device({self.place.name!r})",
            )
        return a.__index__() if isinstance(a, Size) else a


_BELOW_TRANSFORMS: Any = 0.5  # births count from 1


@functools.cache
def _away(place: Place) -> Away:
    return Away(place)


class Remote(Tensor):
    """One immutable buffer on a device that is not the host."""

    __slots__ = ("data", "level")
    data: Any
    level: Away

    def __new__(cls, *args: Any, **kwargs: Any) -> Remote:
        """Refused; arrays are made by `asarray`, `zeros` and the like."""
        raise UnsupportedOperandError(
            "Remote: the class cannot be called", fix="use funct.array.asarray(x, device=...)"
        )

    @property
    def shape(self) -> Shape:
        """Lengths of the axes."""
        return tuple(self.data.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""
        return np.dtype(self.data.dtype)

    @property
    def device(self) -> Device:
        """Where the buffer lies."""
        return Device(self.level.place.name)

    @property
    def value(self) -> Any:
        """The elements, taken to the host: numbers and decisions are asked of them."""
        return wrap(self.level.place.get(self.data))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise UnsupportedOperandError(
            f"__array__: the elements lie on {self.device}, and are not copied in silence",
            fix="x.to_device('cpu')",
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self.data.__dlpack_device__()
        return int(kind), int(number)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule for `from_dlpack`: a copy that the consumer may write into.

        copy=False is refused: devices' libraries mark no buffer as read-only.
        """
        if copy is False:
            raise ExchangeError(f"__dlpack__: an array on {self.device} is given as a copy only")
        if dl_device is not None and (int(dl_device[0]), dl_device[1]) == (1, 0):
            return self.value.__dlpack__(max_version=max_version)
        if dl_device not in (None, self.__dlpack_device__()):
            raise ExchangeError(f"__dlpack__: the array is on {self.device}, not on {dl_device}")
        with self.level.place.active():
            return self.data.copy().__dlpack__(stream=stream)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.value, self.level.place.name)

    def __repr__(self) -> str:
        return f"{repr(self.value)[:-1]}, device={self.device})"


def is_remote(x: Any) -> bool:
    """Whether x is an array, traced or not, whose elements lie on another device than the host."""
    return isinstance(x, Tensor) and x.device is not CPU


def _restored(x: Any, device: str) -> Any:
    return x.to_device(device)


def _remote(buffer: Any) -> Any:
    r = object.__new__(Remote)
    r.data, r.level = buffer, _away(place_of(buffer))
    return r


adopt_remote(_remote)
