"""A place of what would be sorted, by counting: what sorting gives, to the last bit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funct.kernels.cpu.loops import available
from funct.kernels.cpu.order.selecting import ROOM, between

pytestmark = pytest.mark.skipif(not available(), reason="no compiler")
KINDS: dict[str, Any] = {
    "even": lambda rng, n: rng.random(n) + 1,
    "normal": lambda rng, n: rng.normal(size=n),
    "uneven": lambda rng, n: np.exp(9 * rng.normal(size=n)),
    "equal": lambda rng, n: rng.integers(1, 4, n),
    "two heaps": lambda rng, n: np.where(rng.random(n) < 0.5, 1e-30, 1e30) * rng.random(n),
}


@given(
    st.sampled_from(sorted(KINDS)), st.sampled_from([8, 63, 67, 130, 500]),
    st.sampled_from([np.float32, np.float64]), st.sampled_from([0.0, 0.3, 0.5, 0.77, 1.0]),
    st.integers(0, 9),
)  # fmt: skip
def test_between_two_places(kind: str, n: int, dtype: Any, q: float, seed: int) -> None:
    """Machine code gives up alone where Python does, and elsewhere both have the sorted numbers."""
    x = KINDS[kind](np.random.default_rng(seed), n).astype(dtype)
    s, k = np.sort(x), int((n - 1) * q)
    part = (n - 1) * q - k
    room, other = (np.empty(ROOM, dtype) for _ in range(2))
    failed = between(x, room, n, k, part)
    if n < 100:
        assert failed == between.checked(x, other, n, k, part)
        assert failed or other[-1] == room[-1]
    if not failed:
        share = dtype(part)
        a, b = s[k], s[k + 1] if part else s[k]
        step = (b - a) * (share if share < 0.5 else 1 - share)
        assert room[-1] == (a + step if share < 0.5 else b - step)
    else:
        assert kind in ("equal", "two heaps", "uneven")


def test_what_is_odd_is_left_to_others() -> None:
    """NaN and infinities anywhere, zeros where they are told by where they stand."""
    x, room = np.linspace(-1.0, 2.0, 101), np.empty(ROOM)
    for odd in (np.nan, np.inf, -np.inf):
        for place in (0, 40, 100):
            y = x.copy()
            y[place] = odd
            assert between(y, room, 101, 50, 0.0) == 1
    y = np.where(np.arange(101) < 60, -0.0, 1.0)
    assert between(y, room, 101, 50, 0.0) == 1
