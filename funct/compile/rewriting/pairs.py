"""Complex numbers as pairs of real ones, for loops, which know no others.

Each complex array of a graph is two real ones, of its shape; where it comes from outside or goes
there it is one with a last axis of two, which is how it lies in memory. So a program takes it by
its address, and a loop carries it, as it is.

Products are fused as NumPy's are where the processor can; quotients are Smith's; functions are
those of `kernels/llvm/complexes.py`, of which loops print each part. An op that is not here, or not
known to have NumPy's values for infinities too, leaves the graph as it is, or, as an island, takes
complex arrays that look at both parts, and gives such.
"""

from __future__ import annotations

import cmath
import functools
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from funct.array import Array, asarray
from funct.compile.joins import is_concat
from funct.compile.loops.views import VIEWS
from funct.compile.rewriting.new_nodes import NewNodes
from funct.core import Primitive, lookup, variant
from funct.graph import Control, Graph, Node, Var, eliminate_dead
from funct.kernels.elementwise import complex_of
from funct.kernels.llvm.complexes import COMPLEX

__all__ = ["complexes", "floats", "in_pairs"]

Parts = tuple[Any, Any]  # Vars, or numbers

_REAL = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(float)}
_MOST_FACTORS = 100  # of powers; NumPy's bound
_EACH = frozenset({"add", "subtract", "negative", "reduce_sum", "embed", "where", "take", *VIEWS})

_TRANSFORMS = {"fft": (False, True), "real_fft": (False,), "hermitian_fft": (True,)}  # inverse
_SLOWER = frozenset({"matmul", *_TRANSFORMS})  # in pairs than by a library's call


def in_pairs(graph: Graph, *, islands: bool = False) -> Graph | None:
    """The graph without complex numbers; itself if it has none, None where an op is in the way.

    islands: ops in the way stay, if others do not; so do products of matrices, which are four each,
    and transforms, of which loops take small ones.
    """
    nodes = [e for e in graph.nodes if isinstance(e, Node)]
    held = [*graph.inputs, *[v for v, _ in graph.constants]]
    if not any(v.dtype in _REAL for v in (*held, *[v for e in nodes for v in e.results])):
        return graph
    if len(nodes) < len(graph.nodes):
        return None
    try:
        return _Pairs(graph, islands).run()
    except _NoPairs:
        return None


def floats(x: Any) -> Any:
    """A complex array as a real one with a last axis of two, any other array as it is."""
    x = np.asarray(x)
    real = _REAL.get(x.dtype)
    return x if real is None else np.ascontiguousarray(x).reshape(x.shape)[..., None].view(real)


def complexes(x: Any) -> Any:
    """A real array with a last axis of two as a complex one."""
    return x.view(np.result_type(x.dtype, np.complex64))[..., 0]


class _NoPairs(Exception):  # noqa: N818
    """An op of complex numbers is not known here."""


