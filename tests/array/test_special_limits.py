"""xp.special at the edges of formulas: a derivative is the limit of those beside it.

Inside the domains test_special.py compares with differences. At poles that cancel, at 0, 1 and the
ends of domains closed forms are 0 · ∞ or ∞ − ∞. Where the derivatives around a point tend to a
number from some side, the derivative at the point is no NaN, and lies among such numbers.
"""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.special

import funct as ft
import funct.array as xp
from tests.array.test_special import SMOOTH

S = xp.special

POINTS = {
    1: (-2.0, -1.0, -0.5, 0.0, 0.3, 0.5, 1.0, 2.0, 7.0),
    2: (-2.0, -1.0, -0.5, 0.0, 0.3, 1.0, 2.5, 7.0),
    3: (0.0, 0.3, 1.0, 2.0),
    4: (0.5, 1.0),
}
JUMPS = {  # kinks, jumps, and poles beside which there are numbers on one line alone
    ("boxcox1p", 0, 2), ("beta", 0, 2), ("beta", 1, 2), ("fdtr", 0, 2), ("fdtrc", 0, 2),
    ("chdtri", 1, 2), ("comb", 0, 2), ("comb", 1, 2),
    ("factorial", 0, 2), ("i0e", 0, 2), ("inv_boxcox", 1, 1), ("ive", 1, 2),
    ("inv_boxcox1p", 1, 1), ("kl_div", 0, 2), ("poch", 1, 1), ("poch", 1, 2),
    ("rel_entr", 0, 2),
}  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def _points(name: str) -> tuple[Any, list[int]]:
    """Awkward combinations of operands, and which operands have derivatives."""
    ranges = SMOOTH[name]
    fixed = [low == high for low, high in ranges]
    lists: list[Any] = []
    for (low, _), still in zip(ranges, fixed, strict=True):
        orders = (0.0, 1.0, 2.0, 3.0) if low == int(low) else (0.5, 1.5)
        lists.append(orders if still else POINTS[len(ranges)])
    if name == "zeta":
        lists = [(1.5, 2.0, 7.0), (0.3, 0.5, 1.0, 2.0)]
    return np.array(list(itertools.product(*lists))).T, [i for i, s in enumerate(fixed) if not s]


def _slopes(f: Any, i: int, order: int, columns: Any) -> Any:
    args = [xp.asarray(c) for c in columns]
    slope = lambda a: f(*args[:i], a, *args[i + 1 :])  # noqa: E731
    for _ in range(order):
        slope = ft.grad(lambda a, f=slope: xp.sum(f(a)))
    return np.asarray(slope(args[i]))


def _limit(f: Any, i: int, order: int, columns: Any, step: Any) -> Any:
    """What slopes tend to from a side, NaN where they do not."""
    a, b, c = (_slopes(f, i, order, columns + h * step[:, None]) for h in (1e-3, 1e-4, 1e-5))
    near = np.abs(c - b) <= np.minimum(
        0.3 * np.abs(b - a) + 1e-7 * (1 + np.abs(c)), 1e-5 + 1e-2 * np.abs(c)
    )
    return np.where(near, c, np.nan)


@pytest.mark.parametrize("name", sorted(SMOOTH))
def test_derivatives_are_limits(name: str) -> None:
    """In every operand, of both orders, from both sides of every operand."""
    f, (columns, free) = getattr(S, name), _points(name)
    steps = [side * np.eye(len(columns))[j] for j in free for side in (1, -1)]
    finite = np.isfinite(np.asarray(f(*map(xp.asarray, columns))))
    for i, order in itertools.product(free, (1, 2)):
        if (name, i, order) in JUMPS:
            continue
        here = _slopes(f, i, order, columns)
        limits = np.array([_limit(f, i, order, columns, step) for step in steps])
        low, high = (
            np.nanmin(limits, 0, initial=np.inf),
            np.nanmax(limits, 0, initial=-np.inf),
        )
        known = finite & np.isfinite(limits).any(0)
        room = 1e-5 + 1e-2 * np.abs(np.where(known, low, 0.0))
        among = (low - room <= here) & (here <= high + room) | np.isinf(here)
        missed = known & ~among
        assert not missed.any(), (i, order, columns[:, missed].T[:5], here[missed][:5])


