"""Large results go past the caches: with the same bits, wherever their memory begins."""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import funct as ft
import funct.array as xp
from funct.compile import program
from funct.compile.fusion import lower
from funct.compile.loops.kernel import Kernel
from funct.device import host
from tests.compile.checked import checking, run
from tests.compile.test_bounds import made_of

FUNCTIONS: list[Any] = [
    lambda x: x * 2 + 1,
    lambda x: (x > 0, xp.astype(x, "float64"), xp.astype(x, "int8")),
    lambda x: xp.exp(x) / xp.sum(xp.exp(x), axis=-1, keepdims=True),  # two passes over a row
    lambda x: (x + 1, xp.sum(x + 1, axis=-1)),
    lambda x: (xp.sin(x), xp.sum(xp.sin(x)), xp.max(x, axis=0)),
    lambda x: x.T + 1,
]
SHAPES = [(1, 1), (3, 16), (5, 33), (64, 64), (2, 4096)]


@pytest.fixture
def cacheless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose caches hold nothing; no code is left of another."""
    monkeypatch.setattr(lower, "host", lambda: replace(host(), cache_bytes=0))
    monkeypatch.setattr(program, "_codes", {})


def numbers(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """As many normal numbers."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fun", FUNCTIONS)
def test_the_bits_are_those_of_a_machine_with_caches(
    fun: Any, shape: tuple[int, ...], request: pytest.FixtureRequest
) -> None:
    x = numbers(shape)
    expected = made_of(fun, x).run(x)
    request.getfixturevalue("cacheless")
    with checking():
        made = made_of(fun, x)
        found = run(made, x)
    assert any(isinstance(c.kernel, Kernel) and c.kernel.streamed for c in made.calls)
    for actual, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.usefixtures("cacheless")
@pytest.mark.parametrize("first", range(9))
def test_results_may_begin_anywhere(first: int) -> None:
    x, room = numbers((3, 64)), np.full(256, 7, np.float32)
    made = made_of(lambda x: x * 2 + 1, x)
    assert "nontemporal" in program.kernels_text([c.kernel for c in made.calls])
    (part,) = made.programs
    out = room[first : first + x.size].reshape(x.shape)
    assert part.run(x, out, np.empty(part.workspace, np.uint8))
    np.testing.assert_array_equal(out, x * 2 + 1)
    room[first : first + x.size] = 7
    assert (room == 7).all()


@pytest.mark.usefixtures("cacheless")
def test_a_result_may_be_where_an_argument_was() -> None:
    x = numbers((4096,))
    (part,) = made_of(lambda x: x * 2 + 1, x).programs
    expected = x * 2 + 1
    assert part.run(x, x, np.empty(part.workspace, np.uint8))
    np.testing.assert_array_equal(x, expected)


def test_what_fits_into_the_caches_stays_there() -> None:
    def streamed(n: int) -> bool:
        made = made_of(lambda x: x + 1, np.zeros(n, np.float32))
        return any(c.kernel.streamed for c in made.calls)

    elements = host().cache_bytes // 4
    assert not streamed(elements // 8)  # with the result, a quarter of the cache
    assert streamed(elements // 4)


def test_what_goes_past_the_caches_is_what_nobody_reads_again() -> None:
    """Many results that fit one by one; one that a later step reads stays in the caches."""

    def fun(*xs: Any) -> Any:
        first = xp.exp(xp.sin(xs[0]))
        return [x + 1 for x in xs], first, first * xp.flip(first)

    many = 33
    xs = [np.zeros(host().cache_bytes // 4 // many, np.float32) for _ in range(many)]
    calls = [c for c in made_of(fun, *xs).calls if c.kernel.stores]
    assert [c.kernel.streamed for c in calls].count(False) == 1
    assert not any(c.kernel.streamed for c in made_of(fun, *xs[: many // 4]).calls)


def test_loops_that_read_one_large_array_are_one() -> None:
    """Whatever each makes of it; small ones, and what lies between, stay apart."""

    def fun(x: Any, y: Any) -> Any:
        return x * 2 + y, xp.sum(x * x), xp.max(xp.abs(x))

    large = made_of(fun, numbers((300, 301)), numbers((300, 301)))
    small = made_of(fun, numbers((30, 31)), numbers((30, 31)))
    assert [len([c for c in m.calls if isinstance(c.kernel, Kernel)]) for m in (large, small)] == [
        1, 3,
    ]  # fmt: skip


@pytest.mark.usefixtures("cacheless")
def test_threads_do_not_show() -> None:
    x = numbers((1 << 18,))
    made = made_of(lambda x: xp.exp(x) * 2, x)
    with ft.config.using(threads=1):
        (alone,) = made.run(x)
    with ft.config.using(threads=2):
        (together,) = made.run(x)
    np.testing.assert_array_equal(alone, together)
