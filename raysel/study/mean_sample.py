"""Mean sample of a study's data and chosen background, kept in its directory: pictures need no data file."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from raysel.arrays import FloatArray
from raysel.data.dataset import Dataset
from raysel.data.layouts import Layout, MaskedVolume, Tasks
from raysel.data.task_blocks import TaskBlocks
from raysel.files import write_result
from raysel.tracking.validity.arrays import read_floats


def has_images(layout: Layout) -> bool:
    """Return whether samples, or those of a task, are matrices or volumes, which pictures show as images or slices."""
    if isinstance(layout, MaskedVolume):
        return True
    shapes = layout.tasks.values() if isinstance(layout, Tasks) else [getattr(layout, "shape", ())]
    return any(
        isinstance(shape, tuple) and len(shape) in (2, 3) and sum(side > 1 for side in shape) > 1 for shape in shapes
    )


def in_cells(layout: Layout, values: FloatArray) -> FloatArray:
    """Return the value of each cell of a sample's array from that of each feature."""
    return layout.arranged(values, outside=np.nan).ravel() if isinstance(layout, MaskedVolume) else values


def write_mean_sample(dataset: Dataset, path: str | Path) -> None:
    """Write the mean of each feature over all samples, or those of its task, if samples are images.

    It is drawn below maps and used for nothing else.
    """
    if has_images(dataset.layout):
        blocks = dataset.X.blocks if isinstance(dataset.X, TaskBlocks) else (dataset.X,)
        write_image(np.concatenate([block.mean(axis=0) for block in blocks]), path)


def write_image(values: FloatArray, path: str | Path) -> None:
    """Write the values of an image in NumPy's format."""
    content = io.BytesIO()
    np.save(content, values)
    write_result(path, content.getvalue())


def read_image(path: str | Path, n_features: int) -> FloatArray | None:
    """Read the mean of each feature, or another image of a study's directory."""
    try:
        found = read_floats(Path(path), (n_features,))
    except (OSError, ValueError, EOFError):
        return None
    return found if np.isfinite(found).all() else None
