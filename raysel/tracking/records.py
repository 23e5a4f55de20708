"""Records of a study's journal, and their check for what would break a reader.

A forged figure of the right type and length is a lie that no check can find.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

from raysel.config import config_from_dict
from raysel.config.plain_data import OWN_DATA
from raysel.core.credentials import keep_all_credentials
from raysel.core.errors import ConfigError, DataError
from raysel.core.files import make_instance
from raysel.data.layouts import layout_from_json
from raysel.evaluation.outputs import TestOutputs
from raysel.evaluation.records import (
    FINAL,
    ChooseN,
    InnerTrace,
    PathRecord,
    RefitRecord,
    TrialRecord,
)

#: Version of the format; increase it when a record changes its fields, and convert the former lines
#: in the journal.
SCHEMA = 3

#: Fields of a study's record that can name URIs.
_WITH_URIS = ("uri", "config", "data_files")
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
    *(
        "evaluation.estimator",
        "evaluation.metric",
        "evaluation.n_neighbors",
        "evaluation.n_features",
    ),
)


@dataclass(frozen=True)
class StudyRecord:
    """Definition of a study, the journal's first record, written again when it is resumed."""

    #: Id of the study's runs in MLflow.
    id: str
    #: Name of the study.
    name: str
    #: Name of the MLflow experiment.
    experiment: str
    #: Tracking URI of MLflow.
    uri: str
    #: Time of the first start, in seconds since the epoch.
    started: float
    #: The whole configuration as plain data.
    config: Mapping[str, Any]
    #: Hash of the configuration's identity.
    config_hash: str
    #: Hash of the data's content.
    data_hash: str
    #: Versions of ``raysel``, of the libraries that it uses and of Python, and ``numbers``, a hash
    #: of the source that the study's numbers depend on.
    versions: Mapping[str, str]
    #: Name of the metric, e.g. ``"accuracy"``.
    metric: str
    #: Name of each score of a fit, e.g. ``["n10", "n20"]``; empty if there is one score.
    labels: Sequence[str]
    #: Names of the outer folds, the final one last if there is one.
    folds: Sequence[str]
    #: Number of samples.
    n_samples: int
    #: Largest number of trials of the search.
    n_trials: int
    #: Layout of the data as `Layout.to_json` returns it.
    layout: Mapping[str, Any]
    #: Name of each feature.
    feature_names: Sequence[str]
    #: Indices of the features that have the same value in all samples.
    constant: Sequence[int]
    #: Types in the fitted method that a model file cannot hold.
    untrusted: Sequence[str] = field(default_factory=list)
    #: Names of the classes, those of all tasks, or of the labels; empty if they were not recorded.
    classes: Sequence[str] = field(default_factory=list)
    #: Remarks on the data that give a reason to distrust the scores, made at the study's start.
    data_remarks: Sequence[str] = field(default_factory=list)
    #: Those that do not; up to version 0.8 they stand among the others.
    data_notes: Sequence[str] = field(default_factory=list)
    #: Absolute path at which each file of the configuration was found, by its key, e.g.
    #: ``"dataset.path"``, or ``"dataset.tasks.faces.path"`` for a task; empty if they were not
    #: recorded.
    data_files: Mapping[str, str] = field(default_factory=dict)
    #: Indices of the features of each group, by its name; empty without groups.
    feature_groups: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def data_name(self) -> str:
        """Name of the data: of the tasks, of the file, of the built-in set, or own samples."""
        dataset = self.config.get("dataset", {})
        if tasks := dataset.get("tasks"):
            return " + ".join(str(task["name"]) for task in tasks)
        file = str(dataset.get("path") or "").replace("\\", "/").rpartition("/")[2]
        if file == OWN_DATA:
            return "own samples"
        return str(file or dataset.get("source") or "data")

    @property
    def choose_n(self) -> ChooseN:
        """Rule that chooses the number of features; ``mean`` before there was a choice."""
        rule: ChooseN = self.config["evaluation"].get("choose_n", "mean")
        return rule


@dataclass(frozen=True)
class SearchRecord:
    """End of a search."""

    #: Number of trials that ended.
    n_tried: int
    #: Largest number of trials of the search.
    n_planned: int
    #: Whether ``search.time_budget`` ended the search before all trials were made.
    cut: bool


@dataclass(frozen=True)
class NoiseRecord:
    """Stability of an F-test ranking of permuted labels over the outer training sets."""

    #: Number of permutations.
    n_permutations: int
    #: What exchanges its labels, as in `LabelPermutations.kind`.
    exchanged: str
    #: Over the permutations, of the N best features for N from 1 to the number of features; None
    #: where undefined.
    mean: Sequence[float | None]
    lowest: Sequence[float | None]
    highest: Sequence[float | None]


