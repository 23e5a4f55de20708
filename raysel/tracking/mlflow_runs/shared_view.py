"""Shared view of a study's runs: the columns, the order and the charts that MLflow's page opens with.

MLflow's page stores a view that is shared by its button as a tag of the experiment, ``mlflow.sharedViewState.<key>``,
and reads it where the address has ``viewStateShareKey=<key>``. The value is JSON, compressed by zlib.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from raysel.tracking.mlflow_view import log_axes
from raysel.tracking.records import StudyRecord

_PREFIX = "mlflow.sharedViewState."
_COMPRESSED = "deflate;"
_KEY_LENGTH = 12
#: Width in pixels of a column of numbers of four digits below the name of a metric.
_WIDTH = 140
#: Number of curves by the number of features that are shown beside the curve of the chosen one.
_MOST_CURVES = 6


def view_key(study: StudyRecord) -> str:
    """Return the key of a study's shared view, the beginning of the study's id."""
    return study.id[:_KEY_LENGTH]


def shared_view_tag(study: StudyRecord) -> tuple[str, str]:
    """Return the tag of the experiment that holds a study's shared view."""
    text = json.dumps(shared_view(study), separators=(",", ":"), sort_keys=True)
    return f"{_PREFIX}{view_key(study)}", _COMPRESSED + base64.b64encode(zlib.compress(text.encode(), 9)).decode()


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
        *([_section("parameters", "Searched parameters", columns=1)] if searched else []),
        _section("validation", "Validation score by iteration"),
        _section("folds", score, shown=False),  # MLflow puts metrics into the section of their prefix
        _section("models", "Model metrics"),
        _section("objective", "objective", shown=False),
        _section("system", "System metrics", shown=False),
    ]
    by_number = [f"{score}_{label}" for label in study.labels[:_MOST_CURVES]]
    charts = [
        *([_parallel(_axes(study), score)] if searched else []),
        *(_line(metric, "validation") for metric in [score, *by_number]),
        _line("objective", "objective"),
    ]
    return {
        "searchFilter": f"tags.`raysel.study` = '{study.id}'",
        "orderByKey": _column("metrics", score),
        "orderByAsc": False,
        "selectedColumns": columns,
        "columnOrder": columns,
        "columnWidths": {column: _WIDTH for column in columns if column.startswith(("metrics", "params"))},
        "compareRunCharts": charts,
        "compareRunSections": sections,
        "isAccordionReordered": True,  # else MLflow sorts the sections by name
        "hideEmptyCharts": True,
    }


def searched_keys(study: StudyRecord) -> list[str]:
    """Return the searched parameters, in the order of the configuration; Python names, which are keys of MLflow."""
    return list(study.config.get("solver", {}).get("space", {}))


def _axes(study: StudyRecord) -> list[str]:
    logarithms = log_axes(study)
    return [logarithms.get(name, name) for name in searched_keys(study)]


def _column(kind: str, name: str) -> str:
    return f"{kind}.`{name}`"


def _section(key: str, name: str, *, shown: bool = True, columns: int = 2) -> dict[str, Any]:
    state = {"display": shown, "isReordered": True, "deleted": False, "isGenerated": False}
    return {"uuid": key, "name": name, "columns": columns, **state}


def _chart(kind: str, key: str, section: str) -> dict[str, Any]:
    return {"type": kind, "uuid": key, "metricSectionId": section, "deleted": False, "isGenerated": False}


def _parallel(params: list[str], score: str) -> dict[str, Any]:
    """Parallel coordinates of the parameters and the score; MLflow colours the lines by the last axis."""
    return {
        **_chart("PARALLEL", "parallel", "parameters"),
        "selectedParams": params,
        "selectedMetrics": [score],
        "showAllRuns": True,
        "displayName": f"Configurations, coloured by {score}",
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
