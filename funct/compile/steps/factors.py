"""Decompositions of matrices inside of a program: NumPy's loops, by address.

Results are those of eager execution, which computes small matrices of single precision in double.
What LAPACK would not come to an end with is not given to it: the program says at its end that it is
not right, and on the slow way the op raises. Complex matrices have a last axis of two; the phases
of their vectors are turned behind the call.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from funct.compile.fusion.calls import Address, Buffer, Call, Word
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.lower import places_of
from funct.compile.loops.kernel import CONTROL_WORDS
from funct.compile.steps.flat import flat_call
from funct.compile.steps.matrices import call_lapack, converted, refuse
from funct.compile.steps.reflections import has_reflections, reflections
from funct.compile.steps.systems import is_systems
from funct.device.machine_code import offer
from funct.graph import Node, Var
from funct.kernels.cpu.small.phases import turn, turn_rows
from funct.kernels.linalg import lapack
from funct.kernels.linalg.matrices import factored
from funct.kernels.llvm import F64, I64, PTR, Emitter, Module, Value, typed
from funct.ops.least_squares import default_rtol

__all__ = ["is_factors", "lower_factors", "print_factors", "print_qr"]

_DOUBLE = np.dtype(np.float64)
_QR = ("qr_r_raw", "qr_reduced", "qr_complete")


class _Op(Struct, frozen=True):
    """loops: NumPy's, without and with all vectors. pairs: which results of complex matrices are
    so. tells: the number of the result that is NaN where LAPACK fails. finite: it takes nothing
    else. beside: see `lapack.address`.
    """

    loops: tuple[str, ...]
    pairs: tuple[bool, ...]
    tells: int = 0
    finite: bool = True
    beside: str = ""


_OPS = {
    "qr": _Op(_QR, (True, True)),
    "svd": _Op(("svd_s", "svd_f"), (True, False, True)),
    "svdvals": _Op(("svd",), (False,), finite=False),
    "eig": _Op(("eig",), (True, True), beside="D"),
    "eigvals": _Op(("eigvals",), (True,), beside="D"),
    "lstsq": _Op(("lstsq",), (True, False, False), tells=2, beside="i"),
}  # fmt: skip
_COMPLEX = ("eig", "eigvals")  # of real matrices too
_NUMBERS: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32), "f64": _DOUBLE, "i32": np.dtype(np.int32),
}  # fmt: skip


def _op(step: Any) -> tuple[str, bool]:
    """The name of an op, and whether its operands are complex."""
    name = str(step.name)
    of_pairs = name.endswith("_of_pairs")
    return name.removesuffix("_of_pairs").removesuffix("_to_pairs"), of_pairs


def is_factors(step: Any) -> bool:
    """Whether a step is such an op, of matrices that are computed in double."""
    if not isinstance(step, Node) or _op(step)[0] not in _OPS or is_systems(step):
        return False
    name, pairs = _op(step)
    held = [*step.operands, *step.results]
    if not all(isinstance(v, Var) and 0 not in v.shape for v in held):
        return False
    operands: Any = step.operands
    cores = [v.shape[: len(v.shape) - pairs] for v in operands]
    if len({c[:-2] for c in cores}) > 1 or len({v.dtype for v in operands}) > 1:
        return False
    x = operands[0]
    if name == "lstsq" and factored(x.shape, x.dtype.char.upper() if pairs else x.dtype.char):
        return False  # which eager execution finds another way
    if x.dtype.char not in "fd" or any(v.dtype.kind == "c" for v in step.results):
        return False
    if _is_one_large(step):
        return has_reflections(1 + pairs)
    inner = _inner(step)
    return None not in [_address(loop, pairs, inner) for loop in _OPS[name].loops]


def _is_large(step: Any) -> bool:
    """Whether it is of matrices that are computed as they are."""
    x, pairs = step.operands[0], _op(step)[1]
    rows, columns = x.shape[len(x.shape) - pairs - 2 :][:2]
    return bool(rows * columns >= lapack.LARGE)


def _is_one_large(step: Any) -> bool:
    """Whether it is QR of a matrix for which NumPy has no loop."""
    name, pairs = _op(step)
    x = step.operands[0]
    alone = name == "qr" and len(x.shape) == 2 + pairs
    return alone and x.dtype != _DOUBLE and _is_large(step)


def _inner(step: Any) -> str:
    """In which numbers NumPy's loop computes."""
    name, pairs = _op(step)
    single = step.operands[0].dtype != _DOUBLE and _is_large(step)
    loops = _OPS[name].loops
    return "f32" if single and _address(loops[0], pairs, "f32") is not None else "f64"


