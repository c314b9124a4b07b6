"""Derivatives of `xp.linalg`: the laws, torch and JAX, and the conventions where there are none."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from tests import laws

la = xp.linalg


def matrix(seed: int, *shape: int, unit: complex = 0.0) -> Any:
    """A well-conditioned matrix with separated singular values; complex where unit is 1j."""
    rng = np.random.default_rng(seed)
    x = 0.3 * rng.normal(size=shape)
    if unit:
        x = x + unit * 0.3 * rng.normal(size=shape)
    return xp.asarray(x + np.eye(*shape[-2:]) * np.arange(2.0, 2.0 + shape[-1]))


def gram(x: Any) -> Any:
    """x xᴴ + 1, positive definite."""
    return x @ xp.conj(xp.matrix_transpose(x)) + xp.eye(x.shape[-2], dtype=x.dtype)


def projector(v: Any) -> Any:
    """What does not depend on the basis v of a space."""
    return v @ xp.conj(xp.matrix_transpose(v))


X, Y = matrix(0, 3, 3), matrix(1, 3, 3)
TALL, WIDE, STACK = matrix(2, 4, 2), matrix(3, 2, 4), matrix(4, 2, 2, 2)
COMPLEX, CTALL = matrix(5, 3, 3, unit=1j), matrix(6, 4, 2, unit=1j)
VECTOR = xp.asarray([0.5, -1.5, 2.0])

CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "cholesky upper": (lambda x: la.cholesky(gram(x), upper=True), (X,)),
    "cholesky complex": (lambda x: la.cholesky(gram(x)), (COMPLEX,)),
    "solve": (la.solve, (X, Y)),
    "solve vector": (la.solve, (STACK, xp.asarray([1.0, -2.0]))),
    "solve_triangular": (lambda a, b: la.solve_triangular(a, b, lower=True), (X, VECTOR)),
    "solve_triangular stack": (la.solve_triangular, (STACK, xp.asarray([[1.0], [2.0]]))),
    "lstsq tall": (lambda a, b: la.lstsq(a, b)[:2], (TALL, matrix(7, 4, 2))),
    "lstsq wide": (lambda a, b: la.lstsq(a, b).solution, (WIDE, xp.asarray([1.0, 2.0]))),
    "lstsq complex": (lambda a, b: la.lstsq(a, b)[:2], (CTALL, matrix(8, 4, 1, unit=1j))),
    "pinv": (la.pinv, (TALL,)),
    "pinv deficient": (lambda a, b: la.pinv(a @ b, rtol=1e-9), (TALL, WIDE)),
    "matrix_power": (lambda x: la.matrix_power(x / 3, 5), (X,)),
    "matrix_power negative": (lambda x: la.matrix_power(x, -3), (X,)),
    "matrix_power none": (lambda x: la.matrix_power(x, 0) * x, (X,)),
    "trace": (lambda x: la.trace(x, offset=1), (TALL,)),
    "diagonal": (lambda x: la.diagonal(x, offset=-1) ** 2, (STACK,)),
    "cross": (la.cross, (X, VECTOR)),
    "expm": (la.expm, (X / 3,)),
    "slogdet": (lambda x: la.slogdet(x).logabsdet, (STACK,)),
    "slogdet complex": (lambda x: tuple(la.slogdet(x)), (COMPLEX,)),
    "svd rebuilt": (lambda x: (lambda r: r.U[:, :2] * r.S @ r.Vh)(la.svd(x)), (TALL,)),
    "svd space": (lambda x: projector(la.svd(x).U[:, 2:]), (TALL,)),
    "svd space complex": (lambda x: projector(la.svd(x).U[:, 2:]), (CTALL,)),
    "svd wide space": (
        lambda x: projector(xp.matrix_transpose(la.svd(x).Vh[2:, :])), (WIDE,),
    ),
    "svd polar": (lambda x: (lambda r: r.U @ r.Vh)(la.svd(x, full_matrices=False)), (CTALL,)),
    "qr space": (lambda x: projector(la.qr(x, mode="complete").Q[:, 2:]), (TALL,)),
    "qr space complex": (lambda x: projector(la.qr(x, mode="complete").Q[:, 2:]), (CTALL,)),
    "qr wide": (lambda x: tuple(la.qr(x, mode="complete")), (WIDE,)),
    "eigh function": (
        lambda x: (lambda r: r[1] * xp.exp(r[0]) @ xp.conj(r[1].T))(la.eigh(x + xp.conj(x.T))),
        (COMPLEX,),
    ),
    "eig function": (
        lambda x: (lambda r: xp.real(r[1] * xp.exp(r[0]) @ la.inv(r[1])))(la.eig(x)), (X,),
    ),
    "lu solve": (lambda x: (lambda r: r.U @ r.L)(la.lu(x)), (X,)),
    **{
        f"vector_norm {order}": (lambda x, k=order: la.vector_norm(x, ord=k, axis=-1), (X,))
        for order in (np.inf, -np.inf, 1, 2, 3, 0.5, -1.5)
    },
    "vector_norm complex": (lambda x: la.vector_norm(x, ord=3), (COMPLEX,)),
    **{
        f"matrix_norm {order}": (lambda x, k=order: la.matrix_norm(x, ord=k), (STACK,))
        for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    },
    "matrix_norm complex": (lambda x: la.matrix_norm(x, ord="nuc", keepdims=True), (CTALL,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_laws(name: str, rng: np.random.Generator) -> None:
    """Differences agree to second order; vmap equals a loop; jit, grad and vmap commute,
    in every fifth order in the next case.
    """
    fun, args = CASES[name]
    laws.check_derivatives(fun, args, rng)
    laws.check_batch(fun, args, rng)
    laws.check_jit(fun, args)
    if "function" not in name:
        laws.check_nesting(fun, args, rng, 1e-7, turn=[*CASES].index(name))


PEERS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "cholesky": (lambda ns, la, x: la.cholesky(x @ ns.conj(x.mT) + ns.eye(3)), (3, 3)),
    "det": (lambda ns, la, x: la.det(x), (2, 3, 3)),
    "slogdet": (lambda ns, la, x: la.slogdet(x)[1], (2, 3, 3)),
    "inv": (lambda ns, la, x: la.inv(x), (3, 3)),
    "pinv": (lambda ns, la, x: la.pinv(x), (3, 2)),
    "eigh": (lambda ns, la, x: ns.abs(la.eigh(x + ns.conj(x.mT))[1]), (3, 3)),
    "eigvalsh": (lambda ns, la, x: la.eigvalsh(x + ns.conj(x.mT)), (2, 3, 3)),
    "eigvals": (lambda ns, la, x: ns.real(la.eigvals(x)), (3, 3)),
    "svd": (lambda ns, la, x: ns.abs(la.svd(x, full_matrices=False)[0]), (3, 2)),
    "svdvals": (lambda ns, la, x: la.svdvals(x), (2, 3)),
    "qr": (lambda ns, la, x: ns.abs(la.qr(x)[1]), (3, 2)),
    "matrix_norm": (lambda ns, la, x: la.matrix_norm(x, ord="nuc"), (2, 3)),
    "vector_norm": (lambda ns, la, x: la.vector_norm(x, ord=3), (2, 3)),
    "matrix_power": (lambda ns, la, x: la.matrix_power(x, 3), (3, 3)),
    "solve": (lambda ns, la, x: la.solve(x, ns.ones((3, 2), dtype=x.dtype)), (3, 3)),
    "cross": (lambda ns, la, x: la.cross(x, x * x), (2, 3)),
}


def peer_input(name: str, complex_too: bool) -> Any:
    """The matrix on which we and a peer differentiate."""
    shape = PEERS[name][1]
    x = laws.raw(matrix(11, *shape, unit=1j if complex_too else 0.0))
    return np.asarray(x)


def gradient(name: str, x: Any) -> Any:
    """Our gradient of a weighted sum."""
    fun = PEERS[name][0]

    def scalar(v: Any) -> Any:
        out = fun(xp, la, v)
        return xp.sum(
            xp.real(out) * xp.cos(xp.reshape(xp.arange(out.size, dtype="float64"), out.shape))
        )

    return laws.raw(ft.grad(scalar)(xp.asarray(x)))


REAL_PEERS = ("matrix_power", "cross")  # holomorphic, and nothing new
EACH = [(n, c) for n in PEERS for c in ((False,) if n in REAL_PEERS else (False, True))]


@pytest.mark.parametrize(("name", "complex_too"), EACH)
def test_gradients_equal_torch(name: str, complex_too: bool) -> None:
    """Gradients of real and complex functions are torch's."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.tensor(peer_input(name, complex_too), requires_grad=True)
    out = PEERS[name][0](torch, torch.linalg, x)
    weights = torch.cos(torch.arange(out.numel(), dtype=torch.float64)).reshape(out.shape)
    torch.sum(torch.real(out) * weights).backward()
    np.testing.assert_allclose(
        gradient(name, peer_input(name, complex_too)), x.grad.numpy(), rtol=1e-8, atol=1e-9
    )


