"""Weights in few bits: what programs become, their values, their files, and what is refused."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import export, quant
from funct.errors import QuantizationError
from funct.graph.program import ExportedProgram
from tests.quant.runtime import names, run

QUANTIZERS = [
    pytest.param(quant.int8_weight_only(), 1 / 254, id="int8"),
    pytest.param(quant.int8_weight_only(32), 1 / 254, id="int8, groups"),
    pytest.param(quant.int4_weight_only(32), 1 / 15, id="int4"),
    pytest.param(quant.int4_weight_only(64), 1 / 15, id="int4, one group"),
]


def floats(shape: Any, seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def made(quantizer: quant.Quantizer, x: Any) -> ExportedProgram:
    """Two layers, and something in float between them."""
    w, v, b = (xp.asarray(floats(s, k)) for k, s in enumerate([(64, 96), (96, 7), (96,)]))
    program = export.export(lambda x: xp.tanh(x @ w + b) @ v, (xp.asarray(x),))
    return quant.convert_pt2e(quant.prepare_pt2e(program, quantizer))


@pytest.mark.parametrize(("quantizer", "step"), QUANTIZERS)
def test_weights_are_rounded_and_nothing_else(quantizer: Any, step: float) -> None:
    """A product with the identity shows the weights: within half a step of the largest."""
    w = floats((64, 24), 0)
    program = export.export(lambda x: x @ xp.asarray(w), (xp.eye(64, dtype=xp.float32),))
    new = quant.convert_pt2e(quant.prepare_pt2e(program, quantizer))
    assert names(new.graph) == ["weight_only_linear"]
    found = np.asarray(new(xp.eye(64, dtype=xp.float32)))
    groups = np.abs(w.T).reshape(24, -1, quantizer.group_size or 64)
    bound = (groups.max(axis=2, keepdims=True) * np.ones_like(groups)).reshape(24, 64).T
    # one code more lies below zero than above: the largest weight may lose a whole step of 4 bits
    allowed = step * (2 if quantizer.bits == 4 else 1) * bound
    assert np.all(np.abs(found - w) <= allowed * 1.001)
    assert np.abs(found - w).max() > 0


@pytest.mark.parametrize(("quantizer", "step"), QUANTIZERS)
@pytest.mark.parametrize("shape", [(3, 64), (2, 5, 64)])
def test_onnxruntime_gives_the_same(quantizer: Any, step: float, shape: Any) -> None:
    """Up to the order of sums; of 4 bits the file holds INT4."""
    x = floats(shape, 9)
    program = made(quantizer, x)
    expected = np.asarray(program(xp.asarray(x)))
    model = export.to_onnx(program)
    for optimised in (False, True):
        np.testing.assert_allclose(run(model, x, optimised=optimised), expected, atol=1e-4)
    kinds = {t.data_type for t in model.graph.initializer}
    assert (22 in kinds) == (quantizer.bits == 4)  # TensorProto.INT4


def test_layers_that_do_not_fit_stay_in_float() -> None:
    """96 inputs are no multiple of 64."""
    program = made(quant.int4_weight_only(64), floats((3, 64), 1))
    assert names(program.graph).count("weight_only_linear") == 1
    assert names(program.graph).count("matmul") == 1


def test_what_is_stored_is_small() -> None:
    """Half a byte per weight, and a scale per group."""
    program = made(quant.int4_weight_only(32), floats((3, 64), 1))
    sizes = sum(np.asarray(x).nbytes for _, x in program.graph.constants)
    weights = 64 * 96 + 96 * 7
    assert sizes == weights // 2 + 4 * weights // 32 + 4 * 96


def test_transforms_pass() -> None:
    """Derivatives in x are those of the rounded weights, also of lanes, compiled and not."""
    x = floats((64,), 2)
    w = xp.asarray(floats((64, 16), 0))
    program = export.export(lambda x: x @ w, (xp.asarray(x[None]),))
    new = quant.convert_pt2e(quant.prepare_pt2e(program, quant.int4_weight_only(32)))

    def total(x: Any) -> Any:
        return xp.sum(new(x[None]) ** 2)

    rounded = np.asarray(ft.jacrev(lambda x: new(x[None])[0])(xp.asarray(x)))
    expected = 2 * (rounded @ x) @ rounded
    for f in (
        ft.grad(total),
        ft.jit(ft.grad(total)),
        lambda x: ft.vmap(ft.grad(total))(x[None])[0],
    ):
        np.testing.assert_allclose(np.asarray(f(xp.asarray(x))), expected, rtol=1e-4)


@pytest.mark.parametrize("size", [0, -2, 3])
def test_sizes_of_groups_are_checked(size: int) -> None:
    with pytest.raises(QuantizationError, match="group_size must be an even number > 0"):
        quant.int4_weight_only(size)


def test_a_program_without_layers_is_refused() -> None:
    program = export.export(lambda x: x * 2, (xp.ones((3,), dtype=xp.float32),))
    with pytest.raises(QuantizationError, match="no float32 product with a constant matrix"):
        quant.prepare_pt2e(program, quant.int8_weight_only())


def test_weights_that_are_no_numbers_are_refused() -> None:
    w = xp.asarray([[np.nan], [1.0]], dtype=xp.float32)
    program = export.export(lambda x: x @ w, (xp.ones((3, 2), dtype=xp.float32),))
    with pytest.raises(QuantizationError, match="NaN or infinite"):
        quant.prepare_pt2e(program, quant.int8_weight_only())
