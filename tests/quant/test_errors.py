"""What cannot be carried out is said in words: which value, which line, and what to do."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import export, ops, quant
from funct.errors import DTypeError, ExportError, QuantizationError, ShapeError
from funct.graph import Graph, Node
from tests.quant.runtime import floats, quantized

W = floats([[1.0, -0.5], [0.25, 2.0]])
X = floats([[1.0, 0.0], [0.5, 1.0]])
MINMAX = quant.int8_static("minmax")
UINT8, FLOAT32 = np.dtype(np.uint8), np.dtype(np.float32)


def prepared(fun: Any = lambda x: x @ W, quantizer: quant.Quantizer = MINMAX) -> Any:
    """A program of X, prepared."""
    return quant.prepare_pt2e(export.export(fun, (X,)), quantizer)


def test_unobserved() -> None:
    """Converting without calibration names the value and the missing call."""
    with pytest.raises(QuantizationError) as caught:
        quant.convert_pt2e(prepared())
    text = str(caught.value)
    assert text.startswith("convert_pt2e: input 'x': the observer has seen no values")
    assert "fix: call calibrate with batches of real inputs first" in text


def test_no_batches_are_no_calibration() -> None:
    """An empty iterable, and batches of length 0, leave everything unobserved."""
    program = export.export(lambda x: x @ W, (X,), dynamic_shapes=({0: "n"},))
    empty = quant.prepare_pt2e(program, MINMAX)
    for batches in ([], [(X[:0, ...],)]):
        with pytest.raises(QuantizationError, match="has seen no values"):
            quant.convert_pt2e(quant.calibrate(empty, batches))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_finite(bad: float) -> None:
    """NaN and infinity in a batch are an error with the batch, the value and the user's line."""
    x = floats([[1.0, bad], [0.0, 0.0]])
    bias = floats([0.0, bad])
    with pytest.raises(QuantizationError, match="input 'x' holds NaN or infinity in batch 1"):
        quant.calibrate(prepared(lambda x: x + W, _InputOnly()), [(X,), (x,)])
    with pytest.raises(QuantizationError, match=r"the result of add \(v\d+\) holds") as caught:
        quant.calibrate(prepared(lambda x: x + bias, _OutputOnly()), [(X,)])
    assert "test_errors.py" in str(caught.value)


class _OutputOnly(quant.Quantizer):
    """Observes results of additions and nothing else."""

    def annotate(self, graph: Graph) -> Any:
        """One annotation per addition."""
        spec = quant.QuantizationSpec("uint8", quant.MinMaxObserver)
        nodes = [e for e in graph.nodes if isinstance(e, Node) and e.name == "add"]
        return {n: quant.QuantizationAnnotation(output_qspec=spec) for n in nodes}


class _InputOnly(quant.Quantizer):
    """Observes what additions read and nothing else."""

    def annotate(self, graph: Graph) -> Any:
        """One annotation per addition."""
        spec = quant.QuantizationSpec("uint8", quant.MinMaxObserver)
        nodes = [e for e in graph.nodes if isinstance(e, Node) and e.name == "add"]
        return {n: quant.QuantizationAnnotation({graph.inputs[0]: spec}) for n in nodes}


def test_a_weight_that_is_not_finite() -> None:
    """A model with NaN weights is refused when it is prepared."""
    w = floats([[1.0, np.nan], [0.0, 0.0]])
    with pytest.raises(QuantizationError, match="holds NaN or infinity"):
        prepared(lambda x: x @ w)


def test_batches_must_be_tuples() -> None:
    """A bare array as a batch is the usual slip."""
    with pytest.raises(QuantizationError, match="each of batches must be a tuple of arguments"):
        quant.calibrate(prepared(), [X])


def test_float64_programs() -> None:
    """Nothing is quantized silently nowhere: float64 layers are named."""
    x, w = xp.ones((2, 2)), xp.ones((2, 2))
    program = export.export(lambda x: x @ w, (x,))
    with pytest.raises(QuantizationError, match="no layer to quantize") as caught:
        quant.prepare_pt2e(program, MINMAX)
    assert "fix: compute in float32, not in float64" in str(caught.value)
    assert "test_errors.py" in str(caught.value)


def test_unknown_observer() -> None:
    """The ready quantizer lists the observers it knows."""
    with pytest.raises(QuantizationError, match="one of minmax, histogram, moving_average"):
        quant.int8_static("entropy")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"dtype": "float32"}, "dtype must be one of uint8, int8, int32, got float32"),
        ({"dtype": "int16"}, "dtype must be one of uint8, int8, int32, got int16"),
        ({"quant_min": -1}, r"must be an interval of uint8, got \[-1, 255\]"),
        ({"quant_max": 0}, r"must be an interval of uint8, got \[0, 0\]"),
        ({"qscheme": "log"}, "qscheme must be one of"),
        ({"ch_axis": 1}, "ch_axis belongs to per_channel_symmetric"),
        ({"qscheme": "per_channel_symmetric"}, "ch_axis belongs to per_channel_symmetric"),
        ({"is_dynamic": True}, "only static quantization exists"),
    ],
)
def test_specs(fields: dict[str, Any], text: str) -> None:
    """A spec that makes no sense is not made."""
    with pytest.raises(QuantizationError, match=text):
        quant.QuantizationSpec(
            **{"dtype": "uint8", "observer_or_fake_quant_ctor": quant.MinMaxObserver, **fields}
        )


