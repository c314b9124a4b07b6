"""xp.special: SciPy's values, exact derivatives of both orders, SciPy's own dispatch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from math import inf, log, nan, pi, sqrt
from typing import Any

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, UndefinedDerivativeError, UnsupportedOperandError
from funct.kernels.special.gamma import BESIDE
from tests import laws

S = xp.special
Range = tuple[float, float]

# Where each function is smooth, argument by argument: derivatives are taken in the middle of it.
SMOOTH: dict[str, tuple[Range, ...]] = {
    "bdtri": ((2.0, 2.0), (7.0, 7.0), (0.1, 0.9)), "beta": ((0.5, 9.0), (0.5, 9.0)),
    "betainc": ((0.5, 9.0), (0.5, 9.0), (0.1, 0.9)),
    "betaincc": ((0.5, 9.0), (0.5, 9.0), (0.1, 0.9)),
    "betainccinv": ((1.0, 9.0), (1.0, 9.0), (0.1, 0.9)),
    "betaincinv": ((1.0, 9.0), (1.0, 9.0), (0.1, 0.9)), "betaln": ((0.5, 9.0), (0.5, 9.0)),
    "bdtr": ((2.0, 2.0), (7.0, 7.0), (0.1, 0.9)), "bdtrc": ((2.0, 2.0), (7.0, 7.0), (0.1, 0.9)),
    "binom": ((6.0, 9.0), (1.0, 4.0)), "boxcox": ((0.5, 3.0), (-2.0, 2.0)),
    "boxcox1p": ((-0.5, 3.0), (-2.0, 2.0)), "cbrt": ((0.5, 9.0),), "chdtr": ((1.0, 9.0),) * 2,
    "chdtrc": ((1.0, 9.0),) * 2, "chdtri": ((1.0, 9.0), (0.1, 0.9)),
    "comb": ((6.0, 9.0), (1.0, 4.0)),
    "cosdg": ((-200.0, 200.0),), "cosm1": ((-3.0, 3.0),), "cotdg": ((40.0, 80.0),),
    "dawsn": ((-20.0, 20.0),), "digamma": ((0.5, 9.0),), "ellipe": ((-5.0, 0.8),),
    "ellipeinc": ((0.2, 1.4), (-1.0, 0.8)), "ellipk": ((-5.0, 0.8),),
    "ellipkinc": ((0.2, 1.4), (-1.0, 0.8)), "ellipkm1": ((0.2, 2.0),), "entr": ((0.3, 2.0),),
    "erf": ((-3.0, 3.0),), "erfc": ((-3.0, 3.0),), "erfcinv": ((0.2, 1.8),),
    "erfcx": ((-3.0, 20.0),),
    "erfi": ((-3.0, 3.0),), "erfinv": ((-0.8, 0.8),), "exp1": ((0.5, 9.0),),
    "exp10": ((-3.0, 3.0),),
    "exp2": ((-3.0, 3.0),), "expi": ((0.5, 9.0),), "expit": ((-5.0, 5.0),), "expm1": ((-3.0, 3.0),),
    "expn": ((3.0, 3.0), (0.5, 9.0)), "exprel": ((-3.0, 3.0),), "factorial": ((0.5, 9.0),),
    "fdtr": ((2.0, 9.0), (2.0, 9.0), (0.5, 5.0)), "fdtrc": ((2.0, 9.0), (2.0, 9.0), (0.5, 5.0)),
    "fdtri": ((2.0, 9.0), (2.0, 9.0), (0.2, 0.8)), "gamma": ((0.5, 9.0),),
    "gammainc": ((0.5, 20.0), (0.5, 20.0)), "gammaincc": ((0.5, 20.0), (0.5, 20.0)),
    "gammainccinv": ((1.0, 9.0), (0.1, 0.9)), "gammaincinv": ((1.0, 9.0), (0.1, 0.9)),
    "gammaln": ((0.5, 9.0),), "gdtr": ((0.5, 3.0), (1.0, 5.0), (0.5, 3.0)),
    "gdtrc": ((0.5, 3.0), (1.0, 5.0), (0.5, 3.0)), "huber": ((0.3, 0.5), (1.0, 3.0)),
    "hyp0f1": ((2.5, 2.5), (-2.0, 2.0)), "hyp1f1": ((1.5, 1.5), (2.5, 2.5), (-2.0, 2.0)),
    "hyp2f1": ((0.5, 0.5), (1.5, 1.5), (2.5, 2.5), (-2.0, 0.7)), "i0": ((-5.0, 5.0),),
    "i0e": ((0.5, 9.0),), "i1": ((-5.0, 5.0),), "i1e": ((0.5, 9.0),),
    "inv_boxcox": ((-0.2, 2.0), (0.3, 2.0)), "inv_boxcox1p": ((-0.2, 2.0), (0.3, 2.0)),
    "iv": ((0.5, 6.0), (1.0, 9.0)), "ive": ((-2.0, 6.0), (1.0, 9.0)),
    "ivp": ((2.3, 2.3), (1.0, 9.0)),
    "j0": ((-9.0, 9.0),), "j1": ((-9.0, 9.0),), "jn": ((-2.0, 6.0), (1.0, 9.0)),
    "jv": ((-2.0, 6.0), (1.0, 9.0)), "jvp": ((2.3, 2.3), (1.0, 9.0)), "k0": ((0.5, 9.0),),
    "k0e": ((0.5, 9.0),), "k1": ((0.5, 9.0),), "k1e": ((0.5, 9.0),), "kl_div": ((0.5, 3.0),) * 2,
    "kn": ((3.0, 3.0), (1.0, 9.0)), "kv": ((-2.0, 6.0), (1.0, 9.0)),
    "kve": ((-2.0, 6.0), (1.0, 9.0)), "kvp": ((2.3, 2.3), (1.0, 9.0)), "log1p": ((-0.5, 3.0),),
    "log_expit": ((-5.0, 5.0),), "log_ndtr": ((-8.0, 3.0),), "loggamma": ((0.5, 9.0),),
    "logit": ((0.2, 0.8),), "lpmv": ((1.0, 1.0), (2.5, 2.5), (-0.8, 0.8)),
    "nbdtr": ((2.0, 2.0), (3.0, 3.0), (0.2, 0.8)), "nbdtrc": ((2.0, 2.0), (3.0, 3.0), (0.2, 0.8)),
    "nbdtri": ((2.0, 2.0), (3.0, 3.0), (0.2, 0.8)), "ndtr": ((-5.0, 5.0),), "ndtri": ((0.1, 0.9),),
    "ndtri_exp": ((-5.0, -0.3),), "owens_t": ((-2.0, 2.0), (-2.0, 2.0)),
    "pdtr": ((2.0, 2.0), (0.5, 9.0)), "pdtrc": ((2.0, 2.0), (0.5, 9.0)),
    "pdtri": ((2.0, 2.0), (0.2, 0.8)), "perm": ((6.0, 9.0), (1.0, 4.0)), "poch": ((0.5, 5.0),) * 2,
    "polygamma": ((2.0, 2.0), (0.5, 9.0)), "pseudo_huber": ((0.5, 3.0), (-3.0, 3.0)),
    "psi": ((0.5, 9.0),), "radian": ((-9.0, 9.0),) * 3, "rel_entr": ((0.5, 3.0),) * 2,
    "rgamma": ((-3.0, 5.0),), "sinc": ((-3.0, 3.0),), "sindg": ((-200.0, 200.0),),
    "softplus": ((-5.0, 5.0),), "spence": ((0.5, 5.0),), "spherical_in": ((2.0, 2.0), (0.5, 9.0)),
    "spherical_jn": ((2.0, 2.0), (0.5, 9.0)), "spherical_kn": ((2.0, 2.0), (0.5, 9.0)),
    "spherical_yn": ((2.0, 2.0), (0.5, 9.0)), "stdtr": ((2.0, 9.0), (0.5, 4.0)),
    "stdtrit": ((2.0, 9.0), (0.6, 0.9)), "tandg": ((-60.0, 60.0),), "wrightomega": ((-3.0, 5.0),),
    "xlog1py": ((0.5, 3.0), (-0.5, 3.0)), "xlogy": ((0.5, 3.0), (0.5, 3.0)), "y0": ((0.5, 9.0),),
    "y1": ((0.5, 9.0),), "yn": ((3.0, 3.0), (1.0, 9.0)), "yv": ((-2.0, 6.0), (1.0, 9.0)),
    "yvp": ((2.3, 2.3), (1.0, 9.0)), "zeta": ((1.5, 9.0), (0.5, 5.0)), "zetac": ((1.5, 9.0),),
}  # fmt: skip

# Tuples, complex results, static arguments, reductions and steps have tests of their own.
OTHERS = {
    "airy", "fresnel", "gammasgn", "hankel1", "hankel2", "lambertw", "log_softmax", "logsumexp",
    "multigammaln", "shichi", "sici", "softmax", "wofz",
}  # fmt: skip

# What is made of other functions here, or is NumPy's, differs in the last digits.
COMPOSED = {
    "cbrt", "comb", "exp2", "expm1", "expn", "factorial", "ivp", "jvp", "kvp", "log1p", "perm",
    "polygamma", "radian", "softplus", "yvp",
}  # fmt: skip

each = pytest.mark.parametrize("name", sorted(SMOOTH))


def draw(name: str, rng: np.random.Generator, n: int, stretch: float = 1.0) -> list[Any]:
    """n points for each argument; with stretch also far outside of the smooth part."""
    args = []
    for low, high in SMOOTH[name]:
        middle, half = (low + high) / 2, (high - low) / 2
        args.append(middle + half * rng.uniform(-1, 1, n) * stretch)
    return args


def reference(name: str) -> Any:
    """SciPy's function; its integer orders are given as integers."""
    f = getattr(scipy.special, name)
    if name.startswith("spherical"):
        return lambda n, x: f(n.astype(int), x)
    if name.startswith(("bdtr", "nbdtr")):
        return lambda k, n, p: f(k.astype(int), n.astype(int), p)
    if name.startswith("pdtr"):
        return lambda k, m: f(k.astype(int), m)
    return f


