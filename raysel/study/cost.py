"""Cost estimate of a study from pilot fits on this machine."""

from __future__ import annotations

import ctypes
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from threadpoolctl import threadpool_limits

from raysel.cv.lockstep import run_in_lockstep
from raysel.cv.records import FoldTrace
from raysel.errors import RayselError
from raysel.study.definition import Study

#: A pilot fit is stopped after this many seconds, and its remaining time is extrapolated.
_PILOT_SECONDS = 2.0
#: Largest number of preparations that are timed if the preparation depends on parameters.
_MOST_PREPARED = 2
#: Seconds to import and start Ray with its first workers, measured on two idle cores.
_RAY_SECONDS = 8.0
#: Seconds to write traces, ranking, pictures and model and to finish the upload to MLflow, measured likewise.
_END_SECONDS = 6.0
#: Bytes by which a peak that was just restarted may exceed the memory in use.
_PEAK_TOLERANCE = 2**20


@dataclass(frozen=True)
class CostEstimate:
    """Estimated time and memory of a study.

    Parameters
    ----------
    seconds : float
        Seconds of all fits of the study if one trial runs at a time.
    fixed_seconds : float
        Seconds of what does not depend on the fits: starting Ray, writing the results and finishing the upload.
    fit_seconds : float
        Mean seconds to fit and score a configuration on the largest inner training set.
    at_most : bool
        Whether the estimate is an upper bound, because fits may end before the last iteration or be skipped.
    prepared_bytes : int
        Bytes of all prepared folds.
    n_fits : int
        Number of fits of the study, including the refits.
    fit_bytes : int or None
        Largest number of bytes that a pilot fit, with its scores, needed beside the prepared fold; each trial that runs
        at once needs them. None where the system does not tell.
    """

    seconds: float
    fixed_seconds: float
    fit_seconds: float
    at_most: bool
    prepared_bytes: int
    n_fits: int
    fit_bytes: int | None


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
    spent: list[float] = []
    peaks: list[int] = []
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
            before = _restart_peak()
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
            if before is not None:
                peaks.append(_peak() - before)
    share = max(0, study.n_trials - n_done) / study.n_trials
    fit_seconds, n_refits = sum(spent) / len(spent), len(study.plan.folds)
    n_tried = study.n_configurations * share
    seconds = study.n_largest * (prepare_seconds + n_tried * fit_seconds) + n_refits * fit_seconds
    n_fits = round(n_tried * study.n_inner) + n_refits
    n_bytes = sum(data.nbytes for data in prepared.values()) * n_keys / len(prepared)
    fit_bytes = max(peaks) if peaks else None
    fixed = _END_SECONDS + (_RAY_SECONDS if study.config.search.executor == "ray" else 0.0)
    return CostEstimate(seconds, fixed, fit_seconds, at_most, round(study.n_largest * n_bytes), n_fits, fit_bytes)


def _restart_peak() -> int | None:
    """Restart the measurement of this process's peak memory and return its memory; None where that is not allowed."""
    with suppress(OSError, AttributeError):  # not the GNU C library
        # Freed memory that the process keeps would be taken again without a trace.
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    now, peak = _memory("VmRSS"), _peak()
    return peak if peak - now < _PEAK_TOLERANCE else None  # some sandboxes accept the request without effect


def _peak() -> int:
    """Return the peak of this process's resident memory in bytes."""
    return _memory("VmHWM")


def _memory(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) * 1024
