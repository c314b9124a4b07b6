"""`GraphTracer`: a value while it is captured, and the call that would compute it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.array import Device, Tensor
from funct.array.device import CPU
from funct.core import open_shape, size_values
from funct.errors import UnknownValueError
from funct.graph.ir import Var

if TYPE_CHECKING:
    from funct.graph.capture import Capture

__all__ = ["UNKNOWN", "GraphTracer", "Pending"]

UNKNOWN = object()


class Pending:
    """A call whose values nobody has asked for yet."""

    __slots__ = ("args", "params", "run", "values")

    def __init__(
        self, run: Callable[..., Any], args: Sequence[Any], params: tuple[Any, ...]
    ) -> None:
        self.run = run
        self.args = args
        self.params = params
        self.values: tuple[Any, ...] | None = None

    def needs(self, level: Capture) -> list[Pending]:
        """The calls of that level whose values it waits for."""
        mine = [a for a in self.args if a.__class__ is GraphTracer and a.level is level]
        calls = [a.call() for a in mine if a.have is UNKNOWN]
        return [c for c in calls if c.values is None]

    def compute(self, level: Capture) -> None:
        """Compute the values one level down; operands of that level must be known."""
        mine = [a.__class__ is GraphTracer and a.level is level for a in self.args]
        args = [a.settled() if m else a for a, m in zip(self.args, mine, strict=True)]
        out = self.run(*args, *size_values(self.params))
        self.values = out if isinstance(out, tuple) else (out,)


class GraphTracer(Tensor):
    """A value while it is captured."""

    __slots__ = (
        "__weakref__", "_aval_dtype", "_aval_shape", "have", "index", "level", "pending", "ref",
    )  # fmt: skip
    level: Capture

    def __init__(
        self, level: Capture, var: Var, have: Any, pending: Pending | None, index: int
    ) -> None:
        self.level = level
        self.ref = var
        self.have = have
        self.pending = pending
        self.index = index
        self._aval_shape = open_shape(var.shape)
        self._aval_dtype = var.dtype

    @classmethod
    def unknown(cls, level: Capture, var: Var) -> GraphTracer:
        """An input without a value: asking for one is an error."""
        return cls(level, var, UNKNOWN, None, 0)

    @property
    def shape(self) -> Any:
        """Shape, symbolic sizes included."""
        return self._aval_shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type."""
        return self._aval_dtype

    @property
    def device(self) -> Device:
        """The host: arrays on other devices are not captured."""
        return CPU

    @property
    def value(self) -> Any:
        """The concrete value one level down, computed now if it was not yet known."""
        return self.have if self.have is not UNKNOWN else self.level.value_of(self)

    def __getitem__(self, key: Any, /) -> Tensor:
        mask = self.level.decides and isinstance(key, Tensor) and key.dtype == bool
        return self.level.chosen(self, key) if mask else super().__getitem__(key)

    def call(self) -> Pending:
        """The call that it waits for."""
        if self.pending is None:
            raise UnknownValueError(
                f"{self.level.label}: the result depends on a value, and only shapes are known",
                fix="choose by where or cond, loop by while_loop or scan",
            )
        return self.pending

    def settled(self) -> Any:
        """The value, whose call has been computed."""
        if self.have is UNKNOWN:
            values = self.call().values
            assert values is not None
            self.have = values[self.index]
            self.pending = None
        return self.have

    def _decide(self, kind: Any, ask: Callable[[Any], Any]) -> Any:
        seen = ask(self.value)  # the value decides, the graph remembers
        self.level.guard(kind, self.ref, seen)
        return seen

    def __bool__(self, /) -> bool:
        return bool(self._decide("bool", bool))

    def __int__(self, /) -> int:
        return int(self._decide("int", int))

    def __float__(self, /) -> float:
        return float(self._decide("float", float))

    def __complex__(self, /) -> complex:
        return complex(self._decide("complex", complex))

    def __index__(self, /) -> int:
        return int(self._decide("index", lambda v: v.__index__()))

    def concrete(self) -> Any:
        """All elements; the graph holds for these alone."""
        return self._decide("array", lambda v: v.concrete())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The elements, for code that nothing is written down of; the graph holds for these alone.

        ConcretizationError where a transform below would not see what is computed there.
        """
        self._decide("ndarray", np.asarray)
        return self.value.__array__(dtype, copy)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The elements as a buffer, on the same terms."""
        self._decide("ndarray", np.asarray)
        return self.value.__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __repr__(self) -> str:
        return f"GraphTracer({self.ref.name}: {self.ref.dtype}{list(self.ref.shape)})"
