"""What a function does, without doing it: make_graph and eval_shape; and stop_gradient on trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from funct import ops
from funct.array import Tensor, asarray
from funct.array.trees import flat_arrays, map_arrays
from funct.core import ShapeDtype
from funct.errors import TransformError
from funct.graph import Capture, Graph, GraphTracer, eliminate_dead, share_common, written
from funct.graph.capture import capture
from funct.graph.check import check
from funct.transforms.given import expect_functions

__all__ = ["eval_shape", "make_graph", "stop_gradient"]


def make_graph(fun: Callable[..., Any]) -> Callable[..., Graph]:
    """A function that gives the graph of fun at its arguments.

    Dead and common expressions are removed. The graph's inputs are the leaves of the arguments.
    Raises: TransformError: when fun closes over a value of an outer transform.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> len(ft.make_graph(lambda x: x * x + x * x)(xp.ones(2)).nodes)
        2
    """
    expect_functions("make_graph", fun=fun)

    def run(*args: Any, **kwargs: Any) -> Graph:
        leaves, spec = flat_arrays((args, kwargs))

        def flat(*xs: Any) -> list[Any]:
            a, k = spec.unflatten(xs)
            return flat_arrays(fun(*a, **k))[0]

        graph, outer = capture(flat, leaves, user_fun=fun)
        if outer:
            raise TransformError(
                "make_graph: the function closes over a value of an outer transform",
                fix="pass that value as an argument",
            )
        return check(eliminate_dead(share_common(check(graph))))

    return run


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of fun's result, computed without its values.

    Args: arrays or `ShapeDtype`s; nothing is allocated for the latter.
    Returns: fun's result with every array replaced by its ShapeDtype.
    Raises: TransformError: when a shape depends on a value.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> a, b = ft.ShapeDtype((2, 3), xp.float32), ft.ShapeDtype((3, 5), xp.float32)
        >>> ft.eval_shape(xp.matmul, a, b).shape
        (2, 5)
    """
    expect_functions("eval_shape", fun=fun)
    leaves, spec = flat_arrays((args, kwargs), _typed)
    level = Capture("eval_shape", fun)
    inputs = [GraphTracer.unknown(level, level.fresh(x.shape, x.dtype)) for x in leaves]
    a, k = cast("tuple[Any, dict[str, Any]]", spec.unflatten(inputs))
    with written(level):
        out = fun(*a, **k)
    return map_arrays(lambda o: ShapeDtype(o.shape, o.dtype), out)


def _typed(x: Any) -> Any:
    return x if isinstance(x, ShapeDtype | Tensor) else asarray(x)


def stop_gradient(x: Any) -> Any:
    """x (a pytree), taken for a constant by every derivative.

    Example:
        >>> import funct as ft
        >>> float(ft.grad(lambda x: x * ft.stop_gradient(x))(3.0))
        3.0

    Source: JAX `lax.stop_gradient`, torch `Tensor.detach`.
    """
    return map_arrays(ops.stop_gradient, x)
