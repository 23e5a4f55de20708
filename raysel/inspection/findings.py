"""Findings of the inspection of a data set, which are kept while the data set exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from raysel.arrays import IntArray
from raysel.data.dataset import Dataset
from raysel.inspection.columns.label import LabelColumn, label_columns
from raysel.inspection.columns.nearly import NearLabel, near_labels
from raysel.inspection.columns.rows import Kind, row_columns
from raysel.inspection.duplicates import NearPairs, near_rows
from raysel.inspection.parts import Part, parts


@dataclass(frozen=True, eq=False)
class Findings:
    """Findings of the inspection of one part of a data set."""

    part: Part
    by_row: Mapping[int, Kind]
    by_label: Mapping[int, LabelColumn]

    @cached_property
    def n_values(self) -> IntArray:
        """Number of distinct values of each column: shape (n_features,)."""
        ordered = (np.sort(block, axis=0) for _, block in self.part.columns())
        counts: IntArray = 1 + np.concatenate([(block[1:] != block[:-1]).sum(axis=0) for block in ordered])
        return counts

    @cached_property
    def near_label(self) -> list[NearLabel]:
        """Further columns, and pairs of columns, that nearly decide the label."""
        return near_labels(self.part, {*self.by_row, *self.by_label})

    @cached_property
    def near(self) -> NearPairs | None:
        """Pairs of samples that are nearly equal; None if there are too few samples to tell."""
        return near_rows(self.part.X, self.part.row_ids, scale=not self.part.image)


_KNOWN: WeakKeyDictionary[Dataset, tuple[Findings, ...]] = WeakKeyDictionary()


def inspect(dataset: Dataset) -> tuple[Findings, ...]:
    """Inspect a data set, each task alone."""
    if dataset not in _KNOWN:
        _KNOWN[dataset] = tuple(Findings(part, row_columns(part), label_columns(part)) for part in parts(dataset))
    return _KNOWN[dataset]
