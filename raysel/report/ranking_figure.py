"""Figure of a ranking: scores of the final model, and agreement of the outer folds."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure, SubFigure

from raysel.data.layouts import Layout, Modalities, Tasks, Tensor
from raysel.files import write_result
from raysel.ranking.feature_ranking import FeatureRanking
from raysel.report.bars import Bars
from raysel.report.maps import Maps
from raysel.report.parts import ModalityBars, TaskRow
from raysel.report.style import WARNING, mean_and_sd, short

_HEADER = 1.05  # inches, as all sizes here
_LINE = 0.2  # height of a line of a remark
_LETTERS = 13  # letters of a remark per inch
_WIDTH = 10.4
_LEAST_WIDTH = 9.8


def ranking_figure(
    ranking: FeatureRanking,
    layout: Layout,
    *,
    name: str,
    test_scores: Sequence[float],
    metric: str = "accuracy",
    task_scores: Mapping[str, Sequence[float]] | None = None,
    remarks: Sequence[str] = (),
) -> Figure:
    """Draw a ranking: two maps for matrix-shaped samples, bars for others.

    The maps show the score of each cell and the number of outer folds that select it; the cells that the final model
    selects are outlined. The bars show the scores of the best features and their ranks over the folds, and below them
    the summed score and the number of selected features of each modality. If there are several tasks, each has a row
    of maps or bars that ranks its features among themselves.

    Parameters
    ----------
    ranking : FeatureRanking
        Ranking to draw.
    layout : Layout
        Layout of the features.
    name : str
        Name of the study, for the title.
    test_scores : sequence of float
        Test score of each outer fold.
    metric : str, default="accuracy"
        Name of the metric of the test scores.
    task_scores : mapping of str to sequence of float, optional
        Test scores of each task on each outer fold; none by default.
    remarks : sequence of str, default=()
        Limitations of the result, e.g. winners that did not converge, written in the header.

    Returns
    -------
    matplotlib.figure.Figure
        Figure that is not registered with pyplot, so it need not be closed.
    """
    matrix = isinstance(layout, Tensor) and len(layout.shape) == 2 and min(layout.shape) > 1
    maps = Maps(layout) if matrix and isinstance(layout, Tensor) else None
    width = max(maps.size[0], _LEAST_WIDTH) if maps else _WIDTH
    lines = [line for remark in remarks for line in textwrap.wrap(remark, int(width * _LETTERS))]
    header = _HEADER + _LINE * len(lines)
    if maps:
        figure = _maps(ranking, maps, (width, maps.size[1] + header))
    elif isinstance(layout, Tasks):
        figure = _tasks(ranking, layout, task_scores or {}, metric, header)
    elif isinstance(layout, Modalities):
        figure = _modalities(ranking, header)
    else:
        figure = _bars(ranking, header)
    _header(figure, ranking, name, test_scores, metric, lines)
    return figure


def _maps(ranking: FeatureRanking, maps: Maps, size: tuple[float, float]) -> Figure:
    figure = Figure(figsize=size)
    maps.draw(figure, size, ranking)
    return figure


def _bars(ranking: FeatureRanking, header: float) -> Figure:
    bars = Bars(ranking)
    (area,) = _page([bars.height], header)
    bars.draw(area)
    return area.figure


def _modalities(ranking: FeatureRanking, header: float) -> Figure:
    bars, below = Bars(ranking), ModalityBars(ranking)
    first, second = _page([bars.height, below.height], header)
    bars.draw(first)
    below.draw(second)
    return first.figure


def _tasks(
    ranking: FeatureRanking, layout: Tasks, scores: Mapping[str, Sequence[float]], metric: str, header: float
) -> Figure:
    facts = {name: f"{metric.replace('_', ' ')} {mean_and_sd(own)}" for name, own in scores.items()}
    rows = [TaskRow(ranking, layout, name, facts.get(name, "")) for name in layout.tasks]
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


def _header(
    figure: Figure,
    ranking: FeatureRanking,
    name: str,
    test_scores: Sequence[float],
    metric: str,
    remarks: Sequence[str],
) -> None:
    left, height = 0.15 / figure.get_figwidth(), figure.get_figheight()
    title = f"{short(name, 42)}: top {ranking.n_selected} of {ranking.n_features} features"
    facts = (
        f"over {ranking.n_folds} overlapping outer folds: {metric.replace('_', ' ')} "
        f"on unseen samples {mean_and_sd(test_scores)}   ·   stability {ranking.stability}"
    )
    rows = [(title, 0.16, 14.0, "bold", "0"), (facts, 0.49, 9.5, "normal", "0.25")]
    rows += [(_scored_in_words(ranking), 0.71, 9.5, "normal", "0.25")]
    rows += [(remark, 0.92 + _LINE * i, 9.5, "normal", WARNING) for i, remark in enumerate(remarks)]
    for text, drop, size, weight, colour in rows:
        y = 1 - drop / height
        figure.text(left, y, text, fontsize=size, fontweight=weight, color=colour, va="top", parse_math=False)


def _scored_in_words(ranking: FeatureRanking) -> str:
    """Number of features with a score in the final model and in the outer folds' winners, in words."""
    least, most = ranking.fold_n_scored.min(), ranking.fold_n_scored.max()
    folds = f"{least}" if least == most else f"{least} to {most}"
    chosen = f"top {ranking.n_selected}: {ranking.chosen_by}   ·   " if ranking.chosen_by else ""
    return f"{chosen}features with a score: {ranking.n_scored} in {ranking.source}, {folds} in the outer folds' winners"


def write_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure as PNG or SVG; the same figure gives the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Figure to write.
    path : str or Path
        Path of the file; its suffix is ``.png`` or ``.svg``.

    Returns
    -------
    Path
        Path of the file.

    Raises
    ------
    StudyError
        If the file cannot be written.
    """
    image = io.BytesIO()
    if Path(path).suffix == ".svg":
        with rc_context({"svg.hashsalt": "raysel"}):  # ids in the file are random otherwise
            figure.savefig(image, format="svg", metadata={"Creator": "raysel", "Date": None})
    else:
        figure.savefig(image, format="png", dpi=150, metadata={"Software": "raysel"})
    return write_result(path, image.getvalue())
