"""Complex numbers in machine code: eager's values, in programs and in loops."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.array import special
from funct.compile import why_not_fused
from funct.compile.control import is_lowered
from funct.compile.forms import Repeat
from funct.compile.lines.small_loops import SmallLoop, in_registers
from funct.compile.native import native
from funct.compile.rewriting.pairs import in_pairs
from funct.kernels.llvm.complexes import COMPLEX
from tests import laws

ODD = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e-310, 1e-40]
EXACT: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "negative": lambda a, b: -a,
    "conj": lambda a, b: xp.conj(a),
    "parts": lambda a, b: xp.imag(a) - xp.real(b),
    "divide": lambda a, b: a / b,
    "reciprocal": lambda a, b: xp.reciprocal(a),
    "over real": lambda a, b: a / xp.real(b),
    "over numbers": lambda a, b: a / 2.5 - b / (1 - 2j),
    "finite": lambda a, b: xp.isfinite(a) | xp.isnan(b) | ~xp.isinf(a),
    "by real": lambda a, b: xp.real(a) / b,
    "plus real": lambda a, b: xp.real(b) - a,
    "plus numbers": lambda a, b: 1.5 - (a + 2j),
    "where": lambda a, b: xp.where(xp.real(a) > 0, a, b),
    "equal": lambda a, b: (a == b) | (a != a),
    "roll": lambda a, b: xp.roll(a, 1, axis=0),
    "stack": lambda a, b: xp.stack([a, b], axis=1),
    "take": lambda a, b: a[xp.asarray([1, 0, -1])],
    "put": lambda a, b: xp.pad(a, ((1, 2),)),
    "turned": lambda a, b: xp.reshape(a, (1, -1)) + xp.reshape(b, (-1, 1)),
    "wider": lambda a, b: xp.astype(a, "complex128") + xp.astype(xp.real(b), "complex128"),
    "together": lambda a, b: xp.real(a) + 1j * xp.real(b),
}
CLOSE: dict[str, Callable[..., Any]] = {
    "multiply": lambda a, b: a * b,
    "times numbers": lambda a, b: a * 2.0 + b * 1.5j,
    "times real": lambda a, b: a * xp.real(b),
    "square": lambda a, b: xp.square(a) + b**2,
    "abs": lambda a, b: xp.abs(a),
    "sign": lambda a, b: xp.sign(a),
    **{name: lambda a, b, name=name: getattr(xp, name)(a) for name in COMPLEX},
    "sinc": lambda a, b: special.sinc(a) + special.sinc(b * 0.0),
    "xlogy": lambda a, b: special.xlogy(a, b) + special.xlogy(xp.real(a), b),
    "xlog1py": lambda a, b: special.xlog1py(a, b) + special.xlog1py(b, xp.abs(a)),
    "by nothing": lambda a, b: a**0 + b,
    "product": lambda a, b: xp.prod(a[:7] * b[1]) + xp.prod(b[:3], keepdims=True),
    "products": lambda a, b: xp.prod(a[:, None] * b[:4] * 0.5, axis=1),
    "of two axes": lambda a, b: xp.prod(xp.reshape(a[:3] - b[0], (1, 1, 3)), axis=(0, 2)),
    "of none": lambda a, b: xp.prod(a[:0]) * b,
    "sum": lambda a, b: xp.sum(a * b),
    "sum of rows": lambda a, b: xp.sum(a[:, None] - b[:9], axis=1),
}
OPS = EXACT | CLOSE


def numbers(dtype: str, n: int, seed: int, *, odd: bool) -> Any:
    """Complex numbers, among them all pairs of odd parts."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) + 1j * rng.normal(size=n)
    if odd:
        pairs = np.asarray([complex(a, b) for a in ODD for b in ODD])
        z = rng.permutation(np.concatenate((z, pairs)))
    return xp.asarray(z.astype(dtype))


def in_program(f: Callable[..., Any], *args: Any) -> Any:
    """What f gives as machine code alone, however small it is."""
    made = native(ft.make_graph(f)(*args))
    assert made.programs
    assert not [v for v in made.fused.views if v.dtype.kind == "c"]
    (found,) = made.run(*[x.data for x in args])
    return np.asarray(found)


