"""Paths for any number: calls that differ in Python's numbers alone (a learning rate, the count of
a step) are captured once, with the numbers kept open.

What Python computes from them it computes again in each call (`funct/core/open_number.py`), and
hands the results to code that is there. A number that the function needs to know, as an index, a
size or a power, is part of the signature as before; so is one that never varied.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from funct.array import asarray
from funct.compile import MISS
from funct.core import OpenNumber, Sheet
from funct.graph import writing
from funct.ops.fast import wrap
from funct.transforms.compiled.arguments import NUMBERS, Split
from funct.transforms.compiled.paths import Open, Path
from funct.transforms.compiled.turns import Turns

__all__ = ["Latest", "Numbered", "Opened", "Signatures"]

_MOST = 8  # paths of one signature
_KEPT = 64  # signatures that have paths, the ones of late: sizes that the function needs to know
_HELD = 4  # what numbers that the function needs to know may be, of those that have such paths
_FAILURES = 2  # captures that may raise: an op may refuse one number alone


class Opened:
    """The numbers of one capture that are kept open.

    at: which static leaves they are. inputs: (row of the sheet, dtype) of what the graph takes
    beside the arrays. results: for each leaf of the result the row it is, None for arrays;
    empty where all are arrays.
    """

    __slots__ = ("_level", "_made", "at", "inputs", "results", "sheet")

    def __init__(self, at: Sequence[int]) -> None:
        self.at = tuple(at)
        self.inputs: list[tuple[int, np.dtype[Any]]] = []
        self.results: list[int | None] = []
        self.sheet = Sheet(len(at), self._lift, self._measure)
        self._level: Any = None
        self._made: dict[Any, Any] = {}

    def begin(self, leaves: Sequence[Any]) -> list[Any]:
        """The static leaves for the capture that is under way."""
        self._level = writing()
        found = list(leaves)
        for i in self.at:
            found[i] = self.sheet.number(leaves[i])
        return found

    def close(self) -> None:
        """Have none of them be open: the function needs to know each."""
        self.sheet.bound.update(range(len(self.at)))

    def _lift(self, x: Any) -> Any:
        return self._level.constant(x)

    def _measure(self, number: OpenNumber, dtype: np.dtype[Any]) -> Any:
        key = number.at, dtype
        if key not in self._made:
            self.inputs.append(key)
            self._made[key] = self._level.input(asarray(number.value, dtype=dtype), None)
        return self._made[key]

    def returned(self, leaves: Sequence[Any]) -> None:
        """Note which leaves of the result are numbers of the sheet."""
        found = [x.at if type(x) is OpenNumber else None for x in leaves]
        self.results = found if any(at is not None for at in found) else []

    @property
    def bound(self) -> set[int]:
        """The static leaves that the function needed to know."""
        return {self.at[i] for i in self.sheet.bound}


class Numbered(Struct, frozen=True, eq=False):
    """A path, and what its numbers are computed from."""

    path: Path
    opened: Opened

    def __call__(self, arrays: Sequence[Any], leaves: Sequence[Any]) -> Any:
        """The result for arrays and static leaves; MISS where the path does not serve them."""
        found = self.handed([leaves[i] for i in self.opened.at])
        if found is None:
            return MISS
        rows, further = found
        out = self.path.exe(*arrays, *[wrap(d) for d in further])
        return MISS if out is MISS else self.rebuilt(list(out), rows)

    def handed(self, numbers: Sequence[Any]) -> tuple[list[Any], list[Any]] | None:
        """What Python computes from numbers, and the buffers of it that the graph takes; None where
        the path does not serve them.
        """
        rows = self.opened.sheet.values(numbers)
        if rows is None:
            return None
        try:
            return rows, [np.asarray(rows[at], dtype) for at, dtype in self.opened.inputs]
        except (OverflowError, ValueError, TypeError):  # the function itself says what is wrong
            return None

    def rebuilt(self, out: list[Any], rows: Sequence[Any]) -> Any:
        """The result, from its arrays."""
        if not self.opened.results:
            return self.path.rebuild(out)
        moving = iter(out)
        whole = [next(moving) if r is None else rows[r] for r in self.opened.results]
        return self.path.rebuild(whole)


class Latest(NamedTuple):
    """What served the last call with open numbers: it is asked before anything else is looked at.

    spec, held: the structure of the arguments, and static ones. kinds: of each leaf the shape and
    dtype, or the class and value; of open ones the class alone. at: which leaves those are.
    """

    spec: Any
    held: Any
    kinds: list[Any]
    at: list[int]
    served: Numbered

    @classmethod
    def of(cls, spec: Any, held: Any, kinds: Sequence[Any], arrays: Sequence[bool],
           served: Numbered) -> Latest:  # fmt: skip
        """The record of a call."""
        static = [i for i, a in enumerate(arrays) if not a]
        at = [static[i] for i in served.opened.at]
        return cls(spec, held, [k[0] if i in at else k for i, k in enumerate(kinds)], at, served)

    def call(self, spec: Any, held: Any, kinds: list[Any], leaves: Any, raws: Any) -> Any:
        """The result for buffers and leaves of these kinds; MISS where they are others."""
        if spec != self.spec or held != self.held:
            return MISS
        mine = kinds.copy()
        for i in self.at:
            mine[i] = mine[i][0]
        if mine != self.kinds:
            return MISS
        path = self.served.path
        if path.exe.acts or (path.watched and not path.current()):
            return MISS
        found = self.served.handed([leaves[i] for i in self.at])
        if found is None:
            return MISS
        rows, further = found
        try:
            out = path.raw(*raws, *further)
        except Exception as error:
            path.exe.raise_located(error, [wrap(r) for r in (*raws, *further)])
        return MISS if out is MISS else self.served.rebuilt([wrap(d) for d in out], rows)


class _Signature:
    """Calls that differ in sizes and Python's numbers alone.

    bound: the leaves that the function needs to know, and what they were. varying: those that were
    seen to vary. failures: captures that raised.
    """

    __slots__ = ("bound", "failures", "held", "known", "open", "paths", "varying")

    def __init__(self, given: Split) -> None:
        self.known = given.key.static
        self.varying: set[int] = set()
        self.bound: set[int] = set()
        self.held: set[Hashable] = set()
        self.open: dict[Hashable, Open] = {}
        self.paths: dict[Hashable, list[Numbered]] = {}
        self.failures = 0

    def see(self, static: tuple[Any, ...]) -> list[int]:
        """Note the static leaves of a call; those that can be open: none where what the function
        needs to know is another at each call, for paths would serve one call each.
        """
        pairs = enumerate(zip(static, self.known, strict=True))
        self.varying |= {i for i, (a, b) in pairs if a != b and a[0] in NUMBERS}
        if len(self.held) <= _HELD:
            self.held.add(tuple([static[i] for i in sorted(self.bound)]))
        return [] if len(self.held) > _HELD else sorted(self.varying - self.bound)

    def bind(self, leaves: Iterable[int]) -> None:
        """Note that the function needs to know some."""
        self.bound |= set(leaves)
        self.held.clear()


class Signatures:
    """The paths for any number of one function, by signature.

    make: from a call, the numbers that are open and symbols of sizes to a path, which is captured
    and compiled; None where it serves no other call.
    """

    def __init__(self, make: Callable[[Split, Opened, Any], Path | None]) -> None:
        self._make = make
        self._known: dict[Any, _Signature] = {}
        self._turns = Turns()  # by kin

    def all_paths(self) -> list[Path]:
        """Every path that is kept."""
        lists = [paths for s in list(self._known.values()) for paths in list(s.paths.values())]
        return [n.path for paths in lists for n in paths]

    def call(self, given: Split, again: Callable[[], None], whole: bool) -> tuple[Any, str]:
        """The result, and why a path was made for it if one was; MISS where numbers do not vary or
        the function needs to know them.

        again: says that the function is run from its start again. whole: whether every length is
        a symbol from the start.
        """
        of = self._known.get(given.key.kin)
        if of is None:
            self._known[given.key.kin] = _Signature(given)
            return MISS, ""
        while at := of.see(given.key.static):
            static = tuple([k if i in at else (k, x) for i, (k, x) in enumerate(given.key.static)])
            out = self._served(of, given, static, again)
            if out is not MISS:
                return out, ""
            with self._turns.taken(given.key.kin) as mine:
                if not mine:
                    continue
                made = self._new(of, given, at, static, whole)
            again()
            if isinstance(made, Numbered):
                out = made(given.arrays, given.leaves)
                if out is not MISS:
                    return out, "numbers vary: one path for any number"
            if not made:
                return MISS, ""
        return MISS, ""

    def _served(
        self, of: _Signature, given: Split, static: Hashable, again: Callable[[], None]
    ) -> Any:
        """The result from the first path that holds."""
        for key in ((static, given.key.types), (static, None)):
            for numbered in list(of.paths.get(key, ())):
                if not numbered.path.current():
                    of.paths[key].remove(numbered)
                    continue
                out = numbered(given.arrays, given.leaves)
                if out is not MISS:
                    given.served[:] = [numbered]
                    return out
                again()
        return MISS

    def _new(
        self, of: _Signature, given: Split, at: Sequence[int], static: Hashable, whole: bool
    ) -> Numbered | bool:
        """A new path with the numbers at these leaves open, and symbols for sizes that vary; where
        there is none, whether some of the numbers were found to be needed.
        """
        shapes = tuple([s for s, _ in given.key.types])
        sizes = of.open.setdefault(static, Open(shapes, whole))
        sizes.see(shapes)
        raised = False
        for names in (*sizes.names(shapes), None):
            opened = Opened(at)
            try:
                path = self._make(given, opened, names)
            except Exception:  # an op refuses this number, or whatever does not know open ones
                path = None
                raised = names is None and not opened.bound
                of.failures += raised
            if path is not None:
                kept = None if path.exe.captured.symbols else given.key.types
                paths = of.paths.setdefault((static, kept), [])
                if len(paths) >= _MOST:
                    break
                paths.append(Numbered(path, opened))
                if len(of.paths) > _KEPT:
                    of.paths.pop(next(iter(of.paths)))
                return paths[-1]
            if names is None and opened.bound:
                of.bind(opened.bound)
                return True
            sizes.fixed |= names is not None and sizes.least(shapes) > 1
        if not raised or of.failures >= _FAILURES:
            of.bind(at)
        return False
