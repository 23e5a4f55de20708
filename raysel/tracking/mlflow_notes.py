"""Texts on MLflow's pages: the shared view of the runs, and descriptions of experiments and runs.

MLflow's page stores a view that is shared by its button as a tag of the experiment,
``mlflow.sharedViewState.<key>``, and reads it where the address has ``viewStateShareKey=<key>``.
The value is JSON, compressed by zlib.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from raysel.core.printing import markdown_text, mean_and_sd
from raysel.data.layouts import layout_from_json
from raysel.evaluation.records import RefitRecord
from raysel.tracking.directory import ComparisonRecord
from raysel.tracking.mlflow_view import (
    ALL_STUDIES,
    DOUBT,
    DOUBTED,
    FEATURES,
    METRIC,
    TEST_SCORE,
    VERDICT,
    log_axes,
    run_page,
    runs_page,
)
from raysel.tracking.records import EndRecord, StudyRecord

_PREFIX = "mlflow.sharedViewState."
_COMPRESSED = "deflate;"
_KEY_LENGTH = 12
#: Width in pixels of a column of numbers of four digits below the name of a metric.
_WIDTH = 140
#: Width of a column of sentences.
_WIDE = 420
#: Number of curves by the number of features that are shown beside the curve of the chosen one.
_MOST_CURVES = 6
#: Tag in which MLflow keeps the description of an experiment or a run.
NOTE = "mlflow.note.content"
#: Tag of an experiment with the hash of raysel's description, which tells it from one that a person
#: has written, and the time that it is of; MLflow's list of experiments hides the tags that begin
#: like its own.
_OWN_NOTE = "mlflow.raysel.note"


def view_key(study: StudyRecord) -> str:
    """Return the key of a study's shared view, the beginning of the study's id."""
    return study.id[:_KEY_LENGTH]


def shared_view_tag(study: StudyRecord) -> tuple[str, str]:
    """Return the tag of the experiment that holds a study's shared view."""
    return _view_tag(view_key(study), shared_view(study))


def _view_tag(key: str, view: Mapping[str, Any]) -> tuple[str, str]:
    text = json.dumps(view, separators=(",", ":"), sort_keys=True)
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return f"{_PREFIX}{key}", _COMPRESSED + packed


def all_studies_tag() -> tuple[str, str]:
    """Return the tag of an experiment with the view of all its studies, best first."""
    score = _column("metrics", TEST_SCORE)
    columns = [
        score,
        _column("tags", METRIC),
        _column("tags", FEATURES),
        _column("metrics", "stability"),
        _column("tags", VERDICT),
        _column("tags", DOUBT),
        _column("metrics", f"{TEST_SCORE}_std"),
        _column("metrics", "reference_chance"),
        _column("params", "solver.name"),
        _column("attributes", "Dataset"),
    ]
    view = {
        "searchFilter": "tags.`raysel.kind` = 'study'",
        "orderByKey": score,
        "orderByAsc": False,
        "selectedColumns": columns,
        "columnOrder": columns,
        "columnWidths": _widths(columns),
        "compareRunCharts": [
            _bar(TEST_SCORE, "answer"),
            _bar("stability", "answer"),
            _parallel(["solver.name", "evaluation.metric"], ["stability", TEST_SCORE], "answer"),
        ],
        "compareRunSections": [_section("answer", "Studies side by side")],
        "isAccordionReordered": True,
        "hideEmptyCharts": True,
    }
    return _view_tag(ALL_STUDIES, view)


