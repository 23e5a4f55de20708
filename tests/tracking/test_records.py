"""Records come back from the journal as they were written, from older schemas too."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import fields
from pathlib import Path

import pytest

from raysel.core.errors import DirectoryError
from raysel.evaluation.records import FoldTrace, InnerTrace, PathRecord, RefitRecord, TrialRecord
from raysel.tracking.journal import Journal, RecordReader, read_journal, read_records
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
    NodeRecord("10.0.0.2", [("numpy", "2.4.6", "2.3.1")]),
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


def damaged(line, tmp_path) -> str:
    """What is said of a journal of this line."""
    path = tmp_path / "journal.jsonl"
    path.write_text(json.dumps(line) + "\n")
    with pytest.raises(DirectoryError) as error:
        list(read_records(path))
    return str(error.value).removeprefix(f"{path}, line 1: ")


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_missing_fields_and_fields_of_a_wrong_type_are_named(record, tmp_path):
    whole = journal_line(record)
    required = [
        f.name for f in fields(record) if f.default is dataclasses.MISSING is f.default_factory and f.name in whole
    ]
    for key in required:
        less = {name: value for name, value in whole.items() if name != key}
        assert damaged(less, tmp_path) == f"a record of kind '{whole['kind']}' is damaged: '{key}': Field required."
        wrong = [7] if isinstance(whole[key], str | int | float | dict) else "x"
        assert f"'{key}" in damaged({**whole, key: wrong}, tmp_path)


def test_a_wrong_type_deep_in_a_record_is_named(tmp_path):
    line = json.loads(json.dumps(journal_line(RECORDS[1])))
    inner = line["folds"]["outer0"]["inner"]
    inner[0]["objective"] = "x"
    assert "'folds.outer0.inner.0.objective': Input should be a valid list" in damaged(line, tmp_path)
    inner[0]["objective"] = [1e308, 10**400]
    assert "'folds.outer0.inner.0.objective.1'" in damaged(line, tmp_path)
    inner[0] = 7
    assert "'folds.outer0.inner.0'" in damaged(line, tmp_path)
    node = journal_line(RECORDS[-1])
    for versions in ([["numpy", "2.4.6"]], ["abc"], [[1, 2, 3]], [None]):
        assert "'versions.0" in damaged({**node, "versions": versions}, tmp_path)
    assert "'kind': Field required" in damaged({}, tmp_path)


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
    study = RecordReader(Path("journal.jsonl")).read(schema_1(), 1)
    assert study.labels == ["n4", "n8"]
    assert study.versions == {"raysel": "0.1.0", "numbers": "0.1.0+12345678"}
    tasks = schema_1(
        config={"evaluation": {"classifier": "native", "n_features": []}},
        layout={"kind": "tasks", "tasks": [["iris", 4], ["wine", 13]]},
    )
    reader = RecordReader(Path("journal.jsonl"))
    assert reader.read(tasks, 1).labels == ["iris", "wine"]
    metrics = {"test_accuracy": 0.5, "test_accuracy_std": 0.1, "test_accuracy_iris": 0.4, "test_accuracy_wine": 0.6}
    end = {"kind": "end", "status": "finished", "started": 1.0, "ended": 2.0, "metrics": metrics, "note": "| a |"}
    record = reader.read(end, 2)
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


def test_a_damaged_line_of_schema_1_is_named(tmp_path):
    line = schema_1()
    del line["versions"]
    assert "there is no 'versions'" in damaged({**line, "schema": 1}, tmp_path)
    assert "kind 'study' is damaged" in damaged(schema_1(versions={"raysel": 7}), tmp_path)


def test_unknown_keys_of_a_fit_are_ignored():
    for number in (1, 2):
        line = json.loads(json.dumps(journal_line(RECORDS[number])))
        fit = line["folds"]["outer0"]["inner"][0] if number == 1 else line["fits"]["t"]
        fit["weather"] = "rain"
        assert record_from_line(line) == RECORDS[number]
