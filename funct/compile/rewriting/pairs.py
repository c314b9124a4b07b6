"""Complex numbers as pairs of real ones, for loops, which know no others.

Each complex array of a graph is two real ones, of its shape; where it comes from outside or goes
there it is one with a last axis of two, which is how it lies in memory. So a program takes it by
its address, and a loop carries it, as it is.

How an op is written is in `pair_rules.py`. One without a rule leaves the graph as it is, or, as an
island, takes complex arrays that look at both parts, and gives such; what a library computes of
complex numbers takes them as they lie in memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from funct.array import Array, asarray
from funct.compile.joins import is_concat
from funct.compile.loops.views import VIEWS
from funct.compile.rewriting.new_nodes import NewNodes
from funct.compile.rewriting.pair_rules import PRODUCTS, REAL, RULES, NoPairs, Parts
from funct.core import Primitive, lookup, variant
from funct.graph import Control, Graph, Node, Var, eliminate_dead
from funct.kernels.elementwise.functions import complex_of

__all__ = ["Pairs", "complexes", "floats", "in_pairs"]

_ELEMENTS = frozenset({"add", "subtract", "negative", "where"})
_EACH = frozenset({"reduce_sum", "embed", "take", *_ELEMENTS, *VIEWS})

_TRANSFORMS = {"fft": (False, True), "real_fft": (False,), "hermitian_fft": (True,)}  # inverse
_TO_COMPLEX = frozenset({"eig", "eigvals", "real_fft"})  # of real numbers
_MATRICES = frozenset({
    "cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "lu", "qr", "slogdet",
    "solve", "solve_triangular", "svd", "svdvals",
})  # fmt: skip
_SLOWER = frozenset({*PRODUCTS, *_MATRICES, *_TRANSFORMS})  # in pairs than by a library's call


def in_pairs(graph: Graph, *, islands: Callable[[Any], bool] | None = None) -> Graph | None:
    """The graph without complex numbers; itself if it has none, None where an op is in the way.

    islands: ops in the way stay, if others do not; so do products of matrices, which are four each,
    and transforms, of which loops take small ones. It says which control flow and which transforms
    are part of a program: the rest is called with complex arrays.
    """
    nodes = [e for e in graph.nodes if isinstance(e, Node)]
    held = [*graph.inputs, *[v for v, _ in graph.constants]]
    if not any(v.dtype in REAL for v in (*held, *[v for e in nodes for v in e.results])):
        return graph
    if len(nodes) < len(graph.nodes):
        return None
    try:
        return Pairs(graph, islands).run()
    except NoPairs:
        return None


def floats(x: Any) -> Any:
    """A complex array as a real one with a last axis of two, any other array as it is."""
    x = np.asarray(x)
    real = REAL.get(x.dtype)
    return x if real is None else np.ascontiguousarray(x).reshape(x.shape)[..., None].view(real)


def complexes(x: Any) -> Any:
    """A real array with a last axis of two as a complex one."""
    if x.strides[-1] != x.itemsize:  # one number that stands for both parts, broadcast
        x = np.ascontiguousarray(x)
    return x.view(np.result_type(x.dtype, np.complex64))[..., 0]


class Pairs(NewNodes):
    """One walk over the nodes."""

    prefix = "z"

    def __init__(self, graph: Graph, islands: Callable[[Any], bool] | None) -> None:
        super().__init__(graph)
        self.islands = islands
        self.afloat = islands is None  # whether an op is done in pairs
        self.whole: dict[Var, Var] = {}  # with a last axis of two
        self.parts: dict[Var, Parts] = {}
        self.dtype: np.dtype[Any] | None = None  # of the parts that the node at hand gives
        self.wider: dict[tuple[Var, np.dtype[Any]], Var] = {}

    def run(self) -> Graph:
        """Rewrite."""
        graph = self.graph
        inputs = [self._outer(v) for v in graph.inputs]
        for v, x in graph.constants:
            if v.dtype in REAL:
                held = asarray(floats(x.data))
                assert isinstance(held, Array)
                del self.constants[v]
                self.constants[self._outer(v)] = held
        for e in graph.nodes:
            assert isinstance(e, Node), "a graph with guards has no pairs"
            self.site = e.site
            if not any(v.dtype in REAL for v in (*_vars(e), *e.results)):
                self.keep(e)
            elif isinstance(e.primitive, Control) and self.islands and not self.islands(e):
                self._island(e)
            elif isinstance(e.primitive, Control):
                given = [self._joined(v) if isinstance(v, Var) else v for v in e.operands]
                results = tuple([self._outer(v) for v in e.results])
                self.keep(attrs.evolve(e, operands=tuple(given), results=results))
            else:
                self._node(e)
        if not self.afloat:
            raise NoPairs
        outputs = tuple([self._joined(v) for v in graph.outputs])
        found = attrs.evolve(
            graph, inputs=tuple(inputs), nodes=tuple(self.nodes), outputs=outputs,
            constants=tuple(self.constants.items()),
        )  # fmt: skip
        return eliminate_dead(found, guards=False) if self.islands else found

    # What is whole, and its parts

    def _outer(self, v: Var) -> Var:
        """What stands for a Var where it comes from outside."""
        if v.dtype not in REAL:
            return v
        return self.whole.setdefault(v, self.var((*v.shape, 2), REAL[v.dtype]))

    def _joined(self, v: Var) -> Var:
        """The same, of one that is made here."""
        if v.dtype in REAL and v not in self.whole:
            shape = (*v.shape, 1)
            both = [self.reshape(self.array(x, v), shape) for x in self.parts[v]]
            self.concat(both, len(v.shape), self._outer(v))
        return self._outer(v)

    def array(self, x: Any, v: Var) -> Var:
        """A part of v that may be a number, as an array."""
        if isinstance(x, Var) and x.shape == v.shape and x.dtype == REAL[v.dtype]:
            return x
        if isinstance(x, Var):
            x = self.apply("astype", (x,), (REAL[v.dtype],), x.shape, REAL[v.dtype])
            return self.apply("broadcast_to", (x,), (v.shape,), v.shape, x.dtype)
        one = self.constant(np.asarray(x, REAL[v.dtype]))
        return self.apply("broadcast_to", (one,), (v.shape,), v.shape, one.dtype)

    def of(self, a: Any) -> Parts:
        """The parts of an operand, in the precision of the result if that is complex. What is real
        has 0 beside it, as NumPy makes it.
        """
        if not isinstance(a, Var):
            return float(a.real), float(a.imag)
        if a.dtype not in REAL:
            return self._as_wide(a), 0.0
        if a not in self.parts:
            self.parts[a] = self._part(a, 0), self._part(a, 1)
        re, im = self.parts[a]
        return self._as_wide(re), self._as_wide(im)

    def _as_wide(self, x: Any) -> Any:
        dtype = self.dtype
        if not isinstance(x, Var) or dtype is None or x.dtype == dtype:
            return x
        if (x, dtype) not in self.wider:
            self.wider[x, dtype] = self.apply("astype", (x,), (dtype,), x.shape, dtype)
        return self.wider[x, dtype]

    def _part(self, v: Var, k: int) -> Var:
        return self.reshape(self.along(self.whole[v], len(v.shape), k, k + 1), v.shape)

    # Ops

    def _node(self, e: Node) -> None:
        try:
            self._in_pairs(e)
        except NoPairs:
            if not self.islands:
                raise
            self._island(e)

    def _in_pairs(self, e: Node) -> None:
        if self.islands and e.name in _SLOWER and not self._is_held(e):
            raise NoPairs
        if e.name in _MATRICES or (e.name in _TRANSFORMS and e.params[-2] in _TRANSFORMS[e.name]):
            self._library(e)
            return
        if len(e.results) != 1:
            raise NoPairs
        out = e.results[0]
        self.dtype = REAL.get(out.dtype)
        if is_concat(e) or e.name in _EACH:
            self.parts[out] = self._each(e)
            self.afloat |= e.name not in VIEWS
            return
        how = RULES.get(e.name)
        if how is None:
            raise NoPairs
        found = how(self, e)
        if out.dtype not in REAL and not isinstance(found, Var):
            raise NoPairs
        self.afloat = True
        if out.dtype in REAL:
            self.parts[out] = found
        else:
            self.made_by[out] = last = self.made_by[found]
            self.nodes[self.nodes.index(last)] = attrs.evolve(last, results=(out,))

    def _is_held(self, e: Node) -> bool:
        """Whether a program holds a transform of pairs, as it does of many lines."""
        (x, *_), real = e.operands, e.name == "real_fft"
        if self.islands is None or e.name not in _TRANSFORMS or not isinstance(x, Var):
            return False
        if (x.dtype in REAL) is real:
            return False
        given, *results = [
            Var(v.name, (*v.shape, 2), REAL[v.dtype]) if v.dtype in REAL else v
            for v in (x, *e.results)
        ]
        return self.islands(Node(_of_pairs(e.name, real), (given,), e.params, tuple(results)))

    def _library(self, e: Node) -> None:
        """What a library computes of complex numbers as they lie in memory."""
        real = e.name in _TO_COMPLEX and e.operands[0].dtype not in REAL  # type: ignore[union-attr]
        if any(not isinstance(x, Var) or (x.dtype in REAL) is real for x in e.operands):
            raise NoPairs
        given = tuple([self._joined(x) for x in e.operands if isinstance(x, Var)])
        results = tuple([self._outer(v) for v in e.results])
        self.keep(Node(_of_pairs(e.name, real), given, e.params, results, e.site))

    def _island(self, e: Node) -> None:
        """The op of complex arrays, which look at both parts of each number; so do its results."""
        given: list[Any] = []
        for a in e.operands:
            if isinstance(a, Var) and a.dtype in REAL:
                looking = self.var(a.shape, a.dtype)
                self.keep(Node(_look("complexes"), (self._joined(a),), (), (looking,), self.site))
                a = looking
            given.append(a)
        self.keep(attrs.evolve(e, operands=tuple(given)))
        for v in e.results:
            if v.dtype in REAL:
                self.keep(Node(_look("floats"), (v,), (), (self._outer(v),), self.site))

    def _each(self, e: Node) -> Parts:
        """The op of the real parts, and of the others; conditions and indices count for both."""
        dtype, out = REAL[e.results[0].dtype], e.results[0]
        apart = [
            isinstance(a, Var) and a.dtype.kind in "biu" and e.name in ("where", "take")
            and k == ("where", "take").index(e.name) for k, a in enumerate(e.operands)
        ]  # fmt: skip
        both = [(a, a) if same else self.of(a) for a, same in zip(e.operands, apart, strict=True)]
        if e.name not in _ELEMENTS:
            both = [
                tuple([self.array(x, a) for x in p])  # type: ignore[misc]
                if isinstance(a, Var) and not same and a.dtype in REAL else p
                for a, p, same in zip(e.operands, both, apart, strict=True)
            ]  # fmt: skip
            if any(not isinstance(x, Var) for p in both for x in p):
                raise NoPairs
        found = []
        for k in (0, 1):
            given = tuple([p[k] for p in both])
            shapes = [x.shape for x in given if isinstance(x, Var)]
            if not shapes:
                raise NoPairs
            # a number in the place of a real array does not broadcast
            shape = np.broadcast_shapes(*shapes) if e.name in _ELEMENTS else out.shape
            result = self.var(shape, dtype)
            self.keep(Node(e.primitive, given, e.params, (result,), e.site))
            if shape != out.shape:
                result = self.apply("broadcast_to", (result,), (out.shape,), out.shape, dtype)
            found.append(result)
        return found[0], found[1]

    def of_reals(self, name: str, *given: Any, like: Var) -> Any:
        """An op of parts in the shape and the precision of `like`; of numbers a number."""
        if not any(isinstance(x, Var) for x in given):
            primitive = _fma() if name == "fma" else lookup(name)
            assert primitive is not None
            return np.asarray(primitive.raw(*given)).item()
        dtype = REAL.get(like.dtype, like.dtype)
        shapes = [x.shape for x in given if isinstance(x, Var)]
        shape = np.broadcast_shapes(*shapes)
        if name != "fma":
            return self.apply(name, given, (), shape, dtype)
        out = self.var(shape, dtype)
        self.keep(Node(_fma(), given, (), (out,), self.site))
        return out

    def along(self, v: Var, axis: int, start: int, stop: int) -> Var:
        """A stretch of an axis."""
        index: list[tuple[int | None, int | None, int]] = [(None, None, 1)] * len(v.shape)
        index[axis] = (start, stop, 1)
        shape = (*v.shape[:axis], stop - start, *v.shape[axis + 1 :])
        return self.apply("slice_", (v,), (tuple(index),), shape, v.dtype)

    def mask(self, name: str, *given: Any) -> Var:
        """An op that gives truth values."""
        shape = np.broadcast_shapes(*[x.shape for x in given if isinstance(x, Var)])
        return self.apply(name, given, (), shape, bool)

    def is_zero(self, v: Var) -> Var:
        """Where an array, complex or real, is 0."""
        masks = [self.mask("equal", x, 0.0) for x in self.of(v) if isinstance(x, Var)]
        return masks[0] if len(masks) == 1 else self.mask("logical_and", *masks)

    def function(self, name: str, x: Parts, like: Var) -> Parts:
        """A function of complex numbers that loops print, in the shape of `like`."""
        given = [v for v in x if isinstance(v, Var)]
        if not given:
            raise NoPairs
        shape = np.broadcast_shapes(*[v.shape for v in given])
        parts = [self.var(shape, REAL[like.dtype]) for _ in x]
        for k, out in enumerate(parts):
            self.keep(Node(_part(name, k), x, (), (out,), self.site))
        return parts[0], parts[1]


def _vars(e: Node) -> list[Var]:
    return [v for v in e.operands if isinstance(v, Var)]


@functools.cache
def _fma() -> Primitive:
    """x * y + z, rounded once."""
    multiply = lookup("multiply")
    assert multiply is not None
    changes: Any = {"operands": ("x", "y", "z"), "raw": _fused}
    return variant(multiply, "fma", _fused, **changes)


def _fused(x: Any, y: Any, z: Any) -> Any:
    return x * y + z


@functools.cache
def _look(name: str) -> Primitive:
    """Complex numbers as pairs, or pairs as complex numbers, which lie in memory as they do."""
    real = lookup("stop_gradient")
    assert real is not None
    raw = {"floats": floats, "complexes": complexes}[name]
    return variant(real, f"as_{name}", raw, raw=raw)


@functools.cache
def _of_pairs(name: str, real: bool) -> Primitive:
    """An op whose complex arrays are real ones with a last axis of two; real: operands are not."""
    whole = lookup(name)
    assert whole is not None
    count = 0 if real else len(whole.operands)

    def raw(*given: Any) -> Any:
        y = whole.raw(*[complexes(x) for x in given[:count]], *given[count:])
        return tuple(map(floats, y)) if isinstance(y, tuple) else floats(y)

    return variant(whole, f"{name}_{'to' if real else 'of'}_pairs", raw, raw=raw)


@functools.cache
def _part(name: str, k: int) -> Primitive:
    """The real part of a function of complex numbers, or the other, of both parts."""
    hypot, function = lookup("hypot"), lookup(name)
    assert hypot is not None
    assert function is not None

    def part(a: Any, b: Any) -> Any:
        z = function.raw(complex_of(a, b))
        return z.imag if k else z.real

    changes: Any = {"operands": ("a", "b"), "raw": part}
    return variant(hypot, f"{name}_part{k}", part, **changes)
