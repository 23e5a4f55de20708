"""Event log of a running study: it writes the journal, counts the trials and notifies listeners."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from raysel.credentials import without_credentials
from raysel.cv.records import PathRecord, TrialRecord
from raysel.errors import StudyError
from raysel.tracking.journal import Journal
from raysel.tracking.locks import LockedFile
from raysel.tracking.progress import Progress


class Listener(Protocol):
    """Interface of objects that show the events of a running study; used as a context manager while it runs."""

    def show(self, progress: Progress) -> None:
        """Show the progress; called whenever it may have changed.

        Parameters
        ----------
        progress : Progress
            Counts of the trials; the same object at every call.
        """

    def message(self, text: str) -> None:
        """Show a message.

        Parameters
        ----------
        text : str
            One sentence.
        """

    def __enter__(self) -> Any:
        """Start listening."""

    def __exit__(self, kind: Any, error: Any, trace: Any, /) -> Any:
        """Stop listening."""


class StudyLog:
    """Receiver of all events of a running study.

    Parameters
    ----------
    journal : Journal
        Journal that every record is appended to.
    progress : Progress
        Counts of the study's trials, which are updated.
    progress_file : Path
        JSON file that the counts are written to whenever they change.
    listeners : sequence of Listener, default=()
        Objects that are notified of every event.

    Attributes
    ----------
    folder : Path
        Directory of the study.
    """

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
        """Count the trials that an earlier run of the study has finished.

        Parameters
        ----------
        records : sequence of TrialRecord or PathRecord
            Records of those trials.
        best : float, optional
            Best mean validation score among them; by default there is none.
        waiting : sequence of mapping of str to object, default=()
            Parameters of the trials to run, in their order, where they are known.
        """
        self._progress.begin(records, best, waiting)
        self._changed()

    def record(self, record: Any) -> None:
        """Write a record to the journal.

        Parameters
        ----------
        record : StudyRecord, TrialRecord, PathRecord, RefitRecord, SearchRecord or EndRecord
            Record to write.

        Raises
        ------
        StudyError
            If the journal cannot be written.
        """
        self._journal.append(record)

    def enter_phase(self, phase: str) -> None:
        """Report the current phase of the study.

        Parameters
        ----------
        phase : str
            Description of the phase, e.g. ``"refitting the winners"``; empty while trials run.
        """
        self._progress.phase = phase
        self._show()

    def message(self, text: str) -> None:
        """Pass a message to the listeners.

        Parameters
        ----------
        text : str
            One sentence, of which credentials in URIs are not passed on.
        """
        for listener in self._listeners:
            listener.message(without_credentials(text))

    def trial_started(self) -> None:
        """Count a trial that has started."""
        self._progress.start_trial()
        self._changed()

    def trial_ended(
        self, failed: bool, score: float | None = None, seconds: float = 0.0, params: Mapping[str, Any] | None = None
    ) -> None:
        """Count a trial that has ended.

        Parameters
        ----------
        failed : bool
            Whether a fit of the trial failed.
        score : float, optional
            Mean validation score of the trial; None if it has none.
        seconds : float, default=0.0
            Duration of the trial where it ran.
        params : mapping of str to object, optional
            Parameters of the trial; by default they are not known.
        """
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
