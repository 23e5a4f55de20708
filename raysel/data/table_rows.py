"""Rows of an array or a frame that an estimator gets as they are, with numbers for cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.impute import SimpleImputer

from raysel.core.arrays import BoolArray, FloatArray, IntArray

#: Number of columns whose cells are numbered at once.
_WIDTH = 2**10


@dataclass(frozen=True, eq=False, repr=False)
class TableRows:
    """Rows of a table with cells that are no finite numbers: text, dates, cells without a value.

    They have the length, ``shape`` and row indexing of an array of numbers, for all that counts or
    describes samples; choosing rows copies no cell. A column with other cells is the places of its
    cells among its distinct ones, in their order, with those without a value as the last.
    """

    #: Array, or data frame of pandas, of all samples.
    table: Any
    #: Numbers in place of its cells; shape (n_rows, n_features).
    numbers: FloatArray
    #: Mask of the columns whose numbers are places of cells; shape (n_features,).
    is_numbered: BoolArray
    #: Rows of the table that these samples are; shape (n_samples,).
    rows: IntArray

    @classmethod
    def of(cls, table: Any) -> Self:
        """Number the cells of an array or a frame."""
        numbers, is_numbered = np.empty(table.shape), np.zeros(table.shape[1], dtype=bool)
        for columns in _alike(table):
            cells = _columns(table, columns)
            others = np.ones(len(columns), dtype=bool)
            if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
                others = ~_are_numbers(cells)
                numbers[:, columns] = cells
                cells = cells[:, others]
            if others.any():
                numbers[:, columns[others]] = _places(cells)
                is_numbered[columns[others]] = True
        numbers.flags.writeable = False
        return cls(table, numbers, is_numbered, np.arange(len(numbers)))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"TableRows({len(self)} of {len(self.numbers)} x {self.shape[1]})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        """Return the numbers of the samples."""
        numbers = self.numbers
        if copy or not self._has_all:
            numbers = numbers[self.rows]
        if dtype is None:
            return numbers
        return numbers.astype(dtype, copy=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return len(self.rows), self.numbers.shape[1]

    @property
    def nbytes(self) -> int:
        """Size of the numbers of these samples in bytes."""
        return len(self.rows) * self.numbers.shape[1] * self.numbers.itemsize

    @property
    def constant(self) -> BoolArray:
        """Mask of the features with one value only."""
        mask = np.ones(self.shape[1], dtype=bool)
        for row in self.rows[1:]:
            mask &= self.numbers[row] == self.numbers[self.rows[0]]
            if not mask.any():
                break
        return mask

    @property
    def cells(self) -> Any:
        """The samples as an estimator gets them: rows of the array or the frame."""
        is_frame = hasattr(self.table, "iloc")
        if is_frame:
            return self.table.iloc[self.rows]
        return self.table[self.rows]

    @property
    def filled(self) -> FloatArray:
        """Values of columns of numbers, with medians in empty cells, and numbers of the others.

        The places of such cells are whole numbers, another in each row, which tell nothing of the
        column.
        """
        values = np.array(self)
        for columns in _alike(self.table):
            numbered = columns[self.is_numbered[columns]]
            if not len(numbered):
                continue
            cells = _columns(self.table, numbered)
            if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
                values[:, numbered] = _without_gaps(cells[self.rows].astype(np.float64))
                continue
            for place, column in zip(numbered.tolist(), _each(cells), strict=True):
                known = [math.nan if is_empty(cell) else cell for cell in column.tolist()]
                if all(isinstance(cell, int | float) for cell in known):
                    of_rows = np.array(known, dtype=np.float64)[self.rows]
                    values[:, place] = _without_gaps(of_rows[:, None])[:, 0]
        values.flags.writeable = False
        return values

    def __getitem__(self, rows: Any) -> Self:
        """Select samples by a slice, an array of integers or a mask."""
        return replace(self, rows=self.rows[rows])

    def held(self, columns: Sequence[int]) -> Self:
        """Return the samples with one cell in each of some columns: 0, or the first in order."""
        table, numbers = self.table.copy(), np.array(self.numbers)
        for column in columns:
            first = np.full(len(numbers), numbers[:, column].argmin())
            is_frame = hasattr(table, "iloc")
            cells = table.iloc[first, column].array if is_frame else table[first, column]
            if not self.is_numbered[column]:
                cells = np.zeros_like(cells)
            if is_frame:
                table.isetitem(column, cells)
            else:
                table[:, column] = cells
        numbers[:, list(columns)] = 0.0
        numbers.flags.writeable = False
        return replace(self, table=table, numbers=numbers)

    @property
    def _has_all(self) -> bool:
        return np.array_equal(self.rows, np.arange(len(self.numbers)))

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs: the table only as far as these samples are in it."""
        if self._has_all:
            return vars(self)
        own = np.arange(len(self.rows))
        return vars(replace(self, table=self.cells, numbers=self.numbers[self.rows], rows=own))


