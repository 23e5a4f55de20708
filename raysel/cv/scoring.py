"""Scores of a fitted selector on samples that were held out of its fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from raysel.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.base.estimator import Estimator
from raysel.cv.feature_count import ChooseN
from raysel.cv.knn import knn_path, knn_scores
from raysel.data.task_blocks import Samples, TaskBlocks
from raysel.errors import ConfigError
from raysel.metrics.class_scores import class_scores
from raysel.metrics.classification import classification_metric, needs_scores
from raysel.metrics.ranks import descending_order


@dataclass(frozen=True)
class Evaluation:
    """Settings by which fitted selectors are scored.

    Parameters
    ----------
    classifier : {"native", "knn", "linear_svm"}
        ``native`` uses the model's own ``predict``; the others are trained on the best features only.
    n_features : tuple of int, default=()
        Numbers of best features, increasing; empty for ``native``. If fewer features have a score, all of those are
        used; if none has, the most frequent class is predicted.
    n_neighbors : int, default=1
        Number of neighbours of ``knn``.
    metric : str, default="accuracy"
        Name of the metric.
    tasks : tuple of str, default=()
        Names of the tasks, which are scored separately; empty if the data are one task.
    report : tuple of str, default=()
        Names of further metrics, for `reporter`.
    choose_n : {"one_se", "best", "mean"}, default="mean"
        Rule that chooses the number of features by the inner scores; ``mean`` for ``native``, whose score is the mean
        over the tasks.
    references : bool, default=False
        Whether the refits score the references of `raysel.cv.references` too.
    """

    classifier: str
    n_features: tuple[int, ...] = ()
    n_neighbors: int = 1
    metric: str = "accuracy"
    tasks: tuple[str, ...] = ()
    report: tuple[str, ...] = ()
    choose_n: ChooseN = "mean"
    references: bool = False

    @property
    def every_iteration(self) -> bool:
        """Whether each iteration is scored; ``linear_svm`` is too slow for it and scores the last one only."""
        return self.classifier != "linear_svm"

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the scores: ``n10``, ``n20``, ..., or the tasks for ``native``; empty if there is one score."""
        return self.tasks if self.classifier == "native" else tuple(f"n{n}" for n in self.n_features)

    def scorer(
        self, X_train: Samples, y_train: LabelArray, X_test: Samples, y_test: LabelArray, random_state: int
    ) -> Callable[[Estimator], FloatArray]:
        """Return a function that scores a fitted selector on the given samples.

        Parameters
        ----------
        X_train : ndarray of shape (n_train, d), or TaskBlocks
            Samples that the classifier is trained on.
        y_train : ndarray of shape (n_train,) or (n_train, n_labels)
            Labels of the training samples.
        X_test : ndarray of shape (n_test, d), or TaskBlocks
            Samples that are scored.
        y_test : ndarray of shape (n_test,) or (n_test, n_labels)
            Labels of the samples that are scored.
        random_state : int
            Seed of ``linear_svm``.

        Returns
        -------
        callable
            Takes the fitted selector and returns its scores, an ndarray of shape (len(n_features),), or (n_tasks,)
            for ``native``. If the order of the best features has not changed since the last call, the last scores
            are returned. It raises FloatingPointError if the metric is NaN or infinite: such a score ranks no
            configuration.

        Raises
        ------
        ConfigError
            If the samples belong to several tasks and the classifier is not ``native``.
        """
        measure = self._measure((self.metric,), X_train, y_train, X_test, y_test, random_state)

        def score(selector: Estimator) -> FloatArray:
            (found,) = measure(selector)
            for value in found:
                if not math.isfinite(value):
                    raise FloatingPointError(f"the metric {self.metric} gave {value} for {len(y_test)} samples")
            return found

        return score

    def reporter(
        self, X_train: Samples, y_train: LabelArray, X_test: Samples, y_test: LabelArray, random_state: int
    ) -> Callable[[Estimator], dict[str, FloatArray]]:
        """Return a function that computes the metrics of ``report`` for a fitted selector on the given samples.

        Parameters
        ----------
        X_train : ndarray of shape (n_train, d), or TaskBlocks
            Samples that the classifier is trained on.
        y_train : ndarray of shape (n_train,) or (n_train, n_labels)
            Labels of the training samples.
        X_test : ndarray of shape (n_test, d), or TaskBlocks
            Samples that are scored.
        y_test : ndarray of shape (n_test,) or (n_test, n_labels)
            Labels of the samples that are scored.
        random_state : int
            Seed of ``linear_svm``, with which its classifiers are those of `scorer`.

        Returns
        -------
        callable
            Takes the fitted selector and returns the values of each metric by its name, in the shape of the scores;
            NaN where a metric is undefined.

        Raises
        ------
        ConfigError
            If the samples belong to several tasks and the classifier is not ``native``.
        """
        measure = self._measure(self.report, X_train, y_train, X_test, y_test, random_state)
        return lambda selector: dict(zip(self.report, measure(selector), strict=True))

    def _measure(
        self,
        metrics: Sequence[str],
        X_train: Samples,
        y_train: LabelArray,
        X_test: Samples,
        y_test: LabelArray,
        random_state: int,
    ) -> Callable[[Estimator], FloatArray]:
        """Return a function that gives the metrics of a selector, shape (n_metrics, len(n_features)) or (n_tasks,)."""
        functions = [(classification_metric(name), needs_scores(name)) for name in metrics]
        wanted = {of_scores for _, of_scores in functions}

        def values(predicted: LabelArray, scores: _Scores, part: BoolArray | slice = slice(None)) -> list[float]:
            """The metrics of the predictions, and those of the scores."""
            true = y_test[part]
            return [
                function(scores.indicator(true), scores.values[part]) if of_scores else function(true, predicted[part])
                for function, of_scores in functions
            ]

        if self.classifier == "native":
            owners = X_test.tasks if isinstance(X_test, TaskBlocks) else np.zeros(len(y_test), dtype=np.int64)
            parts = [owners == task for task in range(len(self.tasks) or 1)]

            def by_part(selector: Estimator) -> FloatArray:
                predicted = selector.predict(X_test) if False in wanted else y_test
                scores = _Scores.of(selector, X_test, y_test) if True in wanted else _NO_SCORES
                labelled = selector.labelled(y_test)
                return np.array([values(predicted, scores, part & labelled) for part in parts]).T

            return by_part
        if isinstance(X_train, TaskBlocks) or isinstance(X_test, TaskBlocks):
            raise ConfigError(
                f"classifier={self.classifier!r} needs samples of one feature space, and these belong to several "
                "tasks; use classifier='native'."
            )
        classes = np.unique(y_train) if y_train.ndim == 1 else None
        last: list[tuple[IntArray, FloatArray]] = []

        def outputs(order: IntArray, sizes: Sequence[int]) -> Iterator[tuple[LabelArray, FloatArray]]:
            """Yield predictions and scores for each number of features; what no metric needs is left empty."""
            n_classes = y_train.shape[1] if classes is None else len(classes)
            if not len(order):
                majority = DummyClassifier(strategy="most_frequent").fit(X_train, y_train)
                yield majority.predict(X_test), np.zeros((len(X_test), n_classes))
            elif self.classifier == "knn":
                arguments = (X_train, y_train, X_test, order, sizes)
                predicted = knn_path(*arguments, self.n_neighbors) if False in wanted else [_NOTHING] * len(sizes)
                scores = knn_scores(*arguments) if True in wanted else [_NOTHING] * len(sizes)
                yield from zip(predicted, scores, strict=True)
            else:
                for best in (order[:n] for n in sizes):
                    one = LinearSVC(random_state=random_state, max_iter=10_000)
                    svm = (OneVsRestClassifier(one) if classes is None else one).fit(X_train[:, best], y_train)
                    yield (
                        svm.predict(X_test[:, best]) if False in wanted else _NOTHING,
                        class_scores(svm, X_test[:, best], n_classes) if True in wanted else _NOTHING,
                    )

        def score(selector: Estimator) -> FloatArray:
            n_scored = int((selector.scores_ > 0).sum())
            order = descending_order(selector.scores_)[: min(self.n_features[-1], n_scored)]
            if not last or not np.array_equal(order, last[0][0]):
                used = np.minimum(self.n_features, len(order))
                sizes, positions = np.unique(used, return_inverse=True)
                found = [values(p, _Scores(s, classes)) for p, s in outputs(order, sizes.tolist())]
                last[:] = [(order, np.array(found).T[:, positions])]
            return last[0][1]

        return score


@dataclass(frozen=True)
class _Scores:
    """Scores of the classes, or of the labels where ``classes`` is None."""

    values: FloatArray
    classes: LabelArray | None

    @classmethod
    def of(cls, model: Estimator, X: Samples, y: LabelArray) -> _Scores:
        """Return the scores by a fitted model of its own."""
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
