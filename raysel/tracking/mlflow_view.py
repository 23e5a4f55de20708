"""Content of MLflow's runs, and addresses of its pages below that of its server."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raysel.config.plain_data import flat
from raysel.core.files import parse_json
from raysel.core.trust import hash_file, is_trusted
from raysel.evaluation.failing_numbers import failing_in_trials
from raysel.evaluation.records import FINAL, RefitRecord, TrialRecord
from raysel.tracking.directory import EXPORTED, StudyDirectory
from raysel.tracking.records import EndRecord, StudyRecord

#: Asks for the pages for training runs; MLflow opens those for language models, on which they are
#: missing, by default.
_PAGES = "workflowType=machine_learning"
#: Key of the shared view of all studies of an experiment.
ALL_STUDIES = "studies"
#: Metric of the mean test score, whatever it is: studies that are compared have it in one column.
TEST_SCORE = "test_score"
#: Tags of a study: its metric, the numbers of features that the score is of, and its verdict.
METRIC, FEATURES, VERDICT = "raysel.metric", "raysel.features", "raysel.verdict"
#: Tag of a study whose remarks question its score, and what it says.
DOUBT, DOUBTED = "raysel.doubt", "in doubt: see the remarks"
#: Ratio of the largest to the smallest value of a searched parameter from which its logarithm is
#: logged too.
_WIDE = 100.0


def runs_page(experiment_id: str, view: str = "", *, charts: bool = False) -> str:
    """Return the address of an experiment's table of training runs, or of its charts."""
    options = [_PAGES]
    if view:
        options.insert(0, f"viewStateShareKey={view}")
    if charts:
        options.append("compareRunsMode=CHART")
    return f"/#/experiments/{experiment_id}/runs?{'&'.join(options)}"


def run_page(experiment_id: str, run_id: str, artifact: str = "") -> str:
    """Return the address of a run, or of one of its artifacts."""
    shown = f"/artifacts/{artifact}" if artifact else ""
    return f"/#/experiments/{experiment_id}/runs/{run_id}{shown}?{_PAGES}"


@dataclass(frozen=True)
class RunView:
    """Content of one MLflow run."""

    key: str
    name: str
    #: Seconds since the epoch.
    started: float
    ended: float
    status: str = "FINISHED"
    params: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)
    by_number: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    artifacts: Sequence[Path] = ()


def study_params(study: StudyRecord) -> dict[str, Any]:
    """Return the parameters of the study's run: flat configuration, hashes and version."""
    hashes = {"config_hash": study.config_hash, "data_hash": study.data_hash}
    return {**dict(flat(study.config)), **hashes, "raysel_version": study.versions["raysel"]}


def log_axes(study: StudyRecord) -> dict[str, str]:
    """Return the names of the logarithms of searched parameters that span 100 and more.

    MLflow's parallel coordinates have linear axes only, on which such values fall together.
    """
    axes = {}
    for name, domain in study.config.get("solver", {}).get("space", {}).items():
        ends = next(iter(domain.values()))[:2] if isinstance(domain, Mapping) else domain
        numbers = [
            v for v in ends if isinstance(v, int | float) and not isinstance(v, bool) and v > 0
        ]
        if len(numbers) == len(ends) > 1 and max(numbers) >= _WIDE * min(numbers):
            axes[name] = f"log10_{name}"
    return axes


def trial_view(study: StudyRecord, record: TrialRecord) -> RunView:
    """Return the run of a trial."""
    tags = {
        "raysel.status": record.status,
        "raysel.inferred": record.inferred,
        "raysel.fold": record.fold,
        "raysel.failed_folds": ", ".join(record.failed_folds),
        "raysel.error": record.failure,
        "raysel.left_out": "; ".join(map(str, failing_in_trials([record]))),
    }
    fits = record.convergence()
    shown = {"largest_gap": fits.gap}
    if fits.n_fits:
        shown["converged_share"] = fits.n_converged / fits.n_fits
    return RunView(
        key=f"trial:{record.id}",
        name=": ".join(filter(None, [record.fold, record.name])),
        started=record.started,
        ended=record.ended,
        status="FAILED" if record.status == "failed" else "FINISHED",
        params={
            **record.params,
            **{axis: math.log10(record.params[name]) for name, axis in log_axes(study).items()},
        },
        metrics=_known(shown),
        curves=record.curves(study.metric, study.labels, study.choose_n),
        tags={name: value for name, value in tags.items() if value},
    )