def test_every_name_is_tested() -> None:
    """The tables name all of the namespace, and every name is SciPy's."""
    assert set(SMOOTH) | OTHERS == set(S.__all__)
    assert [n for n in S.__all__ if not hasattr(scipy.special, n)] == []


@each
@given(seed=st.integers(0, 2**32 - 1), stretch=st.sampled_from([1.0, 1.0, 3.0, 30.0]))
def test_values_are_scipys(name: str, seed: int, stretch: float) -> None:
    """Bit for bit in the rooms, also where there is no value; closely in what is made of them."""
    if name in COMPOSED or name == "lpmv":
        stretch = 1.0
    args = draw(name, np.random.default_rng(seed), 20, stretch)
    with np.errstate(all="ignore"):
        expected = reference(name)(*args)
        actual = np.asarray(getattr(S, name)(*[xp.asarray(a) for a in args]))
    if name in ("digamma", "psi"):  # above its poles SciPy's errs: `test_special_points.py`
        above = args[0] - np.rint(args[0])
        clear = (args[0] >= 0) | (above <= 0) | (above >= BESIDE)
        expected, actual = expected[clear], actual[clear]
    if name in COMPOSED:
        np.testing.assert_allclose(actual, expected, rtol=1e-13, atol=1e-300)
    else:
        np.testing.assert_array_equal(actual, expected)


