"""Files that a stranger sends are refused in a sentence, before they take memory, run code or write a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from attack_files import EXECUTED, LIMIT, WRITERS

from raysel.limits import MAX_DATA_BYTES

pytestmark = pytest.mark.slow  # a process for each format

JUDGE = Path(__file__).with_name("judging.py")
#: Most memory that reading of one file takes: a few times the limit, which no honest file below it needs.
MOST = 3 * LIMIT


@pytest.fixture(scope="module", params=WRITERS)
def judged(request, tmp_path_factory):
    """Expected messages and outcomes of all files of a format, read in a process of limited memory."""
    folder = tmp_path_factory.mktemp("attacks")
    (folder / request.param).mkdir()
    expected = {
        f"{request.param}/{name}": part for name, part in WRITERS[request.param](folder / request.param).items()
    }
    before = {path for path in folder.rglob("*") if not path.is_symlink()}
    paths = os.pathsep.join([str(JUDGE.parents[1]), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, str(JUDGE), str(folder)],
        input=json.dumps(list(expected)),
        env=os.environ | {MAX_DATA_BYTES: str(LIMIT), "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    written = {path for path in folder.rglob("*") if not path.is_symlink()} - before
    return expected, json.loads(done.stdout), {path.name for path in written} - {"labels.txt"}


def test_files_of_strangers_are_refused_in_one_message(judged):
    expected, found, _ = judged
    for name, part in expected.items():
        kind, message, _, _ = found[name]
        assert (kind, part in message) == ("refused", True), (name, kind, message)
        assert Path(name).name.partition(".")[0] in message
        assert len(message) < 1000
        assert message.isprintable() or "\n" in message


def test_files_of_strangers_take_little_memory(judged):
    assert {name: taken for name, (_, _, taken, _) in judged[1].items() if taken > MOST} == {}


def test_files_of_strangers_run_and_write_nothing(judged):
    _, found, written = judged
    assert {name: events for name, (*_, events) in found.items() if events} == {}
    assert written == set()
    assert EXECUTED not in written
