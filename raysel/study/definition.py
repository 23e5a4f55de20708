"""Definition of a study: data, folds and configurations, checked before anything is computed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin

from raysel.arrays import FloatArray
from raysel.base.estimator import Estimator
from raysel.base.registry import build_solver, solver_capabilities
from raysel.config.schema import DatasetConfig, StudyConfig, TaskConfig
from raysel.cv.plan import InnerFold, NestedPlan, OuterFold
from raysel.cv.prepared import FoldData, make_fold_data
from raysel.cv.records import TrialRecord
from raysel.cv.scoring import Evaluation
from raysel.data.assembling import assemble
from raysel.data.dataset import Dataset
from raysel.data.layouts import SEPARATOR, Tasks
from raysel.data.loading import load_dataset
from raysel.data.scaling import make_scaler
from raysel.data.tasks import join_tasks
from raysel.errors import ConfigError, DataError, DirectoryError
from raysel.inspection.leaks import refuse_leaks
from raysel.inspection.remarks import data_remarks
from raysel.ranking.feature_ranking import default_n_selected
from raysel.search.configurations import Configuration, configurations, corners, restrict_to
from raysel.search.halving import SuccessiveHalving
from raysel.study.background import read_background
from raysel.study.checks import Findings, check_configurations, check_parameters, check_settings
from raysel.study.own_data import raw_data


@dataclass(frozen=True)
class Study:
    """Data, folds and configurations of one study.

    Parameters
    ----------
    config : StudyConfig
        Configuration of the study.
    dataset : Dataset
        Data set of the study.
    plan : NestedPlan
        Outer and inner folds.
    configurations : tuple of Configuration
        Configurations to try; empty if the search proposes them.
    findings : Findings
        Properties of the method: whether it ranks features, and whether its model can be saved.
    own : Dataset, optional
        Data set given in memory, with all modalities, which is still to be written to ``dataset.path``.
    background : ndarray of shape (n_cells,), optional
        Image that pictures show below maps, the value of each cell of a sample's array; None: the mean sample.
    """

    config: StudyConfig
    dataset: Dataset
    plan: NestedPlan
    configurations: tuple[Configuration, ...]
    findings: Findings = field(default_factory=Findings)
    own: Dataset | None = None
    background: FloatArray | None = None

    @classmethod
    def prepare(
        cls,
        config: StudyConfig,
        plan: Path | None = None,
        like: Study | None = None,
        own: Dataset | None = None,
    ) -> Study:
        """Load the data, draw the folds, list the configurations, and check them against each other.

        Parameters
        ----------
        config : StudyConfig
            Configuration of the study.
        plan : Path, optional
            The ``plan.json`` of a resumed study, whose folds are used. By default the folds are drawn, or read from
            ``cv.plan``.
        like : Study, optional
            Study on the same samples, whose folds are used, and whose data too if both read them alike.
        own : Dataset, optional
            Data set given in memory, with all modalities. By default the data are loaded.

        Returns
        -------
        Study
            The checked study.

        Raises
        ------
        ConfigError
            If a value of the configuration is invalid; names the value and how to fix it.
        DataError
            If the data cannot be read or used, hold an index or the label among the features, or have other labels
            than those of ``like``; names the defect and how to fix it.
        DirectoryError
            If the folds of a resumed study cannot be used.
        """
        dataset = like.dataset if like and like.reads_alike(config) else _load_data(config, own)
        shown = config.dataset.background
        background = read_background(shown, dataset.layout) if shown is not None else None
        if like and not np.array_equal(like.dataset.y, dataset.y):
            raise DataError(f"{dataset.name} has other labels than the data of {like.config.name}.")
        if plan is None and not (like and dataset is like.dataset):  # a resumed study goes on as it was started
            refuse_leaks(dataset, _kept(config))
        tried: list[Configuration] = []
        drawn: list[NestedPlan] = []

        def list_configurations() -> None:
            tried.extend(_list_configurations(config))
            examples = tried or corners(config.solver.params, config.solver.space)
            name, layout = config.solver.name, dataset.layout
            check_parameters(config, dataset, ((c.name, build_solver(name, layout, c.params)) for c in examples))

        def draw_folds() -> None:
            drawn.append(like.plan if like else _draw_folds(config, dataset, plan))

        check_settings(config, dataset, list_configurations, draw_folds)
        folds = drawn[0]
        study = cls(config, dataset, folds, tuple(tried), own=own, background=background)
        smallest = min((train for train, _ in folds.training_sets()), key=len)
        # A transductive method holds the test samples as well.
        transductive = solver_capabilities(config.solver.name).transductive
        largest = max(
            (np.concatenate([fold.train, fold.test]) if transductive else fold.train for fold in folds.folds), key=len
        )
        solvers = [(c.name, study.solver(c.params)) for c in study.examples]
        findings = check_configurations(config, dataset, solvers, smallest, largest, study.scaler())
        return replace(study, findings=findings, background=background)

    def with_data_at(self, path: Path) -> Study:
        """Return the study whose own data, if it has any, are read from a file.

        Parameters
        ----------
        path : Path
            File that the data set is written to.

        Returns
        -------
        Study
            The same study, with ``dataset.path`` set and without ``own``.
        """
        if self.own is None:
            return self
        section = self.config.dataset.model_copy(update={"path": str(path.absolute())})
        return replace(self, config=self.config.model_copy(update={"dataset": section}), own=None)

    def reads_alike(self, config: StudyConfig) -> bool:
        """Return whether a configuration reads the same data as this study, whatever their scaling."""
        scaled_alike = config.dataset.model_copy(update={"scaling": self.config.dataset.scaling})
        return scaled_alike == self.config.dataset and config.cv.groups == self.config.cv.groups

    @cached_property
    def data_remarks(self) -> list[str]:
        """Remarks on what in the data may make scores say less than they seem to."""
        return data_remarks(self.dataset, self.plan)

    @cached_property
    def examples(self) -> Sequence[Configuration]:
        """Representative configurations: the list, or the corners of the space if the search proposes them."""
        return self.configurations or corners(self.config.solver.params, self.config.solver.space)

    @cached_property
    def training_sets(self) -> list[tuple[OuterFold, int]]:
        """Inner training sets, each as its outer fold and the number of its inner fold."""
        return [(fold, i) for fold in self.plan.folds for i in range(len(fold.inner))]

    def solver(self, params: Mapping[str, Any], random_state: int | None = None) -> Estimator:
        """Return an unfitted solver with the given parameters, for the layout of the study's data."""
        return build_solver(self.config.solver.name, self.dataset.layout, params, random_state)

    def complexity_key(self, records: Iterable[TrialRecord]) -> dict[str, tuple[float, ...]]:
        """Return the complexity sort key of each trial's configuration, by the trial's id."""
        return {record.id: self.solver(record.params).complexity_key() for record in records}

    def configuration(self, params: Mapping[str, Any]) -> Configuration:
        """Return the configuration of these solver parameters."""
        return Configuration(params, tuple(self.config.solver.space))

    def halving(self) -> SuccessiveHalving:
        """Return a new successive halving for one outer fold."""
        search = self.config.search
        max_iter = max(self.solver(c.params).max_steps for c in self.examples)
        batch = search.batch_size if search.synchronous else None
        return SuccessiveHalving(search.grace_period, search.reduction_factor, max_iter, batch)

    def scaler(self) -> TransformerMixin:
        """Return an unfitted scaler as the configuration names it."""
        return make_scaler(self.config.dataset.scaling, self.dataset.layout)

    @cached_property
    def evaluation(self) -> Evaluation:
        """Settings by which fitted selectors are scored."""
        settings = self.config.evaluation
        tasks = tuple(self.dataset.layout.tasks) if isinstance(self.dataset.layout, Tasks) else ()
        return Evaluation(
            settings.classifier,
            settings.n_features,
            settings.n_neighbors,
            settings.metric,
            tasks,
            settings.report,
            settings.rule,
            settings.references,
        )

    @property
    def redundancy_sizes(self) -> tuple[int, ...]:
        """Numbers of best features whose redundancy is recorded: ``evaluation.n_features``, else the default top."""
        return self.config.evaluation.n_features or (self.default_top,)

    @property
    def default_top(self) -> int:
        """Number of features that count as selected where the inner scores choose none."""
        return default_n_selected(self.config.evaluation.n_features, self.dataset.n_features)

    def prepare_key(self, params: Mapping[str, Any]) -> str:
        """Return the values of the parameters that the method's preparation depends on, as JSON.

        Configurations with the same key share the preparation of a training set.
        """
        chosen = {name: params.get(name) for name in sorted(self._prepare_parameters)}
        return json.dumps(chosen)

    @cached_property
    def _prepare_parameters(self) -> frozenset[str]:
        return solver_capabilities(self.config.solver.name).prepare_parameters

    @cached_property
    def prepared_examples(self) -> dict[str, Mapping[str, Any]]:
        """Parameters of the first example with each `prepare_key`, by key."""
        found: dict[str, Mapping[str, Any]] = {}
        for example in self.examples if self._prepare_parameters else self.examples[:1]:
            found.setdefault(self.prepare_key(example.params), example.params)
        return found

    def fold_data(self, inner: InnerFold, params: Mapping[str, Any]) -> FoldData:
        """Scale and prepare one inner fold for all configurations with the same `prepare_key` as these parameters."""
        return make_fold_data(
            self.dataset.X,
            self.dataset.y,
            inner.train,
            inner.validation,
            scaler=self.scaler(),
            solver=self.solver(params),
        )

    @property
    def n_configurations(self) -> int:
        """Number of configurations to try on each outer fold."""
        return len(self.configurations) or self.config.search.num_samples or 0

    @property
    def n_trials(self) -> int:
        """Number of trials: inner training sets on a path, else configurations, times outer folds if adaptive."""
        if self.config.search.method == "path":
            return self.n_inner
        return self.n_configurations * (len(self.plan.folds) if self.config.search.adaptive else 1)

    @property
    def n_inner(self) -> int:
        """Number of inner training sets."""
        return len(self.training_sets)

    @property
    def largest(self) -> tuple[OuterFold, int]:
        """Inner training set with the most samples, as its outer fold and the number of its inner fold."""
        return max(self.training_sets, key=lambda item: len(item[0].inner[item[1]].train))

    @property
    def n_largest(self) -> float:
        """Number of samples of all inner training sets together, relative to the largest one."""
        fold, number = self.largest
        return sum(len(f.inner[i].train) for f, i in self.training_sets) / len(fold.inner[number].train)


