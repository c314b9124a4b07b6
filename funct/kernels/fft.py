"""Discrete Fourier transforms of ndarrays, in single and in double precision.

NumPy's loops take one line of numbers after the other, always in doubles. SciPy's, to which large
arrays go, take single precision as it is, as many lines at once as a vector holds, and very large
arrays on several threads. Lines whose length small radices and primes up to 251 make are our own
from 512 elements on (`funct/kernels/cpu/fourier`), also in their own precision. The same bits come
out for any number of threads.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from funct.kernels import pocketfft
from funct.kernels.cpu.scratch import fresh
from funct.kernels.dtypes import FLOATING
from funct.kernels.table import call
from funct.settings import config

__all__ = [
    "LARGE", "LINES", "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfftn", "loops", "plain", "plan", "rfft", "rfftfreq", "rfftn", "transform",
]  # fmt: skip

_FLOAT = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)
_WHOLE = ("fft", "ifft")  # of real numbers SciPy computes one half of these
_COMPLEX = {np.dtype(np.complex64), np.dtype(np.complex128)}
# By characters of dtypes, whether a transform is taken in single precision.
_SINGLE = dict.fromkeys("dD?bhilqBHILQ", False) | dict.fromkeys("fF", True)
_BRAIN = np.dtype(ml_dtypes.bfloat16)  # which NumPy's functions know in part
_SWAPPED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
_MANY = 1 << 13  # what is longer is announced to the allocator
_MOST = 1 << 24  # frequencies; whether there is memory for more is asked first
LARGE = 1 << 11  # elements from which on SciPy is faster in single precision
LINES = 1 << 9  # from which on many lines pay for our own code,
_SHARED = 1 << 18  # and from which on threads are worth their start
_NORMS: Any = ("backward", "ortho", "forward")
_REALS: Any = {float, int}


def transform(name: str, x: Any, n: Any, axis: int, norm: Any) -> Any:
    """What the function of that name in `numpy.fft` gives, by the loop behind it.

    That takes a third of the time of the function, which asks for other libraries' arrays and for
    options. bfloat16 is computed in float32. What is no ndarray, or of another precision, goes to
    the function.
    """
    single = _SINGLE.get(x.dtype.char)
    if single is None and x.dtype == _BRAIN:
        x, single = x.astype(np.float32), True
    if single is None or x.__class__ is not np.ndarray:
        return getattr(np.fft, name)(x, n, axis, norm)
    if name == "hfft":
        return transform("irfft", np.conjugate(x), n, axis, _SWAPPED[norm])
    if name == "ihfft":
        half = transform("rfft", x, n, axis, _SWAPPED[norm])
        return np.conjugate(half, half)
    if x.size >= LINES:
        return call("fourier", x.dtype, x.size, name, x, (n,), (axis,), norm)
    return plain(name, x, (n,), (axis,), norm)


def plain(name: str, x: Any, lengths: Any, axes: Any, norm: Any) -> Any:
    """The same by SciPy's loops or NumPy's; of real numbers along several axes by SciPy's."""
    single = _SINGLE[x.dtype.char]
    n, axis = lengths[0], axes[0]
    wide = _SHARED <= x.size > x.shape[axis] or (x.dtype is _DOUBLE and name in _WHOLE)
    if len(axes) > 1 or (x.size >= LARGE and (single or wide)):
        return pocketfft.along(name, x, lengths, axes, norm, _workers(x))
    shape = x.shape
    if n is None:
        n = 2 * (shape[axis] - 1) if name == "irfft" else shape[axis]
    loop, factor, length, dtype = plan(name, n, norm, single)
    if loop is None:
        return getattr(np.fft, name)(x, n, axis, norm)
    if axis == -1 or axis == len(shape) - 1:
        return loop(x, factor, np.empty((*shape[:-1], length), dtype))
    axis = range(len(shape))[axis]
    out = np.empty((*shape[:axis], length, *shape[axis + 1 :]), dtype)
    return loop(x, factor, out, axes=[(axis,), (), (axis,)])


def loops() -> Any:
    """NumPy's loops, or None; `numpy.fft` is loaded at the first use."""
    return getattr(np.fft, "_pocketfft_umath", None)