@each
def test_dtypes(name: str, rng: np.random.Generator) -> None:
    """float32 stays float32, integers become float64, Python numbers take the other's dtype."""
    f = getattr(S, name)
    args = draw(name, rng, 3)
    single = f(*[xp.asarray(a.astype(np.float32)) for a in args])
    assert single.dtype == xp.float32
    double = f(*[xp.asarray(a.astype(np.float32).astype(float)) for a in args])
    np.testing.assert_allclose(np.asarray(single), np.asarray(double), 2e-3, 1e-5)
    with np.errstate(all="ignore"):
        assert f(*[xp.asarray(np.rint(a).astype(int)) for a in args]).dtype == xp.float64
        if len(args) > 1:
            weak = f(*[float(a[0]) for a in args[:-1]], xp.asarray(args[-1].astype(np.float32)))
            assert weak.dtype == xp.float32


@pytest.mark.parametrize("name", ["xlogy", "gammainc", "jv", "kve", "zeta", "polygamma", "ndtr"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_narrow_floats(name: str, dtype: str) -> None:
    """Narrow floats are computed wider and rounded once; so are derivatives, numbers among them."""
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is a dtype of ml_dtypes")
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = xp.asarray(np.array([1.0, 1.5, 2.5], kind))
    first = [] if name == "ndtr" else [2 if name == "polygamma" else 2.5]
    fun = lambda x: xp.sum(getattr(S, name)(*first, x))  # noqa: E731
    wide = xp.asarray(np.array([1.0, 1.5, 2.5]))
    slopes = (ft.grad(fun), ft.grad(lambda x: xp.sum(ft.grad(fun)(x))))
    for f in (fun, *(slopes if kind.kind == "f" else ())):  # grad takes NumPy's own floats alone
        assert f(x).dtype == kind
        eps = float(ml_dtypes.finfo(kind).eps)
        expected = np.asarray(f(wide))
        actual = np.asarray(f(x)).astype(float)
        np.testing.assert_allclose(actual, expected, 16 * eps, 16 * eps)


def spectral(f: Callable[[Any], Any], x: float, radius: float, order: int) -> float:
    """Derivative of the Chebyshev interpolant of degree 18: some twelve digits, nine of order 2."""
    fit = np.polynomial.chebyshev.Chebyshev.interpolate(f, 18, [x - radius, x + radius])
    return float(fit.deriv(order)(x))


@each
def test_derivatives_are_exact(name: str, rng: np.random.Generator) -> None:
    """Both orders, forward and reverse, in every argument that is not an integer."""
    f = getattr(S, name)
    for _ in range(3):
        point = [float(a[0]) for a in draw(name, rng, 1, 0.8)]
        for i, (low, high) in enumerate(SMOOTH[name]):
            if low == high:
                continue

            def along(x: Any, i: int = i, point: list[float] = point) -> Any:
                given = [np.asarray(p) for p in point]
                return reference(name)(*given[:i], x, *given[i + 1 :])

            def ours(x: Any, i: int = i, point: list[float] = point) -> Any:
                fixed = [xp.asarray(p) for p in point]
                return f(*fixed[:i], x, *fixed[i + 1 :])

            x = xp.asarray(point[i])
            radius = min(0.1 * (high - low), 0.5)
            scale = 1e-3 * abs(float(ours(x)))
            first = spectral(along, point[i], radius, 1)
            second = spectral(along, point[i], radius, 2)
            forward = ft.jvp(ours, (x,), (xp.asarray(1.0),))[1]
            np.testing.assert_allclose(float(ft.grad(ours)(x)), first, 1e-8, 1e-8 * scale)
            np.testing.assert_allclose(float(forward), first, 1e-8, 1e-8 * scale)
            curvature = float(ft.grad(ft.grad(ours))(x))
            np.testing.assert_allclose(curvature, second, 1e-5, 1e-3 * scale)


@pytest.mark.parametrize("name", sorted(COMPOSED))
def test_compositions_obey_the_laws(name: str, rng: np.random.Generator) -> None:
    """vmap is a loop, jit is eager, and they commute with derivatives, in orders in turn."""
    args = [xp.asarray(a) for a in draw(name, rng, 3, 0.5)]
    f = getattr(S, name)
    fixed = [i for i, (low, high) in enumerate(SMOOTH[name]) if low == high]
    kept = [a for i, a in enumerate(args) if i not in fixed]

    def free(*moving: Any) -> Any:
        rest = list(moving)
        return f(*[args[i][0] if i in fixed else rest.pop(0) for i in range(len(args))])

    laws.check_aval(free, kept)
    laws.check_batch(free, kept, rng)
    laws.check_jit(free, kept)
    laws.check_nesting(free, kept, rng, turn=sorted(COMPOSED).index(name))


# Derivatives in parameters, where a closed form exists -------------------------------------------


def slope(f: Callable[..., Any], *args: Any) -> Any:
    """df/d(first argument), elementwise."""
    first, *rest = (xp.asarray(np.asarray(a, float)) for a in args)
    return np.asarray(ft.grad(lambda v: xp.sum(f(v, *rest)))(first))


X = np.geomspace(1e-6, 300, 60)


def test_orders_of_bessel_functions_at_0() -> None:
    """Derivatives in the order are Bessel functions at order 0: DLMF 10.15.3, 10.38.4."""
    zero = np.zeros_like(X)
    np.testing.assert_allclose(slope(S.jv, zero, X), pi / 2 * scipy.special.y0(X), 1e-11, 1e-15)
    np.testing.assert_allclose(slope(S.yv, zero, X), -pi / 2 * scipy.special.j0(X), 1e-11, 1e-15)
    np.testing.assert_allclose(
        slope(S.ive, zero[:40], X[:40]),
        -scipy.special.k0(X[:40]) * np.exp(-X[:40]), 1e-10, 1e-15,
    )  # fmt: skip
    np.testing.assert_allclose(slope(S.kve, zero, X), zero, atol=1e-15)


def test_orders_of_bessel_functions_at_a_half() -> None:
    """At order 1/2 they are sine and cosine integrals: DLMF 10.15.6, 10.15.8."""
    half = np.full_like(X, 0.5)
    si, ci = scipy.special.sici(2 * X)
    root = np.sqrt(2 / (pi * X))
    expected = root * (ci * np.sin(X) - si * np.cos(X))
    np.testing.assert_allclose(slope(S.jv, half, X), expected, 1e-11, 1e-13)
    expected = root * (ci * np.cos(X) + (si - pi) * np.sin(X))
    np.testing.assert_allclose(slope(S.yv, half, X), expected, 1e-11, 1e-13)
    expected = np.sqrt(pi / (2 * X)) * scipy.special.exp1(2 * X) * np.exp(2 * X)  # 10.38.7
    small = X < 300
    np.testing.assert_allclose(slope(S.kve, half, X)[small], expected[small], 1e-11)


def test_incomplete_gamma_at_1() -> None:
    """At a = 1 the derivative in a is an exponential integral: DLMF 8.8.13 at n = 0."""
    one = np.ones_like(X)
    euler = -scipy.special.psi(1.0)
    expected = np.exp(-X) * (np.log(X) + euler) + scipy.special.exp1(X)
    np.testing.assert_allclose(slope(S.gammaincc, one, X), expected, 1e-11, 1e-14)
    np.testing.assert_allclose(slope(S.gammainc, one, X), -expected, 1e-11, 1e-14)
    large = X[X > 1]
    expected = np.exp(-large) * (np.log(large) + euler) + scipy.special.exp1(large)
    np.testing.assert_allclose(slope(S.gammaincc, one[X > 1], large), expected, 1e-11)


@given(st.floats(0.01, 200), st.floats(1e-6, 0.999))
def test_incomplete_beta_of_powers(a: float, x: float) -> None:
    """I_x(a, 1) is xᵃ and I_x(1, b) is 1 − (1 − x)ᵇ."""
    power = x**a * log(x)
    np.testing.assert_allclose(slope(S.betainc, a, 1.0, x), power, 1e-10, 1e-300)
    turned = lambda b, x: S.betainc(xp.asarray(1.0), b, x)  # noqa: E731
    expected = -((1 - x) ** a) * np.log1p(-x)
    np.testing.assert_allclose(slope(turned, a, x), expected, 1e-9, 1e-300)


def test_zeta_in_its_argument() -> None:
    """Known derivatives of ζ, and ζ(s, 1/2) = (2ˢ − 1) ζ(s)."""
    s = np.array([0.0, 2.0, -2.0])
    euler_mascheroni_2 = -0.937548254315843753702574094568  # ζ'(2)
    zeta3 = 1.2020569031595942
    expected = [-0.5 * log(2 * pi), euler_mascheroni_2, -zeta3 / (4 * pi**2)]
    np.testing.assert_allclose(slope(S.zeta, s), expected, 1e-13)
    s = np.linspace(1.1, 30, 20)
    two, zeta = 2.0**s, scipy.special.zeta(s)
    expected = two * log(2) * zeta + (two - 1) * slope(S.zeta, s)
    np.testing.assert_allclose(slope(S.zeta, s, np.full_like(s, 0.5)), expected, 1e-12)


# Against torch, which has rules of its own for some --------------------------------------------

TORCH: dict[str, tuple[Range, ...]] = {
    "entr": ((0.1, 3.0),), "erf": ((-3.0, 3.0),), "erfc": ((-3.0, 3.0),),
    "erfcx": ((-3.0, 3.0),), "erfinv": ((-0.9, 0.9),), "exp2": ((-3.0, 3.0),),
    "expit": ((-9.0, 9.0),), "i0": ((-5.0, 5.0),), "i0e": ((-5.0, 5.0),),
    "i1": ((-5.0, 5.0),), "i1e": ((-5.0, 5.0),), "log_ndtr": ((-9.0, 5.0),),
    "logit": ((0.1, 0.9),), "ndtr": ((-5.0, 5.0),), "ndtri": ((0.1, 0.9),), "sinc": ((-3.0, 3.0),),
    "xlog1py": ((-3.0, 3.0), (-0.9, 3.0)), "xlogy": ((-3.0, 3.0), (0.1, 3.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(TORCH))
def test_torch_agrees(name: str, rng: np.random.Generator) -> None:
    """Values, gradients and their gradients are torch's, in double precision."""
    torch = pytest.importorskip("torch", reason="torch is the oracle")
    raws = [rng.uniform(low, high, 7) for low, high in TORCH[name]]
    theirs = [torch.tensor(r, requires_grad=True) for r in raws]
    value = getattr(torch.special, name)(*theirs)
    first = torch.autograd.grad(value.sum(), theirs, create_graph=True)
    second = torch.autograd.grad(sum(g.sum() for g in first), theirs)
    nums = tuple(range(len(raws)))
    ours = [xp.asarray(r) for r in raws]
    f = getattr(S, name)

    def total(*args: Any) -> Any:
        return sum(xp.sum(g) for g in gradient(*args))

    gradient = ft.grad(lambda *args: xp.sum(f(*args)), nums)
    np.testing.assert_allclose(np.asarray(f(*ours)), value.detach().numpy(), 1e-13, 1e-13)
    for i in nums:
        expected = first[i].detach().numpy()
        np.testing.assert_allclose(np.asarray(gradient(*ours)[i]), expected, 1e-12, 1e-12)
        curved = np.asarray(ft.grad(total, nums)(*ours)[i])
        np.testing.assert_allclose(curved, second[i].numpy(), 1e-10, 1e-10)


# Special points ----------------------------------------------------------------------------------


def grads(f: Callable[..., Any], *args: float) -> list[float]:
    """The gradient in all arguments."""
    with np.errstate(all="ignore"):
        found = ft.grad(f, tuple(range(len(args))))(*[xp.asarray(a) for a in args])
    return [float(g) for g in found]


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("xlogy", (0.0, 0.0), [0.0, 0.0]), ("xlogy", (0.0, 2.0), [log(2), 0.0]),
        ("xlogy", (1.0, 0.0), [-inf, inf]), ("xlog1py", (0.0, -1.0), [0.0, 0.0]),
        ("entr", (0.0,), [inf]), ("entr", (1.0,), [-1.0]), ("rel_entr", (0.0, 1.0), [-inf, 0.0]),
        ("kl_div", (0.0, 1.0), [-inf, 1.0]), ("kl_div", (0.0, 0.0), [nan, 1.0]),
        ("kl_div", (1.0, 1.0), [0.0, 0.0]),
        ("sinc", (0.0,), [0.0]), ("exprel", (0.0,), [0.5]), ("spence", (1.0,), [-1.0]),
        ("i0", (0.0,), [0.0]), ("i1", (0.0,), [0.5]), ("i0e", (0.0,), [0.0]),
        ("i1e", (0.0,), [0.5]),
        ("j0", (0.0,), [0.0]), ("j1", (0.0,), [0.5]), ("ndtri", (0.0,), [inf]),
        ("ndtri", (1.0,), [inf]), ("erfinv", (1.0,), [inf]), ("erfinv", (-1.0,), [inf]),
        ("erfcinv", (0.0,), [-inf]), ("rgamma", (0.0,), [1.0]), ("rgamma", (-1.0,), [-1.0]),
        ("rgamma", (-2.0,), [2.0]), ("expit", (800.0,), [0.0]), ("expit", (-800.0,), [0.0]),
        ("expit", (40.0,), [4.248354255291589e-18]), ("log_expit", (-800.0,), [1.0]),
        ("log_ndtr", (50.0,), [0.0]), ("boxcox", (2.0, 0.0), [0.5, log(2) ** 2 / 2]),
        ("inv_boxcox", (1.0, 0.0), [np.e, -np.e / 2]), ("huber", (1.0, 0.0), [0.0, 0.0]),
        ("pseudo_huber", (1.0, 0.0), [0.0, 0.0]), ("ellipk", (0.0,), [pi / 8]),
        ("ellipe", (0.0,), [-pi / 8]), ("cosm1", (0.0,), [0.0]),
        ("stdtr", (3.0, 0.0), [0.0, 0.3675525969478613]),
        ("gammainc", (2.0, 0.0), [0.0, 0.0]), ("gammainc", (1.0, 0.0), [0.0, 1.0]),
        ("betainc", (2.0, 2.0, 0.0), [0.0, 0.0, 0.0]),
        ("betainc", (1.0, 2.0, 1.0), [0.0, 0.0, 0.0]),
        ("erfcx", (1e200,), [0.0]), ("dawsn", (0.0,), [1.0]),
        ("binom", (2.0, 3.0), [1 / 3, -1 / 3]),
    ],
)  # fmt: skip
def test_special_points(name: str, args: tuple[float, ...], expected: list[float]) -> None:
    """At zeros, ends and removable points gradients are the limits, or the stated convention."""
    np.testing.assert_allclose(grads(getattr(S, name), *args), expected, 1e-13)


@given(st.floats(60.0, 1e5))
def test_tails_keep_their_digits(t: float) -> None:
    """Second derivatives far out, where the plain formulas have cancelled."""
    x = xp.asarray(-t)
    r = 1 / (t * t)
    curvature = float(ft.grad(ft.grad(S.log_ndtr))(x))
    np.testing.assert_allclose(curvature, -1 + r - 6 * r**2 + 50 * r**3, 1e-8)
    # erfcx(t) = 1 / (√π t) (1 − 1/2t² + 3/4t⁴ …), D(t) = 1/2t (1 + 1/2t² + 3/4t⁴ …)
    expected = -(1 - 1.5 * r + 3.75 * r**2 - 13.125 * r**3) * r / sqrt(pi)
    np.testing.assert_allclose(float(ft.grad(S.erfcx)(xp.asarray(t))), expected, 1e-8)
    expected = -(1 + 1.5 * r + 3.75 * r**2 + 13.125 * r**3) * r / 2
    np.testing.assert_allclose(float(ft.grad(S.dawsn)(xp.asarray(t))), expected, 1e-8)


@given(st.floats(1e2, 1e12), st.floats(0.1, 10))
def test_betaln_of_a_large_and_a_small(a: float, b: float) -> None:
    """d/da log B(a, b) = ψ(a) − ψ(a + b) is near −b / a, not the difference of two logarithms."""
    actual = grads(S.betaln, a, b)[0]
    series = -b / a * (1 - (b - 1) / (2 * a) + (2 * b - 1) * (b - 1) / (6 * a * a))
    np.testing.assert_allclose(actual, series, ((1 + b) / a) ** 3 + 1e-13)  # the next term


# What has another form ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fresnel", "sici", "shichi", "airy"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_several_results(name: str, dtype: str, rng: np.random.Generator) -> None:
    """Functions with several results give a tuple, of SciPy's values."""
    x = rng.uniform(0.5, 3, 5).astype(dtype)
    actual = getattr(S, name)(xp.asarray(x))
    expected = getattr(scipy.special, name)(x)
    assert isinstance(actual, tuple)
    for a, e in zip(actual, expected, strict=True):
        laws.same(a, e)


def test_complex_functions(rng: np.random.Generator) -> None:
    """Hankel functions, Faddeeva's and Lambert's W of real and complex numbers are SciPy's."""
    z = rng.uniform(0.5, 3, 4) + 1j * rng.uniform(-1, 1, 4)
    for x in (z, z.real):
        a = xp.asarray(x)
        laws.same(S.wofz(a), scipy.special.wofz(x))
        laws.same(S.lambertw(a), scipy.special.lambertw(x))
        laws.same(S.lambertw(a, -1), scipy.special.lambertw(x, -1))
        laws.close(S.hankel1(1.5, a), scipy.special.hankel1(1.5, x), 1e-13, 1e-13)
        laws.close(S.hankel2(1.5, a), scipy.special.hankel2(1.5, x), 1e-13, 1e-13)
    assert S.lambertw(xp.asarray(1.0, dtype=xp.float32)).dtype == xp.complex64


@pytest.mark.parametrize("k", [0.5, "0", None, 1j, xp.asarray(0.5)])
@pytest.mark.parametrize("way", [lambda f: f, ft.jit, ft.vmap])
def test_branches_are_numbered_by_integers(k: Any, way: Any) -> None:
    """Others are refused, where SciPy cuts them."""
    with pytest.raises(UnsupportedOperandError, match=r"^lambertw: k must be an int, got"):
        way(lambda z: S.lambertw(z, k))(xp.asarray([1.0, 2.0]))
    z = xp.asarray([1.0, 2.0])
    laws.same(S.lambertw(z, np.int64(-1)), scipy.special.lambertw([1.0, 2.0], -1))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_multigammaln(d: int) -> None:
    """multigammaln is SciPy's."""
    a = np.linspace(3, 9, 5)
    expected = scipy.special.multigammaln(a, d)
    laws.close(S.multigammaln(xp.asarray(a), d), expected, 1e-14, 1e-14)


def test_multigammaln_is_nan_outside_of_its_domain() -> None:
    """There SciPy refuses; logarithms of absolute values would be numbers."""
    assert np.isnan(S.multigammaln(xp.asarray([0.2, 0.5, xp.nan]), 2).tolist()).all()
    with pytest.raises(ArgumentError, match="multigammaln: d must be between 1 and 65536, got 0"):
        S.multigammaln(xp.asarray(3.0), 0)


@pytest.mark.parametrize("name", ["jvp", "yvp", "ivp", "kvp"])
def test_derivatives_of_negative_order_are_refused(name: str) -> None:
    """There is none: SciPy's error, by name, where a sum of no terms was given."""
    for z in (xp.asarray(1.0), 1.0):
        with pytest.raises(ArgumentError, match=f"{name}: n must not be negative, got -1"):
            getattr(S, name)(0, z, -1)


def test_signs_and_steps() -> None:
    """gammasgn is constant between the poles; comb, perm and factorial are 0 where SciPy's are."""
    x = np.array([-2.5, -1.5, -0.5, 0.5, 3.0])
    laws.same(S.gammasgn(xp.asarray(x)), scipy.special.gammasgn(x))
    assert slope(S.gammasgn, x).tolist() == [0.0] * 5
    n, k = np.array([3.0, 3, -1, 3]), np.array([4.0, -1, 1, 0])
    for name in ("comb", "perm"):
        laws.same(
            getattr(S, name)(xp.asarray(n), xp.asarray(k)), getattr(scipy.special, name)(n, k)
        )
    laws.same(S.factorial(xp.asarray([-1.0, 0.0])), np.array([0.0, 1.0]))
    laws.same(S.bdtr(xp.asarray([2.0, 3.0]), 2.0, 0.5), scipy.special.bdtr([2, 3], 2, 0.5))


ROWS = np.array([[0.0, -40.0, 1.0], [-inf, -inf, -inf], [inf, 1.0, 2.0], [2.0, 2.0, -inf]])


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), -1])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("b", [None, [1.0, -1.0, 0.5], [0.0, 2.0, 0.0], [-1.0, -1.0, -1.0]])
@pytest.mark.parametrize("sign", [False, True])
def test_logsumexp(axis: Any, keepdims: bool, b: Any, sign: bool) -> None:
    """logsumexp is SciPy's: axes, weights, signs, infinities."""
    rows = ROWS if b is None or axis == 1 else ROWS[[0, 3]]
    weights = None if b is None else np.asarray(b)
    with np.errstate(all="ignore"):
        expected = scipy.special.logsumexp(rows, axis, weights, keepdims, sign)
        given = None if b is None else xp.asarray(b)
        actual = S.logsumexp(xp.asarray(rows), axis, given, keepdims, sign)
    pairs = zip(actual, expected, strict=True) if sign else [(actual, expected)]
    for a, e in pairs:
        laws.close(a, np.asarray(e), 1e-14, 1e-14)


