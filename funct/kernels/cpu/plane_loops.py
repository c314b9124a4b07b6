"""The loops of depthwise convolutions, printed: planes that are copied, taken flat, and written.

What they do is said in `depthwise.py`.

Note [Lines]
    A line of the plane is read for every tap above and below it. Where steps along it are 1, a few
    adjacent lines of the result are summed at once, and a line that was loaded serves all of them.
    Where lines are long they go to the result at once, the last vectors overlapping; else vectors
    reach beyond the end of a line in scratch, and write what belongs there.

Note [Groups]
    A load that spans several recent stores waits until they are in the cache. So small planes are
    filled, combined and written in groups, not one after the other.
"""

from __future__ import annotations

from collections.abc import Callable

from funct.device import PARALLEL, Host
from funct.kernels.cpu.plane_copies import SPREAD, Plane
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.slab import clear, each
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, typed

__all__ = ["JOB", "LINES", "SHARED_TAPS", "VECTORS", "WEIGHT", "text"]

VECTORS = 8  # sums at a time: enough to cover the latency, half of the registers
LINES = 4  # of the result at a time
SHARED_TAPS = (3, 5)  # whose weights fit into registers beside the sums
_TAPS = (9, 4, 1)  # taps of w's adjoint at a time, whose sums are registers

JOB = Fields((
    "tasks", "units", "outputs", "terms", "shared", "inputs", "x", "w", "y", "scratch",
    "scratch_step", *SPREAD, "group", "flat_words", "sums", "sum_words", "taps", "n_taps", "length",
    "rows0", "rows1", "row", "pitch0", "pitch1", "result_words", "shared_taps", "direct", "blocks",
    "block_pitch", "lines", "line_pitch", "line_step", "columns", "n_columns",
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


def _define_planes(module: Module, element: str, lanes: int) -> None:
    """`range(job, task)`: a range of the planes of the result."""
    f = module.function("range", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    plane = Plane(f, element, lanes)
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
                result = plane.at(job.pointer("y"), (first + i) * job.result_words)
                add = f.ne(j, 0)

                def by_taps() -> list[Value]:
                    _combine(f, plane, one_flat, job, w, one_sum, add)
                    return []

                def by_lines(taps: int) -> Callable[[], list[Value]]:
                    def run() -> list[Value]:
                        _combine_lines(f, plane, one_flat, job, w, (one_sum, result), taps)
                        return []

                    return run

                otherwise = by_taps
                for taps in SHARED_TAPS:
                    otherwise = _either(f, f.eq(job.shared_taps, taps), by_lines(taps), otherwise)
                otherwise()

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
        f.when(f.eq(job.direct, 0), lambda: each(f, 0, count, write))

    each(f, start, stop, some, job.group)
    f.ret()


def _combine(
    f: Emitter, plane: Plane, flat: Value, job: Record, w: Value, sums: Value, add: Value
) -> None:
    """sums[q] = (sums[q] or 0) + Σ_t w[t] flat[q + offset t]."""
    taps, n_taps = job.pointer("taps"), job.n_taps

    def run(q: Value) -> None:
        here = plane.at(sums, q)
        places = [plane.at(here, v * plane.lanes) for v in range(VECTORS)]
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

    each(f, 0, job.length, run, VECTORS * plane.lanes)


def _either(
    f: Emitter, condition: Value, then: Callable[[], list[Value]],
    otherwise: Callable[[], list[Value]],
) -> Callable[[], list[Value]]:  # fmt: skip
    return lambda: f.branch(condition, then, otherwise)


def _combine_lines(
    f: Emitter, plane: Plane, flat: Value, job: Record, w: Value, to: tuple[Value, Value],
    taps: int,
) -> None:  # fmt: skip
    """The same, several lines of the result at a time. See Note [Lines]. to: sums, the result."""
    sums, result = to

    def block(p: Value) -> None:
        def lines(r: Value) -> None:
            last = job.lines - LINES
            line = f.select(r > last, last, r)
            start = p * job.block_pitch + line * job.line_pitch
            above = plane.at(flat, start)

            def narrow() -> list[Value]:
                _lines_at(f, plane, above, job, w, (plane.at(sums, start), job.line_pitch), taps, 1)
                return []

            def wide() -> list[Value]:
                final = job.row - 2 * plane.lanes
                place = plane.at(result, (p * job.rows1 + line) * job.row)

                def some(q: Value) -> None:
                    q = f.select(q > final, final, q)
                    into = plane.at(place, q), job.row
                    _lines_at(f, plane, plane.at(above, q), job, w, into, taps, 2)

                each(f, 0, job.row, some, 2 * plane.lanes)
                return []

            def between() -> list[Value]:
                into = plane.at(sums, start), job.line_pitch
                _lines_at(f, plane, above, job, w, into, taps, 2)
                return []

            f.branch(
                f.ne(job.direct, 0),
                wide,
                lambda: f.branch(job.row <= plane.lanes, narrow, between),
            )

        each(f, 0, job.lines, lines, LINES)

    each(f, 0, job.blocks, block)


def _lines_at(
    f: Emitter, plane: Plane, above: Value, job: Record, w: Value, into: tuple[Value, Value],
    taps: int, vectors: int,
) -> None:  # fmt: skip
    """Vectors of LINES lines. above: the first element they read. into: address, and pitch."""
    pitch = job.line_pitch
    vector = plane.vector

    def column(c: Value, held: list[Value]) -> list[Value]:
        pair = f.at(job.pointer("columns"), c << 1, "i64")
        first = plane.at(above, f.load(I64, pair))
        place = plane.at(w, f.load(I64, f.at(pair, 1, "i64")))
        step = job.line_step
        weights = [
            f.splat(f.load(vector.scalar, plane.at(place, step * k)), plane.lanes)
            for k in range(taps)
        ]
        held = list(held)
        for j in range(LINES + taps - 1):
            line = plane.at(first, pitch * j)
            for v in range(vectors):
                x = f.load(vector, plane.at(line, v * plane.lanes))
                for k in range(taps):
                    if 0 <= j - k < LINES:
                        cell = (j - k) * vectors + v
                        held[cell] = f.fma(x, weights[k], held[cell])
        return held

    zeros = [f.constant(vector, 0) for _ in range(LINES * vectors)]
    totals = f.loop(0, job.n_columns, 1, column, zeros)
    to, to_pitch = into
    for i in range(LINES):
        line = plane.at(to, to_pitch * i)
        for v in range(vectors):
            f.store(totals[i * vectors + v], plane.at(line, v * plane.lanes))


def _define_weights(module: Module, element: str, lanes: int) -> None:
    """`outputs(job, output)`: the weights of one output, over all images in order."""
    f = module.function("outputs", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, WEIGHT, f.arguments[0]), f.arguments[1]
    plane = Plane(f, element, lanes)
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


def _correlate(f: Emitter, plane: Plane, flat: Value, g: Value, job: Record, sums: Value) -> None:
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
