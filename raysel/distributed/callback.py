"""Ray Tune's events, told to the recorder."""

from __future__ import annotations

import json
from typing import Any

from ray import tune
from ray.tune.experiment import Trial

from raysel.errors import StudyError
from raysel.execution.recorder import Recorder
from raysel.execution.trial_plan import TrialPlan


class RecorderCallback(tune.Callback):
    """Tells the recorder of each trial as it starts and ends.

    Parameters
    ----------
    plan : TrialPlan
        What the trials are pieces of.
    recorder : Recorder

    Attributes
    ----------
    error : StudyError or None
        Why the study cannot go on; Tune passes on the text only.
    """

    def __init__(self, plan: TrialPlan, recorder: Recorder) -> None:
        self._plan, self._recorder = plan, recorder
        self._running: set[str] = set()
        self.error: StudyError | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Tune pickles its callbacks for a restore that raysel does not use; open files stay here.
        return {}

    def on_trial_start(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Count a trial that runs."""
        if trial.trial_id not in self._running:  # a trial whose worker died starts again
            self._running.add(trial.trial_id)
            self._recorder.start()

    def on_trial_result(
        self, iteration: int, trials: list[Trial], trial: Trial, result: dict[str, Any], **info: Any
    ) -> None:
        """Keep a trial's record as soon as it is whole, or stopped."""
        box = result.get("box")
        record = self._plan.record_class.from_json(json.loads(box.pop("record"))) if box else None
        if record is None or not result["done"]:
            self._recorder.refresh()
            return
        self._running.discard(trial.trial_id)
        self._tell(self._recorder.stop if "rung" in result else self._recorder.keep, record)

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Record a trial whose workers died as often as may be."""
        self._running.discard(trial.trial_id)
        reason = f"the worker process ended {trial.num_failures} times (killed, or out of memory)"
        self._tell(self._recorder.lose, trial.config, reason)

    def _tell(self, method: Any, *arguments: Any) -> None:
        try:
            method(*arguments)
        except StudyError as error:
            self.error = error
            raise
