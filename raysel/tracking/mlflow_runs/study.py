"""Runs of one study: its own, and one for each trial and each refit."""

from __future__ import annotations

from dataclasses import replace

from raysel.core.errors import DataError
from raysel.evaluation.plan import FINAL
from raysel.evaluation.records import RefitRecord, TrialRecord
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.mlflow_runs.client import PARENT, MLflowExperiment, allowed_keys, logged_param
from raysel.tracking.mlflow_runs.model import log_model, register_model
from raysel.tracking.mlflow_runs.notes import (
    NOTE,
    dataset_name,
    experiment_note,
    final_note,
    note_tags,
    shared_view_tag,
    view_key,
)
from raysel.tracking.mlflow_view import (
    RunView,
    end_view,
    exported_files,
    refit_view,
    run_page,
    study_params,
    trial_view,
)
from raysel.tracking.records import EndRecord, Record, StudyRecord

#: Length of the prefix of the content hash that is a data set's digest, which MLflow limits to 36.
_DIGEST_LENGTH = 16


class MLflowRuns:
    """MLflow runs of one study; they are found by their tags, so that logging a record twice changes nothing."""

    def __init__(self, directory: StudyDirectory, study: StudyRecord, parent: str | None = None) -> None:
        self._directory, self._study = directory, study
        self._experiment = MLflowExperiment(study.uri, study.experiment)
        self._client, self.experiment_id = self._experiment.client, self._experiment.id
        self._runs: dict[str, str] = {}
        self._done: set[str] = set()
        self._failed: set[str] = set()
        self._superseded: set[str] = set()  # runs that have the tag
        self._winners: dict[str, RunView] = {}
        self._refits: dict[str, RefitRecord] = {}  # the last of each outer fold
        self._replaced: set[str] = set()  # refits of earlier winners
        self._exported = ""  # run of the final model when the study was last finished
        self.view, self.notice, self.problem = view_key(study), self._experiment.notice, ""
        self._find_runs()
        known = "study" in self._runs
        self.study_run_id = self._open_run("study", study.name, study.started, parent=parent)
        if known and parent:
            self._client.set_tag(self.study_run_id, PARENT, parent)

    def log(self, record: Record, *, settle: bool = False) -> None:
        """Log a record of the journal."""
        if isinstance(record, StudyRecord):
            self._begin(record)
        elif isinstance(record, EndRecord):
            self._end(record, settle)
        elif isinstance(record, TrialRecord):
            self._log_run(trial_view(self._study, record))
        elif isinstance(record, RefitRecord):
            self._refits[record.fold] = record
            self._log_run(refit_view(self._study, self._directory, record))

    def _log_run(self, view: RunView) -> None:
        """Log a trial or a refit, unless its run is finished; one that failed and was run again is logged anew."""
        if view.fold:
            before = self._winners.get(view.fold)
            if before is not None:
                self._replaced.add(before.key)
            self._replaced.discard(view.key)
            self._winners[view.fold] = view
        if view.key in self._done and not (view.key in self._failed and view.status == "FINISHED"):
            return
        self._done.discard(view.key)
        run_id = self._open_run(view.key, view.name, view.started, parent=self.study_run_id)
        self._experiment.log(run_id, view)
        if not view.fold:  # the files of a fold are those of its last winner, which is not known yet
            self._experiment.log_artifacts(run_id, view.artifacts)
        if not view.stays_open:
            self._close_run(view.key, view.status, view.ended)

    def refresh(self) -> None:
        """Search the study's runs again, because a call that failed may have created one."""
        self._runs, self._done, self._failed, self._superseded = {}, set(), set(), set()
        self._find_runs()

    def _begin(self, study: StudyRecord) -> None:
        """Log the study's parameters; reopen its run if an earlier run of the study has ended."""
        run = self._client.get_run(self.study_run_id)
        if run.info.status != "RUNNING":
            self._client.update_run(self.study_run_id, status="RUNNING")
            self._done.discard("study")
        known, named = run.data.params, study_params(study)
        keys = allowed_keys(named)
        params = {keys[name]: value for name, value in named.items()}
        # MLflow refuses to overwrite a parameter, so changes of an extended study are logged as a tag.
        grown = [
            f"{k}: {known[k]} -> {v}" for k, v in params.items() if known.get(k, logged_param(v)) != logged_param(v)
        ]
        view = RunView(
            key="study",
            name=study.name,
            started=study.started,
            ended=study.started,
            params={key: value for key, value in params.items() if key not in known},
            tags={"raysel.status": "running", **({"raysel.grown": "; ".join(grown)} if grown else {})},
        )
        self._experiment.log(self.study_run_id, view)
        self._link_data(self.study_run_id)
        self._experiment.set_tags(dict([shared_view_tag(study)]))
        self._describe()

    def _describe(self, end: EndRecord | None = None) -> None:
        """Describe the experiment, unless a person has changed its description or it is that of a later study."""
        final = self._runs.get(self._exported, "")
        note = experiment_note(self._study, self.experiment_id, self.study_run_id, final, end)
        self._experiment.set_tags(note_tags(note, self._study.started, self._experiment.tags))

    def _link_data(self, run_id: str) -> None:
        study, data = self._study, self._study.config.get("dataset", {})
        paths = [data.get("path"), *(task.get("path") or task.get("source") for task in data.get("tasks") or ())]
        source = {"uri": ", ".join(str(path) for path in paths if path) or str(data.get("source"))}
        shape = (study.n_samples, len(study.feature_names))
        self._experiment.log_dataset(run_id, *self._dataset(), source, shape)

    def _dataset(self) -> tuple[str, str]:
        """Name and digest of the data set."""
        return dataset_name(self._study), self._study.data_hash[:_DIGEST_LENGTH]

    def _end(self, record: EndRecord, settle: bool) -> None:
        view = end_view(self._study, self._directory, record)
        self._experiment.log(self.study_run_id, view)
        self._experiment.log_artifacts(self.study_run_id, view.artifacts)
        self.refresh()  # finds runs that were created twice because a request was repeated
        if record.status == "finished":
            self._exported = next((winner.key for winner in self._winners.values() if winner.stays_open), "")
        if settle:
            self._settle(record)
        self._close_run(view.key, view.status, view.ended)

    def _outer(self) -> list[RefitRecord]:
        """Last refits of the outer folds, in their order."""
        return [self._refits[fold] for fold in self._study.folds if fold != FINAL and fold in self._refits]

    def _settle(self, record: EndRecord) -> None:
        """Upload the files of the winners, and mark the refits of earlier winners as superseded."""
        for winner in self._winners.values():
            run_id = self._runs[winner.key]
            if winner.key in self._superseded:
                self._client.set_tag(run_id, "raysel.status", "finished")
            self._experiment.log_artifacts(run_id, winner.artifacts)
            if winner.key == self._exported:
                self._log_final(run_id, record)
                self._close_run(winner.key, "FINISHED", record.ended)
        for key in sorted(self._replaced):
            self._client.set_tag(self._runs[key], "raysel.status", "superseded")
            self._close_run(key, "FINISHED", record.ended)
        self._describe(record)

    def _log_final(self, run_id: str, record: EndRecord) -> None:
        """Log the data set, the exported files and the model to the run of the final refit."""
        study, final, outer = self._study, self._refits[FINAL], self._outer()
        self._link_data(run_id)
        model_id, self.problem = "", ""
        if (self._directory.ranking / "model.skops").exists():
            try:
                model_id = log_model(self._client, run_id, study, self._directory, final.params)
            except DataError as error:
                self.problem = f"the model is not logged: {error}"
        if model_id:
            view = refit_view(study, self._directory, final)
            own = {name: value for name, value in view.metrics.items() if not name.startswith("reference_")}
            self._experiment.log(run_id, replace(view, metrics=own, curves={}, params={}), model_id, self._dataset())
        self._experiment.log_artifacts(run_id, exported_files(self._directory))
        links = {refit.fold: run_page(self.experiment_id, self._runs[self._winners[refit.fold].key]) for refit in outer}
        report = self._directory.report
        page = run_page(self.experiment_id, run_id, report.name) if report.exists() else ""
        note = final_note(study, record, final, outer, links, page, f"models:/{model_id}" if model_id else "")
        self._client.set_tag(run_id, NOTE, note)
        name = study.config.get("tracking", {}).get("register")
        if model_id:
            self._client.set_logged_model_tags(model_id, {NOTE: note})
            if name:
                done, self.problem = register_model(self._client, name, model_id, run_id, study, note)
                self.notice = "; ".join(filter(None, [self._experiment.notice, done]))
        elif name and not self.problem:
            self.problem = f"no model is registered as {name}: {self._directory.ranking / 'model.skops'} does not exist"

    def _find_runs(self) -> None:
        for run in self._experiment.search(f"tags.`raysel.study` = '{self._study.id}'"):
            key = run.data.tags["raysel.key"]
            if key in self._runs:  # created twice because a response was lost; keep the one that is finished
                duplicate = run.info.run_id if key in self._done else self._runs[key]
                self._client.delete_run(duplicate)
                if duplicate == run.info.run_id:
                    continue
            self._runs[key] = run.info.run_id
            if run.data.tags.get("raysel.status") == "superseded":
                self._superseded.add(key)
            if run.info.status in ("FINISHED", "FAILED"):
                self._done.add(key)
            if run.info.status == "FAILED":
                self._failed.add(key)

    def _open_run(self, key: str, name: str, started: float, parent: str | None) -> str:
        if key not in self._runs:
            tags = {
                "raysel.study": self._study.id,
                "raysel.key": key,
                "raysel.kind": "final" if key.startswith(f"refit:{FINAL}:") else key.partition(":")[0],
                "raysel.status": "running",
            }
            if parent:
                tags[PARENT] = parent
            self._runs[key] = self._experiment.create_run(name, started, tags)
        return self._runs[key]

    def _close_run(self, key: str, status: str, ended: float) -> None:
        if key not in self._done:
            self._client.set_terminated(self._runs[key], status, int(ended * 1000))
            self._done.add(key)
            (self._failed.add if status == "FAILED" else self._failed.discard)(key)
