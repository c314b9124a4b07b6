"""Sparse Jacobians and Hessians equal the dense ones, have no entry too few, and cost few products.

The catalogue law says so for every primitive; where an op's pattern is exact, it is compared with
what is non-zero at any of several random points.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.core import Absent, Primitive, Sample, catalogue
from funct.errors import ConcretizationError, DTypeError, ShapeError, TransformError, TreeError
from funct.kernels.linalg.colouring import column_colours, star_colours, star_readings
from funct.nn.functional import conv2d
from funct.transforms.sparsity import reads
from funct.transforms.vmap import BatchTracer

sparse = pytest.importorskip("scipy.sparse")

Fun = Callable[..., Any]

# ops whose pattern may have more than what is non-zero at a random point, and why
WIDER = {
    "sort": "any element may become the k-th", "top_k": "any element may become the k-th",
    "reduce_max": "any element may be the largest", "reduce_min": "any may be the smallest",
    "max_pool": "any element of a window may be the largest", "relu": "it may be positive",
    "maximum": "either may be larger", "minimum": "either may be smaller",
    "scatter_combine": "either may be larger", "solve_triangular": "half is not read",
    "lu": "a triangle is zero", "qr": "a triangle is zero", "cholesky": "a triangle is zero",
    "cofactor": "one row and column is left out", "slogdet": "the sign is flat",
    "det": "a matrix is singular", "cumulative_prod": "a factor is zero",
    "fmod": "within a step", "remainder": "within a step",
}  # fmt: skip


def real_samples(most: int = 100) -> list[Any]:
    """Each primitive with its first sample that has derivatives in real double precision."""
    out = []
    for p in sorted(catalogue(), key=lambda p: p.name):
        for k, s in enumerate(p.samples(np.random.default_rng(3))[:most]):
            real = [
                a
                for a, rule in zip(s.args, p.rules, strict=True)
                if getattr(a, "dtype", None) == np.float64 and rule is not None
            ]
            single = any(getattr(a, "dtype", None) == np.float32 for a in s.args)
            absent = any(isinstance(r, Absent) for r in p.rules)
            if s.smooth and real and not single and not absent and sum(a.size for a in real):
                out.append(pytest.param(p, s, id=f"{p.name}-{k}"))
    return out


def as_one(prim: Primitive, sample: Sample) -> tuple[Fun, Any]:
    """A primitive as a function of one vector that holds all its real operands."""
    args = [xp.asarray(a) for a in sample.args]
    at = [k for k, a in enumerate(args) if a.dtype == xp.float64 and prim.rules[k] is not None]
    sizes = np.cumsum([0, *[args[k].size for k in at]]).tolist()

    def fun(x: Any) -> Any:
        full = list(args)
        for k, a, b in zip(at, sizes[:-1], sizes[1:], strict=True):
            full[k] = xp.reshape(x[a:b], args[k].shape)
        out = prim.fn(*full, *sample.params)
        outs = out if isinstance(out, tuple) else (out,)
        parts = [xp.reshape(o, (-1,)) for o in outs if o.dtype.kind in "fc"]
        return xp.concat(
            [xp.real(p) + 2.0 * xp.imag(p) if p.dtype.kind == "c" else p for p in parts]
        )

    return fun, xp.concat([xp.reshape(args[k], (-1,)) for k in at])


def dense(fun: Fun, x: Any) -> Any:
    out = fun(x)
    return np.asarray(ft.jacfwd(fun)(x)).reshape(out.size, x.size)


def agree(found: Any, want: Any) -> None:
    """Equal matrices, entry for entry."""
    assert isinstance(found, sparse.coo_array)
    assert found.shape == want.shape
    assert found.dtype == want.dtype
    scale = max(1.0, float(np.abs(want).max(initial=0.0)))
    np.testing.assert_allclose(found.toarray(), want, rtol=1e-9, atol=1e-10 * scale)


def is_known(prim: Primitive) -> bool:
    """Whether it is said what the op reads; it reads everything otherwise."""
    named = (reads._MOVES, reads._OWN, reads._AXES)
    return prim.spread is not None or any(prim.name in t for t in named)


@pytest.mark.parametrize(("prim", "sample"), real_samples())
def test_every_primitive(prim: Primitive, sample: Sample) -> None:
    """The sparse Jacobian equals the dense one; its pattern is exact unless WIDER says why not."""
    fun, x = as_one(prim, sample)
    want = dense(fun, x)
    found = ft.sparse_jacobian(fun)(x)
    agree(found, want)
    if is_known(prim) and prim.name not in WIDER:
        there = np.zeros(want.shape, bool)
        for k in range(4):
            noise = np.random.default_rng(k).uniform(0.999, 1.001, x.size)
            there |= dense(fun, x * xp.asarray(noise)) != 0
        pattern = np.zeros(want.shape, bool)
        pattern[found.row, found.col] = True
        np.testing.assert_array_equal(pattern, there)


@pytest.mark.parametrize(("prim", "sample"), real_samples(1))
def test_every_primitive_twice(prim: Primitive, sample: Sample, rng: np.random.Generator) -> None:
    """The sparse Hessian of a weighted sum of the results equals the dense one."""
    fun, x = as_one(prim, sample)
    weights = xp.asarray(rng.normal(size=fun(x).shape))

    def total(v: Any) -> Any:
        return xp.sum(weights * xp.square(fun(v)))

    agree(ft.sparse_hessian(total)(x), np.asarray(ft.hessian(total)(x)))


A = np.diag(np.arange(1.0, 7.0)) + np.diag(np.ones(5), 1)


@ft.custom_vjp
def _tripled(x: Any) -> Any:
    return xp.square(x)


_tripled.defvjp(lambda x: (x * x, x), lambda x, ct: (xp.flip(3.0 * x * ct),))


@ft.custom_jvp
def _doubled(x: Any) -> Any:
    return xp.sum(x) * x


_doubled.defjvp(lambda p, t: (_doubled(*p), 2.0 * p[0] * t[0]))

PROGRAMS: dict[str, tuple[Fun, int]] = {
    "identity": (lambda x: x, 6),
    "neighbours": (lambda x: x[1:] * x[:-1] - xp.sin(x[1:]), 10),
    "banded matrix": (lambda x: xp.asarray(A) @ x, 11),
    "banded matrix, batched": (lambda x: xp.asarray(A)[None] @ xp.stack([x, x])[..., None], 22),
    "bidiagonal from x": (lambda x: (xp.eye(6) * x + xp.eye(6, k=1)) @ x, 11),
    "mask": (lambda x: x * xp.asarray([0.0, 1.0, 0.0, 2.0, 0.0, 0.0]), 2),
    "constant choice": (lambda x: xp.where(xp.asarray(A[0]) > 0, x, x[::-1] * x), 10),
    "choice": (lambda x: xp.where(x > 0, x, x[::-1]), 12),
    "steps": (lambda x: xp.floor(x) * x + xp.round(x), 6),
    "zero steps": (lambda x: (x[0] > 1e9) * x, 6),
    "triangle": (lambda x: xp.tril(xp.broadcast_to(x, (6, 6)))[2], 3),
    "reduction": (lambda x: xp.sum(xp.reshape(x, (2, 3)) ** 2, axis=0), 6),
    "dense row": (lambda x: xp.concat([x * 2.0, xp.reshape(xp.sum(x), (1,))]), 12),
    "dense column": (lambda x: x * x[0], 11),
    "number": (lambda x: xp.sum(x[:3]), 3),
    "constant": (lambda x: xp.ones(4), 0),
    "stopped": (lambda x: ft.stop_gradient(x) * x[0], 6),
    "gathered": (lambda x: x[xp.asarray([5, 0, 5])] * x[2], 6),
    "written": (lambda x: xp.zeros(8).at[xp.asarray([1, 1, 3])].add(x[:3]), 3),
    "set": (lambda x: (x * 2.0).at[2].set(x[0]), 6),
    "stencil": (
        lambda x: conv2d(
            xp.reshape(x, (1, 1, 2, 3)),
            xp.asarray([[[[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]]]]),
            padding=1,
        ),
        6 + 2 * 7,
    ),
    "jit": (ft.jit(lambda x: x[1:] * x[:-1]), 10),
    "jit branch": (
        ft.jit(lambda x: ft.cond(x[0] > -1e9, lambda v: v * 2.0, lambda v: v[::-1], x)), 6,
    ),
    "jit scan": (
        ft.jit(lambda x: ft.scan(lambda c, v: (v, c * v), xp.asarray(1.0), x)[1]), 11,
    ),
    "jit while": (
        ft.jit(
            lambda x: ft.while_loop(
                lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x[0]), (0, x)
            )[1]
        ),
        11,
    ),
    "checkpoint": (ft.jit(ft.checkpoint(lambda x: x[1:] * x[:-1])), 10),
    "vmap": (lambda x: ft.vmap(xp.cumulative_sum)(xp.reshape(x, (2, 3))), 12),
    "vmap in jit": (ft.jit(lambda x: ft.vmap(lambda v: v * v[0])(xp.reshape(x, (2, 3)))), 10),
    "grad": (ft.grad(lambda x: xp.sum(x[1:] * x[:-1] ** 2)), 6 + 2 * 5 - 1),
    "jvp": (lambda x: ft.jvp(lambda v: v[1:] ** 3, (x,), (xp.ones(6),))[1], 5),
    "custom pull": (_tripled, 6),
    "custom push": (_doubled, 6),
    "custom pull in jit": (ft.jit(lambda x: _tripled(x) * 2.0), 6),
    "complex": (lambda x: xp.exp(1j * x), 6),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    """Compositions: the values of the dense Jacobian, and the number of entries said here."""
    fun, entries = PROGRAMS[name]
    x = xp.asarray([0.5, 1.5, -0.7, 2.5, 1.1, 0.3])
    found = ft.sparse_jacobian(fun)(x)
    agree(found, dense(fun, x))
    assert found.nnz == entries


def lanes_in(x: Any) -> int:
    """The number of lanes of the vmap that a value is under; 0 outside."""
    while x.__class__ is not ft.Array:
        if isinstance(x, BatchTracer):
            return int(x.value.shape[0])
        x = getattr(x, "tangent", x.value)
    return 0


def counted(fun: Fun) -> tuple[Fun, list[int]]:
    """fun with a push and a pull that count for how many lanes they are asked."""
    counts: list[int] = []

    @ft.custom_vjp
    def seen(x: Any) -> Any:
        return x

    def back(_: Any, ct: Any) -> Any:
        counts.append(lanes_in(ct))
        return (ct,)

    seen.defvjp(lambda x: (x, None), back)

    def push(p: Any, t: Any) -> Any:
        counts.append(lanes_in(t[0]))
        return p[0], t[0]

    seen.defjvp(push)
    return lambda x: fun(seen(x)), counts


@pytest.mark.parametrize(
    ("fun", "products"),
    [
        (lambda x: x[1:] * x[:-1], 2),
        (lambda x: x[2:] + x[1:-1] * x[:-2], 3),
        (lambda x: xp.concat([x[:-1] * x[-1], x[:1]]), 2),  # a dense column beside a diagonal
        (lambda x: xp.concat([x[:-1] * 2.0, xp.reshape(xp.prod(x), (1,))]), 2),  # a dense row
        (lambda x: xp.sum(x**2), 1),
        (lambda x: xp.reshape(x, (-1, 5)) @ xp.asarray(np.ones((5, 5))), 5),
    ],
)
def test_one_product_per_colour(fun: Fun, products: int) -> None:
    """Bands, a dense column, a dense row and blocks take the fewest products there can be."""
    x = xp.asarray(np.random.default_rng(0).uniform(0.9, 1.1, size=50))
    probe, counts = counted(fun)
    agree(ft.sparse_jacobian(probe)(x), dense(fun, x))
    assert max(counts) == products


def test_large_bands() -> None:
    """Ten thousand unknowns: three products, whatever the size."""
    n = 10_000
    x = xp.asarray(np.random.default_rng(1).normal(size=n))

    def residual(x: Any) -> Any:
        p = xp.concat([xp.zeros(1), x, xp.zeros(1)])
        return p[2:] - 2.0 * p[1:-1] + p[:-2] + xp.exp(x)

    for fun in (residual, ft.jit(residual)):
        found = ft.sparse_jacobian(fun)(x).tocsr()
        assert found.nnz == 3 * n - 2
        np.testing.assert_allclose(found.diagonal(), np.exp(np.asarray(x)) - 2.0)
        np.testing.assert_array_equal(found.diagonal(1), np.ones(n - 1))
        np.testing.assert_array_equal(found.diagonal(-1), np.ones(n - 1))
    probe, counts = counted(lambda v: xp.sum((v[1:] - v[:-1] ** 2) ** 2 + (1.0 - v[:-1]) ** 2))
    hessian = ft.sparse_hessian(probe)(x)
    assert hessian.nnz == 3 * n - 2
    assert max(counts) == 3


def test_hessian_of_an_arrow_takes_two_products() -> None:
    """A dense row and column: a star colouring reads them from opposite entries."""
    n = 300
    x = xp.asarray(np.random.default_rng(2).uniform(1.0, 2.0, n))

    def arrow(v: Any) -> Any:
        return xp.sum(v[0] * v**2)

    probe, counts = counted(arrow)
    found = ft.sparse_hessian(probe)(x)
    assert found.nnz == 3 * n - 2
    assert max(counts) == 2
    agree(found, np.asarray(ft.hessian(arrow)(x)))


@pytest.mark.parametrize("seed", range(6))
def test_colourings_of_random_matrices(seed: int) -> None:
    """No row has two columns of one colour; every entry of a symmetric matrix can be read."""
    rng = np.random.default_rng(seed)
    n, m = 30, 40
    matrix = rng.uniform(size=(m, n)) < 0.08
    rows, columns = np.nonzero(matrix)
    colours = column_colours(rows, columns, (m, n))
    assert len({(i, colours[j]) for i, j in zip(rows, columns, strict=True)}) == len(rows)
    assert ((colours >= 0) == matrix.any(axis=0)).all()
    h = np.triu(rng.normal(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.06))
    h = h + h.T
    rows, columns = np.nonzero(h)
    star = star_colours(rows, columns, n)
    seeds = np.eye(star.max() + 1)[star]
    products = (h @ seeds).T
    np.testing.assert_allclose(products[star_readings(rows, columns, star)], h[rows, columns])


def test_an_op_that_is_not_known_reads_everything() -> None:
    """A user's op may have entries too many, never too few; those around it stay exact."""
    reverse = ft.primitive(
        "sparse::reverse",
        impl=lambda x: np.ascontiguousarray(x[::-1]),
        push=lambda ts, ans, x: xp.flip(ts[0]),
        pull=lambda g, ans, x: (xp.flip(g),),
        batch=lambda args, batched: xp.flip(args[0], axis=1),
    )
    x = xp.asarray([0.5, 1.5, -0.7])

    def fun(x: Any) -> Any:
        return xp.concat([reverse(x[:2]) * x[1:], x**2])

    found = ft.sparse_jacobian(fun)(x)
    agree(found, dense(fun, x))
    assert found.nnz == 2 * 2 + 1 + 3


