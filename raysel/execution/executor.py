"""Interface of the executors, which compute a study's trials and refits; all give the same numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from raysel.core.errors import StudyError, headline
from raysel.evaluation.plan import OuterFold
from raysel.evaluation.records import RefitRecord, TrialRecord
from raysel.execution.computing import TaskEnd
from raysel.execution.trial_plan import TrialPlan
from raysel.study.definition import Study
from raysel.tracking.log import StudyLog
from raysel.tracking.records import NodeRecord


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
    def run_refits(self, winners: Sequence[tuple[OuterFold, TrialRecord]]) -> Iterator[tuple[RefitRecord, Any]]:
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
        self, function: Callable[[Study, Any], Any], arguments: Sequence[Any], limit: float | None = None
    ) -> Iterator[TaskEnd]:
        """Compute ``function(study, argument)`` for each argument, independently of each other.

        Parameters
        ----------
        function : callable
            Function of the study and an argument; it and its values can be pickled.
        arguments : sequence of object
            Arguments that can be pickled.
        limit : float, optional
            Seconds after which a task that runs in a worker process is ended with it, tried twice more and then fails;
            no limit by default. A task in the study's own process cannot be ended.

        Yields
        ------
        TaskEnd
            Value, or error, of each task in the order in which they end; one that fails does not end the others.

        Raises
        ------
        StudyError
            If the executor fails.
        """

    def mixed_nodes(self) -> Sequence[NodeRecord]:
        """Return the nodes that were allowed to compute with other versions than this process; by default none."""
        return ()


def refit_error(fold: OuterFold, winner: TrialRecord, reason: object) -> StudyError:
    """Return the error to raise for a refit that failed."""
    return StudyError(f"the winner of {fold.name}, {winner.name}, could not be refitted: {last_line(reason)}")


def last_line(error: object) -> str:
    """Return the line of an error's text that says what happened, or the name of its type if the text is empty."""
    return headline(str(error)) or type(error).__name__
