"""``raysel tune``: its face, its files, its refusals, and that chance stays chance."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pytest
import yaml
from rich.console import Console
from scipy.stats import binom
from small_studies import CLASSES, EACH, ENDLESS, raw_config, write_digits, write_yaml

from raysel.cli.commands import COMMANDS
from raysel.cli.summary import print_answer, print_files
from raysel.cli.tune import resume_with
from raysel.config import load_config
from raysel.data.loading import load_dataset
from raysel.data.planted_table import PLANTED, planted_roles
from raysel.evaluation.plan import NestedPlan
from raysel.evaluation.records import FoldTrace, TrialRecord
from raysel.results.result import StudyResult
from raysel.run.api import open_study
from raysel.select import main as select_main
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import read_journal
from raysel.tune import main


def contents(folder: Path) -> dict[str, bytes]:
    """Every file at or below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A working directory with a small data file and a study of it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAYSEL_DATA", raising=False)
    write_digits(tmp_path / "few.npz")
    write_yaml(tmp_path / "few.yaml")
    return tmp_path


def refusal(capsys, *arguments: str) -> str:
    """What the command says on stderr when it ends with 2; nothing else may happen."""
    before = contents(Path())
    assert main(list(arguments)) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: ")
    assert "Traceback" not in said.err
    assert contents(Path()) == before
    return said.err


# What a finished study leaves


def test_a_study_says_what_it_found_and_where(finished_study):
    assert (finished_study.status, finished_study.err) == (0, "")
    out = finished_study.out
    assert out.startswith(
        "few.yaml: loading libraries and data\n"
        "few: 6 configurations x 6 inner fits on few (80 x 64) -> study\n"
    )
    manifest = json.loads((finished_study.study / "ranking" / "manifest.json").read_text())
    scores, winners = manifest["scores"], manifest["winners"]
    interval, numbers = (
        scores["interval"],
        [scores["n_features"][fold] for fold in ("outer0", "outer1")],
    )
    assert "test accuracy" in out
    if interval["lower"] is not None:
        assert (
            f"outer folds; 95 % interval {interval['lower']:.3f} to {interval['upper']:.3f}" in out
        )
    guess = scores["references"]["chance"]["guess"]
    for name, words in (
        ("variance", "largest variance"),
        ("f_test", "F-test"),
        ("chance", rf"chance \({guess}\)"),
    ):
        own = scores["references"][name]
        assert re.search(
            rf"^{words} .*{own['test_mean']:.3f} ± {own['test_std']:.3f}", out, re.MULTILINE
        )
    assert out.index("writing the results") < out.index("test accuracy") < out.index("uploading")
    assert "report  study/report.html" in out
    assert "mlflow ui --backend-store-uri sqlite:///runs/mlflow.db\n" in out
    screen = io.StringIO()
    print_answer(open_study(finished_study.study), Console(file=screen, width=200), verbose=True)
    out = screen.getvalue()
    for i, fold in enumerate(("outer0", "outer1")):
        winner = f"alpha={winners[fold]['alpha']} rank={winners[fold]['rank']}"
        n_scored = manifest["features_with_score"][fold]
        line = (
            rf"^{fold} +{winner} +{numbers[i]} +{n_scored} +{scores['inner'][i]:.3f}"
            rf" +{scores['test'][i]:.3f} *$"
        )
        assert re.search(line, out, re.MULTILINE)
    test = f"{np.mean(scores['test']):.3f} ± {np.std(scores['test'], ddof=1):.3f}"
    mean = rf"^mean +{np.mean(scores['inner']):.3f} +{test} \(SD\)"
    assert re.search(mean, out, re.MULTILINE)
    final = f"alpha={winners['final']['alpha']} rank={winners['final']['rank']}"
    assert re.search(rf"^model +{final}, fitted on all 80 samples", out, re.MULTILINE)
    assert "2 of 6 trials gave the zero solution" in out


