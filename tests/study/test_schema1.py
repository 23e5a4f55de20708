"""Studies of raysel 0.1, whose journals have no schema version, are read, exported, uploaded and resumed."""

from __future__ import annotations

import itertools
import json
import platform
import shutil
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from mlflow.tracking import MlflowClient
from small_studies import make_study, raw_config, run_serially, write_digits

from raysel import select, tune
from raysel.api import open_study
from raysel.config import config_from_dict
from raysel.data.loading import load_dataset
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import read_journal

STORED = Path(__file__).parent / "data/schema1"


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A folder with both studies and their data; MLflow's store is a file in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///mlflow.db")
    write_digits(tmp_path / "few.npz")
    for name in ("finished", "interrupted"):
        shutil.copytree(STORED / name, tmp_path / name)
    return tmp_path


def lines(study: Path) -> list[dict]:
    return list(read_journal(study / "journal.jsonl"))


def rewrite_versions(study: Path, **changes: str) -> None:
    """Write other versions into a stored study."""
    first, *rest = lines(study)
    first["versions"] |= changes
    (study / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [first, *rest]))


def with_libraries_of_today(study: Path) -> None:
    """Replace the versions of the libraries that the study was written with; only raysel's own stays."""
    rewrite_versions(
        study, python=platform.python_version(), **{n: version(n) for n in ("numpy", "scipy", "scikit-learn")}
    )


def test_the_stored_studies_are_of_schema_1_and_of_these_data(here):
    for name in ("finished", "interrupted"):
        assert all("schema" not in line for line in lines(STORED / name))
        assert lines(STORED / name)[0]["data_hash"] == load_dataset(here / "few.npz").content_hash
    assert [line["kind"] for line in lines(STORED / "interrupted")] == ["study", *["trial"] * 3]
    config = raw_config(solver__params={"max_iter": 4})
    assert lines(STORED / "finished")[0]["config"]["solver"] == config["solver"]


def test_its_configuration_is_read_with_the_rule_of_raysel_0_1(here):
    for name in ("finished", "interrupted"):
        written = lines(here / name)[0]["config"]
        stored = StoredStudy.read(StudyDirectory(here / name)).study
        assert stored.choose_n == "mean"
        assert stored.config == {**written, "evaluation": {**written["evaluation"], "choose_n": "mean"}}
        assert config_from_dict(stored.config).to_dict()["evaluation"].items() >= stored.config["evaluation"].items()


def test_a_finished_study_is_read_and_exported(here):
    result = open_study(here / "finished")
    assert result.has_final
    assert (result.report, result.redundancy) == ({}, {})  # not recorded then
    assert result.stability(5).value == result.ranking(5).stability.value
    assert result.summary().redundancy.isna().all()
    raw = {line["fold"]: line for line in lines(STORED / "finished") if line["kind"] == "refit"}
    assert [refit.feature_scores for refit in result.refits] == [line["feature_scores"] for line in raw.values()]
    assert result.stored.study.labels == ["n4", "n8"]
    assert result.stored.study.versions["raysel"] == "0.1.0"
    assert not result.cut
    assert select.main(["finished", "--output", "kept", "--top", "5"]) == 0
    rows = (here / "kept/ranking.csv").read_text().splitlines()
    assert len(rows) == 1 + 64
    manifest = json.loads((here / "kept/manifest.json").read_text())
    (end,) = (line for line in lines(STORED / "finished") if line["kind"] == "end")
    assert manifest["scores"]["test_mean"] == end["metrics"]["test_accuracy"]


