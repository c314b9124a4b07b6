"""The check behind `detect_anomaly`: an identity that raises where a value is not finite."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.core import Pair, Sample, Value
from funct.errors import AnomalyError
from funct.ops.broadcasting import same_call
from funct.ops.families import structural
from funct.ops.samples import calls
from funct.source import Site

__all__ = ["all_finite", "finite"]

_PHASES = {
    "forward": "{} gave {}",
    "backward": "the backward pass of {} gave {}",
    "tangent": "the tangent of {} is {}",
    "argument": "{} holds {}",
}


def all_finite(x: Any) -> bool:
    """Whether no element of a bare array is infinite or NaN."""
    good = np.isfinite(x)
    return bool(good if good.__class__ is np.bool_ else good.all())  # a NumPy bool's all is slow


def _finite(x: Any, op: str, phase: str, file: str, line: int) -> Any:
    if phase == "pull" or all_finite(x):
        return x
    good = np.isfinite(x)
    first = tuple(int(i) for i in np.argwhere(~good)[0])
    count = f"{x.size - int(np.count_nonzero(good))} of {x.size} elements"
    where = f" ({count}, the first at index {first})" if x.ndim else ""
    raise AnomalyError(
        f"detect_anomaly: {_PHASES[phase].format(op, x[first])}{where}",
        op=op,
        phase=phase,
        site=Site(file, line) if file else None,
    )


def _finite_push(t: Value, ans: Value, x: Value, op: str, phase: str, file: str, line: int) -> Any:
    return t if phase == "pull" else finite(t, op, "tangent", file, line)


def _finite_pull(g: Value, op: str, phase: str, file: str, line: int) -> Value:
    return finite(g, op, "backward", file, line) if phase == "pull" else g


def _finite_onnx(w: Any, x: str, *params: Any) -> str:
    return str(w.op("Identity", x))


@structural(
    _finite,
    Pair(_finite_push, _finite_pull, ("x", "op", "phase", "file", "line")),
    batch=same_call,
    shape=lambda x, *params: x,
    onnx=_finite_onnx,
    samples=calls(
        lambda rng: Sample((rng.normal(size=(2, 3)),), ("sqrt", "forward", "", 0)),
        lambda rng: Sample((rng.normal(size=3) * 1j,), ("sqrt", "backward", "", 0)),
        lambda rng: Sample((rng.normal(size=(2, 1)),), ("sqrt", "pull", "", 0)),
    ),
    raises=True,
)
def finite(x: Value, op: str, phase: str, file: str, line: int, /) -> Value:
    """x itself; AnomalyError where an element is infinite or NaN, naming op and the line.

    With the phase "pull" it is x unchecked, and the cotangent that comes back is checked.
    """
