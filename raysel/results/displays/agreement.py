"""Figures of the agreement of the outer folds: their ranks, and stability over the number N."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from raysel.core.arrays import FloatArray
from raysel.core.printing import short_middle
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.records import FINAL
from raysel.results.agreement import CONSENSUS, source_ranking
from raysel.results.displays import drawing
from raysel.results.displays.display import StudyDisplay, labelled_table
from raysel.results.facts import Facts

_MOST = 20
_MOST_WRITTEN = 12  # folds up to which ranks are written into the cells


@dataclass(frozen=True, eq=False)
class RankTable(StudyDisplay):
    """Rank of the best features in the winner of each outer fold, as a table of coloured cells."""

    key = "ranks"
    section = "folds"
    table = "fold-ranks"
    what = "rank in each outer fold"
    exported = False
    on_white = True
    whole_table = "ranking/ranking.csv and folds/"

    #: Names of all features, in the order of the table.
    features: Sequence[str]
    #: Ranks in each outer fold, NaN where a feature has no score, in the same order; shape
    #: (n_folds, n_features).
    ranks: FloatArray
    fold_names: Sequence[str]
    #: Number of best features that each fold selects.
    n_selected: int
    n_shown: int

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the fold ranks of the features that stand first in the consensus."""
        if not facts.records.ranks_features:
            return None
        shown = source_ranking(facts.records, by=FINAL if facts.records.is_ranked else CONSENSUS)
        first = shown.consensus_top(_MOST)
        if not len(first):
            return None
        order = shown.recommended_order
        scored = shown.fold_ranks <= shown.fold_n_scored[:, None]
        return cls(
            facts.name,
            features=[shown.feature_names[i] for i in order],
            ranks=np.where(scored, shown.fold_ranks, np.nan)[:, order],
            fold_names=shown.fold_names,
            n_selected=shown.n_selected,
            n_shown=len(first),
        )

    @property
    def _shown(self) -> FloatArray:
        """Ranks that are drawn, shape (n_shown, n_folds)."""
        return self.ranks[:, : self.n_shown].T

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return drawing.WIDTH, 0.21 * max(self.n_shown, 3) + 0.8

    @property
    def caption(self) -> str:
        caption = (
            f"Rank of the first {self.n_shown} features of the consensus in the winner of each"
            f" outer fold; grey: not among that fold's best {self.n_selected}"
        )
        if np.isnan(self._shown).any():
            caption += "; a dash: no score"
        return f"{caption}."

    def frame(self) -> pd.DataFrame:
        return labelled_table("feature", self.features, self.ranks.T, self.fold_names)

    def draw(self, ax: Axes) -> None:
        ranks, n, n_folds = self._shown, self.n_selected, len(self.fold_names)
        inside = np.ma.array(ranks, mask=np.isnan(ranks) | (n < ranks))
        colours = colormaps["Blues_r"].with_extremes(bad="0.93")
        norm = Normalize(1, 1.45 * n + 1)  # the palest blue remains distinct from grey
        x, y = np.arange(n_folds + 1) - 0.5, np.arange(self.n_shown + 1) - 0.5
        ax.pcolormesh(x, y, inside, cmap=colours, norm=norm, edgecolors="white", linewidth=1.0)
        if n_folds <= _MOST_WRITTEN:
            texts = {at: drawing.cell(rank, ".0f") for at, rank in np.ndenumerate(ranks)}
            drawing.write_cells(ax, texts, ranks <= 0.6 * n, drawing.SMALL - 0.5)
        drawing.name_rows(ax, self.features[: self.n_shown], 26, margin=0)
        step = max(1, n_folds // 10)
        names = [short_middle(name, 16) for name in self.fold_names[::step]]
        rotation = 90 if n_folds > 5 else 0
        ax.set_xticks(np.arange(0, n_folds, step), names, rotation=rotation, parse_math=False)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.xaxis.tick_top()


@dataclass(frozen=True, eq=False)
class StabilityCurve(StudyDisplay):
    """Stability of the folds' best features over their number, beside that of permuted labels."""

    key = "stability"
    table = "stability"
    section = "stability"
    what = "stability over the number of features"
    lacks = "has no stability: there is one outer fold, or every fold selects all or no features."
    size = (drawing.WIDTH, 3.3)

    #: Columns ``n_features``, ``stability``, ``noise``, ``noise_lowest``, ``noise_highest``,
    #: ``undefined_because``.
    curve: pd.DataFrame
    n_folds: int
    #: Number of features of the final model; None if there is none.
    chosen: int | None = None

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the stability of a study that ranks features, if it is defined for some number."""
        if facts.agreement is None:
            return None
        curve = pd.DataFrame(facts.agreement.curve)
        if not curve["stability"].notna().any():
            return None
        chosen = facts.default_top if facts.records.has_final else None
        return cls(facts.name, curve, len(facts.outer), chosen)

    @property
    def _has_noise(self) -> bool:
        return bool(self.curve["noise"].notna().any())

    @property
    def caption(self) -> str:
        noise = "The stability of noise was not recorded."
        if self._has_noise:
            noise = "Grey: mean and range of the F-test on the same folds with permuted labels."
        caption = (
            f"Stability of the best N features over {self.n_folds} overlapping outer folds by N"
            f" (1: the same ones). {noise}"
        )
        if self.chosen:
            caption += f" Dashed: the {self.chosen} best of the final model."
        return caption

    def frame(self) -> pd.DataFrame:
        return self.curve

    def draw(self, ax: Axes) -> None:
        numbers = self.curve["n_features"].tolist()
        values = self.curve["stability"].to_numpy(dtype=float)
        drawing.scale_numbers(ax, numbers)
        if self._has_noise:
            self._draw_noise(ax, numbers)
        look: Any = {"color": drawing.BLUE, "marker": "o", "markersize": 5, "linewidth": 1.9}
        ax.plot(numbers, values, label="stability", zorder=4, **look)
        if self.chosen:
            line: Any = {"color": drawing.OUTLINE, "linestyle": "--", "linewidth": 1.2}
            ax.axvline(self.chosen, label=f"top {self.chosen} of the final model", **line)
        drawing.clean_axes(ax, "y")
        drawing.set_ticks(ax, self._choose_ticks(numbers))
        lowest = float(np.nanmin(values, initial=0.0)) - 0.25
        ax.set_ylim(max(lowest, min(ax.get_ylim()[0], -0.05)), 1.05)
        ax.set_xlabel("N, number of best features that count as selected")
        ax.set_ylabel("Nogueira's stability")
        drawing.add_legend(ax)

    def _draw_noise(self, ax: Axes, numbers: Sequence[int]) -> None:
        """Draw the mean and the range of the stability on permuted labels, also at one number."""
        mean, lowest, highest = (self.curve[n] for n in ("noise", "noise_lowest", "noise_highest"))
        marker, edge = (".", 6.0) if len(numbers) == 1 else ("", 0.8)
        label = "F-test of permuted labels: mean, range"
        ax.plot(numbers, mean, color="0.45", linestyle=":", marker=marker, label=label)
        grey: Any = {"facecolor": "0.85", "edgecolor": "0.6", "linewidth": edge}
        ax.fill_between(numbers, lowest, highest, **grey)

    def _choose_ticks(self, numbers: Sequence[int]) -> list[int]:
        """Leave out numbers beside the chosen one, which is labelled rather than they."""
        if self.chosen is None:
            return list(numbers)
        chosen = self.chosen
        return [n for n in numbers if n == chosen or not 0.85 < n / chosen < 1.18]
