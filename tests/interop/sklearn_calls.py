"""Calls of scikit-learn on arrays of any namespace: name -> function of a positive (6, 3) array.

`DIFFERENTIABLE` are those whose derivatives, vmap and jit pass through the fit; `VALUES` are
compared with NumPy alone. `REFUSED` write into arrays.
"""

from collections.abc import Callable
from typing import Any

from sklearn import metrics
from sklearn import preprocessing as pp
from sklearn.covariance import EmpiricalCovariance, LedoitWolf
from sklearn.decomposition import PCA, FactorAnalysis, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import (
    ElasticNet,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    RidgeCV,
)
from sklearn.metrics import pairwise
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    KernelCenterer,
    LabelBinarizer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.utils import extmath

__all__ = ["DIFFERENTIABLE", "REFUSED", "VALUES"]

Call = Callable[[Any], Any]


def _namespace(x: Any) -> Any:
    return x.__array_namespace__()


def _labels(x: Any) -> Any:
    return _namespace(x).asarray([0, 1, 0, 1, 1, 0])


def _guesses(x: Any) -> Any:
    return _namespace(x).asarray([0, 1, 1, 1, 0, 0])


def _targets(x: Any) -> Any:
    return x[:, 0] * 2.0 - x[:, 1] ** 2


def _observed(x: Any) -> Any:
    """Whole numbers, as counts are."""
    return _namespace(x).floor(x * 10.0) + 1.0


def _steps(x: Any) -> Any:
    return _namespace(x).asarray([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])


def _pca(**options: Any) -> Any:
    return PCA(2, svd_solver="full", **options)


def _ridge(x: Any) -> Any:
    return Ridge(alpha=0.5, solver="svd").fit(x, _targets(x)).predict(x)


def _mixture(x: Any) -> Any:
    means = _namespace(x).stack([x[0], x[1]])
    mixture = GaussianMixture(
        2, covariance_type="diag", means_init=means, init_params="random", tol=1e9, random_state=0
    )
    return mixture.fit(x).predict_proba(x)


