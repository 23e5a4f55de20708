"""Friedman's and Nemenyi's tests against Demsar's worked example and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from raysel.core.errors import ConfigError, DataError
from raysel.numerics.over_data_sets import compare_over_data_sets, critical_difference, friedman

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
    assert found.ranks.sum(axis=1) == pytest.approx(np.full(len(table), table.shape[1] * (table.shape[1] + 1) / 2))
    # Every pair that is near enough stands in a group, and no other pair does.
    near = np.abs(found.mean_ranks[:, None] - found.mean_ranks) <= found.critical_difference + 1e-9
    together = np.eye(len(near), dtype=bool)
    for group in found.groups:
        together[np.ix_(group, group)] = True
    assert (near == together).all()


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
    with pytest.raises(ConfigError, match="alpha=5"):
        compare_over_data_sets(DEMSAR, alpha=5)
