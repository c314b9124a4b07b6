"""Programs: calls of kernels in order, run by one call from Python.

A program is a table of 64-bit words, and a few lines of machine code that walk it: they read the
addresses of the arrays they are given off NumPy's own struct, put them into the frames of the
kernels, let go of the interpreter's lock where the work is long, and run one kernel after the
other on the pool of threads. So a graph is data, and the only code made for it are kernels that no
graph had before.

The arrays must be dense; the code looks at their flags and gives False where one is not. Frames
and the buffers that only the kernels see lie in a workspace, an array that comes with each call, so
any number of Python threads may call at once.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from funct.compile.loops import Kernel
from funct.compile.lower import Address, Buffer, Call
from funct.compile.printer import print_kernel
from funct.compile.products import print_product
from funct.compile.reductions import print_combine
from funct.device import Code, assemble, threads
from funct.graph import Var
from funct.kernels.cpu.calls import DATA, DENSE, FLAGS, builtin
from funct.kernels.llvm import I32, I64, PTR, Emitter, Module, Value, typed

__all__ = [
    "Program", "Repeat", "assemble_kernels", "kernels_text", "link", "reload", "walker",
]  # fmt: skip

_LONG = 1 << 15  # bytes of results above which other Python threads may run meanwhile

# Words at the head of a table.
_TRUE, _FALSE, _INCREF, _SAVE, _RESTORE, _LETS_GO, _PATCHES, _CALLS, _FRAMES = range(9)
_PASSES, _ONCE_MORE, _MOVES = 9, 10, 11
_HEAD = 12


@attrs.frozen(eq=False)
class Program:
    """What `link` makes. run: takes the arrays, then a workspace of `workspace` bytes of uint8.

    kernels: (word, code, name) where the table has a kernel's address. held: (word, Var, offset)
    where it has that of an array which outlives the program.
    """

    run: Callable[..., bool]
    workspace: int
    table: np.ndarray[Any, Any]
    code: tuple[Code, ...]
    kernels: tuple[tuple[int, Code, str], ...]
    held: tuple[tuple[int, Any, int], ...]


@attrs.frozen
class Repeat:
    """How often the calls run: all of them `passes` times, then the first `half` if `odd`.

    strides: bytes by which the address of an argument moves after each pass.
    """

    passes: int
    odd: bool
    half: int
    strides: dict[Var, int]


_ONCE = Repeat(1, False, 0, {})

# Code of kernels

_codes: dict[Any, tuple[Code, str]] = {}  # and the function's name in it
_making = threading.Lock()


def assemble_kernels(keys: Sequence[Any]) -> None:
    """Make code for those of the kernels that have none yet: one text for all of them."""
    with _making:
        new = [k for k in dict.fromkeys(keys) if k not in _codes]
        if not new:
            return
        code = assemble(kernels_text(new))
        for n, key in enumerate(new):
            _codes[key] = code, f"kernel{n}"


def kernels_text(keys: Sequence[Any]) -> str:
    """LLVM text with a function for each kernel: kernel0, kernel1 …"""
    module = Module()
    for n, key in enumerate(dict.fromkeys(keys)):
        if isinstance(key, Kernel):
            print_kernel(module, f"kernel{n}", key)
        elif key[0] == "product":
            print_product(module, f"kernel{n}", *key[1:])
        else:
            print_combine(module, f"kernel{n}", *key[1:])
    return module.text()


# The table


def link(
    calls: Sequence[Call], arguments: Sequence[Var], held: dict[Var, int], repeat: Repeat = _ONCE
) -> Program:
    """A program that runs the calls.

    arguments: the Vars whose arrays come with each call, results among them. held: addresses of
    arrays that outlive the program (constants).
    """
    assemble_kernels([c.kernel for c in calls])
    places, inner = _place_buffers(calls, set(arguments) | set(held))
    position = {v: k for k, v in enumerate(arguments)}
    frames: list[int] = []
    patches: list[int] = []
    steps: list[int] = []
    moves: list[int] = []
    codes: dict[int, Code] = {}
    kernels: list[tuple[int, Code, str]] = []
    moved: list[tuple[int, Any, int]] = []
    for c in calls:
        code, symbol = _codes[c.kernel]
        codes[id(code)] = code
        kernels.append((len(steps), code, symbol))
        steps += [code.address(symbol), 8 * len(frames), c.tasks]
        for w in c.words:
            if not isinstance(w, Address):
                frames.append(w)
                continue
            if w.of in held:
                moved.append((len(frames), w.of, w.offset))
            frames.append(held[w.of] + w.offset if w.of in held else 0)
            if w.of in position:
                patches += [8 * (len(frames) - 1), 8 * position[w.of], w.offset]
                if w.of in repeat.strides:
                    moves += [8 * (len(frames) - 1), repeat.strides[w.of]]
            elif w.of in places:
                patches += [8 * (len(frames) - 1), 8 * len(arguments), places[w.of] + w.offset]
    start = -(-8 * len(frames) // 64) * 64
    for k in range(0, len(patches), 3):
        if patches[k + 1] == 8 * len(arguments):
            patches[k + 2] += start
    long = sum(
        [w.size_bytes if isinstance(w, Buffer) else _bytes(w) for c in calls for w in c.writes]
    )
    head = [0] * _HEAD
    head[_LETS_GO] = int(long * (repeat.passes + 1) > _LONG)
    head[_PASSES], head[_ONCE_MORE] = repeat.passes, repeat.half if repeat.odd else 0
    head[_MOVES] = len(moves) // 2
    head[_PATCHES], head[_CALLS], head[_FRAMES] = len(patches) // 3, len(steps) // 3, len(frames)
    table = np.asarray([*head, *patches, *steps, *moves, *frames], np.int64)
    first = _HEAD + len(patches)
    last = len(table) - len(frames)
    return Program(
        reload(table),
        start + inner + 64,
        table,
        tuple(codes.values()),
        tuple([(first + k, code, symbol) for k, code, symbol in kernels]),
        tuple([(last + k, v, offset) for k, v, offset in moved]),
    )


def reload(table: np.ndarray[Any, Any]) -> Callable[..., bool]:
    """What runs a table whose addresses of kernels and held arrays are right."""
    api = ctypes.pythonapi
    for slot, name in ((_INCREF, "Py_IncRef"), (_SAVE, "PyEval_SaveThread"),
                       (_RESTORE, "PyEval_RestoreThread")):  # fmt: skip
        table[slot] = ctypes.cast(getattr(api, name), ctypes.c_void_p).value or 0
    table[_TRUE], table[_FALSE] = id(True), id(False)
    return _entry(table)


def _bytes(v: Var) -> int:
    return int(np.prod(v.shape, dtype=np.int64)) * v.dtype.itemsize


def _place_buffers(calls: Sequence[Call], given: set[Any]) -> tuple[dict[Any, int], int]:
    """Where in the workspace what only the calls see stands; what is dead makes room."""
    first: dict[Any, int] = {}
    last: dict[Any, int] = {}
    for k, c in enumerate(calls):
        for w in c.words:
            if isinstance(w, Address) and w.of not in given:
                first.setdefault(w.of, k)
                last[w.of] = k
    free: list[tuple[int, int]] = []  # (start, length)
    ends: dict[int, list[Any]] = {}
    for b, k in last.items():
        ends.setdefault(k, []).append(b)
    places: dict[Any, int] = {}
    sizes: dict[Any, int] = {}
    top = 0
    begins: dict[int, list[Any]] = {}
    for b, k in first.items():
        begins.setdefault(k, []).append(b)
    for k in range(len(calls)):
        for b in begins.get(k, ()):
            size = -(-max(1, b.size_bytes if isinstance(b, Buffer) else _bytes(b)) // 64) * 64
            fits = [(n, s) for s, n in free if n >= size]
            if fits:
                n, s = min(fits)
                free.remove((s, n))
                if n > size:
                    free.append((s + size, n - size))
            else:
                s, top = top, top + size
            places[b], sizes[b] = s, size
        for b in ends.get(k, ()):
            free = _joined([*free, (places[b], sizes[b])])
    return places, top


def _joined(free: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Free ranges, neighbours made one."""
    out: list[tuple[int, int]] = []
    for s, n in sorted(free):
        if out and sum(out[-1]) == s:
            out[-1] = (out[-1][0], out[-1][1] + n)
        else:
            out.append((s, n))
    return out


