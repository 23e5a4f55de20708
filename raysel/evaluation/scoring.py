"""Scores of a fitted selector on samples that were held out of its fit."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor

from raysel.base.estimator import Estimator
from raysel.base.label_codes import fit_to_labels
from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray, is_quantity
from raysel.data.layouts import SEPARATOR
from raysel.data.preparation.outputs import Outputs
from raysel.data.task_blocks import Samples, TaskBlocks
from raysel.evaluation.judges import (
    KNN,
    NATIVE,
    EstimatorError,
    Judge,
    own_errors,
    shown_setting,
    without_nan,
)
from raysel.evaluation.neighbours import knn_path, knn_scores, knn_shares, set_decides
from raysel.evaluation.records import ChooseN, EstimatorFailure, Setting
from raysel.evaluation.selectors import score_scale, usable_scores
from raysel.numerics.metrics import Metric, known_of, metric
from raysel.numerics.rankings import descending_order

#: Scores, or why the estimator fails, by the settings and the set of features; a fold has one table
#: for all configurations.
KnownScores = dict[tuple[Any, ...], float | str]
#: Number of scores that a table keeps, of 300 bytes each.
_KEPT = 4096


@dataclass(frozen=True)
class Evaluation:
    """Settings by which fitted selectors are scored."""

    estimator: str
    n_features: tuple[int, ...] = ()
    n_neighbors: int = 1
    metric: str = "accuracy"
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
    def judge(self) -> Judge:
        """Estimator that is fitted to the best features, with its settings."""
        params = (("n_neighbors", self.n_neighbors),) if self.estimator == KNN else self.params
        return Judge(self.estimator, params, self.settings)

    @property
    def is_native(self) -> bool:
        """Whether the method's own predictions are scored, and no estimator is fitted to the
        best features.
        """
        return self.estimator == NATIVE

    @property
    def every_iteration(self) -> bool:
        """Whether each iteration is scored; others than k-NN are too slow for it and score the
        last one only.
        """
        return self.judge.every_iteration and not self.stored

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the scores: ``n10``, ``n20``, ..., or the tasks for ``native``; empty if
        there is one score.
        """
        return self.tasks if self.is_native else tuple(f"n{n}" for n in self.n_features)

    def with_numbers(self, positions: Sequence[int]) -> Evaluation:
        """Return the settings with some of the numbers of features, by their positions;
        ``native`` has none.
        """
        if self.is_native:
            return self
        return replace(self, n_features=tuple(self.n_features[i] for i in positions))

    def scorer(
        self,
        X_train: Any,
        y_train: LabelArray,
        X_test: Any,
        y_test: LabelArray,
        random_state: int,
        constant: BoolArray | None = None,
        settings: Sequence[Setting] = (),
        known: KnownScores | None = None,
        prepared: Outputs | None = None,
    ) -> Callable[..., FloatArray]:
        """Return a function that scores a fitted selector on the given samples.

        A score is NaN where the estimator fails; a list that is given to the function as well gets
        each `EstimatorFailure`.

        Scores that depend on the set of features alone are taken from ``known``, the table of these
        samples, or go there: configurations and their iterations often rank the same features best.

        ``settings`` are one for all numbers of features, or one for each; the first of the
        evaluation's by default.

        `X_train` is (n_train, d), `y_train` (n_train,) or (n_train, n_labels), `X_test` (n_test,
        d), `y_test` (n_test,) or (n_test, n_labels), `constant` (d,). ``prepared`` tells the
        columns of each feature, if a feature may be several; numbers of features are of features
        then too.
        """
        measure = metric(self.metric)
        if self.is_native:
            mean = known_of(y_train) if is_quantity(y_train) else None
            return lambda selector, _=None: self.finite(
                self._of_model(measure, selector, X_test, y_test, mean), y_test
            )
        classes = known_of(y_train)
        of_neighbours = self.estimator == KNN and not is_quantity(y_train)
        settings = settings or self.settings[:1]
        by_set = not of_neighbours or (
            measure.response == "predict"
            and set_decides(
                y_train,
                self.n_features[-1] if prepared is None else X_train.shape[1],
                self.n_neighbors,
            )
        )
        last: list[tuple[IntArray, FloatArray, list[EstimatorFailure]]] = []

        def outputs(
            order: IntArray, cases: Sequence[tuple[int, Setting]]
        ) -> Iterator[LabelArray | str]:
            """Yield what the metric takes, or why there is nothing, for each number of features
            and setting.
            """
            if not len(order):
                yield measure.output(best_guess(y_train).fit(X_train, y_train), X_test, y_test)
            elif of_neighbours:
                sizes = [size for size, _ in cases]
                if prepared is not None:
                    order, sizes = prepared.columns(order), prepared.sizes(order, sizes)
                arguments = X_train, y_train, X_test, order, sizes
                yield from self._of_neighbours(measure, *arguments)
            else:
                # In the order of the data, as a selector gives the features to the classifier of
                # the final pipeline.
                for n, setting in cases:
                    best = (
                        np.sort(order[:n])
                        if prepared is None
                        else prepared.columns(np.sort(order[:n]))
                    )
                    judge = self.judge.make(y_train, random_state, setting)
                    columns = X_train[:, best], y_train, X_test[:, best], y_test
                    yield _output_of(judge, measure, *columns)

        def score(
            selector: Estimator, failures: list[EstimatorFailure] | None = None
        ) -> FloatArray:
            values = usable_scores(
                selector.scores_, constant, prepared, scale=score_scale(selector)
            )
            order = descending_order(values)[: min(self.n_features[-1], int((values > 0).sum()))]
            if not last or not np.array_equal(order, last[0][0]):
                used = np.minimum(self.n_features, len(order)).tolist()
                each = settings if len(settings) == len(used) else [*settings] * len(used)
                cases = list(zip(used, each if len(order) else [()] * len(used), strict=True))
                distinct = sorted(dict.fromkeys(cases), key=lambda case: case[0])
                keys = {
                    case: (self, random_state, case, _set_key(order[: case[0]]))
                    for case in distinct
                }
                table: KnownScores = known if by_set and known is not None else {}
                unknown = [case for case, key in keys.items() if key not in table]
                for case, output in zip(
                    unknown, outputs(order, unknown) if unknown else (), strict=True
                ):
                    if isinstance(output, str):
                        table[keys[case]] = output
                    else:
                        table[keys[case]] = measure(y_test, output, classes)
                last[:] = [
                    (order, *self._found([table[keys[case]] for case in cases], each, y_test))
                ]
                while len(table) > _KEPT:
                    del table[next(iter(table))]  # the oldest
            _, scores, lost = last[0]
            if failures is not None:
                failures += lost
            return scores

        return score

    def _found(
        self,
        values: Sequence[float | str],
        settings: Sequence[Setting],
        y: LabelArray,
    ) -> tuple[FloatArray, list[EstimatorFailure]]:
        """Scores for each number of features, and failures of the estimator. `y` is (n_samples,)
        or of labels.
        """
        scores, failures = [], []
        for n, setting, value in zip(self.n_features, settings, values, strict=True):
            if isinstance(value, str):
                failures.append(EstimatorFailure(n, shown_setting(setting), value))
                scores.append(math.nan)
            else:
                scores += self.finite(np.array([value]), y).tolist()
        return np.array(scores), failures

    def _of_neighbours(
        self,
        measure: Metric,
        X_train: FloatArray,
        y_train: LabelArray,
        X_test: FloatArray,
        order: IntArray,
        n_features: Sequence[int],
    ) -> LabelArray:
        """What a metric takes of the nearest neighbours, for each number of features."""
        arguments = X_train, y_train, X_test, order, n_features
        if measure.response == "predict":
            return knn_path(*arguments, self.n_neighbors)
        if measure.response == "class_scores":
            return knn_scores(*arguments)
        shares = measure.response == "predict_proba"
        values = knn_shares(*arguments, self.n_neighbors) if shares else knn_scores(*arguments)
        if y_train.ndim == 2:
            return values
        classes = np.unique(y_train)
        return np.array([measure.of_two(of_size, classes) for of_size in values])

    def outcome(
        self, model: Any, X: Samples, y: LabelArray, y_train: LabelArray | None = None
    ) -> Outcome:
        """Predict samples by a fitted model, and compute the metric and those of ``report``.

        `X` is (n_samples, n_selected), `y` (n_samples,) or (n_samples, n_labels), `y_train` those
        of the training set, which metrics of quantities may need.
        """
        mean = known_of(y_train) if y_train is not None and is_quantity(y_train) else None
        with own_errors():
            predicted: LabelArray = model.predict(X)
            measured = {
                name: self._measured(metric(name), model, X, y, mean, predicted)
                for name in (self.metric, *self.report)
            }
        report = {name: measured[name].values() for name in self.report}
        return Outcome(predicted, measured[self.metric], report)

    def _of_model(
        self, measure: Metric, model: Any, X: Samples, y: LabelArray, mean: FloatArray | None
    ) -> FloatArray:
        """Compute a metric of a fitted model for each task."""
        return self._measured(measure, model, X, y, mean).values()

    def _measured(
        self,
        measure: Metric,
        model: Any,
        X: Samples,
        y: LabelArray,
        mean: FloatArray | None,
        predicted: LabelArray | None = None,
    ) -> Measured:
        """Compute what a metric takes of a fitted model; its predictions, and means of
        quantities, may be known.
        """
        known = measure.response == "predict" and predicted is not None
        output: Any = predicted if known else measure.output(model, X, y)
        classes = getattr(model, "classes_", None) if mean is None else mean
        if not self.is_native:
            return Measured(measure, y, output, classes)
        labelled = model.labelled(y)
        if not isinstance(X, TaskBlocks):
            return Measured(measure, y, output, classes, {"": labelled})
        parts = {name: (X.tasks == task) & labelled for task, name in enumerate(self.tasks)}
        return Measured(measure, y, output, classes, parts)

    def finite(self, values: FloatArray, y: LabelArray) -> FloatArray:
        """Check that values of the metric are finite. `y` is (n_samples,) or (n_samples,
        n_labels).
        """
        for value in values:
            if not math.isfinite(value):
                raise FloatingPointError(
                    f"the metric {self.metric} gave {value} for {len(y)} samples"
                )
        return values


