"""Preparation of a comparison: data and folds once, and every member checked before anything is
computed.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from small_comparisons import raw_comparison

from raysel.config import dump_config, load_comparison, load_config
from raysel.core.errors import ConfigError, DataError
from raysel.evaluation.plan import NestedPlan
from raysel.run.api import prepare_comparison, run_comparison, run_study
from raysel.tracking.directory import StudyDirectory


@pytest.mark.usefixtures("here")
def test_data_are_loaded_and_folds_drawn_once():
    found = prepare_comparison("few.yaml")
    first, *others = found.studies.values()
    assert all(study.dataset is first.dataset and study.plan is first.plan for study in others)
    expected = NestedPlan.make(first.dataset.y, outer=2, inner=2, repeats=1, groups=None, seed=3)
    assert first.plan.to_json() == expected.to_json()
    assert dict(found.folders) == {"SMR, small": "smr-small", "SVM": "svm", "z": "z"}
    record = found.record(id_="a", uri="b", started=1.0)
    assert [(m.label, m.solver, m.reconstructed) for m in record.members] == [
        ("SMR, small", "smr", False),
        ("SVM", "linear_svm", False),
        ("z", "smr", False),
    ]
    assert record.reference == "SMR, small"


@pytest.mark.usefixtures("here")
def test_data_that_are_read_differently_are_read_again():
    found = prepare_comparison("few.yaml")
    study = found.studies["SVM"]
    other = study.config.model_copy(
        update={
            "dataset": study.config.dataset.model_copy(update={"modalities": {"a": 32, "b": 32}})
        }
    )
    assert study.reads_alike(study.config)
    assert not study.reads_alike(other)
    again = type(study).prepare(other, like=study)
    assert again.dataset is not study.dataset
    assert again.plan is study.plan


def test_labels_that_differ_are_refused(here):
    found = prepare_comparison("few.yaml").studies["SVM"]
    with np.load("few.npz") as data:
        np.savez(here / "other.npz", X=data["X"], y=data["y"][::-1])
    raw = found.config.to_dict()
    raw["dataset"]["path"] = "other.npz"
    with pytest.raises(DataError, match="other has other labels than the data of few-svm"):
        type(found).prepare(load_config(raw), like=found)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("solver.params.C=-1", "C"),
        (
            "evaluation={classifier: knn, n_features: [65]}",
            "evaluation.n_features: 65 exceeds the 64 features",
        ),
        ("search.early_stopping=asha", "search.early_stopping"),
        ("solver.name=lineer_svm", "linear_svm"),
        ("search.cpus_per_trial=4096", "search.cpus_per_trial: 4096 exceeds"),
    ],
)
def test_a_bad_member_is_named_before_anything_is_computed(here, override, said):
    with pytest.raises(ConfigError) as caught:
        run_comparison("few.yaml", [f"compare.SVM.{override}"], output="compared", progress=False)
    assert str(caught.value).startswith("compare.SVM: ")
    assert said in str(caught.value)
    assert {path.name for path in here.iterdir()} == {"few.npz", "few.yaml"}


def test_code_that_only_the_directory_names_is_not_imported(here):
    directory, lock = StudyDirectory.create(here / "compared", 0)
    with lock:
        prepare_comparison("few.yaml").record(id_="a", uri="b", started=1.0).write(directory, lock)
    directory.config.write_text(
        dump_config(load_comparison(raw_comparison(), {"compare.SVM.solver.name": "mine.Own"}))
    )
    with pytest.raises(ConfigError, match=r"mine\.Own imports code"):
        prepare_comparison(None, resumed=directory)


def test_the_default_scaling_is_stored(here):
    raw = raw_comparison("table.npz")
    del raw["compare"]["z"]
    rng = np.random.default_rng(0)
    np.savez("table.npz", X=rng.normal(size=(40, 10)), y=np.arange(40) % 2)
    for keys in raw["compare"].values():
        keys["solver"] = {"name": "linear_svm"}
    comparison = prepare_comparison(raw)
    directory, lock = StudyDirectory.create(here / "compared", 0)
    with lock:
        comparison.record(id_="a", uri="b", started=1.0).write(directory, lock)
    directory.plan.write_text(json.dumps(comparison.first.plan.to_json()))
    directory.config.write_text(dump_config(comparison.config))
    again = prepare_comparison(None, resumed=directory)
    assert {study.config.dataset.scaling for study in again.studies.values()} == {"zscore"}


@pytest.mark.usefixtures("here")
def test_what_is_prepared_is_run_by_the_function_of_its_kind():
    comparison = prepare_comparison("few.yaml")
    with pytest.raises(ConfigError):
        run_study(comparison, progress=False)
    with pytest.raises(ConfigError):
        run_comparison(comparison.first, progress=False)
