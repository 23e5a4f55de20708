"""Studies small enough for tests: a few of scikit-learn's digits, a handful of configurations."""

from __future__ import annotations

import io
import signal
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from rich.console import Console
from sklearn.datasets import load_digits

from raysel.cli.main import main
from raysel.cli.summary import print_answer
from raysel.config import config_from_dict
from raysel.execution.executor import Executor
from raysel.execution.serial import SerialExecutor
from raysel.results.progress import progress_line
from raysel.results.result import StudyResult
from raysel.run import course
from raysel.study.definition import Study
from raysel.testing import checks
from raysel.testing.checks import Refit, compute, timeless
from raysel.testing.checks import study_log as quiet_log
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.log import Progress

__all__ = ["Refit", "compute", "quiet_log", "timeless"]  # the rest is defined here

CLASSES, EACH = 4, 20
#: Lines of a screen of 24 for what a study has found; report, next command and MLflow take five.
SCREEN_LINES = 19

#: The second configuration, which the seed of `raw_config` tries first, is null at once; the others
#: no machine brings to their end: the gap that ``tol`` asks to be 0 is a bound that allows for
#: rounding.
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


class NoUpload:
    """Upload of a study whose journal stays where it is: runs without MLflow."""

    def __init__(self, directory: StudyDirectory) -> None:
        self.directory = directory

    def follow(self, _: StudyDirectory) -> NoUpload:
        return self

    def finish(self, patience: float = 0.0, say: Any = None) -> dict[str, Any]:
        return {}


def streams_of(*words: str) -> tuple[int, str, str]:
    """Run a command in this process; return its status and what it printed on stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = main(words)
        except SystemExit as error:  # of argparse
            status = int(error.code or 0)
    return status, out.getvalue(), err.getvalue()


def shown(result: StudyResult, terminal: bool, verbose: bool = True, **settings: Any) -> list[str]:
    """The lines in which a command ends that tell what a study has found."""
    screen = io.StringIO()
    console = Console(
        file=screen,
        width=80,
        force_terminal=terminal,
        color_system=None,
        soft_wrap=True,
        highlight=False,
    )
    print_answer(result, console, verbose=verbose, **settings)
    return screen.getvalue().splitlines()


def upload_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Upload nothing to MLflow from this process."""
    for name in ("__init__", "follow", "finish"):
        monkeypatch.setattr(
            f"raysel.tracking.upload_process.MLflowUploader.{name}", vars(NoUpload)[name]
        )


class Watcher:
    """Listener that keeps the lines it is shown, and interrupts at the n-th call or at a line
    that starts so.
    """

    def __init__(
        self, call: int = 0, phase: str | None = None, number: int = signal.SIGINT
    ) -> None:
        self.call, self.phase, self.number = call, phase, number
        self.lines: list[str] = []

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def message(self, text: str) -> None:
        pass

    def show(self, progress: Progress) -> None:
        self.lines.append(progress_line(progress))
        if len(self.lines) == self.call or (
            self.phase is not None and self.lines[-1].startswith(self.phase)
        ):
            if self.number == signal.SIGINT:
                raise KeyboardInterrupt
            signal.raise_signal(self.number)


def run_offline(raw: dict[str, Any], folder: Path) -> StudyResult:
    """Run a study whole in this process, without MLflow, which takes seconds to start."""
    study = Study.prepare(config_from_dict(raw))
    return course.run(study, folder, SerialExecutor(study), start_upload=NoUpload)


def resume_offline(raw: dict[str, Any], folder: Path) -> StudyResult:
    """Go on with such a study, which may have been begun elsewhere."""
    study = Study.prepare(config_from_dict(raw))
    directory = StudyDirectory(folder)
    return course.resume(study, directory, SerialExecutor(study), start_upload=NoUpload)


@cache
def _digits() -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's digits, whose text is read once."""
    return load_digits(return_X_y=True)


def write_digits(
    path: Path, classes: int = CLASSES, each: int = EACH, permute: int | None = None
) -> None:
    """The first images of the first digits as (n, 8, 8); labels permuted where a seed is given."""
    X, y = _digits()
    chosen = np.concatenate([np.flatnonzero(y == c)[:each] for c in range(classes)])
    X, y = X[chosen], y[chosen]
    if permute is not None:
        y = np.random.default_rng(permute).permutation(y)
    np.savez(path, X=X.reshape(-1, 8, 8), y=y)


def raw_config(path: Path | str = "few.npz", **changes: Any) -> dict[str, Any]:
    """A small study of a file as plain data; a change is named section__key, or by a section's
    name.

    A command runs it in this process; on Ray it is one trial at a time, for each worker imports for
    seconds. ``search={}`` runs on Ray, as many as there are cores. Pictures take seconds: only for
    who asks for ``pictures``.
    """
    raw: dict[str, Any] = {
        "name": "few",
        "seed": 3,
        "dataset": {"path": str(path)},
        "solver": {
            "name": "smr",
            "params": {"max_iter": 6},
            "space": {"alpha": [0.01, 0.1, 2.0], "rank": [1, 2]},
        },
        "evaluation": {"classifier": "knn", "n_features": [4, 8]},
        "cv": {"outer": 2, "inner": 2},
        "search": {"executor": "serial", "max_concurrent": 1},
        "pictures": [],
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


def run_on_ray(
    study: Study, folder: Path
) -> tuple[dict[str, Any], list[Refit], list[dict[str, Any]]]:
    """Run the study on the Ray that is up, without MLflow: trials by id, refits, the journal's
    records in order.
    """
    from raysel.execution.ray.executor import RayExecutor  # noqa: PLC0415 - Ray only for who needs it

    return run_by(RayExecutor(study, None), study, folder)


def run_serially(
    study: Study, folder: Path
) -> tuple[dict[str, Any], list[Refit], list[dict[str, Any]]]:
    """The same in this process."""
    return run_by(SerialExecutor(study), study, folder)


def run_by(
    executor: Executor, study: Study, folder: Path
) -> tuple[dict[str, Any], list[Refit], list[dict[str, Any]]]:
    """Run the study without MLflow: trials by id, refits, the journal's records in order."""
    finished = checks.run_by(executor, study, folder)
    kept = finished.journal
    assert sorted(r["id"] for r in kept if r["kind"] == "trial") == sorted(finished.trials)
    return finished.trials, finished.refits, kept
