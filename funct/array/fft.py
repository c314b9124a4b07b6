"""The fft extension of the standard. Single precision stays single.

n (s for several axes) cuts x off or pads it with zeros behind, before the transform. norm says
where the factor stands: "backward" divides the inverse by n, "forward" the direct transform,
"ortho" both by √n. All are linear, so derivatives are transforms again.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import normal_axes, normal_axis, real_number
from funct.array.conversion import check_allocation
from funct.array.device import placed
from funct.array.direct import direct, entrances
from funct.array.dtypes import as_dtype
from funct.array.manipulation import roll
from funct.core import FLOATING, INEXACT, Shape
from funct.errors import ArgumentError, DTypeError, ShapeError
from funct.kernels import fft as kernels
from funct.ops.fast import wrap

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

Ints = int | Sequence[int] | None


@direct(kernels.fft)
def fft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Any:
    """Discrete Fourier transform along axis: X_k = Σ_j x_j exp(−2πi jk / n).

    Args: n: length, x's own for None. norm: "backward" (None), "ortho" or "forward".
    Raises: ShapeError: for n < 1. ArgumentError: for another norm.
    Example:
        >>> import funct.array as xp
        >>> xp.fft.fft(xp.asarray([1.0, 0.0, 0.0, 0.0])).tolist()
        [(1+0j), (1+0j), (1+0j), (1+0j)]

    Source: Array API 2025.12 `fft.fft`.
    """
    return _along_one("fft", x, n, axis, False, norm)


@direct(kernels.ifft)
def ifft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Any:
    """Inverse of `fft`: the sign of the exponent is +, the factor 1 / n by default.

    Raises: as `fft`.
    Example:
        >>> import funct.array as xp
        >>> xp.real(xp.fft.ifft(xp.fft.fft(xp.asarray([1.0, 2.0, 3.0, 4.0])))).tolist()
        [1.0, 2.0, 3.0, 4.0]
    """
    return _along_one("ifft", x, n, axis, True, norm)


@direct(kernels.fftn)
def fftn(x: Any, /, s: Ints = None, axes: Ints = None, norm: str | None = "backward") -> Any:
    """`fft` along several axes: all of them, or the last ones that s gives lengths for.

    Example:
        >>> import funct.array as xp
        >>> xp.real(xp.fft.fftn(xp.asarray([[1.0, 2.0], [3.0, 4.0]]))).tolist()
        [[10.0, -2.0], [-4.0, 0.0]]
    """
    return _along_many("fftn", x, s, axes, False, norm)


@direct(kernels.ifftn)
def ifftn(x: Any, /, s: Ints = None, axes: Ints = None, norm: str | None = "backward") -> Any:
    """Inverse of `fftn`.

    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
        >>> xp.real(xp.fft.ifftn(xp.fft.fftn(x))).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    return _along_many("ifftn", x, s, axes, True, norm)


@direct(kernels.rfft)
def rfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Any:
    """`fft` of a real x: the first n // 2 + 1 elements; the others are their conjugates.

    Raises: DTypeError: for complex x.
    Example:
        >>> import funct.array as xp
        >>> xp.fft.rfft(xp.asarray([1.0, 2.0, 3.0, 4.0])).tolist()
        [(10+0j), (-2+2j), (-2+0j)]
    """
    k = normal_axis("rfft", axis, len(x.shape))
    return ops.real_fft(_resized("rfft", _real("rfft", x), k, n), k, False, _norm("rfft", norm))


@direct(kernels.irfft)
def irfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Any:
    """Inverse of `rfft`: real, of length n, 2 (m - 1) for m elements of x where n is None.

    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([1.0, 2.0, 4.0])
        >>> xp.round(xp.fft.irfft(xp.fft.rfft(x), n=3)).tolist(), xp.fft.irfft(xp.fft.rfft(x)).shape
        ([1.0, 2.0, 4.0], (2,))
    """
    return _from_half("irfft", x, n, axis, True, norm)


@direct(kernels.rfftn)
def rfftn(x: Any, /, s: Ints = None, axes: Ints = None, norm: str | None = "backward") -> Any:
    """`rfft` along the last of several axes, then `fft` along the others.

    Raises: DTypeError: for complex x.
    Example:
        >>> import funct.array as xp
        >>> xp.fft.rfftn(xp.ones((4, 6))).shape
        (4, 4)
    """
    at, lengths = _axes_and_lengths("rfftn", x, s, axes)
    norm = _norm("rfftn", norm)
    y = _real("rfftn", x)
    for a, n in zip(at, lengths, strict=True):
        y = _resized("rfftn", y, a, n)
    y = ops.real_fft(y, at[-1], False, norm)
    return ops.fft(y, at[:-1], False, norm) if len(at) > 1 else y


