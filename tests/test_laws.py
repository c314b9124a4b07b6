"""The laws themselves: a primitive that is broken in one place is noticed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import funct.array as xp
from funct import ops
from funct.core import Primitive, ShapeDtype, level, lookup
from funct.core.rule import Diagonal
from funct.transforms.forward import ForwardTracer
from funct.transforms.reverse import ReverseTracer
from funct.transforms.vmap import BatchTracer
from tests import laws


def found(name: str) -> Primitive:
    """A primitive by name."""
    prim = lookup(name)
    assert prim is not None
    return prim


def apply_laws(prim: Primitive) -> None:
    """All laws on all samples of one primitive."""
    for sample in prim.samples(np.random.default_rng(7)):
        args = [xp.asarray(a) for a in sample.args]

        def call(*a: Any, params: Any = sample.params) -> Any:
            return prim.fn(*a, *params)

        rng = np.random.default_rng(0)
        laws.check_aval(call, args)
        laws.check_batch(call, args, rng, 1e-5)
        if sample.smooth:
            laws.check_derivatives(call, args, rng)


@contextmanager
def replaced(holder: Any, field: str, value: Any) -> Iterator[None]:
    """A field of a frozen record, changed for a moment, in which no printed way is taken."""
    before, often = getattr(holder, field), level._OFTEN
    object.__setattr__(holder, field, value)
    level._OFTEN = 1 << 60
    for tracer in (ReverseTracer, ForwardTracer, BatchTracer):
        tracer.ways.clear()
    try:
        yield
    finally:
        object.__setattr__(holder, field, before)
        level._OFTEN = often


def scaled(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A rule that is wrong by one per cent."""
    return lambda g, *kept: fun(g, *kept) * 1.01


NAMES = ("tan", "multiply", "matmul", "reduce_max", "convolution", "take", "cumulative_prod")


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_pull_is_noticed(name: str) -> None:
    """A reverse rule off by one per cent breaks a law."""
    prim = found(name)
    rule: Any = prim.rules[0]
    fields = ("pull", "rule") if isinstance(rule, Diagonal) else ("pull",)
    wrong = scaled(rule.pull)
    with (
        replaced(rule, fields[0], wrong),
        replaced(rule, fields[-1], wrong),
        pytest.raises(AssertionError),
    ):
        apply_laws(prim)
    apply_laws(prim)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_batching_rule_is_noticed(name: str) -> None:
    """Lanes in the wrong order break a law."""
    prim = found(name)
    right = prim.batch
    backwards = lambda *a: ops.flip(right(*a), (0,))  # noqa: E731
    with replaced(prim, "batch", backwards), pytest.raises(AssertionError):
        apply_laws(prim)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_abstract_rule_is_noticed(name: str) -> None:
    """An abstract shape with one axis too many breaks a law."""
    prim = found(name)
    right: Any = prim.aval

    def wrong(args: Any, params: Any) -> ShapeDtype:
        like = right(args, params)
        return ShapeDtype((*like.shape, 1), like.dtype)

    with replaced(prim, "aval", wrong), pytest.raises(AssertionError):
        apply_laws(prim)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "bfloat16", "float8_e5m2"])
def test_same_looks_at_bits(dtype: str) -> None:
    """0 is not -0, in no part; one NaN is another; one number is not an array of it."""
    zero = np.zeros(2, getattr(xp, dtype, dtype))
    laws.same(zero, zero)
    laws.same(zero + np.asarray(np.nan, zero.dtype), -(zero + np.asarray(np.nan, zero.dtype)))
    others = [-zero, zero + np.asarray(1, zero.dtype), zero[:1], zero[0], np.zeros(2, np.int8)]
    for other in [*others, np.conj(zero)] if zero.dtype.kind == "c" else others:
        with pytest.raises(AssertionError):
            laws.same(other, zero)
