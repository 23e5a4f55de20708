"""What a study will cost, from a short try on this machine."""

from __future__ import annotations

import time
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from raysel.cv.lockstep import run_in_lockstep
from raysel.cv.records import FoldTrace
from raysel.errors import RayselError
from raysel.search.study import Study

#: A tried fit is left off after so many seconds, and the rest of it estimated.
_PATIENCE_SECONDS = 0.7


@dataclass(frozen=True)
class Cost:
    """Seconds on one slot, and bytes.

    Parameters
    ----------
    prepare_seconds : float
        To prepare the largest inner training set.
    fit_seconds : float
        To fit and score a configuration there, the mean of those tried.
    at_most : bool
        Whether a tried fit was left off, so that it may end earlier than all its iterations.
    fold_bytes : int
        Of the largest prepared training set.
    n_prepared, n_fits : int
        How many of each the study makes, the refits included.
    """

    prepare_seconds: float
    fit_seconds: float
    at_most: bool
    fold_bytes: int
    n_prepared: int
    n_fits: int

    @property
    def seconds(self) -> float:
        """All of it, on one slot."""
        return self.n_prepared * self.prepare_seconds + self.n_fits * self.fit_seconds


def calibrate(study: Study, n_done: int = 0) -> Cost:
    """Prepare one training set and fit a few configurations on it, for a second or two.

    Parameters
    ----------
    study : Study
    n_done : int, default=0
        Trials that need not be made any more.

    Returns
    -------
    Cost
    """
    fold = study.plan.final
    number, inner = max(enumerate(fold.inner), key=lambda item: len(item[1].train))
    examples = [study.examples[0], study.examples[-1]]
    at_most = study.config.search.early_stopping is not None or study.config.search.method == "path"
    spent = []
    with threadpool_limits(study.config.search.cpus_per_trial):
        begun = time.perf_counter()
        data = study.fold_data(inner)
        prepare_seconds = time.perf_counter() - begun
        state = fold.random_state(study.config.seed, number)
        for example in examples:
            solver = study.solver(example.params, state)
            begun = time.perf_counter()
            try:
                for iteration in run_in_lockstep([solver], [data], study.evaluation, [state], FoldTrace()):
                    elapsed = time.perf_counter() - begun
                    if elapsed > _PATIENCE_SECONDS and iteration < solver.max_iter:
                        spent.append(elapsed / iteration * solver.max_iter)
                        at_most = True
                        break
                else:
                    spent.append(time.perf_counter() - begun)
            except (ArithmeticError, ValueError, MemoryError, RayselError):
                spent.append(time.perf_counter() - begun)  # the trial will say why
    share = max(0, study.n_trials - n_done) / study.n_trials
    n_fits = round(study.n_configurations * study.n_inner * share) + len(study.plan.folds)
    return Cost(prepare_seconds, sum(spent) / len(spent), at_most, data.nbytes, study.n_inner, n_fits)
