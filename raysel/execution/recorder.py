"""Records, limits of time and failures, and the memory of this process, while the trials of a search run."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raysel.core.errors import StudyError, headline
from raysel.core.machine import machine_memory, now
from raysel.evaluation.records import PathRecord, TrialRecord
from raysel.execution.trial_plan import TrialPlan
from raysel.execution.trials import mark_stopped
from raysel.tracking.log import StudyLog


def process_memory() -> int:
    """Return the resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


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


#: Share of the machine's memory above which a message reports the memory of this process.
_MEMORY_SHARE = 0.5


class Recorder:
    """Receiver of the events of an executor's trials."""

    def __init__(self, plan: TrialPlan, log: StudyLog) -> None:
        self._plan, self._log = plan, log
        self._memory_limit = _MEMORY_SHARE * machine_memory()

    def start(self) -> None:
        """Count a trial that has started."""
        self._log.trial_started()

    def refresh(self) -> None:
        """Show the progress again while a trial runs."""
        self._log.refresh()

    def stop(self, record: TrialRecord | PathRecord) -> None:
        """Keep the record of a trial that early stopping has ended."""
        mark_stopped(record)
        self.keep(record)

    def lose(self, config: Mapping[str, Any], reason: str) -> None:
        """Record a trial that ended without a record, e.g. because its worker process died."""
        record = self._plan.empty_record(config)
        record.status, record.started, record.ended, record.error = "failed", now(), now(), reason
        self.keep(record)

    def keep(self, record: TrialRecord | PathRecord) -> None:
        """Keep the record of a trial that has ended."""
        self._log.record(record)
        self._plan.add(record)
        self._watch_memory()
        params = record.params if isinstance(record, TrialRecord) else None
        seconds = record.ended - record.started
        self._log.trial_ended(record.status == "failed", self._plan.score(record), seconds, params)

    def _watch_memory(self) -> None:
        """Report once that this process uses much of the machine's memory."""
        used = process_memory()
        if used > self._memory_limit:
            self._memory_limit = math.inf
            self._log.message(
                f"this process uses {used / 2**30:.1f} GiB, more than {_MEMORY_SHARE:.0%} of the machine's memory: "
                "if it is killed, resume the study; a study of fewer configurations needs less"
            )
