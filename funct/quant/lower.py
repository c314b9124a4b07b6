"""`lower`: give the layers of an explicit graph their exact integer value.

    dequantize(x), dequantize(w) -> convolution | matmul
        [-> add dequantize(bias)] [-> relu] -> quantize

becomes one `quantized_convolution` or `quantized_linear`; pooling, reshaping and addition work on
codes likewise. Read in float32 the pattern has no single value: it depends on the order in which
a runtime sums. The integer sum is exact, so a quantized program is defined by it, and this is what
an optimising onnxruntime makes of the pattern too.

The lowered ops stay in the graph that is saved, transformed and exported: in ONNX each is written
as the pattern again, with one DequantizeLinear per use. `quantize` and `dequantize` remain where
codes begin and end. What matches no pattern runs in float as it is written; a `keep_float`, where
codes become floats that will be codes again, keeps other runtimes to that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from funct import ops
from funct.graph import Graph, Node, Var
from funct.kernels.quantized.affine import output_multiplier
from funct.quant.fold import channel_axis
from funct.quant.rewrite import Rewriter, constants_of, producers

__all__ = ["lower"]

_MOVES = {
    "max_pool": ops.max_pool,
    "permute_dims": ops.permute_dims,
    "reshape": ops.reshape,
}


def lower(graph: Graph) -> Graph:
    """The graph whose quantized layers compute on codes."""
    return _keep_floats(_Lowering(graph).run())


@attrs.frozen(eq=False)
class _Codes:
    """A dequantized value: what it was made from."""

    codes: Var
    scale: Var
    zero_point: Var
    axis: int


class _Lowering:
    """One walk over one graph; every pattern ends in a quantize."""

    def __init__(self, graph: Graph) -> None:
        self.old = graph
        self.constants = {v: np.asarray(x) for v, x in constants_of(graph).items()}
        self.made_by = producers(graph)
        self.new = Rewriter(graph)
        self.taken: set[Var] = set()  # weights that a layer has

    def run(self) -> Graph:
        """The lowered graph; what has lost its last reader is dropped."""
        for e in self.old.nodes:
            lowered = isinstance(e, Node) and e.name == "quantize" and self._lowered(e)
            if not lowered:
                self.new.keep(e)
        return self.new.graph()

    def _lowered(self, end: Node) -> bool:
        value, scale, _ = end.operands
        if value.dtype != np.float32 or scale.shape != ():  # type: ignore[union-attr]
            return False
        node = self._maker(value)
        if node is None:
            return False
        if node.name in _MOVES or node.name == "avg_pool":
            return self._same_codes(node, node.operands[0], node, end)
        if node.name == "divide":
            total = self._maker(node.operands[0])
            return total is not None and self._same_codes(node, total.operands[0], total, end)
        relu = node.name == "relu"
        inner = self._maker(node.operands[0]) if relu else node
        return inner is not None and (self._layer(inner, relu, end) or self._sum(inner, relu, end))

    def _maker(self, v: Any) -> Node | None:
        return self.made_by.get(v) if isinstance(v, Var) else None

    def _codes(self, v: Any) -> _Codes | None:
        """What v was dequantized from, if all its parameters are constants."""
        node = self._maker(v)
        if node is None or node.name != "dequantize":
            return None
        codes, scale, zero = node.operands
        if scale not in self.constants or zero not in self.constants:
            return None
        return _Codes(codes, scale, zero, node.params[1])  # type: ignore[arg-type]

    def _tensor(self, v: Any) -> _Codes | None:
        """`_codes` with one scale for the whole tensor."""
        found = self._codes(v)
        return found if found is not None and found.scale.shape == () else None

    # layers ----------------------------------------------------------------------------------

    def _layer(self, node: Node, relu: bool, end: Node) -> bool:
        bias = None
        if node.name == "add":
            sides = [self._codes(a) for a in node.operands]
            at = [i for i, s in enumerate(sides) if s is not None and s.codes.dtype == np.int32]
            inner = self._maker(node.operands[1 - at[0]]) if len(at) == 1 else None
            if inner is None:
                return False
            node, bias = inner, sides[at[0]]
        if channel_axis(node) is None:
            return False
        linear = node.name == "matmul"
        x, w = self._tensor(node.operands[0]), self._codes(node.operands[1])
        if x is None or w is None or not self._is_weight(w, 1 if linear else 0):
            return False
        scales = (x.scale, w.scale, end.operands[1])
        made = self._bias(bias, node.results[0], scales, linear)
        if made is None:
            return False
        kernel = self._kernel(w.codes, linear)
        y_scale, y_zero = end.operands[1:]
        operands = (
            x.codes, kernel, made[0], x.scale, x.zero_point, w.scale, made[1], y_scale, y_zero
        )  # fmt: skip
        op = ops.quantized_linear if linear else ops.quantized_convolution
        absorbed = relu and self._saturates_at_zero(y_zero)
        made_relu = relu and not absorbed
        codes = self.new.node(
            op, operands, (*node.params, absorbed), site=node.site,
            result=None if made_relu else end.results[0],
        )  # fmt: skip
        if made_relu:
            self._relu(codes, end)
        return True

    def _kernel(self, codes: Var, linear: bool) -> Var:
        """The weights (O, ...) of one layer, shared with no other.

        onnxruntime (1.31) fails to load a model whose layers do, where it makes weights unsigned.
        """
        if not linear and codes not in self.taken:
            self.taken.add(codes)
            return codes
        return self.new.constant(self.constants[codes].T if linear else self.constants[codes])

    def _saturates_at_zero(self, zero_point: Any) -> bool:
        """Whether no code stands for a negative number: saturation is then a relu."""
        zero = self.constants.get(zero_point)
        return zero is not None and int(zero) == np.iinfo(zero.dtype).min

    def _relu(self, codes: Var, end: Node) -> None:
        """relu of codes, written in float: exact, since it keeps the parameters."""
        scale, zero = end.operands[1:]
        float32 = np.dtype(np.float32)
        x = self.new.node(ops.dequantize, (codes, scale, zero), (float32, 0), site=end.site)
        y = self.new.node(ops.relu, (x,), site=end.site)
        self.new.node(
            ops.quantize, (y, scale, zero), end.params, site=end.site, result=end.results[0]
        )

    def _is_weight(self, w: _Codes, axis: int) -> bool:
        """int8 constants around zero, one scale or one per output channel."""
        if w.codes not in self.constants or w.codes.dtype != np.int8:
            return False
        along = w.scale.shape == () or w.axis == axis
        return along and not np.any(self.constants[w.zero_point])

    def _bias(
        self, bias: _Codes | None, y: Var, scales: tuple[Any, ...], linear: bool
    ) -> tuple[Var, Var] | None:
        """int32 codes (O,) and their scale; None where they do not fit the sum's own unit."""
        x_scale, w_scale, y_scale = (self.constants.get(s) for s in scales)
        if x_scale is None or w_scale is None or y_scale is None:
            return None
        channels = y.shape[-1 if linear else 1]
        unit = np.asarray(x_scale * w_scale, np.float32)
        multiplier = output_multiplier(x_scale, w_scale, y_scale)
        if not np.all(np.isfinite(multiplier)):
            return None
        if bias is None:
            codes = np.zeros(channels, np.int32)
            return self.new.constant(codes), self.new.constant(unit)
        at = bias.axis + len(y.shape) - len(bias.codes.shape)
        given = self.constants.get(bias.codes)
        fits = (
            given is not None
            and given.size == channels
            and at == (len(y.shape) - 1 if linear else 1)
            and not np.any(self.constants[bias.zero_point])
            and np.array_equal(np.broadcast_to(unit, (channels,)),
                               np.broadcast_to(self.constants[bias.scale], (channels,)))
        )  # fmt: skip
        if given is None or not fits:
            return None
        same = bias.codes if given.shape == (channels,) else self.new.constant(given.ravel())
        return same, bias.scale

    # what keeps codes, and sums ------------------------------------------------------------------

    def _same_codes(self, node: Node, x: Any, first: Node, end: Node) -> bool:
        """An op after which codes mean what they meant before."""
        given = self._tensor(x)
        if given is None or (given.scale, given.zero_point) != end.operands[1:]:
            return False
        if node.name in _MOVES:
            self._end(_MOVES[node.name], (given.codes,), node.params, node, end)
        elif node.name == "avg_pool":
            window, stride, padding, extra, include = node.params
            if any(extra) or (include and any(low or high for low, high in padding)):
                return False
            self._end(ops.quantized_avg_pool, (given.codes,), (window, stride, padding), node, end)
        else:
            if first.name != "reduce_sum" or isinstance(node.operands[1], Var):
                return False
            sizes = [given.codes.shape[a] for a in first.params[0]]
            if not all(isinstance(n, int) for n in sizes) or node.operands[1] != np.prod(sizes):
                return False
            self._end(ops.quantized_mean, (given.codes,), first.params, first, end)
        return True

    def _sum(self, node: Node, relu: bool, end: Node) -> bool:
        if node.name != "add":
            return False
        x, y = (self._tensor(a) for a in node.operands)
        if x is None or y is None or x.codes.dtype.itemsize != 1 or y.codes.dtype.itemsize != 1:
            return False
        operands = (
            x.codes, y.codes, x.scale, x.zero_point, y.scale, y.zero_point, *end.operands[1:]
        )  # fmt: skip
        self._end(ops.quantized_add, operands, (relu,), node, end)
        return True

    def _end(self, op: Any, operands: Any, params: Any, node: Node, end: Node) -> None:
        self.new.node(op, operands, params, site=node.site, result=end.results[0])


def _keep_floats(graph: Graph) -> Graph:
    """Mark the floats made from codes that become codes again; see `ops.keep_float`."""
    made_by = producers(graph)
    leads_to_codes: set[Any] = set()
    for e in reversed(graph.nodes):
        if isinstance(e, Node) and _leads(e, leads_to_codes):
            leads_to_codes.update(e.operands)
    new = Rewriter(graph)
    for e in graph.nodes:
        if isinstance(e, Node) and _leads(e, leads_to_codes):
            e = attrs.evolve(e, operands=tuple([_kept(new, a, e, made_by) for a in e.operands]))
        new.keep(e)
    return new.graph()


def _leads(node: Node, known: set[Any]) -> bool:
    return node.name == "quantize" or not known.isdisjoint(node.results)


def _kept(new: Rewriter, a: Any, reader: Node, made_by: Mapping[Var, Node]) -> Any:
    node = made_by.get(a) if isinstance(a, Var) else None
    if node is None or node.name != "dequantize":
        return a
    return new.node(ops.keep_float, (a,), site=reader.site)
