"""The micro-kernel: exact sums on this processor, the right instructions for others."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
import pytest

from funct.device import Host, assemble, host, machine_code
from funct.device.host import vector_bytes
from funct.kernels import table
from funct.kernels.cpu.dense import tile
from funct.kernels.cpu.dense.dots import DOTS, supported
from funct.kernels.cpu.dense.tile import (
    Shape,
    address,
    call_tiles,
    most_rows,
    text,
    tile_table,
)
from funct.kernels.llvm import I64, PTR, Module
from tests.pairwise import drawn

pytestmark = pytest.mark.skipif("llvm" not in table.available(), reason="llvmlite is absent")

NUMPY = {
    "f32": (np.float32, np.float32), "f64": (np.float64, np.float64), "s32": (np.int32, np.int32),
    "s64": (np.int64, np.int64), "s16": (np.int16, np.int32), "u8s8": (np.int8, np.int32),
}  # fmt: skip
CALL = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 9)

AVX512 = frozenset({
    "avx", "avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512vnni", "avx512bf16",
})  # fmt: skip
ZEN4 = Host("znver4", AVX512, vector_bytes(AVX512), 1)
XEON = Host("sapphirerapids", AVX512, vector_bytes(AVX512), 1)
AVX_VNNI = frozenset({"avx", "avx2", "fma", "avxvnni"})
CORE = Host("alderlake", AVX_VNNI, vector_bytes(AVX_VNNI), 1)


def here() -> list[Any]:
    """Every dot that this processor has, at every width and size of a tile."""
    out = []
    for dot in DOTS.values():
        for width in sorted({w for w, needs in dot.needs if host().has(*needs)}):
            if dot.name in NUMPY and width <= host().vector_bytes:
                out += [
                    (dot.name, width, m, v)
                    for v in (1, 2)
                    for m in range(1, most_rows(dot, width, v) + 1)
                ]
    return out


@pytest.mark.in_turn
@pytest.mark.parametrize(("name", "width", "rows", "vectors"), here())
@pytest.mark.parametrize("packed", [True, False])
def test_sums_are_exact(name: str, width: int, rows: int, vectors: int, packed: bool) -> None:
    """For any number of taps and of k, with and without adding to what is there."""
    shape = Shape(DOTS[name], width, rows, vectors, packed)
    run = CALL(address(shape, host()))
    dtype, total = NUMPY[name]
    per, n = shape.dot.per_word, shape.columns
    rng = np.random.default_rng(0)
    for taps, depth in ((0, 5), (1, 0), (1, 1), (3, 7), (2, 8)):
        step = n if packed else n + 3
        low = 0 if name == "u8s8" else -9
        a = rng.integers(low, 10, (rows, taps + 1, depth, per)).astype(dtype)
        b = rng.integers(-9, 10, (taps + 1, depth, step, per)).astype(dtype)
        c = rng.integers(-9, 10, (rows, n + 2)).astype(total)
        before = c.copy()
        places = np.array([[m * (taps + 1) * depth, m * (n + 2)] for m in range(rows)])
        order = rng.permutation(taps)  # taps need not follow each other
        row = 1 if packed else step
        offsets = np.array([[t * depth, t * depth * row] for t in order], np.int64).reshape(-1, 2)
        wide = np.einsum(
            "mtkp,tknp->mn", a[:, order].astype(np.int64), b[order, :, :n].astype(np.int64)
        )
        for add in (0, 1):
            c[...] = before
            run(
                a.ctypes.data, places.ctypes.data, offsets.ctypes.data, taps, b.ctypes.data, depth,
                step, c.ctypes.data, add,
            )  # fmt: skip
            np.testing.assert_array_equal(c[:, :n], wide + add * before[:, :n])
            np.testing.assert_array_equal(c[:, n:], before[:, n:])


@pytest.mark.in_turn
@pytest.mark.parametrize(("count", "apart"), [(1, 3), (12, 1), (31, 8), (93, 3)])
@pytest.mark.parametrize("name", ["f32", "f64"])
def test_rows_may_lie_evenly(name: str, count: int, apart: int) -> None:
    """From the place of the first one on, whatever the table says of others."""
    dot, width = DOTS[name], host().vector_bytes
    lanes, depth = width // NUMPY[name][0]().itemsize, 5
    table = tile.even_table(name, width, apart, [count])
    most = most_rows(dot, width, 1, even=True)
    rng = np.random.default_rng(0)
    b = rng.integers(-9, 10, (depth, lanes)).astype(NUMPY[name][0])
    c = np.zeros((count, lanes), NUMPY[name][1])
    at = np.arange(count) * apart
    a = rng.integers(-9, 10, at[-1] + depth).astype(NUMPY[name][0])
    tap = np.zeros(2, np.int64)
    for rows in np.array_split(np.arange(count), -(-count // most)):
        places = np.stack([np.where(rows == rows[0], at[rows], 1 << 40), rows * lanes], 1).copy()
        CALL(int(table[len(rows)]))(
            a.ctypes.data, places.ctypes.data, tap.ctypes.data, 1, b.ctypes.data, depth, 0,
            c.ctypes.data, 0,
        )  # fmt: skip
    windows = np.lib.stride_tricks.sliding_window_view(a, depth)[at]
    np.testing.assert_array_equal(c, windows @ b)


@pytest.mark.in_turn
@pytest.mark.parametrize("vectors", [1, 2])
@pytest.mark.parametrize("lays", [False, True])
@pytest.mark.parametrize("few", [False, True])
def test_rows_may_be_words_beside_each_other(vectors: int, lays: bool, few: bool) -> None:
    """Each k is so many words further; more are asked for than there are, which harms nobody."""
    dot, width = DOTS["f32"], host().vector_bytes
    most = most_rows(dot, width, vectors, even=True)
    assert most >= most_rows(dot, width, vectors)
    rows = 1 if few else most
    shape = Shape(dot, width, rows, vectors, not lays, lays, across=True)
    run, n, (taps, depth) = address(shape, host()), shape.columns, (3, 5)
    step, pitch = (n + 3 if lays else n), rows + 2
    rng = np.random.default_rng(0)
    a = rng.integers(-9, 10, (taps, depth, pitch)).astype(np.float32)
    b = rng.integers(-9, 10, (taps, depth, step)).astype(np.float32)
    c, panel = (np.zeros(shape, np.float32) for shape in ((rows, n), (taps, depth, n)))
    places = np.array([[m, m * n] for m in range(rows)])
    offsets = np.array([[t * depth * pitch, t * depth * (step if lays else 1)] for t in range(3)])
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (10 + lays))
    call(run)(
        a.ctypes.data, places.ctypes.data, offsets.ctypes.data, taps, b.ctypes.data, depth, step,
        c.ctypes.data, 0, *[panel.ctypes.data] * lays, pitch,
    )  # fmt: skip
    np.testing.assert_array_equal(c, np.einsum("tkm,tkn->mn", a[..., :rows], b[..., :n]))
    np.testing.assert_array_equal(panel, b[..., :n] * lays)


@drawn(
    48, name=["f32", "f64", "s16", "u8s8"], rows=[1, 2, 5], vectors=[1, 2], packed=[True, False],
    more=[(True, False), (False, True), (True, True)], taps=[0, 1, 3], depth=[0, 1, 6],
)  # fmt: skip
def test_tiles_may_lay_rows_out_and_ask_ahead(
    name: str, rows: int, vectors: int, packed: bool, more: tuple[bool, bool], taps: int, depth: int
) -> None:
    """The sums are a plain loop's. Laid out, the rows of B that were read stand side by side in
    their order, and nothing behind them is written. What is asked for need not be memory.
    """
    lays, ahead = more
    width = supported(DOTS[name], host())
    if not width:
        pytest.skip("no such products on this processor")
    shape = Shape(DOTS[name], width, rows, vectors, packed, lays, ahead)
    dtype, total = NUMPY[name]
    per, n = shape.dot.per_word, shape.columns
    step = n if packed else n + 3
    rng = np.random.default_rng(rows)
    a = rng.integers(0, 10, (rows, taps + 1, depth, per)).astype(dtype)
    b = rng.integers(-9, 10, (taps + 1, depth, step, per)).astype(dtype)
    c = rng.integers(-9, 10, (rows, n)).astype(total)
    expected = c.copy()
    read: list[Any] = []
    order = rng.permutation(taps)
    for t in order:
        for k in range(depth):
            read.append(b[t, k, :n])
            for m in range(rows):
                for j in range(n):
                    for e in range(per):
                        expected[m, j] += total(a[m, t, k, e]) * total(b[t, k, j, e])
    places = np.array([[m * (taps + 1) * depth, m * n] for m in range(rows)])
    row = 1 if packed else step
    offsets = np.array([[t * depth, t * depth * row] for t in order], np.int64).reshape(-1, 2)
    panel = np.full((taps * depth + 1, n, per), 77, dtype)
    words = [v.ctypes.data for v in (a, places, offsets)]
    words += [taps, b.ctypes.data, depth, step, c.ctypes.data, 1]
    words += [panel.ctypes.data] * lays + [0, 1 << 40] * ahead
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(words))(address(shape, host()))(*words)
    np.testing.assert_array_equal(c, expected)
    laid = len(read) * lays
    np.testing.assert_array_equal(panel[:laid], np.reshape(read[:laid], (laid, n, per)))
    assert (panel[laid:] == 77).all()


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("vectors", [1, 2])
def test_each_step_asks_for_a_line_of_every_vector(vectors: int, ahead: bool) -> None:
    """Beside what a tile that begins with zeros asks for where its sums are written."""
    printed = text(Shape(DOTS["f32"], 64, 3, vectors, ahead=ahead), ZEN4)
    lines = [s for s in printed.splitlines() if "call void @llvm.prefetch" in s]
    written = [s for s in lines if "i32 1, i32" in s]
    assert len(written) == 3 * vectors
    assert len(lines) - len(written) == vectors * ahead


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(
    ("start", "stop", "sizes"),
    [(0, 0, []), (2, 3, [1]), (0, 4, [4]), (1, 8, [4, 3]), (0, 9, [3] * 3)],
)
def test_tiles_are_called_for_rows_cut_equally(
    start: int, stop: int, sizes: list[int], ahead: bool
) -> None:
    """`most` is 4. Each is told where its rows are, and what is next: the row behind its own."""
    module = Module(host())
    f = module.function("run", [("table", PTR), ("a", PTR), ("rows", PTR)])
    tiles, a, rows = f.arguments
    most, first, last, given = (f.constant(I64, n) for n in (4, start, stop, 55))
    call_tiles(f, tiles, most, a, rows, first, last, [given], (lambda p: [p]) if ahead else None)
    f.ret()
    calls: list[tuple[int, ...]] = []
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (4 if ahead else 3))

    def noted(size: int, *told: int) -> None:
        calls.append((size, *told))

    kept = [kind(functools.partial(noted, size)) for size in range(6)]
    functions = [ctypes.cast(each, ctypes.c_void_p).value or 0 for each in kept]
    addresses = np.array(functions, np.int64)
    run = assemble(module.text()).keep().address("run")
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(run)(addresses.ctypes.data, 32, 1000)
    ends = [start + sum(sizes[: k + 1]) for k in range(len(sizes))]
    assert calls == [
        (n, 32, 1000 + 16 * (end - n), 55, *[end] * ahead)
        for n, end in zip(sizes, ends, strict=True)
    ]


def test_products_of_floats_are_fused() -> None:
    """One rounding for a product and its sum."""
    run = CALL(address(Shape(DOTS["f32"], supported(DOTS["f32"], host()), 1, 1), host()))
    x = np.float32(1 + 2**-12)
    a, b = np.full(2, x), np.zeros((2, 16), np.float32)
    b[0], b[1] = -1, x
    a[0] = x * x
    c = np.zeros(16, np.float32)
    zero = np.zeros(2, np.int64)
    given = (zero.ctypes.data, zero.ctypes.data, 1, b.ctypes.data, 2, 0, c.ctypes.data, 0)
    n = supported(DOTS["f32"], host()) // 4
    b = np.ascontiguousarray(b[:, :n])
    run(a.ctypes.data, *given[:3], b.ctypes.data, *given[4:])
    assert c[0] == np.float64(x) ** 2 - np.float64(np.float32(x * x))


@pytest.mark.pairwise
@pytest.mark.parametrize("target", [ZEN4, XEON], ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("name", "width", "instruction"),
    [
        ("f32", 64, "vfmadd231ps"), ("f64", 64, "vfmadd231pd"),
        ("u8s8", 64, "vpdpbusd"), ("u8s8", 32, "vpdpbusd"), ("bf16", 64, "vdpbf16ps"),
        ("bf16", 32, "vdpbf16ps"), ("f32", 32, "vfmadd231ps"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("fewer", [0, 1])
def test_code_for_other_processors_uses_their_instructions(
    target: Host, name: str, width: int, instruction: str, packed: bool, fewer: int
) -> None:
    """Made, not run: one instruction per product, and the sums stay in registers."""
    shape = Shape(DOTS[name], width, most_rows(DOTS[name], width) - fewer, 2, packed)
    printed = text(shape, target)
    assert machine_code.emit(printed, target)[:4] == b"\x7fELF"
    lines = machine_code.assembly(printed, target).splitlines()
    register = "%zmm" if width == 64 else "%ymm"
    products = [s for s in lines if instruction in s and register in s]
    assert len(products) == shape.rows * shape.vectors
    spilled = [s for s in lines if register in s and "(%rsp)" in s]
    assert len(spilled) <= 4  # between taps, not between products


def test_a_dot_is_used_where_the_processor_has_it() -> None:
    plain = Host("x86-64", frozenset({"sse2", "sse4.1"}), 16, 1)
    assert supported(DOTS["u8s8"], plain) == 0
    assert supported(DOTS["s16"], plain) == 16
    assert supported(DOTS["u8s8"], ZEN4) == 64
    assert supported(DOTS["u8s8"], CORE) == 32
    assert supported(DOTS["bf16"], CORE) == 0


@pytest.mark.parametrize("rows", [1, 2, most_rows(DOTS["u8s8"], 32)])
@pytest.mark.parametrize("vectors", [1, 2])
def test_bytes_are_multiplied_without_avx512(rows: int, vectors: int) -> None:
    """By AVX-VNNI: one instruction per product, encoded as processors without AVX-512 read it, and
    where it runs here, the sums are those of integers.
    """
    shape = Shape(DOTS["u8s8"], 32, rows, vectors)
    printed = text(shape, CORE)
    lines = machine_code.assembly(printed, CORE).splitlines()
    assert len([s for s in lines if "{vex}" in s and "vpdpbusd" in s]) == rows * vectors
    assert not [s for s in lines if "zmm" in s]
    if not host().has(*CORE.features):
        return
    run = CALL(address(shape, CORE))
    rng, depth, n = np.random.default_rng(0), 9, shape.columns
    a = rng.integers(0, 256, (rows, depth, 4)).astype(np.uint8)
    b = rng.integers(-128, 128, (depth, n, 4)).astype(np.int8)
    c = np.zeros((rows, n), np.int32)
    places = np.array([[m * depth, m * n] for m in range(rows)])
    taps = np.zeros((1, 2), np.int64)
    given = (*[v.ctypes.data for v in (a, places, taps)], 1, b.ctypes.data, depth, 0)
    run(*given, c.ctypes.data, 0)
    expected = np.einsum("mkq,knq->mn", a.astype(np.int32), b.astype(np.int32))
    np.testing.assert_array_equal(c, expected)


@pytest.mark.skipif(host().vector_bytes < 32, reason="no tiles for this processor")
@pytest.mark.parametrize(
    ("counts", "columns", "sizes"),
    [([7], 2, (3, 4)), ([7, 2], 3, (2, 3, 4)), ([12], 1, (6,)), ([0, -3], 2, ())],
)
def test_a_table_has_the_tiles_that_are_called_and_no_others(monkeypatch, counts, columns, sizes):
    """By rows where six fit: seven are cut into three and four. columns: in vectors."""
    monkeypatch.setattr(tile, "_tables", {})
    monkeypatch.setattr(
        tile, "most_rows", lambda dot, width, vectors=2, even=False: 12 // vectors
    )
    found = tile_table("f32", 32, counts, columns * 8)
    there = [tuple(np.flatnonzero(rows)) for rows in np.split(found, [7])]
    assert there == [sizes if columns >= 2 else (), sizes if columns % 2 else ()]
    more = tile_table("f32", 32, [12], columns * 8, alone=12)
    assert more is found
    assert not columns % 2 or found[7 + 12]
    assert columns < 2 or found[6]
    assert len(found) > 7 + 12 + 1  # a tile of one row more is looked up, and not called