# The code that walks a table


@functools.cache
def _walker() -> Code:
    assert threads.PARALLEL  # the pool that the code calls is known once that module is
    module = Module()
    _print_walker(module)
    return assemble(module.text(), opt=0).keep()  # every process waits for it


def walker() -> int:
    """The address of the code that walks tables: `walk(table, arguments, count)`."""
    return _walker().address("walk")


def _entry(table: np.ndarray[Any, Any]) -> Callable[..., bool]:
    """A builtin function that walks the table."""
    return builtin("run", _walker().address("walk"), table)


def _print_walker(module: Module) -> None:
    """`PyObject *walk(PyObject *table, PyObject **arguments, Py_ssize_t count)`.

    The last argument is the workspace.
    """
    f = module.function("walk", [("table", PTR), ("arguments", PTR), ("count", I64)], PTR)
    holder, arguments, count = f.arguments
    byte = typed("i8")

    def at(pointer: Value, offset: Value | int) -> Value:
        return f.at(pointer, offset, byte.element)

    def word(pointer: Value, slot: int) -> Value:
        return f.load(I64, f.at(pointer, slot, "i64"))

    def pointer(place: Value, slot: int = 0) -> Value:
        return f.load(PTR, f.at(place, slot, "ptr"))

    def call(function: Value, result: str, given: str) -> Value | None:
        text = f"call {result} {function.name}({given})"
        if result == "void":
            f.line(text)
            return None
        return f.emit(PTR, text, pure=False)

    table = pointer(at(holder, DATA))

    def dense(k: Value, held: list[Value]) -> list[Value]:
        array = f.load(PTR, f.at(arguments, k, "ptr"))
        flags = f.load(I32, at(array, FLAGS))
        return [held[0] & flags]

    (flags,) = f.loop(0, count, 1, dense, [f.constant(I32, DENSE)])
    good = f.eq(flags & DENSE, DENSE)

    def run() -> list[Value]:
        space = pointer(at(f.load(PTR, f.at(arguments, count - 1, "ptr")), DATA))
        patches = f.at(table, _HEAD, "i64")
        n_patches, n_calls, n_frames = (word(table, s) for s in (_PATCHES, _CALLS, _FRAMES))
        steps = f.at(patches, n_patches * 3, "i64")
        n_moves = word(table, _MOVES)
        moves = f.at(steps, n_calls * 3, "i64")
        frames = f.at(moves, n_moves * 2, "i64")
        aligned = _aligned(f, space)
        f.line(
            f"call void @llvm.memcpy.p0.p0.i64({aligned!r}, {frames!r}, {n_frames * 8!r}, i1 false)"
        )
        module.declare(
            "@llvm.memcpy.p0.p0.i64", "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
        )

        def patch(k: Value, _: list[Value]) -> list[Value]:
            entry = f.at(patches, k * 3, "i64")
            array = pointer(at(arguments, word(entry, 1)))
            data = pointer(at(array, DATA))
            last = f.eq(word(entry, 1), (count - 1) * 8)
            data = f.select(last, aligned, data)
            f.store(at(data, word(entry, 2)), at(aligned, word(entry, 0)))
            return []

        f.loop(0, n_patches, 1, patch, maybe_empty=True)
        lets_go = f.ne(word(table, _LETS_GO), 0)
        state = f.branch(
            lets_go,
            lambda: [call(pointer(table, _SAVE), "ptr", "")],  # type: ignore[list-item]
            lambda: [Value(f, "null", PTR)],
        )[0]

        def step(k: Value, _: list[Value]) -> list[Value]:
            entry = f.at(steps, k * 3, "i64")
            kernel, frame, tasks = pointer(entry), at(aligned, word(entry, 1)), word(entry, 2)

            def once() -> list[Value]:
                call(kernel, "void", f"{frame!r}, i64 0")
                return []

            def many() -> list[Value]:
                f.call("funct_parallel", None, [kernel, frame, tasks])
                return []

            f.branch(f.eq(tasks, 1), once, many)
            return []

        def move(k: Value, _: list[Value]) -> list[Value]:
            entry = f.at(moves, k * 2, "i64")
            place = at(aligned, word(entry, 0))
            f.store(at(pointer(place), word(entry, 1)), place)
            return []

        def whole(k: Value, _: list[Value]) -> list[Value]:
            f.loop(0, n_calls, 1, step, maybe_empty=True)
            f.loop(0, n_moves, 1, move, maybe_empty=True)
            return []

        f.loop(0, word(table, _PASSES), 1, whole, maybe_empty=True)
        f.loop(0, word(table, _ONCE_MORE), 1, step, maybe_empty=True)
        f.when(lets_go, lambda: f.line(f"call void {pointer(table, _RESTORE).name}({state!r})"))
        return [pointer(table, _TRUE)]

    found = f.branch(good, run, lambda: [pointer(table, _FALSE)])[0]
    f.line(f"call void {pointer(table, _INCREF).name}({found!r})")
    f.ret(found)


def _aligned(f: Emitter, space: Value) -> Value:
    """The first multiple of 64 in the workspace."""
    address = f.emit(I64, f"ptrtoint {space!r} to i64")
    return f.emit(PTR, f"inttoptr {((address + 63) & -64)!r} to ptr")
