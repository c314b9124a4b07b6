"""`Quantizer`: who decides which values are quantized, and how; back ends derive from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from funct.errors import QuantizationError, expect_kind
from funct.graph import Graph, Node
from funct.quant.spec import QuantizationAnnotation

__all__ = ["Annotations", "ComposableQuantizer", "Quantizer"]

Annotations = Mapping[Node, QuantizationAnnotation]


class Quantizer:
    """Base of the quantizers. Only `annotate` must be given.

    Example:
        >>> import funct.array as xp
        >>> import funct.nn.functional as F
        >>> from funct import export
        >>> from funct import quant
        >>> class Sigmoids(quant.Quantizer):
        ...     def annotate(self, graph):
        ...         spec = quant.FixedQParamsQuantizationSpec("uint8", 1 / 256, 0)
        ...         made = quant.QuantizationAnnotation(output_qspec=spec)
        ...         return {node: made for node in graph.nodes if node.name == "sigmoid"}
        >>> program = export.export(F.sigmoid, (xp.asarray([0.0, 9.0], dtype=xp.float32),))
        >>> quantized = quant.convert_pt2e(quant.prepare_pt2e(program, Sigmoids()))
        >>> quantized(xp.asarray([0.0, 9.0], dtype=xp.float32)).tolist()
        [0.5, 0.99609375]
    """

    def transform_for_annotation(self, graph: Graph) -> Graph:
        """A graph of equal value that is easier to annotate."""
        return graph

    def annotate(self, graph: Graph) -> Annotations:
        """What is asked for, by node; nodes that are left out stay in float."""
        raise NotImplementedError(f"{type(self).__name__} must define annotate")

    def validate(self, graph: Graph, annotations: Annotations) -> None:
        """Raise QuantizationError if the annotations cannot be served by the back end."""


def _quantizers(given: object) -> tuple[Quantizer, ...]:
    expect_kind(QuantizationError, "quantizers", given, (tuple, list), "a list of quantizers")
    found: Any = given
    for quantizer in found:
        expect_kind(QuantizationError, "each of quantizers", quantizer, Quantizer, "a Quantizer")
    return tuple(found)


@attrs.frozen
class ComposableQuantizer(Quantizer):
    """Several quantizers, each for its part of the graph; two must not want different things.

    Raises: QuantizationError: in `annotate`, where two want different things at one node.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import quant
        >>> w = xp.ones((2, 2), dtype=xp.float32)
        >>> graph = ft.make_graph(lambda x: x @ w)(w)
        >>> both = quant.ComposableQuantizer([quant.int8_static(), quant.int8_static()])
        >>> both.annotate(graph) == quant.int8_static().annotate(graph)
        True
    """

    quantizers: Sequence[Quantizer] = attrs.field(converter=_quantizers)

    def transform_for_annotation(self, graph: Graph) -> Graph:
        """The transformations of all, in order."""
        for q in self.quantizers:
            graph = q.transform_for_annotation(graph)
        return graph

    def annotate(self, graph: Graph) -> Annotations:
        """The annotations of all; raises QuantizationError where two differ."""
        found: dict[Node, QuantizationAnnotation] = {}
        for q in self.quantizers:
            for node, annotation in q.annotate(graph).items():
                if found.setdefault(node, annotation) != annotation:
                    raise QuantizationError(
                        f"{node.name}: two quantizers ask for different things at one node",
                        site=node.site,
                        fix="let only one of them annotate it",
                    )
        return found

    def validate(self, graph: Graph, annotations: Annotations) -> None:
        """The validations of all."""
        for q in self.quantizers:
            q.validate(graph, annotations)
