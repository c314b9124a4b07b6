"""What comes to stand at a place that an update writes to, from what stood there and what comes."""

from __future__ import annotations

from funct.graph import Node
from funct.kernels.llvm import Emitter, Value

__all__ = ["UPDATES", "how_updated", "updated"]

UPDATES = frozenset({"scatter", "scatter_add", "scatter_combine"})


def how_updated(e: Node) -> str:
    """How a `put` or one of `UPDATES` changes a place: "set", "add", "multiply", "min" or "max"."""
    if e.name == "scatter_combine":
        return str(e.params[0])
    return "set" if e.name == "scatter" else "add"


def updated(f: Emitter, how: str, old: Value, new: Value, element: str) -> Value:
    """The new value, with the bits of NumPy's `ufunc.at`."""
    if how == "set":
        return new
    if element == "i1":
        return old | new if how in ("add", "max") else old & new
    if how == "add":
        return old + new
    if how == "multiply":
        return old * new
    stays = old < new if how == "min" else old > new
    if element in ("f32", "f64"):
        stays = f.bitor(stays, f.ne(old, old))
    return f.select(stays, old, new)