def shared_view(study: StudyRecord) -> dict[str, Any]:
    """Return the shared view of a study's runs."""
    score, searched = f"val_{study.metric}", searched_keys(study)
    columns = [
        _column("metrics", score),
        _column("metrics", f"test_{study.metric}"),
        _column("tags", "raysel.kind"),
        *(_column("params", key) for key in searched),
        _column("tags", "raysel.status"),
        _column("attributes", "Models"),
        _column("attributes", "Dataset"),
    ]
    sections = [
        _section("validation", "Inner score by iteration"),
        # MLflow puts metrics into the section of their prefix.
        _section("folds", score, shown=False),
        _section("models", "Model metrics"),
        _section("objective", "objective", shown=False),
        _section("system", "System metrics", shown=False),
    ]
    by_number = [f"{score}_{label}" for label in study.labels[:_MOST_CURVES]]
    charts = [
        *(_line(metric, "validation") for metric in [score, *by_number]),
        _line("objective", "objective"),
    ]
    if searched:
        sections.insert(0, _section("parameters", "Searched parameters", columns=1))
        charts.insert(0, _parallel(_axes(study), [score], "parameters"))
    return {
        "searchFilter": f"tags.`raysel.study` = '{study.id}'",
        "orderByKey": _column("metrics", score),
        "orderByAsc": False,
        "selectedColumns": columns,
        "columnOrder": columns,
        "columnWidths": _widths(columns),
        "compareRunCharts": charts,
        "compareRunSections": sections,
        "isAccordionReordered": True,  # else MLflow sorts the sections by name
        "hideEmptyCharts": True,
    }


def searched_keys(study: StudyRecord) -> list[str]:
    """Return the searched parameters in the configuration's order; they are keys of MLflow."""
    return list(study.config.get("solver", {}).get("space", {}))


def _axes(study: StudyRecord) -> list[str]:
    logarithms = log_axes(study)
    return [logarithms.get(name, name) for name in searched_keys(study)]


def _column(kind: str, name: str) -> str:
    return f"{kind}.`{name}`"


def _widths(columns: Sequence[str]) -> dict[str, int]:
    """Return widths in pixels: a verdict is a sentence, all else a number or a word."""
    widths = {
        column: _WIDTH for column in columns if column.startswith(("metrics", "params", "tags"))
    }
    return widths | {_column("tags", VERDICT): _WIDE}


def _section(key: str, name: str, *, shown: bool = True, columns: int = 2) -> dict[str, Any]:
    state = {"display": shown, "isReordered": True, "deleted": False, "isGenerated": False}
    return {"uuid": key, "name": name, "columns": columns, **state}


def _chart(kind: str, key: str, section: str) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": key,
        "metricSectionId": section,
        "deleted": False,
        "isGenerated": False,
    }


def _parallel(params: list[str], metrics: list[str], section: str) -> dict[str, Any]:
    """Return parallel coordinates; MLflow colours the lines by the last axis, a score."""
    return {
        **_chart("PARALLEL", "parallel", section),
        "selectedParams": params,
        "selectedMetrics": metrics,
        "showAllRuns": True,
        "displayName": f"Coloured by {metrics[-1]}",
    }


def _bar(metric: str, section: str) -> dict[str, Any]:
    """Return a bar a run."""
    return {
        **_chart("BAR", f"bar-{metric}", section),
        "metricKey": metric,
        "runsCountToCompare": 10,
        "displayName": metric,
    }


def _line(metric: str, section: str) -> dict[str, Any]:
    return {
        **_chart("LINE", f"line-{metric}", section),
        "metricKey": metric,
        "selectedMetricKeys": [metric],
        "runsCountToCompare": 10,
        "lineSmoothness": 0,
        "scaleType": "linear",
        "xAxisKey": "step",
        "xAxisScaleType": "linear",
        "selectedXAxisMetricKey": "",
        "yAxisKey": "metric",
        "yAxisExpressions": [],
        "useGlobalXaxisKey": True,
        "useGlobalLineSmoothing": True,
    }


