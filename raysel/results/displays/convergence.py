"""Figure of the objective of each configuration by iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.printing import short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.records import FINAL
from raysel.results.displays import drawing
from raysel.results.displays.display import StudyDisplay
from raysel.results.facts import Facts

_MOST_CURVES, _MOST_POINTS = 120, 150
_LONGEST = 48  # letters of a configuration


@dataclass(frozen=True, eq=False)
class ObjectiveCurves(StudyDisplay):
    """Mean objective of each configuration over the inner fits of the outer folds, by iteration."""

    key = "objective"
    table = "objective"
    section = "convergence"
    whole_table = "traces.parquet"
    exported = False
    what = "objective by iteration"
    lacks = "recorded no objective."
    size = (drawing.WIDTH, 3.1)

    #: Objective by iteration of each configuration, by the id of its trial.
    curves: Mapping[str, Sequence[float]]
    #: Name of each configuration, by the id of its trial.
    configurations: Mapping[str, str]
    #: Id of the final model's trial; None if there is none.
    model: str | None = None

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the objective of a study's configurations, finished or not, if there is one."""
        records = sorted(facts.records.trials, key=lambda record: record.id)
        curves = {record.id: record.objective_curve() for record in records}
        curves = {id_: curve for id_, curve in curves.items() if curve}
        if not curves:
            return None
        final = facts.records.stored.refits.get(FINAL)
        names = {record.id: record.name for record in records}
        return cls(facts.name, curves, names, final.trial if final else None)

    @property
    def in_report(self) -> bool:
        return max(map(len, self.curves.values())) > 1

    @property
    def _shown(self) -> list[str]:
        """Ids of the configurations that are drawn, the final model's last."""
        ids = list(self.curves)
        shown = ids[:: -(-len(ids) // _MOST_CURVES)]
        if self.model is None or self.model not in self.curves:
            return shown
        return [*(id_ for id_ in shown if id_ != self.model), self.model]

    @property
    def caption(self) -> str:
        shown, n = len(self._shown), len(self.curves)
        some = f"{n}"
        if shown < n:
            some = f"{shown} of {n}"
        end = "recorded at the end of the fits only"
        if self.in_report:
            end = "a fit that has ended keeps its last value"
        return (
            f"Objective of {some} configurations by iteration, mean over the inner fits of the"
            f" outer folds; {end}."
        )

    def frame(self) -> pd.DataFrame:
        rows: list[tuple[str, int, float]] = []
        for id_ in reversed(self._shown):
            name = self.configurations[id_]
            rows += [(name, i, value) for i, value in enumerate(self.curves[id_], start=1)]
        return pd.DataFrame(rows, columns=["configuration", "iteration", "objective"])

    def draw(self, ax: Axes) -> None:
        for id_ in self._shown:
            curve = self.curves[id_]
            look: Any = {"color": "0.6", "linewidth": 0.8}
            if id_ == self.model:
                label = f"final model's configuration: {short(self.configurations[id_], _LONGEST)}"
                look = {"color": drawing.OUTLINE, "linewidth": 2.0, "label": label}
            ax.plot(*_thinned(curve), marker="." if len(curve) == 1 else "", **look)
        values = np.concatenate([np.asarray(self.curves[id_]) for id_ in self._shown])
        finite = values[np.isfinite(values)]
        if len(finite) and finite.min() > 0 and finite.max() > 100 * finite.min():
            drawing.scale_by_logarithm(ax, "y", finite)
        ax.set_xlim(0.5, max(map(len, self.curves.values())) + 0.5)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("iteration")
        ax.set_ylabel("objective")
        drawing.clean_axes(ax, "y")
        drawing.add_legend(ax)


def _thinned(curve: Sequence[float]) -> tuple[IntArray, FloatArray]:
    """Iterations and values of at most 150 points of a curve, denser at its start."""
    n = len(curve)
    places = np.arange(1, n + 1)
    if n > _MOST_POINTS:
        places = np.unique(np.geomspace(1, n, _MOST_POINTS).round().astype(np.int64))
    return places, np.asarray(curve, dtype=np.float64)[places - 1]
