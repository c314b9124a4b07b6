"""Discrete Fourier transforms of ndarrays, in single and in double precision."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np

from funct.kernels.dtypes import FLOATING, INTEGER

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip

_DOUBLE = np.dtype(np.float64)
_SINGLE = np.dtype(np.complex64)
_COMPLEX = {_SINGLE, np.dtype(np.complex128)}
_MANY = 1 << 13  # what is larger is announced to the allocator
_NORMS: Any = ("backward", "ortho", "forward")
_REALS: Any = {float, int}


@functools.cache
def _numpys(name: str) -> Any:
    """NumPy's function without the search for other libraries' arrays, which costs half a
    microsecond; `numpy.fft` is loaded here, at the first use.
    """
    return inspect.unwrap(getattr(np.fft, name))


def _options(n: Any, axis: Any, norm: Any) -> bool:
    """Whether these are an own length, or a short one, one axis and a norm."""
    known = n is None or (n.__class__ is int and 0 < n < _MANY)
    return known and axis.__class__ is int and norm in _NORMS


def _of_real(name: str, x: Any, n: Any, axis: Any, norm: Any) -> Any:
    """A transform of real numbers; integers are taken as float64."""
    if not _options(n, axis, norm) or x.dtype.num > FLOATING:
        return None
    return _numpys(name)(x if x.dtype.num > INTEGER else x.astype(_DOUBLE), n, axis, norm)


def _of_complex(name: str, x: Any, n: Any, axis: Any, norm: Any) -> Any:
    """A transform of complex numbers."""
    if not _options(n, axis, norm) or x.dtype not in _COMPLEX:
        return None
    return _numpys(name)(x, n, axis, norm)


def _spectral(x: Any) -> Any:
    """x as a transform takes it: double precision may be real."""
    if x.dtype is _DOUBLE or x.dtype in _COMPLEX:
        return x
    if x.dtype.num <= INTEGER:
        return x.astype(_DOUBLE)
    return x.astype(_SINGLE) if x.dtype.num <= FLOATING else None


def _of_any(name: str, x: Any, n: Any, axis: Any, norm: Any) -> Any:
    if not _options(n, axis, norm):
        return None
    x = _spectral(x)
    return None if x is None else _numpys(name)(x, n, axis, norm)


def fft(x: Any, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """Discrete Fourier transform along axis."""
    return _of_any("fft", x, n, axis, norm)


def ifft(x: Any, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """Inverse of `fft`."""
    return _of_any("ifft", x, n, axis, norm)


def rfft(x: Any, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """The first half of `fft` of a real x."""
    return _of_real("rfft", x, n, axis, norm)


def ihfft(x: Any, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """Inverse of `hfft`."""
    return _of_real("ihfft", x, n, axis, norm)


def irfft(x: Any, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """Inverse of `rfft`."""
    return _of_complex("irfft", x, n, axis, norm)


def hfft(x: Any, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """`fft` of a signal that is given by its first half."""
    return _of_complex("hfft", x, n, axis, norm)


def _axes(x: Any, s: Any, axes: Any, norm: Any) -> Any:
    """The axes, and a length of each or None; None where they are not for us."""
    if axes is None:
        if s is not None:
            return None
        at: Any = range(x.ndim)
    elif axes.__class__ is tuple or axes.__class__ is list:
        at = [range(x.ndim)[a] for a in axes]
        if len(set(at)) < len(at):
            return None
    else:
        return None
    if s is None:
        s = (None,) * len(at)
    elif s.__class__ is not tuple or len(s) != len(at):
        return None
    for n in s:
        if not _options(n, 0, norm):
            return None
    return list(zip(at, s)) or None


def _along_all(name: str, x: Any, axes: Any, norm: Any) -> Any:
    for axis, n in reversed(axes):
        x = _numpys(name)(x, n, axis, norm)
    return x


def fftn(x: Any, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """`fft` along several axes."""
    return _spectrum("fft", x, s, axes, norm)


def ifftn(x: Any, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """Inverse of `fftn`."""
    return _spectrum("ifft", x, s, axes, norm)


def _spectrum(name: str, x: Any, s: Any, axes: Any, norm: Any) -> Any:
    at, x = _axes(x, s, axes, norm), _spectral(x)
    return None if at is None or x is None else _along_all(name, x, at, norm)


def rfftn(x: Any, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """`rfft` along the last axis, `fft` along the others."""
    at = _axes(x, s, axes, norm)
    if at is None:
        return None
    axis, n = at.pop()
    y = _of_real("rfft", x, n, axis, norm)
    return None if y is None else _along_all("fft", y, at, norm)


def irfftn(x: Any, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """Inverse of `rfftn`."""
    at = _axes(x, s, axes, norm)
    if at is None or x.dtype not in _COMPLEX:
        return None
    axis, n = at.pop()
    return _numpys("irfft")(_along_all("ifft", x, at, norm), n, axis, norm)


def _centred(x: Any, axes: Any, sign: int) -> Any:
    """Each axis moved by half of its length."""
    at = _axes(x, None, axes, "backward")
    if at is None:
        return None
    for axis, _ in at:
        before = (slice(None),) * axis
        middle = sign * (x.shape[axis] // 2)
        parts = x[(*before, slice(-middle, None))], x[(*before, slice(None, -middle))]
        x = np.concatenate(parts, axis) if middle else x
    return x


def fftshift(x: Any, axes: Any = None) -> Any:
    """x with frequency 0 moved to the middle of axes."""
    return _centred(x, axes, 1)


def ifftshift(x: Any, axes: Any = None) -> Any:
    """Inverse of `fftshift`."""
    return _centred(x, axes, -1)


def fftfreq(n: int, d: Any = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """Frequencies of `fft`'s elements."""
    if n.__class__ is not int or not 0 < n < _MANY or d.__class__ not in _REALS:
        return None
    if dtype is not None or device is not None:
        return None
    k = np.arange(n)
    k[(n + 1) // 2 :] -= n
    return k / (n * d)


def rfftfreq(n: int, d: Any = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """Frequencies of `rfft`'s elements."""
    if n.__class__ is not int or not 0 < n < _MANY or d.__class__ not in _REALS:
        return None
    if dtype is not None or device is not None:
        return None
    return np.arange(n // 2 + 1) / (n * d)
