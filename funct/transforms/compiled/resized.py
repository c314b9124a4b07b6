"""Functions that know their sizes as numbers, or need to know numbers that they are given: captured
for each, compiled as one program.

`len(x)`, `float(x.shape[0])`, `math.sqrt(n)` and NumPy's arrays of n elements are numbers to
Python, as are numbers among the arguments that it needs to know (others are kept open:
`numbered.py`) and numbers that it reads elsewhere, so each of them has a graph of its own. Graphs
that differ in sizes and numbers alone share their machine code: it knows no sizes, and numbers that
were seen to vary are handed to it. Loops over an axis of length 1 are others, where there are loops
at all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from funct.compile import Place, can_be_handed, handed_over, is_numpy_calls, numbers
from funct.graph import Call, Control, Graph, Guard, Node, Var, acts
from funct.transforms.compiled.arguments import Key
from funct.transforms.compiled.backends import Compile

__all__ = ["Alike", "Kin", "outline", "short_axes"]

_MOST = 256  # signatures that have paths: numbers seldom come again


def short_axes(graph: Graph) -> Hashable:
    """The axes of inputs that have less than two elements: code is made without them."""
    return tuple([(k, a, n) for k, v in enumerate(graph.inputs)
                  for a, n in enumerate(v.shape) if n < 2])  # fmt: skip


def outline(graph: Graph, *, inner: bool = False) -> Hashable | None:
    """What graphs of one program for several sizes have in common; None where that is not known.

    inner: of a branch, a loop or a call, into which no number is handed: there all of them count.
    """
    number: dict[Var, int] = {}
    lines: list[Hashable] = []

    def name(vs: Sequence[Var]) -> Hashable:
        for v in vs:
            number[v] = len(number)
        return tuple([(len(v.shape), v.dtype) for v in vs])

    held = [repr(x.data) for v, x in graph.constants if inner and not v.shape]
    kinds = [name(graph.inputs), name([v for v, _ in graph.constants]), tuple(held)]
    for e in graph.nodes:
        if isinstance(e, Guard):
            if e.of_elements or e.operand is None:
                return None
            lines.append((e.kind, number[e.operand], repr(e.expected)))
            continue
        bodies = _bodies(e)
        if None in bodies or acts(e):
            return None
        read = e.operands if isinstance(e, Node) else e.body.inputs
        operands = [
            number[a] if isinstance(a, Var) else _known(e, i, inner) for i, a in enumerate(read)
        ]
        params = _without_sizes(e.params) if isinstance(e, Node) else ()
        lines.append((e.name, tuple(operands), params, bodies, name(e.results)))
    return tuple(kinds), tuple(lines), tuple([number[v] for v in graph.outputs])


def _bodies(e: Node | Call) -> tuple[Hashable | None, ...]:
    """The outlines of the graphs in a branch, a loop or a call."""
    if isinstance(e, Call):
        return (outline(e.body, inner=True),)
    if not isinstance(e.primitive, Control):
        return ()
    return tuple([outline(g, inner=True) for _, g in e.primitive.bodies])


def _known(e: Node | Call, i: int, inner: bool) -> tuple[Any, ...]:
    """What is known of a number that is an operand."""
    a = e.operands[i]
    handed = not inner and isinstance(e, Node) and can_be_handed(e, i)
    return (type(a),) if handed else (type(a), repr(a))


def _without_sizes(tree: Any) -> Hashable:
    if isinstance(tree, tuple):
        return tuple([_without_sizes(t) for t in tree])
    return int if type(tree) is int else (type(tree), repr(tree))


class Kin:
    """Signatures that differ in sizes and in Python's numbers alone, and what their graphs have in
    common. several: whether the numbers were others at some call.
    """

    __slots__ = ("_alike", "_fresh", "_keys", "_static", "several")

    def __init__(self, static: Hashable) -> None:
        self._static = static
        self.several = False
        self._keys: dict[Key, None] = {}
        self._alike: dict[Hashable, Alike] = {}
        self._fresh: list[Graph] = []  # that were not looked at so far

    def see(self, key: Key) -> list[Key]:
        """Note a signature; those of which there are too many by now, the oldest."""
        self.several |= key.static != self._static
        self._keys[key] = None
        gone = list(self._keys)[:-_MOST]
        for k in gone:
            self._keys.pop(k, None)
        return gone

    def like(self, graph: Graph, asked: bool) -> tuple[Alike, bool] | None:
        """The graphs that this one is like, and whether their code serves it; None without any, or
        if it is not asked for.
        """
        self._fresh.append(graph)
        found: tuple[Alike, bool] | None = None
        while asked and self._fresh:
            g = self._fresh.pop(0)
            known = outline(g)
            alike = self._alike.get(known)
            if alike is None and known is not None:
                self._alike[known] = Alike(g)
            found = None if alike is None else (alike, alike.takes(g))
        return found


class Alike:
    """Graphs with one outline: the numbers in the first, and where others have other ones.

    looped: the short axes of those that may be machine code. called: whether the last one that was
    compiled is NumPy calls.
    """

    __slots__ = ("called", "first", "looped", "varying")

    def __init__(self, graph: Graph) -> None:
        self.first = numbers(graph)
        self.varying: frozenset[Place] = frozenset()
        self.looped = {short_axes(graph)}
        self.called = False

    def takes(self, graph: Graph) -> bool:
        """Whether what was handed over so far is all that varies; else more is from now on."""
        found = numbers(graph)
        other = {at for at, n in self.first.items() if repr(n) != repr(found[at])}
        known = other <= self.varying
        self.varying |= other
        return known

    def shares(self, graph: Graph) -> bool:
        """Whether no machine code was made for a graph but that of others."""
        axes = short_axes(graph)
        known = self.called or axes in self.looped
        self.looped |= set() if self.called else {axes}
        self.called = False
        return known

    def compiling(self, compile: Compile, alike: Graph) -> Compile:
        """`compile`; that graph with the numbers that vary handed over."""
        varying = self.varying

        def compiled(graph: Graph, guards: bool) -> Callable[..., Any]:
            if graph is not alike:
                return compile(graph, guards)
            open_, values = handed_over(graph, varying)
            run = compile(open_, guards)
            self.called = is_numpy_calls(run)
            return (lambda *buffers: run(*buffers, *values)) if values else run

        return compiled
