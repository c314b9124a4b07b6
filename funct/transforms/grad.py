"""The faces of reverse mode: vjp, grad, value_and_grad, linear_transpose; and jacobians of both
modes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from funct import ops
from funct import tree as pytree
from funct.array import Array, Tensor, asarray, reshape
from funct.errors import DTypeError, ShapeError, TransformError
from funct.graph import Capture
from funct.ops.families import wrap
from funct.transforms.forward import jvp, split_aux
from funct.transforms.reverse import Reverse, backward, lower, pull_back, sink, zero_of
from funct.transforms.vmap import vmap

__all__ = [
    "Zero", "grad", "hessian", "hvp", "jacfwd", "jacrev", "linear_transpose", "value_and_grad",
    "vjp",
]  # fmt: skip

_ONES: dict[np.dtype[Any], Any] = {}


@attrs.frozen
class Zero:
    """The derivative with respect to an integer: exactly zero, with no array behind it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def _traced(
    level: Reverse, args: Any, nums: Sequence[int], name: str, allow_int: bool
) -> tuple[list[Any], Any]:
    """A tape leaf for every floating leaf of args, which are the arguments that nums names."""
    values, spec = pytree.flatten(args)
    traced: list[Any] = []
    for k, v in enumerate(values):
        x = v if isinstance(v, Tensor) else asarray(v)
        if x.dtype.kind in "fc":
            traced.append(level.record(x, sink, ()))
        elif allow_int:
            traced.append(x)
        else:
            first, _, rest = pytree.flatten_with_path(args)[k][0].partition(".")
            at = f"argument {nums[int(first)]}" + (f", leaf {rest}" if rest else "")
            raise DTypeError(
                f"{name}: inputs must be floating or complex, got {x.dtype} in {at}",
                fix="cast it to a float, leave it out of argnums, or set allow_int=True",
            )
    return traced, spec


def _cotangent(found: dict[Any, Any], t: Any, level: Reverse) -> Any:
    if lower(t, level)[1] is None:
        return Zero(tuple(t.shape), t.dtype)
    return found[t.node] if t.node in found else zero_of(t.node)


