"""The loop that `while_loop` makes where it is written down: sweeps over its steps.

Note [Sweeps]: the number of steps is known only when the loop has run, so what its steps leave for
the pull cannot be a result of fixed shape. Hence reverse mode keeps nothing but the operands, and
its backward pass is a loop of two sweeps: forward again, each step leaving its residuals in a list,
then back through that list. Generally `Sweeps` is a `while` sweep followed by sweeps over the same
steps in either direction, each of which reads what the earlier ones left at its step. Tangents,
cotangents and batches of such a loop are such loops again, so any order of derivative works. Memory
while it runs: steps times residuals of one step; `checkpoint` on the body makes those the state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np
from msgspec.structs import replace

from funct import ops
from funct.array import asarray
from funct.compile import Loop, Refused, Repeat, made
from funct.core import ShapeDtype
from funct.graph import Control, Graph, dependent
from funct.graph.controls import Written, agree, avals, remakes
from funct.transforms.control import bodies
from funct.transforms.control.absent import without
from funct.transforms.control.bodies import Flags, Flat, Reach
from funct.transforms.control.gates import at_some_step, gated
from funct.transforms.control.halving import recorded
from funct.transforms.control.staged import Less, Staged
from funct.transforms.control.sweep import Sweep, pulling
from funct.transforms.control.trail import Stepwise, Whole, run_sweeps

__all__ = ["Sweeps"]


class Sweeps(Staged):
    """Sweeps over the steps of a while loop, see Note [Sweeps].

    Operands: constants, then the first state of each sweep. Results: the last states. test:
    (*constants, *state of the first sweep) -> whether to go on.
    """

    name = "while_loop"

    def __init__(self, test: Graph, sweeps: Sequence[Sweep], constants: int) -> None:
        self.test = test
        self.sweeps = tuple(sweeps)
        self.constants = constants
        states = [a for s in self.sweeps for a in s.avals(constants)]
        ins = (*[v.aval for v in test.inputs[:constants]], *states)
        names = ["body", *[f"sweep{k}" for k in range(1, len(self.sweeps))]]
        bodies = zip(names, [s.body for s in self.sweeps], strict=True)
        super().__init__([("test", test), *bodies], ins, tuple(states))

    def mapped(self, change: Callable[[Graph], Graph]) -> Sweeps:
        """The same sweeps with a changed test and changed bodies."""
        sweeps = [replace(s, body=change(s.body)) for s in self.sweeps]
        return Sweeps(change(self.test), sweeps, self.constants)

    def states(self, values: Sequence[Any]) -> list[Flat]:
        """Values that belong to the states, sweep by sweep."""
        out, at = [], 0
        for s in self.sweeps:
            out.append(tuple(values[at : at + s.state]))
            at += s.state
        return out

    def written(self) -> Written:
        """The sweeps, taken apart."""
        graphs = self.test, *[s.body for s in self.sweeps]
        kinds = tuple([(s.state, s.back) for s in self.sweeps])
        return Written("while_loop", graphs, (self.constants, kinds))

    def form(self) -> Repeat | None:
        """A loop that ends by itself; None where later sweeps need what its steps leave."""
        return self._bare() if len(self.sweeps) == 1 else None

    def _bare(self) -> Repeat:
        """The first sweep, which leaves nothing."""
        first = self._repeat(0)
        body = attrs.evolve(first.body, outputs=first.body.outputs[: first.carry])
        return replace(first, body=body)

    def _repeat(self, k: int) -> Repeat:
        sweep = self.sweeps[k]
        test = None if k else self.test
        return Repeat(sweep.body, self.constants, sweep.state, test=test, back=sweep.back)

    def run(self, *buffers: Any) -> Flat:
        """The sweeps, one after the other."""
        held = buffers[: self.constants]
        back = [s.back for s in self.sweeps]
        loops = self.once("programs", self._programs)
        states = self.states(buffers[self.constants :])
        if loops:
            try:
                return run_sweeps(Whole(held, loops[0], loops[1:], back), states)
            except Refused:
                pass  # the steps below say why
        test = self.compiled(self.test)
        steps = [partial(self.compiled(s.body), *held) for s in self.sweeps]
        return run_sweeps(Stepwise(lambda state: test(*held, *state)[0], steps, back), states)

    def _programs(self) -> list[Loop]:
        """The first sweep without what it leaves, and each sweep; nothing if one is no program."""
        each = range(len(self.sweeps)) if len(self.sweeps) > 1 else ()
        forms = [self._bare(), *map(self._repeat, each)]
        found = [Loop(m) for m in map(made, forms) if m is not None]
        return found if len(found) == len(forms) else []

    def steady(self, flags: Flags, reach: Reach) -> tuple[list[Flags], list[Flags]]:
        """Per sweep, flags of its body's inputs and outputs that hold at every step."""
        c, held = self.constants, flags[: self.constants]
        seen: Flags = ()
        ins, outs = [], []
        for sweep, first in zip(self.sweeps, self.states(flags[c:]), strict=True):
            n = sweep.state
            state = at_some_step(sweep.body, (*held, *first, *seen), c, n, reach)
            out = reach(sweep.body, (*held, *state, *seen))
            ins.append((*held, *state, *seen))
            outs.append((*state, *out[n:]))
            seen = (*seen, *out[n:])
        return ins, outs

    def depends(self, flags: Flags) -> Flags:
        """What depends on flagged operands after any number of steps; if that number does, all."""
        ins, outs = self.steady(flags, dependent)
        if dependent(self.test, ins[0])[0]:
            return (True,) * len(self.outs)
        return tuple([f for s, g in zip(self.sweeps, outs, strict=True) for f in g[: s.state]])

    def without(self, moving: Flags, absent: Flags, wanted: Flags) -> Less:
        """Sweeps that do not carry, read or leave them."""
        c = self.constants
        moved, lost = self.steady(moving, dependent), self.steady(absent, dependent)
        states, sweeps = self.states(wanted), []
        seen: Flags = ()
        for k, sweep in enumerate(self.sweeps):
            n = sweep.state
            pairs = zip(moved[1][k][n:], lost[1][k][n:], strict=True)
            left = tuple([m or not gone for m, gone in pairs])
            gone = (*absent[:c], *[not w for w in (*states[k], *seen)])
            body = without(sweep.body, moved[0][k], gone, (*states[k], *left))
            sweeps.append(Sweep(body, sum(states[k]), sweep.back))
            seen = (*seen, *left)
        gone = (*absent[:c], *[not w for w in states[0]])
        test = without(self.test, moved[0][0], gone, (True,))
        less = Sweeps(test, sweeps, c - sum(absent[:c]))
        return Less(less, (*[not a for a in absent[:c]], *wanted), wanted)

    def on_some(self, args: Sequence[Any], moving: Flags) -> Flat:
        """As of `Staged`; see Note [Gates] in `gates.py`."""
        loop, late = self.once(("gates", moving), lambda: self._gates(moving))
        if not any(map(any, late)):
            return super().on_some(args, moving)
        c = self.constants
        given, flags = [*args[:c]], [*moving[:c]]
        for values, now, behind in zip(
            self.states(args[c:]), self.states(moving[c:]), late, strict=True
        ):
            there = bodies.chosen(now, behind)
            given += [*values, *map(asarray, there)]
            flags += [*now, *[False] * len(there)]
        outs = loop.states(Staged.on_some(loop, given, tuple(flags)))
        pairs = zip(outs, self.sweeps, strict=True)
        return tuple([v for state, sweep in pairs for v in state[: sweep.state]])

    def _gates(self, moving: Flags) -> tuple[Sweeps, list[Flags]]:
        """Sweeps that know at each step what of their states is there, and of what they do."""
        c = self.constants
        if self.own or not any(moving):
            return self, [(False,) * s.state for s in self.sweeps]
        ins, _ = self.steady(moving, dependent)
        sweeps, late = [], []
        for sweep, flags, first in zip(self.sweeps, ins, self.states(moving[c:]), strict=True):
            n = sweep.state
            body, behind = gated(sweep.body, (*flags[:c], *first, *flags[c + n :]), c, n)
            sweeps.append(Sweep(body, n + sum(behind), sweep.back))
            late.append(behind)
        own, types = len(self.test.inputs), [v.aval for v in sweeps[0].body.inputs]
        test = bodies.regraph(lambda *xs: self.test(*xs[:own]), types)
        return Sweeps(test, sweeps, c), late

    def push(self, mine: Flags, primals: Flat, tangents: Flat) -> tuple[Flat, Flat]:
        """Sweeps that carry tangents too."""
        loop, flags, order = self.once(("push", mine), lambda: self._dual(mine))
        full = [t if m else None for t, m in zip(tangents, mine, strict=True)]
        moving = (*[False] * len(primals), *bodies.chosen(mine, flags))
        args = bodies.picked([*primals, *bodies.chosen(full, flags)], order)
        found = loop.on_some(args, tuple(bodies.picked(moving, order)))
        c, sizes = self.constants, [s.state for s in self.sweeps]
        both = bodies.unpicked(found, bodies.paired(flags[c:], *sizes))
        n = len(self.outs)
        return tuple(both[:n]), bodies.or_zero(both[n:], flags[c:], both[:n])

    def _dual(self, mine: Flags) -> tuple[Sweeps, Flags, list[int]]:
        ins, outs = self.steady(mine, bodies.varied)
        c = self.constants
        held = mine[:c]
        sweeps: list[Sweep] = []
        lefts: list[int] = []
        for sweep, given, gives in zip(self.sweeps, ins, outs, strict=True):
            n = sweep.state
            body = bodies.ordered(
                bodies.dual(sweep.body, given, gives),
                bodies.paired(given, c, n, *lefts),
                bodies.paired(gives, n, sweep.left),
            )
            lefts.append(sweep.left)
            sweeps.append(Sweep(body, n + sum(given[c : c + n]), sweep.back))
        flags = (*held, *[f for s, g in zip(self.sweeps, outs, strict=True) for f in g[: s.state]])
        n, m = self.sweeps[0].state, sum(held)
        types = [*self.ins[:c], *bodies.chosen(self.ins[:c], held)]
        types += sweeps[0].avals(len(types))
        test = bodies.regraph(lambda *xs: self.test(*xs[:c], *xs[c + m : c + m + n]), types)
        order = bodies.paired(flags, c, *[s.state for s in self.sweeps])
        return Sweeps(test, sweeps, c + m), flags, order

    def forward(self, mine: Flags, *vals: Any) -> tuple[Flat, Flat]:
        """The loop itself; the operands are the residuals."""
        loop = self.once(("recorded", mine), lambda: self._recorded(mine))
        return loop(*vals), vals

    def _recorded(self, mine: Flags) -> Sweeps:
        ins, _ = self.steady(mine, bodies.varied)
        pairs = list(zip(self.sweeps, ins, strict=True))
        changed = [replace(s, body=recorded(s.body, given)) for s, given in pairs]
        if all(a.body is b.body for a, b in zip(changed, self.sweeps, strict=True)):
            return self
        return Sweeps(self.test, changed, self.constants)

    def backward(self, mine: Flags, residuals: Flat, cts: Flat) -> Flat:
        """The sweeps again, each leaving residuals, then back through all of them."""
        loop, ins, sums = self.once(("pull", mine), lambda: self._pulled(mine))
        c, n = self.constants, len(self.outs)
        states = self.states(cts)
        starts: list[Any] = list(residuals)
        moving = [False] * len(residuals)
        for k in reversed(range(len(self.sweeps))):
            own = bodies.chosen(states[k], ins[k][c : c + self.sweeps[k].state])
            starts += [*own, *bodies.zeros_of(sums)]
            moving += [*[ct is not None for ct in own], *[False] * len(sums)]
        flags = tuple(moving)
        found = self.reaching(loop, loop.on_some(starts, flags), flags)[n:]
        total: list[Any] = [None] * c
        firsts: list[list[Any]] = []
        at = 0
        for k in reversed(range(len(self.sweeps))):
            flags = ins[k][c : c + self.sweeps[k].state]
            given = iter(found[at : at + sum(flags)])
            firsts.append([next(given) if f else None for f in flags])
            at += sum(flags)
            added = iter(found[at : at + len(sums)])
            at += len(sums)
            for i in range(c):
                if mine[i]:
                    g = next(added)
                    total[i] = g if total[i] is None else total[i] if g is None else total[i] + g
        every = [*total, *[g for first in reversed(firsts) for g in first]]
        return tuple([g if m else None for g, m in zip(every, mine, strict=True)])

    def _pulled(self, mine: Flags) -> tuple[Sweeps, list[Flags], list[ShapeDtype]]:
        ins, outs = self.steady(mine, bodies.varied)
        sums = bodies.chosen(self.ins[: self.constants], mine[: self.constants])
        sweeps = pulling(self.sweeps, self.constants, ins, outs, sums)
        return Sweeps(self.test, sweeps, self.constants), ins, sums

    def batch(self, size: Any, flags: Flags, vals: Flat) -> Flat:
        """Batched sweeps; where the test differs between lanes, each lane stops by itself."""
        c, n = self.constants, self.sweeps[0].state
        ins, outs = self.steady(flags, bodies.reached)
        asked = bodies.reached(self.test, ins[0][: c + n])[0]
        if asked:
            flags = (*flags[:c], *(True,) * len(self.outs))
        loop = self.once(("batch", flags, asked, size), lambda: self._lanes(flags, asked, size))
        if not asked:
            flags = (
                *flags[:c],
                *[f for s, g in zip(self.sweeps, outs, strict=True) for f in g[: s.state]],
            )
        given = bodies.repeated_where(flags, vals, self.ins, size)
        if asked:
            go = bodies.lanes(self.test, flags[: c + n], (True,), size)(*given[: c + n])
            found = loop(*given[:c], *go, *given[c:])[1:]
        else:
            found = loop(*given)
        pairs = zip(found, self.outs, strict=True)
        return tuple([bodies.shared(o, a) for o, a in pairs])

    def _lanes(self, flags: Flags, asked: bool, size: Any) -> Sweeps:
        c, n = self.constants, self.sweeps[0].state
        if not asked:
            ins, outs = self.steady(flags, bodies.reached)
            sweeps = [
                Sweep(bodies.lifted(s.body, i, o, size), s.state, s.back)
                for s, i, o in zip(self.sweeps, ins, outs, strict=True)
            ]
            test = bodies.lifted(self.test, ins[0][: c + n], (False,), size)
            return Sweeps(test, sweeps, c)
        held = flags[:c]

        def first(*v: Any) -> list[Any]:
            go, state = v[c], v[c + 1 :]
            out = self.sweeps[0].body(*v[:c], *state)
            after = [ops.where(go, a, b) for a, b in zip(out[:n], state, strict=True)]
            on = ops.logical_and(go, self.test(*v[:c], *after)[0])
            return [on, *after, go, *out[n:]]  # go is left for the other sweeps

        boolean = ShapeDtype((), np.dtype(bool))
        types = [v.aval for v in self.sweeps[0].body.inputs]
        lane = bodies.regraph(first, [*types[:c], boolean, *types[c:]])
        sweeps = [Sweep(_all_lanes(lane, held, size), n + 1, False)]
        for s in self.sweeps[1:]:

            def other(*v: Any, s: Sweep = s) -> list[Any]:
                state, go, seen = v[c : c + s.state], v[c + s.state], v[c + s.state + 1 :]
                out = s.body(*v[:c], *state, *seen)
                after = [ops.where(go, a, b) for a, b in zip(out, state, strict=False)]
                return [*after, *out[s.state :]]

            types = [v.aval for v in s.body.inputs]
            lane = bodies.regraph(other, [*types[: c + s.state], boolean, *types[c + s.state :]])
            sweeps.append(Sweep(_all_lanes(lane, held, size), s.state, s.back))
        whole = [v.aval for v in sweeps[0].body.inputs]
        test = bodies.regraph(lambda *v: [ops.any(v[c], (0,), False)], whole)
        return Sweeps(test, sweeps, c)