def agree(found: Any, expected: Any, eps: float) -> None:
    """Equal bit for bit, or nearly; NaN is where it is in each part."""
    expected = np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if not eps:
        for part in (np.real, np.imag):
            np.testing.assert_array_equal(part(found), part(expected))
            there = ~np.isnan(part(expected))
            signs = [np.signbit(part(x))[there] for x in (found, expected)]
            np.testing.assert_array_equal(*signs)
        return
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(found), finite)
    scale = np.abs(expected[finite]).max(initial=0)
    np.testing.assert_allclose(found[finite], expected[finite], eps, eps * scale)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", OPS)
def test_ops(name: str, dtype: str) -> None:
    """One number, a few, many, and whatever parts they may have."""
    f = OPS[name]
    eps = 0 if name in EXACT else 8 * float(np.finfo(dtype).eps)
    for n, odd in ((3, False), (17, False), (1000, False), (40, True)):
        a, b = (numbers(dtype, n, seed, odd=odd) for seed in (0, 1))
        if odd and name.startswith("sum"):
            continue
        with np.errstate(all="ignore"):
            agree(in_program(f, a, b), f(a, b), eps)


POWERS = (2, 3, 5, 10, -1, -2, 1, 0.5, -0.5, 1.5, 2.5 + 1j, 0.3 - 2j)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_powers(dtype: str) -> None:
    """By numbers, by arrays and of numbers; of 0 as NumPy has them."""
    eps = 32 * float(np.finfo(dtype).eps)
    a, b = (numbers(dtype, 200, seed, odd=False) for seed in (0, 1))
    a = xp.concat((a, xp.zeros(5, dtype=dtype)))
    b = xp.concat((b, xp.asarray([0, 1, -1, 2 + 1j, -2 + 1j], dtype=dtype)))
    powers = [lambda a, b, by=by: a**by for by in POWERS]
    powers += [lambda a, b: a**b, lambda a, b: 2.5**b, lambda a, b: (-1 - 1j) ** b]
    powers += [lambda a, b: a ** xp.real(b)]
    for power in powers:
        with np.errstate(all="ignore"):
            agree(in_program(power, a, b), power(a, b), eps)


def step(c: Any, x: Any) -> Any:
    """Of a recurrence."""
    return c * (0.5 + 0.25j) + x, (xp.real(c), c * c)


@given(
    st.sampled_from([(), (1,), (3,), (8, 2), (65,), (300,), (3000,)]), st.sampled_from([1, 2, 9]),
    st.booleans(), st.sampled_from(["complex64", "complex128"]),
)  # fmt: skip
@settings(max_examples=2 * settings.default.max_examples)
def test_recurrences(shape: tuple[int, ...], steps: int, reverse: bool, dtype: str) -> None:
    """In registers, by columns and in memory: what is carried, gone through and given."""
    rng = np.random.default_rng(0)
    draw = lambda *s: (rng.normal(size=s) + 1j * rng.normal(size=s)).astype(dtype)  # noqa: E731
    c, xs = xp.asarray(draw(*shape)), xp.asarray(draw(steps * 40, *shape))
    f = lambda c, xs: ft.scan(step, c, xs, reverse=reverse)  # noqa: E731
    eps = 64 * float(np.finfo(dtype).eps)
    laws.close(ft.jit(f)(c, xs), f(c, xs), eps, eps)


