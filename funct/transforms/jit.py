"""jit: capture once per signature and path, then run the compiled graph.

Every result, the first one too, comes from the compiled graph. A decision that Python takes on a
value is a guard; a run in which it does not hold compiles that path as well; when a signature has
too many paths the function itself is called, which is slower and never wrong. A compiled graph is
an op of its own: its derivative is two compiled graphs, and theirs are four.

Python numbers, strings and other leaves that are no arrays are part of the signature, and so are
sizes at first; an axis whose length changes becomes symbolic, and one path serves every length of
it, unless the function itself fixes the length.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from funct import tree as pytree
from funct.array import Array, Tensor, asarray
from funct.compile import MISS
from funct.core import Size
from funct.errors import ArgumentError, TransformError
from funct.graph import Graph, Guard
from funct.graph.capture import capture
from funct.ops.families import wrap
from funct.settings import config
from funct.transforms.executable import Executable

__all__ = ["CacheInfo", "Compiled", "jit"]

_MAX_PATHS = 8


class CacheInfo(NamedTuple):
    """hits: calls served by a compiled path; misses: compilations; paths: kept now."""

    hits: int
    misses: int
    paths: int


class _Path:
    """One compiled path: the graph, the structure of its result, and what it assumes."""

    __slots__ = ("exe", "raw", "rebuild", "single", "watched")

    def __init__(
        self, exe: Executable, rebuild: Any, single: bool, watched: tuple[Any, ...]
    ) -> None:
        self.exe = exe
        self.raw = exe.raw
        self.rebuild = rebuild
        self.single = single
        self.watched = watched

    def current(self) -> bool:
        """Whether the names the function reads still mean the same objects."""
        for cell, namespace, name, seen in self.watched:
            try:
                now = cell.cell_contents if cell is not None else namespace.get(name)
            except ValueError:
                return False
            if now is not seen and _meant(now) is not seen:
                return False
        return True


def _meant(x: Any) -> Any:
    """x, or the Tensor that it stands for now: an array that may be written into stays the same
    object.
    """
    return x.__funct_array__() if hasattr(type(x), "__funct_array__") else x


def _watched(fun: Any) -> tuple[Any, ...]:
    """(cell, namespace, name, object) for the closure cells and globals that fun's own code
    names.
    """
    while hasattr(fun, "__wrapped__") or hasattr(fun, "func") or hasattr(fun, "__func__"):
        fun = getattr(fun, "__wrapped__", None) or getattr(fun, "func", None) or fun.__func__
    code = getattr(fun, "__code__", None)
    if code is None:
        return ()
    out: list[Any] = []
    for cell in fun.__closure__ or ():
        try:
            out.append((cell, None, None, _meant(cell.cell_contents)))
        except ValueError:  # a cell that is filled later: the function's own name, say
            continue
    for name in code.co_names:
        value = fun.__globals__.get(name)
        if value is not None and not isinstance(value, types.ModuleType):
            out.append((None, fun.__globals__, name, _meant(value)))
    return tuple(out)


class _Open:
    """Signatures that differ in sizes alone: which axes have varied, and the paths for any size."""

    __slots__ = ("first", "fixed", "paths", "varying")

    def __init__(self, shapes: tuple[tuple[int, ...], ...]) -> None:
        self.first = shapes
        self.varying: set[tuple[int, int]] = set()
        self.paths: list[_Path] = []
        self.fixed = False  # the function needs to know its sizes

    def names(self, shapes: tuple[tuple[int, ...], ...]) -> list[dict[int, str] | None] | None:
        """Symbols for the axes that vary; None while none does, and for lengths 0 and 1."""
        self.varying |= {
            (i, axis)
            for i, (old, new) in enumerate(zip(self.first, shapes, strict=True))
            for axis, (n, m) in enumerate(zip(old, new, strict=True))
            if n != m
        }
        if self.fixed or not self.varying or any(shapes[i][a] < 2 for i, a in self.varying):
            return None
        return [
            {axis: f"s{i}_{axis}" for axis in range(len(shape)) if (i, axis) in self.varying}
            for i, shape in enumerate(shapes)
        ]


class Compiled:
    """What `jit` returns: the function, compiled by signature and path."""

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: Any,
        static_argnames: Any,
        dynamic: Any = "auto",
        fullgraph: bool = False,
    ) -> None:
        if dynamic not in ("auto", False):
            raise ArgumentError(f"jit: dynamic must be 'auto' or False, got {dynamic!r}")
        self.fun = fun
        self.dynamic = dynamic
        self.fullgraph = fullgraph
        self.static_argnums = _as_tuple(static_argnums)
        self.static_argnames = _as_tuple(static_argnames)
        self.__name__ = getattr(fun, "__name__", "fun")
        self.__doc__ = getattr(fun, "__doc__", None)
        self.__wrapped__ = fun
        self._static = bool(self.static_argnums or self.static_argnames)
        self.clear_cache()

    def clear_cache(self) -> None:
        """Forget every compiled path."""
        self._exact: dict[Any, tuple[list[_Path], list[_Path]]] = {}
        self._paths: dict[Any, list[_Path]] = {}
        self._open: dict[Any, _Open] = {}
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
        options = (self.static_argnums, self.static_argnames, self.dynamic, self.fullgraph)
        return Compiled, (self.fun, *options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        key: Any = ()
        raws: Any = ()
        if not kwargs and not self._static:
            for a in args:  # arrays only, seen before: no pytree work
                if a.__class__ is not Array:
                    break
                d = a.data
                raws += (d,)
                key += (d.shape, d.dtype)
            else:
                return self._run(key, raws, args, kwargs)
            leaves, spec = pytree.flatten(args)
            if all([x.__class__ is Array for x in leaves]):  # noqa: C419  a list is faster here
                raws = [x.data for x in leaves]
                return self._run((spec, *[(d.shape, d.dtype) for d in raws]), raws, args, kwargs)
        return self._general(args, kwargs, None)

    def _run(self, key: Any, raws: Any, args: Any, kwargs: Any) -> Any:
        for group in self._exact.get(key, ()):
            for path in group:
                if path.watched and not path.current():
                    continue
                try:
                    out = path.raw(*raws)
                except Exception as error:
                    raise path.exe.located(error, [wrap(r) for r in raws]) from None
                if out is not MISS:
                    self._hits += 1
                    return wrap(out[0]) if path.single else path.rebuild([wrap(d) for d in out])
        return self._general(args, kwargs, key)

    def _split(self, args: Any, kwargs: Any) -> tuple[Any, list[Any], Callable[..., Any]]:
        """(signature, array leaves, how to call fun with other leaves)."""
        fixed = {i % len(args) for i in self.static_argnums} if args else set()
        held = {i: args[i] for i in fixed}
        held_names = {k: v for k, v in kwargs.items() if k in self.static_argnames}
        free = [None if i in fixed else a for i, a in enumerate(args)]
        rest = {k: v for k, v in kwargs.items() if k not in held_names}
        leaves, spec = pytree.flatten((free, rest))
        moving = [_is_array(x) for x in leaves]
        static = tuple([_static(x) for x, m in zip(leaves, moving, strict=True) if not m])
        arrays = [asarray(x) for x, m in zip(leaves, moving, strict=True) if m]

        def call(*xs: Any) -> Any:
            given = iter(xs)
            full = [next(given) if m else x for x, m in zip(leaves, moving, strict=True)]
            a, k = spec.unflatten(full)
            a = [held[i] if i in fixed else v for i, v in enumerate(a)]
            return self.fun(*a, **k, **held_names)

        types_ = tuple([(tuple(x.shape), x.dtype) for x in arrays])
        fixed_args = tuple([(i, _static(x)) for i, x in held.items()])
        fixed_names = tuple([(k, _static(held_names[k])) for k in sorted(held_names)])
        key = (spec, static, fixed_args, fixed_names, types_)
        try:
            hash(key)
        except TypeError:
            raise TransformError(
                "jit: arguments that are no arrays must be hashable",
                fix="pass arrays, or tuples instead of lists for static arguments",
            ) from None
        return key, arrays, call

    def _general(self, args: Any, kwargs: Any, exact: Any) -> Any:
        key, arrays, call = self._split(args, kwargs)
        paths = self._paths.setdefault(key, [])
        shapes = tuple([s for s, _ in key[-1]])
        ranks = (*key[:-1], tuple([(len(s), d) for s, d in key[-1]]))
        open_ = self._open.setdefault(ranks, _Open(shapes))
        groups = paths, open_.paths
        if exact is not None:
            self._exact[exact] = groups  # the same lists: what is added to them is found
        for group in groups:
            for path in list(group):
                if path.watched and not path.current():
                    group.remove(path)
                    continue
                out = path.exe(*arrays)
                if out is not MISS:
                    self._hits += 1
                    return path.rebuild(list(out))
        if len(paths) >= _MAX_PATHS:
            if self.fullgraph:
                raise TransformError(
                    f"jit: {self.__name__} took {len(paths)} paths for one signature, the limit",
                    fix="write where(condition, a, b) instead of if, or leave fullgraph out",
                )
            return self.fun(*args, **kwargs)
        self._reasons.append(self._reason(key, paths))
        self._misses += 1
        outer: tuple[Any, ...] = ()
        found = self._compile_open(open_, shapes, arrays, call)
        if found is not None:
            path = found
        else:
            path, outer = self._compile(arrays, call)
            if not outer:  # a graph that closes over tracers serves this call only
                paths.append(path)
        out = path.exe(*arrays, *outer)
        assert out is not MISS, "the call that was captured follows its own path"
        return path.rebuild(list(out))

    def _compile_open(
        self, open_: _Open, shapes: tuple[tuple[int, ...], ...], arrays: list[Any], call: Any
    ) -> _Path | None:
        """A path for every size of the axes that vary; None where the function fixes one."""
        names = open_.names(shapes) if self.dynamic else None
        if names is None or len(open_.paths) >= _MAX_PATHS:
            return None
        try:
            path, outer = self._compile(arrays, call, names)
        except Exception:  # whatever code does that insists on ints: it stays specialised
            open_.fixed = True
            return None
        if outer or path.exe.graph.fixed_sizes():
            open_.fixed = True
            return None
        open_.paths.append(path)
        self._reasons[-1] = f"sizes vary: one path for any {_axes_text(open_.varying)}"
        return path

    def _compile(
        self, arrays: list[Any], call: Callable[..., Any], names: Any = None
    ) -> tuple[_Path, tuple[Any, ...]]:
        result: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            out = call(*xs)
            outs, structure = pytree.flatten(out)
            outs = [int(o) if isinstance(o, Size) else o for o in outs]  # a size that is returned
            result[:] = [outs, structure, isinstance(out, Tensor)]
            return [o for o in outs if _is_array(o)]

        with config.remembering() as fields:
            graph, outer = capture(flat, arrays, label="jit", names=names, user_fun=self.fun)
        outs, structure, single = result
        moving = [_is_array(o) for o in outs]
        if single:
            rebuild: Any = _first
        elif all(moving):
            rebuild = structure.unflatten
        else:  # numbers and strings come back as they are

            def rebuild(values: list[Any]) -> Any:
                given = iter(values)
                return structure.unflatten(
                    [next(given) if m else o for o, m in zip(outs, moving, strict=True)]
                )

        read = tuple([(None, config, f, config.get(f)) for f in sorted(fields)])
        return _Path(Executable(graph), rebuild, single, _watched(self.fun) + read), outer

    def _reason(self, key: Any, paths: list[_Path]) -> str:
        if paths:
            guards = [e for p in paths for e in p.exe.graph.nodes if isinstance(e, Guard)]
            where = "; ".join(_guard_text(g) for g in guards[-3:])
            return f"another path: none of {len(paths)} held ({where})"
        if not self._paths or len(self._paths) == 1:
            return "first call"
        return f"new signature: {', '.join(f'{d}{list(s)}' for s, d in key[4])}"

    def explain(self) -> str:
        """Why each compilation happened, one line each."""
        lines = [f"{k}. {r}" for k, r in enumerate(self._reasons, 1)]
        return "\n".join([f"jit({self.__name__}): {self._misses} compilations", *lines])

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph that serves these arguments."""
        _, arrays, call = self._split(args, kwargs)
        path, outer = self._compile(arrays, call)
        if outer:
            raise TransformError(
                "jit: graph() needs a function that closes over no outer transform"
            )
        return path.exe.graph

    def show(self, *args: Any, **kwargs: Any) -> str:
        """The graph that serves these arguments, as readable Python."""
        return str(self.graph(*args, **kwargs))