def test_a_finished_study_is_uploaded_as_it_was(here):
    uri = f"sqlite:///{here}/again.db"
    assert tune.main(["--replay", "finished", "--set", f"tracking.uri={uri}"]) == 0
    client = MlflowClient(uri)
    runs = {run.data.tags["raysel.key"]: run for run in client.search_runs(["1"])}
    written = lines(STORED / "finished")
    params = {key: str(value) for key, value in written[0]["params"].items()}
    assert runs["study"].data.params == params | {"evaluation.choose_n": "mean"}
    now = {"test_accuracy_over_n"}  # the test scores by number of features, which raysel 0.1 did not upload
    found = {name: value for name, value in runs["study"].data.metrics.items() if name not in now}
    assert found == written[-1]["metrics"]
    assert runs["study"].data.tags["mlflow.note.content"] == written[-1]["note"]
    for line in written:  # raysel 0.1 stored MLflow's view itself
        if line["kind"] in ("trial", "refit"):
            key = f"trial:{line['id']}" if line["kind"] == "trial" else f"refit:{line['fold']}:{line['trial']}"
            run = runs.pop(key)
            assert run.info.status == "FINISHED"
            own = {key: value for key, value in run.data.params.items() if not key.startswith("log10_")}
            assert own == {key: str(value) for key, value in line["params"].items()}
            last = {key: curve[-1] for key, curve in line["curves"].items()}
            now = {"test_accuracy", "test_accuracy_std"} if line.get("fold") == "final" else set()  # on the model's run
            assert {k: v for k, v in run.data.metrics.items() if k not in now} == {**line["metrics"], **last}
            assert line.get("tags", {}).items() <= run.data.tags.items()
            for key, curve in line["curves"].items():
                history = client.get_metric_history(run.info.run_id, key)
                assert sorted((point.step, point.value) for point in history) == list(enumerate(curve))
    assert set(runs) == {"study"}


@pytest.mark.parametrize("executor", ["serial", pytest.param("ray", marks=pytest.mark.slow)])
def test_an_interrupted_study_is_resumed_to_what_a_fresh_one_finds(here, executor, request, capsys):
    if executor == "ray":
        request.getfixturevalue("ray_here")
    with_libraries_of_today(here / "interrupted")
    before = (here / "interrupted/journal.jsonl").read_bytes()
    assert tune.main(["--resume", "interrupted", "--quiet"]) == 2
    assert "evaluation.choose_n: mean -> one_se" in capsys.readouterr().err
    changes = (f"search.executor={executor}", "evaluation.choose_n=mean")
    assert tune.main(["--resume", "interrupted", "--quiet", *itertools.chain(*(("--set", c) for c in changes))]) == 0
    assert (here / "interrupted/journal.jsonl").read_bytes().startswith(before)
    schemas = [line.get("schema") for line in lines(here / "interrupted") if line["kind"] == "study"]
    assert schemas == [None, 2]

    resumed = StoredStudy.read(StudyDirectory(here / "interrupted"))
    trials, refits, _ = run_serially(
        make_study(here / "few.npz", solver__params={"max_iter": 4}, evaluation__choose_n="mean"), here / "fresh"
    )
    assert resumed.status == "finished"
    assert list(resumed.refits) == [fresh.fold for fresh, _ in refits] == ["outer0", "outer1", "final"]
    for fresh, _ in refits:
        refit = resumed.refits[fresh.fold]
        assert (refit.trial, refit.inner_score, refit.test_scores) == (
            fresh.trial,
            fresh.inner_score,
            fresh.test_scores,
        )
        assert refit.feature_scores == fresh.feature_scores
    # The trials of raysel 0.1, computed on another machine perhaps, are those of today.
    assert {record.id for record in resumed.trials} == set(trials)
    for record in resumed.trials:
        for fold, trace in record.folds.items():
            for inner, fresh in zip(trace.inner, trials[record.id]["folds"][fold]["inner"], strict=True):
                np.testing.assert_allclose(inner.objective, fresh["objective"], rtol=1e-9)
                assert inner.scores == fresh["scores"]


def test_a_study_of_another_0_1_is_refused(here, capsys):
    with_libraries_of_today(here / "interrupted")
    rewrite_versions(here / "interrupted", raysel="0.1.0+00000000")
    assert tune.main(["--resume", "interrupted"]) == 2
    said = capsys.readouterr().err
    assert "cannot be resumed" in said
    assert "numbers: the source code of the solver" in said
    assert "0.1.0+00000000 by raysel 0.1.0" in said
