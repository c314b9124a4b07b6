"""The functions of llvmlite's library, called without llvmlite's modules.

These take four times as long to load as the library, most of it for what other modules they ask
for, and let one thread at a time into LLVM. A text is parsed into a context of its own, so nothing
that is done with it touches what another thread does.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_char_p, c_int, c_size_t, c_void_p
from typing import Any

__all__ = ["Library", "library_file"]

_Out = ctypes.POINTER(c_void_p)  # where LLVM puts the address of a string that it made
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {  # what each gives, and takes
    "InitializeNativeTarget": (c_int, ()),
    "InitializeNativeAsmPrinter": (c_int, ()),
    "GetHostCPUName": (None, (_Out,)),
    "GetHostCPUFeatures": (c_int, (_Out,)),
    "GetDefaultTargetTriple": (None, (_Out,)),
    "SetCommandLine": (None, (c_char_p, c_char_p)),
    "ContextCreate": (c_void_p, ()),
    "ContextDispose": (None, (c_void_p,)),
    "ParseAssembly": (c_void_p, (c_void_p, c_char_p, _Out)),
    "VerifyModule": (c_int, (c_void_p, _Out)),
    "DisposeModule": (None, (c_void_p,)),
    "GetTargetFromTriple": (c_void_p, (c_char_p, _Out)),
    "CreateTargetMachine": (
        c_void_p,  # of a target, its triple, processor, features, level, places and model of code
        (c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_char_p, c_char_p, c_int, c_int, c_char_p),
    ),
    "DisposeTargetMachine": (None, (c_void_p,)),
    "TargetMachineEmitToMemory": (c_void_p, (c_void_p, c_void_p, c_int, _Out)),
    "GetBufferStart": (c_void_p, (c_void_p,)),
    "GetBufferSize": (c_size_t, (c_void_p,)),
    "DisposeMemoryBuffer": (None, (c_void_p,)),
    "DisposeString": (None, (c_void_p,)),
}


def library_file() -> str | None:
    """Where llvmlite has its library; None if it is no file of a usual name."""
    found = importlib.util.find_spec("llvmlite")
    if found is None or found.origin is None:
        return None
    folder = os.path.join(os.path.dirname(found.origin), "binding")
    names = ("libllvmlite.so", "libllvmlite.dylib", "llvmlite.dll")
    files = [os.path.join(folder, name) for name in names]
    return next(filter(os.path.isfile, files), None)


class Library:
    """llvmlite's library, ready to make code for this machine."""

    def __init__(self, file: str) -> None:
        self.file = file
        opened = _opened(file)
        self._calls: dict[str, Any] = {}
        for name, (gives, takes) in _FUNCTIONS.items():
            call = self._calls[name] = getattr(opened, f"LLVMPY_{name}")
            call.restype, call.argtypes = gives, takes
        self._call("InitializeNativeTarget")
        self._call("InitializeNativeAsmPrinter")

    def _call(self, name: str, *given: Any) -> Any:
        return self._calls[name](*given)

    def _said(self, name: str) -> str:
        """What a function says that takes nothing."""
        with self._told() as told:
            self._call(name, ctypes.byref(told))
            return _text(told)

    def processor(self) -> tuple[str, list[str]]:
        """LLVM's name of the processor, and of each feature that it has."""
        features = self._said("GetHostCPUFeatures").split(",")
        return self._said("GetHostCPUName"), [f[1:] for f in features if f.startswith("+")]

    def set_option(self, option: str) -> None:
        """Set an option of the process, as on the command lines of LLVM's tools."""
        self._call("SetCommandLine", b"funct", option.encode())

    def emit(self, text: str, name: str, features: str, opt: int) -> bytes:
        """The object file of a text, for a processor of that name with these features.

        Raises: RuntimeError: with LLVM's message, where the text is not well formed.
        """
        with self._parsed(text) as module, self._machine(name, features, opt) as machine:
            with self._told() as told:
                held = self._call(
                    "TargetMachineEmitToMemory", machine, module, 1, ctypes.byref(told)
                )
                if not held:
                    raise RuntimeError(_text(told))
            start, size = self._call("GetBufferStart", held), self._call("GetBufferSize", held)
            made = ctypes.string_at(start, size)
            self._call("DisposeMemoryBuffer", held)
            return made

    @contextmanager
    def _told(self) -> Iterator[c_void_p]:
        """Room for the address of a string of LLVM's, which is freed after the block."""
        told = c_void_p()
        try:
            yield told
        finally:
            if told.value:
                self._call("DisposeString", told)

    @contextmanager
    def _parsed(self, text: str) -> Iterator[int]:
        """The module of a text, in a context of its own."""
        context = self._call("ContextCreate")
        module = None
        try:
            with self._told() as told:
                module = self._call("ParseAssembly", context, text.encode(), ctypes.byref(told))
                if not module or self._call("VerifyModule", module, ctypes.byref(told)):
                    raise RuntimeError(f"LLVM refuses the text: {_text(told)}")
            yield module
        finally:
            if module:
                self._call("DisposeModule", module)
            self._call("ContextDispose", context)

    @contextmanager
    def _machine(self, name: str, features: str, opt: int) -> Iterator[int]:
        triple = self._said("GetDefaultTargetTriple")
        with self._told() as told:
            target = self._call("GetTargetFromTriple", triple.encode(), ctypes.byref(told))
            if not target:
                raise RuntimeError(_text(told))
        form = f"{triple}-elf" if os.name == "nt" else triple  # what LLVM's linker loads there
        machine = self._call(
            "CreateTargetMachine", target, form.encode(), name.encode(), features.encode(), opt,
            b"default", b"jitdefault", 0, 0, b"",
        )  # fmt: skip
        if not machine:
            raise RuntimeError(f"LLVM has no {name} with {features}")
        try:
            yield machine
        finally:
            self._call("DisposeTargetMachine", machine)


def _opened(file: str) -> ctypes.CDLL:
    """The library. To load it takes 8 ms, in which `CDLL` would let no other thread run."""
    load = getattr(ctypes.CDLL(None), "dlopen", None) if os.name == "posix" else None
    if load is not None:
        load.restype, load.argtypes = c_void_p, (c_char_p, c_int)
        load(os.fsencode(file), os.RTLD_NOW)  # where that fails, the next line says why
    return ctypes.CDLL(file)


def _text(told: c_void_p) -> str:
    return ctypes.string_at(told).decode(errors="replace") if told.value else ""
