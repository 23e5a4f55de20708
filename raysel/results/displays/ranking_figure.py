"""Figure of a ranking: scores of the final model, and agreement of the outer folds."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure, SubFigure

from raysel.core.arrays import FloatArray
from raysel.core.printing import short
from raysel.data.layouts import Layout
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays.maps import Maps
from raysel.results.displays.parts import Bars, ModalityBars, TaskRow
from raysel.results.displays.planes import make_plane
from raysel.results.displays.style import WARNING, mean_and_sd

_HEADER = 1.05  # inches, as all sizes here
_FACT = 0.22  # height of a line below the title
_LINE = 0.2  # height of a line of a remark
_LETTERS = 13  # letters of a remark per inch
_WIDTH = 10.4
_LEAST_WIDTH = 9.8
_PAGE = 13.0  # height of the rows of tasks; with the header about that of A4 paper at this width


def ranking_figure(
    ranking: FeatureRanking,
    layout: Layout,
    *,
    name: str,
    test_scores: Sequence[float],
    metric: str = "accuracy",
    task_scores: Mapping[str, Sequence[float]] | None = None,
    answer: Sequence[str] = (),
    remarks: Sequence[str] = (),
    background: FloatArray | None = None,
    below: str = "mean of all samples",
    meaning: str = "",
) -> Figure:
    """Draw a ranking: two maps for matrix-shaped samples, slices of volumes, bars for others.

    The maps show the score of each cell and the number of outer folds that select it; the cells that the final model
    selects are outlined. The bars show the scores of the best features and their ranks over the folds, and below them
    the summed score and the number of selected features of each modality.
    """
    plane = make_plane(layout, ranking.usable_scores)
    maps = Maps(plane, background=background, below=below, meaning=meaning) if plane else None
    width = max(maps.size[0], _LEAST_WIDTH) if maps else _WIDTH
    rows: list[TaskRow] = []
    if layout.is_multitask:
        rows = _task_rows(ranking, layout, task_scores or {}, metric, background, meaning)
        remarks = [*remarks, *_left_out(layout.task_names, len(rows))]
    if plane and plane.about:
        answer = [*answer, plane.about]
    facts, lines = _wrapped(answer, width), _wrapped(remarks, width)
    facts.append(_agreement(ranking, "" if facts else f"{metric.replace('_', ' ')} on unseen samples", test_scores))
    header = _HEADER + _FACT * (len(facts) - 1) + _LINE * len(lines)
    if maps:
        figure = _maps(ranking, maps, (width, maps.size[1] + header))
    elif rows:
        figure = _tasks(rows, header)
    elif layout.is_multimodal:
        figure = _modalities(ranking, header, meaning)
    else:
        figure = _bars(ranking, header, meaning)
    _header(figure, ranking, name, facts, lines)
    return figure


def _agreement(ranking: FeatureRanking, measured: str, test_scores: Sequence[float]) -> str:
    """Stability over the outer folds, and the mean test score where it is not told elsewhere."""
    mean = f"{measured} {mean_and_sd(test_scores)}   ·   " if measured else ""
    return f"over {ranking.n_folds} overlapping outer folds: {mean}{ranking.stability_in_words}"


def _wrapped(texts: Sequence[str], width: float) -> list[str]:
    """Lines of texts that fit into a figure of a width in inches."""
    return [line for text in texts for line in textwrap.wrap(text, int(width * _LETTERS))]


def _maps(ranking: FeatureRanking, maps: Maps, size: tuple[float, float]) -> Figure:
    figure = Figure(figsize=size)
    maps.draw(figure, size, ranking)
    return figure


def _bars(ranking: FeatureRanking, header: float, meaning: str) -> Figure:
    bars = Bars(ranking, meaning=meaning)
    (area,) = _page([bars.height], header)
    bars.draw(area)
    return area.figure


def _modalities(ranking: FeatureRanking, header: float, meaning: str) -> Figure:
    bars, below = Bars(ranking, most=30, meaning=meaning), ModalityBars(ranking)
    first, second = _page([bars.height, below.height], header)
    bars.draw(first)
    below.draw(second)
    return first.figure


def _task_rows(
    ranking: FeatureRanking,
    layout: Layout,
    scores: Mapping[str, Sequence[float]],
    metric: str,
    background: FloatArray | None,
    meaning: str,
) -> list[TaskRow]:
    """Rows of the first tasks, as many as a page holds."""
    rows: list[TaskRow] = []
    for name in layout.task_names:
        fact = f"{metric.replace('_', ' ')} {mean_and_sd(scores[name])}" if name in scores else ""
        row = TaskRow(ranking, layout, name, fact, background, meaning)
        if rows and sum(other.height for other in rows) + row.height > _PAGE:
            break
        rows.append(row)
    return rows


def _left_out(tasks: Sequence[str], n_shown: int) -> Iterator[str]:
    """Say which tasks the page does not hold."""
    if n_shown < len(tasks):
        names = [short(name, 24) for name in tasks[n_shown:]]
        told = ", ".join(names[:8]) + (f" and {len(names) - 8} others" if len(names) > 8 else "")
        yield f"{n_shown} of {len(tasks)} tasks are shown; ranking.csv has all. Left out: {told}."


def _tasks(rows: Sequence[TaskRow], header: float) -> Figure:
    areas = _page([row.height for row in rows], header)
    for row, area in zip(rows, areas, strict=True):
        row.draw(area, _WIDTH)
    return areas[0].figure


def _page(heights: Sequence[float], header: float) -> list[SubFigure]:
    """Create a figure and return areas of the given heights in inches, one below the other, below the header."""
    height = sum(heights) + header
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    areas: Any = figure.subfigures(len(heights) + 1, 1, height_ratios=[header, *heights])
    return list(areas[1:])


def _header(figure: Figure, ranking: FeatureRanking, name: str, facts: Sequence[str], remarks: Sequence[str]) -> None:
    left, height = 0.15 / figure.get_figwidth(), figure.get_figheight()
    title = f"{short(name, 42)}: top {ranking.n_selected} of {ranking.n_features} features"
    plain = [*facts, _scored_in_words(ranking)]
    rows = [(title, 0.16, 14.0, "bold", "0")]
    rows += [(fact, 0.49 + _FACT * i, 9.5, "normal", "0.25") for i, fact in enumerate(plain)]
    below = 0.48 + _FACT * len(plain)
    rows += [(remark, below + _LINE * i, 9.5, "normal", WARNING) for i, remark in enumerate(remarks)]
    for text, drop, size, weight, colour in rows:
        y = 1 - drop / height
        figure.text(left, y, text, fontsize=size, fontweight=weight, color=colour, va="top", parse_math=False)


def _scored_in_words(ranking: FeatureRanking) -> str:
    """Number of features with a score in the final model and in the outer folds' winners, in words."""
    least, most = ranking.fold_n_scored.min(), ranking.fold_n_scored.max()
    folds = f"{least}" if least == most else f"{least} to {most}"
    chosen = f"top {ranking.n_selected}: {ranking.chosen_by}   ·   " if ranking.chosen_by else ""
    return f"{chosen}features with a score: {ranking.n_scored} in {ranking.source}, {folds} in the outer folds' winners"
