"""Classifiers that take the labels 0 to k - 1 only, as those of boosting libraries and of neural
networks do.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression


class StrictClassifier(LogisticRegression):
    """Logistic regression that refuses other labels than 0 to k - 1."""

    def fit(self, X, y, sample_weight=None):
        found = np.unique(y)
        if not np.array_equal(found, np.arange(len(found))):
            raise ValueError(f"expected the labels {np.arange(len(found))}, got {found}")
        return super().fit(X, y, sample_weight)


class UntaggedStrict(BaseEstimator):
    """Nearest mean of classes that does not say what it is, and predicts the number of the
    class.
    """

    def __init__(self, power=2):
        self.power = power

    def fit(self, X, y):
        if y.dtype.kind not in "iu":
            raise TypeError("labels must be integers")
        self.means_ = np.array([X[y == code].mean(axis=0) for code in range(y.max() + 1)])
        if np.isnan(self.means_).any():
            raise ValueError("a class has no sample")
        return self

    def predict(self, X):
        away = (np.abs(X[:, None] - self.means_) ** self.power).sum(axis=2)
        return away.argmin(axis=1).astype(float)
