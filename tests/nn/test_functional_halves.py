"""What is computed in float32 of floats of 16 bits: losses, softmax, means, samples, sizes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.nn import functional as F  # noqa: N812
from tests.nn.tables import CASES, Case

pytestmark = pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
HALVES = [xp.float16, xp.bfloat16]
ROUNDED_ONCE = (
    "adaptive_avg_pool2d", "adaptive_max_pool2d", "avg_pool2d", "interpolate", "max_pool2d",
    "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy",
    "gaussian_nll_loss", "grid_sample", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
    "log_softmax", "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss", "mse_loss",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss",
    "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin",
    "triplet_margin_loss",
)  # fmt: skip
TOLD = [c for c in CASES if c.name in ROUNDED_ONCE and "return_indices" not in c.keywords]


def compare(fun: Callable[..., Any], floats: list[Any], dtype: Any) -> None:
    """Values and derivatives are those of the same numbers in float32, rounded: eagerly, compiled,
    and both under a derivative.
    """
    short = [xp.astype(xp.asarray(x), dtype) for x in floats]
    single = [xp.astype(x, xp.float32) for x in short]

    def both(*xs: Any) -> Any:
        y, pull = ft.vjp(fun, *xs)
        return y, *pull(xp.ones_like(y))

    expected = [fun(*single), *both(*single)]
    for f, g in (fun, both), (ft.jit(fun), ft.jit(both)):
        for x, exact in zip([f(*short), *g(*short)], expected, strict=True):
            rounded = xp.astype(exact, dtype)
            assert x.dtype == dtype
            a, b = (np.asarray(v, np.float64) for v in (x, rounded))
            assert np.array_equal(np.isfinite(a), np.isfinite(b))
            finite = np.isfinite(b)
            # sums of float32 may have another order
            near = np.spacing(np.abs(rounded.data)[finite]).astype(np.float64)
            near += 1e-5 * np.abs(b[finite]).max(initial=0.0)
            assert np.all(np.abs(a[finite] - b[finite]) <= near)


def test_all_losses_are_looked_at() -> None:
    """Each that is not made of other functions of the user's."""
    losses = {n for n in F.__all__ if n.endswith("_loss")} - {"triplet_margin_with_distance_loss"}
    assert losses <= {c.name for c in TOLD} | {"ctc_loss"}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_alignments_are_summed_in_single_precision(reduction: str, dtype: Any) -> None:
    """What never happens has a logarithm that float16 does not hold."""
    x = np.log(np.random.default_rng(0).dirichlet(np.ones(7), (30, 4)))
    targets, lengths = xp.asarray([[1, 2, 2], [3, 3, 3], [4, 5, 6], [1, 1, 0]]), [3, 2, 3, 1]

    def fun(x: Any) -> Any:
        return F.ctc_loss(x, targets, [30, 20, 10, 30], lengths, reduction=reduction)

    compare(fun, [x], dtype)


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("case", TOLD, ids=[c.id for c in TOLD])
def test_they_are_rounded_once(case: Case, dtype: Any) -> None:
    """Also where their terms leave the range of the dtype."""
    arrays, names = case.arrays(), case.varying()
    fixed = {
        k: xp.astype(xp.asarray(v), dtype) if v.dtype.kind == "f" else xp.asarray(v)
        for k, v in arrays.items()
        if k not in names
    }
    floats = [arrays[k] * (1.0 if k in case.domains else 40.0) for k in names]

    def fun(*xs: Any) -> Any:
        wide = xs[0].dtype
        others = {k: xp.astype(v, wide) if v.dtype == dtype else v for k, v in fixed.items()}
        given = others | dict(zip(names, xs, strict=True))
        return getattr(F, case.name)(**{k: given[k] for k in arrays}, **case.keywords)

    compare(fun, floats, dtype)


@given(
    st.sampled_from(["none", "mean", "sum"]), st.sampled_from([0.0, 0.1]), st.booleans(),
    st.sampled_from([(3, 4), (2, 1000), (40, 300), (3000, 8)]), st.sampled_from([3.0, 200.0]),
    st.sampled_from(HALVES), st.integers(0, 2**31),
)  # fmt: skip
def test_cross_entropy_of_many_classes(
    reduction: str, smoothing: float, weighted: bool, shape: Any, scale: float, dtype: Any,
    seed: int,
) -> None:  # fmt: skip
    """The sum over a thousand classes is large where the loss is not."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) * scale
    target = xp.asarray(rng.integers(0, shape[1], shape[0]))
    weight = rng.uniform(0.5, 2.0, shape[1]) if weighted else None

    def fun(x: Any) -> Any:
        w = None if weight is None else xp.astype(xp.asarray(weight, dtype=dtype), x.dtype)
        return F.cross_entropy(x, target, weight=w, reduction=reduction, label_smoothing=smoothing)

    compare(fun, [x], dtype)


def test_places_beyond_eleven_bits_are_read() -> None:
    """A row of 5,000 pixels, at each of its middles: numbers from 2,048 on have gaps in float16."""
    n = 5000
    at = (2.0 * np.arange(n) + 1.0) / n - 1.0
    short = xp.asarray(at, dtype=xp.float16)
    row = xp.astype(xp.arange(n) % 100, xp.float16)[None, None, None]
    grid = xp.stack([short, xp.zeros_like(short)], axis=1)[None, None]
    exact = F.grid_sample(xp.astype(row, xp.float64), xp.astype(grid, xp.float64))
    error = xp.abs(xp.astype(F.grid_sample(row, grid), xp.float64) - exact)
    assert float(xp.max(error)) <= 0.05
