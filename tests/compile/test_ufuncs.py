"""SciPy's functions in loops: the bits of eager execution, and no Python between the steps."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.array import special
from funct.compile import why_not_fused
from tests import laws
from tests.compile.test_flat import _same_in_a_loop

RNG = np.random.default_rng(0)
ONE = (
    "gamma", "digamma", "rgamma", "i0", "i0e", "i1", "j0", "k0", "ndtri", "log_ndtr", "erfcx",
    "exp1", "expi", "dawsn", "zetac", "ellipk", "spence", "sindg",
)  # fmt: skip
SEVERAL: dict[str, Callable[[Any], Any]] = {
    "betainc": lambda x: special.betainc(x + 1, x[::-1] + 2, x),
    "betainc of numbers": lambda x: special.betainc(2.5, 3.0, x),
    "gammainc of a column": lambda x: special.gammainc(xp.abs(x)[:, None], x),
    "beta": lambda x: special.beta(x, 0.5),
    "jv": lambda x: special.jv(1.5, x),
    "betaln": lambda x: special.betaln(x, x),
    "hyp2f1": lambda x: special.hyp2f1(x, 0.5, 1.5, x[::-1]),
    "nextafter": lambda x: xp.nextafter(x, x[::-1]),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*ONE, *SEVERAL])
@pytest.mark.parametrize("n", [1, 8, 33])
def test_numbers(dtype: str, name: str, n: int) -> None:
    """Special values too; a look at another array, and one element."""
    x = RNG.normal(size=(3, n)) * 2
    x[0] = np.abs(x[0]) / 8
    x[1, 0], x[2, -1], x[2, 0] = np.nan, np.inf, -0.0
    f = SEVERAL.get(name) or getattr(special, name)
    xs = xp.asarray(x.astype(dtype))
    with np.errstate(all="ignore"):
        _same_in_a_loop(lambda x: (f(x), f(x[::-1]), f(x * 0.5)[..., :1]), xs)


MIXED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "orders": lambda k, x, y: special.jv(k, y),
    "integrals": lambda k, x, y: special.expn(k, xp.abs(y)),
    "of integers alone": lambda k, x, y: special.beta(k + 1, k + 2),
    "precisions": lambda k, x, y: special.gammainc(xp.abs(x), xp.abs(y)),
    "single and integers": lambda k, x, y: special.kv(k, xp.abs(x) + 1),
    "sums of a series": lambda k, x, y: special.zeta(k + 2, xp.abs(y) + 1),
}


@pytest.mark.parametrize("name", MIXED)
def test_operands_of_several_precisions(name: str) -> None:
    """They are taken in the result's, as eagerly; integers are orders and counts."""
    k = xp.asarray(RNG.integers(0, 5, (3, 8)))
    x, y = (xp.asarray(RNG.normal(size=(3, 8)).astype(d)) for d in ("float32", "float64"))
    f = MIXED[name]
    run = lambda *xs: ft.scan(lambda c, v: (c, f(*v)), 0, xs)[1]  # noqa: E731
    told = why_not_fused(ft.make_graph(run)(k, x, y))
    assert not any("Python goes through" in line for line in told)
    many = [xp.concat([v] * 100) for v in (k, x, y)]
    found = ft.jit(run)(*many)[:3]
    laws.same(found, xp.stack([f(k[i], x[i], y[i]) for i in range(3)]))


@pytest.mark.parametrize("dtype", ["float16", "int32"])
def test_what_is_converted_first(dtype: str) -> None:
    """Numbers that SciPy has no loop for."""
    x = xp.asarray(np.asarray([[1, 2, 3], [4, 5, 6]]).astype(dtype))
    scan = lambda x: ft.scan(lambda c, x: (c, special.gamma(x)), 0, x)[1]  # noqa: E731
    laws.same(ft.jit(scan)(x), scan(x))


def test_derivatives_and_batches() -> None:
    """Of a likelihood in a chain: slopes are such functions."""

    def loss(x: Any) -> Any:
        step = lambda c, _: (c + 0.1, special.digamma(c) + special.betaln(c, 2.0 * c))  # noqa: E731
        return xp.sum(ft.scan(step, x, None, length=40)[1])

    x = xp.asarray([0.5, 1.5, 3.0])
    laws.close(ft.jit(ft.grad(loss))(x), ft.grad(loss)(x), 1e-13, 1e-13)
    laws.close(ft.jit(ft.vmap(loss))(x), xp.stack([loss(v) for v in x]), 1e-13, 1e-13)
