"""Claims about the features of a finished study, as its files hold them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.core.errors import DirectoryError
from raysel.core.files import make_instance, read_json
from raysel.core.printing import by_number, short
from raysel.evaluation.ranking_files import write_manifest, write_table
from raysel.numerics.conditional_tests import adjust_for_fdr, adjust_for_fwer
from raysel.results.tables import TextTable, read_numbers

#: Folder of the files in a study's directory, name of its table, and the file of the rest.
FOLDER = "claims"
TABLE, RESULT = "claims", "result.json"
_COLUMNS = ("index", "group", "p_value", "share")
#: Largest number of groups and of members of a group that a table names.
_MOST_NAMED, _MOST_MEMBERS = 20, 4

ErrorRate = Literal["fdr", "fwer"]
#: Each error rate: its name, how p values are adjusted for it, and by whom.
RATES = {
    "fdr": ("false discovery rate", adjust_for_fdr, "Benjamini-Hochberg"),
    "fwer": ("family-wise error rate", adjust_for_fwer, "Holm"),
}


@dataclass(frozen=True)
class _Wording:
    """What is said of a method that tests groups of features."""

    #: By what is tested.
    by: str
    #: What must hold beside independence.
    assumption: str
    #: Why the other groups are not tested, and what is said if none is.
    untested: str
    none: str


Method = Literal["covariance", "desparsified", "held-out"]
METHODS: Mapping[Method, _Wording] = {
    "covariance": _Wording(
        by="the generalised covariance measure",
        assumption=("a lasso fits what the other features tell of the label and of the feature"),
        untested="a lasso gives the rest no weight",
        none="none has weight",
    ),
    "desparsified": _Wording(
        by="the desparsified lasso",
        assumption=(
            "a lasso fits what the others tell of label and feature, with noise of one variance"
        ),
        untested="a lasso gives the rest no weight",
        none="none has weight",
    ),
    "held-out": _Wording(
        by="predictions of held-out samples with redrawn values",
        assumption=(
            "ridge regressions of the other features fit the feature, or what models leave of the"
            " label"
        ),
        untested="no model uses the rest",
        none="no model uses one",
    ),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureClaims:
    """Which features, or groups of correlated ones, tell the labels beside all others."""

    #: Names of the features.
    feature_names: tuple[str, ...]
    #: Number of each feature's group, from 0 by the first feature; shape (d,).
    group: IntArray
    #: P value of each group; 1 of one that was not tested; shape (n_groups,).
    p_value: FloatArray
    #: Share that each group explains of what the other features leave of the labels' variance, or
    #: by which it lowers the squared error of models; NaN of one that was not tested; shape
    #: (n_groups,).
    share: FloatArray
    #: Error rate that claims are made at, and its level.
    rate: ErrorRate
    level: float
    #: Absolute correlation from which on features form a group; None: the groups are given.
    correlated: float | None
    #: How groups are tested, and why so; "" where it was asked for.
    method: Method
    reason: str
    #: What is independent, and its number: "samples", "groups" or "blocks".
    unit: str
    n_units: int
    #: Errors of the groups whose test failed, by number; they count as telling nothing.
    errors: Mapping[int, str] = field(default_factory=dict)
    #: Hash of the data, by which claims that no longer hold are known.
    identity: Mapping[str, Any] = field(default_factory=dict)
    #: Sentences on other versions: those of a later raysel, and of nodes of a cluster.
    mixed: tuple[str, ...] = ()

    @property
    def tested(self) -> BoolArray:
        """Mask of the groups that were tested: the lasso, or a model, uses them."""
        return ~np.isnan(self.share)

    @cached_property
    def adjusted(self) -> FloatArray:
        """P value of each group, adjusted for all groups; shape (n_groups,)."""
        _, adjust, _ = RATES[self.rate]
        return adjust(self.p_value)

    @property
    def claimed(self) -> BoolArray:
        """Mask of the groups that are claimed."""
        return self.tested & (self.adjusted <= self.level)

    @property
    def claimed_features(self) -> BoolArray:
        """Mask of the features in claimed groups; shape (d,)."""
        return self.claimed[self.group]

    @cached_property
    def members(self) -> list[IntArray]:
        """Positions of the features of each group."""
        order = np.argsort(self.group, kind="stable")
        ends = np.cumsum(np.bincount(self.group))
        return np.split(order, ends[:-1])

    def order(self) -> IntArray:
        """Return the numbers of the groups, the smallest p value first."""
        return np.argsort(self.p_value, kind="stable").astype(np.int64)

    def name(self, group: int) -> str:
        """Name a group by its first feature, and say how many others it has."""
        members = self.members[group]
        name = self.feature_names[members[0]]
        if len(members) == 1:
            return name
        return f"{name} and {len(members) - 1} more"

    @property
    def rate_name(self) -> str:
        """Name of the error rate."""
        return RATES[self.rate][0]

    @property
    def assumption(self) -> str:
        """What must hold."""
        return (
            f"the {self.n_units} {self.unit} are independent, and {METHODS[self.method].assumption}"
        )

    def sentences(self) -> list[str]:
        """Return what is claimed, and under which assumptions, as sentences."""
        return [self.short_sentence(), *self._meaning(), *self._remarks()]

    def short_sentence(self) -> str:
        """Say how many features or groups are claimed, at which level."""
        at = f"at a {self.rate_name} of {self.level:g}"
        n = int(self.claimed.sum())
        if n:
            return f"{self.number()} {by_number(n, 'is', 'are')} claimed {at}."
        if not self.tested.any():
            return f"No feature is claimed {at}: {METHODS[self.method].none}."
        smallest = f"The smallest level at which one is: {self.adjusted.min():.2g}."
        return f"No feature is claimed {at}. {smallest}"

    def number(self) -> str:
        """Say how many of the features, or groups, are claimed, e.g. ``"3 of 40 features"``."""
        n_groups = len(self.p_value)
        noun = "features or groups" if n_groups < len(self.feature_names) else "features"
        return f"{int(self.claimed.sum())} of {n_groups} {noun}"

    def _meaning(self) -> Iterator[str]:
        (_, _, author), wording = RATES[self.rate], METHODS[self.method]
        yield "A claimed feature tells the label beside all other features, also confounds."
        untested = "" if self.tested.all() else f"; {wording.untested}"
        yield (
            f"Tested are {int(self.tested.sum())} of {len(self.p_value)} by {wording.by}, adjusted"
            f" for all by {author}{untested}."
        )
        if self.reason:
            yield f"The method is {self.method}, because {self.reason}."
        yield f"It holds if {self.assumption}."

    def _remarks(self) -> Iterator[str]:
        n_grouped = sum(len(members) > 1 for members in self.members)
        if n_grouped:
            formed = "dataset.feature_groups forms"
            if self.correlated is not None:
                formed = f"Features that correlate by {self.correlated:g} or more form"
            groups = "group" if n_grouped == 1 else "groups"
            yield (
                f"{formed} {n_grouped} {groups}. A claimed group tells the label; which of its"
                " features does stays open."
            )
        if self.errors:
            number, reason = next(iter(self.errors.items()))
            yield (
                f"{len(self.errors)} tests failed and count as telling nothing; the first, of"
                f" {self.name(number)}: {reason.strip().splitlines()[0]}"
            )
        yield from self.mixed

    def figures(self) -> TextTable:
        """Return the claimed groups with their figures, or the first ones if none is claimed."""
        shown = [g for g in self.order().tolist() if self.claimed[g]]
        title = f"{len(shown)} claimed"
        if not shown:
            shown = [g for g in self.order().tolist()[:5] if self.tested[g]]
            title = "Smallest p values, none claimed"
        if len(shown) > _MOST_NAMED:
            title = f"First {_MOST_NAMED} of {title}"
        rows = [
            [
                short(self._member_names(g), 50),
                f"{self.p_value[g]:.2g}",
                f"{self.adjusted[g]:.2g}",
                f"{self.share[g]:.3f}",
            ]
            for g in shown[:_MOST_NAMED]
        ]
        return TextTable(["feature or group", "p", "adjusted p", "share explained"], rows, title)

    def _member_names(self, group: int) -> str:
        members = self.members[group]
        named = ", ".join(self.feature_names[j] for j in members[:_MOST_MEMBERS])
        if len(members) > _MOST_MEMBERS:
            return f"{named} and {len(members) - _MOST_MEMBERS} more"
        return named

    def ranking_columns(self) -> dict[str, FloatArray]:
        """Return the column of the ranking, named by the method: adjusted, that of the group."""
        name = f"p_value_claim_{self.method.replace('-', '_')}"
        return {name: self.adjusted[self.group]}

    def to_json(self) -> dict[str, Any]:
        """Return the summary of the claims for the manifest."""
        return {
            "of": f"features given all others, by {METHODS[self.method].by}",
            "method": self.method,
            "rate": self.rate,
            "level": self.level,
            "n_tested": int(self.tested.sum()),
            "n_groups": len(self.p_value),
            "claimed": self.claimed_names(),
            "sentences": self.sentences(),
        }

    def claimed_labels(self) -> list[str]:
        """Name the claimed groups by their first features, the smallest p value first."""
        return [self.name(g) for g in self.order().tolist() if self.claimed[g]]

    def claimed_names(self) -> list[list[str]]:
        """Return the names of the features of each claimed group, the smallest p value first."""
        return [self._names(g) for g in self.order().tolist() if self.claimed[g]]

    def write(self, folder: Path, coordinates: Mapping[str, LabelArray]) -> list[Path]:
        """Write ``claims.csv``, ``claims.parquet`` and ``result.json``, a row a feature."""
        order = np.lexsort((np.arange(len(self.group)), self.p_value[self.group]))
        columns: dict[str, Any] = {
            "feature": np.array(self.feature_names),
            "index": np.arange(len(self.feature_names)),
            **coordinates,
            "group": self.group,
            "group_size": np.bincount(self.group)[self.group],
            "p_value": self.p_value[self.group],
            "p_value_adjusted": self.adjusted[self.group],
            "share": self.share[self.group],
            "method": np.full(len(self.group), self.method),
            "tested": self.tested[self.group],
            "claimed": self.claimed[self.group],
        }
        table = pa.table({name: pa.array(np.asarray(c)[order]) for name, c in columns.items()})
        described = {
            "schema": 1,
            "sentences": self.sentences(),
            "claimed": self.claimed_names(),
            "errors": {str(number): reason for number, reason in self.errors.items()},
            **{name: getattr(self, name) for name in _Stored.__dataclass_fields__},
        }
        return [
            *write_table(table, folder, TABLE),
            write_manifest(folder / RESULT, {**described, "mixed": list(self.mixed)}),
        ]

    def _names(self, group: int) -> list[str]:
        return [self.feature_names[j] for j in self.members[group]]


@dataclass(frozen=True)
class _Stored:
    """What the file of claims says beside the table."""

    rate: ErrorRate
    level: float
    correlated: float | None
    method: Method
    reason: str
    unit: str
    n_units: int
    errors: dict[int, str]
    identity: dict[str, Any]
    mixed: tuple[str, ...]


def read_claims(folder: Path, feature_names: Sequence[str], data_hash: str) -> FeatureClaims | None:
    """Read the claims that `FeatureClaims.write` wrote; None if there are none of these data."""
    if not (folder / RESULT).exists():
        return None
    try:
        raw = read_json(folder / RESULT)
        stored = make_instance(_Stored, raw)
        if stored.identity.get("data_hash") != data_hash:
            return None
        n = len(feature_names)
        table = read_numbers(folder / f"{TABLE}.parquet", _COLUMNS, (n,))
        by_index = np.argsort(table["index"])
        group = np.asarray(table["group"])[by_index].astype(np.int64)
        _, first = np.unique(group, return_index=True)
        p_value, share = (np.asarray(table[name])[by_index][first] for name in ("p_value", "share"))
        if not np.array_equal(group[first], np.arange(len(first))) or not (p_value >= 0).all():
            raise ValueError("the groups are not numbered from 0, or a p value is negative")
        return FeatureClaims(
            feature_names=tuple(feature_names),
            group=group,
            p_value=p_value,
            share=share,
            **vars(stored),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DirectoryError(
            f"{folder} cannot be read as claims: {error}. Run raysel claims again, or remove it."
        ) from error
