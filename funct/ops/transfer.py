"""Elements taken from one device to another."""

from __future__ import annotations

from typing import Any

from funct.core import Sample, Value
from funct.device.places import find_place
from funct.ops.families import structural

__all__ = ["to_device"]


def _moved(x: Any, source: str, target: str) -> Any:
    here, there = find_place(source), find_place(target)
    host = x if here is None else here.get(x)
    return host if there is None else there.put(host)


def _back(g: Value, source: str, target: str) -> Any:
    return to_device(g, target, source)


@structural(
    _moved,
    _back,
    batch=lambda prim, args, batched, params: prim.fn(args[0], *params),
    shape=lambda x, source, target: x,
    onnx=lambda w, x, source, target: str(w.op("Identity", x)),
    samples=lambda rng: [Sample((rng.normal(size=s),), ("cpu", "cpu")) for s in ((2, 3), ())],
    moves=True,
)
def to_device(x: Value, source: str, target: str, /) -> Any:
    """x on the device `target`; it lies on `source`. Its cotangent goes the way back."""
