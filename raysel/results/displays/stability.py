"""Figure of the stability of the selected features over their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from raysel.core.printing import short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays.display import BLUE, OUTLINE, StudyDisplay, add_legend, clean_axes, set_ticks
from raysel.results.numbers import StudyNumbers


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
