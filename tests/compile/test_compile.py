"""Compiled graphs: the same bits as eager, few buffers, no aliasing."""

import re
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.compile import MISS, build, plan
from funct.compile.control import is_lowered
from funct.compile.executable import call_by_call
from funct.compile.fusion.worth import worth
from funct.compile.rewriting.new_nodes import NewNodes
from funct.compile.text import literal
from funct.core import catalogue
from funct.graph import capture
from tests import laws
from tests.strategies import Program, inputs, programs

PLAN = sys.modules[plan.__module__]


def count(steps: Any) -> int:
    """How many results take over a buffer."""
    return sum(s.reuse is not None for s in steps)


@settings(max_examples=2 * settings.default.max_examples)
@given(programs(), st.booleans())
def test_compiled_equals_eager(program: Program, fortran: bool) -> None:
    """A random program gives the same bits eager, interpreted and printed as NumPy calls, whatever
    the layout, and the same numbers under `jit`.
    """
    xs = inputs(1, fortran)
    expected = program(*map(xp.asarray, xs))
    graph = ft.make_graph(program)(*map(xp.asarray, xs))
    laws.same(graph(*xs), expected)
    laws.same(call_by_call(graph)(*xs), expected)
    laws.close(ft.jit(program)(*map(xp.asarray, xs)), expected)


@pytest.mark.parametrize(
    ("fun", "wanted"),
    [
        (lambda x: ft.scan(lambda c, _: (xp.sin(c) * 0.5, None), x, None, length=7)[0], False),
        (lambda x: ft.scan(lambda c, _: (xp.sin(c) * 0.5, None), x, None, length=8)[0], True),
        (ft.grad(lambda x: xp.sum(ft.scan(
            lambda c, _: (xp.sin(c) * 0.5, None), x, None, length=5)[0])), True),
        (lambda x: ft.while_loop(lambda c: xp.any(c > 0.1), lambda c: c * 0.5, x), True),
        (lambda x: ft.cond(xp.sum(x) > 9, lambda x: xp.sin(x) * 2, lambda x: x, x), False),
        (lambda x: xp.max(x @ x, axis=0) - xp.where(x > 0, xp.sum(x, axis=1), xp.min(x)), True),
        (lambda x: xp.max(x @ x, axis=0) * 2, False),
    ],
)  # fmt: skip
def test_calls_in_steps_count_and_slow_ones_more(fun: Any, wanted: bool) -> None:
    """A program is what saves as many calls of NumPy as another library takes for one."""
    x = xp.ones((3, 3)) * 0.3
    graph = ft.make_graph(fun)(x)
    assert worth(graph, calls=graph, held=is_lowered) is wanted
    laws.close(ft.jit(fun)(x), fun(x))


@settings(max_examples=2 * settings.default.max_examples)
@given(programs())
def test_nothing_is_overwritten(program: Program) -> None:
    """A run leaves inputs, constants and the results of earlier runs as they were."""
    first, second = inputs(1), inputs(2)
    graph = ft.make_graph(program)(*map(xp.asarray, first))
    constants = [np.asarray(x).copy() for _, x in graph.constants]
    run = build(graph)
    before = [x.copy() for x in first]
    out = run(*first)
    kept = [np.array(o) for o in out]
    run(*second)
    laws.same(list(out), kept)
    laws.same(first, before)
    laws.same([x for _, x in graph.constants], constants)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: (lambda a: (a, a + 1.0, xp.reshape(a, (9,)) * 2.0))(x * 2.0),
        lambda x: (lambda a: (xp.permute_dims(a, (1, 0)), a * 3.0))(x + 1.0),
        lambda x: (lambda a: (a[0], xp.exp(a)))(x + 1.0),
        lambda x: (lambda a: a + xp.permute_dims(a, (1, 0)))(x + 1.0),
        lambda x: (lambda a: (a * a, xp.flip(a) + a))(x + 1.0),
        lambda x: (lambda a: (xp.broadcast_to(a[:1], (3, 3)) + a, a[0, 0]))(x + 1.0),
        lambda x: (lambda a: (xp.real(a), xp.sin(a)))(x + 1.0),
        lambda x: (lambda a: (ft.stop_gradient(a), xp.sin(a)))(x + 1.0),
        lambda x: (x, xp.sin(x), x + 1.0),
        lambda x: (lambda a: (xp.sum(a), -a, a))(x * 1.0),
        lambda x: (lambda a, b: (b, a + 1.0, b + 1.0))(*(lambda a: (a, a[::-1]))(x * 2.0)),
    ],
)
def test_views_and_reuse(fun: Any) -> None:
    """Hand-made cases: results that are views, the same operand twice, operands used later."""
    x = np.arange(9.0).reshape(3, 3)
    expected = fun(xp.asarray(x))
    compiled = ft.jit(fun)
    for _ in range(2):
        laws.same(compiled(xp.asarray(x)), expected)
    laws.same(x, np.arange(9.0).reshape(3, 3))