@pytest.mark.parametrize("way", [lambda f: f, ft.jit, ft.vmap, ft.jacrev])
@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64"])
@pytest.mark.parametrize("name", ["logsumexp", "softmax", "log_softmax"])
def test_sums_of_nothing(name: str, dtype: str, way: Any) -> None:
    """Where there is nothing to sum, logsumexp is -inf, and softmax as empty as its operand."""
    if way is ft.jacrev:
        dtype = "float32"
    x = np.zeros((2, 3, 0), dtype)
    found = np.asarray(way(lambda v: getattr(S, name)(v, axis=-1))(xp.asarray(x)))
    with np.errstate(invalid="ignore"):
        value = scipy.special.logsumexp(x, axis=-1) if name == "logsumexp" else x
    value = value.astype(np.result_type(dtype, "float32") if dtype != "int64" else "float64")
    expected = np.zeros((*value.shape, *x.shape), value.dtype) if way is ft.jacrev else value
    laws.same(found, expected)


def test_logsumexp_of_nothing_with_weights() -> None:
    """The weights' shape counts; the sign of 0 is 0."""
    found, sign = S.logsumexp(xp.zeros((1, 0)), 1, xp.ones((2, 1)), return_sign=True)
    assert found.tolist() == [-inf, -inf]
    assert sign.tolist() == [0.0, 0.0]


