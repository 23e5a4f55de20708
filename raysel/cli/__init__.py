"""The commands: what they do and print; Ctrl-C before they start, or while they end, prints one word."""

import sys
from types import TracebackType


def _print_uncaught(
    kind: type[BaseException], error: BaseException, frames: TracebackType | None
) -> None:
    """Print an exception that nothing has caught; of Ctrl-C, during the first imports too, one word."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
    else:
        _uncaught_before(kind, error, frames)


_uncaught_before, sys.excepthook = sys.excepthook, _print_uncaught
