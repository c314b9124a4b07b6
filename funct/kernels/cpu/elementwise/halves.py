"""float16 and bfloat16 on large arrays, which NumPy computes element by element.

A function of one such number has 65,536 values, so what computes it otherwise is asked for all of
them: whichever is quickest of the ways that give the same is taken. They are the plain function
itself, which NumPy may have in vectors, a table of its values, and vectors of float32
(`vector_loops.py`) rounded once. Several operands meet in float32 too, as in NumPy's loops. So the
bits are those of the plain functions, but for what a NaN holds beside its sign; nothing warns. Only
two operands of a function that is rounded in float32 itself may give the other number where the
result lies between two, within the 2 ulp that float32 has: NumPy takes ten times as long for these.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from funct.kernels.cpu.elementwise.vector_loops import OPS, SIGNS, amended, combined, operand
from funct.kernels.cpu.loops import parallel
from funct.kernels.cpu.scratch import fresh
from funct.kernels.llvm.functions import FUNCTIONS
from funct.kernels.table import permitted
from funct.settings import config

__all__ = ["HALVES", "TRUTH", "in_vectors", "look_up", "other_way", "tabled"]

_BRAIN = np.dtype(ml_dtypes.bfloat16)
HALVES = frozenset([np.dtype(np.float16), _BRAIN])
_CODES = 1 << 16
_MIXED = 40503  # an odd number, whose multiples visit all codes, in no order
_ODD = 8  # numbers that are compared with each
_PART = 1 << 14  # elements that are worth a task
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_IDENTITIES = frozenset({
    "checkpoint_name", "conj", "imag", "keep_float", "real", "settled", "stop_gradient",
})  # fmt: skip
TRUTH = frozenset({
    "equal", "greater", "greater_equal", "isfinite", "isinf", "isnan", "less", "less_equal",
    "logical_and", "logical_not", "logical_or", "logical_xor", "not_equal",
})  # fmt: skip
_STEPS = frozenset({"nextafter"})  # of which those of float32 are smaller
_EXTREMA = frozenset({"maximum", "minimum"})  # of two zeros bfloat16 takes the second one
_NAMES = {"sigmoid": "expit"}  # where the table of functions has SciPy's
_BOOL, _BITS = np.dtype(bool), np.dtype(np.uint16)


def other_way(name: str, raw: Callable[..., Any], operands: int) -> Callable[..., Any] | None:
    """What gives the same for operands of which one at least is an array of halves."""
    if name in OPS or (operands == 2 and name in FUNCTIONS and name not in _STEPS):
        return _met(name, raw)
    return tabled(raw, name) if operands == 1 and name not in _IDENTITIES else None


def tabled(raw: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """What gives raw, the function of that name, of an array of halves, in the quickest way once
    they are so many that it pays to look for it.
    """
    ways: dict[Any, Callable[[Any], Any]] = {}
    waiting = dict.fromkeys(HALVES, _CODES)  # elements after which a table has paid

    def large(x: Any) -> Any:
        kind = x.dtype
        way = ways.get(kind)
        if way is None:
            waiting[kind] -= x.size
            if waiting[kind] > 0 or not permitted("llvm"):
                return raw(x)
            way = ways[kind] = _quickest(raw, name, kind)
        return way(x) if permitted("llvm") else raw(x)

    return large


def in_vectors(raw: Callable[..., Any], name: str) -> Callable[[Any], str | None]:
    """What gives the name by which vectors have raw's bits on arrays of halves like x; None where
    there is none, and before they are so many that it pays to look for it.
    """
    waiting = dict.fromkeys(HALVES, _CODES)
    known: dict[Any, str | None] = {}

    def named(x: Any) -> str | None:
        kind = x.dtype
        if kind not in known:
            waiting[kind] -= x.size
            if waiting[kind] > 0:
                return None
            values = np.arange(_CODES, dtype=np.uint16).view(kind)
            with np.errstate(all="ignore"):
                table = np.ascontiguousarray(raw(values))
                told = table.dtype == kind and name in FUNCTIONS
                known[kind] = _with_bits_of(table, name, values) if told else None
        return known[kind]

    return named


def _quickest(raw: Callable[..., Any], name: str, kind: Any) -> Callable[[Any], Any]:
    """Of the ways with raw's bits for every number of that dtype the one that takes least time."""

    def plain(x: Any) -> Any:
        with np.errstate(all="ignore"):
            return raw(x if x.flags.forc else x.copy())  # of others NumPy has no vectors

    codes = np.arange(_CODES, dtype=np.uint16)
    values = codes.view(kind)
    table = np.ascontiguousarray(plain(values))
    ways: list[Callable[[Any], Any]] = [partial(_looked_up, table), plain]
    name = _NAMES.get(name, name)
    if name in FUNCTIONS and table.dtype == kind:
        with np.errstate(all="ignore"):
            own = _with_bits_of(table, name, values)
        ways += [] if own is None else [partial(_in_vectors, own)]
    usual = (codes * np.uint16(_MIXED) * np.float32(3 / _CODES)).astype(kind)

    def time(way: Callable[[Any], Any]) -> float:
        return min(timeit.repeat(lambda: way(usual), number=1, repeat=5))

    with config.using(threads=1):
        return min(ways, key=time)


