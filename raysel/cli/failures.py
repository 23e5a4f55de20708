"""Error with which a command ends."""

from __future__ import annotations

import shlex
from pathlib import Path

from raysel.errors import ConfigError, DataError, DirectoryError, RayselError, UnfinishedStudyError
from raysel.printing.terminal import Terminal
from raysel.storage.working_copy import shown_place


def print_error(error: RayselError, study: str | Path = "") -> int:
    """Print an error and, if a study has not finished, the command that resumes it.

    Parameters
    ----------
    error : RayselError
        Error to print.
    study : str or Path, default=""
        Directory or URI of the study that the command reads, if it reads one.

    Returns
    -------
    int
        Exit status of a command that computes: 2 if what was given cannot be used, 1 if the computation failed.
    """
    unfinished = isinstance(error, UnfinishedStudyError)
    hint = f" To resume it: python -m raysel.tune --resume {shlex.quote(shown_place(study))}" if unfinished else ""
    Terminal(stderr=True).print(f"error: {error}{hint}", markup=False, highlight=False, style="red")
    return 2 if unfinished or isinstance(error, ConfigError | DataError | DirectoryError) else 1
