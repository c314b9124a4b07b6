"""`xp.linalg` against NumPy and SciPy: values, shapes, dtypes, errors. Derivatives stand apart."""

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, DTypeError, FunctError, LinAlgError, ShapeError
from tests import laws

la = xp.linalg
SEEDS = st.integers(0, 2**32 - 1)
KINDS = st.sampled_from(["float32", "float64", "complex64", "complex128"])
LEADS = st.sampled_from([(), (2,), (0,), (2, 1)])
SIDES = st.integers(0, 4)
STANDARD = {
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
}  # fmt: skip


def draw(seed: int, kind: str, *shape: int) -> np.ndarray[Any, Any]:
    """A random array."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return np.asarray(x + 1j * rng.normal(size=shape) if kind[0] == "c" else x).astype(kind)


def single(kind: str) -> bool:
    """Whether the dtype has single precision."""
    return kind in ("float32", "complex64")


def agree(actual: Any, expected: Any, kind: str, scale: float = 1.0) -> None:
    """Equal within rounding, with the dtype that NumPy gives."""
    tol = (2e-3 if single(kind) else 1e-9) * scale
    laws.close(actual, expected, tol, tol)


def adjoint(x: Any) -> Any:
    """Conjugate transpose."""
    return np.conj(np.swapaxes(x, -1, -2))


def real(kind: str) -> Any:
    """The dtype of |x|."""
    return np.zeros((), kind).real.dtype


def test_the_namespace_is_the_extension_and_more() -> None:
    """`xp.linalg` holds the standard's 25 functions, NumPy's and SciPy's, each documented."""
    assert set(la.__all__) == STANDARD | {
        "block_diag", "cho_factor", "cho_solve", "cond", "expm", "lstsq", "lu", "multi_dot", "norm",
        "solve_triangular", "toeplitz",
    }  # fmt: skip
    assert all(inspect.getdoc(getattr(la, name)) for name in la.__all__)
    assert la.matmul is xp.matmul
    assert la.vecdot is xp.vecdot


@given(SEEDS, KINDS, LEADS, SIDES, SIDES)
def test_rectangular_functions_equal_numpy(seed: int, kind: str, lead: Any, m: int, n: int) -> None:
    """svd, qr, lu rebuild the matrix; svdvals, pinv, rank and norms are NumPy's."""
    a = draw(seed, kind, *lead, m, n)
    x = xp.asarray(a)
    k = min(m, n)
    for full in (False, True):
        u, s, vh = map(laws.raw, la.svd(x, full_matrices=full))
        assert u.shape == (*lead, m, m if full else k)
        assert vh.shape == (*lead, n if full else k, n)
        agree(u[..., :k] * s[..., None, :] @ vh[..., :k, :], a, kind)
        agree(
            adjoint(u) @ u,
            np.broadcast_to(np.eye(u.shape[-1], dtype=kind), (*lead, *u.shape[-1:] * 2)),
            kind,
        )
        agree(
            vh @ adjoint(vh),
            np.broadcast_to(np.eye(vh.shape[-2], dtype=kind), (*lead, *vh.shape[-2:-1] * 2)),
            kind,
        )
        assert s.dtype == real(kind)
        q, r = la.qr(x, mode="complete" if full else "reduced")
        assert q.shape == (*lead, m, m if full else k)
        agree(q @ r, a, kind)
        np.testing.assert_array_equal(laws.raw(r), np.triu(laws.raw(r)))
        assert q.dtype == r.dtype == np.dtype(kind)
    p, low, up = la.lu(x)
    agree(xp.astype(p, kind) @ low @ up, a, kind)
    agree(la.svdvals(x), np.linalg.svdvals(a), kind)
    agree(la.pinv(x), np.linalg.pinv(a), kind, 100.0)
    expected_rank = np.linalg.matrix_rank(a) if m and n else np.zeros(lead, int)
    laws.same(la.matrix_rank(x), np.asarray(expected_rank))
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        for keep in (False, True):
            got = la.matrix_norm(x, ord=order, keepdims=keep)
            if m and n:
                agree(got, np.linalg.matrix_norm(a, ord=order, keepdims=keep), kind)
            assert got.shape == lead + (1, 1) * keep
            assert got.dtype == real(kind)


