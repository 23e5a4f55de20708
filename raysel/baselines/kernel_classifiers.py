"""Base class of classifiers by a Gaussian kernel for each modality, and the SVM of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import squareform
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.svm import SVC
from sklearn.utils import gen_batches

from raysel.base.classifiers import OneAgainstRestClassifier, SignedTarget, signed_target
from raysel.base.estimator import POSITIVE, OneShotEstimator
from raysel.core.arrays import FloatArray, IntArray, LabelArray, StrOptions
from raysel.core.errors import ConfigError
from raysel.data.scaling import modality_layout

#: Largest number of training samples. Above it the matrices of pairs fill the memory of usual
#: machines.
MAX_SAMPLES = 6000
#: Matrices of all pairs that a fit holds besides those of the kernels.
_WORKING_MATRICES = 3
#: Entries of the kernel matrix of a batch of samples to predict.
_BATCH_ENTRIES = 2**24


@dataclass(frozen=True)
class PreparedKernels:
    """Squared distances of a training set, which all kernel widths share."""

    target: SignedTarget
    #: Squared distances of all pairs of samples in each kernel's columns, in the order of SciPy's
    #: ``pdist``; shape (n_kernels, n_samples * (n_samples - 1) / 2).
    distances: FloatArray
    #: 1 / mean of the squared distances of each kernel; 1 if all samples are equal in its columns;
    #: shape (n_kernels,).
    units: FloatArray


def squared_distances(X: FloatArray, others: FloatArray | None = None) -> FloatArray:
    """Compute the squared Euclidean distances between samples.

    `X` is (n_samples, n_features), `others` (n_others, n_features); returns (n_samples, n_others).
    """
    # The distances are differences of squared norms, which lose digits if the samples are far from
    # the origin.
    if others is None:
        return euclidean_distances(X - X.mean(axis=0), squared=True)
    centre = others.mean(axis=0)
    return euclidean_distances(X - centre, others - centre, squared=True)


def take_pairs(matrix: FloatArray) -> FloatArray:
    """Return the entries of a symmetric matrix above its diagonal, in a fixed order.

    `matrix` is (n, n); returns (n * (n - 1) / 2,).
    """
    return squareform(matrix, force="tovector", checks=False)


def kernel_matrix(pairs: FloatArray, diagonal: float = 1.0) -> FloatArray:
    """Return the symmetric matrix of these entries, with this diagonal.

    `pairs` is (n * (n - 1) / 2,); returns (n, n).
    """
    matrix: FloatArray = squareform(pairs, force="tomatrix", checks=False)
    np.fill_diagonal(matrix, diagonal)
    return matrix


def fit_machine(
    kernel: FloatArray, sign: FloatArray, C: float, tol: float
) -> tuple[FloatArray, float]:
    """Solve a binary support vector machine by LIBSVM (scikit-learn's SVC).

    `kernel` is (n, n), `sign` (n,); returns `dual` (n,).
    """
    dual = np.zeros(len(sign))
    if (sign == sign[0]).all():
        return dual, float(sign[0])
    machine = SVC(C=C, kernel="precomputed", tol=tol).fit(kernel, sign)
    dual[machine.support_] = machine.dual_coef_[0]
    return dual, float(machine.intercept_[0])


class KernelClassifier(OneAgainstRestClassifier):
    """Base class of classifiers by a weighted sum of Gaussian kernels, one for each modality.

        f_j(x) = b_j + sum_k w_kj sum_i a_ij exp(-gamma_k ||x^k - x_i^k||^2)

    with x^k the columns of modality k. A subclass computes the dual coefficients a, the weights w
    and the intercepts b. The features are not scaled: that is left to the study's
    ``dataset.scaling``. At most 6000 training samples are accepted, because a fit holds all pairs
    of them for each kernel.

    Attributes
    ----------
    modality_names_ : list of str
        Names of the modalities, in column order; "all" if there is one kernel of all columns.
    kernel_gammas_ : ndarray of shape (n_kernels,)
        gamma_k, the factor of the squared distances of each kernel.
    support_ : ndarray of int64, shape (n_support,)
        Indices of the training samples with a dual coefficient that is not 0.
    support_vectors_ : ndarray of shape (n_support, n_features)
        Those training samples.
    dual_coef_ : ndarray of shape (n_problems, n_support) or (n_kernels, n_problems, n_support)
        Dual coefficients, the same for all kernels or separate ones; n_problems is 1 for two
        classes, else the number of classes or labels.
    intercept_ : ndarray of shape (n_problems,)
        Intercepts.
    """

    layout_parameters: ClassVar[frozenset[str]] = frozenset({"modalities"})
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "modalities": [dict, None],
        "gamma": [POSITIVE],
        "gamma_scale": [StrOptions({"mean_distance", "absolute"})],
    }

    # Set by the constructors of the subclasses.
    modalities: Mapping[str, int] | None = None
    gamma: float
    gamma_scale: str

    modality_names_: list[str]
    modality_scores_: FloatArray
    kernel_gammas_: FloatArray
    support_: IntArray
    support_vectors_: FloatArray
    dual_coef_: FloatArray
    intercept_: FloatArray

    def check(self, n_features: int) -> None:
        """Check that the parameters are valid for data of this number of features.

        Parameters
        ----------
        n_features : int
            Number of features.

        Raises
        ------
        ConfigError
            If a parameter is invalid, or the modalities do not have ``n_features`` columns in
            total.
        """
        super().check(n_features)
        self._slices(n_features)

    def check_training(self, y: LabelArray, tasks: IntArray | None = None) -> None:
        """Check that the training set is small enough for the matrices of its pairs.

        Parameters
        ----------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels of the training set.
        tasks : None
            Ignored.

        Raises
        ------
        ConfigError
            If the training set has more than 6000 samples; says how much memory it would need.
        """
        n, n_kernels = len(y), len(self.modalities or [None])
        if n > MAX_SAMPLES:
            needed = 8 * (n_kernels + _WORKING_MATRICES) * n**2 / 2**30
            raise ConfigError(
                f"{type(self).__name__} needs about {needed:.1f} GiB for the {n_kernels} kernel(s)"
                f" of {n} training samples; at most {MAX_SAMPLES} samples are accepted. Draw fewer"
                " training samples (cv.train_per_class, with cv.final: false), or use a linear"
                " method such as linear_svm or smml."
            )

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedKernels:
        """Compute the squared distances of all pairs of training samples in each modality.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Training samples.
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Training labels.

        Returns
        -------
        PreparedKernels
            Target, squared distances and their means, for all values of the parameters.

        Raises
        ------
        ConfigError
            If there are more than 6000 samples.
        DataError
            If y holds one class only, or is neither labels nor an indicator.
        """
        self.check_training(y)
        target, slices = signed_target(y), self._slices(X.shape[1])
        distances = np.empty((len(slices), len(X) * (len(X) - 1) // 2))
        for row, columns in zip(distances, slices.values(), strict=True):
            row[:] = take_pairs(squared_distances(X[:, columns]))
        means = distances.mean(axis=1)
        return PreparedKernels(target, distances, 1.0 / np.where(means > 0, means, 1.0))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Compute the scores of the classes or labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            Score of each class or label; for two classes that of the second one.
        """
        samples = self._checked(X, order="C")
        values = np.tile(self.intercept_, (len(samples), 1))
        slices, n_support = self._slices(samples.shape[1]), len(self.support_vectors_)
        shape = (len(slices), values.shape[1])
        duals = np.broadcast_to(self.dual_coef_, (*shape, n_support))
        weights = np.broadcast_to(self._weights.reshape(len(slices), -1), shape)
        for rows in gen_batches(len(samples), max(1, _BATCH_ENTRIES // max(1, n_support))):
            for k, columns in enumerate(slices.values()):
                if n_support and weights[k].any():
                    distances = squared_distances(
                        samples[rows, columns], self.support_vectors_[:, columns]
                    )
                    values[rows] += weights[k] * (
                        np.exp(-self.kernel_gammas_[k] * distances) @ duals[k].T
                    )
        if values.shape[1] == 1:
            return values[:, 0]
        return values

    @property
    def _weights(self) -> FloatArray:
        """Weights of the kernels, (n_kernels,) or (n_kernels, n_problems)."""
        return self.modality_scores_

    def _slices(self, n_features: int) -> dict[str, slice]:
        """Columns of each kernel, by the name of its modality."""
        return modality_layout(self.modalities, n_features).slices()

    def _gammas(self, prepared: PreparedKernels) -> FloatArray:
        """gamma_k of each kernel."""
        units = np.ones_like(prepared.units)
        if self.gamma_scale == "mean_distance":
            units = prepared.units
        return float(self.gamma) * units

    def _kernel_pairs(self, prepared: PreparedKernels) -> FloatArray:
        """Kernel values of all pairs of training samples, (n_kernels, n_pairs)."""
        pairs = prepared.distances * -self._gammas(prepared)[:, None]
        return np.exp(pairs, out=pairs)

    def _keep(
        self, X: FloatArray, prepared: PreparedKernels, dual: FloatArray, intercept: FloatArray
    ) -> None:
        """Set the fitted attributes; ``dual`` has the dual coefficients of all training samples."""
        self._keep_target(prepared.target)
        self.modality_names_ = list(self._slices(X.shape[1]))
        self.kernel_gammas_ = self._gammas(prepared)
        self.support_ = np.flatnonzero(dual.any(axis=tuple(range(dual.ndim - 1))))
        self.support_vectors_ = X[self.support_]
        self.dual_coef_ = np.ascontiguousarray(dual[..., self.support_])
        self.intercept_ = intercept


class KernelSVM(OneShotEstimator, KernelClassifier):
    """SVM with a Gaussian kernel for each class or label, by scikit-learn's SVC.

        min_f,b  ||f||^2 / 2  +  C sum_i (1 - y_i (f(x_i) + b))_+

    with the norm of the kernel exp(-g ||x - x'||^2). Several modalities are concatenated. A label
    that all or no training samples have is scored by its sign.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, above 0; a smaller value regularises more.
    gamma : float, default=1.0
        Factor g of the squared distance, above 0, in the unit ``gamma_scale``.
    gamma_scale : {"mean_distance", "absolute"}, default="mean_distance"
        Unit of ``gamma``. "mean_distance": g = gamma / mean squared distance of two training
        samples. "absolute": g = gamma.
    tol : float, default=1e-3
        Tolerance of SVC.

    Attributes
    ----------
    classes_, class_count_, multilabel_
        See `OneAgainstRestClassifier`.
    modality_names_, kernel_gammas_, support_, support_vectors_, dual_coef_, intercept_
        See `KernelClassifier`; there is one kernel.
    objective_path_ : ndarray of shape (1,)
        Sum of the objectives of the binary problems.

    Notes
    -----
    The method does not scale the features: that is ``dataset.scaling`` of a study.

    References
    ----------
    Chang, Lin, "LIBSVM: a library for support vector machines", ACM Transactions on Intelligent
    Systems and Technology 2(3), 2011, doi:10.1145/1961189.1961199.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> KernelSVM(C=10.0).fit(scale(X)[::2], y[::2]).score(scale(X)[1::2], y[1::2]) > 0.95
    True
    """

    layout_parameters: ClassVar[frozenset[str]] = frozenset()

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [POSITIVE],
        "tol": [POSITIVE],
    }

    simpler_first = ("C", "gamma")

    def __init__(
        self,
        C: float = 1.0,
        gamma: float = 1.0,
        gamma_scale: Literal["mean_distance", "absolute"] = "mean_distance",
        tol: float = 1e-3,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.gamma_scale = gamma_scale
        self.tol = tol

    @property
    def _weights(self) -> FloatArray:
        return np.ones(1)

    def _updates(self, X: FloatArray, y: LabelArray, prepared: PreparedKernels) -> Iterator[float]:
        kernel, signs = kernel_matrix(self._kernel_pairs(prepared)[0]), prepared.target.signs
        machines = [fit_machine(kernel, sign, self.C, self.tol) for sign in signs]
        dual, intercept = np.stack([a for a, _ in machines]), np.array([b for _, b in machines])
        self._keep(X, prepared, dual, intercept)
        values = dual @ kernel
        losses = np.maximum(0.0, 1.0 - signs * (values + intercept[:, None]))
        yield float(0.5 * (dual * values).sum() + self.C * losses.sum())
