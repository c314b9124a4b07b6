"""Functions of elements that other code computes on large arrays than NumPy does.

A call on few elements does not ask how many there are: the fast functions (`fast.py`) call NumPy
until the first large array comes, of a dtype for which there is other code. From then on what they
call chooses by size. That is put into the cells `raw` and `beside` of their closures.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from funct.core import FLOATING, Primitive
from funct.device.fork import whole
from funct.device.memory import LARGE, serve
from funct.kernels.elementwise.functions import as_it_is, choice
from funct.kernels.elementwise.thresholds import ASKING, EXACT, FAR, MANY, SHORT, SLOW
from funct.kernels.table import find

__all__ = ["NOTED", "SMALL_ONLY", "arrived", "asking", "chosen", "limiting"]

NOTED = 2 * MANY  # bytes of an array that may change what functions ask for
SMALL_ONLY: list[tuple[Primitive, Any]] = []  # functions of elements that do not choose yet
_choosing = whole(threading.Lock())
_DOUBLE, _SINGLE = np.dtype(np.float64), np.dtype(np.float32)
_LIMITED = frozenset([_DOUBLE, _SINGLE, *map(np.dtype, "bhilqBHILQ")])
_SPREAD = frozenset({_SINGLE, _DOUBLE, np.dtype(np.int32), np.dtype(np.int64)})


def arrived(raw: Any) -> None:
    """What is done where a bare array of `NOTED` bytes or more is made, or comes from outside."""
    if raw.nbytes >= LARGE:
        serve(raw.nbytes)
    if SMALL_ONLY:
        dtype = raw.dtype
        if dtype.itemsize == 2 and dtype in FLOATING:
            _choose(dtype)
        elif raw.nbytes >= LARGE and raw.ndim > 1 and raw.shape[-1] <= SHORT and dtype in _SPREAD:
            _choose(_DOUBLE)


def _choose(dtype: np.dtype[Any]) -> None:
    """Let functions of elements choose, by size, between NumPy and loops, where there are any.

    Before there are large arrays of halves, or of short rows, they do not ask: small calls would
    pay for it.
    """
    choice = find("elementwise", dtype)
    if choice is as_it_is:
        return
    with _choosing:
        while SMALL_ONLY:
            prim, op = SMALL_ONLY.pop()
            _let_call(op, _at_first(prim, op, choice))


def _at_first(prim: Primitive, op: Any, choice: Callable[..., Any]) -> Callable[..., Any]:
    """What chooses at its first call: to do so for all functions at once takes milliseconds."""

    def first(*args: Any) -> Any:
        raw = choice(prim.name, prim.raw, len(prim.rules))
        _let_call(op, raw)
        return raw(*args)

    return first


def _let_call(op: Any, raw: Callable[..., Any]) -> None:
    """raw is what a fast function calls on bare arrays from now on."""
    _cell_of(op, "raw").cell_contents = raw
    if "beside" in op.__code__.co_freevars:
        _cell_of(op, "beside").cell_contents = raw


def _cell_of(op: Any, name: str) -> Any:
    """The cell of what a fast function calls."""
    return op.__closure__[op.__code__.co_freevars.index(name)]


def chosen(prim: Primitive) -> Callable[..., Any]:
    """What the fast function of a primitive calls on bare arrays, now and later."""
    return _asked(prim.name, prim.fn) if prim.name in ASKING else prim.raw


@functools.cache
def _asked(name: str, op: Any) -> Callable[..., Any]:
    cell = _cell_of(op, "raw")

    def now(*args: Any) -> Any:
        return cell.cell_contents(*args)

    return now


def asking(prim: Primitive, make: Callable[..., Any]) -> Callable[..., Any]:
    """The fast function of a primitive whose values on large arrays are other code's, which is
    loaded when there is one.
    """
    plain = prim.raw
    beside = np.where if plain is choice else plain  # without a look at integers of Python's
    least = MANY if prim.name in SLOW - EXACT else FAR

    def one(x: Any) -> Any:
        return plain(x) if x.size < least else large(x)

    def two(x: Any, y: Any) -> Any:
        if (x.__class__ is ndarray and x.size >= least) or (
            y.__class__ is ndarray and y.size >= least
        ):
            return large(x, y)
        return plain(x, y)

    def three(x: Any, y: Any, z: Any) -> Any:
        if x.size >= least:
            return large(x, y, z)
        return (plain if y.__class__ is int or z.__class__ is int else beside)(x, y, z)

    def large(*args: Any) -> Any:
        if all(a.dtype.kind in "biufc" for a in args if a.__class__ is ndarray):
            _choose(_DOUBLE)
        chosen = _cell_of(op, "raw").cell_contents
        return (plain if chosen is first else chosen)(*args)

    first: Callable[..., Any] = (one, two, three)[len(prim.rules) - 1]
    op = make(prim, first)
    return op


def limiting(prim: Primitive, make: Callable[..., Any]) -> Callable[..., Any]:
    """The same of a maximum or minimum, which asks only where a number meets an array."""
    plain = prim.raw

    def beside(x: Any, y: Any) -> Any:
        array = x if x.__class__ is ndarray else y
        if array.size >= FAR and array.dtype in _LIMITED:
            _choose(_DOUBLE)
            return _cell_of(op, "raw").cell_contents(x, y)
        return plain(x, y)

    op = make(prim, plain, beside)
    return op
