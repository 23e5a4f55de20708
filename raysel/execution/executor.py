"""Interface of the executors, and what they share: recorder and limits of their trials."""

from __future__ import annotations

import math
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raysel.core.errors import StudyError, headline
from raysel.core.machine import machine_memory, now
from raysel.evaluation.plan import OuterFold
from raysel.evaluation.records import PathRecord, RefitRecord, TrialRecord
from raysel.execution.trial_plan import TrialPlan
from raysel.execution.trials import mark_stopped
from raysel.study.definition import Study
from raysel.tracking.log import StudyLog
from raysel.tracking.records import NodeRecord

#: Name of an error whose words are raysel's own.
_OWN_NAME = re.compile(r"\A[\w.]*\b(StudyError|EstimatorError): ")
#: Share of the machine's memory above which a message reports the memory of this process.
_MEMORY_SHARE = 0.5


@dataclass(frozen=True)
class TaskEnd:
    """Value or error of a task of `Executor.run_tasks`."""

    argument: Any
    value: Any = None
    error: str = ""
    #: CPU time of the task in seconds.
    cpu_seconds: float = 0.0


class Executor(AbstractContextManager["Executor"], ABC):
    """Base class of the executors; used as a context manager while a study runs."""

    @abstractmethod
    def run_trials(self, plan: TrialPlan, log: StudyLog) -> bool:
        """Run the remaining trials of a plan, which score configurations on the inner folds.

        Parameters
        ----------
        plan : TrialPlan
            Proposes the trials and receives their records.
        log : StudyLog
            Receives the events of the trials.

        Returns
        -------
        bool
            Whether ``search.time_budget`` ended the search before all trials were made.

        Raises
        ------
        StudyError
            If more than ``search.max_failures`` trials fail, or the executor or the disk fails.
        """

    @abstractmethod
    def run_refits(
        self, winners: Sequence[tuple[OuterFold, TrialRecord]]
    ) -> Iterator[tuple[RefitRecord, Any]]:
        """Refit winners on their outer training sets and score each once.

        Parameters
        ----------
        winners : sequence of (OuterFold, TrialRecord)
            Outer folds with their winners.

        Yields
        ------
        record : RefitRecord
            Records of the refits, in the order of the winners.
        model : Pipeline
            Fitted scaler and solver.

        Raises
        ------
        StudyError
            If a refit fails.
        """

    @abstractmethod
    def run_tasks(
        self,
        function: Callable[[Study, Any], Any],
        arguments: Sequence[Any],
        limit: float | None = None,
    ) -> Iterator[TaskEnd]:
        """Compute ``function(study, argument)`` for each argument, independently of each other.

        Parameters
        ----------
        function : callable
            Function of the study and an argument; it and its values can be pickled.
        arguments : sequence of object
            Arguments that can be pickled.
        limit : float, optional
            Seconds after which a task that runs in a worker process is ended with it, tried twice
            more and then fails; no limit by default. A task in the study's own process cannot be
            ended.

        Yields
        ------
        TaskEnd
            Value, or error, of each task in the order in which they end; one that fails does not
            end the others.

        Raises
        ------
        StudyError
            If the executor fails.
        """

    def mixed_nodes(self) -> Sequence[NodeRecord]:
        """Return the nodes that compute with other versions than this process; none by default."""
        return ()


def refit_error(fold: OuterFold, winner: TrialRecord, reason: object) -> StudyError:
    """Return the error to raise for a refit that failed."""
    told = _OWN_NAME.sub("", last_line(reason))
    return StudyError(f"the winner of {fold.name}, {winner.name}, could not be refitted: {told}")


def last_line(error: object) -> str:
    """Return the line of an error that says what happened, or the name of its type."""
    return headline(str(error)) or type(error).__name__


def process_memory() -> int:
    """Return the resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class SearchLimits:
    """Limits of a search that starts when the object is created."""

    def __init__(
        self, time_budget: float | None, max_failures: int | None, plan: TrialPlan
    ) -> None:
        self._until = math.inf
        if time_budget is not None:
            self._until = time.monotonic() + time_budget
        self._max_failures, self._plan = max_failures, plan
        self.out_of_time = False

    def reached(self) -> bool:
        """Return whether a limit is reached, so that all trials must stop."""
        self.out_of_time |= time.monotonic() > self._until
        return self.out_of_time or self._too_many_failures()

    def check_failures(self) -> None:
        """Check the number of failed trials."""
        if self._too_many_failures():
            failed = [record for record in self._plan.records if record.status == "failed"]
            last = headline(failed[-1].failure)
            raise StudyError(
                f"{len(failed)} trials failed, more than search.max_failures={self._max_failures}; "
                f"the last error was: {last}"
            )

    def _too_many_failures(self) -> bool:
        allowed = self._max_failures
        return (
            allowed is not None
            and sum(record.status == "failed" for record in self._plan.records) > allowed
        )


class Recorder:
    """Receiver of the events of an executor's trials."""

    def __init__(self, plan: TrialPlan, log: StudyLog) -> None:
        self._plan, self.log = plan, log
        self._memory_limit = _MEMORY_SHARE * machine_memory()

    def stop(self, record: TrialRecord | PathRecord) -> None:
        """Keep the record of a trial that early stopping has ended."""
        mark_stopped(record)
        self.keep(record)

    def lose(self, config: Mapping[str, Any], reason: str) -> None:
        """Record a trial that ended without a record, e.g. because its worker process died."""
        record = self._plan.empty_record(config)
        record.status, record.started, record.ended, record.error = "failed", now(), now(), reason
        self.keep(record)

    def keep(self, record: TrialRecord | PathRecord) -> None:
        """Keep the record of a trial that has ended."""
        self.log.record(record)
        self._plan.add(record)
        self._watch_memory()
        params = record.params if isinstance(record, TrialRecord) else None
        seconds = record.ended - record.started
        self.log.trial_ended(record.status == "failed", self._plan.score(record), seconds, params)

    def _watch_memory(self) -> None:
        """Report once that this process uses much of the machine's memory."""
        used = process_memory()
        if used > self._memory_limit:
            self._memory_limit = math.inf
            self.log.message(
                f"this process uses {used / 2**30:.1f} GiB, more than {_MEMORY_SHARE:.0%} of the"
                " machine's memory. If it is killed, resume the study; fewer trials need less"
            )
