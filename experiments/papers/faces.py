"""The three face sets of MTDA's paper as tasks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from experiments.experiment import Experiment, read, unit_scaled
from raysel.evaluation.splitters import draw_per_class

TASKS = {"AR": "AR (MTDA)", "ORL": "ORL (MTDA)", "PIE": "PIE"}
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def paths(experiment: Experiment) -> dict[str, str]:
    """Files of the tasks by their names; the short form leaves out the largest."""
    if experiment.data:
        return {name: str(path) for name, path in experiment.data.items()}
    return {
        task: str(experiment.path(name)) for task, name in list(TASKS.items())[experiment.fast :]
    }


def splits(files: dict[str, str], per_person: int, draw: int) -> Iterator[Split]:
    """Yield training and test set of each task: X in [0, 1] and y."""
    for file in files.values():
        data = read(file)
        X = unit_scaled(data)
        train, test = draw_per_class(data.y, per_person, groups=None, random_state=draw)
        yield X[train], data.y[train], X[test], data.y[test]


def n_pixels(files: dict[str, str]) -> int:
    """Number of pixels of the task that has the fewest."""
    return min(read(file).n_features for file in files.values())


def rank(files: dict[str, str], per_person: int) -> int:
    """Smallest rank of the tasks' total scatter of a training set."""
    return min(
        min(read(file).n_features, len(np.unique(read(file).y)) * per_person - 1)
        for file in files.values()
    )