@pytest.mark.parametrize(
    ("fun", "wanted"),
    [(ft.ops.sigmoid, True), (xp.special.gammaln, True), (ft.ops.tan, True), (ft.ops.exp, False)],
)
def test_an_op_that_takes_numpy_long_is_worth_loops_sooner(fun: Any, wanted: bool) -> None:
    """Sigmoid is six passes where exp is one, and tan takes as long as four."""
    assert worth(ft.make_graph(fun)(xp.ones(1 << 12, dtype=xp.float32))) is wanted


@pytest.mark.parametrize(
    ("fun", "dtype", "x", "expected"),
    [
        (xp.log, "float32", 0.7836719, -0.24376482130467252),
        (xp.tan, "float32", 1339.8893, -64639.086398888),
        (xp.asin, "float32", 0.5218608, 0.5490308721325375),
        (xp.special.expit, "float32", -88.75565, 2.843868421058522e-39),
        (xp.special.expit, "float64", -710.2056712523097, 3.6441475975708e-309),
        (xp.special.erfc, "float64", 26.64883028453776, 8.0687240112739077e-311),
        (xp.special.erf, "float64", -0.0006538458068178021, -0.0007377858817679489),
    ],
)
def test_functions_of_thousands_of_numbers_are_ours(
    fun: Any, dtype: str, x: float, expected: float
) -> None:
    """Where NumPy and SciPy are more than 2 ulp away, or 0 where the result is subnormal."""
    found = np.asarray(ft.jit(fun)(xp.full(1 << 12, x, dtype=dtype)))
    ulp = np.spacing(np.asarray(abs(expected), dtype))
    assert np.all(np.abs(found - np.asarray(expected, dtype)) <= 2 * ulp)


def test_only_known_ops_count_as_new_buffers() -> None:
    """An op outside the list of new buffers may return a view; one inside never does."""
    for prim in catalogue():
        for s in prim.samples(np.random.default_rng(3)):
            args = [np.asarray(a) for a in s.args]
            out = prim.raw(*args, *s.params)
            for o in out if isinstance(out, tuple) else (out,):
                shared = [
                    a for a in args if isinstance(o, np.ndarray) and np.may_share_memory(o, a)
                ]
                fresh = isinstance(prim.raw, np.ufunc) or prim.name in PLAN._NEW
                assert not (shared and fresh), prim.name


def chain(x: Any) -> Any:
    """Forty elementwise steps."""
    y = x
    for _ in range(10):
        y = xp.sin(y) * 1.5 + y
        y = xp.tanh(y)
    return y


