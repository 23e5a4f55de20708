"""Directories of studies that are damaged anywhere: each command ends in a sentence."""

from __future__ import annotations

import json
import random

import pytest
import yaml
from attack_studies import copied
from damaged_studies import damaged_copy, doors, said
from hypothesis import given, settings
from hypothesis import strategies as st
from small_studies import raw_config, write_digits

from raysel import open_study, permute, stability, tune
from raysel.core.errors import DirectoryError

FEW = {"--permutations": "3", "--subsamples": "4"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study with a stability selection and a permutation test, run by commands without MLflow."""
    folder = tmp_path_factory.mktemp("finished")
    write_digits(folder / "few.npz")
    space = {"alpha": [0.1], "rank": [1]}
    solver = {"name": "smr", "params": {"max_iter": 3}, "space": space}
    config = folder / "few.yaml"
    raw = raw_config(folder / "few.npz", tracking={"mlflow": False}, solver=solver)
    config.write_text(yaml.safe_dump(raw), encoding="utf-8")
    study = folder / "study"
    assert tune.main([str(config), "--output", str(study), "--quiet"]) == 0
    for command, option in ((permute, "--permutations"), (stability, "--subsamples")):
        assert command.main([str(study), option, FEW[option], "--executor", "serial"]) == 0
    return study


@given(seed=st.integers(0, 2**32 - 1), door=st.integers(0, 3))
@settings(max_examples=12, derandomize=True)
def test_a_command_on_a_damaged_study_ends_in_a_sentence(finished, seed, door):
    """The doors that compute nothing; those that do are in `doors` too."""
    copy = finished.with_name("copy")
    how = damaged_copy(finished, copy, random.Random(seed))
    words = doors(copy)[door]
    assert not said(words), (how, words)


@pytest.mark.parametrize(
    ("folder", "of", "key", "value"),
    [
        *(("permutation", "permutation_test", "recomputed", value) for value in ("x", [1], {})),
        *(("permutation", "permutation_test", "smallest", value) for value in ("x", 0, 2, -1)),
        ("permutation", "permutation_test", "log10_arrangements", -1e300),
        ("permutation", "permutation_test", "permuted", ["x"]),
        ("permutation", "permutation_test", "errors", {"0": 7}),
        *(("stability", "stability_selection", "threshold", value) for value in ("x", None, [])),
        ("stability", "stability_selection", "top", "x"),
        ("stability", "stability_selection", "halves", []),
    ],
)
def test_a_value_of_another_type_in_a_result_is_refused(finished, tmp_path, folder, of, key, value):
    study = copied(finished, tmp_path / "study")
    path = next(
        path for path in (study / folder).glob("*.json") if key in json.loads(path.read_text())
    )
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(DirectoryError, match="cannot be read as"):
        getattr(open_study(study), of)
