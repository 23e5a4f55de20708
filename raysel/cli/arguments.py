"""Error with which a command ends."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from pathlib import Path

from raysel.config.yaml_text import parse_yaml
from raysel.core.credentials import from_pipe, keep_all_credentials, keep_credentials, to_pipe, without_credentials
from raysel.core.errors import ConfigError, DataError, DirectoryError, RayselError, UnfinishedStudyError
from raysel.core.printing import Terminal
from raysel.core.storage.working_copy import shown_place


def print_error(error: RayselError, study: str | Path = "") -> int:
    """Print an error and, if a study has not finished, the command that resumes it."""
    unfinished = isinstance(error, UnfinishedStudyError)
    hint = f" To resume it: python -m raysel.tune --resume {shlex.quote(shown_place(study))}" if unfinished else ""
    Terminal(stderr=True).print(f"error: {error}{hint}", markup=False, highlight=False, style="red")
    return 2 if unfinished or isinstance(error, ConfigError | DataError | DirectoryError) else 1


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where Ray runs."""
    parser.add_argument("--address", metavar="RAY_ADDRESS", help="join this Ray cluster instead of starting Ray here")
    parser.add_argument(
        "--allow-mixed-versions",
        action="store_true",
        help="use nodes of the cluster whose versions may change the last bits of numbers; it is recorded",
    )


#: Environment variable with the number of the pipe that the credentials are read from.
_PIPE = "RAYSEL_CREDENTIALS_PIPE"


def hide_credentials() -> None:
    """Start this command again if its arguments hold credentials, which then come through a pipe.

    They can be listed until then, so that an environment variable is the better place for them. To be called first by
    a command that runs as a process of its own.
    """
    if pipe := os.environ.pop(_PIPE, ""):
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
