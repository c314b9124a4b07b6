"""All that one jitted function has compiled: its paths by signature, and how new ones come about.

A call that no kept path serves is captured and compiled here; so are the reasons for that, in
words. `jit.py` asks only when it has no entry for the arguments at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any

from funct.array import Array
from funct.array.remote import is_remote
from funct.compile import (
    MISS,
    Reuse,
    begin_walker,
    expect,
    foreseen,
    returns,
    run_at_once,
    why_not_fused,
)
from funct.core.collecting import seldom
from funct.core.effects import once
from funct.errors import RecursionLimitError, TransformError, UnknownValueError
from funct.events import tell
from funct.graph import Graph, writing
from funct.transforms.compiled.arguments import NUMBERS, Key, Split, difference, positions
from funct.transforms.compiled.backends import Compile
from funct.transforms.compiled.executable import Executable
from funct.transforms.compiled.numbered import Opened, Signatures
from funct.transforms.compiled.paths import (
    Captured,
    Open,
    Path,
    axes_text,
    captured,
    first_difference,
)
from funct.transforms.compiled.resized import Kin
from funct.transforms.compiled.segments import run_in_segments, worth_segments
from funct.transforms.compiled.turns import Turns

__all__ = ["Groups", "Table"]

Groups = tuple[list[Path], list[Path]]  # for one length of every axis, and for any

_MAX_PATHS = 8
_AGAIN = 64  # of so many calls that no path serves, one asks the paths again
_NO_PATHS: Groups = ([], [])
_OPS = 64.0  # that a segment is taken to have before it is known


class Table:
    """The paths of one function, and why each was compiled.

    exact: what a call found them by, as `jit.py` spells it. hits, misses: as in `CacheInfo`. ops:
    of a segment, where there were some. spare: whether results take memory that was kept. shares:
    whether sizes share machine code. vain: of signatures without room for more paths, how many
    calls paths had served when one was served last, and how many calls none has served since.
    plain: by what `exact` finds paths, how many calls from now on are calls of the function, which
    nobody takes apart. restless: of signatures, how many paths after each other served few calls
    before what the function reads elsewhere was another.
    """

    def __init__(
        self, fun: Callable[..., Any], name: str, compile: Compile, dynamic: Any, fullgraph: bool,
        donate: tuple[int, ...], spare: bool, shares: bool, numbers: bool,
    ) -> None:  # fmt: skip
        self.fun = fun
        self.name = name
        self.compile = compile
        self.dynamic = dynamic
        self.fullgraph = fullgraph
        self.donate = donate
        self.spare = spare
        self.shares = shares
        self.exact: dict[Any, Groups] = {}
        self.paths: dict[Key, list[Path]] = {}
        self.open: dict[Any, Open] = {}
        self.kin: dict[Any, Kin] = {}
        self.segments: dict[Any, Executable | None] = {}
        self.ops = _OPS
        self.vain: dict[Key, tuple[int, int]] = {}
        self.plain: dict[Any, int] = {}
        self.restless: dict[Key, int] = {}
        self.numbered = Signatures(self._path_of_numbers) if numbers and dynamic else None
        self.reasons: list[str] = []
        self.asking: set[Any] = set()  # ranks where loops or branches ask for values
        self.misses = 0
        self.hits = 0
        self._capturing: set[int] = set()  # threads in which fun is being captured
        self._turns = Turns()  # by ranks

    def all_paths(self) -> list[Path]:
        """Every path that is kept."""
        groups = [*self.paths.values(), *[o.paths for o in list(self.open.values())]]
        numbered = [] if self.numbered is None else self.numbered.all_paths()
        return [*[p for paths in groups for p in paths], *numbered]

    def calls(self) -> int:
        """How many calls were served by a path that was there."""
        return self.hits + sum([p.answered() for p in self.all_paths()])

    def is_plain(self, exact: Any) -> bool:
        """Whether this call is one of those of the function itself."""
        left = self.plain.get(exact, 0)
        if left:
            self.plain[exact] = left - 1
        return left > 0

    def call(self, given: Split, args: Any, kwargs: Any, exact: Any) -> Any:
        """The result of a call, for which a path is compiled where none serves."""
        with once(writing()) as again:
            return self._call(given, args, kwargs, exact, again)

    def _call(
        self, given: Split, args: Any, kwargs: Any, exact: Any, again: Callable[[], None]
    ) -> Any:
        """`call`. again: says that the function is run from its start again."""
        key, arrays = given.key, given.arrays
        if any(map(is_remote, arrays)):  # devices have no compiler yet: op by op
            return self.fun(*args, **kwargs)
        if (
            self.numbered is not None
            and any(kind in NUMBERS for kind, _ in key.static)
            and get_ident() not in self._capturing
        ):
            out, why = self.numbered.call(given, again, self.dynamic is True)
            if out is not MISS:
                self._count(why)
                return out
        paths = self.paths.setdefault(key, [])
        shapes = tuple([s for s, _ in key.types])
        open_ = self.open.get(key.ranks)
        first = open_ is None
        if open_ is None:
            open_ = self.open.setdefault(key.ranks, Open(shapes, self.dynamic is True))
        groups = paths, open_.paths
        _, vain = self.vain.get(key, (0, 0))
        tried = groups if vain < _MAX_PATHS or vain % _AGAIN == 0 else _NO_PATHS
        if exact is not None:
            self.exact[exact] = tried  # the same lists: what is added to them is found
        changed: str | None = None
        for group in tried:
            for path in list(group):
                name = path.changed() if path.watched else None
                if name is not None:
                    changed = name
                    group.remove(path)
                    few = path.served() < _MAX_PATHS
                    self.restless[key] = self.restless.get(key, 0) + 1 if few else 0
                    self.hits += path.answered()
                    continue
                out = path.exe(*arrays)
                if out is not MISS:
                    self.hits += 1
                    return path.rebuild(list(out))
                again()
        if get_ident() in self._capturing:  # fun calls itself: what it does is captured already
            return self.fun(*args, **kwargs)
        open_.see(shapes)
        if self.dynamic and not self.fullgraph and open_.has_none(shapes, first):
            return self.fun(*args, **kwargs)  # nothing to compute, and maybe another program
        if len(paths) >= _MAX_PATHS or (open_.other and not self.fullgraph):
            calls = self.calls()
            vain = vain + 1 if self.vain.get(key, (calls, 0))[0] == calls else 1
            if tried is _NO_PATHS and exact is not None and not self._pays(given):
                self.plain[exact] = -vain % _AGAIN
                vain += self.plain[exact]
            self.vain[key] = calls, vain
            return self._wide(args, kwargs, given, open_.other)
        if key.ranks in self.asking or self._is_restless(given, changed):
            return self._stepwise(args, kwargs, given)
        before = [p.exe.captured for p in groups[0] + groups[1]]
        with self._turns.taken(key.ranks) as mine:
            if not mine:
                return self._call(given, args, kwargs, exact, again)
            try:
                with seldom, foreseen(self.fun, key.types):
                    if self.shares:  # made by this compiler
                        expect([s for s, _ in key.types])
                    path, outer, reason = self._new_path(
                        open_, paths, given, again, changed is not None
                    )
            except UnknownValueError as error:  # no guard could say what a loop's steps decide
                if self.fullgraph:
                    raise
                self.asking.add(key.ranks)
                self._note(error.what, given)
                again()
        if key.ranks in self.asking:
            return self._stepwise(args, kwargs, given)
        if reason is None:
            reason = self._reason(given, before, path, changed)
        self._count(reason)
        open_.ask(path.exe.captured)
        again()
        out = path.exe(*arrays, *outer)
        if out is MISS:  # machine code rounds otherwise, and a decision hangs on the last bits
            again()
            out = path.exe.captured(*arrays, *outer)
        return path.rebuild(list(out))

    def _count(self, reason: str | None) -> None:
        """Note that a call was served; with a reason, that code was made for it."""
        if not reason:
            self.hits += 1
            return
        self.misses += 1
        self.reasons.append(reason)
        n = self.misses
        tell("cache", lambda: f"jit({self.name}): compilation {n}: {reason}")

    def _path_of_numbers(self, given: Split, opened: Opened, names: Any) -> Path | None:
        """A path with open numbers; None where it serves no other call."""
        with seldom, foreseen(self.fun, given.key.types):
            found = self.capture(given, names, opened)
            if opened.bound or found.outer or (names is not None and found.graph.fixed_sizes()):
                return None
            return self._path(found, given, self.compile)

    def _wide(self, args: Any, kwargs: Any, given: Split, other: str) -> Any:
        """A call of a function that decides in more ways than paths are kept. other: what is
        another value at each call, if it was found to be.
        """
        if self.fullgraph:
            raise TransformError(
                f"jit: {self.name} took {_MAX_PATHS} paths for one signature, the limit",
                fix="write where(condition, a, b) instead of if, or leave fullgraph out",
            )
        self._note(other or f"{_MAX_PATHS} paths are the limit", given)
        return self._stepwise(args, kwargs, given)

    def _is_restless(self, given: Split, changed: str | None) -> bool:
        """Whether what the function reads elsewhere changes so often that it takes less time to
        call it on these arrays than to capture it. Sometimes it is asked whether that is over.
        """
        count = self.restless.get(given.key, 0)
        if count < _MAX_PATHS or self.fullgraph or self._pays(given):
            return False
        self.restless[given.key] = count + 1
        if changed is not None:
            self._note(f"{changed}, again and again", given)
        return count % _AGAIN != 0

    def _note(self, why: str, given: Split) -> None:
        """Tell why the function decides at each call from now on."""
        how = "segments between decisions are compiled"
        note = f"{why}; from then on {how if self._pays(given) else 'the function is called'}"
        if note not in self.reasons:
            self.reasons.append(note)

    def _stepwise(self, args: Any, kwargs: Any, given: Split) -> Any:
        """A call in which Python decides."""
        if self._pays(given):
            store, compile = self.segments, self.compile
            out, self.ops = run_in_segments(given.call, given.arrays, store, compile)
            return out
        return self.fun(*args, **kwargs)

    def _pays(self, given: Split) -> bool:
        """Whether a function that decides at each call is to be compiled in segments."""
        ground = all(x.__class__ is Array for x in given.arrays)
        return ground and worth_segments(given.arrays, self.ops)

    def _new_path(
        self,
        open_: Open,
        paths: list[Path],
        given: Split,
        again: Callable[[], None],
        changed: bool,
    ) -> tuple[Path, tuple[Any, ...], str | None]:
        """A path that serves this call, kept where it serves others; tracers that it closes over;
        and why, where sizes are the reason: empty where no code had to be made.

        changed: whether what the function reads elsewhere is another: perhaps a number.
        """
        first = not open_.paths
        path = self._open_path(open_, given, again)
        if path is not None:
            axes = axes_text(open_.varying, given.names())
            return path, (), f"sizes vary: one path for any {axes}" if first else None
        again()
        found = self.capture(given)
        if found.outer:  # it serves this call only
            return self._path(found, given, self.compile), found.outer, None
        like = None
        if self.dynamic and self.shares:
            kin = self.kin.setdefault(given.key.kin, Kin(given.key.static))
            self._forget(kin.see(given.key), sizes=not kin.several)
            like = kin.like(found.graph, asked=open_.fixed or kin.several or changed)
        if like is None:
            paths.append(self._path(found, given, self.compile))
            return paths[-1], (), None
        alike, known = like
        compile = alike.compiling(self.compile, found.graph)
        path = self._path(found, given, compile)
        paths.append(path)
        shared = alike.shares(found.graph)
        if changed:
            return path, (), None
        if not known:
            what = "sizes vary, as numbers" if open_.fixed else "numbers vary"
            return path, (), f"{what}: they are handed over"
        return path, (), "" if shared else None

    def _forget(self, gone: Sequence[Key], *, sizes: bool) -> None:
        """Let go of the paths of signatures. sizes: they differ in sizes alone."""
        for key in gone:
            open_ = None if sizes else self.open.pop(key.ranks, None)
            paths = self.paths.pop(key, [])
            self.hits += sum([p.answered() for p in (*paths, *(open_.paths if open_ else ()))])
            self.vain.pop(key, None)
            for exact in [e for e, groups in list(self.exact.items()) if groups[0] is paths]:
                self.exact.pop(exact, None)

    def _open_path(self, open_: Open, given: Split, again: Callable[[], None]) -> Path | None:
        """A path for every size of the axes that vary, where that is refused for those that are
        longer than 1; None where the function fixes one.
        """
        shapes = tuple([s for s, _ in given.key.types])
        ways = open_.names(shapes) if self.dynamic and len(open_.paths) < _MAX_PATHS else []
        for k, names in enumerate(ways):
            if k:
                again()
            try:
                found = self.capture(given, names)
                if found.outer or found.graph.fixed_sizes():
                    continue
                path = self._path(found, given, self.compile)
            except Exception:  # whatever code does that insists on ints: it stays specialised
                continue
            open_.paths.append(path)
            return path
        if ways:
            open_.fixed = open_.least(shapes) > 1
        return None

    def capture(self, given: Split, names: Any = None, opened: Opened | None = None) -> Captured:
        """The function captured for a call. names: of the sizes that are symbols. opened: the
        numbers that are kept open.
        """
        thread = get_ident()
        self._capturing.add(thread)
        try:
            grown = begin_walker if self.shares else None  # whose paths this compiler makes
            return captured(self.fun, given, names, opened, grown)
        except RecursionError as error:
            if isinstance(error, RecursionLimitError):
                raise
            raise RecursionLimitError(
                f"jit: {self.name} calls itself, or something else calls itself, without end "
                "while it is captured",
                fix="a recursion needs a case that ends it; write loops as while_loop or scan",
            ) from None
        finally:
            self._capturing.discard(thread)

    def _path(self, found: Captured, given: Split, compile: Compile) -> Path:
        exe = Executable(found.graph, compile=compile)
        if found.graph.symbols or all(x.__class__ is Array for x in given.arrays):
            returns(found.graph)
            with run_at_once():
                exe.ready()  # a failure belongs here; a derivative may never need it
        tell("graph", lambda: f"jit({self.name}):\n{exe.graph}")
        at = positions(self.donate, given.count)
        donated = frozenset([k for k, owner in enumerate(given.owners) if owner in at])
        return Path(found, exe, Reuse(donated, self.spare))

    def _reason(self, given: Split, before: list[Graph], path: Path, changed: str | None) -> str:
        if before:
            shapes = [s for s, _ in given.key.types]
            where = first_difference(path.exe.captured, before[-1], shapes, given.names())
            return f"another path: none of {len(before)} held ({where})"
        if changed is not None:
            return changed
        known = [k for k, paths in self.paths.items() if paths and k != given.key]
        if given.key in self.restless:
            return "asked again whether what the function reads stays what it is"
        if not known:
            return "first call"
        return f"new signature: {difference(given.key, known, given.names())}"

    def serving(self, given: Split) -> Path | None:
        """The path that a call took."""
        for path in [*self.paths[given.key], *self.open[given.key.ranks].paths]:
            if path.current() and path.exe(*given.arrays) is not MISS:
                return path
        return None

    def explain(self) -> str:
        """Why each compilation happened, one line each: which argument was new, or which decision
        of the function went another way, with the line it stands on; then why ops of the paths that
        are kept share no loops with others.
        """
        lines = [f"{k}. {r}" for k, r in enumerate(self.reasons, 1)]
        apart: dict[str, None] = {}
        for path in self.all_paths() if self.shares else ():
            apart |= dict.fromkeys(why_not_fused(path.exe.captured))
        told = [f"not fused: {line}" for line in apart]
        return "\n".join([f"jit({self.name}): {self.misses} compilations", *lines, *told])
