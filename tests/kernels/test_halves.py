"""float16 and bfloat16 on large arrays: the bits of NumPy's own functions, by other ways."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct import ops
from funct.array import conversion
from funct.core import FLOATING, catalogue
from funct.kernels.cpu.loops import available
from funct.kernels.elementwise.casting import in_dtype
from funct.kernels.elementwise.thresholds import FAR
from funct.kernels.elementwise.thresholds import MANY as SOME
from funct.kernels.linalg.dots import is_finite
from funct.kernels.table import restricted
from tests.kernels.arrays import same_signs

if not available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

from funct.kernels.cpu.elementwise import casts, halves, vector_loops
from funct.kernels.cpu.elementwise import halves as cpu
from funct.kernels.cpu.elementwise.sized import chosen
from funct.kernels.llvm.functions import FUNCTIONS

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.0, 1e-30, 6e-8, 65504.0, 3e38]
MANY = 1 << 12

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered:RuntimeWarning")


def of_elements(operands: int) -> list[Any]:
    """Primitives that act on each element of so many operands."""
    return [
        pytest.param(p, id=p.name)
        for p in catalogue()
        if p.spread is not None and len(p.rules) == operands and not p.params and p.results == 1
    ]


def assert_same(found: Any, expected: Any) -> None:
    """Equal bits, but for what is left in a NaN."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if expected.dtype in FLOATING:
        lost = np.isnan(expected.astype(np.float64))
        np.testing.assert_array_equal(np.isnan(found.astype(np.float64)), lost)
        word = np.dtype(f"u{expected.itemsize}")
        found, expected = found.copy().view(word)[~lost], expected.copy().view(word)[~lost]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [*HALVES, np.dtype(np.float32), np.dtype(np.complex64)], ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 4, 5)])
