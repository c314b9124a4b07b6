"""SciPy's Fourier transforms, by the loops behind `scipy.fft`.

To import that package takes a tenth of a second, in which it loads much that no transform asks for.
The loops are one file, which is loaded by itself; where SciPy has no such file the package is.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any

import numpy as np

__all__ = ["along"]

_MODULE = "scipy.fft._pocketfft.pypocketfft"
_FORWARD = ("fft", "rfft", "hfft")
_SCALES = {"backward": 0, "ortho": 1, "forward": 2}  # of the loops, for those


def along(
    name: str, x: Any, lengths: Sequence[int | None], axes: Sequence[int], norm: str, workers: int
) -> Any:
    """What `scipy.fft` gives by that name along one axis; for "fft" and "ifft" along several."""
    kind = {"fft": "c2c", "ifft": "c2c", "rfft": "r2c", "ihfft": "r2c"}.get(name, "c2r")
    whole = [2 * (x.shape[a] - 1) if kind == "c2r" else x.shape[a] for a in axes]
    wanted = [n if given is None else given for n, given in zip(whole, lengths, strict=True)]
    if any(n < 1 for n in wanted):
        raise ValueError("a transform of no elements")
    loops = _loops()
    if loops is None:
        return _by_the_package(name, x, lengths, axes, norm, workers)
    if x.dtype.kind in "biu":
        x = x.astype(np.float64)
    if kind == "c2r" and x.dtype.kind == "f":
        x = x + 0j
    forward = name in _FORWARD
    scale = _SCALES[norm] if forward else 2 - _SCALES[norm]
    after = tuple(wanted) if kind == "c2r" else ()
    for n, axis in zip(wanted, axes, strict=True):
        x = _as_long(x, n // 2 + 1 if kind == "c2r" else n, axis)
    x = np.require(x, requirements="A")
    return getattr(loops, kind)(x, tuple(axes), *after, forward, scale, None, workers)


def _by_the_package(
    name: str, x: Any, lengths: Sequence[int | None], axes: Sequence[int], norm: str, workers: int
) -> Any:
    import scipy.fft

    if len(axes) == 1:
        return getattr(scipy.fft, name)(x, lengths[0], axes[0], norm, workers=workers)
    return getattr(scipy.fft, f"{name}n")(x, lengths, axes, norm, workers=workers)


def _as_long(x: Any, n: int, axis: int) -> Any:
    """x with so many elements along the axis: cut, or with zeros behind it."""
    axis = range(x.ndim)[axis]
    missing = n - x.shape[axis]
    if missing <= 0:
        return x[(slice(None),) * axis + (slice(n),)]
    ends = [(0, missing if k == axis else 0) for k in range(x.ndim)]
    return np.pad(x, ends)


@functools.cache
def _loops() -> Any:
    """The module of SciPy's loops, from its file; None where it is not as these lines know it."""
    if _MODULE in sys.modules:
        return sys.modules[_MODULE]
    scipy = importlib.util.find_spec("scipy")
    folder = os.path.dirname(scipy.origin or "") if scipy is not None else ""
    for suffix in EXTENSION_SUFFIXES:
        file = os.path.join(folder, *_MODULE.split(".")[1:]) + suffix
        spec = importlib.util.spec_from_file_location(_MODULE, file)
        if os.path.exists(file) and spec is not None and spec.loader is not None:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            sys.modules.pop(_MODULE, None)  # whoever imports the package finds it as it would
            return module if _is_known(module) else None
    return None


def _is_known(module: Any) -> bool:
    """Whether its functions take what is given here: SciPy owes nobody that they do."""
    for name, after in (("c2c", ""), ("r2c", ""), ("c2r", "lastsize ")):
        told = getattr(module, name, None).__doc__ or ""
        names = re.findall(r"[(,] ?(\w+):", told.split("->")[0])
        if " ".join(names) != f"a axes {after}forward inorm out nthreads":
            return False
    return True
