"""A few rows of codes times 8-bit weights, which are read once, where they lie.

With few rows a product of matrices is bounded by the weights it reads: bytes are a quarter of what
float32 reads. They become 16-bit integers in registers, and `vpmaddwd` sums pairs exactly.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import PARALLEL, Code, assemble, host
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.dots import DOTS, supported
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.slab import each
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["byte_rows"]

_ROWS = 4  # more of them are worth weights that are laid out
_TOGETHER = 4  # outputs that share what is loaded of x
_TASK = 1 << 17  # weights that are worth a task

JOB = Fields(("tasks", "rows", "outputs", "depth", "x", "row", "w", "y"))


def text() -> str:
    """`run(job)`: y, (rows, outputs), int32."""
    module = Module(host())
    module.declare("@funct_parallel", PARALLEL)
    f = module.function("part", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    start, stop = (f.div((task + k) * job.outputs, job.tasks) for k in (0, 1))

    def outputs(count: int) -> Any:
        def some(o: Value) -> None:
            def row(m: Value) -> None:
                for k, total in enumerate(_sums(f, job, m, o, count)):
                    place = f.at(job.pointer("y"), m * job.outputs + o + k, "i32")
                    f.store(f.reduce(total, f.add), place)

            each(f, 0, job.rows, row)

        return some

    middle = stop - f.rem(stop - start, _TOGETHER)
    each(f, start, middle, outputs(_TOGETHER), _TOGETHER)
    each(f, middle, stop, outputs(1))
    f.ret()
    f = module.function("run", [("job", PTR)])
    (given,) = f.arguments
    f.line(f"call void @funct_parallel(ptr @part, {given!r}, {Record(f, JOB, given).tasks!r})")
    f.ret()
    return module.text()


def _lanes() -> int:
    """Bytes that are taken at a time."""
    return supported(DOTS["s16"], host()) // 2


def _sums(f: Emitter, job: Record, m: Value, o: Value, count: int) -> list[Value]:
    """Lane by lane, for so many outputs from o on."""
    lanes = _lanes()
    total, step = typed("i32", lanes // 2), DOTS["s16"].step
    x = f.at(job.pointer("x"), m * job.row, "i16")
    rows = [f.at(job.pointer("w"), (o + k) * job.depth, "i8") for k in range(count)]

    def products(of_x: Value, of_w: Value, held: list[Value]) -> list[Value]:
        left = f.bitcast(f.load(typed("i16", lanes), f.at(x, of_x, "i16")), total)
        out = []
        for w, s in zip(rows, held):
            codes = f.convert(f.load(typed("i8", lanes), f.at(w, of_w, "i8")), "i16")
            out.append(step(f, s, left, f.bitcast(codes, total)))
        return out

    whole = job.depth - f.rem(job.depth, lanes)
    zeros = [f.constant(total, 0)] * count
    held = f.loop(0, whole, lanes, lambda i, held: products(i, i, held), zeros)
    # the last vector overlaps; what was summed before is 0 in the copy of x that stands behind
    return f.branch(
        whole < job.depth, lambda: products(whole, job.depth - lanes, held), lambda: held
    )


@functools.cache
def _entry() -> tuple[Code, Any]:
    code = assemble(text())
    return code, ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("run"))


def byte_rows(x: NDArray[Any], zero_point: int, w: NDArray[np.int8]) -> NDArray[np.int32]:
    """Sums of (x - zero_point) w.T, int32, or NotImplemented for many rows or short ones.

    They must fit into int32.
    """
    (rows, depth), outputs, lanes = x.shape, len(w), _lanes()
    if rows > _ROWS or depth < lanes:
        return NotImplemented
    whole = depth - depth % lanes
    centred = np.zeros((rows, whole + lanes), np.int16)
    np.subtract(x[:, :whole], zero_point, out=centred[:, :whole], dtype=np.int16)
    if whole < depth:
        tail = centred[:, lanes + whole - (depth - whole) :]
        np.subtract(x[:, whole:], zero_point, out=tail, dtype=np.int16)
    w = np.ascontiguousarray(w)
    y = memory.fresh((rows, outputs), np.dtype(np.int32))
    job = JOB.fill(
        tasks=max(1, min(outputs, w.size // _TASK, 4 * host().cores)), rows=rows, outputs=outputs,
        depth=depth, x=address(centred), row=centred.shape[1], w=address(w), y=address(y),
    )  # fmt: skip
    _entry()[1](address(job))
    return y
