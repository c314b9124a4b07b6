"""LLVM by llvmlite, whose library is loaded here alone, at the first use."""

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
from funct.device.llvm_library import Library, library_file
from funct.device.mapped_files import let_go

__all__ = [
    "LEAN", "at_load", "binding", "emit_object", "is_known", "lean_level", "library", "loaded",
    "machine", "processor", "release", "release_in_pauses", "version",
]  # fmt: skip

LEAN = -1  # a level: for text in explicit vectors with long loops; as fast as 1, in half the time
_KNOWN = range(45, 51)  # minor versions of llvmlite whose functions and options we know
_opening = whole(threading.Lock())
_here = False  # whether the library is loaded


def loaded() -> bool:
    """Whether LLVM is there, so that code costs milliseconds."""
    return _here or "llvmlite.binding" in sys.modules


@functools.cache
def version() -> str:
    """Which LLVM makes code, said without loading it."""
    import llvmlite

    return str(llvmlite.__version__)


def is_known() -> bool:
    """Whether `library` gives one."""
    return _file() is not None


def library() -> Library | None:
    """llvmlite's library, called by us; None where this llvmlite may be another: then `binding`."""
    with _opening:
        found = _opened()
    while found is not None and _wishes:
        _wishes.pop()()
    return found


@functools.cache
def _opened() -> Library | None:
    global _here
    file = _file()
    if file is None:
        return None
    found = Library(file)
    _here = True
    return found


@functools.cache
def binding() -> Any:
    """llvmlite.binding, ready to make code for this machine: what needs more than the library."""
    import llvmlite.binding as llvm  # 30 ms

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    while _wishes:
        _wishes.pop()()
    return llvm


_wishes: list[Callable[[], object]] = []


def at_load(wish: Callable[[], object]) -> None:
    """Call `wish` once LLVM is there: what everybody will ask for can be begun then."""
    _wishes.append(wish)


def processor() -> tuple[str, list[str]]:
    """LLVM's name of this machine's processor, and of each feature that it has."""
    ours = library()
    if ours is not None:
        return ours.processor()
    llvm = binding()
    features = llvm.get_host_cpu_features().items()
    return str(llvm.get_host_cpu_name()), [f for f, there in features if there]


def lean_level() -> int:
    """LLVM's level for `LEAN`: 0, which selects instructions and leaves it at that, but with the
    good allocator of registers, as at any other level (`_allocating`).
    """
    return 1 if _file() is None else 0


def emit_object(text: str, name: str, features: str, opt: int = 1) -> bytes:
    """The object file of a text, for a processor of that name with these features.

    Raises: RuntimeError: with LLVM's message, where the text is not well formed.
    """
    level = lean_level() if opt == LEAN else opt
    with _allocating(well=opt != 0):
        ours = library()
        if ours is not None:
            return ours.emit(text, name, features, level)
        llvm = binding()
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
        return bytes(machine(name, features, level).emit_object(module))


def machine(name: str, features: str, opt: int) -> Any:
    """llvmlite's machine for such a processor."""
    return (
        binding()
        .Target.from_default_triple()
        .create_target_machine(
            cpu=name,
            features=features,
            opt=lean_level() if opt == LEAN else opt,
            reloc="default",
            codemodel="jitdefault",
        )
    )


_OPTION = "-optimize-regalloc="  # of the process: whether registers are allocated well
_quickly = whole(threading.Lock())  # held while the option is changed, and while it is false
_well: set[object] = set()  # generations of code under way that want it true


@contextmanager
def _allocating(*, well: bool) -> Iterator[None]:
    """Generate code in the block with the good allocator of registers, or, at level 0 and if no
    other thread needs the good one meanwhile, with the fast one: in a third of the time.
    """
    ours = library()
    if ours is None:
        yield
    elif well:
        me = object()
        with _quickly:
            _good(ours)
            _well.add(me)
        try:
            yield
        finally:
            _well.discard(me)
    else:
        with _quickly:
            alone = not _well
            if alone:
                ours.set_option(f"{_OPTION}false")
                try:
                    yield
                finally:
                    ours.set_option(f"{_OPTION}true")
        if not alone:
            yield


@functools.cache
def _good(ours: Library) -> None:
    ours.set_option(f"{_OPTION}true")


@functools.cache
def _file() -> str | None:
    """The library, if we know this LLVM: it ends a process that asks for an option which it does
    not know, or that calls a function in another way than it takes.
    """
    major, minor = version().split(".")[:2]
    known = major == "0" and minor.isdecimal() and int(minor) in _KNOWN
    return library_file() if known else None


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
    ours = library() if loaded() else None
    if ours is not None:
        let_go(ours.file)


@functools.cache
def _trim() -> Any:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim.argtypes, trim.restype = (ctypes.c_size_t,), ctypes.c_int
    return trim
