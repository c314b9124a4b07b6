"""linear_transpose, complex conventions, integer inputs; threads, long chains, deep trees."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, DTypeError, ShapeError, TransformError, TreeError
from tests import laws
from tests.together import together
from tests.transforms.test_grad import arr

Z = xp.asarray(np.array([3 + 4j, 1 - 2j, -0.5j]))


def power(z: Any) -> Any:
    """A real function of complex numbers that is no norm."""
    return xp.sum(xp.abs(z) ** 2 + xp.real(z * z * z))


def test_the_convention_is_torchs_until_it_is_changed() -> None:
    """Steepest ascent, or its conjugate; in grad, value_and_grad, vjp and jacrev, nested too."""
    steepest = ft.grad(power)(Z)
    for wrap in (lambda f: f, ft.jit):
        with ft.config.using(complex_convention="jax"):
            laws.close(wrap(ft.grad(power))(Z), xp.conj(steepest))
            laws.close(wrap(ft.value_and_grad(power))(Z)[1], xp.conj(steepest))
            laws.close(
                wrap(lambda z: ft.vjp(power, z)[1](xp.asarray(1.0))[0])(Z), xp.conj(steepest)
            )
            laws.close(ft.grad(wrap(power))(Z), xp.conj(steepest))
            holomorphic = ft.grad(lambda z: xp.sum(z**3), holomorphic=True)
            laws.close(wrap(holomorphic)(Z), 3 * Z**2)
        laws.close(wrap(ft.grad(power))(Z), steepest)
    x = arr([1.0, 2.0])
    real = ft.grad(lambda x: xp.sum(x**3))
    with ft.config.using(complex_convention="jax"):
        laws.close(real(x), 3 * x**2)


def test_conventions_agree_with_their_owners() -> None:
    """The two conventions are what torch and JAX return."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    t = torch.tensor(np.asarray(Z), requires_grad=True)
    (torch.abs(t) ** 2 + torch.real(t * t * t)).sum().backward()
    np.testing.assert_allclose(np.asarray(ft.grad(power)(Z)), t.grad.numpy())
    jax = pytest.importorskip("jax", reason="jax is not installed")
    with jax.enable_x64(True):
        j = jax.numpy.asarray(np.asarray(Z))
        f = lambda z: (abs(z) ** 2 + jax.numpy.real(z * z * z)).sum()  # noqa: E731
        expected = np.asarray(jax.grad(f)(j))
        w = jax.numpy.asarray(np.array([1j, 2.0, 1 - 1j]))
        _, pull = jax.vjp(lambda z: w * z * z, j)
        pulled = np.asarray(pull(w)[0])
        transposed = np.asarray(jax.linear_transpose(lambda z: w * z, j)(w)[0])
    with ft.config.using(complex_convention="jax"):
        np.testing.assert_allclose(np.asarray(ft.grad(power)(Z)), expected)
        w = xp.asarray(np.array([1j, 2.0, 1 - 1j]))
        np.testing.assert_allclose(np.asarray(ft.vjp(lambda z: w * z * z, Z)[1](w)[0]), pulled)
    for name in ("torch", "jax"):
        with ft.config.using(complex_convention=name):
            got = ft.linear_transpose(lambda z: w * z, Z)(w)[0]
            np.testing.assert_allclose(np.asarray(got), transposed)


def test_compiled_code_knows_the_convention_it_was_made_for() -> None:
    """One jitted function serves both conventions, nested jits too; real ones compile once."""
    inner = ft.jit(ft.grad(power))
    outer = ft.jit(lambda z: inner(z) * 2.0)
    steepest = ft.grad(power)(Z)
    for _ in range(2):
        laws.close(outer(Z), 2.0 * steepest)
        with ft.config.using(complex_convention="jax"):
            laws.close(outer(Z), 2.0 * xp.conj(steepest))
    plain = ft.jit(ft.grad(lambda x: xp.sum(x * x)))
    for name in ("torch", "jax"):
        with ft.config.using(complex_convention=name):
            plain(arr([1.0]))
    assert plain.cache_info().misses == 1


