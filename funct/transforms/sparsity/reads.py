"""Which elements of its operands each element of an op's result reads, wherever they stand.

That is how dependence travels through an op: a result depends on whatever the elements that it
reads depend on. Ops that move elements are asked by moving positions with them. Bilinear ops know
their products, and a factor that is always zero makes none. Ops that combine whole axes read all of
them. An op that is not known here reads everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from msgspec.structs import replace

from funct.core import Primitive
from funct.kernels.linalg.sparse import Rows, linked, nothing, stacked, union
from funct.kernels.windows.views import windows
from funct.transforms.sparsity.factors import PRODUCTS
from funct.transforms.sparsity.operand import (
    Index,
    Operand,
    Params,
    Shape,
    all_of,
    mixed,
    positions,
    rows_at,
)  # fmt: skip

__all__ = ["is_flat", "reads"]


def reads(
    prim: Primitive, operands: Sequence[Operand], params: Params, shapes: Sequence[Shape], n: int
) -> list[Rows]:
    """What each result depends on. shapes: those of the results. n: number of inputs."""
    operands = [
        replace(x, rows=None) if is_flat(prim, k, x) else x for k, x in enumerate(operands)
    ]
    if prim.spread is not None:
        return [_elementwise(prim.name, operands, shapes[0], n)]
    if prim.name in _MOVES:
        return [_moved(prim, operands, params, shapes[0], n)]
    if prim.name in _OWN:
        return [_OWN[prim.name](operands, params, shapes[0], n)]
    find = _AXES.get(prim.name, _everything)
    out = []
    for shape in shapes:
        parts = [
            mixed(x.rows, x.at, inner, shape, outer)
            for k, x in enumerate(operands)
            if x.rows is not None
            for inner, outer in [find(k, len(x.shape), len(shape), params)]
        ]
        out.append(all_of(parts, prod(shape), n))
    return out


def is_flat(prim: Primitive, k: int, x: Operand) -> bool:
    """Whether the result is constant but for steps as operand k varies."""
    real = getattr(x.value, "dtype", np.dtype(float)).kind != "c"
    return prim.rules[k] is None or (real and prim.name in ("sign", "imag"))


# elementwise --------------------------------------------------------------------------------------


def _elementwise(name: str, operands: Sequence[Operand], shape: Shape, n: int) -> Rows:
    parts = []
    for k, x in enumerate(operands):
        if x.rows is not None:
            keep = _used(name, operands, k)
            if keep is not None:
                keep = np.broadcast_to(keep, shape)
            parts.append(rows_at(x.rows, np.broadcast_to(x.at, shape), keep))
    return all_of(parts, prod(shape), n)


def _used(name: str, operands: Sequence[Operand], k: int) -> Index | None:
    """Where operand k matters at all, whatever its value: a product with zero is zero."""
    if name == "where" and operands[0].constant:
        chosen = operands[0].elements() != 0
        return np.asarray(chosen if k == 1 else ~chosen)
    if name == "multiply" or (name, k) in (("pow", 0), ("absorb", 1), ("divide", 1)):
        return operands[1 - k].possible()
    return None


def _dequantized(operands: Sequence[Operand], params: Params, shape: Shape, n: int) -> Rows:
    """One scale for all elements, or one for each place along an axis."""
    q, scale, _ = operands
    parts = [] if q.rows is None else [q.rows]
    if scale.rows is not None:
        at = scale.at
        if at.ndim:
            at = at.reshape([-1 if k == params[1] else 1 for k in range(len(shape))])
        parts.append(rows_at(scale.rows, np.broadcast_to(at, shape)))
    return all_of(parts, prod(shape), n)


# moving -------------------------------------------------------------------------------------------

_MOVES = frozenset({
    "reshape", "broadcast_to", "permute_dims", "slice_", "embed", "flip", "concat", "take",
    "take_along_axis", "scatter", "windows",
})  # fmt: skip


def _moved(
    prim: Primitive, operands: Sequence[Operand], params: Params, shape: Shape, n: int
) -> Rows:
    """The op on positions, counted from 1: a zero comes from nowhere."""
    given, parts, start = [], [], 1
    for x, rule in zip(operands, prim.rules):
        if rule is None:
            given.append(x.elements())  # an index
        elif x.rows is None:
            given.append(np.zeros(x.shape, np.int64))
        else:
            given.append(x.at + start)
            parts.append(x.rows)
            start += x.rows.shape[0]
    source = np.asarray(prim.raw(*given, *params)).reshape(-1)
    if not parts:
        return nothing(prod(shape), n)
    d = parts[0] if len(parts) == 1 else stacked(parts)
    return rows_at(d, source - 1, source > 0)


def _added(back: Callable[..., Index]) -> Callable[..., Rows]:
    """An op that adds elements up at places. back: for each element, the place where it goes."""

    def rule(operands: Sequence[Operand], params: Params, shape: Shape, n: int) -> Rows:
        place = back(positions(shape), operands, params)
        d = operands[0].rows
        if d is None:
            return nothing(prod(shape), n)
        return linked(d, place.reshape(-1), np.arange(place.size), prod(shape))

    return rule


def _put(at: Index, operands: Sequence[Operand], params: Params) -> Index:
    return np.take(at, operands[1].elements(), params[0])


def _put_along(at: Index, operands: Sequence[Operand], params: Params) -> Index:
    return np.take_along_axis(at, operands[1].elements(), params[0])


def _fold(at: Index, operands: Sequence[Operand], params: Params) -> Index:
    shape, stride, dilation = params
    return windows(at, operands[0].shape[-len(shape) :], stride, dilation)


def _combined(operands: Sequence[Operand], params: Params, shape: Shape, n: int) -> Rows:
    x, v, i = operands
    parts = [] if x.rows is None else [x.rows]
    if v.rows is not None:
        place = positions(shape)[i.elements()]
        source = np.broadcast_to(v.at, place.shape)
        parts.append(linked(v.rows, place.reshape(-1), source.reshape(-1), prod(shape)))
    return all_of(parts, prod(shape), n)


def _pooled(operands: Sequence[Operand], params: Params, shape: Shape, n: int) -> Rows:
    x, (window, stride, padding, dilation) = operands[0], params
    if x.rows is None:
        return nothing(prod(shape), n)
    count = shape[len(shape) - len(window) :]
    wide = [(low, max(high, (t - 1) * s + (w - 1) * d + 1 - m - low))
            for m, w, s, (low, high), d, t in zip(
                x.shape[-len(window):], window, stride, padding, dilation, count)]  # fmt: skip
    lead = [(0, 0)] * (len(shape) - len(window))
    source = windows(np.pad(x.at + 1, [*lead, *wide]), window, stride, dilation)
    inside = source.reshape(prod(shape), -1)
    out, tap = np.nonzero(inside)
    return linked(x.rows, out, inside[out, tap] - 1, prod(shape))


# running along an axis ----------------------------------------------------------------------------


def _running(d: Rows, shape: Shape, axis: int) -> Rows:
    """Each element reads those before it: by doubling the distance."""
    at = np.moveaxis(positions(shape), axis, 0)
    step = 1
    while step < len(at):
        before, after = at[:-step].reshape(-1), at[step:].reshape(-1)
        d = union(d, linked(d, after, before, prod(shape)))
        step *= 2
    return d


def _cumulative(operands: Sequence[Operand], params: Params, shape: Shape, n: int) -> Rows:
    d = operands[0].rows
    return nothing(prod(shape), n) if d is None else _running(d, shape, params[0])


def _recurrence(operands: Sequence[Operand], params: Params, shape: Shape, n: int) -> Rows:
    a, b = operands
    parts = [] if b.rows is None else [rows_at(b.rows, np.broadcast_to(b.at, shape))]
    if a.rows is not None:  # the first factor multiplies nothing
        keep = np.ones(shape, np.bool_)
        np.moveaxis(keep, params[0], 0)[:1] = False
        parts.append(rows_at(a.rows, np.broadcast_to(a.at, shape), keep))
    return _running(all_of(parts, prod(shape), n), shape, params[0])


# whole axes ---------------------------------------------------------------------------------------


Axes = tuple[Sequence[int], Sequence[int]]


def _everything(k: int, rank: int, out_rank: int, params: Params) -> Axes:
    return range(rank), range(out_rank)


def _reduced(k: int, rank: int, out_rank: int, params: Params) -> Axes:
    axes, keepdims = params
    return axes, axes if keepdims else ()


def _one_axis(k: int, rank: int, out_rank: int, params: Params) -> Axes:
    return (params[0],), (params[0],)


def _some_axes(k: int, rank: int, out_rank: int, params: Params) -> Axes:
    return params[0], params[0]


def _matrices(k: int, rank: int, out_rank: int, params: Params) -> Axes:
    return range(rank - 2, rank), range(rank - 2, out_rank)


def _systems(k: int, rank: int, out_rank: int, params: Params) -> Axes:
    """Each column of the right side is a system of its own."""
    if k == 0:
        return range(rank - 2, rank), range(out_rank - 2, out_rank)
    return (rank - 2,), (out_rank - 2,)


_AXES: dict[str, Callable[[int, int, int, Params], Axes]] = {
    **dict.fromkeys(("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"), _reduced),
    **dict.fromkeys(("sort", "top_k", "real_fft", "hermitian_fft"), _one_axis),
    **dict.fromkeys(("solve", "solve_triangular"), _systems),
    **dict.fromkeys(
        ("cholesky", "qr", "lu", "inv", "det", "cofactor", "slogdet", "expm", "eigh", "eigvalsh",
         "eig", "eigvals", "svd", "svdvals", "pinv"), _matrices,
    ),
    "fft": _some_axes,
}  # fmt: skip

_OWN: dict[str, Callable[[Sequence[Operand], Params, Shape, int], Rows]] = {
    "put": _added(_put),
    "put_along_axis": _added(_put_along),
    "fold_windows": _added(_fold),
    "dequantize": _dequantized,
    "checkpoint_name": lambda operands, params, shape, n: operands[0].rows,
    "finite": lambda operands, params, shape, n: operands[0].rows,
    "scatter_add": _combined,
    "scatter_combine": _combined,
    "max_pool": _pooled,
    "avg_pool": lambda operands, params, shape, n: _pooled(
        operands, (*params[:3], (1,) * len(params[0])), shape, n
    ),
    "cumulative_sum": _cumulative,
    "cumulative_prod": _cumulative,
    "linear_recurrence": _recurrence,
    "random_gamma": lambda operands, params, shape, n: _elementwise("", operands[1:], shape, n),
    **PRODUCTS,
}