DIFFERENTIABLE: dict[str, Call] = {
    "StandardScaler": lambda x: StandardScaler().fit_transform(x),
    "MinMaxScaler": lambda x: MinMaxScaler().fit_transform(x),
    "MaxAbsScaler": lambda x: MaxAbsScaler().fit_transform(x),
    "Normalizer": lambda x: Normalizer().fit_transform(x),
    "KernelCenterer": lambda x: KernelCenterer().fit_transform(x @ x.T),
    "PolynomialFeatures": lambda x: PolynomialFeatures(2).fit_transform(x),
    "PCA": lambda x: _pca().fit_transform(x),
    "PCA variance": lambda x: _pca().fit(x).explained_variance_,
    "PCA whiten": lambda x: _pca(whiten=True).fit_transform(x),
    "Ridge": _ridge,
    "Pipeline": lambda x: make_pipeline(StandardScaler(), _pca()).fit_transform(x),
    "LDA": lambda x: (
        LinearDiscriminantAnalysis(solver="svd").fit(x, _labels(x)).decision_function(x)
    ),
    "GaussianNB": lambda x: GaussianNB().fit(x, _labels(x)).predict_joint_log_proba(x),
    "pairwise.cosine_similarity": pairwise.cosine_similarity,
    "pairwise.linear_kernel": pairwise.linear_kernel,
    "pairwise.polynomial_kernel": pairwise.polynomial_kernel,
    "pairwise.rbf_kernel": pairwise.rbf_kernel,
    "pairwise.sigmoid_kernel": pairwise.sigmoid_kernel,
    "pairwise.paired_cosine": lambda x: pairwise.paired_cosine_distances(x, x**2),
    "metrics.precision_recall": lambda x: metrics.precision_recall_curve(_labels(x), x[:, 0])[0],
    "StandardScaler inverse": lambda x: (s := pp.StandardScaler().fit(x)).inverse_transform(
        s.transform(x**2)
    ),
    "StandardScaler mean": lambda x: pp.StandardScaler(with_std=False).fit_transform(x),
    "MinMax inverse": lambda x: (s := pp.MinMaxScaler().fit(x)).inverse_transform(
        s.transform(x**2)
    ),
    "normalize": lambda x: pp.normalize(x, norm="l1"),
    "maxabs": pp.maxabs_scale,
    "minmax": pp.minmax_scale,
    "FunctionTransformer": lambda x: pp.FunctionTransformer(lambda a: a**2).fit_transform(x),
    "PCA inverse": lambda x: (p := PCA(2, svd_solver="full").fit(x)).inverse_transform(
        p.transform(x)
    ),
    "PCA score": lambda x: PCA(2, svd_solver="full").fit(x).score_samples(x),
    "PCA noise": lambda x: PCA(2, svd_solver="covariance_eigh").fit(x).noise_variance_,
    "PCA eigh": lambda x: PCA(2, svd_solver="covariance_eigh").fit_transform(x),
    "PCA cov": lambda x: PCA(2, svd_solver="full").fit(x).get_covariance(),
    "PCA precision": lambda x: PCA(2, svd_solver="full").fit(x).get_precision(),
    "Ridge coef": lambda x: Ridge(alpha=0.5, solver="svd").fit(x, _targets(x)).coef_,
    "RidgeClassifier": lambda x: (
        RidgeClassifier(solver="svd").fit(x, _labels(x)).decision_function(x)
    ),
    "LDA transform": lambda x: LinearDiscriminantAnalysis().fit(x, _labels(x)).transform(x),
    "LDA proba": lambda x: LinearDiscriminantAnalysis().fit(x, _labels(x)).predict_proba(x),
    "GNB proba": lambda x: GaussianNB().fit(x, _labels(x)).predict_proba(x),
    "train_test_split": lambda x: train_test_split(x, random_state=0)[0],
    "TruncatedSVD": lambda x: TruncatedSVD(
        2, power_iteration_normalizer="QR", random_state=0
    ).fit_transform(x),
    "pairwise.additive_chi2": pairwise.additive_chi2_kernel,
    "pairwise.chi2": pairwise.chi2_kernel,
    "pairwise.paired_euclidean": lambda x: pairwise.paired_euclidean_distances(x, x**2),
    "pairwise.paired_manhattan": lambda x: pairwise.paired_manhattan_distances(x, x**2),
    "pairwise.cosine_distances": lambda x: pairwise.cosine_distances(x, x**2),
    "pairwise.euclidean sq": lambda x: pairwise.euclidean_distances(x, x**2, squared=True),
    "pairwise.distances l2": lambda x: pairwise.pairwise_distances(x, x**2, metric="euclidean"),
    "pairwise.kernels rbf": lambda x: pairwise.pairwise_kernels(x, x**2, metric="rbf"),
    "metrics.mse raw": lambda x: metrics.mean_squared_error(x, x**2, multioutput="raw_values"),
    "metrics.mae raw": lambda x: metrics.mean_absolute_error(x, x**2, multioutput="raw_values"),
    "metrics.mape raw": lambda x: metrics.mean_absolute_percentage_error(
        x, x**2, multioutput="raw_values"
    ),
    "metrics.r2 raw": lambda x: metrics.r2_score(x, x**2, multioutput="raw_values"),
    "metrics.evs raw": lambda x: metrics.explained_variance_score(
        x, x**2, multioutput="raw_values"
    ),
    "metrics.rmse raw": lambda x: metrics.root_mean_squared_error(
        x, x**2, multioutput="raw_values"
    ),
    "metrics.msle raw": lambda x: metrics.mean_squared_log_error(x, x**2, multioutput="raw_values"),
    "metrics.rmsle raw": lambda x: metrics.root_mean_squared_log_error(
        x, x**2, multioutput="raw_values"
    ),
    "metrics.pinball raw": lambda x: metrics.mean_pinball_loss(x, x**2, multioutput="raw_values"),
    "metrics.medae raw": lambda x: metrics.median_absolute_error(x, x**2, multioutput="raw_values"),
    "metrics.confusion_at": lambda x: metrics.confusion_matrix_at_thresholds(_labels(x), x[:, 0])[
        0
    ],
    "extmath.softmax": extmath.softmax,
    "extmath.randomized_svd": lambda x: extmath.randomized_svd(
        x, 2, power_iteration_normalizer="QR", random_state=0
    )[1],
    "extmath.row_norms": extmath.row_norms,
    "extmath.stable_cumsum": extmath.safe_sqr,
}