@direct(kernels.irfftn)
def irfftn(x: Any, /, s: Ints = None, axes: Ints = None, norm: str | None = "backward") -> Any:
    """Inverse of `rfftn`: real; the last axis has length 2 (m - 1) where s is None.

    Example:
        >>> import funct.array as xp
        >>> xp.fft.irfftn(xp.fft.rfftn(xp.ones((4, 6)))).tolist() == xp.ones((4, 6)).tolist()
        True
    """
    at, lengths = _axes_and_lengths("irfftn", x, s, axes)
    y = _complex(x)
    if len(at) > 1:
        for a, n in zip(at[:-1], lengths[:-1], strict=True):
            y = _resized("irfftn", y, a, n)
        y = ops.fft(y, at[:-1], True, _norm("irfftn", norm))
    return _from_half("irfftn", y, lengths[-1], at[-1], True, norm)


@direct(kernels.hfft)
def hfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Any:
    """`fft` of a signal with x_(-j) = conj(x_j), given by its first half: real, of length n.

    Example:
        >>> import funct.array as xp
        >>> xp.fft.hfft(xp.asarray([1.0, 2.0, 3.0])).tolist()  # of 1, 2, 3, 2
        [8.0, -2.0, 0.0, -2.0]
    """
    return _from_half("hfft", x, n, axis, False, norm)


@direct(kernels.ihfft)
def ihfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Any:
    """Inverse of `hfft`: the first n // 2 + 1 elements of the inverse transform of a real x.

    Example:
        >>> import funct.array as xp
        >>> xp.real(xp.fft.ihfft(xp.asarray([10.0, -2.0, 2.0, -2.0]))).tolist()
        [2.0, 2.0, 4.0]
    """
    k = normal_axis("ihfft", axis, len(x.shape))
    return ops.real_fft(_resized("ihfft", _real("ihfft", x), k, n), k, True, _norm("ihfft", norm))


@direct(kernels.fftfreq, arrays=0)
@placed
def fftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """Frequencies of `fft`'s elements for samples d apart: 0, 1, …, −2, −1, over n d.

    Example:
        >>> import funct.array as xp
        >>> xp.fft.fftfreq(4, d=0.5).tolist()  # samples in seconds: frequencies in Hz
        [0.0, 0.5, -1.0, -0.5]
    """
    n = _length("fftfreq", n)
    k = np.arange(n)
    return _frequencies("fftfreq", np.where(2 * k < n, k, k - n), n, d, dtype)


