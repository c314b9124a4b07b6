"""xp.special at the edges of formulas: a derivative is the limit of those beside it.

Inside the domains test_special.py compares with differences. At poles that cancel, at 0, 1 and the
ends of domains closed forms are 0 · ∞ or ∞ − ∞. Where the derivatives around a point tend to a
number from some side, the derivative at the point is no NaN, and lies among such numbers.
"""

from __future__ import annotations

import itertools
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
    ("boxcox1p", 0, 2), ("beta", 0, 2), ("beta", 1, 2), ("betaln", 0, 2), ("betaln", 1, 2),
    ("betainc", 2, 2), ("betaincc", 2, 2), ("chdtri", 1, 2), ("comb", 0, 2), ("comb", 1, 2),
    ("factorial", 0, 2), ("i0e", 0, 2), ("inv_boxcox", 1, 1), ("ive", 1, 2),
    ("inv_boxcox1p", 1, 1), ("kl_div", 0, 2), ("poch", 0, 2), ("poch", 1, 1), ("poch", 1, 2),
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
    ("kv", (1.0, np.inf), 0, 0.0),
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
