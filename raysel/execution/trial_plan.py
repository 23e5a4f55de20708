"""How a study's work is cut into trials: by configuration, by inner training set, or by outer fold as well."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from raysel.cv.records import PathRecord, TrialRecord
from raysel.cv.seeds import derived_seed
from raysel.errors import StudyError
from raysel.execution.path_records import trial_records
from raysel.execution.trials import ConfigurationTrial, FoldTrial, PathTrial, Rung, Trial
from raysel.search.nested import FoldSearch
from raysel.study.definition import Study
from raysel.tracking.journal import Journal


class TrialPlan(ABC):
    """The pieces of a study's work, each one trial with one record.

    Parameters
    ----------
    study : Study
    kept : iterable of TrialRecord and PathRecord, default=()
        Records of an earlier run of the study: what they hold is not computed again.
    """

    piece: type[Trial]
    #: The class of the record that a piece ends with.
    record_class: type[TrialRecord | PathRecord] = TrialRecord

    def __init__(self, study: Study, kept: Iterable[TrialRecord | PathRecord] = ()) -> None:
        self.study = study
        self._all_proposed = False
        self.records: list[Any] = [record for record in kept if isinstance(record, self.record_class)]

    @property
    @abstractmethod
    def n_left(self) -> int:
        """How many pieces are still to be done, at most."""

    @abstractmethod
    def blank(self, config: Mapping[str, Any]) -> Any:
        """An empty record of a trial."""

    @abstractmethod
    def read(self, raw: Mapping[str, Any]) -> Any:
        """The record that a trial has sent."""

    @abstractmethod
    def score(self, record: Any) -> float | None:
        """What the progress line may call the best so far."""

    @abstractmethod
    def finish(self, journal: Journal) -> list[TrialRecord]:
        """What the pieces say of each configuration, in an order that does not depend on when they ended."""

    def keep(self, record: Any) -> None:
        """Take the record of a piece that has ended."""
        self.records.append(record)

    def failure(self, record: Any) -> str:
        """The error of a piece that failed."""
        return str(record.error)

    @abstractmethod
    def _configs(self) -> Iterator[dict[str, Any]]:
        """What each piece that is left is given, for a list that is known at the start."""

    @cached_property
    def _listed(self) -> Iterator[dict[str, Any]]:
        return self._configs()

    def propose(self) -> dict[str, Any] | None:
        """The next piece's configuration, with a ``name`` that is fit for a folder; None while there is none."""
        config = next(self._listed, None)
        self._all_proposed = config is None
        return config

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to propose."""
        return self._all_proposed

    def should_continue(self, config: Mapping[str, Any], rung: Rung) -> bool:
        """Whether a trial that has come to a rung may go on."""
        return True


class ConfigurationPlan(TrialPlan):
    """A piece is one configuration on all folds."""

    piece = ConfigurationTrial

    @property
    def n_left(self) -> int:
        """How many configurations are still to be tried."""
        return len(self._left())

    def _left(self) -> list[int]:
        """Positions of the configurations to try, in an order drawn from the seed: a cut search has seen all sides."""
        done = {record.id for record in self.records}
        found = self.study.configurations
        seed = derived_seed(self.study.config.seed, "trial order")
        return [i for i in np.random.default_rng(seed).permutation(len(found)).tolist() if found[i].id not in done]

    def _configs(self) -> Iterator[dict[str, Any]]:
        """The configurations' positions."""
        return ({"piece": i, "name": self.study.configurations[i].id} for i in self._left())

    def blank(self, config: Mapping[str, Any]) -> TrialRecord:
        """An empty record of a configuration."""
        configuration = self.study.configurations[config["piece"]]
        return TrialRecord(configuration.id, configuration.name, dict(configuration.params), "finished")

    def read(self, raw: Mapping[str, Any]) -> TrialRecord:
        """The record that a trial has sent."""
        return TrialRecord.from_json(dict(raw))

    def failure(self, record: TrialRecord) -> str:
        """The first error, with the outer folds that failed."""
        return record.failure

    def score(self, record: TrialRecord) -> float | None:
        """The last mean validation score."""
        evaluation = self.study.evaluation
        curve = record.curves(evaluation.metric, evaluation.labels).get(f"val_{evaluation.metric}")
        return curve[-1] if curve else None

    def finish(self, journal: Journal) -> list[TrialRecord]:
        """The records themselves, in the order of the configurations."""
        order = {configuration.id: i for i, configuration in enumerate(self.study.configurations)}
        return sorted(self.records, key=lambda record: order[record.id])


