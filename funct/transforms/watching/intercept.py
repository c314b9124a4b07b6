"""intercept: a user's function decides what an op does; trace_dispatch: who decided what."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from msgspec import Struct

from funct.array import Tensor
from funct.core import Level, Primitive, top_level
from funct.errors import TransformError
from funct.graph import Control
from funct.source import Site, user_site
from funct.transforms.given import expect_functions
from funct.transforms.tape.nodes import Node
from funct.transforms.watching.watch import Watch, note_site, run_under

__all__ = ["Decision", "DispatchTrace", "intercept", "trace_dispatch"]


class _Intercept(Watch):
    """Asks a user's rule first."""

    __slots__ = ("rule",)

    rule: Callable[..., Any]

    def op(self, prim: Primitive, vals: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """What the rule says; the op itself where it declines."""
        out = self.rule(prim, tuple(vals), params)
        if out is NotImplemented:
            if isinstance(prim, Control):
                return self.inside(prim, vals)
            return prim.fn(*vals, *params)
        count = len(out) if isinstance(out, tuple | list) else 1
        if count != prim.results or out is None:
            raise TransformError(
                f"intercept: the rule must give {prim.results} result(s) of {prim.name} or "
                f"NotImplemented, got {type(out).__name__}"
            )
        return out


def intercept(fun: Callable[..., Any], rule: Callable[..., Any]) -> Callable[..., Any]:
    """fun, with a rule that sees every op on values that depend on the arguments.

    Args: rule: `rule(primitive, operands, params)` gives the op's result (a tuple where it has
    several), or NotImplemented for the op itself. The operands are what the values are outside of
    fun; `primitive(*operands, *params)` is the op there. Rules of nested intercepts are asked from
    the inside out, and what a rule calls is seen by the outer ones only.
    Returns: a function with fun's signature. It may stand inside or outside of any transform;
    outside of grad it sees the backward pass too.
    Raises: TransformError: where a rule gives another number of results.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> def rule(primitive, operands, params):
        ...     return xp.cos(*operands) if primitive.name == "sin" else NotImplemented
        >>> float(ft.intercept(lambda x: xp.sin(x) + 1.0, rule)(xp.asarray(0.0)))
        2.0
    """
    expect_functions("intercept", fun=fun, rule=rule)

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        level = _Intercept("intercept", fun)
        level.rule = rule
        return run_under(level, fun, args, kwargs)

    return run


class Decision(Struct, frozen=True):
    """One op on its way down: the op, and the levels that took it, the highest first.

    levels: (label of the level, op that it was given); the last one is where it was computed.
    """

    primitive: str
    operands: tuple[str, ...]
    levels: tuple[tuple[str, str], ...]
    site: Site | None

    def __str__(self) -> str:
        way = " › ".join(
            label if op == self.primitive else f"{label}[{op}]" for label, op in self.levels
        )
        of = f"  backward of {self.site.of}" if self.site is not None and self.site.of else ""
        where = f"  {self.site}" if self.site is not None else ""
        return f"{self.primitive}({', '.join(self.operands)}): {way}{of}{where}"


class DispatchTrace(Struct, frozen=True):
    """What `trace_dispatch` gives: the function's result and its decisions, in order.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> trace = ft.trace_dispatch(ft.vmap(xp.sin))(xp.asarray([0.0]))
        >>> trace.out.tolist(), [d.primitive for d in trace.decisions]
        ([0.0], ['sin'])
    """

    out: Any
    decisions: tuple[Decision, ...]

    def __str__(self) -> str:
        return "\n".join([f"{k:4d}  {d}" for k, d in enumerate(self.decisions, 1)])


class _Trace(Watch):
    """Writes down how ops came to it."""

    __slots__ = ("found",)

    found: list[Decision]

    def op(self, prim: Primitive, vals: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """Note the way of the op, then let it pass."""
        below = top_level(vals)
        way = [*_levels(self), (below.label or "array", prim.name)]
        self.found.append(Decision(prim.name, tuple(map(_type, vals)), tuple(way), user_site()))
        return prim.fn(*vals, *params)

    def born(self, nodes: Sequence[Node]) -> None:
        """Note the line."""
        note_site(nodes)


def _levels(own: Level) -> list[tuple[str, str]]:
    """The levels whose `run` is on the stack between the user's line and `own`, highest first."""
    found: list[tuple[str, str]] = []
    last: Level | None = None
    frame: FrameType | None = sys._getframe(1)
    package = __name__.partition(".")[0]
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        if frame.f_code.co_name == "run":
            level, prim = frame.f_locals.get("self"), frame.f_locals.get("prim")
            if isinstance(level, Level) and isinstance(prim, Primitive) and level is not own:
                if level is not last:  # a printed `run` may call the level's own
                    found.append((level.label, prim.name))
                last = level
        frame = frame.f_back
    return found[::-1]


def _type(x: Any) -> str:
    return f"{x.dtype}{list(x.shape)}" if isinstance(x, Tensor) else repr(x)


def trace_dispatch(fun: Callable[..., Any]) -> Callable[..., DispatchTrace]:
    """A function that runs fun and tells which levels took each op, from the highest down.

    Returns: fun's signature -> `DispatchTrace`, which prints one line per op with its way, e.g.
    `vmap › grad › array`, and the user's line. Ops on constants go to no level and are not listed.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> trace = ft.trace_dispatch(ft.grad(lambda x: xp.sin(x)))(xp.asarray(0.0))
        >>> [(d.primitive, [label for label, _ in d.levels]) for d in trace.decisions]
        [('sin', ['grad', 'array']), ('cos', ['array']), ('multiply', ['array'])]
    """
    expect_functions("trace_dispatch", fun=fun)

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> DispatchTrace:
        level = _Trace("trace_dispatch", fun)
        level.found = []
        out = run_under(level, fun, args, kwargs)
        return DispatchTrace(out, tuple(level.found))

    return run
