"""Scale and zero point of every group of a calibrated program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from funct.errors import QuantizationError
from funct.graph import Node, Var
from funct.quant.prepare import Group, Point, PreparedProgram, describe
from funct.quant.rewrite import constants_of
from funct.quant.spec import (
    DerivedQuantizationSpec,
    Edge,
    FixedQParamsQuantizationSpec,
    QParams,
)

__all__ = ["Parameters", "group_parameters"]

_SMALLEST = np.finfo(np.float32).tiny
_BIAS_ROOM = 2**30  # half of int32 is for the bias, the other half for the sum of products
_BIAS_STEPS = 2**20  # of the bias where there is nothing else in the sum


@attrs.frozen(eq=False)
class Parameters:
    """How one group is quantized.

    scale: float32, 0-d or 1-D along axis. zero_point: of the codes' dtype. limits: codes in use.
    """

    scale: np.ndarray[Any, Any]
    zero_point: np.ndarray[Any, Any]
    axis: int
    limits: tuple[int, int]


def group_parameters(prepared: PreparedProgram) -> list[Parameters]:
    """The parameters of each group, derived ones last; raises QuantizationError with the value."""
    _check_activations(prepared)
    found: dict[int, QParams] = {}
    for i, group in enumerate(prepared.groups):
        if not isinstance(group.spec, DerivedQuantizationSpec):
            found[i] = _own(prepared, i)
    derived = [i for i in range(len(prepared.groups)) if i not in found]
    for i in derived:
        _make_room(prepared, i, found)
    for i in derived:
        found[i] = _from_others(prepared, i, found)
    return [_checked(prepared, g, found[i]) for i, g in enumerate(prepared.groups)]


def _own(prepared: PreparedProgram, i: int) -> QParams:
    """Parameters that a group knows by itself."""
    group = prepared.groups[i]
    spec = group.spec
    if isinstance(spec, FixedQParamsQuantizationSpec):
        return np.asarray(spec.scale, np.float32), np.asarray(spec.zero_point, spec.dtype)
    try:
        scale, zero = spec.observer().qparams(prepared.states[i])
    except QuantizationError as error:
        names = " and ".join(describe(prepared.program, v) for v in group.values)
        unseen = "seen no" in error.what
        raise QuantizationError(
            f"convert_pt2e: {names}: {error.what}",
            site=_site(prepared, group),
            fix="call calibrate with batches of real inputs first" if unseen else None,
        ) from None
    return scale, zero


def _sources(prepared: PreparedProgram, i: int) -> list[int]:
    """The groups that a derived group takes its parameters from."""
    edges: Sequence[Edge | Var] = prepared.groups[i].spec.derived_from
    points: list[Point] = [e if isinstance(e, tuple) else (e, None) for e in edges]
    missing = [p[0].name for p in points if p not in prepared.group_of]
    if missing:
        raise QuantizationError(
            f"convert_pt2e: a DerivedQuantizationSpec refers to {missing[0]}, "
            f"which is not annotated"
        )
    return [prepared.group_of[p] for p in points]


def _from_others(prepared: PreparedProgram, i: int, found: dict[int, QParams]) -> QParams:
    sources = _sources(prepared, i)
    if any(s not in found for s in sources):
        raise QuantizationError("convert_pt2e: parameters are derived from derived parameters")
    scale, zero = prepared.groups[i].spec.derive_qparams_fn([found[s] for s in sources])
    return np.asarray(scale, np.float32), np.asarray(zero, prepared.groups[i].spec.dtype)


def _make_room(prepared: PreparedProgram, i: int, found: dict[int, QParams]) -> None:
    """Widen weight scales where a bias would not fit into int32, or stands alone.

    A channel with tiny weights and a usual bias would need more than 32 bits in units of its own
    tiny product of scales; a channel without any weight may have whatever scale suits its bias.
    """
    constants = constants_of(prepared.graph)
    group = prepared.groups[i]
    last = _sources(prepared, i)[-1]
    weights = prepared.groups[last]
    stored = all(v in constants for v in group.values + weights.values)
    if group.spec.dtype != np.int32 or not stored:
        return
    scale, zero = found[last]
    unit, _ = _from_others(prepared, i, found)
    largest = np.max([_largest(constants[v], group.spec.ch_axis) for v in group.values], 0)
    empty = np.all([_largest(constants[v], weights.spec.ch_axis) == 0 for v in weights.values], 0)
    steps = np.where(empty & (largest > 0), _BIAS_STEPS, _BIAS_ROOM)
    factor = largest.astype(np.float64) / unit / steps
    if factor.shape == scale.shape:
        factor = np.where((factor > 1) | (empty & (factor > 0)), factor, 1.0)
        found[last] = np.maximum(scale * factor, _SMALLEST).astype(np.float32), zero


def _largest(x: Any, axis: int | None) -> np.ndarray[Any, Any]:
    values = np.abs(np.asarray(x))
    over = tuple([a for a in range(values.ndim) if a != axis])
    return np.asarray(values.max(over, initial=0))


def _checked(prepared: PreparedProgram, group: Group, qparams: QParams) -> Parameters:
    scale, zero = qparams
    spec = group.spec
    if not np.all((scale >= _SMALLEST) & np.isfinite(scale)):
        raise QuantizationError(
            f"convert_pt2e: {describe(prepared.program, group.values[0])} needs the scale "
            f"{np.min(scale)}, which is no normal float32 > 0",
            site=_site(prepared, group),
        )
    info = np.iinfo(spec.dtype)
    low = int(info.min) if spec.quant_min is None else spec.quant_min
    high = int(info.max) if spec.quant_max is None else spec.quant_max
    return Parameters(scale, zero, spec.ch_axis or 0, (low, high))


def _check_activations(prepared: PreparedProgram) -> None:
    """What is quantized at run time saturates at its dtype's limits, in 8 bits."""
    constants = constants_of(prepared.graph)
    for group in prepared.groups:
        moving = [v for v in group.values if v not in constants]
        spec = group.spec
        if not moving:
            continue
        info = np.iinfo(spec.dtype)
        narrow = spec.quant_min not in (None, info.min) or spec.quant_max not in (None, info.max)
        if spec.dtype.itemsize != 1 or narrow:
            raise QuantizationError(
                f"convert_pt2e: {describe(prepared.program, moving[0])} must use all of uint8 or "
                f"int8, got {spec.dtype} with quant_min {spec.quant_min}, "
                f"quant_max {spec.quant_max}",
                site=_site(prepared, group),
            )


def _site(prepared: PreparedProgram, group: Group) -> Any:
    for node in prepared.graph.nodes:
        if isinstance(node, Node) and any(v in group.values for v in node.results):
            return node.site
    return None