@direct(kernels.rfftfreq, arrays=0)
@placed
def rfftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
    """Frequencies of `rfft`'s elements for samples d apart: 0, 1, …, n // 2, over n d.

    Example:
        >>> import funct.array as xp
        >>> xp.fft.rfftfreq(4, d=0.5).tolist()
        [0.0, 0.5, 1.0]
    """
    n = _length("rfftfreq", n)
    return _frequencies("rfftfreq", np.arange(n // 2 + 1), n, d, dtype)


@direct(kernels.fftshift)
def fftshift(x: Any, /, axes: Ints = None) -> Any:
    """x with frequency 0 moved to the middle of axes, all of them for None.

    Example:
        >>> import funct.array as xp
        >>> xp.fft.fftshift(xp.asarray([0, 1, 2, -2, -1])).tolist()
        [-2, -1, 0, 1, 2]
    """
    at = normal_axes("fftshift", axes, len(x.shape))
    return roll(x, tuple([x.shape[a] // 2 for a in at]), axis=at)


@direct(kernels.ifftshift)
def ifftshift(x: Any, /, axes: Ints = None) -> Any:
    """Inverse of `fftshift`; the two differ where a length is odd.

    Example:
        >>> import funct.array as xp
        >>> xp.fft.ifftshift(xp.asarray([-2, -1, 0, 1, 2])).tolist()
        [0, 1, 2, -2, -1]
    """
    at = normal_axes("ifftshift", axes, len(x.shape))
    return roll(x, tuple([-(x.shape[a] // 2) for a in at]), axis=at)


def fft2(x: Any, /, s: Ints = None, axes: Ints = (-2, -1), norm: str | None = "backward") -> Any:
    """`fftn` along two axes, by default the last two.

    Example:
        >>> import funct.array as xp
        >>> xp.fft.fft2(xp.ones((3, 4, 5))).shape
        (3, 4, 5)
    """
    return fftn(x, s=s, axes=axes, norm=norm)


def ifft2(x: Any, /, s: Ints = None, axes: Ints = (-2, -1), norm: str | None = "backward") -> Any:
    """Inverse of `fft2`.

    Example:
        >>> import funct.array as xp
        >>> x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
        >>> xp.real(xp.fft.ifft2(xp.fft.fft2(x))).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    return ifftn(x, s=s, axes=axes, norm=norm)


def rfft2(x: Any, /, s: Ints = None, axes: Ints = (-2, -1), norm: str | None = "backward") -> Any:
    """`rfftn` along two axes, by default the last two.

    Raises: DTypeError: for complex x.
    Example:
        >>> import funct.array as xp
        >>> xp.fft.rfft2(xp.ones((5, 4, 6))).shape
        (5, 4, 4)
    """
    return rfftn(x, s=s, axes=axes, norm=norm)


def irfft2(x: Any, /, s: Ints = None, axes: Ints = (-2, -1), norm: str | None = "backward") -> Any:
    """Inverse of `rfft2`: real.

    Example:
        >>> import funct.array as xp
        >>> xp.fft.irfft2(xp.fft.rfft2(xp.ones((5, 4, 6)))).shape
        (5, 4, 6)
    """
    return irfftn(x, s=s, axes=axes, norm=norm)


def _norm(name: str, norm: Any) -> str:
    if norm is None:  # as NumPy and SciPy write the default
        return "backward"
    if norm not in ("backward", "ortho", "forward"):
        raise ArgumentError(f"{name}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    return str(norm)


def _length(name: str, n: Any) -> int:
    try:
        n = operator.index(n)
    except TypeError:
        raise ShapeError(f"{name}: n must be an int, got {n!r}") from None
    if n < 1:
        raise ShapeError(f"{name}: n must be at least 1, got {n}")
    check_allocation(name, (n,), np.float64)
    return int(n)


def _complex(x: Any) -> Any:
    """x in the complex dtype of its precision; integers count as float64."""
    if x.dtype.kind == "c":
        return x
    return ops.astype(x, np.dtype(np.complex64 if _single(x.dtype) else np.complex128))


def _real(name: str, x: Any) -> Any:
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: x must be real, got {x.dtype}", fix="take real(x)")
    dtype = np.dtype(np.float32 if _single(x.dtype) else np.float64)
    return x if x.dtype == dtype else ops.astype(x, dtype)


def _single(dtype: Any) -> bool:
    return dtype in INEXACT and dtype.itemsize < 8


def _resized(name: str, x: Any, axis: int, n: Any) -> Any:
    """x cut off or padded with zeros behind to length n along axis; None leaves it."""
    if n is None or n is x.shape[axis]:
        return x
    n, have = _length(name, n), x.shape[axis]
    if n == have:
        return x
    rest = ((None, None, 1),) * len(x.shape)
    if n < have:
        return ops.slice_(x, (*rest[:axis], (None, n, 1), *rest[axis + 1 :]))
    whole = (*x.shape[:axis], n, *x.shape[axis + 1 :])
    return ops.embed(x, (*rest[:axis], (None, have, 1), *rest[axis + 1 :]), whole)


def _along_one(name: str, x: Any, n: Any, axis: int, inverse: bool, norm: Any) -> Any:
    k = normal_axis(name, axis, len(x.shape))
    return ops.fft(_resized(name, _complex(x), k, n), (k,), inverse, _norm(name, norm))


def _along_many(name: str, x: Any, s: Ints, axes: Ints, inverse: bool, norm: Any) -> Any:
    at, lengths = _axes_and_lengths(name, x, s, axes)
    y = _complex(x)
    for a, n in zip(at, lengths, strict=True):
        y = _resized(name, y, a, n)
    return ops.fft(y, at, inverse, _norm(name, norm))


def _from_half(name: str, x: Any, n: Any, axis: int, inverse: bool, norm: Any) -> Any:
    k = normal_axis(name, axis, len(x.shape))
    n = _length(name, 2 * (int(x.shape[k]) - 1) if n is None else n)
    half = _resized(name, _complex(x), k, n // 2 + 1)
    return ops.hermitian_fft(half, k, n, inverse, _norm(name, norm))


def _axes_and_lengths(name: str, x: Any, s: Ints, axes: Ints) -> tuple[Shape, list[Any]]:
    """Axes in the order given and their lengths; None and -1 stand for x's own."""
    rank = len(x.shape)
    lengths: list[Any] | None = None
    if s is not None:
        lengths = list(s) if isinstance(s, Sequence) else [s]
    if axes is None:
        at = tuple(range(rank) if lengths is None else range(rank - len(lengths), rank))
    else:
        given = tuple(axes) if isinstance(axes, Sequence) else (axes,)
        normal_axes(name, given, rank)
        at = tuple([normal_axis(name, a, rank) for a in given])
    if lengths is None:
        lengths = [None] * len(at)
    if len(lengths) != len(at) or any(a < 0 for a in at):
        raise ShapeError(f"{name}: s must have one length per axis, got s {s} and axes {axes}")
    if not at:
        raise ShapeError(f"{name}: at least one axis is needed, got x of shape {x.shape}")
    return at, [None if n == -1 else n for n in lengths]


def _frequencies(name: str, k: Any, n: int, d: Any, dtype: Any) -> Any:
    dtype = np.dtype(np.float64) if dtype is None else as_dtype(name, dtype)
    d = real_number(name, "d", d)
    if dtype not in FLOATING:
        raise DTypeError(f"{name}: dtype must be floating, got {dtype}")
    return wrap((k / (n * d)).astype(dtype))


entrances(globals())