def test_shapes_and_further_arguments() -> None:
    """Both sides count elements in C order; the other arguments are passed on."""
    x = xp.asarray(np.arange(6.0).reshape(2, 3) + 1.0)

    def fun(a: Any, x: Any, *, scale: float) -> Any:
        return a["k"] * x**2 * scale

    found = ft.sparse_jacobian(fun, argnums=1)({"k": xp.asarray(2.0)}, x, scale=3.0)
    np.testing.assert_allclose(found.toarray(), np.diag(12.0 * np.arange(1.0, 7.0)))
    single = ft.sparse_jacobian(xp.sin)(xp.ones(3, dtype=xp.float32))
    assert single.dtype == np.float32
    point = ft.sparse_hessian(lambda x: x**3)(xp.asarray(2.0))
    assert point.toarray().tolist() == [[12.0]]


def test_a_known_pattern_is_not_searched() -> None:
    """sparsity= takes an earlier result, whatever its values; a wrong shape is refused."""
    x = xp.asarray([1.0, 2.0, 3.0])

    def fun(v: Any) -> Any:
        return v[1:] * v[:-1]

    pattern = ft.sparse_jacobian(fun)(xp.zeros(3))
    assert pattern.nnz == 4
    assert not pattern.data.any()
    agree(ft.sparse_jacobian(fun, sparsity=pattern)(x), dense(fun, x))
    total = ft.sparse_hessian(lambda v: xp.sum(fun(v)), sparsity=sparse.coo_array(np.ones((3, 3))))
    assert total(x).nnz == 9
    with pytest.raises(ShapeError, match=r"sparsity must have shape \(2, 3\), got \(3, 3\)"):
        ft.sparse_jacobian(fun, sparsity=np.ones((3, 3)))(x)


