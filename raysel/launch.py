"""Directory, executor, listeners and checks of the machine with which a study starts."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from raysel.base.registry import imports_code
from raysel.config import StudyConfig
from raysel.config.overrides import OWN_DATA
from raysel.errors import ConfigError
from raysel.execution.executor import Executor
from raysel.execution.serial import SerialExecutor
from raysel.files import result_path
from raysel.storage.location import as_uri
from raysel.storage.working_copy import running_at
from raysel.study.definition import Study
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.log import Listener
from raysel.tracking.uri import absolute_uri
from raysel.tracking.validity.places import check_place, data_on_servers

#: Files that the folder of a new study or comparison at a URI must lack.
_FIRST_FILES = ("config.yaml", "plan.json", "journal.jsonl", "members.json", "model.skops", OWN_DATA)

#: Ray's names of the resources that ``search.resources`` may name in small letters.
_RAY_NAMES = {"cpu": "CPU", "gpu": "GPU"}


def output_directory(study: Study, output: str | Path | None = None) -> str | Path:
    """Return the directory that a study is written to.

    Parameters
    ----------
    study : Study
        Study to write.
    output : str or Path, optional
        Directory or URI to use; by default the configuration's ``output``, else ``raysel-studies/<name>-<time>``.

    Returns
    -------
    str or Path
        Directory of the study, or its URI.
    """
    return results_place(output or study.config.output or StudyDirectory.default(study.config.name))


def results_place(place: str | Path) -> str | Path:
    """Return a URI as it is, and a path as `raysel.files.result_path` does.

    Parameters
    ----------
    place : str or Path
        Directory or URI to write results to.

    Returns
    -------
    str or Path
        The place, which outlives the process.
    """
    return place if as_uri(place) else result_path(place)


def working_folder(place: str | Path, listeners: Sequence[Listener] = (), *, new: bool) -> AbstractContextManager[Path]:
    """Return a context that provides the folder that a study runs in, and copies it to a URI meanwhile.

    Parameters
    ----------
    place : str or Path
        Directory or URI of the study; see `raysel.storage.working_copy.running_at`.
    listeners : sequence of Listener, default=()
        Objects that show messages on the store.
    new : bool
        Whether the study is new, so that the URI must hold none; else its files are fetched.

    Returns
    -------
    context manager
        Provides the path of the folder.
    """

    def say(text: str) -> None:
        for listener in listeners:
            listener.message(text)

    return running_at(place, refused=_FIRST_FILES if new else None, say=say)


THIS_MACHINE = "this machine"


@dataclass(frozen=True)
class Slots:
    """Places of a cluster, or of this machine, in which the trials of a study run.

    Parameters
    ----------
    n : int
        Number of trials that run at once.
    where : str
        The machines, e.g. ``"this machine"``.
    """

    n: int
    where: str


#: Resources of each node of a cluster by Ray's names; None for this machine alone.
Nodes: TypeAlias = Sequence[Mapping[str, float]] | None


def slots(study: Study, nodes: Nodes = None) -> Slots:
    """Return the places in which the trials of a study would run now.

    Parameters
    ----------
    study : Study
        Study to run.
    nodes : sequence of mapping of str to float, optional
        Resources of the nodes of the cluster, as `joined` yields them; by default the study runs on this machine.

    Returns
    -------
    Slots
        Places on the nodes; a trial runs within one of them.
    """
    search = study.config.search
    if search.executor == "serial":
        return Slots(1, THIS_MACHINE)
    if nodes is None:
        n, where = len(os.sched_getaffinity(0)) // search.cpus_per_trial, THIS_MACHINE
    else:
        n, number = sum(n_places(node, study) for node in nodes), len(nodes)
        where = f"the cluster, which has {number} {'node' if number == 1 else 'nodes'} now"
    return Slots(max(1, min(n, search.max_concurrent or n)), where)


def n_places(node: Mapping[str, float], study: Study) -> int:
    """Return the number of trials that a node can run at once.

    Parameters
    ----------
    node : mapping of str to float
        Amounts of the node's resources by Ray's names.
    study : Study
        Study to run.

    Returns
    -------
    int
        Number by the CPUs, and by ``search.resources`` if the study needs others.
    """
    search = study.config.search
    others = {
        _RAY_NAMES.get(str(name), str(name)): n for name, n in dict(getattr(search, "resources", None) or {}).items()
    }
    wanted = {"CPU": search.cpus_per_trial, **{name: n for name, n in others.items() if isinstance(n, int | float)}}
    return min(int(node.get(name, 0.0) // n) for name, n in wanted.items() if n > 0)


def cluster_address(study: Study, address: str | None) -> str | None:
    """Return the address of the cluster that a study runs on.

    Parameters
    ----------
    study : Study
        Study to run.
    address : str or None
        HOST:PORT of a Ray cluster, ``"auto"``, or ``"local"`` for this machine.

    Returns
    -------
    str or None
        The address; without one, that of the cluster whose job this process is, as ``ray job submit`` starts it, if the
        study runs on Ray. None for this machine.
    """
    if address == "local":
        return None
    if address is None and "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ and study.config.search.executor == "ray":
        return os.environ.get("RAY_ADDRESS")
    return address


@contextmanager
def joined(studies: Sequence[Study], address: str | None, *, allow_mixed_versions: bool = False) -> Iterator[Nodes]:
    """Join the cluster that some studies run on, if it is one, so that their plan can tell its slots.

    Parameters
    ----------
    studies : sequence of Study
        Studies to run.
    address : str or None
        As for `cluster_address`.
    allow_mixed_versions : bool, default=False
        Whether nodes may compute whose versions can change numbers.

    Yields
    ------
    sequence of mapping of str to float, or None
        Resources of the cluster's nodes by Ray's names; None for this machine alone.

    Raises
    ------
    ConfigError, StudyError
        If the cluster cannot be joined, or has nodes with other versions.
    """
    places = {cluster_address(study, address) for study in studies if study.config.search.executor == "ray"} - {None}
    if not places:
        yield None
        return
    for study in studies:
        check_resources(study, address)
    from raysel.distributed.session import cluster_nodes, ray_session  # noqa: PLC0415 - takes seconds

    with ray_session(places.pop(), studies, allow_mixed_versions=allow_mixed_versions):
        yield cluster_nodes()


def check_resources(study: Study, address: str | None) -> None:
    """Check that the machine or the cluster can run the study's trials.

    Parameters
    ----------
    study : Study
        Study to run.
    address : str or None
        HOST:PORT of a Ray cluster, ``"auto"``, or ``"local"``; None for this machine, or the cluster of a Ray job.

    Raises
    ------
    ConfigError
        If a trial needs more CPUs than this machine has, or the cluster cannot be reached.
    """
    place = cluster_address(study, address)
    if place is None:
        wanted, there = study.config.search.cpus_per_trial, len(os.sched_getaffinity(0))
        if wanted > there:
            raise ConfigError(
                f"search.cpus_per_trial: {wanted} exceeds the {there} CPUs of this machine; set at most {there}."
            )
        return
    if study.config.search.executor == "serial":
        raise ConfigError(
            f"search.executor serial computes in this process and cannot use the cluster {place}; set it to ray."
        )
    if place == "auto":
        return
    if "://" in place:
        host = place.partition("://")[2].rpartition(":")[0] or "HOST"
        raise ConfigError(
            f"address {place}: a study does not run through Ray Client, which keeps its data in another process; send "
            f"it to the cluster with ray job submit --address http://{host}:8265, or give HOST:PORT on a node of it."
        )
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ConfigError(
            f"address {place}: no Ray cluster answers there ({error}); give the HOST:PORT of a running cluster, "
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


def check_stored_places(
    config: StudyConfig, overrides: Mapping[str, Any] | Iterable[str], directory: Path, *, tracked: bool = True
) -> None:
    """Check that this user has used the servers and the MLflow store before that only a study's directory names.

    Parameters
    ----------
    config : StudyConfig
        Configuration in the directory.
    overrides : mapping of str to object, or iterable of str
        Values that the user gives; what they name is not checked.
    directory : Path
        The directory.
    tracked : bool, default=True
        Whether anything will be sent to the MLflow store.

    Raises
    ------
    ConfigError
        If a place must be given again; names it.
    """
    if config.tracking.uri and tracked and not names_one_of(overrides, "tracking", "tracking.uri"):
        check_place("tracking.uri", absolute_uri(config.tracking.uri), directory)
    for key, uri in data_on_servers(config).items():
        if not names_one_of(overrides, "dataset", key, "dataset.tasks"):
            check_place(key, uri, directory)


def names_one_of(overrides: Mapping[str, Any] | Iterable[str], *keys: str) -> bool:
    """Return whether an override sets one of these keys."""
    given = [overrides] if isinstance(overrides, str) else overrides or ()
    return any(str(key).partition("=")[0].strip() in keys for key in given)


def make_executor(study: Study, address: str | None, *, allow_mixed_versions: bool = False) -> Executor:
    """Return the executor that ``search.executor`` names.

    Parameters
    ----------
    study : Study
        Study to run.
    address : str or None
        As for `cluster_address`.
    allow_mixed_versions : bool, default=False
        Whether nodes of a cluster may compute whose versions can change numbers.

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

    place = cluster_address(study, address)
    return RayExecutor(study, place, allow_mixed_versions=allow_mixed_versions)


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
    from raysel.display.progress import ProgressLine  # noqa: PLC0415 - needed only to print
    from raysel.printing.terminal import Terminal  # noqa: PLC0415

    return [ProgressLine(Terminal())]
