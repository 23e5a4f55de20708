"""Check of a journal's records for what would break a reader: names, indices, lengths.

A forged figure of the right type and length is a lie that no check can find.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from raysel.config import config_from_dict
from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import layout_from_json
from raysel.evaluation.plan import FINAL
from raysel.evaluation.records import InnerTrace, PathRecord, RefitRecord, TrialRecord
from raysel.tracking.records import EndRecord, NoiseRecord, Record, StudyRecord

#: Name of a fold, after which files are named.
_FOLD = re.compile(r"[A-Za-z0-9_-]{1,100}")
#: Id of a study, by which its runs are found in MLflow.
_ID = re.compile(r"[\w-]{1,100}")
#: Seconds since the epoch at the end of the year 9999.
_LAST_TIME = 253402300799.0
#: Keys that every configuration in a journal has.
_KEYS = (
    "seed",
    *("dataset.scaling", "solver.name", "cv.outer", "search.method", "search.synchronous"),
    *("evaluation.classifier", "evaluation.metric", "evaluation.n_neighbors", "evaluation.n_features"),
)
_STATUSES = {
    TrialRecord: ("finished", "null", "stopped", "failed"),
    PathRecord: ("finished", "stopped", "failed"),
    EndRecord: ("finished", "failed", "interrupted"),
}


def check_record(record: Record, study: StudyRecord | None) -> None:
    """Check a record against the study that it is of."""
    for field in ("started", "ended"):
        _check(0 <= getattr(record, field, 0) <= _LAST_TIME, f"'{field}' is not a time")
    known = _STATUSES.get(type(record))
    _check(not known or getattr(record, "status", "") in known, f"'status' is none of {known}")
    if isinstance(record, StudyRecord):
        _check_study(record)
    elif study is None:
        return
    elif isinstance(record, NoiseRecord):
        lengths = {len(record.mean), len(record.lowest), len(record.highest)}
        _check(lengths in ({0}, {len(study.feature_names)}), "the stability of noise has another number of features")
    elif isinstance(record, TrialRecord | PathRecord | RefitRecord):
        _check(not record.fold or record.fold in study.folds, f"the study has no fold {record.fold!r}")
        _check_fits(record, study)


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _check_study(study: StudyRecord) -> None:
    _check(all(map(_FOLD.fullmatch, study.folds)), "a fold's name is not made of letters, digits, - and _")
    _check(len(set(study.folds)) == len(study.folds) > 0, "two folds have the same name, or there is none")
    _check(FINAL not in study.folds[:-1], f"the fold {FINAL} is not the last")
    _check(bool(_ID.fullmatch(study.id)), "its id is not made of letters, digits, - and _")
    _check(study.n_samples > 0 <= study.n_trials, "the number of samples or of trials is not positive")
    d = len(study.feature_names)
    _check(all(0 <= i < d for i in study.constant), "the index of a constant feature is out of range")
    _check("raysel" in study.versions, "the version of raysel is not recorded")
    _check_config(study)
    try:
        width = layout_from_json(study.layout).n_features
    except (DataError, KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
        raise ValueError(f"the layout cannot be used: {error}") from error
    _check(width == d > 0, f"the layout has {width} features, and {d} are named")
    tasks = study.layout.get("tasks")
    _check(tasks is None or len(tasks) == len(study.labels), "there is not one label for each task")


def _check_config(study: StudyRecord) -> None:
    config = study.config
    for dotted in _KEYS:
        value: Any = config
        for key in dotted.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        _check(value is not None, f"its configuration has no {dotted}")
    _check(not isinstance(config["search"].get("configurations"), str), "search.configurations names a file")
    try:
        config_from_dict(config, "its configuration")
    except ConfigError as error:
        raise ValueError(f"{error}\nIf a newer version of raysel wrote it, update raysel") from error
    named = (config["name"], config["evaluation"]["metric"])
    _check((study.name, study.metric) == named, "its name or metric is not that of its configuration")
    scored = config["evaluation"]["classifier"] != "native"
    sizes = config["evaluation"]["n_features"]
    _check(not scored or len(study.labels) == len(sizes), "there is not one label for each number of features")


def _check_fits(record: TrialRecord | PathRecord | RefitRecord, study: StudyRecord) -> None:
    n = max(1, len(study.labels))
    if isinstance(record, RefitRecord):
        _check_refit(record, study, n)
    elif isinstance(record, PathRecord):
        _check_inner(record.fits.values(), n, complete=False)
    else:
        for fold, trace in record.folds.items():
            _check(fold in study.folds, f"the study has no fold {fold!r}")
            if not trace.error:
                complete = record.status in ("finished", "null")
                _check(bool(trace.inner) or not complete, "a fold has no inner fits")
                _check(len(trace.C) in (0, n), "a fold has not one C for each number of features")
                _check_inner(trace.inner, n, complete=complete)


def _check_inner(fits: Iterable[InnerTrace], n: int, *, complete: bool) -> None:
    for fit in fits:
        _check(bool(fit.scores) or not complete, "an inner fit has no scores")
        for scores in fit.scores:
            _check(len(scores) == n, f"an inner fit has {len(scores)} scores, not {n}")


def _check_refit(record: RefitRecord, study: StudyRecord, n: int) -> None:
    d, n_classes = len(study.feature_names), len(study.classes)
    lists: dict[str, tuple[Sequence[Any] | None, tuple[int, ...]]] = {
        "feature_scores": (record.feature_scores, (d,)),
        "test_scores": (record.test_scores, (0,) if record.fold == FINAL else (n,)),
        "inner_curve": (record.inner_curve, (0, n)),
        "training_scores": (record.training_scores, (0, n)),
        "C": (record.C, (0, n)),
        "confusion": (record.confusion, (0, n_classes)),
        **{f"report[{name}]": (values, (0, n)) for name, values in record.report.items()},
        **{f"references[{name}]": (values, (0, 1, n)) for name, values in record.references.items()},
        **{f"reference_c[{name}]": (values, (0, 1, n)) for name, values in record.reference_c.items()},
    }
    for name, (values, lengths) in lists.items():
        if values is not None and len(values) not in lengths:
            raise ValueError(f"'{name}' has {len(values)} values, not {' or '.join(map(str, lengths))}")
    widths = {len(row) for row in record.confusion}
    _check(widths <= {4} or widths == {n_classes}, "a row of 'confusion' has another length")
    positions = [record.position or 0, *record.reference_positions.values()]
    _check(all(0 <= position < n for position in positions), "'position' is out of range")
    _check(record.n_features is None or 1 <= record.n_features <= d, "'n_features' is out of range")
