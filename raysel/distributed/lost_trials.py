"""Trials whose worker process ended: which of them run again, because their node was lost or to try once more."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Collection, Mapping
from typing import Any

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
