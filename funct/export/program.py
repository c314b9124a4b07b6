"""export: capture a function as an `ExportedProgram`, with sizes kept symbolic where asked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

import attrs

from funct import pytree, tree
from funct.array import Array
from funct.array.trees import flat_arrays
from funct.errors import ExportError, expect_kind
from funct.export.dynamic_shapes import DynamicShapes
from funct.graph import Graph, Guard, capture, check, eliminate_dead, share_common
from funct.graph.program import ExportedProgram
from funct.graph.renaming import substituted
from funct.transforms.given import expect_functions
from funct.transforms.hidden import flat_results

__all__ = ["export"]


def export(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
) -> ExportedProgram:
    """Capture fun at args as a program of typed primitives.

    Args: fun: a pure function or a layer; arrays that it holds become constants. args, kwargs:
    example arguments (pytrees). dynamic_shapes: same tree as args; each leaf a tuple or dict axis
    -> name (or `Dim`), or None. One name stands for one length.
    Returns: an ExportedProgram.
    Raises: ExportError: when fun fixes a size that was to stay symbolic, with the line that did.
    Example:
        >>> import funct.array as xp
        >>> from funct import export
        >>> p = export.export(lambda x: x * 2.0, (xp.ones((4, 3)),), dynamic_shapes=({0: "batch"},))
        >>> p(xp.ones((7, 3))).shape
        (7, 3)
    """
    expect_functions("export", fun=fun)
    fix = "write (x,)" if hasattr(args, "shape") else None
    expect_kind(ExportError, "export: args", args, (tuple, list), "a tuple of examples", fix)
    expect_kind(ExportError, "export: kwargs", kwargs, (Mapping, NoneType), "a dict of examples")
    call = (tuple(args), dict(kwargs or {}))
    examples, spec = flat_arrays(call)
    dynamic = DynamicShapes.read(call[0], dynamic_shapes, len(examples))
    bounds = dynamic.guards(examples)
    held = _Held.of(fun)
    result: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        a, k = spec.unflatten(xs[held.count :])
        out = held.function(xs[: held.count])(*a, **k)
        outs, structure = flat_results("export", out)
        result[:] = [structure, out]
        return outs

    graph, outer = capture(
        flat,
        [*held.arrays, *examples],
        label="export",
        names=[None] * held.count + dynamic.names(),
        user_fun=fun,
    )
    if outer:
        raise ExportError("export: the function closes over a value of an outer transform")
    _refuse_fixed(graph)
    graph = attrs.evolve(graph, nodes=(*bounds, *graph.nodes))
    graph = check(eliminate_dead(share_common(held.bound(graph))))
    kept = {v.name for v, _ in graph.constants}
    structure, out = result
    return ExportedProgram(
        graph, spec, structure, _input_names(fun, call), _output_names(out),
        {f"p{k}": path for k, path in enumerate(held.paths) if f"p{k}" in kept},
    )  # fmt: skip


@attrs.frozen(eq=False)
class _Held:
    """The arrays that a layer holds. They are captured like inputs and bound as constants later.

    So the graph shows what the layer does with a parameter (`permute_dims(weight)`), not a nameless
    constant that it made of it.
    """

    fun: Callable[..., Any]
    leaves: tuple[Any, ...] = ()
    structure: Any = None
    arrays: tuple[Array, ...] = ()
    paths: tuple[str, ...] = ()

    @classmethod
    def of(cls, fun: Callable[..., Any]) -> _Held:
        """What fun holds, if it is a layer or a method of one."""
        owner = getattr(fun, "__self__", fun)
        named = tree.flatten_with_path(owner)
        first: dict[int, tuple[str, Array]] = {}
        for path, x in named:
            if x.__class__ is Array:
                first.setdefault(id(x), (path, x))  # a shared parameter is one constant
        leaves = tuple([x for _, x in named])
        arrays = tuple([x for _, x in first.values()])
        return cls(
            fun, leaves, pytree.structure(owner), arrays, tuple([p for p, _ in first.values()])
        )

    @property
    def count(self) -> int:
        """How many arrays there are."""
        return len(self.arrays)

    def function(self, xs: tuple[Any, ...]) -> Callable[..., Any]:
        """fun with other arrays in their places."""
        if not xs:
            return self.fun
        new = {id(x): tracer for x, tracer in zip(self.arrays, xs, strict=True)}
        owner = pytree.unflatten(self.structure, [new.get(id(x), x) for x in self.leaves])
        method = getattr(self.fun, "__func__", None)
        return owner if method is None else method.__get__(owner)

    def bound(self, graph: Graph) -> Graph:
        """The graph with its first inputs turned into constants p0, p1, …"""
        n = self.count
        if not n:
            return check(graph)
        held = {v: attrs.evolve(v, name=f"p{k}") for k, v in enumerate(graph.inputs[:n])}
        inputs = {v: attrs.evolve(v, name=f"x{k}") for k, v in enumerate(graph.inputs[n:])}
        named = held | inputs
        nodes = [e for e in graph.nodes if not (isinstance(e, Guard) and e.operand in held)]
        return check(attrs.evolve(
            graph,
            inputs=tuple(inputs.values()),
            constants=(*zip(held.values(), self.arrays, strict=True), *graph.constants),
            nodes=tuple([substituted(e, named) for e in nodes]),
            outputs=tuple([named.get(v, v) for v in graph.outputs]),
            symbols=tuple([attrs.evolve(s, input=s.input - n) for s in graph.symbols]),
        ))  # fmt: skip


def _refuse_fixed(graph: Graph) -> None:
    for guard in graph.fixed_sizes():
        what = guard.expected.split(" == ")[0]
        raise ExportError(
            f"export: the size {what!r} was to stay symbolic, but the function fixes it: "
            f"{guard.expected}",
            site=guard.site,
            fix="compute with the shape itself, or leave the axis out of dynamic_shapes",
        )


def _input_names(fun: Callable[..., Any], call: Any) -> tuple[str, ...]:
    try:
        found = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        found = {}.values()
    parameters = [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = []
    for path, _ in pytree.flatten_with_path(call):
        kind, _, rest = path.partition(".")
        if kind == "0":
            first, _, tail = rest.partition(".")
            base = parameters[int(first)] if int(first) < len(parameters) else f"arg{first}"
            names.append(f"{base}.{tail}" if tail else base)
        else:
            names.append(rest)
    return tuple(names)


def _output_names(out: Any) -> tuple[str, ...]:
    paths = [p for p, _ in pytree.flatten_with_path(out)]
    return tuple([f"output.{p}" if p else "output" for p in paths])
