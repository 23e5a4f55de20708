"""Where a study's runs go in MLflow: a variable that is set later, and the key that turns the
upload off.
"""

from __future__ import annotations

import pytest
from attack_studies import change_config, change_journal
from small_comparisons import write_comparison_config
from small_studies import write_yaml

import raysel
from raysel.run.api import prepare_study
from raysel.run.recording import resumed_record
from raysel.tracking.places import note_place
from raysel.tune import main

DONE = {"error": "", "logged": 0}


@pytest.mark.parametrize(
    ("named", "variable", "used"),
    [
        (None, "sqlite:///new.db", "new.db"),
        (None, "", "old.db"),
        ("sqlite:///old.db", "sqlite:///new.db", "old.db"),  # the configuration comes first
    ],
)
def test_a_replay_and_a_resumed_study_obey_a_newly_set_variable(
    copied, monkeypatch, tmp_path, named, variable, used
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", variable)
    change_journal(copied, "study", lambda line: line["config"]["tracking"].pop("uri", None))
    change_journal(copied, "study", lambda line: line.update(uri=f"sqlite:///{tmp_path}/old.db"))
    change_config(copied, tracking={"uri": named} if named else {})
    if named:
        change_journal(copied, "study", lambda line: line["config"]["tracking"].update(uri=named))
    note_place(f"sqlite:///{tmp_path}/old.db")
    asked = []
    monkeypatch.setattr("raysel.cli.replay.replay", lambda _, uri, *__: asked.append(uri) or DONE)
    assert main(["--replay", str(copied)]) == 0
    before = raysel.open_study(copied).stored.study
    now = resumed_record(prepare_study(copied / "config.yaml"), before, copied)
    assert asked == [now.uri] == [f"sqlite:///{tmp_path / used}"]


@pytest.mark.usefixtures("offline")
def test_a_key_turns_mlflow_off(here, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:////proc/mlflow.db")  # cannot be written
    for started in ("course", "members"):
        monkeypatch.setattr(f"raysel.run.{started}.MLflowUploader", None)
    off = ["--set", "tracking.mlflow=false"]
    write_yaml(here / "few.yaml")
    write_comparison_config(here / "several.yaml", evaluation__references=False)
    assert main(["few.yaml", "--dry-run", *off]) == 0
    for config in ("few.yaml", "several.yaml"):
        assert main([config, "--output", config[:3], *off]) == 0
        said = capsys.readouterr().out
        assert "MLflow  off by tracking.mlflow: false; to upload later:" in said
        assert f"raysel tune --replay {config[:3]}" in said
        assert "not all runs" not in said
    assert not list(here.rglob("mlflow.db")) + list(here.rglob("tracking.json"))
