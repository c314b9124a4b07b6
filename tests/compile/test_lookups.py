"""Elements of tables in the loops that compute with them: eager's bits, and eager's refusals."""

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import funct as ft
import funct.array as xp
from funct.compile.loops.kernel import Kernel
from funct.compile.program import kernels_text
from funct.errors import IndexOutOfBoundsError
from tests.compile.checked import checking, run
from tests.compile.test_bounds import in_steps, made_of

DTYPES = ["float32", "float64", "float16", "int8", "int32", "int64", "uint8", "bool"]
INDICES = ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"]
LENGTHS = [1, 2, 3, 7, 16, 17, 32, 40, 67]


def numbers(rng: np.random.Generator, dtype: str, *shape: int) -> Any:
    x = rng.normal(size=shape) * 20
    return x > 0 if dtype == "bool" else x.astype(dtype)


def again(v: Any) -> Any:
    """Something that loops compute exactly."""
    return v | v if v.dtype == xp.bool else v + v


def fused(made: Any) -> bool:
    """Whether some loops look elements up themselves."""
    return any(isinstance(c.kernel, Kernel) and c.kernel.looks for c in made.calls)


def agree(fun: Callable[..., Any], *given: Any, looks: bool | None = True) -> None:
    """Compiled and checked loops give the bits of eager ops."""
    with np.errstate(all="ignore"):
        expected = ft.tree.leaves(fun(*map(xp.asarray, given)))
    with checking():
        checked = run(made_of(fun, *given), *given)
    made = made_of(fun, *given)
    assert looks is None or fused(made) == looks
    for threads in (1, 2):
        with ft.config.using(threads=threads):
            for found in (checked, made.run(*given), in_steps(fun, *given)):
                for a, b in zip(found, expected, strict=True):
                    assert a.dtype == b.dtype
                    np.testing.assert_array_equal(a, np.asarray(b))


