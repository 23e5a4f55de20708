"""Directories of studies that are damaged anywhere: each command ends in a sentence."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing

import pytest
import yaml
from attack_studies import change_journal, copied
from damaged_studies import damaged_copy, doors, said
from hypothesis import given, settings
from hypothesis import strategies as st
from small_studies import raw_config, streams_of, write_digits

from raysel import open_study, tune
from raysel.cli.main import main as run_command
from raysel.core.errors import DirectoryError
from raysel.tracking.directory import StudyDirectory

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
    for command, option in (("permute", "--permutations"), ("stability", "--subsamples")):
        assert run_command([command, str(study), option, FEW[option], "--executor", "serial"]) == 0
    return study


@given(seed=st.integers(0, 2**32 - 1), door=st.integers(0, 3))
@settings(max_examples=8, derandomize=True)
def test_a_command_on_a_damaged_study_ends_in_a_sentence(finished, seed, door):
    """The doors that compute nothing; those that do are in `doors` too."""
    copy = finished.with_name("copy")
    how = damaged_copy(finished, copy, random.Random(seed))
    words = doors(copy)[door]
    assert not said(words), (how, words)


@pytest.fixture(scope="module")
def store(finished, tmp_path_factory):
    """A store of MLflow that holds the study whole: what names it for a command, and its file."""
    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    uri = f"tracking.uri=sqlite:///{path}"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)
        assert tune.main(["--replay", str(finished), "--set", uri]) == 0
    return uri, path


def in_store(path, *, of_fuzz):
    """Rows of runs of the study, or of damaged ones, in a store that is whole."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        experiments = "FROM experiments WHERE name IN ('fuzz', 'both')"
        chosen = f"experiment_id {'' if of_fuzz else 'NOT '}IN (SELECT experiment_id {experiments})"
        runs = f"SELECT run_uuid, name, status, end_time FROM runs WHERE {chosen}"
        of_runs = "WHERE run_uuid IN (SELECT run_uuid FROM (" + runs + "))"
        tables = (runs, f"SELECT * FROM metrics {of_runs}", f"SELECT * FROM tags {of_runs}")
        return [sorted(map(repr, connection.execute(table))) for table in tables]


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=2, derandomize=True)
def test_a_replay_of_a_damaged_study_ends_in_a_sentence_and_harms_no_other(finished, store, seed):
    (uri, path), copy = store, finished.with_name("replayed")
    before = in_store(path, of_fuzz=False)
    how = damaged_copy(finished, copy, random.Random(seed))
    words = ("tune", "--replay", str(copy), "--set", uri, "--set", "tracking.experiment=fuzz")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)
        assert not said(words), (how, words)
    assert in_store(path, of_fuzz=False) == before


def test_a_folder_in_place_of_a_file_is_named_before_anything_is_uploaded(
    finished, store, tmp_path
):
    uri, path = store
    before = path.read_bytes()
    study = copied(finished, tmp_path / "study")
    (study / "plan.json").unlink()
    (study / "plan.json").mkdir()
    status, _, told = streams_of("tune", "--replay", str(study), "--set", uri)
    assert status == 2
    assert "plan.json is a folder in place of a file" in told
    assert path.read_bytes() == before


def test_a_damaged_member_is_named_and_no_run_of_it_stays_open(
    finished, store, tmp_path, monkeypatch
):
    uri, path = store
    monkeypatch.chdir(path.parent)
    listed, keys = [], yaml.safe_load((finished / "config.yaml").read_text())
    solver = keys.pop("solver")
    for name in "ab":
        member = copied(finished, tmp_path / "both" / name)
        change_journal(member, "study", lambda line, id_=name * 32: line.update(id=id_))
        listed.append({"label": name, "folder": name, "solver": "smr", "reconstructed": False})
    keys |= {"name": "both", "compare": {name: {"solver": solver} for name in "ab"}}
    (tmp_path / "both" / "config.yaml").write_text(json.dumps(keys))
    own = {"schema": 1, "id": "0", "name": "both", "reference": "a", "experiment": "both"}
    raw = {**own, "uri": "", "started": 0.0, "members": listed}
    (tmp_path / "both" / "members.json").write_text(json.dumps(raw))
    journal = tmp_path / "both" / "b" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"kind": "refit"', b'"kind",', 1))
    names = ("--set", "tracking.experiment=both")
    words = ("tune", "--replay", str(tmp_path / "both"), "--set", uri, *names)
    status, _, told = streams_of(*words)
    assert status == 1, told
    assert "not complete: b: " in told
    assert "b/journal.jsonl, line " in told
    runs = "".join(in_store(path, of_fuzz=True)[0])
    assert "comparison both" in runs
    assert "RUNNING" not in runs


@pytest.mark.parametrize(
    "words",
    [("--resume", "study"), ("few.yaml", "--resume", "study"), ("few.yaml", "--output", "study")],
)
def test_a_second_driver_is_refused_in_a_sentence_and_changes_nothing(
    words, finished, tmp_path, monkeypatch
):
    monkeypatch.chdir(finished.parent)
    study = copied(finished, tmp_path / "study")
    words = [str(study) if word == "study" else word for word in words]
    files = [path for path in study.rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in files if path.name != ".lease"}
    with closing(StudyDirectory(study).open(0)):  # as the first driver holds it
        status, _, told = streams_of("tune", *words)
    assert status == 2
    assert told.startswith(f"error: a study is running in {study}: ")
    assert {path: path.read_bytes() for path in before} == before


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
