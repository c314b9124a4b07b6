"""Functions of vectors: errors in ulp against more digits, special values against C's."""

import itertools

import numpy as np
import pytest
import scipy.special

from funct.device.host import Host, host
from funct.device.machine_code import emit
from funct.kernels.elementwise import functions as kernels
from funct.kernels.llvm import tables
from funct.kernels.llvm.functions import FUNCTIONS
from funct.kernels.llvm.gamma_zeros import GAMMA_ZEROS

from .apply import apply, text
from .drawn import rng

LONG = np.longdouble
F32, F64 = np.float32, np.float64


def _sigmoid(x):
    power = np.exp(-abs(x))
    return np.where(x > 0, 1, power) / (1 + power)


# name: (function with more digits, bound in ulp, where most arguments are drawn). What is looked
# up by cells rounds twice where a cell begins: log near 1, erf near 0.13 or 0.2
ONE = {
    "acos": (np.arccos, 1.1, (-1, 1)),
    "acosh": (np.arccosh, 2, (1, 3)),
    "asin": (np.arcsin, 1.6, (-1, 1)),
    "asinh": (np.arcsinh, 2, (-3, 3)),
    "atan": (np.arctan, 2, (-3, 3)),
    "atanh": (np.arctanh, 2, (-1, 1)),
    "cbrt": (np.cbrt, 0.51, (-30, 30)),
    "ceil": (np.ceil, 0, (-3, 3)),
    "cos": (np.cos, 1, (-30, 30)),
    "cosh": (np.cosh, 1.5, (-5, 5)),
    "exp": (np.exp, 1.1, (-104, 89)),
    "exp2": (np.exp2, 1.1, (-151, 129)),
    "expit": (_sigmoid, 1.5, (-20, 20)),
    "expm1": (np.expm1, 2, (-3, 3)),
    "floor": (np.floor, 0, (-3, 3)),
    "log": (np.log, 1.2, (0.3, 3)),
    "log10": (np.log10, 1.2, (0.3, 3)),
    "log1p": (np.log1p, 1.5, (-1, 3)),
    "log2": (np.log2, 1.2, (0.3, 3)),
    "round": (np.round, 0, (-3, 3)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5, (0, 3)),
    "sigmoid_slope": (lambda x: np.exp(-abs(x)) / (1 + np.exp(-abs(x))) ** 2, 4, (-20, 20)),
    "sign": (np.sign, 0, (-3, 3)),
    "sin": (np.sin, 1, (-30, 30)),
    "sinh": (np.sinh, 1.7, (-5, 5)),
    "softplus": (lambda x: np.maximum(x, 0) + np.log1p(np.exp(-abs(x))), 2, (-20, 20)),
    "sqrt": (np.sqrt, 0.5, (0, 3)),
    "tan": (np.tan, 1.2, (-30, 30)),
    "tanh": (np.tanh, 1.5, (-3, 3)),
    "trunc": (np.trunc, 0, (-3, 3)),
}
TWO = {
    "atan2": (np.arctan2, 2),
    "copysign": (np.copysign, 0),
    "hypot": (np.hypot, 1.2),
    "pow": (np.power, 1.2),
}
QUOTIENTS = {"floor_divide": kernels.floor_divide, "fmod": np.fmod, "remainder": np.remainder}
PAIRS = {*TWO, *QUOTIENTS, "logaddexp", "maximum", "minimum", "nextafter"}  # of two operands
SPECIAL = {
    "erf": (scipy.special.erf, 1.4, (-4.2, 4.2)),
    "erfc": (scipy.special.erfc, 1.7, (-3, 11)),
    "erfinv": (scipy.special.erfinv, 2, (-1, 1)),
    "ndtr": (scipy.special.ndtr, 1.7, (-14, 6)),
    "gammaln": (scipy.special.gammaln, 2, (0.01, 12)),
}
TARGETS = {"host": None}
if host().has("avx512f", "avx2", "fma"):  # whose text need not be that of AVX2
    TARGETS["avx2"] = Host("haswell", frozenset({"avx2", "fma"}), 32, 1)


