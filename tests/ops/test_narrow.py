"""The narrow dtypes of ml_dtypes are dtypes like any other: for ops, numbers and derivatives."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import nn, optim
from funct.core import FLOATING, INEXACT, Absent, Primitive, Sample, catalogue
from funct.errors import DTypeError

NARROW_FLOATS = [xp.bfloat16, xp.float8_e4m3fn, xp.float8_e5m2]
BFLOAT16, FLOAT32 = np.dtype(xp.bfloat16), np.dtype(np.float32)

# LAPACK, quantization and integer operands beside short floats: refused by name
REFUSALS = "single or double precision|must be floating|not defined for int64"

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered:RuntimeWarning")


WIDE_RESULTS = {("attention", 1)}  # a logarithm: its rounding would be a share of every weight


def cases() -> list[Any]:
    """Samples whose operands, where floating, are real; not the ones that state a dtype."""
    return [
        pytest.param(p, s, id=f"{p.name}-{k}")
        for p in catalogue()
        for k, s in enumerate(p.samples(np.random.default_rng(7)))
        if any(np.asarray(a).dtype in FLOATING for a in s.args)
        and not any(np.asarray(a).dtype.kind == "c" for a in s.args)
        and not any(isinstance(v, np.dtype) for v in s.params)
    ]


def results(out: Any) -> tuple[Any, ...]:
    """The results of an op, one or several."""
    return out if isinstance(out, tuple) else (out,)


def wide(x: Any) -> Any:
    """The elements as NumPy knows them."""
    return np.asarray(xp.astype(x, xp.float64) if x.dtype in FLOATING else x)


@pytest.mark.parametrize(("prim", "sample"), cases())
def test_catalogue_in_bfloat16(prim: Primitive, sample: Sample) -> None:
    """float32's values rounded, in bfloat16, abstractly and compiled too; so are derivatives."""
    args = [xp.asarray(a) for a in sample.args]
    args = [xp.astype(a, BFLOAT16) if a.dtype in FLOATING else a for a in args]
    singles = [xp.astype(a, FLOAT32) if a.dtype == BFLOAT16 else a for a in args]

    def fun(*xs: Any) -> tuple[Any, ...]:
        return results(prim.fn(*xs, *sample.params))

    expected = fun(*singles)
    try:
        found = fun(*args)
    except DTypeError as error:
        if not re.search(REFUSALS, str(error)):
            raise
        return
    abstract, compiled = ft.eval_shape(fun, *args), ft.jit(fun)(*args)
    for k, (y, w, a, c) in enumerate(zip(found, expected, abstract, compiled, strict=True)):
        narrow = w.dtype == FLOAT32 and (prim.name, k) not in WIDE_RESULTS
        assert y.dtype == a.dtype == c.dtype == (BFLOAT16 if narrow else w.dtype)
        np.testing.assert_array_equal(wide(y), wide(c))
        if w.dtype in INEXACT:
            size = np.max(np.abs(wide(w)), initial=0.0, where=np.isfinite(wide(w)))
            np.testing.assert_allclose(wide(y), wide(w), rtol=2.0**-7, atol=2.0**-13 * size)
    if sample.smooth and any(y.dtype in INEXACT for y in found):
        check_gradients(prim, fun, args, singles)


def check_gradients(prim: Primitive, fun: Callable[..., Any], args: Any, singles: Any) -> None:
    """In every operand's own dtype; a rule of several ops rounds each of them to 8 bits."""
    rules = [r for r, a in zip(prim.rules, args, strict=True) if a.dtype == BFLOAT16]
    if any(isinstance(r, Absent) for r in rules):
        return

    def total(*xs: Any) -> Any:
        return sum(xp.sum(xp.real(y)) for y in fun(*xs) if y.dtype in INEXACT)

    at = tuple(i for i, a in enumerate(args) if a.dtype == BFLOAT16)
    for g, w in zip(ft.grad(total, at)(*args), ft.grad(total, at)(*singles), strict=True):
        assert g.dtype == BFLOAT16
        size = np.max(np.abs(wide(w)), initial=0.0)
        rounding = 2.0**-22  # of float32, which is all there is where the sum does not vary
        np.testing.assert_allclose(wide(g), wide(w), rtol=0, atol=2.0**-3 * size + rounding)


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "x * 2.0": lambda x: x * 2.0,
    "0.1 - x": lambda x: 0.1 - x,
    "x / 3": lambda x: x / 3,
    "x + True": lambda x: x + True,
    "x ** 2.5": lambda x: x**2.5,
    "2.0 ** x": lambda x: 2.0**x,
    "maximum": lambda x: xp.maximum(x, 0.3),
    "hypot": lambda x: xp.hypot(0.3, x),
    "where": lambda x: xp.where(x > 0.3, 0.0, x),
    "clip": lambda x: xp.clip(x, 0.1, 0.5),
    "full_like": lambda x: x * xp.full_like(x, 2.0),
    "pad": lambda x: xp.pad(x, 1, constant_values=0.5),
    "interp": lambda x: xp.interp(x, xp.asarray([0.0, 1.0], dtype=x.dtype), x[:2]),
    "trapezoid": lambda x: xp.trapezoid(x, dx=0.5),
    "at.multiply": lambda x: x.at[0].multiply(2.0),
    "select": lambda x: xp.select([x > 0.5], [x], 0.1),
    "xlogy": lambda x: xp.special.xlogy(2.0, x),
    "mean": xp.mean,
    "std": lambda x: xp.std(x, correction=1.0),
    "nanmean": xp.nanmean,
    "quantile": lambda x: xp.quantile(x, 0.3),
    "softmax": lambda x: nn.functional.softmax(x, 0),
    "gelu": nn.functional.gelu,
    "huber_loss": lambda x: nn.functional.huber_loss(x, 0.5 * x),
}


