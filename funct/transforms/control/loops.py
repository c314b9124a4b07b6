"""fori_loop and map: loops with a shape of their own, made of scan and while_loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funct import ops, pytree
from funct.array import Tensor, asarray, concat, result_type
from funct.array.trees import flat_arrays
from funct.core import Size
from funct.errors import ArgumentError, DTypeError, ShapeError
from funct.transforms.control.closures import captured
from funct.transforms.control.scan import scan, steps_of
from funct.transforms.control.while_loop import while_loop
from funct.transforms.given import expect_functions
from funct.transforms.vmap import differs, vmap

__all__ = ["fori_loop", "map"]


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init: Any) -> Any:
    """`for i in range(lower, upper): state = body_fun(i, state)`, from init; the last state.

    Args: lower, upper: integers, or 0-d integer arrays. body_fun: from (i, state) to the next
    state, of the same structure, shapes and dtypes.
    Derivatives: every mode and order; like `scan` where the bounds are known, else `while_loop`.
    Raises: TreeError, ShapeError, DTypeError: when the state's type changes, or a bound is no
    integer.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> float(ft.fori_loop(1, 5, lambda i, x: x * i, 1.0))
        24.0

    Source: `jax.lax.fori_loop`.
    """
    expect_functions("fori_loop", body_fun=body_fun)
    n: Any = None
    if isinstance(upper, Size) and type(lower) is int and upper >= lower:
        first, last, n = asarray(lower), None, upper - lower
    else:
        first, last = (_bound(name, x) for name, x in (("lower", lower), ("upper", upper)))
        dtype = result_type(first, last)
        first, last = ops.astype(first, dtype), ops.astype(last, dtype)
        if not any(captured(x) or differs(x) for x in (first, last)):
            n = max(0, int(last) - int(first))
    if n is not None:

        def step(carry: Any, _: Any) -> Any:
            i, state = carry
            return (i + 1, body_fun(i, state)), None

        return scan(step, (first, init), None, length=n)[0][1]

    def body(carry: Any) -> Any:
        i, end, state = carry
        return i + 1, end, body_fun(i, state)

    return while_loop(lambda c: c[0] < c[1], body, (first, last, init))[2]


def _bound(name: str, x: Any) -> Any:
    x = x if isinstance(x, Tensor) else asarray(x)
    if x.dtype.kind not in "iu":
        raise DTypeError(f"fori_loop: {name} must be an integer, got {x.dtype}")
    if tuple(x.shape) != ():
        raise ShapeError(f"fori_loop: {name} must be a scalar, got shape {tuple(x.shape)}")
    return x


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """f of each x along axis 0 of xs, one after the other, and the results stacked.

    Args: xs: a pytree of arrays with equal lengths on axis 0. batch_size: so many at once, by vmap.
    Raises: ArgumentError: when batch_size is not positive.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.map(lambda x: xp.sum(x * x), xp.asarray([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [5.0, 25.0]

    Source: `jax.lax.map`.
    """
    expect_functions("map", f=f)
    if batch_size is None:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    if type(batch_size) is not int or batch_size < 1:
        raise ArgumentError(f"map: batch_size must be a positive int, got {batch_size!r}")
    columns, spec = flat_arrays(xs)
    n = steps_of(xs, columns, None)
    whole = n - n % batch_size
    size = min(batch_size, n)
    if n == 0 or whole == 0:
        return vmap(f)(xs) if n else scan(lambda _, x: (None, f(x)), None, xs)[1]
    blocks = [ops.reshape(x[:whole], (whole // size, size, *x.shape[1:])) for x in columns]
    out = scan(lambda _, x: (None, vmap(f)(x)), None, spec.unflatten(blocks))[1]
    out = pytree.map(lambda y: ops.reshape(y, (whole, *y.shape[2:])), out)
    if whole == n:
        return out
    rest = vmap(f)(spec.unflatten([x[whole:] for x in columns]))
    return pytree.map(lambda a, b: concat([a, b]), out, rest)
