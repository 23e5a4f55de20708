"""Result of an audit: careless and honest score of a method, on true and on permuted labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import ttest_1samp

from raysel.core.arrays import FloatArray
from raysel.core.printing import mean_and_sd
from raysel.evaluation.failing_numbers import failing_in_trials
from raysel.numerics.inference import MeanInterval
from raysel.results import texts
from raysel.results.progress import counted
from raysel.results.result import StudyResult

if TYPE_CHECKING:
    import pandas as pd

    from raysel.results.displays.audit import AuditScores


#: Level of the test of harm.
_LEVEL = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """Careless and honest score of a method, side by side, as `raysel.audit` returns them."""

    metric: str
    #: Best mean score of a configuration in plain cross-validation after all else was fitted to all
    #: samples.
    careless: float
    #: Number of configurations, numbers of features among them, of which that is the best.
    n_careless: int
    #: Number of samples that the careless folds divide, after steps that resample.
    n_divided: int
    #: Nested cross-validation: the honest score, with the whole study.
    study: StudyResult
    #: Mean honest test score with its 95 % interval, which is not cut at the range of the metric.
    honest: MeanInterval
    #: Scores on permuted labels, one for each permutation; empty if no permutation changes a label.
    careless_permuted: tuple[float, ...]
    honest_permuted: tuple[float, ...]
    #: Number of permutations that failed and are left out, and the first failure.
    n_failed: int
    failure: str
    #: Sentences on columns that the honest score does without.
    left_out: tuple[str, ...]
    #: Number of groups that the honest folds keep whole; None if no groups were given.
    n_groups: int | None

    @property
    def difference(self) -> float:
        """Careless minus honest score."""
        return self.careless - self.honest.mean

    @property
    def invented(self) -> FloatArray:
        """Careless minus honest score on each permutation of the labels; (n_permutations,)."""
        return np.subtract(self.careless_permuted, self.honest_permuted)

    @property
    def p_value(self) -> float | None:
        """P value of a one-sided paired t test of `invented`; None of fewer than two permutations.

        It is small where the careless protocol scores more than the honest one on labels of which
        nothing can be learnt.
        """
        invented = self.invented
        if len(invented) < 2:
            return None
        if np.ptp(invented) == 0:
            return float(invented[0] <= 0)
        return float(ttest_1samp(invented, 0.0, alternative="greater").pvalue)

    @property
    def harms(self) -> bool | None:
        """Whether careless use scores more on permuted labels, at the level .05.

        None where fewer than two permutations cannot tell.
        """
        if self.p_value is None:
            return None
        return self.p_value <= _LEVEL

    @property
    def permuted_means(self) -> tuple[float, float]:
        """Mean careless and honest score on permuted labels; NaN if no label was permuted."""
        if not self.honest_permuted:
            return math.nan, math.nan
        return float(np.mean(self.careless_permuted)), float(np.mean(self.honest_permuted))

    @property
    def chance(self) -> float | None:
        """Score of the best guess that reads no feature, on the same folds; None if not known."""
        chance = self.study.facts.references.get("chance")
        return None if chance is None else chance.mean

    def sentences(self) -> list[str]:
        """Say what the scores are, whether careless use harms, and what the scores cannot know."""
        n = self.study.facts.study.n_samples
        scores = "score"
        if self.n_careless > 1:
            scores = f"best of {self.n_careless} scores"
        found = [
            self._scores(),
            (
                f"The careless score is the {scores} by plain cross-validation, where all else was"
                f" fitted to all {n} samples before."
            ),
        ]
        if self.n_divided != n:
            found += self._resampled(n)
        if self.honest_permuted:
            careless, honest = self.permuted_means
            said = (
                f"With permuted labels the careless score is {mean_and_sd(careless)}, the honest"
                f" one {mean_and_sd(honest)}"
            )
            if self.chance is not None:
                said += f"; chance is {mean_and_sd(self.chance)}"
            found.append(f"{said}.")
        if self.n_failed:
            found.append(f"{counted(self.n_failed, 'permutation')} failed: {self.failure}")
        found.append(self.verdict())
        found += self.left_out
        failing = failing_in_trials(self.study.recorded.trials)
        found += [f"evaluation.estimator fails with {each}." for each in failing]
        if self.n_groups is None:
            found.append(
                "Give groups if samples belong together, as those of one subject do: without them"
                " both scores are too high."
            )
        return found

    def _resampled(self, n: int) -> list[str]:
        """Say of a step that resamples which samples the two scores are of."""
        said = [
            (
                f"A step resamples: the careless folds divide {self.n_divided} samples, the honest"
                f" ones the {n} as they are."
            )
        ]
        if self.study.recorded.classes and self.metric != "balanced_accuracy":
            said.append(
                f"Their class shares may differ, which may move {texts.spaced(self.metric)}, but"
                " not balanced_accuracy."
            )
        return said

    def _scores(self) -> str:
        return (
            f"The careless {texts.spaced(self.metric)} is {mean_and_sd(self.careless)}, the honest"
            f" one by nested cross-validation {mean_and_sd(self.honest.mean)}."
        )

    def verdict(self) -> str:
        """Say whether careless use does harm."""
        if self.harms is None:
            return "Fewer than two permutations cannot show harm: set n_permutations to 5 or more."
        invented = f"{mean_and_sd(self.invented.mean())} (paired p = {self.p_value:.2g})"
        if self.harms:
            return (
                f"Where nothing can be learnt, careless use adds {invented}: do not report its"
                " score."
            )
        return f"Where nothing can be learnt, careless use adds {invented}: no clear difference."

    def frame(self) -> pd.DataFrame:
        """Return the scores as a table: a row for each protocol."""
        import pandas as pd  # noqa: PLC0415

        interval, permuted = (
            self.study.facts.interval,
            (self.careless_permuted, self.honest_permuted),
        )
        table = {
            "protocol": ["careless", "honest"],
            self.metric: [self.careless, self.honest.mean],
            "lower": [None, interval.lower],
            "upper": [None, interval.upper],
            "permuted_mean": self.permuted_means,
            "permuted_lowest": [min(scores, default=math.nan) for scores in permuted],
            "permuted_highest": [max(scores, default=math.nan) for scores in permuted],
            "n_permutations": list(map(len, permuted)),
        }
        return pd.DataFrame(table).astype({"lower": "float64", "upper": "float64"})

    def plot(self, ax: Any = None) -> Any:
        """Draw the scores on matplotlib's axes, by default new ones, and return the axes."""
        return self.display().plot(ax)

    def display(self) -> AuditScores:
        """Return the picture, whose `headed_figure` has title and caption."""
        # Loads matplotlib.
        from raysel.results.displays.audit import AuditScores  # noqa: PLC0415

        interval, ends = self.study.facts.interval, None
        if interval.lower is not None and interval.upper is not None:
            ends = interval.lower, interval.upper
        return AuditScores(
            metric=texts.spaced(self.metric),
            means=[self.careless, self.honest.mean, *self.permuted_means],
            interval=ends,
            folds=self.study.recorded.test_scores,
            careless_permuted=self.careless_permuted,
            honest_permuted=self.honest_permuted,
            chance=self.chance,
            sentence=f"{self._scores()} {self.verdict()}",
        )

    def __repr__(self) -> str:
        return "\n".join(
            [self.frame().to_string(index=False, float_format="%.3f", na_rep=""), *self.sentences()]
        )

    def _repr_html_(self) -> str:
        table = self.frame().round(3).to_html(index=False, na_rep="")
        return table + "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences())
