"""How far a study is: one live line for people, ``progress.json`` for programs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from raysel.files import write_json_atomically

_LOG_EVERY_SECONDS = 15.0


class Progress:
    """Counts of trials, shown and written as they change.

    Parameters
    ----------
    path : Path
        ``progress.json``.
    total : int
        Number of trials.
    metric : str
        What ``best`` is.
    console : Console
        A terminal gets one live line, anything else a plain line now and then.
    """

    def __init__(self, path: Path, total: int, metric: str, console: Console) -> None:
        self.finished = self.running = self.failed = 0
        self.total = total
        self.best: float | None = None
        self.phase = ""
        self._path, self._metric, self._console = path, metric, console
        self._begun = self._logged = time.monotonic()
        self._done_before = 0
        self._live = Live(console=console, get_renderable=self._text, transient=True) if console.is_terminal else None
        self._write()

    def __enter__(self) -> Progress:
        if self._live:
            self._live.start()
        return self

    def begin(self, records: Sequence[Any]) -> None:
        """Count what an earlier run has done.

        Parameters
        ----------
        records : sequence
            Each with a ``status``.
        """
        self.failed = sum(record.status == "failed" for record in records)
        self.finished = len(records) - self.failed
        self._done_before, self._begun = len(records), time.monotonic()
        self._write()

    def say(self, sentence: str) -> None:
        """Tell people something, above the live line.

        Parameters
        ----------
        sentence : str
        """
        self._console.print(sentence, highlight=False, markup=False)

    def enter(self, phase: str) -> None:
        """Say what is being done before the first trial ends, and after the last.

        Parameters
        ----------
        phase : str
            E.g. ``"starting Ray"``; empty while trials run.
        """
        self.phase = phase
        if self._live:
            self._live.refresh()
        self.refresh()

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()
        self.running = 0  # whatever ran has ended with the study
        self._write()

    def update(self, *, finished: int = 0, running: int = 0, failed: int = 0, score: float | None = None) -> None:
        """Add to the counts.

        Parameters
        ----------
        finished, running, failed : int
            Changes of the counts.
        score : float, optional
            Of a finished trial, to follow the best.
        """
        self.finished += finished
        self.running += running
        self.failed += failed
        if score is not None and (self.best is None or score > self.best):
            self.best = score
        self._write()
        self.refresh()

    def refresh(self) -> None:
        """Show the counts now and then where no terminal does it by itself."""
        now = time.monotonic()
        if not self._live and now - self._logged >= _LOG_EVERY_SECONDS:
            self._logged = now
            self._console.print(self.line(), highlight=False)

    def _text(self) -> Text:
        return Text(self.line(), no_wrap=True, overflow="ellipsis")

    def line(self) -> str:
        """The counts in one line."""
        if self.phase:
            return self.phase
        done = self.finished + self.failed
        parts = [f"{done}/{self.total} trials", f"{self.running} running", f"{self.failed} failed"]
        if self.best is not None:
            parts.append(f"best val_{self._metric} {self.best:.3f}")
        now = done - self._done_before
        if now and done < self.total:
            left = (time.monotonic() - self._begun) / now * (self.total - done)
            parts.append(f"about {duration(left)} left")
        return " · ".join(parts)

    def _write(self) -> None:
        counts = {"finished": self.finished, "running": self.running, "failed": self.failed, "total": self.total}
        with contextlib.suppress(OSError):  # of a full disk the journal tells; the counts are not worth a study
            write_json_atomically(self._path, counts)


def duration(seconds: float) -> str:
    """Seconds as people say them.

    Parameters
    ----------
    seconds : float

    Returns
    -------
    str

    Examples
    --------
    >>> duration(500)
    '8 min'
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