def any_bits(dtype, count):
    """Floats of all exponents, both signs, NaN and denormals among them."""
    kind = {F32: np.uint32, F64: np.uint64}[dtype]
    return rng.integers(0, np.iinfo(kind).max, count, dtype=kind, endpoint=True).view(dtype)


def edges(dtype):
    """Where functions have their ends, signs and steps."""
    info = np.finfo(dtype)
    some = [0, 0.5, 1, 1.5, 2, 2.5, 3, 8, 10, 100, 88.72283, 709.78, 1e5, 1e6, np.inf, np.nan]
    some += [info.tiny, info.smallest_subnormal, info.max, info.eps, np.pi, np.pi / 2, 1e-40]
    some = np.array(some).astype(dtype)
    return np.concatenate([some, -some])


def check(found, expected, bound):
    """At most `bound` ulp away; infinities, NaN and signs of zeros alike."""
    dtype = found.dtype
    with np.errstate(all="ignore"):
        near = expected.astype(dtype)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(near))
        finite = np.isfinite(near) & np.isfinite(found)
        steps = np.maximum(np.spacing(np.abs(near[finite])), np.finfo(dtype).smallest_subnormal)
        away = np.abs(found[finite].astype(expected.dtype) - expected[finite]) / steps
    rest = ~finite & ~np.isnan(near)
    np.testing.assert_array_equal(found[rest], near[rest])
    assert away.max(initial=0) <= bound


def zeros_have_signs(found, expected):
    zero = (found == 0) & (expected == 0)
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))


