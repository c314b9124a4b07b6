"""Pulls of elementwise ops on bare arrays: what a rule does, written down once and printed.

A rule is written with Tensors, so that it can be differentiated again. Where it meets arrays, each
of its ops is an op like the user's: a frame and an array object. Printed, the whole rule is one
frame. That of `sin`, without what it does for errors:

    if g.__class__ is not Array or x.__class__ is not Array:
        return rule(g, x)
    t0 = cos(x.data)
    t1 = multiply(t0, g.data)
    …
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct.array import Array, Tensor
from funct.core import Level, Primitive, Region

__all__ = ["on_arrays"]

_NATIVE = 24  # dtypes of NumPy's own, beside which a Python number needs no look


class _DependsError(Exception):
    """The rule asks for more than the values' names: it has no one text."""


class _Word(Tensor):
    """A value of the text."""

    __slots__ = ("level", "name")

    level: _Text
    name: str

    def __init__(self, level: _Text, name: str) -> None:
        self.level = level
        self.name = name

    def __getattribute__(self, name: str) -> Any:
        if name in ("shape", "dtype", "value", "concrete", "device"):
            raise _DependsError
        return super().__getattribute__(name)


class _Text(Level):
    """The level that writes a rule down as calls of kernels."""

    __slots__ = ("lines", "names")

    lines: list[str]
    names: dict[str, Any]

    def run(self, prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """One line."""
        if prim.spread is None or prim.results != 1 or prim.effect:
            raise _DependsError
        k = len(self.lines)
        self.names[f"f{k}"] = prim.raw
        self.lines.append(f"t{k} = f{k}({', '.join([self.word(a) for a in (*args, *params)])})")
        return _Word(self, f"t{k}")

    def word(self, a: Any) -> str:
        """How the text names an operand."""
        if isinstance(a, _Word):
            return a.name
        if a.__class__ is not int and a.__class__ is not float:
            raise _DependsError
        self.names[f"c{len(self.names)}"] = a
        return f"c{len(self.names) - 1}"

    def region(self, region: Region, args: Sequence[Any]) -> tuple[Any, ...]:
        """There is none in a rule of an elementwise op."""
        raise _DependsError


@functools.cache
def on_arrays(rule: Callable[..., Any], operands: tuple[str, ...]) -> Callable[..., Any]:
    """The rule, which on arrays alone is its kernels; the rule itself where it has no one text.

    operands: the names among those of its parameters that stand for values.
    """
    given = list(inspect.signature(rule).parameters)
    if not given[1:] or not {*operands, "ans"}.issuperset(given[1:]):
        return rule
    level = _Text("text", rule)
    level.lines = []
    level.names = {
        "rule": rule, "Array": Array, "ndarray": np.ndarray, "asarray": np.asarray,
        "new": object.__new__, "__name__": __name__,
    }  # fmt: skip
    try:
        out = rule(*[_Word(level, f"{name}.data") for name in given])
    except Exception:
        return rule
    finally:
        level.open = False
    if not isinstance(out, _Word) or not level.lines:
        return rule
    call = ", ".join(given)
    general = [f"{n}.__class__ is not Array" for n in given]
    if any(name.startswith("c") for name in level.names):
        general += [f"{n}.data.dtype.num >= {_NATIVE}" for n in given]
    text = "\n    ".join([
        f"def pull({call}):",
        f"if {' or '.join(general)}:",
        f"    return rule({call})",
        "try:",
        *[f"    {line}" for line in level.lines],
        "except Exception:",
        f"    return rule({call})  # which says by name what is wrong",
        "r = new(Array)",
        f"r.data = {out.name} if {out.name}.__class__ is ndarray else asarray({out.name})",
        "return r",
    ])  # fmt: skip
    exec(compile(text, "<funct pull>", "exec"), level.names)
    pull: Callable[..., Any] = functools.wraps(rule)(level.names["pull"])
    return pull