def _with_bits_of(table: Any, name: str, values: Any) -> str | None:
    """What a function in vectors is called that gives the table at all numbers: the few at which it
    rounds otherwise are told to it. None where they are many.
    """
    unknown, below = np.isnan(values), np.signbit(table)
    signed, negative = (bool((below & u).any()) for u in (unknown, np.isnan(table) & ~unknown))
    odd: list[tuple[float, float]] = []
    for _ in range(2):
        own = amended(name, odd, signed, negative)
        found = _in_vectors(own, values)
        both = np.isnan(found) & np.isnan(table) & (np.signbit(found) == below)
        differ = (found.view(_BITS) != table.view(_BITS)) & ~both
        if not differ.any():
            return own
        if differ.sum() > _ODD:
            return None
        odd = [(float(x), float(y)) for x, y in zip(values[differ], table[differ], strict=True)]
    return None


def _in_vectors(name: str, x: Any) -> Any:
    return combined(name, (x,), x.dtype)


def _looked_up(table: Any, x: Any) -> Any:
    """The place in the table of each element."""
    if x.flags.f_contiguous and not x.flags.c_contiguous:
        return _looked_up(table, x.T).T
    y = fresh(x.shape, table.dtype)
    word = _WORDS[table.itemsize]
    n = x.size
    codes = np.ascontiguousarray(x).view(np.uint16).reshape(-1)
    tasks = -(-n // _PART)
    look_up(codes, table.view(word), y.view(word).reshape(-1), n, _PART, tasks)
    return y


@parallel
def look_up(x: Any, table: Any, y: Any, n: int, part: int, task: int) -> None:
    """y = table[x], a part of it."""
    for i in range(task * part, min((task + 1) * part, n)):
        y[i] = table[x[i].astype(np.int64)]


def _met(name: str, raw: Callable[..., Any]) -> Callable[..., Any]:
    def large(*args: Any) -> Any:
        kind = next(a.dtype for a in args if a.__class__ is np.ndarray and a.dtype in HALVES)
        first = _BOOL if name == "where" else kind
        operands = [operand(a, kind if k else first) for k, a in enumerate(args)]
        if not all(a.__class__ is np.ndarray for a in operands) or not permitted("llvm"):
            return raw(*args)
        if name in SIGNS:
            return combined(f"{name} of bits", [a.view(_BITS) for a in operands], _BITS).view(kind)
        if name != "where":
            if kind is _BRAIN and name in _EXTREMA:
                operands.reverse()
            return combined(name, operands, _BOOL if name in TRUTH else kind)
        bits = [operands[0], *[a.view(np.uint16) for a in operands[1:]]]
        return combined(name, bits, _BITS).view(kind)

    return large
