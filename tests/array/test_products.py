"""Products of arrays against NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ShapeError, UnsupportedOperandError
from tests import laws
from tests.strategies import filled

SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def specs(draw: Any) -> tuple[str, list[tuple[int, ...]]]:
    """An einsum specification of 1 to 4 operands, and fitting shapes."""
    sizes = {c: draw(st.integers(1, 3)) for c in "abcd"}
    with_dots = draw(st.booleans())
    hidden = [draw(st.integers(1, 2)) for _ in range(draw(st.integers(0, 2)))]
    terms, shapes, dotted = [], [], False
    for _ in range(draw(st.integers(1, 4))):
        labels = draw(st.lists(st.sampled_from("abcd"), max_size=3))
        shape = [sizes[c] for c in labels]
        if with_dots and draw(st.booleans()):
            at = draw(st.integers(0, len(labels)))
            tail = hidden[len(hidden) - draw(st.integers(0, len(hidden))) :]
            labels.insert(at, "...")
            shape[at:at] = [1 if draw(st.integers(0, 3)) == 0 else n for n in tail]
            dotted = True
        terms.append("".join(labels))
        shapes.append(tuple(shape))
    spec = ",".join(terms)
    used = sorted(set("".join(terms)) - set("."))
    if draw(st.booleans()):
        kept = draw(st.permutations([c for c in used if draw(st.booleans())]))
        out = list(kept)
        if dotted:
            out.insert(draw(st.integers(0, len(out))), "...")
        spec += "->" + "".join(out)
    return spec, shapes


@given(specs(), SEEDS)
def test_einsum_equals_numpy(case: Any, seed: int) -> None:
    """Repeated labels, ellipses, implicit results, sums of single operands: all as in NumPy."""
    spec, shapes = case
    xs = [filled(s, "float64", seed + k) for k, s in enumerate(shapes)]
    laws.close(xp.einsum(spec, *map(xp.asarray, xs)), np.asarray(np.einsum(spec, *xs)))


@pytest.mark.parametrize(
    ("spec", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 2)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("iji->j", [(2, 3, 2)]),
        ("...ij,...jk", [(2, 2, 3), (3, 2)]),
        ("i,i,i->", [(3,), (3,), (3,)]),
        ("ab,bc,cd,da->", [(2, 3), (3, 2), (2, 2), (2, 2)]),
        ("ij->", [(2, 3)]),
        (",i->i", [(), (3,)]),
        ("bij,bjk->bki", [(2, 2, 3), (2, 3, 2)]),
    ],
)
def test_einsum_obeys_the_laws(spec: str, shapes: Any, rng: np.random.Generator) -> None:
    """einsum has derivatives to second order, batches and compiles."""
    args = [xp.asarray(rng.normal(size=s)) for s in shapes]

    def fun(*xs: Any) -> Any:
        return xp.einsum(spec, *xs)

    laws.check_derivatives(fun, args, rng)
    laws.check_batch(fun, args, rng)
    laws.check_jit(fun, args)


@pytest.mark.parametrize("kind", ["int64", "int8", "bool", "float32", "complex128"])
def test_einsum_dtypes(kind: str) -> None:
    """The result has the promoted dtype of the operands."""
    x, y = filled((2, 3), kind, 0), filled((3, 2), kind, 1)
    laws.close(
        xp.einsum("ij,jk->ik", xp.asarray(x), xp.asarray(y)), np.einsum("ij,jk->ik", x, y), 1e-6
    )
    laws.close(xp.einsum("ij->ji", xp.asarray(x)), x.T)


@pytest.mark.parametrize(
    ("spec", "shapes", "text"),
    [
        ("ij,jk", [(2, 3)], "einsum: 'ij,jk' names 2 operands, got 1"),
        ("ij->ij", [(2,)], "einsum: term 'ij' of 'ij->ij' does not fit rank 1"),
        ("ij,jk->ik", [(2, 3), (4, 2)], "einsum: axis 'j' has length 3 and 4 in 'ij,jk->ik'"),
        ("ii->i", [(2, 3)], "einsum: axis 'i' has length 2 and 3 in 'ii->i'"),
        ("ij->ik", [(2, 3)], "einsum: result label 'k' of 'ij->ik' stands in no operand"),
        ("ij->ii", [(2, 2)], "einsum: result label 'i' of 'ij->ii' stands twice"),
        (
            "...i->i",
            [(2, 3)],
            "einsum: the result of '...i->i' must have '...' for the axes it hides",
        ),
        ("i?->i", [(2, 3)], "einsum: labels must be letters, got '?' in 'i?->i'"),
        ("i->...->i", [(2,)], "einsum: labels must be letters, got '-' in 'i->...->i'"),
    ],
)
def test_einsum_errors(spec: str, shapes: Any, text: str) -> None:
    """Labels that do not fit are named."""
    with pytest.raises(ShapeError) as caught:
        xp.einsum(spec, *[xp.zeros(s) for s in shapes])
    assert caught.value.what == text
    assert "in test_products.py:" in str(caught.value)


@given(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2), SEEDS)
def test_tensordot(summed: int, left: int, right: int, seed: int) -> None:
    """tensordot is NumPy's for a count and for named axes."""
    rng = np.random.default_rng(seed)
    common = rng.integers(1, 4, summed).tolist()
    x = rng.normal(size=[*rng.integers(1, 4, left).tolist(), *common])
    y = rng.normal(size=[*common, *rng.integers(1, 4, right).tolist()])
    laws.close(
        xp.tensordot(xp.asarray(x), xp.asarray(y), axes=summed),
        np.asarray(np.tensordot(x, y, summed)),
    )
    a, b = rng.permutation(x.ndim), rng.permutation(y.ndim)
    xt, yt = np.transpose(x, a), np.transpose(y, b)
    axes = (
        [int(np.where(a == left + k)[0][0]) for k in range(summed)],
        [int(np.where(b == k)[0][0]) - y.ndim for k in range(summed)],
    )
    laws.close(
        xp.tensordot(xp.asarray(xt), xp.asarray(yt), axes=axes),
        np.asarray(np.tensordot(xt, yt, axes)),
    )


