"""Records of a study's journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from raysel.core.credentials import keep_all_credentials
from raysel.core.files import instance_of
from raysel.evaluation.records import ChooseN, PathRecord, RefitRecord, TrialRecord

#: Version of the journal's format; increase it, and extend `upgrade`, when a record changes its fields.
SCHEMA = 2

#: Fields of a study's record that can name URIs.
_WITH_URIS = ("uri", "config", "data_files")


@dataclass(frozen=True)
class StudyRecord:
    """Definition of a study: the journal's first record, written again whenever the study is resumed."""

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
    #: Versions of ``raysel``, of the libraries that it uses and of Python, and ``numbers``, a hash of the source that
    #: the study's numbers depend on.
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
    #: Types in the fitted method that a model file must not name, so that none holds it.
    untrusted: Sequence[str] = field(default_factory=list)
    #: Names of the classes, those of all tasks, or of the labels; empty if they were not recorded.
    classes: Sequence[str] = field(default_factory=list)
    #: Remarks on the data, as `raysel.study.inspection.remarks.data_remarks` made them at the study's start.
    data_remarks: Sequence[str] = field(default_factory=list)
    #: Absolute path at which each file of the configuration was found, by its key, e.g. ``"dataset.path"``, or
    #: ``"dataset.tasks.faces.path"`` for a task; empty if they were not recorded.
    data_files: Mapping[str, str] = field(default_factory=dict)

    @property
    def choose_n(self) -> ChooseN:
        """Rule that chooses the number of features; ``mean`` in studies of before there was a choice."""
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
    """Stability of an F-test ranking over the outer training sets of a study with permuted labels."""

    #: Number of permutations.
    n_permutations: int
    #: What exchanges its labels, as in `LabelPermutations.kind`.
    exchanged: str
    #: Over the permutations, of the N best features for N from 1 to the number of features; None where undefined.
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
    #: Figures of a finished study, empty by default: ``test_mean`` and ``test_std`` over the outer folds,
    #: ``test_by_task`` (a mapping), ``inner_mean``, ``stability``, ``stability_of_noise`` (its mean with permuted
    #: labels) and ``redundancy`` (of the default top; None if undefined), ``winners_converged`` (a share), ``cut`` (by
    #: the time budget), ``report`` (``test_mean`` and ``test_std`` of each further metric by its name), ``guesses``
    #: (mean of each), ``choose_n``, ``n_features``, ``interval``, ``references``, ``optimism`` and ``curve``, as the
    #: manifest has them.
    result: Mapping[str, Any] = field(default_factory=dict)
    #: Result of a finished study in Markdown; empty otherwise.
    summary: str = ""


@dataclass(frozen=True)
class NodeRecord:
    """Node of a cluster that was allowed to compute with other versions than the study's driver."""

    #: Address of the node.
    node: str
    #: Name, version of the driver and version of the node, of each that differs and can change a number.
    versions: Sequence[tuple[str, str, str]]

    @property
    def sentence(self) -> str:
        """Remark for the study's result."""
        changes = ", ".join(f"{name} {there} instead of {here}" for name, here, there in self.versions)
        return f"The node {self.node} computed with other versions, which was allowed: {changes}."


Record: TypeAlias = (
    StudyRecord | TrialRecord | PathRecord | SearchRecord | RefitRecord | NoiseRecord | EndRecord | NodeRecord
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
    return {"kind": kind, **({"schema": SCHEMA} if kind == "study" else {}), **values}


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
        line = {key: keep_all_credentials(value) if key in _WITH_URIS else value for key, value in line.items()}
    return instance_of(record_class, line)
