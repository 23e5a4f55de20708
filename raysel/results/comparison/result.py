"""Result of a comparison, finished or not, and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from raysel.base.estimator import RECONSTRUCTED, TRANSDUCTIVE
from raysel.core.errors import DirectoryError, StudyError, UnfinishedStudyError
from raysel.results.comparison.rows import MemberRow, OuterFolds, Pair, pairs_with_reference
from raysel.results.result import StudyResult
from raysel.tracking.directory import ComparisonRecord, MemberEntry, StudyDirectory

if TYPE_CHECKING:
    import pandas as pd


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
        Members in the order of the configuration, each with its ``label``, ``solver``, ``result`` and ``failure``.
    folds : OuterFolds or None
        Outer folds that the members share; None if no member has a result.
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
        before it is kept without a result, and its ``failure`` says why.

        Parameters
        ----------
        path : str or Path
            Directory of the comparison.

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

    @cached_property
    def rows(self) -> dict[str, MemberRow]:
        """Figures of each member that has a result, by label."""
        kinds = {
            member.label: [*([RECONSTRUCTED] * member.reconstructed), *([TRANSDUCTIVE] * member.transductive)]
            for member in self.members
        }
        return {label: MemberRow.of(label, study, kinds[label]) for label, study in self.studies.items()}

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
            ``test_<metric>/<task>`` if there are several tasks, ``<metric>`` and ``<metric>_sd`` for each further
            metric, ``least_features`` and ``most_features`` (smallest and largest number of features that is chosen
            on an outer fold, which the scores are of; missing where they are means over several numbers, or of no
            number), ``top`` (number of features that the next three refer to), ``redundancy``, ``stability``,
            ``stability_of_noise`` (with permuted labels), ``configurations`` (largest number that was tried for an
            outer fold), ``cpu_seconds`` (median of a winner's fit), ``difference`` to the reference, ``lower`` and
            ``upper`` (its 95 % interval), ``p_plain`` and ``p_corrected`` (after Holm's correction), ``won``,
            ``tied``, ``lost`` and ``note`` (limitations, or why there is no result). Values that there are not are
            missing.
        """
        import pandas as pd  # noqa: PLC0415 - takes half a second to import

        metrics = list(dict.fromkeys(name for row in self.rows.values() for name in row.report))
        listed = []
        for member in self.members:
            shown: dict[str, Any] = {"member": member.label, "solver": member.solver}
            row, pair = self.rows.get(member.label), self.pairs.get(member.label)
            if row is not None:
                shown |= {f"test_{self.metric}": row.facts.test.mean, "sd": row.facts.test.sd}
                shown |= {f"test_{self.metric}/{task}": float(own.mean()) for task, own in row.by_task.items()}
                for name, values in row.report.items():
                    known = values[np.isfinite(values)]
                    shown[name] = float(known.mean()) if len(known) else None
                    shown[f"{name}_sd"] = float(known.std(ddof=1)) if len(known) > 1 else None
                shown |= {"least_features": min(row.chosen), "most_features": max(row.chosen)} if row.chosen else {}
                shown |= {"top": row.top, "redundancy": row.redundancy}
                shown["stability"] = None if row.stability is None else row.stability.value
                shown["stability_of_noise"] = None if row.noise is None else row.noise.mean
                shown |= {"configurations": row.n_tried[1], "cpu_seconds": row.cpu_seconds}
            if pair is not None:
                shown |= {"difference": pair.compared.mean, "won": pair.compared.won}
                shown |= {"tied": pair.compared.tied, "lost": pair.compared.lost}
                shown |= {"p_plain": pair.p_plain, "p_corrected": pair.p_corrected}
                if pair.test is not None:
                    shown |= {"lower": pair.test.lower, "upper": pair.test.upper}
            notes = [note for own in row.notes.values() for note in own] if row else [member.failure]
            listed.append(shown | {"note": "; ".join(notes)})
        reported = [column for name in metrics for column in (name, f"{name}_sd")]
        tasks = dict.fromkeys(task for row in self.rows.values() for task in row.by_task)
        by_task = [f"test_{self.metric}/{task}" for task in tasks]
        columns = ["member", "solver", f"test_{self.metric or 'score'}", "sd", *by_task, *reported]
        columns += ["least_features", "most_features", "top", "redundancy", "stability", "stability_of_noise"]
        columns += ["configurations", "cpu_seconds", "difference", "lower", "upper", "p_plain", "p_corrected"]
        columns += ["won", "tied", "lost", "note"]
        whole = dict.fromkeys(
            ("least_features", "most_features", "top", "configurations", "won", "tied", "lost"), "Int64"
        )
        real = [c for c in columns if c not in (*whole, "member", "solver", "note")]
        return pd.DataFrame(listed, columns=columns).astype(whole | dict.fromkeys(real, "float64"))

    def __repr__(self) -> str:
        return (
            f"ComparisonResult({self.name}, {len(self.finished)} of {len(self.members)} members finished, "
            f"reference {self.reference})"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.table().to_html(index=False)}"


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


