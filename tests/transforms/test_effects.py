"""Effects under jit: what eager execution does, as often and in the same order, however it is run.

Each program notes what it does. It is run eagerly and in each way of compiling it, once and again,
for arguments that lead it along other paths, fail at another place or have another size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.transforms.compiled import segments

SEEN: list[Any] = []
ONE = ft.ShapeDtype((), xp.float64)


def note(what: str, x: Any) -> None:
    """An effect without a result."""
    ft.io_callback(lambda v: SEEN.append((what, np.asarray(v).tolist())), None, x)


def read(what: str, x: Any) -> Any:
    """An effect with a result, a number."""

    def fun(v: Any) -> Any:
        SEEN.append((what, np.asarray(v).tolist()))
        return np.float64(len(SEEN)) + np.sum(v)

    return ft.io_callback(fun, ONE, x)


def _fail(what: str, x: Any) -> Any:
    def fun(v: Any) -> Any:
        SEEN.append((what, np.asarray(v).tolist()))
        if np.sum(v) < 0:
            raise ZeroDivisionError(what)
        return np.float64(1.0)

    return ft.io_callback(fun, ONE, x)


def _pure_fail(x: Any) -> Any:
    def fun(v: Any) -> Any:
        if np.sum(v) < 0:
            SEEN.append("pure")
            raise ZeroDivisionError("pure")
        return v

    return ft.pure_callback(fun, ft.ShapeDtype(x.shape, x.dtype), x)


def after_a_decision(x: Any) -> Any:
    """Which effect comes depends on a value."""
    note("first", x)
    if xp.sum(x) > 0:
        note("positive", x * 2.0)
        return x + 1.0
    note("negative", x * 3.0)
    return x - 1.0


def deciding(x: Any) -> Any:
    """An effect's result decides; others come before and after."""
    note("before", x)
    a = read("a", x)
    b = read("b", x * 2.0)
    if b > 4.0:
        note("large", b)
        return x * a
    return x * b


def fails_after(x: Any) -> Any:
    """What comes after the effects raises, for some arguments."""
    note("before", x)
    a = read("a", x)
    return xp.take(x * a, xp.where(x[:1] > 0, 0, 1000).astype(int)) + a


def fails_itself(x: Any) -> Any:
    """An effect raises, the last one never comes."""
    note("before", x)
    a = _fail("fails", x)
    note("after", x)
    return x * a


def fails_purely(x: Any) -> Any:
    """A callback that is not to have effects raises."""
    note("before", x)
    return _pure_fail(x * 2.0)


def in_a_loop(x: Any) -> Any:
    """Effects at each step, until one fails."""

    def step(c: Any, k: Any) -> Any:
        note("step", k)
        return c + _fail("in step", c - k * 2.0), read("c", k)

    note("before", x)
    return ft.scan(step, xp.sum(x) + 5.0, xp.arange(3.0))


def in_a_branch(x: Any) -> Any:
    """An effect in the branch that is taken."""
    y = ft.cond(xp.sum(x) > 0, lambda v: v * read("yes", v), lambda v: v * _fail("no", v), x)
    note("after", y)
    return y


@ft.jit
def _inner(x: Any) -> Any:
    note("inner", x)
    return x * 2.0


def of_nothing_traced(x: Any) -> Any:
    """Compiled functions with effects that no argument reaches, in and out of bodies."""
    y = _inner(xp.ones(2)) + read("constant", xp.ones(()))
    z = ft.cond(xp.sum(x) > 0, lambda: _inner(xp.zeros(2)), lambda: xp.zeros(2))
    return xp.sum(x) + xp.sum(y) + xp.sum(z)


def of_a_length(x: Any) -> Any:
    """Tried for any size first, which it turns out not to be."""
    if read("size", xp.sum(x)) > -1e9:
        note("more", x)
    return x * xp.asarray(np.arange(float(x.shape[0])))


PROGRAMS = (
    after_a_decision, deciding, fails_after, fails_itself, fails_purely, in_a_loop, in_a_branch,
    of_nothing_traced, of_a_length,
)  # fmt: skip

