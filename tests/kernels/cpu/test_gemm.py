"""Products in tiles: exact sums wherever operands lie, the same bits however they are cut."""

from __future__ import annotations

import ctypes
import functools
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from funct.device import Code, Host, assemble, host, machine_code
from funct.kernels import table
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.products.gemm import (
    ARGUMENTS,
    INSIDE,
    LAID,
    TURNED,
    Cut,
    cut,
    driver_name,
    print_driver,
    turned_together,
)
from funct.kernels.cpu.products.gemm_tile import ACROSS, STRAIGHT, WAYS, Tile, print_tile
from funct.kernels.llvm import Module
from tests.compile.checked import CheckedModule, watched
from tests.kernels.cpu.test_tile import XEON, ZEN4

pytestmark = pytest.mark.skipif(
    "llvm" not in table.available() or not supported(DOTS["f32"], host()),
    reason="llvmlite or AVX2 is absent",
)

CALL = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(ARGUMENTS))
WIDTHS = [w for w in (32, 64) if w <= host().vector_bytes]
DTYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}


def target(width: int) -> Host:
    """This processor, as if its vectors were no longer."""
    longer = {f for f in host().features if f.startswith("avx512")} if width < 64 else set()
    return replace(host(), features=host().features - longer, vector_bytes=width)


@functools.cache
def code(element: str, rows: int, way: str, width: int, module: type[Module]) -> Code:
    """The driver and all tiles of a height."""
    made = module(target(width))
    print_driver(made, element)
    for vectors in (1, 2, 3):
        print_tile(made, Tile(element, rows, vectors, way))
    return assemble(made.text())


