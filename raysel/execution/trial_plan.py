"""Division of a study into trials: by configuration, inner training set or outer fold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from raysel.core.errors import StudyError
from raysel.evaluation.lost_trials import valid_records, was_lost
from raysel.evaluation.nested_search import FoldSearch, empty_record
from raysel.evaluation.plan import derived_seed
from raysel.evaluation.records import FINAL, PathRecord, TrialRecord
from raysel.execution.trials import (
    ConfigurationTrial,
    FoldTrial,
    PathTrial,
    Rung,
    SharedStepsTrial,
    Trial,
    joined_record,
    mark_stopped,
    trial_records,
)
from raysel.study.definition import Study
from raysel.tracking.log import StudyLog


class TrialPlan(ABC):
    """Base class of the trial plans: trials that have ended, and those still to run."""

    #: Class of the trials.
    trial_class: type[Trial]
    #: Class of the record that a trial fills.
    record_class: type[TrialRecord | PathRecord] = TrialRecord

    def __init__(self, study: Study, done: Iterable[TrialRecord | PathRecord] = ()) -> None:
        self.study = study
        self._all_proposed = False
        self.records: list[Any] = [
            record
            for record in valid_records(done, study.config.search)
            if isinstance(record, self.record_class)
        ]

    @property
    def n_left(self) -> int:
        """Number of trials still to run; fewer if a search that learns proposes one again."""
        return self.study.n_trials - len(self.records)

    @abstractmethod
    def empty_record(self, config: Mapping[str, Any]) -> Any:
        """Return a record without results for a proposed trial."""

    @abstractmethod
    def score(self, record: Any) -> float | None:
        """Return the score of a trial for the display of the best so far; None without one."""

    @property
    def waiting(self) -> Sequence[Mapping[str, Any]]:
        """Parameters of the remaining trials in the order of proposal; empty if unknown."""
        return ()

    @property
    def parts(self) -> Sequence[Mapping[str, Any]]:
        """What makes of a trial's config those of its independent parts; one by default."""
        return ({},)

    def join(self, parts: Sequence[Any]) -> Any:
        """Return the record of a trial from those of its parts, in any order."""
        (record,) = parts
        return record

    @property
    def best(self) -> float | None:
        """Best score for the display among the trials that have ended; None if none has one."""
        scores = [score for record in self.records if (score := self.score(record)) is not None]
        return max(scores, default=None)

    @abstractmethod
    def finish(self, log: StudyLog) -> list[TrialRecord]:
        """Return the records of all configurations in their order, whenever the trials ended."""

    def add(self, record: Any) -> None:
        """Add the record of a trial that has ended."""
        self.records.append(record)

    @abstractmethod
    def _configs(self) -> Iterator[dict[str, Any]]:
        """Yield the configs of the remaining trials, which are known at the start."""

    @cached_property
    def _listed(self) -> Iterator[dict[str, Any]]:
        return self._configs()

    def propose(self) -> dict[str, Any] | None:
        """Return the config of the next trial, with its ``name``; None if there is none now."""
        config = next(self._listed, None)
        self._all_proposed = config is None
        return config

    @property
    def exhausted(self) -> bool:
        """Whether all trials were proposed."""
        return self._all_proposed

    def should_continue(self, config: Mapping[str, Any], rung: Rung) -> bool:
        """Return whether a trial continues at a rung; always True without early stopping."""
        return True

    def steps(self, trial: Trial, config: Mapping[str, Any]) -> Iterator[int]:
        """Run a trial in this process until it ends or early stopping ends it."""
        for iteration in trial.steps():
            rung = trial.rung(iteration)
            if rung and not self.should_continue(config, rung):
                mark_stopped(trial.record)
                return
            yield iteration


class ConfigurationPlan(TrialPlan):
    """Plan whose trials are one configuration on all outer folds each."""

    trial_class = ConfigurationTrial

    @property
    def parts(self) -> Sequence[Mapping[str, Any]]:
        """The outer folds."""
        return [{"fold": fold.name} for fold in self.study.plan.folds]

    def join(self, parts: Sequence[TrialRecord]) -> TrialRecord:
        """Return the record of a configuration from those of the outer folds."""
        return joined_record(self.study, parts)

    def _left(self) -> list[int]:
        """Indices of the configurations to try, shuffled for a search that is cut."""
        done = {record.id for record in self.records}
        configurations = self.study.configurations
        seed = derived_seed(self.study.config.seed, "trial order")
        order = np.random.default_rng(seed).permutation(len(configurations)).tolist()
        return [i for i in order if configurations[i].id not in done]

    def _configs(self) -> Iterator[dict[str, Any]]:
        return ({"configuration": i, "name": self.study.configurations[i].id} for i in self._left())

    @property
    def waiting(self) -> Sequence[Mapping[str, Any]]:
        """Parameters of the configurations that are still to try."""
        return [self.study.configurations[i].params for i in self._left()]

    def empty_record(self, config: Mapping[str, Any]) -> TrialRecord:
        """Return an empty record of a configuration."""
        return empty_record(self.study.configurations[config["configuration"]])

    def score(self, record: TrialRecord) -> float | None:
        """Return the last mean validation score; None if every outer fold failed."""
        rule = self.study.evaluation.choose_n
        scores = {
            name: score
            for name, trace in record.folds.items()
            if (score := trace.score(rule)) is not None
        }
        shown = [score for name, score in scores.items() if name != FINAL] or list(scores.values())
        if not shown:
            return None
        return float(np.mean(shown))

    def finish(self, log: StudyLog) -> list[TrialRecord]:
        """Return the records in the order of the configurations."""
        order = {configuration.id: i for i, configuration in enumerate(self.study.configurations)}
        return sorted(self.records, key=lambda record: order[record.id])


