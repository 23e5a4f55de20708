"""What the journal says of a study besides its trials: its beginning, its refits, its end."""

from __future__ import annotations

import hashlib
import platform
import time
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from raysel import __version__
from raysel.config.flatten import flat
from raysel.cv.records import RefitRecord
from raysel.study.definition import Study
from raysel.study.result import EXPORTED, Outcome
from raysel.tracking.directory import StudyDirectory

_VERSIONS_OF = ("ray", "mlflow", "optuna", "numpy", "scipy", "scikit-learn", "pyarrow")


@cache
def code_version() -> str:
    """Version of raysel and a hash of its source, e.g. ``0.1.0+1f2e3d4c``.

    Returns
    -------
    str
    """
    package = Path(__file__).resolve().parent.parent
    found = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        found.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{__version__}+{found.hexdigest()[:8]}"


def study_entry(study: Study, *, id_: str, uri: str, started: float) -> dict[str, Any]:
    """What the study is: the journal's first record, and another one whenever it is resumed.

    Parameters
    ----------
    study : Study
    id_ : str
        By which MLflow's runs are found again.
    uri : str
        MLflow's.
    started : float
        Seconds since the epoch, of the first start.

    Returns
    -------
    dict
    """
    config = study.config.to_dict()
    data = study.dataset
    hashes = {"config_hash": study.config.hash, "data_hash": data.content_hash}
    versions = {"raysel": code_version(), "python": platform.python_version()}
    return {
        "kind": "study",
        "id": id_,
        "name": study.config.name,
        "experiment": study.config.tracking.experiment or study.config.name,
        "uri": uri,
        "started": started,
        "config": config,
        **hashes,
        "versions": versions | {name: version(name) for name in _VERSIONS_OF},
        "params": dict(flat(config)) | hashes | {"raysel_version": __version__},
        "metric": study.config.evaluation.metric,
        "folds": [fold.name for fold in study.plan.folds],
        "n_samples": data.n_samples,
        "n_trials": study.n_trials,
        "layout": data.layout.to_json(),
        "feature_names": list(data.feature_names),
        "constant": np.flatnonzero(data.constant).tolist(),
    }


def search_entry(study: Study, n_tried: int, cut: bool) -> dict[str, Any]:
    """How far the search went.

    Parameters
    ----------
    study : Study
    n_tried : int
        Trials that ended.
    cut : bool
        Whether ``search.time_budget`` ended it before all trials were made.

    Returns
    -------
    dict
    """
    return {"kind": "search", "n_tried": n_tried, "n_planned": study.n_trials, "cut": cut}


def refit_entry(study: Study, directory: StudyDirectory, record: RefitRecord) -> dict[str, Any]:
    """A fold's winner with its scores.

    Parameters
    ----------
    study : Study
    directory : StudyDirectory
    record : RefitRecord

    Returns
    -------
    dict
    """
    metric = study.config.evaluation.metric
    metrics = {f"inner_{metric}": record.inner_score}
    table = []
    if record.feature_scores is not None:
        metrics["features_with_score"] = study.n_scored(record.feature_scores)
        table.append(str(directory.fold_table(record.fold).relative_to(directory.path)))
    if record.converged is not None:
        metrics["converged"] = float(record.converged)
    if record.gap is not None:
        metrics["gap"] = record.gap
    if record.test_score is not None:
        metrics[f"test_{metric}"] = record.test_score
        scores = zip(study.evaluation.labels, record.test_scores, strict=False)
        metrics |= {f"test_{metric}_{label}": score for label, score in scores}
    return {
        "kind": "refit",
        **record.to_json(),
        "metrics": metrics,
        "curves": {"objective": record.objective},
        "artifacts": table,
    }


def end_entry(status: str, started: float, outcome: Outcome | None = None) -> dict[str, Any]:
    """How the study ended.

    Parameters
    ----------
    status : {"finished", "failed", "interrupted"}
    started : float
        Seconds since the epoch.
    outcome : Outcome, optional
        Of a finished one.

    Returns
    -------
    dict
    """
    entry: dict[str, Any] = {"kind": "end", "status": status, "started": started, "ended": time.time()}
    if outcome is None:
        return entry | {"metrics": {}, "artifacts": [], "model_artifacts": [], "note": f"The study was {status}."}
    metric, directory = outcome.result.metric, outcome.directory
    summary = outcome.result.summary()
    stability, found = outcome.ranking().stability.value, outcome.winner_convergence
    metrics = {
        f"test_{metric}": summary["test_mean"],
        f"test_{metric}_std": summary["test_std"],
        **{f"test_{metric}_{name}": float(np.mean(own)) for name, own in outcome.task_scores.items()},
        f"inner_{metric}": float(np.mean(summary["inner"])),
        "stability": stability if np.isfinite(stability) else None,  # so that a former value does not stay
        **({"winners_converged_share": found.n_converged / found.n_fits} if found.n_fits else {}),
        "cut_by_time_budget": float(outcome.cut),
    }
    own = (directory.config, directory.plan, directory.traces)
    exported = [directory.ranking / name for name in EXPORTED]
    return entry | {
        "metrics": metrics,
        "note": outcome.markdown(),
        "artifacts": [str(path.relative_to(directory.path)) for path in (*own, directory.ranking / "ranking.png")],
        "model_artifacts": [str(path.relative_to(directory.path)) for path in exported],
    }
