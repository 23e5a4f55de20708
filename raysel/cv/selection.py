"""Selection of an outer fold's winner by the validation scores on that fold alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from raysel.cv.feature_count import DECIMALS, ChooseN
from raysel.cv.records import TrialRecord
from raysel.errors import StudyError, headline


def select_winner(
    records: Collection[TrialRecord], fold: str, complexity_key: Mapping[str, tuple[float, ...]], rule: ChooseN
) -> TrialRecord:
    """Return the trial with the best score on an outer fold.

    Ties go to fewer features, unless ``rule`` is ``mean``, then to the simpler configuration, then to the lower id.

    Parameters
    ----------
    records : collection of TrialRecord
        Trials in any order.
    fold : str
        Name of the outer fold.
    complexity_key : mapping of str to tuple
        Sort key of each trial's configuration by the trial's id; the smallest is the simplest.
    rule : {"one_se", "best", "mean"}
        Rule that chooses the number of features that a configuration is scored at.

    Returns
    -------
    TrialRecord
        The winner.

    Raises
    ------
    StudyError
        If no trial has a score on the outer fold.
    """
    best: tuple[tuple[float, int, tuple[float, ...], str], TrialRecord] | None = None
    for record in records:
        trace = record.folds.get(fold)
        chosen = trace.choice(rule) if trace is not None and record.status != "stopped" else None
        if chosen is None:
            continue
        n_position = 0 if rule == "mean" else chosen.position
        key = (-round(chosen.score, DECIMALS), n_position, complexity_key[record.id], record.id)
        if best is None or key < best[0]:
            best = (key, record)
    if best is None:
        causes = [headline(record.failure) for record in records if record.failure]
        if causes:
            why = f"{len(causes)} failed, the first with {causes[0]!r}"
            mend = "Change solver.space, or raise search.trial_timeout if that ended them."
        else:
            why, mend = "no trial has finished", "Raise search.time_budget."
        raise StudyError(f"no configuration has a score on {fold}: {why}. {mend}")
    return best[1]
