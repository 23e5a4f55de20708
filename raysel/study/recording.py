"""The journal's records of a study's start and end."""

from __future__ import annotations

import json
import os
import time

import numpy as np

from raysel.base.registry import solver_class
from raysel.config import StudyConfig
from raysel.study.definition import Study
from raysel.study.export import figures, markdown
from raysel.study.identity import versions
from raysel.study.result import StudyResult
from raysel.tracking.records import EndRecord, StudyRecord
from raysel.tracking.uri import absolute_uri


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
    code = [solver_class(config.solver.name), type(study.solver(study.examples[0].params))]
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
        untrusted=list(study.findings.untrusted),
    )


def resumed_record(study: Study, before: StudyRecord) -> StudyRecord:
    """Describe a study that is resumed: with the id, the start and, unless it was changed, the MLflow it had.

    Parameters
    ----------
    study : Study
        The study as it is now.
    before : StudyRecord
        Its record when it was last started.

    Returns
    -------
    StudyRecord
    """
    same = study.config.tracking.uri == before.config.get("tracking", {}).get("uri")
    return study_record(
        study, id_=before.id, uri=before.uri if same else mlflow_uri(study.config), started=before.started
    )


def mlflow_uri(config: StudyConfig) -> str:
    """Return a study's MLflow address: configured, else ``$MLFLOW_TRACKING_URI``, else a file in the working directory.

    Parameters
    ----------
    config : StudyConfig

    Returns
    -------
    str

    Raises
    ------
    ConfigError
        If the address is of no kind that MLflow knows.
    """
    return absolute_uri(config.tracking.uri or os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db")


def end_record(status: str, started: float, result: StudyResult | None = None) -> EndRecord:
    """Describe a study's end for the journal.

    Parameters
    ----------
    status : {"finished", "failed", "interrupted"}
        How the run ended.
    started : float
        Seconds since the epoch, of the study's first start.
    result : StudyResult, optional
        The result of a finished study.

    Returns
    -------
    EndRecord
        With the result's figures and its summary where there is one.
    """
    if result is None:
        return EndRecord(status, started, time.time())
    return EndRecord(status, started, time.time(), figures(result), markdown(result))
