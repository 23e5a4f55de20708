"""Tasks on the nodes of a cluster, and what runs again if its worker process ended."""

from __future__ import annotations

import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ray
from ray.exceptions import (
    LocalRayletDiedError,
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayError,
    TaskUnschedulableError,
    WorkerCrashedError,
)

from raysel.core.errors import StorageError, storage_error
from raysel.execution.ray.nodes import Cluster, MemoryShortError
from raysel.execution.ray.session import token_refusal
from raysel.execution.ray.versions import other_versions

#: Number of times that a trial runs again after its worker process ended on a node that goes on.
MAX_RETRIES = 2
#: Words of Ray's errors before the id of the node that is lost, or where memory ran short.
_NODE = re.compile(r"(?:its node has died\. Node Id|Memory on the node \(IP: \S+, ID): ([0-9a-f]+)")
#: Errors of a task whose worker or node ended, rather than of what it computed.
_ENDS = (
    LocalRayletDiedError,
    MemoryShortError,
    NodeDiedError,
    ObjectLostError,
    TaskUnschedulableError,
    WorkerCrashedError,
)


class Losses:
    """Decision whether a trial or task whose worker process ended runs again.

    The loss of a node is not caused by a configuration, so each trial that ran there gets one more
    run. A worker process that ends by itself, e.g. because native code crashed or the memory was
    used up, may be the configuration's fault: the trial runs again `MAX_RETRIES` times, or as often
    as the number at once on its node can be lowered.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._ends: dict[str, Counter[str]] = {}
        self._named: set[str] = set()

    def runs_again(self, name: str, node: str, error: object) -> bool:
        """Count that a worker ended on a node, and return whether its work runs again."""
        self._cluster.refresh(now=True)
        if lost := node_in(error):
            node = lost
            self._named.add(lost)
        again = isinstance(error, MemoryShortError) and self._cluster.run_fewer(name, node)
        if not again:
            self._ends.setdefault(name, Counter())[node] += 1
            again = self.n_own_ends(name) <= MAX_RETRIES
        if not self._is_lost(node):
            self._cluster.ended(name)
        return again

    def n_own_ends(self, name: str) -> int:
        """Return how often a trial's or task's worker ended otherwise than by a lost node."""
        return sum(n - self._is_lost(node) for node, n in self._ends.get(name, Counter()).items())

    def _is_lost(self, node: str) -> bool:
        return node in self._cluster.lost or node in self._named


def node_in(error: object) -> str:
    """Return the id of the node that Ray's error names as lost or short of memory; else empty."""
    named = _NODE.search(str(error))
    return named[1] if named else ""


def find_storage_error(error: object) -> StorageError | None:
    """Return the error of data, disk or store for which a worker gave up; else None."""
    raised = getattr(error, "cause", None) or error
    if not isinstance(raised, Exception):
        return None
    return storage_error(raised)


def task_options(needs: Mapping[str, float]) -> dict[str, Any]:
    """Return the options of a Ray task with these needs."""
    named = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
    options: dict[str, Any] = {
        named[name]: number for name, number in needs.items() if name in named
    }
    if others := {name: number for name, number in needs.items() if name not in named}:
        options["resources"] = others
    return options


class NodeTasks:
    """Tasks on the nodes of a cluster: as many run as fit, and few wait there."""

    def __init__(self, cluster: Cluster, what: str, submitted: list[Any]) -> None:
        self._cluster, self._what, self._submitted = cluster, what, submitted
        self._losses = Losses(cluster)
        self._running: dict[Any, tuple[int, str]] = {}

    def run(
        self, submit: Callable[[int, str], Any], n: int
    ) -> Iterator[tuple[int, Any, RayError | None]]:
        """Run tasks and yield them as they end; raise the error of a worker of other versions."""
        waiting = deque(range(n))
        while waiting or self._running:
            self._cluster.refresh()
            self._cluster.want(len(waiting) + len(self._running))
            for task in [
                task for task, (_, node) in self._running.items() if node in self._cluster.lost
            ]:
                waiting.appendleft(self._forget(task)[0])
            while waiting and (node := self._free_node()):
                task = submit(waiting[0], node)
                self._running[task] = waiting.popleft(), node
                self._submitted.append(task)
                self._cluster.started(_name(self._running[task][0]), node, self._what)
            if not self._running:
                time.sleep(0.5)  # no node is left: wait for one
                continue
            for task in ray.wait(list(self._running), timeout=1.0, fetch_local=False)[0]:
                value, error = _get(task)
                name, node = _name(self._running[task][0]), self._running[task][1]
                if isinstance(error, _ENDS) and (refused := token_refusal()):
                    raise refused from error
                again = isinstance(error, _ENDS) and self._losses.runs_again(name, node, error)
                number, _ = self._forget(task)
                if again:
                    waiting.appendleft(number)
                elif refused := other_versions(error) or find_storage_error(error):
                    raise refused from error
                else:
                    yield number, value, error

    def _forget(self, task: Any) -> tuple[int, str]:
        """Remove a task that has ended, or whose node is lost, and return its number and node."""
        number, node = self._running.pop(task)
        self._submitted.remove(task)
        self._cluster.ended(_name(number))
        return number, node

    def _free_node(self) -> str | None:
        """Return the node with the smallest share of its places taken; None if all are taken."""
        if self._cluster.most is not None and len(self._running) >= self._cluster.most:
            return None
        taken = [node for _, node in self._running.values()]
        shares = {}
        for node in self._cluster.nodes:
            n, places = taken.count(node.id), self._cluster.places(node)
            limit = places
            if self._cluster.most is None and not self._cluster.limited(node):
                limit = 2 * places  # one waits for each place
            if n < limit:
                shares[node.id] = n / places
        return min(shares, key=lambda id_: shares[id_], default=None)


def _get(task: Any) -> tuple[Any, RayError | None]:
    """Return what a task returned and None, or None and its error."""
    try:
        return ray.get(task), None
    except OutOfMemoryError:
        return None, MemoryShortError()
    except RayError as error:
        return None, error


def _name(number: int) -> str:
    return f"task {number}"
