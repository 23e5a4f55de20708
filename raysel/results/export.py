"""Export of a finished study: its ranking, picture, model, manifest and summary as files."""

from __future__ import annotations

import filecmp
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from raysel.config.searches import LISTED, PATH
from raysel.core.errors import StudyError
from raysel.core.printing import markdown_text
from raysel.core.trust import copy_signed
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.ranking_files import (
    check_formats,
    write_manifest,
    write_ranking,
    write_table,
)
from raysel.evaluation.records import FINAL, TrialRecord
from raysel.results import texts
from raysel.results.facts import Facts
from raysel.results.maps import ranking_maps, write_maps
from raysel.results.remarks import format_remarks
from raysel.results.result import StudyResult
from raysel.results.tables import TextTable, markdown_table
from raysel.tracking.directory import StudyDirectory


def export_result(
    result: StudyResult,
    folder: str | Path,
    top: int | None = None,
    *,
    by: str = FINAL,
    formats: Sequence[str] = ("csv", "parquet"),
    replace: bool = True,
    pictures: Sequence[str] = (),
) -> list[Path]:
    """Write the result of a study into a folder.

    ``pictures`` are the formats of the figures' files where the configuration names none.
    """
    folder = Path(folder)
    check_formats(formats)
    described, ranking = manifest(result, top, by), None
    if by != FINAL or result.recorded.is_ranked:
        ranking = result.ranking(top, by)
    write = partial(
        _write_files,
        result,
        by=by,
        ranking=ranking,
        formats=formats,
        described=described,
        pictures=result.config.get("pictures", pictures),
    )
    try:
        if replace:
            folder.mkdir(parents=True, exist_ok=True)
            return write(folder, all_pictures=by == FINAL)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
            return _move_new(write(Path(scratch), all_pictures=False), folder)
    except OSError as error:
        raise StudyError(f"the result cannot be written to {folder}: {error.strerror}.") from error


def _write_files(
    result: StudyResult,
    folder: Path,
    *,
    by: str,
    ranking: FeatureRanking | None,
    formats: Sequence[str],
    described: Mapping[str, Any],
    pictures: Sequence[str],
    all_pictures: bool,
) -> list[Path]:
    recorded = result.recorded
    written: list[Path] = []
    if ranking is not None:
        written += write_ranking(ranking, folder, formats)
        if groups := result.facts.rank_groups(ranking):
            written += write_table(groups.to_table(), folder, "groups", formats)
        written += write_maps(ranking_maps(ranking), recorded.layout, folder)
    if pictures and (recorded.has_final or ranking is not None):
        from raysel.results.displays.registry import write_displays  # noqa: PLC0415 - loads matplotlib

        written += write_displays(
            result.facts, folder, ranking, pictures, only_ranking=not all_pictures
        )
    model, copied = recorded.directory.fold_model(by), folder / "model.skops"
    if model.exists() and copied.resolve() == model.resolve():
        written.append(copied)
    elif model.exists():
        written += copy_signed(model, copied)
    written.append(write_manifest(folder / "manifest.json", described))
    return written


def _move_new(files: Sequence[Path], folder: Path) -> list[Path]:
    """Move files into a folder, none if one of them is there with other content."""
    targets = [folder / file.name for file in files]
    pairs = list(zip(files, targets, strict=True))
    differing = [
        target.name
        for file, target in pairs
        if target.exists() and not filecmp.cmp(file, target, shallow=False)
    ]
    if differing:
        raise StudyError(
            f"{folder} holds another {', '.join(differing)}; nothing was written. Choose another"
            " folder, or have the files replaced."
        )
    folder.mkdir(exist_ok=True)
    for file, target in pairs:
        if not target.exists():
            file.rename(target)
    return targets


def markdown(facts: Facts) -> str:
    """Return winners and scores as tables in Markdown, with model, stability and remarks."""
    sentences = [f"{texts.capitalized(texts.headline(facts))}.", *texts.headline_notes(facts)]
    sentences.append(texts.rule_sentence(facts.evaluation, facts.study.choose_n))
    winners = _table(texts.winners_table(facts), -1, ("outer fold", f"test {facts.metric}"))
    parts = [" ".join(sentences), winners]
    if facts.by_task:
        by_task = texts.format_each(facts.by_task)
        parts.append(f"Test {texts.spaced(facts.metric)} by task: {by_task}.")
    if facts.references:
        parts.append(_table(texts.score_table(facts), 0, ("reference",)))
    verdicts = [*texts.verdict_sentences(facts), texts.missing_references_sentence(facts)]
    parts.append(" ".join(filter(None, verdicts)))
    curve = texts.curve_table(facts)
    if len(curve.rows) > 1:
        parts.append(_table(curve))
    parts += [texts.optimism_sentence(facts), texts.interval_footnote(facts)]
    parts.append(" ".join(_model(facts)))
    parts.append("\n".join(f"- {remark}" for remark in format_remarks(facts.remarks)))
    return markdown_text("\n\n".join(filter(None, parts)))


