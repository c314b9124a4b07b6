"""What a loop carries keeps its type: the checks, and which dtype a Python number takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct import tree as pytree
from funct.array import Tensor, asarray
from funct.core import FLOATING, INEXACT, ShapeDtype
from funct.errors import DTypeError, FunctError, ShapeError
from funct.graph import Capture, GraphTracer, written

__all__ = ["abstract", "boolean_scalar", "fitting", "is_number", "leaf_name", "settled", "typed"]


def _rank(dtype: np.dtype[Any]) -> int:
    """How much the kind of a dtype can hold: booleans, integers, floating, complex numbers."""
    if dtype in FLOATING:
        return 2
    return 3 if dtype in INEXACT else int(dtype.kind != "b")


def is_number(x: Any) -> bool:
    """Whether x is a Python number, whose dtype is still open."""
    return type(x) in (bool, int, float, complex)


def typed(x: Any, dtype: Any) -> Any:
    """x as a Tensor; a Python number takes the dtype where that can hold its kind."""
    if not is_number(x):
        return x if isinstance(x, Tensor) else asarray(x)
    own = asarray(x)
    fits = dtype is not None and _rank(own.dtype) <= _rank(dtype)
    return asarray(x, dtype=dtype) if fits else own


def abstract(name: str, fun: Callable[..., Any], args: Sequence[Any]) -> Any:
    """What fun gives where only shapes and dtypes are known; Python numbers are passed as they are.

    Array leaves of the result are tracers: read their shape and dtype.
    """
    level = Capture(name, fun)
    ins = [
        x if is_number(x) else GraphTracer.unknown(level, level.fresh(x.shape, x.dtype))
        for x in args
    ]
    with written(level, body=True):
        return fun(*ins)


def settled(
    name: str,
    leaves: Sequence[Any],
    step: Callable[..., Sequence[Any]],
    others: Sequence[ShapeDtype] = (),
) -> list[Any]:
    """Initial leaves as arrays: a Python number takes the dtype that one step gives it.

    step: from the leaves of the carry, and others of these types, to the leaves of the next one.
    """
    now = [x if is_number(x) or isinstance(x, Tensor) else asarray(x) for x in leaves]
    if not any(is_number(x) for x in now):
        return now
    known: list[Any] = list(now)
    for _ in range(len(now)):
        try:
            outs = list(abstract(name, step, [*known, *others]))
        except (FunctError, AttributeError, TypeError, ValueError):
            break  # the step insists on arrays, or decides on a value
        if len(outs) != len(now):
            break
        found = [
            typed(x, o.dtype) if is_number(k) and isinstance(o, Tensor) else k
            for x, k, o in zip(now, known, outs, strict=True)
        ]
        if all(a is b for a, b in zip(found, known, strict=True)):
            wider = [asarray(o).dtype if is_number(o) else None for o in outs]
            known = [typed(k, d) for k, d in zip(known, wider, strict=True)]
            break
        known = found
    return [typed(k, None) for k in known]


def leaf_name(path: str) -> str:
    """How an error names a leaf."""
    return f"leaf {path!r}" if path else "the leaf"


def fitting(name: str, what: str, tree: Any, avals: Sequence[ShapeDtype], out: Any) -> list[Any]:
    """The leaves of out, which must have the structure of tree and these types.

    Raises: TreeError, ShapeError, DTypeError, naming the leaf.
    """
    pytree.same_structure(f"{name}: {what}", tree, out)
    leaves = pytree.leaves(out)
    found = [typed(x, a.dtype) for x, a in zip(leaves, avals, strict=True)]
    for k, (x, a) in enumerate(zip(found, avals, strict=True)):
        if x.dtype == a.dtype and tuple(x.shape) == a.shape:
            continue
        shapes = tuple(x.shape) != a.shape
        raise (ShapeError if shapes else DTypeError)(
            f"{name}: {what} must keep its type: {leaf_name(pytree.flatten_with_path(tree)[k][0])}"
            f" must be {a.dtype}{list(a.shape)}, got {x.dtype}{list(x.shape)}",
            fix=None if shapes else f"begin with {x.dtype}, or cast the result to {a.dtype}",
        )
    return found


def boolean_scalar(name: str, what: str, x: Any) -> Any:
    """x as a Tensor, which must be one boolean."""
    x = x if isinstance(x, Tensor) else asarray(x)
    if x.dtype.kind != "b":
        raise DTypeError(
            f"{name}: {what} must be a boolean, got {x.dtype}", fix="compare it, say with != 0"
        )
    if tuple(x.shape) != ():
        raise ShapeError(
            f"{name}: {what} must be a scalar, got shape {tuple(x.shape)}",
            fix="use where for a choice by element, or all or any",
        )
    return x
