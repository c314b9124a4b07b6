"""Chapter: ops that give back an operand and tell the transforms something about it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct import ops
from funct.core import Operand, Sample, Value
from funct.kernels.linalg.dots import is_finite
from funct.ops.families import elementwise, structural
from funct.ops.samples import pairs, reals

__all__ = ["absorb", "checkpoint_name", "settled", "stop_gradient"]


def _identity(x: Any) -> Any:
    return x


@elementwise(
    _identity, None, code="{0}", onnx="Identity", samples=reals(complex_too=True, smooth=False)
)
def stop_gradient(x: Operand, /) -> Value:
    """x, taken for a constant by every derivative."""


def _settled_rule(g: Value, ans: Value) -> Value:
    still = ops.logical_or(ops.equal(ans, 0), ops.equal(ops.abs(ans), math.inf))
    return ops.where(still, 0.0, g)


@elementwise(
    np.positive, _settled_rule, code="{0}", onnx="Identity", samples=reals(complex_too=True),
    masks=True,
)  # fmt: skip
def settled(x: Operand, /) -> Value:
    """x, of derivative 0 where it is 0 or infinite.

    For factors and divisors that end there: exp(-x²) has the derivative -2x exp(-x²), and where x
    is infinite that is no ∞ · 0.
    """


def _onnx_identity(w: Any, x: str, name: str) -> str:
    return str(w.op("Identity", x))


@structural(
    lambda x, name: x, lambda g: g, shape=lambda x, name: x, onnx=_onnx_identity,
    batch=lambda prim, args, batched, params: prim.fn(args[0], *params),
    samples=lambda rng: [Sample((rng.normal(size=s),), ("h",)) for s in ((2, 3), ())],
)  # fmt: skip
def checkpoint_name(x: Operand, /, name: str) -> Value:
    """x, under a name that the policy of a checkpoint may ask for."""


def _absorb(g: Any, h: Any) -> Any:
    if g.shape == h.shape and is_finite(h):
        return h  # the usual case costs one pass
    return np.where((g == 0) & ~np.isfinite(h), np.zeros((), h.dtype), h)


def _onnx_absorb(w: Any, g: str, h: str) -> str:
    zero, none = w.constant(0, w.dtype_of(g)), w.constant(0, w.dtype_of(h))
    finite = w.op("Equal", w.op("Sub", h, h), none)
    lost = w.op("And", w.op("Equal", g, zero), w.op("Not", finite))
    return str(w.op("Where", lost, none, h))


def _absorb_rule_h(t: Value, g: Value, h: Value) -> Value:
    # where g is 0 but h is finite, g may be 0 by accident: what t says of h is true
    kept = ops.logical_or(ops.not_equal(g, 0), ops.isfinite(h))
    return ops.where(kept, ops.absorb(g, t), 0.0)


@elementwise(
    _absorb, None, _absorb_rule_h, code="{1} if {0} != 0 or {1} - {1} == 0 else 0.0", masks=True,
    onnx=_onnx_absorb,
    samples=pairs(x=(0.3, 2.0), complex_too=True),
)  # fmt: skip
def absorb(g: Operand, h: Operand, /) -> Value:
    """h, but 0 where the cotangent g is 0 and h is not finite: below a structural zero, 0 * inf is
    0.
    """
