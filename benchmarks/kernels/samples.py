"""Order statistics, tables and curves of samples, and runs of elements, in GB/s.

Bytes are those of what goes in and what comes out.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

import funct.array as xp
from benchmarks.kernels.irregular import ORDERS, row_of
from benchmarks.kernels.row import Row
from funct import jit, vjp

TITLE = "samples and runs of elements, one thread [GB/s]"
SIZES = (1_000_000, 100_000, 1_000)
COLUMNS = 10


def rows(sizes: tuple[int, ...] = SIZES) -> Iterator[Row]:
    """Every row."""
    for n in sizes:
        for kind in (_spread, _reduced, _statistics, _tables, _ordered, _runs, _changed, _narrow):
            yield from kind(n)


def _spread(n: int) -> Iterator[Row]:
    """Operands of two shapes."""
    rng = np.random.default_rng(6)
    kinds = (
        ("+", operator.add, (n // 3, 3), (3,)), ("==", operator.eq, (n // COLUMNS, 1), (COLUMNS,)),
        ("/", operator.truediv, (n // COLUMNS, COLUMNS), (n // COLUMNS, 1)),
    )  # fmt: skip
    for sign, op, one, other in kinds:
        dtype = np.int64 if sign == "==" else np.float32
        x, y = (rng.integers(1, 9, shape).astype(dtype) for shape in (one, other))
        yield row_of(
            f"{one} {sign} {other}, {x.dtype}", (x, y), op, numpy=op,
            torch=lambda t, v, w, op=op: op(v, w), jax=lambda j, v, w, op=op: op(v, w),
        )  # fmt: skip


def _reduced(n: int) -> Iterator[Row]:
    """Short rows, few columns."""
    x = np.random.default_rng(7).normal(size=(n // COLUMNS, COLUMNS)).astype(np.float32)
    yield row_of(
        f"sum, {x.size:,}, {x.dtype}", (x,), xp.sum, numpy=np.sum, torch=lambda t, v: v.sum(),
        jax=lambda j, v: j.numpy.sum(v),
    )  # fmt: skip
    long = x.reshape(-1, 100)
    yield row_of(
        f"prod of axis 1, {long.shape}, {x.dtype}", (long,), lambda v: xp.prod(v, axis=1),
        numpy=lambda v: np.prod(v, 1), torch=lambda t, v: v.prod(1),
    )  # fmt: skip
    for axis, of in ((1, long), (0, long), (0, x[: len(x) // 20])):
        yield row_of(
            f"logsumexp of axis {axis}, {of.shape}, {x.dtype}", (of,),
            lambda v, axis=axis: xp.logsumexp(v, axis=axis),
            torch=lambda t, v, axis=axis: t.logsumexp(v, axis),
            jax=lambda j, v, axis=axis: j.nn.logsumexp(v, axis),
        )  # fmt: skip
    yield row_of(
        f"norms of rows, {long.shape}, {x.dtype}", (long,),
        lambda v: xp.linalg.vector_norm(v, axis=1),
        numpy=lambda v: np.linalg.vector_norm(v, axis=1),
        torch=lambda t, v: t.linalg.vector_norm(v, dim=1),
    )  # fmt: skip
    names = {"sum": "sum", "max": "amax", "any": "any", "argmin": "argmin"}
    ways = [(name, 1) for name in names] + [(name, 0) for name in ("sum", "prod", "max", "any")]
    for name, axis in ways:
        of_torch = names.get(name, name)
        yield row_of(
            f"{name} of axis {axis}, {x.shape}, {x.dtype}", (x,),
            lambda v, name=name, axis=axis: getattr(xp, name)(v, axis=axis),
            numpy=lambda v, name=name, axis=axis: getattr(np, name)(v, axis),
            torch=lambda t, v, name=of_torch, axis=axis: getattr(t, name)(v, axis),
            jax=lambda j, v, name=name, axis=axis: getattr(j.numpy, name)(v, axis),
        )  # fmt: skip
    side = int(n**0.5)
    square = x.reshape(-1)[: side * side].reshape(side, side)
    for name, y in product(("sum", "max"), (square, square.astype(np.int32))):
        yield row_of(
            f"{name} of axis 0, {y.shape}, {y.dtype}", (y,),
            lambda v, name=name: getattr(xp, name)(v, axis=0),
            numpy=lambda v, name=name: getattr(np, name)(v, 0),
            torch=lambda t, v, name=names[name]: getattr(t, name)(v, 0),
            jax=lambda j, v, name=name: getattr(j.numpy, name)(v, 0),
        )  # fmt: skip
    for y in (x, x.astype(np.int32)):
        yield row_of(
            f"argsort of axis 1, {y.shape}, {y.dtype}", (y,), lambda v: xp.argsort(v, axis=1),
            numpy=lambda v: np.argsort(v, 1), torch=lambda t, v: t.argsort(v, 1),
            jax=lambda j, v: j.numpy.argsort(v, 1),
        )  # fmt: skip
    for length in (5_000, 1_000, 20) if n > 1_000 else (1_000, 20):
        lines = x.reshape(-1, length)
        yield row_of(
            f"sort of axis 1, {lines.shape}, {x.dtype}", (lines,), lambda v: xp.sort(v, axis=1),
            numpy=lambda v: np.sort(v, 1), torch=lambda t, v: t.sort(v, 1)[0],
            jax=lambda j, v: j.numpy.sort(v, 1),
        )  # fmt: skip


def _statistics(n: int) -> Iterator[Row]:
    x = np.random.default_rng(5).normal(size=n)
    wide = x.reshape(-1, COLUMNS)
    for a, axis in ((x, 0), (wide, 0), (wide, 1)):
        yield row_of(
            f"median, {a.shape}, axis {axis}", (a,), lambda v, axis=axis: xp.median(v, axis),
            numpy=lambda v, axis=axis: np.median(v, axis),
            jax=lambda j, v, axis=axis: j.numpy.median(v, axis),
        )  # fmt: skip
    yield row_of(
        f"quantile 0.3, {n:,}", (x,), lambda v: xp.quantile(v, 0.3),
        numpy=lambda v: np.quantile(v, 0.3), jax=lambda j, v: j.numpy.quantile(v, 0.3),
    )  # fmt: skip
    for a, axis in ((x, 0), (wide, 1)):
        yield row_of(
            f"trapezoid, {a.shape}, axis {axis}", (a,),
            lambda v, axis=axis: xp.trapezoid(v, axis=axis),
            numpy=lambda v, axis=axis: np.trapezoid(v, axis=axis),
            torch=lambda t, v, axis=axis: t.trapezoid(v, dim=axis),
            jax=lambda j, v, axis=axis: j.numpy.trapezoid(v, axis=axis),
        )  # fmt: skip


def _tables(n: int) -> Iterator[Row]:
    """Places between edges at uneven distances, and among few or many elements."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=n)
    points, values = np.sort(rng.normal(size=n)), rng.normal(size=n)
    edges = np.sort(rng.normal(size=51))
    yield row_of(
        f"histogram, 50 uneven bins, {n:,}", (x, edges), xp.histogram, numpy=np.histogram,
        torch=lambda t, v, e: t.histogram(v, e), jax=lambda j, v, e: j.numpy.histogram(v, e),
    )  # fmt: skip
    yield row_of(
        f"interp, {n:,} among {n:,}", (x, points, values), xp.interp, numpy=np.interp,
        jax=lambda j, v, p, f: j.numpy.interp(v, p, f),
    )  # fmt: skip
    yield row_of(
        f"interp, {n:,} among 51", (x, edges, values[:51]), xp.interp, numpy=np.interp,
        jax=lambda j, v, p, f: j.numpy.interp(v, p, f),
    )  # fmt: skip
    for few in (x[:5], np.concatenate((x[:50], edges))):
        yield row_of(
            f"isin, {n:,} among {len(few)}", (x, few), xp.isin, numpy=np.isin,
            torch=lambda t, v, e: t.isin(v, e), jax=lambda j, v, e: j.numpy.isin(v, e),
        )  # fmt: skip
    labels = rng.integers(0, COLUMNS, n // COLUMNS)
    yield row_of(
        f"one_hot, ({labels.size:,}, {COLUMNS})", (labels,), lambda i: xp.one_hot(i, COLUMNS),
        torch=lambda t, i: t.nn.functional.one_hot(i, COLUMNS),
        jax=lambda j, i: j.nn.one_hot(i, COLUMNS),
    )  # fmt: skip
    added = jit(lambda a, v, i: vjp(lambda a, v: a.at[i].add(v), a, v)[1](a))
    yield row_of(  # compiled by both, whose programs make no sum that nobody asks for
        f"gradients of x.at[i].add(v), compiled, {n:,}", (x, values, rng.integers(0, n, n)), added,
        jax=lambda j, a, v, i: j.vjp(lambda a, v: a.at[i].add(v), a, v)[1](a),
    )  # fmt: skip


def _ordered(n: int) -> Iterator[Row]:
    """What is in order, halves, and elements among others."""
    rng = np.random.default_rng(11)
    up = np.sort(rng.normal(size=n))
    for label, x in (("ascending", up), ("descending", up[::-1].copy())):
        yield row_of(
            f"argsort, {label}, {n:,}", (x,), xp.argsort,
            numpy=lambda a: np.argsort(a, stable=True),
            torch=lambda t, a: t.sort(a, stable=True)[1], jax=lambda j, a: j.numpy.argsort(a),
        )  # fmt: skip
    half = up.astype(np.float16)
    yield row_of(
        f"argsort, float16, {n:,}", (rng.permutation(half),), xp.argsort,
        numpy=lambda a: np.argsort(a, stable=True), torch=lambda t, a: t.sort(a, stable=True)[1],
    )  # fmt: skip
    for k in (10, n // 10):
        yield row_of(
            f"top_k {k:,}, float16, {n:,}", (rng.permutation(half),), lambda a, k=k: xp.top_k(a, k),
            torch=lambda t, a, k=k: t.topk(a, k), jax=lambda j, a, k=k: j.lax.top_k(a, k),
        )  # fmt: skip
    whole = rng.integers(0, n, n)
    yield row_of(
        f"isin, int64, {n:,} in {n // 10:,}", (whole, whole[: n // 10]), xp.isin, numpy=np.isin,
        torch=lambda t, a, v: t.isin(a, v),
    )  # fmt: skip


def _runs(n: int) -> Iterator[Row]:
    rng = np.random.default_rng(7)
    x, counts = rng.normal(size=n), rng.integers(0, 4, n)
    wide = x.reshape(-1, COLUMNS)
    side = int(n**0.5)
    square = x[: side * side].reshape(side, side)
    yield row_of(
        f"repeat, each as often as is said, {n:,}", (x, counts), xp.repeat, numpy=np.repeat,
        torch=lambda t, v, c: t.repeat_interleave(v, c), orders=ORDERS if n <= 10_000 else 1,
    )  # fmt: skip
    yield row_of(
        f"diff, {wide.shape}, axis 1", (wide,), xp.diff, numpy=np.diff,
        torch=lambda t, v: t.diff(v), jax=lambda j, v: j.numpy.diff(v),
    )  # fmt: skip
    yield row_of(
        f"roll, {wide.shape}, axis 1", (wide,), lambda v: xp.roll(v, 3, axis=1),
        numpy=lambda v: np.roll(v, 3, 1), torch=lambda t, v: t.roll(v, 3, 1),
        jax=lambda j, v: j.numpy.roll(v, 3, 1),
    )  # fmt: skip
    codes = rng.integers(-9, 9, n, np.int8)
    yield row_of(
        f"flip(x) + x, int8, {n:,}", (codes,), lambda v: xp.flip(v) + v,
        numpy=lambda v: np.flip(v) + v, torch=lambda t, v: v.flip(0) + v,
        jax=lambda j, v: j.numpy.flip(v) + v,
    )  # fmt: skip
    yield row_of(
        f"tril, {square.shape}", (square,), xp.tril, numpy=np.tril, torch=lambda t, v: t.tril(v),
        jax=lambda j, v: j.numpy.tril(v),
    )  # fmt: skip


def _changed(n: int) -> Iterator[Row]:
    """Views, rows, and what is under masks, in new arrays."""
    rng = np.random.default_rng(9)
    x, mask = rng.normal(size=n), rng.random(n) < 0.5
    rows, at = x.reshape(-1, COLUMNS), rng.integers(0, n // COLUMNS, n // COLUMNS)
    yield row_of(
        f"x.at[2:-2].add(v), {n:,}", (x, x[4:]), lambda a, v: a.at[2:-2].add(v),
        numpy=lambda a, v: _with(a, slice(2, -2), a[2:-2] + v),
        jax=lambda j, a, v: a.at[2:-2].add(v),
    )  # fmt: skip
    yield row_of(
        f"x.at[:, 3].set(v), {rows.shape}", (rows, x[: len(rows)]),
        lambda a, v: a.at[:, 3].set(v), numpy=lambda a, v: _with(a, (slice(None), 3), v),
        jax=lambda j, a, v: a.at[:, 3].set(v),
    )  # fmt: skip
    yield row_of(
        f"x.at[i].max(rows), {rows.shape}", (rows, rows[::-1].copy(), at),
        lambda a, v, i: a.at[i].max(v), torch=lambda t, a, v, i: a.index_reduce(0, i, v, "amax"),
        jax=lambda j, a, v, i: a.at[i].max(v),
    )  # fmt: skip
    yield row_of(
        f"x.at[mask].add(1), {n:,}", (x, mask), lambda a, m: a.at[m].add(1.0),
        numpy=lambda a, m: np.where(m, a + 1.0, a), torch=lambda t, a, m: t.where(m, a + 1.0, a),
        jax=lambda j, a, m: j.numpy.where(m, a + 1.0, a),
    )  # fmt: skip
    yield row_of(
        f"x.at[mask of rows].set(0), {rows.shape}", (rows, mask[: len(rows)]),
        lambda a, m: a.at[m].set(0.0), numpy=lambda a, m: _with(a, m, 0.0),
        torch=lambda t, a, m: a.masked_fill(m[:, None], 0.0),
        jax=lambda j, a, m: j.numpy.where(m[:, None], 0.0, a),
    )  # fmt: skip
    yield row_of(
        f"x.at[mask].set(v), {n:,}", (x, mask, x[mask]), lambda a, m, v: a.at[m].set(v),
        numpy=_with, torch=lambda t, a, m, v: a.masked_scatter(m, v),
    )  # fmt: skip
    yield row_of(
        f"take of rows, {rows.shape}", (rows, at), lambda a, i: xp.take(a, i, axis=0),
        numpy=lambda a, i: a.take(i, 0), torch=lambda t, a, i: a.index_select(0, i),
        jax=lambda j, a, i: a[i],
    )  # fmt: skip


def _with(x: Any, key: Any, v: Any) -> Any:
    y = x.copy()
    y[key] = v
    return y


def _narrow(n: int) -> Iterator[Row]:
    """Integers and floats of two bytes, and complex numbers."""
    rng = np.random.default_rng(8)
    x, halves = rng.integers(-30_000, 30_000, n, np.int16), rng.normal(size=n).astype(np.float16)
    ids = rng.integers(0, 1_000, n)
    yield row_of(
        f"sort, int16, {n:,}", (x,), xp.sort, numpy=np.sort, torch=lambda t, a: t.sort(a)[0],
        jax=lambda j, a: j.numpy.sort(a),
    )  # fmt: skip
    turns = rng.normal(size=n) + 1j
    yield row_of(
        f"cumulative_sum, complex128, {n:,}", (turns,), xp.cumulative_sum, numpy=np.cumsum,
        torch=lambda t, a: t.cumsum(a, 0), jax=lambda j, a: j.numpy.cumsum(a),
    )  # fmt: skip
    yield row_of(
        f"cumulative_prod, complex128, {n:,}", (turns,), xp.cumulative_prod, numpy=np.cumprod,
        torch=lambda t, a: t.cumprod(a, 0), jax=lambda j, a: j.numpy.cumprod(a),
    )  # fmt: skip
    yield row_of(
        f"cumulative_sum, float16, {n:,}", (halves,), xp.cumulative_sum, numpy=np.cumsum,
        torch=lambda t, a: t.cumsum(a, 0),
    )  # fmt: skip
    yield row_of(
        f"cumulative_max, float16, {n:,}", (halves,), xp.cumulative_max,
        numpy=np.maximum.accumulate, torch=lambda t, a: t.cummax(a, 0)[0],
    )  # fmt: skip
    brains = halves.astype(bfloat16)
    yield row_of(
        f"cumulative_max, bfloat16, {n:,}", (brains,), xp.cumulative_max,
        numpy=np.maximum.accumulate, jax=lambda j, a: j.lax.cummax(a),
    )  # fmt: skip
    yield row_of(
        f"segment_sum, float16, {n:,}", (halves, ids), lambda v, i: xp.segment_sum(v, i, 1_000),
        torch=lambda t, v, i: t.zeros(1_000, dtype=v.dtype).index_add_(0, i, v),
        jax=lambda j, v, i: j.ops.segment_sum(v, i, 1_000),
    )  # fmt: skip
    yield row_of(
        f"x.at[i].add(v), float16, {n:,}", (halves[:1_000], halves, ids),
        lambda a, v, i: a.at[i].add(v), torch=lambda t, a, v, i: a.index_add(0, i, v),
        jax=lambda j, a, v, i: a.at[i].add(v),
    )  # fmt: skip
    wide = halves.reshape(-1, COLUMNS)
    at = rng.integers(0, len(wide), len(wide))
    yield row_of(
        f"x.at[i].add(rows), float16, {wide.shape}", (wide, at), lambda a, i: a.at[i].add(a),
        torch=lambda t, a, i: a.index_add(0, i, a), jax=lambda j, a, i: a.at[i].add(a),
    )  # fmt: skip
