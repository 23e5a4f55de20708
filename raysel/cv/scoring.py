"""Scores of a fitted selector on samples that were held out of its fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from raysel.arrays import FloatArray, IntArray, LabelArray
from raysel.base.estimator import Estimator
from raysel.cv.knn import knn_path
from raysel.data.task_blocks import Samples, TaskBlocks
from raysel.errors import ConfigError
from raysel.metrics.classification import Metric, classification_metric
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
    """

    classifier: str
    n_features: tuple[int, ...] = ()
    n_neighbors: int = 1
    metric: str = "accuracy"
    tasks: tuple[str, ...] = ()

    @property
    def every_iteration(self) -> bool:
        """Whether each iteration is scored; ``linear_svm`` is too slow for it and scores the last one only."""
        return self.classifier != "linear_svm"

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the scores: ``n10``, ``n20``, ..., or the tasks for ``native``; empty if there is one score."""
        return self.tasks if self.classifier == "native" else tuple(f"n{n}" for n in self.n_features)

    def _finite_metric(self) -> Metric:
        """The metric, with an error where it gives NaN or infinity: such a score ranks no configuration."""
        metric = classification_metric(self.metric)

        def checked(y_true: LabelArray, y_pred: LabelArray) -> float:
            value = metric(y_true, y_pred)
            if not math.isfinite(value):
                raise FloatingPointError(f"the metric {self.metric} gave {value} for {len(y_true)} samples")
            return value

        return checked

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
            are returned.

        Raises
        ------
        ConfigError
            If the samples belong to several tasks and the classifier is not ``native``.
        """
        metric = self._finite_metric()
        if self.classifier == "native":
            owners = X_test.tasks if isinstance(X_test, TaskBlocks) else np.zeros(len(y_test), dtype=np.int64)
            parts = [owners == task for task in range(len(self.tasks) or 1)]

            def by_part(selector: Estimator) -> FloatArray:
                predicted, labelled = selector.predict(X_test), selector.labelled(y_test)
                return np.array([metric(y_test[part & labelled], predicted[part & labelled]) for part in parts])

            return by_part
        if isinstance(X_train, TaskBlocks) or isinstance(X_test, TaskBlocks):
            raise ConfigError(
                f"classifier={self.classifier!r} needs samples of one feature space, and these belong to several "
                "tasks; use classifier='native'."
            )
        last: list[tuple[IntArray, FloatArray]] = []

        def predictions(order: IntArray, sizes: Sequence[int]) -> Iterable[LabelArray]:
            if not len(order):
                majority = DummyClassifier(strategy="most_frequent").fit(X_train, y_train)
                return [majority.predict(X_test)]
            if self.classifier == "knn":
                return knn_path(X_train, y_train, X_test, order, sizes, self.n_neighbors)
            one = LinearSVC(random_state=random_state, max_iter=10_000)
            svm = OneVsRestClassifier(one) if y_train.ndim == 2 else one
            chosen = [order[:n] for n in sizes]
            return [svm.fit(X_train[:, best], y_train).predict(X_test[:, best]) for best in chosen]

        def score(selector: Estimator) -> FloatArray:
            n_scored = int((selector.scores_ > 0).sum())
            order = descending_order(selector.scores_)[: min(self.n_features[-1], n_scored)]
            if not last or not np.array_equal(order, last[0][0]):
                used = np.minimum(self.n_features, len(order))
                sizes, positions = np.unique(used, return_inverse=True)
                found = np.array([metric(y_test, predicted) for predicted in predictions(order, sizes.tolist())])
                last[:] = [(order, found[positions])]
            return last[0][1]

        return score
