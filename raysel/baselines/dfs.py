"""Discriminative feature selection (DFS): discriminant analysis with a penalty on rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from sklearn.base import clone

from raysel.base.classifiers import Selector
from raysel.base.estimator import POSITIVE, Capabilities, IterativeEstimator, next_seed
from raysel.base.task_samples import warn_of_lost_directions
from raysel.core.arrays import BoolArray, FloatArray, IntArray, Interval, LabelArray
from raysel.core.errors import ConfigError
from raysel.numerics.least_squares import centre_and_scale, expand, one_hot
from raysel.numerics.linear_algebra import gram
from raysel.numerics.reweighting import l2p_penalty, l2p_weights

#: Smooths the penalty, in units of squared coefficients of the stored features.
ZETA = 1e-12
#: Number of iterations whose decrease of the objective is compared with tol.
_WINDOW = 10
#: Least gamma for which the ranking depends on gamma where there are no more samples than features.
LEAST_GAMMA = 1e-3


@dataclass(frozen=True)
class PreparedDFS:
    """A training set centred and scaled, without constant features."""

    #: Centred features, divided by ``scale``; shape (n_samples, n_varying).
    X: FloatArray
    #: ``T diag(n_r)^(-1/2)`` of the one-hot targets T: its product with its transpose replaces
    #: samples by the means of their classes; shape (n_samples, n_classes).
    membership: FloatArray
    #: Whether a feature is not constant; shape (n_features,).
    varying: BoolArray
    scale: float
    n_directions: int

    def within(self, values: FloatArray) -> FloatArray:
        """Subtract from each row of an array (n_samples, any) the mean of its class."""
        return values - self.membership @ (self.membership.T @ values)


class DFS(IterativeEstimator, Selector):
    """Discriminative feature selection: ranks features by a penalised discriminant analysis.

        min_W  tr(W' S_w W)  +  gamma sum_j (||w_j||^2 + zeta)^(p/2)   subject to   W' S_t W = I

    with the scatter within classes S_w and in total S_t (sums over the samples) and the rows w_j of
    W (n_features, m), m = n_classes - 1. The constraint excludes W = 0, to which a penalty would
    drive the criterion of discriminant analysis.

    The method is reconstructed, the authors' code was not found: the abstract of [1]_ states the
    penalty, 0 < p <= 2, and a constraint that excludes W = 0; the constraint above and m are the
    reconstruction's. It is solved by iterative reweighting; an iteration is an eigenproblem of size
    min(n_samples, n_features). zeta is 1e-12 in units of the coefficients of the features divided
    by the power of two that puts the largest deviation from a mean into [0.5, 1).

    Parameters
    ----------
    gamma : float, default=0.1
        Strength of the penalty, above 0, for the features as given: for s X it is s^p gamma. Where
        there are no more samples than features it must be at least 0.001, see Raises; that is meant
        for features that deviate from their means by up to about 1.
    p : float, default=1.0
        Exponent of the norms of the rows, 0 < p <= 2; the smaller, the sparser.
    max_iter : int, default=300
        Maximum number of iterations.
    tol : float, default=1e-4
        Stop when ten iterations lower the objective by at most this share. The problem is not
        convex: nothing proves how far its optimum is.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        ``||w_j||``; 0 for features that are constant in the training set.
    components_ : ndarray of shape (m, n_features)
        W', with fewer rows where S_t has a smaller rank.
    ranking_ : ndarray of int64, shape (n_features,)
        Rank of each feature, 1 is best.
    objective_path_ : ndarray of shape (n_iter_,)
        Objective after each iteration; it never rises.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the last ten iterations met ``tol``, at a local optimum.

    Warns
    -----
    LinAlgWarning
        If there are no more samples than features and some features have so much smaller a scale
        than others that their scores are inaccurate.
    UserWarning
        If there are no more samples than features and gamma is below ``0.001 s^p`` where half of
        the features deviate from their means by s or more: the ranking hardly depends on gamma.

    Raises
    ------
    ConfigError
        From ``fit``: gamma below 0.001 with no more samples than features. W then falls into the
        null space of S_w, where the first term is zero, and the ranking no longer depends on gamma.

    References
    ----------
    .. [1] Tao, Hou, Nie, Jiao, Yi, "Effective discriminative feature selection with nontrivial
       solution", IEEE
       Transactions on Neural Networks and Learning Systems 27(4), 2016; arXiv 1504.05408.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> DFS(gamma=1.0, n_features_to_select=3).fit_transform(scale(X), y).shape
    (178, 3)
    """

    capabilities: ClassVar[Capabilities] = replace(
        Selector.capabilities, reconstructed=True, local_optimum=True
    )
    score_meaning = "norm of the feature's row of the projection"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gamma": [POSITIVE],
        "p": [Interval(Real, 0, 2, closed="right")],
    }

    components_: FloatArray
    #: Seed of random weights of the features at the start; None: equal ones.
    _seed: int | None = None

    simpler_first = ("-gamma",)

    def __init__(
        self,
        gamma: float = 0.1,
        p: float = 1.0,
        max_iter: int = 300,
        tol: float = 1e-4,
        n_features_to_select: int | None = None,
    ) -> None:
        self.gamma = gamma
        self.p = p
        self.max_iter = max_iter
        self.tol = tol
        self.n_features_to_select = n_features_to_select

    def check(self, n_features: int) -> None:
        """Check that the parameters are valid for data of this number of features.

        Parameters
        ----------
        n_features : int
            Number of features.

        Raises
        ------
        ConfigError
            If a parameter is invalid; the message names the parameter, its value and the valid
            values.
        """
        super().check(n_features)
        self._n_features_checked = n_features  # for check_training, which is not told

    def check_training(self, y: LabelArray, tasks: IntArray | None = None) -> None:
        """Check that gamma is large enough for a training set with these labels.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Labels of the training set.
        tasks : ndarray of int, shape (n_samples,), default=None
            Not used.

        Raises
        ------
        ConfigError
            If gamma is below 0.001 with no more samples than features, as far as `check` was told
            their number.
        """
        self._check_gamma(len(y), getattr(self, "_n_features_checked", 0))

    def _check_gamma(self, n_samples: int, n_features: int) -> None:
        if self.gamma < LEAST_GAMMA and n_samples <= n_features:
            raise ConfigError(
                f"gamma={self.gamma:g} is too small for {n_samples} samples of {n_features}"
                " features: the scatter within classes vanishes and the ranking no longer depends"
                f" on gamma. Set gamma to at least {LEAST_GAMMA:g}, or use more samples than"
                " features."
            )

    def _warn_of_small_gamma(self, n_samples: int, prepared: PreparedDFS) -> None:
        if n_samples > prepared.X.shape[1]:
            return
        deviation = prepared.scale * float(np.median(np.abs(prepared.X).max(axis=0)))
        least = LEAST_GAMMA * deviation**self.p
        if self.gamma < least:
            warnings.warn(
                f"gamma={self.gamma:g} is small beside features half of which deviate from their"
                f" means by {deviation:.3g} or more: the ranking hardly depends on gamma. Set it to"
                f" at least {least:.3g}, or scale the features.",
                UserWarning,
                stacklevel=2,
            )

    def another_start(self) -> DFS:
        """Return a copy that starts from other random weights of the features."""
        other: DFS = clone(self)
        other._seed = next_seed(self._seed)
        return other

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedDFS:
        """Centre and scale the features and find the number of directions."""
        classes, T = one_hot(y)
        centred, _, constant, scale = centre_and_scale(X)
        centred = np.ascontiguousarray(centred[:, ~constant])
        rank = _rank(gram(centred, of_rows=len(X) <= centred.shape[1]))
        if rank < min(len(classes) - 1, *centred.shape):
            # The rank does not depend on the scales of the features, but rounding of their squares
            # may hide it.
            scaled = centred / np.abs(centred).max(axis=0)
            own, rank = rank, _rank(scaled @ scaled.T)
            if len(X) <= centred.shape[1]:  # only the matrix of size n_samples mixes the scales
                warn_of_lost_directions("the training set", own, rank)
        return PreparedDFS(
            X=centred,
            membership=T / np.sqrt(T.sum(axis=0)),
            varying=~constant,
            scale=scale,
            n_directions=min(len(classes) - 1, rank),
        )

    def _updates(self, X: FloatArray, y: LabelArray, prepared: PreparedDFS) -> Iterator[float]:
        self._check_gamma(*X.shape)
        self._warn_of_small_gamma(len(X), prepared)
        gamma = self.gamma / prepared.scale**self.p
        weights = np.ones(prepared.X.shape[1])
        if self._seed is not None:
            weights = np.random.default_rng(self._seed).lognormal(size=len(weights))
        step = _dual_step if len(X) <= prepared.X.shape[1] else _primal_step
        while True:
            if prepared.n_directions:
                W, projected = step(prepared, gamma * weights)
            else:
                W, projected = _nothing(prepared)
            energy = (W**2).sum(axis=1)
            self._keep(W, energy, prepared)
            yield float((prepared.within(projected) ** 2).sum()) + gamma * l2p_penalty(
                energy, self.p, ZETA
            )
            weights = l2p_weights(energy, self.p, ZETA)

    def _has_converged(self, path: FloatArray) -> bool:
        """Return whether the last ten iterations met ``tol``: one alone tells little."""
        if len(path) <= _WINDOW:
            return False
        return super()._has_converged(path[[-1 - _WINDOW, -1]])

    def _keep(self, W: FloatArray, energy: FloatArray, prepared: PreparedDFS) -> None:
        """Set the fitted attributes to these coefficients (n_varying, m) of the stored features."""
        scale, varying = prepared.scale, prepared.varying
        self.components_ = expand(W.T / scale, varying)
        self.scores_ = expand(np.sqrt(energy) / scale, varying)


def _rank(products: FloatArray) -> int:
    """Rank of samples or features, from the matrix of their inner products."""
    if not products.any():
        return 0
    return int(np.linalg.matrix_rank(products, hermitian=True))


def _dual_step(data: PreparedDFS, penalty: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Leading eigenvectors of ``S_t w = mu (S_w + diag(penalty)) w`` and X W, by n equations."""
    # With ``Q = X diag(penalty)^-1 X'`` and the projector P that subtracts class means, mu are the
    # eigenvalues of ``K = X (S_w + diag(penalty))^-1 X' = Q - Q P (I + P Q P)^-1 P Q``.
    root = 1.0 / np.sqrt(penalty)
    scaled = data.X * root
    Q = scaled @ scaled.T
    PQ = data.within(Q)
    system = data.within(PQ.T)
    system.flat[:: len(system) + 1] += 1.0
    C = scipy.linalg.cholesky(system, lower=True, overwrite_a=True, check_finite=False)
    half = scipy.linalg.solve_triangular(C, PQ, lower=True, check_finite=False)
    # All eigenvectors by divide and conquer take less time than some by the other drivers.
    mu, Z = scipy.linalg.eigh(Q - half.T @ half, driver="evd", overwrite_a=True, check_finite=False)
    mu, Z = mu[-data.n_directions :], Z[:, -data.n_directions :]
    inner = scipy.linalg.solve_triangular(C, half @ Z, lower=True, trans=1, check_finite=False)
    V = (Z - data.within(inner)) / mu
    return root[:, None] * (scaled.T @ V), Z  # X W is Z, so that W' S_t W = I


def _primal_step(data: PreparedDFS, penalty: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same by matrices of size n_features."""
    root = 1.0 / np.sqrt(penalty)
    scaled = data.X * root
    within = data.within(scaled)
    system = within.T @ within
    system.flat[:: len(system) + 1] += 1.0
    d, m = len(root), data.n_directions
    mu, vectors = scipy.linalg.eigh(
        scaled.T @ scaled,
        system,
        subset_by_index=(d - m, d - 1),
        overwrite_a=True,
        overwrite_b=True,
        check_finite=False,
    )  # fmt: skip
    W = root[:, None] * (vectors / np.sqrt(mu))
    return W, data.X @ W


def _nothing(data: PreparedDFS) -> tuple[FloatArray, FloatArray]:
    """No direction, where no feature varies."""
    return np.zeros((data.X.shape[1], 0)), np.zeros((len(data.X), 0))
