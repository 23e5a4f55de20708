"""Trials of a study: a configuration on outer folds, or all on one inner training set.

An executor runs them, in this process or in a worker of Ray; the records are the same.
"""

from __future__ import annotations

import math
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from raysel.base.estimator import read_convergence
from raysel.core.errors import raise_storage_error
from raysel.core.machine import now, running_seconds
from raysel.evaluation.configurations import Configuration
from raysel.evaluation.lockstep import run_in_lockstep, run_in_turn
from raysel.evaluation.nested_search import empty_record
from raysel.evaluation.plan import OuterFold
from raysel.evaluation.records import FoldTrace, InnerTrace, PathRecord, TrialRecord
from raysel.evaluation.shared_steps import fit_shared
from raysel.evaluation.split import Split, set_parameters
from raysel.study.definition import Study


def trial_records(study: Study, paths: Sequence[PathRecord]) -> list[TrialRecord]:
    """Assemble a trial record of each configuration from the paths of all inner training sets."""
    by_set = {(path.fold, path.inner): path for path in paths}
    records = []
    for configuration in study.configurations:
        record = empty_record(configuration)
        record.started, record.ended = min(p.started for p in paths), max(p.ended for p in paths)
        for fold in study.plan.folds:
            inner_paths = [by_set[fold.name, i] for i in range(len(fold.inner))]
            failed = next((path for path in inner_paths if configuration.id not in path.fits), None)
            if failed is not None:
                record.folds[fold.name] = FoldTrace(
                    error=f"inner fold {failed.inner}: "
                    + failed.errors.get(configuration.id, failed.error)
                )
                continue
            fits = [replace(path.fits[configuration.id]) for path in inner_paths]
            trace = record.folds[fold.name] = FoldTrace(
                all(fit.source == "zero" for fit in fits), fits
            )
            if not study.evaluation.every_iteration:
                trace.choose_setting(study.evaluation.settings)
        _set_status(record)
        records.append(record)
    return records


def joined_record(study: Study, parts: Sequence[TrialRecord]) -> TrialRecord:
    """Join the records of one configuration on different outer folds, in any order.

    It starts as if its parts had run one after the other until it ended, since the difference is
    shown as its cost.
    """
    ended = max(part.ended for part in parts)
    started = ended - sum(part.ended - part.started for part in parts)
    failed = next((part for part in parts if part.error), None)
    if failed is not None:
        return replace(failed, started=started, ended=ended)
    traces: dict[str, FoldTrace] = {}
    for part in parts:
        traces |= part.folds
    folds = {fold.name: traces[fold.name] for fold in study.plan.folds}
    record = replace(parts[0], status="finished", folds=folds, started=started, ended=ended)
    _set_status(record)
    return record


def _set_status(record: TrialRecord) -> None:
    """Set the status by the outer folds: one that failed makes the trial fail."""
    if record.failed_folds:
        record.status = "failed"
    elif all(trace.null for trace in record.folds.values()):
        record.status = "null"


#: Returns an inner split of an outer fold, given by its number, prepared for a configuration's
#: parameters.
SplitSource = Callable[[OuterFold, int, Mapping[str, Any]], Split]


class Rung(NamedTuple):
    """Rung of early stopping that a trial has reached."""

    level: int
    score: float


def mark_stopped(record: TrialRecord | PathRecord) -> None:
    """Note in a trial's record that early stopping has ended the trial now."""
    record.status, record.ended = "stopped", now()


class Trial(ABC):
    """Base class of the trials, each of which fills one record."""

    record: TrialRecord | PathRecord

    def __init__(
        self,
        study: Study,
        config: Mapping[str, Any],
        find_split: SplitSource,
        on_limit: Callable[[float], None] | None = None,
    ) -> None:
        self._study, self._find_split, self._on_limit = study, find_split, on_limit
        self._deadline = math.inf
        self._start(config)
        self.record.started = now()

    def steps(self) -> Iterator[int]:
        """Run the trial, one iteration at a time; an error is written to the record.

        One of data, disk or store is raised: it would be the next configuration's as well.
        """
        try:
            yield from self._run()
        except Exception as error:  # a configuration that fails must not end the study  # noqa: BLE001
            raise_storage_error(error)
            self._fail(traceback.format_exc())
        self.record.ended = now()

    def rung(self, iteration: int) -> Rung | None:
        """Return the rung that is reached after this iteration; None if there is none."""
        return None

    def _start_clock(self) -> None:
        """Allow ``search.trial_timeout`` seconds from now."""
        timeout = self._study.config.search.trial_timeout
        if timeout is not None:
            self._deadline = running_seconds() + timeout
            if self._on_limit:
                self._on_limit(timeout)

    def _check_clock(self) -> None:
        """Raise TimeoutError if the time limit is exceeded."""
        if self._deadline < math.inf and running_seconds() > self._deadline:
            raise TimeoutError(
                f"over search.trial_timeout: {self._study.config.search.trial_timeout:g} s"
            )

    @abstractmethod
    def _start(self, config: Mapping[str, Any]) -> None:
        """Create the record."""

    @abstractmethod
    def _run(self) -> Iterator[int]:
        """Fill the record, one iteration at a time."""

    @abstractmethod
    def _fail(self, error: str) -> None:
        """Replace the results in the record by an error."""


