"""Programs: calls of kernels in order, run by one call from Python.

A program is a table of 64-bit words, and a few lines of machine code that walk it
(`steps/walker.py`): they read the addresses of the arrays they are given off NumPy's own struct,
put them into the frames of the kernels, let go of the interpreter's lock where the work is long,
and run one kernel after the other on the pool of threads. So a graph is data, and the only code
made for it are kernels that no graph had before.

The arrays must be dense; the code looks at their flags and gives False where one is not. Frames
and the buffers that only the kernels see lie in a workspace, an array that comes with each call, so
any number of Python threads may call at once.
"""

from __future__ import annotations

import functools
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from msgspec import Struct

from funct.compile.fusion.calls import Address, Call, Root, Slot, every_call, size_bytes
from funct.compile.lines.kernel import print_registers
from funct.compile.loops.kernel import CONTROL_WORDS, Kernel
from funct.compile.loops.printer import print_kernel
from funct.compile.loops.reductions import print_combine
from funct.compile.loops.transposes import print_transposed
from funct.compile.memory.workspace import place_buffers
from funct.compile.steps.along import print_along
from funct.compile.steps.elimination import print_factored, print_solved
from funct.compile.steps.factors import print_factors, print_qr
from funct.compile.steps.finite import print_finite
from funct.compile.steps.flat import print_flat
from funct.compile.steps.folds import print_fold
from funct.compile.steps.fourier import print_fourier, print_lines_of
from funct.compile.steps.gathers import print_gather
from funct.compile.steps.loop_products import print_loop_product
from funct.compile.steps.lu import print_lu
from funct.compile.steps.matrices import print_matrices, print_triangular
from funct.compile.steps.moves import print_copied, print_zeros
from funct.compile.steps.products import print_few, print_few_sums
from funct.compile.steps.reflections import print_reflections
from funct.compile.steps.sparse import print_judged, print_verdict
from funct.compile.steps.systems import print_odd
from funct.compile.steps.told import print_told
from funct.compile.steps.triangles import print_cholesky, print_triangles
from funct.compile.steps.turns import print_choose, print_repeat
from funct.compile.steps.ufuncs import print_ufunc
from funct.compile.steps.walker import FIRST_WORDS, HEAD, assemble_kernels, reload
from funct.device import Code, host
from funct.device.machine_code import LEAN
from funct.graph import Var
from funct.kernels.cpu.products.blas_products import print_product
from funct.kernels.cpu.products.few_rows import print_few_rows
from funct.kernels.cpu.products.gram import print_gram, print_mirrored
from funct.kernels.cpu.products.tiled import print_tasks
from funct.kernels.cpu.products.vector_text import print_columns, print_rows
from funct.kernels.llvm import Module

__all__ = ["Program", "kernels_of", "kernels_text", "link"]

_PART = 24  # values of kernels that are worth a piece of code of their own
_OTHER = 16  # values of a loop that takes as long to make as a kernel that is none
_MOST_PARTS = 4
_MOST_RECENT = 512  # kernels: with all that is known of them some 40 KB each
_FEW_TASKS = 8  # of a kernel: at each step of a loop it costs more to wake threads for these
_FEW = 1 << 8  # turns, in all steps of loops
# Kinds whose code is as fast at the lean level: what they repeat for long is written out.
_LEAN = frozenset({
    "columns", "combine", "copied", "gemm", "lean flat", "product", "registers", "rows", "told",
    "transposed", "zeros",
})  # fmt: skip
_LONG = 1 << 15  # bytes of arrays above which other Python threads may run meanwhile


class Program(Struct, frozen=True, eq=False):
    """What `link` makes. run: takes the arrays, then a workspace of `workspace` bytes of uint8.

    kernels: (word, code, name) where the table has a kernel's address. held: (word, Var, offset)
    where it has that of an array which outlives the program.
    """

    run: Callable[..., bool | None]
    workspace: int
    table: np.ndarray[Any, Any]
    code: tuple[Code, ...]
    kernels: tuple[tuple[int, Code, str], ...]
    held: tuple[tuple[int, Any, int], ...]


# Code of kernels

class _Made(Struct, frozen=True, eq=False, weakref=True):
    """The code of a kernel, and the function's name in it."""

    code: Code
    name: str


class _Words(bytearray):
    """The words of a table. made: whose addresses are among them, and lives as long."""

    made: tuple[_Made, ...] = ()