@pytest.mark.parametrize(
    ("name", "complex_too"), [("eigh", False), ("svd", False), ("qr", False), ("slogdet", True)]
)
def test_gradients_equal_jax(name: str, complex_too: bool) -> None:
    """Gradients are JAX's, conjugated where complex; it compiles, so a few do."""
    jax = pytest.importorskip("jax", reason="jax is not installed")
    with jax.enable_x64(True):
        jnp = jax.numpy

        def scalar(v: Any) -> Any:
            out = PEERS[name][0](jnp, jnp.linalg, v)
            return jnp.sum(
                jnp.real(out) * jnp.cos(jnp.arange(out.size, dtype="float64").reshape(out.shape))
            )

        expected = np.conj(np.asarray(jax.grad(scalar)(peer_input(name, complex_too))))
    np.testing.assert_allclose(
        gradient(name, peer_input(name, complex_too)), expected, rtol=1e-8, atol=1e-9
    )


def orthogonal(seed: int, n: int) -> Any:
    """A random orthogonal matrix."""
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]


def finite(*values: Any) -> None:
    """No element is infinite or NaN."""
    for v in values:
        assert np.all(np.isfinite(laws.raw(v)))


def spectra(n: int) -> list[Any]:
    """Symmetric matrices whose spectra are degenerate in every way."""
    q = orthogonal(0, n)
    return [
        np.zeros((n, n)), np.eye(n), np.diag([1.0] * (n - 1) + [2.0]),
        q @ np.diag([0.0] * (n - 1) + [1.0]) @ q.T, q @ np.diag([3.0] * (n - 1) + [-3.0]) @ q.T,
    ]  # fmt: skip


