"""Dependence: each tracer carries, for every element, the inputs on which its derivative depends.

The pattern that comes out holds wherever the same Python branches are taken and the same elements
are indexed; what `where`, `max` and `sort` choose does not matter. Elements that depend on nothing
are constants, and a product with a constant zero does not depend on the other factor.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from funct import pytree
from funct.array import Tensor, asarray
from funct.core import INEXACT, Level, Primitive, Region
from funct.graph import Control
from funct.kernels.linalg.sparse import Rows, identity, nothing, stacked, turned, union
from funct.transforms.control.cond import Branch
from funct.transforms.control.scan import scan
from funct.transforms.control.scan_loop import Scan
from funct.transforms.control.sweeps import Sweeps
from funct.transforms.remat import Checkpoint
from funct.transforms.reverse import zero_like
from funct.transforms.sparsity.operand import Operand
from funct.transforms.sparsity.reads import is_flat, reads

__all__ = ["dependence"]


class DependenceTracer(Tensor):
    """A value, and what its elements depend on.

    loose: it varies with the inputs in steps too, so its zeros may be no zeros elsewhere.
    """

    __slots__ = ("level", "loose", "rows", "value")

    level: Dependence

    def __init__(self, value: Any, rows: Rows, loose: bool, level: Dependence) -> None:
        self.value = value
        self.rows = rows
        self.loose = loose
        self.level = level

    def __repr__(self) -> str:
        return f"DependenceTracer({self.value!r})"


class Dependence(Level):
    """The level that carries dependence on n inputs along."""

    __slots__ = ("n",)

    def __init__(self, label: str, fun: Callable[..., Any] | None, n: int) -> None:
        super().__init__(label, fun)
        self.n = n

    def run(self, prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """The op one level down, and what its results depend on."""
        if isinstance(prim, Control):
            steps = _in_steps(prim.kind, args)
            if steps is not None:
                return steps if prim.results != 1 else steps[0]
        operands = [self._operand(a) for a in args]
        ans = prim.fn(*[x.value for x in operands], *params)
        outs = ans if prim.results != 1 else (ans,)
        found = reads(prim, operands, params, [tuple(o.shape) for o in outs], self.n)
        loose = any(
            x.loose or (x.rows is not None and is_flat(prim, k, x)) for k, x in enumerate(operands)
        )
        made = tuple([self._made(o, d, loose) for o, d in zip(outs, found, strict=True)])
        return made if prim.results != 1 else made[0]

    def region(self, region: Region, args: Sequence[Any]) -> tuple[Any, ...]:
        """A call with its own rules: what the results depend on is what its rules say."""
        if region.push is None and (region.forward is None or region.backward is None):
            return region.run(*args)
        operands = [self._operand(a) for a in args]
        if not any(x.rows is not None and x.rows.nnz for x in operands):
            return region.run(*args)  # a rule calls its own function on primals
        held = [
            DependenceTracer(x.value, self._none(x), True, self) if not x.constant else x.value
            for x in operands
        ]
        if region.push is not None:
            tangents = [
                zero_like(x.value)
                if x.rows is None
                else DependenceTracer(zero_like(x.value), x.rows, True, self)
                for x in operands
            ]
            outs, pushed = region.push(tuple(held), tuple(tangents))
            found = [self._operand(t).rows for t in pushed]
        else:
            assert region.forward is not None
            assert region.backward is not None
            outs, residuals = region.forward(*held)
            found = self._transposed(region.backward, outs, residuals, operands)
        return tuple(
            [
                self._made(self._operand(o).value, self._none(o) if d is None else d, True)
                for o, d in zip(outs, found, strict=True)
            ]
        )

    def _transposed(
        self, back: Any, outs: Sequence[Any], residuals: Any, operands: Sequence[Operand]
    ) -> list[Rows | None]:
        """What results depend on, from what the pull's cotangents depend on."""
        sizes = [prod(o.shape) for o in outs]
        ends = np.cumsum([0, *sizes])
        level = Dependence(self.label, self.fun, int(ends[-1]))
        every = identity(int(ends[-1]))
        cts = [
            DependenceTracer(zero_like(self._operand(o).value), every[a:b], True, level)
            for o, a, b in zip(outs, ends[:-1], ends[1:], strict=True)
        ]
        try:
            given = back(residuals, tuple(cts))
        finally:
            level.open = False
        total: Rows | None = None
        for g, x in zip(given, operands, strict=True):
            if g is not None and x.rows is not None:
                d = level._operand(g).rows
                if d is not None:
                    part = turned(d) @ x.rows
                    total = part if total is None else union(total, part)
        return [None if total is None else total[a:b] for a, b in itertools.pairwise(ends)]

    def _operand(self, a: Any) -> Operand:
        if a.__class__ is DependenceTracer and a.level is self:
            return Operand(a.value, a.rows, a.loose)
        if not isinstance(a, Tensor | bool | int | float | complex):
            a = asarray(a)
        return Operand(a, None, isinstance(a, Tensor) and a.level.transforms)

    def _none(self, x: Any) -> Rows:
        return nothing(prod(x.shape), self.n)

    def _made(self, value: Any, rows: Rows, loose: bool) -> DependenceTracer:
        if value.dtype not in INEXACT:
            return DependenceTracer(value, self._none(value), True, self)
        return DependenceTracer(value, rows, loose, self)


def _in_steps(kind: Any, args: Sequence[Any]) -> tuple[Any, ...] | None:
    """A captured branch or loop on values, as the ops that it does; None where it is another."""
    args = tuple([asarray(a) for a in args])
    if isinstance(kind, Checkpoint):
        return kind.body(*args)
    if isinstance(kind, Branch | Sweeps):
        plain = copy.copy(kind)
        vars(plain)["compiled"] = lambda graph: graph  # bodies take values as well as buffers
        vars(plain)["_made"] = {"programs": []}  # and programs take buffers alone
        return plain.run(*args)
    if isinstance(kind, Scan):
        held, carry, xs = kind.parts(args)
        c = len(carry)

        def step(state: Any, x: Any) -> tuple[Any, Any]:
            out = kind.body(*held, *state, *x)
            return out[:c], out[c:]

        last, ys = scan(step, carry, xs, kind.steps, kind.reverse)
        return (*last, *ys)
    return None


def dependence(label: str, fun: Callable[..., Any], x: Any) -> tuple[Any, Rows]:
    """The value of fun at x, and which elements of x each element of it depends on."""
    n = prod(x.shape)
    level = Dependence(label, fun, n)
    try:
        out = fun(DependenceTracer(x, identity(n), False, level))
    finally:
        level.open = False
    leaves, structure = pytree.flatten(out)
    operands = [level._operand(o) for o in leaves]
    found = [nothing(prod(o.shape), n) if o.rows is None else o.rows for o in operands]
    values = [asarray(o.value) for o in operands]
    return structure.unflatten(values), stacked(found) if len(found) > 1 else found[0]
