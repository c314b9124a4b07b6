"""Loops in loops in loops: what a nest costs to write down grows with its depth, not as a power."""

from collections.abc import Callable
from typing import Any

import pytest

import funct as ft
import funct.array as xp
from tests import laws


def _while(init: Any, f: Callable[[Any], Any], x: Any) -> Any:
    return ft.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, f(c[1]), c[2]), (init, x, 2))[1]


def _grown(init: Any, f: Callable[[Any], Any], x: Any) -> Any:
    return ft.while_loop(
        lambda c: c[0] < 1, lambda c: (c[0] + 1, f(c[1]), xp.sum(c[1]) * c[2]), (init, x, 2.0)
    )[1]


def _fori(init: Any, f: Callable[[Any], Any], x: Any) -> Any:
    return ft.fori_loop(0, 1, lambda i, c: (c[0] + 1, f(c[1])), (init, x))[1]


def _scan(init: Any, f: Callable[[Any], Any], x: Any) -> Any:
    return ft.scan(lambda c, _: ((c[0] * xp.sum(c[1]), f(c[1])), c[0]), (init, x), None, length=1)[
        0
    ][1]


NESTS = {"while": _while, "grown": _grown, "fori": _fori, "scan": _scan}


def _runs(loop: Any, init: Any, depth: int, wrap: Any) -> tuple[int, Any]:
    """How often the innermost body runs, and the result."""
    count = 0

    def inner(x: Any) -> Any:
        nonlocal count
        count += 1
        return x * 1.5

    fun = inner
    for _ in range(depth):
        fun = lambda x, f=fun: loop(init, f, x)  # noqa: E731
    out = wrap(fun)(xp.ones(3))
    return count, out


DERIVED: dict[str, Any] = {
    "eager": lambda f: f, "jit": ft.jit,
    "gradient": lambda f: ft.jit(ft.grad(lambda x: xp.sum(f(x)))),
}  # fmt: skip


@pytest.mark.parametrize("init", [0, 0.0])
@pytest.mark.parametrize("how", DERIVED)
@pytest.mark.parametrize("name", NESTS)
def test_a_nest_of_loops_with_numbers_is_run_a_few_times(name: str, how: str, init: Any) -> None:
    """Numbers among what loops carry take their dtypes from the body: run for that at each level,
    and again where it was written down, it was run 2 or 3 to the power of the depth.
    """
    few, _ = _runs(NESTS[name], init, 3, DERIVED[how])
    many, out = _runs(NESTS[name], init, 6, DERIVED[how])
    assert many <= 4 * few, (few, many)
    laws.close(out, xp.full(3, 1.5))


@pytest.mark.parametrize("dtype", [xp.float32, xp.float16, xp.int32, xp.complex64])
def test_numbers_in_nests_take_the_dtypes_that_the_body_gives_them(dtype: Any) -> None:
    """Also where those of the loop around follow from the one inside, and the rows from both."""

    def inner(a: Any) -> Any:
        return ft.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2 + a), (0, 0))[1]

    def counted(x: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            return (c[0] + 1, inner(x[0]), 1 + c[2]), (c[2], c[1], c[0])

        return ft.scan(step, (0, 0, 1), None, length=2)

    def nested(x: Any) -> Any:
        return ft.fori_loop(0, 2, lambda _, c: (c[0] + counted(x)[1][1][1], c[1] * 2), (0, 0.5))

    x = xp.asarray([1, 2], dtype=dtype)
    (n, total, _), (_, totals, counts) = plain = counted(x)
    assert (n.dtype, counts.dtype, totals.dtype) == (xp.int64, xp.int64, total.dtype)
    assert inner(x[0]).dtype == dtype
    laws.same(ft.jit(counted)(x), plain)
    laws.same(ft.jit(nested)(x), nested(x))