def _address(loop: str, pairs: bool, inner: str) -> int | None:
    beside = next(op.beside for op in _OPS.values() if loop in op.loops)
    char = "f" if inner == "f32" else "d"
    beside = beside.replace("D", char.upper())
    return lapack.address(loop, char.upper() if pairs else char, beside)


def lower_factors(node: Node, fused: Fused) -> list[Call]:
    """The calls, after copies of what does not lie one after the other."""
    calls, places = places_of(node.operands, fused)
    work = _Work(node, places)
    if work.name != "qr":
        return [*calls, *work.others()]
    return [*calls, *work.qr(forms=fused.views[node.results[0]].root in fused.kept)]


class _Work:
    """One op on its way."""

    def __init__(self, node: Node, places: list[Address]) -> None:
        (self.name, self.pairs), self.node, self.places = _op(node), node, places
        x: Any = node.operands[0]
        self.x, self.out, self.width = x, node.results, 1 + self.pairs
        *lead, self.m, self.n = x.shape[: len(x.shape) - self.pairs]
        self.lead, self.count, self.least = len(lead), math.prod(lead), min(self.m, self.n)
        self.element = "f64" if x.dtype == _DOUBLE else "f32"
        self.inner = _inner(node)

    def qr(self, *, forms: bool) -> list[Call]:
        """Q and R; columns of Q that x says nothing about are turned. forms: somebody reads Q."""
        m, n, least, count, wide = self.m, self.n, self.least, self.count, self.width
        q, r = self.out
        k = q.shape[self.lead + 1]
        turned = [self.turned(q, n)] if forms and self.pairs and n < k else []
        if _is_one_large(self.node):
            return [reflections(self.places[0], q, r, m, n, wide, forms), *turned]
        made = Address(Buffer(count * m * n * wide, _DOUBLE))  # what LAPACK writes over
        room: Word = 0
        if self.element == "f32" and forms:
            room = Address(Buffer(count * m * k * wide, _DOUBLE))
        tau = Address(Buffer(count * least * wide, _DOUBLE))
        shapes = [(m, n), (least,), (m, k)]
        whole = bool(self.node.params[0]) and m > n
        loop = ("qr_complete" if whole else "qr_reduced") if forms else ""
        size = 8 * wide  # bytes of an element
        kernel = ("qr", self.element, loop, wide)
        words = (
            *self.places, Address(q) if forms else 0, Address(r), made, room, tau, count, m, n,
            least, k,
            *_strides(shapes[:2], [size] * 2), *_strides(shapes, [size] * 3),
        )  # fmt: skip
        return [Call(kernel, words, 1, self.out if forms else (r,)), *turned]

    def others(self) -> list[Call]:
        """What is one call of a loop for all matrices."""
        op, pairs = _OPS[self.name], self.pairs or self.name in _COMPLEX
        given = [
            self.array(v, self.pairs, place)
            for v, place in zip(self.node.operands, self.places, strict=True)
        ]
        made = [
            self.array(v, pairs and whole, Address(v))
            for v, whole in zip(self.out, op.pairs, strict=True)
        ]
        dims, tells = [self.m, self.n, self.least], op.tells
        if self.name in _COMPLEX:
            dims = [self.m]
        if self.name == "lstsq":
            columns = given[1].core[1]
            dims, tells = [self.m, self.n, columns, self.least], tells + 1
            given.append(_Array((), 1, "", self.inner, self.least_kept()))
            residuals = _Array((columns,), 1, "", self.inner, 0)
            made = [made[0], residuals, replace(made[1], inner="i32"), made[2]]
        every, count = [*given, *made], self.count
        sizes = [count * a.width * math.prod(a.core) for a in every]
        rooms: list[Word] = [
            0 if a.element == a.inner else Address(Buffer(n, _NUMBERS[a.inner]))
            for n, a in zip(sizes, every, strict=True)
        ]
        cores = [a.core for a in every]
        bytes_ = [_NUMBERS[a.inner].itemsize * a.width for a in every]
        strides = _strides(cores, bytes_)
        if self.name == "lstsq":
            strides[2] = 0  # one number for all
        words = (*[a.place for a in every], *rooms, *sizes, count, *dims, *strides)
        loop = op.loops[bool(self.node.params[0])] if self.name == "svd" else op.loops[0]
        kinds = tuple([(a.element, a.inner) for a in every])
        tells += len(given)
        kernel = ("factors", loop, self.pairs, len(given), kinds, len(dims), op.finite, tells)
        calls = [Call(kernel, words, 1, self.out, checks=True, doubts=True)]
        if self.name == "eig":
            calls.append(self.turned(self.out[1], 0))
        if self.name == "svd" and self.pairs:
            calls += self.turned_pair(self.out[0], self.out[2])
        return calls

    def array(self, v: Any, pairs: bool, place: Address) -> _Array:
        """A Var as NumPy's loop takes it."""
        core = v.shape[self.lead : len(v.shape) - pairs]
        element = "i64" if v.dtype.kind == "i" else "f64" if v.dtype == _DOUBLE else "f32"
        return _Array(tuple(core), 1 + pairs, element, self.inner, place)

    def least_kept(self) -> int:
        """The bits of the least singular value of `lstsq` that counts, by the largest."""
        rtol = self.node.params[0]
        least: Any = default_rtol(self.x) if rtol is None else rtol
        rounded = np.asarray([least, 0], self.x.dtype)  # as eager execution has it
        return int(rounded.astype(_NUMBERS[self.inner]).view(np.int64)[0])

    def turned(self, v: Var, first: int) -> Call:
        """`kernels.linalg.phases.turned`."""
        rows, columns = v.shape[self.lead : self.lead + 2]
        place = Address(v), v.dtype
        words = [place, first, place, rows, columns, 0, 0, self.count]
        return flat_call(turn.fn, words, (v,))

    def turned_pair(self, u: Var, vh: Var) -> list[Call]:
        """`kernels.linalg.phases.turned_pair`."""
        m, k, rows, n = (*u.shape[self.lead : self.lead + 2], *vh.shape[self.lead : self.lead + 2])
        of_u, of_vh = ((Address(v), v.dtype) for v in (u, vh))
        calls = [flat_call(turn.fn, [of_u, 0, of_vh, m, k, rows, n, self.count], (u, vh))]
        if k < rows:
            calls.append(flat_call(turn_rows.fn, [of_vh, k, rows, n, self.count], (vh,)))
        return calls


