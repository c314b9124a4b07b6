"""cond and switch: one of several functions, chosen by a value.

On concrete values the function chosen is called. Where the choice is written down by jit it stays
one node with both bodies. Where it differs between the lanes of vmap all functions run on all
lanes, and `where` takes each lane's result; so do derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct import ops, pytree
from funct.array import Tensor, asarray
from funct.array.trees import flat_arrays, map_leaves, tell_leaf
from funct.compile import Choice
from funct.core import ShapeDtype
from funct.errors import DTypeError, FunctError, ShapeError, TransformError, UnknownValueError
from funct.graph import Control, Graph, dependent
from funct.graph.controls import Written, agree, avals, remakes
from funct.records import opened
from funct.transforms.control import bodies, halving
from funct.transforms.control.absent import without
from funct.transforms.control.bodies import Flags, Flat, Reach
from funct.transforms.control.carry import (
    abstract,
    boolean_scalar,
    is_number,
    leaf_name,
    typed,
)
from funct.transforms.control.closures import captured, decides
from funct.transforms.control.staged import Less, Staged
from funct.transforms.given import expect_functions
from funct.transforms.vmap import differs

__all__ = ["cond", "switch"]


def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """`true_fun(*operands)` where pred holds, else `false_fun(*operands)`.

    Args: pred: one boolean. operands: pytrees. Both functions give results of one structure and of
    equal shapes and dtypes; a Python number takes the other side's dtype.
    Returns: what the function chosen gives. Under jit both are captured and one runs; under vmap
    with a pred that differs between lanes both run, and derivatives ignore the lanes not taken.
    What a function computes of values that it closes over belongs to it as well: of the side that
    is not taken nothing is computed, printed or raised.
    Raises: TreeError, ShapeError, DTypeError: when the results differ in type, or pred is no
    boolean scalar.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> x = xp.asarray(3.0)
        >>> float(ft.grad(lambda x: ft.cond(x > 0, xp.square, xp.abs, x))(x))
        6.0
    """
    expect_functions("cond", true_fun=true_fun, false_fun=false_fun)
    index = boolean_scalar("cond", "the predicate", pred)
    return _choose("cond", index, ("false_fun", "true_fun"), (false_fun, true_fun), operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """`branches[index](*operands)`; an index outside is clamped.

    Args: index: one integer. branches: functions whose results agree in structure, shapes, dtypes.
    Raises: TreeError, ShapeError, DTypeError, as `cond`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> float(ft.switch(7, [xp.sin, xp.square], xp.asarray(3.0)))
        9.0
    """
    branches = tuple(branches)
    if not branches:
        raise TransformError("switch: at least one branch is needed")
    expect_functions("switch", **{f"branch {k}": f for k, f in enumerate(branches)})
    i = index if isinstance(index, Tensor) else asarray(index)
    if i.dtype.kind not in "iu":
        raise DTypeError(f"switch: the index must be an integer, got {i.dtype}")
    if tuple(i.shape) != ():
        raise ShapeError(f"switch: the index must be a scalar, got shape {tuple(i.shape)}")
    i = ops.minimum(ops.maximum(i, 0), len(branches) - 1)
    names = tuple([f"branch {k}" for k in range(len(branches))])
    return _choose("switch", i, names, branches, operands)


def _choose(name: str, index: Any, names: Any, funs: Any, operands: Flat) -> Any:
    leaves, spec = flat_arrays(operands)

    def flat(fun: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: fun(*spec.unflatten(xs))

    if captured(index):
        try:
            return _staged(name, index, names, [flat(f) for f in funs], funs, leaves)
        except UnknownValueError:
            if not decides():
                raise
    if differs(index):
        outs = [f(*operands) for f in funs]
        trees, dtypes = _agreed(name, names, outs)
        flats = [[typed(x, d) for x, d in zip(pytree.leaves(o), dtypes, strict=True)] for o in outs]
        return trees.unflatten([_select(index, column) for column in zip(*flats, strict=True)])
    taken = int(index) if len(funs) > 1 else 0
    out = funs[taken](*operands)
    others = [
        out if k == taken else _typed_alone(name, flat(f), leaves) for k, f in enumerate(funs)
    ]
    if any(o is None for o in others):
        return map_leaves(asarray, out)
    trees, dtypes = _agreed(name, names, others)
    return trees.unflatten([typed(x, d) for x, d in zip(pytree.leaves(out), dtypes, strict=True)])


def _typed_alone(name: str, fun: Callable[..., Any], leaves: Sequence[Any]) -> Any:
    """The types of a branch that is not taken; None where values decide on them, or where it fails
    on arrays that it closes over: it need not be possible to take it.
    """
    try:
        return abstract(name, fun, leaves)
    except Exception:
        return None


def _agreed(name: str, names: Sequence[str], outs: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The one structure and the dtypes of all branches' results."""
    try:
        return _agreement(name, names, outs)
    except FunctError:
        if not opened([x for o in outs for x in pytree.leaves(o)]):
            for o in outs:
                tell_leaf(o, asarray)
            raise
    return _agreed(name, names, outs)


