"""Figures of the members of a comparison, and their differences to the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Self

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.core.errors import ConfigError, DirectoryError
from raysel.evaluation.feature_ranking import default_n_selected
from raysel.evaluation.plan import NestedPlan
from raysel.numerics.inference import PairedComparison, TTestResult, holm, paired_comparison
from raysel.numerics.metrics import metric_range
from raysel.results.facts import Facts
from raysel.results.remarks import format_remarks
from raysel.results.result import StudyResult
from raysel.results.scores import FoldValues, finite
from raysel.results.texts import number_range

TESTS = ("plain", "corrected")
#: Level of the tests, after Holm's correction.
LEVEL = 0.05


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
        """Whether each fold is a random draw of the training set (``cv.train_per_class``)."""
        return set(Counter(self.repeats).values()) == {1}

    @cached_property
    def ratio(self) -> float:
        """Number of test samples divided by that of training samples, mean over the folds."""
        ratios = [len(test) / len(train) for train, test in zip(self.train, self.test, strict=True)]
        return sum(ratios) / len(ratios)

    def describe(self) -> str:
        """Return number, kind and sizes: ``"5 outer folds (80 training and 20 test samples)"``."""
        n_train, n_test = (number_range(list(map(len, sets))) for sets in (self.train, self.test))
        return f"{self.describe_number()} ({n_train} training and {n_test} test samples)"

    def describe_number(self) -> str:
        """Return number and kind of the folds, e.g. ``"20 draws of the training set"``."""
        kind = "draws of the training set" if self.are_draws else "outer folds"
        return f"{len(self.names)} {kind}"

    @property
    def are_repeated(self) -> bool:
        """Whether every sample is tested more than once, in several repeats."""
        return not self.are_draws and len(set(self.repeats)) > 1


@dataclass(frozen=True)
class MemberRow:
    """Figures of one member that has a result."""

    label: str
    facts: Facts
    #: Kinds of the method that a reader must know.
    kinds: Sequence[str]

    @classmethod
    def of(cls, label: str, study: StudyResult, kinds: Sequence[str]) -> Self:
        """Compute the figures of a member."""
        # One number for all members: stabilities of different numbers of features are not
        # comparable.
        listed = tuple(study.facts.evaluation.get("n_features") or ())
        top = default_n_selected(listed, len(study.recorded.feature_names))
        return cls(label, Facts(study.recorded, top), kinds)

    @cached_property
    def notes(self) -> dict[str, list[str]]:
        """Limitations by what they are of: ``member``, ``test``, ``tried`` or a further metric."""
        remarks = [
            remark
            for remark in self.facts.actions
            if remark.key in ("time_budget", "failed_trials", "estimator_fails")
        ]
        tried = [sentence.removesuffix(".") for sentence in format_remarks(remarks)]
        notes = {"member": [*self.kinds], "test": list(_winner_notes(self.facts)), "tried": tried}
        for name, values in self.facts.report.items():
            if n := values.values.count(None):
                of = f"{n} of {len(values.values)} outer folds, which are left out of its mean"
                notes[name] = [f"{name} is undefined on {of}"]
        return notes

    @cached_property
    def scores(self) -> FloatArray:
        """Test score on each outer fold, shape (n_folds,), at its chosen number of features."""
        return self.facts.test.array

    @cached_property
    def by_n(self) -> dict[int, FoldValues]:
        """Test scores by number of features; empty if no number is chosen."""
        if self.facts.is_native:
            return {}
        tests = np.array([refit.test_scores for refit in self.facts.outer], dtype=np.float64)
        pairs = zip(self.facts.sizes, tests.T.tolist(), strict=True)
        return {n: FoldValues.of(scores) for n, scores in pairs}

    @property
    def chosen(self) -> tuple[int, ...]:
        """Number of features that the score of each outer fold is of; empty if there is none."""
        numbers = (refit.n_features for refit in self.facts.outer if self.facts.has_chosen_n)
        return tuple(n for n in numbers if n)

    @property
    def redundancy(self) -> float | None:
        """Mean redundancy of the top features."""
        if not self.facts.agreement:
            return None
        return finite(self.facts.mean_redundancy.get(self.facts.top, np.nan))

    @property
    def cpu_seconds(self) -> float | None:
        """Median CPU time of a winner's fit."""
        seconds = [refit.cpu_seconds for refit in self.facts.outer if refit.cpu_seconds is not None]
        if not seconds:
            return None
        return float(np.median(seconds))


def _winner_notes(facts: Facts) -> Iterator[str]:
    """Limitations of the outer folds' winners: convergence, selection, warnings."""
    outer, n_folds = facts.outer, len(facts.outer)
    if missed := sum(refit.converged is False for refit in outer):
        yield f"{missed} of {n_folds} winners did not reach tol in max_iter iterations"
    n_scored = [facts.n_scored[refit.fold] for refit in outer if facts.agreement]
    if empty := n_scored.count(0):
        yield f"{empty} of {n_folds} winners select no feature"
    largest = max(facts.sizes, default=0)
    if fewer := sum(0 < n < largest for n in n_scored):
        yield f"{fewer} of {n_folds} winners give fewer than {largest} features a score above 0"
    warned = Counter(chain.from_iterable(dict.fromkeys(refit.warnings) for refit in outer))
    for message, count in warned.items():
        yield f"the fits of {count} of {n_folds} winners warned: {message}"


def group_labels(pairs: Iterable[tuple[object, str]]) -> dict[str, list[str]]:
    """Return different labels by the text of what they have in common."""
    groups: dict[str, list[str]] = {}
    for key, label in dict.fromkeys((str(key), label) for key, label in pairs):
        groups.setdefault(key, []).append(label)
    return groups


@dataclass(frozen=True)
class Pair:
    """A member compared with the reference."""

    label: str
    compared: PairedComparison
    #: Name of the main test, ``plain`` or ``corrected``.
    main: str
    #: P value of each test after Holm's correction; NaN if there is no test.
    p: Mapping[str, float]

    @property
    def test(self) -> TTestResult | None:
        """The main test; None if there is no test."""
        return self.tests[self.main]

    @property
    def is_of_pool(self) -> bool:
        """Whether the main test holds for these samples only."""
        return self.main == "plain"

    @property
    def verdict(self) -> str:
        """Verdict by the p value: ``better``, ``worse``, ``not distinguishable`` or ``equal``."""
        if self.test is None and not self.compared.differences.any():
            return "equal"
        if self.test is None or self.p[self.main] >= LEVEL:
            return "not distinguishable"
        return "better" if self.compared.mean > 0 else "worse"

    @property
    def tests(self) -> dict[str, TTestResult | None]:
        """Both tests by name."""
        return {"plain": self.compared.plain, "corrected": self.compared.corrected}


def pairs_with_reference(
    rows: Mapping[str, MemberRow], reference: str, folds: OuterFolds | None, metric: str
) -> dict[str, Pair]:
    """Compare every member that has a result with the reference."""
    if folds is None or reference not in rows:
        return {}
    scores, (low, high) = rows[reference].scores, metric_range(metric)
    main = "plain" if folds.are_draws else "corrected"
    pairs = [
        Pair(
            label, paired_comparison(row.scores, scores, folds.ratio, largest=high - low), main, {}
        )
        for label, row in rows.items()
        if label != reference
    ]
    p = {
        name: holm([test.p_value if (test := pair.tests[name]) else np.nan for pair in pairs])
        for name in TESTS
    }
    return {
        pair.label: replace(pair, p={name: float(p[name][i]) for name in TESTS})
        for i, pair in enumerate(pairs)
    }
