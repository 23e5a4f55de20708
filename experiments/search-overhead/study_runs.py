"""The two sides that the benchmarks compare: a study as raysel runs it, and its work in a plain joblib loop."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from joblib import Parallel, delayed
from rich.console import Console

import raysel.distributed.session  # noqa: F401 - sets what Ray reads when it is imported
import raysel.execution.runner as raysel_run
from raysel.config.schema import StudyConfig
from raysel.cv.lockstep import run_in_lockstep
from raysel.cv.records import FoldTrace, TrialRecord
from raysel.cv.selection import select_winner
from raysel.execution.computing import refit as refit_here
from raysel.study.definition import Study
from raysel.tracking.journal import read_journal
from raysel.tracking.progress import Progress


class TimedProgress(Progress):
    """raysel's own progress, which also notes when each phase of a study began."""

    began: ClassVar[dict[str, float]] = {}

    def enter(self, phase: str) -> None:
        """Note the time."""
        self.began[phase] = time.time()
        super().enter(phase)


raysel_run.Progress = TimedProgress


def make_study(config: dict) -> Study:
    """A study from plain data, checked and with its data loaded."""
    return Study.prepare(StudyConfig.model_validate(config))


def run_raysel(study: Study, path: Path) -> dict:
    """Run the whole study, as `python -m raysel.tune` does; Ray is up and MLflow's store is a new file beside it.

    Returns the moments (seconds since the epoch) at which each part began, and the trials and refits.
    """
    config = study.config.model_copy(
        update={"tracking": study.config.tracking.model_copy(update={"uri": f"sqlite:///{path}.db"})}
    )
    study = replace(study, config=config)
    TimedProgress.began.clear()
    cpu = time.process_time()
    finished = raysel_run.run(study, path, address=None, console=Console(quiet=True))
    ended = time.time()
    if not finished.tracking["complete"]:
        raise SystemExit(f"MLflow was not told everything: {finished.tracking}")
    began, journal = dict(TimedProgress.began), list(read_journal(path / "journal.jsonl"))
    trials = [record for record in journal if record["kind"] == "trial"]
    return {
        "prepare": began["preparing the folds"],
        "actors": began[""],
        "first trial": min(record["started"] for record in trials),
        "last trial": max(record["ended"] for record in trials),
        "refit": began["refitting the winners"],
        "export": began["writing the ranking"],
        "MLflow": began["telling MLflow the rest"],
        "end": ended,
        "driver CPU": time.process_time() - cpu,
        "trials": {record["id"]: record["folds"] for record in trials},
        "busy": sum(record["ended"] - record["started"] for record in trials),
        "refits": {record["fold"]: record["feature_scores"] for record in journal if record["kind"] == "refit"},
    }


def run_joblib(study: Study, pool: Parallel) -> dict:
    """The same folds prepared, the same lock-step fits and evaluations, the same refits, and nothing else."""
    prepare = time.time()
    params = study.examples[0].params
    prepared = iter(pool(delayed(study.fold_data)(inner, params) for fold in study.plan.folds for inner in fold.inner))
    folds = {fold.name: [next(prepared) for _ in fold.inner] for fold in study.plan.folds}
    trials = time.time()
    records = pool(delayed(_trial)(study, folds, number) for number in range(len(study.configurations)))
    refit = time.time()
    complexity_key = study.complexity_key(records)
    winners = [select_winner(records, fold.name, complexity_key) for fold in study.plan.folds]
    refits = pool(delayed(refit_here)(study, *pair) for pair in zip(study.plan.folds, winners, strict=True))
    return {
        "prepare": prepare,
        "first trial": trials,
        "refit": refit,
        "end": time.time(),
        "trials": {record.id: record.to_json()["folds"] for record in records},
        "busy": sum(record.ended - record.started for record in records),
        "refits": {record.fold: record.feature_scores for record, _ in refits},
    }


def _trial(study, folds, number):
    configuration = study.configurations[number]
    record = TrialRecord(configuration.id, configuration.name, dict(configuration.params), "finished")
    record.started = time.time()
    for fold in study.plan.folds:
        states = [fold.random_state(study.config.seed, inner) for inner in range(len(fold.inner))]
        solvers = [study.solver(configuration.params, state) for state in states]
        trace = record.folds[fold.name] = FoldTrace()
        for _ in run_in_lockstep(solvers, folds[fold.name], study.evaluation, states, trace):
            pass
    record.ended = time.time()
    return record


def check_same_work(ours: dict, plain: dict) -> None:
    """Stop unless both sides found the same objectives, scores and rankings, to the last bit."""
    if ours["trials"] != plain["trials"] or ours["refits"] != plain["refits"]:
        raise SystemExit("the two sides did not do the same work")
