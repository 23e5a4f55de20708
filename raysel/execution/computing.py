"""What an executor computes besides trials: prepared training sets and the winners' refits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadpoolctl import threadpool_limits

from raysel.cv.plan import InnerFold, OuterFold
from raysel.cv.prepared import FoldData
from raysel.cv.records import RefitRecord, TrialRecord
from raysel.cv.refit import refit_winner
from raysel.study.definition import Study


def prepare_fold(study: Study, inner: InnerFold, params: Mapping[str, Any]) -> FoldData:
    """Scale and prepare one inner training set with ``search.cpus_per_trial`` threads.

    Parameters
    ----------
    study : Study
    inner : InnerFold
    params : mapping
        Of a configuration; all of one ``Study.prepare_key`` share what is prepared.

    Returns
    -------
    FoldData
    """
    with threadpool_limits(study.config.search.cpus_per_trial):
        return study.fold_data(inner, params)


def refit(study: Study, fold: OuterFold, winner: TrialRecord) -> tuple[RefitRecord, Any]:
    """Refit an outer fold's winner on its training set and score it once.

    Parameters
    ----------
    study : Study
    fold : OuterFold
    winner : TrialRecord

    Returns
    -------
    record : RefitRecord
    model : Pipeline
        Scaler and solver, fitted.
    """
    state = fold.random_state(study.config.seed)
    with threadpool_limits(study.config.search.cpus_per_trial):
        return refit_winner(
            study.dataset.X,
            study.dataset.y,
            fold,
            winner,
            study.solver(winner.params, state),
            scaler=study.scaler(),
            evaluation=study.evaluation,
            random_state=state,
        )
