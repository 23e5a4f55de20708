"""Map of the selection probabilities of images and volumes, with the claimed cells outlined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from raysel.core.printing import short
from raysel.data.layouts import Layout
from raysel.evaluation.feature_ranking import SELECTION_PROBABILITY, FeatureRanking
from raysel.results.displays import drawing
from raysel.results.displays.display import Cell, StudyDisplay
from raysel.results.displays.maps import (
    MOST_NAMED,
    Plane,
    make_plane,
    outline,
    score_colours,
)
from raysel.results.facts import Facts
from raysel.results.stability import StabilitySelectionResult


@dataclass(frozen=True, eq=False)
class ProbabilityMap(StudyDisplay):
    """Share of the halves of a stability selection that select each cell."""

    key = "selection-probability"
    section = "claims"
    table = "probability"
    whole_table = "stability/selection.csv"
    on_white = True
    what = "selection probability"

    selection: StabilitySelectionResult
    feature_names: Sequence[str]
    layout: Layout
    plane: Plane

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the stability selection of a study of images or volumes, if it has been run."""
        selection, layout = facts.stability_selection, facts.records.layout
        if selection is None:
            return None
        plane = make_plane(layout, selection.probability)
        if plane is None:
            return None
        return cls(
            facts.name,
            selection=selection,
            feature_names=facts.records.feature_names,
            layout=layout,
            plane=plane,
        )

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return self.plane.size

    @property
    def caption(self) -> str:
        found = self.selection
        sentences = [
            (
                f"Share of the {2 * found.n_pairs} halves of the {found.unit} that select each"
                f" feature among their best {found.top}."
            ),
            f"Outlined: claimed, with a share of at least {found.threshold:.3g}.",
            "Cells without colour are selected by none.",
            self.plane.about,
        ]
        return " ".join(filter(None, sentences))

    def frame(self) -> pd.DataFrame:
        found = self.selection
        columns = {SELECTION_PROBABILITY: found.probability, "claimed": found.selected}
        table = pd.DataFrame({**self.layout.coordinates(), **columns})
        return table.head(len(table) - self.layout.n_beside)  # without confounds

    def cells(self) -> Sequence[Cell]:
        probability = self.selection.probability
        rows, columns = np.nonzero(self.plane.inside)
        features = self.plane.features[rows, columns]
        order = np.argsort(-probability[features], kind="stable")[:MOST_NAMED]
        return [Cell(columns[i], rows[i], self._describe(features[i])) for i in order]

    def _describe(self, feature: int) -> str:
        """Name a feature with its probability."""
        name = short(self.feature_names[feature], 60)
        return f"{name}: selected by {self.selection.probability[feature]:.0%} of the halves"

    def draw(self, ax: Axes) -> None:
        plane, probability = self.plane, self.selection.probability
        plane.label(ax)
        plane.fill(ax)
        shown = np.ma.masked_equal(plane.place_features(probability), 0)
        image = plane.draw(ax, shown, score_colours(clear=False), norm=Normalize(0, 1))
        outline(ax, plane.place_features(self.selection.selected).filled(False), 1.2)
        drawing.add_colour_bar(ax, image, self.what)
