"""The graph IR: immutable, typed, in single assignment.

Four kinds of entries: inputs, constants, nodes (what is computed) and outputs. A node is one of

- `Node`: a primitive applied to operands; branches and loops are nodes whose primitive, a
  `Control`, holds graphs of its own;
- `Call`: a function with its own derivative rules, kept as a leaf, with its body for those who
  inline;
- `Guard`: a decision that Python took on a value or on a size; a run in which it does not hold has
  left the path that this graph describes.

Shapes may hold symbolic `Size`s; `symbols` says where each symbol is read off. Reads best after
`core/primitive.py`; next is `capture.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import attrs
import numpy as np

from funct.array import Array
from funct.core import Number, Primitive, Region, ShapeDtype, Size
from funct.errors import ExportError
from funct.source import Site

if TYPE_CHECKING:
    from funct.graph.draw import Drawing

__all__ = ["Call", "Control", "Entry", "Graph", "Guard", "Node", "Symbol", "Var", "acts"]


@attrs.frozen(eq=False)
class Var:
    """A typed name. Two Vars are the same only if they are the same object."""

    name: str
    shape: tuple[Any, ...]
    dtype: np.dtype[Any]

    @property
    def aval(self) -> ShapeDtype:
        """Shape and dtype."""
        return ShapeDtype(self.shape, self.dtype)


Ref = Var | Number


@attrs.frozen(eq=False)
class Node:
    """results = primitive(*operands, *params)."""

    primitive: Primitive
    operands: tuple[Ref, ...]
    params: tuple[Any, ...]
    results: tuple[Var, ...]
    site: Site | None = None
    name: str = attrs.field(init=False)  # of what is called; passes ask for it all the time

    @name.default
    def _named(self) -> str:
        return self.primitive.name

    @property
    def reads(self) -> tuple[Var, ...]:
        """The values it needs."""
        return tuple([a for a in self.operands if isinstance(a, Var)])


@attrs.frozen(eq=False)
class Call:
    """results = region(*operands); `body` computes the same from primitives.

    The body may read further Vars of the enclosing graph; they are its inputs after the operands.
    takes: how many operands the function has, whatever a call is changed to.
    """

    region: Region
    operands: tuple[Var, ...]
    results: tuple[Var, ...]
    body: Graph
    site: Site | None = None
    takes: int = attrs.field(kw_only=True)

    @takes.default
    def _given(self) -> int:
        return len(self.operands)

    @property
    def name(self) -> str:
        """Name of what is called."""
        return self.region.name

    @property
    def reads(self) -> tuple[Var, ...]:
        """The values it needs, those that its body takes from outside included."""
        return (*self.operands, *self.body.inputs)


@attrs.frozen(eq=False, repr=False)
class Control(Primitive):
    """A primitive made for one place, whose implementation is graphs: a branch or a loop.

    It is in no catalogue and has no parameters. bodies: its graphs, by name. kind: what made it;
    it holds the counts that say which operand is what.
    """

    bodies: tuple[tuple[str, Graph], ...]
    kind: Any

    def __reduce__(self) -> Any:
        from funct.graph.controls import made_again, written  # it reads this module

        form = written(self)
        if form is None:
            raise ExportError(f"pickle: {self.name} holds functions of its own")
        return made_again, (form,)


# a polynomial in symbols that equals a number; a test such as ((N) % (2)) == 0 fixes no size
_ONE_LENGTH = r"[\w*+ -]+ == -?\d+"

GuardKind = Literal["bool", "int", "float", "complex", "index", "array", "ndarray", "size"]


@attrs.frozen(eq=False)
class Guard:
    """A decision: `kind` of the operand was `expected`.

    For "array" all elements were asked for, and for "ndarray" they went where no transform follows,
    so that no derivative and no batch may lead there. For "size" there is no operand and `expected`
    is an expression over symbols that must hold; `asked` says that the number itself was needed.
    """

    kind: GuardKind
    operand: Var | None
    expected: Any
    site: Site | None = None
    asked: bool = False

    @property
    def of_elements(self) -> bool:
        """Whether all elements of the operand were asked for."""
        return self.kind in ("array", "ndarray")

    @property
    def fixes_size(self) -> bool:
        """Whether it binds a size to a number: one was asked for, or compared and equal."""
        equal = self.kind == "size" and re.fullmatch(_ONE_LENGTH, self.expected) is not None
        return self.asked or equal

    @property
    def text(self) -> str:
        """What was decided, without the operand's name."""
        return str(self.expected) if self.kind == "size" else f"{self.kind}() == {self.expected!r}"


