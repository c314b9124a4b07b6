"""while_loop: a state is carried on as long as a test of it holds.

On concrete values it is Python's `while`. What jit writes down is one node. Under vmap with a test
that differs between lanes the loop runs while any lane does, and a lane that has ended keeps its
state.

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
from typing import Any

import attrs
import numpy as np

from funct import ops
from funct import tree as pytree
from funct.array import Array
from funct.core import ShapeDtype
from funct.graph import Graph
from funct.transforms.carry import boolean_scalar, fitting, settled
from funct.transforms.reverse import zero_like
from funct.transforms.staged import (
    Flags,
    Flat,
    Halves,
    Staged,
    avals_of,
    captured,
    chosen,
    dual,
    halves,
    lanes,
    lifted,
    ordered,
    paired,
    picked,
    reached,
    regraph,
    repeated,
    trace,
    unpicked,
    zeros_of,
)  # fmt: skip
from funct.transforms.vmap import differs

__all__ = ["while_loop"]


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: Any) -> Any:
    """`while cond_fun(state): state = body_fun(state)`, from init; the last state.

    Args: cond_fun: from the state to one boolean. body_fun: from the state to the next, of the same
    structure, shapes and dtypes. init: a pytree; a Python number in it takes the dtype that
    body_fun gives it.
    Derivatives: every mode and order. Under jit, reverse mode runs the loop once more in its
    backward pass and holds what the pulls need for each step while it goes back.
    Raises: TreeError, ShapeError, DTypeError: when the state's type changes, or cond_fun does not
    give a boolean scalar.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> float(ft.while_loop(lambda x: x < 100.0, lambda x: x * x, xp.asarray(3.0)))
        6561.0

    Source: `jax.lax.while_loop`.
    """
    numbers, spec = pytree.flatten(init)
    state = settled("while_loop", numbers, lambda *xs: pytree.leaves(body_fun(spec.unflatten(xs))))
    tree, avals = spec.unflatten(state), avals_of(state)

    def test(leaves: Sequence[Any]) -> Any:
        out = cond_fun(spec.unflatten(leaves))
        return boolean_scalar("while_loop", "the result of cond_fun", out)

    def step(leaves: Sequence[Any]) -> list[Any]:
        return fitting("while_loop", "the state", tree, avals, body_fun(spec.unflatten(leaves)))

    if any(captured(x) for x in state):
        return spec.unflatten(_staged(cond_fun, body_fun, test, step, state))
    first = True
    while True:
        go = test(state)
        if first and captured(go):
            return spec.unflatten(_staged(cond_fun, body_fun, test, step, state))
        if not _any(go):
            return spec.unflatten(state)
        after = step(state)
        if first and any(captured(x) for x in after):
            return spec.unflatten(_staged(cond_fun, body_fun, test, step, state))
        if differs(go):
            after = [ops.where(go, a, b) for a, b in zip(after, state, strict=True)]
        state, first = after, False


def _any(x: Any) -> bool:
    """Whether x holds in any lane."""
    while x.__class__ is not Array:
        if not differs(x):
            return bool(x)
        x = x.value
    return bool(np.any(x.data))


def _staged(cond_fun: Any, body_fun: Any, test: Any, step: Any, state: Sequence[Any]) -> Flat:
    avals, n = avals_of(state), len(state)
    asks, seen = trace("while_loop", lambda *xs: [test(xs)], avals, cond_fun)
    steps, used = trace("while_loop", lambda *xs: step(xs), avals, body_fun)
    types = [*avals_of(seen), *avals_of(used), *avals]
    a, b = len(seen), len(seen) + len(used)
    loop = Sweeps(
        regraph(lambda *xs: asks(*xs[b:], *xs[:a]), types),
        [Sweep(regraph(lambda *xs: steps(*xs[b:], *xs[a:b]), types), n, False)],
        b,
    )
    return loop(*seen, *used, *state)


@attrs.frozen(eq=False)
class Sweep:
    """One run over the steps.

    body: (*constants, *state, *what earlier sweeps left) -> (*state, *what it leaves). state: how
    many values that is. back: from the last step to the first.
    """

    body: Graph
    state: int
    back: bool

    @property
    def left(self) -> int:
        """How many values it leaves at each step."""
        return len(self.body.outputs) - self.state

    def avals(self, constants: int) -> list[ShapeDtype]:
        """Types of its state."""
        return [v.aval for v in self.body.inputs[constants : constants + self.state]]


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
        sweeps = [attrs.evolve(s, body=change(s.body)) for s in self.sweeps]
        return Sweeps(change(self.test), sweeps, self.constants)

    def states(self, values: Sequence[Any]) -> list[Flat]:
        """Values that belong to the states, sweep by sweep."""
        out, at = [], 0
        for s in self.sweeps:
            out.append(tuple(values[at : at + s.state]))
            at += s.state
        return out

    def run(self, *buffers: Any) -> Flat:
        """The sweeps; a list for each step holds what is left there."""
        held = buffers[: self.constants]
        states = self.states(buffers[self.constants :])
        last = len(self.sweeps) - 1
        test, step = self.compiled(self.test), self.compiled(self.sweeps[0].body)
        left: list[list[Any]] = []
        state, n = states[0], len(states[0])
        while test(*held, *state)[0]:
            out = step(*held, *state)
            state = out[:n]
            if last:
                left.append([*out[n:]])
        results: list[Any] = [*state]
        for k, sweep in enumerate(self.sweeps[1:], 1):
            step, state, n = self.compiled(sweep.body), states[k], sweep.state
            for seen in reversed(left) if sweep.back else left:
                out = step(*held, *state, *seen)
                state = out[:n]
                if k < last:
                    seen.extend(out[n:])
                else:
                    seen.clear()
            results.extend(state)
        return tuple(results)

    def steady(self, flags: Flags, *, derivative: bool) -> tuple[list[Flags], list[Flags]]:
        """Per sweep, flags of its body's inputs and outputs that hold at every step."""
        held, firsts = flags[: self.constants], self.states(flags[self.constants :])
        seen: Flags = ()
        ins, outs = [], []
        for sweep, state in zip(self.sweeps, firsts, strict=True):
            n = sweep.state
            while True:
                out = reached(sweep.body, (*held, *state, *seen), derivative=derivative)
                wider = tuple([a or b for a, b in zip(state, out[:n], strict=True)])
                if wider == state:
                    break
                state = wider
            ins.append((*held, *state, *seen))
            outs.append((*state, *out[n:]))
            seen = (*seen, *out[n:])
        return ins, outs

    def push(self, mine: Flags, primals: Flat, tangents: Flat) -> tuple[Flat, Flat]:
        """Sweeps that carry tangents too."""
        loop, flags, order = self.once(("push", mine), lambda: self._dual(mine))
        full = [t if m else zero_like(p) for p, t, m in zip(primals, tangents, mine, strict=True)]
        c = self.constants
        found = loop(*picked([*primals, *chosen(full, flags)], order))
        sizes = [s.state for s in self.sweeps]
        both = unpicked(found, paired(flags[c:], *sizes))
        values, pushed = both[: len(self.outs)], iter(both[len(self.outs) :])
        return tuple(values), tuple(
            [next(pushed) if f else zero_like(o) for o, f in zip(values, flags[c:], strict=True)]
        )

    def _dual(self, mine: Flags) -> tuple[Sweeps, Flags, list[int]]:
        ins, outs = self.steady(mine, derivative=True)
        c = self.constants
        held = mine[:c]
        sweeps: list[Sweep] = []
        lefts: list[int] = []
        for sweep, given, gives in zip(self.sweeps, ins, outs, strict=True):
            n = sweep.state
            body = ordered(
                dual(sweep.body, given, gives),
                paired(given, c, n, *lefts),
                paired(gives, n, sweep.left),
            )
            lefts.append(sweep.left)
            sweeps.append(Sweep(body, n + sum(given[c : c + n]), sweep.back))
        flags = (*held, *[f for s, g in zip(self.sweeps, outs, strict=True) for f in g[: s.state]])
        n, m = self.sweeps[0].state, sum(held)
        types = [*self.ins[:c], *chosen(self.ins[:c], held)]
        types += sweeps[0].avals(len(types))
        test = regraph(lambda *xs: self.test(*xs[:c], *xs[c + m : c + m + n]), types)
        order = paired(flags, c, *[s.state for s in self.sweeps])
        return Sweeps(test, sweeps, c + m), flags, order

    def forward(self, mine: Flags, *vals: Any) -> tuple[Flat, Flat]:
        """The loop itself; the operands are the residuals."""
        return self(*vals), vals

    def backward(self, mine: Flags, residuals: Flat, cts: Flat) -> Flat:
        """The sweeps again, each leaving residuals, then back through all of them."""
        loop, ins, sums = self.once(("pull", mine), lambda: self._pulled(mine))
        c, n = self.constants, len(self.outs)
        states = self.states(cts)
        starts: list[Any] = []
        for k in reversed(range(len(self.sweeps))):
            starts += chosen(states[k], ins[k][c : c + self.sweeps[k].state])
            starts += zeros_of(sums)
        found = loop(*residuals, *starts)[n:]
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
                    total[i] = g if total[i] is None else total[i] + g
        every = [*total, *[g for first in reversed(firsts) for g in first]]
        return tuple([g if m else None for g, m in zip(every, mine, strict=True)])

    def _pulled(self, mine: Flags) -> tuple[Sweeps, list[Flags], list[ShapeDtype]]:
        ins, outs = self.steady(mine, derivative=True)
        c, m = self.constants, len(self.sweeps)
        sums = chosen(self.ins[:c], mine[:c])
        cuts: list[Halves] = []
        sweeps: list[Sweep] = []
        starts: list[int] = []  # where, among all that is left at a step, a sweep's own begins
        at = 0
        for sweep, given, gives in zip(self.sweeps, ins, outs, strict=True):
            n, reads = sweep.state, len(given) - c - sweep.state
            cut = halves(
                sweep.body, given, gives,
                ready=(*(True,) * c, *(False,) * n, *(True,) * reads),
                fixed=(*(True,) * c, *(False,) * (n + reads)),
            )  # fmt: skip
            cuts.append(cut)
            seen = _seen(self.sweeps, starts)
            sweeps.append(_reading(cut.forward, c, n, sweep.back, seen, sweeps))
            starts.append(at)
            at += sweep.left + len(cut.residuals)
        place = _seen(self.sweeps, starts)
        later: list[tuple[int, Flags]] = []  # per pull so far: where it begins, and which it gives
        for k in reversed(range(m)):
            sweep, flags, cut = self.sweeps[k], ins[k][c:], cuts[k]
            n = sweep.state
            results = [v.aval for v in sweep.body.outputs]
            cts = chosen(results[:n], flags[:n])
            own = starts[k] + sweep.left
            first = sum(s.left for s in self.sweeps[:k])
            wanted = [
                (aval, [at + sum(f[: first + i]) for at, f in later])
                for i, aval in enumerate(results[n:])
                if outs[k][n + i]
            ]
            body = _pull_body(
                cut,
                c,
                len(cts),
                len(sums),
                [i if i < c else c + place[i - c - n] for i in cut.uses],
                range(own, own + len(cut.residuals)),
                wanted,
            )
            seen_types = [a for s in sweeps for a in _left_avals(s)]
            graph = regraph(body, [*self.ins[:c], *cts, *sums, *seen_types])
            sweeps.append(Sweep(graph, len(cts) + len(sums), not sweep.back))
            later.append((at, flags[n:]))
            at += sum(flags[n:])
        return Sweeps(self.test, sweeps, c), ins, sums

    def batch(self, size: int, flags: Flags, vals: Flat) -> Flat:
        """Batched sweeps; where the test differs between lanes, each lane stops by itself."""
        c, n = self.constants, self.sweeps[0].state
        ins, outs = self.steady(flags, derivative=False)
        asked = reached(self.test, ins[0][: c + n], derivative=False)[0]
        if asked:
            flags = (*flags[:c], *(True,) * len(self.outs))
        loop = self.once(("batch", flags, asked, size), lambda: self._lanes(flags, asked, size))
        if not asked:
            flags = (
                *flags[:c],
                *[f for s, g in zip(self.sweeps, outs, strict=True) for f in g[: s.state]],
            )
        given = [
            repeated(v, a, size) if f else v for v, a, f in zip(vals, self.ins, flags, strict=True)
        ]
        if asked:
            go = lanes(self.test, flags[: c + n], (True,), size)(*given[: c + n])
            found = loop(*given[:c], *go, *given[c:])[1:]
        else:
            found = loop(*given)
        pairs = zip(found, self.outs, strict=True)
        return tuple([repeated(o, a, size) for o, a in pairs])

    def _lanes(self, flags: Flags, asked: bool, size: int) -> Sweeps:
        c, n = self.constants, self.sweeps[0].state
        if not asked:
            ins, outs = self.steady(flags, derivative=False)
            sweeps = [
                Sweep(lifted(s.body, i, o, size), s.state, s.back)
                for s, i, o in zip(self.sweeps, ins, outs, strict=True)
            ]
            return Sweeps(self.test, sweeps, c)
        held = flags[:c]

        def first(*v: Any) -> list[Any]:
            go, state = v[c], v[c + 1 :]
            out = self.sweeps[0].body(*v[:c], *state)
            after = [ops.where(go, a, b) for a, b in zip(out[:n], state, strict=True)]
            on = ops.logical_and(go, self.test(*v[:c], *after)[0])
            return [on, *after, go, *out[n:]]  # go is left for the other sweeps

        boolean = ShapeDtype((), np.dtype(bool))
        types = [v.aval for v in self.sweeps[0].body.inputs]
        lane = regraph(first, [*types[:c], boolean, *types[c:]])
        sweeps = [Sweep(_all_lanes(lane, held, size), n + 1, False)]
        for s in self.sweeps[1:]:

            def other(*v: Any, s: Sweep = s) -> list[Any]:
                state, go, seen = v[c : c + s.state], v[c + s.state], v[c + s.state + 1 :]
                out = s.body(*v[:c], *state, *seen)
                after = [ops.where(go, a, b) for a, b in zip(out, state, strict=False)]
                return [*after, *out[s.state :]]

            types = [v.aval for v in s.body.inputs]
            lane = regraph(other, [*types[: c + s.state], boolean, *types[c + s.state :]])
            sweeps.append(Sweep(_all_lanes(lane, held, size), s.state, s.back))
        whole = [v.aval for v in sweeps[0].body.inputs]
        test = regraph(lambda *v: [ops.any(v[c], (0,), False)], whole)
        return Sweeps(test, sweeps, c)


