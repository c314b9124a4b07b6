"""Threefry: the published vectors, JAX's numbers, and laws that hold for any key and shape."""

from __future__ import annotations

import itertools
import subprocess
import sys
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.kernels.cpu import loops
from funct.kernels.cpu.random import bits as cpu
from funct.kernels.random import bits as module
from funct.kernels.random import normal as made_of
from funct.kernels.random.bits import (
    fold_in,
    plain_bits,
    plain_numbers,
    plain_split,
    random_bits,
    random_exponential,
    random_gumbel,
    random_normal,
    random_unit,
    seed,
    split,
    threefry2x32,
)
from funct.settings import config
from tests.kernels.arrays import agree

compiled = pytest.mark.skipif(not loops.available(), reason="there is no LLVM to compile with")
words = st.integers(0, 2**32 - 1)
shapes = st.lists(st.integers(0, 5), max_size=3).map(tuple)
widths = st.sampled_from([8, 16, 32, 64])


# Random123 1.14, tests/kat_vectors, the lines `threefry2x32 20`.
@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
@pytest.mark.parametrize("count", [1, 9, 40_000])
def test_known_answers(counter: Any, key: Any, expected: Any, count: int) -> None:
    """The authors' vectors come out, one by one, in a block and in several blocks."""
    y0, y1 = threefry2x32(*key, np.full(count, counter[0]), np.full(count, counter[1]))
    assert set(zip(y0.tolist(), y1.tolist())) == {expected}


