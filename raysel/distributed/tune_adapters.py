"""Adapters of a trial plan to Ray Tune: searcher, scheduler and stopper."""

from __future__ import annotations

from typing import Any

from ray.tune import Stopper
from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher

from raysel.execution.limits import SearchLimits
from raysel.execution.trial_plan import TrialPlan
from raysel.execution.trials import Rung


class PlanSearcher(Searcher):
    """Passes Tune's questions on to the plan.

    Parameters
    ----------
    plan : TrialPlan
    """

    def __init__(self, plan: TrialPlan) -> None:
        super().__init__(metric=None, mode=None)
        self._plan = plan

    def __getstate__(self) -> dict[str, Any]:
        # Tune pickles it for a restore that raysel does not use.
        return {}

    def set_search_properties(self, *_: Any, **__: Any) -> bool:
        """Nothing to set: the study says it all."""
        return True

    def suggest(self, trial_id: str) -> Any:
        """The next piece; None while there is none to ask for."""
        config = self._plan.propose()
        return Searcher.FINISHED if config is None and self._plan.exhausted else config

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Nothing: the plan learns from the record, which says more than Tune's result."""

    def save(self, checkpoint_path: str) -> None:
        """Nothing to save: the journal keeps what is done."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing to restore."""


class PlanScheduler(FIFOScheduler):
    """Stops trials at their rungs, and leaves each trial to the actor that starts for it.

    Tune's own would give it an actor that falls free meanwhile and stop the one that starts: with
    short trials one actor would do all the plan.

    Parameters
    ----------
    plan : TrialPlan
    """

    def __init__(self, plan: TrialPlan) -> None:
        super().__init__()
        self._plan = plan

    def __getstate__(self) -> dict[str, Any]:
        # As for PlanSearcher.
        return {}

    def choose_trial_to_run(self, tune_controller: Any) -> None:
        """None: the controller then starts each trial where it belongs, in the order of arrival."""

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        """Judge a trial that has come to a rung."""
        if result["done"] or "rung" not in result:
            return TrialScheduler.CONTINUE
        should_continue = self._plan.should_continue(trial.config, Rung(result["rung"], result["score"]))
        return TrialScheduler.CONTINUE if should_continue else TrialScheduler.STOP


class StudyStopper(Stopper):
    """Stops the trials of a study, all at once, at its limits.

    Parameters
    ----------
    limits : SearchLimits
    """

    def __init__(self, limits: SearchLimits) -> None:
        self._limits = limits

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """No trial is stopped by itself."""
        return False

    def stop_all(self) -> bool:
        """Whether to stop them all."""
        return self._limits.reached()

    def __getstate__(self) -> dict[str, Any]:
        # As for PlanSearcher.
        return {}
