"""vmap over Python control flow: lanes that disagree go their own ways, and equal the loop."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ConcretizationError, FunctError, ShapeError, TransformError, TreeError

Fun = Callable[..., Any]


def collatz(n: Any) -> Any:
    """Steps until 1: a `while` with an `if` inside."""
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps = steps + 1
    return steps


def newton(a: Any) -> Any:
    """Square root of a by Newton's method, until it stands still."""
    x = a
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def words(text: Any) -> Any:
    """Words in a row of codes (0 is a blank), and the longest: a state machine."""
    count, longest, here = 0, 0, 0
    for k in range(text.shape[0]):
        if text[k] == 0:
            here = 0
        else:
            here = here + 1
            if here == 1:
                count = count + 1
            if here > longest:
                longest = here
    return {"count": count, "longest": longest}


def branchy(x: Any) -> Any:
    """Pieces with different derivatives, one of them undefined where it is not taken."""
    if x > 1.0:
        return xp.log(x)
    if x < 0.0:
        return x * x
    return xp.sin(x) + 2.0


def positive_part(row: Any) -> Any:
    """A boolean mask: every lane has another number of elements."""
    return xp.sum(row[row > 0] ** 2)


def loop(fun: Fun, batch: Any) -> Any:
    """fun of each lane, stacked."""
    outs = [fun(batch[k]) for k in range(batch.shape[0])]
    return ft.tree.map(lambda *leaves: xp.stack([xp.asarray(v) for v in leaves]), *outs)


def same(got: Any, want: Any) -> None:
    """Equal trees, up to rounding."""
    for g, w in zip(ft.tree.leaves(got), ft.tree.leaves(want), strict=True):
        assert g.shape == w.shape
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-13)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=12))
def test_collatz(numbers: list[int]) -> None:
    """Trip counts differ from lane to lane."""
    batch = xp.asarray(numbers)
    same(ft.vmap(collatz)(batch), loop(collatz, batch))


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=8))
def test_root_finding(values: list[float]) -> None:
    """A convergence test, and its derivative: that of the steps taken."""
    batch = xp.asarray(values)
    same(ft.vmap(newton)(batch), loop(newton, batch))
    same(ft.vmap(ft.grad(newton))(batch), loop(ft.grad(newton), batch))


@given(st.lists(st.lists(st.integers(0, 2), min_size=6, max_size=6), min_size=1, max_size=6))
def test_state_machine(rows: list[list[int]]) -> None:
    """Many `if`s, and results that are Python numbers in a dict."""
    batch = xp.asarray(rows)
    same(ft.vmap(words)(batch), loop(words, batch))


BATCH = np.array([0.5, 3.0, -1.0, 0.25, -2.0, 7.0])

NESTINGS: dict[str, tuple[Fun, Fun]] = {
    "vmap": (ft.vmap(branchy), branchy),
    "grad in vmap": (ft.vmap(ft.grad(branchy)), ft.grad(branchy)),
    "hessian in vmap": (ft.vmap(ft.hessian(branchy)), ft.hessian(branchy)),
    "jvp in vmap": (
        ft.vmap(lambda x: ft.jvp(branchy, (x,), (x,))), lambda x: ft.jvp(branchy, (x,), (x,)),
    ),
    "jit in vmap": (ft.vmap(ft.jit(branchy)), branchy),
    "jit of vmap": (ft.jit(ft.vmap(branchy)), branchy),
    "grad of vmap": (ft.grad(lambda b: xp.sum(ft.vmap(branchy)(b))), ft.grad(branchy)),
    "jit of grad of vmap": (
        ft.jit(ft.grad(lambda b: xp.sum(ft.vmap(branchy)(b)))), ft.grad(branchy),
    ),
    "linearize of vmap": (lambda b: ft.linearize(ft.vmap(branchy), b)[1](xp.ones_like(b)),
                          ft.grad(branchy)),
    "in chunks": (ft.vmap(branchy, chunk_size=4), branchy),
}  # fmt: skip


@pytest.mark.parametrize("name", NESTINGS)
def test_nestings_equal_the_loop(name: str) -> None:
    """Lanes part below and above every other transform."""
    batched, one = NESTINGS[name]
    for batch in (BATCH, BATCH[::-1].copy(), BATCH[:1]):
        same(batched(xp.asarray(batch)), loop(one, xp.asarray(batch)))


def turn(c: Any, x: Any) -> Any:
    """One step that decides by its values."""
    return c * x if c + x > 0.5 else c - x