@pytest.mark.parametrize("machine_code", [False, True])
def test_few_and_many_counters_agree(machine_code: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's integers, NumPy's blocks and vectors hash alike, for one key and for many."""
    monkeypatch.setattr(module, "ready", lambda n: machine_code and loops.available())
    given = np.random.default_rng(0).integers(0, 2**32, (4, 50), np.uint32)
    y0, y1 = threefry2x32(*given)
    one0, one1 = threefry2x32(*given[:2, :1], *given[2:])
    for i in range(50):
        assert threefry2x32(*given[:, i]) == (y0[i], y1[i])
        assert threefry2x32(*given[:2, 0], *given[2:, i]) == (one0[i], one1[i])


def test_operands_broadcast() -> None:
    """Keys and counters broadcast against each other, and the operands stay as they are."""
    key, counter = np.arange(3, dtype=np.uint32)[:, None], np.arange(4, dtype=np.uint32)
    y0, y1 = threefry2x32(key, key + 1, counter, 7)
    assert y0.shape == y1.shape == (3, 4)
    for i, j in np.ndindex(3, 4):
        assert threefry2x32(i, i + 1, j, 7) == (y0[i, j], y1[i, j])
    assert counter.tolist() == [0, 1, 2, 3]


# JAX 0.10.2 with jax_threefry_partitionable (its default) and jax_enable_x64, on a CPU.
def test_seed_is_that_of_jax() -> None:
    """jax.random.key_data(jax.random.key(s)): the high word and the low word."""
    assert seed(0).tolist() == [0, 0]
    assert seed(42).tolist() == [0, 42]
    assert seed(2**32 + 7).tolist() == [1, 7]
    assert seed(2**63 - 1).tolist() == [2147483647, 4294967295]
    assert seed(-1).tolist() == [4294967295, 4294967295]
    assert seed(-(2**63)).tolist() == [2147483648, 0]
    assert seed(2**64 - 1).tolist() == [4294967295, 4294967295]  # beyond int64 JAX refuses


def test_split_is_that_of_jax() -> None:
    """jax.random.key_data(jax.random.split(jax.random.key(42), 3))."""
    expected = [[1832780943, 270669613], [64467757, 2916123636], [2465931498, 255383827]]
    assert split(seed(42), 3).tolist() == expected


def test_fold_in_is_that_of_jax() -> None:
    """jax.random.key_data(jax.random.fold_in(jax.random.key(42), d))."""
    assert fold_in(seed(42), 0).tolist() == [1832780943, 270669613]
    assert fold_in(seed(42), 1).tolist() == [64467757, 2916123636]
    assert fold_in(seed(42), 2**32 - 1).tolist() == [2398536845, 3890976714]


BITS = {
    8: [[162, 217, 249], [215, 21, 216]],
    16: [[5026, 12505, 63993], [49623, 29461, 20184]],
    32: [[2098992034, 2919706841, 2646866425], [2409546199, 1935504149, 2516274904]],
    64: [
        [7871734211187709741, 276886910877598708, 10591095138341673235],
        [13462782411356743825, 12687676868490354166, 11878554724538143822],
    ],
}


@pytest.mark.parametrize("width", BITS)
def test_bits_are_those_of_jax(width: int) -> None:
    """jax.random.bits(jax.random.key(42), (2, 3), f"uint{width}")."""
    bits = random_bits(seed(42), (2, 3), width)
    assert bits.dtype == np.dtype(f"uint{width}")
    assert bits.tolist() == BITS[width]


def test_many_bits_are_those_of_jax() -> None:
    """jax.random.bits(jax.random.key(1), (70001,), "uint32"), over the seams of blocks."""
    bits = random_bits(seed(1), (70001,), 32)
    assert bits[-3:].tolist() == [787544783, 2345637615, 3819503865]
    assert int(bits.sum(dtype=np.uint64)) == 150346964588777


@given(st.integers(-(2**63), 2**63 - 1), shapes, widths, words)
def test_agrees_with_jax_where_it_is_installed(
    value: int, shape: tuple[int, ...], width: int, data: int
) -> None:
    """key, split, fold_in and bits give the same words as JAX itself."""
    jax = pytest.importorskip("jax", reason="JAX is the oracle of this test only")
    with jax.enable_x64(True):
        key = jax.random.key(value)
        data_of = jax.random.key_data
        expected = [
            np.asarray(a)
            for a in (
                data_of(key),
                data_of(jax.random.split(key, shape[0] if shape else 1)),
                data_of(jax.random.fold_in(key, data)),
                jax.random.bits(key, shape, f"uint{width}"),
            )
        ]
    ours = seed(value)
    actual = [
        ours,
        split(ours, shape[0] if shape else 1),
        fold_in(ours, data),
        random_bits(ours, shape, width),
    ]
    for a, b in zip(actual, expected):
        np.testing.assert_array_equal(a, b, strict=True)


@given(st.lists(st.integers(0, 3), max_size=2).map(tuple), shapes, widths)
def test_keys_batch(batch: tuple[int, ...], shape: tuple[int, ...], width: int) -> None:
    """A batch of keys gives what the keys give one by one."""
    keys = np.random.default_rng(0).integers(0, 2**32, (*batch, 2), np.uint32)
    bits, many, folded = random_bits(keys, shape, width), split(keys, 3), fold_in(keys, 5)
    assert bits.shape == (*batch, *shape)
    assert many.shape == (*batch, 3, 2)
    assert folded.shape == keys.shape
    for i in np.ndindex(*batch):
        np.testing.assert_array_equal(bits[i], random_bits(keys[i], shape, width))
        np.testing.assert_array_equal(many[i], split(keys[i], 3))
        np.testing.assert_array_equal(folded[i], fold_in(keys[i], 5))


@compiled
@pytest.mark.parametrize("n", [64, 65, 127, 200])
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint32, np.uint64])
def test_many_integers_give_the_keys_that_each_gives(n: int, dtype: Any) -> None:
    """Also negative ones, of which 32 bits count; no element outside is read or written."""
    data = np.random.default_rng(n).integers(-99, 99, n).astype(dtype)
    made = fold_in(seed(3), data)
    for key, one in zip(made, data.tolist(), strict=True):
        np.testing.assert_array_equal(key, fold_in(seed(3), one))
    for part in (64, 128):
        agree(cpu.fold, seed(3), data, np.zeros(n, np.uint64), n, part, -(-n // part))


def test_keys_batch_over_several_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tiles begin and end has no influence on the bits."""
    keys = split(seed(3), 7)
    expected = {n: (random_bits(keys, (n,), 32), split(keys, n)) for n in (1, 5, 16, 40)}
    monkeypatch.setattr(module, "_BLOCK", 16)
    monkeypatch.setattr(module, "ready", lambda n: False)
    for n, (bits, many) in expected.items():
        np.testing.assert_array_equal(random_bits(keys, (n,), 32), bits)
        np.testing.assert_array_equal(split(keys, n), many)


NUMBERS = {
    "unit": random_unit, "normal": random_normal, "exponential": random_exponential,
    "gumbel": random_gumbel,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponential_numbers_are_logarithms_of_uniform_ones(dtype: Any) -> None:
    """And Gumbel numbers theirs, to the last digits; the least word is no infinity."""
    given = (200_000,), np.dtype(dtype)
    u = random_unit(seed(5), *given).astype(np.longdouble)
    least = 2.0**-24 if dtype is np.float32 else 2.0**-53
    exact = -np.log1p(-np.maximum(u, least))
    found = random_exponential(seed(5), *given)
    np.testing.assert_allclose(found, exact.astype(dtype), rtol=4 * np.finfo(dtype).eps)
    away = np.abs(random_gumbel(seed(5), *given) + np.log(exact))
    assert away.max() <= 16 * np.finfo(dtype).eps
    assert np.isfinite(found).all()
    assert (found > 0).all()


@pytest.mark.parametrize("word", [0, 255, 256, 0xFFFFFFFF])
def test_words_at_the_ends_give_finite_numbers(word: int) -> None:
    """A uniform number of 0 or next to 1 never becomes log(0), nor an exponential one 0."""
    words = np.full(3, word, np.uint32)
    for found in (made_of.exponential32(words), made_of.exponential64(words, words)):
        assert (found > 0).all()
        assert np.isfinite(found).all()
    for found in (made_of.gumbel32(words), made_of.gumbel64(words, words)):
        assert np.isfinite(found).all()


@compiled
@given(st.lists(st.integers(0, 3), max_size=2).map(tuple), st.integers(0, 70), st.integers(0, 99))
def test_machine_code_gives_the_bits_of_numpy(batch: tuple[int, ...], n: int, value: int) -> None:
    """Words, keys, uniform and normal numbers, for any number of keys and of numbers."""
    keys = np.random.default_rng(value).integers(0, 2**32, (*batch, 2), np.uint32)
    turned = keys[..., ::-1].copy()[..., ::-1]  # strided
    for width in (8, 16, 32, 64):
        same(random_bits(turned, (n,), width), plain_bits(keys, (n,), width))
    same(split(turned, n), plain_split(keys, n))
    for dtype, (kind, made) in itertools.product((np.float32, np.float64), NUMBERS.items()):
        given = (n, 1), np.dtype(dtype)
        same(made(turned, *given), plain_numbers(keys, *given, kind))


def same(a: Any, b: Any) -> None:
    """Equal in shape, dtype and bits."""
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    assert a.tobytes() == b.tobytes()


@compiled
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_bits_depend_on_no_number_of_threads(threads: int) -> None:
    """Many numbers of one key, some of several, few of many: cut in tasks, the bits stay."""
    kind = np.dtype(np.float32)
    for keys, n in ((seed(7), 100_003), (split(seed(8), 3), 40_000), (split(seed(9), 5000), 40)):
        with config.using(threads=threads):
            same(random_normal(keys, (n,), kind), plain_numbers(keys, (n,), kind, "normal"))


@compiled
@pytest.mark.parametrize("kind", ["bits", "split", *NUMBERS])
def test_no_index_leaves_its_array(kind: str) -> None:
    """Run as Python, the kernel stays inside and gives what the machine code gives."""
    keys = split(seed(2), 3)
    for dtype in (np.float32, np.float64) if kind in NUMBERS else (np.uint64,):
        for n in (16, 17, 40, 64, 100):
            y = np.zeros((3, n), dtype)
            for some, part in ((3, n), (2, 16), (1, 32)):
                tasks = -(-n // part) * -(-3 // some)
                for wide in (False, True)[: 1 + (n >= cpu.WIDE)]:
                    agree(cpu.draw, keys, y, 3, n, some, part, kind, wide, 0.0, 0, tasks)
    words = [random_bits(seed(k), (32,), 32) for k in range(4)]
    for single in (False, True):
        agree(cpu.hashed, *words, 32, single)


@compiled
@pytest.mark.parametrize("n", [16, 17, 40, 64, 100])
def test_few_numbers_stay_inside(n: int) -> None:
    """The same for a few numbers of one key, whole ones and coins among them."""
    for kind, dtype, a, b in (
        ("unit", np.float32, 0, 0), ("normal", np.float64, 0, 0), ("bits", np.uint64, 0, 0),
        ("exponential", np.float32, 0, 0), ("gumbel", np.float64, 0, 0),
        ("integers", np.int8, 100.0, 7), ("integers", np.int64, 2.0**32, 0),
        ("below", np.uint8, 0.3, 0), ("laplace", np.float32, 0, 0), ("laplace", np.float64, 0, 0),
    ):  # fmt: skip
        keys = split(seed(3), 2).reshape(4)  # the second one is for signs
        agree(cpu.draw_few, keys, np.zeros(n, dtype), n, kind, n >= cpu.WIDE, a, b)
        if kind == "laplace":
            agree(cpu.draw, keys, np.zeros(n, dtype), 1, n, n, 32, kind, n >= cpu.WIDE, a, b, 1)


@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 5e-7), (np.float64, 1e-12)])
def test_normal_numbers_are_quantiles(dtype: Any, error: float) -> None:
    """Each is the point that lies as far from 0 as its word says, also in the tails."""
    special = pytest.importorskip("scipy.special", reason="SciPy is the oracle of this test")
    width = 8 * np.dtype(dtype).itemsize
    words = random_bits(seed(3), (100_000,), width)
    place = words & words.dtype.type(2 ** (width - 1) - 1)
    wide = np.finfo(np.longdouble).nmant > 60
    p = (place.astype(np.longdouble) + (0.5 if wide or width == 32 else 0)) / 2.0**width
    expected = special.ndtri(p.astype(np.float64)) * np.where(words >> (width - 1), 1, -1)
    actual = random_normal(seed(3), (100_000,), np.dtype(dtype))
    assert actual.dtype == dtype
    inner = np.abs(expected) > 1e-3  # around the median p itself has too few digits
    np.testing.assert_allclose(
        actual[inner], expected[inner], rtol=error * (1 if width == 32 else 40)
    )


