"""Outer folds that the members of a comparison share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from raysel.core.errors import ConfigError, DirectoryError, StudyError, UnfinishedStudyError
from raysel.evaluation.plan import NestedPlan
from raysel.results.result import StudyResult
from raysel.tracking.comparison import ComparisonRecord, MemberEntry
from raysel.tracking.directory import StudyDirectory


@dataclass(frozen=True)
class OuterFolds:
    """Outer folds as the ``plan.json`` of a study lists them."""

    names: tuple[str, ...]
    repeats: tuple[int, ...]
    train: tuple[tuple[int, ...], ...]
    test: tuple[tuple[int, ...], ...]

    @classmethod
    def read(cls, path: Path) -> OuterFolds:
        """Read the outer folds from the ``plan.json`` of a study."""
        try:
            plan = NestedPlan.read(path)
        except ConfigError as error:
            raise DirectoryError(str(error).removeprefix("cv.plan: ")) from error
        return cls(
            tuple(fold.name for fold in plan.outer),
            tuple(fold.repeat for fold in plan.outer),
            tuple(tuple(fold.train.tolist()) for fold in plan.outer),
            tuple(tuple(fold.test.tolist()) for fold in plan.outer),
        )

    @cached_property
    def are_draws(self) -> bool:
        """Whether each repeat has one outer fold: a random draw of the training set (``cv.train_per_class``)."""
        return set(Counter(self.repeats).values()) == {1}

    @cached_property
    def ratio(self) -> float:
        """Number of test samples divided by the number of training samples, mean over the outer folds."""
        ratios = [len(test) / len(train) for train, test in zip(self.train, self.test, strict=True)]
        return sum(ratios) / len(ratios)

    def in_words(self) -> str:
        """Return number, kind and sizes of the folds, e.g. ``"5 outer folds (80 training and 20 test samples)"``."""
        sizes = " and ".join(
            f"{_range([len(rows) for rows in sets])} {what}"
            for sets, what in ((self.train, "training"), (self.test, "test"))
        )
        return f"{self.count_in_words()} ({sizes} samples)"

    def count_in_words(self) -> str:
        """Return number and kind of the folds, e.g. ``"20 draws of the training set"``."""
        return f"{len(self.names)} {'draws of the training set' if self.are_draws else 'outer folds'}"

    @property
    def are_repeated(self) -> bool:
        """Whether every sample is tested more than once, in several repeats of a cross-validation."""
        return not self.are_draws and len(set(self.repeats)) > 1


def _range(sizes: list[int]) -> str:
    return str(min(sizes)) if min(sizes) == max(sizes) else f"{min(sizes)}-{max(sizes)}"


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
        record = ComparisonRecord.read(StudyDirectory(path))
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
