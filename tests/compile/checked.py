"""Loops whose every load and store is checked: it must lie within one array of the call.

The kernels are printed with a question before each access. One that lies outside is counted and
goes to a place of its own, so the process lives on; `run` then raises IndexError.
"""

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import funct as ft
from funct.compile import program
from funct.compile.loops.kernel import Kernel
from funct.compile.loops.printer import print_kernel
from funct.compile.loops.reductions import print_combine
from funct.compile.loops.transposes import print_transposed
from funct.compile.steps.along import print_along
from funct.compile.steps.gathers import print_gather
from funct.compile.steps.moves import print_zeros
from funct.compile.steps.products import print_few, print_few_sums
from funct.kernels.cpu.products.blas_products import print_product
from funct.kernels.cpu.products.gram import print_gram, print_mirrored
from funct.kernels.cpu.products.vector_text import print_columns, print_rows
from funct.kernels.llvm import I64, PTR, Emitter, Module, Type, Value, typed

_ROOM = 4096
_PRINTERS: dict[str, Any] = {
    "product": print_product, "combine": print_combine, "rows": print_rows,
    "columns": print_columns, "transposed": print_transposed, "few": print_few,
    "few sums": print_few_sums, "zeros": print_zeros,
    "gram": print_gram, "mirrored": print_mirrored, "gather": print_gather, "along": print_along,
}  # fmt: skip
_ranges = (ctypes.c_int64 * (1 + 2 * _ROOM))()  # how many; then where each begins and ends
_faults = (ctypes.c_int64 * 3)()  # how many; where the last one was, and how many bytes
_elsewhere = ctypes.create_string_buffer(1 << 16)
_SIZES = {"double": 8, "float": 4, "half": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1}


class CheckedModule(Module):
    """A text whose functions check where they read and write."""

    def function(self, name: str, parameters: Any = (), result: Any = None, *, local: bool = False):
        emitter = CheckedEmitter(self, name, parameters, result, local=local)
        self._functions.append(emitter)
        return emitter

    def shared(self, name: str, build: Any) -> str:
        if all(function.name != name for function in self._functions):
            own = build in (_define_inside, _define_enter)
            build(self, name) if own else build(name)
        return name

    def plain(self, name: str, parameters: Any, result: Any) -> Emitter:
        """A function that checks nothing."""
        emitter = Emitter(self, name, parameters, result, local=True)
        self._functions.append(emitter)
        return emitter


class CheckedEmitter(Emitter):
    """Prints a question before each access."""

    def _inside(self, pointer: Value, size: Value) -> Value:
        """The address if so many bytes from there on may be touched, else one that harms nobody."""
        module = self.module
        assert isinstance(module, CheckedModule)
        found = self.call(module.shared("inside", _define_inside), PTR, [pointer, size])
        assert found is not None
        return found

    def _checked(self, type: Type, pointer: Value, mask: Value | None) -> Value:
        """The pointer, if what lies from the first to the last lane that is on may be touched."""
        if mask is None:
            return self._inside(pointer, self.constant(I64, type.bytes * type.lanes))
        bits = self.emit(typed("u64"), f"bitcast {mask!r} to i{mask.type.lanes}")
        wide = self.emit(I64, f"zext i{mask.type.lanes} {bits.name} to i64")
        off = self.intrinsic("cttz", wide, tail="i1 false")
        end = 64 - self.intrinsic("ctlz", wide, tail="i1 false")
        first = self.intrinsic("smin", off, end) * type.bytes
        found = self._inside(self.at(pointer, first, "i8"), end * type.bytes - first)
        return self.at(found, self.constant(I64, 0) - first, "i8")

    def load(self, type: Type, pointer: Value, mask: Value | None = None) -> Value:
        if mask is not None and type.lanes == 1:
            return super().load(type, pointer, mask)
        return super().load(type, self._checked(type, pointer, mask), mask)

    def store(self, x: Value, pointer: Value, mask: Any = None, *, streaming: bool = False) -> None:
        if mask is None or x.type.lanes > 1:
            pointer = self._checked(x.type, pointer, mask)
        super().store(x, pointer, mask, streaming=streaming)

    def gather(self, type: Type, pointers: Value) -> Value:
        for k in range(type.lanes if type.lanes > 1 else 0):
            one = self._inside(self.extract(pointers, k), self.constant(I64, type.bytes))
            pointers = self.insert(pointers, k, one)
        return super().gather(type, pointers)

    def allocate(self, type: Type, count: int, align: int = 64) -> Value:
        room = super().allocate(type, count, align)
        size = self.constant(I64, type.bytes * type.lanes * count)
        assert isinstance(self.module, CheckedModule)
        self.call(self.module.shared("enter", _define_enter), None, [room, size])
        return room

    def emit(self, type: Type, text: str, *, pure: bool = True) -> Value:
        value = super().emit(type, text, pure=pure)
        room = re.fullmatch(r"alloca (\w+), i64 (\S+), align 64", text)
        if room is not None:
            count = Value(self, room[2], I64)
            given = [value, count * _SIZES[room[1]]]
            assert isinstance(self.module, CheckedModule)
            self.call(self.module.shared("enter", _define_enter), None, given)
        return value


