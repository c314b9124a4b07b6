"""scan: a function carried through the steps of a loop.

On concrete values the function is called step by step, and whatever transforms are active see the
steps. What jit writes down is one node with the captured body, whatever the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct import ops
from funct import tree as pytree
from funct.array import Array, Tensor, asarray, stack
from funct.core import ShapeDtype
from funct.errors import ArgumentError, ShapeError, TransformError
from funct.graph import Graph
from funct.ops.families import wrap
from funct.transforms import bodies
from funct.transforms.bodies import Flags, Flat
from funct.transforms.carry import fitting, leaf_name, settled
from funct.transforms.staged import Staged

__all__ = ["Scan", "scan", "steps_of"]


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Carry a state through the steps of a loop: `carry, y = f(carry, x)` for each x of xs.

    Args: f: from (carry, x) to (carry, y); the carry keeps its structure, shapes and dtypes. init:
    the first carry, a pytree; a Python number in it takes the dtype that f gives it. xs: a pytree
    of arrays with the steps on axis 0, or None. length: the number of steps, where xs does not tell
    it. reverse: from the last x to the first; ys stay in the order of xs. unroll: a hint, ignored.
    Returns: (the last carry, ys), where ys has the structure of y and the steps on axis 0.
    Derivatives: reverse mode keeps for each step what the pull of f needs; `checkpoint(f)` makes
    that the carry alone.
    Raises: TreeError, ShapeError, DTypeError: when the carry's type changes or lengths disagree.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> total, sums = ft.scan(lambda c, x: (c + x, c + x), 0.0, xp.asarray([1.0, 2.0, 3.0]))
        >>> float(total), sums.tolist()
        (6.0, [1.0, 3.0, 6.0])

    Source: `jax.lax.scan`.
    """
    columns, x_spec = pytree.flatten(xs)
    columns = [x if isinstance(x, Tensor) else asarray(x) for x in columns]
    n = steps_of(xs, columns, length)
    if unroll < 1 and unroll is not False:
        raise ArgumentError(f"scan: unroll must be a positive int or a bool, got {unroll!r}")
    numbers, spec = pytree.flatten(init)

    def call(carry: Sequence[Any], x: Sequence[Any]) -> tuple[Any, Any]:
        out: Any = f(spec.unflatten(carry), x_spec.unflatten(x))
        if not isinstance(out, tuple) or len(out) != 2:
            raise TransformError(f"scan: f must return (carry, y), got {type(out).__name__}")
        return out

    x_avals = [ShapeDtype(x.shape[1:], x.dtype) for x in columns]

    def probe(*leaves: Any) -> list[Any]:
        split = len(numbers)
        return pytree.leaves(call(leaves[:split], leaves[split:])[0])

    carry = settled("scan", numbers, probe, x_avals)
    tree, avals = spec.unflatten(carry), bodies.avals_of(carry)
    ys: list[list[Any]] = []
    if n and not any(bodies.captured(v) for v in (*carry, *columns)):
        rows = _rows(columns, n)
        order = range(n - 1, -1, -1) if reverse else range(n)
        y_tree: Any = None
        for step, k in enumerate(order):
            state, y = call(carry, rows[k])
            after = fitting("scan", "the carry", tree, avals, state)
            y_leaves = [asarray(v) for v in pytree.leaves(y)]
            if step == 0 and any(bodies.captured(v) for v in (*after, *y_leaves)):
                break  # f closes over what is being captured
            if step == 0:
                y_tree, y_avals = y, bodies.avals_of(y_leaves)
            else:
                y_leaves = fitting("scan", "y", y_tree, y_avals, y)
            ys.append(y_leaves)
            carry = after
        else:
            ys = ys[::-1] if reverse else ys
            stacked = [stack(list(column)) for column in zip(*ys, strict=True)]
            return spec.unflatten(carry), pytree.structure(y_tree).unflatten(stacked)
    return _staged(f, call, carry, tree, columns, n, reverse)


