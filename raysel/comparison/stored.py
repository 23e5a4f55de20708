"""Stored form of a comparison: its members as studies, read from its directory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from raysel.comparison.folds import OuterFolds
from raysel.errors import DirectoryError, StudyError, UnfinishedStudyError
from raysel.results.result import StudyResult
from raysel.tracking.comparisons.directory import ComparisonDirectory
from raysel.tracking.comparisons.record import MemberEntry


@dataclass(frozen=True, eq=False)
class Member:
    """One study of a comparison."""

    label: str
    path: Path
    solver: str
    reconstructed: bool
    transductive: bool
    result: StudyResult | None
    failure: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class StoredComparison:
    """Several studies that were scored on the same outer folds.

    Use `open` to create one.
    """

    path: Path
    name: str
    reference: str
    members: tuple[Member, ...]
    folds: OuterFolds | None

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Read a comparison from its directory, finished or not.

        A member that failed, has not finished, or was scored on other folds or by another metric than the members
        before it is kept without a result, and `Member.failure` says why.
        """
        path = Path(path)
        record = ComparisonDirectory(path).read()
        members = [_open_member(path, entry) for entry in record.members]
        # The reference comes first: the others must have its folds and its metric.
        members.sort(key=lambda member: member.label != record.reference)
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
        order = [entry.label for entry in record.members]
        comparable.sort(key=lambda member: order.index(member.label))
        return cls(path, record.name, record.reference, tuple(comparable), folds)

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


def _open_member(path: Path, entry: MemberEntry) -> Member:
    """Open a member's study; without a result if the study has not finished."""
    folder, failure = path / entry.folder, ""
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
    if result is None and entry.error:
        failure = entry.error.strip().rpartition("\n")[2]
    return Member(entry.label, folder, entry.solver, entry.reconstructed, entry.transductive, result, failure)


def _read_folds(study: StudyResult) -> OuterFolds:
    """Read the outer folds of a finished study."""
    folds = OuterFolds.read(study.directory.plan)
    if list(folds.names) != [refit.fold for refit in study.outer]:
        raise DirectoryError(f"{study.directory.plan} does not list the outer folds of the journal.")
    return folds