def score_table(comparison: ComparisonResult) -> pd.DataFrame:
    """Return every test score of the winners as a table with one row a score.

    Columns ``member``, ``outer_fold``, ``metric`` (that of the study, the further ones, and ``redundancy``),
    ``n_features`` and ``task`` (missing where there is none), and ``score``.
    """
    import pandas as pd  # noqa: PLC0415

    listed = []
    for label, study in comparison.studies.items():
        evaluation, labels = study.config["evaluation"], list(study.stored.study.labels)
        of: list[tuple[int | None, str | None]] = [(n, None) for n in evaluation["n_features"]]
        if evaluation["classifier"] == "native":
            of = [(None, task) for task in labels] or [(None, None)]
        sizes: list[tuple[int | None, str | None]] = [(n, None) for n in evaluation["n_features"]]
        sizes = sizes or [(study.default_top, None)]
        for refit in study.outer:
            scores: dict[str, tuple[Sequence[tuple[int | None, str | None]], Sequence[float | None]]]
            scores = {study.metric: (of, refit.test_scores)}
            scores |= {name: (of, values) for name, values in refit.report.items()}
            scores |= {"redundancy": (sizes, refit.redundancy)} if refit.redundancy else {}
            listed += [
                (label, refit.fold, metric, n, task, value)
                for metric, (places, values) in scores.items()
                for (n, task), value in zip(places, values, strict=True)
            ]
    columns = ["member", "outer_fold", "metric", "n_features", "task", "score"]
    return pd.DataFrame(listed, columns=columns).astype({"n_features": "Int64", "score": "float64"})


def pair_table(comparison: ComparisonResult) -> pd.DataFrame:
    """Return the paired tests against the reference as a table with one row a pair.

    Columns ``member``, ``reference``, ``n_runs``, ``mean_difference`` and ``sd_difference`` (of the member's score
    minus the reference's), ``won``, ``tied``, ``lost``, ``test_train_ratio``, ``main_test``, then for ``plain`` and
    ``corrected`` each ``<test>_t``, ``<test>_p``, ``<test>_p_holm``, ``<test>_lower`` and ``<test>_upper`` (of the 95 %
    interval), and ``reason`` why there is no test.
    """
    import pandas as pd  # noqa: PLC0415

    listed = [_pair_row(pair, comparison.reference) for pair in comparison.pairs.values()]
    columns = ["member", "reference", "n_runs", "mean_difference", "sd_difference", "won", "tied", "lost"]
    columns += ["test_train_ratio", "main_test"]
    columns += [f"{test}_{what}" for test in ("plain", "corrected") for what in ("t", "p", "p_holm", "lower", "upper")]
    return pd.DataFrame(listed, columns=[*columns, "reason"])


def _pair_row(pair: Pair, reference: str) -> dict[str, Any]:
    compared = pair.compared
    row: dict[str, Any] = {
        "member": pair.label,
        "reference": reference,
        "n_runs": len(compared.differences),
        "mean_difference": compared.mean,
        "sd_difference": compared.sd,
        "won": compared.won,
        "tied": compared.tied,
        "lost": compared.lost,
        "test_train_ratio": compared.ratio,
        "main_test": pair.main,
        "reason": compared.reason,
    }
    for name, test, p_holm in (
        ("plain", compared.plain, pair.p_plain),
        ("corrected", compared.corrected, pair.p_corrected),
    ):
        if test is not None:
            row |= {f"{name}_t": test.statistic, f"{name}_p": test.p_value, f"{name}_p_holm": p_holm}
            row |= {f"{name}_lower": test.lower, f"{name}_upper": test.upper}
    return row
