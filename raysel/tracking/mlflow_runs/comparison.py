"""Run of a comparison, below which MLflow shows the runs of its members."""

from __future__ import annotations

from raysel.tracking.comparison import ComparisonRecord
from raysel.tracking.mlflow_runs.client import MLflowExperiment, allowed_keys
from raysel.tracking.mlflow_runs.notes import comparison_note, note_tags
from raysel.tracking.mlflow_view import RunView


class ComparisonRun:
    """MLflow run of one comparison; found by its tag, so that it is created once."""

    def __init__(self, record: ComparisonRecord, uri: str) -> None:
        self._record, self._experiment = record, MLflowExperiment(uri, record.experiment)
        self._client, self.experiment_id = self._experiment.client, self._experiment.id
        self.notice = self._experiment.notice
        found = list(self._experiment.search(f"tags.`raysel.comparison` = '{record.id}'"))
        if found:
            self.id = str(found[-1].info.run_id)
            self._client.update_run(self.id, status="RUNNING")
        else:
            tags = {"raysel.comparison": record.id, "raysel.kind": "comparison"}
            self.id = self._experiment.create_run(f"comparison {record.name}", record.started, tags)

    def end(self, view: RunView) -> None:
        """Log the result of the comparison, close its run and describe the experiment by it."""
        known = self._client.get_run(self.id).data.params
        keys = allowed_keys(view.params)
        params = {keys[name]: value for name, value in view.params.items() if keys[name] not in known}
        self._experiment.log(
            self.id,
            RunView(view.key, view.name, view.started, view.ended, params=params, metrics=view.metrics, tags=view.tags),
        )
        self._experiment.log_artifacts(self.id, view.artifacts)
        self._client.set_terminated(self.id, view.status, int(view.ended * 1000))
        tags = self._client.get_experiment(self.experiment_id).tags  # the members have described it since
        note = comparison_note(self._record, self.experiment_id, self.id)
        self._experiment.set_tags(note_tags(note, view.ended, tags))
