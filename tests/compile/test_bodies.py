"""Which ops are machine code in the body of a loop. What is not is listed: the list shrinks."""

import itertools
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile import why_not_fused
from funct.compile.rewriting import composed
from funct.core import Primitive, Sample, catalogue, lookup
from funct.errors import DTypeError
from funct.nn.functional import conv2d, softmax
from tests import laws

REALS = """
airy_ai airy_aip airy_bi airy_bip bdtr bdtrc bdtri beta_density betainc_slope betaln_slope
broadcast_to ellipeinc_slope ellipem1 ellipkinc_slope expn_slope exprel_slope finite fresnel_c
fresnel_s gamma_density gammainc_slope hankel1 hankel2 hyp1f1 ive_slope jv_slope kve_slope
lambertw lpmv polygamma quantize quantized_add quantized_convolution quantized_linear
random_shares real_fft riemann_slope riemann_zeta shichi_c shichi_s sici_c sici_s size_along
slice_ spherical_in spherical_jn spherical_kn spherical_yn wofz yv_slope zeta_slope
"""
COMPLEX = """
airy_ai airy_aip airy_bi airy_bip cofactor dawsn erf erfc erfcx erfi exp1 expi
finite fresnel_c fresnel_s gamma hermitian_fft log_ndtr loggamma ndtr psi riemann_zeta shichi_c
shichi_s sici_c sici_s spence spherical_in spherical_jn spherical_kn spherical_yn
wofz wrightomega
"""
HALVES = """
expn fold_windows kn linear_recurrence nbdtr nbdtrc nbdtri nextafter pdtr pdtrc pdtri reduce_prod
sampled_matmul scatter_add sign sparse_matmul weight_only_linear yn
"""  # more than of numbers of four bytes
ROUNDED_ONCE = """
argmax argmin attention avg_pool concat convolution convolution_input convolution_weight
cumulative_prod cumulative_sum embed gammainc jv matmul max_pool max_pool_index reduce_max
reduce_min reduce_sum running_argmax scatter searchsorted sort take take_along_axis top_k windows
"""
ALL_BUT_FIRST = "quantize quantized_add quantized_convolution quantized_linear"
LARGE = "expm-float32 expm-float64"
LINALG: dict[str, Callable[..., Any]] = {
    name: getattr(xp.linalg, name)
    for name in (
        "cholesky", "det", "eig", "eigh", "eigvalsh", "expm", "inv", "lu", "pinv", "qr", "slogdet",
        "svd", "svdvals",
    )
} | {"solve": lambda x: xp.linalg.solve(x, x[:, :1])}  # fmt: skip


def by_itself(f: Callable[..., Any], *args: Any) -> bool:
    """Whether Python goes through a loop that does nothing else."""
    rows = [xp.stack([xp.asarray(a)] * 3) for a in args]

    def run(*rows: Any) -> Any:
        return ft.scan(lambda c, given: (c + 1.0, f(*given)), 0.0, rows)

    told = why_not_fused(ft.make_graph(run)(*rows))
    return any(line.startswith("scan") and "Python goes through" in line for line in told)


def sampled(p: Primitive, s: Sample) -> Callable[..., Any]:
    """The op with a sample's parameters."""
    return lambda *given: p.fn(*given, *s.params)


def apart() -> tuple[set[str], set[str]]:
    """Names of ops that have a sample of this kind: of real numbers, and of complex ones."""
    found: tuple[set[str], set[str]] = set(), set()
    for p in catalogue():
        for s in p.samples(np.random.default_rng(7)):
            given = [np.asarray(a) for a in s.args]
            if all(a.size for a in given) and by_itself(sampled(p, s), *s.args):
                found[any(a.dtype.kind == "c" for a in given)].add(p.name)
    return found


