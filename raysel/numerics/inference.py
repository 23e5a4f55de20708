"""Confidence intervals of mean scores, and tests of methods over folds and over data sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, stdtr, stdtrit

from raysel.core.arrays import FloatArray
from raysel.core.errors import ConfigError, DataError

#: A range of scores up to this size is a rounding error.
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class MeanInterval:
    """A mean score with its standard deviation and its confidence interval."""

    #: Mean and sample standard deviation of the scores; ``sd`` is NaN for one score.
    mean: float
    sd: float
    #: Number of test samples divided by the number of training samples of a run.
    ratio: float
    #: Coverage that the interval is computed for.
    confidence: float
    #: Ends of the interval, which is symmetric about the mean and cut at the range of the metric;
    #: None if there is no interval.
    lower: float | None = None
    upper: float | None = None
    #: Why there is no interval; empty if there is one.
    reason: str = ""
    #: Whether the runs are independent draws of the training set from one pool of samples, for
    #: which the interval is Student's over the draws.
    of_draws: bool = False


def check_share(name: str, value: float, example: float = 0.95) -> None:
    """Check that a confidence, a level or another share lies between 0 and 1."""
    if not 0 < value < 1:
        raise ConfigError(f"{name}={value!r} must lie between 0 and 1, e.g. {example}.")


def _sample_sd(values: FloatArray) -> float:
    """Standard deviation of a sample; NaN of one value."""
    if len(values) == 1:
        return math.nan
    return float(values.std(ddof=1))


def _run_scores(scores: ArrayLike, ratio: float) -> FloatArray:
    """Check scores of the runs of a resampling and the ratio of its numbers of samples."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise DataError(f"the scores have shape {values.shape}; give one number a run.")
    if not np.isfinite(values).all():
        raise DataError("the scores contain NaN or infinity; leave out the runs without a score.")
    if not ratio >= 0:
        raise DataError(f"ratio={ratio!r} must not be negative; give n_test / n_train.")
    return values


def draws_interval(
    scores: ArrayLike,
    ratio: float,
    confidence: float = 0.95,
    *,
    limits: tuple[float, float] = (-np.inf, np.inf),
) -> MeanInterval:
    """Compute Student's interval of a mean score over independent draws of the training set.

    `scores` is (n_draws,).
    """
    check_share("confidence", confidence)
    values = _run_scores(scores, ratio)
    n_runs = len(values)
    interval = MeanInterval(
        mean=float(values.mean()),
        sd=_sample_sd(values),
        ratio=ratio,
        confidence=confidence,
        of_draws=True,
    )
    if n_runs == 1:
        return replace(interval, reason="there is one run only")
    if np.ptp(values) <= _ROUNDING:
        return replace(interval, sd=0.0, reason="all runs score the same")
    margin = float(stdtrit(n_runs - 1, (1 + confidence) / 2) * interval.sd / np.sqrt(n_runs))
    return _with_ends(interval, margin, limits)


def _with_ends(interval: MeanInterval, margin: float, limits: tuple[float, float]) -> MeanInterval:
    """Set the ends of an interval about its mean, which are cut at the limits of a score."""
    lower, upper = max(interval.mean - margin, limits[0]), min(interval.mean + margin, limits[1])
    return replace(interval, lower=lower, upper=upper)


