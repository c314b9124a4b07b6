"""Elementwise functions: few elements, which a builtin looks at, and what is written in Python."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.kernels.cpu import often
from funct.kernels.cpu.elementwise import complexes as cpu
from funct.kernels.cpu.elementwise.guarded import Guarded
from funct.kernels.cpu.loops import available
from funct.kernels.elementwise import functions as kernels
from tests.kernels.arrays import SPECIAL, misaligned

pytestmark = pytest.mark.skipif(not available(), reason="there is no LLVM to compile with")

PARTS = (*SPECIAL, 0.3, -0.4, 90.0, -3.5, 1e300, -1e-200)


def _guards(f: Callable[..., Any]) -> Iterator[tuple[Guarded, Callable[..., Any]]]:
    """What stands behind a function, and the same that has loaded its code."""
    held = [c.cell_contents for c in f.__closure__ or ()] or [kernels._of_finite]
    for few in held:
        if isinstance(few, Guarded):
            loaded = Guarded.__new__(Guarded)
            loaded._given = few._given
            loaded.load()
            yield few, loaded.call


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "complex128", "int32", "bool"])
@pytest.mark.parametrize("name", ["expm1", "floor_divide", "log1p", "tanh"])
def test_few_are_what_many_are(name: str, kind: str) -> None:
    """Each pair of special parts alone and among others, in every layout; bits and warnings."""
    (few, call), = _guards(getattr(kernels, name))  # fmt: skip
    plain = few._given[1]
    if name == "floor_divide" and kind.startswith("c"):
        return
    for a, b in itertools.product(PARTS, repeat=2):
        with np.errstate(all="ignore"):
            each = complex(a, b) if kind.startswith("c") else a
            x = np.asarray([each, 2.0, each]).astype(kind)
            y = np.asarray([2.0, b, b]).astype(kind)
        rest = ((y,), (b,), (3,)) if name == "floor_divide" else ((),)
        shapes = x, x[0].reshape(()), x[::2], x[:0], misaligned(x), np.tile(x, 200)
        for v, others in itertools.product(shapes, rest):
            if others and isinstance(others[0], np.ndarray):
                others = (np.resize(y, v.shape),)
            found, expected = (_told(f, v, *others) for f in (call, plain))
            assert found == expected, (v, others)


def _told(f: Callable[..., Any], *args: Any) -> Any:
    """Bits, dtype and warnings."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        out = np.asarray(f(*args))
    return out.tobytes(), out.dtype, sorted({str(w.message) for w in heard})


def test_what_is_no_number_is_left() -> None:
    """Operands that the builtin does not know come to the function as they are."""
    seen = []
    few = Guarded(np.add, lambda *args: seen.append(args), [np.dtype("f8")], [np.dtype("i8")])
    few.load()
    x = np.arange(3)
    assert few.call(x, x).tolist() == [0, 2, 4]
    assert few.call(x, 2.5).tolist() == [2.5, 3.5, 4.5]
    for other in (np.inf, np.float64(1.0), "a", None, [1.0], x.astype("f4"), np.full(3, np.nan)):
        few.call(x, other)
        assert seen.pop()[1] is other
    with pytest.raises(ValueError, match="broadcast"):
        few.call(x, np.ones(2))


