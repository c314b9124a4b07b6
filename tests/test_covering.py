"""Cases of families marked `pairwise`: no two values are left that some case brings together."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tests.pairwise import covering


def pairs(cases):
    return {pair for case in cases for pair in itertools.combinations(enumerate(case), 2)}


@given(st.integers(1, 4).flatmap(lambda n: st.sets(st.tuples(*[st.integers(0, 3)] * n))))
def test_every_two_values_meet(cases):
    chosen = covering(sorted(cases))
    assert chosen <= cases
    assert pairs(chosen) == pairs(cases)


def test_of_three_parameters_about_as_many_as_two_have():
    cases = list(itertools.product(range(21), range(7), range(6)))
    assert len(covering(cases)) < 1.2 * 21 * 7
    assert covering(cases) == covering(cases)