@pytest.mark.parametrize("k", range(5))
@pytest.mark.parametrize("unit", [0.0, 1j])
def test_degenerate_spectra_have_finite_derivatives(k: int, unit: complex) -> None:
    """Vectors and values of eigh, svd and svdvals: first and second derivatives are finite."""
    x = xp.asarray(spectra(3)[k] + unit * np.zeros((3, 3)))
    rng = np.random.default_rng(1)
    w = [laws.noise(rng, x) for _ in range(2)]
    d = xp.asarray(rng.normal(size=3))
    functions = {
        "eigh": lambda v: xp.sum(xp.real(la.eigh(v)[1] * w[0])) + xp.sum(la.eigh(v)[0] ** 2 * d),
        "svd": lambda v: (lambda r: xp.sum(xp.real(r.U * w[0] + r.Vh * w[1])) + xp.sum(r.S * d))(
            la.svd(v)
        ),
        "values": lambda v: xp.sum(la.svdvals(v) ** 2 * d) + xp.sum(la.eigvalsh(v) * d),
        "nuc": lambda v: la.matrix_norm(v, ord="nuc") + la.matrix_norm(v, ord=2),
        "pinv": lambda v: xp.sum(xp.real(la.pinv(v, rtol=1e-9) * w[0])),
        "det": lambda v: xp.real(la.det(v)),
    }
    for fun in functions.values():
        g = ft.grad(fun)(x)
        finite(g, ft.jvp(fun, (x,), (w[1],))[1])
        finite(ft.jvp(ft.grad(fun), (x,), (w[1],))[1])
        finite(ft.grad(lambda v, f=fun: xp.sum(xp.real(ft.grad(f)(v) * w[0])))(x))


@pytest.mark.parametrize("k", range(5))
def test_sums_over_a_degenerate_spectrum_are_exact(k: int) -> None:
    """Gradients of trace-like functions are exact where eigenvalues or singular values agree."""
    a = spectra(3)[k]
    x = xp.asarray(a)
    laws.close(ft.grad(lambda v: xp.sum(la.eigvalsh(v) ** 3))(x), 3 * a @ a, 1e-12, 1e-12)
    laws.close(ft.grad(lambda v: xp.sum(la.eigh(v)[0] ** 3))(x), 3 * a @ a, 1e-12, 1e-12)
    laws.close(ft.grad(lambda v: xp.sum(la.svdvals(v) ** 2))(x), 2 * a, 1e-12, 1e-12)
    if k in (1, 2, 4):  # regular: the nuclear norm is smooth, its gradient the polar factor
        s, v = np.linalg.eigh(a)
        polar = v * np.sign(s) @ v.T
        laws.close(ft.grad(lambda v: la.matrix_norm(v, ord="nuc"))(x), polar, 1e-12, 1e-12)