VALUES: dict[str, Call] = {
    "Binarizer": lambda x: Binarizer(threshold=1.0).fit_transform(x),
    "LabelEncoder": lambda x: LabelEncoder().fit_transform(_labels(x)),
    "LabelBinarizer": lambda x: LabelBinarizer().fit_transform(_guesses(x)),
    "LDA predict": lambda x: LinearDiscriminantAnalysis().fit(x, _labels(x)).predict(x),
    "GaussianNB predict": lambda x: GaussianNB().fit(x, _labels(x)).predict(x),
    "GaussianMixture": _mixture,
    "RidgeCV": lambda x: RidgeCV().fit(x, _targets(x)).predict(x),
    "LogisticRegression": lambda x: LogisticRegression().fit(x, _labels(x)).coef_,
    "Nystroem": lambda x: Nystroem(n_components=3, random_state=0).fit_transform(x),
    "pairwise.euclidean": lambda x: pairwise.euclidean_distances(x, x**2),
    "pairwise.manhattan": pairwise.manhattan_distances,
    "pairwise.laplacian": pairwise.laplacian_kernel,
    "metrics.accuracy": lambda x: metrics.accuracy_score(_labels(x), _guesses(x)),
    "metrics.f1": lambda x: metrics.f1_score(_labels(x), _guesses(x)),
    "metrics.precision": lambda x: metrics.precision_score(_labels(x), _guesses(x)),
    "metrics.recall": lambda x: metrics.recall_score(_labels(x), _guesses(x)),
    "metrics.confusion": lambda x: metrics.confusion_matrix(_labels(x), _guesses(x)),
    "metrics.log_loss": lambda x: metrics.log_loss(_labels(x), x[:, 0] / 4.0),
    "metrics.brier": lambda x: metrics.brier_score_loss(_labels(x), x[:, 0] / 4.0),
    "metrics.cohen_kappa": lambda x: metrics.cohen_kappa_score(_labels(x), _guesses(x)),
    "metrics.mse": lambda x: metrics.mean_squared_error(x, x**2),
    "metrics.mae": lambda x: metrics.mean_absolute_error(x, x**2),
    "metrics.rmse": lambda x: metrics.root_mean_squared_error(x, x**2),
    "metrics.msle": lambda x: metrics.mean_squared_log_error(x, x**2),
    "metrics.r2": lambda x: metrics.r2_score(x, x**2),
    "metrics.explained_variance": lambda x: metrics.explained_variance_score(x, x**2),
    "metrics.poisson": lambda x: metrics.mean_poisson_deviance(x[:, 0], x[:, 1]),
    "metrics.gamma": lambda x: metrics.mean_gamma_deviance(x[:, 0], x[:, 1]),
    "metrics.tweedie": lambda x: metrics.mean_tweedie_deviance(x[:, 0], x[:, 1], power=1.5),
    "metrics.d2": lambda x: metrics.d2_tweedie_score(x[:, 0], x[:, 1]),
    "metrics.pinball": lambda x: metrics.mean_pinball_loss(x, x**2),
    "metrics.max_error": lambda x: metrics.max_error(x[:, 0], x[:, 1]),
    "LinearRegression": lambda x: LinearRegression().fit(x, _targets(x)).predict(x),
    "RobustScaler": lambda x: pp.RobustScaler().fit_transform(x),
    "PowerTransformer": lambda x: pp.PowerTransformer().fit_transform(x),
    "QuantileTransformer": lambda x: pp.QuantileTransformer(n_quantiles=4).fit_transform(x),
    "label_binarize": lambda x: pp.label_binarize(_guesses(x), classes=[0, 1]),
    "PoissonRegressor": lambda x: PoissonRegressor().fit(x, x[:, 0]).predict(x),
    "ElasticNet": lambda x: ElasticNet(0.1).fit(x, _targets(x)).coef_,
    "LedoitWolf": lambda x: LedoitWolf().fit(x).covariance_,
    "pairwise.distances argmin": lambda x: pairwise.pairwise_distances_argmin(x, x**2),
    "metrics.multilabel": lambda x: metrics.multilabel_confusion_matrix(_labels(x), _guesses(x)),
    "metrics.det": lambda x: metrics.det_curve(_labels(x), x[:, 0])[0],
    "metrics.roc_curve": lambda x: metrics.roc_curve(_labels(x), x[:, 0])[1],
    "metrics.roc_auc": lambda x: metrics.roc_auc_score(_labels(x), x[:, 0]),
    "QDA": lambda x: QuadraticDiscriminantAnalysis(reg_param=0.1).fit(x, _labels(x)).predict(x),
    "EmpiricalCovariance": lambda x: EmpiricalCovariance().fit(x).covariance_,
    "KNeighbors": lambda x: (
        KNeighborsClassifier(2, algorithm="brute").fit(x, _labels(x)).predict_proba(x)
    ),
    "NearestNeighbors": lambda x: (
        NearestNeighbors(n_neighbors=2, algorithm="brute").fit(x).kneighbors(x)[0]
    ),
    "metrics.average_precision": lambda x: metrics.average_precision_score(_labels(x), x[:, 0]),
    "OneHotEncoder": lambda x: pp.OneHotEncoder(sparse_output=False).fit_transform(
        _labels(x)[:, None]
    ),
    "OrdinalEncoder": lambda x: pp.OrdinalEncoder().fit_transform(_labels(x)[:, None]),
    "FactorAnalysis": lambda x: FactorAnalysis(1, svd_method="lapack").fit_transform(x),
    "metrics.mape": lambda x: metrics.mean_absolute_percentage_error(x, x**2),
    "metrics.medae": lambda x: metrics.median_absolute_error(x, x**2),
    "metrics.d2pin": lambda x: metrics.d2_pinball_score(x[:, 0], x[:, 1]),
    "metrics.d2abs": lambda x: metrics.d2_absolute_error_score(x[:, 0], x[:, 1]),
    "metrics.d2brier": lambda x: metrics.d2_brier_score(_labels(x), x[:, 0] / 4.0),
    "metrics.d2ll": lambda x: metrics.d2_log_loss_score(_labels(x), x[:, 0] / 4.0),
    "metrics.hamming": lambda x: metrics.hamming_loss(_labels(x), _guesses(x)),
    "metrics.zero_one": lambda x: metrics.zero_one_loss(_labels(x), _guesses(x)),
    "metrics.jaccard": lambda x: metrics.jaccard_score(_labels(x), _guesses(x)),
    "metrics.balanced": lambda x: metrics.balanced_accuracy_score(_labels(x), _guesses(x)),
    "metrics.fbeta": lambda x: metrics.fbeta_score(_labels(x), _guesses(x), beta=0.5),
    "metrics.clr": lambda x: metrics.class_likelihood_ratios(_labels(x), _guesses(x))[0],
    "metrics.hinge": lambda x: metrics.hinge_loss(_labels(x) * 2 - 1, x[:, 0]),
    "metrics.ndcg": lambda x: metrics.ndcg_score(_labels(x)[None, :], x[:, 0][None, :]),
    "metrics.dcg": lambda x: metrics.dcg_score(_observed(x), x),
    "metrics.topk": lambda x: metrics.top_k_accuracy_score(_labels(x), x[:, 0], k=1),
    "metrics.auc": lambda x: metrics.auc(_steps(x), x[:, 0]),
    "metrics.cluster.mi": lambda x: metrics.mutual_info_score(_labels(x), _guesses(x)),
    "metrics.cluster.rand": lambda x: metrics.adjusted_rand_score(_labels(x), _guesses(x)),
    "metrics.cluster.silhouette": lambda x: metrics.silhouette_score(x, _labels(x)),
    "metrics.cluster.ch": lambda x: metrics.calinski_harabasz_score(x, _labels(x)),
    "metrics.cluster.db": lambda x: metrics.davies_bouldin_score(x, _labels(x)),
    "metrics.cluster.hom": lambda x: metrics.homogeneity_score(_labels(x), _guesses(x)),
    "metrics.cluster.fm": lambda x: metrics.fowlkes_mallows_score(_labels(x), _guesses(x)),
    "metrics.cluster.contingency": lambda x: metrics.cluster.contingency_matrix(
        _labels(x), _guesses(x)
    ),
    "metrics.cluster.pair": lambda x: metrics.cluster.pair_confusion_matrix(
        _labels(x), _guesses(x)
    ),
    "extmath.weighted_mode": lambda x: extmath.weighted_mode(x, x)[0],
}

