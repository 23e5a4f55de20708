"""Adapters of a trial plan to Ray Tune: searcher, scheduler, stopper and trainable."""

from __future__ import annotations

import json
import os
import pickle
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
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
from raysel.evaluation.plan import OuterFold
from raysel.evaluation.split import KnownScores, Split
from raysel.execution.batches import BATCH_SECONDS, Batches
from raysel.execution.executor import SearchLimits
from raysel.execution.ray.nodes import Cluster
from raysel.execution.ray.running import RunningBatches
from raysel.execution.trial_plan import TrialPlan
from raysel.execution.trials import Rung
from raysel.execution.trials import Trial as Trial_trainable
from raysel.study.definition import Study

#: A step ends after this many seconds, so that Tune gets a result of a long trial.
_STEP_SECONDS = 5.0
#: Bytes of shared folds that a worker holds and the store cannot spill then: to get one takes as
#: long as a short fit.
_KEPT_BYTES = 2**26


class _NotStored:
    """Without a state: Tune pickles it to restore experiments, and open files cannot be."""

    def __getstate__(self) -> dict[str, Any]:
        return {}


class PlanSearcher(_NotStored, Searcher):
    """Tune searcher that suggests batches, as many at once as the cluster can run now."""

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
    """Tune scheduler that stops trials at their rungs and hands their records on.

    Each trial waits for the actor that starts for it: Tune's default moves a waiting trial to an
    actor that becomes free meanwhile and stops the one that is starting, so that one actor would
    run all trials if they are short.
    """

    def __init__(self, plan: TrialPlan, running: RunningBatches) -> None:
        super().__init__()
        self._plan, self._running = plan, running

    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        """Hand on that a batch has been proposed."""
        self._running.add(trial.config["name"], trial.config["batch"])

    def choose_trial_to_run(self, tune_controller: Any) -> None:
        """Look at the nodes, as Tune asks in each of its steps, and choose no trial.

        The controller then starts each trial on its own actor in the order of arrival.
        """
        self._running.look()

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        """Hand on what a worker has sent, and return whether the trial continues."""
        name = trial.config["name"]
        if "node" in result:
            self._running.start(name, result["node"])
            return TrialScheduler.CONTINUE
        records, ended = list(result["records"]), result["ended"]
        result["records"].clear()  # Tune keeps every result in memory
        if "rung" not in result:
            self._running.keep(name, records, ended=ended)
            return TrialScheduler.STOP if ended else TrialScheduler.CONTINUE
        (config,) = trial.config["batch"].parts
        if self._plan.should_continue(config, Rung(result["rung"], result["score"])):
            return TrialScheduler.CONTINUE
        self._running.keep(name, records, ended=True, stopped=True)
        return TrialScheduler.STOP

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        """Hand on that a batch was lost with its worker, or ended by an error."""
        self._running.fail(trial.config["name"], _last_error(trial))


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


class StudyTrainable(tune.Trainable):
    """Trainable that runs a batch: tells its node, then the records that it has filled, as JSON."""

    def setup(
        self,
        config: dict[str, Any],
        shared: tuple[Any, dict[tuple[str, int, str], Any]],
        trial_class: type[Trial_trainable],
    ) -> None:
        """Get the study and the prepared folds from the object store, once per actor."""
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
        self._node_told = False
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
        """Tell the node first; then advance the batch for seconds, to a rung, or to its end."""
        if not self._node_told:
            self._node_told = True
            return {"node": ray.get_runtime_context().get_node_id()}
        pause = time.monotonic() + _STEP_SECONDS
        records: list[str] = []
        while True:
            for iteration in self._steps:
                rung = self._trial.rung(iteration)
                if rung:
                    records.append(self._result())
                    at_rung = {"rung": rung.level, "score": rung.score}
                    return {"records": records, "ended": False, **at_rung}
                if time.monotonic() > pause:
                    return {"records": records, "ended": False}
            self.cleanup()
            records.append(self._result())
            if not self._left or time.monotonic() > self._end:
                return {"records": records, "ended": True}
            self._begin()

    def cleanup(self) -> None:
        """Stop the watchdog; called when the actor ends."""
        if self._watchdog:
            self._watchdog.cancel()

    def _watch(self, timeout: float) -> None:
        """End this process after the limit: native code that hangs never checks the clock."""
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


def _last_error(trial: Trial) -> object:
    """Return the error of a trial's last attempt, or its text if Tune did not keep it."""
    # Trial.get_error reads the storage, where Tune copies these files only later.
    if trial.pickled_error_file:
        return pickle.loads(Path(trial.pickled_error_file).read_bytes())  # noqa: S301 - written by Tune in this process
    if trial.error_file:
        return Path(trial.error_file).read_text(encoding="utf-8")
    return "no error is known"
