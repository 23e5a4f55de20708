"""Mean sample and chosen background of a study, kept in its directory: pictures need no data."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.errors import ConfigError, DataError
from raysel.core.files import write_result
from raysel.data.dataset import Dataset
from raysel.data.formats.array_files import open_npy
from raysel.data.formats.files import find_data_file, reading
from raysel.data.formats.images import read_pixels
from raysel.data.formats.nifti import check_grid, is_nifti, read_volume
from raysel.data.layouts import Layout
from raysel.data.stored_samples import StoredSamples
from raysel.data.task_blocks import list_blocks
from raysel.tracking.directory import read_floats

#: Weights of red, green and blue in the grey value of a pixel: ITU-R BT.601.
_LUMINANCE = np.array([0.299, 0.587, 0.114])
_KINDS = (
    "The background is a .npy array, a .png image, or a NIfTI volume (.nii, .nii.gz) for volumes."
)


def write_mean_sample(dataset: Dataset, path: str | Path) -> None:
    """Write the mean of each feature over all samples, or those of its task, if samples are images.

    It is drawn below maps and used for nothing else.
    """
    if dataset.layout.has_images and isinstance(dataset.X, StoredSamples):
        write_image(dataset.X.summary.mean, path)
    elif dataset.layout.has_images:
        write_image(
            np.concatenate([block.mean(axis=0) for block in list_blocks(dataset.filled)]), path
        )


def write_image(values: FloatArray, path: str | Path) -> None:
    """Write the values of an image in NumPy's format."""
    content = io.BytesIO()
    np.save(content, values)
    write_result(path, content.getvalue())


def read_image(path: str | Path, n_features: int) -> FloatArray | None:
    """Read the mean of each feature, or another image of a study's directory."""
    try:
        values = read_floats(Path(path), (n_features,))
    except (OSError, ValueError, EOFError):
        return None
    if not np.isfinite(values).all():
        return None
    return values


def read_background(path: str | Path, layout: Layout) -> FloatArray:
    """Read the image that pictures show below a map."""
    if not layout.is_image:
        raise ConfigError(
            f"dataset.background: {path} would be shown below a map, and the samples are neither"
            " matrices nor volumes; leave it out, or set dataset.shape."
        )
    try:
        values = _values(find_data_file(path, _KINDS), layout)
    except DataError as error:
        raise ConfigError(f"dataset.background: {error}") from error
    if values.ndim == 2 and len(layout.shape) == 3 and values.shape == layout.shape[:2]:
        values = np.repeat(values[:, :, None], layout.shape[2], axis=2)
    if values.shape != layout.shape:
        raise ConfigError(
            f"dataset.background: {path} has the shape {values.shape}, but a sample has"
            f" {layout.shape}."
        )
    image = values.astype(np.float64).ravel()
    finite = np.isfinite(image)
    if not finite.any():
        raise ConfigError(f"dataset.background: {path} holds no finite value.")
    image[~finite] = image[finite].min()
    return image


def _values(path: Path, layout: Layout) -> LabelArray:
    if is_nifti(path):
        volume = read_volume(path)
        if layout.affine is not None:
            check_grid(path, volume, layout, "the mask of the data")
        return volume.values
    suffix = path.suffix.lower()
    if suffix == ".npy":
        with reading(path, "an array of NumPy (.npy)"), open_npy(path) as file:
            values: LabelArray = file.get("X")
        if values.dtype.kind not in "biuf":
            raise DataError(f"{path} is not an array of real numbers.")
        return values
    if suffix != ".png":
        raise DataError(f"{path} has an unknown suffix. {_KINDS}")
    values = read_pixels(path).values
    if values.ndim == 3:
        values = values @ _LUMINANCE
    return values