def _load_data(config: StudyConfig, own: Dataset | None = None) -> Dataset:
    """Load the data set of a study, or join those of its tasks, or choose the modalities of one in memory."""
    source, groups = config.dataset, config.cv.groups
    if own is not None:
        return own if source.only is None else assemble(raw_data(own), own.name, only=source.only)
    if source.tasks is None:
        return load_dataset(
            source.path or source.source or "",
            mask=source.mask,
            modalities=source.modalities,
            only=source.only,
            exclude_labels=source.exclude_labels,
            **_of_file(source, groups),
        )
    tasks = {task.name: load_dataset(task.path or task.source or "", **_of_file(task, groups)) for task in source.tasks}
    return join_tasks(tasks, " + ".join(tasks))


def _kept(config: StudyConfig) -> list[str]:
    """Return the names of the columns that are accepted as features whatever they look like."""
    tasks, only = config.dataset.tasks or (), config.dataset.only
    # Names of modalities that are not used here, but by other members of a comparison, are no mistake.
    own = [name for name in config.dataset.keep if only is None or re.split(r"[.\[]", name)[0] in only]
    return [*own, *(f"{task.name}{SEPARATOR}{name}" for task in tasks for name in task.keep)]


def _of_file(source: DatasetConfig | TaskConfig, groups: str | None) -> dict[str, Any]:
    """Return the arguments of `load_dataset` that a single data set and a task have in common."""
    return {
        "label": source.label,
        "labels": source.labels,
        "groups": groups,
        "drop": source.drop,
        "delimiter": source.delimiter,
        "shape": source.shape,
        "order": source.order or "C",
        "classes": source.classes,
        "exclude_classes": source.exclude_classes,
    }


