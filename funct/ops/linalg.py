"""Chapter: products of matrices. Both ops are linear in each operand and their own transposes."""

from __future__ import annotations

import functools
import math
import string
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from funct import ops
from funct.core import Primitive, Sample, Shape, ShapeDtype, Value, product_dtype, product_in_wide
from funct.errors import DTypeError, ExportError, ShapeError
from funct.kernels.dtypes import NATIVE
from funct.kernels.linalg.products import product as matrix_product
from funct.ops.broadcasting import broadcast_shapes, match_operand, pad_rank
from funct.ops.families import structural
from funct.ops.samples import calls

__all__ = [
    "contract", "contract_layout", "contracted", "contraction", "matmul", "multiplied",
]  # fmt: skip

_BRAIN = np.dtype(ml_dtypes.bfloat16)

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]


def _matmul_raw(x: Any, y: Any) -> Any:
    if x.ndim < 2 or y.ndim < 2:
        raise ValueError("rank")
    return multiplied(x, y)


def multiplied(x: Any, y: Any) -> Any:
    """x @ y; of narrow dtypes it is taken in the wide one and rounded once."""
    kind = x.dtype
    if (kind.num < NATIVE and y.dtype.num < NATIVE) or kind == y.dtype == _BRAIN:
        return matrix_product.call(x, y)
    return product_in_wide(matrix_product.call, x, y)


def _matmul_aval(args: Args, params: Params) -> ShapeDtype:
    x, y = args
    if not hasattr(x, "shape") or not hasattr(y, "shape"):
        raise DTypeError(
            "matmul: both operands must be Tensors, got a Python number", fix="use multiply"
        )
    if len(x.shape) < 2 or len(y.shape) < 2:
        raise ShapeError(f"matmul: operands must have rank >= 2, got x {x.shape} and y {y.shape}")
    if x.shape[-1] != y.shape[-2]:
        raise ShapeError(
            f"matmul: inner dimensions must agree, got x {x.shape} and y {y.shape}: "
            f"{x.shape[-1]} != {y.shape[-2]}",
            fix="transpose y" if x.shape[-1] == y.shape[-1] and len(y.shape) == 2 else None,
        )
    try:
        lead = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError as error:
        raise ShapeError(
            f"matmul: leading shapes must broadcast, got x {x.shape} and y {y.shape}: {error}"
        ) from None
    return ShapeDtype((*lead, x.shape[-2], y.shape[-1]), product_dtype(x.dtype, y.dtype))


def _matmul_rule_x(g: Value, y: Value, x_shape: Any) -> Value:
    return match_operand(ops.matmul(g, ops.swap_last(y)), x_shape)


def _matmul_rule_y(g: Value, x: Value, y_shape: Any) -> Value:
    return match_operand(ops.matmul(ops.swap_last(x), g), y_shape)


def _matmul_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    (x, y), (of_x, of_y) = args, batched
    if of_y and not of_x and len(x.shape) == 2 and len(y.shape) == 3 and y.shape[2] == 1:
        lanes, k, _ = y.shape  # lanes are vectors: rows of one matrix, times the transpose of x
        rows = ops.matmul(ops.reshape(y, (lanes, k)), ops.swap_last(x))
        return ops.reshape(rows, (lanes, x.shape[0], 1))
    ranks = [len(a.shape) - b for a, b in zip(args, batched, strict=True)]
    x, y = (pad_rank(a, max(ranks)) if b else a for a, b in zip(args, batched, strict=True))
    return ops.matmul(x, y)


def _onnx_matmul(w: Any, x: str, y: str) -> str:
    return str(w.op("MatMul", *[w.cast(v, w.results[0].dtype) for v in (x, y)]))


@structural(
    _matmul_raw, _matmul_rule_x, _matmul_rule_y, aval=_matmul_aval, batch=_matmul_batch,
    onnx=_onnx_matmul,
    samples=calls(
        lambda rng: Sample((rng.normal(size=(3, 4)), rng.normal(size=(4, 2)))),
        lambda rng: Sample((rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 2)))),
        lambda rng: Sample((rng.normal(size=(2, 1, 3, 4)), rng.normal(size=(3, 4, 2)))),
        lambda rng: Sample((rng.normal(size=(2, 3)) + 1j, rng.normal(size=(3, 2)) - 2j)),
    ),
)  # fmt: skip
def matmul(x: Value, y: Value) -> Value:
    """Matrix product over the last two axes; leading axes broadcast. Ranks >= 2."""


def _labels(spec: str) -> tuple[str, str, str]:
    inputs, out = spec.split("->")
    x, y = inputs.split(",")
    return x, y, out


def _contract_raw(x: Any, y: Any, spec: str) -> Any:
    return contracted(x, y, contraction(spec, x.shape, y.shape))


def contracted(x: Any, y: Any, how: tuple[Any, ...]) -> Any:
    """The contraction of bare arrays that `contraction` has planned."""
    of_x, as_x, of_y, as_y, summed, as_out, to_out = how
    if of_x is not None:
        x = x.transpose(of_x)
    if as_x is not None:
        x = x.reshape(as_x)
    if of_y is not None:
        y = y.transpose(of_y)
    if as_y is not None:
        y = y.reshape(as_y)
    product = multiplied(x, y) if summed else x * y  # no sum, so no 0 to add: -0.0 stays
    if as_out is not None:
        product = product.reshape(as_out)
    return product if to_out is None else product.transpose(to_out)


