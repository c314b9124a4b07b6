"""Sparse matrices under the transforms: what a dense matrix gives, at the entries alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import DTypeError, IndexOutOfBoundsError, ShapeError
from funct.interop import CSR

sparse = pytest.importorskip("scipy.sparse", reason="SciPy is the oracle of these tests")


def _pair(dtype: Any = np.float64) -> tuple[CSR, Any]:
    a = sparse.random_array((5, 7), density=0.4, format="csr", rng=np.random.default_rng(0))
    a = a.astype(dtype)
    return CSR.from_scipy_sparse(a), a


def _normal(*shape: int) -> Any:
    return xp.asarray(np.random.default_rng(len(shape)).normal(size=shape))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128, np.int64])
@pytest.mark.parametrize("columns", [(), (1,), (4,)])
def test_products_are_those_of_scipy(dtype: Any, columns: tuple[int, ...]) -> None:
    """With vectors and matrices, of the matrix and its transpose, other dtypes promoted."""
    a, reference = _pair(dtype)
    x, y = _normal(7, *columns), _normal(5, *columns)
    np.testing.assert_allclose(np.asarray(a @ x), reference @ np.asarray(x), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(a.T @ y), reference.T @ np.asarray(y), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(a.todense()), reference.toarray())
    np.testing.assert_array_equal(np.asarray(a.T.T.todense()), reference.toarray())
    np.testing.assert_array_equal(np.asarray(a.T.todense()), reference.toarray().T)
    assert (a @ x).dtype == np.result_type(dtype, np.float64)


def test_a_dense_matrix_and_back() -> None:
    """Entries are the elements that are not 0, and carry derivatives."""
    x = xp.asarray([[0.0, 2.0, 0.0], [3.0, 0.0, -1.0]])
    a = CSR.fromdense(x)
    assert a.data.tolist() == [2.0, 3.0, -1.0]
    assert xp.all(a.todense() == x)
    assert repr(a) == "CSR((2, 3), 3 entries, float64)"
    g = ft.grad(lambda x: xp.sum(CSR.fromdense(x) @ xp.ones(3)))(x)
    assert g.tolist() == (np.asarray(x) != 0).astype(float).tolist()


def test_derivatives_are_those_of_the_dense_matrix_at_the_entries() -> None:
    """In the entries and in the other factor, in both modes, twice, and compiled."""
    a, reference = _pair()
    rows, columns = reference.nonzero()
    x, t = _normal(7, 3), _normal(5, 3)

    def of_entries(d: Any) -> Any:
        return xp.sum(xp.tanh(CSR(d, a.indices, a.indptr, a.shape) @ x) * t)

    def of_dense(m: Any) -> Any:
        return xp.sum(xp.tanh(m @ x) * t)

    m = xp.asarray(reference.toarray())
    expected = np.asarray(ft.grad(of_dense)(m))[rows, columns]
    for f in (of_entries, ft.jit(of_entries)):
        np.testing.assert_allclose(np.asarray(ft.grad(f)(a.data)), expected, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(ft.jacfwd(of_entries)(a.data)), expected, rtol=1e-12)
    h = np.asarray(ft.hessian(of_dense)(m))[rows, columns][:, rows, columns]
    np.testing.assert_allclose(np.asarray(ft.hessian(of_entries)(a.data)), h, rtol=1e-10)
    for b in (a, a.T):
        v = _normal(b.shape[1])
        pull = ft.grad(lambda v, b=b: xp.sum((b @ v) ** 2))(v)
        dense = np.asarray(b.todense())
        np.testing.assert_allclose(np.asarray(pull), 2 * dense.T @ dense @ np.asarray(v))
    whole = ft.grad(lambda a: xp.sum(a @ x * t), allow_int=True)(a)
    assert isinstance(whole, CSR)
    full = np.asarray(t) @ np.asarray(x).T
    np.testing.assert_allclose(np.asarray(whole.data), full[rows, columns])


def test_batches() -> None:
    """Over entries, over the other factor, over both, and over matrices of other places."""
    a, _ = _pair()
    data, x = _normal(4, a.data.shape[0]), _normal(4, 7, 2)

    def product(d: Any, x: Any) -> Any:
        return CSR(d, a.indices, a.indptr, a.shape) @ x

    def back(d: Any, x: Any) -> Any:
        return CSR(d, a.indices, a.indptr, a.shape).T @ (x[:5] * 2.0)

    for f in (product, back):
        for axes in ((0, 0), (None, 0), (0, None)):
            args = tuple(v if k == 0 else v[0] for v, k in zip((data, x), axes))
            lanes = [f(*[v[i] if k == 0 else v for v, k in zip(args, axes)]) for i in range(4)]
            for g in (f, ft.jit(f)):
                y = ft.vmap(g, in_axes=axes)(*args)
                np.testing.assert_allclose(np.asarray(y), np.stack([np.asarray(v) for v in lanes]))
    indices = xp.asarray([[0, 1], [2, 0]])
    indptr = xp.asarray([[0, 1, 2], [0, 2, 2]])
    y = ft.vmap(lambda d, i, p: CSR(d, i, p, (2, 3)).todense())(_normal(2, 2), indices, indptr)
    assert np.flatnonzero(np.asarray(y)).tolist() == [0, 4, 6, 8]


def test_what_is_no_matrix_is_refused() -> None:
    """By the leaf's name, what it should be, and what it is."""
    with pytest.raises(ShapeError, match="as many indices as entries"):
        CSR(xp.ones(3), [0, 1], [0, 1, 2], (2, 3))
    with pytest.raises(ShapeError, match="a start for each row"):
        CSR(xp.ones(2), [0, 1], [0, 2], (2, 3))
    with pytest.raises(ShapeError, match="data must be 1-D"):
        CSR(xp.ones((1, 2)), [0, 1], [0, 1, 2], (2, 3))
    with pytest.raises(DTypeError, match="indices"):
        CSR(xp.ones(2), [0.0, 1.0], [0, 1, 2], (2, 3))
    a, _ = _pair()
    with pytest.raises(ShapeError, match="needs x"):
        a @ xp.ones(5)
    with pytest.raises(IndexOutOfBoundsError, match="sparse"):
        CSR(xp.ones(2), [0, 3], [0, 1, 2], (2, 3)) @ xp.ones(3)