@given(SEEDS, KINDS, LEADS, SIDES)
def test_square_functions_equal_numpy(seed: int, kind: str, lead: Any, n: int) -> None:
    """det, slogdet, inv, solve, expm, powers are NumPy's; eig, eigh, cholesky rebuild x."""
    a = draw(seed, kind, *lead, n, n) + 3 * np.eye(n, dtype=kind)
    b = draw(seed + 1, kind, n, 2)
    x, y = xp.asarray(a), xp.asarray(b)
    agree(la.det(x), np.linalg.det(a), kind, 30.0)
    agree(tuple(la.slogdet(x)), tuple(np.linalg.slogdet(a)), kind, 30.0)
    regular = n == 0 or bool(np.all(np.linalg.cond(a) < 100))
    if regular:
        agree(la.inv(x), np.linalg.inv(a), kind, 10.0)
        agree(la.solve(x, y), np.linalg.solve(a, b), kind, 10.0)
        agree(la.solve(x, y[:, 0]), np.linalg.solve(a, b[:, :1])[..., 0], kind, 10.0)
    triangle = np.tril(a)
    for lower in (True, False):
        part = triangle if lower else adjoint(triangle)
        if n == 0 or bool(np.all(np.linalg.cond(part) < 100)):
            noisy = xp.asarray(part + (np.triu(part.T * 0 + 7, 1) if lower and not lead else 0))
            agree(la.solve_triangular(noisy, y, lower=lower), np.linalg.solve(part, b), kind, 10.0)
    small = a / 4
    if n:
        agree(la.expm(xp.asarray(small)), np.asarray(scipy.linalg.expm(small)), kind)
    for power in (-2, -1, 0, 1, 2, 5) if regular else (0, 1, 2, 5):
        agree(
            la.matrix_power(x / 3, power),
            np.linalg.matrix_power(a / np.asarray(3, kind), power),
            kind,
            1e3,
        )
    w, v = la.eig(x)
    assert w.dtype == v.dtype == np.result_type(kind, "complex64")
    agree(xp.astype(x, v.dtype) @ v, v * w[..., None, :], kind)
    np.testing.assert_allclose(
        np.sort_complex(laws.raw(la.eigvals(x))), np.sort_complex(laws.raw(w)), rtol=1e-2, atol=1e-2
    )
    hermitian = a @ adjoint(a) + np.eye(n, dtype=kind)
    w, v = la.eigh(xp.asarray(hermitian))
    assert w.dtype == real(kind)
    agree(
        v * xp.astype(w[..., None, :], kind) @ xp.conj(xp.matrix_transpose(v)),
        hermitian,
        kind,
        30.0,
    )
    agree(la.eigvalsh(xp.asarray(hermitian)), np.linalg.eigvalsh(hermitian), kind, 30.0)
    low = laws.raw(la.cholesky(xp.asarray(hermitian)))
    agree(low, np.linalg.cholesky(hermitian), kind, 10.0)
    agree(la.cholesky(xp.asarray(hermitian), upper=True), adjoint(low), kind)


@given(SEEDS, KINDS, st.sampled_from([(4,), (2, 3), (2, 1, 3)]), st.data())
def test_vector_norm_equals_numpy(seed: int, kind: str, shape: Any, data: Any) -> None:
    """Every order, axis and keepdims; dtype is the real one of the same precision."""
    a = draw(seed, kind, *shape)
    if data.draw(st.booleans()):
        a[..., 0] = 0
    one = st.integers(-len(shape), len(shape) - 1)
    axis = data.draw(st.one_of(st.none(), one, st.just(tuple(range(len(shape))))))
    keep = data.draw(st.booleans())
    order = data.draw(st.sampled_from([np.inf, -np.inf, 0, 1, 2, 3, 0.5, 2.5, -1, -2, -0.5]))
    with np.errstate(divide="ignore"):
        expected = np.linalg.vector_norm(a, axis=axis, keepdims=keep, ord=order)
    agree(
        la.vector_norm(xp.asarray(a), axis=axis, keepdims=keep, ord=order),
        np.asarray(expected, real(kind)),
        kind,
    )


