"""Records come back from the journal as they were written, from older schemas too."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raysel.core.errors import DirectoryError
from raysel.evaluation.records import FoldTrace, InnerTrace, PathRecord, RefitRecord, TrialRecord
from raysel.tracking.journal import Journal, Upgrader, read_journal, read_records
from raysel.tracking.records import (
    KINDS,
    SCHEMA,
    EndRecord,
    NodeRecord,
    NoiseRecord,
    SearchRecord,
    StudyRecord,
    journal_line,
    record_from_line,
)

FIT = InnerTrace([2.0, 1.0], [[0.5]], "solved", True, 1e-7)
STUDY = StudyRecord(
    id="a",
    name="few",
    experiment="few",
    uri="sqlite:///mlflow.db",
    started=1.0,
    config={"seed": 3, "solver": {"params": {}}},
    config_hash="c",
    data_hash="d",
    versions={"raysel": "0.2.0", "numbers": "0f"},
    metric="accuracy",
    labels=["n4", "n8"],
    folds=["outer0", "final"],
    n_samples=80,
    n_trials=6,
    layout={"kind": "tensor", "shape": [2]},
    feature_names=["x", "y"],
    constant=[1],
)
RECORDS = [
    STUDY,
    TrialRecord("t", "alpha=1", {"alpha": 1}, "finished", {"outer0": FoldTrace(inner=[FIT])}, started=1.0, ended=2.0),
    PathRecord("outer0", 1, fits={"t": FIT}),
    SearchRecord(5, 6, True),
    RefitRecord("outer0", "t", "alpha=1", {"alpha": 1}, 0.5, [0.25, 0.75], [1.0, 0.0], [2.0, 1.0]),
    NoiseRecord(20, "samples", [0.25, None], [0.0, None], [0.5, None]),
    EndRecord("finished", 1.0, 2.0, {"test_mean": 0.5, "stability": None}, "| a |"),
    EndRecord("interrupted", 1.0, 2.0),
    NodeRecord("10.0.0.2", [["numpy", "2.4.6", "2.3.1"]]),
]


def test_there_is_a_record_of_every_kind():
    assert {type(record) for record in RECORDS} == set(KINDS.values())


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_records_come_back(record, tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append(record)
    (found,) = read_records(path)
    assert found == record
    (line,) = read_journal(path)
    assert line.get("schema") == (SCHEMA if isinstance(record, StudyRecord) else None)
    assert set(line) == {"kind", *(f.name for f in fields(record)), *(["schema"] if line["kind"] == "study" else [])}


@pytest.mark.parametrize("versions", [[["numpy", "2.4.6"]], ["abc"], [[1, 2, 3]], [None]])
def test_a_node_s_versions_are_three_texts_each(versions):
    with pytest.raises(DirectoryError, match=r"three texts|of type"):
        record_from_line({"kind": "node", "node": "10.0.0.2", "versions": versions})


WHOLE = st.integers(-(2**63) + 1, 2**63 - 1)


@given(st.builds(SearchRecord, WHOLE, WHOLE, st.booleans()))
def test_a_line_is_read_back(record):
    assert record_from_line(json.loads(json.dumps(journal_line(record)))) == record


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_what_is_missing_or_of_a_wrong_form_is_named(record):
    whole = journal_line(record)
    for key in whole:
        less = {name: value for name, value in whole.items() if name != key}
        try:
            record_from_line(less)
        except DirectoryError as error:
            assert f"has no '{key}'" in str(error)  # noqa: PT017 - a field with a default may be missing
    with pytest.raises(DirectoryError, match="has no 'kind'"):
        record_from_line({})
    with pytest.raises(DirectoryError, match=r"kind 'trial' is damaged"):
        record_from_line({**journal_line(RECORDS[1]), "folds": 7})


def test_unknown_kinds_are_passed_over_and_a_newer_schema_is_refused(tmp_path):
    path = tmp_path / "journal.jsonl"
    text = [json.dumps(line) for line in ({"kind": "weather", "rain": True}, journal_line(RECORDS[3]))]
    path.write_text("\n".join(text) + "\n")
    assert list(read_records(path)) == [RECORDS[3]]
    path.write_text(json.dumps({**journal_line(STUDY), "schema": SCHEMA + 1}) + "\n")
    with pytest.raises(DirectoryError, match=rf"line 1: written by a newer version of raysel \(schema {SCHEMA + 1}\)"):
        list(read_records(path))


def schema_1(**changes):
    line = {key: value for key, value in journal_line(STUDY).items() if key not in ("schema", "labels")}
    config = {"evaluation": {"classifier": "knn", "n_features": [4, 8]}}
    return {**line, "config": config, "versions": {"raysel": "0.1.0+12345678"}, "params": {}, **changes}


def test_a_study_of_schema_1_gets_what_it_lacks():
    study = record_from_line(Upgrader().upgrade(schema_1()))
    assert study.labels == ["n4", "n8"]
    assert study.versions == {"raysel": "0.1.0", "numbers": "0.1.0+12345678"}
    tasks = schema_1(
        config={"evaluation": {"classifier": "native", "n_features": []}},
        layout={"kind": "tasks", "tasks": [["iris", 4], ["wine", 13]]},
    )
    upgrader = Upgrader()
    assert record_from_line(upgrader.upgrade(tasks)).labels == ["iris", "wine"]
    metrics = {"test_accuracy": 0.5, "test_accuracy_std": 0.1, "test_accuracy_iris": 0.4, "test_accuracy_wine": 0.6}
    end = {"kind": "end", "status": "finished", "started": 1.0, "ended": 2.0, "metrics": metrics, "note": "| a |"}
    record = record_from_line(upgrader.upgrade(end))
    assert record.result == {"test_mean": 0.5, "test_std": 0.1, "test_by_task": {"iris": 0.4, "wine": 0.6}}
    assert record.summary == "| a |"


def test_a_journal_may_change_its_schema_when_it_is_resumed(tmp_path):
    path = tmp_path / "journal.jsonl"
    end = {"kind": "end", "status": "interrupted", "started": 1.0, "ended": 2.0, "metrics": {}, "note": "stopped"}
    path.write_text("".join(json.dumps(line) + "\n" for line in (schema_1(), end)))
    with Journal(path) as journal:
        journal.append(STUDY)
        journal.append(RECORDS[5])
    assert list(read_records(path))[1:] == [EndRecord("interrupted", 1.0, 2.0), STUDY, RECORDS[5]]


def test_a_damaged_line_of_schema_1_is_named():
    with pytest.raises(DirectoryError, match="kind 'study' has no 'versions'"):
        Upgrader().upgrade({key: value for key, value in schema_1().items() if key != "versions"})
    with pytest.raises(DirectoryError, match="kind 'study' is damaged"):
        Upgrader().upgrade(schema_1(versions={"raysel": 7}))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_field_of_a_wrong_type_is_named_with_its_line(record, tmp_path):
    path, whole = tmp_path / "journal.jsonl", journal_line(record)
    for key in [key for key in whole if key not in ("kind", "schema")]:
        for wrong in ({}, [], "x", 7, True):
            if type(wrong) is type(whole[key]) or (whole[key].__class__ is float and wrong.__class__ is int):
                continue
            if key in ("converged", "gap", "cpu_seconds", "modality_scores", "n_features", "position", "other_start"):
                continue  # None here, so their types are not those of the value
            path.write_text(json.dumps({**whole, key: wrong}) + "\n")
            with pytest.raises(DirectoryError, match=rf"journal\.jsonl, line 1: .* is damaged: '{key}' is of type"):
                list(read_records(path))


def test_a_value_of_a_wrong_type_in_a_fit_is_named():
    line = json.loads(json.dumps(journal_line(RECORDS[1])))
    line["folds"]["outer0"]["inner"][0]["objective"] = "x"
    with pytest.raises(DirectoryError, match=r"'folds\[outer0\]\.inner\[0\]\.objective' is of type str, not list"):
        record_from_line(line)
    line["folds"]["outer0"]["inner"] = [7]
    with pytest.raises(DirectoryError, match=r"'folds\[outer0\]\.inner\[0\]' is of type int, not dict"):
        record_from_line(line)


def test_unknown_keys_of_a_fit_are_ignored():
    for number in (1, 2):
        line = json.loads(json.dumps(journal_line(RECORDS[number])))
        fit = line["folds"]["outer0"]["inner"][0] if number == 1 else line["fits"]["t"]
        fit["weather"] = "rain"
        assert record_from_line(line) == RECORDS[number]
