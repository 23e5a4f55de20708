"""Lookup of data files, their raw content, and errors of files that cannot be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.errors import DataError
from raysel.core.printing import by_number, listed
from raysel.core.storage.location import as_uri
from raysel.core.storage.transfer import fetch_data
from raysel.data.layouts import Layout
from raysel.data.stored_samples import StoredSamples
from raysel.data.targets import Target
from raysel.data.task_blocks import TaskBlocks

#: Instructions to obtain the data sets of the studies in conf/ that may not be redistributed.
_RECIPES = {
    "ORL.npz": (
        """\
ORL.npz holds the 400 AT&T (ORL) faces at 32 x 32 pixels, 40 persons. scikit-learn downloads them
at 64 x 64:
    import numpy as np
    from sklearn.datasets import fetch_olivetti_faces
    faces = fetch_olivetti_faces()
    np.savez("ORL.npz", X=faces.images.reshape(400, 32, 2, 32, 2).mean(axis=(2, 4)), y=faces.target)
Collections of face data sets have them as ORL_32x32.mat (arrays fea and gnd, images transposed)."""
    ),
    "UMIST.npz": (
        """\
UMIST.npz holds the 575 UMIST (Sheffield) faces at 28 x 23 pixels, 20 persons. Collections of
face data sets have them as .mat; with images of shape (n, 28, 23) and the person's number as
labels:
    import numpy as np
    np.savez("UMIST.npz", X=images, y=labels)"""
    ),
    "USPS.npz": (
        """\
