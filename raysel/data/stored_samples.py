"""Samples that stay in their file, of which a bounded number of rows is in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn, Protocol

import numpy as np

from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.core.errors import DataError


class RowSource(Protocol):
    """A file of samples, read from first row to last; workers get a copy, which reads anew."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""

    def blocks(self) -> Iterator[FloatArray]:
        """Read consecutive rows, (n_rows, n_features), until all are read."""


@dataclass(frozen=True)
class Summary:
    """Statistics of each feature over some samples; each of shape (n_features,)."""

    n_samples: int
    smallest: FloatArray
    largest: FloatArray
    mean: FloatArray
    #: Variance, with n.
    variance: FloatArray

    @property
    def constant(self) -> BoolArray:
        """Mask of the features with one value only."""
        return self.smallest == self.largest


@dataclass(frozen=True, eq=False, repr=False)
class StoredSamples:
    """Samples that stay in their file, and are scaled as they are read.

    They have the length, ``shape`` and row indexing of the array that the file holds.
    """

    source: RowSource
    #: Rows of the file that these samples are, each once; None: all; shape (n_samples,).
    rows: IntArray | None = None
    #: Fitted scaler; None: the values as they are in the file.
    scaler: Any = None

    def __len__(self) -> int:
        if self.rows is None:
            return self.source.shape[0]
        return len(self.rows)

    def __repr__(self) -> str:
        return f"StoredSamples({len(self)} of {self.source!r})"

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise DataError(
            f"{self.source!r} stays in its file (dataset.in_memory: false), and this needs all"
            " samples in memory: leave dataset.in_memory out, or choose fewer samples."
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return len(self), self.source.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes that the samples take in memory: none."""
        return 0

    def __getitem__(self, rows: Any) -> StoredSamples:
        """Select samples by a slice, an array of integers or a mask; nothing is read."""
        return replace(self, rows=self._positions[rows])

    @property
    def _positions(self) -> IntArray:
        """Row of each sample in the file; shape (n_samples,)."""
        if self.rows is None:
            return np.arange(len(self))
        return self.rows

    def scaled(self, scaler: Any) -> StoredSamples:
        """Return the samples as a fitted scaler transforms them."""
        return replace(self, scaler=scaler)

    def row_blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Read samples in the file's order: their positions, and values (n_block, n_features)."""
        rows = self._positions
        order = np.argsort(rows, kind="stable")
        ordered, first = rows[order], 0
        for block in self.source.blocks():
            start, stop = np.searchsorted(ordered, [first, first + len(block)])
            if start < stop:
                values = block
                if stop - start < len(block):
                    values = block[ordered[start:stop] - first]
                if self.scaler is not None:
                    values = self.scaler.transform(values)
                yield order[start:stop], values
            first += len(block)

    def array(self) -> FloatArray:
        """Read all samples into memory."""
        values = np.empty(self.shape)
        for positions, block in self.row_blocks():
            values[positions] = block
        return values

    def computed(self, function: Callable[[FloatArray], LabelArray]) -> LabelArray:
        """Apply a function to blocks of samples, and return its values in the samples' order."""
        order, values = zip(
            *((positions, function(block)) for positions, block in self.row_blocks()), strict=True
        )
        joined: LabelArray = np.concatenate(values)
        result = np.empty_like(joined)
        result[np.concatenate(order)] = joined
        return result

    @cached_property
    @np.errstate(invalid="ignore")  # infinite values, which are refused
    def summary(self) -> Summary:
        """Statistics of the features; NaN where a value is."""
        n = 0
        for _, block in self.row_blocks():
            k, mean = len(block), block.mean(axis=0)
            low, high = block.min(axis=0), block.max(axis=0)
            mean = np.where(low == high, low, mean)
            squares = ((block - mean) ** 2).sum(axis=0)
            if n == 0:
                n, smallest, largest, centre, total = k, low, high, mean, squares
                continue
            # Chan, Golub and LeVeque's update of means and sums of squares by those of a further
            # block.
            difference = mean - centre
            total = total + squares + difference**2 * (n * k / (n + k))
            centre = centre + difference * (k / (n + k))
            smallest, largest, n = np.minimum(smallest, low), np.maximum(largest, high), n + k
        return Summary(
            n_samples=n, smallest=smallest, largest=largest, mean=centre, variance=total / n
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs to read the samples."""
        return {"source": self.source, "rows": self.rows, "scaler": self.scaler}
