"""Figures of a comparison: what they draw is what they are given, and no labels overlap."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from drawn import draw, is_on_page, labels
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.numerics.inference import compare_over_data_sets
from raysel.results.displays.comparison import ComparisonFigure, ShownMember
from raysel.results.displays.critical_difference import RankDiagram
from raysel.results.displays.drawing import spread_out
from raysel.results.scores import FoldValues


def members_of(n_curves: int, n_native: int, n_runs: int = 5) -> list[ShownMember]:
    rng = np.random.default_rng(n_curves + 10 * n_native)
    members = []
    for i in range(n_curves + n_native):
        by_n = {n: rng.uniform(0.88, 0.92, n_runs) for n in (50, 100, 200)} if i < n_curves else {}
        scores = np.mean(list(by_n.values()), axis=0) if by_n else rng.uniform(0.88, 0.92, n_runs)
        difference = None if i == 0 else (-0.01, -0.03, 0.01)
        curve = {n: FoldValues.of(values.tolist()) for n, values in by_n.items()}
        folds = FoldValues.of(scores.tolist())
        members.append(ShownMember(f"method {i} <$x_{i}$>", folds, curve, difference))
    return members


def of(members, **settings):
    return ComparisonFigure("few", "macro f1", members, "method 0", "5 outer folds", **settings)


def texts(figure):
    """Boxes of the texts that are drawn, by text, and of the tick labels."""
    renderer = draw(figure)
    (ax,) = figure.axes
    panels = [ax, *ax.child_axes]
    boxes = {
        text.get_text(): text.get_window_extent(renderer)
        for panel in panels
        for text in panel.texts
    }
    ticks = [
        tick.label1.get_window_extent(renderer)
        for panel in panels[1:]
        for axis, (low, high) in (
            (panel.xaxis, sorted(panel.get_xlim())),
            (panel.yaxis, sorted(panel.get_ylim())),
        )
        for tick in axis.get_major_ticks()
        if low <= tick.get_loc() <= high  # the others are not drawn
    ]
    return boxes, ticks


@pytest.mark.parametrize(
    ("n_curves", "n_native"),
    [*(pytest.param(*n, marks=pytest.mark.slow) for n in ((12, 2), (3, 0), (1, 0))), (0, 4)],
)
def test_texts_are_inside_the_figure_and_do_not_overlap(n_curves, n_native):
    shown = of(members_of(n_curves, n_native), missing=["x"])
    for figure in (shown.figure(), shown.headed_figure()):
        boxes, ticks = texts(figure)
        for box in (*boxes.values(), *ticks):
            assert box.x0 >= figure.bbox.x0
            assert box.x1 <= figure.bbox.x1
        for a, b in combinations(boxes.values(), 2):
            assert not (a.shrunk(1, 0.9).overlaps(b.shrunk(1, 0.9)))
        assert is_on_page(figure)


def test_the_label_of_the_scores_stays_left_of_that_of_the_differences():
    members = [replace(member, label="x" * 30) for member in members_of(2, 1)]
    kinds = "at the chosen number of features or mean over the curve"
    figure = of(members, scored_at=kinds).figure()
    renderer = draw(figure)
    _, scored, differing = figure.axes[0].child_axes
    left, right = (ax.xaxis.label.get_window_extent(renderer) for ax in (scored, differing))
    assert " ".join(scored.get_xlabel().split()) == f"test macro f1 {kinds}"
    assert left.x1 < right.x0
    assert left.y0 > 0


def test_long_labels_stay_distinct():
    names = [f"MKL (least squares of the kernels, {norm})" for norm in ("inf", "1", "2")]
    shown = of([ShownMember(name, FoldValues.of([0.8, 0.9]), {}, None) for name in names])
    drawn = set(labels(shown.plot().child_axes[0].yaxis))
    assert len(drawn) == 3
    assert max(map(len, drawn)) <= 24


def test_curves_and_rows_show_the_given_scores():
    members = members_of(3, 1)
    curves, scores, differences = of(members).plot().child_axes
    means = [container.lines[0].get_ydata() for container in curves.containers]
    for member, drawn in zip(members, means, strict=True):
        expected = [np.mean(one.values) for one in member.by_n.values()]
        expected = expected or [np.mean(member.scores.values)] * 2
        assert drawn == pytest.approx(expected)
    order = sorted(members, key=lambda member: -np.mean(member.scores.values))
    assert [tick.get_text() for tick in scores.get_yticklabels()] == [
        member.label for member in order
    ]
    assert [c.lines[0].get_xdata()[0] for c in scores.containers] == [
        np.mean(m.scores.values) for m in order
    ]
    assert len([line for line in differences.lines if line.get_marker() == "D"]) == 3


@settings(max_examples=25)
@given(st.lists(st.floats(0, 3), min_size=1, max_size=12))
def test_places_are_spread_out_in_the_same_order(wanted):
    wanted = np.array(wanted)
    result = spread_out(wanted, 0.2, 3.0)
    order = np.argsort(wanted, kind="stable")
    assert (np.diff(result[order]) >= 0.2 - 1e-9).all()
    assert result.min() >= -1e-9
    assert result.max() <= 3 + 1e-9
    if len(wanted) == 1 or np.diff(wanted[order]).min() >= 0.2:
        assert result == pytest.approx(wanted)


@pytest.mark.parametrize("k", [2, 12])
def test_the_critical_difference_diagram_places_every_method(k):
    rng = np.random.default_rng(k)
    result = compare_over_data_sets(rng.normal(size=(9, k)) + np.linspace(2, 0, k))
    names = [f"method {i} of {k}" for i in range(k)]
    shown = RankDiagram(
        "few",
        names,
        result.mean_ranks,
        result.critical_difference,
        result.groups,
        "Friedman's test",
    )
    figure = shown.headed_figure()
    renderer = draw(figure)
    boxes = [text.get_window_extent(renderer) for text in figure.axes[0].texts]
    for a, b in combinations(boxes, 2):
        assert not a.shrunk(0.95, 0.9).overlaps(b.shrunk(0.95, 0.9))
    drawn = " ".join(text.get_text() for text in figure.axes[0].texts)
    for label, rank in zip(names, result.mean_ranks, strict=True):
        assert f"{label}  {rank:.2f}" in drawn or f"{rank:.2f}  {label}" in drawn
    assert sum(line.get_linewidth() == 4 for line in figure.axes[0].lines) == len(result.groups)
