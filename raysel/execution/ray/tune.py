"""Adapters of a trial plan to Ray Tune: searcher, scheduler, stopper, callback and trainable."""

from __future__ import annotations

import json
import os
import pickle
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import ray
from ray import tune
from ray.air._internal import usage
from ray.air.execution._internal import RayActorManager
from ray.exceptions import OutOfMemoryError, RayActorError, RayError
from ray.tune import Stopper
from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher
from threadpoolctl import threadpool_limits

from raysel.core.errors import StudyError
from raysel.core.files import instance_of
from raysel.core.machine import RunningTimer
from raysel.evaluation.lost_trials import worker_died
from raysel.evaluation.plan import OuterFold
from raysel.evaluation.split import KnownScores, Split
from raysel.execution.batches import BATCH_SECONDS, Batches
from raysel.execution.executor import Recorder, SearchLimits, last_line
from raysel.execution.ray.nodes import Cluster, MemoryShortError
from raysel.execution.ray.session import token_refusal
from raysel.execution.ray.tasks import Losses, storage_error_of
from raysel.execution.ray.versions import other_versions
from raysel.execution.trial_plan import TrialPlan
from raysel.execution.trials import Rung
from raysel.execution.trials import Trial as Trial_trainable
from raysel.study.definition import Study


@contextmanager
def adapted_tune() -> Iterator[None]:
    """Let Tune treat a worker that Ray ended because memory ran short like one that died, and count
    no callbacks.

    Tune knows no `OutOfMemoryError` of an actor and raises at the first, which would end the study.
    To count callbacks for Ray's statistics it imports MLflow, which takes seconds.
    """
    handle = RayActorManager._actor_task_failed  # noqa: SLF001 - Tune has no public place for it

    def failed(self: Any, tracked_actor_task: Any, exception: Exception) -> None:
        handle(
            self,
            tracked_actor_task,
            MemoryShortError() if isinstance(exception, OutOfMemoryError) else exception,
        )

    with (
        patch.object(RayActorManager, "_actor_task_failed", failed),
        patch.object(usage, "tag_callbacks"),
    ):
        yield


class _NotStored:
    """Without a state: Tune pickles it to restore experiments, which raysel does not use; open
    files cannot be.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {}


class PlanSearcher(_NotStored, Searcher):
    """Tune searcher that suggests batches of a search, as many at once as the cluster can run
    now.
    """

    def __init__(self, batches: Batches, cluster: Cluster, limits: SearchLimits) -> None:
        super().__init__(metric=None, mode=None)
        self._batches, self._cluster, self._limits = batches, cluster, limits
        self._running: set[str] = set()

    def set_search_properties(self, *_: Any, **__: Any) -> bool:
        """Accept any metric and space without using them: the study defines both."""
        return True

    def suggest(self, trial_id: str) -> Any:
        """Return the config of the next batch; None if there is none now, or no room for one."""
        if self._limits.reached():  # Tune asks nobody else while no node is left
            return Searcher.FINISHED
        slots = self._cluster.slots
        if len(self._running) >= slots:
            return None
        batch = self._batches.next(slots)
        if batch is None:
            # Not before the last batch has ended: its node may be lost, and Tune never asks again.
            return Searcher.FINISHED if self._batches.exhausted and not self._running else None
        self._running.add(trial_id)
        first = batch.parts[0]
        return {"name": f"{first['name']} {first.get('fold', '')}".strip(), "batch": batch}

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Count that a batch has ended; the plan receives the records from the recorder."""
        self._running.discard(trial_id)

    def save(self, checkpoint_path: str) -> None:
        """Do nothing: state is restored from the journal."""

    def restore(self, checkpoint_path: str) -> None:
        """Do nothing: state is restored from the journal."""


class PlanScheduler(_NotStored, FIFOScheduler):
    """Tune scheduler that stops trials at their rungs and lets each trial wait for the actor that
    starts for it.

    Tune's default moves a waiting trial to an actor that becomes free meanwhile and stops the one
    that is starting, so that one actor would run all trials if they are short.
    """

    def __init__(self, plan: TrialPlan) -> None:
        super().__init__()
        self._plan = plan

    def choose_trial_to_run(self, tune_controller: Any) -> None:
        """Return None, so that the controller starts each trial on its own actor in the order of
        arrival.
        """

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        """Return whether a trial that has reached a rung continues."""
        if result["done"] or "rung" not in result:
            return TrialScheduler.CONTINUE
        (config,) = trial.config["batch"].parts
        should_continue = self._plan.should_continue(config, Rung(result["rung"], result["score"]))
        return TrialScheduler.CONTINUE if should_continue else TrialScheduler.STOP


