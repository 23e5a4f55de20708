"""Figures of each member of a comparison, and the limitations that belong to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from raysel.arrays import FloatArray
from raysel.base.capabilities import RECONSTRUCTED, TRANSDUCTIVE
from raysel.comparison.stored import Member, StoredComparison
from raysel.metrics.stability import Stability
from raysel.ranking.feature_ranking import default_n_selected
from raysel.results.remarks import search_remarks
from raysel.results.result import StudyResult
from raysel.results.trust import NoiseLevel, noise_level


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
        "tried": [remark.removesuffix(".") for remark in search_remarks(study.records, study.stored.search)],
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