def _axes_text(varying: set[tuple[int, int]]) -> str:
    return ", ".join(f"axis {a} of array {i}" for i, a in sorted(varying))


def _first(values: list[Any]) -> Any:
    return values[0]


def _guard_text(g: Guard) -> str:
    return f"{g.text} at {g.site}" if g.site else g.text


def _is_array(x: Any) -> bool:
    return isinstance(x, Tensor | np.ndarray | np.generic)


def _static(x: Any) -> tuple[type, Any]:
    """What a static value is told apart by: 1, 1.0 and True are equal and 0.0 is -0.0, but they
    compute differently; NaN is not even equal to itself.
    """
    return type(x), repr(x) if isinstance(x, float | complex) else x


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, int | str) else tuple(x)


def jit(
    fun: Callable[..., Any],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    dynamic: Literal["auto", False] = "auto",
    fullgraph: bool = False,
) -> Compiled:
    """fun, captured to a graph and compiled; the same results as fun, faster.

    Args: fun: a pure function of pytrees. Python `if`, `while`, `int()`, `float()` on values work:
    each decision is remembered, and another decision compiles another path. static_argnums,
    static_argnames: arguments that are part of the signature whole; they must hash. dynamic: "auto"
    makes an axis symbolic once its length has changed, False compiles for every length. fullgraph:
    more than 8 paths for one signature are an error; otherwise the function itself is called then.
    Returns: a callable with `.graph(*args)`, `.show(*args)`, `.explain()`, `.cache_info()`,
    `.clear_cache()`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> f = ft.jit(lambda x: x * 2.0 if xp.sum(x) > 0 else -x)
        >>> f(xp.asarray([1.0])).tolist(), f(xp.asarray([-1.0])).tolist()
        ([2.0], [1.0])
        >>> f.cache_info().misses
        2
    """
    return Compiled(fun, static_argnums, static_argnames, dynamic, fullgraph)
