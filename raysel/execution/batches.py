"""Batches of a search: parts of trials that a worker runs in turn, and trials joined from them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from raysel.execution.trial_plan import TrialPlan

#: A worker begins no further part of a batch after this many seconds.
BATCH_SECONDS = 1.0
#: Largest number of parts in a batch.
_MOST = 256
#: Number of parts from which the time of the next is estimated.
_RECENT = 30


@dataclass(frozen=True)
class Batch:
    """Configs of the parts that a worker runs one after the other."""

    parts: Sequence[dict[str, Any]]

    def __deepcopy__(self, _: Any) -> Batch:
        # Tune copies the config of its trials several times, and writes it into their names.
        return self

    def __str__(self) -> str:
        return f"{len(self.parts)} parts"


class Batches:
    """Division of a plan's trials into batches.

    A batch costs some hundredths of a second, whatever it holds, so that short parts go several to
    a batch: as many as take `BATCH_SECONDS` by the last ones that ended. What has not begun by then
    comes back and is in a later batch.
    """

    def __init__(self, plan: TrialPlan) -> None:
        self._plan = plan
        self._n_to_propose = plan.n_left
        self._waiting: deque[dict[str, Any]] = deque()
        self._alone: deque[dict[str, Any]] = deque()
        #: Seconds of the parts that ended last.
        self._took: deque[float] = deque(maxlen=_RECENT)
        self._ended_parts: dict[str, list[Any]] = {}
        self._lost: set[str] = set()

    @property
    def exhausted(self) -> bool:
        """Whether all trials were proposed, and all of their parts were given out."""
        return self._plan.exhausted and not self._waiting and not self._alone

    def next(self, slots: int) -> Batch | None:
        """Return the next batch; None if there is none now."""
        if self._alone:
            return Batch([self._alone.popleft()])
        n = self._size(slots)
        while len(self._waiting) < n and (config := self._plan.propose()) is not None:
            self._n_to_propose -= 1
            self._waiting.extend({**config, **part} for part in self._plan.parts)
        parts = [self._waiting.popleft() for _ in range(min(n, len(self._waiting)))]
        if not parts:
            return None
        return Batch(parts)

    def _size(self, slots: int) -> int:
        """Return the number of parts of the next batch; smaller near the end, to end together."""
        return min(self._size_in_time, max(1, math.ceil(self._n_parts_left / (2 * slots))))

    @property
    def _size_in_time(self) -> int:
        """Number of parts that a worker runs in `BATCH_SECONDS`, by the last ones that ended."""
        if (
            self._plan.study.config.search.adaptive
        ):  # what is proposed next depends on what has ended
            return 1
        return max(1, min(_MOST, int(BATCH_SECONDS * len(self._took) / max(sum(self._took), 1e-3))))

    @property
    def _n_parts_left(self) -> int:
        return len(self._alone) + len(self._waiting) + self._n_to_propose * len(self._plan.parts)

    @property
    def n_left(self) -> int:
        """Number of batches to come; of trials, as long as no part has told its time."""
        if not self._took:
            return self._n_to_propose
        return math.ceil(self._n_parts_left / self._size_in_time)

    def ended(self, batch: Batch, n_ended: int) -> None:
        """Take back what a worker has not begun of a batch."""
        self._waiting.extendleft(
            part for part in reversed(batch.parts[n_ended:]) if part["name"] not in self._lost
        )

    def again(self, parts: Sequence[dict[str, Any]]) -> None:
        """Run parts whose worker ended again, each in a batch of its own."""
        self._alone.extend(part for part in parts if part["name"] not in self._lost)

    def join(self, part: dict[str, Any], record: Any) -> Any:
        """Return the record of a part's trial if this was the last part of it, else None."""
        name = part["name"]
        if name in self._lost:
            return None
        self._took.append(record.ended - record.started)
        parts = self._ended_parts.setdefault(name, [])
        parts.append(record)
        if len(parts) < len(self._plan.parts):
            return None
        return self._plan.join(self._ended_parts.pop(name))

    def lose(self, part: dict[str, Any]) -> bool:
        """Give up the trial of a part; return False if it was given up before."""
        name = part["name"]
        if name in self._lost:
            return False
        self._lost.add(name)
        self._ended_parts.pop(name, None)
        self._waiting = deque(other for other in self._waiting if other["name"] != name)
        self._alone = deque(other for other in self._alone if other["name"] != name)
        return True
