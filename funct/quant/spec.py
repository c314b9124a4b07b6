"""What a quantizer may ask for: how a value is to be quantized, and which values of a node.

The names and meanings are torchao's. A value is quantized where it is produced (the output of a
node) or where one node reads it (an edge). Annotations are values in a mapping, not marks on a
graph.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Literal, cast

import attrs
import numpy as np

from funct.errors import QuantizationError, expect_kind
from funct.graph import Node, Var

__all__ = [
    "DerivedQuantizationSpec", "Edge", "FixedQParamsQuantizationSpec", "QParams", "QScheme",
    "QuantizationAnnotation", "QuantizationSpec", "SharedQuantizationSpec", "Spec",
    "code_dtype",
]  # fmt: skip

QScheme = Literal["per_tensor_affine", "per_tensor_symmetric", "per_channel_symmetric"]
QParams = tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]  # scale float32, zero point
Edge = tuple[Var, Node]  # a value, and the node that reads it

_DTYPES = ("uint8", "int8", "int32")
_SCHEMES = ("per_tensor_affine", "per_tensor_symmetric", "per_channel_symmetric")


def code_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype of codes. QuantizationError for another."""
    try:
        made = None if dtype is None else np.dtype(dtype)
    except (TypeError, ValueError):
        made = None
    if made is None or made.name not in _DTYPES:
        text = f"dtype must be one of {', '.join(_DTYPES)}, got {made or reprlib.repr(dtype)}"
        raise QuantizationError(text)
    return made


def _check_limits(self: Any, _: Any, value: int | None) -> None:
    info = np.iinfo(self.dtype)
    low = info.min if self.quant_min is None else self.quant_min
    high = info.max if self.quant_max is None else self.quant_max
    if not info.min <= low < high <= info.max:
        raise QuantizationError(
            f"quant_min and quant_max must be an interval of {self.dtype}, got [{low}, {high}]"
        )


def _check_scheme(self: Any, _: Any, value: str) -> None:
    if value not in _SCHEMES:
        raise QuantizationError(f"qscheme must be one of {', '.join(_SCHEMES)}, got {value!r}")


def _check_ch_axis(self: Any, _: Any, value: int | None) -> None:
    if (self.qscheme == "per_channel_symmetric") != (value is not None):
        raise QuantizationError(
            f"ch_axis belongs to per_channel_symmetric, got qscheme {self.qscheme} "
            f"with ch_axis {value}"
        )
    if value is not None and value < 0:
        raise QuantizationError(f"ch_axis must be >= 0, got {value}")


def _edges(given: Sequence[Edge | Var]) -> tuple[Edge | Var, ...]:
    expect_kind(QuantizationError, "derived_from", given, Sequence, "a list of edges or outputs")
    return tuple(given)


def _check_dynamic(self: Any, _: Any, value: bool) -> None:
    if value:
        raise QuantizationError("is_dynamic: only static quantization exists, got True")


@attrs.frozen
class QuantizationSpec:
    """Observe this value, and quantize it with what the observer found.

    dtype: uint8, int8 or int32. observer_or_fake_quant_ctor: called with the other fields as
    keywords, returns an observer. quant_min, quant_max: the codes in use, by default all of dtype.
    ch_axis: the channel axis, for per_channel_symmetric.
    Raises: QuantizationError: for fields that do not fit together.
    Example:
        >>> from funct import quant
        >>> spec = quant.QuantizationSpec("int8", quant.MinMaxObserver, quant_min=-127)
        >>> spec.qscheme, spec.quant_min
        ('per_tensor_affine', -127)
    """

    dtype: np.dtype[Any] = attrs.field(converter=code_dtype)
    observer_or_fake_quant_ctor: Callable[..., Any]
    quant_min: int | None = None
    quant_max: int | None = attrs.field(default=None, validator=_check_limits)
    qscheme: QScheme = attrs.field(default="per_tensor_affine", validator=_check_scheme)
    ch_axis: int | None = attrs.field(default=None, validator=_check_ch_axis)
    is_dynamic: bool = attrs.field(default=False, validator=_check_dynamic)

    def observer(self) -> Any:
        """A new observer for this spec."""
        return self.observer_or_fake_quant_ctor(
            dtype=self.dtype, qscheme=self.qscheme, quant_min=self.quant_min,
            quant_max=self.quant_max, ch_axis=self.ch_axis,
        )  # fmt: skip


