"""Regression with a robust loss: sums of norms of the residuals and the coefficients (RFS).

    J(W, b) = sum_i sqrt(||T_i - X_i W - b'||^2 + EPS)  +  alpha sum_j ||w_j||

is lowered by iterative reweighting (Nie et al., NIPS 2010). Both sums are replaced by quadratic
functions that touch them at the present residuals and rows, with ``rho_i`` and ``omega_j`` their
norms. The minimiser for all W and b is

    (X diag(omega) X' / alpha + diag(rho)) Z = T - 1 b',  1'Z = 0,  W = diag(omega) X'Z / alpha,
    residuals diag(rho) Z,

one system of n_samples equations, or a weighted ridge regression with n_features equations:
whichever is smaller is solved. J never rises.

With ``s = 1 / max(1, ||z_i||, ||X_j'Z|| / alpha)`` the dual point s Z is feasible, so that no J is
below

    s <Z, T>  +  sqrt(EPS) sum_i sqrt(1 - s^2 ||z_i||^2)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.linalg import lapack

from raysel.base.classifiers import LinearSelector, Selector
from raysel.base.estimator import POSITIVE, IterativeEstimator
from raysel.base.regressors import LinearRegressor
from raysel.base.search_drafts import HUGE, OF_ALPHA, DataSize, SearchDraft
from raysel.core.arrays import FloatArray, IntArray, LabelArray, StrOptions
from raysel.data.layouts import Layout
from raysel.numerics.least_squares import QuantityScale, centre_and_scale
from raysel.numerics.linear_algebra import product
from raysel.numerics.reweighting import BoundedStep, reweighted_steps

#: Smooths the norms of residuals of one-hot targets.
EPS = 1e-12


def l21_steps(X: FloatArray, T: FloatArray, alpha: float) -> Iterator[BoundedStep]:
    """Iterate from unit weights, ``omega = rho = 1``.

    `X` is (n_samples, n_features), `T` (n_samples, n_targets).
    """
    update = _dual_update if len(X) <= X.shape[1] else _primal_update
    scaled = np.empty_like(X)  # one for all iterations: its pages are touched once

    def minimise(touched: FloatArray) -> BoundedStep:
        omega, rho = np.split(touched, [X.shape[1]])
        W, b, residuals = update(X, T, omega=omega, rho=rho, alpha=alpha, scaled=scaled)
        norms = np.sqrt(np.einsum("jc,jc->j", W, W))
        squares = np.einsum("ic,ic->i", residuals, residuals)
        lengths = np.sqrt(squares + EPS)
        J = float(lengths.sum() + alpha * norms.sum())
        z = squares / rho**2
        s = 1.0 / max(1.0, float((norms / omega).max()), float(np.sqrt(z.max())))
        lower = s * float(((residuals / rho[:, None]) * T).sum())
        lower += float(np.sqrt(EPS * np.maximum(1.0 - s * s * z, 0.0)).sum())
        return BoundedStep(W=W, norms=np.concatenate([norms, lengths]), J=J, lower=lower, b=b)

    return reweighted_steps(minimise, np.ones(X.shape[1] + len(X)))


def _dual_update(
    X: FloatArray,
    T: FloatArray,
    omega: FloatArray,
    rho: FloatArray,
    alpha: float,
    scaled: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Minimise the quadratic bound by n_samples equations; return W, b and the residuals."""
    root = np.sqrt(omega / alpha)
    np.multiply(X, root, out=scaled)
    kernel = scaled @ scaled.T  # a symmetric product of BLAS
    kernel.flat[:: len(kernel) + 1] += rho
    solution = _solve(kernel, np.column_stack([T, np.ones(len(T))]))
    G, h = solution[:, :-1], solution[:, -1]
    b = (h @ T) / h.sum()
    Z = G - np.multiply.outer(h, b)
    W = scaled.T @ Z
    W *= root[:, None]
    return W, b, rho[:, None] * Z


