"""GLSPFS: sparse least squares whose predictions vary little among near samples."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.linalg
from scipy.sparse import csr_array, diags_array
from sklearn.neighbors import kneighbors_graph

from raysel.base.classifiers import LinearSelector, Selector
from raysel.base.estimator import COUNT, NOT_NEGATIVE, POSITIVE, Capabilities, IterativeEstimator
from raysel.base.regressors import LinearRegressor
from raysel.core.arrays import BoolArray, FloatArray, LabelArray, StrOptions
from raysel.numerics.least_squares import QuantityScale, expand
from raysel.numerics.linear_algebra import centre, product
from raysel.numerics.reweighting import BoundedStep, reweighted_steps, weighted_ridge_with_dual


def heat_kernel_laplacian(X: FloatArray, n_neighbors: int) -> csr_array:
    """Laplacian ``L = diag(A 1) - A`` of the graph of nearest neighbours.

    ``A_ab = exp(-||x_a - x_b||^2 / g)`` where a is among the nearest neighbours of b or b among
    those of a, and 0 elsewhere; g is the mean of the squared distances over all n_samples^2 pairs.
    A sample far from all others, whose weights vanish in double precision, has a row of zeros in L.
    A sample is no neighbour of itself. Without features L is zero.

    `X` is (n_samples, n_features); returns (n_samples, n_samples).
    """
    n = len(X)
    if n < 2 or X.shape[1] == 0:
        return csr_array((n, n))
    graph = csr_array(
        kneighbors_graph(X, min(n_neighbors, n - 1), mode="distance", include_self=False)
    )
    # The mean over all pairs is twice the mean squared distance from the centre.
    width = 2.0 * float(((X - X.mean(axis=0)) ** 2).sum()) / n
    graph.data = np.exp(-(graph.data**2) / (width if width > 0 else 1.0))
    graph = graph.maximum(graph.T)
    return csr_array(diags_array(graph.sum(axis=1)) - graph)


#: Features whose standard deviation is below this are left out.
LEAST_DEVIATION = 1e-8


@dataclass(frozen=True, kw_only=True)
class PreparedGLSPFS:
    """Standardised training set and the graph's Laplacian, in n_rows coordinates."""

    #: z-scores of the features that are used; shape (n_rows, n_used).
    X: FloatArray
    #: Centred one-hot targets, or standardised quantities, in the same coordinates; shape (n_rows,
    #: n_classes).
    T: FloatArray
    #: L, in the same coordinates; shape (n_rows, n_rows).
    laplacian: FloatArray
    n_samples: int
    #: Whether a feature is used; shape (n_features,).
    used: BoolArray
    #: Mean and standard deviation of the features used; shape (n_used,).
    mean: FloatArray
    deviation: FloatArray
    #: Mean of each target, i.e. the share of each class among the samples; shape (n_classes,).
    shares: FloatArray
    #: What the columns of ``T`` stand for: sorted class labels, shape (n_classes,), or the scales
    #: of quantities.
    classes: LabelArray | QuantityScale
    sparsity_max: float
    #: Sum of the squared targets before they were centred.
    total: float


