"""What parameters of a primitive may be: what the annotations of its own declaration say."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, Literal, Union, get_args, get_origin
from weakref import WeakKeyDictionary

import numpy as np

from funct.core import Primitive, Size

__all__ = ["misfit"]

_NUMBERS: dict[Any, Any] = {
    bool: bool | np.bool_,
    int: int | np.integer | Size,
    float: int | float | np.integer | np.floating,
    complex: int | float | complex | np.number,
}
_kinds: WeakKeyDictionary[Primitive, tuple[Any, ...]] = WeakKeyDictionary()


def misfit(prim: Primitive, params: Sequence[Any], ndim: int) -> str | None:
    """What is wrong with parameters, in words: `axis must be int, got 'x'`; None where all fit.

    ndim: axes of the operand or result that has most of them. A length may be symbolic wherever an
    int is asked for, and NumPy's numbers are numbers. Parameters that are declared with no type, or
    with one that cannot be looked at, may be anything.
    """
    if not prim.params:
        return None
    kinds = _kinds.get(prim)
    if kinds is None:
        kinds = _kinds[prim] = _declared(prim)
    for name, kind, value in zip(prim.params, kinds, params, strict=True):
        if not _fits(value, kind):
            return f"{name} must be {_spelt(kind)}, got {repr(value)[:60]}"
        if name in ("axis", "axes"):
            axes = [a for a in (value if isinstance(value, tuple) else (value,)) if type(a) is int]
            if not all(0 <= a < ndim for a in axes):  # public functions count from behind as well
                return f"{name} must be of {ndim} axes from 0 on, got {value}"
            if len(set(axes)) < len(axes):
                return f"{name} must differ, got {value}"
    return None


def _declared(prim: Primitive) -> tuple[Any, ...]:
    """The types of the parameters, in order; Any where none is known."""
    fn: Callable[..., Any] = prim.fn
    stub = getattr(fn, "__wrapped__", None)
    signature = inspect.signature(stub) if stub is not None else None
    room = vars(sys.modules.get(fn.__module__, types))
    found = []
    for name in prim.params:
        kind = signature.parameters[name].annotation if signature else Any
        if isinstance(kind, str):
            try:
                kind = eval(kind, dict(room))
            except (NameError, AttributeError, TypeError, SyntaxError):
                kind = Any
        found.append(kind)
    return tuple(found)


def _fits(x: Any, kind: Any) -> bool:
    origin, of = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return any(_fits(x, k) for k in of)
    if origin is Literal:
        return isinstance(x, str) and x in of
    if origin is tuple:
        if not isinstance(x, tuple):
            return False
        if of and of[-1] is Ellipsis:
            return all(_fits(v, of[0]) for v in x)
        return len(x) == len(of) and all(map(_fits, x, of))
    kind = origin or kind
    if kind in _NUMBERS:
        return isinstance(x, _NUMBERS[kind]) and (kind is bool or not isinstance(x, bool))
    return kind is Any or not isinstance(kind, type) or isinstance(x, kind)


def _spelt(kind: Any) -> str:
    if kind is np.dtype or get_origin(kind) is np.dtype:
        return "a dtype"
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
