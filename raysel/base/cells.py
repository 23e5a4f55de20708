"""Cells that are no finite numbers (text, dates, cells without a value) as numbers, and back for an own estimator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from raysel.base.estimator import Estimator
from raysel.core.arrays import FloatArray, IntArray
from raysel.core.errors import DataError


@dataclass(frozen=True, eq=False)
class Cells:
    """Values of the columns of an array or a data frame of pandas that numbers alone do not hold.

    A study computes with numbers: a column with other cells is the places of its cells among its distinct ones, in
    their order, with cells without a value as the last. `restored` gives the rows back as they were.
    """

    #: Distinct cells of each column, by their numbers; None for a column of numbers, which is kept.
    distinct: tuple[Any, ...]
    #: Rows of the array or frame, of which there are none: its type and the names and types of its columns.
    empty: Any

    @classmethod
    def of(cls, X: Any) -> tuple[Self, FloatArray]:
        """Return the cells of samples, and the samples as numbers, shape (n_samples, n_features)."""
        is_frame = hasattr(X, "iloc")
        values = np.empty(X.shape)
        distinct: list[Any] = []
        for number in range(X.shape[1]):
            column = X.iloc[:, number] if is_frame else X[:, number]
            if _is_finite(column):
                values[:, number] = column
                distinct.append(None)
                continue
            first, values[:, number] = _numbered(column)
            distinct.append(column.iloc[first].array if is_frame else column[first])
        return cls(tuple(distinct), X[:0]), values

    @property
    def are_numbers(self) -> bool:
        """Whether all columns are of finite numbers."""
        return all(cells is None for cells in self.distinct)

    def restored(self, X: FloatArray) -> Any:
        """Return samples as the array or frame that they were."""
        columns = [
            X[:, number].astype(self._dtype(number))
            if cells is None
            else cells[X[:, number].astype(np.int64)]
            for number, cells in enumerate(self.distinct)
        ]
        if not hasattr(self.empty, "iloc"):
            made = np.empty(X.shape, dtype=self.empty.dtype)
            for number, column in enumerate(columns):
                made[:, number] = column
            return made
        import pandas as pd  # noqa: PLC0415 - takes half a second to import

        typed = {
            number: pd.Series(column, dtype=self._dtype(number))
            for number, column in enumerate(columns)
        }
        return pd.DataFrame(typed).set_axis(self.empty.columns, axis=1)

    def _dtype(self, number: int) -> Any:
        return self.empty.dtypes.iloc[number] if hasattr(self.empty, "iloc") else self.empty.dtype

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # nothing changes it, and each clone of an estimator would copy it


def _is_finite(column: Any) -> bool:
    """Return whether a column is of NumPy's numbers, all finite."""
    return (
        isinstance(column.dtype, np.dtype)
        and column.dtype.kind in "biuf"
        and bool(np.isfinite(column).all())
    )


def _is_text(dtype: Any) -> bool:
    """Return whether a column of a data frame is of other cells than numbers."""
    return getattr(dtype, "kind", "O") not in "biuf"


def _numbered(column: Any) -> tuple[IntArray, IntArray]:
    """Return the row of the first of each distinct cell, in their order, and the number of each row's cell."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind == "f":
        _, first, numbers = np.unique(
            np.asarray(column), return_index=True, return_inverse=True, equal_nan=True
        )
        return first, numbers
    keys = [_key(cell) for cell in column.tolist()]
    first_of: dict[Any, int] = {}
    for row, key in enumerate(keys):
        first_of.setdefault(key, row)
    order = {key: place for place, key in enumerate(sorted(first_of))}
    return np.array([first_of[key] for key in order]), np.array([order[key] for key in keys])


def _key(cell: Any) -> tuple[Any, ...]:
    """Return what tells and sorts a cell: numbers, then others by their type and text, then those without a value."""
    kind = type(cell).__name__
    if _is_empty(cell):
        return (2, kind)
    return (0, float(cell), kind, cell) if isinstance(cell, int | float) else (1, kind, str(cell))


def _is_empty(cell: Any) -> bool:
    """Return whether a cell is None, NaN, or pandas' NA or NaT."""
    return (
        cell is None
        or type(cell).__name__ in ("NAType", "NaTType")
        or (isinstance(cell, float) and math.isnan(cell))
    )


def rows_of(X: Any) -> Any:
    """Return samples as an array or a frame of pandas, as which one of polars keeps its columns' names and types."""
    if hasattr(X, "__arrow_c_stream__") and hasattr(X, "to_pandas"):
        X = X.to_pandas()
    return X if hasattr(X, "iloc") else np.asarray(X)


def own_cells(estimator: Any, X: Any) -> tuple[Cells | None, Any]:
    """Return the cells of samples that an estimator takes as they are, and numbers in place of the samples.

    None, and the samples themselves, where these are numbers, or whatever else they are. Raises DataError for cells
    without a value if the estimator's tags, or those of a Pipeline's first step, do not allow NaN.
    """
    if hasattr(X, "toarray"):
        return None, X
    rows = rows_of(X)
    if rows.ndim != 2:
        return None, X
    first = _first_step(estimator)
    if hasattr(rows, "iloc"):
        columns = [rows.iloc[:, number] for number in range(rows.shape[1])]
        as_it_is = isinstance(first, ColumnTransformer) or any(
            _is_text(column.dtype) for column in columns
        )
        empty = [bool(column.isna().any()) for column in columns]
    elif rows.dtype.kind == "f":
        as_it_is, empty = False, np.isnan(rows).any(axis=0).tolist()
    elif rows.dtype.kind in "OUS":
        as_it_is = any(isinstance(cell, str | bytes) for cell in rows.flat)
        empty = [any(map(_is_empty, column)) for column in rows.T] if rows.dtype.kind == "O" else []
    else:
        return None, X
    if any(empty) and not allows_nan(estimator):
        number = empty.index(True)
        name = f"'{rows.columns[number]}'" if hasattr(rows, "iloc") else number
        step = "" if first is estimator else f", the first step of {type(estimator).__name__},"
        raise DataError(
            f"X holds NaN, cells without a value ({sum(empty)} of {len(empty)} columns, the first is {name}), and "
            f"{type(first).__name__}{step} takes none: fill them first, e.g. make_pipeline(SimpleImputer(), ...)."
        )
    if isinstance(estimator, Estimator) and as_it_is:
        raise DataError(
            f"X holds text, and {type(estimator).__name__} takes numbers: encode it first, or use raysel.run_study "
            "with dataset.prepare."
        )
    return Cells.of(rows) if as_it_is or any(empty) else (None, X)


def allows_nan(estimator: Any) -> bool:
    """Return whether an estimator takes NaN, as its tags say, or those of a Pipeline's first step."""
    first = _first_step(estimator)
    # These say nothing of their parts, each of which gets some columns and refuses what it does not take.
    return isinstance(first, ColumnTransformer | FeatureUnion) or bool(
        get_tags(first).input_tags.allow_nan
    )


def _first_step(estimator: Any) -> Any:
    """Return the estimator that gets the samples as they are."""
    if not isinstance(estimator, Pipeline):
        return estimator
    steps = (step for _, step in estimator.steps if step is not None and step != "passthrough")
    return _first_step(next(steps, estimator.steps[-1][1]))
