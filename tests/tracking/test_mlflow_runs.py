"""What a study looks like in a real MLflow store: every run once, with what the journal says,
view, data and model.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mlflow_servers import rounded

from raysel.base.models import load_model, save_model
from raysel.core.trust import hash_file, write_signed
from raysel.data.scaling import UnitScaler
from raysel.evaluation.pipeline import FeaturePipeline
from raysel.evaluation.records import RefitRecord, TrialRecord
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import Journal, read_records
from raysel.tracking.journal_upload import tracking_status, upload_study
from raysel.tracking.records import EndRecord, StudyRecord

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


#: Files of a model that this account has signed.
SIGNED = ["model.skops", "model.skops.hmac"]
#: Name of the registered model.
MODEL = {"register": "few digits"}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where MLflow puts the files of new experiments


def study_of(folder, name, records, model=None):
    """Directory of another study with the same records."""
    directory = StudyDirectory(folder)
    directory.ranking.mkdir(parents=True)
    directory.folds.mkdir()
    if model is not None:
        write_signed(directory.ranking / "model.skops", model)
    with Journal(directory.journal) as journal:
        for record in records:
            is_study = isinstance(record, StudyRecord)
            journal.append(
                replace(record, id=name.split()[0], experiment=name) if is_study else record
            )
    return directory


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


@pytest.fixture(scope="module")
def registered(logged):
    """The same with its model registered."""
    assert upload_study(logged[0], None, names=MODEL)
    return logged


def runs_of(client, experiment):
    return {
        run.data.tags["raysel.key"]: run for run in client.search_runs([experiment.experiment_id])
    }


def everything(client, experiment):
    """All that a store says of an experiment: its tags, runs and models."""
    found = []
    for run in client.search_runs([experiment.experiment_id]):
        history = {
            key: [
                (m.step, m.value, m.timestamp)
                for m in client.get_metric_history(run.info.run_id, key)
            ]
            for key in run.data.metrics
        }
        files = sorted(file.path for file in client.list_artifacts(run.info.run_id))
        run = client.get_run(run.info.run_id)  # noqa: PLW2901 - with its inputs and outputs
        found.append(
            (
                dict(run.info),
                run.data.params,
                run.data.tags,
                history,
                files,
                run.inputs,
                run.outputs,
            )
        )
    models = client.search_logged_models([experiment.experiment_id])
    shown = [(m.model_id, m.tags, sorted(map(repr, m.metrics or []))) for m in models]
    versions = [(v.name, v.version, v.source) for v in client.search_model_versions()]
    tags = client.get_experiment(experiment.experiment_id).tags
    return sorted(map(repr, found)), shown, versions, tags


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
        history = sorted(
            client.get_metric_history(run.info.run_id, key), key=lambda point: point.step
        )
        assert [point.step for point in history] == list(range(len(history)))
        assert run.data.metrics[key] == history[-1].value
        return [point.value for point in history]

    for record in trials:
        run = runs[f"trial:{record.id}"]
        assert run.info.run_name == record.name
        logarithm = {"log10_alpha": str(math.log10(record.params["alpha"]))}  # 0.01 to 2
        assert (
            run.data.params == {key: str(value) for key, value in record.params.items()} | logarithm
        )
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
        assert {"objective", "val_accuracy", "val_accuracy_n4", "val_accuracy_n8"} <= set(
            run.data.metrics
        )
        assert (run.info.start_time, run.info.end_time) == (
            int(record.started * 1000),
            int(record.ended * 1000),
        )
    for record in refits:
        run = runs[refit_keys(records)[record.fold]]
        assert run.info.run_name == f"{record.fold}: {record.name}"
        assert curve_of(run, "objective") == record.objective
        constant = records[0].constant
        scored = [
            i for i, score in enumerate(record.feature_scores) if score > 0 and i not in constant
        ]
        tests = {
            f"test_accuracy_{name}": score
            for name, score in zip(("n4", "n8"), record.test_scores, strict=False)
        }
        tests |= (
            {"test_accuracy": record.test_scores[(4, 8).index(record.n_features)]} if tests else {}
        )
        single = {"inner_accuracy": record.inner_score, "features_with_score": len(scored), **tests}
        single |= {"converged": float(record.converged), "cpu_seconds": record.cpu_seconds}
        single |= {"n_features": record.n_features, "objective": record.objective[-1]}
        assert rounded(single).items() <= run.data.metrics.items()
        assert record.test_scores or not [
            name for name in run.data.metrics if name.startswith("test_")
        ]
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
    shown = [
        value
        for run in runs.values()
        for key, value in run.data.metrics.items()
        if key[:9] != "objective"
    ]
    assert max(len(str(value)) for value in shown if abs(value) > 1e-4) <= len("-0.0001234")
    assert top.data.metrics["cut_by_time_budget"] == 0.0
    page = f"/runs/{top.info.run_id}/artifacts/report.html"
    link, _, summary = top.data.tags["mlflow.note.content"].partition("\n\n")
    assert page in link
    assert summary == end.summary
    assert top.data.tags["raysel.verdict"] == end.result["verdict"]
    assert end.result["numbers"] == f"with the {top.data.tags['raysel.features']} features"


def test_the_models_run_holds_the_ranking_and_each_fold_its_own(logged):
    directory, records, client, experiment = logged
    runs, keys = runs_of(client, experiment), refit_keys(records)

    def artifacts(key):
        run = runs[key]
        return {
            Path(f.path).name: Path(client.download_artifacts(run.info.run_id, f.path)).read_bytes()
            for f in client.list_artifacts(run.info.run_id)
        }  # fmt: skip

    final = artifacts(keys["final"])
    exported = {path.name: path.read_bytes() for path in directory.ranking.iterdir()}
    assert exported.items() <= final.items()
    for fold in ("outer0", "outer1"):
        assert artifacts(keys[fold]) == {
            f"{fold}.csv": (directory.folds / f"{fold}.csv").read_bytes()
        }
    top = artifacts("study")
    for path in (directory.config, directory.plan, directory.traces):
        assert top[path.name] == path.read_bytes()


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
    half = study_of(tmp_path, "half [1]", [records[0], first])
    other = next(read_records(half.journal))
    # Killed between a run's creation and its numbers.
    StudyRuns(half, other)._open_run(f"trial:{first.id}", "killed", 1.0, None)
    assert upload_study(half, None)
    assert (tracking_status(half)["logged"], tracking_status(half)["complete"]) == (
        2,
        False,
    )  # no end is recorded
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
    before = EndRecord("finished", 1.0, 2.0, {"stability": 0.75}, "ended")
    after = replace(before, ended=3.0, result={"stability": None})
    assert upload_study(study_of(tmp_path, "grown", [records[0], before, records[0], after]), None)
    (run,) = client.search_runs([client.get_experiment_by_name("grown").experiment_id])
    assert math.isnan(run.data.metrics["stability"])


def test_a_study_without_feature_scores_is_logged(logged, tmp_path):
    _, records, client, _ = logged
    model = next(
        record for record in records if isinstance(record, RefitRecord) and record.fold == "final"
    )
    end = EndRecord("finished", 1.0, 2.0, {"test_mean": 0.5, "test_std": 0.1}, "ended")
    plain = study_of(
        tmp_path, "plain", [records[0], replace(model, feature_scores=None), end], b"a model"
    )
    assert upload_study(plain, None)
    runs = runs_of(client, client.get_experiment_by_name("plain"))
    final = runs[f"refit:final:{model.trial}"]
    assert final.info.status == "FINISHED"
    assert "features_with_score" not in final.data.metrics
    assert [file.path for file in client.list_artifacts(final.info.run_id)] == SIGNED
    scores = {"test_accuracy": 0.5, "test_accuracy_std": 0.1}
    assert runs["study"].data.metrics == scores | {"test_score": 0.5, "test_score_std": 0.1}


def test_a_model_that_is_not_trusted_reaches_no_store_until_it_is(logged, tmp_path, monkeypatch):
    directory, records, client, _ = logged
    content = (directory.ranking / "model.skops").read_bytes()
    mine = [record for record in records if not isinstance(record, TrialRecord)]
    other = study_of(tmp_path, "strange", mine, content)
    hash_file(other.ranking / "model.skops").write_text("0" * 64)
    for trusted in (False, True):
        if trusted:
            write_signed(other.ranking / "model.skops", content)
        assert upload_study(other, None)
        experiment = client.get_experiment_by_name("strange")
        (final,) = (
            run
            for run in client.search_runs([experiment.experiment_id])
            if run.data.tags["raysel.kind"] == "final"
        )
        names = [file.path for file in client.list_artifacts(final.info.run_id)]
        problem = tracking_status(other)["problem"]
        assert ("raysel trust" in problem, "model.skops" in names) == (
            not trusted,
            trusted,
        )
        models = client.search_logged_models([experiment.experiment_id])
        assert len(models) == trusted
    monkeypatch.setenv("MLFLOW_TRACKING_URI", records[0].uri)
    folder = Path(client.download_artifacts(final.info.run_id, "", str(tmp_path)))
    assert type(load_model(folder / "model.skops")) is type(load_model(directory.model))


def test_a_replay_of_a_study_that_grew_marks_the_replaced_refits_only(logged, tmp_path):
    _, records, client, _ = logged
    before = [record for record in records if isinstance(record, RefitRecord)]
    after = [replace(record, trial="0" * 16) for record in before]
    ends = [EndRecord("finished", 1.0, 2.0), EndRecord("finished", 1.0, 3.0)]
    grown = [records[0], *before, ends[0], records[0], *after, ends[1]]
    larger = study_of(tmp_path, "larger", grown, b"the new model")
    larger.fold_table("outer0").write_bytes(b"the new ranking")
    for _ in range(2):
        assert upload_study(larger, None)
        runs = runs_of(client, client.get_experiment_by_name("larger"))
        files = {
            key: [f.path for f in client.list_artifacts(run.info.run_id)]
            for key, run in runs.items()
        }
        for record in before:
            key = f"refit:{record.fold}:{record.trial}"
            assert (runs[key].data.tags["raysel.status"], files[key]) == ("superseded", [])
        for record in after:
            key = f"refit:{record.fold}:{record.trial}"
            assert runs[key].data.tags["raysel.status"] == "finished"
            assert files[key] == {"outer0": ["outer0.csv"], "final": SIGNED}.get(record.fold, [])
            # As an earlier version of raysel left it.
            client.set_tag(runs[key].info.run_id, "raysel.status", "superseded")
        assert {run.info.status for run in runs.values()} == {"FINISHED"}


def test_names_that_mlflow_refuses_are_changed(logged, tmp_path):
    _, records, client, _ = logged
    modalities = {"RGB (mean)": 60, "RGB [mean]": 30, "x,y": 60, "a//b": 1, "x" * 300: 2}
    config = {
        **records[0].config,
        "dataset": {**records[0].config["dataset"], "modalities": modalities},
    }
    study = replace(records[0], config=config)
    end = EndRecord("finished", 1.0, 2.0, {"test_by_task": {"A (left)": 0.5, "B&C": 0.25}})
    assert upload_study(study_of(tmp_path, "odd", [study, end, study, end]), None)
    (run,) = client.search_runs([client.get_experiment_by_name("odd").experiment_id])
    assert run.data.metrics == {"test_accuracy_A _left_": 0.5, "test_accuracy_B_C": 0.25}
    found = {key: value for key, value in run.data.params.items() if "modalities" in key}
    assert sorted(found.values()) == sorted(str(value) for value in modalities.values())
    assert found["dataset.modalities.RGB _mean_"] == "60"
    assert found["dataset.modalities.RGB _mean__2"] == "30"
    assert run.data.tags.get("raysel.grown") is None


def runs_by_kind(client):
    (experiment,) = [e for e in client.search_experiments() if e.name == "few"]
    found = {}
    for run in client.search_runs([experiment.experiment_id]):
        found.setdefault(run.data.tags["raysel.kind"], []).append(run)
    return experiment, found


def view_in(tag):
    compression, _, text = tag.partition(";")
    assert compression == "deflate"
    return json.loads(zlib.decompress(base64.b64decode(text)))


def test_studies_are_compared_by_one_metric_whatever_it_is(logged, tmp_path):
    _, records, client, _ = logged
    scored = {"accuracy": 0.5, "roc_auc": 0.25, "neg_log_loss": -0.75}
    for metric, score in scored.items():
        evaluation = {**records[0].config["evaluation"], "metric": metric}
        config = {**records[0].config, "evaluation": evaluation}
        study = replace(records[0], metric=metric, config=config, id=metric, experiment="several")
        result = {"test_mean": score, "test_std": 0.1, "doubted": metric == "roc_auc"}
        (tmp_path / metric).mkdir()
        with Journal(StudyDirectory(tmp_path / metric).journal) as journal:
            journal.append(study)
            journal.append(EndRecord("finished", 1.0, 2.0, result, "ended"))
        assert upload_study(StudyDirectory(tmp_path / metric), None)
    experiment = client.get_experiment_by_name("several")
    view = view_in(experiment.tags["mlflow.sharedViewState.studies"])
    ordered = [f"{view['orderByKey']} {'ASC' if view['orderByAsc'] else 'DESC'}"]
    shown = client.search_runs([experiment.experiment_id], view["searchFilter"], order_by=ordered)
    columns = {tuple(name.split(".", 1)) for name in view["selectedColumns"]}
    assert view["selectedColumns"][:5] == [
        "metrics.`test_score`",
        "tags.`raysel.metric`",
        "tags.`raysel.features`",
        "metrics.`stability`",
        "tags.`raysel.verdict`",
    ]
    assert [
        (run.data.tags["raysel.metric"], run.data.metrics["test_score"]) for run in shown
    ] == sorted(scored.items(), key=lambda pair: -pair[1])
    doubts = [run.data.tags.get("raysel.doubt", "") for run in shown]
    assert [bool(doubt) for doubt in doubts] == [False, True, False]
    assert ("tags", "`raysel.doubt`") in columns
    # Each bar and each axis is there in the runs.
    *bars, parallel = view["compareRunCharts"]
    for run in shown:
        assert bars[0]["metricKey"] in run.data.metrics
        assert set(parallel["selectedParams"]) <= set(run.data.params)


NOT_TO_BE_EXPECTED = "g7 copies the label: leave it out."


def test_the_pages_of_experiment_and_model_say_what_the_study_does(logged, tmp_path):
    _, records, client, _ = logged
    refits = [record for record in records if isinstance(record, RefitRecord)]
    said = {"numbers": "with the 4 best of 64 features", "verdict": "Better than chance."}
    said |= {"remarks": [NOT_TO_BE_EXPECTED], "test_mean": 0.9, "test_std": 0.1}
    for name, doubted in (("doubted", True), ("sound", False)):
        end = EndRecord("finished", 1.0, 2.0, {**said, "doubted": doubted}, "ended")
        assert upload_study(study_of(tmp_path / name, name, [records[0], *refits, end], b"m"), None)
        experiment = client.get_experiment_by_name(name)
        runs = runs_of(client, experiment)
        final = runs[refit_keys(records)["final"]].data.tags["mlflow.note.content"]
        for page in (final, experiment.tags["mlflow.note.content"]):
            assert NOT_TO_BE_EXPECTED in page
            assert said["verdict"] in page
            assert ("in doubt: see the remarks" in page) == doubted
        assert ("may be expected to score as" in final) != doubted
        assert f"smr {said['numbers']}, last" in experiment.tags["mlflow.note.content"]


def test_the_shared_view_is_that_of_the_study(registered):
    directory, _, client, _ = registered
    experiment, runs = runs_by_kind(client)
    status = tracking_status(directory)
    tags = [key for key in experiment.tags if key.startswith("mlflow.sharedViewState.")]
    tag = f"mlflow.sharedViewState.{status['view']}"
    assert sorted(tags) == sorted([tag, "mlflow.sharedViewState.studies"])
    view = view_in(experiment.tags[tag])
    assert len(experiment.tags[tag]) < 5000  # MLflow's limit
    score = "metrics.`val_accuracy`"
    assert view["selectedColumns"][:5] == [
        score,
        "metrics.`test_accuracy`",
        "tags.`raysel.kind`",
        "params.`alpha`",
        "params.`rank`",
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
        assert 10 ** float(trial.data.params["log10_alpha"]) == pytest.approx(
            float(trial.data.params["alpha"])
        )
    assert lines[0]["metricKey"] == "val_accuracy"
    sections = [section["uuid"] for section in view["compareRunSections"]]
    assert {chart["metricSectionId"] for chart in view["compareRunCharts"]} <= set(sections)
    assert sections.index("validation") < sections.index("objective")


def test_the_description_names_question_nesting_and_order_and_links_what_is_there(registered):
    directory, _, client, _ = registered
    experiment, runs = runs_by_kind(client)
    note = experiment.tags["mlflow.note.content"]
    assert all(
        word in note
        for word in ("few.npz", "80 samples x 64 features", "`val_accuracy`", "`test_accuracy`")
    )
    # MLflow's list of experiments shows the beginning as it is, and every tag that is not named as
    # its own.
    score = runs["study"][0].data.metrics["test_accuracy"]
    start = (
        rf"Test accuracy {score:.3f} ± 0\.\d\d\d \(SD(; in doubt: see the remarks)?\), smr with "
        r"the [48](-8)? best of 64 features.*, last study: few · \["
    )
    assert re.match(start, note)
    assert "viewStateShareKey=studies" in note
    assert all(key.startswith("mlflow.") for key in experiment.tags)
    linked = set(re.findall(r"/runs/([0-9a-f]{32})", note))
    assert linked == {runs["study"][0].info.run_id, runs["final"][0].info.run_id}
    assert f"viewStateShareKey={tracking_status(directory)['view']}" in note
    assert "knn on its best features, of which the inner folds choose how many: 4, 8." in note
    # What a person writes instead stays.
    client.set_experiment_tag(experiment.experiment_id, "mlflow.note.content", "mine")
    assert upload_study(directory, None, names=MODEL)
    assert client.get_experiment(experiment.experiment_id).tags["mlflow.note.content"] == "mine"
    client.set_experiment_tag(experiment.experiment_id, "mlflow.note.content", note)


def test_the_study_s_run_has_the_honest_score_and_the_final_one_says_whose_it_is(registered):
    directory, _, client, _ = registered
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
        (dataset,) = [
            linked.dataset for linked in client.get_run(run.info.run_id).inputs.dataset_inputs
        ]
        assert (dataset.name, json.loads(dataset.source)) == ("few.npz", {"uri": "few.npz"})
        assert records[0].data_hash.startswith(dataset.digest)
        assert json.loads(dataset.profile) == {"num_rows": 80, "num_elements": 80 * 64}
    assert (
        "2 outer folds did on test samples that no choice has seen: test accuracy"
        f" {np.mean(scores):.3f}" in final.data.tags["mlflow.note.content"]
    )
    linked = set(re.findall(r"/runs/([0-9a-f]{32})", final.data.tags["mlflow.note.content"]))
    assert linked == {run.info.run_id for run in (*runs["refit"], top)}  # top's for the report
    for run in (final, top):
        page = f"/runs/{top.info.run_id}/artifacts/report.html"
        assert page in run.data.tags["mlflow.note.content"]
    files = [file.path for file in client.list_artifacts(top.info.run_id)]
    assert "report.html" in files
    for number, i in ((4, 0), (8, 1)):
        (point,) = [
            m
            for m in client.get_metric_history(top.info.run_id, "test_accuracy_over_n")
            if m.step == number
        ]
        assert point.value == pytest.approx(np.mean([r.test_scores[i] for r in outer]), rel=6e-4)


def test_the_final_page_names_a_way_to_load_the_model_without_unpickling(registered, monkeypatch):
    import mlflow  # noqa: PLC0415

    directory, records, client, _ = registered
    _, runs = runs_by_kind(client)
    note = client.get_run(runs["final"][0].info.run_id).data.tags["mlflow.note.content"]
    named = re.search(
        r"raysel\.load_model\(mlflow\.artifacts\.download_artifacts\(\"(.*?)\"\)", note
    )
    monkeypatch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    mlflow.set_tracking_uri(records[0].uri)
    try:
        folder = mlflow.artifacts.download_artifacts(named[1])
        with pytest.raises(mlflow.MlflowException, match="MLFLOW_ALLOW_PICKLE_DESERIALIZATION"):
            mlflow.sklearn.load_model(named[1])
    finally:
        mlflow.set_tracking_uri(None)
    file = Path(folder + "/model.skops")
    assert file.read_bytes() == directory.model.read_bytes()
    assert type(load_model(file)) is type(load_model(directory.model))  # its hash came with it


def test_mlflow_loads_the_model_that_the_study_has_stored(registered, tmp_path):
    import mlflow  # noqa: PLC0415

    directory, records, client, _ = registered
    experiment, runs = runs_by_kind(client)
    (model,) = client.search_logged_models([experiment.experiment_id])
    (output,) = client.get_run(runs["final"][0].info.run_id).outputs.model_outputs
    assert (output.model_id, str(model.status)) == (model.model_id, "READY")
    mlflow.set_tracking_uri(records[0].uri)
    try:
        folder = Path(mlflow.artifacts.download_artifacts(model.model_uri, dst_path=str(tmp_path)))
        loaded = mlflow.sklearn.load_model(str(folder))
        generic = mlflow.pyfunc.load_model(str(folder))
    finally:
        mlflow.set_tracking_uri(None)
    assert (folder / "model.skops").read_bytes() == directory.model.read_bytes()
    assert not [
        path for path in folder.rglob("*") if path.suffix in (".pkl", ".pickle", ".cloudpickle")
    ]
    own = load_model(directory.model)
    with np.load(directory.path.parent / "few.npz") as stored:
        X = stored["X"].reshape(len(stored["X"]), -1).astype(float)
    example = generic.input_example
    assert np.array_equal(np.asarray(example), X[: len(example)])
    if hasattr(own, "feature_names_in_"):
        assert list(example.columns) == list(own.feature_names_in_)
    figures = {m.key for m in model.metrics}
    assert {"inner_accuracy", "n_features"} <= figures
    assert not [
        key for key in figures if key.startswith(("test_", "reference_"))
    ]  # those are not the model's
    if hasattr(own, "predict"):
        assert np.array_equal(loaded.predict(X), own.predict(X))
        assert np.array_equal(generic.predict(example), own.predict(X[: len(example)]))
        inputs = generic.metadata.signature.inputs
        assert (
            len(inputs.inputs) if hasattr(own, "feature_names_in_") else inputs.inputs[0].shape[1]
        ) == 64


def test_an_upload_does_not_predict(registered, tmp_path, monkeypatch):
    from raysel.tracking.mlflow_model import write_model_folder  # noqa: PLC0415 - takes seconds

    directory, *_ = registered

    def refuse(*_, **__):
        raise AssertionError("the model was run")

    for name in ("predict", "transform", "decision_function"):
        monkeypatch.setattr(FeaturePipeline, name, refuse)
    study = next(
        record for record in read_records(directory.journal) if isinstance(record, StudyRecord)
    )
    write_model_folder(tmp_path / "model", directory.model, directory.model_example, study)
    assert (tmp_path / "model" / "MLmodel").exists()


@pytest.mark.slow
def test_a_replay_changes_nothing_and_the_next_study_is_the_next_version(registered, tmp_path):
    directory, records, client, experiment = registered
    before = everything(client, experiment)
    assert upload_study(directory, None, names=MODEL)
    assert everything(client, experiment) == before
    assert [version[:2] for version in before[2]] == [("few digits", 1)]
    other = study_of(tmp_path, "another", records, directory.model.read_bytes())
    assert upload_study(other, None, names=MODEL)
    assert tracking_status(other)["problem"] == ""
    assert (
        tracking_status(other)["notice"]
        == "the model is version 2 of the registered model few digits"
    )
    assert sorted(int(v.version) for v in client.search_model_versions("name = 'few digits'")) == [
        1,
        2,
    ]


def test_a_model_that_is_damaged_is_said_and_stops_nothing(registered, tmp_path):
    _, records, client, _ = registered
    damaged = study_of(tmp_path, "damaged", records, b"no model")
    assert upload_study(damaged, None)
    status = tracking_status(damaged)
    assert status["complete"]
    assert status["problem"].startswith("the model is not logged: ")
    experiment = client.get_experiment_by_name("damaged")
    (run,) = client.search_runs([experiment.experiment_id], "tags.`raysel.kind` = 'study'")
    assert run.info.status == "FINISHED"


class Own(UnitScaler):
    """A class whose code no server of MLflow has."""


def test_a_model_that_no_server_could_load_is_said_and_stops_nothing(registered, tmp_path):
    _, records, client, _ = registered
    content = save_model(Own().fit(np.eye(3)), tmp_path / "model.skops").read_bytes()
    own = study_of(tmp_path / "own", "own", records, content)
    assert upload_study(own, None)
    status = tracking_status(own)
    assert status["complete"]
    assert re.match(r"the model is not logged: it holds \S+\.Own, whose code", status["problem"])
    experiment = client.get_experiment_by_name("own")
    assert client.search_logged_models([experiment.experiment_id]) == []


def test_references_and_training_scores_are_logged_where_they_are_recorded(tmp_path, registered):
    _, records, client, _ = registered
    given = {"outer0": [0.5, 0.25], "outer1": [0.75, 0.5]}

    def changed_record(record):
        if isinstance(record, RefitRecord) and record.fold in given:
            references = {"all features": [0.9], "f_test": given[record.fold]}
            return replace(
                record, references=references, training_scores=[1.0, 0.5], position=1, n_features=8
            )
        if isinstance(record, RefitRecord):
            return replace(record, training_scores=[0.625, 0.875], position=1)
        if isinstance(record, EndRecord):
            compared = {
                "all features": {
                    "test_mean": 0.9,
                    "curve": [0.9],
                    "method_minus_it": {"mean": -0.4},
                },
                "f_test": {
                    "test_mean": 0.375,
                    "curve": [0.625, 0.375],
                    "method_minus_it": {"mean": 0.125},
                },
            }
            result = {
                "test_mean": 0.5,
                "test_std": 0.1,
                "references": compared,
                "optimism": {"training": 0.5},
            }
            return replace(record, result=result)
        return record

    changed = study_of(tmp_path, "changed", map(changed_record, records))
    assert upload_study(changed, None)
    runs = client.search_runs([client.get_experiment_by_name("changed").experiment_id])
    by_name = {run.data.tags["raysel.key"].rpartition(":")[0]: run.data.metrics for run in runs}
    assert (
        by_name["refit:outer0"]["reference_f_test"],
        by_name["refit:outer1"]["reference_f_test"],
    ) == (0.25, 0.5)
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


def test_trials_hang_below_the_study_s_run_though_a_former_one_was_deleted(logged, tmp_path):
    _, records, client, _ = logged
    study = study_of(tmp_path, "below [1]", records)
    assert upload_study(study, None)
    experiment = client.get_experiment_by_name("below [1]")
    before = runs_of(client, experiment)
    client.delete_run(before["study"].info.run_id)  # by hand, in the web page
    assert upload_study(study, None)
    after = runs_of(client, experiment)
    top = after.pop("study").info.run_id
    assert top != before.pop("study").info.run_id
    assert {key: run.info.run_id for key, run in after.items()} == {
        key: run.info.run_id for key, run in before.items()
    }
    assert {run.data.tags["mlflow.parentRunId"] for run in after.values()} == {top}
