"""Every primitive of the catalogue, on its own samples, against every law."""

from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import ops
from funct.core import Absent, Primitive, Sample, catalogue
from funct.errors import FunctError, UndefinedDerivativeError
from tests import laws

# collectives make sense inside vmap alone: tests/transforms/test_collectives.py
PRIMITIVES = sorted(
    (p for p in catalogue() if p.samples(np.random.default_rng(0))), key=lambda p: p.name
)


def call(prim: Primitive, sample: Sample) -> tuple[Callable[..., Any], list[Any]]:
    """The op with its parameters fixed, and the sample's operands as arrays."""
    return lambda *a: prim.fn(*a, *sample.params), [xp.asarray(a) for a in sample.args]


def smooth(prim: Primitive, sample: Sample) -> bool:
    """Whether differences may be taken and the rule of every floating operand exists."""
    rules = zip(prim.rules, sample.args, strict=True)
    return sample.smooth and not any(
        isinstance(r, Absent) and np.asarray(a).dtype.kind in "fc" for r, a in rules
    )


def params(
    wanted: Callable[[Primitive, Sample], bool], most: int | None = None
) -> pytest.MarkDecorator:
    """One parameter per primitive and sample, at most so many of each primitive."""
    cases = []
    for p in PRIMITIVES:
        samples = enumerate(p.samples(np.random.default_rng(7)))
        for k, s in [(k, s) for k, s in samples if wanted(p, s)][:most]:
            cases.append(pytest.param(p, s, id=f"{p.name}-{k}"))
    return pytest.mark.parametrize(("prim", "sample"), cases)


each = params(lambda prim, sample: True)
each_smooth = params(smooth)


def test_catalogue_is_large() -> None:
    """At least 80 primitives are checked here."""
    assert len(PRIMITIVES) >= 80


@each
def test_purity(prim: Primitive, sample: Sample) -> None:
    """An op leaves its operands alone and gives the same bits twice."""
    laws.check_purity(*call(prim, sample))


@each
def test_abstract_equals_concrete(prim: Primitive, sample: Sample) -> None:
    """The abstract rule gives the shape and dtype of the result."""
    laws.check_aval(*call(prim, sample))


@each_smooth
def test_derivatives(prim: Primitive, sample: Sample, rng: np.random.Generator) -> None:
    """Forward = differences, reverse = adjoint of forward, to second order."""
    laws.check_derivatives(*call(prim, sample), rng)


@each
def test_batch(prim: Primitive, sample: Sample, rng: np.random.Generator) -> None:
    """vmap equals a Python loop."""
    tol = 1e-5 if any(getattr(a, "dtype", None) == np.float32 for a in sample.args) else 1e-9
    laws.check_batch(*call(prim, sample), rng, tol)


@each
def test_jit(prim: Primitive, sample: Sample) -> None:
    """jit equals eager bit for bit."""
    laws.check_jit(*call(prim, sample))


@params(smooth, most=1)
def test_nesting_in_turn(prim: Primitive, sample: Sample, rng: np.random.Generator) -> None:
    """grad, vmap, jit and hessian agree, in every fifth order around the next primitive: what each
    has of its own, its rules, the other laws ask for.
    """
    laws.check_nesting(*call(prim, sample), rng, turn=PRIMITIVES.index(prim))


@pytest.mark.slow
@each_smooth
def test_nesting(prim: Primitive, sample: Sample, rng: np.random.Generator) -> None:
    """grad, vmap, jit and hessian agree in every order."""
    laws.check_nesting(*call(prim, sample), rng)


def test_operands_are_counted() -> None:
    """Of ops that are public functions as they are, one too few or too many is said by Python."""
    public = {id(f) for names in (xp, xp.linalg, xp.special) for f in vars(names).values()}
    asked = [prim for prim in PRIMITIVES if not prim.params and id(prim.fn) in public]
    assert {"add", "betainc", "hyp2f1"} <= {prim.name for prim in asked}
    for prim in asked:
        if prim.operands:
            _, args = call(prim, next(iter(prim.samples(np.random.default_rng(0)))))
            for given in (args[:-1], [*args, args[-1]]):
                with pytest.raises(TypeError, match="argument"):
                    prim.fn(*given)


@pytest.mark.parametrize("prim", PRIMITIVES, ids=lambda p: p.name)
def test_absent_rules_raise_by_name(prim: Primitive) -> None:
    """A rule that does not exist raises an error with the op's name and the stated reason."""
    sample = next(iter(prim.samples(np.random.default_rng(0))))
    fun, args = call(prim, sample)
    for i, rule in enumerate(prim.rules):
        if isinstance(rule, Absent) and args[i].dtype.kind in "fc":
            ones = xp.ones(args[i].shape, dtype=args[i].dtype)
            one = laws.restrict(fun, args, [i])
            with pytest.raises(UndefinedDerivativeError) as caught:
                ft.vjp(one, args[i])
            assert caught.value.what.startswith(f"{prim.name}: no derivative: {rule.reason}")
            with pytest.raises(UndefinedDerivativeError):
                ft.jvp(one, (args[i],), (ones,))


def _filled(a: Any) -> list[Any]:
    """Arrays of the same shape and dtype, of numbers that an op may have no result for."""
    kinds = {"i": (0, -1, 100, -(10**6)), "f": (np.nan, np.inf, 0.0, -1.5)}
    kinds |= {"u": kinds["i"], "c": kinds["f"], "V": kinds["f"]}
    a = np.asarray(a)
    return [np.full(a.shape, v).astype(a.dtype) for v in kinds.get(a.dtype.kind, ())]


OF_SCIPY = {*xp.special.__all__, *ops.special.__all__}  # they give NaN, some of them after hours


@params(lambda prim, sample: prim.name not in OF_SCIPY and bool(sample.args))
@pytest.mark.filterwarnings("ignore")
def test_what_raises_says_so(prim: Primitive, sample: Sample) -> None:
    """An op that refuses values is declared as one, so that no transform runs it needlessly."""
    for k, a in enumerate(sample.args):
        for other in _filled(a):
            given = [xp.asarray(other if i == k else b) for i, b in enumerate(sample.args)]
            with nullcontext() if not prim.raises else suppress(FunctError):
                prim.fn(*given, *sample.params)