@pytest.mark.parametrize("terminal", [True, False])
def test_scores_stay_readable_beside_long_strange_names(finished_study, tmp_path, terminal):
    stored = open_study(finished_study.study).stored
    name = "init=[bold] " + " ".join(f"parameter_{i}=0.12345" for i in range(12))
    console = Console(
        file=io.StringIO(), width=80, force_terminal=terminal, no_color=True, soft_wrap=True
    )
    failed = TrialRecord("id", name, {}, "failed", {"outer0": FoldTrace(error="x")})
    directory = StudyDirectory(tmp_path)
    directory.tracking.write_text(
        '{"complete": false, "error": "[no] answer", "experiment_id": "1"}'
    )
    renamed = dataclasses.replace(
        stored,
        read_from=directory,
        study=dataclasses.replace(stored.study, uri="http://somewhere:5000"),
        refits={
            fold: dataclasses.replace(refit, name=name) for fold, refit in stored.refits.items()
        },
        trials=[*stored.trials[:3], failed],
    )
    print_answer(StudyResult(renamed), console, verbose=True)
    print_files(StudyResult(renamed), console)
    out = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())
    for refit in StudyResult(stored).outer:
        row = next(line for line in out.splitlines() if line.startswith(f"{refit.fold} "))
        assert "init=[bold]" in row
        assert row.split()[-2:] == [f"{refit.inner_score:.3f}", f"{refit.test_score:.3f}"]
        assert len(row) <= (80 if terminal else 100)
    assert out.count("parameter_11=0.12345") == 3
    assert "1 of 4 trials failed: read their errors in study.trials() or the journal." in out
    assert "not all runs are uploaded: [no] answer" in out
    assert "http://somewhere:5000/#/experiments/1" in out


def test_the_studys_directory_holds_what_was_promised(finished_study):
    study = finished_study.study
    names = {
        "config.yaml",
        "plan.json",
        "journal.jsonl",
        "progress.json",
        "traces.parquet",
        "model.skops",
        "ranking",
    }
    assert names <= {path.name for path in study.iterdir()}
    config = load_config(study / "config.yaml")
    assert config.to_dict()["solver"] == raw_config()["solver"]
    data = load_dataset(study.parent / "few.npz")
    plan = NestedPlan.load(study / "plan.json", data.y, None)  # refuses one that leaks
    expected = NestedPlan.make(data.y, outer=2, inner=2, repeats=1, groups=None, seed=3)
    assert plan.to_json() == expected.to_json()
    assert json.loads((study / "progress.json").read_text()) == {
        "finished": 6,
        "running": 0,
        "failed": 0,
        "total": 6,
    }
    kinds = [record["kind"] for record in read_journal(study / "journal.jsonl")]
    assert kinds == ["study", *["trial"] * 6, "search", *["refit"] * 3, "noise", "end"]


@pytest.mark.slow
@pytest.mark.usefixtures("without_mlflow")
def test_labels_without_meaning_give_chance_through_the_whole_command(here, capsys):
    write_digits(here / "chance.npz", classes=2, each=60, permute=1)
    # One neighbour on one feature set: each test sample is one right or wrong answer.
    write_yaml(
        here / "chance.yaml",
        dataset__path="chance.npz",
        solver__space={"alpha": {"logspace": [0.001, 0.5, 6]}, "rank": [1, 2, 4]},
        evaluation__n_features=[8],
        cv={"outer": 3, "inner": 3},
    )
    assert main(["chance.yaml", "--output", "chance"]) == 0
    capsys.readouterr()
    scores = json.loads((here / "chance" / "ranking" / "manifest.json").read_text())["scores"]
    right = round(sum(score * 40 for score in scores["test"]))
    low, high = binom.interval(0.999, 120, 0.5)
    assert low <= right <= high
    # Seen by the selection, the same labels look learnable: the inner scores are the optimistic
    # ones.
    assert np.mean(scores["inner"]) > np.mean(scores["test"]) - 0.1


# Dry run


def test_a_dry_run_prints_the_plan_and_writes_nothing(here, capsys):
    before = contents(here)
    assert main(["few.yaml", "--dry-run", "--set", "cv.outer=4"]) == 0
    out = capsys.readouterr().out
    assert contents(here) == before
    n = CLASSES * EACH
    assert f"{n} samples x 64 features" in out
    assert f"{CLASSES}, {EACH} samples each: 0, 1, 2, 3" in out
    assert "6 configurations (grid)" in out
    assert f"6, {6 * (4 + 1) * 2 + 4 + 1} fits in all" in out
    for fold in range(4):
        assert re.search(rf"outer{fold} +60 train \(15 a class\), 20 test \(5 a class\)", out)
    assert re.search(r"final +80 train \(20 a class\)\n", out)
    assert re.search(r"memory +\d+ MiB", out)


