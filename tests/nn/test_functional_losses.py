"""Losses: against sums written out, at the points where derivatives go wrong, and CTC by force."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, IndexOutOfBoundsError, ShapeError
from funct.nn import functional as F  # noqa: N812
from tests import laws
from tests.nn.cases import wave

REDUCTIONS = ("none", "mean", "sum")


def finite(tree: Any) -> None:
    """No NaN and no infinity anywhere."""
    for leaf in ft.tree.leaves(tree):
        assert np.isfinite(np.asarray(leaf)).all()


ZERO, ONE = xp.zeros((2, 3)), xp.ones((2, 3))
SAME = xp.asarray([[1.0, 2.0, 3.0]] * 2)
BIT = xp.asarray([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
HARD = [
    ("distance of equal rows", lambda x: F.pairwise_distance(x, x, eps=0.0), SAME),
    ("cube distance of equal rows", lambda x: F.pairwise_distance(x, x, 3.0, 0.0), SAME),
    ("root distance of equal rows", lambda x: F.pairwise_distance(x, x, 0.5, 0.0), SAME),
    ("distances within equal rows", F.pdist, SAME),
    ("distances of equal rows", lambda x: F.cdist(x, x), SAME),
    ("distances of equal rows, by products",
     lambda x: F.cdist(x, x, compute_mode="use_mm_for_euclid_dist"), SAME),
    ("direction of nothing", F.normalize, ZERO),
    ("angle to nothing", lambda x: F.cosine_similarity(x, ONE), ZERO),
    ("triplet of one", lambda x: F.triplet_margin_loss(x, x, x, eps=0.0), SAME),
    ("certain and right", lambda x: F.binary_cross_entropy(x, BIT), BIT),
    ("certain and wrong", lambda x: F.binary_cross_entropy(x, 1.0 - BIT), BIT),
    ("far logits", lambda x: F.binary_cross_entropy_with_logits(x * 1e3, BIT), SAME - 2.0),
    ("far margins", lambda x: F.soft_margin_loss(x * 1e3, 2.0 * BIT - 1.0), SAME - 2.0),
    ("target without mass", lambda t: F.kl_div(ZERO, t, reduction="sum"), ZERO),
    ("no variance", lambda v: F.gaussian_nll_loss(SAME, ONE, v), ZERO),
    ("no counts", lambda x: F.poisson_nll_loss(x, ZERO, full=True), ZERO),
    ("no distance", lambda x: F.l1_loss(x, x), SAME),
    ("no distance, huber", lambda x: F.huber_loss(x, SAME), SAME),
    ("constant features", lambda x: F.layer_norm(x, (3,)), ONE),
    ("no features", lambda x: F.rms_norm(x, (3,)), ZERO),
    ("zero to a root", lambda x: F.lp_pool1d(x, 3, 2), ZERO),
    ("far silu", lambda x: F.silu(x * 1e4), SAME - 2.0),
    ("far mish", lambda x: F.mish(x * 1e4), SAME - 2.0),
    ("far elu", lambda x: F.elu(x * 1e4), SAME - 2.0),
    ("far softplus", lambda x: F.softplus(x * 1e4), SAME - 2.0),
    ("far logsigmoid", lambda x: F.logsigmoid(x * 1e4), SAME - 2.0),
    ("far sigmoid", lambda x: F.sigmoid(x * 1e4), SAME - 2.0),
    ("far logits, softmax", lambda x: F.softmax(x * 1e4, 1), SAME),
]  # fmt: skip


@pytest.mark.parametrize(("fun", "x"), [h[1:] for h in HARD], ids=[h[0] for h in HARD])
def test_derivatives_exist_where_formulas_have_holes(fun: Any, x: Any) -> None:
    """Value, gradient and the gradient of the gradient are finite, eagerly and compiled."""

    def total(v: Any) -> Any:
        return xp.sum(fun(v))

    def slope(v: Any) -> Any:
        g = ft.grad(total)(v)
        return xp.sum(g * g)

    finite((total(x), ft.grad(total)(x)))
    finite(ft.grad(slope)(x))
    finite(ft.jit(ft.grad(total))(x))


def test_a_certain_error_leads_out_of_itself() -> None:
    """Where the loss is cut off its slope is steep, not 0, and points to the target."""
    g = ft.grad(lambda x: F.binary_cross_entropy(x, xp.asarray([1.0]), reduction="sum"))
    assert float(g(xp.asarray([0.0]))[0]) == -1e12
    assert float(g(xp.asarray([0.5]))[0]) == -2.0


@given(shape=st.tuples(st.integers(1, 3), st.integers(1, 4)), reduction=st.sampled_from(REDUCTIONS))
def test_losses_are_their_formulas(shape: tuple[int, int], reduction: str) -> None:
    """Elementwise losses against NumPy."""
    x, t = wave(shape), wave(shape, 0.9)
    p, q = 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(-t))
    s = np.sign(t)
    size = np.abs(x - t)
    expected = [
        ("l1_loss", x, t, size),
        ("mse_loss", x, t, size**2),
        ("smooth_l1_loss", x, t, np.where(size < 1, size**2 / 2, size - 0.5)),
        ("huber_loss", x, t, np.where(size < 1, size**2 / 2, size - 0.5)),
        ("binary_cross_entropy", p, q, -q * np.log(p) - (1 - q) * np.log(1 - p)),
        ("binary_cross_entropy_with_logits", x, q, -q * np.log(p) - (1 - q) * np.log(1 - p)),
        ("kl_div", x, q, q * (np.log(q) - x)),
        ("poisson_nll_loss", x, q, np.exp(x) - q * x),
        ("soft_margin_loss", x, s, np.log1p(np.exp(-s * x))),
        ("hinge_embedding_loss", x, s, np.where(s > 0, x, np.maximum(0, 1 - x))),
    ]  # fmt: skip
    for name, a, b, each in expected:
        total = {"none": each, "mean": each.mean(), "sum": each.sum()}[reduction]
        found = getattr(F, name)(xp.asarray(a), xp.asarray(b), reduction=reduction)
        np.testing.assert_allclose(np.asarray(found), total, rtol=1e-12, atol=1e-13, err_msg=name)


# CTC ----------------------------------------------------------------------------------------------


def collapsed(path: tuple[int, ...]) -> tuple[int, ...]:
    """An alignment without repetitions and blanks."""
    return tuple([k for k, _ in itertools.groupby(path) if k != 0])


def by_force(p: np.ndarray[Any, Any], text: tuple[int, ...]) -> float:
    """The probability of all alignments of a text, one by one."""
    steps, classes = p.shape
    paths = itertools.product(range(classes), repeat=steps)
    each = [math.prod(p[t, k] for t, k in enumerate(w)) for w in paths if collapsed(w) == text]
    return float(sum(each))


@given(data=st.data(), steps=st.integers(1, 5), single=st.booleans())
def test_ctc_is_the_sum_over_alignments(data: st.DataObject, steps: int, single: bool) -> None:
    """Of all texts, with repetitions, too long ones and empty ones."""
    text = tuple(data.draw(st.lists(st.integers(1, 2), max_size=3)))
    logits = wave((steps, 1, 3), data.draw(st.floats(0, 3)))
    x = F.log_softmax(xp.asarray(logits), 2)
    targets = xp.asarray([[*text, 0, 0]])
    if single:
        x, targets = x[:, 0], targets[0]
    loss = F.ctc_loss(x, targets, [steps], [len(text)], reduction="sum")
    p = by_force(np.exp(np.asarray(x)).reshape(steps, 3), text)
    if p == 0:
        assert float(loss) == math.inf
        zero = F.ctc_loss(x, targets, [steps], [len(text)], zero_infinity=True)
        assert float(zero) == 0.0
    else:
        np.testing.assert_allclose(float(loss), -math.log(p), rtol=1e-12)


CTC = {
    "rows": ([[1, 2, 2], [2, 0, 0], [3, 1, 3]], [6, 4, 6], [3, 1, 3]),
    "joined": ([1, 2, 2, 2, 3, 1, 3], [6, 4, 6], [3, 1, 3]),
    "short": ([[1, 1, 1], [2, 0, 0], [3, 1, 3]], [3, 4, 6], [3, 0, 2]),
}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("case", CTC)
def test_ctc_is_torchs(case: str, reduction: str) -> None:
    """Values, and gradients in the logits."""
    torch = pytest.importorskip("torch", reason="the sum over alignments stands in for it")
    targets, n_in, n_out = CTC[case]
    x = wave((6, 3, 4))

    def loss(v: Any) -> Any:
        logp = F.log_softmax(v, 2)
        return F.ctc_loss(
            logp, xp.asarray(targets), n_in, n_out, reduction=reduction, zero_infinity=True
        )

    theirs = torch.tensor(x, requires_grad=True)
    out = torch.nn.functional.ctc_loss(
        theirs.log_softmax(2), torch.tensor(targets), torch.tensor(n_in), torch.tensor(n_out),
        reduction=reduction, zero_infinity=True,
    )  # fmt: skip
    out.sum().backward()
    np.testing.assert_allclose(np.asarray(loss(xp.asarray(x))), out.detach(), rtol=1e-12)
    g = ft.grad(lambda v: xp.sum(loss(v)))(xp.asarray(x))
    np.testing.assert_allclose(np.asarray(g), theirs.grad, rtol=1e-9, atol=1e-12)
    finite(g)


def test_ctc_obeys_transforms(rng: np.random.Generator) -> None:
    """Second derivatives, vmap and jit."""
    targets = xp.asarray([[1, 2, 2], [2, 1, 0]])

    def fun(v: Any) -> Any:
        return F.ctc_loss(F.log_softmax(v, 2), targets, [5, 4], [3, 2])

    x = xp.asarray(wave((5, 2, 3)))
    laws.check_derivatives(fun, [x], rng, order=2)
    laws.check_batch(fun, [x], rng)
    laws.check_jit(fun, [x])


# errors -------------------------------------------------------------------------------------------

X = xp.ones((2, 3))
I = xp.asarray([0, 1])
LOG = xp.zeros((4, 2, 3))
ERRORS = [
    (lambda: F.l1_loss(X, X, size_average=False), ArgumentError,
     "l1_loss: size_average and reduce must be None, got False and None"),
    (lambda: F.mse_loss(X, X, None, True), ArgumentError,
     "mse_loss: size_average and reduce must be None, got None and True"),
    (lambda: F.relu(X, inplace=True), ArgumentError,
     "relu: inplace must be False, got True: arrays are immutable"),
    (lambda: F.smooth_l1_loss(X, X, beta=-1.0), ArgumentError,
     "smooth_l1_loss: beta must not be negative, got -1.0"),
    (lambda: F.huber_loss(X, X, delta=0.0), ArgumentError,
     "huber_loss: delta must be positive, got 0.0"),
    (lambda: F.gaussian_nll_loss(X, X, xp.ones((3,))), ShapeError,
     "gaussian_nll_loss: var must have input's shape (2, 3), or 1 or nothing instead of its last "
     "axis, got (3,)"),
    (lambda: F.binary_cross_entropy(X, xp.ones((2, 1))), ShapeError,
     "binary_cross_entropy: input and target must have one shape, got (2, 3) and (2, 1)"),
    (lambda: F.multi_margin_loss(X, I, p=3), ArgumentError,
     "multi_margin_loss: p must be 1 or 2, got 3"),
    (lambda: F.multi_margin_loss(X, xp.asarray([0])), ShapeError,
     "multi_margin_loss: target must have shape (2,) for input (2, 3), got (1,)"),
    (lambda: F.triplet_margin_loss(X, X, X, margin=0.0), ArgumentError,
     "triplet_margin_loss: margin must be positive, got 0.0"),
    (lambda: F.cosine_embedding_loss(X, X, X), ShapeError,
     "cosine_embedding_loss: target must have shape (2,) for inputs (2, 3), got (2, 3)"),
    (lambda: F.kl_div(X, X, reduction="batch"), ArgumentError,
     "kl_div: reduction must be 'none', 'mean', 'sum' or 'batchmean', got 'batch'"),
    (lambda: F.cosine_similarity(X, xp.ones((2, 4))), ShapeError,
     "cosine_similarity: x1 and x2 must broadcast, got (2, 3) and (2, 4)"),
    (lambda: F.pairwise_distance(X, xp.ones((2, 4))), ShapeError,
     "pairwise_distance: x1 and x2 must broadcast, got (2, 3) and (2, 4)"),
    (lambda: F.ctc_loss(LOG, I, [4, 4], [1]), ShapeError,
     "ctc_loss: target_lengths must have 2 entries, got 1"),
    (lambda: F.ctc_loss(LOG, I, [4, 4], [1, 1], blank=3), ArgumentError,
     "ctc_loss: blank must be one of 3 classes, got 3"),
    (lambda: F.cdist(X, xp.ones((2, 4))), ShapeError,
     "cdist: x1 and x2 must have shapes (*B, N, M) and (*B, K, M), got (2, 3) and (2, 4)"),
    (lambda: F.cdist(xp.ones((2, 1, 3)), xp.ones((3, 1, 3))), ShapeError,
     "cdist: x1 and x2 must broadcast, got (2, 1, 3) and (3, 1, 3)"),
    (lambda: F.cdist(X, X, -1.0), ArgumentError, "cdist: p must not be negative, got -1.0"),
    (lambda: F.cdist(X, X, compute_mode="mm"), ArgumentError,
     "cdist: compute_mode must be one of ['use_mm_for_euclid_dist_if_necessary', "
     "'use_mm_for_euclid_dist', 'donot_use_mm_for_euclid_dist'], got 'mm'"),
    (lambda: F.pdist(xp.ones((2,))), ShapeError, "pdist: input must have shape (N, M), got (2,)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[e[2][:30] for e in ERRORS])
def test_wrong_arguments_are_named(call: Any, kind: type[Exception], text: str) -> None:
    """Each error names the function, what was expected and what came."""
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).splitlines()[0] == text


@pytest.mark.parametrize("label", [3, -1])
def test_a_class_outside_raises(label: int) -> None:
    """No index counts from the end."""
    with pytest.raises(IndexOutOfBoundsError):
        F.multi_margin_loss(xp.ones((1, 3)), xp.asarray([label]))
    with pytest.raises(IndexOutOfBoundsError):
        F.embedding(xp.asarray([label]), xp.ones((3, 2)))
