"""detect_anomaly: stop at the first value that is not finite, and say where it comes from."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np
from msgspec import Struct

from funct import ops, tree
from funct.array import Array, Tensor, asarray
from funct.core import INEXACT, Level, Primitive
from funct.graph import Control, Interpreter
from funct.ops.finite import all_finite
from funct.source import Site, user_site
from funct.transforms.given import expect_functions
from funct.transforms.tape.nodes import Node
from funct.transforms.watching.watch import Watch, note_site, run_under

__all__ = ["detect_anomaly", "origin"]


def origin(name: str) -> str:
    """The name of the op that the user called, from inside its rules."""
    frame: FrameType | None = sys._getframe(1)
    package = __name__.partition(".")[0]
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        if frame.f_code is Interpreter.run.__code__:
            break  # the entry of a graph: no rule called it
        if frame.f_code.co_name == "run":
            prim = frame.f_locals.get("prim")
            if isinstance(prim, Primitive) and isinstance(frame.f_locals.get("self"), Level):
                name = prim.name
        frame = frame.f_back
    return name


class _Place(Struct, frozen=True):
    """What made a value: the op that the user called, in which phase, on which line."""

    op: str
    phase: str
    site: Site | None


def _place(prim: Primitive) -> _Place:
    site = user_site()
    if site is not None and site.of != "":
        return _Place(site.of, "backward", site)
    return _Place(origin(prim.name), "forward", site)


def _mark(x: Any, at: _Place, pull: bool = False) -> Any:
    """x, checked: now, or when it is there. pull: its cotangent alone is."""
    if not isinstance(x, Tensor) or x.dtype not in INEXACT:
        return x
    file, line = (at.site.file, at.site.line) if at.site else ("", 0)
    return ops.finite(x, at.op, "pull" if pull else at.phase, file, line)


def _plain(x: Any) -> bool:
    return x.__class__ is Array


def _finite(x: Any) -> bool:
    """Whether x is known to have finite elements alone."""
    return _plain(x) and (x.dtype not in INEXACT or all_finite(x.data))


class _Anomaly(Watch):
    """Checks every result, and every cotangent that comes back to an operand."""

    __slots__ = ()

    def inside(self, prim: Control, vals: Sequence[Any]) -> Any:
        """A branch or a loop with checked bodies, which are made once."""
        mapped = prim.kind.once("detect_anomaly", lambda: prim.kind.mapped(self._watched))
        out = mapped(*vals)
        return out if prim.results != 1 else out[0]

    def op(self, prim: Primitive, vals: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """The op, and the check of what it gives.

        Where no transform is below, that is made here; only what fails it is worth a walk over the
        stack for the op and the line.
        """
        if prim is ops.finite.primitive:  # type: ignore[attr-defined]
            return prim.fn(*vals, *params)
        place = _place(prim) if any(isinstance(v, Tensor) and not _plain(v) for v in vals) else None
        if place is not None:
            vals = [_mark(v, place, pull=True) for v in vals]
        with np.errstate(all="ignore"):  # the error says it better than NumPy's warning
            if isinstance(prim, Control):
                out = self.inside(prim, vals)
            else:
                out = prim.fn(*vals, *params)
        outs = out if isinstance(out, tuple) else (out,)
        if place is None and all(map(_finite, outs)):
            return out
        marked = [_mark(o, place or _place(prim)) for o in outs]
        return tuple(marked) if isinstance(out, tuple) else marked[0]

    def born(self, nodes: Sequence[Node]) -> None:
        """Note the line."""
        note_site(nodes)


def detect_anomaly(fun: Callable[..., Any]) -> Callable[..., Any]:
    """fun, which raises at the first value that is infinite or NaN, forward or backward.

    The error names the op and quotes the user's line of the forward op, also for a value of the
    backward pass and in compiled code, where the check is part of the graph. It may stand inside or
    outside of any transform. Values that do not depend on fun's arguments are not watched, nor, in
    compiled code, those that no result needs: a gradient alone, of a sum of logarithms, say.
    Raises: AnomalyError.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> f = ft.detect_anomaly(ft.grad(lambda x: xp.sqrt(x) * 2.0))
        >>> try:
        ...     f(xp.asarray(0.0))
        ... except ft.errors.AnomalyError as error:
        ...     print(error.what)
        detect_anomaly: the backward pass of sqrt gave inf
    """
    expect_functions("detect_anomaly", fun=fun)
    name = getattr(fun, "__name__", "fun")

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        site = user_site()

        def argument(path: str, x: Any) -> Any:
            if isinstance(x, np.ndarray | np.generic):
                x = asarray(x)
            return _mark(x, _Place(f"argument {path} of {name}", "argument", site))

        args, kwargs = (
            tree.map_with_path(argument, args),
            {
                k: tree.map_with_path(functools.partial(_named, argument, k), v)
                for k, v in kwargs.items()
            },
        )
        return run_under(_Anomaly("detect_anomaly", fun), fun, args, kwargs)

    return run


def _named(argument: Callable[[str, Any], Any], key: str, path: str, x: Any) -> Any:
    return argument(f"{key}.{path}" if path else key, x)
