"""Methods whose fits take a given time: one that sleeps, so that it needs no core, and one that
computes.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class SleepingFit(ClassifierMixin, BaseEstimator):
    """Method whose fit sleeps.

    Parameters
    ----------
    seconds : float, default=0.5
        Seconds of a fit.
    number : int, default=0
        Tells configurations apart.
    """

    def __init__(self, seconds: float = 0.5, number: int = 0) -> None:
        self.seconds, self.number = seconds, number

    def fit(self, X, y):
        """Sleep, then score the features by the spread of the class means."""
        self._spend()
        self.classes_ = np.unique(y)
        means = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        self.coef_ = means - means.mean(axis=0)
        self.n_features_in_ = X.shape[1]
        return self

    def _spend(self) -> None:
        time.sleep(self.seconds)

    def predict(self, X):
        """Predict the class whose mean is the most alike."""
        return self.classes_[np.argmax(X @ self.coef_.T, axis=1)]


class ComputingFit(SleepingFit):
    """Method whose fit computes for so many CPU seconds of its process."""

    def _spend(self) -> None:
        until = time.process_time() + self.seconds
        while time.process_time() < until:
            sum(range(1000))