# What closed forms lost: name, operands, operand of the derivative, and the derivative, by mpmath.
LOST = [
    ("betainc", (0.0, 0.3, 0.5), 1, 0.0), ("betainc", (0.3, 0.0, 0.5), 1, 3.159142276847999),
    ("betainc", (1e-10, 0.3, 1e-10), 0, -25.951159418762746),
    ("betainc", (1e-10, 1e-10, 0.3), 0, -2500000000.2118244),
    ("gammainc", (0.0, 3.0), 0, -0.013048381094197), ("i0e", (1e20,), 0, -1.9947114020071634e-31),
    ("i1e", (-1e20,), 0, -1.9947114020071634e-31), ("k0e", (1e20,), 0, -6.266570686577501e-31),
    ("ive", (2.3, 1e6), 1, -1.9946963220080655e-10), ("kve", (2.3, 3e5), 1, -3.813809576250934e-9),
    ("stdtr", (1e-8, 1.5), 0, 4.904475821720806), ("stdtr", (2.0, np.inf), 0, 0.0),
    ("stdtr", (np.inf, 1.0), 1, 0.24197072451914337), ("spence", (1e-20,), 0, -46.051701859880914),
    ("spence", (1e20,), 0, -4.605170185988091e-19), ("beta", (-0.5, 1e-20), 0, -8.934802200544679),
    ("beta", (-0.5, -0.5), 1, -12.566370614359172), ("poch", (-20.0, -1.0), 0, -0.0022675736961451),
    ("poch", (1e-8, -1.0), 0, -1.0000000200000003), ("binom", (0.5, 300.0), 0, 0.0003078763864046),
    ("binom", (1e10, 0.01), 0, 1.266109505474384e-12),
    ("ellipk", (-1e12,), 0, 7.1009024595368817e-18),
    ("ellipkinc", (0.5, 1.0), 1, 0.025067566595210033),
    ("ellipkinc", (0.01, 1e-8), 1, 1.666633333652292e-07),
    ("ellipeinc", (20.3, -50.0), 1, -0.8848595405674908), ("lpmv", (0.0, 7.0, -1.0), 2, 28.0),
    ("pseudo_huber", (0.0, 2.0), 0, 2.0), ("boxcox", (0.0, 0.5), 1, 4.0),
    ("jv", (2.0, 0.0), 0, 0.0), ("jv", (0.0, 0.0), 0, -np.inf), ("yv", (1.0, np.inf), 0, 0.0),
    ("kv", (1.0, np.inf), 0, 0.0), ("inv_boxcox", (-1.0, 1.0), 1, -1.0),
    ("inv_boxcox1p", (-1.0, 1.0), 1, -1.0), ("stdtr", (1e6, 1.0), 0, 1.2098530176687542e-13),
    ("stdtr", (1e9, -5.0), 0, -4.8318390790873264e-23), ("kl_div", (0.0, 0.3), 1, 1.0),
    ("jv", (1e-12, 1e-6), 1, 4.999999999933469e-07),
    ("iv", (1e-12, 1e-6), 1, 1.4999999999789153e-06), ("gdtr", (0.0, 1.0, 2.0), 0, 2.0),
    ("gdtr", (0.0, 0.5, 2.0), 2, 0.0), ("gdtr", (2.0, 0.5, 0.0), 0, 0.0),
    ("expm1", (-50.0,), 0, 1.9287498479639178e-22), ("boxcox", (0.0, 2.0), 0, 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "point", "i", "expected"), LOST)
def test_derivatives_that_closed_forms_lose(name: str, point: Any, i: int, expected: float) -> None:
    """Digits that cancel, series without end, infinities that meet 0; in every way of asking."""
    f = getattr(S, name)
    args = [xp.asarray(v) for v in point]
    along = lambda v: f(*args[:i], v, *args[i + 1 :])  # noqa: E731
    one = xp.ones(())
    for found in (
        ft.grad(along)(args[i]),
        ft.jvp(along, (args[i],), (one,))[1],
        ft.vmap(ft.grad(along))(xp.stack([args[i]] * 2))[1],
        ft.jit(ft.grad(along))(args[i]),
    ):
        np.testing.assert_allclose(float(found), expected, 1e-9)


