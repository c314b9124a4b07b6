"""Calls of SciPy on arrays of any namespace: name -> function of a positive (6, 3) array.

`DIFFERENTIABLE` are those whose whole computation is in the namespace, so that derivatives, vmap
and jit pass through them; `VALUES` are compared with NumPy alone. `REFUSED` write into arrays.
"""

from collections.abc import Callable
from typing import Any

import scipy.cluster.vq as vq
import scipy.fft as sfft
import scipy.integrate as integrate
import scipy.optimize as optimize
import scipy.signal as signal
import scipy.special as special
import scipy.stats as stats
from scipy.spatial.transform import Rotation

__all__ = ["DIFFERENTIABLE", "REFUSED", "VALUES"]

Call = Callable[[Any], Any]


def _namespace(x: Any) -> Any:
    return x.__array_namespace__()


def _observed(x: Any) -> Any:
    """Whole numbers, as counts are."""
    return _namespace(x).floor(x * 10.0) + 1.0


def _codebook(x: Any) -> Any:
    return x[:2, :] + 0.1


def _rotated(x: Any) -> Any:
    return Rotation.from_rotvec(x).apply(x)


DIFFERENTIABLE: dict[str, Call] = {
    "special.logsumexp": lambda x: special.logsumexp(x, axis=0),
    "special.logsumexp all": special.logsumexp,
    "special.logsumexp b": lambda x: special.logsumexp(x, b=2.0 * x, axis=1),
    "special.softmax": lambda x: special.softmax(x, axis=1),
    "special.log_softmax": lambda x: special.log_softmax(x, axis=1),
    "special.xlogy": lambda x: special.xlogy(x, x + 1.0),
    "special.rel_entr": lambda x: special.rel_entr(x, x + 1.0),
    "special.entr": special.entr,
    "special.expit": special.expit,
    "special.logit": lambda x: special.logit(x / 4.0),
    "special.erf": special.erf,
    "special.erfc": special.erfc,
    "special.gammaln": special.gammaln,
    "special.ndtr": special.ndtr,
    "special.log_ndtr": special.log_ndtr,
    "special.i0": special.i0,
    "special.betainc": lambda x: special.betainc(x, x + 1.0, x / 4.0),
    "special.chdtr": lambda x: special.chdtr(x, x),
    "special.stdtr": lambda x: special.stdtr(x, x),
    "stats.entropy": lambda x: stats.entropy(x, axis=0),
    "stats.entropy relative": lambda x: stats.entropy(x, x * x, axis=0),
    "stats.zscore": lambda x: stats.zscore(x, axis=0),
    "stats.zmap": lambda x: stats.zmap(x[:3], x, axis=0),
    "stats.variation": lambda x: stats.variation(x, axis=0),
    "stats.gmean": lambda x: stats.gmean(x, axis=0),
    "stats.hmean": lambda x: stats.hmean(x, axis=0),
    "stats.pmean": lambda x: stats.pmean(x, 3, axis=0),
    "stats.moment": lambda x: stats.moment(x, 3, axis=0),
    "stats.skew": lambda x: stats.skew(x, axis=0),
    "stats.kurtosis": lambda x: stats.kurtosis(x, axis=0),
    "stats.kstat": lambda x: stats.kstat(x, 2, axis=0),
    "stats.kstatvar": lambda x: stats.kstatvar(x, 2, axis=0),
    "stats.sem": lambda x: stats.sem(x, axis=0),
    "stats.tmean": lambda x: stats.tmean(x, axis=0),
    "stats.tvar": lambda x: stats.tvar(x, axis=0),
    "stats.tstd": lambda x: stats.tstd(x, axis=0),
    "stats.describe": lambda x: stats.describe(x, axis=0).variance,
    "stats.ttest_1samp": lambda x: stats.ttest_1samp(x, 0.5, axis=0).statistic,
    "stats.ttest_ind": lambda x: stats.ttest_ind(x[:3], x[3:], axis=0).statistic,
    "stats.pearsonr": lambda x: stats.pearsonr(x[:, 0], x[:, 1]).statistic,
    "stats.jarque_bera": lambda x: stats.jarque_bera(x, axis=0).statistic,
    "stats.power_divergence": lambda x: stats.power_divergence(x, ddof=1, axis=0).statistic,
    "stats.circmean": lambda x: stats.circmean(x, axis=0),
    "stats.circvar": lambda x: stats.circvar(x, axis=0),
    "stats.circstd": lambda x: stats.circstd(x, axis=0),
    "stats.directional_stats": lambda x: stats.directional_stats(x).mean_direction,
    "stats.boxcox_llf": lambda x: stats.boxcox_llf(0.5, x, axis=0),
    "stats.chisquare": lambda x: stats.chisquare(_observed(x)[:, 0], _observed(x)[:, 0]).pvalue,
    "stats.ttest_rel": lambda x: stats.ttest_rel(x[:, 0], x[:, 1]).pvalue,
    "stats.skewtest": lambda x: stats.skewtest(_namespace(x).tile(x[:, 0], (3,))).statistic,
    "stats.quantile": lambda x: stats.quantile(x, 0.5, axis=0),
    "stats.gzscore": lambda x: stats.gzscore(x, axis=0),
    "rotation.from_rotvec": lambda x: Rotation.from_rotvec(x).as_matrix(),
    "rotation.apply": _rotated,
    "rotation.as_quat": lambda x: Rotation.from_euler("xyz", x).as_quat(),
    "rotation.as_rotvec": lambda x: Rotation.from_rotvec(x).as_rotvec(),
    "rotation.magnitude": lambda x: Rotation.from_rotvec(x).magnitude(),
    "rotation.product": lambda x: (
        Rotation.from_rotvec(x) * Rotation.from_rotvec(x * 0.5).inv()
    ).as_matrix(),
    "fft.rfft": lambda x: abs(sfft.rfft(x, axis=0)),
    "fft.fftn": lambda x: abs(sfft.fftn(x)),
    "fft.irfft": lambda x: sfft.irfft(x, axis=0),
    "fft.hfft": lambda x: sfft.hfft(x, axis=0),
    "fft.fftshift": sfft.fftshift,
    "integrate.trapezoid": lambda x: integrate.trapezoid(x, axis=0),
    "integrate.cumulative_trapezoid": lambda x: integrate.cumulative_trapezoid(x, axis=0),
    "integrate.cumulative_simpson": lambda x: integrate.cumulative_simpson(x, axis=0),
    "cluster.whiten": vq.whiten,
    "optimize.rosen": lambda x: optimize.rosen(x[:, 0]),
    "optimize.rosen_der": lambda x: optimize.rosen_der(x[:, 0]),
    "optimize.rosen_hess_prod": lambda x: optimize.rosen_hess_prod(x[:, 0], x[:, 1]),
    "signal.hilbert": lambda x: abs(signal.hilbert(x, axis=0)),
    "signal.fftconvolve": lambda x: signal.fftconvolve(x[:, 0], x[:3, 1]),
    "signal.resample": lambda x: signal.resample(x, 4, axis=0),
}

