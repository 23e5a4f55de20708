"""Gaussian process regression on the labels, with kernel weights of the largest evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize

from raysel.base.estimator import COUNT, NOT_NEGATIVE, OneShotEstimator
from raysel.baselines.kernel_classifiers import (
    KernelClassifier,
    PreparedKernels,
    kernel_matrix,
    take_pairs,
)
from raysel.core.arrays import FloatArray, LabelArray

#: Bounds of the logarithms of the kernel weights and of the noise variance.
_WEIGHT_BOUNDS, _NOISE_BOUNDS = (-15.0, 10.0), (-12.0, 5.0)
#: Noise variance at which the optimization starts.
_FIRST_NOISE = 0.1


class GaussianProcess(OneShotEstimator, KernelClassifier):
    """Gaussian process regression on targets of 1 and -1, with a kernel for each modality.

        G = sum_k w_k K_k + s I,    min_w,s  c/2 log|G| + 1/2 tr(T' G^-1 T) + n c/2 log(2 pi)

    The columns of T are the targets of the classes (one against the rest) or labels, minus their
    means, so that a rare label does not shift the evidence. All share the weights and the noise
    variance s, which minimise the negative log marginal likelihood above by L-BFGS-B from w_k = 1 /
    n_modalities, s = 0.1, with exp(-15) <= w_k <= exp(10) and exp(-12) <= s <= exp(5). The score of
    a sample is the posterior mean plus the mean of the target.

    Parameters
    ----------
    modalities : dict of str to int, default=None
        Number of columns of each modality, by its name, in column order. None: all columns are one
        modality.
    gamma : float, default=1.0
        Factor of the squared distances, above 0, in the unit ``gamma_scale``, common to all
        modalities.
    gamma_scale : {"mean_distance", "absolute"}, default="mean_distance"
        Unit of ``gamma``. "mean_distance": 1 / mean squared distance of two training samples in the
        modality. "absolute": 1.
    tol : float, default=1e-8
        Relative decrease of the negative log evidence at which L-BFGS-B stops.
    max_iter : int, default=100
        Maximum number of iterations of L-BFGS-B.

    Attributes
    ----------
    modality_scores_ : ndarray of shape (n_modalities,)
        Weights w of the kernels.
    noise_ : float
        Noise variance s.
    optimizer_converged_ : bool
        Whether L-BFGS-B stopped before ``max_iter`` iterations.
    objective_path_ : ndarray of shape (1,)
        Negative log evidence of the fitted weights.
    classes_, class_count_, multilabel_
        See `OneAgainstRestClassifier`.
    modality_names_, kernel_gammas_, support_, support_vectors_, dual_coef_, intercept_
        See `KernelClassifier`; the intercepts are the means of the targets.

    Notes
    -----
    A label that all or no training samples have is scored by its sign and has no part in the
    evidence. The method does not scale the features: that is ``dataset.scaling`` of a study. The
    evidence is the one of scikit-learn's GaussianProcessRegressor with ``alpha=0`` on the columns
    of T, whose arrays of shape (n_samples, n_samples, n_classes) and (n_samples, n_samples,
    n_modalities) are not formed here.

    References
    ----------
    Kapoor, Grauman, Urtasun, Darrell, "Gaussian processes for object categorization", IJCV 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> gp = GaussianProcess({"chemistry": 9, "optics": 4}).fit(scale(X), y)
    >>> gp.modality_scores_.shape, gp.score(scale(X), y) > 0.95
    ((2,), True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "tol": [NOT_NEGATIVE],
        "max_iter": [COUNT],
    }

    noise_: float
    optimizer_converged_: bool

    simpler_first = ("gamma",)

    def __init__(
        self,
        modalities: Mapping[str, int] | None = None,
        gamma: float = 1.0,
        gamma_scale: Literal["mean_distance", "absolute"] = "mean_distance",
        tol: float = 1e-8,
        max_iter: int = 100,
    ) -> None:
        self.modalities = modalities
        self.gamma = gamma
        self.gamma_scale = gamma_scale
        self.tol = tol
        self.max_iter = max_iter

    def _updates(self, X: FloatArray, y: LabelArray, prepared: PreparedKernels) -> Iterator[float]:
        signs, n_kernels = prepared.target.signs, len(prepared.distances)
        means = signs.mean(axis=1)
        varied = np.flatnonzero(np.abs(means) < 1.0)
        logs = np.log(np.append(np.full(n_kernels, 1.0 / n_kernels), _FIRST_NOISE))
        dual, objective, self.optimizer_converged_ = np.zeros(signs.shape), 0.0, True
        if len(varied):
            pairs, targets = self._kernel_pairs(prepared), signs[varied] - means[varied, None]
            settings: dict[str, Any] = {
                "method": "L-BFGS-B",
                "jac": True,
                "bounds": [_WEIGHT_BOUNDS] * n_kernels + [_NOISE_BOUNDS],
                "options": {"maxiter": self.max_iter, "ftol": self.tol},
            }

            def evidence(x: FloatArray) -> tuple[float, FloatArray]:
                return negative_log_evidence(x, pairs, targets)[:2]

            result = minimize(evidence, logs, **settings)
            logs, self.optimizer_converged_ = result.x, bool(result.success)
            objective, _, dual[varied] = negative_log_evidence(logs, pairs, targets)
        self._keep(X, prepared, dual, means)
        self.modality_scores_, self.noise_ = np.exp(logs[:-1]), float(np.exp(logs[-1]))
        yield objective

    def _has_converged(self, path: FloatArray) -> bool:
        """Return whether L-BFGS-B stopped before ``max_iter`` iterations."""
        return self.optimizer_converged_

    def _not_converged(self) -> str:
        reached = f"did not reach tol={self.tol:g} in {self.max_iter} iterations of L-BFGS-B"
        return f"{type(self).__name__} {reached}: increase max_iter or tol."


def negative_log_evidence(
    logs: FloatArray, pairs: FloatArray, targets: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Compute the negative log marginal likelihood of kernel weights and its gradient.

        E = c/2 log|G| + 1/2 tr(A'T) + n c/2 log(2 pi),   A = G^-1 T,   dE/dw_k = 1/2 <c G^-1 - A
        A', K_k>

    `logs` is (n_kernels + 1,), `pairs` (n_kernels, n_samples * (n_samples - 1) / 2), `targets`
    (n_problems, n_samples); returns `gradient` (n_kernels + 1,), `dual` (n_problems, n_samples).
    """
    weights, (c, n) = np.exp(logs), targets.shape
    total = kernel_matrix(weights[:-1] @ pairs, float(weights.sum()))
    factor, failed = dpotrf(total.T, lower=True, overwrite_a=True)
    if failed:
        return np.inf, np.zeros_like(logs), np.zeros_like(targets)
    dual = np.ascontiguousarray(dpotrs(factor, targets.T, lower=True)[0].T)
    log_determinant = 2.0 * float(np.log(np.diagonal(factor)).sum())
    value = 0.5 * (
        c * log_determinant + float((dual * targets).sum()) + n * c * np.log(2.0 * np.pi)
    )
    # Only the lower triangle of the inverse is computed, in Fortran order: the upper one of its
    # transpose.
    slopes = c * dpotri(factor, lower=True, overwrite_c=True)[0].T
    slopes -= dual.T @ dual
    trace = float(np.trace(slopes))
    gradient = 0.5 * weights * np.append(2.0 * (pairs @ take_pairs(slopes)) + trace, trace)
    return value, gradient, dual
