"""Event log of a running study: journal, counts, time left, and listeners."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from raysel.core.credentials import without_credentials
from raysel.core.errors import StudyError
from raysel.evaluation.records import PathRecord, TrialRecord
from raysel.tracking.journal import Journal
from raysel.tracking.locks import LockedFile
from raysel.tracking.records import Record

#: Number of the last ended trials from which the pace is measured.
_WINDOW = 30
#: Share by which a parameter must reduce the deviations of the trials' durations to count as one of
#: cost.
_REDUCTION = 0.3
#: Ratio of the quartiles of durations above which they are not of like cost.
_LIKE = 2.0
#: Seconds between two writings of the counts: a file server needs as long for one as a short trial
#: takes.
_PERIOD = 0.2


@dataclass
class Progress:
    """Counts of the trials of a running study, and the time left.

    The time left is that of the trials that run or wait, each expected to take the median duration
    of the ended trials of like cost, times the pace: the time per second of trial in which the last
    trials ended, which accounts for trials that run at once and for the time between trials, but
    not for the start of the workers.
    """

    total: int
    metric: str
    finished: int = 0
    running: int = 0
    failed: int = 0
    best: float | None = None
    phase: str = ""
    #: What is counted.
    unit: str = "trials"
    #: Returns the time in seconds.
    clock: Callable[[], float] = time.monotonic
    _waiting: list[Mapping[str, Any]] = field(default_factory=list)
    _started: list[tuple[float, Mapping[str, Any]]] = field(default_factory=list)
    _ended: list[tuple[float, float, Mapping[str, Any]]] = field(
        default_factory=list
    )  # time, duration, parameters
    _slots: list[int] = field(default_factory=list)
    #: Seconds of the trials that wait, pace and typical durations, which change only when a trial
    #: ends.
    _expected: tuple[float, float, _Typical] | None = None

    def begin(
        self,
        records: Sequence[Any],
        best: float | None = None,
        waiting: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Count the trials that an earlier run of the study has finished."""
        self.failed = sum(record.status == "failed" for record in records)
        self.finished, self.best = len(records) - self.failed, best
        self._waiting = list(waiting)

    def start_trial(self) -> None:
        """Count a trial that has started: the next of those that wait."""
        self.running += 1
        self._slots = [*self._slots, self.running][-_WINDOW:]
        self._started.append((self.clock(), self._waiting.pop(0) if self._waiting else {}))

    def end_trial(
        self,
        failed: bool,
        score: float | None = None,
        seconds: float = 0.0,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        """Count a trial that has ended."""
        self.running -= 1
        self.failed += failed
        self.finished += not failed
        if score is not None and (self.best is None or score > self.best):
            self.best = score
        ended = params or {}
        index = next((i for i, (_, other) in enumerate(self._started) if other == ended), 0)
        if self._started:
            del self._started[index]
        self._ended.append((self.clock(), max(0.0, seconds), ended))
        self._expected = None

    def counts(self) -> dict[str, int]:
        """Return the counts as plain data."""
        return {
            "finished": self.finished,
            "running": self.running,
            "failed": self.failed,
            "total": self.total,
        }

    @property
    def n_ended(self) -> int:
        """Number of trials that have ended."""
        return self.finished + self.failed

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds until all trials have ended; None before one has, and after all."""
        if not self._ended or self.n_ended >= self.total:
            return None
        if self._expected is None:
            typical = _Typical([(seconds, params) for _, seconds, params in self._ended])
            n_waiting = max(0, self.total - self.n_ended - self.running)
            known = sum(map(typical.seconds, self._waiting[:n_waiting]))
            queued = known + max(0, n_waiting - len(self._waiting)) * typical.overall
            self._expected = queued, self._pace(), typical
        queued, pace, typical = self._expected
        now = self.clock()
        left = [
            max(0.0, typical.seconds(params) - (now - started)) for started, params in self._started
        ]
        return max([pace * (queued + sum(left)), *left])

    def _pace(self) -> float:
        """Seconds per second of trial: 1 / n if n trials run at once without a pause."""
        least = 1 / max(1, *self._slots[-_WINDOW:])
        last = self._ended[-_WINDOW:]
        work = sum(seconds for _, seconds, _ in last[1:])
        if work <= 0:
            return least
        return max(least, (last[-1][0] - last[0][0]) / work)


class _Typical:
    """Typical durations of trials by the parameter that their cost depends on most, if on any."""

    def __init__(self, ended: Sequence[tuple[float, Mapping[str, Any]]]) -> None:
        seconds = np.array([duration for duration, _ in ended])
        self.overall = _typical(seconds)
        self._key = ""
        self._by_value: dict[Hashable, float] = {}
        best = (1 - _REDUCTION) * float(np.abs(seconds - np.median(seconds)).sum())
        for key in set().union(*(params for _, params in ended)):
            groups: dict[Hashable, list[float]] = {}
            for duration, params in ended:
                groups.setdefault(repr(params.get(key)), []).append(duration)
            if len(groups) < 2 or 2 * len(groups) > len(
                ended
            ):  # values that hardly repeat predict nothing
                continue
            deviation = sum(
                float(np.abs(np.array(group) - np.median(group)).sum()) for group in groups.values()
            )
            if deviation < best:
                best, self._key = deviation, key
                self._by_value = {
                    value: _typical(np.array(group)) for value, group in groups.items()
                }

    def seconds(self, params: Mapping[str, Any]) -> float:
        """Return the typical duration of a trial with such parameters."""
        if not self._key:
            return self.overall
        return self._by_value.get(repr(params.get(self._key)), self.overall)


def _typical(seconds: np.ndarray[Any, Any]) -> float:
    """Return the median of durations of like cost; else their mean, outliers moved inwards."""
    low, high = np.quantile(seconds, [0.25, 0.75])
    if high <= _LIKE * low:
        return float(np.median(seconds))
    return float(np.clip(seconds, *np.quantile(seconds, [0.05, 0.95])).mean())


class Listener(Protocol):
    """Interface of objects that show the events of a running study; a context manager."""

    def show(self, progress: Progress) -> None:
        """Show the progress; called whenever it may have changed."""

    def message(self, text: str) -> None:
        """Show a message."""

    def __enter__(self) -> Any:
        """Start listening."""

    def __exit__(self, kind: Any, error: Any, trace: Any, /) -> Any:
        """Stop listening."""


class StudyLog:
    """Receiver of all events of a running study."""

    def __init__(
        self,
        journal: Journal | list[Record],
        progress: Progress,
        progress_file: Path | None = None,
        listeners: Sequence[Listener] = (),
    ) -> None:
        """Write records to a journal, or append them to a list for a study in memory."""
        self._journal, self._progress = journal, progress
        self._listeners = listeners
        self._progress_file: LockedFile | None = None
        self.folder: Path | None = None
        if progress_file is not None:
            self._progress_file = LockedFile(progress_file, getattr(journal, "lock", None))
            self.folder = progress_file.parent
        self._stack = ExitStack()
        self._is_written, self._written = False, 0.0

    def __enter__(self) -> StudyLog:
        with ExitStack() as entered:  # if one of them fails, those before it stop listening
            for listener in self._listeners:
                entered.enter_context(listener)
            self._stack = entered.pop_all()
        self._write_counts()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.running = 0  # trials end with the study
        self._stack.close()
        with suppress(StudyError):  # another process has taken over the directory
            self._write_counts()

    def begin(
        self,
        records: Sequence[TrialRecord | PathRecord],
        best: float | None = None,
        waiting: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Count the trials that an earlier run of the study has finished."""
        self._progress.begin(records, best, waiting)
        self._changed()

    def record(self, record: Any) -> None:
        """Write a record to the journal."""
        self._journal.append(record)

    def enter_phase(self, phase: str) -> None:
        """Report the current phase of the study."""
        self._progress.phase = phase
        self.refresh()

    def message(self, text: str) -> None:
        """Pass a message to the listeners."""
        for listener in self._listeners:
            listener.message(without_credentials(text))

    def trial_started(self) -> None:
        """Count a trial that has started."""
        self._progress.start_trial()
        self._changed()

    def trial_ended(
        self,
        failed: bool,
        score: float | None = None,
        seconds: float = 0.0,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        """Count a trial that has ended."""
        self._progress.end_trial(failed, score, seconds, params)
        self._changed()

    def refresh(self) -> None:
        """Show the progress, again and again while a trial runs."""
        if not self._is_written and time.monotonic() > self._written + _PERIOD:
            self._write_counts()
        for listener in self._listeners:
            listener.show(self._progress)

    def _changed(self) -> None:
        self._is_written = False
        self.refresh()

    def _write_counts(self) -> None:
        self._is_written, self._written = True, time.monotonic()
        if self._progress_file is None:
            return
        with suppress(
            OSError
        ):  # the counts are for display only; a full disk raises an error in the journal
            self._progress_file.write(json.dumps(self._progress.counts()))
