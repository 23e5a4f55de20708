"""Going on with a study: from wherever its journal was cut, and with more to try than before."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from small_studies import (
    ENDLESS,
    NoUpload,
    raw_config,
    run_offline,
    timeless,
    write_digits,
    write_yaml,
)

from raysel.config import config_from_dict
from raysel.execution.serial import SerialExecutor
from raysel.run import course
from raysel.study.definition import Study
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import Journal, read_journal, read_records
from raysel.tracking.journal_upload import replay
from raysel.tracking.records import EndRecord
from raysel.tune import main


def journal(study: Path) -> list[dict]:
    return list(read_journal(study / "journal.jsonl"))


def runs(uri: str) -> dict[str, tuple[str, str, int]]:
    """MLflow's runs by key; each is there once."""
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - takes seconds

    client = MlflowClient(uri)
    actual = client.search_runs(
        [e.experiment_id for e in client.search_experiments()], max_results=1000
    )
    assert max(Counter(run.data.tags["raysel.key"] for run in actual).values()) == 1
    return {
        r.data.tags["raysel.key"]: (r.info.run_id, r.info.status, r.info.end_time) for r in actual
    }


def numbers(study: Path) -> dict:
    """All numbers of a study, without times."""
    records = journal(study)
    return {
        "trials": sorted(
            (timeless(r) for r in records if r["kind"] == "trial"), key=lambda r: r["id"]
        ),
        "refits": {r["fold"]: timeless(r) for r in records if r["kind"] == "refit"},
        "ranking": (study / "ranking" / "ranking.csv").read_bytes(),
        "pictures": [path.read_bytes() for path in sorted((study / "ranking").glob("*.png"))],
        "traces": (study / "traces.parquet").read_bytes(),
        "scores": json.loads((study / "ranking" / "manifest.json").read_text())["scores"],
        "noise": [r for r in records if r["kind"] == "noise"],  # once, whatever was cut
    }


def cut(finished: Path, to: Path, share: float) -> Path:
    """The study as a kill would have left it with this share of its journal's bytes."""
    to.mkdir()
    for name in ("config.yaml", "plan.json"):
        shutil.copy(finished / name, to / name)
    raw = (finished / "journal.jsonl").read_bytes()
    first = raw.index(b"\n") + 1
    (to / "journal.jsonl").write_bytes(raw[: max(first, int(share * len(raw)))])
    if (to / "journal.jsonl").read_bytes().count(b'"kind":"refit"') == 3:
        for name in ("model.skops", "model.skops.hmac"):
            shutil.copy(finished / name, to / name)
        shutil.copytree(finished / "folds", to / "folds")
    return to


def resume_where_it_was_cut(finished, study, share, *changes):
    """Cut a study's journal and resume it: what was there stays, and the numbers are those of
    the whole study.
    """
    cut(finished, study, share)
    whole = (study / "journal.jsonl").read_bytes().split(b"\n")[:-1]
    assert (
        main(["--resume", str(study), *(part for change in changes for part in ("--set", change))])
        == 0
    )
    assert (study / "journal.jsonl").read_bytes().split(b"\n")[: len(whole)] == whole
    found = numbers(study)
    of_outer = [refit for fold, refit in found["refits"].items() if fold != "final"]
    assert all(len(refit["pseudo_values"]) == refit["n_test"] > 0 for refit in of_outer)
    assert found == numbers(
        finished
    )  # the pseudo-values of the refits too, on Ray and in this process
    ids = [r["id"] for r in journal(study) if r["kind"] == "trial"]
    assert len(ids) == len(set(ids)) == 6


def of_schema_2(line: dict) -> dict:
    """A line as raysel up to 0.7 wrote it: the estimator is the classifier, and C its only
    setting.
    """
    line = json.loads(json.dumps(line))
    if line["kind"] == "study":
        line["schema"], evaluation = 2, line["config"]["evaluation"]
        evaluation["classifier"] = evaluation.pop("estimator")
    for part in (
        (line, *line.get("folds", {}).values()) if line["kind"] in ("trial", "refit") else ()
    ):
        if "settings" in part:
            part["C"] = [setting["C"] for setting in part.pop("settings")]
    if line["kind"] == "refit":
        named = line.pop("reference_settings")
        line["reference_c"] = {
            name: [setting["C"] for setting in settings] for name, settings in named.items()
        }
    return line


