"""The scheduler of all work on Ray: workers on nodes that are chosen here, each with one piece of work at a time.

Workers are actors. That the machine of an actor vanished without closing its connections (power, network) Ray tells
within a minute, by its health checks; of a plain task it notices after seven minutes only, a setting that cannot be
lowered. A trial that may be stopped at its rungs waits for the answer in its worker.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import ray
from ray.exceptions import (
    LocalRayletDiedError,
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayActorError,
    RayError,
    RayTaskError,
    WorkerCrashedError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from threadpoolctl import threadpool_limits

from raysel.core.clock import RunningTimer
from raysel.evaluation.lockstep import FoldData
from raysel.evaluation.plan import InnerFold, OuterFold
from raysel.evaluation.records import PathRecord, RefitRecord, TrialRecord
from raysel.execution.computing import TaskEnd, prepare_fold, refit, run_task
from raysel.execution.ray.nodes import Cluster
from raysel.execution.ray.versions import other_versions
from raysel.execution.trials import Rung, Trial
from raysel.study.definition import Study

#: Number of times that a piece of work runs again after its worker process ended on a node that goes on.
MAX_RETRIES = 2
#: Seconds beyond its time limit after which the process of a trial that checks no clock is ended.
_GRACE = 5.0
#: Seconds for a worker to start before its work is given to an idle one; a busy machine needs half of it.
_PATIENCE = 60.0
#: Errors that tell of the end of a worker or its node, rather than of what it computed.
_ENDS = (LocalRayletDiedError, NodeDiedError, ObjectLostError, OutOfMemoryError, RayActorError, WorkerCrashedError)


class WorkerDiedError(Exception):
    """The worker processes of a piece of work ended whenever it ran."""


class Step(NamedTuple):
    """State of a trial at a rung, or at its end."""

    record: TrialRecord | PathRecord
    rung: Rung | None


class Worker:
    """Process on a node that computes for one study."""

    def __init__(self, study: Sequence[Any]) -> None:
        # In a sequence, because Ray would read an argument here, where an error would end the process.
        (self._study_ref,) = study
        self._prepared: Mapping[tuple[str, int, str], Any] = {}
        self._watchdog: RunningTimer | None = None

    @cached_property
    def _study(self) -> Study:
        study: Study = ray.get(self._study_ref)
        threadpool_limits(study.config.search.cpus_per_trial)
        return study

    def prepare(self, inner: InnerFold, params: Mapping[str, Any]) -> tuple[FoldData, int]:
        """Return the data of an inner fold, and their bytes."""
        data = prepare_fold(self._study, inner, params)
        return data, data.nbytes

    def share(self, prepared: Mapping[tuple[str, int, str], Any]) -> None:
        """Take the references to prepared folds."""
        self._prepared = prepared

    def start(self, trial_class: type[Trial], config: Mapping[str, Any]) -> Step:
        """Run a trial to its first rung, or to its end."""
        self._unwatch()
        self._trial = trial_class(self._study, config, self._fold_data, self._watch)
        self._steps = self._trial.steps()
        return self.step()

    def step(self) -> Step:
        """Run the trial to its next rung, or to its end."""
        for iteration in self._steps:
            if rung := self._trial.rung(iteration):
                return Step(self._trial.record, rung)
        self._unwatch()
        return Step(self._trial.record, None)

    def refit(self, fold: OuterFold, winner: TrialRecord) -> tuple[RefitRecord, Any]:
        """Refit an outer fold's winner."""
        return refit(self._study, fold, winner)

    def run_task(self, function: Callable[[Study, Any], Any], argument: Any, limit: float | None) -> TaskEnd:
        """Compute a task, and end this process if it takes longer than the limit."""
        if limit is not None:
            self._end_after(limit)
        try:
            return run_task(self._study, function, argument)
        finally:
            self._unwatch()

    def _watch(self, timeout: float) -> None:
        self._unwatch()
        self._end_after(1.5 * timeout + _GRACE)

    def _end_after(self, seconds: float) -> None:
        """End this process after some time, because native code that hangs never checks a clock."""
        self._watchdog = RunningTimer(seconds, lambda: os._exit(1))

    def _unwatch(self) -> None:
        if self._watchdog:
            self._watchdog.cancel()

    def _fold_data(self, fold: OuterFold, inner: int, params: Mapping[str, Any]) -> FoldData:
        """Return the data of an inner fold; read-only if they are shared."""
        shared = self._prepared.get((fold.name, inner, self._study.prepare_key(params)))
        if shared is not None:
            with suppress(RayError):  # lost with its node
                data: FoldData = ray.get(shared)
                return data
        return self._study.fold_data(fold.inner[inner], params)


