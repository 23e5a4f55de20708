"""Console of the commands, to which names of unknown origin can be printed."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from raysel.printing.printable import printable


class Terminal(Console):
    r"""Console that shows control characters as escape sequences instead of obeying them.

    Colours, the progress line and the width of lines work as in rich's console; only texts are made `printable`, on a
    terminal and in a log alike.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"soft_wrap": True, "highlight": False, "markup": False, "emoji": False, **settings})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the segments of anything that can be printed; every output passes here."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)


def print_path(path: str | Path) -> None:
    """Print a path on a line of its own: made printable on a terminal, and as it is for a program that reads it."""
    text = printable(str(path)) if sys.stdout.isatty() else str(path)
    sys.stdout.write(f"{text}\n")