def refit_key(record: RefitRecord) -> str:
    """Return the key of the run of a refit."""
    return f"refit:{record.fold}:{record.trial}"


def refit_view(study: StudyRecord, directory: StudyDirectory, record: RefitRecord) -> RunView:
    """Return the run of the refit of an outer fold's winner."""
    metric = study.metric
    metrics = _known(
        {
            f"inner_{metric}": record.inner_score,
            "n_features": record.n_features,
            f"training_{metric}": record.training_score,
            "converged": record.converged,
            "gap": record.gap,
            f"test_{metric}": record.test_score,
            "cpu_seconds": record.cpu_seconds,
        }
    )
    if record.feature_scores is not None:
        metrics["features_with_score"] = sum(score > 0 for score in record.feature_scores)
    metrics |= {_reference_key(name): record.reference(name) for name in record.references}
    metrics |= {f"test_{name}": record.reported(name) for name in record.report}
    by_label: dict[str, Sequence[float | None]] = {metric: record.test_scores, **record.report}
    for name, scores in by_label.items():
        metrics |= {
            f"test_{name}_{label}": score
            for label, score in zip(study.labels, scores, strict=False)
        }
    tags = {"raysel.trial": record.trial, "raysel.status": "finished"}
    if record.local_optimum:
        tags["raysel.optimum"] = "local"
    return RunView(
        key=refit_key(record),
        name=f"{record.fold}: {record.name}",
        started=record.started,
        ended=record.ended,
        params=record.params,
        metrics=metrics,
        curves={"objective": record.objective} if record.objective else {},
        tags=tags,
        artifacts=_existing(directory.fold_table(record.fold)),
    )


def end_view(study: StudyRecord, directory: StudyDirectory, record: EndRecord) -> RunView:
    """Return what is added to the study's run when it ends, from the facts in its record."""
    metric, result = study.metric, record.result
    metrics = {TEST_SCORE: result.get("test_mean"), f"{TEST_SCORE}_std": result.get("test_std")}
    names = {
        "test_mean": f"test_{metric}",
        "test_std": f"test_{metric}_std",
        "inner_mean": f"inner_{metric}",
        "stability": "stability",
        "stability_of_noise": "stability_of_noise",
        "redundancy": "redundancy",
        "winners_converged": "winners_converged_share",
    }
    metrics = _known(metrics) | {key: result[name] for name, key in names.items() if name in result}
    metrics |= _over_folds(metric, result)
    tags = {
        "mlflow.note.content": record.summary or f"The study was {record.status}.",
        "raysel.status": record.status,
        METRIC: metric,
        FEATURES: result.get("numbers", "").removeprefix("with the ").removesuffix(" features"),
        VERDICT: result.get("verdict", ""),
    }
    tags = {name: value for name, value in tags.items() if value}
    if result.get("doubted"):
        tags[DOUBT] = DOUBTED
    files = []
    if record.status == "finished":
        error_metrics, error_tags = _error_control(directory)
        metrics |= error_metrics
        tags |= error_tags
        files = [directory.config, directory.plan, directory.traces, *pictures(directory)]
        files.append(directory.report)
        if FINAL not in study.folds:  # else it goes with the model
            files.append(directory.ranking / "manifest.json")
    return RunView(
        key="study",
        name=study.name,
        started=record.started,
        ended=record.ended,
        status={"finished": "FINISHED", "failed": "FAILED"}.get(record.status, "KILLED"),
        metrics=metrics,
        by_number=_over_numbers(study, result),
        tags=tags,
        artifacts=_existing(*files),
    )


