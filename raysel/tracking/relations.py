"""Check of a journal's records against each other and against the study that they are of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from raysel.config import config_from_dict
from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import layout_from_json
from raysel.evaluation.plan import FINAL
from raysel.evaluation.records import FoldTrace, InnerTrace, PathRecord, RefitRecord, TrialRecord
from raysel.numerics.classification import metric_range
from raysel.tracking.records import EndRecord, NodeRecord, NoiseRecord, Record, SearchRecord, StudyRecord

#: Name of a fold, after which files are named.
_FOLD = re.compile(r"[A-Za-z0-9_-]{1,100}")
#: Id of a study, by which its runs are found in MLflow.
_ID = re.compile(r"[\w-]{1,100}")
#: Name of a metric, which is drawn and part of keys; other packages choose theirs.
_METRIC = re.compile(r"[\w .:-]{1,200}")
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
_ROUNDING = 1e-9


def check_record(record: Record, study: StudyRecord | None) -> None:
    """Check a record for values that no study can have written."""
    for field in ("started", "ended"):
        if not 0 <= getattr(record, field, 0) <= _LAST_TIME:
            raise ValueError(f"'{field}' is not a time")
    if type(record) in _STATUSES and record.status not in _STATUSES[type(record)]:  # type: ignore[union-attr]
        raise ValueError(f"'status' is none of {', '.join(_STATUSES[type(record)])}")
    if isinstance(record, StudyRecord):
        _check_study(record)
    elif isinstance(record, SearchRecord):
        _check(record.n_tried >= 0 <= record.n_planned, "a number of trials is negative")
    elif isinstance(record, NoiseRecord):
        _check_noise(record, None if study is None else len(study.feature_names))
    elif study is not None and not isinstance(record, EndRecord | NodeRecord):
        _Checker(study).check(record)


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _check_study(study: StudyRecord) -> None:
    _check(all(map(_FOLD.fullmatch, study.folds)), "a fold's name is not made of letters, digits, - and _")
    _check(len(set(study.folds)) == len(study.folds) > 0, "two folds have the same name, or there is none")
    _check(FINAL not in study.folds[:-1], f"the fold {FINAL} is not the last")
    _check(bool(_ID.fullmatch(study.id)), "its id is not made of letters, digits, - and _")
    _check(bool(_METRIC.fullmatch(study.metric)), "the name of the metric is not made of letters, digits and _")
    _check(len(study.experiment) <= 500, "the name of the experiment has more than 500 letters")
    _check(study.n_samples > 0 <= study.n_trials, "the number of samples or of trials is not positive")
    d = len(study.feature_names)
    _check(d > 0, "there are no features")
    _check(len(set(study.constant)) == len(study.constant), "a constant feature is listed twice")
    _check(all(0 <= i < d for i in study.constant), "the index of a constant feature is out of range")
    _check("raysel" in study.versions, "the version of raysel is not recorded")
    _check_config(study)
    try:
        width = layout_from_json(study.layout).n_features
    except (DataError, KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
        raise ValueError(f"the layout cannot be used: {error}") from error
    _check(width == d, f"the layout has {width} features, and {d} are named")
    tasks = study.layout.get("tasks")
    _check(tasks is None or len(tasks) == len(study.labels), "there is not one label for each task")


def _check_noise(record: NoiseRecord, d: int | None) -> None:
    _check(record.n_permutations > 0, "the number of permutations is not positive")
    for values in (record.mean, record.lowest, record.highest):
        _check(d is None or len(values) in (0, d), "the stability of noise has another number of features")
        _check(all(value is None or -1 <= value <= 1 for value in values), "a stability is outside -1 to 1")
    _check(len(record.mean) == len(record.lowest) == len(record.highest), "the stability of noise lacks values")


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
    _check(study.name == config["name"], "its name is not that of its configuration")
    _check(study.metric == config["evaluation"]["metric"], "its metric is not that of its configuration")
    sizes = config["evaluation"]["n_features"]
    scored = config["evaluation"]["classifier"] != "native"
    _check(not scored or len(study.labels) == len(sizes), "there is not one label for each number of features")


class _Checker:
    """Check of the records of trials and refits of one study."""

    def __init__(self, study: StudyRecord) -> None:
        self._study = study
        self._n_scores = max(1, len(study.labels))

    def check(self, record: TrialRecord | PathRecord | RefitRecord) -> None:
        """Raise ValueError if the record does not fit the study."""
        if record.fold or not isinstance(record, TrialRecord):
            self._check_fold(record.fold)
        if isinstance(record, TrialRecord):
            for fold, trace in record.folds.items():
                self._check_fold(fold)
                self._check_trace(trace, complete=record.status in ("finished", "null"))
        elif isinstance(record, PathRecord):
            _check(0 <= record.inner < 10**6, "the number of an inner fold is out of range")
            self._check_inner(record.fits.values(), complete=False)
        else:
            self._check_refit(record)

    def _check_fold(self, name: str) -> None:
        _check(name in self._study.folds, f"the study has no fold {name!r}")

    def _check_trace(self, trace: FoldTrace, *, complete: bool) -> None:
        if trace.error:
            return
        _check(bool(trace.inner) or not complete, "a fold has no inner fits")
        _check(len(trace.C) in (0, self._n_scores), "a fold has not one C for each number of features")
        self._check_inner(trace.inner, complete=complete)

    def _check_inner(self, fits: Iterable[InnerTrace], *, complete: bool) -> None:
        for fit in fits:
            _check(bool(fit.scores) or not complete, "an inner fit has no scores")
            for scores in fit.scores:
                _check(len(scores) == self._n_scores, f"an inner fit has {len(scores)} scores, not {self._n_scores}")
                self._check_range(scores, self._study.metric)

    def _check_range(self, scores: Sequence[float | None], metric: str) -> None:
        if known := [score for score in scores if score is not None]:
            low, high = metric_range(metric)
            inside = low - _ROUNDING <= min(known) and max(known) <= high + _ROUNDING
            _check(inside, f"a score is outside the range of {metric}, {low:g} to {high:g}")

    def _check_refit(self, record: RefitRecord) -> None:
        study, n, d = self._study, self._n_scores, len(self._study.feature_names)
        lists: dict[str, tuple[Sequence[Any] | None, tuple[int, ...]]] = {
            "feature_scores": (record.feature_scores, (d,)),
            "test_scores": (record.test_scores, (0,) if record.fold == FINAL else (n,)),
            "inner_curve": (record.inner_curve, (0, n)),
            "training_scores": (record.training_scores, (0, n)),
            "confusion": (record.confusion, (0, len(study.classes))),
            **{f"report[{name}]": (values, (0, n)) for name, values in record.report.items()},
            **{f"references[{name}]": (values, (0, 1, n)) for name, values in record.references.items()},
            "C": (record.C, (0, n)),
            **{f"reference_c[{name}]": (values, (0, 1, n)) for name, values in record.reference_c.items()},
        }
        for name, (values, lengths) in lists.items():
            if values is not None and len(values) not in lengths:
                raise ValueError(f"'{name}' has {len(values)} values, not {' or '.join(map(str, lengths))}")
        _check(record.position is None or 0 <= record.position < n, "'position' is out of range")
        _check(all(0 <= i < n for i in record.reference_positions.values()), "'reference_positions' is out of range")
        _check(record.n_tied >= 1, "'n_tied' is out of range")
        _check(record.n_features is None or 1 <= record.n_features <= d, "'n_features' is out of range")
        _check(record.n_train >= 0 <= record.n_test, "a number of samples is negative")
        widths = {len(row) for row in record.confusion}
        _check(widths <= {4} or widths == {len(study.classes)}, "a row of 'confusion' has another length")
        _check(all(count >= 0 for row in record.confusion for count in row), "a count of 'confusion' is negative")
        for scores in ([record.inner_score], record.test_scores, record.inner_curve, record.training_scores):
            self._check_range(scores, study.metric)
        for scores in record.references.values():
            self._check_range(scores, study.metric)
        for name, values in record.report.items():
            self._check_range(values, name)
