"""Searches that learn or stop early: each outer fold by itself, whatever the workers, and never by its test samples."""

from __future__ import annotations

import json

import numpy as np
import pytest
from small_studies import make_study, run_on_ray, write_digits

from raysel.core.errors import ConfigError
from raysel.core.files import instance_of
from raysel.evaluation.nested_search import FoldSearch
from raysel.evaluation.records import TrialRecord

pytestmark = [pytest.mark.usefixtures("ray_here"), pytest.mark.slow]

LEARNING = {
    "solver__params": {"max_iter": 12, "tol": 0.0},
    "solver__space": {"alpha": {"loguniform": [0.003, 0.9]}, "rank": {"randint": [1, 6]}},
    "search": {
        "method": "tpe",
        "num_samples": 9,
        "early_stopping": "asha",
        "grace_period": 1,
        "synchronous": True,
        "batch_size": 3,
        "max_concurrent": 1,
    },
}


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    path = tmp_path_factory.mktemp("adaptive") / "few.npz"
    write_digits(path)
    return path


@pytest.fixture(scope="module")
def learnt(digits, tmp_path_factory, ray_here):  # noqa: ARG001
    """A study that learns and stops early: its own form, records by id, refits and journal."""
    study = make_study(digits, **LEARNING)
    return study, *run_on_ray(study, tmp_path_factory.mktemp("learnt") / "run")


def of_fold(records, fold):
    return {key: record for key, record in records.items() if record["fold"] == fold}


def test_every_fold_has_trials_of_its_own_and_only_those_count(learnt):
    study, records, refits, _ = learnt
    for fold in study.plan.folds:
        mine = of_fold(records, fold.name)
        assert 3 <= len(mine) <= 9
        assert all(set(record["folds"]) == {fold.name} for record in mine.values())
    assert {r["status"] for r in records.values()} == {"finished", "stopped"}
    for record in records.values():
        (trace,) = record["folds"].values()
        n = len(trace["inner"][0]["objective"])
        assert n == 12 if record["status"] == "finished" else n in (1, 3, 9)
    for refit in refits:
        winner = records[refit.record.trial]
        assert (winner["fold"], winner["status"]) == (refit.record.fold, "finished")


def test_a_folds_test_samples_change_neither_its_proposals_nor_its_stops(learnt, tmp_path):
    study, records, refits, _ = learnt
    (tmp_path / "plan.json").write_text(json.dumps(study.plan.to_json()))
    data, fold = study.dataset, study.plan.folds[0]
    X, y, rng = data.X.copy(), data.y.copy(), np.random.default_rng(0)
    X[fold.test] = rng.uniform(0, 16, X[fold.test].shape)
    y[fold.test] = rng.permutation(y[fold.test])
    np.savez(tmp_path / "scrambled.npz", X=X.reshape(-1, 8, 8), y=y)
    scrambled = make_study(tmp_path / "scrambled.npz", **LEARNING, cv={"plan": str(tmp_path / "plan.json")})
    other, other_refits, _ = run_on_ray(scrambled, tmp_path / "run")
    assert of_fold(other, fold.name) == of_fold(records, fold.name)
    assert other_refits[0].record.feature_scores == refits[0].record.feature_scores
    assert other_refits[0].record.test_scores != refits[0].record.test_scores
    for there in ("outer1", "final"):  # they trained on those samples, and learnt otherwise
        assert of_fold(other, there) != of_fold(records, there)


def test_without_batches_what_is_there_is_learnt_from_and_not_tried_again(learnt, digits):
    *_, kept = learnt
    free = make_study(digits, **{**LEARNING, "search": {**LEARNING["search"], "synchronous": False}})
    fold = free.plan.folds[0]
    records = [instance_of(TrialRecord, entry) for entry in kept if entry["fold"] == fold.name][:4]
    search = FoldSearch(free.config, fold, free.configurations, free.halving(), records)
    tried = []
    while (record := search.next()) is not None:
        tried.append(record)
    assert len(tried) == 9 - 4
    assert not {record.id for record in tried} & {record.id for record in records}
    # A rung knows them too: the worst of all does not go on.
    assert not search.should_continue(tried[0], level=1, score=-1.0)
    assert search.should_continue(tried[0], level=1, score=1.0)


def test_what_cannot_learn_is_refused(digits):
    with pytest.raises(ConfigError, match="linear_svm is scored at the last one only"):
        make_study(digits, evaluation__classifier="linear_svm", search={"early_stopping": "asha"})
    with pytest.raises(ConfigError, match="`num_samples` is needed by method tpe"):
        make_study(digits, search={"method": "tpe"})
    with pytest.raises(ConfigError, match=r"needs solver\.space"):
        make_study(digits, solver__space={}, search={"method": "tpe", "num_samples": 3})
    with pytest.raises(ConfigError, match="rank=9"):
        make_study(digits, solver__space={"rank": {"randint": [1, 9]}}, search={"method": "tpe", "num_samples": 3})
    with pytest.raises(ConfigError, match="nothing to stop on a `path`"):
        make_study(digits, search={"method": "path", "early_stopping": "asha"})
