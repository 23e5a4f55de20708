"""Splits of samples, stratified by their target, and splits of consecutive samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raysel.core.arrays import IntArray, LabelArray
from raysel.core.errors import DataError
from raysel.data.targets import Classes, find_target


def split(
    y: LabelArray, n_splits: int, *, groups: LabelArray | None, random_state: int, where: str
) -> list[tuple[IntArray, IntArray]]:
    """Split samples into folds, stratified by their target; a group stays in one fold.

    `y` is (n_samples,) or (n_samples, n_labels) or (n_samples, n_quantities), `groups`
    (n_samples,).
    """
    return find_target(y).folds(y, n_splits, groups=groups, random_state=random_state, where=where)


def draw_per_class(
    y: LabelArray, train_per_class: int, *, groups: LabelArray | None, random_state: int
) -> tuple[IntArray, IntArray]:
    """Draw a training set with as many samples of each class; the others are the test set.

    `y` and `groups` are (n_samples,).
    """
    target = find_target(y)
    if not isinstance(target, Classes):
        raise DataError(
            "cv.train_per_class draws samples of each class, and the label is"
            f" {target.one}; set cv.outer."
        )
    if groups is not None:
        raise DataError("cv.train_per_class cannot be used with groups; set cv.outer instead.")
    return target.draw_training_set(y, train_per_class, random_state)


@dataclass(frozen=True)
class Blocks:
    """Blocks of consecutive rows, and how folds are made of them: the section ``cv.blocks``."""

    size: int
    gap: int = 0
    forward: bool = False

    def numbers(self, n_samples: int) -> IntArray:
        """Return the number of each row's block; the last block may be shorter."""
        return np.arange(n_samples, dtype=np.int64) // self.size

    def split(
        self, rows: IntArray, y: LabelArray, n_splits: int, *, random_state: int, where: str
    ) -> list[tuple[IntArray, IntArray]]:
        """Split samples, given with their rows in the file, into training and held-out ones.

        Blocks are divided among the folds at random by their classes, or by the means of a
        quantity; with ``forward`` they are cut into n_splits + 1 spans, each but the first of which
        is held out once, from training on the rows before it. Training rows at most ``gap`` rows
        from a held-out one are left out.
        """
        target, numbers = find_target(y), rows // self.size
        present = np.unique(numbers)
        folds, trained = "folds", "the rows that it trains on"
        if self.forward:
            folds, trained = "forward folds", "the earlier rows that it trains on"
        if len(present) < n_splits + self.forward:
            raise DataError(
                f"there are {len(present)} blocks of {self.size} rows, too few for"
                f" {where}={n_splits} {folds}; set fewer folds, or a smaller cv.blocks.size."
            )
        if self.forward:
            spans = [
                np.flatnonzero(np.isin(numbers, part))
                for part in np.array_split(present, n_splits + 1)
            ]
            pairs = [(np.concatenate(spans[:i]), spans[i]) for i in range(1, n_splits + 1)]
        else:
            pairs = split(y, n_splits, groups=numbers, random_state=random_state, where=where)
        pairs = [(self._apart(rows, train, test), test) for train, test in pairs]
        for index, (train, _) in enumerate(pairs):
            if not len(train):
                raise DataError(
                    f"{where}, fold {index}: no rows are left to train on; set a smaller"
                    " cv.blocks.gap."
                )
            if fault := target.untrainable(y, train, trained):
                mend = "set fewer folds"
                if self.gap:
                    mend += ", a smaller cv.blocks.gap"
                raise DataError(f"{where}, fold {index}: {fault}; {mend}.")
        return pairs

    def _apart(self, rows: IntArray, train: IntArray, test: IntArray) -> IntArray:
        """Training samples more than ``gap`` rows from each held-out one."""
        if not self.gap:
            return train
        held_out = np.concatenate(
            [[np.iinfo(np.int64).min // 2], rows[test], [np.iinfo(np.int64).max // 2]]
        )
        place = np.searchsorted(held_out, rows[train])
        nearest = np.minimum(rows[train] - held_out[place - 1], held_out[place] - rows[train])
        return train[nearest > self.gap]
