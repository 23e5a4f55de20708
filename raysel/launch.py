"""Directory, executor, listeners and checks of the machine with which a study starts."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from raysel.base.registry import imports_code
from raysel.errors import ConfigError
from raysel.execution.executor import Executor
from raysel.execution.serial import SerialExecutor
from raysel.files import result_path
from raysel.study.definition import Study
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.log import Listener


def output_directory(study: Study, output: str | Path | None = None) -> Path:
    """Return the directory that a study is written to.

    Parameters
    ----------
    study : Study
        Study to write.
    output : str or Path, optional
        Directory to use; by default the configuration's ``output``, else ``raysel-studies/<name>-<time>``.

    Returns
    -------
    Path
        Directory of the study.
    """
    return result_path(output or study.config.output or StudyDirectory.default(study.config.name))


def check_resources(study: Study, address: str | None) -> None:
    """Check that the machine or the cluster can run the study's trials.

    Parameters
    ----------
    study : Study
        Study to run.
    address : str or None
        HOST:PORT of a Ray cluster; None for this machine.

    Raises
    ------
    ConfigError
        If a trial needs more CPUs than this machine has, or the cluster cannot be reached.
    """
    if address is None:
        wanted, there = study.config.search.cpus_per_trial, len(os.sched_getaffinity(0))
        if wanted > there:
            raise ConfigError(
                f"search.cpus_per_trial: {wanted} exceeds the {there} CPUs of this machine; set at most {there}."
            )
        return
    if study.config.search.executor == "serial":
        raise ConfigError(
            f"search.executor serial computes in this process and cannot use the cluster {address}; set it to ray."
        )
    if address in ("auto", "local"):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ConfigError(
            f"address {address}: no Ray cluster answers there ({error}); give the HOST:PORT of a running cluster, "
            "or no address to start Ray on this machine."
        ) from error


def refuse_foreign_code(solver: str, path: Path) -> None:
    """Check that the configuration in a directory does not name code to import.

    Parameters
    ----------
    solver : str
        ``solver.name`` of the configuration.
    path : Path
        The directory.

    Raises
    ------
    ConfigError
        If the name imports code, which a directory of unknown origin must not do.
    """
    if imports_code(solver):
        raise ConfigError(
            f"solver.name: {solver} imports code, and for security it is not imported if only the "
            f"configuration in the study's directory {path} names it; give the configuration again to resume."
        )


def make_executor(study: Study, address: str | None) -> Executor:
    """Return the executor that ``search.executor`` names.

    Parameters
    ----------
    study : Study
        Study to run.
    address : str or None
        HOST:PORT of a Ray cluster; None for this machine.

    Returns
    -------
    Executor
        Executor that has not been started.
    """
    study = replace(study, own=None)  # workers need the data set once
    if study.config.search.executor == "serial":
        return SerialExecutor(study)
    # Imported only after all checks, because importing Ray takes seconds.
    from raysel.distributed.executor import RayExecutor  # noqa: PLC0415

    return RayExecutor(study, address)


def make_listeners(progress: bool | Listener) -> Sequence[Listener]:
    """Return the objects that show the progress of a study.

    Parameters
    ----------
    progress : bool or Listener
        Whether to print a progress line, or an object that shows the progress.

    Returns
    -------
    sequence of Listener
        The objects; empty if nothing is shown.

    Raises
    ------
    ConfigError
        If the object lacks a method of a listener.
    """
    if not isinstance(progress, bool):
        lacking = [name for name in ("show", "message", "__enter__", "__exit__") if not hasattr(progress, name)]
        if lacking:
            raise ConfigError(f"progress={progress!r} has no {lacking[0]}; give True, False or a Listener.")
        return [progress]
    if not progress:
        return []
    from rich.console import Console  # noqa: PLC0415 - needed only to print

    from raysel.display.progress import ProgressLine  # noqa: PLC0415

    return [ProgressLine(Console(soft_wrap=True, highlight=False))]
