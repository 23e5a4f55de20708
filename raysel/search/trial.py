"""One Ray Tune trial: one configuration on the outer folds it carries, none of whose test samples it sees."""

from __future__ import annotations

import json
import time
import traceback
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ray
from ray import tune
from threadpoolctl import threadpool_limits

from raysel.cv.folds import FoldData
from raysel.cv.lockstep import run_in_lockstep
from raysel.cv.plan import OuterFold
from raysel.cv.records import FoldTrace, PathRecord, TrialRecord
from raysel.search.space import Configuration
from raysel.search.study import Study

#: A step ends after so many seconds, so that a long trial shows that it lives.
_STEP_SECONDS = 5.0


@dataclass(frozen=True)
class SharedFolds:
    """What all trials of a study share through the object store.

    Parameters
    ----------
    study : ray.ObjectRef of Study
    prepared : dict of str to list of ray.ObjectRef, or None
        The `FoldData` of each outer fold's inner training sets; None where they would outgrow the
        store and every trial makes its own.
    """

    study: Any
    prepared: dict[str, list[Any]] | None


class FoldsTrial(tune.Trainable):
    """A piece of a study's work on shared folds.

    The result of its last step holds the work's record as JSON.
    """

    _record: TrialRecord | PathRecord

    def setup(self, config: dict[str, Any], shared: SharedFolds) -> None:
        """Take the shared folds; called once an actor."""
        self._study: Study = ray.get(shared.study)
        self._prepared = shared.prepared
        threadpool_limits(self._study.config.search.cpus_per_trial)
        self.reset_config(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Take the next piece of work; the actor and what it holds stay."""
        self._begin(new_config["piece"])
        self._record.started = time.time()
        self._work = self._run()
        return True

    def step(self) -> dict[str, Any]:
        """Advance for a few seconds, or to the end."""
        pause = time.monotonic() + _STEP_SECONDS
        try:
            for _ in self._work:
                if time.monotonic() > pause:
                    return {"done": False}
            self._record.ended = time.time()
            result = self._result()
        except Exception:  # a configuration that fails must not end the study  # noqa: BLE001
            self._fail(traceback.format_exc())
            self._record.ended = time.time()
            result = self._result()
        # In a box of its own, which the driver empties: Tune keeps every result it is given.
        return {"done": True, "box": {"record": result}}

    @abstractmethod
    def _begin(self, piece: int) -> None:
        """Start a record."""

    @abstractmethod
    def _run(self) -> Iterator[int]:
        """Fill the record, pausing now and then."""

    @abstractmethod
    def _fail(self, error: str) -> None:
        """Leave nothing but the error in the record."""

    def _result(self) -> str:
        return json.dumps(self._record.to_json(), allow_nan=False)

    def _fold_data(self, fold: OuterFold, inner: int) -> FoldData:
        """An inner training set, read-only where it is shared."""
        if self._prepared is None:
            return self._study.fold_data(fold.inner[inner])
        return ray.get(self._prepared[fold.name][inner])


class SolverTrial(FoldsTrial):
    """Scores one configuration by the inner folds of every outer fold."""

    _record: TrialRecord

    def _begin(self, piece: int) -> None:
        self._configuration: Configuration = self._study.configurations[piece]
        self._record = TrialRecord(
            self._configuration.id, self._configuration.name, dict(self._configuration.params), "finished"
        )

    def _run(self) -> Iterator[int]:
        study, params = self._study, self._configuration.params
        for fold in study.plan.folds:
            inner = range(len(fold.inner))
            states = [fold.random_state(study.config.seed, i) for i in inner]
            trace = self._record.folds[fold.name] = FoldTrace()
            yield from run_in_lockstep(
                [study.solver(params, state) for state in states],
                [self._fold_data(fold, i) for i in inner],
                study.evaluation,
                states,
                trace,
            )
        if all(trace.null for trace in self._record.folds.values()):
            self._record.status = "null"

    def _fail(self, error: str) -> None:
        self._record.status, self._record.error, self._record.folds = "failed", error, {}