def test_ops_that_python_goes_through_in_loops() -> None:
    """Who makes one of them machine code takes its name off the list; none is added but for what
    must refuse operands, as hyp1f1 and lpmv do that would count for ever.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        reals, others = apart()
    assert sorted(reals) == REALS.split()
    assert sorted(others) == COMPLEX.split()


def halved(s: Sample, dtype: Any) -> list[Any] | None:
    """A sample's operands in so many bytes; None where none is a real number, or one is complex."""
    given = [np.asarray(a) for a in s.args]
    if {"f"} != {a.dtype.kind for a in given} - set("biu") or not all(a.size for a in given):
        return None
    return [a.astype(dtype) if a.dtype.kind == "f" else a for a in given]


def test_ops_of_two_bytes_that_python_goes_through() -> None:
    """The list shrinks, as the others."""
    found: set[str] = set()
    for p in catalogue():
        for s in p.samples(np.random.default_rng(7)):
            halves, floats = (halved(s, dtype) for dtype in (xp.bfloat16, xp.float32))
            f = sampled(p, s)
            if halves is None or floats is None or p.name in found or not computes(f, halves):
                continue
            if by_itself(f, *halves) and not by_itself(f, *floats):
                found.add(p.name)
    assert sorted(found) == HALVES.split()


def computes(f: Callable[..., Any], given: list[Any]) -> bool:
    """Whether the op is there for these dtypes."""
    try:
        f(*map(xp.asarray, given))
    except (DTypeError, TypeError):
        return False
    return True


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ROUNDED_ONCE.split())
def test_two_bytes_in_loops_are_those_of_eager_execution(name: str, dtype: str) -> None:
    """Computed in float32 and rounded once, step by step, in a loop that is machine code."""
    p = lookup(name)
    assert p is not None
    known = 0
    for s in p.samples(np.random.default_rng(7)):
        given = halved(s, getattr(xp, dtype))
        f = sampled(p, s)
        if given is None or by_itself(f, *given):
            continue
        known += 1
        steps = [[xp.asarray(a), xp.asarray(a[..., ::-1] if a.dtype.kind == "f" else a)] for a in
                 map(np.atleast_1d, given)]  # fmt: skip
        expected = [f(*row) for row in zip(*steps, strict=True)]
        rows = [xp.stack(both) for both in steps]
        _, found = ft.jit(lambda *r, f=f: ft.scan(lambda c, g: (c, f(*g)), 0.0, r))(*rows)
        for k, y in enumerate(expected):
            for a, b in zip(ft.tree.leaves(y), ft.tree.leaves(found), strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b)[k])
    assert known


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint32"])
@pytest.mark.parametrize("shape", [(1,), (3,), (64,), (65,), (1000,), (1, 70), (2, 3), (3, 1)])
def test_first_places_in_loops_are_those_of_eager_execution(shape: Any, dtype: str) -> None:
    """Of arrays of one row too, which NumPy looks through at one call: no step goes there."""
    kind = getattr(xp, dtype)
    rng = np.random.default_rng(3)
    rows = np.round(rng.normal(size=(6, *shape)) * 2.0)
    if xp.isdtype(kind, "real floating"):
        rows[1] = -0.0
        rows[2, ..., -1] = np.nan
        rows[3].reshape(-1)[[0, -1]] = np.inf, np.nan
        rows[4] = -np.inf
    x = xp.astype(xp.asarray(np.abs(rows) if dtype == "uint32" else rows), kind)
    for name, axis, keepdims in itertools.product(("argmax", "argmin"), (-1, 0), (False, True)):
        f = partial(getattr(xp, name), axis=axis, keepdims=keepdims)
        assert not by_itself(f, x[0])
        found = ft.jit(partial(ft.map, f))(x)
        laws.same(found, xp.stack([f(v) for v in x]))


