"""Words of two bfloat16 each, from lines of them: what `vdpbf16ps` multiplies and sums.

A word's halves are elements of one line that stand some columns apart, or of two lines. Beside a
line are zeros.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.device import Host, host, printed
from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.record import Fields, Record, address
from funct.kernels.cpu.tasks import deal_out
from funct.kernels.llvm import I64, PTR, Module, Value, each, typed

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["paired", "text"]

_JOB = Fields(("tasks", "x", "y", "rows", "count", "row", "apart", "lead"))
_TASK = 1 << 15  # words that are worth a task


def text(target: Host) -> str:
    """`pair(job)`: y[i, j] = (x[i row + j - lead], x[i row + apart + j]), the low half first, for
    i < rows, j < count + lead; zeros for what is not in 0 ≤ j - lead, j < count.
    """
    module = Module(target)
    lanes = target.vector_bytes // 4
    f = module.function("lines", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, _JOB, f.arguments[0]), f.arguments[1]
    short = typed("u16", lanes)
    count, lead, row = job.count, job.lead, job.row
    width = count + lead
    x, y, apart = job.pointer("x"), job.pointer("y"), job.apart

    def line(i: Value) -> None:
        low = f.at(x, i * row - lead, "u16")
        high = f.at(x, i * row + apart, "u16")
        to = f.at(y, i * width, "u32")

        def words(j: Value, masks: list[Value | None]) -> list[Value]:
            first, second = (
                f.convert(f.load(short, f.at(p, j, "u16"), m), "u32")
                for p, m in zip((low, high), masks)
            )
            f.store(first | second << 16, f.at(to, j, "u32"), masks[2])
            return []

        def edge(j: Value) -> list[Value]:
            before = f.first_lanes(lanes, f.max(lead - j, 0))
            after = f.first_lanes(lanes, f.max(count - j, 0))
            inside = f.first_lanes(lanes, width - j)
            return words(j, [inside & ~before, after, inside])

        def some(j: Value) -> None:
            inner = (j >= lead) & (j + lanes <= count)
            f.branch(inner, lambda: words(j, [None] * 3), lambda: edge(j))

        each(f, 0, width, some, lanes)

    tasks, rows = job.tasks, job.rows
    each(f, f.div(task * rows, tasks), f.div((task + 1) * rows, tasks), line)
    f.ret()
    deal_out(module, "pair", "lines", _JOB)
    return module.text()


def paired(
    x: NDArray[Any], shape: tuple[int, ...], count: int, row: int, apart: int, lead: int = 0
) -> NDArray[np.float32]:
    """Words of this shape, whose lines are `count + lead` long, from lines of contiguous x that
    are `row` elements after each other. See `text`.
    """
    y = memory.fresh(shape, np.dtype(np.float32))
    rows = y.size // (count + lead)
    tasks = max(1, min(4 * host().cores, rows, y.size // _TASK))
    job = _JOB.fill(
        tasks=tasks, x=address(x), y=address(y), rows=rows, count=count, row=row, apart=apart,
        lead=lead,
    )  # fmt: skip
    _entry()(address(job))
    return y


@functools.cache
def _entry() -> Any:
    code = printed(text, host()).keep()
    return ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("pair"))
