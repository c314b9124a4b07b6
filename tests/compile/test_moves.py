"""Ops that only move elements, inside of programs."""

from typing import Any

import numpy as np
import pytest

import funct.array as xp
from funct.core import lookup
from tests import laws
from tests.compile.test_native import compiled


def _embedded(*index: Any) -> Any:
    """The pull of a slice."""
    embed: Any = lookup("embed")
    triples = tuple([(i.start, i.stop, i.step or 1) for i in index])
    return lambda x: embed.fn(x * 2, triples, (9, 12))


CASES: list[tuple[Any, list[tuple[int, ...]]]] = [
    (lambda x, y: xp.concat([x, y * 2], axis=0), [(3, 4), (5, 4)]),
    (lambda x, y: xp.concat([x, y], axis=1) + 1, [(3, 4), (3, 50)]),
    (lambda x, y: xp.concat([x, y, x], axis=1), [(2, 3, 4), (2, 1, 4)]),
    (lambda x, y: xp.concat([x.mT, y[::-1]], axis=-1), [(5, 3), (3, 1)]),
    (lambda x, y: xp.stack([x, y], axis=-1), [(40,), (40,)]),
    (lambda x, y: xp.stack([x[0], y, x[1]]), [(2,), ()]),
    (lambda x, y: xp.concat([x[:0], y, x[1:]]), [(3, 2), (1, 2)]),
    (lambda x, y: xp.concat([x[:0], y]) + y, [(3, 2), (1, 2)]),
    (_embedded(slice(2, 7), slice(3, 9)), [(5, 6)]),
    (_embedded(slice(1, 9, 3), slice(None, None, 2)), [(3, 6)]),
    (_embedded(slice(7, 2, -1), slice(11, 3, -2)), [(5, 4)]),
]


@pytest.mark.parametrize("case", CASES, ids=[str(k) for k in range(len(CASES))])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool"])
def test_moves(case: Any, dtype: str) -> None:
    """Whatever views the operands and their places are; Python calls nothing in between."""
    fun, shapes = case
    rng = np.random.default_rng(0)
    args = [(rng.normal(size=s) * 3).astype(dtype) for s in shapes]
    made = compiled(fun, *args)
    assert len(made.programs) == 1
    assert "concat_" not in made.text
    assert "embed_" not in made.text
    laws.same(made.run(*args)[0], fun(*map(xp.asarray, args)))
