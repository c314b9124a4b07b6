"""Discrete Fourier transforms of ndarrays of double precision at their own length."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np

__all__ = [
    "fft", "fftfreq", "fftn", "hfft", "ifft", "ifftn", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]  # fmt: skip

_DOUBLE = np.dtype(np.float64)
_COMPLEX = np.dtype(np.complex128)
_MANY = 1 << 13  # what is larger is announced to the allocator
_NORMS: Any = ("backward", "ortho", "forward")


@functools.cache
def _numpys(name: str) -> Any:
    """NumPy's function without the search for other libraries' arrays, which costs half a
    microsecond; `numpy.fft` is loaded here, at the first use.
    """
    return inspect.unwrap(getattr(np.fft, name))


def _along(one: Any, x: Any, n: Any, axis: Any, norm: Any) -> Any:
    if x.dtype is not _COMPLEX and x.dtype is not _DOUBLE:
        return None
    if n is not None or axis.__class__ is not int or norm not in _NORMS:
        return None
    return one(x, None, axis, norm)


def fft(x: Any, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """Discrete Fourier transform along axis."""
    return _along(_numpys("fft"), x, n, axis, norm)


def ifft(x: Any, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """Inverse of `fft`."""
    return _along(_numpys("ifft"), x, n, axis, norm)


def _along_all(one: Any, x: Any, s: Any, axes: Any, norm: Any) -> Any:
    if s is not None or axes is not None or not x.ndim or norm not in _NORMS:
        return None
    if x.dtype is _DOUBLE:
        x = x.astype(_COMPLEX)
    elif x.dtype is not _COMPLEX:
        return None
    for axis in range(x.ndim - 1, -1, -1):
        x = one(x, None, axis, norm)
    return x


def fftn(x: Any, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """`fft` along all axes."""
    return _along_all(_numpys("fft"), x, s, axes, norm)


def ifftn(x: Any, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """Inverse of `fftn`."""
    return _along_all(_numpys("ifft"), x, s, axes, norm)


def rfft(x: Any, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """The first half of `fft` of a real x."""
    if x.dtype is not _DOUBLE or n is not None or norm not in _NORMS:
        return None
    if axis.__class__ is not int:
        return None
    return _numpys("rfft")(x, None, axis, norm)


def ihfft(x: Any, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """Inverse of `hfft`."""
    if x.dtype is not _DOUBLE or n is not None or norm not in _NORMS:
        return None
    if axis.__class__ is not int:
        return None
    return _numpys("ihfft")(x, None, axis, norm)


def irfft(x: Any, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """Inverse of `rfft`."""
    if x.dtype is not _COMPLEX or n is not None or norm not in _NORMS:
        return None
    if axis.__class__ is not int:
        return None
    return _numpys("irfft")(x, None, axis, norm)


def hfft(x: Any, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """`fft` of a signal that is given by its first half."""
    if x.dtype is not _COMPLEX or n is not None or norm not in _NORMS:
        return None
    if axis.__class__ is not int:
        return None
    return _numpys("hfft")(x, None, axis, norm)


def rfftn(x: Any, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """`rfft` along the last axis, `fft` along the others."""
    if x.dtype is not _DOUBLE or s is not None or axes is not None or norm not in _NORMS:
        return None
    y = _numpys("rfft")(x, None, x.ndim - 1, norm)
    for axis in range(x.ndim - 2, -1, -1):
        y = _numpys("fft")(y, None, axis, norm)
    return y


def irfftn(x: Any, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """Inverse of `rfftn`."""
    if x.dtype is not _COMPLEX or s is not None or axes is not None or norm not in _NORMS:
        return None
    for axis in range(x.ndim - 2, -1, -1):
        x = _numpys("ifft")(x, None, axis, norm)
    return _numpys("irfft")(x, None, x.ndim - 1, norm)


def fftfreq(n: int, d: Any = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """Frequencies of `fft`'s elements."""
    if n.__class__ is not int or not 0 < n < _MANY or d.__class__ is not float:
        return None
    if dtype is not None or device is not None:
        return None
    k = np.arange(n)
    k[(n + 1) // 2 :] -= n
    return k / (n * d)


def rfftfreq(n: int, d: Any = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """Frequencies of `rfft`'s elements."""
    if n.__class__ is not int or not 0 < n < _MANY or d.__class__ is not float:
        return None
    if dtype is not None or device is not None:
        return None
    return np.arange(n // 2 + 1) / (n * d)
