"""What raysel asks of an MLflow store, in plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol


class Point(NamedTuple):
    """Value of a metric at a step; `timestamp` in milliseconds since the epoch."""

    key: str
    value: float
    timestamp: int
    step: int = 0


class RunData(NamedTuple):
    """What is logged to a run at once; metrics may be those of a model on a data set too, by its name and digest."""

    points: Sequence[Point]
    params: Mapping[str, str]
    tags: Mapping[str, str]
    model_id: str | None = None
    dataset: tuple[str | None, str | None] = (None, None)


class DatasetEntry(NamedTuple):
    """Data set as MLflow lists it; `source`, `schema` and `profile` are JSON."""

    name: str
    digest: str
    source: str
    schema: str
    profile: str


@dataclass(frozen=True)
class StoredRun:
    """Run as a store has it."""

    id: str
    status: str
    tags: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)


class Client(Protocol):
    """Access to one store; times are in milliseconds since the epoch."""

    #: Most trials to log in one transaction.
    at_once: int
    #: What a user must know of the experiment that was opened; empty if there is nothing.
    notice: str

    def transaction(self) -> AbstractContextManager[object]:
        """Do all calls within it or none, where the store can."""

    def experiment(self, name: str, tags: Mapping[str, str]) -> tuple[str, dict[str, str]]:
        """Return the id and the tags of an experiment, created if there is none and restored if it was deleted."""

    def experiment_tags(self, experiment_id: str) -> dict[str, str]:
        """Return the tags of an experiment."""

    def tag_experiment(self, experiment_id: str, key: str, value: str) -> None:
        """Set a tag of an experiment."""

    def runs(self, experiment_id: str, tag: str, value: str) -> Iterable[StoredRun]:
        """Yield the runs of an experiment with a tag, newest first, without those that were deleted."""

    def run(self, run_id: str) -> StoredRun:
        """Return a run."""

    def create_run(
        self, experiment_id: str, name: str, started: int, tags: Mapping[str, str]
    ) -> str:
        """Create a run and return its id."""

    def update_run(self, run_id: str, status: str, ended: int | None = None) -> None:
        """Set the status of a run, and its end if it is given."""

    def tag_run(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags of a run."""

    def delete_run(self, run_id: str) -> None:
        """Mark a run as deleted."""

    def log(self, run_id: str, data: RunData) -> None:
        """Log metrics, parameters and tags of a run."""

    def log_file(self, run_id: str, path: Path) -> None:
        """Upload a file to a run."""

    def link_dataset(self, run_id: str, dataset: DatasetEntry) -> None:
        """Link a run to the data set that its model is trained on; a run is linked once."""

    def find_model(self, experiment_id: str, tags: Mapping[str, str]) -> tuple[str, bool] | None:
        """Return the id of a logged model with these tags and whether its files are complete; None if there is none."""

    def create_model(
        self,
        experiment_id: str,
        name: str,
        run_id: str,
        tags: Mapping[str, str],
        params: Mapping[str, str],
    ) -> str:
        """Create a logged model, whose files follow, and return its id."""

    def complete_model(self, model_id: str, folder: Path) -> None:
        """Upload the files of a logged model and mark it as complete."""

    def link_model(self, run_id: str, model_id: str) -> None:
        """Link a run to the logged model that it made; a run is linked once."""

    def tag_model(self, model_id: str, tags: Mapping[str, str]) -> None:
        """Set tags of a logged model."""
