"""Who computes a study's trials and refits: this process, or Ray's workers. Both give the same numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from raysel.cv.plan import OuterFold
from raysel.cv.records import RefitRecord, TrialRecord
from raysel.errors import StudyError
from raysel.execution.trial_plan import TrialPlan
from raysel.tracking.log import StudyLog


class Executor(AbstractContextManager["Executor"], ABC):
    """Computes what a study needs; entered for as long as it does."""

    @abstractmethod
    def run_trials(self, plan: TrialPlan, log: StudyLog) -> bool:
        """Do what is left of a study's work: score configurations by inner folds, nothing else.

        Parameters
        ----------
        plan : TrialPlan
            Keeps the records.
        log : StudyLog
            Told of each trial as it starts and ends.

        Returns
        -------
        bool
            Whether ``search.time_budget`` ended the search before all trials were made.

        Raises
        ------
        StudyError
            If more trials fail than may, or the executor or the disk fails.
        """

    @abstractmethod
    def run_refits(self, winners: Sequence[tuple[OuterFold, TrialRecord]]) -> Iterator[tuple[RefitRecord, Any]]:
        """Refit winners on their outer training sets and score each once.

        Parameters
        ----------
        winners : sequence of (OuterFold, TrialRecord)

        Yields
        ------
        record : RefitRecord
        model : Pipeline
            Scaler and solver, fitted; in the order of the winners.

        Raises
        ------
        StudyError
            If a refit fails.
        """


def refit_error(fold: OuterFold, winner: TrialRecord, reason: object) -> StudyError:
    """The error of a refit that failed.

    Parameters
    ----------
    fold : OuterFold
    winner : TrialRecord
    reason : object
        Its last line is told.

    Returns
    -------
    StudyError
    """
    return StudyError(f"the winner of {fold.name}, {winner.name}, could not be refitted: {last_line(reason)}")


def last_line(error: object) -> str:
    """The last line of an error's text, or its type where it has none."""
    return str(error).strip().rpartition("\n")[2] or type(error).__name__
