"""Trials whose worker process ended: which of them run again, because their node was lost or to try once more."""

from __future__ import annotations

import re
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping
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

from raysel.execution.ray.nodes import Cluster, MemoryShortError

#: Number of times that a trial runs again after its worker process ended on a node that goes on.
MAX_RETRIES = 2


class LostTrials:
    """Trials that ended without a record, and the decision whether each runs again.

    The loss of a node is not caused by a configuration, so each trial that ran there gets one more run. A worker
    process that ends by itself, e.g. because native code crashed or the memory was used up, may be the configuration's
    fault: the trial runs again `MAX_RETRIES` times.
    """

    def __init__(self) -> None:
        self._ends: dict[str, Counter[str]] = {}
        self._waiting: deque[Mapping[str, Any]] = deque()

    def runs_again(self, config: Mapping[str, Any], node: str, lost_nodes: Collection[str]) -> bool:
        """Count that a trial's worker ended; the trial is kept for `next` if it runs again."""
        self._ends.setdefault(config["name"], Counter())[node] += 1
        if self.n_own_ends(config, lost_nodes) > MAX_RETRIES:
            return False
        self.again(config)
        return True

    def again(self, config: Mapping[str, Any]) -> None:
        """Keep a trial for `next` without counting that its worker ended."""
        self._waiting.append(config)

    def n_own_ends(self, config: Mapping[str, Any], lost_nodes: Collection[str]) -> int:
        """Return how often a trial's worker has ended, less one for each lost node that it ran on."""
        return sum(n - (node in lost_nodes) for node, n in self._ends.get(config["name"], Counter()).items())

    def next(self) -> dict[str, Any] | None:
        """Return the next trial to run again; None if there is none."""
        return dict(self._waiting.popleft()) if self._waiting else None

    @property
    def waiting(self) -> bool:
        """Whether a trial waits to run again."""
        return bool(self._waiting)


def node_in(error: object) -> str:
    r"""Return the id of the lost node that the error of an actor names; empty if it names none."""
    found = re.search(r"its node has died\. Node Id: ([0-9a-f]+)", str(error))
    return found[1] if found else ""


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