def test_the_polar_factor_turns_exactly_where_singular_values_agree(
    rng: np.random.Generator,
) -> None:
    """U Vh has the derivative that differences show, at a multiple of an orthogonal matrix too."""

    def polar(x: Any) -> Any:
        u, _, vh = la.svd(x)
        return u @ vh

    x = xp.asarray(2 * orthogonal(3, 3))
    laws.check_derivatives(polar, [x], rng, order=1)
    laws.check_derivatives(lambda v: la.matrix_norm(v, ord="nuc"), [x], rng, order=2)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
@pytest.mark.parametrize("unit", [0.0, 1j])
def test_det_is_exact_at_every_rank(rank: int, unit: complex, rng: np.random.Generator) -> None:
    """det is a polynomial: three derivatives agree with differences for singular matrices too."""
    left, right = (laws.raw(matrix(k, 3, 3, unit=unit)) for k in (21, 22))
    x = xp.asarray(left[:, :rank] @ right[:rank])
    laws.check_derivatives(la.det, [x], rng)
    weights = laws.noise(rng, x)
    laws.check_derivatives(
        lambda v: ft.grad(lambda u: xp.real(la.det(u) * (1 - 2j * (unit != 0))))(v) * weights,
        [x],
        rng,
    )


def test_norms_have_derivative_0_at_0() -> None:
    """Every norm of 0 has gradient 0 and Hessian 0: no NaN, and 0 is a subgradient."""
    for kind in ("float64", "complex128"):
        x = xp.zeros((2, 3), dtype=kind)
        norms = [
            lambda v, k=k: la.vector_norm(v, ord=k) for k in (0, 0.5, 1, 2, 3, np.inf, -np.inf, -1)
        ]
        norms += [
            lambda v, k=k: la.matrix_norm(v, ord=k)
            for k in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
        ]
        for norm in norms:
            found = ft.grad(norm)(x)
            assert found.dtype == kind
            laws.same(xp.abs(found), np.zeros((2, 3)))
            push = ft.jvp(ft.grad(norm), (x,), (xp.ones((2, 3), dtype=kind),))[1]
            laws.same(xp.abs(push), np.zeros((2, 3)))


def test_a_deviation_that_is_0_has_derivative_0() -> None:
    """std and nanstd of what does not vary: no NaN at first or second order, compiled or not."""
    x = xp.asarray([[1.0, 1.0, 1.0], [0.5, 2.0, 1.0]])
    for std in (xp.std, xp.nanstd):
        f = lambda v, std=std: xp.sum(std(v, axis=1))  # noqa: E731
        for g in (ft.grad(f), ft.jit(ft.grad(f))):
            laws.close(g(x)[0], np.zeros(3))
            laws.close(g(x)[1], (x[1] - xp.mean(x[1])) / (3.0 * xp.std(x[1])))
        second = ft.hessian(f)(x)
        laws.same(second[0], np.zeros((3, 2, 3)))
        assert np.isfinite(np.asarray(second)).all()


def test_elements_that_are_0_do_not_spoil_a_norm() -> None:
    """A zero element has derivative 0 in every order, the others keep theirs."""
    x = xp.asarray([0.0, 3.0, -4.0])
    laws.close(ft.grad(la.vector_norm)(x), np.asarray([0, 0.6, -0.8]))
    for order in (0.5, 1.5, 3):
        alone = ft.grad(lambda v, k=order: la.vector_norm(v, ord=k))(x[1:])
        laws.close(
            ft.grad(lambda v, k=order: la.vector_norm(v, ord=k))(x),
            np.asarray([0.0, *laws.raw(alone)]),
        )


def test_slogdet_of_a_singular_matrix() -> None:
    """The derivative is NaN, not an error; a lane that where leaves out is untouched."""
    x = xp.asarray(np.stack([np.eye(2), np.ones((2, 2))]))
    g = laws.raw(ft.grad(lambda v: xp.sum(la.slogdet(v).logabsdet))(x))
    np.testing.assert_array_equal(g[0], np.eye(2))
    assert np.all(np.isnan(g[1]))

    def regular_only(v: Any) -> Any:
        size = la.slogdet(v).logabsdet
        return xp.sum(xp.where(size > -1e9, size, 0.0))

    laws.same(ft.grad(regular_only)(x), np.stack([np.eye(2), np.zeros((2, 2))]))


