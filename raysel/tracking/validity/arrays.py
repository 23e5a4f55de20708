"""Array of a study's directory, read only if it is what its file should hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from raysel.arrays import FloatArray
from raysel.data.formats.numpy_files import open_npy


def read_floats(path: Path, shape: tuple[int | None, ...]) -> FloatArray:
    """Read an array of floats in NumPy's format.

    Parameters
    ----------
    path : Path
        Path of the file.
    shape : tuple of (int or None)
        Shape that the array must have; None where any length up to 1000 will do.

    Returns
    -------
    ndarray of float64
        The values.

    Raises
    ------
    OSError, ValueError, EOFError
        If the file cannot be read, holds another array, or claims more than it holds or than may be read.
    """
    with open_npy(path) as file:
        values: FloatArray = file.get("X")
    fits = values.ndim == len(shape) and all(
        side <= 1000 if wanted is None else side == wanted for side, wanted in zip(values.shape, shape, strict=True)
    )
    if not fits or values.dtype != np.float64:
        raise ValueError(f"{path.name} holds an array of shape {values.shape} and type {values.dtype}")
    return values
