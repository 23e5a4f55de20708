"""Cells that are no finite numbers (text, dates, cells without a value) as numbers, and back for an own estimator."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from raysel.base.estimator import Estimator
from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.core.errors import DataError
from raysel.data.formats.columns import text_among_numbers


@dataclass(frozen=True, eq=False)
class Cells:
    """Values of the columns of an array or a data frame of pandas that numbers alone do not hold.

    A study computes with numbers: a column with other cells is the places of its cells among its distinct ones, in
    their order, with cells without a value as the last. `restored` gives the rows back as they were.
    """

    #: Columns by their type, which are numbered and restored together: a frame may have many of them.
    parts: tuple[_Columns, ...]
    #: Rows of the array or frame, of which there are none: its type and the names and types of its columns.
    empty: Any

    @classmethod
    def of(cls, X: Any) -> tuple[Self, FloatArray]:
        """Return the cells of samples, and the samples as numbers, shape (n_samples, n_features)."""
        values = np.empty(X.shape)
        parts: list[_Columns] = []
        for dtype, places in _places_by_type(X).items():
            columns = X.iloc[:, places] if hasattr(X, "iloc") else X
            if not isinstance(dtype, np.dtype) or dtype.kind not in "biuf":
                codes, numbered = _Columns.of_others(columns, places)
                values[:, places], parts = codes, [*parts, numbered]
                continue
            block = np.asarray(columns)
            are_numbers = _are_numbers(block)
            if are_numbers.any():
                parts.append(_Columns(dtype, places[are_numbers]))
                values[:, places[are_numbers]] = block[:, are_numbers]
            if not are_numbers.all():
                gaps = places[~are_numbers]
                values[:, gaps], numbered = _Columns.of_numbers(block[:, ~are_numbers], gaps)
                parts.append(numbered)
        return cls(tuple(parts), X[:0]), values

    @property
    def are_numbers(self) -> bool:
        """Whether all columns are of finite numbers."""
        return all(part.distinct is None for part in self.parts)

    def restored(self, X: FloatArray) -> Any:
        """Return samples as the array or frame that they were."""
        if not hasattr(self.empty, "iloc"):
            made = np.empty(X.shape, dtype=self.empty.dtype)
            for part in self.parts:
                made[:, part.places] = part.restored(X)
            return made
        import pandas as pd  # noqa: PLC0415 - takes half a second to import

        frames = [
            pd.DataFrame(part.restored(X), dtype=part.dtype, copy=False) for part in self.parts
        ]
        if len(frames) == 1:
            return frames[0].set_axis(self.empty.columns, axis=1)
        order = np.argsort(np.concatenate([part.places for part in self.parts]))
        frame = pd.concat(frames, axis=1).iloc[:, order] if frames else self.empty
        return frame.set_axis(self.empty.columns, axis=1)

    def filled(self, X: FloatArray) -> FloatArray:
        """Return samples with the values of columns of numbers, and their medians in place of cells without one.

        The places of such cells are whole numbers, another in each row, which tell nothing of the column.
        """
        values = np.array(X)
        for part in self.parts:
            if part.distinct is not None:
                part.fill(values)
        return values

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # nothing changes it, and each clone of an estimator would copy it


@dataclass(frozen=True, eq=False)
class _Columns:
    """Columns of one type."""

    dtype: Any
    #: Places of the columns among all; shape (n_columns,).
    places: IntArray
    #: Distinct cells of all columns, one column after the other; None for columns of numbers, which are kept.
    distinct: Any = None
    #: Place in ``distinct`` of the first cell of each column; shape (n_columns,).
    starts: Any = None

    @classmethod
    def of_numbers(cls, block: Any, places: IntArray) -> tuple[IntArray, Self]:
        """Return the numbers of the cells of columns, and the columns; `block` is (n_samples, n_columns)."""
        columns = np.ascontiguousarray(block.T)
        order = np.argsort(columns, axis=1, kind="stable")
        ordered = np.take_along_axis(columns, order, axis=1)
        same = ordered[:, 1:] == ordered[:, :-1]
        if block.dtype.kind == "f":
            same |= np.isnan(ordered[:, 1:]) & np.isnan(ordered[:, :-1])
        new = np.ones(ordered.shape, dtype=bool)
        new[:, 1:] = ~same
        codes = np.empty(ordered.shape, dtype=np.int64)
        np.put_along_axis(codes, order, np.cumsum(new, axis=1) - 1, axis=1)
        return codes.T, cls(block.dtype, places, ordered[new], _starts(new.sum(axis=1)))

    @classmethod
    def of_others(cls, columns: Any, places: IntArray) -> tuple[IntArray, Self]:
        """Return the numbers of the cells of columns of an array or a frame, and the columns."""
        is_frame = hasattr(columns, "iloc")
        codes = np.empty(columns.shape, dtype=np.int64)
        distinct: list[Any] = []
        for number in range(len(places)):
            column = columns.iloc[:, number] if is_frame else columns[:, number]
            first, codes[:, number] = _numbered(column)
            distinct.append(column.iloc[first] if is_frame else column[first])
        starts = _starts(np.array([len(cells) for cells in distinct]))
        if not is_frame:
            return codes, cls(columns.dtype, places, np.concatenate(distinct), starts)
        import pandas as pd  # noqa: PLC0415 - takes half a second to import

        return codes, cls(distinct[0].dtype, places, pd.concat(distinct).array, starts)

    def restored(self, X: FloatArray) -> Any:
        """Return the columns of samples: an array, or of a type of pandas the columns by their places."""
        block = X[:, self.places]
        if self.distinct is None:
            return np.ascontiguousarray(block.astype(self.dtype))
        taken = block.astype(np.int64) + self.starts
        if isinstance(self.dtype, np.dtype):
            return np.asarray(self.distinct)[taken]
        cells, n = self.distinct.take(taken.T.ravel()), len(X)
        return {number: cells[number * n : (number + 1) * n] for number in range(len(self.places))}

    def fill(self, X: FloatArray) -> None:
        """Write the values of columns of numbers into samples that hold the places of their cells."""
        restored = self.restored(X)
        if getattr(self.dtype, "kind", "O") in "biuf" and isinstance(self.dtype, np.dtype):
            X[:, self.places] = _without_gaps(np.asarray(restored, dtype=np.float64))
            return
        for number, place in enumerate(self.places):
            column = restored[number] if isinstance(restored, dict) else restored[:, number]
            cells = [math.nan if _is_empty(cell) else cell for cell in column.tolist()]
            if all(isinstance(cell, int | float) for cell in cells):
                X[:, place] = _without_gaps(np.array(cells, dtype=np.float64)[:, None])[:, 0]


def _without_gaps(block: FloatArray) -> FloatArray:
    """Put the median of a column's finite values in place of its others; 0 where it has none."""
    finite = np.isfinite(block)
    filled: FloatArray = SimpleImputer(keep_empty_features=True, strategy="median").fit_transform(
        np.where(finite, block, np.nan)
    )
    return filled