PLACES = np.arange(2000)
RUNS = {
    "one": PLACES,
    "clipped": np.clip(PLACES, 40, 1900),
    "interrupted": np.where(PLACES % 97 == 0, 3, PLACES),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shift", [-300, -1, 0, 1, 7, 300])
@pytest.mark.parametrize("runs", RUNS)
def test_elements_side_by_side_and_others(dtype: str, shift: int, runs: str) -> None:
    """Runs of indices are read as vectors; one that is elsewhere has its vector gathered."""
    x, i = numbers(np.random.default_rng(0), dtype, 2000), RUNS[runs]
    moved = lambda x, i, s: again(x[xp.clip(i + s, -2000, 1999)])  # noqa: E731
    agree(moved, x, i, np.asarray(shift), looks=None)
    agree(lambda x, i: again(x[i]), x, i - 2000)


# What is done with rows and elements that were looked up: of exact ops, so that bits are eager's.
USES: dict[str, Callable[[Callable[..., Any], Any, Any], Any]] = {
    "computed": lambda look, x, i: again(look(x, i)),
    "twice": lambda look, x, i: (again(look(x, i)), again(again(look(x, i)))),
    "reshaped": lambda look, x, i: again(xp.reshape(look(x, i), (-1,))),
    "largest": lambda look, x, i: xp.max(again(xp.astype(look(x, i), xp.float64))),
    "largest of rows": lambda look, x, i: xp.max(
        again(xp.astype(look(x, i), xp.float64)), axis=-1, keepdims=True
    ),
    "less the largest": lambda look, x, i: (
        lambda v: xp.astype(v, xp.float64) - xp.max(xp.astype(v, xp.float64), axis=-1)[..., None]
    )(look(x, i)),
    "largest of columns": lambda look, x, i: xp.max(
        again(xp.astype(look(x, i), xp.float64)), axis=0
    ),
    "at computed indices": lambda look, x, i: again(look(x, xp.where(i > 0, i - 1, i))),
    "of a computed table": lambda look, x, i: again(look(again(x), i)),
    "beside its table": lambda look, x, i: (again(x), again(look(x, i))),
}


@given(st.data(), st.sampled_from(sorted(USES)), st.integers(0, 2**32 - 1))
def test_law(data: st.DataObject, use: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(data.draw(st.lists(st.sampled_from(LENGTHS), min_size=1, max_size=3)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    along = data.draw(st.booleans())
    if along:
        which = (*shape[:axis], data.draw(st.sampled_from(LENGTHS)), *shape[axis + 1 :])
    else:
        which = tuple(data.draw(st.lists(st.sampled_from(LENGTHS), max_size=2)))
    dtype, index = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(INDICES))
    order = data.draw(st.permutations(range(len(shape))))
    flipped = data.draw(st.booleans())
    x = numbers(rng, dtype, *[shape[order.index(a)] for a in range(len(shape))])
    i = rng.integers(-shape[axis] if index[0] == "i" else 0, shape[axis], which).astype(index)

    def look(x: Any, i: Any) -> Any:
        x = xp.permute_dims(x, order)
        x = xp.flip(x) if flipped else x
        found = xp.take_along_axis(x, i, axis=axis) if along else xp.take(x, i, axis=axis)
        return found[None] if not found.ndim else found

    def fun(x: Any, i: Any) -> Any:
        return USES[use](look, x, i)

    with np.errstate(all="ignore"):
        expected = ft.tree.leaves(fun(xp.asarray(x), xp.asarray(i)))
        found = ft.tree.leaves(ft.jit(fun, mode="reduce-overhead")(xp.asarray(x), xp.asarray(i)))
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


RNG = np.random.default_rng(5)
TABLE, ROWS = RNG.normal(size=(300, 67)), RNG.integers(-300, 300, 401)


LOOKS: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda x, i: xp.take(x, i, axis=0),
    "columns": lambda x, i: xp.take(x, i, axis=1),
    "elements": lambda x, i: xp.take(x, i, axis=0),
    "rows turned": lambda x, i: xp.take(xp.permute_dims(x, (1, 0)), i, axis=0),
    "one of each column": lambda x, i: xp.take_along_axis(x, i[None, :67], axis=0),
    "one of each row": lambda x, i: xp.take_along_axis(x, i[:100, None], axis=1),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", ["int32", "int64", "uint8"])
@pytest.mark.parametrize("look", LOOKS)
def test_rows_columns_and_elements(dtype: str, index: str, look: str) -> None:
    x = numbers(RNG, dtype, 100, 67)
    i = RNG.integers(0, 67, 401).astype(index)
    agree(lambda x, i: again(LOOKS[look](x, i)), x[0] if look == "elements" else x, i)


def test_one_nest_of_loops() -> None:
    """What is looked up is neither written nor read again."""

    def between(x: Any, i: Any, j: Any) -> Any:
        return xp.sum((x[i] - x[j]) ** 2, axis=-1)

    made = made_of(between, TABLE, ROWS, ROWS[::-1].copy())
    assert [type(c.kernel) for c in made.calls] == [Kernel]
    assert len(made.calls[0].kernel.stores) == 1


def test_indices_of_sums() -> None:
    """An index may be what an earlier walk along the row finds."""

    def fun(x: Any, y: Any) -> Any:
        i = xp.sum(xp.astype(y > 0, xp.int64), axis=1)
        return y * 2 + xp.take(x, i, axis=0)

    x, y = RNG.normal(size=(68, 67)), RNG.normal(size=(401, 67))
    agree(fun, x, y)


def test_several_walks_look_again() -> None:
    def normal(v: Any) -> Any:
        return v / xp.max(xp.abs(v), axis=-1, keepdims=True)

    agree(lambda x, i: normal(xp.take(x, i, axis=0)), TABLE, ROWS)
    agree(lambda x, i: normal(xp.take(x, i, axis=1)), TABLE, ROWS % 67)


def test_short_rows_are_copied() -> None:
    """Rows of a few elements are no rows for loops."""
    agree(lambda x, i: x[i] * 2, RNG.normal(size=(300, 3)), ROWS, looks=False)


def test_indices_that_are_their_table() -> None:
    i = RNG.integers(0, 5000, 5000)
    agree(lambda i: i[i] * 2 + i, i)


@pytest.mark.parametrize("wrong", [-301, 300, 2**31 - 1, -(2**31), 2**40, -(2**40)])
@pytest.mark.parametrize("axis", [0, 1])
def test_refused_as_eagerly(axis: int, wrong: int) -> None:
    """The first index that is not on its axis is told, wherever it stands, and nothing is lost."""
    x = xp.asarray(TABLE if axis == 0 else TABLE.T.copy())

    def fun(x: Any, i: Any) -> Any:
        return xp.take(x, i, axis=axis) * 2 + 1

    f, donating = ft.jit(fun), ft.jit(fun, donate_argnums=0)
    for place in (0, 7, 200, 400):
        i = ROWS.copy()
        i[place] = wrong
        with pytest.raises(IndexOutOfBoundsError) as eager:
            fun(x, xp.asarray(i))
        for g in (f, donating):
            with pytest.raises(IndexOutOfBoundsError) as compiled:
                g(x, xp.asarray(i))
            assert str(compiled.value) == str(eager.value)
    np.testing.assert_array_equal(np.asarray(f(x, xp.asarray(ROWS))), np.asarray(fun(x, ROWS)))


def test_what_stands_behind_the_last_index_is_not_one() -> None:
    """Lanes behind a row's end compute with indices that nobody gave."""
    x, i = RNG.normal(size=100), RNG.integers(0, 20, 4097)
    agree(lambda x, i: xp.take(x, i + 79, axis=0) * 2, x, i)


def test_effects_happen_once() -> None:
    """Loops would find after an effect that an op must raise, and all would be done again."""
    seen: list[Any] = []

    def told(v: Any) -> Any:
        seen.append(v)
        return v

    def fun(x: Any, i: Any) -> Any:
        s = ft.io_callback(told, ft.ShapeDtype((), np.dtype("float64")), xp.sum(x))
        return x[i] * s

    x = xp.asarray(TABLE)
    i = ROWS.copy()
    i[3] = 300
    f = ft.jit(fun)
    f(x, xp.asarray(ROWS))
    seen.clear()
    with pytest.raises(IndexOutOfBoundsError):
        f(x, xp.asarray(i))
    assert len(seen) == 1


def test_tables_are_not_written_over() -> None:
    """A result does not take the memory of a table that is still looked at."""

    def fun(x: Any, i: Any) -> Any:
        return x[i] * 2

    i = RNG.integers(0, 300, 300)
    x = xp.asarray(TABLE)
    expected = np.asarray(fun(x, xp.asarray(i)))
    found = ft.jit(fun, donate_argnums=0)(xp.asarray(TABLE.copy()), xp.asarray(i))
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_derivatives() -> None:
    def loss(x: Any, i: Any) -> Any:
        return xp.sum(xp.tanh(x[i]) * x[xp.flip(i)])

    x, i = xp.asarray(TABLE), xp.asarray(ROWS)
    for transform in (ft.grad, lambda f: ft.grad(lambda x, i: xp.sum(ft.grad(f)(x, i) ** 2))):
        f = transform(loss)
        np.testing.assert_allclose(ft.jit(f)(x, i), f(x, i), rtol=1e-10, atol=1e-12)
    lanes = xp.stack([i, xp.flip(i)])
    each = ft.vmap(loss, in_axes=(None, 0))
    np.testing.assert_allclose(ft.jit(each)(x, lanes), each(x, lanes), rtol=1e-12)


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("n", [1, 5, 70, 3001])
def test_indices_of_several_axes(dtype: str, n: int) -> None:
    """They are put on their axes by the loops that read, from either end, in every dtype."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 200)).astype("float32")
    i, j = (rng.integers(-90 if dtype[0] == "i" else 0, 90, n).astype(dtype) for _ in "ij")
    fun = lambda x, i, j: x[i, j] * 2 - x[j, i]  # noqa: E731
    assert dtype == "uint64" or "wrap_index" not in made_of(fun, x, i, j).text
    agree(fun, x, i, j)
    for k, wrong in ((0, 300), (1, 200), (1, -201)):
        if wrong not in range(np.iinfo(dtype).min, np.iinfo(dtype).max + 1):
            continue
        given = [i.copy(), j.copy()]
        given[k][-1] = wrong
        with pytest.raises(IndexError, match=rf"{wrong} is out of bounds"):
            ft.jit(fun, mode="reduce-overhead")(*map(xp.asarray, (x, *given)))


def test_a_row_of_indices_and_a_column() -> None:
    """They broadcast; what nobody reads of a result is looked at all the same."""
    rng = np.random.default_rng(0)
    x, i, j = rng.normal(size=(40, 30)), rng.integers(-40, 40, 50), rng.integers(-30, 30, 60)
    fun = lambda x, i, j: xp.sum(x[i[:, None], j] ** 2, axis=1)  # noqa: E731
    expected = np.sum(x[i[:, None], j] ** 2, axis=1)
    np.testing.assert_allclose(made_of(fun, x, i, j).run(x, i, j)[0], expected, 1e-12)
    j[-1] = 30
    with pytest.raises(IndexError, match="30 is out of bounds"):
        ft.jit(fun, mode="reduce-overhead")(*map(xp.asarray, (x, i, j)))


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
@pytest.mark.parametrize("index", ["int32", "uint8", "int64"])
@pytest.mark.parametrize("n", [7, 16, 33])
def test_many_look_ups_are_printed_once(dtype: str, index: str, n: int) -> None:
    """Each of a tree's levels looks up where to go on; all do by the same few functions."""
    rng = np.random.default_rng(n)
    x, child = numbers(rng, dtype, 60), rng.integers(0, 60, (9, 60)).astype(index)
    start = rng.integers(0, 60, (2, n)).astype(index)

    def walked(x: Any, child: Any, at: Any) -> Any:
        found = []
        for k in range(9):
            at = child[k][at]
            found.append(again(x[at]))
        return found

    agree(walked, x, child, start)
    kernels = [c.kernel for c in made_of(walked, x, child, start).calls]
    text = kernels_text([k for k in kernels if isinstance(k, Kernel) and k.looks])
    assert text.count("@looked_up") > text.count("define internal") * 3


def test_many_look_ups_refuse() -> None:
    """An index that is not on its axis is refused by each of them."""
    x, start = xp.arange(60.0), np.arange(40)
    for wrong in range(9):
        child = np.tile(np.arange(60), (9, 1))
        child[wrong, 39] = 60

        def walked(x: Any, child: Any, at: Any) -> Any:
            for k in range(9):
                at = child[k][at]
            return x[at] + 1

        f = ft.jit(walked, mode="reduce-overhead")
        with pytest.raises(IndexOutOfBoundsError):
            f(x, xp.asarray(child), xp.asarray(start))
        np.testing.assert_array_equal(
            f(x, xp.asarray(child), xp.asarray(start[:39])), start[:39] + 1
        )
