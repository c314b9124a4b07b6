"""The loop that `scan` makes where it is written down: a body, run a known number of times.

Note [First steps]: what has a tangent, or a cotangent, need not be the same at all steps: a carry
that the next step does not read has a cotangent in the last step alone, and a first carry that is a
number has no tangent. A loop has one body, which would be given zeros there, and 0 · inf is NaN. So
the steps before that no longer changes are taken by themselves, where something may be infinite.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct import ops
from funct.array import zeros
from funct.compile import Loop, Refused, Repeat, worth_looping
from funct.core import ShapeDtype, Size, size_values
from funct.graph import Control, Graph, Guard, Node, dependent
from funct.graph.controls import Written, agree, avals, remakes
from funct.transforms.control import bodies, halving
from funct.transforms.control.absent import present, without
from funct.transforms.control.bodies import Flags, Flat, Reach
from funct.transforms.control.deferred import deferred
from funct.transforms.control.staged import Less, Staged
from funct.transforms.forward import jvp

__all__ = ["Scan", "counter", "part"]

_ALONE = 4  # steps that are taken by themselves, at most
_GENTLE = frozenset({  # ops with finite derivatives where their operands are finite
    "abs", "absorb", "add", "argmax", "argmin", "argsort", "astype", "broadcast_to", "ceil",
    "checkpoint_name", "complex_of", "concat", "conj", "contract", "convolution", "cos", "cosh",
    "cumulative_sum", "embed", "equal", "exp", "exp2", "expit", "expm1", "flip", "floor", "greater",
    "greater_equal", "imag", "less", "less_equal", "linear_recurrence", "logical_and",
    "logical_not", "logical_or", "matmul", "maximum", "minimum", "multiply", "negative",
    "not_equal", "permute_dims", "put", "put_along_axis", "real", "reduce_max", "reduce_min",
    "reduce_sum", "relu", "reshape", "round", "scatter", "scatter_add", "settled", "sigmoid",
    "sign", "sin", "sinh", "size_along", "slice_", "square", "stop_gradient", "subtract", "take",
    "take_along_axis", "tanh", "where", "wrap_index",
})  # fmt: skip


def part(x: Any, start: int, stop: int) -> Any:
    """Rows of an array."""
    return ops.slice_(x, ((start, stop, 1), *((None, None, 1),) * (len(x.shape) - 1)))


def _is_gentle(graph: Graph) -> bool:
    """Whether no derivative in it is infinite where its values are finite."""
    return all(
        all(_is_gentle(g) for _, g in e.primitive.bodies)
        if isinstance(e, Node) and isinstance(e.primitive, Control)
        else isinstance(e, Guard) or (isinstance(e, Node) and e.name in _GENTLE)
        for e in graph.nodes
    )


class Scan(Staged):
    """A loop of `steps` steps. Operands: constants, first carry, xs. Results: last carry, ys.

    body: (*constants, *carry, *x) -> (*carry, *y). A symbolic number of steps is read off the xs;
    where there are none, `counter` is one.
    """

    name = "scan"

    def __init__(self, body: Graph, constants: int, carry: int, steps: Any, reverse: bool) -> None:
        self.body = body
        self.constants = constants
        self.carry = carry
        self.steps = steps
        self.reverse = reverse
        avals = [v.aval for v in body.inputs]
        split = constants + carry
        ins = (*avals[:split], *[bodies.batched(a, steps) for a in avals[split:]])
        results = [v.aval for v in body.outputs]
        outs = (*results[:carry], *[bodies.batched(a, steps) for a in results[carry:]])
        super().__init__([("body", body)], ins, outs)

    def mapped(self, change: Callable[[Graph], Graph]) -> Scan:
        """The same loop with a changed body."""
        return Scan(change(self.body), self.constants, self.carry, self.steps, self.reverse)

    def made_for(self, sizes: dict[str, Any]) -> Scan:
        """The same loop for these values of the symbols."""
        steps = size_values(self.steps, sizes)
        body = bodies.at_sizes(self.body, sizes)
        return Scan(body, self.constants, self.carry, steps, self.reverse)

    @property
    def split(self) -> int:
        """Where xs begin among the operands."""
        return self.constants + self.carry

    def run(self, *buffers: Any) -> Flat:
        """The loop."""
        held, carry = buffers[: self.constants], buffers[self.constants : self.split]
        xs = buffers[self.split :]
        n = len(xs[0]) if isinstance(self.steps, Size) else self.steps
        whole = self._whole() if worth_looping(self.body, n) else None
        if whole is not None:
            try:
                return whole(buffers, n)[0]
            except Refused:
                pass  # the steps below say why
        step = self.compiled(self.body)
        outs = self.outs[self.carry :]
        if self.symbols:
            sizes = {s.name: buffers[s.input].shape[s.axis] for s in self.symbols}
            outs = tuple([ShapeDtype(size_values(a.shape, sizes), a.dtype) for a in outs])
        ys = [np.empty(a.shape, a.dtype) for a in outs]
        for k in range(n - 1, -1, -1) if self.reverse else range(n):
            out = step(*held, *carry, *[x[k] for x in xs])
            carry = out[: self.carry]
            for y, v in zip(ys, out[self.carry :], strict=True):
                y[k] = v
        return (*carry, *ys)

    def written(self) -> Written:
        """The loop, taken apart."""
        values = self.constants, self.carry, self.steps, self.reverse
        return Written("scan", (self.body,), values)

    def form(self) -> Repeat:
        """A loop of a known number of steps."""
        steps = self.steps if isinstance(self.steps, int) else None
        return Repeat(self.body, self.constants, self.carry, steps, back=self.reverse)

    def _whole(self) -> Loop | None:
        """The loop as one program, if its body can be that."""
        made = self.native()
        return None if made is None else self.once("whole", lambda: Loop(made))

    def parts(self, values: Sequence[Any]) -> tuple[Flat, Flat, Flat]:
        """Operands (or what belongs to them) as constants, carry, xs."""
        v = tuple(values)
        return v[: self.constants], v[self.constants : self.split], v[self.split :]

    def steady(self, flags: Flags, reach: Reach) -> tuple[Flags, Flags]:
        """Flags of the body's inputs and outputs once they no longer change from step to step."""
        constants, carry, xs = self.parts(flags)
        while True:
            outs = reach(self.body, (*constants, *carry, *xs))
            wider = tuple([a or b for a, b in zip(carry, outs[: self.carry], strict=True)])
            if wider == carry:
                return (*constants, *carry, *xs), (*carry, *outs[self.carry :])
            carry = wider

    def depends(self, flags: Flags) -> Flags:
        """What depends on flagged operands after any number of steps."""
        return self.steady(flags, dependent)[1]

    def without(self, moving: Flags, absent: Flags, wanted: Flags) -> Less:
        """A loop that does not carry, read or write them."""
        moved, _ = self.steady(moving, dependent)
        held, _, xs = self.parts(absent)
        carried = wanted[: self.carry]
        gone = (*held, *[not w for w in carried], *xs)
        body = without(self.body, moved, gone, wanted)
        constants = len(held) - sum(held)
        less = Scan(body, constants, sum(carried), self.steps, self.reverse)
        return Less(less, tuple([not g for g in gone]), wanted)

    def on_some(self, args: Sequence[Any], moving: Flags) -> Flat:
        """As of `Staged`; see Note [First steps]."""
        return self._on_some(args, moving, _ALONE)

    def _on_some(self, args: Sequence[Any], moving: Flags, most: int) -> Flat:
        held, now, xs = self.parts(moving)
        then = dependent(self.body, moving)[: self.carry] if any(moving) else now
        whose = [m or a is None for a, m in zip(self.parts(args)[1], now, strict=True)]
        same = all(a is b for a, b, w in zip(now, then, whose, strict=True) if w)
        if same or self.own or not most or not self._has_first():
            return super().on_some(args, moving)
        given, left = self._cut(args)
        outs = present(self.body, given, moving)
        pairs = zip(outs[: self.carry], whose, then, strict=True)
        carry = [None if w and not t else v for v, w, t in pairs]
        later = (*left[: self.constants], *carry, *left[self.constants :])
        if self.steps == 1:
            return self._joined(outs, carry)
        found = self._after()._on_some(later, (*held, *then, *xs), most - 1)
        return self._joined(outs, found)

    def _has_first(self) -> bool:
        """Whether there is a first step, of which all lengths are known."""
        return type(self.steps) is int and self.steps > 0 and not self.symbols

    def _cut(self, args: Sequence[Any]) -> tuple[Flat, Flat]:
        """Operands of the body at the first step; constants and xs of a loop of the others."""
        held, carry, xs = self.parts(args)
        n = self.steps
        at, rest = (n - 1, (0, n - 1)) if self.reverse else (0, (1, n))
        row = [None if x is None else ops.reshape(part(x, at, at + 1), x.shape[1:]) for x in xs]
        left = [None if x is None else part(x, *rest) for x in xs]
        return (*held, *carry, *row), (*held, *left)

    def _after(self) -> Scan:
        """The loop of the steps after the first."""
        return self.once(
            "after",
            lambda: Scan(self.body, self.constants, self.carry, self.steps - 1, self.reverse),
        )

    def _joined(self, first: Sequence[Any], others: Sequence[Any]) -> Flat:
        """Results of the loop, from those of the body at the first step and those of the others,
        if there are any.
        """
        rows: list[Any] = []
        for y, ys in itertools.zip_longest(first[self.carry :], others[self.carry :]):
            if y is None and ys is None:
                rows.append(None)
                continue
            some = ys if y is None else ops.reshape(y, (1, *y.shape))
            one = zeros((1, *some.shape[1:]), dtype=some.dtype) if y is None else some
            rest = zeros((self.steps - 1, *one.shape[1:]), dtype=one.dtype) if ys is None else ys
            rows.append(ops.concat(*((rest, one) if self.reverse else (one, rest)), 0))
        return (*others[: self.carry], *rows)

    def push(self, mine: Flags, primals: Flat, tangents: Flat) -> tuple[Flat, Flat]:
        """A loop that carries tangents too; see Note [First steps]."""
        return self._push(mine, primals, tangents, _ALONE)

    def _push(self, mine: Flags, primals: Flat, tangents: Flat, most: int) -> tuple[Flat, Flat]:
        held, now, xs = self.parts(mine)
        then = bodies.varied(self.body, mine)[: self.carry]
        if now == then or not most or not self._has_first() or _is_gentle(self.body):
            return self._pushed(mine, primals, tangents)
        (given, left), (ts, left_ts) = (
            self._cut(primals),
            self._cut([t if m else None for t, m in zip(tangents, mine, strict=True)]),
        )
        outs, pushed = jvp(
            bodies.freed(self.body, mine, given),
            tuple(bodies.chosen(given, mine)), tuple(bodies.chosen(ts, mine)),
        )  # fmt: skip
        c, n = self.constants, self.carry
        if self.steps == 1:
            return self._joined(outs, outs[:n]), self._joined(pushed, pushed[:n])
        found, moved = self._after()._push(
            (*held, *then, *xs),
            (*left[:c], *outs[:n], *left[c:]),
            (*left_ts[:c], *pushed[:n], *left_ts[c:]),
            most - 1,
        )
        return self._joined(outs, found), self._joined(pushed, moved)

    def _pushed(self, mine: Flags, primals: Flat, tangents: Flat) -> tuple[Flat, Flat]:
        """By one loop."""
        loop, flags, outs, ins_order, outs_order = self.once(
            ("push", mine), lambda: self._dual(mine)
        )
        full = bodies.tangents_of(mine, primals, tangents)
        found = bodies.unpicked(
            loop(*bodies.picked([*primals, *bodies.chosen(full, flags)], ins_order)), outs_order
        )
        n = len(outs)
        return tuple(found[:n]), bodies.or_zero(found[n:], outs, found[:n])

    def _dual(self, mine: Flags) -> tuple[Any, ...]:
        flags, outs = self.steady(mine, bodies.varied)
        sizes = [len(p) for p in self.parts(flags)]
        ins_order = bodies.paired(flags, *sizes)
        outs_order = bodies.paired(outs, self.carry, len(outs) - self.carry)
        body = bodies.ordered(bodies.dual(self.body, flags, outs), ins_order, outs_order)
        constants, carry = (
            n + sum(f) for n, f in zip(sizes[:2], self.parts(flags)[:2], strict=True)
        )
        return (
            Scan(body, constants, carry, self.steps, self.reverse),
            flags,
            outs,
            ins_order,
            outs_order,
        )

    def forward(self, mine: Flags, *vals: Any) -> tuple[Flat, Flat]:
        """The loop that gives each step's residuals as further ys."""
        halved = self.once(("halves", mine), lambda: _Halves(self, mine))
        both = halved.forward(*vals)
        n = len(self.outs)
        return both[:n], (*[vals[k] for k in halved.uses], *both[n:])

    def backward(self, mine: Flags, residuals: Flat, cts: Flat) -> Flat:
        """A loop in the other direction."""
        halved = self.once(("halves", mine), lambda: _Halves(self, mine))
        return halved.pull(residuals, cts)

    def batch(self, size: Any, flags: Flags, vals: Flat) -> Flat:
        """A loop whose body is batched; a carry that no batch reaches stays without."""
        flags, outs = self.steady(flags, bodies.reached)
        c = self.carry

        def make() -> Scan:
            body = bodies.lifted(self.body, flags, outs, size)
            return Scan(body, self.constants, c, self.steps, self.reverse)

        loop = self.once(("batch", flags, size), make)
        given = bodies.repeated_where(flags, vals, self.ins, size)
        xs = [
            ops.move_axis(x, 0, 1) if f else x
            for x, f in zip(given[self.split :], flags[self.split :], strict=True)
        ]
        found = loop(*given[: self.split], *xs)
        ys = [ops.move_axis(y, 1, 0) if f else y for y, f in zip(found[c:], outs[c:], strict=True)]
        pairs = zip((*found[:c], *ys), self.outs, strict=True)
        return tuple([bodies.shared(o, a) for o, a in pairs])


