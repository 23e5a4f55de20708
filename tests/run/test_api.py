"""Studies from Python: what is taken as a configuration, what is refused before anything is
written.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from small_studies import Watcher, raw_config, write_digits

import raysel
from raysel.core.errors import ConfigError, DataError, DirectoryError
from raysel.run.api import prepare_study
from raysel.tracking.journal import read_journal


def test_values_of_numpy_and_of_pathlib_are_taken_as_those_of_yaml(here):
    plain = prepare_study(
        raw_config(), {"solver.space": {"alpha": [0.01, 0.1, 1.0]}, "cv.outer": 3, "seed": 4}
    )
    changes = {
        "solver.space": {"alpha": np.logspace(-2, 0, 3)},
        "cv.outer": np.int64(3),
        "seed": np.uint32(4),
        "dataset.path": here / "few.npz",
    }
    found = prepare_study(raw_config(), changes)
    assert [c.params for c in found.configurations] == [c.params for c in plain.configurations]
    assert found.plan.to_json() == plain.plan.to_json()
    assert (
        prepare_study(raw_config(evaluation__n_features=(4, 8))).config
        == prepare_study(raw_config()).config
    )


@pytest.mark.usefixtures("here")
def test_one_override_may_be_a_string_and_none_means_none():
    assert prepare_study(raw_config(), "cv.outer=3").config.cv.outer == 3
    assert prepare_study(raw_config(), None).config == prepare_study(raw_config()).config


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3,), "3 is not a configuration"),
        ((None,), "config=None: give a path"),
        (
            (raw_config(), [{"cv.outer": 2}]),
            "override .*: give strings such as 'cv.outer=5', or one mapping",
        ),
    ],
)
def test_what_is_no_configuration_is_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        raysel.run_study(*arguments, progress=False)


@pytest.mark.parametrize("progress", [None, 1, object()])
def test_what_cannot_show_progress_is_refused_before_anything_is_written(here, progress):
    with pytest.raises(
        ConfigError, match=r"progress=.* has no show; give True, False or a Listener"
    ):
        raysel.run_study(raw_config(), output="study", progress=progress)
    assert not (here / "study").exists()


@pytest.mark.usefixtures("here")
def test_a_prepared_study_takes_no_overrides():
    with pytest.raises(ConfigError, match="a prepared study takes no overrides"):
        raysel.run_study(prepare_study(raw_config()), {"cv.outer": 3}, progress=False)


@pytest.mark.slow
@pytest.mark.usefixtures("without_mlflow")
@pytest.mark.parametrize("calls", [1, 9])
def test_an_interrupted_study_says_so_and_resumes_to_the_same_numbers(here, calls):
    with pytest.raises(KeyboardInterrupt):
        raysel.run_study(
            raw_config(search__executor="auto"), output="study", progress=Watcher(calls)
        )
    assert list(read_journal(here / "study" / "journal.jsonl"))[-1]["status"] == "interrupted"
    resumed = raysel.resume_study("study", progress=False)
    whole = raysel.run_study(raw_config(), output="whole", progress=False)
    assert resumed.test_scores == whole.test_scores
    assert resumed.final.feature_scores == whole.final.feature_scores


@pytest.mark.slow
@pytest.mark.usefixtures("without_mlflow")
def test_a_study_whose_data_have_moved_resumes_from_their_new_place(here):
    with pytest.raises(KeyboardInterrupt):
        raysel.run_study(raw_config(), output="study", progress=Watcher(9))
    (here / "elsewhere").mkdir()
    (here / "few.npz").rename(here / "elsewhere" / "few.npz")
    with pytest.raises(
        DataError, match=r"If the data have moved since the study started, override dataset\.path"
    ):
        raysel.resume_study("study", progress=False)
    assert raysel.resume_study(
        "study", overrides={"dataset.path": "elsewhere/few.npz"}, progress=False
    ).recorded.is_ranked
    write_digits(here / "other.npz", permute=1)
    with pytest.raises(DirectoryError):
        raysel.resume_study("study", overrides={"dataset.path": "other.npz"}, progress=False)


@pytest.mark.usefixtures("here")
def test_a_folder_without_a_study_is_not_resumed():
    with pytest.raises(DirectoryError):
        raysel.resume_study("nowhere", raw_config(), progress=False)


@pytest.mark.slow
@pytest.mark.usefixtures("without_mlflow")
def test_an_override_may_name_the_class_that_the_directory_may_not(here, monkeypatch):
    monkeypatch.syspath_prepend(here)
    (here / "own_forest.py").write_text(
        "from sklearn.svm import LinearSVC\nclass Forest(LinearSVC):\n    pass\n"
    )
    config = raw_config(solver={"name": "own_forest.Forest", "space": {"C": [0.01, 0.1]}})
    raysel.run_study(config, output="study", progress=False)
    with pytest.raises(ConfigError, match="only the configuration in the directory"):
        raysel.resume_study("study", progress=False)
    assert raysel.resume_study(
        "study", overrides={"solver.name": "own_forest.Forest"}, progress=False
    ).recorded.is_ranked
    sys.modules.pop("own_forest", None)