LOOPS: dict[str, Callable[..., Any]] = {
    "until it leaves": lambda c, w: ft.while_loop(
        lambda s: (xp.max(xp.abs(s[0])) < 2.0) & (s[1] < 500),
        lambda s: (s[0] * s[0] * 0.5 + c, s[1] + 1), (c, 0)),
    "a matrix": lambda c, w: ft.fori_loop(0, 300, lambda i, z: w @ z * 0.5 + c, c),
    "a loop inside": lambda c, w: ft.fori_loop(
        0, 60, lambda i, z: ft.fori_loop(0, 4, lambda j, y: y * 0.5j + c, z) + 0.25, c),
    "a branch": lambda c, w: ft.fori_loop(
        0, 300, lambda i, z: ft.cond(xp.real(z[0]) > 0, lambda z: z / (c + 3.0),
                                     lambda z: xp.conj(z) + 1.0, z), c),
    "an element": lambda c, w: ft.fori_loop(
        0, 300, lambda i, z: z.at[i % 5].set(z[(i + 1) % 5] * 0.5j + c[0]), c),
    "products": lambda c, w: ft.fori_loop(
        0, 300, lambda i, z: xp.prod(w * 0.2 + z, axis=0) + xp.prod(w[:, :3], axis=-1) + c, c),
    "a function": lambda c, w: ft.fori_loop(0, 300, lambda i, z: xp.exp(z * 0.5j) + c, c),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name: str) -> None:
    """Tests, products, branches and loops inside; what has no pairs goes on as before."""
    rng = np.random.default_rng(1)
    c = xp.asarray(rng.normal(size=5) * 0.3 + 0.2j)
    w = xp.asarray((rng.normal(size=(5, 5)) + 1j * rng.normal(size=(5, 5))) * 0.2)
    f = LOOPS[name]
    laws.close(ft.jit(f)(c, w), f(c, w), 1e-10, 1e-10)


def test_loops_are_lines() -> None:
    """No Python goes through the steps of a complex recurrence."""
    z = xp.ones(4, dtype=xp.complex128)
    graph = ft.make_graph(lambda c, x: ft.tree.leaves(step(c, x)))(z, z)
    assert isinstance(in_registers(Repeat(graph, 0, 1, 10)), SmallLoop)


def test_derivatives() -> None:
    """The loops that the rules make of a complex recurrence."""
    xs = numbers("complex128", 200, 3, odd=False)

    def f(c: Any) -> Any:
        last, (re, squares) = ft.scan(step, c * (1.0 + 0.5j), xs)
        return xp.abs(last) + xp.sum(re) + xp.sum(xp.abs(squares))

    laws.close(ft.jit(ft.grad(f))(xp.asarray(0.5)), ft.grad(f)(xp.asarray(0.5)), 1e-12, 1e-12)


@pytest.mark.parametrize("name", sorted(COMPLEX))
def test_derivatives_of_functions(name: str) -> None:
    """What the rules make, `absorb` among it, is machine code too."""

    def f(x: Any) -> Any:
        z = getattr(xp, name)(x * (0.5 + 0.25j) + 1.0)
        return xp.sum(xp.abs(z) ** 2 + xp.real(z * z) + xp.abs(xp.fft.fft(z)))

    x = xp.asarray(np.random.default_rng(0).normal(size=40))
    for g in (ft.grad(f), ft.vmap(ft.grad(lambda x: f(x[None]))), ft.hessian(f)):
        laws.close(ft.jit(g, mode="reduce-overhead")(x), g(x), 1e-9, 1e-9)


def test_arrays_of_a_function() -> None:
    """Other orders in memory, no axes, and what is passed on."""
    f = ft.jit(lambda a, b: (a * b, b, a, xp.sum(a) + b[0, 0]))
    big = np.random.default_rng(2).normal(size=(200, 200)) + 1j
    one = xp.asarray(2.0 + 1j)
    for x in (big, big.T, big[::-1, ::2]):
        y = xp.asarray(x)
        laws.close(f(one, y), (one * y, y, one, one + y[0, 0]), 1e-14, 1e-14)


