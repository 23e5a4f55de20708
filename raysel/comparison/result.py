"""Result of a comparison: its members as studies, read from its directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysel.comparison.folds import OuterFolds
from raysel.errors import DirectoryError, StudyError, UnfinishedStudyError
from raysel.study.result import StudyResult

if TYPE_CHECKING:
    import pandas as pd

#: File in the directory of a comparison that lists its members.
MEMBERS = "members.json"
#: Folder in the directory of a comparison that its tables and figures are written to.
OUTPUT = "comparison"
_SCHEMA = 1
_KEYS: Mapping[str, tuple[type, ...]] = {
    "label": (str,),
    "folder": (str,),
    "solver": (str,),
    "reconstructed": (bool,),
    "error": (str, type(None)),
}


@dataclass(frozen=True, eq=False)
class Member:
    """One study of a comparison.

    Parameters
    ----------
    label : str
        Name of the member in the comparison.
    path : Path
        Directory of the study.
    solver : str
        Name of the solver.
    reconstructed : bool
        Whether the method was reconstructed from its paper, because the authors' code was not found.
    result : StudyResult or None
        Result of the study; None if it has none that can be compared.
    failure : str, default=""
        Why there is no result; empty if there is one.
    """

    label: str
    path: Path
    solver: str
    reconstructed: bool
    result: StudyResult | None
    failure: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonResult:
    """Several studies that were scored on the same outer folds.

    Use `open` to create one.

    Parameters
    ----------
    path : Path
        Directory of the comparison.
    name : str
        Name of the comparison.
    reference : str
        Label of the member that the others are compared with.
    members : tuple of Member
        Members in the order of the configuration.
    folds : OuterFolds or None
        Outer folds that the members share; None if no member has a result.
    """

    path: Path
    name: str
    reference: str
    members: tuple[Member, ...]
    folds: OuterFolds | None

    @classmethod
    def open(cls, path: str | Path) -> ComparisonResult:
        """Read a comparison from its directory, finished or not.

        A member that failed, has not finished, or was scored on other folds or by another metric than the members
        before it is kept without a result, and `Member.failure` says why.

        Parameters
        ----------
        path : str or Path
            Directory of the comparison, which holds ``members.json``.

        Returns
        -------
        ComparisonResult
            Result of the comparison as far as it has run.

        Raises
        ------
        DirectoryError
            If the directory holds no comparison, or its ``members.json`` is damaged.
        """
        path = Path(path)
        raw = _read(path / MEMBERS)
        members = [_open_member(path, listed) for listed in raw["members"]]
        # The reference comes first: the others must have its folds and its metric.
        members.sort(key=lambda member: member.label != raw["reference"])
        comparable: list[Member] = []
        folds: OuterFolds | None = None
        first, metric = "", ""
        for member in members:
            failure, study = "", member.result
            if study is not None:
                try:
                    own = _read_folds(study)
                except DirectoryError as error:
                    failure = str(error)
                else:
                    if folds is None:
                        folds, first, metric = own, member.label, study.metric
                    elif own != folds:
                        failure = f"its outer folds are not those of {first}"
                    elif study.metric != metric:
                        failure = f"it is scored by {study.metric}, and {first} by {metric}"
            comparable.append(replace(member, result=None, failure=failure) if failure else member)
        order = [listed["label"] for listed in raw["members"]]
        comparable.sort(key=lambda member: order.index(member.label))
        return cls(path, raw["name"], raw["reference"], tuple(comparable), folds)

    @property
    def finished(self) -> list[Member]:
        """Members with a result."""
        return [member for member in self.members if member.result is not None]

    @cached_property
    def studies(self) -> dict[str, StudyResult]:
        """Results of the members that have one, by label."""
        return {member.label: member.result for member in self.members if member.result is not None}

    @property
    def metric(self) -> str:
        """Name of the score; empty if no member has a result."""
        return next((study.metric for study in self.studies.values()), "")

    def table(self) -> pd.DataFrame:
        """Return the comparison as a table with one row a member.

        Returns
        -------
        DataFrame
            The columns of `comparison_table`.
        """
        from raysel.comparison.tables import comparison_table  # noqa: PLC0415 - that module needs this one

        return comparison_table(self)

    def __repr__(self) -> str:
        return (
            f"ComparisonResult({self.name}, {len(self.finished)} of {len(self.members)} members finished, "
            f"reference {self.reference})"
        )

    def _repr_html_(self) -> str:
        return f"<p>{self!r}</p>{self.table().to_html(index=False)}"


def _read(path: Path) -> dict[str, Any]:
    """Read and check ``members.json``."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DirectoryError(
            f"{path.parent} holds no comparison: {path.name} cannot be read ({error.strerror}). Give the directory of "
            "a study with the key `compare`."
        ) from error
    except ValueError as error:
        raise DirectoryError(
            f"{path} is damaged: {error}. Restore it from a copy, or resume the comparison."
        ) from error
    if fault := _fault(raw):
        raise DirectoryError(f"{path} is damaged: {fault}. Restore it from a copy, or resume the comparison.")
    return raw


def _fault(raw: Any) -> str:
    """Describe the first error of the content of ``members.json``; empty if there is none."""
    if not isinstance(raw, dict) or raw.get("schema") != _SCHEMA:
        return f"its schema is not {_SCHEMA}"
    if not isinstance(raw.get("name"), str) or not isinstance(raw.get("members"), list) or not raw["members"]:
        return "it has no name or no members"
    for listed in raw["members"]:
        for key, types in _KEYS.items():
            if not isinstance(listed, dict) or not isinstance(listed.get(key), types):
                return f"a member has no valid '{key}'"
        if Path(listed["folder"]).name != listed["folder"] or listed["folder"] in ("", ".", "..", OUTPUT):
            return f"'{listed['folder']}' is not the name of a member's folder"
    labels = [listed["label"] for listed in raw["members"]]
    if len(set(labels)) < len(labels):
        return "two members have the same label"
    return "" if raw.get("reference") in labels else "its reference is not one of the members"


def _open_member(path: Path, listed: Mapping[str, Any]) -> Member:
    """Open a member's study; without a result if the study has not finished."""
    folder, failure = path / listed["folder"], ""
    result: StudyResult | None = None
    if (folder / "journal.jsonl").exists():
        try:
            result = StudyResult.open(folder)
            _ = result.refits  # raises if the study has not finished
        except UnfinishedStudyError as error:
            result, failure = None, f"it has not finished: {error.n_done} of {error.n_trials} trials are done"
        except StudyError as error:
            result, failure = None, str(error)
    else:
        failure = "it has not started"
    if result is None and listed["error"]:
        failure = listed["error"].strip().rpartition("\n")[2]
    return Member(listed["label"], folder, listed["solver"], listed["reconstructed"], result, failure)


def _read_folds(study: StudyResult) -> OuterFolds:
    """Read the outer folds of a finished study."""
    folds = OuterFolds.read(study.directory.plan)
    if list(folds.names) != [refit.fold for refit in study.outer]:
        raise DirectoryError(f"{study.directory.plan} does not list the outer folds of the journal.")
    return folds
