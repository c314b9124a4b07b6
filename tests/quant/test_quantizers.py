"""Custom quantizers: other dtypes, fixed and shared parameters, and what then runs on codes."""

from typing import Any

import numpy as np
import pytest

import funct.array as xp
from funct import export, nn, ops, quant, random
from funct.graph import Graph, Node
from funct.graph.program import ExportedProgram
from funct.quant.convert import explicit
from tests.quant.runtime import floats, names, quantized, run, showing_codes

pytestmark = pytest.mark.onnx


def net(rng: np.random.Generator) -> Any:
    """Convolution, relu, pool, linear."""
    w, v = floats(rng.normal(size=(4, 3, 3))), floats(rng.normal(size=(12, 5)))
    b = floats(rng.normal(size=(1, 4, 1)))

    def fun(x: Any) -> Any:
        y = ops.relu(ops.convolution(x, w, (1,), ((1, 1),), (1,), 1) + b)
        y = ops.max_pool(y, (2,), (2,), ((0, 0),), (1,))
        return xp.reshape(y, (y.shape[0], -1)) @ v

    return fun


def check_equal(program: ExportedProgram, x: Any) -> None:
    """Codes equal onnxruntime's."""
    codes = showing_codes(program)
    np.testing.assert_array_equal(
        run(export.to_onnx(codes), x, optimised=True), np.asarray(codes(x))
    )


def test_int8_activations(rng: np.random.Generator) -> None:
    """Signed activations: relu is absorbed at code -128."""
    x = floats(rng.normal(size=(40, 3, 6)))
    spec = quant.QuantizationSpec("int8", quant.MinMaxObserver)
    made = quantized(net(rng), x, quant.Int8Static(spec))
    assert "relu" not in names(made.graph)
    assert np.asarray(showing_codes(made)(x)).dtype == np.int8
    check_equal(made, x)


class _Fixed(quant.Quantizer):
    """Activations with fixed parameters whose zero point lies inside of the codes."""

    def annotate(self, graph: Graph) -> Any:
        """int8_static's annotations with another activation spec."""
        spec: Any = quant.FixedQParamsQuantizationSpec("uint8", 0.07, 100)
        return quant.Int8Static(spec).annotate(graph)


def test_relu_above_the_smallest_code(rng: np.random.Generator) -> None:
    """Where negative numbers have codes relu is an op of its own, and still exact."""
    x = floats(rng.normal(size=(40, 3, 6)))
    made = quantized(net(rng), x, _Fixed())
    assert names(made.graph)[1:6] == [
        "quantized_convolution", "dequantize", "keep_float", "relu", "quantize",
    ]  # fmt: skip
    check_equal(made, x)


def test_per_tensor_weights(rng: np.random.Generator) -> None:
    """One scale for a whole weight is a pattern too, with any bias that fits it."""

    class PerTensor(quant.Quantizer):
        def annotate(self, graph: Graph) -> Any:
            found = dict(quant.int8_static("minmax").annotate(graph))
            weight = quant.QuantizationSpec(
                "int8", quant.MinMaxObserver, -127, 127, "per_tensor_symmetric"
            )
            for node, a in found.items():
                inputs = {
                    v: weight if getattr(s, "dtype", None) == np.int8 else s
                    for v, s in a.input_qspec_map.items()
                    if not isinstance(s, quant.DerivedQuantizationSpec)
                }
                found[node] = quant.QuantizationAnnotation(inputs, a.output_qspec)
            return found

    w = floats(rng.normal(size=(6, 4)))
    x = floats(rng.normal(size=(50, 6)))
    made = quantized(lambda x: x @ w, x, PerTensor())
    assert names(made.graph) == ["quantize", "quantized_linear", "dequantize"]
    check_equal(made, x)


def test_two_parameters_for_one_value(rng: np.random.Generator) -> None:
    """A value may be produced with one spec and read with another: it is quantized twice."""

    class Narrow(quant.Quantizer):
        def annotate(self, graph: Graph) -> Any:
            found = dict(quant.int8_static("minmax").annotate(graph))
            last = [n for n in found if n.name == "matmul"][-1]
            fixed = quant.FixedQParamsQuantizationSpec("uint8", 0.5, 10)
            x = last.operands[0]
            inputs = {v: fixed if v is x else s for v, s in found[last].input_qspec_map.items()}
            found[last] = quant.QuantizationAnnotation(inputs, found[last].output_qspec)  # type: ignore[arg-type]
            return found

    w, v = floats(rng.normal(size=(6, 4))), floats(rng.normal(size=(4, 3)))
    x = floats(rng.normal(size=(50, 6)))
    made = quantized(lambda x: (x @ w) @ v, x, Narrow())
    assert names(made.graph) == [
        "quantize", "quantized_linear", "dequantize", "keep_float", "quantize",
        "quantized_linear", "dequantize",
    ]  # fmt: skip
    check_equal(made, x)


def test_the_explicit_graph(rng: np.random.Generator) -> None:
    """Before lowering every use has its dequantize, constants are codes, names are kept."""
    layer = nn.Linear(6, 4, key=random.key(0))
    x = floats(rng.normal(size=(5, 6)))
    program = export.export(lambda x: ops.relu(layer(x)), (x,))
    ready = quant.calibrate(quant.prepare_pt2e(program, quant.int8_static("minmax")), [(x,)])
    graph = explicit(ready).graph
    assert names(graph) == [
        "quantize", "dequantize", "dequantize", "matmul", "dequantize", "add", "relu", "quantize",
        "dequantize",
    ]  # fmt: skip
    uses = [a for e in graph.nodes if isinstance(e, Node) for a in e.operands]
    made = [e.results[0] for e in graph.nodes if isinstance(e, Node) and e.name == "dequantize"]
    assert all(sum(u is v for u in uses) <= 1 for v in made)
    close = np.abs(np.asarray(explicit(ready)(x)) - np.asarray(quant.convert_pt2e(ready)(x)))
    assert close.max() <= 0.02  # at most a step: the explicit graph sums in float32


def test_names_of_parameters_are_kept(rng: np.random.Generator) -> None:
    """Codes keep the path of the parameter that they were, their scale stands beside it."""
    layer = nn.Conv1d(3, 4, 3, key=random.key(0))
    x = floats(rng.normal(size=(5, 3, 8)))
    made = quantized(layer, x)
    assert {"weight", "weight_scale"} <= set(made.constant_names.values())


def test_a_product_that_is_no_layer_stays_in_float() -> None:
    """Weights with a batch axis have no integer room: the product runs as it is written."""
    rng = np.random.default_rng(0)
    w, x = floats(rng.normal(size=(2, 6, 4))), floats(rng.normal(size=(2, 5, 6)))

    class Batched(quant.Quantizer):
        def annotate(self, graph: Graph) -> Any:
            node = next(n for n in graph.nodes if n.name == "matmul")  # type: ignore[union-attr]
            around = quant.QuantizationSpec("uint8", quant.MinMaxObserver)
            weight = quant.QuantizationSpec(
                "int8", quant.MinMaxObserver, -127, 127, "per_tensor_symmetric"
            )
            inputs = {node.operands[0]: around, node.operands[1]: weight}
            return {node: quant.QuantizationAnnotation(inputs, around)}

    program = quantized(lambda x: x @ w, x, Batched())
    assert "matmul" in names(program.graph)
    np.testing.assert_allclose(np.asarray(program(x)), np.asarray(x @ w), atol=0.2)
