"""Figure of the stability of the selected features over their number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator
from numpy.typing import ArrayLike

from raysel.core.printing import short
from raysel.results.displays.style import BLUE, OUTLINE, SMALL, clean_axes, headed_figure, plain_legend, some_ticks


def plot_stability(
    n_features: Sequence[int],
    stability: ArrayLike,
    ax: Axes,
    *,
    noise: ArrayLike | None = None,
    chosen: int | None = None,
) -> Axes:
    """Draw the stability over the number of features, with that of permuted labels."""
    x, values = np.array(n_features, dtype=float), np.asarray(stability, dtype=float)
    if len(x) > 1 and x[-1] > 12 * x[0]:
        ax.set_xscale("log")
    if noise is not None and np.isfinite(np.asarray(noise, dtype=float)).any():
        mean, lowest, highest = np.asarray(noise, dtype=float).T
        marker = "." if len(x) == 1 else ""
        ax.plot(x, mean, color="0.45", linestyle=":", marker=marker, label="permuted labels: mean, range")
        ax.fill_between(x, lowest, highest, facecolor="0.85", edgecolor="0.6", linewidth=6 if len(x) == 1 else 0.8)
    ax.plot(x, values, color=BLUE, marker="o", markersize=5, linewidth=1.9, label="stability", zorder=4)
    if chosen is not None:
        ax.axvline(chosen, color=OUTLINE, linestyle="--", linewidth=1.2, label=f"top {chosen} of the final model")
    clean_axes(ax, "y")
    # The chosen number is labelled rather than those beside it.
    near = [n for n in n_features if chosen in (None, n) or not 0.85 < n / chosen < 1.18]
    ticks = some_ticks(near, ax)
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels([f"{n:d}" for n in ticks])
    least = float(np.nanmin(values, initial=0.0))
    ax.set_ylim(max(least - 0.25, min(ax.get_ylim()[0], -0.05)), 1.05)
    ax.set_xlabel("N, number of best features that count as selected", fontsize=SMALL)
    ax.set_ylabel("Nogueira's stability", fontsize=SMALL)
    plain_legend(ax)
    return ax


def stability_figure(
    n_features: Sequence[int],
    stability: ArrayLike,
    *,
    name: str,
    n_folds: int,
    noise: ArrayLike | None = None,
    chosen: int | None = None,
    remarks: Sequence[str] = (),
) -> Figure:
    """Draw the stability over the number of features, with that of permuted labels."""
    facts = [f"agreement of the N best features of {n_folds} overlapping outer folds: 1 is the same features in all"]
    if not np.isfinite(np.asarray(stability, dtype=float)).any():
        facts.append("undefined at every N: there is one outer fold, or every fold selects all or no features")
    elif noise is not None and np.isfinite(np.asarray(noise, dtype=float)).any():
        facts.append("grey: the F-test on the same folds with permuted labels, the level of noise")
    else:
        facts.append("the level of noise was not recorded")
    figure = headed_figure(7.2, 3.3, f"{short(name, 36)}: stability over the number of features", facts, remarks)
    plot_stability(n_features, stability, figure.subplots(), noise=noise, chosen=chosen)
    return figure