def test_config_is_one_frozen_record_of_the_context() -> None:
    """Fields are read, changed for a block, restored by any exit; other threads are not touched."""
    seen: list[str] = []

    def fails() -> None:
        with ft.config.using(complex_convention="jax") as record:
            assert record.complex_convention == ft.config.complex_convention == "jax"
            thread = threading.Thread(target=lambda: seen.append(ft.config.complex_convention))
            thread.start()
            thread.join()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert seen == ["torch"]
    assert ft.config.complex_convention == "torch"
    assert repr(ft.config).startswith("config(complex_convention='torch', ")
    with pytest.raises(ArgumentError, match="config: complex_convention must be one of"):
        ft.config.complex_convention = "numpy"
    with (
        pytest.raises(ArgumentError, match="config: no field 'nothing'"),
        ft.config.using(nothing=1),
    ):
        pass
    with pytest.raises(AttributeError, match="config: no field 'nothing'"):
        _ = ft.config.nothing
    before = ft.config.record
    ft.config.complex_convention = "jax"
    try:
        laws.close(ft.grad(power)(Z), xp.conj(ft.grad(power)(Z)) * 0 + ft.grad(power)(Z))
        assert ft.config.complex_convention == "jax"
    finally:
        ft.config.complex_convention = before.complex_convention


def test_holomorphic_and_integer_inputs() -> None:
    """holomorphic=True wants complex numbers; allow_int gives Zeros at any nesting."""
    with pytest.raises(
        DTypeError, match="holomorphic=True the inputs must be complex, got float64"
    ):
        ft.grad(lambda x: x * 1j, holomorphic=True)(arr(1.0))
    d2 = ft.grad(ft.grad(lambda z: z**4, holomorphic=True), holomorphic=True)
    np.testing.assert_allclose(complex(d2(xp.asarray(1 + 1j))), 12 * (1 + 1j) ** 2)

    def f(p: Any, n: Any) -> Any:
        return xp.sum(p["x"] ** 2 * n) + xp.sum(p["k"])

    p, n = {"x": arr([1.0, 2.0]), "k": xp.asarray([1, 2, 3])}, xp.asarray(3)
    zero = ft.Zero((3,), np.dtype(np.int64))
    for g in (ft.grad(f, (0, 1), allow_int=True), ft.grad(ft.jit(f), (0, 1), allow_int=True)):
        gp, gn = g(p, n)
        laws.close(gp["x"], 6.0 * p["x"])
        assert gp["k"] == zero
        assert gn == ft.Zero((), np.dtype(np.int64))
    _, pull = ft.vjp(f, p, n)
    assert pull(xp.asarray(1.0))[0]["k"] == zero
    assert ft.grad(lambda b: xp.sum(xp.where(b, 1.0, 2.0)), allow_int=True)(
        xp.asarray([True])
    ) == ft.Zero((1,), np.dtype(bool))


A = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("compiled", [False, True])
def test_linear_transpose_is_the_adjoint_matrix(compiled: bool) -> None:
    """<y, A x> = <A^T y, x>; transposing twice gives the function back; it nests both ways."""

    def product(x: Any) -> Any:
        return arr(A) @ x

    f = ft.jit(product) if compiled else product
    v, y = arr([1.0, 0.5, 0.25]), arr([1.0, -2.0])
    transposed = ft.linear_transpose(f, ft.ShapeDtype((3,), xp.float64))
    expected = arr(A.T @ np.asarray(y))
    laws.close(transposed(y), (expected,))
    back = ft.linear_transpose(lambda y: transposed(y)[0], y)
    laws.close(back(v), (f(v),))
    laws.close(ft.grad(lambda y: xp.sum(ft.linear_transpose(f, v)(y)[0] * v))(y), f(v))
    laws.close(ft.vmap(transposed)(xp.stack([y, y]))[0], xp.stack([expected, expected]))
    laws.close(ft.jit(transposed)(y), (expected,))


