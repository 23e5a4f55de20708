"""Loading of data sets, from files and scikit-learn, and saving as Parquet or Arrow IPC."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from sklearn import datasets

from raysel.core.errors import ConfigError, DataError, RayselError
from raysel.core.files import atomic_write
from raysel.core.plugins import load_plugin, plugin_names
from raysel.core.storage.location import as_uri, parse_location
from raysel.core.storage.working_copy import shown_place
from raysel.data.dataset import Dataset
from raysel.data.formats.array_files import ARRAY_SUFFIXES
from raysel.data.formats.compressed import COMPRESSED, data_suffix
from raysel.data.formats.files import RawData, ReadOptions, find_data_file
from raysel.data.formats.images import read_image_folder
from raysel.data.formats.named_arrays import read_arrays
from raysel.data.formats.nifti import read_nifti_table
from raysel.data.formats.sparse_matrices import refuse_sparse_files
from raysel.data.formats.table_contents import METADATA_KEY
from raysel.data.formats.tables import TABLE_SUFFIXES, read_stored_table, read_table
from raysel.data.planted_table import SOURCE, make_gene_table
from raysel.data.synthetic import make_tensor_classification
from raysel.data.task_blocks import TaskBlocks

_LOADERS: dict[str, Callable[[], Any]] = {
    "digits": datasets.load_digits,
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "diabetes": datasets.load_diabetes,
    "breast_cancer": datasets.load_breast_cancer,
}

#: Built-in data sets that are generated, with parameters.
_GENERATORS: dict[str, Callable[..., tuple[Dataset | RawData, Any]]] = {
    SOURCE: make_gene_table,
    "planted-tensor": make_tensor_classification,
}

#: Names that `load_dataset` accepts in place of a file.
BUILTIN_NAMES = (*_LOADERS, *_GENERATORS)

#: Function that reads a file.
Reader: TypeAlias = Callable[[Path, ReadOptions], RawData]

#: Entry point group in which other packages register readers; the name is the file suffix without
#: the dot.
GROUP = "raysel.readers"

#: Files of spreadsheets and statistics programs, which can write .csv.
_OF_PROGRAMS = (
    ".xlsx",
    ".xlsm",
    ".xls",
    ".ods",
    ".numbers",
    ".sav",
    ".dta",
    ".sas7bdat",
    ".rds",
    ".rdata",
)
_READERS: dict[str, Reader] = {
    **dict.fromkeys(ARRAY_SUFFIXES, read_arrays),
    **dict.fromkeys(TABLE_SUFFIXES, read_table),
}
#: Readers of what holds its labels itself, and where: what to do instead of naming a file of
#: labels.
_LABELLED: dict[Reader, str] = {
    read_table: (
        "is a table: add the labels to it as a column, row by row, and name the column by label"
    ),
    read_nifti_table: (
        "is a table of volumes: add the labels to it as a column, and name the column by label"
    ),
    read_image_folder: "has a folder for each class, which names it: leave labels out",
}
_NIFTI_FILES = (
    "With a mask, give a table with a column of NIfTI files (.nii, .nii.gz) and a column of labels."
)


def load_dataset(
    path_or_name: str | Path,
    *,
    label: str | Sequence[str] | None = None,
    labels: str | Path | None = None,
    groups: str | None = None,
    drop: Collection[str] = (),
    delimiter: str | None = None,
    mask: str | Path | None = None,
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
    table: str | Path | None = None,
    params: Mapping[str, Any] | None = None,
    in_memory: bool = True,
) -> Dataset:
    """Load a data set by name or from a file.

    Parameters
    ----------
    path_or_name : str or Path
        Name of one of scikit-learn's data sets (digits, iris, wine, breast_cancer or diabetes) or
        of a generated one (planted-genes: a table of genes in modules, see `make_gene_table`;
        planted-tensor: classes that differ in a block of cells), or path of a file, relative to the
        working directory or else to ``$RAYSEL_DATA``:

        - .npz, .mat, .h5 and .hdf5: arrays ``X``, (n, d) or (n, h, w), or an array for each
          modality, (n, width), under any names, or as ``view_0``, ``view_1``, ... with
          ``view_names``; and ``y``, (n,), or an indicator ``Y``, (n, labels), with ``label_names``;
          ``fea`` and ``gnd`` are accepted for ``X`` and ``y``. An ``X`` with the samples on its
          last axis only, (h, w, n), is turned. .h5, .hdf5 and the .mat of MATLAB 7.3 need h5py,
          ``pip install 'raysel[hdf5]'``. Pickled objects are never loaded, links to other files not
          followed.
        - .npy: the array ``X``, with its labels in the file ``labels``.
        - a folder with one folder for each class, which holds the images of the class: .png, .jpg,
          .tif, .bmp, .pgm.
        - .csv, .tsv, .txt, .data, .parquet, .arrow or .feather: a column ``y``, ``label``,
          ``target`` or ``class`` (in any case), or the one that ``label`` names, or a column
          ``y.<label>`` for each label; every other column is a feature, of a modality if all are
          called ``<modality>.<feature>``; or a file written by `save_dataset`. Delimiter, decimal
          comma, comment lines, and whether there is a header are recognised; columns without one
          are called ``column0``, ``column1``, ... A text table may be compressed as pandas reads
          it: .csv.gz, .bz2, .xz, .zst, or the only file of a .zip or .tar.
        - a table of NIfTI files, if ``mask`` is given: a column of their names, .nii or .nii.gz, a
          column of labels, and optional groups.
        - a suffix that another package registers under the entry point ``raysel.readers``.

        Or a URI of such a file or folder, s3://BUCKET/KEY, gs://BUCKET/KEY or file:///PATH: it is
        copied to this machine unless an earlier copy is current, see
        `raysel.core.storage.transfer.fetch_data`.
    label : str or sequence of str, default=None
        Name of the column or array that holds the labels. None: that of the usual names which the
        file has. Several columns of a table are several quantities.
    labels : str or Path, default=None
        File that holds the labels, where the data file, .npy, .npz, .mat, .h5 or .hdf5, holds the
        samples only: an array in a file of these formats, or a text, .csv or .txt, of one column,
        or of several with a line of names, of which ``label`` and ``groups`` name one. Refused if
        the data file has labels.
    groups : str, default=None
        Name of the array or column that holds the group of each sample. None: no groups, or those
        that `save_dataset` stored.
    drop : collection of str, default=()
        Names of columns of a table that are neither features nor labels.
    delimiter : str, default=None
        Character between the cells of a text table. None: recognised from the file.
    mask : str or Path, default=None
        NIfTI file whose voxels above 0 are the features, where the data file is a table of NIfTI
        files.
    task : {"regression", "classification"}, default=None
        Whether the labels are quantities or classes. None: found from their values.
    shape : sequence of int, default=None
        Shape of a sample, e.g. [32, 32]. None: as stored in the file.
    order : {"C", "F"}, default="C"
        Order in which the columns run through the cells of a sample: C row by row, F column by
        column, as MATLAB stores matrices. With F the columns are rearranged row by row.
    modes : sequence of str, default=None
        Names of the axes of a sample, e.g. [band, row, column]. None: row and column, or axis0,
        axis1, ...
    modalities : mapping of str to int, default=None
        Name of each modality and its number of columns, in column order. None: as stored in the
        file.
    only : collection of str, default=None
        Names of the modalities to use; the data set is the one of a file that holds only those, in
        the file's order. None: all.
    classes : collection of str or int, default=None
        Classes whose samples are used. None: all.
    exclude_classes : collection of str or int, default=()
        Classes whose samples are left out.
    exclude_labels : collection of str, default=()
        Names of the columns of an indicator to exclude.
    unprepared : bool, default=False
        Whether to keep cells without a value, as NaN, and columns of text of few values, as
        `Dataset.categories`, which a study fills and encodes by ``dataset.prepare``. They are
        refused otherwise.
    drop_unlabelled : bool, default=False
        Whether to leave out the rows of a table without a value in the column ``label``, which are
        refused otherwise.
    confounds : sequence of str, default=()
        Names, or patterns with ``*``, of columns that are no features but stand beside them, as the
        last columns of ``X``: what a study takes out or compares with, such as age, sex or site.
        They are columns of the table, also of one of NIfTI files; arrays of the file, or columns of
        the file ``labels``; or columns of ``table``.
    table : str or Path, default=None
        Table that holds the confounds where the data file is none: with a row for each sample in
        their order, or, for a folder of images, with a column of the path of each image in it.
    params : mapping of str to object, default=None
        Parameters of a generated data set; of planted-genes n_samples, n_modules, n_planted,
        n_classes and empty, of planted-tensor shape, block, n_classes, n_per_class, rank and noise;
        of both seed (0 by default).
    in_memory : bool, default=True
        Whether the samples are read into memory. False: those of a Parquet or Arrow file stay in
        it, and whoever uses them reads a bounded number of rows at a time, see
        `raysel.data.stored_samples.StoredSamples`.

    Returns
    -------
    Dataset
        The validated data set.

    Raises
    ------
    DataError
        If the file does not exist, cannot be read, lacks an array or column, or holds invalid
        values, or if ``path_or_name`` is no path.

    Examples
    --------
    >>> load_dataset("digits")
    Dataset('digits', 1797 samples x 64 features, 10 classes, Tensor(shape=(8, 8)))
    """
    if not isinstance(path_or_name, (str, Path)):
        is_frame = hasattr(path_or_name, "__arrow_c_stream__")  # of pandas, polars and PyArrow
        instead = "Dataset.from_frame(frame, label=...)" if is_frame else "Dataset(X, y, layout)"
        raise DataError(
            "load_dataset takes a path or the name of a built-in data set, not"
            f" {type(path_or_name).__name__}; call {instead} instead."
        )
    if mask is not None and as_uri(path_or_name):
        raise DataError(
            "a table of NIfTI files cannot be read from a URI; copy it and its files to this"
            " machine and give the path."
        )
    place = local_data(path_or_name)
    one, quantities = _split_label(label)
    options = ReadOptions(
        one,
        groups,
        tuple(drop),
        delimiter,
        unprepared=unprepared,
        drop_unlabelled=drop_unlabelled,
        quantities=quantities,
        confounds=tuple(confounds),
        table=None if table is None else find_data_file(table),
    )
    if not in_memory and unprepared:
        raise DataError(
            f"in_memory: {place} is prepared, which is done in memory: leave in_memory or prepare"
            " out."
        )
    if not in_memory and place in BUILTIN_NAMES:
        raise DataError(
            f"in_memory: {place} is built in, and no file that samples stay in: leave in_memory"
            " out."
        )
    beside = {key: file for key, file in (("labels", labels), ("mask", mask)) if file is not None}
    if mask is not None and (shape is not None or order == "F" or modalities is not None):
        raise DataError(
            f"{place}: the mask gives the shape of the samples; leave shape, order, modalities out."
        )
    with as_given(place, path_or_name):
        if params and place not in _GENERATORS:
            raise DataError(
                f"params is for generated data sets ({', '.join(_GENERATORS)}); leave it out for"
                f" {place}."
            )
        if place in _GENERATORS:
            source, raw = _generate(str(place), options, beside, params or {})
        else:
            read = _read_stored
            if place in BUILTIN_NAMES:
                read = _read_builtin
            elif in_memory:
                read = _read_file
            source, raw = read(place, options, beside)
        return Dataset.from_raw(
            replace(raw, unprepared=unprepared),
            source,
            task=task,
            shape=shape,
            order=order,
            modes=modes,
            modalities=modalities,
            only=only,
            classes=classes,
            exclude_classes=exclude_classes,
            exclude_labels=exclude_labels,
            confounds=options.confounds,
        )


@contextmanager
def as_given(place: str | Path, path_or_name: str | Path) -> Iterator[None]:
    """Name data at a URI so in errors, where the copy of them on this machine is read."""
    try:
        yield
    except DataError as error:
        if place == path_or_name:
            raise
        raise DataError(str(error).replace(str(place), shown_place(path_or_name))) from error


def _read_stored(
    place: str | Path, options: ReadOptions, beside: Mapping[str, str | Path]
) -> tuple[str, RawData]:
    """Read the labels of a table whose samples stay in its file, and return its path too."""
    if beside:
        raise DataError(
            f"{next(iter(beside))}: {place} is read into memory then; leave in_memory out."
        )
    path = find_data_file(place)
    return str(path), read_stored_table(path, options)


def _read_builtin(
    place: str | Path, options: ReadOptions, beside: Mapping[str, str | Path]
) -> tuple[str, RawData]:
    """Read a built-in data set, and return its name too."""
    name = str(place)
    _refuse_options_of_files(name, options, beside)
    bunch = _LOADERS[name]()
    if "images" in bunch:
        return name, RawData(X=bunch.images, y=bunch.target, name=name)
    return name, RawData(
        X=bunch.data, y=bunch.target, feature_names=tuple(bunch.feature_names), name=name
    )


def _generate(
    name: str, options: ReadOptions, beside: Mapping[str, str | Path], params: Mapping[str, Any]
) -> tuple[str, RawData]:
    """Generate a built-in data set, and return its name too."""
    _refuse_options_of_files(name, options, beside)
    make, given = _GENERATORS[name], {"seed": 0, **params}
    known = {key: parameter.default for key, parameter in signature(make).parameters.items()}
    del known["random_state"]
    known["seed"] = 0
    for key, value in given.items():
        if key not in known:
            raise DataError(
                f"params.{key}: {name} has no such parameter; it has {', '.join(known)}."
            )
        if not _is_like(value, known[key]):
            raise DataError(
                f"params.{key}: {value!r} is not {_allowed(known[key])}, as {known[key]!r}, the"
                " default."
            )
    given["random_state"] = given.pop("seed")
    try:
        made, _ = make(**given)
    except ConfigError as error:
        raise DataError(f"params: {error}") from error
    if isinstance(made, RawData):
        return name, replace(made, name=name)
    return name, RawData(X=np.asarray(made.X).reshape(-1, *made.layout.shape), y=made.y, name=name)


def _split_label(label: Any) -> tuple[str | None, tuple[str, ...]]:
    """Return the name of the label, or those of several quantities."""
    if label is None or isinstance(label, str):
        return label, ()
    return None, tuple(label)


def _is_like(value: Any, default: Any) -> bool:
    """Return whether a parameter with this default takes a value."""
    if isinstance(default, tuple):
        return isinstance(value, list | tuple) and all(_is_like(side, 0) for side in value)
    if isinstance(value, bool):
        return False
    kinds = (int, float) if isinstance(default, float) else (int,)
    return isinstance(value, kinds) and value >= 0


def _allowed(default: Any) -> str:
    """What a parameter with this default takes, as text."""
    if isinstance(default, tuple):
        return "a list of whole numbers >= 0"
    if isinstance(default, float):
        return "a number >= 0"
    return "a whole number >= 0"


def _refuse_options_of_files(
    name: str, options: ReadOptions, beside: Mapping[str, str | Path]
) -> None:
    """Refuse what a built-in data set has no use for."""
    if options.groups is not None:
        raise DataError(
            f"the built-in data set {name} has no array '{options.groups}' for the groups."
        )
    of_files = {
        **beside,
        **{key: getattr(options, key) for key in ("label", "drop", "delimiter", "table")},
    }
    of_files["label"] = options.label or options.quantities
    if given := [key for key, value in of_files.items() if value]:
        raise DataError(
            f"{given[0]} is for data files; leave it out for the built-in data set {name}."
        )


def _read_file(
    place: str | Path, options: ReadOptions, beside: Mapping[str, str | Path]
) -> tuple[str, RawData]:
    """Read a file or folder of this machine, and return its path too."""
    reader: Reader = read_nifti_table
    if "mask" in beside:
        path = find_data_file(place, _NIFTI_FILES)
        options = replace(options, mask=find_data_file(beside["mask"], _NIFTI_FILES))
    else:
        path, reader = _find(place)
    if "labels" in beside:
        options = replace(options, labels=find_data_file(beside["labels"]))
        if reader in _LABELLED:
            raise DataError(
                f"labels: a file of labels stands beside one of {', '.join(ARRAY_SUFFIXES)}. {path}"
                f" {_LABELLED[reader]}."
            )
    if options.table is not None and reader in (read_table, read_nifti_table):
        raise DataError(
            f"table: {path} is a table, whose own columns may be confounds; leave table out."
        )
    if options.quantities and reader is not read_table:
        raise DataError(
            f"label names several columns, which {path}, no table, does not have; give one name."
        )
    if reader in (read_arrays, read_image_folder):
        if options.drop:
            raise DataError(
                f"drop names columns of a table, and {path} is no table; leave drop out."
            )
        if options.delimiter is not None and options.labels is None:
            raise DataError(
                f"delimiter is for text tables, and {path} is no such table; leave delimiter out."
            )
    return str(path), reader(path, options)


def local_data(path_or_name: str | Path) -> str | Path:
    """Return a data set of `load_dataset` on this machine: one at a URI is fetched."""
    uri = as_uri(path_or_name)
    if uri is None:
        return path_or_name
    try:
        suffix = data_suffix(parse_location(uri).name)
    except ConfigError as error:
        raise DataError(str(error)) from error
    return find_data_file(uri, folder=suffix not in _suffixes())


def _suffixes() -> list[str]:
    return [*_READERS, *(f".{name}" for name in plugin_names(GROUP))]


def _find(path_or_name: str | Path) -> tuple[Path, Reader]:
    """Find a file or folder, and the reader for it."""
    suffix = data_suffix(path_or_name)
    if suffix in _suffixes():
        return find_data_file(path_or_name), _READERS.get(suffix) or _registered_reader(suffix)
    path = None
    with suppress(DataError):
        path = find_data_file(path_or_name, folder=True)
    if path is not None:
        refuse_sparse_files(path)
        if path.is_dir():
            return path, read_image_folder
    close = get_close_matches(str(path_or_name), BUILTIN_NAMES, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    if suffix in _OF_PROGRAMS:
        hint = " Save the table as .csv in the program that wrote it."
    if suffix == ".h5ad":
        hint = (
            " Save X and y by numpy.savez, X=anndata.read_h5ad(...).X, or its toarray() if sparse."
        )
    if suffix in COMPRESSED:
        hint = " Only text tables are read compressed, e.g. .csv.gz: unpack the file first."
    raise DataError(
        f"{path_or_name} is neither a built-in data set ({', '.join(BUILTIN_NAMES)}) "
        f"nor a file of a known format ({', '.join(_suffixes())}) nor a folder of images.{hint}"
    )


def _registered_reader(suffix: str) -> Reader:
    """Return the reader of another package for a file suffix."""
    try:
        registered: Reader = load_plugin(GROUP, suffix[1:])
    except ConfigError as error:
        raise DataError(str(error)) from error

    def read(path: Path, options: ReadOptions) -> RawData:
        what = f"{path} cannot be read by what another package registers for {suffix}"
        try:
            raw = registered(path, options)
        except RayselError:
            raise
        except (Exception, SystemExit) as error:  # a function of another package may raise anything
            raise DataError(f"{what}: {type(error).__name__}: {error}") from error
        if not isinstance(raw, RawData):
            raise DataError(f"{what}: it returned a {type(raw).__name__}, not a RawData.")
        if isinstance(raw.X, TaskBlocks):
            return raw
        return replace(raw, X=np.asarray(raw.X), y=np.asarray(raw.y))

    return read


def save_dataset(dataset: Dataset, path: str | Path) -> None:
    """Write a data set to a file from which `load_dataset` reads an identical one.

    The file has a column ``X`` with a fixed-shape tensor for each sample, a column ``y`` and, if
    the data set has groups, a column ``groups``. For several tasks ``X`` holds a list of the values
    of the sample's own task, and a column ``task`` the position of that task. Layout, feature
    names, label names, name, the label's name and notes are stored as JSON in the schema's metadata
    under ``raysel``. The file is written atomically.

    Parameters
    ----------
    dataset : Dataset
        Data set to write.
    path : str or Path
        Path of the file, with suffix .parquet, or .arrow or .feather (Arrow IPC without
        compression).

    Raises
    ------
    DataError
        If the suffix is unknown, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> digits = load_dataset("digits")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_dataset(digits, Path(folder, "digits.parquet"))
    ...     load_dataset(Path(folder, "digits.parquet")).content_hash == digits.content_hash
    True
    """
    path = Path(path)
    write = _WRITERS.get(path.suffix.lower())
    if write is None:
        raise DataError(
            f"{path} has an unknown suffix; give a path with one of {', '.join(_WRITERS)}."
        )
    try:
        with atomic_write(path) as temporary:
            write(_table(dataset), temporary)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error}.") from error


def _table(dataset: Dataset) -> Any:
    layout, y = dataset.layout, dataset.target.to_array(dataset.y)
    columns = {"y": pa.FixedShapeTensorArray.from_numpy_ndarray(y) if y.ndim == 2 else pa.array(y)}
    if isinstance(dataset.X, TaskBlocks):
        columns |= {"X": _task_values(dataset.X), "task": pa.array(dataset.X.tasks)}
    else:
        sides = (not layout.n_beside and layout.grid) or (layout.n_features,)
        columns["X"] = pa.FixedShapeTensorArray.from_numpy_ndarray(
            np.asarray(dataset.X).reshape(-1, *sides)
        )
    if dataset.groups is not None:
        columns["groups"] = pa.array(dataset.groups)
    described: dict[str, Any] = {
        "name": dataset.name,
        "layout": layout.to_json(),
        "feature_names": dataset.feature_names,
        "label_names": dataset.label_names,
        "target": dataset.target.to_json(),
    }
    if dataset.categories:
        described["categories"] = dict(dataset.categories)
    if dataset.label is not None:
        described["label"] = dataset.label
    if dataset.notes:
        described["notes"] = dataset.notes
    return pa.table(columns).replace_schema_metadata({METADATA_KEY: json.dumps(described)})


def _task_values(X: TaskBlocks) -> Any:
    """Arrow array with a list of the values of its own task for each sample."""
    offsets = np.concatenate([[0], np.array(X.widths)[X.tasks].cumsum()])
    values = np.empty(offsets[-1])
    for rows, _, block in X.parts():
        for start, sample in zip(offsets[rows], block, strict=True):
            values[start : start + len(sample)] = sample
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(values))


def _write_parquet(table: Any, path: Path) -> None:
    pa.parquet.write_table(
        table, path, compression="zstd", use_dictionary=False, write_page_checksum=True
    )


def _write_arrow(table: Any, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


_WRITERS: dict[str, Callable[[Any, Path], None]] = {
    ".parquet": _write_parquet,
    ".arrow": _write_arrow,
    ".feather": _write_arrow,
}
