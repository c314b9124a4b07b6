"""`x.at[key].add(v)` adds in order, as `numpy.add.at` does, and leaves the rest alone."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp

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


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "uint8", "complex128"])
@pytest.mark.parametrize("columns", [(), (40,), (3000,)])
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("way", WAYS)
def test_additions_have_numpys_bits(
    way: str, key: str, columns: tuple[int, ...], dtype: str
) -> None:
    """Also where x is -0, which + 0 would make 0; for few elements and for many."""
    if dtype[0] not in "fc" and way in ("grad", "jvp"):
        pytest.skip("integers have no derivative")
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
