"""Columns that are a quantity, tell it of some samples, or give it a few together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import chatterjeexi, rankdata

from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.study.inspection.label_columns import FEWEST, Kind, LabelColumn
from raysel.study.inspection.parts import Part

#: Share of the variance that a linear function of a quantity leaves, at most, when it is written
#: with few digits.
_ROUNDED = 1e-6
#: Fewest samples, and fewest that do not have a column's most frequent value: of fewer a column
#: tells it by chance.
_FEWEST_SAMPLES, _FEWEST_OTHERS = 40, 8
#: Samples that are looked at in all columns, and in the candidates.
_GLIMPSE, _MOST_SAMPLES = 256, 2000
#: Largest error, one minus Chatterjee's xi, of a column that nearly tells a quantity; 0.14 is that
#: of normal variables whose squared correlation is 0.98. The next column's error is as many times
#: as large, and larger by as much.
_NEARLY, _TIMES, _MORE = 0.15, 3.0, 0.1
#: Most columns that tell a quantity alone, and error in a glimpse of those that are looked at.
_MOST_COLUMNS, _CANDIDATE = 5, 0.4
#: Least share of the samples with one difference to a quantity, or one ratio; as many times that of
#: the next value.
_COPIED, _TIMES_NEXT = 0.1, 5
#: Share of the samples with one value of a quantity from which this may be equal by chance.
_COMMON = 0.02
#: Largest number of columns whose pairs are looked at; share of the variance that a pair may leave,
#: and of what any other pair or column leaves; share that is left by rounding only.
_MOST_OF_PAIRS, _LEFT, _OF_NEXT, _EXACT = 1000, 0.01, 0.1, 1e-9
#: Most columns of which a quantity is a sum, and smallest share of its deviation that one of these
#: gives.
_MOST_OF_SUM, _GIVES = 5, 1e-6


def quantity_columns(part: Part) -> dict[int, LabelColumn]:
    """Find the columns that are a quantity itself, in another unit or in the same order."""
    found: dict[int, LabelColumn] = {}
    quantities = part.target.columns(part.y)
    if len(part.y) < FEWEST:
        return {}
    for number, y in enumerate(quantities):
        label = number if len(quantities) > 1 else None
        n_values = len(np.unique(y))
        if n_values < FEWEST:  # so few values other columns may have too
            continue
        kinds: dict[Kind, BoolArray] = {
            "copy": part.scan(partial(_is_equal, y=y)),
            "linear": part.scan(partial(_is_linear, y=y)),
            "monotone": part.scan(partial(_is_in_order, y=y)),
        }
        for kind, mask in kinds.items():
            for column in np.flatnonzero(mask).tolist():
                found.setdefault(column, LabelColumn(kind, n_values, label=label, in_order=True))
    return found


def _is_equal(block: FloatArray, y: FloatArray) -> BoolArray:
    """Mask of the columns that are a quantity."""
    return np.asarray((block == y[:, None]).all(axis=0))


def _is_linear(block: FloatArray, y: FloatArray) -> BoolArray:
    """Mask of the columns that are a linear function of a quantity, up to rounding."""
    values, target = _centred(block), _centred(y)
    energies = (values**2).sum(axis=0) * (target**2).sum()
    linear: BoolArray = (energies > 0) & ((target @ values) ** 2 >= (1.0 - _ROUNDED) * energies)
    return linear


def _centred(values: FloatArray) -> FloatArray:
    """Values by their largest, so that no square overflows or vanishes, less their mean."""
    scaled = values / np.maximum(np.abs(values).max(axis=0), np.finfo(np.float64).tiny)
    return np.asarray(scaled - scaled.mean(axis=0))


def _is_in_order(block: FloatArray, y: FloatArray) -> BoolArray:
    """Mask of the columns that rise, or fall, exactly where a quantity rises."""
    order = np.argsort(y, kind="stable")
    rises, steps = (np.diff(y[order]) > 0)[:, None], np.diff(block[order], axis=0)
    in_order: BoolArray = ((steps > 0) == rises).all(axis=0) & ((steps == 0) == ~rises).all(axis=0)
    reverse: BoolArray = ((steps < 0) == rises).all(axis=0) & ((steps == 0) == ~rises).all(axis=0)
    return in_order | reverse


@dataclass(frozen=True)
class NearQuantity:
    """Columns that nearly tell a quantity, in words, and which of several quantities."""

    columns: tuple[int, ...]
    words: str
    label: int | None = None
    figures: str = ""


def near_quantities(part: Part, known: set[int]) -> list[NearQuantity]:
    """Find columns that are a quantity in some rows, nearly a function of it, or give it together.

    ``known`` columns are not named.
    """
    if len(part.X) < _FEWEST_SAMPLES:
        return []
    # In any order, since the ranks of ties follow it, and the file may be sorted.
    rows = np.random.default_rng(0).permutation(len(part.X))[:_MOST_SAMPLES]
    found = []
    quantities = part.target.columns(part.y)
    for number, y in enumerate(quantities):
        label = number if len(quantities) > 1 else None
        copied = _copied(part, rows, y, known)
        found += [NearQuantity((column,), words, label) for column, words in copied.items()]
        related = _functions(part, rows, y, known | copied.keys())
        words = "nearly tells {quantity} or is a function of it"
        found += [
            NearQuantity((column,), words, label, figures) for column, figures in related.items()
        ]
        if together := _together(part, rows, y, known | copied.keys() | related.keys()):
            found.append(NearQuantity(*together, label))
    return found


def _glimpse(rows: IntArray) -> IntArray:
    return rows[np.random.default_rng(1).permutation(len(rows))[:_GLIMPSE]]


def _copied(part: Part, rows: IntArray, y: FloatArray, known: Collection[int]) -> dict[int, str]:
    """Columns with one difference to a quantity, or one ratio, in many rows, and words on these.

    Rows with a value of the quantity that many have do not count.
    """
    values, of_value, counts = np.unique(y[rows], return_inverse=True, return_counts=True)
    common = np.isin(np.arange(len(values)), np.flatnonzero(counts > 1 + _COMMON * len(rows)))
    apart = rows[~common[of_value] & (y[rows] != 0)]
    if len(apart) < _FEWEST_SAMPLES:
        return {}
    some = _glimpse(apart)
    found: dict[int, str] = {}
    for compare in (_difference, _ratio):
        repeats = part.scan(partial(_repeats, rows=some, y=y, compare=compare))
        for column in np.flatnonzero(repeats >= _COPIED / 2).tolist():
            value, share = _most_frequent(compare(part.X[apart, column], y[apart]))
            if share and not (compare is _ratio and value == 0):
                same = value == (0 if compare is _difference else 1)
                what = "equals {quantity}" if same else "is {quantity} in another unit"
                found.setdefault(column, f"{what} in {share:.0%} of the rows")
    return {column: words for column, words in found.items() if column not in known}


def _difference(values: FloatArray, y: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):  # near the end of the range
        return np.asarray(values - y)


def _ratio(values: FloatArray, y: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray(values / y)


def _repeats(
    block: FloatArray, rows: IntArray, y: FloatArray, compare: Callable[..., FloatArray]
) -> FloatArray:
    """Share of the rows with the same difference, or ratio, as another one, for each column."""
    values = np.sort(compare(block[rows], y[rows, None]), axis=0)
    return np.asarray(np.isclose(values[1:], values[:-1], rtol=1e-9, atol=0).mean(axis=0))


def _most_frequent(values: FloatArray) -> tuple[float, float]:
    """The most frequent value and its share, 0 if it is not far more frequent than any other."""
    ordered = np.sort(values)
    starts = np.flatnonzero(np.r_[True, ~np.isclose(ordered[1:], ordered[:-1], rtol=1e-9, atol=0)])
    sizes = np.diff(np.r_[starts, len(ordered)])
    first, following = (*np.sort(sizes)[::-1].tolist(), 1)[:2]
    value = float(ordered[starts[sizes.argmax()]])
    if first < max(_COPIED * len(values), _TIMES_NEXT * following, _FEWEST_OTHERS):
        return value, 0.0
    return value, first / len(values)


def _functions(part: Part, rows: IntArray, y: FloatArray, known: Collection[int]) -> dict[int, str]:
    """Few columns that are nearly a function of a quantity, or it of them, with their figures."""
    rough = part.scan(partial(_roughness, rows=_glimpse(rows), y=y))
    rough[list(known)] = np.inf
    candidates = np.argsort(rough, kind="stable")[: _MOST_COLUMNS + 1]
    if rough[candidates[0]] > _CANDIDATE:
        return {}
    errors = _errors(part.X[:, candidates], rows, y)
    order = np.argsort(errors, kind="stable")
    for n_told in range(min(_MOST_COLUMNS, len(order)), 0, -1):
        last, following = [*errors[order].tolist(), np.inf][n_told - 1 : n_told + 1]
        if last <= _NEARLY and following >= max(_TIMES * last, last + _MORE):
            told = "Its dependence, by Chatterjee's xi, is"
            beside = "" if np.isinf(following) else f", that of the next {1 - following:.2f}"
            return {
                int(candidates[i]): f"{told} {1 - errors[i]:.2f}{beside}." for i in order[:n_told]
            }
    return {}


def _roughness(block: FloatArray, rows: IntArray, y: FloatArray) -> FloatArray:
    """Mean step of ranks in the order of the other variable by that in any, the smaller of two."""
    ranks, target = rankdata(block[rows], axis=0), rankdata(y[rows])[:, None]
    along = np.diff(ranks[np.argsort(y[rows], kind="stable")], axis=0)
    of_target = np.diff(target[np.argsort(ranks, axis=0, kind="stable"), 0], axis=0)
    steps = [
        np.abs(ordered).mean(axis=0) / np.maximum(_mean_step(of), np.finfo(np.float64).tiny)
        for ordered, of in ((along, ranks), (of_target, target))
    ]
    return np.asarray(np.where(_varies(block[rows]), np.minimum(*steps), np.inf))


def _mean_step(ranks: FloatArray) -> FloatArray:
    """Mean difference of any two ranks of each column."""
    n = len(ranks)
    return np.asarray(2 * (2 * np.arange(n) - n + 1) @ np.sort(ranks, axis=0) / (n * (n - 1)))


def _errors(X: FloatArray, rows: IntArray, y: FloatArray) -> FloatArray:
    """One minus Chatterjee's xi, the larger of two; infinite for columns of nearly one value."""
    errors = np.full(X.shape[1], np.inf)
    for column in np.flatnonzero(_varies(X[rows])):
        values = X[rows, column]
        xi = (chatterjeexi(values, y[rows]), chatterjeexi(y[rows], values))
        errors[column] = 1 - max(float(one.statistic) for one in xi)
    return errors


