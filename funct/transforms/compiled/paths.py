"""Compiled paths: what one capture gave, what it takes for granted, and which sizes vary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from funct.array import Array, Tensor
from funct.compile import (
    Reuse,
    Whole,
    at_hand,
    calls_of,
    faster,
    has_faster,
    serving,
    unwrapping,
    whole_of,
)
from funct.core import Met, OpenNumber, Size
from funct.graph import Graph, Guard, Var, holds, writing
from funct.graph.capture import capture
from funct.settings import config
from funct.transforms.compiled.arguments import Split, is_array
from funct.transforms.compiled.executable import Executable
from funct.transforms.compiled.places import Elements, changed, spot
from funct.transforms.compiled.watched import Watched, watched
from funct.transforms.hidden import visible

__all__ = [
    "Captured",
    "Front",
    "Open",
    "Path",
    "axes_text",
    "captured",
    "first_difference",
]


class Captured(Struct, frozen=True, eq=False):
    """One capture of a function: its graph, and how the results are put together again.

    outer: the tracers of outer transforms that it closes over, the graph's last inputs. watched:
    what the function reads outside of itself (`watched.py`).
    """

    graph: Graph
    outer: tuple[Any, ...]
    rebuild: Callable[[list[Any]], Any]
    single: bool
    watched: tuple[Watched, ...]


def captured(
    fun: Callable[..., Any], given: Split, names: Any = None, opened: Any = None,
    grown: Callable[[], object] | None = None,
) -> Captured:  # fmt: skip
    """Capture a call of fun. names: per array, axis -> symbol. opened: numbers that are kept open
    (`numbered.py`). grown: see `capture`.
    """
    result: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        static = given.leaves if opened is None else opened.begin(given.leaves)
        out = given.call(*xs, others=static)
        level = writing()
        assert level is not None
        outs, structure = visible("jit", out, level)
        outs = [int(o) if isinstance(o, Size) else o for o in outs]  # a size that is returned
        if opened is not None:
            opened.returned([o for o in outs if is_array(o) or type(o) is OpenNumber])
        result[:] = [outs, structure, isinstance(out, Tensor)]
        return [o for o in outs if is_array(o)]

    before, named = watched(fun, None, given.others)
    if opened is not None and "type" in named:  # whoever asks for a number's is told another
        opened.close()
    with config.remembering() as fields:
        graph, outer = capture(
            flat, given.arrays, label="jit", names=names, user_fun=fun, least=1, grown=grown
        )  # of no elements there are other paths: `Graph.takes`
    outs, structure, single = result
    read = tuple([(config, f, config.get(f)) for f in sorted(fields)])
    rebuild = _first if single else _rebuild(outs, structure)
    # what fun itself writes, a count of its captures say, is no input of it
    own = {spot(place, name) for place, name, seen in before if changed(place, name, seen)}
    after, _ = watched(fun, graph, given.others)
    places = [w for w in after if spot(*w[:2]) not in own]
    return Captured(graph, outer, rebuild, single, (*places, *read))


def _first(values: list[Any]) -> Any:
    return values[0]


def _rebuild(outs: list[Any], structure: Any) -> Callable[[list[Any]], Any]:
    moving = [is_array(o) or type(o) is OpenNumber for o in outs]
    if all(moving):
        return structure.unflatten

    def rebuild(values: list[Any]) -> Any:  # numbers and strings come back as they are
        given = iter(values)
        return structure.unflatten(
            [next(given) if m else o for o, m in zip(outs, moving, strict=True)]
        )

    return rebuild


class Front(NamedTuple):
    """What a call goes through first: machine code that looks at its arrays.

    entry: gives the results if raw is None, else the buffers that raw takes; None for other arrays.
    """

    entry: Callable[..., Any]
    raw: Callable[..., Any] | None
    path: Path

    def may_begin(self, leaves: Sequence[Any]) -> bool:
        """Whether a program may have written into what was donated before it was found that an op
        must raise.
        """
        inputs = self.path.exe.captured.inputs
        kinds = [(x.data.shape, x.data.dtype) for x in leaves if x.__class__ is Array]
        return self.raw is None and kinds == [(tuple(v.shape), v.dtype) for v in inputs]


def _looking(inputs: Sequence[Var], ends: Callable[[], bool]) -> Callable[..., Any]:
    """The buffers of arrays like those of before, as machine code would give them; None for other
    arrays, and when it is time for that code.
    """
    kinds = [(tuple(v.shape), v.dtype) for v in inputs]
    if not all(isinstance(n, int) for shape, _ in kinds for n in shape):
        return lambda *args: None

    def look(*args: Any) -> Any:
        raws = [a.data for a in args if a.__class__ is Array]
        if len(raws) != len(args) or [(d.shape, d.dtype) for d in raws] != kinds or ends():
            return None
        return raws

    return look


_OFTEN = 1000  # calls after which it pays to load LLVM (40 ms) for what each call is looked at


class Path:
    """One compiled path: the graph, the structure of its result, and what it assumes.

    reuse: memory that its results may take.
    """

    __slots__ = (
        "__weakref__", "_front", "_served", "exe", "rebuild", "reuse", "single", "watched",
    )  # fmt: skip

    def __init__(self, found: Captured, exe: Executable, reuse: Reuse) -> None:
        self._front: Front | None = None
        self._served = 0
        self.exe = exe
        self.reuse = reuse
        self.rebuild = found.rebuild
        self.single = found.single
        self.watched = found.watched

    @property
    def raw(self) -> Callable[..., Any]:
        """The function of buffers."""
        return self.exe.raw

    def front(self) -> Front:
        """What answers calls: machine code from when the path serves for the second time, or as
        soon as that is there; where it needs LLVM and nothing else does, and where a program may
        take the place of NumPy calls, when it serves often.
        """
        if self._front is None:
            whole = whole_of(self.exe.made)
            given = whole is not None and self.reuse.donated  # memory that only this code takes
            may_change = whole is None and has_faster(self.exe.made)
            waits = not (at_hand() or given) or may_change
            if waits and not self._is_often():
                ends = self._is_often if may_change else self._is_time
                return Front(_looking(self.exe.captured.inputs, ends), self.raw, self)
            self._front = self._machine_code(whole)
        return self._front

    def _machine_code(self, whole: Whole | None) -> Front:
        """The front that does as much as can be done before Python goes on."""
        made = faster(self.exe.made) if whole is None else whole
        serve = serving(made, self.single, self.reuse, warns=whole is None) if made else None
        if serve is not None:
            if self.exe.own:
                Met.silent(self)
            return Front(serve, None, self)
        inputs = self.exe.captured.inputs
        return Front(unwrapping(inputs) or _looking(inputs, lambda: False), self.raw, self)

    def _is_time(self) -> bool:
        return self._is_often() or at_hand()

    def _is_often(self) -> bool:
        self._served += 1
        return self._served > _OFTEN

    def served(self) -> int:
        """How many calls came to its front."""
        return self._served + self.answered()

    def answered(self) -> int:
        """How many calls the machine code has answered by itself."""
        front = self._front
        return 0 if front is None or front.raw is not None else calls_of(front.entry)

    def current(self) -> bool:
        """Whether the names the function reads still mean the same objects."""
        for place, name, seen in self.watched:  # at each call, so the usual case calls nothing else
            if place.get(name) is not seen and changed(place, name, seen):
                return False
        return True

    def changed(self) -> str | None:
        """What means something else now, in words."""
        for place, name, seen in self.watched:
            if changed(place, name, seen):
                what = name if isinstance(name, str) else f"element {name}"
                written = isinstance(place, Elements)
                return f"{what} was written into" if written else f"{what} is another object now"
        return None


class Open:
    """Signatures that differ in sizes alone: which axes have varied, and the paths for any size.

    other: a number or an array that Python asks for and that was another at two captures, in words.
    It will be another at the third: each path would serve one call.
    """

    __slots__ = ("asked", "first", "fixed", "other", "paths", "varying")

    def __init__(self, shapes: tuple[tuple[int, ...], ...], whole: bool = False) -> None:
        self.first = shapes
        self.varying: set[tuple[int, int]] = set()
        self.paths: list[Path] = []
        self.fixed = False  # the function needs to know its sizes
        self.asked: list[Guard] | None = None  # by the graph before
        self.other = ""
        if whole:  # every axis from the start
            self.varying = {(i, a) for i, s in enumerate(shapes) for a, n in enumerate(s) if n > 1}

    def ask(self, graph: Graph) -> None:
        """Note what a captured graph asks for."""
        before, self.asked = self.asked, _asked(graph)
        for old, new in zip(before or (), self.asked, strict=False):
            if old.kind != new.kind or not _equal(old.expected, new.expected):
                if old.kind == new.kind and new.kind in _ENDLESS:
                    self.other = f"{_guard_text(new, 'another value')} at each call"
                return

    def see(self, shapes: tuple[tuple[int, ...], ...]) -> None:
        """Note which axes vary."""
        self.varying |= {
            (i, axis)
            for i, (old, new) in enumerate(zip(self.first, shapes, strict=True))
            for axis, (n, m) in enumerate(zip(old, new, strict=True))
            if n != m
        }

    def least(self, shapes: tuple[tuple[int, ...], ...]) -> int:
        """The shortest of the axes that vary; where none does, 2."""
        return min([shapes[i][a] for i, a in self.varying], default=2)

    def has_none(self, shapes: tuple[tuple[int, ...], ...], first: bool) -> bool:
        """Whether an axis that varies has no elements; in the first call, whether any has none: a
        path of its own is for those that come again.
        """
        return any(0 in s for s in shapes) if first else self.least(shapes) == 0

    def names(self, shapes: tuple[tuple[int, ...], ...]) -> list[list[dict[int, str] | None]]:
        """Symbols for the axes that vary, and then for those of them alone that are longer than 1
        here: a length of 1 may meet others. None while no axis varies, and for length 0.
        """
        if self.fixed or self.least(shapes) == 0:
            return []
        longer = {(i, axis) for i, axis in self.varying if shapes[i][axis] > 1}
        found = [self.varying, longer] if longer != self.varying else [self.varying]
        return [
            [
                {axis: f"s{i}_{axis}" for axis in range(len(shape)) if (i, axis) in open_}
                for i, shape in enumerate(shapes)
            ]
            for open_ in found
            if open_
        ]


def axes_text(varying: set[tuple[int, int]], names: list[str]) -> str:
    """`axis 0 of x` for each axis that varies."""
    return ", ".join(f"axis {a} of {names[i]}" for i, a in sorted(varying))


def first_difference(
    new: Graph, old: Graph, shapes: Sequence[tuple[int, ...]], names: Sequence[str]
) -> str:
    """Where the path of a call with arguments of these shapes and names parts from an old one: a
    length that the old one has for a number, or the first decision, with the user's line.
    """
    for v, shape, name in zip(old.inputs, shapes, names, strict=True):
        for axis, (n, m) in enumerate(zip(v.shape, shape, strict=True)):
            if not isinstance(n, Size) and n != m:
                return f"axis {axis} of {name} is {m}, was {n}"
    sizes = {s.name: shapes[s.input][s.axis] for s in old.symbols}
    ours = iter([e for e in new.nodes if isinstance(e, Guard) and e.kind != "size"])
    for theirs in old.nodes:
        if not isinstance(theirs, Guard):
            continue
        if theirs.kind == "size":
            if not holds(theirs, None, sizes):
                return f"{_guard_text(theirs)}, did not hold"
            continue
        our = next(ours, None)
        if our is None:
            break
        if our.kind != theirs.kind or not _equal(our.expected, theirs.expected):
            seen = "other elements" if our.of_elements else our.expected
            return f"{_guard_text(theirs)}, was {seen!s} this time"
    return "it reads something else that changed"


_ENDLESS = frozenset({"float", "complex", "array", "ndarray"})  # kinds of too many values


def _asked(graph: Graph) -> list[Guard]:
    """The decisions that depend on elements of the inputs, in order."""
    moving = set(graph.inputs)
    found = []
    for e in graph.nodes:
        if isinstance(e, Guard):
            found += [e] if e.operand in moving else []
        elif not moving.isdisjoint([a for a in e.operands if isinstance(a, Var)]):
            moving.update(e.results)
    return found


def _equal(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b))


def _guard_text(g: Guard, seen: str = "") -> str:
    text = f"{g.kind}() == {seen or '...'}" if g.of_elements or seen else g.text
    return f"{text} at {g.site}" if g.site else text