def test_hermitian_functions_have_hermitian_gradients() -> None:
    """cholesky, eigh and eigvalsh see the Hermitian part, so their gradients are Hermitian."""
    x = gram(COMPLEX)
    weights = laws.noise(np.random.default_rng(0), x)
    functions = (la.cholesky, lambda v: la.eigh(v)[1], lambda v: v * la.eigvalsh(v)[0])
    for fun in functions[:2]:
        g = ft.grad(lambda v, f=fun: xp.sum(xp.real(f(v) * weights)))(x)
        laws.close(g, np.conj(laws.raw(g).T))


def test_symbolic_sizes_serve_stacks() -> None:
    """A compiled gradient serves stacks of every length with two compilations."""
    compiled = ft.jit(ft.grad(lambda v: xp.sum(la.slogdet(v @ v + xp.eye(2)).logabsdet)))
    for n in (2, 3, 5, 7):
        x = matrix(n, n, 2, 2)
        laws.close(
            compiled(x), ft.grad(lambda v: xp.sum(la.slogdet(v @ v + xp.eye(2)).logabsdet))(x)
        )
    assert compiled.cache_info().misses <= 2


SINGLE: dict[str, Any] = {
    "cholesky": lambda v: la.cholesky(gram(v)),
    "det": la.det,
    "eigh": lambda v: la.eigh(v)[1],
    "eigvals": la.eigvals,
    "expm": lambda v: la.expm(v / 4),
    "inv": la.inv,
    "lstsq": lambda v: la.lstsq(v, v[:, :2] * 2)[0],
    "lu": lambda v: la.lu(v).U,
    "pinv": la.pinv,
    "qr": lambda v: la.qr(v, mode="complete").Q,
    "slogdet": lambda v: la.slogdet(v).logabsdet,
    "svd": lambda v: la.svd(v).U,
    "vector_norm": lambda v: la.vector_norm(v, ord=2.5),
}


@pytest.mark.parametrize("kind", ["float32", "complex64"])
@pytest.mark.parametrize("name", SINGLE)
def test_single_precision_stays(name: str, kind: str) -> None:
    """Values and gradients of single precision are single, and near those of double."""
    fun = SINGLE[name]
    exact = COMPLEX if kind == "complex64" else X
    x = xp.astype(exact, kind)

    def scalar(v: Any) -> Any:
        return xp.sum(xp.real(fun(v)) ** 2)

    double = "complex128" if "complex" in str(fun(exact).dtype) else "float64"
    assert fun(x).dtype == (xp.complex64 if double == "complex128" else xp.float32)

    def size(v: Any) -> Any:
        return xp.sum(xp.abs(ft.grad(scalar)(v)) ** 2)

    for derivative in (ft.grad(scalar), ft.grad(size)):
        got = derivative(x)
        assert got.dtype == np.dtype(kind)
        expected = laws.raw(derivative(exact))
        np.testing.assert_allclose(
            got, expected, rtol=1e-2, atol=1e-3 * (1 + np.abs(expected).max())
        )


def test_equal_eigenvalues() -> None:
    """What decisions/0013 says: sums over the spectrum are right, functions of matrices are not,
    unless they have a room of their own.
    """
    x = xp.asarray(np.diag([1.0, 1.0, 2.0]))
    weights = xp.asarray(np.arange(9.0).reshape(3, 3) + np.eye(3))
    g = ft.grad(lambda v: xp.sum(xp.exp(la.eigh(v)[0])))(x)
    laws.close(g, np.diag(np.exp([1.0, 1.0, 2.0])))

    def upper(v: Any) -> Any:
        vectors = la.eigh(v)[1][:, :2]
        return xp.sum(vectors @ vectors.mT * weights)

    raw = laws.raw(weights)
    expected = np.zeros((3, 3))
    expected[:2, 2] = expected[2, :2] = -(raw[:2, 2] + raw[2, :2]) / 2
    laws.close(ft.grad(upper)(x), expected)

    def exponential(v: Any) -> Any:
        w, vectors = la.eigh(v)
        return xp.sum((vectors * xp.exp(w)) @ vectors.mT * weights)

    found = laws.raw(ft.grad(exponential)(x))
    exact = laws.raw(ft.grad(lambda v: xp.sum(la.expm((v + v.mT) / 2) * weights))(x))
    off = np.zeros((3, 3), bool)
    off[0, 1] = off[1, 0] = True
    np.testing.assert_allclose(found[~off], exact[~off], 1e-12)
    np.testing.assert_array_equal(found[off], 0)
    np.testing.assert_allclose(exact[off], np.e * (raw[0, 1] + raw[1, 0]) / 2, 1e-12)
