"""Single columns that hold the label in other words, or that separate the classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import gammaln

from raysel.arrays import BoolArray, FloatArray, IntArray
from raysel.inspection.parts import Part

#: Smallest number of samples, beyond which a column that determines the label is no accident.
FEWEST = 21
#: Samples a value, at least, of a column with few values.
_PER_VALUE = 5
#: Values a class, at most, of a recoding whose values are in the order of the classes; a measurement has more.
_PER_CLASS = 5
#: Expected number of columns that determine the label by chance, above which none is remarkable.
_BY_CHANCE = 1e-3

#: - copy: the label itself, or one of several labels.
#: - recoding: each value occurs in one class only, and there are few values.
#: - one_hot: 1 for the samples of one class, as other columns are for all other classes (but one at most).
#: - separates: a threshold between each two classes, on a column with many values.
#: - owned: each value occurs in one class only; there are many values, in no order by class.
#: - constant_in_class: one value in each class, and fewer values than classes.
Kind: TypeAlias = Literal["copy", "recoding", "one_hot", "separates", "owned", "constant_in_class"]


@dataclass(frozen=True)
class LabelColumn:
    """Relation of a column to the label.

    Parameters
    ----------
    kind : {"copy", "recoding", "one_hot", "separates", "owned", "constant_in_class"}
        What the column is.
    n_values : int
        Number of its distinct values.
    label : int or None
        Position of the label that it copies, for an indicator; None otherwise.
    owner : int or None
        The class whose samples have a value that no other sample has, if all others share one value; else None.
    """

    kind: Kind
    n_values: int
    label: int | None = None
    owner: int | None = None


def label_columns(part: Part) -> dict[int, LabelColumn]:
    r"""Find the columns that determine the label, or that the label determines.

    A column of n distinct values determines every label, and so does a measurement that separates the classes by
    thresholds: such columns are no recoding. What determines the label is remarkable if a column with as many values
    does so rarely by chance: of the :math:`n! / \prod n_c!` arrangements of labels with class sizes :math:`n_c`, at
    most :math:`c^k` give each of k values one of c classes.

    Parameters
    ----------
    part : Part
        Samples of one task.

    Returns
    -------
    dict of int to LabelColumn
        Relation by the position of the column; empty for 20 samples or fewer.

    Examples
    --------
    >>> from raysel.data.dataset import Dataset
    >>> from raysel.data.layouts import Tensor
    >>> from raysel.inspection.parts import parts
    >>> y = np.arange(30) % 3
    >>> X = np.stack([np.random.default_rng(0).normal(size=30), 2.0 - y], axis=1)
    >>> label_columns(*parts(Dataset(X, y, Tensor((2,)))))
    {1: LabelColumn(kind='recoding', n_values=3, label=None, owner=None)}
    """
    n_samples, n_features = part.X.shape
    counts = np.bincount(part.codes)
    if n_samples < FEWEST or len(counts) > n_samples // 2:
        return {}
    by_class = np.argsort(part.codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    drawn = _drawn(n_samples)
    found = {}
    for start, block in part.columns():
        possible = _may_determine(block[drawn], part.codes[drawn], len(counts))
        possible |= _is_constant_in_class(block, by_class, starts)
        for column in (start + np.flatnonzero(possible)).tolist():
            relation = _relation(part, column, math.log(n_features))
            if relation is not None:
                found[column] = relation
    return _with_one_hot(found, len(counts)) if part.y.ndim == 1 else found


def _drawn(n_samples: int) -> IntArray:
    """Draw rows among which a column with at most n / 5 values repeats one, all rows of a small data set."""
    n_drawn = 512 + 8 * math.isqrt(n_samples)
    if n_drawn >= n_samples:
        return np.arange(n_samples)
    return np.sort(np.random.default_rng(0).choice(n_samples, n_drawn, replace=False))


def _may_determine(block: FloatArray, codes: IntArray, n_classes: int) -> BoolArray:
    """Mask of the columns of which every value has one class among these rows, and repeats or separates the classes."""
    order = np.argsort(block, axis=0)
    values, classes = np.take_along_axis(block, order, axis=0), codes[order]
    same, change = values[1:] == values[:-1], classes[1:] != classes[:-1]
    pure = ~(same & change).any(axis=0)
    possible: BoolArray = pure & (same.any(axis=0) | (change.sum(axis=0) < n_classes))
    return possible


def _is_constant_in_class(block: FloatArray, by_class: IntArray, starts: IntArray) -> BoolArray:
    """Mask of the columns with one value in each class, but not in all."""
    ordered = block[by_class]
    low, high = np.minimum.reduceat(ordered, starts, axis=0), np.maximum.reduceat(ordered, starts, axis=0)
    constant: BoolArray = (low == high).all(axis=0) & (low.min(axis=0) < high.max(axis=0))
    return constant


def _relation(part: Part, column: int, log_columns: float) -> LabelColumn | None:
    """Relation of one column to the label; None if there is none beyond chance."""
    codes, values = part.codes, part.X[:, column]
    distinct, inverse = np.unique(values, return_inverse=True)
    n_values, n_classes = len(distinct), int(codes.max()) + 1
    if part.y.ndim == 2 and n_values == 2:
        equal = (part.y == inverse[:, None]).all(axis=0) | (part.y != inverse[:, None]).all(axis=0)
        if equal.any():
            return LabelColumn("copy", 2, label=int(equal.argmax()))
    n_pairs = len(np.unique(inverse * n_classes + codes))
    limit = math.log(_BY_CHANCE) - log_columns
    if n_pairs == n_values == n_classes:
        same = part.y.dtype.kind == "i" and np.array_equal(part.y, values)
        return LabelColumn("copy" if same else "recoding", n_values)
    if n_pairs == n_values:
        kind = _of_determining(part, inverse, n_values, limit)
        return None if kind is None else LabelColumn(kind, n_values)
    if n_pairs == n_classes and n_classes * math.log(n_values) - _log_arrangements(np.bincount(inverse)) < limit:
        return LabelColumn("constant_in_class", n_values, owner=_owner(inverse, codes))
    return None


def _of_determining(part: Part, inverse: IntArray, n_values: int, limit: float) -> Kind | None:
    """Tell recodings from measurements among columns of which each value has one class; None for a column by chance."""
    sizes = np.bincount(part.codes)
    n_classes, arrangements = len(sizes), _log_arrangements(sizes)
    n_runs = 1 + int(np.count_nonzero(np.diff(part.codes[np.argsort(inverse)])))
    remarkable = n_values * math.log(n_classes) - arrangements < limit
    coded = n_runs > 2 * n_classes or n_values <= _PER_CLASS * n_classes
    # Repeated samples repeat the values of every column.
    if remarkable and coded and n_values * _PER_VALUE <= len(np.unique(part.row_ids)):
        return "recoding"
    if n_runs == n_classes:
        return "separates" if gammaln(n_classes + 1) - arrangements < limit else None
    return "owned" if remarkable else None


def _log_arrangements(sizes: IntArray) -> float:
    """Logarithm of the number of arrangements of samples into classes of these sizes."""
    return float(gammaln(sizes.sum() + 1) - gammaln(sizes + 1).sum())


def _owner(inverse: IntArray, codes: IntArray) -> int | None:
    """The class that alone has one of two values; None if there is none."""
    classes = [np.unique(codes[inverse == value]) for value in range(int(inverse.max()) + 1)]
    alone = [int(found[0]) for found in classes if len(found) == 1]
    return alone[0] if len(classes) == 2 and alone else None


def _with_one_hot(found: Mapping[int, LabelColumn], n_classes: int) -> dict[int, LabelColumn]:
    """Mark the indicators of single classes as the label if they tell all classes apart."""
    owners = {column: relation for column, relation in found.items() if relation.owner is not None}
    if len({relation.owner for relation in owners.values()}) < n_classes - 1:
        return dict(found)
    one_hot = {c: LabelColumn("one_hot", relation.n_values, owner=relation.owner) for c, relation in owners.items()}
    return {**found, **one_hot}
