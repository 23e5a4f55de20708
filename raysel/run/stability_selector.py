"""StabilitySelection: the features that most halves of the samples select, as an estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier, is_regressor
from sklearn.feature_selection import SelectorMixin
from sklearn.model_selection import GridSearchCV
from sklearn.utils import Tags, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.base.estimator import read_convergence
from raysel.base.template import Template
from raysel.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Interval,
    LabelArray,
    validate_params,
)
from raysel.core.errors import ConfigError, DataError
from raysel.data.dataset import Dataset
from raysel.data.targets import has_columns
from raysel.evaluation.plan import derived_seed
from raysel.evaluation.selectors import score_scale, usable_scores
from raysel.evaluation.splitters import split
from raysel.numerics.rankings import bounded_top, descending_order, smallest_threshold
from raysel.results import stability
from raysel.run.assembly import check_estimator_object, draw_seed, make_dataset
from raysel.run.pieces import Pieces
from raysel.run.stability import check_halves, check_numbers, count_selections, draw_halves

#: Threshold that decoys choose.
_DECOYS: Final = "decoys"


class StabilitySelection(SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """Select the features that an estimator ranks among its best on most halves of the samples.

    The samples are split at random into pairs of disjoint halves, stratified and with whole groups.
    As a step of a Pipeline it takes groups by ``fit(X, y, stabilityselection__groups=groups)``.
    `NestedSearch` and `GridSearchCV` give a step none: its halves then divide groups, and the bound
    is too low.

    The estimator is fitted to each half, which selects its ``top`` best features with a score. The
    share of the halves that select a feature is its selection probability. Halves and bounds are
    those of `raysel.stability_selection`: a finished study gives the same numbers for the same
    seed, samples and configuration.

    A feature is false if a random half selects it with a probability of at most q / p, where q is
    the largest number of features that a half selects, of p. To read it as one without an effect,
    the selections of such features have to be exchangeable and no more frequent than by guessing.
    With ``param_grid`` the bounds are for the estimator with its search.

    The set may be empty, which a next step of a Pipeline refuses: give a smaller ``threshold``.

    Parameters
    ----------
    estimator : estimator
        Any of raysel's methods, or any estimator, selector or Pipeline in scikit-learn's style that
        ranks features, e.g. by ``coef_`` or ``feature_importances_``. Each ``random_state`` in it
        that is None is set from the selection's own.
    param_grid : dict or list of dict, default=None
        Values to try by parameter, as for `GridSearchCV`. Each half chooses among them by the
        estimator's own score on ``inner`` folds of this half. None: the estimator as it is.
    n_halves : int, default=100
        Number of halves, even.
    top : int, default=None
        Largest number of features that a half selects. None: the largest for which a threshold of
        0.9 bounds the expected number of false ones by ``expected_false``.
    expected_false : float, default=1.0
        Bound on the expected number of false features that the default threshold keeps.
    threshold : float or "decoys", default=None
        Selection probability, above 0.5 and at most 1, from which a feature is selected. None: the
        smallest whose bound is at most ``expected_false``; 1 where there is none. "decoys": each
        feature gets a decoy, its values in a random order, which is ranked with the features. The
        threshold is the smallest with the lowest ``false_share_``, as in [1]_. Decoys are
        independent of all features, so that one that depends on a telling feature counts as true.
        Labels that mean nothing may still select a feature; ``false_share_`` is then near 1.
    inner : int, default=3
        Number of inner folds of each half. Only used with ``param_grid``.
    n_jobs : int, default=None
        Number of processes, by joblib; -1: all processors. The numbers do not depend on it.
    random_state : int or RandomState, default=None
        Seed of the halves and of the estimator. None: 0, so that a second fit gives the same
        numbers.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Selection probability of each feature.
    top_ : int
        Largest number of features that a half may select.
    threshold_ : float
        Selection probability from which a feature is selected.
    bound_ : float
        Bound on the expected number of false features: the unimodal one, or the simple one where
        there is no unimodal one.
    false_share_ : float
        Estimated share of false features among the selected ones: 1 and the number of decoys that
        reach the threshold, by the number of features that do. Only with ``threshold="decoys"``.
    selection_ : object
        The whole result, as `raysel.stability_selection` returns it: counts, bounds, sentences.
    best_params_ : list of dict
        Parameters that each half chose; only with ``param_grid``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the features; only if X had names.

    References
    ----------
    .. [1] J. Hedou et al., "Discovery of sparse, reliable omic biomarkers with Stabl", Nature
       Biotechnology 42, 2024.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.linear_model import Lasso
    >>> X, y = make_regression(n_features=30, n_informative=3, noise=1.0, random_state=0)
    >>> selector = StabilitySelection(Lasso(), n_halves=20, top=3).fit(X, y)
    >>> selector.transform(X).shape
    (100, 3)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "top": [Interval(Integral, 1, None, closed="left"), None],
        "expected_false": [Interval(Real, 0, None, closed="neither")],
        "inner": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        *,
        n_halves: int = 100,
        top: int | None = None,
        expected_false: float = 1.0,
        threshold: float | Literal["decoys"] | None = None,
        inner: int = 3,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.n_halves = n_halves
        self.top = top
        self.expected_false = expected_false
        self.threshold = threshold
        self.inner = inner
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Fit the estimator to all halves and count their selections.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,), or (n_samples, n_labels)
            Labels, a 0/1 indicator of labels, or quantities.
        groups : array-like of shape (n_samples,), default=None
            Group of each sample, e.g. its subject; groups stay whole in all halves and inner folds.

        Returns
        -------
        self
            The fitted selector.

        Raises
        ------
        ConfigError, DataError
            If a parameter or the data cannot be used.
        """
        self._check_parameters()
        dataset = self._dataset(X, y, groups)
        check_halves(dataset.y, dataset.groups)
        constant, n_pairs = dataset.constant, self.n_halves // 2
        p = int((~constant).sum())
        if p == 0:
            raise DataError("X: every feature is constant; give one that varies.")
        seed, n_ranked = draw_seed(self.random_state), p
        if self.threshold == _DECOYS:
            dataset, n_ranked = self._add_decoys(dataset, seed), 2 * p
        top = self.top
        if top is None:
            top = bounded_top(n_ranked, n_ranked, n_pairs, self.expected_false)
        numbers = range(self.n_halves)
        halves = Parallel(n_jobs=self.n_jobs)(
            delayed(_rank_on_half)(self, dataset, seed, number) for number in numbers
        )
        counts = _count_ranked([half["best"][:top] for half in halves], dataset.n_features)
        for half in halves:
            half["best"] = [i for i in half["best"][:top] if i < len(constant)]
        pieces = Pieces(dict(zip(numbers, halves, strict=True)), {})
        counted = count_selections(
            pieces, top, subsamples=self.n_halves, constant=constant, identity={}
        )
        threshold, false_share = self._choose_threshold(counted, counts)
        unit = "samples" if dataset.groups is None else "groups"
        self._keep(replace(counted, unit=unit).at(threshold), halves, false_share)
        return self

    def _choose_threshold(
        self, counted: stability.StabilitySelectionResult, counts: IntArray
    ) -> tuple[float, float | None]:
        """Return the threshold, and the share of false features that decoys estimate.

        `counts` are the numbers of halves that select each feature and decoy.
        """
        if self.threshold == _DECOYS:
            real, decoys = np.split(counts, [len(counted.constant)])
            return _threshold_by_decoys(real, decoys, counted.n_pairs)
        if self.threshold is None:
            smallest = smallest_threshold(
                counted.q, counted.p, counted.n_pairs, self.expected_false
            )
            return smallest, None
        return self.threshold, None

    def _check_parameters(self) -> None:
        validate_params(self)
        check_estimator_object(self.estimator)
        threshold = None if self.threshold == _DECOYS else self.threshold
        check_numbers(self.n_halves, threshold, name="n_halves")
        if self.param_grid is not None and not hasattr(self.estimator, "score"):
            raise ConfigError(
                f"param_grid: {type(self.estimator).__name__} has no score to choose by; leave"
                " param_grid out, or take an estimator that predicts."
            )

    def _dataset(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None) -> Dataset:
        """Validate samples and make their data set."""
        features, labels = validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            ensure_min_samples=2,
            multi_output=has_columns(y),
            y_numeric=is_regressor(self.estimator),
            order="C",
        )
        if is_classifier(self.estimator):
            check_classification_targets(labels)
        names = getattr(self, "feature_names_in_", ())
        return make_dataset(self.estimator, features, y=labels, groups=groups, names=names)

    def _add_decoys(self, dataset: Dataset, seed: int) -> Dataset:
        """Append to the features that vary their values in a random order."""
        if dataset.groups is not None:
            raise ConfigError(
                'threshold="decoys": values in a random order do not depend on groups of samples,'
                " as those of features do; leave out groups, or give a number."
            )
        rng = np.random.default_rng(derived_seed(seed, _DECOYS))
        varying = np.flatnonzero(~dataset.constant)
        decoys = rng.permuted(dataset.X[:, varying], axis=0)
        names = [*dataset.feature_names, *(f"decoy {number}" for number in varying)]
        X = np.hstack([dataset.X, decoys])
        return make_dataset(self.estimator, X, y=dataset.y, names=names)

    def _keep(
        self,
        selection: stability.StabilitySelectionResult,
        halves: Sequence[Mapping[str, Any]],
        false_share: float | None,
    ) -> None:
        """Set the fitted attributes."""
        self.__dict__.pop("best_params_", None)
        self.__dict__.pop("false_share_", None)
        if false_share is not None:
            self.false_share_ = false_share
        self.selection_ = selection
        self.scores_: FloatArray = selection.probability
        self.top_, self.threshold_ = selection.top, selection.threshold
        self.bound_ = selection.bound
        if self.param_grid is not None:
            self.best_params_ = [half["params"] for half in halves]

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return self.selection_.selected

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.target_tags.required = True
        tags.target_tags.multi_output = inner.target_tags.multi_output
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.input_tags.positive_only = inner.input_tags.positive_only
        return tags


def _count_ranked(best: Sequence[Sequence[int]], n_features: int) -> IntArray:
    """Count the halves that select each feature, decoys included."""
    chosen = np.concatenate([np.asarray(half, dtype=np.int64) for half in best])
    return np.bincount(chosen, minlength=n_features)


def _threshold_by_decoys(counts: IntArray, decoys: IntArray, n_pairs: int) -> tuple[float, float]:
    """Return the smallest threshold with the lowest estimated share of false features, and both.

    `counts` and `decoys` are the numbers of halves that select each feature, and each decoy.
    """
    levels = np.arange(n_pairs + 1, 2 * n_pairs + 1)
    n_features = (counts >= levels[:, None]).sum(axis=1)
    n_decoys = (decoys >= levels[:, None]).sum(axis=1)
    shares = (1 + n_decoys) / np.maximum(n_features, 1)
    best = int(shares.argmin())
    return float(levels[best] / (2 * n_pairs)), float(shares[best])


def _rank_on_half(
    selector: StabilitySelection, dataset: Dataset, seed: int, number: int
) -> dict[str, Any]:
    """Fit the estimator to one half of the samples and return its best features."""
    pair, side = divmod(number, 2)
    pair_seed = derived_seed(seed, "halves", pair)
    half = draw_halves(dataset.y, dataset.groups, pair_seed)[side]
    fit_seed = derived_seed(seed, "half fit", pair, side)
    params = _best_params(selector, dataset, half, fit_seed)
    method = Template(selector.estimator).solver(params, fit_seed)
    method.fit(dataset.X[half], dataset.y[half])
    if not hasattr(method, "scores_"):
        raise DataError(
            f"{type(selector.estimator).__name__} gives no feature scores; use an estimator that"
            " ranks features, or raysel.PermutationImportance of it."
        )
    scores = usable_scores(method.scores_, dataset.constant, scale=score_scale(method))
    if not np.isfinite(scores).all():
        raise DataError(f"{type(selector.estimator).__name__} gave scores NaN or infinite.")
    n_scored = int((scores > 0).sum())
    return {
        "best": descending_order(scores)[:n_scored].tolist(),
        "converged": read_convergence(method)[0],
        "params": params,
    }


def _best_params(
    selector: StabilitySelection, dataset: Dataset, half: IntArray, seed: int
) -> dict[str, Any]:
    """Choose parameters by inner folds of the half alone."""
    if selector.param_grid is None:
        return {}
    y: LabelArray = dataset.y[half]
    groups = None if dataset.groups is None else dataset.groups[half]
    folds = split(
        y, selector.inner, groups=groups, random_state=seed, where="inner folds of a half"
    )
    search = GridSearchCV(
        Template(selector.estimator).clone({}, seed), selector.param_grid, cv=folds, refit=False
    )
    best: dict[str, Any] = search.fit(dataset.X[half], y).best_params_
    return best