def test_norms_of_nothing() -> None:
    """Over no elements a norm is 0, and inf for a negative order."""
    x = xp.zeros((2, 0), dtype=xp.float32)
    for order in (np.inf, 0, 1, 2, 2.5):
        laws.same(la.vector_norm(x, axis=1, ord=order), np.zeros(2, "float32"))
    for order in (-np.inf, -1, -2.5):
        laws.same(la.vector_norm(x, axis=1, ord=order), np.full(2, np.inf, "float32"))
    laws.same(la.matrix_norm(x, ord=2, keepdims=True), np.zeros((1, 1), "float32"))
    laws.same(la.matrix_norm(x, ord=-2), np.asarray(np.inf, "float32"))


@given(
    SEEDS,
    st.sampled_from(["bool", "int8", "uint16", "int64", "float32", "complex128"]),
    LEADS,
    SIDES,
    SIDES,
    st.integers(-6, 6),
)
def test_diagonal_and_trace_equal_numpy(
    seed: int, kind: str, lead: Any, m: int, n: int, offset: int
) -> None:
    """Every dtype and offset; trace promotes as sum does, dtype= is obeyed."""
    a = (10 * draw(seed, "float64", *lead, m, n)).astype(kind)
    x = xp.asarray(a)
    laws.same(
        la.diagonal(x, offset=offset),
        np.linalg.diagonal(a, offset=offset) if abs(offset) < 5 else np.zeros((*lead, 0), kind),
    )
    if kind != "bool" and abs(offset) < 5:
        expected = np.sum(np.linalg.diagonal(a, offset=offset), axis=-1)
        agree(la.trace(x, offset=offset), np.asarray(expected), kind)
        agree(la.trace(x, offset=offset, dtype=xp.complex128), np.asarray(expected, complex), kind)


@given(SEEDS, st.sampled_from(["bool", "int8", "float64"]), SIDES, st.integers(-4, 4))
def test_diag_equals_numpy(seed: int, kind: str, n: int, k: int) -> None:
    """A vector on a diagonal, and the diagonal of that; linear, batched and compiled too."""
    a = (10 * draw(seed, "float64", n)).astype(kind)
    laws.same(xp.diag(xp.asarray(a)), np.diag(a))
    laws.same(xp.diag(xp.asarray(a), k), np.diag(a, k))
    laws.same(xp.diag(xp.asarray(np.diag(a, k)), k=k), np.diag(np.diag(a, k), k))
    if kind == "float64":
        fun = lambda v: xp.diag(xp.diag(v, k) ** 2, k)  # noqa: E731
        laws.check_derivatives(fun, [xp.asarray(a)], np.random.default_rng(0), order=1)
        laws.check_batch(fun, [xp.asarray(a)], np.random.default_rng(0))
        laws.check_jit(fun, [xp.asarray(a)])


@given(SEEDS, st.sampled_from(["int64", "float32", "complex128"]))
def test_cross_equals_numpy(seed: int, kind: str) -> None:
    """Any axis; the other axes broadcast."""
    for s, t, axis in (
        ((3,), (3,), -1),
        ((2, 3), (3,), -1),
        ((3, 1), (3, 4), 0),
        ((2, 3, 1), (3, 4), -2),
    ):
        a, b = (
            (5 * draw(seed + k, "float64" if kind[0] == "i" else kind, *shape)).astype(kind)
            for k, shape in enumerate((s, t))
        )
        full = np.broadcast_shapes(s, t)
        expected = np.linalg.cross(np.broadcast_to(a, full), np.broadcast_to(b, full), axis=axis)
        agree(la.cross(xp.asarray(a), xp.asarray(b), axis=axis), expected, kind, 10.0)


