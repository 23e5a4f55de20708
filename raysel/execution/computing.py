"""Computations of an executor besides trials: prepared folds and refits of the winners."""

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
    """Scale and prepare one inner fold with ``search.cpus_per_trial`` threads.

    Parameters
    ----------
    study : Study
        The study.
    inner : InnerFold
        Inner fold to prepare.
    params : mapping of str to object
        Parameters of a configuration; all configurations with the same ``Study.prepare_key`` share the result.

    Returns
    -------
    FoldData
        Scaled samples and preparation.
    """
    with threadpool_limits(study.config.search.cpus_per_trial):
        return study.fold_data(inner, params)


def refit(study: Study, fold: OuterFold, winner: TrialRecord) -> tuple[RefitRecord, Any]:
    """Refit an outer fold's winner on its training set and score it once.

    Parameters
    ----------
    study : Study
        The study.
    fold : OuterFold
        Outer fold to refit.
    winner : TrialRecord
        Trial that was selected on this outer fold.

    Returns
    -------
    record : RefitRecord
        Record of the refit.
    model : FeaturePipeline
        Fitted scaler, selector and classifier.
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
            redundancy_sizes=study.redundancy_sizes,
            feature_names=study.dataset.feature_names,
            classes=study.dataset.classes,
            n_shown=study.default_top,
        )
