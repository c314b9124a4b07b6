"""A Python number beside an array leaves the array's precision alone, in derivatives as well."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.core import FLOATING, Absent, Primitive, Sample, catalogue

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered:RuntimeWarning")


def cases() -> list[Any]:
    """(op, sample, operand that stays an array): ops of several operands that broadcast.

    `absorb` is left out: it belongs to the tape, which gives it arrays alone.
    """
    out = []
    for p in catalogue():
        for s in p.samples(np.random.default_rng(7)):
            args = [np.asarray(a) for a in s.args]
            at = [i for i, a in enumerate(args) if a.dtype in FLOATING]
            plain = all(a.size and a.dtype.kind != "c" for a in args)
            if p.spread and p.name != "absorb" and len(at) > 1 and plain:
                out += [pytest.param(p, s, i, id=f"{p.name}-{p.operands[i]}") for i in at]
                break
    return out


def fixed(prim: Primitive, sample: Sample, i: int) -> Callable[[Any], Any]:
    """The op as a function of operand i; the other floating ones are numbers."""

    def fun(x: Any) -> Any:
        args = [
            x if k == i else float(a.flat[0]) if a.dtype in FLOATING else xp.asarray(a)
            for k, a in enumerate(np.asarray(a) for a in sample.args)
        ]
        return prim.fn(*args, *sample.params)

    return fun


def in_turn() -> list[Any]:
    """Every case: quick in one dtype and one of the ways, in turn; slow in either and all ways."""
    dtypes = "float32", "bfloat16"
    quick = [
        pytest.param(*c.values, dtypes[k % 2], k // 2, id=f"{c.id}-{dtypes[k % 2]}-in turn")
        for k, c in enumerate(cases())
    ]
    return quick + [
        pytest.param(*c.values, dtype, None, id=f"{c.id}-{dtype}", marks=pytest.mark.slow)
        for c, dtype in itertools.product(cases(), dtypes)
    ]


@pytest.mark.parametrize(("prim", "sample", "i", "dtype", "turn"), in_turn())
def test_precision_stays(
    prim: Primitive, sample: Sample, i: int, dtype: str, turn: int | None
) -> None:
    """Value, gradient and its gradient have the array's dtype, under jit and vmap too."""
    fun = fixed(prim, sample, i)
    x = xp.asarray(sample.args[i], dtype=getattr(xp, dtype))
    y, compiled, batched = fun(x), ft.jit(fun)(x), ft.vmap(fun)(xp.stack([x, x]))
    assert y.dtype == compiled.dtype == batched.dtype
    if y.dtype not in FLOATING:
        if y.dtype == xp.bool:  # a comparison
            return
        assert y.dtype == xp.complex64  # the narrowest complex dtype
    else:
        assert y.dtype == dtype
    if prim.rules[i] is None or isinstance(prim.rules[i], Absent):
        return

    def total(x: Any) -> Any:
        return xp.sum(xp.real(fun(x)))

    first = ft.grad(total)
    second = ft.grad(lambda x: xp.sum(first(x) ** 2))
    ones = xp.ones_like(x)
    assert ft.jvp(total, (x,), (ones,))[1].dtype == total(x).dtype
    assert first(x).dtype == second(x).dtype == dtype
    ways = [
        ft.jit(first), ft.grad(ft.jit(total)), ft.jit(second),
        lambda x: ft.vmap(first)(xp.stack([x, x])), lambda x: ft.jvp(first, (x,), (ones,))[1],
    ]  # fmt: skip
    for way in ways if turn is None else [ways[turn % len(ways)]]:
        assert way(x).dtype == dtype


