"""What a command takes from its terminal and prints there: arguments without credentials, and errors."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raysel.core.errors import RayselError

#: Environment variable with the number of the pipe that the credentials are read from.
_PIPE = "RAYSEL_CREDENTIALS_PIPE"


def words_of(argv: Sequence[str] | None) -> list[str]:
    """Return the arguments; those of this process, without credentials, by default."""
    if argv is not None:
        return list(argv)
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
    option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    return f"{option}{equals}{_hidden_value(value)}"


def _hidden_value(text: str) -> str:
    """Return a URI, or an override whose value holds one, without credentials."""
    from raysel.config.plain_data import parse_yaml
    from raysel.core.credentials import keep_all_credentials, keep_credentials, without_credentials
    from raysel.core.errors import ConfigError

    if (kept := keep_credentials(text)) != text:
        return kept
    key, equals, value = text.partition("=")
    if not equals or "://" not in value:
        return text
    try:
        parsed = parse_yaml(value, "override")
    except ConfigError:  # the command will refuse it
        return without_credentials(text)
    hidden = keep_all_credentials(parsed)
    return text if hidden == parsed else f"{key}={json.dumps(hidden, ensure_ascii=False)}"


def print_error(error: RayselError, study: str | Path = "") -> int:
    """Print an error and, if a study has not finished, the command that resumes it; return the exit status."""
    from raysel.core.errors import ConfigError, DataError, DirectoryError, UnfinishedStudyError
    from raysel.core.printing import Terminal
    from raysel.core.storage.working_copy import shown_place

    unfinished = isinstance(error, UnfinishedStudyError)
    hint = f" To resume it: python -m raysel.tune --resume {shlex.quote(shown_place(study))}" if unfinished else ""
    Terminal(stderr=True).print(f"error: {error}{hint}", style="red")
    return 2 if unfinished or isinstance(error, ConfigError | DataError | DirectoryError) else 1
