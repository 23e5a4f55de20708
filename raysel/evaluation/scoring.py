"""Scores of a fitted method on samples that were held out of its fit."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import groupby, product
from operator import itemgetter
from typing import Any, Literal

import numpy as np

from raysel.base.estimator import Estimator
from raysel.base.label_codes import fit_to_labels
from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.data.targets import find_target
from raysel.data.task_blocks import Samples, TaskBlocks
from raysel.evaluation.neighbours import knn_path, knn_scores, knn_shares, set_decides
from raysel.evaluation.outcomes import Measured, Outcome
from raysel.evaluation.records import ChooseN, EstimatorFailure, Setting
from raysel.evaluation.scoring_estimators import (
    KNN,
    LINEAR_SVM,
    NATIVE,
    RIDGE,
    EstimatorError,
    RidgePath,
    ScoringEstimator,
    SpanFits,
    own_errors,
    shown_setting,
    without_nan,
)
from raysel.evaluation.split import KnownScores, Split
from raysel.numerics.metrics import Metric, metric
from raysel.numerics.rankings import descending_order

#: Number of scores that a table of known scores keeps, of 300 bytes each.
_KEPT = 4096

#: Number of features, and setting of the estimator.
_Case = tuple[int, Setting]


@dataclass(frozen=True)
class Evaluation:
    """Settings by which fitted selectors are scored."""

    estimator: str
    n_features: tuple[int, ...] = ()
    n_neighbors: int = 1
    metric: str = "accuracy"
    _: KW_ONLY
    tasks: tuple[str, ...] = ()
    report: tuple[str, ...] = ()
    choose_n: ChooseN = "mean"
    references: Literal[True, False, "chance"] = False
    #: Parameters of the estimator besides those of ``settings``.
    params: Setting = ()
    #: Settings of the estimator that the inner scores choose from, for each number of features.
    settings: tuple[Setting, ...] = ((),)
    #: Whether the samples stay in their file, all of which is read for a score: the last iteration
    #: alone is scored.
    stored: bool = False
    #: Whether the study leaves the scale of the features to the method.
    unscaled: bool = False

    @property
    def scoring_estimator(self) -> ScoringEstimator:
        """Estimator that is fitted to the best features, with its settings."""
        params = (("n_neighbors", self.n_neighbors),) if self.estimator == KNN else self.params
        return ScoringEstimator(self.estimator, params, self.settings)

    @property
    def is_native(self) -> bool:
        """Whether the method's own predictions are scored, by no other estimator."""
        return self.estimator == NATIVE

    @property
    def every_iteration(self) -> bool:
        """Whether each iteration is scored; others than k-NN are too slow for it."""
        return self.scoring_estimator.every_iteration and not self.stored

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the scores: ``n10``, ``n20``, ..., or the tasks for ``native``."""
        return self.tasks if self.is_native else tuple(f"n{n}" for n in self.n_features)

    def with_numbers(self, positions: Sequence[int]) -> Evaluation:
        """Return the settings with some of the numbers of features, by position."""
        if self.is_native:
            return self
        return replace(self, n_features=tuple(self.n_features[i] for i in positions))

    def scorer(self, split: Split, settings: Sequence[Setting] = ()) -> Callable[..., FloatArray]:
        """Return a function that scores a fitted method on the samples that are held out.

        ``settings`` are one for all numbers of features, or one for each; the first of the
        evaluation's by default. See `RankingScorer`; ``native`` scores the method itself.
        """
        if not self.is_native:
            return RankingScorer(self, split, settings or self.settings[:1])
        measure, y = metric(self.metric), split.y_test
        mean = split.target.known_beside(split.y_train)

        def score(method: Estimator, _: Any = None) -> FloatArray:
            measured = self._measured(measure, method, split.X_test, y, mean=mean)
            return self.finite(measured.values(), y)

        return score

    def outcome(
        self,
        model: Any,
        X: Samples,
        y: LabelArray,
        y_train: LabelArray | None = None,
        *,
        predicted: LabelArray | None = None,
    ) -> Outcome:
        """Predict samples by a fitted model, and compute the metric and those of ``report``.

        `X` is (n_samples, n_selected), `y` (n_samples,) or (n_samples, n_labels), `y_train` those
        of the training set, which metrics of quantities may need. `predicted` is as `y`, if known.
        """
        mean = None if y_train is None else find_target(y_train).known_beside(y_train)
        with own_errors():
            if predicted is None:
                predicted = model.predict(X)
            measured = {
                name: self._measured(metric(name), model, X, y, mean=mean, predicted=predicted)
                for name in (self.metric, *self.report)
            }
        report = {name: measured[name].values() for name in self.report}
        return Outcome(predicted, measured[self.metric], report)

    def _measured(
        self,
        measure: Metric,
        model: Any,
        X: Samples,
        y: LabelArray,
        *,
        mean: FloatArray | None,
        predicted: LabelArray | None = None,
    ) -> Measured:
        """Compute what a metric takes of a fitted model, whose predictions may be known.

        ``mean`` is that of the training quantities; None of other targets.
        """
        if measure.response != "predict" or predicted is None:
            predicted = measure.output(model, X, y)
        classes = getattr(model, "classes_", None) if mean is None else mean
        whole = Measured(measure, y, predicted, classes)
        if not self.is_native:
            return whole
        labelled = model.labelled(y)
        if not isinstance(X, TaskBlocks):
            return replace(whole, parts={"": labelled})
        parts = {name: (X.tasks == task) & labelled for task, name in enumerate(self.tasks)}
        return replace(whole, parts=parts)

    def finite(self, values: FloatArray, y: LabelArray) -> FloatArray:
        """Check that values of the metric are finite.

        `y` is (n_samples,) or (n_samples, n_labels).
        """
        for value in values:
            if not math.isfinite(value):
                raise FloatingPointError(
                    f"the metric {self.metric} gave {value} for {len(y)} samples"
                )
        return values


class RankingScorer:
    """Function that scores a fitted method at each number of features.

    A score is NaN where the estimator fails; a list that is given to the function as well gets
    each `EstimatorFailure`.

    Scores that depend on the set of features alone are taken from the split's table of known
    scores, or go there: configurations and their iterations often rank the same features best.
    """

    def __init__(self, evaluation: Evaluation, split: Split, settings: Sequence[Setting]) -> None:
        self._evaluation, self._split = evaluation, split
        self._measure = metric(evaluation.metric)
        self._classes = split.target.known(split.y_train)
        self._uses_neighbours = evaluation.estimator == KNN and split.target.is_of_classes
        n = len(evaluation.n_features)
        self._settings = repeat_settings(settings, n)
        self._table: KnownScores | None = split.known if self._set_decides() else None
        self._order: IntArray | None = None
        self._scores = np.empty(0)
        self._failures: list[EstimatorFailure] = []

    def __call__(self, method: Any, failures: list[EstimatorFailure] | None = None) -> FloatArray:
        """Return the score of a fitted method at each number of features; shape (n_sizes,)."""
        values = self._split.feature_scores(method)
        n_best = min(self._evaluation.n_features[-1], int((values > 0).sum()))
        order = descending_order(values)[:n_best]
        if self._order is None or not np.array_equal(order, self._order):
            self._scores, self._failures = self._score(order)
            self._order = order
        if failures is not None:
            failures += self._failures
        return self._scores

    def _set_decides(self) -> bool:
        """Whether a score is the same, to the last bit, for the same features in another order."""
        if not self._uses_neighbours:
            return True
        if self._measure.response != "predict":
            return False
        split, widest = self._split, self._evaluation.n_features[-1]
        if split.outputs is not None:
            widest = split.X_train.shape[1]
        return set_decides(split.y_train, widest, self._evaluation.n_neighbors)

    def _score(self, order: IntArray) -> tuple[FloatArray, list[EstimatorFailure]]:
        """Score the best features, and return the failures of the estimator beside the scores."""
        evaluation, split = self._evaluation, self._split
        sizes = np.minimum(evaluation.n_features, len(order)).tolist()
        settings = self._settings
        if not len(order):  # where no feature has a score, no estimator is fitted
            settings = [()] * len(sizes)
        cases: list[_Case] = list(zip(sizes, settings, strict=True))
        table: KnownScores = {} if self._table is None else self._table
        # One product of the samples serves all settings; which are fitted together must not depend
        # on which are known, as their last bits do.
        together = self._table is not None and len(order) > 0 and evaluation.estimator == RIDGE
        computed = [*product(sizes, evaluation.settings), *cases] if together else cases
        keys = {
            case: (evaluation, split.random_state, case, _set_key(order[: case[0]]))
            for case in sorted(dict.fromkeys(computed), key=itemgetter(0))
        }
        unknown = [case for case, key in keys.items() if key not in table]
        if together:
            missing = {size for size, _ in unknown}
            unknown = [case for case in keys if case[0] in missing]
        for case, output in zip(unknown, self._outputs(order, unknown), strict=True):
            if isinstance(output, str):
                table[keys[case]] = output
            else:
                table[keys[case]] = self._measure(split.y_test, output, self._classes)
        found = self._checked([table[keys[case]] for case in cases])
        while len(table) > _KEPT:
            del table[next(iter(table))]  # the oldest
        return found

    def _checked(self, values: Iterable[float | str]) -> tuple[FloatArray, list[EstimatorFailure]]:
        """Return finite scores, NaN where the estimator fails, and its failures."""
        scores, failures = [], []
        sizes = self._evaluation.n_features
        for n, setting, value in zip(sizes, self._settings, values, strict=True):
            if isinstance(value, str):
                failures.append(EstimatorFailure(n, shown_setting(setting), value))
                scores.append(math.nan)
            else:
                scores += self._evaluation.finite(np.array([value]), self._split.y_test).tolist()
        return np.array(scores), failures

    def _outputs(self, order: IntArray, cases: Sequence[_Case]) -> Iterator[LabelArray | str]:
        """Yield what the metric takes, or why there is nothing, for each case."""
        split = self._split
        if not cases:
            return
        if not len(order):
            guess = split.target.constant_model().fit(split.X_train, split.y_train)
            yield self._measure.output(guess, split.X_test, split.y_test)
        elif self._uses_neighbours:
            yield from self._neighbour_outputs(order, [size for size, _ in cases])
        else:
            for n, of_size in groupby(cases, key=itemgetter(0)):
                yield from self._estimator_outputs(order[:n], [setting for _, setting in of_size])

    def _neighbour_outputs(self, order: IntArray, sizes: Sequence[int]) -> LabelArray:
        """Return what the metric takes of the nearest neighbours, for each number of features."""
        outputs = self._split.outputs
        if outputs is None:
            return self._path_outputs(order, sizes)
        # More of the features that share a column are no more columns.
        of_columns, place = np.unique(outputs.sizes(order, sizes), return_inverse=True)
        return self._path_outputs(outputs.columns(order), of_columns.tolist())[place]

    def _path_outputs(self, order: IntArray, sizes: Sequence[int]) -> LabelArray:
        """Return what the metric takes, for increasing numbers of the best columns."""
        split, response = self._split, self._measure.response
        arguments = split.X_train, split.y_train, split.X_test, order, sizes
        if response == "predict":
            return knn_path(*arguments, self._evaluation.n_neighbors)
        if response == "predict_proba":
            values = knn_shares(*arguments, self._evaluation.n_neighbors)
        else:
            values = knn_scores(*arguments)
        if response == "class_scores" or not split.target.is_one_class:
            return values
        classes = np.unique(split.y_train)
        return np.array([self._measure.take_positive(of_size, classes) for of_size in values])

    def _estimator_outputs(
        self, features: IntArray, settings: Sequence[Setting]
    ) -> Iterator[LabelArray | str]:
        """Yield what the metric takes of the estimator by setting after its fit, or its failure."""
        split, scoring_estimator = self._split, self._evaluation.scoring_estimator
        # In the order of the data, as a selector gives them to the estimator of the final model.
        columns = np.sort(features)
        if split.outputs is not None:
            columns = split.outputs.columns(columns)
        X_train, X_test = split.X_train[:, columns], split.X_test[:, columns]
        estimators = [
            scoring_estimator.make(split.y_train, split.random_state, setting)
            for setting in settings
        ]
        fit: Callable[..., Any] = fit_to_labels
        if scoring_estimator.name == RIDGE and len(settings) > 1:
            fit = RidgePath([estimator.alpha for estimator in estimators]).fit
        elif scoring_estimator.name == LINEAR_SVM:
            fit = SpanFits().fit
        for estimator in estimators:
            output: LabelArray | str
            try:
                with own_errors():
                    model = fit(estimator, X_train, split.y_train)
                    output = without_nan(self._measure.output(model, X_test, split.y_test))
            except EstimatorError as error:
                output = str(error)
            yield output


def repeat_settings(settings: Sequence[Setting], n: int) -> Sequence[Setting]:
    """Return a setting for each of n scores, which may share one."""
    if len(settings) == n:
        return settings
    return [*settings] * n


def _set_key(features: IntArray) -> bytes:
    return hashlib.blake2b(np.sort(features).tobytes(), digest_size=16).digest()