@pytest.mark.slow
@pytest.mark.usefixtures("without_report")
def test_a_journal_of_schema_2_whose_inner_folds_chose_c_is_read_and_resumed(tmp_path):
    write_digits(tmp_path / "few.npz")
    svm = {"estimator": "linear_svm", "C": [0.001, 0.1], "n_features": [4, 8]}
    raw = raw_config(tmp_path / "few.npz", solver__space={"alpha": [0.01, 0.1]}, evaluation=svm)
    run_offline(raw, tmp_path / "whole")
    lines = journal(tmp_path / "whole")
    assert lines[1]["folds"]["outer0"]["settings"]
    for name, n in (("read", len(lines)), ("cut", 2)):
        cut(tmp_path / "whole", tmp_path / name, 0)
        former = (json.dumps(of_schema_2(line)) + "\n" for line in lines[:n])
        (tmp_path / name / "journal.jsonl").write_text("".join(former))
    records = list(read_records(tmp_path / "whole" / "journal.jsonl"))
    assert list(read_records(tmp_path / "read" / "journal.jsonl")) == records
    study = Study.prepare(config_from_dict(raw))
    course.resume(
        study, StudyDirectory(tmp_path / "cut"), SerialExecutor(study), start_upload=NoUpload
    )
    found, expected = (numbers(tmp_path / name) for name in ("cut", "whole"))
    assert (
        len(found.pop("trials")) == len(expected.pop("trials")) == 2
    )  # the first as it was written
    assert found == expected


@pytest.mark.slow
@pytest.mark.usefixtures("without_mlflow", "without_report")
def test_a_journal_that_was_cut_between_the_refits_ends_the_same(
    finished_study, tmp_path, monkeypatch
):
    monkeypatch.chdir(finished_study.study.parent)
    resume_where_it_was_cut(finished_study.study, tmp_path / "study", 0.97)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here", "without_report")
def test_a_journal_that_was_cut_between_the_trials_ends_the_same_on_ray(
    finished_study, tmp_path, monkeypatch
):
    monkeypatch.chdir(finished_study.study.parent)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    changes = f"tracking.uri={uri}", "search.executor=ray"
    resume_where_it_was_cut(finished_study.study, tmp_path / "study", 0.5, *changes)
    logged = runs(uri)
    assert len(logged) == 10
    assert {status for _, status, _ in logged.values()} == {"FINISHED"}


