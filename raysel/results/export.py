"""Export of a finished study: its ranking, picture, model, manifest and summary as files."""

from __future__ import annotations

import filecmp
import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from raysel.core.errors import StudyError
from raysel.core.printing import markdown_text
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.plan import FINAL
from raysel.evaluation.ranking_files import check_formats, write_manifest, write_maps, write_ranking
from raysel.evaluation.records import RefitRecord, TrialRecord
from raysel.results import words
from raysel.results.displays.drawing import KINDS, write_pictures
from raysel.results.error_control import error_control_figures
from raysel.results.result import StudyResult
from raysel.results.scores import score_figures
from raysel.results.trust import choose_top, noise_level, trust_figures
from raysel.tracking.directory import StudyDirectory


def export_result(
    result: StudyResult,
    folder: str | Path,
    top: int | None = None,
    *,
    by: str = FINAL,
    formats: Sequence[str] = ("csv", "parquet"),
    replace: bool = True,
) -> list[Path]:
    """Write the result of a study into a folder."""
    folder = Path(folder)
    check_formats(formats)
    described = manifest(result, top, by)
    ranking = result.ranking(top, by) if result.is_ranked or by != FINAL else None
    try:
        if replace:
            folder.mkdir(parents=True, exist_ok=True)
            return _write_files(result, folder, by, ranking, formats, described, all_pictures=by == FINAL)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
            return _move_new(
                _write_files(result, Path(scratch), by, ranking, formats, described, all_pictures=False), folder
            )
    except OSError as error:
        raise StudyError(f"the result cannot be written to {folder}: {error.strerror}.") from error


def _write_files(
    result: StudyResult,
    folder: Path,
    by: str,
    ranking: FeatureRanking | None,
    formats: Sequence[str],
    described: Mapping[str, Any],
    *,
    all_pictures: bool,
) -> list[Path]:
    written: list[Path] = []
    if ranking is not None:
        written += write_ranking(ranking, folder, formats)
        if result.layout.affine is not None:
            written += write_maps(ranking, result.layout, folder)
    if result.has_final or ranking is not None:
        kinds = result.config.get("pictures", KINDS)
        written += write_pictures(result, folder, ranking, kinds, all_of_them=all_pictures)
    model = result.directory.model if by == FINAL else result.directory.folds / f"{by}.skops"
    if model.exists():
        copied = folder / "model.skops"
        if copied.resolve() != model.resolve():
            shutil.copyfile(model, copied)
        written.append(copied)
    written.append(write_manifest(folder / "manifest.json", described))
    return written


def _move_new(files: Sequence[Path], folder: Path) -> list[Path]:
    """Move files into a folder, none if one of them is there with other content."""
    targets = [folder / file.name for file in files]
    pairs = list(zip(files, targets, strict=True))
    differing = [
        target.name for file, target in pairs if target.exists() and not filecmp.cmp(file, target, shallow=False)
    ]
    if differing:
        raise StudyError(
            f"{folder} holds another {', '.join(differing)}; nothing was written. Choose another folder, or have the "
            "files replaced."
        )
    folder.mkdir(exist_ok=True)
    for file, target in pairs:
        if not target.exists():
            file.rename(target)
    return targets


def _mean_and_sd(values: Sequence[float | None]) -> tuple[float, float]:
    """Mean and standard deviation, NaN if a value is undefined."""
    numbers = np.array(values, dtype=np.float64)
    return float(np.mean(numbers)), float(np.std(numbers, ddof=1))


def markdown(result: StudyResult) -> str:
    """Return the winners and their scores as a table in Markdown, with the model, the stability and the remarks."""
    parts = [
        f"{_capital(words.headline(result))}. {words.rule_sentence(result)}",
        _winners_table(result),
        *([f"Test {result.metric} by task: {words.tasks_in_words(result)}."] if result.task_scores else []),
        *_references(result),
        *_curve(result),
        words.optimism_sentence(result),
        words.interval_footnote(result),
        " ".join(_model(result)),
        "\n".join(f"- {remark}" for remark in result.remarks()),
    ]
    return markdown_text("\n\n".join(part for part in parts if part))


def _winners_table(result: StudyResult) -> str:
    metric, n_scored = result.metric, result.n_scored
    ranked, chosen = result.ranks_features, words.shows_n_features(result)
    head = ["outer fold", "winner", *(["best features"] if chosen else [])]
    head += [*(["features with a score"] if ranked else []), f"inner {metric}", f"test {metric}"]
    rows = [head + [f"test {name}" for name in result.report]]
    for i, refit in enumerate(result.outer):
        row = [refit.fold, refit.name, *([f"{refit.n_features}"] if chosen else [])]
        row += [*([f"{n_scored[refit.fold]}"] if ranked else []), f"{refit.inner_score:.3f}", f"{refit.test_score:.3f}"]
        rows.append([*row, *("undefined" if v[i] is None else f"{v[i]:.3f}" for v in result.report.values())])
    mean = ["**mean**", *[""] * (1 + chosen + ranked), f"{np.mean(result.inner_scores):.3f}"]
    mean += [f"**{words.values_in_words(result.test_scores)}**"]
    return _table([*rows, [*mean, *(words.values_in_words(values) for values in result.report.values())]])


def _references(result: StudyResult) -> list[str]:
    missing = words.missing_references_sentence(result)
    if not result.references:
        return [missing]
    head = ["reference", "features", f"test {result.metric}", f"method minus it [{words.interval_name(result)}]"]
    table = _table([head, *([f"**{row.name}**" if not i else row.name, *row[1:]] for i, row in _rows(result))])
    return [table, " ".join([*words.verdict_sentences(result), *([missing] if missing else [])])]


