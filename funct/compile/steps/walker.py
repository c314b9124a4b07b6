"""The machine code that runs programs: it walks tables, and control flow is one more kernel.

`walk` is what Python calls. A loop or a branch in a table is a step like any other, whose kernel
(`turns.py`) walks the steps of its blocks. The frame of such a kernel begins with where the
workspace and the table's steps are, so it needs to know nothing else.

Whoever cannot go on writes the workspace's first word, and loops that see it end: STOPPED by a loop
that runs for long, looks ten times a second whether somebody wants to interrupt it, and finds so;
WRONG by an op that must raise. Whoever finds what NumPy warns of notes it in the next word, and
goes on; when all is done, it is reported.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from funct.compile.loops.kernel import STOPPED, WRONG
from funct.compile.loops.warned import CASES, NOTED, report
from funct.compile.steps.moves import copy_bytes
from funct.device import Code, assemble_all, printed, threads
from funct.device.llvm import at_load, is_known, library
from funct.device.machine_code import Text, begin
from funct.device.printed import kept, recall
from funct.kernels.cpu.calls import DATA, DENSE, FLAGS, builtin
from funct.kernels.cpu.outside import address_in_python
from funct.kernels.llvm import I32, I64, PTR, Emitter, Module, Value, typed
from funct.settings import cores

__all__ = [
    "FIRST_WORDS", "HEAD", "assemble_kernels", "begin_walker", "bytes_on", "reload",
    "run_steps", "walker",
]  # fmt: skip

HEAD = (
    "true", "false", "none", "report", "incref", "save", "restore", "call", "decref",  # of Python
    "parallel",  # what runs several tasks, if the program has such steps: `funct_parallel`
    "lets_go",  # whether other Python threads may run meanwhile
    "patches", "controls", "steps", "moves", "frames",  # how many, in this order in the table
    "first", "calls",  # of the steps, those that are not in a block
)  # fmt: skip
_SLOT = {name: k for k, name in enumerate(HEAD)}
FIRST_WORDS = 3  # of a workspace: how a loop is stopped, what was noted, `funct_parallel`
_PARALLEL = 2  # the last of them


def _walker() -> Code:
    for thread in _starters:
        thread.join()
    return _code()


@functools.cache
def _code() -> Code:
    return _recalled[0] if _recalled else printed(_text, opt=0).keep()  # every process waits for it


@functools.cache
def _text() -> str:
    module = Module()
    _print_walker(module)
    return module.text()


def walker() -> int:
    """The address of the code that walks tables: `walk(table, arguments, count)`."""
    return _walker().address("walk")


_first = iter([True])
_loading = threading.Event()
_starters: list[threading.Thread] = []  # one at most: who loads LLVM and begins
_recalled: list[Code] = []  # one at most: from disk


def begin_walker(*, several: bool = False) -> None:
    """Have what walks programs: from disk, or start to load LLVM and to make it, and load it, while
    other things are done. several: also what runs several tasks.
    """
    if not next(_first, False):
        return
    code = recall(_text, opt=0)
    if code is not None:
        _recalled.append(code.keep())
    elif cores() > 1 and is_known():
        thread = threading.Thread(target=_begin, args=(several,))
        _starters.append(thread)
        thread.start()
        _loading.wait()  # or it would wait for Python's lock until we wait for LLVM


def _begin(several: bool) -> None:
    _loading.set()
    library()
    begin([_text(), *([threads.text()] if several else [])], 0)
    with suppress(Exception):  # it is wrong again where it is asked for
        _code()
        if several:
            threads.pool()


# who makes kernels for large arrays soon calls a compiled function
at_load(functools.partial(begin_walker, several=True))


def assemble_kernels(texts: Sequence[tuple[Text, int]], *, several: bool) -> list[Code]:
    """Code for texts of kernels, each at its level; what walks them is made beside. several:
    whether one of the kernels is run as several tasks, or runs some itself.
    """
    begin_walker(several=several)
    if several and not kept(threads.text, opt=0):
        begin([threads.text()], 0)
    codes = assemble_all(texts)
    _walker()
    return codes


def reload(table: np.ndarray[Any, Any]) -> Callable[..., bool | None]:
    """What runs a table whose addresses of kernels and held arrays are right: a builtin function.

    It takes the arrays, then a workspace; gives False, and does nothing, where one is not dense,
    and None where an op must raise, which the program does not. Of what NumPy warns of NumPy warns,
    or raises.
    """
    for name, function in (("incref", "Py_IncRef"), ("save", "PyEval_SaveThread"),
                           ("restore", "PyEval_RestoreThread"), ("call", "PyObject_Vectorcall"),
                           ("decref", "Py_DecRef")):  # fmt: skip
        table[_SLOT[name]] = address_in_python(function)
    for name, told in (("true", True), ("false", False), ("none", None), ("report", report)):
        table[_SLOT[name]] = id(told)
    if table[_SLOT["parallel"]]:
        table[_SLOT["parallel"]] = threads.parallel()
    return builtin("run", walker(), table)


# Words and steps


def bytes_on(f: Emitter, place: Value, offset: Value | int) -> Value:
    """The address so many bytes further on."""
    return f.at(place, offset, "i8")


def _call(f: Emitter, function: Value, result: str, given: str = "") -> Value:
    return f.emit(PTR, f"call {result} {function.name}({given})", pure=False)


def run_steps(f: Emitter, steps: Value, space: Value, first: Value, count: Value) -> None:
    """Print what runs so many steps of the table, from the first on. Tasks whose number is negative
    are done one after the other.
    """

    def step(k: Value, _: list[Value]) -> list[Value]:
        entry = f.at(steps, (first + k) * 3, "i64")
        kernel, tasks = f.pointer(entry), f.word(entry, 2)
        frame = bytes_on(f, space, f.word(entry, 1))

        def alone() -> list[Value]:
            def task(t: Value, _: list[Value]) -> list[Value]:
                f.line(f"call void {kernel.name}({frame!r}, {t!r})")
                return []

            f.loop(0, f.select(tasks < 0, f.neg(tasks), tasks), 1, task)
            return []

        def many() -> list[Value]:
            parallel = f.pointer(space, _PARALLEL)
            f.line(f"call void {parallel.name}({kernel!r}, {frame!r}, {tasks!r})")
            return []

        f.branch(tasks < 2, alone, many)
        return []

    f.loop(0, count, 1, step, maybe_empty=True)


# The function that Python calls


def _print_walker(module: Module) -> None:
    """`PyObject *walk(PyObject *table, PyObject **arguments, Py_ssize_t count)`.

    The last argument is the workspace.
    """
    f = module.function("walk", [("table", PTR), ("arguments", PTR), ("count", I64)], PTR)
    holder, arguments, count = f.arguments
    table = f.pointer(bytes_on(f, holder, DATA))
    head = {name: f.at(table, slot, "i64") for name, slot in _SLOT.items()}

    def dense(k: Value, held: list[Value]) -> list[Value]:
        array = f.pointer(arguments, k)
        return [held[0] & f.load(I32, bytes_on(f, array, FLAGS))]

    (flags,) = f.loop(0, count, 1, dense, [f.constant(I32, DENSE)])

    def run() -> list[Value]:
        space = _aligned(f, f.pointer(bytes_on(f, f.pointer(arguments, count - 1), DATA)))
        n = {name: f.word(head[name]) for name in HEAD[_SLOT["patches"] :]}
        patches = f.at(table, len(HEAD), "i64")
        controls = f.at(patches, n["patches"] * 3, "i64")
        steps = f.at(controls, n["controls"], "i64")
        frames = f.at(steps, (n["steps"] + n["moves"]) * 3, "i64")
        copy_bytes(f, space, frames, n["frames"] * 8)
        f.store(f.pointer(head["parallel"]), f.at(space, _PARALLEL, "i64"))

        def patch(k: Value, _: list[Value]) -> list[Value]:
            entry = f.at(patches, k * 3, "i64")
            array = f.pointer(bytes_on(f, arguments, f.word(entry, 1)))
            last = f.eq(f.word(entry, 1), (count - 1) * 8)
            data = f.select(last, space, f.pointer(bytes_on(f, array, DATA)))
            place = bytes_on(f, space, f.word(entry))
            f.store(bytes_on(f, data, f.word(entry, 2)), place)
            return []

        def control(k: Value, _: list[Value]) -> list[Value]:
            frame = bytes_on(f, space, f.word(controls, k))
            f.store(space, frame)
            f.store(steps, f.at(frame, 1, "i64"))
            return []

        f.loop(0, n["patches"], 1, patch, maybe_empty=True)
        f.loop(0, n["controls"], 1, control, maybe_empty=True)
        lets_go = f.ne(f.word(head["lets_go"]), 0)
        state = f.branch(
            lets_go,
            lambda: [_call(f, f.pointer(head["save"]), "ptr")],
            lambda: [f.null()],
        )[0]
        run_steps(f, steps, space, n["first"], n["calls"])
        restore = f.pointer(head["restore"])
        f.when(lets_go, lambda: f.line(f"call void {restore.name}({state!r})"))
        state = f.word(space)
        told = f.select(f.eq(state, WRONG), f.pointer(head["none"]), f.pointer(head["true"]))
        told = f.select(f.eq(state, STOPPED), f.null(), told)
        warns = f.eq(state, 0) & f.ne(f.word(space, NOTED), 0)
        return f.branch(warns, lambda: [_reported(f, head, space)], lambda: [told], rare=True)

    good = f.eq(flags & DENSE, DENSE)
    found = f.branch(good, run, lambda: [f.pointer(head["false"])])[0]
    f.line(f"call void {f.pointer(head['incref']).name}({found!r})")  # which may be null
    f.ret(found)


def _reported(f: Emitter, head: dict[str, Value], space: Value) -> Value:
    """What is told once NumPy has warned of what is noted: null where it raised."""
    true, false = f.pointer(head["true"]), f.pointer(head["false"])
    met = f.allocate(PTR, len(CASES))
    for k in range(len(CASES)):
        mark = f.load(typed("u8"), f.at(space, 8 * NOTED + k, "i8"))
        f.store(f.select(f.ne(mark, 0), true, false), f.at(met, k, "i64"))
    given = f"{f.pointer(head['report'])!r}, {met!r}, i64 {len(CASES)}, ptr null"
    found = _call(f, f.pointer(head["call"]), "ptr", given)
    f.line(f"call void {f.pointer(head['decref']).name}({found!r})")  # which may be null
    return f.select(f.eq(found, f.null()), f.null(), true)


def _aligned(f: Emitter, space: Value) -> Value:
    """The first multiple of 64 in the workspace."""
    address = f.emit(I64, f"ptrtoint {space!r} to i64")
    return f.emit(PTR, f"inttoptr {((address + 63) & -64)!r} to ptr")
