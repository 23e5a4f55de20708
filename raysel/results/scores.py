"""Scores of a finished study on its outer folds: interval, references, optimism, curves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.data.targets.guesses import GUESSES
from raysel.evaluation.confounds import CONFOUNDS
from raysel.evaluation.plan import name_draws
from raysel.evaluation.records import RefitRecord
from raysel.numerics.inference import (
    MeanInterval,
    PairedComparison,
    TTestResult,
    draws_interval,
    paired_comparison,
    sample_interval,
    sample_test,
)
from raysel.numerics.metrics import averages_classes, metric_range

#: Metrics of which a guess that reads no feature has nearly the same score whatever the samples
#: are.
_FIXED_CHANCE: Final = (
    *("out_of_sample_r2", "r2", "explained_variance", "pearson", "spearman"),
    *("roc_auc", "roc_auc_ovr", "roc_auc_ovo", "roc_auc_ovr_weighted", "roc_auc_ovo_weighted"),
    *("average_precision", "mean_average_precision"),
)
#: Words for the references that rank the features by each alone.
RANKED_BY: Final = {"f_test": "F-test", "variance": "largest variance"}
#: References that have one score for all numbers of features.
_WITHOUT_NUMBER: Final = ("all features", CONFOUNDS, "chance")


@dataclass(frozen=True)
class FoldValues:
    """Values on the outer folds, None where one is undefined, with their mean and sample SD.

    The mean is NaN if a value is undefined, the SD also of one fold.
    """

    values: tuple[float | None, ...]
    mean: float
    sd: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> FoldValues:
        """Compute mean and SD."""
        kept = tuple(values)
        numbers, sd = np.array(kept, dtype=np.float64), float("nan")
        if len(kept) > 1:
            sd = float(np.std(numbers, ddof=1))
        return cls(kept, float(np.mean(numbers)), sd)

    @property
    def array(self) -> FloatArray:
        """The values, NaN where one is undefined; shape (n_folds,)."""
        return np.array(self.values, dtype=np.float64)

    @property
    def known_values(self) -> list[float]:
        """The values without those that are undefined."""
        return _known(self.values)

    @property
    def known(self) -> FoldValues | None:
        """The values without those that are undefined, with their mean; None if all are."""
        if not self.known_values:
            return None
        return FoldValues.of(self.known_values)

    @property
    def mean_of_known(self) -> float:
        """Mean of the values that are defined; NaN if none is."""
        known = self.known
        return known.mean if known else math.nan

    def to_json(self) -> dict[str, Any]:
        """Return the values as plain data of the manifest."""
        return {"test_mean": self.mean, "test_std": self.sd, "test": list(self.values)}


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Scores of a reference on the outer folds, compared with those of the method."""

    #: Name: ``all features``, ``variance``, ``f_test``, ``confounds alone`` or ``chance``.
    name: str
    #: Score on each outer fold.
    scores: list[float]
    #: The method's scores compared with them.
    paired: PairedComparison
    #: Mean over the outer folds for each number of features, NaN where the estimator fails on one;
    #: or one value if it does not depend on it.
    curve: list[float]
    #: Name in the records: of ``chance`` that of the best guess.
    recorded: str
    #: Whether the outer folds are draws of the training set.
    of_draws: bool = False
    #: Test over the test samples, of chance with a score that hardly depends on them; None for
    #: others.
    over_samples: TTestResult | None = None
    #: Number of features on each outer fold; empty where there is none to choose.
    n_features: tuple[int, ...] = ()
    #: Setting of the estimator on each outer fold for each score; empty if it has none.
    settings: tuple[list[dict[str, Any]], ...] = ()

    @property
    def test(self) -> TTestResult | None:
        """Test of the mean difference and its interval; None if there is none.

        It is plain over draws, over the test samples where chance hardly depends on them, else
        corrected.
        """
        if self.over_samples is not None:
            return self.over_samples
        if self.of_draws:
            return self.paired.plain
        return self.paired.corrected

    @cached_property
    def values(self) -> FoldValues:
        """Score on each outer fold, with mean and SD."""
        return FoldValues.of(self.scores)

    @property
    def mean(self) -> float:
        """Mean score over the outer folds."""
        return self.values.mean

    @property
    def sd(self) -> float:
        """Sample standard deviation of the score over the outer folds; NaN if there is one."""
        return self.values.sd

    @property
    def verdict(self) -> str:
        """Verdict by the interval: ``better``, ``worse``, ``not distinguishable`` or ``equal``.

        ``equal`` is the same score on every outer fold. A difference that is the same on every
        outer fold has no interval, and is ``not distinguishable``.
        """
        test = self.test
        if test is None and not self.paired.differences.any():
            return "equal"
        if test is not None and test.lower > 0:
            return "better"
        if test is not None and test.upper < 0:
            return "worse"
        return "not distinguishable"

    def to_json(self) -> dict[str, Any]:
        """Return the scores and the difference as plain data."""
        figures: dict[str, Any] = {
            "test_mean": self.mean,
            "test_std": finite(self.sd),
            "test": self.scores,
            "curve": list(map(finite, self.curve)),
        }
        if self.name == "chance":
            figures["guess"] = self.recorded
        if self.settings:
            figures["settings"] = list(self.settings)
        test = self.test
        figures["method_minus_it"] = {
            "mean": self.paired.mean,
            "lower": test.lower if test else None,
            "upper": test.upper if test else None,
            "undefined_because": self.paired.reason or None,
        }
        figures["verdict"] = self.verdict
        return figures