class TrainingSetPlan(TrialPlan):
    """Plan whose trials are one inner training set each, with all configurations left for it."""

    trial_class = PathTrial
    record_class = PathRecord

    def __init__(self, study: Study, done: Iterable[TrialRecord | PathRecord] = ()) -> None:
        before = list(done)
        super().__init__(study, before)
        self._paths: dict[tuple[str, int], PathRecord] = {}
        for record in self.records:
            self._join(record)
        self.records = [record for record in self._paths.values() if not self._missing(record)]
        # A path that was lost is in the records of all configurations, which are written anew.
        again = any(isinstance(record, PathRecord) and was_lost(record) for record in before)
        self._written = {
            record.id for record in before if isinstance(record, TrialRecord) and not again
        }

    def _missing(self, record: PathRecord | None) -> list[int]:
        """Indices of the configurations that are not fitted to a training set yet."""
        if record is None:
            return list(range(self.study.n_configurations))
        lacking = record.status != "failed"
        return [
            i
            for i, c in enumerate(self.study.configurations)
            if lacking and c.id not in record.fits and c.id not in record.errors
        ]

    def _left(self) -> list[tuple[int, list[int]]]:
        """Indices of the incomplete training sets, each with those that it misses."""
        missing = (
            self._missing(self._paths.get((fold.name, i))) for fold, i in self.study.training_sets
        )
        return [(n, lacking) for n, lacking in enumerate(missing) if lacking]

    def _configs(self) -> Iterator[dict[str, Any]]:
        for n, lacking in self._left():
            fold, inner = self.study.training_sets[n]
            yield {
                "training_set": n,
                "configurations": lacking,
                "name": f"{fold.name}-inner{inner}",
            }

    def empty_record(self, config: Mapping[str, Any]) -> PathRecord:
        """Return an empty record of a training set."""
        fold, i = self.study.training_sets[config["training_set"]]
        return PathRecord(fold.name, i)

    def add(self, record: PathRecord) -> None:
        """Join the record of a training set with that of its earlier path."""
        super().add(self._join(record))

    def _join(self, record: PathRecord) -> PathRecord:
        key = record.fold, record.inner
        if before := self._paths.get(key):
            record = before.joined(record)
        self._paths[key] = record
        return record

    def score(self, record: PathRecord) -> float | None:
        """Return None: one inner fold gives no score of a configuration."""
        return None

    def finish(self, log: StudyLog) -> list[TrialRecord]:
        """Assemble the paths into a trial record of each configuration, and log new ones."""
        if self._left():
            raise StudyError(
                f"only {len(self.records)} of {len(self.study.training_sets)} training sets are"
                " done, and with search.method path no configuration has a score before all are."
                " Resume the study, or raise search.time_budget."
            )
        records = trial_records(self.study, self.records)
        for record in records:
            if record.id not in self._written:
                log.record(record)
        return records


class SharedStepsPlan(TrainingSetPlan):
    """Plan whose trials share the steps in which configurations of a Pipeline agree."""

    trial_class = SharedStepsTrial


class FoldPlan(ConfigurationPlan):
    """Plan whose trials are one configuration on one outer fold each, for adaptive searches."""

    trial_class = FoldTrial

    def __init__(self, study: Study, done: Iterable[TrialRecord | PathRecord] = ()) -> None:
        super().__init__(study, done)
        self._searches = {
            fold.name: FoldSearch(
                study.config,
                fold,
                configurations=study.configurations,
                halving=study.halving(),
                done=[record for record in self.records if record.fold == fold.name],
            )
            for fold in study.plan.folds
        }

    parts = TrialPlan.parts
    join = TrialPlan.join

    @property
    def waiting(self) -> Sequence[Mapping[str, Any]]:
        """Empty, because the outer folds propose in turn."""
        return ()

    def empty_record(self, config: Mapping[str, Any]) -> TrialRecord:
        """Return an empty record of a configuration on an outer fold."""
        return empty_record(
            self.study.configuration(config["params"]), config["fold"], config["number"]
        )

    def finish(self, log: StudyLog) -> list[TrialRecord]:
        """Return the records by outer fold and configuration."""
        return sorted(self.records, key=lambda record: record.id)

    def add(self, record: TrialRecord) -> None:
        """Report a trial to the search of its own outer fold only."""
        super().add(record)
        self._searches[record.fold].tell(record)

    def propose(self) -> dict[str, Any] | None:
        """Propose a configuration for the outer fold with the fewest proposals that has one now."""
        for fold, search in sorted(self._searches.items(), key=lambda item: item[1].n_asked):
            record = search.next()
            if record is not None:
                return {
                    "fold": fold,
                    "params": record.params,
                    "number": record.number,
                    "name": record.id,
                }
        return None

    @property
    def exhausted(self) -> bool:
        """Whether all outer folds have proposed all of their configurations."""
        return all(search.exhausted for search in self._searches.values())

    def should_continue(self, config: Mapping[str, Any], rung: Rung) -> bool:
        """Return whether a trial continues, by the search of its own outer fold."""
        return self._searches[config["fold"]].should_continue(
            self.empty_record(config), rung.level, rung.score
        )


def trial_plan(study: Study, done: Iterable[TrialRecord | PathRecord] = ()) -> TrialPlan:
    """Return the trial plan for a study's search method."""
    search = study.config.search
    if search.adaptive:
        return FoldPlan(study, done)
    if search.is_path:
        return TrainingSetPlan(study, done)
    if study.shares_steps:
        return SharedStepsPlan(study, done)
    return ConfigurationPlan(study, done)
