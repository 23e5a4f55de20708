"""Figure of the ranks of the best features in each outer fold."""

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
from raysel.results.displays.display import StudyDisplay, name_rows
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
