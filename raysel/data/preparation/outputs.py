"""Columns that a preparation makes of features, and features' scores from columns' scores."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.core.errors import ConfigError
from raysel.data.preparation.joining import ColumnJoiner
from raysel.data.targets import find_target
from raysel.data.task_blocks import Samples, iter_parts
from raysel.numerics.column_scores import OwnStatistics, joint_scores, own_statistics

_TOKEN = re.compile(r"<(\d+)>")


@dataclass(frozen=True, eq=False)
class Outputs:
    """Columns of prepared samples, and the features of the data that they come from.

    A feature has one column or several, or shares one column with the features that it is joined
    with. Joined features have the same score and rank one after the other.
    """

    #: Feature of each column, the first of joined ones; shape (n_columns,), in increasing order.
    origin: IntArray
    #: Number of features of the data.
    n_features: int
    #: How well each feature tells the labels by itself; None without labels.
    statistics: OwnStatistics | None = None
    #: First of the features that each feature is joined with, itself if it is alone; shape
    #: (n_features,). None: no features are joined.
    joined_to: IntArray | None = None

    @cached_property
    def is_identity(self) -> bool:
        """Whether each feature is one column."""
        return np.array_equal(self.origin, np.arange(self.n_features))

    @cached_property
    def _counts(self) -> IntArray:
        return np.bincount(self.origin, minlength=self.n_features)

    def joint_scores(self, scores: FloatArray, *, scale: str) -> FloatArray:
        """Score of each feature from those of its columns, which does not grow with their number.

        `scores` is (n_columns,); returns (n_features,), 0 of a feature without columns.
        """
        joint = joint_scores(
            scores, self.origin, self.n_features, statistics=self.statistics, scale=scale
        )
        if self.joined_to is None:
            return joint
        return joint[self.joined_to]

    def columns(self, features: IntArray) -> IntArray:
        """Columns of some features, in the order of the features; a shared one once."""
        if self.joined_to is not None:
            first = self.joined_to[features]
            features = first[_occurs_first(first)]
        starts = np.concatenate([[0], np.cumsum(self._counts)])
        return np.concatenate(
            [np.arange(starts[f], starts[f + 1]) for f in features.tolist()]
            or [np.empty(0, np.int64)]
        )

    def sizes(self, features: IntArray, n_features: Sequence[int]) -> list[int]:
        """Numbers of columns of the first of some features, for each number of features."""
        counts = self._counts[features]
        if self.joined_to is not None:
            first = self.joined_to[features]
            counts = self._counts[first] * _occurs_first(first)
        totals = np.concatenate([[0], np.cumsum(counts)])
        return [int(totals[n]) for n in n_features]


def _occurs_first(values: IntArray) -> BoolArray:
    """Return whether each value is equal to none before it."""
    is_first = np.zeros(len(values), dtype=bool)
    is_first[np.unique(values, return_index=True)[1]] = True
    return is_first


def select_columns(features: BoolArray, origin: IntArray, joined_to: IntArray | None) -> BoolArray:
    """Return the mask of the columns of the features in a mask, as `Outputs` has them."""
    if joined_to is not None:
        members = np.flatnonzero(features)
        features = np.zeros_like(features)
        features[joined_to[members]] = True
    return features[origin]


def sum_own_statistics(
    samples: Samples, y: LabelArray, origin: IntArray, n_features: int
) -> OwnStatistics:
    """Compute `own_statistics`, of several tasks by the samples of each feature's own task."""
    target = find_target(y)
    found = [
        own_statistics(block, target.contrasts(y[rows]), origin[columns], n_features)
        for rows, columns, block in iter_parts(samples)
    ]
    return OwnStatistics(*np.sum(found, axis=0))  # 0 of the features of other tasks


def sources(transformer: Any, n_in: int, n_out: int) -> IntArray:
    """Return the input column of each output of a fitted transformer, as its names tell.

    It is the first one of a step that joins columns. Refused are other transformers of which an
    output comes from several columns, or does not tell from which.
    """
    if isinstance(transformer, ColumnJoiner):
        return transformer.first_columns
    name = type(transformer).__name__
    try:
        names = transformer.get_feature_names_out(
            np.array([f"<{i}>" for i in range(n_in)], dtype=object)
        )
    except Exception as error:  # a class of another package may raise anything
        raise ConfigError(
            f"{name} does not tell which column each of its outputs comes from"
            f" ({type(error).__name__}: {error}); use a transformer whose"
            " get_feature_names_out(names) names each output after one column."
        ) from error
    found = [sorted(set(_TOKEN.findall(str(output)))) for output in names]
    if len(found) != n_out or any(len(columns) != 1 for columns in found):
        raise ConfigError(
            f"{name} mixes columns, or does not tell which one each output comes from, so that no"
            " feature would have a score. Use steps that make each output of"
            " one column, or let the solver mix them."
        )
    return np.array([int(columns[0]) for columns in found], dtype=np.int64)
