"""Pytrees: nested containers whose leaves are arrays. Tuples, lists, dicts, named tuples, slices
(of their bounds), None, attrs classes, dataclasses, and every class given to `register`.

An attrs class or a dataclass becomes a pytree when it is first met where arrays are asked for: by a
transform, or here, if an array is in it. Before that its objects are leaves, and so they stay if
none of their classes holds an array: a record of sizes is a value like any other.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import optree

from funct import pytree
from funct.deep_tree import DeepStructure
from funct.errors import TreeError
from funct.pytree import IsLeaf, Structure, plain, same_structure, unflatten
from funct.records import is_record_class, is_static, opened, register, remedy, static_field

__all__ = [
    "Structure", "all", "broadcast_prefix", "flatten", "flatten_with_path", "is_static", "leaves",
    "map", "map_with_path", "one_level", "reduce", "register", "remedy", "same_structure",
    "static_field", "structure", "transpose", "unflatten",
]  # fmt: skip

_MOST = 1000  # classes that are kept in mind
_never: set[type] = set()  # classes of leaves that were looked at, and are no records


def _is_array(x: Any) -> bool:
    return hasattr(x, "__array_namespace__") or isinstance(x, np.ndarray)


def _met(found: list[Any]) -> bool:
    """Whether classes among leaves became pytrees just now."""
    if _never.issuperset(builtins.map(type, found)):
        return False
    if opened(found, _is_array):
        return True
    if len(_never) < _MOST:
        _never.update([cls for cls in builtins.map(type, found) if not is_record_class(cls)])
    return False


def flatten(
    tree: Any, is_leaf: IsLeaf = None, *, none_is_leaf: bool = False
) -> tuple[list[Any], Structure]:
    """Leaves in a fixed order, and the structure that holds them.

    Args: is_leaf: whether a part of the tree is taken as a leaf, here and in every function below.

    Example:
        >>> from funct import tree
        >>> tree.flatten({"b": 2, "a": (1, None)})[0]
        [1, 2]
    """
    found, spec = pytree.flatten(tree, is_leaf, none_is_leaf=none_is_leaf)
    return flatten(tree, is_leaf, none_is_leaf=none_is_leaf) if _met(found) else (found, spec)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves alone.

    Example:
        >>> from funct import tree
        >>> tree.leaves({"b": 2, "a": (1, None)})  # keys of dicts in sorted order; None is no leaf
        [1, 2]
    """
    found = pytree.leaves(tree, is_leaf)
    return leaves(tree, is_leaf) if _met(found) else found


def structure(tree: Any, is_leaf: IsLeaf = None) -> Structure:
    """The structure alone.

    Example:
        >>> from funct import tree
        >>> tree.structure((1, [2])) == tree.structure((3, [4])), tree.structure([1, 2]).num_leaves
        (True, 2)
    """
    return flatten(tree, is_leaf)[1]


def map(
    fun: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: IsLeaf = None,
    none_is_leaf: bool = False,
) -> Any:
    """fun of each leaf, and of the leaves at the same place of other trees of equal structure.

    Raises: TreeError: when another tree has another structure.
    Example:
        >>> from funct import tree
        >>> tree.map(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
        {'a': 11, 'b': (22,)}
    """
    values, spec = flatten(tree, is_leaf, none_is_leaf=none_is_leaf)
    return pytree.parallel(fun, spec, values, rest)


def reduce(
    fun: Callable[[Any, Any], Any], tree: Any, initial: Any = ..., is_leaf: IsLeaf = None
) -> Any:
    """Fold the leaves from the left; without an initial value, from the first of them.

    Raises: TreeError: for no leaves and no initial value.

    Example:
        >>> from funct import tree
        >>> tree.reduce(lambda total, x: total + x, {"a": 1, "b": (2, 3)}, 0)
        6
    """
    found = leaves(tree, is_leaf)
    if initial is ...:
        if not found:
            raise TreeError("reduce: the tree has no leaves", fix="give an initial value")
        return functools.reduce(fun, found)
    return functools.reduce(fun, found, initial)


def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether every leaf is true.

    Example:
        >>> from funct import tree
        >>> tree.all({"a": True, "b": (True, 0)}), tree.all(())
        (False, True)
    """
    return builtins.all(leaves(tree, is_leaf))


def transpose(outer: Structure, inner: Structure, tree: Any) -> Any:
    """An outer tree of inner trees as an inner tree of outer trees.

    Raises: TreeError: when the tree is not made of those two.
    Example:
        >>> from funct import tree
        >>> pairs = [{"x": 1, "y": 2}, {"x": 3, "y": 4}]
        >>> tree.transpose(tree.structure([0, 0]), tree.structure(pairs[0]), pairs)
        {'x': [1, 3], 'y': [2, 4]}
    """
    if not outer.num_leaves or not inner.num_leaves:
        return unflatten(inner, [])
    if isinstance(outer, DeepStructure) or isinstance(inner, DeepStructure):
        raise TreeError("transpose: containers are nested too deeply")
    try:
        return optree.tree_transpose(outer, inner, tree)
    except (TypeError, ValueError):
        expected, got = outer.compose(inner), structure(tree)
        raise TreeError(
            f"transpose: expected the structure {plain(expected)}, got {plain(got)}"
        ) from None


def flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[str, Any]]:
    """(dotted path, leaf) pairs: keys, indices and attrs field names joined by dots.

    Example:
        >>> from funct import tree
        >>> tree.flatten_with_path({"layers": [{"w": 1}, {"w": 2}]})
        [('layers.0.w', 1), ('layers.1.w', 2)]
    """
    found = pytree.flatten_with_path(tree, is_leaf)
    return flatten_with_path(tree, is_leaf) if _met([x for _, x in found]) else found


def map_with_path(fun: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """fun(dotted path, leaf) of each leaf, and of the leaves at its place in other trees.

    Raises: TreeError: when another tree has another structure.
    Example:
        >>> from funct import tree
        >>> tree.map_with_path(lambda path, x: f"{path}={x}", {"w": [1, 2], "b": 3})
        {'w': ['w.0=1', 'w.1=2'], 'b': 'b=3'}
    """
    named = flatten_with_path(tree, is_leaf)
    paths = iter([path for path, _ in named])
    spec, values = structure(tree, is_leaf), [v for _, v in named]
    return pytree.parallel(lambda *xs: fun(next(paths), *xs), spec, values, rest)


def broadcast_prefix(
    name: str,
    prefix: Any,
    tree: Any,
    of: str = "the tree it describes",
    *,
    none_is_leaf: bool = False,
) -> list[Any]:
    """For each leaf of tree the leaf of prefix that stands above it; `name` and `of` say whose.

    Raises: TreeError: when prefix is not the upper part of tree.
    Example:
        >>> from funct import tree
        >>> tree.broadcast_prefix("in_axes", (0, None), ([1, 2], 3), none_is_leaf=True)
        [0, 0, None]
    """
    leaves(tree)  # whose classes are known from here on
    return pytree.broadcast_prefix(name, prefix, tree, of, none_is_leaf=none_is_leaf)


def one_level(tree: Any) -> tuple[list[tuple[str, Any]], Callable[[list[Any]], Any]] | None:
    """The (name, child) pairs of the outermost node and what rebuilds it; None for a leaf.

    Example:
        >>> from funct import tree
        >>> children, rebuild = tree.one_level({"a": [1, 2], "b": 3})
        >>> children, tree.one_level(3)
        ([('a', [1, 2]), ('b', 3)], None)
    """
    found = pytree.one_level(tree)
    return one_level(tree) if found is None and _met([tree]) else found
