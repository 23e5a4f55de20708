"""Callback that passes Ray Tune's events to the recorder."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

from ray import tune
from ray.exceptions import RayActorError
from ray.tune.experiment import Trial

from raysel.distributed.nodes import other_versions
from raysel.errors import StudyError
from raysel.execution.executor import last_line
from raysel.execution.recorder import Recorder
from raysel.execution.trial_plan import TrialPlan


class RecorderCallback(tune.Callback):
    """Callback that reports the start and the end of each trial to the recorder.

    Parameters
    ----------
    plan : TrialPlan
        Plan of the trials.
    recorder : Recorder
        Receives the events.

    Attributes
    ----------
    error : StudyError or None
        Error that ended the study; Tune itself raises another error with the same text.
    """

    def __init__(self, plan: TrialPlan, recorder: Recorder) -> None:
        self._plan, self._recorder = plan, recorder
        self._running: set[str] = set()
        self.error: StudyError | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Tune pickles its callbacks to restore experiments, which raysel does not use; open files cannot be pickled.
        return {}

    def on_trial_start(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Count a trial that has started."""
        if trial.trial_id not in self._running:  # a trial whose worker died is started again
            self._running.add(trial.trial_id)
            self._recorder.start()

    def on_trial_result(
        self, iteration: int, trials: list[Trial], trial: Trial, result: dict[str, Any], **info: Any
    ) -> None:
        """Keep the record of a trial that has ended or is stopped."""
        payload = result.get("payload")
        record = self._plan.record_class.from_json(json.loads(payload.pop("record"))) if payload else None
        if record is None or not result["done"]:
            self._recorder.refresh()
            return
        self._running.discard(trial.trial_id)
        self._report(self._recorder.stop if "rung" in result else self._recorder.keep, record)

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Record a trial that failed in every attempt because its worker process died or Tune's code raised."""
        self._running.discard(trial.trial_id)
        error = _last_error(trial)
        if refused := other_versions(error):
            self.error = refused
            raise refused
        if isinstance(error, RayActorError) and not error.actor_init_failed:
            reason = f"the worker process ended {trial.num_failures} times (killed, or out of memory)"
        else:
            reason = last_line(error)
        self._report(self._recorder.lose, trial.config, reason)

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