@dataclass(eq=False)
class Piece:
    """Piece of work."""

    name: str
    #: What is called.
    method: str
    arguments: tuple[Any, ...]
    #: What the piece is about, for the caller.
    subject: Any
    #: 2 for a method whose first value stays in the object store.
    n_values: int = 1
    #: Reference to the value that stays there.
    stored: Any = None
    #: Number of workers that ended, by node.
    _ends: Counter[str] = field(default_factory=Counter)

    def start(self, worker: Any) -> Any:
        """Call the method of a worker and return the reference to its last value."""
        values = getattr(worker, self.method).options(num_returns=self.n_values).remote(*self.arguments)
        if self.n_values == 1:
            return values
        self.stored, last = values
        return last

    def runs_again(self, node: str, lost: Mapping[str, Any] | set[str]) -> bool:
        """Count the end of a worker on a node.

        The loss of a node is not the fault of the work, so it is excused once a node, also when it is noticed later. A
        process that ends by itself, e.g. because native code crashed or the memory was used up, may be.
        """
        self._ends[node] += 1
        return self.n_ends(lost) <= MAX_RETRIES

    def n_ends(self, lost: Mapping[str, Any] | set[str]) -> int:
        """Return how many workers ended, less one for each lost node."""
        return sum(n - (node in lost) for node, n in self._ends.items())


class _Seat(NamedTuple):
    """Worker, the id of its node, a reference that is there once it has started, and since when it is asked for."""

    worker: Any
    node: str
    ready: Any
    since: float


def _no(*_: object) -> bool:
    return False


