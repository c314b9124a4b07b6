"""`Size` against plain integers."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funct.core import Size, SizeScope, is_one, larger, size_values, smaller

LENGTHS = {"max": larger, "min": smaller}  # Python's own would decide
VALUES = st.fixed_dictionaries({"n": st.integers(1, 9), "m": st.integers(1, 9)})


def scope() -> tuple[SizeScope, list[Any]]:
    """A scope and the list of what it recorded."""
    records: list[Any] = []
    return SizeScope(lambda *r: records.append(r)), records


def symbols(values: dict[str, int]) -> tuple[dict[str, Any], list[Any]]:
    """One Size per name."""
    held, records = scope()
    return {k: Size.symbol(k, v, held) for k, v in values.items()}, records


@st.composite
def expressions(draw: Any, depth: int = 4) -> str:
    """Python text of a polynomial in n and m, with divisions by positive numbers and the larger or
    smaller of two.
    """
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return str(draw(st.sampled_from(["n", "m", "n", "m", "1", "2", "3"])))
    left, right = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    op = draw(st.sampled_from(["+", "-", "*", "+", "*", "//", "%", "max", "min"]))
    if op in LENGTHS:
        return f"{op}({left}, {right})"
    if op in "//%":
        right = str(draw(st.sampled_from(["1", "2", "3", "n", "m", "2*n", "n*m"])))
        return f"(({left}) {op} ({right}))"
    return f"({left} {op} {right})"


@given(expressions(), VALUES, VALUES)
def test_arithmetic(text: str, at: Any, elsewhere: Any) -> None:
    """An expression has the integer's value, where it was captured and anywhere else."""
    names, records = symbols(at)
    size = eval(text, LENGTHS, dict(names))
    assert size_values(size) == eval(text, {}, dict(at))
    assert size_values(size, elsewhere) == eval(text, {}, dict(elsewhere))
    assert records == []


@given(expressions(), expressions(), VALUES)
def test_comparison(left: str, right: str, at: Any) -> None:
    """Comparisons decide as integers do; what was recorded holds where it was decided."""
    for op in ("==", "!=", "<", "<=", ">", ">="):
        names, records = symbols(at)
        text = f"({left}) {op} ({right})"
        assert eval(text, LENGTHS, dict(names)) is eval(text, {}, dict(at))
        for a, o, b, outcome in records:
            assert eval(f"({a}) {o} ({b})", {}, dict(at)) is outcome


@given(expressions(), VALUES)
def test_equal_expressions_need_no_guard(text: str, at: Any) -> None:
    """What is equal as a polynomial is equal without a record, and hashes equal."""
    names, records = symbols(at)
    a = eval(text, LENGTHS, dict(names))
    b = eval(f"({text}) + 0 * n + (m - m)", LENGTHS, dict(names))
    assert a == b
    assert hash(a) == hash(b)
    assert records == []


@given(expressions(), VALUES)
def test_no_length_is_below_its_bound(text: str, at: Any) -> None:
    """Whatever is settled without a guard holds for every length, not for the example's alone."""
    size = eval(text, LENGTHS, symbols(at)[0])
    bound = size.least if isinstance(size, Size) else size
    for n in range(10):
        for m in range(6):
            with suppress(ZeroDivisionError):  # no program for these
                assert eval(text, {}, {"n": n, "m": m}) >= bound


def test_what_holds_of_parts_for_every_length_is_no_decision() -> None:
    """Halves and remainders lie within the whole; ends that are beyond it are cut by no decision.

    A decision that is on record settles what follows from it.
    """
    names, records = symbols({"n": 5})
    n = names["n"]
    assert n // 2 <= n
    assert n - n // 2 >= 0
    assert n % 3 < 3
    assert 2 * n >= n // 2 + n // 3
    assert -(-n // 2) >= 0
    assert smaller(n, 10) <= 10
    assert n - smaller(n, 3) >= 0
    assert smaller(n, 3) == n - larger(n - 3, 0) == 3 + smaller(n - 3, 0)
    assert repr(larger(3 - n, 0)) == "-n + 3 + max(n - 3, 0)"
    assert (2 * n + 1) // 2 == n
    assert (3 * n + 4) % 3 == 1
    assert records == []
    assert n > 2
    assert records.pop() == ("n", ">", "2", True)
    assert n != 1
    assert larger(n - 3, 0) == n - 3
    assert larger(n - 3, 0).always(n - 3)
    assert repr(larger(n - 3, 0)) == "max(n - 3, 0)"  # as before the decision: shapes are compared
    assert not larger(n - 4, 0).always(n - 4)
    assert not n.always(5)
    assert records == []


def test_division_that_leaves_no_rest_stays_exact() -> None:
    """Factors cancel; a rest makes an atom that is still evaluated."""
    (names, records) = symbols({"n": 6, "m": 4})
    n, m = names["n"], names["m"]
    assert repr((n * m * 2) // m) == "2*n"
    assert (n * m * 2) % m == 0
    assert (4 * n) // 2 == 2 * n
    assert repr((n + 1) // 2) == "((n + 1) // (2))"
    assert size_values(((n + 1) // 2) * 2 + (n + 1) % 2, {"n": 9}) == 10
    assert records == []


def test_only_decisions_are_recorded() -> None:
    """Arithmetic, is_one and what holds for every size record nothing; numbers and ifs do."""
    names, records = symbols({"n": 5})
    n = names["n"]
    assert not is_one(n)
    assert is_one(1)
    assert n >= 0
    assert not n < 0
    assert n + 1 > n
    assert n != n + 1
    assert records == []
    assert n == 5
    assert records.pop() == ("n", "==", "5", True)
    assert bool(n)
    assert records.pop() == ("n", "==", "0", False)
    assert range(n)[-1] == 4
    assert records.pop() == ("n", "==", "5", True)
    assert float(n) == 5.0
    assert len(records) == 1


def test_foreign_operands() -> None:
    """A Size meets only integers."""
    n = symbols({"n": 5})[0]["n"]
    assert (n == "n") is False
    for call in (
        lambda: n + 0.5,
        lambda: n - [],
        lambda: n // 1.5,
        lambda: [] - n,
        lambda: n < "a",
    ):
        with pytest.raises(TypeError):
            call()
