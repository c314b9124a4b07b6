"""Compositions of few elements as single nodes of a tape: the bits of the composition's tape."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile import few
from funct.errors import ArgumentError, IndexOutOfBoundsError
from funct.kernels.cpu import often
from funct.kernels.cpu.loops import available
from funct.nn import functional as F  # noqa: N812
from funct.nn.functional import compiled
from funct.nn.functional.compiled import COMPILED, WHOLE
from funct.transforms.compiled import single
from tests.nn import test_functional_compiled
from tests.nn.test_functional_compiled import called, close, drawn

_CLASSES = xp.asarray([1, 0, 5, 3])

COMPOSED = COMPILED | WHOLE
CASES: dict[str, tuple[list[Any], Any]] = {
    **test_functional_compiled.CASES,
    "nll_loss": (drawn((4, 6)), lambda f, x: f(x, _CLASSES, ignore_index=5)),
    "channel_shuffle": (drawn((2, 6, 3)), lambda f, x: f(x, 3)),
    "fold": (drawn((2, 12, 6)), lambda f, x: f(x, (3, 4), (2, 2))),
    "pixel_shuffle": (drawn((2, 4, 2, 3)), lambda f, x: f(x, 2)),
    "pixel_unshuffle": (drawn((2, 1, 4, 6)), lambda f, x: f(x, 2)),
    "unfold": (drawn((2, 3, 4, 3)), lambda f, x: f(x, 2, padding=1)),
    "avg_pool1d": (drawn((2, 3, 9)), lambda f, x: f(x, 3, 2, padding=1, count_include_pad=False)),
    "avg_pool2d": (drawn((1, 2, 5, 6)), lambda f, x: f(x, 2)),
    "avg_pool3d": (drawn((2, 4, 3, 5)), lambda f, x: f(x, 2, stride=(1, 2, 2), ceil_mode=True)),
    **{
        f"adaptive_{name}_pool{rank}d": (drawn((2, 3, *(7, 5, 4)[:rank])), lambda f, x: f(x, 3))
        for name in ("avg", "max")
        for rank in (1, 2, 3)
    },
    "max_pool1d": (drawn((2, 3, 9)), lambda f, x: f(x, 3, 2, 1)),
    "max_pool2d": (drawn((1, 2, 5, 6)), lambda f, x: f(x, 2)),
    "max_pool3d": (drawn((2, 4, 3, 5)), lambda f, x: f(x, (2, 1, 2), dilation=2)),
}

each = pytest.mark.parametrize("name", CASES)


# the pulls that stay NumPy's calls: they have ops of windows, or numbers that are looked up
_CALLS = {
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "cross_entropy", "embedding_bag", "fold",
    "_composed_sample", "unfold",
    "local_response_norm", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool2d",
    "max_pool3d", "multi_margin_loss", "_pair_distances",
    *[f"adaptive_{name}_pool{rank}d" for name in ("avg", "max") for rank in (1, 2, 3)],
}  # fmt: skip

# those whose cases hold arrays besides, of as many rows, and those that are compiled before that
_OF_SO_MANY = {
    "_by_differences", "_scaled", "cosine_embedding_loss", "cross_entropy", "_composed_sample",
    "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss", "nll_loss",
    "soft_margin_loss", "_pair_distances", "_upper_distances",
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm",
}  # fmt: skip


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call of any types is often enough, and any composition is worth it."""
    monkeypatch.setattr(compiled, "SINGLES", {})
    monkeypatch.setattr(single, "_OFTEN", 1)
    monkeypatch.setattr(few, "_ENOUGH", 1)
    monkeypatch.setattr(often, "_LOADED", 1)
    monkeypatch.setattr(single, "_WORTH", {True: 1, False: 1})


def _same(found: Any, expected: Any) -> None:
    found, expected = ft.tree.leaves(found), ft.tree.leaves(expected)
    assert [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in expected]
    for x, y in zip(found, expected, strict=True):
        assert np.array_equal(np.asarray(x), np.asarray(y), equal_nan=True)


def _ways(name: str) -> tuple[list[Any], list[Any]]:
    """The arrays of a case, and the function on them: public, and as composed."""
    arrays, call = CASES[name]
    return arrays, [lambda *xs, f=f: call(f, *xs) for f in (called(name), COMPOSED[name])]


def _names(pull: Any) -> list[str]:
    return [n.name for n in pull.nodes()]


