"""The faces of reverse mode for scalar functions: grad and value_and_grad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

import numpy as np

from funct import ops, pytree
from funct.array import Array, asarray
from funct.array.device import CPU
from funct.core import FLOATING
from funct.errors import DTypeError, TransformError
from funct.graph import Capture
from funct.ops.fast import wrap
from funct.transforms.given import argument_numbers, arguments, expect_function
from funct.transforms.recipes import noted
from funct.transforms.reverse import ReverseTracer, lower, zero_of
from funct.transforms.tape.backward import backward
from funct.transforms.vjp import (
    Zero,
    arranged,
    aux_below,
    cotangent_of,
    in_convention,
    leaves_on_tape,
)

__all__ = ["grad", "value_and_grad", "written"]

_FIRST = (0,)
_CONTAINERS = (tuple, list, dict, str, NoneType)
_ONES: dict[np.dtype[Any], Any] = {}


def _seed(value: Any) -> Any:
    """The cotangent 1."""
    one = _ONES.get(value.dtype)
    if one is None:
        one = _one(value.dtype)
    return one if value.__class__ is Array else written(one, value)


def written(x: Any, value: Any) -> Any:
    """x where value is: on its device, and written into the graph if value is being captured, so
    that what is spread from it to a symbolic shape keeps that shape.
    """
    while value.level.transforms:
        if isinstance(value.level, Capture):
            return value.level.constant(x)
        value = value.value
    return x if value.device is CPU else x.to_device(value.device)


def _one(dtype: np.dtype[Any]) -> Any:
    if dtype not in _ONES:
        _ONES[dtype] = wrap(np.ones((), dtype))
    return _ONES[dtype]


def _scalar(name: str, value: Any, holomorphic: bool) -> None:
    if value.shape != ():
        raise TransformError(
            f"{name}: the function must return a scalar, got shape {tuple(value.shape)}",
            fix="sum or average the result, or use vjp or jacrev",
        )
    if holomorphic and value.dtype.kind != "c":
        raise DTypeError(
            f"{name}: with holomorphic=True the result must be complex, got {value.dtype}"
        )
    if not holomorphic and value.dtype not in FLOATING:
        fix = "take real(result), or set holomorphic=True" if value.dtype.kind == "c" else None
        raise DTypeError(
            f"{name}: the function must return a real number, got {value.dtype}", fix=fix
        )


def _holomorphic(name: str, traced: Sequence[Any]) -> None:
    for x in traced:
        if x.dtype in FLOATING:
            raise DTypeError(
                f"{name}: with holomorphic=True the inputs must be complex, got {x.dtype}"
            )


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """A function that gives fun's value and its gradient; see `grad`.

    Returns: fun's signature -> (value, gradient), or ((value, aux), gradient) with has_aux.
    Raises: as `grad`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> value, slope = ft.value_and_grad(lambda x: xp.sum(x**2))(xp.asarray([1.0, 2.0]))
        >>> float(value), slope.tolist()
        (5.0, [2.0, 4.0])
    """
    expect_function("value_and_grad", "fun", fun)
    run = _differentiated("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int)

    def both(*args: Any, **kwargs: Any) -> Any:
        return run(args, kwargs)

    made = _named("value_and_grad", both, fun)
    options = "holomorphic", holomorphic, "allow_int", allow_int
    return noted(made, value_and_grad, (fun, argnums, has_aux), *options)


def _named(name: str, transformed: Callable[..., Any], fun: Any) -> Callable[..., Any]:
    transformed.__name__ = f"{name}({getattr(fun, '__name__', 'fun')})"
    transformed.__doc__ = getattr(fun, "__doc__", None)
    return transformed


def _differentiated(
    name: str,
    fun: Callable[..., Any],
    argnums: Any,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    single, nums = argument_numbers(name, "argnums", argnums)
    usual = not (has_aux or holomorphic or allow_int)

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        picked = (args[0],) if nums == _FIRST and args else arguments(name, args, nums)
        level, traced, spec = leaves_on_tape(name, fun, picked, nums, allow_int=allow_int)
        if holomorphic:
            _holomorphic(name, traced)
        full = list(args)
        for i, x in zip(nums, arranged(spec, traced), strict=True):
            full[i] = x
        try:
            out = fun(*full, **kwargs)
        finally:
            level.open = False
        if usual and out.__class__ is ReverseTracer and out.level is level:
            top = out.node
            if top.shape == () and top.dtype in FLOATING:
                found = backward(top, _seed(out.value), True)
                nodes = [t.node for t in traced]
                cts = [found[n] if n in found else zero_of(n) for n in nodes]
                if spec is not None:
                    cts = pytree.unflatten(spec, in_convention(cts))
                return out.value, cts[0] if single else tuple(cts)
        aux: tuple[Any, ...] = ()
        if has_aux:
            out, aux = aux_below(name, out, level)
        if isinstance(out, _CONTAINERS):
            raise TransformError(f"{name}: the function must return a scalar, got {_text(out)}")
        try:
            value, node = lower(asarray(out), level)
        except DTypeError:
            raise TransformError(
                f"{name}: the function must return a scalar, got {_text(out)}"
            ) from None
        _scalar(name, value, holomorphic)
        found = backward(node, _seed(value), True) if node is not None else {}
        cts = [cotangent_of(found, t, level) for t in traced]
        if holomorphic:
            cts = [c if isinstance(c, Zero) else ops.conj(c) for c in cts]
        else:
            cts = in_convention(cts)
        grads = arranged(spec, cts)
        return (value, *aux) if aux else value, grads[0] if single else tuple(grads)

    return run


def _text(out: Any) -> str:
    return "None" if out is None else f"a {type(out).__name__}"


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The gradient of a scalar function.

    Maths: for real x, df/dx. For complex x and a real f, the direction of steepest ascent,
    df/d(Re x) + i df/d(Im x) (torch's convention; its conjugate under
    `config.using(complex_convention="jax")`). holomorphic=True gives f'(z).
    Args: argnums: which positional arguments, an int or a sequence; each may be a pytree. has_aux:
    fun returns (value, aux). allow_int: integer leaves give `Zero(shape, dtype)` instead of an
    error.
    Returns: a function with fun's signature; its result has the structure of the arguments named.
    Raises: TransformError: when the result is no scalar. DTypeError: for integer inputs.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.grad(lambda x: xp.sum(x * x))(xp.asarray([1.0, 2.0])).tolist()
        [2.0, 4.0]
    """
    expect_function("grad", "fun", fun)
    run = _differentiated("grad", fun, argnums, has_aux, holomorphic, allow_int)
    options = "holomorphic", holomorphic, "allow_int", allow_int
    if has_aux:

        def with_aux(*args: Any, **kwargs: Any) -> Any:
            (_, aux), g = run(args, kwargs)
            return g, aux

        return noted(_named("grad", with_aux, fun), grad, (fun, argnums, True), *options)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        return run(args, kwargs)[1]

    return noted(_named("grad", gradient, fun), grad, (fun, argnums), *options)
