"""Levels and `bind`: an op goes to the highest level among its operands. The data alone decides.

A level is one run of one transform, and the interpreter of the tracers that run made. Its order is
its birth number from one process-wide counter. It is closed when its transform returns; a tracer
that outlives its level is recognised at its next use.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from funct.core.foreign import ask
from funct.core.region import Met
from funct.core.value import Value
from funct.errors import EscapedTracerError, TransformError
from funct.source import known_as_op

if TYPE_CHECKING:
    from funct.core.primitive import Primitive
    from funct.core.region import Region

__all__ = [
    "Level",
    "Ways",
    "bind",
    "bind1",
    "bind2",
    "bind_region",
    "general",
    "expect_below",
    "ground_level",
    "handed_on",
    "set_ground",
    "top_level",
    "usable",
]

birth = itertools.count(1).__next__


class Level:
    """One run of one transform. Subclasses interpret primitives (`run`) and regions (`region`).

    open: False once its transform has returned. While the body of a branch or a loop is written
    down it is, for the levels around it, the level that writes: what is done to their tracers is
    done in the body. So it is where another level goes on for this one (`handed_on`).
    """

    __slots__ = ("label", "open", "serial", "fun")

    label: str
    open: bool | Level
    serial: int
    fun: Callable[..., Any] | None

    transforms: ClassVar[bool] = True  # False for the ground alone
    computes: ClassVar[bool] = False  # whether `value` of its tracers is there, and no guard's

    def __init__(self, label: str, fun: Callable[..., Any] | None = None) -> None:
        self.serial = birth()
        self.open = True
        self.label = label
        self.fun = fun

    def run(self, prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """Interpret one primitive; at least one of args is a tracer of this level."""
        raise NotImplementedError(f"{type(self).__name__} must define run")

    def region(self, region: Region, args: Sequence[Any]) -> tuple[Any, ...]:
        """Interpret a call of a function that carries its own rules."""
        raise NotImplementedError(f"{type(self).__name__} must define region")


_ground: Level


def set_ground(level: Level) -> None:
    """Install level 0, the one that computes. Called once, by the array package."""
    global _ground
    _ground = level


def ground_level() -> Level:
    """Level 0."""
    return _ground


def top_level(args: Sequence[Any]) -> Level:
    """The highest level among args; the ground where none is a Value."""
    top, serial = _ground, 0
    for a in args:
        if isinstance(a, Value):
            level = a.level
            if level.serial > serial:
                top, serial = level, level.serial
    return top


def escaped(name: str, level: Level) -> NoReturn:
    """Raise the error for an operand whose transform has returned."""
    code = getattr(level.fun, "__code__", None)
    made = f" of {level.fun.__name__}" if level.fun is not None and code is not None else ""
    where = f" ({code.co_filename.rsplit('/', 1)[-1]}:{code.co_firstlineno})" if code else ""
    raise EscapedTracerError(
        f"{name}: an operand was made inside {level.label}{made}{where}, which has returned",
        fix=f"return the value from the function given to {level.label} instead of storing it",
    )


def usable(name: str, level: Level) -> Level:
    """The level itself, or the one that takes what is done to its tracers now."""
    while isinstance(level.open, Level):
        level = level.open
    if not level.open:
        escaped(name, level)
    return level


def bind(prim: Primitive, args: Sequence[Any], params: tuple[Any, ...] = ()) -> Any:
    """Give the op to the highest level among the operands."""
    level = top_level(args)
    if level.open is not True:
        level = usable(prim.name, level)
    return level.run(prim, args, params)


def bind1(prim: Primitive, x: Any, params: tuple[Any, ...] = ()) -> Any:
    """`bind` for one operand."""
    level = x.level if isinstance(x, Value) else _ground
    if level.open is not True:
        level = usable(prim.name, level)
    return level.run(prim, (x,), params)


_PLAIN = {bool, int, float, complex, np.ndarray}  # what level 0 takes beside Values


def bind2(prim: Primitive, x: Any, y: Any, params: tuple[Any, ...] = ()) -> Any:
    """`bind` for two operands."""
    level = x.level if isinstance(x, Value) else _ground
    if isinstance(y, Value):
        other = y.level
        if other.serial > level.serial:
            level = other
    elif y.__class__ not in _PLAIN and (answer := ask(prim.name, x, y)) is not NotImplemented:
        return answer
    if level.open is not True:
        level = usable(prim.name, level)
    return level.run(prim, (x, y), params)


for _bind in (bind, bind1, bind2):
    known_as_op(_bind)


class Ways(dict["Primitive", Callable[..., Any]]):
    """`Value.ways`: what `make` gives for a primitive that has come often; else `bind`."""

    def __init__(self, make: Callable[[Primitive], Callable[..., Any]]) -> None:
        self.make = make
        self.come: dict[Primitive, int] = {}

    def __missing__(self, prim: Primitive) -> Callable[..., Any]:
        n = self.come[prim] = self.come.get(prim, 0) + 1
        if n <= _OFTEN:
            return general(prim)
        way = self[prim] = self.make(prim)
        return way


_OFTEN = 32  # what makes a way takes half a millisecond, and saves a microsecond


def general(prim: Primitive) -> Callable[..., Any]:
    """`bind` for the primitive's number of operands."""
    return bind1 if len(prim.rules) == 1 else bind2


Value.ways = Ways(general)


@contextmanager
def handed_on(level: Level, other: Level) -> Iterator[None]:
    """While other goes on for a level, which may be closed: it takes what is done to its tracers,
    and has its place among the levels.
    """
    held = level.open, level.serial
    level.open, level.serial = other, other.serial
    try:
        yield
    finally:
        level.open, level.serial = held


def bind_region(region: Region, args: Sequence[Any]) -> tuple[Any, ...]:
    """Give a region to the highest level among the operands and what its function closes over."""
    level = usable(region.name, top_level(args))
    if region.own:
        Met.latest = object()
    while True:
        try:
            return level.region(region, args)
        except _ReachesError as reached:
            level = usable(region.name, reached.level)


class _ReachesError(Exception):
    """A region has turned out to close over values of a level above the one that it was given."""

    def __init__(self, level: Level) -> None:
        self.level = level


def expect_below(level: Level, region: Region, values: Sequence[Any]) -> None:
    """Look at what a region gave one level down: what it closes over shows in that.

    Raises: TransformError: where it closes over values of the level itself, which its rules do not
    know of.
    """
    top = top_level(values)
    if top.serial > level.serial:
        raise _ReachesError(top)
    if top is level:
        unruled(level.label, region)


def unruled(label: str, region: Region) -> NoReturn:
    """Raise the error for what a function with rules closes over."""
    raise TransformError(
        f"{region.name}: the function closes over a value of {label}, and its rules are for "
        "its arguments alone",
        fix="pass the value as an argument",
    )
