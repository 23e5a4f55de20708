"""Sparse matrix regression (SMR): a low-rank linear classifier of matrix-shaped samples that is sparse in cells.

Samples X_i (m x n), one-hot targets Y (c classes x samples), coefficients P_r = U_r V_r' of rank k:

    J = sum_r sum_i (<P_r, X_i> + b_r - Y_ri)^2 + alpha sum_{a,b} (sum_r P_r[a,b]^2 + zeta)^(p/2)

(Hou, Jiao, Nie, Luo, Zhou, *2D feature selection by sparse matrix regression*, IEEE TIP 26(9), 2017).
Centring X and Y replaces b. With ``D[a,b] = (p/2) (sum_r P_r[a,b]^2 + zeta)^(p/2-1)`` each half-step
is a ridge regression, solved exactly: all U_r for given V_r, D from the new P, all V_r for given U_r,
D again. J never rises. A cell's score is ``sqrt(sum_r P_r[a,b]^2)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from raysel.arrays import FloatArray, LabelArray
from raysel.data.layouts import Layout, Tensor
from raysel.errors import ConfigError
from raysel.linalg.least_squares import LeastSquaresData, least_squares_data, ls21_steps
from raysel.linalg.reweighting import l2p_penalty, l2p_weights
from raysel.linalg.ridge import left_factors, orthonormal
from raysel.solvers.base import LinearSelector

# LS21 steps before the factors start. On ORL 8 serve best for ranks 2 to 10 and alpha from 0.01 to 0.3
# of alpha_max: more make D sharper than matrices of rank k can follow.
_START_STEPS = 8


def objective(P: FloatArray, data: LeastSquaresData, alpha: float, p: float, zeta: float) -> float:
    """J of the coefficients.

    Parameters
    ----------
    P : ndarray of shape (n_classes, n_features) or (n_classes, m, n)
    data : LeastSquaresData
    alpha, p, zeta : float

    Returns
    -------
    float
    """
    flat = P.reshape(len(P), -1)
    error = flat @ data.X - data.Y
    return float((error**2).sum()) + data.residual + alpha * l2p_penalty((flat**2).sum(axis=0), p, zeta)


def alternating_steps(
    data: LeastSquaresData, V: FloatArray, D: FloatArray, alpha: float, p: float, zeta: float
) -> Iterator[FloatArray]:
    """Coefficients after each half-step: U-step, V-step, U-step, ...

    Parameters
    ----------
    data : LeastSquaresData
    V : ndarray of shape (c, n, k)
    D : ndarray of shape (m, n)
    alpha, p, zeta : float

    Yields
    ------
    P : ndarray of shape (c, m, n)
    """
    c, (m, n) = len(data.Y), D.shape
    X, XY = data.X.reshape(m, n, -1), data.XY.reshape(c, m, n)
    X_t, XY_t = X.transpose(1, 0, 2), XY.transpose(0, 2, 1)  # views: X is kept once
    while True:
        V = orthonormal(V)  # P does not depend on the basis of either factor
        U = left_factors(X, V, D, data.Y, XY, alpha)
        P = U @ V.transpose(0, 2, 1)
        D = l2p_weights((P**2).sum(axis=0), p, zeta)
        yield P
        U = orthonormal(U)
        V = left_factors(X_t, U, D.T, data.Y, XY_t, alpha)
        P = U @ V.transpose(0, 2, 1)
        D = l2p_weights((P**2).sum(axis=0), p, zeta)
        yield P


class SMR(LinearSelector):
    """Sparse matrix regression: ranks the cells of matrix-shaped samples and classifies them.

    Minimises ``sum_r ||<P_r, X_i> + b_r - Y_ri||^2 + alpha sum_{a,b} (sum_r P_r[a,b]^2 + zeta)^(p/2)``
    over coefficient matrices P_r of a given rank, one a class [1]_.

    Parameters
    ----------
    shape : tuple of (int, int), default=None
        Height and width of the samples whose cells, in C order, are the columns of X. None stands for
        (n_features, 1): plain vectors.
    alpha : float, default=0.1
        Strength of the penalty, > 0; see ``alpha_scale``.
    rank : int, default=1
        Rank k of each coefficient matrix, at most min(shape).
    p : float, default=1.0
        Exponent of the penalty, 0 < p <= 1; the smaller, the sparser.
    zeta : float, default=1e-10
        Smooths the penalty, > 0; in squared units of the coefficients.
    init : {"ls21", "identity", "random"}, default="ls21"
        "ls21" starts from the solution without a bound on the rank, cut to the rank; where the rank is
        min(shape), and so no bound, it solves that problem instead. "identity" is the paper's start
        V = [I; 0], D = 1. "random" draws an orthonormal V a class, D = 1.
    alpha_scale : {"max", "absolute"}, default="max"
        Whether alpha is in units of the data's alpha_max, from which on (for p = 1) the solution is
        zero, or is taken as it is.
    max_iter : int, default=50
        Iterations at most; one is a U-step and a V-step.
    tol : float, default=1e-4
        Stop when an iteration lowers the objective by less than this share.
    n_features_to_select : int, default=None
        How many features ``transform`` keeps; None for half of them.
    random_state : int, RandomState instance or None, default=None
        For ``init="random"``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : ndarray of shape (n_classes,), or (1,) for two classes
    classes_ : ndarray of shape (n_classes,)
    scores_ : ndarray of shape (n_features,)
        ``sqrt(sum_r P_r[a,b]^2)`` over all classes; 0 for features that are constant in the training set.
    ranking_ : ndarray of int64, shape (n_features,)
        1 is best.
    objective_path_ : ndarray of shape (n_iter_,)
        The objective after each iteration, over the one-hot columns of all classes.
    n_iter_ : int
    converged_ : bool
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has column names.

    Raises
    ------
    ConfigError
        From ``fit``: a parameter out of range, a shape that does not multiply to the number of
        features, a rank above the smaller side.
    DataError
        From ``fit``: one class only.

    References
    ----------
    .. [1] Hou, Jiao, Nie, Luo, Zhou, "2D feature selection by sparse matrix regression",
       IEEE Transactions on Image Processing 26(9), 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from raysel.solvers.smr import SMR
    >>> X, y = load_digits(return_X_y=True)
    >>> smr = SMR(shape=(8, 8), rank=2, n_features_to_select=20).fit(X, y)
    >>> smr.transform(X).shape
    (1797, 20)
    """

    layout_parameters: ClassVar[frozenset[str]] = frozenset({"shape"})

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "shape": [tuple, list, None],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "rank": [Interval(Integral, 1, None, closed="left")],
        "p": [Interval(Real, 0, 1, closed="right")],
        "zeta": [Interval(Real, 0, None, closed="neither")],
        "init": [StrOptions({"ls21", "identity", "random"})],
        "alpha_scale": [StrOptions({"max", "absolute"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_features_to_select": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        shape: tuple[int, int] | None = None,
        alpha: float = 0.1,
        rank: int = 1,
        p: float = 1.0,
        zeta: float = 1e-10,
        init: Literal["ls21", "identity", "random"] = "ls21",
        alpha_scale: Literal["max", "absolute"] = "max",
        max_iter: int = 50,
        tol: float = 1e-4,
        n_features_to_select: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.shape = shape
        self.alpha = alpha
        self.rank = rank
        self.p = p
        self.zeta = zeta
        self.init = init
        self.alpha_scale = alpha_scale
        self.max_iter = max_iter
        self.tol = tol
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    @classmethod
    def from_layout(cls, layout: Layout, **params: Any) -> Self:
        """Build the solver for samples of this layout.

        Parameters
        ----------
        layout : Tensor of order 1 or 2
        **params
            All parameters but ``shape``.

        Returns
        -------
        SMR

        Raises
        ------
        ConfigError
            If the samples are neither vectors nor matrices.
        """
        if not isinstance(layout, Tensor) or len(layout.shape) > 2:
            raise ConfigError(f"SMR takes matrices or vectors, not {layout}: set dataset.shape to [height, width].")
        height, width = layout.shape if len(layout.shape) == 2 else (layout.n_features, 1)
        return cls(shape=(height, width), **params)

    def check(self, n_features: int) -> None:
        """Refuse parameters that are wrong in themselves or for data of this width.

        Parameters
        ----------
        n_features : int

        Raises
        ------
        ConfigError
            Names the parameter, its value and what would do.
        """
        super().check(n_features)
        shape = self._sides(n_features)
        if len(shape) != 2 or any(not isinstance(side, Integral) or side < 1 for side in shape):
            raise ConfigError(f"shape={self.shape} is not a height and a width, e.g. (32, 32).")
        if shape[0] * shape[1] != n_features:
            raise ConfigError(
                f"shape={self.shape} has {shape[0]} x {shape[1]} = {shape[0] * shape[1]} cells, "
                f"but there are {n_features} features."
            )
        if self.rank > min(shape):
            raise ConfigError(
                f"rank={self.rank} exceeds the smaller side of {shape[0]} x {shape[1]}: take at most {min(shape)}."
            )

    def simplicity(self) -> tuple[float, ...]:
        """Lower rank first, then the stronger penalty."""
        return (self.rank, -self.alpha)

    def is_null(self, prepared: LeastSquaresData) -> bool:
        """Whether alpha is at or above alpha_max, and p = 1, for which that proves the solution zero."""
        alpha_max = prepared.alpha_max  # infinite where the data overflow, which proves nothing
        return self.p == 1 and np.isfinite(alpha_max) and self._absolute_alpha(prepared) >= alpha_max

    def fit_null(self, X: FloatArray, y: LabelArray, prepared: LeastSquaresData) -> None:
        """Set the fitted attributes to the zero solution, which predicts the most frequent class."""
        P = np.zeros((len(prepared.classes), X.shape[1]))
        self.objective_path_ = np.array([self._keep(P, prepared, self._absolute_alpha(prepared))])
        self.n_iter_, self.converged_ = 1, True

    def prepare(self, X: FloatArray, y: LabelArray) -> LeastSquaresData:
        """Centre and, if that saves work, rotate the samples; see `LeastSquaresData`."""
        return least_squares_data(X, y)

    def _sides(self, n_features: int) -> tuple[int, ...]:
        return (n_features, 1) if self.shape is None else tuple(self.shape)

    def _absolute_alpha(self, prepared: LeastSquaresData) -> float:
        # Where no feature varies alpha_max is 0 and any alpha gives the zero solution.
        in_units = self.alpha_scale == "max" and prepared.alpha_max > 0
        return self.alpha * prepared.alpha_max if in_units else self.alpha

    def _steps(self, data: LeastSquaresData, alpha: float) -> Iterator[FloatArray]:
        """Coefficients after each iteration."""
        c, (m, n), k = len(data.Y), self._sides(data.X.shape[0]), self.rank
        D = np.ones((m, n))
        if self.init == "ls21":
            unbounded = ls21_steps(data, alpha, self.p, self.zeta)
            if k >= min(m, n):
                return unbounded
            P = next(islice(unbounded, _START_STEPS - 1, None)).reshape(c, m, n)
            V = np.linalg.svd(P, full_matrices=False)[2][:, :k].transpose(0, 2, 1)
            D = l2p_weights((P**2).sum(axis=0), self.p, self.zeta)
        elif self.init == "identity":
            V = np.tile(np.eye(n, k), (c, 1, 1))
        else:
            V = orthonormal(check_random_state(self.random_state).standard_normal((c, n, k)))
        return islice(alternating_steps(data, V, D, alpha, self.p, self.zeta), 1, None, 2)

    def _updates(self, X: FloatArray, y: LabelArray, prepared: LeastSquaresData) -> Iterator[float]:
        alpha = self._absolute_alpha(prepared)
        for P in self._steps(prepared, alpha):
            yield self._keep(P, prepared, alpha)

    def _keep(self, P: FloatArray, prepared: LeastSquaresData, alpha: float) -> float:
        """Set the fitted attributes to these coefficients and return their objective."""
        coef = P.reshape(len(P), -1)
        self.classes_ = prepared.classes
        self.scores_ = np.where(prepared.constant, 0.0, np.sqrt((coef**2).sum(axis=0)))
        intercept = prepared.Y_mean - coef @ prepared.X_mean
        if len(coef) == 2:  # scikit-learn's convention: one row, positive for the second class
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        self.coef_, self.intercept_ = coef, intercept
        return objective(P, prepared, alpha, self.p, self.zeta)
