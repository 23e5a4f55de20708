"""Configurations of comparisons: what a member lays over the common keys, and what is refused by
name.
"""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.config import (
    builtin_configs,
    dump_config,
    is_comparison,
    load_comparison,
    load_config,
    member_folders,
)
from raysel.core.errors import ConfigError

SMR = {"name": "smr", "space": {"alpha": {"logspace": [0.01, 1, 3]}}}


def raw(**changes: Any) -> dict[str, Any]:
    """A small comparison as plain data."""
    return {
        "name": "few",
        "seed": 3,
        "dataset": {"source": "digits"},
        "evaluation": {"classifier": "knn", "n_features": [4, 8], "n_neighbors": 3},
        "cv": {"outer": 3},
        "compare": {
            "SMR": {"solver": SMR},
            "SVM, v1.0": {"solver": {"name": "linear_svm"}, "evaluation": {"classifier": "native"}},
            "z-scored": {
                "solver": SMR,
                "dataset.scaling": "zscore",
                "search": {"max_concurrent": 1},
            },
        },
    } | changes


def refusal(source: dict[str, Any], *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_comparison(source, overrides)
    return str(caught.value)


def test_a_member_is_the_common_study_with_its_keys_laid_over_it():
    source = raw()
    common = {key: value for key, value in source.items() if key != "compare"}
    members = load_comparison(source).members
    assert list(members) == list(source["compare"])
    for label, overrides in {
        "SMR": {"solver": SMR},
        "SVM, v1.0": {"solver.name": "linear_svm", "evaluation.classifier": "native"},
        "z-scored": {"solver": SMR, "dataset.scaling": "zscore", "search.max_concurrent": 1},
    }.items():
        assert members[label] == load_config(common, overrides)
        assert members[label].hash == load_config(common, overrides).hash
    assert source == raw()  # what was given is not changed


def test_null_unsets_a_common_key_for_one_member():
    source = raw(search={"max_concurrent": 2})
    source["compare"]["SMR"]["search"] = {"max_concurrent": None}
    found = load_comparison(source)
    assert [config.search.max_concurrent for config in found.members.values()] == [None, 2, 1]
    again = load_comparison(found)  # and does so when it is read back
    assert again.members == found.members


def test_a_members_study_is_named_after_its_folder_and_logged_to_one_experiment():
    config = load_comparison(raw(output="there"))
    study = config.study("SVM, v1.0", "svm-v1-0")
    assert (study.name, study.tracking.experiment, study.output) == ("few-svm-v1-0", "few", None)
    assert study.hash == config.members["SVM, v1.0"].hash
    assert config.output == "there"
    named = load_comparison(raw(tracking={"experiment": "faces"}))
    assert named.study("SMR", "smr").tracking.experiment == "faces"
    assert len(load_comparison(raw(name="x" * 100)).study("SMR", "smr").name) == 100


def test_overrides_change_the_common_part_or_one_member():
    config = load_comparison(
        raw(), ["cv.outer=4", "compare.SVM, v1.0.solver.params.C=2.5", "reference=z-scored"]
    )
    assert {member.cv.outer for member in config.members.values()} == {4}
    assert config.members["SVM, v1.0"].solver.params == {"C": 2.5}
    assert config.reference == "z-scored"
    assert list(load_comparison(raw(), {"compare.SMR": None}).members) == ["SVM, v1.0", "z-scored"]
    assert load_comparison(raw(), {"compare.SMR": None}).reference == "SVM, v1.0"
    assert load_comparison(raw()).reference == "SMR"


def test_a_dumped_comparison_is_read_back(tmp_path):
    config = load_comparison(raw(), {"compare.1e5": {"solver": {"name": "smr"}}})
    path = tmp_path / "config.yaml"
    path.write_text(dump_config(config))
    assert is_comparison(path)
    assert load_comparison(path) == config
    assert list(load_comparison(path).members) == [*raw()["compare"], "1e5"]


def test_what_would_change_samples_labels_folds_or_seed_is_refused_by_name():
    keys = (
        "cv.outer=4",
        "seed=1",
        "output=x",
        "dataset.path=x.npz",
        "dataset.exclude_labels=[a]",
        "tracking.uri=x",
    )
    for override in keys:
        message = refusal(raw(), f"compare.SMR.{override}")
        assert (
            f"compare.SMR.{override.partition('=')[0]}: a member cannot change this key" in message
        )
        assert "set it beside `compare`" in message


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("solver.name=smr", "solver: each member of `compare` has its own; remove `solver`"),
        ("reference=SMRR", "reference: no member is labelled 'SMRR'; did you mean `SMR`?"),
        ("reference=nobody at all", "give one of SMR, SVM, v1.0, z-scored"),
        (
            "compare.SMR.evaluation.metric=macro_f1",
            "compare.SMR.evaluation.metric: a member cannot change this key",
        ),
        ("compare.SMR.solvr.name=smr", "compare.SMR.solvr: unknown key; did you mean `solver`?"),
        ("compare.SMR.solver.nam=smr", "compare.SMR.solver.nam: unknown key; did you mean `name`?"),
        (
            "compare.SMR.dataset.scalng=none",
            "compare.SMR.dataset.scalng: unknown key; did you mean `scaling`?",
        ),
        ("compare.SMR.solver=null", "compare.SMR.solver: this key is required"),
        ("compare.SMR.search.num_samples=many", "compare.SMR.search.num_samples: "),
        ("compare.SMR=3", "compare.SMR: input should be a mapping of keys to values, not 3"),
        (
            "compare={a: {solver: {name: smr}}}",
            "compare: there is only one member; give two or more, or for one",
        ),
        ("compare={}", "compare: there is no member; give two or more"),
        (
            "compare.SMR.pictures=[pdf]",
            "compare.SMR.pictures: a member cannot change this key, which is for the whole",
        ),
        ("compare.SMR.evaluation=null", "compare.SMR.evaluation: null would unset `metric` too"),
        (
            "compare.SMR.name=smr",
            "because its label names it; the name of its solver belongs below `solver`",
        ),
        (
            "compare.SMR.output=here",
            "compare.SMR.output: a member cannot change this key, which is for the whole",
        ),
        ("referense=SMR", "referense: unknown key; did you mean `reference`?"),
    ],
)
def test_an_error_names_the_member_the_key_and_a_remedy(override, message):
    assert message in refusal(raw(), override)


