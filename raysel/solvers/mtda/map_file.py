"""Reader of files with the maps of aligned tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raysel.arrays import FloatArray
from raysel.data.formats.files import find_data_file, reading
from raysel.data.formats.numpy_files import open_npz
from raysel.errors import ConfigError, DataError

_FORMAT = "A file of maps is .npz with an array of shape (n_features of the task, d') for each task's name."


def read_maps(path: str, names: Sequence[str]) -> list[FloatArray]:
    """Read the map of each task, without unpickling."""
    try:
        file_path = find_data_file(path, _FORMAT)
        with reading(file_path, "a file of maps (.npz)"), open_npz(file_path) as file:
            maps = {name: np.asarray(file.get(name), dtype=np.float64) for name in file.names}
    except DataError as error:
        raise ConfigError(f"aligned={path!r}: {error}") from error
    keys = list(maps) if list(names) == [""] and len(maps) == 1 else names
    for key in keys:
        if key not in maps:
            problem = f"no map of task {key!r}" if key else f"{len(maps)} maps for one task without a name"
            raise ConfigError(f"aligned={path!r} has {problem}; it holds {', '.join(maps)}. {_FORMAT}")
    return [maps[key] for key in keys]
