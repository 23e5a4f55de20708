"""Complementary pairs of halves of the samples, stratified by class or label, with whole groups."""

from __future__ import annotations

import numpy as np

from raysel.arrays import IntArray, LabelArray
from raysel.cv.splitters import split
from raysel.errors import DataError


def check_halves(y: LabelArray, groups: LabelArray | None) -> None:
    """Check that every class can be in both halves.

    Parameters
    ----------
    y : ndarray of shape (n_samples,) or (n_samples, n_labels)
        Class of each sample, or an indicator of its labels.
    groups : ndarray of shape (n_samples,) or None
        Group of each sample.

    Raises
    ------
    DataError
        If a class, or a label, is that of one sample or one group only.
    """
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
    """Draw a complementary pair: two disjoint halves of the samples.

    Without groups, both have floor(n / 2) samples and as many of each class, up to one. With groups, or several labels
    for each sample, they are the two folds of `raysel.cv.splitters.split`, whose sizes can differ by more, and no
    sample is left out.

    Parameters
    ----------
    y : ndarray of shape (n_samples,) or (n_samples, n_labels)
        Class of each sample, or an indicator of its labels.
    groups : ndarray of shape (n_samples,) or None
        Group of each sample; the samples of a group are in the same half.
    random_state : int
        Seed of the draw.

    Returns
    -------
    first, second : ndarray of int64
        Sorted indices into y.

    Raises
    ------
    DataError
        If a class is missing from a half.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0] * 5 + [1] * 5)
    >>> [np.bincount(y[half]).tolist() for half in draw_halves(y, None, random_state=0)]
    [[3, 2], [2, 3]]
    """
    if groups is not None or y.ndim == 2:
        (_, first), (_, second) = split(y, 2, groups=groups, random_state=random_state, where="pairs of halves")
        return first, second
    generator = np.random.default_rng(random_state)
    sides: tuple[list[IntArray], list[IntArray]] = ([], [])
    odd: list[int] = []
    for name in np.unique(y):
        members = generator.permutation(np.flatnonzero(y == name))
        half = len(members) // 2
        sides[0].append(members[:half])
        sides[1].append(members[half : 2 * half])
        odd += members[2 * half :].tolist()
    rest = generator.permutation(odd)[: len(odd) // 2 * 2]
    first, second = (np.sort(np.concatenate([*own, rest[i::2]])).astype(np.int64) for i, own in enumerate(sides))
    return first, second
