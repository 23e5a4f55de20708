"""Scaling by modality, by task or by one range, fitted to a training set only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler, normalize
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.core.arrays import FloatArray, StrOptions, column_blocks, fit_context
from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Layout, Modalities, Tasks
from raysel.data.stored_samples import StoredSamples, Summary
from raysel.data.table_rows import TableRows
from raysel.data.task_blocks import Samples, TaskBlocks, as_samples, as_task_blocks, list_blocks


def modality_layout(modalities: Mapping[str, int] | None, n_features: int) -> Modalities:
    """Make the layout of a parameter ``modalities``, of which None is one modality."""
    try:
        layout = Modalities(modalities or {"all": n_features})
    except DataError as error:
        raise ConfigError(str(error)) from error
    if layout.n_features != n_features:
        raise ConfigError(
            f"modalities {dict(layout.modalities)!r} have {layout.n_features} columns in total,"
            f" but X has {n_features}: every column must belong to exactly one modality."
        )
    return layout


class ModalityScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale modalities of different units and widths to comparable values.

    Parameters
    ----------
    modalities : dict of str to int, default=None
        Number of columns of each modality, in column order. None: all columns are one modality.
    method : str, default="zscore_sqrt_width"
        "zscore": zero mean and unit variance for each feature. "zscore_sqrt_width": z-scores
        divided by the square root of the modality's number of columns, so that every modality has
        the same total variance. "minmax": each feature to [0, 1]. "row_unit": each sample to unit
        l2 norm in each modality. "none": no scaling.

    Attributes
    ----------
    offset_ : ndarray of shape (n_features,)
        Value that is subtracted from each feature.
    scale_ : ndarray of shape (n_features,)
        Value that each feature is divided by afterwards; "row_unit" then normalises the rows.
    n_features_in_ : int
        Number of features of the training set.
    feature_names_in_ : ndarray of str
        Names of the features; only if X had names.

    Examples
    --------
    >>> X = [[0.0, 10.0, 1.0], [2.0, 30.0, 3.0]]
    >>> ModalityScaler({"a": 1, "b": 2}, method="zscore").fit_transform(X)
    array([[-1., -1., -1.],
           [ 1.,  1.,  1.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "modalities": [dict, None],
        "method": [StrOptions({"zscore_sqrt_width", "zscore", "minmax", "row_unit", "none"})],
    }

    offset_: FloatArray
    scale_: FloatArray
    n_features_in_: int

    def __init__(
        self,
        modalities: Mapping[str, int] | None = None,
        method: Literal[
            "zscore_sqrt_width", "zscore", "minmax", "row_unit", "none"
        ] = "zscore_sqrt_width",
    ) -> None:
        self.modalities = modalities
        self.method = method

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Compute offsets and scales from a training set.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : None
            Ignored.

        Returns
        -------
        self
            The fitted scaler.

        Raises
        ------
        ConfigError
            If the numbers of columns of the modalities do not sum to n_features.
        """
        values: FloatArray = validate_data(self, X, dtype=np.float64)
        layout = modality_layout(self.modalities, values.shape[1])
        self.offset_, self.scale_ = np.zeros(values.shape[1]), np.ones(values.shape[1])
        if self.method == "minmax":
            ranges = MinMaxScaler().fit(values)
            self.offset_, self.scale_ = ranges.data_min_, 1.0 / ranges.scale_
        elif self.method.startswith("zscore"):
            moments = StandardScaler().fit(values)
            self.offset_, self.scale_ = moments.mean_, moments.scale_
            if self.method == "zscore_sqrt_width":
                widths = np.array(list(layout.modalities.values()))
                self.scale_ = self.scale_ * np.sqrt(np.repeat(widths, widths))
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Scale samples by the offsets and scales of the training set.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Scaled samples.
        """
        check_is_fitted(self)
        values: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        scaled = values - self.offset_
        scaled /= self.scale_
        if self.method == "row_unit":
            for columns in modality_layout(self.modalities, scaled.shape[1]).slices().values():
                scaled[:, columns] = normalize(scaled[:, columns])
        return scaled


class TaskScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale samples of several tasks, by one range for all tasks or each feature within its task.

    The input and the output are both `TaskBlocks`, or both arrays with NaN outside the columns of a
    sample's own task.
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

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike | TaskBlocks, y: Any = None) -> Self:
        """Compute offsets and scales from a training set."""
        samples = self._validated(X, reset=True)
        blocks = list_blocks(samples)
        if empty := [i for i, block in enumerate(blocks) if not len(block)]:
            raise DataError(
                f"task {list(self.tasks or [''])[empty[0]]!r} has no samples: give samples of every"
                " task."
            )
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
            return self._scaled(np.asarray(samples), slice(None))
        scaled = tuple(self._scaled(block, columns) for _, columns, block in samples.parts())
        for block in scaled:
            block.flags.writeable = False  # TaskBlocks would copy a writable array
        blocks = TaskBlocks(scaled, samples.tasks)
        if isinstance(X, TaskBlocks):
            return blocks
        return blocks.dense()

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
            features = validate_data(
                self, X, dtype=np.float64, reset=reset, ensure_all_finite=finite
            )
        if self.tasks is None:
            if isinstance(features, TaskBlocks):
                raise ConfigError(
                    "tasks=None is for one task, but X holds several: name each task with its"
                    " columns."
                )
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


class UnitScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale all features by one offset and one range, so that the training set lies in [0, 1].

    The transform is ``(X - offset_) / range_``. It preserves the ratios of the features' variances,
    e.g. of the pixels of an image.
    """

    offset_: float
    range_: float

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Compute the offset and the range of a training set."""
        values: FloatArray = validate_data(self, X, dtype=np.float64)
        self.offset_ = float(values.min())
        self.range_ = float(values.max()) - self.offset_ or 1.0
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Scale samples by the training set's range; new samples may lie outside [0, 1]."""
        check_is_fitted(self)
        values: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        scaled = values - self.offset_
        scaled /= self.range_
        return scaled


