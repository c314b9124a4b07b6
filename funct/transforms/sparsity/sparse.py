"""Sparse Jacobians and Hessians: few products with vectors give all entries.

`dependence` says which entries there are; a colouring says which columns (or rows) have no entry in
common, so that one product serves all of a colour; the entries are read off the products.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from funct import ops, pytree
from funct.array import Array, asarray
from funct.errors import ConcretizationError, DTypeError, ShapeError, TransformError, TreeError
from funct.kernels.linalg.colouring import column_colours, star_colours, star_readings
from funct.kernels.linalg.sparse import coo, pattern_of, places, turned, union
from funct.ops.fast import wrap
from funct.ops.refusals import finding_room
from funct.transforms.forward import jvp
from funct.transforms.given import expect_functions
from funct.transforms.grad import grad
from funct.transforms.recipes import noted
from funct.transforms.sparsity.dependence import dependence
from funct.transforms.vjp import vjp
from funct.transforms.vmap import vmap

__all__ = ["sparse_hessian", "sparse_jacobian"]

_MOST = 1 << 24  # elements of the products that are held at a time


def sparse_jacobian(
    fun: Callable[..., Any], argnums: int = 0, *, sparsity: Any = None
) -> Callable[..., Any]:
    """The Jacobian of a function from one array to one array, as a sparse matrix.

    The places that can be other than zero are found by following, through every op, which inputs an
    element depends on. Columns that share no row are computed by one push together, or rows that
    share no column by one pull, whichever takes fewer.

    Args: argnums: the argument to differentiate, one real floating array. sparsity: a SciPy sparse
    matrix whose entries cover the places (an earlier result, say): nothing is followed then.
    Returns: fun's signature -> `scipy.sparse.coo_array` (out.size, x.size); both sides count their
    elements in C order. Entries stand in C order; those that happen to be 0 at x are among them.
    Raises: TreeError, DTypeError, ConcretizationError: when the argument is no such array, or is
    traced: the result is SciPy's. ShapeError: when sparsity has another shape.
    Notes: the pattern does not depend on the values of x, except where Python does: in the branches
    that are taken and the elements that are indexed.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> jacobian = ft.sparse_jacobian(lambda x: x[1:] * x[:-1])(xp.asarray([1.0, 2.0, 3.0]))
        >>> jacobian.nnz, jacobian.toarray().tolist()
        (4, [[2.0, 1.0, 0.0], [0.0, 3.0, 2.0]])

    Source: Gebremedhin, Manne, Pothen, "What color is your Jacobian?" (2005).
    """
    expect_functions("sparse_jacobian", fun=fun)

    def run(*args: Any, **kwargs: Any) -> Any:
        x, free = _one_argument("sparse_jacobian", fun, argnums, args, kwargs)
        rows, columns, out = _places("sparse_jacobian", free, x, sparsity)
        shape = (prod(out.shape), prod(x.shape))
        if not len(rows):
            return coo(np.zeros(0, out.dtype), rows, columns, shape)
        pushed = column_colours(rows, columns, shape)
        pulled = column_colours(columns, rows, shape[::-1])
        if pushed.max() <= pulled.max() or out.dtype.kind == "c":
            products = _pushes(free, x, pushed, shape[0])
            return coo(products[pushed[columns], rows], rows, columns, shape)
        pull = vjp(free, x)[1]
        products = _by_colour(lambda ct: pull(ct)[0], pulled, out, shape[1])
        return coo(products[pulled[rows], columns], rows, columns, shape)

    run.__name__ = f"sparse_jacobian({getattr(fun, '__name__', 'fun')})"
    return noted(run, sparse_jacobian, (fun, argnums), "sparsity", sparsity)


def sparse_hessian(
    fun: Callable[..., Any], argnums: int = 0, *, sparsity: Any = None
) -> Callable[..., Any]:
    """The second derivatives of a function from one array to a number, as a sparse matrix.

    Columns are computed together by forward over reverse mode: those of one colour of a star
    colouring, which reads each entry or the one opposite to it, or of a colouring of the columns.

    Args, Raises, Notes: as `sparse_jacobian`. The matrix is taken to be symmetric, which rules of
    the user's own that are no derivatives could break.
    Returns: fun's signature -> `scipy.sparse.coo_array` (x.size, x.size), both halves.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> chain = ft.sparse_hessian(lambda x: xp.sum((x[1:] - x[:-1]) ** 2))
        >>> chain(xp.ones(3)).toarray().tolist()
        [[2.0, -2.0, 0.0], [-2.0, 4.0, -2.0], [0.0, -2.0, 2.0]]

    Source: Coleman, Moré, "Estimation of sparse Hessian matrices" (1984).
    """
    expect_functions("sparse_hessian", fun=fun)

    def run(*args: Any, **kwargs: Any) -> Any:
        x, free = _one_argument("sparse_hessian", fun, argnums, args, kwargs)
        slope = grad(free)
        rows, columns, out = _places("sparse_hessian", slope, x, sparsity, symmetric=True)
        n = prod(x.shape)
        if not len(rows):
            return coo(np.zeros(0, out.dtype), rows, columns, (n, n))
        star, plain = star_colours(rows, columns, n), column_colours(rows, columns, (n, n))
        if star.max() < plain.max():
            at = star_readings(rows, columns, star)
            return coo(_pushes(slope, x, star, n)[at], rows, columns, (n, n))
        products = _pushes(slope, x, plain, n)
        return coo(products[plain[columns], rows], rows, columns, (n, n))

    run.__name__ = f"sparse_hessian({getattr(fun, '__name__', 'fun')})"
    return noted(run, sparse_hessian, (fun, argnums), "sparsity", sparsity)


def _one_argument(
    name: str, fun: Callable[..., Any], argnums: int, args: tuple[Any, ...], kwargs: Any
) -> tuple[Any, Callable[[Any], Any]]:
    """The argument as an array, and fun as a function of it."""
    if not isinstance(argnums, int):
        raise TransformError(f"{name}: argnums must be one int, got {argnums!r}")
    if not -len(args) <= argnums < len(args):
        raise TransformError(f"{name}: argnums names argument {argnums}, the call has {len(args)}")
    at = argnums % len(args)
    x = _one_array(name, f"argument {at}", args[at])
    if x.__class__ is not Array:
        raise ConcretizationError(
            f"{name}: argument {at} is traced, and the result is a matrix of SciPy, which is not",
            fix="use jacfwd, jacrev or hessian inside of other transforms",
        )
    if x.dtype.kind != "f":
        raise DTypeError(f"{name}: argument {at} must be real floating, got {x.dtype}")

    def free(v: Any) -> Any:
        return fun(*args[:at], v, *args[at + 1 :], **kwargs)

    free.__name__ = getattr(fun, "__name__", "fun")
    return x, free


def _one_array(name: str, what: str, x: Any) -> Any:
    leaves = pytree.leaves(x)
    if len(leaves) != 1 or leaves[0] is not x:
        raise TreeError(
            f"{name}: {what} must be one array, got {type(x).__name__}",
            fix="concatenate the parts into one array, and cut it inside of the function",
        )
    return asarray(x)


def _places(
    name: str, fun: Callable[[Any], Any], x: Any, sparsity: Any, *, symmetric: bool = False
) -> tuple[Any, Any, Any]:
    """Rows and columns that may be other than zero, and an array like the result."""
    if sparsity is None:
        with finding_room(name):
            out, found = dependence(name, fun, x)
        out = _one_array(name, "the result", out)
    else:
        out, found = _one_array(name, "the result", fun(x)), sparsity
        shape = (prod(out.shape), prod(x.shape))
        if tuple(found.shape) != shape:
            raise ShapeError(f"{name}: sparsity must have shape {shape}, got {found.shape}")
        found = pattern_of(found)
    if symmetric:
        found = union(found, turned(found))
    return *places(found), out


def _pushes(fun: Callable[[Any], Any], x: Any, colours: Any, size: int) -> Any:
    return _by_colour(lambda t: jvp(fun, (x,), (t,))[1], colours, x, size)


def _by_colour(product: Callable[[Any], Any], colours: Any, like: Any, size: int) -> Any:
    """product for the sum of the unit vectors of each colour: (colours, elements of the result)."""
    count = int(colours.max()) + 1
    seeds = np.zeros((count, prod(like.shape)), like.dtype)
    used = np.flatnonzero(colours >= 0)
    seeds[colours[used], used] = 1
    chunk = max(1, _MOST // max(seeds.shape[1], size))
    found = vmap(product, chunk_size=chunk)(wrap(seeds.reshape(count, *like.shape)))
    return ops.reshape(found, (count, prod(found.shape[1:]))).concrete()
