"""Progress of a running study: counts of its trials and the time left."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Progress:
    """Counts of the trials of a running study.

    Parameters
    ----------
    total : int
        Number of trials of the study.
    metric : str
        Name of the metric of ``best``.
    finished, running, failed : int, default=0
        Number of trials in each state; ``finished`` counts those that ended without an error.
    best : float, optional
        Best mean validation score of a configuration so far; None while there is none.
    phase : str, default=""
        Phase of the study before the first trial and after the last; empty while trials run.

    Examples
    --------
    >>> progress = Progress(total=8, metric="accuracy", finished=3)
    >>> progress.counts()
    {'finished': 3, 'running': 0, 'failed': 0, 'total': 8}
    """

    total: int
    metric: str
    finished: int = 0
    running: int = 0
    failed: int = 0
    best: float | None = None
    phase: str = ""
    _n_before: int = 0
    _started: float = field(default_factory=time.monotonic)

    def begin(self, records: Sequence[Any]) -> None:
        """Count the trials that an earlier run of the study has finished.

        Parameters
        ----------
        records : sequence of TrialRecord or PathRecord
            Records of those trials.
        """
        self.failed = sum(record.status == "failed" for record in records)
        self.finished = len(records) - self.failed
        self._n_before, self._started = len(records), time.monotonic()

    def counts(self) -> dict[str, int]:
        """Return the counts as plain data."""
        return {"finished": self.finished, "running": self.running, "failed": self.failed, "total": self.total}

    @property
    def n_ended(self) -> int:
        """Number of trials that have ended."""
        return self.finished + self.failed

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds until all trials have ended, from the mean time per trial in this run.

        None before the first trial of this run has ended and after the last.
        """
        now = self.n_ended - self._n_before
        if not now or self.n_ended >= self.total:
            return None
        return (time.monotonic() - self._started) / now * (self.total - self.n_ended)