def _rows(result: StudyResult) -> Iterator[tuple[int, words.ScoreRow]]:
    return enumerate(words.score_rows(result))


def _curve(result: StudyResult) -> list[str]:
    header, rows = words.curve_rows(result)
    return [_table([header, *rows])] if len(rows) > 1 else []


def _model(result: StudyResult) -> Iterator[str]:
    if result.has_final:
        yield f"Model: {result.final.name}, fitted on all {result.stored.study.n_samples} samples (run `final`)."
    if result.is_ranked:
        scored, d = result.n_scored[result.final.fold], len(result.feature_names)
        yield f"{scored} of {d} features have a score in it."
    if result.ranks_features:
        yield f"Stability {words.stability_in_words(result)}."
        if told := result.consensus_sentence():
            yield told
    if redundancy := words.redundancy_in_words(result):
        yield f"Redundancy {redundancy}."


def _table(rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; the first row is its header."""
    return "\n".join(map(_markdown_row, [rows[0], ["---"] * len(rows[0]), *rows[1:]]))


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _markdown_row(cells: Sequence[str]) -> str:
    if set(cells) == {"---"}:
        return f"|{'|'.join(cells)}|"
    return "|" + "|".join(f" {cell} " if cell else " " for cell in (c.replace("|", "\\|") for c in cells)) + "|"


def manifest(result: StudyResult, top: int | None = None, by: str = FINAL) -> dict[str, Any]:
    """Return the manifest of a study: its configuration, versions and hashes, and its results."""
    study, search = result.stored.study, result.stored.search
    scores: dict[str, Any] = {
        "test_mean": result.test_mean,
        "test_std": result.test_sd,
        "test": result.test_scores,
        "inner": result.inner_scores,
    }
    scores |= _score_figures(result)
    if result.task_scores:
        scores["tasks"] = result.task_scores
    if result.report:
        scores["report"] = {
            name: dict(zip(("test_mean", "test_std", "test"), (*_mean_and_sd(values), values), strict=True))
            for name, values in result.report.items()
        }
    described = {
        "name": result.name,
        "command": command_again(result),
        "remarks": result.remarks(choose_top(result, top, by).n),
        "config": study.config,
        "config_hash": study.config_hash,
        "data_hash": study.data_hash,
        "data": {key.removeprefix("dataset."): path for key, path in study.data_files.items()},
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
        "convergence": {refit.fold: _convergence(refit) for refit in result.refits},
        "features_with_score": result.n_scored,
        "scores": scores,
    }
    described |= trust_figures(result, top, by)
    described |= error_control_figures(result)
    if modalities := result.modality_scores:
        described["modality_scores"] = modalities
    if result.fold_redundancy:
        described["redundancy"] = {
            "of": "mean absolute correlation of the pairs among each outer fold's top features",
            "over": f"all {study.n_samples} samples",
            "mean_of_the_top": result.redundancy,
            "by_fold_of_the_top": result.fold_redundancy,
        }
    return described


def command_again(result: StudyResult, name: Callable[[str | Path], str] = str) -> str | None:
    """Return the command that repeats a study; None if none does.

    By default it runs from any directory of this machine; ``name`` returns other names of its files.
    """
    if result.cut and not _is_listed(result):
        return None  # proposals up to a time limit cannot be repeated
    directory, study = StudyDirectory(result.directory.path.absolute()), result.stored.study
    changes: dict[str, Any] = {"cv.plan": name(directory.plan)}
    if study.config.get("output"):
        changes["output"] = None
    files = {key: name(path) for key, path in study.data_files.items()}
    changes |= {key: path for key, path in files.items() if not key.startswith("dataset.tasks.")}
    if tasks := study.config["dataset"].get("tasks"):
        changes["dataset.tasks"] = [_with_files(task, files) for task in tasks]
    if result.cut:
        changes |= {"search.time_budget": None, "search.configurations": name(directory.ranking / "manifest.json")}
    words = ["python", "-m", "raysel.tune", name(directory.config)]
    for key, value in changes.items():
        plain = isinstance(value, str) and re.fullmatch(r"[\w./-]+", value)
        words += ["--set", f"{key}={value if plain else json.dumps(value, default=str)}"]
    return shlex.join(words)


def _with_files(task: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """Return the configuration of a task with the paths at which its files were found."""
    return {key: files.get(f"dataset.tasks.{task['name']}.{key}", value) for key, value in task.items()}


def figures(result: StudyResult) -> dict[str, Any]:
    """Return the figures of a finished study for the last record of its journal."""
    found: dict[str, Any] = {
        "test_mean": result.test_mean,
        "test_std": result.test_sd,
        "test_by_task": {name: float(np.mean(own)) for name, own in result.task_scores.items()},
        "inner_mean": float(np.mean(result.inner_scores)),
        "cut": result.cut,
        **_score_figures(result),
    }
    if result.ranks_features:
        stability = result.stability().value
        found["stability"] = stability if np.isfinite(stability) else None
        if (noise := noise_level(result, result.default_top)) is not None:
            found["stability_of_noise"] = noise.mean
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


def _score_figures(result: StudyResult) -> dict[str, Any]:
    """Return how the numbers of features were chosen, by fold, and the figures beside the test scores."""
    chosen = {"choose_n": result.stored.study.choose_n if result.n_features else None, "n_features": result.n_features}
    return chosen | score_figures(result.outer, result.score_curves(), result.metric)


def _convergence(refit: RefitRecord) -> dict[str, Any]:
    """Return whether a fit met its tol, whether that proves an optimum, and what another start finds."""
    found = {"converged": refit.converged, "relative_duality_gap": refit.gap, "local_optimum": refit.local_optimum}
    return found | ({"other_start": refit.other_start} if refit.other_start else {})


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
