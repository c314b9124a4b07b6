"""Machine code for loops: the numbers of eager execution, for every op, dtype, shape and layout.

Ops that are exact in IEEE arithmetic have eager's bits. Functions (exp, sin …) are within 4 units
in the last place of NumPy's, sums within the error of a sum of that length.
"""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.compile import program
from funct.compile.fusion import again
from funct.compile.loops import passes
from funct.compile.loops.scalars import ELEMENTS, NARROW, PRINTINGS
from funct.compile.native import base_names, native
from funct.compile.steps.walker import HEAD
from funct.core import lookup
from funct.graph import eliminate_dead, inline_calls, optimize, share_common
from tests import laws
from tests.compile.test_bounds import made_of as compiled
from tests.strategies import Program, inputs, programs

EXACT = {
    "add", "subtract", "multiply", "divide", "negative", "abs", "sign", "square", "sqrt", "relu",
    "reciprocal", "floor", "ceil", "round", "trunc", "conj", "real", "keep_float", "stop_gradient",
    "checkpoint_name", "copysign", "absorb", "maximum", "minimum", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert",
    "bitwise_left_shift", "bitwise_right_shift", "isfinite", "isinf", "isnan", "signbit", "where",
    "astype", "floor_divide", "nextafter", "remainder",
}  # fmt: skip
LOOSE = {"erfc": 64, "ndtr": 64, "gammaln": 64, "logaddexp": 8}  # SciPy's own error
LENGTHS = [1, 2, 7, 8, 31, 32, 33, 100]


def agree(actual: Any, expected: Any, *, ulps: int = 0) -> None:
    """Equal dtypes and shapes; equal numbers, or within so many units in the last place."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if not ulps:
        np.testing.assert_array_equal(actual, expected)
        if actual.dtype.kind == "f":
            kept = ~np.isnan(expected)
            assert np.array_equal(np.signbit(actual)[kept], np.signbit(expected)[kept])
        return
    eps = np.finfo(expected.dtype).eps
    tiny = 4 * float(np.finfo(expected.dtype).smallest_subnormal)
    np.testing.assert_allclose(actual, expected, rtol=ulps * float(eps), atol=tiny)


def numbers(dtype: Any, n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Numbers of a dtype, the awkward ones first."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        odd = np.array([0, 1, limits.max, limits.min, 3, limits.max // 2], dtype)
        x = rng.integers(limits.min, limits.max, n, dtype, endpoint=True)
    else:
        odd = np.array(
            [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 1.5, 2.5, 1e-40, 3e38, 1e-3], dtype
        )
        x = (rng.normal(size=n) * 3).astype(dtype)
    x[rng.permutation(n)[: len(odd)]] = odd[:n]
    return np.asarray(x)


# those are no exact ops; a product and a sum rounded once is none of the catalogue, nor are the
# parts of complex functions (`test_pairs.py`) and the slope of a sigmoid (`test_logistic.py`)
_NO_OPS = {"fma", "sigmoid_slope"}
PRINTED = sorted(
    n for n in PRINTINGS if not n.startswith("fast_") and n not in _NO_OPS and "_part" not in n
)


def eager(fun: Any, *args: Any) -> Any:
    """The function on arrays, without NumPy's warnings."""
    with np.errstate(all="ignore"):
        out = fun(*map(xp.asarray, args))
    return tuple([np.asarray(o) for o in out]) if isinstance(out, tuple) else np.asarray(out)


