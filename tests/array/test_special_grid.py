"""xp.special off the beaten track: SciPy's answers at negative, fractional, huge and no numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest
import scipy.special

import funct as ft
import funct.array as xp
from tests.array.test_special import COMPOSED, SMOOTH

S = xp.special

# Operands by their number: awkward ones of every kind, and some of most domains.
GRIDS = {
    2: (
        -inf, -1e20, -3.0, -1.5, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 2.0, 2.5, 7.0, 3e9, inf, nan
    ),
    3: (-2.5, -1.0, -0.5, 0.0, 0.3, 1.0, 2.0, 2.5, 6.0, 1e20, inf, nan),
}  # fmt: skip
MODEST = (-1.5, -1.0, 0.0, 0.5, 2.0, nan)
ENDLESS = {  # SciPy's sums and recurrences are as long as their huge orders say
    "hyp0f1", "hyp1f1", "hyp2f1", "kn", "lpmv", "spherical_in", "spherical_jn", "spherical_kn",
    "spherical_yn", "yn",
}  # fmt: skip
COUNTS = {
    "bdtr", "bdtrc", "bdtri", "expn", "nbdtr", "nbdtrc", "nbdtri", "pdtr", "pdtrc", "pdtri",
}  # fmt: skip
NAMES = sorted([n for n, ranges in SMOOTH.items() if len(ranges) > 1] + ["hankel1", "hankel2"])

PATHS: dict[str, Callable[[Any], Any]] = {"eager": lambda f: f, "jit": ft.jit, "vmap": ft.vmap}

# SciPy says that it cuts a count, or that a count is no integer: here too, or not at all.
pytestmark = [
    pytest.mark.filterwarnings("ignore:floating point number truncated:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:non-integer arg n is deprecated:DeprecationWarning"),
]


def grid(name: str, dtype: str) -> list[Any]:
    """Every combination of awkward operands."""
    count = len(SMOOTH.get(name, (0, 0)))
    points = MODEST if name in ENDLESS else GRIDS[count]
    columns = np.array(list(itertools.product(points, repeat=count))).T
    return [np.ascontiguousarray(c, dtype) for c in columns]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_awkward_operands_have_scipys_answers(name: str, dtype: str) -> None:
    """Values, infinities and NaN, bit for bit in the rooms, on every path and as given."""
    args = grid(name, dtype)
    tight = (1e-4, 1e-30) if dtype == "float32" else (1e-12, 1e-300)
    with np.errstate(all="ignore"):
        expected = getattr(scipy.special, name)(*args)
        for path, through in PATHS.items():
            found = through(getattr(S, name))(*[xp.asarray(a) for a in args])
            assert np.asarray(found).real.dtype == dtype
            if name in COMPOSED:
                np.testing.assert_allclose(np.asarray(found), expected, *tight, err_msg=path)
            else:
                wanted = expected.astype(found.dtype)  # SciPy widens a spherical one
                np.testing.assert_array_equal(np.asarray(found), wanted, err_msg=path)


@pytest.mark.parametrize("name", sorted(COUNTS - {"expn"}))
@pytest.mark.parametrize("count", [int, float, np.int32, np.int64, np.float32, np.float64])
def test_counts_of_every_type(name: str, count: Any) -> None:
    """A count may be a Python number or an array of whole numbers of any dtype."""
    p = np.linspace(0.1, 0.9, 5)
    f, args = getattr(S, name), [2, 5][: len(SMOOTH[name]) - 1]
    given = [count(a) if count in (int, float) else xp.full((5,), count(a)) for a in args]
    expected = getattr(scipy.special, name)(*args, p)
    np.testing.assert_array_equal(np.asarray(f(*given, xp.asarray(p))), expected)


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_derivatives_beside_the_domain(name: str) -> None:
    """Of the last operand: differences of SciPy's where it has values, 0 or NaN where it has none.

    In the counts, in which SciPy's functions are steps, derivatives are 0.
    """
    f, theirs = getattr(S, name), getattr(scipy.special, name)
    points = [v for v in GRIDS[len(SMOOTH[name])] if abs(v) < 10 or np.isnan(v)]
    many = itertools.product(points, repeat=len(SMOOTH[name]) - 1)
    *counts, x = np.array([(*c, p) for c in many for p in (0.2, 0.5, 0.8)]).T
    h = 1e-5
    with np.errstate(all="ignore"):
        there = theirs(*counts, x)
        slopes = (theirs(*counts, x + h) - theirs(*counts, x - h)) / (2 * h)
        fixed = [xp.asarray(c) for c in counts]
        found = np.asarray(ft.grad(lambda v: xp.sum(f(*fixed, v)))(xp.asarray(x)))
    defined = np.isfinite(there)
    assert defined.any()
    assert not defined.all()
    np.testing.assert_allclose(found[defined], slopes[defined], 1e-5, 1e-8)
    assert np.all(np.isnan(found[~defined]) | (found[~defined] == 0))
    if name != "expn":
        with np.errstate(all="ignore"):
            steps = ft.grad(lambda *c: xp.sum(f(*c, xp.asarray(x))), tuple(range(len(counts))))
            assert all(not np.any(np.asarray(s)) for s in steps(*fixed))


ENDS = [  # and the derivative in the last operand; those in the parameters are 0
    ("betaincinv", (2.0, 3.0, 0.0), inf), ("betaincinv", (2.0, 3.0, 1.0), inf),
    ("betainccinv", (2.0, 3.0, 0.0), -inf), ("betainccinv", (2.0, 3.0, 1.0), -inf),
    ("gammaincinv", (2.0, 0.0), inf), ("gammainccinv", (2.0, 1.0), -inf),
    ("betainc", (2.0, 3.0, 0.0), 0.0), ("betainc", (1.0, 3.0, 0.0), 3.0),
    ("betaincc", (2.0, 1.0, 1.0), -2.0), ("gammainc", (1.0, 0.0), 1.0),
    ("gammainc", (2.0, inf), 0.0), ("fdtr", (2.0, 3.0, 0.0), 1.0), ("fdtr", (4.0, 2.0, 0.0), 0.0),
    ("fdtrc", (2.0, 3.0, 0.0), -1.0),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@pytest.mark.parametrize(("name", "point", "slope"), ENDS)
@pytest.mark.parametrize("way", [lambda f: f, ft.jit])
def test_derivatives_at_the_ends(name: str, point: Any, slope: float, way: Any) -> None:
    """Parameters move no end of a domain, and densities there are what they are."""
    every = tuple(range(len(point)))
    found = way(ft.grad(getattr(S, name), every))(*[xp.asarray(v) for v in point])
    np.testing.assert_allclose([float(v) for v in found], [*[0.0] * every[-1], slope], 1e-14)
