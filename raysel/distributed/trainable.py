"""One Ray Tune trial: a piece of a study's work in a Ray worker."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ray
from ray import tune
from threadpoolctl import threadpool_limits

from raysel.cv.plan import OuterFold
from raysel.cv.prepared import FoldData
from raysel.execution.trials import Trial
from raysel.study.definition import Study

#: A step ends after so many seconds, so that Tune hears of a long trial.
_STEP_SECONDS = 5.0


@dataclass(frozen=True)
class SharedFolds:
    """What all trials of a study share through the object store.

    Parameters
    ----------
    study : ray.ObjectRef of Study
    prepared : dict of (str, int, str) to ray.ObjectRef
        `FoldData` by outer fold, number of the inner training set and ``Study.prepare_key``; what would exceed the
        store is not there, and every trial makes its own.
    """

    study: Any
    prepared: dict[tuple[str, int, str], Any]


class StudyTrainable(tune.Trainable):
    """Drives a piece; the result of its last step holds the piece's record as JSON."""

    def setup(self, config: dict[str, Any], shared: SharedFolds, piece: type[Trial]) -> None:
        """Take the shared folds; called once an actor."""
        self._study: Study = ray.get(shared.study)
        self._prepared, self._type = shared.prepared, piece
        self._watchdog: threading.Timer | None = None
        threadpool_limits(self._study.config.search.cpus_per_trial)
        self.reset_config(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Take the next piece of work; the actor and what it holds stay."""
        self.cleanup()
        self._piece = self._type(self._study, new_config, self._fold_data, self._watch)
        self._steps = self._piece.steps()
        return True

    def step(self) -> dict[str, Any]:
        """Advance for a few seconds, to a rung, or to the end."""
        pause = time.monotonic() + _STEP_SECONDS
        for iteration in self._steps:
            rung = self._piece.rung(iteration)
            if rung:
                return {"done": False, "rung": rung.level, "score": rung.score, "box": {"record": self._result()}}
            if time.monotonic() > pause:
                return {"done": False}
        self.cleanup()
        # In a box of its own, which the driver empties: Tune keeps every result it is given.
        return {"done": True, "box": {"record": self._result()}}

    def cleanup(self) -> None:
        """Leave nothing running; called when the actor ends."""
        if self._watchdog:
            self._watchdog.cancel()

    def _watch(self, timeout: float) -> None:
        """End this process some time after the limit: what does not come back to Python checks no clock."""
        self.cleanup()
        self._watchdog = threading.Timer(1.5 * timeout + _STEP_SECONDS, os._exit, (1,))
        self._watchdog.daemon = True
        self._watchdog.start()

    def _result(self) -> str:
        return json.dumps(self._piece.record.to_json(), allow_nan=False)

    def _fold_data(self, fold: OuterFold, inner: int, params: Mapping[str, Any]) -> FoldData:
        """An inner training set, read-only where it is shared."""
        shared = self._prepared.get((fold.name, inner, self._study.prepare_key(params)))
        return self._study.fold_data(fold.inner[inner], params) if shared is None else ray.get(shared)