def _alike(table: Any) -> Iterator[IntArray]:
    """Yield the places of columns of one type, a bounded number at once."""
    places: dict[Any, list[int]] = {}
    if hasattr(table, "iloc"):
        for place, dtype in enumerate(table.dtypes):
            places.setdefault(dtype, []).append(place)
    else:
        places[None] = [*range(table.shape[1])]
    for found in places.values():
        for start in range(0, len(found), _WIDTH):
            yield np.array(found[start : start + _WIDTH])


def _columns(table: Any, places: IntArray) -> Any:
    """Return columns of one type as an array, or as a frame if these are no plain numbers."""
    if not hasattr(table, "iloc"):
        return table[:, places]
    columns = table.iloc[:, places]
    dtype = columns.dtypes.iloc[0]
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return np.asarray(columns)
    return columns


def _each(columns: Any) -> Iterator[Any]:
    """Yield each column of an array or a frame."""
    if isinstance(columns, np.ndarray):
        yield from columns.T
    else:
        yield from (columns.iloc[:, number] for number in range(columns.shape[1]))


def _are_numbers(block: Any) -> BoolArray:
    """Mask of the columns whose cells are all finite and the same in 64-bit floats."""
    if block.dtype.kind == "f":
        return np.isfinite(block).all(axis=0)
    if block.dtype.itemsize < 8:
        return np.ones(block.shape[1], dtype=bool)
    return ((block <= 2**53) & (block >= -(2**53))).all(axis=0)


def _places(cells: Any) -> IntArray:
    """Return the place of each cell among the distinct ones of its column."""
    if not isinstance(cells, np.ndarray) or cells.dtype.kind not in "biuf":
        places = np.empty(cells.shape, dtype=np.int64)
        for number, column in enumerate(_each(cells)):
            places[:, number] = _number_others(column.tolist())
        return places
    columns = np.ascontiguousarray(cells.T)
    order = np.argsort(columns, axis=1, kind="stable")
    ordered = np.take_along_axis(columns, order, axis=1)
    same = ordered[:, 1:] == ordered[:, :-1]
    if cells.dtype.kind == "f":
        same |= np.isnan(ordered[:, 1:]) & np.isnan(ordered[:, :-1])
    found = np.zeros(ordered.shape, dtype=np.int64)
    np.cumsum(~same, axis=1, out=found[:, 1:])
    places = np.empty_like(found)
    np.put_along_axis(places, order, found, axis=1)
    return places.T


def _number_others(column: Sequence[Any]) -> list[int]:
    """Return the place of each cell of a column of any cells among its distinct ones."""
    keys = column
    if set(map(type, column)) != {str}:
        keys = [_key(cell) for cell in column]
    place_of = {key: place for place, key in enumerate(sorted(set(keys)))}
    return [place_of[key] for key in keys]


def _key(cell: Any) -> tuple[Any, ...]:
    """Return what tells and sorts a cell: numbers, others by type and text, then empty ones."""
    kind = type(cell).__name__
    if is_empty(cell):
        return (2, kind)
    if isinstance(cell, int | float):
        return (0, float(cell), kind, cell)
    return (1, kind, str(cell))


def is_empty(cell: Any) -> bool:
    """Return whether a cell is None, NaN, or pandas' NA or NaT."""
    if isinstance(cell, float):
        return math.isnan(cell)
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def _without_gaps(block: FloatArray) -> FloatArray:
    """Put the median of a column's finite values in place of its others; 0 where it has none."""
    finite = np.isfinite(block)
    filled: FloatArray = SimpleImputer(keep_empty_features=True, strategy="median").fit_transform(
        np.where(finite, block, np.nan)
    )
    return filled
