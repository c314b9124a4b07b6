"""The walks over pytrees, as funct itself takes them: `funct.tree` is what users call.

The walking is optree's, and where a tree is too deep for it, that of `funct/deep_tree.py`. An
object of a class that optree has not been told of is a leaf here, of an attrs class or a dataclass
too: who cannot use such a leaf asks `opened` (`funct/records.py`), and nobody else looks at leaves.
"""

from __future__ import annotations

import builtins
import reprlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import optree

from funct import deep_tree
from funct.deep_tree import DeepStructure
from funct.errors import TreeError
from funct.records import NAMESPACE

__all__ = [
    "IsLeaf", "Structure", "broadcast_prefix", "flatten", "flatten_with_path", "leaves", "map",
    "one_level", "parallel", "plain", "same_structure", "structure", "unflatten",
]  # fmt: skip

Structure = optree.PyTreeSpec | DeepStructure
IsLeaf = Callable[[Any], bool] | None


def flatten(
    tree: Any, is_leaf: IsLeaf = None, *, none_is_leaf: bool = False
) -> tuple[list[Any], Structure]:
    """Leaves in a fixed order, and the structure that holds them."""
    try:
        return optree.tree_flatten(tree, is_leaf, none_is_leaf=none_is_leaf, namespace=NAMESPACE)
    except RecursionError as error:
        _expect_depth(error)
        return deep_tree.flatten(tree, is_leaf, none_is_leaf=none_is_leaf)


def _expect_depth(error: RecursionError) -> None:
    """The walking is recursive C code with a limit; a recursion of the user's keeps its error."""
    if "tree" not in str(error):
        raise error


