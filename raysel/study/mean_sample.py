"""Mean sample of a study's data, kept in its directory so that pictures of an opened study need no data file."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from raysel.arrays import FloatArray
from raysel.data.dataset import Dataset
from raysel.data.layouts import Layout, Tasks
from raysel.data.task_blocks import TaskBlocks
from raysel.files import write_result


def has_images(layout: Layout) -> bool:
    """Return whether samples, or those of a task, are matrices, which pictures show as images.

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
    shapes = layout.tasks.values() if isinstance(layout, Tasks) else [getattr(layout, "shape", ())]
    return any(isinstance(shape, tuple) and len(shape) == 2 and min(shape) > 1 for shape in shapes)


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
        content = io.BytesIO()
        np.save(content, np.concatenate([block.mean(axis=0) for block in blocks]))
        write_result(path, content.getvalue())


def read_mean_sample(path: str | Path, n_features: int) -> FloatArray | None:
    """Read the mean of each feature.

    Parameters
    ----------
    path : str or Path
        Path of the file.
    n_features : int
        Number of features of the study.

    Returns
    -------
    ndarray of shape (n_features,) or None
        None if there is no file, as in studies of earlier versions, or it is not such an array.
    """
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    usable = isinstance(found, np.ndarray) and found.shape == (n_features,) and found.dtype == np.float64
    return found if usable and np.isfinite(found).all() else None
