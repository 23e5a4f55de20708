"""A scheduler that lets every actor work."""

from __future__ import annotations

from typing import Any

from ray.tune.schedulers import FIFOScheduler


class KeepActors(FIFOScheduler):
    """Leaves each trial to the actor that starts for it.

    Tune's own would give it an actor that falls free meanwhile and stop the one that starts: with
    short trials one actor would do all the work.
    """

    def choose_trial_to_run(self, tune_controller: Any) -> None:
        """None: the controller then starts each trial where it belongs, in the order of arrival."""
