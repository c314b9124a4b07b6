"""The kernel table: every row can be loaded and called like its plain one; what is chosen when."""

import inspect

import numpy as np
import pytest

from funct.kernels import table
from funct.kernels.table import ROWS, Row

F32 = np.dtype(np.float32)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r.name}-{r.place}")
def test_a_row_is_there_and_takes_what_the_plain_one_takes(row):
    plain = [r for r in ROWS if r.name == row.name and r.device == "cpu"][-1]
    assert not plain.needs
    assert not plain.dtypes
    assert list(inspect.signature(row.load()).parameters) == list(
        inspect.signature(plain.load()).parameters
    )


@pytest.fixture
def rows(monkeypatch):
    made = (
        Row("twice", f"{__name__}:of_wide", ("float32",), ("llvm", "avx1024")),
        Row("twice", f"{__name__}:of_narrow", ("float32",), ("sse2",), least=100),
        Row("twice", f"{__name__}:plain"),
    )
    monkeypatch.setattr(table, "ROWS", made)
    loaded = {"of_wide": of_wide, "of_narrow": of_narrow, "plain": plain}
    monkeypatch.setattr(table, "_load", lambda place: loaded[place.split(":")[1]])
    table._candidates.cache_clear()
    yield
    table._candidates.cache_clear()


def of_wide(x):
    return "wide"


def of_narrow(x):
    return NotImplemented if x is None else "sse2"


def plain(x):
    return "plain"


@pytest.mark.parametrize(
    ("dtype", "work", "expected"),
    [(np.float32, 100, of_narrow), (np.float32, 99, plain), (np.float64, 100, plain)],
)
def test_the_first_row_that_fits_is_chosen(rows, monkeypatch, dtype, work, expected):
    monkeypatch.setattr(table, "available", lambda: frozenset({"sse2", "llvm", "avx2"}))
    assert table.find("twice", np.dtype(dtype), work) is expected


def test_the_plain_row_is_chosen_where_nothing_else_is_there(rows, monkeypatch):
    monkeypatch.setattr(table, "available", frozenset)
    assert table.find("twice", F32) is plain


def test_less_may_be_pretended(rows, monkeypatch):
    monkeypatch.setattr(table, "available", lambda: frozenset({"sse2"}))
    with table.restricted():
        assert table.find("twice", F32) is plain
    with table.restricted("sse2"):
        assert table.find("twice", F32) is of_narrow


def test_a_row_may_pass_a_case_on(rows, monkeypatch):
    monkeypatch.setattr(table, "available", lambda: frozenset({"sse2"}))
    assert table.call("twice", F32, 100, None) == "plain"
    assert table.call("twice", F32, 100, 1) == "sse2"


def test_only_what_passes_a_case_on_by_what_arrays_hold_is_asked_again(rows, monkeypatch):
    monkeypatch.setattr(table, "available", lambda: frozenset({"llvm", "avx1024", "sse2"}))
    asked: list[str] = []
    answers = {"of_wide": NotImplemented, "of_narrow": table.UNFIT, "plain": "plain"}

    def load(place):
        name = place.split(":")[1]
        return lambda x: (asked.append(name), answers[name])[1]

    monkeypatch.setattr(table, "_load", load)
    ways = table.Remembered("twice", F32, 100)
    assert [ways(None), ways(None), table.call("twice", F32, 100, None)] == ["plain"] * 3
    assert asked == [*answers, "of_narrow", "plain", *answers]


def test_what_is_planned_by_how_arrays_lie_is_planned_once(rows, monkeypatch):
    monkeypatch.setattr(table, "available", lambda: frozenset({"llvm", "avx1024", "sse2"}))
    asked: list[str] = []

    def load(place):
        name = place.split(":")[1]
        plans = {"of_wide": None, "of_narrow": lambda x: x + 1}
        return table.Fitted(lambda x: (asked.append(name), plans[name])[1])

    monkeypatch.setattr(table, "_load", load)
    ways = table.Remembered("twice", F32, 100)
    assert [ways(1), ways(2)] == [2, 3]
    assert asked == ["of_wide", "of_narrow"]
    assert table.call("twice", F32, 100, 3) == 4


def test_an_unknown_name_is_an_error():
    with pytest.raises(LookupError, match="nothing"):
        table.find("nothing", F32)
