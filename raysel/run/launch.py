"""Machines on which the trials of a study run: this one, or the nodes of a Ray cluster."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from raysel.config import ComparisonConfig, StudyConfig
from raysel.config.plain_data import OWN_DATA
from raysel.config.values import n_trials_at_once
from raysel.core.errors import ConfigError
from raysel.core.files import result_path
from raysel.core.storage.location import as_uri
from raysel.core.storage.working_copy import running_at
from raysel.execution.executor import Executor
from raysel.execution.serial import SerialExecutor
from raysel.results.progress import counted
from raysel.run.options import DEFAULTS, RunOptions
from raysel.study.cost import estimate_cost, executor_sentence, with_executor
from raysel.study.definition import Study
from raysel.tracking.directory import StudyDirectory

THIS_MACHINE = "this machine"
#: Files that the folder of a new study or comparison at a URI must lack.
_FIRST_FILES = (
    "config.yaml",
    "plan.json",
    "journal.jsonl",
    "members.json",
    "model.skops",
    OWN_DATA,
)


#: Resources of each node of a cluster by Ray's names; None for this machine alone.
Nodes: TypeAlias = Sequence[Mapping[str, float]] | None


@dataclass(frozen=True)
class Slots:
    """Places of a cluster, or of this machine, in which the trials of a study run."""

    n: int
    where: str


def slots(study: Study, nodes: Nodes = None) -> Slots:
    """Return the places in which the trials of a study would run now."""
    search = study.config.search
    if study.executor == "serial":
        return Slots(1, THIS_MACHINE)
    if nodes is None:
        n, where = len(os.sched_getaffinity(0)) // search.cpus_per_trial, THIS_MACHINE
    else:
        n = sum(n_trials_at_once(node, search.needs) for node in nodes)
        where = f"the cluster, which has {counted(len(nodes), 'node')} now"
    return Slots(max(1, min(n, search.max_concurrent or n)), where)


def cluster_address(study: Study, address: str | None) -> str | None:
    """Return the address of the cluster that a study runs on."""
    if address == "local":
        return None
    if address is None and "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ and study.executor == "ray":
        return os.environ.get("RAY_ADDRESS")
    return address


@contextmanager
def joined(studies: Sequence[Study], options: RunOptions) -> Iterator[Nodes]:
    """Join the cluster that some studies run on, if any, and provide its nodes for the plan."""
    on_ray = [study for study in studies if study.executor == "ray"]
    place = next(filter(None, (cluster_address(study, options.address) for study in on_ray)), None)
    if place is None:
        yield None
        return
    for study in studies:
        check_resources(study, options.address)
    from raysel.execution.ray.session import cluster_nodes, ray_session  # noqa: PLC0415 - takes seconds

    mixed = options.allow_mixed_versions
    with ray_session(place, studies, allow_mixed_versions=mixed):
        yield cluster_nodes()


def check_resources(study: Study, address: str | None) -> None:
    """Check that the machine or the cluster can run the study's trials."""
    place = cluster_address(study, address)
    if place is None:
        wanted, there = study.config.search.cpus_per_trial, len(os.sched_getaffinity(0))
        if wanted > there:
            raise ConfigError(
                f"search.cpus_per_trial: {wanted} exceeds the {there} CPUs of this machine; set at"
                f" most {there}."
            )
        return
    if study.executor == "serial":
        raise ConfigError(
            f"search.executor serial computes in this process and cannot use the cluster {place};"
            " set it to ray."
        )
    if place == "auto":
        return
    if "://" in place:
        host = place.partition("://")[2].rpartition(":")[0] or "HOST"
        raise ConfigError(
            f"address {place}: a study does not run through Ray Client. Send it to the cluster with"
            f" ray job submit --address http://{host}:8265, or give HOST:PORT on a node of it."
        )
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ConfigError(
            f"address {place}: no Ray cluster answers there ({error}); give the HOST:PORT of a"
            " running cluster, or no address to start Ray on this machine."
        ) from error


def output_directory(
    config: StudyConfig | ComparisonConfig, output: str | Path | None = None
) -> str | Path:
    """Return the directory, or the URI, that a study or a comparison is written to."""
    place = output or config.output or StudyDirectory.default(config.name)
    if as_uri(place):
        return place
    return result_path(place)


def working_folder(
    place: str | Path, options: RunOptions = DEFAULTS, *, new: bool
) -> AbstractContextManager[Path]:
    """Return a context with the folder that a study runs in, which is copied to a URI meanwhile."""
    return running_at(place, refused=_FIRST_FILES if new else None, say=options.tell)


def with_known_executor(
    study: Study, options: RunOptions, count_done: Callable[[], int] = int
) -> Study:
    """Return a study with what ``search.executor`` auto stands for, which listeners are told."""
    is_known = study.config.search.executor != "auto" or study.auto
    if is_known or cluster_address(study, options.address):
        return study
    cost = estimate_cost(study, count_done())
    study = with_executor(study, cost)
    options.tell(executor_sentence(study, cost))
    return study


def make_executor(study: Study, options: RunOptions = DEFAULTS) -> Executor:
    """Return the executor that computes a study."""
    study = replace(study, own=None)  # workers need the data set once
    if study.executor == "serial":
        return SerialExecutor(study)
    # Imported only after all checks, because importing Ray takes seconds.
    from raysel.execution.ray.executor import RayExecutor  # noqa: PLC0415

    place = cluster_address(study, options.address)
    return RayExecutor(study, place, allow_mixed_versions=options.allow_mixed_versions)
