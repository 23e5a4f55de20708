"""The journal keeps whole records, whatever the disk does, and reads those of older schemas."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import textwrap
import tracemalloc
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.core.errors import DirectoryError, StudyError
from raysel.evaluation.records import FoldTrace, InnerTrace, PathRecord, RefitRecord, TrialRecord
from raysel.tracking.journal import Journal, last_study, read_journal, read_records
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

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
records = st.builds(
    TrialRecord,
    id=st.text(),
    name=st.text(),
    status=st.text(),
    params=st.dictionaries(st.text(), values, max_size=4),
)


def numbered(number: int, **params: object) -> SearchRecord | TrialRecord:
    """A record that is told from others by its number."""
    return (
        TrialRecord(str(number), "", dict(params), "finished")
        if params
        else SearchRecord(number, number, False)
    )


@given(written=st.lists(records, max_size=4), cut=st.integers(0, 10_000))
@settings(max_examples=60)
def test_records_come_back_exactly_and_a_cut_drops_only_what_it_hit(tmp_path_factory, written, cut):
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    sizes = [0]
    for record in written:
        with Journal(path) as journal:  # opened again it goes on
            journal.append(record)
            sizes.append(path.stat().st_size)  # on disk when append returns
    Journal(path).close()
    assert list(read_records(path)) == written
    whole = path.read_bytes()
    assert whole.count(b"\n") == len(written)
    cut = min(cut, len(whole))
    path.write_bytes(whole[:cut])
    assert list(read_records(path)) == written[: sum(size <= cut for size in sizes[1:])]


@pytest.mark.parametrize("damage", [b'{"a": 1', b"\0\0\0", b"", b"\xff\xfe", b"7", b'["kind"]'])
def test_a_damaged_line_is_named(tmp_path, damage):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"kind":"study"}\n' + damage + b'\n{"kind":"end"}\n')
    found = []
    with pytest.raises(StudyError, match=r"journal\.jsonl, line 2: damaged"):
        found.extend(read_journal(path))
    assert found == [{"kind": "study"}]


def test_without_a_journal_the_directory_is_named(tmp_path):
    with pytest.raises(
        StudyError, match=f"{tmp_path.name} holds no readable journal: No such file"
    ):
        list(read_journal(tmp_path / "journal.jsonl"))
    with pytest.raises(StudyError, match="cannot be written: No such file"):
        Journal(tmp_path / "nowhere" / "journal.jsonl")


def test_not_a_number_is_never_written(tmp_path):
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append(numbered(1))
        with pytest.raises(ValueError, match="JSON compliant"):
            journal.append(numbered(2, a=float("nan")))
    assert list(read_records(tmp_path / "journal.jsonl")) == [numbered(1)]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_reported(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.symlink_to("/dev/full")
    with (
        Journal(path) as journal,
        pytest.raises(StudyError, match=r"No space left on device.*are kept"),
    ):
        journal.append(numbered(1))


@pytest.mark.slow
def test_what_found_no_room_never_turns_up_later(tmp_path):
    """A limit on the file's size lets part of a record through, as a disk that fills up does."""
    path = tmp_path / "journal.jsonl"
    script = f"""
        import resource
        from pathlib import Path
        from raysel.core.errors import StudyError
        from raysel.evaluation.records import TrialRecord
        from raysel.tracking.journal import Journal

        journal = Journal(Path({str(path)!r}))
        journal.append(TrialRecord("0", "x" * 300, {{}}, "finished"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        for number in (1, 2):
            try:
                journal.append(TrialRecord(str(number), "x" * 2000, {{}}, "finished"))
            except StudyError as error:
                print("refused", error)
        journal.append(TrialRecord("3", "x" * 300, {{}}, "finished"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        journal.append(TrialRecord("4", "x" * 3000, {{}}, "finished"))
        journal.close()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.count("refused the journal") == 2
    assert [record.id for record in read_records(path)] == ["0", "3", "4"]
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_a_large_journal_is_read_line_by_line(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_text('{"kind":"weather","rain":"' + "x" * 100_000 + '"}\n{"kind":"end"}\n')
    path.write_bytes(path.read_bytes() * 40)
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_journal(path)) == 80
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size / 2


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
    TrialRecord(
        "t",
        "alpha=1",
        {"alpha": 1},
        "finished",
        {"outer0": FoldTrace(inner=[FIT])},
        started=1.0,
        ended=2.0,
    ),
    PathRecord("outer0", 1, fits={"t": FIT}),
    SearchRecord(5, 6, True),
    RefitRecord("outer0", "t", "alpha=1", {"alpha": 1}, 0.5, [0.25, 0.75], [1.0, 0.0], [2.0, 1.0]),
    NoiseRecord(20, "samples", [0.25, None], [0.0, None], [0.5, None]),
    EndRecord("finished", 1.0, 2.0, {"test_mean": 0.5, "stability": None}, "| a |"),
    EndRecord("interrupted", 1.0, 2.0),
    NodeRecord("10.0.0.2", [("numpy", "2.4.6", "2.3.1")]),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_records_come_back(record, tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append(record)
    assert list(read_records(path)) == [record]
    assert {type(record) for record in RECORDS} == set(KINDS.values())
    (line,) = read_journal(path)
    assert line.get("schema") == (SCHEMA if isinstance(record, StudyRecord) else None)
    assert set(line) == {
        "kind",
        *(f.name for f in fields(record)),
        *(["schema"] if line["kind"] == "study" else []),
    }


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
        f.name
        for f in fields(record)
        if f.default is dataclasses.MISSING is f.default_factory and f.name in whole
    ]
    for key in required:
        less = {name: value for name, value in whole.items() if name != key}
        assert (
            damaged(less, tmp_path)
            == f"a record of kind '{whole['kind']}' is damaged: '{key}': Field required."
        )
        wrong = [7] if isinstance(whole[key], str | int | float | dict) else "x"
        assert f"'{key}" in damaged({**whole, key: wrong}, tmp_path)


def test_a_wrong_type_deep_in_a_record_is_named(tmp_path):
    line = json.loads(json.dumps(journal_line(RECORDS[1])))
    inner = line["folds"]["outer0"]["inner"]
    inner[0]["objective"] = "x"
    assert "'folds.outer0.inner.0.objective': Input should be a valid list" in damaged(
        line, tmp_path
    )
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
    text = [
        json.dumps(line) for line in ({"kind": "weather", "rain": True}, journal_line(RECORDS[3]))
    ]
    path.write_text("\n".join(text) + "\n")
    assert list(read_records(path)) == [RECORDS[3]]
    path.write_text(json.dumps({**journal_line(STUDY), "schema": SCHEMA + 1}) + "\n")
    with pytest.raises(
        DirectoryError,
        match=rf"line 1: written by a newer version of raysel \(schema {SCHEMA + 1}\)",
    ):
        list(read_records(path))


def test_a_journal_of_an_earlier_version_is_refused_and_its_version_named(tmp_path):
    line = journal_line(STUDY) | {"versions": {"raysel": "0.1.0+12345678"}}
    del line["schema"]
    assert "written by raysel 0.1.0, whose records this version does not read" in damaged(
        line, tmp_path
    )
    del line["versions"]
    assert "there is no 'versions'" in damaged(line, tmp_path)


def test_a_journal_may_change_its_schema_when_it_is_resumed(tmp_path):
    path = tmp_path / "journal.jsonl"
    evaluation = {"classifier": "knn", **STUDY.config.get("evaluation", {})}
    evaluation.pop("estimator", None)
    former = journal_line(STUDY) | {"schema": 2, "config": {"evaluation": evaluation}}
    path.write_text(json.dumps(former) + "\n")
    with Journal(path) as journal:
        journal.append(STUDY)
        journal.append(RECORDS[5])
    first, *rest = read_records(path)
    assert first.config["evaluation"]["estimator"] == "knn"
    assert rest == [STUDY, RECORDS[5]]


def test_unknown_keys_of_a_fit_are_ignored():
    for number in (1, 2):
        line = json.loads(json.dumps(journal_line(RECORDS[number])))
        fit = line["folds"]["outer0"]["inner"][0] if number == 1 else line["fits"]["t"]
        fit["weather"] = "rain"
        assert record_from_line(line) == RECORDS[number]


def test_the_last_study_is_found_without_parsing_other_records(tmp_path):
    path = tmp_path / "journal.jsonl"
    again = dataclasses.replace(STUDY, uri="sqlite:///b.db")
    lines = [json.dumps(journal_line(record), separators=(",", ":")) for record in (STUDY, again)]
    path.write_text(f"{lines[0]}\ndamaged\n{lines[1]}\n")
    assert last_study(path) == again
    path.write_bytes(b'{"kind":"end"}\n')
    with pytest.raises(DirectoryError, match="has no record of a study"):
        last_study(path)


def test_samples_in_memory_are_not_called_by_the_file_that_holds_them():
    named = {
        "own samples": {"path": "runs/study/data.arrow", "scaling": "unit"},
        "faces.npz": {"path": "runs/faces.npz"},
        "digits": {"source": "digits"},
        "orl + umist": {"tasks": [{"name": "orl", "path": "a.npz"}, {"name": "umist"}]},
    }
    for name, dataset in named.items():
        assert dataclasses.replace(STUDY, config={"dataset": dataset}).data_name == name