USPS.npz holds the 2007 handwritten digits of the USPS test set at 16 x 16 pixels, in LIBSVM's
collection as usps.t:
    import numpy as np
    from sklearn.datasets import load_svmlight_file
    X, y = load_svmlight_file("usps.t")
    np.savez("USPS.npz", X=X.toarray().reshape(-1, 16, 16), y=y - 1)"""
    ),
}

_FORMATS = (
    "Give a table with a column of labels (.csv, .parquet), arrays X and y (.npz, .mat, .h5), or a"
    " folder of images for each class."
)


@dataclass(frozen=True)
class ArrayFile:
    """An open file of named arrays."""

    names: tuple[str, ...]
    get: Callable[[str], Any]


@dataclass(frozen=True)
class ReadOptions:
    """Options of a reader: what the user states about a data file.

    Parameters
    ----------
    label : str, default=None
        Name of the column or array that holds the labels; None: that of the usual names which the
        file has.
    groups : str, default=None
        Name of the column or array that holds the group of each sample; None: no groups, or those
        that `save_dataset` stored.
    drop : tuple of str, default=()
        Names of columns that are neither features nor labels.
    delimiter : str, default=None
        Character between the cells of a text table; None: recognised from the file.
    labels : Path, default=None
        File that holds the labels, where the data file holds the samples only.
    mask : Path, default=None
        NIfTI file of the voxels that are features, where the data file is a table of NIfTI files.
    unprepared : bool, default=False
        Whether to return columns with empty cells, as NaN, and columns of text, as
        `RawData.categories`.
    drop_unlabelled : bool, default=False
        Whether to leave out the rows of a table that have no label.
    quantities : tuple of str, default=()
        Names of several columns of a table that are the label: several quantities.
    confounds : tuple of str, default=()
        Names or patterns of columns or arrays that are no features and that a study takes out,
        `RawData.confounds`. Of a table they may remain features, which the caller takes apart.
    table : Path, default=None
        Table that holds the confounds, where the data file is no table.
    """

    label: str | None = None
    groups: str | None = None
    drop: tuple[str, ...] = ()
    delimiter: str | None = None
    labels: Path | None = None
    mask: Path | None = None
    unprepared: bool = False
    drop_unlabelled: bool = False
    quantities: tuple[str, ...] = ()
    confounds: tuple[str, ...] = ()
    table: Path | None = None


@dataclass(frozen=True, eq=False)
class Confounds:
    """Columns beside the features that a study takes out, such as age or site."""

    #: Values, NaN in cells without one, of categories their positions; shape (n_samples,
    #: n_confounds).
    values: FloatArray
    names: tuple[str, ...]
    #: Texts of the columns that hold categories, by name.
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, rows: LabelArray) -> Confounds:
        """Return those of some samples, by their positions or a mask."""
        return Confounds(self.values[rows], self.names, self.categories)


def matching(patterns: Iterable[str], names: Sequence[str]) -> list[int]:
    """Return the positions of names that are given, or fit a pattern as ``*_id``, in order."""
    places = {name: place for place, name in enumerate(names)}
    found: set[int] = set()
    for pattern in patterns:
        if pattern in places:
            found.add(places[pattern])
        else:
            found.update(i for i, name in enumerate(names) if fnmatchcase(name, pattern))
    return sorted(found)


@dataclass(frozen=True)
class RawData:
    """Content of a data file before validation.

    Parameters
    ----------
    X : ndarray of shape (n_samples, ...), StoredSamples or TaskBlocks
        Samples.
    y : ndarray of shape (n_samples,) or (n_samples, n_labels)
        Labels, an indicator, or quantities; samples whose y is NaN are left out.
    groups : ndarray of shape (n_samples,), default=None
        Group of each sample; None if no groups were requested or stored.
    layout : Layout, default=None
        Layout of the columns; None if the file does not store it.
    feature_names : sequence of str, default=()
        Names of the columns; empty if the file does not store them.
    name : str, default=None
        Name of the data set; None if the file does not store it.
    label_names : sequence of str, default=()
        Names of an indicator's columns; empty if the file does not store them.
    label : str, default=None
        Name of the column or array that holds the labels; None if the source has no name for it.
    notes : tuple of str, default=()
        Sentences on what the reader recognised or left out by itself, e.g. the delimiter of a text
        table.
    n_unlabelled : int, default=0
        Number of samples that were left out because their y is NaN.
    categories : mapping of str to sequence of str, default={}
        Texts of the columns of X that hold categories, by the column's name; the column holds their
        positions.
    unprepared : bool, default=False
        Whether X may hold NaN and categories, as for `load_dataset`, which sets it.
    target : {"classes", "labels", "quantities"}, default=None
        Kind of y as of `Dataset`; None: found from its values.
    places : mapping of str to ndarray of shape (n_samples,), default={}
        Columns that are no features and tell where each sample was measured, by their names.
    confounds : Confounds, default=None
        Columns beside the features that are no features; None if there are none.
    rounded : tuple of str, default=()
        Names of the columns of integers that X, as floats, does not hold; of those that X still
        holds as integers none.
    """

    X: LabelArray | StoredSamples | TaskBlocks
    y: LabelArray
    groups: LabelArray | None = None
    layout: Layout | None = None
    feature_names: tuple[str, ...] = ()
    name: str | None = None
    label_names: tuple[str, ...] = ()
    label: str | None = None
    notes: tuple[str, ...] = ()
    n_unlabelled: int = 0
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unprepared: bool = False
    target: Target | None = None
    places: Mapping[str, FloatArray] = field(default_factory=dict)
    confounds: Confounds | None = None
    rounded: tuple[str, ...] = ()


def find_data_file(path: str | Path, expected: str = _FORMATS, *, folder: bool = False) -> Path:
    """Find a data file from the working directory or else ``$RAYSEL_DATA``, or fetch it."""
    if uri := as_uri(path):
        return fetch_data(uri, folder=folder)
    relative = at_home(path)
    store = os.environ.get("RAYSEL_DATA")
    candidates = [relative.absolute()]
    if store and not relative.is_absolute():
        candidates.append((at_home(store) / relative).absolute())
    for candidate in candidates:
        if is_file(candidate, folder=folder):
            return candidate
    tried = " and ".join(map(str, candidates))
    if not store and not relative.is_absolute():
        tried += "; $RAYSEL_DATA is not set"
    recipe = _RECIPES.get(relative.name, "")
    raise DataError(
        f"there is no data file {path}: looked at {tried}.\n{expected}\n{recipe}".rstrip()
    )


def at_home(path: str | Path) -> Path:
    """Replace a leading ~ or ~user by the home folder, but not one of an unknown user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def is_file(path: Path, *, folder: bool = False) -> bool:
    """Return whether a path is that of a file, or of a folder; no error for impossible names."""
    try:
        return path.is_file() or (folder and path.is_dir())
    except OSError:  # the name is too long, or a folder may not be entered
        return False


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Convert every exception that a library raises while it reads a file into a DataError."""
    try:
        if path.stat().st_size == 0:
            raise DataError(f"{path} is empty (0 bytes); write or copy it again.")
        yield
    except DataError:
        raise
    except MemoryError as error:
        raise DataError(
            f"{path} needs more memory than is available: it is too large for this machine, or"
            f" damaged ({error})."
        ) from error
    except (FileNotFoundError, PermissionError) as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    except Exception as error:  # a library may raise any exception for a damaged file
        first_line = str(error).partition("\n")[0]
        raise DataError(
            f"{path} cannot be read as {kind}: it is truncated, damaged or of another format; "
            f"write or copy it again ({type(error).__name__}: {first_line})."
        ) from error


def missing(
    path: Path, required: str, available: Collection[str], remedy: str = _FORMATS
) -> DataError:
    """Make the error for a file that lacks a required array or column."""
    return DataError(f"{path} has no {required}; it holds {listed(available)}. {remedy}")


def without_label(rows: list[int], n_samples: int) -> str:
    """Return the note on samples that are left out because they have no label."""
    n = len(rows)
    return (
        f"{n} of {n_samples} samples {by_number(n, 'is', 'are')} left out, as"
        f" {by_number(n, 'its', 'their')} label is missing: {by_number(n, 'row', 'rows')}"
        f" {listed(rows, 3, ', ...')} (counted from 0)"
    )


def as_labels(values: LabelArray) -> LabelArray:
    """Flatten labels that a file stores as one row or one column."""
    if values.ndim == 2 and 1 in values.shape:
        return values.ravel()
    return np.asarray(values)