def next_to_quarter_turns():
    """For each exponent the float64 that is nearest to a multiple of pi/2, by continued fractions:
    as near as 2^-62, in which all digits cancel that a double shows.
    """
    one = 1 << 2200
    parts = ((16, 5), (-4, 239))  # Machin's
    terms = [(a * (-1) ** k, (2 * k + 1) * b ** (2 * k + 1)) for a, b in parts for k in range(500)]
    pi = sum(a * one // b for a, b in terms)
    found = []
    for exponent in range(971):
        x, y, before, many = one << (exponent + 1), pi, 1, 0
        while many < 1 << 53:
            x, y, times = y, x % y, x // y
            before, many = many, times * many + before
        found.append(float(before << exponent))
    return np.array(found)


@pytest.mark.parametrize("name", ["cos", "sin", "tan"])
def test_circular_functions_next_to_quarter_turns(name):
    """Far from 0 too, where the C library's doubles are off by many ulps."""
    exact, bound, _ = ONE[name]
    x = next_to_quarter_turns()
    assert np.abs(np.cos(x.astype(LONG))).min() < 1e-18, "which is as near as one comes"
    check(apply(FUNCTIONS[name], x), exact(x.astype(LONG)), bound)


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("name", ["cos", "sin", "tan"])
def test_circular_functions_next_to_the_first_quarter_turns(name, dtype):
    """Next to a pole the second part of the distance shows in the first ones of the tangent."""
    exact, bound, _ = ONE[name]
    near = np.arange(1, 200_000 if dtype is F32 else 20_000) * (np.pi / 2)
    near = (near * 2.0**20 if dtype is F64 else near).astype(dtype)
    x = np.concatenate([near, np.nextafter(near, dtype(0)), np.nextafter(near, dtype(np.inf))])
    wide = F64 if dtype is F32 else LONG
    check(apply(FUNCTIONS[name], x), exact(x.astype(wide)), bound)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("name", ONE)
def test_function_of_one_operand(name, dtype, target):
    exact, bound, (low, high) = ONE[name]
    drawn = rng.uniform(low, high, 20000).astype(dtype)
    spread = (rng.standard_normal(5000) * 10.0 ** rng.uniform(-4, 4, 5000)).astype(dtype)
    x = np.concatenate([any_bits(dtype, 20000), drawn, spread, edges(dtype)])
    with np.errstate(all="ignore"):
        expected = exact(x.astype(LONG))
    found = apply(FUNCTIONS[name], x, target=TARGETS[target])
    check(found, expected, bound)
    zeros_have_signs(found, expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("name", TWO)
def test_function_of_two_operands(name, dtype, target):
    exact, bound = TWO[name]
    ends = np.meshgrid(edges(dtype), edges(dtype))
    size = {F32: 40, F64: 140}[dtype]
    x = [any_bits(dtype, 10000), np.exp(rng.uniform(-5, 5, 20000)), rng.uniform(-8, 8, 3000)]
    y = [any_bits(dtype, 10000), rng.uniform(-size, size, 20000), rng.integers(-9, 9, 3000)]
    x, y = (
        np.concatenate([part.astype(dtype) for part in (*v, e.ravel())])
        for v, e in zip((x, y), ends)
    )
    with np.errstate(all="ignore"):
        expected = exact(x.astype(LONG), y.astype(LONG))
    found = apply(FUNCTIONS[name], x, y, target=TARGETS[target])
    check(found, expected, bound)
    zeros_have_signs(found, expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [F32, F64])
def test_powers_near_1_by_large_exponents(dtype, target):
    """Where the error of the logarithm is multiplied most."""
    x = (1 + rng.uniform(-0.1, 0.1, 300000)).astype(dtype)
    reach = {F32: 126, F64: 1020}[dtype]
    with np.errstate(all="ignore"):
        y = (rng.uniform(-reach, reach, x.size) / np.log2(x.astype(F64))).astype(dtype)
    x, y = x[x != 1], y[x != 1]
    expected = np.power(x.astype(LONG), y.astype(LONG))
    check(apply(FUNCTIONS["pow"], x, y, target=TARGETS[target]), expected, 1.2)


@pytest.mark.skipif(not host().has("avx512f", "avx512dq"), reason="tables in registers")
@pytest.mark.parametrize("lanes", [*range(1, 21), 24, 27, 32, 33])
@pytest.mark.parametrize("dtype", [F32, F64])
def test_each_lane_takes_its_own_number_of_a_table(dtype, lanes):
    numbers = np.arange(100.0, 116).tolist()

    def picked(e, x):
        index = e.convert(x, {F32: "i32", F64: "i64"}[dtype])
        return tables.looked_up(e, x.type, numbers, index)

    x = rng.integers(-40, 40, 333).astype(dtype)
    found = apply(picked, x, lanes=lanes)
    np.testing.assert_array_equal(found, np.array(numbers)[x.astype(int) & 15])


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("name", QUOTIENTS)
def test_quotients_have_the_bits_of_numpy(name, dtype):
    """Near whole quotients, with quotients of all sizes, and at every edge."""
    ends = np.meshgrid(edges(dtype), edges(dtype))
    x = [any_bits(dtype, 20000), rng.uniform(-100, 100, 20000), rng.integers(-99, 99, 9000) * 0.1]
    y = [any_bits(dtype, 20000), rng.uniform(-8, 8, 20000), rng.integers(-9, 9, 9000) * 0.1]
    x, y = (
        np.concatenate([part.astype(dtype) for part in (*v, e.ravel())])
        for v, e in zip((x, y), ends)
    )
    x[20000:30000] = y[20000:30000] * rng.integers(-(2**20), 2**20, 10000).astype(dtype)
    with np.errstate(all="ignore"):
        expected = QUOTIENTS[name](x, y)
    found = apply(FUNCTIONS[name], x, y)
    np.testing.assert_array_equal(found, expected)
    zeros_have_signs(found, expected)


@pytest.mark.parametrize("dtype", [F32, F64])
def test_logaddexp_errs_by_an_ulp_of_its_operands(dtype):
    x, y = (rng.uniform(-30, 30, 20000).astype(dtype) for _ in range(2))
    y[::3] = x[::3]
    found = apply(FUNCTIONS["logaddexp"], x, y)
    expected = np.logaddexp(x.astype(LONG), y.astype(LONG))
    scale = np.maximum(np.abs(np.maximum(x, y)), 1)
    assert (abs(found - expected) / scale).max() <= 2 * np.finfo(dtype).eps
    ends = [v.ravel() for v in np.meshgrid(edges(dtype), edges(dtype))]
    with np.errstate(all="ignore"):
        expected = np.logaddexp(*ends)
    np.testing.assert_allclose(apply(FUNCTIONS["logaddexp"], *ends), expected, rtol=1e-6)


@pytest.mark.parametrize("name", SPECIAL)
def test_special_function_of_float32(name):
    exact, bound, (low, high) = SPECIAL[name]
    drawn = rng.uniform(low, high, 40000).astype(F32)
    x = np.concatenate([any_bits(F32, 20000), drawn, edges(F32)])
    x = abs(x) if name == "gammaln" else x
    with np.errstate(all="ignore"):
        check(apply(FUNCTIONS[name], x), exact(x.astype(F64)), bound)


@pytest.mark.parametrize("name", SPECIAL)
def test_special_function_of_float64(name):
    mpmath = pytest.importorskip("mpmath")
    exact = {
        "erf": mpmath.erf,
        "erfc": mpmath.erfc,
        "erfinv": mpmath.erfinv,
        "ndtr": mpmath.ncdf,
        "gammaln": mpmath.loggamma,
    }
    _, bound, (low, high) = SPECIAL[name]
    x = np.concatenate([rng.uniform(low, high, 1500), rng.uniform(-1, 1, 300)])
    x = abs(x) if name == "gammaln" else x
    with mpmath.workdps(30):
        expected = np.array([LONG(mpmath.nstr(exact[name](mpmath.mpf(v)), 25)) for v in x])
    check(apply(FUNCTIONS[name], x), expected, bound)


@pytest.mark.parametrize("dtype", [F32, F64])
def test_erfinv_near_its_ends(dtype):
    """Down to the last float below 1, and where one polynomial ends and the next begins."""
    mpmath = pytest.importorskip("mpmath")
    most = -np.log2(np.finfo(dtype).epsneg)
    joins = [np.sqrt(-np.expm1(-w)) for w in (1, 5, 6.25)]
    x = np.concatenate(
        [1 - 2.0 ** -rng.uniform(0, most, 1000), *[j + rng.uniform(-1, 1, 99) / 999 for j in joins]]
    ).astype(dtype)
    x = np.append(x[x < 1], np.nextafter(dtype(1), dtype(0)))
    with mpmath.workdps(30):
        exact = [mpmath.erfinv(mpmath.mpf(float(v))) for v in x]
        expected = np.array([LONG(mpmath.nstr(v, 25)) for v in exact])
    check(apply(FUNCTIONS["erfinv"], x), expected, 2)
    check(apply(FUNCTIONS["erfinv"], -x), -expected, 2)


@pytest.mark.parametrize("dtype", [F32, F64])
def test_gammaln_between_and_near_its_zeros(dtype):
    mpmath = pytest.importorskip("mpmath")
    step = 2.0 ** np.arange(-20.0, -1)
    x = np.concatenate([rng.uniform(0.9, 2.6, 1500), 1 + step, 1 - step, 2 + step, 2 - step])
    x = x.astype(dtype)
    with mpmath.workdps(30):
        expected = np.array(
            [LONG(mpmath.nstr(mpmath.loggamma(mpmath.mpf(float(v))), 25)) for v in x]
        )
    check(apply(FUNCTIONS["gammaln"], x), expected, 2)


@pytest.mark.parametrize("dtype", [F32, F64])
def test_gammaln_left_of_zero(dtype):
    """Around each zero and each pole, however near, and anywhere between."""
    mpmath = pytest.importorskip("mpmath")
    steps, far = np.arange(-9, 10), 10.0 ** rng.uniform(-15, -0.3, 40)
    special = np.array([*[row[0] for row in GAMMA_ZEROS], *range(-60, 0)], dtype)
    near = [(v + steps * np.spacing(v), v + far, v - far) for v in special]
    drawn = rng.uniform(0, 4, 1500), rng.uniform(0, 200, 500), 10.0 ** rng.uniform(-30, 15, 300)
    x = np.concatenate([*itertools.chain(*near), *[-v for v in drawn]]).astype(dtype)
    x = x[x != np.round(x)]
    with mpmath.workdps(60):
        exact = [mpmath.log(abs(mpmath.gamma(mpmath.mpf(float(v))))) for v in x]
        expected = np.array([LONG(mpmath.nstr(v, 25)) for v in exact])
    check(apply(FUNCTIONS["gammaln"], x), expected, 2)
    poles = np.concatenate([-np.arange(60.0), -(2.0 ** np.arange(7, 60))]).astype(dtype)
    assert np.isposinf(apply(FUNCTIONS["gammaln"], poles)).all()


@pytest.mark.parametrize("name", ["gelu", "silu", "log_sigmoid"])
def test_activation(name):
    x = np.concatenate([rng.uniform(-30, 30, 5000), edges(F64)])
    exact = {
        "gelu": lambda x: x * scipy.special.ndtr(x),
        "silu": lambda x: x * scipy.special.expit(x),
        "log_sigmoid": scipy.special.log_expit,
    }[name]
    with np.errstate(all="ignore"):
        expected = np.where(np.isneginf(x) & (name != "log_sigmoid"), -0.0, exact(x))
    # SciPy's own ndtr is 1e-13 off where it is small
    rtol = 1e-12 if name == "gelu" else 1e-14
    np.testing.assert_allclose(apply(FUNCTIONS[name], x), expected, rtol=rtol)


@pytest.mark.pairwise
@pytest.mark.parametrize("size", [8, 16, 64, 96, 192])  # bytes
@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_do_not_depend_on_the_number_of_lanes(name, dtype, size):
    x = np.concatenate([any_bits(dtype, 300), rng.uniform(-9, 9, 301).astype(dtype)])
    given = [x, x[::-1].copy()][: 2 if name in PAIRS else 1]
    lanes = 1 if size == 8 else size // x.itemsize
    found = apply(FUNCTIONS[name], *given, lanes=lanes)
    np.testing.assert_array_equal(found, apply(FUNCTIONS[name], *given))


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "expit", "atan", "cbrt"])
def test_rising_functions_rise(name):
    """Over neighbouring floats the error may turn a step around by an ulp, no more."""
    x = np.sort(np.abs(any_bits(F32, 200000)))
    x = x[np.isfinite(x)]
    y = apply(FUNCTIONS[name], x if name == "log" else np.concatenate([-x[::-1], x]))
    with np.errstate(invalid="ignore"):
        fall = np.maximum(y[:-1] - y[1:], 0)[np.isfinite(y[1:])]
    assert (fall <= 2 * np.spacing(np.abs(y[1:][np.isfinite(y[1:])]))).all()


