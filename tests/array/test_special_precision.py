"""xp.special in single precision: derivatives are those in double precision, rounded once."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from tests.array.test_special import COMPOSED, SMOOTH, draw
from tests.array.test_special_limits import _points

S = xp.special

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def slope(f: Any, i: int, order: int, args: list[Any], way: Any = lambda f: f) -> Any:
    """The derivative of that order in operand i, of each element."""
    along = lambda a: f(*args[:i], a, *args[i + 1 :])  # noqa: E731
    for _ in range(order):
        along = ft.grad(lambda a, f=along: xp.sum(f(a)))
    return way(along)(args[i])


# Rules that lose no digits are computed in the precision of the operands, and so are those of what
# is made of other functions here: a few units in the last place, of the largest in second ones.
PLAIN = COMPOSED | {
    "digamma", "erf", "exp10", "expit", "gammaln", "huber", "i0", "i1", "k0", "k1", "log_expit",
    "logit", "psi", "xlog1py", "xlogy",
}  # fmt: skip


def points(name: str, rng: np.random.Generator) -> tuple[np.ndarray[Any, Any], list[int]]:
    """Some where the function is smooth, and awkward ones; and which operands vary."""
    awkward, free = _points(name)
    smooth = np.array(draw(name, rng, 20))
    return smooth if name in PLAIN else np.concatenate([smooth, awkward], 1), free


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", sorted(SMOOTH.keys() - {"softplus"}))  # logaddexp
def test_derivatives_are_rounded_once(name: str, dtype: str, rng: np.random.Generator) -> None:
    """Of both orders and in every operand: digits that closed forms lose are lost nowhere."""
    f, (columns, free) = getattr(S, name), points(name, rng)
    narrow = [xp.asarray(c, dtype=dtype) for c in columns]
    double = [xp.astype(c, xp.float64) for c in narrow]
    eps = float(xp.finfo(narrow[0].dtype).eps)
    for i, order in itertools.product(free, (1, 2)):
        found, exact = slope(f, i, order, narrow), slope(f, i, order, double)
        assert found.dtype == dtype
        wanted = np.asarray(xp.astype(xp.astype(exact, dtype), xp.float64))
        found = np.asarray(xp.astype(found, xp.float64))
        if name in PLAIN:
            near = 4 * eps * np.max(np.abs(wanted))
            np.testing.assert_allclose(found, wanted, 4 * eps, near, err_msg=f"{i} {order}")
        else:
            np.testing.assert_array_equal(found, wanted, err_msg=f"{i} {order}")
