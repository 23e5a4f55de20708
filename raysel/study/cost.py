"""Cost estimate of a study from pilot fits on this machine."""

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

#: A pilot fit is stopped after this many seconds, and its remaining time is extrapolated.
_PILOT_SECONDS = 2.0
#: Largest number of preparations that are timed if the preparation depends on parameters.
_MOST_PREPARED = 2


@dataclass(frozen=True)
class CostEstimate:
    """Estimated time and memory of a study.

    Parameters
    ----------
    seconds : float
        Seconds of the whole study if one trial runs at a time.
    fit_seconds : float
        Mean seconds to fit and score a configuration on the largest inner training set.
    at_most : bool
        Whether the estimate is an upper bound, because fits may end before the last iteration or be skipped.
    prepared_bytes : int
        Bytes of all prepared folds.
    n_fits : int
        Number of fits of the study, including the refits.
    """

    seconds: float
    fit_seconds: float
    at_most: bool
    prepared_bytes: int
    n_fits: int


def estimate_cost(study: Study, n_done: int = 0) -> CostEstimate:
    """Estimate the cost of a study from pilot fits of the first and the last configuration.

    The pilot fits use the largest inner training set and take a few seconds at most. The cost of a fit is assumed to
    be proportional to the number of training samples.

    Parameters
    ----------
    study : Study
        Study to estimate.
    n_done : int, default=0
        Number of trials that an earlier run has finished.

    Returns
    -------
    CostEstimate
        Estimate for the remaining trials and all refits.
    """
    fold, number = study.largest
    examples = [study.examples[0], study.examples[-1]]
    at_most = study.config.search.early_stopping is not None or study.config.search.method == "path"
    spent = []
    with threadpool_limits(study.config.search.cpus_per_trial), warnings.catch_warnings(action="ignore"):
        started = time.perf_counter()
        prepared = {
            key: study.fold_data(fold.inner[number], params)
            for key, params in islice(study.prepared_examples.items(), _MOST_PREPARED)
        }
        n_keys = len(study.prepared_examples)
        prepare_seconds = (time.perf_counter() - started) * n_keys / len(prepared)
        state = fold.random_state(study.config.seed, number)
        for example in examples:
            solver = study.solver(example.params, state)
            shared = prepared.get(study.prepare_key(example.params))
            data = shared or study.fold_data(fold.inner[number], example.params)
            started = time.perf_counter()
            try:
                for iteration in run_in_lockstep([solver], [data], study.evaluation, [state], FoldTrace()):
                    elapsed = time.perf_counter() - started
                    if elapsed > _PILOT_SECONDS and iteration < solver.max_steps:
                        spent.append(elapsed / iteration * solver.max_steps)
                        at_most = True
                        break
                else:
                    spent.append(time.perf_counter() - started)
            except (ArithmeticError, ValueError, MemoryError, RayselError):
                spent.append(time.perf_counter() - started)  # the trial itself will record the error
    share = max(0, study.n_trials - n_done) / study.n_trials
    fit_seconds, n_refits = sum(spent) / len(spent), len(study.plan.folds)
    n_tried = study.n_configurations * share
    seconds = study.n_largest * (prepare_seconds + n_tried * fit_seconds) + n_refits * fit_seconds
    n_fits = round(n_tried * study.n_inner) + n_refits
    n_bytes = sum(data.nbytes for data in prepared.values()) * n_keys / len(prepared)
    return CostEstimate(seconds, fit_seconds, at_most, round(study.n_largest * n_bytes), n_fits)
