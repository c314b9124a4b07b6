"""What is printed for a primitive does what the level's `run` does, in one frame."""

import inspect
import weakref
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.array import Array
from funct.core import FLOATING, INEXACT, Diagonal, Primitive, catalogue
from funct.core import level as levels
from funct.core.level import general
from funct.errors import EscapedTracerError, ShapeError, UnsupportedOperandError
from funct.ops.fast import wrap
from funct.transforms.forward import Forward, ForwardTracer
from funct.transforms.reverse import Reverse, ReverseTracer, Watched
from funct.transforms.tape.nodes import sink
from funct.transforms.tape.pulls import on_arrays
from funct.transforms.vmap import Batch, BatchTracer

KINDS: dict[Any, Callable[[], Any]] = {
    ReverseTracer: lambda: Reverse("test", None),
    ForwardTracer: lambda: Forward("test", None),
    BatchTracer: lambda: Batch(None, 3),
}
PRINTED = [
    (prim, tracer)
    for prim in catalogue()
    for tracer in KINDS
    if len(prim.rules) <= 2 and tracer.ways.make(prim) is not general(prim)
    if prim.samples(np.random.default_rng(0))  # a sum over lanes has none outside of vmap
]


def _may_be_traced(x: Any, tracer: Any) -> tuple[bool, ...]:
    traced = isinstance(x, Array) and (tracer is BatchTracer or x.dtype in INEXACT)
    return (True, False) if traced else (False,)


def _leaf(level: Any, x: Any) -> Any:
    if isinstance(level, Reverse):
        return level.record(x, sink, ())
    if isinstance(level, Batch):
        return BatchTracer(wrap(np.stack([x.data] * level.size)), level)
    return ForwardTracer(x, wrap(np.full(x.shape, 0.5, x.dtype)), level)


def _described(x: Any) -> Any:
    """All that a value is, arrays as bytes."""
    if isinstance(x, ForwardTracer):
        return _described(x.value), _described(x.tangent)
    if isinstance(x, BatchTracer):
        return _described(x.value)
    if isinstance(x, Array):
        return x.shape, x.dtype, x.data.tobytes()
    if not isinstance(x, ReverseTracer):
        return x
    edges = [
        (p.serial, inspect.unwrap(pull), *map(_described, kept)) for p, pull, kept in x.node.edges
    ]
    n = x.node
    return _described(x.value), n.serial, n.prim, n.shape, n.dtype, edges


@pytest.mark.parametrize(
    ("prim", "tracer"), PRINTED, ids=[f"{prim.name} {tracer.__name__}" for prim, tracer in PRINTED]
)
def test_a_printed_function_does_what_run_does(prim: Primitive, tracer: Any) -> None:
    """For every pattern of traced operands; where nothing varies, both give an untraced value."""
    seen = 0
    with np.errstate(all="ignore"):
        for sample in prim.samples(np.random.default_rng(0)):
            args = [wrap(a) if isinstance(a, np.ndarray) else a for a in sample.args]
            for which in product(*[_may_be_traced(a, tracer) for a in args]):
                if any(which):
                    found, wanted = [
                        take(*_traced(KINDS[tracer](), args, which), sample.params)
                        for take in (
                            lambda level, xs, params: tracer.ways.make(prim)(prim, *xs, params),
                            lambda level, xs, params: level.run(prim, xs, params),
                        )
                    ]
                    assert _described(found) == _described(wanted)
                    seen += 1
    assert seen


RULES = [
    (prim, i)
    for prim in catalogue()
    for i, rule in enumerate(prim.rules)
    if isinstance(rule, Diagonal) and on_arrays(rule.pull, prim.operands) is not rule.pull
]


