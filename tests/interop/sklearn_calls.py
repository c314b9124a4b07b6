"""Calls of scikit-learn on arrays of any namespace: name -> function of a positive (6, 3) array.

`DIFFERENTIABLE` are those whose derivatives, vmap and jit pass through the fit; `VALUES` are
compared with NumPy alone. `REFUSED` write into arrays.
"""

from collections.abc import Callable
from typing import Any

from sklearn import metrics
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.metrics import pairwise
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
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

__all__ = ["DIFFERENTIABLE", "REFUSED", "VALUES"]

Call = Callable[[Any], Any]


def _labels(x: Any) -> Any:
    return x.__array_namespace__().asarray([0, 1, 0, 1, 1, 0])


def _guesses(x: Any) -> Any:
    return x.__array_namespace__().asarray([0, 1, 1, 1, 0, 0])


def _targets(x: Any) -> Any:
    return x[:, 0] * 2.0 - x[:, 1] ** 2


def _pca(**options: Any) -> Any:
    return PCA(2, svd_solver="full", **options)


def _ridge(x: Any) -> Any:
    return Ridge(alpha=0.5, solver="svd").fit(x, _targets(x)).predict(x)


def _mixture(x: Any) -> Any:
    means = x.__array_namespace__().stack([x[0], x[1]])
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
}

# scikit-learn writes into its arrays here: these need the handles of `rebind`.
REFUSED = {
    "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "Normalizer", "PolynomialFeatures", "Ridge",
    "Pipeline", "LDA", "GaussianNB", "pairwise.cosine_similarity", "pairwise.rbf_kernel",
    "pairwise.paired_cosine", "Binarizer", "LDA predict", "GaussianNB predict", "GaussianMixture",
    "LogisticRegression", "Nystroem", "pairwise.manhattan", "pairwise.laplacian", "metrics.f1",
    "metrics.precision", "metrics.recall", "metrics.cohen_kappa", "metrics.r2",
    "metrics.explained_variance",
}  # fmt: skip
