"""Distribution functions in `xp.special`, made of incomplete gamma and beta functions.

Where SciPy takes the same way, its own function is the direct one; those of the binomial and of F
end in other digits. Counts k are rounded down. What lies outside of the parameters is NaN.
"""

from __future__ import annotations

import math
from typing import Any

from funct import ops
from funct.array.direct import direct
from funct.kernels import distributions as kernels
from funct.ops.special import (
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    gammainc,
    gammaincc,
    gammainccinv,
)

__all__ = [
    "bdtr", "bdtrc", "bdtri", "chdtr", "chdtrc", "chdtri", "fdtr", "fdtrc", "fdtri", "gdtr",
    "gdtrc", "nbdtr", "nbdtrc", "nbdtri", "pdtr", "pdtrc", "pdtri",
]  # fmt: skip


def _whole(k: Any) -> Any:
    """k rounded down; a Python number stays one."""
    return float(math.floor(k)) if isinstance(k, int | float) else ops.floor(k)


@direct("chdtr")
def chdtr(v: Any, x: Any, /) -> Any:
    """Distribution function of chi-square with v degrees of freedom."""
    return gammainc(0.5 * v, 0.5 * x)


@direct(kernels.chdtrc, arrays="doubles")
def chdtrc(v: Any, x: Any, /) -> Any:
    """1 - chdtr(v, x), without cancellation; 1 for x < 0."""
    return gammaincc(0.5 * v, 0.5 * ops.maximum(x, 0.0))


@direct("chdtri")
def chdtri(v: Any, p: Any, /) -> Any:
    """The x with chdtrc(v, x) = p."""
    return 2.0 * gammainccinv(0.5 * v, p)


@direct(kernels.gdtr, arrays="doubles")
def gdtr(a: Any, b: Any, x: Any, /) -> Any:
    """Distribution function of gamma with rate a and shape b."""
    return gammainc(b, a * x)


@direct(kernels.gdtrc, arrays="doubles")
def gdtrc(a: Any, b: Any, x: Any, /) -> Any:
    """1 - gdtr(a, b, x), without cancellation."""
    return gammaincc(b, a * x)


@direct(kernels.pdtr, arrays="doubles")
def pdtr(k: Any, m: Any, /) -> Any:
    """Distribution function of Poisson with mean m: the chance of at most k events."""
    return gammaincc(_whole(k) + 1.0, m)


@direct(kernels.pdtrc, arrays="doubles")
def pdtrc(k: Any, m: Any, /) -> Any:
    """1 - pdtr(k, m), without cancellation."""
    return gammainc(_whole(k) + 1.0, m)


@direct(kernels.pdtri, arrays="doubles")
def pdtri(k: Any, y: Any, /) -> Any:
    """The m with pdtr(k, m) = y."""
    return gammainccinv(_whole(k) + 1.0, y)


def _binomial(f: Any, full: float, k: Any, n: Any, p: Any) -> Any:
    whole = _whole(k)
    rest = n - whole
    if isinstance(rest, int | float):
        rest = rest + 0.0 * p  # in the dtype of p
    at_end = ops.equal(rest, 0)
    y = f(whole + 1.0, ops.where(at_end, 1.0, rest), p)
    return ops.where(at_end, ops.where(ops.isnan(y), y, full), y)


def bdtr(k: Any, n: Any, p: Any, /) -> Any:
    """Distribution function of binomial: the chance of at most k successes in n of chance p."""
    return _binomial(betaincc, 1.0, k, n, p)


def bdtrc(k: Any, n: Any, p: Any, /) -> Any:
    """1 - bdtr(k, n, p), without cancellation."""
    return _binomial(betainc, 0.0, k, n, p)


def bdtri(k: Any, n: Any, y: Any, /) -> Any:
    """The p with bdtr(k, n, p) = y."""
    whole = _whole(k)
    return betainccinv(whole + 1.0, n - whole, y)


def nbdtr(k: Any, n: Any, p: Any, /) -> Any:
    """Distribution function of negative binomial: at most k failures before success n."""
    return betainc(n, _whole(k) + 1.0, p)


def nbdtrc(k: Any, n: Any, p: Any, /) -> Any:
    """1 - nbdtr(k, n, p), without cancellation."""
    return betaincc(n, _whole(k) + 1.0, p)


def nbdtri(k: Any, n: Any, y: Any, /) -> Any:
    """The p with nbdtr(k, n, p) = y."""
    return betaincinv(n, _whole(k) + 1.0, y)


def _f_parts(n: Any, d: Any, x: Any) -> tuple[Any, Any, Any]:
    """Whether n x < d, and the parts of d and of n x in their sum; 1/2 for the one not taken."""
    up = n * x
    small = ops.less(up, d)
    whole = d + up
    return small, ops.where(small, 0.5, d / whole), ops.where(small, up / whole, 0.5)


def fdtr(dfn: Any, dfd: Any, x: Any, /) -> Any:
    """Distribution function of F with dfn and dfd degrees of freedom."""
    small, low, high = _f_parts(dfn, dfd, x)
    near = betainc(0.5 * dfn, 0.5 * dfd, high)
    return ops.where(small, near, betaincc(0.5 * dfd, 0.5 * dfn, low))


def fdtrc(dfn: Any, dfd: Any, x: Any, /) -> Any:
    """1 - fdtr(dfn, dfd, x), without cancellation."""
    small, low, high = _f_parts(dfn, dfd, x)
    near = betaincc(0.5 * dfn, 0.5 * dfd, high)
    return ops.where(small, near, betainc(0.5 * dfd, 0.5 * dfn, low))


@direct(kernels.fdtri, arrays="doubles")
def fdtri(dfn: Any, dfd: Any, p: Any, /) -> Any:
    """The x with fdtr(dfn, dfd, x) = p."""
    high = betaincinv(0.5 * dfn, 0.5 * dfd, p)
    low = betainccinv(0.5 * dfd, 0.5 * dfn, p)  # 1 − high, with its own digits
    return dfd * high / (dfn * low)
