"""Pytrees that are nested deeper than optree's recursion goes: the same walks, without recursion.

`funct/pytree.py` comes here when optree says that a tree is too deep, and never else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import optree
from msgspec import Struct

from funct.records import NAMESPACE

__all__ = ["DeepStructure", "broadcast_prefix", "flatten", "flatten_with_path"]


class _Container(Struct, frozen=True, eq=False):
    """One container of a tree: its class, what it has besides children, and how it is rebuilt."""

    cls: type
    meta: Any
    names: tuple[Any, ...]
    build: Callable[[Any, Any], Any]

    def like(self, other: _Container | None) -> bool:
        """Whether both have one class, one number of children and the same rest."""
        return (
            other is not None
            and self.cls is other.cls
            and len(self.names) == len(other.names)
            and bool(self.meta == other.meta)
        )


def _opened(
    tree: Any, none_is_leaf: bool, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[_Container, list[Any]] | None:
    """The container and its children; None for a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return None
    if optree.tree_is_leaf(tree, none_is_leaf=none_is_leaf, namespace=NAMESPACE):
        return None
    children, meta, names, build = optree.tree_flatten_one_level(
        tree, none_is_leaf=none_is_leaf, namespace=NAMESPACE
    )
    return _Container(type(tree), meta, tuple(names), build), children


class DeepStructure:
    """The structure of a deep tree: its containers (None: a leaf), each before its children."""

    __slots__ = ("nodes", "none_is_leaf", "num_leaves")

    def __init__(self, nodes: tuple[_Container | None, ...], none_is_leaf: bool) -> None:
        self.nodes = nodes
        self.none_is_leaf = none_is_leaf
        self.num_leaves = sum(n is None for n in nodes)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves."""
        given = list(leaves)
        if len(given) != self.num_leaves:
            raise ValueError(f"expected {self.num_leaves} leaves, got {len(given)}")
        done: list[Any] = []
        for node in reversed(self.nodes):
            if node is None:
                done.append(given.pop())
                continue
            n = len(node.names)
            children = done[len(done) - n :][::-1]
            del done[len(done) - n :]
            done.append(node.build(node.meta, children))
        return done[0]

    def children(self) -> list[DeepStructure]:
        """The structures of the outermost container's children."""
        out, at = [], 1
        for _ in self.nodes[0].names if self.nodes[0] is not None else ():
            start, missing = at, 1
            while missing:
                node = self.nodes[at]
                missing += (0 if node is None else len(node.names)) - 1
                at += 1
            out.append(DeepStructure(self.nodes[start:at], self.none_is_leaf))
        return out

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """What stands in tree where this structure has leaves."""
        found: list[Any] = []
        todo = [tree]
        for node in self.nodes:
            part = todo.pop()
            if node is None:
                found.append(part)
                continue
            opened = _opened(part, self.none_is_leaf)
            if opened is None or not node.like(opened[0]):
                raise ValueError(f"expected {node.cls.__name__}, got {type(part).__name__}")
            todo.extend(reversed(opened[1]))
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeepStructure) or len(self.nodes) != len(other.nodes):
            return False
        pairs = zip(self.nodes, other.nodes, strict=True)
        return all((a is None and b is None) or (a is not None and a.like(b)) for a, b in pairs)

    def __hash__(self) -> int:
        return hash(tuple([None if n is None else (n.cls, len(n.names)) for n in self.nodes]))

    def __repr__(self) -> str:
        return f"PyTreeSpec(nested too deeply to be shown, {self.num_leaves} leaves)"


def flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None, *, none_is_leaf: bool = False
) -> tuple[list[Any], DeepStructure]:
    """Leaves in optree's order, and the structure."""
    leaves: list[Any] = []
    nodes: list[_Container | None] = []
    todo = [tree]
    while todo:
        part = todo.pop()
        opened = _opened(part, none_is_leaf, is_leaf)
        if opened is None:
            leaves.append(part)
            nodes.append(None)
        else:
            nodes.append(opened[0])
            todo.extend(reversed(opened[1]))
    return leaves, DeepStructure(tuple(nodes), none_is_leaf)


def flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Iterator[tuple[str, Any]]:
    """(dotted path, leaf) pairs."""
    todo: list[tuple[str, Any]] = [("", tree)]
    while todo:
        path, part = todo.pop()
        opened = _opened(part, False, is_leaf)
        if opened is None:
            yield path, part
            continue
        node, children = opened
        pairs = zip(node.names, children, strict=True)
        todo += [(f"{path}.{k}" if path else str(k), c) for k, c in pairs][::-1]


def broadcast_prefix(prefix: Any, tree: Any, *, none_is_leaf: bool = False) -> list[Any]:
    """For each leaf of tree the leaf of prefix that stands above it, or at its place."""
    found: list[Any] = []
    todo = [(prefix, tree)]
    while todo:
        above, part = todo.pop()
        outer = _opened(above, none_is_leaf)
        if outer is None:
            leaves, _ = flatten(part, none_is_leaf=none_is_leaf)
            found += [above] * len(leaves)
            continue
        inner = _opened(part, none_is_leaf)
        if inner is None or not outer[0].like(inner[0]):
            raise ValueError(f"expected {type(above).__name__}, got {type(part).__name__}")
        todo += [*zip(outer[1], inner[1], strict=True)][::-1]
    return found
