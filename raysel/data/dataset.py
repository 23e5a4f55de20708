"""Immutable, validated data sets: samples, target and layout; and several joined as tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.core.errors import DataError
from raysel.data.assembling import arrange
from raysel.data.dataset_checks import validated_parts
from raysel.data.formats.compressed import data_stem
from raysel.data.formats.files import RawData
from raysel.data.layouts import SEPARATOR, Layout, Tasks
from raysel.data.stored_samples import StoredSamples
from raysel.data.targets import Target
from raysel.data.task_blocks import (
    Samples,
    TaskBlocks,
    constant_features,
    dense,
    filled_columns,
    list_blocks,
)
from raysel.numerics.permutation import LabelPermutations

#: Number of float64 values that are padded at once for the hash: 8 MiB.
_HASHED_VALUES = 2**20
#: Bytes of the samples that are looked at in place of those that stay in their file.
_EXCERPT = 2**25


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Immutable data set for feature selection, validated at construction.

    Parameters
    ----------
    X : array of numbers, shape (n_samples, n_features), StoredSamples, or TaskBlocks
        Samples, finite; `TaskBlocks` if and only if the layout is `Tasks`. Stored as read-only,
        C-contiguous float64; a writable array is copied. `StoredSamples` stay in their file.
    y : array of shape (n_samples,), or (n_samples, n_labels) of 0 and 1, or quantities
        Labels: integers (stored as int64) or text; ``task/label`` if the layout is `Tasks`.
        Quantities: finite numbers of shape (n_samples,) or (n_samples, n_quantities), stored as
        float64.
    layout : Layout
        Arrangement of the columns, e.g. ``Matrix(32, 32)``.
    name : str, default="data"
        Name in messages and tables; not part of ``content_hash``.
    groups : array of shape (n_samples,), default=None
        Group of each sample, e.g. a patient or a video. Samples of one group are never split
        between training and test set. None: every sample may be split from every other.
    feature_names : sequence of str, default=()
        Name of each column. Empty: the default names of the layout.
    label_names : sequence of str, default=()
        Name of each column of an indicator or of several quantities. Empty: the column numbers.
        Ignored for one label.
    label : str, default=None
        Name of the column or array that the labels come from; not part of ``content_hash``.
    notes : tuple of str, default=()
        Sentences on what was recognised or left out when the data were read; not part of
        ``content_hash``.
    categories : mapping of str to sequence of str, default={}
        Texts of the columns that hold categories, by the column's name; X holds their positions,
        counted from 0.
    unprepared : bool, default=False
        Whether X may hold NaN for cells without a value, and categories. A study fills and encodes
        them by the steps of ``dataset.prepare``, fitted on each training set. False again for data
        that hold neither.
    target : Target, or its kind "classes", "labels" or "quantities", default=None
        What y is: one class for each sample, an indicator of labels, or numbers that are predicted
        as such. None: found from the values, see `raysel.data.targets`.
    n_unlabelled : int, default=0
        Number of samples that were left out unasked because their label is NaN; not part of
        ``content_hash``.
    places : mapping of str to array of shape (n_samples,), default={}
        Columns that are no features and tell where each sample was measured; looked at by remarks
        only, and not part of ``content_hash``.

    Raises
    ------
    DataError
        If the shapes do not match, X holds infinity, values that are not numbers, or NaN unless
        ``unprepared``, a name is repeated, y or one of its tasks has fewer than two classes, or a
        quantity is missing or has one value only.

    Examples
    --------
    >>> import numpy as np
    >>> from raysel.data.layouts import Matrix
    >>> data = Dataset(np.eye(4), ["a", "b", "a", "b"], Matrix(2, 2), name="eye")
    >>> data
    Dataset('eye', 4 samples x 4 features, 2 classes, Tensor(shape=(2, 2)))
    >>> data.feature_names[:2], data.classes.tolist()
    (('r0c0', 'r0c1'), ['a', 'b'])
    """

    X: Samples
    y: LabelArray
    layout: Layout
    name: str = "data"
    groups: LabelArray | None = None
    feature_names: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ()
    label: str | None = None
    notes: tuple[str, ...] = ()
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unprepared: bool = False
    target: Target = None  # type: ignore[assignment]
    n_unlabelled: int = 0
    places: Mapping[str, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in validated_parts(**vars(self)).items():
            object.__setattr__(self, name, value)  # the dataclass is frozen

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        label: str | Sequence[str] | None = None,
        *,
        y: ArrayLike | None = None,
        groups: str | ArrayLike | None = None,
        drop: Collection[str] = (),
        name: str = "data",
        task: Literal["regression", "classification"] | None = None,
        shape: Sequence[int] | None = None,
        order: Literal["C", "F"] = "C",
        modes: Sequence[str] | None = None,
        modalities: Mapping[str, int] | None = None,
        only: Collection[str] | None = None,
        classes: Collection[str | int] | None = None,
        exclude_classes: Collection[str | int] = (),
        exclude_labels: Collection[str] = (),
        unprepared: bool = False,
        drop_unlabelled: bool = False,
        confounds: Sequence[str] = (),
    ) -> Dataset:
        """Make a data set of a data frame, whose columns name the features.

        Parameters
        ----------
        frame : pandas.DataFrame, polars.DataFrame, pyarrow.Table, or ``__arrow_c_stream__``
            One row for each sample. The index of a pandas data frame is no feature.
        label : str or sequence of str, default=None
            Column of the labels, or columns of several quantities. None: the column y, label,
            target or class, in any case.
        y : array-like of shape (n_samples,), or (n_samples, n_labels) of 0 and 1, default=None
            Labels, or one or several quantities, if they are not in the frame.
        groups : str or array-like of shape (n_samples,), default=None
            Column of the groups (or a level of the index of a pandas data frame), or the groups
            themselves.
        drop : collection of str, default=()
            Columns that are neither features nor labels.
        name : str, default="data"
            Name of the data set.
        task, shape, order, modes, modalities, only, classes, exclude_classes, exclude_labels, \
unprepared, drop_unlabelled, confounds
            As for `load_dataset`.

        Returns
        -------
        Dataset

        Raises
        ------
        DataError
            If a name is unknown, no column is that of the labels, or a feature is no number or has
            missing values, unless ``unprepared``.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"age": [61, 45, 70], "weight": [71.5, 80, 64]})
        >>> frame["diagnosis"] = ["ad", "cn", "ad"]
        >>> data = Dataset.from_frame(frame, label="diagnosis")
        >>> data.feature_names, data.classes.tolist()
        (('age', 'weight'), ['ad', 'cn'])
        """
        from raysel.data.formats.tables import SOURCE, frame_data  # noqa: PLC0415 - loads pandas

        return cls.from_raw(
            frame_data(
                frame,
                label,
                y=y,
                groups=groups,
                drop=drop,
                name=name,
                unprepared=unprepared,
                drop_unlabelled=drop_unlabelled,
                confounds=confounds,
            ),
            SOURCE,
            task=task,
            shape=shape,
            order=order,
            modes=modes,
            modalities=modalities,
            only=only,
            classes=classes,
            exclude_classes=exclude_classes,
            exclude_labels=exclude_labels,
            confounds=confounds,
        )

    @classmethod
    def from_raw(cls, raw: RawData, source: str, **arrangement: Any) -> Dataset:
        """Make a data set of the raw content of a file, as a reader returns it.

        Parameters
        ----------
        raw : RawData
            Content of the file; its arrays may be modified.
        source : str
            Path or name of the source, for error messages and, without its folder and suffix, as
            the data set's name if the content has none.
        **arrangement
            ``task``, ``shape``, ``order``, ``modalities``, ``only``, ``classes``,
            ``exclude_classes``, ``exclude_labels`` and ``confounds`` as for `load_dataset`.

        Returns
        -------
        Dataset
            The validated data set.

        Raises
        ------
        DataError
            If the arrangement does not fit the columns, a name is unknown, or values are invalid.
        """
        arranged = arrange(raw, source, **arrangement)
        try:
            parts = dict(vars(arranged), name=arranged.name or data_stem(source))
            return cls(**{part.name: parts[part.name] for part in fields(cls)})
        except MemoryError as error:
            raise DataError(
                f"{source} is too large for the memory of this machine: {error}."
            ) from error

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, {self.n_samples} samples x {self.n_features} features, "
            f"{self.describe_target()}, {self.layout!r})"
        )

    def describe_target(self) -> str:
        """Describe the kind and number of what is predicted, e.g. ``"3 classes"``."""
        return self.target.describe(self.y)

    def permutations(self, blocks: IntArray | None = None) -> LabelPermutations:
        """Return the permutations of the labels within groups, tasks, or blocks (n_samples,)."""
        return self.target.permutations(self.y, self.groups, self.tasks, blocks)

    @property
    def n_samples(self) -> int:
        """Number of rows of X."""
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        """Number of columns of X, those that are no features among them."""
        return self.X.shape[1]

    @cached_property
    def classes(self) -> LabelArray:
        """Classes, sorted, or names of the labels or of several quantities; none for one."""
        return self.target.names(self.y, self.label_names)

    @property
    def tasks(self) -> IntArray | None:
        """Task of each sample, as a position in the layout's tasks; None for data of one task."""
        if isinstance(self.X, TaskBlocks):
            return self.X.tasks
        return None

    @cached_property
    def filled(self) -> Samples:
        """X with the column's median, or one category more, in place of NaN; X where none is.

        It is looked at by what describes the data, and no model is fitted to it.
        """
        if not self.unprepared:
            return self.X
        widths = np.cumsum([0, *(block.shape[1] for block in list_blocks(self.X))]).tolist()
        blocks = tuple(
            filled_columns(
                block,
                [len(self.categories.get(name, ())) for name in self.feature_names[start:stop]],
            )
            for block, start, stop in zip(list_blocks(self.X), widths, widths[1:], strict=False)
        )
        if isinstance(self.X, TaskBlocks):
            return TaskBlocks(blocks, self.X.tasks)
        return blocks[0]

    @cached_property
    def excerpt(self) -> Dataset:
        """The data set or, of samples in their file, some at even distances and one of each class.

        It is looked at by what describes the data, and no model is fitted to it.
        """
        if not isinstance(self.X, StoredSamples):
            return self
        n = max(1, min(self.n_samples, _EXCERPT // (8 * self.n_features)))
        even = np.linspace(0, self.n_samples - 1, n).astype(np.int64)
        rows = np.unique(np.concatenate([even, self.target.examples(self.y)]))
        groups = None if self.groups is None else self.groups[rows]
        places = {name: values[rows] for name, values in self.places.items()}
        return replace(self, X=self.X[rows].array(), y=self.y[rows], groups=groups, places=places)

    def parts(self) -> dict[str, FloatArray]:
        """Columns of numbers, `filled`, of each modality, task on its samples, or of all by ""."""
        features = slice(0, self.layout.n_features - self.layout.n_beside)
        slices = self.layout.slices() or {"": features}
        parts = list(list_blocks(self.filled))
        if not self.layout.is_multitask:
            parts = [parts[0][:, columns] for columns in slices.values()]
        found = {}
        for (name, columns), part in zip(slices.items(), parts, strict=True):
            numbers = np.array(
                [feature not in self.categories for feature in self.feature_names[columns]]
            )
            if numbers.all():
                found[name] = part
            elif numbers.any():
                found[name] = part[:, numbers]
        return found

    @cached_property
    def constant(self) -> BoolArray:
        """Mask of the features with one value over all samples of their task: (n_features,)."""
        return constant_features(self.X)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of all but names of data set and label, and notes, whatever the file's format."""
        digest = hashlib.sha256()
        described: dict[str, Any] = {
            "layout": self.layout.hashed(),
            "feature_names": self.layout.hashed_names(self.feature_names),
            "label_names": self.label_names,
            "shapes": [self.X.shape, self.y.shape],
            "y": self.y.tolist(),
            "groups": None if self.groups is None else self.groups.tolist(),
        }
        if self.categories:
            described["categories"] = dict(self.categories)
        digest.update(json.dumps(described, sort_keys=True).encode())
        if isinstance(self.X, StoredSamples):
            for (
                _,
                values,
            ) in self.X.row_blocks():  # in the order of the samples, which is that of the file
                digest.update(values.astype("<f8", copy=False).data)
            return digest.hexdigest()
        # For several tasks the padded array is hashed in pieces, because it may be much larger than
        # the blocks.
        rows = max(1, _HASHED_VALUES // self.n_features)
        for start in range(0, self.n_samples, rows):
            values = dense(self.X[start : start + rows])
            if self.unprepared:  # NaN has many bit patterns
                values = np.where(np.isnan(values), np.nan, values)
            digest.update(values.astype("<f8", copy=False).data)
        return digest.hexdigest()


def join_tasks(tasks: Mapping[str, Dataset], name: str = "tasks") -> Dataset:
    """Join data sets into one data set of several tasks, without copying their samples.

    Parameters
    ----------
    tasks : mapping of str to Dataset
        Data set of each task by the task's name; at least two, each single-label and of one task.
    name : str, default="tasks"
        Name of the joined data set.

    Returns
    -------
    Dataset
        Data set of layout `Tasks`. Labels and groups read ``task/label``, so that equal labels of
        two tasks remain different.

    Raises
    ------
    DataError
        If there are fewer than two tasks, a name contains ``/``, a data set is multi-label or has
        several tasks, or only some data sets have groups.

    Examples
    --------
    >>> from raysel.data.loading import load_dataset
    >>> joined = join_tasks({"flowers": load_dataset("iris"), "wines": load_dataset("wine")})
    >>> joined.X.shape, joined.classes[:2].tolist()
    ((328, 17), ['flowers/0', 'flowers/1'])
    """
    if not isinstance(tasks, Mapping) or not all(
        isinstance(data, Dataset) for data in tasks.values()
    ):
        raise DataError(
            "tasks must be a dict of data sets by name, e.g. {'flowers': Dataset(X, y), ...}."
        )
    if len(tasks) < 2:
        raise DataError(
            f"tasks holds {len(tasks)} data set(s): give at least two, or use a single data set"
            " directly."
        )
    if invalid := [key for key in tasks if SEPARATOR in key]:
        raise DataError(
            f"the task name {invalid[0]!r} contains {SEPARATOR!r}; choose another name."
        )
    if others := [key for key, data in tasks.items() if not data.target.is_one_class]:
        raise DataError(
            f"task {others[0]} has {tasks[others[0]].target.one} as y; several tasks take one"
            " class for each sample."
        )
    grouped = [key for key, data in tasks.items() if data.groups is not None]
    if grouped and len(grouped) < len(tasks):
        raise DataError(
            f"only {', '.join(grouped)} of the tasks have groups; give groups for all tasks or for"
            " none."
        )
    shapes: dict[str, int | tuple[int, ...]] = {}
    for key, data in tasks.items():
        shapes[key] = data.n_features
        if len(data.layout.grid) > 1:
            shapes[key] = data.layout.grid
            if data.layout.n_beside:
                raise DataError(
                    f"task {key} has confounds beside arrays, which several tasks do not take;"
                    " leave its confounds out."
                )
    layout = Tasks(shapes)
    blocks = tuple(
        np.asarray(data.X) for data in tasks.values() if not isinstance(data.X, TaskBlocks)
    )
    if len(blocks) < len(tasks):
        raise DataError(
            "tasks holds a data set that has several tasks itself: join the single data sets at"
            " once."
        )
    owners = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
    groups = {key: data.groups for key, data in tasks.items() if data.groups is not None}
    names: list[str] = []
    notes: list[str] = []
    categories: dict[str, tuple[str, ...]] = {}
    for key, data in tasks.items():
        start = f"{key}{SEPARATOR}"
        names += [f"{start}{feature}" for feature in data.feature_names]
        notes += [f"task {key}: {note}" for note in data.notes]
        categories |= {f"{start}{feature}": texts for feature, texts in data.categories.items()}
    return Dataset(
        X=TaskBlocks(blocks, owners),
        y=_prefixed({key: data.y for key, data in tasks.items()}),
        layout=layout,
        name=name,
        groups=_prefixed(groups) if groups else None,
        feature_names=tuple(names),
        notes=tuple(notes),
        n_unlabelled=sum(data.n_unlabelled for data in tasks.values()),
        categories=categories,
        unprepared=any(data.unprepared for data in tasks.values()),
    )


def _prefixed(values: Mapping[str, LabelArray]) -> LabelArray:
    return np.concatenate(
        [np.char.add(f"{key}{SEPARATOR}", array.astype(np.str_)) for key, array in values.items()]
    )