def test_every_one_of_them_has_a_case() -> None:
    assert set(CASES) == set(COMPOSED)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(3, 5000), (500, 40), (4097, 2)])
def test_losses_that_read_few_elements_have_their_bits(shape: Any, reduction: str) -> None:
    (x,) = drawn(shape, dtype=np.float32)
    t = xp.asarray(np.random.default_rng(0).integers(0, shape[1], shape[0]))
    found, expected = (f(x, t, reduction=reduction) for f in (F.nll_loss, COMPOSED["nll_loss"]))
    _same(found, expected)
    with pytest.raises(IndexOutOfBoundsError):
        F.nll_loss(x, t + shape[1], reduction=reduction)


def test_pairs_stay_what_they_are() -> None:
    """Maxima with their places, and what is refused, come from the composition."""
    (x,) = CASES["max_pool2d"][0]
    for _ in range(3):
        y, at = F.max_pool2d(x, 2, return_indices=True)
        assert y.shape == at.shape
        slope = ft.grad(lambda x: xp.sum(F.max_pool2d(x, 2, return_indices=True)[0]))(x)
        _same(slope, ft.grad(lambda x: xp.sum(WHOLE["max_pool2d"](x, 2)))(x))
        with pytest.raises(ArgumentError, match="avg_pool2d: kernel_size must be"):
            ft.grad(lambda x: xp.sum(F.avg_pool2d(x, 0)))(x)
        with pytest.raises(IndexOutOfBoundsError):
            ft.grad(lambda x: F.nll_loss(x, xp.asarray([0, 6])))(xp.ones((2, 6)))


@each
def test_one_node_has_the_bits_of_the_tape_of_the_composition(name: str) -> None:
    arrays, ways = _ways(name)
    (y, pull), (z, other) = (ft.vjp(f, *arrays) for f in ways)
    if _names(pull) == _names(other) and name in WHOLE:
        assert len(_names(pull)) == 2  # one op, which the tape records by itself
    else:
        assert name in _names(pull)
        assert set(_names(pull)) <= {name, "input"}
    _same(y, z)
    g = xp.sin(xp.reshape(xp.arange(y.size, dtype=y.dtype), y.shape))
    _same(pull(g), other(g))
    for ct in (g, g, xp.broadcast_to(xp.asarray(0.3, dtype=y.dtype), y.shape)):
        _same(pull(ct), other(ct))  # by machine code, and nothing was written over
    programs = [n.prim._pull for n in pull.nodes() if n.name == name]
    coded = [p.run is not p._calls and p.run.__name__ == "run" for p in programs]
    assert name in _CALLS or coded == [available()]
    _same(*[ft.vjp(lambda x, f=f: f(x, *arrays[1:]), arrays[0])[1](g) for f in ways])


@each
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_and_gradients_have_the_bits_of_the_composition_at_each_call(
    name: str, dtype: Any
) -> None:
    arrays, ways = _ways(name)
    arrays = [xp.astype(x, dtype) for x in arrays]
    wrt = tuple(range(len(arrays)))
    slopes = [ft.grad(lambda *xs, f=f: xp.sum(f(*xs)), argnums=wrt) for f in ways]
    for shift in (0.0, 0.25, -0.125):
        given = [x + shift if k else x - shift for k, x in enumerate(arrays)]
        if name in ("binary_cross_entropy", "kl_div"):  # of probabilities
            given = arrays
        _same(*[f(*given) for f in ways])
        _same(*[slope(*given) for slope in slopes])


@pytest.mark.parametrize("name", sorted(set(CASES) - _OF_SO_MANY))
def test_more_elements_have_the_bits_of_the_composition(name: str) -> None:
    """As many as compositions come here with, by NumPy's calls and by machine code."""
    few, call = CASES[name]
    n = len(few[0])  # images, or rows
    long = [x.ndim > 1 and len(x) == n for x in few]
    times = 4000 // few[0].size
    arrays = [
        xp.astype(xp.concat([x] * times) if k else x, xp.float32)
        for x, k in zip(few, long, strict=True)
    ]
    ways = [lambda *xs, f=f: call(f, *xs) for f in (called(name), COMPOSED[name])]
    pulled = [ft.vjp(f, *arrays) for f in ways]
    _same(*[y for y, _ in pulled])
    g = xp.sin(xp.reshape(xp.arange(pulled[0][0].size, dtype=arrays[0].dtype), pulled[0][0].shape))
    for _ in range(3):
        _same(*[pull(g) for _, pull in pulled])
        _same(*[f(*arrays) for f in ways])


