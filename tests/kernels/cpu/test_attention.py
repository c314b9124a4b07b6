"""The kernel of attention is its plain implementation, in less memory, with bits of its own."""

import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from funct.device import Host, host
from funct.device.machine_code import assembly
from funct.kernels import attention as plain
from funct.kernels import table
from funct.kernels.cpu import scratch
from funct.kernels.cpu.attention import fused as fast
from funct.kernels.cpu.attention.strip_products import products_level, products_text
from funct.settings import config
from tests import guarded
from tests.kernels.arrays import elsewhere

pytestmark = pytest.mark.skipif(
    not table.available() >= {"llvm", "avx2", "fma"}, reason="the kernel needs AVX2 and FMA"
)

ALWAYS = np.ones((1, 1), np.bool_)
SEED = np.array([[123456789, 4000000000]], np.uint32)
KINDS = ["none", "keys", "queries", "full", "each", "float", "band", "blocks", "far"]
LEADS = [
    ((), ()), ((2,), (2,)), ((2, 3), (2, 3)), ((2, 4), (2, 1)), ((3,), ()), ((), (2,)),
    ((2, 1), (1, 3)),
]  # fmt: skip


def masks(rng, kind, lead, queries, keys, dtype):
    """A mask of a kind; every query of the boolean ones but the last sees something."""
    if kind == "none":
        return ALWAYS
    if kind == "keys":
        return rng.random((*lead[:1], *(1,) * max(len(lead) - 1, 0), 1, keys)) > 0.3
    if kind == "queries":
        return rng.random((queries, 1)) > 0.3
    away = np.arange(queries)[:, None] - np.arange(keys)
    if kind == "band":
        return abs(away) < 20
    if kind == "blocks":  # and queries that see none of the first keys, or none at all
        return np.arange(queries)[:, None] // 60 == np.arange(keys) // 45
    if kind == "far":
        return away < -140
    full = rng.random((queries, keys)) > 0.4
    full[-1] = False
    if kind == "full":
        return full
    if kind == "each":
        return rng.random((*lead, queries, keys)) > 0.4
    return np.where(full, rng.standard_normal((queries, keys)), -np.inf).astype(dtype)


def near(found, expected, dtype, reach=0.0):
    """Equal up to a few ulp of the largest element; infinities and NaN alike.

    reach: how large the terms of a score are together. Weights are exponentials: an error of a
    score, which is measured against its terms, is a relative error of its weight.
    """
    assert found.shape == expected.shape
    assert found.dtype == dtype
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    scale = 1 + abs(expected[finite]).max(initial=0)
    allowed = (60 + 2 * reach) * np.finfo(dtype).eps * scale
    assert abs(found[finite] - expected[finite]).max(initial=0) <= allowed


@pytest.fixture(scope="module", params=[32, 64])
def width(request):
    """Bytes of a register: code for narrower ones than this processor's runs here as well."""
    if request.param > host().vector_bytes:
        pytest.skip("the processor has no such registers")
    target = replace(host(), vector_bytes=request.param)
    caches = fast._function, fast._code, fast.plan
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast, "host", lambda: target)
        for cache in caches:
            cache.cache_clear()
        yield request.param
    for cache in caches:
        cache.cache_clear()


@given(data=st.data())
def test_kernel_is_the_plain_implementation(width, data):
    draw = data.draw
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    lead, keys_lead = draw(st.sampled_from(LEADS))
    queries, keys = (draw(st.sampled_from([1, 2, 7, 24, 65, 97, 300])) for _ in range(2))
    depth, columns = (draw(st.sampled_from([1, 3, 8, 16, 33, 64])) for _ in range(2))
    causal, kind = draw(st.booleans()), draw(st.sampled_from(KINDS))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    both = np.broadcast_shapes(lead, keys_lead)
    mask = masks(rng, kind, both, queries, keys, dtype)
    q, k, v = (
        rng.standard_normal((*own, n, m)).astype(dtype)
        for own, n, m in (
            (lead, queries, depth), (keys_lead, keys, depth), (keys_lead, keys, columns),
        )
    )  # fmt: skip
    if draw(st.booleans()):  # rows far apart, as of heads that were split off
        wide = np.zeros((*q.shape[:-1], depth + 5), dtype)
        wide[..., 2 : 2 + depth] = q
        q = wide[..., 2 : 2 + depth]
    seed = rng.integers(0, 2**32, (*draw(st.sampled_from([(), both])), 1, 2), dtype=np.uint32)
    scale = draw(st.sampled_from([depth**-0.5, 1.0, -0.3]))
    how = (causal, scale, draw(st.sampled_from([0.0, 0.1, 0.75])))
    out, lse = plain.plain_attention(q, k, v, mask, seed, *how)
    found = fast.attention(q, k, v, mask, seed, *how)
    reach = abs(scale) * float((abs(q) @ abs(k).mT).max(initial=0))
    near(found[0], out, dtype, reach)
    near(found[1], lse, dtype, reach)
    g = rng.standard_normal(out.shape).astype(dtype)
    rest = (seed, lse, g, rng.standard_normal(lse.shape).astype(dtype), *how)
    expected = plain.plain_attention_pull(q, k, v, mask, *rest)
    for a, b in zip(fast.attention_pull(q, k, v, mask, *rest), expected, strict=True):
        near(a, b, dtype, reach)