class Pool:
    """Workers of a study on the nodes of a cluster, started where there is work for them."""

    def __init__(self, study: Any, cluster: Cluster, needs: Mapping[str, float], most: int | None) -> None:
        self._study, self._cluster, self._most = study, cluster, most
        self._options = {**actor_options(needs), "max_restarts": 0, "max_task_retries": 0}
        self._prepared = ray.put({})
        self._idle: list[_Seat] = []
        self._running: dict[Any, tuple[Piece, _Seat]] = {}

    def share(self, prepared: Mapping[tuple[str, int, str], Any]) -> None:
        """Give all workers the references to prepared folds, those that start later too."""
        self._prepared = ray.put(prepared)
        for seat in self._idle:
            seat.worker.share.remote(self._prepared)

    def run_all(self, what: str, pieces: Sequence[Piece]) -> Iterator[tuple[Piece, Any, Exception | None]]:
        """Run pieces of work and yield each, as it ends, with its value or its error."""
        waiting = deque(pieces)
        return self.run(
            what,
            lambda: waiting.popleft() if waiting else None,
            n_left=lambda: len(waiting) + len(self._running),
            exhausted=lambda: not waiting,
        )

    def run(
        self,
        what: str,
        propose: Callable[[], Piece | None],
        *,
        n_left: Callable[[], int],
        exhausted: Callable[[], bool],
        goes_on: Callable[[Piece, Any], bool] = _no,
        stop: Callable[[], bool] = _no,
    ) -> Iterator[tuple[Piece, Any, Exception | None]]:
        """Run what is proposed, as much at once as fits, until all is done or it must stop.

        A piece that goes on after a step keeps its worker; one that is stopped is abandoned with it.
        """
        again: deque[Piece] = deque()
        while not stop():
            self._cluster.refresh()
            self._cluster.want(n_left())
            for end, (_, seat) in list(self._running.items()):
                if seat.node in self._cluster.lost:
                    again.append(self._running.pop(end)[0])
            again.extend(self._waiting())
            while (free := self._free()) and (piece := again.popleft() if again else propose()):
                seat = self._seat(free)
                self._running[piece.start(seat.worker)] = piece, seat
                self._cluster.started(piece.name, seat.node, what)
            if not self._running:
                if exhausted():
                    return
                time.sleep(0.5)  # no node is left: wait for one
                continue
            for end in ray.wait(list(self._running), timeout=1.0, fetch_local=False)[0]:
                piece, seat = self._running.pop(end)
                value, error = _get(end)
                if isinstance(error, _ENDS) and not isinstance(error, RayTaskError):
                    error = self._lose(piece, seat, error)
                    if error is None:
                        again.append(piece)
                        continue
                elif error is None and goes_on(piece, value):
                    self._running[seat.worker.step.remote()] = piece, seat
                    continue
                else:
                    self._cluster.ended(piece.name)
                    self._idle.append(seat)
                yield piece, value, error
        for end in list(self._running):
            piece, seat = self._running.pop(end)
            self._cluster.ended(piece.name)
            ray.kill(seat.worker)

    def close(self) -> None:
        """End all workers."""
        seats = [*self._idle, *(seat for _, seat in self._running.values())]
        self._idle.clear()
        self._running.clear()
        for seat in seats:
            ray.kill(seat.worker)

    def _lose(self, piece: Piece, seat: _Seat, error: Exception) -> Exception | None:
        """Decide whether a piece whose worker ended runs again; return the error if not."""
        ray.kill(seat.worker)
        self._cluster.refresh(now=True)
        lost = {*self._cluster.lost, *_lost_nodes(error)}
        short = isinstance(error, OutOfMemoryError)
        again = (short and self._cluster.run_fewer(piece.name, seat.node)) or piece.runs_again(seat.node, lost)
        if seat.node not in lost:
            self._cluster.ended(piece.name)
        why = "memory ran short" if short else "killed, or out of memory"
        return None if again else WorkerDiedError(f"the worker process died {piece.n_ends(lost)} times ({why})")

    def _free(self) -> dict[str, float]:
        """Return the share of its places that is taken on each node with a free one; none if no more may run."""
        if self._most is not None and len(self._running) >= self._most:
            return {}
        taken = Counter(seat.node for _, seat in self._running.values())
        places = {node.id: self._cluster.places(node) for node in self._cluster.nodes}
        return {id_: taken[id_] / n for id_, n in places.items() if taken[id_] < n}

    def _seat(self, free: Mapping[str, float]) -> _Seat:
        """Take an idle worker of a free node, or start one on the node with the smallest share."""
        for seat in self._idle:
            if seat.node in free:
                self._idle.remove(seat)
                return seat
        node = min(free, key=lambda id_: free[id_])
        strategy = NodeAffinitySchedulingStrategy(node, soft=False)
        start = ray.remote(Worker).options(**self._options, scheduling_strategy=strategy)
        worker = start.remote([self._study])
        return _Seat(worker, node, worker.share.remote(self._prepared), time.monotonic())

    def _waiting(self) -> list[Piece]:
        """Take back pieces whose workers do not start, where others are idle: another job may hold the resources."""
        pieces: list[Piece] = []
        for end, (piece, seat) in list(self._running.items()):
            late = time.monotonic() > seat.since + _PATIENCE
            if len(pieces) < len(self._idle) and late and not ray.wait([seat.ready], timeout=0)[0]:
                del self._running[end]
                self._cluster.ended(piece.name)
                ray.kill(seat.worker)
                pieces.append(piece)
        return pieces


def actor_options(needs: Mapping[str, float]) -> dict[str, Any]:
    """Return the options of a worker for work with these needs."""
    names = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
    options: dict[str, Any] = {names[name]: number for name, number in needs.items() if name in names}
    resources = {name: number for name, number in needs.items() if name not in names}
    return {**options, **({"resources": resources} if resources else {})}


def _get(end: Any) -> tuple[Any, Exception | None]:
    """Return a value and None, or None and the error; raise that of a worker with other versions."""
    try:
        return ray.get(end), None
    except RayError as error:
        if refused := other_versions(error):
            raise refused from error
        return None, error


def _lost_nodes(error: Exception) -> list[str]:
    """Return the id of the node that died, as the error of an actor names it."""
    return re.findall(r"its node has died\. Node Id: ([0-9a-f]+)", str(error))