def told(facts: Facts) -> dict[str, Any]:
    """Return what MLflow's pages say of a study beside its figures, as plain data."""
    return {
        "numbers": texts.format_numbers(facts),
        "verdict": texts.short_verdict(facts),
        "remarks": format_remarks(facts.remarks),
        "doubted": any(remark.key == "data" for remark in facts.actions),
    }


def _table(table: TextTable, row: int = 0, bold: Sequence[str] = ()) -> str:
    """A table in Markdown, the cells of one of its rows in some columns in bold."""
    rows = [[cell.replace("|", "\\|") for cell in line] for line in table.rows]
    rows[row] = [
        f"**{cell}**" if name in bold else cell
        for name, cell in zip(table.header, rows[row], strict=True)
    ]
    return markdown_table([[name.replace("|", "\\|") for name in table.header], *rows])


def _model(facts: Facts) -> Iterator[str]:
    if facts.final is not None:
        yield (
            f"Model: {facts.final.name}, fitted on all {facts.study.n_samples} samples (run"
            " `final`)."
        )
        if facts.agreement is not None:
            yield (
                f"{facts.n_scored[facts.final.fold]} of {facts.n_features} features have a score"
                " in it."
            )
    if facts.agreement is not None:
        yield f"Stability {texts.stability(facts)}"
        if facts.agreement.consensus:
            yield facts.agreement.consensus
    if redundancy := texts.redundancy(facts):
        yield f"Redundancy {redundancy}."


def manifest(result: StudyResult, top: int | None = None, by: str = FINAL) -> dict[str, Any]:
    """Return the manifest of a study: its configuration, versions and hashes, and its results."""
    facts, study = result.facts, result.facts.study
    if top is not None or by != FINAL:
        facts = Facts(result.recorded, top, by)
    trials = sorted(result.recorded.trials, key=lambda record: record.id)
    return {
        **facts.to_json(),
        "remarks": format_remarks(facts.remarks),
        "command": command_again(result),
        "config": study.config,
        "config_hash": study.config_hash,
        "data_hash": study.data_hash,
        "data": {key.removeprefix("dataset."): path for key, path in study.data_files.items()},
        "versions": study.versions,
        "seed": study.config["seed"],
        "tried": [_tried(record) for record in trials],
    }


def command_again(result: StudyResult, name: Callable[[str | Path], str] = str) -> str | None:
    """Return the command that repeats a study; None if none does.

    By default it runs from any directory of this machine; ``name`` returns other names of its
    files.
    """
    recorded, study = result.recorded, result.facts.study
    if recorded.cut and not _is_listed(recorded.config["search"]):
        return None  # proposals up to a time limit cannot be repeated
    directory = StudyDirectory(recorded.path.absolute())
    changes: dict[str, Any] = {"cv.plan": name(directory.plan)}
    if study.config.get("output"):
        changes["output"] = None
    files = {key: name(path) for key, path in study.data_files.items()}
    changes |= {key: path for key, path in files.items() if not key.startswith("dataset.tasks.")}
    if tasks := study.config["dataset"].get("tasks"):
        changes["dataset.tasks"] = [_with_files(task, files) for task in tasks]
    if recorded.cut:
        changes |= {
            "search.time_budget": None,
            "search.configurations": name(directory.ranking / "manifest.json"),
        }
    command = ["raysel", "tune", name(directory.config)]
    for key, value in changes.items():
        if not (isinstance(value, str) and re.fullmatch(r"[\w./-]+", value)):
            value = json.dumps(value, default=str)  # noqa: PLW2901
        command += ["--set", f"{key}={value}"]
    return shlex.join(command)


def _with_files(task: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """Return the configuration of a task with the paths of its files."""
    return {
        key: files.get(f"dataset.tasks.{task['name']}.{key}", value) for key, value in task.items()
    }


def _is_listed(search: Mapping[str, Any]) -> bool:
    """Whether the search tries a fixed list of configurations, of which a part can be repeated."""
    is_listed = search["method"] in LISTED and search["method"] != PATH
    return is_listed and not search.get("early_stopping")


def _tried(record: TrialRecord) -> dict[str, Any]:
    fits = record.convergence()
    described: dict[str, Any] = {"id": record.id, "params": record.params, "status": record.status}
    described |= {
        "inner_fits": fits.n_fits,
        "converged": fits.n_converged,
        "largest_relative_gap": fits.gap,
    }
    if record.failed_folds:
        described["failed_on"] = record.failed_folds
    if record.fold:
        described["fold"] = record.fold
    return described
