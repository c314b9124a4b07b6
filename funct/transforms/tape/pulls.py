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
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from funct.array import Array, Tensor
from funct.core import Level, Primitive, Region
from funct.core.rule import parameters
from funct.kernels.dtypes import FLOATING, INTEGER, NATIVE
from funct.ops.by_size import chosen
from funct.ops.fast import CONSTANT, make

__all__ = ["Written", "on_arrays", "written"]


class _DependsError(Exception):
    """The rule asks for more than the values' names: it has no one text."""


class _Kind:
    """What a rule may ask of a dtype: whether it is complex. The text is that of real numbers."""

    __slots__ = ("level",)

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, level: _Text) -> None:
        self.level = level

    def __eq__(self, other: object) -> bool:
        raise _DependsError

    @property
    def kind(self) -> str:
        """That of floats, which the text asks for from now on."""
        self.level.real = True
        return "f"


class _Word(Tensor):
    """A value of the text."""

    __slots__ = ("level", "name")

    level: _Text
    name: str

    def __init__(self, level: _Text, name: str) -> None:
        self.level = level
        self.name = name

    def __getattribute__(self, name: str) -> Any:
        if name == "dtype":
            return _Kind(super().__getattribute__("level"))
        if name in ("shape", "value", "concrete", "device"):
            raise _DependsError
        return super().__getattribute__(name)


CONSTANT.add(_Word)  # nobody differentiates a text


class _Text(Level):
    """The level that writes a rule down as calls of kernels."""

    __slots__ = ("constants", "real", "steps")

    real: bool
    steps: list[tuple[Primitive, tuple[str, ...]]]
    constants: dict[str, Any]

    def run(self, prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """One line."""
        if prim.spread is None or prim.results != 1 or prim.effect:
            raise _DependsError
        self.steps.append((prim, tuple([self.word(a) for a in (*args, *params)])))
        return _Word(self, f"t{len(self.steps) - 1}")

    def word(self, a: Any) -> str:
        """How the text names an operand."""
        if isinstance(a, _Word):
            return a.name
        if a.__class__ is not int and a.__class__ is not float:
            raise _DependsError
        name = f"c{len(self.constants)}"
        self.constants[name] = a
        return name

    def region(self, region: Region, args: Sequence[Any]) -> tuple[Any, ...]:
        """There is none in a rule of an elementwise op."""
        raise _DependsError


class Written(Struct, frozen=True):
    """A rule as a list of ops. given: its parameters; the buffer of one is named `g.data`.

    steps: (op, names of what it takes); step k makes `tk`. out: the name of the result. real: of
    float32 and float64 alone.
    """

    given: tuple[str, ...]
    steps: tuple[tuple[Primitive, tuple[str, ...]], ...]
    constants: dict[str, Any]
    out: str
    real: bool = False


@functools.cache
def written(rule: Callable[..., Any], operands: tuple[str, ...]) -> Written | None:
    """What the rule does on arrays alone; None where it has no one text.

    operands: the names among those of its parameters that stand for values.
    """
    given = tuple(parameters(rule))
    if not {*operands, "ans"}.issuperset(given[1:]):
        return None
    level = _Text("text", rule)
    level.steps, level.constants, level.real = [], {}, False
    try:
        out = rule(*[_Word(level, f"{name}.data") for name in given])
    except Exception:
        return None
    finally:
        level.open = False
    if not isinstance(out, _Word):
        return None
    taken = {name for _, names in level.steps for name in names}
    if level.real and not taken.issuperset(f"{name}.data" for name in given):
        return None  # of one it asks for nothing but its dtype: the machine code would not look
    return Written(given, tuple(level.steps), level.constants, out.name, level.real)


@functools.cache
def on_arrays(rule: Callable[..., Any], operands: tuple[str, ...]) -> Callable[..., Any]:
    """The rule, which on arrays alone is its kernels; the rule itself where it has no one text."""
    text = written(rule, operands)
    if text is None or not text.steps:
        return rule
    names = {
        "rule": rule, "Array": Array, "ndarray": np.ndarray, "asarray": np.asarray,
        "make": make, "__name__": __name__, **text.constants,
    }  # fmt: skip
    names |= {f"f{k}": chosen(prim) for k, (prim, _) in enumerate(text.steps)}
    call = ", ".join(text.given)
    general = [f"{n}.__class__ is not Array" for n in text.given]
    if text.real:
        general += [f"not {INTEGER} < {n}.data.dtype.num <= {FLOATING}" for n in text.given]
    elif text.constants:
        # beside NumPy's own dtypes a number needs no look
        general += [f"{n}.data.dtype.num >= {NATIVE}" for n in text.given]
    steps = [f"t{k} = f{k}({', '.join(taken)})" for k, (_, taken) in enumerate(text.steps)]
    lines = "\n    ".join([
        f"def pull({call}):",
        f"if {' or '.join(general)}:",
        f"    return rule({call})",
        "try:",
        *[f"    {step}" for step in steps],
        "except Exception:",
        f"    return rule({call})  # which says by name what is wrong",
        "r = make(None)",
        f"r.data = {text.out} if {text.out}.__class__ is ndarray else asarray({text.out})",
        "return r",
    ])  # fmt: skip
    exec(compile(lines, "<funct pull>", "exec"), names)
    pull: Callable[..., Any] = functools.wraps(rule)(names["pull"])
    return pull
