"""What a study looks like in a real MLflow store: every run once, with what the journal says."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mlflow_servers import rounded

from raysel.evaluation.records import RefitRecord, TrialRecord
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import Journal, read_records
from raysel.tracking.journal_upload import tracking_status, upload_study
from raysel.tracking.records import EndRecord

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


@pytest.fixture(scope="module")
def logged(finished_study):
    """The study's directory, its records, MLflow's client and experiment."""
    directory = StudyDirectory(finished_study.study)
    assert upload_study(directory, None)  # where the machine was too slow for the study to wait
    records = list(read_records(directory.journal))
    uri = records[0].uri
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
    return {r.fold: f"refit:{r.fold}:{r.trial}" for r in records if isinstance(r, RefitRecord)}


def test_each_run_is_there_once_below_the_studys(logged):
    _, records, client, experiment = logged
    runs = runs_of(client, experiment)
    trials = {f"trial:{r.id}" for r in records if isinstance(r, TrialRecord)}
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
    trials = [record for record in records if isinstance(record, TrialRecord)]
    refits = [record for record in records if isinstance(record, RefitRecord)]
    assert (len(trials), len(refits)) == (6, 3)

    def curve_of(run, key):
        history = sorted(client.get_metric_history(run.info.run_id, key), key=lambda point: point.step)
        assert [point.step for point in history] == list(range(len(history)))
        assert run.data.metrics[key] == history[-1].value
        return [point.value for point in history]

    for record in trials:
        run = runs[f"trial:{record.id}"]
        assert run.info.run_name == record.name
        logarithm = {"log10_alpha": str(math.log10(record.params["alpha"]))}  # 0.01 to 2
        assert run.data.params == {key: str(value) for key, value in record.params.items()} | logarithm
        assert run.data.tags["raysel.status"] == record.status
        fits = [inner for fold in record.folds.values() for inner in fold.inner]
        share = np.mean([fit.converged for fit in fits])
        assert run.data.metrics["converged_share"] == pytest.approx(share, rel=6e-4)
        for fold, trace in record.folds.items():
            four, eight = np.array([inner.scores[-1] for inner in trace.inner]).T
            error = np.std(eight, ddof=1) / np.sqrt(len(eight))
            fewer = four.mean() >= eight.mean() - error - 1e-12
            score = (four if fewer else eight).mean()
            assert curve_of(run, f"val_accuracy/{fold}")[-1] == pytest.approx(score, rel=6e-4)
            assert curve_of(run, f"objective/{fold}")[-1] == pytest.approx(
                np.mean([inner.objective[-1] for inner in trace.inner])
            )
        assert {"objective", "val_accuracy", "val_accuracy_n4", "val_accuracy_n8"} <= set(run.data.metrics)
        assert (run.info.start_time, run.info.end_time) == (int(record.started * 1000), int(record.ended * 1000))
    for record in refits:
        run = runs[refit_keys(records)[record.fold]]
        assert run.info.run_name == f"{record.fold}: {record.name}"
        assert curve_of(run, "objective") == record.objective
        constant = records[0].constant
        scored = [i for i, score in enumerate(record.feature_scores) if score > 0 and i not in constant]
        tests = {f"test_accuracy_{name}": score for name, score in zip(("n4", "n8"), record.test_scores, strict=False)}
        tests |= {"test_accuracy": record.test_scores[(4, 8).index(record.n_features)]} if tests else {}
        single = {"inner_accuracy": record.inner_score, "features_with_score": len(scored), **tests}
        single |= {"converged": float(record.converged), "cpu_seconds": record.cpu_seconds}
        single |= {"n_features": record.n_features, "objective": record.objective[-1]}
        assert rounded(single).items() <= run.data.metrics.items()
        assert record.test_scores or not [name for name in run.data.metrics if name.startswith("test_")]
    top, study, end = runs["study"], records[0], records[-1]
    assert top.data.params["dataset.path"] == "few.npz"
    assert top.data.params["config_hash"] == study.config_hash
    assert top.data.params["data_hash"] == study.data_hash
    tests = [r.test_scores[(4, 8).index(r.n_features)] for r in refits if r.test_scores]
    assert top.data.metrics["test_accuracy"] == pytest.approx(np.mean(tests), rel=6e-4)
    assert top.data.metrics["test_accuracy_std"] == pytest.approx(np.std(tests, ddof=1), rel=6e-4)
    assert top.data.metrics["stability"] == pytest.approx(end.result["stability"], rel=6e-4)
    noise = end.result["stability_of_noise"]
    assert top.data.metrics["stability_of_noise"] == pytest.approx(noise, rel=6e-4)
    shown = [value for run in runs.values() for key, value in run.data.metrics.items() if key[:9] != "objective"]
    assert max(len(str(value)) for value in shown if abs(value) > 1e-4) <= len("-0.0001234")
    assert top.data.metrics["cut_by_time_budget"] == 0.0
    assert top.data.tags["mlflow.note.content"] == end.summary


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
    assert upload_study(directory, None)
    assert everything(client, experiment) == before


def test_what_was_half_logged_is_completed_without_a_second_run(logged, tmp_path):
    from raysel.tracking.mlflow_runs import StudyRuns  # noqa: PLC0415 - takes seconds

    _, records, client, _ = logged
    # Long and strange, failed, without curves: whatever a trial may be, its run is there.
    first = records[1]
    record = replace(
        first,
        id="0" * 16,
        name="init=[bold] " + "long " * 100,
        status="failed",
        folds={},
        error="Traceback\n" + "x" * 20_000 + "\nFloatingPointError: the objective became inf",
    )
    half = StudyDirectory(tmp_path)
    other = replace(records[0], id="other", experiment="half [1]")
    with Journal(half.journal) as journal:
        journal.append(other)
        journal.append(first)
    # Killed between a run's creation and its numbers.
    StudyRuns(half, other)._open_run(f"trial:{first.id}", "killed", 1.0, None)
    assert upload_study(half, None)
    assert (tracking_status(half)["logged"], tracking_status(half)["complete"]) == (2, False)  # no end is recorded
    experiment = client.get_experiment_by_name("half [1]")
    client.delete_experiment(experiment.experiment_id)  # by hand, in the web page: it comes back
    with Journal(half.journal) as journal:
        journal.append(record)
        journal.append(EndRecord("interrupted", record.started, record.ended))
    assert upload_study(half, None)
    assert tracking_status(half)["complete"]
    runs = runs_of(client, experiment)
    assert set(runs) == {"study", f"trial:{first.id}", f"trial:{record.id}"}
    assert len(client.search_runs([experiment.experiment_id])) == len(runs)
    curves = first.curves("accuracy", ["n4", "n8"], "one_se")
    assert set(runs[f"trial:{first.id}"].data.metrics) == {*curves, "converged_share"}
    assert {key: run.info.status for key, run in runs.items()} == {
        "study": "KILLED",
        f"trial:{first.id}": "FINISHED",
        f"trial:{record.id}": "FAILED",
    }
    assert runs["study"].data.tags["mlflow.note.content"] == "The study was interrupted."
    failed = runs[f"trial:{record.id}"]
    assert failed.info.run_name == record.name[:250]
    assert failed.data.tags["raysel.error"].endswith("FloatingPointError: the objective became inf")


def test_a_stability_that_is_undefined_now_does_not_stay_as_it_was(logged, tmp_path):
    """A study may grow into one whose winners select nothing."""
    _, records, client, _ = logged
    grown = StudyDirectory(tmp_path)
    with Journal(grown.journal) as journal:
        for ended, stability in ((2.0, 0.75), (3.0, None)):
            journal.append(replace(records[0], id="grown", experiment="grown"))
            journal.append(EndRecord("finished", 1.0, ended, {"stability": stability}, "ended"))
    assert upload_study(grown, None)
    (run,) = client.search_runs([client.get_experiment_by_name("grown").experiment_id])
    assert math.isnan(run.data.metrics["stability"])


def test_a_study_without_feature_scores_is_logged(logged, tmp_path):
    _, records, client, _ = logged
    plain = StudyDirectory(tmp_path)
    model = next(record for record in records if isinstance(record, RefitRecord) and record.fold == "final")
    plain.ranking.mkdir()
    (plain.ranking / "model.skops").write_bytes(b"a model")
    with Journal(plain.journal) as journal:
        journal.append(replace(records[0], id="plain", experiment="plain"))
        journal.append(replace(model, feature_scores=None))
        journal.append(EndRecord("finished", 1.0, 2.0, {"test_mean": 0.5, "test_std": 0.1}, "ended"))
    assert upload_study(plain, None)
    runs = runs_of(client, client.get_experiment_by_name("plain"))
    final = runs[f"refit:final:{model.trial}"]
    assert final.info.status == "FINISHED"
    assert "features_with_score" not in final.data.metrics
    assert [file.path for file in client.list_artifacts(final.info.run_id)] == ["model.skops"]
    assert runs["study"].data.metrics == {"test_accuracy": 0.5, "test_accuracy_std": 0.1}


def test_a_replay_of_a_study_that_grew_marks_the_replaced_refits_only(logged, tmp_path):
    _, records, client, _ = logged
    study = replace(records[0], id="larger", experiment="larger")
    before = [record for record in records if isinstance(record, RefitRecord)]
    after = [replace(record, trial="0" * 16) for record in before]
    ends = [EndRecord("finished", 1.0, 2.0), EndRecord("finished", 1.0, 3.0)]
    larger = StudyDirectory(tmp_path)
    for folder in (larger.ranking, larger.folds):
        folder.mkdir()
    (larger.ranking / "model.skops").write_bytes(b"the new model")
    larger.fold_table("outer0").write_bytes(b"the new ranking")
    with Journal(larger.journal) as journal:
        for record in (study, *before, ends[0], study, *after, ends[1]):
            journal.append(record)
    for _ in range(2):
        assert upload_study(larger, None)
        runs = runs_of(client, client.get_experiment_by_name("larger"))
        files = {key: [f.path for f in client.list_artifacts(run.info.run_id)] for key, run in runs.items()}
        for record in before:
            key = f"refit:{record.fold}:{record.trial}"
            assert (runs[key].data.tags["raysel.status"], files[key]) == ("superseded", [])
        for record in after:
            key = f"refit:{record.fold}:{record.trial}"
            assert runs[key].data.tags["raysel.status"] == "finished"
            assert files[key] == {"outer0": ["outer0.csv"], "final": ["model.skops"]}.get(record.fold, [])
            # As an earlier version of raysel left it.
            client.set_tag(runs[key].info.run_id, "raysel.status", "superseded")
        assert {run.info.status for run in runs.values()} == {"FINISHED"}


def test_names_that_mlflow_refuses_are_changed(logged, tmp_path):
    _, records, client, _ = logged
    odd = StudyDirectory(tmp_path)
    modalities = {"RGB (mean)": 60, "RGB [mean]": 30, "x,y": 60, "a//b": 1, "x" * 300: 2}
    config = {**records[0].config, "dataset": {**records[0].config["dataset"], "modalities": modalities}}
    study = replace(records[0], id="odd", experiment="odd", config=config)
    result = {"test_by_task": {"A (left)": 0.5, "B&C": 0.25}}
    with Journal(odd.journal) as journal:
        for record in (study, EndRecord("finished", 1.0, 2.0, result), study, EndRecord("finished", 1.0, 3.0, result)):
            journal.append(record)
    assert upload_study(odd, None)
    (run,) = client.search_runs([client.get_experiment_by_name("odd").experiment_id])
    assert run.data.metrics == {"test_accuracy_A _left_": 0.5, "test_accuracy_B_C": 0.25}
    found = {key: value for key, value in run.data.params.items() if "modalities" in key}
    assert sorted(found.values()) == sorted(str(value) for value in modalities.values())
    assert found["dataset.modalities.RGB _mean_"] == "60"
    assert found["dataset.modalities.RGB _mean__2"] == "30"
    assert run.data.tags.get("raysel.grown") is None
