"""What is done with arrays that lie alike is found again, whatever else has been called."""

import sys
from typing import Any

import numpy as np
import pytest

from funct.kernels import table
from funct.kernels.cpu.by_layout import ByLayout
from funct.kernels.cpu.by_words import NEAR, PLACES
from funct.kernels.cpu.calls import readable
from funct.kernels.cpu.loops import available

pytestmark = pytest.mark.skipif(not (available() and readable()), reason="no LLVM here")


def lying() -> list[Any]:
    """Arrays that differ in dtype, shape, strides, or in nothing but where they are."""
    x = np.arange(24.0)
    more = [x[:n] for n in range(1, 20)] + [x.reshape(4, 6), x.reshape(4, 6).T, x.reshape(6, 4)]
    more += [x[::2], x[::-1], x.reshape(2, 3, 4), x.reshape(1, 2, 1, 2, 3, 2), np.float32(x), x[0]]
    return [*more, x.astype(np.float32), np.zeros(193, np.uint8)[1:].view(np.float64)]


def test_what_is_found_is_what_would_be_said() -> None:
    """Of twice as many layouts as are kept, which is asked for once where none takes its place."""
    asked: list[Any] = []

    def way(x: Any, y: Any) -> Any:
        def met(a: Any, b: Any) -> Any:
            return a is not None, (x.shape, x.strides, x.dtype, y.shape, y.strides, y.dtype)

        asked.append(met)
        return met

    made = ByLayout(way, way, [np.dtype(np.float64)])
    made.load()
    for x in lying() * 2:
        for y in lying():
            for _ in range(2):
                assert made.call(x, y)[1] == (
                    x.shape, x.strides, x.dtype, y.shape, y.strides, y.dtype
                )  # fmt: skip
    asked.clear()
    x, y = np.zeros((2, 3)), np.zeros(3)
    for z in (y, y.copy(), y.copy()):
        made.call(x, z)
    assert len(asked) == 1
    made.call(x, x[0])  # begins where x does
    assert len(asked) == 2


def test_layouts_that_share_their_places_are_all_found() -> None:
    """As many as there are places for what is mixed to one number, by turns; one more is one too
    many.
    """
    asked: list[Any] = []

    def way(x: Any, y: Any) -> Any:
        asked.append(x.shape)
        return lambda x, y: x.shape

    def number(n: int) -> int:
        """Which places are those of two arrays of n elements, beginning at one place."""
        mixed = 0
        for word in [id(np.dtype(np.float64)), 1, n, 8] * 2 + [1]:
            met = (mixed ^ word) * 0x9E3779B97F4A7C15 % (1 << 64)
            mixed = met ^ met >> 29
        return mixed % (PLACES // NEAR)

    made = ByLayout(way, way, [np.dtype(np.float64)])
    made.load()
    x = np.zeros(4000)
    alike = [x[:n] for n in range(2, 4000) if number(n) == number(2)]
    for _ in range(3):
        assert [made.call(a, a) for a in alike[:NEAR]] == [a.shape for a in alike[:NEAR]]
    assert len(asked) == NEAR
    for a in [*alike[: NEAR + 1], alike[0]]:
        made.call(a, a)
    assert len(asked) == NEAR + 2


def test_a_restriction_is_heard() -> None:
    """Within it nothing is kept, or taken from what was kept before."""
    free, bound = (lambda x, y: "free"), (lambda x, y: "bound")

    def way(x: Any, y: Any) -> Any:
        return bound

    made = ByLayout(way, lambda x, y: free, [np.dtype(np.float64)])
    made.load()
    x = np.zeros(3)
    assert [made.call(x, x), made.call(x, x)] == ["free"] * 2
    with table.restricted():
        assert made.call(x, x) == "bound"
        assert made.call(x, x[:2]) == "bound"
    assert made.call(x, x[:2]) == "free"


def test_errors_pass_through_and_nothing_is_left() -> None:
    """The function's own, and those of a wrong call; what no longer is kept is let go."""

    def fails(x: Any, y: Any) -> Any:
        raise ValueError("shapes")

    made = ByLayout(lambda x, y: fails, lambda x, y: fails, [np.dtype(np.float64)])
    made.load()
    x, before = np.zeros(3), sys.getrefcount(fails)
    for _ in range(3):
        with pytest.raises(ValueError, match="shapes"):
            made.call(x, x)
    with pytest.raises(TypeError):
        made.call(x)  # type: ignore[call-arg]
    assert sys.getrefcount(fails) == before + 1
