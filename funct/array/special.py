"""`xp.special`: the names of scipy.special, on any array, with derivatives.

Every function is elementwise and broadcasts, but for the reductions `logsumexp`, `softmax` and
`log_softmax`. float32 stays float32, integers become float64. Values are SciPy's; derivatives are
exact formulas, in the parameters too. SciPy calls these functions itself when it is given an array
of this package and SCIPY_ARRAY_API=1 is set.

Example:
    >>> import funct as ft, funct.array as xp
    >>> float(ft.grad(xp.special.gammaln)(xp.asarray(3.0)))
    0.9227843350984671
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import normal_axes
from funct.array.creation import count, how_many
from funct.array.direct import direct, entrances
from funct.array.statistical import logsumexp as _logsumexp
from funct.array.tensor import Tensor
from funct.core import INEXACT
from funct.errors import ArgumentError
from funct.kernels.special import functions as kernels
from funct.ops import expm1 as expm1
from funct.ops import log1p as log1p
from funct.ops.special import bdtr as bdtr
from funct.ops.special import bdtrc as bdtrc
from funct.ops.special import bdtri as bdtri
from funct.ops.special import beta as beta
from funct.ops.special import betainc as betainc
from funct.ops.special import betaincc as betaincc
from funct.ops.special import betainccinv as betainccinv
from funct.ops.special import betaincinv as betaincinv
from funct.ops.special import betaln as betaln
from funct.ops.special import binom as binom
from funct.ops.special import boxcox as boxcox
from funct.ops.special import boxcox1p as boxcox1p
from funct.ops.special import cbrt as cbrt
from funct.ops.special import chdtr as chdtr
from funct.ops.special import chdtrc as chdtrc
from funct.ops.special import chdtri as chdtri
from funct.ops.special import cosdg as cosdg
from funct.ops.special import cosm1 as cosm1
from funct.ops.special import cotdg as cotdg
from funct.ops.special import dawsn as dawsn
from funct.ops.special import ellipe as ellipe
from funct.ops.special import ellipeinc as ellipeinc
from funct.ops.special import ellipk as ellipk
from funct.ops.special import ellipkinc as ellipkinc
from funct.ops.special import ellipkm1 as ellipkm1
from funct.ops.special import entr as entr
from funct.ops.special import erf as erf
from funct.ops.special import erfc as erfc
from funct.ops.special import erfcinv as erfcinv
from funct.ops.special import erfcx as erfcx
from funct.ops.special import erfi as erfi
from funct.ops.special import erfinv as erfinv
from funct.ops.special import exp1 as exp1
from funct.ops.special import exp2 as exp2
from funct.ops.special import exp10 as exp10
from funct.ops.special import expi as expi
from funct.ops.special import expit as expit
from funct.ops.special import expn as expn
from funct.ops.special import exprel as exprel
from funct.ops.special import fdtr as fdtr
from funct.ops.special import fdtrc as fdtrc
from funct.ops.special import fdtri as fdtri
from funct.ops.special import gamma as gamma
from funct.ops.special import gammainc as gammainc
from funct.ops.special import gammaincc as gammaincc
from funct.ops.special import gammainccinv as gammainccinv
from funct.ops.special import gammaincinv as gammaincinv
from funct.ops.special import gammaln as gammaln
from funct.ops.special import gammasgn as gammasgn
from funct.ops.special import gdtr as gdtr
from funct.ops.special import gdtrc as gdtrc
from funct.ops.special import hankel1 as hankel1
from funct.ops.special import hankel2 as hankel2
from funct.ops.special import huber as huber
from funct.ops.special import hyp0f1 as hyp0f1
from funct.ops.special import hyp1f1 as hyp1f1
from funct.ops.special import hyp2f1 as hyp2f1
from funct.ops.special import i0 as i0
from funct.ops.special import i0e as i0e
from funct.ops.special import i1 as i1
from funct.ops.special import i1e as i1e
from funct.ops.special import inv_boxcox as inv_boxcox
from funct.ops.special import inv_boxcox1p as inv_boxcox1p
from funct.ops.special import iv as iv
from funct.ops.special import ive as ive
from funct.ops.special import j0 as j0
from funct.ops.special import j1 as j1
from funct.ops.special import jv as jv
from funct.ops.special import k0 as k0
from funct.ops.special import k0e as k0e
from funct.ops.special import k1 as k1
from funct.ops.special import k1e as k1e
from funct.ops.special import kl_div as kl_div
from funct.ops.special import kn as kn
from funct.ops.special import kv as kv
from funct.ops.special import kve as kve
from funct.ops.special import log_expit as log_expit
from funct.ops.special import log_ndtr as log_ndtr
from funct.ops.special import loggamma as loggamma
from funct.ops.special import logit as logit
from funct.ops.special import lpmv as lpmv
from funct.ops.special import nbdtr as nbdtr
from funct.ops.special import nbdtrc as nbdtrc
from funct.ops.special import nbdtri as nbdtri
from funct.ops.special import ndtr as ndtr
from funct.ops.special import ndtri as ndtri
from funct.ops.special import ndtri_exp as ndtri_exp
from funct.ops.special import owens_t as owens_t
from funct.ops.special import pdtr as pdtr
from funct.ops.special import pdtrc as pdtrc
from funct.ops.special import pdtri as pdtri
from funct.ops.special import poch as poch
from funct.ops.special import polygamma as polygamma
from funct.ops.special import pseudo_huber as pseudo_huber
from funct.ops.special import psi as digamma
from funct.ops.special import psi as psi
from funct.ops.special import radian as radian
from funct.ops.special import rel_entr as rel_entr
from funct.ops.special import rgamma as rgamma
from funct.ops.special import sinc as sinc
from funct.ops.special import sindg as sindg
from funct.ops.special import spence as spence
from funct.ops.special import spherical_in as spherical_in
from funct.ops.special import spherical_jn as spherical_jn
from funct.ops.special import spherical_kn as spherical_kn
from funct.ops.special import spherical_yn as spherical_yn
from funct.ops.special import stdtr as stdtr
from funct.ops.special import stdtrit as stdtrit
from funct.ops.special import tandg as tandg
from funct.ops.special import wofz as wofz
from funct.ops.special import wrightomega as wrightomega
from funct.ops.special import xlog1py as xlog1py
from funct.ops.special import xlogy as xlogy
from funct.ops.special import y0 as y0
from funct.ops.special import y1 as y1
from funct.ops.special import yn as yn
from funct.ops.special import yv as yv
from funct.ops.special import zetac as zetac

__all__ = [
    "airy", "bdtr", "bdtrc", "bdtri", "beta", "betainc", "betaincc", "betainccinv", "betaincinv",
    "betaln", "binom", "boxcox", "boxcox1p", "cbrt", "chdtr", "chdtrc", "chdtri", "comb", "cosdg",
    "cosm1", "cotdg", "dawsn", "digamma", "ellipe", "ellipeinc", "ellipk", "ellipkinc", "ellipkm1",
    "entr", "erf", "erfc", "erfcinv", "erfcx", "erfi", "erfinv", "exp1", "exp10", "exp2", "expi",
    "expit", "expm1", "expn", "exprel", "factorial", "fdtr", "fdtrc", "fdtri", "fresnel", "gamma",
    "gammainc", "gammaincc", "gammainccinv", "gammaincinv", "gammaln", "gammasgn", "gdtr", "gdtrc",
    "hankel1", "hankel2", "huber", "hyp0f1", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e",
    "inv_boxcox", "inv_boxcox1p", "iv", "ive", "ivp", "j0", "j1", "jn", "jv", "jvp", "k0", "k0e",
    "k1", "k1e", "kl_div", "kn", "kv", "kve", "kvp", "lambertw", "log1p", "log_expit", "log_ndtr",
    "log_softmax", "loggamma", "logit", "logsumexp", "lpmv", "multigammaln", "nbdtr", "nbdtrc",
    "nbdtri", "ndtr", "ndtri", "ndtri_exp", "owens_t", "pdtr", "pdtrc", "pdtri", "perm", "poch",
    "polygamma", "pseudo_huber", "psi", "radian", "rel_entr", "rgamma", "shichi", "sici", "sinc",
    "sindg", "softmax", "softplus", "spence", "spherical_in", "spherical_jn", "spherical_kn",
    "spherical_yn", "stdtr", "stdtrit", "tandg", "wofz", "wrightomega", "xlog1py", "xlogy", "y0",
    "y1", "yn", "yv", "yvp", "zeta", "zetac",
]  # fmt: skip


def zeta(x: Any, q: Any = None, /) -> Any:
    """Riemann zeta function, or with q Hurwitz's, the sum of 1 / (k + q)**x over k = 0, 1, …

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> x = xp.asarray(2.0)
        >>> round(float(special.zeta(x)), 6), round(float(special.zeta(x, 2.0)), 6)  # pi**2 / 6
        (1.644934, 0.644934)
    """
    return ops.special.riemann_zeta(x) if q is None else ops.special.zeta(x, q)


@direct(kernels.several("fresnel"), gives=tuple)
def fresnel(z: Any, /) -> tuple[Any, Any]:
    """Fresnel integrals S and C: those of sin and cos of pi t**2 / 2 from 0 to z.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> [float(v) for v in special.fresnel(xp.asarray(xp.inf))]
        [0.5, 0.5]
    """
    return ops.special.fresnel_s(z), ops.special.fresnel_c(z)


@direct(kernels.several("sici"), gives=tuple)
def sici(x: Any, /) -> tuple[Any, Any]:
    """Sine and cosine integrals.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> [round(float(v), 6) for v in special.sici(xp.asarray(1.0))]
        [0.946083, 0.337404]
    """
    return ops.special.sici_s(x), ops.special.sici_c(x)


@direct(kernels.several("shichi"), gives=tuple)
def shichi(x: Any, /) -> tuple[Any, Any]:
    """Hyperbolic sine and cosine integrals.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> [round(float(v), 6) for v in special.shichi(xp.asarray(1.0))]
        [1.057251, 0.837867]
    """
    return ops.special.shichi_s(x), ops.special.shichi_c(x)


@direct(kernels.several("airy"), gives=tuple)
def airy(z: Any, /) -> tuple[Any, Any, Any, Any]:
    """Airy functions and their derivatives: Ai, Ai', Bi, Bi'.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> [round(float(v), 4) for v in special.airy(xp.asarray(0.0))]
        [0.355, -0.2588, 0.6149, 0.4483]
    """
    s = ops.special
    return s.airy_ai(z), s.airy_aip(z), s.airy_bi(z), s.airy_bip(z)


@direct(kernels.lambertw, arrays="doubles")
def lambertw(z: Any, k: int = 0) -> Any:
    """The w with w * exp(w) = z on branch k; complex, for real z too.

    Raises: UnsupportedOperandError: for a k that is no int; SciPy cuts it to one.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> w = special.lambertw(xp.asarray(1.0))
        >>> w.dtype, round(float(xp.real(w)), 6)
        (dtype('complex128'), 0.567143)
    """
    return ops.special.lambertw(z, count("lambertw", "k", k))


@direct("jv")
def jn(n: Any, x: Any, /) -> Any:
    """Bessel function of the first kind; another name of `jv`.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.jn(2, xp.asarray(1.0))), 6)
        0.114903
    """
    return ops.special.jv(n, x)


def _derivative(name: str, f: Any, v: Any, z: Any, n: int, sign: float) -> Any:
    """n-th derivative of a Bessel function: DLMF 10.6.7 and 10.29.5."""
    n = how_many(name, "n", n)
    if isinstance(v, Tensor) and v.dtype not in INEXACT:
        v = ops.astype(v, np.dtype(np.float64))  # unsigned orders would not go below 0
    y = f(v - n, z)
    for k in range(1, n + 1):
        y = y + sign**k * math.comb(n, k) * f(v - n + 2 * k, z)
    return y / 2.0**n


@direct("jvp")
def jvp(v: Any, z: Any, n: int = 1) -> Any:
    """n-th derivative of jv(v, z) in z.

    Raises: ArgumentError: when n is negative.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.jvp(0, xp.asarray(1.0))), 6)  # -j1(1)
        -0.440051
    """
    return _derivative("jvp", ops.special.jv, v, z, n, -1.0)


@direct("yvp")
def yvp(v: Any, z: Any, n: int = 1) -> Any:
    """n-th derivative of yv(v, z) in z.

    Raises: ArgumentError: when n is negative.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.yvp(0, xp.asarray(1.0))), 6)  # -y1(1)
        0.781213
    """
    return _derivative("yvp", ops.special.yv, v, z, n, -1.0)


@direct("ivp")
def ivp(v: Any, z: Any, n: int = 1) -> Any:
    """n-th derivative of iv(v, z) in z.

    Raises: ArgumentError: when n is negative.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.ivp(0, xp.asarray(1.0))), 6)  # i1(1)
        0.565159
    """
    return _derivative("ivp", ops.special.iv, v, z, n, 1.0)


@direct("kvp")
def kvp(v: Any, z: Any, n: int = 1) -> Any:
    """n-th derivative of kv(v, z) in z.

    Raises: ArgumentError: when n is negative.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.kvp(0, xp.asarray(1.0))), 6)  # -k1(1)
        -0.601907
    """
    return _derivative("kvp", ops.special.kv, v, z, n, 1.0) * (-1.0) ** n


_MOST_TERMS = 1 << 16  # each is an op


def multigammaln(a: Any, d: int) -> Any:
    """Logarithm of the multivariate gamma function of dimension d; NaN unless a > (d - 1) / 2.

    Raises: ArgumentError: when d is not positive, or above 65536.
    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> round(float(special.multigammaln(xp.asarray(2.0), 2)), 6)  # log(pi / 2)
        0.451583
    """
    d = how_many("multigammaln", "d", d)
    if not 0 < d <= _MOST_TERMS:
        raise ArgumentError(f"multigammaln: d must be between 1 and {_MOST_TERMS}, got {d}")
    y = ops.special.gammaln(a) + 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(1, d):
        y = y + ops.special.gammaln(a - 0.5 * j)
    return ops.where(ops.greater(a, 0.5 * (d - 1)), y, math.nan)


def factorial(n: Any) -> Any:
    """gamma(n + 1), and 0 for n < 0.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.factorial(xp.asarray([-1.0, 0.0, 5.0])).tolist()
        [0.0, 1.0, 120.0]
    """
    below = ops.less(n, 0)
    return ops.where(below, 0.0, ops.special.gamma(ops.where(below, 0.0, n) + 1.0))


def _within(n: Any, k: Any) -> tuple[Any, Any]:
    """Whether 0 <= k <= n, and k, which is 0 elsewhere."""
    inside = ops.logical_and(ops.greater_equal(k, 0), ops.less_equal(k, n))
    return inside, ops.where(inside, k, 0.0)


@direct(kernels.comb, arrays="doubles")
def comb(n: Any, k: Any) -> Any:
    """Number of choices of k out of n things; 0 unless 0 <= k <= n.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.comb(xp.asarray([5.0, 5.0]), xp.asarray([2.0, 6.0])).tolist()
        [10.0, 0.0]
    """
    inside, k = _within(n, k)
    return ops.where(inside, ops.special.binom(n, k), 0.0)


@direct(kernels.perm, arrays="doubles")
def perm(n: Any, k: Any) -> Any:
    """Number of ordered choices of k out of n things; 0 unless 0 <= k <= n.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.perm(xp.asarray([5.0, 5.0]), xp.asarray([2.0, 6.0])).tolist()
        [20.0, 0.0]
    """
    inside, k = _within(n, k)
    return ops.where(inside, ops.special.poch(n - k + 1.0, k), 0.0)


def softplus(x: Any) -> Any:
    """log(1 + exp(x)) without overflow.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> special.softplus(xp.asarray([-1000.0, 1000.0])).tolist()
        [0.0, 1000.0]
    """
    return ops.logaddexp(x, 0.0)


def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    """log(sum(b * exp(a))) over axis, without overflow; `xp.logsumexp` in SciPy's signature.

    Example:
        >>> import funct.array as xp
        >>> from funct.array import special
        >>> float(special.logsumexp(xp.asarray([1000.0, 1000.0]), b=xp.asarray([0.0, 1.0])))
        1000.0
    """
    return _logsumexp(a, axis=axis, keepdims=keepdims, b=b, return_sign=return_sign)


def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x)) over axis (None: all), without overflow. NaN beside inf and of -inf.

    Example:
        >>> import funct.array as xp
        >>> xp.special.softmax(xp.asarray([0.0, -float("inf"), 0.0])).tolist()
        [0.5, 0.0, 0.5]
    """
    axes = normal_axes("softmax", axis, len(x.shape))
    if 0 in x.shape:
        return x - 0.0
    y = ops.exp(x - _top(x, axes))
    return y / ops.reduce_sum(y, axes, True)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """log(softmax(x)), accurate where softmax is near 0 or 1.

    Example:
        >>> import funct.array as xp
        >>> xp.special.log_softmax(xp.asarray([0.0, -1000.0])).tolist()
        [0.0, -1000.0]
    """
    axes = normal_axes("log_softmax", axis, len(x.shape))
    if 0 in x.shape:
        return x - 0.0
    shifted = x - _top(x, axes)
    return shifted - ops.log(ops.reduce_sum(ops.exp(shifted), axes, True))


def _top(x: Any, axes: Any) -> Any:
    """The greatest element, a constant to derivatives. Where it is infinite, x - top is NaN, and so
    are all shares, as everywhere: infinity over itself is no number.
    """
    return ops.stop_gradient(ops.reduce_max(ops.real(x) if x.dtype.kind == "c" else x, axes, True))


entrances(globals())
