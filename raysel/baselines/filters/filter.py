"""Base class of filters, which only rank features, and the class codes that they share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raysel.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.base.one_shot import OneShotEstimator
from raysel.base.selector import Selector
from raysel.linalg.classes import distinct_classes


class Filter(OneShotEstimator, Selector):
    """Base class of methods that rank features in one step and predict nothing.

    A filter implements ``prepare`` and ``_rate``.
    """

    @abstractmethod
    def _rate(self, X: FloatArray, prepared: Any) -> tuple[FloatArray, float]:
        """Return the scores of shape (n_features,), not negative, and the objective."""
        # The scores of constant features are not used: they are set to 0.

    def _updates(self, X: FloatArray, y: LabelArray, prepared: Any) -> Iterator[float]:
        scores, objective = self._rate(X, prepared)
        self.scores_ = np.where(constant_columns(X), 0.0, scores)
        yield float(objective)


def constant_columns(X: NDArray[Any]) -> BoolArray:
    """Mask of the columns whose values are all equal. `X` is (n_samples, n_features); returns (n_features,)."""
    candidates = X[0] == X[-1]
    candidates[candidates] = (X[0, candidates] == X[:, candidates]).all(axis=0)
    return candidates


def class_codes(y: LabelArray) -> tuple[IntArray, IntArray]:
    """Number the classes in the order of their labels.

    `y` is (n_samples,); returns `codes` (n_samples,), `counts` (n_classes,).
    """
    _, codes = distinct_classes(y)
    return codes, np.bincount(codes)