@pytest.mark.slow
@pytest.mark.usefixtures("without_report")
def test_a_larger_sample_uses_what_is_there(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    write_digits(tmp_path / "few.npz")
    space = {"alpha": {"loguniform": [0.01, 0.5]}, "rank": {"randint": [1, 4]}}
    search = {"executor": "serial", "method": "random", "num_samples": 3, "max_concurrent": 1}
    write_yaml(tmp_path / "few.yaml", solver__space=space, search=search)
    assert main(["few.yaml", "--output", "small"]) == 0
    small, before = journal(tmp_path / "small"), runs(uri)
    assert main(["few.yaml", "--resume", "small", "--set", "search.num_samples=7"]) == 0
    grown = journal(tmp_path / "small")
    assert grown[: len(small)] == small
    assert [r["kind"] for r in grown[len(small) : len(small) + 5]] == ["study", *["trial"] * 4]
    after = runs(uri)
    trials = {key for key in before if key.startswith("trial")}
    assert {key: after[key] for key in trials} == {key: before[key] for key in trials}
    assert sum(key.startswith("trial") for key in after) == 7
    assert after["study"][1] == "FINISHED"

    raw = raw_config(solver__space=space, search={**search, "num_samples": 7})
    run_offline(raw, tmp_path / "large")
    assert numbers(tmp_path / "small") == numbers(tmp_path / "large")
    capsys.readouterr()
    assert main(["few.yaml", "--resume", "small", "--set", "search.num_samples=2"]) != 0
    assert "5 of the configurations that were tried are not in it" in capsys.readouterr().err


def test_an_interrupted_study_offers_to_go_on_but_not_to_a_quiet_command(
    finished_study, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(finished_study.study.parent)
    study = cut(finished_study.study, tmp_path / "study", 0.6)
    n_trials = sum(r["kind"] == "trial" for r in journal(study))
    assert main(["few.yaml", "--output", str(study)]) == 2
    printed = capsys.readouterr()
    assert (
        f"killed after {n_trials} of 6 trials. To resume it: raysel tune --resume {study}"
        in printed.out
    )
    assert f"{study} already holds a study" in printed.err
    assert journal(study)[-1]["kind"] != "end"
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes any output for a terminal
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert main(["few.yaml", "--output", str(study), "--quiet"]) == 2
    printed = capsys.readouterr()
    assert (printed.out, "already holds a study" in printed.err) == ("", True)


@pytest.mark.slow
def test_a_lost_mlflow_store_is_filled_again(finished_study, tmp_path):
    directory = StudyDirectory(tmp_path / "study")
    shutil.copytree(finished_study.study, directory.path)
    uri = f"sqlite:///{tmp_path}/elsewhere.db"
    assert main(["--replay", str(directory.path), "--set", f"tracking.uri={uri}"]) == 0
    once = runs(uri)
    assert len(once) == 10
    assert main(["--replay", str(directory.path), "--set", f"tracking.uri={uri}"]) == 0
    assert runs(uri) == once
    assert replay(directory, "http://127.0.0.1:9")["error"]


@pytest.mark.slow
@pytest.mark.usefixtures("without_mlflow", "without_report")
def test_a_finished_study_that_is_resumed_has_each_figure_once_in_mlflow(
    finished_study, tmp_path, monkeypatch
):
    monkeypatch.chdir(finished_study.study.parent)
    directory = StudyDirectory(tmp_path / "study")
    shutil.copytree(finished_study.study, directory.path)
    ends = [record for record in journal(directory.path) if record["kind"] == "end"]
    uri = f"sqlite:///{tmp_path}/elsewhere.db"
    assert main(["--resume", str(directory.path), "--set", f"tracking.uri={uri}"]) == 0
    assert [record for record in journal(directory.path) if record["kind"] == "end"] == 2 * ends
    monkeypatch.chdir(tmp_path)  # where MLflow puts the files of new experiments
    assert replay(directory, uri)["complete"]
    with closing(sqlite3.connect(tmp_path / "elsewhere.db")) as store:
        twice = store.execute(
            "SELECT key FROM metrics GROUP BY run_uuid, key, step HAVING count(*) > 1"
        )
        assert twice.fetchall() == []


def test_a_half_written_line_is_cut_before_the_next(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"kind":"study"}\n{"kind":"trial","id"' + b"x" * 200_000)
    with Journal(path) as opened:
        opened.append(EndRecord("failed", 1.0, 2.0))
    assert [record["kind"] for record in read_journal(path)] == ["study", "end"]
    path.write_bytes(b'{"kind":"st')
    with Journal(path):
        assert path.read_bytes() == b""


@pytest.mark.slow
@pytest.mark.usefixtures("without_mlflow", "without_report")
def test_a_time_budget_ends_the_trials_and_a_quiet_resume_makes_the_rest(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / "few.npz")
    write_yaml(tmp_path / "few.yaml", solver__space={"alpha": [2.0, 3.0, 0.01, 0.02, 0.03]})
    assert (
        main(["few.yaml", "--output", "study", "--set", "search.time_budget=1e-3"]) == 1
    )  # nothing was tried at all
    assert "no configuration has a score" in capfd.readouterr().err
    assert main(["--resume", "study", "--quiet", "--set", "search.time_budget=null"]) == 0
    assert capfd.readouterr() == ("study\n", "")
    assert sum(r["kind"] == "trial" for r in journal(tmp_path / "study")) == 5


@pytest.mark.slow
@pytest.mark.usefixtures("without_mlflow", "without_report")
def test_too_many_failures_end_a_study(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / "few.npz")
    params = {"max_iter": 3, "alpha_scale": "absolute", "p": 0.5, "alpha": 1e250}
    write_yaml(
        tmp_path / "few.yaml",
        solver__params=params,
        solver__space={"zeta": [1e300, 1e299, 1e298, 1e-10]},
    )
    assert main(["few.yaml", "--output", "study", "--set", "search.max_failures=1"]) == 1
    err = capsys.readouterr().err
    assert "more than search.max_failures=1" in err
    assert "FloatingPointError" in err
    assert main(["--resume", "study", "--set", "search.max_failures=null"]) == 0
    assert sorted(r["status"] for r in journal(tmp_path / "study") if r["kind"] == "trial") == [
        *["failed"] * 3,
        "finished",
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("without_mlflow", "without_report")
def test_a_trial_over_its_time_is_ended(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / "few.npz")
    write_yaml(
        tmp_path / "few.yaml",
        solver={
            "name": "smml",
            "params": {"gamma1": 0.01, "gamma2": 0.01, "tol": 0.0},
            "space": {"max_iter": [2, ENDLESS["params"]["max_iter"]]},
        },
        search__trial_timeout=20.0,
        cv__final=False,
    )
    assert main(["few.yaml", "--output", "study", "--set", "search.trial_timeout=1.0"]) == 0
    trials = {
        r["params"]["max_iter"]: r for r in journal(tmp_path / "study") if r["kind"] == "trial"
    }
    assert trials[2]["status"] == "finished"
    assert trials[10_000_000]["status"] == "failed"
    for fold in trials[10_000_000]["folds"].values():
        assert "TimeoutError: over search.trial_timeout: 1 s" in fold["error"]