def _places_by_type(X: Any) -> dict[Any, IntArray]:
    """Return the places of the columns of each type."""
    if not hasattr(X, "iloc"):
        return {X.dtype: np.arange(X.shape[1])}
    places: dict[Any, list[int]] = {}
    for place, dtype in enumerate(X.dtypes):
        places.setdefault(dtype, []).append(place)
    return {dtype: np.array(found) for dtype, found in places.items()}


def _starts(lengths: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)


def _are_numbers(block: Any) -> BoolArray:
    """Mask of the columns whose cells are all finite and the same in 64-bit floats; shape (n_columns,)."""
    if block.dtype.kind == "f":
        return np.isfinite(block).all(axis=0)
    if block.dtype.itemsize < 8:
        return np.ones(block.shape[1], dtype=bool)
    return ((block <= 2**53) & (block >= -(2**53))).all(axis=0)


def _is_text(dtype: Any) -> bool:
    """Return whether a column of a data frame is of other cells than numbers."""
    return getattr(dtype, "kind", "O") not in "biuf"


def _numbered(column: Any) -> tuple[IntArray, IntArray]:
    """Return the row of the first of each distinct cell, in their order, and the number of each row's cell."""
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
        as_it_is = isinstance(first, ColumnTransformer) or any(map(_is_text, rows.dtypes))
        empty = rows.isna().to_numpy().any(axis=0).tolist()
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
        if told := text_in_numbers(rows):
            raise DataError(f"X: {told}")
        raise DataError(
            f"X holds text, and {type(estimator).__name__} takes numbers: encode it first, or use raysel.run_study "
            "with dataset.prepare."
        )
    return Cells.of(rows) if as_it_is or any(empty) else (None, X)


def text_in_numbers(rows: Any) -> str:
    """Name the first column of numbers of an array or a frame with cells that are none; empty if there is none."""
    return text_among_numbers(_columns(rows))


def text_in_error(rows: Any, error: str) -> str:
    """Name the column of text of which an error quotes a cell, and say what to do; empty if it quotes none."""
    for name, cells in _columns(rows):
        texts = dict.fromkeys(cell for cell in cells if isinstance(cell, str))
        quoted = next((repr(text) for text in texts if repr(text) in error), "")
        if quoted:
            mend = f"column {name} holds text, e.g. {quoted}: encode it in a Pipeline, e.g. by OneHotEncoder."
            return text_among_numbers([(name, cells)]) or mend
    return ""


def _columns(rows: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and cells of each column of an array or a frame."""
    if hasattr(rows, "iloc"):
        yield from ((f"'{name}'", cells) for name, cells in rows.items())
    else:
        yield from ((str(number), cells) for number, cells in enumerate(rows.T))


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