@pytest.mark.parametrize("shape", [(1_000_000,), (1000, 1000)])
def test_long_chains_need_few_buffers(shape: Any) -> None:
    """A chain of elementwise steps on 10^6 elements peaks at three buffers, the result included."""
    x = np.ones(shape)
    run = build(ft.make_graph(chain)(xp.asarray(x)))
    run(x)
    tracemalloc.start()
    try:
        run(x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 3.01 * x.nbytes


def test_intermediate_results_are_freed() -> None:
    """A value is dropped after its last use, also where nothing can take its buffer over."""

    def fun(x: Any) -> Any:
        for _ in range(20):
            x = xp.concat([x[1:], x[:1]])
        return x

    x = np.ones(100_000)
    run = build(ft.make_graph(fun)(xp.asarray(x)))
    tracemalloc.start()
    try:
        run(x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 3.1 * x.nbytes


def test_plan_reuses_only_what_dies() -> None:
    """The planner names each reuse: never an input, a constant, an output or a live value."""
    graph = ft.make_graph(lambda x: (lambda a: (a, xp.exp(a) + 1.0))(x * 2.0))(xp.ones(4))
    planned = plan(graph)
    assert count(planned.steps) == 1
    assert [s.reuse.name for s in planned.steps if s.reuse] == ["v2"]
    shifted = ft.make_graph(lambda x, y: x + y)(xp.ones(4), xp.ones(4))
    assert count(plan(shifted).steps) == 0
    mixed = ft.make_graph(lambda x: xp.astype(x * 2.0, "float32") + 1.0)(xp.ones(4))
    assert count(plan(mixed).steps) == 1
    other_dtype = ft.make_graph(lambda x: (x * 2.0) > 0.0)(xp.ones(4))
    assert count(plan(other_dtype).steps) == 0


@pytest.mark.parametrize(
    ("fun", "good", "bad"),
    [
        (lambda x: x if bool(xp.sum(x) > 0) else -x, [1.0, 2.0], [-1.0, -2.0]),
        (lambda x: x * int(xp.sum(x)), [1.0, 2.0], [1.0, 3.0]),
        (lambda x: x * float(x[0]), [1.0, 2.0], [2.0, 2.0]),
        (lambda x: x * float(x[0]), [np.nan, 2.0], [2.0, 2.0]),
        (lambda x: x[xp.astype(x[0], "int64").__index__() :], [1.0, 2.0], [0.0, 2.0]),
        (lambda x: x[x > 1.5], [1.0, 2.0], [2.0, 1.0]),
        (lambda x: xp.real(x * complex(x[0])), [1.0, 2.0], [0.0, 2.0]),
    ],
)
def test_guards_return_miss(fun: Any, good: Any, bad: Any) -> None:
    """A run that decides otherwise returns MISS, and jit compiles the other path."""
    graph, _ = capture(lambda x: [fun(x)], [np.asarray(good)])
    run = build(graph)
    laws.same(run(np.asarray(good))[0], fun(xp.asarray(good)))
    assert run(np.asarray(bad)) is MISS
    compiled = ft.jit(fun)
    for x in (good, bad, good, bad):
        laws.same(compiled(xp.asarray(x)), fun(xp.asarray(x)))
    assert compiled.cache_info().misses == 2


def test_literals_survive_printing() -> None:
    """Numbers in the printed program keep sign, type and every bit."""
    x = np.asarray([1.0, -2.0])
    inf, nan = float("inf"), float("nan")
    numbers: list[Any] = [-0.0, inf, -inf, nan, 1e-300, 0.1, 1e22, -3, True]
    for n in [*numbers, complex(nan, -0.0), complex(-0.0, inf), -1j]:
        with np.errstate(invalid="ignore"):
            laws.same(ft.jit(lambda x, n=n: x * n)(xp.asarray(x)), x * n)


def test_errors_inside_compiled_programs_name_the_line() -> None:
    """What fails in the compiled program raises the eager error, with the line of its op."""

    def pick(x: Any, i: Any) -> Any:
        return x[i] * 2.0  # the guilty line

    compiled = ft.jit(pick)
    compiled(xp.ones(3), xp.asarray([0]))
    with pytest.raises(ft.errors.IndexOutOfBoundsError) as caught:
        compiled(xp.ones(3), xp.asarray([7]))
    assert "x[...]: index 7 is out of bounds for an axis of length 3" in str(caught.value)
    assert "the guilty line" in str(caught.value)


def test_compile_time_does_not_explode_with_depth() -> None:
    """Values of two layouts that mix again and again: planning stays linear."""

    def f(x: Any, y: Any) -> Any:
        for _ in range(200):
            x, y = x + y, x * y
        return x

    x = xp.asarray(np.full((2, 3), 0.1))
    laws.same(ft.jit(f)(x, x), f(x, x))


def _kinds(cls: type) -> Iterator[type]:
    yield cls
    for kind in cls.__subclasses__():
        yield from _kinds(kind)


def test_names_of_parameters_are_no_names_of_values() -> None:
    """Whatever pass made the value: a local name would hide what the parameter means."""
    names: dict[str, Any] = {}
    for n in range(40):
        name = literal(np.arange(n), names)
        assert names[name].size == n
        for prefix in {"x", "v", "c", *[kind.prefix for kind in _kinds(NewNodes)]}:  # type: ignore[attr-defined]
            assert not re.fullmatch(prefix + r"\d+", name)