class StudyStopper(_NotStored, Stopper):
    """Tune stopper that stops all trials of a study at its limits."""

    def __init__(self, limits: SearchLimits) -> None:
        self._limits = limits

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Return False: no single trial is stopped here."""
        return False

    def stop_all(self) -> bool:
        """Return whether a limit is reached."""
        return self._limits.reached()


#: A step ends after this many seconds, so that Tune gets a result of a long trial.
_STEP_SECONDS = 5.0
#: Bytes of shared folds that a worker holds and the store cannot spill then: to get one takes as
#: long as a short fit.
_KEPT_BYTES = 2**26


class StudyTrainable(tune.Trainable):
    """Trainable that runs a batch; the result of a step holds the records that it has filled, as
    JSON.
    """

    def setup(
        self,
        config: dict[str, Any],
        shared: tuple[Any, dict[tuple[str, int, str], Any]],
        trial_class: type[Trial_trainable],
    ) -> None:
        """Get the study and the prepared folds, shared through the object store; called once per
        actor.
        """
        study, self._prepared = shared
        self._known: dict[tuple[str, int, str], KnownScores] = {}
        self._kept: dict[tuple[str, int, str], Split] = {}
        self._room = _KEPT_BYTES
        self._study: Study = ray.get(study)
        self._trial_class = trial_class
        self._watchdog: RunningTimer | None = None
        threadpool_limits(self._study.config.search.cpus_per_trial)
        self.reset_config(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Start the next batch in the same actor."""
        self._left = deque(new_config["batch"].parts)
        self._end = time.monotonic() + BATCH_SECONDS
        self._begin()
        return True

    def _begin(self) -> None:
        """Begin the next part of the batch."""
        self.cleanup()
        self._trial = self._trial_class(
            self._study, self._left.popleft(), self._find_split, self._watch
        )
        self._steps = self._trial.steps()

    def step(self) -> dict[str, Any]:
        """Advance the batch for a few seconds, to a rung, or to its end."""
        pause = time.monotonic() + _STEP_SECONDS
        # In a dict of its own, which the driver empties, because Tune keeps every result in memory.
        records: list[str] = []
        payload = {"records": records}
        while True:
            for iteration in self._steps:
                rung = self._trial.rung(iteration)
                if rung:
                    records.append(self._result())
                    return {
                        "done": False,
                        "rung": rung.level,
                        "score": rung.score,
                        "payload": payload,
                    }
                if time.monotonic() > pause:
                    return {"done": False, "payload": payload}
            self.cleanup()
            records.append(self._result())
            if not self._left or time.monotonic() > self._end:
                return {"done": True, "payload": payload}
            self._begin()

    def cleanup(self) -> None:
        """Stop the watchdog; called when the actor ends."""
        if self._watchdog:
            self._watchdog.cancel()

    def _watch(self, timeout: float) -> None:
        """End this process some time after the limit, because native code that hangs never
        checks the clock.
        """
        self.cleanup()
        self._watchdog = RunningTimer(1.5 * timeout + _STEP_SECONDS, lambda: os._exit(1))

    def _result(self) -> str:
        return json.dumps(self._trial.record.to_json(), allow_nan=False)

    def _find_split(self, fold: OuterFold, inner: int, params: Mapping[str, Any]) -> Split:
        """Return a prepared inner split; its arrays are read-only if they are shared."""
        key = fold.name, inner, self._study.prepare_key(params)
        if key in self._kept:
            return self._kept[key]
        shared = self._prepared.get(key)
        if shared is not None:
            with suppress(RayError):  # lost with its node, and Ray could not make it again
                split = replace(ray.get(shared), known=self._known.setdefault(key, {}))
                if split.nbytes <= self._room:
                    self._kept[key], self._room = split, self._room - split.nbytes
                return split
        return self._study.trial_split(fold, inner, params)

    def node_id(self) -> str:
        """Return the id of the node that the actor runs on."""
        return str(ray.get_runtime_context().get_node_id())


