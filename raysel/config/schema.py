"""Schema of a study's configuration: sections, keys, their types, defaults and descriptions."""

from __future__ import annotations

import hashlib
import json
import warnings
from typing import Annotated, Any, Final, Literal, TypeVar, final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    model_validator,
)

from raysel.config.preparation import searched_steps, step_from_yaml, step_name
from raysel.config.searches import GRID, LISTED, PATH
from raysel.config.space import (
    MOST_CONFIGURATIONS,
    Domain,
    Scalar,
    domain_from_yaml,
    scalar_from_yaml,
)
from raysel.config.values import (
    class_label,
    feature_groups,
    label_columns,
    outer_folds,
    repeated,
    resources_from_yaml,
    scoring_estimator_from_yaml,
    several,
    tried_configurations,
    with_estimator_key,
)
from raysel.core.credentials import keep_all_credentials
from raysel.core.storage.location import set_credentials_aside

#: Value of `dataset.source` for a table of NIfTI files.
NIFTI = "nifti"
#: Value of `evaluation.estimator` and `evaluation.metric` for the default of the data.
AUTO: Final = "auto"
#: Value of `cv.groups` for samples that are grouped by their features.
EQUAL_SAMPLES = "equal samples"


class _Section(BaseModel):
    # The texts below the keys are their descriptions, which `raysel.config.keys` lists.
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _without_credentials(cls, raw: Any) -> Any:
        return keep_all_credentials(raw)


# Strict: "3" and true are not counts.
Count = Annotated[int, Field(strict=True, ge=1)]
Folds = Annotated[int, Field(strict=True, ge=2)]
Seconds = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Positive = Seconds
Parameter = Annotated[Scalar, PlainValidator(scalar_from_yaml)]
NonEmpty = Annotated[str, Field(min_length=1)]
#: Path or URI; credentials in a URI are remembered by this process only, and are in no
#: configuration that is written.
Place = Annotated[str, Field(min_length=1), AfterValidator(set_credentials_aside)]
OuterFolds = Annotated[int | str, PlainValidator(outer_folds)]
LabelColumns = Annotated[str | tuple[str, ...], PlainValidator(label_columns)]
ClassLabel = Annotated[str | int, PlainValidator(class_label)]
FeatureGroups = Annotated[str | dict[str, Any], PlainValidator(feature_groups)]
Step = Annotated[dict[str, Any], BeforeValidator(step_from_yaml)]
SpaceDomain = Annotated[
    Domain, BeforeValidator(domain_from_yaml), PlainSerializer(lambda domain: domain.to_yaml())
]