def test_what_is_finite(dtype: Any, shape: tuple[int, ...]) -> None:
    """One number that is not is found wherever it is, also where axes lie in another order."""
    x = np.full(shape, 300.0).astype(dtype)
    for seen in (x, np.moveaxis(x, 1, -1) if x.ndim > 1 else x, x[..., ::2] if x.ndim else x):
        assert is_finite(seen)
        for odd in (np.inf, -np.inf, np.nan):
            for place in {0, seen.size // 2, seen.size - 1} if seen.size else ():
                spoilt = seen.copy("K")
                spoilt[np.unravel_index(place, seen.shape)] = odd
                assert not is_finite(spoilt)
    assert not is_finite(np.full((4, 3), 1e30, np.float32)), "what overflows is left open"


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("prim", of_elements(1))
def test_every_number_is_what_the_plain_function_makes_of_it(prim: Any, dtype: Any) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    try:
        expected = prim.raw(codes)
    except TypeError:
        return  # not of these
    x = xp.asarray(codes.reshape(256, 256))
    assert_same(prim.fn(x).data, expected.reshape(256, 256))
    assert_same(prim.fn(x.mT).data, expected.reshape(256, 256).T)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_a_quick_way_with_other_bits_is_not_taken(
    dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One wrong number of 65,536 is enough."""
    codes = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    wrong = np.tanh(codes)
    wrong[1] = 1
    monkeypatch.setattr(halves, "_in_vectors", lambda name, x: wrong)
    assert_same(halves.tabled(np.tanh, "tanh")(codes), np.tanh(codes))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("few", [1, 8, 9])
@pytest.mark.parametrize("sign", ["kept", "lost", "set"])
def test_numbers_at_which_vectors_round_otherwise_are_told_to_them(
    dtype: Any, few: int, sign: str
) -> None:
    """As long as they are few; and what sign NaN has, of NaN and of numbers."""
    values = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    table = vector_loops.combined("exp", (values,), dtype)
    unknown = np.isnan(values)
    table[unknown] = values[unknown] if sign == "kept" else np.abs(values[unknown])
    odd = np.flatnonzero(np.isfinite(table))[99::99][:few]
    table[odd] = -table[odd]
    if sign == "set":
        table[odd[0]] = -np.asarray(np.nan, dtype)
    name = halves._with_bits_of(table, "exp", values)
    assert (name is None) == (few > 8)
    if name is not None:
        found = vector_loops.combined(name, (values,), dtype)
        assert_same(found, table)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(table))
    table = vector_loops.combined("log", (values,), dtype)
    table[np.isnan(table)] = -np.asarray(np.nan, dtype)
    table[unknown] = values[unknown]
    name = halves._with_bits_of(table, "log", values)
    assert name is not None
    found = vector_loops.combined(name, (values,), dtype)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(table))


def test_zeros_may_keep_their_signs() -> None:
    """As bfloat16's own sign has it: it is a function of vectors all the same."""
    values = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    name = halves._with_bits_of(np.sign(values), "sign", values)
    assert name is not None
    assert_same(vector_loops.combined(name, (values,), values.dtype), np.sign(values))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ["abs", "negative"])
def test_signs_are_bits(name: str, dtype: Any) -> None:
    """NaN has one too; of some elements, of many, and of those that do not lie side by side."""
    values = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    expected = getattr(np, name)(values).view(np.uint16)
    function = getattr(xp, name)
    for part in (slice(None), slice(31_000, 32_999), slice(None, None, 3), slice(5)):
        found = np.asarray(function(xp.asarray(values[part])))
        np.testing.assert_array_equal(found.view(np.uint16), expected[part])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_copies_of_signs_are_bits(dtype: Any) -> None:
    """Of NaN too; beside an array and a number, of some elements and of many."""
    values = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    others = np.random.default_rng(0).permutation(values)
    for part in (slice(None), slice(31_000, 32_999), slice(None, None, 3), slice(5)):
        found = xp.copysign(xp.asarray(values[part]), xp.asarray(others[part])).data
        size, sign = values[part].view(np.uint16) & 0x7FFF, others[part].view(np.uint16) & 0x8000
        np.testing.assert_array_equal(found.view(np.uint16), size | sign)
        beside = xp.copysign(xp.asarray(values[part]), -2.0).data
        assert_same(beside, (size | 0x8000).view(dtype))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("power", [2, 3, 4, 0.5, -0.5, -1, -2])
def test_powers_by_a_number_have_the_bits_of_the_ufunc(power: float, dtype: Any) -> None:
    """Of every number, of some and of many; but for the root of -0 and -inf."""
    values = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    known = (values != 0) & ~np.isneginf(values) if power % 1 else np.full(values.shape, True)
    expected = np.power(values, np.asarray(power, dtype))
    for part in (slice(None), slice(31_000, 32_999), slice(None, None, 70)):
        found = (xp.asarray(values[part]) ** power).data
        assert_same(found[known[part]], expected[part][known[part]])


@pytest.mark.parametrize(("dtype", "n", "told"), [("e", 600, 1), ("e", 9, 0), ("f", 600, 0)])
def test_halves_from_numpy_let_functions_choose(
    monkeypatch: pytest.MonkeyPatch, dtype: str, n: int, told: int
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(conversion, "arrived", seen.append)
    monkeypatch.setattr(conversion, "SMALL_ONLY", [None])
    given = np.ones(n, dtype)
    found = xp.asarray(given)
    assert len(seen) == told
    np.testing.assert_array_equal(found, given)


def test_a_table_is_read_within_its_bounds() -> None:
    codes = np.random.default_rng(0).integers(0, 1 << 16, 70).astype(np.uint16)
    table, y = np.arange(1 << 16, dtype=np.uint32)[::-1].copy(), np.empty(70, np.uint32)
    cpu.look_up.checked(codes, table, y, 70, 32, 3)
    np.testing.assert_array_equal(y, table[codes])


@st.composite
def operands(draw: Any, count: int) -> list[Any]:
    """Bits of halves in arrays that broadcast, some of them with strides of any kind."""
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 33, 70]), min_size=0, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype = draw(st.sampled_from(HALVES))
    found = []
    for _ in range(count):
        own = [n if draw(st.booleans()) else 1 for n in shape]
        if draw(st.booleans()):
            own = shape
        own = own[draw(st.integers(0, len(own))) if draw(st.booleans()) else 0 :]
        steps = [draw(st.sampled_from([1, 1, 1, 2, -1])) for _ in own]
        whole = [n * abs(s) for n, s in zip(own, steps, strict=True)]
        order = draw(st.permutations(range(len(own))))
        x = rng.integers(0, 1 << 16, [whole[a] for a in order]).astype(np.uint16).view(dtype)
        edges = rng.random(x.shape) < 0.3
        x = np.where(edges, rng.choice(np.asarray(EDGES).astype(dtype), x.shape), x)
        x = x.transpose(np.argsort(order))
        found.append(np.asarray(x[tuple([slice(None, None, s) for s in steps])]))
    return found


