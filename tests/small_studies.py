"""Studies small enough for tests: a few of scikit-learn's digits, a handful of configurations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from sklearn.datasets import load_digits

from raysel.config import config_from_dict
from raysel.cv.records import RefitRecord
from raysel.cv.selection import select_winner
from raysel.execution.executor import Executor
from raysel.execution.serial import SerialExecutor
from raysel.execution.trial_plan import trial_plan
from raysel.study.definition import Study
from raysel.tracking.journal import Journal, read_journal
from raysel.tracking.log import StudyLog
from raysel.tracking.progress import Progress

CLASSES, EACH = 4, 20

#: The second configuration, which the seed of `raw_config` tries first, is null at once; the others no machine brings
#: to their end: the gap that ``tol`` asks to be 0 is a bound that allows for rounding.
ENDLESS = {
    "name": "smml",
    "params": {"gamma2": 0.01, "tol": 0.0, "max_iter": 10_000_000},
    "space": {"gamma1": [0.01, 2.0, 0.02]},
}


@dataclass(frozen=True)
class CommandRun:
    """What a command left: exit status, both streams, the study's directory."""

    status: int
    out: str
    err: str
    study: Path


def write_digits(path: Path, classes: int = CLASSES, each: int = EACH, permute: int | None = None) -> None:
    """The first images of the first digits as (n, 8, 8); labels permuted where a seed is given."""
    X, y = load_digits(return_X_y=True)
    chosen = np.concatenate([np.flatnonzero(y == c)[:each] for c in range(classes)])
    X, y = X[chosen], y[chosen]
    if permute is not None:
        y = np.random.default_rng(permute).permutation(y)
    np.savez(path, X=X.reshape(-1, 8, 8), y=y)


def raw_config(path: Path | str = "few.npz", **changes: Any) -> dict[str, Any]:
    """A small study of a file as plain data; a change is named section__key, or by a section's name.

    A command runs it in this process; on Ray it is one trial at a time, for each worker imports for seconds.
    ``search={}`` runs on Ray, as many as there are cores.
    """
    raw: dict[str, Any] = {
        "name": "few",
        "seed": 3,
        "dataset": {"path": str(path)},
        "solver": {"name": "smr", "params": {"max_iter": 6}, "space": {"alpha": [0.01, 0.1, 2.0], "rank": [1, 2]}},
        "evaluation": {"classifier": "knn", "n_features": [4, 8]},
        "cv": {"outer": 2, "inner": 2},
        "search": {"executor": "serial", "max_concurrent": 1},
    }
    for name, value in changes.items():
        *sections, key = name.split("__")
        section = raw
        for part in sections:
            section = section.setdefault(part, {})
        section[key] = value
    return raw


def write_yaml(path: Path, **changes: Any) -> Path:
    """Write `raw_config` as YAML."""
    path.write_text(yaml.safe_dump(raw_config(**changes)), encoding="utf-8")
    return path


def make_study(path: Path, **changes: Any) -> Study:
    """The study, checked and with its data loaded."""
    return Study.prepare(config_from_dict(raw_config(path, **changes)))


@contextmanager
def quiet_log(folder: Path, study: Study) -> Iterator[StudyLog]:
    """The log of a study in a folder, without listeners."""
    folder.mkdir(parents=True, exist_ok=True)
    progress = Progress(len(study.configurations), "accuracy")
    with Journal(folder / "journal.jsonl") as journal, StudyLog(journal, progress, folder / "progress.json") as log:
        yield log


class Refit(NamedTuple):
    """A fold's winner on its whole training set."""

    record: RefitRecord
    model: Any


def compute(executor: Executor, study: Study, log: StudyLog, kept: list[Any] = ()) -> tuple[list[Any], list[Refit]]:
    """Trials, winners and refits."""
    work = trial_plan(study, kept)
    with executor:
        executor.run_trials(work, log)
        records = work.finish(log)
        complexity_key = study.complexity_key(records)
        winners = [(fold, select_winner(records, fold.name, complexity_key)) for fold in study.plan.folds]
        return records, [Refit(*refit) for refit in executor.run_refits(winners)]


def run_on_ray(study: Study, folder: Path) -> tuple[dict[str, Any], list[Refit], list[dict[str, Any]]]:
    """Run the study on the Ray that is up, without MLflow: trials by id, refits, the journal's records in order."""
    from raysel.distributed.executor import RayExecutor  # noqa: PLC0415 - Ray only for who needs it

    return run_by(RayExecutor(study, None), study, folder)


def run_serially(study: Study, folder: Path) -> tuple[dict[str, Any], list[Refit], list[dict[str, Any]]]:
    """The same in this process."""
    return run_by(SerialExecutor(study), study, folder)


def run_by(executor: Executor, study: Study, folder: Path) -> tuple[dict[str, Any], list[Refit], list[dict[str, Any]]]:
    """Run the study without MLflow: trials by id, refits, the journal's records in order."""
    with quiet_log(folder, study) as log:
        records, refits = compute(executor, study, log)
    kept = list(read_journal(folder / "journal.jsonl"))
    assert sorted(r["id"] for r in kept if r["kind"] == "trial") == sorted(record.id for record in records)
    return {record.id: timeless(record.to_json()) for record in records}, refits, kept


def timeless(record: dict[str, Any]) -> dict[str, Any]:
    """A record as JSON text would give it back, but for when things happened."""
    return {key: value for key, value in json.loads(json.dumps(record)).items() if key not in ("started", "ended")}
