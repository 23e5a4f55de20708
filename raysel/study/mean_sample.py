"""Mean sample of a study's data and chosen background, kept in its directory: pictures need no data file."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from raysel.arrays import FloatArray
from raysel.data.dataset import Dataset
from raysel.data.formats.numpy_files import open_npy
from raysel.data.layouts import Layout, MaskedVolume, Tasks
from raysel.data.task_blocks import TaskBlocks
from raysel.files import write_result


def has_images(layout: Layout) -> bool:
    """Return whether samples, or those of a task, are matrices or volumes, which pictures show as images or slices.

    Parameters
    ----------
    layout : Layout
        Layout of the features.

    Returns
    -------
    bool

    Examples
    --------
    >>> from raysel.data.layouts import Tasks, Tensor
    >>> has_images(Tensor((8, 8))), has_images(Tensor((64,))), has_images(Tasks({"a": (2, 2), "b": 3}))
    (True, False, True)
    """
    if isinstance(layout, MaskedVolume):
        return True
    shapes = layout.tasks.values() if isinstance(layout, Tasks) else [getattr(layout, "shape", ())]
    return any(
        isinstance(shape, tuple) and len(shape) in (2, 3) and sum(side > 1 for side in shape) > 1 for shape in shapes
    )


def in_cells(layout: Layout, values: FloatArray) -> FloatArray:
    """Return the value of each cell of a sample's array from that of each feature.

    Parameters
    ----------
    layout : Layout
        Layout of the features.
    values : ndarray of shape (n_features,)
        Values of the features.

    Returns
    -------
    ndarray of shape (n_cells,)
        In C order; NaN outside a mask, and without a mask the values themselves.
    """
    return layout.arranged(values, outside=np.nan).ravel() if isinstance(layout, MaskedVolume) else values


def write_mean_sample(dataset: Dataset, path: str | Path) -> None:
    """Write the mean of each feature over all samples, or those of its task, if samples are images.

    It is drawn below maps and used for nothing else.

    Parameters
    ----------
    dataset : Dataset
        Data of the study.
    path : str or Path
        Path of the file, in NumPy's format.

    Raises
    ------
    StudyError
        If the file cannot be written.
    """
    if has_images(dataset.layout):
        blocks = dataset.X.blocks if isinstance(dataset.X, TaskBlocks) else (dataset.X,)
        write_image(np.concatenate([block.mean(axis=0) for block in blocks]), path)


def write_image(values: FloatArray, path: str | Path) -> None:
    """Write the values of an image in NumPy's format.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Values.
    path : str or Path
        Path of the file.

    Raises
    ------
    StudyError
        If the file cannot be written.
    """
    content = io.BytesIO()
    np.save(content, values)
    write_result(path, content.getvalue())


def read_image(path: str | Path, n_features: int) -> FloatArray | None:
    """Read the mean of each feature, or another image of a study's directory.

    Parameters
    ----------
    path : str or Path
        Path of the file.
    n_features : int
        Number of features of the study, or of cells of the image.

    Returns
    -------
    ndarray of shape (n_features,) or None
        None if there is no file, as in studies of earlier versions, or it is not such an array.
    """
    try:
        with open_npy(Path(path)) as file:
            found = file.get("X")
    except (OSError, ValueError, EOFError):
        return None
    usable = isinstance(found, np.ndarray) and found.shape == (n_features,) and found.dtype == np.float64
    return found if usable and np.isfinite(found).all() else None
