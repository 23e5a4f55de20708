"""``raysel tune`` of a comparison: its plan, what it says at the end, and its runs in
MLflow.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from unittest.mock import Mock

import pytest
from small_comparisons import raw_comparison
from small_studies import ENDLESS, write_yaml

from raysel.core.errors import HeadLostError
from raysel.run import course
from raysel.run.api import prepare_comparison
from raysel.select import main as select_main
from raysel.solvers.smr.smr import SMR
from raysel.tracking.directory import ComparisonRecord, StudyDirectory
from raysel.tracking.journal import read_journal
from raysel.tracking.journal_upload import replay
from raysel.tune import main

FOLDERS = ("smr-small", "svm", "z")


def test_the_dry_run_lists_every_member_and_the_sum(here, capsys):
    assert main(["few.yaml", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert re.match(r"data +few: 80 samples x 64 features\n", out)
    assert re.search(r"^members +3, tested against SMR, small$", out, re.MULTILINE)
    rows = re.findall(
        r"^  (\S.*?) +(\w+), (\d+) configurations? \(grid\): (\d+) fits of .* s on average, about ",
        out,
        re.MULTILINE,
    )
    assert rows == [
        ("SMR, small", "smr", "4", "27"),
        ("SVM", "linear_svm", "1", "9"),
        ("z", "smr", "4", "27"),
    ]
    assert re.search(r"on the 1 slot of this machine, .*: 63 fits", " ".join(out.split()))
    assert " 1 configuration (grid)" in out
    assert {path.name for path in here.iterdir()} == {"few.npz", "few.yaml"}


def test_a_dry_run_names_methods_that_are_reconstructed_or_see_test_samples(
    here, capsys, monkeypatch
):
    write_yaml(here / "study.yaml")
    assert main(["study.yaml", "--dry-run"]) == 0
    plain = capsys.readouterr().out
    assert "reconstructed" not in plain
    assert "sees the features" not in plain
    own = replace(SMR.capabilities, reconstructed=True, transductive=True)
    monkeypatch.setattr(SMR, "capabilities", own)
    for config, n in (("study.yaml", 1), ("few.yaml", 2)):
        assert main([config, "--dry-run"]) == 0
        said = (
            "smr, [0-9]+ configurations \\(grid\\); reconstructed, the authors' code was not found;"
            " sees the features of the test samples, not their labels"
        )
        assert len(re.findall(said, " ".join(capsys.readouterr().out.split()))) == n
    record = prepare_comparison("few.yaml").record(id_="a", uri="b", started=1.0)
    assert [(m.reconstructed, m.transductive) for m in record.members] == [
        (True, True),
        (False, False),
        (True, True),
    ]


def test_the_command_says_what_was_found_and_where(finished):
    assert (finished.status, finished.err) == (0, "")
    assert "data\nfew: 3 members on few (80 x 64) -> compared\n" in finished.out
    for number, (label, folder) in enumerate(
        zip(("SMR, small", "SVM", "z"), FOLDERS, strict=True), start=1
    ):
        scores = json.loads((finished.study / folder / "ranking" / "manifest.json").read_text())[
            "scores"
        ]["test"]
        mean = sum(scores) / len(scores)
        assert re.search(
            rf"{label} \({number} of 3\): test accuracy {mean:.3f} ± \d\.\d\d\d \(SD\)\n",
            finished.out,
        )
    assert "next    raysel compare compared\n" in finished.out
    assert "not all runs are uploaded" not in finished.out


def test_what_is_for_a_study_says_that_the_directory_holds_a_comparison(finished, here, capsys):
    write_yaml(here / "study.yaml")
    assert main(["study.yaml", "--resume", str(finished.study)]) == 2
    assert (
        "holds a comparison, and study.yaml is the configuration of one study"
        in capsys.readouterr().err
    )
    assert select_main([str(finished.study)]) == 2
    said = capsys.readouterr().err
    assert "holds a comparison of several studies; give the folder of one of its members" in said
    assert "(smr-small, svm, z)" in said
    assert main(["few.yaml", "--output", str(finished.study)]) == 2
    assert "already holds a comparison" in capsys.readouterr().err


def client_of(uri: str):
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - takes seconds

    return MlflowClient(uri)


@pytest.mark.slow
def test_mlflow_shows_the_members_below_the_comparison(finished):
    directory = StudyDirectory(finished.study)
    uri = f"sqlite:///{finished.study.parent}/mlflow.db"
    assert ComparisonRecord.read(directory).uri == uri
    client = client_of(uri)
    experiment = client.get_experiment_by_name("few")
    runs = client.search_runs([experiment.experiment_id], max_results=1000)
    (parent,) = [run for run in runs if run.data.tags["raysel.kind"] == "comparison"]
    assert (parent.info.status, parent.info.run_name) == ("FINISHED", "comparison few")
    children = [
        run for run in runs if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id
    ]
    assert sorted(run.info.run_name for run in children) == [f"few-{folder}" for folder in FOLDERS]
    assert {run.data.tags["raysel.kind"] for run in children} == {"study"}
    ends = {f: list(read_journal(finished.study / f / "journal.jsonl"))[-1] for f in FOLDERS}
    means = [ends[folder]["result"]["test_mean"] for folder in FOLDERS]
    shown = [parent.data.metrics[f"test_accuracy_{label}"] for label in ("SMR_ small", "SVM", "z")]
    assert shown == pytest.approx(means, rel=6e-4)
    assert parent.data.params["cv.outer"] == "2"
    assert (
        parent.data.tags["mlflow.note.content"]
        in (finished.study / "comparison" / "comparison.md").read_text()
    )
    # The experiment is described by the comparison, not by the member that ran last.
    described = experiment.tags["mlflow.note.content"]
    assert "Last comparison: few, 3 methods, tested against SMR, small · [" in described
    assert set(re.findall(r"/runs/([0-9a-f]{32})", described)) == {parent.info.run_id}
    files = {file.path for file in client.list_artifacts(parent.info.run_id)}
    assert files >= {
        "config.yaml",
        "plan.json",
        "comparison.csv",
        "comparison.md",
        "comparison.svg",
    }
    # Uploaded again, it is the same, and in another store it is there as a whole.
    before = {run.info.run_id: (dict(run.info), run.data.metrics, run.data.tags) for run in runs}
    assert replay(directory, uri)["complete"]
    runs = client.search_runs([experiment.experiment_id], max_results=1000)
    assert {
        run.info.run_id: (dict(run.info), run.data.metrics, run.data.tags) for run in runs
    } == before


@pytest.mark.slow
def test_a_replay_goes_to_another_store(finished, tmp_path, capsys):
    uri = f"sqlite:///{tmp_path}/other.db"
    assert main(["--replay", str(finished.study), "--set", f"tracking.uri={uri}"]) == 0
    assert "4 studies and comparisons of" in capsys.readouterr().out
    client = client_of(uri)
    runs = client.search_runs(
        [client.get_experiment_by_name("few").experiment_id], max_results=1000
    )
    assert (
        sum(
            run.data.tags["raysel.kind"] == "study" and "mlflow.parentRunId" in run.data.tags
            for run in runs
        )
        == 3
    )
    assert main(["--replay", str(finished.study), "--set", "cv.outer=3"]) == 2


@pytest.mark.slow
def test_a_failed_member_and_a_missing_mlflow_are_said_at_the_end(here, capsys):
    source = raw_comparison()
    bad = {
        "solver": ENDLESS | {"space": {"gamma1": [0.01, 0.02]}},
        "search": {"trial_timeout": 0.01},
    }
    source["compare"] = {"SVM": source["compare"]["SVM"], "endless": bad}
    (here / "bad.yaml").write_text(json.dumps(source))
    assert main(["bad.yaml", "--output", "bad", "--set", "tracking.uri=http://127.0.0.1:1"]) == 1
    said = capsys.readouterr()
    assert "error: endless failed: " in said.err
    assert "not all runs are uploaded: " in said.out
    assert "raysel tune --replay bad" in said.out
    uri = f"sqlite:///{here}/mlflow.db"
    assert main(["--replay", "bad", "--set", f"tracking.uri={uri}"]) == 0
    client = client_of(uri)
    runs = client.search_runs(
        [client.get_experiment_by_name("few").experiment_id], max_results=1000
    )
    (parent,) = [run for run in runs if run.data.tags["raysel.kind"] == "comparison"]
    assert parent.info.status == "FAILED"
    assert main(["bad.yaml", "--output", "bad"]) == 2
    assert main(["--resume", "bad", "--set", f"tracking.uri={uri}"]) == 1


@pytest.mark.usefixtures("here", "offline")
@pytest.mark.parametrize(
    ("error", "status", "start"),
    [
        (KeyboardInterrupt(), 130, "stopped. "),
        (HeadLostError("The head is lost."), 1, "error: The head is lost.\n"),
    ],
)
def test_an_interrupted_command_says_how_to_resume(monkeypatch, capsys, error, status, start):
    monkeypatch.setattr(course, "run", Mock(side_effect=error))
    assert main(["few.yaml", "--output", "stopped"]) == status
    err = capsys.readouterr().err
    assert err.startswith(
        f"{start}0 of 3 members have finished, and 0 trials are kept; resume with: "
    )
    assert err.endswith("raysel tune --resume stopped\n")
