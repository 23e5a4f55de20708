"""Records of a study's journal besides its trials and refits, and the reading of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, TypeAlias

from raysel.cv.records import PathRecord, RefitRecord, TrialRecord
from raysel.errors import DirectoryError

#: Version of the journal's format; increase it, and extend `upgrade`, when a record changes its fields.
SCHEMA = 2


@dataclass(frozen=True)
class _PlainRecord:
    """A record whose fields are plain data."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` reads back."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Any:
        """Read what `to_json` wrote; other keys are ignored.

        Parameters
        ----------
        raw : mapping
            The record's fields; those with a default may be missing.

        Returns
        -------
        StudyRecord, SearchRecord or EndRecord
            A record of the class.

        Raises
        ------
        DirectoryError
            If a field without default is missing.
        """
        known = {f.name: raw[f.name] for f in fields(cls) if f.name in raw}
        for f in fields(cls):
            if f.name not in known and f.default is MISSING and f.default_factory is MISSING:
                raise DirectoryError(f"a record of class {cls.__name__} has no '{f.name}'.")
        return cls(**known)


@dataclass(frozen=True)
class StudyRecord(_PlainRecord):
    """Definition of a study: the journal's first record, written again whenever the study is resumed.

    Parameters
    ----------
    id : str
        Identifies the study's runs in MLflow.
    name : str
        The configuration's name.
    experiment : str
        Name of the MLflow experiment.
    uri : str
        MLflow's address.
    started : float
        Seconds since the epoch, of the first start.
    config : mapping
        The whole configuration as plain data.
    config_hash : str
        Hash of the configuration's identity.
    data_hash : str
        Hash of the data's content.
    versions : mapping of str to str
        Versions of ``raysel``, of the libraries that it uses and of Python, and ``numbers``, a hash of the source
        that the study's numbers depend on.
    metric : str
        Name of the score, e.g. ``"accuracy"``.
    labels : sequence of str
        A name for each score of a fit, e.g. ``["n10", "n20"]``; empty where there is one.
    folds : sequence of str
        Names of the outer folds, the final one last.
    n_samples : int
        Number of samples.
    n_trials : int
        Number of trials that the search makes at most.
    layout : mapping
        The data's layout as `Layout.to_json` gives it.
    feature_names : sequence of str
        One for each feature.
    constant : sequence of int
        Positions of the features that have the same value in all samples.
    untrusted : sequence of str, default=[]
        Types in the method's models that a model file must not name, so that none is written.

    Examples
    --------
    >>> StudyRecord.from_json({"id": "a"})
    Traceback (most recent call last):
        ...
    raysel.errors.DirectoryError: a record of class StudyRecord has no 'name'.
    """

    id: str
    name: str
    experiment: str
    uri: str
    started: float
    config: Mapping[str, Any]
    config_hash: str
    data_hash: str
    versions: Mapping[str, str]
    metric: str
    labels: Sequence[str]
    folds: Sequence[str]
    n_samples: int
    n_trials: int
    layout: Mapping[str, Any]
    feature_names: Sequence[str]
    constant: Sequence[int]
    untrusted: Sequence[str] = field(default_factory=list)


@dataclass(frozen=True)
class SearchRecord(_PlainRecord):
    """End of a search.

    Parameters
    ----------
    n_tried : int
        Number of trials that ended.
    n_planned : int
        Number of trials that the search makes at most.
    cut : bool
        Whether ``search.time_budget`` ended the search before all trials were made.
    """

    n_tried: int
    n_planned: int
    cut: bool


@dataclass(frozen=True)
class EndRecord(_PlainRecord):
    """End of a run of a study.

    Parameters
    ----------
    status : {"finished", "failed", "interrupted"}
        How the run ended.
    started, ended : float
        Seconds since the epoch, of the study's first start and of this end.
    result : mapping
        Figures of a finished study, empty otherwise: ``test_mean`` and ``test_std`` over the outer folds,
        ``test_by_task`` (a mapping), ``inner_mean``, ``stability`` (None where undefined), ``winners_converged``
        (a share) and ``cut`` (by the time budget). A figure that the study does not have is missing.
    summary : str
        The result of a finished study in Markdown, empty otherwise.
    """

    status: str
    started: float
    ended: float
    result: Mapping[str, Any] = field(default_factory=dict)
    summary: str = ""


Record: TypeAlias = StudyRecord | TrialRecord | PathRecord | SearchRecord | RefitRecord | EndRecord

#: Classes of records by the ``kind`` that the journal gives them.
KINDS: dict[str, type[Record]] = {
    "study": StudyRecord,
    "trial": TrialRecord,
    "path": PathRecord,
    "search": SearchRecord,
    "refit": RefitRecord,
    "end": EndRecord,
}
_KIND_OF = {record_class: kind for kind, record_class in KINDS.items()}


def journal_line(record: Record) -> dict[str, Any]:
    """Return a record as the journal stores it: its kind, then its fields.

    Parameters
    ----------
    record : Record
        Any record of the journal.

    Returns
    -------
    dict
        Plain data; a study's record also carries the journal's ``schema``.

    Examples
    --------
    >>> journal_line(SearchRecord(2, 6, True))
    {'kind': 'search', 'n_tried': 2, 'n_planned': 6, 'cut': True}
    """
    kind = _KIND_OF[type(record)]
    return {"kind": kind, **({"schema": SCHEMA} if kind == "study" else {}), **record.to_json()}


def record_from_line(raw: Mapping[str, Any]) -> Record | None:
    """Read what `journal_line` gave.

    Parameters
    ----------
    raw : mapping
        A line of the journal, of the present schema.

    Returns
    -------
    Record or None
        None where the kind is unknown.

    Raises
    ------
    DirectoryError
        If the kind or a field is missing, or a field's value has the wrong form.
    """
    try:
        record_class = KINDS.get(raw["kind"])
        return record_class.from_json(dict(raw)) if record_class else None
    except KeyError as error:
        raise DirectoryError(f"a record has no {error}.") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise DirectoryError(f"a record of kind {raw.get('kind')!r} is damaged: {error}.") from error
