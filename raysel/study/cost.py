"""What a study will cost, from a short try on this machine."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from itertools import islice

from threadpoolctl import threadpool_limits

from raysel.cv.lockstep import run_in_lockstep
from raysel.cv.records import FoldTrace
from raysel.errors import RayselError
from raysel.study.definition import Study

#: A tried fit is left off after so many seconds, and the rest of it estimated.
_PATIENCE_SECONDS = 2.0
#: Where the preparation depends on parameters, so many of its values are tried at most.
_MOST_PREPARED = 2


@dataclass(frozen=True)
class CostEstimate:
    """Seconds on one slot, and bytes.

    Parameters
    ----------
    seconds : float
        All of it, on one slot.
    fit_seconds : float
        To fit and score a configuration on the largest inner training set, the mean of those tried.
    at_most : bool
        Whether a tried fit was left off, so that it may end earlier than all its iterations.
    prepared_bytes : int
        Of all prepared training sets.
    n_fits : int
        How many the study makes, the refits included.
    """

    seconds: float
    fit_seconds: float
    at_most: bool
    prepared_bytes: int
    n_fits: int


def estimate_cost(study: Study, n_done: int = 0) -> CostEstimate:
    """Prepare the largest training set and fit the first and the last configuration on it, for some seconds at most.

    A smaller training set is taken to cost as much less as it has fewer samples.

    Parameters
    ----------
    study : Study
    n_done : int, default=0
        Trials that need not be made any more.

    Returns
    -------
    CostEstimate
    """
    fold, number = study.largest
    examples = [study.examples[0], study.examples[-1]]
    at_most = study.config.search.early_stopping is not None or study.config.search.method == "path"
    spent = []
    with threadpool_limits(study.config.search.cpus_per_trial), warnings.catch_warnings(action="ignore"):
        begun = time.perf_counter()
        prepared = {
            key: study.fold_data(fold.inner[number], params)
            for key, params in islice(study.prepared_examples.items(), _MOST_PREPARED)
        }
        n_keys = len(study.prepared_examples)
        prepare_seconds = (time.perf_counter() - begun) * n_keys / len(prepared)
        state = fold.random_state(study.config.seed, number)
        for example in examples:
            solver = study.solver(example.params, state)
            shared = prepared.get(study.prepare_key(example.params))
            data = shared or study.fold_data(fold.inner[number], example.params)
            begun = time.perf_counter()
            try:
                for iteration in run_in_lockstep([solver], [data], study.evaluation, [state], FoldTrace()):
                    elapsed = time.perf_counter() - begun
                    if elapsed > _PATIENCE_SECONDS and iteration < solver.max_steps:
                        spent.append(elapsed / iteration * solver.max_steps)
                        at_most = True
                        break
                else:
                    spent.append(time.perf_counter() - begun)
            except (ArithmeticError, ValueError, MemoryError, RayselError):
                spent.append(time.perf_counter() - begun)  # the trial will say why
    share = max(0, study.n_trials - n_done) / study.n_trials
    fit_seconds, n_refits = sum(spent) / len(spent), len(study.plan.folds)
    n_tried = study.n_configurations * share
    seconds = study.n_largest * (prepare_seconds + n_tried * fit_seconds) + n_refits * fit_seconds
    n_fits = round(n_tried * study.n_inner) + n_refits
    n_bytes = sum(data.nbytes for data in prepared.values()) * n_keys / len(prepared)
    return CostEstimate(seconds, fit_seconds, at_most, round(study.n_largest * n_bytes), n_fits)
