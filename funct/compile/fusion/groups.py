"""What can be of one nest of loops: the domain, what is full in it or one for each row, reductions.

A group has a domain of `size` elements in rows of `columns`. Within it a value is full or one for
each row; whatever has another shape is read from memory by an index map (`loops/views.py`), or
looked up in a table at an index that is a value of the loops.
`why_not` says of a node why no group can hold it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from funct.compile.gathered import is_lookup, lengths
from funct.compile.joins import is_concat
from funct.compile.loops.kernel import How, Over
from funct.compile.loops.scalars import ELEMENTS, HELD, printing, unsupported
from funct.compile.loops.views import VIEWS
from funct.graph import Guard, Node, Var

__all__ = [
    "MOST_COST", "MOST_WOVEN", "REDUCTIONS", "Group", "along", "arrays", "ends_loops", "is_apart",
    "is_weave", "outside", "reads", "reduction", "walked_through", "why_not",
]  # fmt: skip

REDUCTIONS: dict[str, How] = {
    "reduce_sum": "sum", "reduce_prod": "prod", "reduce_max": "max", "reduce_min": "min",
    "any": "any", "all": "all",
}  # fmt: skip

MOST_COST = 600  # of one group, in additions: code of one block is made in more than linear time
MOST_WOVEN = 16  # places of a last axis that are moved as whole vectors, and shuffled
_FLAT_ROW = 8192  # a reduction of everything is along one row up to here
_LEAST_ROW = 16  # elements that are looked up side by side: fewer are not worth rows of the loops


class Group:
    """Nodes in one nest of loops. columns: None while no value is one for each row. stretch: how
    many rows a reduction over stretches of them takes in, if there is one. lookups: those of nodes.
    """

    def __init__(self, size: int, columns: int | None = None) -> None:
        self.size = size
        self.columns = columns
        self.stretch: int | None = None
        self.nodes: list[Node] = []
        self.members: set[Var] = set()
        self.lookups: list[Node] = []
        self.cost = 0  # of one element, in additions
        self.weaves = False  # whether something in it is put side by side with others

    def is_full(self, v: Var) -> bool:
        """Whether v has an element at each place of the domain."""
        return math.prod(v.shape) == self.size

    def holds(self, node: Node, operand: Var) -> bool | int:
        """Whether an operand of a member can be a member: True, or if so many columns are a row."""
        over = reduction(node)
        if is_lookup(node):
            return self._holds_index(node, operand)
        narrow = math.prod(operand.shape)
        if over is not None:
            row = self.columns is not None and narrow * self.columns == self.size
            return narrow == self.size or (over == "all" and row)
        wide = math.prod(node.results[0].shape)
        if wide == narrow or (is_weave(node) and narrow == self.size):
            return True
        columns = _row_length(node.results[0].shape, operand.shape)
        if wide != self.size or columns is None or (narrow == 1 and self.size > _FLAT_ROW):
            return False
        return True if columns == self.columns else columns

    def _holds_index(self, lookup: Node, operand: Var) -> bool | int:
        """The same of what is looked up: a table is read from memory."""
        table, index = lookup.operands
        if operand is table or operand is not index:
            return False
        size, narrow = math.prod(lookup.results[0].shape), math.prod(operand.shape)
        if size == narrow:
            return True
        before, _, columns = lengths(lookup)
        if before != 1 or size != self.size or (narrow == 1 and size > _FLAT_ROW):
            return False
        return True if columns == self.columns else columns

    def has_rows_of(self, lookup: Node) -> bool:
        """Whether each row of the loops lies side by side in the table, or is one run of indices,
        and is long enough.
        """
        if not self.is_full(lookup.results[0]):
            return True
        runs = [n for n in lengths(lookup) if n != 1]
        if self.columns is None:
            return len(runs) < 2 or runs[-1] >= _LEAST_ROW
        return not runs or runs[-1] % self.columns == 0

    @property
    def has_its_rows(self) -> bool:
        """Whether that is so of all that its members look up."""
        return all(map(self.has_rows_of, self.lookups))

    def take(self, node: Node) -> None:
        """Make the node a member."""
        self.nodes.append(node)
        self.members.add(node.results[0])
        if is_lookup(node):
            self.lookups.append(node)
        self.weaves |= is_weave(node)
        found = printing(node)
        self.cost += 1 if found is None else found.cost


def reduction(node: Node) -> Over | None:
    """What a reduction is over; None for other nodes, and for axes with kept ones between them."""
    if node.name not in REDUCTIONS:
        return None
    shape, axes = node.operands[0].shape, node.params[0]  # type: ignore[union-attr]
    longer = [a for a, n in enumerate(shape) if n != 1]
    gone = [a for a in longer if a in axes]
    if not gone:
        return None
    if gone == longer:
        return "row" if math.prod(shape) <= _FLAT_ROW else "all"
    if gone == longer[-len(gone) :]:
        return "row"
    if gone == longer[: len(gone)]:
        return "column"
    return "stretch" if gone == longer[(k := longer.index(gone[0])) : k + len(gone)] else None


def is_apart(node: Node) -> bool:
    """Whether a reduction has axes with kept ones between them, so that loops hold it as several:
    the last ones first. In float16 the sums between would be rounded: it stays one.
    """
    if node.name not in REDUCTIONS or len(node.operands) != 1:
        return False
    x, out = node.operands[0], node.results[0]
    if not isinstance(x, Var) or 0 in x.shape or {x.dtype, out.dtype} - ELEMENTS.keys():
        return False
    gone = [a for a, n in enumerate(x.shape) if n != 1 and a in node.params[0]]
    wide = x.dtype.itemsize >= 4 or x.dtype.kind == "b"
    return wide and bool(gone) and reduction(node) is None


def is_weave(node: Node) -> bool:
    """Whether a node puts arrays side by side, each as one place of the last axis."""
    if not is_concat(node) or not 1 < len(node.operands) <= MOST_WOVEN:
        return False
    out = node.results[0]
    if node.params[0] != len(out.shape) - 1 or 0 in out.shape or out.dtype not in ELEMENTS:
        return False
    alike = all(isinstance(v, Var) and v.dtype == out.dtype for v in node.operands)
    places = len(node.operands)
    return alike and places == out.shape[-1] < math.prod(out.shape)


def ends_loops(node: Node) -> bool:
    """Whether nothing can read the node's result in the loops that make it."""
    return reduction(node) not in (None, "row") or is_weave(node)


