"""Progress of a running study on a terminal."""

from __future__ import annotations

import time
from importlib.util import find_spec

from rich.console import Console
from rich.live import Live
from rich.text import Text

from raysel.tracking.log import Progress

_LOG_EVERY_SECONDS = 15.0


class ProgressLine:
    """Listener that shows progress as one line, updated on a terminal or in a notebook.

    Elsewhere, e.g. in a log file, it prints a line for each phase, and every 15 seconds one for the
    trials.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress: Progress | None = None
        self._phase, self._logged = "", time.monotonic()
        # In a notebook, rich updates a line by ipywidgets.
        lively = console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
        self._live = (
            Live(console=console, get_renderable=self._text, transient=True) if lively else None
        )

    def __enter__(self) -> ProgressLine:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, progress: Progress) -> None:
        """Show the progress."""
        self._progress, now = progress, time.monotonic()
        if self._live:
            if (
                progress.phase != self._phase
            ):  # otherwise rich refreshes the line four times a second
                self._live.refresh()
            self._phase = progress.phase
        else:
            phase = progress.phase or progress.unit
            if now - self._logged >= _LOG_EVERY_SECONDS or phase != self._phase:
                self._logged = now
                self._console.print(progress_line(progress), highlight=False, markup=False)
            self._phase = phase

    def message(self, text: str) -> None:
        """Print a message above the line."""
        self._console.print(text, highlight=False, markup=False)

    def _text(self) -> Text:
        line = progress_line(self._progress) if self._progress else ""
        return Text(line, no_wrap=True, overflow="ellipsis")


def progress_line(progress: Progress) -> str:
    """Return the progress of a study, or of what is computed for it later, as one line."""
    if progress.phase:
        return progress.phase
    parts = [f"{progress.n_ended}/{progress.total} {progress.unit}"]
    if progress.running:
        parts.append(f"{progress.running} running")
    if progress.failed:
        parts.append(f"{progress.failed} failed")
    if progress.best is not None:
        parts.append(f"best inner {progress.metric.replace('_', ' ')} {progress.best:.3f}")
    if progress.seconds_left is not None:
        parts.append(f"about {duration(progress.seconds_left)} left")
    return " · ".join(parts)


def counted(n: int, what: str) -> str:
    """Return a number with what is counted, in the plural unless it is 1."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def duration(seconds: float) -> str:
    """Return a duration as text in a suitable unit."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