class _SamplesConfig(_Section):
    """Samples and labels of one file or built-in data set."""

    source: NonEmpty | None = None
    """Built-in data set, e.g. digits; or nifti, where `path` is a table of NIfTI files. Exactly one
    of source, path and tasks is needed otherwise."""
    params: dict[str, Parameter] | None = None
    """Parameters of a generated data set: of `source: planted-genes` n_samples, n_modules,
    n_planted, n_classes, empty and seed; of planted-tensor shape, block, n_classes, n_per_class,
    rank, noise and seed."""
    path: Place | None = None
    """Data file, or folder with one folder of images for each class; a relative path is looked up
    from the working directory, then from $RAYSEL_DATA. Or its URI, s3://BUCKET/KEY, gs://BUCKET/KEY
    or file:///PATH, with the options region, endpoint_override, scheme and anonymous in the query:
    it is copied once to $RAYSEL_CACHE, by default ~/.cache/raysel, and again when it has changed.
    Credentials come from the environment (AWS_ACCESS_KEY_ID, AWS_PROFILE,
    GOOGLE_APPLICATION_CREDENTIALS). Only this machine needs the file; workers get the samples by
    Ray."""
    label: LabelColumns | None = None
    """Column or array of the file that holds the labels; by default y, label, target or another
    usual name. A list of columns of a table: several quantities."""
    labels: Place | None = None
    """File that holds the labels, where `path` holds the samples only, e.g. X.npy; looked up as
    `path`.
    """
    drop: tuple[str, ...] = ()
    """Columns of a table that are neither features nor labels, e.g. an identifier. Those that
    `confounds`, `harmonise` or cv.groups name too are read for it."""
    keep: tuple[str, ...] = ()
    """Columns that are features although they look like an index or like the label, which is
    refused otherwise.
    """
    drop_unlabelled: Annotated[bool, Field(strict=True)] = False
    """Whether rows of a table that have no label are left out, which are refused otherwise."""
    prepare: tuple[Step, ...] = ()
    """Steps that prepare the columns, in this order and before `scaling`, each fitted on the
    training samples of each fold and stored in the model file: `{impute: median}` fills empty cells
    (median, mean, most_frequent, or knn with n_neighbors; indicator: true adds whether a cell was
    empty); `encode` makes text of few values an indicator a value (values of less than
    min_frequency, 0.01 of the samples, are joined), and the score of such a text does not grow with
    the number of its values; `log1p`; `standardise` gives its columns mean 0 and variance 1 over
    all their values together, e.g. those of one band of an image; `{clip: [0.01, 0.99]}` cuts at
    quantiles; `{drop_near_constant: 0.95}` leaves out what has one value in so many samples;
    `residualise` takes out the least-squares fit on `confounds`; `{harmonise: SITE}` moves location
    and scale of the columns at each site towards those at all, by empirical Bayes estimates (ComBat
    without covariates): a part of a shift that few columns have stays, while `residualise` on the
    site leaves none. By either a part of the difference between the classes goes too where sites
    differ in their classes. `{parcels: 200}` joins the cells of images, volumes or signals to so
    many connected parcels that vary alike (Ward's method), each the mean of its cells; `parcels`
    with solver.space: {parcels: [50, 200]} leaves the number to the search. `{clusters: 0.7}` joins
    columns that all correlate with each other by 0.7, in either direction, to the mean of their
    z-scores. Joined features have one score and rank one after the other; numbers of features count
    them singly. Or a scikit-learn transformer, {DOTTED.NAME: {parameter: value}}. `columns` beside
    the name chooses by names or patterns, numbers, categories, or {modality: NAME}; by default
    those of the kind that the step is for."""
    confounds: tuple[str, ...] = ()
    """Columns that are no features: the step `residualise` takes their linear effect out of the
    features, and how well they alone tell the label is scored on the same outer folds
    (`evaluation.references`). Columns of the table, also of one of NIfTI files, arrays of the file,
    columns of the file `labels`, or of `table`."""
    table: Place | None = None
    """Table with the columns that `confounds` and `harmonise` name, where the data file is none:
    with a row for each sample in their order or, for a folder of images, with a column of the path
    of each image in it; looked up as `path`."""
    classes: Annotated[tuple[ClassLabel, ...], Field(min_length=2)] | None = None
    """Classes whose samples are used; all by default."""
    exclude_classes: tuple[ClassLabel, ...] = ()
    """Classes whose samples are left out, e.g. those with too few samples for the folds."""
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    """Character between the cells of a text table; recognised from the file by default."""
    shape: Annotated[tuple[Count, ...], Field(min_length=1)] | None = None
    """Height and width of a sample, or more sides, where the file does not hold them."""
    modes: Annotated[tuple[NonEmpty, ...], Field(min_length=1)] | None = None
    """Names of the axes of a sample, e.g. [band, row, column], in ranking.csv, sentences and
    pictures; by default row and column, or axis0, axis1 and so on."""
    order: Literal["C", "F"] | None = None
    """Order in which the columns run through the cells of a sample: C, row by row, by default; F,
    column by column, as MATLAB stores matrices."""

    @property
    def beside(self) -> tuple[str, ...]:
        """Columns that are no features and that steps read."""
        sites = [step["harmonise"]["site"] for step in self.prepare if "harmonise" in step]
        return (*self.confounds, *sites)

    def unread(self, groups: str | None) -> tuple[str, ...]:
        """Columns of `drop` that nothing reads."""
        read = {*self.beside, groups}
        return tuple(name for name in self.drop if name not in read)

    @model_validator(mode="after")
    def _confounds_are_used(self) -> _SamplesConfig:
        residualises = any(step_name(step) == "residualise" for step in self.prepare)
        if residualises and not self.confounds:
            raise ValueError(
                "`prepare` has the step residualise, which needs `confounds`, e.g. confounds: [age,"
                " sex]"
            )
        if self.table is not None and not self.beside:
            raise ValueError("`table` holds columns of `confounds`, and none is named; name some")
        return self


