"""Error with which a command ends."""

from __future__ import annotations

import shlex
from pathlib import Path

from raysel.errors import ConfigError, DataError, DirectoryError, RayselError, UnfinishedStudyError
from raysel.printing.terminal import Terminal
from raysel.storage.working_copy import shown_place


def print_error(error: RayselError, study: str | Path = "") -> int:
    """Print an error and, if a study has not finished, the command that resumes it."""
    unfinished = isinstance(error, UnfinishedStudyError)
    hint = f" To resume it: python -m raysel.tune --resume {shlex.quote(shown_place(study))}" if unfinished else ""
    Terminal(stderr=True).print(f"error: {error}{hint}", markup=False, highlight=False, style="red")
    return 2 if unfinished or isinstance(error, ConfigError | DataError | DirectoryError) else 1
