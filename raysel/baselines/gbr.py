"""Bilinear regression (GBR): one row factor and one column factor for each class, by alternating ridge regressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from raysel.base.estimator import Capabilities
from raysel.base.iterative import IterativeEstimator
from raysel.base.selector import MatrixSelector
from raysel.core.arrays import FloatArray, Interval, LabelArray
from raysel.numerics.least_squares import LeastSquaresData, least_squares_data, left_factors, orthonormal


class BilinearRegression(IterativeEstimator, MatrixSelector):
    """Bilinear regression: ranks the cells of matrix-shaped samples and classifies them.

        min  sum_i (u'X_i v + b - t_i)^2  +  alpha ||u||^2 ||v||^2

    over u, v and b for each class, with its one-hot target t (n_samples,). Gabriel's generalised bilinear regression
    [1]_ as [2]_, section II-C, uses it, with a penalty that makes it well-posed: sparse matrix regression of rank 1
    with a ridge penalty. Centring samples and targets replaces b. An iteration solves for all u given v, and for all
    v given u, each exactly. The problem is not convex; the start of v is the leading right singular vector of
    ``sum_i t_i X_i`` over the centred samples. For samples of one column it is ridge regression.

    Parameters
    ----------
    shape : tuple of (int, int), default=None
        Height and width of the samples, whose cells in C order are the features. None: (n_features, 1).
    alpha : float, default=0.01
        Strength of the penalty, above 0, for the features as given: for s X it is s^2 alpha.
    max_iter : int, default=100
        Maximum number of iterations; one solves for u and for v.
    tol : float, default=1e-4
        Stop when an iteration lowers the objective by at most this share.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        The matrices u v', row by row; one row for two classes, the difference of both.
    intercept_ : ndarray of shape (n_classes,)
        b; one entry for two classes.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    scores_ : ndarray of shape (n_features,)
        ``sqrt(sum_r u_ra^2 v_rb^2)`` over the classes r for the cell (a, b); 0 for features that are constant in the
        training set.
    ranking_ : ndarray of int64, shape (n_features,)
        Rank of each feature, 1 is best.
    objective_path_ : ndarray of shape (n_iter_,)
        Sum of the classes' objectives after each iteration; it never rises.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the last iteration met ``tol``, at a local optimum.

    Raises
    ------
    numpy.linalg.LinAlgError
        From ``fit``: alpha vanishes in rounding beside the squares of the features.

    References
    ----------
    .. [1] Gabriel, "Generalised bilinear regression", Biometrika 85(3), 1998.
    .. [2] Hou, Jiao, Nie, Luo, Zhou, "2D feature selection by sparse matrix regression",
       IEEE Transactions on Image Processing 26(9), 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> gbr = BilinearRegression(shape=(8, 8), n_features_to_select=20).fit(X, y)
    >>> gbr.transform(X).shape
    (1797, 20)
    """

    capabilities: ClassVar[Capabilities] = replace(MatrixSelector.capabilities, local_optimum=True)

    _random_start = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        shape: tuple[int, int] | None = None,
        alpha: float = 0.01,
        max_iter: int = 100,
        tol: float = 1e-4,
        n_features_to_select: int | None = None,
    ) -> None:
        self.shape = shape
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.n_features_to_select = n_features_to_select

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key by which a stronger penalty precedes a weaker one."""
        return (-float(self.alpha),)

    def another_start(self) -> BilinearRegression | None:
        """Return a copy that starts from a random v; None for samples of one row or column, where it is convex."""
        if min(self._sides(self.n_features_in_)) == 1:
            return None
        other: BilinearRegression = clone(self)
        other._random_start = True
        return other

    def prepare(self, X: FloatArray, y: LabelArray) -> LeastSquaresData:
        """Centre and reduce the training set."""
        return least_squares_data(X, y)

    def _updates(self, X: FloatArray, y: LabelArray, prepared: LeastSquaresData) -> Iterator[float]:
        c = len(prepared.Y)
        m, n = self._sides(prepared.X.shape[0])
        samples, sums, ones = prepared.X.reshape(m, n, -1), prepared.XY.reshape(c, m, n), np.ones((m, n))
        alpha = self.alpha / prepared.scale**2
        turned, turned_sums = samples.transpose(1, 0, 2), sums.transpose(0, 2, 1)  # views: the samples are kept once
        V = np.linalg.svd(sums, full_matrices=False)[2][:, :1].transpose(0, 2, 1)
        if self._random_start:
            V = np.random.default_rng(0).standard_normal(V.shape)
        while True:
            try:
                # Of a factor only the direction matters, as the other one is solved for; a zero one gets any.
                U = orthonormal(left_factors(samples, orthonormal(V), ones, prepared.Y, sums, alpha))
                V = left_factors(turned, U, ones.T, prepared.Y, turned_sums, alpha)
            except np.linalg.LinAlgError as error:
                raise np.linalg.LinAlgError(
                    f"alpha={self.alpha:g} vanishes in rounding beside the squares of features that deviate from their"
                    f" means by up to {prepared.scale:g}: raise alpha, or divide the features by {prepared.scale:g}."
                ) from error
            P = (U @ V.transpose(0, 2, 1)).reshape(c, -1)
            self._keep(P, prepared)
            yield float(((P @ prepared.X - prepared.Y) ** 2).sum() + prepared.residual + alpha * (P**2).sum())

    def _keep(self, P: FloatArray, prepared: LeastSquaresData) -> None:
        """Set the fitted attributes to these coefficients (n_classes, n_features) of the stored features."""
        coef = P / prepared.scale
        self.scores_ = np.where(prepared.constant, 0.0, np.sqrt((coef**2).sum(axis=0)))
        self._keep_linear(coef, prepared.Y_mean - coef @ prepared.X_mean, prepared.classes)
