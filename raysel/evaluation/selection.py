"""Selection of an outer fold's winner by the validation scores on that fold alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from raysel.core.errors import StudyError, headline
from raysel.evaluation.records import DECIMALS, ChooseN, TrialRecord


def select_winner(
    records: Collection[TrialRecord],
    fold: str,
    preference: Mapping[str, tuple[tuple[float, ...], int]],
    rule: ChooseN,
) -> tuple[TrialRecord, int]:
    """Return the trial with the best score on an outer fold.

    Ties go to fewer features, unless ``rule`` is ``mean``, then to the simpler configuration, then to the one that
    comes first in the search.
    """
    candidates = []
    for record in records:
        trace = record.folds.get(fold)
        chosen = trace.choice(rule) if trace is not None and record.status != "stopped" else None
        if chosen is None:
            continue
        n_position = 0 if rule == "mean" else chosen.position
        complexity, place = preference[record.id]
        candidates.append(((-round(chosen.score, DECIMALS), n_position, complexity), place, record.id, record))
    if not candidates:
        causes = [headline(record.failure) for record in records if record.failure]
        if causes:
            why = f"{len(causes)} failed, the first with {causes[0]!r}"
            mend = "Change solver.space, or raise search.trial_timeout if that ended them."
        else:
            why, mend = "no trial has finished", "Raise search.time_budget."
        raise StudyError(f"no configuration has a score on {fold}: {why}. {mend}")
    best = min(candidates, key=lambda item: item[:3])
    return best[3], sum(item[0] == best[0] for item in candidates)