@dataclass(frozen=True)
class EndRecord:
    """End of a run of a study."""

    #: State in which the run ended.
    status: str
    #: Times of the study's first start and of this end, in seconds since the epoch.
    started: float
    ended: float
    #: Figures of a finished study, empty by default: ``test_mean`` and ``test_std`` over the outer
    #: folds, ``test_by_task`` (a mapping), ``inner_mean``, ``stability``, ``stability_of_noise``
    #: (its mean with permuted labels) and ``redundancy`` (of the default top; None if undefined),
    #: ``winners_converged`` (a share), ``cut`` (by the time budget), ``report`` (``test_mean`` and
    #: ``test_std`` of each further metric by its name), ``guesses`` (mean of each), ``choose_n``,
    #: ``n_features``, ``interval``, ``references``, ``optimism`` and ``curve``, as the manifest has
    #: them; in words the ``numbers`` of features that the score is of, the ``verdict``, the
    #: ``remarks``, and whether the score is ``doubted`` by one on the data.
    result: Mapping[str, Any] = field(default_factory=dict)
    #: Result of a finished study in Markdown; empty otherwise.
    summary: str = ""


@dataclass(frozen=True)
class NodeRecord:
    """Node of a cluster that was allowed to compute with other versions than the study's driver."""

    #: Address of the node.
    node: str
    #: Name, version of the driver and version of the node, of each that differs and can change a
    #: number.
    versions: Sequence[tuple[str, str, str]]

    @property
    def sentence(self) -> str:
        """Remark for the study's result."""
        changes = ", ".join(
            f"{name} {there} instead of {here}" for name, here, there in self.versions
        )
        return f"The node {self.node} computed with other versions, which was allowed: {changes}."


Record: TypeAlias = (
    StudyRecord
    | TrialRecord
    | PathRecord
    | SearchRecord
    | RefitRecord
    | NoiseRecord
    | EndRecord
    | NodeRecord
)

#: Classes of records by the ``kind`` that the journal gives them.
KINDS: dict[str, type[Record]] = {
    "study": StudyRecord,
    "trial": TrialRecord,
    "path": PathRecord,
    "search": SearchRecord,
    "refit": RefitRecord,
    "noise": NoiseRecord,
    "end": EndRecord,
    "node": NodeRecord,
}
_KIND_OF = {record_class: kind for kind, record_class in KINDS.items()}


def journal_line(record: Record) -> dict[str, Any]:
    """Return a record as a line of the journal: its kind and its fields; lists are not copied."""
    kind = _KIND_OF[type(record)]
    values = record.to_json() if isinstance(record, TrialRecord | PathRecord) else vars(record)
    line: dict[str, Any] = {"kind": kind}
    if kind == "study":
        line["schema"] = SCHEMA
    return line | values


def record_from_line(line: Mapping[str, Any]) -> Record | None:
    """Restore a record from a line that `journal_line` returned; None if its kind is unknown.

    Credentials in URIs, as version 0.1 stored them, are kept in memory only.
    """
    if "kind" not in line:
        raise ValueError("'kind': Field required")
    record_class = KINDS.get(str(line["kind"]))
    if record_class is None:
        return None
    if record_class is StudyRecord:
        line = {
            key: keep_all_credentials(value) if key in _WITH_URIS else value
            for key, value in line.items()
        }
    return make_instance(record_class, line)


_STATUSES = {
    TrialRecord: ("finished", "null", "stopped", "failed"),
    PathRecord: ("finished", "stopped", "failed"),
    EndRecord: ("finished", "failed", "interrupted"),
}


