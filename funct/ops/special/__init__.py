"""Rooms of the special functions, one file per family of chapters of the DLMF."""

from funct.ops.special.airy import airy_ai as airy_ai
from funct.ops.special.airy import airy_aip as airy_aip
from funct.ops.special.airy import airy_bi as airy_bi
from funct.ops.special.airy import airy_bip as airy_bip
from funct.ops.special.bessel import hankel1 as hankel1
from funct.ops.special.bessel import hankel2 as hankel2
from funct.ops.special.bessel import j0 as j0
from funct.ops.special.bessel import j1 as j1
from funct.ops.special.bessel import jv as jv
from funct.ops.special.bessel import jv_slope as jv_slope
from funct.ops.special.bessel import y0 as y0
from funct.ops.special.bessel import y1 as y1
from funct.ops.special.bessel import yn as yn
from funct.ops.special.bessel import yv as yv
from funct.ops.special.bessel import yv_slope as yv_slope
from funct.ops.special.box_cox import boxcox as boxcox
from funct.ops.special.box_cox import boxcox1p as boxcox1p
from funct.ops.special.box_cox import inv_boxcox as inv_boxcox
from funct.ops.special.box_cox import inv_boxcox1p as inv_boxcox1p
from funct.ops.special.distributions import bdtr as bdtr
from funct.ops.special.distributions import bdtrc as bdtrc
from funct.ops.special.distributions import bdtri as bdtri
from funct.ops.special.distributions import chdtr as chdtr
from funct.ops.special.distributions import chdtrc as chdtrc
from funct.ops.special.distributions import chdtri as chdtri
from funct.ops.special.distributions import fdtr as fdtr
from funct.ops.special.distributions import fdtrc as fdtrc
from funct.ops.special.distributions import fdtri as fdtri
from funct.ops.special.distributions import gdtr as gdtr
from funct.ops.special.distributions import gdtrc as gdtrc
from funct.ops.special.distributions import nbdtr as nbdtr
from funct.ops.special.distributions import nbdtrc as nbdtrc
from funct.ops.special.distributions import nbdtri as nbdtri
from funct.ops.special.distributions import pdtr as pdtr
from funct.ops.special.distributions import pdtrc as pdtrc
from funct.ops.special.distributions import pdtri as pdtri
from funct.ops.special.elementary import cbrt as cbrt
from funct.ops.special.elementary import cosdg as cosdg
from funct.ops.special.elementary import cosm1 as cosm1
from funct.ops.special.elementary import cotdg as cotdg
from funct.ops.special.elementary import exp2 as exp2
from funct.ops.special.elementary import exp10 as exp10
from funct.ops.special.elementary import radian as radian
from funct.ops.special.elementary import sindg as sindg
from funct.ops.special.elementary import tandg as tandg
from funct.ops.special.entropies import entr as entr
from funct.ops.special.entropies import huber as huber
from funct.ops.special.entropies import kl_div as kl_div
from funct.ops.special.entropies import pseudo_huber as pseudo_huber
from funct.ops.special.entropies import rel_entr as rel_entr
from funct.ops.special.entropies import xlog1py as xlog1py
from funct.ops.special.entropies import xlogy as xlogy
from funct.ops.special.error import dawsn as dawsn
from funct.ops.special.error import erf as erf
from funct.ops.special.error import erfc as erfc
from funct.ops.special.error import erfcinv as erfcinv
from funct.ops.special.error import erfcx as erfcx
from funct.ops.special.error import erfi as erfi
from funct.ops.special.error import erfinv as erfinv
from funct.ops.special.error import fresnel_c as fresnel_c
from funct.ops.special.error import fresnel_s as fresnel_s
from funct.ops.special.error import log_ndtr as log_ndtr
from funct.ops.special.error import ndtr as ndtr
from funct.ops.special.error import ndtri as ndtri
from funct.ops.special.error import ndtri_exp as ndtri_exp
from funct.ops.special.error import owens_t as owens_t
from funct.ops.special.error import wofz as wofz
from funct.ops.special.exponential_integrals import exp1 as exp1
from funct.ops.special.exponential_integrals import expi as expi
from funct.ops.special.exponential_integrals import expn as expn
from funct.ops.special.exponential_integrals import expn_slope as expn_slope
from funct.ops.special.exponential_integrals import lambertw as lambertw
from funct.ops.special.exponential_integrals import shichi_c as shichi_c
from funct.ops.special.exponential_integrals import shichi_s as shichi_s
from funct.ops.special.exponential_integrals import sici_c as sici_c
from funct.ops.special.exponential_integrals import sici_s as sici_s
from funct.ops.special.exponential_integrals import spence as spence
from funct.ops.special.exponential_integrals import wrightomega as wrightomega
from funct.ops.special.gamma import beta as beta
from funct.ops.special.gamma import betaln as betaln
from funct.ops.special.gamma import betaln_slope as betaln_slope
from funct.ops.special.gamma import binom as binom
from funct.ops.special.gamma import gamma as gamma
from funct.ops.special.gamma import gammaln as gammaln
from funct.ops.special.gamma import gammasgn as gammasgn
from funct.ops.special.gamma import loggamma as loggamma
from funct.ops.special.gamma import poch as poch
from funct.ops.special.gamma import polygamma as polygamma
from funct.ops.special.gamma import psi as psi
from funct.ops.special.gamma import rgamma as rgamma
from funct.ops.special.gamma import riemann_slope as riemann_slope
from funct.ops.special.gamma import riemann_zeta as riemann_zeta
from funct.ops.special.gamma import zeta as zeta
from funct.ops.special.gamma import zeta_slope as zeta_slope
from funct.ops.special.gamma import zetac as zetac
from funct.ops.special.hypergeometric import ellipe as ellipe
from funct.ops.special.hypergeometric import ellipeinc as ellipeinc
from funct.ops.special.hypergeometric import ellipeinc_slope as ellipeinc_slope
from funct.ops.special.hypergeometric import ellipem1 as ellipem1
from funct.ops.special.hypergeometric import ellipk as ellipk
from funct.ops.special.hypergeometric import ellipkinc as ellipkinc
from funct.ops.special.hypergeometric import ellipkinc_slope as ellipkinc_slope
from funct.ops.special.hypergeometric import ellipkm1 as ellipkm1
from funct.ops.special.hypergeometric import exprel as exprel
from funct.ops.special.hypergeometric import exprel_slope as exprel_slope
from funct.ops.special.hypergeometric import hyp0f1 as hyp0f1
from funct.ops.special.hypergeometric import hyp1f1 as hyp1f1
from funct.ops.special.hypergeometric import hyp2f1 as hyp2f1
from funct.ops.special.hypergeometric import lpmv as lpmv
from funct.ops.special.incomplete import beta_density as beta_density
from funct.ops.special.incomplete import betainc as betainc
from funct.ops.special.incomplete import betainc_slope as betainc_slope
from funct.ops.special.incomplete import betaincc as betaincc
from funct.ops.special.incomplete import betainccinv as betainccinv
from funct.ops.special.incomplete import betaincinv as betaincinv
from funct.ops.special.incomplete import gamma_density as gamma_density
from funct.ops.special.incomplete import gammainc as gammainc
from funct.ops.special.incomplete import gammainc_slope as gammainc_slope
from funct.ops.special.incomplete import gammaincc as gammaincc
from funct.ops.special.incomplete import gammainccinv as gammainccinv
from funct.ops.special.incomplete import gammaincinv as gammaincinv
from funct.ops.special.logistic import expit as expit
from funct.ops.special.logistic import log_expit as log_expit
from funct.ops.special.logistic import logit as logit
from funct.ops.special.modified_bessel import i0 as i0
from funct.ops.special.modified_bessel import i0e as i0e
from funct.ops.special.modified_bessel import i1 as i1
from funct.ops.special.modified_bessel import i1e as i1e
from funct.ops.special.modified_bessel import iv as iv
from funct.ops.special.modified_bessel import ive as ive
from funct.ops.special.modified_bessel import ive_slope as ive_slope
from funct.ops.special.modified_bessel import k0 as k0
from funct.ops.special.modified_bessel import k0e as k0e
from funct.ops.special.modified_bessel import k1 as k1
from funct.ops.special.modified_bessel import k1e as k1e
from funct.ops.special.modified_bessel import kn as kn
from funct.ops.special.modified_bessel import kv as kv
from funct.ops.special.modified_bessel import kve as kve
from funct.ops.special.modified_bessel import kve_slope as kve_slope
from funct.ops.special.spherical import sinc as sinc
from funct.ops.special.spherical import spherical_in as spherical_in
from funct.ops.special.spherical import spherical_jn as spherical_jn
from funct.ops.special.spherical import spherical_kn as spherical_kn
from funct.ops.special.spherical import spherical_yn as spherical_yn
from funct.ops.special.student import stdtr as stdtr
from funct.ops.special.student import stdtrit as stdtrit

