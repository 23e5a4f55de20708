"""The journal keeps whole records, whatever the disk does."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.core.errors import StudyError
from raysel.evaluation.records import TrialRecord
from raysel.tracking.journal import Journal, read_journal, read_records
from raysel.tracking.records import SearchRecord

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
records = st.builds(
    TrialRecord, id=st.text(), name=st.text(), status=st.text(), params=st.dictionaries(st.text(), values, max_size=4)
)


def numbered(number: int, **params: object) -> SearchRecord | TrialRecord:
    """A record that is told from others by its number."""
    return TrialRecord(str(number), "", dict(params), "finished") if params else SearchRecord(number, number, False)


@given(written=st.lists(records, max_size=4), cut=st.integers(0, 10_000))
@settings(max_examples=60)
def test_records_come_back_exactly_and_a_cut_drops_only_what_it_hit(tmp_path_factory, written, cut):
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    sizes = [0]
    with Journal(path) as journal:
        for record in written:
            journal.append(record)
            sizes.append(path.stat().st_size)  # on disk when append returns
    assert list(read_records(path)) == written
    whole = path.read_bytes()
    assert whole.count(b"\n") == len(written)
    cut = min(cut, len(whole))
    path.write_bytes(whole[:cut])
    assert list(read_records(path)) == written[: sum(size <= cut for size in sizes[1:])]


def test_a_journal_opened_again_goes_on(tmp_path):
    path = tmp_path / "journal.jsonl"
    for number in range(3):
        with Journal(path) as journal:
            journal.append(numbered(number))
    assert list(read_records(path)) == [numbered(number) for number in range(3)]


@pytest.mark.parametrize("damage", [b'{"a": 1', b"\0\0\0", b"", b"\xff\xfe", b"7", b'["kind"]'])
def test_a_damaged_line_is_named(tmp_path, damage):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"kind":"study"}\n' + damage + b'\n{"kind":"end"}\n')
    found = []
    with pytest.raises(StudyError, match=r"journal\.jsonl, line 2: damaged"):
        found.extend(read_journal(path))
    assert found == [{"kind": "study"}]


def test_without_a_journal_the_directory_is_named(tmp_path):
    with pytest.raises(StudyError, match=f"{tmp_path.name} holds no readable journal: No such file"):
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
    with Journal(path) as journal, pytest.raises(StudyError, match=r"No space left on device.*are kept"):
        journal.append(numbered(1))


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
        [sys.executable, "-c", textwrap.dedent(script)], check=True, capture_output=True, text=True, timeout=120
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
