"""Command that resumes an interrupted study or comparison, as its user has to type it."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterable
from pathlib import Path

from raysel.base.registry import imports_code
from raysel.cli.arguments import without_credentials_in
from raysel.core.storage.working_copy import shown_place

#: Environment variable with what the user typed before the arguments, where a script of a cluster starts
#: ``python -m raysel.tune`` and adds the address.
_COMMAND = "RAYSEL_COMMAND"


def resume_with(arguments: argparse.Namespace, path: Path, solvers: Iterable[str]) -> str:
    """Return the command that resumes a study, as text."""
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
