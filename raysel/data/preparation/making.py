"""Preparation of a data set, made from the steps of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import isclass
from typing import Any, Final

import numpy as np
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from raysel.config.preparation import SHORT_NAMES, joins_columns, step_name
from raysel.core.arrays import IntArray
from raysel.core.errors import ConfigError, suggestion
from raysel.core.plugins import import_dotted
from raysel.data.formats.files import matching
from raysel.data.layouts import Layout
from raysel.data.preparation.combat import SiteHarmoniser
from raysel.data.preparation.joining import ClusterMeans, ParcelMeans
from raysel.data.preparation.preparation import Preparation
from raysel.data.preparation.steps import (
    JointScaler,
    Log1p,
    NearConstantFilter,
    QuantileClipper,
    Residualiser,
)

_KEY: Final = "dataset.prepare"
_EXAMPLE = "write a dotted name such as sklearn.preprocessing.PowerTransformer."


def make_preparation(
    steps: Sequence[Mapping[str, Any]],
    feature_names: Sequence[str],
    layout: Layout,
    categories: Mapping[str, Sequence[str]],
    confounds: Sequence[str] = (),
) -> Preparation | None:
    """Make the unfitted preparation of steps; None without steps and confounds."""
    if not steps and not confounds:
        return None
    chooser = _Chooser(
        names=feature_names, layout=layout, categories=categories, steps=steps, confounds=confounds
    )
    made = []
    for number, step in enumerate(steps, start=1):
        name = step_name(step)
        try:
            features = chooser.chosen(step)
            if name == "residualise":
                if len(
                    encoded := np.setdiff1d(
                        chooser.confounds[chooser.is_text[chooser.confounds]], chooser.encoded
                    )
                ):
                    made.append(("encode", _one_hot({}), encoded, np.empty(0, dtype=np.int64)))
                made.append((name, Residualiser(), features, chooser.confounds))
            elif name == "harmonise":
                made.append((name, SiteHarmoniser(), features, chooser.named([step[name]["site"]])))
            elif name == "parcels":
                transformer = _parcels(step[name].get("number"), features, layout)
                made.append((name, transformer, features, np.empty(0, dtype=np.int64)))
            else:
                made.append(
                    (name, _transformer(name, step[name]), features, np.empty(0, dtype=np.int64))
                )
        except ConfigError as error:
            raise ConfigError(
                f"{_KEY}: step {number}, {name}: {str(error).removeprefix(f'{_KEY}: ')}"
            ) from error
    chooser.check_encoded()
    texts = {name: list(values) for name, values in categories.items()}
    is_array = layout.has_images or len(layout.grid) > 1
    return Preparation(
        steps=made,
        feature_names=np.array(feature_names, dtype=np.str_),
        categories=texts or None,
        no_features=chooser.no_features,
        modalities=layout.parameters().get("modalities"),
        keeps_shape=is_array and not joins_columns(steps),
    )


class _Chooser:
    """Choice of the features of each step."""

    def __init__(
        self,
        names: Sequence[str],
        layout: Layout,
        categories: Mapping[str, Sequence[str]],
        steps: Sequence[Mapping[str, Any]],
        confounds: Sequence[str],
    ) -> None:
        self._names, self._layout = {name: i for i, name in enumerate(names)}, layout
        self.is_text = np.array([name in categories for name in names])
        self.confounds = self.named(confounds)
        sites = [step["harmonise"]["site"] for step in steps if "harmonise" in step]
        self._sites = self.named(sites)
        self.no_features = np.union1d(self.confounds, self._sites)
        self.encoded: IntArray = np.empty(0, dtype=np.int64)
        if both := set(sites) & set(confounds):
            raise ConfigError(
                f"{_KEY}: {min(both)} is both a confound and the site of harmonise; keep one."
            )

    def chosen(self, step: Mapping[str, Any]) -> IntArray:
        """Features that a step is for, by its ``columns`` or those of the kind that it is for."""
        name, columns = step_name(step), step.get("columns")
        everything = np.arange(len(self._names))
        numbers, texts = np.flatnonzero(~self.is_text), np.flatnonzero(self.is_text)
        if columns is None and name == "impute":
            features = numbers
            if step[name].get("strategy") == "most_frequent":
                features = everything
            return np.setdiff1d(features, self._sites)
        if columns is None and name == "encode":
            features = np.setdiff1d(texts, self._sites)
        elif columns is None and name == "drop_near_constant":
            features = np.setdiff1d(everything, self.no_features)
        elif columns is None:
            features = np.setdiff1d(numbers, self.no_features)
        elif isinstance(columns, Mapping):
            features = self._select_modalities(columns["modality"])
        elif isinstance(columns, str):
            of_kind = {"numbers": numbers, "categories": texts}
            features = np.setdiff1d(of_kind[columns], self._sites)
        else:
            features = self.named(columns)
        if joins_columns([step]):
            features = np.setdiff1d(features, self.no_features)
            self._check_modalities(name, features)
        still_text = np.setdiff1d(features[self.is_text[features]], self.encoded)
        if name in SHORT_NAMES and len(still_text) and name not in ("encode", "drop_near_constant"):
            if name != "impute" or step[name].get("strategy") != "most_frequent":
                raise ConfigError(
                    f"column '{list(self._names)[still_text[0]]}' holds text; encode it before, or"
                    " fill it by {impute: most_frequent}."
                )
        elif name not in ("impute", "drop_near_constant"):
            self.encoded = np.union1d(self.encoded, still_text)
        return features

    def named(self, patterns: Sequence[str]) -> IntArray:
        """Features that have a name, or fit a pattern such as ``*_id``, in their order."""
        names = list(self._names)
        for pattern in patterns:
            if not matching([pattern], names):
                raise ConfigError(
                    f"{_KEY}: the data have no column {pattern}; {suggestion(pattern, names)}"
                )
        return np.array(matching(patterns, names), dtype=np.int64)

    def _select_modalities(self, names: Sequence[str]) -> IntArray:
        slices = self._layout.slices()
        if unknown := [name for name in names if name not in slices]:
            known = suggestion(unknown[0], slices) if slices else "they form no modalities."
            raise ConfigError(f"the data have no modality {unknown[0]}; {known}")
        return np.sort(
            np.concatenate([np.arange(slices[name].start, slices[name].stop) for name in names])
        )

    def _check_modalities(self, name: str, features: IntArray) -> None:
        """Check that columns to join are of one modality."""
        parts = [
            part
            for part, columns in self._layout.slices().items()
            if np.isin(np.arange(columns.start, columns.stop), features).any()
        ]
        if len(parts) > 1:
            raise ConfigError(
                f"it would join columns of the modalities {parts[0]} and {parts[1]}; give each a"
                f" step of its own, e.g. {{{name}: ..., columns: {{modality: {parts[0]}}}}}."
            )

    def check_encoded(self) -> None:
        """Check that no feature is text at the end."""
        left = np.setdiff1d(
            np.flatnonzero(self.is_text), np.union1d(self.encoded, self.no_features)
        )
        if len(left):
            name = list(self._names)[left[0]]
            raise ConfigError(
                f"{_KEY}: column '{name}' holds text; add encode to the steps, or list the column"
                " in dataset.drop."
            )


def _parcels(number: int | None, features: IntArray, layout: Layout) -> ParcelMeans:
    """Make the parcels of those cells of the samples that are among some features."""
    columns = np.full(layout.n_features + 1, -1)
    columns[features] = np.arange(len(features))
    # The last entry is that of cells outside of a mask, whose number is -1.
    cells = columns[layout.arranged(np.arange(layout.n_features), outside=-1)]
    parcels = ParcelMeans(number, cells)
    if number is not None:
        parcels.check()
    return parcels


def _one_hot(values: Mapping[str, Any]) -> OneHotEncoder:
    # One column for two categories: both would tell the same twice.
    return OneHotEncoder(
        min_frequency=values.get("min_frequency"),
        handle_unknown="infrequent_if_exist",
        drop="if_binary",
        sparse_output=False,
    )


def _transformer(name: str, parameters: Mapping[str, Any]) -> Any:
    if name not in SHORT_NAMES:
        return _dotted(name, parameters)
    values = {
        key: parameter.default for key, parameter in SHORT_NAMES[name].parameters.items()
    } | dict(parameters)
    make: dict[str, Callable[[], Any]] = {
        "impute": lambda: _imputer(**values),
        "encode": lambda: _one_hot(values),
        "log1p": Log1p,
        "standardise": JointScaler,
        "clip": lambda: QuantileClipper(tuple(values["quantiles"])),
        "drop_near_constant": lambda: NearConstantFilter(values["share"]),
        "clusters": lambda: ClusterMeans(values["correlation"]),
    }
    return make[name]()


def _imputer(strategy: str, n_neighbors: int, indicator: bool) -> KNNImputer | SimpleImputer:
    # A column without a value in the training samples becomes 0, so that its place stays.
    if strategy == "knn":
        return KNNImputer(
            n_neighbors=n_neighbors, add_indicator=indicator, keep_empty_features=True
        )
    return SimpleImputer(strategy=strategy, add_indicator=indicator, keep_empty_features=True)


def step_class(name: str) -> type[Any]:
    """Import the class of a dotted name, a transformer."""
    cls: type[Any] = import_dotted(
        name, _KEY, example=_EXAMPLE, registered=list(SHORT_NAMES), is_wanted=isclass
    )
    if hasattr(cls, "fit_resample"):
        raise ConfigError(
            f"{name} resamples, and {_KEY} changes columns only: resample in the estimator, e.g."
            " imblearn.ensemble.BalancedRandomForestClassifier, or in an"
            " imblearn.pipeline.Pipeline for NestedSearch."
        )
    if not isclass(cls) or not all(
        hasattr(cls, method) for method in ("fit", "transform", "get_params")
    ):
        raise ConfigError(f"{name} is no transformer, a class with fit and transform; {_EXAMPLE}")
    return cls


def _dotted(name: str, parameters: Mapping[str, Any]) -> Any:
    """Make a transformer of another package; lists become tuples, taken for both."""
    cls = step_class(name)
    given = {
        key: tuple(value) if isinstance(value, list) else value for key, value in parameters.items()
    }
    try:
        return cls(**given)
    except Exception as error:  # a constructor of another package may raise anything
        raise ConfigError(f"{name} cannot be made with these parameters: {error}.") from error
