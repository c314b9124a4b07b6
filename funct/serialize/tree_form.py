"""Structures of arguments and results as JSON, and back: tuples, lists, dicts, None and records.

A record is written as its class by name, and its fields. To read one, the class must be there
already: reading imports nothing, and runs nothing of the class.
"""

from __future__ import annotations

import sys
from typing import Any

from funct import pytree
from funct.errors import ExportError, FileFormatError, TreeError
from funct.graph.json_values import decode_value, encode_value
from funct.records import of_parts, opened, parts_of

__all__ = ["decode_tree", "encode_tree"]


def encode_tree(spec: pytree.Structure) -> Any:
    """The structure of arguments or results, if it is made of tuples, lists, dicts, None and
    records.
    """
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
    cls, parts = type(node), parts_of(node)
    if parts is None:
        raise ExportError(
            "save: arguments and results may be tuples, lists, dicts, dataclasses and attrs "
            f"classes, got {cls.__name__}",
            fix="export a function of dicts, or one that holds the layer",
        )
    if _class_named(cls.__module__, cls.__qualname__) is not cls:
        raise ExportError(
            f"save: {cls.__qualname__} cannot be found by its name when the program is loaded",
            fix=f"define {cls.__name__} at the top of a module",
        )
    children, structure = parts
    fields = [[n, _encode_node(v)] for n, v in children.items()]
    static = [[n, encode_value(v)] for n, v in structure.items()]
    return {"record": [cls.__module__, cls.__qualname__, fields, static]}


def _class_named(module: str, name: str) -> Any:
    """The class of that name, if its module is there."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    return found if isinstance(found, type) else None


def decode_tree(v: Any) -> pytree.Structure:
    """The structure that `encode_tree` wrote."""
    return pytree.structure(_decode_node(v))


def _decode_node(v: Any) -> Any:
    if v == "*":
        return _LEAF
    if v is None:
        return None
    kind, inner = next(iter(v.items())) if isinstance(v, dict) and len(v) == 1 else ("", None)
    if kind == "record" and isinstance(inner, list) and len(inner) == 4:
        return _decode_record(*inner)
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


def _decode_record(module: Any, name: Any, fields: Any, static: Any) -> Any:
    pairs = [p for part in (fields, static) for p in (part if isinstance(part, list) else [None])]
    texts = [module, name, *[p[0] if isinstance(p, list) and len(p) == 2 else None for p in pairs]]
    if not all(isinstance(t, str) for t in texts):
        raise FileFormatError(f"graph.json: {str(name)[:60]} is no record")
    cls = _class_named(module, name)
    if cls is None:
        raise FileFormatError(
            f"load: the program takes or gives objects of {module[:60]}.{name[:60]}, which is not "
            "there",
            fix=f"import {module}" if module.replace(".", "").isidentifier() else None,
        )
    children = {n: _decode_node(v) for n, v in fields}
    structure = {n: decode_value(v, {}) for n, v in static}
    try:
        record = of_parts(cls, children, structure)
    except TreeError as error:
        raise FileFormatError(f"load: {error.what}") from None
    opened([record])
    if parts_of(record) is None:
        raise FileFormatError(f"load: {module}.{name} is no record any more")
    return record
