"""The commands: what they do and print; Ctrl-C at any time prints one word."""

import sys
from types import TracebackType


def _print_uncaught(
    kind: type[BaseException], error: BaseException, frames: TracebackType | None
) -> None:
    """Print an exception that nothing has caught; of Ctrl-C one word."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
    else:
        sys.__excepthook__(kind, error, frames)


def _is_command() -> bool:
    """Return whether this process is a command of raysel, not a program that calls one."""
    program = sys.modules["__main__"]
    spec = getattr(program, "__spec__", None)
    if spec is None:
        return (getattr(program, "__file__", None) or "").rpartition("/")[2] == "raysel"
    return spec.name.partition(".")[0] == "raysel"


if _is_command():
    sys.excepthook = _print_uncaught
