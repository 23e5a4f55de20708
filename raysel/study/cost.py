"""Cost estimate of a study from pilot fits on this machine."""

from __future__ import annotations

import ctypes
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from raysel.base.estimator import Estimator, read_convergence
from raysel.core.errors import ConfigError
from raysel.core.printing import by_number
from raysel.evaluation.configurations import Configuration
from raysel.evaluation.failing_numbers import FailingNumbers, failing_numbers
from raysel.evaluation.lockstep import run_in_lockstep
from raysel.evaluation.records import EstimatorFailure, FoldTrace
from raysel.evaluation.references import inner_folds_choose, reference_scores
from raysel.evaluation.scoring_estimators import EstimatorError
from raysel.evaluation.split import Split, set_parameters
from raysel.study.definition import Study

#: A pilot fit is stopped after this many seconds of processor time.
_PILOT_SECONDS = 2.0
#: Most pilot fits that do not fail; neither a third one nor the references begin after this many
#: seconds.
_MOST_PILOTS, _MORE_SECONDS = 5, 1.0
#: Largest number of preparations that are timed if the preparation depends on parameters.
_MOST_PREPARED = 2
#: Where a pilot fit fails, other configurations are tried for this many seconds, to name those that
#: fail as well.
_MOST_SECONDS = 10.0
#: Seconds to import and start Ray with its first workers, measured on two idle cores.
RAY_SECONDS = 8.0
#: Seconds to write traces, ranking, pictures and model and to finish the upload to MLflow, measured
#: likewise.
_END_SECONDS = 6.0
#: Bytes by which a peak that was just restarted may exceed the memory in use.
_PEAK_TOLERANCE = 2**20


@dataclass(frozen=True, kw_only=True)
class CostEstimate:
    """Estimated time and memory of a study."""

    #: Seconds of all fits and references of the study if one trial runs at a time and nothing else
    #: uses the processors: from the processor time of pilot fits, or from their elapsed time where
    #: several threads take less.
    seconds: float | None
    #: Those of the references among them; 0 where they were not measured.
    reference_seconds: float
    #: Elapsed seconds of what does not depend on the fits: writing the results and finishing the
    #: upload.
    end_seconds: float
    #: Mean seconds to fit and score a configuration on the largest inner training set; None as for
    #: ``seconds``.
    fit_seconds: float | None
    at_most: bool
    #: What is known of the pilot fit that makes ``seconds`` None; empty if none does.
    unknown: str
    failures: dict[str, str]
    #: Bytes of all prepared folds.
    prepared_bytes: int
    n_fits: int
    #: Largest number of bytes that a pilot fit, with its scores, needed beside the prepared fold;
    #: each trial that runs at once needs them.
    fit_bytes: int | None
    #: Numbers of features with which the estimator fails on the largest inner training set.
    failing: Sequence[FailingNumbers] = ()


def with_executor(study: Study, cost: CostEstimate) -> Study:
    """Settle ``search.executor`` auto: serial if all fits take less than Ray's start."""
    if study.config.search.resources or cost.seconds is None or cost.seconds >= RAY_SECONDS:
        return replace(study, auto="ray")
    return replace(study, auto="serial")


def executor_sentence(study: Study, cost: CostEstimate) -> str:
    """Return what ``search.executor`` auto stands for, and why; empty if it is not auto."""
    if study.config.search.executor != "auto":
        return ""
    return f"search.executor auto is {study.executor}: {_why_executor(study, cost)}"


def _why_executor(study: Study, cost: CostEstimate) -> str:
    if study.config.search.resources:
        return "search.resources are for ray"
    if cost.seconds is None:
        return "the time of all fits is not known"
    less = "less"
    if cost.seconds >= RAY_SECONDS:
        less = "not less"
    return (
        f"all fits take about {max(1, round(cost.seconds))} s, {less} than the"
        f" {RAY_SECONDS:.0f} s of Ray's start"
    )


