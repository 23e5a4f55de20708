"""Studies from Python: run, resume and open them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from raysel.base.registry import imports_code
from raysel.config import StudyConfig, load_config
from raysel.errors import ConfigError, DirectoryError
from raysel.execution import runner
from raysel.execution.executor import Executor
from raysel.execution.serial import SerialExecutor
from raysel.study.definition import Study
from raysel.study.result import StudyResult
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.log import Listener


def run_study(
    config: str | Path | Mapping[str, Any] | StudyConfig | Study,
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    output: str | Path | None = None,
    address: str | None = None,
    progress: bool | Listener = True,
) -> StudyResult:
    """Run a study: a nested search over solver configurations, tracked and ranked.

    Parameters
    ----------
    config : str, Path, mapping, StudyConfig or Study
        Name of a built-in study, path of a YAML file, a configuration as plain data or validated, or a study that
        `prepare_study` returned.
    overrides : mapping of str to object, or iterable of str, default=()
        Values by dotted key, e.g. ``{"cv.outer": 5}``, or texts such as ``"cv.outer=5"``.
    output : str or Path, optional
        The study's directory; the configuration's ``output``, else ``raysel-studies/<name>-<time>``, by default.
    address : str, optional
        HOST:PORT of the Ray cluster that computes; by default Ray is started on this machine.
    progress : bool or Listener, default=True
        Whether to print a progress line, or what shows the progress.

    Returns
    -------
    StudyResult

    Raises
    ------
    ConfigError, DataError
        If the configuration or the data cannot be used; before anything is computed.
    DirectoryError
        If the directory holds another study, or cannot be written.
    StudyError
        If Ray does not start, no configuration has a score, or a refit or the disk fails.

    Examples
    --------
    >>> import tempfile
    >>> small = {
    ...     "solver.space": {"alpha": [0.1]}, "cv.outer": 2, "cv.inner": 2, "search.executor": "serial",
    ...     "solver.params.max_iter": 3,
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     small["tracking.uri"] = f"sqlite:///{folder}/mlflow.db"
    ...     study = run_study("digits-smr", small, output=f"{folder}/study", progress=False)
    >>> study.summary().outer_fold.tolist()
    ['outer0', 'outer1']
    """
    study = config if isinstance(config, Study) else prepare_study(config, overrides)
    path = output_directory(study, output)
    check_resources(study, address)
    return runner.run(study, path, _executor(study, address), _listeners(progress))


def resume_study(
    path: str | Path,
    config: str | Path | Mapping[str, Any] | StudyConfig | Study | None = None,
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    address: str | None = None,
    progress: bool | Listener = True,
) -> StudyResult:
    """Resume a study that was interrupted, or extend one by more configurations.

    Parameters
    ----------
    path : str or Path
        The study's directory.
    config : str, Path, mapping, StudyConfig or Study, optional
        A configuration that differs from the directory's in what cannot change a number, or has more configurations;
        the directory's own by default.
    overrides : mapping of str to object, or iterable of str, default=()
        As for `run_study`.
    address : str, optional
        HOST:PORT of the Ray cluster that computes; by default Ray is started on this machine.
    progress : bool or Listener, default=True
        Whether to print a progress line, or what shows the progress.

    Returns
    -------
    StudyResult
        As an undisturbed run would have given it.

    Raises
    ------
    ConfigError, DataError
        If the configuration or the data cannot be used; before anything is computed.
    DirectoryError
        If the directory holds no study, is in use, or what has changed would make it another study.
    StudyError
        As `run_study`.
    """
    directory = StudyDirectory(Path(path))
    study = config if isinstance(config, Study) else prepare_study(config, overrides, resumed=directory)
    check_resources(study, address)
    return runner.resume(study, StoredStudy.read(directory), _executor(study, address), _listeners(progress))


def open_study(path: str | Path) -> StudyResult:
    """Open a study from its directory, finished or not.

    Parameters
    ----------
    path : str or Path
        The study's directory.

    Returns
    -------
    StudyResult
        Of a study that has not finished, tables of what there is; its ranking and model raise UnfinishedStudyError.

    Raises
    ------
    DirectoryError
        If the directory holds no study, or its journal is damaged.
    """
    return StudyResult.open(path)


def prepare_study(
    config: str | Path | Mapping[str, Any] | StudyConfig | None,
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    resumed: StudyDirectory | None = None,
) -> Study:
    """Load a study's data, draw its folds, list its configurations and check that all of it fits together.

    Parameters
    ----------
    config : str, Path, mapping, StudyConfig or None
        As for `run_study`; None for the configuration in the directory of a resumed study.
    overrides : mapping of str to object, or iterable of str, default=()
        As for `run_study`.
    resumed : StudyDirectory, optional
        Directory of the study that is resumed, whose folds are kept.

    Returns
    -------
    Study

    Raises
    ------
    ConfigError, DataError, DirectoryError
        Naming the invalid value and how to fix it.
    """
    if config is None:
        if resumed is None or not resumed.config.exists():
            raise DirectoryError(f"{resumed.path if resumed else 'None'} holds no study that could be resumed.")
        _refuse_foreign_code(load_config(resumed.config), load_config(resumed.config, overrides), resumed.path)
        config = resumed.config
    return Study.prepare(load_config(config, overrides), resumed.plan if resumed else None)


def output_directory(study: Study, output: str | Path | None = None) -> Path:
    """Return the directory that a study is written to.

    Parameters
    ----------
    study : Study
    output : str or Path, optional
        The configuration's ``output``, else ``raysel-studies/<name>-<time>``, by default.

    Returns
    -------
    Path
    """
    return Path(output or study.config.output or StudyDirectory.default(study.config.name))


def check_resources(study: Study, address: str | None) -> None:
    """Raise an error where the machine or the cluster cannot run the study's trials.

    Parameters
    ----------
    study : Study
    address : str or None
        HOST:PORT of a Ray cluster; None for this machine.

    Raises
    ------
    ConfigError
        If a trial needs more CPUs than this machine has, or nothing answers at the address.
    """
    if address is None:
        wanted, there = study.config.search.cpus_per_trial, len(os.sched_getaffinity(0))
        if wanted > there:
            raise ConfigError(f"search.cpus_per_trial: {wanted} exceeds the {there} CPUs of this machine.")
        return
    if study.config.search.executor == "serial":
        raise ConfigError(f"search.executor serial computes in this process and takes no cluster ({address}): use ray.")
    if address in ("auto", "local"):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ConfigError(
            f"address {address}: no Ray cluster answers there ({error}); give the HOST:PORT of a cluster that is up, "
            "or no address to start Ray on this machine."
        ) from error


def _refuse_foreign_code(stored: StudyConfig, wanted: StudyConfig, path: Path) -> None:
    """Refuse to import code that only the configuration in a study's directory names."""
    if wanted.solver.name == stored.solver.name and imports_code(wanted.solver.name):
        raise ConfigError(
            f"solver.name: {wanted.solver.name} imports code, which is never done for a name that only the study's "
            f"directory {path} gives; name the configuration file again when you resume."
        )


def _executor(study: Study, address: str | None) -> Executor:
    if study.config.search.executor == "serial":
        return SerialExecutor(study)
    # Ray is imported once everything is checked: it takes seconds.
    from raysel.distributed.executor import RayExecutor  # noqa: PLC0415

    return RayExecutor(study, address)


def _listeners(progress: bool | Listener) -> Sequence[Listener]:
    if not isinstance(progress, bool):
        return [progress]
    if not progress:
        return []
    from rich.console import Console  # noqa: PLC0415 - only for who sees it

    from raysel.report.progress import ProgressLine  # noqa: PLC0415

    return [ProgressLine(Console(soft_wrap=True, highlight=False))]
