"""Laws of the pooling kernels: equal to a loop over windows, whatever the padding, NaN included."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from funct.kernels.cpu import loops
from funct.kernels.cpu.windows import pooling as cpu
from funct.kernels.cpu.windows import pooling_few as cpu_few
from funct.kernels.cpu.windows import pooling_last as cpu_last
from funct.kernels.indexing.scattering import plain_put_along
from funct.kernels.table import restricted
from funct.kernels.windows import places, pooling, pooling_few
from funct.kernels.windows.pooling import (
    fold_windows,
    max_pool,
    max_pool_index,
    max_pool_pull,
    mean_pool,
    plain_max_pool_index,
    sum_pool,
)
from funct.kernels.windows.views import output_size, windows_adjoint
from tests.kernels.arrays import agree

Case = tuple[tuple[int, ...], tuple[Any, ...]]

# Small arrays are quick, and the ways to combine their parameters are many.
many = settings(max_examples=10 * settings.default.max_examples)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A small array's shape, and windows that fit it: their size, stride, padding, dilation."""
    d = draw(st.integers(1, 3))
    window = tuple([draw(st.integers(1, 3)) for _ in range(d)])
    stride = tuple([draw(st.integers(1, 3)) for _ in range(d)])
    dilation = tuple([draw(st.integers(1, 2)) for _ in range(d)])
    padding = tuple([(draw(st.integers(-2, 3)), draw(st.integers(-2, 3))) for _ in range(d)])
    shortest = [
        max(0, dil * (k - 1) + 1 - low - high)
        for k, dil, (low, high) in zip(window, dilation, padding)
    ]
    size = [s + draw(st.integers(0, 4)) for s in shortest]
    lead = [draw(st.integers(0, 3)) for _ in range(draw(st.integers(0, 2)))]
    return (*lead, *size), (window, stride, padding, dilation)


