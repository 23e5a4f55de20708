"""Columns of a data file before anything is chosen from them, and the file of labels beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError
from raysel.core.printing import listed
from raysel.core.storage.working_copy import shown_place
from raysel.data.dataset import Dataset
from raysel.data.formats.array_files import ARRAY_SUFFIXES, open_arrays
from raysel.data.formats.files import as_labels, find_data_file
from raysel.data.formats.named_arrays import likely_label_arrays
from raysel.data.formats.names import FURTHER_ARRAYS, names_origin
from raysel.data.formats.nifti import volume_columns
from raysel.data.formats.tables.contents import METADATA_KEY
from raysel.data.formats.tables.reader import TABLE_SUFFIXES, open_table
from raysel.data.formats.volumes import is_nifti
from raysel.data.layouts import Layout
from raysel.data.loading import BUILTIN_NAMES, load_dataset, local_data
from raysel.study.draft.folds import FEWEST, rare_labels, too_small_classes
from raysel.study.draft.roles import Roles, table_roles, usable_groups
from raysel.study.inspection.arrangement import find_arrangement
from raysel.study.inspection.leaks import inspect, leaking_columns

#: Names, without suffix, of files of labels beside an array of samples.
_LABEL_FILES = ("y", "Y", *FURTHER_ARRAYS)
_LABEL_SUFFIXES = (".npy", ".csv", ".txt")


def read_columns(path: str | Path) -> Any:
    """Open the table in a data file, without those columns that the file itself marks as an index."""
    if Path(path).suffix.lower() not in TABLE_SUFFIXES:
        return None
    table, _ = open_table(find_data_file(path))
    if METADATA_KEY in (table.schema.metadata or {}):
        return None
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    return table.drop_columns([name for name in index if isinstance(name, str) and name in table.column_names])


def arrays_of_origin(path: str | Path, n_samples: int) -> dict[str, LabelArray]:
    """Read the arrays of a file that tell by their names which samples are of one origin."""
    found: dict[str, LabelArray] = {}
    if Path(path).suffix.lower() not in ARRAY_SUFFIXES:
        return found
    with open_arrays(find_data_file(path)) as file:
        for name in filter(names_origin, file.names):
            values = as_labels(np.asarray(file.get(name)))
            if values.shape == (n_samples,) and len(np.unique(values)) < n_samples:
                found[name] = values
    return found


def only_label_array(path: str | Path) -> str | None:
    """Return the one array of a file that may be the labels by its values, if none is by its name."""
    if Path(path).suffix.lower() not in ARRAY_SUFFIXES:
        return None
    with open_arrays(find_data_file(path)) as file:
        likely = [name for name in likely_label_arrays(file) if not names_origin(name)]
    return likely[0] if len(likely) == 1 else None


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
    for stem in stems:
        for suffix in _LABEL_SUFFIXES:
            candidate = path.with_name(stem + suffix)
            if candidate != path and _exists(candidate):
                return candidate
    return None


def mask_beside(path: str | Path) -> Path:
    """Return the mask of a table of NIfTI files: the one NIfTI file in its folder that is called a mask."""
    found = sorted(p for p in Path(find_data_file(path)).parent.iterdir() if "mask" in p.name.lower() and is_nifti(p))
    if len(found) != 1:
        there = f"{len(found)} files called so are" if found else "none is"
        raise DataError(
            f"{path} is a table of NIfTI files, of which the voxels of a mask are the features, and {there} beside it: "
            "name the mask by --mask (mask= in Python)."
        )
    return found[0]


def _exists(path: Path) -> bool:
    try:
        find_data_file(path)
    except DataError:
        return False
    return True


#: Modalities with fewer columns on average are rather names with a point.
_NARROW = 4
#: Fewer samples make scores that depend much on the folds.
_FEW_SAMPLES = 30


@dataclass
class Looked:
    """Data set of a file, with the options that were recognised."""

    path: str
    dataset: Dataset
    options: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)

    @property
    def file(self) -> str | Path:
        """The data on this machine: the copy of a file at a URI, else the path."""
        return local_data(self.path)

    @property
    def is_builtin(self) -> bool:
        """Whether the path is the name of a built-in data set."""
        return self.path in BUILTIN_NAMES

    def choose(self, comment: str, **options: Any) -> None:
        """Set options, read the data again with them, and keep the comment for each."""
        self.options.update(options)
        self.comments.update(dict.fromkeys(options, comment))
        self.dataset = load_dataset(self.path, **self.options)


def look_at(
    path: str | Path, label: str | None = None, labels: str | Path | None = None, mask: str | Path | None = None
) -> Looked:
    """Recognise what a data file holds."""
    options: dict[str, Any] = {} if label is None else {"label": label}
    comments, doubts, roles = {"label": "name of the labels, as given"} if label else {}, [], None
    file, path = local_data(path), shown_place(path)
    if labels is None and (beside := labels_beside(file)):
        labels = beside
        doubts.append(f"labels: {beside} was taken for the labels, by its name and length.")
    if labels is not None:
        options["labels"], comments["labels"] = shown_place(labels), "file of the labels"
    if label is None and labels is None and (array := only_label_array(file)):
        options["label"], comments["label"] = array, "array of the labels"
        doubts.append(f"label: {array} was taken, the only array with values that repeat; none is called y or label.")
    table = None if str(path) in BUILTIN_NAMES else read_columns(file)
    volumes = mask is not None or (table is not None and bool(volume_columns(table)))
    if table is not None and volumes:
        roles = table_roles(table, label)
        options = {"mask": shown_place(mask or Path(path).with_name(mask_beside(file).name)), **_options_of(roles)}
        options.pop("drop", None)  # columns besides files, label and groups are not read
        comments |= {"mask": "NIfTI file whose voxels above 0 are the features", "label": "column of the labels"}
        doubts += [doubt for doubt in roles.doubts if not doubt.startswith("drop: ")]
        roles = None
    elif table is not None and labels is None:
        roles = table_roles(table, label)
        options |= _options_of(roles)
        comments |= {"label": "column of the labels", "groups": "column that tells which samples are of one origin"}
        doubts += roles.doubts
        if len({roles.label, roles.groups, *roles.drop} - {None}) == table.num_columns:
            why = listed(f"{name or repr(name)} ({reason})" for name, reason in roles.drop.items())
            raise DataError(
                f"{path}: no column of numbers without empty cells is left as a feature: {why}. Encode text as "
                "numbers; remove samples that lack values, or fill the empty cells in without use of the labels; and "
                "remove lines above the names of the columns."
            )
    found = Looked(
        str(path), load_dataset(str(path), **options), options, dict(roles.drop) if roles else {}, comments, doubts
    )
    if found.dataset.layout.is_multitask:
        raise DataError(
            f"{path} holds several tasks, and a study of one is drafted; see the built-in study faces-mtda."
        )
    if table is not None and not volumes:
        _leave_out_columns(found)
    elif table is None and not found.is_builtin and labels is None:
        _group(found)
    _leave_out_small(found)
    _arrange(found)
    if found.dataset.n_samples < _FEW_SAMPLES:
        found.doubts.append(
            f"cv: with {found.dataset.n_samples} samples the score depends much on the folds; set cv.repeats to 10, "
            "which draws the folds ten times, to see how much."
        )
    return found


def _options_of(roles: Roles) -> dict[str, Any]:
    options = {"label": roles.label, "groups": roles.groups, "drop": list(roles.drop)}
    return {name: value for name, value in options.items() if value}


def _leave_out_columns(found: Looked) -> None:
    """Leave out further columns that a study would refuse."""
    dataset = found.dataset
    (inspected,) = inspect(dataset)
    leaking = leaking_columns(inspected, dataset)
    names = {dataset.feature_names[column]: f"it {words}" for column, words in leaking.items()}
    if not names:
        return
    if len(names) == dataset.n_features:
        raise DataError(f"{found.path}: no feature is left: each column numbers the rows or holds the label.")
    for column in sorted(set(leaking) & set(inspected.by_label)):
        name = dataset.feature_names[column]
        found.doubts.append(f"drop: {name} {leaking[column]}; if it is a measurement, list it in dataset.keep instead.")
    found.reasons |= names
    found.choose("", drop=list(found.reasons))


def _group(found: Looked) -> None:
    """Recognise an array that tells which samples are of one origin."""
    related = arrays_of_origin(found.file, found.dataset.n_samples)
    y = None if found.dataset.is_multilabel else found.dataset.y
    if (groups := usable_groups(related, y, found.doubts)) is not None:
        found.choose("array that tells which samples are of one origin", groups=groups)


def _leave_out_small(found: Looked) -> None:
    """Leave out classes or labels that are too small for nested folds."""
    dataset = found.dataset
    if dataset.is_multilabel:
        if rare := rare_labels(dataset.y, dataset.label_names):
            found.choose("too few samples have or lack them for the folds", exclude_labels=rare)
    elif small := too_small_classes(dataset.y, dataset.groups):
        what = "samples" if dataset.groups is None else "groups"
        found.choose(f"fewer than {FEWEST} {what}, too few for nested folds", exclude_classes=small)
        found.doubts.append(f"exclude_classes: {listed(small)} left out, with fewer than {FEWEST} {what} each.")


def _narrow_modalities(found: Looked, layout: Layout) -> None:
    """Take columns with a point in their names as columns without an order if modalities would be narrow."""
    # R writes points for blanks, e.g. Sepal.Length and Sepal.Width.
    names = list(layout.slices())
    if layout.n_features >= _NARROW * len(names):
        return
    found.choose("one table, though the names of its columns have points", shape=[layout.n_features])
    found.doubts.append(
        f"shape: the columns are one table; leave shape out if {listed(names)}, before the points in their "
        "names, are modalities."
    )


def _arrange(found: Looked) -> None:
    """Recognise images in the rows of a matrix."""
    layout = found.dataset.layout
    if layout.is_multimodal and Path(found.file).suffix.lower() in TABLE_SUFFIXES:
        _narrow_modalities(found, layout)
        return
    if len(layout.grid) != 1 or found.dataset.is_multilabel:
        return
    named = found.dataset.feature_names != tuple(layout.default_names())
    matlab = Path(found.path).suffix.lower() == ".mat"
    arranged = find_arrangement(np.asarray(found.dataset.X), found.dataset.y, column_major=matlab)
    if arranged is None:
        return
    options: dict[str, Any] = {"shape": list(arranged.shape)}
    if arranged.order == "F":
        options["order"] = "F"
    why = f"neighbouring cells correlate by {arranged.correlation:.2f}, any two by {arranged.any_two:.2f}"
    found.choose(why, **options)
    if "order" in options:
        found.comments["order"] = "the columns run column by column, as MATLAB stores matrices"
    if named:
        found.doubts.append("shape: the columns have names, but look like the cells of images; leave shape out if not.")
    if not arranged.order_known:
        found.doubts.append(f"order: {arranged.describe()}")
