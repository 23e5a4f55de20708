"""Values of labels and groups, converted to whole numbers or text."""

from __future__ import annotations

import numpy as np

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError
from raysel.data.task_blocks import read_only


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
