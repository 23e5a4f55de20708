"""Studies of raysel 0.1, whose journals have no schema version, are read, exported and uploaded.

They are resumed only if the code that computes numbers has not changed, which it has since.
"""

from __future__ import annotations

import json
import platform
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient
from mlflow_servers import rounded
from small_studies import NoUpload, raw_config, run_offline, write_digits

from raysel import select, tune
from raysel.base.registry import solver_class
from raysel.cli.main import main as run_command
from raysel.config import config_from_dict
from raysel.core.errors import DataError
from raysel.data.loading import load_dataset
from raysel.execution.serial import SerialExecutor
from raysel.run import course
from raysel.run.api import open_study, prepare_study
from raysel.study.identity import numbers_hash
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
    (study / "journal.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in [first, *rest])
    )


def with_libraries_of_today(study: Path) -> None:
    """Replace the versions of the libraries that the study was written with; only raysel's own
    stays.
    """
    rewrite_versions(
        study,
        python=platform.python_version(),
        **{n: version(n) for n in ("numpy", "scipy", "scikit-learn")},
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
        written["evaluation"]["estimator"] = written["evaluation"].pop("classifier")
        stored = StoredStudy.read(StudyDirectory(here / name)).study
        assert stored.choose_n == "mean"
        assert stored.config == {
            **written,
            "evaluation": {**written["evaluation"], "choose_n": "mean"},
        }
        assert (
            config_from_dict(stored.config).to_dict()["evaluation"].items()
            >= stored.config["evaluation"].items()
        )


def test_a_finished_study_is_read_and_exported(here):
    result = open_study(here / "finished")
    assert result.has_final
    assert (result.report, result.redundancy) == ({}, {})  # not recorded then
    assert result.stability(5).value == result.ranking(5).stability.value
    assert result.summary().redundancy.isna().all()
    raw = {line["fold"]: line for line in lines(STORED / "finished") if line["kind"] == "refit"}
    assert [refit.feature_scores for refit in result.refits] == [
        line["feature_scores"] for line in raw.values()
    ]
    assert result.stored.study.labels == ["n4", "n8"]
    assert result.stored.study.versions["raysel"] == "0.1.0"
    assert not result.cut
    assert select.main(["finished", "--top", "5"]) == 0
    assert run_command(["report", "finished"]) == 0
    assert result.plot_scores().get_legend_handles_labels()[1] == [
        "test ± SD over outer folds"
    ]  # inner: no curve
    with pytest.raises(
        DataError, match="has no model of outer0: an earlier version of raysel ran the study, or"
    ):
        result.fold_model("outer0")
    rows = (here / "finished/selection-top5/ranking.csv").read_text().splitlines()
    assert len(rows) == 1 + 64
    manifest = json.loads((here / "finished/selection-top5/manifest.json").read_text())
    (end,) = (line for line in lines(STORED / "finished") if line["kind"] == "end")
    assert manifest["scores"]["test_mean"] == end["metrics"]["test_accuracy"]


@pytest.mark.slow
def test_a_finished_study_is_uploaded_as_it_was(here):
    uri = f"sqlite:///{here}/again.db"
    assert tune.main(["--replay", "finished", "--set", f"tracking.uri={uri}"]) == 0
    client = MlflowClient(uri)
    runs = {run.data.tags["raysel.key"]: run for run in client.search_runs(["1"])}
    written = lines(STORED / "finished")
    params = {key: str(value) for key, value in written[0]["params"].items()}
    params["evaluation.estimator"] = params.pop("evaluation.classifier")
    assert runs["study"].data.params == params | {"evaluation.choose_n": "mean"}
    metrics = written[-1]["metrics"]
    score = {"test_score": metrics["test_accuracy"], "test_score_std": metrics["test_accuracy_std"]}
    assert runs["study"].data.metrics == rounded(metrics | score)
    assert runs["study"].data.tags["mlflow.note.content"] == written[-1]["note"]
    for line in written:  # raysel 0.1 stored MLflow's view itself
        if line["kind"] in ("trial", "refit"):
            key = (
                f"trial:{line['id']}"
                if line["kind"] == "trial"
                else f"refit:{line['fold']}:{line['trial']}"
            )
            run = runs.pop(key)
            assert run.info.status == "FINISHED"
            logarithm = run.data.params.pop("log10_alpha", None)  # raysel 0.1 did not upload it
            assert logarithm is None or 10 ** float(logarithm) == pytest.approx(
                line["params"]["alpha"]
            )
            assert run.data.params == {key: str(value) for key, value in line["params"].items()}
            metrics = {
                **line["metrics"],
                **{key: curve[-1] for key, curve in line["curves"].items()},
            }
            assert run.data.metrics == rounded(metrics)
            assert line.get("tags", {}).items() <= run.data.tags.items()
            for key, curve in line["curves"].items():
                history = client.get_metric_history(run.info.run_id, key)
                points = {f"{key} {point.step}": point.value for point in history}
                assert points == rounded({f"{key} {i}": value for i, value in enumerate(curve)})
    assert set(runs) == {"study"}


def test_an_interrupted_study_is_refused_because_numbers_have_changed(here, capsys):
    """linear_svm has its columns in another order, and constant features are never selected."""
    with_libraries_of_today(here / "interrupted")
    before = {
        path: path.read_bytes() for path in (here / "interrupted").iterdir() if path.is_file()
    }
    assert (
        tune.main(["--resume", "interrupted", "--quiet", "--set", "evaluation.choose_n=mean"]) == 2
    )
    said = capsys.readouterr().err
    assert "cannot be resumed" in said
    (change,) = (line.strip() for line in said.splitlines() if line.startswith("  "))
    assert change.startswith("numbers: the source code of the solver")
    assert "(0.1.0+bde55731 by raysel 0.1.0 -> " in change
    assert change.endswith("to continue, install raysel 0.1.0")
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.slow
def test_its_records_are_resumed_where_no_number_has_changed(here):
    """Were the code that computes numbers the same, as the journal is made to say, what it holds
    would be kept.
    """
    with_libraries_of_today(here / "interrupted")
    rewrite_versions(here / "interrupted", raysel=numbers_hash([solver_class("smr")]))
    directory = StudyDirectory(here / "interrupted")
    written = StoredStudy.read(directory)
    study = prepare_study(
        None, {"evaluation.choose_n": "mean", "pictures": []}, resumed=directory, tracked=False
    )
    result = course.resume(study, written.directory, SerialExecutor(study), start_upload=NoUpload)
    assert [trial.id for trial in StoredStudy.read(directory).trials[:3]] == [
        trial.id for trial in written.trials
    ]
    kinds = [line["kind"] for line in lines(here / "interrupted")]
    assert kinds == [
        "study",
        *["trial"] * 3,
        "study",
        *["trial"] * 3,
        "search",
        *["refit"] * 3,
        "noise",
        "end",
    ]
    afresh = run_offline(study.config.to_dict(), here / "afresh")
    found, expected = (
        [(r.fold, r.params, r.inner_score, r.test_scores, r.feature_scores) for r in each.refits]
        for each in (result, afresh)
    )
    assert found == expected