@pytest.mark.parametrize("prim", [p for p in of_elements(2) if p.id in vector_loops.OPS])
@given(given=operands(2))
def test_two_operands_have_the_bits_of_the_ufunc(prim: Any, given: Any) -> None:
    assert_same(halves.other_way(prim.name, prim.raw, 2)(*given), np.asarray(prim.raw(*given)))


ROUNDED = [p for p in of_elements(2) if p.id in FUNCTIONS.keys() - vector_loops.OPS.keys()]


@pytest.mark.parametrize("prim", [p for p in ROUNDED if p.id != "nextafter"])
@given(given=operands(2))
def test_two_operands_of_what_float32_rounds_give_the_nearest_number(prim: Any, given: Any) -> None:
    """Or the other one, where it is as near but for what float32 rounds. Of NaN that signals NumPy
    makes NaN where the standard has a number.
    """
    found = halves.other_way(prim.name, prim.raw, 2)(*given)
    with np.errstate(all="ignore"):
        exact = np.asarray(prim.raw(*[x.astype(np.float32) for x in given]))
        nearest = exact.astype(found.dtype)
        differ = (found != nearest) & ~(np.isnan(found) & np.isnan(nearest))
        differ &= ~(np.isnan(given[0]) | np.isnan(given[1]))
        exact, off = exact.astype(np.float64), 8 * np.spacing(np.abs(exact)).astype(np.float64)
        far = [np.abs(x.astype(np.float64) - exact) for x in (found, nearest)]
    assert np.all(far[0][differ] <= (far[1] + off)[differ])


@given(given=operands(2), seed=st.integers(0, 99))
def test_where_takes_numbers_as_they_are(given: Any, seed: int) -> None:
    x, y = given
    shape = np.broadcast_shapes(x.shape, y.shape)
    choice = np.random.default_rng(seed).random(shape) < 0.5
    assert_same(halves.other_way("where", np.where, 3)(choice, x, y), np.where(choice, x, y))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("number", [0.1, -3, 65520.0, 1e6, float("nan"), float("-inf"), 2**40])
def test_numbers_beside_large_arrays_are_what_they_are_beside_small_ones(
    dtype: Any, number: float
) -> None:
    x = np.random.default_rng(0).standard_normal(2 * MANY).astype(dtype)
    for op in (ops.add, ops.multiply, ops.less, ops.maximum):
        large, small = xp.asarray(x), [xp.asarray(part) for part in np.split(x, 64)]
        assert_same(op(large, number).data, np.concatenate([op(s, number).data for s in small]))
        assert_same(op(number, large).data, np.concatenate([op(number, s).data for s in small]))