def note_tags(note: str, time: float, tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags that describe an experiment, unless a person or a later study has."""
    digest, _, before = tags.get(_OWN_NOTE, "").partition(" ")
    of = f"{time:020.6f}"  # sorted as text, it is by time
    if tags.get(NOTE) and (digest != _hash(tags[NOTE]) or before > of):
        return {}
    return {_OWN_NOTE: f"{_hash(note)} {of}", NOTE: note}


def comparison_note(record: ComparisonRecord, experiment_id: str, run_id: str) -> str:
    """Return the description of an experiment whose last runs are those of a comparison."""
    table = run_page(experiment_id, run_id, "comparison.md")
    links = f"[its run]({_here(run_page(experiment_id, run_id))}) · [its tables]({_here(table)})"
    return (
        f"Last comparison: {markdown_text(record.name)}, {len(record.members)} methods, tested"
        f" against {markdown_text(record.reference)} · {links}\n\n**How the runs nest.** Below the"
        " run of kind `comparison` there is one `study` for each method. Below that, there is one"
        " `trial` for each configuration, scored on the inner folds. One `refit` for the winner of"
        " each outer fold is scored once on its test samples. All methods have the same"
        " folds.\n\n**What to read.** The tables: test scores, differences to the reference with"
        " intervals and tests, and the number of configurations that each method tried."
    )


def experiment_note(
    study: StudyRecord,
    experiment_id: str,
    study_run: str,
    final_run: str = "",
    end: EndRecord | None = None,
) -> str:
    """Return the description of an experiment: what it asks, and how to read its runs."""
    val, test = f"val_{study.metric}", f"test_{study.metric}"
    table = runs_page(experiment_id, view_key(study))
    charts = runs_page(experiment_id, view_key(study), charts=True)
    links = [f"[its run]({_here(run_page(experiment_id, study_run))})"]
    if final_run:
        links.append(f"[its model]({_here(run_page(experiment_id, final_run))})")
    links += [f"[table of its runs]({_here(table)})", f"[charts]({_here(charts)})"]
    studies = runs_page(experiment_id, ALL_STUDIES)
    beside = runs_page(experiment_id, ALL_STUDIES, charts=True)
    links.append(f"[all studies of this experiment]({_here(studies)})")
    links.append(f"[the studies side by side]({_here(beside)})")
    searched = ", ".join(f"`{key}`" for key in searched_keys(study)) or "no parameter"
    # The only paragraph that is shown until a reader opens the description. MLflow's list of
    # experiments shows its beginning as plain text, so links come last.
    score, answer, numbers = "", "", ""
    if end:
        score, answer = _format_score(study, end), _answer(end)
        numbers = end.result.get("numbers", "")
    method = study.config.get("solver", {}).get("name", "the method")
    of = f"{method} {numbers or f'on data of {_n_features(study)} features'}"
    head = [score[:1].upper() + score[1:], markdown_text(of), f"last study: {study.name}"]
    last = " · ".join([", ".join(filter(None, head)), *links])
    asks = f"**What it asks.** {_question(study)}"
    nested = (
        "**How the runs nest.** Below the run of kind `study` there is one `trial` for each"
        f" configuration (searched: {searched}), scored on the inner folds. One `refit` for the"
        " winner of each outer fold is fitted on the fold's training samples and scored once on its"
        " test samples. The run `final` is the winner on all samples: the model."
    )
    order = (
        f"**What to sort by.** `{val}`, the inner score of a configuration: the mean over the"
        " outer folds of its score on their inner folds. The top row is not always the model:"
        " each fold chooses its winner on its own inner folds. Of ties, fewer features and simpler"
        f" configurations win. The best `{val}` is no estimate for new samples: it is the best of"
        f" many, and of smaller training sets. For these read `{test}` of the run of kind `study`."
    )
    found = f"**What it found.** {answer}" if answer else ""
    return "\n\n".join(filter(None, [last, found, asks, nested, order]))


def _n_features(study: StudyRecord) -> int:
    """Return the number of columns that can be selected, without confounds."""
    return len(study.feature_names) - layout_from_json(study.layout).n_beside


def _question(study: StudyRecord) -> str:
    """Return the question of a study as text, from its configuration."""
    config = study.config
    scored = config.get("evaluation", {})
    estimator = scored.get("estimator", "native")
    if isinstance(estimator, dict):
        estimator = estimator["name"]
    by = "its own prediction"
    if estimator != "native":
        number = _which_number(study, scored.get("n_features", ()))
        by = f"{estimator} on its best features, {number}"
    size = f"{study.n_samples} samples x {_n_features(study)} features"
    data = markdown_text(study.data_name)
    method = markdown_text(config.get("solver", {}).get("name", "the method"))
    return (
        f"Which features of `{data}` ({size}) tell its classes apart, and how well do they on"
        f" samples that no choice has seen? Method `{method}`; score: {study.metric} of {by}."
    )


def _which_number(study: StudyRecord, numbers: Sequence[int]) -> str:
    """Numbers of features that a score is of, after the rule that chooses one of them."""
    listed = ", ".join(map(str, numbers))
    if len(numbers) < 2:
        return f"with {listed}"
    if study.choose_n == "mean":
        return f"the mean over those with {listed}"
    return f"of which the inner folds choose how many: {listed}"


def study_note(summary: str, report: str) -> str:
    """Return the description of a study's run: the page of its report, if any, and its summary."""
    link = f"Report: [report.html]({_here(report)})" if report else ""
    return "\n\n".join(filter(None, [link, summary]))


def final_note(
    study: StudyRecord,
    end: EndRecord,
    final: RefitRecord,
    outer: Sequence[RefitRecord],
    links: Mapping[str, str],
    report: str = "",
    model: str = "",
) -> str:
    """Return the description of the final run: the honest score, and where to read on."""
    parts = []
    size = f" with {final.n_features} features" if final.n_features is not None else ""
    if score := _format_score(study, end):
        expected = "It may be expected to score as"
        if end.result.get("doubted"):
            expected = "The remarks below say why it may not score as"
        parts.append(
            f"This model is fitted on all samples, so that none is left to test it. {expected} the"
            f" study's {len(outer)} outer folds did on test samples that no choice has seen:"
            f" {score}."
        )
    if answer := _answer(end):
        parts.append(answer)
    parts.append(
        f"Model: {markdown_text(final.name)}{size}, fitted on all {study.n_samples} samples."
    )
    rows = [_fold_row(record, links.get(record.fold, "")) for record in outer]
    parts.append("\n".join(["Outer folds:", "", *rows]))
    if report:
        parts.append(f"Report: [report.html]({_here(report)})")
    if model:
        parts.append(_loading(model))
    return "\n\n".join(parts)


def _loading(model: str) -> str:
    """Say how the model is loaded: first by raysel, which needs no permission to unpickle."""
    file = f'mlflow.artifacts.download_artifacts("{model}") + "/model.skops"'
    return (
        f"To load the model: `raysel.load_model(STUDY_DIR)`, or `raysel.load_model({file})`; on"
        " another account add "
        "`trust=True` if you trust who ran the study. "
        f'MLflow\'s own `mlflow.sklearn.load_model("{model}")` '
        "needs `MLFLOW_ALLOW_PICKLE_DESERIALIZATION=true` where that is not the default."
    )


def _format_score(study: StudyRecord, end: EndRecord) -> str:
    """Mean and standard deviation over the outer folds; empty if the study has not finished."""
    mean, sd = end.result.get("test_mean"), end.result.get("test_std")
    doubt = f"; {DOUBTED}" if end.result.get("doubted") else ""
    if mean is None or sd is None:
        return ""
    return f"test {study.metric} {mean_and_sd(mean, sd)} (SD{doubt})"


def _answer(end: EndRecord) -> str:
    """Return verdict and remarks of a finished study, if its version recorded them."""
    remarks = "\n".join(f"- {remark}" for remark in end.result.get("remarks", ()))
    return markdown_text("\n\n".join(filter(None, [end.result.get("verdict", ""), remarks])))


def _fold_row(record: RefitRecord, page: str) -> str:
    name = f"[{record.fold}]({_here(page)})" if page else record.fold
    # Without a position the score is the mean over several numbers of features.
    size = f" at {record.n_features} features" if record.position is not None else ""
    score = "no test score" if record.test_score is None else f"test {record.test_score:.3f}"
    return f"- {name}: {score}{size}, inner {record.inner_score:.3f} ({markdown_text(record.name)})"


def _here(page: str) -> str:
    """The address as a link within MLflow's own page, whatever the server's address."""
    return page.removeprefix("/")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
