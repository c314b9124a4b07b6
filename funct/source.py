"""Where in the user's code something happened, and under which transforms.

Ground floor: everyone may call it, it imports nothing of funct. A frame is "the user's" when its
file lies outside this package.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import attrs
import numpy as np

__all__ = [
    "ENTRANCE", "SITES", "Site", "active_levels", "active_transforms", "follow", "hide", "is_ours",
    "known_as", "known_as_called", "known_as_layer", "known_as_op", "raised_by_user", "user_site",
    "with_line",
]  # fmt: skip

ENTRANCE = "<funct direct>"  # file of public functions that we printed; their global `fun`
SITES = "__sites__"  # global of a function that we printed: line number -> Site or None
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_OURS = (_PACKAGE, "<funct")
_PYTHON = os.path.dirname(os.__file__) + os.sep
_NUMPY = os.path.dirname(np.__file__)
_SCIPY = os.path.join(os.path.dirname(_NUMPY), "scipy")
_ATTRS = os.path.dirname(attrs.evolve.__code__.co_filename) + os.sep
_BETWEEN = ("<attrs generated", _ATTRS, contextlib.__file__)  # what users call us through
_CALLED = (*_OURS, _NUMPY + os.sep, _SCIPY + os.sep, "<frozen", "<attrs generated")


@attrs.frozen
class Site:
    """One line of the user's code.

    of: where what happened is the derivative of an op on that line, the op's name. call: the public
    function of this package that the line calls, or that the innermost layer does. layer: the class
    of that layer. Errors are told by these; they are no part of what makes sites equal.
    """

    file: str
    line: int
    of: str = ""
    call: str = attrs.field(default="", eq=False)
    layer: str = attrs.field(default="", eq=False)

    @property
    def text(self) -> str:
        """The source line, stripped; empty where the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        head = f"{os.path.basename(self.file)}:{self.line}"
        return f"{head}  {self.text}" if self.text else head


# Code that works for another line than its caller's: its local variable that knows the line. By id:
# the hash of a code object is that of all it holds, each time anew.
_FOLLOWED: dict[int, tuple[CodeType, str, bool]] = {}
_passed: dict[int, tuple[CodeType, str | None]] = {}  # by id: our code, and what it is known by
_NAMES: dict[int, tuple[CodeType, str]] = {}  # by id: code that users call by this name
_HIDDEN: dict[int, CodeType] = {}
# For names: that of the first argument's class, of the innermost call and of the outermost making;
# and those of the variables `prim` and `fun`
_LAYER, _MADE, _OP, _FUN = "", "__init__", "prim", "fun"


def known_as(fun: Callable[..., Any], name: str) -> None:
    """Errors of what fun calls are told as those of `name`, if the user calls fun."""
    _NAMES[id(fun.__code__)] = fun.__code__, name
    _passed.pop(id(fun.__code__), None)


def known_as_layer(fun: Callable[..., Any], *, made: bool = False) -> None:
    """Errors of what fun calls are told as those of the class of its first argument.

    made: fun makes the layer. One that is made of others is told, one that calls others is not.
    """
    known_as(fun, _MADE if made else _LAYER)


def known_as_op(fun: Callable[..., Any]) -> None:
    """Errors of what fun calls are told as those of the op that is its variable `prim`."""
    known_as(fun, _OP)


def known_as_called(fun: Callable[..., Any]) -> None:
    """Errors of what fun calls are told as those of the function that is its variable `fun`."""
    known_as(fun, _FUN)


def hide(fun: Callable[..., Any]) -> None:
    """What is captured while fun runs serves other lines too, so it is not kept with this one."""
    _HIDDEN[id(fun.__code__)] = fun.__code__


def follow(fun: Callable[..., Any], local: str, *, backward: bool = False) -> None:
    """While fun runs, its variable `local` knows the user's line (`.site`), if it is set.

    backward: what runs is the derivative of what was written on that line.
    """
    _FOLLOWED[id(fun.__code__)] = fun.__code__, local, backward
    _passed.pop(id(fun.__code__), None)


_MOST = 4096  # lines that are remembered
# by where in which code, and what is called there; holds the code
_lines: dict[tuple[int, int, str, str], tuple[CodeType, Site]] = {}


