"""The two sides that the benchmarks compare: a study as raysel runs it, and its work in a plain
joblib loop.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from joblib import Parallel, delayed

from raysel import run_study
from raysel.evaluation.nested_search import select_winner
from raysel.execution.serial import refit as refit_here
from raysel.execution.trials import ConfigurationTrial
from raysel.study.definition import Study
from raysel.tracking.log import Progress


class PhaseTimes:
    """Listener that notes the moment at which each phase of a study last began.

    Attributes
    ----------
    began : dict of str to float
        Seconds since the epoch, by phase; an empty phase while trials run.
    cpu : dict of str to float
        CPU seconds of this process until then.
    """

    def __init__(self) -> None:
        self.began: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        self._phase: str | None = None

    def __enter__(self) -> PhaseTimes:
        return self

    def __exit__(self, *_: object) -> None: ...

    def show(self, progress: Progress) -> None:
        """Note the time where the phase has changed."""
        if progress.phase != self._phase:
            self._phase = progress.phase
            self.began[progress.phase], self.cpu[progress.phase] = time.time(), time.process_time()

    def message(self, text: str) -> None:
        """Show nothing."""


def run_raysel(study: Study, path: Path) -> dict:
    """Run the whole study; Ray is up and MLflow's store is a new file beside it.

    Returns the moments (seconds since the epoch) at which each part began, and the trials and
    refits.
    """
    tracking = study.config.tracking.model_copy(update={"uri": f"sqlite:///{path}.db"})
    study = replace(study, config=study.config.model_copy(update={"tracking": tracking}))
    phases, cpu = PhaseTimes(), time.process_time()
    finished = run_study(study, output=path, progress=phases)
    ended = time.time()
    if not finished.tracking["complete"]:
        raise SystemExit(f"MLflow does not hold all runs: {finished.tracking}")
    trials = finished.records
    return {
        "prepare": phases.began["preparing the folds"],
        "actors": phases.began[""],
        "first trial": min(record.started for record in trials),
        "last trial": max(record.ended for record in trials),
        "refit": phases.began["refitting the winners"],
        "export": phases.began["writing the results"],
        "MLflow": max(phases.began.values()),  # the last phase
        "end": ended,
        "driver CPU": time.process_time() - cpu,
        "trials": {record.id: record.to_json()["folds"] for record in trials},
        "busy": sum(record.ended - record.started for record in trials),
        "refits": {refit.fold: refit.feature_scores for refit in finished.refits},
    }


def run_joblib(study: Study, pool: Parallel) -> dict:
    """The same folds prepared, the same lock-step fits and evaluations, the same refits, and
    nothing else.
    """
    prepare = time.time()
    params = study.examples[0].params
    prepared = iter(
        pool(delayed(study.trial_split)(fold, inner, params) for fold, inner in study.training_sets)
    )
    folds = {fold.name: [next(prepared) for _ in fold.inner] for fold in study.plan.folds}
    trials = time.time()
    records = pool(
        delayed(_trial)(study, folds, number) for number in range(len(study.configurations))
    )
    refit = time.time()
    preference, rule = study.preference(records), study.evaluation.choose_n
    winners = [select_winner(records, fold.name, preference, rule)[0] for fold in study.plan.folds]
    refits = pool(
        delayed(refit_here)(study, *pair) for pair in zip(study.plan.folds, winners, strict=True)
    )
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
    trial = ConfigurationTrial(
        study, {"configuration": number}, lambda fold, inner, _: folds[fold.name][inner]
    )
    for _ in trial.steps():
        pass
    return trial.record


def check_same_work(ours: dict, plain: dict) -> None:
    """Stop unless both sides found the same objectives, scores and rankings, to the last bit."""
    if ours["trials"] != plain["trials"] or ours["refits"] != plain["refits"]:
        raise SystemExit("the two sides did not do the same work")
