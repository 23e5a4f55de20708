"""Records of trials, paths and refits, and what their scores decide."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from raysel.core.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Convergence:
    """Number of fits that met their ``tol``."""

    n_fits: int
    n_converged: int
    gap: float | None

    @classmethod
    def of(cls, fits: Iterable[Any]) -> Convergence:
        """Count the fits that ended and those that converged."""
        ended = [fit for fit in fits if fit.converged is not None]
        gaps = [fit.gap for fit in ended if fit.gap is not None]
        return cls(len(ended), sum(fit.converged for fit in ended), max(gaps, default=None))


#: Name of the fold of the final model, whose training set has all samples.
FINAL = "final"
#: Parameters of a scoring estimator with their values, in the order in which they are written.
Setting: TypeAlias = tuple[tuple[str, Any], ...]
#: Rules that choose the number of best features.
ChooseN: TypeAlias = Literal["one_se", "best", "mean"]

#: Scores are rounded to this many decimals, because equal means can differ in their last bits.
DECIMALS = 12


def choose_setting(scores: FloatArray) -> tuple[IntArray, FloatArray]:
    """Choose the estimator's setting with the best mean score for each number of features.

    Of equal ones it is the first; one that has no score on an inner fold is not chosen unless none
    has all. ``scores`` has the shape (n_inner, n_settings, n_sizes); returned are the positions of
    the chosen settings, shape (n_sizes,), and the scores at them, shape (n_inner, n_sizes).
    """
    means = np.round(scores.mean(axis=0), DECIMALS)
    best: IntArray = np.where(np.isnan(means), -np.inf, means).argmax(axis=0)
    return best, scores[:, best, np.arange(scores.shape[2])]


def scored_numbers(scores: FloatArray) -> list[int]:
    """Positions of the numbers of features with a score on every inner fold.

    `scores` is (n_inner, n_sizes).
    """
    positions: list[int] = np.flatnonzero(~np.isnan(scores).any(axis=0)).tolist()
    return positions


class FeatureCount(NamedTuple):
    """Choice among several numbers of features."""

    position: int
    score: float


def choose_n(scores: FloatArray, rule: ChooseN) -> FeatureCount:
    r"""Choose a number of features by the validation scores of the inner folds.

    With m_j the mean score over the K inner folds at the j-th number of features, and b the number
    with the best mean (the smallest of equal ones), ``best`` chooses b and ``one_se`` the smallest
    j with

        m_j >= m_b - s_b / sqrt(K),

    where s_b is the sample standard deviation over the inner folds at b: the rule of one standard
    error of Breiman et al.. ``mean`` averages the scores over all numbers and chooses b for the
    model.

    A number without a score on an inner fold is left out, as if it were not listed: its mean would
    be of other folds than that of the others. At least one number has all scores.

    L. Breiman, J. Friedman, R. Olshen, C. Stone, "Classification and Regression Trees", 1984,
    section 3.4.3.

    `scores` is (n_inner, n_sizes).
    """
    kept = scored_numbers(scores)
    if len(kept) < scores.shape[1]:
        chosen = choose_n(np.ascontiguousarray(scores[:, kept]), rule)
        return FeatureCount(kept[chosen.position], chosen.score)
    means = scores.mean(axis=0)
    rounded = np.round(means, DECIMALS)
    best = int(rounded.argmax())
    if rule == "mean":
        return FeatureCount(best, float(np.mean(scores)))
    if rule == "best" or len(scores) == 1:
        return FeatureCount(best, float(means[best]))
    error = scores[:, best].std(ddof=1) / np.sqrt(len(scores))
    position = int(np.argmax(rounded >= round(means[best] - error, DECIMALS)))
    return FeatureCount(position, float(means[position]))


class EstimatorFailure(NamedTuple):
    """Number of best features with which the estimator that scores them raises an error."""

    n_features: int
    #: Setting of the estimator, e.g. ``"C=0.1"``; empty if it has none.
    setting: str
    reason: str


def with_none(values: FloatArray) -> list[float | None]:
    """Return values as a list, None for those that are not finite, which JSON cannot hold."""
    return [value if math.isfinite(value) else None for value in values.tolist()]


@dataclass
class InnerTrace:
    """Objective and scores of one inner fit."""

    #: Objective after each iteration.
    objective: list[float] = field(default_factory=list)
    #: Scores after each iteration, one for each number of features, None where the estimator fails;
    #: only the last where the fit is scored once.
    scores: list[list[float | None]] = field(default_factory=list)
    #: Origin of the solution on a path of configurations: ``"solved"``, or the certificate that
    #: proved it.
    source: str = "solved"
    #: Whether the fit met its ``tol``; None while it has not ended.
    converged: bool | None = None
    #: Relative duality gap; None if the solver computes none.
    gap: float | None = None
    #: Numbers of features and settings with which the estimator fails.
    failures: list[EstimatorFailure] = field(default_factory=list)

    def add_scores(self, score: Callable[..., FloatArray], solver: Any) -> None:
        """Score a solver as it is now, and note where the estimator fails."""
        self.scores.append(with_none(score(solver, self.failures)))


@dataclass
class FoldTrace:
    """Inner fits of one configuration on one outer fold, without its test samples."""

    #: Whether the solution was proved to be zero on every inner training set; it is scored like any
    #: other.
    null: bool = False
    #: One trace for each inner fold.
    inner: list[InnerTrace] = field(default_factory=list)
    #: Traceback of the inner fit that failed on this outer fold, or that the estimator fails with
    #: every number of features; empty if none failed.
    error: str = ""
    #: Setting of the estimator with the best mean inner score for each number of features, e.g.
    #: ``{"C": 0.1}``; empty where each iteration is scored, and where the estimator fails.
    settings: list[dict[str, Any]] = field(default_factory=list)

    def choose_setting(self, settings: Sequence[Setting]) -> None:
        """Choose a setting for each number of features, and keep the scores at it."""
        rows = np.array([trace.scores for trace in self.inner], dtype=np.float64)
        best, scores = choose_setting(rows)
        kept = scored_numbers(scores)
        self.settings = [dict(settings[p]) if i in kept else {} for i, p in enumerate(best)]
        for trace, row in zip(self.inner, scores, strict=True):
            trace.scores = [with_none(row)]
        if not kept:
            failures = chain.from_iterable(trace.failures for trace in self.inner)
            n, setting, reason = next(failures)
            first = str(n)
            if setting:
                first += f" ({setting})"
            self.error = (
                f"evaluation.estimator fails with every number of features, with {first} by"
                f" {reason}"
            )

    @property
    def last_scores(self) -> FloatArray | None:
        """Scores at the last iteration, shape (n_inner, n_sizes); None if a fit failed."""
        if self.error or not self.inner:
            return None
        return np.array([trace.scores[-1] for trace in self.inner], dtype=np.float64)

    @property
    def scored_numbers(self) -> list[int]:
        """Positions of the numbers of features with a score on every inner fold."""
        scores = self.last_scores
        return [] if scores is None else scored_numbers(scores)

    def choice(self, rule: ChooseN) -> FeatureCount | None:
        """Return the number of features that a rule chooses; None if a fit failed."""
        scores = self.last_scores
        return None if scores is None else choose_n(scores, rule)

    def score(self, rule: ChooseN) -> float | None:
        """Return the last score of the configuration by a rule; None if a fit failed."""
        chosen = self.choice(rule)
        return None if chosen is None else chosen.score

    def objective_curve(self) -> list[float]:
        """Return the mean objective over the inner folds by iteration."""
        return mean_curve([trace.objective for trace in self.inner])

    def score_curve(self, rule: ChooseN) -> list[float]:
        """Return the score by iteration, by a rule; one value if it is scored once."""
        if self.error:
            return []
        known = [np.array(trace.scores, dtype=np.float64) for trace in self.inner if trace.scores]
        if rule == "mean":
            kept = self.scored_numbers
            each = [np.ascontiguousarray(scores[:, kept]) for scores in known]
            return mean_curve([scores.mean(axis=1).tolist() for scores in each])
        length = max((len(scores) for scores in known), default=0)
        return [
            choose_n(np.array([scores[min(i, len(scores) - 1)] for scores in known]), rule).score
            for i in range(length)
        ]

    def score_curves(self) -> list[list[float]]:
        """Return the mean score by iteration, a curve for each number of features.

        That of a number with which the estimator fails is empty.
        """
        scores = [np.array(trace.scores, dtype=np.float64) for trace in self.inner]
        kept = self.scored_numbers
        return [
            mean_curve([rows[:, i].tolist() for rows in scores if i in kept])
            for i in range(scores[0].shape[1])
        ]


def mean_curve(curves: Sequence[Sequence[float]]) -> list[float]:
    """Average curves of different lengths; a shorter curve is continued by its last value."""
    length = max((len(curve) for curve in curves), default=0)
    held = [[*curve, *[curve[-1]] * (length - len(curve))] for curve in curves if curve]
    if not held:
        return []
    return np.mean(held, axis=0).tolist()


@dataclass
class TrialRecord:
    """Record of a trial: one configuration on all outer folds, or on one of them."""

    #: Hash of the configuration, preceded by the name of the outer fold for a trial on one fold.
    id: str
    #: Searched parameters of the configuration as text.
    name: str
    #: All parameters of the solver that the study sets.
    params: dict[str, Any]
    #: ``null``: all solutions are zero.
    status: str
    #: Inner fits by the name of the outer fold.
    folds: dict[str, FoldTrace] = field(default_factory=dict)
    #: Traceback of a trial that failed as a whole, e.g. because its worker process died.
    error: str = ""
    #: Seconds since the epoch.
    started: float = 0.0
    ended: float = 0.0
    #: Name of the outer fold of a trial on one fold; empty for a trial on all outer folds.
    fold: str = ""
    #: Place of a trial on one fold among those that the search proposed there.
    number: int = 0

    @property
    def _alive(self) -> dict[str, FoldTrace]:
        return {name: trace for name, trace in self.folds.items() if not trace.error}

    @property
    def _looked_at(self) -> dict[str, FoldTrace]:
        """Folds of the curves: the outer ones, or the final one where there is no other."""
        return {name: trace for name, trace in self._alive.items() if name != FINAL} or self._alive

    def objective_curve(self) -> list[float]:
        """Return the objective by iteration, the mean over the inner fits of the outer folds.

        The final fold counts only where there is no other, as in the trials of its own in an
        adaptive search.
        """
        return mean_curve([trace.objective_curve() for trace in self._looked_at.values()])

    def curves(self, metric: str, labels: Sequence[str], rule: ChooseN) -> dict[str, list[float]]:
        """Return objective and scores by iteration, for each outer fold and averaged over them.

        The mean over the outer folds is for display only: winners are selected on each outer fold
        separately. ``val_<metric>`` of an iteration is the score at the number of features that the
        rule chooses then, which may differ between iterations and outer folds.
        """
        alive, looked_at = self._alive, self._looked_at
        objectives = {name: trace.objective_curve() for name, trace in alive.items()}
        scores = {name: trace.score_curve(rule) for name, trace in alive.items()}
        by_number = [trace.score_curves() for trace in looked_at.values() if labels]
        curves = {
            "objective": mean_curve([objectives[name] for name in looked_at]),
            f"val_{metric}": mean_curve([scores[name] for name in looked_at]),
        }
        for i, label in enumerate(labels):
            curves[f"val_{metric}_{label}"] = mean_curve([of_fold[i] for of_fold in by_number])
        for name in alive:
            curves[f"objective/{name}"] = objectives[name]
            curves[f"val_{metric}/{name}"] = scores[name]
        return {name: curve for name, curve in curves.items() if curve}

    @property
    def failed_folds(self) -> list[str]:
        """Names of the outer folds on which a fit failed."""
        return [name for name, trace in self.folds.items() if trace.error]

    @property
    def failure(self) -> str:
        """First error with the names of the outer folds that failed; empty if none failed."""
        if self.error or not self.failed_folds:
            return self.error
        return f"on {', '.join(self.failed_folds)}: {self.folds[self.failed_folds[0]].error}"

    def convergence(self) -> Convergence:
        """Count the inner fits that ended and those that met their ``tol``."""
        return Convergence.of(chain.from_iterable(trace.inner for trace in self._alive.values()))

    @property
    def inferred(self) -> str:
        """Counts of the inner fits by source, e.g. ``12 solved, 8 zero``, if not all are solved."""
        inner = chain.from_iterable(trace.inner for trace in self.folds.values())
        counts = Counter(fit.source for fit in inner)
        if set(counts) <= {"solved"}:
            return ""
        return ", ".join(f"{n} {source}" for source, n in counts.most_common())

    def to_json(self) -> dict[str, Any]:
        """Return plain data as the journal holds them; its lists are not copied."""
        folds = {
            name: {**vars(trace), "inner": [dict(vars(inner)) for inner in trace.inner]}
            for name, trace in self.folds.items()
        }
        return {**vars(self), "folds": folds}


@dataclass
class PathRecord:
    """Record of a path: all configurations, or those added since, on one training set."""

    #: Name of the outer fold.
    fold: str
    #: Number of the inner fold.
    inner: int
    #: State in which the path ended.
    status: str = "finished"
    #: Fits by the configuration's id.
    fits: dict[str, InnerTrace] = field(default_factory=dict)
    #: Traceback of a path that failed.
    error: str = ""
    #: Tracebacks of single fits that failed, by the configuration's id.
    errors: dict[str, str] = field(default_factory=dict)
    #: Seconds since the epoch.
    started: float = 0.0
    ended: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return plain data as the journal holds them; its lists are not copied."""
        return {**vars(self), "fits": {id_: dict(vars(fit)) for id_, fit in self.fits.items()}}

    @property
    def failure(self) -> str:
        """Error of a path that failed; empty if it did not."""
        return self.error

    def joined(self, later: PathRecord) -> PathRecord:
        """Return this path joined with one of other configurations on the same training set."""
        last = later
        if self.status == "failed":
            last = self
        return replace(
            last,
            fits={**self.fits, **later.fits},
            errors={**self.errors, **later.errors},
            started=min(self.started, later.started),
            ended=max(self.ended, later.ended),
        )