class TaskConfig(_SamplesConfig):
    """One task of several: its name and its file, or a built-in data set."""

    name: Annotated[str, Field(pattern=r"^[^/]+$")]
    """Name of the task, unique among the tasks and without a slash."""

    @model_validator(mode="after")
    def _steps_have_numbers(self) -> TaskConfig:
        if names := searched_steps(self.prepare):
            name = min(names)
            raise ValueError(f"{name} of a task needs a number, e.g. {{{name}: 200}}")
        return self

    @model_validator(mode="after")
    def _one_origin(self) -> TaskConfig:
        if self.source == NIFTI:
            raise ValueError(
                "`source: nifti` needs a mask and cannot be a task; give another data set"
            )
        if (self.source is None) == (self.path is None):
            raise ValueError(
                "give exactly one of `source` (a built-in set, e.g. digits) and `path` (a file)"
            )
        return self


class DatasetConfig(_SamplesConfig):
    """Origin of the samples and their scaling."""

    tasks: Annotated[tuple[TaskConfig, ...], Field(min_length=2)] | None = None
    """Several data sets, each with features and classes of its own, that are learned together."""
    task: Literal["regression", "classification"] | None = None
    """Whether the label is a quantity, to be predicted as a number, or a class. Found by itself:
    fractions are quantities, and so are more than ten whole numbers of which most occur once or
    twice."""
    mask: Place | None = None
    """NIfTI file whose voxels above 0 are the features, for `source: nifti`; looked up as
    `path`.
    """
    modalities: Annotated[dict[str, Count], Field(min_length=1)] | None = None
    """Name and number of columns of each modality in the order of the columns, where the file
    does not hold them.
    """
    only: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Modalities of the file that are used, in the file's order; the columns of the others are left
    out. All are used by default."""
    exclude_labels: tuple[str, ...] = ()
    """Labels of a multi-label data set that are left out."""
    feature_groups: FeatureGroups | None = None
    """Groups of features that are ranked beside the single features: the path of a table with the
    columns feature and group, looked up as `path`; a list of features for each group; modalities;
    or {correlated: 0.7}, clusters of columns any two of which have that absolute correlation or
    more over all samples, whatever the labels. A feature in no group is one of its own. Groups
    change a model only where the method selects groups, as sparse_group_lasso does; it finds those
    that correlate in each training set."""
    background: Place | None = None
    """Image of a sample's shape that pictures show below the map, .npy, .png or NIfTI; the mean
    sample by default.
    """
    scaling: Literal["unit", "zscore", "none", "zscore_sqrt_width", "minmax", "row_unit"] | None = (
        None
    )
    """Scaling, fitted on each training set: unit maps the range of all values to [0, 1], zscore
    gives each feature mean 0 and variance 1, zscore_sqrt_width also divides it by the square root
    of its modality's width, minmax maps each feature to [0, 1], row_unit gives each sample norm 1
    in each modality. By default zscore for tables and their tasks, zscore_sqrt_width for
    modalities, unit for images, other arrays and volumes."""

    in_memory: Annotated[bool, Field(strict=True)] = True
    """Whether the samples are read into memory. false: those of a Parquet or Arrow file stay in it
    and are read in batches, by workers too, whose machines need the file at the same path. For
    methods that fit from one pass over the samples (smr and gbr) with more samples than features,
    and evaluation.estimator native, which scores the last iteration only; the only references are
    guesses. The numbers are those of samples in memory but for rounding."""

    @model_validator(mode="after")
    def _one_origin(self) -> DatasetConfig:
        if (self.source == NIFTI) != (self.mask is not None) or (
            self.source == NIFTI and self.path is None
        ):
            raise ValueError(
                "`source: nifti` needs `mask`, a NIfTI file, and `path`, a table of NIfTI files"
            )
        source = None if self.source == NIFTI else self.source
        if [source, self.path, self.tasks].count(None) != 2:
            raise ValueError(
                "give exactly one of `source` (a built-in set, e.g. digits), `path` (a file) and "
                "`tasks` (a list of both)"
            )
        return self

    @model_validator(mode="after")
    def _for_one_file(self) -> DatasetConfig:
        if self.tasks is not None:
            own = {"tasks", "scaling", "in_memory"}
            given = [
                key
                for key in type(self).model_fields
                if key not in own and getattr(self, key) not in (None, (), False)
            ]
            if given:
                raise ValueError(
                    f"`{given[0]}` is for one file and cannot stand beside `tasks`; give it in the"
                    " tasks"
                )
        if not self.in_memory and self.tasks is not None:
            raise ValueError(
                "`in_memory: false` is for one file and cannot stand beside `tasks`; leave it out"
            )
        if twice := repeated(self.only or ()):
            raise ValueError(f"`only` names the modality {twice} twice; name each once")
        if twice := repeated([task.name for task in self.tasks or ()]):
            raise ValueError(f"the task {twice} is named twice; give each task a name of its own")
        return self


Method = TypeVar("Method", "SolverConfig", "ScoringEstimatorConfig")


def refuse_parameters_given_twice(section: Method) -> Method:
    """Check that no parameter of a solver or estimator is both fixed and searched."""
    if both := sorted(set(section.params) & set(section.space)):
        raise ValueError(f"{', '.join(both)} stands in `params` and in `space`; keep one")
    return section


class SolverConfig(_Section):
    """Solver, its fixed parameters and the space that is searched."""

    name: str
    """Name of the solver, e.g. smr, smml or mtda."""
    params: dict[str, Parameter] = {}
    """Fixed values of the solver's parameters, by name."""
    space: dict[str, SpaceDomain] = {}
    """Domains of the solver's parameters that are searched, by name: a list of values, {uniform:
    [low, high]}, {loguniform: [low, high]}, {randint: [low, high]} or {logspace: [low, high,
    n]}. The number of `parcels` of `dataset.prepare` can be one of them."""
    importance: Literal["permutation"] | None = None
    """How a classifier or regressor in scikit-learn's style ranks the features, in place of its
    coef_ or feature_importances_, or where it has none. permutation: by what it loses of
    evaluation.metric on held-out parts of its training set where the values of a feature are
    permuted (raysel.PermutationImportance); a ranking takes five more fits, and 25 predictions for
    each feature. Not with cv.groups or cv.blocks."""

    @property
    def class_name(self) -> str:
        """Name of the solver, without the parameters of an estimator given as an object."""
        return self.name.partition("(")[0]

    _no_parameter_twice = model_validator(mode="after")(refuse_parameters_given_twice)


