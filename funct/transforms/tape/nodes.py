"""The tape's nodes, as the engine walks them and as people look at them.

A node costs five slots on the eager path. What is wanted only now and then (the call site) is set
by whoever asks for it; names, parents and saved values are read off the edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, ClassVar

from funct.array import Tensor
from funct.core import Value
from funct.source import Site

if TYPE_CHECKING:
    from funct.core.level import Ways
    from funct.transforms.reverse import Reverse

__all__ = [
    "CallPull",
    "Node",
    "Packed",
    "ReverseTracer",
    "SizeError",
    "Slots",
    "Types",
    "Composed",
    "sink",
    "walk",
]


class Packed:
    """A saved value that a `pack` function has put away; `restore` gives it back."""

    __slots__ = ("restore",)

    def __init__(self, restore: Any) -> None:
        self.restore = restore


class SizeError(Exception):
    """A body needs symbols that are lengths of none of its inputs."""

    def __init__(self, sizes: Sequence[Any]) -> None:
        super().__init__("sizes that cannot be read off")
        self.sizes = tuple(sizes)


class Node:
    """One linear map of the tape.

    Attributes: shape, dtype: of its value (tuples, for an op with several results). site: the
    user's line, where it was asked for (`draw_graph`, `detect_anomaly`, capture), else None.
    """

    __slots__ = ("dtype", "edges", "prim", "serial", "shape", "site", "label")

    edges: Any
    serial: Any
    prim: Any
    shape: Any
    dtype: Any
    site: Site | None
    label: str

    @property
    def name(self) -> str:
        """The op's name, or that of the function that was called; `input` for a leaf."""
        return getattr(self, "label", None) or str(self.prim.name)

    @property
    def sequence(self) -> int:
        """Its place in the order of recording; backward visits falling numbers."""
        return int(self.serial)

    @property
    def next(self) -> tuple[Node, ...]:
        """The nodes that its pulls pass cotangents to, one per traced operand."""
        return tuple([parent for parent, _, _ in self.edges])

    @property
    def saved(self) -> tuple[Any, ...]:
        """The arrays that its pulls keep, each once, unpacked."""
        found: dict[int, Any] = {}
        for _, _, kept in self.edges:
            for k in kept:
                if isinstance(k, Packed):
                    k = k.restore()
                if isinstance(k, Value):
                    found.setdefault(id(k), k)
        return tuple(found.values())

    def __repr__(self) -> str:
        where = f" {self.where}" if self.where is not None else ""
        return f"<node {self.sequence} {self.name} {self.dtype}{self.shape}{where}>"

    @property
    def where(self) -> Site | None:
        """The user's line, or None where it was not asked for."""
        return getattr(self, "site", None)


class ReverseTracer(Tensor):
    """A value on the tape."""

    __slots__ = ("level", "node", "value")

    ways: ClassVar[Ways]
    value: Any
    node: Node
    level: Reverse

    @property
    def shape(self) -> Any:
        """Lengths of the axes: the node has them, whatever stands below."""
        return self.node.shape

    @property
    def dtype(self) -> Any:
        """Data type of the elements."""
        return self.node.dtype

    def __repr__(self) -> str:
        return f"ReverseTracer({self.value!r})"


class sink:
    """Stands for the primitive of nodes that are none: leaves, calls and their results."""

    name = "input"
    masks = False
    spread = None
    results = 1


class Composed:
    """Stands for the primitive of a node that is a composition of one real result.

    pull(g, *kept): the cotangents of the operands on the tape, or that of the only one. masked: the
    same below ops that make structural zeros.
    """

    masks = False
    spread = None
    results = 1

    name: str
    pull: Callable[..., Any]
    masked: Callable[..., Any]


class CallPull:
    """The pull of a call that has another one below ops that make structural zeros."""

    __slots__ = ("masked", "run")

    def __init__(self, run: Callable[..., Any], masked: Callable[..., Any]) -> None:
        self.run, self.masked = run, masked

    def __call__(self, *operands: Any) -> Any:
        return self.run(*operands)


class Slots(dict[int, Any]):
    """Cotangent of a node with several results: index to cotangent; adding joins them."""

    shape = None
    dtype = None

    def __add__(self, other: Slots) -> Slots:
        out = Slots(self)
        for k, v in other.items():
            out[k] = out[k] + v if k in out else v
        return out


class Types:
    """Types of a node with several results, for the tape."""

    __slots__ = ("dtype", "shape")

    def __init__(self, values: Sequence[Any]) -> None:
        self.shape = tuple([v.shape for v in values])
        self.dtype = tuple([v.dtype for v in values])


def walk(roots: Iterable[Node]) -> Iterator[Node]:
    """The nodes that roots depend on, each once, in the order in which backward visits them."""
    heap: list[Any] = []
    known: dict[Any, Node] = {}
    for root in roots:
        if root.serial not in known:
            known[root.serial] = root
            heappush(heap, -root.serial)
    while heap:
        node = known[-heappop(heap)]
        yield node
        for parent, _, _ in node.edges:
            if parent.serial not in known:
                known[parent.serial] = parent
                heappush(heap, -parent.serial)
