"""SciPy's distribution functions, where they continue to no other values than ours do.

Outside of the parameters' domain SciPy gives NaN where a limit exists. There the answer is None,
and the composition of incomplete functions is computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.special import find

__all__ = ["chdtrc", "fdtri", "gdtr", "gdtrc", "pdtr", "pdtrc", "pdtri"]

ndarray = np.ndarray


def _known(y: Any) -> Any:
    """y without NaN."""
    found = y.item(y.argmin())  # NaN comes first
    return y if found == found else None


def _counts(k: Any) -> bool:
    """Whether no k is negative or NaN."""
    return (k.item(k.argmin()) if k.__class__ is ndarray else k) >= 0


def pdtr(k: Any, m: Any) -> Any:
    """Distribution function of Poisson."""
    return find("pdtr")(k, m) if _counts(k) else None


def pdtrc(k: Any, m: Any) -> Any:
    """1 - pdtr(k, m)."""
    return find("pdtrc")(k, m) if _counts(k) else None


def pdtri(k: Any, y: Any) -> Any:
    """The m with pdtr(k, m) = y."""
    return _known(find("pdtri")(k, y)) if k.__class__ is int else None  # else it warns


def chdtrc(v: Any, x: Any) -> Any:
    """1 - the distribution function of chi-square."""
    return _known(find("chdtrc")(v, x))


def gdtr(a: Any, b: Any, x: Any) -> Any:
    """Distribution function of gamma."""
    return _known(find("gdtr")(a, b, x))


def gdtrc(a: Any, b: Any, x: Any) -> Any:
    """1 - gdtr(a, b, x)."""
    return _known(find("gdtrc")(a, b, x))


def fdtri(n: Any, d: Any, p: Any) -> Any:
    """The x with fdtr(n, d, x) = p."""
    return _known(find("fdtri")(n, d, p))
