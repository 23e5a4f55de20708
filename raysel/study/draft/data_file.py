"""What a data file holds: options to read it as it is meant, with reasons and doubts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError
from raysel.core.printing import by_number, listed
from raysel.core.storage.working_copy import shown_place
from raysel.data.dataset import Dataset
from raysel.data.formats.array_files import ARRAY_SUFFIXES, open_arrays
from raysel.data.formats.compressed import data_suffix
from raysel.data.formats.files import ReadOptions, as_labels, find_data_file, is_file
from raysel.data.formats.named_arrays import likely_label_arrays
from raysel.data.formats.nifti import is_nifti, volume_columns
from raysel.data.formats.recognition import FURTHER_ARRAYS, names_batch, names_origin
from raysel.data.formats.table_contents import METADATA_KEY, labelled_rows
from raysel.data.formats.tables import TABLE_SUFFIXES, Opened, open_table, read_table
from raysel.data.loading import BUILTIN_NAMES, as_given, load_dataset, local_data
from raysel.data.targets import LABELS
from raysel.study.draft.choices import FEWEST, rare_labels, too_small_classes
from raysel.study.draft.roles import table_roles, usable_groups
from raysel.study.inspection.arrangement import find_arrangement
from raysel.study.inspection.leaks import inspect, leaking_columns

#: Names, without suffix, of files of labels beside an array of samples.
_LABEL_FILES = ("y", "Y", *FURTHER_ARRAYS)
_LABEL_SUFFIXES = (".npy", ".csv", ".txt")
#: Options of `load_dataset` that a reader of tables takes.
_OF_READER = ("label", "groups", "drop", "drop_unlabelled")
#: Modalities with fewer columns on average are rather names with a point.
_NARROW = 4
#: Fewer samples make scores that depend much on the folds.
_FEW_SAMPLES = 30
#: Columns that a comment names.
_NAMED = 3


@dataclass
class Recognised:
    """Data set of a file, with the options of `load_dataset` that were recognised."""

    path: str
    #: The data on this machine: the copy of a file at a URI, else the path.
    file: str | Path
    options: dict[str, Any] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    #: Why columns are left out.
    reasons: dict[str, str] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)
    dataset: Dataset = field(init=False)

    @property
    def is_builtin(self) -> bool:
        """Whether the path is the name of a built-in data set."""
        return self.path in BUILTIN_NAMES

    @property
    def suffix(self) -> str:
        """Suffix of the file in lower case."""
        return data_suffix(self.file)

    def choose(self, comment: str, **options: Any) -> None:
        """Set options, keep the comment for each, and read the data with them."""
        self.options.update(options)
        self.comments.update(dict.fromkeys(options, comment))
        self.read()

    def read(self, opened: Opened | None = None) -> None:
        """Read the data with the options, of the file or of its table, if that is open already.

        The study prepares cells of text or without a value.
        """
        if opened is None or {"labels", "mask"} & self.options.keys():
            self.dataset = load_dataset(self.path, unprepared=True, **self.options)
            return
        arrangement = dict(self.options)
        of_reader = {name: arrangement.pop(name) for name in _OF_READER if name in arrangement}
        with as_given(self.file, self.path):
            path = find_data_file(self.file)
            raw = read_table(path, ReadOptions(unprepared=True, **of_reader), opened)
            self.dataset = Dataset.from_raw(replace(raw, unprepared=True), str(path), **arrangement)

    @property
    def preparation(self) -> tuple[list[Any], str]:
        """Steps that the data need, and why."""
        dataset = self.dataset
        if not dataset.unprepared:
            return [], ""
        X = np.asarray(dataset.X)
        empty = np.isnan(X).sum(axis=0)
        texts = [name in dataset.categories for name in dataset.feature_names]
        steps: list[Any] = []
        why = []
        if numbers := np.flatnonzero((empty > 0) & ~np.array(texts)).tolist():
            steps.append({"impute": "median"})
            worst = sorted(numbers, key=lambda column: -empty[column])[:_NAMED]
            shown = ", ".join(
                f"{dataset.feature_names[i]} ({empty[i]} of {dataset.n_samples})" for i in worst
            )
            n_empty, n_columns = int(empty[numbers].sum()), len(numbers)
            most = ", most in" if n_columns > _NAMED else ":"
            why.append(
                f"the median of the training samples fills {n_empty}"
                f" {by_number(n_empty, 'cell', 'cells')} ({100 * n_empty / X.size:.2g} % of all) of"
                f" {n_columns} {by_number(n_columns, 'column', 'columns')}{most} {shown}"
            )
        if dataset.categories:
            steps.append("encode")
            why.append(f"text becomes an indicator of each value: {listed(dataset.categories)}")
            if blank := [dataset.feature_names[i] for i in np.flatnonzero((empty > 0) & texts)]:
                why.append(f"an empty cell of text is a value of its own: in {listed(blank)}")
        return steps, "; ".join(why)


def with_reasons(columns: Mapping[str, str]) -> str:
    """Return columns that are left out as text, each with its reason in parentheses."""
    return listed(f"{name or repr(name)} ({reason})" for name, reason in columns.items())


def recognise(
    path: str | Path,
    label: str | None = None,
    labels: str | Path | None = None,
    mask: str | Path | None = None,
) -> Recognised:
    """Recognise what a data file holds."""
    result = Recognised(str(shown_place(path)), local_data(path))
    options, doubts = result.options, result.doubts
    result.comments = {"label": "name of the labels, as given", "labels": "file of the labels"}
    if label is not None:
        options["label"] = label
    if labels is None and (beside := labels_beside(result.file)):
        labels = beside
        doubts.append(f"labels: {beside} was taken for the labels, by its name and length.")
    if labels is not None:
        options["labels"] = shown_place(labels)
    elif label is None and (array := _only_label_array(result)):
        options["label"], result.comments["label"] = array, "array of the labels"
        doubts.append(
            f"label: {array} was taken, the only array with values that repeat; none is called y or"
            " label."
        )
    opened = _opened(result)
    table = opened and _columns(result, opened[0])
    if table is not None and (mask is not None or volume_columns(table)):
        _recognise_volumes(result, table, label, mask)
    elif table is not None and labels is None:
        _recognise_columns(result, table, label)
    result.read(opened)
    is_table = table is not None
    del opened, table  # as much memory as the data
    pa.default_memory_pool().release_unused()
    if result.dataset.layout.is_multitask:
        raise DataError(
            f"{path} holds several tasks, and a study of one is drafted; see the built-in study"
            " faces-mtda."
        )
    if is_table and "mask" not in options:
        _leave_out_columns(result)
    elif not is_table and not result.is_builtin and labels is None:
        _recognise_groups(result)
    _leave_out_small(result)
    _arrange(result)
    if result.dataset.n_samples < _FEW_SAMPLES:
        doubts.append(
            f"cv: with {result.dataset.n_samples} samples the score depends much on the folds; set"
            " cv.repeats to 10, which draws the folds ten times, to see how much."
        )
    return result


def labels_beside(path: str | Path) -> Path | None:
    """Return the file of labels that stands beside an array of samples, by its name."""
    path = Path(path)
    if path.suffix.lower() != ".npy":
        return None
    stems = [*_LABEL_FILES, *(f"{path.stem}_{name}" for name in _LABEL_FILES)]
    if path.stem.startswith("X"):
        stems.insert(0, f"y{path.stem[1:]}")
    elif path.stem.endswith("_X"):
        stems.insert(0, f"{path.stem[:-1]}y")
    there = {file.name for file in find_data_file(path).parent.iterdir() if is_file(file)}
    there.discard(path.name)
    names = map("".join, product(stems, _LABEL_SUFFIXES))
    beside = (path.with_name(name) for name in names if name in there)
    return next(beside, None)


def _mask_beside(path: str | Path) -> Path:
    """The one NIfTI file in the folder of a table that is called a mask."""
    files = sorted(
        p for p in find_data_file(path).parent.iterdir() if "mask" in p.name.lower() and is_nifti(p)
    )
    if len(files) != 1:
        there = f"{len(files)} files called so are" if files else "none is"
        raise DataError(
            f"{path} is a table of NIfTI files, whose features are the voxels of a mask:"
            f" {there} beside it; name it by --mask (mask= in Python)."
        )
    return files[0]


def _only_label_array(result: Recognised) -> str | None:
    """The one array of a file that may be the labels by its values, if none is by its name."""
    if result.suffix not in ARRAY_SUFFIXES:
        return None
    with open_arrays(find_data_file(result.file)) as file:
        likely = [name for name in likely_label_arrays(file) if not names_origin(name)]
    if len(likely) != 1:
        return None
    return likely[0]


def _opened(result: Recognised) -> Opened | None:
    """Open the table in a data file; None if it holds no table."""
    if result.is_builtin or result.suffix not in TABLE_SUFFIXES:
        return None
    return open_table(find_data_file(result.file))


def _columns(result: Recognised, table: Any) -> Any:
    """The table without the columns that it marks as an index; None if `save_dataset` wrote it."""
    if METADATA_KEY in (table.schema.metadata or {}):
        return None
    if twice := [name for name, times in Counter(table.column_names).items() if times > 1]:
        raise DataError(
            f"{result.path}: two columns are called {twice[0]!r}; give each column a different"
            " name."
        )
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    marked = [name for name in index if isinstance(name, str)]
    return table.drop_columns([name for name in marked if name in table.column_names])


def _recognise_volumes(
    result: Recognised, table: Any, label: str | None, mask: str | Path | None
) -> None:
    """Recognise the mask, the labels and the groups of a table of NIfTI files."""
    roles = table_roles(table, label)
    place = shown_place(mask or Path(result.path).with_name(_mask_beside(result.file).name))
    labels = result.options.get("labels")  # which the reader refuses
    options: dict[str, Any] = {"mask": place, "label": roles.label, "groups": roles.groups}
    options["labels"] = labels
    columns = [name for name in (roles.label, *volume_columns(table)) if name]
    _, unlabelled = labelled_rows(table, *columns, of="label or no volume")
    if unlabelled:
        options["drop_unlabelled"], result.comments["drop_unlabelled"] = True, "; ".join(unlabelled)
        result.doubts.append(f"drop_unlabelled: {'; '.join(unlabelled)}.")
    result.options.clear()
    result.options |= {name: value for name, value in options.items() if value}
    result.comments |= {
        "mask": "NIfTI file whose voxels above 0 are the features",
        "label": "column of the labels",
    }
    result.doubts += [doubt for doubt in roles.doubts if not doubt.startswith("drop: ")]
    others = [name for name in table.column_names if name not in {*columns, roles.groups}]
    beside = [name for name in others if name not in roles.drop or names_batch(name)]
    if beside:
        result.doubts.append(
            f"confounds: {listed(beside)} may tell the label. List in dataset.confounds what may:"
            " the study says how well it tells the label alone. To take its effect out of the"
            " voxels, add residualise to dataset.prepare."
        )


def _recognise_columns(result: Recognised, table: Any, label: str | None) -> None:
    """Recognise the columns of a table that are no features."""
    roles = table_roles(table, label)
    options = {"label": roles.label, "groups": roles.groups, "drop": list(roles.drop)}
    result.options |= {name: value for name, value in options.items() if value}
    result.comments["label"] = "column of the labels"
    if roles.unlabelled:
        result.options["drop_unlabelled"] = True
        result.comments["drop_unlabelled"] = roles.unlabelled
        result.doubts.append(f"drop_unlabelled: {roles.unlabelled}.")
    result.reasons |= roles.drop
    result.doubts += roles.doubts
    if len({roles.label, roles.groups, *roles.drop} - {None}) == table.num_columns:
        why = with_reasons(roles.drop)
        raise DataError(
            f"{result.path}: no column is left as a feature: {why}. A feature is a column of"
            " numbers or of text of few values, with few empty cells; remove lines above the names"
            " of the columns."
        )


def _leave_out_columns(result: Recognised) -> None:
    """Leave out further columns that a study would refuse."""
    dataset = result.dataset
    (inspected,) = inspect(dataset)
    leaking = leaking_columns(inspected, dataset)
    if not leaking:
        return
    if len(leaking) == dataset.n_features:
        raise DataError(
            f"{result.path}: no feature is left: each column numbers the rows or holds the label."
        )
    for column, words in leaking.items():
        name = dataset.feature_names[column]
        result.reasons[name] = f"it {words}"
        if column not in inspected.by_row:
            result.doubts.append(
                f"drop: {name} {words}; if it is a measurement, list it in dataset.keep instead."
            )
    result.choose("", drop=list(result.reasons))


def _recognise_groups(result: Recognised) -> None:
    """Recognise an array that tells which samples are of one origin."""
    related: dict[str, LabelArray] = {}
    n_samples = result.dataset.n_samples
    if result.suffix in ARRAY_SUFFIXES:
        with open_arrays(find_data_file(result.file)) as file:
            for name in filter(names_origin, file.names):
                values = as_labels(np.asarray(file.get(name)))
                if values.shape == (n_samples,) and len(np.unique(values)) < n_samples:
                    related[name] = values
    y = result.dataset.y if result.dataset.target.is_one_class else None
    if (groups := usable_groups(related, y, result.doubts)) is not None:
        result.choose("array that tells which samples are of one origin", groups=groups)


def _leave_out_small(result: Recognised) -> None:
    """Leave out classes or labels that are too small for nested folds."""
    dataset = result.dataset
    if dataset.target.kind == LABELS and (rare := rare_labels(dataset.y, dataset.label_names)):
        result.choose("too few samples have or lack them for the folds", exclude_labels=rare)
    if not dataset.target.is_one_class:
        return
    if small := too_small_classes(dataset.y, dataset.groups):
        what = "samples" if dataset.groups is None else "groups"
        result.choose(
            f"fewer than {FEWEST} {what}, too few for nested folds", exclude_classes=small
        )
        result.doubts.append(
            f"exclude_classes: {listed(small)} left out, with fewer than {FEWEST} {what} each."
        )


def _arrange(result: Recognised) -> None:
    """Recognise images in the rows of a matrix, and columns that no modalities are in."""
    dataset, layout = result.dataset, result.dataset.layout
    if layout.is_multimodal and result.suffix in TABLE_SUFFIXES:
        # R writes points for blanks, e.g. Sepal.Length and Sepal.Width.
        names = list(layout.slices())
        if layout.n_features < _NARROW * len(names):
            result.choose(
                "one table, though the names of its columns have points", shape=[layout.n_features]
            )
            result.doubts.append(
                f"shape: the columns are one table; leave shape out if {listed(names)}, before the"
                " points in their names, are modalities."
            )
        return
    if len(layout.grid) != 1 or dataset.target.kind == LABELS or dataset.categories:
        return
    y = dataset.y if dataset.target.is_one_class else None
    arranged = find_arrangement(np.asarray(dataset.filled), y, column_major=result.suffix == ".mat")
    if arranged is None:
        return
    why = (
        f"neighbouring cells correlate by {arranged.correlation:.2f}, any two by"
        f" {arranged.any_two:.2f}"
    )
    options: dict[str, Any] = {"shape": list(arranged.shape)}
    if arranged.order == "F":
        options["order"] = "F"
    result.choose(why, **options)
    if arranged.order == "F":
        result.comments["order"] = "the columns run column by column, as MATLAB stores matrices"
    if dataset.feature_names != tuple(layout.default_names()):
        result.doubts.append(
            "shape: the columns have names, but look like the cells of images; leave shape out if"
            " not."
        )
    if not arranged.order_known:
        result.doubts.append(f"order: {arranged.describe()}")
