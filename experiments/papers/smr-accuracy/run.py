"""SMR, Table I and Fig. 4: accuracy of the nearest neighbour on the best pixels, against the paper's rivals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.papers.selection import METHOD, RIVALS, curves, few, sentence, table
from experiments.protocol import Experiment, Row, joined_verdict, read, triple, verdict
from experiments.report import Report, conclusion, digits, markdown

#: Training images a class, draws, numbers of pixels.
SETTINGS = {
    "ORL": (5, 20, range(50, 601, 50)),
    "PIE": (6, 8, range(50, 601, 50)),
    "UMIST": (4, 20, range(50, 601, 50)),
    "USPS": (4, 20, [*range(10, 101, 10), 150, 200]),
}
SIDES = (4, 7, 10, 12, 14, 17, 20, 24)


def changes(experiment: Experiment, data: str) -> Row:
    """Values of the configuration that depend on the data set."""
    dataset = read(str(experiment.path(data)))
    side = min(dataset.layout.shape)
    smallest = int(np.bincount(dataset.y).min())
    per_class, draws, sizes = SETTINGS.get(data, (min(5, smallest // 2), 5, range(50, 601, 50)))
    found: Row = {
        "dataset.path": str(experiment.path(data)),
        "cv.train_per_class": per_class,
        "cv.repeats": draws,
        "evaluation.n_features": [n for n in sizes if n < dataset.n_features],
        "compare.LS21.solver.params.rank": side,
        "compare.2DLDA.solver.space.n_components": [[k, k] for k in SIDES if k <= side],
    }
    return found | few(experiment, dataset, found) if experiment.fast else found


def measure(experiment: Experiment) -> pd.DataFrame:
    """Optimistic and honest accuracies of every method on every data set."""
    tables = []
    for data in experiment.sets(*SETTINGS):
        comparison: Any = experiment.compare(data, experiment.config("study"), changes(experiment, data))
        tables.append(triple(experiment, data, comparison, METHOD))
    return pd.concat(tables, ignore_index=True)


def report(results: pd.DataFrame, published: pd.DataFrame) -> Report:
    """One table a data set, the curves, and what survives."""
    of_each = dict(iter(results.groupby("data", sort=False)))
    verdicts = {data: verdict(rows, METHOD, RIVALS) for data, rows in of_each.items()}
    text = " ".join(sentence(data, rows, verdicts[data]) for data, rows in of_each.items())
    chosen = results[(results["at"] == "chosen") & (results["method"] == METHOD)]
    return Report(
        title="SMR against the selectors of its paper",
        claim="SMR's pixels give the best accuracy almost everywhere (Table I, Fig. 4).",
        published=published["where"].iloc[0],
        optimistic=", ".join(
            f"{data} {digits(value)}" for data, value in zip(chosen["data"], chosen["optimistic"], strict=True)
        ),
        honest=", ".join(
            f"{data} {digits(value)}" for data, value in zip(chosen["data"], chosen["honest"], strict=True)
        ),
        verdict=joined_verdict([one.holds for one in verdicts.values()]),
        conclusion=conclusion(METHOD, verdicts, "accuracy"),
        text=text,
        table="\n\n".join(f"## {data}\n\n{markdown(table(rows))}" for data, rows in of_each.items()),
        figure=draw(of_each),
    )


def draw(of_each: dict[str, pd.DataFrame]) -> Figure:
    """Honest accuracy over the number of pixels, a panel a data set; SMR's optimistic one dashed."""
    figure = Figure(figsize=(9, 2.9 * ((len(of_each) + 1) // 2)), layout="constrained")
    axes = figure.subplots((len(of_each) + 1) // 2, min(2, len(of_each)), squeeze=False).ravel()
    for ax, (data, rows) in zip(axes, of_each.items(), strict=False):
        curves(ax, rows)
        ax.set_title(data)
    for ax in axes[len(of_each) :]:
        ax.axis("off")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=7)
    return figure
