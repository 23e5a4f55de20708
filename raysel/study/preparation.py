"""Preparation of a study's columns, made as its configuration says and tried out beforehand."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np

from raysel.base.models import untrusted_types
from raysel.config.schema import DatasetConfig, StudyConfig, TaskConfig
from raysel.core.arrays import FloatArray, IntArray
from raysel.core.errors import ConfigError, DataError
from raysel.data.dataset import Dataset
from raysel.data.formats.files import matching
from raysel.data.layouts import SEPARATOR
from raysel.data.preparation.combat import SiteHarmoniser
from raysel.data.preparation.joining import ParcelMeans
from raysel.data.preparation.making import make_preparation
from raysel.data.preparation.preparation import Preparation
from raysel.data.preparation.tasks import TaskPreparation
from raysel.data.targets import find_target
from raysel.data.task_blocks import iter_parts
from raysel.evaluation.plan import NestedPlan

#: Number of samples of each class, or in all of several labels, that a preparation is tried out on.
_TRIED = 25
#: What fills empty cells.
_IMPUTE = "{impute: median}"


def build_preparation(config: StudyConfig, dataset: Dataset) -> Preparation | None:
    """Return the unfitted preparation of ``dataset.prepare``, for each task its own, or None."""
    sections: dict[str, DatasetConfig | TaskConfig] = {
        task.name: task for task in config.dataset.tasks or ()
    }
    known = dataset.feature_names
    missing = [name for name in config.dataset.beside if not matching([name], known)]
    if dataset.groups is not None and missing:
        step = "residualise" if missing[0] in config.dataset.confounds else "harmonise"
        raise ConfigError(
            f"dataset.prepare: {step}: the data have no column {missing[0]} beside the groups. It"
            " needs training samples of every value, and cv.groups keeps those of one in one fold."
            f" Leave cv.groups out to score on the same values, or {step} to score on others."
        )
    blocks = dataset.layout.blocks()
    made: dict[str, Preparation | None] = {}
    for task, (columns, layout) in blocks.items():
        # Data in memory hold tasks that the configuration does not know.
        section = sections.get(task, config.dataset)
        start, where = "", dataset.name
        if task:
            start, where = f"{task}{SEPARATOR}", f"{dataset.name}, task {task}"
        names = dataset.feature_names[columns]
        texts = {
            name.removeprefix(start): dataset.categories[name]
            for name in names
            if name in dataset.categories
        }
        plain = [name.removeprefix(start) for name in names]
        made[task] = make_preparation(
            section.prepare, plain, layout=layout, categories=texts, confounds=section.confounds
        )
        block = next(
            block for _, part, block in iter_parts(dataset.excerpt.X) if part.start == columns.start
        )
        if made[task] is None and dataset.unprepared and (texts or np.isnan(block).any()):
            what, mend = "cells have no value", _IMPUTE
            if texts:
                what, mend = f"column '{min(texts)}' holds text", "encode"
            raise DataError(f"{where}: {what}; set dataset.prepare: [{mend}].")
    if "" in made:
        return made[""]
    if not any(made.values()):
        return None
    return TaskPreparation(made, dataset.layout.parameters()["tasks"])


def prepared_parts(
    preparation: Preparation, dataset: Dataset
) -> Iterator[tuple[Preparation, IntArray, FloatArray]]:
    """Yield the preparation of each task that has one, and positions and values of its samples."""
    own: list[Preparation | None] = [preparation]
    if isinstance(preparation, TaskPreparation):
        own = list(preparation.preparations.values())
    for part, (rows, _, block) in zip(own, iter_parts(dataset.X), strict=True):
        if part is not None:
            yield part, rows, block


def tried_preparation(preparation: Preparation, dataset: Dataset) -> Preparation:
    """Fit a preparation to some samples; refuse one with gaps, or that cannot be stored."""
    for part, rows, X in prepared_parts(preparation, dataset):
        for name, transformer, _, beside in part.steps:
            if isinstance(transformer, SiteHarmoniser) and np.isnan(X[:, beside]).any():
                site = part.feature_names[beside[0]]
                raise ConfigError(
                    f"dataset.prepare: {name}: '{site}' has empty cells, and each sample is of a"
                    " site."
                )
        y = dataset.y[rows]
        few = find_target(y).few(y, _TRIED)
        for _, transformer, _, beside in part.steps:
            if isinstance(transformer, SiteHarmoniser):
                # It needs two samples of each site, of which few may hold one; `check_sites` names
                # the others.
                sites = X[:, beside[0]]
                _, site, counts = np.unique(sites, return_inverse=True, return_counts=True)
                if counts.max() > 1:
                    few = np.flatnonzero(counts[site] > 1)
        tried = X[few]
        # Each column that lacks values somewhere lacks one here, for its gaps must be filled
        # whatever the rows.
        tried[0, np.isnan(X).any(axis=0) & ~np.isnan(tried).any(axis=0)] = np.nan
        with warnings.catch_warnings(action="ignore"):
            part.fit(tried, y[few])
        if untrusted := untrusted_types(part):
            raise ConfigError(
                f"dataset.prepare: a model file cannot hold {', '.join(untrusted)}, and it must"
                " prepare new samples; use a transformer whose fitted attributes are arrays,"
                " numbers, text and estimators."
            )
    if isinstance(preparation, TaskPreparation):
        with warnings.catch_warnings(action="ignore"):
            preparation.fit(dataset.X, dataset.y)
    return preparation


def check_numbers(preparations: Iterable[Preparation | None]) -> None:
    """Check the numbers of steps that configurations search."""
    for preparation in preparations:
        for _, transformer, *_ in getattr(preparation, "steps", ()):
            if isinstance(transformer, ParcelMeans):
                transformer.check()


def check_sites(preparation: Preparation, dataset: Dataset, plan: NestedPlan) -> None:
    """Check that each training set has two samples of every site that ``harmonise`` knows."""
    for part, rows, X in prepared_parts(preparation, dataset):
        for _, transformer, _, beside in part.steps:
            if not isinstance(transformer, SiteHarmoniser):
                continue
            column, values = part.feature_names[beside[0]], np.full(dataset.n_samples, np.nan)
            values[rows] = X[:, beside[0]]
            trains = [train for train, _ in plan.training_sets()]
            counts = (
                (int((values[train] == one).sum()), one)
                for train, one in product(trains, np.unique(values[rows]))
            )
            fewest, site = min(counts, default=(2, 0.0))
            if fewest < 2:
                texts = dataset.categories.get(column)
                of = f"the {int((values == site).sum())} samples with '{column}' "
                of += texts[int(site)] if texts else f"{site:g}"
                mend = "set fewer folds, leave such samples out"
                if dataset.groups is not None:
                    mend = (
                        "set fewer folds, leave such samples out, or cv.groups if it keeps whole"
                        " sites in one fold"
                    )
                raise ConfigError(
                    "dataset.prepare: harmonise needs two training samples of each site, and a"
                    f" training set has {fewest} of {of}. To mend it, {mend}, or use residualise"
                    f" with dataset.confounds: [{column}]."
                )