def test_logsumexp_of_complex_numbers(rng: np.random.Generator) -> None:
    """Of complex numbers the imaginary part lies in (−π, π], and derivatives exist."""
    z = rng.normal(size=(2, 3)) * 3 + 1j * rng.normal(size=(2, 3)) * 3
    laws.close(S.logsumexp(xp.asarray(z), 1), scipy.special.logsumexp(z, 1), 1e-13, 1e-13)
    laws.check_derivatives(lambda v: S.logsumexp(v, 1), [xp.asarray(z)], rng)
    weighted = lambda v, b: S.logsumexp(v, 1, b, False, True)[0]  # noqa: E731
    args = [xp.asarray(z.real), xp.asarray(rng.uniform(1, 2, (2, 3)))]
    laws.check_derivatives(weighted, args, rng)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
def test_softmax(name: str, axis: Any, rng: np.random.Generator) -> None:
    """softmax and log_softmax are SciPy's, for large and infinite elements too."""
    x = rng.normal(size=(3, 4)) * 100
    x[0, 1] = -inf
    f = lambda v: getattr(S, name)(v, axis=axis)  # noqa: E731
    laws.close(f(xp.asarray(x)), getattr(scipy.special, name)(x, axis=axis), 1e-13, 1e-13)
    small = xp.asarray(rng.normal(size=(3, 4)))
    laws.check_derivatives(f, [small], rng)
    laws.check_batch(f, [small], rng)
    laws.check_jit(f, [small])


