"""`Quantizer`: who decides which values are quantized, and how; back ends derive from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from funct.errors import QuantizationError
from funct.graph import Graph, Node
from funct.quant.spec import QuantizationAnnotation

__all__ = ["Annotations", "ComposableQuantizer", "Quantizer"]

Annotations = Mapping[Node, QuantizationAnnotation]


class Quantizer:
    """Base of the quantizers. Only `annotate` must be given."""

    def transform_for_annotation(self, graph: Graph) -> Graph:
        """A graph of equal value that is easier to annotate."""
        return graph

    def annotate(self, graph: Graph) -> Annotations:
        """What is asked for, by node; nodes that are left out stay in float."""
        raise NotImplementedError(f"{type(self).__name__} must define annotate")

    def validate(self, graph: Graph, annotations: Annotations) -> None:
        """Raise QuantizationError if the annotations cannot be served by the back end."""


@attrs.frozen
class ComposableQuantizer(Quantizer):
    """Several quantizers, each for its part of the graph; two must not want different things."""

    quantizers: Sequence[Quantizer] = attrs.field(converter=tuple)

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
