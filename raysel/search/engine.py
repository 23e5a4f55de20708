"""Running a study on Ray: put, run, select, refit, collect."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray import tune
from ray.exceptions import RayError
from ray.tune import TuneError
from ray.tune.schedulers import FIFOScheduler
from threadpoolctl import threadpool_limits

from raysel.cv.folds import FoldData
from raysel.cv.plan import InnerFold, OuterFold
from raysel.cv.records import RefitRecord, TrialRecord
from raysel.cv.refit import refit_winner
from raysel.cv.selection import select_winner
from raysel.errors import StudyError
from raysel.search.callback import JournalCallback
from raysel.search.study import Study
from raysel.search.trial import SharedFolds
from raysel.search.work import ByConfiguration, ByTrainingSet
from raysel.tracking.journal import Journal
from raysel.tracking.progress import Progress

#: Prepared folds may fill this share of the object store; beyond it each trial makes its own.
_STORE_SHARE = 0.5
#: A trial whose worker process dies is started again so many times.
_MAX_FAILURES = 2


@dataclass(frozen=True)
class Refit:
    """A fold's winner on its whole training set.

    Parameters
    ----------
    record : RefitRecord
    model : Pipeline
        Scaler and solver, fitted.
    """

    record: RefitRecord
    model: Any


def run_study(study: Study, journal: Journal, progress: Progress) -> tuple[list[TrialRecord], list[Refit]]:
    """Score every configuration by inner folds, then refit each outer fold's own winner and the model.

    Ray must be running.

    Parameters
    ----------
    study : Study
    journal : Journal
        Told of each trial as it ends.
    progress : Progress

    Returns
    -------
    records : list of TrialRecord
        In the order of the configurations.
    refits : list of Refit
        In the order of the folds, the final one last.

    Raises
    ------
    StudyError
        If no configuration has a score on some fold, a refit fails, or Ray or the disk does.
    """
    progress.enter("preparing the folds")
    held = ray.put(study)
    records = _run_trials(study, held, journal, progress)
    progress.enter("refitting the winners")
    return records, _run_refits(study, held, records)


def _run_trials(study: Study, held: Any, journal: Journal, progress: Progress) -> list[TrialRecord]:
    logging.getLogger("ray.tune").setLevel(logging.ERROR)
    cpus = study.config.search.cpus_per_trial
    work = ByTrainingSet(study) if study.config.search.method == "path" else ByConfiguration(study)
    names = work.names
    callback = JournalCallback(work, journal, progress)
    shared = SharedFolds(held, _prepare_folds(study, held))
    progress.enter("")
    with tempfile.TemporaryDirectory(prefix="raysel-tune-", ignore_cleanup_errors=True) as storage:
        tuner = tune.Tuner(
            tune.with_resources(tune.with_parameters(work.trainable, shared=shared), {"cpu": cpus}),
            param_space={"piece": tune.grid_search(list(range(len(names))))},
            tune_config=tune.TuneConfig(
                reuse_actors=True,
                # No more than can run: each waiting trial would ask for an actor of its own.
                max_concurrent_trials=study.config.search.max_concurrent or _n_slots(cpus),
                scheduler=KeepActors(),
                trial_name_creator=lambda trial: names[trial.config["piece"]],
                trial_dirname_creator=lambda trial: names[trial.config["piece"]],
            ),
            run_config=tune.RunConfig(
                name="study",
                storage_path=storage,
                verbose=0,
                callbacks=[callback],
                failure_config=tune.FailureConfig(max_failures=_MAX_FAILURES),
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            ),
        )
        try:
            tuner.fit()
        except (TuneError, RayError) as error:
            raise callback.error or StudyError(f"the trials ended early: {_last_line(error)}") from error
    return work.finish(callback.records, journal)


def _n_slots(cpus: int) -> int:
    """How many trials the cluster can run at once."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)) // cpus)


class KeepActors(FIFOScheduler):
    """Leaves each trial to the actor that starts for it.

    Tune's own would give it an actor that falls free meanwhile and stop the one that starts: with
    short trials one actor would do all the work.
    """

    def choose_trial_to_run(self, tune_controller: Any) -> None:
        """None: the controller then starts each trial where it belongs, in the order of arrival."""


def _prepare_folds(study: Study, held: Any) -> dict[str, list[Any]] | None:
    """Every inner training set's `FoldData` in the object store, or None if they would crowd it."""
    prepare = _prepare_fold.options(num_cpus=study.config.search.cpus_per_trial)
    store = ray.cluster_resources().get("object_store_memory", 0.0)
    largest = study.plan.final.inner[0]
    first = prepare.remote(held, largest)
    try:
        n_bytes = ray.get(first).nbytes  # read where it lies, not copied
    except RayError as error:
        raise StudyError(f"the folds could not be prepared: {_last_line(error)}") from error
    if n_bytes * study.n_inner > _STORE_SHARE * store:
        return None
    return {
        fold.name: [first if inner is largest else prepare.remote(held, inner) for inner in fold.inner]
        for fold in study.plan.folds
    }


@ray.remote
def _prepare_fold(study: Study, inner: InnerFold) -> FoldData:
    with threadpool_limits(study.config.search.cpus_per_trial):
        return study.fold_data(inner)


def _run_refits(study: Study, held: Any, records: Sequence[TrialRecord]) -> list[Refit]:
    winners = [select_winner(records, fold.name, study.simplicity) for fold in study.plan.folds]
    cpus = study.config.search.cpus_per_trial
    running = [
        _refit.options(num_cpus=cpus).remote(held, fold, winner)
        for fold, winner in zip(study.plan.folds, winners, strict=True)
    ]
    refits = []
    for fold, winner, refit in zip(study.plan.folds, winners, running, strict=True):
        try:
            refits.append(Refit(*ray.get(refit)))
        except RayError as error:
            raise StudyError(
                f"the winner of {fold.name}, {winner.name}, could not be refitted: {_last_line(error)}"
            ) from error
    return refits


def _last_line(error: Exception) -> str:
    return str(error).strip().rpartition("\n")[2] or type(error).__name__


@ray.remote
def _refit(study: Study, fold: OuterFold, winner: TrialRecord) -> tuple[RefitRecord, Any]:
    state = fold.random_state(study.config.seed)
    with threadpool_limits(study.config.search.cpus_per_trial):
        return refit_winner(
            study.dataset.X,
            study.dataset.y,
            fold,
            winner,
            study.solver(winner.params, state),
            scaler=study.scaler(),
            evaluation=study.evaluation,
            random_state=state,
        )