def steps_of(xs: Any, columns: Sequence[Any], length: int | None) -> int:
    """The number of steps; every leaf of xs and length must agree."""
    found: dict[str, int] = {}
    for (path, _), x in zip(pytree.flatten_with_path(xs), columns, strict=True):
        if not x.shape:
            raise ShapeError(f"scan: {leaf_name(path)} of xs has no axis for the steps")
        found[f"{leaf_name(path)} of xs"] = int(x.shape[0])
    if length is not None:
        found["length"] = int(length)
    if not found:
        raise TransformError("scan: xs has no leaves, so length is needed", fix="pass length=")
    if len(set(found.values())) > 1:
        text = ", ".join(f"{n} from {k}" for k, n in found.items())
        raise ShapeError(f"scan: the number of steps must be one, got {text}")
    n = next(iter(found.values()))
    if n < 0:
        raise ArgumentError(f"scan: length must not be negative, got {n}")
    return n


def _rows(columns: Sequence[Any], n: int) -> list[list[Any]]:
    """The x of each step."""
    cut = [[wrap(d) for d in x.data] if x.__class__ is Array else _cut(x, n) for x in columns]
    return [[c[k] for c in cut] for k in range(n)]


def _cut(x: Any, n: int) -> list[Any]:
    """The rows of a traced array, by halves of halves: the pull of all cuts together then touches
    an element log n times, where that of n single cuts would touch it n times.
    """
    rest = ((None, None, 1),) * (len(x.shape) - 1)
    parts, lengths = [x], [n]
    while max(lengths) > 1:
        finer: list[Any] = []
        for p, m in zip(parts, lengths, strict=True):
            half = m // 2
            finer += [p] if m == 1 else [
                ops.slice_(p, ((0, half, 1), *rest)), ops.slice_(p, ((half, m, 1), *rest)),
            ]  # fmt: skip
        lengths = [k for m in lengths for k in ((1,) if m == 1 else (m // 2, m - m // 2))]
        parts = finer
    return [ops.reshape(p, x.shape[1:]) for p in parts]


def _staged(
    f: Any, call: Any, carry: Any, tree: Any, columns: Any, n: int, reverse: bool
) -> tuple[Any, Any]:
    avals = bodies.avals_of(carry)
    kept: list[Any] = []

    def body(*leaves: Any) -> list[Any]:
        state, y = call(leaves[: len(carry)], leaves[len(carry) :])
        y_leaves, y_spec = pytree.flatten(y)
        kept[:] = [y_spec]
        return [*fitting("scan", "the carry", tree, avals, state), *[asarray(v) for v in y_leaves]]

    x_avals = [ShapeDtype(a.shape[1:], a.dtype) for a in bodies.avals_of(columns)]
    graph, outer = bodies.trace("scan", body, [*avals, *x_avals], f)
    n_in, n_all = len(avals) + len(x_avals), len(graph.inputs)
    graph = bodies.ordered(graph, [*range(n_in, n_all), *range(n_in)], range(len(graph.outputs)))
    outs = Scan(graph, len(outer), len(carry), n, reverse)(*outer, *carry, *columns)
    return (
        pytree.structure(tree).unflatten(outs[: len(carry)]),
        kept[0].unflatten(outs[len(carry) :]),
    )


class Scan(Staged):
    """A loop of `steps` steps. Operands: constants, first carry, xs. Results: last carry, ys.

    body: (*constants, *carry, *x) -> (*carry, *y).
    """

    name = "scan"

    def __init__(self, body: Graph, constants: int, carry: int, steps: int, reverse: bool) -> None:
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

    @property
    def split(self) -> int:
        """Where xs begin among the operands."""
        return self.constants + self.carry

    def run(self, *buffers: Any) -> Flat:
        """The loop."""
        step = self.compiled(self.body)
        held, carry = buffers[: self.constants], buffers[self.constants : self.split]
        xs = buffers[self.split :]
        ys = [np.empty(a.shape, a.dtype) for a in self.outs[self.carry :]]
        for k in range(self.steps - 1, -1, -1) if self.reverse else range(self.steps):
            out = step(*held, *carry, *[x[k] for x in xs])
            carry = out[: self.carry]
            for y, v in zip(ys, out[self.carry :], strict=True):
                y[k] = v
        return (*carry, *ys)

    def parts(self, values: Sequence[Any]) -> tuple[Flat, Flat, Flat]:
        """Operands (or what belongs to them) as constants, carry, xs."""
        v = tuple(values)
        return v[: self.constants], v[self.constants : self.split], v[self.split :]

    def steady(self, flags: Flags, *, derivative: bool) -> tuple[Flags, Flags]:
        """Flags of the body's inputs and outputs once they no longer change from step to step."""
        constants, carry, xs = self.parts(flags)
        while True:
            outs = bodies.reached(self.body, (*constants, *carry, *xs), derivative=derivative)
            wider = tuple([a or b for a, b in zip(carry, outs[: self.carry], strict=True)])
            if wider == carry:
                return (*constants, *carry, *xs), (*carry, *outs[self.carry :])
            carry = wider

    def push(self, mine: Flags, primals: Flat, tangents: Flat) -> tuple[Flat, Flat]:
        """A loop that carries tangents too."""
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
        flags, outs = self.steady(mine, derivative=True)
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

    def batch(self, size: int, flags: Flags, vals: Flat) -> Flat:
        """A loop whose body is batched; a carry that no batch reaches stays without."""
        flags, outs = self.steady(flags, derivative=False)
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
        return tuple([bodies.repeated(o, a, size) for o, a in pairs])


class _Halves:
    """The loop that keeps residuals, and the loop that pulls."""

    def __init__(self, loop: Scan, mine: Flags) -> None:
        self.loop = loop
        self.mine = mine
        self.flags, self.outs = loop.steady(mine, derivative=True)
        held, carry, xs = loop.parts(self.flags)
        steps, c = loop.steps, loop.constants
        cut = bodies.halves(
            loop.body, self.flags, self.outs,
            ready=(*(True,) * c, *(False,) * len(carry), *(True,) * len(xs)),
            fixed=(*(True,) * c, *(False,) * (len(carry) + len(xs))),
        )  # fmt: skip
        self.forward = Scan(cut.forward, c, len(carry), steps, loop.reverse)
        self.uses = cut.uses
        self.held = sum(k < c for k in cut.uses)
        avals = [v.aval for v in loop.body.inputs]
        self.sums = bodies.chosen(loop.parts(avals)[0], held)
        cts = bodies.chosen([v.aval for v in loop.body.outputs], self.outs)
        n_held, n_ct, n_sum = self.held, sum(carry), len(self.sums)
        types = [avals[k] for k in cut.uses]
        ins = [
            *types[:n_held], *cts[:n_ct], *self.sums, *types[n_held:], *cut.residuals, *cts[n_ct:],
        ]  # fmt: skip

        def body(*v: Any) -> list[Any]:
            a, b, d = n_held, n_held + n_ct, n_held + n_ct + n_sum
            e = len(v) - (len(cts) - n_ct)
            found = cut.backward(*v[:a], *v[d:e], *v[a:b], *v[e:])
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
        found = self.backward(
            *residuals[:n],
            *given[:n_ct],
            *bodies.zeros_of(self.sums),
            *residuals[n:],
            *given[n_ct:],
        )
        sums = found[n_ct : n_ct + len(self.sums)]
        each = iter((*sums, *found[:n_ct], *found[n_ct + len(self.sums) :]))
        out = [next(each) if f else None for f in self.flags]
        return tuple([g if m else None for g, m in zip(out, self.mine, strict=True)])
