"""`x.at[key].add(v)` adds in order, as `numpy.add.at` does, and leaves the rest alone."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import IndexOutOfBoundsError

KEYS: dict[str, Any] = {
    "a number": 3,
    "a slice": slice(2, 11),
    "every second": slice(1, None, 2),
    "positions, some twice": np.array([3, -1, 3, 0, 3, 7]),
    "one position": np.array([5]),
    "a table of positions": np.array([[3, 11, 3], [-12, 3, 0]]),
    "a mask": np.arange(12) % 3 == 1,
}
WAYS: dict[str, Any] = {
    "eagerly": lambda f: f,
    "jit": ft.jit,
    "jit, given away": lambda f: ft.jit(f, donate_argnums=0),
    "grad": lambda f: lambda x, v: ft.vjp(f, x, v)[0],
    "jvp": lambda f: lambda x, v: ft.jvp(f, (x, v), (x, v))[0],
    "vmap": lambda f: lambda x, v: ft.vmap(f)(xp.stack([x, x + 1]), xp.stack([v, v]))[0],
}


@pytest.mark.pairwise(where=lambda way, dtype, **_: dtype[0] in "fc" or way not in ("grad", "jvp"))
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "uint8", "complex128"])
@pytest.mark.parametrize("columns", [(), (40,), (3000,)])
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("way", WAYS)
def test_additions_have_numpys_bits(
    way: str, key: str, columns: tuple[int, ...], dtype: str
) -> None:
    """Also where x is -0, which + 0 would make 0; for few elements and for many."""
    rng = np.random.default_rng(0)
    x = (10 * rng.normal(size=(12, *columns))).astype(dtype)
    x[::2] = -x[::2] * 0  # -0 among others, for floats
    v = (10 * rng.normal(size=x[KEYS[key]].shape)).astype(dtype)
    expected = x.copy()
    np.add.at(expected, KEYS[key], v)
    f = WAYS[way](lambda x, v: x.at[KEYS[key]].add(v))
    for _ in range(3):
        found = np.asarray(f(xp.asarray(x.copy()), xp.asarray(v)))
        assert found.tobytes() == expected.tobytes()


SEVERAL: dict[str, Any] = {
    "each of three axes": lambda i, j, k: (i, j, k),
    "two of three axes": lambda i, j, k: (i, j),
    "few bytes": lambda i, j, k: (i.astype("i2"), j.astype("i4"), k.astype("u1")),
    "a number among them": lambda i, j, k: (i, -2, k),
    "positions that broadcast": lambda i, j, k: (i[:, None], j, k[:, None]),
    "a slice behind": lambda i, j, k: (i, j, slice(1, None)),
    "a list": lambda i, j, k: (i, j.tolist(), k),
}


@pytest.mark.pairwise(
    where=lambda change, dtype, **_: (change, dtype[0]) not in {
        ("divide", "i"), ("min", "c"), ("max", "c"),
    }
)  # fmt: skip
@pytest.mark.parametrize("change", ["set", "add", "multiply", "min", "max", "divide"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "complex128"])
@pytest.mark.parametrize("key", SEVERAL)
@pytest.mark.parametrize("shape", [(3, 2, 2), (7, 11, 13)])
def test_several_axes_have_numpys_bits(
    shape: tuple[int, ...], key: str, dtype: str, change: str
) -> None:
    """In the order of the positions, whose parts may count from the end; few elements and many."""
    rng = np.random.default_rng(0)
    x = (10 * rng.normal(size=shape)).astype(dtype)
    count = 50 if len(key) > 20 else 300  # positions that broadcast are many more
    i, j = (rng.integers(-n, n, count) for n in shape[:2])
    at = SEVERAL[key](i, j, rng.integers(0, shape[2], count))
    v = rng.choice([-2, -1, 1], x[at].shape, p=[0.02, 0.48, 0.5]).astype(dtype)  # so all is exact
    ufuncs = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
    for value in (v, v.reshape(-1)[0]):
        expected = x.copy()
        if change == "set":
            expected[at] = value
        elif change == "divide":
            factors = np.ones_like(x)
            np.multiply.at(factors, at, value)
            expected = x / factors
        else:
            ufuncs[change].at(expected, at, value)
        found = np.asarray(getattr(xp.asarray(x).at[at], change)(xp.asarray(value)))
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("odd", [-12, 11])
@pytest.mark.parametrize("place", [0, 40, 49])
def test_one_position_outside_of_several_axes(axis: int, odd: int, place: int) -> None:
    """It is refused by name, on whichever axis it is."""
    x, at = xp.zeros((11, 11, 11)), np.random.default_rng(0).integers(-11, 11, (3, 50))
    at[axis, place] = odd
    for key in (tuple(at), (*at[:2, None], at[2][:, None])):
        for v in (1.0, xp.ones(np.broadcast_shapes(*[k.shape for k in key]))):
            with pytest.raises(IndexOutOfBoundsError):
                x.at[key].add(v)


@pytest.mark.parametrize("key", KEYS)
def test_gradients_of_additions(key: str) -> None:
    """x's is what comes, v's what comes at the key."""
    rng = np.random.default_rng(0)
    x, g = rng.normal(size=(2, 12, 4))
    v = rng.normal(size=x[KEYS[key]].shape)
    _, pull = ft.vjp(lambda x, v: x.at[KEYS[key]].add(v), xp.asarray(x), xp.asarray(v))
    of_x, of_v = pull(xp.asarray(g))
    assert np.array_equal(np.asarray(of_x), g)
    assert np.array_equal(np.asarray(of_v), g[KEYS[key]])


@pytest.mark.parametrize("change", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("length", [50, 100_000])
def test_a_loop_of_changes_is_numpys(change: str, length: int) -> None:
    """NaN, repeated places, and places counted from the end; the table is small or large."""
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=length), rng.normal(size=300)
    v[7] = x[3] = np.nan
    i = np.append(rng.integers(-20, 20, 299), 3)
    ufunc = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
    expected = x.copy()
    for k in range(len(v)):
        new = v[k] if change == "set" else ufunc[change](expected[i[k]], v[k])
        expected[i[k]] = new

    def run(x: Any, i: Any, v: Any) -> Any:
        return ft.fori_loop(0, 300, lambda k, c: getattr(c.at[i[k]], change)(v[k]), x)

    for f in (run, ft.jit(run)):
        found = np.asarray(f(xp.asarray(x), xp.asarray(i), xp.asarray(v)))
        assert np.array_equal(found, expected, equal_nan=True)