@pytest.mark.in_turn
@pytest.mark.parametrize("cpu", ["znver4", "sapphirerapids", "generic"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_text_for_other_processors_becomes_an_object(name, cpu, monkeypatch):
    wide = {"avx512f", "avx512dq", "avx512bw", "avx512vl", "avx2", "fma"}
    target = Host(cpu, frozenset(wide if cpu != "generic" else ()), 64, 1)
    monkeypatch.setattr("funct.kernels.llvm.emitter.host", lambda: target)
    operands = 2 if name in PAIRS else 1
    printed = text(FUNCTIONS[name], "f32", operands, 16)
    assert len(emit(printed, target)) > 500


def test_avx512_scales_by_its_own_instruction(monkeypatch):
    target = Host("znver4", frozenset({"avx512f"}), 64, 1)
    monkeypatch.setattr("funct.kernels.llvm.emitter.host", lambda: target)
    assert "avx512.mask.scalef" in text(FUNCTIONS["exp"], "f64", 1, 8)
    monkeypatch.setattr("funct.kernels.llvm.emitter.host", host)
    if not host().has("avx512f"):
        assert "avx512" not in text(FUNCTIONS["exp"], "f64", 1, 8)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ONE, *SPECIAL])
def test_every_float32(name):
    """All 2^32 of them, against float64."""
    exact, bound, _ = (ONE | SPECIAL)[name]
    step = 1 << 22
    for start in range(0, 1 << 32, step):
        x = np.arange(start, start + step, dtype=np.uint64).astype(np.uint32).view(F32)
        x = abs(x) if name == "gammaln" else x
        with np.errstate(all="ignore"):
            check(apply(FUNCTIONS[name], x), exact(x.astype(F64)), bound)
