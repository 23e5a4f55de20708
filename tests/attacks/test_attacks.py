"""Files that a stranger sends are refused in a sentence, before they take memory, run code or
write a file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measures memory by /proc"),
]

JUDGE = Path(__file__).with_name("judging.py")
#: Most memory that reading of one file takes, by the limit of its content.
MOST = 2


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """What became of all files, written and read by a process of limited memory."""
    folder = tmp_path_factory.mktemp("attacks")
    paths = os.pathsep.join([str(JUDGE.parents[1]), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-B", str(JUDGE), str(folder)],  # an import must not write either
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_files_of_strangers_are_refused_in_one_message_with_little_memory_and_nothing_runs(judged):
    assert len(judged["files"]) > 60
    for file in judged["files"]:
        name, message = file["name"], file["message"]
        assert (file["kind"], file["part"] in message, file["events"]) == (
            "refused",
            True,
            [],
        ), file
        assert Path(name).name.partition(".")[0] in message
        assert len(message) < 1000
        assert message.isprintable() or "\n" in message
        assert file["memory"] <= MOST, file
    assert judged["written"] == []
