"""How a study's work is cut into Tune trials: a configuration each, or an inner training set each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from raysel.cv.records import PathRecord, TrialRecord
from raysel.search.path_trial import PathTrial, trial_records
from raysel.search.study import Study
from raysel.search.trial import FoldsTrial, SolverTrial
from raysel.tracking.journal import Journal


class Work(ABC):
    """The pieces of a study's work, each one Tune trial with one record.

    Parameters
    ----------
    study : Study
    """

    trainable: type[FoldsTrial]

    def __init__(self, study: Study) -> None:
        self.study = study

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """A name for each piece, fit for a folder."""

    @abstractmethod
    def blank(self, piece: int) -> Any:
        """An empty record of a piece."""

    @abstractmethod
    def read(self, raw: dict[str, Any]) -> Any:
        """The record that a trial has sent."""

    @abstractmethod
    def entry(self, record: Any) -> dict[str, Any]:
        """A record as the journal keeps it."""

    @abstractmethod
    def score(self, record: Any) -> float | None:
        """What the progress line may call the best so far."""

    @abstractmethod
    def finish(self, records: Sequence[Any], journal: Journal) -> list[TrialRecord]:
        """What the pieces say of each configuration, in the order of the configurations."""


class ByConfiguration(Work):
    """A piece is one configuration on all folds."""

    trainable = SolverTrial

    @property
    def names(self) -> list[str]:
        """The configurations' ids."""
        return [configuration.id for configuration in self.study.configurations]

    def blank(self, piece: int) -> TrialRecord:
        """An empty record of a configuration."""
        configuration = self.study.configurations[piece]
        return TrialRecord(configuration.id, configuration.name, dict(configuration.params), "finished")

    def read(self, raw: dict[str, Any]) -> TrialRecord:
        """The record that a trial has sent."""
        return TrialRecord.from_json(raw)

    def entry(self, record: TrialRecord) -> dict[str, Any]:
        """A trial with the curves that people look at."""
        return trial_entry(self.study, record)

    def score(self, record: TrialRecord) -> float | None:
        """The last mean validation score."""
        evaluation = self.study.evaluation
        curve = record.curves(evaluation.metric, evaluation.labels).get(f"val_{evaluation.metric}")
        return curve[-1] if curve else None

    def finish(self, records: Sequence[TrialRecord], journal: Journal) -> list[TrialRecord]:
        """The records themselves."""
        order = {name: i for i, name in enumerate(self.names)}
        return sorted(records, key=lambda record: order[record.id])


class ByTrainingSet(Work):
    """A piece is one inner training set with all configurations."""

    trainable = PathTrial

    @property
    def names(self) -> list[str]:
        """The training sets' folds."""
        return [f"{fold.name}-inner{i}" for fold, i in self.study.training_sets]

    def blank(self, piece: int) -> PathRecord:
        """An empty record of a training set."""
        fold, i = self.study.training_sets[piece]
        return PathRecord(fold.name, i)

    def read(self, raw: dict[str, Any]) -> PathRecord:
        """The record that a trial has sent."""
        return PathRecord.from_json(raw)

    def entry(self, record: PathRecord) -> dict[str, Any]:
        """A path."""
        return {"kind": "path", **record.to_json()}

    def score(self, record: PathRecord) -> float | None:
        """The best of one inner fold would be no configuration's score."""
        return None

    def finish(self, records: Sequence[PathRecord], journal: Journal) -> list[TrialRecord]:
        """Put the paths together, configuration by configuration, and write each down as a trial."""
        found = trial_records(self.study, records)
        for record in found:
            journal.append(trial_entry(self.study, record))
        return found


def trial_entry(study: Study, record: TrialRecord) -> dict[str, Any]:
    """A trial's journal entry.

    Parameters
    ----------
    study : Study
    record : TrialRecord

    Returns
    -------
    dict
    """
    curves = record.curves(study.evaluation.metric, study.evaluation.labels)
    tags = {"raysel.inferred": record.inferred} if record.inferred else {}
    return {"kind": "trial", **record.to_json(), "curves": curves, "metrics": {}, "tags": tags}
