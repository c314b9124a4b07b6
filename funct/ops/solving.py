"""Chapter: linear systems, inverses and determinants of stacks of matrices.

An operand is a stack of matrices on its last two axes. Sources: the differentials of solve, inv and
det are Jacobi's; of expm, Higham, Functions of Matrices (2008), section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funct import ops
from funct.core import (
    Derived,
    Pair,
    Sample,
    Shape,
    ShapeDtype,
    Value,
)
from funct.kernels.linalg import matrices as kernels
from funct.ops.broadcasting import match_operand
from funct.ops.families import structural
from funct.ops.fast import wrap
from funct.ops.matrices import (
    NO_OPERATOR,
    Args,
    Params,
    adjoint,
    batch_first,
    batch_pair,
    check_lengths,
    check_square,
    column,
    columns,
    lower,
    real_dtype,
    upper,
)
from funct.ops.samples import calls, deficient, regular

__all__ = ["cofactor", "det", "expm", "inv", "slogdet", "solve", "solve_triangular"]


def _solve_aval(args: Args, params: Params) -> ShapeDtype:
    return check_lengths("solve", ("x1", "x2"), *args)


def _solve_push_x1(t: Value, ans: Value, x1: Value, x2: Value) -> Value:
    return -ops.solve(x1, ops.matmul(t, ans))


def _solve_pull_x1(g: Value, ans: Value, x1: Value, x1_shape: Shape) -> Value:
    w = ops.solve(ops.swap_last(x1), g)
    return match_operand(-ops.matmul(w, ops.swap_last(ans)), x1_shape)


def _solve_rule_x2(g: Value, x1: Value, x2_shape: Shape) -> Value:
    return match_operand(ops.solve(ops.swap_last(x1), g), x2_shape)


@structural(
    kernels.solve, Pair(_solve_push_x1, _solve_pull_x1, ["x1", "x2"]), _solve_rule_x2,
    aval=_solve_aval, batch=batch_pair, onnx=NO_OPERATOR,
    samples=calls(
        lambda rng: Sample((regular(rng, 3, 3), rng.normal(size=(3, 2)))),
        lambda rng: Sample((regular(rng, 2, 2, 2), rng.normal(size=(2, 1)))),
        lambda rng: Sample((regular(rng, 2, 2), rng.normal(size=(2, 2, 1)))),
        lambda rng: Sample((regular(rng, 2, 2, unit=1j), rng.normal(size=(2, 1)) + 1j)),
        lambda rng: Sample((regular(rng, 0, 0), np.zeros((0, 2)))),
    ), raises=True,
)  # fmt: skip
def solve(x1: Value, x2: Value) -> Value:
    """The x with x1 x = x2; leading axes broadcast. A singular x1 raises LinAlgError."""


def _triangle_aval(args: Args, params: Params) -> ShapeDtype:
    return check_lengths("solve_triangular", ("a", "b"), *args)


def _triangle(x: Value, is_lower: bool) -> Value:
    return lower(x) if is_lower else upper(x)


def _triangle_push_a(t: Value, ans: Value, a: Value, b: Value, lower: bool) -> Value:
    return -ops.solve_triangular(a, ops.matmul(_triangle(t, lower), ans), lower)


def _triangle_pull_a(g: Value, ans: Value, a: Value, lower: bool, a_shape: Shape) -> Value:
    w = ops.solve_triangular(ops.swap_last(a), g, not lower)
    return match_operand(-_triangle(ops.matmul(w, ops.swap_last(ans)), lower), a_shape)


def _triangle_push_b(t: Value, ans: Value, a: Value, b: Value, lower: bool) -> Value:
    return ops.solve_triangular(a, t, lower)


def _triangle_pull_b(g: Value, a: Value, lower: bool, b_shape: Shape) -> Value:
    return match_operand(ops.solve_triangular(ops.swap_last(a), g, not lower), b_shape)


@structural(
    kernels.solve_triangular, Pair(_triangle_push_a, _triangle_pull_a, ["a", "b", "lower"]),
    Pair(_triangle_push_b, _triangle_pull_b, ["a", "b", "lower"]), aval=_triangle_aval,
    batch=batch_pair, onnx=NO_OPERATOR,
    samples=calls(
        lambda rng: Sample((regular(rng, 3, 3), rng.normal(size=(3, 2))), (True,)),
        lambda rng: Sample((regular(rng, 2, 2, 2), rng.normal(size=(2, 1))), (False,)),
        lambda rng: Sample((regular(rng, 2, 2, unit=1j), rng.normal(size=(2, 2, 1))), (True,)),
    ), raises=True,
)  # fmt: skip
def solve_triangular(a: Value, b: Value, lower: bool) -> Value:
    """The x with tri(a) x = b, where tri is the lower or the upper triangle."""


def _square_aval(name: str) -> Any:
    def aval(args: Args, params: Params) -> ShapeDtype:
        check_square(name, "x", args[0])
        return ShapeDtype(args[0].shape, args[0].dtype)

    return aval


def _inv_push(t: Value, ans: Value, x: Value) -> Value:
    return -ops.matmul(ops.matmul(ans, t), ans)


def _inv_pull(g: Value, ans: Value) -> Value:
    turned = ops.swap_last(ans)
    return -ops.matmul(ops.matmul(turned, g), turned)


_REGULAR = calls(
    lambda rng: Sample((regular(rng, 3, 3),)),
    lambda rng: Sample((regular(rng, 2, 2, 2),)),
    lambda rng: Sample((regular(rng, 2, 2, unit=1j),)),
    lambda rng: Sample((regular(rng, 2, 2).astype(np.float32),), smooth=False),
    lambda rng: Sample((regular(rng, 0, 0),)),
)


@structural(
    kernels.inv, Pair(_inv_push, _inv_pull, ["x"]), aval=_square_aval("inv"), batch=batch_first,
    onnx=NO_OPERATOR, samples=_REGULAR, raises=True,
)  # fmt: skip
def inv(x: Value) -> Value:
    """Inverse; a singular x raises LinAlgError."""


def _scalar_aval(name: str) -> Any:
    def aval(args: Args, params: Params) -> ShapeDtype:
        check_square(name, "x", args[0])
        return ShapeDtype(args[0].shape[:-2], args[0].dtype)

    return aval


def _sum_both(x: Value) -> Any:
    rank = len(x.shape)
    return ops.reduce_sum(x, (rank - 2, rank - 1), False)


def _det_push(t: Value, ans: Value, x: Value) -> Value:
    return _sum_both(ops.cofactor(x) * t)


def _det_pull(g: Value, x: Value) -> Value:
    return column(column(g)) * ops.cofactor(x)


def _onnx_det(w: Any, x: str) -> str:
    return str(w.op("Det", x))


_DETERMINANTS = calls(
    lambda rng: Sample((regular(rng, 3, 3),)),
    lambda rng: Sample((rng.normal(size=(2, 2, 2)),)),
    lambda rng: Sample((deficient(rng, 3, 3, 2),)),
    lambda rng: Sample((deficient(rng, 3, 3, 1),)),
    lambda rng: Sample((np.zeros((2, 2)),)),
    lambda rng: Sample((regular(rng, 3, 3, unit=1j),)),
    lambda rng: Sample((deficient(rng, 3, 3, 2, 1j),)),
    lambda rng: Sample((regular(rng, 2, 2).astype(np.float32),), smooth=False),
)


@structural(
    kernels.det, Pair(_det_push, _det_pull, ["x"]), aval=_scalar_aval("det"), batch=batch_first,
    onnx=_onnx_det, samples=_DETERMINANTS,
)  # fmt: skip
def det(x: Value) -> Value:
    """Determinant. The derivative is exact for singular matrices of every rank."""


def _regular_push(t: Value, x: Value) -> Value:
    """Derivative of det(x) x⁻ᵀ."""
    turned = ops.swap_last(ops.inv(x))
    along = column(column(_sum_both(turned * t)))
    inner = along * turned - ops.matmul(turned, ops.matmul(ops.swap_last(t), turned))
    return column(column(ops.det(x))) * inner


def _turned_push(x: Value, t: Value) -> Value:
    """Derivative of what 2 x 2 cofactors are: the matrix turned around, with signs."""
    rank = len(t.shape)
    return ops.flip(t, (rank - 2, rank - 1)) * wrap(np.array([[1, -1], [-1, 1]], t.dtype))


def _minors_push(x: Value, t: Value) -> Value:
    """Derivative of what 3 x 3 cofactors are: differences of products of two elements."""
    (a, b, c, d), (e, f, g, h) = _crossed(x), _crossed(t)
    return a * f + b * e - c * h - d * g


def _crossed(x: Value) -> list[Value]:
    """What stands one and two rows and columns behind each element: of both, and of either."""
    rank, before = len(x.shape), ((None, None, 1),) * (len(x.shape) - 2)
    every, two = (None, None, 1), (0, 2, 1)
    x = ops.concat(x, ops.slice_(x, (*before, two, every)), rank - 2)
    x = ops.concat(x, ops.slice_(x, (*before, every, two)), rank - 1)
    return [
        ops.slice_(x, (*before, (i, i + 3, 1), (j, j + 3, 1)))
        for i, j in ((1, 1), (2, 2), (1, 2), (2, 1))
    ]


_WRITTEN_OUT: dict[int, Callable[[Value, Value], Value]] = {
    0: lambda x, t: t, 1: lambda x, t: t * 0, 2: _turned_push, 3: _minors_push,
}  # fmt: skip


def _cofactor_push(t: Value, ans: Value, x: Value) -> Value:
    """Where x⁻¹ would lose digits, the mean over a circle: cofactors of x + z are polynomials in z
    of degree n - 1, so their mean over n points z around 0 is their value at 0, and x + z is
    regular.
    """
    n = int(x.shape[-1])
    if n in _WRITTEN_OUT:
        return _WRITTEN_OUT[n](x, t)
    s = ops.svdvals(ops.stop_gradient(x))
    largest = columns(s, 0, 1)
    poor = float(np.finfo(s.dtype).eps ** 0.25)
    small = column(ops.less_equal(columns(s, n - 1, n), poor * largest))
    eye = wrap(np.eye(n, dtype=bool))
    regular = _regular_push(t, ops.where(small, ops.where(eye, 1.0, 0.0), x))
    radius = 1.5 * column(largest)  # no eigenvalue reaches that far
    radius = ops.where(ops.equal(radius, 0), 1.0, radius)
    points = np.exp(2j * np.pi * np.arange(n) / n).reshape(n, *(1,) * len(x.shape))
    z = radius * wrap(points.astype(np.result_type(x.dtype, np.complex64)))
    mean = ops.reduce_sum(_regular_push(t, x + ops.where(eye, z, 0.0)), (0,), False) / n
    return ops.where(small, mean if x.dtype.kind == "c" else ops.real(mean), regular)


@structural(
    kernels.cofactor, Derived(_cofactor_push), aval=_square_aval("cofactor"), batch=batch_first,
    onnx=NO_OPERATOR, samples=_DETERMINANTS,
)  # fmt: skip
def cofactor(x: Value) -> Value:
    """The derivative of det x in each element: det(x) x⁻ᵀ, continued to singular matrices."""


def _slogdet_aval(args: Args, params: Params) -> tuple[ShapeDtype, ShapeDtype]:
    check_square("slogdet", "x", args[0])
    lead, dtype = args[0].shape[:-2], args[0].dtype
    return ShapeDtype(lead, dtype), ShapeDtype(lead, real_dtype(dtype))


def _regular_part(ans: tuple[Value, Value], x: Value) -> tuple[Any, Any]:
    """Which matrices are singular, and x with the unit matrix in their place."""
    singular = ops.equal(ans[1], -np.inf)
    eye = wrap(np.eye(int(x.shape[-1])))
    return singular, ops.where(column(column(singular)), ops.astype(eye, x.dtype), x)


def _slogdet_push(t: Value, ans: tuple[Value, Value], x: Value) -> tuple[Any, Any]:
    singular, safe = _regular_part(ans, x)
    z = _sum_both(ops.swap_last(ops.inv(safe)) * t)
    z = ops.where(singular, z * np.nan, z)
    if x.dtype.kind != "c":
        return None, z
    return ans[0] * (1j * ops.imag(z)), ops.real(z)


def _slogdet_pull(g: tuple[Any, Any], ans: tuple[Value, Value], x: Value) -> Value:
    singular, safe = _regular_part(ans, x)
    c = ops.multiply(ans[1], 0.0) if g[1] is None else g[1]
    if x.dtype.kind == "c" and g[0] is not None:
        c = c - 1j * ops.imag(ops.conj(g[0]) * ans[0])
    c = ops.where(singular, ops.absorb(c, c * np.nan), c)
    return column(column(c)) * adjoint(ops.inv(safe))


@structural(
    kernels.slogdet, Pair(_slogdet_push, _slogdet_pull, ["x"]), aval=_slogdet_aval, results=2,
    batch=batch_first, onnx=NO_OPERATOR, samples=_REGULAR,
)  # fmt: skip
def slogdet(x: Value) -> tuple[Value, Value]:
    """Sign or phase of det x, and log |det x|: -inf, with derivative NaN, for a singular x."""


def _expm_push(t: Value, ans: Value, x: Value) -> Value:
    """exp [[x, t], [0, x]] has the derivative in its corner."""
    n = int(x.shape[-1])
    rank = len(x.shape)
    t = ops.broadcast_to(t, x.shape)
    if t.dtype != x.dtype:
        t = ops.astype(t, x.dtype)
    top = ops.concat(x, t, rank - 1)
    bottom = ops.concat(ops.multiply(x, 0.0), x, rank - 1)
    both = ops.expm(ops.concat(top, bottom, rank - 2))
    corner = (*((None, None, 1),) * (rank - 2), (None, n, 1), (n, None, 1))
    return ops.slice_(both, corner)


def _expm_pull(g: Value, x: Value) -> Value:
    return _expm_push(g, g, ops.swap_last(x))


@structural(
    kernels.expm, Pair(_expm_push, _expm_pull, ["x"]), aval=_square_aval("expm"),
    batch=batch_first, onnx=NO_OPERATOR,
    samples=calls(
        lambda rng: Sample((rng.normal(size=(3, 3)),)),
        lambda rng: Sample((rng.normal(size=(2, 2, 2)),)),
        lambda rng: Sample((rng.normal(size=(2, 2)) + 0.5j,)),
        lambda rng: Sample((rng.normal(size=(2, 2)).astype(np.float32),), smooth=False),
    ),
)  # fmt: skip
def expm(x: Value, /) -> Value:
    """Matrix exponential Σ xᵏ / k!.

    Args: x: Shape (..., n, n), floating.
    Notes: the derivative is the exponential of a block matrix of twice the size.
    Example:
        >>> import funct.array as xp
        >>> xp.linalg.expm(xp.asarray([[0.0, 1.0], [0.0, 0.0]])).tolist()
        [[1.0, 1.0], [0.0, 1.0]]

    Source: SciPy `scipy.linalg.expm`; Al-Mohy and Higham (2009).
    """
