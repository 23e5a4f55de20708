"""Start of the command as a process that an experiment kills or watches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def start_command(*arguments: str, store: Path) -> subprocess.Popen[bytes]:
    """Start ``python -m raysel.tune``, quietly.

    Parameters
    ----------
    *arguments : str
        The command's arguments.
    store : Path
        SQLite file of MLflow's runs.

    Returns
    -------
    Popen
    """
    command = [
        sys.executable,
        "-m",
        "raysel.tune",
        *arguments,
        "--set",
        f"tracking.uri=sqlite:///{store.absolute()}",
    ]
    return subprocess.Popen([*command, "--quiet"], stdin=subprocess.DEVNULL)
