"""linear_transpose of what linearize gives is the pullback, whatever stands in the function.

What a linearized loop carries besides tangents (values, residuals) is computed by the same node as
the tangents, and does not depend on them: the transposition has to see that.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from tests import laws

X = xp.asarray([0.3, -0.7, 1.1])
Fun = Callable[[Any], Any]


def _nested(x: Any) -> Any:
    def row(c: Any, k: Any) -> Any:
        return ft.scan(lambda d, j: (xp.sin(d) * k + j, d * j), c, X)

    return ft.scan(row, x, xp.asarray([0.5, 2.0]))


def _ruled() -> Fun:
    f = ft.custom_vjp(lambda x: xp.sin(x) * x)
    f.defvjp(lambda x: (xp.sin(x) * x, x), lambda x, ct: (ct * (xp.cos(x) * x + xp.sin(x)),))
    return lambda x: ft.scan(lambda c, k: (f(c) * k, None), x, X)[0]


FUNS: dict[str, Fun] = {
    "no loop": lambda x: xp.sin(x) * xp.sum(x),
    "scan": lambda x: ft.scan(lambda c, k: (xp.sin(c) * k, c * c), x, X),
    "scan over x": lambda x: ft.scan(lambda c, k: (xp.sin(c) * k, c * k), 1.0, x, reverse=True),
    "closed over": lambda x: ft.scan(lambda c, k: (xp.sin(c) * x + k, None), x * x, X)[0],
    "nested": _nested,
    "for": lambda x: ft.fori_loop(0, 3, lambda i, c: xp.sin(c) * c + i, x),
    "while": lambda x: ft.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, xp.sin(s[1])), (0, x)
    )[1],
    "while on a value": lambda x: ft.while_loop(lambda s: xp.sum(s) < 50, lambda s: s * s + 2, x),
    "cond": lambda x: ft.cond(xp.sum(x) > 0, lambda c: xp.sin(c) * c, lambda c: c * c, x),
    "switch": lambda x: ft.switch(1, [xp.sin, lambda c: c * c, xp.cos], x),
    "cond in scan": lambda x: ft.scan(
        lambda c, k: (ft.cond(k > 0, lambda c: xp.sin(c) * k, lambda c: c * c, c), c), x, X
    ),
    "map": lambda x: ft.map(lambda r: xp.sin(r) * r, x),
    "prefixes": lambda x: ft.associative_scan(xp.multiply, x + 2.0),
    "ruled": _ruled(),
    "remade": lambda x: ft.scan(ft.checkpoint(lambda c, k: (xp.sin(c) * k * c, None)), x, X)[0],
    "products": lambda x: xp.prod(x) * xp.cumulative_prod(x),
}  # fmt: skip
WAYS: dict[str, Callable[[Fun], Fun]] = {
    "eager": lambda f: f,
    "jit": ft.jit,
    "checkpoint": ft.checkpoint,
    "jit of checkpoint": lambda f: ft.jit(ft.checkpoint(f)),
    "checkpoint of jit": lambda f: ft.checkpoint(ft.jit(f)),
    "jit twice": lambda f: ft.jit(ft.jit(f)),
    "vmap": lambda f: lambda x: ft.vmap(f)(xp.stack([x, x * 0.5])),
    "gradient": lambda f: ft.jit(ft.grad(lambda x: sum(map(xp.sum, ft.tree.leaves(f(x)))))),
}  # fmt: skip


@pytest.mark.in_turn
@pytest.mark.parametrize("name", FUNS)
@pytest.mark.parametrize("way", WAYS)
def test_transposed_push_is_the_pull(way: str, name: str) -> None:
    """<ct, J t> = <J^T ct, t>, with J^T the transposed push, and J^T ct as vjp gives it."""
    f = WAYS[way](FUNS[name])
    y, push = ft.linearize(f, X)
    rng = np.random.default_rng(0)
    ct = ft.tree.map(lambda v: xp.asarray(rng.normal(size=v.shape)), y)
    expected = ft.vjp(f, X)[1](ct)
    for g in (push, ft.jit(push)):
        laws.close(ft.linear_transpose(g, X)(ct), expected, 1e-12, 1e-12)


@pytest.mark.parametrize("way", ["eager", "jit", "checkpoint"])
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x * x,
        lambda x: ft.scan(lambda c, k: (c * x, None), x, X)[0],
        lambda x: ft.scan(lambda c, k: (c * k, c * c), x, X)[1],
        lambda x: ft.scan(lambda c, k: ((c[0] * c[1], c[0]), None), (x, x), X)[0],
        lambda x: ft.fori_loop(0, 3, lambda i, c: c * c, x),
        lambda x: ft.cond(xp.sum(x) > 1, lambda c: c * 2.0, lambda c: c * 3.0, x),
        lambda x: ft.while_loop(lambda s: xp.sum(s) > 1, lambda s: s * 0.5, x),
    ],
)  # fmt: skip
def test_what_is_not_linear_is_refused(way: str, fun: Fun) -> None:
    """Dependence through a loop's carry, its ys, its test and a branch's predicate counts."""
    with pytest.raises(ft.errors.TransformError, match="not linear"):
        ft.linear_transpose(WAYS[way](fun), X)
