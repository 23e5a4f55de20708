"""The ranking against a plain reading of its definition, and what must not change it."""

from __future__ import annotations

from statistics import median, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Matrix, Modalities, Tasks
from raysel.evaluation.feature_ranking import FeatureRanking


def make(scores, n_selected=2, **changes):
    scores = np.asarray(scores, dtype=float)
    d = scores.shape[1]
    parts = {
        "fold_scores": list(scores[1:]),
        "feature_names": [f"f{i}" for i in range(d)],
        "fold_names": [f"outer{i}" for i in range(len(scores) - 1)],
        "n_selected": n_selected,
    }
    return FeatureRanking.from_folds(scores[0], **{**parts, **changes})


def plain_ranks(row):
    """Rank by counting who is better: larger score, or an equal one at a lower index; those
    without one are tied.
    """
    scored = [s > 0 for s in row]
    n = sum(scored)
    return [
        (
            1 + sum(scored[j] and (row[j], -j) > (row[i], -i) for j in range(len(row)))
            if scored[i]
            else float(np.mean(range(n + 1, len(row) + 1)))
        )
        for i in range(len(row))
    ]


tied_scores = st.tuples(st.integers(3, 6), st.integers(2, 9)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.sampled_from([0.0, 0.5, 1.0, 2.0]))
)


@given(tied_scores, st.data())
def test_equals_its_definition(scores, data):
    d = scores.shape[1]
    n = data.draw(st.integers(1, d))
    ranking = make(scores, n)
    folds = np.array([plain_ranks(row) for row in scores[1:]])
    np.testing.assert_array_equal(ranking.ranks, plain_ranks(scores[0]))
    np.testing.assert_array_equal(ranking.fold_ranks, folds)
    np.testing.assert_array_equal(ranking.scores, scores[0])
    usable = scores[1:] > 0
    selected = (folds <= n) & usable
    np.testing.assert_allclose(ranking.selection_frequency, selected.mean(axis=0))
    np.testing.assert_array_equal(ranking.fold_n_scored, usable.sum(axis=1))
    last = np.where(usable, folds, d)
    np.testing.assert_allclose(ranking.consensus_rank, [median(c) for c in last.T.tolist()])
    np.testing.assert_allclose(ranking.rank_sd, [stdev(column) for column in folds.T.tolist()])
    assert ranking.top().tolist() == sorted(
        np.flatnonzero(ranking.selected), key=lambda i: ranking.ranks[i]
    )


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_winners_that_select_nothing_have_no_stability(value):
    ranking = make(np.full((4, 6), value), 4)
    assert "no feature is selected" in str(ranking.stability)
    assert ranking.top().tolist() == []
    assert ranking.ranks.tolist() == [3.5] * 6
    table = ranking.to_table().to_pydict()
    assert table["rank"] == [3.5] * 6
    assert (table["consensus_rank"], table["consensus_place"]) == ([6.0] * 6, [1.0] * 6)
    assert table["selection_frequency"] == [0.0] * 6


@given(
    arrays(np.float64, (4, 7), elements=st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0])),
    st.permutations(range(7)),
)
def test_follows_a_permutation_of_the_features(scores, order):
    scores = np.where(scores > 0, scores + np.arange(7) / 10, 0.0)  # no ties but at 0
    order, names = list(order), np.array([f"f{i}" for i in range(7)])
    before = make(scores, 3, coordinates={"column": np.arange(7)})
    after = make(
        scores[:, order], 3, feature_names=names[order], coordinates={"column": np.arange(7)[order]}
    )
    rows = [
        sorted(ranking.to_table().drop_columns("index").to_pylist(), key=lambda row: row["feature"])
        for ranking in (before, after)
    ]
    assert rows[0] == rows[1]
    assert before.stability.value == pytest.approx(after.stability.value, nan_ok=True)


@given(arrays(np.float64, (4, 6), elements=st.integers(0, 6)))
def test_only_the_order_of_the_scores_matters(scores):
    np.testing.assert_array_equal(make(scores).fold_ranks, make(np.expm1(scores) * 3).fold_ranks)


def test_a_sparse_fold_does_not_decide_the_consensus():
    """25 of 8000 features tell; one winner of five gives few features a score, and a telling one
    here and there.
    """
    rng = np.random.default_rng(0)
    dense = rng.random((4, 8000)) + 10 * (np.arange(8000) < 25)
    dense[:, 25:60] += rng.uniform(0, 2, (4, 35))
    sparse = np.zeros(8000)
    sparse[[3, 11, *range(25, 60)]] = rng.random(37) + 1
    ranking = make([dense[0], *dense, sparse], 40)
    assert set(ranking.consensus_top(25)) == set(range(25))
    by_mean = np.argsort(ranking.fold_ranks.mean(axis=0), kind="stable")[:25]
    assert len(set(by_mean) & set(range(25))) < 5
    table = ranking.to_table().to_pydict()
    assert set(table["index"][:25]) == set(range(25))


