"""Transposing copies at every width of a vector; loops for other processors."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from funct.device import Host, assemble, host, machine_code
from funct.device.host import vector_bytes
from funct.kernels import table
from funct.kernels.cpu.convolution import (
    bands,
    line_weights,
    lines,
    weight_gradient,
    winograd_text,
    winograd_weight_text,
)
from funct.kernels.cpu.dense.turn import define_turn, turn_name
from funct.kernels.llvm import I64, PTR, Module
from tests import guarded

pytestmark = pytest.mark.skipif("llvm" not in table.available(), reason="llvmlite is absent")

AVX512 = frozenset({
    "avx", "avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512vnni", "avx512bf16",
})  # fmt: skip
ZEN4 = Host("znver4", AVX512, vector_bytes(AVX512), 1)
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32}
SIDES = st.sampled_from([0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33])


@functools.cache
def turn(element: str, width: int) -> Any:
    """The function, with vectors of this width; wider ones than the processor's are split."""
    module = Module(replace(host(), vector_bytes=width))
    define_turn(module, element, width)
    f = module.function("run", [("s", PTR), ("t", PTR), *[(c, I64) for c in "abcd"]])
    f.call(turn_name(element, width), None, f.arguments)
    f.ret()
    code = assemble(module.text())
    return code, ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 6)(code.address("run"))


@given(SIDES, SIDES, st.sampled_from([*DTYPES]), st.sampled_from([16, 32, 64]), st.booleans())
def test_rows_become_columns(
    rows: int, columns: int, element: str, width: int, at_end: bool
) -> None:
    """Exactly, and nothing else is touched."""
    dtype = DTYPES[element]
    x = guarded.copy(np.arange(rows * columns).reshape(rows, columns).astype(dtype), at_end=at_end)
    y = guarded.empty((columns, rows), dtype, at_end=at_end)
    turn(element, width)[1](x.ctypes.data, y.ctypes.data, rows, columns, columns, rows)
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize(
    "text",
    [
        bands.text,
        functools.partial(bands.text, last=True),
        weight_gradient.text,
        functools.partial(weight_gradient.text, last=True),
        winograd_text.text,
        winograd_weight_text.text,
        lambda element, target: lines.planes_text(_pattern(element), target),
        lambda element, target: line_weights.weights_text(_pattern(element), target),
    ],
    ids=[
        "bands",
        "bands, last",
        "weights",
        "weights, last",
        "squares",
        "weights by squares",
        "lines",
        "weights by lines",
    ],
)
def test_loops_are_made_for_other_processors_too(text: Any, element: str) -> None:
    """Made, not run."""
    assert machine_code.emit(text(element, ZEN4), ZEN4)[:4] == b"\x7fELF"


def _pattern(element: str) -> lines.Pattern:
    """Of a 3 × 3 kernel with strides."""
    one, taps = ((0, 0),), ((0, 0), (1, 1), (2, 2))
    return lines.Pattern(
        element, ((one,), (taps,), (taps,)), (1, 1, 1), (1, 2, 2), (1, 3, 3), 4, "overlap", False
    )