def _agreement(name: str, names: Sequence[str], outs: Sequence[Any]) -> tuple[Any, list[Any]]:
    for k, o in enumerate(outs[1:], 1):
        pytree.same_structure(f"{name}: the result of {names[k]}", outs[0], o)
    flats = [pytree.leaves(o) for o in outs]
    dtypes = []
    for j, column in enumerate(zip(*flats, strict=True)):
        arrays = [asarray(x) for x in column if not is_number(x)]
        first = arrays[0] if arrays else _widest([asarray(x) for x in column])
        dtypes.append(first.dtype)
        found = [typed(x, first.dtype) for x in column]
        for k, x in enumerate(found):
            if x.dtype == found[0].dtype and tuple(x.shape) == tuple(found[0].shape):
                continue
            shapes = tuple(x.shape) != tuple(found[0].shape)
            raise (ShapeError if shapes else DTypeError)(
                f"{name}: branches must give one type: "
                f"{leaf_name(pytree.flatten_with_path(outs[0])[j][0])} is "
                f"{_text(found[0])} from {names[0]}, {_text(x)} from {names[k]}",
                fix="broadcast_to one shape" if shapes else "cast the results to one dtype",
            )
    return pytree.structure(outs[0]), dtypes


def _widest(arrays: Sequence[Any]) -> Any:
    return max(arrays, key=lambda a: "biuVfc".index(a.dtype.kind))


def _text(x: Any) -> str:
    return f"{x.dtype}{list(x.shape)}"


def _select(index: Any, column: Sequence[Any]) -> Any:
    """The element of column that index names, by where."""
    out = column[0]
    for k, x in enumerate(column[1:], 1):
        out = ops.where(index if index.dtype.kind == "b" else ops.equal(index, k), x, out)
    return out


