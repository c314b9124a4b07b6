"""The loop that `scan` makes where it is written down: a body, run a known number of times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct import ops
from funct.array import asarray, zeros
from funct.compile import Loop, Refused, Repeat, worth_looping
from funct.core import ShapeDtype, Size, size_values
from funct.graph import Control, Graph, dependent
from funct.graph.controls import Written, agree, avals, remakes
from funct.transforms.control import bodies, halving
from funct.transforms.control.absent import without
from funct.transforms.control.bodies import Flags, Flat, Reach
from funct.transforms.control.deferred import deferred
from funct.transforms.control.gates import at_some_step, at_the_end, gated
from funct.transforms.control.staged import Less, Staged

__all__ = ["Scan", "counter", "part"]


def part(x: Any, start: int, stop: int) -> Any:
    """Rows of an array."""
    return ops.slice_(x, ((start, stop, 1), *((None, None, 1),) * (len(x.shape) - 1)))


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
        constants, _, xs = self.parts(flags)
        carry = at_some_step(self.body, flags, self.constants, self.carry, reach)
        outs = reach(self.body, (*constants, *carry, *xs))
        return (*constants, *carry, *xs), (*carry, *outs[self.carry :])

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
        """As of `Staged`; see Note [Gates] in `gates.py`."""
        loop, late, gone = self.once(("gates", moving), lambda: self._gates(moving))
        now = bodies.chosen(self.parts(moving)[1], late)
        c, n = self.split, self.carry
        given = (*args[:c], *map(asarray, now), *args[c:])
        outs = Staged.on_some(loop, given, (*moving[:c], *[False] * len(now), *moving[c:]))
        last = [None if g else v for v, g in zip(outs[:n], gone, strict=True)]
        return (*last, *outs[n + len(now) :])

    def _gates(self, moving: Flags) -> tuple[Scan, Flags, Flags]:
        """The loop that knows at each step what of its carry is there, and of what it does; and
        what of the last carry is not there though it may be earlier.
        """
        none = (False,) * self.carry
        if self.own or not any(moving):
            return self, none, none
        at = self.constants, self.carry
        body, late = gated(self.body, moving, *at)
        some = at_some_step(self.body, moving, *at, dependent)
        last = at_the_end(self.body, moving, *at, dependent, self.steps)
        gone = tuple([a and not b for a, b in zip(some, last, strict=True)])
        if not any(late):
            return self, none, gone
        more = self.carry + sum(late)
        return Scan(body, self.constants, more, self.steps, self.reverse), late, gone

    def push(self, mine: Flags, primals: Flat, tangents: Flat) -> tuple[Flat, Flat]:
        """A loop that carries tangents too."""
        loop, flags, outs, ins_order, outs_order = self.once(
            ("push", mine), lambda: self._dual(mine)
        )
        full = [t if m else None for t, m in zip(tangents, mine, strict=True)]
        moving = (*[False] * len(primals), *bodies.chosen(mine, flags))
        args = bodies.picked([*primals, *bodies.chosen(full, flags)], ins_order)
        pushed = loop.on_some(args, tuple(bodies.picked(moving, ins_order)))
        found = bodies.unpicked(pushed, outs_order)
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
