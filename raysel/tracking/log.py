"""Event log of a running study: it writes the journal, counts the trials and notifies listeners."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from raysel.core.credentials import without_credentials
from raysel.core.errors import StudyError
from raysel.evaluation.records import PathRecord, TrialRecord
from raysel.tracking.journal import Journal
from raysel.tracking.locks import LockedFile
from raysel.tracking.progress import Progress


class Listener(Protocol):
    """Interface of objects that show the events of a running study; used as a context manager while it runs."""

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
        self, journal: Journal, progress: Progress, progress_file: Path, listeners: Sequence[Listener] = ()
    ) -> None:
        self._journal, self._progress = journal, progress
        self._progress_file = LockedFile(progress_file, journal.lock)
        self._listeners = listeners
        self.folder = progress_file.parent
        self._stack = ExitStack()

    def __enter__(self) -> StudyLog:
        with ExitStack() as entered:  # if one of them fails, those before it stop listening
            for listener in self._listeners:
                entered.enter_context(listener)
            self._stack = entered.pop_all()
        self._write_counts()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
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
        self._show()

    def message(self, text: str) -> None:
        """Pass a message to the listeners."""
        for listener in self._listeners:
            listener.message(without_credentials(text))

    def trial_started(self) -> None:
        """Count a trial that has started."""
        self._progress.start_trial()
        self._changed()

    def trial_ended(
        self, failed: bool, score: float | None = None, seconds: float = 0.0, params: Mapping[str, Any] | None = None
    ) -> None:
        """Count a trial that has ended."""
        self._progress.end_trial(failed, score, seconds, params)
        self._changed()

    def refresh(self) -> None:
        """Show the progress again while a trial runs."""
        self._show()

    def _changed(self) -> None:
        self._write_counts()
        self._show()

    def _show(self) -> None:
        for listener in self._listeners:
            listener.show(self._progress)

    def _write_counts(self) -> None:
        with suppress(OSError):  # the counts are for display only; a full disk raises an error in the journal
            self._progress_file.write(json.dumps(self._progress.counts()))