@pytest.mark.parametrize("name", PRINTED)
def test_every_printing_on_every_dtype(name: str) -> None:
    """Each op that loops hold agrees with eager on awkward numbers of each dtype it takes."""
    prim = lookup(name)
    assert prim is not None
    count = len(prim.operands)
    for dtype in ELEMENTS:
        if name == "astype":
            continue
        args = [numbers(dtype, 45, seed) for seed in range(count)]
        if name == "where":
            args[0] = args[0].astype(bool)
        if name == "gammaln":  # SciPy has -inf there in float32, and inf in float64
            args[0] = np.where(args[0] == -np.inf, 1, args[0]).astype(dtype)
        if name == "checkpoint_name":
            fun: Any = lambda x: prim.fn(x, "name")  # noqa: E731
        else:
            fun = prim.fn
        try:
            expected = eager(fun, *args)
        except (TypeError, ft.errors.FunctError):
            continue
        made = compiled(fun, *args)
        if not made.programs:
            continue
        with np.errstate(all="ignore"):  # of integers it says what eager says
            (actual,) = made.run(*args)
        exact = name in EXACT or np.asarray(expected).dtype.kind in "iu"
        agree(actual, expected, ulps=0 if exact else LOOSE.get(name, 4))


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("name", sorted(set(PRINTED) - {"astype", "gammaln"}))
def test_every_printing_on_two_bytes(name: str, dtype: Any) -> None:
    """In float16 and bfloat16 each op is computed in float32 and rounded, which are eager's bits.

    What eager composes (sigmoid) is rounded once, not after each step.
    """
    prim = lookup(name)
    assert prim is not None
    with np.errstate(over="ignore"):
        wide = [numbers(np.dtype(np.float32), 45, seed) for seed in range(len(prim.operands))]
        args = [x.astype(dtype) for x in wide]
    if name == "where":
        args[0] = args[0].astype(bool)
    fun: Any = (lambda x: prim.fn(x, "name")) if name == "checkpoint_name" else prim.fn
    try:
        expected = eager(fun, *args)
    except (TypeError, ft.errors.FunctError):
        return
    with np.errstate(all="ignore"):
        actual = np.asarray(compiled(fun, *args).run(*args)[0])
    assert actual.dtype == expected.dtype
    eps = float(ml_dtypes.finfo(dtype).eps) if name.endswith("sigmoid") else 0.0
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(a, e, rtol=3 * eps, atol=0)
    if name in ("relu", "maximum", "minimum"):
        return  # which zero is the larger one differs between NumPy's own loops
    kept = ~np.isnan(e)
    assert np.array_equal(np.signbit(a)[kept], np.signbit(e)[kept])


@pytest.mark.parametrize("source", NARROW, ids=str)
@pytest.mark.parametrize("other", [*ELEMENTS, *NARROW], ids=str)
def test_casts_of_two_bytes(source: Any, other: Any) -> None:
    """From and to every other dtype, and on through a few ops."""
    x = (np.arange(45) / 4).astype(source)

    def there(x: Any) -> Any:
        return xp.astype(x, other) + xp.astype(x, other)

    def back(x: Any) -> Any:
        return xp.astype(xp.astype(x, source) * 2.0, other)

    for fun, y in ((there, x), (back, (np.arange(45) / 4).astype(other))):
        actual, expected = np.asarray(compiled(fun, y).run(y)[0]), eager(fun, y)
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("pair", list(itertools.product(ELEMENTS, ELEMENTS)), ids=str)
def test_casts(pair: Any) -> None:
    """astype has NumPy's numbers wherever loops hold it; out of range as well."""
    source, target = pair
    x = numbers(source, 45)
    if source.kind == "f" and target.kind in "iu":
        x = x[np.isfinite(x) & (np.abs(x) < 2**31)]
    made = compiled(lambda x: xp.astype(x, target), x)
    agree(made.run(x)[0], eager(lambda x: xp.astype(x, target), x))


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("m", [1, 3, 40])
def test_rows_and_columns(m: int, n: int) -> None:
    """Reductions along rows, along columns and of everything, fused with what surrounds them."""
    x = numbers(np.dtype(np.float32), m * n).reshape(m, n)
    x = np.where(np.isfinite(x) & (np.abs(x) < 1e9), x, np.float32(0.25))

    def f(x: Any) -> Any:
        c = x - xp.mean(x, axis=1, keepdims=True)
        s = xp.sum(c * c, axis=1, keepdims=True)
        return (
            c / (s + 1.0), s, xp.sum(c, axis=0), xp.max(x), xp.min(x, axis=0), xp.max(c, axis=1),
            xp.any(x > 2, axis=1), xp.all(x > -9, axis=0), xp.sum(xp.astype(x, "int32")),
            xp.sum(x > 0, axis=1), xp.prod(x[:, :3], axis=1),
        )  # fmt: skip

    made = compiled(f, x)
    for actual, expected in zip(made.run(x), eager(f, x), strict=True):
        assert actual.dtype == expected.dtype
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=3e-5, atol=3e-5)


