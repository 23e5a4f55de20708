"""Groups of features that are tested as one, and the results of their tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

from raysel.core.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class FeatureGrouping:
    """Groups of features that are tested as one."""

    #: Number of each feature's group, from 0; shape (n_features,).
    group: IntArray
    #: Absolute correlation from which on features form a group; None: the groups are given.
    correlated: float | None

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.group.max()) + 1

    @property
    def name(self) -> str:
        """Name of the folder of its tests."""
        if self.correlated is None:
            return "feature-groups"
        return f"correlated-{self.correlated:g}"

    @property
    def settings(self) -> dict[str, Any]:
        """What tests depend on."""
        return {
            "correlated": self.correlated,
            "hash of the groups": crc32(self.group.tobytes()),
        }

    def columns(self, number: int, origin: IntArray) -> IntArray:
        """Return the positions of a group's columns, by the feature that each comes from."""
        return np.flatnonzero(np.isin(origin, np.flatnonzero(self.group == number)))

    def numbers(self, features: IntArray) -> list[int]:
        """Return the numbers of the groups of some features; confounds are in none."""
        return np.unique(self.group[features[features < len(self.group)]]).tolist()


@dataclass(frozen=True, kw_only=True)
class GroupTests:
    """Tests of the groups of features that a method tests."""

    #: P value of each group, 1 of one that was not tested; shape (n_groups,).
    p_value: FloatArray
    #: Share that each group explains, NaN of one that was not tested; shape (n_groups,).
    share: FloatArray
    #: Number of independent samples, groups or blocks.
    n_units: int
    #: Errors of the groups whose test failed, by number.
    errors: Mapping[int, str] = field(default_factory=dict)
    mixed: tuple[str, ...] = ()
