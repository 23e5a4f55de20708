"""Units that folds keep whole, and pairs of training and held-out samples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from raysel.core.arrays import IntArray, LabelArray
from raysel.core.errors import DataError

#: Training and held-out samples of each fold.
Pairs: TypeAlias = list[tuple[IntArray, IntArray]]


def number_units(groups: LabelArray | None, n_samples: int) -> IntArray:
    """Number the unit of each sample: its group, or the sample itself. Returns (n_samples,)."""
    units = np.arange(n_samples) if groups is None else groups
    return np.unique(units, return_inverse=True)[1]


def check_units(n_units: int, n_splits: int, unit: str, where: str) -> None:
    """Check that there are as many samples, or groups, as folds."""
    if n_units < n_splits:
        raise DataError(
            f"there are {n_units} {unit}s, too few for {where}={n_splits} folds; set at most"
            f" {n_units} folds."
        )


def leave_one_out(units: LabelArray) -> Pairs:
    """Hold out the samples of each unit once, in the order of the units."""
    return [
        (np.flatnonzero(units != unit), np.flatnonzero(units == unit)) for unit in np.unique(units)
    ]


def pairs_of_units(member: IntArray, tests: Iterable[IntArray]) -> Pairs:
    """Give the samples for held-out units; `member` is the unit of each sample."""
    everything = np.arange(len(member), dtype=np.int64)
    held_out = [np.flatnonzero(np.isin(member, units)) for units in tests]
    return [(np.setdiff1d(everything, test), test.astype(np.int64)) for test in held_out]


def draw_halves_of_units(
    strata: IntArray, generator: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw two sorted halves of units, with as many units of each stratum up to one."""
    sides: tuple[list[IntArray], list[IntArray]] = ([], [])
    odd: list[int] = []
    for name in np.unique(strata):
        members = generator.permutation(np.flatnonzero(strata == name))
        half = len(members) // 2
        sides[0].append(members[:half])
        sides[1].append(members[half : 2 * half])
        odd += members[2 * half :].tolist()
    rest = generator.permutation(odd)[: len(odd) // 2 * 2]
    first, second = (
        np.sort(np.concatenate([*side, rest[i::2]])).astype(np.int64)
        for i, side in enumerate(sides)
    )
    return first, second
