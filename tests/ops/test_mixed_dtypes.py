"""Operands of other dtypes beside the one that is differentiated: what they are in the result is
what counts, and the derivative has the operand's dtype.
"""

import itertools
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.core import FLOATING, Primitive, Sample, catalogue
from funct.errors import FunctError
from tests import laws

BESIDE = (xp.bool, xp.uint8, xp.float64)


def _is_array(a: Any) -> bool:
    return isinstance(a, np.ndarray | np.generic)


def _places(sample: Sample) -> list[int]:
    """Of the operands that are real."""
    return [k for k, a in enumerate(sample.args) if _is_array(a) and a.dtype == np.float64]


PRIMITIVES = [
    p for p in catalogue()
    if p.results == 1 and any(_places(s)[1:] for s in p.samples(np.random.default_rng(0)))
]  # fmt: skip


def _derivatives(prim: Primitive, args: list[Any], k: int, params: Any) -> Any:
    """The result, its pull and its push at operand k."""

    def of(x: Any) -> Any:
        return prim.fn(*args[:k], x, *args[k + 1 :], *params)

    y, pull = ft.vjp(of, args[k])
    (back,) = pull(xp.ones_like(y))
    return y, back, ft.jvp(of, (args[k],), (xp.ones_like(args[k]),))[1]


@pytest.mark.parametrize("prim", PRIMITIVES, ids=lambda p: p.name)
def test_integers_beside_are_the_floats_that_they_are_in_the_result(prim: Primitive) -> None:
    """0 - 1 is no number of uint8, and True - 1 no bool: where derivatives compute with operands,
    those are what they are in the result. Cotangents have the operand's dtype, tangents that of the
    result.
    """
    sample = next(s for s in prim.samples(np.random.default_rng(1)) if _places(s)[1:])
    for j, k in itertools.permutations(_places(sample), 2):
        for name in BESIDE:
            args = [xp.asarray(a) if _is_array(a) else a for a in sample.args]
            args[k] = xp.astype(args[k], xp.float32)
            whole = np.abs(np.rint(np.asarray(sample.args[j]) * 2)).astype(name)
            args[j] = xp.asarray(whole if whole.dtype.kind != "f" else sample.args[j], dtype=name)
            with np.errstate(all="ignore"):
                try:
                    found = _derivatives(prim, args, k, sample.params)
                except FunctError:
                    continue  # it takes none of that dtype
                if found[0].dtype not in FLOATING:
                    continue
                args[j] = xp.astype(args[j], found[0].dtype)
                wanted = _derivatives(prim, args, k, sample.params)
            assert found[1].dtype == xp.float32
            assert found[2].dtype == found[0].dtype
            laws.close(found, wanted, rtol=1e-4, atol=1e-4)
