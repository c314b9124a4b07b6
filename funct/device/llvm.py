"""LLVM by llvmlite, which is loaded here alone, at the first use."""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from funct.device.fork import in_child, whole
from funct.device.mapped_files import let_go

__all__ = [
    "LEAN", "at_load", "binding", "emit_object", "lean_level", "loaded", "release",
    "release_in_pauses", "version",
]  # fmt: skip

LEAN = -1  # a level: for text in explicit vectors with long loops; as fast as 1, in half the time
_KNOWN = range(45, 51)  # minor versions of llvmlite whose LLVM (20 to 22) has our option


def loaded() -> bool:
    """Whether LLVM is there, so that code costs milliseconds."""
    return "llvmlite.binding" in sys.modules


@functools.cache
def version() -> str:
    """Which LLVM makes code, said without loading it."""
    import llvmlite

    return str(llvmlite.__version__)


@functools.cache
def binding() -> Any:
    """llvmlite.binding, ready to make code for this machine."""
    # 60 ms, and most programs run for seconds before they compile anything
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    while _wishes:
        _wishes.pop()()
    return llvm


_wishes: list[Callable[[], object]] = []


def at_load(wish: Callable[[], object]) -> None:
    """Call `wish` once LLVM is there: what everybody will ask for can be begun then."""
    _wishes.append(wish)


def lean_level() -> int:
    """LLVM's level for `LEAN`: 0, which selects instructions and leaves it at that, but with the
    good allocator of registers, as at any other level (`_allocating`).
    """
    return 0 if _has_option() else 1


def emit_object(machine: Any, module: Any, opt: int = 1) -> bytes:
    """The object file of a module that has a context of its own. opt: what machine was made for.

    llvmlite lets one thread at a time into LLVM. Code generation, by far the longest of its calls,
    needs nothing that another module's shares, so it is called beside llvmlite's lock.
    """
    with _allocating(well=opt != 0):
        return _emitted(machine, module)


def _emitted(machine: Any, module: Any) -> bytes:
    generate = _generate()
    if generate is None:  # another llvmlite: in turn, then
        return bytes(machine.emit_object(module))
    ffi = binding().ffi
    with ffi.OutputString() as message:
        held = generate(machine, module, 1, message)
        if not held:
            raise RuntimeError(str(message))
    try:
        start, size = ffi.lib.LLVMPY_GetBufferStart(held), ffi.lib.LLVMPY_GetBufferSize(held)
        return ctypes.string_at(start, size)
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(held)


_OPTION = "-optimize-regalloc="  # of the process: whether registers are allocated well
_quickly = whole(threading.Lock())  # held while the option is changed, and while it is false
_well: set[object] = set()  # generations of code under way that want it true


@contextmanager
def _allocating(*, well: bool) -> Iterator[None]:
    """Generate code in the block with the good allocator of registers, or, at level 0 and if no
    other thread needs the good one meanwhile, with the fast one: in a third of the time.
    """
    if not _has_option():
        yield
    elif well:
        me = object()
        with _quickly:
            _good()
            _well.add(me)
        try:
            yield
        finally:
            _well.discard(me)
    else:
        with _quickly:
            alone = not _well
            if alone:
                binding().set_option("funct", f"{_OPTION}false")
                try:
                    yield
                finally:
                    binding().set_option("funct", f"{_OPTION}true")
        if not alone:
            yield


@functools.cache
def _good() -> None:
    binding().set_option("funct", f"{_OPTION}true")


@functools.cache
def _has_option() -> bool:
    """Whether LLVM knows the option: it ends a process that asks for one which it does not know."""
    major, minor = version().split(".")[:2]
    return major == "0" and minor.isdecimal() and int(minor) in _KNOWN


def release() -> None:
    """Give back to the system what making code has freed, of which the C library would keep some
    MB, and 60 MB of LLVM's own pages. A millisecond on Linux with glibc; elsewhere nothing happens.
    """
    trim = _trim()
    if trim is not None:
        trim(0)
    _let_go()


_PAUSE = 0.05  # seconds: what comes back in two milliseconds is missed too seldom to be felt
_used = 0.0  # when code was made last
_watched = False  # whether a thread waits for a pause


def release_in_pauses() -> None:
    """Code was made: when none has been for a while, LLVM's own pages are given back.

    Code comes in bursts, and before most of them a program computes for a while.
    """
    global _used, _watched
    _used = time.monotonic()
    if not _watched:
        _watched = True
        try:
            threading.Thread(target=_watch, name="funct: pauses of LLVM", daemon=True).start()
        except RuntimeError:  # the system has no thread for that, or Python ends
            _watched = False


def _watch() -> None:
    global _watched
    while (left := _used + _PAUSE - time.monotonic()) > 0:
        time.sleep(left)
    _watched = False
    _let_go()


def _forget_watch() -> None:
    global _watched
    _watched = False


in_child(_forget_watch)  # which has no such thread


def _let_go() -> None:
    """Give back LLVM's pages, if it is there."""
    name = getattr(binding().ffi.lib, "_name", None) if loaded() else None
    if name is not None:
        let_go(name)


@functools.cache
def _trim() -> Any:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim.argtypes, trim.restype = (ctypes.c_size_t,), ctypes.c_int
    return trim


@functools.cache
def _generate() -> Any:
    """LLVM's function as llvmlite declares it, without the lock; None where it is not found."""
    lib = binding().ffi.lib
    locked = lib.LLVMPY_TargetMachineEmitToMemory
    name = getattr(lib, "_name", None)
    found = None if name is None else ctypes.CDLL(name).LLVMPY_TargetMachineEmitToMemory
    if found is not None:
        found.argtypes, found.restype = locked.argtypes, locked.restype
    return found
