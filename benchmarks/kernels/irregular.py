"""Sorting, searching, scans, gather, scatter and pooling, in GB/s.

Bytes are those of what goes in and what comes out, so the share of a copy's speed is what one pass
over memory would reach. JAX's threads share one core, as the others take one thread. It takes 20 s
to sort ten million elements, so it is left out there; so are orders of that many that are like
others.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from operator import matmul
from typing import Any

import attrs
import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.kernels.row import Row
from benchmarks.peers import jax_of_one_thread, optional
from funct.interop import CSR
from funct.nn import functional
from funct.tree import leaves

TITLE = "irregular kernels, one thread [GB/s]"
SIZES = (10_000_000, 1_000_000, 100_000, 10_000, 1_000)  # the large ones first: they load LLVM
LONG = 10_000_000  # elements from which on one turn takes seconds
TURNS = {LONG: 2, 1_000_000: 4}  # which are enough where nothing is over soon
SEGMENTS = 1_000
ORDERS = 64  # of few elements: of one, processors learn by heart which way each branch goes
IMAGES = ((8, 64, 56, 56), (8, 256, 14, 14))
WINDOWS = ((2, 2, 0), (3, 2, 1), (3, 1, 1))


def rows(sizes: tuple[int, ...] = SIZES) -> Iterator[Row]:
    """Every row."""
    for n in sizes:
        for kind in (_ordered, _scanned, _indexed, _sparse):
            for row in kind(n):
                yield attrs.evolve(row, rounds=TURNS.get(n, row.rounds))
    yield from _pooled()


def row_of(name: str, arrays: tuple[Any, ...], ours: Any, *, orders: int = 1, **theirs: Any) -> Row:
    """A row of functions of the same arrays: of funct's, NumPy's, torch's and JAX's.

    orders: in how many the elements of the last array come, by turns.
    """
    torch, jax = optional("torch"), jax_of_one_thread()
    rng, (*held, last) = np.random.default_rng(5), arrays
    several = [arrays, *[(*held, rng.permuted(last)) for _ in range(orders - 1)]]

    def by_turns(fun: Callable[..., Any], made: Callable[[Any], Any]) -> Callable[[], object]:
        given = itertools.cycle([[made(a) for a in each] for each in several])
        return lambda: fun(*next(given))

    out = leaves(ours(*map(xp.asarray, arrays)))
    moved = sum(a.nbytes for a in arrays) + sum(np.asarray(v).nbytes for v in out)
    peers: dict[str, Callable[[], object]] = {}
    if "numpy" in theirs:
        peers["numpy"] = by_turns(theirs["numpy"], np.asarray)
    if "torch" in theirs and torch is not None:
        peers["torch"] = by_turns(partial(theirs["torch"], torch), torch.from_numpy)
    if "jax" in theirs and jax is not None and max(a.size for a in arrays) < LONG:
        jax.config.update("jax_enable_x64", True)
        compiled = jax.jit(lambda *a: theirs["jax"](jax, *a))
        peers["jax"] = by_turns(lambda *a: jax.block_until_ready(compiled(*a)), jax.numpy.asarray)
    return Row(name, moved, by_turns(ours, xp.asarray), peers)


def _ordered(n: int) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    row = partial(row_of, orders=ORDERS if n <= 10_000 else 1)
    reals, few = rng.normal(size=n), rng.integers(0, n // 4, n)
    kinds = (reals.astype(np.float32), reals, few, few.astype(np.int32))
    for x in kinds if n < LONG else (reals,):
        label = f"{x.dtype}, {n:,}"
        yield row(
            f"sort, {label}", (x,), xp.sort, numpy=np.sort, torch=lambda t, a: t.sort(a)[0],
            jax=lambda j, a: j.numpy.sort(a),
        )  # fmt: skip
        yield row(
            f"argsort, {label}", (x,), xp.argsort, numpy=lambda a: np.argsort(a, stable=True),
            torch=lambda t, a: t.sort(a, stable=True)[1], jax=lambda j, a: j.numpy.argsort(a),
        )  # fmt: skip
    for k in (10, n // 10, n // 2) if n < LONG else (n // 10,):
        yield row(
            f"top_k {k:,}, float64, {n:,}", (reals,), lambda a, k=k: xp.top_k(a, k),
            numpy=partial(_largest, k=k),
            torch=lambda t, a, k=k: t.topk(a, k), jax=lambda j, a, k=k: j.lax.top_k(a, k),
        )  # fmt: skip
    if n < LONG:
        rising, lines, long = np.sort(few), reals.reshape(-1, 100), reals.reshape(-1, 500)
        kinds = (row_of, "ascending", rising, 10), (row, "rows", lines, 10), (row, "rows", long, 50)
        for made, label, x, k in kinds:
            yield made(
                f"top_k {k}, {label} of {x.shape}", (x,), lambda a, k=k: xp.top_k(a, k),
                numpy=partial(_largest_of_each, k=k), torch=lambda t, a, k=k: t.topk(a, k),
                jax=lambda j, a, k=k: j.lax.top_k(a, k),
            )  # fmt: skip
    for x in (reals, few) if n < LONG else (reals,):
        yield row(
            f"unique_values, {x.dtype}, {n:,}", (x,), xp.unique_values, numpy=np.unique,
            torch=lambda t, a: t.unique(a),
        )  # fmt: skip
    if n >= LONG:
        return
    for axis, shape in ((0, (-1, 10)), (0, (-1, 100)), (1, (-1, 10, 10))):
        wide = reals.reshape(shape)
        yield row(
            f"sort, {wide.shape}, axis {axis}", (wide,),
            lambda a, axis=axis: xp.sort(a, axis=axis),
            numpy=lambda a, axis=axis: np.sort(a, axis),
            torch=lambda t, a, axis=axis: t.sort(a, axis)[0],
            jax=lambda j, a, axis=axis: j.numpy.sort(a, axis),
        )  # fmt: skip
    half = reals.astype(np.float16)
    yield row(
        f"sort, float16, {n:,}", (half,), xp.sort, numpy=np.sort,
        torch=lambda t, a: t.sort(a)[0], jax=lambda j, a: j.numpy.sort(a),
    )  # fmt: skip
    # zeros of both signs keep their order, which NumPy's own quick sort does not see to
    yield row(f"sort, rounded float64, {n:,}", (reals.round(),), xp.sort, numpy=np.sort)
    yield row(
        f"unique_counts, float64, {n:,}", (reals,), xp.unique_counts,
        numpy=lambda a: np.unique(a, return_counts=True),
        torch=lambda t, a: t.unique(a, return_counts=True),
    )  # fmt: skip
    for x in (reals, few):
        yield row(
            f"unique_inverse, {x.dtype}, {n:,}", (x,), xp.unique_inverse,
            numpy=lambda a: np.unique(a, return_inverse=True),
            torch=lambda t, a: t.unique(a, return_inverse=True),
        )  # fmt: skip
    yield row(
        f"searchsorted, float64, {n:,} in {n:,}", (np.sort(reals), reals), xp.searchsorted,
        numpy=np.searchsorted, torch=lambda t, a, v: t.searchsorted(a, v),
        jax=lambda j, a, v: j.numpy.searchsorted(a, v),
    )  # fmt: skip


def _largest(x: Any, k: int) -> tuple[Any, Any]:
    """The k largest in descending order, and where they stand, as the others give them."""
    at = np.argpartition(x, len(x) - k)[len(x) - k :]
    at = at[np.argsort(x[at])[::-1]]
    return x[at], at


def _largest_of_each(x: Any, k: int) -> tuple[Any, Any]:
    """`_largest` of each row."""
    at = np.argpartition(x, x.shape[-1] - k)[..., -k:]
    at = np.take_along_axis(at, np.argsort(np.take_along_axis(x, at, -1))[..., ::-1], -1)
    return np.take_along_axis(x, at, -1), at


def _scanned(n: int) -> Iterator[Row]:
    x = np.random.default_rng(1).normal(size=n)
    wide = x.reshape(-1, 100) if n > 100_000 else x.reshape(-1, 10)
    for axis, a in ((0, x), (0, wide)):
        yield row_of(
            f"cumulative_sum, {a.shape}, axis {axis}", (a,),
            lambda v, axis=axis: xp.cumulative_sum(v, axis=axis),
            numpy=lambda v, axis=axis: np.cumsum(v, axis),
            torch=lambda t, v, axis=axis: t.cumsum(v, axis),
            jax=lambda j, v, axis=axis: j.numpy.cumsum(v, axis),
        )  # fmt: skip
    yield row_of(
        f"cumulative_prod, {n:,}", (x,), xp.cumulative_prod, numpy=np.cumprod,
        torch=lambda t, v: t.cumprod(v, 0), jax=lambda j, v: j.numpy.cumprod(v),
    )  # fmt: skip
    yield row_of(f"cumulative_prod, {n:,}, pull", (x,), lambda v: _pull(xp.cumulative_prod, v))
    for a in (x, x.reshape(-1, 4), wide):
        yield row_of(
            f"cumulative_max, {a.shape}, axis 0", (a,), lambda v: xp.cumulative_max(v, axis=0),
            numpy=np.maximum.accumulate, torch=lambda t, v: t.cummax(v, 0)[0],
            jax=lambda j, v: j.lax.cummax(v),
        )  # fmt: skip
    yield row_of(
        f"histogram, 100 bins, {n:,}", (x,), lambda v: xp.histogram(v, 100),
        numpy=lambda v: np.histogram(v, 100), torch=lambda t, v: t.histogram(v, 100),
        jax=lambda j, v: j.numpy.histogram(v, 100),
    )  # fmt: skip


def _indexed(n: int) -> Iterator[Row]:
    rng = np.random.default_rng(2)
    x, ids, at = rng.normal(size=n), rng.integers(0, SEGMENTS, n), rng.integers(0, n, n)
    for label, i in (("any order", ids), ("sorted", np.sort(ids))):
        yield row_of(
            f"segment_sum, {label}, {n:,}", (x, i), lambda v, i: xp.segment_sum(v, i, SEGMENTS),
            numpy=lambda v, i: np.bincount(i, v, SEGMENTS),
            torch=lambda t, v, i: t.zeros(SEGMENTS, dtype=v.dtype).index_add_(0, i, v),
            jax=lambda j, v, i: j.ops.segment_sum(v, i, SEGMENTS),
        )  # fmt: skip
    narrow = x.astype(np.float32).reshape(-1, 8)
    yield row_of(
        f"segment_sum, float32, {narrow.shape}", (narrow, ids[: len(narrow)]),
        lambda v, i: xp.segment_sum(v, i, SEGMENTS),
        torch=lambda t, v, i: t.zeros(SEGMENTS, 8).index_add_(0, i, v),
        jax=lambda j, v, i: j.ops.segment_sum(v, i, SEGMENTS),
    )  # fmt: skip
    yield row_of(
        f"x.at[i].add(v), {n:,}", (x, x, at), lambda a, v, i: a.at[i].add(v), numpy=_added,
        torch=lambda t, a, v, i: a.index_add(0, i, v), jax=lambda j, a, v, i: a.at[i].add(v),
    )  # fmt: skip
    yield row_of(
        f"x.at[i].add(v), int32, {n:,}", (x, x, at.astype(np.int32)),
        lambda a, v, i: a.at[i].add(v), numpy=_added,
        torch=lambda t, a, v, i: a.index_add(0, i, v), jax=lambda j, a, v, i: a.at[i].add(v),
    )  # fmt: skip
    yield row_of(
        f"x.at[i].add(1), int32, {n:,}", (x, at.astype(np.int32)), lambda a, i: a.at[i].add(1.0),
        numpy=lambda a, i: _added(a, 1.0, i), jax=lambda j, a, i: a.at[i].add(1.0),
    )  # fmt: skip
    yield row_of(
        f"x.at[i].add(rows), {narrow.shape}", (narrow, narrow, at[: len(narrow)] % len(narrow)),
        lambda a, v, i: a.at[i].add(v), numpy=_added,
        torch=lambda t, a, v, i: a.index_add(0, i, v), jax=lambda j, a, v, i: a.at[i].add(v),
    )  # fmt: skip
    planes = x[: n // 1_000 * 1_000].reshape(-1, 10, 100)
    key = slice(None), at[:20] % 10, slice(None, None, 2)
    yield row_of(
        f"x.at[:, i, ::2].add(v), {planes.shape}", (planes, planes[key].copy()),
        lambda a, v: a.at[key].add(v), numpy=lambda a, v: _added(a, v, key),
        jax=lambda j, a, v: a.at[key].add(v),
    )  # fmt: skip
    square = x[: int(n**0.5) ** 2].reshape(int(n**0.5), -1)
    yield row_of(
        f"x.at[i, j].add(v), {square.shape}", (square, x, at % len(square), ids % len(square)),
        lambda a, v, i, j: a.at[i, j].add(v), numpy=lambda a, v, *key: _added(a, v, key),
        torch=lambda t, a, v, i, j: a.index_put((i, j), v, accumulate=True),
        jax=lambda k, a, v, i, j: a.at[i, j].add(v),
    )  # fmt: skip
    yield row_of(
        f"x.at[i, 1].add(v), {square.shape}", (square, x, at % len(square)),
        lambda a, v, i: a.at[i, 1].add(v), numpy=lambda a, v, i: _added(a, v, (i, 1)),
        jax=lambda j, a, v, i: a.at[i, 1].add(v),
    )  # fmt: skip
    yield row_of(
        f"x.at[0, i].add(v), {square.shape}", (square, x, at % len(square)),
        lambda a, v, i: a.at[0, i].add(v), numpy=lambda a, v, i: _added(a, v, (0, i)),
        jax=lambda j, a, v, i: a.at[0, i].add(v),
    )  # fmt: skip
    half, truth = narrow.astype(np.float16), x > 0
    yield row_of(
        f"x.at[i].add(rows), float16, {half.shape}", (half, half, at[: len(half)] % len(half)),
        lambda a, v, i: a.at[i].add(v), torch=lambda t, a, v, i: a.index_add(0, i, v),
        jax=lambda j, a, v, i: a.at[i].add(v),
    )  # fmt: skip
    yield row_of(
        f"segment_sum, bool, {n:,}", (truth, ids), lambda v, i: xp.segment_sum(v, i, SEGMENTS),
        torch=lambda t, v, i: t.zeros(SEGMENTS, dtype=t.bool).index_add_(0, i, v),
    )  # fmt: skip
    cube = x.reshape(-1, 10, 10)
    places = at // 100, at // 10 % 10, at % 10
    yield row_of(
        f"x.at[i, j, k].add(v), {cube.shape}", (cube, x, *places),
        lambda a, v, i, j, k: a.at[i, j, k].add(v),
        numpy=lambda a, v, *key: _added(a, v, key),
        torch=lambda t, a, v, *key: a.index_put(key, v, accumulate=True),
        jax=lambda _, a, v, i, j, k: a.at[i, j, k].add(v),
    )  # fmt: skip
    yield row_of(
        f"x.at[i, j, k].set(v), {cube.shape}", (cube, x, *places),
        lambda a, v, i, j, k: a.at[i, j, k].set(v),
        numpy=lambda a, v, *key: _replaced(a, v, key),
        torch=lambda t, a, v, *key: a.index_put(key, v),
        jax=lambda _, a, v, i, j, k: a.at[i, j, k].set(v),
    )  # fmt: skip
    yield row_of(
        f"x[i, j, k], {cube.shape}", (cube, *places), lambda a, i, j, k: a[i, j, k],
        numpy=lambda a, *key: a[key], torch=lambda t, a, *key: a[key],
        jax=lambda _, a, i, j, k: a[i, j, k],
    )  # fmt: skip
    few = [(k % len(square)).astype(np.int32) for k in (at, ids)]
    yield row_of(
        f"x.at[i, j].add(v), int32, {square.shape}", (square, x, few[0], few[1]),
        lambda a, v, i, j: a.at[i, j].add(v), numpy=lambda a, v, *key: _added(a, v, key),
        torch=lambda t, a, v, i, j: a.index_put((i, j), v, accumulate=True),
        jax=lambda k, a, v, i, j: a.at[i, j].add(v),
    )  # fmt: skip
    yield row_of(
        f"take, {n:,}", (x, at), xp.take, numpy=np.take,
        torch=lambda t, a, i: t.index_select(a, 0, i), jax=lambda j, a, i: a[i],
    )  # fmt: skip
    yield row_of(
        f"take_along_axis, {n:,}", (x, at), lambda a, i: xp.take_along_axis(a, i, axis=0),
        numpy=lambda a, i: np.take_along_axis(a, i, 0), torch=lambda t, a, i: t.gather(a, 0, i),
        jax=lambda j, a, i: j.numpy.take_along_axis(a, i, 0),
    )  # fmt: skip
    rows, inside = x.reshape(-1, 10), at.reshape(-1, 10) % 10
    yield row_of(
        f"take_along_axis, {rows.shape}, axis 1", (rows, inside),
        lambda a, i: xp.take_along_axis(a, i, axis=1),
        numpy=lambda a, i: np.take_along_axis(a, i, 1), torch=lambda t, a, i: t.gather(a, 1, i),
        jax=lambda j, a, i: j.numpy.take_along_axis(a, i, 1),
    )  # fmt: skip
    yield row_of(
        f"take_along_axis, int32, {rows.shape}, axis 1", (rows, inside.astype(np.int32)),
        lambda a, i: xp.take_along_axis(a, i, axis=1),
        numpy=lambda a, i: np.take_along_axis(a, i, 1),
        jax=lambda j, a, i: j.numpy.take_along_axis(a, i, 1),
    )  # fmt: skip
    yield row_of(
        f"x.at[i].set(v), {n:,}", (x, x, at), lambda a, v, i: a.at[i].set(v), numpy=_replaced,
        torch=lambda t, a, v, i: a.index_copy(0, i, v), jax=lambda j, a, v, i: a.at[i].set(v),
    )  # fmt: skip
    yield row_of(
        f"x[mask], {n:,}", (x, x > 0), lambda a, m: a[m], numpy=lambda a, m: a[m],
        torch=lambda t, a, m: a[m],
    )  # fmt: skip
    yield row_of(
        f"x.at[mask].set(0), {n:,}", (x, x > 0), lambda a, m: a.at[m].set(0.0),
        numpy=lambda a, m: np.where(m, 0.0, a), torch=lambda t, a, m: a.masked_fill(m, 0.0),
        jax=lambda j, a, m: j.numpy.where(m, 0.0, a),
    )  # fmt: skip
    yield row_of(
        f"nonzero, {rows.shape}", (rows > 0,), xp.nonzero, numpy=np.nonzero,
        torch=lambda t, m: t.nonzero(m, as_tuple=True),
    )  # fmt: skip
    yield row_of(
        f"take, {rows.shape}, axis 1", (rows, inside[0]), lambda a, i: xp.take(a, i, axis=1),
        numpy=lambda a, i: np.take(a, i, 1), torch=lambda t, a, i: t.index_select(a, 1, i),
        jax=lambda j, a, i: a[:, i],
    )  # fmt: skip
    yield row_of(
        f"x.at[:, i].add(v), {rows.shape}", (rows, rows, inside[0]),
        lambda a, v, i: a.at[:, i].add(v),
        numpy=lambda a, v, i: _added(a, v, (slice(None), i)),
        torch=lambda t, a, v, i: a.index_add(1, i, v),
        jax=lambda j, a, v, i: a.at[:, i].add(v),
    )  # fmt: skip
    for label, part in ((":5", slice(5)), ("::2", slice(None, None, 2))):
        yield row_of(
            f"x.at[i, {label}].add(v), {rows.shape}",
            (rows, rows[:, part], at[: len(rows)] % len(rows)),
            lambda a, v, i, part=part: a.at[i, part].add(v),
            numpy=lambda a, v, i, part=part: _added(a, v, (i, part)),
            jax=lambda j, a, v, i, part=part: a.at[i, part].add(v),
        )  # fmt: skip
    yield row_of(
        f"repeat 2, {n:,}", (x,), lambda a: xp.repeat(a, 2), numpy=lambda a: np.repeat(a, 2),
        torch=lambda t, a: a.repeat_interleave(2), jax=lambda j, a: j.numpy.repeat(a, 2),
    )  # fmt: skip
    yield row_of(
        f"roll, {rows.shape}, axis 1", (rows,), lambda a: xp.roll(a, 1, axis=1),
        numpy=lambda a: np.roll(a, 1, 1), torch=lambda t, a: a.roll(1, 1),
        jax=lambda j, a: j.numpy.roll(a, 1, 1),
    )  # fmt: skip
    yield row_of(
        f"concat of two, {rows.shape}, axis 1", (rows,), lambda a: xp.concat([a, a], axis=1),
        numpy=lambda a: np.concatenate([a, a], 1), torch=lambda t, a: t.cat([a, a], 1),
        jax=lambda j, a: j.numpy.concatenate([a, a], 1),
    )  # fmt: skip
    yield row_of(
        f"concat of two, {n:,}", (x,), lambda a: xp.concat([a, a]),
        numpy=lambda a: np.concatenate([a, a]), torch=lambda t, a: t.cat([a, a]),
        jax=lambda j, a: j.numpy.concatenate([a, a]),
    )  # fmt: skip
    yield row_of(
        f"where, {n:,}", (truth, x, ids.astype(float)), xp.where, numpy=np.where,
        torch=lambda t, m, a, b: t.where(m, a, b), jax=lambda j, m, a, b: j.numpy.where(m, a, b),
    )  # fmt: skip
    yield row_of(
        f"concat of five, {rows.shape}, axis 1", (rows,), lambda a: xp.concat([a] * 5, axis=1),
        numpy=lambda a: np.concatenate([a] * 5, 1), torch=lambda t, a: t.cat([a] * 5, 1),
        jax=lambda j, a: j.numpy.concatenate([a] * 5, 1),
    )  # fmt: skip
    yield row_of(
        f"bincount, {n:,}", (ids,), xp.bincount, numpy=np.bincount,
        torch=lambda t, i: t.bincount(i), jax=lambda j, i: j.numpy.bincount(i, length=SEGMENTS),
    )  # fmt: skip


def _sparse(n: int) -> Iterator[Row]:
    """Ten entries in a row, SciPy's product, and the matrix in torch and JAX."""
    sparse: Any = optional("scipy.sparse")
    if sparse is None:
        return
    rng, rows = np.random.default_rng(4), n // 10
    a = sparse.random_array((rows, rows), density=10 / rows, format="csr", rng=rng)
    ours = CSR.from_scipy_sparse(a)
    for k in (1, 8):
        x = rng.normal(size=(rows, k))
        moved = a.data.nbytes + a.indices.nbytes + a.indptr.nbytes + 2 * x.nbytes
        given = xp.asarray(x)
        for name, left, right in (("CSR @ x", ours, a), ("CSR.T @ x", ours.T, a.T)):
            peers: dict[str, Callable[[], object]] = {"scipy": partial(matmul, right, x)}
            torch: Any = optional("torch")
            if torch is not None and left is ours:
                parts = [torch.from_numpy(v) for v in (a.indptr, a.indices, a.data)]
                with warnings.catch_warnings(action="ignore"):  # torch calls it a prototype
                    b = torch.sparse_csr_tensor(*parts, a.shape)
                peers["torch"] = partial(matmul, b, torch.from_numpy(x))
            yield Row(f"{name}, {n:,} entries, {k}", moved, partial(matmul, left, given), peers)

        def entries(data: Any, x: Any = given) -> Any:
            return attrs.evolve(ours, data=data) @ x

        def pull(f: Any = entries) -> Any:
            return _pull(f, ours.data)

        yield Row(f"CSR @ x, {n:,} entries, {k}, pull in the entries", 2 * moved, pull, {})


