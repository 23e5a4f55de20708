"""Tasks of Ray that are sent to nodes chosen here, so that those of a lost node run again at once.

Ray sends a task to a node of its own choice, and where the machine of a task vanishes without closing its connections
(power, network) it notices after seven minutes only; that a node is gone it knows within one. Ray's setting for the
former cannot be lowered: its servers refuse clients that ask more often than every five minutes.
"""

from __future__ import annotations

import time
from collections import deque
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

from raysel.distributed.lost_trials import LostTrials
from raysel.distributed.nodes.cluster import Cluster
from raysel.distributed.nodes.memory import MemoryShortError

#: Errors of a task whose worker or node ended, rather than of what it computed.
_ENDS = (
    LocalRayletDiedError,
    MemoryShortError,
    NodeDiedError,
    ObjectLostError,
    TaskUnschedulableError,
    WorkerCrashedError,
)


def task_options(needs: Mapping[str, float]) -> dict[str, Any]:
    """Return the options of a Ray task with these needs."""
    named = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
    options: dict[str, Any] = {named[name]: number for name, number in needs.items() if name in named}
    own = {name: number for name, number in needs.items() if name not in named}
    return {**options, **({"resources": own} if own else {})}


class NodeTasks:
    """Tasks on the nodes of a cluster, of which as many run as fit; further ones wait at the nodes."""

    def __init__(
        self, cluster: Cluster, needs: Mapping[str, float], most: int | None, what: str, submitted: list[Any]
    ) -> None:
        self._cluster, self._needs, self._most, self._what = cluster, needs, most, what
        self._submitted = submitted
        self._lost = LostTrials()
        self._running: dict[Any, tuple[int, str]] = {}

    def run(self, submit: Callable[[int, str], Any], n: int) -> Iterator[tuple[int, Any, RayError | None]]:
        """Run tasks and yield them as they end."""
        waiting = deque(range(n))
        while waiting or self._running:
            self._cluster.refresh()
            self._cluster.want(len(waiting) + len(self._running))
            for task in [task for task, (_, node) in self._running.items() if node in self._cluster.lost]:
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
                again = isinstance(error, _ENDS) and self._runs_again(task, error)
                number, _ = self._forget(task)
                if again:
                    waiting.appendleft(number)
                else:
                    yield number, value, error

    def _runs_again(self, task: Any, error: RayError) -> bool:
        number, node = self._running[task]
        self._cluster.refresh(now=True)
        if isinstance(error, MemoryShortError) and self._cluster.run_fewer(_name(number), node):
            return True
        return self._lost.runs_again({"name": _name(number)}, node, self._cluster.lost)

    def _forget(self, task: Any) -> tuple[int, str]:
        """Remove a task that has ended, or whose node is lost, and return its number and node."""
        number, node = self._running.pop(task)
        self._submitted.remove(task)
        self._cluster.ended(_name(number))
        return number, node

    def _free_node(self) -> str | None:
        """Return the node with the smallest share of its places taken; None if all are taken."""
        if self._most is not None and len(self._running) >= self._most:
            return None
        taken = [node for _, node in self._running.values()]
        shares = {}
        for node in self._cluster.nodes:
            n, places = taken.count(node.id), self._cluster.places(node)
            ahead = 2 if self._most is None and not self._cluster.limited(node) else 1
            if n < ahead * places:
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
