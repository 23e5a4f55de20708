"""Configuration of a comparison: common keys, and what each member lays over them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any, TypeAlias, final

from pydantic import BaseModel, ConfigDict, model_validator

from raysel.config.plain_data import set_key, without_null
from raysel.config.schema import DatasetConfig, StudyConfig
from raysel.core.errors import suggestion
from raysel.core.storage.location import set_credentials_aside

#: Keys that a member lays over the common ones: dotted, or sections as in a study.
MemberKeys: TypeAlias = dict[str, Any]

#: Sections whose keys are laid over the common ones one by one; another key replaces the common
#: value as a whole.
_SECTIONS = ("dataset", "evaluation", "search")
#: What a member may change: sections and keys.
_ALLOWED = ("solver", "evaluation", "search", "dataset.scaling", "dataset.only")
_OF_ALL = (
    "a member cannot change this key, which is for the whole comparison; set it beside `compare`"
)
#: Why a member cannot change a key or a section that has no influence on samples, labels, folds and
#: seed.
_REASONS = {
    "evaluation.metric": (
        "a member cannot change this key, because the members are compared by one metric; set it"
        " beside `compare`"
    ),
    "name": (
        "a member cannot change this key, because its label names it; the name of its solver"
        " belongs below `solver`, e.g. solver: {name: smr}"
    ),
    **dict.fromkeys(["output", "tracking", "pictures"], f"{_OF_ALL}, for all members"),
}
#: Folders of a comparison that are not a member's.
_RESERVED = frozenset({"comparison"})
#: Keys of files and folders, whose URIs may hold credentials.
_PLACES = ("output", "path", "labels", "mask", "background")
_LONGEST_LABEL, _LONGEST_NAME = 60, 100


@final
class ComparisonConfig(BaseModel):
    """One comparison of several methods, each an ordinary study on the same samples and folds.

    All other keys are those of a study, but for ``solver``, and hold for all members.
    """

    model_config = ConfigDict(extra="allow", frozen=True, use_attribute_docstrings=True)

    compare: dict[str, MemberKeys]
    """Members of a comparison, which stands in place of solver: for each label the keys that the
    member lays over the common ones, of solver, evaluation (without metric), search,
    dataset.scaling and dataset.only."""
    reference: str | None = None
    """Label of the member that the others of a comparison are tested against; the first by
    default.
    """

    @model_validator(mode="before")
    @classmethod
    def _without_credentials(cls, raw: dict[str, Any]) -> dict[str, Any]:
        return {**_with_places(raw), "compare": raw["compare"]}

    @property
    def common(self) -> dict[str, Any]:
        """Keys that hold for all members, as plain data."""
        return deepcopy(self.model_extra or {})

    @property
    def name(self) -> str:
        """Name of the comparison."""
        return str(self.common["name"])

    @property
    def output(self) -> str | None:
        """Directory of the comparison, if it is set."""
        return self.common.get("output")

    @cached_property
    def members(self) -> dict[str, StudyConfig]:
        """Configuration of each member's study, by label; its name is that of the comparison."""
        return {label: self.member(label) for label in self.compare}

    def member(self, label: str) -> StudyConfig:
        """Return the configuration of a member: the common keys with its own laid over them."""
        raw = {key: value for key, value in self.common.items() if key != "output"}
        for key, value in self.compare[label].items():
            laid = {key: value}
            if _is_section(key, value):
                laid = {f"{key}.{name}": v for name, v in value.items()}
            for dotted, v in laid.items():
                set_key(raw, dotted, deepcopy(v), f"compare: {dotted}")
        return StudyConfig.model_validate(without_null(raw))

    def study(self, label: str, folder: str) -> StudyConfig:
        """Return the configuration of a member's study, named after both."""
        config = self.members[label]
        tracking = config.tracking.model_copy(update={"experiment": self.experiment})
        name = f"{self.name}-{folder}"[:_LONGEST_NAME]
        return config.model_copy(update={"name": name, "tracking": tracking, "output": None})

    @property
    def experiment(self) -> str:
        """Name of the MLflow experiment: ``tracking.experiment``, else the comparison's name."""
        return (self.common.get("tracking") or {}).get("experiment") or self.name

    def to_dict(self) -> dict[str, Any]:
        """The configuration as plain data."""
        return {**self.common, "compare": deepcopy(self.compare), "reference": self.reference}


