"""float32 numbers times 4-bit weights, for a few rows: the weights are decoded where they are used.

At one row a product of matrices reads every weight once and is bounded by memory: 4 bits and a
scale per group are a seventh of what float32 reads. x is split once into its even and its odd
elements, so that the low and the high halves of adjacent bytes meet adjacent numbers.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import PARALLEL, Code, assemble, host
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.slab import each
from funct.kernels.llvm import F32, I64, PTR, Emitter, Module, Value, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["weight_only_linear"]

_ROWS = 4  # more of them are worth weights in float32 and BLAS
_TOGETHER = 4  # outputs whose sums are independent
_TASK = 1 << 17  # weights that are worth a task

JOB = Fields((
    "tasks", "rows", "outputs", "groups", "group_bytes", "even", "odd", "codes", "scale", "y",
))  # fmt: skip


def text() -> str:
    """`run(job)`: rows of x, halves apart, times the weights."""
    module = Module(host())
    module.declare("@funct_parallel", PARALLEL)
    f = module.function("part", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, JOB, f.arguments[0]), f.arguments[1]
    start = f.div(task * job.outputs, job.tasks)
    stop = f.div((task + 1) * job.outputs, job.tasks)

    def row(m: Value) -> None:
        y = f.at(job.pointer("y"), m * job.outputs, "f32")
        half = job.groups * job.group_bytes
        x = [f.at(job.pointer(name), m * half, "f32") for name in ("even", "odd")]

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
    vector, bytes_ = typed("f32", lanes), typed("u8", lanes)
    groups, group_bytes = job.groups, job.group_bytes
    weights = [
        f.at(job.pointer("codes"), (o + k) * groups * group_bytes, "u8") for k in range(count)
    ]
    scales = [f.at(job.pointer("scale"), (o + k) * groups, "f32") for k in range(count)]
    zero = [f.constant(vector, 0)] * count

    def group(g: Value, totals: list[Value]) -> list[Value]:
        first = g * group_bytes

        def step(i: Value, held: list[Value]) -> list[Value]:
            at = first + i
            even, odd = (f.load(vector, f.at(v, at, "f32")) for v in x)
            out = []
            for k, w in enumerate(weights):
                codes = f.convert(f.load(bytes_, f.at(w, at, "u8")), "i32")
                low, high = codes << 28 >> 28, codes << 24 >> 28
                total = f.fma(f.convert(low, "f32"), even, held[k])
                out.append(f.fma(f.convert(high, "f32"), odd, total))
            return out

        held = f.loop(0, group_bytes, lanes, step, zero)
        scaled = [f.splat(f.load(F32, f.at(s, g, "f32")), lanes) for s in scales]
        return [f.fma(h, s, t) for h, s, t in zip(held, scaled, totals)]

    return f.loop(0, groups, 1, group, zero)


@functools.cache
def _entry() -> tuple[Code, Any]:
    code = assemble(text())
    return code, ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("run"))


def weight_only_linear(
    x: NDArray[np.float32], codes: NDArray[np.uint8], scale: NDArray[np.float32]
) -> NDArray[np.float32]:
    """See `funct.kernels.quantized.weight_only_linear`."""
    outputs, half = codes.shape
    groups = scale.shape[1]
    lanes = host().vector_bytes // 4
    rows = x.size // (2 * half) if half else 0
    if not 0 < rows <= _ROWS or not outputs or half // groups % lanes:
        return NotImplemented
    numbers = x.reshape(rows, half, 2)
    even, odd = (np.ascontiguousarray(numbers[:, :, k]) for k in (0, 1))
    codes, scale = np.ascontiguousarray(codes), np.ascontiguousarray(scale)
    y = memory.fresh((rows, outputs), np.dtype(np.float32))
    job = JOB.fill(
        tasks=max(1, min(outputs, codes.size * rows // _TASK, 4 * host().cores)), rows=rows,
        outputs=outputs, groups=groups, group_bytes=half // groups, even=address(even),
        odd=address(odd), codes=address(codes), scale=address(scale), y=address(y),
    )  # fmt: skip
    _entry()[1](address(job))
    return y.reshape(*x.shape[:-1], outputs)
