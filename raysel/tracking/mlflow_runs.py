"""Runs of a study in MLflow, one for each trial and refit, and that of a comparison."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from raysel.config import load_comparison
from raysel.config.plain_data import flat
from raysel.core.errors import DataError, RayselError
from raysel.evaluation.records import FINAL, RefitRecord, TrialRecord
from raysel.tracking.directory import ComparisonRecord, StudyDirectory
from raysel.tracking.journal import last_end, last_study
from raysel.tracking.mlflow_experiment import (
    PARENT,
    MLflowExperiment,
    logged_param,
    with_allowed_keys,
)
from raysel.tracking.mlflow_model import log_model, register_model
from raysel.tracking.mlflow_notes import (
    NOTE,
    all_studies_tag,
    comparison_note,
    experiment_note,
    final_note,
    note_tags,
    shared_view_tag,
    study_note,
    view_key,
)
from raysel.tracking.mlflow_view import (
    RunView,
    end_view,
    exported_files,
    refit_key,
    refit_view,
    run_page,
    study_params,
    trial_view,
)
from raysel.tracking.records import EndRecord, Record, StudyRecord

#: Length of the prefix of the content hash that is a data set's digest, which MLflow limits to 36.
_DIGEST_LENGTH = 16
#: Most letters of the description of a comparison's run.
_LONGEST_NOTE = 5000


@dataclass
class _Run:
    """A run as MLflow has it: its status there, and the tag ``raysel.status``."""

    id: str
    status: str = "RUNNING"
    tag: str = "running"
    parent: str | None = None

    @property
    def has_ended(self) -> bool:
        return self.status in ("FINISHED", "FAILED")


class StudyRuns:
    """MLflow runs of one study, found by tags: to log a record twice changes nothing."""

    def __init__(
        self, directory: StudyDirectory, study: StudyRecord, parent: str | None = None
    ) -> None:
        self._directory, self._study = directory, study
        self._experiment = MLflowExperiment(study.uri, study.experiment)
        self._client, self.experiment_id = self._experiment.client, self._experiment.id
        self._runs: dict[str, _Run] = {}
        self._winners: dict[str, RefitRecord] = {}  # the last refit of each fold
        self._replaced: set[str] = set()  # keys of the refits of earlier winners
        self._exported = ""  # key of the final model's run when the study was last finished
        self.view, self.notice, self.problem = view_key(study), self._experiment.notice, ""
        self.refresh()
        known = "study" in self._runs
        self.study_run_id = self._open_run("study", study.name, study.started, parent)
        if known and parent:
            self._client.tag_run(self.study_run_id, {PARENT: parent})
        self._hang_below_study()

    def log(self, record: Record, *, settle: bool = False) -> None:
        """Log a record of the journal; the winners' files follow the last end, by ``settle``."""
        if isinstance(record, StudyRecord):
            self._begin(record)
        elif isinstance(record, EndRecord):
            self._end(record, settle)
        elif isinstance(record, TrialRecord):
            self._log_run(trial_view(self._study, record))
        elif isinstance(record, RefitRecord):
            if before := self._winners.get(record.fold):
                self._replaced.add(refit_key(before))
            self._replaced.discard(refit_key(record))
            self._winners[record.fold] = record
            self._log_run(
                refit_view(self._study, self._directory, record), stays_open=record.fold == FINAL
            )

    def _log_run(self, view: RunView, *, stays_open: bool = False) -> None:
        """Log a trial or a refit, unless its run has ended well.

        The files of a refit are those of the fold's last winner, which is not known yet.
        """
        run = self._runs.get(view.key)
        if run and run.has_ended and not (run.status == "FAILED" and view.status == "FINISHED"):
            return
        if run:
            run.status = "RUNNING"
        self._experiment.log(
            self._open_run(view.key, view.name, view.started, self.study_run_id), view
        )
        if not stays_open:
            self._close_run(view.key, view.status, view.ended)

    def refresh(self) -> None:
        """Search the study's runs, also those that a call that failed may have created."""
        self._runs = {}
        for stored in self._experiment.search("raysel.study", self._study.id):
            key = stored.tags["raysel.key"]
            tag, parent = stored.tags.get("raysel.status", ""), stored.tags.get(PARENT)
            run = _Run(stored.id, stored.status, tag, parent)
            other = self._runs.get(key)
            # Created twice because a response was lost; the one that has ended is kept.
            if other and other.has_ended:
                self._client.delete_run(run.id)
                continue
            if other:
                self._client.delete_run(other.id)
            self._runs[key] = run

    def _hang_below_study(self) -> None:
        """Move the runs of trials and refits below the study's run, which may be new."""
        for key, run in self._runs.items():
            if key != "study" and run.parent != self.study_run_id:
                self._client.tag_run(run.id, {PARENT: self.study_run_id})
                run.parent = self.study_run_id

    def _begin(self, study: StudyRecord) -> None:
        """Log the study's parameters; reopen its run if an earlier run of the study has ended."""
        run = self._client.run(self.study_run_id)
        if run.status != "RUNNING":
            self._client.update_run(self.study_run_id, "RUNNING")
            self._runs["study"].status = "RUNNING"
        known, params = run.params, with_allowed_keys(study_params(study))
        # MLflow refuses to overwrite a parameter, so changes of an extended study are logged as a
        # tag.
        grown = [
            f"{k}: {known[k]} -> {v}"
            for k, v in params.items()
            if known.get(k, logged_param(v)) != logged_param(v)
        ]
        tags = {"raysel.status": "running"}
        if grown:
            tags["raysel.grown"] = "; ".join(grown)
        view = RunView(
            key="study",
            name=study.name,
            started=study.started,
            ended=study.started,
            params={key: value for key, value in params.items() if key not in known},
            tags=tags,
        )
        self._experiment.log(self.study_run_id, view)
        self._link_data(self.study_run_id)
        self._experiment.set_tags(dict([shared_view_tag(study), all_studies_tag()]))
        self._describe()

    def _describe(self, end: EndRecord | None = None) -> None:
        """Describe the experiment, unless a person or a later study has."""
        final = self._runs.get(self._exported)
        note = experiment_note(
            self._study, self.experiment_id, self.study_run_id, final.id if final else "", end
        )
        self._experiment.set_tags(note_tags(note, self._study.started, self._experiment.tags))

    def _link_data(self, run_id: str) -> None:
        study, data = self._study, self._study.config.get("dataset", {})
        paths = [
            data.get("path"),
            *(task.get("path") or task.get("source") for task in data.get("tasks") or ()),
        ]
        source = {"uri": ", ".join(str(path) for path in paths if path) or str(data.get("source"))}
        shape = (study.n_samples, len(study.feature_names))
        self._experiment.log_dataset(run_id, *self._dataset(), source, shape)

    def _dataset(self) -> tuple[str, str]:
        """Name and digest of the data set."""
        return self._study.data_name, self._study.data_hash[:_DIGEST_LENGTH]

    def _end(self, record: EndRecord, settle: bool) -> None:
        view = end_view(self._study, self._directory, record)
        note = study_note(view.tags[NOTE], self._report_page())
        self._experiment.log(self.study_run_id, replace(view, tags={**view.tags, NOTE: note}))
        self._experiment.log_artifacts(self.study_run_id, view.artifacts)
        self.refresh()  # finds runs that were created twice because a request was repeated
        if record.status == "finished":
            final = self._winners.get(FINAL)
            self._exported = refit_key(final) if final else ""
        if settle:
            self._settle(record)
        self._close_run("study", view.status, view.ended)

    def _report_page(self) -> str:
        """Address of the page that shows the report in the study's run; empty without one."""
        report = self._directory.report
        if not report.exists():
            return ""
        return run_page(self.experiment_id, self.study_run_id, report.name)

    def _settle(self, record: EndRecord) -> None:
        """Upload the files of the winners, and mark the refits of earlier winners as superseded."""
        for winner in self._winners.values():
            key = refit_key(winner)
            run = self._runs[key]
            if run.tag == "superseded":
                self._client.tag_run(run.id, {"raysel.status": "finished"})
            self._experiment.log_artifacts(
                run.id, refit_view(self._study, self._directory, winner).artifacts
            )
            if key == self._exported:
                self._log_final(run.id, winner, record)
                self._close_run(key, "FINISHED", record.ended)
        for key in sorted(self._replaced):
            self._client.tag_run(self._runs[key].id, {"raysel.status": "superseded"})
            self._close_run(key, "FINISHED", record.ended)
        self._describe(record)

    def _log_final(self, run_id: str, final: RefitRecord, record: EndRecord) -> None:
        """Log the data set, the exported files and the model to the run of the final refit."""
        study = self._study
        self._link_data(run_id)
        model_id, self.problem = "", ""
        if (self._directory.ranking / "model.skops").exists():
            try:
                model_id = log_model(
                    self._client, run_id, self.experiment_id, study, self._directory, final.params
                )
            except DataError as error:
                self.problem = f"the model is not logged: {error}"
        if model_id:
            view = refit_view(study, self._directory, final)
            metrics = {
                name: value
                for name, value in view.metrics.items()
                if not name.startswith("reference_")
            }
            view = replace(view, metrics=metrics, curves={}, params={})
            self._experiment.log(run_id, view, model_id, self._dataset())
        self._experiment.log_artifacts(run_id, exported_files(self._directory))
        outer = [
            self._winners[fold] for fold in study.folds if fold != FINAL and fold in self._winners
        ]
        links = {
            refit.fold: run_page(self.experiment_id, self._runs[refit_key(refit)].id)
            for refit in outer
        }
        note = final_note(
            study=study,
            end=record,
            final=final,
            outer=outer,
            links=links,
            report=self._report_page(),
            model=f"models:/{model_id}" if model_id else "",
        )
        self._client.tag_run(run_id, {NOTE: note})
        name = study.config.get("tracking", {}).get("register")
        if model_id:
            self._client.tag_model(model_id, {NOTE: note})
            if name:
                done, self.problem = register_model(study, name, model_id, run_id, note)
                self.notice = "; ".join(filter(None, [self._experiment.notice, done]))
        elif name and not self.problem:
            self.problem = (
                f"no model is registered as {name}: {self._directory.ranking / 'model.skops'} does"
                " not exist"
            )

    def _open_run(self, key: str, name: str, started: float, parent: str | None) -> str:
        """Return the id of a run, which is created if there is none."""
        if key not in self._runs:
            kind = key.partition(":")[0]
            if key.startswith(f"refit:{FINAL}:"):
                kind = "final"
            tags = {
                "raysel.study": self._study.id,
                "raysel.key": key,
                "raysel.kind": kind,
                "raysel.status": "running",
            }
            if parent:
                tags[PARENT] = parent
            self._runs[key] = _Run(self._experiment.create_run(name, started, tags))
        return self._runs[key].id

    def _close_run(self, key: str, status: str, ended: float) -> None:
        if not self._runs[key].has_ended:
            self._client.update_run(self._runs[key].id, status, int(ended * 1000))
            self._runs[key].status = status


