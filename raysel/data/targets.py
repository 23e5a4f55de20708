"""Kinds of labels: classes, an indicator of labels, or quantities; found from the values where
nobody says.
"""

from __future__ import annotations

import numpy as np

from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.errors import DataError
from raysel.data.task_blocks import read_only
from raysel.data.whole_numbers import BEYOND_FLOATS, are_rounded

#: Kinds of `Dataset.target`: a class for each sample, an indicator, one or several numbers for each
#: sample.
TARGETS = CLASSES, LABELS, QUANTITIES = "classes", "labels", "quantities"
#: Values of the key ``task``, and what they say of y; an indicator is a classification too.
TASKS_OF_KEY = {"regression": QUANTITIES, "classification": CLASSES}

#: More whole numbers than this are a quantity if most have two samples or one, and this share of
#: them one: such classes could not be divided among folds.
_MOST_CLASSES, _SINGLE = 10, 0.25


def checked_target(
    y: LabelArray, target: str | None, where: str, what: str
) -> tuple[LabelArray, str, str | None]:
    """Convert y to what its kind stores, find the kind if it is not given, and say so where it
    may surprise.
    """
    if target not in (None, *TARGETS):
        raise DataError(f"{where}: target={target!r} must be {CLASSES}, {LABELS} or {QUANTITIES}.")
    if target == QUANTITIES or (target is None and looks_like_quantity(y)):
        floats, note = _quantities(y, f"{where}: {what}"), None
        if y.dtype.kind in "iu" and are_rounded(np.unique(y).tolist()):
            note = (
                f"{what} holds {BEYOND_FLOATS}: subtract the least value, or set dataset.task: "
                "classification."
            )
            if ((np.ptp(floats, axis=0) == 0) & (y != y[0]).any(axis=0)).any():
                raise DataError(f"{where}: {note}")
        elif target is None and y.ndim == 1 and (y == np.round(y)).all():
            note = (
                f"{what} holds {len(np.unique(y))} different whole numbers and is predicted as a"
                " quantity; for classes set dataset.task: classification"
            )
        return floats, QUANTITIES, note
    labels = _as_indicator(checked_labels(y, f"{where}: {what}"))
    return labels, LABELS if labels.ndim == 2 else CLASSES, None


def looks_like_quantity(y: LabelArray) -> bool:
    """Return whether labels are numbers that no classes have: fractions, or whole numbers that
    hardly repeat.
    """
    if y.dtype.kind not in "iuf" or not y.size or y.ndim not in (1, 2) or not np.isfinite(y).all():
        return False
    if (y != np.round(y)).any():
        return True
    if y.ndim == 1 and (np.diff(y) == 1).all():  # the numbers of the rows
        return False
    if y.ndim == 2:  # an indicator with a wrong value is no quantity
        return any(len(np.unique(column)) > _MOST_CLASSES for column in y.T)
    values, counts = np.unique(y, return_counts=True)
    hardly_repeat = (counts <= 2).mean() > 0.5 and (counts == 1).mean() > _SINGLE
    return len(values) > _MOST_CLASSES and bool(hardly_repeat)


def _quantities(y: LabelArray, what: str) -> FloatArray:
    if y.dtype.kind not in "biuf":
        raise DataError(
            f"{what} holds {y.ravel()[0]!s}, which is no number, and regression predicts numbers:"
            " name another column by label, or leave dataset.task out for classes."
        )
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    return read_only(np.ascontiguousarray(y, dtype=np.float64), y)


def check_quantities(y: FloatArray, where: str, what: str) -> None:
    """Check that quantities are finite and vary. `y` is (n_samples,) or (n_samples,
    n_quantities).
    """
    if y.ndim not in (1, 2) or not y.size:
        raise DataError(
            f"{where}: y has shape {y.shape}; give one number, or one of each quantity, for each"
            " sample."
        )
    if not np.isfinite(y).all():
        row = int(np.argwhere(~np.isfinite(y))[0][0])
        raise DataError(
            f"{where}: {what} is NaN or infinite in row {row} (counted from 0); leave such samples"
            " out."
        )
    constant = np.flatnonzero(np.ptp(y.reshape(len(y), -1), axis=0) == 0)
    if constant.size:
        which = what if y.ndim == 1 else f"quantity number {constant[0]} of y"
        raise DataError(
            f"{where}: {which} has one value only; a quantity that does not vary cannot be"
            " predicted."
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


def _as_indicator(y: LabelArray) -> LabelArray:
    """Convert an indicator of -1 and 1 to one of 0 and 1."""
    if (
        y.ndim == 2
        and y.dtype.kind == "i"
        and y.size
        and y.min() == -1
        and np.isin(y, (-1, 1)).all()
    ):
        return (y + 1) // 2
    return y