class ScoringEstimatorConfig(_Section):
    """Estimator in scikit-learn's style that scores the best features."""

    name: Annotated[str, Field(pattern=r"\.")]
    """Dotted name of its class."""
    params: dict[str, Parameter] = {}
    """Fixed values of its parameters, by name."""
    space: dict[str, Annotated[tuple[Parameter, ...], Field(min_length=1)]] = {}
    """Values of its parameters that the inner scores choose from, by name."""

    _no_parameter_twice = model_validator(mode="after")(refuse_parameters_given_twice)


#: What scores the best features, by its short name or as a section.
ScoringEstimatorChoice = Annotated[
    Literal["auto", "native", "knn", "linear_svm", "ridge"] | ScoringEstimatorConfig,
    BeforeValidator(scoring_estimator_from_yaml),
    PlainSerializer(
        lambda estimator: (
            estimator if isinstance(estimator, str) else estimator.model_dump(mode="json")
        )
    ),
]


class EvaluationConfig(_Section):
    """Scoring of a ranking, or of a fitted model, on samples that it has not seen."""

    estimator: ScoringEstimatorChoice = AUTO
    """What gives the score: native is the model's own prediction; others are fitted to the best
    n_features features: knn, linear_svm, ridge (of quantities, alpha of 0.001 to 1e6 by the inner
    scores), or a classifier or regressor in scikit-learn's style by its dotted name, or as {name:
    dotted name, params: {name: value}, space: {name: [values]}}, of whose space the inner scores
    choose for each number of features, for the method and for each reference. auto: native without
    n_features; else ridge of quantities, linear_svm of tables of classes, knn of images, other
    arrays and modalities. The key was called classifier."""
    n_neighbors: Count = 1
    """Number of neighbours of estimator knn."""
    C: Annotated[tuple[Positive, ...], BeforeValidator(several), Field(min_length=1)] = (
        0.01,
        0.1,
        1.0,
        10.0,
    )
    """Increasing values of C of estimator linear_svm, or one: the inner scores choose it for each
    number of features, for the method and for each reference."""
    n_features: tuple[Count, ...] = ()
    """Increasing numbers of best features, each of which is scored. One with which the estimator
    fails on an inner fold is left out of that outer fold, as its mean would be of other inner folds
    than that of the others, and named in the result. Not used by native."""
    choose_n: Literal["one_se", "best", "mean"] = "one_se"
    """Number of features that a configuration is scored at, chosen by its inner scores: one_se
    takes the smallest of n_features within one standard error of the best inner mean, best that
    with the best inner mean; mean scores by the mean over all of n_features instead, and its model
    has the best one. Not used by native."""
    metric: str = AUTO
    """Metric, larger is better. Of classes: accuracy, balanced_accuracy, macro_f1,
    mean_average_precision, ...; of quantities: out_of_sample_r2, R2 against the mean of the
    training samples, neg_rmse, neg_mae, pearson, spearman; any scorer name of scikit-learn, e.g.
    roc_auc, neg_log_loss or explained_variance; or the dotted name of a function of y_true and
    y_pred or of a scorer by sklearn.metrics.make_scorer. auto: accuracy of classes, macro_f1 of
    several labels a sample, out_of_sample_r2 of quantities. The positive class is the second in the
    order of the labels."""
    report: tuple[str, ...] = ()
    """Further metrics, of the winners on the outer test samples only; they choose nothing."""
    references: Literal[True, False, "chance"] = True
    """Whether the outer folds also score all features, the rankings by variance and by F-test, and
    chance, with the same estimator; each chooses its number of features, and setting, by its own
    inner scores. With native: all features by the 1-nearest neighbour, of more than 2000 samples by
    logistic regression, of quantities by ridge regression, where scaling is none standardised if
    the inner scores are better so (for logistic regression always), and chance,
    which is the best of guesses that read no feature: the same class or quantity for all samples,
    the best one by the metric; labels drawn by their shares; for metrics of an order, as
    average_precision, a random one. chance: that alone. Confounds, where there are some, are scored
    alone in each case: by logistic regression, of quantities by ridge regression."""

    @model_validator(mode="before")
    @classmethod
    def _former_name(cls, raw: Any) -> Any:
        return with_estimator_key(raw)

    @model_validator(mode="after")
    def _features_to_score(self) -> EvaluationConfig:
        if self.estimator not in (AUTO, "native") and not self.n_features:
            raise ValueError(
                f"`n_features` is needed by estimator {self.estimator_name}, e.g. n_features: [10,"
                " 20, 50]"
            )
        if list(self.n_features) != sorted(set(self.n_features)):
            raise ValueError(f"`n_features` {list(self.n_features)} must increase, without repeats")
        if list(self.C) != sorted(set(self.C)):
            raise ValueError(f"`C` {list(self.C)} must increase, without repeats")
        if twice := repeated([self.metric, *self.report]):
            raise ValueError(
                f"`report` names {twice}, which is `metric` or named before; leave it out"
            )
        return self

    @property
    def rule(self) -> Literal["one_se", "best", "mean"]:
        """Rule that chooses the number of features, of which native has none."""
        if self.is_native:
            return "mean"
        return self.choose_n

    @property
    def is_native(self) -> bool:
        """Whether the model's own predictions are scored."""
        return self.estimator == "native"

    @property
    def estimator_name(self) -> str:
        """Short or dotted name of what gives the score."""
        if isinstance(self.estimator, str):
            return self.estimator
        return self.estimator.name


