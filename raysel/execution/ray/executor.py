"""Executor that runs a study's trials and refits on Ray."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from typing import Any

import ray
from ray.exceptions import RayError

from raysel.core.errors import RayStartError, StudyError
from raysel.evaluation.plan import OuterFold
from raysel.evaluation.records import RefitRecord, TrialRecord
from raysel.execution.computing import TaskEnd
from raysel.execution.executor import Executor, last_line, refit_error
from raysel.execution.ray.head_watch import HeadWatch
from raysel.execution.ray.nodes import Cluster, Demand
from raysel.execution.ray.session import node_check, ray_session
from raysel.execution.ray.workers import Piece, Pool, Step
from raysel.execution.recorder import Recorder, SearchLimits
from raysel.execution.serial import SerialExecutor
from raysel.execution.trial_plan import TrialPlan
from raysel.study.definition import Study
from raysel.tracking.log import StudyLog
from raysel.tracking.records import NodeRecord

#: Largest share of the object store for prepared folds; further folds are prepared again by each trial.
_STORE_SHARE = 0.5


class RayExecutor(Executor):
    """Executor on Ray's workers; connects to Ray when it is first needed and disconnects at the end."""

    def __init__(self, study: Study, address: str | None, *, allow_mixed_versions: bool = False) -> None:
        self._study, self._address, self._allow_mixed_versions = study, address, allow_mixed_versions
        self._session = ExitStack()
        self._demand = Demand(study.config.search.needs) if address else None
        self._watch: HeadWatch | None = None
        self._plan: TrialPlan | None = None
        self._log: StudyLog | None = None

    def __exit__(self, kind: object, *_: object) -> None:
        head_lost = self._watch.error if self._watch else None
        try:
            with self._session:
                if not head_lost and "_pool" in vars(self):
                    with suppress(RayError):  # the study's own error, e.g. that Ray has failed, must not be hidden
                        self._pool.close()
                        if self._demand:
                            self._demand.withdraw()
        finally:
            if self._watch:
                self._watch.stop()
        if head_lost and kind is KeyboardInterrupt:
            raise head_lost from None

    @cached_property
    def _instead(self) -> SerialExecutor | None:
        """Executor in this process, which gives the same numbers, where Ray does not start; None where it does."""
        try:
            _ = self._pool
        except RayStartError as error:
            message = f"{error}. The study is computed in this process, one fit after the other, with the same numbers"
            if self._log is None:
                warnings.warn(message, stacklevel=2)
            self._message(message)
            return SerialExecutor(self._study)
        return None

    @cached_property
    def _pool(self) -> Pool:
        """Workers on the cluster that is joined, or on the Ray that is started here."""
        session = ray_session(self._address, [self._study], allow_mixed_versions=self._allow_mixed_versions)
        self._session.enter_context(session)
        self._watch = HeadWatch(ray.get_runtime_context().gcs_address, self._kept)
        self._watch.start()
        check, search = node_check(), self._study.config.search
        study = ray.put(check.guard(self._study) if check else self._study)
        self._cluster = Cluster(search.needs, search.max_concurrent, self._message, self._demand)
        return Pool(study, self._cluster, search.needs, search.max_concurrent)

    def _message(self, text: str) -> None:
        if self._log is not None:
            self._log.message(text)

    def _kept(self) -> str:
        n = len(self._plan.records) if self._plan else 0
        place = f" in {self._log.folder}" if self._log else ""
        return f"{n} trial{' had ended and is' if n == 1 else 's had ended and are'} kept{place}"

    def run_trials(self, plan: TrialPlan, log: StudyLog) -> bool:
        """Run the remaining trials of a plan on the workers."""
        if not ray.is_initialized():  # the members of a comparison share a session
            log.enter_phase("joining the cluster" if self._address else "starting Ray")
        self._plan, self._log = plan, log
        if self._instead:
            return self._instead.run_trials(plan, log)
        pool, study, search = self._pool, self._study, self._study.config.search
        if check := node_check():
            check.record(log)
        self._cluster.check()
        log.enter_phase("preparing the folds")
        if study.dataset.X.nbytes > _store_bytes():
            log.message(
                "the data exceed Ray's object store and will spill to disk, which is slower: start Ray with a larger "
                "object_store_memory"
            )
        prepared = self._prepare_folds()
        if len(prepared) < study.n_inner * len(study.prepared_examples):
            log.message(
                f"the prepared folds exceed {_STORE_SHARE:.0%} of Ray's object store: each trial prepares them again, "
                "which is slower"
            )
        pool.share(prepared)
        log.enter_phase("")
        limits, recorder = SearchLimits(search.time_budget, search.max_failures, plan), Recorder(plan, log)

        def propose() -> Piece | None:
            config = plan.propose()
            if config is None:
                return None
            recorder.start()
            return Piece(config["name"], "start", (plan.trial_class, config), config)

        def goes_on(piece: Piece, step: Step) -> bool:
            return step.rung is not None and plan.should_continue(piece.subject, step.rung)

        def stop() -> bool:
            recorder.refresh()
            return limits.reached()

        steps = pool.run(
            "trial",
            propose,
            n_left=lambda: plan.n_left,
            exhausted=lambda: plan.exhausted,
            goes_on=goes_on,
            stop=stop,
        )
        try:
            for piece, step, error in steps:
                if error is not None:
                    recorder.lose(piece.subject, last_line(error))
                elif step.rung is not None:
                    recorder.stop(step.record)
                else:
                    recorder.keep(step.record)
        except RayError as error:
            raise StudyError(f"Ray failed: {last_line(error)}. Resume the study.") from error
        pool.share({})  # the prepared folds may leave the object store
        if check:
            check.record_late(log)
        limits.check_failures()
        return limits.out_of_time and plan.n_left > 0

    def _prepare_folds(self) -> dict[tuple[str, int, str], Any]:
        """Put the `FoldData` of all inner folds in the object store, for as many prepare keys as fit in their share."""
        study, prepared = self._study, {}
        largest, number = study.largest
        others = [(fold, i) for fold, i in study.training_sets if fold is not largest or i != number]
        room = _STORE_SHARE * _store_bytes()
        for key, params in study.prepared_examples.items():
            # The largest first: it tells whether all of them fit.
            ((first, size),) = self._prepared([(largest, number)], params)
            room -= size * study.n_largest
            if room < 0:
                break
            prepared[largest.name, number, key] = first
            for (fold, i), (data, _) in zip(others, self._prepared(others, params), strict=True):
                prepared[fold.name, i, key] = data
        return prepared

    def _prepared(self, sets: Sequence[tuple[OuterFold, int]], params: Mapping[str, Any]) -> list[tuple[Any, int]]:
        """Prepare inner folds; return the reference to the data of each, and its bytes."""
        pieces = [
            Piece(f"preparation {n}", "prepare", (fold.inner[i], params), n, n_values=2)
            for n, (fold, i) in enumerate(sets)
        ]
        sizes: dict[int, int] = {}
        for piece, size, error in self._pool.run_all("preparation", pieces):
            if error is not None:
                raise StudyError(f"the folds could not be prepared: {last_line(error)}") from error
            sizes[piece.subject] = size
        return [(piece.stored, sizes[piece.subject]) for piece in pieces]

    def run_refits(self, winners: Sequence[tuple[OuterFold, TrialRecord]]) -> Iterator[tuple[RefitRecord, Any]]:
        """Refit winners on their outer training sets, in parallel, and score each once."""
        if self._instead:
            yield from self._instead.run_refits(winners)
            return
        pieces = [Piece(f"refit {n}", "refit", winner, n) for n, winner in enumerate(winners)]
        ended: dict[int, Any] = {}
        due = 0
        for piece, value, error in self._pool.run_all("refit", pieces):
            if error is not None:
                fold, winner = winners[piece.subject]
                raise refit_error(fold, winner, error) from error
            ended[piece.subject] = value
            while due in ended:  # in the order of the winners
                yield ended.pop(due)
                due += 1

    def run_tasks(
        self, function: Callable[[Study, Any], Any], arguments: Sequence[Any], limit: float | None = None
    ) -> Iterator[TaskEnd]:
        """Compute ``function(study, argument)`` for each argument, in parallel."""
        if self._instead:
            yield from self._instead.run_tasks(function, arguments, limit)
            return
        pieces = [
            Piece(f"task {n}", "run_task", (function, argument, limit), argument)
            for n, argument in enumerate(arguments)
        ]
        for piece, value, error in self._pool.run_all("task", pieces):
            if error is None:
                yield value
            else:
                after = "" if limit is None else f" (one that takes over {limit:g} s is ended)"
                yield TaskEnd(piece.subject, error=f"{type(error).__name__}{after}: {last_line(error)}")

    def mixed_nodes(self) -> Sequence[NodeRecord]:
        """Return the nodes that were allowed to compute with other versions than this process."""
        check = node_check()
        if check is None or not check.allowed:
            return ()
        check.compare()  # nodes may have joined
        return check.records()


def _store_bytes() -> float:
    """Return the bytes of the cluster's smallest object store, because trials on all nodes read the shared data."""
    return min(node["Resources"].get("object_store_memory", 0.0) for node in ray.nodes() if node["Alive"])