class _Array(Struct, frozen=True):
    """core: the shape of one matrix. width: numbers of an element. element: what they are, inner:
    what NumPy's loop takes them as. place: where they lie; what has no element lies in its room
    alone, where an operand is one number, by its bits.
    """

    core: tuple[int, ...]
    width: int
    element: str
    inner: str
    place: Word


def _strides(shapes: list[tuple[int, ...]], sizes: list[int]) -> list[int]:
    """Bytes from matrix to matrix of each array, then those of their axes. sizes: of elements."""
    both = list(zip(shapes, sizes, strict=True))
    apart = [size * math.prod(s) for s, size in both]
    return apart + [size * math.prod(s[k + 1 :]) for s, size in both for k in range(len(s))]


def print_qr(module: Module, name: str, element: str, loop: str, width: int) -> None:
    """Add the kernel of `qr`. Frame: places of x, Q and R, of a copy of x, of Q in double and of
    what Q is made of besides; numbers of matrices, rows, columns, the least of both, and columns of
    Q; strides of the two loops. loop: what makes Q; empty where it is not read. width: numbers of
    an element.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    x, q, r, made, wide, tau = f.pointers(frame, 0, 6)
    numbers = f.at(frame, 6, "i64")
    count, m, n, _, k = f.words(numbers, 0, 5)
    wide = q if element == "f64" else wide
    converted(f, x, made, count * m * n * width, element, "f64")
    table = f.allocate(PTR, 3)
    for symbol, at in (("qr_r_raw", 5), *([(loop, 10)] if loop else [])):
        for s, place in enumerate((made, tau, wide)):  # which NumPy's loops move on
            f.store(place, f.at(table, s, "i64"))
        strides = f.at(numbers, at, "i64")
        given = [table, numbers, strides, f.null()]
        call_lapack(f, _symbol(symbol, width > 1, "f64"), symbol, m, n, given)
    if loop and element != "f64":
        converted(f, wide, q, count * m * k * width, "f64", element)

    def row(t: Value, _: list[Value]) -> list[Value]:
        i = f.rem(t, k)
        first = (f.div(t, k) * m + i) * n * width

        def one(j: Value, _: list[Value]) -> list[Value]:
            found = f.load(F64, f.at(made, first + j, "f64"))
            kept = f.select(f.compare("lt", j, i * width), f.constant(F64, 0.0), found)
            f.store(f.convert(kept, element), f.at(r, t * n * width + j, element))
            return []

        f.loop(0, n * width, 1, one)
        return []

    f.loop(0, count * k, 1, row)
    f.ret()


def print_factors(
    module: Module, name: str, loop: str, pairs: bool, given: int,
    kinds: tuple[tuple[str, str], ...], lengths: int, finite: bool, tells: int,
) -> None:  # fmt: skip
    """Add the kernel of another op. Frame: of each array, operands first, its place, its room, and
    how many numbers it has; lengths and strides of NumPy's loop. kinds: of each array, see
    `_Array`. finite: what is not is refused. tells: the array that is NaN where LAPACK fails.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    space, own = f.load(PTR, frame), f.at(frame, CONTROL_WORDS, "i64")
    n = len(kinds)
    places, rooms = (f.pointers(own, s, n) for s in (0, n))
    sizes = f.words(own, 2 * n, n)
    numbers = f.at(own, 3 * n, "i64")
    table = f.allocate(PTR, n)
    used = [p if a == b else r for p, r, (a, b) in zip(places, rooms, kinds, strict=True)]
    for k, (element, inner) in enumerate(kinds):
        f.store(used[k], f.at(table, k, "i64"))
        if k < given and not element:
            f.store(f.word(own, k), used[k])
        elif k < given and element != inner:
            converted(f, places[k], used[k], sizes[k], element, inner)

    def number(k: int, t: Value) -> Value:
        inner = kinds[k][1]
        return f.load(typed(inner), f.at(used[k], t, inner))

    def run() -> list[Value]:
        strides = f.at(numbers, 1 + lengths, "i64")
        rows, columns = (f.word(numbers, k) for k in (1, min(2, lengths)))
        whole = [table, numbers, strides, f.null()]
        call_lapack(f, _symbol(loop, pairs, kinds[0][1]), loop, rows, columns, whole)
        for k, (element, inner) in enumerate(kinds):
            if k >= given and element and element != inner:
                converted(f, used[k], places[k], sizes[k], inner, element)
        refuse(f, sizes[tells], space, lambda t: f.isnan(number(tells, t)))
        return []

    if finite:
        refuse(f, sizes[0], space, lambda t: _not_finite(f, number(0, t)))
        f.branch(f.eq(f.load(I64, space), 0), run, list)
    else:
        run()
    f.ret()


def _not_finite(f: Emitter, v: Value) -> Value:
    return f.isnan(v - v)


def _symbol(loop: str, pairs: bool, inner: str) -> str:
    return f"funct_{loop}_of_{'pairs' if pairs else 'reals'}_{inner}"


for _kind in _OPS.values():
    for _given in itertools.product(_kind.loops, (False, True), ("f32", "f64")):
        offer(_symbol(*_given), functools.partial(_address, *_given))
