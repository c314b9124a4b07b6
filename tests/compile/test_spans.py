"""Between which numbers the lines of indices are."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funct.compile.lines.lines import Given, Taken
from funct.compile.lines.spans import span
from funct.compile.lines.vectors import Vectors
from funct.compile.loops.scalars import PRINTINGS

OPS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}


@given(
    st.sampled_from(sorted(OPS)), st.sampled_from(sorted(OPS)),
    st.integers(1, 6), st.integers(1, 6), st.integers(-5, 5),
)  # fmt: skip
def test_ends_of_what_is_computed(first: str, second: str, n: int, m: int, c: int) -> None:
    """All that two indices and a number may give is between the ends, which are among it."""
    lines = Vectors((0, 0))
    i, j = (
        lines.add(Taken(None, lines.add(Given("carry", k, "i64", 1)), 0, length, "i64", 1))
        for k, length in enumerate((n, m))
    )
    both = lines.op(first, PRINTINGS[first], [i, j], "i64", 1)
    found = lines.op(second, PRINTINGS[second], [both, lines.number(c)], "i64", 1)
    inside = Vectors((0, 0), lines)
    seen = inside.add(Given("outer", found, "i64", 1))
    may_be = [OPS[second](OPS[first](a, b), c) for a, b in product(range(n), range(m))]
    assert span(lines, found) == span(inside, seen) == (min(may_be), max(may_be))


@pytest.mark.parametrize("kind", ["carry", "state", "held", "row"])
def test_what_is_given_may_be_anything(kind: str) -> None:
    """And so what is computed of it, or overflows."""
    lines = Vectors((0, 0))
    x = lines.add(Given(kind, 0, "i64", 1))
    good = lines.add(Taken(None, x, 0, 5, "i64", 1))
    assert span(lines, x) is None
    assert span(lines, lines.op("add", PRINTINGS["add"], [x, good], "i64", 1)) is None
    assert (
        span(lines, lines.op("remainder", PRINTINGS["remainder"], [good, good], "i64", 1)) is None
    )
    wide = lines.op("multiply", PRINTINGS["multiply"], [lines.number(1 << 61), good], "i64", 1)
    assert span(lines, wide) is None