class _PreservedStructure(IterativeEstimator, Selector):
    """Parameters and iterations of GLSPFS, whatever the targets."""

    # Of the base class that says what the targets are.
    _targets: Callable[[LabelArray], tuple[Any, FloatArray]]
    _keep_linear: Callable[..., None]

    n_neighbors: int

    @abstractmethod
    def _graph(self, Z: FloatArray, T: FloatArray) -> csr_array:
        """Return the Laplacian of the graph of the features used and the targets."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "local": [NOT_NEGATIVE],
        "sparsity": [POSITIVE],
        "sparsity_scale": [StrOptions({"absolute", "max"})],
        "n_neighbors": [COUNT],
    }

    simpler_first = ("-sparsity", "-local")

    def __init__(
        self,
        local: float = 0.001,
        sparsity: float = 0.1,
        sparsity_scale: Literal["absolute", "max"] = "absolute",
        n_neighbors: int = 7,
        max_iter: int = 500,
        tol: float = 1e-4,
        n_features_to_select: int | None = None,
    ) -> None:
        self.local = local
        self.sparsity = sparsity
        self.sparsity_scale = sparsity_scale
        self.n_neighbors = n_neighbors
        self.max_iter = max_iter
        self.tol = tol
        self.n_features_to_select = n_features_to_select

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedGLSPFS:
        """Standardise the features and build the graph of the training samples."""
        classes, T = self._targets(y)
        total = float((T**2).sum())
        shares = T.mean(axis=0)
        T -= shares
        mean, centred = centre(X)
        deviation = np.linalg.norm(centred, axis=0) / np.sqrt(len(X) - 1)
        used = deviation >= LEAST_DEVIATION
        if deviation.any() and not used.any():
            warnings.warn(
                "All features are left out, as their standard deviations are below"
                f" {LEAST_DEVIATION:g}; the largest is {deviation.max():.1e}. Scale the features"
                " (e.g. to z-scores).",
                UserWarning,
                stacklevel=2,
            )
        mean, deviation = mean[used], deviation[used]
        rows: FloatArray = centred[:, used] / deviation
        correlations = np.linalg.norm(product(rows.T, T), axis=1)
        sparsity_max = 2.0 / len(X) * float(correlations.max(initial=0.0))
        laplacian = self._graph(rows, T)
        if len(X) > rows.shape[1]:
            Q, R = np.linalg.qr(rows)
            rows, T, reduced = R, Q.T @ T, Q.T @ (laplacian @ Q)
        else:
            reduced = laplacian.toarray()
        return PreparedGLSPFS(
            X=rows,
            T=T,
            laplacian=reduced,
            n_samples=len(X),
            used=used,
            mean=mean,
            deviation=deviation,
            shares=shares,
            classes=classes,
            sparsity_max=sparsity_max,
            total=total,
        )

    def is_zero_solution(self, prepared: PreparedGLSPFS) -> bool:
        """Return whether ``sparsity`` is at its maximum, or no feature tells a class."""
        limit = 1.0
        if self.sparsity_scale == "absolute":
            limit = prepared.sparsity_max
        return prepared.sparsity_max == 0.0 or self.sparsity >= limit

    def fit_zero_solution(self, X: FloatArray, y: LabelArray, prepared: PreparedGLSPFS) -> None:
        """Set the fitted attributes to W = 0, which predicts the commonest class or the mean."""
        n_used = len(prepared.mean)
        self._keep(np.zeros((prepared.T.shape[1], n_used)), np.zeros(n_used), prepared)
        self.objective_path_, self.n_iter_, self.converged_, self.dual_gap_ = (
            np.array([prepared.total / prepared.n_samples]),
            1,
            True,
            0.0,
        )

    def _updates(self, X: FloatArray, y: LabelArray, prepared: PreparedGLSPFS) -> Iterator[float]:
        features, targets, residual = self._regression(prepared)
        n, unit = prepared.n_samples, 1.0
        if self.sparsity_scale == "max":
            unit = prepared.sparsity_max
        alpha = n * self.sparsity * unit

        def minimise(touched: FloatArray) -> BoundedStep:
            try:
                W, dual = weighted_ridge_with_dual(features, targets, 0.5 / touched, alpha)
            except np.linalg.LinAlgError as error:
                raise np.linalg.LinAlgError(
                    f"sparsity={self.sparsity:g} vanishes in rounding beside the z-scores: raise"
                    " sparsity."
                ) from error
            norms = np.sqrt(np.einsum("cj,cj->j", W, W))
            residuals = alpha * dual
            loss, correlation = float((residuals**2).sum()), float((residuals * targets.T).sum())
            # s times the residuals is dual feasible if s 2 ||X_j'R|| <= alpha; the bound is largest
            # at this s.
            s = min(correlation / loss, 1.0 / float((norms / touched).max()))
            lower = 2.0 * s * correlation - s * s * loss + residual
            return BoundedStep(
                W, norms, (loss + residual + alpha * float(norms.sum())) / n, lower / n
            )

        for step in reweighted_steps(
            minimise, np.full(len(features), 0.5)
        ):  # weights of 1, the authors' start
            self._keep(step.W, step.norms, prepared)
            self.dual_gap_ = step.gap
            yield step.J

    def _regression(self, prepared: PreparedGLSPFS) -> tuple[FloatArray, FloatArray, float]:
        """Least-squares problem with n times the loss and local term, and its residual."""
        # With ``I + n local L = R'R`` its features are R X and its targets R^-T T, transposed.
        n = prepared.n_samples
        system = n * self.local * prepared.laplacian
        system.flat[:: len(system) + 1] += 1.0
        R = scipy.linalg.cholesky(system, overwrite_a=True, check_finite=False)
        X = R @ prepared.X
        T = scipy.linalg.solve_triangular(R, prepared.T, trans=1, check_finite=False)
        return (
            np.ascontiguousarray(X.T),
            np.ascontiguousarray(T.T),
            prepared.total - float((T**2).sum()),
        )

    def _keep(self, W: FloatArray, norms: FloatArray, prepared: PreparedGLSPFS) -> None:
        """Set the fitted attributes to these coefficients (n_classes, n_used) of the z-scores."""
        coef = W / prepared.deviation
        self.scores_ = expand(norms, prepared.used)
        self._keep_linear(
            expand(coef, prepared.used), prepared.shares - coef @ prepared.mean, prepared.classes
        )


class GLSPFS(_PreservedStructure, LinearSelector):
    """Global and local structure preservation: ranks by a regression smooth on a graph.

        min_W  1/n ||X W - T||_F^2  +  local tr((X W)' L (X W))  +  sparsity sum_j ||w_j||

    with one-hot targets T of n samples, the rows w_j of W (n_features, n_classes) and the z-scores
    X of the features over the training samples (standard deviation with n - 1; features with one
    below 1e-8 are left out and have score 0). This is the supervised form of the first author's
    program; the paper [1]_ derives T from a kernel. The problem is convex and solved by iterative
    reweighting, extrapolated (see `reweighted_steps`), one Cholesky factorisation an iteration, of
    size min(n_samples, n_features). The intercept of the decision function is the share of each
    class; as X is centred it changes no coefficient.

    The paper has several graphs. Here L is the Laplacian of the nearest-neighbour graph ("LP") with
    weights ``exp(-||x_a - x_b||^2 / g)``, g the mean of all squared distances; see
    `heat_kernel_laplacian`.

    Parameters
    ----------
    local : float, default=0.001
        Weight of the local term, not negative; 0 leaves regression with a penalty on the rows.
    sparsity : float, default=0.1
        Weight of the penalty, above 0; see ``sparsity_scale``.
    sparsity_scale : {"absolute", "max"}, default="absolute"
        Unit of ``sparsity``. "absolute": it is used as given, as in the paper. From ``max_j (2/n)
        ||X_j'T||`` on, X_j a column, the solution is zero; that is at most ``2 sqrt(n_max / n)``
        with the size n_max of the largest
        class, e.g. 0.32 for 40 equal classes. "max": it is a share of that maximum.
    n_neighbors : int, default=7
        Number of nearest neighbours of each sample in the graph; of too few samples all others.
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-4
        Stop when the objective is proved, by a dual problem, to be at most this share above the
        optimum.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        Coefficients of the features as given; one row for two classes, the difference of both.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts for the features as given; one entry for two classes.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    scores_ : ndarray of shape (n_features,)
        ``||w_j||`` of the z-scores; 0 for features that are left out.
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

    Warns
    -----
    UserWarning
        If no feature has a standard deviation of 1e-8 or more: all scores are 0.

    Raises
    ------
    numpy.linalg.LinAlgError
        From ``fit``: sparsity vanishes in rounding beside the z-scores.

    References
    ----------
    .. [1] Liu, Wang, Zhang, Yin, Liu, "Global and local structure preservation for feature
       selection", IEEE Transactions on Neural Networks and Learning Systems 25(6), 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> glspfs = GLSPFS(n_features_to_select=3).fit(X, y)
    >>> glspfs.transform(X).shape, glspfs.score(X, y) > 0.9
    ((178, 3), True)
    """

    capabilities: ClassVar[Capabilities] = replace(
        LinearSelector.capabilities, prepare_parameters=frozenset({"n_neighbors"})
    )
    score_meaning = "norm of the feature's coefficients over the classes, of z-scores"

    def _graph(self, Z: FloatArray, T: FloatArray) -> csr_array:
        return heat_kernel_laplacian(Z, self.n_neighbors)


class GLSPFSRegressor(_PreservedStructure, LinearRegressor):
    """Global and local structure preservation for quantities: a regression smooth on a graph.

        min_W  1/n ||X W - T||_F^2  +  local tr((X W)' L (X W))  +  sparsity sum_j ||w_j||

    as `GLSPFS` with the standardised quantities T in place of the one-hot targets. L is the
    Laplacian of the graph that joins each sample to its nearest neighbours in y, so that samples of
    like quantities get like predictions; that of `GLSPFS` joins neighbours in the features.

    Parameters
    ----------
    local : float, default=0.001
        Weight of the local term, not negative; 0 leaves regression with a penalty on the rows.
    sparsity : float, default=0.1
        Weight of the penalty, above 0; see ``sparsity_scale``.
    sparsity_scale : {"absolute", "max"}, default="absolute"
        Unit of ``sparsity``. "absolute": it is used as given, for the standardised quantities. From
        ``max_j (2/n) ||X_j'T||`` on, X_j a column, the solution is zero: for one quantity twice the
        largest correlation.
        "max": it is a share of that maximum.
    n_neighbors, max_iter, tol, n_features_to_select : default as in `GLSPFS`
        See `GLSPFS`; of samples at equal distance in y the first ones are neighbours.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_quantities, n_features)
        Coefficients, in units of y and of the features; of one dimension if y is.
    intercept_ : float or ndarray of shape (n_quantities,)
        Intercepts, in units of y.
    scores_ : ndarray of shape (n_features,)
        ``||w_j||`` of the z-scores, for the standardised quantities; 0 for features that are left
        out.
    ranking_, objective_path_, n_iter_, converged_, dual_gap_
        See `GLSPFS`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> glspfs = GLSPFSRegressor(n_features_to_select=3).fit(X, y)
    >>> glspfs.transform(X).shape, glspfs.score(X, y) > 0.2
    ((442, 3), True)
    """

    capabilities: ClassVar[Capabilities] = replace(
        LinearRegressor.capabilities, prepare_parameters=frozenset({"n_neighbors"})
    )
    score_meaning = "norm of the feature's coefficients over the quantities, of z-scores"

    def _graph(self, Z: FloatArray, T: FloatArray) -> csr_array:
        # Whole multiples of a small step: the rounding of y in another unit must not decide between
        # equal distances.
        return heat_kernel_laplacian(np.round(T * 2.0**30), self.n_neighbors)
