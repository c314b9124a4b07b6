"""jit: capture once per signature and path, then run the compiled graph.

Every result, the first one too, comes from the compiled graph. A decision that Python takes on a
value is a guard; a run in which it does not hold compiles that path as well; when a signature has
too many paths the function is called in compiled segments, or as it is: slower and never wrong. A
compiled graph is an op of its own: its derivative is two compiled graphs, and theirs are four.

Python numbers, strings and other leaves that are no arrays are part of the signature, and so are
sizes at first; an axis whose length changes becomes symbolic, and one path serves every length of
it, unless the function itself fixes the length.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, Literal, NamedTuple

from numpy import ndarray

from funct import tree as pytree
from funct.array import Array
from funct.array.remote import is_remote
from funct.compile import MISS, show_assembly, show_llvm, show_loops
from funct.errors import ArgumentError, RecursionLimitError, TransformError
from funct.events import tell
from funct.graph import Graph, optimize
from funct.ops.families import wrap
from funct.transforms.arguments import Key, Split, difference, is_array, positions, split, static
from funct.transforms.backends import Backend, compiler
from funct.transforms.compared import compare_nodes, compare_results
from funct.transforms.donation import check_donation, give_away
from funct.transforms.executable import Executable
from funct.transforms.lowered import Lowered, Ready
from funct.transforms.paths import Captured, Open, Path, axes_text, captured, first_difference
from funct.transforms.purity import check_pure
from funct.transforms.segments import run_in_segments, worth_segments

__all__ = ["CacheInfo", "Compiled", "jit"]

new = object.__new__

_MAX_PATHS = 8


class CacheInfo(NamedTuple):
    """hits: calls served by a compiled path; misses: compilations; paths: kept now."""

    hits: int
    misses: int
    paths: int


class _Before(NamedTuple):
    """The signature of the last call of pytrees, and the paths for it."""

    spec: pytree.Structure
    held: Any
    types: Any
    key: Any
    groups: tuple[list[Path], list[Path]]


class Compiled:
    """What `jit` returns: the function, compiled by signature and path."""

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: Any = (),
        static_argnames: Any = (),
        donate_argnums: Any = (),
        dynamic: Any = "auto",
        fullgraph: bool = False,
        mode: str = "default",
        backend: str | Backend | None = None,
    ) -> None:
        if not callable(fun):
            raise TransformError(f"jit: expected a function, got {type(fun).__name__}")
        if dynamic not in ("auto", True, False):
            raise ArgumentError(f"jit: dynamic must be 'auto', True or False, got {dynamic!r}")
        self.fun = fun
        self.dynamic = dynamic
        self.fullgraph = fullgraph
        self.mode = mode
        self.backend = backend
        self.static_argnums = _as_tuple("static_argnums", static_argnums, int)
        self.static_argnames = _as_tuple("static_argnames", static_argnames, str)
        self.donate_argnums = _as_tuple("donate_argnums", donate_argnums, int)
        both = set(self.static_argnums) & set(self.donate_argnums)
        if both:
            raise ArgumentError(f"jit: argument {min(both)} cannot be static and donated")
        self.__name__ = getattr(fun, "__name__", "fun")
        self.__doc__ = getattr(fun, "__doc__", None)
        self.__wrapped__ = fun
        self._compile_graph = compiler(mode, backend)
        self._static = bool(self.static_argnums or self.static_argnames)
        self._special = self._static or bool(self.donate_argnums) or mode == "check"
        self._capturing: set[int] = set()  # threads in which fun is being captured
        self.clear_cache()

    def clear_cache(self) -> None:
        """Forget every compiled path."""
        self._exact: dict[Any, tuple[list[Path], list[Path]]] = {}
        self._last: tuple[Any, Any] = None, None  # the last signature, and the path for it
        self._before: _Before | None = None
        self._paths: dict[Key, list[Path]] = {}
        self._open: dict[Any, Open] = {}
        self._segments: dict[Any, Executable] = {}
        self._reasons: list[str] = []
        self._hits = 0
        self._misses = 0

    def cache_info(self) -> CacheInfo:
        """Hits, misses (compilations) and paths kept."""
        kept = [*self._paths.values(), *[o.paths for o in self._open.values()]]
        return CacheInfo(self._hits, self._misses, sum(len(p) for p in kept))

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        options = (
            self.static_argnums, self.static_argnames, self.donate_argnums, self.dynamic,
            self.fullgraph, self.mode, self.backend,
        )  # fmt: skip
        return Compiled, (self.fun, *options)

    # calls ----------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and not self._special:
            key: Any = ()
            raws: Any = ()
            for a in args:  # arrays only, seen before: no pytree work
                if a.__class__ is not Array:
                    break
                d = a.data
                raws += (d,)
                key += (d.shape, d.dtype)
            else:
                last, path = self._last
                if key == last:
                    try:
                        out = path.raw(*raws)
                    except Exception as error:
                        raise path.exe.located(error, args) from None
                    if out is not MISS:
                        self._hits += 1
                        if not path.single:
                            return path.rebuild([wrap(d) for d in out])
                        (d,) = out
                        if d.__class__ is not ndarray:
                            return wrap(d)
                        r = new(Array)
                        r.data = d
                        return r
                return self._run(key, self._exact.get(key), raws, args, kwargs)
            return self._trees(args, (), args, kwargs)
        if self.mode == "check":
            return self._checked(args, kwargs)
        if self.donate_argnums:
            return self._donating(args, kwargs)
        return self._mixed(args, kwargs)

    def _run(self, key: Any, groups: Any, raws: Any, args: Any, kwargs: Any) -> Any:
        """The result from the first path that holds; else another path is compiled."""
        for group in groups or ():
            for path in group:
                if path.watched and not path.current():
                    continue
                try:
                    out = path.raw(*raws)
                except Exception as error:
                    raise path.exe.located(error, [wrap(r) for r in raws]) from None
                if out is not MISS:
                    self._hits += 1
                    if not path.watched:
                        self._last = key, path
                    return wrap(out[0]) if path.single else path.rebuild([wrap(d) for d in out])
        return self._general(args, kwargs, key)

    def _mixed(self, args: Any, kwargs: Any) -> Any:
        """A call with keywords or static arguments."""
        if not self._static:
            return self._trees((args, kwargs), (), args, kwargs)
        fixed = positions(self.static_argnums, len(args))
        named = [k for k in sorted(kwargs) if k in self.static_argnames]
        held = tuple(
            [(i, static(args[i])) for i in fixed] + [(k, static(kwargs[k])) for k in named]
        )
        free = [None if i in fixed else a for i, a in enumerate(args)]
        rest = {k: v for k, v in kwargs.items() if k not in named}
        return self._trees((free, rest), held, args, kwargs)

    def _trees(self, free: Any, held: Any, args: Any, kwargs: Any) -> Any:
        """A call of pytrees. Most calls have the structure of the call before, and to follow a
        structure that is known costs a fraction of finding it.
        """
        before, leaves = self._before, None
        if before is not None:
            try:
                leaves = before.spec.flatten_up_to(free)
            except (ValueError, TypeError, RecursionError):
                before = None
        if leaves is None:
            leaves, spec = pytree.flatten(free)
        else:
            assert before is not None
            spec = before.spec
        if all([x.__class__ is Array for x in leaves]):  # noqa: C419  a list is faster here
            raws = [x.data for x in leaves]
            types: Any = [(d.shape, d.dtype) for d in raws]
        else:
            raws = [x.data for x in leaves if x.__class__ is Array]
            if any([x.__class__ is not Array and is_array(x) for x in leaves]):  # noqa: C419
                return self._general(args, kwargs, None)
            types = [
                (x.data.shape, x.data.dtype) if x.__class__ is Array else static(x) for x in leaves
            ]
        if before is not None and types == before.types and held == before.held:
            return self._run(before.key, before.groups, raws, args, kwargs)
        key = (spec, held, *types)
        try:
            groups = self._exact.get(key)
        except TypeError:
            self._split(args, kwargs)  # says which argument does not hash
            raise
        if groups is not None:
            self._before = _Before(spec, held, types, key, groups)
        return self._run(key, groups, raws, args, kwargs)

    def _donating(self, args: Any, kwargs: Any) -> Any:
        """The result; then the arrays of donated arguments are gone."""
        at = positions(self.donate_argnums, len(args))
        leaves = pytree.leaves([a for i, a in enumerate(args) if i in at])
        others = pytree.leaves(([a for i, a in enumerate(args) if i not in at], kwargs))
        given = [True] * len(leaves) + [False] * len(others)
        check_donation(f"jit({self.__name__})", [*leaves, *others], given)
        out = self._mixed(args, kwargs)
        kept = {id(x) for x in pytree.leaves(out)}
        give_away(f"jit({self.__name__})", leaves, [id(x) not in kept for x in leaves])
        return out

    def _checked(self, args: Any, kwargs: Any) -> Any:
        """The compiled result, after it was compared with eager execution."""
        given = self._split(args, kwargs)
        known = self._misses
        out = self._general(args, kwargs, None)
        path = self._serving(given)
        if all(x.__class__ is Array for x in given.arrays):
            if self._misses > known:
                given.call.__wrapped__ = self.fun  # type: ignore[attr-defined]
                given.call.__name__ = self.__name__
                check_pure(given.call, *given.arrays)
            if path is not None:
                graph, buffers = path.exe.graph, [x.data for x in given.arrays]
                compare_nodes(self.__name__, graph, buffers, self._compile_graph)
                eager = [x for x in pytree.leaves(given.call(*given.arrays)) if is_array(x)]
                ours = [x for x in pytree.leaves(out) if is_array(x)]
                compare_results(self.__name__, graph, ours, eager)
        if self.donate_argnums:
            at = positions(self.donate_argnums, len(args))
            leaves = pytree.leaves([a for i, a in enumerate(args) if i in at])
            give_away(f"jit({self.__name__})", leaves, [True] * len(leaves))
        return out

    def _serving(self, given: Split) -> Path | None:
        """The path that a call took."""
        for path in [*self._paths[given.key], *self._open[given.key.ranks].paths]:
            if path.current() and path.exe(*given.arrays) is not MISS:
                return path
        return None

    # compilation ----------------------------------------------------------------------------------

    def _split(self, args: Any, kwargs: Any) -> Split:
        return split(self.fun, self.static_argnums, self.static_argnames, args, kwargs)

    def _general(self, args: Any, kwargs: Any, exact: Any) -> Any:
        given = self._split(args, kwargs)
        key, arrays = given.key, given.arrays
        if any(map(is_remote, arrays)):  # devices have no compiler yet: op by op
            return self.fun(*args, **kwargs)
        paths = self._paths.setdefault(key, [])
        shapes = tuple([s for s, _ in key.types])
        open_ = self._open.get(key.ranks)
        if open_ is None:
            open_ = self._open.setdefault(key.ranks, Open(shapes, self.dynamic is True))
        groups = paths, open_.paths
        if exact is not None:
            self._exact[exact] = groups  # the same lists: what is added to them is found
        changed: str | None = None
        for group in groups:
            for path in list(group):
                name = path.changed() if path.watched else None
                if name is not None:
                    changed = name
                    group.remove(path)
                    self._last = None, None
                    continue
                out = path.exe(*arrays)
                if out is not MISS:
                    self._hits += 1
                    return path.rebuild(list(out))
        if get_ident() in self._capturing:  # fun calls itself: what it does is captured already
            return self.fun(*args, **kwargs)
        if len(paths) >= _MAX_PATHS:
            return self._wide(args, kwargs, given)
        before = [p.exe.captured for p in groups[0] + groups[1]]
        self._misses += 1
        n = self._misses
        path, outer, reason = self._new_path(open_, paths, given)
        if reason is None:
            reason = self._reason(given, before, path, changed)
        self._reasons.append(reason)
        tell("cache", lambda: f"jit({self.__name__}): compilation {n}: {reason}")
        out = path.exe(*arrays, *outer)
        assert out is not MISS, "the call that was captured follows its own path"
        return path.rebuild(list(out))

    def _wide(self, args: Any, kwargs: Any, given: Split) -> Any:
        """A call of a function that decides in more ways than paths are kept."""
        if self.fullgraph:
            raise TransformError(
                f"jit: {self.__name__} took {_MAX_PATHS} paths for one signature, the limit",
                fix="write where(condition, a, b) instead of if, or leave fullgraph out",
            )
        ground = all(x.__class__ is Array for x in given.arrays)
        pays = ground and worth_segments(given.arrays)
        note = f"{_MAX_PATHS} paths are the limit; from then on "
        note += "segments between decisions are compiled" if pays else "the function is called"
        if note not in self._reasons:
            self._reasons.append(note)
        if pays:
            return run_in_segments(given.call, given.arrays, self._segments, self._compile_graph)
        return self.fun(*args, **kwargs)

    def _new_path(
        self, open_: Open, paths: list[Path], given: Split
    ) -> tuple[Path, tuple[Any, ...], str | None]:
        """A path that serves this call, kept where it serves others; tracers that it closes over;
        and why, where sizes are the reason.
        """
        first = not open_.paths
        path = self._open_path(open_, given)
        if path is not None:
            axes = axes_text(open_.varying, given.names())
            return path, (), f"sizes vary: one path for any {axes}" if first else None
        found = self._capture(given)
        path = self._path(found)
        if not found.outer:  # a graph that closes over tracers serves this call only
            paths.append(path)
        return path, found.outer, None

    def _open_path(self, open_: Open, given: Split) -> Path | None:
        """A path for every size of the axes that vary; None where the function fixes one."""
        shapes = tuple([s for s, _ in given.key.types])
        names = open_.names(shapes) if self.dynamic else None
        if names is None or len(open_.paths) >= _MAX_PATHS:
            return None
        try:
            found = self._capture(given, names)
            if found.outer or found.graph.fixed_sizes():
                open_.fixed = True
                return None
            path = self._path(found)
        except Exception:  # whatever code does that insists on ints: it stays specialised
            open_.fixed = True
            return None
        open_.paths.append(path)
        return path

    def _capture(self, given: Split, names: Any = None) -> Captured:
        thread = get_ident()
        self._capturing.add(thread)
        try:
            return captured(self.fun, given.arrays, given.call, names)
        except RecursionError as error:
            if isinstance(error, RecursionLimitError):
                raise
            raise RecursionLimitError(
                f"jit: {self.__name__} calls itself, or something else calls itself, without end "
                "while it is captured",
                fix="a recursion needs a case that ends it; write loops as while_loop or scan",
            ) from None
        finally:
            self._capturing.discard(thread)

    def _path(self, found: Captured) -> Path:
        exe = Executable(found.graph, compile=self._compile_graph)
        tell("graph", lambda: f"jit({self.__name__}):\n{exe.graph}")
        return Path(found, exe)

    def _reason(self, given: Split, before: list[Graph], path: Path, changed: str | None) -> str:
        if before:
            where = first_difference(path.exe.captured, before[-1])
            return f"another path: none of {len(before)} held ({where})"
        if changed is not None:
            return f"{changed} is another object now"
        known = [k for k, paths in self._paths.items() if paths and k != given.key]
        if not known:
            return "first call"
        return f"new signature: {difference(given.key, known, given.names())}"

    # looking at it --------------------------------------------------------------------------------

    def explain(self) -> str:
        """Why each compilation happened, one line each: which argument was new, or which decision
        of the function went another way, with the line it stands on.
        """
        lines = [f"{k}. {r}" for k, r in enumerate(self._reasons, 1)]
        return "\n".join([f"jit({self.__name__}): {self._misses} compilations", *lines])

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The function captured for these arguments: `.graph`, `.as_text()`, `.compile()`.

        Raises: TransformError: for a function that closes over values of an outer transform.
        """
        given = self._split(args, kwargs)
        found = self._capture(given)
        if found.outer:
            raise TransformError(
                "jit: graph() needs a function that closes over no outer transform"
            )
        graph = optimize(found.graph)

        def make() -> Ready:
            exe = Executable(found.graph, compile=self._compile_graph)
            return Ready(self.__name__, exe, given.key, found.rebuild, self._split)

        return Lowered(self.__name__, graph, make)

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph that serves these arguments."""
        return self.lower(*args, **kwargs).graph

    def show(self, *args: Any, form: str = "graph", **kwargs: Any) -> str:
        """What serves these arguments, for people.

        Args: form: "graph": readable Python; "loops": the function that a call runs and the loops
        of its kernels, as readable Python; "llvm" and "assembly": the kernels' code.
        """
        if form not in _FORMS:
            raise ArgumentError(f"show: form must be one of {', '.join(_FORMS)}, got {form!r}")
        return _FORMS[form](self.graph(*args, **kwargs))


_FORMS: dict[str, Callable[[Graph], str]] = {
    "graph": str, "loops": show_loops, "llvm": show_llvm, "assembly": show_assembly,
}  # fmt: skip


def _as_tuple(what: str, x: Any, kind: type) -> tuple[Any, ...]:
    given = (x,) if isinstance(x, kind) else x
    if (
        isinstance(given, str)
        or not isinstance(given, Sequence)
        or not all(isinstance(v, kind) for v in given)
    ):
        raise ArgumentError(f"jit: {what} must be {kind.__name__}s, got {x!r}")
    return tuple(given)


def jit(
    fun: Callable[..., Any],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    dynamic: Literal["auto", True, False] = "auto",
    fullgraph: bool = False,
    mode: Literal["default", "reduce-overhead", "max-autotune", "check"] = "default",
    backend: str | Backend | None = None,
) -> Compiled:
    """fun, captured to a graph and compiled; the same results as fun, faster.

    Args: fun: a pure function of pytrees. Python `if`, `while`, `int()`, `float()` on values work:
    each decision is remembered, and another decision compiles another path. static_argnums,
    static_argnames: arguments that are part of the signature whole; they must hash. donate_argnums:
    arguments whose memory the results may use; their arrays cannot be used again. dynamic: "auto"
    makes an axis symbolic once its length has changed, True from the start, False compiles for
    every length. fullgraph: more than 8 paths for one signature are an error; otherwise the
    function is called in compiled segments then, or as it is. mode: "reduce-overhead" keeps scratch
    memory between calls, "max-autotune" measures variants of the code, "check" compares every
    result with eager execution, node by node, and looks for side effects. backend: a function
    from `Graph` to a function of arrays, or to a graph that is compiled as usual, as passes give
    it; or the name of a registered one.
    Returns: a callable with `.graph(*args)`, `.show(*args)`, `.lower(*args)`, `.explain()`,
    `.cache_info()`, `.clear_cache()`.
    Raises: MismatchError: with mode="check", naming the first node that differs. PurityError: with
    mode="check", for a function with side effects. DonatedError: for a donated array used again.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> f = ft.jit(lambda x: x * 2.0 if xp.sum(x) > 0 else -x)
        >>> f(xp.asarray([1.0])).tolist(), f(xp.asarray([-1.0])).tolist()
        ([2.0], [1.0])
        >>> f.cache_info().misses
        2
    """
    return Compiled(
        fun, static_argnums, static_argnames, donate_argnums, dynamic, fullgraph, mode, backend
    )
