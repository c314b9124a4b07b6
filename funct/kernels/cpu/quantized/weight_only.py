"""float32 numbers times weights of 8 or 4 bits, for a few rows: decoded where they are used.

At one row a product of matrices reads every weight once and is bounded by memory: a byte is a
quarter of what float32 reads, 4 bits and a scale per group a seventh. For 4 bits x is split once
into its even and its odd elements, so that the low and the high halves of adjacent bytes meet
adjacent numbers.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import PARALLEL, Code, host, printed
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.llvm import F32, I64, PTR, Emitter, Module, Value, each, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["JOB", "entry", "plan", "weight_only_linear"]

_ROWS = 64  # more of them are worth weights in float32 and BLAS
_TOGETHER = 4  # outputs whose sums are independent
_TASK = 1 << 17  # weights that are worth a task

JOB = Fields((
    "tasks", "rows", "outputs", "groups", "group_bytes", "x", "x_words", "codes", "scale", "y",
))  # fmt: skip


def text(bits: int) -> str:
    """`run(job)`: rows of x, of 4 bits halves apart, times the weights."""
    module = Module(host())
    module.declare("@funct_parallel", PARALLEL)
    f = module.function("part", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    start = f.div(task * job.outputs, job.tasks)
    stop = f.div((task + 1) * job.outputs, job.tasks)

    def row(m: Value) -> None:
        y = f.at(job.pointer("y"), m * job.outputs, "f32")
        count = job.groups * job.group_bytes
        first = f.at(job.pointer("x"), m * count, "f32")
        x = [first] if bits == 8 else [first, f.at(first, job.x_words, "f32")]

        def outputs(count: int) -> Any:
            def some(o: Value) -> None:
                for k, total in enumerate(_sums(f, job, x, o, count)):
                    f.store(f.reduce(total, f.add), f.at(y, o + k, "f32"))

            return some

        middle = stop - f.rem(stop - start, _TOGETHER)
        each(f, start, middle, outputs(_TOGETHER), _TOGETHER)
        each(f, middle, stop, outputs(1))

    each(f, 0, job.rows, row)
    f.ret()
    f = module.function("run", [("job", PTR)])
    (given,) = f.arguments
    tasks = Record(f, JOB, given).tasks
    f.line(f"call void @funct_parallel(ptr @part, {given!r}, {tasks!r})")
    f.ret()
    return module.text()


def _sums(f: Emitter, job: Record, x: list[Value], o: Value, count: int) -> list[Value]:
    """For so many outputs from o on: the products, lane by lane."""
    lanes = host().vector_bytes // 4
    vector, bytes_ = typed("f32", lanes), typed("i8", lanes)
    groups, group_bytes = job.groups, job.group_bytes
    weights = [
        f.at(job.pointer("codes"), (o + k) * groups * group_bytes, "i8") for k in range(count)
    ]
    scales = [f.at(job.pointer("scale"), (o + k) * groups, "f32") for k in range(count)]
    zero = [f.constant(vector, 0)] * count

    def group(g: Value, totals: list[Value]) -> list[Value]:
        first = g * group_bytes

        def step(i: Value, held: list[Value]) -> list[Value]:
            at = first + i
            numbers = [f.load(vector, f.at(v, at, "f32")) for v in x]
            out = []
            for w, total in zip(weights, held):
                codes = f.convert(f.load(bytes_, f.at(w, at, "i8")), "i32")
                parts = [codes] if len(x) == 1 else [codes << 28 >> 28, codes >> 4]
                for part, number in zip(parts, numbers):
                    total = f.fma(f.convert(part, "f32"), number, total)
                out.append(total)
            return out

        held = f.loop(0, group_bytes, lanes, step, zero)
        scaled = [f.splat(f.load(F32, f.at(s, g, "f32")), lanes) for s in scales]
        return [f.fma(h, s, t) for h, s, t in zip(held, scaled, totals)]

    return f.loop(0, groups, 1, group, zero)


@functools.cache
def _entry(bits: int) -> tuple[Code, Any]:
    code = printed(text, bits)
    return code, ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("run"))


def entry(bits: int) -> int:
    """The address of the function that is told a job."""
    return _entry(bits)[0].address("run")


def plan(rows: int, outputs: int, count: int, groups: int) -> NDArray[np.int64] | None:
    """The job but for its addresses; None where it does not serve. count: bytes of an output."""
    if not 0 < rows <= _ROWS or not outputs or count // groups % (host().vector_bytes // 4):
        return None
    return JOB.fill(
        tasks=max(1, min(outputs, outputs * count * rows // _TASK, 4 * host().cores)), rows=rows,
        outputs=outputs, groups=groups, group_bytes=count // groups, x=0, x_words=rows * count,
        codes=0, scale=0, y=0,
    )  # fmt: skip


def weight_only_linear(
    x: NDArray[np.float32], codes: NDArray[Any], scale: NDArray[np.float32]
) -> NDArray[np.float32]:
    """See `funct.kernels.quantized.weight_only.weight_only_linear`."""
    outputs, count = codes.shape
    bits = 8 if codes.dtype == np.int8 else 4
    rows = x.size // x.shape[-1] if x.size else 0
    job = plan(rows, outputs, count, scale.shape[1])
    if job is None:
        return NotImplemented
    if bits == 4:
        x2 = np.ascontiguousarray(np.moveaxis(x.reshape(rows, count, 2), 2, 0))
    else:
        x2 = np.ascontiguousarray(x)
    codes, scale = np.ascontiguousarray(codes), np.ascontiguousarray(scale)
    y = memory.fresh((rows, outputs), np.dtype(np.float32))
    JOB.put(job, x=address(x2), codes=address(codes), scale=address(scale), y=address(y))
    _entry(bits)[1](address(job))
    return y.reshape(*x.shape[:-1], outputs)
