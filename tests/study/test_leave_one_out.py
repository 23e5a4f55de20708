"""Leave-one-out: one sample or group in each outer fold, and the metrics that one sample has."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_studies import raw_config, run_offline

from raysel.config import config_from_dict
from raysel.core.errors import ConfigError
from raysel.study.definition import Study

WINE = load_wine(as_frame=True).frame.iloc[::9]


def leave_one_out(tmp_path, **changes):
    WINE.rename(columns={"target": "y"}).to_csv(tmp_path / "wine.csv", index=False)
    changes = {"solver": {"name": "fisher_score"}, "dataset__scaling": "zscore", **changes}
    scored = {"estimator": "knn", "n_features": [3], "references": False}
    changes |= {"evaluation": scored, "cv__final": False}
    return raw_config(tmp_path / "wine.csv", **changes)


@pytest.mark.parametrize("outer", ["n_samples", pytest.param(len(WINE), marks=pytest.mark.slow)])
def test_one_sample_is_left_out_in_each_fold_as_scikit_learn_does(tmp_path, outer):
    raw = leave_one_out(tmp_path, cv__outer=outer)
    result = run_offline(raw, tmp_path / "study")
    model = make_pipeline(StandardScaler(), SelectKBest(f_classif, k=3), KNeighborsClassifier(1))
    X, y = WINE.drop(columns="target").to_numpy(), WINE["target"].to_numpy()
    expected = cross_val_score(model, X, y, cv=LeaveOneOut())
    assert list(result.test_scores) == expected.tolist()


def test_one_group_is_left_out_in_each_fold(tmp_path):
    raw = leave_one_out(tmp_path, cv__outer="n_samples", cv__groups="person")
    frame = WINE.rename(columns={"target": "y"}).assign(person=np.arange(len(WINE)) * 7 % 11)
    frame.to_csv(tmp_path / "wine.csv", index=False)
    study = Study.prepare(config_from_dict(raw))
    people = [set(study.dataset.groups[fold.test].tolist()) for fold in study.plan.outer]
    assert sorted(people, key=min) == [{person} for person in range(11)]


@pytest.mark.parametrize("metric", ["balanced_accuracy", "macro_f1", "matthews_corrcoef"])
def test_a_metric_that_one_sample_does_not_have_is_refused_with_one_that_it_has(tmp_path, metric):
    raw = leave_one_out(tmp_path, cv__outer="n_samples")
    raw["evaluation"]["metric"] = metric
    with pytest.raises(ConfigError, match=f"{metric} needs several samples.*e.g. accuracy"):
        Study.prepare(config_from_dict(raw))
    raw["evaluation"]["metric"] = "accuracy"
    raw["evaluation"]["report"] = [metric]
    with pytest.raises(ConfigError):
        Study.prepare(config_from_dict(raw))


def test_a_quantity_is_scored_by_its_error_where_one_sample_is_left_out(tmp_path):
    raw = leave_one_out(tmp_path, cv__outer="n_samples", dataset__label="proline")
    raw |= {"solver": {"name": "f_test"}, "evaluation": {"n_features": [3], "estimator": "ridge"}}
    with pytest.raises(ConfigError):
        Study.prepare(config_from_dict(raw))
    raw["evaluation"]["metric"] = "neg_mae"
    assert len(Study.prepare(config_from_dict(raw)).plan.outer) == len(WINE)


@pytest.mark.parametrize("changes", [{"cv__repeats": 2}, {"cv__blocks": {"forward": True}}])
def test_what_leaves_no_choice_of_folds_is_refused_beside_it(tmp_path, changes):
    with pytest.raises(ConfigError, match=r"n_samples|forward"):
        config_from_dict(leave_one_out(tmp_path, cv__outer="n_samples", **changes))