def _last(x: Any) -> Any:
    """Images with their channels last in memory."""
    return xp.asarray(np.moveaxis(np.moveaxis(np.asarray(x), 1, -1).copy(), -1, 1), copy=False)


_IMAGES: dict[str, Any] = {
    "gelu": lambda f, x, w: f(x),
    "hardswish": lambda f, x, w: f(x),
    "mish": lambda f, x, w: f(x),
    "prelu": lambda f, x, w: f(x, w),
    "relu": lambda f, x, w: f(x),
    "sigmoid": lambda f, x, w: f(x),
    "silu": lambda f, x, w: f(x),
    "softmax": lambda f, x, w: f(x, 1),
    "softshrink": lambda f, x, w: f(x),
}


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 6, 11, 5), (3, 4, 2, 5, 3)])
@pytest.mark.parametrize("name", sorted(_IMAGES))
def test_images_whose_channels_are_last_have_code_of_their_own(name: str, shape: Any) -> None:
    """With the bits of the composition, and its layout, also where the cotangent lies otherwise."""
    x, w, g = drawn(shape, shape[1:2], shape, dtype=np.float32)
    last = _last(x)
    ways = [lambda x, f=f: _IMAGES[name](f, x, w) for f in (called(name), COMPOSED[name])]
    for given in (last, last, x, last[::-1], last[:, :, ::2], last):
        found, expected = (f(given) for f in ways)
        _same(found, expected)
        assert found.data.flags.c_contiguous == expected.data.flags.c_contiguous
    pulled = [ft.vjp(f, last) for f in ways]
    for ct in (_last(g), g, _last(g)):
        _same(*[pull(ct) for _, pull in pulled])


