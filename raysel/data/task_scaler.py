"""Scaling of samples of several tasks, fitted on a training set only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.arrays import FloatArray
from raysel.data.layouts import Tasks
from raysel.data.task_blocks import Samples, TaskBlocks, as_task_blocks
from raysel.errors import ConfigError, DataError
from raysel.validation import StrOptions


class TaskScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale samples of several tasks: by one range for all of them, or each feature within its task.

    It takes `TaskBlocks` and gives TaskBlocks, or takes an array with NaN outside a sample's own task and gives such
    an array.

    Parameters
    ----------
    tasks : dict of str to int or tuple of int, default=None
        Each task's number of columns of X, in column order, or the shape of its samples. None: all of X is one task,
        an array without NaN.
    method : {"unit", "zscore", "none"}, default="unit"
        "unit": the overall range of the training set, of all tasks together, to [0, 1], as `UnitScaler` does.
        "zscore": zero mean and unit variance for each feature, over the samples of its own task. "none": the data as
        they are.

    Attributes
    ----------
    offset_, scale_ : ndarray of shape (n_features,)
        The transform is (X - offset_) / scale_.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X had names

    Examples
    --------
    >>> X = [[0.0, np.nan], [4.0, np.nan], [np.nan, 8.0]]
    >>> TaskScaler({"a": 1, "b": 1}).fit_transform(X)
    array([[0. , nan],
           [0.5, nan],
           [nan, 1. ]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "tasks": [dict, None],
        "method": [StrOptions({"unit", "zscore", "none"})],
    }

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

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike | TaskBlocks, y: Any = None) -> Self:
        """Take offsets and scales from the training set.

        Parameters
        ----------
        X : TaskBlocks or array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ConfigError
            If the tasks do not fit X.
        DataError
            If a task has no samples, or a sample belongs to no task or to several.
        """
        samples = self._validated(X, reset=True)
        blocks = samples.blocks if isinstance(samples, TaskBlocks) else (samples,)
        if empty := [i for i, block in enumerate(blocks) if not len(block)]:
            raise DataError(f"task {list(self.tasks or [''])[empty[0]]!r} has no samples: every task needs its own.")
        self.offset_, self.scale_ = np.zeros(self.n_features_in_), np.ones(self.n_features_in_)
        if self.method == "unit":
            lowest = min(float(block.min()) for block in blocks)
            self.offset_[:] = lowest
            self.scale_[:] = max(float(block.max()) for block in blocks) - lowest or 1.0
        elif self.method == "zscore":
            moments = [StandardScaler().fit(block) for block in blocks]
            self.offset_ = np.concatenate([found.mean_ for found in moments])
            self.scale_ = np.concatenate([found.scale_ for found in moments])
        return self

    def transform(self, X: ArrayLike | TaskBlocks) -> Samples:
        """Shift and divide by what the training set told.

        Parameters
        ----------
        X : TaskBlocks or array-like of shape (n_samples, n_features)

        Returns
        -------
        TaskBlocks or ndarray of shape (n_samples, n_features), as given

        Raises
        ------
        DataError
            If a sample belongs to no task or to several.
        """
        check_is_fitted(self)
        samples = self._validated(X, reset=False)
        if not isinstance(samples, TaskBlocks):
            return self._scaled(samples, slice(None))
        scaled = tuple(self._scaled(block, columns) for _, columns, block in samples.parts())
        for block in scaled:
            block.flags.writeable = False  # else TaskBlocks would copy it
        found = TaskBlocks(scaled, samples.tasks)
        return found if isinstance(X, TaskBlocks) else found.dense()

    def _scaled(self, block: FloatArray, columns: slice) -> FloatArray:
        scaled = block - self.offset_[columns]
        scaled /= self.scale_[columns]
        return scaled

    def _validated(self, X: ArrayLike | TaskBlocks, reset: bool) -> Samples:
        """TaskBlocks where there are tasks, else an array."""
        if isinstance(X, TaskBlocks):
            features: Samples = validate_data(self, X, reset=reset, skip_check_array=True)
        else:
            finite = True if self.tasks is None else "allow-nan"
            features = validate_data(self, X, dtype=np.float64, reset=reset, ensure_all_finite=finite)
        if self.tasks is None:
            if isinstance(features, TaskBlocks):
                raise ConfigError("tasks=None is for one task, X holds several: name each one with its columns.")
            return features
        layout = Tasks(self.tasks)
        if layout.n_features != features.shape[1]:
            raise ConfigError(
                f"tasks {dict(layout.tasks)!r} have {layout.n_features} columns together, X has {features.shape[1]}:"
                " every column belongs to exactly one task."
            )
        return as_task_blocks(features, layout)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.tasks is not None
        return tags
