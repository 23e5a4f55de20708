"""Checks of a method within a study: it learns, finds nothing in permuted labels, and executors agree on it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from raysel.data.dataset import Dataset
from raysel.data.formats.writers import save_dataset
from raysel.execution.executor import Executor
from raysel.execution.serial import SerialExecutor
from raysel.study.definition import Study
from raysel.testing.checks import require, require_same_study
from raysel.testing.estimators.samples import MethodCase, Samples, draw, samples_for
from raysel.testing.studies import prepare_study, run_by

#: Standard deviations of the accuracy of guesses that a method may lie above chance.
_BOUND = 4.0


def study_learns(case: MethodCase) -> None:
    """Nested cross-validation of the suite's data scores above what guesses would."""
    samples = _samples(case)
    score, n, chance = _nested_score(case, samples, samples.y)
    if case.learns:
        bound = chance + _BOUND * np.sqrt(chance * (1 - chance) / n)
        require(score > bound, f"nested accuracy {score:.2f} of {n} samples; guesses reach {bound:.2f}.")


def study_of_permuted_labels_finds_nothing(case: MethodCase) -> None:
    """Nested cross-validation of permuted labels scores as guesses would: nothing of a test sample is learnt."""
    samples = _samples(case)
    score, n, chance = _nested_score(case, samples, np.random.default_rng(9).permutation(samples.y))
    bound = chance + _BOUND * np.sqrt(chance * (1 - chance) / n)
    require(score < bound, f"nested accuracy {score:.2f} of {n} permuted labels; guesses reach {bound:.2f}.")


CHECKS: tuple[Callable[[MethodCase], None], ...] = (study_learns, study_of_permuted_labels_finds_nothing)


def executors_agree(case: MethodCase, make: Callable[[Study], Executor], **search: Any) -> None:
    """An executor gives the numbers of `SerialExecutor` for a small study of the method."""
    samples = _samples(case)
    with tempfile.TemporaryDirectory() as folder:
        study = _study(case, samples, samples.y, Path(folder), **search)
        expected = run_by(SerialExecutor(study), study, Path(folder, "serial"))
        require_same_study(run_by(make(study), study, Path(folder, "other")), expected)


def _samples(case: MethodCase) -> Samples:
    """Enough samples to tell learning from guessing, of the first layout that the method takes."""
    layout = next(samples_for(case)).layout
    if layout.is_multitask:
        return next(samples_for(case))
    return draw("study", layout, 90, 2, seed=8)


def _study(case: MethodCase, samples: Samples, y: Any, folder: Path, **search: Any) -> Study:
    layout = samples.layout
    save_dataset(Dataset(samples.X, y, layout, "suite"), folder / "suite.arrow")
    d = samples.X.shape[1]
    changed = dict(next(iter(case.varied), {}))
    default = {key: value for key, value in case.build(layout).get_params().items() if key in changed}
    space = {key: [default[key], value] for key, value in changed.items() if isinstance(default.get(key), float)}
    params = {key: value for key, value in case.params.items() if key not in space}
    ranked = {"n_features": [d // 4, d // 2], "choose_n": "best"}
    evaluation = {"classifier": "native"} if case.capabilities.predicts else ranked
    config = {
        "name": "suite",
        "seed": 1,
        "dataset": {"scaling": "none"},
        "solver": {"name": case.solver_name, "params": params, "space": space},
        "evaluation": evaluation,
        "cv": {"outer": 3, "inner": 2},
        "search": {"executor": "serial", "max_concurrent": 1, **search},
    }
    return prepare_study(folder / "suite.arrow", config)


def _nested_score(case: MethodCase, samples: Samples, y: Any) -> tuple[float, int, float]:
    """Mean accuracy on the outer test samples, their number, and the accuracy of the best guess."""
    with tempfile.TemporaryDirectory() as folder:
        study = _study(case, samples, y, Path(folder))
        finished = run_by(SerialExecutor(study), study, Path(folder, "run"))
    scores = [refit.record.test_score for refit in finished.refits if refit.record.test_score is not None]
    _, counts = np.unique(y, return_counts=True)
    largest = [part.max() for part in _by_task(y)] if samples.layout.is_multitask else [counts.max()]
    return float(np.mean(scores)), len(y), float(np.sum(largest)) / len(y)


def _by_task(y: Any) -> list[Any]:
    """Counts of the classes of each task."""
    tasks = np.char.partition(y, "/")[:, 0]
    return [np.unique(y[tasks == task], return_counts=True)[1] for task in np.unique(tasks)]
