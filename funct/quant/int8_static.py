"""`int8_static`: the ready quantizer. uint8 activations, int8 weights per output channel.

A layer is a convolution, or a product with a constant matrix, with its bias and its relu. Its
result is observed after the relu: the range then begins at 0, the zero point is 0, and the
saturation of the codes is the relu. Pooling and reshaping keep the codes that come in, and sums of
codes are quantized too. Everything else stays in float.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import attrs
import numpy as np

from funct.errors import QuantizationError
from funct.graph import Graph, Node, Var
from funct.quant.fold import channel_axis, per_channel
from funct.quant.histogram import HistogramObserver
from funct.quant.observer import (
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    PerChannelMinMaxObserver,
)
from funct.quant.quantizer import Annotations, Quantizer
from funct.quant.rewrite import constants_of, sole_users
from funct.quant.spec import (
    DerivedQuantizationSpec,
    Edge,
    QParams,
    QuantizationAnnotation,
    QuantizationSpec,
    SharedQuantizationSpec,
    Spec,
)

__all__ = ["Int8Static", "bias_qparams", "int8_static"]

_OBSERVERS = {
    "minmax": MinMaxObserver,
    "histogram": HistogramObserver,
    "moving_average": MovingAverageMinMaxObserver,
}
_SAME_CODES = ("max_pool", "reshape", "permute_dims", "relu")


def int8_static(
    observer: Literal["minmax", "histogram", "moving_average"] = "histogram",
    *,
    skip: Callable[[Node], bool] | None = None,
) -> Int8Static:
    """Make the quantizer for int8 inference with ranges fixed by calibration.

    Args:    observer: how the ranges of activations are found. skip: nodes to leave in float.
    Returns: a Quantizer for `prepare_pt2e`.
    Raises: QuantizationError: for another observer.
    Notes:   it quantizes float32 alone. Sums of products must fit into int32.
    Example:
        >>> import funct.array as xp
        >>> from funct import export, quant
        >>> w = xp.asarray([[1.0, -0.5], [0.25, 2.0]], dtype=xp.float32)
        >>> x = xp.asarray([[1.0, 0.0], [0.5, 1.0]], dtype=xp.float32)
        >>> program = export.export(lambda x: x @ w, (x,))
        >>> prepared = quant.prepare_pt2e(program, quant.int8_static("minmax"))
        >>> quantized = quant.convert_pt2e(quant.calibrate(prepared, [(x,)]))
        >>> [node.name for node in quantized.graph.nodes]
        ['quantize', 'quantized_linear', 'dequantize']
    """
    if observer not in list(_OBSERVERS):  # what does not hash is none of them either
        raise QuantizationError(
            f"int8_static: observer must be one of {', '.join(_OBSERVERS)}, got {observer!r}"
        )
    activation = QuantizationSpec("uint8", _OBSERVERS[observer])
    return Int8Static(activation, skip)


def bias_qparams(qparams: list[QParams]) -> QParams:
    """Parameters of a layer's int32 bias: the float32 product of the scales of x and w.

    Example:
        >>> from funct import quant
        >>> import numpy as np
        >>> x, w = (np.float32(0.5), np.int32(0)), (np.float32(0.25), np.int32(0))
        >>> quant.bias_qparams([x, w])
        (array(0.125, dtype=float32), array(0, dtype=int32))
    """
    (x_scale, _), (w_scale, _) = qparams
    scale = np.asarray(x_scale * w_scale, np.float32)
    return scale, np.zeros(scale.shape, np.int32)


@attrs.frozen
class Int8Static(Quantizer):
    """See `int8_static`. activation: the spec of every activation.

    Example:
        >>> from funct import quant
        >>> activation = quant.QuantizationSpec("uint8", quant.MinMaxObserver)
        >>> quant.Int8Static(activation) == quant.int8_static("minmax")
        True
    """

    activation: QuantizationSpec
    skip: Callable[[Node], bool] | None = None

    def annotate(self, graph: Graph) -> Annotations:
        """Layers first, then what may keep the codes that they give."""
        return _Annotator(graph, self.activation, self.skip).run()

    def validate(self, graph: Graph, annotations: Annotations) -> None:
        """Raises QuantizationError if nothing was found, and says why where it is certain."""
        if annotations:
            return
        layers = [e for e in graph.nodes if isinstance(e, Node) and channel_axis(e) is not None]
        wide = [e for e in layers if e.results[0].dtype != np.float32]
        raise QuantizationError(
            "int8_static: the program has no layer to quantize: no float32 convolution, and no "
            "float32 product with a constant matrix",
            site=wide[0].site if wide else None,
            fix=f"compute in float32, not in {wide[0].results[0].dtype}" if wide else None,
        )


class _Annotator:
    """One walk over one graph."""

    def __init__(
        self, graph: Graph, activation: QuantizationSpec, skip: Callable[[Node], bool] | None
    ) -> None:
        self.activation = activation
        self.nodes = [e for e in graph.nodes if isinstance(e, Node) and not (skip and skip(e))]
        self.constants: Mapping[Var, Any] = constants_of(graph)
        self.users: Mapping[Var, Node] = sole_users(graph)
        self.allowed = set(self.nodes)
        self.found: dict[Node, QuantizationAnnotation] = {}
        self.coded: set[Var] = set()  # values that have codes

    def run(self) -> Annotations:
        """The annotations."""
        for node in self.nodes:
            if node in self.found:
                continue
            if channel_axis(node) is not None:
                self._layer(node)
            elif node.name == "add":
                self._sum(node)
            elif node.name in _SAME_CODES or self._is_mean_pool(node):
                self._keep_codes(node, node)
            elif node.name == "reduce_sum":
                self._mean(node)
        return self.found

    def _follower(self, value: Var, name: str) -> Node | None:
        node = self.users.get(value)
        return node if node is not None and node.name == name and node in self.allowed else None

    def _layer(self, node: Node) -> None:
        x, w = node.operands
        if not isinstance(x, Var) or not isinstance(w, Var):
            return
        if w not in self.constants or x in self.constants:
            return
        if any(v.dtype != np.float32 for v in (x, w, node.results[0])):
            return
        at = 0 if node.name == "convolution" else 1
        weight = QuantizationSpec(
            "int8", PerChannelMinMaxObserver, -127, 127, "per_channel_symmetric", at
        )
        self.found[node] = QuantizationAnnotation({x: self.activation, w: weight})
        last = self._bias(node, [(x, node), (w, node)])
        self._output(self._follower(last.results[0], "relu") or last)

    def _bias(self, layer: Node, operands: list[Edge | Var]) -> Node:
        """Annotate the addition of a bias behind a layer; the last node so far."""
        axis, value = channel_axis(layer), layer.results[0]
        assert axis is not None, "a layer has channels"
        node = self._follower(value, "add")
        if node is None or node.results[0].dtype != value.dtype:
            return layer
        held = [a for a in node.operands if isinstance(a, Var) and a in self.constants]
        if not held or per_channel(self.constants[held[0]], value, axis) is None:
            return layer
        bias = held[0]
        at = axis - (len(value.shape) - len(bias.shape))
        if at < 0 or bias.shape[at] != value.shape[axis]:
            return layer
        spec = DerivedQuantizationSpec(
            operands, bias_qparams, "int32", None, None, "per_channel_symmetric", at
        )
        self.found[node] = QuantizationAnnotation({bias: spec})
        return node

    def _output(self, node: Node) -> None:
        """The result of a node is observed."""
        before = self.found.get(node, QuantizationAnnotation())
        self.found[node] = attrs.evolve(before, output_qspec=self.activation)
        self.coded.add(node.results[0])

    def _keep_codes(self, first: Node, last: Node) -> None:
        """The result has the parameters of the operand, if that has codes."""
        (x,) = first.operands
        if x not in self.coded or not isinstance(x, Var):
            return
        spec: Spec = SharedQuantizationSpec(x)
        self.found[first] = QuantizationAnnotation({x: spec})
        before = self.found[first] if first is last else QuantizationAnnotation()
        self.found[last] = attrs.evolve(before, output_qspec=spec)
        self.coded.add(last.results[0])

    def _is_mean_pool(self, node: Node) -> bool:
        """Whether padding does not matter to an average: there is none, or it is not counted."""
        if node.name != "avg_pool":
            return False
        _, _, padding, extra, include = node.params
        padded = any(low or high for low, high in padding)
        return not any(extra) and not (padded and include)

    def _mean(self, node: Node) -> None:
        """A sum that is then divided by the number of its terms, a fixed one."""
        (x,), (axes, _) = node.operands, node.params
        after = self._follower(node.results[0], "divide")
        sizes = [x.shape[a] for a in axes]  # type: ignore[union-attr]
        if after is None or after.operands[0] is not node.results[0]:
            return
        if not all(isinstance(n, int) for n in sizes) or isinstance(after.operands[1], Var):
            return
        if after.operands[1] == int(np.prod(sizes)):
            self._keep_codes(node, after)

    def _sum(self, node: Node) -> None:
        """The sum of two values that both have codes."""
        if not all(a in self.coded for a in node.operands):
            return
        self.found[node] = QuantizationAnnotation(
            {a: SharedQuantizationSpec(a) for a in node.operands}  # type: ignore[misc,arg-type]
        )
        self._output(self._follower(node.results[0], "relu") or node)
