"""Batches that are with workers: their records, their nodes, and what of them runs again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ray.exceptions import OutOfMemoryError, RayActorError

from raysel.core.errors import StudyError
from raysel.core.files import make_instance
from raysel.evaluation.lost_trials import worker_died
from raysel.execution.batches import Batch, Batches
from raysel.execution.executor import Recorder, last_line
from raysel.execution.ray.nodes import Cluster, MemoryShortError
from raysel.execution.ray.session import token_refusal
from raysel.execution.ray.tasks import Losses, find_storage_error, node_in
from raysel.execution.ray.versions import other_versions
from raysel.execution.trial_plan import TrialPlan


@dataclass
class _Running:
    """Batch of a worker, its node once it has begun, and the number of parts that have ended."""

    batch: Batch
    node: str = ""
    n_ended: int = 0

    @property
    def left(self) -> Sequence[dict[str, Any]]:
        """Parts whose records have not come."""
        return self.batch.parts[self.n_ended :]


class RunningBatches:
    """Batches that are with workers: gives their records to the recorder, and lost ones back."""

    def __init__(
        self, plan: TrialPlan, recorder: Recorder, cluster: Cluster, batches: Batches
    ) -> None:
        self._plan, self._recorder, self._cluster, self._batches = plan, recorder, cluster, batches
        self.losses = Losses(cluster)
        self._running: dict[str, _Running] = {}
        #: Names of the trials that have begun.
        self._begun: set[str] = set()
        self.error: StudyError | None = None

    def look(self) -> None:
        """Look at the nodes, also when no trial is to be proposed, and request missing ones."""
        self._recorder.log.refresh()
        self._cluster.refresh()
        self._cluster.want(self._batches.n_left + len(self._running))

    def add(self, name: str, batch: Batch) -> None:
        """Note a batch that waits for its worker."""
        self._running[name] = _Running(batch)

    def start(self, name: str, node: str) -> None:
        """Count a batch that a worker has begun on a node."""
        running = self._running[name]
        running.node = node
        self._cluster.started(name, node)
        self._begin(running.batch.parts[0])

    def keep(
        self, name: str, records: Sequence[str], *, ended: bool, stopped: bool = False
    ) -> None:
        """Keep records of a batch's parts, the last of which may have ended it or be stopped."""
        running = self._running[name]
        parts = running.left
        running.n_ended += len(records)
        if ended:
            self._batches.ended(running.batch, running.n_ended)
            self._end(name)
        for part, text in zip(parts, records, strict=False):
            self._begin(part)
            whole = self._batches.join(
                part, make_instance(self._plan.record_class, json.loads(text))
            )
            if whole is not None and stopped:
                self._report(self._recorder.stop, whole)
            elif whole is not None:
                self._report(self._recorder.keep, whole)

    def fail(self, name: str, error: object) -> None:
        """Let the parts of a batch that was lost run again, or record the trial that is at fault.

        It is at fault if it was alone in its batch and its worker ended in every attempt.
        """
        died = isinstance(error, RayActorError) and not error.actor_init_failed
        refused = other_versions(error) or find_storage_error(error)
        if died:
            refused = refused or token_refusal()
        if refused:
            self.error = refused
            raise refused
        running = self._running.pop(name)
        left = running.left
        again = self.losses.runs_again(name, running.node, error)
        if again or len(left) > 1:
            self._batches.again(left)
            return
        self._cluster.ended(name)
        reason = last_line(error)
        if died:
            why = ("memory ran short",) if isinstance(error, MemoryShortError) else ()
            reason = worker_died(self.losses.n_own_ends(name), *why)
        if self._batches.lose(left[0]):
            self._begin(left[0])
            self._report(self._recorder.lose, left[0], reason)

    def give_back(self, error: OutOfMemoryError) -> bool:
        """Let all batches run again where Tune has ended because memory ran short on a node.

        Of several batches there fewer run at once from now on; one that was alone counts as lost.
        Returns False where no batch can have run there.
        """
        node = node_in(error)
        there = [name for name, running in self._running.items() if running.node in (node, "")]
        if not there:
            return False
        self.fail(there[0], MemoryShortError())
        for name, running in list(self._running.items()):
            self._batches.ended(running.batch, running.n_ended)
            self._end(name)
        return True

    def _begin(self, part: dict[str, Any]) -> None:
        """Count a trial whose first part has begun."""
        if part["name"] not in self._begun:
            self._begun.add(part["name"])
            self._recorder.log.trial_started()

    def _end(self, name: str) -> None:
        del self._running[name]
        self._cluster.ended(name)

    def _report(self, method: Any, *arguments: Any) -> None:
        try:
            method(*arguments)
        except StudyError as error:
            self.error = error
            raise
