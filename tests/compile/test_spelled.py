"""Words of files: what is spelled is read, and nothing else is."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funct.compile.spelled import read, spell

LINES = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.integers() | LINES,
    lambda v: st.lists(v) | st.dictionaries(LINES | st.integers(), v),
)


@given(VALUES)
def test_what_is_spelled_is_read(value: Any) -> None:
    """To any depth; a list of ints is a word."""
    assert read(spell(value)) == value
    assert b"\n" not in spell([1, -2, 10**30])


def test_tuples_and_truths_are_lists_and_numbers() -> None:
    """Who reads knows which they were."""
    assert read(spell((1, (True, False), ()))) == [1, [1, 0], []]


@pytest.mark.parametrize("value", [1.5, b"x", "two\nlines", np.zeros(2), [{"a": object()}]])
def test_nothing_else_is_spelled(value: Any) -> None:
    """Neither floats nor objects have words."""
    with pytest.raises(TypeError):
        spell(value)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"x", b"i", b"ix", b"i1.5", b"[", b"[2\ni1", b"[1000000000", b"{1\ni1", b"{1\n[0\nn",
        b"I", b"I1 x", b"i1\ni2", b"none", b"\xff", b"[1\n" * 100_000, b"[x",
    ],
    ids=lambda t: repr(t[:12]),
)  # fmt: skip
def test_other_text_raises(text: bytes) -> None:
    """Whatever it is, an Exception that the reader of a file may catch."""
    with pytest.raises(Exception):  # noqa: B017, PT011
        read(text)