_NORMS: dict[str, Any] = {
    "batch_norm": lambda f, x, w: f(x, None, None, w, w, True),
    "group_norm": lambda f, x, w: f(x, 2, w),
    "instance_norm": lambda f, x, w: f(x, weight=w),
    "layer_norm": lambda f, x, w: f(x, x.shape[1:]),
    "local_response_norm": lambda f, x, w: f(x, 3),
    "rms_norm": lambda f, x, w: f(x, x.shape[2:]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", sorted(_NORMS))
def test_norms_of_so_many_are_those_of_compiled_functions(
    name: str, last: bool, dtype: Any
) -> None:
    """Value by value, on tapes or not; a few units from the composition, and so are the slopes."""
    x, w, g = drawn((4, 4, 9, 8), (4,), (4, 4, 9, 8), dtype=dtype)
    x = _last(x) if last else x
    of = called(name), COMPOSED[name]
    public, composed = ((lambda *xs, f=f: _NORMS[name](f, *xs)) for f in of)
    y, pull = ft.vjp(public, x, w)
    assert {n.name for n in pull.nodes()} == {name, "input"}
    for _ in range(3):
        _same(public(x, w), y)
    inner: list[Any] = []

    def twice(x: Any) -> Any:
        z, slope = ft.vjp(lambda x: public(x, w), x)
        inner.append(z)
        return xp.sum(slope(g)[0])

    ft.grad(twice)(x)
    found = inner[0]
    while not isinstance(found, xp.Array):
        found = found.value
    _same(found, y)
    assert y.data.flags.c_contiguous != last
    z, other = ft.vjp(composed, x, w)
    close(y, z)
    close(pull(g), other(g))


@each
def test_other_levels_meet_the_composition(name: str) -> None:
    arrays, ways = _ways(name)
    x, rest = arrays[0], arrays[1:]

    def total(f: Any) -> Any:
        return lambda x: xp.sum(xp.sin(f(x, *rest)))

    def slope(f: Any) -> Any:
        return lambda x: xp.sum(ft.grad(total(f))(x) ** 2)

    _same(*[ft.grad(slope(f))(x) for f in ways])
    _same(*[ft.jvp(ft.grad(total(f)), (x,), (xp.ones_like(x),)) for f in ways])
    _same(*[ft.vmap(ft.grad(total(f)))(xp.stack([x, x + 0.125])) for f in ways])
    _same(*[ft.jit(ft.grad(total(f)))(x) for f in ways])
    (y, pull), (_, other) = (ft.vjp(lambda x, f=f: f(x, *rest), x) for f in ways)
    cts = xp.stack([xp.ones_like(y), y])
    _same(*[ft.vmap(p)(cts) for p in (pull, other)])
    _same(*[ft.grad(lambda g, p=p: xp.sum(p(g)[0] ** 2))(y) for p in (pull, other)])


def test_zeros_that_a_mask_makes_stay_zeros() -> None:
    x = xp.asarray([[1.0, 2.0], [0.0, 0.0]])
    rows = xp.asarray([[True], [False]])

    def total(f: Any) -> Any:
        return lambda x: xp.sum(xp.where(rows, f(x, (2,), eps=0.0), 0.0))

    with np.errstate(all="ignore"):
        found, expected = (ft.grad(total(f))(x) for f in (F.rms_norm, COMPILED["rms_norm"]))
    _same(found, expected)
    assert found[1, :].tolist() == [0.0, 0.0]


def test_calls_differ_by_all_that_is_no_array() -> None:
    (x,) = CASES["softplus"][0]
    for options in ({"beta": 1}, {"beta": 1.0}, {"beta": 3}, {"threshold": 0.0}, {"beta": True}):
        ways = [lambda x, f=f, o=options: f(x, **o) for f in (F.softplus, COMPILED["softplus"])]
        _same(*[ft.grad(lambda x, f=f: xp.sum(f(x)))(x) for f in ways])
    (y,) = CASES["log_softmax"][0]
    for axes, eps in (((7,), 1e-5), ((7,), 0.5), ((4, 7), 0.5)):
        slopes = [
            ft.grad(lambda y, f=f, axes=axes, eps=eps: xp.sum(f(y, axes, eps=eps) ** 3))
            for f in (F.rms_norm, COMPILED["rms_norm"])
        ]
        _same(*[slope(y) for slope in slopes])


def test_values_that_only_equal_others_are_not_those() -> None:
    """Zeros of both signs, numbers of several classes: what was computed for one of them."""
    x = xp.asarray([-1.0, -0.0, 0.0, 2.0], dtype=xp.float32)
    for value in (0.0, -0.0, 1, True, 1.0, 0, False, -0.0, 0.0, float("nan"), np.float64(1.0)):
        for _ in range(2):
            found, expected = (f(x, 0.5, value) for f in (F.threshold, COMPILED["threshold"]))
            assert found.dtype == expected.dtype
            assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
    with pytest.raises(ArgumentError):
        F.hardtanh(x, 1.0, -1.0)
    for _ in range(2):
        assert F.relu6(x).dtype == xp.float32
        assert F.relu6(xp.astype(x, xp.float64)).dtype == xp.float64


def test_a_decision_on_values_is_taken_at_each_call() -> None:
    def turned(x: Any) -> Any:
        y = xp.exp(xp.sin(x)) * xp.cos(x)
        return y * 2.0 if float(xp.sum(x)) > 0 else y * 0.5

    assert _recorded(turned, times=3) == [None, None, None]


@pytest.mark.parametrize("inside", [True, False])
def test_what_watches_sees_the_ops(inside: bool) -> None:
    (x,) = CASES["log_softmax"][0]
    seen: dict[str, list[str]] = {"public": [], "composed": []}
    for kind, f in (("public", F.log_softmax), ("composed", COMPILED["log_softmax"])):

        def rule(primitive: Any, operands: Any, params: Any, kind: str = kind) -> Any:
            seen[kind].append(primitive.name)
            return NotImplemented

        def total(x: Any, f: Any = f) -> Any:
            return xp.sum(f(x, 1))

        if inside:
            ft.grad(ft.intercept(total, rule))(x)
        else:
            ft.intercept(ft.grad(total), rule)(x)
    assert seen["public"] == seen["composed"]
    assert "exp" in seen["public"]


@pytest.mark.parametrize(("name", "stays"), [("tanhshrink", True), ("relu", False)])
def test_a_composition_of_few_ops_stays_what_it_is_unless_one_chooses(
    name: str, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tapes have no fast way for a choice."""
    monkeypatch.setattr(single, "_WORTH", {True: 8, False: 1})
    assert [y is None for y in _recorded(COMPILED[name], times=2)] == [stays, stays]


def _recorded(fun: Any, times: int) -> list[Any]:
    """What becomes of calls of fun on a tape."""
    made, found = single.Single(fun, None), list[Any]()

    def record(x: Any) -> Any:
        found.append(made((x,), {}))
        return xp.sum(x)

    for _ in range(times):
        ft.grad(record)(xp.ones(3))
    return found