# Second and mixed derivatives: name, operands, the two operands, and the derivative, by mpmath.
LOST_TWICE = [
    ("gammainc", (0.0, 0.3), (0, 1), 2.4693940689390597), ("gammainc", (2.5, 0.0), (0, 1), 0.0),
    ("betainc", (0.3, 0.0, 0.3), (1, 2), 3.318310961599757),
    ("betainc", (0.0, 0.3, 0.7), (0, 2), 3.318310961599757),
    ("betainc", (5.0, 1e-9, 0.3), (0, 2), -1.3931685328694354e-11),
    ("beta", (-2.0, 1.0), (0, 0), -0.25),
    ("beta", (1.0, -2.0), (1, 1), -0.25), ("betaln", (-2.0, 1.0), (0, 0), 0.25),
    ("poch", (-2.0, -2.0), (0, 0), 0.04282407407407407),
    ("poch", (-2.0, -1.0), (0, 0), -0.07407407407407407),
    ("boxcox", (1e-30, 1.0), (1, 0), -69.07755278982137),
    ("xlogy", (0.0, 0.3), (1, 0), 1 / 0.3), ("xlogy", (0.0, 0.3), (0, 1), 1 / 0.3),
    ("xlog1py", (0.0, 0.3), (1, 0), 1 / 1.3), ("kl_div", (0.0, 0.3), (0, 1), -1 / 0.3),
    ("rel_entr", (0.0, 0.3), (0, 1), -1 / 0.3), ("rel_entr", (0.0, 0.3), (1, 0), -1 / 0.3),
    ("stdtr", (2.5, 0.0), (0, 1), 0.013554437862656086),
    ("stdtr", (2.5, 0.0), (1, 0), 0.013554437862656086), ("fdtr", (4.0, 0.3, 0.0), (0, 0), 0.0),
    ("ellipkm1", (1e-20,), (0, 0), 5e39),
    ("gdtr", (0.0, 2.0, 3.0), (0, 0), 9.0), ("gdtr", (0.0, 1.0, 3.0), (0, 2), 1.0),
    ("gdtr", (0.0, 1.0, 3.0), (0, 0), -9.0), ("gdtr", (0.0, 2.0, 0.0), (0, 2), 0.0),
    ("gdtr", (0.0, 1.0, 0.0), (2, 0), 1.0), ("gdtr", (0.0, 1.0, 3.0), (1, 2), 0.0),
    ("gdtr", (3.0, 1.0, 0.0), (0, 1), 0.0), ("gdtr", (3.0, 1.0, 0.0), (2, 2), -9.0),
    ("gdtrc", (0.0, 1.0, 3.0), (2, 0), -1.0), ("fdtr", (2.0, 3.0, 0.0), (0, 0), 0.0),
    ("fdtr", (2.0, 3.0, 0.0), (2, 2), -5 / 3), ("fdtr", (2.0, 3.0, 0.0), (1, 2), 0.0),
    ("fdtr", (2.0, 3.0, 0.0), (0, 1), 0.0), ("betainc", (2.0, 3.0, 0.0), (0, 2), 0.0),
    ("betainc", (1.0, 3.0, 0.0), (1, 2), 1.0), ("boxcox", (0.0, 2.0), (0, 1), 0.0),
    ("boxcox", (0.0, 0.5), (0, 1), -np.inf), ("boxcox1p", (-1.0, 2.0), (0, 0), 1.0),
    ("boxcox1p", (-1.0, 3.0), (0, 1), 0.0), ("boxcox1p", (-1.0, 0.5), (0, 1), -np.inf),
]  # fmt: skip


@pytest.mark.parametrize(("name", "point", "pair", "expected"), LOST_TWICE)
def test_second_derivatives_that_closed_forms_lose(
    name: str, point: Any, pair: tuple[int, int], expected: float
) -> None:
    """Zeros that meet poles of their own derivatives, in one order and the other."""
    first = ft.grad(getattr(S, name), pair[0])
    for f in (ft.grad(first, pair[1]), ft.jit(ft.grad(first, pair[1]))):
        found = float(f(*[xp.asarray(v) for v in point]))
        np.testing.assert_allclose(found, expected, 1e-8, 1e-15)