def fold_ratio(outer: Sequence[RefitRecord]) -> float:
    """Return the number of test samples by that of training samples, mean over the outer folds."""
    if not all(refit.n_train for refit in outer):
        return float("nan")
    return float(np.mean([refit.n_test / refit.n_train for refit in outer]))


def are_draws(outer: Sequence[RefitRecord]) -> bool:
    """Whether the outer folds are draws of the training set (``cv.train_per_class``)."""
    return name_draws(refit.fold for refit in outer)


def n_repeats(outer: Sequence[RefitRecord]) -> int:
    """Return the number of repeats of the cross-validation, by the names of the outer folds."""
    return len({refit.fold.rpartition("outer")[0] for refit in outer})


def score_interval(outer: Sequence[RefitRecord], metric: str) -> MeanInterval:
    """Return mean, SD and 95 % interval of the test score over the outer folds."""
    ratio, limits = fold_ratio(outer), metric_range(metric)
    scores = _known(refit.test_score for refit in outer)
    if not np.isnan(ratio) and are_draws(outer):
        return draws_interval(scores, ratio, limits=limits)
    if reason := _why_no_interval(outer, metric):
        test = FoldValues.of(scores)
        return MeanInterval(mean=test.mean, sd=test.sd, ratio=ratio, confidence=0.95, reason=reason)
    values = [refit.pseudo_values or () for refit in outer]
    return sample_interval(scores, ratio, values, n_repeats=n_repeats(outer), limits=limits)


def _why_no_interval(outer: Sequence[RefitRecord], metric: str) -> str:
    """Why the test score over folds has no interval; empty if it has one."""
    if np.isnan(fold_ratio(outer)):
        return "sizes of folds were not recorded"
    if any(refit.pseudo_values is None for refit in outer):
        return "scores of samples were not recorded"
    if not all(refit.pseudo_values for refit in outer):
        return "undefined without some test sample"
    if averages_classes(metric) and _has_class_without_hits(outer):
        return "one class is never predicted right"
    return ""


def _has_class_without_hits(outer: Sequence[RefitRecord]) -> bool:
    """Whether no test sample of a class, or with a label, is predicted right on any outer fold."""
    if not outer or not all(refit.confusion for refit in outer):
        return False
    counts = np.sum([refit.confusion for refit in outer], axis=0)
    n_samples = sum(refit.n_test for refit in outer)
    if counts.sum() <= n_samples:  # a row for each class; samples without a label are left out
        hits, members = counts.diagonal(), counts.sum(axis=1)
    else:  # a row [tn, fp, fn, tp] for each label
        hits, members = counts[:, 3], counts[:, 2:].sum(axis=1)
    return bool(((hits == 0) & (members > 0)).any())


def references(
    outer: Sequence[RefitRecord], metric: str, sizes: Sequence[int] = ()
) -> dict[str, Reference]:
    """Return the references with a score on every fold, of chance that of the best guess.

    ``sizes`` are the numbers of features that are scored.
    """
    kept: dict[str, Reference] = {}
    for recorded in chain.from_iterable(refit.references for refit in outer[:1]):
        reference = _reference(outer, metric, sizes, recorded)
        if reference is None:
            continue
        name = reference.name
        if name not in kept or reference.mean > kept[name].mean:
            kept[name] = reference
    return kept