@pytest.mark.pairwise
@pytest.mark.parametrize("keys", [24, 31, 64, 65])
@pytest.mark.parametrize("queries", [2, 33])
@pytest.mark.parametrize("kind", KINDS)
def test_where_elements_lie_changes_no_bit(kind, queries, keys):
    rng = np.random.default_rng(5)
    mask = masks(rng, kind, (2, 3), queries, keys, np.float32)
    shapes = (queries, 9), (keys, 9), (keys, 17), (queries, 17), (queries,), (queries,)
    q, k, v, g, lse, delta = (rng.standard_normal((2, 3, *s)).astype("f4") for s in shapes)

    def both(q, k, v, mask, lse, g, delta):
        how = False, 0.5, 0.1
        pulled = fast.attention_pull(q, k, v, mask, SEED, lse, g, delta, *how)
        return [x.tobytes() for x in (*fast.attention(q, k, v, mask, SEED, *how), *pulled)]

    given = q, k, v, mask, lse, g, delta
    for others in zip(*map(elsewhere, given)):
        assert both(*others) == both(*given)


@pytest.mark.parametrize("rate", [0.0, 0.2])
@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 67, 9, 33), (25, 67, 9, 5)])
def test_nothing_outside_of_the_arrays_is_touched(sizes, at_end, rate, monkeypatch):
    """Results too lie between pages that may not be touched, and are NaN before."""
    queries, keys, depth, width = sizes
    rng = np.random.default_rng(3)
    shapes = (queries, depth), (keys, depth), (keys, width), (queries, width), (queries,)
    arrays = [rng.standard_normal((2, *s)).astype("f4") for s in shapes]
    q, k, v, g, delta = (guarded.copy(a, at_end=at_end) for a in arrays)
    mask = guarded.copy(rng.random((queries, keys)) > 0.3, at_end=at_end)
    monkeypatch.setattr(
        scratch, "fresh", lambda shape, dtype: guarded.empty(shape, dtype, at_end=at_end)
    )
    for causal in (False, True):
        out, lse = fast.attention(q, k, v, mask, SEED, causal, 0.5, rate)
        near(out, plain.plain_attention(q, k, v, mask, SEED, causal, 0.5, rate)[0], np.float32)
        given = (q, k, v, mask, SEED, lse, g, delta, causal, 0.5, rate)
        for a, b in zip(fast.attention_pull(*given), plain.plain_attention_pull(*given)):
            near(a, b, np.float32)


@pytest.mark.parametrize("length", [5, 50])
def test_nan_stays_in_its_rows(length):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, length, 16)).astype("f4") for _ in range(3))
    q[0, 3, 2] = np.nan
    out, _ = fast.attention(q, k, v, ALWAYS, SEED, False, 1.0, 0.0)
    assert np.isnan(out[0, 3]).all()
    assert np.isfinite(np.delete(out, 3, 1)).all()
    v[1, 2] = np.inf
    out, _ = fast.attention(q, k, v, ALWAYS, SEED, False, 1.0, 0.0)
    assert (out[1] == np.inf).all()


def test_scores_of_any_size():
    """Far above what exp could take, and far below."""
    q = np.array([[[1000.0], [-1000.0], [0.0]]], "f4")
    k = np.array([[[1000.0], [999.0], [-5.0]]], "f4")
    v = np.array([[[1.0], [2.0], [3.0]]], "f4")
    out, lse = fast.attention(q, k, v, ALWAYS, SEED, False, 1.0, 0.0)
    near(out, np.array([[[1.0], [3.0], [2.0]]], "f4"), np.float32)
    np.testing.assert_allclose(lse, [[1e6, 5e3, np.log(3)]], rtol=1e-6)


