"""LAPACK on stacks of matrices: the loops that np.linalg calls, without its checks around them.

np.linalg converts, compares and copies for longer than LAPACK works on a small matrix. Operands
here are stacks of matrices whose shapes `funct.kernels.matrices` has checked. np.linalg is called
for single precision, which it computes in double, for buffers of other devices, whose libraries
know its functions and not these loops, and should NumPy not have a loop any more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.quiet import asking

__all__ = ["loop"]

_LOOPS: Any = getattr(np.linalg, "_umath_linalg", None)


def _fail(error: str, flag: int) -> None:
    raise np.linalg.LinAlgError(error)


_careful = asking(_fail)


def loop(name: str, otherwise: Any, *, fails: bool = True) -> Any:
    """NumPy's loop of that name, which raises LinAlgError where LAPACK reports a failure."""
    found = getattr(_LOOPS, name, None)
    if found is None:
        return otherwise
    host = np.ndarray

    def run(*operands: Any) -> Any:
        first, last = operands[0], operands[-1]
        double = first.dtype.char in "dD" and last.dtype.char in "dD"
        if not double or first.__class__ is not host:
            return otherwise(*operands)
        if not fails:
            return found(*operands)
        return _careful().run(found, *operands)

    return run
