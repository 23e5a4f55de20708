"""Form and values of labels and groups, as users give them and as data sets store them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from raysel.core.arrays import BoolArray, LabelArray
from raysel.core.errors import DataError
from raysel.data.layouts import SEPARATOR
from raysel.data.task_blocks import read_only


def has_columns(y: ArrayLike) -> bool:
    """Return whether y has several columns: an indicator of labels, or several quantities."""
    shape = np.asarray(y).shape
    return len(shape) == 2 and shape[1] > 1


def squeeze_column(y: LabelArray) -> LabelArray:
    """Return a single column as one value for each sample; anything else as it is."""
    if y.ndim == 2 and y.shape[1] == 1:
        return y[:, 0]
    return y


def mark_label(y: LabelArray, label: Any, tasks: Iterable[str] = ()) -> BoolArray:
    """Mask of the samples with a label, as text also below the name of a task."""
    if y.dtype.kind not in "OU":
        return np.asarray(y == label, dtype=bool)
    return np.isin(
        y.astype(np.str_), [str(label), *(f"{name}{SEPARATOR}{label}" for name in tasks)]
    )


def checked_labels(values: LabelArray, what: str) -> LabelArray:
    """Convert labels to int64 or text, so that they compare equal for every file format."""
    if values.ndim not in (1, 2):
        raise DataError(f"{what} has shape {values.shape}; give one value for each sample.")
    kind = values.dtype.kind
    if kind in "biuf":
        with np.errstate(invalid="ignore"):
            integers = values.astype(np.int64)
        if kind == "u" and values.size and values.max() > np.iinfo(np.int64).max:
            return values.astype(np.str_)
        if not np.array_equal(integers, values):
            if (places := np.argwhere(~np.isfinite(values))).size:
                place = tuple(places[0].tolist())
                raise DataError(
                    f"{what} holds {values[place]} in row {place[0]} (counted from 0), which is no"
                    " label; leave such samples out."
                )
            invalid = values[integers != values].flat[0]
            raise DataError(
                f"{what} holds {invalid}, which is no class: give whole numbers or text; a quantity"
                " is predicted where dataset.task is regression or left out."
            )
        return read_only(integers, values)
    if kind in "UT":
        return read_only(values.astype(np.str_), values)
    raise DataError(
        f"{what} has dtype {values.dtype}; give whole numbers or text, e.g. y.astype(str)."
    )
