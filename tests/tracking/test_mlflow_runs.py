"""What a study looks like in a real MLflow store: every run once, with what the journal says."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import Journal, read_journal
from raysel.tracking.uploader import follow

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


@pytest.fixture(scope="module")
def logged(finished_study):
    """The study's directory, its journal by kind, MLflow's client and experiment."""
    directory = StudyDirectory(finished_study.study)
    assert follow(directory, None)  # where the machine was too slow for the study to wait
    records = list(read_journal(directory.journal))
    uri = records[0]["uri"]
    assert uri == f"sqlite:///{finished_study.study.parent}/runs/mlflow.db"  # was given relative
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - takes seconds

    client = MlflowClient(uri)
    return directory, records, client, client.get_experiment_by_name("few")


def runs_of(client, experiment):
    return {run.data.tags["raysel.key"]: run for run in client.search_runs([experiment.experiment_id])}


def everything(client, experiment):
    """All that a store says of an experiment's runs."""
    found = []
    for run in client.search_runs([experiment.experiment_id]):
        history = {
            key: [(m.step, m.value, m.timestamp) for m in client.get_metric_history(run.info.run_id, key)]
            for key in run.data.metrics
        }
        files = sorted(file.path for file in client.list_artifacts(run.info.run_id))
        found.append((dict(run.info), run.data.params, run.data.tags, history, files))
    return sorted(found, key=repr)


def refit_keys(records):
    return {r["fold"]: f"refit:{r['fold']}:{r['trial']}" for r in records if r["kind"] == "refit"}


def test_each_run_is_there_once_below_the_studys(logged):
    _, records, client, experiment = logged
    runs = runs_of(client, experiment)
    trials = {f"trial:{r['id']}" for r in records if r["kind"] == "trial"}
    assert set(runs) == {"study", *refit_keys(records).values(), *trials}
    assert len(client.search_runs([experiment.experiment_id])) == len(runs) == 10
    top = runs.pop("study")
    assert "mlflow.parentRunId" not in top.data.tags
    assert {run.data.tags["mlflow.parentRunId"] for run in runs.values()} == {top.info.run_id}
    assert {run.info.status for run in (top, *runs.values())} == {"FINISHED"}
    assert {run.data.tags["raysel.kind"] for key, run in runs.items() if key in trials} == {"trial"}


def test_parameters_curves_and_scores_are_the_journals(logged):
    _, records, client, experiment = logged
    runs = runs_of(client, experiment)
    for record in records:
        if record["kind"] not in ("trial", "refit"):
            continue
        run = runs[f"trial:{record['id']}" if record["kind"] == "trial" else refit_keys(records)[record["fold"]]]
        assert record["name"] in run.info.run_name
        assert run.data.params == {key: str(value) for key, value in record["params"].items()}
        assert set(run.data.metrics) == {*record["curves"], *record["metrics"]}
        for key, value in record["metrics"].items():
            assert run.data.metrics[key] == value
        for key, curve in record["curves"].items():
            history = client.get_metric_history(run.info.run_id, key)
            assert [(m.step, m.value) for m in sorted(history, key=lambda m: m.step)] == list(enumerate(curve))
            assert run.data.metrics[key] == curve[-1]
        if record["kind"] == "trial":
            assert run.data.tags["raysel.status"] == record["status"]
            assert "val_accuracy" in run.data.metrics  # of zero solutions too
        assert record["started"] * 1000 - 1 <= run.info.start_time <= run.info.end_time
    top, study = runs["study"], records[0]
    assert top.data.params["dataset.path"] == "few.npz"
    assert top.data.params["config_hash"] == study["config_hash"]
    assert top.data.params["data_hash"] == study["data_hash"]
    assert top.data.metrics == {key: pytest.approx(value) for key, value in records[-1]["metrics"].items()}


