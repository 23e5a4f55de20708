"""Pipelines of one fitted method on one outer fold, for each number of features, and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.dummy import DummyClassifier
from sklearn.metrics import confusion_matrix, multilabel_confusion_matrix

from raysel.arrays import BoolArray, FloatArray, LabelArray
from raysel.cv.model.pipeline import FeaturePipeline
from raysel.cv.model.selector import RankedClassifier, RankedSelector
from raysel.cv.scoring import Evaluation, Outcome
from raysel.data.task_blocks import Samples, TaskBlocks
from raysel.errors import ConfigError


@dataclass
class FoldModels:
    """Models of a fitted method for each number of features, trained on an outer training set."""

    evaluation: Evaluation
    solver: Any
    #: Mask of the features that are constant in the unscaled training samples; shape (n_features,).
    constant: BoolArray
    #: Scaled training samples; shape (n_train, n_features).
    X: Samples
    #: Their labels; shape (n_train,) or (n_train, n_labels).
    y: LabelArray
    random_state: int
    n_shown: int
    C: Sequence[float] = ()
    _trained: dict[tuple[int, float], tuple[RankedSelector, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.evaluation.classifier != "native" and isinstance(self.X, TaskBlocks):
            raise ConfigError(
                f"classifier={self.evaluation.classifier!r} needs samples of one feature space, and these belong to "
                "several tasks; use classifier='native'."
            )

    def pipeline(self, n: int | None, scaler: TransformerMixin, feature_names: Sequence[str]) -> FeaturePipeline:
        """Return the model with a number of features."""
        steps: list[tuple[str, Any]] = [("scaler", scaler)]
        if n is not None:
            steps.append(("selector", RankedSelector.of(self.solver, self.constant, n)))
            steps.append(("classifier", self._at(n)[1]))
        elif hasattr(self.solver, "scores_"):
            steps.append(("classifier", RankedClassifier.of(self.solver, self.constant, self.n_shown)))
        else:
            steps.append(("classifier", self.solver))
        return FeaturePipeline.of(steps, feature_names)

    def outcomes(self, X: Samples, y: LabelArray) -> list[Outcome]:
        """Predict and score samples by the model with each number of features.

        `X` is (n_samples, n_features), `y` (n_samples,) or (n_samples, n_labels).
        """
        if self.evaluation.classifier == "native":
            return [self.evaluation.outcome(self.solver, X, y)]
        models = [self._at(n) for n in self.evaluation.n_features]
        distinct = {id(selector): (selector, classifier) for selector, classifier in models}
        found = {
            key: self.evaluation.outcome(classifier, selector.transform(X), y)
            for key, (selector, classifier) in distinct.items()
        }
        return [found[id(selector)] for selector, _ in models]

    def _at(self, n: int) -> tuple[RankedSelector, Any]:
        """Selector of the best n features and its trained classifier; the same for all n above the scored features."""
        n_scored = int(((self.solver.scores_ > 0) & ~self.constant).sum())
        C = self.C[self.evaluation.n_features.index(n)] if self.C else 1.0
        key = min(n, n_scored), C
        if key not in self._trained:
            selector = RankedSelector.of(self.solver, self.constant, n)
            X = selector.transform(self.X)
            classifier = (
                self.evaluation.make_classifier(self.y, self.random_state, C)
                if n_scored
                else DummyClassifier(strategy="most_frequent")
            )
            self._trained[key] = selector, classifier.fit(X, self.y)
        return self._trained[key]


def joined_scores(outcomes: Sequence[Outcome], name: str | None = None) -> FloatArray:
    """Join the values of a metric: one for each number of features, or each task. Returns (n_sizes,) or (n_tasks,)."""
    return np.concatenate([outcome.scores if name is None else outcome.report[name] for outcome in outcomes])


def confusion(y: LabelArray, predicted: LabelArray, classes: LabelArray) -> list[list[int]]:
    """Count samples by their true and their predicted class.

    `y` and `predicted` are (n_samples,) or (n_samples, n_labels), `classes` (n_classes,).
    """
    if y.ndim == 2:
        counts: list[list[int]] = multilabel_confusion_matrix(y, predicted).reshape(-1, 4).tolist()
        return counts
    if not len(y):
        return np.zeros((len(classes), len(classes)), dtype=int).tolist()
    matrix: list[list[int]] = confusion_matrix(y, predicted, labels=classes).tolist()
    return matrix