def boxes(x: Any, window: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Each window of one image as a dict: flat place -> element, without what is padding."""
    size = output_size(x.shape, window, stride, padding, dilation)
    ends = [s + min(0, high) for s, (_, high) in zip(x.shape, padding)]
    for t in np.ndindex(*size):
        box = {}
        for k in np.ndindex(*window):
            at = [
                a * s + b * dil - low
                for a, s, b, dil, (low, _) in zip(t, stride, k, dilation, padding)
            ]
            if all(max(0, -low) <= i < end for i, end, (low, _) in zip(at, ends, padding)):
                box[int(np.ravel_multi_index(at, x.shape))] = x[tuple(at)]
        yield t, box


def by_boxes(pick: Any, x: Any, dtype: Any, *static: Any) -> Any:
    """`pick` of each window of each image."""
    d = len(static[0])
    lead = x.shape[: x.ndim - d]
    y = np.zeros((*lead, *output_size(x.shape[x.ndim - d :], *static)), dtype)
    for image in np.ndindex(*lead):
        for t, box in boxes(x[image], *static):
            y[(*image, *t)] = pick(box)
    return y


def first_maximum(box: dict[int, Any]) -> int:
    """The last place that holds NaN, else the first that holds the maximum, or -1."""
    nan = [place for place, a in box.items() if a != a]
    best = max(box.values(), default=0)
    return (nan[-1:] or [place for place, a in box.items() if a == best] or [-1])[0]


def few(shape: tuple[int, ...], seed: int, dtype: Any) -> Any:
    """An array of few different values, so that windows have ties."""
    return np.random.default_rng(seed).integers(0, 4, shape).astype(dtype)


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays go to the kernels too, where there is LLVM."""
    loops.available()
    monkeypatch.setattr(loops, "_LEAST", 1)
    monkeypatch.setattr(pooling, "FEW", 1)


@many
@given(cases(), st.sampled_from([np.int8, np.uint16, np.float64]), st.booleans())
def test_pools_are_taken_box_by_box(case: Case, dtype: Any, with_nan: bool) -> None:
    """Maximum, its first place and the sum are those of the elements in each window."""
    shape, static = case
    x = few(shape, 1, dtype)
    empty = np.iinfo(dtype).min if np.issubdtype(dtype, np.integer) else -np.inf
    if with_nan and dtype is np.float64:
        x[few(shape, 2, np.int64) == 0] = np.nan
    place = by_boxes(first_maximum, x, np.int64, *static)
    largest = by_boxes(lambda box: box.get(first_maximum(box), empty), x, dtype, *static)
    total = by_boxes(lambda box: sum(box.values()), x, dtype, *static)
    np.testing.assert_array_equal(max_pool(x, *static), largest, strict=True)
    np.testing.assert_array_equal(plain_max_pool_index(x, *static), place, strict=True)
    np.testing.assert_array_equal(max_pool_index(x, *static), place, strict=True)
    np.testing.assert_array_equal(sum_pool(x, *static), total, strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("pool", [max_pool, sum_pool])
@pytest.mark.parametrize(("size", "step"), [((2, 2), (2, 2)), ((3, 1), (4, 2)), ((3, 2), (3, 2))])
def test_windows_that_lie_apart_have_the_bits_of_passes(
    pool: Any, dtype: Any, size: Any, step: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 13, 14)).astype(dtype)
    x[x > 2] = np.nan
    static = (size, step, ((0, 0),) * 2, (1, 1))
    found = pool(x, *static)
    monkeypatch.setattr(pooling, "ready", lambda n: False)
    np.testing.assert_array_equal(found, pool(x, *static), strict=True)


@pytest.mark.parametrize("dtype", ["bool", "float16", "bfloat16", "float32", "longdouble"])
def test_dtype_is_kept(dtype: str) -> None:
    """Pooling returns the dtype given, and padding loses against any element."""
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is a dtype of ml_dtypes")
    x = np.zeros((1, 3), np.dtype(getattr(ml_dtypes, dtype, dtype)))
    x[0, 0] = 1
    static = ((2,), (1,), ((1, 1),), (1,))
    assert max_pool(x, *static).dtype == x.dtype
    assert sum_pool(x, *static).dtype == x.dtype
    assert max_pool(x, *static).tolist() == [[1, 1, 0, 0]]
    assert max_pool_index(x, *static).tolist() == [[0, 0, 1, 2]]


def test_half_is_rounded_once() -> None:
    """float16 is summed in float32: 4096 ones are not 2048."""
    x = np.ones((1, 4096), np.float16)
    assert sum_pool(x, (4096,), (1,), ((0, 0),), (1,)).tolist() == [[4096]]


def test_complex_numbers_have_sums() -> None:
    """sum_pool works on complex numbers."""
    x = np.array([1 + 2j, 3j, 4])
    assert sum_pool(x, (2,), (1,), ((1, 0),), (1,)).tolist() == [1 + 2j, 1 + 5j, 4 + 3j]


@pytest.mark.parametrize("window", [(1, 256), (16, 17), (1, 300)])
def test_large_windows_have_large_indices(window: tuple[int, int]) -> None:
    """The place is right in a large window."""
    x = np.zeros((1, *window))
    x[0, -1, -1] = 1
    index = max_pool_index(x, window, (1, 1), ((0, 0), (0, 0)), (1, 1))
    assert index.tolist() == [[[prod(window) - 1]]]


def test_minus_infinity_beats_padding() -> None:
    """The index never points to padding, not even where all elements are -inf."""
    x = np.full((1, 2), -np.inf)
    static = ((3,), (1,), ((2, 2),), (1,))
    assert max_pool_index(x, *static).tolist() == [[0, 0, 0, 1]]
    assert max_pool(x, *static).tolist() == [[-np.inf] * 4]


def test_results_are_fresh() -> None:
    """A result never shares memory with x, not even for windows of one element."""
    x = np.ones((2, 3))
    static = ((1,), (1,), ((0, 0),), (1,))
    assert not np.shares_memory(max_pool(x, *static), x)
    assert not np.shares_memory(sum_pool(x, *static), x)


@many
@given(cases())
def test_agrees_with_torch(case: Case) -> None:
    """torch's max_pool and avg_pool are ours, where torch has the padding; so are its NaN, and
    which of several it takes.
    """
    torch = pytest.importorskip("torch", reason="torch is one of the oracles")
    shape, (window, stride, padding, dilation) = case
    d = len(window)
    low = [min(max(0, p), k // 2) for (p, _), k in zip(padding, window)]
    padding = tuple([(p, p) for p in low])
    shape = (2, 2, *[s + 2 * k for s, k in zip(shape[-d:], window)])
    x = few(shape, 1, np.float64)
    x[few(shape, 2, np.int64) + few(shape, 3, np.int64) == 0] = np.nan
    tx = torch.from_numpy(x)
    functions = torch.nn.functional
    pool = [functions.max_pool1d, functions.max_pool2d, functions.max_pool3d][d - 1]
    static = (window, stride, padding, dilation)
    expected, places = pool(tx, window, stride, low, dilation, return_indices=True)
    np.testing.assert_array_equal(max_pool(x, *static), expected.numpy(), strict=True)
    np.testing.assert_array_equal(max_pool_index(x, *static), places.numpy(), strict=True)
    average = [functions.avg_pool1d, functions.avg_pool2d, functions.avg_pool3d][d - 1]
    expected = average(tx, window, stride, low).numpy() * prod(window)
    actual = sum_pool(x, window, stride, padding, (1,) * d)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


@given(cases(), st.integers(0, 20), st.sampled_from([np.int32, np.float32, np.float64]))
def test_wide_images(case: Case, more: int, dtype: Any) -> None:
    """Rows with as many windows as there are lanes, and more."""
    shape, static = case
    stride = static[1][-1]
    x = few((*shape[:-1], shape[-1] + stride * (8 + more)), more, dtype)
    if dtype is not np.int32:
        x[few(x.shape, 2, np.int64) == 0] = -np.inf
        x[few(x.shape, 3, np.int64) + few(x.shape, 4, np.int64) == 0] = np.nan
    np.testing.assert_array_equal(max_pool_index(x, *static), plain_max_pool_index(x, *static))


DTYPES = st.sampled_from([np.int8, np.int32, np.uint16, np.float32, np.float64])
CHANNELS = st.sampled_from([1, 7, 8, 11, 32, 45, 64, 70])


@given(cases(), CHANNELS, DTYPES)
def test_channels_last(case: Case, channels: int, dtype: Any) -> None:
    """Values are those of the plain way, bit for bit, and channels stay last."""
    shape, static = case
    d = len(static[0])
    x = few((2, *shape[-d:], channels), channels, dtype)
    if np.dtype(dtype).kind == "f":
        x += np.random.default_rng(5).normal(size=x.shape).astype(dtype)
        x[few(x.shape, 2, np.int64) == 0] = -np.inf
        x[few(x.shape, 3, np.int64) + few(x.shape, 4, np.int64) == 0] = np.nan
        x[few(x.shape, 5, np.int64) + few(x.shape, 6, np.int64) == 0] = -0.0
    x = np.moveaxis(x, -1, 1)
    for pool in (max_pool, sum_pool, max_pool_index):
        with restricted():
            expected = pool(x, *static)
        found = pool(x, *static)
        np.testing.assert_array_equal(found, expected, strict=True)
        known = ~np.isnan(expected)
        assert np.array_equal(np.signbit(found[known]), np.signbit(expected[known]))
        if channels >= 8 and not x.flags.c_contiguous:
            assert np.moveaxis(found, 1, -1).flags.c_contiguous
    if np.dtype(dtype).kind == "f" and static[3] == (1,) * d:
        counts = np.arange(1, 1 + prod(found.shape[2:])).reshape(found.shape[2:]).astype(dtype)
        means = sum_pool(x, *static) / counts
        np.testing.assert_array_equal(mean_pool(x, *static[:3], counts), means, strict=True)


@given(cases(), CHANNELS, st.sampled_from([np.int32, np.float32, np.float64]))
def test_windows_are_folded_channels_last(case: Case, channels: int, dtype: Any) -> None:
    """As the plain way does, and channels stay last."""
    shape, (window, stride, _, _) = case
    d, ones = len(window), (1,) * len(window)
    size = tuple([k + s for k, s in zip(window, shape[-d:])])
    count = output_size(size, window, stride, ((0, 0),) * d, ones)
    g = np.moveaxis(few((2, *count, channels), 1, dtype), -1, 1)
    wide = np.broadcast_to(g.reshape(*g.shape, *ones), (*g.shape, *window))
    with restricted():
        expected = fold_windows(wide, size, stride, ones)
    found = fold_windows(wide, size, stride, ones)
    np.testing.assert_array_equal(found, expected, strict=True)
    if channels >= 8 and not g.flags.c_contiguous:
        assert np.moveaxis(found, 1, -1).flags.c_contiguous


@many
@given(
    cases(), st.sampled_from([8, 11, 32, 45, 64, 70]), st.sampled_from([1, 2, 17]),
    st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
def test_maxima_are_pulled_at_once_channels_last(
    case: Case, channels: int, images: int, dtype: Any
) -> None:
    """As by their places, bit for bit; one image is dealt out by its channels."""
    shape, static = case
    d = len(static[0])
    rng = np.random.default_rng(channels)
    assume(0 not in shape[-d:])
    x = few((images, *shape[-d:], channels), channels, dtype)
    x[few(x.shape, 2, np.int64) == 0] = -np.inf
    x[few(x.shape, 3, np.int64) + few(x.shape, 4, np.int64) == 0] = np.nan
    x[few(x.shape, 5, np.int64) + few(x.shape, 6, np.int64) == 0] = -0.0
    x = np.moveaxis(x, -1, 1)
    at = plain_max_pool_index(x, *static)
    g = rng.normal(size=at.shape).astype(dtype)
    g[few(g.shape, 7, np.int64) == 0] = -0.0
    flat = at.reshape(*x.shape[:2], -1)
    given_ = np.where(flat < 0, 0.0, g.reshape(flat.shape)).astype(dtype)
    expected = plain_put_along(given_, np.maximum(flat, 0), 2, prod(x.shape[2:])).reshape(x.shape)
    found = max_pool_pull(g, x, *static)
    if found is None:  # no kernel, or no telling where channels lie
        assert x.flags.c_contiguous or not loops.available()
        return
    np.testing.assert_array_equal(found, expected, strict=True)
    assert np.array_equal(np.signbit(found), np.signbit(expected))
    assert np.moveaxis(found, 1, -1).flags.c_contiguous


@pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lead", [(5, 9), (11, 4), (130, 1), (37, 1)])
@pytest.mark.parametrize(
    ("size", "k", "step", "pad", "dilation"),
    [
        ((14, 14), 3, 2, 1, 1), ((12, 10), 2, 2, 0, 1), ((5, 4, 6), 3, 1, 0, 1),
        ((15, 9), 2, 1, 0, 3),
    ],
)  # fmt: skip
def test_maxima_of_short_rows_have_planes_as_channels(
    size: Any, k: int, step: int, pad: int, dilation: int, lead: Any, dtype: Any
) -> None:
    """Their places and what these are sent back, bit for bit, in dense arrays."""
    d = len(size)
    static = (k,) * d, (step,) * d, ((pad, pad),) * d, (dilation,) * d
    x = few((*lead, *size), k, dtype)
    x[few(x.shape, 3, np.int64) + few(x.shape, 4, np.int64) == 0] = np.nan
    x[few(x.shape, 5, np.int64) + few(x.shape, 6, np.int64) == 0] = -0.0
    at = max_pool_index(x, *static)
    np.testing.assert_array_equal(at, plain_max_pool_index(x, *static), strict=True)
    g = few(at.shape, 7, dtype)
    given_ = g.reshape(-1, prod(at.shape[len(lead) :]))
    expected = plain_put_along(given_, at.reshape(given_.shape), 1, prod(size)).reshape(x.shape)
    found = max_pool_pull(g, x, *static)
    if found is None:  # channels fill vectors: by places
        assert lead[-1] >= 8
        return
    np.testing.assert_array_equal(found, expected, strict=True)
    assert np.array_equal(np.signbit(found), np.signbit(expected))
    assert found.flags.c_contiguous


@pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")
@pytest.mark.parametrize(
    ("k", "step", "pad", "inner"), [(3, 2, 1, 9), (2, 1, 2, 128), (1, 3, 0, 8), (1, 1, 0, 9)]
)
def test_no_index_leaves_images(k: int, step: int, pad: int, inner: int) -> None:
    """Run as Python, each kernel stays inside and gives what the machine code gives."""
    size, lanes = (4, 5), cpu_last.width_of(inner, np.dtype(np.float32))
    static = ((k, k), (step, step), ((pad, pad),) * 2, (1, 1))
    count, axes = places.axes_of(size, *static)
    x = few((2, *size, inner), k, np.float32)
    y = np.ones((2, *count, inner), np.float32)
    rows, none = 2 * count[0], np.asarray([-0.0], np.float32)
    met = places.met(size, *static)
    counts, room = np.ones(count, np.float32), np.zeros(2 * size[1] * inner, np.float32)
    for how, alone in product(("sum", "mean", "max"), (False, True)):
        given_ = (x, y, room, axes, *places.order(size, *static, inner), none, counts, rows)
        agree(cpu_last.fold_last, *given_, -(-rows // 2), inner, lanes, how, alone, 2)
    found = np.zeros(y.shape, np.int64)
    agree(cpu_last.max_index_last, x, found, axes, met, rows, -(-rows // 2), inner, lanes, 2)
    images, width = np.zeros(x.shape, np.float32), cpu_last.WIDTHS[lanes]
    some = inner if inner % width else width
    tasks = 2 * (inner // some)
    agree(
        cpu_last.max_spread_last, y, x, images, axes, met, inner, some, lanes, False, tasks,
    )  # fmt: skip
    if k == step == 1 and not pad:
        agree(cpu_last.max_spread_last, y, x, images, axes, met, inner, some, lanes, True, tasks)
    larger = tuple([(t - 1) * step + k for t in count])
    ends = places.ends(larger, count, *static[:2], ((0, 0),) * 2)
    wider, room = np.zeros((2, *larger, inner), np.float32), np.zeros(2 * y[0, 0].size, np.float32)
    rows = 2 * larger[0]
    agree(
        cpu_last.spread_last, y, wider, room, ends, 1, *larger, 1, *count, rows, -(-rows // 2),
        inner, lanes, 2,
    )  # fmt: skip


@given(cases(), st.integers(0, 12))
def test_equal_elements_of_windows_are_folded_at_once(case: Case, more: int) -> None:
    """A broadcast array is folded like its copy."""
    shape, (window, stride, _, dilation) = case
    d = len(window)
    size = [(k - 1) * dil + 1 + s + more for k, dil, s in zip(window, dilation, shape[-d:])]
    count = output_size(size, window, stride, ((0, 0),) * d, dilation)
    g = few((2, *count), 1, np.float64).reshape(2, *count, *(1,) * d)
    wide = np.broadcast_to(g, (2, *count, *window))
    expected = windows_adjoint(np.ascontiguousarray(wide), tuple(size), stride, dilation)
    np.testing.assert_array_equal(fold_windows(wide, tuple(size), stride, dilation), expected)


@pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(0, 2), st.booleans())
def test_no_index_leaves_its_array(k: int, step: int, dil: int, pad: int, least: bool) -> None:
    """Run as Python, each kernel stays inside and gives what the machine code gives."""
    n, (count,) = 30, output_size((30,), (k,), (step,), ((pad, pad),), (dil,))
    x = few((2, 3, n), k, np.float32)
    x = np.full_like(x, -np.inf) if least else x
    axes = np.ones((3, 8), np.int64)
    axes[:, 5:7] = 0
    axes[1, :2], axes[1, 7] = 3, 3
    axes[2] = (n, count, k, step, dil, -pad, 0, n)
    phase = -(-((count - 1) * step + (k - 1) * dil + 1) // step)
    offsets = np.arange(k) * dil
    taps = offsets % step * phase + offsets // step
    room, low = np.zeros(6 * step * phase, np.float32), np.asarray([-np.inf], np.float32)
    g = few((2, 3, count), 1, np.float32)
    size = (count - 1) * step + k
    for kernel, args in (
        (cpu.max_index, (x, np.zeros((2, 3, count), np.int64), axes, 2, 1, 2)),
        (cpu.max_index_rows,
         (x, np.zeros((2, 3, count), np.int64), room, taps, axes, 2, 1, phase, low, 2)),
        (cpu.sum_line, (g, np.zeros((2, 3, size), np.float32), 6, count, size, k, 1 - k, 4, 2)),
        (cpu.spread_axis,
         (g, np.zeros((2, 3, size), np.float32), 6, size, count, 1, k, step, 4, 2)),
        (cpu.spread_axis, (g, np.zeros((2, 2 * step + k, count), np.float32), 2, 2 * step + k, 3,
                           count, k, step, 1, 2)),
    ):  # fmt: skip
        agree(kernel, *args)


@pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")
@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_few_windows(how: str) -> None:
    """As Python with every index checked, and compiled."""
    rng = np.random.default_rng(0)
    for k, step, low, t, inner in (
        (2, 1, 0, (2, 9), 1),
        (3, 3, 0, (1, 3), 9),
        (3, 2, 1, (2, 5), 3),
    ):
        x = rng.normal(size=60 * inner).astype(np.float32)
        y, at = (np.zeros(2 * t[0] * t[1] * inner, d) for d in (np.float32, np.int64))
        axes = ((1, 1, 1, 0, 1), (3, k, step, low, t[0]), (10, k, step, low, t[1]))
        told = (2, *[n for axis in axes for n in axis], inner)
        for flat in (True, False):
            agree(cpu_few.few_windows, x, y, *told, flat, inner == 1, low > 0, how)
        agree(cpu_few.few_places, x, at, *told)
        agree(cpu_few.few_spread, y + 1, x, np.zeros_like(x), *told)
        agree(cpu_few.few_sums_back, y + 1, np.zeros_like(x), *told)


@pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")
@many
@given(
    case=cases(), last=st.booleans(), dtype=st.sampled_from(["f4", "f8"]), seed=st.integers(0, 9)
)
def test_few_elements_are_pooled_and_sent_back_as_many(
    case: Case, last: bool, dtype: str, seed: int
) -> None:
    """In both layouts, with ties and NaN."""
    shape, how = case
    plan = pooling_few.plan_of(shape, *how, True)
    assume(plan is not None)
    assert plan is not None
    x = few(shape, seed, np.dtype(dtype)) * np.dtype(dtype).type(0.1)
    x[few(shape, seed + 1, np.int64) == 0] = np.nan
    lead = len(shape) - len(how[0])
    if last and lead == 2:
        x = np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1)
    with restricted():
        best, at, total = (f(x, *how) for f in (max_pool, plain_max_pool_index, sum_pool))
    np.testing.assert_array_equal(pooling_few.pooled_few(x, plan, "max"), best)
    np.testing.assert_array_equal(pooling_few.places_of_few(x, plan), at)
    if not any(map(any, how[2])):
        np.testing.assert_array_equal(pooling_few.pooled_few(x, plan, "sum"), total)
    g = few(at.shape, seed + 2, x.dtype)
    flat, to = (v.reshape(*v.shape[:lead], prod(v.shape[lead:])) for v in (g, at))
    expected = plain_put_along(flat, to, lead, prod(shape[lead:])).reshape(shape)
    np.testing.assert_array_equal(pooling_few.spread_few(g, x, plan), expected)
    if last and lead == 2:
        g = np.moveaxis(np.moveaxis(g, 1, -1).copy(), -1, 1)
    window, stride, padding, dilation = how
    wide = np.broadcast_to(g.reshape(*g.shape, *(1,) * len(window)), (*g.shape, *window))
    around = tuple([n + sum(p) for n, p in zip(shape[lead:], padding)])
    inside: Any = (..., *[slice(low, low + n) for n, (low, _) in zip(shape[lead:], padding)])
    sums = windows_adjoint(wide, around, stride, dilation)[inside]
    np.testing.assert_array_equal(pooling_few.means_back_few(g, shape, plan), sums)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_small_pools_are_the_large_ones(dtype: Any) -> None:
    """Windows that overlap, leave gaps, or stand alone."""
    x = (np.random.default_rng(2).normal(size=(2, 7, 6)) * 9).astype(dtype)
    for size, step in ((2, 2), (3, 1), (1, 3), (6, 1)):
        how = ((size, size), (step, step), ((0, 0), (0, 0)), (1, 1))
        for pool in (max_pool, sum_pool, max_pool_index):
            with restricted():
                expected = pool(x, *how)
            np.testing.assert_array_equal(pool(x, *how), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("count", "window"), [((2, 3), (2, 1)), ((1, 1), (3, 4)), ((4,), (2,)), ((2, 1, 2), (1, 3, 2))]
)
def test_windows_side_by_side_have_the_bits_of_sums(
    dtype: str, count: tuple[int, ...], window: tuple[int, ...]
) -> None:
    """Of numbers in any layout, -0.0 and NaN among them."""
    rng = np.random.default_rng(0)
    g = rng.choice([-0.0, 0.0, 1.5, -2.0, np.nan, np.inf], (2, 1, *count, *window)).astype(dtype)
    shape, ones = tuple([t * k for t, k in zip(count, window, strict=True)]), (1,) * len(count)
    wide = np.broadcast_to(g[(..., *[slice(1)] * len(count))], g.shape)
    for x in (g, np.array(g.T, order="C").T, wide, g[:0]):
        found = fold_windows(x, shape, window, ones)
        expected = windows_adjoint(x, shape, window, ones)
        np.testing.assert_array_equal(found, expected, strict=True)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
        assert found.flags.c_contiguous


@pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")
@pytest.mark.parametrize("dtype", [np.int16, np.float32, np.float64])
def test_long_windows_find_the_first_of_their_maxima(dtype: Any) -> None:
    """In rows of a vector and more; of equal ones, of NaN, of zeros of both signs, and of nothing
    above the least value."""
    x = few((4, 21, 26), 3, dtype)
    if dtype is not np.int16:
        x[1] = np.where(x[1] > 0, -np.inf, np.nan)
        x[2] *= 0.0
        x[3] = -np.inf
    for (h, w), step in (((3, 8), (3, 9)), ((2, 13), (5, 6)), ((20, 26), (1, 1))):
        static = ((h, w), step, ((0, 0),) * 2, (1, 1))
        found = max_pool_index(x, *static)
        np.testing.assert_array_equal(found, plain_max_pool_index(x, *static), strict=True)
        _, axes = places.axes_of(x.shape[1:], *static)
        best, y = max_pool(x, *static), np.zeros(found.shape, np.int64)
        agree(cpu.max_place, x, best, y, axes, 4, 3, 2)
