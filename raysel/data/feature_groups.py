"""Groups of features: of a table or a mapping, modalities, or columns that correlate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from raysel.config.values import CORRELATED, MODALITIES
from raysel.core.arrays import FloatArray
from raysel.core.errors import ConfigError, DataError, suggestion
from raysel.core.printing import listed
from raysel.data.dataset import Dataset
from raysel.data.formats.compressed import data_suffix
from raysel.data.formats.files import find_data_file
from raysel.data.formats.tables import TABLE_SUFFIXES, open_table
from raysel.data.stored_samples import StoredSamples
from raysel.data.table_rows import TableRows
from raysel.numerics.correlations import correlated_groups

#: Columns of a table of groups.
_FEATURE, _GROUP = "feature", "group"
_EXPECTED = f"dataset.feature_groups names a table with the columns {_FEATURE} and {_GROUP}."


def make_feature_groups(
    given: str | Mapping[str, Any] | None, dataset: Dataset
) -> dict[str, list[int]]:
    """Return the columns of each group by its name; a feature in no group is alone."""
    if given is None:
        return {}
    if given == MODALITIES:
        return _modalities(dataset)
    names = dataset.feature_names[: dataset.n_features - dataset.layout.n_beside]
    if isinstance(given, str):
        return _named(_table_rows(given), names, given)
    if isinstance(at := given.get(CORRELATED), float):
        return _correlated(dataset, at)
    pairs: list[tuple[str, str]] = []
    for name, features in given.items():
        pairs += [(name, feature) for feature in features]
    return _named(pairs, names, "it")


def _modalities(dataset: Dataset) -> dict[str, list[int]]:
    if not dataset.layout.is_multimodal:
        raise ConfigError(
            f"dataset.feature_groups: {MODALITIES}, and {dataset.name} has none; name them and"
            " their widths by dataset.modalities, or give a table of features and groups."
        )
    return {
        name: list(range(columns.start, columns.stop))
        for name, columns in dataset.layout.slices().items()
    }


def _table_rows(path: str) -> list[tuple[str, str]]:
    """Group and feature of each row of a table; a row without a group leaves its feature alone."""
    try:
        found = find_data_file(path, _EXPECTED)
        if data_suffix(found) not in TABLE_SUFFIXES:
            raise DataError(f"{path} is no table: give one of {', '.join(TABLE_SUFFIXES)}.")
        table = open_table(found)[0]
    except DataError as error:
        raise ConfigError(f"dataset.feature_groups: {error}") from error
    for name in (_FEATURE, _GROUP):
        if name not in table.column_names:
            raise ConfigError(
                f"dataset.feature_groups: {path} has no column {name}; it has"
                f" {listed(table.column_names)}. Name one {_FEATURE} and one {_GROUP}."
            )
    rows = zip(table[_GROUP].to_pylist(), table[_FEATURE].to_pylist(), strict=True)
    return [(str(group), str(feature)) for group, feature in rows if group not in (None, "")]


def _named(
    pairs: Iterable[tuple[str, str]], feature_names: Sequence[str], source: str
) -> dict[str, list[int]]:
    columns = {name: column for column, name in enumerate(feature_names)}
    groups: dict[str, list[int]] = {}
    owners: dict[str, str] = {}
    for group, feature in pairs:
        if feature not in columns:
            hint = suggestion(feature, feature_names, "leave it out")
            raise ConfigError(
                f"dataset.feature_groups: {source} names the feature {feature!r} in the group"
                f" {group!r}, and the data have no such feature; {hint}"
            )
        if feature in owners:
            raise ConfigError(
                f"dataset.feature_groups: {source} puts the feature {feature!r} into the group"
                f" {owners[feature]!r} and into {group!r}; keep one of them."
            )
        owners[feature] = group
        groups.setdefault(group, []).append(columns[feature])
    return groups


def _correlated(dataset: Dataset, at: float) -> dict[str, list[int]]:
    """Clusters of two columns of numbers or more; texts and confounds are in none."""
    n_features = dataset.n_features - dataset.layout.n_beside
    names = dataset.feature_names[:n_features]
    columns = np.flatnonzero([name not in dataset.categories for name in names])
    numbers = correlated_groups(_array(dataset)[:, columns], at)
    order = np.argsort(numbers, kind="stable")
    clusters = np.split(columns[order], np.flatnonzero(np.diff(numbers[order])) + 1)
    joined = [cluster.tolist() for cluster in clusters if len(cluster) > 1]
    return {f"cluster {number}": members for number, members in enumerate(joined, 1)}


def _array(dataset: Dataset) -> FloatArray:
    """Samples of which columns correlate, empty cells filled with the column's median."""
    X = dataset.filled
    if isinstance(X, TableRows):
        X = X.filled
    if not isinstance(X, np.ndarray):
        why = "are of several tasks"
        if isinstance(X, StoredSamples):
            why = "stay in their file"
        raise ConfigError(
            f"dataset.feature_groups: correlations are of samples in memory, and those of"
            f" {dataset.name} {why}; give a table of features and groups."
        )
    return X
