"""When a study makes no more trials: its time is used up, or too many have failed."""

from __future__ import annotations

import time
from typing import Any

from ray.tune import Stopper

from raysel.search.work import Work


class Limits(Stopper):
    """Stops the trials of a study, all at once.

    Parameters
    ----------
    time_budget : float or None
        Seconds from now.
    max_failures : int or None
    work : Work
        Knows the failed trials.

    Attributes
    ----------
    out_of_time : bool
        Whether the time budget ended the trials.
    """

    def __init__(self, time_budget: float | None, max_failures: int | None, work: Work) -> None:
        self._until = None if time_budget is None else time.monotonic() + time_budget
        self._max_failures, self._work = max_failures, work
        self.out_of_time = False

    @property
    def failures(self) -> list[str]:
        """What the failed trials said."""
        return [self._work.failure(record) for record in self._work.records if record.status == "failed"]

    @property
    def too_many_failures(self) -> bool:
        """Whether more trials have failed than may."""
        return self._max_failures is not None and len(self.failures) > self._max_failures

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """No trial is stopped by itself."""
        return False

    def stop_all(self) -> bool:
        """Whether to stop them all."""
        self.out_of_time |= self._until is not None and time.monotonic() > self._until
        return self.out_of_time or self.too_many_failures

    def __getstate__(self) -> dict[str, Any]:
        # Tune pickles it for a restore that raysel does not use.
        return {}