def unflatten(spec: Structure, values: Iterable[Any]) -> Any:
    """The tree of that structure with these leaves.

    Raises: TreeError: for another number of leaves.
    Example:
        >>> from funct import tree
        >>> leaves, spec = tree.flatten({"a": 1, "b": (2, 3)})
        >>> tree.unflatten(spec, [10 * v for v in leaves])
        {'a': 10, 'b': (20, 30)}
    """
    try:
        return spec.unflatten(values)
    except ValueError as error:
        raise TreeError(f"unflatten: {error}") from None


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves alone."""
    try:
        return optree.tree_leaves(tree, is_leaf, namespace=NAMESPACE)
    except RecursionError as error:
        _expect_depth(error)
        return deep_tree.flatten(tree, is_leaf)[0]


def structure(tree: Any) -> Structure:
    """The structure alone."""
    try:
        return optree.tree_structure(tree, namespace=NAMESPACE)
    except RecursionError as error:
        _expect_depth(error)
        return deep_tree.flatten(tree)[1]


def map(fun: Callable[..., Any], tree: Any, *rest: Any, none_is_leaf: bool = False) -> Any:
    """fun of each leaf, and of the leaves at the same place of other trees of equal structure.

    Raises: TreeError: when another tree has another structure.
    """
    values, spec = flatten(tree, none_is_leaf=none_is_leaf)
    return parallel(fun, spec, values, rest)


def parallel(fun: Callable[..., Any], spec: Structure, values: list[Any], rest: Any) -> Any:
    """What `map` does with a tree of this structure and these leaves."""
    columns = [values]
    for other in rest:
        try:
            columns.append(spec.flatten_up_to(other))
        except ValueError:
            _fitting("map", spec, other)
            raise
    return spec.unflatten(builtins.map(fun, *columns))


def _fitting(name: str, spec: Structure, tree: Any) -> None:
    """Raise TreeError unless spec is the upper part of the tree."""
    try:
        spec.flatten_up_to(tree)
    except ValueError as error:
        above = spec.unflatten(range(spec.num_leaves))
        raise TreeError(f"{name}: {_misfit(above, tree, spec.none_is_leaf) or error}") from None


def _misfit(above: Any, tree: Any, none_is_leaf: bool) -> str | None:
    """Where the tree stops being one that has `above` as its upper part; arrays are not printed."""
    todo = [("", above, tree)]
    while todo:
        path, a, b = todo.pop()
        if optree.tree_is_leaf(a, none_is_leaf=none_is_leaf, namespace=NAMESPACE):
            continue
        place = f"at {path!r}" if path else "at the root"
        wanted = _opened(a)
        found = None if optree.tree_is_leaf(b, namespace=NAMESPACE) else _opened(b)
        if found is None or type(a) is not type(b) or wanted[0] != found[0]:
            return f"{place} expected {_container(a)}, got {_container(b)}"
        steps = [f"{path}.{k}" if path else str(k) for k in wanted[0]]
        todo += list(zip(steps, wanted[1], found[1], strict=True))[::-1]
    return None


def _opened(tree: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """Names of the children, and the children."""
    children, _, names, _ = optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    return tuple(names), children


def _container(x: Any) -> str:
    """What a part of a tree is, in a few words: an array is its dtype and shape."""
    if hasattr(x, "dtype") and hasattr(x, "shape"):
        return f"an array {x.dtype} {tuple(x.shape)}"
    if x is None or optree.tree_is_leaf(x, namespace=NAMESPACE):
        return reprlib.repr(x)
    if isinstance(x, Mapping):
        return f"a {type(x).__name__} with keys {reprlib.repr(list(x))}"
    if type(x) in (tuple, list):
        return f"a {type(x).__name__} of length {len(x)}"
    return f"a {type(x).__name__}"


def flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[str, Any]]:
    """(dotted path, leaf) pairs: keys, indices and attrs field names joined by dots."""
    try:
        paths, values, _ = optree.tree_flatten_with_path(tree, is_leaf, namespace=NAMESPACE)
    except RecursionError as error:
        _expect_depth(error)
        return list(deep_tree.flatten_with_path(tree, is_leaf))
    return [(".".join(str(k) for k in p), v) for p, v in zip(paths, values, strict=True)]


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
    """
    try:
        return list(
            optree.broadcast_prefix(prefix, tree, none_is_leaf=none_is_leaf, namespace=NAMESPACE)
        )
    except RecursionError as error:
        _expect_depth(error)
    except ValueError as error:
        raise TreeError(
            f"{name} must be a prefix of {of}: {_misfit(prefix, tree, none_is_leaf) or error}"
        ) from None
    try:
        return deep_tree.broadcast_prefix(prefix, tree, none_is_leaf=none_is_leaf)
    except ValueError as error:
        raise TreeError(
            f"{name} must be a prefix of {of}: {_misfit(prefix, tree, none_is_leaf) or error}"
        ) from None


def one_level(tree: Any) -> tuple[list[tuple[str, Any]], Callable[[list[Any]], Any]] | None:
    """The (name, child) pairs of the outermost node and what rebuilds it; None for a leaf."""
    if optree.tree_is_leaf(tree, namespace=NAMESPACE):
        return None
    children, meta, names, build = optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    pairs = [(str(n), c) for n, c in zip(names, children, strict=True)]
    return pairs, lambda values: build(meta, values)


def same_structure(name: str, expected: Any, got: Any) -> None:
    """Raise TreeError unless both trees have one structure; `name` says whose.

    Example:
        >>> from funct import tree
        >>> tree.same_structure("step", {"w": 0}, {"b": 0})  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
            ...
        funct.errors.TreeError: step: expected the structure {'w': *}, got {'b': *}
    """
    a, b = structure(expected), structure(got)
    if a != b:
        raise TreeError(f"{name}: expected the structure {plain(a)}, got {plain(b)}")


def plain(spec: Structure) -> str:
    """A structure, as errors show it."""
    text = str(spec).removeprefix("PyTreeSpec(").removesuffix(")")
    return text.rsplit(", namespace", 1)[0]  # trees of builtin containers alone have none
