"""What a loop carries keeps its type: the checks, and which dtype a Python number takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct import array as xp
from funct import pytree
from funct.array import Tensor, asarray
from funct.core import FLOATING, INEXACT, Primitive, ShapeDtype, size_values
from funct.errors import DTypeError, FunctError, ShapeError, UnknownValueError
from funct.graph import Capture, GraphTracer, writing, written

__all__ = [
    "abstract", "boolean_scalar", "fitting", "initial", "is_number", "leaf_name", "only_types",
    "settled", "tried", "typed", "unknown",
]  # fmt: skip

_Settled = tuple[tuple[Any, ...], tuple[Any, ...]]  # dtypes, and what loops in the body settled on


class _Types(Capture):
    """A run that only types are wanted of: no loop in it writes its body down, and one whose
    numbers took dtypes in the run before begins with those. A nest would cost a power of its depth.

    earlier, now: what the loops in it settled on, in order.
    """

    __slots__ = ("earlier", "now")

    def __init__(self, label: str, fun: Callable[..., Any], before: Sequence[_Settled]) -> None:
        super().__init__(label, fun)
        self.earlier = iter(before)
        self.now: list[_Settled] = []


def _rank(dtype: np.dtype[Any]) -> int:
    """How much the kind of a dtype can hold: booleans, integers, floating, complex numbers."""
    if dtype in FLOATING:
        return 2
    return 3 if dtype in INEXACT else int(dtype.kind != "b")


def is_number(x: Any) -> bool:
    """Whether x is a Python number, whose dtype is still open."""
    return type(x) in (bool, int, float, complex)


def initial(x: Any) -> Any:
    """A leaf of what a loop begins with: an array, or a Python number."""
    return x if isinstance(x, Tensor) or is_number(x) else asarray(x)


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
    return _abstract(_Types(name, fun, ()), fun, args)


def _abstract(level: _Types, fun: Callable[..., Any], args: Sequence[Any]) -> Any:
    ins = [
        x if is_number(x) else GraphTracer.unknown(level, level.fresh(x.shape, x.dtype))
        for x in args
    ]
    with written(level, body=True):
        return fun(*ins)


class _Trial(Capture):
    """A step that is not taken: what it asks for has an answer, and what would act does not."""

    def run(self, prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """Write the op down, unless it acts."""
        if prim.effect:
            raise UnknownValueError(f"{prim.name}: the step that would do this is not taken")
        return super().run(prim, args, params)


def tried(name: str, fun: Callable[..., Any], avals: Sequence[ShapeDtype]) -> Any:
    """What fun gives where it asks for values and there are none, as `abstract`: it gets ones."""
    level = _Trial(name, fun)
    ones = [xp.ones(size_values(a.shape), dtype=a.dtype) for a in avals]
    ins = [GraphTracer(level, level.fresh(x.shape, x.dtype), x, None, 0) for x in ones]
    with written(level, body=True):
        return fun(*ins)


def only_types() -> bool:
    """Whether nothing but types is wanted of what runs."""
    return isinstance(writing(), _Types)


def unknown(avals: Sequence[ShapeDtype]) -> list[Any]:
    """Values of these types, where only types are wanted."""
    level = writing()
    assert level is not None, "where only types are wanted something is written down"
    return [GraphTracer.unknown(level, level.fresh(a.shape, a.dtype)) for a in avals]


def settled(
    name: str,
    leaves: Sequence[Any],
    step: Callable[..., Sequence[Any]],
    others: Sequence[ShapeDtype] = (),
) -> list[Any]:
    """Initial leaves as arrays: a Python number takes the dtype that one step gives it.

    leaves: arrays, and numbers. step: from the leaves of the carry, and others of these types, to
    the leaves of the next one.
    """
    now = list(leaves)
    if not any(is_number(x) for x in now):
        return now
    around = writing()
    if not isinstance(around, _Types):
        return _settle(name, now, now, step, others, ())[0]
    dtypes, before = next(around.earlier, ((), ()))
    begun = now
    if len(dtypes) == len(now):
        begun = [x if d is None else typed(x, d) for x, d in zip(now, dtypes, strict=True)]
    found, last, inside = _settle(name, now, begun, step, others, before)
    around.now.append((tuple([None if is_number(x) else x.dtype for x in last]), inside))
    return found


def _settle(
    name: str, now: list[Any], begun: list[Any], step: Any, others: Any,
    before: tuple[_Settled, ...],
) -> tuple[list[Any], list[Any], tuple[_Settled, ...]]:
    """The leaves as arrays; those that the last run began with; what loops in it settled on.

    begun: `now` with numbers that took dtypes in the run before.
    """
    known = begun
    for _ in range(len(now)):
        level = _Types(name, step, before)
        try:
            outs = list(_abstract(level, step, [*known, *others]))
        except (FunctError, AttributeError, TypeError, ValueError):
            outs = []  # the step insists on arrays, or decides on a value
        if begun is not now and not _keeps(known, now, outs):
            return _settle(name, now, now, step, others, ())
        if len(outs) != len(now):
            break
        before = tuple(level.now)
        found = [
            typed(x, o.dtype) if is_number(k) and isinstance(o, Tensor) else k
            for x, k, o in zip(now, known, outs, strict=True)
        ]
        if all(a is b for a, b in zip(found, known, strict=True)):
            wider = [asarray(o).dtype if is_number(o) else None for o in outs]
            ends = [typed(k, d) for k, d in zip(known, wider, strict=True)]
            return [typed(k, None) for k in ends], known, before
        known = found
    return [typed(k, None) for k in known], known, before


def _keeps(known: list[Any], now: list[Any], outs: list[Any]) -> bool:
    """Whether a step gives numbers that began with a dtype that dtype again."""
    return len(outs) == len(now) and all(
        k is x or (isinstance(o, Tensor) and o.dtype == k.dtype)
        for k, x, o in zip(known, now, outs, strict=True)
    )


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