class ComparisonRun:
    """MLflow run of one comparison; found by its tag, so that it is created once."""

    def __init__(self, record: ComparisonRecord, uri: str) -> None:
        self._record, self._experiment = record, MLflowExperiment(uri, record.experiment)
        self._client, self.experiment_id = self._experiment.client, self._experiment.id
        self.notice = self._experiment.notice
        runs = list(self._experiment.search("raysel.comparison", record.id))
        if runs:
            self.id = runs[-1].id
            self._client.update_run(self.id, "RUNNING")
        else:
            tags = {"raysel.comparison": record.id, "raysel.kind": "comparison"}
            self.id = self._experiment.create_run(f"comparison {record.name}", record.started, tags)

    def end(self, view: RunView) -> None:
        """Log the result of the comparison, close its run and describe the experiment by it."""
        known = self._client.run(self.id).params
        params = {
            key: value for key, value in with_allowed_keys(view.params).items() if key not in known
        }
        self._experiment.log(self.id, replace(view, params=params))
        self._experiment.log_artifacts(self.id, view.artifacts)
        self._client.update_run(self.id, view.status, int(view.ended * 1000))
        tags = self._client.experiment_tags(
            self.experiment_id
        )  # the members have described it since
        note = comparison_note(self._record, self.experiment_id, self.id)
        self._experiment.set_tags(note_tags(note, view.ended, tags))