_codes: WeakValueDictionary[Any, _Made] = WeakValueDictionary()
_recent: OrderedDict[Any, _Made] = OrderedDict()  # for functions that are made time and again
_making = threading.Lock()
_PRINTERS: dict[str, Callable[..., None]] = {
    "product": print_product, "gemm": print_tasks, "combine": print_combine, "repeat": print_repeat,
    "choose": print_choose, "zeros": print_zeros, "copied": print_copied, "gather": print_gather,
    "flat": print_flat, "lean flat": print_flat, "fourier lines": print_lines_of,
    "fourier": print_fourier, "matrices": print_matrices, "triangular": print_triangular,
    "ufunc": print_ufunc, "fold": print_fold, "loop product": print_loop_product,
    "along": print_along, "qr": print_qr, "factors": print_factors,
    "lu": print_lu, "registers": print_registers, "rows": print_rows, "columns": print_columns,
    "transposed": print_transposed, "few": print_few, "few sums": print_few_sums,
    "few rows": print_few_rows, "gram": print_gram, "mirrored": print_mirrored, "told": print_told,
    "reflections": print_reflections, "judged": print_judged, "verdict": print_verdict,
    "odd": print_odd, "factored": print_factored, "solved": print_solved,
    "cholesky": print_cholesky, "triangles": print_triangles, "finite": print_finite,
}  # fmt: skip


def kernels_of(calls: Sequence[Call]) -> dict[Any, _Made]:
    """The kernels of the calls; for those that are new, code is made in a few texts.

    Programs that are linked while somebody holds what this gives find theirs there.
    """
    with _making:
        keys = dict.fromkeys(c.kernel for c in every_call(calls))
        found = {key: made for key in keys if (made := _codes.get(key)) is not None}
        new = [key for key in keys if key not in found]
        lean = _lean(calls)
        texts = [(part, 1) for part in _parts([k for k in new if k not in lean])]
        texts += [(part, LEAN) for part in _parts([k for k in new if k in lean])]
        several = any(c.tasks > 1 for c in every_call(calls))
        printers = [(functools.partial(kernels_text, part), level) for part, level in texts]
        codes = assemble_kernels(printers, several=several) if texts else []
        for (part, _), code in zip(texts, codes, strict=True):
            for n, key in enumerate(part):
                found[key] = _codes[key] = _Made(code, f"kernel{n}")
        for key, made in found.items():
            _recent[key] = made
            _recent.move_to_end(key)
        while len(_recent) > _MOST_RECENT:
            _recent.popitem(last=False)
    return found


def _lean(calls: Sequence[Call]) -> set[Any]:
    """Kernels that are as fast where their code costs least to make: loops over rows that are long
    enough for what comes before and behind them not to count, or over few elements.
    """
    turns: Counter[Any] = Counter()

    def count(calls: Sequence[Call], times: int) -> None:
        for c in calls:
            plain = isinstance(c.kernel, Kernel) or c.kernel[0] in _LEAN
            turns[c.kernel] += times * c.turns if plain else _FEW + 1
            for block in c.blocks:
                count(block, times * c.turns)

    count(calls, 1)
    return {k for k, n in turns.items() if n <= _FEW}


