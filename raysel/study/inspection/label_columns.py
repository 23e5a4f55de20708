"""Columns, and pairs, that tell the classes or nearly do, told from honest features like them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import gammaln
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.study.inspection.parts import Part

#: Number of values, or of samples a value, that a column of few values may have whatever the judged
#: one has.
_FEW, _PER_VALUE = 20, 3
#: Number and share of the columns that must have few values, so that one of few values is a feature
#: like them.
_FEWEST_ALIKE, _ALIKE = 5, 0.8
#: From this many classes on no feature of few values tells all apart.
_MANY_CLASSES = 5
#: Samples from which no feature has one value for each class, unless another one tells all but this
#: share of them.
_MANY_SAMPLES, _ERROR = 200, 0.1
#: Expected number of columns that determine the label by chance, above which none is remarkable.
BY_CHANCE = 1e-3
#: Smallest number of samples, beyond which a column that determines the label is no accident.
FEWEST = 21
#: Samples a value, at least, of a recoding.
_PER_VALUE_LABEL = 10
#: Values a class, at most, of a recoding: in the order of the classes, where a measurement has
#: more, and else.
_IN_ORDER, _MIXED = 3, 5
#: Fewest samples, and fewest of a class: of fewer a column nearly decides the label by chance.
_FEWEST_SAMPLES, _FEWEST_OF_CLASS = 40, 8
#: Samples that are looked at in all columns, and in the candidates.
_GLIMPSE, _MOST_SAMPLES = 256, 2000
#: Share of the changes of class along a column, of those in a random order, below which it is a
#: candidate.
_CHANGES = 0.5
#: Number of candidates, and fewest columns of which one can be far better than the others.
_CANDIDATES, _FEWEST_COLUMNS = 8, 5
#: Mean error of the classes, on held-out samples, below which the label is nearly decided.
_NEARLY = 0.1
#: The next column's error is as many times as large, and larger by as much.
_TIMES, _MORE = 3.0, 0.1
#: A column of few values has at most as many for each class, and most others have more than so
#: many.
_VALUES_A_CLASS, _MANY_VALUES = 5, 20
#: Largest number of columns whose pairs are looked at; ratio of the best pair's separation to the
#: next one's.
_MOST_COLUMNS, _RATIO = 1000, 10.0
#: Share of the variance that is added to that within the classes, so that equal columns do not
#: separate by rounding.
_RIDGE = 1e-10

#: - copy: the label itself, or one of several labels.
#: - recoding: each value occurs in one class only, and there are few values.
#: - determines: the same, but the column may be a feature like the others.
#: - one_hot: 1 for the samples of one class, as other columns are for all other classes (but one at
#:   most).
#: - separates: a threshold between each two classes, on a column with many values or on one like
#:   the others.
#: - owned: each value occurs in one class only; there are many values, in no order by class.
#: - constant_in_class: one value in each class, and fewer values than classes.
#: - linear, monotone: a quantity in another unit, or under another increasing or decreasing
#:   function.
Kind: TypeAlias = Literal[
    "copy",
    "recoding",
    "one_hot",
    "determines",
    "separates",
    "owned",
    "constant_in_class",
    "linear",
    "monotone",
]


def log_arrangements(sizes: IntArray) -> float:
    """Logarithm of the number of arrangements of samples into classes of these sizes."""
    return float(gammaln(sizes.sum() + 1) - gammaln(sizes + 1).sum())


def drawn_rows(n_samples: int) -> IntArray:
    """Draw rows, or take all of few, among which a column of at most n / 5 values repeats one."""
    n_drawn = 512 + 8 * math.isqrt(n_samples)
    if n_drawn >= n_samples:
        return np.arange(n_samples)
    return np.sort(np.random.default_rng(0).choice(n_samples, n_drawn, replace=False))


@dataclass(frozen=True, eq=False)
class FewValues:
    """Number of values of each column, and how well those of few values tell classes.

    A binarised pixel, an answer of a questionnaire, or a gene that is present or absent may tell
    two to four classes apart, and is no copy of the label: it is one of many columns of its kind. A
    column of few values in a table of measurements is not.
    """

    part: Part
    #: Number of values of each column; 0 for constant columns and for those that are judged; shape
    #: (n_features,).
    n_values: IntArray

    @classmethod
    def of(cls, part: Part, suspects: Collection[int]) -> FewValues:
        """Count the values of all columns of a part; 0 of suspects and of constant columns."""
        n_values = part.n_values(drawn_rows(len(part.X)))
        n_values[(n_values == 1) | np.isin(np.arange(len(n_values)), list(suspects))] = 0
        return cls(part, n_values)

    def is_by_chance(self, codes: IntArray, n_values: int) -> bool:
        """Tell whether one of so many columns of few values determines the classes by chance."""
        few, sizes = len(self._few(codes, n_values)), np.bincount(codes)
        by_chance = n_values * math.log(len(sizes)) - log_arrangements(sizes) + math.log(few + 1)
        return few > 0 and by_chance >= math.log(BY_CHANCE)

    def may_be_feature(self, codes: IntArray, n_values: int, *, separable: bool) -> bool:
        """Tell whether a column that determines classes may be a feature like the others."""
        n_classes, few = int(codes.max()) + 1, self._few(codes, n_values)
        alike = len(few) >= max(_FEWEST_ALIKE, _ALIKE * np.count_nonzero(self.n_values))
        if n_classes >= _MANY_CLASSES or not (alike or separable):
            return False
        if len(codes) < _MANY_SAMPLES or n_values > n_classes:
            return True
        return alike and any(self._error(column, codes) <= _ERROR for column in few.tolist())

    def _few(self, codes: IntArray, n_values: int) -> IntArray:
        """Other columns of few values: of twice as many, or of 20 and three samples each."""
        limit = max(2 * n_values, min(_FEW, len(codes) // _PER_VALUE))
        return np.flatnonzero((self.n_values > 0) & (self.n_values <= limit))

    def _error(self, column: int, codes: IntArray) -> float:
        """Share of the samples that are not of the most frequent class of their value."""
        inverse = np.unique(self.part.X[:, column], return_inverse=True)[1]
        counts = np.zeros((int(inverse.max()) + 1, int(codes.max()) + 1), dtype=np.int64)
        np.add.at(counts, (inverse, codes), 1)
        return 1 - float(counts.max(axis=1).sum()) / len(codes)


@dataclass(frozen=True)
class LabelColumn:
    """Relation of a column to the label."""

    kind: Kind
    n_values: int
    label: int | None = None
    owner: int | None = None
    in_order: bool = False


def label_columns(part: Part) -> dict[int, LabelColumn]:
    r"""Find the columns that determine the label, or that the label determines.

    A column of n distinct values determines every label, and so does a measurement that separates
    the classes by thresholds: such columns are no recoding. A recoding has at least 10 samples a
    value and at most 3 values a class, 5 if its values are not in the order of the classes, and is
    no feature like the others, see `FewValues`. What determines the label is remarkable if a column
    with as many values does so rarely by chance: of the
    :math:`n! / \prod n_c!` arrangements of labels with class sizes :math:`n_c`, at most :math:`c^k`
    give each of k values one of c classes.
    """
    n_samples, n_features = part.X.shape
    counts = np.bincount(part.codes)
    if n_samples < FEWEST or len(counts) > n_samples // 2:
        return {}
    by_class = np.argsort(part.codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    drawn = drawn_rows(n_samples)
    remarkable = math.log(BY_CHANCE) - math.log(n_features) + log_arrangements(counts)
    possible = part.scan(
        lambda block: _may_determine(block[drawn], part.codes[drawn], len(counts), remarkable)
    )
    possible |= part.scan(lambda block: _is_constant_in_class(block, by_class, starts))
    related = {
        c: _relation(part, c, math.log(n_features)) for c in np.flatnonzero(possible).tolist()
    }
    relations = {column: relation for column, relation in related.items() if relation is not None}
    if part.target.is_one_class:
        relations = _with_one_hot(relations, len(counts))
    suspects = {
        column
        for column, relation in relations.items()
        if relation.kind in ("copy", "recoding", "one_hot")
    }
    if not suspects:
        return relations
    few = FewValues.of(part, suspects)
    separable = any(
        r.kind == "separates" and r.n_values > _IN_ORDER * len(counts) for r in relations.values()
    )
    # The label is recoded once or twice; three or more such columns are features of classes that
    # are far apart.
    separable |= (
        sum(r.kind == "recoding" and r.n_values > len(counts) for r in relations.values()) > 2
    )
    judged = {
        c: _judged(r, part, few, separable) if c in suspects else r for c, r in relations.items()
    }
    return {column: relation for column, relation in judged.items() if relation is not None}


def _judged(
    relation: LabelColumn, part: Part, few: FewValues, separable: bool
) -> LabelColumn | None:
    """Return what a column is that looks like the label, if it may be a feature; None by chance."""
    codes = part.codes
    if relation.label is not None:
        codes = part.y[:, relation.label].astype(np.int64)
    if relation.owner is not None:
        codes = (codes == relation.owner).astype(np.int64)
    if few.is_by_chance(codes, relation.n_values):
        return None
    if not few.may_be_feature(codes, relation.n_values, separable=separable):
        return relation
    if relation.kind == "one_hot":
        return replace(relation, kind="constant_in_class")
    if relation.in_order:
        return replace(relation, kind="separates")
    return replace(relation, kind="determines")


def _may_determine(
    block: FloatArray, codes: IntArray, n_classes: int, remarkable: float
) -> BoolArray:
    """Mask of the columns each of whose values has one class, if they are few or in runs.

    Few are those of which the logarithm of the number of ways to give each a class is below
    ``remarkable``.
    """
    order = np.argsort(block, axis=0)
    values, classes = np.take_along_axis(block, order, axis=0), codes[order]
    same, change = values[1:] == values[:-1], classes[1:] != classes[:-1]
    pure, n_values = ~(same & change).any(axis=0), 1 + (~same).sum(axis=0)
    possible: BoolArray = pure & (
        (n_values * math.log(n_classes) < remarkable) | (change.sum(axis=0) < n_classes)
    )
    return possible


def _is_constant_in_class(block: FloatArray, by_class: IntArray, starts: IntArray) -> BoolArray:
    """Mask of the columns with one value in each class, but not in all."""
    ordered = block[by_class]
    low, high = (
        np.minimum.reduceat(ordered, starts, axis=0),
        np.maximum.reduceat(ordered, starts, axis=0),
    )
    constant: BoolArray = (low == high).all(axis=0) & (low.min(axis=0) < high.max(axis=0))
    return constant


def _relation(part: Part, column: int, log_columns: float) -> LabelColumn | None:
    """Relation of one column to the label; None if there is none beyond chance."""
    codes, values = part.codes, part.X[:, column]
    order = np.argsort(values)
    ordered, classes = values[order], codes[order]
    is_new, is_other = ordered[1:] != ordered[:-1], classes[1:] != classes[:-1]
    numbers = np.concatenate([[0], np.cumsum(is_new)])  # of the values in ascending order
    n_values, n_classes = int(numbers[-1]) + 1, int(codes.max()) + 1
    if not part.target.is_one_class and n_values == 2:
        larger = (values == ordered[-1])[:, None]
        equal = (part.y == larger).all(axis=0) | (part.y != larger).all(axis=0)
        if equal.any():
            return LabelColumn("copy", 2, label=int(equal.argmax()))
    limit = math.log(BY_CHANCE) - log_columns
    is_pure = not (is_other & ~is_new).any()
    if is_pure and n_values == n_classes:
        same = np.array_equal(part.y, values)
        return LabelColumn("copy" if same else "recoding", n_values, in_order=True)
    if is_pure:
        n_runs = 1 + int(np.count_nonzero(is_other))
        kind = _classify_determining(part, n_values, n_runs, limit)
        if kind is None:
            return None
        return LabelColumn(kind, n_values, in_order=n_runs == n_classes)
    is_constant = n_values <= n_classes == len(np.unique(numbers * n_classes + classes))
    by_chance = n_classes * math.log(n_values) - log_arrangements(np.bincount(numbers))
    if is_constant and by_chance < limit:
        return LabelColumn("constant_in_class", n_values, owner=_owner(numbers, classes))
    return None


def _classify_determining(part: Part, n_values: int, n_runs: int, limit: float) -> Kind | None:
    """Tell recodings from measurements among columns each of whose values has one class."""
    sizes = np.bincount(part.codes)
    n_classes, arrangements = len(sizes), log_arrangements(sizes)
    remarkable = n_values * math.log(n_classes) - arrangements < limit
    most_a_class = _IN_ORDER if n_runs == n_classes else _MIXED
    coded = n_runs > 2 * n_classes or n_values <= most_a_class * n_classes
    # Repeated samples repeat the values of every column.
    if remarkable and coded and n_values * _PER_VALUE_LABEL <= len(np.unique(part.row_ids)):
        return "recoding"
    if n_runs != n_classes:
        return "owned" if remarkable else None
    return "separates" if gammaln(n_classes + 1) - arrangements < limit else None


def _owner(inverse: IntArray, codes: IntArray) -> int | None:
    """The class that alone has one of two values; None if there is none."""
    classes = [np.unique(codes[inverse == value]) for value in range(int(inverse.max()) + 1)]
    alone = [int(of_value[0]) for of_value in classes if len(of_value) == 1]
    if len(classes) != 2 or not alone:
        return None
    return alone[0]


def _with_one_hot(relations: Mapping[int, LabelColumn], n_classes: int) -> dict[int, LabelColumn]:
    """Mark the indicators of single classes as the label if they tell all classes apart."""
    owners = {
        column: relation for column, relation in relations.items() if relation.owner is not None
    }
    if len({relation.owner for relation in owners.values()}) < n_classes - 1:
        return dict(relations)
    one_hot = {
        c: LabelColumn("one_hot", relation.n_values, owner=relation.owner)
        for c, relation in owners.items()
    }
    return {**relations, **one_hot}


@dataclass(frozen=True)
class NearLabel:
    """Columns that decide the label alone, or two together, but for an error.

    It is the mean error of the classes on held-out samples.
    """

    columns: tuple[int, ...]
    error: float
    next_error: float | None = None


def near_labels(part: Part, known: set[int]) -> list[NearLabel]:
    """Find columns, and pairs, that nearly decide the classes.

    A column is one if its held-out error is at most 0.1 and that of the next one three times as
    large and larger by 0.1; or if it has few values, unlike most others, whatever the others tell.
    ``known`` columns are not named.
    """
    counts = np.bincount(part.codes)
    if len(part.X) < _FEWEST_SAMPLES:
        return []
    if counts.min() < _FEWEST_OF_CLASS:
        return []
    rows = _drawn(len(part.X), _MOST_SAMPLES)
    codes = part.codes[rows]
    if np.bincount(codes, minlength=len(counts)).min() < _FEWEST_OF_CLASS:
        rows, codes = np.arange(len(part.X)), part.codes
    columns = [near for near in _columns(part, rows, codes) if not known.intersection(near.columns)]
    for near in columns:
        known = known.union(near.columns)
    if pair := _pair(part, rows, codes, known):
        columns.append(pair)
    return columns


def _drawn(n_samples: int, most: int) -> IntArray:
    return np.random.default_rng(0).permutation(n_samples)[:most]


def _columns(part: Part, rows: IntArray, codes: IntArray) -> list[NearLabel]:
    glimpse = _drawn(len(part.X), _GLIMPSE)
    seen = part.codes[glimpse]
    changes = part.scan(
        lambda block: np.count_nonzero(
            np.diff(seen[np.argsort(block[glimpse], axis=0, kind="stable")], axis=0), axis=0
        )
    ).astype(float)
    shares = np.bincount(seen) / len(seen)
    if changes.min() > _CHANGES * len(seen) * (1 - (shares**2).sum()):
        return []
    candidates = np.argsort(changes, kind="stable")[:_CANDIDATES]
    errors = {int(c): _held_out_error(part.X[rows, c], codes) for c in candidates}
    order = sorted(errors, key=lambda c: errors[c])
    near = [c for c in order if errors[c] <= _NEARLY]
    coarse = [
        c for c in near if len(np.unique(part.X[:, c])) <= _VALUES_A_CLASS * len(np.unique(codes))
    ]
    deciding = set()
    if coarse:
        others = FewValues.of(part, coarse).n_values
        if np.mean(others[others > 0] > _MANY_VALUES) > 0.5:
            deciding = set(coarse)
    if near and len(changes) >= _FEWEST_COLUMNS:
        best, following = (errors[c] for c in order[:2])
        if following >= max(_TIMES * best, best + _MORE):
            deciding.add(order[0])
    next_error = min((errors[c] for c in order if c not in deciding), default=None)
    return [NearLabel((c,), errors[c], next_error) for c in deciding]


def _held_out_error(values: FloatArray, codes: IntArray) -> float:
    """Mean error of the classes on held-out samples, told by one column."""
    tree = DecisionTreeClassifier(min_samples_leaf=2, class_weight="balanced", random_state=0)
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    return 1.0 - float(
        balanced_accuracy_score(codes, cross_val_predict(tree, values[:, None], codes, cv=folds))
    )


def _pair(part: Part, rows: IntArray, codes: IntArray, known: set[int]) -> NearLabel | None:
    """Find the pair that separates the classes ten times as well as any other, by a combination."""
    kept = np.setdiff1d(np.arange(part.X.shape[1]), list(known))
    if part.image or not 2 < len(kept) <= _MOST_COLUMNS:
        return None
    Z = part.X[rows][:, kept]
    Z = Z / np.maximum(np.abs(Z).max(axis=0), np.finfo(np.float64).tiny)
    Z -= Z.mean(axis=0)
    spread = Z.std(axis=0)
    Z /= np.where(spread > 1e-9, spread, np.inf)
    means = np.stack([Z[codes == code].mean(axis=0) for code in range(codes.max() + 1)])
    between = (means.T * (np.bincount(codes) / len(codes))) @ means
    within = Z.T @ Z / len(Z) - between
    # The trace of inv(W) B of each pair, W and B being 2 x 2.
    w, b = np.diag(within) + _RIDGE, np.diag(between)
    determinant = np.maximum(np.outer(w, w) - within**2, _RIDGE**2)
    separation = (np.outer(b, w) + np.outer(w, b) - 2 * within * between) / determinant
    upper = np.triu_indices(len(kept), 1)
    values = separation[upper]
    best, following = np.argsort(values)[::-1][:2]
    if values[best] < _RATIO * max(values[following], (b / w).max()):
        return None
    two = [int(index[best]) for index in upper]
    ratios, directions = np.linalg.eig(
        np.linalg.solve(within[np.ix_(two, two)] + _RIDGE * np.eye(2), between[np.ix_(two, two)])
    )
    error = _held_out_error(Z[:, two] @ directions[:, ratios.real.argmax()].real, codes)
    if error > _NEARLY:
        return None
    return NearLabel((int(kept[two[0]]), int(kept[two[1]])), error)