@given(SEEDS, KINDS, st.sampled_from([(4, 2), (2, 4), (3, 3)]), st.booleans(), st.booleans())
def test_lstsq_equals_numpy(
    seed: int, kind: str, shape: Any, deficient: bool, vector: bool
) -> None:
    """Solution, residuals, rank and singular values, for deficient matrices too."""
    a = draw(seed, kind, *shape)
    if deficient:
        a[:, 1] = a[:, 0]
    b = draw(seed + 1, kind, *shape[:1], *(() if vector else (2,)))
    rcond = 1e-3 if single(kind) else None
    expected = np.linalg.lstsq(a, b, rcond=rcond)
    got = la.lstsq(xp.asarray(a), xp.asarray(b), rcond)
    assert int(got.rank) == expected[2]
    if expected[3][expected[2] - 1] > 0.05 * expected[3][0]:
        agree((got.solution, got.residuals), (expected[0], expected[1]), kind, 100.0)
    agree(got.singular_values, expected[3], kind)


def test_rank_and_pinv_take_a_tolerance_per_matrix() -> None:
    """rtol is a number or an array that broadcasts with the stack."""
    x = np.stack([np.diag([1.0, 0.1, 0.001]), np.diag([2.0, 2.0, 0.0])])
    tols = np.asarray([[0.01], [0.5]])
    laws.same(la.matrix_rank(xp.asarray(x), rtol=xp.asarray(tols)), np.asarray([[2, 2], [1, 2]]))
    agree(
        la.pinv(xp.asarray(x), rtol=xp.asarray(tols)),
        np.linalg.pinv(np.broadcast_to(x, (2, 2, 3, 3)), rtol=np.broadcast_to(tols, (2, 2))),
        "float64",
    )
    assert int(la.matrix_rank(xp.asarray(x[0]), rtol=0.01)) == 2
    single_one = la.pinv(xp.asarray(x[0]), rtol=xp.asarray(0.01))
    agree(single_one, np.linalg.pinv(x[0], rtol=0.01), "float64")


def test_results_have_names() -> None:
    """Results are named tuples with the standard's field names."""
    x = xp.eye(2)
    assert la.eigh(x)._fields == la.eig(x)._fields == ("eigenvalues", "eigenvectors")
    assert la.qr(x)._fields == ("Q", "R")
    assert la.svd(x)._fields == ("U", "S", "Vh")
    assert la.slogdet(x)._fields == ("sign", "logabsdet")
    assert la.lu(x)._fields == ("P", "L", "U")
    assert la.lstsq(x, x)._fields == ("solution", "residuals", "rank", "singular_values")
    assert type(ft.jit(la.qr)(x)) is type(la.qr(x))


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_complex_vectors_have_a_fixed_phase(kind: str) -> None:
    """The largest component of complex eigenvectors and left singular vectors is real, positive."""
    a = draw(3, kind, 2, 4, 4)
    hermitian = a + adjoint(a)
    for v in (
        la.eigh(xp.asarray(hermitian))[1],
        la.eig(xp.asarray(a))[1],
        la.svd(xp.asarray(a))[0],
    ):
        v = laws.raw(v)
        top = np.take_along_axis(v, np.argmax(np.abs(v), -2)[:, None], -2)
        np.testing.assert_allclose(top, np.abs(top), rtol=1e-6)


