"""Array of a study's directory, read only if it is what its file should hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.data.formats.numpy_files import open_npy


def read_floats(path: Path, shape: tuple[int | None, ...]) -> FloatArray:
    """Read an array of floats in NumPy's format."""
    with open_npy(path) as file:
        values: FloatArray = file.get("X")
    fits = values.ndim == len(shape) and all(
        side <= 1000 if wanted is None else side == wanted for side, wanted in zip(values.shape, shape, strict=True)
    )
    if not fits or values.dtype != np.float64:
        raise ValueError(f"{path.name} holds an array of shape {values.shape} and type {values.dtype}")
    return values
