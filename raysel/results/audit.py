"""Result of an audit: the careless and the honest score of a method, on true and on permuted labels."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from raysel.numerics.inference import MeanInterval
from raysel.results import texts
from raysel.results.result import StudyResult

if TYPE_CHECKING:
    import pandas as pd

    from raysel.results.displays.audit import AuditScores


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """Careless and honest score of a method, side by side, as `raysel.audit` returns them."""

    metric: str
    #: Best mean score of a configuration in plain cross-validation after all else was fitted to all samples.
    careless: float
    #: Number of configurations, numbers of features among them, of which that is the best.
    n_careless: int
    #: Nested cross-validation: the honest score, with the whole study.
    study: StudyResult
    #: Mean honest test score with its 95 % interval, which is not cut at the range of the metric.
    honest: MeanInterval
    #: Scores on permuted labels, one for each permutation; empty if no permutation changes a label.
    careless_permuted: tuple[float, ...]
    honest_permuted: tuple[float, ...]
    #: Sentences on columns that the honest score does without.
    left_out: tuple[str, ...]
    #: Number of groups that the honest folds keep whole; None if no groups were given.
    n_groups: int | None

    @property
    def difference(self) -> float:
        """Careless minus honest score."""
        return self.careless - self.honest.mean

    @property
    def margin(self) -> float:
        """Half of the width of the honest score's interval, 0 if the score is equal on all outer folds."""
        return 0.0 if self.honest.upper is None else self.honest.upper - self.honest.mean

    @property
    def exceeds_interval(self) -> bool:
        """Whether the careless score lies above the honest score's interval."""
        return self.difference > self.margin + 1e-12

    @property
    def chance(self) -> float | None:
        """Score of the best guess that reads no feature, on the same outer folds; None if it is not known."""
        return self.study.references["chance"].mean if "chance" in self.study.references else None

    def sentences(self) -> list[str]:
        """Say what the difference is, whether it is more than chance gives, and what the scores cannot know."""
        n, kind = self.study.stored.study.n_samples, "higher" if self.difference >= 0 else "lower"
        scores = "scores" if self.n_careless > 1 else "score"
        verdict = (
            "more than half of the width of the honest 95 % interval"
            if self.exceeds_interval
            else "no more than half of the width of the honest 95 % interval"
        )
        found = [
            f"The careless {self.metric} is {self.careless:.3f}: preprocessing and selection fitted to all {n} "
            f"samples, the best of {self.n_careless} {scores} in plain cross-validation. "
            f"The honest one, by nested cross-validation, is {self.honest.mean:.3f}. The careless score is "
            f"{abs(self.difference):.3f} {kind}, {verdict} over {len(self.study.outer)} outer folds "
            f"({self.margin:.3f})"
            + (
                ": it is not what the method will score on new samples."
                if self.exceeds_interval
                else ": on these data the careless protocol does no harm that the folds could show."
            )
        ]
        if self.honest_permuted:
            chance = "" if self.chance is None else f"; chance is {self.chance:.3f}"
            careless, honest = map(_mean_and_range, (self.careless_permuted, self.honest_permuted))
            found.append(
                f"On permuted labels, of which nothing can be learnt, the careless score is {careless} and the honest "
                f"one {honest}, mean and range of {len(self.honest_permuted)} permutations{chance}."
            )
        found += self.left_out
        if self.n_groups is None:
            found.append(
                "No groups were given: if samples belong together, as copies or those of one subject do, both scores "
                "are too high; give groups."
            )
        return found

    def frame(self) -> pd.DataFrame:
        """Return the scores as a table: a row for each protocol."""
        import pandas as pd  # noqa: PLC0415

        rows = []
        for name, score, permuted in (
            ("careless", self.careless, self.careless_permuted),
            ("honest", self.honest.mean, self.honest_permuted),
        ):
            shown = self.study.interval
            ends = (shown.lower, shown.upper) if name == "honest" else (None, None)
            values = np.array(permuted) if permuted else np.array([np.nan])
            rows.append(
                [name, score, *ends, values.mean(), values.min(), values.max(), len(permuted)]
            )
        columns = [
            "protocol",
            f"{self.metric}",
            "lower",
            "upper",
            "permuted_mean",
            "permuted_lowest",
        ]
        columns += ["permuted_highest", "n_permutations"]
        return pd.DataFrame(rows, columns=columns).astype({"lower": "float64", "upper": "float64"})

    def plot(self, ax: Any = None) -> Any:
        """Draw the scores on matplotlib's axes, by default new ones, and return the axes."""
        return self.display().plot(ax)

    def display(self) -> AuditScores:
        """Return the picture, whose `headed_figure` has title and caption."""
        from raysel.results.displays.audit import AuditScores  # noqa: PLC0415 - loads matplotlib

        ends = self.study.interval.lower, self.study.interval.upper
        return AuditScores(
            texts.spaced(self.metric),
            self.careless,
            self.honest.mean,
            None if ends[0] is None or ends[1] is None else (ends[0], ends[1]),
            self.study.test_scores,
            self.careless_permuted,
            self.honest_permuted,
            self.chance,
            self.sentences()[0],
        )

    def __repr__(self) -> str:
        return "\n".join(
            [self.frame().to_string(index=False, float_format="%.3f", na_rep=""), *self.sentences()]
        )

    def _repr_html_(self) -> str:
        table = self.frame().round(3).to_html(index=False, na_rep="")
        return table + "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences())


def _mean_and_range(values: tuple[float, ...]) -> str:
    return f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"
