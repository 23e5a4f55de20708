"""Limits that end the trials of a study: time budget and number of failures."""

from __future__ import annotations

import time

from raysel.errors import StudyError, headline
from raysel.execution.trial_plan import TrialPlan


class SearchLimits:
    """Limits of a search that starts when the object is created."""

    def __init__(self, time_budget: float | None, max_failures: int | None, plan: TrialPlan) -> None:
        self._until = None if time_budget is None else time.monotonic() + time_budget
        self._max_failures, self._plan = max_failures, plan
        self.out_of_time = False

    def reached(self) -> bool:
        """Return whether a limit is reached, so that all trials must stop."""
        self.out_of_time |= self._until is not None and time.monotonic() > self._until
        return self.out_of_time or self._too_many_failures()

    def check_failures(self) -> None:
        """Check the number of failed trials."""
        if self._too_many_failures():
            failed = [record for record in self._plan.records if record.status == "failed"]
            last = headline(failed[-1].failure)
            raise StudyError(
                f"{len(failed)} trials failed, more than search.max_failures={self._max_failures}; "
                f"the last error was: {last}"
            )

    def _too_many_failures(self) -> bool:
        allowed = self._max_failures
        return allowed is not None and sum(record.status == "failed" for record in self._plan.records) > allowed
