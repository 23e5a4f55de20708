"""Sparse group lasso: linear models that select groups of features, and features within them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np

from raysel.base.classifiers import SignedTarget
from raysel.base.estimator import MODALITIES, TENSOR, Capabilities
from raysel.core.arrays import FloatArray, IntArray, Interval, LabelArray
from raysel.core.errors import ConfigError
from raysel.data.layouts import Layout
from raysel.numerics.correlations import correlated_groups
from raysel.numerics.least_squares import centre_and_scale
from raysel.solvers.grouped.descent import Problem
from raysel.solvers.grouped.penalty import SparseGroupPenalty
from raysel.solvers.losses import Loss, MultinomialLoss
from raysel.solvers.penalised_model import (
    Bounded,
    LogisticTargets,
    PenalisedModel,
    PreparedLinear,
    QuantityTargets,
)

#: Features of each group by its name, or the correlation from which on features are a group.
Groups = Mapping[str, Any]
#: Key of that correlation.
_CORRELATED = "correlated"


@dataclass(frozen=True, kw_only=True)
class PreparedGroups(PreparedLinear):
    """A training set whose columns stand group by group."""

    #: Centred columns divided by ``scale``; shape (n_samples, n_columns).
    X: FloatArray
    #: Feature of each column; one of several groups has a column in each; shape (n_columns,).
    features: IntArray
    #: Number of columns of each group; shape (n_groups,).
    sizes: IntArray
    #: Names of the first groups; the others have a feature each.
    names: list[str]
    #: Gradient of the loss by the weights of the columns, at W = 0; shape (n_columns, k).
    slopes: FloatArray

    def penalty(self, share: float) -> SparseGroupPenalty:
        """Return the penalty, whose weight of a group is the square root of its size."""
        return SparseGroupPenalty(self.sizes, np.sqrt(self.sizes), share)


class _SparseGroupLasso(PenalisedModel):
    """Parameters and iterations, whatever the targets."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "groups": [dict, None],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
    }

    group_scores_: FloatArray
    group_names_: list[str]

    def __init__(
        self,
        groups: Groups | None = None,
        alpha: float = 0.1,
        l1_ratio: float = 0.5,
        alpha_scale: Literal["max", "absolute"] = "max",
        max_iter: int = 1000,
        tol: float = 1e-4,
        n_features_to_select: int | None = None,
    ) -> None:
        self.groups = groups
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.alpha_scale = alpha_scale
        self.max_iter = max_iter
        self.tol = tol
        self.n_features_to_select = n_features_to_select

    @classmethod
    def from_layout(cls, layout: Layout, **params: Any) -> Self:
        """Make an estimator whose groups are the modalities of a layout, unless they are given.

        Parameters
        ----------
        layout : Layout
            Layout of the samples.
        **params
            Parameters of the constructor.

        Returns
        -------
        SparseGroupLasso or SparseGroupLassoRegressor
            The unfitted estimator.
        """
        if layout.is_multimodal and "groups" not in params:
            params["groups"] = {
                name: list(range(columns.start, columns.stop))
                for name, columns in layout.slices().items()
            }
        return cls(**params)

    @classmethod
    def unstructured(cls, layout: Layout) -> Mapping[str, float]:
        """Return the share with which groups do not matter."""
        return {"l1_ratio": 1.0}

    def check(self, n_features: int) -> None:
        """Check the parameters, alone and against the number of features.

        Parameters
        ----------
        n_features : int
            Number of columns of X.

        Raises
        ------
        ConfigError
            If one is wrong; the message names it and the values that are allowed.
        """
        super().check(n_features)
        if self._correlation is not None:
            if not 0 < self._correlation <= 1:
                raise ConfigError(
                    f"groups: {_CORRELATED}: {self._correlation} must be above 0 and at most 1."
                )
            return
        for name, members in (self.groups or {}).items():
            whole = all(isinstance(j, Integral) and not isinstance(j, bool) for j in members)
            if not len(members) or not whole or not 0 <= min(members) <= max(members) < n_features:
                raise ConfigError(
                    f"groups: {name!r} is {members!r}; give the numbers of its columns, from 0 to"
                    f" {n_features - 1}, one at least."
                )
            if len(set(members)) < len(members):
                raise ConfigError(f"groups: {name!r} names a column twice; remove one.")

    def prepare(self, X: FloatArray, y: LabelArray) -> PreparedGroups:
        """Centre and scale the features and lay the groups side by side."""
        target, loss = self._target_loss(y)
        centred, X_mean, _, scale = centre_and_scale(np.asarray(X, dtype=np.float64))
        named = self._named_groups(centred)
        alone = np.ones(X.shape[1], dtype=bool)
        for group in named.values():
            alone[group] = False
        members = [*named.values(), *np.flatnonzero(alone)[:, None]]
        features = np.concatenate(members)
        columns = np.asfortranarray(centred[:, features])
        start = np.zeros_like(loss.Y)
        slopes = columns.T @ loss.gradient(start + loss.values(start)[1])
        return PreparedGroups(
            target=target,
            loss=loss,
            X=columns,
            features=features,
            X_mean=X_mean,
            scale=scale,
            sizes=np.array([len(group) for group in members]),
            names=list(named),
            slopes=slopes,
        )

    @property
    def _correlation(self) -> float | None:
        """Correlation from which on features are a group; None if groups are given, or none."""
        found = (self.groups or {}).get(_CORRELATED)
        if isinstance(found, Real):
            return float(found)
        return None

    def _named_groups(self, X: FloatArray) -> dict[str, IntArray]:
        """Columns of each group that is given, or that is found in training samples."""
        if self._correlation is None:
            return {name: np.array(members) for name, members in (self.groups or {}).items()}
        numbers = correlated_groups(X, self._correlation)
        sizes = np.bincount(numbers)
        clusters = [np.flatnonzero(numbers == number) for number in np.flatnonzero(sizes > 1)]
        return {f"cluster {number}": members for number, members in enumerate(clusters, 1)}

    def _largest_alpha(self, prepared: PreparedGroups) -> float:
        norms = prepared.penalty(self.l1_ratio).dual_norms(prepared.slopes)
        return prepared.scale * float(norms.max(initial=0.0))

    def _zero_weights(self, prepared: PreparedGroups) -> FloatArray:
        return np.zeros_like(prepared.slopes)

    def _minimise(self, prepared: PreparedGroups, alpha: float) -> Iterator[Bounded]:
        penalty = prepared.penalty(self.l1_ratio)
        return Problem(prepared.X, prepared.loss, penalty, alpha / prepared.scale).minimise()

    def _keep(self, W: FloatArray, b: FloatArray, prepared: PreparedGroups) -> None:
        """Set the fitted attributes to these weights of the scaled columns."""
        n_features, weights = len(prepared.X_mean), W / prepared.scale
        coef = np.zeros((W.shape[1], n_features))
        np.add.at(coef.T, prepared.features, weights)
        self.scores_ = np.linalg.norm(coef, axis=0)
        norms = prepared.penalty(self.l1_ratio).group_norms(weights) / np.sqrt(prepared.sizes)
        self.group_names_, self.group_scores_ = prepared.names, norms[: len(prepared.names)]
        self._keep_columns(coef, b - coef @ prepared.X_mean, prepared.target)


