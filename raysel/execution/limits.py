"""When a study makes no more trials: its time is used up, or too many have failed."""

from __future__ import annotations

import time

from raysel.errors import StudyError
from raysel.execution.trial_plan import TrialPlan


class SearchLimits:
    """The limits of a search that starts now.

    Parameters
    ----------
    time_budget : float or None
        Seconds from now.
    max_failures : int or None
    plan : TrialPlan
        Knows the failed trials.

    Attributes
    ----------
    out_of_time : bool
        Whether the time budget ended the trials.
    """

    def __init__(self, time_budget: float | None, max_failures: int | None, plan: TrialPlan) -> None:
        self._until = None if time_budget is None else time.monotonic() + time_budget
        self._max_failures, self._plan = max_failures, plan
        self.out_of_time = False

    def reached(self) -> bool:
        """Whether to stop all trials."""
        self.out_of_time |= self._until is not None and time.monotonic() > self._until
        return self.out_of_time or self._too_many_failures()

    def check_failures(self) -> None:
        """Raise StudyError if more trials have failed than may."""
        if self._too_many_failures():
            failed = [record for record in self._plan.records if record.status == "failed"]
            last = failed[-1].failure.strip().rpartition("\n")[2]
            raise StudyError(
                f"{len(failed)} trials failed, more than search.max_failures={self._max_failures}; "
                f"the last said: {last}"
            )

    def _too_many_failures(self) -> bool:
        allowed = self._max_failures
        return allowed is not None and sum(record.status == "failed" for record in self._plan.records) > allowed
