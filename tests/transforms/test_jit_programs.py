"""jit of a hundred ordinary functions does what the functions do, in every mode."""

import warnings
from typing import Any

import pytest

import funct as ft
from tests import laws
from tests.transforms.jit_programs import PROGRAMS

MODES = ("default", "reduce-overhead", "max-autotune", "check")


def outcome(fun: Any, args: tuple[Any, ...]) -> Any:
    """What a call gives: leaves and structure, or the kind and message of its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = fun(*args)
    except Exception as error:
        return type(error), str(error).splitlines()[0]
    return ft.tree.flatten(out)


def same(got: Any, want: Any) -> None:
    """Two outcomes are one: structure, dtypes, shapes, and values to rounding."""
    assert str(got[1]) == str(want[1])
    if isinstance(want[0], type):
        assert got[0] is want[0]
        return
    assert len(got[0]) == len(want[0])
    for a, b in zip(got[0], want[0], strict=True):
        assert type(a) is type(b)
        if isinstance(b, ft.Array):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            exact = not str(b.dtype).startswith(("float", "bfloat", "complex"))
            tol = 0.0 if exact else {1: 0.1, 2: 1e-2, 4: 1e-5}.get(b.dtype.itemsize, 1e-11)
            laws.close(a, b, tol, tol)
        elif isinstance(b, float):
            assert a == pytest.approx(b, rel=1e-12, nan_ok=True)
        else:
            assert a == b


@pytest.mark.in_turn
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_mode_does_what_the_function_does(name: str, mode: Any) -> None:
    """Twice over all calls: what the first round compiled meets its arguments again."""
    fun, calls = PROGRAMS[name]
    jitted = ft.jit(fun, mode=mode)
    for _ in range(2):
        for args in calls:
            same(outcome(jitted, args), outcome(fun, args))
