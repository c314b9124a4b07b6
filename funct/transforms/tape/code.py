"""Tapes in machine code: an op is recorded, and a tape walked, by a builtin function.

On small arrays Python's frames are the cost of a gradient. The printed functions (`ways.py`,
`pulls.py`) and the walk (`backward.py`) say what is done; the code here does the same for the usual
case and calls them for all others, so that hooks, watches, errors and nested levels are theirs. It
is loaded when tapes are used so often that it pays.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct

from funct.array import Array
from funct.core import Primitive
from funct.core.rule import parameters
from funct.device.fork import whole
from funct.device.llvm import loaded
from funct.kernels.cpu.calls import builtin, code_of, slot
from funct.kernels.cpu.elementwise.ufunc_loops import loop_of
from funct.kernels.cpu.outside import warning_flags
from funct.kernels.elementwise.functions import real_ufunc
from funct.kernels.elementwise.thresholds import EXACT, MANY, SLOW
from funct.ops.broadcasting import match_operand
from funct.ops.by_size import chosen
from funct.transforms.tape.loops import MOST, loops_text
from funct.transforms.tape.nodes import Node, ReverseTracer
from funct.transforms.tape.pull_loops import pulls_text
from funct.transforms.tape.pulls import written
from funct.transforms.tape.record import record_text
from funct.transforms.tape.walk import walk_text
from funct.transforms.tape.words import (
    HELD,
    KEPT,
    KINDS,
    OPERAND,
    PARAMS,
    SHAPES,
    STEP,
    WAY,
    Slots,
    shapes_text,
)

__all__ = ["TapeCode", "adopt", "load", "recorder", "walker"]

_F4, _F8 = np.dtype(np.float32), np.dtype(np.float64)

_NAMES = """
@shape.name = private constant [6 x i8] c"shape\\00"
@dtype.name = private constant [6 x i8] c"dtype\\00"
"""


class TapeCode:
    """The loaded code, and what it is told. level: the class of tapes whose ops it records.

    walk(due, leaves, once): visits the nodes from the end of due, as `backward` does, until one is
    none of the plain kind; that one is the last of due then.
    """

    def __init__(self, slots: Slots, flags: int, level: type) -> None:
        parts = (
            _NAMES, loops_text(flags), shapes_text(), pulls_text(slots), record_text(slots),
            walk_text(slots),
        )  # fmt: skip
        self._code = code_of("".join(parts))
        self._pulls: dict[Callable[..., Any], np.ndarray[Any, Any]] = {}
        self._kinds = np.zeros(max(KINDS.values()) + 5, np.int64)
        objects = {
            "array": Array, "ndarray": np.ndarray, "float": float, "int": int, "tuple": tuple,
            "tracer": ReverseTracer, "level": level, "node": Node, "primitive": Primitive,
            "true": True, "false": False, "none": None, "one": 1, "f4": _F4, "f8": _F8,
            "c8": np.dtype(np.complex64), "c16": np.dtype(np.complex128), "exception": Exception,
            "asarray": np.asarray, "match": match_operand, "programs": self._pulls,
            "add": operator.add,
        }  # fmt: skip
        for name, x in objects.items():
            self._kinds[KINDS[name]] = id(x)
        self._kinds[KINDS["plus"] :][:5] = _loops(np.add)
        self._kinds[KINDS["times"] :][:5] = _loops(np.multiply)
        self._kinds[KINDS["power.single"] :][:2] = _loops(np.power)[:3:2]
        self.walk = builtin("walk", self._code.address("walk"), self._kinds, (self, objects))

    def way(self, prim: Primitive, printed: Callable[..., Any]) -> Callable[..., Any]:
        """What the printed function does; that itself, where the primitive is not simple enough."""
        if len(prim.params) > KEPT:
            return printed
        codes = {"ans": 0}
        codes |= {n: 1 + k for k, n in enumerate(prim.operands)}
        codes |= {n: PARAMS + k for k, n in enumerate(prim.params)}
        codes |= {f"{n}_shape": SHAPES + k for k, n in enumerate(prim.operands)}
        table = np.zeros(WAY["rules"] + OPERAND * len(prim.rules), np.int64)
        for i, rule in enumerate(prim.rules):
            if rule is None or rule.pull is None:
                continue
            pull = printed.__globals__[f"pull{i}"]
            kept = [codes[n] for n in parameters(rule.pull)[1:]]
            if len(kept) > KEPT:
                return printed
            words = [1, id(pull), len(kept), *kept]
            table[WAY["rules"] + OPERAND * i :][: len(words)] = words
            self._learn(prim, rule.pull, pull)
        raw = chosen(prim)
        named = {
            "kinds": self._kinds.ctypes.data, "operands": len(prim.rules),
            "params": len(prim.params), "plain": id(printed), "raw": id(raw),
            "fn": id(prim.fn), "spread": prim.spread is not None,
        }  # fmt: skip
        for name, word in named.items():
            table[WAY[name]] = word
        if (ufunc := real_ufunc(prim.raw)) is not None and not prim.params:
            table[WAY["loops"] :][:5] = _loops(ufunc, prim)
        return builtin("way", self._code.address("way"), table, (self, prim, printed, raw))

    def _learn(
        self, prim: Primitive, rule: Callable[..., Any], printed: Callable[..., Any]
    ) -> None:
        """Take a pull for a list of loops, if it is one."""
        text = written(rule, prim.operands) if prim.spread is not None else None
        if text is None:
            return
        steps = [
            (_loops(ufunc, step), names)
            for step, names in text.steps if (ufunc := real_ufunc(step.raw))
        ]  # fmt: skip
        if len(steps) < len(text.steps):
            return
        given, constants = text.given, text.constants
        places = {f"{name}.data": k for k, name in enumerate(given)}
        places |= {name: len(places) + k for k, name in enumerate(constants)}
        places |= {f"t{k}": len(places) + k for k in range(len(text.steps))}
        if len(places) > HELD or (not steps and text.out != f"{given[0]}.data"):
            return
        words = [len(steps), len(given) - 1, len(constants), *map(id, constants.values())]
        for loops, names in steps:
            step = [*loops, len(names), *[places[n] for n in names]]
            words += step + [0] * (STEP - len(step))
        self._pulls[rule] = self._pulls[printed] = np.asarray(words, np.int64)


def _loops(ufunc: Any, prim: Primitive | None = None) -> list[int]:
    """What the text's `direct` is told of a function: its loops for both dtypes, 0 for none, and
    how many elements they are for at most.
    """
    words: list[int] = []
    for dtype in (_F4, _F8):
        loop = loop_of(ufunc, dtype)
        words += [0, 0] if loop is None else [loop.function, loop.data]
    other = prim is not None and prim.name in SLOW - EXACT
    return [*words, MANY - 1 if other else MOST]


def _slots(level: type) -> Slots | None:
    """Where the slots stand; None where objects are not as is assumed here."""
    owners = {
        Array: ("data",), ReverseTracer: ("level", "value", "node"), level: ("open", "count"),
        Node: ("dtype", "edges", "prim", "serial", "shape", "site"),
        Primitive: ("masks", "results", "spread"),
    }  # fmt: skip
    found = [slot(owner, name) for owner, names in owners.items() for name in names]
    return Slots(*found) if all(at is not None for at in found) else None  # type: ignore[arg-type]


# When it is loaded

_OFTEN = 10_000  # nodes walked after which it pays to load LLVM (40 ms)
_LOADED = 500  # the same where something else has loaded it


class _Loading(Struct):
    """Whether the code is loaded, and what speaks for it. level: the class of tapes."""

    level: type
    walked: int = 0
    tried: bool = False
    code: TapeCode | None = None


_lock = whole(threading.Lock())
_loading = _Loading(object)


def adopt(level: type) -> None:
    """Called once: the class of tapes."""
    _loading.level = level


def recorder(prim: Primitive, printed: Callable[..., Any]) -> Callable[..., Any]:
    """The printed function in machine code, if that is loaded."""
    code = _loading.code
    return printed if code is None else code.way(prim, printed)


def walker(nodes: int) -> Callable[..., Any] | None:
    """What walks a tape of so many nodes in machine code, if that is loaded or pays now."""
    code = _loading.code
    if code is None and not _loading.tried:
        _loading.walked += nodes
        if _loading.walked > (_LOADED if loaded() else _OFTEN):
            code = load()
    return None if code is None else code.walk


def load() -> TapeCode | None:
    """Let tapes have the machine code from now on; None where there is none for this machine."""
    with _lock:
        if not _loading.tried:
            slots, flags = _slots(_loading.level), warning_flags()
            if slots is not None and flags is not None:
                _loading.code = TapeCode(slots, flags, _loading.level)
                ReverseTracer.ways.clear()  # they are made again, by `recorder`
            _loading.tried = True
        return _loading.code
