"""Scores of a fitted selector on samples that were held out of its fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from raysel.base.estimator import Estimator
from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.core.errors import ConfigError
from raysel.data.task_blocks import Samples, TaskBlocks
from raysel.evaluation.neighbours import NearestNeighborsClassifier, knn_path, knn_scores
from raysel.evaluation.records import ChooseN
from raysel.evaluation.selectors import usable_scores
from raysel.numerics.classification import Metric, class_scores, classification_metric, needs_scores
from raysel.numerics.rankings import descending_order


@dataclass(frozen=True)
class Evaluation:
    """Settings by which fitted selectors are scored."""

    classifier: str
    n_features: tuple[int, ...] = ()
    n_neighbors: int = 1
    metric: str = "accuracy"
    tasks: tuple[str, ...] = ()
    report: tuple[str, ...] = ()
    choose_n: ChooseN = "mean"
    references: bool = False
    C: tuple[float, ...] = (1.0,)

    @property
    def every_iteration(self) -> bool:
        """Whether each iteration is scored; ``linear_svm`` is too slow for it and scores the last one only."""
        return self.classifier != "linear_svm"

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the scores: ``n10``, ``n20``, ..., or the tasks for ``native``; empty if there is one score."""
        return self.tasks if self.classifier == "native" else tuple(f"n{n}" for n in self.n_features)

    def scorer(
        self,
        X_train: Samples,
        y_train: LabelArray,
        X_test: Samples,
        y_test: LabelArray,
        random_state: int,
        constant: BoolArray | None = None,
        C: float | Sequence[float] = 1.0,
    ) -> Callable[[Estimator], FloatArray]:
        """Return a function that scores a fitted selector on the given samples.

        `X_train` is (n_train, d), `y_train` (n_train,) or (n_train, n_labels), `X_test` (n_test, d),
        `y_test` (n_test,) or (n_test, n_labels), `constant` (d,).
        """
        metric = _Metric.of(self.metric)
        if self.classifier == "native":
            return lambda selector: self.finite(self._of_model(metric, selector, X_test, y_test), y_test)
        if isinstance(X_train, TaskBlocks) or isinstance(X_test, TaskBlocks):
            raise ConfigError(
                f"classifier={self.classifier!r} needs samples of one feature space, and these belong to several "
                "tasks; use classifier='native'."
            )
        classes = np.unique(y_train) if y_train.ndim == 1 else None
        last: list[tuple[IntArray, FloatArray]] = []

        def outputs(order: IntArray, cases: Sequence[tuple[int, float]]) -> Iterator[tuple[LabelArray, FloatArray]]:
            """Yield predictions and scores for each number of features and C; what the metric ignores is empty."""
            sizes = [size for size, _ in cases]
            n_classes = y_train.shape[1] if classes is None else len(classes)
            if not len(order):
                majority = DummyClassifier(strategy="most_frequent").fit(X_train, y_train)
                yield majority.predict(X_test), np.zeros((len(X_test), n_classes))
            elif self.classifier == "knn":
                arguments = (X_train, y_train, X_test, order, sizes)
                predicted = [_NOTHING] * len(sizes) if metric.of_scores else knn_path(*arguments, self.n_neighbors)
                scores = knn_scores(*arguments) if metric.of_scores else [_NOTHING] * len(sizes)
                yield from zip(predicted, scores, strict=True)
            else:
                # In the order of the data, as a selector gives the features to the classifier of the final pipeline.
                for n, own_C in cases:
                    best = np.sort(order[:n])
                    svm = self.make_classifier(y_train, random_state, own_C).fit(X_train[:, best], y_train)
                    yield (
                        _NOTHING if metric.of_scores else svm.predict(X_test[:, best]),
                        class_scores(svm, X_test[:, best], n_classes) if metric.of_scores else _NOTHING,
                    )

        def score(selector: Estimator) -> FloatArray:
            values = selector.scores_ if constant is None else usable_scores(selector.scores_, constant)
            order = descending_order(values)[: min(self.n_features[-1], int((values > 0).sum()))]
            if not last or not np.array_equal(order, last[0][0]):
                used = np.minimum(self.n_features, len(order)).tolist()
                cases = list(zip(used, np.broadcast_to(C if len(order) else 0.0, len(used)).tolist(), strict=True))
                distinct = sorted(set(cases))
                results = [metric(y_test, p, _Scores(s, classes)) for p, s in outputs(order, distinct)]
                by_case = dict(zip(distinct, results, strict=True))
                last[:] = [(order, np.array([by_case[case] for case in cases]))]
            return self.finite(last[0][1], y_test)

        return score

    def make_classifier(self, y: LabelArray, random_state: int, C: float = 1.0) -> Any:
        """Return the unfitted classifier that is trained on the best features.

        `y` is (n_samples,) or (n_samples, n_labels).
        """
        if self.classifier == "knn":
            return NearestNeighborsClassifier(self.n_neighbors)
        svm = LinearSVC(C=C, random_state=random_state, max_iter=10_000)
        return svm if y.ndim == 1 else OneVsRestClassifier(svm)

    def outcome(self, model: Any, X: Samples, y: LabelArray) -> Outcome:
        """Predict samples by a fitted classifier, and compute the metric and those of ``report``.

        `X` is (n_samples, n_selected), `y` (n_samples,) or (n_samples, n_labels).
        """
        predicted: LabelArray = model.predict(X)
        values = self._of_model(_Metric.of(self.metric), model, X, y, predicted)
        report = {name: self._of_model(_Metric.of(name), model, X, y, predicted) for name in self.report}
        return Outcome(predicted, values, report)

    def _of_model(
        self, metric: _Metric, model: Any, X: Samples, y: LabelArray, predicted: LabelArray | None = None
    ) -> FloatArray:
        """Compute a metric of a fitted classifier for each task; its predictions may be known."""
        scores = _Scores.of(model, X, y) if metric.of_scores else _NO_SCORES
        if predicted is None:
            predicted = y if metric.of_scores else model.predict(X)
        if self.classifier != "native":
            return np.array([metric(y, predicted, scores)])
        owners = X.tasks if isinstance(X, TaskBlocks) else np.zeros(len(y), dtype=np.int64)
        labelled = model.labelled(y)
        parts = [(owners == task) & labelled for task in range(len(self.tasks) or 1)]
        return np.array([metric(y, predicted, scores, part) for part in parts])

    def finite(self, values: FloatArray, y: LabelArray) -> FloatArray:
        """Check that values of the metric are finite. `y` is (n_samples,) or (n_samples, n_labels)."""
        for value in values:
            if not math.isfinite(value):
                raise FloatingPointError(f"the metric {self.metric} gave {value} for {len(y)} samples")
        return values


