"""Adapters of a trial plan to Ray Tune: searcher, scheduler and stopper."""

from __future__ import annotations

from typing import Any

from ray.tune import Stopper
from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher

from raysel.distributed.lost_trials import LostTrials
from raysel.distributed.nodes.cluster import Cluster
from raysel.execution.limits import SearchLimits
from raysel.execution.trial_plan import TrialPlan
from raysel.execution.trials import Rung


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
