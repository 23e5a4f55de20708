"""Callback that passes Ray Tune's events to the recorder, and trials that are lost to their next run."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.exceptions import RayActorError, RayError
from ray.tune.experiment import Trial

from raysel.core.errors import StudyError
from raysel.core.files import instance_of
from raysel.execution.executor import last_line
from raysel.execution.ray.nodes import Cluster, MemoryShortError
from raysel.execution.ray.tasks import LostTrials, node_in
from raysel.execution.ray.versions import other_versions
from raysel.execution.recorder import Recorder
from raysel.execution.trial_plan import TrialPlan


class RecorderCallback(tune.Callback):
    """Callback that reports the start and the end of each trial to the recorder."""

    def __init__(self, plan: TrialPlan, recorder: Recorder, cluster: Cluster, lost: LostTrials) -> None:
        self._plan, self._recorder, self._cluster, self._lost = plan, recorder, cluster, lost
        self._running: set[str] = set()
        #: Node of each running trial, by the trial's name, and questions for it that are not answered.
        self._nodes: dict[str, str] = {}
        self._asked: dict[Any, str] = {}
        self.error: StudyError | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Tune pickles its callbacks to restore experiments, which raysel does not use; open files cannot be pickled.
        return {}

    def on_step_end(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        """Look at the nodes, also when no trial is to be proposed, and request those that are missing."""
        self._learn_nodes()
        self._cluster.refresh()
        self._cluster.want(self._plan.n_left)

    def on_trial_start(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Count a trial that has started, and ask for its node."""
        name = trial.config["name"]
        actor = trial.temporary_state.ray_actor
        if actor is not None and hasattr(actor, "node_id"):
            self._asked[actor.node_id.remote()] = name
        if name not in self._running:  # a trial that was lost is started again
            self._running.add(name)
            self._recorder.start()

    def on_trial_result(
        self, iteration: int, trials: list[Trial], trial: Trial, result: dict[str, Any], **info: Any
    ) -> None:
        """Keep the record of a trial that has ended or is stopped."""
        payload = result.get("payload")
        record = instance_of(self._plan.record_class, json.loads(payload.pop("record"))) if payload else None
        if record is None or not result["done"]:
            self._recorder.refresh()
            return
        self._end(trial)
        self._report(self._recorder.stop if "rung" in result else self._recorder.keep, record)

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Let a trial that was lost run again, or record that it failed in every attempt."""
        error, name = _last_error(trial), trial.config["name"]
        if refused := other_versions(error):
            self.error = refused
            raise refused
        self._learn_nodes()
        node = node_in(error) or self._nodes.pop(name, "")
        self._cluster.refresh(now=True)
        lost_nodes = {*self._cluster.lost, *filter(None, [node_in(error)])}
        short = isinstance(error, MemoryShortError)
        if again := short and self._cluster.run_fewer(name, node):
            self._lost.again(trial.config)
        else:
            again = self._lost.runs_again(trial.config, node, lost_nodes)
        if node not in lost_nodes:
            self._cluster.ended(name)
        if again:
            return
        self._end(trial)
        died = isinstance(error, RayActorError) and not error.actor_init_failed
        n = self._lost.n_own_ends(trial.config, lost_nodes)
        why = "memory ran short" if short else "killed, or out of memory"
        reason = f"the worker process died {n} times ({why})" if died else last_line(error)
        self._report(self._recorder.lose, trial.config, reason)

    def _learn_nodes(self) -> None:
        """Take the answers of the actors that were asked for their node."""
        if not self._asked:
            return
        for answered in ray.wait(list(self._asked), num_returns=len(self._asked), timeout=0)[0]:
            name = self._asked.pop(answered)
            if name in self._running:
                try:
                    self._nodes[name] = ray.get(answered)
                except RayError:  # the worker has ended
                    continue
                self._cluster.started(name, self._nodes[name])

    def _end(self, trial: Trial) -> None:
        name = trial.config["name"]
        self._running.discard(name)
        self._nodes.pop(name, None)
        self._cluster.ended(name)

    def _report(self, method: Any, *arguments: Any) -> None:
        try:
            method(*arguments)
        except StudyError as error:
            self.error = error
            raise


def _last_error(trial: Trial) -> object:
    """Return the error of a trial's last attempt, or its text if Tune did not keep the error itself."""
    # Trial.get_error reads the storage, where Tune copies these files only later.
    if trial.pickled_error_file:
        return pickle.loads(Path(trial.pickled_error_file).read_bytes())  # noqa: S301 - written by Tune in this process
    return Path(trial.error_file).read_text(encoding="utf-8") if trial.error_file else "no error is known"