def test_tables_have_the_order_that_is_recommended():
    scores = [[9.0, 1.0, 2.0, 0.0], [0.0, 3.0, 2.0, 1.0], [0.0, 2.0, 3.0, 0.0]]
    ranking = make(scores, 2)
    assert ranking.to_table()["index"].to_pylist() == [1, 2, 3, 0]
    assert ranking.recommended_top(3).tolist() == [1, 2, 3]
    assert "consensus of the outer folds, the one for a claim" in ranking.what_to_print
    probability = np.array([0.1, 0.2, 0.9, 0.2])
    tested = make(scores, 2, added={"selection_probability": probability})
    assert tested.to_table()["index"].to_pylist() == [2, 1, 3, 0]
    assert "that of the selection probabilities, the one for a claim" in tested.what_to_print
    single = make(scores, 2, source="outer1")
    assert single.to_table()["index"].to_pylist() == [0, 2, 1, 3]
    assert "for a claim about features print the consensus" in single.what_to_print


def test_the_table_lists_all_features_in_the_order_of_the_consensus():
    layout = Matrix(2, 3)
    scores = np.random.default_rng(0).random(size=(4, 6))
    names = ["repeat0_outer0", "repeat0_outer1", "repeat1_outer0"]
    table = make(
        scores,
        coordinates=layout.coordinates(),
        feature_names=layout.default_names(),
        fold_names=names,
    )
    table = table.to_table()
    fold_columns = [f"rank_{name}" for name in names]
    over_folds = ["selection_frequency", "consensus_rank", "consensus_place", "rank_sd"]
    expected = ["feature", "index", "row", "column", "score", "rank", *fold_columns, *over_folds]
    assert table.column_names == expected
    rows = table.to_pylist()
    assert sorted(row["rank"] for row in rows) == [1, 2, 3, 4, 5, 6]
    assert [row["consensus_place"] for row in rows] == sorted(
        row["consensus_place"] for row in rows
    )
    for row in rows:
        assert row["index"] == row["row"] * 3 + row["column"]
        assert row["feature"] == f"r{row['row']}c{row['column']}"
        assert row["score"] == scores[0, row["index"]]
        for fold, column in enumerate(fold_columns):
            better = scores[fold + 1] > scores[fold + 1, row["index"]]
            assert row[column] == 1 + better.sum()


@pytest.mark.parametrize("layout", [Tasks({"a": (2, 2), "b": 3}), Modalities({"a": 4, "b": 3})])
def test_the_table_ranks_each_part_by_itself_too(layout):
    scores = np.random.default_rng(1).random(size=(4, 7))
    scores[:, 1] = 0.0
    ranking = make(scores, coordinates=layout.coordinates())
    axis = next(iter(layout.coordinates()))
    rows = ranking.to_table().to_pylist()
    assert list(rows[0])[list(rows[0]).index("rank") + 1] == f"rank_in_{axis}"
    for row in rows:
        better = [r for r in rows if r[axis] == row[axis] and r["rank"] < row["rank"]]
        assert row[f"rank_in_{axis}"] == len(better) + 1
    assert {name: list(part) for name, part in ranking.parts.items()} == {
        "a": [0, 1, 2, 3],
        "b": [4, 5, 6],
    }


@given(
    arrays(np.float64, (4, 7), elements=st.integers(-1, 4)), st.sets(st.integers(0, 6), min_size=2)
)
def test_features_among_themselves_rank_as_if_there_were_no_others(scores, chosen):
    chosen = np.array(sorted(chosen))
    part, alone = make(scores).restrict_to(chosen, 1), make(scores[:, chosen], 1)
    np.testing.assert_array_equal(part.ranks, alone.ranks)
    np.testing.assert_array_equal(part.fold_ranks, alone.fold_ranks)
    np.testing.assert_array_equal(part.scores, alone.scores)
    assert part.feature_names == tuple(f"f{i}" for i in chosen)
    assert part.stability.value == pytest.approx(alone.stability.value, nan_ok=True)


def test_one_fold_has_ranks_but_no_spread():
    ranking = make([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]])
    assert ranking.consensus_rank.tolist() == [3, 1, 2]
    assert np.isnan(ranking.rank_sd).all()
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
        ({"added": {"p_value": np.ones(2)}}, DataError, "p_value has shape"),
        ({"fold_scores": [[1.0, 1.0, 1.0], [1.0]]}, DataError, "outer1 have shape"),
        (
            {"fold_scores": [[1.0] * 3, [1.0, np.nan, 1.0]]},
            DataError,
            "outer1 contain NaN .* feature 'f1'",
        ),
        ({"fold_scores": [], "fold_names": []}, DataError, "0 outer folds"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        make(np.ones((3, 3)), **changes)
