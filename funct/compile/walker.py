"""The machine code that runs programs: it walks tables, and control flow is one more kernel.

`walk` is what Python calls. A loop or a branch in a table is a step like any other, whose kernel
(`print_repeat`, `print_choose`) walks the steps of its blocks. The frame of such a kernel begins
with where the workspace and the table's steps are, so it needs to know nothing else.

What moves from step to step of a loop stands in its *slots*: an address for each buffer that it
carries or goes through. Before each step these, plus an offset each, are written into the frames of
the calls in its body, those of loops inside among them.

Whoever cannot go on writes the workspace's first word, and loops that see it end: STOPPED by a loop
that runs for long, looks ten times a second whether somebody wants to interrupt it, and finds so;
WRONG by an op that must raise.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from funct.compile.moves import copy_bytes
from funct.device import Code, assemble, threads
from funct.device.machine_code import offer
from funct.kernels.cpu.calls import DATA, DENSE, FLAGS, builtin
from funct.kernels.llvm import I32, I64, PTR, Emitter, Module, Value, typed

__all__ = ["CONTROL_WORDS", "WRONG", "HEAD", "print_choose", "print_repeat", "reload", "walker"]

HEAD = (
    "true", "false", "none", "incref", "save", "restore",  # of Python
    "lets_go",  # whether other Python threads may run meanwhile
    "patches", "controls", "steps", "moves", "frames",  # how many, in this order in the table
    "first", "calls",  # of the steps, those that are not in a block
)  # fmt: skip
_SLOT = {name: k for k, name in enumerate(HEAD)}

CONTROL_WORDS = 4  # of a frame of control flow: workspace, steps, its first move, how many moves
STOPPED, WRONG = 1, 2
_LOOKS = 1 << 28  # cycles between two looks at what the user wants
_BYTE = typed("i8")


@functools.cache
def _walker() -> Code:
    assert threads.PARALLEL  # the pool that the code calls is known once that module is
    module = Module()
    _print_walker(module)
    return assemble(module.text(), opt=0).keep()  # every process waits for it


def walker() -> int:
    """The address of the code that walks tables: `walk(table, arguments, count)`."""
    return _walker().address("walk")


def _python(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


for _name in ("PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals"):
    offer(_name, functools.partial(_python, _name))


def reload(table: np.ndarray[Any, Any]) -> Callable[..., bool | None]:
    """What runs a table whose addresses of kernels and held arrays are right: a builtin function.

    It takes the arrays, then a workspace; gives False, and does nothing, where one is not dense,
    and None where an op must raise, which the program does not.
    """
    for name, function in (("incref", "Py_IncRef"), ("save", "PyEval_SaveThread"),
                           ("restore", "PyEval_RestoreThread")):  # fmt: skip
        table[_SLOT[name]] = _python(function)
    for name, told in (("true", True), ("false", False), ("none", None)):
        table[_SLOT[name]] = id(told)
    return builtin("run", walker(), table)


# Words and steps


def _bytes_on(f: Emitter, pointer: Value, offset: Value | int) -> Value:
    return f.at(pointer, offset, _BYTE.element)


def _word(f: Emitter, place: Value, slot: Value | int = 0) -> Value:
    return f.load(I64, f.at(place, slot, "i64"))


def _pointer(f: Emitter, place: Value, slot: Value | int = 0) -> Value:
    return f.load(PTR, f.at(place, slot, "i64"))


def _call(f: Emitter, function: Value, result: str, given: str = "") -> Value:
    return f.emit(PTR, f"call {result} {function.name}({given})", pure=False)


def _run_steps(f: Emitter, steps: Value, space: Value, first: Value, count: Value) -> None:
    """So many steps of the table, from the first on."""

    def step(k: Value, _: list[Value]) -> list[Value]:
        entry = f.at(steps, (first + k) * 3, "i64")
        kernel, tasks = _pointer(f, entry), _word(f, entry, 2)
        frame = _bytes_on(f, space, _word(f, entry, 1))

        def once() -> list[Value]:
            f.line(f"call void {kernel.name}({frame!r}, i64 0)")
            return []

        def many() -> list[Value]:
            f.call("funct_parallel", None, [kernel, frame, tasks])
            return []

        f.branch(f.eq(tasks, 1), once, many)
        return []

    f.loop(0, count, 1, step, maybe_empty=True)


# Control flow


def print_repeat(module: Module, name: str) -> None:
    """Add the kernel of loops.

    Frame: what all control flow has; first step and number of steps of two blocks, test and body;
    number of steps at most, or if the next word is an address, what stands there; address of the
    boolean that says whether to go on, or 0; whether it goes from the last row to the first; where
    the number of steps that were made is written, or 0; numbers of carries and of rows; the slots.
    Then for each carry the addresses of its first value, of its result and of a second buffer, and
    its bytes; for each row an address and a stride.

    The slots of a carry are where it is read and where it is written. It goes back and forth
    between result and buffer, and where the number of steps is known ends at the result by itself.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    space, steps = _pointer(f, frame), _pointer(f, frame, 1)
    moves, n_moves = f.at(steps, _word(f, frame, 2), "i64"), _word(f, frame, 3)
    test, n_test, body, n_body = (_word(f, frame, 4 + k) for k in range(4))
    limit, goes_back = _word(f, frame, 8), _word(f, frame, 11)
    asks, counts = f.ne(_word(f, frame, 10), 0), f.ne(_word(f, frame, 12), 0)
    go_place, count_place = _pointer(f, frame, 10), _pointer(f, frame, 12)
    n_carries, n_rows, slots = _word(f, frame, 13), _word(f, frame, 14), _pointer(f, frame, 15)
    carries = f.at(frame, 16, "i64")
    rows = f.at(carries, n_carries * 4, "i64")
    row_slots = f.at(slots, n_carries * 2, "i64")
    n = f.branch(
        f.ne(_word(f, frame, 9), 0), lambda: [_word(f, _pointer(f, frame, 9))], lambda: [limit]
    )[0]
    into_result = f.bitor(asks, f.ne(n & 1, 0))  # the first step

    def start(k: Value, _: list[Value]) -> list[Value]:
        carry, slot = f.at(carries, k * 4, "i64"), f.at(slots, k * 2, "i64")
        f.store(_word(f, carry), slot)
        into = f.select(into_result, _word(f, carry, 1), _word(f, carry, 2))
        f.store(into, f.at(slot, 1, "i64"))
        return []

    def start_row(k: Value, _: list[Value]) -> list[Value]:
        row = f.at(rows, k * 2, "i64")
        last = (n - 1) * _word(f, row, 1) * goes_back
        f.store(_word(f, row) + last, f.at(row_slots, k, "i64"))
        return []

    def move(k: Value, _: list[Value]) -> list[Value]:
        entry = f.at(moves, k * 3, "i64")
        slot = _bytes_on(f, space, _word(f, entry, 1))
        f.store(_word(f, slot) + _word(f, entry, 2), _bytes_on(f, space, _word(f, entry)))
        return []

    def flip(k: Value, _: list[Value]) -> list[Value]:
        carry, slot = f.at(carries, k * 4, "i64"), f.at(slots, k * 2, "i64")
        now = _word(f, slot, 1)
        at_result = f.eq(now, _word(f, carry, 1))
        f.store(now, slot)
        into = f.select(at_result, _word(f, carry, 2), _word(f, carry, 1))
        f.store(into, f.at(slot, 1, "i64"))
        return []

    def advance(k: Value, _: list[Value]) -> list[Value]:
        slot, stride = f.at(row_slots, k, "i64"), _word(f, f.at(rows, k * 2, "i64"), 1)
        f.store(_word(f, slot) + f.select(f.ne(goes_back, 0), f.neg(stride), stride), slot)
        return []

    f.loop(0, n_carries, 1, start, maybe_empty=True)
    f.loop(0, n_rows, 1, start_row, maybe_empty=True)
    f.loop(0, n_moves, 1, move, maybe_empty=True)
    f.when(asks, lambda: _run_steps(f, steps, space, test, n_test))

    def goes_on(carried: list[Value]) -> Value:
        one = f.constant(I64, 1)
        go = f.branch(asks, lambda: [_flag(f, go_place)], lambda: [one])[0]
        going = f.bitand(f.compare("lt", carried[0], n), f.ne(go, 0))
        return f.bitand(going, f.eq(_word(f, space), 0))

    def step(carried: list[Value]) -> list[Value]:
        k, then = carried
        _run_steps(f, steps, space, body, n_body)
        f.loop(0, n_carries, 1, flip, maybe_empty=True)
        f.loop(0, n_rows, 1, advance, maybe_empty=True)
        f.loop(0, n_moves, 1, move, maybe_empty=True)
        k = k + 1
        then = f.branch(f.eq(k & 255, 0), lambda: [_look(f, space, then)], lambda: [then])[0]
        return [k, then]

    k, _ = f.while_loop([f.constant(I64, 0), _cycles(f)], goes_on, step)

    def settle(k: Value, _: list[Value]) -> list[Value]:
        carry = f.at(carries, k * 4, "i64")
        at = _word(f, f.at(slots, k * 2, "i64"))

        def bring() -> None:
            source = f.emit(PTR, f"inttoptr {at!r} to ptr")
            copy_bytes(f, _pointer(f, carry, 1), source, _word(f, carry, 3))

        f.when(f.ne(at, _word(f, carry, 1)), bring)
        return []

    f.loop(0, n_carries, 1, settle, maybe_empty=True)
    f.when(counts, lambda: f.store(k, count_place))
    f.ret()


