"""Figures of the data before scaling: mean images, and ranges of modalities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from raysel.core.arrays import FloatArray
from raysel.core.printing import short
from raysel.data.layouts import Layout
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays.display import (
    BLUE,
    OUTLINE,
    Display,
    DividedDisplay,
    StudyDisplay,
    add_colour_bar,
    add_legend,
    clean_axes,
    name_rows,
)
from raysel.results.displays.maps import label_plane, map_aspect, map_size
from raysel.results.displays.planes import Plane, make_plane
from raysel.results.numbers import StudyNumbers
from raysel.results.preview import Preview
from raysel.study.background import read_image

_MOST_TASKS = 6
_LARGEST = (3.9, 5.2)  # inches of the mean image


@dataclass(frozen=True, eq=False)
class MeanImage(Display):
    """Mean of all samples of a task as an image, before scaling."""

    section = "asked"
    on_white = True

    layout: Layout
    plane: Plane
    #: Mean of each feature, shape (n_features,).
    mean: FloatArray
    what: str
    key: str = "mean"
    table: str = "mean"

    @property
    def title(self) -> str:
        return self.what

    @property
    def caption(self) -> str:
        return f"{self.what}, before scaling.{f' {self.plane.about}.' if self.plane.about else ''}"

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return map_size(self.plane, _LARGEST)

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame({**self.layout.coordinates(), "mean": self.mean})

    def draw(self, ax: Axes) -> None:
        values = self.plane.of_cells(self.layout.arranged(self.mean, outside=np.nan))
        aspect = map_aspect(self.plane, self.size)
        image = ax.imshow(values, cmap="gray", aspect=aspect, interpolation="nearest")
        label_plane(ax, self.plane)
        add_colour_bar(ax, image, "mean value")


@dataclass(frozen=True, eq=False)
class MeanImages(DividedDisplay):
    """Mean images of the tasks whose samples are images or volumes."""

    key = "means"
    section = "asked"
    exported = False

    @classmethod
    def from_result(cls, result: StudyNumbers, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the mean sample that the directory of a study keeps, if its samples are images."""
        mean = read_image(result.directory.mean_sample, len(result.feature_names))
        if mean is None:
            return None
        blocks = [(task, columns, block) for task, (columns, block) in result.layout.blocks().items() if block.is_image]
        means = []
        for i, (task, columns, block) in enumerate(blocks[:_MOST_TASKS]):
            n = result.stored.study.n_samples
            what = f"Mean of the samples of {short(task, 40)}" if task else f"Mean of all {n} samples"
            plane, number = make_plane(block, largest=_LARGEST), f"-{i}" if task else ""
            if plane:
                means.append(MeanImage(block, plane, mean[columns], what, f"mean{number}", f"mean{number}"))
        return cls(result.name, means) if means else None


@dataclass(frozen=True, eq=False)
class ModalityRanges(StudyDisplay):
    """Range of the values of each modality, before scaling."""

    key = "ranges"
    section = "asked"
    table = "ranges"
    exported = False

    #: Name, smallest value, mean and largest value of each modality.
    ranges: Sequence[tuple[str, float, float, float]]
    n_samples: int

    @classmethod
    def from_result(cls, result: StudyNumbers, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the ranges that the directory of a study keeps, if it has modalities."""
        preview = Preview.read(result.directory.preview)
        return cls(preview.ranges, result.stored.study.n_samples) if preview and preview.ranges else None

    @property
    def title(self) -> str:
        return "range of each modality"

    @property
    def caption(self) -> str:
        n = self.n_samples
        return f"Values of each modality over all {n} samples, before scaling: smallest, mean and largest."

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        return 5.2, 0.26 * len(self.ranges) + 0.75

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.ranges, columns=["modality", "smallest", "mean", "largest"])

    def draw(self, ax: Axes) -> None:
        names, *values = zip(*self.ranges, strict=True)
        lows, means, highs = map(np.array, values)
        ax.hlines(range(len(names)), lows, highs, color=BLUE, linewidth=3, label="smallest to largest value")
        ax.plot(means, range(len(names)), "D", color=OUTLINE, markersize=5, label="mean")
        name_rows(ax, names)
        if max(np.abs(lows).max(), np.abs(highs).max()) > 200 * max(1.0, float(np.median(highs - lows))):
            ax.set_xscale("symlog")
            ax.set_xlim(2 * min(lows.min(), 0.0), 2 * max(highs.max(), 0.0))
        ax.set_xlabel("value, before scaling")
        clean_axes(ax, "x")
        add_legend(ax)