def make_scaler(name: str, layout: Layout | None = None) -> TransformerMixin:
    """Make an unfitted scaler by name."""
    arrangement = layout.parameters() if layout else {}
    match name:
        case "unit" | "zscore" | "none" if "tasks" in arrangement:
            return TaskScaler(arrangement["tasks"], method=name)
        case "unit":
            return UnitScaler()
        case "zscore":
            return StandardScaler()
        case "none":
            return FunctionTransformer(feature_names_out="one-to-one")
        case "zscore_sqrt_width" | "minmax" | "row_unit" if "tasks" in arrangement:
            raise ConfigError(
                f"scaling {name!r} does not support several tasks; give unit, zscore or none."
            )
        case "zscore_sqrt_width" | "minmax" | "row_unit":
            return ModalityScaler(arrangement.get("modalities"), method=name)
        case _:
            raise ConfigError(
                f"scaling {name!r} is unknown; give unit, zscore, none, zscore_sqrt_width, minmax"
                " or row_unit."
            )


def scale_training(scaler: TransformerMixin, X: Samples) -> Any:
    """Fit a scaler to a training set and scale it, in place and by blocks if it is an array.

    The result and the fitted attributes are those of ``fit_transform`` to the last bit.
    """
    if isinstance(X, StoredSamples):
        return X.scaled(_fitted_to(scaler, X.summary))
    if type(scaler) is not StandardScaler or not isinstance(X, np.ndarray) or not X.shape[1]:
        return scale_in_place(scaler.fit(X), X)
    fitted = [clone(scaler).fit(block) for block in column_blocks(X)]
    scaler.n_features_in_, scaler.n_samples_seen_ = X.shape[1], fitted[0].n_samples_seen_
    for name in ("mean_", "var_", "scale_"):
        setattr(scaler, name, np.concatenate([getattr(part, name) for part in fitted]))
    return scale_in_place(scaler, X)


def _fitted_to(scaler: TransformerMixin, summary: Summary) -> TransformerMixin:
    """Fit a scaler to known statistics, by two samples that have them."""
    if not (
        isinstance(scaler, StandardScaler) or getattr(scaler, "method", "").startswith("zscore")
    ):
        return scaler.fit(np.stack([summary.smallest, summary.largest]))
    # Of a feature that is constant but for rounding scikit-learn leaves the scale at 1, as of one
    # that is constant.
    rounding = (summary.n_samples * np.abs(summary.mean) * np.finfo(np.float64).eps) ** 2
    deviation = np.sqrt(np.where(summary.variance <= rounding, 0.0, summary.variance))
    fitted = scaler.fit(np.stack([-deviation, deviation]))
    if isinstance(fitted, StandardScaler):
        fitted.mean_, fitted.n_samples_seen_ = summary.mean, summary.n_samples
    else:
        fitted.offset_ = summary.mean
    return fitted


def scale_in_place(scaler: TransformerMixin, X: Samples) -> Any:
    """Return samples as ``transform`` scales them; the usual scalers overwrite an array."""
    if isinstance(X, TableRows):
        return X  # the estimator itself prepares their cells
    if isinstance(X, StoredSamples):
        return X.scaled(scaler)
    if isinstance(X, np.ndarray) and X.flags.writeable and X.dtype == np.float64 and len(X):
        if type(scaler) is StandardScaler:
            X -= scaler.mean_
            X /= scaler.scale_
            return X
        if isinstance(scaler, UnitScaler) or (
            isinstance(scaler, ModalityScaler) and scaler.method != "row_unit"
        ):
            X -= scaler.offset_
            X /= scaler.range_ if isinstance(scaler, UnitScaler) else scaler.scale_
            return X
    return as_samples(scaler.transform(X))
