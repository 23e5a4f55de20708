"""The configuration of a study, as one validated, immutable object."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, PlainValidator, model_validator

from raysel.config.manifest import tried_configurations
from raysel.config.space import MOST_CONFIGURATIONS, Domain, Scalar, domain_from_yaml, scalar_from_yaml


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


# Strict, for "3" and true are no counts.
Count = Annotated[int, Field(strict=True, ge=1)]
Folds = Annotated[int, Field(strict=True, ge=2)]
Seconds = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Parameter = Annotated[Scalar, PlainValidator(scalar_from_yaml)]
SpaceDomain = Annotated[Domain, BeforeValidator(domain_from_yaml), PlainSerializer(lambda domain: domain.to_yaml())]


class TaskConfig(_Section):
    """One task of several: its name and its file, or a built-in set."""

    name: Annotated[str, Field(pattern=r"^[^/]+$")]
    path: str | None = None
    source: str | None = None
    shape: Annotated[tuple[Count, ...], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> TaskConfig:
        if (self.source is None) == (self.path is None):
            raise ValueError("give exactly one of `source` (a built-in set, e.g. digits) and `path` (a file)")
        return self


class DatasetConfig(_Section):
    """Where the samples come from and how they are scaled.

    Parameters
    ----------
    source : str, optional
        A built-in set, e.g. ``digits``. Exactly one of source, path and tasks.
    path : str, optional
        A file; a relative one is looked up from the working directory, then from ``$RAYSEL_DATA``.
    tasks : list of {name, path | source, shape}, optional
        Several data sets, each with a feature space and classes of its own.
    shape : list of int, optional
        Height and width, where the file does not say.
    modalities : dict of str to int, optional
        Each modality's number of columns, in order, where the file does not say.
    exclude_labels : list of str, default=[]
        Labels of an indicator that are left out.
    scaling : {"unit", "zscore", "none", "zscore_sqrt_width", "minmax", "row_unit"}, default="unit"
        Fitted on each training set; the last three go modality by modality.
    """

    source: str | None = None
    path: str | None = None
    tasks: Annotated[tuple[TaskConfig, ...], Field(min_length=2)] | None = None
    shape: Annotated[tuple[Count, ...], Field(min_length=1)] | None = None
    modalities: Annotated[dict[str, Count], Field(min_length=1)] | None = None
    exclude_labels: tuple[str, ...] = ()
    scaling: Literal["unit", "zscore", "none", "zscore_sqrt_width", "minmax", "row_unit"] = "unit"

    @model_validator(mode="after")
    def _one_origin(self) -> DatasetConfig:
        if [self.source, self.path, self.tasks].count(None) != 2:
            raise ValueError(
                "give exactly one of `source` (a built-in set, e.g. digits), `path` (a file) and "
                "`tasks` (a list of both)"
            )
        if self.tasks is not None and (self.shape or self.modalities or self.exclude_labels):
            raise ValueError(
                "`shape`, `modalities` and `exclude_labels` are for one file; a task has a `shape` of its own"
            )
        names = [task.name for task in self.tasks or ()]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"the task {twice[0]} is named twice; give each task a name of its own")
        return self


class SolverConfig(_Section):
    """Which solver, its fixed parameters and the space that is searched."""

    name: str
    params: dict[str, Parameter] = {}
    space: dict[str, SpaceDomain] = {}

    @model_validator(mode="after")
    def _no_parameter_twice(self) -> SolverConfig:
        if both := sorted(set(self.params) & set(self.space)):
            raise ValueError(f"{', '.join(both)} stands in `params` and in `space`; keep one")
        return self


class EvaluationConfig(_Section):
    """How a ranking, or a fitted model, is scored on samples it has not seen.

    Parameters
    ----------
    classifier : {"native", "knn", "linear_svm"}, default="knn"
        ``native`` is the model's own ``predict``; the others use the best ``n_features`` features.
    n_neighbors : int, default=1
    n_features : list of int
        Each is scored; the score is their mean. Not used by ``native``.
    metric : str, default="accuracy"
    """

    classifier: Literal["native", "knn", "linear_svm"] = "knn"
    n_neighbors: Count = 1
    n_features: tuple[Count, ...] = ()
    metric: str = "accuracy"

    @model_validator(mode="after")
    def _features_to_score(self) -> EvaluationConfig:
        if self.classifier != "native" and not self.n_features:
            raise ValueError(f"`n_features` is needed by classifier {self.classifier}, e.g. n_features: [10, 20, 50]")
        if list(self.n_features) != sorted(set(self.n_features)):
            raise ValueError(f"`n_features` {list(self.n_features)} must increase, without repeats")
        return self


class CVConfig(_Section):
    """Nested cross-validation: how many folds, and what stays together.

    Parameters
    ----------
    outer, inner : int, default=5
    repeats : int, default=1
        Of the whole outer splitting.
    train_per_class : int, optional
        Outer training sets of so many samples a class instead of ``outer`` folds, one a repeat, of which there
        must be two at least; all others are tested.
    groups : str, optional
        An array of the file; its groups stay whole at every level.
    plan : str, optional
        A ``plan.json`` whose folds are used.
    """

    outer: Folds = 5
    inner: Folds = 5
    repeats: Annotated[Count, Field(le=1000)] = 1
    train_per_class: Folds | None = None
    groups: str | None = None
    plan: str | None = None

    @model_validator(mode="after")
    def _two_outer_folds(self) -> CVConfig:
        if self.train_per_class is not None and self.repeats == 1:
            raise ValueError(
                "`train_per_class` draws one outer training set a repeat; give two or more, e.g. repeats: 10"
            )
        return self


class SearchConfig(_Section):
    """Which configurations are tried, for how long, and with what resources.

    Parameters
    ----------
    method : {"grid", "path", "random", "sobol", "tpe"}, default="grid"
        ``path`` tries the same configurations as ``grid``, all of them in one trial a training set, for
        solvers that pass what they find from one to the next. ``tpe`` learns from what it has seen, on each
        outer fold by itself.
    num_samples : int, optional
        The most configurations that are tried; with ``tpe``, on each outer fold. At most 100000.
    configurations : str or list of str, optional
        A study's ``manifest.json``, or the ids that it lists as tried: only these configurations are tried. Re-creates
        a search that its time budget ended; for ``grid``, ``random`` and ``sobol`` without early stopping. The study's
        own ``config.yaml`` holds the ids.
    early_stopping : {"asha"}, optional
        Successive halving on the solver's iterations: a trial that is not among the best
        1 / reduction_factor of its outer fold after grace_period, grace_period * reduction_factor, ...
        iterations is stopped.
    grace_period, reduction_factor : int, default=3
    synchronous : bool, default=False
        A search that learns or stops early does so from whole batches: the same numbers for any number of workers.
    batch_size : int, default=8
    executor : {"ray", "serial"}, default="ray"
        ``serial`` computes in the command's own process, one trial after the other and without Ray: the same numbers,
        for debugging and for studies of seconds.
    max_concurrent : int, optional
        The most trials that run at once.
    cpus_per_trial : int, default=1
    time_budget : float, optional
        Seconds after which no more configurations are tried. The order of trials is drawn from the seed.
    trial_timeout : float, optional
        Seconds for a configuration on one outer fold, after which it is ended and counted as failed there; with
        ``path``, for all configurations on one inner training set. What does not return to Python is ended with its
        process, half as much later again; a trial whose process ends, for this or any other reason, is tried twice
        more and then counts as failed on all of its outer folds.
    max_failures : int, optional
        A study with more failed trials than this is aborted; a trial counts that failed on any outer fold.
    """

    method: Literal["grid", "path", "random", "sobol", "tpe"] = "grid"
    num_samples: Annotated[Count, Field(le=MOST_CONFIGURATIONS)] | None = None
    configurations: Annotated[tuple[str, ...] | None, BeforeValidator(tried_configurations)] = None
    early_stopping: Literal["asha"] | None = None
    grace_period: Count = 3
    reduction_factor: Annotated[int, Field(strict=True, ge=2)] = 3
    synchronous: Annotated[bool, Field(strict=True)] = False
    batch_size: Count = 8
    executor: Literal["ray", "serial"] = "ray"
    max_concurrent: Count | None = None
    cpus_per_trial: Count = 1
    time_budget: Seconds | None = None
    trial_timeout: Seconds | None = None
    max_failures: Annotated[int, Field(strict=True, ge=0)] | None = None

    @model_validator(mode="after")
    def _possible(self) -> SearchConfig:
        if self.method == "path" and self.early_stopping:
            raise ValueError("`early_stopping` has nothing to stop on a `path`, which solves a whole grid in one trial")
        if self.configurations and (self.adaptive or self.method == "path"):
            raise ValueError("`configurations` is for method grid, random or sobol without `early_stopping`")
        if self.method == "tpe" and self.num_samples is None:
            raise ValueError("`num_samples` is needed by method tpe, e.g. num_samples: 32")
        return self

    @property
    def adaptive(self) -> bool:
        """Whether the search learns or stops early, and so must keep the outer folds apart."""
        return self.method == "tpe" or self.early_stopping is not None


class TrackingConfig(_Section):
    """Where MLflow keeps the runs; by default `$MLFLOW_TRACKING_URI`, else ``sqlite:///mlflow.db``."""

    uri: str | None = None
    experiment: str | None = None


