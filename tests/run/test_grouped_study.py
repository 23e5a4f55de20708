"""Studies of the sparse group lasso, whose groups come from the data's configuration."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from raysel import NestedSearch, resume_study, run_study
from raysel.base.registry import build_solver
from raysel.core.errors import ConfigError, DirectoryError
from raysel.data.layouts import Tensor
from raysel.execution.serial import SerialExecutor
from raysel.run.api import prepare_study
from raysel.run.in_memory import run_in_memory
from raysel.solvers.grouped.sparse_group_lasso import SparseGroupLasso

GROUPS = {"first": ["a", "b", "c"], "second": ["d", "e", "f"]}


def table(seed=0, n=90):
    """A table of which the first group and a category tell the class, with an empty cell."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 8)), columns=list("abcdefgh"))
    y = (X[["a", "b", "c"]].sum(axis=1) + rng.normal(size=n) > 0).to_numpy().astype(int)
    X["tissue"] = np.where(rng.random(n) < 0.8, np.array(["x", "z"])[y], "w")
    X.loc[3, "d"] = np.nan
    return X, y


def study(X, y, **dataset):
    config = {
        "name": "grouped",
        "dataset": {"scaling": "zscore", **dataset},
        "solver": {"name": "sparse_group_lasso", "params": {"alpha": 0.1}},
        "evaluation": {"estimator": "native", "references": False},
        "cv": {"outer": 3, "inner": 2},
    }
    return prepare_study(config, X=X, y=y)


def run(prepared):
    return run_in_memory(prepared, SerialExecutor(prepared))


def test_the_groups_of_a_study_are_those_of_its_prepared_columns():
    X, y = table()
    steps = [{"impute": "median"}, "encode"]
    prepared = study(X, y, feature_groups=GROUPS, prepare=steps)
    model = run(prepared).model.method
    assert model.group_names_ == ["first", "second", "tissue"]
    assert model.groups == {"first": [0, 1, 2], "second": [3, 4, 5], "tissue": [8, 9, 10]}
    found = dict(zip(model.group_names_, model.group_scores_, strict=True))
    assert found["first"] > found["second"]


def test_a_study_has_the_scores_of_the_estimator_with_the_same_groups():
    X, y = table()
    X = X.drop(columns="tissue").fillna(0.0)
    result = run(study(X, y, feature_groups=GROUPS))
    groups = {"first": [0, 1, 2], "second": [3, 4, 5]}
    search = NestedSearch(
        SparseGroupLasso(groups, alpha=0.1), outer=3, inner=2, scaling="zscore"
    ).fit(X.to_numpy(), y)
    assert np.array_equal(search.scores_, result.test_scores)
    without = run(study(X, y))
    assert not np.array_equal(without.final.feature_scores, result.final.feature_scores)


def test_correlated_columns_are_grouped_within_each_training_set():
    X, y = table()
    X = X.drop(columns="tissue").fillna(0.0)
    X["b"] = X["a"] + 0.1 * X["b"]
    model = run(study(X, y, feature_groups={"correlated": 0.8})).model.method
    assert model.groups == {"correlated": 0.8}
    assert model.group_names_ == ["cluster 1"]


def test_a_study_is_not_resumed_with_other_groups(tmp_path):
    X, y = table()
    X = X.drop(columns="tissue").fillna(0.0)
    X.assign(y=y).to_csv(tmp_path / "table.csv", index=False)
    config = study(X, y, feature_groups=GROUPS).config.to_dict()
    config["dataset"] |= {"path": str(tmp_path / "table.csv"), "label": "y"}
    config |= {"tracking": {"mlflow": False}, "search": {"executor": "serial"}}
    run_study(config, output=tmp_path / "study")
    config["dataset"]["feature_groups"] = {"first": ["a", "b"]}
    with pytest.raises(DirectoryError, match="feature_groups"):
        resume_study(tmp_path / "study", config)


@pytest.mark.parametrize("at", [0.0, 1.5])
def test_a_correlation_out_of_range_is_refused(at):
    X, y = table()
    with pytest.raises(ValueError, match="correlated"):
        SparseGroupLasso({"correlated": at}).fit(X[["a", "b"]].to_numpy(), y)


def test_groups_are_no_parameter_of_a_configuration():
    with pytest.raises(ConfigError, match="`groups` is set from the data set"):
        build_solver("sparse_group_lasso", Tensor((8,)), {"groups": 1}, groups={})
