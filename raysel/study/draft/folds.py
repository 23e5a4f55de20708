"""Kind and size of a data set, by which a draft chooses its method, folds and configurations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum, StrEnum

import numpy as np

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError
from raysel.data.dataset import Dataset
from raysel.evaluation.plan import NestedPlan

#: Number of values of X times number of classes from which an effort is medium, large, and huge.
_STEPS = (500_000, 50_000_000, 400_000_000)


class Kind(StrEnum):
    """Kind of a data set that a study can be drafted for."""

    TABLE = "table"
    MATRIX = "matrices"
    TENSOR = "arrays of order 3 or more"
    MODALITIES = "modalities"
    LABELS = "several labels a sample"


def kind_of(dataset: Dataset) -> Kind:
    """Return the kind of a data set."""
    if dataset.is_multilabel:
        return Kind.LABELS
    return Kind(dataset.layout.noun)


class Effort(IntEnum):
    """Effort of a fit; the larger it is, the fewer fits a draft asks for."""

    SMALL = 0
    MEDIUM = 1
    LARGE = 2
    HUGE = 3


def effort_of(dataset: Dataset) -> Effort:
    """Return the effort of fits to a data set, from its size alone, so that a draft is the same on every machine."""
    size = dataset.n_samples * dataset.n_features * len(dataset.classes)
    return Effort(sum(size > step for step in _STEPS))


#: Fewest samples, or groups, of a class for two outer folds with two inner ones each: one to test, two to split.
FEWEST = 3
#: Fewest samples with and without a label.
_FEWEST_OF_LABEL = 5
#: Usual number of folds, and that of large data or many labels.
_USUAL, _FEW = 5, 3
#: Number of samples from which the inner folds are large enough if there are three.
_MANY_SAMPLES = 500


@dataclass(frozen=True)
class Folds:
    """Numbers of folds of a nested cross-validation."""

    outer: int
    inner: int
    why: str = ""


def fold_counts(y: LabelArray, groups: LabelArray | None = None, effort: Effort = Effort.SMALL) -> Folds:
    """Choose numbers of folds such that every class can be in each training set."""
    outer = _FEW if y.ndim == 2 or effort >= Effort.LARGE else _USUAL
    inner = _FEW if y.ndim == 2 or effort > Effort.SMALL or len(y) >= _MANY_SAMPLES else _USUAL
    if y.ndim == 2:
        return Folds(outer, inner)
    counts = class_counts(y, groups)
    smallest = min(counts, key=lambda name: counts[name])
    most = counts[smallest]
    what = "samples" if groups is None else "groups"
    why = f"class {smallest} has {most} {what}" if most < outer or most - -(-most // outer) < inner else ""
    outer = max(2, min(outer, most))
    return Folds(outer, max(2, min(inner, most - -(-most // outer))), why)


def class_counts(y: LabelArray, groups: LabelArray | None = None) -> dict[str | int, int]:
    """Count the samples of each class, or the groups that have it."""
    classes, code = np.unique(y, return_inverse=True)
    if groups is not None:
        member = np.unique(groups, return_inverse=True)[1]
        code = np.unique(np.stack([code, member], axis=1), axis=0)[:, 0]
    counts = np.bincount(code, minlength=len(classes))
    return dict(zip(classes.tolist(), counts.tolist(), strict=True))


def too_small_classes(y: LabelArray, groups: LabelArray | None = None) -> list[str | int]:
    """Return the classes with too few samples, or groups, for nested folds, unless fewer than two would be left."""
    counts = class_counts(y, groups)
    small = [name for name, count in counts.items() if count < FEWEST]
    return small if len(counts) - len(small) > 1 else []


def rare_labels(y: LabelArray, names: Collection[str]) -> list[str]:
    """Return the labels that too few samples have, or lack, for nested folds, unless fewer than two would be left."""
    present = y.sum(axis=0)
    fewest = np.minimum(present, len(y) - present)
    rare = [name for name, count in zip(names, fewest.tolist(), strict=True) if count < _FEWEST_OF_LABEL]
    return rare if y.shape[1] - len(rare) > 1 else []


def drawn_folds(dataset: Dataset, effort: Effort = Effort.SMALL) -> Folds:
    """Choose numbers of folds that can be drawn: fewer if groups leave a class out of a training set."""
    wanted = fold_counts(dataset.y, dataset.groups, effort)
    if dataset.groups is None:
        return wanted
    for outer in range(wanted.outer, 1, -1):
        for inner in range(wanted.inner, 1, -1):
            try:
                NestedPlan.make(dataset.y, outer=outer, inner=inner, repeats=1, groups=dataset.groups, seed=0)
            except DataError:
                continue
            why = wanted.why if (outer, inner) == (wanted.outer, wanted.inner) else "the groups allow no more"
            return Folds(outer, inner, why)
    return wanted
