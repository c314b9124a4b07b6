"""onnxruntime as these tests use it, and programs that show their codes."""

from typing import Any

import attrs
import numpy as np
import pytest

import funct.array as xp
from funct import export, quant
from funct.graph import Graph, Node, eliminate_dead
from funct.graph.program import ExportedProgram

ort = pytest.importorskip("onnxruntime")

Array = np.ndarray[Any, Any]


def session(model: Any, *, optimised: bool) -> Any:
    """A session on one thread, with all optimisations or with none."""
    level = ort.GraphOptimizationLevel
    options = ort.SessionOptions()
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimised else level.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    # without VNNI its u8s8 kernels would saturate sums of pairs at 16 bits
    options.add_session_config_entry("session.x64quantprecision", "1")
    # by default its products with weights of few bits make 8-bit codes of float32 inputs
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    return ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def run(model: Any, x: Any, *, optimised: bool) -> Array:
    """The first output of a model for one input."""
    made = session(model, optimised=optimised)
    return np.asarray(made.run(None, {made.get_inputs()[0].name: np.asarray(x)})[0])


def quantized(fun: Any, x: Any, quantizer: quant.Quantizer | None = None) -> ExportedProgram:
    """fun, exported, calibrated on x alone and converted."""
    program = export.export(fun, (x,))
    prepared = quant.prepare_pt2e(program, quantizer or quant.int8_static("minmax"))
    return quant.convert_pt2e(quant.calibrate(prepared, [(x,)]))


def showing_codes(program: ExportedProgram) -> ExportedProgram:
    """The program without its last dequantize: the result is codes."""
    graph = program.graph
    last = graph.nodes[-1]
    assert isinstance(last, Node)
    assert last.name == "dequantize"
    codes = attrs.evolve(graph, outputs=(last.operands[0],), nodes=graph.nodes[:-1])
    return attrs.evolve(program, graph=eliminate_dead(codes))


def names(graph: Graph) -> list[str]:
    """The ops of a graph, in order."""
    return [e.name for e in graph.nodes if isinstance(e, Node)]


def floats(values: Any) -> Any:
    """A float32 Array."""
    return xp.asarray(np.asarray(values, np.float32))
