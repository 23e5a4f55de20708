"""What the tables of SMML's paper share: data sets of several types, members, tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.experiment import Experiment, Row
from experiments.protocol import RULE, Verdict, joined_verdict
from experiments.report import (
    compared,
    conclusion,
    cpu,
    digits,
    draw_scores,
    honest_score,
    less,
    p_value,
    panels,
    tried,
)
from raysel import load_dataset
from raysel.core.errors import DataError
from raysel.data.layouts import Modalities

METHOD = "SMML"
#: Members that are in none of the paper's tables.
BEYOND = ("linear SVM", "1-NN")


def drawn(experiment: Experiment, data: str, n: int | None, per_class: int | None) -> Path:
    """Write some of the samples, drawn with seed 0: ``n`` of all, or ``per_class`` of each
    class; None: the file.
    """
    source = experiment.path(data)
    if (n is None and per_class is None) or data in experiment.data:
        return source
    path = experiment.output / f"{data}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with np.load(source) as file:
            arrays = {name: file[name] for name in file.files if name != "is_train"}
        rng, size = np.random.default_rng(0), len(arrays["view_0"])
        if per_class:
            y = arrays["y"]
            kept = np.concatenate(
                [rng.choice(np.flatnonzero(y == c), per_class, replace=False) for c in np.unique(y)]
            )
        else:
            kept = rng.choice(size, n, replace=False)
        kept.sort()
        np.savez(path, **{name: a[kept] if len(a) == size else a for name, a in arrays.items()})
    return path


def members(experiment: Experiment, path: Path) -> tuple[Row, list[str]]:
    """Return the committed configuration with one member for each type, and the types."""
    config = experiment.config("study")
    layout = load_dataset(path).layout
    if not isinstance(layout, Modalities):
        raise DataError(f"{path} has no modalities: give a file with view_0, view_1, ... and y.")
    names = list(layout.modalities)
    compare: Row = {}
    for label, member in config["compare"].items():
        if label == "one type":
            compare |= {f"{name} alone": member | {"dataset.only": [name]} for name in names}
        else:
            compare[label] = member
    return config | {"compare": compare}, names


def table(
    rows: pd.DataFrame, published: pd.DataFrame, data: str, metrics: list[str]
) -> pd.DataFrame:
    """A line a method: the published figure, the optimistic one, the honest one, and the
    difference to SMML.
    """
    printed = published[published["data"] == data].set_index(["method", "measure"])["value"]
    lines = []
    for row in rows.to_dict("records"):
        method = row["method"]
        name = {name.split(" ")[1]: name for name, _ in printed.index if name[0].isdigit()}.get(
            method.removesuffix(" alone"), method
        )
        lines.append(
            {
                "method": method,
                "configurations": tried(row),
                "published": digits(printed.get((name, metrics[0]), np.nan)),
                "optimistic": digits(row["optimistic"]),
                "honest": f"{digits(row['honest'])} ± {digits(row['honest_sd'])}",
                "optimism": digits(row["optimistic"] - row["honest"]),
                "SMML less it": less(row),
                **{
                    other: f"{digits(row[other])} ({digits(printed.get((name, other), np.nan))})"
                    for other in metrics[1:]
                },
                "CPU s a fit": cpu(row),
            }
        )  # fmt: skip
    return pd.DataFrame(lines)


def draw(of_each: Mapping[str, pd.DataFrame], metric: str) -> Figure:
    """Draw the scores of every method, a panel a data set."""
    figure, axes = panels(len(of_each), 2, 3.8)
    for ax, (data, rows) in zip(axes, of_each.items(), strict=True):
        draw_scores(ax, rows, METHOD)
        ax.set(title=data, xlabel=f"{metric} (axis not from 0)")
    axes[0].legend(frameon=False, fontsize=7)
    return figure


def common(
    of_each: Mapping[str, pd.DataFrame],
    verdicts: Mapping[str, Verdict],
    published: pd.Series,
    on: str,
    metric: str,
    labels: str,
) -> dict[str, Any]:
    """Return the parts of a report that every table of SMML has; ``published``: figures of the
    data set ``on``.
    """
    own = {data: rows.set_index("method").loc[METHOD] for data, rows in of_each.items()}
    best = published.drop(["SMML", "SMML G1 only", "SMML L21 only"]).max()
    return {
        "published": f"{on} {digits(published['SMML'])}, best other {digits(best)}",
        "optimistic": ", ".join(f"{data} {digits(row['optimistic'])}" for data, row in own.items()),
        "honest": ", ".join(
            f"{data} {honest_score(row['honest'], row['optimistic'])}" for data, row in own.items()
        ),
        "rule": RULE,
        "verdict": joined_verdict([one.holds for one in verdicts.values()]),
        "conclusion": conclusion(METHOD, verdicts, f"With {labels} a sample ({metric})"),
        "compared": compared(
            METHOD, verdicts, pd.Series({data: row["optimistic"] for data, row in own.items()})
        ),
        "figure": lambda: draw(of_each, metric),
    }


def sentence(data: str, rows: pd.DataFrame, verdict: Verdict, metric: str) -> str:
    """Say what survives on a data set."""
    own = rows.set_index("method").loc[METHOD]
    return (
        f"{data}: SMML {digits(own['honest'])} {metric} (optimistic {digits(own['optimistic'])}),"
        f" the best other by inner score, {verdict.best_other}, {digits(verdict.other)}"
        f" ({p_value(verdict.p)} by Holm, corrected test over {own['runs']:.0f} folds); best of all"
        f" {digits(rows['honest'].max())} ({rows.loc[rows['honest'].idxmax(), 'method']})."
    )