WAYS: dict[str, Any] = {
    "jit": ft.jit,
    "machine code": lambda f: ft.jit(f, mode="reduce-overhead"),
    "tuned": lambda f: ft.jit(f, mode="max-autotune"),
    "any size": lambda f: ft.jit(f, dynamic=True),
    "interpreted": lambda f: ft.jit(f, backend="interpret"),
    "nested": lambda f: ft.jit(ft.jit(f)),
    "in another": lambda f: ft.jit(lambda x: f(x * 1.0)),
    "tree": lambda f: (lambda g: lambda x: g({"x": x}))(ft.jit(lambda t: f(t["x"]))),
}


def done(f: Any, x: Any) -> Any:
    """What a call did, and what it gave or raised."""
    SEEN.clear()
    try:
        out: Any = [np.asarray(v).tolist() for v in ft.tree.leaves(f(x))]
    except Exception as error:
        out = type(error), getattr(error, "what", str(error)), str(getattr(error, "site", None))
    return list(SEEN), out


ARGUMENTS = [
    xp.asarray(v) for v in ([1.0, 2.0], [-1.0, -2.0], [0.5, 0.25], [3.0, 1.0, 4.0], [-9.0] * 4)
]


@pytest.mark.in_turn
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_compiled_function_does_what_eager_execution_does(program: Any, way: str) -> None:
    """The same effects in the same order, once each, with the same result or error."""
    f = WAYS[way](program)
    for x in (*ARGUMENTS, *ARGUMENTS):
        assert done(f, x) == done(program, x)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_large_arrays(program: Any) -> None:
    """Machine code around the effects."""
    f = ft.jit(program)
    for scale in (1.0, -1.0, 1.0, -1.0):
        x = xp.full((20000,), scale)
        assert done(f, x) == done(program, x)


def _summed(f: Any) -> Any:
    return ft.grad(lambda x: xp.sum(f(x)))


def _pure(fun: Any, x: Any) -> Any:
    return ft.pure_callback(fun, ft.ShapeDtype(x.shape, x.dtype), x)


@pytest.mark.parametrize(
    "program", [after_a_decision, of_nothing_traced, lambda x: _inner(after_a_decision(x))]
)
def test_effects_under_transforms(program: Any) -> None:
    """Values and effects of grad and vmap around and inside of jit."""
    for around in (_summed, ft.vmap):
        plain = around(program)
        for f in (around(ft.jit(program)), ft.jit(around(program))):
            for x in ARGUMENTS:
                x = xp.stack([x, x]) if around is ft.vmap else x
                assert done(f, x) == done(plain, x)


@pytest.mark.parametrize("calls", [
    lambda x: _pure(np.sort, x), ft.vmap(lambda r: _pure(np.sort, r)), in_a_branch, in_a_loop,
    lambda x: ft.vmap(lambda r: read("lane", r))(xp.stack([x, x])) + read("sum", x),
])  # fmt: skip
def test_callbacks_of_any_size(calls: Any) -> None:
    """What is promised follows the sizes: two compilations serve all."""
    f = ft.jit(calls)
    for n in (3, *range(2, 20)):
        x = xp.asarray(np.random.default_rng(n).normal(size=(n, 2)))
        assert done(f, x) == done(calls, x)
    assert f.cache_info().misses == 2, f.explain()


def test_many_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the limit of paths, in segments and as the function, nothing is done twice."""
    monkeypatch.setattr(segments, "_WORK", 1 << 10)

    def counts(x: Any) -> Any:
        note("start", x[0])
        n = int(x[0])
        note("after", x[0] + 1.0)
        return x * n

    for size in (3, 1 << 17):
        f = ft.jit(counts)
        for k in range(12):
            assert done(f, xp.full((size,), float(k))) == done(counts, xp.full((size,), float(k)))


def test_what_a_callback_calls_is_a_program_of_its_own() -> None:
    """A callback runs compiled functions with effects; they are no effects of the caller's."""

    def calls(v: Any) -> Any:
        SEEN.append("outer")
        return np.asarray(_inner(xp.asarray(v)))

    def program(x: Any) -> Any:
        y = ft.io_callback(calls, ft.ShapeDtype((2,), xp.float64), x)
        note("after", y)
        return y * 2.0 if xp.sum(y) > 0 else y

    f = ft.jit(program)
    for scale in (1.0, -1.0, 1.0):
        x = xp.full((2,), scale)
        assert done(f, x) == done(program, x)