@dataclass(frozen=True)
class Measured:
    """Samples with what a metric takes of a model for them, so that it can be computed of some
    of them.
    """

    metric: Metric
    #: Labels; shape (n_samples,) or (n_samples, n_labels).
    y: LabelArray
    #: What the metric takes of the model; its first axis is of the samples.
    output: Any
    #: Classes of the model, or means of quantities over its training samples.
    classes: Any
    #: Mask of the samples with a label by task, of one task by an empty name; None where all
    #: samples are scored.
    parts: Mapping[str, BoolArray] | None = None

    @property
    def n_columns(self) -> int:
        """Columns of scores that the metric takes, e.g. one for each class; 1 for predictions."""
        scores = self.metric.response != "predict" and np.ndim(self.output) == 2
        return int(self.output.shape[1]) if scores else 1

    def values(self, rows: IntArray | None = None) -> FloatArray:
        """Compute the metric of all samples or of some rows, one value for each task; returns
        (n_tasks,).
        """
        y, output = (self.y, self.output) if rows is None else (self.y[rows], self.output[rows])
        if self.parts is None:
            return np.array([self.metric(y, output, self.classes)])
        masks = [mask if rows is None else mask[rows] for mask in self.parts.values()]
        return np.array(
            [
                self._of_part(name, y[mask], output[mask])
                for name, mask in zip(self.parts, masks, strict=True)
            ]
        )

    def _of_part(self, task: str, y: LabelArray, output: Any) -> float:
        if task:
            return _of_task(self.metric, task, y, output, self.classes)
        return self.metric(y, output, self.classes)