def test_errors() -> None:
    """Arguments and results that are not one real array are named."""
    x = xp.ones(3)
    with pytest.raises(TreeError, match="sparse_jacobian: argument 0 must be one array, got dict"):
        ft.sparse_jacobian(lambda d: d["a"])({"a": x})
    with pytest.raises(TreeError, match="the result must be one array, got tuple"):
        ft.sparse_jacobian(lambda v: (v, v))(x)
    with pytest.raises(DTypeError, match="must be real floating, got int64"):
        ft.sparse_jacobian(lambda v: v)(xp.arange(3))
    with pytest.raises(DTypeError, match="must be real floating, got complex128"):
        ft.sparse_hessian(lambda v: xp.sum(xp.real(v)))(x * 1j)
    with pytest.raises(TransformError, match="must return a scalar"):
        ft.sparse_hessian(lambda v: v)(x)
    with pytest.raises(TransformError, match="argnums names argument 1, the call has 1"):
        ft.sparse_jacobian(xp.sin, argnums=1)(x)
    with pytest.raises(ConcretizationError, match="sparse_jacobian: argument 0 is traced"):
        ft.jit(lambda v: ft.sparse_jacobian(xp.sin)(v).sum())(x)


def test_prod_of_shape_is_the_size() -> None:
    """Empty arrays have empty Jacobians."""
    found = ft.sparse_jacobian(lambda v: v * 2.0)(xp.zeros((0, 3)))
    assert found.shape == (prod((0, 3)), 0)
    assert found.nnz == 0
