"""Linear support vector machine with an unstructured penalty."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from raysel.base.classifiers import OneAgainstRest, SignedTarget, signed_target
from raysel.base.estimator import COUNT, POSITIVE, OneShotEstimator
from raysel.base.search_drafts import HUGE, DataSize, SearchDraft
from raysel.core.arrays import FloatArray, IntArray, LabelArray, StrOptions
from raysel.data.layouts import Layout
from raysel.numerics.wide_svm import SampleSpan, fit_clone


@dataclass(frozen=True)
class PreparedSVM:
    """What fits for every C share: statistics that detect zero solutions, and the span."""

    target: SignedTarget
    #: Numbers of samples with sign 1 and -1; shape (2, n_problems).
    counts: IntArray
    #: Sums of the samples with sign 1 and -1; shape (2, n_problems, n_features).
    sums: FloatArray
    #: Span of the samples, in which l2 is solved; None unless it has far fewer dimensions.
    span: SampleSpan | None


class LinearSVM(OneShotEstimator, OneAgainstRest):
    """Linear SVM with squared hinge loss for each class or label, by scikit-learn's LinearSVC.

        min_w,b  pen(w, b)  +  C sum_i (1 - y_i (x_i'w + b))_+^2

    with pen = (||w||^2 + b^2) / 2 or ||w||_1 + |b|. As b is penalised, the features should be
    centred. Several modalities are concatenated.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, above 0; a smaller value regularises more.
    penalty : {"l2", "l1"}, default="l2"
        Norm of the penalty. With "l1" some coefficients are exactly zero, more of them for smaller
        C.
    tol : float, default=1e-4
        Tolerance of LinearSVC, relative to the norm of the gradient at zero.
    max_iter : int, default=10000
        Maximum number of LinearSVC's iterations for each binary problem.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.
    random_state : int, RandomState instance or None, default=None
        Seed of the order in which coordinates are updated, used for "l1" or fewer samples than
        features; results differ within ``tol``. None: NumPy's global generator.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        Coefficients; one row for two classes.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts; one entry for two classes.
    classes_ : ndarray of shape (n_classes,)
        Class labels; 0, 1, ... for a multi-label target.
    class_count_ : ndarray of int64, shape (n_classes,) or (n_labels, 2)
        Number of training samples of each class; for a multi-label target without and with each
        label. ``predict`` uses it if scores are equal.
    multilabel_ : bool
        Whether the target was multi-label.
    scores_ : ndarray of shape (n_features,)
        Euclidean norm of each feature's coefficients; 0 for features that are constant in the
        training set.
    liblinear_iterations_ : int
        Maximum number of iterations over the binary problems.
    converged_ : bool
        Whether all binary problems took fewer than ``max_iter`` iterations.
    objective_path_ : ndarray of shape (1,)
        Sum of the objectives of the binary problems.

    References
    ----------
    Fan, Chang, Hsieh, Wang, Lin, "LIBLINEAR: a library for large linear classification", JMLR 9,
    2008.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> svm = LinearSVM(C=0.02, penalty="l1", random_state=0).fit(scale(X), y)
    >>> svm.score(scale(X), y) > 0.9, bool((svm.scores_ == 0).any())
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [POSITIVE],
        "penalty": [StrOptions({"l1", "l2"})],
        "tol": [POSITIVE],
        "max_iter": [COUNT],
    }

    liblinear_iterations_: int

    def __init__(
        self,
        C: float = 1.0,
        penalty: Literal["l1", "l2"] = "l2",
        tol: float = 1e-4,
        max_iter: int = 10_000,
        n_features_to_select: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.C = C
        self.penalty = penalty
        self.tol = tol
        self.max_iter = max_iter
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    @classmethod
    def draft(cls, layout: Layout, size: DataSize) -> SearchDraft | None:
        """Return a search of both penalties; None where a fit with l1 takes long."""
        if size.effort == HUGE or size.has_large_systems:
            return None
        n_values = size.by_effort(5, 5, 4)
        return SearchDraft(
            "linear SVM with an l1 or l2 penalty: a model of all columns at once, no structure"
            " among them",
            {"C": {"logspace": [0.003, 0.3, n_values]}, "penalty": ["l1", "l2"]},
            "the weight of the loss: small ones select few columns; l1 sets most weights"
            " to 0 and cannot rank all columns, l2 sets none",
        )

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key by which "l1" precedes "l2", and a smaller C a larger one."""
        return (float(self.penalty == "l2"), float(self.C))

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedSVM:
        """Count and sum the samples of both signs of each problem, and decompose their span."""
        target = signed_target(y)
        sides = np.stack([target.signs > 0, target.signs < 0])
        sums = sides.astype(np.float64) @ X
        return PreparedSVM(target, sides.sum(axis=2), sums, SampleSpan.of(X))

    def is_zero_solution(self, prepared: PreparedSVM) -> bool:
        """Return whether every w is zero: for "l1", if no slope of the loss there exceeds 1."""
        if self.penalty == "l2":
            return False
        bias, sums = self._null_bias(prepared), prepared.sums
        slopes = (1 - bias)[:, None] * sums[0] - (1 + bias)[:, None] * sums[1]
        return bool(2 * self.C * np.abs(slopes).max() <= 1)

    def fit_zero_solution(self, X: FloatArray, y: LabelArray, prepared: PreparedSVM) -> None:
        """Set the fitted attributes to w = 0 and its optimal b."""
        self.n_features_in_ = X.shape[1]
        self.objective_path_, self.n_iter_ = np.array([self._keep_null(X, prepared)]), 1
        self.converged_ = self._has_converged(self.objective_path_)

    def _null_bias(self, prepared: PreparedSVM) -> FloatArray:
        """Optimal b for "l1" and w = 0: a root within [-1, 1]."""
        above, below = prepared.counts
        excess = above - below
        return np.sign(excess) * np.maximum(np.abs(excess) - 0.5 / self.C, 0.0) / (above + below)

    def _keep_null(self, X: FloatArray, prepared: PreparedSVM) -> float:
        bias = self._null_bias(prepared)
        return self._keep(
            X, prepared.target, coef=np.zeros((len(bias), X.shape[1])), bias=bias, steps=0
        )

    def _updates(self, X: FloatArray, y: LabelArray, prepared: PreparedSVM) -> Iterator[float]:
        machines = [self._machine(X, sign, prepared.span) for sign in prepared.target.signs]
        coef, bias = np.stack([w for w, _, _ in machines]), np.array([b for _, b, _ in machines])
        yield self._keep(
            X, prepared.target, coef=coef, bias=bias, steps=max(steps for _, _, steps in machines)
        )

    def _keep(
        self, X: FloatArray, target: SignedTarget, coef: FloatArray, bias: FloatArray, steps: int
    ) -> float:
        """Set the fitted attributes and return the objective."""
        self._keep_target(target)
        self.coef_, self.intercept_, self.liblinear_iterations_ = coef, bias, steps
        # A constant feature acts as a second intercept, so that its coefficient says nothing about
        # the classes.
        self.scores_ = np.where((X[0] == X).all(axis=0), 0.0, np.linalg.norm(coef, axis=0))
        margins = target.signs * (coef @ X.T + bias[:, None])
        weights = np.column_stack([coef, bias])
        penalty = np.abs(weights).sum()
        if self.penalty == "l2":
            penalty = 0.5 * (weights**2).sum()
        return float(penalty + self.C * (np.maximum(0.0, 1.0 - margins) ** 2).sum())

    def _machine(
        self, X: FloatArray, sign: FloatArray, span: SampleSpan | None
    ) -> tuple[FloatArray, float, int]:
        """Solve one binary problem; return w, b and the number of iterations."""
        # A label that all samples have, or none, needs no solver: w = 0, and b is its sign.
        if (sign == sign[0]).all():
            return np.zeros(X.shape[1]), float(sign[0]), 0
        machine = LinearSVC(
            penalty=self.penalty,
            C=self.C,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
            dual="auto",
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # reported by converged_
            machine = fit_clone(machine, X, sign, span)
        return machine.coef_[0], float(machine.intercept_[0]), int(machine.n_iter_)

    def _has_converged(self, path: FloatArray) -> bool:
        """Return whether LinearSVC reached ``tol`` on every binary problem."""
        return self.liblinear_iterations_ < self.max_iter

    def _not_converged(self) -> str:
        reached = f"did not reach tol={self.tol:g} in {self.max_iter} iterations of LinearSVC"
        return f"{type(self).__name__} {reached}: increase max_iter or tol."