ISLANDS: dict[str, Callable[..., Any]] = {
    "fft": lambda a: xp.abs(xp.fft.ifft(xp.exp(1j * xp.real(a)) * xp.fft.fft(a))),
    "read twice": lambda a: (lambda s: s * xp.conj(s) + xp.fft.ifft(s) * a)(xp.fft.fft(a * a)),
    "several results": lambda a: (lambda w, v: w * xp.real(v) + xp.imag(v))(
        *xp.linalg.eigh((a @ xp.conj(a.T) + xp.conj(a @ xp.conj(a.T)).T) * 0.5)),
    "products": lambda a: xp.sqrt(a @ a) @ (a * 2.0),
    "steps of Python": lambda a: ft.scan(
        lambda c, x: (xp.linalg.qr(c * x)[0], xp.sum(xp.real(c))), xp.exp(a), a * 2.0),
    "steps that may raise": lambda a: (lambda k: ft.scan(
        lambda c, j: (c * 0.9 + (a * 2.0)[j], xp.abs(c)), a[0] * 2.0, k))(
        xp.astype(xp.real(a[0]) * 0, xp.int64)),
    "a branch of Python": lambda a: ft.cond(
        xp.real(a[0, 0]) < 99, lambda c: xp.linalg.qr(c)[1] * 2.0, xp.exp, a * a) + 1.0,
    "a while of Python": lambda a: ft.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0] + 1, xp.linalg.qr(c[1] * a)[0]), (0, a * a))[1] * 2.0,
    "no steps": lambda a: ft.scan(lambda c, x: (c * x, c), a * a, a[:0, 0])[1],
    "given back": lambda a: (a, xp.fft.fft(a), a + xp.fft.fft(a), xp.reshape(a * 2, (-1,))),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ISLANDS)
def test_islands(name: str, dtype: str) -> None:
    """Ops without a rule take and give complex arrays, with machine code around them."""
    f = ISLANDS[name]
    a = xp.reshape(numbers(dtype, 64, 0, odd=False), (8, 8))
    assert in_pairs(ft.make_graph(f)(a), islands=is_lowered) is not None
    eps = 300 * float(np.finfo(dtype).eps)
    for x in (a, a.T, a[::-1, :]):
        laws.close(ft.jit(f, mode="reduce-overhead")(x), f(x), eps, eps)


ONE_NUMBER: dict[str, Callable[..., Any]] = {
    "updates": lambda a: xp.exp(a).at[::2].max(0),
    "a constant": lambda a: xp.fft.fft(xp.full_like(a, 2 + 2j)) * a,
    "rows": lambda a: special.ndtr(a.at[1:].set(0)),
    "a product": lambda a: xp.exp(a) @ xp.zeros_like(a),
}


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ONE_NUMBER)
def test_one_number_for_many(name: str, dtype: str) -> None:
    """A number whose parts are alike, broadcast, is one real number, to islands as well."""
    f = ONE_NUMBER[name]
    a = xp.reshape(numbers(dtype, 4096, 0, odd=False), (64, 64))
    eps = 300 * float(np.finfo(dtype).eps)
    laws.close(ft.jit(f)(a), f(a), eps, eps)


@pytest.mark.parametrize("spec", ["ij,jk->ik", "bij,bjk->bki", "i,j->ij", "ij,ij->", "ij,k->kj"])
def test_contractions_in_loops(spec: str) -> None:
    """Four real ones, whatever axes they sum over."""
    rng, sizes = np.random.default_rng(0), dict(zip("bijk", (2, 3, 4, 5), strict=True))
    x, y = (
        xp.asarray(rng.normal(size=(300, *shape)) + 1j * rng.normal(size=(300, *shape)))
        for shape in ([sizes[c] for c in part] for part in spec.split("->")[0].split(","))
    )
    f = lambda x, y: ft.scan(lambda c, v: (c, xp.einsum(spec, *v)), 0.0, (x, y))[1]  # noqa: E731
    told = why_not_fused(ft.make_graph(f)(x, y))
    assert not any("Python goes through" in line for line in told)
    laws.close(ft.jit(f)(x, y), f(x, y), 1e-13, 1e-13)