class ConfigurationTrial(Trial):
    """Trial of one configuration on the inner folds of all outer folds, without test samples."""

    record: TrialRecord
    _advance = staticmethod(run_in_turn)

    def _start(self, config: Mapping[str, Any]) -> None:
        configuration: Configuration = self._study.configurations[config["configuration"]]
        self.record = empty_record(configuration)
        only = config.get("fold")
        self._folds: Sequence[OuterFold] = [
            fold for fold in self._study.plan.folds if only in (None, fold.name)
        ]

    def _run(self) -> Iterator[int]:
        study, params = self._study, self.record.params
        for fold in self._folds:
            inner = range(len(fold.inner))
            trace = self.record.folds[fold.name] = FoldTrace()
            self._start_clock()
            try:
                iterations = self._advance(
                    [
                        study.trial_solver(params, fold.random_state(study.config.seed, i))
                        for i in inner
                    ],
                    (self._find_split(fold, i, params) for i in inner),
                    study.evaluation,
                    trace,
                )
                for iteration in iterations:
                    self._check_clock()
                    yield iteration
            except Exception as error:  # the other outer folds are not affected  # noqa: BLE001
                raise_storage_error(error)
                self.record.folds[fold.name] = FoldTrace(error=traceback.format_exc())
        _set_status(self.record)

    def _fail(self, error: str) -> None:
        self.record.status, self.record.error, self.record.folds = "failed", error, {}


class FoldTrial(ConfigurationTrial):
    """Trial of one configuration on one outer fold, which may be stopped at a rung."""

    _advance = staticmethod(run_in_lockstep)

    def _start(self, config: Mapping[str, Any]) -> None:
        self._levels: frozenset[int] = frozenset()
        if self._study.config.search.early_stopping:
            self._levels = frozenset(self._study.halving().levels)
        self._folds = [fold for fold in self._study.plan.folds if fold.name == config["fold"]]
        configuration = self._study.configuration(config["params"])
        self.record = empty_record(configuration, config["fold"], config["number"])

    def rung(self, iteration: int) -> Rung | None:
        """Return the rung that is reached after this iteration; None if there is none."""
        if iteration not in self._levels:
            return None
        (trace,) = self.record.folds.values()
        return Rung(iteration, trace.score_curve(self._study.evaluation.choose_n)[-1])


class PathTrial(Trial):
    """Trial that scores configurations on one inner training set, along a path."""

    record: PathRecord

    def _start(self, config: Mapping[str, Any]) -> None:
        self._fold, self._inner = self._study.training_sets[config["training_set"]]
        self._configurations = [self._study.configurations[i] for i in config["configurations"]]
        self.record = PathRecord(self._fold.name, self._inner)

    def _run(self) -> Iterator[int]:
        study = self._study
        # All configurations on a path share one preparation.
        split = self._find_split(self._fold, self._inner, self._configurations[0].params)
        evaluation = study.evaluation
        scorers = [evaluation.scorer(split, [setting]) for setting in evaluation.settings]
        solvers = [
            study.solver(configuration.params, split.random_state)
            for configuration in self._configurations
        ]
        for solver in solvers:
            set_parameters(solver, split.parameters)
        self._start_clock()
        fitted = type(solvers[0]).fit_path(solvers, split.X_train, split.prepared)
        for number, (position, source) in enumerate(fitted):
            self._check_clock()
            solver = solvers[position]
            converged, gap = read_convergence(solver)
            objective = [float(value) for value in solver.objective_path_]
            # Only the last objective and its scores: a solution proved by a certificate has no
            # iterations.
            fit = InnerTrace(objective[-1:], [], source=source, converged=converged, gap=gap)
            for score in scorers:
                fit.add_scores(score, solver)
            self.record.fits[self._configurations[position].id] = fit
            yield number

    def _fail(self, error: str) -> None:
        self.record.status, self.record.error, self.record.fits = "failed", error, {}


class SharedStepsTrial(PathTrial):
    """Trial of a Pipeline's configurations on one inner training set, which share fitted steps."""

    def _run(self) -> Iterator[int]:
        study, record = self._study, self.record
        split = self._find_split(self._fold, self._inner, self._configurations[0].params)
        methods = [
            study.trial_solver(configuration.params, split.random_state)
            for configuration in self._configurations
        ]
        for number, (position, fit) in enumerate(fit_shared(methods, split)):
            id_ = self._configurations[position].id
            try:
                method, own = fit()
                trace = InnerTrace(converged=method.converged_)
                trace.add_scores(study.evaluation.scorer(own), method)
                record.fits[id_] = trace
            except Exception as error:  # the other configurations are not affected  # noqa: BLE001
                raise_storage_error(error)
                record.errors[id_] = traceback.format_exc()
            yield number
