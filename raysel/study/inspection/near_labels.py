"""Single columns, and pairs of columns, that nearly decide the label, far better than any other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from raysel.core.arrays import FloatArray, IntArray
from raysel.study.inspection.label_columns import FewValues
from raysel.study.inspection.parts import Part

#: Fewest samples, and fewest of a class: of fewer a column nearly decides the label by chance.
_FEWEST, _FEWEST_OF_CLASS = 40, 8
#: Samples that are looked at in all columns, and in the candidates.
_GLIMPSE, _MOST = 256, 2000
#: Share of the changes of class along a column, of those in a random order, below which it is a candidate.
_CHANGES = 0.5
#: Number of candidates, and fewest columns of which one can be far better than the others.
_CANDIDATES, _FEWEST_COLUMNS = 8, 5
#: Mean error of the classes, on held-out samples, below which the label is nearly decided.
_ERROR = 0.1
#: The next column's error is as many times as large, and larger by as much.
_TIMES, _MORE = 3.0, 0.1
#: A column of few values has at most as many for each class, and most others have more than so many.
_VALUES, _FEW = 5, 20
#: Largest number of columns whose pairs are looked at; ratio of the best pair's separation to the next one's.
_MOST_COLUMNS, _RATIO = 1000, 10.0
#: Share of the variance that is added to that within the classes, so that equal columns do not separate by rounding.
_RIDGE = 1e-10


@dataclass(frozen=True)
class NearLabel:
    """Columns that decide the label alone, or two together, but for a mean error of the classes on held-out samples."""

    columns: tuple[int, ...]
    error: float
    next_error: float | None = None


def near_labels(part: Part, known: set[int]) -> list[NearLabel]:
    """Find columns, and pairs, that nearly decide the classes; of several labels a sample none are looked for.

    A column is one if its held-out error is at most 0.1 and that of the next one three times as large and larger by
    0.1; or if it has few values, unlike most others, whatever the others tell. ``known`` columns are not named.
    """
    counts = np.bincount(part.codes)
    if part.y.ndim == 2 or len(part.X) < _FEWEST or counts.min() < _FEWEST_OF_CLASS:
        return []
    rows = _drawn(len(part.X), _MOST)
    codes = part.codes[rows]
    if np.bincount(codes, minlength=len(counts)).min() < _FEWEST_OF_CLASS:
        rows, codes = np.arange(len(part.X)), part.codes
    columns = [near for near in _columns(part, rows, codes) if not known.intersection(near.columns)]
    pair = _pair(part, rows, codes, known | {column for near in columns for column in near.columns})
    return [*columns, *([pair] if pair else [])]


def _drawn(n_samples: int, most: int) -> IntArray:
    return np.random.default_rng(0).permutation(n_samples)[:most]


def _columns(part: Part, rows: IntArray, codes: IntArray) -> list[NearLabel]:
    glimpse = _drawn(len(part.X), _GLIMPSE)
    seen = part.codes[glimpse]
    changes = np.concatenate(
        [
            np.count_nonzero(np.diff(seen[np.argsort(block[glimpse], axis=0, kind="stable")], axis=0), axis=0)
            for _, block in part.columns()
        ]
    ).astype(float)
    shares = np.bincount(seen) / len(seen)
    if changes.min() > _CHANGES * len(seen) * (1 - (shares**2).sum()):
        return []
    candidates = np.argsort(changes, kind="stable")[:_CANDIDATES]
    errors = {int(c): _error(part.X[rows, c], codes) for c in candidates}
    order = sorted(errors, key=lambda c: errors[c])
    near = [c for c in order if errors[c] <= _ERROR]
    coarse = [c for c in near if len(np.unique(part.X[:, c])) <= _VALUES * len(np.unique(codes))]
    deciding = set()
    if coarse:
        others = FewValues.of(part, coarse).n_values
        if np.mean(others[others > 0] > _FEW) > 0.5:
            deciding = set(coarse)
    if near and len(changes) >= _FEWEST_COLUMNS:
        best, following = (errors[c] for c in order[:2])
        if following >= max(_TIMES * best, best + _MORE):
            deciding.add(order[0])
    next_error = min((errors[c] for c in order if c not in deciding), default=None)
    return [NearLabel((c,), errors[c], next_error) for c in deciding]


def _error(values: FloatArray, codes: IntArray) -> float:
    """Mean error of the classes on held-out samples, told by one column."""
    tree = DecisionTreeClassifier(min_samples_leaf=2, class_weight="balanced", random_state=0)
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    return 1.0 - float(balanced_accuracy_score(codes, cross_val_predict(tree, values[:, None], codes, cv=folds)))


def _pair(part: Part, rows: IntArray, codes: IntArray, known: set[int]) -> NearLabel | None:
    """Find the pair whose linear combination separates the classes ten times as well as any other pair's."""
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
    error = _error(Z[:, two] @ directions[:, ratios.real.argmax()].real, codes)
    return NearLabel((int(kept[two[0]]), int(kept[two[1]])), error) if error <= _ERROR else None
