"""Check that the nodes of a cluster compute the same numbers as the driver."""

from __future__ import annotations

import hashlib
import importlib.util
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from raysel.core.errors import StudyError
from raysel.study.definition import Study
from raysel.study.identity import differing, machine_versions, remedies
from raysel.tracking.log import StudyLog
from raysel.tracking.records import NodeRecord

#: Seconds in which a node must start a worker process and answer; a busy machine needs half a
#: minute.
_PATIENCE = 180.0
#: Words by which the error of a worker is found in the texts that Ray makes of it.
_MARK = "computes with other versions than the study: "


class MixedVersionsError(StudyError):
    """A node of the cluster has versions with which its numbers could differ from the driver's."""


@dataclass
class NodeCheck:
    """Versions of the driver, and the nodes that were compared with it."""

    modules: Sequence[str]
    allowed: bool
    expected: Mapping[str, str] = field(init=False)
    #: Differences of each node that has some, by its address; recorded are those in `_recorded`.
    differences: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)
    _recorded: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.expected = versions_here(tuple(self.modules))

    def compare(self) -> None:
        """Compare the driver with all nodes that can run trials and were not yet compared."""
        new = {
            node["NodeID"]: node for node in computing_nodes() if node["NodeID"] not in self._known
        }
        tasks = {
            _versions.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(id_, soft=False)
            ).remote(tuple(self.modules)): node["NodeManagerAddress"]
            for id_, node in new.items()
        }
        for task, address in tasks.items():
            try:
                there = ray.get(task, timeout=_PATIENCE)
            except GetTimeoutError as error:
                raise StudyError(
                    f"the node {address} of the cluster started no worker process in"
                    f" {_PATIENCE:.0f} s. Its folder /tmp/ray/session_latest/logs says why; or"
                    " remove it from the cluster."
                ) from error
            except RayError as error:
                reason = str(error).strip().rpartition("\n")[2]
                raise StudyError(
                    f"the node {address} of the cluster cannot run raysel: {reason}. Install the"
                    " same packages there as here, or remove it from the cluster."
                ) from error
            if changes := list(differing(self.expected, there)):
                self.differences[address] = changes
        self._known |= set(new)
        if self.differences and not self.allowed:
            raise MixedVersionsError(_refusal(self.differences))

    def records(self) -> list[NodeRecord]:
        """Return the nodes of other versions, those that joined since included, if allowed.

        Where they are not allowed, their workers cannot have read the study: see `guard`.
        """
        if self.allowed:
            self.compare()
        return [NodeRecord(address, changes) for address, changes in self.differences.items()]

    def record(self, log: StudyLog) -> None:
        """Write the nodes of other versions to the journal, once each, and say it."""
        for record in self.records():
            if record.node not in self._recorded:
                self._recorded.add(record.node)
                log.record(record)
                log.message(record.sentence)

    def guard(self, study: Study) -> Any:
        """Return an object that Ray restores to a study where the versions are the driver's.

        Nodes may join at any time: a worker of theirs raises `MixedVersionsError` as soon as it
        reads the study.
        """
        if self.allowed:
            return study
        return _Guarded(study, _Gate(dict(self.expected), tuple(self.modules)))


def computing_nodes() -> list[dict[str, Any]]:
    """Return Ray's description of the nodes that are alive and have CPUs for trials."""
    return [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]


def other_versions(error: object) -> StudyError | None:
    """Return the error to raise if Ray's error is that of a worker with other versions."""
    line = next((line for line in str(error).splitlines() if _MARK in line), None)
    if line is None:
        return None
    before, found, behind = line.partition("the node ")
    text = f"{found}{behind}" or before
    return MixedVersionsError(f"{text} Remove the node, and resume the study.")


def versions_here(modules: tuple[str, ...]) -> dict[str, str]:
    """Return what can change a number here: libraries, processor features, code of modules."""
    return {**machine_versions(), **{f"code of {name}": _code_hash(name) for name in modules}}


@dataclass(frozen=True)
class _Gate:
    """Versions that a process must have; restored to None where it has them."""

    expected: dict[str, str]
    modules: tuple[str, ...]

    def __reduce__(self) -> Any:
        return _pass, (self.expected, self.modules)


@dataclass(frozen=True)
class _Guarded:
    """Study that is restored after the gate, and not where versions differ."""

    study: Study
    gate: _Gate

    def __reduce__(self) -> Any:
        return _restore, (self.gate, self.study)


def _restore(_: None, study: Study) -> Study:
    return study


def _pass(expected: dict[str, str], modules: tuple[str, ...]) -> None:
    changes = list(differing(expected, _cached_versions(modules)))
    if changes:
        address = ray.util.get_node_ip_address() if ray.is_initialized() else socket.gethostname()
        raise MixedVersionsError(
            f"the node {address} {_MARK}{_format_changes(changes)}. {_advice(changes)}"
        )


@cache
def _cached_versions(modules: tuple[str, ...]) -> Mapping[str, str]:
    return versions_here(modules)


@ray.remote(num_cpus=0, max_retries=1)
def _versions(modules: tuple[str, ...]) -> dict[str, str]:
    return versions_here(modules)


def _code_hash(name: str) -> str:
    """Hash of a module's source files; ``"missing"`` if there is no such module."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        return "missing"
    if places := list(spec.submodule_search_locations or ()):
        root = Path(places[0])
        files = sorted(root.rglob("*.py"))
    elif spec.origin:
        root = Path(spec.origin)
        files = [root]
    else:
        return "missing"
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _format_changes(changes: Iterable[Sequence[str]]) -> str:
    return ", ".join(f"{name} {there} instead of {here}" for name, here, there in changes)


def _advice(changes: Iterable[Sequence[str]]) -> str:
    """Return how to make the versions equal, or how to allow different ones."""
    mend = remedies([name for name, *_ in changes])
    return (
        f"To compute the same numbers everywhere, {mend}; or allow mixed versions"
        " (--allow-mixed-versions)."
    )


def _refusal(differences: Mapping[str, Sequence[Sequence[str]]]) -> str:
    nodes = "; ".join(
        f"the node {address} has {_format_changes(changes)}"
        for address, changes in differences.items()
    )
    unique: dict[str, Sequence[str]] = {}
    for changes in differences.values():
        unique |= {change[0]: change for change in changes}
    return (
        "the nodes of the cluster would not compute the same numbers as this process on "
        f"{socket.gethostname()}: {nodes}. {_advice(unique.values())}"
    )
