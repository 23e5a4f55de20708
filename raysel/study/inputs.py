"""Data, folds and configurations of a study, from its configuration or given in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from raysel.config import StudyConfig, load_comparison, load_config
from raysel.config.loading import ConfigT
from raysel.config.plain_data import OWN_DATA
from raysel.config.schema import EQUAL_SAMPLES, BlocksConfig, DatasetConfig, TaskConfig
from raysel.core.arrays import LabelArray
from raysel.core.errors import ConfigError, DataError, DirectoryError
from raysel.data.dataset import Dataset, join_tasks
from raysel.data.formats.files import RawData, as_labels
from raysel.data.layouts import SEPARATOR
from raysel.data.loading import load_dataset
from raysel.data.table_rows import TableRows
from raysel.data.whole_numbers import whole_numbers
from raysel.evaluation.configurations import Configuration, configurations, restrict_to
from raysel.evaluation.plan import NestedPlan
from raysel.evaluation.splitters import Blocks
from raysel.study.inspection.parts import equal_rows

#: Keys of ``dataset`` that a file is read by, which samples in memory have no use for.
_OF_FILES = ("labels", "delimiter", "mask", "table")
#: Keys of ``dataset`` that arrange the columns and choose samples and labels.
ARRANGEMENT = (
    "task",
    "shape",
    "order",
    "modes",
    "modalities",
    "classes",
    "exclude_classes",
    "exclude_labels",
)
#: Keys of ``dataset`` that `load_dataset` takes as they are.
_READING = (
    "label",
    "labels",
    "delimiter",
    "mask",
    "only",
    "drop_unlabelled",
    "table",
    "params",
    *ARRANGEMENT,
)
#: Texts of values that are none.
_EMPTY = ("nan", "<NA>", "NaT")
#: Keys of ``dataset`` that `OwnData.dataset` applies, and that must not be applied again to the
#: written file.
_APPLIED = ("label", "drop", "drop_unlabelled", *ARRANGEMENT)


@dataclass(frozen=True, eq=False)
class OwnData:
    """Samples, labels and groups as a caller gives them."""

    #: Samples; the columns of a frame of pandas or polars are named, and one may hold the labels,
    #: one the groups; shape (n_samples, ...).
    X: Any = None
    #: Labels, or an indicator; None if a column of the frame holds them; shape (n_samples,) or
    #: (n_samples, n_labels).
    y: Any = None
    label: str | None = None
    #: Column of the frame that holds the group of each sample, or the groups; shape (n_samples,).
    groups: Any = None
    data: Dataset | None = None

    def __post_init__(self) -> None:
        if self.data is not None:
            if not isinstance(self.data, Dataset):
                raise ConfigError(
                    f"data is of type {type(self.data).__name__}; give a Dataset, or X and y."
                )
            for name in ("X", "y", "label", "groups"):
                if getattr(self, name) is not None:
                    raise ConfigError(f"data holds samples, labels and groups; leave {name} out.")
        elif self.X is not None:
            self._check_samples()
        elif self:
            raise ConfigError(
                "X is missing: y, label and groups belong to samples that are given as X."
            )

    def _check_samples(self) -> None:
        if isinstance(self.X, str | Path):
            raise ConfigError(
                f"X is {str(self.X)!r}: a file is named by dataset.path; give an array or a data"
                " frame."
            )
        if isinstance(self.X, Dataset):
            raise ConfigError("X is a Dataset; give it as data.")
        if isinstance(self.X, Mapping):
            raise ConfigError(
                "X is a dict: give the descriptors of the samples side by side, e.g."
                " X=np.hstack([A, B]), and their names and widths as dataset.modalities, e.g. {'a':"
                " A.shape[1], 'b': B.shape[1]}."
            )
        if isinstance(self.y, str):
            raise ConfigError(
                f"y is {self.y!r}: give the labels; label={self.y!r} names a column of a data"
                " frame."
            )
        if self.label is not None and self.y is not None:
            raise ConfigError(
                f"y and label={self.label!r} both give the labels; leave one of the two out."
            )
        if _is_frame(self.X):
            return
        if self.label is not None:
            raise ConfigError(
                f"label={self.label!r} names a column, and X is an array; give the labels as y."
            )
        if self.y is None:
            raise ConfigError(
                "y is missing: X is an array and holds no labels; give one label for each sample."
            )
        if isinstance(self.groups, str):
            raise ConfigError(
                f"groups={self.groups!r} names a column, and X is an array; give the groups"
                " themselves."
            )

    def __bool__(self) -> bool:
        """Return whether anything is given."""
        return any(
            value is not None for value in (self.X, self.y, self.label, self.groups, self.data)
        )

    def dataset(self, config: DatasetConfig, groups: str | None) -> Dataset:
        """Make the data set as a configuration arranges it, but with all modalities."""
        if groups == EQUAL_SAMPLES and self.groups is None and self.data is None:
            return grouped_by_values(self.dataset(config, None))
        for key in _OF_FILES:
            if getattr(config, key) is not None:
                raise ConfigError(
                    f"dataset.{key} is for files, and the samples are given in memory; leave it"
                    " out."
                )
        if not config.in_memory:
            raise ConfigError(
                "dataset.in_memory is for files, and the samples are given in memory; leave it out."
            )
        arrangement = given(config, ARRANGEMENT)
        if self.data is None and _is_frame(self.X):
            label: str | tuple[str, ...] | None = self.label
            if self.y is None:
                label = label or config.label
            kept_whole = groups if self.groups is None else self.groups
            named = None
            if isinstance(kept_whole, str):
                named = kept_whole
            return Dataset.from_frame(
                self.X,
                label,
                y=self.y,
                groups=kept_whole,
                drop=config.unread(named),
                drop_unlabelled=config.drop_unlabelled,
                unprepared=bool(config.prepare or config.confounds),
                confounds=config.beside,
                **arrangement,
            )
        raw = self._without_columns(config, groups)
        return Dataset.from_raw(
            replace(raw, unprepared=raw.unprepared or bool(config.prepare or config.confounds)),
            "X",
            confounds=config.beside,
            **arrangement,
        )

    def _without_columns(self, config: DatasetConfig, groups: str | None) -> RawData:
        named = {"dataset.label": config.label, "dataset.drop": config.drop, "cv.groups": groups}
        for key, value in named.items():
            if value:
                mend = "leave it out"
                if key == "cv.groups" and self.data is None:
                    mend += "; give groups"
                raise ConfigError(
                    f"{key} names columns of a table, and the samples are no table: {mend}."
                )
        if self.data is not None:
            return raw_data(self.data)
        members: LabelArray | None = None
        if self.groups is not None:
            members = _labels(self.groups, "groups")
        return RawData(
            X=_samples(self.X),
            y=_labels(self.y, "y"),
            groups=members,
            name="data",
            label=getattr(self.y, "name", None),
        )


def given(section: DatasetConfig | TaskConfig, keys: Sequence[str]) -> dict[str, Any]:
    """Return those of the keys of a section that it has and that are set."""
    return {key: value for key in keys if (value := getattr(section, key, None)) is not None}


def grouped_by_values(dataset: Dataset) -> Dataset:
    """Return the data set with equal samples as groups."""
    return replace(dataset, groups=equal_rows(np.asarray(dataset.X)))


def raw_data(dataset: Dataset) -> RawData:
    """Return the content of a data set, as a reader returns that of a file."""
    names = ("X", "y", "groups", "layout", "feature_names", "name", "label_names", "label", "notes")
    return RawData(
        **{name: getattr(dataset, name) for name in (*names, "categories", "target", "places")},
        unprepared=dataset.unprepared,
    )


def with_data_at(path: str | Path, config: ConfigT, *, written: bool = True) -> ConfigT:
    """Return a configuration of the data at a path; if so ``written``, nothing arranges them."""
    raw = config.to_dict()
    section = dict(raw["dataset"])
    if written:
        for key in _APPLIED:
            section.pop(key, None)
        raw["cv"] = {key: value for key, value in (raw.get("cv") or {}).items() if key != "groups"}
    raw["dataset"] = section | {"path": str(path)}
    if isinstance(config, StudyConfig):
        return load_config(raw)
    return load_comparison(raw)


def found_path(path: str | None, directory: Path) -> str | None:
    """Return where the written samples of a study are, if its directory was moved since."""
    if path is None or Path(path).name != OWN_DATA:
        return path
    # The directory's own file first: another study may have taken the place of one that was moved.
    candidates = (directory / OWN_DATA, Path(path), directory.parent / OWN_DATA)
    return next((str(file.absolute()) for file in candidates if file.exists()), path)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "__getitem__")


def _samples(X: Any) -> Any:
    """Copy the samples as an array, which the data set may keep; rows of a table are not copied."""
    if isinstance(X, TableRows):
        return X
    if hasattr(X, "toarray"):
        raise _sparse("X")
    try:
        return np.array(X)
    except ValueError as error:  # rows of different lengths
        raise DataError(f"X is no array: {error}") from error


def _sparse(what: str) -> DataError:
    return DataError(f"{what} is sparse, and raysel needs all values; give {what}.toarray().")


def _labels(values: Any, what: str) -> LabelArray:
    """Array of labels or groups; objects become text or numbers."""
    if hasattr(values, "toarray"):
        raise _sparse(what)
    try:
        labels = np.asarray(values)
        if labels.dtype.kind == "f" and not hasattr(values, "dtype"):
            labels = np.asarray(values, dtype=object)  # integers beyond 64 bits among others
        labels = as_labels(labels)
    except ValueError as error:
        raise DataError(f"{what} is no array: {error}") from error
    if labels.dtype.kind != "O":
        return labels
    missing = [i for i, value in enumerate(labels.flat) if value is None or str(value) in _EMPTY]
    if missing:
        raise DataError(
            f"{what} has no value in row {missing[0]} (counted from 0); fill it in or remove the"
            " sample."
        )
    kinds = {
        str if isinstance(value, str) else np.asarray(value).dtype.kind for value in labels.flat
    }
    if kinds == {str}:
        return labels.astype(np.str_)
    if labels.ndim == 1 and all(isinstance(value, int | np.integer) for value in labels):
        return whole_numbers(map(int, labels))
    if kinds <= {"b", "i", "u", "f"}:
        return labels.astype(np.float64)
    raise DataError(
        f"{what} mixes text with other values; give whole numbers or text, e.g. {what}.astype(str)."
    )


def load_data(config: StudyConfig, own: Dataset | None = None) -> Dataset:
    """Load the data of a study, join those of its tasks, or choose modalities of its own data."""
    source, groups = config.dataset, config.cv.groups
    if own is not None and source.only is not None:
        return Dataset.from_raw(raw_data(own), own.name, only=source.only)
    if own is not None:
        return own
    if source.tasks is None:
        if groups == EQUAL_SAMPLES and not source.in_memory:
            raise ConfigError(
                f"dataset.in_memory: cv.groups: {EQUAL_SAMPLES} compares samples in memory; leave"
                " one of the two out."
            )
        return _load(source, groups)
    tasks = {task.name: _load(task, groups) for task in source.tasks}
    return join_tasks(tasks, " + ".join(tasks))


def _load(source: DatasetConfig | TaskConfig, groups: str | None) -> Dataset:
    if groups == EQUAL_SAMPLES:
        return grouped_by_values(_load(source, None))
    place, options = source.path or source.source or "", given(source, _READING)
    return load_dataset(
        place,
        groups=groups,
        drop=source.unread(groups),
        unprepared=bool(source.prepare or source.confounds),
        confounds=source.beside,
        in_memory=getattr(source, "in_memory", True),
        **options,
    )


def kept_columns(config: StudyConfig) -> list[str]:
    """Return the names of the columns that are accepted as features whatever they look like."""
    only = config.dataset.only
    # Names of modalities that are not used here, but by other members of a comparison, are no
    # mistake.
    kept = [
        name for name in config.dataset.keep if only is None or re.split(r"[.\[]", name)[0] in only
    ]
    for task in config.dataset.tasks or ():
        kept += [f"{task.name}{SEPARATOR}{name}" for name in task.keep]
    return kept


def make_blocks(config: StudyConfig, dataset: Dataset) -> Blocks | None:
    """Return the blocks of consecutive samples that folds are made of; None for single ones."""
    if config.cv.blocks == BlocksConfig():
        return None
    if dataset.tasks is not None:
        raise DataError(
            "cv.blocks is for one data set, and the rows of several tasks follow none of their"
            " files."
        )
    return Blocks(**config.cv.blocks.model_dump())


def draw_folds(config: StudyConfig, dataset: Dataset, plan: Path | None) -> NestedPlan:
    """Draw a study's folds, or read those of a resumed study or of ``cv.plan``."""
    blocks = make_blocks(config, dataset)
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
        outer=_n_outer(config, dataset, whole),
        inner=config.cv.inner,
        repeats=config.cv.repeats,
        train_per_class=config.cv.train_per_class,
        blocks=blocks,
        groups=dataset.groups,
        seed=config.seed,
        final=config.cv.final,
    )


def _n_outer(config: StudyConfig, dataset: Dataset, whole: LabelArray | None) -> int:
    """Return the number of outer folds; to leave one out, that of samples, groups or blocks."""
    if isinstance(config.cv.outer, int):
        return config.cv.outer
    return dataset.n_samples if whole is None else len(np.unique(whole))


def list_configurations(config: StudyConfig) -> tuple[Configuration, ...]:
    """List the configurations that a study tries."""
    solver, search = config.solver, config.search
    all_of_space = configurations(
        solver.params,
        solver.space,
        method=search.method,
        num_samples=search.num_samples,
        seed=config.seed,
    )
    if search.configurations:
        return tuple(restrict_to(all_of_space, search.configurations))
    return tuple(all_of_space)