class TrainingSetPlan(TrialPlan):
    """A piece is one inner training set with all configurations that it has not solved before."""

    piece = PathTrial
    record_class = PathRecord

    def __init__(self, study: Study, kept: Iterable[TrialRecord | PathRecord] = ()) -> None:
        before = list(kept)
        super().__init__(study, before)
        self._found: dict[tuple[str, int], PathRecord] = {}
        for record in self.records:
            self._join(record)
        self.records = [record for record in self._found.values() if not self._missing(record)]
        self._written = {record.id for record in before if isinstance(record, TrialRecord)}

    @property
    def n_left(self) -> int:
        """How many training sets are still to be solved."""
        return len(self._left())

    def _missing(self, record: PathRecord | None) -> list[int]:
        """The configurations that a training set has not seen; none where it failed."""
        if record is None:
            return list(range(self.study.n_configurations))
        lacking = record.status != "failed"
        return [i for i, c in enumerate(self.study.configurations) if lacking and c.id not in record.fits]

    def _left(self) -> list[dict[str, Any]]:
        missing = (self._missing(self._found.get((fold.name, i))) for fold, i in self.study.training_sets)
        return [{"set": n, "configurations": lacking} for n, lacking in enumerate(missing) if lacking]

    def _configs(self) -> Iterator[dict[str, Any]]:
        """The training sets' positions, each with those of the configurations that it lacks."""
        for piece in self._left():
            fold, inner = self.study.training_sets[piece["set"]]
            yield {"piece": piece, "name": f"{fold.name}-inner{inner}"}

    def blank(self, config: Mapping[str, Any]) -> PathRecord:
        """An empty record of a training set."""
        fold, i = self.study.training_sets[config["piece"]["set"]]
        return PathRecord(fold.name, i)

    def read(self, raw: Mapping[str, Any]) -> PathRecord:
        """The record that a trial has sent."""
        return PathRecord.from_json(dict(raw))

    def keep(self, record: PathRecord) -> None:
        """Join what a training set has solved now to what it had."""
        super().keep(self._join(record))

    def _join(self, record: PathRecord) -> PathRecord:
        key = record.fold, record.inner
        self._found[key] = self._found[key].joined(record) if key in self._found else record
        return self._found[key]

    def score(self, record: PathRecord) -> float | None:
        """The best of one inner fold would be no configuration's score."""
        return None

    def finish(self, journal: Journal) -> list[TrialRecord]:
        """Put the paths together, configuration by configuration, and write each down as a trial, once."""
        if self._left():
            raise StudyError(
                f"{len(self.records)} of {len(self.study.training_sets)} training sets are done; on a path a "
                "configuration has no score before all are. Go on with --resume."
            )
        found = trial_records(self.study, self.records)
        for record in found:
            if record.id not in self._written:
                journal.append(record)
        return found


class FoldPlan(ConfigurationPlan):
    """A piece is one configuration on one outer fold, in a search that learns or stops early."""

    piece = FoldTrial

    def __init__(self, study: Study, kept: Iterable[TrialRecord | PathRecord] = ()) -> None:
        super().__init__(study, kept)
        self._searches = {
            fold.name: FoldSearch(study, fold, [record for record in self.records if record.fold == fold.name])
            for fold in study.plan.folds
        }

    @property
    def n_left(self) -> int:
        """How many trials are still to come, unless configurations repeat."""
        return self.study.n_trials - len(self.records)

    def blank(self, config: Mapping[str, Any]) -> TrialRecord:
        """An empty record of a configuration on a fold."""
        return self.study.fold_record(config["fold"], config["params"])

    def finish(self, journal: Journal) -> list[TrialRecord]:
        """The records themselves, by outer fold and configuration."""
        return sorted(self.records, key=lambda record: record.id)

    def keep(self, record: TrialRecord) -> None:
        """Tell the record's own fold, and no other."""
        super().keep(record)
        self._searches[record.fold].settle(record)

    def propose(self) -> dict[str, Any] | None:
        """A configuration for the outer fold that has asked least, of those that may ask; none hears of another."""
        for fold, search in sorted(self._searches.items(), key=lambda item: item[1].n_asked):
            record = search.next()
            if record is not None:
                return {"fold": fold, "params": record.params, "name": record.id}
        return None

    @property
    def exhausted(self) -> bool:
        """Whether no outer fold has anything left to propose."""
        return all(search.exhausted for search in self._searches.values())

    def should_continue(self, config: Mapping[str, Any], rung: Rung) -> bool:
        """Whether a trial that has come to a rung of its own outer fold may go on."""
        record = self.blank(config)
        return self._searches[config["fold"]].should_continue(record, rung.level, rung.score)


def trial_plan(study: Study, kept: Iterable[TrialRecord | PathRecord] = ()) -> TrialPlan:
    """A study's work, cut as its search needs it.

    Parameters
    ----------
    study : Study
    kept : iterable of TrialRecord and PathRecord, default=()
        Records of an earlier run.

    Returns
    -------
    TrialPlan
    """
    search = study.config.search
    kind = FoldPlan if search.adaptive else TrainingSetPlan if search.method == "path" else ConfigurationPlan
    return kind(study, kept)