@pytest.mark.parametrize(("dtype", "to"), sorted(casts.CASTS, key=str), ids=str)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_casts_are_numpys(dtype: Any, to: Any) -> None:
    """All bits there can be, ties and what is next to them, and views."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**64, 1 << 17, np.uint64, endpoint=False)
    codes = words.view(np.uint8).astype(bool) if dtype.kind == "b" else words.view(dtype)
    near = np.arange(1 << 16, dtype=np.uint16)
    near = near.view(to if to in HALVES else HALVES[0]).astype(np.float64)
    with np.errstate(all="ignore"):
        ties = (near + np.roll(near, 1)) / 2
    beside = [np.nextafter(ties, side) for side in (-np.inf, np.inf)]
    small = rng.integers(-70000, 70000, 1 << 16)
    for x in (codes, ties, *beside, small, np.arange(1 << 16), codes[::3], codes.reshape(64, -1).T):
        with np.errstate(all="ignore"):
            x = x if x.dtype == dtype else x.astype(dtype)
        assert_same(xp.asarray(x).astype(to).data, x.astype(to))


@pytest.mark.parametrize("dtype", "hHiIlLd")
def test_numbers_become_bfloat16_rounded_once(dtype: str) -> None:
    """Eagerly and compiled: ties, what lies beside them, the largest, and floats that are subnormal
    there.
    """
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 16, 1 << 14, np.uint16)
    near, beside = (b.view(HALVES[1]).astype(np.float64) for b in (bits, bits ^ 1))
    with np.errstate(all="ignore"):
        ties = (near + beside) / 2
    if dtype == "d":
        small = rng.integers(-600, 600, 1 << 12) * 2.0**-134
        given = [np.nextafter(v, side) for v in (ties, small) for side in (-np.inf, np.inf)]
        x = np.concatenate([ties, small, *given, rng.standard_normal(1 << 12) * 1e-39])
    else:
        limits = np.iinfo(dtype)
        whole = [int(v) for v in ties[np.isfinite(ties)] if limits.min < v < limits.max]
        around = [v + k for v in whole for k in (-1, 0, 1)]
        x = np.array([v for v in around if limits.min <= v <= limits.max] * 4, dtype)
        x = np.concatenate([x, np.array([limits.min, limits.max, 0], dtype)])
    expected = x.astype(HALVES[1])
    assert_same(xp.asarray(x).astype(HALVES[1]).data, expected)
    cast = ft.jit(lambda v: xp.negative(xp.astype(v, xp.bfloat16)))
    assert_same(cast(xp.asarray(x)).data, np.negative(expected))


@pytest.mark.parametrize(("dtype", "to"), sorted(casts.IN_VECTORS, key=str), ids=str)
def test_some_are_cast_as_many_are(dtype: Any, to: Any) -> None:
    """However many are left over behind the vectors, however they lie, and beside ties."""
    words = np.random.default_rng(0).integers(0, 2**64, FAR, np.uint64, endpoint=False)
    codes = words.view(dtype)[:FAR].copy()
    bits = words.view(np.uint16)[: FAR // 2]
    near, beside = ((bits ^ k).view(to if to in HALVES else HALVES[0]) for k in (0, 1))
    with np.errstate(all="ignore"):
        ties = (near.astype(np.float64) + beside.astype(np.float64)) / 2
        codes[1::2] = np.nextafter(ties, np.inf).astype(dtype)
    for x in (*[codes[:n] for n in (SOME, SOME + 1, SOME + 31, FAR - 1)], codes[: 2 * SOME : 2]):
        assert_same(in_dtype(x, to), in_dtype(np.tile(x, 64), to)[: len(x)])
        assert_same(in_dtype(x, to), x.astype(to))
    plain = codes[:SOME].astype(to)
    with restricted():
        assert_same(in_dtype(codes[:SOME], to), plain)


NUMBERS = [1, 2.5, -0.3, 1e-8, 0.0, -0.0, 300, 65520.0, float("inf"), float("nan")]


@pytest.mark.parametrize("dtype", [*HALVES, np.dtype(np.float32)], ids=str)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_yis_an_array_of_that_number(dtype: Any, number: float) -> None:
    """Beside some elements: both have the same code, whichever operand it is."""
    xp.astype(xp.ones(2 * MANY), dtype)
    x = np.random.default_rng(0).standard_normal(SOME + 7).astype(dtype)
    one, all_ = xp.asarray(x), xp.asarray(np.full(x.shape, number, dtype))
    binary = (ops.add, ops.subtract, ops.multiply, ops.divide, ops.maximum, ops.remainder)
    for op in (*binary, ops.atan2, ops.hypot):
        for y in (number, xp.asarray(number, dtype=dtype)):
            assert_same(op(one, y).data, op(one, all_).data)
            assert_same(op(y, one).data, op(all_, one).data)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("limits", [(-1, 1), (-0.3, 2.5), (1.5, -1.5), (0, 1), (-1e-9, 300.0)])
def test_some_are_clipped_as_few_are(dtype: Any, limits: tuple[float, float]) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    for part in np.split(codes, 64):  # each of more than SOME
        few = [xp.clip(xp.asarray(v), *limits).data for v in np.split(part, 8)]
        assert_same(xp.clip(xp.asarray(part), *limits).data, np.concatenate(few))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), (1, 2)])
def test_reductions_are_taken_in_float32_and_rounded_once(dtype: Any, axis: Any) -> None:
    x = np.random.default_rng(1).standard_normal((40, 30, 20)).astype(dtype)
    wide, y = x.astype(np.float32), xp.asarray(x)
    assert_same(xp.sum(y, axis=axis).data, np.asarray(wide.sum(axis)).astype(dtype))
    assert_same(xp.max(y, axis=axis).data, np.asarray(wide.max(axis)).astype(dtype))
    assert_same(xp.min(y, axis=axis).data, np.asarray(wide.min(axis)).astype(dtype))
    exact = x.astype(np.float64).var(axis)
    np.testing.assert_allclose(xp.var(y, axis=axis).data.astype(np.float64), exact, rtol=0.02)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_what_is_not_0_is_counted_by_its_bits(dtype: Any, axis: int | None) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    for x in (codes, codes[:3], codes[::5], codes.reshape(64, -1).T):
        expected = np.asarray(np.count_nonzero(x != 0, axis=axis))
        assert_same(xp.count_nonzero(xp.asarray(x), axis=axis).data, expected)


def test_halves_that_fit_no_loop_go_the_plain_way() -> None:
    x = np.ones(2 * MANY, np.float16)
    mixed = xp.asarray(x) + xp.asarray(x.astype(np.float32))
    assert mixed.dtype == np.float32
    with restricted():
        assert_same((xp.asarray(x) + xp.asarray(x)).data, x + x)
        assert_same(xp.exp(xp.asarray(x)).data, np.exp(x))


def test_what_is_large_is_told_by_dtype_and_size() -> None:
    told = chosen(lambda *a: "plain", lambda *a: "large", 5, HALVES)
    for dtype in HALVES:
        x = np.ones((2, 3), dtype)
        assert told(x) == told(1.5, x) == told(x[0], x) == "large"
        assert told(x[:, :2]) == told(x[:1]) == told(2.0) == told() == "plain"
    assert told(np.ones(9, np.float32), np.ones(9, np.int16)) == "plain"


def test_an_error_is_that_of_the_plain_function() -> None:
    def fails(*args: Any) -> Any:
        raise KeyError("this")

    with pytest.raises(KeyError, match="this"):
        chosen(fails, np.add, 5, HALVES)(np.ones(2))


@pytest.mark.parametrize("shape", [(1, 70_000), (70_000, 1), (1, 70_000, 1), (70_000, 1, 2)])
def test_every_layout_is_read_by_the_table(shape: tuple[int, ...]) -> None:
    """Also those that are in C's and in Fortran's order at once."""
    x = np.resize(np.linspace(-3, 3, 999).astype(np.float16), shape)
    for v in (x, x.T, x[::-1]):
        with np.errstate(all="ignore"):
            assert np.array_equal(np.asarray(xp.exp(xp.asarray(v))), np.exp(v))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("n", [SOME // 8, SOME, FAR // 8])
def test_differences_are_numpys(dtype: Any, n: int) -> None:
    """Along each axis, again and again, of few and many: what NumPy's differences are."""
    x = np.random.default_rng(n).integers(0, 1 << 16, (n, 9)).astype(np.uint16).view(dtype)
    for axis, times in ((0, 1), (1, 2)):
        with np.errstate(all="ignore"):
            expected = np.diff(x, times, axis).astype(np.float32)
            found = np.asarray(xp.diff(xp.asarray(x), times, axis))
        assert found.dtype == dtype
        same_signs(found.astype(np.float32), expected)
