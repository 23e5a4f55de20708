"""Adapters of a trial plan to Ray Tune: searcher, scheduler and stopper."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import ray
from ray import tune
from ray.exceptions import RayError
from ray.tune import Stopper
from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher
from threadpoolctl import threadpool_limits

from raysel.core.machine import RunningTimer
from raysel.evaluation.lockstep import FoldData
from raysel.evaluation.plan import OuterFold
from raysel.execution.ray.nodes import Cluster
from raysel.execution.ray.tasks import LostTrials
from raysel.execution.recorder import SearchLimits
from raysel.execution.trial_plan import TrialPlan
from raysel.execution.trials import Rung
from raysel.execution.trials import Trial as Trial_trainable
from raysel.study.definition import Study


class PlanSearcher(Searcher):
    """Tune searcher that suggests the trials of a plan, as many at once as the cluster can run now."""

    def __init__(self, plan: TrialPlan, cluster: Cluster, lost: LostTrials, limits: SearchLimits) -> None:
        super().__init__(metric=None, mode=None)
        self._plan, self._cluster, self._lost, self._limits = plan, cluster, lost, limits
        self._running: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        # Tune pickles it to restore experiments, which raysel does not use.
        return {}

    def set_search_properties(self, *_: Any, **__: Any) -> bool:
        """Accept any metric and space without using them: the study defines both."""
        return True

    def suggest(self, trial_id: str) -> Any:
        """Return the config of the next trial; None if there is none now, or no room for one."""
        if self._limits.reached():  # Tune asks nobody else while no node is left
            return Searcher.FINISHED
        if len(self._running) >= self._cluster.slots:
            return None
        config = self._lost.next() or self._plan.propose()
        if config is None:
            # Not before the last trial has ended: its node may be lost, and Tune never asks again.
            return Searcher.FINISHED if self._plan.exhausted and not self._running else None
        self._running.add(trial_id)
        return config

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Count that a trial has ended; the plan receives its record from the recorder."""
        self._running.discard(trial_id)

    def save(self, checkpoint_path: str) -> None:
        """Do nothing: state is restored from the journal."""

    def restore(self, checkpoint_path: str) -> None:
        """Do nothing: state is restored from the journal."""


class PlanScheduler(FIFOScheduler):
    """Tune scheduler that stops trials at their rungs and lets each trial wait for the actor that starts for it.

    Tune's default moves a waiting trial to an actor that becomes free meanwhile and stops the one that is starting, so
    that one actor would run all trials if they are short.
    """

    def __init__(self, plan: TrialPlan) -> None:
        super().__init__()
        self._plan = plan

    def __getstate__(self) -> dict[str, Any]:
        # As for PlanSearcher.
        return {}

    def choose_trial_to_run(self, tune_controller: Any) -> None:
        """Return None, so that the controller starts each trial on its own actor in the order of arrival."""

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        """Return whether a trial that has reached a rung continues."""
        if result["done"] or "rung" not in result:
            return TrialScheduler.CONTINUE
        should_continue = self._plan.should_continue(trial.config, Rung(result["rung"], result["score"]))
        return TrialScheduler.CONTINUE if should_continue else TrialScheduler.STOP


class StudyStopper(Stopper):
    """Tune stopper that stops all trials of a study at its limits."""

    def __init__(self, limits: SearchLimits) -> None:
        self._limits = limits

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Return False: no single trial is stopped here."""
        return False

    def stop_all(self) -> bool:
        """Return whether a limit is reached."""
        return self._limits.reached()

    def __getstate__(self) -> dict[str, Any]:
        # As for PlanSearcher.
        return {}


#: A step ends after this many seconds, so that Tune gets a result of a long trial.
_STEP_SECONDS = 5.0


@dataclass(frozen=True)
class SharedFolds:
    """Objects that all trials of a study share through the object store."""

    study: Any
    prepared: dict[tuple[str, int, str], Any]


class StudyTrainable(tune.Trainable):
    """Trainable that runs a trial; the result of the last step holds the trial's record as JSON."""

    def setup(self, config: dict[str, Any], shared: SharedFolds, trial_class: type[Trial_trainable]) -> None:
        """Get the shared objects; called once per actor."""
        self._study: Study = ray.get(shared.study)
        self._prepared, self._trial_class = shared.prepared, trial_class
        self._watchdog: RunningTimer | None = None
        threadpool_limits(self._study.config.search.cpus_per_trial)
        self.reset_config(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Start the next trial in the same actor."""
        self.cleanup()
        self._trial = self._trial_class(self._study, new_config, self._fold_data, self._watch)
        self._steps = self._trial.steps()
        return True

    def step(self) -> dict[str, Any]:
        """Advance the trial for a few seconds, to a rung, or to its end."""
        pause = time.monotonic() + _STEP_SECONDS
        for iteration in self._steps:
            rung = self._trial.rung(iteration)
            if rung:
                return {"done": False, "rung": rung.level, "score": rung.score, "payload": {"record": self._result()}}
            if time.monotonic() > pause:
                return {"done": False}
        self.cleanup()
        # In a dict of its own, which the driver empties, because Tune keeps every result in memory.
        return {"done": True, "payload": {"record": self._result()}}

    def cleanup(self) -> None:
        """Stop the watchdog; called when the actor ends."""
        if self._watchdog:
            self._watchdog.cancel()

    def _watch(self, timeout: float) -> None:
        """End this process some time after the limit, because native code that hangs never checks the clock."""
        self.cleanup()
        self._watchdog = RunningTimer(1.5 * timeout + _STEP_SECONDS, lambda: os._exit(1))

    def _result(self) -> str:
        return json.dumps(self._trial.record.to_json(), allow_nan=False)

    def _fold_data(self, fold: OuterFold, inner: int, params: Mapping[str, Any]) -> FoldData:
        """Return the data of an inner fold; read-only if they are shared."""
        shared = self._prepared.get((fold.name, inner, self._study.prepare_key(params)))
        if shared is not None:
            with suppress(RayError):  # lost with its node, and Ray could not make it again
                found: FoldData = ray.get(shared)
                return found
        return self._study.fold_data(fold.inner[inner], params)

    def node_id(self) -> str:
        """Return the id of the node that the actor runs on."""
        return str(ray.get_runtime_context().get_node_id())