class StudyConfig(_Section):
    """One study: data, solver, evaluation, cross-validation, search, tracking.

    Examples
    --------
    >>> config = StudyConfig.model_validate({
    ...     "name": "demo", "dataset": {"source": "digits"},
    ...     "solver": {"name": "smr", "space": {"alpha": [0.01, 0.1]}},
    ...     "evaluation": {"n_features": [8]}})
    >>> config.cv.outer
    5
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**32)] = 0
    dataset: DatasetConfig
    solver: SolverConfig
    evaluation: EvaluationConfig = EvaluationConfig(classifier="native")
    cv: CVConfig = CVConfig()
    search: SearchConfig = SearchConfig()
    tracking: TrackingConfig = TrackingConfig()
    output: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The configuration as plain data, unset keys left out."""
        return self.model_dump(mode="json", exclude_none=True)

    @property
    def hash(self) -> str:
        """SHA-256 of all that can change a number; where files go, and how many run at once or how long, cannot."""
        return hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()

    def identity(self) -> dict[str, Any]:
        """All that can change a number, as plain data."""
        described = self.to_dict()
        for key in ("name", "output", "tracking"):
            described.pop(key, None)
        for key in ("executor", "max_concurrent", "time_budget", "trial_timeout", "max_failures"):
            described["search"].pop(key, None)
        if modalities := described["dataset"].get("modalities"):
            described["dataset"]["modalities"] = list(modalities.items())  # their order tells whose a column is
        return described
