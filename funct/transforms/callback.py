"""Calls back into Python: functions that funct cannot look into, as nodes of a graph.

A callback is a primitive made for one function: what it gives has no derivative, under vmap it runs
lane by lane, and under jit it runs each time the compiled function runs. One that has effects is
neither shared, nor dropped, nor moved before another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct import pytree
from funct.array import asarray
from funct.array.trees import flat_arrays
from funct.core import INEXACT, Absent, Primitive, Rule, ShapeDtype, bind, top_level, usable
from funct.core.effects import Carried, act
from funct.errors import ShapeError, TransformError
from funct.graph import acting
from funct.transforms.given import expect_functions

__all__ = ["debug_print", "io_callback", "pure_callback"]

_OPAQUE = Absent("a callback is a function that cannot be looked into; use custom_jvp around it")
_NO_FORM = Absent("calls back into Python")


def _primitive(
    name: str,
    fun: Callable[[Sequence[Any], Any], Sequence[Any]],
    count: int,
    dtypes: tuple[Any, ...],
    rule: Rule | Absent | None,
    effect: bool,
) -> Primitive:
    """A primitive of `count` operands that calls fun with NumPy arrays and the results' shapes.

    The shapes are its parameter, for they may have symbolic sizes.
    """

    def raw(*given: Any) -> Any:
        *arrays, shapes = given
        try:
            shown = [_shown(a) for a in arrays]
            found = act(None, name, lambda: fun(shown, shapes)) if effect else fun(shown, shapes)
        except Exception as error:
            raise Carried(error) from error
        outs = [_checked(name, *v) for v in zip(found, shapes, dtypes, strict=True)]
        return outs[0] if len(outs) == 1 else tuple(outs)

    def aval(args: Any, params: Any) -> Any:
        avals = [ShapeDtype(s, d) for s, d in zip(*params, dtypes, strict=True)]
        return avals[0] if len(avals) == 1 else tuple(avals)

    def batch(prim: Any, args: Any, batched: Any, params: Any) -> Any:
        size = next(a.shape[0] for a, b in zip(args, batched, strict=True) if b)

        def lanes(arrays: Sequence[Any], wide: Any) -> list[Any]:
            each = [s[1:] for s in wide]
            rows = [
                fun([a[k] if b else a for a, b in zip(arrays, batched, strict=True)], each)
                for k in range(next(len(a) for a, b in zip(arrays, batched, strict=True) if b))
            ]
            return [
                np.stack([_checked(name, row[i], s, d) for row in rows])
                if rows
                else np.zeros((0, *s), d)
                for i, (s, d) in enumerate(zip(each, dtypes, strict=True))
            ]

        wide = tuple([(size, *s) for s in params[0]])
        return _primitive(name, lanes, count, dtypes, rule, effect).fn(*args, wide)

    prim = Primitive(
        name=name, raw=raw, operands=tuple([f"x{k}" for k in range(count)]), params=("shapes",),
        rules=(rule,) * count, batch=batch, aval=aval, code=_NO_FORM, onnx=_NO_FORM,
        samples=lambda rng: [], masks=False, spread=None, results=len(dtypes), effect=effect,
    )  # fmt: skip

    def fn(*given: Any) -> Any:
        *args, shapes = given
        try:
            if effect:
                level = acting(usable(name, top_level(args)))
                return level.run(prim, args, (shapes,))
            return bind(prim, args, (shapes,))
        except Carried as raised:
            raise raised.error from None

    object.__setattr__(prim, "fn", fn)
    return prim


def _shown(x: Any) -> Any:
    """An operand for the user's function, which must not write into it."""
    view = np.asarray(x).view()
    view.flags.writeable = False
    return view


def _checked(name: str, given: Any, shape: Any, dtype: Any) -> Any:
    x = np.asarray(given)
    if x.shape != shape:
        raise ShapeError(f"{name}: the function promised shape {shape}, its result has {x.shape}")
    return x.astype(dtype) if x.dtype != dtype else x


