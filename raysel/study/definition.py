"""A study with everything decided and checked, before any compute is spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin

from raysel.base.iterative import IterativeEstimator
from raysel.base.registry import SOLVERS, build_solver, check_multilabel, path_fitter, solver_class
from raysel.config.schema import StudyConfig
from raysel.cv.plan import InnerFold, NestedPlan, OuterFold
from raysel.cv.prepared import FoldData, make_fold_data
from raysel.cv.records import TrialRecord
from raysel.cv.scoring import Evaluation
from raysel.data.dataset import Dataset
from raysel.data.layouts import Tasks
from raysel.data.loading import load_dataset
from raysel.data.scaling import make_scaler
from raysel.data.tasks import join_tasks
from raysel.errors import ConfigError, DirectoryError
from raysel.metrics.classification import classification_metric
from raysel.search.configurations import Configuration, configurations, corners, restrict_to
from raysel.search.halving import SuccessiveHalving


@dataclass(frozen=True)
class Study:
    """Data, folds and configurations of one study.

    Parameters
    ----------
    config : StudyConfig
    dataset : Dataset
    plan : NestedPlan
    configurations : tuple of Configuration
        Those that are tried; none where the search finds them itself.
    """

    config: StudyConfig
    dataset: Dataset
    plan: NestedPlan
    configurations: tuple[Configuration, ...]

    @classmethod
    def prepare(cls, config: StudyConfig, plan: Path | None = None) -> Study:
        """Load the data, draw the folds, list the configurations, and check that all of it fits.

        Parameters
        ----------
        config : StudyConfig
        plan : Path, optional
            The ``plan.json`` of a study that goes on; its folds are taken whatever the configuration says.

        Returns
        -------
        Study

        Raises
        ------
        ConfigError, DataError
            Naming the culprit and the mend.
        """
        solver_class(config.solver.name)
        if config.search.method == "path":
            path_fitter(config.solver.name)
        classification_metric(config.evaluation.metric)
        dataset = _load(config)
        _check_kind(config, dataset)
        _check_evaluation(config, dataset)
        found = configurations(
            config.solver.params,
            config.solver.space,
            method=config.search.method,
            num_samples=config.search.num_samples,
            seed=config.seed,
        )
        if config.search.configurations:
            found = restrict_to(found, config.search.configurations)
        if plan:
            try:
                folds = NestedPlan.load(plan, dataset.y, dataset.groups)
            except ConfigError as error:
                raise DirectoryError(
                    f"{plan.parent} cannot be resumed: {str(error).removeprefix('cv.plan: ')} "
                    "Undo the change, or start a new study in another directory."
                ) from error
        elif config.cv.plan:
            folds = NestedPlan.load(Path(config.cv.plan), dataset.y, dataset.groups)
        else:
            folds = NestedPlan.make(
                dataset.y,
                outer=config.cv.outer,
                inner=config.cv.inner,
                repeats=config.cv.repeats,
                train_per_class=config.cv.train_per_class,
                groups=dataset.groups,
                seed=config.seed,
            )
        _check_search(config)
        smallest = min((train for train, _ in folds.training_sets()), key=len)
        if config.evaluation.classifier == "knn" and config.evaluation.n_neighbors > len(smallest):
            raise ConfigError(
                f"evaluation.n_neighbors={config.evaluation.n_neighbors} exceeds the {len(smallest)} samples "
                "of the smallest training set."
            )
        study = cls(config, dataset, folds, tuple(found))
        solvers = []
        for configuration in study.examples:
            solver = study.solver(configuration.params)
            try:
                solver.check(dataset.n_features)
                solver.check_training(dataset.y[smallest], None if dataset.tasks is None else dataset.tasks[smallest])
            except ConfigError as error:
                raise ConfigError(f"configuration {configuration.name}: {error}") from error
            solvers.append(solver)
        if config.search.method == "path":
            path_fitter(config.solver.name, solvers)
        return study

    @cached_property
    def examples(self) -> Sequence[Configuration]:
        """Configurations that stand for all: the list, or the space's corners where the search finds them itself."""
        return self.configurations or corners(self.config.solver.params, self.config.solver.space)

    @cached_property
    def training_sets(self) -> list[tuple[OuterFold, int]]:
        """Every inner training set, as its outer fold and its number there."""
        return [(fold, i) for fold in self.plan.folds for i in range(len(fold.inner))]

    def solver(self, params: Mapping[str, Any], random_state: int | None = None) -> IterativeEstimator:
        """A solver of the study's kind for the study's data."""
        return build_solver(self.config.solver.name, self.dataset.layout, params, random_state)

    def complexity_key(self, records: Iterable[TrialRecord]) -> dict[str, tuple[float, ...]]:
        """Each trial's place in the solver's order of simplicity, by id."""
        return {record.id: self.solver(record.params).complexity_key() for record in records}

    def fold_record(self, fold: str, params: Mapping[str, Any]) -> TrialRecord:
        """An empty record of a trial that carries one outer fold."""
        configuration = Configuration(params, tuple(self.config.solver.space))
        return TrialRecord(f"{fold}-{configuration.id}", configuration.name, dict(params), "finished", fold=fold)

    @property
    def rungs(self) -> SuccessiveHalving:
        """Where early stopping judges; fresh, without any score."""
        search = self.config.search
        max_iter = max(self.solver(c.params).max_steps for c in self.examples)
        batch = search.batch_size if search.synchronous else None
        return SuccessiveHalving(search.grace_period, search.reduction_factor, max_iter, batch)

    def scaler(self) -> TransformerMixin:
        """A scaler of the study's kind, not fitted."""
        return make_scaler(self.config.dataset.scaling, self.dataset.layout)

    @cached_property
    def evaluation(self) -> Evaluation:
        """How fitted selectors are scored."""
        settings = self.config.evaluation
        tasks = tuple(self.dataset.layout.tasks) if isinstance(self.dataset.layout, Tasks) else ()
        return Evaluation(settings.classifier, settings.n_features, settings.n_neighbors, settings.metric, tasks)

    def fold_data(self, inner: InnerFold) -> FoldData:
        """Scale and prepare one inner training set."""
        return make_fold_data(
            self.dataset.X,
            self.dataset.y,
            inner.train,
            inner.validation,
            scaler=self.scaler(),
            solver=self.solver(self.examples[0].params),
        )

    @property
    def n_configurations(self) -> int:
        """How many are tried, on each outer fold; a search that learns finds them as it goes."""
        return len(self.configurations) or self.config.search.num_samples or 0

    @property
    def n_trials(self) -> int:
        """Number of Ray Tune trials: a training set each on a path, else a configuration each, or each on a fold."""
        if self.config.search.method == "path":
            return self.n_inner
        return self.n_configurations * (len(self.plan.folds) if self.config.search.adaptive else 1)

    def n_scored(self, scores: Sequence[float]) -> int:
        """How many features have a score: above 0, and not of one value in all samples."""
        return int(((np.asarray(scores) > 0) & ~self.dataset.constant).sum())

    @property
    def n_inner(self) -> int:
        """Number of inner training sets."""
        return len(self.training_sets)

    @property
    def largest(self) -> tuple[OuterFold, int]:
        """The inner training set with the most samples, as its outer fold and its number there."""
        return max(self.training_sets, key=lambda item: len(item[0].inner[item[1]].train))

    @property
    def n_largest(self) -> float:
        """All inner training sets' samples, in units of the largest one's."""
        fold, number = self.largest
        return sum(len(f.inner[i].train) for f, i in self.training_sets) / len(fold.inner[number].train)


