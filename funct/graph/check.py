"""Is a graph well-formed? Run after capture and after every pass."""

from __future__ import annotations

import ast
import keyword
import math
from collections.abc import Iterable
from typing import Any
from weakref import WeakSet

import numpy as np

from funct.array import Array
from funct.core import Primitive, Region, ShapeDtype, Size
from funct.errors import FunctError, GraphError
from funct.graph.declared import misfit
from funct.graph.given import of_graph
from funct.graph.ir import Call, Control, Entry, Graph, Guard, Node, Symbol, Var

__all__ = ["check"]

# What the text of a size guard may consist of: it is evaluated.
_ARITHMETIC = (
    ast.Expression, ast.Name, ast.Load, ast.Constant, ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare,
    ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.USub, ast.UAdd, ast.Not,
    ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE,
)  # fmt: skip

# What Python got that asked for a value, by the kind of the guard.
_ANSWERS: dict[str, type] = {
    "bool": bool, "int": int, "float": float, "complex": complex, "index": int, "array": np.ndarray,
    "ndarray": np.ndarray,
}  # fmt: skip

_sound: WeakSet[Graph] = WeakSet()  # bodies of branches and loops that were checked


@of_graph
def check(graph: Graph) -> Graph:
    """The graph itself, or GraphError naming the entry that breaks a rule.

    Rules: every Var is defined once, before it is used; names are unique and Python's; operands and
    parameters are as many as the primitive takes; parameters are of the types that it declares, and
    axes are there; the shapes and dtypes written on results are those that its abstract rule gives;
    bodies keep the rules too; guards ask for what they expect; lengths are not negative, their
    symbols are read off axes that have them, and size guards compare arithmetic on them.
    """
    try:
        return _check(graph, {s.name for s in graph.symbols})
    except GraphError:
        raise
    except Exception as error:
        what = _misshapen("graph", graph)
        if what is None and isinstance(error, FunctError):
            raise
        raise GraphError(what or f"graph: {type(error).__name__}: {error}") from None


def _check(graph: Graph, symbols: set[str], *, of_call: bool = False) -> Graph:
    """symbols: those that lengths may be made of. of_call: its inputs are operands, one may be
    several.
    """
    scope = _Scope(symbols)
    for v in dict.fromkeys(graph.inputs) if of_call else graph.inputs:
        scope.define(v, "an input")
    for v, x in graph.constants:
        scope.define(v, "a constant")
        if not isinstance(x, Array):
            raise GraphError(f"graph: constant {v.name} is no array: {type(x).__name__}")
        if tuple(x.shape) != v.shape or x.dtype != v.dtype:
            raise GraphError(
                f"graph: constant {v.name} is {x.dtype}{list(x.shape)}, typed {v.aval}"
            )
    if len({s.name for s in graph.symbols}) < len(graph.symbols):
        raise GraphError("graph: a symbol is read off two axes")
    for s in graph.symbols:
        _check_symbol(s, graph)
    sound: set[Any] = set()  # forms of nodes: models repeat theirs
    for e in graph.nodes:
        scope.use(e)
        if isinstance(e, Guard):
            _check_guard(e, symbols)
            continue
        if isinstance(e, Node):
            form = None if symbols else _form(e)  # symbolic lengths decide when they are compared
            if form is None or form not in sound:
                _check_node(e)
                sound.add(form)
        else:
            _check_call(e, symbols)
        for v in e.results:
            scope.define(v, e.name)
    for v in graph.outputs:
        if v not in scope.known:
            raise GraphError(f"graph: output {getattr(v, 'name', v)} is not defined")
    return graph


class _Scope:
    """The Vars and names that are defined so far."""

    def __init__(self, symbols: set[str]) -> None:
        self.symbols = symbols
        self.known: set[Var] = set()
        self.names: set[str] = set()

    def define(self, v: Var, by: str) -> None:
        if v in self.known:
            raise GraphError(f"graph: {v.name} is defined twice, again by {by}")
        if v.name in self.names:
            raise GraphError(f"graph: two values are named {v.name}")
        if not v.name.isidentifier() or keyword.iskeyword(v.name):
            raise GraphError(f"graph: {v.name!r} is no name")
        for n in v.shape:
            if not (n.names <= self.symbols if isinstance(n, Size) else type(n) is int and n >= 0):
                raise GraphError(f"graph: {n} is no length of {v.name}")
        self.known.add(v)
        self.names.add(v.name)

    def use(self, e: Entry) -> None:
        operands: tuple[Any, ...] = (e.operand,) if isinstance(e, Guard) else e.operands
        for a in operands:
            if isinstance(a, Var) and a not in self.known:
                raise GraphError(f"graph: {a.name} is used before it is defined", site=e.site)
        if isinstance(e, Call):
            for v in e.body.inputs:
                if v not in self.known:
                    raise GraphError(f"graph: the body of {e.name} reads {v.name}", site=e.site)


