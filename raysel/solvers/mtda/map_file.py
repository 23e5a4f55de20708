"""The maps of aligned tasks, kept in a file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raysel.arrays import FloatArray
from raysel.data.formats.files import find_data_file, reading
from raysel.errors import ConfigError, DataError

_FORMAT = "A file of maps is .npz with an array for each task, by the task's name, of shape (its features, d')."


def read_maps(path: str, names: Sequence[str]) -> list[FloatArray]:
    """Read the map of each task; nothing is unpickled.

    Parameters
    ----------
    path : str
        An .npz file, looked up as data files are: from the working directory, then from ``$RAYSEL_DATA``.
    names : sequence of str
        The tasks; of a single one without a name the file's only array is the map.

    Returns
    -------
    list of ndarray
        In the tasks' order.

    Raises
    ------
    ConfigError
        If there is no such file, it cannot be read, or lacks a task.
    """
    try:
        place = find_data_file(path, _FORMAT)
        with reading(place, "a file of maps (.npz)"), np.load(place, allow_pickle=False) as file:
            held = {name: np.asarray(file[name], dtype=np.float64) for name in file.files}
    except DataError as error:
        raise ConfigError(f"aligned={path!r}: {error}") from error
    wanted = list(held) if list(names) == [""] and len(held) == 1 else names
    for name in wanted:
        if name not in held:
            lacking = f"no map of task {name!r}" if name else f"{len(held)} maps for one task without a name"
            raise ConfigError(f"aligned={path!r} has {lacking}; it holds {', '.join(held)}. {_FORMAT}")
    return [held[name] for name in wanted]
