"""Check of the types of a record's fields, down to the items of lists, against the annotations of its class."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from raysel.core.credentials import keep_all_credentials
from raysel.core.errors import DirectoryError
from raysel.evaluation.records import ChooseN, PathRecord, RefitRecord, TrialRecord

#: Function that raises TypeError if a value, of a field of that name, has the wrong type.
Check: TypeAlias = Callable[[Any, str], None]
#: Largest whole number of a record, that of 64 bits.
_LARGEST = 2**63 - 1


def check_fields(cls: type, raw: Mapping[str, Any], of: str = "") -> None:
    """Check the fields of a record as a line of the journal has them."""
    for name, check in _checks(cls):
        if name in raw:
            check(raw[name], f"{of}{name}")


@cache
def _checks(cls: type) -> list[tuple[str, Check]]:
    """Name and check of each field of a dataclass."""
    return [(name, _check_of(hint)) for name, hint in get_type_hints(cls).items()]


def _check_of(hint: Any) -> Check:
    """Return the check of a type annotation."""
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if len(options) > 1:
        return _any_of([_check_of(option) for option in options])
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return _check_finite
    if is_dataclass(hint):
        return _record(hint)  # type: ignore[arg-type]
    if origin in (list, Sequence):
        return _numbers if arguments == (float,) else _list(_check_of(arguments[0]))
    if origin in (dict, Mapping) or hint is dict:
        return _mapping(_check_of(arguments[1]) if arguments else _check_finite)
    return _PLAIN[hint]


def _wrong(value: Any, name: str, expected: str) -> TypeError:
    return TypeError(f"'{name}' is of type {type(value).__name__}, not {expected}")


def _plain(kind: type) -> Check:
    def check(value: Any, name: str) -> None:
        if type(value) is not kind:
            raise _wrong(value, name, "None" if kind is type(None) else kind.__name__)

    return check


def _whole(value: Any, name: str) -> None:
    if type(value) is not int:
        raise _wrong(value, name, "int")
    if abs(value) > _LARGEST:
        raise TypeError(f"'{name}' is larger than any count")


def _number(value: Any, name: str) -> None:
    if type(value) not in (int, float):
        raise _wrong(value, name, "float or int")
    _finite(value, name)


def _finite(value: float, name: str) -> None:
    if type(value) is int:
        _whole(value, name)
    elif not math.isfinite(value):
        raise TypeError(f"'{name}' is not finite")


def _numbers(value: Any, name: str) -> None:
    """Check a list of numbers, which may be long, without a loop in Python."""
    if type(value) is not list:
        raise _wrong(value, name, "list")
    if wrong := set(map(type, value)) - {int, float}:
        raise TypeError(f"'{name}' holds {next(iter(wrong)).__name__}, not only numbers")
    try:
        finite = all(map(math.isfinite, value))
    except OverflowError:
        finite = False
    if not finite:
        raise TypeError(f"'{name}' holds a number that is not finite")


def _list(check: Check) -> Check:
    def check_items(value: Any, name: str) -> None:
        if type(value) is not list:
            raise _wrong(value, name, "list")
        for i, item in enumerate(value):
            check(item, f"{name}[{i}]")

    return check_items


def _mapping(check: Check) -> Check:
    def check_items(value: Any, name: str) -> None:
        if type(value) is not dict:
            raise _wrong(value, name, "dict")
        for key, item in value.items():
            check(item, f"{name}[{key}]")

    return check_items


def _record(cls: type) -> Check:
    def check(value: Any, name: str) -> None:
        if type(value) is not dict:
            raise _wrong(value, name, "dict")
        check_fields(cls, value, f"{name}.")

    return check


def _any_of(checks: Sequence[Check]) -> Check:
    def check(value: Any, name: str) -> None:
        errors = list(_errors(checks, value, name))
        if len(errors) == len(checks):
            raise TypeError(" or ".join(dict.fromkeys(errors)))

    return check


def _errors(checks: Iterable[Check], value: Any, name: str) -> Iterable[str]:
    for check in checks:
        try:
            check(value, name)
        except TypeError as error:
            yield str(error)


def _check_finite(value: Any, name: str) -> None:
    """Check the numbers in plain data of any form."""
    left = [value]
    while left:
        item = left.pop()
        if type(item) is float and not math.isfinite(item):
            raise TypeError(f"'{name}' holds a number that is not finite")
        if type(item) is list:
            left += item
        elif type(item) is dict:
            left += item.values()


_PLAIN: dict[Any, Check] = {
    **{kind: _plain(kind) for kind in (str, bool, type(None))},
    int: _whole,
    float: _number,
}


#: Version of the journal's format; increase it, and extend `upgrade`, when a record changes its fields.
SCHEMA = 2

#: Fields of a study's record that can name URIs.
_WITH_URIS = ("uri", "config", "data_files")


@dataclass(frozen=True)
class _PlainRecord:
    """Base class of the records whose fields are plain data."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` reads back."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Any:
        """Restore a record from the data of `to_json`; unknown keys are ignored."""
        known = {f.name: raw[f.name] for f in fields(cls) if f.name in raw}
        for f in fields(cls):
            if f.name not in known and f.default is MISSING and f.default_factory is MISSING:
                raise DirectoryError(f"a record of class {cls.__name__} has no '{f.name}'.")
        return cls(**known)


@dataclass(frozen=True)
class StudyRecord(_PlainRecord):
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

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Any:
        """Restore the record; credentials in URIs, as version 0.1 stored them, are kept in memory only."""
        return super().from_json(
            {key: keep_all_credentials(value) if key in _WITH_URIS else value for key, value in raw.items()}
        )

    @property
    def choose_n(self) -> ChooseN:
        """Rule that chooses the number of features; ``mean`` in studies of before there was a choice."""
        rule: ChooseN = self.config["evaluation"].get("choose_n", "mean")
        return rule


@dataclass(frozen=True)
class SearchRecord(_PlainRecord):
    """End of a search."""

    #: Number of trials that ended.
    n_tried: int
    #: Largest number of trials of the search.
    n_planned: int
    #: Whether ``search.time_budget`` ended the search before all trials were made.
    cut: bool


@dataclass(frozen=True)
class NoiseRecord(_PlainRecord):
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
class EndRecord(_PlainRecord):
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
class NodeRecord(_PlainRecord):
    """Node of a cluster that was allowed to compute with other versions than the study's driver."""

    #: Address of the node.
    node: str
    #: Name, version of the driver and version of the node, of each that differs and can change a number.
    versions: Sequence[Sequence[str]]

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Any:
        """Restore the record, as `_PlainRecord.from_json` does."""
        for item in raw.get("versions", ()):
            if not isinstance(item, list | tuple) or [type(text) for text in item] != [str, str, str]:
                raise DirectoryError("the versions of a record of class NodeRecord are not three texts each.")
        return super().from_json(raw)

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
    """Return a record as a line of the journal: its kind and its fields."""
    kind = _KIND_OF[type(record)]
    return {"kind": kind, **({"schema": SCHEMA} if kind == "study" else {}), **record.to_json()}


def record_from_line(raw: Mapping[str, Any]) -> Record | None:
    """Restore a record from a line that `journal_line` returned."""
    try:
        record_class = KINDS.get(raw["kind"])
        if record_class is None:
            return None
        check_fields(record_class, raw)
        return record_class.from_json(dict(raw))
    except KeyError as error:
        raise DirectoryError(f"a record has no {error}.") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise DirectoryError(f"a record of kind {raw.get('kind')!r} is damaged: {error}.") from error
