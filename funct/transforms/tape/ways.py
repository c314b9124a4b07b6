"""How tapes, forward mode and vmap take an op of one or two operands: a printed function each.

On small arrays the frames and tuples of Python are the cost of a transform. What depends on the
primitive alone (which operands vary, what each rule reads) is decided when the primitive has
come often; what is left is one frame. Printed for `sin` on a tape, without what it does for
errors and for tracers below:

    self = x.level
    v, p = x.value, x.node
    d = raw(v.data)
    ans = make(None)
    ans.data = d
    node = new(Node)
    node.edges = ((p, pull0, (v,)),)
    …
    return out
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from funct import ops
from funct.array import Array
from funct.core import Diagonal, Linear, Primitive, bind1, bind2
from funct.core.level import Ways, general
from funct.core.rule import parameters
from funct.ops.broadcasting import align
from funct.ops.by_size import chosen
from funct.ops.fast import make
from funct.transforms.tape.code import adopt, recorder
from funct.transforms.tape.nodes import Node, ReverseTracer
from funct.transforms.tape.pulls import on_arrays

__all__ = ["batching", "pushing", "recording"]

Names = Sequence[str | None]

_ONE = """\
self = x.level
if self.__class__ is not Level or self.open is not True:
    return bind1(prim, x, params)
v, p = x.value, x.{part}
"""

_TWO = """\
if x.__class__ is Tracer:
    self, left, right = x.level, True, False
    if y.__class__ is Tracer:
        other = y.level
        right = other is self
        if other.serial > self.serial:
            self, left, right = other, False, True
    elif y.__class__ is not Array and y.__class__ is not float and y.__class__ is not int:
        return bind2(prim, x, y, params)
elif x.__class__ is Array or x.__class__ is float or x.__class__ is int:
    self, left, right = y.level, False, True
else:
    return bind2(prim, x, y, params)
if self.__class__ is not Level or self.open is not True:
    return bind2(prim, x, y, params)
"""

_COMPUTE = """\
if {known}:
    try:
        d = raw({buffers})
    except Exception:
        return {general}  # which says by name what is wrong
    if d.__class__ is not ndarray:
        d = asarray(d)
    ans = make(None)
    ans.data = d
else:
    {below}
"""

_RECORD = """\
node = Node()
node.edges = {edges}
node.prim = prim
node.serial = self.count = self.count + 1
node.shape = {shape}
node.dtype = d.dtype
out = Tracer()
out.value = ans
out.node = node
out.level = self
return out
"""

_TANGENT = """\
t = {pushed}
b = t.data if t.__class__ is Array else t
if {spread} and b.shape != d.shape:
    t = broadcast_to(t, d.shape)
if b.dtype is not d.dtype and b.dtype != d.dtype:
    t = astype(t, d.dtype)