def _varies(X: FloatArray) -> BoolArray:
    """Mask of the columns with several samples that do not have the most frequent value."""
    # The most frequent value, if half of the samples have it.
    middle = np.sort(X, axis=0)[len(X) // 2]
    return np.asarray((middle != X).sum(axis=0) >= _FEWEST_OTHERS)


def _together(
    part: Part, rows: IntArray, y: FloatArray, known: Collection[int]
) -> tuple[tuple[int, ...], str] | None:
    """Columns that give a quantity as a sum or difference, a product or ratio, and in words how."""
    kept = np.setdiff1d(np.arange(part.X.shape[1]), list(known))
    if part.image or not 2 < len(kept) <= _MOST_OF_PAIRS:
        return None
    X, target = part.X[rows][:, kept], y[rows]
    for what, columns, values, wanted in _scales(X, target):
        if len(columns) > 1 and (pair := _pair(values, wanted)):
            first, second = kept[columns[list(pair)]].tolist()
            return (first, second), f"together give {{quantity}}, as a {what}"
    if several := _summands(X, target):
        return tuple(kept[several].tolist()), "together give {quantity}, as a sum"
    return None


def _scales(X: FloatArray, y: FloatArray) -> Iterator[tuple[str, IntArray, FloatArray, FloatArray]]:
    """Columns and quantity as they are, and the logarithms of those that are positive."""
    yield "sum or difference", np.arange(X.shape[1]), X, y
    positive = np.flatnonzero((X > 0).all(axis=0))
    if (y > 0).all() and len(positive):
        yield "product or ratio", positive, np.log(X[:, positive]), np.log(y)


def _pair(X: FloatArray, y: FloatArray) -> tuple[int, int] | None:
    """Find the pair of columns that, combined, leave far less of a quantity than any other."""
    Z, target = _centred(X), _centred(y)
    lengths = np.linalg.norm(Z, axis=0)
    Z = Z / np.where(lengths > 1e-9 * np.sqrt(len(Z)), lengths, np.inf)
    with_y = Z.T @ (target / np.linalg.norm(target))
    between = Z.T @ Z
    room = np.maximum(1 - between**2, 1e-9)
    told = (
        with_y[:, None] ** 2 + with_y[None] ** 2 - 2 * between * np.outer(with_y, with_y)
    ) / room
    first, second = np.triu_indices(X.shape[1], 1)
    left = 1 - told[first, second]
    best, *others = np.argsort(left, kind="stable")[:2].tolist()
    following = min([float(left[i]) for i in others] + [1 - float((with_y**2).max())])
    if left[best] > _LEFT or (left[best] > _EXACT and left[best] > _OF_NEXT * following):
        return None
    if 1 - float((with_y**2).max()) <= _EXACT:  # one column tells it alone
        return None
    return int(first[best]), int(second[best])


def _summands(X: FloatArray, y: FloatArray) -> list[int]:
    """Few columns among others of which a quantity is a linear function, exactly; else none."""
    Z, target = _centred(X), _centred(y)
    if len(Z) < 2 * Z.shape[1] + _FEWEST_SAMPLES:
        return []
    spread = Z.std(axis=0)
    Z = Z / np.where(spread > 1e-9, spread, np.inf)
    coefficients = np.linalg.lstsq(Z, target, rcond=None)[0]
    if ((target - Z @ coefficients) ** 2).sum() > _EXACT * (target**2).sum():
        return []
    given = np.flatnonzero(np.abs(coefficients) > _GIVES * target.std())
    if len(given) > min(_MOST_OF_SUM, X.shape[1] - 1):
        return []
    return given.tolist()