STEPS = xp.asarray([0.3, -0.7, 1.2])
LOOPS: dict[str, Fun] = {
    "scan": lambda x: ft.scan(lambda c, r: (turn(c, r), c), x, STEPS)[0],
    "scan from a number": lambda x: ft.scan(lambda c, r: (turn(c, r * x), c), 0.0, STEPS)[0],
    "while": lambda x: ft.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, turn(s[1], x)), (0, x)
    )[1],
    "while to the lane's end": lambda x: ft.while_loop(
        lambda s: s[0] < 4.0 + x, lambda s: (s[0] + 1, turn(s[1], x) + 0.9), (0, x)
    )[1],
    "fori": lambda x: ft.fori_loop(0, 3, lambda i, s: turn(s, x) if i != 1 else s * 2.0, x),
    "fori to the lane's bound": lambda x: ft.fori_loop(
        0, xp.astype(xp.ceil(x * x), "int64"), lambda i, s: turn(s, x), x
    ),
    "cond": lambda x: ft.cond(x > 0, lambda v: turn(v, 0.3), lambda v: turn(v, -0.3), x),
    "switch": lambda x: ft.switch(
        xp.astype(x > 0, "int64"), [lambda v: turn(v, 0.3), lambda v: turn(v, -0.3)], x
    ),
    "map": lambda x: xp.sum(ft.map(lambda r: turn(r, x), STEPS)),
    "checkpoint": ft.checkpoint(lambda x: turn(x, x)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_bodies_of_loops_and_branches_may_decide(name: str) -> None:
    """Lanes part inside of what scan, while_loop, cond and checkpoint run, below derivatives."""
    f, batch = LOOPS[name], xp.asarray([0.3, -0.4, 0.9, 2.0])
    same(ft.vmap(f)(batch), loop(f, batch))
    slopes = loop(ft.grad(f), batch)
    same(ft.vmap(ft.grad(f))(batch), slopes)
    same(ft.grad(lambda b: xp.sum(ft.vmap(f)(b)))(batch), slopes)
    same(ft.jvp(ft.vmap(f), (batch,), (xp.ones_like(batch),))[1], slopes)


@pytest.mark.parametrize("name", LOOPS)
def test_captured_bodies_may_not_decide(name: str) -> None:
    """Where one body stands for every step there is no one value: Python decides, or it is an error
    with the line. A checkpoint runs once, and is guarded.
    """
    f, batch = LOOPS[name], xp.asarray([0.3, -0.4, 0.9, 2.0])
    same(ft.jit(ft.vmap(f))(batch), loop(f, batch))
    if name == "checkpoint":
        return
    with pytest.raises(TransformError, match="depends on a value") as caught:
        ft.jit(ft.vmap(f), fullgraph=True)(batch)
    assert " if " in str(caught.value)


def test_lanes_part_in_both_of_two_vmaps() -> None:
    """Inner lanes part first; the outer ones part where their masks differ."""
    grid = xp.asarray(np.array([[0.5, 3.0, -1.0], [0.5, 3.0, -2.0], [-1.0, -1.0, 4.0]]))
    both = ft.vmap(ft.vmap(branchy))
    same(both(grid), loop(lambda row: loop(branchy, row), grid))
    column = ft.vmap(ft.vmap(branchy, 0), 1)
    same(column(grid), loop(lambda row: loop(branchy, row), grid.T))


def test_a_mask_gives_every_lane_its_own_length() -> None:
    """Boolean masks and nonzero work where the results have one shape again."""
    rows = xp.asarray(np.random.default_rng(0).normal(size=(5, 4)))
    same(ft.vmap(positive_part)(rows), loop(positive_part, rows))
    same(ft.vmap(ft.grad(positive_part))(rows), loop(ft.grad(positive_part), rows))


def test_cost_grows_with_the_paths_not_with_the_lanes() -> None:
    """1,000 lanes on three paths: each prefix is run at most once for each path."""
    runs = []

    def fun(x: Any) -> Any:
        runs.append(x.shape)
        return branchy(x)

    batch = xp.asarray(np.tile(BATCH, 170))
    same(ft.vmap(fun)(batch), loop(branchy, batch))
    assert len(runs) <= 5


def test_many_paths_do_not_recurse() -> None:
    """2,000 lanes on 2,000 paths."""
    batch = xp.arange(2000)
    assert ft.vmap(lambda n: 2 * int(n))(batch).tolist() == [2 * k for k in range(2000)]


def test_user_code_that_catches_exceptions_does_not_see_the_parting() -> None:
    """`except Exception` inside fun catches its own errors alone."""

    def fun(x: Any) -> Any:
        try:
            return -x if x > 0 else x
        except Exception:
            return x * 1000.0

    assert ft.vmap(fun)(xp.asarray([1.0, -2.0])).tolist() == [-1.0, -2.0]


def test_user_code_that_catches_everything_cannot_hide_the_parting() -> None:
    """A bare except, a finally that returns, a handler that fails: lanes part all the same."""

    def bare(x: Any) -> Any:
        try:
            return x * 2.0 if x > 0 else x
        except:  # noqa: E722
            return x * 1e9

    def returned(x: Any) -> Any:
        out = x * 1e9
        try:
            out = x * 2.0 if x > 0 else x
        finally:
            return out  # noqa: B012

    def failing(x: Any) -> Any:
        try:
            return x * 2.0 if x > 0 else x
        except BaseException as error:
            raise RuntimeError("a lane failed") from error

    batch = xp.asarray(BATCH)
    for f in (bare, returned, failing):
        same(ft.vmap(f)(batch), loop(f, batch))
        same(ft.vmap(ft.grad(f))(batch), loop(ft.grad(f), batch))
        same(ft.vmap(ft.vmap(f))(batch[:, None]), loop(f, batch)[:, None])


def test_rules_of_a_custom_vjp_may_branch() -> None:
    """fwd and bwd are batched functions like any other."""

    @ft.custom_vjp
    def clipped(x: Any) -> Any:
        return x * 1.0

    def fwd(x: Any) -> Any:
        return x * 1.0, x

    def bwd(x: Any, ct: Any) -> Any:
        return (ct if x < 1.0 else 0.5 * ct,)

    clipped.defvjp(fwd, bwd)
    one = ft.grad(lambda x: clipped(x) * 3.0)
    same(ft.vmap(one)(xp.asarray(BATCH)), loop(one, xp.asarray(BATCH)))


def test_numbers_adopt_the_dtype_of_the_other_lanes() -> None:
    """`return 0` beside a float32 is a float32, as in eager arithmetic."""
    batch = xp.asarray(np.array([1.0, -1.0], np.float32))
    out = ft.vmap(lambda x: x if x > 0 else 0)(batch)
    assert out.dtype == xp.float32
    assert out.tolist() == [1.0, 0.0]


def test_what_cannot_be_joined_is_refused_and_leaves_no_trace() -> None:
    """Shapes and trees that differ between lanes; an empty batch; then the next call works."""
    batch = xp.asarray([1.0, -1.0, 2.0])
    for _ in range(50):
        with pytest.raises(ShapeError, match="results of one shape"):
            ft.vmap(lambda x: xp.ones(2) if x > 0 else xp.ones(3))(batch)
        with pytest.raises(TreeError, match="other lanes"):
            ft.vmap(lambda x: (x,) if x > 0 else [x])(batch)
        with pytest.raises(ConcretizationError, match="the batch is empty"):
            ft.vmap(lambda x: x if x > 0 else -x)(xp.ones(0))
        with pytest.raises(ShapeError, match="one element"):
            ft.vmap(bool)(xp.ones((2, 3)))
        with pytest.raises(FunctError):
            ft.vmap(lambda x: x if x > 0 else x[5])(batch)
    same(ft.vmap(branchy)(batch), loop(branchy, batch))


EMPTY: dict[str, Fun] = {
    "where": lambda x: xp.where(x > 0, x, -x),
    "cond": lambda x: ft.cond(x > 0, lambda x: x, lambda x: -x, x),
    "while": lambda x: ft.while_loop(lambda c: c < 10, lambda c: c * 2 + 1, x),
    "for": lambda x: ft.fori_loop(0, 3, lambda i, c: c * 2 + i, x),
    "scan": lambda x: ft.scan(lambda c, k: (c * k, c), x, xp.arange(3.0)),
    "map": lambda x: ft.map(lambda k: k * x, xp.arange(3.0)),
    "a decision on shapes": lambda x: x if x.ndim else -x,
}
OVER_NOTHING: dict[str, Callable[[Fun], Fun]] = {
    "vmap": ft.vmap,
    "jit of vmap": lambda f: ft.jit(ft.vmap(f)),
    "vmap of jit": lambda f: ft.vmap(ft.jit(f)),
    "vmap of jvp": lambda f: ft.vmap(lambda x: ft.jvp(f, (x,), (x,))[0]),
    "jvp of vmap": lambda f: lambda x: ft.jvp(ft.vmap(f), (x,), (x,))[1],
    "vmap of vjp": lambda f: ft.vmap(lambda x: ft.vjp(f, x)[0]),
    "vmap of vmap": lambda f: (
        lambda x: ft.tree.map(lambda v: v[0], ft.vmap(ft.vmap(f))(xp.stack([x, x])))
    ),
}


@pytest.mark.parametrize("way", OVER_NOTHING)
@pytest.mark.parametrize("name", EMPTY)
def test_a_batch_of_no_lanes(name: str, way: str) -> None:
    """What asks no lane gives results of no rows, of the types that other batches have."""
    f = OVER_NOTHING[way](EMPTY[name])
    for none, some in zip(
        ft.tree.leaves(f(xp.zeros(0))), ft.tree.leaves(f(xp.ones(2))), strict=True
    ):
        assert none.shape == (0, *some.shape[1:])
        assert none.dtype == some.dtype


@pytest.mark.parametrize("way", OVER_NOTHING)
def test_a_batch_of_no_lanes_takes_no_decision(way: str) -> None:
    """Python has no lane to ask, in every composition; the error says what to write instead."""
    for fun in (lambda x: x if x > 0 else -x, lambda x: x * int(x), newton):
        with pytest.raises(ConcretizationError, match="the batch is empty") as caught:
            OVER_NOTHING[way](fun)(xp.zeros(0))
        assert "cond" in str(caught.value)
