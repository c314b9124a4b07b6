"""Numbers drawn in one test do not depend on the tests that ran before."""

import pytest

from .drawn import rng

START = rng.bit_generator.state


@pytest.fixture(autouse=True)
def drawn_anew() -> None:
    rng.bit_generator.state = START