def _all_lanes(graph: Graph, held: Flags, size: Any) -> Graph:
    """The graph with everything batched but the constants that are not."""
    flags = (*held, *(True,) * (len(graph.inputs) - len(held)))
    return bodies.lifted(graph, flags, (True,) * len(graph.outputs), size)


@remakes("while_loop")
def _again(graphs: Sequence[Graph], values: tuple[Any, ...]) -> Control:
    """The sweeps that `Sweeps.written` took apart."""
    (test, *bodies), (constants, kinds) = graphs, values
    agree("while_loop", type(constants) is int and constants >= 0, len(kinds) == len(bodies) > 0)
    agree("while_loop", all(type(n) is int and n >= 0 and type(b) is bool for n, b in kinds))
    sweeps = [Sweep(g, n, back) for g, (n, back) in zip(bodies, kinds, strict=True)]
    held = avals(test.inputs[:constants])
    left: list[ShapeDtype] = []
    for sweep in sweeps:
        ins, outs = avals(sweep.body.inputs), avals(sweep.body.outputs)
        split = constants + sweep.state
        agree("while_loop", ins[:constants] == held, ins[constants:split] == outs[: sweep.state])
        agree("while_loop", ins[split:] == left, len(outs) >= sweep.state)
        left += outs[sweep.state :]
    agree("while_loop", avals(test.inputs) == avals(bodies[0].inputs))
    agree("while_loop", avals(test.outputs) == [ShapeDtype((), np.dtype(bool))])
    return Sweeps(test, sweeps, constants).primitive
