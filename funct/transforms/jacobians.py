"""Jacobians of both modes, and second derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from funct import ops, pytree
from funct.array import Tensor, asarray, eye, ones, reshape, zeros
from funct.array.trees import flat_arrays
from funct.core import INEXACT, Size
from funct.errors import DTypeError
from funct.transforms.forward import as_tuple, jvp
from funct.transforms.given import argument_numbers, arguments, expect_functions
from funct.transforms.grad import grad, written
from funct.transforms.recipes import noted
from funct.transforms.vjp import Zero, in_convention, vjp
from funct.transforms.vmap import vmap

__all__ = ["hessian", "hvp", "jacfwd", "jacrev"]


def _basis(x: Any) -> Any:
    """The unit vectors of x's space, one per row."""
    n = prod(x.shape)
    if isinstance(n, Size):
        count = ops.cumulative_sum(ones((n,), dtype=np.int64), 0)
        unit = ops.astype(ops.equal(reshape(count, (n, 1)), count), x.dtype)
        return reshape(unit, (n, *x.shape))
    return written(reshape(eye(n, dtype=x.dtype), (n, *x.shape)), x)


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The Jacobian by reverse mode: one pull per element of the output, under vmap.

    Args: argnums, has_aux, holomorphic, allow_int: as `grad`.
    Returns: out's structure of the argument's structure of arrays (*out shape, *in shape).
    Raises: DTypeError: for integer inputs; for complex results unless holomorphic, since one pull
    sees their real part alone.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.jacrev(lambda p: p["w"] * 3.0)({"w": xp.asarray([1.0, 2.0])})["w"].tolist()
        [[3.0, 0.0], [0.0, 3.0]]
    """
    expect_functions("jacrev", fun=fun)

    def run(*args: Any, **kwargs: Any) -> Any:
        single, free, picked = _free(fun, argnums, args, kwargs, "jacrev")
        _check_inputs("jacrev", argnums, args, picked, holomorphic, allow_int)
        out, pull, *aux = vjp(free, *picked, has_aux=has_aux)
        outs, structure = pytree.flatten(out)
        spec = pytree.structure(picked)
        _check_results("jacrev", outs, holomorphic)
        rows = []
        for k, o in enumerate(outs):
            others = [zeros(x.shape, dtype=x.dtype) for x in outs]
            integers: dict[int, Zero] = {}  # what their leaves have

            def one(
                c: Any, k: int = k, others: list[Any] = others, at: dict[int, Zero] = integers
            ) -> Any:
                full = [c if i == k else z for i, z in enumerate(others)]
                found = pull.adjoint(full)
                at.update({i: g for i, g in enumerate(found) if isinstance(g, Zero)})
                cts = [g for g in found if not isinstance(g, Zero)]
                return [ops.conj(g) for g in cts] if holomorphic else in_convention(cts)

            block = [reshape(b, (*o.shape, *b.shape[1:])) for b in vmap(one)(_basis(o))]
            for i, z in sorted(integers.items()):
                block.insert(i, Zero((*o.shape, *z.shape), z.dtype))
            shaped = pytree.unflatten(spec, block)
            rows.append(shaped[0] if single else shaped)
        jacobian = structure.unflatten(rows)
        return (jacobian, *aux) if has_aux else jacobian

    run.__name__ = f"jacrev({getattr(fun, '__name__', 'fun')})"
    options = "holomorphic", holomorphic, "allow_int", allow_int
    return noted(run, jacrev, (fun, argnums, has_aux), *options)


def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The Jacobian by forward mode: one push per element of the input, under vmap.

    Args: argnums, has_aux, holomorphic: as `grad`.
    Returns: out's structure of the argument's structure of arrays (*out shape, *in shape).
    Raises: DTypeError: for integer inputs; for complex ones unless holomorphic, since one push goes
    along the real axis alone.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> half_turn = lambda x: xp.stack([x[0] * xp.cos(x[1]), x[0] * xp.sin(x[1])])
        >>> ft.jacfwd(half_turn)(xp.asarray([2.0, 0.0])).tolist()
        [[1.0, 0.0], [0.0, 2.0]]
    """
    expect_functions("jacfwd", fun=fun)

    def run(*args: Any, **kwargs: Any) -> Any:
        single, free, picked = _free(fun, argnums, args, kwargs, "jacfwd")
        _check_inputs("jacfwd", argnums, args, picked, holomorphic, False)
        ins, spec = flat_arrays(picked)
        aux: list[Any] = []
        columns = []
        for k, x in enumerate(ins):

            def push(t: Any, k: int = k) -> Any:
                full = [t if i == k else zeros(v.shape, dtype=v.dtype) for i, v in enumerate(ins)]
                out, tangent, *side = jvp(free, picked, spec.unflatten(full), has_aux=has_aux)
                if holomorphic:
                    _check_results("jacfwd", pytree.leaves(out), holomorphic)
                aux[:] = side
                return tangent

            block = vmap(push, out_axes=-1)(_basis(x))  # (*out shape, n)
            columns.append(pytree.map(lambda b, x=x: reshape(b, (*b.shape[:-1], *x.shape)), block))
        outs = [pytree.leaves(c) for c in columns]
        structure = pytree.structure(columns[0])
        rows = [spec.unflatten([outs[k][j] for k in range(len(ins))]) for j in range(len(outs[0]))]
        jacobian = structure.unflatten([r[0] if single else tuple(r) for r in rows])
        return (jacobian, *aux) if has_aux else jacobian

    run.__name__ = f"jacfwd({getattr(fun, '__name__', 'fun')})"
    return noted(run, jacfwd, (fun, argnums, has_aux), "holomorphic", holomorphic)