class _Pairs(NewNodes):
    """One walk over the nodes."""

    prefix = "p"

    def __init__(self, graph: Graph, islands: bool) -> None:
        super().__init__(graph)
        self.islands = islands
        self.afloat = not islands  # whether an op is done in pairs
        self.whole: dict[Var, Var] = {}  # with a last axis of two
        self.parts: dict[Var, Parts] = {}

    def run(self) -> Graph:
        """Rewrite."""
        graph = self.graph
        inputs = [self._outer(v) for v in graph.inputs]
        for v, x in graph.constants:
            if v.dtype in _REAL:
                held = asarray(floats(x.data))
                assert isinstance(held, Array)
                del self.constants[v]
                self.constants[self._outer(v)] = held
        for e in graph.nodes:
            assert isinstance(e, Node), "a graph with guards has no pairs"
            self.site = e.site
            if not any(v.dtype in _REAL for v in (*_vars(e), *e.results)):
                self.keep(e)
            elif isinstance(e.primitive, Control):
                given = [self._joined(v) if isinstance(v, Var) else v for v in e.operands]
                results = tuple([self._outer(v) for v in e.results])
                self.keep(attrs.evolve(e, operands=tuple(given), results=results))
            else:
                self._node(e)
        if not self.afloat:
            raise _NoPairs
        outputs = tuple([self._joined(v) for v in graph.outputs])
        found = attrs.evolve(
            graph, inputs=tuple(inputs), nodes=tuple(self.nodes), outputs=outputs,
            constants=tuple(self.constants.items()),
        )  # fmt: skip
        return eliminate_dead(found, guards=False) if self.islands else found

    # What is whole, and its parts

    def _outer(self, v: Var) -> Var:
        """What stands for a Var where it comes from outside."""
        if v.dtype not in _REAL:
            return v
        return self.whole.setdefault(v, self.var((*v.shape, 2), _REAL[v.dtype]))

    def _joined(self, v: Var) -> Var:
        """The same, of one that is made here."""
        if v.dtype in _REAL and v not in self.whole:
            shape = (*v.shape, 1)
            both = [self.reshape(self._array(x, v), shape) for x in self.parts[v]]
            self.concat(both, len(v.shape), self._outer(v))
        return self._outer(v)

    def _array(self, x: Any, v: Var) -> Var:
        """A part of v that may be a number, as an array."""
        if isinstance(x, Var) and x.shape == v.shape and x.dtype == _REAL[v.dtype]:
            return x
        if isinstance(x, Var):
            x = self.apply("astype", (x,), (_REAL[v.dtype],), x.shape, _REAL[v.dtype])
            return self.apply("broadcast_to", (x,), (v.shape,), v.shape, x.dtype)
        one = self.constant(np.asarray(x, _REAL[v.dtype]))
        return self.apply("broadcast_to", (one,), (v.shape,), v.shape, one.dtype)

    def _of(self, a: Any) -> Parts:
        """The parts of an operand. What is real has 0 beside it, as NumPy makes it."""
        if not isinstance(a, Var):
            return float(a.real), float(a.imag)
        if a.dtype not in _REAL:
            return a, 0.0
        if a not in self.parts:
            self.parts[a] = self._part(a, 0), self._part(a, 1)
        return self.parts[a]

    def _part(self, v: Var, k: int) -> Var:
        return self.reshape(self.along(self.whole[v], len(v.shape), k, k + 1), v.shape)

    # Ops

    def _node(self, e: Node) -> None:
        try:
            self._in_pairs(e)
        except _NoPairs:
            if not self.islands:
                raise
            self._island(e)

    def _in_pairs(self, e: Node) -> None:
        if len(e.results) != 1 or (self.islands and e.name in _SLOWER):
            raise _NoPairs
        out = e.results[0]
        if e.name in _TRANSFORMS and e.params[-2] in _TRANSFORMS[e.name]:
            self._transform(e)
            return
        if is_concat(e) or e.name in _EACH:
            self.parts[out] = self._each(e)
            self.afloat |= e.name not in VIEWS
            return
        how = _OPS.get(e.name)
        if how is None:
            raise _NoPairs
        found = how(self, e)
        if out.dtype not in _REAL and not isinstance(found, Var):
            raise _NoPairs
        self.afloat = True
        if out.dtype in _REAL:
            self.parts[out] = found
        else:
            self.made_by[out] = last = self.made_by[found]
            self.nodes[self.nodes.index(last)] = attrs.evolve(last, results=(out,))

    def _transform(self, e: Node) -> None:
        (x,), (out,) = e.operands, e.results
        if not isinstance(x, Var) or (x.dtype in _REAL) is (e.name == "real_fft"):
            raise _NoPairs
        self.keep(
            Node(_of_pairs(e.name), (self._joined(x),), e.params, (self._outer(out),), e.site)
        )

    def _island(self, e: Node) -> None:
        """The op of complex arrays, which look at both parts of each number; so do its results."""
        given: list[Any] = []
        for a in e.operands:
            if isinstance(a, Var) and a.dtype in _REAL:
                looking = self.var(a.shape, a.dtype)
                self.keep(Node(_look("complexes"), (self._joined(a),), (), (looking,), self.site))
                a = looking
            given.append(a)
        self.keep(attrs.evolve(e, operands=tuple(given)))
        for v in e.results:
            if v.dtype in _REAL:
                self.keep(Node(_look("floats"), (v,), (), (self._outer(v),), self.site))

    def _each(self, e: Node) -> Parts:
        """The op of the real parts, and of the others; conditions and indices count for both."""
        dtype, out = _REAL[e.results[0].dtype], e.results[0]
        apart = [
            isinstance(a, Var) and a.dtype.kind in "biu" and e.name in ("where", "take")
            and k == ("where", "take").index(e.name) for k, a in enumerate(e.operands)
        ]  # fmt: skip
        both = [(a, a) if same else self._of(a) for a, same in zip(e.operands, apart, strict=True)]
        if e.name not in ("add", "subtract", "negative", "where"):
            both = [
                tuple([self._array(x, a) for x in p])  # type: ignore[misc]
                if isinstance(a, Var) and not same and a.dtype in _REAL else p
                for a, p, same in zip(e.operands, both, apart, strict=True)
            ]  # fmt: skip
            if any(not isinstance(x, Var) for p in both for x in p):
                raise _NoPairs
        found = []
        for k in (0, 1):
            given = tuple([p[k] for p in both])
            if any(isinstance(x, Var) for x in given):
                result = self.var(out.shape, dtype)
                self.keep(Node(e.primitive, given, e.params, (result,), e.site))
                found.append(result)
            else:
                raise _NoPairs
        return found[0], found[1]

    def of_reals(self, name: str, *given: Any, like: Var) -> Any:
        """An op of parts in the shape and the precision of `like`; of numbers a number."""
        if not any(isinstance(x, Var) for x in given):
            primitive = _fma() if name == "fma" else lookup(name)
            assert primitive is not None
            return np.asarray(primitive.raw(*given)).item()
        dtype = _REAL.get(like.dtype, like.dtype)
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
        masks = [self.mask("equal", x, 0.0) for x in self._of(v) if isinstance(x, Var)]
        return masks[0] if len(masks) == 1 else self.mask("logical_and", *masks)

    def function(self, name: str, x: Parts, like: Var) -> Parts:
        """A function of complex numbers that loops print, in the shape of `like`."""
        given = [v for v in x if isinstance(v, Var)]
        if not given:
            raise _NoPairs
        shape = np.broadcast_shapes(*[v.shape for v in given])
        parts = [self.var(shape, _REAL[like.dtype]) for _ in x]
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
def _of_pairs(name: str) -> Primitive:
    """A Fourier transform whose complex arrays are real ones with a last axis of two."""
    whole = lookup(name)
    assert whole is not None
    given, found = name != "real_fft", name != "hermitian_fft"

    def raw(x: Any, *params: Any) -> Any:
        y = whole.raw(complexes(x) if given else x, *params)
        return floats(y) if found else y

    return variant(whole, f"{name}_of_pairs", raw, raw=raw)


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


