"""Collectives over vmap's named axes: NumPy on the whole batch, and every transform."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import ops
from funct.core import catalogue
from funct.errors import FunctError, ShapeError, TransformError

N = 4
X = np.random.default_rng(1).normal(size=(N, N, 8))
RING = [(k, (k + 1) % N) for k in range(N)]
LINE = [(k, k + 1) for k in range(N - 1)]

Fun = Callable[[Any], Any]


def every(x: Any) -> Any:
    """A result that all lanes share."""
    return np.broadcast_to(x, (N, *x.shape))


# name: what a lane computes, and the same on the batch (lanes on axis 0) with NumPy
CASES: dict[str, tuple[Fun, Fun]] = {
    "psum": (lambda x: ft.psum(x, "i"), lambda b: every(b.sum(0))),
    "pmean": (lambda x: ft.pmean(x, "i"), lambda b: every(b.mean(0))),
    "pmax": (lambda x: ft.pmax(x, "i"), lambda b: every(b.max(0))),
    "pmin": (lambda x: ft.pmin(x, "i"), lambda b: every(b.min(0))),
    "axis_index": (
        lambda x: x * ft.axis_index("i"), lambda b: b * np.arange(N)[:, None, None],
    ),
    "axis_size": (lambda x: x * ft.axis_size("i"), lambda b: b * N),
    "all_gather": (lambda x: ft.all_gather(x, "i"), every),
    "all_gather axis": (
        lambda x: ft.all_gather(x, "i", axis=-1), lambda b: every(np.moveaxis(b, 0, -1)),
    ),
    "all_gather tiled": (
        lambda x: ft.all_gather(x, "i", axis=1, tiled=True),
        lambda b: every(np.concatenate(list(b), 1)),
    ),
    "psum_scatter": (lambda x: ft.psum_scatter(x, "i"), lambda b: b.sum(0)),
    "psum_scatter tiled": (
        lambda x: ft.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
        lambda b: np.stack(np.split(b.sum(0), N, 1)),
    ),
    "all_to_all": (
        lambda x: ft.all_to_all(x, "i", 0, 0), lambda b: b.swapaxes(0, 1),
    ),
    "all_to_all axes": (
        lambda x: ft.all_to_all(x, "i", 0, 1),
        lambda b: np.stack([np.stack([b[j, k] for j in range(N)], 1) for k in range(N)]),
    ),
    "all_to_all tiled": (
        lambda x: ft.all_to_all(x, "i", 1, 0, tiled=True),
        lambda b: np.stack([np.concatenate([np.split(r, N, 1)[k] for r in b]) for k in range(N)]),
    ),
    "ppermute ring": (lambda x: ft.ppermute(x, "i", RING), lambda b: np.roll(b, 1, 0)),
    "ppermute line": (
        lambda x: ft.ppermute(x, "i", LINE), lambda b: np.concatenate([0 * b[:1], b[:-1]]),
    ),
}  # fmt: skip
each = pytest.mark.parametrize("name", CASES)


def numbers(x: Any) -> Any:
    """A NumPy array of a Tensor."""
    return np.asarray(x)


@each
def test_values(name: str) -> None:
    """One call on the whole batch, eager and compiled."""
    lane, whole = CASES[name]
    for run in (ft.vmap(lane, axis_name="i"), ft.jit(ft.vmap(lane, axis_name="i")),
                ft.vmap(ft.jit(lane), axis_name="i")):  # fmt: skip
        np.testing.assert_allclose(numbers(run(xp.asarray(X))), whole(X), rtol=1e-12, atol=1e-12)


@each
def test_under_another_vmap(name: str) -> None:
    """The named axis inside and outside an unnamed one."""
    lane, whole = CASES[name]
    many = np.stack([X, 2 * X + 1, X[::-1]])
    want = np.stack([whole(x) for x in many])
    inner = ft.vmap(ft.vmap(lane, axis_name="i"))(xp.asarray(many))
    np.testing.assert_allclose(numbers(inner), want, rtol=1e-12, atol=1e-12)
    outer = ft.vmap(ft.vmap(lane), 1, 1, axis_name="i")(xp.asarray(many))
    np.testing.assert_allclose(numbers(outer), want, rtol=1e-12, atol=1e-12)


@each
def test_derivatives(name: str, rng: np.random.Generator) -> None:
    """Forward is the difference quotient of the batch, reverse its adjoint; also from inside."""
    lane, whole = CASES[name]
    both = ft.vmap(lane, axis_name="i")
    x, t = xp.asarray(X), xp.asarray(rng.normal(size=X.shape))
    y, pushed = ft.jvp(both, (x,), (t,))
    step = 1e-6
    slope = (whole(X + step * numbers(t)) - whole(X - step * numbers(t))) / (2 * step)
    np.testing.assert_allclose(numbers(pushed), slope, rtol=1e-6, atol=1e-7)
    ct = xp.asarray(rng.normal(size=y.shape))
    pulled = ft.vjp(both, x)[1](ct)[0]
    np.testing.assert_allclose(float(xp.sum(pulled * t)), float(xp.sum(ct * pushed)), rtol=1e-9)
    inside = ft.vmap(lambda a, c: ft.vjp(lane, a)[1](c)[0], axis_name="i")
    np.testing.assert_allclose(numbers(inside(x, ct)), numbers(pulled), rtol=1e-9, atol=1e-12)
    forward = ft.vmap(lambda a, d: ft.jvp(lane, (a,), (d,))[1], axis_name="i")
    np.testing.assert_allclose(numbers(forward(x, t)), numbers(pushed), rtol=1e-9, atol=1e-12)


def test_values_that_do_not_vary_between_lanes() -> None:
    """Constants are summed as often as there are lanes, by every route."""
    ones = xp.ones(3)
    assert ft.vmap(lambda x: ft.psum(1.0, "i"), axis_name="i")(ones).tolist() == [3.0] * 3
    assert ft.vmap(lambda x: ft.psum(True, "i"), axis_name="i")(ones).tolist() == [3] * 3
    slope = ft.vmap(ft.grad(lambda x: ft.psum(2.0 * x, "i")), axis_name="i")(ones)
    assert slope.tolist() == [6.0] * 3
    part = ft.vmap(lambda x: ft.psum_scatter(xp.arange(3), "i"), axis_name="i")(ones)
    assert part.tolist() == [0, 3, 6]
    small = xp.asarray(np.array([100, 100], np.int8))
    assert ft.vmap(lambda x: ft.psum(x, "i"), axis_name="i")(small).dtype == xp.int8


ALIKE: dict[str, Any] = {
    "psum": lambda x: ft.psum(x, "i"),
    "pmean": lambda x: xp.sin(ft.pmean(x * x, "i")),
    "pmax": lambda x: ft.pmax(x, "i"),
    "all_gather": lambda x: xp.sort(ft.all_gather(x, "i"), axis=0)[0],
    "of a constant": lambda x: ft.psum(2.0, "i") * xp.ones(3),
    "jit": ft.jit(lambda x: ft.psum(x, "i") * 2.0),
    "scan": lambda x: ft.scan(lambda c, _: (c + ft.psum(x, "i"), None), xp.zeros(x.shape), None, 3)[
        0
    ],
    "cond": lambda x: ft.cond(ft.psum(x[0, 0], "i") > 0, xp.sin, xp.cos, ft.psum(x, "i")),
    "if": lambda x: ft.psum(x, "i") * (2.0 if ft.psum(x[0, 0], "i") > 0 else 3.0),
    "of a gradient": lambda x: ft.psum(ft.grad(lambda y: xp.sum(y**3))(x), "i"),
    "a tangent": lambda x: ft.jvp(lambda y: ft.psum(y * y, "i"), (x,), (x,))[1],
}


@pytest.mark.parametrize("name", ALIKE)
def test_results_that_all_lanes_share(name: str, rng: np.random.Generator) -> None:
    """out_axes=None takes what collectives give, and what is made of that alone, in every way."""
    x, t = xp.asarray(X), xp.asarray(rng.normal(size=X.shape))
    each = ft.vmap(ALIKE[name], axis_name="i")
    one = ft.vmap(ALIKE[name], axis_name="i", out_axes=None)
    want = numbers(each(x))[0]
    for f in (one, ft.jit(one)):
        np.testing.assert_allclose(numbers(f(x)), want, rtol=1e-12)
        np.testing.assert_allclose(
            numbers(ft.jvp(f, (x,), (t,))[1]), numbers(ft.jvp(each, (x,), (t,))[1])[0], rtol=1e-12
        )
        ct = xp.asarray(rng.normal(size=want.shape))
        first = xp.concat([ct[None], xp.zeros((N - 1, *want.shape))])
        np.testing.assert_allclose(
            numbers(ft.vjp(f, x)[1](ct)[0]), numbers(ft.vjp(each, x)[1](first)[0]),
            rtol=1e-12, atol=1e-12,
        )  # fmt: skip
        two = ft.vmap(f)(xp.stack([x, t]))
        np.testing.assert_allclose(numbers(two[1]), numbers(each(t))[0], rtol=1e-12)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: ft.axis_index("i"),
        lambda x: x + ft.psum(x, "i"),
        lambda x: ft.psum_scatter(ft.all_gather(x, "i"), "i"),
        lambda x: ft.ppermute(x, "i", RING),
    ],
)
def test_results_that_differ_need_an_axis(fun: Any) -> None:
    """What depends on the lane is refused, also where it happens to be equal."""
    for f in (fun, ft.jit(fun)):
        with pytest.raises(TransformError, match="may differ between lanes"):
            ft.vmap(f, axis_name="i", out_axes=None)(xp.asarray(0.0 * X))


def test_two_axes() -> None:
    """Names nest; a tuple means all of them; the inner of two equal names counts."""
    grid = xp.asarray(np.arange(6.0).reshape(2, 3))
    rows = ft.vmap(ft.vmap(lambda x: ft.psum(x, "j"), axis_name="j"), axis_name="i")(grid)
    np.testing.assert_array_equal(numbers(rows)[:, 0], [3.0, 12.0])
    columns = ft.vmap(ft.vmap(lambda x: ft.psum(x, "i"), axis_name="j"), axis_name="i")(grid)
    np.testing.assert_array_equal(numbers(columns)[0], [3.0, 5.0, 7.0])
    total = ft.vmap(ft.vmap(lambda x: ft.psum(x, ("i", "j")), axis_name="j"), axis_name="i")(grid)
    np.testing.assert_array_equal(numbers(total), np.full((2, 3), 15.0))
    inner = ft.vmap(ft.vmap(lambda x: ft.psum(x, "i"), axis_name="i"), axis_name="i")(grid)
    np.testing.assert_array_equal(numbers(inner), numbers(rows))


def test_trees_and_batch_norm() -> None:
    """Statistics over the batch, written for one example: what named axes are for."""

    def norm(x: Any) -> Any:
        mean = ft.pmean(x, "batch")
        return {"out": (x - mean) / xp.sqrt(ft.pmean((x - mean) ** 2, "batch") + 1e-5)}

    x = X.reshape(N, -1)
    want = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)
    out = ft.vmap(norm, axis_name="batch")(xp.asarray(x))["out"]
    np.testing.assert_allclose(numbers(out), want, rtol=1e-12)
    both = ft.vmap(lambda x: ft.psum({"a": x, "b": (x, 1)}, "i"), axis_name="i")(xp.ones(2))
    assert both["b"][1].tolist() == [2, 2]


def test_errors_leave_no_trace() -> None:
    """Unbound names, lanes that are apart, lengths and permutations that do not fit."""
    x = xp.ones((3, 2))
    for _ in range(100):
        with pytest.raises(TransformError, match="axis_name must be bound by a vmap"):
            ft.psum(x, "i")
        with pytest.raises(TransformError, match=r"got 'k'; bound are \['i'\]"):
            ft.vmap(lambda v: ft.psum(v, "k"), axis_name="i")(x)
        with pytest.raises(TransformError, match="run apart"):
            ft.vmap(lambda v: ft.psum(v, "i"), axis_name="i", chunk_size=2)(x)
        with pytest.raises(TransformError, match="run apart"):
            ft.vmap(lambda v: ft.psum(v, "i") if v > 1 else v, axis_name="i")(xp.arange(3))
        with pytest.raises(ShapeError, match="must have length 3"):
            ft.vmap(lambda v: ft.psum_scatter(v, "i"), axis_name="i")(x)
        with pytest.raises(ShapeError, match="multiple of 3"):
            ft.vmap(lambda v: ft.all_to_all(v, "i", 0, 0, tiled=True), axis_name="i")(x)
        with pytest.raises(TransformError, match="receives at most once"):
            ft.vmap(lambda v: ft.ppermute(v, "i", [(0, 1), (2, 1)]), axis_name="i")(x)
        with pytest.raises(FunctError):
            ft.vmap(lambda v: ft.all_gather(v, "i", axis=5), axis_name="i")(x)
    with pytest.raises(TransformError, match="axis_name must be bound"):
        ft.axis_index("i")


def test_only_collectives_have_no_samples() -> None:
    """Their laws stand in this file, because they make sense inside vmap alone."""
    bare = {p.name for p in catalogue() if not p.samples(np.random.default_rng(0))}
    assert bare == {"psum", "all_gather", "psum_scatter"}
    with pytest.raises(TransformError, match="no lanes"):
        ops.psum(xp.ones(2), xp.asarray(0), 2)
