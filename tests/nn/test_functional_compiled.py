"""Compositions as machine code: the numbers of the composition, below any grads, and only there."""

import inspect
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import IndexOutOfBoundsError
from funct.nn import functional as F  # noqa: N812
from funct.nn.functional import compiled
from funct.nn.functional.compiled import COMPILED, LEAST

_INDICES = xp.asarray([1, 0, 6, 3])


def drawn(*shapes: tuple[int, ...], dtype: Any = np.float64) -> list[Any]:
    rng = np.random.default_rng(7)
    return [xp.asarray(rng.normal(size=s).astype(dtype)) for s in shapes]


def _units(*shapes: tuple[int, ...]) -> list[Any]:
    return [xp.asarray(np.random.default_rng(8).uniform(0.05, 0.95, s)) for s in shapes]


_SIGNS = xp.sign(drawn((4, 7))[0])
_BAGS = xp.asarray([[0, 3, 3], [4, 2, 0]])

# name: its arrays, and a call of the function on them
CASES: dict[str, tuple[list[Any], Any]] = {
    "batch_norm": (drawn((4, 6, 5), (6,), (6,)), lambda f, x, w, b: f(x, None, None, w, b, True)),
    "instance_norm": (drawn((4, 6, 5), (6,)), lambda f, x, w: f(x, weight=w)),
    "layer_norm": (drawn((4, 7), (7,), (7,)), lambda f, x, w, b: f(x, (7,), w, b, eps=1e-3)),
    "rms_norm": (drawn((4, 3, 7), (3, 7)), lambda f, x, w: f(x, (3, 7), w)),
    "group_norm": (drawn((4, 6, 5), (6,), (6,)), lambda f, x, w, b: f(x, 3, weight=w, bias=b)),
    "local_response_norm": (drawn((2, 6, 5)), lambda f, x: f(x, 3)),
    "softmax": (drawn((4, 7, 3)), lambda f, x: f(x, 1)),
    "log_softmax": (drawn((4, 7)), lambda f, x: f(x, dim=-1)),
    "cross_entropy": (
        drawn((4, 7), (7,)), lambda f, x, w: f(x, _INDICES, w, ignore_index=6, label_smoothing=0.1)
    ),
    "nll_loss": (drawn((4, 7), (7,)), lambda f, x, w: f(x, _INDICES, w, ignore_index=6)),
    "binary_cross_entropy": (_units((4, 7), (4, 7)), lambda f, x, t: f(x, t)),
    "binary_cross_entropy_with_logits": (
        [*drawn((4, 7)), *_units((4, 7))], lambda f, x, t: f(x, t, reduction="sum")
    ),
    "huber_loss": (drawn((4, 7), (4, 7)), lambda f, x, t: f(x, t, delta=0.5)),
    "smooth_l1_loss": (drawn((4, 7), (4, 7)), lambda f, x, t: f(x, t, beta=0.5)),
    "mse_loss": (drawn((4, 7), (4, 7)), lambda f, x, t: f(x, t, reduction="sum")),
    "l1_loss": (drawn((4, 7), (4, 7)), lambda f, x, t: f(x, t)),
    "kl_div": ([*drawn((4, 7)), *_units((4, 7))], lambda f, x, t: f(x, t, reduction="batchmean")),
    "gaussian_nll_loss": (
        [*drawn((4, 7), (4, 7)), *_units((4, 7))], lambda f, x, t, v: f(x, t, v, full=True)
    ),
    "hinge_embedding_loss": (drawn((4, 7)), lambda f, x: f(x, _SIGNS, margin=0.5)),
    "soft_margin_loss": (drawn((4, 7)), lambda f, x: f(x, _SIGNS)),
    "multi_margin_loss": (drawn((4, 7), (7,)), lambda f, x, w: f(x, _INDICES, 2, weight=w)),
    "multilabel_soft_margin_loss": ([*drawn((4, 7)), *_units((4, 7))], lambda f, x, t: f(x, t)),
    "margin_ranking_loss": (
        drawn((4, 7), (4, 7)), lambda f, x, y: f(x, y, _SIGNS, margin=0.1)
    ),
    "cosine_embedding_loss": (
        drawn((4, 7), (4, 7)), lambda f, x, y: f(x, y, _SIGNS[:, 0], margin=0.1)
    ),
    "triplet_margin_loss": (
        drawn((4, 7), (4, 7), (4, 7)), lambda f, x, y, z: f(x, y, z, swap=True)
    ),
    "normalize": (drawn((4, 7, 3)), lambda f, x: f(x, dim=1)),
    "cosine_similarity": (drawn((4, 7), (4, 7)), lambda f, x, y: f(x, y)),
    "pairwise_distance": (drawn((4, 7), (4, 7)), lambda f, x, y: f(x, y, p=3.0)),
    "_upper_distances": (drawn((5, 7)), lambda f, x: f(x, 2.0)),
    "_by_differences": (drawn((5, 7), (4, 7)), lambda f, x, y: f(x, y, 1.0)),
    "_by_products": (drawn((5, 7), (4, 7)), lambda f, x, y: f(x, y, 2.0)),
    "_pair_distances": (drawn((4, 20)), lambda f, x: f(x, 2.0)),
    "lp_pool1d": (_units((2, 3, 9)), lambda f, x: f(x, 2.0, 3, 2)),
    "lp_pool2d": (_units((1, 2, 5, 6)), lambda f, x: f(x, 3.0, 2)),
    "lp_pool3d": (_units((2, 4, 3, 5)), lambda f, x: f(x, 2.0, 2)),
    "_composed_sample": (
        [*drawn((2, 3, 5, 6)), *_units((2, 4, 4, 2))],
        lambda f, x, g: f(x, g, "bilinear", "border", False),
    ),
    "embedding_bag": (drawn((5, 6)), lambda f, w: f(_BAGS, w, mode="mean")),
    "poisson_nll_loss": ([*drawn((4, 7)), *_units((4, 7))], lambda f, x, t: f(x, t)),
    **{
        name: (drawn((4, 6)), lambda f, x: f(x))
        for name in (
            "celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
            "leaky_relu", "logsigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu",
            "softplus", "softshrink", "softsign", "tanhshrink",
        )
    },
    "_scaled": (drawn((4, 6, 3)), lambda f, x: f(x, _SIGNS[:, :6, None] > 0, 1.25)),
    "prelu": (drawn((4, 6), (6,)), lambda f, x, w: f(x, w)),
    "threshold": (drawn((4, 6)), lambda f, x: f(x, 0.1, 0.2)),
}  # fmt: skip


