"""Groups of features rank by their best member, whatever the order of the columns."""

from __future__ import annotations

import numpy as np

from raysel.core.arrays import IntArray
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.group_ranking import GroupRanking
from raysel.numerics.rankings import nogueira_stability

#: Three modules of two columns and two columns that are alone. Each fold gives a module's weight to
#: one member only, not always the same one.
SCORES = np.array(
    [
        [9, 0, 5, 0, 1, 0, 0, 2],
        [0, 8, 0, 6, 0, 3, 0, 0],
        [7, 0, 0, 9, 0, 1, 2, 0],
        [0, 9, 8, 0, 0, 0, 1, 0],
    ],
    dtype=float,
)
GROUPS = {"first": [0, 1], "second": [2, 3], "third": [4, 5]}


def ranking(columns: IntArray, n_selected: int = 2) -> FeatureRanking:
    return FeatureRanking.from_folds(
        SCORES[:, columns].sum(axis=0),
        SCORES[:, columns],
        feature_names=[f"c{column}" for column in columns],
        fold_names=[f"outer{number}" for number in range(len(SCORES))],
        n_selected=n_selected,
    )


def test_a_group_is_selected_where_one_of_its_members_is():
    features = ranking(np.arange(8))
    groups = GroupRanking.of(features, GROUPS)
    assert groups.names == ("first", "second", "third", "c6", "c7")
    assert groups.selection_frequency.tolist() == [1, 1, 0, 0, 0]
    assert features.selection_frequency.max() < 1  # no single column is in all folds
    assert groups.stability.value == 1 > features.stability.value


def test_shares_and_stability_are_those_of_a_count_by_hand():
    features = ranking(np.arange(8), n_selected=3)
    selected = features.fold_selected
    by_hand = np.array(
        [[row[[0, 1]].any(), row[[2, 3]].any(), row[[4, 5]].any(), *row[6:]] for row in selected]
    )
    groups = GroupRanking.of(features, GROUPS)
    np.testing.assert_array_equal(groups.fold_selected, by_hand)
    assert groups.stability.value == nogueira_stability(by_hand).value


def test_groups_of_one_feature_rank_as_the_features():
    features = ranking(np.arange(8))
    groups = GroupRanking.of(features, {})
    assert groups.names == features.feature_names == groups.labels
    np.testing.assert_array_equal(groups.consensus_place, features.consensus_place)
    np.testing.assert_array_equal(groups.selection_frequency, features.selection_frequency)
    assert groups.stability.value == features.stability.value


def test_the_order_of_the_columns_does_not_matter():
    order = np.random.default_rng(0).permutation(8)
    position = np.argsort(order)
    moved = {name: position[members].tolist() for name, members in GROUPS.items()}
    frames = [
        GroupRanking.of(ranking(np.arange(8)), GROUPS).to_frame(),
        GroupRanking.of(ranking(order), moved).to_frame(),
    ]
    kept = [frame.drop(columns="index").sort_values(["group", "feature"]) for frame in frames]
    np.testing.assert_array_equal(kept[0].to_numpy(), kept[1].to_numpy())


def test_the_table_has_each_member_once_beside_its_group():
    frame = GroupRanking.of(ranking(np.arange(8)), GROUPS).to_frame()
    assert sorted(frame["index"]) == list(range(8))
    for name, members in GROUPS.items():
        assert sorted(frame[frame["group"] == name]["index"]) == members
    assert frame["group_place"].is_monotonic_increasing
    assert (frame["group_selection_frequency"] >= frame["selection_frequency"]).all()


def test_a_label_names_the_best_member_and_counts_the_others():
    groups = GroupRanking.of(ranking(np.arange(8)), GROUPS)
    best = [groups.features.feature_names[members[0]] for members in groups.members]
    assert groups.labels == (f"{best[0]} +1", f"{best[1]} +1", f"{best[2]} +1", "c6", "c7")
    places = groups.features.consensus_place
    assert all(places[members[0]] == places[members].min() for members in groups.members)


def test_confounds_are_in_no_group():
    features = FeatureRanking.from_folds(
        [3, 2, 0],
        [[3, 2, 0], [2, 3, 0]],
        feature_names=["a", "b", "age"],
        fold_names=["outer0", "outer1"],
        n_selected=1,
        coordinates={"column": np.array([0, 1, -1])},
    )
    groups = GroupRanking.of(features, {"both": [0, 1]})
    assert groups.names == ("both",)
    assert groups.to_frame()["feature"].tolist() == ["a", "b"]
