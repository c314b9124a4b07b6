"""A Python integer that an array's dtype has not is refused or computed with, never wrapped."""

import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import FunctError, RangeError
from funct.graph.run import Interpreter

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

OUTSIDE = (300, -129)  # of int8
SHORT = xp.asarray([1, 2, 3], dtype=xp.int8)
WIDE = xp.astype(SHORT, xp.int64)
HITS = xp.asarray([True, False, True])

Call = Callable[[Any, int], Any]  # of an array and a number


def functions() -> dict[str, Any]:
    """Public functions of arrays, and what `x.at[…]` has.

    Left out are those that convert by intent: `clip` takes any limits, `astype` wraps.
    """
    found = {
        f"{package.__name__}.{name}": fun
        for package in (xp, xp.linalg, xp.special)
        for name in package.__all__
        if inspect.isfunction(fun := getattr(package, name)) and name not in ("astype", "clip")
    }
    keys = {"0": 0, "slice": slice(2), "places": xp.asarray([0, 0]), "mask": HITS}
    for name in ("set", "add", "multiply", "power", "min", "max"):
        for text, key in keys.items():
            found[f"at[{text}].{name}"] = _update(name, key)
    return found


def _update(name: str, key: Any) -> Call:
    return lambda x, v, /: getattr(xp.asarray(x).at[key], name)(v)


def calls(fun: Any) -> Iterator[tuple[str, Call]]:
    """Calls with a number for one parameter and arrays for others."""
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [p for p in inspect.signature(fun).parameters.values() if p.kind not in several]
    given = [k for k, p in enumerate(parameters) if p.default is p.empty]
    for k, p in enumerate(parameters):
        call = _working(fun, parameters, [i for i in given if i != k], k)
        if call is not None and not isinstance(p.default, bool):
            yield p.name, call


def _working(fun: Any, parameters: list[Any], others: list[int], number: int) -> Call | None:
    """A call that gives something for a number in the range, with x among what else is given."""
    for picks in itertools.product(("x", "hits", "[x]", "[hits]", 1), repeat=len(others)):

        def call(x: Any, n: int, picks: Any = picks) -> Any:
            made = {"x": x, "hits": HITS, "[x]": [x], "[hits]": [HITS], 1: 1}
            values = {number: n} | {i: made[v] for i, v in zip(others, picks, strict=True)}
            args, options = [], {}
            for i, p in enumerate(parameters[: max(values) + 1]):
                if p.kind is not p.KEYWORD_ONLY:
                    args.append(values.get(i, p.default))
                elif i in values:
                    options[p.name] = values[i]
            return fun(*args, **options)

        if {"x", "[x]"} & set(picks) and not isinstance(told(call, SHORT, 2), FunctError):
            return call
    return None


def told(call: Callable[..., Any], *args: Any) -> Any:
    """What comes out, with float64 for inexact numbers of any precision; or the refusal."""
    try:
        y = call(*args)
    except FunctError as error:
        return error
    return [np.asarray(v) for v in (y if isinstance(y, tuple | list) else [y])]


def _agrees(found: Any, expected: Any) -> bool:
    if isinstance(expected, FunctError):
        return isinstance(found, FunctError)
    if isinstance(found, FunctError):
        return isinstance(found, RangeError)
    return all(np.allclose(a, b, rtol=2e-3, equal_nan=True) for a, b in zip(found, expected))


@pytest.mark.parametrize("name", functions())
def test_a_number_outside_is_refused_or_computed_with(name: str) -> None:
    """The result is that of an array of int64, which has the number; a graph says the same."""
    for argument, call in calls(functions()[name]):
        for n in OUTSIDE:
            expected, found = told(call, WIDE, n), told(call, SHORT, n)
            assert _agrees(found, expected), (argument, n, found, expected)
        captured = told(_by_graph, call, OUTSIDE[0])
        expected = told(call, WIDE, OUTSIDE[0])
        assert _agrees(captured, expected), (argument, captured, expected)


def _by_graph(call: Call, n: int, x: Any = SHORT) -> Any:
    return Interpreter(ft.make_graph(lambda x: call(x, n))(x)).run(x)


SQUARE = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
# functions of an axis, of an offset or of a count, which NumPy or SciPy takes as a C int
AXES: dict[str, Call] = {
    "argmax": xp.argmax, "argsort": lambda x, n: xp.argsort(x, axis=n),
    "concat": lambda x, n: xp.concat([x, x], axis=n),
    "cumulative_sum": lambda x, n: xp.cumulative_sum(x, axis=n),
    "diag": xp.diag, "diagonal": lambda x, n: xp.linalg.diagonal(x, offset=n), "flip": xp.flip,
    "flipped": lambda x, n: xp.flip(x, axis=(0, n)), "jv": lambda x, n: xp.special.jv(n, x),
    "moveaxis": lambda x, n: xp.moveaxis(x, n, 0), "nbdtr": lambda x, n: xp.special.nbdtr(n, 2, x),
    "pdtri": lambda x, n: xp.special.pdtri(n, x / 9),
    "permute_dims": lambda x, n: xp.permute_dims(x, (n, 0)),
    "repeat": lambda x, n: xp.repeat(x, 2, n), "roll": xp.roll,
    "sort": lambda x, n: xp.sort(x, axis=n), "squeeze": xp.squeeze,
    "stack": lambda x, n: xp.stack([x, x], axis=n), "sum": lambda x, n: xp.sum(x, axis=n),
    "swapaxes": lambda x, n: x.swapaxes(n, 0), "trace": lambda x, n: xp.linalg.trace(x, offset=n),
    "tril": lambda x, n: xp.tril(x, k=n),
}  # fmt: skip


@pytest.mark.parametrize("name", AXES)
def test_integers_of_more_bits_are_not_cut_off(name: str) -> None:
    """They are refused, or give what primitives give, which are told by Python."""
    fun = AXES[name]
    for n in (2**31, 2**32, 2**32 + 1, 2**63 - 1, -(2**31), -(2**32), -(2**63)):
        found = told(fun, SQUARE, n)
        compiled = told(_by_graph, fun, n, SQUARE)
        if isinstance(found, FunctError):
            assert isinstance(compiled, FunctError), n
            continue
        for a, b in zip(found, compiled, strict=True):
            np.testing.assert_array_equal(a, b)