@given(shapes, st.integers(1, 4), widths)
def test_more_bits_begin_with_the_fewer(shape: tuple[int, ...], more: int, width: int) -> None:
    """The bits at a flat index do not depend on how many are made, nor on the shape."""
    n = prod(shape)
    few, many = random_bits(seed(9), shape, width), random_bits(seed(9), (n + more,), width)
    np.testing.assert_array_equal(many[:n], few.reshape(-1))


def test_fold_in_broadcasts() -> None:
    """An array of data gives a key for each, and only its low 32 bits count."""
    keys, data = split(seed(5), 2)[:, None], np.array([0, 1, 2**32, -1])
    folded = fold_in(keys, data)
    assert folded.shape == (2, 4, 2)
    for i, j in np.ndindex(2, 4):
        assert folded[i, j].tolist() == fold_in(keys[i, 0], int(data[j])).tolist()
    assert folded[:, 0].tolist() == folded[:, 2].tolist()


@pytest.mark.parametrize("start", [0, 2**32 - 2**15, 2**32, 5 * 2**32 + 2**15])
def test_counters_have_two_words(start: int) -> None:
    """Beyond 2³² counters the high word goes on counting."""
    n = module._BLOCK
    x0, x1 = np.empty((2, n), np.uint32)
    module._count(start, np.arange(n, dtype=np.uint32), x0, x1)
    counters = x0.astype(np.uint64) << 32 | x1
    np.testing.assert_array_equal(counters, np.arange(start, start + n, dtype=np.uint64))


