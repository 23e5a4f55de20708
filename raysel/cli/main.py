"""The command ``raysel`` and its subcommands; credentials are hidden first."""

from __future__ import annotations

import atexit
import errno
import gc
import json
import os
import shlex
import sys
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, TextIO

from raysel.cli.commands import COMMANDS
from raysel.core import __version__

if TYPE_CHECKING:
    from raysel.core.errors import RayselError

#: Environment variable with the number of the pipe that the credentials are read from.
_PIPE = "RAYSEL_CREDENTIALS_PIPE"
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
    """Run the subcommand that the arguments name."""
    words = words_of(argv)
    parser = ArgumentParser(
        prog="raysel", description="Which features matter, and how far to trust the answer."
    )
    parser.add_argument("--version", action="version", version=f"raysel {__version__}")
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        command.fill(parsers.add_parser(name, help=command.summary))
    with _flushed_streams():
        arguments = parser.parse_args(words)
        return _call(arguments.command, arguments, words[1:])


def main_of(name: str) -> Callable[..., int]:
    """Return the function that runs one command alone, as ``python -m raysel.tune`` does."""

    def run(argv: Sequence[str] | None = None) -> int:
        words = words_of(argv)
        parser = ArgumentParser(prog=f"python -m raysel.{name}")
        COMMANDS[name].fill(parser)
        with _flushed_streams():
            return _call(name, parser.parse_args(words), words)

    return run


def _call(name: str, arguments: Namespace, words: Sequence[str]) -> int:
    """Run a command with arguments, which were parsed from words, and return the exit status."""
    from raysel.core.errors import RayselError

    arguments.words = words
    module, _, function = COMMANDS[name].work.partition(":")
    try:
        _refuse_empty(words)
        if key := getattr(arguments, "trust_key", None):
            from raysel.core.trust import use_key

            use_key(key)
        return getattr(import_module(f"raysel.cli.{module}"), function)(arguments)
    except RayselError as error:
        status = _print_error(error, getattr(arguments, "study", None) or "")
        return status if COMMANDS[name].computes else 2
    except KeyboardInterrupt:
        return _print_interrupted()
    except OSError as error:
        return _print_place(error) if error.errno in _OF_PLACES else _print_fault(error)
    except MemoryError as error:
        return _print_memory(error)
    except Exception as error:  # noqa: BLE001 - whatever happens, a command ends in a sentence
        return _print_fault(error)


def _refuse_empty(words: Sequence[str]) -> None:
    """Refuse an empty argument, which would stand for the default, e.g. all of a built-in study."""
    from raysel.core.errors import ConfigError

    for number, word in enumerate(words):
        option, equals, value = word.partition("=")
        if word == "" or (option.startswith("--") and equals and not value):
            before = words[number - 1] if number else "the command"
            after = option or f"the argument after {before}"
            raise ConfigError(
                f"{after} is empty, as a variable of the shell that is not set: give a value, or"
                " leave it out."
            )


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

    what = f" ({short(str(error), _LONGEST)})" if str(error) else ""
    Terminal(stderr=True).print(
        f"error: there is not enough memory{what}: take fewer samples, features or processes, or a"
        " larger machine.",
        style="red",
    )
    return 1


def _print_fault(error: Exception) -> int:
    """Print an error that raysel should have foreseen, and the line that it came from; return
    the exit status.
    """
    from raysel.core.printing import Terminal, short

    own = [frame for frame in traceback.extract_tb(error.__traceback__) if _OWN in frame.filename]
    place = f"{own[-1].filename.rpartition(_OWN)[2]}, line {own[-1].lineno}" if own else "Python"
    what = f"{type(error).__name__}: {short(str(error), _LONGEST)}"
    Terminal(stderr=True).print(
        f"error: raysel has a fault at {place} ({what}); please report it with the command and its"
        " file.",
        style="red",
    )
    return 1


def _print_error(error: RayselError, study: str) -> int:
    """Print an error and, if a study has not finished, the command that resumes it; return the
    exit status.
    """
    from raysel.core.errors import (
        ConfigError,
        DataError,
        DirectoryError,
        StorageError,
        UnfinishedStudyError,
    )
    from raysel.core.printing import Terminal
    from raysel.core.storage.working_copy import shown_place

    out, unfinished = Terminal(stderr=True), isinstance(error, UnfinishedStudyError)
    hint = (
        f" To resume it: python -m raysel.tune --resume {shlex.quote(shown_place(study))}"
        if unfinished
        else ""
    )
    out.print(f"error: {error}{hint}", style="red")
    for note in getattr(error, "__notes__", ()):
        out.print(note)
    if isinstance(error, StorageError):
        return 1
    return 2 if unfinished or isinstance(error, ConfigError | DataError | DirectoryError) else 1


@contextmanager
def _flushed_streams() -> Iterator[None]:
    """Flush the standard streams at the end; one that cannot be written leads to nowhere, so that
    Python ends in silence.
    """
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


def words_of(argv: Sequence[str] | None) -> list[str]:
    """Return the arguments without credentials; those of this process by default."""
    if argv is not None:
        return [without_credentials_in(argument) for argument in argv]
    _hide_credentials()
    return sys.argv[1:]


def _hide_credentials() -> None:
    """Start this process again if its arguments hold credentials, which then come through a pipe.

    They can be listed until then, so that an environment variable is the better place for them.
    """
    pipe = os.environ.pop(_PIPE, "")
    if not pipe and not any("://" in argument for argument in sys.orig_argv):
        return
    from raysel.core.credentials import from_pipe, to_pipe

    if pipe:
        with os.fdopen(int(pipe), encoding="utf-8") as file:
            from_pipe(file.readline())
    hidden = [without_credentials_in(argument) for argument in sys.orig_argv[1:]]
    if hidden == sys.orig_argv[1:]:
        return
    read, write = os.pipe()
    os.write(write, to_pipe().encode())
    os.close(write)
    os.set_inheritable(read, True)
    os.environ[_PIPE] = str(read)
    os.execv(sys.executable, [sys.executable, *hidden])  # noqa: S606 - the same command


def without_credentials_in(argument: str) -> str:
    """Return an argument of a command without the credentials in it."""
    option, equals, value = (
        argument.partition("=") if argument.startswith("--") else ("", "", argument)
    )
    return f"{option}{equals}{_hidden_value(value)}"


def _hidden_value(text: str) -> str:
    """Return a URI, or an override whose value holds one, without credentials."""
    if "://" not in text:
        return text
    from raysel.config.plain_data import parse_yaml
    from raysel.core.credentials import keep_all_credentials, keep_credentials, without_credentials
    from raysel.core.errors import ConfigError

    if (kept := keep_credentials(text)) != text:
        return kept
    key, equals, value = text.partition("=")
    if not equals:
        return text
    try:
        parsed = parse_yaml(value, "override")
    except ConfigError:  # the command will refuse it
        return without_credentials(text)
    hidden = keep_all_credentials(parsed)
    return text if hidden == parsed else f"{key}={json.dumps(hidden, ensure_ascii=False)}"
