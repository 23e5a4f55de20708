"""Data, folds and configurations of a study, as its configuration names them."""

from __future__ import annotations

import re
from pathlib import Path

from raysel.config.schema import EQUAL_SAMPLES, BlocksConfig, DatasetConfig, StudyConfig, TaskConfig
from raysel.core.errors import ConfigError, DataError, DirectoryError
from raysel.data.dataset import Dataset
from raysel.data.layouts import SEPARATOR
from raysel.data.loading import load_dataset
from raysel.data.tasks import join_tasks
from raysel.evaluation.configurations import Configuration, configurations, restrict_to
from raysel.evaluation.plan import NestedPlan
from raysel.evaluation.splitters import Blocks
from raysel.study.own_data import ARRANGEMENT, given, grouped_by_values, raw_data


def load_data(config: StudyConfig, own: Dataset | None = None) -> Dataset:
    """Load the data set of a study, or join those of its tasks, or choose the modalities of one in memory."""
    source, groups = config.dataset, config.cv.groups
    if own is not None:
        return own if source.only is None else Dataset.from_raw(raw_data(own), own.name, only=source.only)
    if source.tasks is None:
        equal = groups == EQUAL_SAMPLES
        dataset = _load(source, None if equal else groups)
        return grouped_by_values(dataset) if equal else dataset
    tasks = {task.name: _load(task, groups) for task in source.tasks}
    return join_tasks(tasks, " + ".join(tasks))


def _load(source: DatasetConfig | TaskConfig, groups: str | None) -> Dataset:
    keys = ("label", "labels", "drop", "delimiter", "mask", "only", *ARRANGEMENT)
    return load_dataset(source.path or source.source or "", groups=groups, **given(source, keys))


def kept_columns(config: StudyConfig) -> list[str]:
    """Return the names of the columns that are accepted as features whatever they look like."""
    tasks, only = config.dataset.tasks or (), config.dataset.only
    # Names of modalities that are not used here, but by other members of a comparison, are no mistake.
    own = [name for name in config.dataset.keep if only is None or re.split(r"[.\[]", name)[0] in only]
    return [*own, *(f"{task.name}{SEPARATOR}{name}" for task in tasks for name in task.keep)]


def blocks_of(config: StudyConfig, dataset: Dataset) -> Blocks | None:
    """Return the blocks of consecutive samples that a study's folds are made of; None if they are of single ones."""
    if config.cv.blocks == BlocksConfig():
        return None
    if dataset.tasks is not None:
        raise DataError("cv.blocks is for one data set, and the rows of several tasks follow none of their files.")
    return Blocks(**config.cv.blocks.model_dump())


def draw_folds(config: StudyConfig, dataset: Dataset, plan: Path | None) -> NestedPlan:
    """Draw a study's folds, or read those of a resumed study or of ``cv.plan``."""
    blocks = blocks_of(config, dataset)
    whole = dataset.groups if blocks is None else blocks.numbers(dataset.n_samples)
    if plan is not None:
        try:
            return NestedPlan.load(plan, dataset.y, whole, final=config.cv.final)
        except ConfigError as error:
            raise DirectoryError(
                f"{plan.parent} cannot be resumed: {str(error).removeprefix('cv.plan: ')} "
                "Undo the change, or start a new study in another directory."
            ) from error
    if config.cv.plan:
        return NestedPlan.load(Path(config.cv.plan), dataset.y, whole, final=config.cv.final)
    return NestedPlan.make(
        dataset.y,
        outer=config.cv.outer,
        inner=config.cv.inner,
        repeats=config.cv.repeats,
        train_per_class=config.cv.train_per_class,
        blocks=blocks,
        groups=dataset.groups,
        seed=config.seed,
        final=config.cv.final,
    )


def list_configurations(config: StudyConfig) -> tuple[Configuration, ...]:
    """List the configurations that a study tries."""
    solver, search = config.solver, config.search
    found = configurations(
        solver.params, solver.space, method=search.method, num_samples=search.num_samples, seed=config.seed
    )
    return tuple(restrict_to(found, search.configurations) if search.configurations else found)
