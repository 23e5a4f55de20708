"""Executor that runs a study's trials and refits on Ray."""

from __future__ import annotations

import gc
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from typing import Any

import ray
from ray import tune
from ray.exceptions import OutOfMemoryError, RayError
from ray.tune import TuneError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from raysel.core.credentials import hidden_variables
from raysel.core.errors import RayStartError, StudyError
from raysel.core.machine import RunningTimer
from raysel.core.printing import by_number
from raysel.data.table_rows import TableRows
from raysel.evaluation.plan import OuterFold
from raysel.evaluation.records import RefitRecord, TrialRecord
from raysel.evaluation.split import Split
from raysel.execution.batches import Batches
from raysel.execution.executor import (
    Executor,
    Recorder,
    SearchLimits,
    TaskEnd,
    last_line,
    refit_error,
)
from raysel.execution.ray.head import HeadWatch
from raysel.execution.ray.nodes import Cluster, Demand
from raysel.execution.ray.running import RunningBatches
from raysel.execution.ray.session import node_check, ray_session
from raysel.execution.ray.tasks import NodeTasks, task_options
from raysel.execution.ray.tune import (
    PlanScheduler,
    PlanSearcher,
    StudyStopper,
    StudyTrainable,
)
from raysel.execution.ray.versions import other_versions
from raysel.execution.serial import SerialExecutor, limited_threads, refit, run_task
from raysel.execution.trial_plan import TrialPlan
from raysel.study.definition import Study
from raysel.tracking.log import StudyLog
from raysel.tracking.records import NodeRecord

#: Keys of Amazon's storage, which Tune would copy to its actors' environment.
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN")
#: Largest share of the object store for prepared folds; further folds are prepared again by each
#: trial.
_STORE_SHARE = 0.5
#: CPU seconds of work that this process does itself without a cluster: a new worker needs as long
#: for its imports.
_SHORT = 2.0
#: Number of times that tasks are cancelled, a second apart, if they do not end.
_CANCELLATIONS = 10


