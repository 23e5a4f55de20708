"""Transformers of the steps that join columns: cells to parcels, correlated columns to clusters."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.errors import ConfigError
from raysel.data.task_blocks import constant_features
from raysel.numerics.correlations import correlated_groups
from raysel.numerics.parcels import average_regions, form_regions, grid_neighbours


class ColumnJoiner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of transformers each output of which is the mean of one column or of several."""

    #: Output that each column is joined to, in the order of their first columns; -1 of a column
    #: that is left out. Shape (n_columns,).
    labels_: IntArray

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Find the columns to join in the training samples."""
        values: FloatArray = validate_data(self, X, dtype=np.float64)
        self.labels_ = self._join(values)
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return the mean of the columns of each output."""
        check_is_fitted(self)
        values: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        kept = self.labels_ >= 0
        if not kept.all():
            values = values[:, kept]
        return average_regions(self._aligned(values), self.labels_[kept])

    @property
    def first_columns(self) -> IntArray:
        """First column of each output; shape (n_outputs,)."""
        kept = np.flatnonzero(self.labels_ >= 0)
        return kept[np.unique(self.labels_[kept], return_index=True)[1]]

    @property
    def _n_features_out(self) -> int:
        return len(self.first_columns)

    @abstractmethod
    def _join(self, values: FloatArray) -> IntArray:
        """Return ``labels_`` of the training samples."""

    def _aligned(self, values: FloatArray) -> FloatArray:
        """Return the columns that have a label as they are averaged."""
        return values


class ParcelMeans(ColumnJoiner):
    """Means of parcels: connected cells that vary alike, by Ward's method of the training samples.

    ``n_parcels`` is None until a search chooses it. ``cells`` holds the column of each cell of an
    array, from 0, and -1 where there is none; None: the columns lie in a row. Constant cells are in
    no parcel. There are more than ``n_parcels`` where the other cells are in more pieces.
    """

    def __init__(self, n_parcels: int | None = 2, cells: IntArray | None = None) -> None:
        self.n_parcels = n_parcels
        self.cells = cells

    def check(self) -> int:
        """Return the number of parcels, which is at most that of the cells."""
        number = self.n_parcels
        n_cells = math.inf if self.cells is None else int(self.cells.max()) + 1
        is_whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
        if number is None or not is_whole or not 1 <= number <= n_cells:
            raise ConfigError(
                f"the number is {number!r}, and there are {n_cells} cells to join; give a whole"
                f" number from 1 to {n_cells}."
            )
        return int(number)

    def _join(self, values: FloatArray) -> IntArray:
        n_parcels, n_columns = self.check(), values.shape[1]
        cells = np.arange(n_columns) if self.cells is None else self.cells
        if cells.max() + 1 != n_columns:
            raise ValueError(
                f"it joins {cells.max() + 1} cells and gets {n_columns} columns. Put it before"
                " steps that add or leave out columns"
            )
        varying = np.flatnonzero(~constant_features(values))
        labels = np.full(n_columns, -1)
        if len(varying):
            neighbours = grid_neighbours(cells)[varying][:, varying]
            labels[varying] = _number(form_regions(values[:, varying], neighbours, n_parcels))
        return labels


class ClusterMeans(ColumnJoiner):
    """Means of clusters of columns that correlate in the training samples.

    Any two columns of a cluster have an absolute correlation of at least ``correlation``, by
    complete linkage. They are averaged with mean 0 and variance 1, and with the sign by which they
    correlate with the first one. A column that is in no cluster stays as it is.
    """

    offset_: FloatArray
    scale_: FloatArray

    def __init__(self, correlation: float = 0.7) -> None:
        self.correlation = correlation

    def _join(self, values: FloatArray) -> IntArray:
        labels = correlated_groups(values, self.correlation)
        first = np.unique(labels, return_index=True)[1][labels]
        joined = (np.bincount(labels) > 1)[labels]
        mean = values.mean(axis=0)
        centred = values - mean
        agrees = (centred * centred[:, first]).sum(axis=0) >= 0
        deviation = values.std(axis=0)
        self.offset_ = np.where(joined, mean, 0.0)
        self.scale_ = np.where(joined, np.where(agrees, deviation, -deviation), 1.0)
        return labels

    def _aligned(self, values: FloatArray) -> FloatArray:
        aligned: FloatArray = (values - self.offset_) / self.scale_
        return aligned


def _number(labels: IntArray) -> IntArray:
    """Number labels in the order of their first columns."""
    first = np.unique(labels, return_index=True)[1]
    place = np.empty_like(first)
    place[np.argsort(first)] = np.arange(len(first))
    numbers: IntArray = place[labels]
    return numbers
