"""View of a cluster's nodes: places for trials, nodes that come and go, requests for more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import RayActorError
from ray.util import placement_group, placement_group_table, remove_placement_group
from ray.util.placement_group import PlacementGroup

from raysel.config.values import n_trials_at_once
from raysel.core.errors import ConfigError
from raysel.core.printing import by_number

#: Seconds between two looks at the requests.
_PERIOD = 1.0
#: Largest number of requests at once; there are more after nodes have come.
_MOST = 100
#: Resources that Ray adds to each node by itself, which are not shown in messages.
_INTERNAL = ("node:", "object_store_memory", "accelerator_type:")


class Demand:
    """Places for trials that are requested and not there.

    Ray's autoscaler starts nodes for requests that wait, and raysel starts no trial that has to
    wait. Each request is a placement group, which Ray withdraws when this process ends. One that is
    met is withdrawn with all others, so that trials take the places that came.
    """

    def __init__(self, needs: Mapping[str, float]) -> None:
        self._needs = dict(needs)
        self._groups: list[PlacementGroup] = []
        self._seen = 0.0

    def ask(self, n: int, *, all_taken: bool) -> None:
        """Request places, at most once a second."""
        if n <= 0:
            self.withdraw()
        if n <= 0 or time.monotonic() < self._seen + _PERIOD:
            return
        self._seen = time.monotonic()
        if self._any_met():
            self.withdraw()
        elif all_taken:
            while len(self._groups) > n:
                remove_placement_group(self._groups.pop())
            while len(self._groups) < min(n, _MOST):
                self._groups.append(placement_group([self._needs]))

    def withdraw(self) -> None:
        """Withdraw all requests."""
        while self._groups:
            remove_placement_group(self._groups.pop())

    def _any_met(self) -> bool:
        if not self._groups:
            return False
        table = placement_group_table()
        return any(
            table.get(group.id.hex(), {}).get("state") == "CREATED" for group in self._groups
        )


class MemoryShortError(RayActorError):
    """Ray ended a worker process because memory ran short on its node.

    It stands for Ray's `OutOfMemoryError`, whose text is a page on Ray's settings.
    """

    def __init__(self) -> None:
        super().__init__(
            error_msg=(
                "Ray ended the worker process because memory ran short on its node: set a smaller"
                " search.max_concurrent, or search.resources to what each needs"
            )
        )


@dataclass(frozen=True)
class Node:
    """Node of the cluster."""

    id: str
    address: str
    #: Resources of the node in Ray's names and units, e.g. ``CPU``, ``GPU``, ``memory`` in bytes.
    resources: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        shown = {
            name: number
            for name, number in self.resources.items()
            if not name.startswith(_INTERNAL)
        }
        amounts = [f"{name} {_amount(name, shown[name])}" for name in sorted(shown)]
        return f"{self.address}: {', '.join(amounts) or 'nothing'}"


def _amount(name: str, number: float) -> str:
    if name == "memory":
        return f"{number / 2**30:.1f} GiB"
    return f"{number:g}"


class Cluster:
    """View of the cluster's nodes that is at most a second old whenever it is used."""

    def __init__(
        self,
        needs: Mapping[str, float],
        most: int | None,
        say: Callable[[str], None],
        demand: Demand | None = None,
        alive: Callable[[], Iterable[Node]] | None = None,
    ) -> None:
        self._needs, self._say, self._demand = needs, say, demand
        self.most = most
        self._alive = alive or _alive_nodes
        self._nodes = {node.id: node for node in self._alive()}
        self._seen = time.monotonic()
        self.lost: dict[str, Node] = {}
        #: What has started on each node and not ended, by the node's id: name, and whether it is a
        #: trial or a refit.
        self._running: dict[str, dict[str, str]] = {}
        #: Largest number at once on nodes where memory ran short, by the node's id.
        self._limits: dict[str, int] = {}

    @property
    def nodes(self) -> list[Node]:
        """Nodes that are alive."""
        self.refresh()
        return list(self._nodes.values())

    @property
    def slots(self) -> int:
        """Number of trials that can run at once now; 0 if no node is left for them."""
        return self._allowed(sum(map(self.places, self.nodes)))

    def _allowed(self, n: int) -> int:
        """Return as many of n trials as may run at once."""
        if self.most is None:
            return n
        return min(n, self.most)

    def places(self, node: Node) -> int:
        """Return how many trials or tasks a node can run at once."""
        fit = n_trials_at_once(node.resources, self._needs)
        return min(fit, self._limits.get(node.id, fit))

    def run_fewer(self, name: str, id_: str) -> bool:
        """Lower the number at once on a node where memory ran short, unless only one ran."""
        node = self._nodes.get(id_)
        running = self._running.get(id_, {})
        if node is None or name not in running:
            return False
        n = min(len(running), self.places(node)) - 1
        if n < 1:
            return False
        self._limits[id_] = n
        self._say(
            f"memory ran short on node {node.address} and Ray ended a {running[name]}, which runs"
            f" again: at most {n} at once there from now on"
        )
        return True

    def limited(self, node: Node) -> bool:
        """Whether memory ran short on a node, so that nothing may wait there."""
        return node.id in self._limits

    def want(self, n: int) -> None:
        """Request places for trials or tasks that are more than there are places."""
        if self._demand:
            # Without the limits where memory ran short: a request would be met by a place that is
            # left free there.
            fit = sum(n_trials_at_once(node.resources, self._needs) for node in self.nodes)
            taken = sum(map(len, self._running.values()))
            self._demand.ask(self._allowed(n) - fit, all_taken=taken >= fit)

    def check(self) -> None:
        """Check that a node of the cluster can run a trial."""
        if any(n_trials_at_once(node.resources, self._needs) for node in self._nodes.values()):
            return
        needed = ", ".join(f"{name} {_amount(name, need)}" for name, need in self._needs.items())
        there = "; ".join(map(str, self._nodes.values())) or "no node"
        raise ConfigError(
            f"search.cpus_per_trial and search.resources: a trial needs {needed}, which no node of"
            f" the cluster has ({there}). Ask for less, or add a node that has it (by min_workers,"
            " where an autoscaler starts them)."
        )

    def started(self, name: str, node: str, what: str = "trial") -> None:
        """Note that a trial, or a task of another kind, has started on a node, given by its id."""
        self.ended(name)
        self._running.setdefault(node, {})[name] = what

    def ended(self, name: str) -> None:
        """Note that a trial or task has ended on its node, other than by the loss of the node."""
        for node, names in self._running.items():
            if node in self._nodes:  # those of a lost node are kept for the message
                names.pop(name, None)

    def refresh(self, now: bool = False) -> None:
        """Look at the nodes again, at most once a second by default, and tell changes."""
        if not now and time.monotonic() < self._seen + _PERIOD:
            return
        before, self._nodes = self._nodes, {node.id: node for node in self._alive()}
        self._seen = time.monotonic()
        gone = [node for id_, node in before.items() if id_ not in self._nodes]
        self.lost |= {node.id: node for node in gone}
        slots = sum(map(self.places, self._nodes.values()))
        now_there = by_number(slots, "1 slot now", f"{slots} slots now")
        for node in gone:
            again = _run_again(list(self._running.pop(node.id, {}).values()))
            self._say(f"node {node.address} left the cluster{again}: {now_there}")
        for id_, node in self._nodes.items():
            if id_ not in before:
                self._say(f"node {node.address} joined: {now_there}")


def _run_again(kinds: Sequence[str]) -> str:
    """Say that trials or tasks of a lost node run again; empty if none ran there."""
    if not kinds:
        return ""
    run = by_number(len(kinds), f"{kinds[0]} runs", f"{kinds[0]}s run")
    return f"; its {len(kinds)} running {run} again"


def _alive_nodes() -> list[Node]:
    nodes: list[dict[str, Any]] = ray.nodes()
    return [
        Node(node["NodeID"], node["NodeManagerAddress"], node["Resources"])
        for node in nodes
        if node["Alive"]
    ]