def user_site(depth: int = 1, *, keep: bool = False) -> Site | None:
    """The innermost line outside this package, or None.

    A graph that is run, compiled or not, and a tape that is walked, stand for the lines that they
    were made on. keep: the site is to be kept with a graph.
    """
    frame: FrameType | None = sys._getframe(depth)
    call = layer = ""
    while frame is not None:
        code = frame.f_code
        known = _passed.get(id(code))
        if known is not None:
            named = known[1]
            if named is not None and (not layer or named is _MADE):
                if named is _LAYER or named is _MADE:
                    layer = type(frame.f_locals[code.co_varnames[0]]).__name__
                elif named is _FUN:
                    call = frame.f_locals[_FUN].__name__
                else:
                    call = frame.f_locals[_OP].name if named is _OP else named
            frame = frame.f_back
            continue
        name = code.co_filename
        if not name.startswith(_PACKAGE):
            if not name.startswith("<funct"):
                line = _line(code, frame, call, layer)
                if line is not None:
                    return line
                continue
            printed = frame.f_globals.get(SITES, {}).get(frame.f_lineno)
            if printed is not None:
                return printed
            if name == ENTRANCE and not layer:
                call = frame.f_globals["fun"].__name__
        elif id(code) in _FOLLOWED:
            _, local, backward = _FOLLOWED[id(code)]
            entry: Any = frame.f_locals.get(local)
            site = getattr(entry, "site", None)
            if isinstance(site, Site):
                if not backward:
                    return site
                return Site(site.file, site.line, entry.name, site.call, site.layer)
        elif id(code) in _HIDDEN:
            if keep:
                return None
        else:
            _passed[id(code)] = code, _NAMES.get(id(code), (code, None))[1]
            continue
        frame = frame.f_back
    return None


def _line(code: CodeType, frame: FrameType, call: str, layer: str) -> Site | None:
    """The line that a frame is at. Python finds its number by walking the code from its start.
    None for code that stands between us and the user: from now on it is passed as ours is.
    """
    at = id(code), frame.f_lasti, call, layer
    known = _lines.get(at)
    if known is None:
        if code.co_filename.startswith(_BETWEEN):
            _passed[id(code)] = code, None
            return None
        if len(_lines) >= _MOST:
            _lines.clear()
        site = Site(code.co_filename, frame.f_lineno, call=call, layer=layer)
        known = _lines[at] = code, site
    return known[1]


def is_ours(code: CodeType) -> bool:
    """Whether code is of this package, or printed by it."""
    return code.co_filename.startswith(_OURS)


def raised_by_user(error: BaseException) -> bool:
    """Whether code of the user's, that we called, stands between where error was raised and here.

    Python's own library and that of NumPy and SciPy are called on behalf of both.
    """
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        known = name.startswith(_PYTHON) and "site-packages" not in name
        if not known and not name.startswith(_CALLED):
            return True
        trace = trace.tb_next
    return False


def with_line(error: Exception) -> Exception:
    """The error. Where NumPy raised it for numbers of a graph, a note says the user's line: its
    traceback does not show it.
    """
    if not isinstance(error, FloatingPointError | RuntimeWarning) or hasattr(error, "__notes__"):
        return error
    found = None
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        site = frame.f_globals.get(SITES, {}).get(trace.tb_lineno)
        if id(frame.f_code) in _FOLLOWED:
            site = getattr(frame.f_locals.get(_FOLLOWED[id(frame.f_code)][1]), "site", None)
        found = site if isinstance(site, Site) else found
        trace = trace.tb_next
    if found is not None:
        error.add_note(f"  in {found}")
    return error


def active_levels() -> list[Any]:
    """The levels of the transforms that are running, innermost first.

    Dispatch is by the data alone, so there is no stack to ask; every transform keeps its level in a
    local variable named `level` while the user's function runs. Only errors and what writes down a
    body pay for this walk.
    """
    found: dict[int, Any] = {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(_PACKAGE):
            level = frame.f_locals.get("level")
            if getattr(level, "open", False) and getattr(level, "label", ""):
                found.setdefault(id(level), level)
        frame = frame.f_back
    return list(found.values())


def active_transforms() -> tuple[str, ...]:
    """Labels of the transforms that are running, innermost first."""
    return tuple([level.label for level in active_levels()])