def test_ops_whose_other_operands_are_known() -> None:
    """Scales and weights that no step changes make these of the list machine code."""
    for name in ALL_BUT_FIRST.split():
        p = lookup(name)
        assert p is not None
        assert name in REALS.split()
        for s in p.samples(np.random.default_rng(7)):
            x, *held = map(xp.asarray, s.args)
            f = sampled(p, s)
            assert not by_itself(lambda x, f=f, held=held: f(x, *held), x)


@pytest.mark.parametrize(
    "name", [*ALL_BUT_FIRST.split(), "quantized_avg_pool", "quantized_mean"]
)  # fmt: skip
def test_codes_in_loops_are_those_of_eager_execution(name: str) -> None:
    """Every one, for other codes or numbers in each step."""
    p = lookup(name)
    assert p is not None
    rng = np.random.default_rng(8)
    samples = [*p.samples(np.random.default_rng(7))]
    if name == "quantized_convolution":  # sums that float32 does not hold
        x, _, _, *scales = samples[0].args
        w = rng.integers(-127, 128, (3, 600, 3)).astype("int8")
        bias = np.asarray([0, -(2**24) - 1, 2**25 + 3], "int32")
        samples.append(Sample((x[:, :1].repeat(600, 1), w, bias, *scales), samples[0].params))
    for s in samples:
        x, *held = map(np.asarray, s.args)
        f = sampled(p, s)
        shape = (2, *x.shape)
        others = rng.normal(size=shape) * 9 if x.dtype.kind == "f" else rng.integers(0, 127, shape)
        rows = np.concat([x[None], others.astype(x.dtype)])
        given = list(map(xp.asarray, held))
        _, found = ft.jit(
            lambda r, f=f, given=given: ft.scan(lambda c, z: (c, f(z, *given)), 0.0, r)
        )(xp.asarray(rows))
        for k, row in enumerate(rows):
            expected = f(xp.asarray(row), *given)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(np.asarray(found)[k], np.asarray(expected))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_products_of_integers_wrap_around_in_loops(dtype: str) -> None:
    """As those of eager execution, and with stacks that are broadcast."""
    ends = np.iinfo(dtype)
    rng = np.random.default_rng(9)
    for left, right in (((3, 4), (4, 5)), ((2, 3, 4), (4, 1)), ((2, 1, 3, 3), (5, 3, 2))):
        x, y = (
            xp.asarray(rng.integers(ends.min, ends.max, (3, *s), dtype, endpoint=True))
            for s in (left, right)
        )
        assert not by_itself(xp.matmul, x[0], y[0])
        _, found = ft.jit(lambda x, y: ft.scan(lambda c, g: (c, xp.matmul(*g)), 0.0, (x, y)))(x, y)
        for k in range(3):
            np.testing.assert_array_equal(np.asarray(found[k]), np.asarray(x[k] @ y[k]))