VALUES: dict[str, Call] = {
    "signal.windows.hann": lambda x: signal.windows.hann(7, xp=_namespace(x)),
    "signal.windows.kaiser": lambda x: signal.windows.kaiser(7, 2.0, xp=_namespace(x)),
    "signal.windows.gaussian": lambda x: signal.windows.gaussian(7, 2.0, xp=_namespace(x)),
    "signal.windows.tukey": lambda x: signal.windows.tukey(7, 0.5, xp=_namespace(x)),
    "signal.windows.chebwin": lambda x: signal.windows.chebwin(8, 60, xp=_namespace(x)),
    "signal.windows.taylor": lambda x: signal.windows.taylor(8, xp=_namespace(x)),
    "fft.fftfreq": lambda x: sfft.fftfreq(6, xp=_namespace(x)),
    "cluster.vq": lambda x: vq.vq(x, _codebook(x))[0],
    "cluster.vq, distances": lambda x: vq.vq(x, _codebook(x))[1],
    "cluster.kmeans": lambda x: vq.kmeans(x, _codebook(x))[0],
    "stats.rankdata": lambda x: stats.rankdata(x, axis=0),
    "signal.convolve": lambda x: signal.convolve(x[:, 0], x[:3, 1]),
    "signal.medfilt": lambda x: signal.medfilt(x, 3),
    "stats.obrientransform": lambda x: stats.obrientransform(x[:, 0], x[:, 1])[0],
    "integrate.simpson": lambda x: integrate.simpson(x, axis=0),
    "signal.detrend": lambda x: signal.detrend(x, axis=0, type="constant"),
}

# SciPy writes into its arrays here, which a Tensor refuses: these need the handles of `rebind`.
REFUSED = {
    "special.logsumexp", "special.logsumexp all", "special.logsumexp b", "special.log_softmax",
    "stats.zscore", "stats.pearsonr", "stats.boxcox_llf", "rotation.as_quat", "rotation.product",
    "integrate.cumulative_simpson", "cluster.whiten", "optimize.rosen_der",
    "optimize.rosen_hess_prod", "signal.hilbert", "signal.resample", "signal.windows.chebwin",
    "signal.windows.taylor", "stats.skewtest", "stats.quantile", "stats.gzscore",
}  # fmt: skip
