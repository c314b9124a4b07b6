"""Capture: run a Python function once and keep what it did as a `Graph`.

Capturing is one more level. Its tracers carry shape and dtype; their concrete value is computed
only when `bool()`, `int()` or `float()` asks for it, and then the answer becomes a guard of the
graph. Tracers of outer transforms that the function closes over become inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

import attrs
import numpy as np

from funct.array import Array, Tensor, asarray, maximum
from funct.core import (
    INEXACT,
    Level,
    Number,
    OpenNumber,
    Primitive,
    Region,
    ShapeDtype,
    Size,
    SizeScope,
    closed,
    dtype_beside,
    expect_below,
    lookup,
    narrow_operands,
    top_level,
)
from funct.core.effects import act
from funct.errors import AllocationError, FunctError
from funct.graph.ir import Call, Entry, Graph, Guard, Node, Symbol, Var, acts
from funct.graph.renaming import resolved, substituted
from funct.graph.tracer import UNKNOWN, GraphTracer, Pending
from funct.ops.refusals import explain
from funct.source import active_levels, user_site

__all__ = ["UNKNOWN", "Capture", "GraphTracer", "acting", "capture", "writing", "written"]

_MANY = 24  # values
_innermost: ContextVar[Capture | None] = ContextVar("capture", default=None)
_BARE = (np.generic, np.ndarray)
_NUMBERS = (bool, int, float, complex)
_OPERANDS = (Tensor, bool, int, float, complex, *_BARE)


class Capture(Level):
    """The level that writes ops down."""

    __slots__ = (
        "acts", "around", "constants", "count", "entries", "grown", "held", "hints", "inputs",
        "scope", "symbols",
    )  # fmt: skip
    decides: ClassVar[bool] = False  # whether what was written runs where a value is asked for

    def __init__(
        self, label: str, fun: Callable[..., Any] | None, least: int = 0,
        grown: Callable[[], object] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(label, fun)
        self.entries: list[Entry] = []
        self.constants: dict[int, tuple[Var, Any]] = {}
        self.inputs: list[Var] = []
        self.symbols: list[Symbol] = []
        self.count = 0
        self.acts: list[Pending] = []  # that do something besides their results, not computed yet
        self.around = around = writing()
        self.grown: Callable[[], object] | None = grown or (around.grown if around else None)
        self.held: list[Level] = []  # whose tracers are this level's business for now
        self.hints: dict[str, int] = {}
        self.scope = SizeScope(
            self._size_guard, self.constant, self._size_asked, self._measure, self.hints, least
        )

    def fresh(self, shape: Any, dtype: np.dtype[Any]) -> Var:
        """A new typed name."""
        self.count += 1
        if self.count == _MANY and self.grown is not None:
            self.grown()
        return Var(f"v{self.count}", tuple(shape), dtype)

    def input(self, x: Any, names: dict[int, str] | None) -> GraphTracer:
        """A tracer for one input; `names` maps axes to symbols. A ShapeDtype has no value."""
        if isinstance(x, ShapeDtype):
            var = Var(f"x{len(self.inputs)}", x.shape, x.dtype)
            self.inputs.append(var)
            return GraphTracer.unknown(self, var)
        shape = list(x.shape)
        for axis, name in (names or {}).items():
            if not any(s.name == name for s in self.symbols):
                self.symbols.append(Symbol(name, len(self.inputs), axis))
                self.hints[name] = int(shape[axis])
            shape[axis] = Size.symbol(name, int(shape[axis]), self.scope)
        var = Var(f"x{len(self.inputs)}", tuple(shape), x.dtype)
        self.inputs.append(var)
        return GraphTracer(self, var, x, None, 0)

    def further(self, aval: ShapeDtype) -> GraphTracer:
        """A tracer for one more input, after those that the function was called with; it has no
        value.
        """
        return self.input(aval, None)

    def _size_guard(self, left: str, op: str, right: str, outcome: bool) -> None:
        if self.open:
            text = f"{left} {op} {right}"
            expected = text if outcome else f"not ({text})"
            if not any(isinstance(e, Guard) and e.expected == expected for e in self.entries):
                self.entries.append(Guard("size", None, expected, user_site(keep=True)))

    def _size_asked(self, expected: str) -> None:
        """The guard that was just recorded, or had been, stands for a number that was needed."""
        for k, e in enumerate(self.entries if self.open else ()):
            if isinstance(e, Guard) and e.expected == expected:
                self.entries[k] = attrs.evolve(e, asked=True)

    def _measure(self, size: Size) -> Any:
        read = {s.name: s for s in self.symbols if s.name in size.names}
        if not self.open or not read:
            return None
        known: dict[str, Any] = {}
        for name, s in read.items():
            length = self.fresh((), np.dtype(np.int64))
            prim, x = lookup("size_along"), self.inputs[s.input]
            assert prim is not None
            self.entries.append(Node(prim, (x,), ((s.axis,),), (length,), user_site(keep=True)))
            known[name] = GraphTracer(self, length, asarray(self.hints[name]), None, 0)
        return eval(repr(size), {"__builtins__": {}, "max": maximum}, known)

    def _number(self, a: Size, prim: Primitive, args: Sequence[Any]) -> Any:
        """A size as an array of the other operands' dtype, or as the number that it is now."""
        kinds = {x.dtype for x in args if isinstance(x, Tensor)} - {np.dtype(bool)}
        wide = all(d in INEXACT or d == np.dtype(np.int64) for d in kinds)
        if prim.spread and prim.name != "pow" and len(kinds) == 1 and wide:
            found = a.measured()
            if found is not None:
                return lookup("astype").fn(found, *kinds)  # type: ignore[union-attr]
        return int(a)  # which guards the size

    def chosen(self, x: Any, mask: Any) -> Any:
        """x[mask] of a level that decides: which elements they are is known there."""
        raise NotImplementedError(f"{type(self).__name__} must define chosen")

    def guard(self, kind: Any, var: Var, seen: Any) -> None:
        """Remember a decision."""
        if self.open:
            self.entries.append(Guard(kind, var, seen, user_site(keep=True)))

    def operand(self, a: Any) -> Var | Number:
        """The name of an operand; anything that is no tracer of this level becomes a constant."""
        if a.__class__ is GraphTracer and a.level is self:
            return a.ref
        if isinstance(a, _BARE):
            a = asarray(a)
        if not isinstance(a, Tensor):
            return _plain(a)
        found = self.constants.get(id(a))
        if found is None:
            var = Var(f"c{len(self.constants)}", tuple(a.shape), a.dtype)
            found = self.constants[id(a)] = (var, a)
        return found[0]

    def run(self, prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """Write the op down; its result has a shape and a dtype, no value yet."""
        if prim.effect:
            return act(self, prim.name, lambda: self._write(prim, args, params))
        return self._write(prim, args, params)

    def _write(self, prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        args = [self._number(a, prim, args) if isinstance(a, Size) else a for a in args]
        params = closed(params)
        if any(type(a) is OpenNumber for a in args):
            args = _handed_over(prim, args, params)
        given, args = args, narrow_operands(args)
        try:
            avals = prim.aval(args, params)
        except FunctError:
            raise
        except Exception as error:
            raise explain(prim, given, params, error) from None
        many = isinstance(avals, tuple)
        each = avals if isinstance(avals, tuple) else (avals,)
        for v in each:
            _check_size(prim.name, v.shape, v.dtype.itemsize)
        results = tuple([self.fresh(v.shape, v.dtype) for v in each])
        for a in args:
            if a.__class__ is not GraphTracer and not isinstance(a, _OPERANDS):
                raise explain(prim, args, params, TypeError("operand"))
        operands = tuple([self.operand(a) for a in args])
        node = Node(prim, operands, params, results, user_site(keep=True))
        self.entries.append(node)
        pending = Pending(prim.fn, args, params)
        if prim.effect:
            self.acts.append(pending)
        out = self._tracers(results, pending)
        return out if many else out[0]

    def _tracers(self, results: tuple[Var, ...], pending: Pending) -> tuple[GraphTracer, ...]:
        return tuple([GraphTracer(self, v, UNKNOWN, pending, i) for i, v in enumerate(results)])

    def region(self, region: Region, args: Sequence[Any]) -> tuple[Any, ...]:
        """Write a call down, with the body that one run of its function gives."""
        args = [a if isinstance(a, Tensor) else asarray(a) for a in args]
        operands = tuple([self.operand(a) for a in args])
        inner, alias = self._arguments(args)
        before, self.entries = self.entries, []
        waiting, self.acts = self.acts, []
        try:
            outs = region.run(*inner)
            if top_level(outs).serial > self.serial:
                expect_below(self, region, outs)
            entries = self.entries
        finally:
            self.entries = before
            self.acts = waiting
        outputs = [self.operand(o if isinstance(o, Tensor) else asarray(o)) for o in outs]
        names: Any = operands
        free = _free(entries, outputs, list(alias))
        nodes = tuple([substituted(e, alias) for e in entries])
        body = Graph((*names, *free), (), nodes, tuple([resolved(v, alias) for v in outputs]))  # type: ignore[arg-type]
        results = tuple([self.fresh(v.shape, v.dtype) for v in body.outputs])
        call = Call(region, names, results, body, user_site(keep=True))
        pending = Pending(region.run, args, ())

        def write() -> tuple[GraphTracer, ...]:
            self.entries.append(call)
            return self._tracers(results, pending)

        if not acts(call):
            return write()
        self.acts.append(pending)
        out: tuple[GraphTracer, ...] = act(self, call.name, write)
        return out

    def _arguments(self, args: Sequence[Any]) -> tuple[list[GraphTracer], dict[Var, Var]]:
        """What a function is called with, and what its names stand for: it may close over the
        same values.
        """
        inner, alias = [], {}
        for a in args:
            mine = a if a.__class__ is GraphTracer and a.level is self else self.constant(a)
            var = Var(mine.ref.name, mine.ref.shape, mine.ref.dtype)
            inner.append(GraphTracer(self, var, mine.have, mine.pending, mine.index))
            alias[var] = mine.ref
        return inner, alias

    def value_of(self, tracer: GraphTracer) -> Any:
        """The value of a tracer, with whatever it needs."""
        todo = [tracer.call()]
        while todo:  # no recursion: a long chain may be pending
            p = todo[-1]
            if p.values is not None:
                todo.pop()
                continue
            needs = p.needs(self)
            if p in self.acts[1:]:  # what acts does so in the order of the program
                needs.append(self.acts[self.acts.index(p) - 1])
            if needs:
                todo += needs
                continue
            with self.before():
                p.compute(self)
            if p in self.acts:
                self.acts.remove(p)
        return tracer.settled()

    @contextmanager
    def before(self) -> Iterator[None]:
        """While a value is computed one level down: all is as it was before this level began."""
        inner: Any = self
        held: list[tuple[Level, Level]] = []
        while isinstance(inner, Capture):
            held += [(x, inner) for x in inner.held]
            inner = inner.open
        token = _innermost.set(self.around)
        for x, _ in held:
            x.open = True
        try:
            yield
        finally:
            for x, taken in held:
                x.open = taken
            _innermost.reset(token)

    def constant(self, x: Any) -> Any:
        """A tracer for a value that is no input: a constant of the graph."""
        var = self.operand(x)
        assert isinstance(var, Var)
        return GraphTracer(self, var, x, None, 0)


def _plain(a: Any) -> Any:
    """A number as Python's own: graphs tell them apart by how they print, and members of enums,
    say, print otherwise.
    """
    if a.__class__ in _NUMBERS:
        return a
    if isinstance(a, int | float):
        return a.real
    return complex(a.real, a.imag) if isinstance(a, complex) else a


def _check_size(name: str, shape: tuple[Any, ...], itemsize: int) -> None:
    """Refuse, as NumPy does, what has more bytes than a number of the machine counts."""
    size = itemsize
    for n in shape:
        if n.__class__ is int:
            size *= n
    if size >> 63:
        raise AllocationError(
            f"{name}: no array is as large as shape {shape} and {itemsize} bytes an element ask for"
        )


def _handed_over(
    prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]
) -> list[Any]:
    """Operands; open numbers are inputs of the capture where an array does what they do."""
    known = [a.value if type(a) is OpenNumber else a for a in args]
    try:
        aval = prim.aval(narrow_operands(known), params)
    except Exception:  # the error of the op itself comes next
        return [a.known() if type(a) is OpenNumber else a for a in args]
    given = list(args)
    for i, a in enumerate(args):
        if type(a) is OpenNumber:
            result = None if isinstance(aval, tuple) else aval.dtype
            dtype = dtype_beside(prim, known, params, i, result)
            given[i] = a.known() if dtype is None else a.sheet.measured(a, dtype)
    return given


def writing() -> Capture | None:
    """The innermost capture that is under way."""
    return _innermost.get()


def acting(level: Level) -> Level:
    """The level that takes what has an effect, where its operands would lead to this one."""
    inner = _innermost.get()
    return inner if inner is not None and inner.serial > level.serial else level


@contextmanager
def written(level: Capture, *, body: bool = False) -> Iterator[None]:
    """While a function runs that this level writes down. It is closed afterwards.

    body: of a branch or a loop. Whether and how often it runs is not known, so all that is done in
    it, also to values of the levels around it, is done in it alone.
    """
    if body:
        level.held = [x for x in active_levels() if x.open is True and x is not level]
    token = _innermost.set(level)
    for x in level.held:
        x.open = level
    try:
        yield
    finally:
        level.open = False
        for x in level.held:
            x.open = True
        _innermost.reset(token)


def _free(entries: Sequence[Entry], outputs: Sequence[Any], bound: Sequence[Var]) -> list[Var]:
    known = {id(v) for v in bound}
    free: list[Var] = []

    def use(v: Any) -> None:
        if isinstance(v, Var) and id(v) not in known:
            known.add(id(v))
            free.append(v)

    for e in entries:
        for v in (e.operand,) if isinstance(e, Guard) else e.operands:
            use(v)
        if isinstance(e, Call):
            for v in e.body.inputs:
                use(v)
        if not isinstance(e, Guard):
            known.update(id(v) for v in e.results)
    for v in outputs:
        use(v)
    return free


def capture(
    fun: Callable[..., Sequence[Any]],
    args: Sequence[Any],
    *,
    label: str = "make_graph",
    names: Sequence[dict[int, str] | None] | None = None,
    user_fun: Callable[..., Any] | None = None,
    body: bool = False,
    least: int = 0,
    grown: Callable[[], object] | None = None,
) -> tuple[Graph, tuple[Any, ...]]:
    """Graph of `fun(*args) -> sequence of arrays`, and the outer tracers it closes over.

    args: arrays, or ShapeDtypes, on whose values no decision can be taken. names: per argument,
    axis -> symbol for the sizes to keep symbolic. body: as `written` has it. least: what symbols
    are at least, which is not looked at again. grown: called once it is no small graph, while the
    rest is captured, and for what is captured within. The outer tracers are the graph's last
    inputs.
    """
    level = Capture(label, user_fun or fun, least, grown)
    args = [x if isinstance(x, ShapeDtype) else asarray(x) for x in args]
    tracers = [level.input(x, names[i] if names else None) for i, x in enumerate(args)]
    with written(level, body=body):
        outs = fun(*tracers)
        refs = [level.operand(o if isinstance(o, Tensor) else asarray(o)) for o in outs]
    constants = tuple([(v, x) for v, x in level.constants.values() if x.__class__ is Array])
    outer = [(v, x) for v, x in level.constants.values() if x.__class__ is not Array]
    inputs = (*level.inputs, *[v for v, _ in outer])
    graph = Graph(inputs, constants, tuple(level.entries), tuple(refs), tuple(level.symbols))  # type: ignore[arg-type]
    return graph, tuple([x for _, x in outer])
