"""Where onnxruntime leaves the ONNX text or itself, shown; our exported forms avoid each case."""

from typing import Any

import numpy as np
import pytest

import funct.array as xp
from funct import export, ops
from tests.quant.runtime import Array, run

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.onnx


def model(nodes: list[Any], constants: dict[str, Any], shape: tuple[int, ...]) -> Any:
    """A uint8 -> uint8 ONNX model; the nodes run from "x" to "y"."""
    helper, uint8 = onnx.helper, onnx.TensorProto.UINT8
    held = [onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", uint8, shape)],
        [helper.make_tensor_value_info("y", uint8, None)], held,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def between(op: str, scale: float, zero: int, shape: tuple[int, ...], **attributes: Any) -> Any:
    """DequantizeLinear, op, QuantizeLinear with one scale and zero point."""
    node = onnx.helper.make_node
    nodes = [
        node("DequantizeLinear", ["x", "s", "z"], ["a"]),
        node(op, ["a"], ["b"], **attributes),
        node("QuantizeLinear", ["b", "s", "z"], ["y"]),
    ]
    return model(nodes, {"s": np.float32(scale), "z": np.uint8(zero)}, shape)


def linear(x_scale: float, w: int, w_scale: float, y_scale: float) -> Any:
    """One product of codes, as a function of x; all zero points are 0."""
    scales = [np.asarray(v, np.float32) for v in (x_scale, w_scale, y_scale)]
    sx, sw, sy = (xp.asarray(s) for s in scales)
    zero = xp.asarray(np.asarray(0, np.uint8))
    weights, bias = xp.asarray(np.array([[w]], np.int8)), xp.asarray(np.zeros(1, np.int32))
    unit = xp.asarray(np.asarray(scales[0] * scales[1]))
    return lambda x: ops.quantized_linear(x, weights, bias, sx, zero, sw, unit, sy, zero, False)


def codes(values: Any, *shape: int) -> Any:
    """A uint8 Array."""
    return xp.asarray(np.array(values, np.uint8).reshape(shape or np.shape(values)))


@pytest.mark.parametrize(
    ("x", "w", "x_scale", "w_scale", "y_scale", "exact", "literal"),
    [
        (1, 3, 0.25, 0.6, 0.9, 0, 1),
        (1, 5, 0.1, 0.1, 0.1, 1, 0),
        (5, 1, 0.3, 0.7, 0.3, 4, 3),
    ],
)
def test_a_tie_has_two_readings(
    x: int, w: int, x_scale: float, w_scale: float, y_scale: float, exact: int, literal: int
) -> None:
    """onnxruntime rounds one product of codes both ways; optimised, it agrees with us."""
    fun, given = linear(x_scale, w, w_scale, y_scale), codes([[x]])
    made = export.to_onnx(fun, (given,))
    assert np.asarray(fun(given)).item() == exact
    assert run(made, given, optimised=True).item() == exact
    assert run(made, given, optimised=False).item() == literal


def test_integer_average_rounds_after_the_zero_point() -> None:
    """ONNX rounds x / scale and then adds the zero point; the optimised AveragePool does not."""
    x = codes([0, 1, 2], 1, 1, 3)
    made = between("AveragePool", 1.0, 1, (1, 1, 3), kernel_shape=[2])
    assert run(made, x, optimised=False).tolist() == [[[1, 1]]]
    assert run(made, x, optimised=True).tolist() == [[[0, 2]]]


def test_integer_global_average_multiplies_by_a_rounded_reciprocal() -> None:
    """The mean 6.5 of 14 codes rounds to 6; 91 * float32(1 / 14) is more than 6.5 and gives 7."""
    x = codes([6] * 7 + [7] * 7, 1, 1, 14)
    made = between("GlobalAveragePool", 1.0, 0, (1, 1, 14))
    assert run(made, x, optimised=False).item() == 6
    assert run(made, x, optimised=True).item() == 7


@pytest.mark.parametrize("window", [2, 14])
def test_our_average_is_the_same_in_both_modes(window: int, rng: np.random.Generator) -> None:
    """Averages of codes are exact, ties included, for windows and for whole images."""
    x = codes(rng.integers(0, 12, (50, 3, 14)))

    def fun(x: Any) -> Any:
        return ops.quantized_avg_pool(x, (window,), (window,), ((0, 0),))

    ours = np.asarray(fun(x))
    totals = np.asarray(x).reshape(50, 3, 14 // window, window).sum(-1)
    np.testing.assert_array_equal(ours, np.rint(totals / window))
    made = export.to_onnx(fun, (x,))
    for optimised in (True, False):
        np.testing.assert_array_equal(run(made, x, optimised=optimised), ours)


def test_our_mean_is_the_same_in_both_modes(rng: np.random.Generator) -> None:
    """A mean over axes is exact too."""
    x = codes(rng.integers(0, 256, (40, 3, 7, 8)))
    ours = np.asarray(ops.quantized_mean(x, (2, 3), False))
    made = export.to_onnx(lambda x: ops.quantized_mean(x, (2, 3), False), (x,))
    for optimised in (True, False):
        np.testing.assert_array_equal(run(made, x, optimised=optimised), ours)


@pytest.mark.parametrize("relu", [False, True])
def test_our_sum_is_the_same_in_both_modes(relu: bool, rng: np.random.Generator) -> None:
    """A sum of codes with three different parameters; written as Sum it stays in float32."""
    x, y = (codes(rng.integers(0, 256, (300, 300))) for _ in range(2))
    parameters = [(0.0371, 3), (0.0113, 128), (0.0419, 0 if relu else 60)]
    held: list[Any] = []
    for scale, zero in parameters:
        held += [xp.asarray(np.asarray(scale, np.float32)), xp.asarray(np.asarray(zero, np.uint8))]
    ours = np.asarray(ops.quantized_add(x, y, *held, relu))
    made = export.to_onnx(lambda x: ops.quantized_add(x, y, *held, relu), (x,))
    for optimised in (True, False):
        np.testing.assert_array_equal(run(made, x, optimised=optimised), ours)


def test_a_float_layer_between_codes_is_quantized_unless_marked(rng: np.random.Generator) -> None:
    """onnxruntime quantizes float weights of DQ -> Conv -> Q by itself; not behind keep_float."""
    w = xp.asarray((rng.integers(-9, 10, (6, 4, 3)) / 64).astype(np.float32))
    x = codes(rng.integers(0, 256, (1, 4, 30)))
    scale, zero = xp.asarray(np.asarray(0.25, np.float32)), xp.asarray(np.asarray(99, np.uint8))
    float32, uint8 = np.dtype(np.float32), np.dtype(np.uint8)

    def layer(x: Any, keep: bool) -> Any:
        real = ops.dequantize(x, scale, zero, float32, 0)
        real = ops.keep_float(real) if keep else real
        y = ops.convolution(real, w, (1,), ((0, 0),), (1,), 1)
        return ops.quantize(y, scale, zero, uint8, 0)

    ours = np.asarray(layer(x, True))
    for keep in (False, True):
        made = export.to_onnx(lambda x, keep=keep: layer(x, keep), (x,))
        same: Array = run(made, x, optimised=True) == ours
        assert np.all(same) == keep
