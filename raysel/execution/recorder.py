"""Keeps each trial as it ends: in the journal, in the work, and on the progress line."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from raysel.cv.records import PathRecord, TrialRecord
from raysel.execution.memory import machine_memory, process_memory
from raysel.execution.trial_plan import TrialPlan
from raysel.tracking.journal import Journal
from raysel.tracking.progress import Progress

#: Share of the machine's memory from which on the process says what it uses.
_MEMORY_SHARE = 0.5


class Recorder:
    """What an executor tells of its trials.

    Parameters
    ----------
    work : TrialPlan
        What the trials are pieces of.
    journal : Journal
    progress : Progress
    """

    def __init__(self, work: TrialPlan, journal: Journal, progress: Progress) -> None:
        self._work, self._journal, self._progress = work, journal, progress
        self._memory_limit = _MEMORY_SHARE * machine_memory()

    def start(self) -> None:
        """Count a trial that runs."""
        self._progress.update(running=1)

    def refresh(self) -> None:
        """Show the progress of a trial that goes on."""
        self._progress.refresh()

    def stop(self, record: TrialRecord | PathRecord) -> None:
        """Keep the record of a trial that early stopping has ended.

        Parameters
        ----------
        record : TrialRecord
        """
        record.status, record.ended = "stopped", time.time()
        self.keep(record)

    def lose(self, config: Mapping[str, Any], reason: str) -> None:
        """Record a trial that has left nothing.

        Parameters
        ----------
        config : mapping
            As `TrialPlan.propose` gave it.
        reason : str
        """
        record = self._work.blank(config)
        record.status, record.started, record.ended, record.error = "failed", time.time(), time.time(), reason
        self.keep(record)

    def keep(self, record: TrialRecord | PathRecord) -> None:
        """Keep the record of a trial that has ended.

        Parameters
        ----------
        record : TrialRecord or PathRecord

        Raises
        ------
        StudyError
            If the journal cannot be written.
        """
        self._journal.append(record)
        self._work.keep(record)
        self._watch_memory()
        failed = record.status == "failed"
        self._progress.update(finished=not failed, failed=failed, running=-1, score=self._work.score(record))

    def _watch_memory(self) -> None:
        """Say once that this process takes up much of the machine's memory."""
        used = process_memory()
        if used > self._memory_limit:
            self._memory_limit = math.inf
            self._progress.say(
                f"this process uses {used / 2**30:.1f} GiB, more than {_MEMORY_SHARE:.0%} of the machine's memory: "
                "if it is killed, --resume goes on; fewer configurations a study need less"
            )
