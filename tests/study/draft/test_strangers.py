"""Ten files as strangers have them: the drafted study reads them right, and scores them as scikit-learn does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draft_reference import reference_scores
from small_studies import run_offline
from stranger_files import MAKERS, Stranger

from raysel.data.layouts import Tensor
from raysel.study.definition import Study
from raysel.study.draft.draft import Draft, init_study

#: Few configurations, in this process.
SPACES = {
    "rfs": {"alpha": [0.03]},
    "smr": {"alpha": [0.03], "rank": [2]},
    "smml": {"gamma1": [0, 0.01], "gamma2": [0.01, 0.03]},
}

every_file = pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)


def drafted(make: Callable[..., Stranger], folder: Path, real_data: Callable[[str], Path]) -> tuple[Stranger, Draft]:
    if make.__name__ == "matlab_73":
        pytest.importorskip("h5py")
    stranger = make(folder, real_data)
    return stranger, init_study(stranger.path)


@every_file
def test_the_draft_reads_the_file_as_it_is_meant(make, tmp_path, real_data):
    stranger, draft = drafted(make, tmp_path, real_data)
    study = Study.prepare(draft.config)
    found = draft.config.to_dict()["dataset"]
    del found["scaling"]
    assert {key: value for key, value in found.items() if value} == {"path": str(stranger.path), **stranger.dataset}
    assert draft.config.solver.name == stranger.solver
    assert draft.config.cv.groups == stranger.cv_groups
    np.testing.assert_array_equal(study.dataset.X, stranger.X.astype(float))
    np.testing.assert_array_equal(study.dataset.y, stranger.y)
    assert study.dataset.label == stranger.label
    if stranger.shape:
        assert study.dataset.layout == Tensor(stranger.shape)
    assert (study.dataset.groups is None) == (stranger.groups is None)


@pytest.mark.slow
@every_file
def test_the_study_scores_as_nested_cross_validation_of_the_clean_arrays_does(make, tmp_path, real_data):
    stranger, draft = drafted(make, tmp_path, real_data)
    raw: dict[str, Any] = draft.config.to_dict()
    raw["solver"]["space"] = SPACES[stranger.solver]
    raw |= {"search": {**raw["search"], "executor": "serial"}, "pictures": []}
    raw["cv"] |= {"outer": 3, "inner": 2, "final": False}
    changed = draft.config.model_copy(update={"cv": draft.config.cv.model_copy(update={"outer": 3, "inner": 2})})
    with warnings.catch_warnings(action="ignore"):
        result = run_offline(raw, tmp_path / "study")
    scores = result.summary()[f"test_{draft.config.evaluation.metric}"]
    expected = reference_scores(stranger.X, stranger.y, stranger.groups, changed)
    # The folds differ: both means have an error, and so have the methods of ranking.
    error = np.hypot(scores.std(), expected.std(ddof=1)) / np.sqrt(3)
    assert abs(scores.mean() - expected.mean()) < 2.5 * error + 0.03