def test_passes_keep_what_an_earlier_one_computed() -> None:
    """A costly value is first computed in the second pass, and found again in the third."""

    def f(x: Any) -> Any:
        m = xp.max(x, axis=1, keepdims=True)
        y = xp.tanh(x)
        return y * xp.sum(y * m, axis=1, keepdims=True)

    x = np.random.default_rng(0).normal(size=(40, 100))
    np.testing.assert_allclose(compiled(f, x).run(x)[0], eager(f, x), rtol=1e-13)


def test_large_arrays_in_tasks() -> None:
    """What is cut into tasks agrees too: flat, by rows, and where partial results are combined."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 301))

    def f(x: Any) -> Any:
        y = xp.exp(x) * 2.0
        return y, xp.sum(y, axis=0), xp.sum(y, axis=1), xp.sum(y), xp.max(y), y / xp.max(y)

    made = compiled(f, x)
    assert any(c.tasks > 1 for c in made.calls)
    for actual, expected in zip(made.run(x), eager(f, x), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-13)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_bits_depend_on_no_number_of_threads(threads: int) -> None:
    """Tasks follow from the shape; their results are combined in order."""
    x = np.random.default_rng(0).normal(size=(700, 300)).astype(np.float32)
    made = compiled(lambda x: (xp.sum(x), xp.sum(x, axis=0), xp.sum(x * x)), x)
    expected = made.run(x)
    with ft.config.using(threads=threads):
        for a, e in zip(made.run(x), expected, strict=True):
            agree(a, e)


VIEWS: list[Any] = [
    lambda x: xp.permute_dims(x, (1, 0, 2)) * 2.0,
    lambda x: xp.permute_dims(x, (2, 1, 0)) + 1.0,
    lambda x: x[::-1, 1:, ::2] * 3.0,
    lambda x: xp.flip(x, axis=2) - x,
    lambda x: xp.reshape(x * 2.0, (-1,)) + 1.0,
    lambda x: xp.reshape(xp.permute_dims(x, (2, 0, 1)), (-1, 4)) * 2.0,
    lambda x: xp.sum(xp.permute_dims(x, (2, 0, 1)), axis=2),
    lambda x: xp.sum(x[:, ::-1, :], axis=(1, 2)) * 2.0,
    lambda x: x + x[0] + x[:, :1] + x[:, :, :1] + x[0, 0, 0],
    lambda x: (xp.reshape(x * 2.0, (3, -1)), xp.permute_dims(x * 2.0, (1, 0, 2))),
    lambda x: xp.max(x + xp.permute_dims(x[:, :, :4], (0, 2, 1))[:, :, :1], axis=0),
    lambda x: xp.broadcast_to(xp.sum(x, axis=(0, 1), keepdims=True), (3, 4, 6)) * x,
]


@pytest.mark.parametrize("fun", VIEWS, ids=[str(k) for k in range(len(VIEWS))])
@pytest.mark.parametrize("layout", ["C", "F", "negative", "strided", "odd address", "broadcast"])
def test_views_and_layouts(fun: Any, layout: str) -> None:
    """Views are index maps; arguments may lie in memory however they like."""
    x = np.random.default_rng(0).normal(size=(3, 4, 6))
    if layout == "F":
        x = np.asfortranarray(x)
    elif layout == "negative":
        x = x[::-1, :, ::-1]
    elif layout == "strided":
        x = np.repeat(np.repeat(x, 3, axis=2), 2, axis=0)[::2, :, ::3]
    elif layout == "odd address":
        x = np.frombuffer(b"x" + x.tobytes(), np.float64, offset=1).reshape(x.shape)
    elif layout == "broadcast":
        x = np.broadcast_to(x[:1], x.shape)
    made = compiled(fun, x)
    expected, actual = eager(fun, x), made.run(x)
    for a, e in zip(actual, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-14)


@settings(max_examples=3 * settings.default.max_examples)
@given(programs(), st.booleans(), st.sampled_from([0, again._LEAST_BYTES]))
def test_random_programs(program: Program, fortran: bool, least: int) -> None:
    """A random program gives eager's numbers, but for the last places of functions and sums;
    least: bytes of what is computed again.
    """
    xs = inputs(1, fortran)
    graph = ft.make_graph(program)(*map(xp.asarray, xs))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(again, "_LEAST_BYTES", least)
        made = native(eliminate_dead(share_common(inline_calls(graph)), guards=True))
    kept = [x.copy() for x in xs]
    for _ in range(2):
        for actual, expected in zip(made.run(*xs), graph(*xs), strict=True):
            e = np.asarray(expected)
            np.testing.assert_allclose(np.asarray(actual), e, rtol=1e-9, atol=1e-9)
    for x, before in zip(xs, kept, strict=True):
        agree(x, before)


def test_0d_and_numpy_scalars() -> None:
    """Arrays of no axes come and go, as arrays or as NumPy's scalars."""
    made = compiled(lambda x, y: (x * 2.0 + y, xp.sum(y)), np.asarray(1.5), np.arange(3.0))
    for x in (np.asarray(1.5), np.float64(1.5)):
        a, b = made.run(x, np.arange(3.0))
        agree(a, np.arange(3.0) + 3.0)
        agree(b, np.asarray(3.0))