@pytest.mark.slow
def test_checks_and_dry_runs_start_no_ray(here):
    script = (
        "import sys; from raysel.tune import main\n"
        "assert main(['few.yaml', '--dry-run']) == 0\n"
        "assert main(['few.yaml', '--set', 'solver.space.rank=[9]']) == 2\n"
        "assert main(['few.yaml', '--set', 'search.cpus_per_trial=4096']) == 2\n"
        "assert not {'ray', 'mlflow'} & set(sys.modules), 'imported too early'\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=here
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    assert set(contents(here)) == {"few.npz", "few.yaml"}


def test_a_relative_path_is_looked_up_here_then_in_raysel_data(here, monkeypatch, capsys):
    (here / "data").mkdir()
    write_digits(here / "data" / "elsewhere.npz", each=10)
    monkeypatch.setenv("RAYSEL_DATA", str(here / "data"))
    assert main(["few.yaml", "--dry-run", "--set", "dataset.path=elsewhere.npz"]) == 0
    assert "40 samples" in capsys.readouterr().out
    write_digits(here / "elsewhere.npz", each=15)
    assert main(["few.yaml", "--dry-run", "--set", "dataset.path=elsewhere.npz"]) == 0
    assert "60 samples" in capsys.readouterr().out


@pytest.mark.usefixtures("here")
def test_every_study_of_raysels_own_validates_or_says_where_its_data_are(capsys):
    for name in ("orl-smr", "orl-smr-paper", "umist-smr", "usps-smr"):
        said = refusal(capsys, name)
        file = f"{name.split('-')[0].upper()}.npz"
        assert f"there is no data file {file}" in said
        assert "np.savez" in said  # the format, and where such a file is found
        assert "pixels" in said
    assert main(["--dry-run"]) == 0
    assert "200 samples x 300 features" in capsys.readouterr().out


@pytest.fixture
def small_disk(tmp_path):
    """A file system of two megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"needs the right to mount a small file system: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


def test_no_space_left_is_said_before_anything_starts(here, small_disk, capsys):
    filler = small_disk / "filler"
    filler.write_bytes(bytes(3 * 2**19))  # less is left than a study asks for
    before = contents(small_disk)
    assert main(["few.yaml", "--output", str(small_disk / "study")]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert contents(small_disk) == before
    filler.unlink()
    # Enough at first sight, but not for the indices of so many folds: what was begun is taken back.
    write_digits(here / "more.npz", classes=10, each=100)
    changes = ["--set", "dataset.path=more.npz", "--set", "cv={outer: 10, inner: 20, repeats: 3}"]
    assert main(["few.yaml", *changes, "--output", str(small_disk / "study")]) == 2
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert "another output directory" in said
    assert set(contents(small_disk)) <= {"study/.lease"}


@pytest.mark.usefixtures("here", "without_mlflow")
def test_a_disk_that_fills_up_meanwhile_ends_the_study_and_keeps_the_journal(small_disk, capsys):
    study = small_disk / "study"

    def fill() -> None:
        while not (study / "progress.json").exists():
            time.sleep(0.01)
        with (small_disk / "filler").open("wb", buffering=0) as file:
            for size in (2**16, 2**10, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    pass

    filling = threading.Thread(target=fill)
    filling.start()
    status = main(["few.yaml", "--output", str(study)])
    filling.join()
    said = capsys.readouterr().err
    assert status == 1
    assert "No space left on device. Its earlier records are kept." in said
    assert said.endswith(f"kept; resume with: raysel tune --resume {study}\n")
    assert "Traceback" not in said
    kept = list(read_journal(study / "journal.jsonl"))
    assert kept[0]["kind"] == "study"
    # A record as small as the last may still have found room in the file's last block.
    assert [record.get("status") for record in kept if record["kind"] == "end"] in ([], ["failed"])
    assert "refit" not in {record["kind"] for record in kept}


# Interruption, and Ray that is not there

#: Lets a command have one processor, so that Ray starts one worker: each imports for seconds.
ONE_PROCESSOR = ("taskset", "--cpu-list", str(max(os.sched_getaffinity(0))))


def children(pid: int) -> dict[int, str]:
    """All processes below a process, by id, with when each began."""
    parents, began = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.name)], began[int(entry.name)] = int(fields[1]), fields[19]
    found: dict[int, str] = {}
    below = {pid}
    while below:
        below = {child for child, parent in parents.items() if parent in below}
        found |= {child: began[child] for child in below}
    return found


def still_there(processes: dict[int, str]) -> list[str]:
    left = []
    for pid, began in processes.items():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            if fields[19] == began and fields[0] != "Z":
                left.append(
                    Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:200]
                )
        except OSError:
            continue
    return left


@pytest.mark.slow
def test_ctrl_c_ends_the_study_its_processes_and_nothing_that_was_kept(here, capsys):
    write_yaml(here / "long.yaml", solver=ENDLESS, search={})
    study = here / "study [1]"
    # As from a terminal: what a shell runs in the background, these tests included, ignores Ctrl-C.
    terminal = ("env", "--default-signal=INT")
    command = [
        *ONE_PROCESSOR,
        *terminal,
        sys.executable,
        "-m",
        "raysel.tune",
        "long.yaml",
        "--output",
        str(study),
    ]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=here,
    )
    try:
        while process.poll() is None:
            ended = (study / "progress.json").exists()
            if ended and json.loads((study / "progress.json").read_text())["finished"]:
                break
            time.sleep(0.05)
        running = json.loads((study / "progress.json").read_text())
        assert (running["finished"], running["failed"], running["total"]) == (1, 0, 3)
        below = children(process.pid)
        assert len(below) > 3  # Ray's own, its workers, the one that tells MLflow
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert (
        err == "stopped. 1 trial had ended and is kept; resume with: raysel tune --resume"
        f" '{study}'\n"
    )
    for _ in range(600):  # Ray's agent sees the end of its parent a little later
        if not still_there(below):
            break
        time.sleep(0.1)
    assert still_there(below) == []
    records = list(read_journal(study / "journal.jsonl"))
    assert [record["kind"] for record in records] == ["study", "trial", "end"]
    assert records[-1]["status"] == "interrupted"
    assert json.loads((study / "progress.json").read_text())["running"] == 0
    assert main(["long.yaml", "--output", str(study)]) == 2
    assert "already holds a study" in capsys.readouterr().err
    assert select_main([str(study)]) == 2
    assert "has not finished: 1 of 3 trials are done" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("prompt_uploads")
def test_the_builtin_study_runs_from_an_empty_directory(tmp_path):
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("RAYSEL", "MLFLOW"))
    }
    # Neither a Ray that is said to be elsewhere nor a missing terminal is in its way.
    environment["RAY_ADDRESS"] = "127.0.0.1:1"
    changes = [
        "--set",
        "solver.space.alpha=[0.3, 0.6]",
        "--set",
        "cv={outer: 2, inner: 2}",
        "--set",
        "pictures=[]",
    ]
    ended = subprocess.run(
        [*ONE_PROCESSOR, sys.executable, "-m", "raysel.tune", *changes],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    (study,) = (tmp_path / "raysel-studies").iterdir()
    assert re.fullmatch(r"planted-genes-\d{8}-\d{6}", study.name)
    config = yaml.safe_load((study / "config.yaml").read_text())
    assert config["dataset"]["source"] == "planted-genes"
    trials = [
        record for record in read_journal(study / "journal.jsonl") if record["kind"] == "trial"
    ]
    assert len(trials) == 2
    assert (
        max(
            len(fold["inner"][0]["objective"])
            for trial in trials
            for fold in trial["folds"].values()
        )
        >= 5
    )
    manifest = json.loads((study / "ranking" / "manifest.json").read_text())
    assert manifest["scores"]["test_mean"] > 0.7
    rows = [
        line.split(",") for line in (study / "ranking" / "ranking.csv").read_text().splitlines()
    ]
    # A gene that leads a planted module is first.
    first = rows[1][rows[0].index("feature")]
    assert planted_roles("planted-genes", None)[first] == PLANTED
    assert (tmp_path / "mlflow.db").exists()


# The command that resumes

TUNE = ["raysel", "tune"]


def words(*given: str, solver: str = "smr") -> list[str]:
    """The words of the command for a study in ``my study`` that was started with these
    arguments.
    """
    parser = ArgumentParser()
    COMMANDS["tune"].fill(parser)
    text = resume_with(parser.parse_args(given), Path("my study"), ["smr", solver])
    assert text.startswith("resume with: ")
    return shlex.split(text.removeprefix("resume with: "))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        (["study.yaml", "--set", "a=1", "--output", "my study"], []),
        (["--address", "host:6379"], ["--address", "host:6379"]),
        (["--allow-mixed-versions"], ["--allow-mixed-versions"]),
    ],
)
def test_place_and_cluster_are_given_again_to_resume(given, expected):
    assert words(*given) == [*TUNE, "--resume", "my study", *expected]


def test_code_of_ones_own_is_named_by_the_configuration():
    given = ["study.yaml", "--set", "search.space.C=[0.1, 1]"]
    assert words(*given, solver="mine.Own") == [*TUNE, *given, "--resume", "my study"]
    assert words("study.yaml", solver="sklearn.svm.LinearSVC") == [*TUNE, "--resume", "my study"]


def test_a_script_that_gives_the_address_is_named_instead(monkeypatch):
    monkeypatch.setenv("RAYSEL_COMMAND", "sbatch slurm.sh")
    assert words("--address", "host:6379") == ["sbatch", "slurm.sh", "--resume", "my study"]
