"""A study's directory that leads elsewhere, or to what never ends."""

from __future__ import annotations

import copy
import json
import os
import shutil
from pathlib import Path

import pytest
from attack_studies import change_journal, copied, write_journal

import raysel
from raysel import select, tune
from raysel.cli.main import main as run_command
from raysel.core.errors import DirectoryError, RayselError
from raysel.core.files import atomic_write
from raysel.results.comparison.rows import OuterFolds
from raysel.run.pieces import finished_study
from raysel.tracking.directory import StudyDirectory

SECRET = "the content of a file of the victim\n"
DOORS = {
    "tune --resume": lambda path: tune.main(["--resume", path]),
    "tune --replay": lambda path: tune.main(["--replay", path]),
    "select": lambda path: select.main([path]),
    "report": lambda path: run_command(["report", path]),
    "stability": lambda path: run_command(["stability", path, "--executor", "serial"]),
    "claims": lambda path: run_command(["claims", path, "--executor", "serial"]),
    "permute": lambda path: run_command(["permute", path, "--executor", "serial"]),
}


@pytest.fixture
def outside(tmp_path):
    """A folder of the victim with a file, and what it holds."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "secret").write_text(SECRET)
    return folder


def untouched(outside: Path) -> bool:
    return [path.name for path in outside.iterdir()] == ["secret"] and (
        outside / "secret"
    ).read_text() == SECRET


@pytest.mark.parametrize(
    ("name", "door"),
    [*(("journal.jsonl", door) for door in DOORS)]
    + [(name, "select") for name in ("config.yaml", ".lease", "tracking.json", "ranking", "folds")]
    + [
        (name, "")
        for name in (
            "report.html",
            "ranking/model.skops",
            "selection/plan.json",
            "stability/x",
            ".lease",
        )
    ],
)
def test_a_link_out_of_the_directory_is_refused(stranger, outside, name, door, capfd):
    entry = stranger / name
    target = outside if entry.is_dir() else outside / "secret"
    shutil.rmtree(entry) if entry.is_dir() else entry.unlink(missing_ok=True)
    entry.parent.mkdir(exist_ok=True)
    entry.symlink_to(target)
    if door:
        assert DOORS[door](str(stranger)) == 2
    for attempt in (raysel.open_study, lambda path: StudyDirectory(path).open(0)):
        with pytest.raises(DirectoryError, match=f"{name} is a symbolic link"):
            attempt(stranger)
    out, err = capfd.readouterr()
    assert not door or f"{name} is a symbolic link" in err
    assert SECRET.strip() not in out + err
    assert untouched(outside)


@pytest.mark.parametrize(
    "name", ["journal.jsonl", "config.yaml", "plan.json", ".lease", "ranking/x.png"]
)
def test_a_pipe_or_a_device_is_refused_and_nothing_hangs(stranger, name, capfd):
    (stranger / name).unlink(missing_ok=True)
    os.mkfifo(stranger / name)
    for door in DOORS.values():
        assert door(str(stranger)) == 2
        assert "is a named pipe" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["journal.jsonl", "config.yaml", "plan.json", "tracking.json"])
def test_a_folder_in_place_of_a_file_gets_one_message(stranger, name, capfd):
    (stranger / name).unlink(missing_ok=True)
    (stranger / name).mkdir()
    for door in DOORS.values() if name == "journal.jsonl" else (DOORS["select"],):
        assert door(str(stranger)) in (0, 2)
        assert "Traceback" not in capfd.readouterr().err


def test_the_name_of_a_temporary_file_cannot_be_guessed(tmp_path):
    names = set()
    for _ in range(3):
        with atomic_write(tmp_path / "plan.json") as temporary:
            names.add(temporary.name)
            assert temporary.stat().st_size == 0  # it was created, so no link lies there
            temporary.write_text("{}")
    assert len(names) == 3
    assert not any(str(os.getpid()) == name.rpartition(".")[2] for name in names)


@pytest.mark.parametrize(
    "fold", ["../outer0", "/tmp/outer0", "a/b", "", ".", "x" * 300, "a\x1b[2J"]
)
def test_a_name_of_a_fold_that_is_a_path_is_refused(stranger, fold):
    def rename(line):
        line["folds"] = [fold if name == "outer0" else name for name in line["folds"]]

    change_journal(stranger, "study", rename)
    change_journal(
        stranger, "refit", lambda line: line.update(fold=line["fold"].replace("outer0", fold))
    )
    with pytest.raises(DirectoryError):
        raysel.open_study(stranger)


def test_a_member_that_is_a_path_or_a_link_is_refused(stranger, tmp_path, capfd):
    comparison = tmp_path / "comparison"
    comparison.mkdir()
    copied(stranger, comparison / "inside")
    raw = {
        "schema": 1,
        "id": "0",
        "name": "few",
        "reference": "a",
        "experiment": "few",
        "uri": "",
        "started": 0,
    }

    def write(folder):
        member = {
            "label": "a",
            "folder": folder,
            "solver": "smr",
            "reconstructed": False,
            "error": None,
        }
        (comparison / "members.json").write_text(json.dumps({**raw, "members": [member]}))

    for folder in ("../study", str(stranger), "..", "a/b"):
        write(folder)
        assert run_command(["compare", str(comparison)]) == 2
        assert "is not the name of a member's folder" in capfd.readouterr().err
    (comparison / "linked").symlink_to(stranger)
    write("linked")
    assert run_command(["compare", str(comparison)]) == 2
    assert "linked is a symbolic link" in capfd.readouterr().err
    (comparison / "members.json").unlink()
    (comparison / "members.json").symlink_to(stranger / "config.yaml")
    with pytest.raises(DirectoryError):
        raysel.open_comparison(comparison)


def test_a_dotted_solver_is_refused_at_every_door(stranger, capfd):
    (stranger.parent / "foreign_code.py").write_text("open('ran', 'w').close()\nclass Mine: pass\n")
    config = (stranger / "config.yaml").read_text().replace("name: smr", "name: foreign_code.Mine")
    (stranger / "config.yaml").write_text(config)
    change_journal(
        stranger, "study", lambda line: line["config"]["solver"].update(name="foreign_code.Mine")
    )
    for name in (
        "tune --resume",
        "stability",
        "permute",
        "select",
    ):  # a replay takes seconds to import MLflow
        status = DOORS[name](str(stranger))
        err = capfd.readouterr().err
        assert not Path("ran").exists()
        assert name == "select" or (status == 2 and "imports code" in err)


def test_a_plan_with_test_samples_in_training_is_refused(stranger):
    plan = json.loads((stranger / "plan.json").read_text())
    attacks = {
        "is on both sides": lambda fold: fold["train"].append(fold["test"][0]),
        "an index outside": lambda fold: fold["test"].append(10**6),
        "must be lists of whole numbers": lambda fold: fold["test"].append(0.5),
        "from outside its outer training set": (
            lambda fold: fold["inner"][0]["train"].append(fold["test"][0])
        ),
        "the name of a fold": lambda fold: fold.update(name="../x"),
    }
    for message, attack in attacks.items():
        raw = copy.deepcopy(plan)
        attack(raw["folds"][0])
        (stranger / "plan.json").write_text(json.dumps(raw))
        with pytest.raises(RayselError, match=message), finished_study(stranger, executor="serial"):
            pass
        with pytest.raises(DirectoryError, match=message):
            OuterFolds.read(stranger / "plan.json")


def test_an_unknown_study_says_so_without_a_traceback(tmp_path, capfd):
    write_journal(tmp_path, [{"kind": "trial"}])
    for door in DOORS.values():
        assert door(str(tmp_path)) == 2
        assert "Traceback" not in capfd.readouterr().err