def test_the_models_run_holds_the_ranking_and_each_fold_its_own(logged):
    directory, records, client, experiment = logged
    runs, keys = runs_of(client, experiment), refit_keys(records)

    def artifacts(key):
        run = runs[key]
        return {Path(f.path).name: Path(client.download_artifacts(run.info.run_id, f.path)).read_bytes()
                for f in client.list_artifacts(run.info.run_id)}  # fmt: skip

    final = artifacts(keys["final"])
    exported = {path.name: path.read_bytes() for path in directory.ranking.iterdir()}
    assert exported.items() <= final.items()
    for fold in ("outer0", "outer1"):
        assert artifacts(keys[fold]) == {f"{fold}.csv": (directory.folds / f"{fold}.csv").read_bytes()}
    top = artifacts("study")
    for path in (directory.config, directory.plan, directory.traces):
        assert top[path.name] == path.read_bytes()


def test_logging_the_journal_again_changes_nothing(logged):
    directory, _, client, experiment = logged
    before = everything(client, experiment)
    assert follow(directory, None)
    assert everything(client, experiment) == before


def test_what_was_half_logged_is_completed_without_a_second_run(logged, tmp_path):
    from raysel.tracking.mlflow_runs import MLflowRuns  # noqa: PLC0415 - takes seconds

    _, records, client, _ = logged
    # Long and strange, failed, without curves: whatever a trial may be, its run is there.
    record = {
        **records[1],
        "id": "0" * 16,
        "name": "init=[bold] " + "long " * 100,
        "status": "failed",
        "folds": {},
        "curves": {},
        "error": "Traceback\n" + "x" * 20_000 + "\nFloatingPointError: the objective became inf",
    }
    half = StudyDirectory(tmp_path)
    with Journal(half.journal) as journal:
        journal.append({**records[0], "id": "other", "experiment": "half [1]"})
        journal.append(records[1])
    # Killed between a run's creation and its numbers.
    MLflowRuns(tmp_path, next(read_journal(half.journal)))._open_run(f"trial:{records[1]['id']}", "killed", 1.0, None)
    assert follow(half, None)
    experiment = client.get_experiment_by_name("half [1]")
    client.delete_experiment(experiment.experiment_id)  # by hand, in the web page: it comes back
    with Journal(half.journal) as journal:
        journal.append(record)
        journal.append({"kind": "end", "status": "interrupted", "started": record["started"], "ended": record["ended"],
                        "metrics": {}, "artifacts": [], "model_artifacts": [], "note": "stopped"})  # fmt: skip
    assert follow(half, None)
    runs = runs_of(client, experiment)
    assert set(runs) == {"study", f"trial:{records[1]['id']}", f"trial:{record['id']}"}
    assert len(client.search_runs([experiment.experiment_id])) == len(runs)
    assert runs[f"trial:{records[1]['id']}"].data.metrics == {
        **{key: curve[-1] for key, curve in records[1]["curves"].items()},
        **records[1]["metrics"],
    }
    assert {key: run.info.status for key, run in runs.items()} == {
        "study": "KILLED",
        f"trial:{records[1]['id']}": "FINISHED",
        f"trial:{record['id']}": "FAILED",
    }
    failed = runs[f"trial:{record['id']}"]
    assert failed.info.run_name == record["name"][:250]
    assert failed.data.tags["raysel.error"].endswith("FloatingPointError: the objective became inf")


def test_a_stability_that_is_undefined_now_does_not_stay_as_it_was(logged, tmp_path):
    """A study may grow into one whose winners select nothing."""
    _, records, client, _ = logged
    grown = StudyDirectory(tmp_path)
    end = {"kind": "end", "status": "finished", "started": 1.0, "artifacts": [], "model_artifacts": [], "note": "ended"}
    with Journal(grown.journal) as journal:
        for ended, stability in ((2.0, 0.75), (3.0, None)):
            journal.append({**records[0], "id": "grown", "experiment": "grown"})
            journal.append({**end, "ended": ended, "metrics": {"stability": stability}})
    assert follow(grown, None)
    (run,) = client.search_runs([client.get_experiment_by_name("grown").experiment_id])
    assert math.isnan(run.data.metrics["stability"])