def _error_control(directory: StudyDirectory) -> tuple[dict[str, float], dict[str, str]]:
    """Return metrics and tags of the tests that the exported manifest holds."""
    try:
        manifest = parse_json((directory.ranking / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}, {}
    metrics, tags = {}, {}
    if halves := manifest.get("stability_selection"):
        bounds = halves["expected_false_selections_at_most"]
        metrics["stability_selection_features"] = float(len(halves["selected"]))
        metrics["stability_selection_bound"] = (
            bounds["simple"] if bounds["unimodal"] is None else bounds["unimodal"]
        )
        tags["raysel.stability_selection"] = " ".join(halves["sentences"])
    if test := manifest.get("permutation_test"):
        metrics["permutation_p_value"] = test["p_value"]
        metrics["permutation_smallest_p_value"] = test["smallest_possible_p_value"]
        tags["raysel.permutation_test"] = " ".join(test["sentences"])
    if claims := manifest.get("claims"):
        metrics["claimed_features"] = float(len(claims["claimed"]))
        tags["raysel.claims"] = " ".join(claims["sentences"])
        tags["raysel.claims_method"] = claims["method"]
    return metrics, tags


def exported_files(directory: StudyDirectory) -> list[Path]:
    """Return the exported files of a study, with the model if it is trusted."""
    files = [*(directory.ranking / name for name in EXPORTED), *pictures(directory)]
    model = directory.ranking / "model.skops"
    if is_trusted(model):
        files += [model, hash_file(model)]
    return _existing(*dict.fromkeys(files))


def pictures(directory: StudyDirectory) -> list[Path]:
    """Return the exported pictures of a study that MLflow can show, sorted by name."""
    return sorted(directory.ranking.glob("*.png"))


def _over_folds(metric: str, result: Mapping[str, Any]) -> dict[str, float | None]:
    """Further figures over the outer folds: interval, tasks, further metrics and references."""
    figures: dict[str, float | None] = {}
    for name, values in result.get("report", {}).items():
        figures |= {f"test_{name}": values["test_mean"], f"test_{name}_std": values["test_std"]}
    for name, values in result.get("references", {}).items():
        figures[_reference_key(name)] = values["test_mean"]
        figures[f"{_reference_key(name)}_difference"] = values["method_minus_it"]["mean"]
    figures |= {_reference_key(name): mean for name, mean in result.get("guesses", {}).items()}
    figures |= {
        f"test_{metric}_{task}": score for task, score in result.get("test_by_task", {}).items()
    }
    single = {
        f"test_{metric}_{end}": result.get("interval", {}).get(end) for end in ("lower", "upper")
    }
    single[f"training_{metric}"] = result.get("optimism", {}).get("training")
    single["cut_by_time_budget"] = result.get("cut")
    return figures | _known(single)


def _known(figures: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return figures as numbers, without those that were not recorded."""
    return {name: float(value) for name, value in figures.items() if value is not None}


def _over_numbers(study: StudyRecord, result: Mapping[str, Any]) -> dict[str, dict[int, float]]:
    """Mean over the outer folds for each number of features: test, inner and reference scores."""
    numbers = study.config.get("evaluation", {}).get("n_features") or ()
    curve = result.get("curve", {})
    if len(numbers) < 2 or len(numbers) != len(study.labels):
        return {}
    curves = {
        f"{name}_{study.metric}_over_n": curve.get(f"{name}_mean", ()) for name in ("test", "inner")
    }
    references = result.get("references", {}).items()
    curves |= {
        f"{_reference_key(name)}_over_n": reference["curve"] for name, reference in references
    }
    whole = {name: row for name, row in curves.items() if len(row) == len(numbers)}
    known = {
        name: {n: score for n, score in zip(numbers, row, strict=True) if score is not None}
        for name, row in whole.items()
    }
    return {name: scores for name, scores in known.items() if scores}


def _reference_key(name: str) -> str:
    return f"reference_{name.replace(' ', '_')}"


def _existing(*paths: Path) -> list[Path]:
    return [path for path in paths if path.exists()]
