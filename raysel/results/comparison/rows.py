"""Figures of the members of a comparison, and their differences to the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.core.errors import ConfigError, DirectoryError
from raysel.evaluation.feature_ranking import default_n_selected
from raysel.evaluation.plan import NestedPlan
from raysel.numerics.classification import metric_range
from raysel.numerics.inference import PairedComparison, TTest, holm, paired_comparison
from raysel.numerics.rankings import Stability
from raysel.results.agreement import NoiseLevel
from raysel.results.facts import Facts
from raysel.results.remarks import search_remarks
from raysel.results.result import StudyResult
from raysel.results.texts import format_remark, number_range


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

    def describe(self) -> str:
        """Return number, kind and sizes of the folds, e.g. ``"5 outer folds (80 training and 20 test samples)"``."""
        sizes = " and ".join(
            f"{number_range([len(rows) for rows in sets])} {what}"
            for sets, what in ((self.train, "training"), (self.test, "test"))
        )
        return f"{self.describe_number()} ({sizes} samples)"

    def describe_number(self) -> str:
        """Return number and kind of the folds, e.g. ``"20 draws of the training set"``."""
        return f"{len(self.names)} {'draws of the training set' if self.are_draws else 'outer folds'}"

    @property
    def are_repeated(self) -> bool:
        """Whether every sample is tested more than once, in several repeats of a cross-validation."""
        return not self.are_draws and len(set(self.repeats)) > 1


@dataclass(frozen=True)
class MemberRow:
    """Figures of one member that has a result."""

    label: str
    facts: Facts
    #: Smallest and largest number of configurations that were tried for an outer fold.
    n_tried: tuple[int, int]
    #: Limitations by what they belong to: ``member``, ``test``, ``tried``, or the name of a further metric.
    notes: dict[str, list[str]]

    @classmethod
    def of(cls, label: str, study: StudyResult, kinds: list[str]) -> Self:
        """Compute the figures of a member, whose method is of some kinds that a reader must know."""
        # One number for all members: stabilities of different numbers of features are not comparable.
        listed = tuple(study.config["evaluation"].get("n_features") or ())
        facts = Facts.of(study, default_n_selected(listed, len(study.feature_names)))
        by_fold = Counter(record.fold for record in study.records)
        shared = by_fold.pop("", 0)  # a search that does not adapt tries each configuration on all folds
        each = [by_fold[refit.fold] for refit in study.outer]
        remarks = map(format_remark, search_remarks(study.records, study.stored.search))
        notes = {
            "member": kinds,
            "test": list(_winner_notes(facts)),
            "tried": [remark.removesuffix(".") for remark in remarks],
            **_undefined(_report(facts)),
        }
        return cls(label, facts, (shared + min(each), shared + max(each)), notes)

    @cached_property
    def scores(self) -> FloatArray:
        """Test score on each outer fold, at the number of features that the inner scores choose there.

        The mean over the numbers of features if ``evaluation.choose_n`` is ``mean``, or over the tasks; shape
        (n_folds,).
        """
        return np.array(self.facts.test.values, dtype=np.float64)

    @cached_property
    def by_label(self) -> dict[str, FloatArray]:
        """Test scores for each number of features or each task, by its name; empty if there is one score."""
        tests = np.array([refit.test_scores for refit in self.facts.outer], dtype=np.float64)
        return {name: tests[:, i] for i, name in enumerate(self.facts.study.labels)}

    @property
    def by_task(self) -> dict[str, FloatArray]:
        """Test score of each task on each outer fold; empty if there is one task."""
        return {} if self.n_features else self.by_label

    @cached_property
    def report(self) -> dict[str, FloatArray]:
        """Scores by the further metrics; NaN on outer folds on which the metric is undefined; each (n_folds,)."""
        return _report(self.facts)

    @property
    def n_features(self) -> tuple[int, ...]:
        """Numbers of features that are scored."""
        return _scored_numbers(self.facts)

    @property
    def chosen(self) -> tuple[int, ...]:
        """Number of features that the score of each outer fold is of; empty for a mean over several, or of none."""
        numbers = (refit.n_features for refit in self.facts.outer if self.facts.study.choose_n != "mean")
        return tuple(n for n in numbers if n)

    @property
    def top(self) -> int | None:
        """Number of features that stability and redundancy are of; None if the method ranks none."""
        return self.facts.agreement.top.n if self.facts.agreement else None

    @property
    def stability(self) -> Stability | None:
        """Stability of the top features."""
        return self.facts.agreement.stability if self.facts.agreement else None

    @property
    def noise(self) -> NoiseLevel | None:
        """Level of the stability with permuted labels."""
        return self.facts.agreement.noise if self.facts.agreement else None

    @property
    def redundancy(self) -> float | None:
        """Mean redundancy of the top features."""
        value = self.facts.mean_redundancy.get(self.top, float("nan")) if self.top else float("nan")
        return value if np.isfinite(value) else None

    @property
    def cpu_seconds(self) -> float | None:
        """Median CPU time of a winner's fit."""
        seconds = [refit.cpu_seconds for refit in self.facts.outer if refit.cpu_seconds is not None]
        return float(np.median(seconds)) if seconds else None

    @property
    def winner(self) -> tuple[str, int]:
        """Most frequent winner of the outer folds, and on how many it won."""
        return Counter(refit.name for refit in self.facts.outer).most_common(1)[0]


def _report(facts: Facts) -> dict[str, FloatArray]:
    outer = facts.outer
    metrics = [name for name in outer[0].report if all(name in refit.report for refit in outer)]
    return {name: np.array([refit.reported(name) for refit in outer], dtype=np.float64) for name in metrics}


def _scored_numbers(facts: Facts) -> tuple[int, ...]:
    return () if facts.is_native else tuple(facts.evaluation["n_features"])


def _undefined(report: Mapping[str, FloatArray]) -> dict[str, list[str]]:
    """Notes on the further metrics that are undefined on some outer folds."""
    missing = {name: int(np.isnan(values).sum()) for name, values in report.items()}
    return {
        name: [f"{name} is undefined on {n} of {len(report[name])} outer folds, which are left out of its mean"]
        for name, n in missing.items()
        if n
    }


def _winner_notes(facts: Facts) -> Iterator[str]:
    """Limitations of the outer folds' winners: convergence, selection, warnings."""
    outer, n_folds, n_features = facts.outer, len(facts.outer), _scored_numbers(facts)
    missed = sum(refit.converged is False for refit in outer)
    if missed:
        yield f"{missed} of {n_folds} winners did not reach tol in max_iter iterations"
    if facts.agreement is not None:
        n_scored = np.array([facts.n_scored[refit.fold] for refit in outer])
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
