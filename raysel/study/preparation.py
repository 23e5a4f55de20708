"""Preparation of a study's columns, made of its configuration and tried out before anything is computed."""

from __future__ import annotations

import warnings

import numpy as np

from raysel.base.models import untrusted_types
from raysel.config.schema import StudyConfig
from raysel.core.errors import ConfigError, DataError
from raysel.data.dataset import Dataset
from raysel.data.preparation.combat import SiteHarmoniser
from raysel.data.preparation.making import make_preparation
from raysel.data.preparation.preparation import Preparation
from raysel.evaluation.plan import NestedPlan

#: Number of samples of each class, or in all of several labels, that a preparation is tried out on.
_TRIED = 25


def preparation_of(config: StudyConfig, dataset: Dataset) -> Preparation | None:
    """Return the unfitted preparation of ``dataset.prepare``; None without steps."""
    source = config.dataset
    if dataset.unprepared and not source.prepare:
        columns = [name for name, texts in dataset.categories.items() if texts]
        what, mend = (
            (f"column '{columns[0]}' holds text", "encode") if columns else ("cells have no value", "{impute: median}")
        )
        raise DataError(f"{dataset.name}: {what}; set dataset.prepare: [{mend}].")
    return make_preparation(source.prepare, dataset.feature_names, dataset.layout, dataset.categories, source.confounds)


def tried_preparation(preparation: Preparation, dataset: Dataset) -> Preparation:
    """Fit a preparation to some samples, and refuse one that leaves gaps, mixes columns, or cannot be stored."""
    X = np.asarray(dataset.X)
    for name, transformer, _, beside in preparation.steps:
        if isinstance(transformer, SiteHarmoniser) and np.isnan(X[:, beside]).any():
            site = dataset.feature_names[beside[0]]
            raise ConfigError(f"dataset.prepare: {name}: '{site}' has empty cells, and each sample is of a site.")
    rows = _some_rows(dataset)
    tried = X[rows]
    # Each column that lacks values somewhere lacks one here, for its gaps must be filled whatever the rows.
    lacking = np.isnan(X).any(axis=0) & ~np.isnan(tried).any(axis=0)
    tried[0, lacking] = np.nan
    with warnings.catch_warnings(action="ignore"):
        preparation.fit_transform(tried, dataset.y[rows])
    if untrusted := untrusted_types(preparation):
        raise ConfigError(
            f"dataset.prepare: a model file must not name {', '.join(untrusted)}, and it must prepare new samples; "
            "use a transformer of scikit-learn in raysel's list, or one of a package that registers it under "
            "raysel.estimators."
        )
    return preparation


def _some_rows(dataset: Dataset) -> np.ndarray:
    if dataset.is_multilabel:
        return np.arange(min(4 * _TRIED, dataset.n_samples))
    return np.sort(np.concatenate([np.flatnonzero(dataset.y == label)[:_TRIED] for label in dataset.classes]))


def check_sites(config: StudyConfig, dataset: Dataset, plan: NestedPlan) -> None:
    """Check that each training set has two samples of every site that ``harmonise`` knows."""
    for step in config.dataset.prepare:
        if "harmonise" not in step:
            continue
        site = step["harmonise"]["site"]
        values = np.asarray(dataset.X)[:, dataset.feature_names.index(site)]
        fewest = min(
            (int((values[train] == one).sum()) for train, _ in plan.training_sets() for one in np.unique(values)),
            default=2,
        )
        if fewest < 2:
            raise ConfigError(
                "dataset.prepare: harmonise learns location and scale of each site from its training samples, and a "
                f"training set has {fewest} of a value of '{site}', where two are needed; set fewer folds, leave such "
                f"samples out, or use residualise with dataset.confounds: [{site}]."
            )