def test_scipy_dispatches_here() -> None:
    """With SCIPY_ARRAY_API=1 SciPy's own functions take our arrays, and gradients pass them."""
    code = """
import numpy as np
import scipy.special as S
from scipy.special import _support_alternative_backends as table
import funct as ft, funct.array as xp

missing = [n for n in table.__all__ if not hasattr(xp.special, n)]
assert not missing, missing
arguments = {"multigammaln": (4.0, 2), "polygamma": (1, 0.6), "expn": (2, 0.6), "yn": (2, 0.6),
             "bdtr": (1, 3, 0.6), "bdtrc": (1, 3, 0.6), "bdtri": (1, 3, 0.6), "zeta": (2.5, 0.6),
             "lpmv": (1, 2.5, 0.6), "nbdtr": (1, 3, 0.6), "nbdtrc": (1, 3, 0.6),
             "nbdtri": (1, 3, 0.6), "pdtri": (2, 0.6), "log_ndtr": (0.6,)}
for f in table._special_funcs:
    args = arguments.get(f.name, (0.6, 0.7, 0.8)[-f.n_args:])
    at = 0 if f.name == "multigammaln" else len(args) - 1
    call = lambda x: getattr(S, f.name)(*args[:at], x, *args[at + 1:])
    x = xp.asarray(args[at])
    y = call(x)
    assert type(y) is xp.Array, (f.name, type(y))
    np.testing.assert_allclose(np.asarray(y), call(args[at]), 1e-12, err_msg=f.name)
    slope = float(ft.grad(call)(x))
    assert np.isfinite(slope) and (slope != 0 or f.name == "gammasgn"), f.name
    assert np.isfinite(float(ft.jit(ft.vmap(call))(xp.stack([x, x]))[1])), f.name
print(len(table._special_funcs))
"""
    env = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 80


