"""Configurations that tie are taken in the order of the search, and the result says so."""

from __future__ import annotations

import numpy as np
import pytest
from small_studies import raw_config, run_offline


@pytest.fixture
def separable(tmp_path):
    """Two classes that every setting of a linear classifier tells apart."""
    y = np.arange(40) % 2
    X = 10.0 * (2 * y - 1)[:, None] + np.random.default_rng(0).normal(size=(40, 4))
    np.savez(tmp_path / "few.npz", X=X, y=y)
    return tmp_path / "few.npz"


def run(data, folder, space, **search):
    solver = {"name": "sklearn.svm.LinearSVC", "space": space}
    evaluation = {"classifier": "native", "references": False}
    raw = raw_config(data, solver=solver, evaluation=evaluation, dataset__scaling="none")
    raw["search"] |= search
    return run_offline(raw, folder)


@pytest.mark.parametrize("values", [[0.1, 1.0, 10.0], [10.0, 0.1, 1.0]])
def test_the_first_that_is_listed_wins(separable, tmp_path, values):
    result = run(separable, tmp_path / "study", {"C": values})
    assert [refit.params["C"] for refit in result.refits] == values[:1] * 3
    assert [refit.n_tied for refit in result.refits] == [3, 3, 3]
    (remark,) = (text for text in result.remarks() if "Tied" in text)
    assert "on 3 of 3 folds: outer0 (3 configurations), outer1 (3 configurations), final (3 configurations)" in remark


def test_of_proposals_the_first_wins(separable, tmp_path):
    search = {"method": "tpe", "num_samples": 5, "synchronous": True, "batch_size": 2}
    result = run(separable, tmp_path / "study", {"C": {"loguniform": [0.1, 10.0]}}, **search)
    for refit in result.refits:
        trials = [record for record in result.records if record.fold == refit.fold]
        assert sorted(record.number for record in trials) == list(range(5))
        assert refit.trial == next(record.id for record in trials if record.number == 0)
        assert refit.n_tied == 5