def _seen(sweeps: Sequence[Sweep], starts: Sequence[int]) -> list[int]:
    """Where the values that original sweeps left are among all that is left at a step."""
    return [at + i for s, at in zip(sweeps, starts, strict=False) for i in range(s.left)]


def _left_avals(sweep: Sweep) -> list[ShapeDtype]:
    return [v.aval for v in sweep.body.outputs[sweep.state :]]


def _pull_body(
    cut: Halves,
    c: int,
    n_ct: int,
    n_sum: int,
    uses: Sequence[int],
    own: range,
    wanted: Sequence[tuple[ShapeDtype, list[int]]],
) -> Callable[..., list[Any]]:
    """One step back of a sweep.

    (*constants, *cotangents of the state, *sums, *all that is left at the step) -> (*cotangents of
    the state before, *sums, *cotangents of what the sweep reads). uses: places of what the pull
    reads among constants and what is left. own: places of its residuals. wanted: for each value the
    sweep leaves, its type and the places of the cotangents that later sweeps have for it.
    """

    def body(*v: Any) -> list[Any]:
        held, ct, sums, seen = v[:c], v[c : c + n_ct], v[c + n_ct :][:n_sum], v[c + n_ct + n_sum :]
        left = [sum([seen[i] for i in places], zeros_of([aval])[0]) for aval, places in wanted]
        found = cut.backward(*picked((*held, *seen), uses), *[seen[i] for i in own], *ct, *left)
        added = [s + g for s, g in zip(sums, found[:n_sum], strict=True)]
        return [*found[n_sum : n_sum + n_ct], *added, *found[n_sum + n_ct :]]

    return body


def _reading(
    body: Graph, c: int, n: int, back: bool, seen: list[int], sweeps: Sequence[Sweep]
) -> Sweep:
    """A sweep whose body reads some of all that the sweeps before it have left."""
    avals = [v.aval for v in body.inputs]
    left = [a for s in sweeps for a in _left_avals(s)]

    def run(*v: Any) -> Flat:
        return body(*v[: c + n], *[v[c + n + i] for i in seen])

    return Sweep(regraph(run, [*avals[: c + n], *left]), n, back)


def _all_lanes(graph: Graph, held: Flags, size: int) -> Graph:
    """The graph with everything batched but the constants that are not."""
    flags = (*held, *(True,) * (len(graph.inputs) - len(held)))
    return lifted(graph, flags, (True,) * len(graph.outputs), size)