def _staged(name: str, index: Any, names: Any, flats: Any, funs: Any, leaves: Sequence[Any]) -> Any:
    avals = bodies.avals_of(leaves)
    traced, results = [], []
    for flat, fun in zip(flats, funs, strict=True):
        out: list[Any] = []

        def body(*xs: Any, flat: Any = flat, out: list[Any] = out) -> list[Any]:
            out[:] = [flat(*xs)]
            return flat_arrays(out[0], lambda x: typed(x, None))[0]

        traced.append(bodies.trace(name, body, avals, fun))
        results.append(out[0])
    trees, dtypes = _agreed(name, names, results)
    for k, result in enumerate(results):
        own = pytree.leaves(result)
        if all(asarray(x).dtype == d for x, d in zip(own, dtypes, strict=True) if is_number(x)):
            continue  # to trace twice what is nested would take twice as long for each level

        def cast(*xs: Any, flat: Any = flats[k]) -> list[Any]:
            return [typed(x, d) for x, d in zip(pytree.leaves(flat(*xs)), dtypes, strict=True)]

        traced[k] = bodies.trace(name, cast, avals, funs[k])
    outer = [x for _, found in traced for x in found]
    n, starts = len(leaves), np.cumsum([0, *[len(found) for _, found in traced]])
    every = (*avals, *bodies.avals_of(outer))
    graphs = [
        bodies.regraph(lambda *xs, g=g, a=n + int(a), b=n + int(b): g(*xs[:n], *xs[a:b]), every)
        for (g, _), a, b in zip(traced, starts[:-1], starts[1:], strict=True)
    ]
    if len(graphs) == 1:
        return trees.unflatten(graphs[0](*leaves, *outer))
    branch = Branch(name, names, graphs, bodies.aval_of(index))
    return trees.unflatten(branch(index, *leaves, *outer))