def _parts(keys: Sequence[Any]) -> list[list[Any]]:
    """The kernels in pieces of about the same size, which are made side by side."""
    sizes = {k: len(k.values) if isinstance(k, Kernel) else _OTHER for k in keys}
    count = min(host().cores, _MOST_PARTS, 1 + sum(sizes.values()) // _PART)
    parts: list[list[Any]] = [[] for _ in range(count)]
    loads = [0] * count
    for k in sorted(keys, key=lambda k: -sizes[k]):
        least = loads.index(min(loads))
        parts[least].append(k)
        loads[least] += sizes[k]
    return [p for p in parts if p]


def kernels_text(keys: Sequence[Any]) -> str:
    """LLVM text with a function for each kernel: kernel0, kernel1 …"""
    module = Module()
    for n, key in enumerate(dict.fromkeys(keys)):
        if isinstance(key, Kernel):
            print_kernel(module, f"kernel{n}", key)
        else:
            _PRINTERS[key[0]](module, f"kernel{n}", *key[1:])
    return module.text()


# The table


def link(calls: Sequence[Call], arguments: Sequence[Var], held: dict[Var, int]) -> Program:
    """A program that runs the calls.

    arguments: the Vars whose arrays come with each call, results among them. held: addresses of
    arrays that outlive the program (constants).
    """
    return _Table(calls, arguments, held, kernels_of(calls)).program()


class _Table:
    """The words of a program as they are put together. Places in frames are counted in words."""

    def __init__(
        self,
        calls: Sequence[Call],
        arguments: Sequence[Var],
        held: dict[Var, int],
        kernels: dict[Any, _Made],
    ) -> None:
        self.kernels = kernels
        self.position = {v: k for k, v in enumerate(arguments)}
        self.held = held
        self.places, self.inner = place_buffers(calls, {*arguments, *held})
        self.frames = [0] * FIRST_WORDS
        self.steps: list[tuple[Code, str, int, int]] = []  # kernel, its name, frame, tasks
        self.addresses: list[tuple[int, Root, int]] = []  # place, of, offset
        self.moves: list[tuple[int, Slot, int]] = []
        self.controls: list[int] = []
        self.moving: list[tuple[int, int, int]] = []  # frames of loops: first and number of moves
        self.first, self.calls = self._block(calls, inside=False)
        every = list(every_call(calls))
        self.lets_go = bool(self.controls) or sum(map(_touched, every)) > _LONG

    def _block(self, calls: Sequence[Call], *, inside: bool) -> tuple[int, int]:
        """Where among the steps those of a block begin, and how many they are."""
        made = [self._step(c, inside) for c in calls]
        first = len(self.steps)
        self.steps += made
        return first, len(made)

    def _step(self, c: Call, inside: bool) -> tuple[Code, str, int, int]:
        before = len(self.addresses)
        blocks = [n for b in c.blocks for n in self._block(b, inside=True)]
        at = len(self.frames)
        if c.is_told:
            self.controls.append(at)
            self.frames += [0] * CONTROL_WORDS + blocks
        if c.slots is not None:
            placed = self.addresses[before:]
            mine = [a for a in placed if isinstance(a[1], Slot) and a[1].of is c.slots]
            self.moving.append((at, len(self.moves), len(mine)))
            self.moves += mine  # type: ignore[arg-type]
        for w in c.words:
            if isinstance(w, Address):
                self.addresses.append((len(self.frames), w.of, w.offset))
            self.frames.append(w if isinstance(w, int) else 0)
        alone = inside and isinstance(c.kernel, Kernel) and c.tasks < _FEW_TASKS
        made = self.kernels[c.kernel]
        return made.code, made.name, at, -c.tasks if alone else c.tasks

    def program(self) -> Program:
        """The words, and what is known of them."""
        start = -(-8 * len(self.frames) // 64) * 64  # of the buffers in the workspace
        base = 3 * len(self.steps)  # of the moves, counted from the first step
        for at, first, count in self.moving:
            self.frames[at + 2 : at + 4] = base + 3 * first, count
        patches: list[int] = []
        held: list[tuple[int, Any, int]] = []
        for at, of, offset in self.addresses:
            if of in self.held:
                assert isinstance(of, Var), "constants have names"
                held.append((at, of, offset))
                self.frames[at] = self.held[of] + offset
            elif of in self.position:
                assert isinstance(of, Var), "arguments have names"
                patches += [8 * at, 8 * self.position[of], offset]
            elif not isinstance(of, Slot):
                patches += [8 * at, 8 * len(self.position), start + self.places[of] + offset]
        moves = [
            n
            for at, slot, offset in self.moves
            for n in (8 * at, start + self.places[slot.of] + 8 * slot.index, offset)
        ]
        steps = [
            n for code, name, at, tasks in self.steps for n in (code.address(name), 8 * at, tasks)
        ]
        counts = {
            "parallel": int(any(tasks > 1 for *_, tasks in self.steps)),
            "lets_go": int(self.lets_go), "patches": len(patches) // 3,
            "controls": len(self.controls), "steps": len(self.steps), "moves": len(self.moves),
            "frames": len(self.frames), "first": self.first, "calls": self.calls,
        }  # fmt: skip
        head = [counts.get(name, 0) for name in HEAD]
        before = [*head, *patches, *[8 * at for at in self.controls]]
        words = _Words(np.asarray([*before, *steps, *moves, *self.frames], np.int64).tobytes())
        words.made = tuple(self.kernels.values())
        table = np.frombuffer(words, np.int64)
        last = len(table) - len(self.frames)
        return Program(
            reload(table),
            start + self.inner + 64,
            table,
            tuple({id(code): code for code, *_ in self.steps}.values()),
            tuple(
                [(len(before) + 3 * k, code, name) for k, (code, name, *_) in enumerate(self.steps)]
            ),
            tuple([(last + at, v, offset) for at, v, offset in held]),
        )


def _touched(call: Call) -> int:
    """Bytes of the arrays that a call reads or writes: a sum of many numbers writes one."""
    found = {w.of for w in call.words if isinstance(w, Address) and isinstance(w.of, Var)}
    return sum(map(size_bytes, found | {*call.writes}))
