"""One sweep over the steps of a while loop, and the sweeps that pull: see Note [Sweeps]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from funct.core import ShapeDtype
from funct.graph import Graph
from funct.transforms.control import bodies, halving
from funct.transforms.control.bodies import Flags, Flat
from funct.transforms.control.halving import Halves

__all__ = ["Sweep", "pulling"]


class Sweep(Struct, frozen=True, eq=False):
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


def pulling(
    original: Sequence[Sweep],
    c: int,
    ins: Sequence[Flags],
    outs: Sequence[Flags],
    sums: Sequence[ShapeDtype],
) -> list[Sweep]:
    """The sweeps again, each leaving residuals, and then the pulls, last sweep first.

    c: how many constants there are. ins, outs: per sweep, which inputs and outputs of its body
    vary. sums: types of the constants that vary, whose cotangents are summed over the steps.
    """
    held = [v.aval for v in original[0].body.inputs[:c]]
    cuts: list[Halves] = []
    sweeps: list[Sweep] = []
    starts: list[int] = []  # where, among all that is left at a step, a sweep's own begins
    at = 0
    for sweep, given, gives in zip(original, ins, outs, strict=True):
        n, reads = sweep.state, len(given) - c - sweep.state
        cut = halving.halves(
            sweep.body, given, gives,
            ready=(*(True,) * c, *(False,) * n, *(True,) * reads),
            fixed=(*(True,) * c, *(False,) * (n + reads)),
        )  # fmt: skip
        cuts.append(cut)
        seen = _seen(original, starts)
        sweeps.append(_reading(cut.forward, c, n, sweep.back, seen, sweeps))
        starts.append(at)
        at += sweep.left + len(cut.residuals)
    place = _seen(original, starts)
    later: list[tuple[int, Flags]] = []  # per pull so far: where it begins, and which it gives
    for k in reversed(range(len(original))):
        sweep, flags, cut = original[k], ins[k][c:], cuts[k]
        n = sweep.state
        results = [v.aval for v in sweep.body.outputs]
        cts = bodies.chosen(results[:n], flags[:n])
        own = starts[k] + sweep.left
        first = sum(s.left for s in original[:k])
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
        graph = bodies.regraph(body, [*held, *cts, *sums, *seen_types])
        sweeps.append(Sweep(graph, len(cts) + len(sums), not sweep.back))
        later.append((at, flags[n:]))
        at += sum(flags[n:])
    return sweeps


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
        left = [
            sum([seen[i] for i in places], bodies.zeros_of([aval])[0]) for aval, places in wanted
        ]
        found = cut.backward(
            *bodies.picked((*held, *seen), uses), *[seen[i] for i in own], *ct, *left
        )
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

    return Sweep(bodies.regraph(run, [*avals[: c + n], *left]), n, back)