class RayExecutor(Executor):
    """Executor on Ray's workers, which connects to Ray when it is first needed."""

    def __init__(
        self, study: Study, address: str | None, *, allow_mixed_versions: bool = False
    ) -> None:
        self._study, self._address, self._allow_mixed_versions = (
            study,
            address,
            allow_mixed_versions,
        )
        self._session = ExitStack()
        #: Tasks to cancel if the study is interrupted or fails, because Ray may go on with other
        #: work.
        self._tasks: list[Any] = []
        self._demand = Demand(study.config.search.needs) if address else None
        self._watch: HeadWatch | None = None
        self._plan: TrialPlan | None = None
        self._log: StudyLog | None = None
        #: CPU seconds in which this process prepared folds.
        self._preparing = 0.0

    def __exit__(self, kind: object, *_: object) -> None:
        head_lost = self._watch.error if self._watch else None
        try:
            with self._session:
                if kind is not None and not head_lost:
                    self._cancel_tasks()
                if self._demand and not head_lost:
                    with suppress(
                        RayError
                    ):  # the study's own error, e.g. that Ray has failed, must not be hidden
                        self._demand.withdraw()
                if kind is not None:
                    # ends the actors of an interrupted search, which reference each other
                    gc.collect()
                self._tasks.clear()
        finally:
            if self._watch:
                self._watch.stop()
        if head_lost and kind is KeyboardInterrupt:
            raise head_lost from None

    def _cancel_tasks(self) -> None:
        """Cancel the tasks until all have ended: one whose worker is starting may miss it."""
        left = list(dict.fromkeys(self._tasks))  # ray.wait refuses duplicates
        for _ in range(_CANCELLATIONS):
            if not left:
                return
            for task in left:
                ray.cancel(task, force=True)  # nothing happens to a task that has ended
            _, left = ray.wait(left, num_returns=len(left), timeout=1, fetch_local=False)

    @cached_property
    def _instead(self) -> SerialExecutor | None:
        """Executor in this process where Ray does not start, with the same numbers; else None."""
        try:
            _ = self._study_ref
        except RayStartError as error:
            message = (
                f"{error}. The study is computed in this process, one fit after the other, with the"
                " same numbers"
            )
            if self._log is None:
                warnings.warn(message, stacklevel=2)
            self._say(message)
            return SerialExecutor(self._study)
        return None

    @cached_property
    def _study_ref(self) -> Any:
        """Reference to the study in Ray's object store."""
        session = ray_session(
            self._address, [self._study], allow_mixed_versions=self._allow_mixed_versions
        )
        self._session.enter_context(session)
        self._watch = HeadWatch(ray.get_runtime_context().gcs_address, self._kept)
        self._watch.start()
        check = node_check()
        return ray.put(check.guard(self._study) if check else self._study)

    @cached_property
    def _cluster(self) -> Cluster:
        """View of the nodes, with whose changes the log is kept up to date."""
        _ = self._study_ref  # connects to Ray
        search = self._study.config.search
        return Cluster(search.needs, search.max_concurrent, self._say, self._demand)

    def _say(self, text: str) -> None:
        if self._log is not None:
            self._log.message(text)

    def _kept(self) -> str:
        if self._plan is None or self._log is None:
            return "0 trials had ended and are kept"
        n = len(self._plan.records)
        ended = by_number(n, "trial had ended and is", "trials had ended and are")
        return f"{n} {ended} kept in {self._log.folder}"

    def run_trials(self, plan: TrialPlan, log: StudyLog) -> bool:
        """Run the remaining trials of a plan as trials of Ray Tune."""
        if not ray.is_initialized():  # the members of a comparison share a session
            log.enter_phase("joining the cluster" if self._address else "starting Ray")
        self._plan, self._log = plan, log
        if self._instead:
            return self._instead.run_trials(plan, log)
        search = self._study.config.search
        # Errors are recorded in the journal.
        logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
        if check := node_check():
            check.record(log)
        self._cluster.check()
        limits = SearchLimits(search.time_budget, search.max_failures, plan)
        batches = Batches(plan)
        running = RunningBatches(plan, Recorder(plan, log), self._cluster, batches)
        trainable = tune.with_parameters(
            StudyTrainable,
            shared=(self._study_ref, self._shared_folds(log)),
            trial_class=plan.trial_class,
        )
        log.enter_phase("")
        ended = False
        while not ended:
            ended = self._tune(
                trainable,
                PlanSearcher(batches, self._cluster, limits),
                scheduler=PlanScheduler(plan, running),
                stopper=StudyStopper(limits),
                running=running,
            )
        self._cluster.want(0)
        self._tasks.clear()  # the prepared folds may leave the object store
        if check:
            check.record(log)
        limits.check_failures()
        return limits.out_of_time and plan.n_left > 0

    def _tune(
        self,
        trainable: Any,
        searcher: PlanSearcher,
        scheduler: PlanScheduler,
        stopper: StudyStopper,
        running: RunningBatches,
    ) -> bool:
        """Run what is left with Tune; return False where memory ran short, which ends Tune."""
        with tempfile.TemporaryDirectory(
            prefix="raysel-tune-", ignore_cleanup_errors=True
        ) as storage:
            tuner = tune.Tuner(
                tune.with_resources(
                    trainable, tune.PlacementGroupFactory([self._study.config.search.needs])
                ),
                tune_config=tune.TuneConfig(
                    reuse_actors=True,
                    # Proposes no more than can run: Tune would start an actor for each waiting
                    # trial.
                    search_alg=searcher,
                    num_samples=-1,
                    scheduler=scheduler,
                    # Module-level functions: Tune pickles them twice per trial, including the
                    # variables of a closure.
                    trial_name_creator=_trial_name,
                    trial_dirname_creator=_trial_dirname,
                ),
                run_config=tune.RunConfig(
                    name="study",
                    storage_path=storage,
                    verbose=0,
                    stop=stopper,
                    failure_config=tune.FailureConfig(max_failures=0),  # `Losses` decides
                    checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                ),
            )
            try:
                with hidden_variables(KEYS):  # Tune copies them to where Ray's dashboard shows them
                    tuner.fit()
            except (TuneError, RayError, RuntimeError) as error:
                # Tune raises a RuntimeError from an error of Ray that it does not know.
                cause: BaseException | None = error
                if not isinstance(error, TuneError | RayError):
                    cause = error.__cause__
                if isinstance(cause, OutOfMemoryError) and running.give_back(cause):
                    return False  # the frames of Tune with its actors end with the error
                if not isinstance(cause, TuneError | RayError):
                    raise
                failed = StudyError(f"Ray Tune failed: {last_line(cause)}. Resume the study.")
                raise (running.error or other_versions(cause) or failed) from error
            except KeyboardInterrupt as error:
                # The frames of Tune hold the actors: while the traceback exists, they keep their
                # CPUs.
                raise error.with_traceback(None) from None
        return True

    def _shared_folds(self, log: StudyLog) -> dict[tuple[str, int, str], Any]:
        """Put the data, and as many prepared folds as fit, in the object store."""
        log.enter_phase("preparing the folds")
        study = self._study
        if study.dataset.X.nbytes > _store_bytes():
            log.message(
                "the data exceed Ray's object store and will spill to disk, which is slower: start"
                " Ray with a larger object_store_memory"
            )
        if isinstance(study.dataset.X, TableRows):
            return {}  # rows of a table are chosen where they run, and stored would be copies
        prepared = self._prepare_folds()
        if len(prepared) < study.n_inner * len(study.prepared_examples):
            log.message(
                f"the prepared folds exceed {_STORE_SHARE:.0%} of Ray's object store: each trial"
                " prepares them again, which is slower"
            )
        return prepared

    def _prepare_folds(self) -> dict[tuple[str, int, str], Any]:
        """Put all inner splits in the object store, for as many prepare keys as have room."""
        study, prepared = self._study, {}
        largest, number = study.largest
        others = [
            (fold, i) for fold, i in study.training_sets if fold is not largest or i != number
        ]
        room = _STORE_SHARE * _store_bytes()
        for key, params in study.prepared_examples.items():
            # The largest first: it tells whether all of them fit.
            ((first, size),) = self._prepared([(largest, number)], params)
            room -= size * study.n_largest
            if room < 0:
                break
            prepared[largest.name, number, key] = first
            for (fold, i), (data, _) in zip(others, self._prepared(others, params), strict=True):
                prepared[fold.name, i, key] = data
        return prepared

    def _prepared(
        self, sets: Sequence[tuple[OuterFold, int]], params: Mapping[str, Any]
    ) -> list[tuple[Any, int]]:
        """Prepare inner folds; return the reference to the data of each, and its bytes."""
        data: dict[int, Any] = {}
        sizes: dict[int, int] = {}
        while self._here and len(data) < len(sets) and self._preparing < _SHORT:
            started, (fold, i), n = time.process_time(), sets[len(data)], len(data)
            try:
                with limited_threads(self._study):
                    made = self._study.trial_split(fold, i, params)
            except Exception as raised:
                raise _unprepared(raised) from raised
            data[n], sizes[n] = ray.put(made), made.nbytes
            self._preparing += time.process_time() - started

        n_here = len(data)

        def submit(n: int, node: str) -> Any:
            fold, i = sets[n_here + n]
            # Elsewhere if Ray makes it again because its node is lost.
            anywhere = NodeAffinitySchedulingStrategy(node, soft=True)
            prepare = _prepare.options(**self._options, scheduling_strategy=anywhere, num_returns=2)
            data[n_here + n], size = prepare.remote(self._study_ref, fold.name, i, params)
            return size

        for n, size, error in self._node_tasks("preparation").run(submit, len(sets) - n_here):
            if error is not None:
                raise _unprepared(error) from error
            sizes[n_here + n] = size
        return [(data[n], sizes[n]) for n in range(len(sets))]

    def run_refits(
        self, winners: Sequence[tuple[OuterFold, TrialRecord]]
    ) -> Iterator[tuple[RefitRecord, Any]]:
        """Refit winners on their outer training sets, in parallel, and score each once."""
        # A refit is one fit, and a trial has several of about that size.
        seconds = sum(record.ended - record.started for _, record in winners)
        here = self._instead
        if here is None and self._here and seconds < _SHORT:
            here = SerialExecutor(self._study)
        if here:
            yield from here.run_refits(winners)
            return

        def submit(n: int, node: str) -> Any:
            return self._on_node(_refit, node).remote(self._study_ref, *winners[n])

        ended: dict[int, Any] = {}
        due = 0
        for n, value, error in self._node_tasks("refit").run(submit, len(winners)):
            if error is not None:
                raise refit_error(*winners[n], error) from error
            ended[n] = value
            while due in ended:  # in the order of the winners
                yield ended.pop(due)
                due += 1

    def run_tasks(
        self,
        function: Callable[[Study, Any], Any],
        arguments: Sequence[Any],
        limit: float | None = None,
    ) -> Iterator[TaskEnd]:
        """Compute ``function(study, argument)`` for each argument, in parallel."""
        if self._instead:
            yield from self._instead.run_tasks(function, arguments, limit)
            return

        def submit(n: int, node: str) -> Any:
            return self._on_node(_task, node).remote(self._study_ref, function, arguments[n], limit)

        for n, value, error in self._node_tasks("task").run(submit, len(arguments)):
            if error is None:
                yield value
            else:  # the worker process died
                name = type(error).__name__
                if limit is not None:
                    name += f" (one that takes over {limit:g} s is ended)"
                yield TaskEnd(arguments[n], error=f"{name}: {last_line(error)}")

    def mixed_nodes(self) -> Sequence[NodeRecord]:
        """Return the nodes that were allowed to compute with other versions than this process."""
        check = node_check()
        return check.records() if check else ()

    @property
    def _here(self) -> bool:
        """Whether this process may do what is short: there is no cluster, and CPUs suffice."""
        return self._address is None and not self._study.config.search.resources

    @property
    def _options(self) -> dict[str, Any]:
        return task_options(self._study.config.search.needs)

    def _on_node(self, task: Any, node: str) -> Any:
        """Return a task that runs on a node only; `NodeTasks` decides whether it runs again."""
        strategy = NodeAffinitySchedulingStrategy(node, soft=False)
        return task.options(**self._options, scheduling_strategy=strategy, max_retries=0)

    def _node_tasks(self, what: str) -> NodeTasks:
        return NodeTasks(self._cluster, what, self._tasks)


