"""The ranking against a plain reading of its definition, and what must not change it."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import t as student

from raysel.data.layouts import Matrix, Modalities, Tasks
from raysel.errors import ConfigError, DataError
from raysel.metrics.ranks import ranks
from raysel.ranking import FeatureRanking


def make(scores, n_selected=2, **changes):
    scores = np.asarray(scores, dtype=float)
    d = scores.shape[1]
    parts = {
        "feature_names": [f"f{i}" for i in range(d)],
        "fold_names": [f"outer{i}" for i in range(len(scores) - 1)],
        "n_selected": n_selected,
    }
    return FeatureRanking.from_folds(scores[0], list(scores[1:]), **{**parts, **changes})


def plain_ranks(row, constant):
    """Rank by counting who is better: larger score, or an equal one at a lower index; constant ones behind."""
    keys = [(bool(c), 0 if c else -s, i) for i, (s, c) in enumerate(zip(row, constant, strict=True))]
    return [1 + sum(other < key for other in keys) for key in keys]


tied_scores = st.tuples(st.integers(3, 6), st.integers(2, 9)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.sampled_from([0.0, 0.5, 1.0, 2.0]))
)


@given(tied_scores, st.data())
def test_equals_its_definition(scores, data):
    d = scores.shape[1]
    n = data.draw(st.integers(1, d))
    constant = data.draw(arrays(np.bool_, d))
    ranking = make(scores, n, constant=constant)
    folds = np.array([plain_ranks(row, constant) for row in scores[1:]])
    np.testing.assert_array_equal(ranking.ranks, plain_ranks(scores[0], constant))
    np.testing.assert_array_equal(ranking.fold_ranks, folds)
    np.testing.assert_array_equal(ranking.scores, scores[0])
    np.testing.assert_allclose(ranking.selection_frequency, [np.mean([r <= n for r in column]) for column in folds.T])
    lower, upper = ranking.consensus_interval
    for f in range(d):
        mean = np.mean(folds[:, f])
        assert ranking.consensus_rank[f] == pytest.approx(mean)
        spread = np.std(folds[:, f], ddof=1) / np.sqrt(len(folds))
        low, high = student.interval(0.95, len(folds) - 1, mean, spread) if spread else (mean, mean)
        assert (lower[f], upper[f]) == pytest.approx((max(low, 1), min(high, d)))


@given(arrays(np.float64, (4, 7), elements=st.floats(-5, 5), unique=True), st.permutations(range(7)))
def test_follows_a_permutation_of_the_features(scores, order):
    order = list(order)
    names = np.array([f"f{i}" for i in range(7)])
    before = make(scores, 3, coordinates={"column": np.arange(7)})
    after = make(scores[:, order], 3, feature_names=names[order], coordinates={"column": np.arange(7)[order]})
    tables = [ranking.to_table().drop_columns("index").to_pydict() for ranking in (before, after)]
    assert tables[0] == tables[1]
    assert (before.stability.value, before.stability.lower) == pytest.approx(
        (after.stability.value, after.stability.lower)
    )


@given(arrays(np.float64, (4, 6), elements=st.integers(-3, 3)))
def test_only_the_order_of_the_scores_matters(scores):
    np.testing.assert_array_equal(make(scores).fold_ranks, make(np.exp(scores) * 3 - 7).fold_ranks)


def test_folds_that_agree_are_perfectly_stable_and_certain():
    ranking = make(np.tile([3.0, 1.0, 2.0, 0.0], (5, 1)))
    assert ranking.stability.value == pytest.approx(1)
    np.testing.assert_array_equal(ranking.consensus_rank, ranking.ranks)
    np.testing.assert_array_equal(ranking.consensus_interval, [ranking.ranks, ranking.ranks])
    assert ranking.top().tolist() == [0, 2]
    assert ranking.top(3).tolist() == [0, 2, 1]


def test_the_consensus_is_the_order_least_at_odds_with_the_folds():
    """Of all 120 orders, none lies nearer to the folds' in squared rank distance (Spearman)."""
    for seed in range(10):
        ranking = make(np.random.default_rng(seed).normal(size=(4, 5)))
        costs = {order: ((ranking.fold_ranks - np.array(order)) ** 2).sum() for order in permutations(range(1, 6))}
        consensus = tuple(int(r) for r in ranks(-ranking.consensus_rank))
        assert costs[consensus] == min(costs.values())


def test_constant_features_come_last_whatever_a_method_made_of_them():
    ranking = make([[9.0, 1.0, 2.0], [9.0, 2.0, 1.0], [9.0, 1.0, 2.0]], 1, constant=np.array([True, False, False]))
    assert ranking.ranks.tolist() == [3, 2, 1]
    assert ranking.fold_ranks[:, 0].tolist() == [3, 3]
    assert ranking.scores[0] == 9


