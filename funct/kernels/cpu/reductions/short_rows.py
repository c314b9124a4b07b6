"""Sums, products, extrema, truth and order of short rows that lie side by side, a row in registers.

NumPy begins anew in each row, which takes longer than few elements do. Here a text is printed for
each length. Sums of floats have the order of NumPy's: one by one up to seven terms, else eight
sums side by side, which are added in pairs, and what is left over one by one.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from funct.device import Host, host, printed
from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.prepared import LATER, Job
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.reductions.pairwise import PARTS, SUMS, paired
from funct.kernels.cpu.reductions.segments import FACTORS, segment
from funct.kernels.cpu.reductions.short_orders import DESCENDING, longest, ordered
from funct.kernels.cpu.runners import runner
from funct.kernels.cpu.scratch import fresh
from funct.kernels.cpu.tasks import Units, deal_out_units
from funct.kernels.llvm import I64, Emitter, Module, Value, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ELEMENTS", "ROWS", "Plan", "job", "of_short_rows", "result_of", "text"]

ROWS = 1 << 9  # elements from which on a call costs less than what it saves

_FIELDS = Fields(("x", "y", "tasks", "rows", "pitch"))
_REST = struct.Struct(f"{len(_FIELDS) - 2}q")
_TASK = 1 << 15  # elements that are worth a task
_LONG = 128  # terms from which on NumPy halves a sum first
_WORD = 64  # elements whose comparisons fit in one word
_PAID = 1 << 18  # elements of rows of one length after which their text has paid
ELEMENTS = {
    np.dtype(bool): "u8", np.dtype(np.uint8): "u8", np.dtype(np.int8): "i8",
    np.dtype(np.int32): "i32", np.dtype(np.int64): "i64", np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
}  # fmt: skip
_COMPLEX = "complex sum"
_OF_FLOATS = frozenset(["numbers", "squares"])  # what their sums are of
_BOOL, _INDEX = np.dtype(bool), np.dtype(np.int64)
_ORDERS = frozenset({"sort", "argsort", f"sort{DESCENDING}", f"argsort{DESCENDING}"})
_MOST = {"argmax": _WORD, "argmin": _WORD}
_RESULTS = dict.fromkeys(("any", "all"), _BOOL) | dict.fromkeys(
    ("argmax", "argmin", "argsort", f"argsort{DESCENDING}"), _INDEX
)


def of_short_rows(name: str, x: NDArray[Any], axis: Any, keepdims: bool) -> Any:
    """What NumPy gives for the last axis; None where that is not short, or has not paid yet.

    name: sum, prod, max, min, any, all, argmax, argmin; of floats the sum of their "squares", or of
    the "numbers" among them, where 0 is added for NaN; sort or argsort, stable, maybe with
    DESCENDING behind it. Zeros of both signs are equal to extrema.
    """
    if axis.__class__ is tuple and len(axis) == 1:
        (axis,) = axis
    if axis.__class__ is not int or axis not in (-1, x.ndim - 1):
        return None
    if not x.ndim or x.shape[-1] > _LONG:
        return None
    layout = _layout(name, x.shape, x.dtype, keepdims)
    if layout is None:
        return None
    plan, shape, dtype, rest = layout
    if not x.flags.c_contiguous:
        pitch = _pitch(x) if name != "prod" or x.shape[-1] <= FACTORS else None
        if pitch is None:
            return None
        tasks, rows, terms = _REST.unpack(rest)
        rest = _REST.pack(tasks, rows, pitch * terms // x.shape[-1])
    if not plan.pays(x.size) or not ready(x.size):
        return None
    y = fresh(shape, dtype)
    plan.run(x, y, rest)
    return y


@functools.lru_cache(512)
def _layout(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], keepdims: bool
) -> tuple[Plan, tuple[int, ...], np.dtype[Any], bytes] | None:
    """The plan, the shape and the dtype of what is left, and the job of rows without gaps behind
    the addresses.
    """
    n = shape[-1]
    if len(shape) < 2 or not 1 < n <= _MOST.get(name, _LONG):
        return None
    kind, terms, size = dtype, n, prod(shape)
    if kind in PARTS:
        if name != "sum" or 2 * n > _LONG:
            return None
        name, kind, terms = _COMPLEX, PARTS[kind], 2 * n
    plan = _plan(name, kind, terms)
    if plan is None:
        return None
    left = shape if name in _ORDERS else (*shape[:-1], 1) if keepdims else shape[:-1]
    rows = size // n
    tasks = max(1, min(rows, size // _TASK, 4 * host().cores))
    return plan, left, plan.result if kind is dtype else dtype, _REST.pack(tasks, rows, terms)


def _pitch(x: NDArray[Any]) -> int | None:
    """How many elements after a row of a matrix the next one begins; None where its elements do
    not lie side by side.
    """
    size = x.itemsize
    if x.ndim != 2 or x.strides[1] != size or x.strides[0] % size or not x.flags.aligned:
        return None
    return x.strides[0] // size


def job(name: str, x: NDArray[Any], axis: Any, keepdims: bool) -> Any:
    """What `of_short_rows` runs for arrays that are dense and lie so."""
    if axis.__class__ is tuple and len(axis) == 1:
        (axis,) = axis
    if axis.__class__ is not int or axis not in (-1, x.ndim - 1) or x.shape[-1] > _LONG:
        return None
    layout = _layout(name, x.shape, x.dtype, keepdims)
    return None if layout is None else layout[0].job(layout[1], layout[2], _REST.unpack(layout[3]))


class Plan(Struct, eq=False):
    """Rows of one length, or of so many columns. make: gives the address of the code for a name, an
    element and that number; left: elements to come until their text has paid.
    """

    make: Callable[[str, str, int], int]
    name: str
    element: str
    n: int
    result: np.dtype[Any]
    left: int = _PAID

    def pays(self, size: int) -> bool:
        """Whether this call and those before have paid for the text."""
        if self.left > 0:
            self.left -= size
        return self.left <= 0

    @property
    def run(self) -> Any:
        """The code."""
        return runner(self.make(self.name, self.element, self.n))

    def job(self, shape: tuple[int, ...], dtype: np.dtype[Any], rest: tuple[int, ...]) -> Any:
        """What it runs, once it has paid; LATER before."""
        if self.left > 0:
            return LATER
        return Job(self.make(self.name, self.element, self.n), shape, dtype, rest)


def result_of(name: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a reduction of that name."""
    if name in ("sum", "prod", _COMPLEX) or name in _OF_FLOATS:
        return np.add.reduce(np.empty(0, dtype)).dtype
    return _RESULTS.get(name, dtype)