def sample_interval(
    scores: ArrayLike,
    ratio: float,
    pseudo_values: Sequence[ArrayLike],
    confidence: float = 0.95,
    *,
    n_repeats: int = 1,
    limits: tuple[float, float] = (-np.inf, np.inf),
) -> MeanInterval:
    r"""Compute the interval of a mean score over folds, by the spread over test samples.

    With J folds of scores s_j, and p_(ju) the jackknife pseudo-values of the g_j test samples, or
    groups, of fold j, the variance of a fold's score is

        v = N / (N - 1) 1/J sum_j sum_u ((p_(ju) - p) / g_j)^2,

    N the number of samples or groups and p the mean of the folds' means. The interval is

        mean(s) -+ t sqrt((1/J + r) v),    r = n_test / n_train.

    The spread is not that of the folds' scores: folds that are stratified by the label differ too
    little. The term r is Nadeau and Bengio's allowance for the training sets, which the folds
    share. Student's t has the degrees of freedom of a variance that is estimated from N values of
    kurtosis k, 2 N / (k - 1), and at most N - 1.

    The interval is for the mean score, on new test sets of the folds' size, of the models that are
    trained on the outer training sets. ``experiments/claims/corrected-interval`` measures it: that
    is held in .89 to 1.00 of simulated data sets, median .98, the mean over data sets less often.

    C. Nadeau, Y. Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003; P.
    Bayle et al., "Cross-validation Confidence Intervals for Test Error", NeurIPS 2020.

    `scores` is (n_folds,), each of `pseudo_values` (n_units,).
    """
    check_share("confidence", confidence)
    values = _run_scores(scores, ratio)
    mean, error, freedom = _over_samples(values, ratio, pseudo_values, n_repeats)
    interval = MeanInterval(
        mean=mean,
        sd=_sample_sd(values),
        ratio=ratio,
        confidence=confidence,
    )
    if len(values) == 1:
        return replace(interval, reason="there is one run only")
    if not error:
        return replace(interval, reason="all samples score the same")
    margin = float(stdtrit(freedom, (1 + confidence) / 2) * error)
    return _with_ends(interval, margin, limits)


def _over_samples(
    values: FloatArray, ratio: float, pseudo_values: Sequence[ArrayLike], n_repeats: int
) -> tuple[float, float, float]:
    """Mean of the folds' values, its standard error by samples, and the degrees of freedom.

    The error is 0 where all samples have the same value.
    """
    n_folds, mean = len(values), float(values.mean())
    parts = [np.asarray(part, dtype=np.float64) for part in pseudo_values]
    if len(parts) != n_folds or not all(part.ndim == 1 and len(part) for part in parts):
        raise DataError(f"give pseudo-values for each of the {n_folds} scores.")
    centre = np.mean([part.mean() for part in parts])
    shares = np.concatenate([(part - centre) / len(part) for part in parts])
    if np.abs(shares).max() <= _ROUNDING:
        return mean, 0.0, 0.0
    n_units = len(shares) / n_repeats
    # N / k, of all repeats, in which each sample occurs once.
    effective = max(1.0, float((shares**2).sum() ** 2 / (shares**4).sum()) / n_repeats)
    inverse, freedom = (1 / effective - 1 / n_units) / 2, n_units - 1
    if inverse > 0:
        freedom = min(1 / inverse, freedom)
    variance = float((shares**2).sum()) / n_folds * n_units / (n_units - 1)
    return mean, float(np.sqrt((1 / n_folds + ratio) * variance)), float(freedom)


@dataclass(frozen=True, kw_only=True)
class TTestResult:
    """Two-sided t-test of a mean difference, and the interval that belongs to it."""

    #: Value of t.
    statistic: float
    #: Two-sided p value.
    p_value: float
    #: Confidence interval of the mean difference.
    lower: float
    upper: float
    #: Standard error of the mean difference, and degrees of freedom.
    error: float
    freedom: float

    def detectable(self, level: float) -> float:
        """Return the size of a mean difference from which on the test would reject at a level."""
        return float(stdtrit(self.freedom, 1 - level / 2) * self.error)


@dataclass(frozen=True, kw_only=True)
class PairedComparison:
    """Differences of two methods' scores over runs, with a plain and a corrected t-test."""

    #: Score of the method minus that of the reference, in each run; shape (n_runs,).
    differences: FloatArray
    #: Mean and sample standard deviation of the differences.
    mean: float
    sd: float
    #: Number of runs in which the method's score is higher, equal or lower.
    won: int
    tied: int
    lost: int
    #: Number of test samples divided by the number of training samples.
    ratio: float
    #: Paired t-test that takes the runs as independent, and corrected resampled t-test; None if
    #: there is no test.
    plain: TTestResult | None
    corrected: TTestResult | None
    #: Why there is no test; empty if there is one.
    reason: str = ""