@dataclass(frozen=True)
class Outcome:
    """Predictions of some samples and their metrics."""

    #: Predicted labels; shape (n_samples,) or (n_samples, n_labels).
    predicted: LabelArray
    #: Value of the metric; shape (1,) or (n_tasks,).
    scores: FloatArray
    report: dict[str, FloatArray]


@dataclass(frozen=True)
class _Metric:
    """Metric of predictions, or of the scores of the classes."""

    function: Metric
    of_scores: bool

    @classmethod
    def of(cls, name: str) -> _Metric:
        """Return the metric of this name."""
        return cls(classification_metric(name), needs_scores(name))

    def __call__(
        self, y: LabelArray, predicted: LabelArray, scores: _Scores, part: BoolArray | slice = slice(None)
    ) -> float:
        true = y[part]
        if self.of_scores:
            return self.function(scores.indicator(true), scores.values[part])
        return self.function(true, predicted[part])


@dataclass(frozen=True)
class _Scores:
    """Scores of the classes, or of the labels where ``classes`` is None."""

    values: FloatArray
    classes: LabelArray | None

    @classmethod
    def of(cls, model: Any, X: Samples, y: LabelArray) -> _Scores:
        """Return the scores by a fitted model of its own; equal ones if it predicts the most frequent class."""
        if isinstance(model, DummyClassifier):
            n_classes = y.shape[1] if y.ndim == 2 else len(model.classes_)
            return cls(np.zeros((len(y), n_classes)), None if y.ndim == 2 else np.asarray(model.classes_))
        if y.ndim == 2:
            return cls(class_scores(model, X, y.shape[1]), None)
        classes: LabelArray = model.classes_
        return cls(class_scores(model, X, len(classes)), classes)

    def indicator(self, y: LabelArray) -> LabelArray:
        """Whether each sample has each class or label."""
        indicator: LabelArray = y if self.classes is None else y[:, None] == self.classes
        return indicator


_NOTHING: FloatArray = np.empty(0)
_NO_SCORES = _Scores(_NOTHING, None)
