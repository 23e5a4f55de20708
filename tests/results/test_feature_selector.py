"""A scikit-learn selector from a finished study: the final ranking's best features."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import raysel
from raysel.base.models import load_model, save_model
from raysel.baselines.univariate_filters import Variance
from raysel.core.errors import ConfigError, DirectoryError, StudyError, UnfinishedStudyError
from raysel.data.task_blocks import TaskBlocks
from raysel.evaluation.selectors import RankedSelector

#: Checks of scikit-learn that give samples of 1 to 10 features.
OTHER_WIDTHS = (
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_overwrite_params",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
)


def frame_of(result):
    data = raysel.load_dataset(result.config["dataset"]["path"])
    return pd.DataFrame(data.X, columns=data.feature_names), data.y


def test_it_selects_what_the_ranking_shows(finished):
    frame, _ = frame_of(finished)
    for n in (None, 1, 5, 64):
        selector = raysel.FeatureSelector.from_study(finished.path, n)
        ranking = finished.ranking(n)
        assert selector.get_support(indices=True).tolist() == sorted(ranking.top())
        assert selector.get_feature_names_out().tolist() == [
            frame.columns[i] for i in sorted(ranking.top())
        ]
        np.testing.assert_array_equal(
            selector.transform(frame.to_numpy()), frame[selector.get_feature_names_out()]
        )
    assert (
        selector.get_support().sum() == finished.recorded.n_scored["final"]
    )  # constant pixels are never selected
    restored = selector.inverse_transform(selector.transform(frame.to_numpy()))
    np.testing.assert_array_equal(restored, np.where(selector.get_support(), frame, 0))
    assert (
        raysel.FeatureSelector.from_study(finished.path).n_features_to_select
        == finished.final.n_features
    )


def test_it_is_used_as_scikit_learn_uses_selectors(finished, tmp_path):
    frame, y = frame_of(finished)
    selector = raysel.FeatureSelector.from_study(str(finished.path), 6)
    assert selector.feature_names_in_.tolist() == list(frame)
    table = selector.set_output(transform="pandas").transform(frame)
    assert list(table) == selector.get_feature_names_out().tolist()
    again = clone(selector)
    assert not hasattr(again, "scores_")
    assert list(again.fit(frame, y).transform(frame)) == list(table)
    stored = load_model(save_model(selector, tmp_path / "selector.skops"))
    assert list(stored.transform(frame)) == list(table)
    model = make_pipeline(
        StandardScaler().set_output(transform="pandas"), selector, KNeighborsClassifier(1)
    )
    by_hand = cross_val_score(
        make_pipeline(StandardScaler(), KNeighborsClassifier(1)), table.to_numpy(), y
    )
    np.testing.assert_array_equal(cross_val_score(model, frame, y), by_hand)
    for wrong in (frame[frame.columns[::-1]], frame.iloc[:, 1:]):
        for method in (selector.transform, clone(selector).fit):
            with pytest.raises(ValueError, match="feature names should match"):
                method(wrong)


def test_scores_without_names_select_by_position():
    selector = raysel.FeatureSelector([1.0, 0.0, 3.0, 2.0], 2).fit(np.zeros((1, 4)))
    assert selector.transform([[1, 2, 3, 4]]).tolist() == [[3, 4]]
    assert selector.get_feature_names_out().tolist() == ["x2", "x3"]
    named = clone(selector).fit(pd.DataFrame(np.zeros((1, 4)), columns=list("abcd")))
    assert named.get_feature_names_out().tolist() == ["c", "d"]
    assert not hasattr(named.fit(np.zeros((1, 4))), "feature_names_in_")
    blocks = TaskBlocks((np.ones((1, 3)), np.full((1, 1), 2.0)), np.array([0, 1]))
    np.testing.assert_array_equal(selector.transform(blocks), [[1, np.nan], [np.nan, 2]])
    with pytest.raises(ValueError, match="has 3 features"):
        selector.fit(np.zeros((2, 3)))
    with pytest.raises(ConfigError, match="feature_names has 1 names for the 2 scores"):
        raysel.FeatureSelector([1.0, 2.0], 1, ["a"]).fit(np.zeros((1, 2)))


def test_what_has_no_ranking_is_said(finished, tmp_path):
    from_study = raysel.FeatureSelector.from_study
    for n in (0, 65, 2.5):
        with pytest.raises(
            ConfigError,
        ):
            from_study(finished.path, n)
    with pytest.raises(DirectoryError):
        from_study(tmp_path / "absent")
    lines = [json.loads(line) for line in finished.directory.journal.read_text().splitlines()]
    killed = [line for line in lines if line["kind"] in ("study", "trial")]
    unranked = [
        {**line, "feature_scores": None} if line["kind"] == "refit" else line for line in lines
    ]
    for name, kept in (("killed", killed), ("unranked", unranked)):
        shutil.copytree(finished.path, tmp_path / name)
        (tmp_path / name / "journal.jsonl").write_text(
            "".join(json.dumps(line) + "\n" for line in kept)
        )
    with pytest.raises(UnfinishedStudyError):
        from_study(tmp_path / "killed")
    with pytest.raises(StudyError, match="has no ranking"):
        from_study(tmp_path / "unranked")


@pytest.mark.parametrize("n", [0, -1, 2.5, "3"])
def test_an_invalid_number_of_features_is_refused(n):
    for selector in (raysel.FeatureSelector([1.0, 2.0], n), RankedSelector(Variance(), n)):
        with pytest.raises(ValueError, match=r"n_features_to_select.*must be an int in the range"):
            selector.fit(np.eye(2), [0, 1])


def test_scores_must_be_numbers():
    with pytest.raises(ConfigError, match="scores has NaN at position 1"):
        raysel.FeatureSelector([1.0, np.nan], 1).fit(np.eye(2))


@parametrize_with_checks(
    [raysel.FeatureSelector([3.0, 1.0, 2.0], 2)],
    expected_failed_checks=lambda _: dict.fromkeys(
        OTHER_WIDTHS, "gives samples of another width than the scores"
    ),
)
def test_it_follows_scikit_learn(estimator, check):
    check(estimator)
