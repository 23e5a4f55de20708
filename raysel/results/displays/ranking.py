"""Figure of a ranking: for each task maps or bars of its features, and bars of modalities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from raysel.base.registry import registered_method
from raysel.core.arrays import FloatArray
from raysel.core.printing import listed, short
from raysel.data.layouts import SEPARATOR, Layout
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results import texts
from raysel.results.agreement import source_ranking
from raysel.results.displays.bars import FoldRankBars, PartCounts, PartScores, ScoreBars
from raysel.results.displays.display import Display, StudyDisplay
from raysel.results.displays.drawing import WIDTH
from raysel.results.displays.maps import ScoreMap, ScoreMaxima, SelectionMap, has_maxima, make_plane
from raysel.results.facts import Facts
from raysel.results.remarks import format_remarks
from raysel.study.background import read_image

_MOST_TASKS = 6
_LARGEST, _SMALL, _FEW_TASKS = (3.9, 5.2), (3.2, 2.4), 2  # inches of maps; of many tasks the second


@dataclass(frozen=True, eq=False)
class RankingFigure(StudyDisplay):
    """Scores of the features in the final model and their selection by the outer folds."""

    key = "ranking"
    section = "features"

    ranking: FeatureRanking
    layout: Layout
    #: Sentences of the caption.
    answer: Sequence[str] = ()
    limits: Sequence[str] = ()
    #: Value of each cell of a sample's array, below maps, of all tasks one after the other; None
    #: without an image.
    background: FloatArray | None = None
    #: What the background is.
    image: str = ""
    #: Stability over pairs of halves, and what it is over; None if no stability selection has this
    #: top.
    halves: tuple[str, str] | None = None

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show the ranking of a study, by default that of its final model."""
        if ranking is None and not facts.records.is_ranked:
            return None
        ranking = ranking or source_ranking(facts.records)
        answer = [texts.headline(facts), texts.references_line(facts)]
        if facts.by_task:
            answer.append(
                f"test {texts.spaced(facts.metric)} by task: {texts.format_each(facts.by_task)}"
            )
        answer.append(f"the score is the {score_meaning(facts.records.config)}")
        sentences = [f"{texts.capitalized(line)}." for line in answer if line]
        limits = format_remarks([*facts.actions, *facts.find_limitations(ranking.n_selected)])
        background, image = read_background_image(facts)
        return cls(
            facts.name,
            ranking=ranking,
            layout=facts.records.layout,
            answer=sentences,
            limits=limits,
            background=background,
            image=image,
            halves=_describe_halves(ranking, facts),
        )

    @property
    def _stability(self) -> tuple[str, str]:
        """Stability in words, over pairs of halves where they have run, and what it is over."""
        over = f"{self.ranking.n_folds} overlapping outer folds"
        return self.halves or (self.ranking.stability_in_words, over)

    @property
    def what(self) -> str:  # type: ignore[override]
        return f"top {self.ranking.n_selected} of {self.ranking.n_candidates} features"

    @property
    def caption(self) -> str:
        ranking = self.ranking
        folds = texts.number_range(ranking.fold_n_scored.tolist(), " to ")
        chosen = ""
        if ranking.chosen_by:
            chosen = f"; the top {ranking.n_selected} are {ranking.chosen_by}"
        stability, over = self._stability
        sentences = [
            *self.answer,
            f"Over {over}: {stability}.",
            (
                f"Features with a score: {ranking.n_scored} in {ranking.source}, {folds} in the"
                f" outer folds{chosen}."
            ),
        ]
        maps = [panel for panel in self.panels if isinstance(panel, ScoreMap)]
        if maps:
            marked = f"Outlined: the best features of {ranking.source}"
            if self.background is not None:
                marked += f", in grey: {self.image}"
            if ranking.constant.any():
                marked += "; hatched: constant"
            sentences.append(f"{marked}.")
        abouts = [panel.plane.about for panel in maps]
        sentences += [about for about in dict.fromkeys(abouts) if about]
        return " ".join(sentences)

    @property
    def remarks(self) -> Sequence[str]:
        tasks = list(self.layout.task_names)
        if len(tasks) <= _MOST_TASKS:
            return self.limits
        names = [short(name, 24) for name in tasks[_MOST_TASKS:]]
        left_out = (
            f"{_MOST_TASKS} of {len(tasks)} tasks are shown; ranking.csv has all. Left out: "
            f"{listed(names, 8, ' and {n_more} others')}."
        )
        return [*self.limits, left_out]

    @cached_property
    def panels(self) -> Sequence[Display]:
        """Maps or bars of each task, and bars of the modalities."""
        panels: list[Display] = []
        blocks = list(self.layout.blocks().items())
        for i, (task, (columns, block)) in enumerate(blocks[:_MOST_TASKS]):
            panels += self._make_panels(task, columns, block, f"-{i}" if task else "")
        if self.layout.is_multimodal:
            panels += [PartScores(self.ranking), PartCounts(self.ranking)]
        return panels

    def _make_panels(
        self, task: str, columns: slice, block: Layout, number: str
    ) -> Iterator[Display]:
        ranking = self.ranking
        if task:
            ranking = self._restrict_to(task, columns)
        largest = _LARGEST
        if len(self.layout.blocks()) > _FEW_TASKS:
            largest = _SMALL
        if plane := make_plane(block, ranking.usable_scores, largest):
            image = self.background
            if image is not None and task:
                image = image[columns]
            given = (ranking, block, plane, image, self.image, task)
            yield ScoreMap(*given, f"score-map{number}", f"map{number}")
            yield SelectionMap(*given, f"selection-map{number}", "")
        else:
            bars = ScoreBars(ranking, task, f"bars{number}", f"bars{number}")
            if task:
                bars = bars.for_report()
            yield bars
            if ranking.n_scored:
                yield FoldRankBars(ranking, task, f"fold-ranks{number}", most=bars.most)
        if has_maxima(block):
            yield ScoreMaxima(ranking, block, task, f"score-maxima{number}")

    def _restrict_to(self, task: str, columns: slice) -> FeatureRanking:
        """Rank a task's features among themselves; its share of all selected ones counts."""
        widths = {name: part.stop - part.start for name, part in self.layout.slices().items()}
        n = divide(self.ranking.n_selected, widths)[task]
        ranking = self.ranking.restrict_to(np.arange(columns.start, columns.stop), n)
        names = tuple(name.removeprefix(f"{task}{SEPARATOR}") for name in ranking.feature_names)
        return replace(ranking, feature_names=names)

    @property
    def _first(self) -> Display:
        """Panel that is drawn on single axes."""
        if self.layout.is_multitask:
            return ScoreBars(self.ranking).for_report()
        return self.panels[0].for_report()

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        width, height = self._first.size
        return max(width, WIDTH), height + 0.4

    def frame(self) -> pd.DataFrame:
        return self.ranking.to_frame()

    def draw(self, ax: Axes) -> None:
        self._first.draw(ax)
        ranking = self.ranking
        top = f"top {ranking.n_selected} of {ranking.n_candidates}"
        if ranking.chosen_by:
            top += f" ({ranking.chosen_by})"
        ax.set_title(f"{top}\n{self._stability[0]}")


