"""jacfwd, jacrev, hessian, hvp and linear_transpose: layouts, dtypes and errors are JAX's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import DTypeError, TransformError, TreeError
from tests import laws

Fun = Callable[..., Any]

both = pytest.mark.parametrize("jacobian", [ft.jacfwd, ft.jacrev], ids=["jacfwd", "jacrev"])

X = np.asarray([0.4, -1.2])
Y = np.asarray([[0.5, 1.5, -0.5], [2.0, 1.0, 0.3]])
P = {"w": Y, "b": X}


def layers(p: Any, x: Any, *, scale: float = 1.0) -> Any:
    """A tree to a tree, with any of the two libraries' arrays."""
    out = x @ p["w"] * scale
    return {"y": out**2, "s": (p["b"] * x).sum()}, out * 2.0


def scalar(p: Any, x: Any) -> Any:
    return ((x @ p["w"]) ** 2 * x[0]).sum() * p["b"].sum(), x + 1.0


def same(got: Any, want: Any) -> None:
    """The same tree of arrays of the same shapes and dtypes."""
    flat = ft.tree.flatten_with_path(got)
    other = ft.tree.flatten_with_path(want)
    assert [p for p, _ in flat] == [p for p, _ in other]
    for (_, g), (_, w) in zip(flat, other, strict=True):
        assert g.shape == w.shape
        assert str(g.dtype) == str(w.dtype)
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("argnums", [0, 1, -1, (0, 1), [1, 0], (1,)], ids=str)
@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "hessian", "grad"])
def test_layouts_are_those_of_jax(name: str, argnums: Any) -> None:
    """Trees of trees of arrays, with aux beside them, for every form of argnums."""
    jax = pytest.importorskip("jax")
    fun = scalar if name in ("hessian", "grad") else layers
    with jax.enable_x64():
        p, x = jax.tree.map(jax.numpy.asarray, (P, X))
        want = getattr(jax, name)(fun, argnums, has_aux=True)(p, x)
        want = jax.tree.map(np.asarray, want)
    p, x = ft.tree.map(xp.asarray, (P, X))
    same(getattr(ft, name)(fun, argnums, has_aux=True)(p, x), want)
    same(ft.jit(getattr(ft, name)(fun, argnums, has_aux=True))(p, x), want)


@both
def test_arguments_by_name_are_passed_on(jacobian: Fun) -> None:
    """They are not differentiated; fun sees them as they are."""
    p, x = ft.tree.map(xp.asarray, (P, X))
    found, _ = jacobian(layers, 1, has_aux=True)(p, x, scale=3.0)
    laws.close(found["y"], jacobian(lambda x: (x @ p["w"] * 3.0) ** 2)(x))
    assert float(ft.hessian(lambda x, k=1.0: x**2 * k)(xp.asarray(1.0), k=4.0)) == 8.0


@both
def test_integer_inputs_are_refused(jacobian: Fun) -> None:
    """As grad does; jacrev gives Zeros under allow_int, of the Jacobian's shape."""
    tree = {"a": xp.asarray(X), "n": xp.asarray([1, 2, 3])}

    def fun(p: Any) -> Any:
        return p["a"] * 2.0 + p["n"][0]

    name = jacobian.__name__
    with pytest.raises(DTypeError, match=f"{name}: inputs .* got int64 in argument 0, leaf n"):
        jacobian(fun)(tree)
    with pytest.raises(DTypeError, match=f"{name}: inputs .* got int64 in argument 1"):
        jacobian(lambda x, n: x * n, 1)(1.0, 2)
    found = ft.jacrev(fun, allow_int=True)(tree)
    assert found["n"] == ft.Zero((2, 3), np.dtype(np.int64))
    laws.close(found["a"], xp.eye(2) * 2.0)