def _callback(
    name: str, fun: Callable[..., Any], result_shape: Any, args: Any, effect: bool
) -> Any:
    leaves, spec = flat_arrays(args)

    def typed(aval: Any) -> Any:
        if hasattr(aval, "shape") and hasattr(aval, "dtype"):
            return aval
        raise TransformError(
            f"{name}: result_shape must hold ShapeDtype or arrays, got {type(aval).__name__}",
            fix="funct.ShapeDtype(shape, dtype)",
        )

    promised, structure = flat_arrays(result_shape, typed)

    def flat(arrays: Sequence[Any], shapes: Any) -> list[Any]:
        out = fun(*spec.unflatten(arrays))
        if not promised:
            return []
        pytree.same_structure(f"{name}: result", result_shape, out)
        return pytree.leaves(out)

    rule = _OPAQUE if any(v.dtype in INEXACT for v in promised) else None  # others have none
    dtypes = tuple([v.dtype for v in promised])
    prim = _primitive(name, flat, len(leaves), dtypes, rule, effect)
    out = prim.fn(*leaves, tuple([v.shape for v in promised]))
    return structure.unflatten((out,) if len(promised) == 1 else out)


def pure_callback(fun: Callable[..., Any], result_shape: Any, *args: Any) -> Any:
    """fun(*args), where fun is any Python function of NumPy arrays without side effects.

    Args: result_shape: a tree of ShapeDtype, or of arrays like them: what fun will return. args:
    pytrees of arrays; fun gets read-only NumPy arrays.
    Returns: a tree like result_shape. Under vmap fun runs for each lane, under jit each time the
    compiled function runs and its result is needed. Floating results have no derivative.
    Raises: ShapeError, TreeError: when fun returns something else than was promised.
    UndefinedDerivativeError: when a derivative is asked for.
    Example:
        >>> import numpy as np
        >>> import funct as ft, funct.array as xp
        >>> f = ft.jit(lambda x: ft.pure_callback(np.cumsum, ft.ShapeDtype(x.shape, x.dtype), x))
        >>> f(xp.asarray([1.0, 2.0, 3.0])).tolist()
        [1.0, 3.0, 6.0]
    """
    expect_functions("pure_callback", fun=fun)
    return _callback("pure_callback", fun, result_shape, args, False)


def io_callback(fun: Callable[..., Any], result_shape: Any, *args: Any) -> Any:
    """fun(*args) for its effect: it runs exactly once per call, in the order of the program.

    As `pure_callback`, but never shared, dropped or moved. result_shape may be None; derivatives
    then call it with the primal values.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> seen = []
        >>> tell = lambda x: ft.io_callback(lambda v: seen.append(v.tolist()), None, x)
        >>> ft.jit(lambda x: (tell(x), 2 * x)[1])(xp.asarray([1.0, 2.0])).tolist(), seen
        ([2.0, 4.0], [[1.0, 2.0]])

    Source: JAX `experimental.io_callback`.
    """
    expect_functions("io_callback", fun=fun)
    return _callback("io_callback", fun, result_shape, args, True)


def debug_print(fmt: str, *args: Any, **kwargs: Any) -> None:
    """Print `fmt.format(*args, **kwargs)` with the values that traced arrays have.

    Under jit it prints whenever the compiled function runs, under vmap once for each lane of what
    is batched, under derivatives the primal values.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> f = ft.jit(lambda x: ft.debug.print("x = {x}", x=x))
        >>> f(xp.asarray(3.0))
        x = 3.0
    """
    leaves, spec = pytree.flatten((args, kwargs))
    moving = [not isinstance(x, str | bool | int | float | complex) for x in leaves]

    def show(arrays: Sequence[Any], shapes: Any) -> tuple[()]:
        given = iter(arrays)
        full = [next(given) if m else x for x, m in zip(leaves, moving, strict=True)]
        places, names = spec.unflatten(full)
        print(fmt.format(*places, **names))  # noqa: T201 - what it is for
        return ()

    arrays = [asarray(x) for x, m in zip(leaves, moving, strict=True) if m]
    _primitive("debug_print", show, len(arrays), (), None, True).fn(*arrays, ())
