"""The command ``raysel`` and its subcommands; an argument that holds credentials is refused."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import shlex
import sys
import textwrap
import traceback
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, TextIO

from raysel.cli.commands import COMMANDS
from raysel.core import __version__
from raysel.core.glossary import TERMS

if TYPE_CHECKING:
    from raysel.core.errors import RayselError

#: Why an argument is refused.
_EMPTY = "is empty, as a variable of the shell that is not set: give a value, or leave it out."
_LISTED = (
    "holds credentials, and every user of this machine can list arguments. Set MLFLOW_TRACKING_URI,"
    " or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD; of S3 AWS_ACCESS_KEY_ID and"
    " AWS_SECRET_ACCESS_KEY; or write the URI into a configuration file."
)
#: Part of the path of a file of raysel's own, and the longest message of a fault that is printed.
_OWN, _LONGEST = f"{os.sep}raysel{os.sep}", 200
#: Errors of the system for a path that was given: too long, a loop of links, below a file, a
#: folder, not permitted.
_OF_PLACES = frozenset(
    {
        *(errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR),
        *(errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS),
    }
)

# Else Python looks for cycles among the objects of all libraries again and again while it imports
# and draws, and for half a second before it ends.
gc.set_threshold(10_000)
atexit.register(gc.freeze)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, and return the exit status."""
    words = sys.argv[1:] if argv is None else list(argv)
    with _flushed_streams():
        if refusal := _refuse(words):
            return refusal
        arguments = _parser().parse_args(words)
        arguments.words = words[1:]
        return _call(arguments)


def make_main(name: str) -> Callable[..., int]:
    """Return the function that runs one command, as ``python -m raysel.tune`` does."""

    def run(argv: Sequence[str] | None = None) -> int:
        return main([name, *(sys.argv[1:] if argv is None else argv)])

    return run


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="raysel",
        description="Which features matter, and how far to trust the answer.",
        epilog=_glossary(),
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"raysel {__version__}")
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        command.fill(parsers.add_parser(name, help=command.summary))
    return parser


def _glossary() -> str:
    """Return the terms with their meanings, in two columns."""
    indent = " " * 17
    lines = [
        textwrap.fill(f"  {term:<15}{meaning}", 80, subsequent_indent=indent)
        for term, meaning in TERMS.items()
    ]
    return "\n".join(["terms:", *lines])


def _refuse(words: Sequence[str]) -> int:
    """Print why an argument is refused, and return the exit status; 0 if none is."""
    from raysel.core.credentials import has_credentials

    for number, word in enumerate(words):
        if _is_empty(word):
            return _print_refusal(f"{_argument(words, number)} {_EMPTY}")
        if has_credentials(word):
            return _print_refusal(f"{_argument(words, number)} {_LISTED}")
    return 0


def _print_refusal(text: str) -> int:
    from raysel.core.errors import ConfigError

    return _print_error(ConfigError(text))


def _is_empty(word: str) -> bool:
    """Return whether an argument is empty, which would stand for the default."""
    option, equals, value = word.partition("=")
    return not option or (option.startswith("--") and bool(equals) and not value)


def _argument(words: Sequence[str], number: int) -> str:
    """Return how an argument is named without its value."""
    name, equals, _ = words[number].partition("=")
    if equals and "://" not in name:
        return name
    before = ("the command", *words)[number]
    return f"the argument after {before}"


def _call(arguments: Namespace) -> int:
    """Run the command of parsed arguments, and return the exit status."""
    from raysel.core.errors import RayselError

    command = COMMANDS[arguments.command]
    module, _, function = command.work.partition(":")
    try:
        if key := getattr(arguments, "trust_key", None):
            from raysel.core.trust import use_key

            use_key(key)
        if command.first_line and (line := command.first_line(arguments)):
            from raysel.core.printing import Terminal

            Terminal().print(line)
        return getattr(import_module(f"raysel.cli.{module}"), function)(arguments)
    except RayselError as error:
        status = _print_error(error, getattr(arguments, "study", None) or "")
        return status if command.computes else 2
    except KeyboardInterrupt:
        return _print_interrupted()
    except OSError as error:
        return _print_place(error) if error.errno in _OF_PLACES else _print_fault(error)
    except MemoryError as error:
        return _print_memory(error)
    except Exception as error:  # noqa: BLE001 - whatever happens, a command ends in a sentence
        return _print_fault(error)


def _print_interrupted() -> int:
    """Say that a command was interrupted; return the exit status."""
    from raysel.core.printing import Terminal
    from raysel.execution.signals import interrupt_status

    Terminal(stderr=True).print("interrupted")
    return interrupt_status()


def _print_place(error: OSError) -> int:
    """Print why the system refuses a path; return the exit status."""
    from raysel.core.printing import Terminal, short_middle

    place = short_middle(str(error.filename or "a file"), _LONGEST)
    text = f"error: {place}: {error.strerror}; give another file or folder."
    Terminal(stderr=True).print(text, style="red")
    return 2


def _print_memory(error: MemoryError) -> int:
    """Say that the memory is used up; return the exit status."""
    from raysel.core.printing import Terminal, short

    what = "there is not enough memory"
    if str(error):
        what += f" ({short(str(error), _LONGEST)})"
    remedy = "take fewer samples, features or processes, or a larger machine."
    Terminal(stderr=True).print(f"error: {what}: {remedy}", style="red")
    return 1


def _print_fault(error: Exception) -> int:
    """Print an error that raysel should have foreseen, and where it came from."""
    from raysel.core.printing import Terminal, short

    own = [frame for frame in traceback.extract_tb(error.__traceback__) if _OWN in frame.filename]
    place = "Python"
    if own:
        place = f"{own[-1].filename.rpartition(_OWN)[2]}, line {own[-1].lineno}"
    what = f"{type(error).__name__}: {short(str(error), _LONGEST)}"
    Terminal(stderr=True).print(
        f"error: raysel has a fault at {place} ({what}); please report it with the command and its"
        " file.",
        style="red",
    )
    return 1


def _print_error(error: RayselError, study: str = "") -> int:
    """Print an error, with the command that resumes an unfinished study."""
    from raysel.core.errors import (
        ConfigError,
        DataError,
        DirectoryError,
        StorageError,
        UnfinishedStudyError,
    )
    from raysel.core.printing import Terminal, program
    from raysel.core.storage.working_copy import shown_place

    out, text = Terminal(stderr=True), f"error: {error}"
    if isinstance(error, UnfinishedStudyError):
        place = shlex.quote(shown_place(study))
        text += f" To resume it: {program()} tune --resume {place}"
    out.print(text, style="red")
    for note in getattr(error, "__notes__", ()):
        out.print(note)
    if isinstance(error, StorageError):
        return 1
    refusals = (ConfigError, DataError, DirectoryError, UnfinishedStudyError)
    return 2 if isinstance(error, refusals) else 1


@contextmanager
def _flushed_streams() -> Iterator[None]:
    """Flush the standard streams at the end; one that cannot be written leads to nowhere."""
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                _lead_to_nowhere(stream)


def _lead_to_nowhere(stream: TextIO | None) -> None:
    if stream is not None:
        with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - devnull is a name
            os.dup2(nowhere.fileno(), stream.fileno())
