"""MLflow runs of a study, derived from the journal's records: one for the study, each trial and each refit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raysel.config.flatten import flat
from raysel.cv.plan import FINAL
from raysel.cv.records import RefitRecord, TrialRecord
from raysel.tracking.directory import EXPORTED, StudyDirectory
from raysel.tracking.records import EndRecord, StudyRecord


@dataclass(frozen=True)
class RunView:
    """Content of one MLflow run.

    Parameters
    ----------
    key : str
        Identifier of the run within its study.
    name : str
        Name of the run.
    started, ended : float
        Seconds since the epoch.
    status : {"FINISHED", "FAILED", "KILLED"}, default="FINISHED"
        Final status of the run in MLflow.
    params : mapping of str to object
        Parameters, logged as text; empty by default.
    metrics : mapping of str to float or None
        Metrics with a single value; None replaces an earlier value by NaN. Empty by default.
    curves : mapping of str to sequence of float
        Metrics with a value for each iteration; empty by default.
    tags : mapping of str to str
        Tags besides those of every run; empty by default.
    artifacts : sequence of Path, default=()
        Files to upload.
    fold : str, default=""
        Outer fold of a refit, of which only the last run is valid; empty for other runs.
    stays_open : bool, default=False
        Whether the run gets more artifacts when the study ends.
    """

    key: str
    name: str
    started: float
    ended: float
    status: str = "FINISHED"
    params: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    artifacts: Sequence[Path] = ()
    fold: str = ""
    stays_open: bool = False


def study_params(study: StudyRecord) -> dict[str, Any]:
    """Return the parameters of the study's run: the flat configuration, both hashes and raysel's version.

    Parameters
    ----------
    study : StudyRecord
        Record of the study.

    Returns
    -------
    dict of str to object
        Values by dotted key.
    """
    hashes = {"config_hash": study.config_hash, "data_hash": study.data_hash}
    return {**dict(flat(study.config)), **hashes, "raysel_version": study.versions["raysel"]}


def trial_view(study: StudyRecord, record: TrialRecord) -> RunView:
    """Return the run of a trial.

    Parameters
    ----------
    study : StudyRecord
        Record of the study.
    record : TrialRecord
        Record of the trial.

    Returns
    -------
    RunView
        Run with the objective and scores by iteration.
    """
    tags = {"raysel.status": record.status}
    if record.inferred:
        tags["raysel.inferred"] = record.inferred
    if record.fold:
        tags["raysel.fold"] = record.fold
    if record.failed_folds:
        tags["raysel.failed_folds"] = ", ".join(record.failed_folds)
    if record.failure:
        tags["raysel.error"] = record.failure
    found = record.convergence()
    metrics: dict[str, float | None] = {"converged_share": found.n_converged / found.n_fits} if found.n_fits else {}
    if found.gap is not None:
        metrics["largest_gap"] = found.gap
    return RunView(
        key=f"trial:{record.id}",
        name=f"{record.fold}: {record.name}" if record.fold else record.name,
        started=record.started,
        ended=record.ended,
        status="FAILED" if record.status == "failed" else "FINISHED",
        params=record.params,
        metrics=metrics,
        curves=record.curves(study.metric, study.labels, study.choose_n),
        tags=tags,
    )


def refit_view(study: StudyRecord, directory: StudyDirectory, record: RefitRecord) -> RunView:
    """Return the run of the refit of an outer fold's winner.

    Parameters
    ----------
    study : StudyRecord
        Record of the study.
    directory : StudyDirectory
        Directory with the ranking of the outer fold.
    record : RefitRecord
        Record of the refit.

    Returns
    -------
    RunView
        Run of the refit; that of the final fold stays open until the study ends.
    """
    metrics: dict[str, float | None] = {f"inner_{study.metric}": record.inner_score}
    if record.feature_scores is not None:
        constant = set(study.constant)
        scored = (score > 0 and i not in constant for i, score in enumerate(record.feature_scores))
        metrics["features_with_score"] = sum(scored)
    if record.converged is not None:
        metrics["converged"] = float(record.converged)
    if record.gap is not None:
        metrics["gap"] = record.gap
    if record.test_score is not None:
        metrics[f"test_{study.metric}"] = record.test_score
        scores = zip(study.labels, record.test_scores, strict=False)
        metrics |= {f"test_{study.metric}_{label}": score for label, score in scores}
    for name in record.references:
        metrics[f"reference_{name.replace(' ', '_')}_{study.metric}"] = record.reference(name)
    for name, values in record.report.items():
        metrics[f"test_{name}"] = record.reported(name)
        metrics |= {f"test_{name}_{label}": value for label, value in zip(study.labels, values, strict=False)}
    if record.cpu_seconds is not None:
        metrics["cpu_seconds"] = record.cpu_seconds
    return RunView(
        key=f"refit:{record.fold}:{record.trial}",
        name=f"{record.fold}: {record.name}",
        started=record.started,
        ended=record.ended,
        params=record.params,
        metrics=metrics,
        curves={"objective": record.objective} if record.objective else {},
        tags={"raysel.trial": record.trial},
        artifacts=_existing(directory.fold_table(record.fold)),
        fold=record.fold,
        stays_open=record.fold == FINAL,
    )


def end_view(study: StudyRecord, directory: StudyDirectory, record: EndRecord) -> RunView:
    """Return the content that is added to the study's own run when the study ends.

    Parameters
    ----------
    study : StudyRecord
        Record of the study.
    directory : StudyDirectory
        Directory with the files of the study.
    record : EndRecord
        Record of the study's end.

    Returns
    -------
    RunView
        Figures, files and the summary, which MLflow shows as the description of the run.
    """
    metric, result = study.metric, record.result
    names = {
        "test_mean": f"test_{metric}",
        "test_std": f"test_{metric}_std",
        "inner_mean": f"inner_{metric}",
        "stability": "stability",
        "redundancy": "redundancy",
        "winners_converged": "winners_converged_share",
    }
    metrics = {key: result[name] for name, key in names.items() if name in result}
    metrics |= {f"test_{metric}_{task}": score for task, score in result.get("test_by_task", {}).items()}
    for name, own in result.get("report", {}).items():
        metrics |= {f"test_{name}": own["test_mean"], f"test_{name}_std": own["test_std"]}
    metrics |= _beside_the_score(metric, result)
    if "cut" in result:
        metrics["cut_by_time_budget"] = float(result["cut"])
    files = [directory.config, directory.plan, directory.traces, directory.ranking / "ranking.png"]
    if FINAL not in study.folds:  # else it goes with the model
        files.append(directory.ranking / "manifest.json")
    return RunView(
        key="study",
        name=study.name,
        started=record.started,
        ended=record.ended,
        status={"finished": "FINISHED", "failed": "FAILED"}.get(record.status, "KILLED"),
        metrics=metrics,
        tags={"mlflow.note.content": record.summary or f"The study was {record.status}."},
        artifacts=_existing(*files) if record.status == "finished" else (),
    )


def _beside_the_score(metric: str, result: Mapping[str, Any]) -> dict[str, float]:
    """Interval of the test score, training score, and references with the method's differences to them."""
    found = {f"test_{metric}_{end}": result.get("interval", {}).get(end) for end in ("lower", "upper")}
    found[f"training_{metric}"] = result.get("optimism", {}).get("training")
    for name, own in result.get("references", {}).items():
        key = f"reference_{name.replace(' ', '_')}"
        found |= {f"{key}_{metric}": own["test_mean"], f"{key}_difference": own["method_minus_it"]["mean"]}
    return {name: value for name, value in found.items() if value is not None}


def model_artifacts(directory: StudyDirectory) -> list[Path]:
    """Return the files that are added to the run of the final refit when the study is finished.

    Parameters
    ----------
    directory : StudyDirectory
        Directory with the exported result.

    Returns
    -------
    list of Path
        Files that exist; there is no ranking if the method does not rank features.
    """
    return _existing(*(directory.ranking / name for name in EXPORTED))


def _existing(*paths: Path) -> list[Path]:
    return [path for path in paths if path.exists()]
