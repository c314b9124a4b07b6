"""Policies for `checkpoint`: which values are kept for the backward pass. JAX's names.

A policy is a function of the node that made the value; `node.name` is the op's name. It says True
(keep it), False (compute it again) or `OFFLOAD` (keep it in the memory of the host until the
backward pass).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

from funct.errors import ArgumentError
from funct.graph import Call, Node

__all__ = [
    "OFFLOAD", "Decision", "Policy", "dots_saveable", "dots_with_no_batch_dims_saveable",
    "everything_saveable", "nothing_saveable", "offload_dot_with_no_batch_dims",
    "save_and_offload_only_these_names", "save_any_names_but_these", "save_from_both_policies",
    "save_only_these_names", "save_only_these_ops",
]  # fmt: skip

OFFLOAD: Final = "offload"
Decision = bool | Literal["offload"]
Policy = Callable[[Node | Call], Decision]

_DOTS = frozenset({"matmul", "contract", "convolution", "convolution_input", "convolution_weight"})


def nothing_saveable(node: Node | Call) -> bool:
    """Keep nothing.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> graph = ft.make_graph(lambda x: xp.sin(x @ x))(xp.eye(2))
        >>> [(node.name, ft.checkpoint_policies.nothing_saveable(node)) for node in graph.nodes]
        [('matmul', False), ('sin', False)]
    """
    return False


def everything_saveable(node: Node | Call) -> bool:
    """Keep all that the pulls need, as without `checkpoint`.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> graph = ft.make_graph(lambda x: xp.sin(x @ x))(xp.eye(2))
        >>> [(node.name, ft.checkpoint_policies.everything_saveable(node)) for node in graph.nodes]
        [('matmul', True), ('sin', True)]
    """
    return True


def dots_saveable(node: Node | Call) -> bool:
    """Keep products: matrix products, contractions and convolutions.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> graph = ft.make_graph(lambda x: xp.sin(x @ x))(xp.eye(2))
        >>> [(node.name, ft.checkpoint_policies.dots_saveable(node)) for node in graph.nodes]
        [('matmul', True), ('sin', False)]
    """
    return node.name in _DOTS


def dots_with_no_batch_dims_saveable(node: Node | Call) -> bool:
    """Keep matrix products without a batch: those with weights, not those of attention.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> keeps = ft.checkpoint_policies.dots_with_no_batch_dims_saveable
        >>> graph = ft.make_graph(lambda x: (x @ x, x[0] @ x[1]))(xp.ones((2, 2, 2)))
        >>> [(node.name, keeps(node)) for node in graph.nodes if node.name == "matmul"]
        [('matmul', False), ('matmul', True)]
    """
    return node.name in _DOTS and all(len(v.shape) <= 2 for v in node.results)


def save_only_these_names(*names: str) -> Policy:
    """Keep the values given to `checkpoint_name` with one of these names.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> keeps = ft.checkpoint_policies.save_only_these_names("h")
        >>> graph = ft.make_graph(lambda x: xp.sin(ft.checkpoint_name(x * x, "h")))(xp.eye(2))
        >>> [(node.name, keeps(node)) for node in graph.nodes]
        [('multiply', False), ('checkpoint_name', True), ('sin', False)]
    """
    return lambda node: _label(node) in names


def save_any_names_but_these(*names: str) -> Policy:
    """Keep the values given to `checkpoint_name` with any other name.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> keeps = ft.checkpoint_policies.save_any_names_but_these("h")
        >>> name = ft.checkpoint_name
        >>> graph = ft.make_graph(lambda x: name(name(x, "h"), "i"))(xp.eye(2))
        >>> [keeps(node) for node in graph.nodes]
        [False, True]
    """
    return lambda node: _label(node) is not None and _label(node) not in names


def save_only_these_ops(*names: str) -> Policy:
    """Keep the results of ops with these names.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> keeps = ft.checkpoint_policies.save_only_these_ops("sin")
        >>> graph = ft.make_graph(lambda x: xp.sin(x @ x))(xp.eye(2))
        >>> [(node.name, keeps(node)) for node in graph.nodes]
        [('matmul', False), ('sin', True)]
    """
    return lambda node: node.name in names


def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """Keep what either keeps; what one offloads and the other keeps stays.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> policies = ft.checkpoint_policies
        >>> keeps = policies.save_from_both_policies(
        ...     policies.dots_saveable, policies.save_only_these_ops("sin")
        ... )
        >>> graph = ft.make_graph(lambda x: xp.exp(xp.sin(x @ x)))(xp.eye(2))
        >>> [(node.name, keeps(node)) for node in graph.nodes]
        [('matmul', True), ('sin', True), ('exp', False)]
    """

    def either(node: Node | Call) -> Decision:
        a, b = first(node), second(node)
        return True if True in (a, b) else a or b

    return either


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str = "device",
    offload_dst: str = "pinned_host",
) -> Policy:
    """Keep the values given to `checkpoint_name` with the first names, and those with the second
    in the memory of the host.

    On a machine whose device is the host they wait in a copy of their own.
    Raises: ArgumentError: for a name in both, or memory that is not the host's.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> keeps = ft.checkpoint_policies.save_and_offload_only_these_names(
        ...     names_which_can_be_saved=["a"], names_which_can_be_offloaded=["b"]
        ... )
        >>> name = ft.checkpoint_name
        >>> graph = ft.make_graph(lambda x: name(name(x, "a"), "b"))(xp.eye(2))
        >>> [keeps(node) for node in graph.nodes]
        [True, 'offload']
    """
    saved, away = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    if saved & away:
        raise ArgumentError(
            "save_and_offload_only_these_names: a name can be saved or offloaded, not both, got "
            f"{sorted(saved & away)} twice"
        )
    _check_memory("save_and_offload_only_these_names", offload_src, offload_dst)
    return lambda node: OFFLOAD if _label(node) in away else _label(node) in saved


def offload_dot_with_no_batch_dims(
    offload_src: str = "device", offload_dst: str = "pinned_host"
) -> Policy:
    """Keep matrix products without a batch, in the memory of the host.

    Raises: ArgumentError: for memory that is not the host's.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> keeps = ft.checkpoint_policies.offload_dot_with_no_batch_dims()
        >>> graph = ft.make_graph(lambda x: xp.sin(x @ x))(xp.eye(2))
        >>> [(node.name, keeps(node)) for node in graph.nodes]
        [('matmul', 'offload'), ('sin', False)]
    """
    _check_memory("offload_dot_with_no_batch_dims", offload_src, offload_dst)
    return lambda node: OFFLOAD if dots_with_no_batch_dims_saveable(node) else False


def _check_memory(name: str, source: str, target: str) -> None:
    if source not in ("device", "cpu"):
        raise ArgumentError(f"{name}: offload_src must be 'device', got {source!r}")
    if target not in ("pinned_host", "unpinned_host", "cpu"):
        raise ArgumentError(f"{name}: offload_dst must be 'pinned_host', got {target!r}")


def _label(node: Node | Call) -> str | None:
    return node.params[0] if isinstance(node, Node) and node.name == "checkpoint_name" else None