@pytest.mark.parametrize("kind", ["int8", "float32", "float64", "complex128"])
@pytest.mark.parametrize(
    ("sx", "sy"), [((3,), (3,)), ((2, 3), (3,)), ((2, 1, 3), (4, 3)), ((0, 3), (3,))]
)
def test_vecdot(sx: Any, sy: Any, kind: str) -> None:
    """vecdot conjugates the first operand, broadcasts the rest and keeps the dtype."""
    x, y = filled(sx, kind, 0), filled(sy, kind, 1)
    laws.close(xp.vecdot(xp.asarray(x), xp.asarray(y)), np.asarray(np.vecdot(x, y)), 1e-6, 1e-6)
    moved = np.moveaxis(x, -1, 0)
    if x.ndim == y.ndim:
        laws.close(
            xp.vecdot(xp.asarray(moved), xp.asarray(np.moveaxis(y, -1, 0)), axis=-x.ndim),
            np.asarray(np.vecdot(x, y)), 1e-6, 1e-6,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("sx", "sy"),
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((4, 2, 3), (3,)),
        ((3,), (4, 3, 2)),
        ((2, 3), (3, 2)),
        ((4, 1, 2, 3), (5, 3, 2)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 3)),
    ],
)
def test_matmul(sx: Any, sy: Any, rng: np.random.Generator) -> None:
    """Every form of matmul is NumPy's and obeys the laws; @ is matmul."""
    x, y = rng.normal(size=sx), rng.normal(size=sy)
    a, b = xp.asarray(x), xp.asarray(y)
    laws.close(xp.matmul(a, b), np.asarray(x @ y))
    laws.close(a @ b, np.asarray(x @ y))
    laws.close(a @ y, np.asarray(x @ y))
    laws.close(x @ b, np.asarray(x @ y))
    laws.check_derivatives(xp.matmul, [a, b], rng)
    laws.check_batch(xp.matmul, [a, b], rng)


