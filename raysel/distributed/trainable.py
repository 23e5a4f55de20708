"""Ray Tune trainable that runs a trial of a study in a Ray worker."""

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
from threadpoolctl import threadpool_limits

from raysel.clock import RunningTimer
from raysel.cv.plan import OuterFold
from raysel.cv.prepared import FoldData
from raysel.execution.trials import Trial
from raysel.study.definition import Study

#: A step ends after this many seconds, so that Tune gets a result of a long trial.
_STEP_SECONDS = 5.0


@dataclass(frozen=True)
class SharedFolds:
    """Objects that all trials of a study share through the object store."""

    study: Any
    prepared: dict[tuple[str, int, str], Any]


class StudyTrainable(tune.Trainable):
    """Trainable that runs a trial; the result of the last step holds the trial's record as JSON."""

    def setup(self, config: dict[str, Any], shared: SharedFolds, trial_class: type[Trial]) -> None:
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