def _reference(
    outer: Sequence[RefitRecord], metric: str, sizes: Sequence[int], recorded: str
) -> Reference | None:
    """Compare a reference with the method; None if it lacks a score on a fold."""
    name = "chance" if recorded in GUESSES else recorded
    ratio, method = fold_ratio(outer), _known(refit.test_score for refit in outer)
    scores = _known(refit.reference(recorded) for refit in outer)
    if not len(scores) == len(method) == len(outer) or np.isnan(ratio):
        return None
    low, high = metric_range(metric)
    n_features: list[int] = []
    if sizes and name not in _WITHOUT_NUMBER:
        positions = [refit.reference_positions.get(recorded, refit.position) for refit in outer]
        n_features = [sizes[i] for i in positions if i is not None]
    settings = [refit.reference_settings.get(recorded, []) for refit in outer]
    curves = _floats([refit.references[recorded] for refit in outer])
    over_samples: TTestResult | None = None
    if name == "chance":
        over_samples = _test_against_chance(outer, metric, scores)
    return Reference(
        name=name,
        scores=scores,
        paired=paired_comparison(method, scores, ratio, largest=high - low),
        curve=curves.mean(axis=0).tolist(),
        recorded=recorded,
        of_draws=are_draws(outer),
        over_samples=over_samples,
        n_features=tuple(n_features),
        settings=tuple(settings) if all(settings) else (),
    )


def _test_against_chance(
    outer: Sequence[RefitRecord], metric: str, guessed: Sequence[float]
) -> TTestResult | None:
    """Test the difference to a guess whose score hardly depends on the samples, if it is so."""
    values = [refit.pseudo_values for refit in outer]
    if metric not in _FIXED_CHANCE or are_draws(outer) or not all(values):
        return None
    differences = np.subtract(_known(refit.test_score for refit in outer), guessed)
    low, high = metric_range(metric)
    known = [each or [] for each in values]
    return sample_test(
        differences, fold_ratio(outer), known, n_repeats=n_repeats(outer), largest=high - low
    )


def guesses(outer: Sequence[RefitRecord]) -> dict[str, float]:
    """Return the mean scores of the guesses of which `references` names the best chance.

    It is empty where there is one guess.
    """
    scores = {name: _known(refit.reference(name) for refit in outer) for name in GUESSES}
    means = {
        name: float(np.mean(values))
        for name, values in scores.items()
        if outer and len(values) == len(outer)
    }
    if len(means) < 2:
        return {}
    return means


def optimism(outer: Sequence[RefitRecord]) -> dict[str, float]:
    """Return the mean over the outer folds of the winners' scores on ever more honest samples."""
    means = {}
    training = _known(refit.training_score for refit in outer)
    if outer and len(training) == len(outer):
        means["training"] = float(np.mean(training))
    means["inner"] = float(np.mean([refit.inner_score for refit in outer]))
    means["test"] = float(np.mean(_known(refit.test_score for refit in outer)))
    return means


def score_curves(
    outer: Sequence[RefitRecord], sizes: Sequence[int], references: Mapping[str, Reference]
) -> dict[str, list[float]]:
    """Return mean and SD of the scores, and references' means, by number of features.

    The inner columns are NaN if the inner scores were not recorded for each number; all are where
    the estimator fails on an outer fold.
    """
    k = len(sizes)
    unknown: list[float | None] = [None] * k
    inner = [refit.inner_curve if len(refit.inner_curve) == k else unknown for refit in outer]
    curves: dict[str, list[float]] = {"n_features": list(sizes)}
    for name, rows in (("inner", inner), ("test", [refit.test_scores[:k] for refit in outer])):
        values, sd = _floats(rows), np.full(k, np.nan)
        if len(values) > 1:
            sd = values.std(axis=0, ddof=1)
        curves |= {f"{name}_mean": values.mean(axis=0).tolist(), f"{name}_sd": sd.tolist()}
    for name, reference in references.items():
        curves[name] = np.broadcast_to(reference.curve, k).tolist() if k else []
    return curves


def finite(value: float) -> float | None:
    """Return a number, None for NaN and infinity, which JSON does not have."""
    if not np.isfinite(value):
        return None
    return value


def _floats(rows: Sequence[Sequence[float | None]]) -> FloatArray:
    """Rows of scores, NaN where there is none; returns (n_rows, n_columns)."""
    return np.array(rows, dtype=np.float64)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
