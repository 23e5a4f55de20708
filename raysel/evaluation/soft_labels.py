"""Labels and a model's predictions of them as columns of one scale, for a squared error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax

from raysel.core.arrays import FloatArray, LabelArray
from raysel.data.targets import Target, find_target
from raysel.numerics.classification import class_scores, decision, probabilities


@dataclass(frozen=True, eq=False)
class SoftLabels:
    """Columns of a model's predictions: shares of the classes or labels, or quantities.

    Classes and labels have the model's probabilities, else a logistic function of its decision
    values, else 1 where it predicts them; quantities are divided by their training samples'
    standard deviations.
    """

    #: Fitted model.
    model: Any
    target: Target
    #: Standard deviation of each quantity; None of classes and labels; shape (k,).
    scale: FloatArray | None

    @classmethod
    def of(cls, model: Any, y_train: LabelArray) -> Self:
        """Find the columns of a model that was fitted to some labels."""
        target, scale = find_target(y_train), None
        if not target.is_of_classes:
            deviations = target.contrasts(y_train).std(axis=0)
            scale = np.where(deviations > 0, deviations, 1.0)
        return cls(model, target, scale)

    def true(self, y: LabelArray) -> FloatArray:
        """Return the columns of true labels; shape (n, k)."""
        if self.scale is not None:
            return self.target.contrasts(y) / self.scale
        if self.target.is_one_class:
            return (np.asarray(y)[:, None] == self.model.classes_).astype(np.float64)
        return np.asarray(y, dtype=np.float64)

    def predict(self, X: Any) -> FloatArray:
        """Return the columns of the predictions of samples; shape (n, k)."""
        if self.scale is not None:
            return np.asarray(self.model.predict(X), np.float64).reshape(len(X), -1) / self.scale
        if hasattr(self.model, "predict_proba"):
            return probabilities(self.model, X)
        if not hasattr(self.model, "decision_function"):
            return self.true(self.model.predict(X))
        if not self.target.is_one_class:
            labels: FloatArray = expit(decision(self.model, X))
            return labels
        shares: FloatArray = softmax(class_scores(self.model, X, len(self.model.classes_)), axis=1)
        return shares
