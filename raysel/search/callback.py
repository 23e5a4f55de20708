"""Ray Tune's events become records in the journal and counts on the progress line."""

from __future__ import annotations

import json
import math
import time
from typing import Any

from ray import tune
from ray.tune.experiment import Trial

from raysel.cv.records import PathRecord, TrialRecord
from raysel.errors import StudyError
from raysel.search.memory import machine_memory, process_memory
from raysel.search.work import Work
from raysel.tracking.journal import Journal
from raysel.tracking.progress import Progress

#: Share of the machine's memory from which on the process says what it uses.
_MEMORY_SHARE = 0.5


class JournalCallback(tune.Callback):
    """Writes down each trial as it ends.

    Parameters
    ----------
    work : Work
        What the trials are pieces of.
    journal : Journal
    progress : Progress

    Attributes
    ----------
    error : StudyError or None
        Why the study cannot go on; Tune passes on the text only.
    """

    def __init__(self, work: Work, journal: Journal, progress: Progress) -> None:
        self._work, self._journal, self._progress = work, journal, progress
        self._running: set[str] = set()
        self.error: StudyError | None = None
        self._memory_limit = _MEMORY_SHARE * machine_memory()

    def __getstate__(self) -> dict[str, Any]:
        # Tune pickles its callbacks for a restore that raysel does not use; open files stay here.
        return {}

    def on_trial_start(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Count a trial that runs."""
        if trial.trial_id not in self._running:  # a trial whose worker died starts again
            self._running.add(trial.trial_id)
            self._progress.update(running=1)

    def on_trial_result(
        self, iteration: int, trials: list[Trial], trial: Trial, result: dict[str, Any], **info: Any
    ) -> None:
        """Keep a trial's record as soon as it is whole, or left off."""
        box = result.get("box")
        record = self._work.read(json.loads(box.pop("record"))) if box else None
        if record is None or not result["done"]:
            self._progress.refresh()
            return
        if "rung" in result:
            record.status, record.ended = "stopped", time.time()
        self._keep(trial, record)

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Record a trial whose workers died as often as may be."""
        record = self._work.blank(trial.config)
        record.status, record.started, record.ended = "failed", time.time(), time.time()
        record.error = f"the worker process ended {trial.num_failures} times (killed, or out of memory)"
        self._keep(trial, record)

    def _watch_memory(self) -> None:
        """Say once that this process takes up much of the machine's memory."""
        used = process_memory()
        if used > self._memory_limit:
            self._memory_limit = math.inf
            self._progress.say(
                f"this process uses {used / 2**30:.1f} GiB, more than {_MEMORY_SHARE:.0%} of the machine's memory: "
                "if it is killed, --resume goes on; fewer configurations a study need less"
            )

    def _keep(self, trial: Trial, record: TrialRecord | PathRecord) -> None:
        try:
            self._journal.append(self._work.entry(record))
        except StudyError as error:
            self.error = error
            raise
        self._work.keep(record)
        self._running.discard(trial.trial_id)
        self._watch_memory()
        failed = record.status == "failed"
        self._progress.update(finished=not failed, failed=failed, running=-1, score=self._work.score(record))