def test_code_comes_after_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, and only then."""
    monkeypatch.setattr(often, "_LOADED", 4)
    monkeypatch.setattr(often, "_OFTEN", 8)
    loads: list[int] = []
    counter = often.Often(lambda: loads.append(counter.calls))
    first = counter.counted(lambda x: x + 1)
    assert [first(n) for n in range(20)] == list(range(1, 21))
    assert loads in ([4], [8])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_log1p_near(dtype: str) -> None:
    """Machine code and Python; and one part of a number is not another."""
    rng = np.random.default_rng(0)
    x = (rng.uniform(-0.6, 0.6, 50) + 1j * rng.uniform(-0.6, 0.6, 50)).astype(dtype)
    x[:4] = 0, -0.0, np.inf, np.nan
    compiled, checked = np.zeros_like(x), np.zeros_like(x)
    cpu.log1p_near(x, compiled, 50)
    cpu.log1p_near.checked(x, checked, 50)
    # machine code calls the C library's log1p; NumPy has one of its own where there is AVX-512
    np.testing.assert_array_max_ulp(compiled.real, checked.real, 2)
    np.testing.assert_array_equal(compiled.imag, checked.imag)
    expected = np.log1p(x.astype(np.complex128))
    rtol = 1e-6 if dtype == "complex64" else 1e-14
    np.testing.assert_allclose(kernels.log1p(x)[4:], expected[4:], rtol)


NUMBERS = (-5, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 0.5, -0.5, 1.5, 2.5, -2.0, 3.0, np.inf, 33)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("y", NUMBERS)
def test_powers_by_a_number(y: float, kind: str) -> None:
    """Of numbers of both signs within 2 ulp, special ones as C has them, into `out` and over the
    operand too; an array without axes is the number that it holds.
    """
    wide = np.float64 if kind == "float32" else np.longdouble
    sizes = np.random.default_rng(0).uniform(-30, 30, 300)
    x = np.concatenate([np.exp2(sizes), -np.exp2(sizes), SPECIAL, [5e-39, -5e-324]]).astype(kind)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(wide), wide(y))
        want[np.isneginf(x) & (y == 0.5)] = np.inf
        if y == 0.5:
            want = np.abs(want)  # of -0 too
        rounded = want.astype(kind)
        got = kernels.power(x, y)
        assert got.dtype == kind
        ulp = np.spacing(np.abs(rounded)).astype(wide)
        near = np.isfinite(rounded) & np.isfinite(got)
        assert np.max((np.abs(got - want) / ulp)[near]) < 2
        np.testing.assert_array_equal(got[~near], rounded[~near])
        np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(rounded[got == 0]))
        out = np.empty_like(x)
        assert kernels.power(x, y, out) is out
        over = x.copy()
        kernels.power(over, y, over)
        for other in (out, over, kernels.power(x, np.asarray(y, kind))):
            np.testing.assert_array_equal(other, got)
        each = [kernels.power(x[k : k + 1].reshape(()), y) for k in range(x.size)]
        np.testing.assert_array_equal(np.asarray(each), got)  # whatever stands beside it


@pytest.mark.parametrize("dtype", ["b", "B", "h", "H", "i", "I", "l", "L"])
def test_squares_and_cubes_of_integers_are_numpys(dtype: str) -> None:
    x = np.arange(0, 250, 3).astype(dtype)
    for y in (0, 1, 2, 3, 4, 2.0, 3.0):
        np.testing.assert_array_equal(kernels.power(x, y), np.power(x, y), strict=True)
    truth = np.asarray([True, False])
    np.testing.assert_array_equal(kernels.power(truth, 2), np.power(truth, 2), strict=True)


@pytest.mark.parametrize("dtype", ["F", "D"])
def test_cubes_of_complex_numbers_are_products(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = (rng.normal(size=99) + 1j * rng.normal(size=99)).astype(dtype)
    found, wanted = kernels.power(x, 3), x.astype("D") ** 3
    assert found.dtype == x.dtype
    assert np.all(np.abs(found - wanted) <= 4 * np.finfo(x.dtype).eps * np.abs(wanted))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", [xp.floor_divide, xp.remainder])
@pytest.mark.parametrize("dtype", [xp.int4, xp.uint4])
def test_quotients_of_four_bits(dtype: Any, op: Any) -> None:
    """On many elements too a divisor of 0 gives 0; others give what wider integers give."""
    low, high = int(xp.iinfo(dtype).min), int(xp.iinfo(dtype).max)
    a = np.arange(low, high + 1).repeat(80)
    b = np.tile(np.arange(low, high + 1), 80)
    wide = getattr(np, op.__name__)(a, b)
    expected = (wide - low) % 16 + low
    x, y = (xp.asarray(v.astype(np.dtype(dtype))) for v in (a, b))
    for found in (op(x, y), ft.jit(op)(x, y), ft.jit(lambda x, y: op(x, y) + 0)(x, y)):
        assert found.dtype == dtype
        assert np.asarray(found).astype(np.int64).tolist() == expected.tolist()
    assert not np.any(np.asarray(op(x, 0)))
    assert not np.any(np.asarray(op(xp.asarray(a > 0), xp.zeros(1280, dtype=dtype))))
