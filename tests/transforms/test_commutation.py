"""The commutation matrix in short, and the page that has all of it."""

import pytest

from funct.core import Primitive
from tests import commutation
from tests.commutation import PAIRS, PRIMITIVES, TRANSFORMS, Cells, rotation

numbered = pytest.mark.parametrize(
    ("k", "prim"), list(enumerate(PRIMITIVES)), ids=[p.name for p in PRIMITIVES]
)


@numbered
def test_pairs_in_turn(k: int, prim: Primitive) -> None:
    """Every fourth transform around the next primitive, with another one inside."""
    cells = Cells(prim)
    for pair in rotation(k):
        cells.check(*pair, calls=1)


@pytest.mark.slow
@numbered
def test_all_pairs(k: int, prim: Primitive) -> None:
    """Every transform around every transform around every primitive."""
    cells = Cells(prim)
    for pair in PAIRS:
        cells.check(*pair)


def test_the_turns_meet_every_pair() -> None:
    """Four times as many primitives as there are transforms are enough."""
    met = {pair for k in range(4 * len(TRANSFORMS)) for pair in rotation(k)}
    assert met == set(PAIRS)


def test_the_page_is_about_this_matrix() -> None:
    """The same transforms, nothing that disagrees, and about as many primitives: a new op need not
    have its page written anew at once.
    """
    count, cells = commutation.published()
    assert list(cells) == PAIRS
    assert [pair for pair, (agree, checked) in cells.items() if agree != checked] == []
    assert abs(count - len(PRIMITIVES)) <= 0.1 * len(PRIMITIVES)
    inner = {pair: checked for pair, (_, checked) in cells.items()}
    assert inner["jit", "vmap"] == count
    assert inner["vmap", "grad"] > 0.7 * count


def test_a_wrong_pair_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vmap that turns its lanes around disagrees, under whatever it stands."""
    right = TRANSFORMS["vmap"][1]

    def turned(s: commutation.Subject, fun: commutation.Fun) -> commutation.Fun:
        return lambda *args: tuple([o[::-1] for o in right(s, fun)(*args)])

    monkeypatch.setitem(TRANSFORMS, "vmap", ("loop", turned))
    cells = Cells(next(p for p in PRIMITIVES if p.name == "tan"))
    for outer in TRANSFORMS:
        with pytest.raises(AssertionError):
            cells.check(outer, "vmap")