@functools.lru_cache(512)
def _plan(name: str, dtype: np.dtype[Any], n: int) -> Plan | None:
    element = ELEMENTS.get(dtype)
    if element is None or (dtype == _BOOL and name in ("max", "min", "argmax", "argmin")):
        return None
    if name in _OF_FLOATS and element[0] != "f":
        return None
    result = result_of(name, dtype)
    if name in _ORDERS:
        steps = max(1, n * n // _WORD)  # the text is that long
        if n > longest(name, element):
            return None
        return Plan(_entry, name, element, n, result, steps * _PAID)
    return Plan(_entry, name, element, n, result)


@functools.cache
def _entry(name: str, element: str, n: int) -> int:
    return printed(text, name, element, n, host()).keep().address("reduce")


def text(name: str, element: str, n: int, target: Host) -> str:
    """`reduce(job)` of rows of n elements."""
    module = Module(target)

    def units(f: Emitter, job: Record) -> Units:
        x, y, pitch = job.pointer("x"), job.pointer("y"), job.pitch

        def row(r: Value) -> None:
            start = f.at(x, r * pitch, element)
            if name in _ORDERS:
                result = "i64" if name[0] == "a" else element
                ordered(f, name, start, f.at(y, r * n, result), element, n)
                return
            whole = _WHOLE.get(name)
            found = whole(f, start, element, n) if whole else _parts(f, name, start, element, n)
            f.store(found, f.at(y, r * found.type.lanes, found.type.element))

        return job.rows, row

    deal_out_units(module, "reduce", _FIELDS, units)
    return module.text()


def _sum(
    f: Emitter, x: Value, element: str, n: int, parts: int = 1, terms: str = ""
) -> Value:  # fmt: skip
    """Of numbers that have so many parts, each of which is a sum, or of other terms of theirs."""
    wide = element if element[0] == "f" else element[0] + "64"

    def read(i: int, lanes: int) -> Value:
        v = f.convert(f.load(typed(element, lanes), f.at(x, i, element)), wide)
        if terms == "numbers":
            return f.select(f.isnan(v), f.constant(v.type, 0), v)
        return v * v if terms else v

    ordered = element[0] == "f"
    abreast = SUMS if ordered else f.module.target.vector_bytes // typed(wide).bytes
    whole = n - n % abreast if n >= SUMS else 0
    if whole:
        sums = read(0, abreast)
        for i in range(abreast, whole, abreast):
            sums = sums + read(i, abreast)
        total = paired(f, [sums], parts)[0] if ordered else f.reduce(sums, f.add)
    else:
        total = read(0, parts)
    for i in range(whole or parts, n, parts):
        total = total + read(i, parts)
    return total + 0 if ordered else total


def _product(f: Emitter, x: Value, element: str, n: int) -> Value:
    """Factor by factor, as NumPy has it, but of many."""
    if n > FACTORS:
        return segment(f, "prod", element, x, n)[0]
    wide = element if element[0] == "f" else element[0] + "64"
    factors = [f.convert(f.load(typed(element), f.at(x, i, element)), wide) for i in range(n)]
    return functools.reduce(lambda a, b: a * b, factors)


_WHOLE: dict[str, Callable[..., Value]] = {
    "sum": _sum, "prod": _product, _COMPLEX: functools.partial(_sum, parts=2),
    **{terms: functools.partial(_sum, terms=terms) for terms in _OF_FLOATS},
}  # fmt: skip


def _parts(f: Emitter, name: str, x: Value, element: str, n: int) -> Value:
    """What does not change where some elements are looked at twice: the last vector ends the
    row.
    """
    lanes = min(f.module.target.vector_bytes // typed(element).bytes, 1 << (n.bit_length() - 1))
    starts = [min(i, n - lanes) for i in range(0, n, lanes)]
    parts = [f.load(typed(element, lanes), f.at(x, i, element)) for i in starts]
    if name in ("any", "all"):
        masks = [f.ne(v, 0) if name == "any" else f.eq(v, 0) for v in parts]
        found = f.any(functools.reduce(lambda a, b: a | b, masks))
        return f.convert(found if name == "any" else ~found, "u8")
    combine = f.maximum if name.endswith("max") else f.minimum
    most = f.reduce(functools.reduce(combine, parts), combine)
    return _first(f, parts, starts, most) if name.startswith("arg") else most


def _first(f: Emitter, parts: list[Value], starts: list[int], most: Value) -> Value:
    """Where the first one stands that is `most`, or no number."""
    lanes = parts[0].type.lanes
    found = f.constant(I64, 0)
    same = f.splat(most, lanes) if lanes > 1 else most
    for v, start in zip(parts, starts, strict=True):
        mask = f.eq(v, same)
        if v.type.is_float:
            mask = mask | f.isnan(v)
        bits = f.emit(I64, f"bitcast {mask!r} to i{lanes}")
        if lanes < _WORD:
            bits = f.emit(I64, f"zext i{lanes} {bits.name} to i64")
        found = found | (bits << start)
    return f.intrinsic("cttz", found, tail="i1 true")
