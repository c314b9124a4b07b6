"""Structures of arguments and results as JSON, and back: tuples, lists, dicts and None."""

from __future__ import annotations

from typing import Any

from funct import pytree
from funct.errors import ExportError, FileFormatError

__all__ = ["decode_tree", "encode_tree"]


def encode_tree(spec: pytree.Structure) -> Any:
    """The structure of arguments or results, if it is made of tuples, lists, dicts and None."""
    return _encode_node(spec.unflatten([_LEAF] * spec.num_leaves))


class _Leaf:
    """Stands for an array."""


_LEAF = _Leaf()


def _encode_node(node: Any) -> Any:
    if node is _LEAF:
        return "*"
    if node is None:
        return None
    if type(node) is tuple or type(node) is list:
        return {type(node).__name__: [_encode_node(v) for v in node]}
    if type(node) is dict and all(type(k) in (str, int) for k in node):
        return {"dict": [[k, _encode_node(v)] for k, v in node.items()]}
    raise ExportError(
        f"save: arguments and results may be tuples, lists and dicts, got {type(node).__name__}",
        fix="export a function of dicts, or one that holds the layer",
    )


def decode_tree(v: Any) -> pytree.Structure:
    """The structure that `encode_tree` wrote."""
    return pytree.structure(_decode_node(v))


def _decode_node(v: Any) -> Any:
    if v == "*":
        return _LEAF
    if v is None:
        return None
    kind, inner = next(iter(v.items())) if isinstance(v, dict) and len(v) == 1 else ("", None)
    if not isinstance(inner, list) or kind not in ("tuple", "list", "dict"):
        raise FileFormatError(f"graph.json: {str(v)[:60]} is no tree")
    if kind != "dict":
        nodes = [_decode_node(e) for e in inner]
        return tuple(nodes) if kind == "tuple" else nodes
    pairs = [p for p in inner if isinstance(p, list) and len(p) == 2 and type(p[0]) in (str, int)]
    found = {k: _decode_node(e) for k, e in pairs}
    if len(found) != len(inner):
        raise FileFormatError(f"graph.json: {str(v)[:60]} is no dict")
    return found