def _added(x: Any, v: Any, i: Any) -> Any:
    y = x.copy()
    np.add.at(y, i, v)
    return y


def _replaced(x: Any, v: Any, i: Any) -> Any:
    y = x.copy()
    y[i] = v
    return y


def _pooled() -> Iterator[Row]:
    rng = np.random.default_rng(3)
    first = [rng.normal(size=s).astype(np.float32) for s in IMAGES]
    last = [np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1) for x in first]
    for name, where in product(("max_pool2d", "avg_pool2d"), ("", ", channels last")):
        ours = getattr(functional, name)
        large, small = last if where else first
        for x, k, step, pad in [(large, *s) for s in WINDOWS] + [(small, 3, 2, 1)]:
            label = f"{name} {k}x{k}, stride {step}, {x.shape[-1]}{where}"

            def theirs(t: Any, a: Any, name: str = name, sizes: Any = (k, step, pad)) -> Any:
                return getattr(t.nn.functional, name)(a, *sizes)

            def value(a: Any, f: Any = ours, sizes: Any = (k, step, pad)) -> Any:
                return f(a, *sizes)

            yield row_of(label, (x,), value, torch=theirs)
            g = np.ones_like(np.asarray(value(xp.asarray(x))))  # in memory as what comes back to it
            yield row_of(
                f"{label}, pull", (x, g), lambda a, g, f=value: ft.vjp(f, a)[1](g),
                torch=lambda t, a, g, f=theirs: _backward(t, f, a, g),
            )  # fmt: skip


def _pull(f: Any, x: Any) -> Any:
    y, pull = ft.vjp(f, x)
    return pull(xp.ones_like(y))


def _backward(torch: Any, f: Any, x: Any, g: Any) -> Any:
    x = x.detach().requires_grad_()
    f(torch, x).backward(g)
    return x.grad