class SparseGroupLasso(_SparseGroupLasso, LogisticTargets):
    """Sparse group lasso: ranks groups of features, and features within them, and classifies.

        min_W,b  mean_i -log p(y_i | x_i'W + b)
                 + alpha (l1_ratio sum_j ||w_j|| + (1 - l1_ratio) sum_g sqrt(p_g) ||W_g||)

    with w_j the coefficients of feature j on all classes and W_g those of the p_g features of group
    g [1]_ [2]_. The likelihood is multinomial for three classes or more, logistic for two, and a
    sum of logistic ones for several labels a sample. The first norm drops single features, the
    second whole groups; ``l1_ratio=0`` is the group lasso. A feature in several groups has a copy
    in each, whose coefficients are summed, so that unions of groups are selected [3]_; one in no
    group is a group of its own. The data are centred by ``fit`` but not scaled.

    The problem is convex and solved by accelerated proximal gradient steps on a working set of
    groups, until a dual point proves the objective to be close to the optimum.

    Parameters
    ----------
    groups : dict of str to list of int, default=None
        Columns of each group by its name; or ``{"correlated": 0.7}``: the groups are the clusters
        of columns of which any two correlate by this or more in the training samples. A study sets
        it from ``dataset.feature_groups``, or else from the modalities. None: each feature is a
        group of its own.
    alpha : float, default=0.1
        Strength of both norms, above 0; see ``alpha_scale``.
    l1_ratio : float, default=0.5
        Share of the norms of single features, from 0 to 1; with 1 groups do not matter.
    alpha_scale : {"max", "absolute"}, default="max"
        Unit of alpha. "max": alpha_max of the training set, the smallest alpha of which the
        solution is zero. "absolute": alpha is used as given.
    max_iter : int, default=1000
        Maximum number of iterations, of ten steps each.
    tol : float, default=1e-4
        Stop when the objective is proved, by a dual point, to be at most this share above the
        optimum.
    n_features_to_select : int, default=None
        Number of features that ``transform`` selects. None: half of them.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        Coefficients; one row for two classes.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts; one entry for two classes.
    classes_, class_count_, multilabel_
        See `OneAgainstRestClassifier`.
    scores_ : ndarray of shape (n_features,)
        Norm ||w_j|| of each feature's coefficients; many are 0.
    ranking_ : ndarray of int64, shape (n_features,)
        Rank of each feature, 1 is best.
    group_scores_ : ndarray of shape (n_groups,)
        Norm ||W_g|| of each group's coefficients, divided by the square root of its size.
    group_names_ : list of str
        Names of the groups.
    objective_path_ : ndarray of shape (n_iter_,)
        Objective after each iteration.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the objective is proved to be within ``tol`` of the optimum.
    dual_gap_ : float
        Upper bound of how far the objective is above the optimum, relative to it.

    Raises
    ------
    ConfigError
        From ``fit``: a parameter out of range, or a group with a column that X does not have.

    References
    ----------
    .. [1] Simon, Friedman, Hastie, Tibshirani, "A sparse-group lasso", Journal of Computational and
       Graphical Statistics 22(2), 2013.
    .. [2] Vincent, Hansen, "Sparse group lasso and high dimensional multinomial classification",
       Computational Statistics and Data Analysis 71, 2014.
    .. [3] Jacob, Obozinski, Vert, "Group lasso with overlap and graph lasso", ICML 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> groups = {"acids": [1], "phenols": [5, 6, 7, 8], "colour": [9, 10, 11]}
    >>> lasso = SparseGroupLasso(groups, alpha=0.1).fit(scale(X), y)
    >>> lasso.coef_.shape, lasso.group_scores_.shape
    ((3, 13), (3,))
    >>> bool(lasso.dual_gap_ <= 1e-4 and lasso.score(scale(X), y) > 0.95)
    True
    """

    capabilities: ClassVar[Capabilities] = replace(
        LogisticTargets.capabilities, layouts=frozenset({TENSOR, MODALITIES}), grouped=True
    )
    score_meaning = "norm of the feature's coefficients over the classes"

    def _target_loss(self, y: LabelArray) -> tuple[SignedTarget, Loss]:
        target, loss = super()._target_loss(y)
        if target.multilabel or loss.Y.shape[1] == 1:
            return target, loss
        return target, MultinomialLoss((loss.Y + 1.0) / 2.0)