def _free(
    fun: Any, argnums: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str
) -> tuple[bool, Any, tuple[Any, ...]]:
    """fun as a function of the arguments that argnums names."""
    single, nums = argument_numbers(name, "argnums", argnums)
    picked = arguments(name, args, nums)

    def free(*xs: Any) -> Any:
        full = list(args)
        for i, x in zip(nums, xs, strict=True):
            full[i] = x
        return fun(*full, **kwargs)

    free.__name__ = getattr(fun, "__name__", "fun")
    return single, free, picked


def _check_inputs(
    name: str, argnums: Any, args: Any, picked: Any, holomorphic: bool, allow_int: bool
) -> None:
    _, nums = argument_numbers(name, "argnums", argnums)
    flat_arrays(picked)  # whose classes are known from here on
    for i, x in zip(nums, picked, strict=True):
        for path, leaf in pytree.flatten_with_path(x):
            dtype = leaf.dtype if isinstance(leaf, Tensor) else asarray(leaf).dtype
            at = f"argument {i % len(args)}" + (f", leaf {path}" if path else "")
            if dtype not in INEXACT and not allow_int:
                raise DTypeError(f"{name}: inputs must be floating or complex, got {dtype} in {at}")
            if holomorphic and dtype.kind == "f":
                raise DTypeError(
                    f"{name}: with holomorphic=True the inputs must be complex, got {dtype} in {at}"
                )
            if name == "jacfwd" and dtype.kind == "c" and not holomorphic:
                raise DTypeError(
                    f"{name}: inputs must be real, got {dtype} in {at}",
                    fix="set holomorphic=True for f'(z), or use jacrev or jvp",
                )


def _check_results(name: str, outs: Sequence[Any], holomorphic: bool) -> None:
    for o in outs:
        kind = asarray(o).dtype.kind
        if holomorphic and kind != "c":
            raise DTypeError(
                f"{name}: with holomorphic=True results must be complex, got {asarray(o).dtype}"
            )
        if kind == "c" and not holomorphic:
            raise DTypeError(
                f"{name}: results must be real, got {asarray(o).dtype}",
                fix="set holomorphic=True for f'(z), or use jacfwd or vjp",
            )


def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Second derivatives: forward mode over reverse mode.

    Args: argnums, has_aux, holomorphic: as `grad`.
    Returns: out's structure of the argument's structure of the argument's structure of arrays
    (*out shape, *in shape, *in shape).
    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.hessian(lambda x: xp.sum(x ** 3))(xp.asarray([1.0, 2.0])).tolist()
        [[6.0, 0.0], [0.0, 12.0]]
    """
    expect_functions("hessian", fun=fun)
    slopes = jacrev(fun, argnums, has_aux, holomorphic=holomorphic)
    return jacfwd(slopes, argnums, has_aux, holomorphic=holomorphic)


def hvp(fun: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """Product of the Hessian at primals with tangents, without forming the Hessian.

    Args: fun: a scalar function. primals, tangents: tuples with one tree per argument.
    Returns: what `grad` gives, for one argument its tree, for more a tuple of them.
    Raises: TreeError: when primals is no tuple, or tangents does not fit it.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> x, v = xp.asarray([1.0, 2.0]), xp.asarray([1.0, 0.0])
        >>> ft.hvp(lambda x: xp.sum(x ** 3), (x,), (v,)).tolist()
        [6.0, 0.0]
    """
    expect_functions("hvp", fun=fun)
    as_tuple("hvp", "primals", primals)
    as_tuple("hvp", "tangents", tangents)
    nums = tuple(range(len(primals)))
    out = jvp(grad(fun, nums), primals, tangents)[1]
    return out[0] if len(nums) == 1 else out
