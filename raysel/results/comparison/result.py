"""Result of a comparison, finished or not, and its tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from raysel.base.estimator import RECONSTRUCTED, TRANSDUCTIVE
from raysel.core.errors import DirectoryError, StudyError, UnfinishedStudyError
from raysel.results.comparison.rows import TESTS, MemberRow, OuterFolds, Pair, pairs_with_reference
from raysel.results.result import StudyResult
from raysel.tracking.directory import ComparisonRecord, MemberEntry, StudyDirectory

if TYPE_CHECKING:
    import pandas as pd

#: Columns of `ComparisonResult.table` with whole numbers.
_WHOLE = ("least_features", "most_features", "top", "configurations", "won", "tied", "lost")


@dataclass(frozen=True, eq=False, kw_only=True)
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
class ComparisonResult:
    """Several studies that were scored on the same outer folds, with their table.

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
        Members in the order of the configuration, each with its ``label``, ``solver``, ``result``
        and ``failure``.
    folds : OuterFolds or None
        Outer folds that the members share; None if no member has a result.
    """

    path: Path
    name: str
    reference: str
    members: tuple[Member, ...]
    folds: OuterFolds | None

    @classmethod
    def open(cls, path: str | Path, *, trust: bool = False) -> Self:
        """Read a comparison from its directory, finished or not.

        A member that failed, has not finished, or was scored on other folds or by another metric
        than the members before it is kept without a result, and its ``failure`` says why.

        Parameters
        ----------
        path : str or Path
            Directory of the comparison.
        trust : bool, default=False
            Whether to read the members' models that this account has not signed, see
            `raysel.load_model`.

        Returns
        -------
        ComparisonResult
            Result of the comparison as far as it has run.

        Raises
        ------
        DirectoryError
            If the directory holds no comparison, or its list of members is damaged.
        """
        path = Path(path)
        record = ComparisonRecord.read(StudyDirectory(path))
        members = [_open_member(path, entry, trust=trust) for entry in record.members]
        # The reference comes first: the others must have its folds and its metric.
        members.sort(key=lambda member: member.label != record.reference)
        comparable: dict[str, Member] = {}
        folds: OuterFolds | None = None
        first, metric = "", ""
        for member in members:
            comparable[member.label] = member
            if member.result is None:
                continue
            own, failure = member.result.recorded.metric, ""
            try:
                shared = _read_folds(member.result)
            except DirectoryError as error:
                failure = str(error)
            else:
                if folds is None:
                    folds, first, metric = shared, member.label, own
                elif shared != folds:
                    failure = f"its outer folds are not those of {first}"
                elif own != metric:
                    failure = f"it is scored by {own}, and {first} by {metric}"
            if failure:
                comparable[member.label] = replace(member, result=None, failure=failure)
        in_order = tuple(comparable[entry.label] for entry in record.members)
        return cls(
            path=path,
            name=record.name,
            reference=record.reference,
            members=in_order,
            folds=folds,
        )

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
        return next((study.recorded.metric for study in self.studies.values()), "")

    @cached_property
    def rows(self) -> dict[str, MemberRow]:
        """Figures of each member that has a result, by label."""
        kinds = {
            member.label: [
                *([RECONSTRUCTED] * member.reconstructed),
                *([TRANSDUCTIVE] * member.transductive),
            ]
            for member in self.members
        }
        return {
            label: MemberRow.of(label, study, kinds[label]) for label, study in self.studies.items()
        }

    @cached_property
    def pairs(self) -> dict[str, Pair]:
        """Each other member that has a result compared with the reference, by label."""
        return pairs_with_reference(self.rows, self.reference, self.folds, self.metric)

    def table(self) -> pd.DataFrame:
        """Return the figures of the comparison as a table with one row a member.

        Returns
        -------
        DataFrame
            Columns ``member``, ``solver``, ``test_<metric>`` and ``sd`` (over the outer folds),
            ``test_<metric>/<task>`` if there are several tasks, ``<metric>`` and ``<metric>_sd``
            for each further metric, ``least_features`` and ``most_features`` (smallest and largest
            number of features that is chosen on an outer fold, which the scores are of; missing
            where they are means over several numbers, or of no number), ``top`` (number of features
            that the next three refer to), ``redundancy``, ``stability``, ``stability_of_noise`` (of
            the F-test with permuted labels), ``configurations`` (largest number that was tried for
            an outer fold), ``cpu_seconds`` (median of a winner's fit), ``difference`` to the
            reference, ``lower`` and ``upper`` (its 95 % interval), ``p_plain`` and ``p_corrected``
            (after Holm's correction), ``won``, ``tied``, ``lost`` and ``note`` (limitations, or why
            there is no result). Values that there are not are missing.
        """
        import pandas as pd  # noqa: PLC0415 - takes half a second to import

        listed = [self._described(member) for member in self.members]
        score = f"test_{self.metric or 'score'}"
        columns = ["member", "solver", score, "sd"]
        facts = [row.facts for row in self.rows.values()]
        tasks = dict.fromkeys(chain.from_iterable(one.by_task for one in facts))
        columns += [f"{score}/{task}" for task in tasks]
        for name in dict.fromkeys(chain.from_iterable(one.report for one in facts)):
            columns += [name, f"{name}_sd"]
        columns += ["least_features", "most_features", "top", "redundancy", "stability"]
        columns += ["stability_of_noise", "configurations", "cpu_seconds", "difference", "lower"]
        columns += ["upper", "p_plain", "p_corrected", "won", "tied", "lost", "note"]
        numbers = [column for column in columns if column not in ("member", "solver", "note")]
        kinds = dict.fromkeys(numbers, "float64") | dict.fromkeys(_WHOLE, "Int64")
        return pd.DataFrame(listed, columns=columns).astype(kinds)

    def _described(self, member: Member) -> dict[str, Any]:
        """Return the figures of a member by column."""
        row, pair = self.rows.get(member.label), self.pairs.get(member.label)
        described = {"member": member.label, "solver": member.solver, "note": member.failure}
        if row is not None:
            described["note"] = "; ".join(chain.from_iterable(row.notes.values()))
            described |= _figures(row)
        if pair is not None:
            described |= _difference(pair)
        return described

    def __repr__(self) -> str:
        return (
            f"ComparisonResult({self.name}, {len(self.finished)} of {len(self.members)} members"
            f" finished, reference {self.reference})"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.table().to_html(index=False)}"


def _open_member(path: Path, entry: MemberEntry, *, trust: bool) -> Member:
    """Open a member's study; without a result if the study has not finished."""
    folder, failure = path / entry.folder, "it has not started"
    result: StudyResult | None = None
    if (folder / "journal.jsonl").exists():
        try:
            study = StudyResult.open(folder, trust=trust)
            _ = study.recorded.refits  # raises if the study has not finished
            result, failure = study, ""
        except UnfinishedStudyError as error:
            failure = f"it has not finished: {error.n_done} of {error.n_trials} trials are done"
        except StudyError as error:
            failure = str(error)
    if result is None and entry.error:
        failure = entry.error.strip().rpartition("\n")[2]
    return Member(
        label=entry.label,
        path=folder,
        solver=entry.solver,
        reconstructed=entry.reconstructed,
        transductive=entry.transductive,
        result=result,
        failure=failure,
    )


def _read_folds(study: StudyResult) -> OuterFolds:
    """Read the outer folds of a finished study."""
    plan = study.recorded.directory.plan
    folds = OuterFolds.read(plan)
    if list(folds.names) != [refit.fold for refit in study.recorded.outer]:
        raise DirectoryError(f"{plan} does not list the outer folds of the journal.")
    return folds


def _figures(row: MemberRow) -> dict[str, Any]:
    """Columns of a member with a result."""
    facts, agreement = row.facts, row.facts.agreement
    score = f"test_{facts.metric}"
    figures: dict[str, Any] = {score: facts.test.mean, "sd": facts.test.sd}
    figures |= {f"{score}/{task}": values.mean for task, values in facts.by_task.items()}
    for name, values in facts.report.items():
        if known := values.known:
            figures |= {name: known.mean, f"{name}_sd": known.sd}
    figures |= {
        "least_features": min(row.chosen, default=None),
        "most_features": max(row.chosen, default=None),
        "redundancy": row.redundancy,
        "configurations": facts.n_tried[1],
        "cpu_seconds": row.cpu_seconds,
    }
    if agreement is not None:
        figures |= {"top": agreement.top.n, "stability": agreement.stability.value}
        if agreement.noise is not None:
            figures["stability_of_noise"] = agreement.noise.mean
    return figures


def _difference(pair: Pair) -> dict[str, Any]:
    """Columns of a member that is compared with the reference."""
    figures = {f"p_{name}": p for name, p in pair.p.items()}
    figures |= {name: getattr(pair.compared, name) for name in ("won", "tied", "lost")}
    if pair.test is not None:
        figures |= {"lower": pair.test.lower, "upper": pair.test.upper}
    return {"difference": pair.compared.mean, **figures}


def score_table(comparison: ComparisonResult) -> pd.DataFrame:
    """Return every test score of the winners as a table with one row a score.

    Columns ``member``, ``outer_fold``, ``metric`` (that of the study, the further ones, and
    ``redundancy``), ``n_features`` and ``task`` (missing where there is none), and ``score``.
    """
    import pandas as pd  # noqa: PLC0415

    listed: list[tuple[Any, ...]] = []
    for label, row in comparison.rows.items():
        facts = row.facts
        numbers = [(n, None) for n in facts.evaluation["n_features"]]
        scored: Sequence[tuple[int | None, str | None]] = numbers
        if facts.is_native:
            scored = [(None, task) for task in facts.study.labels] or [(None, None)]
        for refit in facts.outer:
            scores = [(facts.metric, scored, refit.test_scores)]
            scores += [(name, scored, values) for name, values in refit.report.items()]
            if refit.redundancy:
                best = numbers or [(facts.default_top, None)]
                scores.append(("redundancy", best, refit.redundancy))
            for metric, places, values in scores:
                for (n, task), value in zip(places, values, strict=True):
                    listed.append((label, refit.fold, metric, n, task, value))
    columns = ["member", "outer_fold", "metric", "n_features", "task", "score"]
    return pd.DataFrame(listed, columns=columns).astype({"n_features": "Int64", "score": "float64"})


def pair_table(comparison: ComparisonResult) -> pd.DataFrame:
    """Return the paired tests against the reference as a table with one row a pair.

    Columns ``member``, ``reference``, ``n_runs``, ``mean_difference`` and ``sd_difference`` (of the
    member's score minus the reference's), ``won``, ``tied``, ``lost``, ``test_train_ratio``,
    ``main_test``, then for ``plain`` and ``corrected`` each ``<test>_t``, ``<test>_p``,
    ``<test>_p_holm``, ``<test>_lower`` and ``<test>_upper`` (of the 95 % interval), and ``reason``
    why there is no test.
    """
    import pandas as pd  # noqa: PLC0415

    listed = [_pair_row(pair, comparison.reference) for pair in comparison.pairs.values()]
    columns = ["member", "reference", "n_runs", "mean_difference", "sd_difference", "won", "tied"]
    columns += ["lost", "test_train_ratio", "main_test"]
    for test in TESTS:
        columns += [f"{test}_{what}" for what in ("t", "p", "p_holm", "lower", "upper")]
    return pd.DataFrame(listed, columns=[*columns, "reason"])


def _pair_row(pair: Pair, reference: str) -> list[Any]:
    compared = pair.compared
    row: list[Any] = [pair.label, reference, len(compared.differences), compared.mean, compared.sd]
    row += [compared.won, compared.tied, compared.lost, compared.ratio, pair.main]
    for name, test in pair.tests.items():
        if test is None:
            row += [math.nan] * 5
        else:
            row += [test.statistic, test.p_value, pair.p[name], test.lower, test.upper]
    return [*row, compared.reason]
