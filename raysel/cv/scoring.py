"""Scoring a fitted selector on samples it has not seen."""

from __future__ import annotations

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
from raysel.metrics.classification import classification_metric
from raysel.metrics.ranks import descending_order


@dataclass(frozen=True)
class Evaluation:
    """How a fitted selector is scored.

    Parameters
    ----------
    classifier : {"native", "knn", "linear_svm"}
        ``native`` is the model's own ``predict``; the others see only the best features.
    n_features : tuple of int
        Numbers of best features, increasing; empty for ``native``. Features without a score are not among them:
        where fewer have one, all of those are used, and where none has, the most frequent class is predicted.
    n_neighbors : int, default=1
    metric : str, default="accuracy"
    tasks : tuple of str, default=()
        Where samples belong to several tasks: each is scored by itself.
    """

    classifier: str
    n_features: tuple[int, ...] = ()
    n_neighbors: int = 1
    metric: str = "accuracy"
    tasks: tuple[str, ...] = ()

    @property
    def every_iteration(self) -> bool:
        """Whether it is cheap enough to follow each iteration; a linear SVM is fitted at the last only."""
        return self.classifier != "linear_svm"

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each score: ``n10``, ``n20``, ...; one without a name for ``native``."""
        return self.tasks if self.classifier == "native" else tuple(f"n{n}" for n in self.n_features)

    def scorer(
        self, X_train: Samples, y_train: LabelArray, X_test: Samples, y_test: LabelArray, random_state: int
    ) -> Callable[[Estimator], FloatArray]:
        """A function that scores a fitted selector on these samples.

        Parameters
        ----------
        X_train : ndarray of shape (n_train, d), or TaskBlocks
        y_train : ndarray of shape (n_train,) or (n_train, n_labels)
        X_test : ndarray of shape (n_test, d), or TaskBlocks
        y_test : ndarray of shape (n_test,) or (n_test, n_labels)
        random_state : int

        Returns
        -------
        callable
            Takes the selector and gives an ndarray of shape (n_features,), or (1,) for ``native``.
            A ranking that has not changed where it matters is not scored again.
        """
        metric = classification_metric(self.metric)
        if self.classifier == "native":
            owners = X_test.tasks if isinstance(X_test, TaskBlocks) else np.zeros(len(y_test), dtype=np.int64)
            parts = [owners == task for task in range(len(self.tasks) or 1)]

            def by_part(selector: Estimator) -> FloatArray:
                predicted, labelled = selector.predict(X_test), selector.labelled(y_test)
                return np.array([metric(y_test[part & labelled], predicted[part & labelled]) for part in parts])

            return by_part
        if isinstance(X_train, TaskBlocks) or isinstance(X_test, TaskBlocks):
            raise ConfigError(f"classifier {self.classifier!r} needs one feature space; several tasks take 'native'.")
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