def paired_comparison(
    scores: ArrayLike,
    reference: ArrayLike,
    ratio: float,
    confidence: float = 0.95,
    *,
    largest: float = np.inf,
) -> PairedComparison:
    r"""Compare two methods that were scored on the same runs of a resampling.

    With J runs and their differences d_j,

        t = mean(d) / sqrt((1/J + r) var(d)),    J - 1 degrees of freedom,

    where var has the divisor J - 1. The plain paired t-test has r = 0 and takes the runs as
    independent. The corrected resampled t-test of Nadeau and Bengio has r = n_test / n_train,
    because the training sets of the runs overlap; it is used in the same form for repeated
    cross-validation, where it has no caution to spare (``experiments/claims/comparison-tests``).

    C. Nadeau, Y. Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003; R.
    Bouckaert, E. Frank, "Evaluating the Replicability of Significance Tests for Comparing Learning
    Algorithms", PAKDD 2004.

    `scores` and `reference` are (n_runs,).
    """
    check_share("confidence", confidence)
    first, second = _run_scores(scores, ratio), _run_scores(reference, ratio)
    if first.shape != second.shape:
        raise DataError(
            f"the scores have shapes {first.shape} and {second.shape}; give one number a run for"
            " both."
        )
    differences = first - second
    differences[np.abs(differences) <= _ROUNDING] = 0.0
    n_runs, mean = len(differences), float(differences.mean())
    sd = _sample_sd(differences)
    compared = PairedComparison(
        differences=differences,
        mean=mean,
        sd=sd,
        won=int((differences > 0).sum()),
        tied=int((differences == 0).sum()),
        lost=int((differences < 0).sum()),
        ratio=float(ratio),
        plain=None,
        corrected=None,
    )
    if n_runs == 1:
        reason = "one run says nothing about the spread of the difference"
        return replace(compared, reason=reason)
    if not differences.any():
        return replace(compared, sd=0.0, reason="the difference is 0 in all runs")
    if np.ptp(differences) <= _ROUNDING:
        return replace(compared, sd=0.0, reason="the difference is equal in all runs")

    def test(factor: float) -> TTestResult:
        return _t_test(
            mean, sd * factor, freedom=n_runs - 1, confidence=confidence, largest=largest
        )

    return replace(
        compared, plain=test(np.sqrt(1 / n_runs)), corrected=test(np.sqrt(1 / n_runs + ratio))
    )


def sample_test(
    differences: ArrayLike,
    ratio: float,
    pseudo_values: Sequence[ArrayLike],
    confidence: float = 0.95,
    *,
    n_repeats: int = 1,
    largest: float = np.inf,
) -> TTestResult | None:
    """Test the mean difference of scores to what scores the same whatever the samples are.

    Such a difference varies with the samples as the score does, whose pseudo-values are given:
    error and degrees of freedom are those of `sample_interval`. None where there is one fold, or
    where all samples score the same.

    `differences` is (n_folds,), each of `pseudo_values` (n_units,).
    """
    check_share("confidence", confidence)
    values = _run_scores(differences, ratio)
    mean, error, freedom = _over_samples(values, ratio, pseudo_values, n_repeats)
    if not error or len(values) == 1:
        return None
    return _t_test(mean, error, freedom=freedom, confidence=confidence, largest=largest)


def _t_test(
    mean: float, error: float, freedom: float, confidence: float, largest: float
) -> TTestResult:
    # scipy.stats is not used: it takes half a second to import.
    t = mean / error
    margin = float(stdtrit(freedom, (1 + confidence) / 2) * error)
    lower, upper = max(mean - margin, -largest), min(mean + margin, largest)
    p_value = float(2 * stdtr(freedom, -abs(t)))
    return TTestResult(
        statistic=float(t),
        p_value=p_value,
        lower=lower,
        upper=upper,
        error=float(error),
        freedom=freedom,
    )


