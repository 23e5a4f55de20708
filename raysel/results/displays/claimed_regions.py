"""Claimed regions of images and volumes, outlined on the mean sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from raysel.core.arrays import FloatArray
from raysel.core.printing import short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays import drawing
from raysel.results.displays.display import Cell, StudyDisplay
from raysel.results.displays.maps import DARKEST, MOST_NAMED, Plane, make_plane, outline
from raysel.results.displays.ranking import read_background_image
from raysel.results.facts import Facts
from raysel.results.region_claims import RegionClaims

#: Regions that are numbered in the figure.
_MOST_NUMBERED = 30


@dataclass(frozen=True, eq=False)
class ClaimedRegions(StudyDisplay):
    """Outlines and numbers of the claimed regions over an image."""

    key = "claimed-regions"
    section = "claims"
    table = "regions"
    whole_table = "claims/claims.csv"
    on_white = True
    what = "claimed regions"
    lacks = "claims no regions; raysel claims tests those of images and volumes."

    claims: RegionClaims
    plane: Plane
    #: Value of each cell of a sample's array, shape (n_cells,); None without an image.
    background: FloatArray | None
    #: What the background is.
    image: str

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the regions that a study of images or volumes claims, if there are any."""
        claims, layout = facts.claims, facts.records.layout
        if not isinstance(claims, RegionClaims) or not claims.regions:
            return None
        # Of many slices those through the peaks are shown, those of the smallest p values first.
        peaks = np.zeros(layout.n_features)
        peaks[[region.peak for region in claims.regions]] = 1 / np.arange(
            1, len(claims.regions) + 1
        )
        plane = make_plane(layout, peaks)
        if plane is None:
            return None
        background, image = read_background_image(facts)
        return cls(facts.name, claims, plane, background, image)

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return self.plane.size

    @property
    def caption(self) -> str:
        claims = self.claims
        sentences = [
            f"Outlined: {claims.number()}, claimed at a {claims.rate_name} of {claims.level:g}.",
            "The numbers are those of the table of regions.",
        ]
        if self.background is not None:
            sentences.append(f"In grey: {self.image}.")
        about = self.plane.about
        if about and claims.layout.affine is not None:
            about = "Of the slices those through the peaks are shown."
        return " ".join(filter(None, [*sentences, about]))

    def frame(self) -> pd.DataFrame:
        return self.claims.region_table().to_pandas()

    def cells(self) -> Sequence[Cell]:
        rows, columns = np.nonzero(self.plane.inside)
        features = self.plane.features[rows, columns]
        order = np.argsort(self.claims.adjusted[features], kind="stable")[:MOST_NAMED]
        return [Cell(columns[i], rows[i], self._describe(features[i])) for i in order]

    def _describe(self, feature: int) -> str:
        """Name a feature with its p value and region."""
        claims = self.claims
        name = short(claims.feature_names[feature], 60)
        described = f"{name}: adjusted p {claims.adjusted[feature]:.2g}"
        if number := claims.region[feature]:
            described += f", region {number}"
        return described

    def draw(self, ax: Axes) -> None:
        plane = self.plane
        plane.label(ax)
        if self.background is None:
            plane.fill(ax)
        else:
            greys = ListedColormap(colormaps["gray"](np.linspace(DARKEST, 1.0, 256)))
            plane.draw(ax, plane.place_cells(self.background), greys)
        outline(ax, plane.place_features(self.claims.region > 0).filled(False), 1.4)
        self._number(ax)

    def _number(self, ax: Axes) -> None:
        """Write the number of each region at its peak, where the peak is shown."""
        look: Any = {
            "ha": "center",
            "va": "center",
            "fontsize": drawing.SMALL,
            "fontweight": "bold",
        }
        for number, region in enumerate(self.claims.regions[:_MOST_NUMBERED], start=1):
            for row, column in np.argwhere(self.plane.features == region.peak).tolist():
                ax.text(column, row, str(number), color=drawing.OUTLINE, **look)
