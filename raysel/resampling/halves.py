"""Complementary pairs of halves of the samples, stratified by class or label, with whole groups."""

from __future__ import annotations

import numpy as np

from raysel.arrays import IntArray, LabelArray
from raysel.cv.splitters import split
from raysel.errors import DataError

#: Largest number of divisions of the groups that are drawn for a pair with all classes in both halves.
_MOST_DRAWS = 1000


def check_halves(y: LabelArray, groups: LabelArray | None) -> None:
    """Check that every class can be in both halves."""
    members = np.arange(len(y)) if groups is None else groups
    columns = y.T if y.ndim == 2 else [y == name for name in np.unique(y)]
    for number, column in enumerate(columns):
        if len(np.unique(members[np.asarray(column, dtype=bool)])) < 2:
            what = f"label number {number}" if y.ndim == 2 else f"class {np.unique(y)[number]!s}"
            unit = "sample" if groups is None else "group"
            raise DataError(
                f"{what} is that of one {unit} only, so one half of the samples would lack it; run a study without it."
            )


def draw_halves(y: LabelArray, groups: LabelArray | None, random_state: int) -> tuple[IntArray, IntArray]:
    """Draw a complementary pair: two disjoint halves of the samples, or of the groups.

    Both have floor(m / 2) of the m samples, or groups, and as many of each class, up to one; the class of a group is
    the most frequent one of its samples. Without groups, samples of several labels are divided by the two folds of
    `raysel.cv.splitters.split`, which leave no sample out and whose sizes can differ by more.

    Groups are not divided by `split`: where their sizes differ, its folds hardly depend on the seed, so that all pairs
    would be the same.
    """
    generator = np.random.default_rng(random_state)
    if groups is None and y.ndim == 2:
        (_, first), (_, second) = split(y, 2, groups=None, random_state=random_state, where="pairs of halves")
        return first, second
    if groups is None:
        return _divided(y, generator)
    members = np.unique(groups, return_inverse=True)[1]
    classes = np.zeros(members.max() + 1, dtype=np.int64) if y.ndim == 2 else _main_classes(y, members)
    for _ in range(_MOST_DRAWS):  # a class of few groups, or a label, can be missing from a half
        halves = [np.flatnonzero(np.isin(members, half)).astype(np.int64) for half in _divided(classes, generator)]
        if all(_has_all(y[half], y) for half in halves):
            return halves[0], halves[1]
    raise DataError(
        f"{_MOST_DRAWS} random divisions of the {len(classes)} groups into halves all lack a class or label in one "
        "half; run a study without the rarest one, or with more groups."
    )


def _divided(classes: LabelArray, generator: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Two sorted random halves of units, with as many units of each class up to one."""
    sides: tuple[list[IntArray], list[IntArray]] = ([], [])
    odd: list[int] = []
    for name in np.unique(classes):
        members = generator.permutation(np.flatnonzero(classes == name))
        half = len(members) // 2
        sides[0].append(members[:half])
        sides[1].append(members[half : 2 * half])
        odd += members[2 * half :].tolist()
    rest = generator.permutation(odd)[: len(odd) // 2 * 2]
    first, second = (np.sort(np.concatenate([*own, rest[i::2]])).astype(np.int64) for i, own in enumerate(sides))
    return first, second


def _main_classes(y: LabelArray, members: IntArray) -> IntArray:
    """Most frequent class of each group, as a number."""
    names, codes = np.unique(y, return_inverse=True)
    counts = np.zeros((members.max() + 1, len(names)), dtype=np.int64)
    np.add.at(counts, (members, codes), 1)
    return counts.argmax(axis=1).astype(np.int64)


def _has_all(part: LabelArray, y: LabelArray) -> bool:
    """Return whether each class, or label, is in a part of the samples."""
    return bool(part.any(axis=0).all()) if y.ndim == 2 else len(np.unique(part)) == len(np.unique(y))
