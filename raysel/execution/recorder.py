"""Recording of trials as they end: in the journal, in the plan and in the progress."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from raysel.clock import now
from raysel.cv.records import PathRecord, TrialRecord
from raysel.execution.memory import process_memory
from raysel.execution.trial_plan import TrialPlan
from raysel.execution.trials import mark_stopped
from raysel.limits import machine_memory
from raysel.tracking.log import StudyLog

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
