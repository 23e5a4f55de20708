"""Intervals and tests of scores against SciPy, simulation and published figures."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from raysel.core.errors import ConfigError, DataError
from raysel.evaluation.splitters import split
from raysel.numerics.inference import (
    compare_over_data_sets,
    critical_difference,
    draws_interval,
    friedman,
    holm,
    paired_comparison,
    sample_interval,
    sample_test,
)

SCORES = st.lists(st.floats(0, 1), min_size=2, max_size=20).filter(lambda s: np.ptp(s) > 1e-6)


@given(SCORES, st.floats(0.5, 0.99))
def test_over_draws_it_is_students_interval(scores, confidence):
    found = draws_interval(scores, 9.0, confidence)
    expected = stats.t.interval(confidence, len(scores) - 1, np.mean(scores), stats.sem(scores))
    assert (found.lower, found.upper) == pytest.approx(expected, abs=1e-9)
    assert (found.mean, found.sd) == pytest.approx((np.mean(scores), np.std(scores, ddof=1)))
    assert found.of_draws


@given(SCORES.filter(lambda s: len(s) > 2), st.floats(0, 2))
def test_one_unit_a_fold_leaves_the_spread_of_the_folds(scores, ratio):
    """As with one group or one sample in each fold: the error is Nadeau and Bengio's."""
    found = sample_interval(scores, ratio, [[score] for score in scores])
    test = paired_comparison(scores, [0.0] * len(scores), ratio).corrected
    kurtosis = stats.kurtosis(scores, fisher=False)
    freedom = len(scores) - 1
    if kurtosis > 1 + 1e-9:
        freedom = min(freedom, 2 * len(scores) / (kurtosis - 1))
    margin = (test.upper - test.lower) / 2
    margin *= stats.t.ppf(0.975, freedom) / stats.t.ppf(0.975, len(scores) - 1)
    assert found.upper - found.mean == pytest.approx(margin, rel=1e-6, abs=1e-9)


def test_of_a_mean_loss_it_is_that_of_its_samples():
    """The standard error is that of the mean of all samples, made wider for the training sets."""
    losses = np.random.default_rng(0).lognormal(size=(5, 24))
    found = sample_interval(losses.mean(axis=1), 0.25, losses)
    every = losses.ravel()
    freedom = 2 * 120 / (stats.kurtosis(every, fisher=False) - 1)
    error = stats.sem(every) * np.sqrt(1 + 5 / 4)
    expected = stats.t.interval(0.95, freedom, every.mean(), error)
    assert (found.lower, found.upper) == pytest.approx(expected)
    # A repeat tells nothing of other samples.
    twice = sample_interval(
        [*losses.mean(axis=1)] * 2, 0.25, [*losses, *losses[:, ::-1]], n_repeats=2
    )
    narrower = np.sqrt((1 / 10 + 0.25) / (1 / 5 + 0.25))
    assert twice.upper - twice.mean == pytest.approx(narrower * (found.upper - found.mean))


def stratified_mean_errors(rng, n):
    """Absolute errors of the mean of a quantity, in folds that are stratified by it."""
    y = rng.lognormal(sigma=0.5, size=n)
    folds = split(y, 5, groups=None, random_state=int(rng.integers(2**31)), where="cv.outer")
    return [-np.abs(y[test] - y[train].mean()) for train, test in folds]


def test_it_covers_where_folds_are_stratified_by_the_quantity():
    """Folds with the same quantiles have nearly one score, whatever their samples are."""
    rng = np.random.default_rng(0)
    # E|Y - E Y| = 2 exp(s^2/2) (2 Phi(s/2) - 1)
    truth = -2 * np.exp(0.125) * (2 * stats.norm.cdf(0.25) - 1)
    drawn = [stratified_mean_errors(rng, 200) for _ in range(150)]
    found = [sample_interval([fold.mean() for fold in folds], 0.25, folds) for folds in drawn]
    assert np.mean([one.lower <= truth <= one.upper for one in found]) >= 0.93
    between = [paired_comparison([f.mean() for f in folds], [0] * 5, 0.25) for folds in drawn]
    tests = [one.corrected for one in between]
    assert np.mean([test.lower <= truth <= test.upper for test in tests]) < 0.8


@pytest.mark.parametrize(
    ("scores", "reason"), [([0.5], "one run"), ([0.7, 0.7, 0.7], "all runs score the same")]
)
def test_there_is_none_over_draws_without_a_spread(scores, reason):
    found = draws_interval(scores, 0.5)
    assert (found.lower, found.upper) == (None, None)
    assert reason in found.reason
    assert found.mean == pytest.approx(scores[0])


