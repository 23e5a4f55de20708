"""What a study looks like in MLflow: its run, one run a trial, one a fold's winner, one for the model."""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "120")  # a slow server is waited for: nobody waits for us

from mlflow import MlflowException
from mlflow.entities import Metric, Param, RunTag, ViewType
from mlflow.tracking import MlflowClient

_BATCH = 1000  # MLflow's own limits
_PARAM_LENGTH = 6000
_NAME_LENGTH = 250


class MLflowRuns:
    """The runs of one study, each found again by its tag: logging a record twice changes nothing.

    Parameters
    ----------
    directory : Path
        The study's directory; artifacts are named relative to it.
    study : mapping
        The journal's last record of the study: ``id``, ``name``, ``experiment``, ``uri``, ``params``, ``started``.
    """

    def __init__(self, directory: Path, study: Mapping[str, Any]) -> None:
        self._directory, self._study = directory, study
        with _schema_lock(study["uri"]):
            self._client = MlflowClient(study["uri"])
            self.experiment_id = self._experiment(study["experiment"])
        self._runs: dict[str, str] = {}
        self._done: set[str] = set()
        self._winners: dict[str, str] = {}
        self._find_runs()
        self.study_run_id = self._open_run("study", study["name"], study["started"], parent=None)

    def log(self, record: Mapping[str, Any]) -> None:
        """Log a record of the journal.

        Parameters
        ----------
        record : mapping
            Of kind ``study``, ``trial``, ``refit`` or ``end``; others are passed over.
        """
        kind = record["kind"]
        if kind == "study":
            self._begin(record)
        elif kind == "end":
            self._end(record)
        elif kind in ("trial", "refit"):
            key = f"trial:{record['id']}" if kind == "trial" else f"refit:{record['fold']}:{record['trial']}"
            if kind == "refit":
                self._winners[record["fold"]] = key
            if key in self._done:
                return
            name = f"{record['fold']}: {record['name']}" if record.get("fold") else record["name"]
            run_id = self._open_run(key, name, record["started"], parent=self.study_run_id)
            tags = {"raysel.status": record["status"]} if kind == "trial" else {"raysel.trial": record["trial"]}
            tags |= record.get("tags", {})
            if record.get("error"):
                tags["raysel.error"] = record["error"]
            self._log(run_id, record["params"], record["metrics"], record["curves"], tags, record)
            self._log_artifacts(run_id, record.get("artifacts", []))
            if record.get("fold") != "final" or kind == "trial":  # the model's run waits for the ranking
                self._close_run(key, "FAILED" if record.get("status") == "failed" else "FINISHED", record["ended"])

    def refresh(self) -> None:
        """Look again which runs there are: a call that failed may have made one after all."""
        self._runs, self._done = {}, set()
        self._find_runs()

    def _begin(self, study: Mapping[str, Any]) -> None:
        """Log the study's parameters; where it was begun before, open it again."""
        there = self._client.get_run(self.study_run_id)
        if there.info.status != "RUNNING":
            self._client.update_run(self.study_run_id, status="RUNNING")
            self._done.discard("study")
        known = there.data.params
        new = {key: value for key, value in study["params"].items() if key not in known}
        # A parameter is never written over: what a study that has grown has changed stands in a tag.
        grown = [f"{k}: {known[k]} -> {v}" for k, v in study["params"].items() if known.get(k, _param(v)) != _param(v)]
        self._log(self.study_run_id, params=new, tags={"raysel.grown": "; ".join(grown)} if grown else {})

    def _end(self, record: Mapping[str, Any]) -> None:
        # The page that opens first describes the study in words.
        self._log(
            self.study_run_id, metrics=record["metrics"], tags={"mlflow.note.content": record["note"]}, times=record
        )
        self._log_artifacts(self.study_run_id, record["artifacts"])
        self.refresh()  # what a slow server made twice is found now
        model = self._winners.get("final")
        if record["status"] == "finished" and model:
            self._log_artifacts(self._runs[model], record["model_artifacts"])
            self._close_run(model, "FINISHED", record["ended"])
        for key in [key for key in self._runs if key.startswith("refit:") and key not in self._winners.values()]:
            # The winner before the study grew.
            self._client.set_tag(self._runs[key], "raysel.status", "superseded")
            self._close_run(key, "FINISHED", record["ended"])
        self._close_run(
            "study", {"finished": "FINISHED", "failed": "FAILED"}.get(record["status"], "KILLED"), record["ended"]
        )

    def _experiment(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                # The kind opens the pages for training runs rather than those for language models.
                tags = {"mlflow.experimentKind": "custom_model_development"}
                return self._client.create_experiment(name, tags=tags)
            except MlflowException:  # another study made it just now
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
                f"tags.`raysel.study` = '{self._study['id']}'",
                run_view_type=ViewType.ACTIVE_ONLY,
                max_results=1000,
                page_token=token,
            )
            for run in page:
                key = run.data.tags["raysel.key"]
                if key in self._runs:  # made twice, because an answer was lost: the one that is done stays
                    spare = run.info.run_id if key in self._done else self._runs[key]
                    self._client.delete_run(spare)
                    if spare == run.info.run_id:
                        continue
                self._runs[key] = run.info.run_id
                if run.info.status in ("FINISHED", "FAILED"):
                    self._done.add(key)
            token = page.token
            if not token:
                return

    def _open_run(self, key: str, name: str, started: float, parent: str | None) -> str:
        if key not in self._runs:
            tags = {
                "raysel.study": self._study["id"],
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

    def _log(
        self,
        run_id: str,
        params: Mapping[str, Any] | None = None,
        metrics: Mapping[str, float | None] | None = None,
        curves: Mapping[str, list[float]] | None = None,
        tags: Mapping[str, str] | None = None,
        times: Mapping[str, Any] | None = None,
    ) -> None:
        started, ended = (int(times[k] * 1000) for k in ("started", "ended")) if times else (0, 0)
        values = {key: math.nan if value is None else value for key, value in (metrics or {}).items()}
        points = [Metric(key, value, ended, 0) for key, value in values.items()]
        for key, curve in (curves or {}).items():
            step = (ended - started) / len(curve)
            points += [Metric(key, value, started + int(step * (i + 1)), i) for i, value in enumerate(curve)]
        named = [Param(key, _param(value)) for key, value in (params or {}).items()]
        tagged = [RunTag(key, value[-_PARAM_LENGTH:]) for key, value in (tags or {}).items()]
        # All of it in one call as a rule: a call costs far more than what it carries.
        room = _BATCH - len(named) - len(tagged)
        self._client.log_batch(run_id, points[:room], named, tagged, synchronous=True)
        for start in range(room, len(points), _BATCH):
            self._client.log_batch(run_id, points[start : start + _BATCH], synchronous=True)

    def _log_artifacts(self, run_id: str, paths: list[str]) -> None:
        for path in paths:
            self._client.log_artifact(run_id, str(self._directory / path))


class _schema_lock:  # noqa: N801 - used as a function
    """Let one process at a time make the tables of a sqlite file; two would break each other's."""

    def __init__(self, uri: str) -> None:
        self._folder = Path(uri.removeprefix("sqlite:///")).parent if uri.startswith("sqlite:///") else None

    def __enter__(self) -> None:
        if self._folder:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._held = os.open(self._folder, os.O_RDONLY)  # the folder itself: no file stays behind
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(self._held, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        if self._folder:
            os.close(self._held)


def _param(value: Any) -> str:
    return str(value)[:_PARAM_LENGTH]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return str(os.getuid())