@pytest.mark.parametrize("pairs", [False, True])
def test_large_products_of_bfloat16_are_left_to_who_multiplies_pairs(
    pairs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the processor does; small ones are not worth a step of Python."""
    monkeypatch.setattr(composed, "met", lambda needs: pairs)
    x, w = xp.ones((512, 512), dtype="bfloat16"), xp.ones((8, 16, 3, 3), dtype="bfloat16")
    image = xp.ones((4, 16, 64, 64), dtype="bfloat16")
    wide = xp.ones((32, 16, 3, 3), dtype="bfloat16")
    assert by_itself(xp.matmul, x, x) == pairs
    assert not by_itself(xp.matmul, x[:64, :64], x[:64])
    assert by_itself(conv2d, image, wide) == pairs
    assert not by_itself(conv2d, image[:1, :, :9, :9], w)
    assert not by_itself(xp.matmul, *[xp.astype(x, xp.float16)] * 2)


WHOLE: dict[str, Callable[..., Any]] = {
    "exp": xp.exp, "sin": xp.sin, "log1p": lambda x: xp.log1p(xp.abs(x)), "erf": xp.special.erf,
    "pow": lambda x: xp.abs(x) ** 1.5, "atan2": lambda x: xp.atan2(x, x + 1),
    "hypot": lambda x: xp.hypot(x, x * 0.5), "matmul": lambda x: x @ xp.ones((4, 2)),
    "single": lambda x: xp.ones((2, 3), dtype="float32") @ x,
    "softmax": lambda x: softmax(x + 0, -1),
    "half": lambda x: xp.astype(x, xp.float16), "brain": lambda x: xp.astype(x, xp.bfloat16),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64", "bool"])
@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_in_loops_are_those_of_eager_execution(name: str, dtype: str) -> None:
    """Functions of them, products with others, and as numbers of two bytes: large ones too."""
    f = WHOLE[name]
    top = 2 if dtype == "bool" else min(np.iinfo(dtype).max, 70_000 if name == "half" else 2**40)
    rng = np.random.default_rng(3)
    low = 0 if dtype[0] in "ub" or name in ("exp", "pow") else -min(top, 99)
    high = min(top, 40) if name in ("exp", "pow") else top
    x = xp.asarray(rng.integers(low, high, (3, 3, 4)).astype(dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # overflow, of large numbers
        expected = [f(row) for row in x]
        _, found = ft.jit(lambda x: ft.scan(lambda c, row: (c, f(row)), 0.0, x))(x)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        tight = 0 if name in ("half", "brain") else 2 * xp.finfo(a.dtype).eps
        laws.close(xp.astype(a, "float64"), np.asarray(b).astype("float64"), tight, tight)
    if dtype not in ("int8", "uint16", "bool") or name in ("matmul", "brain", "half"):
        assert not by_itself(f, x[0])


@pytest.mark.parametrize("name", ["attention_keep", "convolve", "fft", "imag", "to_device"])
def test_what_others_write_is_that_of_eager_execution(name: str) -> None:
    """In a loop that is machine code, of real numbers and of complex ones."""
    p = lookup(name)
    assert p is not None
    for s in p.samples(np.random.default_rng(7)):
        given = list(map(np.asarray, s.args))
        f = sampled(p, s)
        if not all(a.size for a in given):
            continue
        assert not by_itself(f, *given)
        rows = [xp.asarray(np.stack([a, np.flip(a)])) for a in given]
        _, found = ft.jit(lambda *r, f=f: ft.scan(lambda c, g: (c, f(*g)), 0.0, r))(*rows)
        for k, row in enumerate(zip(*rows, strict=True)):
            expected = f(*row)
            assert found.dtype == expected.dtype
            laws.close(found[k], np.asarray(expected), 1e-12, 1e-12)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("name", ["convolution", "convolution_input", "convolution_weight"])
def test_convolutions_of_short_integers_in_loops(name: str, dtype: str) -> None:
    """Sums wrap around, as those of eager execution."""
    p = lookup(name)
    assert p is not None
    ends, rng = np.iinfo(dtype), np.random.default_rng(4)
    for s in p.samples(np.random.default_rng(7)):
        rows = [
            xp.asarray(rng.integers(ends.min, ends.max, (2, *np.shape(a)), dtype, endpoint=True))
            for a in s.args
        ]
        f = sampled(p, s)
        _, found = ft.jit(lambda *r, f=f: ft.scan(lambda c, g: (c, f(*g)), 0.0, r))(*rows)
        for k, given in enumerate(zip(*rows, strict=True)):
            np.testing.assert_array_equal(np.asarray(found[k]), np.asarray(f(*given)))
        if found.size:
            assert not by_itself(f, *[r[0] for r in rows])


def test_large_matrices_that_python_goes_through_in_loops() -> None:
    """Those too large for what serves small ones."""
    found = []
    for dtype in ("float32", "float64"):
        x = np.eye(80, dtype=dtype)
        found += [f"{name}-{dtype}" for name, f in LINALG.items() if by_itself(f, x)]
    assert sorted(found) == LARGE.split()
