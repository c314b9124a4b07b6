"""Machine code by what prints its text: where the code is kept on disk, nothing is printed.

To print a text takes longer than to load its code. A function of this package prints what follows
from its arguments, from the processor, Python, NumPy and the package's code; under the hash of
these stands the key under which the text's own code is kept (`machine_code.py`), so equal texts
share it, and what the text wants of others.

    code = printed(text, "f32", host())      # assemble(text("f32", host()))
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import attrs
import numpy as np
from msgspec import Struct
from msgspec.structs import astuple

from funct.device import disk_cache
from funct.device.host import Host, host, told
from funct.device.llvm import version
from funct.device.machine_code import Code, assemble_all, recalled, text_key, wanted

__all__ = ["CODE", "Asked", "kept", "printed", "printed_all", "recall"]

Asked = tuple[Callable[..., str], tuple[Any, ...]]  # a function, and what it is given

_PLAIN = (bool, int, float, str, np.dtype, type(None))  # what `repr` tells apart
_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_MAKERS = ("array", "compile", "core", "device", "graph", "kernels", "ops")  # of code: folders


def _files(folder: str) -> list[str]:
    """Name, size and time of every file of Python in a folder and in those below it."""
    found = []
    with os.scandir(folder) as entries:
        for e in entries:
            if e.name.endswith(".py"):
                s = e.stat()
                found.append(f"{e.path} {s.st_size} {s.st_mtime_ns}")
            elif e.name != "__pycache__" and e.is_dir():
                found += _files(e.path)
    return found


def _state(package: str) -> str:
    """A hash of which files make code, and when each changed last."""
    files = [f.removeprefix(package) for name in _MAKERS for f in _files(f"{package}/{name}")]
    return hashlib.sha256("\n".join(sorted(files)).encode()).hexdigest()


# how objects lie in memory, and which loops NumPy has
_AROUND = f"{sys.version} {object.__basicsize__} {np.__version__}"
CODE = _state(_PACKAGE)  # of the code that this process runs: before anybody can change it


def printed(text: Callable[..., str], *given: Any, opt: int = 1) -> Code:
    """`assemble(text(*given))`, without the text where its code is kept.

    Example:
        >>> from funct import device
        >>> def text(n):
        ...     return f"define i32 @n() {{ ret i32 {n} }}"
        >>> device.printed(text, 3).has("n")
        True
    """
    return printed_all([(text, given)], opt=opt)[0]


def printed_all(asked: Sequence[Asked], *, opt: int | Sequence[int] = 1) -> list[Code]:
    """`printed` for each; what has to be made is made side by side. opt: of all, or of each.

    Example:
        >>> from funct import device
        >>> def text(n):
        ...     return f"define i32 @n() {{ ret i32 {n} }}"
        >>> [code.has("n") for code in device.printed_all([(text, (1,)), (text, (2,))])]
        [True, True]
    """
    levels = [opt] * len(asked) if isinstance(opt, int) else opt
    names = [_name(text, given, level) for (text, given), level in zip(asked, levels, strict=True)]
    found = [_recalled(name) for name in names]
    new = [k for k, code in enumerate(found) if code is None]
    texts = [functools.cache(functools.partial(asked[k][0], *asked[k][1])) for k in new]
    made = assemble_all([(text, levels[k]) for k, text in zip(new, texts)])
    for k, text, code in zip(new, texts, made, strict=True):
        found[k] = code
        _note(names[k], text(), levels[k])
    return [code for code in found if code is not None]


def kept(text: Callable[..., str], *given: Any, opt: int = 1) -> bool:
    """Whether the code is on disk, so that `printed` takes no LLVM."""
    if disk_cache.folder() is None or not told():
        return False
    name = _name(text, given, opt)
    known = None if name is None else disk_cache.read(name)
    key = text_key(text(*given), opt) if known is None else known.decode(errors="replace")
    return disk_cache.read((key.split() or [""])[0]) is not None


def recall(text: Callable[..., str], *given: Any, opt: int = 1) -> Code | None:
    """The code, loaded, where it is on disk; None where `printed` would take LLVM."""
    if disk_cache.folder() is None or not told():
        return None
    return _recalled(_name(text, given, opt))


def _recalled(name: str | None) -> Code | None:
    known = None if name is None else disk_cache.read(name)
    if known is None:
        return None
    key, *wants = known.decode(errors="replace").split() or [""]
    return recalled(key, wants) if key.isalnum() else None


def _note(name: str | None, text: str, opt: int) -> None:
    if name is not None:
        disk_cache.write(name, " ".join([text_key(text, opt), *wanted(text)]).encode())


def _name(text: Callable[..., str], given: tuple[Any, ...], opt: int) -> str | None:
    """Under what the key of the code is kept; None where arguments have no form."""
    if disk_cache.folder() is None:
        return None
    parts = [_form(x) for x in (text, *given, host())]
    if None in parts:
        return None
    told = "\0".join([*map(str, parts), str(opt), version(), CODE, _AROUND])
    return f"text-{hashlib.sha256(told.encode()).hexdigest()}"


def _form(x: Any) -> str | None:
    """Text that tells an argument apart, the same in every process; None where there is none."""
    if isinstance(x, _PLAIN):
        return f"{type(x).__name__} {x!r}"
    if isinstance(x, Host):
        return f"{x.name} {x.flags} {x.vector_bytes} {x.cores} {x.cache_bytes}"
    x = getattr(x, "__wrapped__", x)  # a function that functools.cache holds
    if isinstance(x, FunctionType):
        ours = x.__module__.startswith("funct.") and "<" not in x.__qualname__
        return f"{x.__module__}.{x.__qualname__}" if ours else None
    if isinstance(x, tuple | dict):
        inner = [_form(v) for v in (x.items() if isinstance(x, dict) else x)]
    elif isinstance(x, Struct):
        inner = [_form(v) for v in astuple(x)]
    elif attrs.has(type(x)):
        inner = [_form(getattr(x, f.name)) for f in attrs.fields(type(x))]
    else:
        return None
    return None if None in inner else f"{type(x).__name__} {inner}"