class SparseGroupLassoRegressor(_SparseGroupLasso, QuantityTargets):
    """Sparse group lasso for quantities: ranks groups of features and features, and predicts.

        min_W,b  sum_r mean_i (y_ir - x_i'w_r - b_r)^2 / 2
                 + alpha (l1_ratio sum_j ||w_j|| + (1 - l1_ratio) sum_g sqrt(p_g) ||W_g||)

    with each standardised quantity y_r and the coefficients w_j of feature j on all quantities; all
    else as in `SparseGroupLasso`.

    Parameters
    ----------
    groups, alpha, l1_ratio : default as in `SparseGroupLasso`
        See `SparseGroupLasso`.
    alpha_scale : {"max", "absolute"}, default="max"
        Unit of alpha. "max": alpha_max of the training set, the smallest alpha of which the
        solution is zero. "absolute": alpha is used as given, for the standardised quantities.
    max_iter, tol, n_features_to_select : default as in `SparseGroupLasso`
        See `SparseGroupLasso`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_quantities, n_features)
        Coefficients, in units of y and of the features; of one dimension if y is.
    intercept_ : float or ndarray of shape (n_quantities,)
        Intercepts, in units of y.
    scores_ : ndarray of shape (n_features,)
        Norm of each feature's coefficients over the standardised quantities; many are 0.
    group_scores_, group_names_, ranking_, objective_path_, n_iter_, converged_, dual_gap_
        See `SparseGroupLasso`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 12))
    >>> y = X[:, :4] @ [1, -1, 1, -1] + rng.normal(size=50)
    >>> groups = {"first": [0, 1, 2, 3], "second": [4, 5, 6, 7], "third": [8, 9, 10, 11]}
    >>> lasso = SparseGroupLassoRegressor(groups, alpha=0.3).fit(X, y)
    >>> lasso.group_scores_.round(1)
    array([0.3, 0. , 0. ])
    """

    capabilities: ClassVar[Capabilities] = replace(
        QuantityTargets.capabilities, layouts=frozenset({TENSOR, MODALITIES}), grouped=True
    )
    score_meaning = "norm of the feature's coefficients over the quantities"
