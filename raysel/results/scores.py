"""Scores of a finished study: its references, intervals, optimism and curves over the numbers of features."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from raysel.evaluation.records import RefitRecord
from raysel.numerics.classification import metric_range
from raysel.numerics.intervals import MeanInterval, PairedComparison, TTest, corrected_interval, paired_comparison

if TYPE_CHECKING:
    import pandas as pd

#: Names in the records of the guesses that read no feature; up to raysel 0.6 the stratified one is called ``chance``.
GUESSES: Final = ("most frequent class", "stratified guess", "chance")


@dataclass(frozen=True)
class Reference:
    """Scores of a reference on the test samples of the outer folds, compared with the study's method."""

    name: str
    scores: list[float]
    paired: PairedComparison
    curve: list[float]
    recorded: str
    of_draws: bool = False

    @property
    def test(self) -> TTest | None:
        """Test of the mean difference and its interval: plain over draws, else corrected; None if there is none."""
        return self.paired.plain if self.of_draws else self.paired.corrected

    @property
    def mean(self) -> float:
        """Mean score over the outer folds."""
        return float(np.mean(self.scores))

    @property
    def sd(self) -> float:
        """Sample standard deviation of the score over the outer folds; NaN if there is one."""
        return float(np.std(self.scores, ddof=1)) if len(self.scores) > 1 else float("nan")

    @property
    def verdict(self) -> str:
        """How the method compares by the interval: ``better``, ``worse``, ``not distinguishable`` or ``equal``.

        ``equal`` is the same score on every outer fold. A difference that is the same on every outer fold has no
        interval, and is ``not distinguishable``.
        """
        test = self.test
        if test is None:
            return "not distinguishable" if self.paired.differences.any() else "equal"
        if test.lower > 0:
            return "better"
        return "worse" if test.upper < 0 else "not distinguishable"


def fold_ratio(outer: Sequence[RefitRecord]) -> float:
    """Return the number of test samples by that of training samples, mean over the outer folds."""
    if not all(refit.n_train for refit in outer):
        return float("nan")
    return float(np.mean([refit.n_test / refit.n_train for refit in outer]))


def are_draws(outer: Sequence[RefitRecord]) -> bool:
    """Whether each repeat has one outer fold, a draw of the training set (``cv.train_per_class``), by their names."""
    return bool(outer) and all(re.fullmatch(r"repeat\d+_outer0", refit.fold) for refit in outer)


def score_interval(outer: Sequence[RefitRecord], metric: str) -> MeanInterval:
    """Return mean, SD and 95 % interval of the test score over the outer folds."""
    ratio, of_draws = fold_ratio(outer), are_draws(outer)
    values = _known(refit.test_score for refit in outer)
    found = corrected_interval(
        values, 0.0 if np.isnan(ratio) else ratio, limits=metric_range(metric), of_draws=of_draws
    )
    if np.isnan(ratio):
        reason = "the sizes of the folds were not recorded"
        return MeanInterval(found.mean, found.sd, ratio, found.confidence, None, None, reason)
    return found


def references(outer: Sequence[RefitRecord], metric: str) -> dict[str, Reference]:
    """Return the references that have a score on every outer fold."""
    ratio, method = fold_ratio(outer), _known(refit.test_score for refit in outer)
    low, high = metric_range(metric)
    found: dict[str, Reference] = {}
    for recorded in outer[0].references if outer else ():
        name = "chance" if recorded in GUESSES else recorded
        scores = _known(refit.reference(recorded) for refit in outer)
        if len(scores) == len(method) == len(outer) and not np.isnan(ratio):
            curve = np.mean([refit.references[recorded] for refit in outer], axis=0).tolist()
            paired = paired_comparison(method, scores, ratio, largest=high - low)
            reference = Reference(name, scores, paired, curve, recorded, are_draws(outer))
            if name not in found or reference.mean > found[name].mean:
                found[name] = reference
    return found


def optimism(outer: Sequence[RefitRecord]) -> dict[str, float]:
    """Return the mean over the outer folds of the winners' scores on ever more honest samples."""
    found = {}
    training = _known(refit.training_score for refit in outer)
    if outer and len(training) == len(outer):
        found["training"] = float(np.mean(training))
    found["inner"] = float(np.mean([refit.inner_score for refit in outer]))
    found["test"] = float(np.mean(_known(refit.test_score for refit in outer)))
    return found


def score_curves(outer: Sequence[RefitRecord], n_features: Sequence[int], metric: str) -> pd.DataFrame:
    """Return inner and test scores for each number of features as a table.

    One row a number: ``n_features``, ``inner_mean``, ``inner_sd``, ``test_mean``, ``test_sd`` (over the outer folds)
    and one column a reference with its mean, by its name. The inner columns are NaN if the inner scores were not
    recorded for each number.
    """
    import pandas as pd  # noqa: PLC0415 - takes half a second to import

    k = len(n_features)
    test = np.array([refit.test_scores[:k] for refit in outer], dtype=np.float64)
    inner = np.array([refit.inner_curve if len(refit.inner_curve) == k else [np.nan] * k for refit in outer])
    table: dict[str, Any] = {"n_features": list(n_features)}
    for name, values in (("inner", inner), ("test", test)):
        table |= {f"{name}_mean": values.mean(axis=0)}
        table |= {f"{name}_sd": values.std(axis=0, ddof=1) if len(values) > 1 else np.full(k, np.nan)}
    for name, reference in references(outer, metric).items():
        table[name] = np.broadcast_to(reference.curve, k) if k else []
    return pd.DataFrame(table)


def score_figures(outer: Sequence[RefitRecord], curves: pd.DataFrame, metric: str) -> dict[str, Any]:
    """Return the figures that stand beside a study's test scores, for its manifest and its last record."""
    found = score_interval(outer, metric)
    interval: dict[str, Any] = {"lower": found.lower, "upper": found.upper, "confidence": found.confidence}
    interval["kind"] = "plain, over draws of the training set" if found.of_draws else "corrected"
    interval |= {"test_train_ratio": _finite(found.ratio), "undefined_because": found.reason or None}
    return {
        "interval": interval,
        "references": {name: _described(reference, outer) for name, reference in references(outer, metric).items()},
        "optimism": optimism(outer),
        "curve": {name: [_finite(value) for value in values] for name, values in curves.to_dict("list").items()},
    }


def _described(reference: Reference, outer: Sequence[RefitRecord]) -> dict[str, Any]:
    test, name = reference.test, reference.recorded
    lower, upper = (test.lower, test.upper) if test else (None, None)
    difference = {"mean": reference.paired.mean, "lower": lower, "upper": upper}
    return {
        "test_mean": reference.mean,
        "test_std": _finite(reference.sd),
        "test": reference.scores,
        "curve": reference.curve,
        **({"guess": name} if reference.name == "chance" else {}),
        **({"C": C} if all(C := [refit.reference_c.get(name) for refit in outer]) else {}),
        "method_minus_it": {**difference, "undefined_because": reference.paired.reason or None},
        "verdict": reference.verdict,
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
