"""Finding a data file, and saying in one sentence what is wrong with one that cannot be read."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raysel.arrays import LabelArray
from raysel.data.layouts import Layout
from raysel.data.task_blocks import TaskBlocks
from raysel.errors import DataError

#: Data sets that the studies in conf/ name but nobody may redistribute: what they are, and a recipe.
_RECIPES = {
    "ORL.npz": """\
ORL.npz holds the 400 AT&T (ORL) faces at 32 x 32 pixels, 40 persons. scikit-learn downloads them at 64 x 64:
    import numpy as np; from sklearn.datasets import fetch_olivetti_faces; faces = fetch_olivetti_faces()
    np.savez("ORL.npz", X=faces.images.reshape(400, 32, 2, 32, 2).mean(axis=(2, 4)), y=faces.target)
They are also found in collections of face data sets as ORL_32x32.mat (arrays fea and gnd, images transposed).""",
    "UMIST.npz": """\
UMIST.npz holds the 575 UMIST (Sheffield) faces at 28 x 23 pixels, 20 persons. Collections of face data sets have
them as .mat; with images of shape (n, 28, 23) and the person's number as labels:
    import numpy as np
    np.savez("UMIST.npz", X=images, y=labels)""",
    "USPS.npz": """\
USPS.npz holds the 2007 handwritten digits of the USPS test set at 16 x 16 pixels, in LIBSVM's collection as usps.t:
    import numpy as np; from sklearn.datasets import load_svmlight_file; X, y = load_svmlight_file("usps.t")
    np.savez("USPS.npz", X=X.toarray().reshape(-1, 16, 16), y=y - 1)""",
}

_FORMATS = (
    "A data file is .npz with arrays X, (n, h, w) or (n, d), or view_0, view_1, ... with view_names, and y, (n,), "
    "or Y, (n, labels) of 0 and 1; .mat with the same; .csv, .parquet or .arrow with a column y, or columns y.<label>."
)


@dataclass(frozen=True)
class RawData:
    """What a file holds, before any of it is judged.

    Parameters
    ----------
    X : ndarray of shape (n_samples, ...), or TaskBlocks
    y : ndarray
    groups : ndarray, default=None
    layout : Layout, default=None
        Where the file says it.
    feature_names : sequence of str, default=()
        Where the file says them.
    name : str, default=None
        Where the file says it.
    label_names : sequence of str, default=()
        Of an indicator's columns, where the file says them.
    """

    X: LabelArray | TaskBlocks
    y: LabelArray
    groups: LabelArray | None = None
    layout: Layout | None = None
    feature_names: tuple[str, ...] = ()
    name: str | None = None
    label_names: tuple[str, ...] = ()


def find_data_file(path: str | Path, expected: str = _FORMATS) -> Path:
    """Look a data file up: from the working directory, then from the folder that ``$RAYSEL_DATA`` names.

    Parameters
    ----------
    path : str or Path
    expected : str
        What the file should hold, for the error.

    Returns
    -------
    Path
        Absolute.

    Raises
    ------
    DataError
        If it is in neither place, with both named, and how such a file is made.

    Examples
    --------
    >>> find_data_file("no-such-file.npz")
    Traceback (most recent call last):
        ...
    raysel.errors.DataError: there is no data file no-such-file.npz. Looked at ...
    """
    wanted = Path(path).expanduser()
    folder = os.environ.get("RAYSEL_DATA")
    places = [wanted.absolute()]
    if folder and not wanted.is_absolute():
        places.append((Path(folder).expanduser() / wanted).absolute())
    for place in places:
        if place.is_file():
            return place
    looked = " and ".join(map(str, places))
    hint = "" if folder or wanted.is_absolute() else "; $RAYSEL_DATA, the folder looked at next, is not set"
    recipe = _RECIPES.get(wanted.name, "")
    raise DataError(f"there is no data file {path}. Looked at {looked}{hint}. {expected}\n{recipe}".rstrip())


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a library raises over a broken file into one DataError.

    Parameters
    ----------
    path : Path
    kind : str
        What the file should be, with its article.

    Raises
    ------
    DataError
        If the file is empty, or anything at all goes wrong while it is read.
    """
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty (0 bytes); write or copy it again.")
    try:
        yield
    except DataError:
        raise
    except MemoryError as error:
        raise DataError(
            f"{path} asks for more memory than there is: it is too large for this machine, or damaged ({error})."
        ) from error
    except Exception as error:  # a library may raise anything over a broken file
        first_line = str(error).partition("\n")[0]
        raise DataError(
            f"{path} cannot be read as {kind}: it is cut short, damaged or of another kind; "
            f"write or copy it again ({type(error).__name__}: {first_line})."
        ) from error


def missing(path: Path, wanted: str, there: Collection[str]) -> DataError:
    """The error for a file without something that it must hold.

    Parameters
    ----------
    path : Path
    wanted : str
        What is missing.
    there : collection of str
        The names that the file does hold.

    Returns
    -------
    DataError
    """
    names = ", ".join(list(there)[:12]) or "nothing"
    if len(there) > 12:
        names += f", ... ({len(there)} in all)"
    return DataError(f"{path} has no {wanted}; it holds {names}. {_FORMATS}")


def as_labels(values: LabelArray) -> LabelArray:
    """Flatten labels that a file keeps as one row or one column.

    Parameters
    ----------
    values : ndarray

    Returns
    -------
    ndarray
    """
    return values.ravel() if values.ndim == 2 and 1 in values.shape else np.asarray(values)
