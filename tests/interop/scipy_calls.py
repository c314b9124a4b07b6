"""Calls of SciPy on arrays of any namespace: name -> function of a positive (6, 3) array.

Statistics and special functions, clusters, linear algebra and images; `scipy_numeric_calls.py` has
the others. `DIFFERENTIABLE` are those whose whole computation is in the namespace, so that
derivatives, vmap and jit pass through them; `VALUES`, in which SciPy asks for NumPy's arrays, are
compared with NumPy alone. `REFUSED` write into arrays.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
import scipy.cluster.hierarchy as hierarchy
import scipy.cluster.vq as vq
import scipy.linalg as linalg
import scipy.ndimage as ndimage
import scipy.special as special
import scipy.stats as stats
from scipy.stats import contingency

__all__ = ["DIFFERENTIABLE", "REFUSED", "VALUES"]

Call = Callable[[Any], Any]


def _namespace(x: Any) -> Any:
    return x.__array_namespace__()


def _observed(x: Any) -> Any:
    """Whole numbers, as counts are."""
    return _namespace(x).floor(x * 10.0) + 1.0


def _labels(x: Any) -> Any:
    return _namespace(x).asarray([0, 1, 0, 1, 1, 0])


def _codebook(x: Any) -> Any:
    return x[:2, :] + 0.1


def _mean(x: Any, axis: int) -> Any:
    return _namespace(x).mean(x, axis=axis)


DIFFERENTIABLE: dict[str, Call] = {
    "cluster.whiten": vq.whiten,
    "linalg.block_diag": lambda x: linalg.block_diag(x, x),
    "linalg.fiedler": lambda x: linalg.fiedler(x[:, 0]),
    "linalg.orthogonal_procrustes": lambda x: linalg.orthogonal_procrustes(x, x[:, ::-1])[0],
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
    "special.kl_div": lambda x: special.kl_div(x, x**2),
    "special.erfcx": special.erfcx,
    "special.ndtri": lambda x: special.ndtri(x / 4.0),
    "special.erfinv": lambda x: special.erfinv(x / 4.0),
    "special.psi": special.psi,
    "special.polygamma": lambda x: special.polygamma(2, x),
    "special.zeta": lambda x: special.zeta(x + 1.5, x),
    "special.gammainc": lambda x: special.gammainc(x, x + 0.3),
    "special.gammaincinv": lambda x: special.gammaincinv(x + 1, x / 4.0),
    "special.betaincinv": lambda x: special.betaincinv(x + 1, x + 0.5, x / 4.0),
    "special.betaln": lambda x: special.betaln(x, x + 1),
    "special.binom": lambda x: special.binom(x + 2, x),
    "special.j0": special.j0,
    "special.k1": special.k1,
    "special.y1": special.y1,
    "special.i1e": special.i1e,
    "special.huber": lambda x: special.huber(0.7, x),
    "special.pseudo_huber": lambda x: special.pseudo_huber(0.7, x),
    "special.xlog1py": lambda x: special.xlog1py(x, x),
    "special.boxcox": lambda x: special.boxcox(x, x),
    "special.inv_boxcox": lambda x: special.inv_boxcox(x, x),
    "special.multigammaln": lambda x: special.multigammaln(x + 2, 2),
    "special.expn": lambda x: special.expn(2, x),
    "special.exprel": special.exprel,
    "special.spence": special.spence,
    "special.ellipk": lambda x: special.ellipk(x / 3.0),
    "special.fdtr": lambda x: special.fdtr(x, x + 1, x),
    "special.gdtr": lambda x: special.gdtr(x, x + 1, x),
    "special.stdtrit": lambda x: special.stdtrit(x + 1, x / 4.0),
    "special.chdtri": lambda x: special.chdtri(x + 1, x / 4.0),
    "special.poch": lambda x: special.poch(x, x + 1),
    "special.rgamma": special.rgamma,
    "special.loggamma": special.loggamma,
    "special.cbrt": special.cbrt,
    "special.exp1": special.exp1,
    "special.expi": special.expi,
    "special.sinc": special.sinc,
    "special.pdtr": lambda x: special.pdtr(3.0, x),
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
    "stats.f_oneway": lambda x: stats.f_oneway(x[:, 0], x[:, 1], x[:, 2]).statistic,
    "stats.f_oneway p": lambda x: stats.f_oneway(x[:, 0], x[:, 1], x[:, 2]).pvalue,
    "stats.bartlett": lambda x: stats.bartlett(x[:, 0], x[:, 1]).statistic,
    "stats.levene": lambda x: stats.levene(x[:, 0], x[:, 1], center="mean").statistic,
    "stats.alexandergovern": lambda x: stats.alexandergovern(x[:, 0], x[:, 1]).statistic,
    "stats.ttest_1samp p": lambda x: stats.ttest_1samp(x, 0.5, axis=0).pvalue,
    "stats.ttest_ind p": lambda x: stats.ttest_ind(x[:3], x[3:], axis=0, equal_var=False).pvalue,
    "stats.ttest ci": lambda x: stats.ttest_1samp(x[:, 0], 0.5).confidence_interval().high,
    "stats.ttest_ind_from_stats": lambda x: (
        stats.ttest_ind_from_stats(x[0, 0], x[0, 1], 10, x[1, 0], x[1, 1], 12).statistic
    ),
    "stats.tsem": lambda x: stats.tsem(x, axis=0),
    "stats.tmin": lambda x: stats.tmin(x, axis=0),
    "stats.tmax": lambda x: stats.tmax(x, axis=0),
    "stats.tmean limits": lambda x: stats.tmean(x, (0.3, 1.8), axis=0),
    "stats.gstd": lambda x: stats.gstd(x, axis=0),
    "stats.trim_mean": lambda x: stats.trim_mean(x, 0.2, axis=0),
    "stats.iqr": lambda x: stats.iqr(x, axis=0),
    "stats.median_abs_deviation": lambda x: stats.median_abs_deviation(x, axis=0),
    "stats.lmoment": lambda x: stats.lmoment(x, axis=0),
    "stats.differential_entropy": lambda x: stats.differential_entropy(x, axis=0),
    "stats.pointbiserialr": lambda x: stats.pointbiserialr(_labels(x), x[:, 1]).statistic,
    "stats.pearsonr ci": lambda x: stats.pearsonr(x[:, 0], x[:, 1]).confidence_interval().low,
    "stats.kurtosistest": lambda x: stats.kurtosistest(_namespace(x).tile(x[:, 0], (4,))).statistic,
    "stats.normaltest": lambda x: stats.normaltest(_namespace(x).tile(x[:, 0], (4,))).statistic,
    "stats.combine_pvalues": lambda x: stats.combine_pvalues(x[:, 0] / 3.0).statistic,
    "stats.combine stouffer": lambda x: (
        stats.combine_pvalues(x[:, 0] / 3.0, method="stouffer").pvalue
    ),
    "stats.combine pearson": lambda x: (
        stats.combine_pvalues(x[:, 0] / 3.0, method="pearson").pvalue
    ),
    "stats.combine tippett": lambda x: (
        stats.combine_pvalues(x[:, 0] / 3.0, method="tippett").pvalue
    ),
    "stats.power_divergence lambda": lambda x: (
        stats.power_divergence(x, lambda_=0.5, axis=0).statistic
    ),
    "stats.yeojohnson_llf": lambda x: stats.yeojohnson_llf(0.5, x[:, 0]),
    "stats.directional resultant": lambda x: stats.directional_stats(x).mean_resultant_length,
    "stats.kstat 4": lambda x: stats.kstat(x, 4, axis=0),
    "stats.moment list": lambda x: stats.moment(x, [2, 3], axis=0),
    "stats.skew bias": lambda x: stats.skew(x, axis=0, bias=False),
    "stats.kurtosis bias": lambda x: stats.kurtosis(x, axis=0, bias=False),
    "stats.quantile weights": lambda x: stats.quantile(x[:, 0], 0.4, method="hazen"),
    "stats.gmean weights": lambda x: stats.gmean(x, axis=0, weights=x),
    "stats.hmean weights": lambda x: stats.hmean(x, axis=0, weights=x),
    "stats.friedman": lambda x: stats.friedmanchisquare(x[:, 0], x[:, 1], x[:, 2]).statistic,
    "stats.kruskal": lambda x: stats.kruskal(x[:, 0], x[:, 1]).statistic,
    "stats.mannwhitneyu": lambda x: (
        stats.mannwhitneyu(x[:, 0], x[:, 1], method="asymptotic").statistic
    ),
    "stats.brunnermunzel": lambda x: stats.brunnermunzel(x[:, 0], x[:, 1]).statistic,
    "stats.spearmanrho": lambda x: stats.spearmanrho(x[:, 0], x[:, 1]).statistic,
    "stats.chatterjeexi": lambda x: stats.chatterjeexi(x[:, 0], x[:, 1]).statistic,
    "stats.false_discovery_control": lambda x: stats.false_discovery_control(x[:, 0] / 3.0),
    "stats.sigmaclip": lambda x: stats.sigmaclip(x[:, 0], 1.2, 1.2).clipped,
    "stats.mood": lambda x: stats.mood(x[:, 0], x[:, 1]).statistic,
    "stats.wilcoxon": lambda x: stats.wilcoxon(x[:, 0], x[:, 1], method="asymptotic").statistic,
    "stats.monte_carlo": lambda x: (
        stats.monte_carlo_test(
            x[:, 0],
            lambda size: _namespace(x).asarray(np.random.default_rng(0).normal(size=size)),
            _mean,
            n_resamples=9,
            vectorized=True,
        ).statistic
    ),
    "stats.bootstrap": lambda x: (
        stats.bootstrap(
            (x[:, 0],), _mean, n_resamples=20, rng=np.random.default_rng(0), method="percentile"
        ).standard_error
    ),
    "stats.permutation": lambda x: (
        stats.permutation_test(
            (x[:3, 0], x[3:, 0]),
            lambda a, b, axis: _mean(a, axis) - _mean(b, axis),
            n_resamples=20,
            rng=np.random.default_rng(0),
            vectorized=True,
        ).statistic
    ),
    "stats.fligner": lambda x: stats.fligner(x[:, 0], x[:, 1]).statistic,
}

VALUES: dict[str, Call] = {
    "cluster.vq": lambda x: vq.vq(x, _codebook(x))[0],
    "cluster.vq, distances": lambda x: vq.vq(x, _codebook(x))[1],
    "cluster.kmeans": lambda x: vq.kmeans(x, _codebook(x))[0],
    "cluster.linkage": hierarchy.linkage,
    "cluster.fcluster": lambda x: hierarchy.fcluster(hierarchy.linkage(x), 2, "maxclust"),
    "cluster.cophenet": lambda x: hierarchy.cophenet(hierarchy.linkage(x)),
    "cluster.kmeans2": lambda x: vq.kmeans2(x, x[:2, :] + 0.1)[0],
    "linalg.solve": lambda x: linalg.solve(x[:3], x[3:]),
    "linalg.expm": lambda x: linalg.expm(x[:3]),
    "linalg.cholesky": lambda x: linalg.cholesky(x.T @ x),
    "ndimage.gaussian": lambda x: ndimage.gaussian_filter(x, 1.0),
    "ndimage.zoom": lambda x: ndimage.zoom(x, 2.0),
    "ndimage.sum_labels": lambda x: ndimage.sum_labels(
        x, _namespace(x).asarray(x > 1, dtype=_namespace(x).int64), _namespace(x).asarray([0, 1])
    ),
    "ndimage.label": lambda x: ndimage.label(x > 1)[0],
    "special.hyp1f1": lambda x: special.hyp1f1(x, x + 1, x),
    "stats.rankdata": lambda x: stats.rankdata(x, axis=0),
    "stats.obrientransform": lambda x: stats.obrientransform(x[:, 0], x[:, 1])[0],
    "stats.ks_1samp": lambda x: stats.ks_1samp(x[:, 0], special.ndtr).statistic,
    "stats.cramervonmises": lambda x: stats.cramervonmises(x[:, 0], special.ndtr).statistic,
    "stats.epps_singleton": lambda x: stats.epps_singleton_2samp(x[:, 0], x[:, 1]).statistic,
    "stats.ansari": lambda x: stats.ansari(x[:, 0], x[:, 1]).statistic,
    "stats.expectile": lambda x: stats.expectile(x[:, 0], 0.3),
    "stats.linregress": lambda x: stats.linregress(x[:, 0], x[:, 1]).slope,
    "stats.linregress p": lambda x: stats.linregress(x[:, 0], x[:, 1]).stderr,
    "stats.chi2_contingency": lambda x: contingency.chi2_contingency(_observed(x)).statistic,
    "stats.expected_freq": contingency.expected_freq,
    "stats.margins": lambda x: contingency.margins(x)[0],
    "stats.ranksums": lambda x: stats.ranksums(x[:, 0], x[:, 1]).statistic,
    "stats.trimboth": lambda x: stats.trimboth(x, 0.2, axis=0),
    "stats.trim1": lambda x: stats.trim1(x, 0.2, axis=0),
    "stats.shapiro": lambda x: stats.shapiro(x[:, 0]).statistic,
    "stats.wasserstein": lambda x: stats.wasserstein_distance(x[:, 0], x[:, 1]),
    "stats.bws": lambda x: stats.bws_test(x[:, 0], x[:, 1]).statistic,
    "stats.theilslopes": lambda x: stats.theilslopes(x[:, 0], x[:, 1]).slope,
    "stats.siegelslopes": lambda x: stats.siegelslopes(x[:, 0], x[:, 1]).slope,
    "stats.boxcox": lambda x: stats.boxcox(x[:, 0], 0.5),
    "stats.yeojohnson": lambda x: stats.yeojohnson(x[:, 0], 0.5),
    "stats.Normal pdf": lambda x: stats.Normal().pdf(x),
    "stats.median_test": lambda x: stats.median_test(x[:, 0], x[:, 1]).statistic,
    "stats.energy_distance": lambda x: stats.energy_distance(x[:, 0], x[:, 1]),
}

# SciPy writes into its arrays here, which a Tensor refuses: these need the handles of `rebind`.
REFUSED = {
    "cluster.whiten", "linalg.block_diag", "special.log_softmax", "special.logsumexp",
    "special.logsumexp all", "special.logsumexp b", "stats.ansari", "stats.bartlett",
    "stats.bootstrap", "stats.boxcox_llf", "stats.cramervonmises", "stats.epps_singleton",
    "stats.f_oneway", "stats.f_oneway p", "stats.false_discovery_control", "stats.fligner",
    "stats.friedman", "stats.gzscore", "stats.iqr", "stats.kruskal", "stats.kurtosistest",
    "stats.lmoment", "stats.mannwhitneyu", "stats.median_abs_deviation", "stats.mood",
    "stats.normaltest", "stats.pearsonr", "stats.pearsonr ci", "stats.pointbiserialr",
    "stats.quantile", "stats.quantile weights", "stats.skewtest", "stats.spearmanrho",
    "stats.wilcoxon", "stats.yeojohnson_llf", "stats.zscore",
}  # fmt: skip
if np.lib.NumpyVersion(scipy.__version__) >= "1.18.0":  # which writes in more of them
    REFUSED |= {
        "stats.bws", "stats.expectile", "stats.permutation", "stats.shapiro", "stats.siegelslopes",
        "stats.theilslopes",
    }  # fmt: skip