def _draw_folds(config: StudyConfig, dataset: Dataset, plan: Path | None) -> NestedPlan:
    """Draw a study's folds, or read those of a resumed study or of ``cv.plan``."""
    if plan is not None:
        try:
            return NestedPlan.load(plan, dataset.y, dataset.groups, final=config.cv.final)
        except ConfigError as error:
            raise DirectoryError(
                f"{plan.parent} cannot be resumed: {str(error).removeprefix('cv.plan: ')} "
                "Undo the change, or start a new study in another directory."
            ) from error
    if config.cv.plan:
        return NestedPlan.load(Path(config.cv.plan), dataset.y, dataset.groups, final=config.cv.final)
    return NestedPlan.make(
        dataset.y,
        outer=config.cv.outer,
        inner=config.cv.inner,
        repeats=config.cv.repeats,
        train_per_class=config.cv.train_per_class,
        groups=dataset.groups,
        seed=config.seed,
        final=config.cv.final,
    )


def _list_configurations(config: StudyConfig) -> tuple[Configuration, ...]:
    """List the configurations that a study tries; none if its sampler proposes them."""
    solver, search = config.solver, config.search
    found = configurations(
        solver.params, solver.space, method=search.method, num_samples=search.num_samples, seed=config.seed
    )
    return tuple(restrict_to(found, search.configurations) if search.configurations else found)