Entry = Node | Call | Guard


@attrs.frozen
class Symbol:
    """A symbolic size: its name, and the input and axis it is read off."""

    name: str
    input: int
    axis: int


@attrs.frozen(eq=False, repr=False)
class Graph:
    """A captured function of flat inputs. Calling it interprets it, under any transform.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> graph = ft.make_graph(lambda x: xp.sum(x * x))(xp.asarray([1.0, 2.0]))
        >>> [node.primitive.name for node in graph.nodes], float(graph(xp.asarray([3.0, 4.0]))[0])
        (['multiply', 'reduce_sum'], 25.0)
    """

    inputs: tuple[Var, ...]
    constants: tuple[tuple[Var, Array], ...]
    nodes: tuple[Entry, ...]
    outputs: tuple[Var, ...]
    symbols: tuple[Symbol, ...] = ()

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """Run on arrays or tracers; a guard that does not hold raises GuardError."""
        from funct.graph.run import Interpreter  # the runner reads this module

        return Interpreter(self).run(*args)

    def takes(self, shapes: Sequence[Sequence[Any]]) -> bool:
        """Whether inputs of these shapes have the sizes that are no symbols. Where there are no
        elements programs differ: symbols stand for some.
        """
        return not self.symbols or (
            all(shapes[s.input][s.axis] != 0 for s in self.symbols)
            and all(
                n == m
                for v, shape in zip(self.inputs, shapes, strict=True)
                for n, m in zip(v.shape, shape, strict=True)
                if not isinstance(n, Size)
            )
        )

    def fixed_sizes(self) -> list[Guard]:
        """Guards that bind a symbolic size to a number, those in the bodies of calls included."""
        found: list[Guard] = []
        for e in self.nodes:
            if isinstance(e, Guard) and e.fixes_size:
                found.append(e)
            elif isinstance(e, Call):
                found += e.body.fixed_sizes()
        return found

    def to_json(self) -> str:
        """The graph as one JSON text with its constants; see `funct.graph.json_form.to_json`."""
        from funct.graph.json_form import to_json

        return to_json(self)

    @staticmethod
    def from_json(text: str) -> Graph:
        """The graph that `to_json` wrote, checked; FileFormatError for anything else."""
        from funct.graph.json_form import from_json

        return from_json(text)

    def draw(self, title: str = "graph") -> Drawing:
        """A picture, with `.svg`, `.html`, `.dot` and `.save(path)`; notebooks show it."""
        from funct.graph.draw import drawn

        return drawn(title, self)

    def __copy__(self) -> Graph:
        return self

    def __deepcopy__(self, memo: Any) -> Graph:
        return self

    def __reduce__(self) -> Any:
        """Pickled with the bodies of calls in their places: their rules are functions."""
        from funct.graph.passes import inline_calls  # passes read this module

        g = inline_calls(self)
        return Graph, (g.inputs, g.constants, g.nodes, g.outputs, g.symbols)

    def __str__(self) -> str:
        from funct.graph.show import show

        return show(self)

    def __repr__(self) -> str:
        counts = f"{len(self.inputs)} inputs, {len(self.nodes)} nodes, {len(self.outputs)} outputs"
        return f"<Graph: {counts}>"


def acts(what: Graph | Entry) -> bool:
    """Whether it does something besides its results."""
    if isinstance(what, Graph):
        return any(acts(e) for e in what.nodes)
    if isinstance(what, Call):
        return acts(what.body)
    return isinstance(what, Node) and what.primitive.effect