class BlocksConfig(_Section):
    """Folds for samples that depend on those near them in the file, as in a recording."""

    size: Count = 1
    """Number of consecutive rows that stay together in all folds, and that a permutation test moves
    as a whole: at least as many as depend on each other."""
    gap: Annotated[int, Field(strict=True, ge=0)] = 0
    """Number of rows on either side of held-out ones that no model of that fold is trained on."""
    forward: Annotated[bool, Field(strict=True)] = False
    """Whether each fold trains on the rows before the held-out ones only; the first rows are
    then never tested.
    """


class CVConfig(_Section):
    """Folds of the nested cross-validation."""

    outer: OuterFolds = 5
    """Number of outer folds, whose test sets give the honest scores; `n_samples` leaves one out, a
    sample, group or block, in each."""
    inner: Folds = 5
    """Number of inner folds of each outer training set, which select its winner."""
    repeats: Annotated[Count, Field(le=1000)] = 1
    """Number of times that the outer splitting is repeated with other folds."""
    train_per_class: Folds | None = None
    """Number of samples of each class in an outer training set; replaces the outer folds by one
    random split for each of two or more repeats, which tests all other samples."""
    groups: str | None = None
    """Array or column of the data file with a group for each sample; groups stay whole in all
    folds. Or `equal samples`: those of one file that are equal in all features are a group, of each
    task by itself."""
    blocks: BlocksConfig = BlocksConfig()
    """Folds of whole blocks of consecutive rows, or forward in the file, in place of folds of
    single samples.
    """
    plan: str | None = None
    """Path of the plan.json of another study, whose folds are used."""
    final: Annotated[bool, Field(strict=True)] = True
    """Whether a final fold selects a configuration and fits it on all samples; without it there are
    scores and the rankings of the outer folds, but no model and no ranking of the features by
    it."""

    @model_validator(mode="after")
    def _two_outer_folds(self) -> CVConfig:
        if self.train_per_class is not None and self.repeats == 1:
            raise ValueError(
                "`train_per_class` draws one outer training set a repeat; give two or more, e.g."
                " repeats: 10"
            )
        return self

    @model_validator(mode="after")
    def _one_way_to_leave_one_out(self) -> CVConfig:
        if self.outer == "n_samples" and (self.repeats > 1 or self.train_per_class is not None):
            raise ValueError(
                "`outer: n_samples` has one way to leave each sample out; leave `repeats` and"
                " `train_per_class` out"
            )
        if self.outer == "n_samples" and self.blocks.forward:
            raise ValueError("`blocks.forward` needs a number of folds; give `outer` one")
        return self

    @model_validator(mode="after")
    def _blocks_alone(self) -> CVConfig:
        if self.blocks == BlocksConfig():
            return self
        for key in ("groups", "train_per_class"):
            if getattr(self, key) is not None:
                raise ValueError(
                    f"`blocks` and `{key}` both say which samples stand in a fold; keep one"
                )
        if self.blocks.forward and self.repeats > 1:
            raise ValueError("`blocks.forward` has one way to cut the rows; leave `repeats` out")
        return self