def _describe_halves(ranking: FeatureRanking, facts: Facts) -> tuple[str, str] | None:
    if facts.agreement is None:
        return None
    halves = facts.agreement.halves
    if halves is None or halves.top != ranking.n_selected:
        return None
    return f"stability {halves.stability:.2f}", f"{halves.n_pairs} pairs of disjoint halves"


def divide(n_selected: int, widths: Mapping[str, int]) -> dict[str, int]:
    """Divide a number of features among tasks by their widths, by largest remainders."""
    exact = {name: n_selected * width / sum(widths.values()) for name, width in widths.items()}
    whole = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(exact, key=lambda name: whole[name] - exact[name])
    for name in by_remainder[: n_selected - sum(whole.values())]:
        whole[name] += 1
    return {name: max(1, share) for name, share in whole.items()}


def read_background_image(facts: Facts) -> tuple[FloatArray | None, str]:
    """Return the image that is shown below the maps of a study, and what it is."""
    if facts.records.in_memory:
        return None, ""
    layout, directory = facts.records.layout, facts.records.directory
    n_cells = int(np.prod(layout.shape))
    chosen = read_image(directory.background, n_cells)
    if chosen is not None:
        file = facts.records.config["dataset"].get("background") or directory.background
        return chosen, f"image {Path(file).name}"
    mean = read_image(directory.mean_sample, layout.n_features)
    if mean is not None:
        mean = layout.arranged(mean, outside=np.nan)
    return mean, "mean of all samples"


def score_meaning(config: Mapping[str, Any]) -> str:
    """Return what the feature scores of a study's method are, for a caption."""
    name = config["solver"]["name"]
    if config["solver"].get("importance"):
        metric = texts.spaced(config["evaluation"]["metric"])
        return f"loss of {metric} where the feature is permuted in held-out samples"
    if "." in name:
        shown = name.partition("(")[0].rpartition(".")[2]
        return (
            "norm of coef_ over the classes, or feature_importances_, scores_ or ranking_, of"
            f" {shown}"
        )
    method = registered_method(name)
    return (method and method.score_meaning) or f"score of the method {name}"
