"""`ExportedProgram`: a graph with the trees of its arguments and results. A value, and callable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from funct import pytree
from funct.array.trees import flat_arrays
from funct.errors import DTypeError, FunctError, ShapeError, TreeError, expect_kind
from funct.graph.ir import Graph, Var
from funct.graph.run import Interpreter

__all__ = ["ExportedProgram", "Signature", "expect_program"]


@attrs.frozen
class Signature:
    """Names and types of a program's inputs and outputs, in order."""

    inputs: tuple[tuple[str, Any], ...]
    outputs: tuple[tuple[str, Any], ...]


@attrs.frozen(eq=False, repr=False)
class ExportedProgram:
    """A captured function of trees. It takes every transform, like the function it came from.

    graph: the flat function. in_spec: structure of (args, kwargs). out_spec: structure of the
    result.
    input_names, output_names: one per leaf. constant_names: graph name of a constant to the dotted
    path of the parameter it was ("0.weight").
    Example:
        >>> import funct.array as xp
        >>> from funct import export
        >>> program = export.export(lambda p, x: p["w"] * x, ({"w": xp.ones(2)}, xp.ones(2)))
        >>> program.input_names, [node.name for node in program.graph.nodes]
        (('p.w', 'x'), ['multiply'])
        >>> program({"w": xp.asarray([2.0, 3.0])}, xp.ones(2)).tolist()
        [2.0, 3.0]
    """

    graph: Graph
    in_spec: pytree.Structure
    out_spec: pytree.Structure
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    constant_names: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def signature(self) -> Signature:
        """Names and types of inputs and outputs."""
        return Signature(
            tuple([(n, v.aval) for n, v in zip(self.input_names, self.graph.inputs, strict=True)]),
            tuple(
                [(n, v.aval) for n, v in zip(self.output_names, self.graph.outputs, strict=True)]
            ),
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it; raises ShapeError, DTypeError, TreeError or GuardError for other inputs."""
        return self.out_spec.unflatten(Interpreter(self.graph).run(*self.flat_inputs(args, kwargs)))

    def flat_inputs(self, args: Any, kwargs: Any) -> list[Any]:
        """The leaves of a call's arguments, checked against the signature."""
        leaves, spec = flat_arrays((args, kwargs))
        if spec != self.in_spec:
            raise TreeError(f"program: expected arguments {self.in_spec}, got {spec}")
        for name, v, x in zip(self.input_names, self.graph.inputs, leaves, strict=True):
            _check_input(name, v, x)
        self._check_sizes(leaves)
        return leaves

    def _check_sizes(self, leaves: list[Any]) -> None:
        """One symbol is one length, on whichever axes it stands."""
        sizes = {s.name: leaves[s.input].shape[s.axis] for s in self.graph.symbols}
        for name, v, x in zip(self.input_names, self.graph.inputs, leaves, strict=True):
            for n, m in zip(v.shape, x.shape, strict=True):
                if sizes and sizes.get(str(n), m) != m:
                    raise ShapeError(
                        f"program: input {name!r} has {n} = {m}, another input has {n} = "
                        f"{sizes[str(n)]}"
                    )

    def __str__(self) -> str:
        return str(self.graph)

    def __repr__(self) -> str:
        return (
            f"<ExportedProgram ({', '.join(self.input_names)}) -> ({', '.join(self.output_names)})>"
        )


def _check_input(name: str, v: Var, x: Any) -> None:
    fits = len(x.shape) == len(v.shape) and all(
        not isinstance(n, int) or n == m for n, m in zip(v.shape, x.shape, strict=True)
    )
    if not fits:
        shown = "(" + ", ".join(str(n) for n in v.shape) + ")"
        raise ShapeError(f"program: input {name!r} must have shape {shown}, got {tuple(x.shape)}")
    if x.dtype != v.dtype:
        raise DTypeError(f"program: input {name!r} must be {v.dtype}, got {x.dtype}")


def expect_program(error: type[FunctError], argument: str, given: object) -> None:
    """Raise the error, with the argument's name, unless a program is given."""
    fix = "export.export(fun, args) makes one" if callable(given) else None
    expect_kind(error, argument, given, ExportedProgram, "an ExportedProgram", fix)