def test_bits_look_random() -> None:
    """Each bit of a word is set half of the time, and two keys share no more than chance has it."""
    a, b = random_bits(split(seed(0), 2), (20_000,), 32)
    for x in (a, b, a ^ b):
        rates = [float((x >> bit & 1).mean()) for bit in range(32)]
        assert max(abs(rate - 0.5) for rate in rates) < 0.5 * 5 / np.sqrt(20_000)


@pytest.mark.parametrize("width", [0, 1, 24, 128])
def test_no_other_widths(width: int) -> None:
    """A width that no dtype has is an error that says what there is."""
    with pytest.raises(ValueError, match=f"8, 16, 32 or 64, got {width}"):
        random_bits(seed(0), (3,), width)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_seeds_have_64_bits(value: int) -> None:
    """A larger seed would lose bits, so it is refused."""
    with pytest.raises(OverflowError, match="64 bits"):
        seed(value)


def test_another_process_makes_the_same_bits() -> None:
    """No state of the process enters: not hashes, not time, not what was drawn before."""
    code = "from funct.kernels.random.bits import *; print(random_bits(seed(4), (5,), 32).tolist())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == str(random_bits(seed(4), (5,), 32).tolist())


@given(
    words=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=9),
    count=st.one_of(st.integers(1, 2**32), st.sampled_from([1, 2, 3, 2**31, 2**32 - 1, 2**32])),
    first=st.integers(0, 2**31 - 1),
)
def test_rests_in_floats_are_those_of_integers(words: list[int], count: int, first: int) -> None:
    """Also next to multiples, where a quotient is one more or one less."""
    near = [w // count * count + k for w in words for k in (-1, 0, 1)]
    x = np.asarray([w % 2**64 for w in (*words, *near, 0, 2**64 - 1)], np.uint64)
    high, low = (x >> np.uint64(32)).astype(np.uint32), x.astype(np.uint32)
    found = cpu._below(high, low, float(count), first, np.dtype(np.uint64))
    assert np.array_equal(found, x % np.uint64(count) + np.uint64(first))


@pytest.mark.parametrize("count", [1, 7, 2**31 + 1, 2**32])
@pytest.mark.parametrize("n", [1, 16, 65, 40_000])
def test_integers_are_rests_of_words(n: int, count: int) -> None:
    """For few and for many, one key and several, on the road of `randint` too."""
    keys = np.stack([seed(1), seed(2)])
    expected = plain_bits(keys, (n,), 64) % np.uint64(count) + np.uint64(3)
    if loops.available():
        for given, wanted in ((keys, expected), (keys[1], expected[1])):
            made = cpu.numbers(given, (n,), np.dtype(np.int64), "integers", float(count), 3)
            assert np.array_equal(made, wanted.astype(np.int64))
    found = ft.random.randint(xp.asarray(keys[0]), (n,), 3, 3 + count)
    assert np.array_equal(np.asarray(found), expected[0].astype(np.int64))
