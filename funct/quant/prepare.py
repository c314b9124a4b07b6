"""`prepare_pt2e` and `calibrate`: what is to be quantized, and what was seen there.

A prepared program is a value: the float program with its constants and batch normalizations folded,
the groups of values that share parameters, and one observer state per group. Calibrating it gives
another value; states of several processes can be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import numpy as np

from funct.errors import QuantizationError, expect_kind
from funct.graph import Graph, Interpreter, Node, Var, check, eliminate_dead, inline_calls
from funct.graph.passes import fold_constants
from funct.graph.program import ExportedProgram, expect_program
from funct.quant.fold import fold_affine
from funct.quant.quantizer import Annotations, Quantizer
from funct.quant.rewrite import constants_of, producers
from funct.quant.spec import QuantizationSpec, SharedQuantizationSpec, Spec

__all__ = [
    "Group", "Point", "PreparedProgram", "calibrate", "describe", "expect_prepared", "merge",
    "prepare_pt2e",
]  # fmt: skip

Point = tuple[Var, Node | None]  # a value where one node reads it; None: where it is produced
Concrete = Any  # a Spec that is not shared


@attrs.frozen(eq=False)
class Group:
    """Points that have the same scale and zero point. values: the Vars to observe, each once."""

    spec: Concrete
    values: tuple[Var, ...]


@attrs.frozen(eq=False, repr=False)
class PreparedProgram:
    """A program that knows what to observe. Callable: in float, as before.

    program: the folded program. groups: what shares parameters. group_of: the group of each point.
    states: one observer state per group; None where nothing is observed.
    Example:
        >>> import funct.array as xp
        >>> from funct import export
        >>> from funct import quant
        >>> x = xp.ones((2, 2), dtype=xp.float32)
        >>> w = 2.0 * x
        >>> program = export.export(lambda x: x @ w, (x,))
        >>> prepared = quant.prepare_pt2e(program, quant.int8_static())
        >>> prepared(x).tolist(), len(prepared.groups)  # of x, w and the result
        ([[4.0, 4.0], [4.0, 4.0]], 3)
    """

    program: ExportedProgram
    groups: tuple[Group, ...]
    group_of: Mapping[Point, int]
    states: tuple[Any, ...]

    @property
    def graph(self) -> Graph:
        """The folded float graph."""
        return self.program.graph

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the float program."""
        return self.program(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<PreparedProgram: {len(self.groups)} groups of quantized values>"


def prepare_pt2e(program: ExportedProgram, quantizer: Quantizer) -> PreparedProgram:
    """Fold the program and decide what is observed.

    Args:    program: from `export.export`, of the model in evaluation mode. quantizer: says what.
    Returns: a PreparedProgram for `calibrate`. Weights are observed already.
    Raises:  QuantizationError: when the quantizer's requests contradict each other, or there is
             nothing to quantize.
    Example:
        >>> import funct.array as xp
        >>> from funct import export
        >>> from funct import quant
        >>> x = xp.ones((2, 2), dtype=xp.float32)
        >>> w = 2.0 * x
        >>> program = export.export(lambda x: x @ w, (x,))
        >>> quant.prepare_pt2e(program, quant.int8_static())(x).tolist()  # still in float
        [[4.0, 4.0], [4.0, 4.0]]

    Source:  torchao's prepare_pt2e; ours returns a new value.
    """
    expect_program(QuantizationError, "prepare_pt2e: program", program)
    said = "a Quantizer, as int8_static() gives"
    expect_kind(QuantizationError, "prepare_pt2e: quantizer", quantizer, Quantizer, said)
    graph = fold_affine(eliminate_dead(fold_constants(inline_calls(program.graph))))
    graph = check(quantizer.transform_for_annotation(graph))
    annotations = quantizer.annotate(graph)
    quantizer.validate(graph, annotations)
    groups, group_of = _groups(annotations)
    constants = constants_of(graph)
    states = tuple([_first_state(g, constants) for g in groups])
    return PreparedProgram(attrs.evolve(program, graph=graph), groups, group_of, states)


def calibrate(prepared: PreparedProgram, batches: Iterable[tuple[Any, ...]]) -> PreparedProgram:
    """Observe the values that the batches lead to; the program stays as it is.

    Args:    batches: tuples of arguments of the program.
    Returns: a PreparedProgram that has seen these batches too.
    Raises:  QuantizationError: when a value to be quantized is not finite.
    Example:
        >>> import funct.array as xp
        >>> from funct import export
        >>> from funct import quant
        >>> x = xp.ones((2, 2), dtype=xp.float32)
        >>> w = 2.0 * x
        >>> program = export.export(lambda x: x @ w, (x,))
        >>> prepared = quant.prepare_pt2e(program, quant.int8_static("minmax"))
        >>> prepared = quant.calibrate(prepared, [(x,), (3.0 * x,)])
        >>> quant.convert_pt2e(prepared)(3.0 * x).tolist()
        [[12.0, 12.0], [12.0, 12.0]]
    """
    expect_prepared("calibrate: prepared", prepared)
    expect_kind(QuantizationError, "calibrate: batches", batches, Iterable, "a list of tuples")
    states = list(prepared.states)
    constants = constants_of(prepared.graph)
    moving = [
        (i, g.spec.observer(), [v for v in g.values if v not in constants])
        for i, g in enumerate(prepared.groups)
        if isinstance(g.spec, QuantizationSpec)
    ]
    for number, batch in enumerate(batches):
        argument, said = "calibrate: each of batches", "a tuple of arguments"
        expect_kind(QuantizationError, argument, batch, (tuple, list), said, "pass [(x,), ...]")
        run = Interpreter(prepared.graph)
        run.run(*prepared.program.flat_inputs(tuple(batch), {}))
        for i, observer, values in moving:
            for v in values:
                x = np.asarray(run.values[v])
                _check_finite(prepared, v, x, number)
                states[i] = observer.observe(states[i], x)
    return attrs.evolve(prepared, states=tuple(states))


def merge(a: PreparedProgram, b: PreparedProgram) -> PreparedProgram:
    """One program calibrated on what two copies of it have seen, a's batches first.

    Raises: QuantizationError: when they come from two calls of `prepare_pt2e`.
    Example:
        >>> import funct.array as xp
        >>> from funct import export
        >>> from funct import quant
        >>> x = xp.ones((2, 2), dtype=xp.float32)
        >>> w = 2.0 * x
        >>> program = export.export(lambda x: x @ w, (x,))
        >>> prepared = quant.prepare_pt2e(program, quant.int8_static("minmax"))
        >>> a, b = quant.calibrate(prepared, [(x,)]), quant.calibrate(prepared, [(3.0 * x,)])
        >>> quant.convert_pt2e(quant.merge(a, b))(3.0 * x).tolist()
        [[12.0, 12.0], [12.0, 12.0]]
    """
    expect_prepared("merge: a", a)
    expect_prepared("merge: b", b)
    if a.groups is not b.groups:
        raise QuantizationError("merge: both must come from one call of prepare_pt2e")
    constants = constants_of(a.graph)
    states = [
        x if x is None or _is_constant(g, constants) else g.spec.observer().merge(x, y)
        for g, x, y in zip(a.groups, a.states, b.states, strict=True)
    ]
    return attrs.evolve(a, states=tuple(states))


def expect_prepared(argument: str, given: object) -> None:
    """Raise QuantizationError, with the argument's name, unless a prepared program is given."""
    said, fix = "a PreparedProgram", "prepare_pt2e(program, quantizer) makes one"
    expect_kind(QuantizationError, argument, given, PreparedProgram, said, fix)


def describe(program: ExportedProgram, value: Var) -> str:
    """A value in words: the input's name, or the op that makes it."""
    for name, v in zip(program.input_names, program.graph.inputs, strict=True):
        if v is value:
            return f"input {name!r}"
    node = producers(program.graph).get(value)
    return f"the result of {node.name} ({value.name})" if node else f"constant {value.name}"


def _check_finite(prepared: PreparedProgram, v: Var, x: Any, number: int) -> None:
    if not np.all(np.isfinite(x)):
        node = producers(prepared.graph).get(v)
        raise QuantizationError(
            f"calibrate: {describe(prepared.program, v)} holds NaN or infinity in batch {number}",
            site=node.site if node else None,
        )


def _is_constant(group: Group, constants: Mapping[Var, Any]) -> bool:
    return all(v in constants for v in group.values)


def _first_state(group: Group, constants: Mapping[Var, Any]) -> Any:
    """The state before calibration: weights are known, activations are not."""
    if not isinstance(group.spec, QuantizationSpec):
        return None
    observer = group.spec.observer()
    state = observer.init()
    for v in group.values:
        if v in constants:
            x = np.asarray(constants[v])
            if not np.all(np.isfinite(x)):
                raise QuantizationError(f"prepare_pt2e: constant {v.name} holds NaN or infinity")
            state = observer.observe(state, x)
    return state


# which points share parameters -------------------------------------------------------------------


def _groups(annotations: Annotations) -> tuple[tuple[Group, ...], dict[Point, int]]:
    """Join the points that share, by request or because a value has one spec in several places."""
    specs: dict[Point, Spec] = {}
    implicit: list[Point] = []
    for node, a in annotations.items():
        asked: list[tuple[Point, Spec]] = [((v, node), s) for v, s in a.input_qspec_map.items()]
        if a.output_qspec is not None:
            asked.append(((node.results[0], None), a.output_qspec))
        for point, spec in asked:
            specs[point] = spec
            if a.allow_implicit_sharing:
                implicit.append(point)
    join = _Union(specs)
    for point, spec in specs.items():
        if isinstance(spec, SharedQuantizationSpec):
            join.union(point, _target(spec, specs))
    wanted = {
        join.root(p): s for p, s in specs.items() if not isinstance(s, SharedQuantizationSpec)
    }
    first: dict[tuple[Var, Spec | None], Point] = {}
    for point in implicit:
        join.union(point, first.setdefault((point[0], wanted.get(join.root(point))), point))
    return _collected(specs, join.root)


def _target(spec: SharedQuantizationSpec, specs: Mapping[Point, Spec]) -> Point:
    at = spec.edge_or_node
    point: Point = at if isinstance(at, tuple) else (at, None)
    if point not in specs:
        raise QuantizationError(
            f"prepare_pt2e: a SharedQuantizationSpec refers to {point[0].name}, "
            f"which is not annotated"
        )
    return point


class _Union:
    """Union-find over points."""

    def __init__(self, points: Iterable[Point]) -> None:
        self.parent = {p: p for p in points}

    def root(self, p: Point) -> Point:
        """The representative of p's group."""
        while self.parent[p] != p:
            p = self.parent[p]
        return p

    def union(self, p: Point, q: Point) -> None:
        """Put p and q into one group."""
        self.parent[self.root(p)] = self.root(q)


def _collected(
    specs: Mapping[Point, Spec], root: Callable[[Point], Point]
) -> tuple[tuple[Group, ...], dict[Point, int]]:
    members: dict[Point, list[Point]] = {}
    for point in specs:
        members.setdefault(root(point), []).append(point)
    groups: list[Group] = []
    group_of: dict[Point, int] = {}
    for points in members.values():
        concrete = [specs[p] for p in points if not isinstance(specs[p], SharedQuantizationSpec)]
        if not concrete:
            raise QuantizationError(
                f"prepare_pt2e: {points[0][0].name} shares its parameters with itself alone"
            )
        if any(s != concrete[0] for s in concrete):
            raise QuantizationError(
                f"prepare_pt2e: values that share parameters have different specs, "
                f"among them {points[0][0].name}"
            )
        group_of.update((p, len(groups)) for p in points)
        groups.append(Group(concrete[0], tuple(dict.fromkeys(v for v, _ in points))))
    return tuple(groups), group_of