@given(st.integers(2, 6), st.floats(-2, 2), st.integers(0, 10**6))
def test_a_difference_to_a_fixed_score_has_the_interval_of_the_score_moved_by_it(n, fixed, seed):
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=rng.integers(3, 30)) for _ in range(n)]
    scores = np.array([part.mean() for part in values])
    own = sample_interval(scores, 0.25, values)
    test = sample_test(scores - fixed, 0.25, values)
    assert (test.lower + fixed, test.upper + fixed) == pytest.approx((own.lower, own.upper))
    assert (test.p_value < 0.05) == (test.lower > 0 or test.upper < 0)
    cut = sample_test(scores - fixed, 0.25, values, largest=0.01)
    assert cut.lower >= -0.01
    assert cut.upper <= 0.01
    assert sample_test([0.5, 0.5], 0.25, [[0.5] * 3] * 2) is None
    assert sample_test([0.5], 0.25, [[0.1, 0.9]]) is None


def test_there_is_one_where_folds_are_equal_and_samples_are_not():
    losses = [[0.0, 1.0, 1.0, 1.0]] * 3
    found = sample_interval([0.75] * 3, 0.5, losses)
    assert found.lower < 0.75 < found.upper
    for scores, values, reason in (
        ([1.0, 1.0], [[1.0, 1.0]] * 2, "all samples score the same"),
        ([0.5], [[0.0, 1.0]], "one run"),
    ):
        found = sample_interval(scores, 0.5, values)
        assert (found.lower, found.upper) == (None, None)
        assert reason in found.reason


def test_it_ends_at_the_limits():
    found = sample_interval([0.9, 1.0], 0.5, [[0.7, 1.1], [1.0, 1.0]], limits=(0.0, 1.0))
    assert found.upper == 1.0
    assert found.lower > 0.0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], 0.5, []), DataError, "one number a run"),
        (([0.5, float("nan")], 0.5, [[0.5]] * 2), DataError, "NaN or infinity"),
        (([0.5, 0.6], -1.0, [[0.5]] * 2), DataError, "n_test / n_train"),
        (([0.5, 0.6], 0.5, [[0.5]] * 2, 1.0), ConfigError, "between 0 and 1"),
        (([0.5, 0.6], 0.5, [[0.5]]), DataError, "each of the 2 scores"),
        (([0.5, 0.6], 0.5, [[0.5], []]), DataError, "each of the 2 scores"),
    ],
)
def test_bad_input_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        sample_interval(*arguments)


SCORES_PAIRED = st.lists(st.tuples(*[st.integers(0, 40)] * 2), min_size=3, max_size=25)