"""


class _Kind(Struct, frozen=True):
    """One kind of level. part: what a tracer has besides its value. finish: the lines that make the
    result of an op, for locals with the operands' values and, of those that vary, with the parts.
    """

    level: type
    tracer: type
    part: str
    takes: Callable[[Primitive], bool]
    finish: Callable[[Primitive, Sequence[str], Names], list[str]]


def recording(level: type) -> Ways:
    """What writes down a primitive on tapes of this class."""
    kind = _Kind(level, ReverseTracer, "node", _differentiates, _recorded)
    adopt(level)

    def make(prim: Primitive) -> Callable[..., Any]:
        return recorder(prim, _printed(prim, kind)) if _differentiates(prim) else general(prim)

    return Ways(make)


def pushing(level: type, tracer: type) -> Ways:
    """What pushes tangents through a primitive."""
    kind = _Kind(level, tracer, "tangent", _differentiates, _pushed)
    return Ways(lambda prim: _printed(prim, kind))


def batching(level: type, tracer: type) -> Ways:
    """What computes an elementwise op on arrays with all lanes, where no rank has to be padded."""
    kind = _Kind(level, tracer, "value", lambda prim: prim.batch is align, _batched)
    return Ways(lambda prim: _printed(prim, kind))


def _differentiates(prim: Primitive) -> bool:
    """Whether something varies, each operand has a rule of its own, and its pull is stated."""
    rules = prim.rules
    return prim.results == 1 and any(rules) and all(r is None or r.fast for r in rules)


def _printed(prim: Primitive, kind: _Kind) -> Callable[..., Any]:
    """`(prim, *operands, params)` for operands of which one is a tracer of that kind.

    That is `bind` for what this kind of level does not take.
    """
    rules = prim.rules
    if not kind.takes(prim):
        return general(prim)
    names: dict[str, Any] = {
        "fn": prim.fn, "raw": chosen(prim), "new": object.__new__, "make": make,
        "asarray": np.asarray, "ndarray": np.ndarray, "Array": Array, "Node": Node,
        "ReverseTracer": ReverseTracer,
        "Tracer": kind.tracer, "Level": kind.level, "bind1": bind1, "bind2": bind2,
        "broadcast_to": ops.broadcast_to, "astype": ops.astype, "__name__": __name__,
    }  # fmt: skip
    for i, rule in enumerate(rules):
        pull = rule.pull if rule is not None else None
        if pull is not None and prim.spread is not None:
            pull = on_arrays(pull, prim.operands)
        names |= {f"rule{i}": rule, f"pull{i}": pull}
    lines = [f"({', '.join(_params(prim))},) = params"] if prim.params else []
    lines += _one(prim, kind) if len(rules) == 1 else _two(prim, kind)
    operands = "x" if len(rules) == 1 else "x, y"
    text = "\n".join([f"def run(prim, {operands}, params):", *_indented(lines)])
    exec(compile(text, "<funct way>", "exec"), names)
    return names["run"]


def _one(prim: Primitive, kind: _Kind) -> list[str]:
    return [*_lines(_ONE, part=kind.part), *_result(prim, kind, ("v",), ("p",))]


def _two(prim: Primitive, kind: _Kind) -> list[str]:
    return [
        *_lines(_TWO),
        "if left:",
        f"    v, p = x.value, x.{kind.part}",
        "    if right:",
        f"        w, q = y.value, y.{kind.part}",
        *_indented(_indented(_result(prim, kind, ("v", "w"), ("p", "q")))),
        *_indented(_result(prim, kind, ("v", "y"), ("p", None))),
        f"w, q = y.value, y.{kind.part}",
        *_result(prim, kind, ("x", "w"), (None, "q")),
    ]


def _result(prim: Primitive, kind: _Kind, values: Sequence[str], parts: Names) -> list[str]:
    """What computes the result and returns it."""
    params = _params(prim)
    call = ", ".join([*values, *params])
    otherwise = "bind1(prim, x, params)" if len(values) == 1 else "bind2(prim, x, y, params)"
    known = [f"{v}.__class__ is Array" for v in values]
    below = f"ans = fn({call}); d = ans.node if ans.__class__ is ReverseTracer else ans"
    if kind.part == "value":
        known += _level_ranks(values, parts)
        below = f"return {otherwise}"
    elif not _varying(prim, parts):
        return [f"return fn({call})"]
    compute = _lines(
        _COMPUTE,
        known=" and ".join(known),
        buffers=", ".join([*[f"{v}.data" for v in values], *params]),
        general=otherwise,
        below=below,
    )
    return [*compute, *kind.finish(prim, values, parts)]


def _level_ranks(values: Sequence[str], parts: Names) -> list[str]:
    """That operands with lanes have one rank, and those without have less."""
    if len(values) == 1:
        return []
    (v, w), (p, q) = values, parts
    return [f"{v}.data.ndim {'==' if p and q else '>' if p else '<'} {w}.data.ndim"]


def _batched(prim: Primitive, values: Sequence[str], parts: Names) -> list[str]:
    """A tracer of the whole."""
    return ["out = new(Tracer)", "out.value = ans", "out.level = self", "return out"]


def _recorded(prim: Primitive, values: Sequence[str], parts: Names) -> list[str]:
    """A node with an edge for each operand that varies."""
    shapes = [
        f"{p}.shape" if p else f"getattr({v}, 'shape', ())"
        for v, p in zip(values, parts, strict=True)
    ]
    edges = [
        f"({p}, pull{i}, ({_tuple(_kept(prim, i, values, shapes))}))"
        for i, p in _varying(prim, parts)
    ]
    shape = "d.shape"  # which makes a new tuple; hence that of an operand where it is known
    if prim.spread is False:
        shape = "p.shape"
    elif prim.spread and None not in parts:
        shape = "p.shape if p.shape is q.shape else d.shape"
    return _lines(_RECORD, edges=f"({_tuple(edges)})", shape=shape)


def _pushed(prim: Primitive, values: Sequence[str], parts: Names) -> list[str]:
    """The sum of the tangents that the operands bring."""
    lines: list[str] = []
    for i, s in _varying(prim, parts):
        rule = prim.rules[i]
        if isinstance(rule, Diagonal):
            shapes = [f"getattr({v}, 'shape', ())" for v in values]
            pushed = f"pull{i}({', '.join([s, *_kept(prim, i, values, shapes)])})"
        elif isinstance(rule, Linear):
            pushed = f"fn({', '.join([*values[:i], s, *values[i + 1 :], *_params(prim)])})"
        else:
            pushed = f"rule{i}.push(prim, {i}, {s}, ({_tuple(values)}), params, ans)"
        more = ["before = t"] if lines else []
        text = _lines(_TANGENT, pushed=pushed, spread=prim.spread is not None)
        lines += [*more, *text, *(["t = before + t"] if lines else [])]
    return [*lines, "return Tracer(ans, t, self)"]


def _varying(prim: Primitive, parts: Names) -> list[tuple[int, str]]:
    """The operands that the result varies with, and what their tracers bring."""
    pairs = enumerate(zip(parts, prim.rules, strict=True))
    return [(i, p) for i, (p, rule) in pairs if p is not None and rule is not None]


def _kept(prim: Primitive, i: int, values: Sequence[str], shapes: Sequence[str]) -> list[str]:
    """What the pull of an operand reads besides g."""
    rule: Any = prim.rules[i]
    held = dict(zip((*prim.operands, *prim.params), (*values, *_params(prim)), strict=True))
    held |= {"ans": "ans"} | {f"{n}_shape": s for n, s in zip(prim.operands, shapes, strict=True)}
    return [held[n] for n in parameters(rule.pull)[1:]]


def _params(prim: Primitive) -> list[str]:
    return [f"a{k}" for k in range(len(prim.params))]


def _tuple(names: Sequence[str]) -> str:
    return "".join([f"{n}, " for n in names])


def _lines(text: str, **parts: Any) -> list[str]:
    return text.format(**parts).splitlines()


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