__all__ = [
    "airy_ai", "airy_aip", "airy_bi", "airy_bip", "bdtr", "bdtrc", "bdtri", "beta", "beta_density",
    "betainc", "betainc_slope", "betaincc", "betainccinv", "betaincinv", "betaln", "betaln_slope",
    "binom", "boxcox", "boxcox1p", "cbrt", "chdtr", "chdtrc", "chdtri", "cosdg", "cosm1", "cotdg",
    "dawsn", "ellipe", "ellipeinc", "ellipeinc_slope", "ellipem1", "ellipk", "ellipkinc",
    "ellipkinc_slope", "ellipkm1", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfi", "erfinv",
    "exp1", "exp10", "exp2", "expi", "expit", "expn", "expn_slope", "exprel", "exprel_slope",
    "fdtr", "fdtrc", "fdtri", "fresnel_c", "fresnel_s", "gamma", "gamma_density", "gammainc",
    "gammainc_slope", "gammaincc", "gammainccinv", "gammaincinv", "gammaln", "gammasgn", "gdtr",
    "gdtrc", "hankel1", "hankel2", "huber", "hyp0f1", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e",
    "inv_boxcox", "inv_boxcox1p", "iv", "ive", "ive_slope", "j0", "j1", "jv", "jv_slope", "k0",
    "k0e", "k1", "k1e", "kl_div", "kn", "kv", "kve", "kve_slope", "lambertw", "log_expit",
    "log_ndtr", "loggamma", "logit", "lpmv", "nbdtr", "nbdtrc", "nbdtri", "ndtr", "ndtri",
    "ndtri_exp", "owens_t", "pdtr", "pdtrc", "pdtri", "poch", "polygamma",
    "pseudo_huber", "psi", "radian", "rel_entr", "rgamma", "riemann_slope", "riemann_zeta",
    "shichi_c", "shichi_s", "sici_c", "sici_s", "sinc", "sindg", "spence", "spherical_in",
    "spherical_jn", "spherical_kn", "spherical_yn", "stdtr", "stdtrit", "tandg", "wofz",
    "wrightomega", "xlog1py", "xlogy", "y0", "y1", "yn", "yv", "yv_slope", "zeta", "zeta_slope",
    "zetac",
]  # fmt: skip
