"""Least-squares classifiers: bilinear regression (GBR) and MLLS, whose labels share a subspace."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from sklearn.base import clone

from raysel.base.classifiers import (
    OneAgainstRest,
    Selector,
    SignedTarget,
    TensorSelector,
    TensorShaped,
    signed_target,
)
from raysel.base.estimator import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    Capabilities,
    IterativeEstimator,
    OneShotEstimator,
    next_seed,
)
from raysel.base.regressors import LinearRegressor, TensorRegressor
from raysel.core.arrays import BoolArray, FloatArray, IntArray, Interval, LabelArray
from raysel.core.errors import ConfigError
from raysel.numerics.least_squares import (
    LeastSquaresData,
    QuantityScale,
    least_squares_data,
    standardised,
)
from raysel.numerics.linear_algebra import EPS, centre, gram
from raysel.numerics.tensor_factors import (
    composed,
    leading_factors,
    mode_step,
    tensor_samples,
    with_first,
)


class _Bilinear(IterativeEstimator, TensorShaped):
    """Parameters and iterations of bilinear regression, whatever the targets."""

    # Of the base class that says what the targets are.
    _targets: Callable[[LabelArray], tuple[Any, FloatArray]]
    _keep_linear: Callable[..., None]

    #: Seed of a random start; None: the leading factors.
    _seed: int | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [POSITIVE],
    }

    simpler_first = ("-alpha",)

    def __init__(
        self,
        shape: tuple[int, ...] | None = None,
        alpha: float = 0.01,
        max_iter: int = 100,
        tol: float = 1e-4,
        n_features_to_select: int | None = None,
        mask: BoolArray | None = None,
    ) -> None:
        self.shape = shape
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.n_features_to_select = n_features_to_select
        self.mask = mask

    def another_start(self) -> Self | None:
        """Return a copy that starts from other random factors; None where it is convex."""
        if min(self._sides(self.n_features_in_)) == 1:
            return None
        other: Self = clone(self)
        other._seed = next_seed(self._seed)
        return other

    def prepare(self, X: FloatArray, y: LabelArray) -> LeastSquaresData:
        """Centre and reduce the training set."""
        return least_squares_data(X, y, self._targets)

    def _updates(self, X: FloatArray, y: LabelArray, prepared: LeastSquaresData) -> Iterator[float]:
        c, shape = len(prepared.Y), self._sides(prepared.X.shape[0])
        samples = tensor_samples(prepared, shape, self._inside())
        ones = samples.cells(np.ones(len(prepared.X)))
        alpha = self.alpha / prepared.scale**2
        start = leading_factors(samples.cells(prepared.XY), 1)
        if self._seed is not None:
            rng = np.random.default_rng(self._seed)
            start = [rng.standard_normal(A.shape) for A in start]
        factors = with_first(start, shape[0])

        def reached(factors: list[FloatArray]) -> tuple[FloatArray, float]:
            """Coefficients of the features, and the objective."""
            P = samples.features(composed(factors)).reshape(c, -1)
            return P, float(
                ((P @ prepared.X - prepared.Y) ** 2).sum()
                + prepared.residual
                + alpha * (P**2).sum()
            )

        P, J = reached(factors)
        while True:
            try:
                for mode in range(len(shape)):
                    stepped = mode_step(samples, factors, mode=mode, D=ones, alpha=alpha)
                    # Coefficients outside a mask may be so large that rounding takes those inside.
                    if samples.inside is None or (lower := reached(stepped)[1]) <= J:
                        factors, J = stepped, J if samples.inside is None else lower
            except np.linalg.LinAlgError as error:
                raise np.linalg.LinAlgError(
                    f"alpha={self.alpha:g} vanishes in rounding beside features that deviate from"
                    f" their means by up to {prepared.scale:g}: raise alpha, or divide them by it."
                ) from error
            P, J = reached(factors)
            self._keep(P, prepared)
            yield J

    def _keep(self, P: FloatArray, prepared: LeastSquaresData) -> None:
        """Set the fitted attributes to these coefficients of the stored features."""
        coef = P / prepared.scale
        self.scores_ = np.where(prepared.constant, 0.0, np.sqrt((coef**2).sum(axis=0)))
        self._keep_linear(coef, prepared.Y_mean - coef @ prepared.X_mean, prepared.classes)


class BilinearRegression(_Bilinear, TensorSelector):
    """Bilinear regression: ranks the cells of matrices or tensors and classifies them.

        min  sum_i (u'X_i v + b - t_i)^2  +  alpha ||u||^2 ||v||^2

    over u, v and b for each class, with its one-hot target t (n_samples,). Gabriel's generalised
    bilinear regression [1]_ as [2]_, section II-C, uses it, with a penalty that makes it
    well-posed: sparse matrix regression of rank 1 with a ridge penalty. Centring samples and
    targets replaces b. An iteration solves for all u given v, and for all v given u, each exactly.
    The problem is not convex; the start of v is the leading right singular vector of ``sum_i t_i
    X_i`` over the centred samples. For samples of one column it is ridge regression. Samples of
    more than two axes have one vector an axis (multilinear regression), which start at the best
    approximation of that sum by an outer product that alternating least squares find.

    Parameters
    ----------
    shape : tuple of int, default=None
        Sides of the samples, whose cells in C order are the features. None or one side:
        (n_features, 1).
    alpha : float, default=0.01
        Strength of the penalty, above 0, for the features as given: for s X it is s^2 alpha.
    max_iter : int, default=100
        Maximum number of iterations; one solves for u and for v, or for the vectors of all axes.
    tol : float, default=1e-4
        Stop when an iteration lowers the objective by at most this share.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.
    mask : array of bool, default=None
        The cells of a volume or another array that are the features, in C order, in place of
        ``shape``. Cells of its bounding box outside the mask have neither data nor penalty.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        The matrices u v', row by row, or outer products of more vectors; one row for two classes,
        the difference of both.
    intercept_ : ndarray of shape (n_classes,)
        b; one entry for two classes.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    scores_ : ndarray of shape (n_features,)
        ``sqrt(sum_r u_ra^2 v_rb^2)`` over the classes r for the cell (a, b); 0 for features that
        are constant in the training set.
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

    capabilities: ClassVar[Capabilities] = replace(
        TensorSelector.capabilities, local_optimum=True, in_blocks=True
    )


class BilinearRegressor(_Bilinear, TensorRegressor):
    """Bilinear regression of quantities: ranks the cells of arrays and predicts numbers.

    The problem of `BilinearRegression` with each standardised quantity in place of a class's
    one-hot target.

    Parameters
    ----------
    shape, alpha, max_iter, tol, n_features_to_select, mask : default as in `BilinearRegression`
        See `BilinearRegression`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_quantities, n_features)
        Coefficients, in units of y and of the features; of one dimension if y is.
    intercept_ : float or ndarray of shape (n_quantities,)
        Intercepts, in units of y.
    scores_ : ndarray of shape (n_features,)
        ``sqrt(sum_r u_ra^2 v_rb^2)`` over the standardised quantities r for the cell (a, b); 0 for
        features that are constant in the training set.
    ranking_, objective_path_, n_iter_, converged_
        See `BilinearRegression`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> gbr = BilinearRegressor(shape=(5, 2), n_features_to_select=3).fit(X, y)
    >>> gbr.transform(X).shape
    (442, 3)
    """

    capabilities: ClassVar[Capabilities] = replace(
        TensorRegressor.capabilities, local_optimum=True, in_blocks=True
    )


@dataclass(frozen=True, kw_only=True)
class PreparedLeastSquares:
    """Singular value decomposition P diag(s) Q' of the centred samples, and the signs in it."""

    target: Any  # SignedTarget, or QuantityScale
    #: Centred signs of the c classes or labels, for two classes of both, or standardised
    #: quantities; shape (n_samples, c).
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


class _SharedSubspace(OneShotEstimator, Selector):
    """Least squares with a subspace that the targets share, whatever these are."""

    @staticmethod
    @abstractmethod
    def _columns(y: LabelArray) -> tuple[Any, FloatArray, FloatArray]:
        """Return what the targets stand for, these centred (n, c), and their means."""

    @abstractmethod
    def _keep_columns(self, coef: FloatArray, prepared: PreparedLeastSquares) -> None:
        """Set the fitted attributes to these coefficients, (c, n_features)."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [NOT_NEGATIVE],
        # Below, rounding of the Gram matrix, about 1e-16 of its largest eigenvalue, would be felt.
        "beta": [Interval(Real, 1e-8, None, closed="left")],
        "rank": [COUNT, None],
    }

    shared_subspace_: FloatArray

    simpler_first = ("rank", "-beta", "-alpha")

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

    def check_training(self, y: LabelArray, tasks: IntArray | None = None) -> None:
        """Check that ``rank`` is below the number of labels, classes or quantities.

        Parameters
        ----------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Labels or quantities of the training set.
        tasks : ndarray of int, shape (n_samples,), default=None
            Task of each sample; not used.

        Raises
        ------
        ConfigError
            If ``rank`` is too large.
        """
        target, Y, _ = self._columns(y)
        self._check_rank(Y.shape[1], target)

    def _check_rank(self, c: int, target: Any) -> None:
        if self.rank is not None and self.rank >= c:
            what, remedy = "classes", "leave rank out"
            if isinstance(target, QuantityScale):
                what = "quantities"
            elif target.multilabel:
                what = "labels"
            if c > 1:
                remedy = f"give at most {c - 1}"
            raise ConfigError(
                f"rank={self.rank} makes MLLS plain ridge regression, because a subspace of that"
                f" dimension contains the coefficients of all {c} {what}: {remedy}."
            )

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedLeastSquares:
        """Decompose the centred samples, by the eigenvectors of the smaller Gram matrix."""
        target, Y, sign_means = self._columns(y)
        n, d = X.shape
        mean, centred = centre(X)
        dual = n < d
        values, vectors = scipy.linalg.eigh(
            gram(centred, of_rows=dual), driver="evd", overwrite_a=True, check_finite=False
        )
        kept = values > max(n, d) * EPS * values[-1]
        values, vectors = values[kept][::-1], np.ascontiguousarray(vectors[:, kept][:, ::-1])
        s = np.sqrt(values)
        left, right = vectors, np.empty((0, len(s)))
        if not dual:
            left, right = (centred @ vectors) / s, vectors
        return PreparedLeastSquares(
            target=target,
            signs=Y,
            sign_means=sign_means,
            mean=mean,
            squares=values / n,
            left=left,
            dual=dual,
            right=right,
            rotated=(s / n)[:, None] * (left.T @ Y),
        )

    def _updates(
        self, X: FloatArray, y: LabelArray, prepared: PreparedLeastSquares
    ) -> Iterator[float]:
        c = prepared.signs.shape[1]
        self._check_rank(c, prepared.target)
        rank = self.rank or max(1, c // 2)
        scale = 1.0  # with constant features only there is nothing to weigh
        if len(prepared.squares):
            scale = float(prepared.squares[0])
        a, b = self.alpha * scale, self.beta * scale
        theta, U = shared_solution(prepared.squares, prepared.rotated, a=a, b=b, rank=rank)
        coef, shared = lifted(prepared, X, U).T, lifted(prepared, X, theta)
        n = len(X)
        residual = prepared.signs - prepared.left @ (np.sqrt(n * prepared.squares)[:, None] * U)
        objective = (
            (residual**2).sum() / n
            + a * ((U**2).sum() - ((theta.T @ U) ** 2).sum())
            + b * (U**2).sum()
        )
        constant = (X[0] == X).all(axis=0)
        coef[:, constant] = 0.0
        self.shared_subspace_ = shared
        self._keep_columns(coef, prepared)
        yield float(objective)


class MLLS(_SharedSubspace, OneAgainstRest):
    """Linear classifier of all labels by least squares, with a subspace that they share.

        min_{U, V, Theta}  ||X U - Y||^2 / n  +  a ||U - Theta V||^2  +  b ||U||^2,    Theta' Theta
        = I

    for centred samples X and centred signs Y of shape (n, c), with Theta of shape (n_features,
    rank), a = alpha s^2 / n, b = beta s^2 / n and s the largest singular value of X. The minimum is
    given by a generalised eigenproblem, which needs one decomposition of X for all configurations
    and matrices of c columns for each one:

        M = X'X / n + (a + b) I,   B = M^-1 X'Y / n,   B B' v = mu (I - a M^-1) v,   U = (M - a
        Theta Theta')^-1 X'Y / n

    where Theta is an orthonormal basis of the eigenvectors v of the largest mu. Labels are
    predicted where x'U + mean(Y) is positive, with one label a sample the class where it is
    largest. Several modalities are concatenated.

    Parameters
    ----------
    alpha : float, default=0.01
        Weight of the coefficients outside the shared subspace, as a multiple of s^2 / n; with 0 the
        method is ridge regression.
    beta : float, default=0.001
        Weight of all coefficients, as a multiple of s^2 / n, at least 1e-8.
    rank : int, default=None
        Dimension of the shared subspace, below the number c of labels: from there on it contains
        all coefficients, and the method is ridge regression. None: c / 2, rounded down. With one
        label a sample the c columns of Y sum to a constant, so that the method is ridge regression
        for rank = c - 1 and always for two classes.
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
        Euclidean norm of each feature's coefficients; 0 for features that are constant in the
        training set.
    classes_, class_count_, multilabel_
        See `OneAgainstRestClassifier`.
    objective_path_ : ndarray of shape (1,)
        Minimum of the objective.

    References
    ----------
    Ji, Tang, Yu & Ye, "A shared-subspace learning framework for multi-label classification", ACM
    Transactions on Knowledge Discovery from Data 4, 2010.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, n_classes=4, random_state=0)
    >>> model = MLLS(rank=2).fit(X[:150], Y[:150])
    >>> bool((model.predict(X[150:]) == Y[150:]).mean() > 0.8)
    True
    """

    capabilities: ClassVar[Capabilities] = OneAgainstRest.capabilities

    @staticmethod
    def _columns(y: LabelArray) -> tuple[SignedTarget, FloatArray, FloatArray]:
        target = signed_target(y)
        signs = target.signs
        if len(signs) == 1:
            signs = np.vstack([-signs, signs])
        sign_means = signs.mean(axis=1)
        return target, np.ascontiguousarray((signs - sign_means[:, None]).T), sign_means

    def _keep_columns(self, coef: FloatArray, prepared: PreparedLeastSquares) -> None:
        rows = slice(len(coef) - len(prepared.target.signs), None)  # the second of two classes
        self._keep_target(prepared.target)
        self.coef_ = np.ascontiguousarray(coef[rows])
        self.intercept_ = prepared.sign_means[rows] - self.coef_ @ prepared.mean
        self.scores_ = np.linalg.norm(self.coef_, axis=0)


class MLLSRegressor(_SharedSubspace, LinearRegressor):
    """Linear regression of several quantities, with a subspace that they share.

    The problem of `MLLS` with the standardised quantities in place of the signs. For one quantity
    it is ridge regression of weight ``beta``.

    Parameters
    ----------
    alpha, beta : default as in `MLLS`
        See `MLLS`.
    rank : int, default=None
        Dimension of the shared subspace, below the number of quantities. None: half of it, rounded
        down, at least 1.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_quantities, n_features)
        Coefficients, in units of y and of the features; of one dimension if y is.
    intercept_ : float or ndarray of shape (n_quantities,)
        Intercepts, in units of y.
    shared_subspace_ : ndarray of shape (n_features, rank)
        Basis of the shared subspace; fewer columns if fewer directions matter, none if ``alpha`` is
        0.
    scores_ : ndarray of shape (n_features,)
        Euclidean norm of each feature's coefficients for the standardised quantities; 0 for
        features that are constant in the training set.
    objective_path_ : ndarray of shape (1,)
        Minimum of the objective.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> MLLSRegressor(rank=2).fit(X, Y).predict(X).shape
    (20, 3)
    """

    capabilities: ClassVar[Capabilities] = LinearRegressor.capabilities

    @staticmethod
    def _columns(y: LabelArray) -> tuple[QuantityScale, FloatArray, FloatArray]:
        scale, targets = standardised(y)
        return scale, targets, np.zeros(targets.shape[1])

    def _keep_columns(self, coef: FloatArray, prepared: PreparedLeastSquares) -> None:
        self.scores_ = np.linalg.norm(coef, axis=0)
        self._keep_linear(coef, prepared.sign_means - coef @ prepared.mean, prepared.target)


def shared_solution(
    squares: FloatArray, rotated: FloatArray, a: float, b: float, rank: int
) -> tuple[FloatArray, FloatArray]:
    """Solve for Theta and U in the coordinates of the right singular vectors.

    `squares` is (p,), `rotated` (p, c); returns `theta` (p, r), `U` (p, c).
    """
    m = squares + (a + b)
    free = np.sqrt((squares + b) / m)  # square root of the diagonal of I - a M^-1
    plain = rotated / m[:, None]
    directions, sizes, _ = scipy.linalg.svd(
        plain / free[:, None], full_matrices=False, check_finite=False
    )
    n_used = 0
    if a > 0:
        n_used = min(rank, int(np.count_nonzero(sizes > EPS * sizes[:1])))
    theta = np.linalg.qr(directions[:, :n_used] / free[:, None])[0]
    # (M - a Theta Theta')^-1 = M^-1 + a M^-1 Theta (I - a Theta' M^-1 Theta)^-1 Theta' M^-1
    weighted = theta / m[:, None]
    inner = np.eye(n_used) - a * (theta.T @ weighted)
    return theta, plain + a * (
        weighted @ scipy.linalg.solve(inner, theta.T @ plain, assume_a="pos")
    )


def lifted(prepared: PreparedLeastSquares, X: FloatArray, coordinates: FloatArray) -> FloatArray:
    """Express directions in the coordinates of right singular vectors by the features.

    `X` is (n_samples, n_features), `coordinates` (p, k); returns (n_features, k).
    """
    if not prepared.dual:
        return prepared.right @ coordinates
    weights = prepared.left @ (coordinates / np.sqrt(len(X) * prepared.squares)[:, None])
    return X.T @ weights - np.outer(prepared.mean, weights.sum(axis=0))
