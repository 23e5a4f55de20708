"""Parts of a data set that are inspected alone, scans of their columns, and equal samples."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma
from sklearn.neighbors import NearestNeighbors

from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.data.dataset import Dataset
from raysel.data.layouts import SEPARATOR
from raysel.data.targets import Target, find_target
from raysel.data.task_blocks import iter_parts

#: Largest number of samples whose neighbours are searched; of more, as many are drawn.
MOST_QUERIES = 5000
#: Largest number of distances between them and all samples, and of what is searched at least.
_MOST_DISTANCES, _FEWEST_QUERIES = 25_000_000, 500
#: Neighbours whose distances tell density and dimension, which copies of a sample hardly change:
#: those of twins are twins too, so that half as many places are as far away.
_NEIGHBORS, _FARTHER = 5, 15
#: Number of random directions onto which wider samples are projected for the search.
_DIRECTIONS = 128
#: Number of columns that are scaled at once.
_COLUMNS = 512
#: Largest share of the typical distance to a nearest neighbour at which samples are nearly equal.
_NEAR = 0.05
#: The same for many samples at once: their least share of all, and how many times as many as by
#: chance.
_NEAR_OF_MANY, _MANY, _TIMES = 0.4, 0.15, 10
#: Expected number of samples that are as near by chance.
_BY_CHANCE = 0.01
#: Number of float64 values that are copied at once, several times each: 8 MiB.
_BLOCK = 2**20
#: Odd constant whose products spread low bits of a number over the high ones (MurmurHash3).
_MIXING = np.uint64(0xFF51AFD7ED558CCD)


def equal_rows(X: FloatArray) -> IntArray:
    """Number the distinct rows of an array in the order in which they occur."""
    rng = np.random.default_rng(0)
    while True:  # once, unless different rows have the same key
        keys = _row_keys(X, rng)
        _, first, numbers = np.unique(keys, return_index=True, return_inverse=True)
        again = np.flatnonzero(first[numbers] != np.arange(len(X)))
        size = max(1, _BLOCK // X.shape[1])
        pieces = (again[i : i + size] for i in range(0, len(again), size))
        if all(np.array_equal(_bits(X[rows]), _bits(X[first[numbers[rows]]])) for rows in pieces):
            return np.argsort(np.argsort(first))[numbers]


def _row_keys(X: FloatArray, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Hash each row to 64 bits: a random combination of its values, whose bits are mixed before."""
    multipliers = rng.integers(2**64, size=X.shape[1], dtype=np.uint64) | np.uint64(1)
    keys = np.empty(len(X), dtype=np.uint64)
    size = max(1, _BLOCK // X.shape[1])
    for start in range(0, len(X), size):
        mixed = _bits(X[start : start + size]) * _MIXING
        mixed ^= mixed >> np.uint64(32)
        keys[start : start + size] = (mixed * _MIXING) @ multipliers
    return keys


def _bits(block: FloatArray) -> NDArray[np.uint64]:
    """Return the bits of numbers; those of -0.0 are those of 0.0."""
    return (block + 0.0).view(np.uint64)


@dataclass(frozen=True, eq=False)
class NearPairs:
    """Pairs of samples that are not equal but much nearer than others."""

    #: Positions of the samples of each pair, the smaller first; each pair once; shape (n_pairs, 2).
    pairs: IntArray
    share: float
    n_searched: int


def near_rows(X: FloatArray, row_ids: IntArray, *, scale: bool) -> NearPairs | None:
    r"""Find samples whose nearest neighbour is far nearer than the density of the samples explains.

    With distances :math:`r_1 < r_2 < \dots` of a sample to its nearest neighbours,
    :math:`r_2 / r_1` follows a Pareto distribution whose exponent m is the intrinsic dimension of
    the data. A share of about :math:`(k - 1) t^m` of all samples has :math:`r_1 < t r_k`.

    E. Facco, M. d'Errico, A. Rodriguez and A. Laio, "Estimating the intrinsic dimension of datasets
    by a minimal neighborhood information", Scientific Reports 7, 2017.
    """
    first = np.unique(row_ids, return_index=True)[1]
    if len(first) < 20:
        return None
    rng = np.random.default_rng(0)
    Z = projected(X, first, scale, rng)
    queries = np.arange(len(Z))
    most = min(MOST_QUERIES, max(_FEWEST_QUERIES, _MOST_DISTANCES // len(Z)))
    if len(Z) > most:
        queries = np.sort(rng.choice(len(Z), most, replace=False))
    farther = min(_FARTHER, len(Z) - 2)
    distances, neighbors = (
        NearestNeighbors(n_neighbors=farther + 1, algorithm="brute").fit(Z).kneighbors(Z[queries])
    )
    itself = neighbors[:, 0] == queries
    near = np.where(itself, neighbors[:, 1], neighbors[:, 0])
    r1, beyond = distances[:, 1], distances[:, _NEIGHBORS]
    positive = beyond > 0
    if not positive.any():
        return NearPairs(np.empty((0, 2), dtype=np.int64), 0.0, len(queries))
    spread = max(float(np.median(np.log(distances[positive, farther] / beyond[positive]))), 1e-9)
    exponent = float(digamma(farther) - digamma(_NEIGHBORS)) / spread
    typical = float(np.median(beyond[positive])) * math.exp(
        float(digamma(1) - digamma(_NEIGHBORS)) / exponent
    )
    limit = min(_NEAR, (_BY_CHANCE / (_NEIGHBORS * len(r1))) ** (1 / exponent))
    near_place = np.minimum(typical, beyond)  # the density may vary
    chosen, many = r1 <= limit * near_place, r1 <= _NEAR_OF_MANY * near_place
    if many.mean() >= max(_MANY, _TIMES * (_NEIGHBORS - 1) * _NEAR_OF_MANY**exponent):
        chosen = many
    pairs = np.sort(np.stack([first[queries[chosen]], first[near[chosen]]], axis=1), axis=1)
    share = 0.0
    if chosen.any():
        share = float(r1[chosen].max() / typical)
    return NearPairs(np.unique(pairs, axis=0), share, len(queries))


def projected(X: FloatArray, rows: IntArray, scale: bool, rng: np.random.Generator) -> FloatArray:
    """Scale rows, and project wide ones on random directions, which keep distances to a tenth."""
    n_features = X.shape[1]
    project = n_features > _DIRECTIONS
    Z = np.zeros((len(rows), min(n_features, _DIRECTIONS)))
    peak = max(float(X.max()), -float(X.min())) or 1.0
    for start in range(0, n_features, _COLUMNS):
        part = X[rows, start : start + _COLUMNS]
        largest: Any = peak
        if scale:
            largest = np.where(part.any(axis=0), np.abs(part).max(axis=0), 1.0)
        part = part / largest  # so that no sum of squares overflows
        part -= part.mean(axis=0)
        if scale:
            spread = part.std(axis=0)
            part /= np.where(spread > 0, spread, 1.0)
        if project:
            Z += part @ rng.normal(size=(part.shape[1], _DIRECTIONS))
        else:
            Z[:, start : start + _COLUMNS] = part
    return Z


def deviations(Z: FloatArray, codes: IntArray) -> FloatArray:
    """Deviations of the samples from the mean of their class, of mean square length 1."""
    means = np.stack([Z[codes == code].mean(axis=0) for code in range(codes.max() + 1)])
    W = Z - means[codes]
    length = math.sqrt(max(float((W**2).sum(axis=1).mean()), np.finfo(np.float64).tiny))
    return np.asarray(W / length)


@dataclass(frozen=True, eq=False)
class Part:
    """Samples of one task, or of a data set of one task."""

    #: Samples in the order of the file; shape (n_samples, n_features).
    X: FloatArray
    #: Labels, or an indicator; shape (n_samples,) or (n_samples, n_labels).
    y: LabelArray
    names: tuple[str, ...]
    #: Position of each sample in the data set; shape (n_samples,).
    rows: IntArray
    image: bool
    task: str | None

    @property
    def target(self) -> Target:
        """What is predicted."""
        return find_target(self.y)

    @cached_property
    def codes(self) -> IntArray:
        """Class, combination of labels, or fifth of the quantity: shape (n_samples,)."""
        return self.target.alike(self.y)

    @cached_property
    def row_ids(self) -> IntArray:
        """Number of each distinct sample, the same for equal samples: shape (n_samples,)."""
        return equal_rows(self.X)

    @cached_property
    def named(self) -> bool:
        """Whether the columns have names of their own, as those of a table."""
        return not self.image and not all(
            re.fullmatch(r"x\d+|.*\[\d+\]", name) for name in self.names
        )

    @property
    def heading(self) -> str:
        """Start of a remark on the samples of one task; empty if there are no tasks."""
        if self.task is None:
            return ""
        return f"Task {self.task}: "

    def own_name(self, column: int) -> str:
        """Return the name of a column without that of its task."""
        if self.task is None:
            return self.names[column]
        return self.names[column].removeprefix(f"{self.task}{SEPARATOR}")

    def scan(self, function: Callable[[FloatArray], NDArray[Any]]) -> NDArray[Any]:
        """Apply a function of columns to all of them, a bounded number at once."""
        width = max(1, _BLOCK // len(self.X))
        return np.concatenate(
            [function(self.X[:, i : i + width]) for i in range(0, self.X.shape[1], width)]
        )

    def n_values(self, rows: IntArray | slice = slice(None)) -> IntArray:
        """Count the distinct values of each column in some rows."""

        def count(block: FloatArray) -> IntArray:
            ordered = np.sort(block[rows], axis=0)
            n_changes: IntArray = (ordered[1:] != ordered[:-1]).sum(axis=0)
            return 1 + n_changes

        return self.scan(count)


def parts(dataset: Dataset) -> Iterator[Part]:
    """Yield the tasks of a data set, or the data set as the only part."""
    blocks = dataset.layout.blocks().items()
    for (task, (_, layout)), (rows, columns, block) in zip(
        blocks, iter_parts(dataset.filled), strict=True
    ):
        n = layout.n_features - layout.n_beside
        names = dataset.feature_names[columns][:n]
        yield Part(
            block[:, :n],
            dataset.y[rows],
            names=names,
            rows=rows,
            image=len(layout.grid) > 1,
            task=task or None,
        )
