"""Samples whose cells an estimator takes as they are: text, dates, cells without a value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from raysel.base.estimator import Estimator
from raysel.core.errors import DataError
from raysel.data.formats.columns import text_among_numbers
from raysel.data.table_rows import TableRows, is_empty


def _is_text(dtype: Any) -> bool:
    """Return whether a column of a data frame is of other cells than numbers."""
    return getattr(dtype, "kind", "O") not in "biuf"


def as_rows(X: Any) -> Any:
    """Return samples as an array or as a frame of pandas, which keeps names and types."""
    if hasattr(X, "__arrow_c_stream__") and hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if hasattr(X, "iloc"):
        return X
    return np.asarray(X)


def own_cells(estimator: Any, X: Any) -> Any:
    """Return samples as `TableRows` where an estimator takes their cells as they are.

    Samples of numbers, or whatever else they are, are returned themselves. Raises DataError for
    cells without a value if the estimator's tags, or those of a Pipeline's first step, do not allow
    NaN.
    """
    if hasattr(X, "toarray"):
        return X
    rows = as_rows(X)
    if rows.ndim != 2:
        return X
    first = _first_step(estimator)
    if hasattr(rows, "iloc"):
        as_it_is = isinstance(first, ColumnTransformer) or any(map(_is_text, rows.dtypes))
        empty = rows.isna().to_numpy().any(axis=0).tolist()
    elif rows.dtype.kind == "f":
        as_it_is, empty = False, np.isnan(rows).any(axis=0).tolist()
    elif rows.dtype.kind in "OUS":
        as_it_is = any(isinstance(cell, str | bytes) for cell in rows.flat)
        empty = [any(map(is_empty, column)) for column in rows.T] if rows.dtype.kind == "O" else []
    else:
        return X
    if any(empty) and not allows_nan(estimator):
        number = empty.index(True)
        name = f"'{rows.columns[number]}'" if hasattr(rows, "iloc") else number
        step = "" if first is estimator else f", the first step of {type(estimator).__name__},"
        raise DataError(
            f"X holds NaN, cells without a value ({sum(empty)} of {len(empty)} columns, the first"
            f" is {name}), and {type(first).__name__}{step} takes none: fill them first, e.g."
            " make_pipeline(SimpleImputer(), ...)."
        )
    if isinstance(estimator, Estimator) and as_it_is:
        if told := text_in_numbers(rows):
            raise DataError(f"X: {told}")
        raise DataError(
            f"X holds text, and {type(estimator).__name__} takes numbers: encode it first, or use"
            " raysel.run_study with dataset.prepare."
        )
    if as_it_is or any(empty):
        return TableRows.of(rows)
    return X


def text_in_numbers(rows: Any) -> str:
    """Name the first column of numbers in which a cell is none; empty if there is none."""
    return text_among_numbers(_columns(rows))


def text_in_error(rows: Any, error: str) -> str:
    """Name the column of text of which an error quotes a cell, and the mend; else empty."""
    for name, cells in _columns(rows):
        texts = dict.fromkeys(cell for cell in cells if isinstance(cell, str))
        quoted = next((repr(text) for text in texts if repr(text) in error), "")
        if quoted:
            mend = (
                f"column {name} holds text, e.g. {quoted}: encode it in a Pipeline, e.g. by"
                " OneHotEncoder."
            )
            return text_among_numbers([(name, cells)]) or mend
    return ""


def _columns(rows: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and cells of each column of an array or a frame."""
    if hasattr(rows, "iloc"):
        yield from ((f"'{name}'", cells) for name, cells in rows.items())
    else:
        yield from ((str(number), cells) for number, cells in enumerate(rows.T))


def allows_nan(estimator: Any) -> bool:
    """Return whether an estimator, or the first step of a Pipeline, takes NaN by its tags."""
    first = _first_step(estimator)
    # These say nothing of their parts, each of which gets some columns and refuses what it does not
    # take.
    return isinstance(first, ColumnTransformer | FeatureUnion) or bool(
        get_tags(first).input_tags.allow_nan
    )


def _first_step(estimator: Any) -> Any:
    """Return the estimator that gets the samples as they are."""
    if not isinstance(estimator, Pipeline):
        return estimator
    steps = (step for _, step in estimator.steps if step is not None and step != "passthrough")
    return _first_step(next(steps, estimator.steps[-1][1]))
