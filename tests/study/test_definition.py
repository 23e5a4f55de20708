"""A study before it runs: everything decided, everything checked, nothing computed that Ray is
needed for.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from small_studies import make_study, write_digits

from raysel.cli.plan import describe
from raysel.core.errors import ConfigError
from raysel.run.course import OneStudy
from raysel.solvers.smr.smr import SMR
from raysel.study import cost


@pytest.fixture
def digits(tmp_path):
    write_digits(tmp_path / "few.npz")
    return tmp_path / "few.npz"


def test_every_configuration_is_checked_not_the_first_only(digits):
    for changes, message in (
        (
            {"solver__space": {"alpha": [0.1], "rank": [1, 2, 9]}},
            r"configuration alpha=0\.1 rank=9: rank=9 exceeds the smaller side of 8 x 8",
        ),
        ({"solver__space": {"alpha": [0.1, 0.0]}}, r"configuration alpha=0: .*'alpha' parameter"),
        ({"solver__params": {"shape": 8}}, "`shape` is set from the data set"),
        ({"solver__params": {"random_state": 1}}, "`random_state` is set from the study's seed"),
    ):
        with pytest.raises(ConfigError, match=message):
            make_study(digits, **changes)


def test_the_solver_gets_the_images_sides_and_the_folds_own_random_state(digits):
    study = make_study(digits)
    solver = study.solver({"rank": 2, "init": "random"}, 7)
    assert isinstance(solver, SMR)
    assert tuple(solver.shape) == (8, 8)
    assert (solver.rank, solver.init, solver.random_state) == (2, "random", 7)
    states = [fold.random_state(3, inner) for fold in study.plan.folds for inner in (None, 0, 1)]
    assert len(set(states)) == len(states)
    assert states == [
        fold.random_state(3, inner) for fold in study.plan.folds for inner in (None, 0, 1)
    ]


def test_a_prepared_fold_knows_its_training_set_only(digits):
    study = make_study(digits)
    inner = study.plan.folds[0].inner[0]
    split = study.trial_split(study.plan.folds[0], 0, study.examples[0].params)
    X = study.dataset.X
    low, high = X[inner.train].min(), X[inner.train].max()
    np.testing.assert_allclose(split.X_train, (X[inner.train] - low) / (high - low), rtol=1e-15)
    np.testing.assert_allclose(split.X_test, (X[inner.validation] - low) / (high - low), rtol=1e-15)
    np.testing.assert_array_equal(split.y_test, study.dataset.y[inner.validation])


def test_simpler_means_lower_rank_then_more_penalty(digits):
    study = make_study(digits)
    order = sorted(study.configurations, key=lambda c: study.solver(c.params).complexity_key())
    assert [(c.params["rank"], c.params["alpha"]) for c in order] == [
        (rank, alpha) for rank in (1, 2) for alpha in (2.0, 0.1, 0.01)
    ]


def test_the_description_counts_what_will_be_done(digits):
    study = make_study(digits, cv={"outer": 4, "inner": 3, "repeats": 2})
    lines = list(describe(OneStudy.of(study)))
    text = "\n".join(lines)
    assert study.n_inner == (4 * 2 + 1) * 3
    assert f"{6 * study.n_inner + 4 * 2 + 1} fits in all" in text
    for fold in study.plan.folds:
        (line,) = (line for line in lines if line.strip().startswith(fold.name))
        counted = [int(n) for n in re.findall(r"(\d+) (?:train|test)", line)]
        assert counted == [len(index) for index in (fold.train, fold.test) if len(index)]


def test_a_fit_of_one_step_is_not_priced_by_its_librarys_iterations(digits, monkeypatch):
    """LinearSVM's max_iter counts LIBLINEAR's iterations, all of which are in the one step that
    is timed.
    """
    monkeypatch.setattr(cost, "_PILOT_SECONDS", 0.0)
    solver = {"name": "linear_svm", "space": {"C": [0.1, 1.0]}}
    found = cost.estimate_cost(
        make_study(digits, solver=solver, evaluation={"classifier": "native"})
    )
    assert not found.at_most


def test_the_memory_of_a_fit_is_estimated_beside_what_is_shared(tmp_path):
    """A Gaussian kernel of all pairs of training samples must fit beside the distances that are
    shared.
    """
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "many.npz", X=rng.standard_normal((3000, 5)), y=np.arange(3000) % 2)
    found = {}
    held = [np.ones(2**20) for _ in range(30)]
    del held[:-1]  # the process may keep what it has freed, which must not hide what a fit needs
    if cost._restart_peak() is None:
        pytest.skip("this system does not restart the measurement of a process's peak memory")
    for name in ("kernel_svm", "linear_svm"):
        study = make_study(
            tmp_path / "many.npz", solver={"name": name}, evaluation={"classifier": "native"}
        )
        found[name] = cost.estimate_cost(study).fit_bytes
        n = len(study.largest[0].inner[study.largest[1]].train)
    kernel = 8 * n**2
    assert found["linear_svm"] < kernel < found["kernel_svm"]


def test_a_pilot_fit_that_fails_is_reported_and_stops_the_plan_if_all_fail(digits, monkeypatch):
    updates = SMR._updates

    def failing(self, X, y, prepared):
        if self.rank in failing_ranks:
            raise np.linalg.LinAlgError("singular at rank 2")
        yield from updates(self, X, y, prepared)

    monkeypatch.setattr(SMR, "_updates", failing)
    study = make_study(digits, solver__space={"alpha": [0.01, 0.1], "rank": [1, 2]})
    failing_ranks = {2}
    (told,) = [
        line for line in describe(OneStudy.of(study)) if "fails, and will as a trial" in line
    ]
    fails = [c.name for c in study.configurations if c.params["rank"] == 2]
    assert all(name in told for name in fails)
    assert told.endswith("LinAlgError: singular at rank 2")
    failing_ranks = {1, 2}
    n = len(study.configurations)
    with pytest.raises(
        ConfigError, match=rf"solver: all {n} configurations fail on the .*LinAlgError: singular at"
    ):
        cost.estimate_cost(study)


def test_slow_configurations_between_the_first_and_the_last_and_the_references_count(
    digits, monkeypatch
):
    updates = SMR._updates

    def slow(self, X, y, prepared):
        ends = time.process_time() + 0.1 * (self.alpha == 0.1)
        while time.process_time() < ends:
            pass
        yield from updates(self, X, y, prepared)

    monkeypatch.setattr(SMR, "_updates", slow)
    space = {"alpha": [0.05, 0.07, 0.1, 0.15, 0.2]}
    study = make_study(digits, solver__space=space)
    found = cost.estimate_cost(study)
    assert found.fit_seconds > 0.1 / 5
    assert 0.0 < found.reference_seconds < found.seconds
    without = make_study(digits, solver__space=space, evaluation__references=False)
    assert cost.estimate_cost(without).reference_seconds == 0.0


def test_waiting_is_not_computing_and_iterations_are_extrapolated_by_the_gap_only(
    digits, monkeypatch
):
    updates = SMR._updates

    def waiting(self, X, y, prepared):
        for objective in updates(self, X, y, prepared):
            time.sleep(0.05)
            yield objective

    monkeypatch.setattr(SMR, "_updates", waiting)
    study = make_study(digits, solver__space={"alpha": [0.01, 0.1]})
    assert cost.estimate_cost(study).fit_seconds < 0.05  # of several iterations
    monkeypatch.setattr(cost, "_PILOT_SECONDS", 0.0)
    monkeypatch.setattr(SMR, "_has_converged", lambda *_: False)
    assert cost.estimate_cost(study).seconds is None
    assert any(
        "time not known (after 1 of at most 6 iterations" in line
        for line in describe(OneStudy.of(study))
    )
    solver = SimpleNamespace(tol=1e-4, max_steps=1000)
    halved = [
        0.1 * 0.5**k for k in range(1, 9)
    ]  # each iteration halves the gap; 2**-k <= 1e-3 from k = 9.97 on
    pilot = cost._Pilot(seconds=8.0, n_iter=8, ended=False, gaps=halved, solver=solver, peak=None)
    assert pilot.total(None) == pytest.approx(np.log2(1e3), rel=1e-9)
    assert replace(pilot, gaps=[]).total(20) == 20.0
    assert replace(pilot, gaps=[0.1] * 8).total(None) is None
    solver.tol = 0.0  # which no gap meets
    assert pilot.total(None) == 1000.0
