"""Chapter: sparse matrices. A matrix by rows times a dense one, and its adjoint in the entries.

The two are closed under derivatives: the product is linear in the entries and in the dense matrix,
and each of its transposes is a product again, or `sampled_matmul`, and the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from funct import ops
from funct.core import (
    Absent,
    Primitive,
    Sample,
    Shape,
    ShapeDtype,
    Value,
    product_dtype,
    product_in_wide,
)
from funct.kernels.linalg import csr as kernels
from funct.ops.broadcasting import first_axis, merged, of_none
from funct.ops.counting import counted
from funct.ops.families import structural
from funct.ops.fast import wrap
from funct.ops.indexing import batch_size, lane_offsets
from funct.ops.samples import calls

__all__ = ["sampled_matmul", "sparse_matmul"]

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]

_NO_ONNX = Absent("ONNX has no products of sparse matrices")


def _blocks(indices: Value, indptr: Value, n: Any, entries: Any) -> tuple[Value, Value]:
    """The matrices of all lanes, (B, p) and (B, m + 1), as the blocks of a diagonal."""
    size, more = indptr.shape[0], indptr.shape[1] - 1
    starts = ops.reshape(counted(size), (size, 1))
    begin = ops.slice_(indptr, ((None, None, 1), (None, -1, 1))) + starts * entries
    end = ops.broadcast_to(wrap(np.ones((), np.int64)), (1,)) * size * entries
    flat = ops.concat(ops.reshape(begin, (size * more,)), ops.astype(end, begin.dtype), 0)
    return ops.reshape(lane_offsets(indices, n), (size * entries,)), flat


def _lanes(args: Args, batched: Flags) -> tuple[Any, list[Value]]:
    size = batch_size(args, batched)
    return size, [first_axis(a, b, size) for a, b in zip(args, batched, strict=True)]


def _matmul_aval(args: Args, params: Params) -> ShapeDtype:
    (data, x, _, indptr), (n, transposed) = args, params
    rows = n if transposed else indptr.shape[0] - 1
    return ShapeDtype((rows, x.shape[1]), product_dtype(data.dtype, x.dtype))


def _matmul_data(g: Value, x: Value, indices: Value, indptr: Value, transposed: bool) -> Value:
    return ops.sampled_matmul(*((x, g) if transposed else (g, x)), indices, indptr)


def _matmul_x(
    g: Value, data: Value, indices: Value, indptr: Value, n: Any, transposed: bool
) -> Value:
    return ops.sparse_matmul(data, g, indices, indptr, n, not transposed)


@of_none
def _matmul_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    n, transposed = params
    if list(batched) == [False, True, False, False]:  # lanes are columns beside each other
        data, x, indices, indptr = args
        size, rows, k = x.shape
        y = prim.fn(data, ops.reshape(ops.move_axis(x, 0, 1), (rows, size * k)), indices, indptr,
                    *params)  # fmt: skip
        return ops.move_axis(ops.reshape(y, (y.shape[0], size, k)), 1, 0)
    size, (data, x, indices, indptr) = _lanes(args, batched)
    indices, indptr = _blocks(indices, indptr, n, data.shape[1])
    y = prim.fn(merged(data), merged(x), indices, indptr, size * n, transposed)
    return ops.reshape(y, (size, y.shape[0] // size, y.shape[1]))


_INDICES, _INDPTR = np.asarray([0, 2, 1, 3, 0]), np.asarray([0, 2, 2, 5])


def _sample(rng: Any, transposed: bool) -> Sample:
    rows = 3 if transposed else 4
    arrays = rng.normal(size=5), rng.normal(size=(rows, 2)), _INDICES, _INDPTR
    return Sample(arrays, (4, transposed))


@structural(
    partial(product_in_wide, kernels.matmul), _matmul_data, _matmul_x, None, None,
    aval=_matmul_aval, batch=_matmul_batch, onnx=_NO_ONNX,
    samples=calls(lambda rng: _sample(rng, False), lambda rng: _sample(rng, True)), raises=True,
)  # fmt: skip
def sparse_matmul(
    data: Value, x: Value, indices: Value, indptr: Value, n: Any, transposed: bool
) -> Value:
    """A (m, n), compressed by rows, times x (n, k); transposed: its transpose times x (m, k)."""


def _sampled_aval(args: Args, params: Params) -> ShapeDtype:
    g, x, indices, _ = args
    return ShapeDtype(indices.shape, product_dtype(g.dtype, x.dtype))


def _sampled_g(h: Value, x: Value, indices: Value, indptr: Value) -> Value:
    return ops.sparse_matmul(h, x, indices, indptr, x.shape[0], False)


def _sampled_x(h: Value, g: Value, indices: Value, indptr: Value, x_shape: Shape) -> Value:
    return ops.sparse_matmul(h, g, indices, indptr, x_shape[0], True)


def _sampled_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    size, (g, x, indices, indptr) = _lanes(args, batched)
    entries = indices.shape[1]
    indices, indptr = _blocks(indices, indptr, x.shape[1], entries)
    return ops.reshape(prim.fn(merged(g), merged(x), indices, indptr), (size, entries))


@structural(
    partial(product_in_wide, kernels.sampled), _sampled_g, _sampled_x, None, None,
    aval=_sampled_aval, batch=_sampled_batch, onnx=_NO_ONNX, samples=calls(
        lambda rng: Sample((rng.normal(size=(3, 2)), rng.normal(size=(4, 2)), _INDICES, _INDPTR)),
    ), raises=True,
)  # fmt: skip
def sampled_matmul(g: Value, x: Value, indices: Value, indptr: Value) -> Value:
    """g (m, k) times x (n, k) transposed, at the entries of a sparse matrix (m, n) alone."""
