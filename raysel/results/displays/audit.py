"""Figure of an audit: careless and honest score, on true and on permuted labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from raysel.results.displays import drawing
from raysel.results.displays.display import Display

_ROWS = ("careless", "honest", "careless, permuted labels", "honest, permuted labels")


@dataclass(frozen=True, eq=False)
class AuditScores(Display):
    """Careless and honest score, each on true and on permuted labels, as one row each."""

    key = "audit"
    size = (5.6, 2.4)

    #: Name of the metric as text.
    metric: str
    #: Mean score of each row.
    means: Sequence[float]
    #: Ends of the interval of the honest score, if it has one.
    interval: tuple[float, float] | None
    #: Honest test score of each outer fold.
    folds: Sequence[float]
    careless_permuted: Sequence[float]
    honest_permuted: Sequence[float]
    chance: float | None
    #: Sentence on the difference.
    sentence: str

    @property
    def title(self) -> str:
        return f"Careless and honest {self.metric}"

    @property
    def caption(self) -> str:
        return (
            f"{self.sentence} Thin marks: outer folds, and single permutations; thick ones their"
            " means; bar: 95 % interval of the honest score; dotted line: chance."
        )

    def frame(self) -> pd.DataFrame:
        values = [self.means[:1], self.folds, self.careless_permuted, self.honest_permuted]
        table = {
            "scores": _ROWS,
            "mean": self.means,
            "lowest": [min(v, default=np.nan) for v in values],
            "highest": [max(v, default=np.nan) for v in values],
            "n": [len(v) for v in values],
        }
        return pd.DataFrame(table)

    def draw(self, ax: Axes) -> None:
        colours = (drawing.OUTLINE, drawing.BLUE, drawing.OUTLINE, drawing.BLUE)
        singles: list[Sequence[float]] = [(), self.folds, self.careless_permuted]
        singles.append(self.honest_permuted)
        rows = zip(colours, "ooDD", singles, self.means, strict=True)
        for row, (colour, marker, values, mean) in enumerate(rows):
            ax.plot(values, [row] * len(values), "|", color=colour, markersize=9, alpha=0.6)
            ax.plot([mean], [row], marker, color=colour, markersize=7)
        if self.interval is not None:
            ax.hlines(1, *self.interval, color=drawing.BLUE, linewidth=2)
        if self.chance is not None:
            ax.axvline(self.chance, color="0.45", linestyle=":", linewidth=1.2)
        drawing.name_rows(ax, _ROWS)
        drawing.clean_axes(ax, "x")
        ax.set_xlabel(self.metric)
