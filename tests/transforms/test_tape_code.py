"""Tapes in machine code: no bit, no warning and no reference differs from the Python path."""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.compile import Few
from funct.core import level as levels
from funct.errors import EscapedTracerError, ShapeError
from funct.transforms.reverse import ReverseTracer
from funct.transforms.tape import code as tape_code
from funct.transforms.tape.nodes import Node
from tests import laws
from tests.together import together

pytestmark = pytest.mark.skipif(tape_code.load() is None, reason="no machine code for this machine")


_MADE: dict[bool, dict[Any, Any]] = {True: {}, False: {}}  # the ways with the code and without


@contextmanager
def machine(on: bool) -> Iterator[None]:
    """Every op of a tape, from its first coming on, in machine code or by its printed function."""
    loaded, often = tape_code._loading.code, levels._OFTEN
    tape_code._loading.code = tape_code.load() if on else None
    levels._OFTEN = 0
    ReverseTracer.ways.clear()
    ReverseTracer.ways.update(_MADE[on])
    try:
        yield
    finally:
        _MADE[on] = dict(ReverseTracer.ways)
        tape_code._loading.code, levels._OFTEN = loaded, often
        ReverseTracer.ways.clear()


UNARY: dict[str, Callable[[Any], Any]] = {
    name: getattr(xp, name)
    for name in (
        "sin", "exp", "log", "sqrt", "square", "negative", "abs", "tanh", "reciprocal", "atan",
        "cosh", "log1p", "sum",
    )
} | {
    "masked": lambda x: xp.where(x > 0.25, x, -x),
    "head": lambda x: xp.reshape(x, (-1,))[:1],
    "turned": lambda x: x.mT if x.ndim > 1 else x,
    "double": lambda x: xp.astype(x, xp.float64),
    "complex": lambda x: xp.abs(x + 1j),
}  # fmt: skip
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(xp, name)
    for name in (
        "add", "subtract", "multiply", "divide", "maximum", "atan2", "hypot", "pow", "remainder",
    )
}  # fmt: skip
SPECIAL = [0.0, -0.0, np.inf, np.nan, 1e-42, 3e38, 0.5, -2.0]
CONSTANTS: list[Any] = [2, 0.1, -1.5, 1 << 30, 1e39, float("inf"), None, (3,), (2, 3), (2, 1), (0,)]