@functools.lru_cache(512)
def plan(name: str, n: int, norm: str, single: bool) -> tuple[Any, Any, int, Any]:
    """NumPy's loop, or None; the factor; the length and the dtype of the result."""
    if n < 1:
        raise ValueError(f"a transform of length {n}")
    real = np.float32 if single else np.float64
    inverse = name[0] == "i"
    factor: Any = 1.0  # with which NumPy, too, takes single precision by the loop of doubles
    if norm == "ortho":
        factor = np.reciprocal(np.sqrt(n, dtype=real))
    elif inverse is (norm == "backward"):
        factor = np.reciprocal(n, dtype=real)
    parity = "odd" if n % 2 else "even"
    loop = getattr(loops(), f"rfft_n_{parity}" if name == "rfft" else name, None)
    dtype = np.dtype(real if name == "irfft" else np.result_type(real, np.complex64))
    return loop, np.asarray(factor), n // 2 + 1 if name == "rfft" else n, dtype


def _options(n: Any, axis: Any, norm: Any) -> bool:
    """Whether these are an own length, or a short one, one axis and a norm."""
    known = n is None or (n.__class__ is int and 0 < n < _MANY)
    return known and axis.__class__ is int and norm in _NORMS


def _of_real(name: str, x: Any, n: Any, axis: Any, norm: Any) -> Any:
    """A transform of real numbers; integers are taken as float64."""
    if not _options(n, axis, norm) or x.dtype.num > FLOATING:
        return None
    return transform(name, x, n, axis, norm)


def _of_complex(name: str, x: Any, n: Any, axis: Any, norm: Any) -> Any:
    """A transform of complex numbers."""
    if not _options(n, axis, norm) or x.dtype not in _COMPLEX:
        return None
    return transform(name, x, n, axis, norm)


def _spectral(x: Any) -> Any:
    """x as a transform takes it; double precision may be real, and what is large: half is done."""
    if x.dtype is _FLOAT and x.size < LARGE:
        return x.astype(np.complex64)  # real numbers NumPy's loops would take in doubles
    return x if x.dtype.char in _SINGLE else None


def _of_any(name: str, x: Any, n: Any, axis: Any, norm: Any) -> Any:
    if not _options(n, axis, norm):
        return None
    x = _spectral(x)
    return None if x is None else transform(name, x, n, axis, norm)


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
        x = transform(name, x, n, axis, norm)
    return x


def fftn(x: Any, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """`fft` along several axes."""
    return _spectrum("fft", x, s, axes, norm)


def ifftn(x: Any, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """Inverse of `fftn`."""
    return _spectrum("ifft", x, s, axes, norm)


def _spectrum(name: str, x: Any, s: Any, axes: Any, norm: Any) -> Any:
    at, x = _axes(x, s, axes, norm), _spectral(x)
    if at is None or x is None:
        return None
    if x.size >= LARGE and (x.dtype is _FLOAT or x.dtype is _DOUBLE):
        lengths = tuple([x.shape[axis] if n is None else n for axis, n in at])
        given = name, x, lengths, tuple([a for a, _ in at]), norm
        return call("fourier", x.dtype, x.size, *given) if x.size >= LINES else plain(*given)
    return _along_all(name, x, at, norm)


def _workers(x: Any) -> int:
    """How many threads x is worth."""
    return config.record.threads if x.size >= _SHARED else 1


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
    return transform("irfft", _along_all("ifft", x, at, norm), n, axis, norm)


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
    if n.__class__ is not int or not 0 < n < _MOST or d.__class__ not in _REALS:
        return None
    if dtype is not None or device is not None:
        return None
    out, half = fresh((n,), _DOUBLE), (n + 1) // 2
    out[:half] = np.arange(half)
    out[half:] = np.arange(half - n, 0)
    return np.divide(out, n * d, out)


def rfftfreq(n: int, d: Any = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """Frequencies of `rfft`'s elements."""
    if n.__class__ is not int or not 0 < n < _MOST or d.__class__ not in _REALS:
        return None
    if dtype is not None or device is not None:
        return None
    out = fresh((n // 2 + 1,), _DOUBLE)
    out[:] = np.arange(n // 2 + 1)
    return np.divide(out, n * d, out)
