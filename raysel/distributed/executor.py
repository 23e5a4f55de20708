"""Executor that runs a study's trials and refits on Ray."""

from __future__ import annotations

import gc
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import Any

import ray
from ray import tune
from ray.exceptions import RayError
from ray.tune import TuneError

from raysel.clock import RunningTimer
from raysel.cv.plan import InnerFold, OuterFold
from raysel.cv.prepared import FoldData
from raysel.cv.records import RefitRecord, TrialRecord
from raysel.distributed.callback import RecorderCallback
from raysel.distributed.nodes import other_versions
from raysel.distributed.session import mlflow_hidden_from_tune, node_check, ray_session
from raysel.distributed.trainable import SharedFolds, StudyTrainable
from raysel.distributed.tune_adapters import PlanScheduler, PlanSearcher, StudyStopper
from raysel.errors import StudyError
from raysel.execution.computing import TaskEnd, prepare_fold, refit, run_task
from raysel.execution.executor import Executor, last_line, refit_error
from raysel.execution.limits import SearchLimits
from raysel.execution.recorder import Recorder
from raysel.execution.trial_plan import TrialPlan
from raysel.study.definition import Study
from raysel.tracking.log import StudyLog

#: Largest share of the object store for prepared folds; further folds are prepared again by each trial.
_STORE_SHARE = 0.5
#: Number of times that a trial is started again after its worker process died.
_MAX_RETRIES = 2
#: Number of times that tasks are cancelled, a second apart, if they do not end.
_CANCELLATIONS = 10


