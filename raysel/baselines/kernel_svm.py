"""Support vector machine with one Gaussian kernel of all features."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from raysel.base.iterative import OneShotEstimator
from raysel.baselines.kernel_classifier import (
    KernelClassifier,
    PreparedKernels,
    fit_machine,
    kernel_matrix,
)
from raysel.core.arrays import FloatArray, Interval, LabelArray


class KernelSVM(OneShotEstimator, KernelClassifier):
    """SVM with a Gaussian kernel for each class (one against the rest) or label, by scikit-learn's SVC.

        min_f,b  ||f||^2 / 2  +  C sum_i (1 - y_i (f(x_i) + b))_+

    with the norm of the kernel exp(-g ||x - x'||^2). Several modalities are concatenated. A label that all or no
    training samples have is scored by its sign.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, above 0; a smaller value regularises more.
    gamma : float, default=1.0
        Factor g of the squared distance, above 0, in the unit ``gamma_scale``.
    gamma_scale : {"mean_distance", "absolute"}, default="mean_distance"
        Unit of ``gamma``. "mean_distance": g = gamma / mean squared distance of two training samples. "absolute":
        g = gamma.
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
    Chang, Lin, "LIBSVM: a library for support vector machines", ACM Transactions on Intelligent Systems and Technology
    2(3), 2011, doi:10.1145/1961189.1961199.

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
        "C": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

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

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key by which a smaller C, then a smaller gamma, comes first."""
        return (float(self.C), float(self.gamma))

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
