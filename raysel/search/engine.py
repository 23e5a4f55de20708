"""A study's trials and refits on Ray."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import ray
from ray import tune
from ray.exceptions import RayError
from ray.tune import TuneError
from threadpoolctl import threadpool_limits

from raysel.cv.folds import FoldData
from raysel.cv.plan import InnerFold, OuterFold
from raysel.cv.records import RefitRecord, TrialRecord
from raysel.cv.refit import refit_winner
from raysel.errors import StudyError
from raysel.search.callback import JournalCallback
from raysel.search.limits import Limits
from raysel.search.study import Study
from raysel.search.trial import SharedFolds
from raysel.search.work import Work
from raysel.tracking.journal import Journal
from raysel.tracking.progress import Progress

#: Prepared folds may fill this share of the object store; beyond it each trial makes its own.
_STORE_SHARE = 0.5
#: A trial whose worker process dies is started again so many times.
_MAX_RETRIES = 2


def hold(study: Study) -> Any:
    """Put a study where all workers read it.

    Parameters
    ----------
    study : Study

    Returns
    -------
    ray.ObjectRef of Study
    """
    return ray.put(study)


def run_trials(study: Study, held: Any, work: Work, journal: Journal, progress: Progress) -> bool:
    """Do what is left of a study's work: score configurations by inner folds, nothing else.

    Parameters
    ----------
    study : Study
    held : ray.ObjectRef of Study
    work : Work
        Keeps the records.
    journal : Journal
        Told of each trial as it ends.
    progress : Progress

    Returns
    -------
    bool
        Whether ``search.time_budget`` ended the search before all trials were made.

    Raises
    ------
    StudyError
        If more trials fail than may, or Ray or the disk fails.
    """
    logging.getLogger("ray.tune").setLevel(logging.ERROR)
    search = study.config.search
    limits = Limits(search.time_budget, search.max_failures, work)
    callback = JournalCallback(work, journal, progress)
    progress.enter("preparing the folds")
    if study.dataset.X.nbytes > _store_bytes():
        progress.say(
            "the data outgrow Ray's object store and are read from disk instead: give it more "
            "(object_store_memory, when Ray is started) or have patience"
        )
    prepared = _prepare_folds(study, held)
    if prepared is None:
        progress.say("the prepared folds would crowd Ray's object store: each trial makes its own, which takes longer")
    progress.enter("")
    with tempfile.TemporaryDirectory(prefix="raysel-tune-", ignore_cleanup_errors=True) as storage:
        tuner = tune.Tuner(
            tune.with_resources(
                tune.with_parameters(work.trainable, shared=SharedFolds(held, prepared)), {"cpu": search.cpus_per_trial}
            ),
            tune_config=tune.TuneConfig(
                reuse_actors=True,
                # No more than can run: each waiting trial would ask for an actor of its own.
                max_concurrent_trials=search.max_concurrent or _n_slots(search.cpus_per_trial),
                search_alg=work.searcher(),
                num_samples=-1,
                scheduler=work.scheduler(),
                # Module-level functions: Tune pickles them twice a trial, with all that a closure would hold.
                trial_name_creator=_trial_name,
                trial_dirname_creator=_trial_name,
            ),
            run_config=tune.RunConfig(
                name="study",
                storage_path=storage,
                verbose=0,
                callbacks=[callback],
                stop=limits,
                failure_config=tune.FailureConfig(max_failures=_MAX_RETRIES),
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            ),
        )
        try:
            tuner.fit()
        except (TuneError, RayError) as error:
            raise callback.error or StudyError(f"the trials ended early: {_last_line(error)}") from error
    if limits.too_many_failures:
        raise StudyError(
            f"{len(limits.failures)} trials failed, more than search.max_failures={search.max_failures}; "
            f"the last said: {_last_line(limits.failures[-1])}"
        )
    cut = limits.out_of_time and work.n_left > 0
    if cut:
        progress.say(f"search.time_budget is used up: {work.n_left} of {study.n_trials} trials were not made")
    return cut


def _trial_name(trial: Any) -> str:
    return str(trial.config["name"])


def _n_slots(cpus: int) -> int:
    """How many trials the cluster can run at once."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)) // cpus)


def _store_bytes() -> float:
    """What the smallest object store of the cluster holds: trials anywhere read all that is shared."""
    return min(node["Resources"].get("object_store_memory", 0.0) for node in ray.nodes() if node["Alive"])


def _prepare_folds(study: Study, held: Any) -> dict[str, list[Any]] | None:
    """Every inner training set's `FoldData` in the object store, or None if they would crowd it."""
    prepare = _prepare_fold.options(num_cpus=study.config.search.cpus_per_trial)
    fold, number = study.largest
    largest = fold.inner[number]
    first = prepare.remote(held, largest)
    try:
        n_bytes = ray.get(first).nbytes  # read where it lies, not copied
    except RayError as error:
        raise StudyError(f"the folds could not be prepared: {_last_line(error)}") from error
    if n_bytes * study.n_largest > _STORE_SHARE * _store_bytes():
        return None
    return {
        fold.name: [first if inner is largest else prepare.remote(held, inner) for inner in fold.inner]
        for fold in study.plan.folds
    }


@ray.remote
def _prepare_fold(study: Study, inner: InnerFold) -> FoldData:
    with threadpool_limits(study.config.search.cpus_per_trial):
        return study.fold_data(inner)


def run_refits(
    study: Study, held: Any, winners: Sequence[tuple[OuterFold, TrialRecord]]
) -> Iterator[tuple[RefitRecord, Any]]:
    """Refit winners on their outer training sets and score each once.

    Parameters
    ----------
    study : Study
    held : ray.ObjectRef of Study
    winners : sequence of (OuterFold, TrialRecord)

    Yields
    ------
    record : RefitRecord
    model : Pipeline
        Scaler and solver, fitted; in the order of the winners.

    Raises
    ------
    StudyError
        If a refit fails.
    """
    cpus = study.config.search.cpus_per_trial
    running = [_refit.options(num_cpus=cpus).remote(held, fold, winner) for fold, winner in winners]
    for (fold, winner), refit in zip(winners, running, strict=True):
        try:
            yield ray.get(refit)
        except RayError as error:
            raise StudyError(
                f"the winner of {fold.name}, {winner.name}, could not be refitted: {_last_line(error)}"
            ) from error


def _last_line(error: Exception | str) -> str:
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
