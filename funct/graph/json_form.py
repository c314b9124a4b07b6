"""A graph as JSON and arrays, and back. Primitives are found by name; nothing else is called.

Written: values are numbered; a call with derivative rules of its own has no form, so calls are
inlined first. Read: every name, type and count is checked, and `check` derives every shape and
dtype anew.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from funct.array import Array
from funct.core import Size, lookup, no_capture
from funct.errors import ExportError, FileFormatError, FunctError, GraphError, expect_kind
from funct.graph.check import check
from funct.graph.controls import Written, made_again, written
from funct.graph.given import of_graph
from funct.graph.ir import Control, Graph, Guard, Node, Symbol, Var
from funct.graph.json_values import (
    decode_shape,
    decode_value,
    dtype_named,
    encode_value,
    params_fit,
)
from funct.graph.passes.eliminate_dead import eliminate_dead
from funct.graph.passes.inline_calls import inline_calls
from funct.graph.size_text import check_guard, is_symbol_name
from funct.graph.strict_json import dump_json, parse_json
from funct.ops.fast import wrap
from funct.source import Site

__all__ = [
    "Tensors", "decode_graph", "encode_graph", "fields_of", "from_json", "graph_hash", "guarded",
    "to_json",
]  # fmt: skip

Tensors = dict[str, np.ndarray[Any, Any]]
T = TypeVar("T")

_NAME = r"[xcv]\d{1,9}"
_SITE = r"<([^<>]*)>:(\d{1,9})"
_KINDS = ("bool", "int", "float", "complex", "index", "array", "ndarray", "size")


@of_graph
def to_json(graph: Graph) -> str:
    """The graph as one JSON text, with its constants and the user's lines.

    Calls are replaced by their bodies.
    Raises: ExportError: for functions of the user's (callbacks, solvers) and parameters that have
    no form in a text.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> graph = ft.make_graph(lambda x: xp.sum(x * 2.0))(xp.ones(3))
        >>> again = ft.Graph.from_json(graph.to_json())
        >>> float(again(xp.ones(3))[0])
        6.0
    """
    value, tensors = encode_graph(eliminate_dead(inline_calls(graph)))
    value["data"] = {k: _encode_tensor(t) for k, t in tensors.items()}
    return dump_json(value).decode()


def from_json(text: str) -> Graph:
    """The graph that `to_json` wrote, checked.

    Raises: FileFormatError: for anything else.
    """
    if not isinstance(text, str):
        raise FileFormatError(f"from_json: text must be a str, got {type(text).__name__}")
    value = parse_json(text.encode(errors="surrogatepass"), "graph")  # which decodes strictly
    if not isinstance(value, dict) or not isinstance(value.get("data"), dict):
        raise FileFormatError("graph.json: the constants are missing")
    data = value.pop("data")
    return decode_graph(value, guarded(lambda: {k: _decode_tensor(t) for k, t in data.items()}))


def _encode_tensor(x: np.ndarray[Any, Any]) -> list[Any]:
    raw = np.ascontiguousarray(x).tobytes()
    return [x.dtype.name, list(x.shape), base64.b64encode(raw).decode()]


def _decode_tensor(t: Any) -> np.ndarray[Any, Any]:
    name, shape, data = _row(t, str, list, str)
    raw = base64.b64decode(data, validate=True)
    dtype, count = dtype_named(name), 1
    for n in decode_shape(shape, {}):
        count *= n
    if len(raw) != count * dtype.itemsize:
        raise FileFormatError("graph.json: a constant has another number of bytes than its type")
    return np.frombuffer(raw, dtype).reshape(shape)


# writing ----------------------------------------------------------------------------------------


def encode_graph(graph: Graph) -> tuple[dict[str, Any], Tensors]:
    """JSON and constants of a graph without calls."""
    names = {v: f"x{k}" for k, v in enumerate(graph.inputs)}
    names |= {v: f"c{k}" for k, (v, _) in enumerate(graph.constants)}
    results = [v for e in graph.nodes if isinstance(e, Node) for v in e.results]
    names |= {v: f"v{k}" for k, v in enumerate(results)}
    tensors = {names[v]: np.asarray(x.data) for v, x in graph.constants}
    value = {
        "symbols": [_encode_symbol(graph, s) for s in graph.symbols],
        "inputs": [_encode_var(v, names) for v in graph.inputs],
        "constants": [_encode_var(v, names) for v, _ in graph.constants],
        "nodes": [_encode_entry(e, names, tensors) for e in graph.nodes],
        "outputs": [names[v] for v in graph.outputs],
    }
    return value, tensors


def graph_hash(graph: Graph) -> str:
    """SHA-256 of what a graph computes: its nodes and types, not its lines and constants.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import serialize
        >>> a, b = (ft.make_graph(lambda x: x * 2.0)(xp.ones(2)) for _ in range(2))
        >>> serialize.graph_hash(a) == serialize.graph_hash(b), len(serialize.graph_hash(a))
        (True, 64)
    """
    expect_kind(GraphError, "graph_hash: graph", graph, Graph, "a Graph, as make_graph gives")
    value, _ = encode_graph(graph)
    for node in value["nodes"]:
        del node["at"]
    return hashlib.sha256(dump_json(value)).hexdigest()


def _encode_symbol(graph: Graph, s: Symbol) -> list[Any]:
    return [s.name, s.input, s.axis, graph.inputs[s.input].shape[s.axis].hint]


def _encode_var(v: Var, names: Mapping[Var, str]) -> list[Any]:
    return [names[v], v.dtype.name, encode_value(v.shape)]


def _encode_entry(e: Any, names: Mapping[Var, str], tensors: Tensors) -> dict[str, Any]:
    if isinstance(e, Guard):
        return _encode_guard(e, names, tensors)
    try:
        params = encode_value(e.params)
        operands = [names[a] if isinstance(a, Var) else encode_value(a) for a in e.operands]
    except ExportError as error:
        raise ExportError(f"{error.what}: {e.name}", site=e.site) from None
    if isinstance(e.primitive, Control):
        return _encode_control(e, operands, names, tensors)
    prim = lookup(e.name)
    if prim is None or prim is not e.primitive:
        text = f"save: {e.name} is not in the catalogue, so it has no form in a file"
        raise ExportError(text, site=e.site)
    if not params_fit(prim, e.params):
        raise ExportError(f"save: {e.name} with parameters {e.params} has no form", site=e.site)
    results = [_encode_var(v, names) for v in e.results]
    return {"op": e.name, "in": operands, "params": params, "out": results, "at": _at(e.site)}


def _encode_control(
    e: Node, operands: list[Any], names: Mapping[Var, str], tensors: Tensors
) -> dict[str, Any]:
    assert isinstance(e.primitive, Control)
    form = written(e.primitive)
    if form is None:
        raise ExportError(
            f"save: {e.name} holds functions of its own, which have no form in a file", site=e.site
        )
    sizes = (*form.values, *[v.shape for g in form.graphs for v in (*g.inputs, *g.outputs)])
    if "size" in repr(encode_value(sizes)):
        raise ExportError(
            f"save: {e.name} with symbolic sizes has no form in a file", site=e.site,
            fix="export it for one length",
        )  # fmt: skip
    bodies = []
    for k, g in enumerate(form.graphs):
        value, inner = encode_graph(eliminate_dead(inline_calls(g)))
        tensors |= {f"{_prefix(names[e.results[0]], k)}{n}": t for n, t in inner.items()}
        bodies.append(value)
    return {
        "control": form.kind, "bodies": bodies, "values": encode_value(form.values),
        "in": operands, "out": [_encode_var(v, names) for v in e.results], "at": _at(e.site),
    }  # fmt: skip


def _prefix(result: str, body: int) -> str:
    """Before the names of the constants of a body."""
    return f"{result}.{body}."


def _encode_guard(e: Guard, names: Mapping[Var, str], tensors: Tensors) -> dict[str, Any]:
    of = None if e.operand is None else names[e.operand]
    if e.of_elements:
        expected: Any = f"guard{len(tensors)}"
        tensors[expected] = np.asarray(e.expected)
    else:
        expected = encode_value(e.expected)
    return {"guard": e.kind, "of": of, "expected": expected, "at": _at(e.site)}


def _at(site: Site | None) -> str | None:
    """File and line of the user's code, without the folder and without the text."""
    if site is None:
        return None
    name = os.path.basename(site.file)
    return f"<{name.strip('<>')}>:{site.line}"