class Branch(Staged):
    """One of several graphs with equal types. Operands: the index or predicate, then theirs."""

    name = "cond"

    def __init__(
        self, name: str, names: Sequence[str], graphs: Sequence[Graph], index: ShapeDtype
    ) -> None:
        self.name = name  # type: ignore[misc]
        self.names = tuple(names)
        self.graphs = tuple(graphs)
        ins = (index, *[v.aval for v in graphs[0].inputs])
        outs = tuple([v.aval for v in graphs[0].outputs])
        super().__init__(tuple(zip(names, graphs, strict=True)), ins, outs)

    def like(self, graphs: Sequence[Graph]) -> Branch:
        """The same choice among other graphs."""
        return Branch(self.name, self.names, graphs, self.ins[0])

    def mapped(self, change: Callable[[Graph], Graph]) -> Branch:
        """The same choice among changed graphs."""
        return self.like([change(g) for g in self.graphs])

    def written(self) -> Written:
        """The branch, taken apart."""
        return Written("cond", self.graphs, (self.name, self.names, self.ins[0].dtype))

    def form(self) -> Choice:
        """A branch."""
        return Choice(self.graphs)

    def run(self, index: Any, *buffers: Any) -> Flat:
        """One body."""
        return self.compiled(self.graphs[int(index)])(*buffers)

    def _some(self, flags: Flags, reach: Reach) -> Flags:
        each = [reach(g, flags) for g in self.graphs]
        return tuple([any(column) for column in zip(*each, strict=True)])

    def depends(self, flags: Flags) -> Flags:
        """What depends on flagged operands in one of the branches; if the choice does, all."""
        return (True,) * len(self.outs) if flags[0] else self._some(flags[1:], dependent)

    def without(self, moving: Flags, absent: Flags, wanted: Flags) -> Less:
        """The same choice among graphs without them."""
        less = self.like([without(g, moving[1:], absent[1:], wanted) for g in self.graphs])
        return Less(less, tuple([not a for a in absent]), wanted)

    def push(self, mine: Flags, primals: Flat, tangents: Flat) -> tuple[Flat, Flat]:
        """A choice among the bodies with their tangents."""
        flags = self._some(mine[1:], bodies.varied)
        branch = self.once(
            ("push", mine),
            lambda: self.like([bodies.dual(g, mine[1:], flags) for g in self.graphs]),
        )
        both = branch(*primals, *bodies.chosen(tangents[1:], mine[1:]))
        n = len(flags)
        return both[:n], bodies.or_zero(both[n:], flags, both[:n])

    def _halves(self, mine: Flags) -> tuple[Branch, Branch, tuple[int, ...], Flags]:
        """Forward and backward halves; residuals of all branches share slots of equal types."""
        mine = mine[1:]
        flags = self._some(mine, bodies.varied)
        ready = (True,) * len(mine)
        cut = [halving.halves(g, mine, flags, ready) for g in self.graphs]
        uses = tuple(sorted({k for h in cut for k in h.uses}))
        slots: list[ShapeDtype] = []
        places = []
        for h in cut:
            taken: list[int] = []
            for aval in h.residuals:
                free = [k for k, s in enumerate(slots) if s == aval and k not in taken]
                if not free:
                    slots.append(aval)
                taken.append(free[0] if free else len(slots) - 1)
            places.append(taken)
        avals = self.ins[1:]
        cts = bodies.chosen(self.outs, flags)

        def forward(k: int) -> Graph:
            def run(*xs: Any) -> list[Any]:
                both = cut[k].forward(*xs)
                found = dict(zip(places[k], both[len(flags) :], strict=True))
                rest = [
                    found[i] if i in found else bodies.zeros_of([s])[0] for i, s in enumerate(slots)
                ]
                return [*both[: len(flags)], *rest]

            return bodies.regraph(run, avals)

        def backward(k: int) -> Graph:
            def run(*xs: Any) -> list[Any]:
                given = dict(zip(uses, xs[: len(uses)], strict=True))
                kept, rest = xs[len(uses) : len(uses) + len(slots)], xs[len(uses) + len(slots) :]
                held = [given[i] for i in cut[k].uses]
                return list(cut[k].backward(*held, *[kept[i] for i in places[k]], *rest))

            return bodies.regraph(run, [*[avals[i] for i in uses], *slots, *cts])

        each = range(len(cut))
        return (
            self.like([forward(k) for k in each]),
            self.like([backward(k) for k in each]),
            uses,
            flags,
        )

    def forward(self, mine: Flags, *vals: Any) -> tuple[Flat, Flat]:
        """The forward halves; the operands that the backward halves read are residuals."""
        branch, _, uses, flags = self.once(("halves", mine), lambda: self._halves(mine))
        both = branch(*vals)
        kept = [vals[1 + k] for k in uses]
        return both[: len(flags)], (vals[0], *kept, *both[len(flags) :])

    def backward(self, mine: Flags, residuals: Flat, cts: Flat) -> Flat:
        """The backward halves."""
        _, branch, _, flags = self.once(("halves", mine), lambda: self._halves(mine))
        found = self.pulled(branch, residuals, bodies.chosen(cts, flags))
        return tuple(bodies.or_none(found, mine))

    def batch(self, size: Any, flags: Flags, vals: Flat) -> Flat:
        """The same choice of batched bodies, or all bodies and a selection by lane."""
        if flags[0]:
            all_lanes = (True,) * len(self.outs)
            each = [bodies.lanes(g, flags[1:], all_lanes, size)(*vals[1:]) for g in self.graphs]
            index = vals[0]
            picked = []
            for column in zip(*each, strict=True):
                rank = (1,) * (len(column[0].shape) - 1)
                picked.append(_select(ops.reshape(index, (size, *rank)), column))
            return tuple(picked)
        outs = (True,) * len(self.outs)
        make = lambda: self.like([bodies.lifted(g, flags[1:], outs, size) for g in self.graphs])  # noqa: E731
        branch = self.once(("batch", flags, size), make)
        return branch(*vals)


@remakes("cond")
def _again(graphs: Sequence[Graph], values: tuple[Any, ...]) -> Control:
    """The branch that `Branch.written` took apart."""
    name, names, dtype = values
    texts = [name, *names] if isinstance(names, tuple) else [None]
    agree("cond", all(isinstance(t, str) for t in texts), len(names) == len(graphs) > 0)
    agree("cond", isinstance(dtype, np.dtype), dtype.kind in "biu")
    agree("cond", dtype.kind != "b" or len(graphs) == 2)
    ins, outs = avals(graphs[0].inputs), avals(graphs[0].outputs)
    agree("cond", all(avals(g.inputs) == ins and avals(g.outputs) == outs for g in graphs))
    return Branch(name, names, graphs, ShapeDtype((), dtype)).primitive
