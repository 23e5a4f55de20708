"""Trials: the same numbers as a plain loop, and null configurations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_studies import make_study, run_serially, timeless, write_digits
from splits import scaled_split
from threadpoolctl import threadpool_limits

from raysel.data.scaling import make_scaler


@pytest.fixture
def digits(tmp_path) -> Path:
    write_digits(tmp_path / "few.npz")
    return tmp_path / "few.npz"


def plain_trace(study, params, fold):
    """Each inner fit from nothing, one after the other, without shared preparation, lock step or
    Ray.
    """
    X, y = study.dataset.X, study.dataset.y
    inners = []
    for number, inner in enumerate(fold.inner):
        scaler = make_scaler(study.config.dataset.scaling).fit(X[inner.train])
        train, held_out = (
            np.ascontiguousarray(scaler.transform(X[i])) for i in (inner.train, inner.validation)
        )
        state = fold.random_state(study.config.seed, number)
        sets = train, y[inner.train], held_out, y[inner.validation]
        split = scaled_split(*sets, random_state=state)
        by_c = [study.evaluation.scorer(split, [each]) for each in study.evaluation.settings]
        score = by_c[0]
        solver = study.solver(params, state)
        objective, scores = [], []
        for value in solver.iterate(train, y[inner.train]):
            objective.append(value)
            if study.evaluation.every_iteration:
                scores.append(score(solver).tolist())
        if not study.evaluation.every_iteration:
            scores = [score(solver).tolist() for score in by_c]
        met = {"source": "solved", "converged": solver.converged_, "gap": None, "failures": []}
        inners.append({"objective": objective, "scores": scores, **met})
    chosen = []
    if not study.evaluation.every_iteration:
        for position, _ in enumerate(study.evaluation.n_features):
            means = [
                np.mean([inner["scores"][c][position] for inner in inners])
                for c, _ in enumerate(by_c)
            ]
            chosen.append(int(np.argmax(np.round(means, 12))))
        for inner in inners:
            inner["scores"] = [[inner["scores"][c][position] for position, c in enumerate(chosen)]]
    return {
        "null": False,
        "inner": inners,
        "error": "",
        "settings": [dict(study.evaluation.settings[c]) for c in chosen],
    }


@pytest.mark.parametrize(
    "changes",
    [
        {
            "solver__params": {"max_iter": 6, "tol": 1e-2, "init": "random"},
            "dataset__scaling": "zscore",
        },
        {"evaluation": {"classifier": "native"}, "solver__params": {"max_iter": 2, "p": 0.5}},
        {
            "evaluation": {"classifier": "linear_svm", "n_features": [4, 8]},
            "solver__params": {"max_iter": 2},
        },
    ],
    ids=["knn", "native", "linear_svm"],
)
def test_a_trial_is_a_plain_loop_bit_for_bit(tmp_path, digits, changes):
    study = make_study(digits, solver__space={"alpha": [0.02, 0.3], "rank": [3]}, **changes)
    records, _, _ = run_serially(study, tmp_path / "run")
    with threadpool_limits(1):
        for configuration in study.configurations:
            record = records[configuration.id]
            assert record["status"] == "finished"
            assert record["params"] == dict(configuration.params)
            assert set(record["folds"]) == {"outer0", "outer1", "final"}
            for fold in study.plan.folds:
                expected = plain_trace(study, configuration.params, fold)
                assert timeless(record["folds"][fold.name]) == expected


def test_a_null_trial_ends_at_once_and_is_scored_as_the_most_frequent_class(tmp_path, digits):
    study = make_study(digits, solver__space={"alpha": [0.05, 1.0, 7.5]})
    records, refits, _ = run_serially(study, tmp_path / "run")
    by_alpha = {record["params"]["alpha"]: record for record in records.values()}
    for alpha in (1.0, 7.5):  # in units of alpha_max: at collapse, and beyond
        assert by_alpha[alpha]["status"] == "null"
        for fold in by_alpha[alpha]["folds"].values():
            assert fold["null"]
            assert all(len(inner["objective"]) == 1 for inner in fold["inner"])
            assert all(
                inner["scores"] == [[0.25, 0.25]] for inner in fold["inner"]
            )  # four classes of one size
    assert by_alpha[0.05]["status"] == "finished"
    assert [refit.record.params["alpha"] for refit in refits] == [0.05] * 3
    _, refits, _ = run_serially(
        make_study(digits, solver__space={"alpha": [2.0, 7.5]}), tmp_path / "none"
    )
    assert [refit.record.params["alpha"] for refit in refits] == [
        7.5
    ] * 3  # the sparser of two that are alike
    assert not any(any(refit.record.feature_scores) for refit in refits)


def test_each_fold_is_null_by_itself(tmp_path, digits):
    changes = {"solver__params": {"max_iter": 3, "alpha_scale": "absolute"}}
    study = make_study(digits, solver__space={"alpha": [1.0]}, **changes)
    collapse = {
        fold.name: max(study.trial_split(fold, i, {}).prepared.alpha_max for i in range(2))
        for fold in study.plan.folds
    }
    lowest = min(collapse, key=collapse.get)
    between = float(np.mean(sorted(collapse.values())[:2]))
    study = make_study(digits, solver__space={"alpha": [between, 1.0]}, **changes)
    records, refits, _ = run_serially(study, tmp_path / "run")
    (partly,) = (record for record in records.values() if record["params"]["alpha"] == between)
    assert partly["status"] == "finished"
    assert {name for name, fold in partly["folds"].items() if fold["null"]} == {lowest}
    assert next(r.record.params["alpha"] for r in refits if r.record.fold == lowest) == 1.0
