"""Units that folds keep whole, and pairs of training and held-out samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from raysel.core.arrays import IntArray, LabelArray
from raysel.core.errors import DataError

#: Training and held-out samples of each fold.
Pairs: TypeAlias = list[tuple[IntArray, IntArray]]


@dataclass(frozen=True)
class Units:
    """What folds keep whole: groups of samples, or the samples themselves."""

    #: Number of the unit of each sample, from 0; shape (n_samples,).
    member: IntArray
    #: Number of units.
    n: int
    are_groups: bool

    @classmethod
    def find(cls, groups: LabelArray | None, n_samples: int) -> Units:
        """Find the units of samples; `groups` is (n_samples,)."""
        if groups is None:
            return cls(np.arange(n_samples), n_samples, are_groups=False)
        names, member = np.unique(groups, return_inverse=True)
        return cls(member, len(names), are_groups=True)

    @property
    def noun(self) -> str:
        """Word for a unit."""
        return "group" if self.are_groups else "sample"

    def check_number(self, n_splits: int, where: str) -> None:
        """Check that there are as many units as folds."""
        if self.n < n_splits:
            raise DataError(
                f"there are {self.n} {self.noun}s, too few for {where}={n_splits} folds; set at"
                f" most {self.n} folds."
            )

    def leave_one_out(self) -> Pairs:
        """Hold out the samples of each unit once."""
        return self.hold_out([unit] for unit in range(self.n))

    def hold_out(self, tests: Iterable[ArrayLike]) -> Pairs:
        """Return training and held-out samples for the units that each fold holds out."""
        held_out = [np.isin(self.member, units) for units in tests]
        return [(np.flatnonzero(~test), np.flatnonzero(test)) for test in held_out]


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
