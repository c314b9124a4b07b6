"""jit: capture once per signature and path, then run the compiled graph.

Every result, the first one too, comes from the compiled graph. A decision that Python takes on a
value is a guard; a run in which it does not hold compiles that path as well; when a signature has
too many paths the function is called in compiled segments, or as it is: slower and never wrong. A
compiled graph is an op of its own: its derivative is two compiled graphs, and theirs are four.

Python numbers, strings and other leaves that are no arrays are part of the signature, and so are
sizes at first; an axis whose length changes becomes symbolic, and one path serves every length of
it, unless the function itself makes a number of the length. Numbers that vary are kept open, and
one path serves any (`numbered.py`); those that the function needs to know are handed to code that
is there (`resized.py`).
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, Literal, NamedTuple

from numpy import bool_, ndarray

from funct import pytree
from funct.array import Array
from funct.compile import MISS, show_assembly, show_llvm, show_loops
from funct.errors import ArgumentError, TransformError
from funct.graph import Graph, approximate, optimize
from funct.ops.fast import make, wrap
from funct.transforms.compiled.arguments import is_array, positions, resolved
from funct.transforms.compiled.backends import Backend, compiler
from funct.transforms.compiled.calls import Calls
from funct.transforms.compiled.compared import compare_results, comparing
from funct.transforms.compiled.donation import check_donation, give_away
from funct.transforms.compiled.executable import Executable
from funct.transforms.compiled.lowered import Lowered, Ready
from funct.transforms.compiled.purity import check_pure
from funct.transforms.compiled.table import Table
from funct.transforms.given import expect_functions
from funct.transforms.recipes import by_name
from funct.transforms.tape.nodes import ReverseTracer

__all__ = ["CacheInfo", "Compiled", "jit"]

_ARRAYS = frozenset({Array})
_TAPED = frozenset({Array, ReverseTracer})


class CacheInfo(NamedTuple):
    """hits: calls served by a compiled path; misses: compilations; paths: kept now."""

    hits: int
    misses: int
    paths: int


class Compiled(Calls):
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
        fast: bool = False,
    ) -> None:
        expect_functions("jit", fun=fun)
        if dynamic not in ("auto", True, False):
            raise ArgumentError(f"jit: dynamic must be 'auto', True or False, got {dynamic!r}")
        for option, given in (("fullgraph", fullgraph), ("fast", fast)):
            if not isinstance(given, bool | bool_):
                raise ArgumentError(f"jit: {option} must be True or False, got {given!r}")
        self.fun = fun
        self.dynamic = dynamic
        self.fullgraph = fullgraph
        self.mode = mode
        self.backend = backend
        self.fast = fast
        self.static_argnums = _as_tuple("static_argnums", static_argnums, int)
        self.static_argnames = _as_tuple("static_argnames", static_argnames, str)
        self.donate_argnums = _as_tuple("donate_argnums", donate_argnums, int)
        self.static_argnums, self.static_argnames, self.donate_argnums = resolved(
            fun, self.static_argnums, self.static_argnames, self.donate_argnums
        )
        both = set(self.static_argnums) & set(self.donate_argnums)
        if both:
            raise ArgumentError(f"jit: argument {min(both)} cannot be static and donated")
        self.__name__ = getattr(fun, "__name__", "fun")
        self.__module__ = getattr(fun, "__module__", None) or __name__
        self.__qualname__ = getattr(fun, "__qualname__", self.__name__)
        self.__doc__ = getattr(fun, "__doc__", None)
        self.__wrapped__ = fun
        self._compile_graph = compiler(mode, backend, fast)
        if mode == "check":
            self._compile_graph = comparing(self.__name__, self._compile_graph)
        self._static = bool(self.static_argnums or self.static_argnames)
        self._special = self._static or bool(self.donate_argnums) or mode == "check"
        self.clear_cache()

    def clear_cache(self) -> None:
        """Forget every compiled path."""
        self._begin(Table(
            self.fun, self.__name__, self._compile_graph, self.dynamic, self.fullgraph,
            self.donate_argnums, self.mode == "reduce-overhead", self.backend is None,
            self.mode != "check",
        ))  # fmt: skip
        self._donated: tuple[pytree.Structure, tuple[bool, ...]] | None = None

    def cache_info(self) -> CacheInfo:
        """Hits, misses (compilations) and paths kept."""
        table = self._table
        return CacheInfo(table.calls(), table.misses, len(table.all_paths()))

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        found = by_name(self)
        if found is not None:
            return found
        options = (
            self.static_argnums, self.static_argnames, self.donate_argnums, self.dynamic,
            self.fullgraph, self.mode, self.backend, self.fast,
        )  # fmt: skip
        return _made, (self.fun, *options)

    # calls ----------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        front = self._front
        if front is not None and not kwargs:  # arrays alone, as before: no pytree work
            entry, raw, path = front
            if not path.watched or path.current():
                try:
                    out = entry(*args)
                    if raw is not None and out is not None:
                        out = raw(*out)
                except Exception as error:
                    path.exe.raise_located(error, args)
                if out is not None and out is not MISS:
                    if raw is None:
                        return out if path.single else path.rebuild(out)
                    self._table.hits += 1
                    if not path.single:
                        return path.rebuild([wrap(d) for d in out])
                    (d,) = out
                    if d.__class__ is not ndarray:
                        return wrap(d)
                    r = make(None)
                    r.data = d
                    return r
        if self._special:
            if self.mode == "check":
                return self._checked(args, kwargs)
            if self.donate_argnums:
                return self._donating(args, kwargs)
            return self._mixed(args, kwargs)
        if kwargs:
            return self._trees((args, kwargs), (), args, kwargs)
        kinds = {a.__class__ for a in args}
        if not kinds <= _ARRAYS:
            if kinds <= _TAPED:
                return self._on_tape(args)
            return self._trees(args, (), args, kwargs)
        raws = [a.data for a in args]
        key = tuple([(d.shape, d.dtype) for d in raws])
        served = self._served(self._table.exact.get(key), raws)
        if served is None:
            return self._general(args, kwargs, key)
        self._front, out = served
        return out

    def _donating(self, args: Any, kwargs: Any) -> Any:
        """The result; then the arrays of donated arguments are gone."""
        name, (leaves, given) = f"jit({self.__name__})", self._given(args, kwargs)
        check_donation(name, leaves, given)
        before = self._before
        try:
            out = self._mixed(args, kwargs)
        except Exception:
            if before is not None and before.front.may_begin(leaves):
                give_away(name, compress(leaves, given))
            raise
        give_away(name, compress(leaves, given), pytree.leaves(out))
        return out

    def _given(self, args: Any, kwargs: Any) -> tuple[list[Any], Sequence[bool]]:
        """The leaves of a call, and which of them are donated."""
        both: Any = args, kwargs
        if self._donated is not None and self._follows:
            spec, given = self._donated
            try:
                leaves = spec.flatten_up_to(both)
            except (ValueError, TypeError, RecursionError):
                self._follows = False  # as in `_trees`
            else:  # where a leaf was, there may be more of a structure now
                if {x.__class__ for x in leaves} == {Array}:
                    return leaves, given
        leaves, spec = pytree.flatten(both)
        at = positions(self.donate_argnums, len(args))
        mine = [i in at for i, a in enumerate(args) for _ in pytree.leaves(a)]
        given = tuple(mine + [False] * (len(leaves) - len(mine)))
        self._donated = spec, given
        return leaves, given

    def _checked(self, args: Any, kwargs: Any) -> Any:
        """The compiled result, after it was compared with eager execution."""
        given = self._split(args, kwargs)
        known = self._table.misses
        out = self._general(args, kwargs, None)
        path = self._table.serving(given)
        if all(x.__class__ is Array for x in given.arrays):
            if self._table.misses > known:
                given.call.__wrapped__ = self.fun  # type: ignore[attr-defined]
                given.call.__name__ = self.__name__
                check_pure(given.call, *given.arrays)
            if path is not None:
                eager = [x for x in pytree.leaves(given.call(*given.arrays)) if is_array(x)]
                ours = [x for x in pytree.leaves(out) if is_array(x)]
                compare_results(self.__name__, path.exe.graph, given.arrays, ours, eager)
        if self.donate_argnums:
            at = positions(self.donate_argnums, len(args))
            leaves = pytree.leaves([a for i, a in enumerate(args) if i in at])
            give_away(f"jit({self.__name__})", leaves)
        return out

    # looking at it --------------------------------------------------------------------------------

    def explain(self) -> str:
        """Why each compilation happened, one line each: which argument was new, or which decision
        of the function went another way, with the line it stands on; then why ops share no loops
        with others, each with its line.
        """
        said = self._table.explain()
        return f"{said}\nfunctions are approximated: fast=True" if self.fast else said

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The function captured for these arguments: `.graph`, `.as_text()`, `.compile()`.

        Raises: TransformError: for a function that closes over values of an outer transform.
        """
        given = self._split(args, kwargs)
        found = self._table.capture(given)
        if found.outer:
            raise TransformError("jit: graph() of a function that closes over an outer transform")
        graph = optimize(approximate(found.graph) if self.fast else found.graph)

        def make() -> Ready:
            exe = Executable(found.graph, compile=self._compile_graph).ready()
            return Ready(self.__name__, graph, exe, given.key, found.rebuild, self._split)

        return Lowered(self.__name__, graph, make)

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph that serves these arguments."""
        return self.lower(*args, **kwargs).graph

    def show(self, *args: Any, form: str = "loops", **kwargs: Any) -> str:
        """What serves these arguments, for people.

        Args: form: "loops": the function that a call runs and the loops of its kernels, as readable
        Python, after that of NumPy calls where those serve first; "llvm" and "assembly": the
        kernels' code; "graph": what all of it was made from.
        """
        if form not in _FORMS:
            raise ArgumentError(f"show: form must be one of {', '.join(_FORMS)}, got {form!r}")
        graph = self.graph(*args, **kwargs)
        return show_loops(graph, self.mode) if form == "loops" else _FORMS[form](graph)


_FORMS: dict[str, Callable[[Graph], str]] = {
    "graph": str, "loops": show_loops, "llvm": show_llvm, "assembly": show_assembly,
}  # fmt: skip


def _made(fun: Any, *options: Any) -> Compiled:
    """What `Compiled.__reduce__` took apart."""
    return Compiled(fun, *options)


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
    fast: bool = False,
) -> Compiled:
    """fun, captured to a graph and compiled; the same results as fun, faster.

    Args: fun: a pure function of pytrees. Python `if`, `while`, `int()`, `float()` on values work:
    each decision is remembered, and another decision compiles another path. What fun reads
    without being given it, and attributes of objects among its arguments, is looked at before each
    call. NumPy arrays are compared with what they held: a large one is better made an array of
    funct's, which nobody can write into. static_argnums, static_argnames: arguments that are part
    of the signature whole; they must hash. donate_argnums: arguments whose memory the results may
    use; their arrays cannot be used again. dynamic: "auto"
    makes an axis symbolic once its length has changed, True from the start, False compiles for
    every length. fullgraph: more than 8 paths for one signature are an error, and so are bodies of
    loops and branches that ask for values; otherwise the function is called in compiled segments
    then, or as it is. mode: "reduce-overhead" makes
    machine code of everything, and keeps scratch memory and spare results between calls;
    "max-autotune" measures machine code and NumPy calls on the arrays of the first call and keeps
    the faster, on disk as well (with `config.deterministic`: machine code); "check" compares every
    result with eager execution, node by node, and looks for side effects. backend: a function
    from `Graph` to a function of arrays, or to a graph that is compiled as usual, as passes give
    it; or the name of a registered one. fast: cos, erf, exp, exp2, logaddexp, powers by a number
    that is no integer, sigmoid, sin and tanh may err by up to 7 ulp, and more where arguments are
    large, in this function's derivatives as well; results below the least normal number are 0
    (`funct/kernels/llvm/fast.py` says what holds for each).
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
    options = static_argnums, static_argnames, donate_argnums, dynamic, fullgraph, mode, backend
    return Compiled(fun, *options, fast)