class SearchConfig(_Section):
    """Configurations that are tried, and the time and resources for them."""

    method: str = GRID
    """Way in which configurations are proposed: grid, random and sobol list them; path tries those
    of grid, all of them in one trial of each training set, for solvers that reuse what they find
    from one to the next; tpe, and any other sampler by its registered or dotted name, learns from
    earlier scores, on each outer fold separately."""
    num_samples: Annotated[Count, Field(le=MOST_CONFIGURATIONS)] | None = None
    """Largest number of configurations that are tried; with a sampler, on each outer fold."""
    configurations: Annotated[tuple[str, ...] | None, BeforeValidator(tried_configurations)] = None
    """Path of a study's manifest.json, or the ids that it lists as tried: only these configurations
    are tried, which repeats a search that its time budget ended; for grid, random and sobol without
    early stopping."""
    early_stopping: Literal["asha"] | None = None
    """Successive halving by the solver's iterations: a trial that is not among the best 1 /
    reduction_factor of its outer fold after grace_period, grace_period * reduction_factor, ...
    iterations is stopped."""
    grace_period: Count = 3
    """Number of iterations before early stopping may stop a trial."""
    reduction_factor: Annotated[int, Field(strict=True, ge=2)] = 3
    """Factor by which early stopping reduces the trials, and multiplies the iterations, at each
    step.
    """
    synchronous: Annotated[bool, Field(strict=True)] = False
    """Whether a search that learns or stops early does so from whole batches, so that its numbers
    are the same for any number of workers."""
    batch_size: Count = 8
    """Number of trials of a batch of a synchronous search."""
    executor: Literal["ray", "serial", "auto"] = "ray"
    """Where trials are computed: in worker processes of Ray, or one after the other in the study's
    own process; the numbers are the same. auto: serial where pilot fits tell that all fits together
    take less than the start of Ray, else ray, as always on a cluster, with `resources`, and in
    raysel stability and permute."""
    max_concurrent: Count | None = None
    """Largest number of trials that run at once; by default as many as the CPUs and `resources`
    allow.
    """
    cpus_per_trial: Count = 1
    """Number of CPUs, and of BLAS threads, of a trial."""
    resources: Annotated[dict[str, float] | None, BeforeValidator(resources_from_yaml)] = None
    """What a trial needs besides its CPUs, for executor ray, e.g. {GPU: 1, memory: 2 GiB, licence:
    1}: a number of GPUs, memory in bytes or with a unit, and resources that the nodes of a cluster
    were given by name. Only as many trials run at once as the nodes have room for."""
    time_budget: Seconds | None = None
    """Seconds after which no more configurations are tried; the order of trials is drawn from
    the seed.
    """
    trial_timeout: Seconds | None = None
    """Seconds for a configuration on one outer fold, after which it counts as failed there; with
    path, for all configurations on one inner training set. A trial that does not return to Python
    is ended with its process half as much later, tried twice more and then counts as failed on all
    of its outer folds. The time in which the process is stopped, e.g. by SIGSTOP, is not
    counted."""
    max_failures: Annotated[int, Field(strict=True, ge=0)] | None = None
    """Largest number of failed trials, on whichever outer folds, before the study is aborted."""

    @model_validator(mode="after")
    def _possible(self) -> SearchConfig:
        if self.is_path and self.early_stopping:
            raise ValueError(
                "`early_stopping` has nothing to stop on a `path`, which solves a whole grid in one"
                " trial"
            )
        if self.configurations and (self.adaptive or self.is_path):
            raise ValueError(
                "`configurations` is for method grid, random or sobol without `early_stopping`"
            )
        if self.resources and self.executor == "serial":
            raise ValueError(
                f"`resources` ({', '.join(self.resources)}) are for executor ray, and serial"
                " computes in the study's own process; leave them out, or set executor: ray"
            )
        return self

    @property
    def needs(self) -> dict[str, float]:
        """Resources of a trial in Ray's names and units."""
        return {"CPU": float(self.cpus_per_trial), **(self.resources or {})}

    @property
    def is_path(self) -> bool:
        """Whether one trial tries all configurations on a training set."""
        return self.method == PATH

    @property
    def learns(self) -> bool:
        """Whether a sampler proposes configurations from earlier scores."""
        return self.method not in LISTED

    @property
    def synchronous_batch(self) -> int | None:
        """Number of trials of a batch; None where trials wait for no others."""
        if not self.synchronous:
            return None
        return self.batch_size

    @property
    def adaptive(self) -> bool:
        """Whether the search learns or stops early, and so must keep the outer folds apart."""
        return self.learns or self.early_stopping is not None


