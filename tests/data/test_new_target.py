"""A target that only this test knows runs a whole study through: what one class adds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from small_studies import NoUpload

from raysel.base.estimator import Capabilities, OneShotEstimator
from raysel.cli.plan import describe
from raysel.core.errors import ConfigError, DataError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Tensor
from raysel.data.loading import load_dataset, save_dataset
from raysel.data.targets import REGRESSION, Target, find_target, target
from raysel.execution.serial import SerialExecutor
from raysel.run import course
from raysel.run.api import prepare_study
from raysel.run.course import OneStudy

TIMES = [("event", bool), ("time", np.float64)]


def concordance(y, risk):
    """Share of the pairs with a known order in which the earlier event has the higher risk."""
    pairs = [
        (risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j])
        for i in np.flatnonzero(y["event"])
        for j in np.flatnonzero(y["time"] > y["time"][i])
    ]
    return float(np.mean(pairs)) if pairs else 0.5


class EqualRisk(BaseEstimator):
    """Give all samples the same risk."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


class EventCorrelation(OneShotEstimator):
    """Rank features by their correlation with the times of the events, and sum the best."""

    capabilities = Capabilities(predicts=True, targets=frozenset({"times"}))

    def __init__(self, top=1):
        self.top = top

    def _validate_data(self, X, y):
        return np.asarray(X), np.asarray(y)

    def prepare(self, X, y):
        happened = y[y["event"]]
        return np.corrcoef(X[y["event"]].T, -np.log(happened["time"]))[-1, :-1]

    def _updates(self, X, y, prepared):
        self.n_features_in_ = X.shape[1]
        self.scores_ = np.abs(prepared)
        self.coef_ = np.where(self.ranking_ <= self.top, prepared, 0.0)
        yield -float(self.scores_.max())

    def predict(self, X):
        return X @ self.coef_


@pytest.fixture
def times(monkeypatch):
    """Times to an event, which some samples reach."""
    monkeypatch.setattr(target, "_KINDS", dict(target._KINDS))

    class Times(Target):
        kind = "times"
        task = REGRESSION
        noun, plural, one = "time", "times", "a time to an event"
        default_metric = "test_new_target.concordance"

        def recognises(self, y):
            return y.dtype.names == ("event", "time")

        holds = recognises

        def convert(self, y, where, what, *, is_asked):
            if self.holds(y):
                return y, None
            stored = np.zeros(len(y), dtype=TIMES)
            stored["event"], stored["time"] = y.T
            return stored, None

        def to_array(self, y):
            return np.stack([y["event"], y["time"]], axis=1).astype(np.float64)

        def check(self, y, where, what):
            if not y["event"].any():
                raise DataError(f"{where}: {what} holds no event.")

        def names(self, y, column_names):
            return np.empty(0, dtype=np.str_)

        def count(self, y):
            return 1

        def y_type(self, y):
            return "times"

        def columns(self, y):
            return [y["time"]]

        def codes(self, y):
            return np.unique(y, return_inverse=True)[1]

        def strata(self, y, member, size):
            has_event = np.zeros(member.max() + 1, dtype=np.int64)
            np.maximum.at(has_event, member, y["event"])
            return has_event

        def guesses(self, measure):
            return ["mean"]

        def constant(self, name, measure, y):
            return self.constant_model()

        def constant_model(self):
            return EqualRisk()

        def ideal(self, measure, y):
            return -y["time"]

        def summarise(self, y, rows):
            return f"{y['event'][rows].sum()} events"

    return Times()


@pytest.fixture
def data(times):  # noqa: ARG001 - registers it
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = np.zeros(60, dtype=TIMES)
    y["time"] = np.exp(-2 * X[:, 3] + 0.3 * rng.normal(size=60))
    y["event"] = rng.random(60) < 0.7
    return Dataset(X, y, Tensor((5,)), name="wear")


RAW = {
    "name": "wear",
    "dataset": {"scaling": "zscore"},
    "solver": {"name": "test_new_target.EventCorrelation", "space": {"top": [1, 3]}},
    "cv": {"outer": 3, "inner": 2},
}


def test_a_target_is_recognised_and_comes_back_from_a_file(tmp_path, data, times):
    assert data.target == find_target(data.y) == times
    save_dataset(data, tmp_path / "wear.arrow")
    again = load_dataset(tmp_path / "wear.arrow")
    assert (again.target, again.content_hash) == (times, data.content_hash)


def test_one_class_adds_a_target(tmp_path, data):
    study = prepare_study(RAW, data=data)
    assert study.config.evaluation.metric == "test_new_target.concordance"
    assert study.config.evaluation.estimator_name == "native"
    plan = "\n".join(describe(OneStudy.of(study)))
    assert f"{data.y['event'].sum()} events" in plan
    assert "all features by" not in plan
    result = course.run(study, tmp_path / "study", SerialExecutor(study), start_upload=NoUpload)
    assert (tmp_path / "study" / "report.html").is_file()
    assert result.ranking().to_frame()["index"].iloc[0] == 3
    for refit, fold in zip(result.outer, study.plan.outer, strict=True):
        assert refit.references == {"mean": [0.5]}
        assert 0.8 < refit.test_score <= 1
        events = data.y["event"]
        assert abs(events[fold.test].mean() - events.mean()) < 0.05  # stratified


def test_methods_and_metrics_that_do_not_fit_are_named(data):
    smr = RAW | {"solver": {"name": "rfs"}}
    with pytest.raises(ConfigError, match="the label of wear is a time to an event"):
        prepare_study(smr, data=data)
    with pytest.raises(ConfigError, match="neg_mae is for quantities, and y has 1 time"):
        prepare_study(RAW | {"evaluation": {"metric": "neg_mae"}}, data=data)


def test_labels_of_a_target_are_permuted_whole(data):
    source = data.permutations().draw(np.random.default_rng(0))
    assert sorted(source.tolist()) == list(range(60))
