"""Numbers of features with which the estimator fails, over inner folds and configurations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from raysel.core.printing import by_number
from raysel.evaluation.records import EstimatorFailure, TrialRecord


@dataclass(frozen=True, kw_only=True)
class FailingNumbers:
    """Numbers of features with which the estimator fails on as many inner folds."""

    n_features: tuple[int, ...]
    #: Setting of the estimator, e.g. ``"C=0.1"``; empty if it has none.
    setting: str
    n_failed: int
    #: Number of all inner folds.
    n_inner: int
    #: Reason with the first number.
    reason: str

    @property
    def what(self) -> str:
        """Numbers and setting as text, e.g. ``"12 and 20 features, C=0.1"``."""
        *first, last = self.n_features
        what = by_number(last, "1 feature", f"{last} features")
        if first:
            what = f"{', '.join(map(str, first))} and {last} features"
        if self.setting:
            what += f", {self.setting}"
        return what

    def __str__(self) -> str:
        return f"{self.what}: {self.reason} ({self.n_failed} of {self.n_inner} inner folds)"


def failing_numbers(
    fits: Iterable[tuple[Hashable, Sequence[EstimatorFailure]]],
) -> list[FailingNumbers]:
    """Count the inner folds on which the estimator fails, from folds and failures of fits."""
    folds: set[Hashable] = set()
    failed: dict[tuple[int, str], set[Hashable]] = defaultdict(set)
    reasons: dict[tuple[int, str], set[str]] = defaultdict(set)
    for fold, failures in fits:
        folds.add(fold)
        for n, setting, reason in failures:
            failed[n, setting].add(fold)
            reasons[n, setting].add(reason)
    alike: dict[tuple[str, int], list[int]] = defaultdict(list)
    for n, setting in sorted(failed):
        alike[setting, len(failed[n, setting])].append(n)
    return [
        FailingNumbers(
            n_features=tuple(numbers),
            setting=setting,
            n_failed=n_failed,
            n_inner=len(folds),
            reason=min(reasons[numbers[0], setting]),
        )
        for (setting, n_failed), numbers in alike.items()
    ]


def failing_in_trials(records: Iterable[TrialRecord]) -> list[FailingNumbers]:
    """Count the inner folds on which the estimator fails in the fits of some trials."""
    return failing_numbers(_inner_fits(records))


def _inner_fits(
    records: Iterable[TrialRecord],
) -> Iterator[tuple[Hashable, Sequence[EstimatorFailure]]]:
    for record in records:
        for fold, trace in record.folds.items():
            yield from (((fold, i), fit.failures) for i, fit in enumerate(trace.inner))