# scikit-learn writes into its arrays here: these need the handles of `rebind`.
REFUSED = {
    "Binarizer", "GNB proba", "GaussianMixture", "GaussianNB", "GaussianNB predict", "KNeighbors",
    "LDA", "LDA predict", "LDA proba", "LDA transform", "LedoitWolf", "LogisticRegression",
    "MaxAbsScaler", "MinMax inverse", "MinMaxScaler", "NearestNeighbors", "Normalizer", "Nystroem",
    "PCA cov", "PCA eigh", "PCA noise", "PCA precision", "PCA score", "Pipeline",
    "PolynomialFeatures", "PowerTransformer", "QuantileTransformer", "Ridge", "Ridge coef",
    "RidgeClassifier", "StandardScaler", "StandardScaler inverse", "maxabs", "metrics.cluster.db",
    "metrics.cluster.silhouette", "metrics.cohen_kappa", "metrics.d2abs", "metrics.d2pin",
    "metrics.evs raw", "metrics.explained_variance", "metrics.f1", "metrics.fbeta", "metrics.hinge",
    "metrics.jaccard", "metrics.precision", "metrics.r2", "metrics.r2 raw", "metrics.recall",
    "minmax", "normalize", "pairwise.cosine_distances", "pairwise.cosine_similarity",
    "pairwise.laplacian", "pairwise.manhattan", "pairwise.paired_cosine", "pairwise.rbf_kernel",
}  # fmt: skip
