"""Permutations of labels that keep groups and tasks together, and their p values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, gammaln

from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.core.errors import DataError
from raysel.numerics.inference import check_share


class LabelPermutations:
    """Permutations of labels among samples, within groups, among groups, or among blocks.

    Labels of several tasks are permuted within each task. Without groups the samples exchange their
    labels.

    `codes`, which number the values of a target, `groups`, `tasks` and `blocks` are (n_samples,).
    """

    def __init__(
        self,
        codes: IntArray,
        groups: LabelArray | None = None,
        tasks: IntArray | None = None,
        blocks: IntArray | None = None,
    ) -> None:
        n = len(codes)
        members = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
        owners = np.zeros(n, dtype=np.int64) if tasks is None else tasks
        self._n = n
        self._exchanges: list[_Exchange] = []
        self.n_movable, self.log10_arrangements = 0, 0.0
        if blocks is not None:
            kinds = {"blocks"}
            parts = [np.flatnonzero(blocks == block) for block in np.unique(blocks)]
            self._exchange_alike(parts, codes)
        else:
            unit = "samples" if groups is None else "groups"
            kinds = {
                self._exchange_in_task(np.flatnonzero(owners == task), members, codes, unit)
                for task in np.unique(owners)
            }
        self.kind = ", ".join(sorted(kinds, reverse=True))
        if not self._exchanges:
            raise DataError(
                f"no permutation of {self.kind} changes a label: give samples, or groups, of"
                " different labels that can be exchanged within each task and group."
            )

    def _exchange_in_task(
        self, of_task: IntArray, members: IntArray, codes: IntArray, unit: str
    ) -> str:
        """Let the samples or groups of a task exchange their labels, and return which do."""
        of_task = of_task[np.argsort(members[of_task], kind="stable")]
        starts = np.flatnonzero(np.diff(members[of_task], prepend=-1))
        parts, lengths = np.split(of_task, starts[1:]), np.diff(starts, append=len(of_task))
        lowest, highest = (
            extreme.reduceat(codes[of_task], starts) for extreme in (np.minimum, np.maximum)
        )
        n_mixed = lengths[lowest != highest].sum()
        if not n_mixed:
            self._exchange(parts, codes)
            return unit
        if 2 * n_mixed >= len(of_task):
            for part in parts:
                self._exchange(list(part[:, None]), codes)
            return "samples within groups"
        self._exchange_alike(parts, codes)
        return "groups of equal size"

    def _exchange_alike(self, parts: list[IntArray], codes: IntArray) -> None:
        """Let parts of equal length exchange their labels in the order in which they stand."""
        for length in sorted({len(part) for part in parts}):
            self._exchange([part for part in parts if len(part) == length], codes, ordered=True)

    def _exchange(self, units: list[IntArray], codes: IntArray, *, ordered: bool = False) -> None:
        """Let units exchange their labels, if they differ in them."""
        labels = codes[np.stack(units) if ordered else [unit[0] for unit in units]]
        counts = np.unique(labels, axis=0, return_counts=True)[1]
        if len(counts) > 1:
            self._exchanges.append(_Exchange.make(units, ordered=ordered))
            self.n_movable += sum(map(len, units))
            self.log10_arrangements += float(_log_multinomial(counts)) / math.log(10)

    def draw(self, rng: np.random.Generator) -> IntArray:
        """Draw a permutation. Returns (n_samples,)."""
        source: IntArray = np.arange(self._n, dtype=np.int64)
        for exchange in self._exchanges:
            source[exchange.samples] = exchange.draw(rng)
        return source


@dataclass(frozen=True)
class _Exchange:
    """Units of samples that exchange their labels."""

    #: The samples of all units, one unit after the other.
    samples: IntArray
    #: Samples whose labels each unit gives to another; shape (n_units, n_given).
    given: IntArray
    #: How often each unit takes what it is given.
    repeats: IntArray

    @classmethod
    def make(cls, units: Sequence[IntArray], *, ordered: bool) -> _Exchange:
        """Of units of equal length in the samples' order, or of units that have one label each."""
        samples = np.concatenate(units)
        if ordered:
            return cls(samples, np.stack(units), np.ones(len(units), dtype=np.int64))
        first = np.array([unit[:1] for unit in units])
        return cls(samples, first, np.array([len(unit) for unit in units]))

    def draw(self, rng: np.random.Generator) -> IntArray:
        """Draw whose label each of the samples gets."""
        given = self.given[rng.permutation(len(self.given))]
        return np.repeat(given, self.repeats, axis=0).ravel()