def estimate_cost(study: Study, n_done: int = 0) -> CostEstimate:
    """Estimate the cost of a study from pilot fits: of the first configuration, the last and some.

    The pilot fits use the largest inner training set and take a few seconds at most. The cost of a
    fit is assumed to be proportional to the number of training samples. A pilot fit that has not
    ended by then needs as many iterations as the decrease of its duality gap tells, else as many as
    the longest of the others.
    """
    fold, number = study.largest
    examples = _choose_examples(study)
    references = 0.0
    errors: dict[str, Exception] = {}
    pilots: list[_Pilot] = []
    with (
        threadpool_limits(study.config.search.cpus_per_trial),
        warnings.catch_warnings(action="ignore"),
    ):
        elapsed = _stopwatch()
        prepared: dict[str, Split] = {}
        for key, params in islice(study.prepared_examples.items(), _MOST_PREPARED):
            with suppress(Exception):  # the pilot fit meets the error again
                prepared[key] = study.trial_split(fold, number, params)
        n_keys = len(study.prepared_examples) / max(1, len(prepared))
        prepare_seconds = elapsed() * n_keys
        elapsed = _stopwatch()
        first_split = next(iter(prepared.values()), None)
        others = [other for other in study.examples if other not in examples]
        for example in (*examples, *others):
            n_begun = len(pilots) + len(errors)
            wanted = n_begun < 2 or (n_begun < len(examples) and elapsed() < _MORE_SECONDS)
            if not wanted and (not errors or elapsed() > _MOST_SECONDS):
                break
            split = prepared.get(study.prepare_key(example.params))
            try:
                pilots.append(_pilot(study, example, split))
            except Exception as error:  # a class of another package may raise anything  # noqa: BLE001
                errors[example.name] = error
        ranking_seconds = 0.0
        if pilots:
            ranking_seconds = _importance_seconds(study, pilots[0], first_split)
        if elapsed() < _MORE_SECONDS:
            references = _reference_seconds(study, first_split)
    if study.configurations and len(errors) == len(study.configurations):
        raise _explain_failures(errors, len(fold.inner[number].train))
    share = max(0, study.n_trials - n_done) / study.n_trials
    n_refits, n_tried = len(study.plan.folds), study.n_configurations * share
    known = [pilot.n_iter for pilot in pilots if pilot.ended]
    spent = [pilot.total(max(known, default=None)) for pilot in pilots]
    endless = [pilot for pilot, total in zip(pilots, spent, strict=True) if total is None]
    unknown = ""
    if not pilots:
        unknown = "the pilot fits fail"
    elif endless:
        unknown = endless[0].progress
    fit_seconds = seconds = None
    if not unknown:
        fit_seconds = sum(total for total in spent if total is not None) / len(spent)
        refit_seconds = fit_seconds + ranking_seconds
        seconds = (
            study.n_largest * (prepare_seconds + n_tried * fit_seconds)
            + n_refits * refit_seconds
            + references
        )
    peaks = [pilot.peak for pilot in pilots if pilot.peak is not None]
    return CostEstimate(
        seconds=seconds,
        reference_seconds=references,
        end_seconds=_END_SECONDS,
        fit_seconds=fit_seconds,
        at_most=study.config.search.early_stopping is not None or study.config.search.is_path,
        unknown=unknown,
        failures={name: _told(error) for name, error in errors.items()},
        prepared_bytes=round(
            study.n_largest * sum(split.nbytes for split in prepared.values()) * n_keys
        ),
        n_fits=round(n_tried * study.n_inner) + n_refits,
        fit_bytes=max(peaks, default=None),
        failing=failing_numbers((number, pilot.failing) for pilot in pilots),
    )


def _choose_examples(study: Study) -> list[Configuration]:
    """Choose configurations for pilot fits: the first, the last, and some between them."""
    n = len(study.examples)
    places = np.linspace(0, n - 1, min(n, _MOST_PILOTS)).round().astype(int).tolist()
    places.insert(1, places.pop())
    return [study.examples[place] for place in places]


def _explain_failures(errors: Mapping[str, Exception], n_samples: int) -> ConfigError:
    """Make the error of a study all of whose configurations fail."""
    n = len(errors)
    name, first = next(iter(errors.items()))
    key = "solver"
    if all(isinstance(error, EstimatorError) for error in errors.values()):
        key = "evaluation.estimator or evaluation.n_features"
    return ConfigError(
        f"{key}: {by_number(n, 'it fails', f'all {n} configurations fail')} on the {n_samples}"
        f" samples of the largest inner training set: {name}: {_told(first)}"
    )


def _told(error: Exception) -> str:
    """What happened in a pilot fit, in one line."""
    text = str(error)
    if not isinstance(error, EstimatorError):
        text = f"{type(error).__name__}: {text}"
    return text.partition("\n")[0]


def _reference_seconds(study: Study, split: Split | None) -> float:
    """Seconds to score the references of all outer folds, from those of one inner training set."""
    evaluation = study.evaluation
    if evaluation.references is not True or evaluation.is_native or split is None:
        return 0.0
    one = replace(evaluation, settings=evaluation.settings[:1], choose_n="mean")
    split = replace(split, known=None)
    elapsed = _stopwatch()
    reference_scores(split, evaluation=replace(one, references="chance"))
    guesses = elapsed()
    reference_scores(split, evaluation=one)
    rankings = elapsed() - 2 * guesses
    n_inner = 0
    if inner_folds_choose(evaluation):
        n_inner = len(study.largest[0].inner) * len(evaluation.settings)
    n_outer = sum(len(fold.test) > 0 for fold in study.plan.folds)
    return (max(0.0, rankings) * (n_inner + 1) + guesses) * n_outer


