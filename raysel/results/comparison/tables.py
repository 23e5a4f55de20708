"""Figures of each member of a comparison, and the limitations that belong to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from raysel.base.estimator import RECONSTRUCTED, TRANSDUCTIVE
from raysel.core.arrays import FloatArray
from raysel.evaluation.feature_ranking import default_n_selected
from raysel.numerics.classification import metric_range
from raysel.numerics.intervals import PairedComparison, TTest, holm, paired_comparison
from raysel.numerics.rankings import Stability
from raysel.results.agreement import NoiseLevel, noise_level
from raysel.results.comparison.stored import Member, OuterFolds, StoredComparison
from raysel.results.remarks import search_remarks
from raysel.results.result import StudyResult
from raysel.results.texts import format_remark

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class MemberRow:
    """Figures of one member that has a result."""

    label: str
    #: Test score on each outer fold, at the number of features that the inner scores choose there; the mean over the
    #: numbers of features if ``evaluation.choose_n`` is ``mean``, or over the tasks; shape (n_folds,).
    scores: FloatArray
    #: Test scores for each number of features or each task, by its name; empty if there is one score; each (n_folds,).
    by_label: dict[str, FloatArray]
    #: Scores by the further metrics, as ``scores``; NaN on outer folds on which the metric is undefined;
    #: each (n_folds,).
    report: dict[str, FloatArray]
    n_features: tuple[int, ...]
    chosen: tuple[int, ...]
    top: int | None
    stability: Stability | None
    noise: NoiseLevel | None
    redundancy: float | None
    n_tried: tuple[int, int]
    cpu_seconds: float | None
    winners: tuple[tuple[str, int], ...]
    notes: dict[str, list[str]]

    @property
    def by_task(self) -> dict[str, FloatArray]:
        """Test score of each task on each outer fold; empty if there is one task."""
        return {} if self.n_features else self.by_label

    @property
    def mean(self) -> float:
        """Mean test score over the outer folds."""
        return float(self.scores.mean())

    @property
    def sd(self) -> float:
        """Sample standard deviation of the test score over the outer folds."""
        return float(self.scores.std(ddof=1))


def member_rows(comparison: StoredComparison) -> dict[str, MemberRow]:
    """Return the figures of each member that has a result."""
    return {member.label: _row(member, member.result) for member in comparison.members if member.result is not None}


def _row(member: Member, study: StudyResult) -> MemberRow:
    outer, labels = study.outer, list(study.stored.study.labels)
    tests = np.array([refit.test_scores for refit in outer], dtype=np.float64)
    metrics = [name for name in outer[0].report if all(name in refit.report for refit in outer)]
    report = {name: np.array([refit.reported(name) for refit in outer], dtype=np.float64) for name in metrics}
    evaluation = study.config["evaluation"]
    n_features = () if evaluation["classifier"] == "native" else tuple(evaluation["n_features"])
    # One number for all members: stabilities of different numbers of features are not comparable.
    listed = tuple(evaluation.get("n_features") or ())
    top = default_n_selected(listed, len(study.feature_names)) if study.ranks_features else None
    redundancy = study.redundancy.get(top, float("nan")) if top else float("nan")
    cpu = [refit.cpu_seconds for refit in outer if refit.cpu_seconds is not None]
    winners = Counter(refit.name for refit in outer)
    return MemberRow(
        member.label,
        np.array([refit.test_score for refit in outer], dtype=np.float64),
        {name: tests[:, i] for i, name in enumerate(labels)},
        report,
        n_features,
        tuple(refit.n_features for refit in outer if refit.n_features and study.stored.study.choose_n != "mean"),
        top,
        None if top is None else study.stability(top),
        noise_level(study, top) if top else None,
        redundancy if np.isfinite(redundancy) else None,
        _n_tried(study),
        float(np.median(cpu)) if cpu else None,
        tuple(winners.most_common()),
        {**_notes(member, study, n_features), **_undefined(report)},
    )


def _n_tried(study: StudyResult) -> tuple[int, int]:
    """Smallest and largest number of configurations that were tried for an outer fold."""
    by_fold = Counter(record.fold for record in study.records)
    shared = by_fold.pop("", 0)  # a search that does not adapt tries each configuration on all folds
    own = [by_fold[refit.fold] for refit in study.outer]
    return shared + min(own), shared + max(own)


def _notes(member: Member, study: StudyResult, n_features: tuple[int, ...]) -> dict[str, list[str]]:
    return {
        "member": [*([RECONSTRUCTED] * member.reconstructed), *([TRANSDUCTIVE] * member.transductive)],
        "test": list(_winner_notes(study, n_features)),
        "tried": [
            format_remark(remark).removesuffix(".") for remark in search_remarks(study.records, study.stored.search)
        ],
    }


def _undefined(report: Mapping[str, FloatArray]) -> dict[str, list[str]]:
    """Notes on the further metrics that are undefined on some outer folds."""
    missing = {name: int(np.isnan(values).sum()) for name, values in report.items()}
    return {
        name: [f"{name} is undefined on {n} of {len(report[name])} outer folds, which are left out of its mean"]
        for name, n in missing.items()
        if n
    }


def _winner_notes(study: StudyResult, n_features: tuple[int, ...]) -> Iterator[str]:
    """Limitations of the outer folds' winners: convergence, selection, warnings."""
    outer, n_folds = study.outer, len(study.outer)
    missed = sum(refit.converged is False for refit in outer)
    if missed:
        yield f"{missed} of {n_folds} winners did not reach tol in max_iter iterations"
    if study.ranks_features:
        n_scored = np.array([study.n_scored[refit.fold] for refit in outer])
        empty = int((n_scored == 0).sum())
        if empty:
            yield f"{empty} of {n_folds} winners select no feature"
        fewer = int(((n_scored > 0) & (n_scored < n_features[-1])).sum()) if n_features else 0
        if fewer:
            yield f"{fewer} of {n_folds} winners give fewer than {n_features[-1]} features a score above 0"
    warned = Counter(message for refit in outer for message in dict.fromkeys(refit.warnings))
    for message, count in warned.items():
        yield f"the fits of {count} of {n_folds} winners warned: {message}"