def holm(p_values: ArrayLike) -> FloatArray:
    """Adjust the p values of several tests by Holm's step-down procedure.

    With the p values sorted upwards, the i-th of m is multiplied by m - i + 1, made as large as
    those before it, and cut at 1. Rejecting where the result is below alpha holds the chance of any
    false rejection below alpha.

    S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scand. J. Statistics 6,
    1979.

    `p_values` is (n_tests,); returns (n_tests,).
    """
    p = np.asarray(p_values, dtype=np.float64)
    made = np.flatnonzero(~np.isnan(p))
    if p.ndim != 1 or ((p[made] < 0) | (p[made] > 1)).any():
        raise DataError(
            "p_values must be a list of numbers between 0 and 1, or NaN for a test that was not"
            " made."
        )
    order = made[np.argsort(p[made], kind="stable")]
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(
        np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1.0
    )
    return adjusted


#: Fewest data sets for which the tests are made.
FEWEST_DATA_SETS = 5
#: Scores are rounded to this many decimals before they are ranked, so that rounding errors do not
#: break ties.
_DECIMALS = 12


@dataclass(frozen=True, kw_only=True)
class RankComparison:
    """Mean ranks of methods over data sets, with the tests of Friedman and Nemenyi.

    Of two methods the test is the sign test.
    """

    #: Rank of each method on each data set, 1 for the highest score; ties share their mean rank;
    #: shape (n_data_sets, n_methods).
    ranks: FloatArray
    #: Mean of the ranks over the data sets; shape (n_methods,).
    mean_ranks: FloatArray
    #: Friedman's statistic, corrected for ties; NaN if there is no test, and for two methods.
    chi2: float = float("nan")
    #: p value of Friedman's test, or of the exact sign test; NaN if there is no test.
    p_value: float = float("nan")
    #: Quantile of the studentized range divided by sqrt(2); NaN if there is no test, and for two
    #: methods.
    q: float = float("nan")
    #: Nemenyi's critical difference of two mean ranks, or the largest that the sign test does not
    #: reject; NaN if there is no test.
    critical_difference: float = float("nan")
    #: Level of Nemenyi's test, or of the sign test.
    alpha: float
    #: Why there is no test; empty if there is one.
    reason: str = ""

    @property
    def is_sign_test(self) -> bool:
        """Whether two methods are compared, by the sign test."""
        return len(self.mean_ranks) == 2

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """Largest sets of methods of which no two differ by the critical difference.

        The best are first.
        """
        if self.reason:
            return []
        order = np.argsort(self.mean_ranks, kind="stable")
        ordered = self.mean_ranks[order]
        sets, last = [], 0
        for start in range(len(order)):
            end = int(
                np.searchsorted(
                    ordered, ordered[start] + self.critical_difference + 1e-9, side="right"
                )
            )
            if end > max(last, start + 1):
                sets.append(tuple(order[start:end].tolist()))
                last = end
        return sets