def _primal_update(
    X: FloatArray,
    T: FloatArray,
    omega: FloatArray,
    rho: FloatArray,
    alpha: float,
    scaled: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Minimise the quadratic bound by n_features equations; return W, b and the residuals."""
    weights, root = 1.0 / rho, np.sqrt(omega)
    x_mean, t_mean = weights @ X / weights.sum(), weights @ T / weights.sum()
    np.subtract(X, x_mean, out=scaled)
    scaled *= np.sqrt(weights)[:, None]
    scaled *= root
    system = scaled.T @ scaled
    system.flat[:: len(system) + 1] += alpha
    W = root[:, None] * _solve(system, scaled.T @ (np.sqrt(weights)[:, None] * (T - t_mean)))
    b = t_mean - x_mean @ W
    return W, b, T - X @ W - b


def _solve(system: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a positive definite system, which is overwritten."""
    _, solution, info = lapack.dposv(system.T, right, lower=1, overwrite_a=1)
    if info:
        raise np.linalg.LinAlgError(
            "The norms of rows and residuals span more than double precision: raise alpha."
        )
    return solution


def null_model(counts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Best intercept for W = 0 on one-hot targets, and subgradients that prove it.

    The intercept is the spatial median of the targets. Where it is the target of a class r itself,
    which happens if r has about half of the samples or more, the residuals of that class have no
    gradient; its samples are given the common subgradient that makes the sum over all samples zero.

    `counts` is (n_classes,); returns `b` (n_classes,), `gradients` (n_classes, n_classes).
    """
    identity = np.eye(len(counts))
    # The pull of the others on class r, n_s (e_s - e_r) / sqrt(2) each, has this squared length.
    pull = ((counts.sum() - counts) ** 2 + (counts**2).sum() - counts**2) / 2
    major = np.flatnonzero(counts**2 >= pull)
    if major.size:
        r = major[0]
        gradients = (identity[r] - identity) / np.sqrt(2.0)
        gradients[r] = -(counts @ gradients) / counts[r]
        return identity[r], gradients
    b = _spatial_median(counts)
    differences = b - identity
    return b, differences / np.linalg.norm(differences, axis=1)[:, None]


#: Largest number of steps to a spatial median.
_MOST_STEPS = 1000


def _unit_sum(T: FloatArray, b: FloatArray) -> tuple[FloatArray, int]:
    """Sum of unit vectors from a point to the targets, and the number of equal ones."""
    differences = T - b
    lengths = np.linalg.norm(differences, axis=1)
    apart = lengths > 0.0
    return (differences[apart] / lengths[apart, None]).sum(axis=0), int(np.count_nonzero(~apart))


def _newton_step(T: FloatArray, b: FloatArray, lengths: FloatArray) -> FloatArray:
    """Newton's step for the total distance from a point to targets that all differ from it."""
    units = (T - b) / lengths[:, None]
    hessian = (1.0 / lengths).sum() * np.eye(T.shape[1]) - (units.T / lengths) @ units
    hessian.flat[:: len(hessian) + 1] += 1e-12 * hessian.trace()  # targets on a line
    step: FloatArray = np.linalg.solve(hessian, units.sum(axis=0))
    return step


def spatial_median(T: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Best intercept for W = 0 on any targets, and subgradients that prove it.

    The intercept is the spatial median of the targets, by Newton's method where it lowers the total
    distance, else by Weiszfeld's in the form of Vardi and Zhang (PNAS 97(4), 2000), which does not
    stop at a target. Samples whose target it is are given a common subgradient that makes the sum
    over all samples zero.

    `T` is (n_samples, n_quantities); returns `b` (n_quantities,), `gradients` (n_samples,
    n_quantities).
    """
    b = np.median(T, axis=0)
    for _ in range(_MOST_STEPS if T.shape[1] > 1 else 0):
        lengths = np.linalg.norm(T - b, axis=1)
        nearest = T[lengths.argmin()]
        pull, here = _unit_sum(T, nearest)
        if np.linalg.norm(pull) <= here:  # no other point has a smaller total distance
            b = nearest
            break
        if lengths.min() == 0.0:
            apart = lengths > 0.0
            b = b + (1.0 - here / np.linalg.norm(pull)) * pull / (1.0 / lengths[apart]).sum()
            continue
        step = _newton_step(T, b, lengths)
        if np.abs(step).max() <= 1e-13:
            break
        if np.linalg.norm(T - b - step, axis=1).sum() > lengths.sum():
            step = (1.0 / lengths) @ (T - b) / (1.0 / lengths).sum()
        b = b + step
    differences = b - T
    lengths = np.linalg.norm(differences, axis=1)
    near = lengths <= 1e-10  # the targets are standardised
    gradients = np.zeros_like(T)
    gradients[~near] = differences[~near] / lengths[~near, None]
    if near.any():
        gradients[near] = -gradients.sum(axis=0) / np.count_nonzero(near)
    return b, gradients


def _spatial_median(counts: IntArray) -> FloatArray:
    """Point of least total distance to the unit vectors, by Newton's method with halving."""
    identity = np.eye(len(counts))

    def distance(b: FloatArray) -> float:
        return float(counts @ np.linalg.norm(b - identity, axis=1))

    b = counts / counts.sum()
    for _ in range(50):  # quadratic convergence takes about five
        differences = b - identity
        lengths = np.linalg.norm(differences, axis=1)
        differences /= lengths[:, None]
        hessian = (counts / lengths).sum() * identity - (
            differences.T * (counts / lengths)
        ) @ differences
        step = np.linalg.solve(hessian, counts @ differences)
        highest = distance(b) * (1.0 + 1e-14)  # near the median the distance is flat to rounding
        while distance(b - step) > highest:
            step /= 2
        b = b - step
        if np.abs(step).max() <= 1e-14:
            break
    return b


@dataclass(frozen=True, kw_only=True)
class PreparedRFS:
    """A training set centred and scaled, and its zero solution."""

    #: Centred features, divided by ``scale``; shape (n_samples, n_features).
    X: FloatArray
    #: One-hot targets, or standardised quantities; shape (n_samples, n_classes).
    T: FloatArray
    #: Mean of each feature, as given; shape (n_features,).
    X_mean: FloatArray
    scale: float
    #: What the columns of ``T`` stand for: sorted class labels, shape (n_classes,), or the scales
    #: of quantities.
    classes: LabelArray | QuantityScale
    #: Best intercept for W = 0; shape (n_classes,).
    null_intercept: FloatArray
    alpha_max: float


class _RobustRegression(IterativeEstimator, Selector):
    """Parameters and iterations of robust feature selection, whatever the targets."""

    # Of the base class that says what the targets are.
    _targets: Callable[[LabelArray], tuple[Any, FloatArray]]
    _keep_linear: Callable[..., None]

    @staticmethod
    @abstractmethod
    def _null_model(T: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the best intercept for W = 0, and subgradients that prove it best."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [POSITIVE],
        "alpha_scale": [StrOptions({"max", "absolute"})],
    }

    simpler_first = ("-alpha",)

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

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedRFS:
        """Centre and scale the features and compute the zero solution."""
        classes, T = self._targets(y)
        features, X_mean, _, scale = centre_and_scale(X)
        null_intercept, gradients = self._null_model(T)
        alpha_max = scale * float(np.linalg.norm(product(features.T, gradients), axis=1).max())
        return PreparedRFS(
            X=features,
            T=T,
            X_mean=X_mean,
            scale=scale,
            classes=classes,
            null_intercept=null_intercept,
            alpha_max=alpha_max,
        )

    def is_zero_solution(self, prepared: PreparedRFS) -> bool:
        """Return whether alpha is at least alpha_max, or no feature correlates with the classes."""
        limit = 1.0
        if self.alpha_scale == "absolute":
            limit = prepared.alpha_max
        return prepared.alpha_max == 0.0 or self.alpha >= limit

    def fit_zero_solution(self, X: FloatArray, y: LabelArray, prepared: PreparedRFS) -> None:
        """Set the fitted attributes to W = 0 and the spatial median of the targets."""
        b = prepared.null_intercept
        self._keep(np.zeros((X.shape[1], len(b))), b, np.zeros(X.shape[1]), prepared)
        loss = np.sqrt(((prepared.T - b) ** 2).sum(axis=1) + EPS).sum()
        self.objective_path_, self.n_iter_, self.converged_, self.dual_gap_ = (
            np.array([loss]),
            1,
            True,
            0.0,
        )

    def _updates(self, X: FloatArray, y: LabelArray, prepared: PreparedRFS) -> Iterator[float]:
        unit = 1.0
        if self.alpha_scale == "max":
            unit = prepared.alpha_max
        for step in l21_steps(prepared.X, prepared.T, self.alpha * unit / prepared.scale):
            self.dual_gap_ = step.gap
            self._keep(step.W, step.b, step.norms[: len(step.W)], prepared)
            yield step.J

    def _keep(self, W: FloatArray, b: FloatArray, norms: FloatArray, prepared: PreparedRFS) -> None:
        """Set the fitted attributes to these coefficients of the centred and scaled features."""
        coef = W.T / prepared.scale
        self.scores_ = norms / prepared.scale
        self._keep_linear(coef, b - coef @ prepared.X_mean, prepared.classes)


class RFS(_RobustRegression, LinearSelector):
    """Robust feature selection: ranks features by a robust regression, and classifies.

        min_W,b  sum_i ||x_i'W + b' - t_i||  +  alpha sum_j ||w_j||

    with one-hot targets t_i and the rows w_j of W (n_features, n_classes), as in eq. 3 of [2]_. The
    original [1]_ has no intercept b; here b is part of the problem, which is not the same as
    centring features and targets. The problem is convex and solved by iterative reweighting,
    extrapolated (see `reweighted_steps`), with one Cholesky factorisation an iteration, of size
    min(n_samples, n_features). The norms of the residuals are smoothed, ``sqrt(||.||^2 + 1e-12)``.

    Parameters
    ----------
    alpha : float, default=0.1
        Strength of the penalty, above 0; see ``alpha_scale``.
    alpha_scale : {"max", "absolute"}, default="max"
        Unit of alpha. "max": alpha_max of the training set, from which on the solution is zero, so
        that a factor of X changes no ranking. It is ``max_j ||sum_i x_ij r_i / ||r_i|| ||`` with
        the residuals ``r_i = b0 - t_i`` of W = 0, where b0 is the spatial median of the targets
        (their mean if all classes are equally large). Where b0 is the target of a class itself,
        because it has about half of the samples or more, alpha_max is an upper bound, exact for two
        classes of equal size; where the solution is zero below it, the smoothing leaves tiny
        coefficients in place of zeros. "absolute": alpha is used as given.
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
    .. [1] Nie, Huang, Cai, Ding, "Efficient and robust feature selection via joint l2,1-norms
       minimization", Advances in Neural Information Processing Systems 23, 2010.
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

    @classmethod
    def draft(cls, layout: Layout, size: DataSize) -> SearchDraft | None:
        """Return a search of alpha; None where an iteration takes long."""
        if size.effort == HUGE or size.has_large_systems:
            return None
        n_values = size.by_effort(4, 4, 3)
        return SearchDraft(
            "robust regression onto the classes: one weight a column, no structure among them",
            {"alpha": {"logspace": [0.003, 0.3, n_values]}},
            OF_ALPHA,
        )

    @staticmethod
    def _null_model(T: FloatArray) -> tuple[FloatArray, FloatArray]:
        b, gradients = null_model(T.sum(axis=0).astype(np.int64))
        return b, T @ gradients


class RFSRegressor(_RobustRegression, LinearRegressor):
    """Robust feature selection for quantities: ranks by a robust regression, and predicts.

        min_W,b  sum_i ||x_i'W + b' - t_i||  +  alpha sum_j ||w_j||

    as `RFS` with the standardised quantities t_i in place of the one-hot targets. For one quantity
    this is regression by least absolute deviations with an l1 penalty.

    Parameters
    ----------
    alpha : float, default=0.1
        Strength of the penalty, above 0; see ``alpha_scale``.
    alpha_scale : {"max", "absolute"}, default="max"
        Unit of alpha. "max": alpha_max of the training set, from which on the solution is zero. It
        is ``max_j ||sum_i x_ij r_i / ||r_i|| ||`` with the residuals r_i of W = 0, whose b is the
        spatial median of the quantities, for one quantity their median; an upper bound where
        several samples have that value. "absolute": alpha is used as given, for the standardised
        quantities.
    max_iter, tol, n_features_to_select : default as in `RFS`
        See `RFS`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_quantities, n_features)
        Coefficients, in units of y and of the features; of one dimension if y is.
    intercept_ : float or ndarray of shape (n_quantities,)
        Intercepts, in units of y.
    scores_ : ndarray of shape (n_features,)
        ``||w_j||`` for the standardised quantities; 0 for features that are constant in the
        training set.
    ranking_, objective_path_, n_iter_, converged_, dual_gap_
        See `RFS`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> rfs = RFSRegressor(alpha=0.2, n_features_to_select=3).fit(X, y)
    >>> rfs.transform(X).shape, rfs.score(X, y) > 0.4
    ((442, 3), True)
    """

    @classmethod
    def draft(cls, layout: Layout, size: DataSize) -> SearchDraft | None:
        """Return a search of alpha; None where an iteration takes long."""
        if size.effort == HUGE or size.has_large_systems:
            return None
        n_values = size.by_effort(5, 5, 3)
        return SearchDraft(
            "robust regression: one weight a column, no structure among them",
            {"alpha": {"logspace": [0.01, 0.5, n_values]}},
            OF_ALPHA,
        )

    @staticmethod
    def _null_model(T: FloatArray) -> tuple[FloatArray, FloatArray]:
        return spatial_median(T)
