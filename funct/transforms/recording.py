"""How a tape writes down an op of one or two operands: a function per primitive, printed once.

On small arrays the frames and tuples of Python are the cost of a gradient. What depends on the
primitive alone (which operands vary, what each pull keeps) is decided when it is first
differentiated; what is left is one frame: the NumPy call, the edges, the node, the tracer. Printed
for `sin`, without what it does for errors and for tracers below:

    self = x.level
    v, p = x.value, x.node
    d = raw(v.data)
    ans = new(Array)
    ans.data = d
    edges = ((p, pull0, (v,)),)
    shape = p.shape
    node = new(Node)
    …
    return out
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct.array import Array
from funct.core import Primitive, bind1, bind2
from funct.transforms.tape import Node, ReverseTracer

__all__ = ["recorder"]

_ONE = """\
self = x.level
if self.__class__ is not Reverse or not self.open:
    return bind1(prim, x, params)
v, p = x.value, x.node
"""

_TWO = """\
if x.__class__ is ReverseTracer:
    self, left, right = x.level, True, False
    if y.__class__ is ReverseTracer:
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
if self.__class__ is not Reverse or not self.open:
    return bind2(prim, x, y, params)
"""

_COMPUTE = """\
if {known}:
    try:
        d = raw({buffers})
    except Exception:
        fn({values})  # says by name what is wrong
        raise
    if d.__class__ is not ndarray:
        d = asarray(d)
    ans = new(Array)
    ans.data = d
else:
    ans = fn({values})
    d = ans.node if ans.__class__ is ReverseTracer else ans
edges = {edges}
shape = {shape}
"""

_RECORD = """\
node = new(Node)
node.edges = edges
node.prim = prim
node.serial = self.count = self.count + 1
node.shape = shape
node.dtype = d.dtype
out = new(ReverseTracer)
out.value = ans
out.node = node
out.level = self
return out
"""


def recorder(Reverse: Any, prim: Primitive) -> Callable[..., Any]:
    """What writes down the primitive: `(prim, *operands, params)`, of which one is a ReverseTracer.

    That is `bind` for an op with a rule for all operands at once, with a pull that has to be found
    by transposing, or with no derivative.
    """
    rules = prim.rules
    bind = bind1 if len(rules) == 1 else bind2
    if prim.results != 1 or any(r is not None and not r.fast for r in rules) or not any(rules):
        return bind
    names: dict[str, Any] = {
        "fn": prim.fn, "raw": prim.raw, "new": object.__new__, "asarray": np.asarray,
        "ndarray": np.ndarray, "Array": Array, "Node": Node, "ReverseTracer": ReverseTracer,
        "Reverse": Reverse, bind.__name__: bind, "__name__": __name__,
    }  # fmt: skip
    names |= {f"pull{i}": r.pull for i, r in enumerate(rules) if r is not None}
    lines = [f"({', '.join(_params(prim))},) = params"] if prim.params else []
    lines += _one(prim) if len(rules) == 1 else _two(prim)
    operands = "x" if len(rules) == 1 else "x, y"
    head = f"def run(prim, {operands}, params):"
    text = "\n".join([head, *_indented([*lines, *_RECORD.splitlines()])])
    exec(compile(text, "<funct tape>", "exec"), names)
    return names["run"]


def _one(prim: Primitive) -> list[str]:
    return [*_ONE.splitlines(), *_computed(prim, ("v",), ("p",))]


def _two(prim: Primitive) -> list[str]:
    both, left, right = [
        _indented(_computed(prim, values, nodes))
        for values, nodes in (
            (("v", "w"), ("p", "q")),
            (("v", "y"), ("p", None)),
            (("x", "w"), (None, "q")),
        )
    ]
    return [
        *_TWO.splitlines(),
        "if left:",
        "    v, p = x.value, x.node",
        "    if right:",
        "        w, q = y.value, y.node",
        *_indented(both),
        "    else:",
        *_indented(left),
        "else:",
        "    w, q = y.value, y.node",
        *right,
    ]


def _computed(prim: Primitive, values: Sequence[str], nodes: Sequence[str | None]) -> list[str]:
    """The result and the edges, where these locals hold values and, of what is traced, nodes."""
    params = _params(prim)
    held = dict(zip((*prim.operands, *prim.params), (*values, *params), strict=True))
    shapes = [
        f"{p}.shape" if p else f"getattr({v}, 'shape', ())"
        for v, p in zip(values, nodes, strict=True)
    ]
    held |= {"ans": "ans"} | {f"{n}_shape": s for n, s in zip(prim.operands, shapes, strict=True)}
    edges = [
        f"({p}, pull{i}, ({''.join([f'{held[n]}, ' for n in _kept(rule)])}))"
        for i, (p, rule) in enumerate(zip(nodes, prim.rules, strict=True))
        if p is not None and rule is not None
    ]
    call = ", ".join([*values, *params])
    if not edges:
        return [f"return fn({call})"]
    return _COMPUTE.format(
        known=" and ".join([f"{v}.__class__ is Array" for v in values]),
        buffers=", ".join([*[f"{v}.data" for v in values], *params]),
        values=call,
        edges=f"({', '.join(edges)},)",
        shape=_shape(prim, nodes),
    ).splitlines()


def _shape(prim: Primitive, nodes: Sequence[str | None]) -> str:
    """The result's shape: that of an operand if that is sure, for an ndarray makes a new tuple."""
    if prim.spread is False:
        return "p.shape"
    if prim.spread and None not in nodes:
        return "p.shape if p.shape is q.shape else d.shape"
    return "d.shape"


def _params(prim: Primitive) -> list[str]:
    return [f"a{k}" for k in range(len(prim.params))]


def _kept(rule: Any) -> list[str]:
    """The names that a pull has after g."""
    return list(inspect.signature(rule.pull).parameters)[1:]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
