"""Cases of families that run pairwise or in turn: no values are left that some case has."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pairwise import covering, drawn


def met(cases, together):
    return {some for case in cases for some in itertools.combinations(enumerate(case), together)}


@given(
    st.integers(1, 4).flatmap(lambda n: st.sets(st.tuples(*[st.integers(0, 3)] * n))),
    st.sampled_from([1, 2]),
)
def test_every_two_values_meet(cases, together):
    chosen = covering(sorted(cases), together)
    assert chosen <= cases
    assert met(chosen, together) == met(cases, together)


def test_of_three_parameters_about_as_many_as_two_have():
    cases = list(itertools.product(range(21), range(7), range(6)))
    assert len(covering(cases)) < 1.2 * 21 * 7
    assert covering(cases) == covering(cases)
    assert len(covering(cases, 1)) == 21


def test_of_a_family_that_is_not_listed_every_two_values_meet():
    values = {"a": range(9), "b": range(7), "c": range(6), "d": range(4)}
    cases = drawn(500, **values).args[1]
    quick = {case.values for case in cases if not case.marks}
    assert len(cases) == 500 > 5 * len(quick)
    assert met(quick, 2) == met(set(itertools.product(*values.values())), 2)
    with pytest.raises(AssertionError):
        drawn(50, **values)
