"""`int8_weight_only`, `int4_weight_only`: weights in few bits, everything else in float.

What a layer of few rows costs is reading its weights; as bytes they are a quarter, as half bytes an
eighth of float32. Weights are constants, so there is nothing to calibrate: they are quantized when
the program is prepared.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from funct import ops
from funct.errors import QuantizationError
from funct.graph import Graph, Node, Var
from funct.kernels.quantized.weight_only import pack
from funct.quant.quantizer import Annotations, Quantizer
from funct.quant.rewrite import Rewriter, constants_of

__all__ = ["WeightOnly", "int4_weight_only", "int8_weight_only"]

_CODES = {8: (-127, 127), 4: (-8, 7)}


def int8_weight_only(group_size: int | None = None) -> WeightOnly:
    """Make the quantizer for int8 weights with a scale per output, or per group of its inputs.

    Args:    group_size: inputs that share a scale; all of them by default.
    Returns: a Quantizer for `prepare_pt2e`; calibration is not needed.
    Example:
        >>> import funct.array as xp
        >>> from funct import export, quant
        >>> w = xp.asarray([[1.0, -0.5], [0.25, 2.0]], dtype=xp.float32)
        >>> program = export.export(lambda x: x @ w, (xp.ones((3, 2), dtype=xp.float32),))
        >>> made = quant.convert_pt2e(quant.prepare_pt2e(program, quant.int8_weight_only()))
        >>> [node.name for node in made.graph.nodes]
        ['weight_only_linear']

    Source:  torchao's Int8WeightOnlyConfig; codes are -127 … 127, as those of `int8_static`.
    """
    return WeightOnly(8, group_size)


def int4_weight_only(group_size: int = 128) -> WeightOnly:
    """Make the quantizer for 4-bit weights, two to a byte, with a scale per group of inputs.

    Args:    group_size: inputs that share a scale, an even number.
    Returns: a Quantizer for `prepare_pt2e`; calibration is not needed. Layers whose inputs are no
             multiple of the group size stay in float.
    Notes:   in ONNX the weights are INT4 with DequantizeLinear by blocks. onnxruntime makes its
             MatMulNBits of it, which by default also makes 8-bit codes of x; the session option
             "session.qdq_matmulnbits_accuracy_level" = "1" keeps x in float32.
    Example:
        >>> import funct.array as xp
        >>> from funct import export
        >>> from funct import quant
        >>> w, x = xp.ones((2, 4), dtype=xp.float32), xp.ones((3, 4), dtype=xp.float32)
        >>> program = export.export(lambda x: x @ w.T, (x,))
        >>> made = quant.convert_pt2e(quant.prepare_pt2e(program, quant.int4_weight_only(2)))
        >>> [node.name for node in made.graph.nodes]
        ['weight_only_linear']

    Source:  torchao's Int4WeightOnlyConfig, symmetric: codes are -8 … 7.
    """
    return WeightOnly(4, group_size)


def _check_group_size(self: WeightOnly, _: object, value: Any) -> None:
    if value is not None and (
        not isinstance(value, int) or value < 1 or (self.bits == 4 and value % 2)
    ):
        kind = "an even number" if self.bits == 4 else "a number"
        raise QuantizationError(
            f"int{self.bits}_weight_only: group_size must be {kind} > 0, got {value}"
        )


@attrs.frozen
class WeightOnly(Quantizer):
    """See `int8_weight_only` and `int4_weight_only`.

    Example:
        >>> from funct import quant
        >>> quant.WeightOnly(8) == quant.int8_weight_only()
        True
    """

    bits: int
    group_size: int | None = attrs.field(default=None, validator=_check_group_size)

    def transform_for_annotation(self, graph: Graph) -> Graph:
        """The graph whose products with constant matrices read codes."""
        constants = constants_of(graph)
        new = Rewriter(graph)
        for e in graph.nodes:
            w = e.operands[1] if isinstance(e, Node) and e.name == "matmul" else None
            if isinstance(w, Var) and w in constants and isinstance(e, Node) and self._takes(w):
                codes, scale = self._quantized(np.asarray(constants[w]).T)
                operands = (e.operands[0], new.constant(codes), new.constant(scale))
                new.node(ops.weight_only_linear, operands, site=e.site, result=e.results[0])
            else:
                new.keep(e)
        return new.graph()

    def annotate(self, graph: Graph) -> Annotations:
        """Nothing: no value is observed."""
        return {}

    def validate(self, graph: Graph, annotations: Annotations) -> None:
        """Raises QuantizationError if no layer was found."""
        if not any(isinstance(e, Node) and e.name == "weight_only_linear" for e in graph.nodes):
            inputs = f" whose inputs are a multiple of {self.group_size}" if self.group_size else ""
            raise QuantizationError(
                f"int{self.bits}_weight_only: the program has no float32 product with a constant "
                f"matrix{inputs}"
            )

    def _takes(self, w: Var) -> bool:
        if len(w.shape) != 2 or w.dtype != np.float32 or 0 in w.shape:
            return False
        return w.shape[0] % (self.group_size or 1) == 0

    def _quantized(self, w: NDArray[np.float32]) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """Codes and scales of (O, I)."""
        low, high = _CODES[self.bits]
        outputs, inputs = w.shape
        groups = w.reshape(outputs, -1, self.group_size or inputs)
        largest = np.abs(groups).max(axis=2)
        if not np.all(np.isfinite(largest)):
            raise QuantizationError(f"int{self.bits}_weight_only: a weight is NaN or infinite")
        scale = largest / np.float32((high - low) / 2)
        scale = np.where(scale >= np.finfo(np.float32).tiny, scale, np.float32(1))
        steps = np.clip(np.rint(groups / scale[:, :, None]), low, high).astype(np.int8)
        codes = steps.reshape(outputs, inputs)
        return pack(codes) if self.bits == 4 else codes, scale