@functools.lru_cache(1024)
def contraction(spec: str, x: Shape, y: Shape) -> tuple[Any, ...]:
    """How a contraction is a product of matrices, or of elements: orders of axes and shapes of x,
    y and the result, None for what is as it should be, and whether anything is summed.
    """
    of_x, of_y, n_both, n_left, n_inner, to_out = contract_layout(spec)
    xs, ys = tuple([x[i] for i in of_x]), tuple([y[i] for i in of_y])
    both, left = xs[:n_both], xs[n_both : n_both + n_left]
    inner, right = xs[n_both + n_left :], ys[n_both + n_inner :]
    if ys[: n_both + n_inner] != both + inner:
        raise ValueError("lengths")
    if inner:  # of vectors, where nothing else is to be multiplied
        rows = (math.prod(left),) if left or both else ()
        columns = (math.prod(right),) if right or both else ()
        as_x, as_y = both + rows + (math.prod(inner),), both + (math.prod(inner),) + columns
        product = both + rows + columns
    else:
        as_x, as_y = xs + (1,) * len(right), both + (1,) * n_left + right
        product = both + left + right
    out = both + left + right
    return (
        _unless_sorted(of_x), None if as_x == xs else as_x,
        _unless_sorted(of_y), None if as_y == ys else as_y,
        bool(inner), None if out == product else out, _unless_sorted(to_out),
    )  # fmt: skip


def _unless_sorted(order: list[int]) -> list[int] | None:
    return order if order != sorted(order) else None


@functools.lru_cache(512)
def contract_layout(spec: str) -> tuple[Any, ...]:
    """Axes of x as (both, left, inner) and of y as (both, inner, right), how many of the first
    three there are, and where the result's axes stand in (both, left, right).
    """
    a, b, out = _labels(spec)
    both = [c for c in a if c in b and c in out]
    inner = [c for c in a if c in b and c not in out]
    left = [c for c in a if c not in b]
    right = [c for c in b if c not in a]
    order = both + left + right
    return (
        [a.index(c) for c in both + left + inner], [b.index(c) for c in both + inner + right],
        len(both), len(left), len(inner), [order.index(c) for c in out],
    )  # fmt: skip


def _contract_aval(args: Args, params: Params) -> ShapeDtype:
    x, y = args
    a, b, out = _labels(params[0])
    size: dict[str, Any] = {}
    for labels, shape in ((a, x.shape), (b, y.shape)):
        for c, n in zip(labels, shape, strict=True):
            if size.setdefault(c, n) != n:
                raise ShapeError(
                    f"einsum: axis {c!r} has length {size[c]} and {n} in {params[0]!r}"
                )
    return ShapeDtype([size[c] for c in out], product_dtype(x.dtype, y.dtype))


def _contract_rule_x(g: Value, y: Value, spec: str) -> Value:
    a, b, out = _labels(spec)
    return ops.contract(g, y, f"{out},{b}->{a}")


def _contract_rule_y(g: Value, x: Value, spec: str) -> Value:
    a, b, out = _labels(spec)
    return ops.contract(x, g, f"{a},{out}->{b}")


def _contract_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    a, b, out = _labels(params[0])
    fresh = next(chr(k) for k in range(65, 1 << 16) if chr(k) not in a + b)
    a, b = (fresh * f + labels for f, labels in zip(batched, (a, b), strict=True))
    x, y = args
    return ops.contract(x, y, f"{a},{b}->{fresh}{out}")


def _onnx_contract(w: Any, x: str, y: str, spec: str) -> str:
    letters = dict.fromkeys(c for c in spec if c not in ",->")
    if len(letters) > len(string.ascii_letters):
        raise ExportError(
            f"contract: ONNX has {len(string.ascii_letters)} labels, got {len(letters)}"
        )
    known = dict(zip(letters, string.ascii_letters, strict=False))
    equation = "".join([known.get(c, c) for c in spec])
    both = [w.cast(v, w.results[0].dtype) for v in (x, y)]
    return str(w.op("Einsum", *both, equation=equation))


@structural(
    _contract_raw, _contract_rule_x, _contract_rule_y, aval=_contract_aval, batch=_contract_batch,
    onnx=_onnx_contract,
    samples=calls(
        lambda rng: Sample(
            (rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 2, 5))), ("abc,cad->bda",)
        ),
        lambda rng: Sample((rng.normal(size=(2, 3)), rng.normal(size=(4,))), ("ab,c->cab",)),
        lambda rng: Sample((rng.normal(size=(3,)) * 1j, rng.normal(size=(3,)) + 1j), ("a,a->",)),
    ),
)  # fmt: skip
def contract(x: Value, y: Value, spec: str) -> Value:
    """Einstein sum of two operands, "ab,bc->ac".

    Each label stands once per operand, and each label of one operand stands in the other or in the
    result; `funct.array.einsum` brings every other form to this one.
    """
