"""xp.special beside the points where closed forms of derivatives lose digits: mpmath's, there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.kernels.special import gamma

mp = pytest.importorskip("mpmath", reason="the derivatives are compared with mpmath's").mp

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

S = xp.special


def _part(name: str, k: int) -> Callable[[Any], Any]:
    return lambda x: getattr(S, name)(x)[k]


def _degrees(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: f(x * mp.pi / 180)


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "airy_ai": (_part("airy", 0), mp.airyai),
    "airy_aip": (_part("airy", 1), lambda x: mp.airyai(x, derivative=1)),
    "airy_bi": (_part("airy", 2), mp.airybi),
    "airy_bip": (_part("airy", 3), lambda x: mp.airybi(x, derivative=1)),
    "cosdg": (S.cosdg, _degrees(mp.cos)), "cotdg": (S.cotdg, _degrees(mp.cot)),
    "ellipe": (S.ellipe, mp.ellipe), "ellipk": (S.ellipk, mp.ellipk),
    "ellipkm1": (S.ellipkm1, lambda p: mp.ellipk(1 - p)),
    "erfcinv": (S.erfcinv, lambda p: mp.erfinv(1 - p)), "erfinv": (S.erfinv, mp.erfinv),
    "exp1": (S.exp1, mp.e1), "expi": (S.expi, mp.ei),
    "exprel": (S.exprel, lambda x: mp.expm1(x) / x),
    "fresnel_c": (_part("fresnel", 1), mp.fresnelc),
    "fresnel_s": (_part("fresnel", 0), mp.fresnels),
    "gamma": (S.gamma, mp.gamma), "gammaln": (S.gammaln, lambda x: mp.log(abs(mp.gamma(x)))),
    "i0": (S.i0, lambda x: mp.besseli(0, x)), "i1": (S.i1, lambda x: mp.besseli(1, x)),
    "i0e": (S.i0e, lambda x: mp.besseli(0, x) * mp.exp(-abs(x))),
    "i1e": (S.i1e, lambda x: mp.besseli(1, x) * mp.exp(-abs(x))),
    "j0": (S.j0, lambda x: mp.besselj(0, x)), "j1": (S.j1, lambda x: mp.besselj(1, x)),
    "k0": (S.k0, lambda x: mp.besselk(0, x)), "k1": (S.k1, lambda x: mp.besselk(1, x)),
    "k0e": (S.k0e, lambda x: mp.besselk(0, x) * mp.exp(x)),
    "k1e": (S.k1e, lambda x: mp.besselk(1, x) * mp.exp(x)),
    "lambertw": (lambda x: xp.real(S.lambertw(x)), mp.lambertw),
    "ndtri": (S.ndtri, lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1)),
    "polygamma": (lambda x: S.polygamma(2, x), lambda x: mp.psi(2, x)),
    "psi": (S.psi, lambda x: mp.psi(0, x)), "rgamma": (S.rgamma, mp.rgamma),
    "shichi_c": (_part("shichi", 1), mp.chi), "shichi_s": (_part("shichi", 0), mp.shi),
    "sici_c": (_part("sici", 1), mp.ci), "sici_s": (_part("sici", 0), mp.si),
    "sindg": (S.sindg, _degrees(mp.sin)), "sinc": (S.sinc, mp.sincpi),
    "spence": (S.spence, lambda x: mp.polylog(2, 1 - x)), "tandg": (S.tandg, _degrees(mp.tan)),
    "wrightomega": (S.wrightomega, lambda x: mp.lambertw(mp.exp(x))),
    "y0": (S.y0, lambda x: mp.bessely(0, x)), "y1": (S.y1, lambda x: mp.bessely(1, x)),
    "zeta": (S.zeta, mp.zeta), "zetac": (S.zetac, lambda x: mp.zeta(x) - 1),
}  # fmt: skip
SIZES = (
    1e-20, 1e-10, 1e-5, 0.01, 0.3, 0.5 - 1e-9, 1 - 1e-10, 1 - 1e-5, 1.0, 1 + 1e-9, 2.0, 2.5,
    3 - 1e-6, 7.5, 20.3,
)  # fmt: skip


def _derivatives(f: Callable[[Any], Any], x: float) -> tuple[float, float] | None:
    """The first and the second one; None beside the domain."""
    with mp.workdps(130 if abs(x) < 1e-9 else 75):
        h = mp.mpf(x) * mp.mpf(10) ** -20
        try:
            low, here, high = (f(mp.mpf(x) + k * h) for k in (-1, 0, 1))
        except (ZeroDivisionError, ValueError):
            return None
        if any(mp.im(y) != 0 or not mp.isfinite(y) for y in (low, here, high)):
            return None
        first, second = (high - low) / (2 * h), (high - 2 * here + low) / (h * h)
        return float(mp.re(first)), float(mp.re(second))


def back(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative of each element, in reverse."""
    return ft.grad(lambda x: xp.sum(f(x)))