def member_folders(labels: Sequence[str], known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Name a folder for each member of a comparison."""
    folders: dict[str, str] = dict(known or {})
    for label in labels:
        if label not in folders:
            folders[label] = _free(_slug(label) or "member", {*_RESERVED, *folders.values()})
    return {label: folders[label] for label in labels}


def _slug(label: str) -> str:
    plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")


def unusable(members: Mapping[Any, Any], written: Callable[[], Any]) -> Iterator[str]:
    """Describe labels without keys or that are not text, and a number of members that is too small.

    An override leaves a member out by None; what is ``written`` without overrides says nothing by
    it.
    """
    for label in [label for label, keys in members.items() if keys is None]:
        if isinstance(before := written(), dict) and label in before and before[label] is None:
            yield (
                f"compare.{label}: there are no keys below this label; indent its keys below it,"
                " give it at least `solver`, or remove it"
            )
            return
    kept = [label for label, keys in members.items() if keys is not None]
    for label in kept:
        if not isinstance(label, str):
            yield f"compare: the label {label!r} is not text; write it in quotation marks"
    if len(kept) < 2:
        n = "only one member" if kept else "no member"
        yield (
            f"compare: there is {n}; give two or more, or for one method `solver` in place of"
            " `compare`"
        )


def _free(name: str, taken: Collection[str]) -> str:
    """Return the name, with the smallest number from 2 that makes it differ from those taken."""
    return next(
        n
        for n in (name, *(f"{name}-{number}" for number in range(2, len(taken) + 3)))
        if n not in taken
    )


def _with_places(raw: Any) -> Any:
    """Return plain data with the URIs of places without credentials, which are remembered."""
    if isinstance(raw, list):
        return [_with_places(value) for value in raw]
    if not isinstance(raw, Mapping):
        return raw
    changed = {key: _with_places(value) for key, value in raw.items()}
    for key in _PLACES:
        if isinstance(changed.get(key), str):
            changed[key] = set_credentials_aside(changed[key])
    return changed


def _is_section(key: str, value: object) -> bool:
    return key in _SECTIONS and isinstance(value, Mapping)


def refusals(config: ComparisonConfig) -> Iterator[str]:
    """Describe what no comparison can have: a common solver, bad labels, fixed keys."""
    if "solver" in config.common:
        yield "solver: each member of `compare` has its own; remove `solver`, or make it a member"
    for label, keys in config.compare.items():
        if (
            not label.strip()
            or label != label.strip()
            or not label.isprintable()
            or len(label) > _LONGEST_LABEL
        ):
            yield (
                f"compare: the label {label[:80]!r} must be 1 to {_LONGEST_LABEL} printable"
                " characters without spaces at its ends"
            )
        for key, value in keys.items():
            if key == "evaluation" and value is None:
                yield (
                    f"compare.{label}.evaluation: null would unset `metric` too, by which the"
                    " members are compared; unset single keys, e.g. evaluation: {n_features:"
                    " null}"
                )
            below = (
                isinstance(value, Mapping) and key != "solver" and key in StudyConfig.model_fields
            )
            dotted = [key]
            if below:
                dotted = [f"{key}.{name}" for name in value]
            yield from (
                f"compare.{label}.{name}: {reason}" for name in dotted if (reason := _refused(name))
            )
    if config.reference not in config.compare:
        hint = suggestion(
            str(config.reference), config.compare, f"give one of {', '.join(config.compare)}"
        )
        yield f"reference: no member is labelled {config.reference!r}; {hint}"


def _refused(key: str) -> str:
    """Return why a member cannot change a key; empty if it can."""
    (section, _, name), allowed = key.partition("."), ", ".join(_ALLOWED)
    if section not in StudyConfig.model_fields:
        return (
            f"unknown key; {suggestion(section, (*_SECTIONS, 'solver'), f'a member has {allowed}')}"
        )
    if reason := _REASONS.get(key) or _REASONS.get(section):
        return reason
    if section in ("solver", "evaluation", "search") or key in _ALLOWED:
        return ""
    if section == "dataset" and name and name.partition(".")[0] not in DatasetConfig.model_fields:
        return ""
    return (
        "a member cannot change this key, as all members have the same samples, labels, folds and"
        f" seed; set it beside `compare`. A member has {allowed}"
    )
