"""Single columns that follow the order of the rows or number them: indices, identifiers, groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import gammaln

from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.data.formats.recognition import is_unnamed, names_identifier, names_origin
from raysel.study.inspection.label_columns import BY_CHANCE, FEWEST
from raysel.study.inspection.parts import Part

#: Smallest number of samples of which a column that counts them is no accident.
_FEWEST_COUNTED = 5
#: Smallest number of groups that are recognised without a name.
_FEWEST_GROUPS = 5
#: Smallest number of groups of a column that is called so.
_FEWEST_NAMED = 3
#: Smallest number of samples with a whole number each that are recognised as identifiers without a
#: name.
_FEWEST_NUMBERED = 100
#: Mean correlation with the order of the rows, within the classes, from which a column may follow
#: it, and surely does.
_FOLLOWS, _SURELY = 0.9, 0.98
#: Standard score of the number of runs of labels below which they are too few for chance, and their
#: share of those expected above which they are too many to matter.
_RUNS, _FEW_RUNS = -4.0, 0.7
#: Number of rows that tell most columns that cannot be meant.
_GLIMPSE = 64

#: - unnamed: a column without a name, as an index is written.
#: - index: counts the rows from 0 or 1, or did so in a file whose rows stood class by class.
#: - identifier: another whole number in each row, consecutive or called an id.
#: - in_file_order: rises or falls with the rows, also within the classes, whose labels stand in
#:   runs.
#: - group: a few rows a value, by name, or consecutive numbers of consecutive rows.
Kind: TypeAlias = Literal["unnamed", "index", "identifier", "in_file_order", "group"]


@np.errstate(over="ignore")  # differences of huge values are no steps of 1
def row_columns(part: Part) -> dict[int, Kind]:
    """Find the columns that follow the order of the rows or number them."""
    X, codes = part.X, part.codes
    every = max(1, len(X) // _GLIMPSE)
    whole = part.scan(lambda block: _is_whole(block[:_GLIMPSE]) & _is_whole(block[::every]))
    distinct = part.scan(lambda block: _is_distinct(block[:_GLIMPSE]))
    numbered = [c for c in _where(whole & distinct) if _is_whole(X[:, c]) and _is_distinct(X[:, c])]
    grouped = [c for c in _where(whole & part.scan(_may_be_grouped)) if _is_whole(X[:, c])]
    kinds: dict[int, Kind] = {
        c: "group" for c in grouped if len(np.unique(X[:, c])) == np.ptp(X[:, c]) + 1
    }
    if len(X) >= FEWEST and in_runs(codes):
        monotone = part.scan(_is_monotone)
        noisy = _where(~monotone & part.scan(lambda block: follows_file(block, codes, _SURELY)))
        if sorted_by_class := _n_runs(codes) == codes.max() + 1:
            kinds = {
                **{c: "in_file_order" for c in _where(monotone) if _is_ordered_within(part, c)},
                **kinds,
            }
        # Else the table may have been sorted by a feature that these resemble.
        if sorted_by_class or not monotone.any():
            kinds = {**dict.fromkeys(noisy, "in_file_order"), **kinds}
    kinds.update(_numbered_columns(part, numbered))
    for column in range(len(part.names)):
        if kind := _by_name(part, column, kinds.get(column)):
            kinds[column] = kind
    return kinds


def _where(mask: BoolArray) -> list[int]:
    columns: list[int] = np.flatnonzero(mask).tolist()
    return columns


def _is_whole(block: FloatArray) -> BoolArray:
    return np.asarray((block == np.floor(block)).all(axis=0))


def _is_distinct(block: FloatArray) -> BoolArray:
    return np.asarray((np.diff(np.sort(block, axis=0), axis=0) > 0).all(axis=0))


def _may_be_grouped(block: FloatArray) -> BoolArray:
    """Mask of the columns with as many runs of a value as whole numbers between their extremes."""
    n_runs = 1 + (block[1:] != block[:-1]).sum(axis=0)
    grouped = (n_runs == np.ptp(block, axis=0) + 1) & (n_runs >= _FEWEST_GROUPS)
    return np.asarray(grouped & (2 * n_runs <= len(block)))


def runs(codes: IntArray) -> tuple[int, float]:
    """Return the number of runs of equal labels, and how many are expected in a random order."""
    return _n_runs(codes), 1 + len(codes) * float(
        1 - ((np.bincount(codes) / len(codes)) ** 2).sum()
    )


def in_runs(codes: IntArray) -> bool:
    """Return whether labels stand in too few runs for chance, by the test of Wald and Wolfowitz."""
    n, counts = len(codes), np.bincount(codes).astype(float)
    squares, cubes = (counts**2).sum(), (counts**3).sum()
    variance = (squares * (squares + n * (n + 1)) - 2 * n * cubes - n**3) / (n**2 * max(n - 1, 1))
    n_runs, expected = runs(codes)
    return (
        n_runs <= expected + _RUNS * math.sqrt(max(variance, 0.0)) and n_runs < _FEW_RUNS * expected
    )


def follows_file(block: FloatArray, codes: IntArray, least: float = _FOLLOWS) -> BoolArray:
    """Mask of the columns that correlate with the row by ``least`` or more within the classes."""
    sums = np.zeros(block.shape[1])
    for code in np.unique(codes):
        values = block[codes == code]
        if len(values) > 2:
            largest = np.abs(values).max(axis=0)
            values = values / np.maximum(
                largest, np.finfo(np.float64).tiny
            )  # so that no square overflows
            values -= values.mean(axis=0)
            order = np.arange(len(values)) - (len(values) - 1) / 2
            scale = np.sqrt((order**2).sum() * (values**2).sum(axis=0))
            sums += len(values) * (order @ values) / np.where(scale > 0, scale, np.inf)
    follows: BoolArray = np.abs(sums) >= least * len(codes)
    return follows


def _is_monotone(block: FloatArray) -> BoolArray:
    rises, falls = (block[1:] >= block[:-1]).all(axis=0), (block[1:] <= block[:-1]).all(axis=0)
    return np.asarray(rises ^ falls)  # both: constant


def _is_ordered_within(part: Part, column: int) -> bool:
    """Return whether a monotone column is so within classes too, which it rarely is by chance."""
    inverse = np.unique(part.X[:, column], return_inverse=True)[1]
    both = np.unique(part.codes * (inverse.max() + 1) + inverse, return_counts=True)[1]
    arrangements = gammaln(np.bincount(part.codes) + 1).sum() - gammaln(both + 1).sum()
    return bool(math.log(2 * part.X.shape[1]) - arrangements < math.log(BY_CHANCE))


def _n_runs(codes: IntArray) -> int:
    return 1 + int(np.count_nonzero(np.diff(codes)))


def _numbered_columns(part: Part, numbered: Sequence[int]) -> dict[int, Kind]:
    """Tell indices and identifiers from other columns of another whole number in each row."""
    n_samples, n_features = part.X.shape
    ranks = len(numbered) > max(
        2, n_features // 2
    )  # of measurements: such data number the rows in every column
    kinds: dict[int, Kind] = {}
    for column in numbered:
        values = part.X[:, column]
        steps = np.diff(values)
        consecutive = (steps == steps[:1]).all() and abs(steps[:1]).sum() == 1
        if n_samples >= _FEWEST_COUNTED and consecutive and values.min() in (0, 1):
            kinds[column] = "index"
        elif n_samples >= FEWEST and not ranks:
            order = np.argsort(values)
            dense = (
                np.mean(np.diff(values[order]) == 1) >= 0.5
            )  # some rows of the file may have been left out
            if dense and _is_by_class(part, order):
                kinds[column] = "index"
            elif dense or (len(numbered) == 1 and n_samples >= _FEWEST_NUMBERED):
                kinds[column] = "identifier"
    return kinds


def _is_by_class(part: Part, order: IntArray) -> bool:
    """Return whether the classes follow each other in an order of the rows, not by chance."""
    sizes = np.bincount(part.codes)
    by_chance = gammaln(len(sizes) + 1) - gammaln(sizes.sum() + 1) + gammaln(sizes + 1).sum()
    return _n_runs(part.codes[order]) == len(sizes) and bool(
        by_chance + math.log(part.X.shape[1]) < math.log(BY_CHANCE)
    )


def _by_name(part: Part, column: int, kind: Kind | None) -> Kind | None:
    """Tell what a column is by its name, if its values agree."""
    name = part.own_name(column)
    if is_unnamed(name):
        return "unnamed"
    of_origin = names_origin(name)
    if (
        kind == "index"
        or not (of_origin or names_identifier(name))
        or not _is_whole(part.X[:, column])
    ):
        return None
    n_values = len(np.unique(part.X[:, column]))
    if n_values == len(part.X) >= _FEWEST_COUNTED:
        return "identifier"
    if of_origin and _FEWEST_NAMED <= n_values < len(part.X):
        return "group"
    return None