def test_equal_kernels_are_compiled_once() -> None:
    """Lengths, strides and addresses are no part of a kernel."""
    one = compiled(lambda x: xp.exp(x) * 3.5, np.ones((64, 64)))
    two = compiled(lambda y: xp.exp(y) * 3.5, np.ones((3, 1024)))
    assert one.calls[0].kernel == two.calls[0].kernel
    assert one.programs[0].code[0] is two.programs[0].code[0]


def test_symbolic_sizes() -> None:
    """One path serves all lengths; each is computed by the same kernels."""
    f = ft.jit(lambda x: xp.sum(xp.tanh(x) * x[:1], axis=1))
    for n in (1000, 1001, 40, 2000, 1, 0, 3000):
        x = np.random.default_rng(n).normal(size=(n, 30))
        np.testing.assert_allclose(
            np.asarray(f(xp.asarray(x))), np.sum(np.tanh(x) * x[:1], axis=1), rtol=1e-10
        )
    assert f.cache_info().misses <= 4


def test_decisions_are_taken_with_the_bits_of_eager() -> None:
    """What a guard looks at is computed as it was when the decision was taken."""

    def f(x: Any) -> Any:
        total = float(xp.sum(xp.sin(x)))
        return x * total if xp.sum(x) > 0 else x - total

    x = xp.asarray(np.random.default_rng(0).normal(size=1 << 16))
    laws.same(ft.jit(f)(x), f(x))


def test_long_chains_are_printed() -> None:
    """A thousand ops on one array: groups as long as they may be, printed without recursion."""

    def f(x: Any) -> Any:
        y, s = x, xp.sum(x, axis=1, keepdims=True)
        for k in range(300):
            y = xp.maximum(y * 0.5 + x, y) - 0.25
            s = s * 0.99 + k
        return y + s

    x = np.random.default_rng(0).normal(size=(3, 40))
    np.testing.assert_allclose(compiled(f, x).run(x)[0], eager(f, x), rtol=1e-12)


def test_checkpoints_keep_their_arguments_alone() -> None:
    """The workspace of a training step grows with a layer by its input, not by all it computes."""
    n = 256
    w = xp.asarray(np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32))

    @ft.checkpoint
    def block(x: Any, w: Any) -> Any:
        for _ in range(6):
            x = xp.tanh(xp.sin(x @ w) * xp.exp(x))
        return x

    def space(layers: int) -> int:
        def loss(ws: Any) -> Any:
            x = xp.ones((n, 64), dtype=xp.float32)
            for v in ws:
                x = block(x, v)
            return xp.sum(x)

        graph = optimize(ft.make_graph(ft.grad(loss))([w] * layers))
        made = native(graph)
        assert len(made.programs) == 1
        return made.programs[0].workspace

    layer = n * 64 * 4
    assert space(9) - space(3) < 6 * 2.5 * layer
    assert space(3) > 10 * layer, "one block needs more than that while it runs"


