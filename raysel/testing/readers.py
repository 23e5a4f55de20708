"""The conformance suite of readers of data files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from raysel.core.errors import DataError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Layout, Modalities, Tensor
from raysel.data.loading import load_dataset
from raysel.data.task_blocks import dense, list_blocks
from raysel.testing.checks import Check, require, require_equal

#: Writes a data set into a file of the format, e.g. by another library.
WriteFile: TypeAlias = Callable[[Dataset, Path], None]

#: How many lengths a file is cut to.
_CUTS = 25


def data_sets() -> dict[str, Dataset]:
    """Make a small data set of each layout and kind of label."""
    rng = np.random.default_rng(0)
    codes = np.arange(10) % 3
    vector, matrix = Tensor((6,)), Tensor((3, 2))

    def make(layout: Layout, y: object, groups: object = None) -> Dataset:
        X = rng.integers(-50, 50, (10, 6)) / 4
        if groups is not None:
            groups = np.asarray(groups)
        return Dataset(X, np.asarray(y), layout, "suite", groups)

    return {
        "vectors": make(vector, codes),
        "matrices": make(matrix, codes),
        "modalities": make(Modalities({"a": 2, "b": 4}), codes),
        "text labels": make(vector, np.array(["ant", "bee", "cat"])[codes]),
        "an indicator": make(
            vector, np.stack([codes == 0, codes > 0, codes != 1], axis=1).astype(int)
        ),
        "groups": make(vector, codes, np.arange(10) // 2),
    }


def reader_checks(
    suffix: str,
    write: WriteFile,
    *,
    holds: dict[str, Dataset] | None = None,
    groups: str | None = "groups",
    labels: str | None = None,
) -> Iterator[Check]:
    """Generate the checks of a reader, which `load_dataset` chooses by the file's suffix.

    Parameters
    ----------
    suffix : str
        Suffix of the files, e.g. ``".npz"``; empty for a folder.
    write : callable
        Function that takes a data set and a path and writes the file to read.
    holds : dict of str to Dataset, default=None
        Data sets that the format can store. None: all of `data_sets`.
    groups : str, default="groups"
        Name of the column or array in which ``write`` stores the groups. None: the file format has
        a place for them.
    labels : str, default=None
        Name of the file of labels that ``write`` puts beside the data file; None: the data file
        holds them.

    Yields
    ------
    Check
        Checks of the kind "reader".

    Examples
    --------
    >>> from raysel.data.loading import save_dataset
    >>> for check in reader_checks(".parquet", save_dataset):
    ...     check()
    """
    if holds is None:
        holds = data_sets()
    for name, dataset in holds.items():
        run = partial(_comes_back, dataset, suffix, write, groups, labels)
        yield Check(f"{suffix}: comes_back[{name}]", run, "reader")
    first = next(iter(holds.values()))
    yield Check(f"{suffix}: empty_file", partial(_refuses, suffix, b""), "reader")
    yield Check(
        f"{suffix}: another_kind", partial(_refuses, suffix, bytes(range(256)) * 20), "reader"
    )
    yield Check(f"{suffix}: no_such_file", partial(_refuses, suffix, None), "reader")
    yield Check(f"{suffix}: cut_short", partial(_cut_short, first, suffix, write, labels), "reader")


def _beside(path: Path, name: str | None) -> Path | None:
    """Return the path of a file in the same folder; None without a name."""
    if name is None:
        return None
    return path.with_name(name)


def _comes_back(
    dataset: Dataset, suffix: str, write: WriteFile, groups: str | None, labels: str | None
) -> None:
    """Values, labels, groups and layout are those that were written, and X is read-only."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"suite{suffix}")
        write(dataset, path)
        actual = load_dataset(
            path,
            shape=dataset.layout.grid or None,
            groups=groups if dataset.groups is not None else None,
            labels=_beside(path, labels),
        )
    require(
        not any(block.flags.writeable for block in list_blocks(actual.X)), "X can be written to."
    )
    require_equal(dense(actual.X), dense(dataset.X), "X differs")
    require_equal(actual.y, dataset.y, "y differs")
    require(
        (actual.groups is None) == (dataset.groups is None), "one has groups, the other has not."
    )
    if dataset.groups is not None:
        require_equal(actual.groups, dataset.groups, "groups differ")
    require(
        actual.layout == dataset.layout,
        f"the layout {dataset.layout} came back as {actual.layout}.",
    )
    require(actual.name == "suite", f"the data set is called {actual.name}, not by its file.")


def _refuses(suffix: str, content: bytes | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"damaged{suffix}")
        if content is not None:
            path.write_bytes(content)
        _require_refusal(path, may_read=False)


def _cut_short(dataset: Dataset, suffix: str, write: WriteFile, labels: str | None) -> None:
    """A file cut short anywhere is refused; one of plain text may hold fewer samples."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"whole{suffix}")
        write(dataset, path)
        cut = max(file for file in (path, *path.rglob("*")) if file.is_file())
        whole = cut.read_bytes()
        plain = whole.isascii()
        for length in np.linspace(1, len(whole) - 16, _CUTS, dtype=int).tolist():
            cut.write_bytes(whole[:length])
            _require_refusal(path, may_read=plain, labels=labels)


def _require_refusal(path: Path, *, may_read: bool, labels: str | None = None) -> None:
    try:
        load_dataset(path, labels=_beside(path, labels))
    except DataError as error:
        require(path.name in str(error), f"the error does not name {path.name}: {error}")
        require("Traceback" not in str(error), f"the error tells of code: {error}")
    except Exception as error:
        raise AssertionError(
            f"{path.name} raised {type(error).__name__}, not DataError: {error}"
        ) from error
    else:
        require(may_read, f"{path.name} is read although it is damaged.")