def test_complex_numbers() -> None:
    """f'(z) by holomorphic=True in both modes; what one mode cannot see is refused."""
    z = xp.asarray([0.3 + 0.4j, -1.0 + 0.2j])

    def cube(z: Any) -> Any:
        return z**3 * xp.flip(z)

    want = np.asarray([
        [3 * z[0] ** 2 * z[1], z[0] ** 3], [z[1] ** 3, 3 * z[1] ** 2 * z[0]],
    ]).astype(complex)  # fmt: skip
    for convention in ("torch", "jax"):
        with ft.config.using(complex_convention=convention):
            for jacobian in (ft.jacfwd, ft.jacrev):
                found = jacobian(cube, holomorphic=True)(z)
                np.testing.assert_allclose(np.asarray(found), want, rtol=1e-12)
            second = ft.hessian(lambda z: z[0] ** 3 * z[1], holomorphic=True)(z)
            expected = [[6 * z[0] * z[1], 3 * z[0] ** 2], [3 * z[0] ** 2, 0.0]]
            np.testing.assert_allclose(np.asarray(second), np.asarray(expected, complex))
    laws.close(ft.jacfwd(lambda x: xp.exp(1j * x))(xp.ones(1)), xp.asarray([[1j * np.exp(1j)]]))
    real = ft.jacrev(lambda z: xp.real(z * xp.conj(z)))(z)  # rows are gradients
    laws.close(real, xp.eye(2) * 2.0 * z)
    with pytest.raises(DTypeError, match="jacrev: results must be real, got complex128"):
        ft.jacrev(lambda x: x * 1j)(xp.ones(2))
    with pytest.raises(DTypeError, match="jacfwd: inputs must be real, got complex128"):
        ft.jacfwd(xp.real)(z)
    for jacobian in (ft.jacfwd, ft.jacrev):
        with pytest.raises(DTypeError, match="holomorphic=True the inputs must be complex"):
            jacobian(xp.sin, holomorphic=True)(xp.ones(2))
        with pytest.raises(DTypeError, match="holomorphic=True results must be complex"):
            jacobian(xp.real, holomorphic=True)(z)


@both
def test_results_without_derivatives_and_without_elements(jacobian: Fun) -> None:
    """Constants and integers have Jacobians of zeros; empty ones have empty Jacobians."""
    x = xp.asarray(X)
    laws.close(jacobian(lambda x: xp.ones(3))(x), xp.zeros((3, 2)))
    laws.close(jacobian(lambda x: 3.0)(x), xp.zeros(2))
    assert not np.asarray(jacobian(lambda x: xp.astype(x, xp.int64))(x)).any()
    assert jacobian(lambda x: x * 2.0)(xp.zeros((0, 3))).shape == (0, 3, 0, 3)
    assert float(jacobian(lambda x: x * x)(3.0)) == 6.0


def test_hvp_takes_trees_and_tuples() -> None:
    """Like the gradient it has the argument's structure, and is a tuple for several arguments."""
    p, x = ft.tree.map(xp.asarray, (P, X))

    def fun(p: Any, x: Any) -> Any:
        return scalar(p, x)[0]

    rng = np.random.default_rng(0)
    v = ft.tree.map(lambda a: xp.asarray(rng.normal(size=a.shape)), (p, x))
    found = ft.hvp(fun, (p, x), v)
    want = ft.jvp(ft.grad(fun, (0, 1)), (p, x), v)[1]
    laws.close(found, want)
    laws.close(ft.jit(lambda *a: ft.hvp(fun, *a))((p, x), v), want)
    only = ft.hvp(lambda x: fun(p, x), (x,), (v[1],))
    laws.close(only, ft.hessian(lambda x: fun(p, x))(x) @ v[1])
    for bad in ((x, (x,)), ((x,), x)):
        with pytest.raises(TreeError, match=r"hvp: .* must be a tuple .*, got Array"):
            ft.hvp(lambda x: xp.sum(x**2), *bad)
        with pytest.raises(TreeError, match=r"jvp: .* must be a tuple .*, got Array"):
            ft.jvp(xp.sin, *bad)
    with pytest.raises(TransformError, match="must return a scalar"):
        ft.hvp(lambda x: x, (x,), (x,))


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_linear_transpose_of_trees(wrap: Any) -> None:
    """⟨A x, y⟩ = ⟨x, Aᵀ y⟩ for trees on both sides, under vmap, and with tracers closed over."""
    p, x = ft.tree.map(xp.asarray, (P, X))

    def linear(p: Any, x: Any) -> Any:
        return {"a": p["w"].T @ xp.asarray(X) + p["w"][0] * 2.0, "b": (p["b"] - x)[::-1]}

    transposed = wrap(ft.linear_transpose(linear, p, x))
    out = linear(p, x)
    rng = np.random.default_rng(1)
    ct = ft.tree.map(lambda a: xp.asarray(rng.normal(size=a.shape)), out)
    back = transposed(ct)

    def inner(a: Any, b: Any) -> float:
        pairs = zip(ft.tree.leaves(a), ft.tree.leaves(b), strict=True)
        return sum(float(xp.sum(u * v)) for u, v in pairs)

    np.testing.assert_allclose(inner(out, ct), inner((p, x), back))
    stacked = ft.tree.map(lambda a: xp.stack([a, 2.0 * a]), ct)
    laws.close(ft.tree.map(lambda a: a[1] / 2.0, ft.vmap(transposed)(stacked)), back)
    slope = ft.grad(lambda w: xp.sum(ft.linear_transpose(lambda v: w * v, x)(x)[0]))
    laws.close(wrap(slope)(xp.ones(2)), x)
