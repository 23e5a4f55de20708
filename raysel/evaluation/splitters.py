"""Splits stratified by class, label or quantile that keep groups together, and splits of
consecutive samples.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass

import numpy as np
from iterstrat.ml_stratifiers import MultilabelStratifiedKFold
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from raysel.core.arrays import FloatArray, IntArray, LabelArray, is_quantity
from raysel.core.errors import DataError

#: Number of classes from which on most of them being rare means that they are no classes.
_MANY_CLASSES = 10
#: Largest number of classes that a message lists.
_MOST_NAMED = 20


def split(
    y: LabelArray, n_splits: int, *, groups: LabelArray | None, random_state: int, where: str
) -> list[tuple[IntArray, IntArray]]:
    """Split samples into folds, stratified by class, label or quantiles; the samples of a group
    stay in one fold.

    As many folds as samples, or groups, leave one out in each, where a class has fewer: they have
    no strata.

    An indicator is stratified iteratively (Sechidis et al., ECML PKDD 2011), with groups by the
    labels that occur in each group. A rare label can be missing from a fold: see
    `NestedPlan.lacking`. Quantities, which are floats, are stratified by `quantile_strata`.

    `y` is (n_samples,) or (n_samples, n_labels) or (n_samples, n_quantities), `groups`
    (n_samples,).
    """
    if is_quantity(y):
        return _quantile_folds(y, n_splits, groups=groups, random_state=random_state, where=where)
    if y.ndim == 2:
        return _multilabel_folds(y, n_splits, groups=groups, random_state=random_state, where=where)
    classes, counts = np.unique(y, return_counts=True)
    n_groups = len(y) if groups is None else len(np.unique(groups))
    if groups is not None and n_groups < n_splits:
        raise DataError(
            f"there are {n_groups} groups, too few for {where}={n_splits} folds; set at most"
            f" {n_groups} folds."
        )
    unit = "sample" if groups is None else "group"
    units = (
        counts
        if groups is None
        else np.array([len(np.unique(groups[y == label])) for label in classes])
    )
    if counts.min() < n_splits == n_groups and units.min() > 1:
        return _leave_one_out(groups if groups is not None else np.arange(len(y)))
    if counts.min() < n_splits or units.min() < 2:
        what = f"{where}={n_splits} folds"
        fewest = 2 if n_splits == n_groups else n_splits
        raise DataError(_too_rare(classes, units, fewest, what, unit))
    splitter = (
        StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
        if groups is None
        else StratifiedGroupKFold(n_splits, shuffle=True, random_state=random_state)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the check below raises an error instead
        folds = [
            (train.astype(np.int64), test.astype(np.int64))
            for train, test in splitter.split(y, y, groups)
        ]
    for index, (train, test) in enumerate(folds):
        missing = np.setdiff1d(classes, y[train])
        if len(missing) or not len(test):
            lack = (
                f"class {missing[0]!s} is missing from its training set"
                if len(missing)
                else "it is empty"
            )
            raise DataError(
                f"{where}, fold {index}: {lack}; set fewer folds, or use groups such that each"
                " class is in several."
            )
    return folds


def _leave_one_out(units: LabelArray) -> list[tuple[IntArray, IntArray]]:
    """Hold out the samples of each unit once, in the order of the units."""
    return [
        (np.flatnonzero(units != unit), np.flatnonzero(units == unit)) for unit in np.unique(units)
    ]


def _too_rare(classes: LabelArray, counts: IntArray, fewest: int, folds: str, unit: str) -> str:
    """Say which class has fewer samples, or groups, than the folds need, and what to do."""
    rarest = int(counts.argmin())
    least = int(counts[rarest])
    problem = f"class {classes[rarest]!s} has {_counted(least, unit)}, too few for {folds}"
    rare = classes[counts < fewest]
    if 2 * len(rare) > len(classes) and len(classes) > _MANY_CLASSES:
        return (
            f"{problem}, and so have {len(rare)} of the {len(classes)} classes: the labels look"
            " like names or measurements of single samples. Give the column or array of the"
            " classes as dataset.label."
        )
    remedies = [f"set at most {least} folds"] if least > 1 else []
    if len(classes) - len(rare) > 1:
        named = json.dumps([label.item() for label in rare[:_MOST_NAMED]], ensure_ascii=False)
        more = f" and {len(rare) - _MOST_NAMED} more" if len(rare) > _MOST_NAMED else ""
        remedies.append(f"leave out its samples by dataset.exclude_classes: {named}{more}")
    return f"{problem}; {', or '.join(remedies) or f'add {unit}s of this class'}."


def _counted(number: int, unit: str = "sample") -> str:
    """Return a number of samples or groups as text, e.g. ``"1 sample"``."""
    return f"{number} {unit}{'' if number == 1 else 's'}"


def _multilabel_folds(
    y: LabelArray, n_splits: int, *, groups: LabelArray | None, random_state: int, where: str
) -> list[tuple[IntArray, IntArray]]:
    names, member = np.unique(np.arange(len(y)) if groups is None else groups, return_inverse=True)
    if len(names) < n_splits:
        kind = "samples" if groups is None else "groups"
        raise DataError(
            f"there are {len(names)} {kind}, too few for {where}={n_splits} folds; set at most"
            f" {len(names)} folds."
        )
    occurs = np.zeros((len(names), y.shape[1]), dtype=np.int64)
    np.maximum.at(occurs, member, y)
    splitter = MultilabelStratifiedKFold(n_splits, shuffle=True, random_state=random_state)
    tests = [
        np.flatnonzero(np.isin(member, held_out)) for _, held_out in splitter.split(occurs, occurs)
    ]
    empty = [index for index, test in enumerate(tests) if not len(test)]
    if empty and n_splits == len(names):
        return _leave_one_out(member)
    if empty:
        raise DataError(f"{where}, fold {empty[0]}: it is empty; set fewer folds.")
    everything = np.arange(len(y), dtype=np.int64)
    return [(np.setdiff1d(everything, test), test.astype(np.int64)) for test in tests]


def quantile_strata(y: LabelArray, n_splits: int) -> IntArray:
    """Number the samples' strata: n_splits consecutive ones in the order of y each, the last up to
    twice as many.

    Of several quantities the order is that of the first principal component of their standardised
    values, whose sign is that of its largest coefficient.

    `y` is (n_samples,) or (n_samples, n_quantities).
    """
    if y.ndim == 2:
        spread = y.std(axis=0)
        values = (y - y.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        axis = np.linalg.svd(values, full_matrices=False)[2][0]
        y = values @ (axis * np.sign(axis[np.abs(axis).argmax()]))
    ranks = np.empty(len(y), dtype=np.int64)
    ranks[np.argsort(y, kind="stable")] = np.arange(len(y))
    return np.minimum(ranks // n_splits, max(1, len(y) // n_splits) - 1)


def unit_means(y: LabelArray, groups: LabelArray | None) -> tuple[IntArray, FloatArray]:
    """Number the samples' groups, each sample its own without, and average the quantities of each.

    Returns `member` (n_samples,), `means` (n_groups,) or (n_groups, n_quantities).
    """
    member = np.unique(np.arange(len(y)) if groups is None else groups, return_inverse=True)[1]
    sizes = np.bincount(member)
    means = np.stack(
        [np.bincount(member, weights=column) / sizes for column in y.reshape(len(y), -1).T], axis=1
    )
    return member, means if y.ndim == 2 else means[:, 0]


def _quantile_folds(
    y: LabelArray, n_splits: int, *, groups: LabelArray | None, random_state: int, where: str
) -> list[tuple[IntArray, IntArray]]:
    """Split samples with quantities; groups are stratified by the means of their samples."""
    member, means = unit_means(y, groups)
    kind = "samples" if groups is None else "groups"
    if len(means) < n_splits:
        raise DataError(
            f"there are {len(means)} {kind}, too few for {where}={n_splits} folds; set at most"
            f" {len(means)} folds."
        )
    columns = y.reshape(len(y), -1)
    strata = quantile_strata(means, n_splits)
    splitter = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
    tests = [
        np.flatnonzero(np.isin(member, held_out)) for _, held_out in splitter.split(strata, strata)
    ]
    everything = np.arange(len(y), dtype=np.int64)
    folds = [(np.setdiff1d(everything, test), test.astype(np.int64)) for test in tests]
    for index, (train, _) in enumerate(folds):
        if (np.ptp(columns[train], axis=0) == 0).any():
            raise DataError(
                f"{where}, fold {index}: a quantity has one value only in its training set; set"
                " fewer folds."
            )
    return folds


def draw_per_class(
    y: LabelArray, train_per_class: int, *, groups: LabelArray | None, random_state: int
) -> tuple[IntArray, IntArray]:
    """Draw a training set with a fixed number of samples of each class; the other samples are the
    test set.

    `y` and `groups` are (n_samples,).
    """
    if is_quantity(y):
        raise DataError(
            "cv.train_per_class draws samples of each class, and the label is a quantity; set"
            " cv.outer."
        )
    if groups is not None or y.ndim == 2:
        raise DataError(
            "cv.train_per_class cannot be used with groups or several labels per sample; set"
            " cv.outer instead."
        )
    classes, counts = np.unique(y, return_counts=True)
    if counts.min() <= train_per_class:
        rare = json.dumps(
            [label.item() for label in classes[counts <= 2]][:_MOST_NAMED], ensure_ascii=False
        )
        remedy = (
            f"set at most {counts.min() - 1}"
            if counts.min() > 2
            else f"set dataset.exclude_classes: {rare}"
        )
        raise DataError(
            f"class {classes[counts.argmin()]!s} has {_counted(int(counts.min()))}: with "
            f"cv.train_per_class={train_per_class} none would be left for the test set; {remedy}."
        )
    generator = np.random.default_rng(random_state)
    drawn = [generator.permutation(np.flatnonzero(y == c))[:train_per_class] for c in classes]
    train = np.sort(np.concatenate(drawn)).astype(np.int64)
    return train, np.setdiff1d(np.arange(len(y), dtype=np.int64), train)


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
        """Split samples, given with their rows in the file, into pairs of indices of training and
        held-out ones.

        Blocks are divided among the folds at random by their classes, or by the means of a
        quantity; with ``forward`` they are cut into n_splits + 1 spans, each but the first of which
        is held out once, from training on the rows before it. Training rows at most ``gap`` rows
        from a held-out one are left out.
        """
        numbers = rows // self.size
        present = np.unique(numbers)
        if len(present) < n_splits + self.forward:
            raise DataError(
                f"there are {len(present)} blocks of {self.size} rows, too few for"
                f" {where}={n_splits} {'forward ' if self.forward else ''}folds; set fewer folds,"
                " or a smaller cv.blocks.size."
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
            if not is_quantity(y) and y.ndim == 1 and len(missing := np.setdiff1d(y, y[train])):
                earlier = "earlier " if self.forward else ""
                raise DataError(
                    f"{where}, fold {index}: class {missing[0]!s} is missing from the {earlier}rows"
                    " that it trains on; set fewer folds"
                    + (", a smaller cv.blocks.gap." if self.gap else ".")
                )
            if is_quantity(y) and len(train) and (np.ptp(y[train], axis=0) == 0).any():
                raise DataError(
                    f"{where}, fold {index}: a quantity has one value only in the rows that it"
                    " trains on; set fewer folds."
                )
            if not len(train):
                raise DataError(
                    f"{where}, fold {index}: no rows are left to train on; set a smaller"
                    " cv.blocks.gap."
                )
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
