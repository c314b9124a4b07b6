"""Chapter: random numbers. A key is two uint32 words; draws are pure functions of key and position.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), Threefry-2x32, 20
rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct import ops
from funct.core import Absent, Pair, Primitive, Sample, Shape, ShapeDtype, Value
from funct.errors import DTypeError, ShapeError
from funct.kernels.random import bits as kernels
from funct.kernels.random import rejection
from funct.kernels.random.shares import share, shares
from funct.ops.broadcasting import first_axis, match_operand, pad_rank, same_call
from funct.ops.families import elementwise, structural
from funct.ops.samples import calls, reals
from funct.ops.special.incomplete import gammaincinv_slope

__all__ = [
    "random_bits", "random_exponential", "random_fold_in", "random_gamma", "random_gumbel",
    "random_normal", "random_poisson", "random_share", "random_shares", "random_split",
    "random_unit",
]  # fmt: skip

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]

_NO_ONNX = Absent("ONNX's random operators take no key; pass the random numbers as an input")


def _lead(key: Any, name: str) -> Shape:
    if key.dtype != np.uint32 or not key.shape or key.shape[-1] != 2:
        raise DTypeError(
            f"{name}: key must be uint32 of shape (..., 2), got {key.dtype} {key.shape}",
            fix="funct.random.key(seed)",
        )
    return tuple(key.shape[:-1])


def _key(rng: np.random.Generator, *shape: int) -> Any:
    return rng.integers(0, 2**32, (*shape, 2), dtype=np.uint32)


@structural(
    kernels.random_bits, None, batch=same_call, onnx=_NO_ONNX,
    aval=lambda args, params: ShapeDtype(
        (*_lead(args[0], "random_bits"), *params[0]), np.dtype(f"uint{params[1]}")
    ),
    samples=calls(
        lambda rng: Sample((_key(rng),), ((3, 2), 32)),
        lambda rng: Sample((_key(rng, 2),), ((5,), 64)),
    ),
)  # fmt: skip
def random_bits(key: Value, shape: Shape, width: int) -> Value:
    """Unsigned integers of `width` bits (8, 16, 32, 64), shape (*batch of keys, *shape)."""


def _floats_aval(name: str) -> Any:
    def aval(args: Args, params: Params) -> ShapeDtype:
        return ShapeDtype((*_lead(args[0], name), *params[0]), params[1])

    return aval


_Drawn = Callable[[Any, Any, Any], Any]
_FLOATS = calls(
    lambda rng: Sample((_key(rng),), ((3, 2), np.dtype(np.float32))),
    lambda rng: Sample((_key(rng, 2),), ((5,), np.dtype(np.float64))),
)


def _of_words(kernel: _Drawn) -> Callable[[_Drawn], _Drawn]:
    """An op that makes a float of each word or two."""
    aval = _floats_aval(kernel.__name__)
    return structural(kernel, None, batch=same_call, onnx=_NO_ONNX, aval=aval, samples=_FLOATS)


@_of_words(kernels.random_unit)
def random_unit(key: Value, shape: Shape, dtype: np.dtype[Any]) -> Value:
    """float32 or float64 on [0, 1), shape (*batch of keys, *shape): the high bits, scaled."""


@_of_words(kernels.random_normal)
def random_normal(key: Value, shape: Shape, dtype: np.dtype[Any]) -> Value:
    """Standard normal float32 or float64, shape (*batch of keys, *shape), by inversion."""


@_of_words(kernels.random_exponential)
def random_exponential(key: Value, shape: Shape, dtype: np.dtype[Any]) -> Value:
    """Exponential float32 or float64 with rate 1, shape (*batch of keys, *shape); never 0."""


@_of_words(kernels.random_gumbel)
def random_gumbel(key: Value, shape: Shape, dtype: np.dtype[Any]) -> Value:
    """Standard Gumbel float32 or float64, shape (*batch of keys, *shape)."""


@structural(
    kernels.split, None, batch=same_call, onnx=_NO_ONNX,
    aval=lambda args, params: ShapeDtype(
        (*_lead(args[0], "random_split"), params[0], 2), np.dtype(np.uint32)
    ),
    samples=calls(
        lambda rng: Sample((_key(rng),), (3,)),
        lambda rng: Sample((_key(rng, 2),), (2,)),
    ),
)  # fmt: skip
def random_split(key: Value, n: int) -> Value:
    """n new keys from one, shape (*batch, n, 2)."""


def _fold_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Any:
    size = next(a.shape[0] for a, b in zip(args, batched, strict=True) if b)
    return ops.random_fold_in(*[first_axis(a, b, size) for a, b in zip(args, batched, strict=True)])


@structural(
    kernels.fold_in, None, None, batch=_fold_batch, onnx=_NO_ONNX,
    aval=lambda args, params: ShapeDtype(args[0].shape, np.dtype(np.uint32)),
    samples=calls(lambda rng: Sample((_key(rng), np.asarray(7, np.uint32)))),
)  # fmt: skip
def random_fold_in(key: Value, data: Value) -> Value:
    """A new key from a key (*batch, 2) and an integer (*batch)."""


# with a parameter, () or of every element --------------------------------------------------------


def _parametric_aval(name: str) -> Any:
    def aval(args: Args, params: Params) -> ShapeDtype:
        key, a = args
        full = (*_lead(key, name), *params[0])
        if a.dtype != np.float64:
            raise DTypeError(f"{name}: the parameter must be float64, got {a.dtype}")
        if a.shape not in ((), full):
            raise ShapeError(f"{name}: the parameter's shape must be () or {full}, got {a.shape}")
        return ShapeDtype(full, params[1])

    return aval


def _parametric_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Any:
    (key, a), (_, each) = args, batched
    size = next(v.shape[0] for v, b in zip(args, batched, strict=True) if b)
    key = first_axis(key, batched[0], size)
    if each or len(a.shape):
        full = (*key.shape[:-1], *params[0])
        a = ops.broadcast_to(pad_rank(a, len(full) - 1) if each else a, full)
    return prim.fn(key, a, *params)


_LEAST = 1e-20  # below, 1 + x is 1


def _gamma_slope(ans: Value, a: Value, logarithm: bool) -> Value:
    """How fast a draw goes with a, where its rank among all draws stays: -(∂P/∂a) / density.

    Of its logarithm that is 1/x times as much, and has a short form where P is x**a / Γ(a + 1).
    """
    ends = ops.logical_or(ops.less_equal(a, 0.0), ops.equal(a, np.inf))
    still = ops.where(ops.less(a, 0.0), np.nan, 0.0)
    a, ans = ops.where(ends, 1.0, a), ops.where(ends, 1.0, ops.astype(ans, np.dtype(np.float64)))
    if logarithm:
        low = ops.less(ans, math.log(_LEAST))
        x = ops.exp(ops.where(low, 0.0, ans))
        short = (ops.special.psi(a + 1.0) - ans) / a
        slope = gammaincinv_slope(a, x) / x
    else:
        low = ops.less(ans, _LEAST)
        log = ops.log(ops.where(ops.greater(ans, 0.0), ans, 1.0))
        short = ans * (ops.special.psi(a + 1.0) - log) / a
        slope = gammaincinv_slope(a, ops.where(low, 1.0, ans))
    return ops.where(ends, still, ops.where(low, short, slope))


def _gamma_push(
    t: Value, ans: Value, key: Value, a: Value, shape: Shape, dtype: Any, logarithm: bool,
    second: bool,
) -> Value:  # fmt: skip
    return ops.astype(t * _gamma_slope(ans, a, logarithm), dtype)


def _gamma_pull(g: Value, ans: Value, a: Value, logarithm: bool) -> Value:
    return match_operand(g * _gamma_slope(ans, a, logarithm), a.shape, a.dtype)


_GAMMA = ["key", "a", "shape", "dtype", "logarithm", "second"]


def _positive(rng: np.random.Generator, *shape: int) -> Any:
    return np.asarray(rng.uniform(0.4, 5.0, shape))


@structural(
    rejection.random_gamma, None, Pair(_gamma_push, _gamma_pull, _GAMMA), batch=_parametric_batch,
    onnx=_NO_ONNX, aval=_parametric_aval("random_gamma"),
    samples=calls(  # draws jump where another attempt is accepted: no differences are taken
        lambda rng: Sample(
            (_key(rng), _positive(rng, 3, 2)), ((3, 2), np.dtype(np.float64), False, False), False
        ),
        lambda rng: Sample(
            (_key(rng, 2), _positive(rng)), ((5,), np.dtype(np.float64), True, True), False
        ),
        lambda rng: Sample(
            (_key(rng), _positive(rng, 4)), ((4,), np.dtype(np.float32), False, False), False
        ),
    ),
)  # fmt: skip
def random_gamma(
    key: Value, a: Value, shape: Shape, dtype: np.dtype[Any], logarithm: bool, second: bool
) -> Value:
    """Gamma numbers with shape parameter a, or their logarithms: (*batch of keys, *shape).

    second: of streams that are independent of those of a first call with the same key. The
    derivative in a is the implicit one: that of the quantile at the draw's own rank.
    """


@structural(
    rejection.random_poisson, None, None, batch=_parametric_batch, onnx=_NO_ONNX,
    aval=_parametric_aval("random_poisson"),
    samples=calls(
        lambda rng: Sample((_key(rng), _positive(rng, 3) * 8.0), ((3,), np.dtype(np.int64))),
        lambda rng: Sample((_key(rng, 2), _positive(rng)), ((5,), np.dtype(np.uint8))),
    ),
)  # fmt: skip
def random_poisson(key: Value, mean: Value, shape: Shape, dtype: np.dtype[Any]) -> Value:
    """Counts with a mean, (*batch of keys, *shape); -1 where it is negative or NaN."""


def _share_rule(g: Value, ans: Value, x: Value) -> Value:
    return g * (ans * ops.random_share(-x))


@elementwise(share, _share_rule, code="1 / (1 + exp(-{0}))", onnx="Sigmoid", samples=reals())
def random_share(x: Value) -> Value:
    """The logistic function with the same bits everywhere: what a gamma number is of two."""


def _shares_pull(g: Value, ans: Value) -> Value:
    return ans * (g - ops.reduce_sum(g * ans, (len(ans.shape) - 1,), True))


def _shares_push(t: Value, ans: Value, logs: Value) -> Value:
    return _shares_pull(t, ans)  # its matrix is symmetric


@structural(
    shares, Pair(_shares_push, _shares_pull, ["logs"]), shape=lambda s: s, batch=same_call,
    onnx="Softmax",
    samples=calls(
        lambda rng: Sample((rng.normal(size=(3, 4)),)),
        lambda rng: Sample((rng.normal(size=5),)),
    ),
)  # fmt: skip
def random_shares(logs: Value) -> Value:
    """The logistic function of many, along the last axis: a Dirichlet point of gamma numbers."""