@dataclass(frozen=True)
class Pair:
    """A member compared with the reference."""

    label: str
    compared: PairedComparison
    main: str
    p_plain: float
    p_corrected: float

    @property
    def test(self) -> TTest | None:
        """The main test; None if there is no test."""
        return self.compared.plain if self.main == "plain" else self.compared.corrected


def pairs_with_reference(
    rows: Mapping[str, MemberRow], reference: str, folds: OuterFolds | None, metric: str
) -> dict[str, Pair]:
    """Compare every member that has a result with the reference."""
    if folds is None or reference not in rows:
        return {}
    own, (low, high) = rows[reference].scores, metric_range(metric)
    found = {
        label: paired_comparison(row.scores, own, folds.ratio, largest=high - low)
        for label, row in rows.items()
        if label != reference
    }
    plain = holm([pair.plain.p_value if pair.plain else float("nan") for pair in found.values()])
    corrected = holm([pair.corrected.p_value if pair.corrected else float("nan") for pair in found.values()])
    main = "plain" if folds.are_draws else "corrected"
    return {
        label: Pair(label, pair, main, float(p), float(q))
        for (label, pair), p, q in zip(found.items(), plain, corrected, strict=True)
    }


def comparison_table(comparison: StoredComparison) -> pd.DataFrame:
    """Return the figures of a comparison as a table with one row a member.

    Columns ``member``, ``solver``, ``test_<metric>`` and ``sd`` (over the outer folds), ``test_<metric>/<task>`` if
    there are several tasks, ``<metric>`` and ``<metric>_sd`` for each further metric, ``least_features`` and
    ``most_features`` (smallest and largest number of features that is chosen on an outer fold, which the scores are of;
    missing where they are means over several numbers, or of no number), ``top`` (number of features that the next three
    refer to), ``redundancy``, ``stability``, ``stability_of_noise`` (with permuted labels), ``configurations`` (largest
    number that was tried for an outer fold), ``cpu_seconds`` (median of a winner's fit), ``difference`` to the
    reference, ``lower`` and ``upper`` (its 95 % interval), ``p_plain`` and ``p_corrected`` (after Holm's correction),
    ``won``, ``tied``, ``lost`` and ``note`` (limitations, or why there is no result). Values that there are not are
    missing.
    """
    import pandas as pd  # noqa: PLC0415 - takes half a second to import

    rows = member_rows(comparison)
    pairs = pairs_with_reference(rows, comparison.reference, comparison.folds, comparison.metric)
    metrics = list(dict.fromkeys(name for row in rows.values() for name in row.report))
    listed = []
    for member in comparison.members:
        shown: dict[str, Any] = {"member": member.label, "solver": member.solver}
        row, pair = rows.get(member.label), pairs.get(member.label)
        if row is not None:
            shown |= {f"test_{comparison.metric}": row.mean, "sd": row.sd}
            shown |= {f"test_{comparison.metric}/{task}": float(own.mean()) for task, own in row.by_task.items()}
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
    tasks = dict.fromkeys(task for row in rows.values() for task in row.by_task)
    by_task = [f"test_{comparison.metric}/{task}" for task in tasks]
    columns = ["member", "solver", f"test_{comparison.metric or 'score'}", "sd", *by_task, *reported]
    columns += ["least_features", "most_features", "top", "redundancy", "stability", "stability_of_noise"]
    columns += ["configurations", "cpu_seconds", "difference", "lower", "upper", "p_plain", "p_corrected"]
    columns += ["won", "tied", "lost", "note"]
    whole = dict.fromkeys(("least_features", "most_features", "top", "configurations", "won", "tied", "lost"), "Int64")
    real = [c for c in columns if c not in (*whole, "member", "solver", "note")]
    return pd.DataFrame(listed, columns=columns).astype(whole | dict.fromkeys(real, "float64"))


def score_table(comparison: StoredComparison) -> pd.DataFrame:
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


def pair_table(comparison: StoredComparison) -> pd.DataFrame:
    """Return the paired tests against the reference as a table with one row a pair.

    Columns ``member``, ``reference``, ``n_runs``, ``mean_difference`` and ``sd_difference`` (of the member's score
    minus the reference's), ``won``, ``tied``, ``lost``, ``test_train_ratio``, ``main_test``, then for ``plain`` and
    ``corrected`` each ``<test>_t``, ``<test>_p``, ``<test>_p_holm``, ``<test>_lower`` and ``<test>_upper`` (of the 95 %
    interval), and ``reason`` why there is no test.
    """
    import pandas as pd  # noqa: PLC0415

    pairs = pairs_with_reference(member_rows(comparison), comparison.reference, comparison.folds, comparison.metric)
    listed = [_pair_row(pair, comparison.reference) for pair in pairs.values()]
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


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonResult(StoredComparison):
    """Several studies that were scored on the same outer folds, with their table.

    Use `open` to create one. The parameters are those of `StoredComparison`.
    """

    def table(self) -> pd.DataFrame:
        """Return the comparison as a table with one row a member.

        The columns of `comparison_table`.
        """
        return comparison_table(self)

    def __repr__(self) -> str:
        return (
            f"ComparisonResult({self.name}, {len(self.finished)} of {len(self.members)} members finished, "
            f"reference {self.reference})"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.table().to_html(index=False)}"
