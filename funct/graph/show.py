"""A graph as readable Python."""

from __future__ import annotations

from typing import Any

from funct.graph.given import of_graph
from funct.graph.ir import Call, Control, Graph, Guard, Node, Var

__all__ = ["show"]


@of_graph
def show(graph: Graph) -> str:
    """One line per node, with types and the user's line as a comment.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> print(ft.make_graph(lambda x: xp.sum(x * 2.0))(xp.ones(3)))
        def graph(x0: float64[3]):
            v1 = multiply(x0, 2.0)                             # float64[3]
            v2 = reduce_sum(v1, axes=(0,), keepdims=False)     # float64[]
            return v2
    """
    lines: list[str] = []
    _function("graph", graph, lines, "")
    return "\n".join(lines)


def _function(name: str, graph: Graph, lines: list[str], indent: str) -> None:
    heads = [f"{v.name}: {_type(v)}" for v in graph.inputs]
    lines.append(f"{indent}def {name}({', '.join(heads)}):")
    inner = indent + "    "
    for v, x in graph.constants:
        text = repr(x.tolist()) if x.size <= 4 else "..."
        lines.append(_comment(f"{inner}{v.name} = constant({text})", _type(v)))
    _body(graph, lines, inner)
    lines.append(f"{inner}return {', '.join(v.name for v in graph.outputs)}")


def _body(graph: Graph, lines: list[str], indent: str) -> None:
    for e in graph.nodes:
        where = f"  {e.site}" if e.site and e.site.text and not e.site.file.startswith("<") else ""
        if isinstance(e, Guard):
            lines.append(_comment(f"{indent}assert {_condition(e)}", where.strip()))
            continue
        operands = [a.name if isinstance(a, Var) else repr(a) for a in e.operands]
        if isinstance(e, Call):
            text = f"call[{e.name}]({', '.join(operands)})"
        else:
            params = [f"{n}={_plain(p)}" for n, p in zip(e.primitive.params, e.params, strict=True)]
            text = f"{e.name}({', '.join(operands + params)})"
        names = ", ".join(v.name for v in e.results)
        types = ", ".join(_type(v) for v in e.results)
        if isinstance(e, Node) and isinstance(e.primitive, Control):  # the bodies, then their use
            for name, body in e.primitive.bodies:
                _function(name, body, lines, indent)
        lines.append(_comment(f"{indent}{names} = {text}", types + where))


def _condition(guard: Guard) -> str:
    if guard.operand is None:
        return str(guard.expected)
    return f"{guard.kind}({guard.operand.name}) == {guard.expected!r}"


def _comment(text: str, comment: str) -> str:
    return f"{text:54s} # {comment}" if comment else text


def _plain(p: Any) -> str:
    return str(p) if p.__class__.__module__ == "numpy.dtypes" else repr(p)


def _type(v: Var) -> str:
    return f"{v.dtype}[{', '.join(str(n) for n in v.shape)}]"