def test_outer(rng: np.random.Generator) -> None:
    """outer is NumPy's."""
    x, y = rng.normal(size=3), rng.normal(size=2)
    laws.close(xp.outer(xp.asarray(x), xp.asarray(y)), np.outer(x, y))


def test_einsum_chain_is_cheap() -> None:
    """Three operands are joined in a good order: no intermediate is larger than needed."""
    graph = ft.make_graph(lambda a, b, v: xp.einsum("ij,jk,k->i", a, b, v))(
        xp.ones((30, 40)), xp.ones((40, 50)), xp.ones(50)
    )
    sizes = [np.prod(v.shape) for e in graph.nodes for v in e.results]
    assert max(sizes) <= 40


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: xp.ones((2, 3)) @ xp.ones((2, 3)),
            "matmul: inner dimensions must agree, got x (2, 3) and y (2, 3): 3 != 2",
        ),
        (
            lambda: xp.ones(3) @ xp.ones(2),
            "matmul: inner dimensions must agree, got x (3,) and y (2,): 3 != 2",
        ),
        (
            lambda: xp.ones(()) @ xp.ones(2),
            "matmul: operands must have at least 1 axis, got x () and y (2,)",
        ),
        (
            lambda: xp.outer(xp.ones((1, 1)), xp.ones(2)),
            "outer: operands must be 1-D, got x1 (1, 1) and x2 (2,)",
        ),
        (
            lambda: xp.vecdot(xp.ones(3), xp.ones(2)),
            "vecdot: axis -1 must have one length, got 3 and 2",
        ),
        (
            lambda: xp.vecdot(xp.ones((3, 2)), xp.ones((2, 2))),
            "vecdot: shapes must broadcast, got x1 (3, 2) and x2 (2, 2)",
        ),
        (
            lambda: xp.tensordot(xp.ones((2, 3)), xp.ones((3, 2))),
            "tensordot: summed axes must agree, got x1 (2, 3) and x2 (3, 2): 2 != 3",
        ),
        (
            lambda: xp.tensordot(xp.ones(2), xp.ones(2), axes=2),
            "tensordot: axes must be at most the ranks, got 2 for x1 (2,) and x2 (2,)",
        ),
        (
            lambda: xp.tensordot(xp.ones(2), xp.ones(2), axes=([0], [])),
            "tensordot: axes must name as many axes of x1 as of x2, got ([0], [])",
        ),
    ],
)
def test_product_errors(call: Any, text: str) -> None:
    """The error names both shapes and the lengths that differ."""
    with pytest.raises(ShapeError) as caught:
        call()
    assert caught.value.what == text
    assert "in test_products.py:" in str(caught.value)


def test_matmul_of_numbers_is_refused() -> None:
    """@ takes arrays alone."""
    with pytest.raises(
        UnsupportedOperandError, match="matmul: both operands must be Tensors, got float"
    ):
        xp.ones((2, 2)) @ 2.0  # type: ignore[operator]


def test_products_without_a_sum_are_exact() -> None:
    """Where nothing is summed, every element is one product: -0.0 and infinities stay."""
    a, b = np.asarray([0.0, -1.0, np.inf, 1e-320]), np.asarray([-1.0, 0.0, 2.0])
    with np.errstate(invalid="ignore"):
        expected = np.multiply.outer(a, b)
        for got in (xp.outer, lambda x, y: xp.einsum("i,j->ij", x, y)):
            out = np.asarray(got(xp.asarray(a), xp.asarray(b)))
            np.testing.assert_array_equal(out, expected)
            np.testing.assert_array_equal(np.signbit(out), np.signbit(expected))
        scaled = np.asarray(xp.einsum("ij,i->ji", xp.asarray(expected), xp.asarray(a)))
        np.testing.assert_array_equal(scaled, (expected * a[:, None]).T)