_COUNTER = ShapeDtype((0,), np.float64)


def counter(steps: Any) -> Any:
    """Xs of no elements, which only tell how many steps there are."""
    return zeros((steps, 0))


class _Halves:
    """The loop that keeps residuals, and the loop that pulls."""

    def __init__(self, loop: Scan, mine: Flags) -> None:
        self.loop = loop
        self.mine = mine
        self.flags, self.outs = loop.steady(mine, bodies.varied)
        held, carry, xs = loop.parts(self.flags)
        steps, c = loop.steps, loop.constants
        cut = halving.halves(
            loop.body, self.flags, self.outs,
            ready=(*(True,) * c, *(False,) * len(carry), *(True,) * len(xs)),
            fixed=(*(True,) * c, *(False,) * (len(carry) + len(xs))),
        )  # fmt: skip
        self.forward = Scan(cut.forward, c, len(carry), steps, loop.reverse)
        self.uses = cut.uses
        self.held = sum(k < c for k in cut.uses)
        avals = [v.aval for v in loop.body.inputs]
        sums = bodies.chosen(loop.parts(avals)[0], held)
        kept, every = len(cut.uses) + len(cut.residuals), len(cut.backward.inputs)
        given = [*range(self.held, kept), *range(kept + sum(carry), every)]
        self.late = deferred(cut.backward, len(sums), given, steps)
        self.sums = [a for k, a in enumerate(sums) if k not in self.late.late]
        cts = bodies.chosen([v.aval for v in loop.body.outputs], self.outs)
        n_held, n_ct, n_sum = self.held, sum(carry), len(self.sums)
        types = [avals[k] for k in cut.uses]
        ins = [
            *types[:n_held], *cts[:n_ct], *self.sums, *types[n_held:], *cut.residuals, *cts[n_ct:],
        ]  # fmt: skip

        self.counted = isinstance(steps, Size) and len(ins) == n_held + n_ct + n_sum
        if self.counted:
            ins.append(_COUNTER)

        def body(*v: Any) -> list[Any]:
            v = v[:-1] if self.counted else v
            a, b, d = n_held, n_held + n_ct, n_held + n_ct + n_sum
            e = len(v) - (len(cts) - n_ct)
            found = self.late.graph(*v[:a], *v[d:e], *v[a:b], *v[e:])
            added = [s + g for s, g in zip(v[b:d], found[:n_sum], strict=True)]
            return [*found[n_sum : n_sum + n_ct], *added, *found[n_sum + n_ct :]]

        self.backward = Scan(
            bodies.regraph(body, ins), n_held, n_ct + n_sum, steps, not loop.reverse
        )

    def pull(self, residuals: Flat, cts: Flat) -> Flat:
        """Cotangents of all operands."""
        n = self.held
        given = bodies.chosen(cts, self.outs)
        n_ct = sum(self.loop.parts(self.flags)[1])
        groups = [  # and whether they are cotangents
            (residuals[:n], False),
            (given[:n_ct], True),
            ((*bodies.zeros_of(self.sums), *residuals[n:]), False),
            (given[n_ct:], True),
            ([counter(self.loop.steps)] if self.counted else [], False),
        ]
        args = [x for group, _ in groups for x in group]
        flags = tuple([ct and x is not None for group, ct in groups for x in group])
        found = self.backward.on_some(args, flags)
        end = len(found) - self.late.made
        found = (*self.loop.reaching(self.backward, found, flags)[:end], *found[end:])
        rows = n_ct + len(self.sums)
        sums = self.late.sums(found[n_ct:rows], found[end:], (*residuals, *given))
        each = iter((*sums, *found[:n_ct], *found[rows:end]))
        out = [next(each) if f else None for f in self.flags]
        return tuple([g if m else None for g, m in zip(out, self.mine, strict=True)])


@remakes("scan")
def _again(graphs: Sequence[Graph], values: tuple[Any, ...]) -> Control:
    """The loop that `Scan.written` took apart."""
    (body,), (constants, carry, steps, reverse) = graphs, values
    counts = constants, carry, *([] if isinstance(steps, Size) else [steps])
    agree("scan", all(type(n) is int and n >= 0 for n in counts))
    ins, outs = avals(body.inputs), avals(body.outputs)
    agree("scan", constants + carry <= len(ins), carry <= len(outs), type(reverse) is bool)
    agree("scan", ins[constants : constants + carry] == outs[:carry])
    return Scan(body, constants, carry, steps, reverse).primitive
