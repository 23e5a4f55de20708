"""Conversion of journals of earlier versions of raysel to the current schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from raysel.errors import DirectoryError
from raysel.tracking.records import SCHEMA


class Upgrader:
    """Converter of the lines of one journal to the current schema.

    Each study line sets the schema of the lines that follow it, because a journal that was started by an earlier
    version and resumed by this one has lines of both.
    """

    def __init__(self) -> None:
        self._schema: int = SCHEMA
        self._study: Mapping[str, Any] = {}

    def upgrade(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Convert the journal's next line."""
        if line.get("kind") == "study":
            schema = line.get("schema", 1)
            if schema not in range(1, SCHEMA + 1):
                raise DirectoryError(f"written by a newer version of raysel (schema {schema}); update raysel.")
            self._schema, self._study = schema, line
        if self._schema == SCHEMA:
            return line
        try:
            return _from_schema_1(line, self._study)
        except KeyError as error:
            raise DirectoryError(f"a record of kind {line.get('kind')!r} has no {error}.") from error
        except (TypeError, ValueError, AttributeError) as error:
            raise DirectoryError(f"a record of kind {line.get('kind')!r} is damaged: {error}.") from error


def _from_schema_1(line: Mapping[str, Any], study: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert a line of raysel 0.1, which has no ``schema`` and stores MLflow's params and metrics with the records."""
    if line.get("kind") == "study":
        release = line["versions"]["raysel"].partition("+")[0]
        # The hash of all source files of raysel 0.1.
        versions = {**line["versions"], "raysel": release, "numbers": line["versions"]["raysel"]}
        return {**line, "schema": SCHEMA, "versions": versions, "labels": _labels(line), "config": _config(line)}
    if line.get("kind") == "end":
        result = _result(line.get("metrics") or {}, study["metric"], _tasks(study))
        return {**line, "result": result, "summary": line.get("note", "") if result else ""}
    return line


def _config(study: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration, with the rule by which raysel 0.1 scored."""
    config: Mapping[str, Any] = study["config"]
    if config["evaluation"]["classifier"] == "native":
        return config
    return {**config, "evaluation": {**config["evaluation"], "choose_n": "mean"}}


def _tasks(study: Mapping[str, Any]) -> list[str]:
    return [name for name, _ in study["layout"].get("tasks", ())]


def _labels(study: Mapping[str, Any]) -> list[str]:
    evaluation = study["config"]["evaluation"]
    if evaluation["classifier"] == "native":
        return _tasks(study)
    return [f"n{n}" for n in evaluation["n_features"]]


def _result(metrics: Mapping[str, Any], metric: str, tasks: Iterable[str]) -> dict[str, Any]:
    if not metrics:
        return {}
    names = {
        "test_mean": f"test_{metric}",
        "test_std": f"test_{metric}_std",
        "inner_mean": f"inner_{metric}",
        "stability": "stability",
        "winners_converged": "winners_converged_share",
        "cut": "cut_by_time_budget",
    }
    result = {name: metrics[key] for name, key in names.items() if key in metrics}
    by_task = {task: metrics[f"test_{metric}_{task}"] for task in tasks if f"test_{metric}_{task}" in metrics}
    return {**result, "test_by_task": by_task}
