"""Convolution with one channel per group, and both of its adjoints: plane by plane.

A plane is copied to scratch with zeros around it and taken flat: element q of the result is
Σ_t w[t] plane[q + offset t], for all q at once, also between the rows, where nobody looks. So no
row, however short, has an end, and any kernel is a table of offsets.

With a stride, the plane is dealt into one plane for each residue of its coordinates, after which
the steps are 1 again; in the adjoint zeros are put between the elements of g instead.

Note [Groups]
    A load that spans several recent stores waits until they are in the cache. So small planes are
    filled, combined and written in groups, not one after the other.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from funct.device import PARALLEL, Code, Host, assemble, host
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.axes import three
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.slab import clear, each
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["convolution", "convolution_input", "convolution_weight"]

Sizes = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]
Three = tuple[int, int, int]

_ELEMENT = {"float32": "f32", "float64": "f64"}
_VECTORS = 8  # sums at a time: enough to cover the latency, half of the registers
_TAPS = (9, 4, 1)  # taps of w's adjoint at a time, whose sums are registers
_TASKS = 4  # per core
_GROUP_BYTES = 16 << 10  # half of the first-level cache

# A copy of planes: pieces are runs along the last axis, rectangles of (count0, count1).
SPREAD = (
    "pieces", "n_pieces", "plane_words", "flat", "flat_bytes",
)  # fmt: skip
PIECE = Fields((
    "count0", "count1", "count2", "from", "from0", "from1", "from2", "to", "to0", "to1", "to2",
))  # fmt: skip
JOB = Fields((
    "tasks", "units", "outputs", "terms", "shared", "inputs", "x", "w", "y", "scratch",
    "scratch_step", *SPREAD, "group", "flat_words", "sums", "sum_words", "taps", "n_taps", "length",
    "rows0", "rows1", "row", "pitch0", "pitch1", "result_words",
))  # fmt: skip
WEIGHT = Fields((
    "outputs", "shared", "images", "inputs", "x", "g", "w", "scratch", "scratch_step", *SPREAD,
    "g_flat", "g_flat_bytes", "g_words", "g_piece", "sums", "taps", "n_taps", "length", "tasks",
))  # fmt: skip


def text(element: str, target: Host) -> str:
    """`planes(job)` and `weights(job)`."""
    module = Module(target)
    module.declare("@funct_parallel", PARALLEL)
    lanes = target.vector_bytes // typed(element).bytes
    _define_planes(module, element, lanes)
    _define_weights(module, element, lanes)
    for name, work, fields in (("planes", "range", JOB), ("weights", "outputs", WEIGHT)):
        f = module.function(name, [("job", PTR)])
        (job,) = f.arguments
        tasks = Record(f, fields, job).tasks
        f.line(f"call void @funct_parallel(ptr @{work}, {job!r}, {tasks!r})")
        f.ret()
    return module.text()


class _Plane:
    """Prints copies between planes."""

    def __init__(self, f: Emitter, element: str, lanes: int) -> None:
        self.f, self.element, self.lanes = f, element, lanes
        self.vector = typed(element, lanes)

    def at(self, pointer: Value, offset: Value | int) -> Value:
        return self.f.at(pointer, offset, self.element)

    def spread(self, x: Value, pieces: Value, n_pieces: Value | int, to: Value) -> None:
        """Copy the pieces of x to their places."""
        f = self.f

        def piece(k: Value) -> None:
            p = Record(f, PIECE, f.at(pieces, k * len(PIECE), "i64"))
            source, target = self.at(x, getattr(p, "from")), self.at(to, p.to)

            def one(i: Value) -> None:
                def two(j: Value) -> None:
                    first = self.at(source, i * p.from0 + j * p.from1)
                    place = self.at(target, i * p.to0 + j * p.to1)
                    self.row(first, p.from2, place, p.to2, p.count2)

                each(f, 0, p.count1, two)

            each(f, 0, p.count0, one)

        each(f, 0, n_pieces, piece)

    def row(self, source: Value, step: Value, to: Value, to_step: Value, count: Value) -> None:
        """Copy elements in steps; by vectors where they are adjacent, or every second is taken."""
        f = self.f
        dense = f.eq(to_step, 1) & f.eq(step, 1)
        wide = count >= self.lanes

        def scalars() -> list[Value]:
            def one(k: Value) -> None:
                x = f.load(self.vector.scalar, self.at(source, k * step))
                f.store(x, self.at(to, k * to_step))

            each(f, 0, count, one)
            return []

        def second() -> list[Value]:
            half = self.lanes // 2
            n = self.lanes
            picked = [*range(0, n, 2), *range(n + 1, 2 * n, 2)]
            assert len(picked) == 2 * half

            def take(k: Value) -> Value:
                low = f.load(self.vector, self.at(source, k << 1))
                # from one before: nothing behind the last element is read
                high = f.load(self.vector, self.at(self.at(source, k << 1), n - 1))
                return f.shuffle(low, high, picked)

            self._overlapping(to, count, take)
            return []

        def adjacent() -> list[Value]:
            self._overlapping(to, count, lambda k: f.load(self.vector, self.at(source, k)))
            return []

        def short() -> list[Value]:
            mask = f.first_lanes(self.lanes, count)
            f.store(f.load(self.vector, source, mask), to, mask)
            return []

        def stepping() -> list[Value]:
            every_second = wide & f.eq(to_step, 1) & f.eq(step, 2)
            return f.branch(every_second, second, scalars)

        f.branch(dense, lambda: f.branch(wide, adjacent, short), stepping)

    def _overlapping(self, to: Value, count: Value, take: Callable[[Value], Value]) -> None:
        f = self.f
        last = count - self.lanes

        def one(k: Value) -> None:
            k = f.select(k > last, last, k)
            f.store(take(k), self.at(to, k))

        each(f, 0, count, one, self.lanes)


def _define_planes(module: Module, element: str, lanes: int) -> None:
    """`range(job, task)`: a range of the planes of the result."""
    f = module.function("range", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    plane = _Plane(f, element, lanes)
    scratch = plane.at(job.pointer("scratch"), task * job.scratch_step)
    flat, sums = plane.at(scratch, job.flat), plane.at(scratch, job.sums)
    clear(f, flat, job.flat_bytes)
    start = f.div(task * job.units, job.tasks)
    stop = f.div((task + 1) * job.units, job.tasks)

    def some(first: Value) -> None:
        """A group of planes; see Note [Groups]."""
        count = f.min(job.group, stop - first)

        def term(j: Value) -> None:
            def fill(i: Value) -> None:
                image, k = numbers(first + i, j)
                number = image * job.inputs + f.div(k, job.shared)
                x = plane.at(job.pointer("x"), number * job.plane_words)
                spread_to = plane.at(flat, i * job.flat_words)
                plane.spread(x, job.pointer("pieces"), job.n_pieces, spread_to)

            def combine(i: Value) -> None:
                _, k = numbers(first + i, j)
                w = plane.at(job.pointer("w"), k * job.n_taps)
                one_flat = plane.at(flat, i * job.flat_words)
                one_sum = plane.at(sums, i * job.sum_words)
                _combine(f, plane, one_flat, job, w, one_sum, f.ne(j, 0))

            each(f, 0, count, fill)
            each(f, 0, count, combine)

        def numbers(u: Value, j: Value) -> tuple[Value, Value]:
            """The image, and the row of w."""
            image = f.div(u, job.outputs)
            return image, (u - image * job.outputs) * job.terms + j

        def write(i: Value) -> None:
            y = plane.at(job.pointer("y"), (first + i) * job.result_words)
            source = plane.at(sums, i * job.sum_words)
            one = f.constant(I64, 1)

            def rows(a: Value) -> None:
                def row(b: Value) -> None:
                    start = plane.at(source, a * job.pitch0 + b * job.pitch1)
                    plane.row(start, one, plane.at(y, (a * job.rows1 + b) * job.row), one, job.row)

                each(f, 0, job.rows1, row)

            each(f, 0, job.rows0, rows)

        each(f, 0, job.terms, term)
        each(f, 0, count, write)

    each(f, start, stop, some, job.group)
    f.ret()


def _combine(
    f: Emitter, plane: _Plane, flat: Value, job: Record, w: Value, sums: Value, add: Value
) -> None:
    """sums[q] = (sums[q] or 0) + Σ_t w[t] flat[q + offset t]."""
    taps, n_taps = job.pointer("taps"), job.n_taps

    def run(q: Value) -> None:
        here = plane.at(sums, q)
        places = [plane.at(here, v * plane.lanes) for v in range(_VECTORS)]
        begin = f.branch(
            add,
            lambda: [f.load(plane.vector, p) for p in places],
            lambda: [f.constant(plane.vector, 0) for _ in places],
        )

        def tap(t: Value, held: list[Value]) -> list[Value]:
            pair = f.at(taps, t << 1, "i64")
            x = plane.at(plane.at(flat, q), f.load(I64, pair))
            weight = plane.at(w, f.load(I64, f.at(pair, 1, "i64")))
            factor = f.splat(f.load(plane.vector.scalar, weight), plane.lanes)
            return [
                f.fma(f.load(plane.vector, plane.at(x, v * plane.lanes)), factor, s)
                for v, s in enumerate(held)
            ]

        for p, s in zip(places, f.loop(0, n_taps, 1, tap, begin)):
            f.store(s, p)

    each(f, 0, job.length, run, _VECTORS * plane.lanes)


def _define_weights(module: Module, element: str, lanes: int) -> None:
    """`outputs(job, output)`: the weights of one output, over all images in order."""
    f = module.function("outputs", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, WEIGHT, f.arguments[0]), f.arguments[1]
    plane = _Plane(f, element, lanes)
    scratch = plane.at(job.pointer("scratch"), task * job.scratch_step)
    flat, g_flat, sums = (plane.at(scratch, v) for v in (job.flat, job.g_flat, job.sums))
    clear(f, flat, job.flat_bytes)
    clear(f, g_flat, job.g_flat_bytes)
    start = f.div(task * job.outputs, job.tasks)
    stop = f.div((task + 1) * job.outputs, job.tasks)

    def output(o: Value) -> None:
        clear(f, sums, job.n_taps * (lanes * plane.vector.bytes))

        def image(n: Value) -> None:
            number = n * job.inputs + f.div(o, job.shared)
            x = plane.at(job.pointer("x"), number * job.plane_words)
            plane.spread(x, job.pointer("pieces"), job.n_pieces, flat)
            g = plane.at(job.pointer("g"), (n * job.outputs + o) * job.g_words)
            plane.spread(g, job.pointer("g_piece"), 1, g_flat)
            _correlate(f, plane, flat, g_flat, job, sums)

        each(f, 0, job.images, image)

        def tap(t: Value) -> None:
            total = f.reduce(f.load(plane.vector, plane.at(sums, t * lanes)), f.add)
            f.store(total, plane.at(job.pointer("w"), o * job.n_taps + t))

        each(f, 0, job.n_taps, tap)

    each(f, start, stop, output)
    f.ret()


def _correlate(f: Emitter, plane: _Plane, flat: Value, g: Value, job: Record, sums: Value) -> None:
    """sums[t] += Σ_q flat[q + offset t] g[q], lane by lane."""
    start: Value = f.constant(I64, 0)
    for count in _TAPS:
        stop = start + f.div(job.n_taps - start, count) * count

        def group(t: Value, count: int = count) -> None:
            pairs = [f.at(job.pointer("taps"), (t + k) << 1, "i64") for k in range(count)]
            rows = [plane.at(flat, f.load(I64, p)) for p in pairs]
            places = [plane.at(sums, (t + k) * plane.lanes) for k in range(count)]

            def step(q: Value, held: list[Value]) -> list[Value]:
                y = f.load(plane.vector, plane.at(g, q))
                return [
                    f.fma(f.load(plane.vector, plane.at(x, q)), y, s) for x, s in zip(rows, held)
                ]

            begin = [f.load(plane.vector, p) for p in places]
            for p, s in zip(places, f.loop(0, job.length, plane.lanes, step, begin)):
                f.store(s, p)

        each(f, start, stop, group, count)
        start = stop


@attrs.frozen
class _Geometry:
    """size: of the plane that is read. out: of what is written, *T. All with three axes."""

    size: Three
    out: Three
    kernel: Three
    stride: Three
    low: Three
    dilation: Three


@attrs.frozen(eq=False)
class _Flat:
    """The flat plane: pieces to copy, its pitches, its words, offsets of the taps."""

    pieces: NDArray[np.int64]
    pitches: tuple[int, int]
    words: int
    offsets: list[int]
    length: int  # of the result, flat


def _dealt(geo: _Geometry) -> _Flat:
    """Of a convolution: one plane per residue."""
    shifts = [
        [k * d // s for k in range(n)] for n, s, d in zip(geo.kernel, geo.stride, geo.dilation)
    ]
    extent = [t + max(sh) for t, sh in zip(geo.out, shifts)]
    pitches = (extent[1] * extent[2], extent[2])
    plane = prod(extent)
    strides = (geo.size[1] * geo.size[2], geo.size[2], 1)
    pieces = []
    for number, residues in enumerate(itertools.product(*[range(s) for s in geo.stride])):
        ranges = []
        for n, e, s, low, r in zip(geo.size, extent, geo.stride, geo.low, residues):
            first = max(0, -(-(low - r) // s))
            stop = min(e, (n - 1 + low - r) // s + 1)
            ranges.append((first, max(0, stop - first), first * s + r - low))
        if all(c for _, c, _ in ranges):
            to = number * plane + sum([f * p for (f, _, _), p in zip(ranges, (*pitches, 1))])
            pieces.append([
                *[c for _, c, _ in ranges],
                sum([i * p for (_, _, i), p in zip(ranges, strides)]),
                *[s * p for s, p in zip(geo.stride, strides)], to, *pitches, 1,
            ])  # fmt: skip
    offsets = []
    for taps in itertools.product(*[range(n) for n in geo.kernel]):
        number, at = 0, 0
        for k, s, d, p in zip(taps, geo.stride, geo.dilation, (*pitches, 1)):
            number = number * s + k * d % s
            at += k * d // s * p
        offsets.append(number * plane + at)
    return _flat(geo, pieces, pitches, plane * prod(geo.stride), offsets)


def _inserted(geo: _Geometry) -> _Flat:
    """Of the adjoint, which reads g with zeros in between and the taps backwards."""
    reach = [d * (k - 1) for d, k in zip(geo.dilation, geo.kernel)]
    extent = [t + r for t, r in zip(geo.out, reach)]
    pitches = (extent[1] * extent[2], extent[2])
    strides = (geo.size[1] * geo.size[2], geo.size[2], 1)
    ranges = []
    for n, e, s, low, r in zip(geo.size, extent, geo.stride, geo.low, reach):
        first = max(0, -((r - low) // s))  # the first element that lies in the plane
        stop = min(n, (e - 1 - (r - low)) // s + 1)
        ranges.append((first, max(0, stop - first), first * s + r - low))
    piece = [
        *[c for _, c, _ in ranges], sum([f * p for (f, _, _), p in zip(ranges, strides)]), *strides,
        sum([i * p for (_, _, i), p in zip(ranges, (*pitches, 1))]),
        *[s * p for s, p in zip(geo.stride, (*pitches, 1))],
    ]  # fmt: skip
    offsets = [
        sum([k * d * p for k, d, p in zip(taps, geo.dilation, (*pitches, 1))])
        for taps in itertools.product(*[range(n) for n in geo.kernel])
    ]
    return _flat(geo, [piece], pitches, prod(extent), offsets)


def _flat(
    geo: _Geometry,
    pieces: list[list[int]],
    pitches: tuple[int, int],
    words: int,
    offsets: list[int],
) -> _Flat:
    length = (geo.out[0] - 1) * pitches[0] + (geo.out[1] - 1) * pitches[1] + geo.out[2]
    table = np.array(pieces, np.int64).reshape(-1, len(PIECE))
    return _Flat(table, pitches, words, offsets, length)


def _lines(words: int, lanes: int) -> int:
    """Words for so many, and for the vectors that reach beyond, in whole lines."""
    return -(-(words + (_VECTORS + 1) * lanes) // 16) * 16


@attrs.frozen(eq=False)
class _Plan:
    fields: dict[str, int]
    tables: tuple[NDArray[np.int64], ...]


@functools.lru_cache(256)
def _planes_plan(geo: _Geometry, inserted: bool, lanes: int, word: int) -> _Plan:
    flat = (_inserted if inserted else _dealt)(geo)
    order = range(len(flat.offsets))
    taps = np.array([flat.offsets, order[::-1] if inserted else order]).T.copy()
    plane, sums = _lines(flat.words, lanes), _lines(flat.length, lanes)
    group = max(1, _GROUP_BYTES // ((plane + sums) * word))
    fields = {
        "pieces": address(flat.pieces), "n_pieces": len(flat.pieces), "flat": 0,
        "plane_words": prod(geo.size), "flat_bytes": group * plane * word, "group": group,
        "flat_words": plane, "sums": group * plane, "sum_words": sums,
        "scratch_step": group * (plane + sums), "taps": address(taps), "n_taps": len(taps),
        "length": flat.length, "rows0": geo.out[0], "rows1": geo.out[1], "row": geo.out[2],
        "pitch0": flat.pitches[0], "pitch1": flat.pitches[1], "result_words": prod(geo.out),
    }  # fmt: skip
    return _Plan(fields, (flat.pieces, taps))


@functools.lru_cache(256)
def _weights_plan(geo: _Geometry, lanes: int, word: int) -> _Plan:
    flat = _dealt(geo)
    taps = np.array([flat.offsets, range(len(flat.offsets))]).T.copy()
    plane, g_words = _lines(flat.words, lanes), _lines(flat.length, lanes)
    out = geo.out
    g_piece = np.array([*out, 0, out[1] * out[2], out[2], 1, 0, *flat.pitches, 1], np.int64)
    fields = {
        "pieces": address(flat.pieces), "n_pieces": len(flat.pieces), "flat": 0,
        "plane_words": prod(geo.size), "flat_bytes": plane * word, "g_flat": plane,
        "g_flat_bytes": g_words * word, "g_words": prod(out), "g_piece": address(g_piece),
        "sums": plane + g_words, "scratch_step": plane + g_words + _lines(len(taps) * lanes, lanes),
        "taps": address(taps), "n_taps": len(taps), "length": flat.length,
    }  # fmt: skip
    return _Plan(fields, (flat.pieces, taps, g_piece))


def _geometry(
    size: Sizes, out: Sizes, kernel: Sizes, stride: Sizes, padding: Padding, dilation: Sizes
) -> _Geometry:
    return _Geometry(
        three(size, 1), three(out, 1), three(kernel, 1), three(stride, 1),
        three(tuple([low for low, _ in padding]), 0), three(dilation, 1),
    )  # fmt: skip


def _fits(x: NDArray[Any], other: NDArray[Any], channels: int, groups: int, size: Sizes) -> bool:
    """One channel of x per group, something to compute, and weights that are not half of it."""
    return bool(
        channels == groups and x.dtype == other.dtype and len(size) <= 3
        and x.size and other.size and prod(size)
    )  # fmt: skip


def convolution(
    x: NDArray[Any],
    w: NDArray[Any],
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
) -> NDArray[Any]:
    """See `funct.kernels.convolution.convolution`."""
    size = tuple([
        (n + low + high - d * (k - 1) - 1) // s + 1
        for n, k, s, (low, high), d in zip(x.shape[2:], w.shape[2:], stride, padding, dilation)
    ])  # fmt: skip
    if not _fits(x, w, x.shape[1], groups, size):
        return NotImplemented
    geo = _geometry(x.shape[2:], size, w.shape[2:], stride, padding, dilation)
    outputs = len(w)
    return _run(x, w, geo, False, outputs, 1, outputs // groups, size)


def convolution_input(
    g: NDArray[Any],
    w: NDArray[Any],
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
    size: Sizes,
) -> NDArray[Any]:
    """See `funct.kernels.convolution.convolution_input`."""
    if not _fits(g, w, w.shape[1] * groups, groups, size):
        return NotImplemented
    geo = _geometry(g.shape[2:], size, w.shape[2:], stride, padding, dilation)
    return _run(g, w, geo, True, groups, len(w) // groups, 1, size)


def _run(
    x: NDArray[Any], w: NDArray[Any], geo: _Geometry, inserted: bool, outputs: int, terms: int,
    shared: int, size: Sizes,
) -> NDArray[Any]:  # fmt: skip
    made = _planes_plan(geo, inserted, host().vector_bytes // x.itemsize, x.itemsize)
    x, w = np.ascontiguousarray(x), np.ascontiguousarray(w)
    y = memory.fresh((len(x), outputs, *size), x.dtype)
    units = len(x) * outputs
    tasks = min(units, _TASKS * host().cores)
    job = JOB.fill(
        **made.fields, tasks=tasks, units=units, outputs=outputs, terms=terms, shared=shared,
        inputs=x.shape[1], x=address(x), w=address(w), y=address(y),
        scratch=memory.scratch(tasks * made.fields["scratch_step"] * x.itemsize),
    )  # fmt: skip
    _entry(_ELEMENT[x.dtype.name], "planes")(address(job))
    return y


def convolution_weight(
    x: NDArray[Any],
    g: NDArray[Any],
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
    size: Sizes,
) -> NDArray[Any]:
    """See `funct.kernels.convolution.convolution_weight`."""
    if not _fits(x, g, x.shape[1], groups, size):
        return NotImplemented
    me = host()
    geo = _geometry(x.shape[2:], g.shape[2:], size, stride, padding, dilation)
    made = _weights_plan(geo, me.vector_bytes // x.itemsize, x.itemsize)
    x, g = np.ascontiguousarray(x), np.ascontiguousarray(g)
    outputs = g.shape[1]
    w = memory.fresh((outputs, 1, *size), x.dtype)
    tasks = min(outputs, _TASKS * me.cores)
    job = WEIGHT.fill(
        **made.fields, tasks=tasks, outputs=outputs, shared=outputs // groups, images=len(x),
        inputs=groups, x=address(x), g=address(g), w=address(w),
        scratch=memory.scratch(tasks * made.fields["scratch_step"] * x.itemsize),
    )  # fmt: skip
    _entry(_ELEMENT[x.dtype.name], "weights")(address(job))
    return w


@functools.cache
def _entry(element: str, name: str) -> Any:
    return ctypes.CFUNCTYPE(None, ctypes.c_int64)(_code(element, host()).address(name))


@functools.cache
def _code(element: str, target: Host) -> Code:
    return assemble(text(element, target))
