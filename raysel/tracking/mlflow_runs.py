"""Logging of a study's records to MLflow; the only module that imports MLflow."""

from __future__ import annotations

import getpass
import math
import os
import posixpath
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from raysel.cv.records import RefitRecord, TrialRecord
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.locks import schema_lock
from raysel.tracking.mlflow_view import RunView, end_view, model_artifacts, refit_view, study_params, trial_view
from raysel.tracking.records import EndRecord, Record, StudyRecord

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "120")  # long, because the upload runs in the background

from mlflow import MlflowException
from mlflow.entities import Metric, Param, RunTag, ViewType
from mlflow.tracking import MlflowClient

_BATCH = 1000  # MLflow's own limits
_PARAM_LENGTH = 6000
_NAME_LENGTH = 250


class MLflowRuns:
    """MLflow runs of one study; they are found by their tags, so that logging a record twice changes nothing.

    Parameters
    ----------
    directory : StudyDirectory
        Directory of the study, whose files become artifacts.
    study : StudyRecord
        Last record of the study in its journal, with the tracking URI to use.

    Attributes
    ----------
    experiment_id : str
        Id of the MLflow experiment.
    study_run_id : str
        Id of the study's own run.
    """

    def __init__(self, directory: StudyDirectory, study: StudyRecord) -> None:
        self._directory, self._study = directory, study
        with schema_lock(study.uri):
            self._client = MlflowClient(study.uri)
            self.experiment_id = self._experiment(study.experiment)
        self._runs: dict[str, str] = {}
        self._done: set[str] = set()
        self._superseded: set[str] = set()  # runs that have the tag
        self._winners: dict[str, RunView] = {}
        self._replaced: set[str] = set()  # refits of earlier winners
        self._exported = ""  # run of the final model when the study was last finished
        self._find_runs()
        self.study_run_id = self._open_run("study", study.name, study.started, parent=None)

    def log(self, record: Record, *, settle: bool = False) -> None:
        """Log a record of the journal.

        Parameters
        ----------
        record : Record
            Record to log; path and search records are ignored, because they have no run.
        settle : bool, default=False
            Whether the record is the journal's last end, so that the refits before it are the valid ones: their files
            are uploaded, and refits of earlier winners are marked as superseded.
        """
        if isinstance(record, StudyRecord):
            self._begin(record)
        elif isinstance(record, EndRecord):
            self._end(record, settle)
        elif isinstance(record, TrialRecord):
            self._log_run(trial_view(self._study, record))
        elif isinstance(record, RefitRecord):
            self._log_run(refit_view(self._study, self._directory, record))

    def _log_run(self, view: RunView) -> None:
        """Log a trial or a refit, unless its run is finished."""
        if view.fold:
            before = self._winners.get(view.fold)
            if before is not None:
                self._replaced.add(before.key)
            self._replaced.discard(view.key)
            self._winners[view.fold] = view
        if view.key in self._done:
            return
        run_id = self._open_run(view.key, view.name, view.started, parent=self.study_run_id)
        self._log(run_id, view)
        if not view.fold:  # the files of a fold are those of its last winner, which is not known yet
            self._log_artifacts(run_id, view.artifacts)
        if not view.stays_open:
            self._close_run(view.key, view.status, view.ended)

    def refresh(self) -> None:
        """Search the study's runs again, because a call that failed may have created one."""
        self._runs, self._done, self._superseded = {}, set(), set()
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
        grown = [f"{k}: {known[k]} -> {v}" for k, v in params.items() if known.get(k, _param(v)) != _param(v)]
        view = RunView(
            key="study",
            name=study.name,
            started=study.started,
            ended=study.started,
            params={key: value for key, value in params.items() if key not in known},
            tags={"raysel.grown": "; ".join(grown)} if grown else {},
        )
        self._log(self.study_run_id, view)

    def _end(self, record: EndRecord, settle: bool) -> None:
        view = end_view(self._study, self._directory, record)
        self._log(self.study_run_id, view)
        self._log_artifacts(self.study_run_id, view.artifacts)
        self.refresh()  # finds runs that were created twice because a request was repeated
        if record.status == "finished":
            self._exported = next((winner.key for winner in self._winners.values() if winner.stays_open), "")
        if settle:
            self._settle(record.ended)
        self._close_run(view.key, view.status, view.ended)

    def _settle(self, ended: float) -> None:
        """Upload the files of the winners, and mark the refits of earlier winners as superseded."""
        for winner in self._winners.values():
            run_id = self._runs[winner.key]
            if winner.key in self._superseded:
                self._client.delete_tag(run_id, "raysel.status")
            self._log_artifacts(run_id, winner.artifacts)
            if winner.key == self._exported:
                self._log_artifacts(run_id, model_artifacts(self._directory))
                self._close_run(winner.key, "FINISHED", ended)
        for key in sorted(self._replaced):
            self._client.set_tag(self._runs[key], "raysel.status", "superseded")
            self._close_run(key, "FINISHED", ended)

    def _experiment(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                # Makes MLflow show the pages for training runs instead of those for language models.
                tags = {"mlflow.experimentKind": "custom_model_development"}
                return self._client.create_experiment(name, tags=tags)
            except MlflowException:  # another study may have created it meanwhile
                found = self._client.get_experiment_by_name(name)
                if found is None:
                    raise
        if found.lifecycle_stage == "deleted":
            self._client.restore_experiment(found.experiment_id)
        return found.experiment_id

    def _find_runs(self) -> None:
        token = None
        while True:
            page = self._client.search_runs(
                [self.experiment_id],
                f"tags.`raysel.study` = '{self._study.id}'",
                run_view_type=ViewType.ACTIVE_ONLY,
                max_results=1000,
                page_token=token,
            )
            for run in page:
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
            token = page.token
            if not token:
                return

    def _open_run(self, key: str, name: str, started: float, parent: str | None) -> str:
        if key not in self._runs:
            tags = {
                "raysel.study": self._study.id,
                "raysel.key": key,
                "raysel.kind": key.partition(":")[0],
                "mlflow.source.name": "raysel.tune",
                "mlflow.user": _user(),
            }
            if parent:
                tags["mlflow.parentRunId"] = parent
            run = self._client.create_run(self.experiment_id, int(started * 1000), tags, name[:_NAME_LENGTH])
            self._runs[key] = run.info.run_id
        return self._runs[key]

    def _close_run(self, key: str, status: str, ended: float) -> None:
        if key not in self._done:
            self._client.set_terminated(self._runs[key], status, int(ended * 1000))
            self._done.add(key)

    def _log(self, run_id: str, view: RunView) -> None:
        started, ended = int(view.started * 1000), int(view.ended * 1000)
        values = {key: math.nan if value is None else value for key, value in view.metrics.items()}
        keys = allowed_keys([*values, *view.curves])
        points = [Metric(keys[name], value, ended, 0) for name, value in values.items()]
        for name, curve in view.curves.items():
            step = (ended - started) / len(curve)
            points += [Metric(keys[name], value, started + int(step * (i + 1)), i) for i, value in enumerate(curve)]
        keys = allowed_keys(view.params)
        params = [Param(keys[name], _param(value)) for name, value in view.params.items()]
        tags = [RunTag(key, value[-_PARAM_LENGTH:]) for key, value in view.tags.items()]
        # As much as possible in one request: requests are slow whatever their size.
        room = _BATCH - len(params) - len(tags)
        self._client.log_batch(run_id, points[:room], params, tags, synchronous=True)
        for start in range(room, len(points), _BATCH):
            self._client.log_batch(run_id, points[start : start + _BATCH], synchronous=True)

    def _log_artifacts(self, run_id: str, paths: Sequence[Path]) -> None:
        for path in paths:
            self._client.log_artifact(run_id, str(path))


def allowed_keys(names: Iterable[str]) -> dict[str, str]:
    """Find a key that MLflow accepts for each name of a parameter or metric.

    Parameters
    ----------
    names : iterable of str
        Names of the parameters, or of the metrics, of one run.

    Returns
    -------
    dict of str to str
        Key by name, unique; an accepted name is its own key.

    Examples
    --------
    >>> allowed_keys(["alpha", "RGB (mean)"])
    {'alpha': 'alpha', 'RGB (mean)': 'RGB _mean_'}
    """
    names = list(dict.fromkeys(names))
    near = {name: _near(name) for name in names}
    keys = {name: name for name in names if near[name] == name}
    taken = set(keys)
    for name in names:
        if name not in keys:
            key, count = near[name], 1
            while key in taken:
                count += 1
                key = f"{near[name][: _NAME_LENGTH - 10]}_{count}"
            keys[name] = key
            taken.add(key)
    return keys


def _near(name: str) -> str:
    key = re.sub(r"[^\w\-. :/]", "_", name)[:_NAME_LENGTH]
    if posixpath.normpath(key) != key or key == "." or key.startswith(("/", "..")):  # MLflow takes a key for a path
        key = f"_{key.replace('/', '_')}"[:_NAME_LENGTH]
    return key


def _param(value: Any) -> str:
    return str(value)[:_PARAM_LENGTH]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, e.g. in a container
        return str(os.getuid())
