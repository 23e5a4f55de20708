"""Directory of a comparison: its list of members, and what is refused."""

from __future__ import annotations

import json

import pytest

from raysel.core.errors import DirectoryError
from raysel.tracking.comparisons.directory import ComparisonDirectory
from raysel.tracking.comparisons.record import ComparisonRecord, MemberEntry

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
    directory = ComparisonDirectory(tmp_path)
    with directory.create() as lock:
        directory.write(RECORD, lock)
    assert directory.read() == RECORD
    assert json.loads(directory.members.read_text())["schema"] == 1
    assert directory.member("dfs").path == tmp_path / "dfs"


def test_a_list_of_version_0_5_is_read():
    """Without what it did not say of its members."""
    raw = json.loads(json.dumps(RECORD.to_json()))
    for entry in raw["members"]:
        del entry["transductive"]
    assert [member.transductive for member in ComparisonRecord.from_json(raw).members] == [False, False]


def test_a_directory_is_locked_and_never_overwritten(tmp_path):
    directory = ComparisonDirectory(tmp_path / "new")
    with directory.create() as lock:
        with pytest.raises(DirectoryError, match="is running"):
            ComparisonDirectory(tmp_path / "new").create()
        directory.write(RECORD, lock)
    with pytest.raises(DirectoryError, match="already holds a comparison"):
        directory.create()
    directory.incomplete.touch()  # killed while the first files were written
    directory.create().close()
    directory.open().close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is damaged"),
        ("[]", "its schema is not 1"),
        ('{"schema": 2}', "its schema is not 1"),
        ('{"schema": 1}', "no valid 'id'"),
        (json.dumps(RECORD.to_json() | {"members": [{"label": "x"}]}), "no valid 'folder'"),
        (
            json.dumps(RECORD.to_json() | {"members": [RECORD.to_json()["members"][0] | {"transductive": "no"}]}),
            "no valid 'transductive'",
        ),
    ],
)
def test_a_damaged_list_is_named(tmp_path, text, said):
    directory = ComparisonDirectory(tmp_path)
    directory.members.write_text(text)
    with pytest.raises(DirectoryError, match=said):
        directory.read()


def test_a_directory_without_a_list_holds_no_comparison(tmp_path):
    with pytest.raises(DirectoryError, match="holds no comparison"):
        ComparisonDirectory(tmp_path).read()