SMOOTH: dict[str, Any] = {
    "product": lambda x: x * x * xp.sin(x),
    "quotient": lambda x: x / xp.linalg.vector_norm(x),
    "power": lambda x: x**3 / (1.0 + x),
    "where": lambda x: xp.where(x > 1.0, x * x * x, xp.sqrt(x)),
    "put": lambda x: x.at[1].set(x[0] * x[2]).at[xp.asarray([0, 0, 2])].add(x**2),
    "prod": lambda x: xp.prod(x) * x,
    "running product": xp.cumulative_prod,
    "softmax": lambda x: xp.special.softmax(x * x),
    "associative": lambda x: ft.associative_scan(lambda a, b: a * b, x),
    "cond": lambda x: ft.cond(xp.sum(x) > 3.0, lambda v: v * v * v, xp.sin, x),
    "solve": lambda x: xp.linalg.solve(xp.eye(3) * 4.0 + xp.linalg.outer(x, x), x),
    "cholesky": lambda x: xp.linalg.cholesky(xp.eye(3) + xp.linalg.outer(x, x))[:, 0] * x,
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_of_every_order_are_linear(name: str) -> None:
    """What `linearize` gives is transposed, of a function and of its gradients, as vjp does it."""
    x, u = (xp.asarray(v) for v in ([0.4, 1.3, 0.9], [0.5, -1.0, 2.0]))
    f = SMOOTH[name]
    for _ in range(3):
        (got,) = ft.linear_transpose(ft.linearize(f, x)[1], x)(u)
        laws.close(got, ft.vjp(f, x)[1](u)[0], 1e-9, 1e-9)
        f = ft.grad(lambda x, f=f: xp.sum(f(x) * u))


def test_linear_transpose_refuses_what_is_not_linear() -> None:
    """A constant, a product of operands, a decision on a value, an integer: each by its error."""
    t = ft.linear_transpose
    with pytest.raises(TransformError, match="not linear: its value at 0 is not 0"):
        t(lambda x: x + 1.0, arr(1.0))
    for f in (lambda x: x * x, xp.sin, lambda x: x if x < 1.0 else 2.0 * x):
        with pytest.raises(TransformError, match="not linear: its derivative depends on where"):
            t(f, arr(0.0))
    with pytest.raises(DTypeError, match="linear_transpose: inputs must be floating or complex"):
        t(lambda n: n * 2, xp.asarray(1))
    pull = t(lambda x: {"y": x * 2.0}, arr([1.0, 2.0]))
    with pytest.raises(TreeError):
        pull(arr([1.0, 2.0]))
    with pytest.raises(ShapeError):
        pull({"y": arr(1.0)})
    scale = ft.grad(lambda s: t(lambda x: x * s, arr(0.0))(arr(3.0))[0])(arr(2.0))
    assert float(scale) == 3.0


def test_sixteen_threads_differentiate_at_once() -> None:
    """Every thread gets what it would get alone, through every mechanism."""

    def f(x: Any) -> Any:
        return xp.sum(xp.sin(x) * x)

    compiled = ft.jit(ft.grad(f))
    ways: list[Callable[[Any], Any]] = [
        ft.grad(f), compiled, ft.hessian(f), ft.vmap(ft.grad(lambda v: v * v)),
        ft.grad(ft.saved_hooks(lambda v: v, lambda v: v)(f)), ft.detect_anomaly(ft.grad(f)),
        lambda x: ft.jvp(f, (x,), (x,))[1], ft.grad(lambda x: f(ft.hook(x, backward=lambda g: g))),
    ]  # fmt: skip
    x = arr([0.1, 0.2, 0.3])
    expected = [w(x * k) for k in range(16) for w in ways]

    def work(k: int) -> list[Any]:
        return [[w(x * k) for w in ways] for _ in range(5)][-1]

    found = together(16, work, turns=1e-5)
    laws.same([g for part in found for g in part], expected)


@pytest.mark.parametrize("wrap", [
    ft.detect_anomaly, ft.offload("cpu"), lambda f: ft.intercept(f, lambda p, o, k: NotImplemented),
], ids=["anomaly", "offload", "intercept"])  # fmt: skip
def test_long_chains_under_a_watch(wrap: Any) -> None:
    """Thousands of ops pass a watch, and their tape is walked, without recursion."""

    def f(x: Any) -> Any:
        for _ in range(3000):
            x = x * 1.0001
        return x

    assert float(ft.grad(wrap(f))(arr(1.0))) == pytest.approx(1.0001**3000)


def test_ten_thousand_ops() -> None:
    """vjp, its nodes, and a second derivative of a chain of ten thousand."""

    def f(x: Any) -> Any:
        for _ in range(10_000):
            x = xp.sin(x)
        return x

    _, pull = ft.vjp(f, arr(1.0))
    assert sum(1 for _ in pull.nodes()) == 10_001
    assert np.isfinite(float(ft.grad(ft.grad(f))(arr(1.0))))


def test_deep_trees_are_trees() -> None:
    """A tree nested ten thousand deep is taken by every transform: no recursion error."""
    tree: Any = arr([1.0])
    for _ in range(10_000):
        tree = [tree]
    for call in (
        lambda: ft.grad(lambda t: arr(1.0))(tree), lambda: ft.vjp(lambda t: t, tree),
        lambda: ft.jit(lambda t: t)(tree), lambda: ft.vmap(lambda t: t)(tree),
        lambda: ft.tree.leaves(tree), lambda: ft.tree.map(lambda v: v, tree),
        lambda: ft.tree.structure(tree), lambda: ft.tree.flatten_with_path(tree),
        lambda: ft.eval_shape(lambda t: t, tree), lambda: ft.make_graph(lambda t: t)(tree),
    ):  # fmt: skip
        call()
    while isinstance(tree, list):
        tree = tree.pop()
    shallow: Any = arr(1.0)
    for _ in range(500):
        shallow = {"a": shallow}
    assert ft.tree.leaves(ft.grad(lambda t: ft.tree.leaves(t)[0] * 2.0)(shallow))[0] == 2.0
