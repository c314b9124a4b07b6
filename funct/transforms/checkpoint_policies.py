"""Policies for `checkpoint`: which values are kept for the backward pass. JAX's names.

A policy is a function of the node that made the value; `node.name` is the op's name.
"""

from __future__ import annotations

from collections.abc import Callable

from funct.graph import Call, Node

__all__ = [
    "dots_saveable", "dots_with_no_batch_dims_saveable", "everything_saveable",
    "nothing_saveable", "save_any_names_but_these", "save_from_both_policies",
    "save_only_these_names", "save_only_these_ops",
]  # fmt: skip

Policy = Callable[[Node | Call], bool]

_DOTS = frozenset({"matmul", "contract", "convolution", "convolution_input", "convolution_weight"})


def nothing_saveable(node: Node | Call) -> bool:
    """Keep nothing."""
    return False


def everything_saveable(node: Node | Call) -> bool:
    """Keep all that the pulls need, as without `checkpoint`."""
    return True


def dots_saveable(node: Node | Call) -> bool:
    """Keep products: matrix products, contractions and convolutions."""
    return node.name in _DOTS


def dots_with_no_batch_dims_saveable(node: Node | Call) -> bool:
    """Keep matrix products without a batch: those with weights, not those of attention."""
    return node.name in _DOTS and all(len(v.shape) <= 2 for v in node.results)


def save_only_these_names(*names: str) -> Policy:
    """Keep the values given to `checkpoint_name` with one of these names."""
    return lambda node: _label(node) in names


def save_any_names_but_these(*names: str) -> Policy:
    """Keep the values given to `checkpoint_name` with any other name."""
    return lambda node: _label(node) is not None and _label(node) not in names


def save_only_these_ops(*names: str) -> Policy:
    """Keep the results of ops with these names."""
    return lambda node: node.name in names


def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """Keep what either keeps."""
    return lambda node: first(node) or second(node)


def _label(node: Node | Call) -> str | None:
    return node.params[0] if isinstance(node, Node) and node.name == "checkpoint_name" else None