# Far out, where terms of the derivatives cancel: both orders at complex points, by mpmath.
FAR = [
    ("wofz", 1000.0, (-0-5.641904298342473e-07j), 1.1283825522457083e-09j),
    ("wofz", (200+100j), (-9.027358315921429e-06-6.770180202879597e-06j),
     (9.930180795764931e-08+1.8049949894592113e-08j)),
    ("wofz", (-50-3j), (-2.6919129412161303e-05-0.00022338380219609383j),
     (-1.608689552626863e-06-8.844064437393118e-06j)),
    ("erfcx", (200+100j), (-6.770369770581667e-06+9.026708369522456e-06j),
     (1.8058182549038796e-08-9.929292535691866e-08j)),
    ("erfcx", 100000j, (5.6418958363238475e-11+0j), 1.1283791674340263e-15j),
    ("erfcx", (-9-8j), (-1137070184.1318855-246379055.56520382j),
     (16609368522.513805+22580503532.739418j)),
    ("erfcx", (-3+50j), (0.00022338380219609383-2.6919129412161303e-05j),
     (1.608689552626863e-06+8.844064437393118e-06j)),
    ("dawsn", (1000+1j), (-4.99999249996875e-07+1.00000099999925e-09j),
     (9.999969999812498e-10-3.00000499999475e-12j)),
    ("dawsn", (-20+3j), (-0.0011724210403925629-0.00036121459132714627j),
     (-0.00010969205600312208-5.283111501477522e-05j)),
    ("dawsn", (3-20j), (1.660867953529964e+171+1.6052437892749269e+171j),
     (-7.424127291546515e+172+5.6896245846718736e+172j)),
    ("kve", (100000+200000j), (5.324244907788381e-10+5.902682441135307e-09j),
     (-3.7014033811435635e-14-1.4512900504731005e-14j)),
    ("kve", (-30000+100000j), (1.7461535015223093e-08+6.337248097996974e-09j),
     (-1.5108399435288676e-14+2.6645630778369473e-13j)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "point", "first", "second"), FAR)
def test_complex_derivatives_far_out(name: str, point: Any, first: Any, second: Any) -> None:
    """Differences of what is nearly equal, replaced by what they are."""
    f = functools.partial(getattr(S, name), *([xp.asarray(2.3)] if name == "kve" else []))
    z, one = xp.asarray(point), xp.ones((), dtype=xp.asarray(point).dtype)
    slope = lambda z: ft.jvp(f, (z,), (one,))[1]  # noqa: E731
    np.testing.assert_allclose(complex(slope(z)), first, 1e-12)
    np.testing.assert_allclose(complex(ft.jvp(slope, (z,), (one,))[1]), second, 1e-11)


@pytest.mark.parametrize("x", [2.0, 1e3, 1e6 + 1, 1e10, 3.0 + 2.0**-20, 1e6 + 0.5])
def test_fresnel_integrals_far_out(x: float) -> None:
    """Derivatives are a sine and a cosine of whole turns less than x**2 / 4, by fractions."""
    quarter = float(Fraction(x) ** 2 % 4)
    expected = np.sin(np.pi / 2 * quarter), np.cos(np.pi / 2 * quarter)
    for k in (0, 1):
        found = float(ft.grad(lambda x, k=k: S.fresnel(x)[k])(xp.asarray(x)))
        np.testing.assert_allclose(found, expected[k], 0, 4e-16 * max(x, 4.0))


def test_second_derivatives_of_elliptic_integrals() -> None:
    """In the parameter, around 0 and 1 and far below 0, by differences of the first ones."""
    phi = xp.asarray(np.repeat([0.3, 1.0, 1.4, 2.0, 5.0, -20.3], 5))
    m = np.tile([0.0, 0.5, 0.9, -3.0, -1e6], 6)
    for f in (S.ellipkinc, S.ellipeinc):
        first = ft.grad(lambda m, f=f: xp.sum(f(phi, m)))
        found = np.asarray(ft.grad(lambda m, d=first: xp.sum(d(m)))(xp.asarray(m)))
        h = 1e-5 * (1 + np.abs(m))
        differences = np.asarray(first(xp.asarray(m + h)) - first(xp.asarray(m - h))) / (2 * h)
        np.testing.assert_allclose(found, differences, 1e-5, 1e-14)
    at_one = ft.grad(ft.grad(S.ellipkinc, 1), 1)(xp.asarray(0.5), xp.asarray(1.0))
    np.testing.assert_allclose(float(at_one), 0.00663374790064455, 1e-13)


def test_huge_operands_take_no_time() -> None:
    """The kernels' work does not grow with their operands."""
    huge = xp.asarray(np.full(50, 1e10))
    slopes = ft.grad(lambda v, x: xp.sum(S.ive(v, x)), (0, 1))(huge, huge)
    second = ft.grad(lambda x: xp.sum(ft.grad(lambda y: xp.sum(S.exprel(y)))(x)))(huge)
    h = 1e-3
    expected = float(scipy.special.ive(1e6 + h, 1e6) - scipy.special.ive(1e6 - h, 1e6)) / (2 * h)
    single = ft.grad(S.ive)(xp.asarray(1e6), xp.asarray(1e6))
    assert np.isnan(expected) or np.isclose(float(single), expected, 1e-3)
    assert all(s.shape == (50,) for s in (*slopes, second))