def _of_task(measure: Metric, name: str, y: LabelArray, output: Any, classes: Any) -> float:
    """Compute a metric of the samples of one task, of whose own classes alone it is, as if no other
    task were there.

    `y` is (n_samples,), `output` (n_samples,) or (n_samples, n_classes), `classes` (n_classes,)
    those of all tasks.
    """
    own = np.array([str(label).startswith(f"{name}{SEPARATOR}") for label in classes])
    if measure.response != "predict":
        output = output[:, own]
    if measure.response in ("decision_function", "predict_proba"):
        output = measure.of_two(output, classes[own])
    return measure(y, output, classes[own])


def _output_of(
    estimator: Any,
    measure: Metric,
    X_train: FloatArray,
    y_train: LabelArray,
    X_test: FloatArray,
    y_test: LabelArray,
) -> LabelArray | str:
    """What a metric takes of an estimator after its fit, or why the estimator fails."""
    try:
        with own_errors():
            model = fit_to_labels(estimator, X_train, y_train)
            return without_nan(measure.output(model, X_test, y_test))
    except EstimatorError as error:
        return str(error)


def best_guess(y: LabelArray) -> Any:
    """Return the unfitted model that reads no feature: the shares of the classes, or the mean of
    quantities.
    """
    return DummyRegressor() if is_quantity(y) else DummyClassifier(strategy="prior")


def _set_key(features: IntArray) -> bytes:
    return hashlib.blake2b(np.sort(features).tobytes(), digest_size=16).digest()


@dataclass(frozen=True)
class Outcome:
    """Predictions of some samples and their metrics."""

    #: Predicted labels; shape (n_samples,) or (n_samples, n_labels).
    predicted: LabelArray
    #: What the metric is computed of.
    measured: Measured
    report: dict[str, FloatArray]

    @cached_property
    def scores(self) -> FloatArray:
        """Value of the metric; shape (1,) or (n_tasks,)."""
        return self.measured.values()