@pytest.mark.parametrize("n", [1, 31, 512, 513, 5000, 70_000])
def test_stages_do_not_show(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long flat body goes over strips, one part of it after the other: with the bits of one."""

    def long(x: Any, y: Any) -> Any:
        a = xp.exp(x) / y
        b = xp.where(a > 1, xp.log(a), xp.astype(xp.sin(a), "float64"))
        c = xp.erf(b * x) / (1 + xp.sqrt(y))
        return a + 1, xp.tanh(c) * b - xp.cos(x / y), a > c

    rng = np.random.default_rng(n)
    x, y = rng.normal(size=n).astype(np.float32), rng.uniform(1, 2, n)
    made = compiled(long, x, y)
    (call,) = made.calls
    assert passes.passes(call.kernel).staged is (n > 1)
    found = made.run(x, y)
    monkeypatch.setattr(passes, "_STAGE", 10_000)
    monkeypatch.setattr(program, "_codes", {})
    made = compiled(long, x, y)
    assert not passes.passes(made.calls[0].kernel).staged
    for actual, expected in zip(found, made.run(x, y), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, bool, ml_dtypes.bfloat16])
def test_arrays_of_one_number_are_laid_out_once(dtype: Any) -> None:
    """Those of the same number and dtype share memory; others, and -0.0, have their own."""
    shapes = (3, 4), (50, 2), (7,)
    one = [np.broadcast_to(np.asarray(v, dtype), s) for v in (0, 1) for s in shapes]
    minus = np.broadcast_to(np.asarray(-0.0, np.float32), (5, 5))
    others = [np.arange(12.0).reshape(3, 4).T, np.broadcast_to(np.arange(4), (3, 4)),
              np.asarray(3.0), np.empty((0, 2)), np.broadcast_to(np.float32(2), (0, 3)),
              np.broadcast_to(np.float32(2), (1, 1))]  # fmt: skip
    given_ = [*one, minus, *others]
    found = base_names()["dense"](*given_)
    for x, y in zip(given_, found, strict=True):
        assert y.flags.c_contiguous
        assert y.flags.aligned
        assert y.dtype == x.dtype
        assert y.shape == x.shape
        assert y.tobytes() == x.tobytes()
    zeros, ones = found[:3], found[3:6]
    assert all(np.shares_memory(x, zeros[0]) for x in zeros)
    assert all(np.shares_memory(x, ones[0]) for x in ones)
    assert not np.shares_memory(zeros[0], ones[0])
    assert not np.shares_memory(minus, found[6])


def test_a_step_may_be_given_zeros_that_repeat_one_number() -> None:
    """Its results are new arrays, so the next step goes on with them."""
    w = xp.asarray(np.random.default_rng(0).normal(size=(300, 200)).astype(np.float32))
    zeros = xp.zeros_like(w)

    def step(w: Any, m: Any, v: Any) -> Any:
        m, v = 0.9 * m + 0.1 * w, 0.99 * v + 0.01 * w * w
        return w - m / (xp.sqrt(v) + 1e-8), m, v

    compiled, state, plain = ft.jit(step), (w, zeros, zeros), (w, zeros, zeros)
    for _ in range(3):
        state, plain = compiled(*state), step(*plain)
        for x, y in zip(state, plain, strict=True):
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=2e-5, atol=1e-5)
    assert not np.any(np.asarray(zeros))


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_powers_by_a_number_that_are_products(kind: str) -> None:
    """They are the same products in machine code: eager's bits."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=40) * 10.0 ** rng.integers(-20, 20, 40), [0.0, -0.0]])
    x = xp.asarray(np.concatenate([x, [np.inf, -np.inf, np.nan]]).astype(kind))
    for y in (-2, -1, -0.5, 1, 2, 3, 4, 2.0, 3.0):
        f = lambda v, y=y: v**y  # noqa: E731
        with np.errstate(all="ignore"):
            laws.same(ft.jit(f, mode="reduce-overhead")(x), f(x))


@pytest.mark.parametrize(
    "fun", [lambda x: x + 1, lambda x: xp.sum(xp.sin(x)), lambda x: xp.max(xp.exp(x), axis=0)]
)
@pytest.mark.parametrize(("n", "goes"), [(20, False), (200, True)])
def test_other_threads_run_while_much_is_read_or_written(fun: Any, n: int, goes: bool) -> None:
    """Few results may take long too: a sum of many numbers is one."""
    (program,) = compiled(fun, np.ones((n, n))).programs
    assert bool(program.table[HEAD.index("lets_go")]) == goes