def _load(config: StudyConfig) -> Dataset:
    source, groups = config.dataset, config.cv.groups
    if source.tasks is None:
        return load_dataset(
            source.source or source.path or "",
            shape=source.shape,
            modalities=source.modalities,
            groups=groups,
            exclude_labels=source.exclude_labels,
        )
    tasks = {t.name: load_dataset(t.source or t.path or "", shape=t.shape, groups=groups) for t in source.tasks}
    return join_tasks(tasks, " + ".join(tasks))


def _check_search(config: StudyConfig) -> None:
    """Refuse a search that this evaluation does not admit."""
    if config.search.early_stopping and config.evaluation.classifier == "linear_svm":
        raise ConfigError(
            "search.early_stopping needs a score an iteration, and evaluation.classifier linear_svm is scored at the "
            "last one only: take knn or native."
        )


def _check_kind(config: StudyConfig, dataset: Dataset) -> None:
    """Refuse a solver, a metric or a scaling that is not for such data."""
    if dataset.is_multilabel:
        check_multilabel(config.solver.name)
        classification_metric(config.evaluation.metric, multilabel=True)
    if isinstance(dataset.layout, Tasks):
        able = [name for name, solver in SOLVERS.items() if "tasks" in solver.layout_parameters]
        if config.solver.name not in able:
            raise ConfigError(f"solver.name: {config.solver.name} is for one task; {', '.join(able)} take several.")
    make_scaler(config.dataset.scaling, dataset.layout)


def _check_evaluation(config: StudyConfig, dataset: Dataset) -> None:
    """Refuse an evaluation that these data do not admit."""
    settings = config.evaluation
    if settings.classifier == "native":
        return
    if isinstance(dataset.layout, Tasks):
        raise ConfigError(
            f"evaluation.classifier {settings.classifier} needs one feature space; several tasks take `native`."
        )
    if settings.n_features[-1] > dataset.n_features:
        raise ConfigError(
            f"evaluation.n_features: {settings.n_features[-1]} exceeds the "
            f"{dataset.n_features} features of {dataset.name}."
        )