def print_choose(module: Module, name: str, element: str, blocks: int) -> None:
    """Add the kernel of branches.

    Frame: what all control flow has; first step and number of steps of each block; where the number
    of the block that runs stands.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    space, steps = _pointer(f, frame), _pointer(f, frame, 1)
    place = _pointer(f, frame, CONTROL_WORDS + 2 * blocks)
    if element == "i1":
        index = _flag(f, place)
    else:
        index = f.convert(f.load(typed(element), place), "i64")
        last, zero = f.constant(I64, blocks - 1), f.constant(I64, 0)
        index = f.intrinsic("smax", f.intrinsic("smin", index, last), zero)  # whoever made it
    block = f.at(frame, index * 2 + CONTROL_WORDS, "i64")
    _run_steps(f, steps, space, _word(f, block), _word(f, block, 1))
    f.ret()


def _flag(f: Emitter, place: Value) -> Value:
    """A boolean in memory as 0 or 1."""
    return f.emit(I64, f"zext {f.load(_BYTE, place)!r} to i64")


def _cycles(f: Emitter) -> Value:
    name = "@llvm.readcyclecounter"
    f.module.declare(name, f"declare i64 {name}()")
    return f.emit(I64, f"call i64 {name}()", pure=False)


def _look(f: Emitter, space: Value, then: Value) -> Value:
    """When somebody looked last whether the user wants to stop; if that is long ago, do so now."""
    now = _cycles(f)

    def ask() -> list[Value]:
        state = f.call("PyGILState_Ensure", I32, [])
        wants = f.call("PyErr_CheckSignals", I32, [])
        assert state is not None
        assert wants is not None
        f.when(f.ne(wants, 0), lambda: f.store(f.constant(I64, STOPPED), space))
        f.call("PyGILState_Release", None, [state])
        return [now]

    return f.branch(f.compare("gt", now - then, _LOOKS), ask, lambda: [then])[0]


# The function that Python calls


def _print_walker(module: Module) -> None:
    """`PyObject *walk(PyObject *table, PyObject **arguments, Py_ssize_t count)`.

    The last argument is the workspace.
    """
    f = module.function("walk", [("table", PTR), ("arguments", PTR), ("count", I64)], PTR)
    holder, arguments, count = f.arguments
    table = _pointer(f, _bytes_on(f, holder, DATA))
    head = {name: f.at(table, slot, "i64") for name, slot in _SLOT.items()}

    def dense(k: Value, held: list[Value]) -> list[Value]:
        array = _pointer(f, arguments, k)
        return [held[0] & f.load(I32, _bytes_on(f, array, FLAGS))]

    (flags,) = f.loop(0, count, 1, dense, [f.constant(I32, DENSE)])

    def run() -> list[Value]:
        space = _aligned(f, _pointer(f, _bytes_on(f, _pointer(f, arguments, count - 1), DATA)))
        n = {name: _word(f, head[name]) for name in HEAD[7:]}
        patches = f.at(table, len(HEAD), "i64")
        controls = f.at(patches, n["patches"] * 3, "i64")
        steps = f.at(controls, n["controls"], "i64")
        frames = f.at(steps, (n["steps"] + n["moves"]) * 3, "i64")
        copy_bytes(f, space, frames, n["frames"] * 8)

        def patch(k: Value, _: list[Value]) -> list[Value]:
            entry = f.at(patches, k * 3, "i64")
            array = _pointer(f, _bytes_on(f, arguments, _word(f, entry, 1)))
            last = f.eq(_word(f, entry, 1), (count - 1) * 8)
            data = f.select(last, space, _pointer(f, _bytes_on(f, array, DATA)))
            place = _bytes_on(f, space, _word(f, entry))
            f.store(_bytes_on(f, data, _word(f, entry, 2)), place)
            return []

        def control(k: Value, _: list[Value]) -> list[Value]:
            frame = _bytes_on(f, space, _word(f, controls, k))
            f.store(space, frame)
            f.store(steps, f.at(frame, 1, "i64"))
            return []

        f.loop(0, n["patches"], 1, patch, maybe_empty=True)
        f.loop(0, n["controls"], 1, control, maybe_empty=True)
        lets_go = f.ne(_word(f, head["lets_go"]), 0)
        state = f.branch(
            lets_go,
            lambda: [_call(f, _pointer(f, head["save"]), "ptr")],
            lambda: [f.null()],
        )[0]
        _run_steps(f, steps, space, n["first"], n["calls"])
        restore = _pointer(f, head["restore"])
        f.when(lets_go, lambda: f.line(f"call void {restore.name}({state!r})"))
        state = _word(f, space)
        told = f.select(f.eq(state, WRONG), _pointer(f, head["none"]), _pointer(f, head["true"]))
        return [f.select(f.eq(state, STOPPED), f.null(), told)]

    good = f.eq(flags & DENSE, DENSE)
    found = f.branch(good, run, lambda: [_pointer(f, head["false"])])[0]
    f.line(f"call void {_pointer(f, head['incref']).name}({found!r})")  # which may be null
    f.ret(found)


def _aligned(f: Emitter, space: Value) -> Value:
    """The first multiple of 64 in the workspace."""
    address = f.emit(I64, f"ptrtoint {space!r} to i64")
    return f.emit(PTR, f"inttoptr {((address + 63) & -64)!r} to ptr")
