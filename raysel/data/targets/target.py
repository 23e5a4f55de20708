"""Base class of targets, and their registry."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import StratifiedKFold

from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.core.errors import ConfigError, DataError
from raysel.core.printing import by_number, listed
from raysel.data.targets.folds import Pairs, Units, draw_halves_of_units
from raysel.numerics.metrics import METRICS, Metric, metric, metrics_instead
from raysel.numerics.permutation import LabelPermutations

_KINDS: dict[str, Target] = {}

#: Values of the key ``task``, and of `Target.task`.
CLASSIFICATION, REGRESSION = "classification", "regression"

#: Number of parts of ordered values of which each half has as many units.
_STRATA = 5
#: Largest number of divisions that are drawn for two halves that lack no class.
_MOST_DRAWS = 1000


class Target(ABC):
    """Base class of what is predicted of a sample.

    What other code needs to know of the labels y it asks of a method or property here, so that a
    further target is one class. It sets the names below, defines the abstract methods, and
    overrides what differs. A target holds no data: y is an argument, of shape (n_samples,) or
    (n_samples, n_columns), and each target stores it in a form that no other target has.
    """

    #: Name in files and in the capabilities of methods; unique.
    kind: ClassVar[str]
    #: Value of the key ``dataset.task`` that asks for it, which is also what fits it.
    task: ClassVar[str]
    #: Word for one of what is predicted, and for several.
    noun: ClassVar[str]
    plural: ClassVar[str]
    #: What y is, with its article, e.g. "a class".
    one: ClassVar[str]
    #: Metric of a study that names none.
    default_metric: ClassVar[str]
    #: Metric of it that a single sample has, and one that needs no sample of each class.
    metric_of_one_sample: ClassVar[str] = "accuracy"
    metric_of_any_samples: ClassVar[str] = "accuracy"
    #: What makes another target of it, for a method that does not take it.
    otherwise: ClassVar[str] = "if the label is a quantity, set dataset.task: regression"
    #: What samples have in common that `alike` gives one number.
    common: ClassVar[str] = "label"
    #: Whether sets of samples may lack a label, which then counts as 0.
    may_lack: ClassVar[bool] = False
    #: Whether a sample has one class, by which tasks and training sets are made of classes.
    is_one_class: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            _KINDS[cls.kind] = cls()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    def recognises(self, y: LabelArray) -> bool:
        """Return whether y, as it was read, is of this kind where nobody says."""

    @abstractmethod
    def holds(self, y: LabelArray) -> bool:
        """Return whether y has the form in which this target stores it."""

    @abstractmethod
    def convert(
        self, y: LabelArray, where: str, what: str, *, is_asked: bool
    ) -> tuple[LabelArray, str | None]:
        """Convert y to the stored form; also return a note where the choice may surprise.

        `where` names the data set, `what` the labels, in messages; `is_asked` tells whether the
        kind was given and not found.
        """

    @abstractmethod
    def check(self, y: LabelArray, where: str, what: str) -> None:
        """Check that the stored y can be predicted."""

    @abstractmethod
    def names(self, y: LabelArray, column_names: Sequence[str]) -> LabelArray:
        """Return the names of what is predicted: of the classes, labels or several quantities."""

    @abstractmethod
    def count(self, y: LabelArray) -> int:
        """Return the number of classes, labels or quantities."""

    @abstractmethod
    def y_type(self, y: LabelArray) -> str:
        """Return the type of y, by which a metric says what it is for, in scikit-learn's words."""

    @abstractmethod
    def guesses(self, measure: Metric) -> list[str]:
        """Name the guesses that a metric is compared with; chance is the best of them."""

    @abstractmethod
    def constant(self, name: str, measure: Metric, y: LabelArray) -> Any:
        """Return the unfitted model of a guess that is the same for all samples."""

    @abstractmethod
    def ideal(self, measure: Metric, y: LabelArray) -> LabelArray:
        """Return what a metric takes of a model that knows y."""

    @property
    def is_of_classes(self) -> bool:
        """Whether a classifier predicts it."""
        return self.task == CLASSIFICATION

    @property
    def model_type(self) -> str:
        """Type of the models that predict it, in scikit-learn's words."""
        return "classifier" if self.is_of_classes else "regressor"

    def describe(self, y: LabelArray) -> str:
        """Describe kind and number of what is predicted, e.g. ``"3 classes"``."""
        number = self.count(y)
        return f"{number} {by_number(number, self.noun, self.plural)}"

    def described(self, y: LabelArray, of: str) -> str:
        """Say what y is, which is called `of`, e.g. ``"y has 3 classes"``."""
        return f"{of} has {self.describe(y)}"

    def column_names(self, names: Sequence[str], y: LabelArray, where: str) -> tuple[str, ...]:
        """Check the names of the columns of y; none where it has no columns."""
        if y.ndim == 1:
            return ()
        n_columns = y.shape[1]
        checked = tuple(map(str, names)) or tuple(str(i) for i in range(n_columns))
        if len(checked) != n_columns or len(set(checked)) < n_columns:
            raise DataError(
                f"{where}: {n_columns} {self.plural} need as many different names, not"
                f" {', '.join(checked)}."
            )
        constant = np.flatnonzero(np.ptp(y, axis=0) == 0)
        if constant.size:
            which = ", ".join(checked[i] for i in constant)
            raise DataError(
                f"{where}: every sample has the same value of label {which}; "
                "exclude it, e.g. by exclude_labels of load_dataset."
            )
        return checked

    def examples(self, y: LabelArray) -> IntArray:
        """Return a sample of each class, or with and without each label; none by default."""
        return np.empty(0, dtype=np.int64)

    def known(self, y: LabelArray) -> LabelArray:
        """Return what a metric may know of the training samples, by default the values."""
        return np.unique(y)

    def known_beside(self, y: LabelArray) -> LabelArray | None:
        """Return what a metric may know beside a model; None where the model has the classes."""
        if self.is_of_classes:
            return None
        return self.known(y)

    def spread(self, y: LabelArray) -> FloatArray | float:
        """Return the size of the differences among outputs of a model."""
        return 1.0

    def constant_model(self) -> Any:
        """Return the unfitted model that reads no feature."""
        return DummyClassifier(strategy="prior")

    def for_columns(self, model: Any, y: LabelArray) -> Any:
        """Return a model that can be fitted to y: the given one, or one for each column."""
        return model

    def columns(self, y: LabelArray) -> list[LabelArray]:
        """Return classes or quantities of one column each, by which filters score features."""
        if y.ndim == 1:
            return [y]
        return list(y.T)

    def confusion(
        self, y: LabelArray, predicted: LabelArray, classes: LabelArray
    ) -> list[list[int]]:
        """Count samples by true and predicted class, or by label; empty without classes."""
        return []

    def pairs(self, y: LabelArray, predicted: LabelArray) -> list[Any]:
        """Pair true and predicted values, as records keep them; empty for classes."""
        return []

    def why_not(self, measure: Metric, y: LabelArray, of: str = "y") -> str:
        """Say why a metric is not for y, which is called `of`, and which ones are; else ""."""
        y_type = self.y_type(y)
        if measure.is_for(y_type):
            return ""
        instead = ", ".join(metrics_instead(measure.name, y_type))
        return (
            f"{measure.name} is for {measure.described_targets}, and {self.described(y, of)};"
            f" take {instead}."
        )

    def check_metric(
        self, name: str, y: LabelArray, *, key: str = "evaluation.metric", of: str = "y"
    ) -> None:
        """Check that a metric can be used for y, which is called `of`.

        One that is not raysel's own is computed once, for outputs that say y itself.
        """
        chosen = metric(name, key)
        if reason := self.why_not(chosen, y, of):
            raise ConfigError(f"{key}: {reason}")
        if name in METRICS:
            return
        outputs = "the predictions" if chosen.response == "predict" else f"its {chosen.response}"
        try:
            with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
                value = chosen(y.copy(), self.ideal(chosen, y), self.known(y))
        except (Exception, SystemExit) as error:  # a function of another package may raise anything
            told = " ".join(str(error).split())
            raise ConfigError(
                f"{key}: {name} gives no number for {of} itself as {outputs}:"
                f" {type(error).__name__}: {told}"
            ) from error
        if not math.isfinite(value):
            raise ConfigError(
                f"{key}: {name} is {value} for {of} itself as {outputs}; take another metric."
            )

    def members(self, y: LabelArray) -> Iterator[tuple[str, BoolArray]]:
        """Yield each class or label, in words, with the mask of its samples; none by default."""
        yield from ()

    def counts(self, y: LabelArray, rows: IntArray | slice = slice(None)) -> IntArray:
        """Count the samples of each class, or with each label, among some; empty without any."""
        return np.array([mask[rows].sum() for _, mask in self.members(y)], dtype=np.int64)

    def codes(self, y: LabelArray) -> IntArray:
        """Number each sample's value, equal ones alike. Returns (n_samples,)."""
        return np.unique(y, axis=0, return_inverse=True)[1].reshape(len(y))

    def permutations(
        self,
        y: LabelArray,
        groups: LabelArray | None = None,
        tasks: IntArray | None = None,
        blocks: IntArray | None = None,
    ) -> LabelPermutations:
        """Return the permutations of y among samples, within groups, tasks, or blocks."""
        return LabelPermutations(self.codes(y), groups, tasks, blocks)

    def alike(self, y: LabelArray) -> IntArray:
        """Number what samples have in common, by default their value. Returns (n_samples,)."""
        return self.codes(y)

    def few(self, y: LabelArray, n: int) -> IntArray:
        """Choose the first n samples of each class or label, or twice as many of all."""
        return np.arange(min(len(y), 2 * n))

    def summarise(self, y: LabelArray, rows: IntArray) -> str:
        """Describe some samples in a few words, e.g. ``"3 to 5 a class"``; "" if nothing fits."""
        counts = self.counts(y, rows)
        if not len(counts):
            return ""
        least, most = int(counts.min()), int(counts.max())
        if least == most:
            return f"{least} a {self.noun}"
        return f"{least} to {most} a {self.noun}"

    def describe_values(self, y: LabelArray, column_names: Sequence[str]) -> str:
        """Describe the values of y: by default the samples of each class or label."""
        names = self.names(y, column_names).tolist()
        return listed(f"{name}: {n}" for name, n in zip(names, self.counts(y), strict=True))

    def describe_strata(self, y: LabelArray, whole: str) -> str:
        """Say by what folds are stratified, of `whole` units; "" of classes, which are counted."""
        return ""

    def extremes(self, y: LabelArray, names: LabelArray) -> dict[str, IntArray]:
        """Return the samples of parts of y that are compared in pictures, by default classes."""
        members = zip(names.tolist(), self.members(y), strict=True)
        return {str(name): np.flatnonzero(mask) for name, (_, mask) in members}

    def n_unlabelled(self, y: LabelArray) -> int | None:
        """Return the number of samples without any label; None where each sample has one."""
        return None

    def contrasts(self, y: LabelArray) -> FloatArray:
        """Return the columns of numbers that filters of several columns compare with."""
        return np.stack([column.astype(np.float64) for column in self.columns(y)], axis=1)

    def undefined(self, y: LabelArray, rows: IntArray, names: LabelArray) -> str:
        """Say what some samples lack for a metric of every class; "" if nothing."""
        return ""

    def missing(self, y: LabelArray, rows: IntArray) -> IntArray:
        """Return the positions of the classes or labels that none of some samples has."""
        return np.empty(0, dtype=np.int64)

    def untrainable(self, y: LabelArray, rows: IntArray, where: str) -> str:
        """Say why nothing can be learned from some samples, which are called `where`; else ""."""
        return ""

    @abstractmethod
    def strata(self, y: LabelArray, member: IntArray, size: int) -> IntArray:
        """Number the stratum of each unit, of which samples are drawn alike.

        `member` (n_samples,) is the unit of each sample; values that have an order are cut into
        strata of `size` units. Returns (n_units,).
        """

    def folds(
        self,
        y: LabelArray,
        n_splits: int,
        *,
        groups: LabelArray | None,
        random_state: int,
        where: str,
    ) -> Pairs:
        """Split samples into folds of equal strata; the samples of a group stay in one fold.

        Returns the training and the held-out samples of each fold; `where` is the key that gives
        their number. `groups` is (n_samples,).
        """
        units = Units.find(groups, len(y))
        units.check_number(n_splits, where)
        tests = self.divide(y, units, n_splits, random_state)
        pairs = units.hold_out(tests)
        if n_splits == units.n and not all(len(test) for _, test in pairs):
            return units.leave_one_out()
        for index, (train, test) in enumerate(pairs):
            fault = self.untrainable(y, train, "its training set")
            if not len(test):
                fault = "it is empty"
            if fault:
                raise DataError(f"{where}, fold {index}: {fault}; set fewer folds.")
        return pairs

    def divide(
        self, y: LabelArray, units: Units, n_splits: int, random_state: int
    ) -> list[IntArray]:
        """Divide units among folds with equal shares of the strata; returns those of each fold."""
        strata = self.strata(y, units.member, n_splits)
        splitter = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
        return [test for _, test in splitter.split(strata, strata)]

    def halves(
        self, y: LabelArray, *, groups: LabelArray | None, random_state: int
    ) -> tuple[IntArray, IntArray]:
        """Draw two disjoint halves of the samples, or of the groups, with equal strata."""
        units = Units.find(groups, len(y))
        generator = np.random.default_rng(random_state)
        strata = self.strata(y, units.member, -(-units.n // _STRATA))
        for _ in range(_MOST_DRAWS):  # a class of few groups can be missing from a half
            drawn = draw_halves_of_units(strata, generator)
            first, second = (np.flatnonzero(np.isin(units.member, half)) for half in drawn)
            if not any(len(self.missing(y, half)) for half in (first, second)):
                return first.astype(np.int64), second.astype(np.int64)
        raise DataError(
            f"{_MOST_DRAWS} random divisions of the {units.n} {units.noun}s all lack a class or"
            f" label in one half. Run a study without the rarest one, or with more {units.noun}s."
        )

    def to_array(self, y: LabelArray) -> LabelArray:
        """Return y as numbers or text that files hold; `convert` makes y of it again."""
        return y

    def to_json(self) -> str:
        """Describe the target by a value that JSON can hold."""
        return self.kind


def target_from_json(description: Any) -> Target:
    """Return the target of a description by `Target.to_json`, which is its kind."""
    if not isinstance(description, str) or description not in _KINDS:
        known = list(_KINDS)
        raise DataError(f"target={description!r} must be {', '.join(known[:-1])} or {known[-1]}.")
    return _KINDS[description]


def find_target(y: LabelArray) -> Target:
    """Return the target whose stored form y has: y must be that of a data set, or rows of it."""
    for target in reversed(_KINDS.values()):
        if target.holds(y):
            return target
    raise DataError(f"y of dtype {y.dtype} and shape {y.shape} is not what a data set stores.")


def choose_target(y: LabelArray, asked: Target | str | None, where: str) -> Target:
    """Choose the target of y as it was read: the one that is asked for, else found from y.

    Whoever asks for classes gets labels where y is an indicator, and the other way round.
    """
    if isinstance(asked, str):
        try:
            asked = target_from_json(asked)
        except DataError as error:
            raise DataError(f"{where}: {error}") from error
    if asked is not None and not asked.is_of_classes:
        return asked
    found = [target for target in reversed(_KINDS.values()) if target.recognises(y)]
    if asked is None:
        return found[0]
    return next(each for each in found if each.is_of_classes)