def test_what_has_no_pairs() -> None:
    """Ops without a rule leave the graph as it is; a graph of real numbers is itself."""
    z, x = xp.ones(3, dtype=xp.complex64), xp.ones(3)
    for f in (xp.fft.hfft, lambda z: 0.0**z):
        assert in_pairs(ft.make_graph(f)(z)) is None
    for f in (xp.fft.fft, lambda z: xp.reshape(xp.fft.fft(z), (3, 1))):
        assert in_pairs(ft.make_graph(f)(z), islands=is_lowered) is None
    graph = ft.make_graph(lambda x: x + 1.0)(x)
    assert in_pairs(graph) is graph
    graph = ft.make_graph(lambda z: z[:, None] @ z[None])(z)
    assert in_pairs(graph) is not None
    assert in_pairs(graph, islands=is_lowered) is None


BESIDE_REAL: dict[str, Callable[..., Any]] = {
    "plus": lambda a, x: a + x,
    "less": lambda a, x: x - a,
    "times": lambda a, x: a * x,
    "over": lambda a, x: a / x,
    "under": lambda a, x: x / a,
    "where": lambda a, x: xp.where(xp.real(a) > 0, a, x),
    "where not": lambda a, x: xp.where(x > 0, x, a),
    "power": lambda a, x: a**x,
}


@pytest.mark.parametrize(("shape", "other"), [((0,), (3, 0)), ((1,), (3, 4)), ((2, 1), (1, 3))])
@pytest.mark.parametrize("name", BESIDE_REAL)
def test_real_arrays_spread_beside_complex_ones(
    name: str, shape: tuple[int, ...], other: tuple[int, ...]
) -> None:
    """The number that stands for their imaginary parts has no shape; both parts have the result's,
    also where NumPy computes what has no elements.
    """
    rng = np.random.default_rng(0)
    a = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype("complex64")
    x = (rng.normal(size=other) + 2).astype("float32")
    fun = lambda a, x: xp.diff(BESIDE_REAL[name](a, x), axis=0)  # noqa: E731
    graph = ft.make_graph(fun)(xp.asarray(a), xp.asarray(x))
    expected = fun(xp.asarray(a), xp.asarray(x))
    np.testing.assert_allclose(np.asarray(native(graph).run(a, x)[0]), expected, 1e-4, 1e-5)


@pytest.mark.parametrize("name", [*EXACT, *CLOSE])
def test_what_was_real(name: str) -> None:
    """Imaginary parts that are a number, the 0 of real arrays, are parts as others are."""
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=40).astype("float32") for _ in "xy")
    turned = {
        "both": lambda x, y: (x.astype("complex64"), y.astype("complex64")),
        "first": lambda x, y: (x.astype("complex64"), y + 1j * x),
        "second": lambda x, y: (y + 1j * x, x.astype("complex64")),
    }
    for way in turned.values():
        fun = lambda x, y, way=way: {**EXACT, **CLOSE}[name](*way(x, y))  # noqa: E731
        graph = ft.make_graph(fun)(xp.asarray(x), xp.asarray(y))
        expected = np.asarray(fun(xp.asarray(x), xp.asarray(y)))
        np.testing.assert_allclose(native(graph).run(x, y)[0], expected, 1e-4, 1e-5)


BESIDE = [np.dtype(d) for d in ("bool", "int8", "uint8", "int16", "int64", "f2", "f4", "f8", "c8")]


@pytest.mark.parametrize("shape", [(1, 0), (1,), (3,)], ids=str)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "pow", "where"])
def test_real_operands_have_the_precision_of_the_result(name: str, shape: tuple[int, ...]) -> None:
    """Beside parts of complex numbers, also where NumPy computes with these: each call gives the
    dtype that eager code gives.
    """
    op: Any = getattr(xp, name)
    fun = (lambda x, y: op(xp.equal(x, x), x, y)) if name == "where" else op
    for beside in BESIDE if shape[-1] == 0 else BESIDE[:2]:
        for dtype in ("complex64", "complex128") if shape[-1] == 0 else ("complex64",):
            x, y = xp.ones(shape, dtype=beside), xp.ones(shape, dtype=np.dtype(dtype))
            for pair in ((x, y), (y, x)):
                wanted = fun(*pair)
                compiled = ft.jit(fun, mode="reduce-overhead")
                for _ in range(3):
                    laws.close(compiled(*pair), wanted, rtol=1e-5)