@pytest.mark.parametrize(
    ("prim", "i"), RULES, ids=[f"{prim.name} {prim.operands[i]}" for prim, i in RULES]
)
def test_a_printed_rule_is_the_rule(prim: Primitive, i: int) -> None:
    """Bit for bit, on arrays of any dtype, beside numbers, and where it is differentiated."""
    rule: Any = prim.rules[i]
    pull = on_arrays(rule.pull, prim.operands)
    rng = np.random.default_rng(1)
    with np.errstate(all="ignore"):
        for sample in prim.samples(rng):
            args = [wrap(a) if isinstance(a, np.ndarray) else a for a in sample.args]
            ans = prim(*args, *sample.params)
            g = wrap(np.asarray(rng.normal(size=ans.shape), ans.dtype))
            kept = rule.keep((ans, *args, *sample.params))
            calls = [(g, *kept)]
            if all(isinstance(k, Array) and k.dtype in FLOATING for k in (g, *kept)):
                calls += [
                    [xp.astype(k, xp.bfloat16) for k in (g, *kept)],
                    [g, *[0.5 for _ in kept]],
                ]
            for given in calls:
                assert _result(pull, given) == _result(rule.pull, given)
            if len(calls) > 1:
                tangents = tuple([xp.ones_like(v) for v in (g, *kept)])
                pushed, wanted = [ft.jvp(f, (g, *kept), tangents) for f in (pull, rule.pull)]
                assert list(map(_described, pushed)) == list(map(_described, wanted))


def _result(f: Any, given: Any) -> Any:
    try:
        return _described(f(*given))
    except Exception as error:  # the same, then
        return type(error), str(error)


def _traced(level: Any, args: list[Any], which: tuple[bool, ...]) -> tuple[Any, list[Any]]:
    return level, [_leaf(level, a) if w else a for a, w in zip(args, which, strict=True)]


@pytest.fixture(params=[0, 1 << 60], ids=["printed", "bound"])
def often(monkeypatch: pytest.MonkeyPatch, request: Any) -> None:
    """Primitives that have come often, and such that never do."""
    monkeypatch.setattr(levels, "_OFTEN", request.param)
    for tracer in KINDS:
        tracer.ways.clear()


@pytest.mark.usefixtures("often")
def test_the_higher_of_two_tapes_takes_the_op() -> None:
    """Operands of two tapes, in both orders."""
    x = xp.asarray(3.0)
    low = Reverse("low", None)
    a = low.record(x, sink, ())
    high = Reverse("high", None)
    b = high.record(a * 2.0, sink, ())
    for y in (a * b, b * a):
        assert y.level is high
        assert [p for p, _, _ in y.node.edges] == [b.node]
        assert y.value.level is low


@pytest.mark.usefixtures("often")
def test_a_closed_tape_takes_no_op() -> None:
    """By the printed functions of one operand and of two."""
    kept: list[Any] = []
    ft.grad(lambda x: kept.append(x) or x * 1.0)(xp.asarray(1.0))
    for use in (xp.sin, lambda x: x * x, lambda x: x * 2.0, lambda x: xp.asarray(1.0) * x):
        with pytest.raises(EscapedTracerError, match="grad"):
            use(kept[0])


@pytest.mark.usefixtures("often")
def test_a_watched_tape_shows_every_node() -> None:
    """Its nodes know their lines, which those of others do not."""

    def lines(tape: type[Any]) -> list[Any]:
        own = tape("test", None)
        if tape is Watched:
            seen: list[Any] = []
            own.watches = (type("Seen", (), {"born": lambda self, nodes: seen.extend(nodes)})(),)
        x = own.record(xp.asarray([1.0, 2.0]), sink, ())
        y = xp.sin(x) * x
        return [y.node, *y.node.next] if tape is Reverse else seen

    assert [n.name for n in lines(Watched)] == ["input", "sin", "multiply"]
    assert [n.name for n in lines(Reverse)] == ["multiply", "sin", "input"]


@pytest.mark.usefixtures("often")
def test_errors_name_the_op() -> None:
    """An op that fails in its kernel, and operands of no kind."""
    with pytest.raises(ShapeError, match=r"multiply: shapes .* cannot be broadcast"):
        ft.grad(lambda x: xp.sum(x * xp.ones(3)))(xp.ones(2))
    with pytest.raises(UnsupportedOperandError, match="add: x2"):
        ft.grad(lambda x: xp.sum(x + "a"))(xp.ones(2))
    with pytest.raises(UnsupportedOperandError, match="add: x1"):
        ft.grad(lambda x: xp.sum([1.0] + x))(xp.ones(2))


@pytest.mark.usefixtures("often")
def test_a_tape_frees_what_nothing_needs() -> None:
    """A branch that no result depends on goes with its last reference."""
    level = Reverse("test", None)
    x = level.record(xp.ones(4), sink, ())
    dead = xp.exp(x)
    gone = weakref.ref(dead.value.data)
    for _ in range(3):
        dead = xp.sin(dead)
    assert gone() is not None
    del dead
    assert gone() is None