SQUARE = ("cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "expm", "inv", "slogdet")
MATRIX = (*SQUARE, "lu", "pinv", "qr", "svd", "svdvals")


@pytest.mark.parametrize("name", SQUARE)
def test_square_is_asked_for(name: str) -> None:
    """A matrix that is not square raises ShapeError with the function's name, traced or not."""
    for fun in (getattr(la, name), ft.jit(getattr(la, name))):
        with pytest.raises(ShapeError, match=f"^{name}: x must be square, got shape \\(2, 3\\)"):
            fun(xp.ones((2, 3)))


@pytest.mark.parametrize("name", MATRIX)
def test_floating_matrices_are_asked_for(name: str) -> None:
    """Integers, booleans and half precision raise DTypeError, vectors ShapeError."""
    fun = getattr(la, name)
    for kind in (xp.int64, xp.bool, xp.float16):
        with pytest.raises(
            DTypeError, match=f"^{name}: x must be floating .* got {np.dtype(kind)}"
        ):
            fun(xp.ones((2, 2), dtype=kind))
    with pytest.raises(ShapeError, match=f"^{name}: x must have rank >= 2"):
        fun(xp.ones(3))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: la.cholesky(-xp.eye(2)), LinAlgError, "cholesky: x must be positive"),
        (lambda: la.inv(xp.zeros((2, 2))), LinAlgError, "inv: x is singular"),
        (lambda: la.matrix_power(xp.zeros((2, 2)), -1), LinAlgError, "matrix_power: inv"),
        (lambda: la.solve(xp.ones((2, 2)), xp.ones(2)), LinAlgError, "solve: x1 is singular"),
        (lambda: la.solve_triangular(xp.zeros((1, 1)), xp.ones(1)), LinAlgError, "solve_triang"),
        (lambda: la.eig(xp.full((2, 2), np.nan)), LinAlgError, "eig: the iteration"),
        (lambda: la.svd(xp.full((2, 2), np.nan)), LinAlgError, "svd: the iteration"),
        (lambda: la.solve(xp.eye(2), xp.ones(3)), ShapeError, "solve: x1 and x2 must"),
        (lambda: la.solve(xp.ones((2, 1, 1)), xp.ones((3, 1, 1))), ShapeError, "solve: leading"),
        (lambda: la.qr(xp.eye(2), mode="raw"), ArgumentError, "qr: mode must be"),
        (lambda: la.matrix_norm(xp.eye(2), ord=3), ArgumentError, "matrix_norm: ord must be"),
        (lambda: la.matrix_norm(xp.eye(2, dtype=xp.int8)), DTypeError, "matrix_norm: x must"),
        (lambda: la.vector_norm(xp.arange(2)), DTypeError, "vector_norm: x must"),
        (lambda: la.vector_norm(xp.ones(2), ord="fro"), ArgumentError, "vector_norm: ord must"),
        (lambda: la.vector_norm(xp.ones(2), axis=1), ShapeError, "vector_norm: axis 1 is out"),
        (lambda: la.cross(xp.ones(2), xp.ones(3)), ShapeError, "cross: axis -1 must have length 3"),
        (lambda: la.cross(xp.ones(1), xp.ones(3)), ShapeError, "cross: axis -1 must have length 3"),
        (lambda: la.diagonal(xp.ones(3)), ShapeError, "diagonal: x must have rank >= 2"),
        (lambda: xp.diag(xp.ones((1, 1, 1))), ShapeError, "diag: x must have rank 1 or 2"),
        (lambda: la.trace(xp.ones(3)), ShapeError, "trace: x must have rank >= 2"),
        (lambda: la.matrix_power(xp.ones((2, 3)), 2), ShapeError, "matrix_power: x must be square"),
        (lambda: la.matrix_power(xp.eye(2), 0.5), ArgumentError, "matrix_power: n must be an int"),
        (lambda: la.pinv(xp.ones((2, 2, 2)), rtol=xp.ones(3)), ShapeError, "pinv: rtol must fit"),
        (lambda: la.lstsq(xp.ones((2, 2, 2)), xp.ones(2)), ShapeError, "lstsq: a must be"),
    ],
)  # fmt: skip
def test_errors_name_function_and_reason(call: Any, error: Any, text: str) -> None:
    """Each mistake raises a typed error whose text begins with the function."""
    with pytest.raises(error) as caught:
        call()
    assert caught.value.what.startswith(text)
    assert isinstance(caught.value, FunctError)
    assert isinstance(caught.value, ValueError | TypeError)


def test_a_compiled_function_reports_singular_matrices() -> None:
    """What only the numbers show is the same typed error in a compiled call."""
    solve = ft.jit(la.solve)
    solve(xp.eye(2), xp.ones(2))
    with pytest.raises(LinAlgError, match="solve: x1 is singular"):
        solve(xp.ones((2, 2)), xp.ones(2))
    assert issubclass(LinAlgError, np.linalg.LinAlgError)
