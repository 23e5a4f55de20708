"""MLLS: multi-label least squares with a subspace that the labels share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.linalg

from raysel.base.iterative import OneShotEstimator
from raysel.base.one_against_rest import OneAgainstRest, SignedTarget, signed_target
from raysel.core.arrays import FloatArray, IntArray, Interval, LabelArray
from raysel.core.errors import ConfigError
from raysel.numerics.rounding import EPS
from raysel.numerics.scatter import centre


@dataclass(frozen=True)
class PreparedLeastSquares:
    """Singular value decomposition P diag(s) Q' of the centred samples, and the signs in it."""

    target: SignedTarget
    #: Centred signs of the c classes or labels, for two classes of both; shape (n_samples, c).
    signs: FloatArray
    #: Mean of each column of the signs; shape (c,).
    sign_means: FloatArray
    #: Mean of the samples; shape (n_features,).
    mean: FloatArray
    #: s^2 / n_samples, descending, without those at rounding level; shape (p,).
    squares: FloatArray
    #: P; shape (n_samples, p).
    left: FloatArray
    dual: bool
    #: Q; without rows if dual; shape (n_features, p).
    right: FloatArray
    #: diag(s) P'Y / n_samples; shape (p, c).
    rotated: FloatArray


class MLLS(OneShotEstimator, OneAgainstRest):
    """Linear classifier of all labels by least squares, with a subspace of the features that the labels share.

        min_{U, V, Theta}  ||X U - Y||^2 / n  +  a ||U - Theta V||^2  +  b ||U||^2,    Theta' Theta = I

    for centred samples X and centred signs Y of shape (n, c), with Theta of shape (n_features, rank),
    a = alpha s^2 / n, b = beta s^2 / n and s the largest singular value of X. The minimum is given by a generalised
    eigenproblem, which needs one decomposition of X for all configurations and matrices of c columns for each one:

        M = X'X / n + (a + b) I,   B = M^-1 X'Y / n,   B B' v = mu (I - a M^-1) v,   U = (M - a Theta Theta')^-1 X'Y / n

    where Theta is an orthonormal basis of the eigenvectors v of the largest mu. Labels are predicted where
    x'U + mean(Y) is positive, with one label a sample the class where it is largest. Several modalities are
    concatenated.

    Parameters
    ----------
    alpha : float, default=0.01
        Weight of the coefficients outside the shared subspace, as a multiple of s^2 / n; with 0 the method is ridge
        regression.
    beta : float, default=0.001
        Weight of all coefficients, as a multiple of s^2 / n, at least 1e-8.
    rank : int, default=None
        Dimension of the shared subspace, below the number c of labels: from there on it contains all coefficients, and
        the method is ridge regression. None: c / 2, rounded down. With one label a sample the c columns of Y sum to a
        constant, so that the method is ridge regression for rank = c - 1 and always for two classes.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        Coefficients U'; one row for two classes.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts; one entry for two classes.
    shared_subspace_ : ndarray of shape (n_features, rank)
        Theta; fewer columns if fewer directions matter, none if ``alpha`` is 0.
    scores_ : ndarray of shape (n_features,)
        Euclidean norm of each feature's coefficients; 0 for features that are constant in the training set.
    classes_, class_count_, multilabel_
        See `OneAgainstRestClassifier`.
    objective_path_ : ndarray of shape (1,)
        Minimum of the objective.

    References
    ----------
    Ji, Tang, Yu & Ye, "A shared-subspace learning framework for multi-label classification", ACM Transactions on
    Knowledge Discovery from Data 4, 2010.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, n_classes=4, random_state=0)
    >>> model = MLLS(rank=2).fit(X[:150], Y[:150])
    >>> bool((model.predict(X[150:]) == Y[150:]).mean() > 0.8)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        # Below, rounding of the Gram matrix, about 1e-16 of its largest eigenvalue, would be felt.
        "beta": [Interval(Real, 1e-8, None, closed="left")],
        "rank": [Interval(Integral, 1, None, closed="left"), None],
    }

    shared_subspace_: FloatArray

    def __init__(
        self,
        alpha: float = 0.01,
        beta: float = 0.001,
        rank: int | None = None,
        n_features_to_select: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.rank = rank
        self.n_features_to_select = n_features_to_select

    def complexity_key(self) -> tuple[float, ...]:
        """Return the sort key by which a smaller rank comes first, then a larger beta, then a larger alpha."""
        return (np.inf if self.rank is None else float(self.rank), -float(self.beta), -float(self.alpha))

    def check_training(self, y: LabelArray, tasks: IntArray | None = None) -> None:
        """Check that ``rank`` is below the number of labels or classes.

        Parameters
        ----------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels of the training set.
        tasks : ndarray of int, shape (n_samples,), default=None
            Task of each sample; not used.

        Raises
        ------
        ConfigError
            If ``rank`` is too large.
        """
        multilabel = y.ndim == 2 and y.shape[1] > 1
        self._check_rank(y.shape[1] if multilabel else len(np.unique(y)), "labels" if multilabel else "classes")

    def _check_rank(self, c: int, what: str) -> None:
        if self.rank is not None and self.rank >= c:
            raise ConfigError(
                f"rank={self.rank} makes MLLS plain ridge regression, because a subspace of that dimension contains the"
                f" coefficients of all {c} {what}: give at most {c - 1}."
            )

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedLeastSquares:
        """Decompose the centred samples, by the eigenvectors of the smaller Gram matrix."""
        target = signed_target(y)
        signs = np.vstack([-target.signs, target.signs]) if len(target.signs) == 1 else target.signs
        sign_means = signs.mean(axis=1)
        Y = np.ascontiguousarray((signs - sign_means[:, None]).T)
        n, d = X.shape
        mean, centred = centre(X)
        dual = n < d
        gram = centred @ centred.T if dual else centred.T @ centred
        values, vectors = scipy.linalg.eigh(gram, driver="evd", overwrite_a=True, check_finite=False)
        kept = values > max(n, d) * EPS * values[-1]
        values, vectors = values[kept][::-1], np.ascontiguousarray(vectors[:, kept][:, ::-1])
        s = np.sqrt(values)
        left = vectors if dual else (centred @ vectors) / s
        right = np.empty((0, len(s))) if dual else vectors
        return PreparedLeastSquares(
            target, Y, sign_means, mean, values / n, left, dual, right, (s / n)[:, None] * (left.T @ Y)
        )

    def _updates(self, X: FloatArray, y: LabelArray, prepared: PreparedLeastSquares) -> Iterator[float]:
        target, c = prepared.target, prepared.signs.shape[1]
        self._check_rank(c, "labels" if target.multilabel else "classes")
        rank = max(1, c // 2) if self.rank is None else self.rank
        # With constant features only there is nothing to weigh.
        scale = float(prepared.squares[0]) if len(prepared.squares) else 1.0
        a, b = self.alpha * scale, self.beta * scale
        theta, U = shared_solution(prepared.squares, prepared.rotated, a, b, rank)
        coef, shared = lifted(prepared, X, U).T, lifted(prepared, X, theta)
        n = len(X)
        residual = prepared.signs - prepared.left @ (np.sqrt(n * prepared.squares)[:, None] * U)
        objective = (residual**2).sum() / n + a * ((U**2).sum() - ((theta.T @ U) ** 2).sum()) + b * (U**2).sum()
        constant = (X[0] == X).all(axis=0)
        coef[:, constant] = 0.0
        rows = slice(1, None) if len(target.signs) == 1 else slice(None)
        self._keep_target(target)
        self.coef_, self.shared_subspace_ = np.ascontiguousarray(coef[rows]), shared
        self.intercept_ = prepared.sign_means[rows] - self.coef_ @ prepared.mean
        self.scores_ = np.linalg.norm(self.coef_, axis=0)
        yield float(objective)


def shared_solution(
    squares: FloatArray, rotated: FloatArray, a: float, b: float, rank: int
) -> tuple[FloatArray, FloatArray]:
    """Solve for Theta and U in the coordinates of the right singular vectors, where X'X / n is diagonal.

    `squares` is (p,), `rotated` (p, c); returns `theta` (p, r), `U` (p, c).
    """
    m = squares + (a + b)
    free = np.sqrt((squares + b) / m)  # square root of the diagonal of I - a M^-1
    plain = rotated / m[:, None]
    directions, sizes, _ = scipy.linalg.svd(plain / free[:, None], full_matrices=False, check_finite=False)
    n_used = min(rank, int(np.count_nonzero(sizes > EPS * sizes[:1]))) if a > 0 else 0
    theta = np.linalg.qr(directions[:, :n_used] / free[:, None])[0]
    # (M - a Theta Theta')^-1 = M^-1 + a M^-1 Theta (I - a Theta' M^-1 Theta)^-1 Theta' M^-1
    weighted = theta / m[:, None]
    inner = np.eye(n_used) - a * (theta.T @ weighted)
    return theta, plain + a * (weighted @ scipy.linalg.solve(inner, theta.T @ plain, assume_a="pos"))


def lifted(prepared: PreparedLeastSquares, X: FloatArray, coordinates: FloatArray) -> FloatArray:
    """Express directions given in the coordinates of the right singular vectors by the original features.

    `X` is (n_samples, n_features), `coordinates` (p, k); returns (n_features, k).
    """
    if not prepared.dual:
        return prepared.right @ coordinates
    weights = prepared.left @ (coordinates / np.sqrt(len(X) * prepared.squares)[:, None])
    return X.T @ weights - np.outer(prepared.mean, weights.sum(axis=0))
