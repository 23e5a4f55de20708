"""The journal's records of a study's start and end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from raysel.base.registry import path_fitter, solver_class
from raysel.study.definition import Study
from raysel.study.identity import versions
from raysel.study.result import Outcome
from raysel.tracking.records import EndRecord, StudyRecord


def study_record(study: Study, *, id_: str, uri: str, started: float) -> StudyRecord:
    """Describe a study for the journal: its first record, and another one whenever it is resumed.

    Parameters
    ----------
    study : Study
        The study.
    id_ : str
        Identifies the study's runs in MLflow.
    uri : str
        MLflow's address.
    started : float
        Seconds since the epoch, of the first start.

    Returns
    -------
    StudyRecord
        Its fields are plain data, as they are read back from the journal.
    """
    config, data = study.config, study.dataset
    # The class that is named and the one that is fitted, which may wrap it.
    code: list[Callable[..., Any]] = [solver_class(config.solver.name), type(study.solver(study.examples[0].params))]
    if config.search.method == "path":
        code.append(path_fitter(config.solver.name))
    return StudyRecord(
        id=id_,
        name=config.name,
        experiment=config.tracking.experiment or config.name,
        uri=uri,
        started=started,
        config=json.loads(json.dumps(config.to_dict())),
        config_hash=config.hash,
        data_hash=data.content_hash,
        versions=versions(code, uses_optuna=config.search.method == "tpe"),
        metric=config.evaluation.metric,
        labels=list(study.evaluation.labels),
        folds=[fold.name for fold in study.plan.folds],
        n_samples=data.n_samples,
        n_trials=study.n_trials,
        layout=data.layout.to_json(),
        feature_names=list(data.feature_names),
        constant=np.flatnonzero(data.constant).tolist(),
    )


def end_record(status: str, started: float, outcome: Outcome | None = None) -> EndRecord:
    """Describe a study's end for the journal.

    Parameters
    ----------
    status : {"finished", "failed", "interrupted"}
        How the run ended.
    started : float
        Seconds since the epoch, of the study's first start.
    outcome : Outcome, optional
        The result of a finished study.

    Returns
    -------
    EndRecord
        With the result's figures and its summary where there is one.
    """
    if outcome is None:
        return EndRecord(status, started, time.time())
    summary, stability = outcome.result.summary(), outcome.ranking().stability.value
    found = outcome.winner_convergence
    result = {
        "test_mean": summary["test_mean"],
        "test_std": summary["test_std"],
        "test_by_task": {name: float(np.mean(own)) for name, own in outcome.task_scores.items()},
        "inner_mean": float(np.mean(summary["inner"])),
        "stability": stability if np.isfinite(stability) else None,  # replaces the value of a study that has grown
        **({"winners_converged": found.n_converged / found.n_fits} if found.n_fits else {}),
        "cut": outcome.cut,
    }
    return EndRecord(status, started, time.time(), result, outcome.markdown())