# reading ----------------------------------------------------------------------------------------


def guarded(read: Callable[[], T]) -> T:
    """What `read` gives; FileFormatError for whatever goes wrong in it."""
    try:
        return read()
    except FileFormatError:
        raise
    except FunctError as error:
        raise FileFormatError(f"graph.json: {error.what}") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError) as error:
        # what a primitive's abstract rule says to operands that are none
        raise FileFormatError(f"graph.json: {type(error).__name__}: {error}") from None


def decode_graph(value: Any, tensors: Tensors) -> Graph:
    """The graph; FileFormatError for anything that `encode_graph` would not have written."""
    names = ("symbols", "inputs", "constants", "nodes", "outputs")
    keys: Any = dict.fromkeys(names, list)
    return guarded(lambda: _Reader(tensors).graph(fields_of(value, **keys)))


class _Reader:
    """Holds what is known while a graph is read."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = dict(tensors)
        self.vars: dict[str, Var] = {}
        self.symbols: dict[str, Size] = {}
        self.scope = no_capture()

    def graph(self, f: Mapping[str, Any]) -> Graph:
        """The graph, checked."""
        symbols = tuple([self._symbol(s) for s in f["symbols"]])
        inputs = tuple([self._var(v, "x") for v in f["inputs"]])
        constants = tuple([self._constant(v) for v in f["constants"]])
        nodes = tuple([self._entry(e) for e in f["nodes"]])
        outputs = tuple([self._known(n) for n in f["outputs"]])
        if self.tensors:
            raise FileFormatError(f"graph.json: {min(self.tensors)!r} is not used by the graph")
        for s in symbols:
            shape = inputs[s.input].shape if s.input < len(inputs) else ()
            if s.axis >= len(shape) or repr(shape[s.axis]) != s.name:
                raise FileFormatError(f"graph.json: the size {s.name!r} is not where it is said")
        return check(Graph(inputs, constants, nodes, outputs, symbols))

    def _symbol(self, value: Any) -> Symbol:
        name, index, axis, example = _row(value, str, int, int, int)
        if not is_symbol_name(name) or name in self.symbols or min(index, axis, example) < 0:
            raise FileFormatError(f"graph.json: {name!r} cannot name a size")
        self.symbols[name] = Size.symbol(name, example, self.scope)
        return Symbol(name, index, axis)

    def _var(self, value: Any, kind: str) -> Var:
        name, dtype, shape = _row(value, str, str, list)
        if not re.fullmatch(_NAME, name) or name[0] != kind or name in self.vars:
            raise FileFormatError(f"graph.json: a value cannot be named {name!r}")
        v = Var(name, decode_shape(shape, self.symbols), dtype_named(dtype))
        self.vars[name] = v
        return v

    def _constant(self, value: Any) -> tuple[Var, Array]:
        v = self._var(value, "c")
        return v, wrap(self._tensor(v.name))

    def _tensor(self, name: Any) -> np.ndarray[Any, Any]:
        if not isinstance(name, str) or name not in self.tensors:
            raise FileFormatError(f"graph.json: no constant is named {str(name)[:60]!r}")
        return self.tensors.pop(name)

    def _known(self, name: Any) -> Var:
        if not isinstance(name, str) or name not in self.vars:
            raise FileFormatError(f"graph.json: no value is named {str(name)[:60]!r}")
        return self.vars[name]

    def _entry(self, value: Any) -> Node | Guard:
        if isinstance(value, dict) and "guard" in value:
            return self._guard(value)
        if isinstance(value, dict) and "control" in value:
            return self._control(value)
        f = fields_of(value, op=str, out=list, params=list, at=object, **{"in": list})
        prim = lookup(f["op"])
        if prim is None:
            raise FileFormatError(
                f"graph.json: unknown primitive {f['op'][:60]!r}", fix="install a newer funct"
            )
        operands = tuple([self._operand(a) for a in f["in"]])
        params = decode_value(f["params"], self.symbols)
        if len(operands) != len(prim.operands) or not params_fit(prim, params):
            raise FileFormatError(f"graph.json: {prim.name} does not take what it is given")
        results = tuple([self._var(v, "v") for v in f["out"]])
        return Node(prim, operands, params, results, _site(f["at"]))

    def _control(self, value: Any) -> Node:
        names: Any = {"control": str, "bodies": list, "values": list, "in": list, "out": list}
        f = fields_of(value, at=object, **names)
        operands = tuple([self._known(a) for a in f["in"]])
        results = tuple([self._var(v, "v") for v in f["out"]])
        if not results:
            raise FileFormatError("graph.json: control flow without results")
        graphs = [self._body(_prefix(results[0].name, k), g) for k, g in enumerate(f["bodies"])]
        values = decode_value(f["values"], {})
        made = made_again(Written(f["control"], tuple(graphs), values))
        if [v.aval for v in operands] != list(made.kind.ins):
            raise FileFormatError(f"graph.json: {made.name} does not take what it is given")
        return Node(made, operands, (), results, _site(f["at"]))

    def _body(self, prefix: str, value: Any) -> Graph:
        held = [n for n in self.tensors if n.startswith(prefix)]
        return decode_graph(value, {n[len(prefix) :]: self.tensors.pop(n) for n in held})

    def _operand(self, a: Any) -> Any:
        if isinstance(a, str):
            return self._known(a)
        number = decode_value(a, self.symbols)
        if not isinstance(number, bool | int | float | complex):
            raise FileFormatError(f"graph.json: {str(a)[:60]} is no operand")
        return number

    def _guard(self, value: Any) -> Guard:
        f = fields_of(value, guard=str, of=object, expected=object, at=object)
        kind, expected = f["guard"], f["expected"]
        if kind not in _KINDS or (kind == "size") != (f["of"] is None):
            raise FileFormatError(f"graph.json: an unknown guard {kind[:60]!r}")
        operand = None if f["of"] is None else self._known(f["of"])
        if kind in ("array", "ndarray"):
            expected = self._tensor(expected)
        elif kind == "size":
            expected = check_guard(expected, self.symbols)
        else:
            expected = decode_value(expected, self.symbols)
            wanted = {"bool": bool, "float": float, "complex": complex}.get(kind, int)
            if type(expected) is not wanted:
                raise FileFormatError(
                    f"graph.json: {kind} of a value cannot be {str(expected)[:60]}"
                )
        return Guard(kind, operand, expected, _site(f["at"]))


def fields_of(value: Any, **types: type) -> dict[str, Any]:
    """The object, if it has exactly these keys with values of these types."""
    if not isinstance(value, dict) or value.keys() != types.keys():
        raise FileFormatError(f"graph.json: an object must have the keys {sorted(types)}")
    for k, t in types.items():
        if not isinstance(value[k], t):
            raise FileFormatError(f"graph.json: {k} must be a {t.__name__}")
    return value


def _row(value: Any, *types: type) -> list[Any]:
    """The list, if its elements have exactly these types."""
    if not isinstance(value, list) or [type(v) for v in value] != list(types):
        raise FileFormatError(f"graph.json: a row must hold {[t.__name__ for t in types]}")
    return value


def _site(at: Any) -> Site | None:
    if at is None:
        return None
    found = re.fullmatch(_SITE, at) if isinstance(at, str) else None
    if found is None:
        raise FileFormatError(f"graph.json: {str(at)[:60]!r} is no line of a file")
    return Site(f"<{found[1]}>", int(found[2]))