class RayExecutor(Executor):
    """Executor on Ray's workers; connects to Ray when it is first needed and disconnects at the end.

    Parameters
    ----------
    study : Study
        Study to compute.
    address : str or None
        Address of a Ray cluster; None starts Ray on this machine.
    allow_mixed_versions : bool, default=False
        Whether nodes may compute whose versions can change numbers.
    """

    def __init__(self, study: Study, address: str | None, *, allow_mixed_versions: bool = False) -> None:
        self._study, self._address, self._allow_mixed_versions = study, address, allow_mixed_versions
        self._session = ExitStack()
        #: Tasks to cancel if the study is interrupted or fails, because Ray may go on with other work.
        self._tasks: list[Any] = []

    def __exit__(self, kind: object, *_: object) -> None:
        with self._session:
            if kind is not None:
                self._cancel_tasks()
                gc.collect()  # ends the actors of an interrupted search, which reference each other
            self._tasks.clear()

    def _cancel_tasks(self) -> None:
        """Cancel the tasks until all have ended, because one whose worker is just starting may miss it."""
        left = list(dict.fromkeys(self._tasks))  # ray.wait refuses duplicates
        for _ in range(_CANCELLATIONS):
            if not left:
                return
            for task in left:
                ray.cancel(task, force=True)  # nothing happens to a task that has ended
            _, left = ray.wait(left, num_returns=len(left), timeout=1, fetch_local=False)

    @cached_property
    def _study_ref(self) -> Any:
        """Reference to the study in Ray's object store."""
        session = ray_session(self._address, [self._study], allow_mixed_versions=self._allow_mixed_versions)
        self._session.enter_context(session)
        check = node_check()
        return ray.put(check.guard(self._study) if check else self._study)

    def run_trials(self, plan: TrialPlan, log: StudyLog) -> bool:
        """Run the remaining trials of a plan as trials of Ray Tune.

        Parameters
        ----------
        plan : TrialPlan
            Proposes the trials and receives their records.
        log : StudyLog
            Receives the events of the trials.

        Returns
        -------
        bool
            Whether ``search.time_budget`` ended the search before all trials were made.

        Raises
        ------
        StudyError
            If Ray does not start or fails, more than ``search.max_failures`` trials fail, or the disk fails.
        """
        log.enter_phase(f"joining {self._address}" if self._address else "starting Ray")
        study_ref, study, search = self._study_ref, self._study, self._study.config.search
        logging.getLogger("ray.tune").setLevel(logging.ERROR)
        if check := node_check():
            check.record(log)
        limits = SearchLimits(search.time_budget, search.max_failures, plan)
        callback = RecorderCallback(plan, Recorder(plan, log))
        log.enter_phase("preparing the folds")
        if study.dataset.X.nbytes > _store_bytes():
            log.message(
                "the data exceed Ray's object store and will spill to disk, which is slower: start Ray with a larger "
                "object_store_memory"
            )
        prepared = self._prepare_folds()
        if len(prepared) < study.n_inner * len(study.prepared_examples):
            log.message(
                f"the prepared folds exceed {_STORE_SHARE:.0%} of Ray's object store: each trial prepares them again, "
                "which is slower"
            )
        log.enter_phase("")
        with tempfile.TemporaryDirectory(prefix="raysel-tune-", ignore_cleanup_errors=True) as storage:
            tuner = tune.Tuner(
                tune.with_resources(
                    tune.with_parameters(
                        StudyTrainable, shared=SharedFolds(study_ref, prepared), trial_class=plan.trial_class
                    ),
                    {"cpu": search.cpus_per_trial},
                ),
                tune_config=tune.TuneConfig(
                    reuse_actors=True,
                    # No more than can run: Tune would start an actor for each waiting trial.
                    max_concurrent_trials=search.max_concurrent or _n_slots(search.cpus_per_trial),
                    search_alg=PlanSearcher(plan),
                    num_samples=-1,
                    scheduler=PlanScheduler(plan),
                    # Module-level functions: Tune pickles them twice per trial, including the variables of a closure.
                    trial_name_creator=_trial_name,
                    trial_dirname_creator=_trial_name,
                ),
                run_config=tune.RunConfig(
                    name="study",
                    storage_path=storage,
                    verbose=0,
                    callbacks=[callback],
                    stop=StudyStopper(limits),
                    failure_config=tune.FailureConfig(max_failures=_MAX_RETRIES),
                    checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                ),
            )
            try:
                with mlflow_hidden_from_tune():
                    tuner.fit()
            except (TuneError, RayError) as error:
                raise (
                    callback.error
                    or other_versions(error)
                    or StudyError(f"Ray Tune failed: {last_line(error)}. Resume the study.")
                ) from error
            except KeyboardInterrupt as error:
                # The frames of Tune hold the actors: while the traceback exists, they keep their CPUs.
                raise error.with_traceback(None) from None
        self._tasks.clear()  # the prepared folds may leave the object store
        if check:
            check.record_late(log)
        limits.check_failures()
        return limits.out_of_time and plan.n_left > 0

    def _prepare_folds(self) -> dict[tuple[str, int, str], Any]:
        """Put the `FoldData` of all inner folds in the object store, for as many prepare keys as fit in their share."""
        study, found = self._study, {}
        prepare = _prepare.options(num_cpus=study.config.search.cpus_per_trial)
        largest, number = study.largest
        room = _STORE_SHARE * _store_bytes()
        for key, params in study.prepared_examples.items():
            first = prepare.remote(self._study_ref, largest.inner[number], params)
            self._tasks.append(first)
            try:
                room -= ray.get(first).nbytes * study.n_largest  # read from shared memory, not copied
            except RayError as error:
                raise other_versions(error) or StudyError(
                    f"the folds could not be prepared: {last_line(error)}"
                ) from error
            if room < 0:
                self._tasks.pop()
                break
            for fold, i in study.training_sets:
                known = fold is largest and i == number
                task = first if known else prepare.remote(self._study_ref, fold.inner[i], params)
                found[fold.name, i, key] = task
                self._tasks.append(task)
        return found

    def run_refits(self, winners: Sequence[tuple[OuterFold, TrialRecord]]) -> Iterator[tuple[RefitRecord, Any]]:
        """Refit winners on their outer training sets, in parallel, and score each once."""
        cpus = self._study.config.search.cpus_per_trial
        for fold, winner in winners:
            self._tasks.append(_refit.options(num_cpus=cpus).remote(self._study_ref, fold, winner))
        for (fold, winner), task in zip(winners, self._tasks, strict=True):
            try:
                yield ray.get(task)
            except RayError as error:
                raise other_versions(error) or refit_error(fold, winner, error) from error

    def run_tasks(
        self, function: Callable[[Study, Any], Any], arguments: Sequence[Any], limit: float | None = None
    ) -> Iterator[TaskEnd]:
        """Compute ``function(study, argument)`` for each argument, in parallel."""
        cpus = self._study.config.search.cpus_per_trial
        compute, study_ref = _task.options(num_cpus=cpus, max_retries=_MAX_RETRIES), self._study_ref
        window = self._study.config.search.max_concurrent or 2 * _n_slots(cpus)  # the next tasks wait at the workers
        waiting = list(reversed(arguments))
        running: dict[Any, Any] = {}
        while waiting or running:
            while waiting and len(running) < window:
                argument = waiting.pop()
                task = compute.remote(study_ref, function, argument, limit)
                running[task] = argument
                self._tasks.append(task)
            for task in ray.wait(list(running))[0]:
                argument = running.pop(task)
                self._tasks.remove(task)
                try:
                    ended = ray.get(task)
                except RayError as error:  # the worker process died
                    if refused := other_versions(error):
                        raise refused from error
                    after = "" if limit is None else f" (one that takes over {limit:g} s is ended)"
                    ended = TaskEnd(argument, error=f"{type(error).__name__}{after}: {last_line(error)}")
                yield ended


def _trial_name(trial: Any) -> str:
    return str(trial.config["name"])


def _n_slots(cpus: int) -> int:
    """Return the number of trials that the cluster can run at once."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)) // cpus)


def _store_bytes() -> float:
    """Return the bytes of the cluster's smallest object store, because trials on all nodes read the shared data."""
    return min(node["Resources"].get("object_store_memory", 0.0) for node in ray.nodes() if node["Alive"])


@ray.remote
def _prepare(study: Study, inner: InnerFold, params: Mapping[str, Any]) -> FoldData:
    return prepare_fold(study, inner, params)


@ray.remote
def _refit(study: Study, fold: OuterFold, winner: TrialRecord) -> tuple[RefitRecord, Any]:
    return refit(study, fold, winner)


@ray.remote
def _task(study: Study, function: Callable[[Study, Any], Any], argument: Any, limit: float | None) -> TaskEnd:
    if limit is None:
        return run_task(study, function, argument)
    watchdog = RunningTimer(limit, lambda: os._exit(1))  # native code that hangs never checks a clock
    try:
        return run_task(study, function, argument)
    finally:
        watchdog.cancel()