def test_long_sums_round_no_more_than_short_ones():
    """A single key has all the weight: whatever its slopes are is what sums of products have been
    rounded by, against an error that grows with the root of what a chain of 64 adds up.
    """
    rng = np.random.default_rng(0)
    q, g = (rng.standard_normal((8, 64, 256)).astype("f4") for _ in range(2))
    k, v = (rng.standard_normal((8, 1, 256)).astype("f4") for _ in range(2))
    out, lse = fast.attention(q, k, v, ALWAYS, SEED, False, 1 / 16, 0.0)
    delta = np.sum(g.astype(float) * out, -1).astype("f4")
    dq, _, _ = fast.attention_pull(q, k, v, ALWAYS, SEED, lse, g, delta, False, 1 / 16, 0.0)
    slopes = np.sum(dq * k, -1) / np.sum(k * k, -1) * 16
    assert np.sqrt(np.mean(slopes**2)) < 4 * 8 * np.finfo("f4").eps


@pytest.mark.parametrize("causal", [False, True])
def test_bits_do_not_depend_on_the_number_of_threads(causal):
    rng = np.random.default_rng(1)
    q, k, v, g = (rng.standard_normal((3, 300, 32)).astype("f4") for _ in range(4))
    before, found = config.threads, []
    try:
        for threads in (1, 2):
            config.threads = threads
            out, lse = fast.attention(q, k, v, ALWAYS, SEED, causal, 0.2, 0.1)
            delta = np.sum(g * out, -1)
            found.append(
                (out, *fast.attention_pull(q, k, v, ALWAYS, SEED, lse, g, delta, causal, 0.2, 0.1))
            )
    finally:
        config.threads = before
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_memory_grows_with_the_length_alone():
    """4096 queries by 4096 keys would be 64 MiB of weights."""
    q = np.zeros((1, 4096, 16), "f4")
    out, lse = fast.attention(q, q, q, ALWAYS, SEED, True, 1.0, 0.0)
    tracemalloc.start()
    try:
        fast.attention(q, q, q, ALWAYS, SEED, True, 1.0, 0.0)
        fast.attention_pull(q, q, q, ALWAYS, SEED, lse, q, lse, True, 1.0, 0.0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20
    assert out.shape == q.shape


def test_dropout_keeps_its_share_everywhere():
    """Of the rows, the columns and the pairs of neighbours; seeds that differ by 1 have no more in
    common than others.
    """
    seeds = np.array([[[7, 9]], [[8, 9]], [[7, 10]]], np.uint32)
    kept = plain.kept(seeds, 1000, 1200, 0.3).astype(float)
    assert abs(kept.mean((1, 2)) - 0.7).max() < 0.003
    for axis in (1, 2):
        assert abs(kept.mean(axis) - 0.7).max() < 0.075
    left = (kept - 0.7) / 0.21**0.5
    pairs = [left[:, 1:] * left[:, :-1], left[:, :, 1:] * left[:, :, :-1], left[:1] * left[1:]]
    assert all(abs(p.mean((1, 2))).max() < 0.005 for p in pairs)


@pytest.mark.parametrize("shape", [(0, 4, 8), (2, 0, 8), (2, 4, 0)])
def test_nothing_is_left_to_the_plain_implementation(shape):
    q = np.zeros(shape, "f4")
    assert fast.attention(q, q, q, ALWAYS, SEED, False, 1.0, 0.0) is NotImplemented
    out, lse = plain.attention(q, q, q, ALWAYS, SEED, False, 1.0, 0.0)
    assert out.shape == shape
    assert lse.shape == shape[:-1]


@pytest.mark.parametrize("along", ["steps", "rows"])
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_sums_of_products_stay_in_registers(element, along):
    """Also where they, a row of the strip and one number take all 16."""
    narrow = Host("haswell", frozenset({"avx", "avx2", "fma"}), 32, 1)
    text = products_text(element, 32, along, narrow)
    made = assembly(text, narrow, opt=products_level(32))
    assert "vfmadd" in made
    assert not re.findall(r"%[yz]mm\d+, \S*\(%rsp\)", made)
