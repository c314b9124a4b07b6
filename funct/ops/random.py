"""Chapter: random bits. A key is two uint32 words; bits are a pure function of key and position.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), Threefry-2x32, 20
rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funct import ops
from funct.core import Absent, Primitive, Sample, Shape, ShapeDtype, Value
from funct.errors import DTypeError
from funct.kernels.random import bits as kernels
from funct.ops.broadcasting import first_axis
from funct.ops.families import structural
from funct.ops.samples import calls

__all__ = ["random_bits", "random_fold_in", "random_normal", "random_split", "random_unit"]

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


def _same_call(prim: Primitive, args: Args, batched: Flags, params: Params) -> Any:
    return prim.fn(args[0], *params)


def _key(rng: np.random.Generator, *shape: int) -> Any:
    return rng.integers(0, 2**32, (*shape, 2), dtype=np.uint32)


@structural(
    kernels.random_bits, None, batch=_same_call, onnx=_NO_ONNX,
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


_FLOATS = calls(
    lambda rng: Sample((_key(rng),), ((3, 2), np.dtype(np.float32))),
    lambda rng: Sample((_key(rng, 2),), ((5,), np.dtype(np.float64))),
)


@structural(
    kernels.random_unit, None, batch=_same_call, onnx=_NO_ONNX, aval=_floats_aval("random_unit"),
    samples=_FLOATS,
)  # fmt: skip
def random_unit(key: Value, shape: Shape, dtype: np.dtype[Any]) -> Value:
    """float32 or float64 on [0, 1), shape (*batch of keys, *shape): the high bits, scaled."""


@structural(
    kernels.random_normal, None, batch=_same_call, onnx=_NO_ONNX,
    aval=_floats_aval("random_normal"), samples=_FLOATS,
)  # fmt: skip
def random_normal(key: Value, shape: Shape, dtype: np.dtype[Any]) -> Value:
    """Standard normal float32 or float64, shape (*batch of keys, *shape), by inversion."""


@structural(
    kernels.split, None, batch=_same_call, onnx=_NO_ONNX,
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
