"""Figure of the coefficients of a linear method's best features by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from raysel.core.arrays import FloatArray
from raysel.core.printing import short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.agreement import source_ranking
from raysel.results.displays import drawing
from raysel.results.displays.display import StudyDisplay, labelled_table
from raysel.results.facts import Facts

_MOST, _MOST_IN_REPORT = 30, 24  # features of an exported figure and of that in the report
_MOST_CLASSES = 24  # more cannot be read in the report
_MOST_WRITTEN = 60  # classes up to which signs are written into the cells
_LONGEST = 26  # letters of a feature
#: Orange for negative and blue for positive, distinct with colour blindness; signs tell them apart
#: in grey.
_COLOURS = colormaps["PuOr"]


@dataclass(frozen=True, eq=False)
class Profile(StudyDisplay):
    """Coefficients of the final model's best features by class."""

    key = "profile"
    section = "features"
    table = "coefficients"
    what = "sign of the best features by class"
    on_white = True
    lacks = (
        "has no final model with a coefficient for each feature; plot_profile needs a linear"
        " method."
    )

    #: Coefficients of the scaled features; shape (n_classes, n_shown), one row for two classes.
    coefficients: FloatArray
    features: Sequence[str]
    classes: Sequence[str]
    n_features: int
    #: Largest number of features that are drawn; None: all.
    most: int | None = None
    of_quantities: bool = False

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the coefficients of a study's final model, if it is linear in the features."""
        if (found := facts.coefficients) is None:
            return None
        shown = (ranking or source_ranking(facts.records)).top()
        if not len(shown):
            return None
        return cls(
            facts.name,
            coefficients=found.values[:, shown],
            features=[facts.records.feature_names[i] for i in shown],
            classes=found.classes,
            n_features=len(facts.records.feature_names),
            of_quantities=found.of_quantities,
        )

    @property
    def in_report(self) -> bool:
        return len(self.coefficients) <= _MOST_CLASSES

    def for_report(self) -> Self:
        return replace(self, most=_MOST_IN_REPORT)

    def headed_figure(self) -> Figure:
        """Return the figure of the first features below its title."""
        return super(Profile, replace(self, most=_MOST)).headed_figure()

    @property
    def _shown(self) -> Sequence[str]:
        return self.features[: self.most]

    @property
    def caption(self) -> str:
        shown = (
            f"Coefficients of the {len(self._shown)} best features, of {self.n_features} in all, in"
            " the final model (of the scaled features)"
        )
        if self.of_quantities:
            return f"{shown}."
        return f"{shown} by class: + favours it, \u2212 is against it."

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        width = float(np.clip(0.2 * len(self.coefficients) + 2.6, 5.2, 12.0))
        return width, 0.24 * max(len(self._shown), 2) + 1.2

    def frame(self) -> pd.DataFrame:
        n = len(self.coefficients)
        heads = list(self.classes)
        if len(heads) != n:
            heads = ["coefficient"] * n
        return labelled_table("feature", self.features, self.coefficients.T, heads)

    def draw(self, ax: Axes) -> None:
        values = self.coefficients[:, : self.most].T
        if len(self.coefficients) > 1:
            self._draw_cells(ax, values)
            drawing.name_rows(ax, self._shown, _LONGEST, margin=0)
            return
        drawing.name_rows(ax, self._shown, _LONGEST)
        colours = np.where(values[:, 0] < 0, drawing.OUTLINE, drawing.BLUE)
        edge: Any = {"edgecolor": "0.3", "linewidth": 0.5}
        ax.barh(range(len(values)), values[:, 0], color=colours, height=0.7, **edge)
        ax.axvline(0, color="0", linewidth=0.8)
        drawing.clean_axes(ax, "x")
        if self.of_quantities:
            ax.set_xlabel("coefficient")
            return
        other, one = ("the others", "the class")
        if len(self.classes) == 2:
            other, one = (short(name, 16) for name in self.classes)
        ax.set_xlabel(f"coefficient\nabove 0 for {one}\nbelow 0 for {other}", parse_math=False)

    def _draw_cells(self, ax: Axes, values: FloatArray) -> None:
        limit = float(np.abs(values).max(initial=0.0)) or 1.0
        settings: Any = {"aspect": "auto", "interpolation": "nearest"}
        image = ax.imshow(values, cmap=_COLOURS, vmin=-limit, vmax=limit, **settings)
        drawing.add_colour_bar(ax, image, "coefficient")
        names = [short(c, 22) for c in self.classes]
        few = len(names) <= 30
        size, of_labels = (9, 8.5) if few else (7, 7)
        if len(names) <= _MOST_WRITTEN:
            shown = np.argwhere(np.abs(values) > 0.02 * limit).tolist()
            signs = {(i, j): "+" if values[i, j] > 0 else "\u2212" for i, j in shown}
            drawing.write_cells(ax, signs, np.abs(values) > 0.6 * limit, size)
        step = -(-len(names) // _MOST_WRITTEN)
        long = max(map(len, names), default=0) > 2 or not few
        places, rotation = range(0, len(names), step), 90 if long else 0
        ax.set_xticks(places, names[::step], rotation=rotation, parse_math=False)
        ax.tick_params(axis="x", labelsize=of_labels)
        ax.set_xlabel("class (+ in favour of it, \u2212 against it)")