def _unprepared(error: Exception) -> StudyError:
    return StudyError(f"the folds could not be prepared: {last_line(error)}")


def _trial_name(trial: Any) -> str:
    return str(trial.config["name"])


def _trial_dirname(trial: Any) -> str:
    # A trial that runs again needs a folder of its own, because the error of its last run is in the
    # other.
    return str(trial.trial_id)


def _store_bytes() -> float:
    """Return the bytes of the smallest object store, as trials on all nodes read the folds."""
    return min(
        node["Resources"].get("object_store_memory", 0.0) for node in ray.nodes() if node["Alive"]
    )


@ray.remote
def _prepare(study: Study, fold: str, inner: int, params: Mapping[str, Any]) -> tuple[Split, int]:
    with limited_threads(study):
        split = study.trial_split(study.plan.fold(fold), inner, params)
    return split, split.nbytes


@ray.remote
def _refit(study: Study, fold: OuterFold, winner: TrialRecord) -> tuple[RefitRecord, Any]:
    with limited_threads(study):
        return refit(study, fold, winner)


@ray.remote
def _task(
    study: Study, function: Callable[[Study, Any], Any], argument: Any, limit: float | None
) -> TaskEnd:
    with limited_threads(study):
        if limit is None:
            return run_task(study, function, argument)
        watchdog = RunningTimer(
            limit, lambda: os._exit(1)
        )  # native code that hangs never checks a clock
        try:
            return run_task(study, function, argument)
        finally:
            watchdog.cancel()