@pytest.mark.in_turn
@pytest.mark.parametrize("scalar", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("prim", "sample", "i"), cases())
def test_a_scalar_of_numpys_is_an_array(
    prim: Primitive, sample: Sample, i: int, dtype: str, scalar: Any
) -> None:
    """It has a dtype that counts, although float64 is one of Python's floats."""
    arrays = [np.asarray(a) for a in sample.args]
    kinds = {k for k, a in enumerate(arrays) if k != i and a.dtype in FLOATING}
    scalars = [scalar(a.flat[0]) if k in kinds else a for k, a in enumerate(arrays)]
    scalars[i] = xp.asarray(arrays[i], dtype=getattr(xp, dtype))
    as_arrays = [xp.asarray(a) for a in scalars]
    bare = [a if k in kinds else as_arrays[k] for k, a in enumerate(scalars)]
    try:
        expected = prim.fn(*as_arrays, *sample.params)
    except ft.errors.DTypeError:  # no common dtype
        return
    compiled = ft.jit(lambda *a: prim.fn(*a, *sample.params))(*bare)
    for y in (prim.fn(*bare, *sample.params), compiled):
        assert y.dtype == expected.dtype


@pytest.mark.parametrize("base", [2, 0.5, True, 0, -2.0])
def test_powers_of_a_number(base: Any) -> None:
    """The derivative of base ** x is base ** x log(base); 0 where the base is 0."""
    x = xp.asarray([0.5, 2.0])
    with np.errstate(invalid="ignore"):
        g = ft.grad(lambda x: xp.sum(xp.pow(base, x)))(x)
        slope = np.log(float(base)) if base else 0.0
        np.testing.assert_allclose(np.asarray(g), float(base) ** np.asarray(x) * slope, rtol=1e-15)


def test_complex_powers_of_a_number() -> None:
    """A negative or complex base of a complex power has the principal logarithm."""
    z = xp.asarray([0.5 + 0.5j, 1.0 - 1.0j], dtype=xp.complex64)
    for base in (-2.0, 1.0 + 1.0j):
        g = ft.grad(lambda z, b=base: xp.sum(xp.pow(b, z)), holomorphic=True)
        whole = xp.asarray(base, dtype=xp.complex64)
        expected = ft.grad(lambda z, b=whole: xp.sum(xp.pow(b, z)), holomorphic=True)
        one = ft.vmap(g)(z)
        assert one.dtype == xp.complex64
        np.testing.assert_allclose(np.asarray(one), np.asarray(ft.vmap(expected)(z)), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float8_e4m3fn"])
@pytest.mark.parametrize("op", [xp.bitwise_left_shift, xp.bitwise_and, xp.bitwise_xor])
@pytest.mark.parametrize("turned", [False, True])
def test_what_is_refused_is_told_as_it_was_given(op: Any, dtype: str, turned: bool) -> None:
    """A number is a number in the error as well, wherever the op is."""
    x = xp.asarray([1.0, 2.0], dtype=getattr(xp, dtype))
    fun = (lambda x: op(1, x)) if turned else (lambda x: op(x, 1))
    told = set()
    for way in (fun, ft.jit(fun), ft.vmap(fun), ft.make_graph(fun)):
        with pytest.raises(ft.errors.DTypeError) as caught:
            way(x)
        told.add(caught.value.what)
    assert len(told) == 1


def _told(fun: Callable[[Any], Any], x: Any) -> Any:
    try:
        y = fun(x)
    except ft.errors.FunctError as error:
        return type(error)
    return y.dtype


TWO = [
    p
    for p in catalogue()
    if p.spread and len(p.operands) == 2 and not p.raises and not isinstance(p.code, Absent)
]


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int8", "int64", "uint64", "float16", "bfloat16", "float32", "complex64"],
)
@pytest.mark.parametrize("prim", TWO, ids=lambda p: p.name)
def test_numbers_that_fit_say_nothing_of_those_that_do_not(prim: Primitive, dtype: str) -> None:
    """A number that no array of the dtype can hold is refused, whatever came before it."""
    x = xp.ones(3, dtype=getattr(xp, dtype))
    for number in (1, -1, 100, -128, -129, 128, 256, 2**63, 2**64, -(2**63) - 1, 2**70, 2**1100):
        for fun in (lambda x, n=number: prim.fn(x, n), lambda x, n=number: prim.fn(n, x)):
            told = [_told(way(fun), x) for way in (lambda f: f, ft.jit)]
            told.append(_told(lambda x, f=fun: ft.eval_shape(f, x), x))
            assert len(set(told)) == 1, (number, told)