with warnings.catch_warnings():
    # pydantic warns that `register` hides the method of abstract base classes, which no
    # configuration needs.
    warnings.filterwarnings("ignore", message='Field name "register"')

    class TrackingConfig(_Section):
        """MLflow's store and experiment."""

        mlflow: bool = True
        """Whether the study is uploaded to MLflow while it runs; raysel tune --replay DIR
        uploads it later.
        """
        uri: str | None = None
        """Address of MLflow's store; $MLFLOW_TRACKING_URI, else sqlite:///mlflow.db, by default.
        Credentials in it are used, but not stored: a study that is resumed needs them again, here
        or in MLFLOW_TRACKING_URI, MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD,
        MLFLOW_TRACKING_TOKEN, or PGPASSWORD."""
        experiment: Annotated[str, Field(min_length=1, max_length=500)] | None = None
        """Name of the MLflow experiment, at most 500 letters; the study's name by default."""
        register: (
            Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]*$", max_length=200)] | None
        ) = None
        """Name of the registered model in MLflow of which each finished study's model becomes a new
        version: letters, digits, dots, hyphens, underscores and spaces; by default the model is
        logged, but not registered."""


#: Keys that are left out at their defaults: configurations of before there were these keys keep
#: their hash.
_LEFT_OUT = (
    ("cv", "final"),
    ("cv", "blocks"),
    ("evaluation", "report"),
    ("evaluation", "references"),
    ("tracking", "mlflow"),
)
_DEFAULTS = {
    "cv": CVConfig().model_dump(mode="json"),
    "evaluation": EvaluationConfig(estimator="native").model_dump(mode="json"),
    "tracking": TrackingConfig().model_dump(mode="json"),
}


