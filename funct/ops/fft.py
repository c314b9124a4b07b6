"""Chapter: discrete Fourier transforms. Three linear maps; every function of the chapter is one.

Each takes the sign of its exponent (`inverse`) and its factor (`norm`), so that the transpose of
one is another: `fft` is symmetric, `real_fft` and `hermitian_fft` are transposes of each other, up
to the weights with which a half spectrum stands for a whole one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from funct import ops
from funct.core import Absent, Primitive, Sample, Shape, ShapeDtype, Value
from funct.errors import DTypeError, ShapeError
from funct.kernels.fft import transform
from funct.ops.broadcasting import axis_behind
from funct.ops.families import structural
from funct.ops.fast import wrap

__all__ = ["fft", "hermitian_fft", "real_fft"]

if TYPE_CHECKING:
    Norm = str
else:  # what the check of graphs asks for
    Norm = Literal["backward", "ortho", "forward"]

Params = tuple[Any, ...]
Args = Sequence[Any]
Flags = Sequence[bool]

_NO_COMPLEX = Absent("ONNX operators take no complex numbers")
_SWAPPED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _complex(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.result_type(dtype, np.complex64)


def _check_length(name: str, n: Any) -> None:
    if n < 1:
        raise ShapeError(f"{name}: a transform needs at least 1 element, got {n}")


# Complex to complex -------------------------------------------------------------------------------


def _fft_raw(x: Any, axes: Shape, inverse: bool, norm: Any) -> Any:
    for axis in reversed(axes):  # as np.fft.fftn, which takes as long again to read its arguments
        x = transform("ifft" if inverse else "fft", x, None, axis, norm)
    return x


def _fft_aval(args: Args, params: Params) -> ShapeDtype:
    (x,), axes = args, params[0]
    for a in axes:
        _check_length("fft", x.shape[a])
    return ShapeDtype(x.shape, _complex(x.dtype) if axes else x.dtype)


def _fft_transpose(g: Value, axes: Shape, inverse: bool, norm: str) -> Value:
    return ops.fft(g, axes, inverse, norm)


def _fft_batch(prim: Primitive, args: Args, batched: Flags, params: Params) -> Value:
    return ops.fft(args[0], tuple([a + 1 for a in params[0]]), *params[1:])


def _spectrum(rng: np.random.Generator, *shape: int) -> Any:
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def _fft_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample((_spectrum(rng, 5),), ((0,), False, "backward")),
        Sample((_spectrum(rng, 2, 3),), ((1, 0), True, "ortho")),
        Sample((rng.normal(size=(4,)),), ((0,), True, "forward")),
        Sample((_spectrum(rng, 4).astype(np.complex64),), ((0,), True, "backward"), smooth=False),
    ]


@structural(
    _fft_raw, _fft_transpose, aval=_fft_aval, batch=_fft_batch, onnx=_NO_COMPLEX,
    samples=_fft_samples,
)  # fmt: skip
def fft(x: Value, axes: Shape, inverse: bool, norm: Norm) -> Value:
    """Sum over j of x_j exp(∓2πi jk / n) along each of axes; inverse: with the sign +."""


# Real to half spectrum, and back ------------------------------------------------------------------


def _real_raw(x: Any, axis: int, inverse: bool, norm: Any) -> Any:
    return transform("ihfft" if inverse else "rfft", x, None, axis, norm)


def _real_aval(args: Args, params: Params) -> ShapeDtype:
    (x,), axis = args, params[0]
    if x.dtype.kind == "c":
        raise DTypeError(f"real_fft: x must be real, got {x.dtype}")
    n = x.shape[axis]
    _check_length("real_fft", n)
    return ShapeDtype((*x.shape[:axis], n // 2 + 1, *x.shape[axis + 1 :]), _complex(x.dtype))


def _real_transpose(g: Value, x_shape: Shape, axis: int, inverse: bool, norm: str) -> Value:
    n = int(x_shape[axis])
    once = g * wrap(1 / _multiplicity(n, axis, len(x_shape), g.dtype))
    return ops.hermitian_fft(once, axis, n, inverse, norm)


def _real_rule(g: Value, axis: int, inverse: bool, norm: str, x_shape: Shape) -> Value:
    return _real_transpose(g, x_shape, axis, inverse, norm)


def _multiplicity(n: int, axis: int, rank: int, dtype: Any) -> Any:
    """How often each element of a half spectrum stands in the whole one: once at 0 and n / 2."""
    k = np.arange(n // 2 + 1)
    twice = np.where((k == 0) | (2 * k == n), 1, 2).astype(np.empty(0, dtype).real.dtype)
    return twice.reshape(-1, *(1,) * (rank - 1 - axis))


def _real_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample((rng.normal(size=(6,)),), (0, False, "backward")),
        Sample((rng.normal(size=(5, 2)),), (0, True, "ortho")),
        Sample((rng.normal(size=(1,)),), (0, False, "forward")),
        Sample((rng.normal(size=(4,)).astype(np.float32),), (0, True, "backward"), smooth=False),
    ]


@structural(
    _real_raw, _real_rule, aval=_real_aval, batch=axis_behind, onnx=_NO_COMPLEX,
    samples=_real_samples,
)  # fmt: skip
def real_fft(x: Value, axis: int, inverse: bool, norm: Norm) -> Value:
    """`fft` of a real x along one axis: the n // 2 + 1 elements that determine the others."""


def _hermitian_raw(x: Any, axis: int, n: int, inverse: bool, norm: Any) -> Any:
    return transform("irfft" if inverse else "hfft", x, n, axis, norm)


def _hermitian_aval(args: Args, params: Params) -> ShapeDtype:
    (x,), (axis, n, *_) = args, params
    _check_length("hermitian_fft", n)
    if x.shape[axis] != n // 2 + 1:
        raise ShapeError(
            f"hermitian_fft: {n} elements need a half spectrum of {n // 2 + 1}, got {x.shape[axis]}"
        )
    real = np.empty(0, _complex(x.dtype)).real.dtype
    return ShapeDtype((*x.shape[:axis], n, *x.shape[axis + 1 :]), real)


def _hermitian_transpose(
    g: Value, axis: int, n: int, inverse: bool, norm: str, x_shape: Shape
) -> Value:
    # the adjoint, for the result is real: the other sign, with the same factor
    half = ops.real_fft(g, axis, not inverse, _SWAPPED[norm])
    return half * wrap(_multiplicity(n, axis, len(x_shape), half.dtype))


def _hermitian_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample((_spectrum(rng, 4),), (0, 6, True, "backward")),
        Sample((_spectrum(rng, 3, 2),), (0, 5, False, "ortho")),
        Sample((_spectrum(rng, 1),), (0, 1, False, "forward")),
        Sample((_spectrum(rng, 3).astype(np.complex64),), (0, 4, True, "backward"), smooth=False),
    ]


@structural(
    _hermitian_raw, _hermitian_transpose, aval=_hermitian_aval, batch=axis_behind,
    onnx=_NO_COMPLEX, samples=_hermitian_samples,
)  # fmt: skip
def hermitian_fft(x: Value, axis: int, n: int, inverse: bool, norm: Norm) -> Value:
    """`fft` along one axis of length n, given by its first half; the result is real."""