def on(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative of each element, forward."""
    return lambda x: ft.jvp(f, (x,), (xp.ones_like(x),))[1]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_derivatives_keep_their_digits(name: str) -> None:
    """Of both orders, in both modes and compiled, next to the poles too."""
    f, other = FUNCTIONS[name]
    x = np.array([s * v for v in SIZES for s in (1, -1)])
    wanted = [_derivatives(other, v) for v in x.tolist()]
    there = np.isfinite(np.asarray(f(xp.asarray(x)))) & [w is not None for w in wanted]
    wrong = []
    for order, rtol in ((0, 1e-10), (1, 1e-8)):
        for way in (back, on, lambda f: ft.jit(back(f))):
            slope = way(back(f)) if order else way(f)
            found = np.asarray(slope(xp.asarray(x)))
            for k in np.flatnonzero(there):
                w = wanted[k][order]  # type: ignore[index]
                if abs(w) < 1e290 and not abs(found[k] - w) <= rtol * abs(w) + 1e-15:
                    wrong.append((order + 1, x[k], found[k], w))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_derivatives_at_the_smallest_numbers(name: str) -> None:
    """As at small ones, where those tend to a number: closed forms divide by x."""
    f = FUNCTIONS[name][0]
    least = xp.asarray([5e-324, 1e-310, 1e-160])
    for slope in (back(f), on(f), back(back(f)), on(on(f))):
        for side in (1.0, -1.0):
            near, far = np.asarray(slope(side * xp.asarray([1e-30, 1e-25]))).tolist()
            if abs(near) < 1e9 and abs(near - far) <= 1e-12 * abs(near):
                found = np.asarray(slope(side * least))
                np.testing.assert_allclose(found, near, 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_wofz_of_nothing_is_complex(dtype: str) -> None:
    """As of something: the dtype of compiled programs is found on an empty array."""
    f, x = S.wofz, xp.zeros((3,), dtype=dtype)
    assert f(x[:0]).dtype == f(x).dtype == ft.eval_shape(f, x).dtype


BESIDE: dict[str, tuple[Any, Callable[[Any], Any], list[float]]] = {
    "digamma": (
        gamma._beside_no_pole, lambda x: mp.psi(0, x),
        [
            *[float(np.nextafter(-k, 0.0)) for k in (1, 2, 3, 64)], -1 + 1e-10, -7 + 1e-5, -1.8,
            float(np.nextafter(-1.0, -2.0)), -0.9, -0.7, -1e-20, 5e-324, 0.3, 40.0,
        ],
    ),
    "gammaln": (
        gamma._of_full_precision, lambda x: mp.log(abs(mp.gamma(x))),
        [5e-324, 1e-310, -1e-310, 2.3e-308, -2.3e-308, -0.3, 0.2, 3.7],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
def test_functions_keep_their_digits_beside_poles(name: str) -> None:
    """Where SciPy loses them: of few and many numbers, called seldom and often, and compiled."""
    few, other, points = BESIDE[name]
    f = getattr(S, name)
    with mp.workdps(50):
        wanted = np.array([float(other(mp.mpf(v))) for v in points])
    x = np.array(points)
    many = np.tile(x, 80)
    rows = ft.jit(lambda x: ft.scan(lambda c, v: (c, f(v)), 0, xp.stack([x] * 3))[1][2])
    np.testing.assert_allclose(few._given[1](x), wanted, 4e-15)
    few.load()
    assert few.call is not few._given[1]
    for way in (f, ft.jit(f), ft.jit(f, mode="reduce-overhead"), rows):
        np.testing.assert_allclose(way(xp.asarray(x)), wanted, 4e-15)
        np.testing.assert_allclose(way(xp.asarray(many)), np.tile(wanted, 80), 4e-15)
        np.testing.assert_allclose(way(xp.asarray(x[:, None])[::-1])[:, 0], wanted[::-1], 4e-15)
