"""The laws that every function of arrays obeys under every transform; a broken one is an
AssertionError.

Differences are central, in float64, along one random direction. Complex inner products are the real
parts, so that the convention "gradient = steepest ascent" is what is tested.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from funct import array as xp
from funct import transforms as ft
from funct import tree
from funct.compile import build, is_numpy_calls
from funct.core import FLOATING, INEXACT, ShapeDtype
from funct.errors import ConcretizationError

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = [
    "STEP", "check_aval", "check_batch", "check_derivatives", "check_jit", "check_nesting",
    "check_purity", "close", "inner", "lanes", "noise", "raw", "restrict", "rounded_alike", "same",
    "varying",
]  # fmt: skip

Fun = Callable[..., Any]
STEP = 1e-6


def raw(x: Any) -> Any:
    """The elements as an ndarray."""
    return np.asarray(x)


def close(actual: Any, expected: Any, rtol: float = 1e-9, atol: float = 1e-9) -> None:
    """Trees agree within a tolerance, shapes and dtypes exactly."""
    for a, e in zip(tree.leaves(actual), tree.leaves(expected), strict=True):
        a, e = raw(a), raw(e)
        assert a.shape == e.shape, (a.shape, e.shape)
        assert a.dtype == e.dtype, (a.dtype, e.dtype)
        np.testing.assert_allclose(a, e, rtol=rtol, atol=atol)


def same(actual: Any, expected: Any) -> None:
    """Trees agree bit for bit: -0 is not 0, and one NaN is as good as another."""
    for a, e in zip(tree.leaves(actual), tree.leaves(expected), strict=True):
        a, e = raw(a), raw(e)
        assert a.dtype == e.dtype
        if a.dtype in INEXACT:  # as NumPy's own dtypes, whose NaNs are known
            a, e = (v.astype(np.result_type(v.dtype, np.float64)) for v in (a, e))
            np.testing.assert_array_equal(_negative(a), _negative(e), "signs differ")
        np.testing.assert_array_equal(a, e, strict=True)


def _negative(x: Any) -> Any:
    """Where numbers, the two parts of complex ones, have a minus, zeros too; no NaN has one."""
    each = np.stack([x.real, x.imag]) if x.dtype.kind == "c" else x
    return np.signbit(each) & ~np.isnan(x)


def rounded_alike(actual: Any, expected: Any) -> None:
    """Trees agree but for roundings: to 8 of them in the largest element of each array, as where
    one is machine code and the other is not, and bit for bit where nothing is rounded.
    """
    for a, e in zip(tree.leaves(actual), tree.leaves(expected), strict=True):
        if a.dtype not in INEXACT:
            same(a, e)
            continue
        eps = 8 * float(xp.finfo(a.dtype).eps)
        assert a.dtype == e.dtype
        a, e = (np.asarray(raw(v), np.result_type(v.dtype, np.float64)) for v in (a, e))
        size = np.abs(e[np.isfinite(e)]).max(initial=0.0)
        np.testing.assert_allclose(a, e, rtol=eps, atol=eps * size)


def varying(args: Sequence[Any]) -> list[int]:
    """Positions of the floating and complex operands."""
    return [i for i, a in enumerate(args) if a.dtype in INEXACT]


def noise(rng: Generator, x: Any) -> Any:
    """A random array like x."""
    t = rng.normal(size=x.shape)
    if x.dtype.kind == "c":
        t = t + 1j * rng.normal(size=x.shape)
    return xp.asarray(np.asarray(t, x.dtype))


def inner(a: Any, b: Any) -> float:
    """Real inner product of two trees."""
    pairs = zip(tree.leaves(a), tree.leaves(b), strict=True)
    return float(sum(np.real(np.vdot(raw(x), raw(y))) for x, y in pairs))


def restrict(fun: Fun, args: Sequence[Any], at: Sequence[int]) -> Fun:
    """fun as a function of the operands `at`; floating results only, as a tuple."""

    def free(*xs: Any) -> Any:
        full = list(args)
        for i, x in zip(at, xs, strict=True):
            full[i] = x
        out = fun(*full)
        outs = out if isinstance(out, tuple) else (out,)
        return tuple([o for o in outs if o.dtype in INEXACT])

    return free


def check_purity(fun: Fun, args: Sequence[Any]) -> None:
    """Operands are untouched, and the same call gives the same bits twice."""
    before = [raw(a).copy() for a in args]
    first, second = fun(*args), fun(*args)
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(raw(a), b)
    same(first, second)


def check_aval(fun: Fun, args: Sequence[Any]) -> None:
    """The abstract rule gives the shape and dtype that computing gives."""
    out = fun(*args)
    like = ft.eval_shape(fun, *[ShapeDtype(a.shape, a.dtype) for a in args])
    for o, s in zip(tree.leaves(out), tree.leaves(like), strict=True):
        assert tuple(o.shape) == s.shape
        assert o.dtype == s.dtype


def check_derivatives(
    fun: Fun,
    args: Sequence[Any],
    rng: Generator,
    order: int = 2,
    tol: float = 1e-5,
    alike: Callable[[Any, Any], None] = same,
) -> None:
    """jvp = central difference, vjp = its adjoint, linearize = jvp; then the same for both
    derivatives.

    alike: how the values agree that go with jvp and with vjp: of compiled functions two programs
    give them.
    """
    at = varying(args)
    if not at or any(0 in args[i].shape for i in at):
        return
    free = restrict(fun, args, at)
    xs = tuple([args[i] for i in at])
    ts = tuple([noise(rng, x) for x in xs])
    out, push = ft.jvp(free, xs, ts)
    if not out:
        return
    high = free(*[x + t * STEP for x, t in zip(xs, ts, strict=True)])
    low = free(*[x - t * STEP for x, t in zip(xs, ts, strict=True)])
    for h, lo, p in zip(high, low, push, strict=True):
        difference = (raw(h) - raw(lo)) / (2 * STEP)
        scale = 1.0 + np.abs(difference).max(initial=0.0)
        np.testing.assert_allclose(raw(p), difference, rtol=tol, atol=tol * scale)
    value, pull = ft.vjp(free, *xs)
    cts = tuple([noise(rng, o) for o in out])
    gs = pull(cts)
    alike(value, out)
    left, right = inner(cts, push), inner(gs, ts)
    assert abs(left - right) <= 1e-9 * (1.0 + abs(left)), (left, right)
    close(ft.linearize(free, *xs)[1](*ts), push)
    if order > 1:
        fresh = np.random.default_rng(1)
        rest = order - 1, 1e-4, alike
        check_derivatives(lambda *a: ft.vjp(free, *a)[1](cts), xs, fresh, *rest)
        check_derivatives(lambda *a: ft.jvp(free, a, ts)[1], xs, fresh, *rest)


def lanes(rng: Generator, x: Any, n: int = 3) -> Any:
    """n variations of x on a new first axis: every axis rolled, floats scaled too.

    Sorted operands (of a search) stay sorted; elements stay in the domain of the sample, and
    matrices keep their symmetry and spectrum.
    """
    x = raw(x)
    flat, axes = x.reshape(-1), tuple(range(x.ndim))
    ordered = flat.size > 1 and x.dtype.kind != "c" and bool(np.all(flat[1:] >= flat[:-1]))
    rows = [x if ordered or not axes else np.roll(x, (k,) * x.ndim, axes) for k in range(n)]
    if x.dtype in INEXACT:
        rows = [r * (1.0 + 0.05 * k) for k, r in enumerate(rows)]
    return xp.asarray(np.stack(rows).reshape(n, *x.shape).astype(x.dtype))


def check_batch(fun: Fun, args: Sequence[Any], rng: Generator, tol: float = 1e-9) -> None:
    """vmap = Python loop, with all operands batched and with each one alone; no lanes are lanes."""
    many = [lanes(rng, a) for a in args]
    n = len(args)
    choices = [[True] * n] + ([[i == k for i in range(n)] for k in range(n)] if n > 1 else [])
    for flags in choices:
        axes = tuple([0 if f else None for f in flags])
        given = [m if f else a for m, a, f in zip(many, args, flags, strict=True)]
        batched = ft.vmap(fun, in_axes=axes)(*given)
        rows = []
        for k in range(3):
            rows.append(fun(*[m[k] if f else a for m, a, f in zip(many, args, flags, strict=True)]))
        stacked = tree.map(lambda *v: xp.stack(list(v)), *rows)
        close(batched, stacked, tol, tol)
        empty = [m[:0] if f else a for m, a, f in zip(many, args, flags, strict=True)]
        try:
            none = ft.vmap(fun, in_axes=axes)(*empty)
        except ConcretizationError:  # it asks for a value: there is no lane to ask
            continue
        shapes = [(0, *x.shape[1:]) for x in tree.leaves(stacked)]
        assert [x.shape for x in tree.leaves(none)] == shapes, flags


def check_jit(fun: Fun, args: Sequence[Any]) -> None:
    """jit = eager, on the call that compiles and on the next: bit for bit, but for roundings where
    it is machine code.
    """
    compiled = ft.jit(fun)
    expected = fun(*args)
    found = compiled(*args)
    try:
        same(found, expected)
    except AssertionError:
        if is_numpy_calls(build(ft.make_graph(fun)(*args))):
            raise
        rounded_alike(found, expected)
    same(compiled(*args), found)


def check_nesting(
    fun: Fun, args: Sequence[Any], rng: Generator, tol: float = 1e-8, turn: int | None = None
) -> None:
    """grad, vmap and jit commute with each other, hessians included.

    turn: every fifth order of theirs alone, from this one on; None: all of them.
    """
    at = varying(args)
    if not at or any(0 in args[i].shape for i in at):
        return
    free = restrict(fun, args, at)
    xs = tuple([args[i] for i in at])
    outs = free(*xs)
    if not outs:
        return
    weights = [noise(rng, o) for o in outs]
    nums = tuple(range(len(xs)))
    many = [lanes(rng, x) for x in xs]

    def scalar(*a: Any) -> Any:
        terms = [xp.sum(xp.real(o * w)) for o, w in zip(free(*a), weights, strict=True)]
        return sum(terms[1:], terms[0])

    def total(*a: Any) -> Any:
        return xp.sum(ft.vmap(scalar)(*a))

    def slope(f: Fun) -> Fun:
        return ft.grad(f, nums)

    @functools.cache
    def one() -> Any:
        return slope(scalar)(*xs)

    @functools.cache
    def each() -> Any:
        rows = [slope(scalar)(*[m[k] for m in many]) for k in range(3)]
        return tree.map(lambda *v: xp.stack(list(v)), *rows)

    @functools.cache
    def curvature() -> Any:
        return ft.hessian(scalar, nums)(*xs)

    orders: list[tuple[Fun, Sequence[Any], Callable[[], Any]]] = [
        (ft.jit(slope(scalar)), xs, one),
        (slope(ft.jit(scalar)), xs, one),
        (ft.vmap(slope(scalar)), many, each),
        (ft.vmap(slope(ft.jit(scalar))), many, each),
        (ft.jit(ft.vmap(slope(scalar))), many, each),
        (slope(total), many, each),
        (ft.jit(slope(total)), many, each),
    ]
    if all(x.dtype in FLOATING for x in xs) and sum(x.size for x in xs) <= 24:
        orders += [
            (ft.jacrev(ft.jacrev(scalar, nums), nums), xs, curvature),
            (ft.jit(ft.hessian(scalar, nums)), xs, curvature),
            (ft.hessian(ft.jit(scalar), nums), xs, curvature),
        ]
    for order, given, expected in orders if turn is None else orders[turn % 5 :: 5]:
        close(order(*given), expected(), tol, tol)
