"""What a command says when it ends early: an error, and how to resume."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterable
from pathlib import Path

from raysel.base.registry import imports_code
from raysel.cli.arguments import without_credentials_in
from raysel.core.errors import ConfigError, DataError, DirectoryError, RayselError, UnfinishedStudyError
from raysel.core.printing import Terminal
from raysel.core.storage.working_copy import shown_place

#: Environment variable with what the user typed before the arguments, where a script of a cluster starts
#: ``python -m raysel.tune`` and adds the address.
_COMMAND = "RAYSEL_COMMAND"


def print_error(error: RayselError, study: str | Path = "") -> int:
    """Print an error and, if a study has not finished, the command that resumes it; return the exit status."""
    unfinished = isinstance(error, UnfinishedStudyError)
    hint = f" To resume it: python -m raysel.tune --resume {shlex.quote(shown_place(study))}" if unfinished else ""
    Terminal(stderr=True).print(f"error: {error}{hint}", markup=False, highlight=False, style="red")
    return 2 if unfinished or isinstance(error, ConfigError | DataError | DirectoryError) else 1


def resume_with(arguments: argparse.Namespace, path: Path, solvers: Iterable[str]) -> str:
    """Return the command that resumes a study, as its user has to type it."""
    words = []
    if arguments.config and any(map(imports_code, solvers)):
        words += [arguments.config]
        for setting in arguments.set:
            words += ["--set", without_credentials_in(setting)]
    words += ["--resume", shown_place(path)]
    if arguments.address and _COMMAND not in os.environ:
        words += ["--address", arguments.address]
    if arguments.allow_mixed_versions:
        words += ["--allow-mixed-versions"]
    return f"resume with: {os.environ.get(_COMMAND, 'python -m raysel.tune')} {shlex.join(words)}"