STEPS = st.lists(
    st.tuples(
        st.sampled_from([*UNARY, *BINARY, *BINARY]),
        st.integers(0, 9),
        st.integers(0, 9) | st.sampled_from(CONSTANTS[1:]),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


def program(steps: list[Any], dtype: Any) -> Callable[[Any], Any]:
    """A function of one array: each step is an op on what is there, or on that and a constant."""

    def run(x: Any) -> Any:
        rng = np.random.default_rng(len(steps))
        values = [x]
        for name, i, j, swap in steps:
            a = values[i % len(values)]
            if name in UNARY:
                values.append(UNARY[name](a))
                continue
            b = values[j % len(values)] if isinstance(j, int) and j < 10 else j
            if isinstance(b, tuple) or b is None:
                b = xp.asarray(rng.normal(size=b or ()).astype(dtype))
            try:
                values.append(BINARY[name](*((b, a) if swap else (a, b))))
            except ShapeError:
                values.append(a)
        return sum(xp.sum(xp.astype(v, xp.float64)) for v in values)

    return run


def seen(f: Callable[[Any], Any], x: Any) -> Any:
    """The bits of a result, or the error, and what NumPy said of its elements on the way."""
    told: list[Any] = []
    with np.errstate(all="call"):
        before = np.seterrcall(lambda kind, flag: told.append((kind, flag)))
        try:
            out = f(x)
            return out.shape, out.dtype, out.data.tobytes(), told
        except Exception as error:
            return type(error), str(error), told
        finally:
            np.seterrcall(before)


@given(
    STEPS,
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([(), (3,), (2, 3), (1, 1)]),
    st.integers(0, 2**31),
    st.lists(st.sampled_from(SPECIAL), max_size=2),
)
def test_the_code_gives_the_bits_of_python(
    steps: list[Any], dtype: Any, shape: Any, seed: int, special: list[float]
) -> None:
    """Gradients of first and second order, their errors, and every warning on the way."""
    raw = np.random.default_rng(seed).normal(size=shape).astype(dtype)
    raw.reshape(-1)[: len(special)] = special[: raw.size]
    f, x = program(steps, dtype), xp.asarray(raw)
    g = ft.grad(f)
    for derivative in (g, ft.grad(lambda x: xp.sum(xp.sin(g(x)) * x))):
        with machine(False):
            wanted = seen(derivative, x)
        with machine(True):
            assert seen(derivative, x) == wanted


def chain(x: Any) -> Any:
    """Ops that the code knows, one that it does not, and a number."""
    y = xp.sin(x) * x + 0.5
    return xp.sum(xp.where(y > 0, y / x, y) - xp.tanh(2 * y))


CALLS: dict[str, Callable[[Any], Any]] = {
    "first order": ft.grad(chain),
    "second order": ft.grad(lambda x: xp.sum(ft.grad(chain)(x) ** 2)),
    "walked twice": lambda x: [ft.vjp(chain, x)[1](xp.asarray(2.0)) for _ in range(2)],
    "flags": ft.grad(lambda x: xp.sum(xp.log(x - x) * xp.sqrt(-x) + 1e39 * x)),
    "large": ft.grad(lambda x: xp.sum(xp.exp(xp.broadcast_to(x, (2000, 3)) * 0.5))),
    "under vmap": lambda x: ft.vmap(ft.grad(chain))(xp.stack([x, x])),
    "under jvp": lambda x: ft.jvp(ft.grad(chain), (x,), (x,)),
    "a hook": ft.grad(lambda x: chain(ft.hook(x * 1.0, backward=lambda g: g * 2.0))),
    "a result that varies with nothing": ft.grad(lambda x: xp.sum(xp.ones(3))),
}


def _fails(x: Any) -> Any:
    with pytest.raises(ShapeError):
        ft.grad(lambda x: xp.sum(xp.sin(x) * xp.ones(5)))(x)


def _fails_behind(x: Any) -> Any:
    def bad(g: Any) -> Any:
        raise KeyError("in a pull")

    with pytest.raises(KeyError):
        ft.grad(lambda x: xp.sum(xp.sin(ft.hook(x * 2.0, backward=bad)) * x))(x)


def _fails_inside(x: Any) -> Any:
    def run(x: Any) -> Any:
        y = xp.sin(x) * x
        raise KeyError(y.shape)

    with pytest.raises(KeyError):
        ft.grad(run)(x)


def _raises(x: Any) -> Any:
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        ft.grad(lambda x: xp.sum(xp.log(x - x)))(x)


CALLS |= {
    "an op that fails": _fails, "a pull that fails": _fails_behind,
    "a function that fails": _fails_inside, "a flag that is an error": _raises,
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_nothing_leaks_and_nothing_is_freed_twice(name: str) -> None:
    """Many calls leave as many references to what lives on as there were, and no object."""
    call, x = CALLS[name], xp.asarray([0.3, 1.2, 2.5])
    lasting: list[Any] = [
        x, x.data, x.dtype, type(x), Node, ReverseTracer, np.ndarray, xp.sin, float, (), None, True,
        *range(1, 40),
    ]  # fmt: skip
    with machine(True), np.errstate(all="ignore"):
        for _ in range(100):
            call(x)
        lasting += [*ReverseTracer.ways.keys(), *ReverseTracer.ways.values()]
        counts = np.zeros((12, 1 + len(lasting)), int)  # which takes no blocks later
        for row in counts:  # caches that grow once grow in one of these
            gc.collect()
            row[:] = [sys.getallocatedblocks(), *map(sys.getrefcount, lasting)]
            for _ in range(30):
                call(x)
    growth = np.diff(counts, axis=0)
    grown, lost = growth.min(axis=0), -growth.max(axis=0)
    assert [(o, n) for o, n in zip(("blocks", *lasting), grown, strict=True) if n >= 30] == []
    assert [(o, n) for o, n in zip(("blocks", *lasting), lost, strict=True) if n >= 30] == []


def test_many_threads() -> None:
    """Each has tapes of its own; the code has no state."""
    x = xp.asarray(np.linspace(0.1, 2.0, 7))
    with machine(True):
        wanted = [CALLS[name](x).data.tobytes() for name in ("first order", "second order")]

        def work(k: int) -> None:
            for _ in range(30):
                found = [CALLS[name](x).data.tobytes() for name in ("first order", "second order")]
                assert found == wanted

        together(16, work, turns=1e-5)


def test_a_closed_tape_takes_no_op() -> None:
    """A tracer that outlived its transform."""
    kept: list[Any] = []

    def keep(x: Any) -> Any:
        kept.append(x)
        return x * 1.0

    with machine(True):
        ft.grad(keep)(xp.asarray(1.0))
        for use in (xp.sin, lambda x: x * x, lambda x: 2.0 * x):
            with pytest.raises(EscapedTracerError, match="grad"):
                use(kept[0])


def test_the_walk_stops_before_what_is_not_plain() -> None:
    """It leaves there the node itself, and none behind it."""
    with machine(True):
        code = tape_code.load()
        assert code is not None
        level = ft.transforms.reverse.Reverse("test", None)
        x = level.record(xp.ones(3), ft.transforms.tape.nodes.sink, ())
        masked = xp.where(xp.asarray([True, False, True]), xp.sin(x), 0.0)
        y = xp.exp(masked) * 2.0
        due: list[Any] = [None] * y.node.serial + [(y.node, xp.ones(3))]
        assert code.walk(due, {}, False) is None
        assert due[-1][0] is masked.node
        assert len(due) == masked.node.serial + 1


@pytest.mark.parametrize("other", [True, False])
def test_it_is_loaded_when_it_pays(monkeypatch: pytest.MonkeyPatch, other: bool) -> None:
    """After thousands of nodes; after hundreds, where something else has loaded LLVM."""
    monkeypatch.setattr(tape_code, "_loading", tape_code._Loading(tape_code._loading.level))
    monkeypatch.setattr(tape_code, "loaded", lambda: other)
    few = tape_code._LOADED if other else tape_code._OFTEN
    assert tape_code.walker(few) is None
    assert tape_code.walker(1) is not None


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("y", [-3, -2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.0, 2.5, 3, 4, 5, 7])
def test_powers_by_a_number(y: float, kind: str) -> None:
    """Their value is the array's own under each transform, and stays so however often they run."""
    x = np.random.default_rng(0).normal(size=(2, 7)).astype(kind)
    x = xp.asarray(np.abs(x) if y % 1 else x)
    value = x**y

    def f(v: Any) -> Any:
        return xp.sum(xp.sin(v**y))

    first = [ft.grad(f)(x), ft.hessian(f)(x)]
    for on in (False, True):
        with machine(on):
            laws.same(ft.vjp(lambda v: v**y, x)[0], value)
            laws.same(ft.jvp(lambda v: v**y, (x,), (x,))[0], value)
            laws.same([ft.grad(f)(x), ft.hessian(f)(x)], first)
    graph = ft.make_graph(lambda v: v**y)(x)
    few = Few(graph)
    few._load()
    laws.same(xp.asarray(few.run(np.asarray(x))[0]), value)
