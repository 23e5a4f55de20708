"""Array of a study's directory, read only if its header claims no more than it may hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from raysel.arrays import FloatArray


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
        If the file cannot be read, or holds another array; nothing is allocated for it.
    """
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        found, _, dtype = header(file)
        fits = len(found) == len(shape) and all(
            side <= 1000 if wanted is None else side == wanted for side, wanted in zip(found, shape, strict=True)
        )
        if not fits or dtype != np.float64:
            raise ValueError(f"{path.name} holds an array of shape {found} and type {dtype}")
        file.seek(0)
        values: FloatArray = np.lib.format.read_array(file, allow_pickle=False)
    return values