@final
class StudyConfig(_Section):
    """One study: data, solver, evaluation, cross-validation, search, tracking."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    """Name of the study: letters, digits, dots, hyphens and underscores."""
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**32)] = 0
    """Seed that folds, configurations and the solver's random numbers are drawn from."""
    dataset: DatasetConfig
    """Origin of the samples and their scaling."""
    solver: SolverConfig
    """Solver, its fixed parameters and the space that is searched."""
    evaluation: EvaluationConfig = EvaluationConfig(estimator="native")
    """Scoring on samples that a fit has not seen."""
    cv: CVConfig = CVConfig()
    """Folds of the nested cross-validation."""
    search: SearchConfig = SearchConfig()
    """Configurations that are tried, and the time and resources for them."""
    tracking: TrackingConfig = TrackingConfig()
    """MLflow's store and experiment."""
    output: Annotated[str, AfterValidator(set_credentials_aside)] | None = None
    """Directory of the study; raysel-studies/<name>-<time> by default. Or a URI, s3://BUCKET/KEY,
    gs://BUCKET/KEY or file:///PATH, with options as for dataset.path: the study runs in a temporary
    folder below $TMPDIR, whose changed files are copied to the URI every 5 s or after 10 times what
    the last copy took, and all of them at the end."""
    pictures: tuple[str, ...] | None = None
    """Formats, of png, svg and pdf, of files of the figures, written at the end of a study with a
    final model; by default they are in report.html alone. [] for no report.html either."""

    @model_validator(mode="after")
    def _known_formats(self) -> StudyConfig:
        for kind in self.pictures or ():
            if kind not in ("png", "svg", "pdf"):
                raise ValueError(
                    f"`pictures` names {kind}: give some of png, svg and pdf, or [] for none"
                )
        return self

    @model_validator(mode="after")
    def _numbers_of_steps(self) -> StudyConfig:
        names = self.searched_steps
        for name in names - set(self.solver.space):
            raise ValueError(
                f"`prepare` has the step {name} without a number; give one, e.g. {{{name}: 200}},"
                f" or numbers to search, solver.space: {{{name}: [50, 200]}}"
            )
        if names and self.search.is_path:
            raise ValueError(
                f"`search.method: path` keeps to one preparation, and {min(names)} is searched;"
                " set grid, random or sobol"
            )
        return self

    @model_validator(mode="after")
    def _model_to_register(self) -> StudyConfig:
        if self.tracking.register and not self.cv.final:
            raise ValueError(
                f"`tracking.register` {self.tracking.register} registers the final model, and"
                " `cv.final: false` leaves it out; set `cv.final: true`, or leave"
                " `tracking.register` out"
            )
        return self

    @property
    def searched_steps(self) -> frozenset[str]:
        """Names of the steps of `dataset.prepare` whose number is in `solver.space`."""
        return searched_steps(self.dataset.prepare)

    @property
    def members(self) -> dict[str, StudyConfig]:
        """Configurations by label, as of a comparison: a study is one of one member."""
        return {self.name: self}

    def to_dict(self) -> dict[str, Any]:
        """The configuration as plain data, unset keys left out."""
        described = self.model_dump(mode="json", exclude_none=True)
        for section, key in _LEFT_OUT:
            if described[section][key] == _DEFAULTS[section][key]:
                del described[section][key]
        for samples in (described["dataset"], *described["dataset"].get("tasks", ())):
            for key in (
                "drop",
                "keep",
                "exclude_classes",
                "drop_unlabelled",
                "prepare",
                "confounds",
            ):
                if not samples[key]:
                    del samples[key]
        if self.dataset.in_memory:
            del described["dataset"]["in_memory"]
        if self.evaluation.is_native:
            del described["evaluation"]["choose_n"]
        if self.evaluation.estimator not in (AUTO, "linear_svm"):
            del described["evaluation"]["C"]
        estimator = described["evaluation"]["estimator"]
        if not isinstance(estimator, str):
            described["evaluation"]["estimator"] = {
                key: value for key, value in estimator.items() if value
            }
        return described

    @property
    def hash(self) -> str:
        """SHA-256 of all that can change a number."""
        return hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()

    def identity(self) -> dict[str, Any]:
        """All that can change a number, as plain data."""
        described = self.to_dict()
        for key in ("name", "output", "tracking", "pictures"):
            described.pop(key, None)
        if isinstance(
            described["evaluation"]["estimator"], str
        ):  # its former name, so that the hash stays as it was
            described["evaluation"]["classifier"] = described["evaluation"].pop("estimator")
        for section in (described["dataset"], *described["dataset"].get("tasks", ())):
            section.pop("background", None)
            section.pop("feature_groups", None)
            section.pop("keep", None)
            if section.get("order") == "C":
                del section["order"]
            for key in ("drop", "classes", "exclude_classes"):
                if key in section:
                    section[key] = sorted(set(map(str, section[key])))
        for key in (
            "executor",
            "max_concurrent",
            "resources",
            "time_budget",
            "trial_timeout",
            "max_failures",
        ):
            described["search"].pop(key, None)
        if modalities := described["dataset"].get("modalities"):
            described["dataset"]["modalities"] = list(
                modalities.items()
            )  # their order tells whose a column is
        if only := described["dataset"].get("only"):
            described["dataset"]["only"] = sorted(only)  # the file has the order
        return described
