"""Functions that look into derivatives: hooks on cotangents and on nodes, and derivatives of once.

Each is a function of values or of functions, never a mode: what it acts on is what depends on its
argument, so it composes with every transform and nothing else pays for it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn

from funct import pytree, tree
from funct.array import Tensor
from funct.array.trees import flat_arrays
from funct.core import INEXACT, Region, bind_region
from funct.errors import UndefinedDerivativeError
from funct.transforms.given import expect_functions
from funct.transforms.recipes import noted
from funct.transforms.vjp import Zero

__all__ = ["hook", "node_hook", "once_differentiable"]


def hook(x: Any, *, backward: Callable[[Any], Any]) -> Any:
    """x, with a function that sees the cotangent which passes it on the way back.

    Args: x: an array, or a tree of them, whose cotangents are then seen together. backward: gets
    the cotangent, once, when it is complete; what it returns replaces it, None keeps it. Integer
    leaves have a `Zero`.
    Returns: x to go on with; the value that was given has no hook.
    Raises: TreeError, ShapeError: where the replacement has another structure or shape.
    Notes: a compiled function captures it, as it does all Python: what else it does, is done then.
    In `grad(jit(f))` one that asks for a number is called with real ones each time, and the first
    time it has been called up to there by the capture that found that out.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> clipped = lambda x: xp.square(ft.hook(x, backward=lambda g: xp.clip(g, -1, 1)))
        >>> float(ft.grad(clipped)(xp.asarray(3.0)))
        1.0
    """
    leaves, spec = flat_arrays(x)
    at = [k for k, v in enumerate(leaves) if v.dtype in INEXACT]

    zeros = [Zero(tuple(v.shape), v.dtype) for v in leaves]

    def pull(kept: Any, cts: Any) -> tuple[Any, ...]:
        full: list[Any] = list(zeros)
        for k, c in zip(at, cts, strict=True):
            full[k] = c
        tree = spec.unflatten(full)
        given = backward(tree)
        if given is None:
            return tuple(cts)
        pytree.same_structure("hook: what backward returns", tree, given)
        flat = pytree.leaves(given)
        return tuple([flat[k] for k in at])

    region = Region(
        "hook", lambda *vs: vs, lambda vs, ts: (vs, ts), lambda *vs: (vs, ()), pull, own=True
    )  # fmt: skip
    for k, v in zip(at, bind_region(region, [leaves[k] for k in at]), strict=True):
        leaves[k] = v
    return spec.unflatten(leaves)


def node_hook(
    fun: Callable[..., Any],
    *,
    pre: Callable[..., Any] | None = None,
    post: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """fun as one node of the tape, with hooks before and after its pull.

    Args: pre: `pre(ct)` gets the cotangent of fun's result before it is pulled back. post:
    `post(cts)` or `post(cts, ct)` gets the tuple of cotangents of fun's positional arguments, and
    that of its result if it takes two. What they return replaces what they got, None keeps it.
    Returns: a function with fun's signature; keyword arguments are not seen.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> seen = []
        >>> f = ft.node_hook(xp.sin, pre=lambda ct: seen.append(float(ct)))
        >>> _ = ft.grad(lambda x: 2.0 * f(x))(xp.asarray(0.0))
        >>> seen
        [2.0]
    """
    expect_functions("node_hook", fun=fun)
    two = post is not None and _takes_two(post)

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        arrived: list[Any] = []

        def before(ct: Any) -> Any:
            given = pre(ct) if pre is not None else None
            arrived[:] = [ct if given is None else given]
            return given

        def after(cts: Any) -> Any:
            assert post is not None
            given = post(cts, *arrived) if two else post(cts)
            if given is not None and len(args) == 1 and not isinstance(given, tuple):
                return (given,)
            return given

        if post is not None:
            args = hook(args, backward=after)
        out = fun(*args, **kwargs)
        return hook(out, backward=before) if pre is not None or two else out

    return run


def _takes_two(fun: Callable[..., Any]) -> bool:
    try:
        inspect.signature(fun).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True


def once_differentiable(fun: Callable[..., Any]) -> Callable[..., Any]:
    """fun, whose results cannot be differentiated: for a reverse rule that is right once only.

    Raises: UndefinedDerivativeError: when a derivative of a result is asked for.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> f = ft.custom_vjp(xp.sin)
        >>> bwd = ft.once_differentiable(lambda x, g: (xp.cos(x) * g,))
        >>> f.defvjp(lambda x: (xp.sin(x), x), bwd)
        >>> float(ft.grad(f)(xp.asarray(0.0)))
        1.0
    """
    name = getattr(fun, "__name__", "fun")

    def refused(*args: Any) -> NoReturn:
        raise UndefinedDerivativeError(f"{name}: differentiable once, and this is another time")

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree.flatten((args, kwargs))
        at = [k for k, v in enumerate(leaves) if isinstance(v, Tensor)]
        shape: list[Any] = []

        def flat(*values: Any) -> tuple[Any, ...]:
            full = list(leaves)
            for k, v in zip(at, values, strict=True):
                full[k] = v
            a, named = pytree.unflatten(spec, full)
            outs, structure = flat_arrays(fun(*a, **named))
            shape[:] = [structure]
            return tuple(outs)

        region = Region(name, flat, refused, lambda *vs: (flat(*vs), ()), refused, own=True)
        outs = bind_region(region, [leaves[k] for k in at])
        return shape[0].unflatten(outs)

    return noted(run, once_differentiable, (fun,))
