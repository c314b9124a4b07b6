"""`convert_pt2e`: from what was observed to a program that computes on codes.

First every quantized value is written out: `quantize` where it is made or read, one `dequantize`
per use, constants stored as int8 and int32. This graph says in float32 what a quantized program
means to any runtime. Then `lower.py` replaces each layer in it by the op with its exact integer
value. Both graphs are made of primitives; what is returned is an ExportedProgram like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from funct import ops
from funct.array import Array
from funct.graph import Graph, Node, Var
from funct.graph.program import ExportedProgram
from funct.kernels.quantized import affine as kernels
from funct.quant.lower import lower
from funct.quant.parameters import Parameters, group_parameters
from funct.quant.prepare import PreparedProgram, expect_prepared
from funct.quant.rewrite import Rewriter, constants_of, producers
from funct.source import Site

__all__ = ["convert_pt2e", "explicit"]


def convert_pt2e(prepared: PreparedProgram) -> ExportedProgram:
    """Make the quantized program from what was observed.

    Args:    prepared: from `calibrate`.
    Returns: an ExportedProgram. The constants of quantized layers are int8 and int32.
    Raises:  QuantizationError: when a value was never observed, or a scale leaves float32.
    Notes:   a layer's value is that of exact integer sums, and equals, on every element, what an
             optimising onnxruntime computes from the exported file. With its optimisations off
             onnxruntime sums in float32: a code may then differ by one, and only where the exact
             result stands within float32's rounding of a tie. The derivative in an input that is
             quantized is 0: codes are constant between their steps.
    Example:
        >>> import funct.array as xp
        >>> from funct import export
        >>> from funct import quant
        >>> x = xp.ones((2, 2), dtype=xp.float32)
        >>> w = 2.0 * x
        >>> program = export.export(lambda x: x @ w, (x,))
        >>> prepared = quant.prepare_pt2e(program, quant.int8_static("minmax"))
        >>> quantized = quant.convert_pt2e(quant.calibrate(prepared, [(x,)]))
        >>> quantized(x).tolist(), quantized(5.0 * x).tolist()  # beyond what was seen it saturates
        ([[4.0, 4.0], [4.0, 4.0]], [[4.0, 4.0], [4.0, 4.0]])

    Source:  torchao's convert_pt2e with fold_quantize=True.
    """
    expect_prepared("convert_pt2e: prepared", prepared)
    program = explicit(prepared)
    return attrs.evolve(program, graph=lower(program.graph))


def explicit(prepared: PreparedProgram) -> ExportedProgram:
    """The program with every quantize and dequantize written out, its layers still in float."""
    writer = _Writer(prepared)
    graph = writer.run()
    names = {**prepared.program.constant_names, **writer.names}
    kept = {v.name: names[v.name] for v, _ in graph.constants if v.name in names}
    return attrs.evolve(prepared.program, graph=graph, constant_names=kept)


class _Writer:
    """Writes one prepared program out."""

    def __init__(self, prepared: PreparedProgram) -> None:
        self.old = prepared.graph
        self.group_of = prepared.group_of
        self.paths = prepared.program.constant_names
        self.parameters = group_parameters(prepared)
        self.constants: Mapping[Var, Array] = constants_of(self.old)
        self.made_by = producers(self.old)
        self.new = Rewriter(self.old)
        self.names: dict[str, str] = {}  # of new constants: the path of the parameter they were
        self.pairs: dict[int, tuple[Var, Var]] = {}  # scale and zero point of each group
        self.codes: dict[tuple[Var, int], Var] = {}

    def run(self) -> Graph:
        """The graph."""
        for e in self.old.nodes:
            if isinstance(e, Node):
                e = attrs.evolve(e, operands=tuple([self._read(a, e) for a in e.operands]))
            self.new.keep(e)
        return self.new.graph([self._read(v, None) for v in self.old.outputs])

    def _read(self, v: Any, node: Node | None) -> Any:
        """What a node, or a result of the program, reads in the place of v."""
        if not isinstance(v, Var):
            return v
        own = self.group_of.get((v, None))
        here = self.group_of.get((v, node)) if node is not None else own
        group = own if here is None else here
        if group is None:
            return v
        site = node.site if node is not None else self._site(v)
        if own is None or own == group:
            return self._real(self._quantized(v, v, group), v, group, site)
        between = self._real(self._quantized(v, v, own), v, own, site)
        return self._real(self._quantized(v, between, group), v, group, site)

    def _quantized(self, v: Var, source: Var, group: int) -> Var:
        """The codes of v, read from `source`; written once per group."""
        found = self.codes.get((v, group))
        if found is None:
            p = self.parameters[group]
            scale, zero = self._pair(group, v)
            if v in self.constants:
                found = self._stored(v, p)
            else:
                params = (p.zero_point.dtype, p.axis)
                found = self.new.node(
                    ops.quantize, (source, scale, zero), params, site=self._site(v)
                )
            self.codes[v, group] = found
        return found

    def _stored(self, v: Var, p: Parameters) -> Var:
        x = np.asarray(self.constants[v])
        low, high = p.limits
        codes = kernels.quantize(
            x, p.scale, p.zero_point, low, high, p.zero_point.dtype, p.axis
        )  # fmt: skip
        return self._named(codes, v, "")

    def _pair(self, group: int, v: Var) -> tuple[Var, Var]:
        if group not in self.pairs:
            p = self.parameters[group]
            self.pairs[group] = (
                self._named(p.scale, v, "_scale"),
                self._named(p.zero_point, v, "_zero_point"),
            )
        return self.pairs[group]

    def _named(self, value: Any, v: Var, suffix: str) -> Var:
        made = self.new.constant(value)
        if v.name in self.paths:
            self.names[made.name] = self.paths[v.name] + suffix
        return made

    def _real(self, codes: Var, v: Var, group: int, site: Site | None) -> Var:
        p = self.parameters[group]
        operands = (codes, *self._pair(group, v))
        return self.new.node(ops.dequantize, operands, (v.dtype, p.axis), site=site)

    def _site(self, v: Var) -> Site | None:
        node = self.made_by.get(v)
        return node.site if node is not None else None
