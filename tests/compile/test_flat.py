"""Ops on flat arrays as steps of loops: eager's numbers, and no Python between the steps."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
import funct.random as random
from funct.compile.control import made
from funct.graph import Control, Node
from funct.kernels.cpu.loops import kernel
from funct.kernels.cpu.order import places as places_among
from funct.kernels.cpu.order import sorting
from funct.kernels.cpu.random import bits as random_bits
from tests import laws
from tests.compile.test_bounds import made_of

RNG = np.random.default_rng(0)
DTYPES = ["float64", "float32", "int64", "int16", "uint8", "uint32", "bool"]


def _rows(dtype: str, n: int) -> np.ndarray[Any, Any]:
    """Rows with ties; floats with zeros of both signs and NaN; one ascends, one descends."""
    x = RNG.integers(0, 9 + n // 4, (5, n)).astype(dtype)
    if x.dtype.kind == "f":
        x[:2] -= 3
        x[RNG.random((5, n)) < 0.1] = np.nan
        x[RNG.random((5, n)) < 0.2] = -0.0
    x[3] = np.arange(n).astype(dtype)
    x[4] = x[3, ::-1]
    return x


def _same_in_a_loop(step: Any, xs: Any) -> None:
    """A scan over xs gives what the function gives of each x, by machine code alone; and so does
    the function by itself.
    """

    def scan(xs: Any) -> Any:
        return ft.scan(lambda c, x: (c + 1, step(x)), 0, xs)[1]

    graph = ft.make_graph(scan)(xs)
    (loop,) = [e for e in graph.nodes if isinstance(e, Node) and isinstance(e.primitive, Control)]
    assert made(loop.primitive.kind.form()) is not None
    repeated = xp.concat([xs] * 60)
    found = ft.jit(scan)(repeated)
    expected = [step(xs[k]) for k in range(xs.shape[0])] * 60
    laws.same(found, ft.tree.map(lambda *ys: xp.stack(ys), *expected))
    alone = ft.jit(step, mode="reduce-overhead")
    for k in range(xs.shape[0]):
        laws.same(alone(xs[k]), step(xs[k]))


@pytest.mark.parametrize("n", [8, 1024, 1025])
def test_few_elements_are_one_program(n: int) -> None:
    """Many are worth a call of what several threads may share."""
    x = RNG.normal(size=n)

    def fun(x: Any) -> Any:
        i0 = xp.special.i0e(xp.sort(x) * 2.0)
        return xp.cumulative_sum(i0) + 1.0, xp.argsort(x) * 2

    native = made_of(fun, x)
    assert (native.whole is not None) == (n <= 1024)
    laws.same([xp.asarray(y) for y in native.run(x)], list(fun(xp.asarray(x))))


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (9,), (300,), (3, 4), (2, 3, 11), (5, 1)])
def test_running_sums(dtype: str, shape: tuple[int, ...]) -> None:
    """Along each axis, of what is a look at something else too; products and recurrences."""
    x = RNG.normal(size=(3, *shape)) * 2
    if dtype[:5] == "float":
        x[RNG.random(x.shape) < 0.05] = -0.0
        x[0].flat[-1], x[1].flat[0] = np.inf, np.nan

    def step(x: Any) -> Any:
        found = []
        for axis in range(x.ndim):
            found += [xp.cumulative_sum(y, axis=axis) for y in (x, xp.flip(x, axis=axis))]
            found += [xp.cumulative_prod(y, axis=axis) for y in (x, x.mT if x.ndim > 1 else x)]
        return found

    with np.errstate(all="ignore"):
        _same_in_a_loop(step, xp.asarray(x.astype(dtype)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1,), (40,), (3, 4), (2, 3, 11)])
def test_recurrences(dtype: str, shape: tuple[int, ...]) -> None:
    """What derivatives of running products are."""
    x = xp.asarray(RNG.normal(size=(3, *shape)).astype(dtype))
    axis = len(shape) - 1
    loss = lambda x: xp.sum(xp.cumulative_prod(x, axis=axis) ** 2)  # noqa: E731
    scan = lambda x: ft.scan(lambda c, x: (c * 0.5, ft.grad(loss)(x) + c), 1.0, x)[1]  # noqa: E731
    repeated, eps = xp.concat([x] * 60), 64 * float(np.finfo(dtype).eps)
    laws.close(ft.jit(scan)(repeated), scan(repeated), eps, eps)


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 7, 8, 9, 40, 131])
@pytest.mark.parametrize("descending", [False, True])
def test_sorting(dtype: str, n: int, descending: bool) -> None:
    """Stable in both directions; NaN is the largest."""

    def step(x: Any) -> Any:
        given = {"descending": descending}
        both = xp.stack([x, x[::-1]])
        return xp.sort(x, **given), xp.argsort(x, **given), xp.sort(both, **given)

    _same_in_a_loop(step, xp.asarray(_rows(dtype, n)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "k"), [(1, 1), (40, 1), (40, 5), (40, 40), (131, 32), (131, 33)])
def test_the_largest(dtype: str, n: int, k: int) -> None:
    """By insertion and by sorting, also of rows that ascend."""
    _same_in_a_loop(lambda x: tuple(xp.top_k(x, k)), xp.asarray(_rows(dtype, n)))


@pytest.mark.parametrize("n", [1, 3, 16, 33])
def test_random_numbers(n: int) -> None:
    """The bits of each key are those outside of a loop."""

    def step(key: Any) -> Any:
        keys = random.split(key, n)
        folded = random.fold_in(keys[0], xp.astype(key[0], "int64") * -7)
        normal = [random.normal(k, (n, 2), dtype=d) for k in (key, folded) for d in FLOATS]
        uniform = [random.uniform(keys[-1], (n,), dtype=d) for d in FLOATS]
        each = ft.vmap(lambda k: random.normal(k, (3,)))(keys)
        return keys, folded, normal, uniform, random.bits(key, (n,)), each

    _same_in_a_loop(step, random.split(random.key(3), 5))


FLOATS = ("float32", "float64")


SLOWER = [pytest.param(n, marks=pytest.mark.slow) for n in (5, 40)]


@pytest.mark.parametrize("n", [1, *SLOWER, 1500])
def test_draws_by_rejection(n: int) -> None:
    """They are those outside of a loop: of numbers, of arrays, of keys and parameters in lanes."""

    def step(key: Any) -> Any:
        a = random.uniform(key, (n,), minval=0.2, maxval=20.0)
        keys = random.split(key, n)
        gamma = [random.gamma(key, v, (n,), d) for v in (0.5, 30.0, a) for d in FLOATS]
        counts = [random.poisson(key, v, (2, n), d) for v in (0.5, a) for d in ("int64", "uint8")]
        lanes = ft.vmap(random.gamma)(keys, a), ft.vmap(lambda k: random.poisson(k, 11.0))(keys)
        return gamma, counts, lanes, ft.vmap(lambda v: random.gamma(key, v, (3,)))(a)

    _same_in_a_loop(step, random.split(random.key(3), 2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -2, -3])
def test_other_axes(dtype: str, axis: int) -> None:
    """Sorted along axes that do not lie last, of what is a look at something else too."""
    x = xp.asarray(np.stack([_rows(dtype, n=24)[k:].reshape(-1)[:48] for k in range(3)]))
    x = xp.reshape(x, (3, 4, 6, 2))
    along = axis % 3 if axis < 0 else axis

    def step(x: Any) -> Any:
        top = xp.top_k(x, 2, axis=along)
        order = xp.argsort(x, axis=axis, descending=True)
        return xp.sort(x, axis=axis), order, *top, xp.sort(x.mT, axis=axis)

    _same_in_a_loop(step, x)


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 5), (7, 31), (64, 32), (65, 40), (300, 3)])
def test_places_among_what_is_sorted(dtype: str, side: str, n: int, m: int) -> None:
    """NaN and zeros of both signs on either side, ties, and values beyond the ends."""
    x, v = np.sort(_rows(dtype, n), -1), _rows(dtype, m)
    _same_in_a_loop(
        lambda p: xp.searchsorted(p[:n], p[n:], side=side), xp.asarray(np.concatenate([x, v], -1))
    )


@pytest.mark.parametrize("dtype", DTYPES[:-1])
@pytest.mark.parametrize("shape", [(1,), (33,), (3, 4), (2, 9, 3)])
def test_running_extrema(dtype: str, shape: tuple[int, ...]) -> None:
    """Along each axis."""
    x = xp.reshape(xp.asarray(_rows(dtype, 54).reshape(-1)[: 3 * np.prod(shape)]), (3, *shape))
    axes = range(len(shape))
    _same_in_a_loop(lambda x: [xp.cumulative_max(x, axis=k) for k in axes], x)
    _same_in_a_loop(lambda x: [xp.cumulative_min(x, axis=k) for k in axes], x)


def test_walks_and_beams() -> None:
    """Programs of users: keys that are carried, and a search that keeps the best."""

    def walk(key: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            key, x = c
            key, now = random.split(key, 2)
            x = x + random.normal(now, (5,))
            return (key, x), x

        return ft.scan(step, (key, xp.zeros(5)), None, length=300)[1]

    laws.same(ft.jit(walk)(random.key(1)), walk(random.key(1)))

    def beam(table: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            scores, at = c
            best, places = xp.top_k(xp.reshape(table[at] + scores[:, None], (-1,)), 4)
            return (best, places % 30), places // 30

        return ft.scan(step, (xp.zeros(4), xp.asarray([0, 1, 2, 3])), None, length=100)

    table = xp.asarray(RNG.normal(size=(30, 30)))
    laws.same(ft.jit(beam)(table), beam(table))


def test_derivatives_of_sorted_steps() -> None:
    """What the rules make of a loop that sorts."""

    def loss(x: Any) -> Any:
        step = lambda c, _: (xp.sort(xp.sin(c * 2.0)), xp.top_k(c, 2)[0])  # noqa: E731
        last, best = ft.scan(step, x, None, length=40)
        return xp.sum(last * last) + xp.sum(best)

    x = xp.asarray(RNG.normal(size=(20,)))
    laws.close(ft.jit(ft.grad(loss))(x), ft.grad(loss)(x), 1e-12, 1e-12)
    laws.close(ft.jit(ft.vmap(loss))(xp.stack([x, -x])), xp.stack([loss(x), loss(-x)]), 1e-13, 0)


@pytest.mark.parametrize("n", [1, 8, 9, 37])
def test_kernels_stay_within_their_arrays(n: int) -> None:
    """With every index checked."""
    rows, k = 3, min(n, 4)
    x = RNG.integers(0, 9, (rows, n)).astype(np.float64)
    at, values = np.empty((rows, n), np.int64), np.empty((rows, k))
    kernel(sorting.order).checked(x, at, np.empty(n, np.int64), rows, n, True)
    np.testing.assert_array_equal(at, np.argsort(-x, 1, "stable"))
    places = np.empty((rows, k), np.int64)
    kernel(sorting.first_of).checked(x, at, values, places, rows, n, k)
    np.testing.assert_array_equal(values, -np.sort(-x, 1)[:, :k])
    np.testing.assert_array_equal(places, at[:, :k])
    keys = RNG.integers(0, 2**32, (rows, 2), np.uint32)
    y, rest = np.empty((rows, n)), np.empty(random_bits.LANES)
    kernel(random_bits.draw_all).checked(keys, y, rest, rows, n, "normal")
    np.testing.assert_array_equal(y, random_bits.numbers(keys, (n,), y.dtype, "normal"))
    found = np.empty(n, np.int64)
    kernel(places_among.search_all).checked(np.sort(x[0]), x[1], found, n, n, True)
    np.testing.assert_array_equal(found, np.searchsorted(np.sort(x[0]), x[1]))
    folded = np.empty_like(keys)
    kernel(random_bits.fold_all).checked(keys, np.asarray([1, 2, 3]), folded, rows)
    one = [random_bits.hash_one(key, d) for key, d in zip(keys, (1, 2, 3), strict=True)]
    np.testing.assert_array_equal(folded, one)
