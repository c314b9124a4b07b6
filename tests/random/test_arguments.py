"""What `ft.random` is called with: JAX's positional order and the contract's, dtypes, weights."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import random
from funct.errors import DTypeError, FunctError, ShapeError, SignatureError
from tests import laws

KEY = random.key(42)
P = np.asarray([0.0, 3.0, 1.0, 0.0, 4.0])
N = 40_000

ORDERS: dict[str, tuple[Any, ...]] = {
    "randint": (
        lambda k: random.randint(k, (3,), 0, 10),
        lambda k: random.randint(k, [3], 0, 10),
        lambda k: random.randint(k, (3,), minval=0, maxval=10),
        lambda k: random.randint(k, (3,), 0, maxval=10),
        lambda k: random.randint(k, (3,), 0, 10, xp.int64),
        lambda k: random.randint(k, 0, 10, shape=(3,)),
        lambda k: random.randint(k, 0, 10, shape=3),
        lambda k: random.randint(k, 0, 10, (3,)),
        lambda k: random.randint(k, 0, 10, (3,), xp.int64),
        lambda k: random.randint(k, 0, maxval=10, shape=(3,)),
        lambda k: random.randint(k, minval=0, maxval=10, shape=(3,)),
        lambda k: random.randint(k, shape=(3,), minval=0, maxval=10, dtype=None),
        lambda k: random.randint(k, xp.asarray(0), xp.asarray([10, 10, 10]), shape=(3,)),
    ),
    "uniform": (
        lambda k: random.uniform(k, (3,), xp.float32, -1.0, 1.0),
        lambda k: random.uniform(k, shape=(3,), dtype=xp.float32, minval=-1.0, maxval=1.0),
        lambda k: random.uniform(k, minval=-1.0, shape=3, dtype="float32"),
    ),
    "truncated_normal": (
        lambda k: random.truncated_normal(k, -2.0, 2.0, (3,)),
        lambda k: random.truncated_normal(k, lower=-2.0, upper=2.0, shape=(3,), dtype=None),
    ),
    "bernoulli": (
        lambda k: random.bernoulli(k, 0.3, (5,)),
        lambda k: random.bernoulli(k, p=0.3, shape=(5,), dtype=bool),
        lambda k: random.bernoulli(k, 0.3, (5,), "int8") == 1,
    ),
    "choice": (
        lambda k: random.choice(k, xp.arange(5), (3,), False, P, 0),
        lambda k: random.choice(k, 5, (3,), replace=False, p=P, axis=0),
        lambda k: random.choice(k, 5, shape=(3,), replace=False, p=P.tolist(), dtype=xp.int64),
    ),
    "categorical": (
        lambda k: random.categorical(k, xp.asarray(P), -1, (3,)),
        lambda k: random.categorical(k, P, axis=0, shape=(3,), dtype="int64"),
    ),
    "permutation": (
        lambda k: random.permutation(k, 10),
        lambda k: random.permutation(k, xp.arange(10), axis=-1),
        lambda k: random.permutation(k, 10, 0, True),
        lambda k: random.permutation(k, 10, dtype="int64"),
    ),
    "gamma": (
        lambda k: random.gamma(k, 2.0, (3,)),
        lambda k: random.gamma(k, a=2.0, shape=(3,), dtype=xp.float64),
    ),
    "poisson": (
        lambda k: random.poisson(k, 2.0, (3,)),
        lambda k: random.poisson(k, lam=2.0, shape=(3,), dtype=xp.int64),
    ),
    "orthogonal": (
        lambda k: random.orthogonal(k, 3, (2,)),
        lambda k: random.orthogonal(k, n=3, shape=(2,), dtype=None),
        lambda k: random.orthogonal(k, 3, (2,), xp.float64, 3),
    ),
}


@pytest.mark.parametrize("name", ORDERS)
def test_orders_of_arguments(name: str) -> None:
    """Every order gives the same draws, under jit and vmap too."""
    first, *others = ORDERS[name]
    keys = random.split(KEY, 2)
    expected, batch = first(KEY), xp.stack([first(k) for k in keys])
    for call in others:
        laws.same(call(KEY), expected)
    for call in ORDERS[name]:
        laws.same(ft.jit(call)(KEY), expected)
    if name != "orthogonal":  # BLAS rounds stacks in its own way
        laws.same(ft.vmap(first)(keys), batch)
        laws.same(ft.vmap(others[-1])(keys), batch)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: random.randint(KEY, (3,)), SignatureError, "minval and maxval must be given"),
        (lambda: random.randint(KEY, 3), SignatureError, "minval and maxval must be given"),
        (lambda: random.randint(KEY, 2, 5, 9), SignatureError, "by position is a tuple or a list"),
        (lambda: random.randint(KEY, (3,), 0, 9, shape=4), SignatureError, "shape is given twice"),
        (lambda: random.randint(KEY, (3,), 0, 9, maxval=4), SignatureError, "maxval is given twi"),
        (lambda: random.randint(KEY, (3,), 0, 9, None, 4), SignatureError, "takes .* after key"),
        (lambda: random.randint(KEY, 0.5, 9, shape=3), DTypeError, "minval must be of integers"),
        (lambda: random.randint(KEY, 0, 9, dtype="float32"), DTypeError, "must be of integers"),
        (lambda: random.randint(KEY, 0, 300, dtype="uint8"), DTypeError, "must fit the dtype"),
        (lambda: random.randint(KEY, 0, xp.asarray([4, 5]), shape=3), ShapeError, "broadcast"),
        (lambda: random.choice(KEY, 5, (3,), p=P[:3]), ShapeError, r"p must be of shape \(5,\)"),
        (lambda: random.choice(KEY, 5, p=P + 1j), DTypeError, "p must be of real numbers"),
        (lambda: random.choice(KEY, xp.eye(3), axis=2), ShapeError, "axis 2 is out of range"),
        (lambda: random.choice(KEY, 3, (4,), False, P[:3]), ShapeError, "need replace=True"),
        (lambda: random.permutation(KEY, 4, axis=1), ShapeError, "axis 1 is out of range"),
        (lambda: random.categorical(KEY, P, dtype="float32"), DTypeError, "must be of integers"),
        (lambda: random.categorical(KEY, P + 1j), DTypeError, "must be real numbers"),
        (lambda: random.categorical(KEY, P, shape=(6,), replace=False), ShapeError, "6 indices of"),
        (lambda: random.bernoulli(KEY, 0.5, dtype="a"), DTypeError, "is no dtype"),
        (lambda: random.bits(KEY, dtype="a"), DTypeError, "is no dtype"),
        (lambda: random.orthogonal(KEY, 3, m=-1), ShapeError, "must not be negative"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[FunctError], text: str) -> None:
    """What does not fit is refused by name."""
    with pytest.raises(error, match=text) as caught:
        call()
    assert caught.value.what.startswith("random.")


def test_limits_that_are_arrays() -> None:
    """Each element has limits of its own; where there is nothing between them it is minval."""
    low, high = xp.asarray([-5, 0, 7, 2**62]), xp.asarray([5, 1, 3, 2**62 + 2])
    x = np.asarray(random.randint(KEY, (1000, 4), low, high))
    assert set(x[:, 0].tolist()) == set(range(-5, 5))
    assert set(x[:, 1].tolist()) == {0}
    assert set(x[:, 2].tolist()) == {7}
    assert set(x[:, 3].tolist()) == {2**62, 2**62 + 1}
    laws.same(random.randint(KEY, (9,), xp.asarray(3), 12), random.randint(KEY, (9,), 3, 12))


@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_limits_give_what_ints_give(kind: str) -> None:
    """However far they are apart, of either sign and in either dtype; so do compiled ones."""
    info = np.iinfo(kind)
    pairs = [(3, 12), (0, 2**32), (0, 2**32 + 1), (5, 3 * 2**61), (info.min, info.max)]
    pairs += [(-7, 9), (-1, 2**63 - 1)] if kind == "int64" else [(2**63, 2**63 + 5)]
    low, high = (xp.asarray(np.asarray(v, kind)) for v in zip(*pairs, strict=True))
    draw = lambda a, b: random.randint(KEY, (50, len(pairs)), a, b, kind)  # noqa: E731
    x = draw(low, high)
    laws.same(ft.jit(draw)(low, high), x)
    for i, (a, b) in enumerate(pairs):
        column = random.randint(KEY, (50, len(pairs)), a, b, kind)[:, i]
        laws.same(x[:, i], column)
    large = xp.asarray(2**63, dtype=xp.uint64)
    mixed = random.randint(KEY, (99,), xp.asarray(-5), large)
    laws.same(mixed, random.randint(KEY, (99,), -5, 2**63))
    assert (random.randint(KEY, (9,), large, 4, "uint64") == large).all()


def test_weights() -> None:
    """Elements come up with the weights that p says, and never with a weight of 0."""
    x = np.asarray(random.choice(KEY, 5, (N,), p=P))
    counts, expected = np.bincount(x, minlength=5), N * P / P.sum()
    assert (np.abs(counts - expected) <= 5 * expected**0.5).all()


def test_weights_without_replacement() -> None:
    """Pairs come up as if the first were drawn with weights p, and the second with what is left."""
    pairs = ft.vmap(lambda k: random.choice(k, 5, (2,), False, P))(random.split(KEY, N))
    counts = np.zeros((5, 5))
    np.add.at(counts, tuple(np.asarray(pairs).T), 1)
    p = P / P.sum()
    expected = N * p[:, None] * p / (1 - p[:, None])
    np.fill_diagonal(expected, 0)
    assert (np.abs(counts - expected) <= 5 * expected**0.5).all()


def test_axes_of_populations() -> None:
    """Slices along an axis are chosen and shuffled as a whole; dtypes are those asked for."""
    a = xp.reshape(xp.arange(12), (3, 4))
    picked = random.choice(KEY, a, (2, 5), axis=1)
    assert picked.shape == (3, 2, 5)
    laws.same(picked[1], picked[0] + 4)
    assert random.choice(KEY, a, (2, 2), False, axis=1).shape == (3, 2, 2)
    assert random.choice(KEY, a, (0,), axis=1).shape == (3, 0)
    assert random.choice(KEY, 0, (0,)).shape == (0,)
    assert random.choice(KEY, a, dtype="float32").dtype == xp.float32
    shuffled = np.asarray(random.permutation(KEY, a, axis=1, dtype="int8"))
    assert shuffled.dtype == np.int8
    assert (np.diff(shuffled, axis=0) == 4).all()
    assert sorted(shuffled[0]) == [0, 1, 2, 3]


def test_independent_orders() -> None:
    """Each line has an order of its own."""
    x = xp.broadcast_to(xp.arange(30)[:, None], (30, 4))
    shuffled = np.asarray(random.permutation(KEY, x, independent=True))
    assert (np.sort(shuffled, axis=0) == np.asarray(x)).all()
    assert not (shuffled == shuffled[:, :1]).all()
    assert (np.asarray(random.permutation(KEY, x, 1, True)) == np.asarray(x)).all()


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_what_has_no_weight_comes_after_all_others(wrap: Any) -> None:
    """As many as there are can be drawn; with replacement it never comes."""
    p = xp.asarray([0.0, 2.0, 0.0, 1e-300, 3.0])
    logits = xp.asarray([-xp.inf, 0.7, -xp.inf, -690.0, 1.1])
    for k in random.split(KEY, 20):
        drawn = (
            wrap(lambda k: random.choice(k, 5, (5,), replace=False, p=p))(k),
            wrap(lambda k: random.categorical(k, logits, shape=(5,), replace=False))(k),
        )
        for x in drawn:
            assert sorted(x[:3].tolist()) == [1, 3, 4]
            assert sorted(x[3:].tolist()) == [0, 2]
        repeated = wrap(lambda k: random.categorical(k, logits, shape=(50,)))(k)
        assert set(repeated.tolist()) <= {1, 3, 4}
        repeated = wrap(lambda k: random.choice(k, 5, (50,), p=p))(k)
        assert set(repeated.tolist()) <= {1, 3, 4}


def test_categorical_without_replacement() -> None:
    """No index comes twice along the axes in front; the first has the probabilities."""
    logits = xp.log(xp.asarray([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]))
    x = random.categorical(KEY, logits, shape=(3, 2), replace=False)
    assert (np.sort(np.asarray(x), axis=0) == np.asarray([[0, 0], [1, 1], [2, 2]])).all()

    def draw(key: Any) -> Any:
        return random.categorical(key, xp.matrix_transpose(logits), 0, (2, 2), False, "int32")

    x = np.asarray(ft.vmap(draw)(random.split(KEY, N)))
    assert x.dtype == np.int32
    for k, p in enumerate(np.exp(np.asarray(logits))):
        counts = np.bincount(x[:, 0, k], minlength=3)
        assert (np.abs(counts - N * p) <= 5 * (N * p) ** 0.5).all()


def test_rectangular_orthogonal_matrices() -> None:
    """Rows are orthonormal where they are fewer, columns otherwise."""
    for n, m in ((2, 5), (5, 2), (0, 3)):
        q = np.asarray(random.orthogonal(KEY, n, (4,), m=m))
        assert q.shape == (4, n, m)
        product = q @ q.swapaxes(1, 2) if n < m else q.swapaxes(1, 2) @ q
        np.testing.assert_allclose(product, np.broadcast_to(np.eye(min(n, m)), product.shape),
                                   atol=1e-14)  # fmt: skip
