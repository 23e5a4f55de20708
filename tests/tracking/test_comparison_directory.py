"""Directory of a comparison: its list of members, and what is refused."""

from __future__ import annotations

import json

import pytest

from raysel.core.errors import DirectoryError
from raysel.tracking.directory import ComparisonRecord, MemberEntry, StudyDirectory

RECORD = ComparisonRecord(
    id="a",
    name="few",
    reference="ℓ₂,₁",
    experiment="few",
    uri="sqlite:///mlflow.db",
    started=1.5,
    members=(MemberEntry("ℓ₂,₁", "l2-1", "rfs", False), MemberEntry("MCGF", "dfs", "mcgf", True, "it failed", True)),
)


def test_a_written_list_is_read_back(tmp_path):
    directory, lock = StudyDirectory.create(tmp_path, 0)
    with lock:
        RECORD.write(directory, lock)
    assert ComparisonRecord.read(directory) == RECORD
    assert json.loads(directory.members.read_text())["schema"] == 1
    assert directory.member("dfs").path == tmp_path / "dfs"


def test_a_list_of_version_0_5_is_read():
    """Without what it did not say of its members."""
    raw = json.loads(json.dumps(RECORD.to_json()))
    for entry in raw["members"]:
        del entry["transductive"]
    assert [member.transductive for member in ComparisonRecord.from_json(raw).members] == [False, False]


def test_a_directory_is_locked_and_never_overwritten(tmp_path):
    directory, lock = StudyDirectory.create(tmp_path / "new", 0)
    with lock:
        with pytest.raises(DirectoryError, match="is running"):
            StudyDirectory.create(tmp_path / "new", 0)
        RECORD.write(directory, lock)
    with pytest.raises(DirectoryError, match="already holds a comparison"):
        StudyDirectory.create(tmp_path / "new", 0)
    directory.incomplete.touch()  # killed while the first files were written
    StudyDirectory.create(tmp_path / "new", 0)[1].close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is damaged"),
        ("[]", "its schema is not 1"),
        ('{"schema": 2}', "its schema is not 1"),
        ('{"schema": 1}', "'id': Field required"),
        (json.dumps(RECORD.to_json() | {"members": [{"label": "x"}]}), "'members.0.folder': Field required"),
        (
            json.dumps(RECORD.to_json() | {"members": [RECORD.to_json()["members"][0] | {"transductive": "perhaps"}]}),
            "'members.0.transductive': Input should be",
        ),
    ],
)
def test_a_damaged_list_is_named(tmp_path, text, said):
    directory = StudyDirectory(tmp_path)
    directory.members.write_text(text)
    with pytest.raises(DirectoryError, match=said):
        ComparisonRecord.read(directory)


def test_a_directory_without_a_list_holds_no_comparison(tmp_path):
    with pytest.raises(DirectoryError, match="holds no comparison"):
        ComparisonRecord.read(StudyDirectory(tmp_path))
