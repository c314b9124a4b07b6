"""Slow functions of float32 and float64: machine code from a size on, which alone decides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.core import lookup
from funct.device.memory import serve
from funct.errors import FunctError
from funct.kernels.cpu.elementwise import byte_tables, large
from funct.kernels.cpu.loops import available
from funct.kernels.elementwise.thresholds import FAR, MANY, SLOW
from funct.kernels.table import restricted
from tests import guarded

if not available():
    pytest.skip("there is no LLVM here", allow_module_level=True)

DOMAINS = {
    "pow": (0.0, 9.0), "acosh": (1.0, 9.0), "acos": (-1.0, 1.0), "asin": (-1.0, 1.0),
    "atanh": (-1.0, 1.0), "erfinv": (-1.0, 1.0), "ndtr": (-1.0, 9.0), "logit": (0.0, 1.0),
    "entr": (0.0, 9.0),
}  # fmt: skip
POSITIVE = ("gammaln", "log1p", "log2", "log10")
CROSSING = ("gammaln", "logaddexp", "logit")  # 0 where terms of about 1 cancel
EXACT = ("copysign", "floor_divide", "fmod", "nextafter", "reciprocal", "remainder", "sign")
ULPS = 2
# SciPy errs by dozens of ulp far out, C's function by one
TELLING = {
    "erfc": lambda x: np.asarray([math.erfc(v) for v in x.tolist()], x.dtype),
    "ndtr": lambda x: np.asarray([math.erfc(-v * 0.5**0.5) / 2 for v in x.tolist()], x.dtype),
}


pytestmark = pytest.mark.filterwarnings("ignore:.* encountered:RuntimeWarning")


def operands(name: str, dtype: Any) -> list[Any]:
    """Numbers of all sizes, and the edges of the domain among them."""
    rng = np.random.default_rng(0)
    low, high = DOMAINS.get(name, (0.0, 9.0) if name in POSITIVE else (-9.0, 9.0))
    found = []
    for _ in lookup(name).rules:
        x = rng.uniform(low, high, MANY).astype(dtype)
        x[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5]
        found.append(rng.permutation(x))
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", sorted(SLOW))
def test_large_arrays_have_the_bits_of_compiled_programs(name: str, dtype: Any) -> None:
    """They are within the stated ulps of what C has; views and shapes change nothing."""
    fun, given = lookup(name).fn, operands(name, dtype)
    plain = np.asarray(TELLING.get(name, lookup(name).raw)(*given))
    found = fun(*[xp.asarray(x) for x in given])
    assert found.dtype == plain.dtype
    np.testing.assert_array_equal(found.data, ft.jit(fun)(*[xp.asarray(x) for x in given]).data)
    np.testing.assert_array_equal(np.isnan(found.data), np.isnan(plain))
    np.testing.assert_array_equal(np.isinf(found.data), np.isinf(plain))
    finite = np.isfinite(plain)
    away = np.abs(found.data[finite] - plain[finite])
    step = np.spacing(np.maximum(np.abs(plain[finite]), np.finfo(dtype).tiny))
    scale = np.maximum(step, np.finfo(dtype).eps) if name in CROSSING else step
    assert np.max(away / scale) <= (0 if name in EXACT else 1 + ULPS)  # NumPy errs by one
    zero = plain == 0
    np.testing.assert_array_equal(np.signbit(found.data[zero]), np.signbit(plain[zero]))
    turned = [xp.asarray(x.reshape(128, -1).T) for x in given]
    np.testing.assert_array_equal(fun(*turned).data, found.data.reshape(128, -1).T)


@pytest.mark.parametrize("name", sorted(SLOW | {"add", "logical_and", "maximum", "minimum"}))
def test_large_results_lie_as_their_operands_do(name: str) -> None:
    """Densely in the order of their axes, as NumPy's; a column for each is no reason to turn."""
    axes = (0, 3, 1, 2)
    for size in (MANY, FAR):
        given = [
            xp.asarray(np.resize(x, (4, 8, 8, size // 256)).transpose(axes))
            for x in operands(name, np.float32)
        ]
        column = [*given[:-1], given[-1][:, :1]] if len(given) == 2 else given
        for some in (given, column):
            found = np.asarray(lookup(name).fn(*some))
            assert found.transpose(np.argsort(axes)).flags.c_contiguous
            flat = [xp.asarray(np.ascontiguousarray(a)) for a in some]
            np.testing.assert_array_equal(found, np.asarray(lookup(name).fn(*flat)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", [3, 4, 3.0, 4.0])
def test_small_powers_have_the_bits_of_products(power: float, dtype: Any) -> None:
    (x, _) = operands("pow", dtype)
    for some in (x, -x, x.reshape(128, -1).T, x[::2].repeat(2)):
        found = (xp.asarray(some) ** power).data
        few = np.concatenate([(xp.asarray(v) ** power).data for v in np.array_split(some, 64)])
        np.testing.assert_array_equal(found, few, strict=True)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(few))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [7, MANY, FAR + 5])
def test_square_roots_by_power_are_those_of_the_standard(n: int, dtype: Any) -> None:
    """Of -0 it is 0 and of -inf inf, which NumPy's ufunc has not."""
    x = np.resize(np.asarray([4.0, 0.0, -0.0, np.inf, -np.inf, -1.0, np.nan], dtype), n)
    expected = np.resize(np.asarray([2.0, 0.0, 0.0, np.inf, np.inf, np.nan, np.nan], dtype), n)
    for power, wanted in ((0.5, expected), (-0.5, 1 / expected)):
        for found in (xp.asarray(x) ** power, xp.asarray(x) ** xp.asarray(power, dtype=dtype)):
            np.testing.assert_array_equal(found.data, wanted, strict=True)
            np.testing.assert_array_equal(np.signbit(found.data[~np.isnan(wanted)]), False)
    assert (xp.asarray(x[:1]) ** 0.5).tolist() == [2.0]


@pytest.mark.parametrize("name", ["exp", "copysign", "sqrt", "pow", "relu"])
def test_threads_share_the_elements_of_arrays_that_are_alike(name: str) -> None:
    """Any number of them, in any order of axes, gives the bits of few elements."""
    fun, given = lookup(name).fn, operands(name, np.float32)
    serve(1 << 30)  # else new pages are counted first
    n = 3 * FAR + 37
    many = [np.resize(x, n) for x in given]
    few = np.resize(fun(*map(xp.asarray, given)).data, n)
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            for _ in range(2):
                found = fun(*map(xp.asarray, many)).data
                np.testing.assert_array_equal(found, few)
            rows = [xp.asarray(np.resize(x, (2 * FAR // MANY, MANY)).T) for x in given]
            turned = fun(*rows).data
    assert turned.flags.f_contiguous
    np.testing.assert_array_equal(turned.T.ravel(), np.resize(few[:MANY], 2 * FAR))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_next_numbers_have_numpys_bits(dtype: Any) -> None:
    """Of each pair of numbers where something ends or turns."""
    info = np.finfo(dtype)
    ends = [0.0, info.smallest_subnormal, info.tiny, info.eps, 1.0, 2.0, info.max, np.inf]
    at = np.asarray([*ends, np.nextafter(dtype(info.tiny), dtype(0)), np.nan], dtype)
    at = np.concatenate([at, -at])
    x, y = (v.reshape(-1) for v in np.meshgrid(at, at))
    x, y = (np.resize(v, MANY + 3) for v in (x, y))
    found, expected = xp.nextafter(xp.asarray(x), xp.asarray(y)).data, np.nextafter(x, y)
    np.testing.assert_array_equal(found, expected)
    kept = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[kept]), np.signbit(expected[kept]))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_reciprocals_of_complex_numbers_have_numpys_bits(dtype: Any) -> None:
    """Of zeros, infinities and NaN as well; signs of NaN apart."""
    info = np.finfo(dtype)
    ends = np.asarray([0, 1, 0.3, info.tiny, info.max, np.inf, np.nan], info.dtype)
    ends = np.concatenate([ends, -ends])
    z = np.empty((ends.size, ends.size), dtype)
    z.real, z.imag = ends, ends[:, None]
    z = np.resize(z, FAR + 3)
    found = xp.reciprocal(xp.asarray(z)).data
    with np.errstate(all="ignore"):
        expected = np.reciprocal(z)
    for part, other in ((found.real, expected.real), (found.imag, expected.imag)):
        np.testing.assert_array_equal(part, other)
        kept = ~np.isnan(other)
        np.testing.assert_array_equal(np.signbit(part[kept]), np.signbit(other[kept]))


@pytest.mark.parametrize("dtype", [np.bool, np.int8, np.uint16, np.int32, np.int64])
@pytest.mark.parametrize("name", sorted(SLOW))
def test_large_arrays_of_integers_have_the_bits_of_floats(name: str, dtype: Any) -> None:
    """Those of the dtype that few of them give, which may be integers again."""
    if (name, dtype) == ("sign", np.bool):
        pytest.skip("truth has no sign")
    fun, n = lookup(name).fn, len(lookup(name).rules)
    given = [np.arange(k, k + MANY).astype(dtype) % 7 for k in range(1, n + 1)]
    given = [np.maximum(x, 1).astype(dtype) for x in given]
    few = np.asarray(lookup(name).raw(*[x[:8] for x in given]))
    found = fun(*[xp.asarray(x) for x in given])
    assert found.dtype == few.dtype
    inputs = given if few.dtype.kind in "iu" else [x.astype(few.dtype) for x in given]
    np.testing.assert_array_equal(found.data, fun(*[xp.asarray(x) for x in inputs]).data)


@pytest.mark.parametrize("dtype", [np.bool, np.int8, np.uint8])
@pytest.mark.parametrize("name", sorted(n for n in SLOW - {"sign"} if len(lookup(n).rules) == 1))
def test_bytes_have_the_bits_of_floats(name: str, dtype: Any) -> None:
    """Each of their values, in views and turned, at sizes that are no whole vectors."""
    fun, rng = lookup(name).fn, np.random.default_rng(0)
    words = rng.integers(0, 256, (2 * MANY // 256 + 1, 263), dtype=np.uint8)
    words[0, :256] = np.arange(256)
    x = guarded.copy(words.astype(dtype))
    floats = np.asarray(lookup(name).raw(x[:1, :8])).dtype
    for some in (x, x[:, ::2], x.T, x[1:, 1:].T):
        with guarded.memory(at_end=True):
            found = fun(xp.asarray(some)).data
        expected = fun(xp.asarray(some.astype(floats))).data
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_words_are_looked_up_in_memory_without_avx512(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(1 << 15, dtype=np.uint8)
    expected = xp.sin(xp.asarray(x)).data
    monkeypatch.setattr(byte_tables, "in_registers", lambda target: False)
    np.testing.assert_array_equal(xp.sin(xp.asarray(x)).data, expected)


@pytest.mark.parametrize("name", sorted(SLOW))
def test_below_that_size_numpy_answers(name: str) -> None:
    given = [x[:-1] for x in operands(name, np.float32)]
    found = lookup(name).fn(*[xp.asarray(x) for x in given])
    np.testing.assert_array_equal(found.data, lookup(name).raw(*given))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [33, 63, 79, 100, 131])
@pytest.mark.parametrize("name", ["atan", "expit", "hypot", "pow"])
def test_rows_of_any_length_have_the_bits_of_flat_arrays(
    name: str, columns: int, dtype: Any
) -> None:
    """Whatever vectors an element stands in, and whether it is left over behind them."""
    rows = MANY // columns + 1
    given = [np.resize(x, (rows, columns + 3)) for x in operands(name, dtype)]
    fun = lookup(name).fn
    flat = fun(*[xp.asarray(x) for x in given]).data
    found = fun(*[xp.asarray(x[:, :columns]) for x in given])
    np.testing.assert_array_equal(found.data, flat[:, :columns])


def test_numbers_and_other_dtypes_beside_large_arrays() -> None:
    x = np.linspace(-20, 20, MANY).astype(np.float32)
    y = xp.asarray(x)
    for number in (3, 0.7, -2.5, 2**40):
        np.testing.assert_array_equal((y % number).data, x % number)
        np.testing.assert_array_equal((number // y).data, number // x)
    wide = xp.hypot(y, xp.asarray(x.astype(np.float64)))
    np.testing.assert_array_equal(wide.data, np.hypot(x, x.astype(np.float64)))
    np.testing.assert_array_equal((xp.asarray(x.astype(np.int64)) % 3).data, x.astype(np.int64) % 3)
    row, column = y[: MANY // 128], y[:128]
    found = xp.atan2(xp.reshape(y, (128, -1)), row) + xp.hypot(column[:, None], row)
    assert found.shape == (128, MANY // 128)


def test_without_machine_code_numpy_answers() -> None:
    x = operands("sinh", np.float32)[0]
    with restricted():
        np.testing.assert_array_equal(xp.sinh(xp.asarray(x)).data, np.sinh(x))


@pytest.mark.parametrize("dtype", ["?", "b", "B", "h", "i", "l", "Q", "f", "d", "F", "D", "e"])
def test_choices_have_numpys_bits(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape, where in (((MANY + 3,), (MANY + 3,)), ((200, 99), (200, 1)), ((200, 99), (99,))):
        c = rng.random(where) < 0.5
        bytes_ = rng.integers(0, 256, (2, *shape, 16), np.uint8)
        x, y = bytes_.view(dtype)[..., 0]
        x, y = (v.astype(bool) if dtype == "?" else np.ascontiguousarray(v) for v in (x, y))
        pairs: list[tuple[Any, Any]] = [(x, y), (x, y[..., :1]), (x[..., ::-1], y)]
        pairs += [(x, x.T.copy().T)]
        pairs += [(x, v) for v in (0, 1, 0.0, 2.5, 300, -1, True, 1 << 30)]
        pairs += [(v, y) for v in (0, 0.5)] + [(1, 2), (x, y.real.astype("d")), (x, y[:1])]
        for a, b in pairs:
            given = [xp.asarray(v) if isinstance(v, np.ndarray) else v for v in (a, b)]
            try:
                expected = np.where(c, a, b)
                with np.errstate(all="ignore"):
                    np.add(a, b)  # refuses integers that the other's dtype has not
            except (OverflowError, ValueError):
                with pytest.raises((FunctError, OverflowError)):
                    xp.where(xp.asarray(c), *given)
                continue
            found = xp.where(xp.asarray(c), *given).data
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            assert found.tobytes() == expected.tobytes()
            with restricted():
                assert xp.where(xp.asarray(c), *given).data.tobytes() == expected.tobytes()


def test_choices_take_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    x = xp.asarray(np.arange(2.0 * FAR))
    xp.where(x > 9.0, x, 0.0)
    monkeypatch.setattr(large, "combined", lambda *_: np.zeros(()))
    assert xp.where(x > 9.0, x, 0.0).shape == xp.where(x > 9.0, 0.0, x).shape == ()
    assert xp.where(x[:9] > 9.0, x[:9], 0.0).shape == (9,)


def test_pulls_of_large_arrays_take_the_loops_of_their_ops() -> None:
    x = xp.asarray(np.random.default_rng(0).normal(size=3 * MANY))
    for _ in range(3):
        slope = ft.grad(lambda x: xp.sum(xp.sin(x)))(x)
        np.testing.assert_array_equal(slope.data, xp.cos(x).data)
        hits = ft.grad(lambda x: xp.sum(xp.maximum(x, 0.25)))(x)
        np.testing.assert_array_equal(hits.data, (x.data > 0.25) * 1.0)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128, np.float16])
def test_complex_numbers_are_negated_by_their_parts(dtype: Any) -> None:
    x = np.random.default_rng(0).normal(size=(3, MANY)).astype(dtype)
    x[0, :4] = [0.0, -0.0, np.inf, np.nan]
    xp.sin(xp.asarray(x.real.astype(np.float64)))  # from here on large arrays are asked for
    for a in (x, x[0], x[:, ::2], x.T, x[:1, :1], x[0, 0]):
        found = (-xp.asarray(a)).data
        assert found.dtype == a.dtype
        assert found.tobytes() == (-a).tobytes()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
@pytest.mark.parametrize("number", [0, 0.0, -0.0, 1, -2.5, math.nan, math.inf, -math.inf, 3e38])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_limits_of_large_arrays_have_numpys_bits(name: str, number: float, dtype: Any) -> None:
    """On both sides, with zeros of both signs and NaN; so do compiled programs and few elements."""
    if dtype is np.int32 and number.__class__ is float:
        pytest.skip("an integer meets no float")
    rng = np.random.default_rng(0)
    x = rng.normal(size=MANY + 5).astype(dtype)
    x[:300] = np.resize(np.asarray([0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324]), 300).astype(dtype)
    fun, plain = lookup(name).fn, lookup(name).raw
    for raw in (x, x[::-1], x[:-5].reshape(128, -1).T, x[:9]):
        left, right = fun(number, xp.asarray(raw)), fun(xp.asarray(raw), number)
        compiled = ft.jit(lambda v: fun(v, number))(xp.asarray(raw))
        for found, expected in (
            (left, plain(dtype(number), raw)), (right, plain(raw, dtype(number))),
            (compiled, plain(raw, dtype(number))),
        ):  # fmt: skip
            assert found.dtype == dtype
            assert np.asarray(found.data).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64])
def test_large_integers_beside_a_number_have_numpys_bits(dtype: Any) -> None:
    """Limits on both sides, quotients and what they leave, of every order of axes."""
    info = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(info.min, info.max, 3 * FAR + 5, dtype, endpoint=True)
    for raw in (x, x[::-2], x[:-5].reshape(128, -1).T):
        given = xp.asarray(raw)
        for n in {0, 3, 7, 100, int(info.max), int(info.min)}:
            for name in ("maximum", "minimum"):
                expected = getattr(np, name)(raw, n)
                fun = getattr(xp, name)
                np.testing.assert_array_equal(fun(given, n).data, expected, strict=True)
                np.testing.assert_array_equal(fun(n, given).data, expected, strict=True)
            if n > 0:
                np.testing.assert_array_equal((given // n).data, raw // n, strict=True)
                np.testing.assert_array_equal((given % n).data, raw % n, strict=True)
    with pytest.raises(FunctError):
        xp.maximum(given, int(info.max) + 1)
    divisors = np.maximum(x[::-1] & 15, 1).astype(dtype)
    for name in ("floor_divide", "remainder"):
        found = getattr(xp, name)(xp.asarray(x), xp.asarray(divisors)).data
        np.testing.assert_array_equal(found, getattr(np, name)(x, divisors), strict=True)


def test_both_limits_of_large_arrays_may_be_integers() -> None:
    x = np.resize(np.asarray([-3.0, -0.0, 0.5, np.nan, 7.0], np.float32), MANY)
    found = xp.clip(xp.asarray(x), -1, 2)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.data, np.minimum(np.maximum(x, -1), 2))


@pytest.mark.parametrize("limits", [(0, None), (None, 0.0), (-0.0, 1.5), (0, 0), (math.nan, None)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_arrays_are_clipped_as_small_ones_are(limits: tuple[Any, Any], dtype: Any) -> None:
    few = np.asarray([-3.0, -0.0, 0.0, 0.5, np.nan, np.inf, -np.inf, 5e-324], dtype)
    found = np.asarray(xp.clip(xp.asarray(np.tile(few, MANY // 8)), *limits).data)
    expected = np.tile(np.asarray(xp.clip(xp.asarray(few), *limits).data), MANY // 8)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("name", ["logical_and", "logical_not", "logical_or", "logical_xor"])
def test_truth_of_large_arrays_is_numpys(name: str, dtype: str) -> None:
    """NaN is true, and both zeros are not."""
    rng = np.random.default_rng(0)
    x, y = (
        rng.choice(np.asarray([0, -0.0, 1, -2, np.inf, np.nan, 5e-324], dtype), (90, 91))
        for _ in range(2)
    )
    given = [x] if name == "logical_not" else [x, y]
    for arrays in (given, [a.T for a in given], [a[:, ::2] for a in given]):
        found = getattr(xp, name)(*map(xp.asarray, arrays)).data
        np.testing.assert_array_equal(found, getattr(np, name)(*arrays), strict=True)


@pytest.mark.parametrize("name", ["exp", "hypot", "relu", "tanh"])
@pytest.mark.parametrize("order", [(0, 3, 1, 2), (3, 2, 1, 0), (1, 0, 2, 3)])
def test_results_lie_as_operands_do(name: str, order: tuple[int, ...]) -> None:
    """Axes in another order stay in it, beside what broadcasts too; the bits are those of C's."""
    fun, rng = lookup(name).fn, np.random.default_rng(0)
    x = rng.standard_normal((3, 17, 5, 131)).astype(np.float32).transpose(order)
    rest = [x[:1, :, :1, :1] + 1] if name == "hypot" else []
    found = fun(*[xp.asarray(v) for v in (x, *rest)]).data
    dense = fun(*[xp.asarray(v.copy()) for v in (x, *rest)]).data
    np.testing.assert_array_equal(found, dense)
    assert found.strides == x.strides