def _check_call(e: Call, symbols: set[str]) -> None:
    body = e.body
    region: object = e.region
    if not isinstance(region, Region) or type(e.operands) is not tuple:
        raise GraphError(f"graph: {e.region!r}{e.operands!r} is no call", site=e.site)
    if len(e.results) != len(body.outputs):
        counts = f"{len(e.results)} results, its body {len(body.outputs)}"
        raise GraphError(f"graph: {e.name} has {counts}", site=e.site)
    for a in e.operands:
        if not isinstance(a, Var):
            raise GraphError(f"graph: operand {a!r} of {e.name} is no Var", site=e.site)
    if len(e.operands) != e.takes:
        counts = f"takes {e.takes} operands, got {len(e.operands)}"
        raise GraphError(f"graph: {e.name} {counts}", site=e.site)
    if body.inputs[: e.takes] != e.operands:
        given, begins = _names(e.operands), _names(body.inputs[: e.takes])
        raise GraphError(f"graph: {e.name} is given {given}, its body {begins}", site=e.site)
    _check(body, symbols, of_call=True)
    _agree(e, [v.aval for v in e.results], [v.aval for v in body.outputs])


def _check_symbol(s: Symbol, graph: Graph) -> None:
    if not 0 <= s.input < len(graph.inputs):
        raise GraphError(f"graph: symbol {s.name} is read off input {s.input}, which is not there")
    if not 0 <= s.axis < len(graph.inputs[s.input].shape):
        raise GraphError(f"graph: symbol {s.name} is read off axis {s.axis}, which is not there")
    length = graph.inputs[s.input].shape[s.axis]
    if repr(length) != s.name:
        raise GraphError(f"graph: symbol {s.name} is read off an axis of length {length!r}")


def _check_guard(guard: Guard, symbols: set[str]) -> None:
    if (guard.operand is None) != (guard.kind == "size") or not isinstance(
        guard.operand, Var | None
    ):
        needs = "has no" if guard.kind == "size" else "needs an"
        raise GraphError(
            f"graph: a {guard.kind} guard {needs} operand, got {guard.operand!r}", site=guard.site
        )
    if guard.operand is not None:
        answer = _ANSWERS.get(guard.kind)
        if answer is None or not isinstance(guard.expected, answer):
            text = f"a {guard.kind} guard expects {type(guard.expected).__name__}"
            raise GraphError(f"graph: {text}", site=guard.site)
        shape = guard.operand.shape
        if not guard.of_elements and all(type(n) is int for n in shape) and math.prod(shape) != 1:
            raise GraphError(f"graph: a {guard.kind} guard on {list(shape)}", site=guard.site)
        return
    try:
        parts = list(ast.walk(ast.parse(guard.expected, mode="eval")))
    except (SyntaxError, TypeError, ValueError):
        parts = [ast.Pass()]
    compared = [len(n.ops) for n in parts if isinstance(n, ast.Compare)]
    called = [n.func for n in parts if isinstance(n, ast.Call)]
    larger = [f for f in called if isinstance(f, ast.Name) and f.id == "max"]
    arithmetic = all(isinstance(n, _ARITHMETIC) for n in parts) and len(larger) == len(called)
    if not arithmetic or compared != [1]:
        raise GraphError(f"graph: size guard {guard.expected!r} is no arithmetic", site=guard.site)
    named = [n.id for n in parts if isinstance(n, ast.Name) and n not in larger]
    for name in [n for n in named if n not in symbols]:
        raise GraphError(f"graph: size {name} names no symbol", site=guard.site)


def _form(node: Node) -> Any:
    """All that `_check_node` looks at, to compare nodes by; None where that cannot be compared."""
    if isinstance(node.primitive, Control) or type(node.params) is not tuple:
        return None
    given = [
        (a.shape, a.dtype) if a.__class__ is Var else (a.__class__, a) for a in node.operands
    ]
    params = (node.params, repr(node.params)) if node.params else None  # True is 1, but not as text
    form = node.primitive, *given, params, *[(v.shape, v.dtype) for v in node.results]
    try:
        hash(form)
    except TypeError:
        return None
    return form


