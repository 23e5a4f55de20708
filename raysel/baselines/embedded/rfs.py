"""Robust feature selection (RFS): regression onto the classes with norms of rows in the loss and in the penalty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np

from raysel.arrays import FloatArray, LabelArray
from raysel.base.iterative import IterativeEstimator
from raysel.base.selector import LinearSelector
from raysel.baselines.embedded.l21_regression import EPS, l21_steps, null_model
from raysel.linalg.least_squares import centre_and_scale, one_hot
from raysel.linalg.rounding import product
from raysel.validation import Interval, StrOptions


@dataclass(frozen=True)
class PreparedRFS:
    """A training set centred and scaled, and its zero solution."""

    #: Centred features, divided by ``scale``; shape (n_samples, n_features).
    X: FloatArray
    #: One-hot targets; shape (n_samples, n_classes).
    T: FloatArray
    #: Mean of each feature, as given; shape (n_features,).
    X_mean: FloatArray
    scale: float
    #: Sorted class labels; shape (n_classes,).
    classes: LabelArray
    #: Best intercept for W = 0; shape (n_classes,).
    null_intercept: FloatArray
    alpha_max: float


class RFS(IterativeEstimator, LinearSelector):
    """Robust feature selection: ranks features by the rows of a regression onto the classes, and classifies.

        min_W,b  sum_i ||x_i'W + b' - t_i||  +  alpha sum_j ||w_j||

    with one-hot targets t_i and the rows w_j of W (n_features, n_classes), as in eq. 3 of [2]_. The original [1]_ has
    no intercept b; here b is part of the problem, which is not the same as centring features and targets. The problem
    is convex and solved by iterative reweighting, extrapolated (see `reweighted_steps`), with one Cholesky
    factorisation an iteration, of size min(n_samples, n_features). The norms of the residuals are smoothed,
    ``sqrt(||.||^2 + 1e-12)``.

    Parameters
    ----------
    alpha : float, default=0.1
        Strength of the penalty, above 0; see ``alpha_scale``.
    alpha_scale : {"max", "absolute"}, default="max"
        Unit of alpha. "max": alpha_max of the training set, from which on the solution is zero, so that a factor of X
        changes no ranking. It is ``max_j ||sum_i x_ij r_i / ||r_i|| ||`` with the residuals ``r_i = b0 - t_i`` of
        W = 0, where b0 is the spatial median of the targets (their mean if all classes are equally large). Where b0
        is the target of a class itself, because it has about half of the samples or more, alpha_max is an upper
        bound, exact for two classes of equal size; where the solution is zero below it, the smoothing leaves
        tiny coefficients in place of zeros. "absolute": alpha is used as given.
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-4
        Stop when the objective is proved, by a dual problem, to be at most this share above the optimum.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        W'; one row for two classes, the difference of both.
    intercept_ : ndarray of shape (n_classes,)
        b; one entry for two classes.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    scores_ : ndarray of shape (n_features,)
        ``||w_j||``; 0 for features that are constant in the training set.
    ranking_ : ndarray of int64, shape (n_features,)
        Rank of each feature, 1 is best.
    objective_path_ : ndarray of shape (n_iter_,)
        Objective after each iteration; it never rises.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the objective is proved to be within ``tol`` of the optimum.
    dual_gap_ : float
        Upper bound of how far the objective is above the optimum, relative to it.

    References
    ----------
    .. [1] Nie, Huang, Cai, Ding, "Efficient and robust feature selection via joint l2,1-norms minimization",
       Advances in Neural Information Processing Systems 23, 2010.
    .. [2] Hou, Jiao, Nie, Luo, Zhou, "2D feature selection by sparse matrix regression",
       IEEE Transactions on Image Processing 26(9), 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> rfs = RFS(alpha=0.2, n_features_to_select=3).fit(scale(X), y)
    >>> rfs.transform(scale(X)).shape, rfs.score(scale(X), y) > 0.9
    ((178, 3), True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "alpha_scale": [StrOptions({"max", "absolute"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_features_to_select": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        alpha: float = 0.1,
        alpha_scale: Literal["max", "absolute"] = "max",
        max_iter: int = 500,
        tol: float = 1e-4,
        n_features_to_select: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.alpha_scale = alpha_scale
        self.max_iter = max_iter
        self.tol = tol
        self.n_features_to_select = n_features_to_select

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key by which a stronger penalty precedes a weaker one.

        Returns
        -------
        tuple of float
            Smaller for simpler models.
        """
        return (-float(self.alpha),)

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedRFS:
        """Centre and scale the features and compute the zero solution.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Training samples.
        y : ndarray of shape (n_samples,)
            Training labels.

        Returns
        -------
        PreparedRFS
            The same for all parameters.

        Raises
        ------
        DataError
            If y holds one class only.
        """
        classes, T = one_hot(y)
        features, X_mean, _, scale = centre_and_scale(X)
        null_intercept, gradients = null_model(T.sum(axis=0).astype(np.int64))
        alpha_max = scale * float(np.linalg.norm(product(features.T, T @ gradients), axis=1).max())
        return PreparedRFS(features, T, X_mean, scale, classes, null_intercept, alpha_max)

    def is_zero_solution(self, prepared: PreparedRFS) -> bool:
        """Return whether alpha is at least alpha_max, or no feature correlates with the classes.

        Parameters
        ----------
        prepared : PreparedRFS
            Result of ``prepare`` for the training set.

        Returns
        -------
        bool
            True only if W = 0 is optimal.
        """
        limit = 1.0 if self.alpha_scale == "max" else prepared.alpha_max
        return prepared.alpha_max == 0.0 or self.alpha >= limit

    def fit_zero_solution(self, X: FloatArray, y: LabelArray, prepared: PreparedRFS) -> None:
        """Set the fitted attributes to W = 0 and the spatial median, which predict the most frequent class.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Training samples.
        y : ndarray of shape (n_samples,)
            Training labels.
        prepared : PreparedRFS
            Result of ``prepare(X, y)``.
        """
        b = prepared.null_intercept
        self._keep(np.zeros((X.shape[1], len(b))), b, np.zeros(X.shape[1]), prepared)
        loss = np.sqrt(((prepared.T - b) ** 2).sum(axis=1) + EPS).sum()
        self.objective_path_, self.n_iter_, self.converged_, self.dual_gap_ = np.array([loss]), 1, True, 0.0

    def _updates(self, X: FloatArray, y: LabelArray, prepared: PreparedRFS) -> Iterator[float]:
        unit = prepared.alpha_max if self.alpha_scale == "max" else 1.0
        for step in l21_steps(prepared.X, prepared.T, self.alpha * unit / prepared.scale):
            self.dual_gap_ = step.gap
            self._keep(step.W, step.b, step.norms[: len(step.W)], prepared)
            yield step.J

    def _keep(self, W: FloatArray, b: FloatArray, norms: FloatArray, prepared: PreparedRFS) -> None:
        """Set the fitted attributes to these coefficients of the centred and scaled features."""
        coef = W.T / prepared.scale
        self.scores_ = norms / prepared.scale
        self._keep_linear(coef, b - coef @ prepared.X_mean, prepared.classes)
