"""Preparation: steps fitted one after the other to columns of the training samples."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.core.errors import ConfigError, DataError
from raysel.core.printing import by_number
from raysel.data.preparation.joining import ColumnJoiner, ParcelMeans
from raysel.data.preparation.outputs import Outputs, sources, sum_own_statistics
from raysel.data.task_blocks import Samples
from raysel.numerics.column_scores import OwnStatistics

#: Cells of text columns that stand for no value.
_NO_VALUE = ("", "nan", "NaN", "<NA>", "NaT", "None")


#: What a step of another package raises at cells, or at parameters, that it cannot take.
_OF_STEPS = (ValueError, TypeError, AttributeError, LookupError)


class _Columns(NamedTuple):
    """Samples between two steps, and the feature that each column comes from."""

    values: FloatArray
    origin: IntArray
    #: First of the features that each feature is joined with, itself if it is alone.
    joined_to: IntArray


class Preparation(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Steps that fill, encode and transform columns, fitted to training samples.

    A step is its name, its transformer, the features that it transforms, and those that it reads
    beside them.
    """

    #: Feature that each prepared column comes from; shape (n_columns,).
    origin_: IntArray
    #: First of the features that each is joined with; shape (n_features,). None: none are joined.
    joined_to_: IntArray | None = None
    n_features_in_: int
    #: `OwnStatistics`; shape (2, n_features). None without labels, and in models of earlier
    #: versions.
    statistics_: FloatArray | None = None

    def __init__(
        self,
        steps: list[tuple[str, Any, IntArray, IntArray]],
        feature_names: LabelArray,
        categories: dict[str, list[str]] | None = None,
        no_features: IntArray | tuple[()] = (),
        modalities: dict[str, int] | None = None,
        keeps_shape: bool = False,
        groups: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self.steps = steps
        self.feature_names = feature_names  # shape (n_features,)
        self.categories = categories  # texts by the name of the feature
        self.no_features = (
            no_features  # only read by steps: none of their columns is left at the end
        )
        self.modalities = modalities
        self.groups = groups  # features of each group, for a method that takes groups of columns
        self.keeps_shape = (
            keeps_shape  # whether each feature must stay one column, as the cells of a matrix
        )

    @property
    def outputs(self) -> Outputs | None:
        """Columns that the fitted preparation makes; None where each feature is one column."""
        check_is_fitted(self)
        own = None if self.statistics_ is None else OwnStatistics(*self.statistics_)
        outputs = Outputs(self.origin_, self.n_features_in_, own, self.joined_to_)
        if outputs.is_identity:
            return None
        return outputs

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of estimators that hold another arrangement of the prepared columns.

        ``estimator__origin`` is that of a `PermutationImportance`.
        """
        outputs = self.outputs
        if outputs is None:
            return {}
        numbers = np.unique(outputs.origin, return_inverse=True)[1]
        changed: dict[str, Any] = {"estimator__origin": numbers}
        if self.modalities is not None:
            owner = np.repeat(np.arange(len(self.modalities)), list(self.modalities.values()))
            counts = np.bincount(owner[outputs.origin], minlength=len(self.modalities)).tolist()
            changed["modalities"] = dict(zip(self.modalities, counts, strict=True))
        if self.groups is not None:
            changed["groups"] = self._column_groups(outputs, self.groups)
        return changed

    def _column_groups(
        self, outputs: Outputs, groups: Mapping[str, Sequence[int]]
    ) -> dict[str, list[int]]:
        """Columns of each group of features, and of each feature in none that has several."""
        alone = np.ones(outputs.n_features, dtype=bool)
        members = {name: np.asarray(features) for name, features in groups.items()}
        for features in members.values():
            alone[features] = False
        several = np.flatnonzero(alone & (np.bincount(outputs.origin, minlength=len(alone)) > 1))
        members |= {str(self.feature_names[j]): np.array([j]) for j in several.tolist()}
        columns = {name: outputs.columns(features).tolist() for name, features in members.items()}
        return {name: own for name, own in columns.items() if own}

    def with_numbers(self, params: Mapping[str, Any]) -> Self:
        """Return an unfitted copy in which steps have the numbers that a search chose.

        ``params`` has them by the names of the steps.
        """
        made = clone(self)
        for name, transformer, _, _ in made.steps:
            if isinstance(transformer, ParcelMeans) and transformer.n_parcels is None:
                transformer.set_params(n_parcels=params[name])
        return made

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Fit the steps to training samples, (n_samples, n_features)."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: ArrayLike, y: Any = None) -> FloatArray:
        """Fit the steps to training samples, and return these prepared, (n_samples, n_columns)."""
        values = self.numbers(X)
        self.n_features_in_ = values.shape[1]
        self.transformers_: list[Any] = []
        self.sources_: list[IntArray] = []
        prepared = self._run(values, y)
        self._keep_statistics(prepared, y)
        return prepared

    def _keep_statistics(self, prepared: Samples, y: Any) -> None:
        """Find how well each feature tells the labels by itself, where one has several columns."""
        self.statistics_ = None
        if y is not None and len(np.unique(self.origin_)) < len(self.origin_):
            labels, width = np.asarray(y), self.n_features_in_
            own = sum_own_statistics(prepared, labels, self.origin_, width)
            self.statistics_ = np.array(own)

    def transform(self, X: ArrayLike) -> FloatArray:
        """Prepare samples by the fitted steps; returns (n_samples, n_columns)."""
        check_is_fitted(self)
        values = self.numbers(X)
        if values.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {values.shape[1]} features, but {type(self).__name__} is expecting"
                f" {self.n_features_in_} features as input."
            )
        return self._run(values)

    def numbers(self, X: ArrayLike) -> FloatArray:
        """Return samples as numbers: positions of categories, and NaN in cells without a value."""
        array = np.asarray(X)
        if array.dtype.kind in "biuf":
            return np.asarray(array, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != len(self.feature_names):
            raise ValueError(
                f"X has the shape {array.shape}; give {len(self.feature_names)} columns."
            )
        columns = [
            self._column(array[:, i], name) for i, name in enumerate(self.feature_names.tolist())
        ]
        return np.stack(columns, axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> LabelArray:
        """Name each prepared column as its feature, with a number where there are several.

        A column of joined features has the name of the first, and how many more there are.
        """
        check_is_fitted(self)
        n_joined = np.ones(self.n_features_in_, dtype=np.int64)
        if self.joined_to_ is not None:
            n_joined = np.bincount(self.joined_to_, minlength=self.n_features_in_)
        counts = np.bincount(self.origin_, minlength=self.n_features_in_)
        starts = np.concatenate([[0], np.cumsum(counts)])
        names = []
        for place, feature in enumerate(self.origin_.tolist()):
            name = self.feature_names[feature]
            if counts[feature] > 1:
                name = f"{name}[{place - starts[feature]}]"
            if n_joined[feature] > 1:
                name = f"{name} +{n_joined[feature] - 1}"
            names.append(name)
        return np.array(names, dtype=object)

    def _column(self, cells: LabelArray, name: str) -> FloatArray:
        texts = {text: float(i) for i, text in enumerate((self.categories or {}).get(name, ()))}
        numbers = np.empty(len(cells))
        for row, cell in enumerate(cells.tolist()):
            if cell is None or str(cell) in _NO_VALUE:
                numbers[row] = np.nan
            elif isinstance(cell, str) and texts:
                # One more is a category that no sample of the data had.
                numbers[row] = texts.get(cell.strip(), float(len(texts)))
            else:
                try:
                    numbers[row] = float(cell)
                except (TypeError, ValueError) as error:
                    raise ValueError(
                        f"column '{name}' holds {cell!r} in row {row}, which is no number."
                    ) from error
        return numbers

    def _run(self, values: FloatArray, y: Any = None) -> FloatArray:
        """Apply the steps, which are fitted first unless all are."""
        n_features = values.shape[1]
        columns = _Columns(values, np.arange(n_features), np.arange(n_features))
        fitting = len(self.transformers_) < len(self.steps)
        for number, (name, transformer, features, beside) in enumerate(self.steps):
            try:
                with warnings.catch_warnings():
                    # Of categories that no training sample has: their columns are 0.
                    warnings.filterwarnings("ignore", message="Found unknown categories")
                    columns = self._step(
                        columns,
                        number,
                        transformer=transformer,
                        features=features,
                        beside=beside,
                        y=y,
                        fitting=fitting,
                    )
            except ConfigError as error:
                raise ConfigError(f"dataset.prepare: step {number + 1}, {name}: {error}") from error
            except _OF_STEPS as error:
                told = str(error).partition("\n")[0].rstrip(".")
                if "NaN" in told:
                    told += ". Put {impute: median} before it"
                raise DataError(f"dataset.prepare: step {number + 1}, {name}: {told}.") from error
        kept = ~np.isin(columns.origin, self.no_features)
        if not kept.all():
            columns = columns._replace(values=columns.values[:, kept], origin=columns.origin[kept])
        if fitting or not self.steps:
            self.origin_ = columns.origin
            self.joined_to_ = None
            if (columns.joined_to != np.arange(n_features)).any():
                self.joined_to_ = columns.joined_to
            cells = np.setdiff1d(np.arange(self.n_features_in_), self.no_features)
            if self.keeps_shape and not np.array_equal(self.origin_, cells):
                raise ConfigError(
                    "dataset.prepare: the samples are arrays, whose number of cells must stay."
                    " Leave out what adds or removes columns: encode, indicator,"
                    " drop_near_constant, selectors."
                )
        self._check_finite(columns)
        return np.ascontiguousarray(columns.values)

    def _step(
        self,
        columns: _Columns,
        number: int,
        transformer: Any,
        features: IntArray,
        beside: IntArray,
        y: Any,
        *,
        fitting: bool,
    ) -> _Columns:
        places = np.flatnonzero(np.isin(columns.origin, columns.joined_to[features]))
        read = np.flatnonzero(np.isin(columns.origin, beside))
        if not len(places):
            if fitting:
                self.transformers_.append(None)
                self.sources_.append(places)
            return columns
        everything = len(places) == len(columns.origin)
        taken = columns.values
        if not everything:
            taken = taken[:, np.concatenate([places, read])]
        if fitting:
            fitted = clone(transformer)
            if hasattr(fitted, "set_output"):
                fitted.set_output(transform="default")  # whatever scikit-learn's global output is
            if "n_beside" in fitted.get_params(deep=False):
                fitted.set_params(n_beside=len(read))
            made = fitted.fit_transform(taken, y)
        else:
            fitted = self.transformers_[number]
            made = fitted.transform(taken)
        if hasattr(made, "toarray"):
            made = made.toarray()
        made = np.asarray(made, dtype=np.float64)
        if fitting:
            self.transformers_.append(fitted)
            self.sources_.append(sources(fitted, taken.shape[1], made.shape[1]))
        source = self.sources_[number]
        origin, joined_to = columns.origin[places][source], columns.joined_to
        if isinstance(fitted, ColumnJoiner):
            joined_to = self._join(fitted, columns.origin[places], joined_to)
        if everything and len(source) == len(places) and (np.diff(source) > 0).all():
            return _Columns(made, origin, joined_to)
        others = np.setdiff1d(np.arange(len(columns.origin)), places)
        origin = np.concatenate([columns.origin[others], origin])
        order = np.argsort(origin, kind="stable")
        values = np.hstack([columns.values[:, others], made])[:, order]
        return _Columns(values, origin[order], joined_to)

    def _join(self, joiner: ColumnJoiner, origin: IntArray, joined_to: IntArray) -> IntArray:
        """Return to which feature each is joined after a step that has joined columns.

        `origin` is the feature of each column that the step has taken.
        """
        features, counts = np.unique(origin, return_counts=True)
        if counts.max() > 1:
            several = counts.argmax()
            name = self.feature_names[features[several]]
            raise ConfigError(
                f"it takes one column of each feature, and '{name}' has {counts[several]}. Put it"
                " before the step that adds columns, or leave that out."
            )
        is_joined = joiner.labels_ >= 0
        first = np.arange(len(joined_to))
        first[origin[is_joined]] = origin[joiner.first_columns][joiner.labels_[is_joined]]
        return first[joined_to]

    def _check_finite(self, columns: _Columns) -> None:
        lacking = ~np.isfinite(columns.values).all(axis=0)
        if lacking.any():
            names = list(
                dict.fromkeys(self.feature_names[f] for f in columns.origin[lacking].tolist())
            )
            n = len(names)
            raise DataError(
                f"column '{names[0]}'{by_number(n, ' has', f' and {n - 1} more have')} cells"
                " without a value that no step fills; add {impute: median} to dataset.prepare, or"
                " {impute: most_frequent} for text."
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
