"""Attention: what is written out, and in bodies of loops masks as numbers and sums of its adjoint.

A mask of booleans is made numbers by the loops that compute it, or before the loop if each step has
the same. Machine code gives the cotangents of keys and values in parts, one for each task.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct import ops
from funct.compile.loops.views import dense
from funct.compile.rewriting.new_nodes import Known
from funct.core import Primitive, ShapeDtype, Value, lookup, top_level, variant
from funct.graph import Graph, Node, Var
from funct.kernels.attention import kept
from funct.kernels.cpu.jobs import Job, job
from funct.kernels.table import met
from funct.ops.broadcasting import broadcast_shapes, match_operand
from funct.ops.fast import wrap

__all__ = [
    "NEEDS", "PARTS", "WORTH", "attention", "attention_keep", "attention_pull", "job_of_attention",
    "lets_all", "with_attention",
]  # fmt: skip

PARTS = "attention_pull_parts"
NEEDS = ("llvm", "avx2", "fma")  # of the processor
WORTH = 1 << 28  # multiplications of what is written out: for fewer, code takes more than it saves
_REAL = "fd"  # characters of dtypes that machine code computes in


def with_attention(graph: Graph) -> Graph:
    """The graph with attention for what is written out (`written_attention.py`)."""
    names = {e.name for e in graph.nodes if isinstance(e, Node)}
    if names.isdisjoint(("matmul", "contract")) or "exp" not in names or not met(NEEDS):
        return graph
    beside = importlib.import_module(f"{__package__}.written_attention")  # few programs ask for it
    found: Graph = beside.handed_over(graph)
    return found


def lets_all(mask: Any, known: Known) -> bool:
    """Whether a mask is known to let every query see every key."""
    held = known.get(mask)
    return held is not None and mask.dtype == np.bool_ and bool(np.all(np.asarray(held.data)))


def attention_keep(e: Node, known: Known) -> Callable[..., Any]:
    """The kernel's own arithmetic, of a seed that is traced."""
    return lambda seed: (kept(seed, *e.params),)


def attention(e: Node, known: Known) -> Callable[..., Any] | None:
    """With a mask of numbers for one of booleans that may hide something."""
    mask: Any = e.operands[3]
    if not _is_real(e) or mask.dtype != np.bool_ or lets_all(mask, known):
        return None

    def run(q: Value, k: Value, v: Value, mask: Value, seed: Value) -> Any:
        return ops.attention(q, k, v, _numbers(mask, q.dtype), seed, *e.params)

    return run


def attention_pull(e: Node, known: Known) -> Callable[..., Any] | None:
    """Of operands that have all heads or all heads of keys, and sums of what the tasks give."""
    if not _is_real(e):
        return None
    q, k, v, mask, seed = e.operands[:5]
    lead = broadcast_shapes(*[x.shape[:-2] for x in (q, k, v, mask, seed)])  # type: ignore[union-attr]
    shared = broadcast_shapes(k.shape[:-2], v.shape[:-2])  # type: ignore[union-attr]
    keys_lead = (1,) * (len(lead) - len(shared)) + shared
    passes = lets_all(mask, known)

    def run(
        q: Value, k: Value, v: Value, mask: Value, seed: Value, lse: Value, g: Value, delta: Value
    ) -> Any:
        if mask.dtype == np.bool_ and not passes:
            mask = _numbers(mask, q.dtype)
        whole = ops.broadcast_to(q, (*lead, *q.shape[-2:]))
        keys, values = (ops.broadcast_to(x, (*keys_lead, *x.shape[-2:])) for x in (k, v))
        rows = [ops.broadcast_to(x, (*lead, q.shape[-2])) for x in (lse, delta)]
        given = (whole, keys, values, mask, seed, rows[0], g, rows[1])
        dq, dk, dv = top_level(given).run(_parts(), given, e.params)
        found = ((dq, q), (_added(dk, keys), k), (_added(dv, values), v))
        return tuple([match_operand(x, like.shape) for x, like in found])

    return run


def _is_real(e: Node) -> bool:
    held: Any = e.operands[:3]
    return all(isinstance(v, Var) and v.dtype.char in _REAL for v in held)


def _numbers(mask: Value, dtype: Any) -> Value:
    """What a mask of booleans adds to the scores."""
    return ops.where(mask, *[wrap(np.asarray(x, dtype)) for x in (0.0, -np.inf)])


def _added(parts: Value, like: Value) -> Value:
    """The sum of parts, without what fills up vectors."""
    whole = (None, None, 1)
    columns = ops.slice_(parts, (whole, whole, whole, (0, like.shape[-1], 1)))
    total = ops.reduce_sum(columns, (1,), False)
    return ops.reshape(total, like.shape)


@functools.cache
def _parts() -> Primitive:
    """The adjoint, with cotangents of keys and values in parts."""
    adjoint = lookup("attention_pull")
    assert adjoint is not None
    return variant(adjoint, PARTS, aval=_parts_aval)


def _parts_aval(args: Any, params: Any) -> tuple[ShapeDtype, ...]:
    q, k, v, mask, seed, _, g, _ = args
    layouts = [(tuple(x.shape), _strides(x)) for x in (q, k, v, g)]
    found = job_of_attention("attend_back", q.dtype, params, True, (mask, seed), layouts)
    return tuple([ShapeDtype(shape, q.dtype) for shape in (q.shape, *found.plan.partial)])


def job_of_attention(
    name: str, dtype: Any, params: Any, passes: bool, beside: tuple[Any, Any],
    layouts: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
) -> Job:  # fmt: skip
    """Of "attend" or "attend_back". passes: the mask changes nothing. beside: mask and seed.
    layouts: shapes and strides of q, k, v, and of g where there is one.
    """
    causal, *numbers = params
    found = job(
        "attention", name, dtype.name, int(causal), *[float(n).hex() for n in numbers], int(passes),
        *[tuple(v.shape) for v in beside], *layouts,
    )  # fmt: skip
    assert found is not None, "operands have elements, and rows that can be read"
    return found


def _strides(x: Any) -> tuple[int, ...]:
    return tuple([s * x.dtype.itemsize for s in dense(Var("x", x.shape, x.dtype)).strides])