def along(node: Node) -> tuple[int, int]:
    """Of a reduction, how many elements are one, and how many lie next to each other behind them
    that are not.
    """
    shape, axes = node.operands[0].shape, node.params[0]  # type: ignore[union-attr]
    last = max([a for a, n in enumerate(shape) if a in axes and n != 1])
    return math.prod([shape[a] for a in axes]), math.prod(shape[last + 1 :])


def _row_length(wide: Sequence[int], narrow: Sequence[int]) -> int | None:
    """Columns of a row of `wide` if `narrow` has one element for each row, else None."""
    lead = len(wide) - len(narrow)
    if lead < 0:
        return None
    narrow = (*[1] * lead, *narrow)
    k = len(wide)
    while k and narrow[k - 1] == 1:
        k -= 1
    return math.prod(wide[k:]) if tuple(narrow[:k]) == tuple(wide[:k]) else None


_reasons: WeakKeyDictionary[Node, str] = WeakKeyDictionary()  # a dozen passes ask for each


def why_not(node: Node) -> str:
    """Why the node is no part of loops; empty where it is."""
    found = _reasons.get(node)
    if found is None:
        found = _reasons[node] = _why_not(node)
    return found


def _why_not(node: Node) -> str:
    if not node.results:
        return "it has no result"
    out = node.results[0]
    if any(0 in v.shape for v in (*node.operands, *node.results) if isinstance(v, Var)):
        return "there are no elements"
    if node.name in REDUCTIONS:
        operand = node.operands[0]
        assert isinstance(operand, Var)
        if operand.dtype not in ELEMENTS or out.dtype not in ELEMENTS:
            return f"{operand.dtype} is computed by NumPy"
        if reduction(node) is None:
            return "it reduces axes with others between them"
        return ""
    if node.name in VIEWS:
        return "" if out.dtype in HELD else f"{out.dtype} is computed by NumPy"
    return "" if is_weave(node) else unsupported(node)


def outside(group: Group) -> list[Var]:
    """What members read from memory."""
    return [
        v for e in group.nodes for v in e.operands if v not in group.members and isinstance(v, Var)
    ]


def walked_through(group: Group) -> list[Var]:
    """What members read from memory element by element: not the tables that they look up in."""
    return [
        v
        for e in group.nodes
        for k, v in enumerate(e.operands)
        if isinstance(v, Var) and v not in group.members and not (is_lookup(e) and k == 0)
    ]


def arrays(step: Any, names: Collection[str]) -> list[Var]:
    """Operands and results of a step that is one of these ops, if all are arrays that hold
    something; else none.
    """
    if not isinstance(step, Node) or step.name not in names:
        return []
    held = [v for v in (*step.operands, *step.results) if isinstance(v, Var) and 0 not in v.shape]
    return held if len(held) == len(step.operands) + len(step.results) else []


def reads(step: Group | Node | Guard) -> list[Var]:
    """What a step reads of what others make."""
    if isinstance(step, Group):
        return list(outside(step))
    operands = (step.operand,) if isinstance(step, Guard) else step.operands
    return [v for v in operands if isinstance(v, Var)]
