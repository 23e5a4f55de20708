"""Estimators that score the best features, and fail with some of them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import NearestCentroid


class Picky(ClassifierMixin, BaseEstimator):
    """Nearest centroid that takes so many features and samples at most, whatever it raises of
    others.
    """

    def __init__(
        self, features: int = 1000, samples: int = 1000, error: type[BaseException] = ValueError
    ) -> None:
        self.features, self.samples, self.error = features, samples, error

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        if X.shape[1] > self.features or len(X) > self.samples:
            told = f"{X.shape[1]} of {object()} are too many\nfurther lines"
            raise self.error(28, told) if self.error is OSError else self.error(told)
        self.model_ = NearestCentroid().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: np.ndarray) -> Any:
        return self.model_.predict(X)


class OfMemory(Picky):
    """One whose failures are the machine's."""

    def __init__(self, features: int = 1000, samples: int = 1000) -> None:
        super().__init__(features, samples, MemoryError)


class OfDisk(Picky):
    """One that finds no space on the disk."""

    def __init__(self, features: int = 1000, samples: int = 1000) -> None:
        super().__init__(features, samples, OSError)


class Blind(Picky):
    """One that predicts nothing of many features."""

    def decision_function(self, X: np.ndarray) -> Any:
        values = self.model_.decision_function(X)
        return np.full_like(values, np.nan) if X.shape[1] > self.features else values

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        self.model_ = NearestCentroid().fit(X, y)
        self.classes_ = self.model_.classes_
        return self


class OfBoth(Picky):
    """One that fails with too many features of too many samples only."""

    def __init__(self, features: int = 1000, samples: int = 1000) -> None:
        super().__init__(features, samples)

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        if X.shape[1] <= self.features or len(X) <= self.samples:
            self.model_ = NearestCentroid().fit(X, y)
            self.classes_ = self.model_.classes_
            return self
        return super().fit(X, y)
