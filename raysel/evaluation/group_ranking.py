"""Ranking of groups of features, each by its best member."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.numerics.rankings import (
    Stability,
    consensus_places,
    nogueira_stability,
    selection_ranks,
)

if TYPE_CHECKING:
    import pandas as pd


def number_groups(
    groups: Mapping[str, Sequence[int]],
    feature_names: Sequence[str] | LabelArray,
    candidates: BoolArray,
) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of groups, and the number of each feature's group.

    `groups` has the positions of the members by name. A feature in none is a group of its own, or
    has -1 where it is no candidate.
    """
    numbers = np.full(len(candidates), -1, dtype=np.int64)
    for number, members in enumerate(groups.values()):
        numbers[list(members)] = number
    alone = np.flatnonzero((numbers < 0) & candidates)
    numbers[alone] = np.arange(len(groups), len(groups) + len(alone))
    return (*groups, *(str(feature_names[i]) for i in alone.tolist())), numbers


def fixed_groups(numbers: IntArray, fixed: BoolArray) -> BoolArray:
    """Return the mask of the groups that cannot be selected: none of whose members can.

    `numbers` has the group of each feature as of `number_groups`, `fixed` is the mask of the
    features that cannot be selected.
    """
    groups = np.arange(numbers.max(initial=-1) + 1)
    return ~np.isin(groups, numbers[~fixed])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GroupRanking:
    """Ranks of groups of features in the outer folds, each that of the group's best member.

    A sum of scores would grow with the number of members, and depend on how a method divides the
    weight of columns that tell the same. A fold selects a group if it selects one of its members,
    so that it does not matter which of them: by chance too, a group of many members is selected
    more often than one of few.

    Parameters
    ----------
    features : FeatureRanking
        Ranking of the single features.
    names : tuple of str
        Names of the groups; a feature in no group is one of its own, with its name.
    numbers : ndarray of int64, shape (d,)
        Position of each feature's group in ``names``; -1 for confounds, which cannot be selected.

    Examples
    --------
    >>> from raysel.evaluation.feature_ranking import FeatureRanking
    >>> features = FeatureRanking.from_folds(
    ...     [3.0, 2.0, 1.0],
    ...     [[3.0, 1.0, 2.0], [1.0, 3.0, 2.0]],
    ...     feature_names=["a", "b", "c"],
    ...     fold_names=["outer0", "outer1"],
    ...     n_selected=1,
    ... )
    >>> groups = GroupRanking.of(features, {"module": [0, 1]})
    >>> groups.labels, groups.selection_frequency
    (('a +1', 'c'), array([1., 0.]))
    """

    features: FeatureRanking
    names: tuple[str, ...]
    numbers: IntArray

    @classmethod
    def of(cls, features: FeatureRanking, groups: Mapping[str, Sequence[int]]) -> Self:
        """Rank the groups of a ranking's features.

        Parameters
        ----------
        features : FeatureRanking
            Ranking of the single features.
        groups : mapping of str to sequence of int
            Positions of the members of each group, by its name.

        Returns
        -------
        GroupRanking
            The ranking, with a group for each feature that is in none.
        """
        names, numbers = number_groups(groups, features.feature_names, features.candidates)
        return cls(features=features, names=names, numbers=numbers)

    def __repr__(self) -> str:
        return f"GroupRanking({self.n_groups} groups, stability {self.stability})"

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.names)

    @cached_property
    def fold_selected(self) -> BoolArray:
        """Mask of the groups of which each outer fold selects a member, (n_folds, n_groups)."""
        chosen = self.features.fold_selected & (self.numbers >= 0)
        return np.array(
            [np.bincount(self.numbers[row], minlength=self.n_groups) > 0 for row in chosen]
        )

    @property
    def selection_frequency(self) -> FloatArray:
        """Share of the outer folds that select a member of each group."""
        return self.fold_selected.mean(axis=0)

    @cached_property
    def stability(self) -> Stability:
        """Nogueira's stability of the groups that the outer folds select."""
        return nogueira_stability(self.fold_selected)

    @cached_property
    def consensus_place(self) -> FloatArray:
        """Place of each group by the median of its ranks over the outer folds, then by the mean.

        Places are counted from 1; equal groups share one.
        """
        ranks, limits = self.features.fold_ranks, self.features.fold_n_scored[:, None]
        values = np.where(ranks <= limits, 1.0 / ranks, 0.0)
        best = np.zeros((len(values), self.n_groups))
        known = np.flatnonzero(self.numbers >= 0)
        for row, own in zip(best, values, strict=True):
            np.maximum.at(row, self.numbers[known], own[known])
        fold_ranks = np.array([selection_ranks(row) for row in best])
        return consensus_places(fold_ranks, (best > 0).sum(axis=1)).astype(np.float64)

    @cached_property
    def order(self) -> IntArray:
        """Positions of the groups by place in the consensus; of equal ones the first is first."""
        return np.argsort(self.consensus_place, kind="stable").astype(np.int64)

    @cached_property
    def members(self) -> tuple[IntArray, ...]:
        """Positions of each group's features, best first by the order of the feature ranking."""
        order = self.features.recommended_order
        own = order[self.numbers[order] >= 0]
        by_group = own[np.argsort(self.numbers[own], kind="stable")]
        return tuple(np.split(by_group, np.cumsum(np.bincount(self.numbers[own]))[:-1]))

    @property
    def labels(self) -> tuple[str, ...]:
        """Best member of each group, and how many more there are: ``"TP53 +4"``."""
        labels = []
        for members in self.members:
            best, n_others = self.features.feature_names[members[0]], len(members) - 1
            labels.append(f"{best} +{n_others}" if n_others else best)
        return tuple(labels)

    def to_table(self) -> Any:
        """Return the ranking as a table with one row a member, in the `order` of the groups.

        Returns
        -------
        pyarrow.Table
            Columns ``group``, ``group_place``, ``group_selection_frequency``, and of the member
            ``feature``, ``index``, ``score``, ``rank``, ``selection_frequency`` and
            ``consensus_place``, as `FeatureRanking.to_table` has them.
        """
        ranked = [self.members[group] for group in self.order]
        groups = np.repeat(self.order, [len(members) for members in ranked])
        rows, features = np.concatenate(ranked), self.features
        columns = {
            "group": np.array(self.names)[groups],
            "group_place": self.consensus_place[groups],
            "group_selection_frequency": self.selection_frequency[groups],
            "feature": np.array(features.feature_names)[rows],
            "index": rows,
            "score": features.scores[rows],
            "rank": features.ranks[rows],
            "selection_frequency": features.selection_frequency[rows],
            "consensus_place": features.consensus_place[rows],
        }
        return pa.table({name: pa.array(values) for name, values in columns.items()})

    def to_frame(self) -> pd.DataFrame:
        """Return the ranking as a data frame with one row a member, in the `order` of the groups.

        Returns
        -------
        DataFrame
            The columns of `to_table`.
        """
        return self.to_table().to_pandas()