@pytest.mark.parametrize("name", ["beta", "binom", "huber", "jv", "rel_entr", "xlogy"])
def test_a_number_takes_the_dtype_of_single_precision(name: str) -> None:
    """On either side, with the bits of an array of that number."""
    fun, x = getattr(xp.special, name), xp.asarray(np.float32([0.25, 1.5, 3.0]))
    for number in (2, 0.1, 2.5):
        of_number = xp.asarray(np.float32(number))
        laws.same(fun(x, number), np.asarray(fun(x, of_number)))
        laws.same(fun(number, x), np.asarray(fun(of_number, x)))
    laws.same(xp.special.expn(2, x), scipy.special.expn(np.float32(2), np.asarray(x)))


@pytest.mark.parametrize("name", ["spherical_in", "spherical_jn", "spherical_kn", "spherical_yn"])
@pytest.mark.parametrize("order", [2 + 1j, np.complex64(2), xp.asarray(2 + 0j)])
def test_orders_are_no_complex_numbers(name: str, order: Any) -> None:
    """No part of one is dropped, in eager code and in compiled code."""
    fun = getattr(xp.special, name)
    for way in (fun, ft.jit(fun), lambda n, x: ft.vmap(lambda x: fun(n, x))(x[None])):
        with pytest.raises(ft.errors.DTypeError, match=name):
            way(order, xp.asarray(1.5))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "wrap", [ft.grad, lambda f: ft.jit(ft.grad(f)), lambda f: ft.grad(ft.jit(f))]
)
@pytest.mark.parametrize("name", ["jv", "yv", "iv", "ive", "kv", "kve", "hankel1", "hankel2"])
def test_the_order_of_a_complex_argument_has_no_derivative(name: str, wrap: Any) -> None:
    """Which is said by the function's name; nothing is computed, and no part is dropped."""
    f, z = getattr(xp.special, name), xp.asarray(1.0 + 0.5j)
    with pytest.raises(UndefinedDerivativeError, match=f"{name}: no derivative in the order"):
        wrap(lambda v: xp.real(f(v, z)))(xp.asarray(0.7))


@pytest.mark.parametrize("by", [lambda f: f, ft.jit, ft.vmap], ids=["eager", "jit", "vmap"])
@pytest.mark.parametrize(
    "fun",
    [lambda a: xp.special.hyp1f1(a, 1.5, -0.5), lambda a: xp.special.lpmv(a, 0.5, 0.5),
     lambda a: xp.special.lpmv(2.0, a, 0.5)],
    ids=["hyp1f1", "order", "degree"],
)  # fmt: skip
def test_parameters_that_take_for_ever_are_refused(fun: Any, by: Any) -> None:
    """SciPy takes as many steps as they are large; what is no number of steps is no error."""
    f = by(fun)
    for large in (1e60, -1e60, 1e9):
        with pytest.raises(ArgumentError, match="10,000,000 at most, for the steps they take"):
            f(xp.asarray([2.0, large]))
    for none in (xp.nan, xp.inf):
        assert xp.isnan(f(xp.asarray([none]))[0])
    assert xp.isfinite(f(xp.asarray([2.0]))[0])