def _times(p: _Pairs, x: Parts, y: Parts, out: Var) -> Parts:
    """A product, each part of which begins with what y's two parts are for x's first."""
    (a, b), (c, d) = x, y
    re = p.of_reals("fma", a, c, p.of_reals("negative", _product(p, b, d, out), like=out), like=out)
    return re, p.of_reals("fma", a, d, _product(p, b, c, out), like=out)


def _product(p: _Pairs, x: Any, y: Any, out: Var) -> Any:
    if not isinstance(x, Var) and not isinstance(y, Var):
        return p.constant(np.asarray(x * y, _REAL[out.dtype]))
    return p.of_reals("multiply", x, y, like=out)


def _multiply(p: _Pairs, e: Node) -> Parts:
    x, y = map(p._of, e.operands)
    return _times(p, x, y, e.results[0])


def _square(p: _Pairs, e: Node) -> Parts:
    x = p._of(e.operands[0])
    return _times(p, x, x, e.results[0])


def _pow(p: _Pairs, e: Node) -> Parts:
    """Products for small whole exponents, as NumPy has them."""
    out = e.results[0]
    base, by = e.operands
    if not isinstance(base, Var) or isinstance(by, Var) or by.imag or by.real % 1:
        return _any_power(p, e)
    count = int(abs(by))
    if not by:
        return 1.0, 0.0
    if not 0 < count < _MOST_FACTORS:
        return _any_power(p, e)
    square, product = p._of(base), None
    while count:
        if count & 1:
            product = square if product is None else _times(p, product, square, out)
        count >>= 1
        square = _times(p, square, square, out) if count else square
    assert product is not None
    return product if by.real > 0 else _inverse(p, product, out)