def test_a_label_without_keys_is_not_left_out_silently():
    source = raw()
    source["compare"]["forgotten"] = None
    assert "compare.forgotten: there are no keys below this label; indent" in refusal(source)
    assert "forgotten" in load_comparison(source, {"compare.forgotten.solver.name": "smr"}).members
    source["compare"]["forgotten"] = {"solver": SMR}  # an override leaves a member out
    assert "forgotten" not in load_comparison(source, {"compare.forgotten": None}).members


def test_a_label_is_text_short_and_printable():
    for label in ("", " SMR", "two\nlines", "x" * 61):
        assert f"the label {label!r}" in refusal(
            {**raw(), "compare": {**raw()["compare"], label: {"solver": SMR}}}
        )
    numbered = {**raw(), "compare": dict(enumerate(raw()["compare"].values()))}
    assert "compare: the label 0 is not text; write it in quotation marks" in refusal(numbered)


def test_an_error_of_the_common_part_is_named_once():
    lines = refusal(raw(), "cv.outer=1", "compare.SMR.solver.params.alpha={}").splitlines()
    assert [line for line in lines if "cv.outer" in line] == [
        "  cv.outer: input should be a whole number from 2 on or n_samples, not 1"
    ]
    assert sum("compare.SMR.solver" in line for line in lines) == 1


def test_a_study_and_a_comparison_are_not_taken_for_each_other():
    assert is_comparison(raw())
    assert not is_comparison("digits-smr")
    with pytest.raises(ConfigError, match="use run_comparison"):
        load_config(raw())
    with pytest.raises(ConfigError, match="use run_study"):
        load_comparison("digits-smr")


@given(
    st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=8, unique=True),
    st.lists(st.sampled_from(["SMR", "smr", "comparison", "Comparison"]), unique=True),
)
@settings(max_examples=25)
def test_folders_are_plain_unique_and_stay_when_members_are_added(labels, more):
    found = member_folders(labels)
    assert list(found) == labels
    assert len(set(found.values())) == len(labels)
    assert set("".join(found.values())) <= set(string.ascii_lowercase + string.digits + "-")
    assert not set(found.values()) & {"", "comparison"}
    added = [label for label in more if label not in labels]
    grown = member_folders([*added, *labels], found)
    assert {label: grown[label] for label in labels} == found
    assert len(set(grown.values())) == len(grown)


def test_the_builtin_comparisons_validate_and_survive_a_dump(tmp_path):
    for name in (name for name, path in builtin_configs().items() if is_comparison(path)):
        config = load_comparison(name)
        (tmp_path / "dumped.yaml").write_text(dump_config(config), encoding="utf-8")
        assert load_comparison(tmp_path / "dumped.yaml") == config
        assert config.name == name


def test_an_override_of_the_path_replaces_the_source_of_a_comparison():
    config = load_comparison("digits-compare", ["dataset.path=x.npz"])
    assert {study.dataset.path for study in config.members.values()} == {"x.npz"}
    assert {study.dataset.source for study in config.members.values()} == {None}
    with pytest.raises(ConfigError):
        load_comparison("digits-compare", ["dataset.path=x.npz", "dataset.source=wine"])
