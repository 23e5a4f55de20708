"""The command that resumes a study is one that can be typed where the study was started."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from pathlib import Path

import pytest

from raysel.cli.commands import COMMANDS
from raysel.cli.main import words_of
from raysel.cli.tune import resume_with


def words(*given: str, solver: str = "smr") -> list[str]:
    """The words of the command for a study in ``my study`` that was started with these arguments."""
    parser = ArgumentParser()
    COMMANDS["tune"].fill(parser)
    text = resume_with(parser.parse_args(words_of(given)), Path("my study"), ["smr", solver])
    assert text.startswith("resume with: ")
    return shlex.split(text.removeprefix("resume with: "))


TUNE = ["python", "-m", "raysel.tune"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], ["--resume", "my study"]),
        (["study.yaml", "--set", "a=1", "--output", "my study"], ["--resume", "my study"]),
        (["--address", "host:6379"], ["--resume", "my study", "--address", "host:6379"]),
        (["--allow-mixed-versions"], ["--resume", "my study", "--allow-mixed-versions"]),
    ],
)
def test_place_and_cluster_are_given_again(given, expected):
    assert words(*given) == [*TUNE, *expected]


def test_code_of_ones_own_is_named_by_the_configuration_and_credentials_are_not_shown():
    given = ["study.yaml", "--set", "search.space.C=[0.1, 1]", "--set", "tracking.uri=http://ada:secret@host"]
    told = words(*given, solver="mine.Own")
    assert told[: len(TUNE) + 3] == [*TUNE, *given[:3]]
    assert "secret" not in " ".join(told)
    assert told[7] == 'tracking.uri="http://***@host"'
    assert told[-2:] == ["--resume", "my study"]
    assert words("study.yaml", solver="sklearn.svm.LinearSVC") == [*TUNE, "--resume", "my study"]


def test_a_script_that_gives_the_address_is_named_instead(monkeypatch):
    monkeypatch.setenv("RAYSEL_COMMAND", "sbatch slurm.sh")
    assert words("--address", "host:6379") == ["sbatch", "slurm.sh", "--resume", "my study"]
