"""One Ray Tune trial: one configuration on the outer folds it carries, none of whose test samples it sees."""

from __future__ import annotations

import json
import math
import os
import threading
import time
import traceback
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
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
        self._watchdog = threading.Timer(0, str)
        threadpool_limits(self._study.config.search.cpus_per_trial)
        self.reset_config(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Take the next piece of work; the actor and what it holds stay."""
        self._watchdog.cancel()
        self._begin(new_config)
        self._record.started = time.time()
        self._work = self._run()
        return True

    def step(self) -> dict[str, Any]:
        """Advance for a few seconds, to a rung, or to the end."""
        pause = time.monotonic() + _STEP_SECONDS
        try:
            for iteration in self._work:
                rung = self._rung(iteration)
                if rung:
                    return {"done": False, "box": {"record": self._result()}, **rung}
                if time.monotonic() > pause:
                    return {"done": False}
            self._record.ended = time.time()
            result = self._result()
        except Exception:  # a configuration that fails must not end the study  # noqa: BLE001
            self._fail(traceback.format_exc())
            self._record.ended = time.time()
            result = self._result()
        self._watchdog.cancel()
        # In a box of its own, which the driver empties: Tune keeps every result it is given.
        return {"done": True, "box": {"record": result}}

    def cleanup(self) -> None:
        """Leave nothing running; called when the actor ends."""
        self._watchdog.cancel()

    def _start_clock(self) -> None:
        """Allow ``search.trial_timeout`` seconds from now."""
        self._watchdog.cancel()
        timeout = self._study.config.search.trial_timeout
        self._due = math.inf if timeout is None else time.monotonic() + timeout
        if timeout is not None:
            # What does not come back to Python is ended with its process, some time after.
            self._watchdog = threading.Timer(1.5 * timeout + _STEP_SECONDS, os._exit, (1,))
            self._watchdog.daemon = True
            self._watchdog.start()

    def _check_clock(self) -> None:
        """Raise TimeoutError once the time is over."""
        if time.monotonic() > self._due:
            raise TimeoutError(f"over search.trial_timeout: {self._study.config.search.trial_timeout:g} s")

    @abstractmethod
    def _begin(self, config: Mapping[str, Any]) -> None:
        """Start a record."""

    def _rung(self, iteration: int) -> dict[str, Any]:
        """What early stopping judges by, if it judges now."""
        return {}

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

    def _begin(self, config: Mapping[str, Any]) -> None:
        configuration: Configuration = self._study.configurations[config["piece"]]
        self._record = TrialRecord(configuration.id, configuration.name, dict(configuration.params), "finished")
        self._folds: Sequence[OuterFold] = self._study.plan.folds

    def _run(self) -> Iterator[int]:
        study, params = self._study, self._record.params
        for fold in self._folds:
            inner = range(len(fold.inner))
            states = [fold.random_state(study.config.seed, i) for i in inner]
            trace = self._record.folds[fold.name] = FoldTrace()
            self._start_clock()
            try:
                iterations = run_in_lockstep(
                    [study.solver(params, state) for state in states],
                    [self._fold_data(fold, i) for i in inner],
                    study.evaluation,
                    states,
                    trace,
                )
                for iteration in iterations:
                    self._check_clock()
                    yield iteration
            except Exception:  # it concerns this outer fold alone  # noqa: BLE001
                self._record.folds[fold.name] = FoldTrace(error=traceback.format_exc())
        traces = self._record.folds.values()
        if any(trace.error for trace in traces):
            self._record.status = "failed"
        elif all(trace.null for trace in traces):
            self._record.status = "null"

    def _fail(self, error: str) -> None:
        self._record.status, self._record.error, self._record.folds = "failed", error, {}


class FoldTrial(SolverTrial):
    """Scores one configuration by the inner folds of one outer fold, and may be stopped at a rung."""

    def setup(self, config: dict[str, Any], shared: SharedFolds) -> None:
        """Take the shared folds and the rungs; called once an actor."""
        self._levels = ray.get(shared.study).rungs.levels
        super().setup(config, shared)

    def _begin(self, config: Mapping[str, Any]) -> None:
        self._folds = [fold for fold in self._study.plan.folds if fold.name == config["fold"]]
        self._record = self._study.fold_record(config["fold"], config["params"])

    def _rung(self, iteration: int) -> dict[str, Any]:
        if not self._study.config.search.early_stopping or iteration not in self._levels:
            return {}
        (trace,) = self._record.folds.values()
        return {"rung": iteration, "score": trace.score_curve()[-1]}
