"""Runs of small studies by an executor, without result files and without MLflow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from raysel.config import config_from_dict
from raysel.evaluation.nested_search import select_winner
from raysel.evaluation.records import RefitRecord
from raysel.execution.executor import Executor
from raysel.execution.trial_plan import trial_plan
from raysel.study.definition import Study
from raysel.tracking.journal import Journal, read_journal
from raysel.tracking.log import Listener, Progress, StudyLog

#: Keys of a record that say when things happened and how long they took.
_TIMES = ("started", "ended", "cpu_seconds")


class Refit(NamedTuple):
    """Refit of a fold's winner on the whole training set: its record and the fitted pipeline."""

    record: RefitRecord
    model: Any


@dataclass(frozen=True)
class FinishedStudy:
    """Trials, refits and journal of a study that an executor has run, without times."""

    trials: dict[str, dict[str, Any]]
    refits: list[Refit]
    journal: list[dict[str, Any]]


def prepare_study(path: Path, config: Mapping[str, Any]) -> Study:
    """Prepare a study of a data file."""
    return Study.prepare(config_from_dict({**config, "dataset": {"path": str(path), **config.get("dataset", {})}}))


@contextmanager
def study_log(folder: Path, study: Study, listeners: Sequence[Listener] = ()) -> Iterator[StudyLog]:
    """Open the event log of a study in a folder, and close it at the end of the context."""
    folder.mkdir(parents=True, exist_ok=True)
    progress = Progress(len(study.configurations), "accuracy")
    with (
        Journal(folder / "journal.jsonl") as journal,
        StudyLog(journal, progress, folder / "progress.json", listeners) as log,
    ):
        yield log


def compute(executor: Executor, study: Study, log: StudyLog, kept: Sequence[Any] = ()) -> tuple[list[Any], list[Refit]]:
    """Run trials and refits of a study."""
    work = trial_plan(study, kept)
    with executor:
        executor.run_trials(work, log)
        records = work.finish(log)
        preference = study.preference(records)
        winners = [
            (fold, select_winner(records, fold.name, preference, study.evaluation.choose_n)[0])
            for fold in study.plan.folds
        ]
        return records, [Refit(*refit) for refit in executor.run_refits(winners)]


def run_by(executor: Executor, study: Study, folder: Path, kept: Sequence[Any] = ()) -> FinishedStudy:
    """Run a study by an executor."""
    with study_log(folder, study) as log:
        records, refits = compute(executor, study, log, kept)
    trials = {record.id: timeless(record.to_json()) for record in records}
    return FinishedStudy(trials, refits, list(read_journal(folder / "journal.jsonl")))


def timeless(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as it is read back from JSON, without its times."""
    return {key: value for key, value in json.loads(json.dumps(record)).items() if key not in _TIMES}