def _importance_seconds(study: Study, pilot: _Pilot, split: Split | None) -> float:
    """Seconds by which a refit takes longer than a fit of a trial, as it ranks by permutation."""
    if not study.config.solver.importance or not study.evaluation.is_native or split is None:
        return 0.0
    return _ranking_seconds(pilot.solver, pilot.seconds, split)


def _ranking_seconds(fitted: Estimator, seconds: float, split: Split) -> float:
    """Seconds to rank by permutation, from those of a fit and of predictions of some samples."""
    predictions: list[float] = []
    some = split.X_train[: max(1, len(split.X_train) // 5)]
    while len(predictions) < 30 and sum(predictions[1:]) < 0.2:  # the first one loads code
        elapsed = _stopwatch()
        fitted.predict(some)
        predictions.append(elapsed())
    return 4 * seconds + 25 * split.X_train.shape[1] * min(predictions)


@dataclass(frozen=True, kw_only=True)
class _Pilot:
    """One pilot fit: its time, iterations, duality gaps and memory."""

    seconds: float
    n_iter: int
    ended: bool
    gaps: list[float]
    solver: Estimator
    peak: int | None
    #: Where the estimator that scores the best features fails.
    failing: Sequence[EstimatorFailure] = ()

    @property
    def progress(self) -> str:
        return (
            f"after {self.n_iter} of at most {self.solver.max_steps} iterations, {self.seconds:.3g}"
            " s, a pilot fit had not ended, and nothing tells how many it needs"
        )

    def total(self, n_other: int | None) -> float | None:
        """Seconds of the whole fit, where ``n_other`` iterations ended another; None if unknown."""
        if self.ended:
            return self.seconds
        gaps = [gap for gap in self.gaps if gap > 0]
        middle = len(gaps) // 2
        if middle and gaps[-1] < gaps[middle - 1]:
            # The gap falls by a constant factor an iteration.
            rate = math.log(gaps[middle - 1] / gaps[-1]) / (len(gaps) - middle)
            tol = getattr(self.solver, "tol", gaps[-1])
            needed = math.inf
            if tol > 0:
                needed = self.n_iter + max(0.0, math.log(gaps[-1] / tol) / rate)
        elif n_other is not None:
            needed = max(n_other, self.n_iter)
        else:
            return None
        return self.seconds / self.n_iter * min(needed, self.solver.max_steps)


def _pilot(study: Study, example: Configuration, split: Split | None) -> _Pilot:
    """Fit and score a configuration on the largest inner training set for some seconds."""
    fold, number = study.largest
    state = fold.random_state(study.config.seed, number)
    split = split or study.trial_split(fold, number, example.params)
    solver = study.trial_solver(example.params, state)
    if study.config.solver.importance and not study.evaluation.is_native:
        elapsed, plain = _stopwatch(), study.solver(example.params, state, ranked=False)
        set_parameters(plain, split.parameters)
        plain.fit(split.X_train, split.y_train)
        seconds = elapsed()
        ranked = seconds + _ranking_seconds(plain, seconds, split)
        if ranked > _PILOT_SECONDS:  # scoring takes far less
            return _Pilot(seconds=ranked, n_iter=1, ended=True, gaps=[], solver=plain, peak=None)
    before, elapsed, ended, gaps, n_iter = _restart_peak(), _stopwatch(), True, [], 0
    trace = FoldTrace()
    for n_iter in run_in_lockstep([solver], [split], study.evaluation, trace):
        if (gap := read_convergence(solver)[1]) is not None:
            gaps.append(gap)
        if elapsed() > _PILOT_SECONDS and n_iter < solver.max_steps and not solver.converged_:
            ended = False
            break
    if trace.error:
        raise EstimatorError(trace.error)
    peak = None
    if before is not None:
        peak = _peak() - before
    return _Pilot(
        seconds=elapsed(),
        n_iter=n_iter,
        ended=ended,
        gaps=gaps,
        solver=solver,
        peak=peak,
        failing=trace.inner[0].failures,
    )


def _stopwatch() -> Callable[[], float]:
    """Return a function that tells the seconds since now, of the processor or, if less, elapsed."""
    processor, wall = time.process_time(), time.perf_counter()
    return lambda: min(time.process_time() - processor, time.perf_counter() - wall)


def _restart_peak() -> int | None:
    """Restart the measurement of peak memory, and return the memory; None where that is refused."""
    with suppress(OSError, AttributeError):  # not the GNU C library
        # Freed memory that the process keeps would be taken again without a trace.
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    now, peak = _memory("VmRSS"), _peak()
    if peak - now >= _PEAK_TOLERANCE:  # some sandboxes accept the request without effect
        return None
    return peak


def _peak() -> int:
    """Return the peak of this process's resident memory in bytes."""
    return _memory("VmHWM")


def _memory(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) * 1024