def compare_over_data_sets(scores: ArrayLike, alpha: float = 0.05) -> RankComparison:
    """Rank methods on each data set, and test whether their mean ranks differ.

    The tests take data sets as independent observations. The folds of one data set are not
    independent and must not stand in for data sets. Two methods are compared by the exact sign
    test: Friedman's chi-squared approximation would reject at .05 in .0625 of five data sets.

    J. Demsar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 7, 2006.

    `scores` is (n_data_sets, n_methods).
    """
    from scipy.stats import rankdata  # noqa: PLC0415 - takes half a second to import

    check_share("alpha", alpha, 0.05)
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2 or not len(table) or not np.isfinite(table).all():
        raise DataError(
            f"scores has shape {table.shape}; give one row a data set and one finite number for"
            " each of two or more methods."
        )
    n, k = table.shape
    ranks = rankdata(-table.round(_DECIMALS), axis=1)
    mean_ranks = ranks.mean(axis=0)
    compared = RankComparison(ranks=ranks, mean_ranks=mean_ranks, alpha=alpha)
    if n < FEWEST_DATA_SETS:
        reason = f"there are {n} data sets, and the tests need at least {FEWEST_DATA_SETS}"
        if n == 1:
            reason = f"there is 1 data set, and the tests need at least {FEWEST_DATA_SETS}"
        return replace(compared, reason=reason)
    if (ranks == ranks[:, :1]).all():
        return replace(compared, reason="all methods tie on all data sets")
    if k == 2:
        p_value, distance = sign_test(table, alpha)
        return replace(compared, p_value=p_value, critical_difference=distance)
    chi2, p_value = friedman(mean_ranks, n, ranks)
    q, distance = critical_difference(k, n, alpha)
    return replace(compared, chi2=chi2, p_value=p_value, q=q, critical_difference=distance)


def sign_test(scores: ArrayLike, alpha: float = 0.05) -> tuple[float, float]:
    """Return the exact p value of the sign test of two methods, and the critical difference.

    The p value is two-sided, the difference one of mean ranks.

    Data sets on which the two tie are left out. The critical difference is the largest difference
    of mean ranks that the test does not reject at level alpha, with so many ties.

    `scores` is (n_data_sets, 2).
    """
    from scipy.stats import binomtest  # noqa: PLC0415

    differences = np.diff(np.asarray(scores, dtype=np.float64).round(_DECIMALS), axis=1)[:, 0]
    won, n = int((differences < 0).sum()), int((differences != 0).sum())
    p_values = [float(binomtest(k, n).pvalue) for k in range(n + 1)]
    kept = [abs(2 * k - n) for k, p in enumerate(p_values) if p > alpha]
    return p_values[won], max(kept, default=0) / len(differences)


def friedman(
    mean_ranks: ArrayLike, n_data_sets: int, ranks: FloatArray | None = None
) -> tuple[float, float]:
    """Return the statistic of Friedman's test and its p value from the chi-squared distribution.

    With k mean ranks R_j over N data sets,

        chi2 = 12 N / (k (k + 1)) (sum_j R_j^2 - k (k + 1)^2 / 4),    k - 1 degrees of freedom,

    divided by 1 - sum(t^3 - t) / (N (k^3 - k)) over the sizes t of the groups of ties, if the ranks
    are given; this is the statistic of `scipy.stats.friedmanchisquare`, which needs three or more
    methods.

    `mean_ranks` is (n_methods,), `ranks` (n_data_sets, n_methods).
    """
    means = np.asarray(mean_ranks, dtype=np.float64)
    k, n = len(means), n_data_sets
    chi2 = 12 * n / (k * (k + 1)) * (np.sum(means**2) - k * (k + 1) ** 2 / 4)
    if ranks is not None:
        sizes = np.concatenate([np.unique(row, return_counts=True)[1] for row in ranks])
        chi2 /= 1 - np.sum(sizes**3 - sizes) / (n * (k**3 - k))
    return float(chi2), float(chdtrc(k - 1, chi2))


def critical_difference(
    n_methods: int, n_data_sets: int, alpha: float = 0.05
) -> tuple[float, float]:
    """Return the quantile q and the critical difference of Nemenyi's test.

    The mean ranks of two of k methods over N data sets differ at level alpha if they lie further
    apart than CD = q sqrt(k (k + 1) / (6 N)), where q is the quantile 1 - alpha of the studentized
    range of k groups with infinite degrees of freedom, divided by sqrt(2).
    """
    from scipy.stats import studentized_range  # noqa: PLC0415

    check_share("alpha", alpha, 0.05)
    q = float(studentized_range.ppf(1 - alpha, n_methods, np.inf)) / np.sqrt(2)
    return float(q), float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_data_sets)))
