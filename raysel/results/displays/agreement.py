"""Figures of the agreement of the outer folds: ranks of the best features, and stability over their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.printing import short, short_middle
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.agreement import CONSENSUS, source_ranking
from raysel.results.displays.display import BLUE, OUTLINE, StudyDisplay, add_legend, clean_axes, name_rows, set_ticks
from raysel.results.numbers import StudyNumbers

_MOST = 20
_MOST_WRITTEN = 12  # folds up to which ranks are written into the cells


@dataclass(frozen=True, eq=False)
class FoldRanks(StudyDisplay):
    """Rank of the best features in the winner of each outer fold, as a table of coloured cells."""

    key = "ranks"
    section = "folds"
    table = "fold-ranks"
    exported = False
    whole_table = "ranking/ranking.csv and folds/"

    name: str
    #: Names of all features, in the order of the table.
    features: Sequence[str]
    #: Ranks in each outer fold, NaN where a feature has no score, in the same order; shape (n_folds, n_features).
    ranks: FloatArray
    fold_names: Sequence[str]
    #: Number of best features that each fold selects.
    n_selected: int
    n_shown: int
    #: Source of the order.
    source: str

    @classmethod
    def of(cls, ranking: FeatureRanking, order: IntArray, n_shown: int, source: str) -> Self:
        """Show the fold ranks of a ranking, in an order of its features of which the first are drawn."""
        ranks = np.where(ranking.fold_ranks <= ranking.fold_n_scored[:, None], ranking.fold_ranks, np.nan)
        names = [ranking.feature_names[i] for i in order]
        n = ranking.n_selected
        return cls("", names, ranks[:, order], ranking.fold_names, n, min(n_shown, _MOST), source)

    @classmethod
    def from_result(cls, result: StudyNumbers, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the fold ranks of the final model's best features, or of the consensus if there is no such model."""
        if not result.ranks_features:
            return None
        if result.is_ranked:
            final = source_ranking(result)
            found = cls.of(final, final.order, final.n_scored, f"of {final.source}")
        else:
            consensus = source_ranking(result, by=CONSENSUS)
            order = np.argsort(consensus.consensus_rank, kind="stable")
            found = cls.of(consensus, order, result.default_top, "by mean rank over the outer folds")
        return found if found.n_shown else None

    @property
    def title(self) -> str:
        return "rank in each outer fold"

    @property
    def _shown(self) -> FloatArray:
        """Ranks that are drawn, shape (n_shown, n_folds)."""
        return self.ranks[:, : self.n_shown].T

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return 5.2, 0.21 * max(self.n_shown, 3) + 0.8

    @property
    def on_white(self) -> bool:  # type: ignore[override]
        return True

    @property
    def caption(self) -> str:
        dash = "; a dash: no score" if np.isnan(self._shown).any() else ""
        return (
            f"Rank of the {self.n_shown} best features {self.source} in the winner of each outer fold; grey: not among "
            f"that fold's best {self.n_selected}{dash}."
        )

    def frame(self) -> pd.DataFrame:
        table = pd.DataFrame(self.ranks.T, columns=list(self.fold_names))
        table.insert(0, "feature", list(self.features))
        return table

    def draw(self, ax: Axes) -> None:
        ranks, n, n_folds = self._shown, self.n_selected, len(self.fold_names)
        inside = np.ma.array(ranks, mask=np.isnan(ranks) | (n < ranks))
        colours = colormaps["Blues_r"].with_extremes(bad="0.93")
        norm = Normalize(1, 1.45 * n + 1)  # the palest blue remains distinct from grey
        x, y = np.arange(n_folds + 1) - 0.5, np.arange(self.n_shown + 1) - 0.5
        ax.pcolormesh(x, y, inside, cmap=colours, norm=norm, edgecolors="white", linewidth=1.0)
        for (row, fold), rank in np.ndenumerate(ranks) if n_folds <= _MOST_WRITTEN else ():
            text = "\N{EN DASH}" if np.isnan(rank) else f"{rank:.0f}"
            colour = "white" if rank <= 0.6 * n else "black"
            ax.text(fold, row, text, ha="center", va="center", fontsize=7.5, color=colour)
        name_rows(ax, [short(name, 26) for name in self.features[: self.n_shown]])
        ax.set_ylim(self.n_shown - 0.5, -0.5)
        step = max(1, n_folds // 10)
        names = [short_middle(name, 16) for name in self.fold_names[::step]]
        ax.set_xticks(np.arange(0, n_folds, step), names, rotation=90 if n_folds > 5 else 0, parse_math=False)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.xaxis.tick_top()


@dataclass(frozen=True, eq=False)
class StabilityCurve(StudyDisplay):
    """Stability of the outer folds' best features over their number, beside that of permuted labels."""

    key = "stability"
    table = "stability"
    section = "stability"
    lacks = "has no stability: there is one outer fold, or every fold selects all or no features."
    size = (5.4, 3.3)

    name: str
    #: Columns ``n_features``, ``stability``, ``noise``, ``noise_lowest``, ``noise_highest``, ``undefined_because``.
    curve: pd.DataFrame
    n_folds: int
    #: Number of features of the final model; None if there is none.
    chosen: int | None = None

    @classmethod
    def from_result(cls, result: StudyNumbers, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the stability of a study that ranks features, if it is defined for a number of features."""
        if not result.ranks_features or not (curve := result.stability_curve())["stability"].notna().any():
            return None
        chosen = result.default_top if result.has_final else None
        return cls(result.name, curve, len(result.outer), chosen)

    @property
    def title(self) -> str:
        return f"{short(self.name, 36)}: stability over the number of features"

    @property
    def _has_noise(self) -> bool:
        return bool(self.curve["noise"].notna().any())

    @property
    def caption(self) -> str:
        parts = [
            f"Stability of the best N features over {self.n_folds} overlapping outer folds by N (1: the same ones).",
            "Grey: mean and range of the F-test on the same folds with permuted labels, the level of noise."
            if self._has_noise
            else "The level of noise was not recorded.",
            f"Dashed: the {self.chosen} best of the final model." if self.chosen else "",
        ]
        return " ".join(filter(None, parts))

    def frame(self) -> pd.DataFrame:
        return self.curve

    def draw(self, ax: Axes) -> None:
        numbers, values = self.curve["n_features"].tolist(), self.curve["stability"].to_numpy(dtype=float)
        x = np.array(numbers, dtype=float)
        if x[-1] > 12 * x[0]:
            ax.set_xscale("log")
        if self._has_noise:
            mean, lowest, highest = (self.curve[n] for n in ("noise", "noise_lowest", "noise_highest"))
            marker = "." if len(x) == 1 else ""
            ax.plot(x, mean, color="0.45", linestyle=":", marker=marker, label="permuted labels: mean, range")
            ax.fill_between(x, lowest, highest, facecolor="0.85", edgecolor="0.6", linewidth=6 if len(x) == 1 else 0.8)
        ax.plot(x, values, color=BLUE, marker="o", markersize=5, linewidth=1.9, label="stability", zorder=4)
        if self.chosen:
            label = f"top {self.chosen} of the final model"
            ax.axvline(self.chosen, color=OUTLINE, linestyle="--", linewidth=1.2, label=label)
        clean_axes(ax, "y")
        # The chosen number is labelled rather than those beside it.
        set_ticks(ax, [n for n in numbers if self.chosen in (None, n) or not 0.85 < n / self.chosen < 1.18])
        ax.set_ylim(max(float(np.nanmin(values, initial=0.0)) - 0.25, min(ax.get_ylim()[0], -0.05)), 1.05)
        ax.set_xlabel("N, number of best features that count as selected")
        ax.set_ylabel("Nogueira's stability")
        add_legend(ax)
