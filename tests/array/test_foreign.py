"""Operands of other libraries: the right one answers where a Tensor does not know it."""

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.core import foreign
from funct.errors import FunctError, UnsupportedOperandError
from funct.interop import rebind
from tests import laws

# Python's operators, by the method of the right operand that answers
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "__radd__": operator.add, "__rand__": operator.and_, "__rlshift__": operator.lshift,
    "__ror__": operator.or_, "__rrshift__": operator.rshift, "__rxor__": operator.xor,
    "__rtruediv__": operator.truediv, "__eq__": operator.eq, "__rfloordiv__": operator.floordiv,
    "__lt__": operator.gt, "__le__": operator.ge, "__gt__": operator.lt, "__ge__": operator.le,
    "__rmatmul__": operator.matmul, "__rmul__": operator.mul, "__ne__": operator.ne,
    "__rpow__": operator.pow, "__rmod__": operator.mod, "__rsub__": operator.sub,
}  # fmt: skip

FUNCTIONS = {method: name for name, method in foreign._REFLECTED.items()}


def labelled(method: str, answer: Callable[[Any], Any]) -> Any:
    """An object whose one operator gives answer(the other operand)."""
    return type("Labelled", (), {method: lambda _, other: answer(other)})()


def test_every_operator_is_known() -> None:
    """The table of the core is Python's data model."""
    assert set(foreign._REFLECTED.values()) == OPERATORS.keys()


@pytest.mark.parametrize("method", OPERATORS)
def test_the_right_operand_answers(method: str) -> None:
    """It is given the left one, and what it says is the result; of a handle, the Tensor."""
    op = OPERATORS[method]
    given: list[Any] = []
    answering = labelled(method, lambda other: given.append(other) or "answer")
    x = xp.ones(3)
    assert op(x, answering) == op(rebind.wrap(x), answering) == "answer"
    assert given[0] is given[1] is x
    with pytest.raises(UnsupportedOperandError, match="Labelled"):
        op(xp.ones(3), labelled(method, lambda other: NotImplemented))
    with pytest.raises(KeyError, match="its own error"):
        op(xp.ones(3), labelled(method, lambda other: {}["its own error"]))
    with pytest.raises(UnsupportedOperandError, match="object"):
        op(xp.ones(3), object())
    with pytest.raises(FunctError):
        getattr(xp, FUNCTIONS[method])(answering, answering)  # where no operand is a Tensor


@pytest.mark.parametrize("times", [1, 40])  # the first calls are taken another way
def test_it_is_given_the_tracer(times: int) -> None:
    """So derivatives, lanes and captures go through what it does."""
    x = xp.asarray([1.0, 2.0, 3.0])
    for _ in range(times):
        triple = labelled("__rmul__", lambda other: other * 3.0 + other**2)

        def fun(x: Any, triple: Any = triple) -> Any:
            return xp.sum(x * triple)

        laws.close(ft.grad(fun)(x), 3.0 + 2.0 * x)
    laws.close(ft.jvp(fun, (x,), (xp.ones(3),))[1], xp.sum(3.0 + 2.0 * x))
    laws.close(ft.vmap(fun)(xp.stack([x, x]))[1], fun(x))
    laws.close(ft.jit(fun)(x), fun(x))


@pytest.mark.parametrize("other", [[1.0], (1.0,), "%", None, Fraction(1, 2)])
def test_pythons_own_are_not_asked(other: Any) -> None:
    """A list would take a 0-d array for a count."""
    for x in (xp.asarray(2), xp.ones(3)):
        with pytest.raises(FunctError):
            x * other


def test_a_handle_keeps_what_it_holds() -> None:
    """x += y is refused where the answer is no array."""
    x = rebind.ones(3)
    with pytest.raises(UnsupportedOperandError, match="add: x cannot hold a str"):
        x += labelled("__radd__", lambda other: "text")
    laws.same(x.unwrap(), np.ones(3))


def test_pandas_and_xarray_answer() -> None:
    """With labels, whichever side they stand on."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    x, values = xp.asarray([1.0, 2.0, 3.0]), np.asarray([1.0, 2.0, 3.0])
    for op in (operator.add, operator.sub, operator.mul, operator.truediv, operator.lt):
        series = pd.Series(values, index=list("abc"))
        pd.testing.assert_series_equal(op(x, series), op(values, series))
        array = xr.DataArray(x, dims="t")
        result = op(x, array)
        assert isinstance(result.data, xp.Tensor)
        laws.same(result.data, op(values, values))
