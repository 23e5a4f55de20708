"""Requests for nodes beyond those there are, which an autoscaler may start."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ray.util import placement_group, placement_group_table, remove_placement_group
from ray.util.placement_group import PlacementGroup

#: Seconds between two looks at the requests.
_PERIOD = 1.0
#: Largest number of requests at once; there are more after nodes have come.
_MOST = 100


class Demand:
    """Places for trials that are requested and not there.

    Ray's autoscaler starts nodes for requests that wait, and raysel starts no trial that has to wait. Each request is a
    placement group, which Ray withdraws when this process ends. One that is met is withdrawn with all others, so that
    trials take the places that came.
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
        return any(table.get(group.id.hex(), {}).get("state") == "CREATED" for group in self._groups)
