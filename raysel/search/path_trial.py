"""One Ray Tune trial: all configurations on one inner training set, along a path of certificates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from raysel.cv.convergence import convergence_of
from raysel.cv.records import FoldTrace, InnerTrace, PathRecord, TrialRecord
from raysel.registry import path_fitter
from raysel.search.study import Study
from raysel.search.trial import FoldsTrial


class PathTrial(FoldsTrial):
    """Scores configurations on one inner training set."""

    _record: PathRecord

    def _begin(self, config: Mapping[str, Any]) -> None:
        self._fold, self._inner = self._study.training_sets[config["piece"]["set"]]
        self._configurations = [self._study.configurations[i] for i in config["piece"]["configurations"]]
        self._record = PathRecord(self._fold.name, self._inner)

    def _run(self) -> Iterator[int]:
        study, data = self._study, self._fold_data(self._fold, self._inner)
        state = self._fold.random_state(study.config.seed, self._inner)
        score = study.evaluation.scorer(data.X_train, data.y_train, data.X_test, data.y_test, state)
        solvers = [study.solver(configuration.params, state) for configuration in self._configurations]
        self._start_clock()
        fitted = path_fitter(study.config.solver.name)(solvers, data.X_train, data.prepared)
        for number, (position, source) in enumerate(fitted):
            self._check_clock()
            solver = solvers[position]
            converged, gap = convergence_of(solver)
            objective = [float(value) for value in solver.objective_path_]
            # Scored once, at the end: what a certificate finds has no iterations.
            self._record.fits[self._configurations[position].id] = InnerTrace(
                objective[-1:], [score(solver).tolist()], source, converged, gap
            )
            yield number

    def _fail(self, error: str) -> None:
        self._record.status, self._record.error, self._record.fits = "failed", error, {}


def trial_records(study: Study, paths: Sequence[PathRecord]) -> list[TrialRecord]:
    """What all paths together say of each configuration.

    Parameters
    ----------
    study : Study
    paths : sequence of PathRecord
        One for each inner training set, in any order.

    Returns
    -------
    list of TrialRecord
        In the order of the configurations.
    """
    found = {(path.fold, path.inner): path for path in paths}
    records = []
    for configuration in study.configurations:
        record = TrialRecord(configuration.id, configuration.name, dict(configuration.params), "finished")
        record.started, record.ended = min(p.started for p in paths), max(p.ended for p in paths)
        for fold in study.plan.folds:
            own = [found[fold.name, i] for i in range(len(fold.inner))]
            failed = next((path for path in own if configuration.id not in path.fits), None)
            if failed is not None:
                record.folds[fold.name] = FoldTrace(error=f"inner fold {failed.inner}: {failed.error}")
                continue
            fits = [path.fits[configuration.id] for path in own]
            record.folds[fold.name] = FoldTrace(all(fit.source == "zero" for fit in fits), fits)
        if record.failed_folds:
            record.status = "failed"
        elif all(trace.null for trace in record.folds.values()):
            record.status = "null"
        records.append(record)
    return records
