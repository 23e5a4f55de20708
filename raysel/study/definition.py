"""Definition of a study: data, folds and configurations, checked before anything is computed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import TransformerMixin

from raysel.base.estimator import Capabilities, Estimator
from raysel.base.registry import build_solver, find_method, solver_capabilities, solver_class
from raysel.base.template import Template
from raysel.config.schema import StudyConfig
from raysel.config.values import CORRELATED, MODALITIES
from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.core.errors import DataError
from raysel.data.dataset import Dataset
from raysel.data.feature_groups import make_feature_groups
from raysel.data.preparation.preparation import Preparation
from raysel.data.scaling import make_scaler
from raysel.data.table_rows import TableRows
from raysel.evaluation.configurations import Configuration, corners
from raysel.evaluation.feature_ranking import default_n_selected
from raysel.evaluation.nested_search import SuccessiveHalving
from raysel.evaluation.plan import NestedPlan, OuterFold
from raysel.evaluation.records import TrialRecord
from raysel.evaluation.scoring import Evaluation
from raysel.evaluation.split import Split, SplitRows
from raysel.study.background import read_background
from raysel.study.checks import (
    Problems,
    check_data,
    check_evaluation,
    check_folds,
    check_method,
    check_metrics,
    check_parameters,
    make_scoring_estimator,
    refuse_importance,
)
from raysel.study.defaults import with_defaults
from raysel.study.inputs import (
    draw_folds,
    kept_columns,
    list_configurations,
    load_data,
    make_blocks,
)
from raysel.study.inspection.batches import batch_remarks
from raysel.study.inspection.column_copies import column_copy_remarks
from raysel.study.inspection.leaks import refuse_leaks
from raysel.study.inspection.remarks import (
    DataRemarks,
    constant_remarks,
    data_remarks,
    scale_remarks,
)
from raysel.study.preparation import (
    build_preparation,
    check_numbers,
    check_sites,
    tried_preparation,
)
from raysel.study.trial_fits import Findings, check_configurations

_NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True)
class Study:
    """Data, folds and configurations of one study."""

    config: StudyConfig
    dataset: Dataset
    plan: NestedPlan
    configurations: tuple[Configuration, ...]
    findings: Findings = field(default_factory=Findings)
    own: Dataset | None = None
    #: Image that pictures show below maps, the value of each cell of a sample's array; None: the
    #: mean sample; shape (n_cells,).
    background: FloatArray | None = None
    #: Columns of each group of features, by its name.
    feature_groups: Mapping[str, list[int]] = field(default_factory=dict)
    #: Estimator that is given as an object; None: that of ``solver.name``.
    template: Template | None = None
    #: What ``search.executor`` auto stands for; None: not known yet.
    auto: Literal["ray", "serial"] | None = None

    @property
    def executor(self) -> Literal["ray", "serial"]:
        """Where the trials are computed."""
        chosen = self.config.search.executor
        if chosen == "auto":
            return self.auto or "ray"
        return chosen

    @classmethod
    def prepare(
        cls,
        config: StudyConfig,
        plan: Path | None = None,
        like: Study | None = None,
        own: Dataset | None = None,
        *,
        read: Dataset | None = None,
    ) -> Study:
        """Load the data, draw the folds, list the configurations, and check all together.

        ``read`` are the data that the configuration names, where they are read already.
        """
        dataset = like.dataset if like and like.reads_alike(config) else read
        if dataset is None:
            dataset = load_data(config, own)
        scaling = config.dataset.scaling or dataset.layout.default_scaling
        found: dict[str, Any] = {"scaling": scaling}
        if not dataset.target.is_of_classes:
            found["task"] = dataset.target.task
        name = find_method(config.solver.name, dataset.target.kind)
        if name != config.solver.name:
            solver = config.solver.model_copy(update={"name": name})
            config = config.model_copy(update={"solver": solver})
        config = with_defaults(config, dataset)
        config = config.model_copy(update={"dataset": config.dataset.model_copy(update=found)})
        background = None
        if config.dataset.background is not None:
            background = read_background(config.dataset.background, dataset.layout)
        if like and not np.array_equal(like.dataset.y, dataset.y):
            raise DataError(f"{dataset.name} has other labels than the data of {like.config.name}.")
        is_shared = like is not None and dataset is like.dataset
        if plan is None and not is_shared:  # a resumed study goes on as it was started
            refuse_leaks(dataset.excerpt, kept_columns(config))
        study = cls(config, dataset, NestedPlan(0, ()), (), own=own, background=background)
        draw = (lambda: like.plan) if like else partial(draw_folds, config, dataset, plan)
        study = study.checked(draw, partial(list_configurations, config))
        if plan is None and like and is_shared:  # a resumed study has recorded them
            # Those of the same samples and folds, which take seconds.
            vars(study)["data_remarks"] = like.data_remarks
        return study

    def checked(
        self,
        draw: Callable[[], NestedPlan],
        configurations: Callable[[], tuple[Configuration, ...]],
        *,
        saved: bool = True,
    ) -> Study:
        """Return the study with folds and configurations, after a check of all together.

        Whether its models can be ``saved`` is not found out for a study that saves none.
        """
        config, dataset, can = self.config, self.dataset, self.capabilities
        check_method(config, can)
        preparation = self.preparation()
        tried_out = preparation and tried_preparation(preparation, dataset)
        check_data(config, dataset, can)
        problems, study = Problems(), self
        with problems.collect():
            groups = make_feature_groups(config.dataset.feature_groups, dataset)
            study = replace(study, feature_groups=groups)
        with problems.collect():
            check_evaluation(config, dataset)
        with problems.collect():
            if self.ranks_by_permutation and self.kept_whole is not None:
                refuse_importance("cv.groups" if self.block_numbers is None else "cv.blocks")
        with problems.collect():
            study = replace(study, configurations=configurations())
            made = ((c.name, study.solver(c.params)) for c in study.examples)
            check_parameters(config, dataset, made, tried_out)
            check_numbers(self.preparation(c.params) for c in study.examples)
        with problems.collect():
            study = replace(study, plan=draw())
            if preparation is not None:
                check_sites(preparation, dataset, study.plan)
        problems.report(dataset.name)
        fold, number = study.smallest
        state = fold.random_state(config.seed, number)
        solvers = [(c.name, study.solver(c.params, state, ranked=False)) for c in study.examples]
        check_metrics(config, dataset, solvers[0][1].labelled(dataset.y))
        check_folds(config, dataset, study.plan)
        smallest, largest = study.extreme_training_sets
        scaler = study.scaler()
        findings = check_configurations(
            config=config,
            dataset=dataset,
            can=can,
            solvers=solvers,
            train=smallest,
            largest=largest,
            scaler=scaler,
            preparation=study.preparation(),
            random_state=state,
            saved=saved,
        )
        return replace(study, findings=findings)

    @cached_property
    def capabilities(self) -> Capabilities:
        """Capabilities of the method."""
        if self.template:
            return self.template.capabilities
        return solver_capabilities(self.config.solver.name)

    @property
    def ranks_by_permutation(self) -> bool:
        """Whether the features are ranked by permutation importance."""
        if self.config.solver.importance is not None:
            return True
        return any(getattr(cls, "ranks_by_permutation", False) for cls in self.method_classes)

    @property
    def method_classes(self) -> list[type]:
        """Class that the configuration names, or those of the estimator that is given."""
        if self.template:
            return self.template.classes
        return [solver_class(self.config.solver.name)]

    def with_data_at(self, path: Path) -> Study:
        """Return the study whose own data, if it has any, are read from a file."""
        if self.own is None:
            return self
        section = self.config.dataset.model_copy(update={"path": str(path.absolute())})
        return replace(self, config=self.config.model_copy(update={"dataset": section}), own=None)

    def reads_alike(self, config: StudyConfig) -> bool:
        """Return whether a configuration reads this study's data, whatever the scaling of both."""
        same: dict[str, Any] = {"scaling": self.config.dataset.scaling}
        if config.dataset.task is None:  # found in this study
            same["task"] = self.config.dataset.task
        scaled_alike = config.dataset.model_copy(update=same)
        return scaled_alike == self.config.dataset and config.cv.groups == self.config.cv.groups

    @cached_property
    def data_remarks(self) -> DataRemarks:
        """Remarks on the data."""
        excerpt, n = self.dataset.excerpt, self.dataset.n_samples
        if isinstance(excerpt.X, TableRows):
            excerpt = replace(excerpt, X=excerpt.X.filled)
        others = list(constant_remarks(excerpt))
        of_copies = column_copy_remarks(excerpt) if self.ranks_by_permutation else ()
        if excerpt.n_samples == n:
            of_batches = list(batch_remarks(self.preparation(), self.dataset, self.plan))
            told = [remark for remark, is_told in of_batches if is_told]
            others += [remark for remark, is_told in of_batches if not is_told]
            return DataRemarks([*data_remarks(excerpt, self.plan), *told, *of_copies], others)
        looked_at = (
            f"Remarks on the data are of {excerpt.n_samples} of the {n} samples, which stay in"
            " their file."
        )
        return DataRemarks([looked_at, *data_remarks(excerpt), *of_copies], others)

    @property
    def scale_remarks(self) -> list[str]:
        """Remarks on features whose different scales the study's scaling leaves."""
        template = self.template
        if isinstance(self.dataset.X, TableRows):
            return []  # the estimator itself prepares their cells
        if template is not None and template.transforms and self.evaluation.is_native:
            return []  # nothing but the estimator reads the columns as they are
        return list(scale_remarks(self.dataset.excerpt, self.config.dataset.scaling))

    @cached_property
    def block_numbers(self) -> IntArray | None:
        """Block of consecutive rows of each sample, by ``cv.blocks``; None without it."""
        blocks = make_blocks(self.config, self.dataset)
        if blocks is None:
            return None
        return blocks.numbers(self.dataset.n_samples)

    @property
    def kept_whole(self) -> LabelArray | None:
        """Group, or block of rows, of each sample, which all splits keep whole; None without."""
        if self.block_numbers is None:
            return self.dataset.groups
        return self.block_numbers

    @cached_property
    def examples(self) -> Sequence[Configuration]:
        """Representative configurations: the list, or corners of a space that is searched."""
        return self.configurations or corners(self.config.solver.params, self.config.solver.space)

    @cached_property
    def training_sets(self) -> list[tuple[OuterFold, int]]:
        """Inner training sets, each as its outer fold and the number of its inner fold."""
        sets: list[tuple[OuterFold, int]] = []
        for fold in self.plan.folds:
            sets += [(fold, number) for number in range(len(fold.inner))]
        return sets

    @property
    def extreme_training_sets(self) -> tuple[IntArray, IntArray]:
        """Samples of the smallest inner and of the largest outer training set.

        A transductive method holds the test samples as well.
        """
        fold, number = self.smallest
        sets = [fold.train for fold in self.plan.folds]
        if self.capabilities.transductive:
            sets = [np.concatenate([fold.train, fold.test]) for fold in self.plan.folds]
        return fold.inner[number].train, max(sets, key=len)

    def solver(
        self, params: Mapping[str, Any], random_state: int | None = None, *, ranked: bool = True
    ) -> Estimator:
        """Return an unfitted solver with the given parameters, for the layout of the study's data.

        Without a ``random_state`` it has the study's seed: a class may refuse None, which would
        also draw from NumPy's global generator.
        """
        if random_state is None:
            random_state = self.config.seed
        params = {k: v for k, v in params.items() if k not in self.config.searched_steps}
        if self.template is not None:
            return self.template.solver(params, random_state)
        loss = None
        if self.config.solver.importance and ranked:
            loss = self.config.evaluation.metric
        return build_solver(
            self.config.solver.name,
            self.dataset.layout,
            params=params,
            random_state=random_state,
            importance=loss,
            groups=self._solver_groups,
        )

    @cached_property
    def _solver_groups(self) -> Mapping[str, Any] | None:
        """Groups for a method that takes them, by default the modalities; None for another.

        Those that correlate are formed by the method, of training samples.
        """
        if self.template or not self.capabilities.grouped:
            return None
        given = self.config.dataset.feature_groups
        if isinstance(given, Mapping) and isinstance(given.get(CORRELATED), float):
            return given
        if given is None and self.dataset.layout.is_multimodal:
            return make_feature_groups(MODALITIES, self.dataset)
        return self.feature_groups

    def trial_solver(self, params: Mapping[str, Any], random_state: int | None = None) -> Estimator:
        """Return an unfitted solver for a trial, which ranks by permutation only if scored so."""
        return self.solver(params, random_state, ranked=not self.evaluation.is_native)

    def preference(
        self, records: Iterable[TrialRecord]
    ) -> dict[str, tuple[tuple[float, ...], int]]:
        """Return complexity and place in the search of each trial's configuration, by its id."""
        listed = {
            configuration.id: number for number, configuration in enumerate(self.configurations)
        }
        return {
            record.id: (
                self.solver(record.params).complexity_key(),
                listed.get(self.configuration(record.params).id, record.number),
            )
            for record in records
        }

    def configuration(self, params: Mapping[str, Any]) -> Configuration:
        """Return the configuration of these solver parameters."""
        return Configuration(params, tuple(self.config.solver.space))

    def halving(self) -> SuccessiveHalving:
        """Return a new successive halving for one outer fold."""
        search = self.config.search
        max_iter = max(self.solver(c.params).max_steps for c in self.examples)
        return SuccessiveHalving(
            search.grace_period, search.reduction_factor, max_iter, search.synchronous_batch
        )

    def scaler(self) -> TransformerMixin:
        """Return an unfitted scaler as the configuration names it."""
        return make_scaler(str(self.config.dataset.scaling), self.dataset.layout)

    @cached_property
    def _preparation(self) -> Preparation | None:
        return build_preparation(self.config, self.dataset)

    def preparation(self, params: Mapping[str, Any] | None = None) -> Preparation | None:
        """Return an unfitted preparation of the columns; None without ``dataset.prepare``.

        Numbers of its steps that are searched are those of a configuration's parameters, by default
        of the first example's.
        """
        if self._preparation is None:
            return None
        made = self._preparation.with_numbers(self.examples[0].params if params is None else params)
        groups = self._solver_groups
        if groups is not None and not isinstance(groups.get(CORRELATED), float):
            made.set_params(groups=groups)
        return made

    @cached_property
    def evaluation(self) -> Evaluation:
        """Settings by which fitted selectors are scored."""
        settings = self.config.evaluation
        tasks, estimator = self.dataset.layout.task_names, make_scoring_estimator(settings)
        references = settings.references
        if not self.config.dataset.in_memory:
            references = references and "chance"
        return Evaluation(
            estimator=estimator.name,
            n_features=settings.n_features,
            n_neighbors=settings.n_neighbors,
            metric=settings.metric,
            tasks=tasks,
            report=settings.report,
            choose_n=settings.rule,
            references=references,
            params=estimator.params,
            settings=estimator.settings,
            stored=not self.config.dataset.in_memory,
            unscaled=self.config.dataset.scaling == "none",
        )

    @property
    def redundancy_sizes(self) -> tuple[int, ...]:
        """Numbers of best features whose redundancy is recorded."""
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
        return self.capabilities.prepare_parameters | self.config.searched_steps

    @cached_property
    def prepared_examples(self) -> dict[str, Mapping[str, Any]]:
        """Parameters of the first example with each `prepare_key`, by key."""
        examples: dict[str, Mapping[str, Any]] = {}
        differing = self.examples
        if not self._prepare_parameters:
            differing = differing[:1]
        for example in differing:
            examples.setdefault(self.prepare_key(example.params), example.params)
        return examples

    def split(
        self, fold: OuterFold, inner: int | None = None, params: Mapping[str, Any] | None = None
    ) -> Split:
        """Fit preparation and scaler to the training set of an outer fold, or of an inner one.

        ``params`` are those of the configuration that is fitted to it, see `preparation`.
        """
        train, test = fold.train, fold.test
        if inner is not None:
            train, test = fold.inner[inner].train, fold.inner[inner].validation
        state = fold.random_state(self.config.seed, inner)
        return self.fit_split(train, test, params=params, random_state=state, name=fold.name)

    def inner_splits(self, fold: OuterFold, params: Mapping[str, Any]) -> Iterator[Split]:
        """Yield each inner split of an outer fold, without holding it beside the next."""
        for inner in range(len(fold.inner)):
            yield self.split(fold, inner, params=params).with_test()

    def trial_split(self, fold: OuterFold, inner: int, params: Mapping[str, Any]) -> Split:
        """Prepare an inner split for all configurations with the `prepare_key` of parameters."""
        return self.split(fold, inner, params=params).for_trials(self.solver(params))

    def fit_split(
        self,
        train: IntArray,
        test: IntArray = _NO_ROWS,
        *,
        params: Mapping[str, Any] | None = None,
        random_state: int = 0,
        name: str = "",
    ) -> Split:
        """Fit preparation and scaler to some samples, as `preparation` for parameters."""
        X, y = self.dataset.X, self.dataset.y
        return Split.fit(
            SplitRows(X=X, y=y, train=train, test=test, groups=self.kept_whole),
            self.scaler(),
            self.preparation(params),
            random_state=random_state,
            name=name,
        )

    @property
    def n_configurations(self) -> int:
        """Number of configurations to try on each outer fold."""
        return len(self.configurations) or self.config.search.num_samples or 0

    @property
    def n_trials(self) -> int:
        """Number of trials: of inner training sets on a path, of configurations, or of both."""
        if self.config.search.is_path or self.shares_steps:
            return self.n_inner
        if self.config.search.adaptive:
            return self.n_configurations * len(self.plan.folds)
        return self.n_configurations

    @property
    def shares_steps(self) -> bool:
        """Whether configurations of an estimator that is given as an object share fitted steps.

        They are tried together on each inner training set.
        """
        if self.template is None or isinstance(self.template.estimator, Estimator):
            return False
        listed = not self.config.search.adaptive and self.n_configurations > 1
        return listed and self.evaluation.is_native

    @property
    def n_inner(self) -> int:
        """Number of inner training sets."""
        return len(self.training_sets)

    @property
    def largest(self) -> tuple[OuterFold, int]:
        """Inner training set with the most samples: its outer fold, the number of its inner one."""
        return max(self.training_sets, key=lambda item: len(item[0].inner[item[1]].train))

    @property
    def smallest(self) -> tuple[OuterFold, int]:
        """Inner training set with the fewest samples, as `largest`."""
        return min(self.training_sets, key=lambda item: len(item[0].inner[item[1]].train))

    @property
    def n_largest(self) -> float:
        """Number of samples of all inner training sets together, relative to the largest one."""
        fold, number = self.largest
        return sum(len(f.inner[i].train) for f, i in self.training_sets) / len(
            fold.inner[number].train
        )
