"""`convert_pt2e`: from what was observed to a program that computes on codes.

First every quantized value is written out: `quantize` where it is made or read, one `dequantize` per
use, constants stored as int8 and int32. This graph says in float32 what every quantized program means
to any runtime. Then `lower.py` gives the layers in it their exact integer value. Both steps are
graphs of primitives; what is returned is an ExportedProgram like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from funct import ops
from funct.errors import QuantizationError
from funct.graph import Call, Graph, Guard, Node, Var, share_common
from funct.graph.program import ExportedProgram
from funct.kernels import quantized as kernels
from funct.quant.lower import lower
from funct.quant.prepare import Point, PreparedProgram, describe
from funct.quant.rewrite import Rewriter, constants_of
from funct.quant.spec import (
    DerivedQuantizationSpec,
    FixedQParamsQuantizationSpec,
    QParams,
    QuantizationSpec,
)

__all__ = ["convert_pt2e", "explicit"]


def convert_pt2e(prepared: PreparedProgram) -> ExportedProgram:
    """Make the quantized program from what was observed.

    Args:    prepared: from `calibrate`.
    Returns: an ExportedProgram. Constants of quantized layers are int8 and int32.
    Raises:  QuantizationError: when a value was never observed, or a scale leaves float32.
    Notes:   the value of a layer is that of exact integer sums, and equals what an optimising
             onnxruntime computes from the exported file on every element. With its optimisations off
             onnxruntime sums in float32: then a code may differ by one, and only where the exact
             result stands within float32's rounding of a tie. A graph that takes the same codes has
             the derivative 0 in its inputs.
    Source:  torchao's convert_pt2e with fold_quantize=True.
    """
    program = explicit(prepared)
    return attrs.evolve(program, graph=lower(program.graph))


def explicit(prepared: PreparedProgram) -> ExportedProgram:
    """The program with every quantize and dequantize written out, before layers become integer."""
    writer = _Explicit(prepared)
    graph = share_common_quantize(writer.run())
    known = {v.name for v, _ in graph.constants}
    names = {**prepared.program.constant_names, **writer.names}
    kept = {k: path for k, path in names.items() if k in known}
    return attrs.evolve(prepared.program, graph=graph, constant_names=kept)
