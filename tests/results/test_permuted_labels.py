"""On permuted labels the headline is at chance, whatever chooses configuration and number of
features.
"""

from __future__ import annotations

import numpy as np
import pytest
from small_studies import make_study, run_serially

N, D, N_SETS = 200, 20, 16
SPACE = {"gamma1": [0.01, 0.03, 0.1, 0.3]}
SEARCHES = {
    "tpe": {"method": "tpe", "num_samples": 4, "synchronous": True, "batch_size": 2},
    "asha": {
        "early_stopping": "asha",
        "synchronous": True,
        "batch_size": 4,
        "reduction_factor": 2,
        "grace_period": 2,
    },
    "path": {"method": "path"},
}


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """Data sets whose labels are permuted."""
    folder = tmp_path_factory.mktemp("noise")
    for seed in range(N_SETS):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(N, D)), np.arange(N) % 2
        X[y == 1, :4] += 1.0  # which the permutation makes worthless
        np.savez(folder / f"{seed}.npz", X=X, y=rng.permutation(y))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "rule"),
    [("path", "one_se"), ("tpe", "best"), ("asha", "mean")],
)
def test_the_headline_is_at_chance(noise, tmp_path, search, rule):
    test, inner = [], []
    for seed in range(N_SETS):
        study = make_study(
            noise / f"{seed}.npz",
            solver={
                "name": "smml",
                "params": {"gamma2": 0.01, "max_iter": 4},
                "space": {"gamma1": {"loguniform": [0.01, 0.3]}} if search == "tpe" else SPACE,
            },
            evaluation={
                "classifier": "knn",
                "n_features": [2, 4, 8],
                "choose_n": rule,
                "references": False,
            },
            cv={"outer": 2, "inner": 2, "final": False},
            search={"executor": "serial", **SEARCHES[search]},
        )
        _, refits, _ = run_serially(study, tmp_path / f"{seed}")
        test.append(np.mean([refit.record.test_score for refit in refits]))
        inner.append(np.mean([refit.record.inner_score for refit in refits]))
    margin = 3 * np.std(test, ddof=1) / np.sqrt(N_SETS)
    assert margin < 0.03  # so a leak of .03 would be seen
    assert abs(np.mean(test) - 0.5) < margin
    assert (
        np.mean(inner) - np.mean(test) > 0.01
    )  # as the inner scores leak, by which the winner was chosen