@pytest.mark.parametrize("dtype", NARROW_FLOATS, ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", NUMBERS)
def test_python_numbers_are_weak(name: str, dtype: Any) -> None:
    """A number beside a narrow array takes its dtype: eager, compiled, batched, differentiated."""
    fun = NUMBERS[name]
    x = xp.asarray([0.5, 0.25, 0.75, 0.125], dtype=dtype)
    y = fun(x)
    assert y.dtype == dtype
    for other in (ft.jit(fun)(x), ft.vmap(fun)(xp.stack([x, x]))[0]):
        assert other.dtype == dtype
        np.testing.assert_array_equal(wide(other), wide(y))
    total = ft.grad(lambda x: xp.sum(fun(x)))
    assert total(x).dtype == ft.jit(total)(x).dtype == dtype
    assert ft.jvp(fun, (x,), (xp.ones_like(x),))[1].dtype == dtype


def test_numbers_are_rounded_before_the_op() -> None:
    """As in NumPy's float16 and in JAX: an array of 0.1 equals 0.1."""
    x = xp.asarray([0.1], dtype=xp.bfloat16)
    assert xp.all(x == 0.1)
    assert xp.all(xp.equal(0.1, x))
    assert xp.all(ft.jit(lambda x: x == 0.1)(x))


def test_result_type_of_numbers() -> None:
    """Weak there too; complex numbers and other arrays promote."""
    for dtype in NARROW_FLOATS:
        assert xp.result_type(dtype, 2.0) == xp.result_type(1, dtype, True) == dtype
        assert xp.result_type(dtype, xp.float32, 2.0) == xp.float32
        assert xp.result_type(dtype, 1j) == (xp.ones(1, dtype=dtype) * 1j).dtype == xp.complex64


def test_integers_of_four_bits() -> None:
    """A number that fits is weak; one that does not widens, and comparisons stay right."""
    x = xp.asarray([1, -3], dtype=xp.int4)
    assert (x + 1).dtype == (1 + x).dtype == xp.result_type(xp.int4, 1) == xp.int4
    assert xp.where(x > 0, x, 0).dtype == xp.int4
    assert (x < 9).tolist() == [True, True]
    assert xp.sum(xp.full(20, 7, dtype=xp.int4)).tolist() == 140  # as for int8: in int64
    assert x[0].item() == 1


@pytest.mark.parametrize("dtype", NARROW_FLOATS, ids=lambda t: t.__name__)
def test_sums_are_rounded_once(dtype: Any) -> None:
    """Partial sums are float32: else 1 + 1 + ... would stop where 1 is half a last place."""
    x = xp.full((2, 256), 0.5, dtype=dtype)
    assert xp.sum(x, axis=1).tolist() == [128.0, 128.0]
    assert xp.cumulative_sum(x, axis=1)[:, -1].tolist() == [128.0, 128.0]
    assert (x @ xp.matrix_transpose(x)).tolist() == [[64.0, 64.0]] * 2
    assert xp.einsum("ij,kj->ik", x, x).dtype == dtype
    assert ft.jit(lambda x: xp.sum(x, axis=1))(x).tolist() == [128.0, 128.0]


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
def test_optimizers_keep_the_dtype(name: str) -> None:
    """Parameters in bfloat16 are trained and stay bfloat16."""
    opt = getattr(optim, name)(0.1)
    params = {"w": xp.asarray([1.0, -2.0], dtype=xp.bfloat16)}
    state = opt.init(params)
    for _ in range(3):
        grads = ft.grad(lambda p: xp.sum(p["w"] ** 2))(params)
        assert grads["w"].dtype == xp.bfloat16
        params, state, _ = opt.step(params, grads, state)
    assert params["w"].dtype == xp.bfloat16
    assert 0.0 < params["w"][0].item() < 1.0


def test_loops_and_control_carry_them() -> None:
    """A number in the carry of a loop takes the narrow dtype that the step gives it."""
    x = xp.asarray(0.5, dtype=xp.bfloat16)
    total, _ = ft.scan(lambda c, _: (c * 0.5 + x, None), 0.0, length=3)
    assert total.dtype == xp.bfloat16
    found = ft.jit(ft.grad(lambda x: ft.fori_loop(0, 3, lambda i, c: c * x, x)))(x)
    assert found.dtype == xp.bfloat16
    assert found.item() == 0.5
