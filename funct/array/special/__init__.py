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

from funct.array.direct import entrances as _entrances
from funct.array.special.bessel import airy as airy
from funct.array.special.bessel import ivp as ivp
from funct.array.special.bessel import jn as jn
from funct.array.special.bessel import jvp as jvp
from funct.array.special.bessel import kvp as kvp
from funct.array.special.bessel import yvp as yvp
from funct.array.special.factorials import comb as comb
from funct.array.special.factorials import factorial as factorial
from funct.array.special.factorials import multigammaln as multigammaln
from funct.array.special.factorials import perm as perm
from funct.array.special.factorials import zeta as zeta
from funct.array.special.integrals import fresnel as fresnel
from funct.array.special.integrals import lambertw as lambertw
from funct.array.special.integrals import shichi as shichi
from funct.array.special.integrals import sici as sici
from funct.array.special.shares import log_softmax as log_softmax
from funct.array.special.shares import logsumexp as logsumexp
from funct.array.special.shares import softmax as softmax
from funct.array.special.shares import softplus as softplus
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


_entrances(globals())