@attrs.frozen
class SharedQuantizationSpec:
    """Use the parameters of another value: an edge, or the output that a Var stands for.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import quant
        >>> graph = ft.make_graph(xp.sin)(xp.ones(2))
        >>> quant.SharedQuantizationSpec(graph.inputs[0]).edge_or_node is graph.inputs[0]
        True
    """

    edge_or_node: Edge | Var


@attrs.frozen
class DerivedQuantizationSpec:
    """Compute the parameters from those of other values, as a bias does.

    derived_from: edges or outputs. derive_qparams_fn: takes their (scale, zero_point) pairs in a
    list, returns one pair.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import quant
        >>> graph = ft.make_graph(xp.add)(xp.ones(2), xp.ones(2))
        >>> spec = quant.DerivedQuantizationSpec(graph.inputs, quant.bias_qparams, "int32")
        >>> len(spec.derived_from), spec.qscheme
        (2, 'per_tensor_symmetric')
    """

    derived_from: Sequence[Edge | Var] = attrs.field(converter=_edges)
    derive_qparams_fn: Callable[[list[QParams]], QParams]
    dtype: np.dtype[Any] = attrs.field(converter=code_dtype)
    quant_min: int | None = None
    quant_max: int | None = attrs.field(default=None, validator=_check_limits)
    qscheme: QScheme = attrs.field(default="per_tensor_symmetric", validator=_check_scheme)
    ch_axis: int | None = attrs.field(default=None, validator=_check_ch_axis)


def _check_fixed_scale(self: Any, _: Any, value: float) -> None:
    if not 0 < value <= float(np.finfo(np.float32).max):
        raise QuantizationError(f"scale must be a float32 > 0, got {value}")


def _check_fixed_limits(self: Any, attribute: Any, value: int | None) -> None:
    _check_limits(self, attribute, value)
    info = np.iinfo(self.dtype)
    low = info.min if self.quant_min is None else self.quant_min
    high = info.max if value is None else value
    if not low <= self.zero_point <= high:
        raise QuantizationError(
            f"zero_point must be a {self.dtype}, got {self.zero_point}; "
            f"the codes are [{low}, {high}]"
        )


@attrs.frozen
class FixedQParamsQuantizationSpec:
    """Parameters known beforehand, as those of a sigmoid's result; nothing is observed.

    Example:
        >>> from funct import quant
        >>> spec = quant.FixedQParamsQuantizationSpec("uint8", scale=1 / 256, zero_point=0)
        >>> spec.dtype, spec.scale
        (dtype('uint8'), 0.00390625)
    """

    dtype: np.dtype[Any] = attrs.field(converter=code_dtype)
    scale: float = attrs.field(validator=_check_fixed_scale)
    zero_point: int
    quant_min: int | None = None
    quant_max: int | None = attrs.field(default=None, validator=_check_fixed_limits)
    ch_axis: ClassVar[None] = None  # one scale for the whole tensor


Spec = (
    QuantizationSpec
    | SharedQuantizationSpec
    | DerivedQuantizationSpec
    | FixedQParamsQuantizationSpec
)


def _frozen_mapping(mapping: Mapping[Var, Spec]) -> Mapping[Var, Spec]:
    expect_kind(QuantizationError, "input_qspec_map", mapping, Mapping, "a dict from values")
    return cast("Mapping[Var, Spec]", MappingProxyType(dict(mapping)))


@attrs.frozen
class QuantizationAnnotation:
    """What a quantizer asks for at one node.

    input_qspec_map: specs of the values that the node reads. output_qspec: spec of what it makes.
    allow_implicit_sharing: an edge with the spec that its value has elsewhere is quantized once.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import quant
        >>> spec = quant.QuantizationSpec("uint8", quant.MinMaxObserver)
        >>> graph = ft.make_graph(xp.sin)(xp.ones(2))
        >>> quant.QuantizationAnnotation({graph.inputs[0]: spec}).output_qspec is None
        True
    """

    input_qspec_map: Mapping[Var, Spec] = attrs.field(factory=dict, converter=_frozen_mapping)
    output_qspec: Spec | None = None
    allow_implicit_sharing: bool = True