def check_record(record: Record, study: StudyRecord | None) -> None:
    """Check a record against the study that it is of."""
    for name in ("started", "ended"):
        _check(0 <= getattr(record, name, 0) <= _LAST_TIME, f"'{name}' is not a time")
    known = _STATUSES.get(type(record))
    _check(not known or getattr(record, "status", "") in known, f"'status' is none of {known}")
    if isinstance(record, StudyRecord):
        _check_study(record)
    elif study is None:
        return
    elif isinstance(record, NoiseRecord):
        lengths = {len(record.mean), len(record.lowest), len(record.highest)}
        _check(
            lengths in ({0}, {len(study.feature_names)}),
            "the stability of noise has another number of features",
        )
    elif isinstance(record, TrialRecord | PathRecord | RefitRecord):
        _check(
            not record.fold or record.fold in study.folds, f"the study has no fold {record.fold!r}"
        )
        _check_fits(record, study)


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _check_study(study: StudyRecord) -> None:
    _check(
        all(map(_FOLD.fullmatch, study.folds)),
        "a fold's name is not made of letters, digits, - and _",
    )
    _check(
        len(set(study.folds)) == len(study.folds) > 0,
        "two folds have the same name, or there is none",
    )
    _check(FINAL not in study.folds[:-1], f"the fold {FINAL} is not the last")
    _check(bool(_ID.fullmatch(study.id)), "its id is not made of letters, digits, - and _")
    _check(
        study.n_samples > 0 <= study.n_trials, "the number of samples or of trials is not positive"
    )
    d = len(study.feature_names)
    _check(
        all(0 <= i < d for i in study.constant), "the index of a constant feature is out of range"
    )
    grouped = list(chain.from_iterable(study.feature_groups.values()))
    _check(
        all(0 <= i < d for i in grouped) and len(set(grouped)) == len(grouped),
        "the index of a feature of a group is out of range, or in two groups",
    )
    _check(all(study.feature_groups.values()), "a group of features has no member")
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
    _check(
        not isinstance(config["search"].get("configurations"), str),
        "search.configurations names a file",
    )
    try:
        config_from_dict(config, "its configuration")
    except ConfigError as error:
        raise ValueError(
            f"{error}\nIf a newer version of raysel wrote it, update raysel"
        ) from error
    named = (config["name"], config["evaluation"]["metric"])
    _check(
        (study.name, study.metric) == named, "its name or metric is not that of its configuration"
    )
    scored = config["evaluation"]["estimator"] != "native"
    sizes = config["evaluation"]["n_features"]
    _check(
        not scored or len(study.labels) == len(sizes),
        "there is not one label for each number of features",
    )


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
                _check(
                    len(trace.settings) in (0, n),
                    "a fold has not one setting for each number of features",
                )
                _check_inner(trace.inner, n, complete=complete)


def _check_inner(fits: Iterable[InnerTrace], n: int, *, complete: bool) -> None:
    for fit in fits:
        _check(bool(fit.scores) or not complete, "an inner fit has no scores")
        for scores in fit.scores:
            _check(len(scores) == n, f"an inner fit has {len(scores)} scores, not {n}")


def _check_outputs(record: RefitRecord, n_classes: int) -> None:
    outputs = TestOutputs.from_json(record.outputs)
    n, n_labels = outputs.truth.shape
    codes = n_columns = n_classes
    if n_labels > 1:
        codes = 2
    elif n_classes == 2:
        n_columns = 1
    _check(
        n <= record.n_test and n_labels in (1, n_classes), "'outputs' is of other samples or labels"
    )
    _check(
        bool(((outputs.truth >= 0) & (outputs.truth < codes)).all()),
        "'outputs' is of other classes",
    )
    widths = {values.shape[1] for values in outputs.values.values()}
    _check(widths <= {n_columns}, "'outputs' has other columns")


def _check_refit(record: RefitRecord, study: StudyRecord, n: int) -> None:
    d, n_classes = len(study.feature_names), len(study.classes)
    lists: dict[str, tuple[Sequence[Any] | None, tuple[int, ...]]] = {
        "feature_scores": (record.feature_scores, (d,)),
        "test_scores": (record.test_scores, (0,) if record.fold == FINAL else (n,)),
        "inner_curve": (record.inner_curve, (0, n)),
        "training_scores": (record.training_scores, (0, n)),
        "settings": (record.settings, (0, n)),
        "confusion": (record.confusion, (0, n_classes)),
        **{f"report[{name}]": (values, (0, n)) for name, values in record.report.items()},
        **{
            f"references[{name}]": (values, (0, 1, n)) for name, values in record.references.items()
        },
        **{
            f"reference_settings[{name}]": (each, (0, 1, n))
            for name, each in record.reference_settings.items()
        },
    }
    for name, (values, lengths) in lists.items():
        if values is not None and len(values) not in lengths:
            raise ValueError(
                f"'{name}' has {len(values)} values, not {' or '.join(map(str, lengths))}"
            )
    if record.outputs:
        _check_outputs(record, n_classes)
    n_units = len(record.pseudo_values or ())
    _check(n_units <= record.n_test, "'pseudo_values' is of more units than samples")
    widths = {len(row) for row in record.confusion}
    _check(widths <= {4} or widths == {n_classes}, "a row of 'confusion' has another length")
    positions = [record.position or 0, *record.reference_positions.values()]
    _check(all(0 <= position < n for position in positions), "'position' is out of range")
    _check(record.fold == FINAL or record.test_score is not None, "there is no test score")
    _check(record.n_features is None or 1 <= record.n_features <= d, "'n_features' is out of range")
