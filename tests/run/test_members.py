"""Run of a comparison: members are ordinary studies, failures stay with their member, and a stop
loses nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from small_comparisons import found, members, raw_comparison, write_comparison_config
from small_studies import ENDLESS, NoUpload, Watcher

from raysel.config import load_comparison
from raysel.core.errors import DirectoryError, RayStartError, StudyError
from raysel.evaluation.lost_trials import worker_died
from raysel.execution.serial import SerialExecutor
from raysel.run import course
from raysel.run.api import prepare_study, resume_comparison, run_comparison
from raysel.select import main as select_main
from raysel.tracking.journal import last_study, read_journal

FOLDERS = ("smr-small", "svm", "z")


def test_members_are_the_studies_that_run_alone_on_the_same_folds(finished, tmp_path, monkeypatch):
    monkeypatch.chdir(finished.study.parent)
    comparison = load_comparison("few.yaml")
    for label, folder in zip(comparison.compare, FOLDERS, strict=True):
        alone = comparison.members[label].to_dict()
        alone["cv"]["plan"] = str(finished.study / "plan.json")
        study = prepare_study(alone)
        course.run(study, tmp_path / folder, SerialExecutor(study), (), NoUpload)
        assert found(tmp_path / folder) == found(finished.study / folder)
        assert (finished.study / folder / "plan.json").read_bytes() == (
            finished.study / "plan.json"
        ).read_bytes()
        own, shared = (
            last_study(root / folder / "journal.jsonl") for root in (tmp_path, finished.study)
        )
        assert own.data_remarks == shared.data_remarks  # which are made once for all members


def test_a_member_is_an_ordinary_study(finished, capsys):
    assert select_main([str(finished.study / "smr-small")]) == 0
    assert "few-smr-small" in capsys.readouterr().out
    assert {path.name for path in finished.study.iterdir()} >= {
        "config.yaml",
        "plan.json",
        "members.json",
        *FOLDERS,
    }
    assert (
        load_comparison(finished.study / "config.yaml").members
        == load_comparison(
            finished.study.parent / "few.yaml",
            ["tracking.uri=sqlite:///mlflow.db", "dataset.scaling=unit"],
        ).members
    )
    listed = json.loads((finished.study / "members.json").read_text())
    assert (listed["schema"], listed["name"], listed["reference"]) == (1, "few", "SMR, small")
    assert listed["members"][0] == {
        "label": "SMR, small",
        "folder": "smr-small",
        "solver": "smr",
        "reconstructed": False,
        "error": None,
        "transductive": False,
    }
    assert {"comparison.csv", "comparison.md", "comparison.svg"} <= {
        path.name for path in (finished.study / "comparison").iterdir()
    }


@pytest.mark.slow
@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("at", [3, 17])
def test_what_was_interrupted_and_resumed_is_what_was_not(finished, here, at):
    with pytest.raises(KeyboardInterrupt):
        run_comparison("few.yaml", output="compared", progress=Watcher(at))
    before = {f: here / "compared" / f / "journal.jsonl" for f in FOLDERS}
    kept = {f: path.read_bytes() for f, path in before.items() if path.exists()}
    assert kept
    assert {entry["error"] for entry in members(here / "compared").values()} == {None}
    resume_comparison("compared", progress=False)
    for folder in FOLDERS:
        assert found(here / "compared" / folder) == found(finished.study / folder)
        assert before[folder].read_bytes().startswith(kept.get(folder, b""))
        ids = Counter(r["id"] for r in read_journal(before[folder]) if r["kind"] == "trial")
        assert max(ids.values()) == 1  # no trial ran twice


@pytest.mark.usefixtures("offline")
def test_a_member_that_fails_says_why_and_the_others_run(here):
    source = raw_comparison()
    bad = {
        "solver": ENDLESS | {"space": {"gamma1": [0.01, 0.02]}},
        "search": {"trial_timeout": 0.01},
    }
    source["compare"] = {
        "endless": bad,
        "SVM": source["compare"]["SVM"],
        "z": source["compare"]["z"],
    }
    result = run_comparison(source, output="compared", progress=False)
    assert result.path == Path("compared")
    failed, svm, z = (members(here / "compared")[folder] for folder in ("endless", "svm", "z"))
    assert "trial_timeout" in failed["error"] or "no configuration" in failed["error"]
    assert svm["error"] is z["error"] is None
    # Tried again when it is resumed, while what has finished is not touched.
    svm_files = {p: p.stat().st_mtime_ns for p in (here / "compared" / "svm").glob("*.jsonl")}
    n_starts = sum(
        r["kind"] == "study" for r in read_journal(here / "compared" / "endless" / "journal.jsonl")
    )
    resume_comparison("compared", progress=False)
    assert {p: p.stat().st_mtime_ns for p in svm_files} == svm_files
    records = list(read_journal(here / "compared" / "endless" / "journal.jsonl"))
    assert sum(r["kind"] == "study" for r in records) == n_starts + 1


@pytest.mark.usefixtures("offline")
def test_a_trial_of_a_finished_member_whose_worker_was_killed_is_run_again(finished, here):
    shutil.copytree(finished.study, here / "compared")
    journal = here / "compared" / "z" / "journal.jsonl"
    records = list(read_journal(journal))
    trial = next(record for record in records if record["kind"] == "trial")
    trial |= {"status": "failed", "error": worker_died(3), "folds": {}}
    journal.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    resume_comparison("compared", progress=False)
    resumed = found(here / "compared" / "z")
    resumed["trials"] = [record for record in resumed["trials"] if record["status"] != "failed"]
    assert resumed == found(finished.study / "z")


@pytest.mark.usefixtures("offline")
def test_a_method_that_ends_python_does_not_end_the_other_members(here, monkeypatch):
    (here / "leaving.py").write_text(
        "from sklearn.svm import LinearSVC\n"
        "class Leaving(LinearSVC):\n"
        "    def fit(self, X, y):\n"
        "        if len(X) > 35:\n"
        "            raise SystemExit(3)\n"
        "        return super().fit(X, y)\n"
    )
    monkeypatch.syspath_prepend(here)
    source = raw_comparison()
    source["compare"] = {
        "leaves": {"solver": {"name": "leaving.Leaving"}},
        "SVM": source["compare"]["SVM"],
    }
    result = run_comparison(source, output="compared", progress=False)
    assert [member.label for member in result.finished] == ["SVM"]
    assert members(here / "compared")["leaves"]["error"]


def test_a_study_in_the_folder_of_a_member_is_not_taken_for_it(finished, here):
    shutil.copytree(finished.study / "svm", here / "compared" / "svm")
    with pytest.raises(
        DirectoryError, match="compared/svm already holds a study; nothing was overwritten"
    ):
        run_comparison("few.yaml", output="compared", progress=False)
    assert not (here / "compared" / "members.json").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("offline")
def test_every_member_failing_is_a_failure(here):
    source = raw_comparison()
    bad = {"name": "smml", "params": ENDLESS["params"], "space": {"gamma1": [0.01]}}
    source["compare"] = {name: {"solver": bad, "search": {"trial_timeout": 0.01}} for name in "ab"}
    with pytest.raises(StudyError, match="every member failed; the first, a: "):
        run_comparison(source, output="compared", progress=False)
    assert all(entry["error"] for entry in members(here / "compared").values())


@pytest.mark.usefixtures("offline")
def test_members_can_be_added_and_not_taken_away(finished, here):
    shutil.copytree(finished.study, here / "compared")
    more = {"k best": {"solver": {"name": "sklearn.feature_selection.SelectKBest"}}}
    source = raw_comparison()
    source["compare"] = more | source["compare"]
    resume_comparison("compared", source, progress=False)
    assert list(members(here / "compared")) == ["k-best", *FOLDERS]
    assert found(here / "compared" / "svm") == found(finished.study / "svm")
    assert (here / "compared" / "k-best" / "plan.json").read_bytes() == (
        here / "compared" / "plan.json"
    ).read_bytes()
    with pytest.raises(
        DirectoryError, match="the member 'k best' of the comparison to resume is not in"
    ):
        resume_comparison("compared", raw_comparison(), progress=False)


def test_what_would_invalidate_a_member_is_refused_before_anything_runs(finished):
    before = {path: path.stat().st_mtime_ns for path in finished.study.rglob("journal.jsonl")}
    with pytest.raises(
        DirectoryError,
        match=r"compare\.z: .*cannot be resumed(.|\n)*solver\.params\.max_iter: 6 -> 7",
    ):
        resume_comparison(
            finished.study,
            raw_comparison(finished.study.parent / "few.npz"),
            {"compare.z.solver.params.max_iter": 7},
            progress=False,
        )
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_directory_that_is_not_empty_is_left_alone(finished, here):
    with pytest.raises(DirectoryError):
        run_comparison("few.yaml", output=finished.study, progress=False)
    with pytest.raises(DirectoryError):
        resume_comparison(here, progress=False)


ON_RAY = """
import signal, sys
import bare_process, ray
from raysel import run_comparison
from raysel.run import members
from small_studies import NoUpload
members.MLflowUploader, members.export_comparison = NoUpload, lambda *_: None
members.write_comparison_report = lambda _: None
def own(*_): pass
signal.signal(signal.SIGTERM, own)
started, init = [], ray.init
ray.init = lambda *a, **k: started.append(1) or init(*a, **k)
run_comparison("ray.yaml", output="ray", progress=False)
print(len(started), ray.is_initialized(), signal.getsignal(signal.SIGTERM) is own)
print("ray.air.integrations.mlflow" in sys.modules, "mlflow" in sys.modules)
"""


@pytest.mark.slow
def test_ray_is_started_once_for_all_members_and_leaves_the_process_as_it_was(finished, here):
    write_comparison_config(here / "ray.yaml", search={"max_concurrent": 1})
    token = here / ".ray/auth_token"
    token.parent.mkdir()
    token.write_text("a" * 64)
    token.chmod(0o644)  # as Ray made it in an earlier session
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    own = {"HOME": str(here), "PYTHONPATH": path, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    environment = {
        name: value for name, value in os.environ.items() if name != "RAY_AUTH_MODE"
    } | own
    command = [sys.executable, "-c", ON_RAY]
    done = subprocess.run(
        command, cwd=here, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["1", "False", "True", "False", "False"], done.stderr
    assert token.read_text() == "a" * 64
    assert token.stat().st_mode & 0o777 == 0o600
    for folder in FOLDERS:
        assert found(here / "ray" / folder) == found(finished.study / folder)


@pytest.mark.slow
@pytest.mark.usefixtures("offline")
def test_members_are_computed_in_this_process_where_ray_does_not_start(finished, here, monkeypatch):
    ray_session = MagicMock(
        side_effect=RayStartError("Ray cannot be started on this machine: timed out")
    )
    monkeypatch.setattr("raysel.execution.ray.session.ray_session", ray_session)
    run_comparison("few.yaml", {"search.executor": "ray"}, output="compared", progress=False)
    assert ray_session.call_count == 1
    for folder in FOLDERS:
        assert found(here / "compared" / folder) == found(finished.study / folder)
