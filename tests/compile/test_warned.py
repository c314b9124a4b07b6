"""Integers that are divided by 0, and the least ones by -1: compiled code warns, raises and calls
as eager code does, at every state of `np.errstate`, and of nothing else.
"""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import funct as ft
import funct.array as xp
from funct.compile.fusion.calls import every_call
from tests.compile.test_bounds import made_of

SIGNED = ["int8", "int16", "int32", "int64"]
DTYPES = [*SIGNED, "uint8", "uint16", "uint32", "uint64"]
OPS: dict[str, Callable[[Any, Any], Any]] = {
    "floor_divide": xp.floor_divide,
    "remainder": xp.remainder,
    "operators": lambda x, y: (x // y) ^ (x % y),
    "remainder first": lambda x, y: (x % y) ^ (x // y),
    "fmod": xp.fmod,
}
STATES = ["warn", "raise", "ignore", "call", "print", "log"]


class Log:
    """What NumPy writes to."""

    def __init__(self) -> None:
        self.said: set[str] = set()

    def write(self, text: str) -> None:
        self.said.add(text)


def outcome(fun: Callable[..., Any], *args: Any, state: str = "warn") -> Any:
    """What is to be seen of a call: the numbers or the error, and all that NumPy said."""
    log, called = Log(), set()
    handler = log if state == "log" else lambda kind, flag: called.add((kind, flag))
    with warnings.catch_warnings(record=True) as warned, np.errstate(all=state, call=handler):
        warnings.simplefilter("always")
        try:
            found: Any = [(v.dtype, v.tolist()) for v in ft.tree.leaves(fun(*args))]
        except Exception as error:
            found = type(error), str(error)
    return found, {(w.category, str(w.message)) for w in warned}, called, log.said


def numbers(
    dtype: str, n: int, *, zero: bool = True, least: bool = True, seed: int = 0, at: int = -1
) -> Any:
    """x and y, of which one y is 0 (that at `at`, or any), and one is -1 where x is the least
    number; no others are.
    """
    rng, info = np.random.default_rng(seed), np.iinfo(dtype)
    x = rng.integers(info.min, info.max, n, dtype, endpoint=True)
    y = rng.integers(1, info.max, n, dtype, endpoint=True)
    if least and dtype in SIGNED:
        other = rng.integers(n)
        x[other], y[other] = info.min, -1
    if zero:
        y[at if at >= 0 else rng.integers(n)] = 0
    return xp.asarray(x), xp.asarray(y)


def alike(fun: Callable[..., Any], *args: Any, state: str = "warn", mode: Any = "default") -> Any:
    """What is to be seen of eager code, and of compiled code at its first and later calls."""
    expected = outcome(fun, *args, state=state)
    compiled = ft.jit(fun, mode=mode)
    for _ in range(4):
        assert outcome(compiled, *args, state=state) == expected
    return expected


def said(seen: Any) -> set[str]:
    """What was warned of."""
    return {text.split(" encountered")[0] for _, text in seen[1]}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("n", [1, 37, 20_001])
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint32"])
def test_every_state(dtype: str, n: int, state: str, capfd: Any) -> None:
    """One number, NumPy's calls, and loops with and without a rest."""
    for name, op in OPS.items():
        for mode in ("default", "reduce-overhead"):
            found, warned, called, logged = alike(op, *numbers(dtype, n), state=state, mode=mode)
            printed = "".join(capfd.readouterr())
            raised = found[0] is FloatingPointError
            heard = {"warn": warned, "raise": raised, "call": called, "log": logged}
            for other, it in (heard | {"print": printed}).items():
                assert bool(it) == (other == state), (name, mode, other)


@pytest.mark.pairwise
@pytest.mark.parametrize(("zero", "least"), [(True, False), (False, True), (False, False)])
@pytest.mark.parametrize("n", [1, 7, 33, 20_001])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_there_is_to_warn_of(dtype: str, n: int, zero: bool, least: bool) -> None:
    """Either alone, and nothing of lanes that are no elements."""
    for name, op in OPS.items():
        overflows = least and dtype in SIGNED and name not in ("remainder", "fmod")
        expected = {"divide by zero": zero, "overflow": overflows}
        for mode in ("default", "reduce-overhead"):
            seen = alike(op, *numbers(dtype, n, zero=zero, least=least, seed=n), mode=mode)
            assert said(seen) == {text for text, there in expected.items() if there}, name


@settings(max_examples=3 * settings.default.max_examples)
@given(
    st.sampled_from(DTYPES), st.integers(1, 300), st.booleans(), st.booleans(), st.integers(0, 99)
)
def test_wherever_it_stands(dtype: str, n: int, zero: bool, least: bool, seed: int) -> None:
    """In any lane of a vector, or of the rest."""
    given = numbers(dtype, n, zero=zero, least=least, seed=seed)
    alike(OPS["operators"], *given, mode="reduce-overhead")


def table(v: Any) -> Any:
    return xp.reshape(v, (120, 170))


ORDER = xp.asarray(np.random.default_rng(1).permutation(120 * 170))

# Ways in which machine code comes to divide: each of x and y of 120 · 170 numbers
ROUTES: dict[str, Callable[[Any, Any], Any]] = {
    "with others": lambda x, y: (x ^ 3) // y + (x & 1),
    "twice": lambda x, y: (x // y, x % y),
    "by each row's": lambda x, y: table(x) // y[:120, None],
    "by each column's": lambda x, y: table(x) % y[:170],
    "by the least of a row": lambda x, y: table(x) // xp.min(table(y), axis=1, keepdims=True),
    "by the least of all": lambda x, y: x % xp.min(y),
    "by 0": lambda x, y: x // 0,
    "of a number": lambda x, y: 100 // y,
    "added up": lambda x, y: xp.sum(x // y),
    "added up by rows": lambda x, y: xp.sum(table(x) // table(y), axis=1),
    "the largest of columns": lambda x, y: xp.max(table(x) % table(y), axis=0),
    "looked up": lambda x, y: (x ^ 1)[ORDER] // y[ORDER],
    "every second": lambda x, y: (x[::2] ^ 1) // y[::2],
    "backwards": lambda x, y: xp.flip(x) // y,
    "transposed": lambda x, y: table(x).T // (table(y) + 0).T,
    "turned": lambda x, y: table(x) // xp.reshape(y, (170, 120)).T,
    "one after the other": lambda x, y: xp.concat([x // y, x % y]),
    "between others": lambda x, y: x.at[1:-1].set(x[1:-1] // y[1:-1]),
    "short rows": lambda x, y: xp.reshape(x, (-1, 3)) // xp.reshape(y, (-1, 3)),
    "chosen": lambda x, y: xp.where(x > 3, x // y, x),
    "lanes": ft.vmap(lambda x, y: x // y),
    "tables of lanes": lambda x, y: ft.vmap(lambda a, b: xp.sum(a % b))(table(x), table(y)),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUTES)
def test_routes(name: str) -> None:
    """All of them in machine code, by one thread and by two."""
    fun = ROUTES[name]
    for dtype in ("int8", "int32", "int64", "uint16"):
        for zero in (True, False):
            given = numbers(dtype, 120 * 170, zero=zero, least=False, at=2)
            made = made_of(fun, *given)
            assert any(c.warns for c in every_call(made.calls))
            for state in ("warn", "raise", "ignore"):
                for threads in (1, 2):
                    with ft.config.using(threads=threads):
                        seen = alike(fun, *given, state=state)
                if state == "warn":
                    assert said(seen) == ({"divide by zero"} if zero or name == "by 0" else set())


# Loops whose steps divide the rows of x by those of y
LOOPS: dict[str, tuple[tuple[int, ...], Callable[[Any, Any], Any]]] = {
    "numbers": ((2000,), lambda x, y: ft.scan(lambda s, v: (s ^ v[0] // v[1], s), x[0], (x, y))),
    "few": ((300, 7), lambda x, y: ft.scan(lambda s, v: (s ^ v[0] % v[1], s[0]), x[0], (x, y))),
    "columns": ((300, 37), lambda x, y: ft.scan(lambda s, v: (s + v[0] // v[1], s), x[0], (x, y))),
    "blocks": ((70, 3000), lambda x, y: ft.scan(
        lambda s, v: (s ^ v[0] // v[1], xp.sum(s)), x[0], (x, y)
    )),
    "while": ((400,), lambda x, y: ft.while_loop(
        lambda s: s[0] < 400, lambda s: (s[0] + 1, s[1] ^ x[s[0]] // y[s[0]]), (0, x[0])
    )),
    "branches": ((2000,), lambda x, y: ft.scan(
        lambda s, v: (s ^ ft.cond(v[0] > 0, lambda a, b: a // b, lambda a, b: a % b, *v), s),
        x[0], (x, y),
    )),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_loops(name: str, dtype: str) -> None:
    """NumPy says of the steps what it says of all rows at once."""
    shape, fun = LOOPS[name]
    for zero in (True, False):
        for state in ("warn", "raise", "ignore"):
            x, y = numbers(dtype, int(np.prod(shape)), zero=zero, least=False, seed=3)
            seen = alike(fun, x.reshape(shape), y.reshape(shape), state=state)
            assert said(seen) == ({"divide by zero"} if zero and state == "warn" else set())
            assert (seen[0][0] is FloatingPointError) == (zero and state == "raise")


def test_what_is_not_done() -> None:
    """Nobody is warned of a branch that is not taken, nor of a loop that makes no steps."""
    x, zero = xp.asarray(7), xp.asarray(0)

    def branch(x: Any, y: Any) -> Any:
        return ft.cond(y != 0, lambda x, y: x // y, lambda x, y: x, x, y)

    def loop(x: Any, y: Any) -> Any:
        return ft.while_loop(lambda s: s[0] < 0, lambda s: (s[0] + 1, s[1] + x // y), (zero, x))

    def many(x: Any, y: Any) -> Any:
        xs = xp.arange(3000) + x
        return ft.scan(lambda s, v: (s + branch(v, y), branch(s, y)), x, xs)

    for fun in (branch, loop, many):
        for mode in ("default", "reduce-overhead"):
            assert alike(fun, x, zero, state="raise", mode=mode)[0][0] is not FloatingPointError
    assert alike(branch, x, x, mode="reduce-overhead")[0][0][1] == 1


@pytest.mark.parametrize("n", [5, 20_000])
def test_the_line(n: int) -> None:
    """An error of compiled code knows whose line it is; a warning that is made one does too."""
    x, y = numbers("int32", n, least=False)
    f = ft.jit(lambda x, y: (x + 1) // y)  # this line
    for _ in range(3):
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError) as raised:
            f(x, y)
        (note,) = raised.value.__notes__
        assert "test_warned.py" in note
        assert note.endswith("# this line")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="floor_divide") as warned:
            f(x, y)
    assert warned.value.__notes__[0].endswith("# this line")


def test_the_line_of_a_loop() -> None:
    x, y = numbers("int64", 3000, least=False)

    def step(s: Any, v: Any) -> Any:
        return s + v[0] // v[1], s  # this line

    f = ft.jit(lambda x, y: ft.scan(step, x[0], (x, y)))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError) as raised:
        f(x, y)
    assert raised.value.__notes__[0].endswith("# this line")


def test_donated_arrays() -> None:
    """The quotient may lie where an operand was."""
    x, y = (np.asarray(v) for v in numbers("int64", 100_000, least=False))
    with np.errstate(all="ignore"):
        expected = x // y
    f = ft.jit(lambda x, y: x // y, donate_argnums=(0, 1))
    for _ in range(4):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            assert np.array_equal(f(xp.asarray(x.copy()), xp.asarray(y.copy())), expected)
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="floor_divide"):
            f(xp.asarray(x.copy()), xp.asarray(y.copy()))


def test_threads_have_states_of_their_own() -> None:
    """What one thread is told no other is."""
    usual, unusual = numbers("int32", 50_000, zero=False), numbers("int32", 50_000, least=False)
    f = ft.jit(lambda x, y: x % y)
    f(*usual)

    def work(k: int) -> bool:
        given, state = (unusual, ("raise", "ignore")[k % 2]) if k % 3 else (usual, "raise")
        try:
            with np.errstate(all=state):
                f(*given)
        except FloatingPointError:
            return True
        return False

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(60))) == [k % 3 > 0 and k % 2 == 0 for k in range(60)]


def test_measured_code_warns_once() -> None:
    """However often it ran until the fastest was known."""
    given = numbers("int32", 4000, least=False)
    with np.errstate(all="call", call=lambda *_: heard.append(1)):
        heard: list[int] = []
        ft.jit(lambda x, y: x % y, mode="max-autotune")(*given)
        assert heard == [1]


def test_loops_that_warn_of_nothing_look_at_nothing() -> None:
    """No kernel that divides no integers, or by known numbers, is told where the workspace is."""
    x, y = numbers("int64", 20_000)
    for fun in (
        lambda x, y: x * y + 1,
        lambda x, y: x // 7 + x % 10,
        lambda x, y: x % -1,
        lambda x, y: xp.astype(x, xp.float64) // xp.astype(y, xp.float64),
        lambda x, y: x / y,
    ):
        assert not any(c.is_told for c in every_call(made_of(fun, x, y).calls))