def comparison_view(directory: StudyDirectory) -> RunView:
    """Return the content of the run of a comparison."""
    record, config = ComparisonRecord.read(directory), load_comparison(directory.config)
    ended = record.started
    metrics: dict[str, float | None] = {}
    for entry in record.members:
        journal, end = directory.member(entry.folder).journal, None
        with suppress(RayselError):  # a damaged one, as the upload of the member says
            end = last_end(journal) if journal.exists() else None
        if end is None:
            continue
        ended = max(ended, end.ended)
        if "test_mean" in end.result:
            metrics[f"test_{last_study(journal).metric}_{entry.label}"] = end.result["test_mean"]
    status = "KILLED"
    if any(entry.error for entry in record.members):
        status = "FAILED"
    elif len(metrics) == len(record.members):
        status = "FINISHED"
    table = directory.results / "comparison.md"
    tags = {"raysel.reference": record.reference}
    if table.exists():
        # The lines of a long heading overlap on MLflow's page.
        tags[NOTE] = table.read_text(encoding="utf-8").removeprefix("# ")[:_LONGEST_NOTE]
    results = sorted(path for path in directory.results.glob("*") if path.is_file())
    return RunView(
        key="comparison",
        name=record.name,
        started=record.started,
        ended=ended,
        status=status,
        params=dict(flat(config.common)),
        metrics=metrics,
        tags=tags,
        artifacts=[path for path in (directory.config, directory.plan) if path.exists()] + results,
    )
