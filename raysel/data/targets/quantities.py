"""One or several numbers for each sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import get_tags

from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.core.errors import DataError
from raysel.core.printing import listed
from raysel.data.targets.guesses import (
    BEST_CONSTANT,
    MEAN,
    OF_MEAN,
    RANDOM_ORDER,
    best_constant_value,
)
from raysel.data.targets.label_values import squeeze_column
from raysel.data.targets.target import REGRESSION, Target
from raysel.data.task_blocks import read_only
from raysel.data.whole_numbers import BEYOND_FLOATS, are_rounded
from raysel.numerics.metrics import OUT_OF_SAMPLE_R2, Metric

#: More whole numbers than this are a quantity if most have two samples or one, and this share of
#: them one: such classes could not be divided among folds.
_MOST_CLASSES, _SINGLE = 10, 0.25
#: Number of parts of ordered quantities whose samples count as alike.
_FIFTHS = 5
#: Largest number of quantities that a row describes.
_MOST_SHOWN = 3


class Quantities(Target):
    """One or several numbers a sample; y is (n_samples,) or (n_samples, n_quantities), float64."""

    kind: ClassVar[str] = "quantities"
    task: ClassVar[str] = REGRESSION
    noun: ClassVar[str] = "quantity"
    plural: ClassVar[str] = "quantities"
    default_metric: ClassVar[str] = OUT_OF_SAMPLE_R2
    metric_of_one_sample: ClassVar[str] = "neg_mae"
    metric_of_any_samples: ClassVar[str] = OUT_OF_SAMPLE_R2
    otherwise: ClassVar[str] = (
        "for classes set dataset.task: classification, or cut the quantity into ranges"
    )
    common: ClassVar[str] = "fifth of the quantity"
    one: ClassVar[str] = "a quantity"

    def recognises(self, y: LabelArray) -> bool:
        """Return whether y holds numbers that no classes have."""
        return looks_like_quantity(y)

    def holds(self, y: LabelArray) -> bool:
        """Return whether y is floating-point numbers."""
        return y.dtype.kind == "f"

    def convert(
        self, y: LabelArray, where: str, what: str, *, is_asked: bool
    ) -> tuple[LabelArray, str | None]:
        """Convert y to float64, and note where whole numbers are rounded or may be classes."""
        if y.dtype.kind not in "biuf":
            raise DataError(
                f"{where}: {what} holds {y.ravel()[0]!s}, which is no number, and regression"
                " predicts numbers: name another column by label, or leave dataset.task out for"
                " classes."
            )
        columns = squeeze_column(y)
        floats = read_only(np.ascontiguousarray(columns, dtype=np.float64), columns)
        if y.dtype.kind in "iu" and are_rounded(np.unique(y).tolist()):
            note = (
                f"{what} holds {BEYOND_FLOATS}: subtract the least value, or set dataset.task:"
                " classification."
            )
            if ((np.ptp(floats, axis=0) == 0) & (y != y[0]).any(axis=0)).any():
                raise DataError(f"{where}: {note}")
            return floats, note
        if not is_asked and y.ndim == 1 and (y == np.round(y)).all():
            return floats, (
                f"{what} holds {len(np.unique(y))} different whole numbers and is predicted as a"
                " quantity; for classes set dataset.task: classification"
            )
        return floats, None

    def check(self, y: LabelArray, where: str, what: str) -> None:
        """Check that quantities are finite and vary."""
        if y.ndim not in (1, 2) or not y.size:
            raise DataError(
                f"{where}: y has shape {y.shape}; give one number, or one of each quantity, for"
                " each sample."
            )
        if not np.isfinite(y).all():
            row = int(np.argwhere(~np.isfinite(y))[0][0])
            raise DataError(
                f"{where}: {what} is NaN or infinite in row {row} (counted from 0); leave such"
                " samples out."
            )
        constant = np.flatnonzero(np.ptp(y.reshape(len(y), -1), axis=0) == 0)
        if constant.size:
            which = what if y.ndim == 1 else f"quantity number {constant[0]} of y"
            raise DataError(
                f"{where}: {which} has one value only; a quantity that does not vary cannot be"
                " predicted."
            )

    def names(self, y: LabelArray, column_names: Sequence[str]) -> LabelArray:
        """Return the names of several quantities; none of one."""
        if y.ndim == 2:
            return np.array(column_names)
        return np.empty(0, dtype=np.str_)

    def count(self, y: LabelArray) -> int:
        """Return the number of quantities."""
        return len(self.columns(y))

    def described(self, y: LabelArray, of: str) -> str:
        """Say whether y, which is called `of`, is one quantity or several."""
        if y.ndim == 1:
            return f"{of} is a quantity"
        return f"{of} holds {self.describe(y)}"

    def y_type(self, y: LabelArray) -> str:
        """Return scikit-learn's word for numbers."""
        return "continuous"

    def known(self, y: LabelArray) -> LabelArray:
        """Return the mean of each quantity."""
        return np.asarray(y.mean(axis=0))

    def spread(self, y: LabelArray) -> FloatArray | float:
        """Return the standard deviation of each quantity."""
        return np.asarray(y.std(axis=0))

    def guesses(self, measure: Metric) -> list[str]:
        """Name the mean, or the best constant of a metric of which another may be better."""
        guesses = [MEAN if measure.name in OF_MEAN else BEST_CONSTANT]
        if measure.by_order:
            guesses.append(RANDOM_ORDER)
        return guesses

    def constant(self, name: str, measure: Metric, y: LabelArray) -> Any:
        """Return the model of the mean, or of the best constant."""
        if name == MEAN:
            return DummyRegressor()
        return DummyRegressor(strategy="constant", constant=best_constant_value(measure, y))

    def constant_model(self) -> Any:
        """Return the unfitted model of the mean."""
        return DummyRegressor()

    def ideal(self, measure: Metric, y: LabelArray) -> LabelArray:
        """Return the quantities."""
        return y.copy()

    def for_columns(self, model: Any, y: LabelArray) -> Any:
        """Return the model itself where it takes y, else one for each quantity."""
        takes_y = y.ndim == 1 or get_tags(model).target_tags.multi_output
        if takes_y:
            return model
        return MultiOutputRegressor(model)

    def pairs(self, y: LabelArray, predicted: LabelArray) -> list[Any]:
        """Pair the true and the predicted quantities of each sample."""
        pairs: list[Any] = np.stack([y, predicted], axis=-1).tolist()
        return pairs

    def summarise(self, y: LabelArray, rows: IntArray) -> str:
        """Describe mean and standard deviation of the first quantities."""
        columns = self.columns(y[rows])[:_MOST_SHOWN]
        return "; ".join(f"mean {c.mean():.4g}, SD {c.std():.3g}" for c in columns)

    def describe_values(self, y: LabelArray, column_names: Sequence[str]) -> str:
        """Describe range and mean of each quantity."""
        shown = [f"{c.min():.4g} to {c.max():.4g}, mean {c.mean():.4g}" for c in self.columns(y)]
        names = [f"{name}: " for name in column_names] or [""]
        return listed(name + text for name, text in zip(names, shown, strict=True))

    def describe_strata(self, y: LabelArray, whole: str) -> str:
        """Say of what the quantiles are by which folds are stratified."""
        several = " (of the first principal component of several)" if y.ndim == 2 else ""
        return f"quantiles of {whole or 'the quantity'}{several}"

    def extremes(self, y: LabelArray, names: LabelArray) -> dict[str, IntArray]:
        """Return the samples of the lowest and the highest third."""
        thirds = quantile_strata(y, -(-len(y) // 3))
        return {
            "lowest third": np.flatnonzero(thirds == 0),
            "highest third": np.flatnonzero(thirds == thirds.max()),
        }

    def alike(self, y: LabelArray) -> IntArray:
        """Number the fifth of the samples, in the order of the quantity, to which each belongs."""
        return quantile_strata(y, -(-len(y) // _FIFTHS))

    def untrainable(self, y: LabelArray, rows: IntArray, where: str) -> str:
        """Say so where a quantity does not vary in some samples, called `where`; else ""."""
        constant = len(rows) > 0 and bool((np.ptp(y[rows], axis=0) == 0).any())
        return f"a quantity has one value only in {where}" if constant else ""

    def strata(self, y: LabelArray, member: IntArray, size: int) -> IntArray:
        """Number the quantiles of the means of the units' samples."""
        return quantile_strata(_unit_means(y, member), size)


def looks_like_quantity(y: LabelArray) -> bool:
    """Return whether labels are fractions, or whole numbers that hardly repeat."""
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


def quantile_strata(y: LabelArray, size: int) -> IntArray:
    """Number strata of `size` samples each in the order of y, the last up to twice as many.

    Of several quantities the order is that of the first principal component of their standardised
    values, whose sign is that of its largest coefficient.

    `y` is (n_samples,) or (n_samples, n_quantities).
    """
    if y.ndim == 2:
        spread = y.std(axis=0)
        values = (y - y.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        axis = np.linalg.svd(values, full_matrices=False)[2][0]
        y = values @ (axis * np.sign(axis[np.abs(axis).argmax()]))
    ranks = np.empty(len(y), dtype=np.int64)
    ranks[np.argsort(y, kind="stable")] = np.arange(len(y))
    return np.minimum(ranks // size, max(1, len(y) // size) - 1)


def _unit_means(y: LabelArray, member: IntArray) -> FloatArray:
    """Average the quantities of each unit; (n_units,) or (n_units, n_quantities)."""
    sizes = np.bincount(member)
    means = np.stack(
        [np.bincount(member, weights=column) / sizes for column in y.reshape(len(y), -1).T], axis=1
    )
    return means.reshape(-1, *y.shape[1:])