def _any_power(p: _Pairs, e: Node) -> Parts:
    """exp(w log x). 0 to a positive power is 0, to others NaN; everything to the power 0 is 1."""
    out = e.results[0]
    base, by = e.operands
    if any(not isinstance(x, Var) and not x for x in (base, by)):
        raise _NoPairs  # a number of 0
    op = functools.partial(p.of_reals, like=out)
    w = p._of(by)
    log = p.function("log", p._of(base), out) if isinstance(base, Var) else _log(base)
    if isinstance(w[1], Var) or w[1]:
        turned = _times(p, w, log, out)
    else:
        turned = op("multiply", log[0], w[0]), op("multiply", log[1], w[0])
    raised = p.function("exp", turned, out)
    if not isinstance(base, Var):
        return raised
    none = p.is_zero(base)
    if not isinstance(by, Var):
        end: Any = 0.0 if by.real > 0 else np.nan
    else:
        rises = p.mask("greater", w[0], 0.0)
        end = op("where", rises, p.constant(np.asarray(0.0, _REAL[out.dtype])), np.nan)
    re, im = (op("where", none, end, x) for x in raised)
    if not isinstance(by, Var):
        return re, im
    whole = p.is_zero(by)
    return op("where", whole, 1.0, re), op("where", whole, 0.0, im)


def _sinc(p: _Pairs, e: Node) -> Parts:
    """sin(πx) / (πx), and 1 where x is 0."""
    out, x = e.results[0], e.operands[0]
    assert isinstance(x, Var)
    op = functools.partial(p.of_reals, like=out)
    re, im = (op("multiply", v, cmath.pi) for v in p._of(x))
    found = _quotient(p, p.function("sin", (re, im), out), (re, im), out)
    none = p.is_zero(x)
    return op("where", none, 1.0, found[0]), op("where", none, 0.0, found[1])


def _times_log(name: str) -> Callable[[_Pairs, Node], Parts]:
    """x log y, by the logarithm of that name, and 0 where x is 0 and y is a number."""

    def found(p: _Pairs, e: Node) -> Parts:
        out = e.results[0]
        x, y = e.operands
        if not isinstance(x, Var) or not isinstance(y, Var):
            raise _NoPairs
        op = functools.partial(p.of_reals, like=out)
        parts = _times(p, p._of(x), p.function(name, p._of(y), out), out)
        known = [p.mask("equal", v, v) for v in p._of(y) if isinstance(v, Var)]
        none = functools.reduce(functools.partial(p.mask, "logical_and"), known, p.is_zero(x))
        return op("where", none, 0.0, parts[0]), op("where", none, 0.0, parts[1])

    return found


def _prod(p: _Pairs, e: Node) -> Parts:
    """Of an axis its first half times its last, again and again."""
    out, x = e.results[0], e.operands[0]
    assert isinstance(x, Var)
    if 0 in x.shape:
        return 1.0, 0.0
    if p.islands and len(x.shape) - 1 not in e.params[0]:
        raise _NoPairs  # NumPy multiplies whole rows
    re, im = p._of(x)
    parts = p._array(re, x), p._array(im, x)
    for axis in e.params[0]:
        parts = _prod_along(p, parts, axis, out)
    return p.reshape(parts[0], out.shape), p.reshape(parts[1], out.shape)


