"""Single plots for notebooks, drawn on matplotlib axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from raysel.core.printing import short
from raysel.data.layouts import Layout
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.records import TrialRecord
from raysel.results.displays.maps import draw_background, label_plane
from raysel.results.displays.planes import make_plane
from raysel.results.displays.style import BLUE, OUTLINE

_MOST_BARS = 20


def new_axes() -> Axes:
    """Return new axes of a figure that pyplot shows."""
    _, ax = plt.subplots(layout="constrained")
    return ax


def plot_ranking(ranking: FeatureRanking, layout: Layout, ax: Axes | None = None) -> Axes:
    """Draw the final model's scores: a map for matrices, slices of volumes, else bars of the best features."""
    ax = ax or new_axes()
    usable = ranking.usable_scores
    if plane := make_plane(layout, usable):
        draw_background(None, plane, ax)
        scores = np.ma.masked_equal(plane.of_features(usable), 0.0)
        image = ax.imshow(scores, cmap="viridis", interpolation="nearest")
        if not scores.mask.all():
            ax.figure.colorbar(image, ax=ax, label=f"score of {ranking.source} (grey: 0 or constant)")
        label_plane(ax, plane, 8)
        drawn = plane.about or f"all {ranking.n_features} features"
    else:
        shown = ranking.top()[:_MOST_BARS]
        places = np.arange(len(shown))
        ax.barh(places, ranking.scores[shown], color=BLUE)
        ax.set_yticks(places, [short(ranking.feature_names[i], 32) for i in shown], parse_math=False)
        ax.invert_yaxis()
        ax.set_xlabel(f"score of {ranking.source}")
        drawn = f"the best {len(shown)} of {ranking.n_features} features"
    chosen = f"\ntop {ranking.n_selected}: {ranking.chosen_by}" if ranking.chosen_by else ""
    over = f"top {ranking.n_selected} over {ranking.n_folds} overlapping outer folds"
    ax.set_title(f"{drawn}\n{over}: {ranking.stability_in_words}{chosen}", fontsize=10)
    return ax


def plot_convergence(records: Sequence[TrialRecord], model: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw each configuration's mean objective over the inner fits of the outer folds by iteration."""
    ax = ax or new_axes()
    ordered = sorted(records, key=lambda record: record.id == model)
    curves = [(record, record.objective_curve()) for record in ordered]
    for record, curve in curves:
        own = record.id == model
        ax.plot(
            range(1, len(curve) + 1),
            curve,
            marker="." if len(curve) == 1 else None,
            color=OUTLINE if own else "0.6",
            linewidth=2.0 if own else 0.8,
            label=f"final model: {record.name}" if own else None,
        )
    ax.set_xlabel("iteration")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    longest = max((len(curve) for _, curve in curves), default=1)
    ax.set_xlim(0.5, longest + 0.5)
    if longest == 1:
        ax.set_title("recorded at the end of the fits only", fontsize=10)
    ax.set_ylabel("objective (mean over inner fits of the outer folds)")
    values = np.concatenate([curve for _, curve in curves]) if curves else np.empty(0)
    if len(values) and values.min() > 0 and values.max() > 100 * values.min():
        ax.set_yscale("log")
    if model is not None:
        ax.legend(fontsize=8, frameon=False)
    return ax
