"""Export of a finished study: its ranking, picture, model, manifest and summary as files."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from raysel.cv.records import TrialRecord
from raysel.data.layouts import Modalities
from raysel.errors import StudyError
from raysel.ranking.export import write_manifest, write_ranking
from raysel.results.pictures import KINDS, write_pictures
from raysel.results.result import StudyResult


def export_result(result: StudyResult, folder: str | Path, top: int | None = None) -> list[Path]:
    """Write the result of a study into a folder.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.
    folder : str or Path
        Folder to write to; created if it does not exist. Files of an earlier export are replaced.
    top : int, optional
        Number of features that count as selected; `StudyResult.default_top` by default.

    Returns
    -------
    list of Path
        The written files: ranking.csv and ranking.parquet (only if the method ranks features and there is a final
        model), the pictures of `draw_pictures` in the formats of the key ``pictures`` (only if there is a final
        model), model.skops (only if the model was saved) and manifest.json.

    Raises
    ------
    ConfigError
        If ``top`` is not between 1 and the number of features.
    UnfinishedStudyError
        If the study has not finished.
    StudyError
        If a file cannot be written.
    """
    folder = Path(folder)
    described = manifest(result, top)
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if result.is_ranked:
            written += write_ranking(result.ranking(top), folder)
        if result.has_final:
            written += write_pictures(result, folder, top, result.config.get("pictures", KINDS))
        if result.directory.model.exists():
            copied = folder / "model.skops"
            if copied.resolve() != result.directory.model.resolve():
                shutil.copyfile(result.directory.model, copied)
            written.append(copied)
        written.append(write_manifest(folder / "manifest.json", described))
    except OSError as error:
        raise StudyError(f"the result cannot be written to {folder}: {error.strerror}.") from error
    return written


def tasks_in_words(result: StudyResult) -> str:
    """Return each task's mean test score with its standard deviation as one line.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    str
        Empty if the data are one task.
    """
    pairs = ((name, np.mean(own), np.std(own, ddof=1)) for name, own in result.task_scores.items())
    return ", ".join(f"{name} {mean:.3f} ± {spread:.3f} (SD)" for name, mean, spread in pairs)


def stability_in_words(result: StudyResult, top: int | None = None) -> str:
    """Return the stability of the selected features as one line, with the numbers of features and folds.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study whose method ranks features.
    top : int, optional
        Number of features that count as selected; `StudyResult.default_top` by default.

    Returns
    -------
    str
        E.g. ``"of the top 10 over 5 overlapping outer folds: 0.81"``.
    """
    stability = result.stability(top)
    return f"of the top {top or result.default_top} over {len(result.outer)} overlapping outer folds: {stability}"


def redundancy_in_words(result: StudyResult, top: int | None = None) -> str:
    """Return the redundancy of the best features as one line, with what it is of and over what.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.
    top : int, optional
        Number of features that count as selected; `StudyResult.default_top` by default.

    Returns
    -------
    str
        E.g. ``"of the top 10 over all 400 samples, mean of 5 outer folds: 0.31"``; empty if it was not recorded for
        this number of features.
    """
    values = result.fold_redundancy.get(top or result.default_top)
    if values is None:
        return ""
    known, n = [value for value in values if value is not None], result.stored.study.n_samples
    value = f"{np.mean(known):.2f}" if known else "undefined (fewer than two features have a score)"
    folds = f"{len(known)} of {len(values)}" if 0 < len(known) < len(values) else f"{len(values)}"
    return f"of the top {top or result.default_top} over all {n} samples, mean of {folds} outer folds: {value}"


def report_in_words(result: StudyResult) -> str:
    """Return the mean and the standard deviation over the outer folds of each metric of ``evaluation.report``.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    str
        E.g. ``"mean_average_precision 0.873 ± 0.021 (SD)"``; empty if there are no further metrics.
    """
    return ", ".join(f"{name} {_mean_in_words(own)}" for name, own in result.report.items())


def _mean_in_words(values: Sequence[float | None]) -> str:
    mean, spread = _mean_and_sd(values)
    return "undefined on an outer fold" if np.isnan(mean) else f"{mean:.3f} ± {spread:.3f} (SD)"


def _mean_and_sd(values: Sequence[float | None]) -> tuple[float, float]:
    """Mean and standard deviation, NaN if a value is undefined."""
    numbers = np.array(values, dtype=np.float64)
    return float(np.mean(numbers)), float(np.std(numbers, ddof=1))


def markdown(result: StudyResult) -> str:
    """Return the winners and their scores as a table in Markdown, with the model, the stability and the remarks.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    str
        Text of several lines.
    """
    metric, n_scored, d = result.metric, result.n_scored, len(result.feature_names)
    inner, test = float(np.mean(result.inner_scores)), f"{result.test_mean:.3f} ± {result.test_sd:.3f} (SD)"
    ranked = result.ranks_features
    head = ["outer fold", "winner", *(["features with a score"] if ranked else []), f"inner {metric}", f"test {metric}"]
    rows = [head + [f"test {name}" for name in result.report], ["---"] * (len(head) + len(result.report))]
    for i, refit in enumerate(result.outer):
        row = [refit.fold, refit.name, *([f"{n_scored[refit.fold]}"] if ranked else [])]
        row += [f"{refit.inner_score:.3f}", f"{refit.test_score:.3f}"]
        rows.append([*row, *("undefined" if v[i] is None else f"{v[i]:.3f}" for v in result.report.values())])
    mean = ["**mean**", "", *([""] if ranked else []), f"{inner:.3f}", f"**{test}**"]
    rows.append([*mean, *(_mean_in_words(values) for values in result.report.values())])
    table = [_markdown_row(row) for row in rows]
    told = []
    if result.has_final:
        told.append(f"Model: {result.final.name}, fitted on all {result.stored.study.n_samples} samples (run `final`).")
    if result.is_ranked:
        told.append(f"{n_scored[result.final.fold]} of {d} features have a score in it.")
    if ranked:
        told.append(f"Stability {stability_in_words(result)}.")
    if redundancy := redundancy_in_words(result):
        told.append(f"Redundancy {redundancy}.")
    remarks = [f"- {remark}" for remark in result.remarks()]
    tasks = [f"Test {metric} by task: {tasks_in_words(result)}.", ""] if result.task_scores else []
    return "\n".join([*table, "", *tasks, " ".join(told), *([""] if remarks else []), *remarks])


def _markdown_row(cells: Sequence[str]) -> str:
    if set(cells) == {"---"}:
        return f"|{'|'.join(cells)}|"
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def manifest(result: StudyResult, top: int | None = None) -> dict[str, Any]:
    """Return the manifest of a study: its configuration, versions and hashes, and its results.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.
    top : int, optional
        Number of features that count as selected; `StudyResult.default_top` by default.

    Returns
    -------
    dict
        Data that `write_manifest` can write.
    """
    study, search = result.stored.study, result.stored.search
    command: str | None = "python -m raysel.tune config.yaml --set cv.plan=plan.json"
    if result.cut:
        again = f"{command} --set search.time_budget=null --set search.configurations=ranking/manifest.json"
        command = again if _is_listed(result) else None  # proposals up to a time limit cannot be repeated
    scores: dict[str, Any] = {
        "test_mean": result.test_mean,
        "test_std": result.test_sd,
        "test": result.test_scores,
        "inner": result.inner_scores,
    }
    if result.task_scores:
        scores["tasks"] = result.task_scores
    if result.report:
        scores["report"] = {
            name: dict(zip(("test_mean", "test_std", "test"), (*_mean_and_sd(values), values), strict=True))
            for name, values in result.report.items()
        }
    described = {
        "name": result.name,
        "command": command,
        "remarks": result.remarks(top),
        "config": study.config,
        "config_hash": study.config_hash,
        "data_hash": study.data_hash,
        "versions": study.versions,
        "seed": study.config["seed"],
        "metric": result.metric,
        "trials": result.n_trials,
        "search": {
            "cut_by_time_budget": result.cut,
            "n_tried": search.n_tried if search else None,
            "n_planned": search.n_planned if search else None,
        },
        "tried": [_tried(record) for record in sorted(result.records, key=lambda record: record.id)],
        "winners": {refit.fold: refit.params for refit in result.refits},
        "convergence": {r.fold: {"converged": r.converged, "relative_duality_gap": r.gap} for r in result.refits},
        "features_with_score": result.n_scored,
        "scores": scores,
    }
    if result.ranks_features:
        stability, n_selected = result.stability(top), top or result.default_top
        described |= {
            "top": n_selected,
            "stability": {
                "value": stability.value,
                "of_the_top": n_selected,
                "over": f"{len(result.outer)} overlapping outer folds",
                "undefined_because": stability.reason or None,
            },
        }
    if modalities := modality_scores(result):
        described["modality_scores"] = modalities
    if result.fold_redundancy:
        described["redundancy"] = {
            "of": "mean absolute correlation of the pairs among each outer fold's top features",
            "over": f"all {study.n_samples} samples",
            "mean_of_the_top": result.redundancy,
            "by_fold_of_the_top": result.fold_redundancy,
        }
    return described


def modality_scores(result: StudyResult) -> dict[str, dict[str, Any]]:
    """Return the scores or kernel weights of the modalities in the winner of each fold.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    dict
        By fold, then by modality: a number, or a list with one for each class or label in their order. Empty if the
        method weighs no modalities or the data have none.
    """
    layout = result.layout
    if not isinstance(layout, Modalities):
        return {}
    return {
        refit.fold: dict(zip(layout.modalities, refit.modality_scores, strict=True))
        for refit in result.refits
        if refit.modality_scores is not None and len(refit.modality_scores) == len(layout.modalities)
    }


def modalities_in_words(result: StudyResult) -> str:
    """Return the mean score or kernel weight of each modality over the winners of the outer folds as one line.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    str
        E.g. ``"HOG 0.412, LBP 0.588"``; if there is a number for each class or label, their mean. Empty if the method
        weighs no modalities or the data have none.
    """
    found = modality_scores(result)
    outer = [found[refit.fold] for refit in result.outer if refit.fold in found]
    names = outer[0] if outer else ()
    return ", ".join(f"{name} {np.mean([np.mean(own[name]) for own in outer]):.3g}" for name in names)


def figures(result: StudyResult) -> dict[str, Any]:
    """Return the figures of a finished study for the last record of its journal.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    dict
        Values of ``EndRecord.result``.
    """
    found: dict[str, Any] = {
        "test_mean": result.test_mean,
        "test_std": result.test_sd,
        "test_by_task": {name: float(np.mean(own)) for name, own in result.task_scores.items()},
        "inner_mean": float(np.mean(result.inner_scores)),
        "cut": result.cut,
    }
    if result.ranks_features:
        stability = result.stability().value
        found["stability"] = stability if np.isfinite(stability) else None
    redundancy = result.redundancy.get(result.default_top)
    if redundancy is not None:
        found["redundancy"] = redundancy if np.isfinite(redundancy) else None
    if result.report:
        means = {name: _mean_and_sd(values) for name, values in result.report.items()}
        found["report"] = {
            name: {"test_mean": mean if np.isfinite(mean) else None, "test_std": sd if np.isfinite(sd) else None}
            for name, (mean, sd) in means.items()
        }
    convergence = result.winner_convergence
    if convergence.n_fits:
        found["winners_converged"] = convergence.n_converged / convergence.n_fits
    return found


def _is_listed(result: StudyResult) -> bool:
    """Return whether the search tries a fixed list of configurations, so that a part of it can be repeated."""
    search = result.config["search"]
    return search["method"] in ("grid", "random", "sobol") and not search.get("early_stopping")


def _tried(record: TrialRecord) -> dict[str, Any]:
    found = record.convergence()
    described: dict[str, Any] = {"id": record.id, "params": record.params, "status": record.status}
    described |= {"inner_fits": found.n_fits, "converged": found.n_converged, "largest_relative_gap": found.gap}
    if record.failed_folds:
        described["failed_on"] = record.failed_folds
    return described | ({"fold": record.fold} if record.fold else {})
