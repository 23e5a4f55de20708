"""The corrected interval of a mean score, against SciPy and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from raysel.core.errors import ConfigError, DataError
from raysel.numerics.intervals import corrected_interval, holm, paired_comparison

SCORES = st.lists(st.floats(0, 1), min_size=2, max_size=20).filter(lambda s: np.ptp(s) > 1e-6)


@given(SCORES, st.floats(0.5, 0.99))
def test_without_correction_it_is_students_interval(scores, confidence):
    found = corrected_interval(scores, 0.0, confidence)
    expected = stats.t.interval(confidence, len(scores) - 1, np.mean(scores), stats.sem(scores))
    assert (found.lower, found.upper) == pytest.approx(expected, abs=1e-9)
    assert (found.mean, found.sd) == pytest.approx((np.mean(scores), np.std(scores, ddof=1)))


@given(SCORES, st.floats(0, 2))
def test_it_is_the_interval_of_the_difference_to_zero(scores, ratio):
    found, test = corrected_interval(scores, ratio), paired_comparison(scores, [0.0] * len(scores), ratio).corrected
    assert (found.lower, found.upper) == pytest.approx((test.lower, test.upper), abs=1e-9)


def test_it_covers_the_mean_of_runs_with_the_correlation_that_it_assumes():
    """Nadeau and Bengio take the correlation of two runs as n_test / (n_test + n_train)."""
    rng, n_runs, ratio, n_draws = np.random.default_rng(0), 5, 0.25, 4000
    rho = ratio / (1 + ratio)
    shared, own = rng.normal(size=(n_draws, 1)), rng.normal(size=(n_draws, n_runs))
    draws = np.sqrt(rho) * shared + np.sqrt(1 - rho) * own
    found = [corrected_interval(scores, ratio) for scores in draws]
    covered = np.mean([interval.lower <= 0 <= interval.upper for interval in found])
    assert covered == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / n_draws))


@pytest.mark.parametrize(("scores", "reason"), [([0.5], "one run"), ([0.7, 0.7, 0.7], "equal in all runs")])
def test_there_is_none_without_a_spread(scores, reason):
    found = corrected_interval(scores, 0.5)
    assert (found.lower, found.upper) == (None, None)
    assert reason in found.reason
    assert found.mean == pytest.approx(scores[0])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], 0.5), DataError, "one number a run"),
        (([0.5, float("nan")], 0.5), DataError, "NaN or infinity"),
        (([0.5, 0.6], -1.0), DataError, "n_test / n_train"),
        (([0.5, 0.6], 0.5, 1.0), ConfigError, "between 0 and 1"),
    ],
)
def test_bad_input_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        corrected_interval(*arguments)


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
    assert (found.plain.lower, found.plain.upper) == pytest.approx(tuple(plain.confidence_interval(0.95)), abs=1e-9)
    mean = sum(d) / len(d)
    variance = sum((x - mean) ** 2 for x in d) / (len(d) - 1)
    t = mean / math.sqrt((1 / len(d) + ratio) * variance)
    assert found.corrected.statistic == pytest.approx(t, abs=1e-9)
    assert found.corrected.p_value == pytest.approx(2 * stats.t.sf(abs(t), len(d) - 1), abs=1e-9)
    # The interval leaves out 0 exactly where the test rejects.
    for test in (found.plain, found.corrected):
        assert (test.lower > 0 or test.upper < 0) == (test.p_value < 0.05)
    swapped = paired_comparison(b, a, ratio)
    assert (swapped.mean, swapped.corrected.lower) == pytest.approx((-found.mean, -found.corrected.upper))


def test_differences_that_differ_by_rounding_only_are_equal():
    found = paired_comparison([0.9, 0.8, 0.3], [0.8, 0.7, 0.2], 0.25)  # 0.1 three times, each with another last bit
    assert (found.reason, found.plain) == ("the difference is equal in all runs", None)
    tied = paired_comparison([0.1 + 0.2, 0.5], [0.3, 0.5], 0.25)
    assert (tied.tied, tied.reason) == (2, "the difference is 0 in all runs")
    assert "one run" in paired_comparison([0.5], [0.6], 0.25).reason


def test_scores_that_cannot_be_compared_are_refused():
    for scores in ([0.1, 0.2], [[0.1]], [], [0.1, 0.2, math.nan]):
        with pytest.raises(DataError):
            paired_comparison(scores, [0.1, 0.2, 0.3], 0.25)
    with pytest.raises(DataError, match="ratio=-1"):
        paired_comparison([0.1, 0.2], [0.1, 0.3], -1)
    with pytest.raises(ConfigError, match="confidence=95"):
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
    assert holm([math.nan, 0.02, 0.6, math.nan]).tolist() == pytest.approx([math.nan, 0.04, 0.6, math.nan], nan_ok=True)
    with pytest.raises(DataError):
        holm([1.2])


def test_the_corrected_test_holds_its_level_where_training_sets_overlap():
    """Two equal methods, 10 repeats of a split of 60 samples: the plain test raises false alarms, the corrected few.

    A method's score is that of a nearest-mean classifier on one of two features that inform equally.
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
            middle = (X[train][y[train] == 0].mean(axis=0) + X[train][y[train] == 1].mean(axis=0)) / 2
            right = (X[test] > middle) == y[test, None].astype(bool)
            differences.append(right.mean(axis=0))
        a, b = np.array(differences).T
        found = paired_comparison(a, b, (n - n_train) / n_train)
        alarms += [found.plain is not None and test.p_value < 0.05 for test in (found.plain, found.corrected)]
    plain, corrected = alarms / n_studies
    assert corrected < 0.10
    assert plain > 2 * corrected