@settings(max_examples=25)
@given(SCORES_PAIRED, st.floats(0.05, 49.0))
def test_both_tests_are_the_published_formulas(pairs, ratio):
    a, b = np.array(pairs).T / 40
    found = paired_comparison(a, b, ratio)
    d = [x - y for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert (found.won, found.lost) == (sum(x > y for x, y in pairs), sum(x < y for x, y in pairs))
    assert found.won + found.tied + found.lost == len(pairs)
    if len({x - y for x, y in pairs}) == 1:
        assert found.plain is found.corrected is None
        assert found.sd == 0
        assert "in all runs" in found.reason
        return
    plain = stats.ttest_rel(a, b)
    assert found.plain.statistic == pytest.approx(plain.statistic, abs=1e-9)
    assert found.plain.p_value == pytest.approx(plain.pvalue, abs=1e-9)
    assert (found.plain.lower, found.plain.upper) == pytest.approx(
        tuple(plain.confidence_interval(0.95)), abs=1e-9
    )
    mean = sum(d) / len(d)
    variance = sum((x - mean) ** 2 for x in d) / (len(d) - 1)
    t = mean / math.sqrt((1 / len(d) + ratio) * variance)
    assert found.corrected.statistic == pytest.approx(t, abs=1e-9)
    assert found.corrected.p_value == pytest.approx(2 * stats.t.sf(abs(t), len(d) - 1), abs=1e-9)
    # The interval leaves out 0 exactly where the test rejects.
    for test in (found.plain, found.corrected):
        assert (test.lower > 0 or test.upper < 0) == (test.p_value < 0.05)
    swapped = paired_comparison(b, a, ratio)
    assert (swapped.mean, swapped.corrected.lower) == pytest.approx(
        (-found.mean, -found.corrected.upper)
    )


@settings(max_examples=25)
@given(SCORES, st.floats(0.05, 9.0), st.integers(1, 6))
def test_a_detectable_difference_is_the_least_that_is_rejected(scores, ratio, n_tests):
    """With Holm's correction for several tests too, whatever the others say."""
    level = 0.05 / n_tests
    centred = np.array(scores) - np.mean(scores)
    least = paired_comparison(centred, 0 * centred, ratio).corrected.detectable(level)
    for size, told in ((1.001, True), (0.999, False)):
        found = paired_comparison(centred + size * least, 0 * centred, ratio).corrected
        assert (found.p_value < level) == told
        assert (holm([found.p_value, *[0.9] * (n_tests - 1)])[0] < 0.05) == told


def test_differences_that_differ_by_rounding_only_are_equal():
    found = paired_comparison(
        [0.9, 0.8, 0.3], [0.8, 0.7, 0.2], 0.25
    )  # 0.1 three times, each with another last bit
    assert (found.reason, found.plain) == ("the difference is equal in all runs", None)
    tied = paired_comparison([0.1 + 0.2, 0.5], [0.3, 0.5], 0.25)
    assert (tied.tied, tied.reason) == (2, "the difference is 0 in all runs")
    assert "one run" in paired_comparison([0.5], [0.6], 0.25).reason


def test_scores_that_cannot_be_compared_are_refused():
    for scores in ([0.1, 0.2], [[0.1]], [], [0.1, 0.2, math.nan]):
        with pytest.raises(DataError):
            paired_comparison(scores, [0.1, 0.2, 0.3], 0.25)
    with pytest.raises(DataError):
        paired_comparison([0.1, 0.2], [0.1, 0.3], -1)
    with pytest.raises(ConfigError):
        paired_comparison([0.1, 0.2], [0.1, 0.3], 0.25, 95)


@settings(max_examples=25)
@given(st.lists(st.integers(0, 200), min_size=1, max_size=7), st.integers(1, 199))
def test_holm_rejects_what_the_step_down_procedure_rejects(values, level):
    p, alpha = [v / 200 for v in values], (level + 0.5) / 200
    adjusted = holm(p)
    left = sorted(range(len(p)), key=lambda i: p[i])
    rejected = set()
    while left and p[left[0]] <= alpha / len(left):
        rejected.add(left.pop(0))
    assert {i for i, value in enumerate(adjusted) if value <= alpha} == rejected


def test_holm_leaves_out_the_tests_that_were_not_made():
    assert holm([math.nan, 0.02, 0.6, math.nan]).tolist() == pytest.approx(
        [math.nan, 0.04, 0.6, math.nan], nan_ok=True
    )
    with pytest.raises(DataError):
        holm([1.2])


def test_the_corrected_test_holds_its_level_where_training_sets_overlap():
    """Two equal methods, 10 repeats of a split of 60 samples: the plain test raises false alarms,
    the corrected few.

    A method's score is that of a nearest-mean classifier on one of two features that inform
    equally.
    """
    rng = np.random.default_rng(0)
    n, n_train, n_runs, n_studies = 60, 48, 10, 300
    alarms = np.zeros(2)
    for _ in range(n_studies):
        y = np.repeat([0.0, 1.0], n // 2)
        X = rng.normal(size=(n, 2)) + 0.6 * y[:, None]
        differences = []
        for _ in range(n_runs):
            order = rng.permutation(n)
            train, test = order[:n_train], order[n_train:]
            middle = (
                X[train][y[train] == 0].mean(axis=0) + X[train][y[train] == 1].mean(axis=0)
            ) / 2
            right = (X[test] > middle) == y[test, None].astype(bool)
            differences.append(right.mean(axis=0))
        a, b = np.array(differences).T
        found = paired_comparison(a, b, (n - n_train) / n_train)
        alarms += [
            found.plain is not None and test.p_value < 0.05
            for test in (found.plain, found.corrected)
        ]
    plain, corrected = alarms / n_studies
    assert corrected < 0.10
    assert plain > 2 * corrected


#: Demsar (2006), table 6: AUC of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on 14 data sets.
DEMSAR = [
    [0.763, 0.768, 0.771, 0.798],
    [0.599, 0.591, 0.590, 0.569],
    [0.954, 0.971, 0.968, 0.967],
    [0.628, 0.661, 0.654, 0.657],
    [0.882, 0.888, 0.886, 0.898],
    [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685],
    [0.583, 0.583, 0.563, 0.625],
    [0.775, 0.838, 0.866, 0.875],
    [1.000, 1.000, 1.000, 1.000],
    [0.940, 0.962, 0.965, 0.962],
    [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.9751, 0.975],  # printed as 0.975 both, with the ranks 2 and 3
    [0.957, 0.978, 0.946, 0.970],
]


def test_demsars_worked_example():
    found = compare_over_data_sets(DEMSAR)
    assert found.mean_ranks == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    chi2, p = friedman([3.143, 2.000, 2.893, 1.964], 14)
    assert (round(chi2, 2), round(p, 3)) == (9.28, round(stats.chi2.sf(9.28, 3), 3))
    assert (round(found.q, 3), round(found.critical_difference, 2)) == (2.569, 1.25)
    # He finds no pair that differs by the critical difference of 1.25.
    assert found.groups == [(3, 1, 2, 0)]


@settings(max_examples=15)
@given(arrays(int, st.tuples(st.integers(5, 12), st.integers(3, 6)), elements=st.integers(0, 6)))
def test_friedman_is_scipys_ties_included(table):
    found = compare_over_data_sets(table / 6)
    if (table == table[:, :1]).all():
        assert "tie on all" in found.reason
        return
    statistic, p = stats.friedmanchisquare(*table.T)
    assert (found.chi2, found.p_value) == (pytest.approx(statistic), pytest.approx(p, abs=1e-12))
    assert found.ranks.sum(axis=1) == pytest.approx(
        np.full(len(table), table.shape[1] * (table.shape[1] + 1) / 2)
    )
    # Every pair that is near enough stands in a group, and no other pair does.
    near = np.abs(found.mean_ranks[:, None] - found.mean_ranks) <= found.critical_difference + 1e-9
    together = np.eye(len(near), dtype=bool)
    for group in found.groups:
        together[np.ix_(group, group)] = True
    assert (near == together).all()


@pytest.mark.parametrize("n", [5, 6, 8, 9])
def test_two_methods_are_compared_by_the_exact_sign_test(n):
    """Over all 3^n outcomes of equal methods no more than .05 are told apart, by p value and by
    groups alike.
    """
    outcomes = np.array(list(itertools.product([-1, 0, 1], repeat=n)))
    signs, counts = np.unique(np.sort(outcomes, axis=1), axis=0, return_counts=True)
    rejected, total = 0.0, 0.0
    for row, count in zip(signs, counts, strict=True):
        found = compare_over_data_sets(np.column_stack([row, np.zeros(n)]))
        if not row.any():
            assert found.reason
            continue
        won, lost = (row > 0).sum(), (row < 0).sum()
        assert found.p_value == pytest.approx(stats.binomtest(won, won + lost).pvalue)
        assert (found.groups == []) == (found.p_value <= 0.05)
        share = count * 0.4**won * 0.4**lost * 0.2 ** (n - won - lost)
        rejected, total = rejected + share * (found.p_value <= 0.05), total + share
    assert total == pytest.approx(1.0, abs=1e-3)
    assert rejected <= 0.05


def test_critical_values_are_those_of_demsars_table():
    # Demsar (2006), table 5a: k = 2 .. 10 at 0.05, then at 0.10.
    for alpha, printed in {
        0.05: [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164],
        0.10: [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920],
    }.items():
        found = [critical_difference(k, 10, alpha)[0] for k in range(2, 11)]
        assert found == pytest.approx(printed, abs=1.1e-3)


def test_there_is_no_test_below_five_data_sets():
    found = compare_over_data_sets(DEMSAR[:4])
    assert found.reason == "there are 4 data sets, and the tests need at least 5"
    assert math.isnan(found.chi2)
    assert found.groups == []
    assert len(found.mean_ranks) == 4
    assert compare_over_data_sets(DEMSAR[:1]).reason.startswith("there is 1 data set,")
    assert not compare_over_data_sets(DEMSAR[:5]).reason


def test_scores_that_cannot_be_ranked_are_refused():
    for scores in ([0.1, 0.2], [[0.1]] * 6, [[0.1, math.nan]] * 6, np.empty((0, 3))):
        with pytest.raises(DataError):
            compare_over_data_sets(scores)
    with pytest.raises(ConfigError):
        compare_over_data_sets(DEMSAR, alpha=5)
