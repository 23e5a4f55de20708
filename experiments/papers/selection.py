"""What the accuracies of SMR's paper share, on faces and digits and on scenes: short forms,
tables, curves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.experiment import Experiment, Row, short_grids
from experiments.protocol import Verdict
from experiments.report import cpu, digits, less, p_value, panels, tried
from raysel import Dataset

#: SMR with the settings of its paper, and the paper's selectors.
METHOD = "SMR as printed"
#: Data whose labels are permuted.
CONTROL = "permuted labels"
RIVALS = ("IG", "ReliefF", "Fisher", "RFS", "GLSPFS", "DFS")
COLOURS = {
    METHOD: "#d95f02",
    "RFS": "#1b9e77",
    "GLSPFS": "#7570b3",
    "DFS": "#e7298a",
    "Fisher": "#66a61e",
}
COLOURS |= {"all features": "#222222"}
MARKERS = {METHOD: "o", "RFS": "s", "GLSPFS": "^", "DFS": "v", "Fisher": "D", "all features": "x"}


def sizes_of(dataset: Dataset) -> list[int]:
    """Numbers of features: 50, 100, .. 600 as in the paper, or twelve smaller ones where there
    are not as many.
    """
    step = max(1, min(50, dataset.n_features // 13))
    return [n for n in range(step, 12 * step + 1, step) if n < dataset.n_features]


def few(experiment: Experiment, dataset: Dataset, full: Row) -> Row:
    """A third of the classes, two draws, three numbers of features and two points a grid."""
    classes = np.unique(dataset.y)
    sizes = full["evaluation.n_features"]
    return short_grids(experiment.config("study")["compare"], full) | {
        "cv.repeats": 2,
        "dataset.classes": [int(c) for c in classes[: max(2, len(classes) // 3)]],
        "evaluation.n_features": sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]}),
    }


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """A line a method: what careless tuning gives, what a user gets, and the difference to SMR
    as printed.
    """
    chosen = rows[rows["at"] == "chosen"].set_index("method")
    mean = rows[rows["at"] == "mean"].set_index("method").reindex(chosen.index)
    metrics = [
        name for name in ("mean_average_precision",) if name in rows and chosen[name].notna().any()
    ]
    lines = []
    for method, row in chosen.iterrows():
        lines.append(
            {
                "method": method,
                "configurations": tried(row),
                "optimistic, mean over s": digits(mean.loc[method, "optimistic"]),
                "honest at each s": digits(mean.loc[method, "honest"]),
                "optimism": digits(mean.loc[method, "optimistic"] - mean.loc[method, "honest"]),
                "optimistic, best s": digits(row["optimistic"]),
                "honest, s chosen": f"{digits(row['honest'])} ± {digits(row['honest_sd'])}",
                "SMR less it": less(row),
                **{name: digits(row[name]) for name in metrics},
                "CPU s a fit": cpu(row),
            }
        )  # fmt: skip
    return pd.DataFrame(lines)


def sentence(data: str, rows: pd.DataFrame, verdict: Verdict) -> str:
    """Say what survives on a data set."""
    chosen = rows[rows["at"] == "chosen"].set_index("method")
    own = chosen.loc[METHOD]
    text = (
        f"{data}: SMR as printed {digits(own['honest'])} (optimistic {digits(own['optimistic'])}),"
        f" the best other by inner score, {verdict.best_other}, {digits(verdict.other)}"
        f" ({p_value(verdict.p)} by Holm, for these {own['runs']:.0f} draws)"
    )
    beside = [
        f"{name} {digits(chosen.loc[name, 'honest'])}"
        for name in ("all features", "smoothed F-test", "2DLDA", "LS21")
        if name in chosen.index
    ]
    return f"{text}; {', '.join(beside)}."


def draw_curves(of_each: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw accuracies over the number of features, a panel a data set; SMR's optimistic one is
    dashed.
    """
    figure, axes = panels(len(of_each), 2, 2.3)
    for ax, (data, rows) in zip(axes, of_each.items(), strict=True):
        curves(ax, rows)
        ax.set_title(data)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=7)
    return figure


def curves(ax: Any, rows: pd.DataFrame) -> None:
    """Draw the honest accuracy at each number of features, and SMR's optimistic one."""
    for method, colour in COLOURS.items():
        own = rows[(rows["method"] == method) & rows["at"].str.isdigit()]
        if not len(own):
            single = rows[(rows["method"] == method) & (rows["at"] == "chosen")]["honest"]
            if len(single):
                ax.axhline(single.iloc[0], color=colour, linewidth=0.8, linestyle=":", label=method)
            continue
        at = own["at"].astype(int)
        ax.plot(
            at,
            own["honest"],
            marker=MARKERS[method],
            markersize=3,
            color=colour,
            linewidth=1,
            label=method,
        )
        if method == METHOD:
            ax.plot(
                at,
                own["optimistic"],
                "--",
                color=colour,
                linewidth=1,
                label=f"{method}, optimistic",
            )
    ax.set(xlabel="number of features s", ylabel="accuracy (axis not from 0)")
