"""Trees of arrays: the leaves as arrays, whatever classes hold them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funct import pytree
from funct.array.conversion import asarray
from funct.array.tensor import Tensor
from funct.errors import FunctError
from funct.records import opened

__all__ = ["flat_arrays", "map_arrays", "map_leaves", "tell_leaf"]


def flat_arrays(
    tree: Any, each: Callable[[Any], Any] | None = None
) -> tuple[list[Any], pytree.Structure]:
    """The leaves as arrays, and the structure. What an attrs class or a dataclass holds are leaves,
    whether or not it was a pytree before.

    Args: each: what makes an array of a leaf, in place of `asarray`.
    Raises: DTypeError: for a leaf that is no array, or what `each` raises.
    """
    leaves, spec = pytree.flatten(tree)
    try:
        if each is not None:
            return [each(x) for x in leaves], spec
        return [x if isinstance(x, Tensor) else asarray(x) for x in leaves], spec
    except FunctError:
        if not opened(leaves):
            tell_leaf(tree, each or asarray)
            raise
    return flat_arrays(tree, each)


def tell_leaf(tree: Any, each: Callable[[Any], Any]) -> None:
    """Raise what `each` raises of a leaf, with the path to it."""
    for path, x in pytree.flatten_with_path(tree):
        try:
            each(x)
        except FunctError as error:
            where = f", in leaf {path}" if path else ""
            raise type(error)(f"{error.what}{where}", fix=error.fix) from None


def map_arrays(fun: Callable[[Any], Any], tree: Any) -> Any:
    """fun of each leaf, which is an array."""
    leaves, spec = flat_arrays(tree)
    return spec.unflatten(map(fun, leaves))


def map_leaves(fun: Callable[[Any], Any], tree: Any) -> Any:
    """fun of each leaf, which fun makes an array."""
    leaves, spec = flat_arrays(tree, fun)
    return spec.unflatten(leaves)