def _with_aux(name: str, out: Any, level: Reverse) -> tuple[Any, tuple[Any, ...]]:
    out, side = split_aux(name, out)
    return out, (pytree.map(lambda x: lower(x, level)[0], side),)


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Value of fun, and its pullback.

    Args: primals: pytrees of floating or complex arrays. has_aux: fun returns (output, aux).
    Returns: (out, pull[, aux]); pull(ct) takes a cotangent with out's structure, shapes and dtypes,
    gives a tuple with one cotangent per primal, and may be called again.
    Raises: DTypeError: for integer primals. TreeError, ShapeError: when a cotangent does not fit.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> y, pull = ft.vjp(xp.sin, xp.asarray(0.0))
        >>> float(pull(xp.asarray(2.0))[0])
        2.0
    """
    level = Reverse("vjp", fun)
    traced, spec = _traced(level, primals, range(len(primals)), "vjp", allow_int=True)
    try:
        out = fun(*pytree.unflatten(spec, traced))
    finally:
        level.open = False
    aux: tuple[Any, ...] = ()
    if has_aux:
        out, aux = _with_aux("vjp", out, level)
    outs, structure = pytree.flatten(out)
    outs = [asarray(o) for o in outs]
    values = [lower(o, level)[0] for o in outs]
    result = structure.unflatten(values)

    def pull(ct: Any) -> tuple[Any, ...]:
        pytree.same_structure("vjp: cotangent", result, ct)
        cts = [_fitting(c, v) for c, v in zip(pytree.leaves(ct), values, strict=True)]
        found = pull_back(level, outs, cts)
        return tuple(pytree.unflatten(spec, [_cotangent(found, t, level) for t in traced]))

    return result, pull, *aux


def _fitting(c: Any, v: Any) -> Any:
    c = asarray(c)
    if c.shape != v.shape:
        raise ShapeError(f"vjp: a cotangent must have its output's shape {v.shape}, got {c.shape}")
    if c.dtype != v.dtype and v.dtype.kind in "fc":
        if c.dtype.kind == "c" and v.dtype.kind != "c":
            raise DTypeError(
                f"vjp: a cotangent must have its output's dtype {v.dtype}, got {c.dtype}"
            )
        return ops.astype(c, v.dtype)
    return c


def _seed(value: Any) -> Any:
    """The cotangent 1.

    Under capture it is written into the graph, so that what is spread from it to a symbolic shape
    keeps that shape.
    """
    one = _one(value.dtype)
    while value.__class__ is not Array:
        if isinstance(value.level, Capture):
            return value.level.constant(one)
        value = value.value
    return one


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
    if not holomorphic and value.dtype.kind != "f":
        fix = "take real(result), or set holomorphic=True" if value.dtype.kind == "c" else None
        raise DTypeError(
            f"{name}: the function must return a real number, got {value.dtype}", fix=fix
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
    """
    return _differentiated("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int)


def _differentiated(
    name: str,
    fun: Callable[..., Any],
    argnums: Any,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
) -> Callable[..., Any]:
    single = isinstance(argnums, int)
    nums = (argnums,) if single else tuple(argnums)
    plain = nums == (0,) and not (has_aux or holomorphic or allow_int)

    def run(*args: Any, **kwargs: Any) -> Any:
        level = Reverse(name, fun)
        if (
            plain
            and len(args) == 1
            and not kwargs
            and isinstance(args[0], Tensor)
            and args[0].dtype.kind == "f"
        ):
            leaf = level.record(args[0], sink, ())  # one array: no pytree work
            try:
                out = fun(leaf)
            finally:
                level.open = False
            value, node = lower(out, level)
            if node is not None and node.shape == () and node.dtype.kind == "f":
                found = backward(node, _seed(value), True)
                g = found[leaf.node] if leaf.node in found else zero_of(leaf.node)
                return value, g if single else (g,)
            traced: list[Any] = [leaf]
            spec = pytree.structure((leaf,))
        else:
            picked = tuple([_argument(name, args, i) for i in nums])
            traced, spec = _traced(level, picked, nums, name, allow_int)
            full = list(args)
            for i, x in zip(nums, pytree.unflatten(spec, traced), strict=True):
                full[i] = x
            try:
                out = fun(*full, **kwargs)
            finally:
                level.open = False
        aux: tuple[Any, ...] = ()
        if has_aux:
            out, aux = _with_aux(name, out, level)
        value, node = lower(asarray(out), level)
        _scalar(name, value, holomorphic)
        found = backward(node, _seed(value), True) if node is not None else {}
        cts = [_cotangent(found, t, level) for t in traced]
        if holomorphic:
            cts = [c if isinstance(c, Zero) else ops.conj(c) for c in cts]
        grads = pytree.unflatten(spec, cts)
        return (value, *aux) if aux else value, grads[0] if single else tuple(grads)

    run.__name__ = f"{name}({getattr(fun, '__name__', 'fun')})"
    run.__doc__ = getattr(fun, "__doc__", None)
    return run


def _argument(name: str, args: tuple[Any, ...], i: int) -> Any:
    if not -len(args) <= i < len(args):
        raise TransformError(f"{name}: argnums names argument {i}, the call has {len(args)}")
    return args[i]


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
    df/d(Re x) + i df/d(Im x) (torch's convention). holomorphic=True gives f'(z).
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
    both = _differentiated("grad", fun, argnums, has_aux, holomorphic, allow_int)
    if has_aux:

        def with_aux(*args: Any, **kwargs: Any) -> Any:
            (_, aux), g = both(*args, **kwargs)
            return g, aux

        return with_aux

    def gradient(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return gradient


def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[..., Any]:
    """The transpose of a linear function; primals give its operands' shapes and dtypes.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.linear_transpose(lambda x: xp.sum(x * 3.0), xp.ones(2))(xp.asarray(1.0))[0].tolist()
        [3.0, 3.0]
    """
    _, pull = vjp(fun, *pytree.map(lambda x: asarray(x) * 0.0, primals))
    return pull


def _basis(x: Any) -> Any:
    n = int(np.prod(x.shape, dtype=np.int64))
    return wrap(np.eye(n, dtype=x.dtype).reshape(n, *x.shape))


def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The Jacobian by reverse mode: one pull per element of the output, under vmap.

    Returns: out's structure of the argument's structure of arrays (*out shape, *in shape).
    """

    def run(*args: Any) -> Any:
        single, free, picked = _free(fun, argnums, args, "jacrev")
        out, pull, *aux = vjp(free, *picked, has_aux=has_aux)
        outs, structure = pytree.flatten(out)
        rows = []
        for k, o in enumerate(outs):
            others = [wrap(np.zeros(x.shape, x.dtype)) for x in outs]

            def one(c: Any, k: int = k, others: list[Any] = others) -> Any:
                full = [c if i == k else z for i, z in enumerate(others)]
                return pull(structure.unflatten(full))

            block = vmap(one)(_basis(o))
            shaped = pytree.map(lambda b, o=o: reshape(b, (*o.shape, *b.shape[1:])), block)
            rows.append(shaped[0] if single else shaped)
        jacobian = structure.unflatten(rows)
        return (jacobian, *aux) if has_aux else jacobian

    return run


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The Jacobian by forward mode: one push per element of the input, under vmap.

    Returns: out's structure of the argument's structure of arrays (*out shape, *in shape).
    """

    def run(*args: Any) -> Any:
        single, free, picked = _free(fun, argnums, args, "jacfwd")
        ins, spec = pytree.flatten(picked)
        ins = [asarray(x) for x in ins]
        aux: list[Any] = []
        columns = []
        for k, x in enumerate(ins):

            def push(t: Any, k: int = k) -> Any:
                full = [
                    t if i == k else wrap(np.zeros(v.shape, v.dtype)) for i, v in enumerate(ins)
                ]
                _, tangent, *side = jvp(free, picked, spec.unflatten(full), has_aux=has_aux)
                aux[:] = side
                return tangent

            block = vmap(push, out_axes=-1)(_basis(x))  # (*out shape, n)
            columns.append(pytree.map(lambda b, x=x: reshape(b, (*b.shape[:-1], *x.shape)), block))
        outs = [pytree.leaves(c) for c in columns]
        structure = pytree.structure(columns[0])
        rows = [spec.unflatten([outs[k][j] for k in range(len(ins))]) for j in range(len(outs[0]))]
        jacobian = structure.unflatten([r[0] if single else tuple(r) for r in rows])
        return (jacobian, *aux) if has_aux else jacobian

    return run


def _free(
    fun: Any, argnums: Any, args: tuple[Any, ...], name: str
) -> tuple[bool, Any, tuple[Any, ...]]:
    """fun as a function of the arguments that argnums names."""
    single = isinstance(argnums, int)
    nums = (argnums,) if single else tuple(argnums)
    picked = tuple([_argument(name, args, i) for i in nums])

    def free(*xs: Any) -> Any:
        full = list(args)
        for i, x in zip(nums, xs, strict=True):
            full[i] = x
        return fun(*full)

    free.__name__ = getattr(fun, "__name__", "fun")
    return single, free, picked


def hessian(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Second derivatives: forward mode over reverse mode.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.hessian(lambda x: xp.sum(x ** 3))(xp.asarray([1.0, 2.0])).tolist()
        [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacfwd(jacrev(fun, argnums, has_aux), argnums, has_aux)


def hvp(fun: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """Product of the Hessian at primals with tangents, without forming the Hessian."""
    nums = tuple(range(len(primals)))
    out = jvp(grad(fun, nums), primals, tangents)[1]
    return out[0] if len(nums) == 1 else out