def called(name: str) -> Any:
    """What users call, or other functions."""
    return getattr(F, name, None) or inspect.unwrap(COMPILED[name]).__globals__[name]


each = pytest.mark.parametrize("name", CASES)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every array is large."""
    monkeypatch.setattr(compiled, "LEAST", 1)


def close(found: Any, expected: Any) -> None:
    """Within 64 units in the last place of the largest element."""
    found, expected = ft.tree.leaves(found), ft.tree.leaves(expected)
    assert [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in expected]
    for x, y in zip(found, expected):
        size = float(np.max(np.abs(np.asarray(y)), initial=1.0))
        unit = float(np.finfo(y.dtype).eps) * size
        assert np.max(np.abs(np.asarray(x) - np.asarray(y)), initial=0.0) <= 64 * unit


def test_every_one_of_them_has_a_case() -> None:
    assert set(CASES) == set(COMPILED)


@each
@pytest.mark.usefixtures("always")
def test_values_and_two_orders_of_derivatives_are_those_of_the_composition(name: str) -> None:
    arrays, call = CASES[name]
    public, composed = called(name), COMPILED[name]
    assert public.__wrapped__ is inspect.unwrap(composed)

    def total(fun: Any) -> Any:
        return lambda *xs: xp.sum(xp.sin(call(fun, *xs)))

    close(call(public, *arrays), call(composed, *arrays))
    wrt = tuple(range(len(arrays)))
    close(*[ft.grad(total(f), argnums=wrt)(*arrays) for f in (public, composed)])

    def slope(fun: Any) -> Any:
        return ft.grad(lambda x: xp.sum(ft.grad(total(fun))(x, *arrays[1:]) ** 2))

    close(*[slope(f)(arrays[0]) for f in (public, composed)])


@each
@pytest.mark.usefixtures("always")
def test_other_transforms_see_the_composition(name: str) -> None:
    arrays, call = CASES[name]
    public, composed = ((lambda *xs, f=f: call(f, *xs)) for f in (called(name), COMPILED[name]))

    def text(fun: Any) -> str:
        return ft.jit(fun).show(*arrays, form="graph")

    assert text(public) == text(composed)
    tangents = tuple([xp.ones_like(x) for x in arrays])
    found, expected = (ft.jvp(f, tuple(arrays), tangents) for f in (public, composed))
    assert all(
        np.array_equal(np.asarray(x), np.asarray(y))
        for x, y in zip(ft.tree.leaves(found), ft.tree.leaves(expected))
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "call"), [
    ("softmax", lambda f, x, w: f(x, 2)),
    ("softmax", lambda f, x, w: f(x, 1)),
    ("log_softmax", lambda f, x, w: f(x, 2)),
    ("layer_norm", lambda f, x, w: f(x, (200,), weight=w)),
    ("rms_norm", lambda f, x, w: f(x, (200,), w)),
    ("group_norm", lambda f, x, w: f(x, 4)),
    ("batch_norm", lambda f, x, w: f(x, None, None, training=True)),
    ("gelu", lambda f, x, w: f(x)),
    ("silu", lambda f, x, w: f(x)),
])  # fmt: skip
def test_machine_code_is_a_few_units_from_the_composition(name: str, call: Any, dtype: Any) -> None:
    x, w = drawn((10, 12, 200), (200,), dtype=dtype)
    public, composed = called(name), COMPILED[name]
    close(call(public, x, w), call(composed, x, w))
    found, expected = (ft.vjp(lambda x, f=f: call(f, x, w), x)[1](x) for f in (public, composed))
    close(found, expected)


def test_small_arrays_have_the_bits_of_the_composition() -> None:
    (x,) = drawn((3, LEAST // 3), dtype=np.float32)
    assert np.array_equal(np.asarray(F.softmax(x, 1)), np.asarray(COMPILED["softmax"](x, 1)))


@pytest.mark.parametrize("threads", [1, 2])
def test_large_arrays_have_the_same_bits_on_any_number_of_threads(threads: int) -> None:
    x, w = drawn((64, 1024), (1024,), dtype=np.float32)
    with ft.config.using(threads=1):
        expected = F.layer_norm(x, (1024,), w, w)
    with ft.config.using(threads=threads):
        found, pull = ft.vjp(lambda x: F.layer_norm(x, (1024,), w, w), x)
        assert np.array_equal(np.asarray(found), np.asarray(expected))
        assert pull(found)[0].shape == x.shape


def test_what_the_composition_refuses_is_refused() -> None:
    (x,) = drawn((128, 256))
    labels = xp.asarray(np.full(128, 256))
    with pytest.raises(IndexOutOfBoundsError):
        F.cross_entropy(x, labels)


@pytest.mark.usefixtures("always")
def test_a_batch_inside_of_a_grad_is_the_composition_too() -> None:
    (x,) = drawn((5, 7))

    def loss(f: Any) -> Any:
        return lambda x: xp.sum(ft.vmap(lambda row: f(row, 0))(x) ** 2)

    close(*[ft.grad(loss(f))(x) for f in (F.softmax, COMPILED["softmax"])])


IMAGES: dict[str, Any] = {
    "batch_norm": lambda f, x, w: f(x, w * 0, w * w, w, training=True)[0],
    "instance_norm": lambda f, x, w: f(x, weight=w),
    "group_norm": lambda f, x, w: f(x, 3, w, w),
    "softmax": lambda f, x, w: f(x, 1),
    "prelu": lambda f, x, w: f(x, w),
    "mse_loss": lambda f, x, w: f(x, xp.flip(x, axis=1), reduction="none"),
}


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("size", [(5, 4), (2, 4, 3)])
@pytest.mark.usefixtures("always")
def test_images_whose_channels_are_last_are_read_so(name: str, size: tuple[int, ...]) -> None:
    """The numbers are the composition's, and what comes out lies as what came in."""
    x, w = drawn((2, *size, 6), (6,))
    first = xp.asarray(np.moveaxis(np.asarray(x), -1, 1).copy())
    last = xp.asarray(np.moveaxis(np.asarray(x), -1, 1))
    assert not last.data.flags.c_contiguous
    public, composed = ((lambda x, w, f=f: IMAGES[name](f, x, w)) for f in (
        called(name), COMPILED[name]))  # fmt: skip
    (found, pull), (expected, expected_pull) = ft.vjp(public, last, w), ft.vjp(composed, first, w)
    close(found, expected)
    for g in (first, last):
        close(pull(g), expected_pull(first))
    for y in (public(last, w), found, pull(last)[0]):
        assert np.moveaxis(np.asarray(y), 1, -1).flags.c_contiguous
