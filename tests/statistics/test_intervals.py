"""The corrected interval of a mean score, against SciPy and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from raysel.core.errors import ConfigError, DataError
from raysel.numerics.intervals import corrected_interval, paired_comparison

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
