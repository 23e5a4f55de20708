"""What a study leaves in a real MLflow store besides its runs: view, description, data set, model and version."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_studies import write_digits, write_yaml

from raysel.base.models import load_model
from raysel.evaluation.pipeline import FeaturePipeline
from raysel.evaluation.records import RefitRecord
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import Journal, read_records
from raysel.tracking.journal_upload import tracking_status, upload_study
from raysel.tracking.mlflow_model import _write_model
from raysel.tracking.records import EndRecord, StudyRecord
from raysel.tune import main

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


@pytest.fixture(scope="module")
def quiet_run(tmp_path_factory, request):
    """A study run quietly in this process, its model registered: directory, client, what was printed."""
    folder = tmp_path_factory.mktemp("registered")
    write_digits(folder / "few.npz")
    write_yaml(folder / "few.yaml", tracking__register="few digits", pictures=["png"])
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with contextlib.chdir(folder), capture.global_and_fixture_disabled():
        from contextlib import redirect_stderr, redirect_stdout  # noqa: PLC0415
        from io import StringIO  # noqa: PLC0415

        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            uri = f"sqlite:///{folder}/mlflow.db"
            assert main(["few.yaml", "--output", "study", "--quiet", "--set", f"tracking.uri={uri}"]) == 0
        directory = StudyDirectory(folder / "study")
        assert upload_study(directory, None)  # where the machine was too slow for the study to wait
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - takes seconds

    return directory, MlflowClient(uri), out.getvalue(), err.getvalue()


def runs_by_kind(client):
    (experiment,) = [e for e in client.search_experiments() if e.name == "few"]
    found = {}
    for run in client.search_runs([experiment.experiment_id]):
        found.setdefault(run.data.tags["raysel.kind"], []).append(run)
    return experiment, found


def test_a_quiet_run_prints_the_directory_only(quiet_run):
    _, _, out, err = quiet_run
    assert out == "study\n"
    assert err == ""


def test_the_shared_view_is_that_of_the_study(quiet_run):
    directory, client, _, _ = quiet_run
    experiment, runs = runs_by_kind(client)
    status = tracking_status(directory)
    (tag,) = [key for key in experiment.tags if key.startswith("mlflow.sharedViewState.")]
    assert tag == f"mlflow.sharedViewState.{status['view']}"
    compression, _, text = experiment.tags[tag].partition(";")
    assert compression == "deflate"
    view = json.loads(zlib.decompress(base64.b64decode(text)))
    assert len(experiment.tags[tag]) < 5000  # MLflow's limit
    score = "metrics.`val_accuracy`"
    assert view["selectedColumns"][:5] == [
        score, "metrics.`test_accuracy`", "tags.`raysel.kind`", "params.`alpha`", "params.`rank`"
    ]  # fmt: skip
    assert (view["orderByKey"], view["orderByAsc"]) == (score, False)
    shown = client.search_runs([experiment.experiment_id], view["searchFilter"])
    assert len(shown) == sum(map(len, runs.values())) == 6 + 3 + 1
    # Each axis and each curve is there in the runs, and each chart in a section.
    parallel, *lines = view["compareRunCharts"]
    assert (parallel["type"], parallel["selectedMetrics"]) == ("PARALLEL", ["val_accuracy"])
    for trial in runs["trial"]:
        assert set(parallel["selectedParams"]) <= set(trial.data.params)
        assert {line["metricKey"] for line in lines} <= set(trial.data.metrics)
        assert 10 ** float(trial.data.params["log10_alpha"]) == pytest.approx(float(trial.data.params["alpha"]))
    assert lines[0]["metricKey"] == "val_accuracy"
    sections = [section["uuid"] for section in view["compareRunSections"]]
    assert {chart["metricSectionId"] for chart in view["compareRunCharts"]} <= set(sections)
    assert sections.index("validation") < sections.index("objective")


def test_the_description_names_question_nesting_and_order_and_links_what_is_there(quiet_run):
    directory, client, _, _ = quiet_run
    experiment, runs = runs_by_kind(client)
    note = experiment.tags["mlflow.note.content"]
    assert all(word in note for word in ("few.npz", "80 samples x 64 features", "`val_accuracy`", "`test_accuracy`"))
    # MLflow's list of experiments shows the beginning as it is, and every tag that is not named as its own.
    score = runs["study"][0].data.metrics["test_accuracy"]
    start = rf"Test accuracy {score:.3f} ± 0\.\d\d\d \(SD\), smr on 64 features, last study: few · \["
    assert re.match(start, note)
    assert all(key.startswith("mlflow.") for key in experiment.tags)
    linked = set(re.findall(r"/runs/([0-9a-f]{32})", note))
    assert linked == {runs["study"][0].info.run_id, runs["final"][0].info.run_id}
    assert f"viewStateShareKey={tracking_status(directory)['view']}" in note
    assert "knn on its best features, of which the inner folds choose how many: 4, 8." in note
    # What a person writes instead stays.
    client.set_experiment_tag(experiment.experiment_id, "mlflow.note.content", "mine")
    with contextlib.chdir(directory.path.parent):
        assert upload_study(directory, None)
    assert client.get_experiment(experiment.experiment_id).tags["mlflow.note.content"] == "mine"
    client.set_experiment_tag(experiment.experiment_id, "mlflow.note.content", note)


def test_the_study_s_run_has_the_honest_score_and_the_final_one_says_whose_it_is(quiet_run):
    directory, client, _, _ = quiet_run
    _, runs = runs_by_kind(client)
    (final,), (top,) = runs["final"], runs["study"]
    records = list(read_records(directory.journal))
    outer = [r for r in records if isinstance(r, RefitRecord) and r.fold != "final"]
    scores = [r.test_scores[(4, 8).index(r.n_features)] for r in outer]
    assert top.data.metrics["test_accuracy"] == pytest.approx(np.mean(scores), rel=6e-4)
    assert top.data.metrics["test_accuracy_std"] == pytest.approx(np.std(scores, ddof=1), rel=6e-4)
    # No test sample is left to the final model.
    assert not [key for key in final.data.metrics if key.startswith(("test_", "reference_"))]
    for run in (final, top):
        (dataset,) = [linked.dataset for linked in client.get_run(run.info.run_id).inputs.dataset_inputs]
        assert (dataset.name, json.loads(dataset.source)) == ("few.npz", {"uri": "few.npz"})
        assert records[0].data_hash.startswith(dataset.digest)
        assert json.loads(dataset.profile) == {"num_rows": 80, "num_elements": 80 * 64}
    assert (
        f"2 outer folds did on test samples that no choice has seen: test accuracy {np.mean(scores):.3f}"
        in final.data.tags["mlflow.note.content"]
    )
    linked = set(re.findall(r"/runs/([0-9a-f]{32})", final.data.tags["mlflow.note.content"]))
    assert linked == {run.info.run_id for run in (*runs["refit"], final)}  # its own for the report
    assert f"/runs/{final.info.run_id}/artifacts/report.html" in final.data.tags["mlflow.note.content"]
    for number, i in ((4, 0), (8, 1)):
        (point,) = [m for m in client.get_metric_history(top.info.run_id, "test_accuracy_over_n") if m.step == number]
        assert point.value == pytest.approx(np.mean([r.test_scores[i] for r in outer]), rel=6e-4)


def test_mlflow_loads_the_model_that_the_study_has_stored(quiet_run, tmp_path):
    import mlflow  # noqa: PLC0415

    directory, client, _, _ = quiet_run
    experiment, runs = runs_by_kind(client)
    (model,) = client.search_logged_models([experiment.experiment_id])
    (output,) = client.get_run(runs["final"][0].info.run_id).outputs.model_outputs
    assert (output.model_id, str(model.status)) == (model.model_id, "READY")
    mlflow.set_tracking_uri(f"sqlite:///{directory.path.parent}/mlflow.db")
    try:
        folder = Path(mlflow.artifacts.download_artifacts(model.model_uri, dst_path=str(tmp_path)))
        loaded = mlflow.sklearn.load_model(str(folder))
        generic = mlflow.pyfunc.load_model(str(folder))
    finally:
        mlflow.set_tracking_uri(None)
    assert (folder / "model.skops").read_bytes() == directory.model.read_bytes()
    assert not [path for path in folder.rglob("*") if path.suffix in (".pkl", ".pickle", ".cloudpickle")]
    own = load_model(directory.model)
    with np.load(directory.path.parent / "few.npz") as stored:
        X = stored["X"].reshape(len(stored["X"]), -1).astype(float)
    example = generic.input_example
    assert np.array_equal(np.asarray(example), X[: len(example)])
    if hasattr(own, "feature_names_in_"):
        assert list(example.columns) == list(own.feature_names_in_)
    figures = {m.key for m in model.metrics}
    assert {"inner_accuracy", "n_features"} <= figures
    assert not [key for key in figures if key.startswith(("test_", "reference_"))]  # those are not the model's
    if hasattr(own, "predict"):
        assert np.array_equal(loaded.predict(X), own.predict(X))
        assert np.array_equal(generic.predict(example), own.predict(X[: len(example)]))
        inputs = generic.metadata.signature.inputs
        assert (len(inputs.inputs) if hasattr(own, "feature_names_in_") else inputs.inputs[0].shape[1]) == 64


def test_an_upload_does_not_predict(quiet_run, tmp_path, monkeypatch):
    directory, _, _, _ = quiet_run

    def refuse(*_, **__):
        raise AssertionError("the model was run")

    for name in ("predict", "transform", "decision_function"):
        monkeypatch.setattr(FeaturePipeline, name, refuse)
    study = next(record for record in read_records(directory.journal) if isinstance(record, StudyRecord))
    _write_model(tmp_path / "model", directory.model, directory.model_example, study)
    assert (tmp_path / "model" / "MLmodel").exists()


def test_a_replay_logs_and_registers_nothing_twice_and_the_next_study_is_the_next_version(quiet_run, tmp_path):
    directory, client, _, _ = quiet_run

    def all_of_it():
        experiment, runs = runs_by_kind(client)
        models = client.search_logged_models([experiment.experiment_id])
        kept = [
            (dict(run.info), run.data.metrics, run.data.tags, str(client.get_run(run.info.run_id).inputs))
            for own in runs.values()
            for run in own
        ]
        linked = [len(client.get_run(run.info.run_id).outputs.model_outputs) for run in runs["final"]]
        versions = [(v.name, int(v.version), v.source) for v in client.search_model_versions()]
        shown = [(m.model_id, m.tags, sorted(map(repr, m.metrics or []))) for m in models]
        return sorted(map(repr, kept)), linked, versions, shown, experiment.tags

    before = all_of_it()
    with contextlib.chdir(directory.path.parent):
        assert upload_study(directory, None)
    assert all_of_it() == before
    assert [version[:2] for version in before[2]] == [("few digits", 1)]
    # Another finished study of the same name of a model.
    first, *rest = read_records(directory.journal)
    other = StudyDirectory(tmp_path)
    other.ranking.mkdir()
    (other.ranking / "model.skops").write_bytes(directory.model.read_bytes())
    with Journal(other.journal) as journal:
        for record in (replace(first, id="f" * 32, experiment="another"), *rest):
            journal.append(record)
    with contextlib.chdir(tmp_path):
        assert upload_study(other, None)
    assert tracking_status(other)["problem"] == ""
    assert tracking_status(other)["notice"] == "the model is version 2 of the registered model few digits"
    assert sorted(int(v.version) for v in client.search_model_versions("name = 'few digits'")) == [1, 2]


def test_a_model_that_is_damaged_is_said_and_stops_nothing(quiet_run, tmp_path):
    directory, client, _, _ = quiet_run
    first, *rest = read_records(directory.journal)
    damaged = StudyDirectory(tmp_path)
    damaged.ranking.mkdir()
    (damaged.ranking / "model.skops").write_bytes(b"no model")
    with Journal(damaged.journal) as journal:
        for record in (replace(first, id="d" * 32, experiment="damaged"), *rest):
            journal.append(record)
    with contextlib.chdir(tmp_path):
        assert upload_study(damaged, None)
    status = tracking_status(damaged)
    assert status["complete"]
    assert status["problem"].startswith("the model is not logged: ")
    experiment = client.get_experiment_by_name("damaged")
    (run,) = client.search_runs([experiment.experiment_id], "tags.`raysel.kind` = 'study'")
    assert run.info.status == "FINISHED"


def test_references_and_training_scores_are_logged_where_they_are_recorded(tmp_path, quiet_run):
    directory, client, _, _ = quiet_run
    changed = StudyDirectory(tmp_path)
    given = {"outer0": [0.5, 0.25], "outer1": [0.75, 0.5]}
    with Journal(changed.journal) as journal:
        for record in read_records(directory.journal):
            if isinstance(record, RefitRecord) and record.fold in given:
                references = {"all features": [0.9], "f_test": given[record.fold]}
                record = replace(  # noqa: PLW2901
                    record, references=references, training_scores=[1.0, 0.5], position=1, n_features=8
                )
            elif isinstance(record, RefitRecord):
                record = replace(record, training_scores=[0.625, 0.875], position=1)  # noqa: PLW2901
            elif isinstance(record, EndRecord):
                whole, f_test = {"test_mean": 0.9, "curve": [0.9]}, {"test_mean": 0.375, "curve": [0.625, 0.375]}
                compared = {"all features": whole, "f_test": f_test}
                for own in compared.values():
                    own["method_minus_it"] = {"mean": 0.5 - own["test_mean"]}
                result = {"test_mean": 0.5, "test_std": 0.1, "references": compared, "optimism": {"training": 0.5}}
                record = replace(record, result=result)  # noqa: PLW2901
            journal.append(replace(record, id="e" * 32, experiment="changed") if hasattr(record, "uri") else record)
    with contextlib.chdir(tmp_path):
        assert upload_study(changed, None)
    runs = client.search_runs([client.get_experiment_by_name("changed").experiment_id])
    by_name = {run.data.tags["raysel.key"].rpartition(":")[0]: run.data.metrics for run in runs}
    assert (by_name["refit:outer0"]["reference_f_test"], by_name["refit:outer1"]["reference_f_test"]) == (0.25, 0.5)
    for run in runs:
        if run.data.tags["raysel.kind"] in ("study", "final"):
            # Of the model itself in its own run, of the outer folds' winners in that of the study.
            expected = {"study": 0.5, "final": 0.875}[run.data.tags["raysel.kind"]]
            points = client.get_metric_history(run.info.run_id, "training_accuracy")
            assert {point.value for point in points} == {expected}
    top = next(run for run in runs if run.data.tags["raysel.kind"] == "study")
    assert top.data.metrics["reference_f_test"] == pytest.approx(0.375)
    assert top.data.metrics["reference_f_test_difference"] == pytest.approx(0.125)
    assert top.data.metrics["reference_all_features"] == pytest.approx(0.9)
    curve = client.get_metric_history(top.info.run_id, "reference_f_test_over_n")
    assert {point.step: point.value for point in curve} == {4: 0.625, 8: 0.375}
