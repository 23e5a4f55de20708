"""Which configuration wins an outer fold: by its own inner score there, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from raysel.cv.records import TrialRecord
from raysel.errors import StudyError

#: Scores that agree to this many decimals are equal: means of the same counts differ in their last bits.
_DECIMALS = 12


def select_winner(
    records: Collection[TrialRecord], fold: str, complexity_key: Mapping[str, tuple[float, ...]]
) -> TrialRecord:
    """The best trial of one outer fold; ties go to the simpler configuration, then to the lower id.

    Parameters
    ----------
    records : collection of TrialRecord
        In any order.
    fold : str
    complexity_key : mapping of trial id to tuple
        The solver's order; the smallest is the simplest.

    Returns
    -------
    TrialRecord

    Raises
    ------
    StudyError
        If no trial has a score there.
    """
    best: tuple[tuple[float, tuple[float, ...], str], TrialRecord] | None = None
    for record in records:
        trace = record.folds.get(fold)
        score = trace.score if trace is not None and record.status != "stopped" else None
        if score is None:
            continue
        key = (-round(score, _DECIMALS), complexity_key[record.id], record.id)
        if best is None or key < best[0]:
            best = (key, record)
    if best is None:
        causes = [record.failure.strip().rpartition("\n")[2] for record in records if record.failure]
        why = f"{len(causes)} failed, the first with {causes[0]!r}" if causes else "none was tried to its end"
        raise StudyError(f"no configuration has a score on {fold}: {why}. Change solver.space or the search's limits.")
    return best[1]
