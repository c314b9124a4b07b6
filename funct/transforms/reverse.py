"""Reverse mode: a tape of linear nodes.

A node is its edges (parent, pull, what the pull keeps), a serial number, a shape and a dtype. Nodes
know their parents only, so dead branches are collected by reference count. `ways` writes down most
ops, `backward` walks what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from funct import ops
from funct.array import Array, asarray, zeros
from funct.array.remote import is_remote
from funct.core import (
    INEXACT,
    Absent,
    Joint,
    Level,
    Primitive,
    Region,
    ShapeDtype,
    Value,
    expect_below,
)
from funct.core.level import birth, unruled
from funct.errors import ShapeError, TransformError
from funct.ops.broadcasting import match_operand
from funct.transforms.tape.backward import backward
from funct.transforms.tape.nodes import (
    CallPull,
    Composed,
    Node,
    ReverseTracer,
    SizeError,
    Slots,
    Types,
    sink,
)
from funct.transforms.tape.ways import recording
from funct.transforms.watching.watch import SITES, Watch, watches

__all__ = [
    "Node", "Reverse", "ReverseTracer", "Slots", "Watched", "lower", "open_tape", "pull_back",
    "sink", "transpose", "walked", "zero_like", "zero_of",
]  # fmt: skip

new = object.__new__
_BARE = {Array}


def _slot(g: Any, i: int) -> Slots:
    return Slots({i: g})


class Reverse(Level):
    """The level that writes the tape."""

    __slots__ = ("count",)
    computes = True

    count: int

    def __init__(self, label: str, fun: Callable[..., Any] | None) -> None:
        self.serial = birth()  # Level.__init__, inlined: a third of a microsecond per gradient
        self.open = True
        self.label = label
        self.fun = fun
        self.count = 0

    def run(self, prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """Compute one level down, and keep what the pulls name."""
        vals, mine = [], []
        for i, a in enumerate(args):
            if a.__class__ is ReverseTracer and a.level is self:
                vals.append(a.value)
                mine.append((i, a.node))
            else:
                vals.append(a)
        ans = prim.fn(*vals, *params)
        if prim.results == 1 and ans.dtype not in INEXACT:
            return ans  # an integer or boolean result does not vary
        known = (ans, *vals, *params, *[getattr(v, "shape", ()) for v in vals])
        edges = []
        for i, node in mine:
            rule = prim.rules[i]
            if rule is None:
                continue
            pull = rule.pull
            if pull is None:
                if isinstance(rule, Absent):
                    rule.raise_for(prim)
                if isinstance(rule, Joint):
                    return self._joint(rule, prim, vals, mine, params, ans)
                pull = _transposed(rule, prim, i, vals, params, ans)
            edges.append((node, pull, rule.keep(known)))  # type: ignore[union-attr]
        if not edges:
            return ans
        if prim.results == 1:
            return self.record(ans, prim, edges)
        whole = self.record(Types(ans), prim, edges).node
        return self._parts(whole, prim.name, ans)

    def _parts(self, whole: Node, name: str, values: Sequence[Any]) -> tuple[Any, ...]:
        """The results of an op or a call with several, each with a node of its own."""
        out = []
        for i, o in enumerate(values):
            if o.dtype in INEXACT:
                o = self.record(o, sink, ((whole, _slot, (i,)),))
                o.node.label = f"{name}[{i}]"
            out.append(o)
        return tuple(out)

    def record(self, ans: Any, prim: Any, edges: Any) -> ReverseTracer:
        """A tracer of ans with a new node."""
        node = new(Node)
        node.edges = edges
        node.prim = prim
        node.serial = self.count = self.count + 1
        kind = ans.__class__
        d = ans.data if kind is Array else ans.node if kind is ReverseTracer else ans
        node.shape = d.shape
        node.dtype = d.dtype
        out = new(ReverseTracer)
        out.value = ans
        out.node = node
        out.level = self
        return out

    def record_whole(
        self, ans: Any, whole: Composed, nodes: Sequence[Node | None], kept: Sequence[Any]
    ) -> ReverseTracer:
        """A tracer of the result of a composition. nodes: of its operands, None for constants."""
        mine = [n for n in nodes if n is not None]
        to = mine[0]
        if len(mine) > 1:
            to = self.record(ans, sink, [(n, itemgetter(k), ()) for k, n in enumerate(mine)]).node
        return self.record(ans, whole, ((to, whole.pull, tuple(kept)),))

    def _joint(
        self, rule: Joint, prim: Primitive, vals: Any, mine: Any, params: tuple[Any, ...], ans: Any
    ) -> Any:
        """An op with one rule for all its operands: a call, so that the rule runs once."""
        at = dict(mine)
        several, n = prim.results != 1, len(vals)
        outs = ans if several else (ans,)

        def pull(kept: Any, cts: Any) -> Any:
            ins, ans = kept[:n], kept[n:] if several else kept[n]
            if rule.joint_pull is not None:
                return rule.pull_all(prim, cts, ins, params, ans, at)
            varying = [k for k, o in enumerate(kept[n:]) if o.dtype in INEXACT]

            def push(*ts: Any) -> list[Any]:
                given = dict(zip(at, ts, strict=True))
                full = [given[i] if i in given else zero_like(v) for i, v in enumerate(ins)]
                pushed = rule.push_all(prim, full, ins, params, ans)
                return [pushed[k] for k in varying]

            found = transpose(push, [ins[i] for i in at], [cts[k] for k in varying])
            given = dict(zip(at, found, strict=True))
            return [given.get(i) for i in range(n)]

        nodes = [at.get(i) for i in range(n)]
        recorded = self.record_call(outs, nodes, pull, prim.name, (*vals, *outs))
        return recorded if several else recorded[0]

    def region(self, region: Region, args: Sequence[Any]) -> tuple[Any, ...]:
        """A call with its own rules: one node whose pull is the reverse rule, given or derived."""
        mine = [a.__class__ is ReverseTracer and a.level is self for a in args]
        vals = tuple([a.value if m else a for a, m in zip(args, mine, strict=True)])
        if region.ruled and not any(mine):  # it got here by what it closes over
            unruled(self.label, region)
        if region.forward is not None and region.backward is not None:
            outs, kept = region.forward(*vals)
            pull, some = region.backward, region.some
        elif region.push is not None:
            outs, kept = region.push(vals, tuple(map(zero_like, vals)))[0], vals
            pull, some = self._pull_from_push(region, mine), True
        else:
            return region.run(*args)
        expect_below(self, region, (*outs, *kept))
        nodes = [a.node if m else None for a, m in zip(args, mine, strict=True)]
        return self.record_call(outs, nodes, pull, region.name, kept, some=some)

    def _pull_from_push(self, region: Region, mine: list[bool]) -> Callable[..., Any]:
        push = region.push
        assert push is not None

        def pull(vals: Any, cts: Any) -> list[Any]:
            def tangents_only(*ts: Any) -> tuple[Any, ...]:
                given = iter(ts)
                full = tuple(
                    [next(given) if m else zero_like(v) for v, m in zip(vals, mine, strict=True)]
                )
                return push(vals, full)[1]

            like = [v for v, m in zip(vals, mine, strict=True) if m]
            given = iter(_transpose(tangents_only, like, cts))
            return [next(given) if m else None for m in mine]

        return pull

    def record_call(
        self,
        outs: Sequence[Any],
        nodes: Sequence[Node | None],
        pull: Callable[[Any, Any], Any],
        name: str,
        kept: Sequence[Any],
        masked: Callable[[Any, Any], Any] | None = None,
        some: bool = False,
    ) -> tuple[Any, ...]:
        """Results of a call that is two nodes: one runs `pull(kept, cotangents)` once, one hands a
        part to each operand. masked: the pull below ops that make structural zeros, if another.
        some: whether they take None for a result that no cotangent came for.
        """
        at = [k for k, n in enumerate(nodes) if n is not None]
        edges = tuple([(nodes[k], itemgetter(k), ()) for k in at])
        ins = self.record(Slots(), sink, edges).node
        shapes = [(n.shape, n.dtype) if n is not None else None for n in nodes]
        types = [ShapeDtype(o.shape, o.dtype) for o in outs]

        def run(pull: Callable[[Any, Any], Any], slots: Slots, *kept: Any) -> list[Any]:
            def zeros() -> list[Any]:
                return [slots[i] if i in slots else zero_like(o) for i, o in enumerate(types)]

            try:
                given = pull(kept, [*map(slots.get, range(len(types)))] if some else zeros())
            except SizeError:  # a length is that of an absent cotangent alone
                given = pull(kept, zeros())
            if len(given) != len(shapes):
                raise TransformError(
                    f"{name}: the reverse rule must give {len(shapes)} cotangents, got {len(given)}"
                )
            return [
                _checked(name, k, g, shapes[k]) if shapes[k] is not None else None
                for k, g in enumerate(given)
            ]

        way: Any = partial(run, pull)
        if masked is not None:
            way = CallPull(way, partial(run, masked))
        call = self.record(Slots(), sink, ((ins, way, tuple(kept)),)).node
        ins.label = call.label = name
        return self._parts(call, name, outs)


ReverseTracer.ways = recording(Reverse)


class Watched(Reverse):
    """A tape above levels that watch: they are shown every node that is born."""

    __slots__ = ("watches",)

    watches: tuple[Watch, ...]

    def record(self, ans: Any, prim: Any, edges: Any) -> ReverseTracer:
        """A tracer of ans with a new node, which the watches have seen."""
        out = super().record(ans, prim, edges)
        for watch in self.watches:
            watch.born((out.node,))
        return out


def open_tape(
    label: str, fun: Callable[..., Any] | None, values: Sequence[Any], sites: bool = False
) -> Reverse:
    """A level for the derivative in these values: a watched one where a watch is below it.

    sites: its nodes are to know the user's lines.
    """
    if not sites and set(map(type, values)) == _BARE:
        return Reverse(label, fun)
    found = watches(values) + ((SITES,) if sites else ())
    if not found:
        return Reverse(label, fun)
    level = Watched(label, fun)
    level.watches = found
    return level


def zero_like(x: Any) -> Any:
    """The zero tangent or cotangent of x; float64 for an integer, which has none of its own."""
    zero = zeros(x.shape, dtype=x.dtype if x.dtype in INEXACT else np.float64)
    return zero.to_device(x.device) if is_remote(x) else zero


def _checked(name: str, k: int, g: Any, meta: Any) -> Any:
    if g is None:
        return None
    shape, dtype = meta
    if g.__class__ is Array and g.data.shape == shape and g.data.dtype is dtype:
        return g
    g = asarray(g)
    if g.shape != shape:
        raise ShapeError(
            f"{name}: cotangent {k} must have its operand's shape {shape}, got {g.shape}"
        )
    return match_operand(g, shape, dtype)


def lower(x: Any, level: Reverse) -> tuple[Any, Node | None]:
    """The value one level down, and its node if x is on this tape."""
    return (x.value, x.node) if x.__class__ is ReverseTracer and x.level is level else (x, None)


def zero_of(node: Node) -> Any:
    """The zero cotangent of a leaf."""
    return zeros(node.shape, dtype=node.dtype)


def transpose(
    linear: Callable[..., Sequence[Any]], like: Sequence[Any], cts: Sequence[Any]
) -> list[Any]:
    """Transpose of a linear flat function at cotangents; `like` types its operands."""
    found = zip(_transpose(linear, like, cts), like, strict=True)
    return [zero_like(x) if g is None else g for g, x in found]


def _transpose(
    linear: Callable[..., Sequence[Any]], like: Sequence[Any], cts: Sequence[Any]
) -> list[Any]:
    """`transpose`, with None for each operand that no cotangent comes to."""
    level = Reverse("transpose", linear)
    leaves = [level.record(zero_like(x), sink, ()) for x in like]
    try:
        outs = linear(*leaves)
    finally:
        level.open = False
    found = pull_back(level, outs, cts)
    return [found.get(t.node) for t in leaves]


def pull_back(
    level: Reverse, outs: Sequence[Any], cts: Sequence[Any], once: bool = False,
    masked: bool = False,
) -> dict[Node, Any]:  # fmt: skip
    """Leaf cotangents for several outputs at once; None for one that has none. once, masked: as in
    `backward`.
    """
    top = Node()
    top.serial, top.prim, top.shape, top.dtype = level.count + 1, sink, (), None
    pairs = [(lower(o, level)[1], c) for o, c in zip(outs, cts, strict=True) if c is not None]
    top.edges = tuple([(n, _constant, (c,)) for n, c in pairs if n is not None])
    return backward(top, None, once, masked) if top.edges else {}


def walked(
    label: str, fun: Callable[..., Any], operands: Sequence[Any], mine: Sequence[int],
    cts: Sequence[Any], masked: bool,
) -> list[Any]:  # fmt: skip
    """Cotangents of the operands at mine by a tape of the outputs that fun gives, op by op."""
    level = open_tape(label, fun, operands)
    full = list(operands)
    for k in mine:
        full[k] = level.record(full[k], sink, ())
    try:
        outs = fun(*full)
    finally:
        level.open = False
    found = pull_back(level, outs, cts, masked=masked)
    leaves = [full[k].node for k in mine]
    return [found[n] if n in found else zero_of(n) for n in leaves]


def _constant(g: Any, c: Any) -> Any:
    return c


def _transposed(
    rule: Any, prim: Primitive, i: int, vals: Sequence[Any], params: tuple[Any, ...], ans: Any
) -> Callable[[Any], Any]:
    """The pull of an op that states only its push: the transpose of the push, which is linear.

    `transpose` gives the adjoint; Note [Adjoint] asks for its conjugate where the result is
    complex.
    """
    conjugate = prim.results == 1 and ans.dtype.kind == "c"

    def pull(g: Any) -> Any:
        cts = g if isinstance(g, tuple) else (ops.conj(g) if conjugate else g,)

        def push(t: Value) -> tuple[Any, ...]:
            out = rule.push(prim, i, t, vals, params, ans)
            return out if isinstance(out, tuple) else (out,)

        h = transpose(push, [vals[i]], cts)[0]
        return ops.conj(h) if conjugate else h

    return pull