@pytest.mark.parametrize(
    ("scale", "zero", "text"),
    [
        (0.0, 0, "scale must be a float32 > 0, got 0.0"),
        (-1.0, 0, "scale must be a float32 > 0, got -1.0"),
        (1e39, 0, "scale must be a float32 > 0"),
        (1.0, 256, "zero_point must be a uint8, got 256"),
    ],
)
def test_fixed_specs(scale: float, zero: int, text: str) -> None:
    """Fixed parameters must be a positive float32 and a code."""
    with pytest.raises(QuantizationError, match=text):
        quant.FixedQParamsQuantizationSpec("uint8", scale, zero)
    with pytest.raises(QuantizationError, match=r"got 200; the codes are \[0, 127\]"):
        quant.FixedQParamsQuantizationSpec("uint8", 1.0, 200, 0, 127)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan])
def test_scale_of_quantize(scale: float) -> None:
    """quantize refuses a scale that is not positive."""
    with pytest.raises(QuantizationError, match="quantize: scale must be > 0, got"):
        ops.quantize(X, floats(scale), xp.asarray(np.uint8(0)), UINT8, 0)


def test_dtypes_and_shapes_of_rooms() -> None:
    """Codes, zero points and scales must fit each other."""
    one, zero = floats(1.0), xp.asarray(np.uint8(0))
    with pytest.raises(DTypeError, match="codes must be uint8, int8 or int32, got int16"):
        ops.quantize(X, one, xp.asarray(np.int16(0)), np.dtype(np.int16), 0)
    with pytest.raises(DTypeError, match="zero_point must be uint8 as its codes, got int8"):
        ops.quantize(X, one, xp.asarray(np.int8(0)), UINT8, 0)
    with pytest.raises(DTypeError, match="x must be floating, got uint8"):
        ops.quantize(xp.asarray(np.uint8([1])), one, zero, UINT8, 0)
    with pytest.raises(ShapeError, match=r"scale \(3,\) does not fit axis 1 of shape \(2, 2\)"):
        ops.quantize(X, floats([1, 1, 1]), xp.asarray(np.zeros(3, np.uint8)), UINT8, 1)
    with pytest.raises(ShapeError, match="both 0-d or both of one length"):
        ops.dequantize(xp.asarray(np.uint8([1])), floats([1]), zero, FLOAT32, 0)


def test_float64_codes_have_no_onnx_form() -> None:
    """ONNX does not quantize float64, and the error says what to do."""
    one, zero = xp.asarray(1.0), xp.asarray(np.uint8(0))
    with pytest.raises(ExportError, match="ONNX quantizes float32, float16 and bfloat16"):
        export.to_onnx(lambda x: ops.quantize(x, one, zero, UINT8, 0), (xp.ones(3),))


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (quant.QuantizationSpec("uint8", quant.MinMaxObserver, 0, 127), "quant_max 127"),
        (
            quant.QuantizationSpec("int32", quant.MinMaxObserver, qscheme="per_tensor_symmetric"),
            "got int32",
        ),
    ],
)
def test_activations_use_all_of_8_bits(spec: Any, text: str) -> None:
    """At run time codes saturate where their dtype ends: other limits would be a lie."""
    custom = quant.Int8Static(spec)
    with pytest.raises(QuantizationError, match="must use all of uint8 or int8") as caught:
        quant.convert_pt2e(quant.calibrate(prepared(quantizer=custom), [(X,)]))
    assert text in str(caught.value)


class _Sharing(quant.Quantizer):
    """Asks for what cannot be."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def annotate(self, graph: Graph) -> Any:
        """Annotations that contradict each other."""
        (node,) = [e for e in graph.nodes if isinstance(e, Node)]
        x, y = graph.inputs[0], node.results[0]
        shared = quant.SharedQuantizationSpec
        asked: Any = {
            "itself": ({x: shared((x, node))}, None),
            "nobody": ({x: shared(y)}, None),
        }[self.kind]
        return {node: quant.QuantizationAnnotation(*asked)}


@pytest.mark.parametrize(
    ("kind", "text"),
    [("itself", "shares its parameters with itself alone"), ("nobody", "is not annotated")],
)
def test_sharing(kind: str, text: str) -> None:
    """A shared spec needs a partner that knows its parameters."""
    with pytest.raises(QuantizationError, match=text):
        prepared(quantizer=_Sharing(kind))


def test_two_quantizers_for_one_node() -> None:
    """Composed quantizers may agree, and must not differ."""
    agree = quant.ComposableQuantizer([MINMAX, quant.int8_static("minmax")])
    made = quantized(lambda x: x @ W, X, agree)
    assert np.asarray(made(X)).shape == (2, 2)
    differ = quant.ComposableQuantizer([MINMAX, quant.int8_static("histogram")])
    with pytest.raises(QuantizationError, match="matmul: two quantizers ask for different things"):
        prepared(quantizer=differ)


def test_merging_programs_of_two_preparations() -> None:
    """States belong to the groups of one prepare_pt2e."""
    with pytest.raises(QuantizationError, match="merge: both must come from one call"):
        quant.merge(prepared(), prepared())


def test_sums_beyond_int32() -> None:
    """A sum that leaves int32 is refused, not wrapped."""
    x, w = xp.asarray(np.full((1, 2), 255, np.uint8)), xp.asarray(np.full((1, 2), 127, np.int8))
    bias = xp.asarray(np.array([2**31 - 1], np.int32))
    one, zero = floats(1.0), xp.asarray(np.uint8(0))
    with pytest.raises(QuantizationError, match="must fit into int32"):
        ops.quantized_linear(x, w, bias, one, zero, one, one, one, zero, False)


def test_the_derivative_in_codes_is_named_zero() -> None:
    """quantize is constant between its steps: grad through it is 0, not an error and not NaN."""
    made = quantized(lambda x: x @ W, X)
    assert np.asarray(ft.grad(lambda x: xp.sum(made(x)))(X)).tolist() == [[0, 0], [0, 0]]
