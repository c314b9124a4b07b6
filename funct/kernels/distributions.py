"""SciPy's distribution functions, where they continue to no other values than ours do.

Outside of the parameters' domain SciPy gives NaN where a limit exists, and it cuts counts of trials
to integers. There the answer is None, and the composition of incomplete functions is computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.special import find

__all__ = [
    "bdtr", "bdtrc", "bdtri", "chdtrc", "fdtr", "fdtrc", "fdtri", "gdtr", "gdtrc", "nbdtr",
    "nbdtrc", "nbdtri", "pdtr", "pdtrc", "pdtri",
]  # fmt: skip

ndarray = np.ndarray


def _known(y: Any) -> Any:
    """y without NaN."""
    found = y.item(y.argmin())  # NaN comes first
    return y if found == found else None


def _counted(k: Any, n: Any) -> bool:
    """Whether n is an integer above 0, and no k is negative or NaN."""
    if n.__class__ is not int or n < 1:
        return False
    return (k.item(k.argmin()) if k.__class__ is ndarray else k) >= 0


def bdtr(k: Any, n: Any, p: Any) -> Any:
    """Distribution function of binomial."""
    return find("bdtr")(k, n, p) if _counted(k, n) else None


def bdtrc(k: Any, n: Any, p: Any) -> Any:
    """1 - bdtr(k, n, p)."""
    return find("bdtrc")(k, n, p) if _counted(k, n) else None


def bdtri(k: Any, n: Any, y: Any) -> Any:
    """The p with bdtr(k, n, p) = y."""
    return find("bdtri")(k, n, y) if _counted(k, n) else None


def nbdtr(k: Any, n: Any, p: Any) -> Any:
    """Distribution function of negative binomial."""
    return find("nbdtr")(k, n, p) if _counted(k, n) else None


def nbdtrc(k: Any, n: Any, p: Any) -> Any:
    """1 - nbdtr(k, n, p)."""
    return find("nbdtrc")(k, n, p) if _counted(k, n) else None


def nbdtri(k: Any, n: Any, y: Any) -> Any:
    """The p with nbdtr(k, n, p) = y."""
    return find("nbdtri")(k, n, y) if _counted(k, n) else None


def pdtr(k: Any, m: Any) -> Any:
    """Distribution function of Poisson."""
    return find("pdtr")(k, m) if _counted(k, 1) else None


def pdtrc(k: Any, m: Any) -> Any:
    """1 - pdtr(k, m)."""
    return find("pdtrc")(k, m) if _counted(k, 1) else None


def pdtri(k: Any, y: Any) -> Any:
    """The m with pdtr(k, m) = y."""
    return _known(find("pdtri")(k, y))


def chdtrc(v: Any, x: Any) -> Any:
    """1 - the distribution function of chi-square."""
    return _known(find("chdtrc")(v, x))


def gdtr(a: Any, b: Any, x: Any) -> Any:
    """Distribution function of gamma."""
    return _known(find("gdtr")(a, b, x))


def gdtrc(a: Any, b: Any, x: Any) -> Any:
    """1 - gdtr(a, b, x)."""
    return _known(find("gdtrc")(a, b, x))


def fdtr(n: Any, d: Any, x: Any) -> Any:
    """Distribution function of F."""
    return _known(find("fdtr")(n, d, x))


def fdtrc(n: Any, d: Any, x: Any) -> Any:
    """1 - fdtr(n, d, x)."""
    return _known(find("fdtrc")(n, d, x))


def fdtri(n: Any, d: Any, p: Any) -> Any:
    """The x with fdtr(n, d, x) = p."""
    return _known(find("fdtri")(n, d, p))