@dataclass
class RefitRecord:
    """Record of an outer fold's winner, fitted on the training set and scored once."""

    #: Name of the outer fold; the final fold has no test set.
    fold: str
    #: Id of the winning trial.
    trial: str
    #: Searched parameters of the winner as text.
    name: str
    #: All parameters of the solver that the study sets.
    params: dict[str, Any]
    #: Validation score of the winner on this outer fold, at the number of features that
    #: ``evaluation.choose_n`` chooses; the mean over the numbers of features, or the tasks, where
    #: that is ``mean`` or the estimator ``native``.
    inner_score: float
    #: Test score for each number of features, or each task; None where the estimator fails, empty
    #: for the final fold.
    test_scores: list[float | None]
    #: Score of each feature; None if the method does not rank features.
    feature_scores: list[float] | None
    #: Objective after each iteration.
    objective: list[float]
    #: Seconds since the epoch.
    started: float = 0.0
    ended: float = 0.0
    #: Whether the refit met its ``tol``; None if it was not recorded.
    converged: bool | None = None
    #: Relative duality gap; None if the solver computes none.
    gap: float | None = None
    #: Messages of the warnings that the fit issued, except those of convergence.
    warnings: list[str] = field(default_factory=list)
    #: Further metrics on the test set by name, each with one value for each test score, None where
    #: it is undefined; empty for the final fold.
    report: dict[str, list[float | None]] = field(default_factory=dict)
    #: Mean absolute correlation over all samples of the data set of the best features, for each
    #: number of features (`Study.redundancy_sizes`), None where there is no pair; empty if the
    #: method does not rank features or there are several tasks.
    redundancy: list[float | None] = field(default_factory=list)
    #: CPU seconds of all threads of the process for the solver's fit; None if it was not recorded.
    cpu_seconds: float | None = None
    #: Score or kernel weight of each modality, the solver's ``modality_scores_``: a number, or a
    #: list with one for each class or label; None if the solver has none or it was not recorded.
    modality_scores: list[float] | list[list[float]] | None = None
    #: Number of best features that the inner scores choose, those of the fold's model; None for the
    #: estimator ``native`` or if it was not recorded.
    n_features: int | None = None
    #: Position in ``test_scores`` of the score at ``n_features``, which is `test_score`; None if
    #: that is their mean.
    position: int | None = None
    #: Mean validation score over the inner folds for each entry of ``test_scores``; empty if it was
    #: not recorded.
    inner_curve: list[float | None] = field(default_factory=list)
    #: Scores on the training set itself, as ``test_scores``; empty if they were not recorded or one
    #: is undefined.
    training_scores: list[float | None] = field(default_factory=list)
    #: Test scores of the references of ``evaluation.references`` by name: one for each number of
    #: features, or one if the reference does not depend on it; empty for the final fold.
    references: dict[str, list[float | None]] = field(default_factory=dict)
    #: Number of test samples by true class (row) and class predicted with ``n_features`` (column),
    #: in the order of ``classes`` of the study; for several labels a sample one row ``[tn, fp, fn,
    #: tp]`` a label; samples without a label are left out.
    confusion: list[list[int]] = field(default_factory=list)
    #: Outputs of the model with ``n_features`` for the test samples, `TestOutputs.to_json`; empty
    #: if it has none, if there are too many, for several tasks, and if they were not recorded.
    outputs: dict[str, Any] = field(default_factory=dict)
    #: True and predicted quantity of each test sample, of several quantities a pair for each; empty
    #: for classes.
    predictions: list[Any] = field(default_factory=list)
    #: Number of training and of test samples; 0 if it was not recorded.
    n_train: int = 0
    n_test: int = 0
    #: Setting of the estimator for each entry of ``test_scores``, chosen by the inner scores, e.g.
    #: ``{"C": 0.1}``; empty for ``knn`` and ``native``, and for ``linear_svm`` up to raysel 0.6,
    #: where C was 1.
    settings: list[dict[str, Any]] = field(default_factory=list)
    #: Position in ``references`` of the number of features that the inner folds choose for that
    #: reference; up to raysel 0.6 that was the method's.
    reference_positions: dict[str, int] = field(default_factory=dict)
    #: Setting of the estimator for each score in ``references``, chosen by the inner folds.
    reference_settings: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    #: Number of configurations, with the winner, that no rule distinguishes from it on this fold;
    #: of them the first in the order of the search won.
    n_tied: int = 1
    #: Whether the fit ended at one of several local optima; False if it was not recorded.
    local_optimum: bool = False
    #: Comparison of the final model with fits from other starts, by `refit.other_start`; None for
    #: the outer folds, where the optimum does not depend on the start, or if it was not recorded.
    other_start: dict[str, int | float] | None = None
    #: Jackknife pseudo-values of `test_score` over the test samples, or over their groups or
    #: blocks, at most `jackknife.MOST_UNITS`; empty where the score is undefined without one of
    #: them, None for the final fold, for draws of the training set, or if they were not recorded.
    pseudo_values: list[float] | None = None

    @property
    def test_score(self) -> float | None:
        """Test score at ``n_features``, or the mean without a ``position``; None without test."""
        return self._figure(self.test_scores, self.position)

    @property
    def training_score(self) -> float | None:
        """Score on the training set, as `test_score`; None if it was not recorded."""
        return self._figure(self.training_scores, self.position)

    def reported(self, metric: str) -> float | None:
        """Return a further metric as `test_score` is; None where it is undefined or missing."""
        return self._figure(self.report.get(metric, []), self.position)

    def reference(self, name: str) -> float | None:
        """Return the test score of a reference at its own number; None if it is missing."""
        values = self.references.get(name, [])
        if len(values) == 1:
            return values[0]
        return self._figure(values, self.reference_positions.get(name, self.position))

    def _figure(self, values: Sequence[float | None], position: int | None) -> float | None:
        """The value at a position, or the mean where the estimator does not fail."""
        if position is not None:
            return values[position] if values else None
        pairs = zip(values, self.test_scores or values, strict=False)
        scored = [value for value, test_score in pairs if test_score is not None]
        known = [value for value in scored if value is not None]
        if not known or len(known) < len(scored):
            return None
        return float(np.mean(known))

    @property
    def scored_numbers(self) -> list[int]:
        """Positions of the numbers of features that have a test score."""
        return [i for i, score in enumerate(self.test_scores) if score is not None]

    def clear_scores(self, constant: Iterable[int]) -> None:
        """Set the scores of constant features to 0, as raysel up to 0.2 did not."""
        if self.feature_scores is not None:
            for feature in constant:
                self.feature_scores[feature] = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return plain data as the journal holds them."""
        return asdict(self)