def product(
    a: Any, b: Any, c: Any, element: str, width: int, how: Cut | None = None, module: Any = Module,
    *, straight: str = STRAIGHT,
) -> None:  # fmt: skip
    """Fill c. Operands are matrices, or transposes of some, with any leading dimension. straight:
    the way of tiles where a is no transpose.
    """
    (m, k), n, byte = a.shape, b.shape[1], a.itemsize
    a_turned, b_turned = (x.strides[1] != byte for x in (a, b))
    rows_apart = [x.strides[1 if t else 0] // byte for x, t in ((a, a_turned), (b, b_turned))]
    if how is None:
        lies = {"turned": a_turned, "b_turned": b_turned}
        a_row, b_row = rows_apart
        how = cut((m, n, k), element, a_row, b_row, target(width), **lies)
    room = np.full(how.scratch, np.nan, a.dtype)
    way = ACROSS if a_turned else straight
    made = code(element, how.rows, way, width, module)
    tiles = [made.address(Tile(element, how.rows, v, way).name) for v in how.vectors]
    words = [
        *[x.ctypes.data for x in (a, b, c, room)], *tiles, m, n, k, rows_apart[0], how.a_way,
        rows_apart[1], how.b_way, c.strides[0] // byte, how.rows,
        *[v * width // byte for v in how.vectors], how.rows_at_once,
        how.columns_at_once, how.terms_at_once, how.terms,
    ]  # fmt: skip
    with watched(a, b, c, room):
        CALL(made.address(driver_name(element)))(*words)


def whole_numbers(rng: Any, rows: int, columns: int, dtype: Any, *, turned: bool) -> Any:
    """A matrix among NaN: rows or columns lie further apart than they are long."""
    shape = (columns, rows) if turned else (rows, columns)
    around = np.full((shape[0], shape[1] + 3), np.nan, dtype)
    around[:, 1:-2] = rng.integers(-9, 10, shape)
    if around.dtype.kind == "c":
        around[:, 1:-2] += 1j * rng.integers(-9, 10, shape)
    inside = around[:, 1:-2]
    return inside.T if turned else inside


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("module", [Module, CheckedModule])
def test_sums_are_exact(element: str, width: int, module: Any) -> None:
    """Of whole numbers, for any sizes and leading dimensions; nothing around is read or written."""

    real = not element.startswith("c")

    @settings(max_examples=(3 if real else 1) * settings.default.max_examples)
    @given(
        st.integers(1, 60) | st.just(515), st.integers(1, 150) | st.just(520),
        st.integers(1, 40) | st.integers(500, 1100) | st.sampled_from([513, 519, 520, 1031, 1032]),
        st.sampled_from(WAYS), st.booleans(),
    )  # fmt: skip
    def run(m: int, n: int, k: int, way: str, b_turned: bool) -> None:
        k = max(k, turned_together(element)) if b_turned else k
        rng = np.random.default_rng(0)
        a = whole_numbers(rng, m, k, DTYPES[element], turned=way == ACROSS)
        b = whole_numbers(rng, k, n, DTYPES[element], turned=b_turned)
        around = np.full((m, n + 5), np.nan, DTYPES[element])
        straight = STRAIGHT if way == ACROSS else way
        product(a, b, around[:, 2:-3], element, width, module=module, straight=straight)
        np.testing.assert_array_equal(around[:, 2:-3], a.astype(complex) @ b.astype(complex))
        assert np.isnan(around[:, :2]).all()
        assert np.isnan(around[:, -3:]).all()

    run()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("turned", [False, True])
def test_bits_do_not_depend_on_the_cut(width: int, turned: bool) -> None:
    """Some rows at a time, some columns at a time, tiles of other heights: the same sums."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((90, 1100), (1100, 200)))
    a = np.ascontiguousarray(a.T).T if turned else a
    usual = cut((90, 200, 1100), "f32", 1100, 200, target(width), turned=turned, b_turned=False)
    out = []
    for rows, a_way, b_way in itertools.product(
        (1, 5, 6), (LAID, TURNED) if turned else (INSIDE,), (INSIDE, LAID)
    ):
        for columns in (6 * width // 4, 12 * width // 4, usual.columns_at_once):
            c = np.empty((90, 200), np.float32)
            how = replace(
                usual, rows=rows, a_way=a_way, b_way=b_way, columns_at_once=columns,
                terms_at_once=512 if b_way == LAID else 128, scratch=1 << 20,
                rows_at_once=2 * rows if a_way == LAID else 1 << 40,
            )  # fmt: skip
            product(a, b, c, "f32", width, how)
            out.append(c)
    for c in out[1:]:
        np.testing.assert_array_equal(c, out[0])
    part = np.empty((40, 70), np.float32)
    product(a[30:70], b[:, 100:170], part, "f32", width)
    np.testing.assert_array_equal(part, out[0][30:70, 100:170])


def test_long_sums_err_no_more_than_short_ones_added_up() -> None:
    """A sum of 8192 like terms, of which each 128 are added up first."""
    k = 8192
    a, b = np.full((1, k), 0.1, np.float32), np.ones((k, 1), np.float32)
    c = np.empty((1, 1), np.float32)
    product(a, b, c, "f32", WIDTHS[-1])
    exact = float(np.float32(0.1)) * k
    one_by_one = np.add.accumulate(a[0])[-1]
    assert abs(c[0, 0] - exact) * 8 < abs(one_by_one - exact)


@pytest.mark.parametrize("special", [np.nan, np.inf, -0.0])
def test_special_values_reach_their_elements_alone(special: float) -> None:
    """Padding of panels and rows that are made twice spread nothing."""
    a, b = np.ones((17, 20), np.float32), np.ones((20, 35), np.float32)
    b[3, 34] = special
    c = np.empty((17, 35), np.float32)
    product(a, b, c, "f32", WIDTHS[-1])
    np.testing.assert_array_equal(c[:, :34], 20)
    np.testing.assert_array_equal(c[:, 34], 19 + special)


@pytest.mark.parametrize("other", [ZEN4, XEON], ids=lambda t: t.name)
@pytest.mark.parametrize("way", WAYS)
def test_tiles_for_other_processors_keep_their_sums_in_registers(other: Host, way: str) -> None:
    """Made, not run: one instruction for each vector of sums."""
    for element, rows, vectors in (("f32", 14, 2), ("f32", 9, 3), ("c64", 7, 2), ("c64", 4, 3)):
        module = Module(other)
        print_tile(module, Tile(element, rows, vectors, way))
        lines = machine_code.assembly(module.text(), other).splitlines()
        made = [s for s in lines if "vfmadd231ps" in s and "%zmm" in s]
        parts = 2 if element == "c64" else 1
        assert len(made) == 3 * rows * vectors * parts  # of whole panels, others, and by masks
