"""LLVM by llvmlite, which is loaded here alone, at the first use."""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

__all__ = ["LEAN", "binding", "emit_object", "lean_level", "loaded", "version"]

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
    return llvm


@functools.cache
def lean_level() -> int:
    """LLVM's level for `LEAN`: 0, which selects instructions and leaves it at that, but with the
    good allocator of registers, from now on, at that level too.
    """
    major, minor = version().split(".")[:2]
    if major != "0" or not minor.isdecimal() or int(minor) not in _KNOWN:
        return 1  # LLVM ends a process that asks for an option which it does not know
    binding().set_option("funct", "-optimize-regalloc=true")
    return 0


def emit_object(machine: Any, module: Any) -> bytes:
    """The object file of a module that has a context of its own.

    llvmlite lets one thread at a time into LLVM. Code generation, by far the longest of its calls,
    needs nothing that another module's shares, so it is called beside llvmlite's lock.
    """
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
