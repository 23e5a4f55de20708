"""Small studies run by an executor, without an output directory's tables and without MLflow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from raysel.config import config_from_dict
from raysel.cv.records import RefitRecord
from raysel.cv.selection import select_winner
from raysel.execution.executor import Executor
from raysel.execution.trial_plan import trial_plan
from raysel.study.definition import Study
from raysel.tracking.journal import Journal, read_journal
from raysel.tracking.log import Listener, StudyLog
from raysel.tracking.progress import Progress

#: Keys of a record that say when things happened and how long they took.
_TIMES = ("started", "ended", "cpu_seconds")


class Refit(NamedTuple):
    """A fold's winner on its whole training set."""

    record: RefitRecord
    model: Any


@dataclass(frozen=True)
class FinishedStudy:
    """What an executor found, as plain data without times.

    Parameters
    ----------
    trials : dict of str to dict
        Records by their ids.
    refits : list of Refit
        In the order of the outer folds.
    journal : list of dict
        The journal's records, in the order in which they were written.
    """

    trials: dict[str, dict[str, Any]]
    refits: list[Refit]
    journal: list[dict[str, Any]]


def prepare_study(path: Path, config: Mapping[str, Any]) -> Study:
    """A study of a data file, checked and with its data loaded.

    Parameters
    ----------
    path : Path
    config : mapping
        As YAML would give it, ``dataset.path`` left out.

    Returns
    -------
    Study
    """
    return Study.prepare(config_from_dict({**config, "dataset": {"path": str(path), **config.get("dataset", {})}}))


@contextmanager
def study_log(folder: Path, study: Study, listeners: Sequence[Listener] = ()) -> Iterator[StudyLog]:
    """The log of a study in a folder.

    Parameters
    ----------
    folder : Path
        Made where there is none; gets ``journal.jsonl`` and ``progress.json``.
    study : Study
    listeners : sequence of Listener, default=()

    Yields
    ------
    StudyLog
    """
    folder.mkdir(parents=True, exist_ok=True)
    progress = Progress(len(study.configurations), "accuracy")
    with (
        Journal(folder / "journal.jsonl") as journal,
        StudyLog(journal, progress, folder / "progress.json", listeners) as log,
    ):
        yield log


def compute(executor: Executor, study: Study, log: StudyLog, kept: Sequence[Any] = ()) -> tuple[list[Any], list[Refit]]:
    """Run trials and refits of a study.

    Parameters
    ----------
    executor : Executor
        Of the study; entered here.
    study : Study
    log : StudyLog
    kept : sequence of TrialRecord or PathRecord, default=()
        Of an earlier run.

    Returns
    -------
    records : list of TrialRecord
    refits : list of Refit
    """
    work = trial_plan(study, kept)
    with executor:
        executor.run_trials(work, log)
        records = work.finish(log)
        complexity_key = study.complexity_key(records)
        winners = [
            (fold, select_winner(records, fold.name, complexity_key, study.evaluation.choose_n))
            for fold in study.plan.folds
        ]
        return records, [Refit(*refit) for refit in executor.run_refits(winners)]


def run_by(executor: Executor, study: Study, folder: Path, kept: Sequence[Any] = ()) -> FinishedStudy:
    """Run a study by an executor.

    Parameters
    ----------
    executor : Executor
        Of the study.
    study : Study
    folder : Path
        For journal and progress.
    kept : sequence of TrialRecord or PathRecord, default=()
        Of an earlier run.

    Returns
    -------
    FinishedStudy
    """
    with study_log(folder, study) as log:
        records, refits = compute(executor, study, log, kept)
    trials = {record.id: timeless(record.to_json()) for record in records}
    return FinishedStudy(trials, refits, list(read_journal(folder / "journal.jsonl")))


def timeless(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record as JSON text would give it back, but for when things happened.

    Parameters
    ----------
    record : mapping

    Returns
    -------
    dict
    """
    return {key: value for key, value in json.loads(json.dumps(record)).items() if key not in _TIMES}