def _log_multinomial(counts: IntArray) -> float:
    """Natural logarithm of the number of arrangements of labels that occur so often."""
    return float(gammaln(counts.sum() + 1) - gammaln(counts + 1).sum())


#: Statistics that differ by less, relative to the observed one, count as equal: their last bits
#: depend on the order of the sums.
_ROUNDING = 1e-10


@dataclass(frozen=True, kw_only=True)
class PermutationPValue:
    """P value of a permutation test and its Monte-Carlo error."""

    #: P value.
    p_value: float
    #: Number of permutations.
    n_permutations: int
    #: Number of permutations whose statistic is at least the observed one, those that failed among
    #: them.
    n_reached: int
    #: Number of permutations without a statistic.
    n_failed: int
    #: Smallest p value that this number of permutations can give.
    smallest: float
    #: Confidence interval of the p value that all permutations would give.
    lower: float
    upper: float


def permutation_p_value(
    observed: float, permuted: ArrayLike, confidence: float = 0.95
) -> PermutationPValue:
    r"""Return the p value of a statistic whose large values speak against the null hypothesis.

    With B random permutations it is

        p = (1 + #{b : T_b >= T}) / (1 + B),

    which is at most alpha with a probability of at most alpha under the null hypothesis, whatever
    B. A permutation without a statistic counts as one that reaches the observed value, which can
    only enlarge p.

    B. Phipson, G. K. Smyth, "Permutation P-values Should Never Be Zero", Statistical Applications
    in Genetics and Molecular Biology 9, 2010.

    `permuted` is (n_permutations,).
    """
    check_share("confidence", confidence)
    values = np.asarray(permuted, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise DataError(
            f"permuted has shape {values.shape}; give the statistic of at least one permutation."
        )
    if not math.isfinite(observed):
        raise DataError(f"observed={observed!r} must be a finite number.")
    failed = int(np.isnan(values).sum())
    n, reached = len(values), int(reaches(np.array([observed]), values[:, None]).sum()) + failed
    lower, upper = binomial_interval(reached, n, confidence)
    return PermutationPValue(
        p_value=(1 + reached) / (1 + n),
        n_permutations=n,
        n_reached=reached,
        n_failed=failed,
        smallest=1 / (1 + n),
        lower=lower,
        upper=upper,
    )


def binomial_interval(n_successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson for the probability of a success."""
    tail = (1 - confidence) / 2
    lower, upper = 0.0, 1.0
    if n_successes:
        lower = float(betaincinv(n_successes, n - n_successes + 1, tail))
    if n_successes < n:
        upper = float(betaincinv(n_successes + 1, n - n_successes, 1 - tail))
    return lower, upper


def reaches(observed: FloatArray, permuted: FloatArray) -> BoolArray:
    """Return where permuted statistics are at least the observed ones, up to rounding errors.

    `observed` is (d,), `permuted` (d,) or (n_permutations, d).
    """
    return permuted >= observed - _ROUNDING * np.abs(observed)


@dataclass(frozen=True)
class FeaturePValues:
    """P values of many features by permutations, unadjusted and by the largest statistic."""

    #: Unadjusted p values; shape (d,).
    p_value: FloatArray
    #: Adjusted by the maximum over all features; shape (d,).
    single_step: FloatArray
    #: Adjusted by the maximum over the features with no larger observed statistic; never above
    #: ``single_step``; shape (d,).
    step_down: FloatArray
    #: Smallest p value that this number of permutations can give.
    smallest: float


class MaxStatistic:
    r"""Counts of the permutations that reach the statistic of each feature, and p values.

    With T_j the observed statistic of feature j, T_jb that of permutation b, and the features in
    descending order of T_j, the p values from B permutations are

        unadjusted    p_j = (1 + #{b : T_jb >= T_j}) / (1 + B)
        single-step   p_j = (1 + #{b : max_k T_kb >= T_j}) / (1 + B)
        step-down     p_j = max_{i <= j} (1 + #{b : max_{k >= i} T_kb >= T_i}) / (1 + B)

    The single-step values at or below alpha contain a false one with a probability of at most alpha
    if no feature has to do with the labels, and also if some have, as long as the joint
    distribution of the other features' statistics does not depend on them (subset pivotality); so
    do the step-down ones, which are smaller or equal.

    P. H. Westfall, S. S. Young, "Resampling-Based Multiple Testing", 1993, chapter 2.

    `observed` is (d,).
    """

    def __init__(self, observed: ArrayLike) -> None:
        self._observed = np.asarray(observed, dtype=np.float64)
        if self._observed.ndim != 1 or not np.isfinite(self._observed).all():
            raise DataError("observed must be a list of finite numbers, one for each feature.")
        self._descending = np.argsort(-self._observed, kind="stable")
        self._n = 0
        self._unadjusted: IntArray = np.zeros(len(self._observed), dtype=np.int64)
        self._single, self._step = self._unadjusted.copy(), self._unadjusted.copy()

    def add(self, permuted: ArrayLike) -> None:
        """Count one permutation. `permuted` is (d,)."""
        values = np.asarray(permuted, dtype=np.float64)
        if values.shape != self._observed.shape or not np.isfinite(values).all():
            raise DataError(
                f"permuted must hold {len(self._observed)} finite numbers, one for each feature."
            )
        ordered = values[self._descending]
        successive = np.maximum.accumulate(ordered[::-1])[::-1]
        # Features with equal observed statistics share the maximum of all of them.
        descending = self._observed[self._descending]
        largest = np.empty_like(values)
        largest[self._descending] = successive[
            np.searchsorted(-descending, -descending, side="left")
        ]
        self._n += 1
        self._unadjusted += reaches(self._observed, values)
        self._single += reaches(self._observed, np.full_like(values, values.max(initial=-np.inf)))
        self._step += reaches(self._observed, largest)

    def add_failed(self) -> None:
        """Count one permutation without statistics."""
        self._n += 1
        self._unadjusted += 1
        self._single += 1
        self._step += 1

    def p_values(self) -> FeaturePValues:
        """Return the p values from the permutations that have been counted."""
        if not self._n:
            raise DataError("no permutation has been counted; add at least one.")
        unadjusted, single, step = (
            (1 + count) / (1 + self._n) for count in (self._unadjusted, self._single, self._step)
        )
        adjusted = np.empty_like(step)
        adjusted[self._descending] = np.maximum.accumulate(step[self._descending])
        return FeaturePValues(unadjusted, single, adjusted, 1 / (1 + self._n))


def feature_p_values(
    observed: FloatArray, permuted: Sequence[FloatArray | None], *, by_share: bool
) -> FeaturePValues:
    r"""Return p values of feature scores from those of models of permuted labels.

    The scores of a model that is fitted to all features together have a scale of their own in each
    fit: without information it may need larger coefficients than with it, and the share of a
    feature in the sum of the scores depends on how many others are informative. With s_jb the score
    of feature j in permutation b, b = 0 for the true labels, the statistic is therefore

        T_jb = max(s_jb / c, t_jb / e),    t_jb = s_jb / sum_k s_kb,

    c and e the means of max_j s_jb and max_j t_jb over all b from 0 to B. As c and e do not depend
    on which of the arrangements of labels is the true one, `MaxStatistic` is valid for T as it is
    for s: if no feature has to do with the labels. Where some do, a model may score others higher
    than with any permuted labels (experiments/claims/error-control).

    `observed` is (d,), each of `permuted` (d,).
    """
    if by_share:
        known = [scores for scores in (observed, *permuted) if scores is not None]
        largest = np.mean([scores.max(initial=0.0) for scores in known])
        largest_share = np.mean([_shares(scores).max(initial=0.0) for scores in known])

        def statistic(scores: FloatArray) -> FloatArray:
            return np.maximum(scores / (largest or 1.0), _shares(scores) / (largest_share or 1.0))

    else:

        def statistic(scores: FloatArray) -> FloatArray:
            return scores

    counts = MaxStatistic(statistic(observed))
    for scores in permuted:
        if scores is None:
            counts.add_failed()
        else:
            counts.add(statistic(scores))
    return counts.p_values()


def _shares(scores: FloatArray) -> FloatArray:
    """Scores divided by their sum; zeros if it is zero."""
    return scores / (scores.sum() or 1.0)
