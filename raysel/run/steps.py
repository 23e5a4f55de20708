"""Steps of a study, in a directory or in memory: search, choice of winners, noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raysel.core.errors import DataError
from raysel.evaluation.nested_search import select_winner
from raysel.evaluation.plan import OuterFold, derived_seed
from raysel.evaluation.records import TrialRecord
from raysel.evaluation.references import PERMUTATIONS, noise_stability
from raysel.execution.executor import Executor
from raysel.execution.trial_plan import trial_plan
from raysel.study.definition import Study
from raysel.study.stored import StoredStudy
from raysel.tracking.log import StudyLog
from raysel.tracking.records import NoiseRecord, SearchRecord


def search(
    study: Study, executor: Executor, log: StudyLog, stored: StoredStudy | None = None
) -> list[TrialRecord]:
    """Run the trials that are not stored and return the records of all configurations."""
    plan = trial_plan(study, [*stored.trials, *stored.paths] if stored else ())
    log.begin(plan.records, plan.best, plan.waiting)
    cut = plan.n_left > 0 and executor.run_trials(plan, log)
    if cut:
        log.message(
            f"search.time_budget is used up: {plan.n_left} of {study.n_trials} trials were not run"
        )
    log.record(SearchRecord(len(plan.records), study.n_trials, cut))
    return plan.finish(log)


def winners(
    study: Study, records: Sequence[TrialRecord]
) -> list[tuple[OuterFold, TrialRecord, int]]:
    """Return each outer fold with its winner and the number of equal configurations."""
    preference, rule = study.preference(records), study.evaluation.choose_n
    return [
        (fold, *select_winner(records, fold.name, preference, rule)) for fold in study.plan.folds
    ]


def noise_record(study: Study, chosen: Sequence[tuple[OuterFold, TrialRecord, int]]) -> NoiseRecord:
    """Return the stability of the F-test's ranking with permuted labels.

    ``chosen`` are the `winners`, to whose samples the preparation of each outer fold is fitted.
    """
    data = study.dataset
    try:
        permutations = data.permutations(study.block_numbers)
    except DataError:  # no permutation changes a label
        return NoiseRecord(PERMUTATIONS, "nothing", [], [], [])
    seeds = (derived_seed(study.config.seed, "noise", number) for number in range(PERMUTATIONS))
    labels = [data.y[permutations.draw(np.random.default_rng(seed))] for seed in seeds]
    training_sets = [fold.train for fold in study.plan.outer]
    params = {fold.name: winner.params for fold, winner, _ in chosen}
    preparations = [study.preparation(params[fold.name]) for fold in study.plan.outer]
    values = noise_stability(
        data.X, labels, training_sets=training_sets, preparations=preparations, y=data.y
    )
    curves = [values.mean(axis=0), values.min(axis=0), values.max(axis=0)]
    plain = [[None if np.isnan(v) else round(v, 6) for v in curve.tolist()] for curve in curves]
    return NoiseRecord(PERMUTATIONS, permutations.kind, *plain)