def test_the_table_lists_all_features_best_first():
    layout = Matrix(2, 3)
    scores = np.random.default_rng(0).normal(size=(4, 6))
    names = ["repeat0_outer0", "repeat0_outer1", "repeat1_outer0"]
    table = make(scores, coordinates=layout.coordinates(), feature_names=layout.default_names(), fold_names=names)
    table = table.to_table()
    fold_columns = [f"rank_{name}" for name in names]
    consensus = ["consensus_rank", "consensus_lower", "consensus_upper"]
    expected = ["feature", "index", "row", "column", "score", "rank", *fold_columns, "selection_frequency", *consensus]
    assert table.column_names == expected
    rows = table.to_pylist()
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5, 6]
    for row in rows:
        assert row["index"] == row["row"] * 3 + row["column"]
        assert row["feature"] == f"r{row['row']}c{row['column']}"
        assert row["score"] == scores[0, row["index"]]
        for fold, column in enumerate(fold_columns):
            better = scores[fold + 1] > scores[fold + 1, row["index"]]
            assert row[column] == 1 + better.sum()


@pytest.mark.parametrize("layout", [Tasks({"a": (2, 2), "b": 3}), Modalities({"a": 4, "b": 3})])
def test_the_table_ranks_each_part_by_itself_too(layout):
    scores = np.random.default_rng(1).normal(size=(4, 7))
    constant = np.array([False, True, *[False] * 5])
    ranking = make(scores, coordinates=layout.coordinates(), constant=constant)
    axis = next(iter(layout.coordinates()))
    rows = ranking.to_table().to_pylist()
    assert list(rows[0])[list(rows[0]).index("rank") + 1] == f"rank_in_{axis}"
    for row in rows:
        better = [r for r in rows if r[axis] == row[axis] and r["rank"] < row["rank"]]
        assert row[f"rank_in_{axis}"] == len(better) + 1
    assert {name: list(part) for name, part in ranking.parts.items()} == {"a": [0, 1, 2, 3], "b": [4, 5, 6]}


@given(arrays(np.float64, (4, 7), elements=st.integers(-3, 3)), st.sets(st.integers(0, 6), min_size=2))
def test_features_among_themselves_rank_as_if_there_were_no_others(scores, chosen):
    chosen = np.array(sorted(chosen))
    part, alone = make(scores).among(chosen, 1), make(scores[:, chosen], 1)
    np.testing.assert_array_equal(part.ranks, alone.ranks)
    np.testing.assert_array_equal(part.fold_ranks, alone.fold_ranks)
    np.testing.assert_array_equal(part.scores, alone.scores)
    assert part.feature_names == tuple(f"f{i}" for i in chosen)
    assert part.stability.value == pytest.approx(alone.stability.value, nan_ok=True)


def test_one_fold_has_ranks_but_no_intervals():
    ranking = make([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]])
    assert ranking.consensus_rank.tolist() == [3, 1, 2]
    assert np.isnan(ranking.consensus_interval).all()
    assert "one selection" in ranking.stability.reason
    assert "one selection" in repr(ranking)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"n_selected": 0}, ConfigError, "n_selected=0"),
        ({"n_selected": 4}, ConfigError, "n_selected=4"),
        ({"fold_names": ["outer0"]}, DataError, "2 outer folds and 1 fold names"),
        ({"feature_names": ["a", "b"]}, DataError, "2 feature names"),
        ({"constant": np.array([True])}, DataError, "constant has shape"),
        ({"coordinates": {"row": np.zeros(2)}}, DataError, "row has shape"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        make(np.ones((3, 3)), **changes)


def test_scores_that_are_no_numbers_are_refused_with_the_fold_and_the_feature():
    scores = np.ones((3, 3))
    scores[2, 1] = np.nan
    with pytest.raises(DataError, match="outer1 hold NaN or infinity, first for feature 'f1'"):
        make(scores)


def test_scores_of_different_lengths_are_refused():
    with pytest.raises(DataError, match="outer1"):
        FeatureRanking.from_folds(
            [1.0, 2.0], [[1.0, 2.0], [1.0]], feature_names="ab", fold_names=["outer0", "outer1"], n_selected=1
        )


def test_no_folds_at_all_are_refused():
    with pytest.raises(DataError, match="0 outer folds"):
        FeatureRanking.from_folds([1.0, 2.0], [], feature_names="ab", fold_names=[], n_selected=1)
