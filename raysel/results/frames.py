"""Winners and trials of a study, finished or not, as data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from raysel.core.errors import headline
from raysel.evaluation.failing_numbers import failing_in_trials
from raysel.evaluation.records import FINAL, RefitRecord, TrialRecord
from raysel.results.records import StudyRecords
from raysel.study.stored import StoredStudy

if TYPE_CHECKING:
    import pandas as pd


def winners_frame(records: StudyRecords) -> pd.DataFrame:
    """Return a row for each outer fold that has been refitted, see `StudyResult.summary`."""
    import pandas as pd  # noqa: PLC0415 - takes half a second to import

    metric, report = records.metric, records.config["evaluation"].get("report", ())
    columns: dict[str, Any] = {
        "outer_fold": object,
        "winner": object,
        "n_features": "Int64",
        **{f"{name}_{metric}": "float64" for name in ("training", "inner", "test")},
        **{f"test_{name}": "float64" for name in report},
        "features_with_score": "Int64",
        "redundancy": "float64",
        "converged": object,
    }
    refits = records.stored.refits
    folds = [fold for fold in records.stored.study.folds if fold in refits and fold != FINAL]
    rows = [_winner_row(records, refits[fold]) for fold in folds]
    frame = pd.DataFrame(rows, columns=list(columns))
    return frame.astype({name: kind for name, kind in columns.items() if kind is not object})


def _winner_row(records: StudyRecords, refit: RefitRecord) -> list[Any]:
    evaluation, top = records.config["evaluation"], records.default_top
    redundancy = dict(zip(evaluation.get("n_features") or (top,), refit.redundancy, strict=False))
    scores = refit.feature_scores
    return [
        refit.fold,
        refit.name,
        refit.n_features,
        refit.training_score,
        refit.inner_score,
        refit.test_score,
        *map(refit.reported, evaluation.get("report", ())),
        None if scores is None else sum(score > 0 for score in scores),
        redundancy.get(top),
        refit.converged,
    ]


def trials_frame(records: StudyRecords) -> pd.DataFrame:
    """Return a row for each trial that has ended, the best first, see `StudyResult.trials`."""
    import pandas as pd  # noqa: PLC0415

    score = f"val_{records.metric}"
    if not records.trials:
        return pd.DataFrame(
            columns=["trial", "status", score, "objective", "converged", "seconds", "error"]
        )
    frame = pd.DataFrame([_trial_row(trial, records.stored) for trial in records.trials])
    return frame.sort_values(score, ascending=False, kind="stable", ignore_index=True)


def _trial_row(trial: TrialRecord, stored: StoredStudy) -> dict[str, Any]:
    metric, rule, fits = stored.study.metric, stored.study.choose_n, trial.convergence()
    curves = trial.curves(metric, stored.study.labels, rule)
    row: dict[str, Any] = {"trial": trial.id}
    if trial.fold:
        row["outer_fold"] = trial.fold
    row |= {f"param_{name}": value for name, value in trial.params.items()}
    row["status"] = trial.status
    row[f"val_{metric}"] = curves.get(f"val_{metric}", [None])[-1]
    # Not from the curves, whose sums are in another order: the winner's score is the inner score to
    # the last bit.
    for fold, trace in trial.folds.items():
        if not trace.error:
            row[f"val_{metric}/{fold}"] = trace.score(rule)
    row["objective"] = curves.get("objective", [None])[-1]
    row["converged"] = fits.n_converged / fits.n_fits if fits.n_fits else None
    # Along a path all configurations are fitted together.
    row["seconds"] = np.nan
    if not stored.paths:
        row["seconds"] = max(0.0, trial.ended - trial.started)
    row["error"] = headline(trial.failure) or "; ".join(map(str, failing_in_trials([trial])))
    return row
