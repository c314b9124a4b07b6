"""detect_anomaly: stop at the first value that is not finite, and say where it comes from."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np

from funct import ops
from funct import tree as pytree
from funct.array import Tensor, asarray
from funct.core import INEXACT, Level, Primitive
from funct.graph import Control, Interpreter
from funct.source import Site, user_site
from funct.transforms.tape import Node
from funct.transforms.watch import Watch, run_under

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


def _mark(x: Any, op: str, phase: str, site: Site | None) -> Any:
    if not isinstance(x, Tensor) or x.dtype not in INEXACT:
        return x
    return ops.finite(x, op, phase, *((site.file, site.line) if site else ("", 0)))


class _Anomaly(Watch):
    """Checks every result, and every cotangent that comes back to an operand."""

    __slots__ = ()

    def inside(self, prim: Control, vals: Sequence[Any]) -> Any:
        """A branch or a loop with checked bodies, which are made once."""
        mapped = prim.kind.once("detect_anomaly", lambda: prim.kind.mapped(self._watched))
        out = mapped(*vals)
        return out if prim.results != 1 else out[0]

    def op(self, prim: Primitive, vals: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """The op, and the check of what it gives."""
        if prim is ops.finite.primitive:  # type: ignore[attr-defined]
            return prim.fn(*vals, *params)
        site = user_site()
        backward = site is not None and site.of != ""
        name = site.of if backward and site is not None else origin(prim.name)
        vals = [_mark(v, name, "pull", site) for v in vals]
        with np.errstate(all="ignore"):  # the error says it better than NumPy's warning
            if isinstance(prim, Control):
                out = self.inside(prim, vals)
            else:
                out = prim.fn(*vals, *params)
        phase = "backward" if backward else "forward"
        if isinstance(out, tuple):
            return tuple([_mark(o, name, phase, site) for o in out])
        return _mark(out, name, phase, site)

    def born(self, node: Node, above: bool) -> None:
        """Note the line: what its pulls do is told as the derivative of what stands there."""
        node.site = user_site()


def detect_anomaly(fun: Callable[..., Any]) -> Callable[..., Any]:
    """fun, which raises at the first value that is infinite or NaN, forward or backward.

    The error names the op and quotes the user's line of the forward op, also for a value of the
    backward pass and in compiled code, where the check is part of the graph. It may stand inside or
    outside of any transform. Values that do not depend on fun's arguments are not watched.
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
    name = getattr(fun, "__name__", "fun")

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        site = user_site()

        def argument(path: str, x: Any) -> Any:
            if isinstance(x, np.ndarray | np.generic):
                x = asarray(x)
            return _mark(x, f"argument {path} of {name}", "argument", site)

        args, kwargs = (
            pytree.map_with_path(argument, args),
            {
                k: pytree.map_with_path(functools.partial(_named, argument, k), v)
                for k, v in kwargs.items()
            },
        )
        return run_under(_Anomaly("detect_anomaly", fun), fun, args, kwargs)

    return run


def _named(argument: Callable[[str, Any], Any], key: str, path: str, x: Any) -> Any:
    return argument(f"{key}.{path}" if path else key, x)