class RecorderCallback(_NotStored, tune.Callback):
    """Callback that reports the start and the end of each trial to the recorder."""

    def __init__(
        self, plan: TrialPlan, recorder: Recorder, cluster: Cluster, batches: Batches
    ) -> None:
        self._plan, self._recorder, self._cluster, self._batches = plan, recorder, cluster, batches
        self.losses = Losses(cluster)
        #: Names of the trials that have begun.
        self._begun: set[str] = set()
        #: Number of parts of each running batch whose records have come, by the batch's name.
        self._n_ended: dict[str, int] = {}
        #: Node of each running batch, by its name, and questions for it that are not answered.
        self._nodes: dict[str, str] = {}
        self._asked: dict[Any, str] = {}
        self.error: StudyError | None = None

    def on_step_end(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        """Look at the nodes, also when no trial is to be proposed, and request those that are
        missing.
        """
        self._recorder.log.refresh()
        self._learn_nodes()
        self._cluster.refresh()
        self._cluster.want(self._batches.n_left + len(self._n_ended))

    def on_trial_start(
        self, iteration: int, trials: list[Trial], trial: Trial, **info: Any
    ) -> None:
        """Count a trial that has started, and ask for the node of its batch."""
        name = trial.config["name"]
        actor = trial.temporary_state.ray_actor
        if actor is not None and hasattr(actor, "node_id"):
            self._asked[actor.node_id.remote()] = name
        self._n_ended[name] = 0
        self._begin(trial.config["batch"].parts[0])

    def on_trial_result(
        self, iteration: int, trials: list[Trial], trial: Trial, result: dict[str, Any], **info: Any
    ) -> None:
        """Keep the records of the trials that have ended or are stopped."""
        name, batch = trial.config["name"], trial.config["batch"]
        records = result.get("payload", {}).pop("records", [])
        if "rung" in result and not result["done"]:
            records = []
        left = batch.parts[self._n_ended[name] :]
        self._n_ended[name] += len(records)
        if result["done"]:
            self._batches.ended(batch, self._n_ended[name])
            self._end(trial)
        for part, text in zip(left, records, strict=False):
            self._begin(part)
            whole = self._batches.join(part, instance_of(self._plan.record_class, json.loads(text)))
            if whole is not None:
                self._report(
                    self._recorder.stop if "rung" in result else self._recorder.keep, whole
                )

    def on_trial_error(
        self, iteration: int, trials: list[Trial], trial: Trial, **info: Any
    ) -> None:
        """Let the trials of a batch that was lost run again, or record that one failed in every
        attempt.
        """
        error, name = _last_error(trial), trial.config["name"]
        died = isinstance(error, RayActorError) and not error.actor_init_failed
        refused = other_versions(error) or storage_error_of(error)
        if refused := refused or (token_refusal() if died else None):
            self.error = refused
            raise refused
        self._learn_nodes()
        again = self.losses.runs_again(name, self._nodes.pop(name, ""), error)
        left = trial.config["batch"].parts[
            self._n_ended.pop(name, 0) :
        ]  # not started: its worker failed first
        if again or len(left) > 1:
            self._batches.again(left)
            return
        self._end(trial)
        reason = last_line(error)
        if died:
            why = ("memory ran short",) if isinstance(error, MemoryShortError) else ()
            reason = worker_died(self.losses.n_own_ends(name), *why)
        if self._batches.lose(left[0]):
            self._begin(left[0])
            self._report(self._recorder.lose, left[0], reason)

    def _begin(self, part: dict[str, Any]) -> None:
        """Count a trial whose first part has begun."""
        if part["name"] not in self._begun:
            self._begun.add(part["name"])
            self._recorder.log.trial_started()

    def _learn_nodes(self) -> None:
        """Take the answers of the actors that were asked for their node."""
        if not self._asked:
            return
        for answered in ray.wait(list(self._asked), num_returns=len(self._asked), timeout=0)[0]:
            name = self._asked.pop(answered)
            if name in self._n_ended:
                try:
                    self._nodes[name] = ray.get(answered)
                except RayError:  # the worker has ended
                    continue
                self._cluster.started(name, self._nodes[name])

    def _end(self, trial: Trial) -> None:
        name = trial.config["name"]
        self._n_ended.pop(name, None)
        self._nodes.pop(name, None)
        self._cluster.ended(name)

    def _report(self, method: Any, *arguments: Any) -> None:
        try:
            method(*arguments)
        except StudyError as error:
            self.error = error
            raise


def _last_error(trial: Trial) -> object:
    """Return the error of a trial's last attempt, or its text if Tune did not keep the error
    itself.
    """
    # Trial.get_error reads the storage, where Tune copies these files only later.
    if trial.pickled_error_file:
        return pickle.loads(Path(trial.pickled_error_file).read_bytes())  # noqa: S301 - written by Tune in this process
    return (
        Path(trial.error_file).read_text(encoding="utf-8")
        if trial.error_file
        else "no error is known"
    )
