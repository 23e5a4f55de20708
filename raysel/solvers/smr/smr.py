"""Sparse matrix regression (SMR): a low-rank classifier of arrays that is sparse in cells.

Samples X_i (m x n), one-hot targets Y (c classes x samples), coefficients P_r = U_r V_r' of rank k:

    J = sum_r sum_i (<P_r, X_i> + b_r - Y_ri)^2 + alpha sum_{a,b} (sum_r P_r[a,b]^2 + zeta)^(p/2)

(Hou, Jiao, Nie, Luo, Zhou, *2D feature selection by sparse matrix regression*, IEEE TIP 26(9),
2017). Centring X and Y replaces b. With ``D[a,b] = (p/2) (sum_r P_r[a,b]^2 + zeta)^(p/2-1)`` each
half-step is a ridge regression, solved exactly: all U_r for given V_r, D from the new P, all V_r
for given U_r, D again. J never rises. A cell's score is ``sqrt(sum_r P_r[a,b]^2)``. Of samples with
more axes P_r is a sum of k outer products of one vector an axis, and the steps are those of
`mode_step`, one an axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import repeat
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from raysel.base.classifiers import TensorSelector, TensorShaped
from raysel.base.estimator import COUNT, POSITIVE, Capabilities, IterativeEstimator
from raysel.base.regressors import TensorRegressor
from raysel.base.search_drafts import (
    HUGE,
    OF_ALPHA,
    DataSize,
    SearchDraft,
)
from raysel.core.arrays import BoolArray, FloatArray, Interval, LabelArray, StrOptions
from raysel.core.errors import ConfigError
from raysel.data.layouts import Layout
from raysel.numerics.least_squares import LeastSquaresData, least_squares_data, orthonormal
from raysel.numerics.reweighting import Penalty
from raysel.numerics.tensor_factors import largest_rank, tensor_samples, unit_cells
from raysel.solvers.smr.updates import (
    iterations,
    multistart_steps,
    objective,
    unit_weight,
    with_objective,
)

#: Ranks that a draft tries beside that which bounds nothing, of matrices and of arrays of higher
#: order, whose coefficients have fewer numbers at each rank.
_LOW_RANKS, _LOW_RANKS_OF_ARRAYS = (2, 4, 8), (1, 2, 4)


class _SparseMatrixRegression(IterativeEstimator, TensorShaped):
    """Parameters and iterations of sparse matrix regression, whatever the targets."""

    # Of the base class that says what the targets are.
    _targets: Callable[[LabelArray], tuple[Any, FloatArray]]
    _keep_linear: Callable[..., None]

    #: Seed of the random start in place of the compared ones of "multistart"; None: these.
    _seed: int | None = None
    n_init: int = 1  # models of earlier versions lack it

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [POSITIVE],
        "rank": [COUNT],
        "p": [Interval(Real, 0, 1, closed="right")],
        "zeta": [POSITIVE],
        "init": [StrOptions({"multistart", "identity", "random"})],
        "n_init": [COUNT],
        "alpha_scale": [StrOptions({"max", "absolute"})],
    }

    simpler_first = ("rank", "-alpha")

    def __init__(
        self,
        shape: tuple[int, ...] | None = None,
        alpha: float = 0.1,
        rank: int = 1,
        p: float = 1.0,
        zeta: float = 1e-10,
        init: Literal["multistart", "identity", "random"] = "multistart",
        alpha_scale: Literal["max", "absolute"] = "max",
        max_iter: int = 200,
        tol: float = 1e-4,
        n_features_to_select: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        mask: BoolArray | None = None,
        n_init: int = 1,
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
        self.mask = mask
        self.n_init = n_init

    @classmethod
    def unstructured(cls, layout: Layout) -> Mapping[str, float]:
        """Return the rank that bounds nothing."""
        if layout.grid:
            return {"rank": largest_rank(layout.grid)}
        return {}

    @classmethod
    def _draft(cls, layout: Layout, effort: int, alphas: Mapping[str, Any]) -> SearchDraft:
        """Draft of a search of these alphas, and of ranks of which the last bounds nothing."""
        most = largest_rank(layout.grid)
        low = _LOW_RANKS if len(layout.grid) == 2 else _LOW_RANKS_OF_ARRAYS
        ranks = [*[rank for rank in low if rank < most][: 3 - effort], most]
        return SearchDraft(
            why="sparse matrix regression: ranks the cells by a regression of low rank in the axes"
            " of a sample",
            space={"alpha": alphas, "rank": ranks},
            of_space=f"{OF_ALPHA}; rank is that of the weights; {most} bounds nothing, so that low"
            " rank has to pay",
            params={"max_iter": 30, "tol": 0.0001},
            of_params="iterations at most, and when to stop",
        )

    def check(self, n_features: int) -> None:
        """Check the parameters, alone and against the number of features.

        Parameters
        ----------
        n_features : int
            Number of columns of X.

        Raises
        ------
        ConfigError
            If one is wrong; the message names it, its value and the values that are allowed.
        """
        super().check(n_features)
        if self.n_init > 1 and self.init != "multistart":
            raise ConfigError(
                f'n_init={self.n_init}: init="{self.init}" is one start; leave n_init at 1.'
            )
        shape = self._sides(n_features)
        if self.rank <= (most := largest_rank(shape)):
            return
        if most == 1:
            raise ConfigError(
                f"rank={self.rank}: the coefficients of vectors have no rank; leave it at 1."
            )
        bound = "the product of all sides but the longest"
        if len(shape) == 2:
            bound = "the smaller side"
        raise ConfigError(
            f"rank={self.rank} exceeds {bound} of {' x '.join(map(str, shape))}: take at most"
            f" {most}."
        )

    def another_start(self) -> Self | None:
        """Return a random start, of it the next one; None where the problem is convex."""
        other: Self = clone(self)
        if self.init != "multistart":
            seed = self.random_state if isinstance(self.random_state, Integral) else 0
            return other.set_params(
                init="random", random_state=int(np.random.RandomState(seed).randint(2**31 - 1))
            )
        if self._is_convex():
            return None
        other._seed = self._seed + 1 if self._seed is not None else self.n_init - 1
        return other

    def _is_convex(self) -> bool:
        return self.p == 1 and self.rank == largest_rank(self._sides(self.n_features_in_))

    def is_zero_solution(self, prepared: LeastSquaresData) -> bool:
        """Return whether P = 0 is optimal: p = 1 and alpha >= alpha_max, or X tells nothing."""
        # Infinite or NaN where the data overflow, which proves nothing.
        alpha, alpha_max = self.alpha, prepared.alpha_max
        if self.alpha_scale == "max":
            alpha = alpha * alpha_max
        return alpha_max == 0.0 or (self.p == 1 and np.isfinite(alpha_max) and alpha >= alpha_max)

    def fit_zero_solution(self, X: FloatArray, y: LabelArray, prepared: LeastSquaresData) -> None:
        """Set the fitted attributes to P = 0, which predicts the commonest class or the mean."""
        P = np.zeros((len(prepared.Y), X.shape[1]))
        self._keep(P, prepared)
        self.objective_path_ = np.array([objective(P, prepared, *self._penalty(prepared))])
        self.n_iter_, self.converged_ = 1, True

    def prepare(self, X: FloatArray, y: LabelArray) -> LeastSquaresData:
        """Centre and reduce the training set, once for all parameters; see `LeastSquaresData`."""
        return least_squares_data(X, y, self._targets)

    def _penalty(self, prepared: LeastSquaresData) -> Penalty:
        """Penalty on the coefficients of the features as ``prepared`` stores them."""
        if self.alpha_scale == "absolute":
            alpha, zeta = self.alpha / prepared.scale**self.p, self.zeta * prepared.scale**2
        else:
            # Where no feature is correlated with the classes the unit is 0 and any alpha gives the
            # zero solution.
            alpha = self.alpha * (prepared.penalty_unit(self.p) or 1.0)
            zeta = self.zeta * prepared.coefficient_unit() ** 2
        return Penalty(alpha, self.p, max(zeta, np.finfo(np.float64).tiny))

    def _steps(
        self, data: LeastSquaresData, penalty: Penalty, seed: int | None
    ) -> Iterator[tuple[FloatArray, float]]:
        """Yield the coefficients after each iteration and their objective."""
        c, shape, k = len(data.Y), self._sides(data.X.shape[0]), self.rank
        if self.init == "multistart":
            return multistart_steps(
                data, shape, rank=k, penalty=penalty, seed=seed, inside=self._inside()
            )
        if self.init == "identity":
            start = unit_cells(c, shape, k)
        else:
            rng = check_random_state(self.random_state)
            start = [rng.standard_normal((c, side, k)) for side in shape[1:]]
            start = [orthonormal(A) if k <= A.shape[1] else A for A in start]
        # D = 1 in the units of the features as given, or of the data.
        if self.alpha_scale == "absolute":
            weight = data.scale ** (self.p - 2.0)
        else:
            weight = unit_weight(data, self.p)
        samples = tensor_samples(data, shape, self._inside())
        D = samples.cells(np.full(len(data.X), weight))
        steps = iterations(samples, start, D, repeat(penalty))
        return with_objective(steps, data, penalty)

    def _updates(self, X: FloatArray, y: LabelArray, prepared: LeastSquaresData) -> Iterator[float]:
        penalty, seed = self._penalty(prepared), self._seed
        if seed is None and self.n_init > 1 and not self._is_convex():
            seed = self._lowest_start(prepared, penalty)
        for P, J in self._steps(prepared, penalty, seed):
            self._keep(P, prepared)
            yield J

    def _lowest_start(self, prepared: LeastSquaresData, penalty: Penalty) -> int | None:
        """Return the seed of the start that ends lowest; None for the compared ones."""
        ends: dict[int | None, float] = {}
        for seed in (None, *range(self.n_init - 1)):
            steps = self._steps(prepared, penalty, seed)
            *_, ends[seed] = self._follow(J for _, J in steps)
        return min(ends, key=lambda seed: ends[seed])

    def _keep(self, P: FloatArray, prepared: LeastSquaresData) -> None:
        """Set the fitted attributes to these coefficients of the stored features."""
        stored = P.reshape(len(P), -1)
        self.scores_ = np.where(
            prepared.constant, 0.0, np.sqrt((stored**2).sum(axis=0)) / prepared.scale
        )
        coef = stored / prepared.scale
        intercept = prepared.Y_mean - coef @ prepared.X_mean
        self._keep_linear(coef, intercept, prepared.classes)


class SMR(_SparseMatrixRegression, TensorSelector):
    """Sparse matrix regression: ranks the cells of matrices or tensors and classifies them.

    Minimises ``sum_r ||<P_r, X_i> + b_r - Y_ri||^2 + alpha sum_f (sum_r P_r[f]^2 + zeta)^(p/2)``
    over the cells f and coefficient tensors P_r of a given rank, one a class [1]_. Of matrices
    ``P_r = U_r V_r'``; in general P_r is a sum of k outer products of one vector an axis (CP
    decomposition [2]_).

    Parameters
    ----------
    shape : tuple of int, default=None
        Sides of the samples whose cells, in C order, are the columns of X: height and width of a
        matrix, or any number of sides. None or one side: plain vectors.
    alpha : float, default=0.1
        Strength of the penalty, > 0; see ``alpha_scale``.
    rank : int, default=1
        Rank k of each coefficient tensor, at most the product of all sides but the longest, for
        matrices min(shape); 1 for vectors.
    p : float, default=1.0
        Exponent of the penalty, 0 < p <= 1; the smaller, the sparser.
    zeta : float, default=1e-10
        Smooths the penalty, > 0; see ``alpha_scale``. It leaves no exact zeros: the score of every
        cell that varies is positive.
    init : {"multistart", "identity", "random"}, default="multistart"
        The start: J has many local minima, and the start decides which one is reached.

        "multistart" takes four starts: the leading right singular vectors of each class in the
        ridge solution, and in the solution for p = 1 without a bound on the rank, both followed by
        iterations with an exponent and a smoothing that approach p and zeta (continuation, also
        called graduated non-convexity); a random V, the same at every call whatever
        ``random_state``; and V = [I; 0]. Of more than two axes V stands for the factors of all axes
        but the first, and in place of singular vectors are those of a CP decomposition by
        alternating least squares. For p < 1, after 10 iterations the two of the lowest objectives
        continue, after 2 more the one of the lowest. These 44 iterations come before the first
        counted one: ``max_iter`` and ``objective_path_`` count those of the chosen start. For p = 1
        two starts are taken: the second, without continuation, is iterated first and counted, and
        after its tenth iteration the first follows where its objective is lower after 6 and after
        10 iterations, which are not counted. All iterations begin at an extrapolated V (Nesterov's
        method, restarted where J would rise), so that fewer of them reach the same J. Where the
        rank is the largest, which bounds nothing, the problem without a bound is solved instead;
        for p = 1 it is convex. Of few samples some random starts end lower, and a study says
        whether they do for its final model; see ``n_init``.

        "identity" is the paper's start V = [I; 0], D = 1, and "random" a random V a class,
        orthonormal where it has no more columns than rows, D = 1; both are followed by the paper's
        iterations. With ``alpha_scale="max"`` the 1 of D becomes ``(p/2) u^(p-2)``, u as below.
    alpha_scale : {"max", "absolute"}, default="max"
        Unit of alpha and zeta: "max" takes both from the training set, so that a constant factor of
        X does not change the ranking; "absolute" uses them as they are. Of a cell f let ``c_f`` be
        the length of ``sum_i X_i[f] y_i`` over the centred samples and targets, and ``q_f = sum_i
        X_i[f]^2``. The unit of alpha is ``a(p) = max_f M c_f^(2-p) q_f^(p-1)``, from which on no
        single cell is worth its penalty, with ``M = 2 t^(1-p) - t^(2-p)``, ``t = 2 (1-p) / (2-p)``:
        for p = 1 it is alpha_max, ``2 max_f c_f``, from which on the solution is zero. The unit of
        zeta is ``u^2``, ``u = a(0) / a(1)``: where one cell has both maxima u is half of its
        least-squares coefficient. In images of values in [0, 1] u is about 0.3 to 1.
    max_iter : int, default=200
        Largest number of iterations; one is a step of each axis, for matrices a U-step and a
        V-step.
    tol : float, default=1e-4
        Stop when an iteration lowers the objective by less than this share.
    n_features_to_select : int, default=None
        Number of features that ``transform`` keeps; None for half of them.
    random_state : int, RandomState instance or None, default=None
        Seed of the start for ``init="random"``; the other starts ignore it.
    mask : array of bool, default=None
        The cells of a volume or another array that are the columns of X, in C order, in place of
        ``shape``. Cells of its bounding box outside the mask have neither data nor penalty.
    n_init : int, default=1
        Number of starts that are iterated to their ends, ``init="multistart"`` and ``n_init - 1``
        random ones, of which the one of the lowest objective is fitted: ``n_init + 1`` fits in all.
        Not for other values of ``init``. Lower objectives do not predict better
        (experiments/claims/smr-start), hence the default.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Coefficients of the features in the decision function.
    intercept_ : ndarray of shape (n_classes,), or (1,) for two classes
        Intercepts of the decision function.
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    scores_ : ndarray of shape (n_features,)
        ``sqrt(sum_r P_r[f]^2)`` over all classes; 0 for features that are constant in the training
        set.
    ranking_ : ndarray of int64, shape (n_features,)
        Rank of each feature by its score, 1 for the best.
    objective_path_ : ndarray of shape (n_iter_,)
        The objective after each iteration, over the one-hot columns of all classes.
    n_iter_ : int
        Number of iterations, the length of ``objective_path_``.
    converged_ : bool
        Whether the iterations ended by ``tol`` and not by ``max_iter``; at a local optimum unless p
        = 1 and the rank is the largest.
    n_features_in_ : int
        Number of features of the training set.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names of the training set, if it had any.

    Raises
    ------
    ConfigError
        From ``fit``: a parameter out of range, a shape that does not multiply to the number of
        features, a rank above the largest.
    DataError
        From ``fit``: one class only.

    References
    ----------
    .. [1] Hou, Jiao, Nie, Luo, Zhou, "2D feature selection by sparse matrix regression",
       IEEE Transactions on Image Processing 26(9), 2017, doi:10.1109/TIP.2017.2713948.
    .. [2] Kolda, Bader, "Tensor decompositions and applications", SIAM Review 51(3), 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from raysel.solvers.smr.smr import SMR
    >>> X, y = load_digits(return_X_y=True)
    >>> smr = SMR(shape=(8, 8), rank=2, n_features_to_select=20).fit(X, y)
    >>> smr.transform(X).shape
    (1797, 20)
    """

    capabilities: ClassVar[Capabilities] = replace(
        TensorSelector.capabilities, local_optimum=True, in_blocks=True
    )

    @classmethod
    def draft(cls, layout: Layout, size: DataSize) -> SearchDraft | None:
        """Return a search of alpha and rank; None where fits take minutes."""
        if size.effort == HUGE:
            return None
        n_values = size.by_effort(5, 4, 3)
        return cls._draft(layout, size.effort, {"logspace": [0.003, 0.3, n_values]})


class SMRRegressor(_SparseMatrixRegression, TensorRegressor):
    """Sparse matrix regression of quantities: ranks cells of arrays and predicts numbers.

    The problem of `SMR` with the standardised quantities in place of the one-hot targets, one
    coefficient tensor a quantity. For vectors (``shape=None``) it is least squares with an l2,p
    penalty on the rows, LS21; for one quantity and p = 1 then the lasso.

    Parameters
    ----------
    shape, alpha, rank, p, zeta, init, alpha_scale : default as in `SMR`
        See `SMR`. With ``alpha_scale="absolute"`` alpha and zeta are for the standardised
        quantities.
    max_iter, tol, n_features_to_select, random_state, mask, n_init : default as in `SMR`
        See `SMR`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_quantities, n_features)
        Coefficients, in units of y and of the features; of one dimension if y is.
    intercept_ : float or ndarray of shape (n_quantities,)
        Intercepts, in units of y.
    scores_ : ndarray of shape (n_features,)
        ``sqrt(sum_r P_r[f]^2)`` over the standardised quantities; 0 for features that are constant
        in the training set.
    ranking_, objective_path_, n_iter_, converged_, n_features_in_
        See `SMR`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> smr = SMRRegressor(alpha=0.1, n_features_to_select=3).fit(X, y)
    >>> smr.transform(X).shape, round(smr.score(X, y), 1)
    ((442, 3), 0.5)
    """

    capabilities: ClassVar[Capabilities] = replace(
        TensorRegressor.capabilities, local_optimum=True, in_blocks=True
    )

    @classmethod
    def draft(cls, layout: Layout, size: DataSize) -> SearchDraft | None:
        """Return a search of alpha and rank; None where fits take minutes."""
        if size.effort == HUGE or size.has_large_systems:
            return None
        n_values = size.by_effort(5, 5, 3)
        return cls._draft(layout, size.effort, {"logspace": [0.01, 0.5, n_values]})