def _prod_along(p: _Pairs, parts: Parts, axis: int, out: Var) -> Parts:
    left: Parts | None = None  # an odd one

    def some(start: int, stop: int) -> Parts:
        re, im = (p.along(v, axis, start, stop) for v in parts)
        return re, im

    while (n := parts[0].shape[axis]) > 1:
        if n % 2:
            last = some(n - 1, n)
            left = last if left is None else _times(p, left, last, out)
        parts = _times(p, some(0, n // 2), some(n // 2, n // 2 * 2), out)
    return parts if left is None else _times(p, parts, left, out)


def _log(x: complex) -> Parts:
    z = cmath.log(x)
    return z.real, z.imag


def _function(p: _Pairs, e: Node) -> Parts:
    return p.function(e.name, p._of(e.operands[0]), e.results[0])


def _divide(p: _Pairs, e: Node) -> Parts:
    x, y = map(p._of, e.operands)
    return _quotient(p, x, y, e.results[0])


def _quotient(p: _Pairs, x: Parts, y: Parts, out: Var) -> Parts:
    """Smith's quotient: by the ratio of the divisor's parts, the smaller to the larger."""
    (a, b), (c, d) = x, y
    op = functools.partial(p.of_reals, like=out)
    if not isinstance(c, Var):
        c = p.constant(np.asarray(c, _REAL[out.dtype]))
    size = [op("abs", x) for x in (c, d)]
    wide = p.mask("greater_equal", *size)
    large, small = op("where", wide, c, d), op("where", wide, d, c)
    ratio = op("divide", small, large)
    scale = op("divide", 1.0, op("add", large, op("multiply", small, ratio)))
    first, second = op("where", wide, a, b), op("where", wide, b, a)
    re = op("multiply", op("add", first, op("multiply", second, ratio)), scale)
    turned = op("subtract", b, op("multiply", a, ratio))
    other = op("subtract", op("multiply", b, ratio), a)
    im = op("multiply", op("where", wide, turned, other), scale)
    none = p.mask("equal", op("maximum", *size), 0.0)
    return op("where", none, op("divide", a, size[0]), re), op(
        "where", none, op("divide", b, size[0]), im
    )


def _reciprocal(p: _Pairs, e: Node) -> Parts:
    return _inverse(p, p._of(e.operands[0]), e.results[0])


def _inverse(p: _Pairs, x: Parts, out: Var) -> Parts:
    """One over the larger part and what the smaller adds to it; 0 has no ratio, and gives NaN."""
    re, im = x
    op = functools.partial(p.of_reals, like=out)
    size = [op("abs", x) for x in (re, im)]
    wide = p.mask("less_equal", *size[::-1])
    large, small = op("where", wide, re, im), op("where", wide, im, re)
    ratio = op("divide", small, large)
    total = op("add", large, op("multiply", small, ratio))
    over = op("divide", 1.0, total), op("divide", ratio, total)
    less = op("divide", -1.0, total), op("divide", op("negative", ratio), total)
    return op("where", wide, over[0], over[1]), op("where", wide, less[1], less[0])


def _sign(p: _Pairs, e: Node) -> Parts:
    """Parts over the absolute value; of one infinite part its sign, of two NaN."""
    out = e.results[0]
    parts = p._of(e.operands[0])
    op = functools.partial(p.of_reals, like=out)

    def infinite(x: Any) -> Any:
        return p.apply("isinf", (x,), (), out.shape, bool)

    size = op("hypot", *parts)
    none = p.apply("equal", (size, 0.0), (), out.shape, bool)
    far, axis = infinite(size), [infinite(x) for x in parts]
    both = p.apply("logical_and", axis, (), out.shape, bool)

    def of(x: Any, along: Any) -> Any:
        end = op("where", both, np.nan, op("where", along, op("sign", x), 0.0))
        return op("where", none, 0.0, op("where", far, end, op("divide", x, size)))

    return of(parts[0], axis[0]), of(parts[1], axis[1])


def _matmul(p: _Pairs, e: Node) -> Parts:
    out = e.results[0]
    (a, b), (c, d) = map(p._of, e.operands)

    def product(x: Any, y: Any) -> Any:
        both = isinstance(x, Var) and isinstance(y, Var)
        if both and x.dtype == y.dtype == _REAL[out.dtype]:
            return p.apply("matmul", (x, y), (), out.shape, _REAL[out.dtype])
        if both:
            raise _NoPairs
        return None

    def joined(name: str, x: Any, y: Any) -> Any:
        return x if y is None else y if x is None else p.of_reals(name, x, y, like=out)

    re = joined("subtract", product(a, c), product(b, d))
    return re, joined("add", product(a, d), product(b, c))


def _conj(p: _Pairs, e: Node) -> Parts:
    re, im = p._of(e.operands[0])
    return re, p.of_reals("negative", im, like=e.results[0])


def _absorb(p: _Pairs, e: Node) -> Any:
    """0 where the first is and the second is not finite."""
    g, h = e.operands
    if not isinstance(g, Var) or not isinstance(h, Var):
        raise _NoPairs
    out = e.results[0]
    finite = [p.mask("isfinite", x) for x in p._of(h) if isinstance(x, Var)]
    usual = functools.reduce(lambda x, y: p.mask("logical_and", x, y), finite)
    kept = p.mask("logical_or", p.mask("logical_not", p.is_zero(g)), usual)
    found = [p.of_reals("where", kept, x, 0.0, like=out) for x in p._of(h)]
    return found if out.dtype in _REAL else found[0]


def _part_of(k: int) -> Callable[[_Pairs, Node], Any]:
    def found(p: _Pairs, e: Node) -> Any:
        x = e.operands[0]
        assert isinstance(x, Var)
        return p.apply("stop_gradient", (p._array(p._of(x)[k], x),), (), x.shape, _REAL[x.dtype])

    return found


def _abs(p: _Pairs, e: Node) -> Any:
    return p.of_reals("hypot", *p._of(e.operands[0]), like=e.results[0])


def _alike(name: str) -> Callable[[_Pairs, Node], Any]:
    def found(p: _Pairs, e: Node) -> Any:
        (a, b), (c, d) = map(p._of, e.operands)
        out = e.results[0]
        both = [p.of_reals(name, *x, like=out) for x in ((a, c), (b, d))]
        joint = "logical_and" if name == "equal" else "logical_or"
        return p.of_reals(joint, *both, like=out)

    return found


def _astype(p: _Pairs, e: Node) -> Parts:
    out, x = e.results[0], e.operands[0]
    if out.dtype not in _REAL or not isinstance(x, Var):
        raise _NoPairs
    re, im = p._of(x)
    dtype = _REAL[out.dtype]
    parts = [
        p.apply("astype", (y,), (dtype,), y.shape, dtype) if isinstance(y, Var) else y
        for y in (re, im)
    ]
    return parts[0], parts[1]


def _complex_of(p: _Pairs, e: Node) -> Parts:
    return e.operands[0], e.operands[1]


def _any_part(name: str, joint: str) -> Callable[[_Pairs, Node], Any]:
    """What is asked of both parts."""

    def found(p: _Pairs, e: Node) -> Any:
        masks = [p.mask(name, x) for x in p._of(e.operands[0]) if isinstance(x, Var)]
        return functools.reduce(functools.partial(p.mask, joint), masks)

    return found


_OPS: dict[str, Callable[[_Pairs, Node], Any]] = {
    "abs": _abs, "absorb": _absorb, "astype": _astype, "complex_of": _complex_of, "conj": _conj,
    "divide": _divide, "equal": _alike("equal"), "imag": _part_of(1),
    "isfinite": _any_part("isfinite", "logical_and"), "isinf": _any_part("isinf", "logical_or"),
    "isnan": _any_part("isnan", "logical_or"), "matmul": _matmul, "multiply": _multiply,
    "not_equal": _alike("not_equal"), "pow": _pow, "real": _part_of(0), "reciprocal": _reciprocal,
    "reduce_prod": _prod, "sign": _sign, "sinc": _sinc, "square": _square,
    "xlog1py": _times_log("log1p"), "xlogy": _times_log("log"), **dict.fromkeys(COMPLEX, _function),
}  # fmt: skip
