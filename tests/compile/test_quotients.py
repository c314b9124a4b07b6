"""Integer quotients and what they leave: NumPy's numbers in machine code, for every divisor."""

import warnings
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.device import host
from funct.device.machine_code import assembly
from funct.kernels.llvm import PTR, Module, typed
from funct.kernels.llvm.remainder import integer_quotient

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NEAR = [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 60, 63, 64, 65, 100, 127, 1_000_003, 2**31 - 1, 2**31]
FAR = [2**49, 2**50 - 1, 2**50, 2**50 + 1, 3 * 2**50, 2**52 - 1, 2**52, 2**52 + 1]
FAR += [2**53 + 1, 2**62 + 1, 2**63 - 1, 2**64 - 1]


def numbers(dtype: str, count: int = 3000) -> np.ndarray[Any, Any]:
    """Those at which a quotient may go wrong, then any."""
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    ends = [info.max, info.max - 1, info.max // 2, info.max // 3, info.min, info.min + 1]
    some = [n for k in (*NEAR, *FAR, *ends) for n in (k, -k) if info.min <= n <= info.max]
    wide = rng.integers(info.min, info.max, count, dtype, endpoint=True)
    near = rng.integers(max(info.min, -(10**6)), min(info.max, 10**6), count).astype(dtype)
    return np.concatenate([np.asarray(some, dtype), wide, near])


@pytest.mark.parametrize("op", ["floor_divide", "remainder"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_by_arrays(dtype: str, op: str) -> None:
    """By every number, 0 and the least among them."""
    x = numbers(dtype)
    f = ft.jit(getattr(xp, op), mode="reduce-overhead")
    rng = np.random.default_rng(1)
    edges = np.resize(x[:60], len(x))
    with np.errstate(all="ignore"):
        for y in (x, x[::-1].copy(), rng.permutation(x), edges, rng.permutation(edges)):
            expected = getattr(np, op)(x, y)
            np.testing.assert_array_equal(f(xp.asarray(x), xp.asarray(y)), expected)


@pytest.mark.parametrize("op", ["floor_divide", "remainder"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_by_numbers(dtype: str, op: str) -> None:
    """Constants of the program."""
    x, info = numbers(dtype, 500), np.iinfo(dtype)
    divisors = [n for k in (*NEAR[1:], *FAR) for n in (k, -k) if info.min <= n <= info.max]
    fun = getattr(xp, op)
    f = ft.jit(lambda x: [fun(x, n) for n in divisors], mode="reduce-overhead")
    with np.errstate(all="ignore"):
        for found, n in zip(f(xp.asarray(x)), divisors, strict=True):
            expected = getattr(np, op)(x, np.asarray(n, dtype))
            np.testing.assert_array_equal(found, expected, err_msg=str(n))


@pytest.mark.parametrize("op", ["floor_divide", "remainder"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_large_arrays_of_eager_code(dtype: str, op: str) -> None:
    """NumPy's numbers, and its warnings where a divisor is 0."""
    x, fun = numbers(dtype, 20_000), getattr(xp, op)
    divisors = np.maximum(np.abs(np.random.default_rng(2).permutation(x)), 1)
    for y in (divisors, divisors[:1], np.where(divisors < 1, 1, divisors), -divisors):
        with np.errstate(all="ignore"):
            expected = getattr(np, op)(x, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = fun(xp.asarray(x), xp.asarray(y))
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == dtype
    for n in (7, 8, 100):
        np.testing.assert_array_equal(fun(xp.asarray(x), n), getattr(np, op)(x, x.dtype.type(n)))
    np.testing.assert_array_equal(fun(xp.asarray(x)[:, None][:0], xp.asarray(x)).shape, (0, len(x)))
    divisors[5] = 0
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        zero = fun(xp.asarray(x), xp.asarray(divisors))
    assert zero[5] == 0


@pytest.mark.parametrize("element", ["i32", "i64", "u32", "u64"])
def test_vectors_are_not_divided_by_constants(element: str) -> None:
    """They are multiplied by what a constant is known to be; others are divided as doubles."""

    def code(number: int | None) -> str:
        module = Module()
        f = module.function("kernel", [("p", PTR), ("q", PTR)])
        wide, (p, q) = typed(element, 4), f.arguments
        divisor = f.load(wide, q) if number is None else f.constant(wide, number)
        f.store(integer_quotient(f, f.load(wide, p), divisor)[0], p)
        f.ret()
        return module.text()

    assert "fdiv" in code(None)
    assert "divpd" not in assembly(code(7), host())
    assert "fdiv" not in code(8)


def test_a_constant_knows_its_number() -> None:
    f = Module().function("kernel", [("p", PTR)])
    for lanes in (1, 4):
        assert [f.constant(typed("i64", lanes), n).whole for n in (0, 7, -3)] == [0, 7, -3]
        assert f.constant(typed("f64", lanes), 7).whole is None
        assert f.load(typed("i64", lanes), f.arguments[0]).whole is None
