"""Columns of few values that determine the label, told from honest features of the same kind."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from raysel.arrays import IntArray
from raysel.inspection.parts import Part

#: Number of values, or of samples a value, that a column of few values may have whatever the judged one has.
_FEW, _PER_VALUE = 20, 3
#: Number and share of the columns that must have few values, so that one of few values is a feature like them.
_FEWEST_ALIKE, _ALIKE = 5, 0.8
#: From this many classes on no feature of few values tells all apart.
_MANY_CLASSES = 5
#: Samples from which no feature has one value for each class, unless another one tells all but this share of them.
_MANY_SAMPLES, _ERROR = 200, 0.1
#: Expected number of columns that determine the label by chance, above which none is remarkable.
BY_CHANCE = 1e-3


def log_arrangements(sizes: IntArray) -> float:
    """Logarithm of the number of arrangements of samples into classes of these sizes."""
    return float(gammaln(sizes.sum() + 1) - gammaln(sizes + 1).sum())


def drawn_rows(n_samples: int) -> IntArray:
    """Draw rows among which a column with at most n / 5 values repeats one, all rows of a small data set."""
    n_drawn = 512 + 8 * math.isqrt(n_samples)
    if n_drawn >= n_samples:
        return np.arange(n_samples)
    return np.sort(np.random.default_rng(0).choice(n_samples, n_drawn, replace=False))


@dataclass(frozen=True, eq=False)
class FewValues:
    """Number of values of each column, and how well those of few values tell classes.

    A binarised pixel, an answer of a questionnaire, or a gene that is present or absent may tell two to four classes
    apart, and is no copy of the label: it is one of many columns of its kind. A column of few values in a table of
    measurements is not.
    """

    part: Part
    #: Number of values of each column; 0 for constant columns and for those that are judged; shape (n_features,).
    n_values: IntArray

    @classmethod
    def of(cls, part: Part, suspects: Collection[int]) -> FewValues:
        """Count the values of all columns of a part; 0 for the suspects and for constant columns."""
        rows = drawn_rows(len(part.X))
        n_values = np.zeros(part.X.shape[1], dtype=np.int64)
        for start, block in part.columns():
            ordered = np.sort(block[rows], axis=0)
            n_values[start : start + block.shape[1]] = 1 + (ordered[1:] != ordered[:-1]).sum(axis=0)
        n_values[(n_values == 1) | np.isin(np.arange(len(n_values)), list(suspects))] = 0
        return cls(part, n_values)

    def is_by_chance(self, codes: IntArray, n_values: int) -> bool:
        """Tell whether so many columns have few values that one determines the classes by chance."""
        few, sizes = len(self._few(codes, n_values)), np.bincount(codes)
        by_chance = n_values * math.log(len(sizes)) - log_arrangements(sizes) + math.log(few + 1)
        return few > 0 and by_chance >= math.log(BY_CHANCE)

    def may_be_feature(self, codes: IntArray, n_values: int, *, separable: bool) -> bool:
        """Tell whether a column that determines classes may be a feature like the others."""
        n_classes, few = int(codes.max()) + 1, self._few(codes, n_values)
        alike = len(few) >= max(_FEWEST_ALIKE, _ALIKE * np.count_nonzero(self.n_values))
        if n_classes >= _MANY_CLASSES or not (alike or separable):
            return False
        if len(codes) < _MANY_SAMPLES or n_values > n_classes:
            return True
        return alike and any(self._error(column, codes) <= _ERROR for column in few.tolist())

    def _few(self, codes: IntArray, n_values: int) -> IntArray:
        """Other columns of few values: of twice as many, or of 20 and three samples each."""
        limit = max(2 * n_values, min(_FEW, len(codes) // _PER_VALUE))
        return np.flatnonzero((self.n_values > 0) & (self.n_values <= limit))

    def _error(self, column: int, codes: IntArray) -> float:
        """Share of the samples that are not of the most frequent class of their value."""
        inverse = np.unique(self.part.X[:, column], return_inverse=True)[1]
        counts = np.zeros((int(inverse.max()) + 1, int(codes.max()) + 1), dtype=np.int64)
        np.add.at(counts, (inverse, codes), 1)
        return 1 - float(counts.max(axis=1).sum()) / len(codes)