def _check_node(node: Node) -> None:
    prim = node.primitive
    for what, wanted, got in (
        ("operands", len(prim.operands), len(node.operands)),
        ("parameters", len(prim.params), len(node.params)),
        ("results", prim.results, len(node.results)),
    ):
        if wanted != got:
            verb = "gives" if what == "results" else "takes"
            raise GraphError(
                f"graph: {node.name} {verb} {wanted} {what}, got {got}", site=node.site
            )
    for what, given in (("operands", node.operands), ("parameters", node.params)):
        if type(given) is not tuple:
            raise GraphError(
                f"graph: {what} of {node.name} must be a tuple, got {given!r}", site=node.site
            )
    for a in node.operands:
        if not isinstance(a, Var | bool | int | float | complex):
            raise GraphError(
                f"graph: operand {a!r} of {node.name} is neither a Var nor a number", site=node.site
            )
    shaped = [v for v in (*node.operands, *node.results) if isinstance(v, Var)]
    wrong = misfit(prim, node.params, max([len(v.shape) for v in shaped], default=0))
    if wrong is not None:
        raise GraphError(f"graph: {node.name}: {wrong}", site=node.site)
    _check_types(node)
    if isinstance(prim, Control):
        for _, body in prim.bodies:
            if body not in _sound:
                _sound.add(check(body))


def _check_types(node: Node) -> None:
    try:
        avals = node.primitive.aval(node.operands, node.params)
    except FunctError:
        raise
    except Exception as error:
        raise GraphError(f"graph: {node.name} cannot be typed: {error}", site=node.site) from None
    expected = avals if isinstance(avals, tuple) else (avals,)
    _agree(node, [v.aval for v in node.results], expected)


def _agree(e: Node | Call, got: Iterable[ShapeDtype], expected: Iterable[ShapeDtype]) -> None:
    """The types written on results are those that are computed."""
    if not all(_same(a, b) for a, b in zip(got, expected, strict=True)):
        raise GraphError(
            f"graph: {e.name} gives {_plain(expected)}, its results are typed {_plain(got)}",
            site=e.site,
        )


def _same(a: ShapeDtype, b: ShapeDtype) -> bool:
    """Symbolic lengths may be spelt in two ways, but no decision is made here."""
    return a.dtype == b.dtype and len(a.shape) == len(b.shape) and all(map(_one, a.shape, b.shape))


def _one(n: Any, m: Any) -> bool:
    if isinstance(n, Size) or isinstance(m, Size):
        return n.always(m) if isinstance(n, Size) else m.always(n)
    return repr(n) == repr(m)


def _names(values: Iterable[Var]) -> str:
    return ", ".join(v.name for v in values) or "nothing"


def _plain(avals: Iterable[ShapeDtype]) -> str:
    return ", ".join(f"{a.dtype}{list(a.shape)}" for a in avals)


# What the parts of a graph are; of those with a * there is a tuple.
_PARTS: dict[type, dict[str, Any]] = {
    Graph: {"inputs*": Var, "constants*": tuple, "nodes*": Node | Call | Guard, "outputs*": Var,
            "symbols*": Symbol},
    Node: {"primitive": Primitive, "operands*": object, "params*": object, "results*": Var},
    Call: {"region": Region, "operands*": Var, "results*": Var, "body": Graph},
    Guard: {"kind": str},
    Var: {"name": str, "shape*": int | Size, "dtype": np.dtype},
    Symbol: {"name": str, "input": int, "axis": int},
}  # fmt: skip


def _misshapen(where: str, x: Any) -> str | None:
    """What is no part of a graph, and where it stands; None where all are of the right kinds."""
    for field, kind in _PARTS.get(type(x), {}).items():
        name, many = field.removesuffix("*"), field.endswith("*")
        value = getattr(x, name)
        if many and type(value) is not tuple:
            return f"{where}.{name} must be a tuple, got {type(value).__name__}"
        for k, part in enumerate(value if many else (value,)):
            place = f"{where}.{name}[{k}]" if many else f"{where}.{name}"
            if not isinstance(part, kind):
                wanted = getattr(kind, "__name__", str(kind))
                return f"{place} must be of {wanted}, got {repr(part)[:60]}"
            for p in part if kind is tuple else (part,):
                found = _misshapen(place, p)
                if found is not None:
                    return found
    return None
