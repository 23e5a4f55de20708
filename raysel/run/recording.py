"""Journal records of the start and the end of a study."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from raysel.config import StudyConfig
from raysel.config.preparation import dotted_steps
from raysel.config.schema import DatasetConfig
from raysel.core.errors import DataError
from raysel.core.machine import now
from raysel.core.storage.location import as_uri
from raysel.data.formats.files import find_data_file
from raysel.data.preparation.making import step_class
from raysel.evaluation.sampler_registry import sampler_class
from raysel.evaluation.scoring_estimators import scoring_estimator_class
from raysel.numerics.metrics import metric
from raysel.results.export import markdown, told
from raysel.results.result import StudyResult
from raysel.study.definition import Study
from raysel.study.identity import versions as versions_of
from raysel.tracking.places import (
    absolute_uri,
    check_place,
    is_same_place,
    own_store,
    place_now,
)
from raysel.tracking.records import EndRecord, StudyRecord

#: Keys of a data set and of a task that name files.
_FILES = ("path", "labels", "mask", "background")


def study_record(
    study: Study,
    *,
    id_: str,
    uri: str,
    started: float,
    before: StudyRecord | None = None,
    versions: Mapping[str, str] | None = None,
) -> StudyRecord:
    """Return the record of a study, with which its journal, and each resume, begins."""
    config, data = study.config, study.dataset
    data_remarks: Sequence[str]
    data_notes: Sequence[str]
    if before is None:
        data_remarks = [*study.data_remarks.questioning, *study.scale_remarks]
        data_notes = study.data_remarks.others
    else:
        data_remarks, data_notes = before.data_remarks, before.data_notes
    return StudyRecord(
        id=id_,
        name=config.name,
        experiment=config.tracking.experiment or config.name,
        uri=uri,
        started=started,
        config=json.loads(json.dumps(config.to_dict())),
        config_hash=config.hash,
        data_hash=data.content_hash,
        versions=code_versions(study) if versions is None else versions,
        metric=config.evaluation.metric,
        labels=list(study.evaluation.labels),
        folds=[fold.name for fold in study.plan.folds],
        n_samples=data.n_samples,
        n_trials=study.n_trials,
        layout=data.layout.to_json(),
        feature_names=list(data.feature_names),
        constant=np.flatnonzero(data.constant).tolist(),
        untrusted=list(study.findings.untrusted),
        classes=[str(name) for name in data.classes],
        data_remarks=data_remarks,
        data_notes=data_notes,
        data_files=_data_files(config.dataset),
        feature_groups=study.feature_groups,
    )


def code_versions(study: Study) -> dict[str, str]:
    """Return the versions of the code that a study runs."""
    config = study.config
    # The class that the configuration names, the one that is fitted, which may wrap it, the scoring
    # estimator and the metric.
    code: list[Callable[..., Any]] = [
        *study.method_classes,
        type(study.solver(study.examples[0].params)),
    ]
    if "." in config.evaluation.estimator_name:
        code.append(scoring_estimator_class(config.evaluation.estimator_name))
    for section in (config.dataset, *(config.dataset.tasks or ())):
        code += [step_class(name) for name in dotted_steps(section.prepare)]
    code += [
        metric(name).function for name in (config.evaluation.metric, *config.evaluation.report)
    ]
    if not config.search.learns:
        return versions_of(code)
    sampler = sampler_class(config.search.method)
    return versions_of([*code, sampler], sampler.libraries)


def _data_files(config: DatasetConfig) -> dict[str, str]:
    """Return the absolute path of each file that the section names, by its key."""
    parts = [
        ("dataset", config),
        *((f"dataset.tasks.{task.name}", task) for task in config.tasks or ()),
    ]
    found = {}
    for prefix, section in parts:
        for key in _FILES:
            if path := getattr(section, key, None):
                if Path(path).is_absolute() or as_uri(path):  # own data are written later
                    found[f"{prefix}.{key}"] = path
                    continue
                with suppress(DataError):  # a file that only pictures need
                    found[f"{prefix}.{key}"] = str(find_data_file(path))
    return found


def resumed_record(study: Study, before: StudyRecord, directory: Path | None = None) -> StudyRecord:
    """Return the record of a resumed study, with the id and start of before."""
    uri = started_uri(study.config, before.config.get("tracking", {}).get("uri"), before.uri)
    if directory is not None and study.config.tracking.mlflow:
        uri = usable_store(study.config, uri, before.uri, directory)
    return study_record(
        study,
        id_=before.id,
        uri=uri,
        started=before.started,
        before=before,
    )


def usable_store(config: StudyConfig, uri: str, before: str, directory: Path) -> str:
    """Return the URI of the store of a resumed study as it is now; refuse a stranger's choice."""
    if uri == before:
        uri = place_now(uri, directory)
    if not is_same_place(uri, mlflow_uri(config)):
        check_place("tracking.uri", uri, directory)
    return uri


def mlflow_uri(config: StudyConfig) -> str:
    """Return the tracking URI of a study's MLflow.

    It is ``tracking.uri``, else the environment variable ``MLFLOW_TRACKING_URI``, else
    ``mlflow.db`` in the working directory.
    """
    if config.tracking.uri:
        return absolute_uri(config.tracking.uri)
    return own_store()


def started_uri(config: StudyConfig, named_before: str | None, before: str) -> str:
    """Return the tracking URI of a study or comparison that was started before.

    It stays as it was, unless the configuration names another one, or names none and
    ``MLFLOW_TRACKING_URI`` is set.
    """
    named = config.tracking.uri
    is_set = named is None and bool(os.environ.get("MLFLOW_TRACKING_URI"))
    if named != named_before or is_set:
        return mlflow_uri(config)
    return before


def end_record(
    status: str,
    started: float,
    result: StudyResult | None = None,
    before: EndRecord | None = None,
) -> EndRecord:
    """Return the record of a run's end, with the time before if no figure has changed."""
    ended = max(now(), started)  # the clock of an earlier run may have been ahead
    if result is None:
        return EndRecord(status, started, ended)
    figures = result.facts.end_to_json() | told(result.facts)
    if before is not None and _is_same(figures, before.result):
        ended = before.ended  # else MLflow would have each figure twice, at two times
    return EndRecord(status, started, ended=ended, result=figures, summary=markdown(result.facts))


def _is_same(figures: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    return json.dumps(figures, sort_keys=True) == json.dumps(before, sort_keys=True)