def _at(f: Emitter, memory: Any) -> Value:
    return f.emit(PTR, f"inttoptr i64 {ctypes.addressof(memory)} to ptr")


def _define_inside(module: CheckedModule, name: str) -> None:
    f = module.plain(name, [("p", PTR), ("size", I64)], PTR)
    p, size = f.arguments
    start = f.emit(I64, f"ptrtoint {p!r} to i64")
    table = _at(f, _ranges)

    def look(k: Value, held: list[Value]) -> list[Value]:
        low = f.load(I64, f.at(table, k * 2 + 1, "i64"))
        high = f.load(I64, f.at(table, k * 2 + 2, "i64"))
        return [held[0] | ((start >= low) & (start + size <= high))]

    (fine,) = f.loop(0, f.load(I64, table), 1, look, [f.eq(size, 0)], maybe_empty=True)

    def fault() -> list[Value]:
        seen = _at(f, _faults)
        f.store(f.load(I64, seen) + 1, seen)
        f.store(start, f.at(seen, 1, "i64"))
        f.store(size, f.at(seen, 2, "i64"))
        return [_at(f, _elsewhere)]

    f.ret(f.branch(fine, lambda: [p], fault)[0])


def _define_enter(module: CheckedModule, name: str) -> None:
    f = module.plain(name, [("p", PTR), ("size", I64)], None)
    p, size = f.arguments
    table = _at(f, _ranges)
    count = f.load(I64, table)
    start = f.emit(I64, f"ptrtoint {p!r} to i64")
    f.store(start, f.at(table, count * 2 + 1, "i64"))
    f.store(start + size, f.at(table, count * 2 + 2, "i64"))
    f.store(f.select(count < _ROOM - 1, count + 1, count), table)
    f.ret()


def watch(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array, whose elements may be read and written from now on."""
    low, high = np.lib.array_utils.byte_bounds(x)
    count = _ranges[0]
    _ranges[0], _ranges[2 * count + 1], _ranges[2 * count + 2] = count + 1, low, high
    return x


@contextmanager
def watched(*arrays: Any) -> Iterator[None]:
    """What runs meanwhile may touch these arrays, and what `watch` is given.

    Raises: IndexError: if something else was touched.
    """
    _ranges[0] = _faults[0] = 0
    for x in arrays:
        watch(x)
    yield
    if _faults[0]:
        where, size = _faults[1], _faults[2]
        raise IndexError(f"{_faults[0]} accesses outside, the last of {size} bytes at {where:#x}")


def _text(keys: Any) -> str:
    module = CheckedModule()
    for n, key in enumerate(dict.fromkeys(keys)):
        if isinstance(key, Kernel):
            print_kernel(module, f"kernel{n}", key)
        else:
            _PRINTERS[key[0]](module, f"kernel{n}", *key[1:])
    return module.text()


@contextmanager
def checking() -> Iterator[None]:
    """Kernels that are made meanwhile check what they touch; nothing made before is used."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "kernels_text", _text)
        patch.setattr(program, "_codes", {})
        yield


def run(made: Any, *args: Any) -> Any:
    """What `made.run` gives.

    Raises: IndexError: if something was touched that is no element of an array of the call.
    """
    names = made.run.__globals__
    with (
        watched(*names["constants"].values()),
        pytest.MonkeyPatch.context() as patch,
        ft.config.using(threads=1),
    ):  # threads would append
        for k, part in enumerate(made.programs):
            patch.setitem(names, f"program{k}", lambda *a, run=part.run: run(*map(watch, a)))
        return made.run(*args)
