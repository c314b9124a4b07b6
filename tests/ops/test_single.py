"""Derivatives have the dtype of what they are derivatives of, in single precision too."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.core import INEXACT, Primitive, Sample, catalogue
from funct.errors import UndefinedDerivativeError

SINGLE = {np.dtype(np.float64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype("F")}

pytestmark = pytest.mark.filterwarnings("ignore:.* encountered:RuntimeWarning")


def cases() -> list[Any]:
    """Samples with operands that have derivatives; not the ones that state a dtype."""
    return [
        pytest.param(p, s, id=f"{p.name}-{k}")
        for p in catalogue()
        for k, s in enumerate(p.samples(np.random.default_rng(7)))
        if s.smooth
        and any(np.asarray(a).dtype in SINGLE for a in s.args)
        and not any(isinstance(v, np.dtype) for v in s.params)
    ]


@pytest.mark.parametrize(("prim", "sample"), cases())
def test_dtypes_of_derivatives(prim: Primitive, sample: Sample) -> None:
    """Forwards, backwards and forwards over backwards."""
    args = [xp.asarray(a) for a in sample.args]
    args = [xp.astype(a, SINGLE[a.dtype]) if a.dtype in SINGLE else a for a in args]
    own = [k for k, a in enumerate(args) if a.dtype in INEXACT]
    given = tuple([args[k] for k in own])

    def f(*xs: Any) -> list[Any]:
        whole = list(args)
        for k, x in zip(own, xs, strict=True):
            whole[k] = x
        out = prim.fn(*whole, *sample.params)
        return [y for y in (out if isinstance(out, tuple) else (out,)) if y.dtype in INEXACT]

    def backwards(*xs: Any) -> Any:
        ys, pull = ft.vjp(f, *xs)
        return pull([y * 0 + 1 for y in ys])

    def forwards(*xs: Any) -> Any:
        return ft.jvp(f, xs, xs)[1]

    ys = f(*given)
    try:
        tangents = forwards(*given)
    except UndefinedDerivativeError:
        return  # in a parameter, which is said
    assert [t.dtype for t in tangents] == [y.dtype for y in ys]
    assert [g.dtype for g in backwards(*given)] == [x.dtype for x in given]
    again = ft.jvp(backwards, given, given)[1]
    assert [g.dtype for g in again] == [x.dtype for x in given]
