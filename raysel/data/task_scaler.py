"""Scaling of samples of several tasks, fitted on a training set only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.arrays import FloatArray
from raysel.data.layouts import Tasks
from raysel.data.task_blocks import Samples, TaskBlocks, as_task_blocks
from raysel.errors import ConfigError, DataError
from raysel.validation import StrOptions, fit_context


class TaskScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale samples of several tasks, by one range for all tasks or each feature within its task.

    The input and the output are both `TaskBlocks`, or both arrays with NaN outside the columns of a sample's own task.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "tasks": [dict, None],
        "method": [StrOptions({"unit", "zscore", "none"})],
    }

    fitted_shapes: ClassVar[dict[str, str]] = {"offset_": "n_features", "scale_": "n_features"}

    offset_: FloatArray
    scale_: FloatArray
    n_features_in_: int

    def __init__(
        self,
        tasks: Mapping[str, int | tuple[int, ...]] | None = None,
        method: Literal["unit", "zscore", "none"] = "unit",
    ) -> None:
        self.tasks = tasks
        self.method = method

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike | TaskBlocks, y: Any = None) -> Self:
        """Compute offsets and scales from a training set."""
        samples = self._validated(X, reset=True)
        blocks = samples.blocks if isinstance(samples, TaskBlocks) else (samples,)
        if empty := [i for i, block in enumerate(blocks) if not len(block)]:
            raise DataError(f"task {list(self.tasks or [''])[empty[0]]!r} has no samples: give samples of every task.")
        self.offset_, self.scale_ = np.zeros(self.n_features_in_), np.ones(self.n_features_in_)
        if self.method == "unit":
            lowest = min(float(block.min()) for block in blocks)
            self.offset_[:] = lowest
            self.scale_[:] = max(float(block.max()) for block in blocks) - lowest or 1.0
        elif self.method == "zscore":
            moments = [StandardScaler().fit(block) for block in blocks]
            self.offset_ = np.concatenate([fitted.mean_ for fitted in moments])
            self.scale_ = np.concatenate([fitted.scale_ for fitted in moments])
        return self

    def transform(self, X: ArrayLike | TaskBlocks) -> Samples:
        """Scale samples by the offsets and scales of the training set."""
        check_is_fitted(self)
        samples = self._validated(X, reset=False)
        if not isinstance(samples, TaskBlocks):
            return self._scaled(samples, slice(None))
        scaled = tuple(self._scaled(block, columns) for _, columns, block in samples.parts())
        for block in scaled:
            block.flags.writeable = False  # TaskBlocks would copy a writable array
        blocks = TaskBlocks(scaled, samples.tasks)
        return blocks if isinstance(X, TaskBlocks) else blocks.dense()

    def _scaled(self, block: FloatArray, columns: slice) -> FloatArray:
        scaled = block - self.offset_[columns]
        scaled /= self.scale_[columns]
        return scaled

    def _validated(self, X: ArrayLike | TaskBlocks, reset: bool) -> Samples:
        """Validate X; return TaskBlocks if the scaler has tasks, an array otherwise."""
        if isinstance(X, TaskBlocks):
            features: Samples = validate_data(self, X, reset=reset, skip_check_array=True)
        else:
            finite = True if self.tasks is None else "allow-nan"
            features = validate_data(self, X, dtype=np.float64, reset=reset, ensure_all_finite=finite)
        if self.tasks is None:
            if isinstance(features, TaskBlocks):
                raise ConfigError("tasks=None is for one task, but X holds several: name each task with its columns.")
            return features
        layout = Tasks(self.tasks)
        if layout.n_features != features.shape[1]:
            raise ConfigError(
                f"tasks {dict(layout.tasks)!r} have {layout.n_features} columns in total, but X has"
                f" {features.shape[1]}: every column must belong to exactly one task."
            )
        return as_task_blocks(features, layout)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.tasks is not None
        return tags
