"""The texts of Fourier transforms: of programs, and of eager calls.

Programs know the length, and their text has its passes; eager calls of any length share a text
that is told them. Both have the same bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from funct.device import PARALLEL, host
from funct.kernels.cpu.fourier import four_step, held_lines
from funct.kernels.cpu.fourier.line_text import Form, Lines, roots_of, steps_of, turns_of
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, typed

__all__ = ["print_lines", "table_of", "text"]


def table_of(rows: int, form: Form) -> tuple[NDArray[np.float64], int]:
    """All turns of lines in so many rows, and where they begin: roots may stand before them."""
    if form.held:
        return held_lines.turns_of(form), 0
    turns = four_step.turns_of(rows, form) if form.single else turns_of(rows, form)
    before = roots_of(rows)
    return np.concatenate([before, turns]), before.size


def _lines(
    f: Emitter, form: Form, lengths: list[Value], turns: Value, room: Value, task: Value
) -> Lines:
    kind = four_step.SingleLines if form.single else Lines
    if form.held:
        kind = held_lines.HeldLines
    return kind(f, form, lengths, turns, room, task)


def print_lines(
    module: Module, name: str, form: Form, given: int, n: int, made: int, factor: float
) -> None:
    """Add the kernel of a program, which knows complex numbers of a line (or their rows), and how
    many are read and written. Frame: what goes in, what comes out, buffers; lines before the axis
    and behind it; blocks of lines, and how many are a task.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    table, before = table_of(n, form)
    whole = f.address(module.table(typed(form.element), table.tolist()))
    turns = f.at(whole, before, form.element)
    lengths = [f.constant(I64, k) for k in (given, n, made)]
    lines = _lines(f, form, lengths, turns, f.pointer(frame, 2), task)
    lines.steps = steps_of(n)
    lines.factor = None if factor == 1 else f.constant(lines.wide, factor)
    lines.run(frame, task)


def text(form: Form) -> str:
    """`lines(frame)` for lines of any length. The frame goes on: how many tasks there are; numbers
    of a line that are read, all complex ones or their rows, those that are written; the factor and
    the turns; the passes, and how many come before the last one.
    """
    module = Module(host())
    module.declare("@funct_parallel", PARALLEL)
    f = module.function("some", [("frame", PTR), ("task", I64)], local=True)
    frame, task = f.arguments
    factor, turns, passes = f.pointers(frame, 11, 3)
    lines = _lines(f, form, f.words(frame, 8, 3), turns, f.pointer(frame, 2), task)
    lines.passes, lines.before_last = passes, f.word(frame, 14)
    lines.factor = f.splat(f.load(typed(form.element), factor), form.lanes)
    lines.run(frame, task)
    f = module.function("lines", [("frame", PTR)])
    (frame,) = f.arguments
    f.line(f"call void @funct_parallel(ptr @some, {frame!r}, {f.word(frame, 7)!r})")
    f.ret()
    return module.text()
