"""SMR, Figs. 8 and 9: accuracy and mean average precision on scenes, described by 85 patches of
128 numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier

from experiments.experiment import Experiment, Row, read, unit_scaled
from experiments.papers.orders import (
    RIVAL,
    above_in_every_order,
    of_orders,
    orders_sentence,
    over_orders,
)
from experiments.papers.selection import METHOD, RIVALS, draw_curves, few, sentence, sizes_of, table
from experiments.protocol import RULE, joined_verdict, triple, verdict
from experiments.report import Report, compared, conclusion, digits, markdown
from raysel.evaluation.splitters import draw_per_class

#: Number of leading classes of each set; None: all.
SETS = {"OT": 8, "LSP": None}
PER_CLASS = 50
#: Draws of the training images with the columns in several orders.
ORDER_DRAWS = {"OT": 2, "LSP": 1}


def without_twins(experiment: Experiment, data: str) -> Path:
    """Write the images, less the second of each pair of equal ones, which a random split may tear
    apart.

    The short form has a tenth of the paper's, with every tenth patch.
    """
    path = experiment.output / f"{data}.npz"
    if not path.exists():
        source = experiment.path(data)
        dataset = read(str(source))
        step = 10 if experiment.fast and data not in experiment.data else 1
        _, first = np.unique(dataset.X[::step], axis=0, return_index=True)
        kept = step * np.sort(first)
        path.parent.mkdir(parents=True, exist_ok=True)
        X = dataset.X[kept].reshape(-1, *dataset.layout.shape)
        np.savez(path, X=X[:, :, :: 10 if step > 1 else 1], y=dataset.y[kept])
    return path


def patches(*, path: str, n_classes: int, per_class: int, draw: int) -> Iterator[Row]:
    """Accuracy of the nearest neighbour on each column alone, and on all of them."""
    dataset = read(path)
    chosen = dataset.y < n_classes
    X, y = unit_scaled(dataset)[chosen], dataset.y[chosen]
    train, test = draw_per_class(y, per_class, groups=None, random_state=draw)
    images = X.reshape(len(X), *dataset.layout.shape)
    for column in (*range(images.shape[2]), None):
        part = X if column is None else images[:, :, column]
        score = KNeighborsClassifier(1).fit(part[train], y[train]).score(part[test], y[test])
        yield {"at": "all columns" if column is None else f"column {column}", "accuracy": score}


def _classes(experiment: Experiment, source: str) -> Row:
    """Number of leading classes of each set that a file holds; None: all."""
    if source != "scenes":
        return {source: None}
    return {"LSP": None} if experiment.fast else SETS


def measure(experiment: Experiment) -> pd.DataFrame:
    """Optimistic and honest scores of every method on both sets, and accuracies of single
    columns.
    """
    tables = []
    for source in experiment.sets("scenes"):
        path = without_twins(experiment, source)
        dataset = read(str(path))
        classes = np.unique(dataset.y)
        per_class = min(
            10 if experiment.fast else PER_CLASS, int(np.bincount(dataset.y).min()) // 2
        )
        for data, n in _classes(experiment, source).items():
            n_classes = n or len(classes)
            full: Row = {
                "dataset.path": str(path),
                "dataset.classes": [int(c) for c in classes[:n_classes]],
                "cv.train_per_class": per_class,
                "evaluation.n_features": sizes_of(dataset),
            }
            full |= few(experiment, dataset, full) if experiment.fast else {}
            comparison: Any = experiment.compare(data, experiment.config("study"), full)
            tables.append(triple(experiment, data, comparison))
            orders = over_orders(
                experiment,
                1 if experiment.fast else ORDER_DRAWS.get(data, 1),
                path=str(path),
                n_classes=n_classes,
                per_class=per_class,
                sizes=full["evaluation.n_features"],
            )
            tables.append(orders.assign(data=data))
            units = [
                {"path": str(path), "n_classes": n_classes, "per_class": per_class, "draw": draw}
                for draw in range(2 if experiment.fast else 4)
            ]
            alone = experiment.measure(patches, units).groupby("at", sort=False)["accuracy"]
            scores = alone.agg(honest="mean", honest_sd="std", runs="size").reset_index()
            tables.append(scores.assign(data=data, method="1-NN of"))
    return pd.concat(tables, ignore_index=True)


def report(results: pd.DataFrame, published: pd.DataFrame) -> Report:
    """One table a data set, what single columns are worth, the curves, and what survives."""
    of_each = dict(iter(results.groupby("data", sort=False)))
    verdicts = {data: verdict(rows, METHOD, RIVALS) for data, rows in of_each.items()}
    held = [
        one.holds and above_in_every_order(of_each[data])
        for data, one in verdicts.items()
        if of_orders(of_each[data])  # the others say nothing of their order
    ]
    sentences, alone = [], []
    for data, rows in of_each.items():
        columns = rows[rows["method"] == "1-NN of"].set_index("at")["honest"]
        single = columns.drop("all columns")
        alone.append(f"{data} {digits(columns['column 0'])}")
        sentences.append(
            f"{sentence(data, rows, verdicts[data])} {orders_sentence(data, rows)} Without any"
            " selection 1-NN of column 0 (the whole image) alone has"
            f" {digits(columns['column 0'])}, of all columns {digits(columns['all columns'])};"
            f" single columns have {digits(single.min())} to {digits(single.max())}, the best is"
            f" {single.idxmax()}."
        )
    chosen = results[(results["at"] == "chosen") & (results["method"] == METHOD)]
    lowest = [
        f"{data} {digits(own.min())} ({own.idxmin()}; {RIVAL} {digits(rival)})"
        for data, rows in of_each.items()
        for own, rival in filter(None, [of_orders(rows)])
    ]
    depends = ""
    if lowest:
        depends = (
            "The order makes it: in the worst one, at its best k and s, it has"
            f" {', '.join(lowest)}. "
        )
    return Report(
        title="SMR on scenes",
        claim=(
            "SMR's features give the best accuracy and mean average precision on OT and LSP (Figs."
            " 8, 9)."
        ),
        published=published["where"].iloc[0].partition(": ")[2].partition(";")[0],
        optimistic=", ".join(f"{row.data} {digits(row.optimistic)}" for row in chosen.itertuples()),
        honest=", ".join(f"{row.data} {digits(row.honest)}" for row in chosen.itertuples()),
        verdict=joined_verdict(held),
        rule=(
            f"{RULE} And only if SMR as printed is above {RIVAL} with the columns in every order"
            " that was run: its start V = [I; 0] begins at the first ones, and the method must not"
            " depend on which these are. A set that was not run in other orders does not count."
        ),
        conclusion=(
            f"{conclusion(METHOD, verdicts, 'On scenes, with the columns as stored (accuracy),')}"
            f" {depends}Without any selection the nearest neighbour on column 0 alone, which"
            f" describes the whole image, has {', '.join(alone)}."
        ),
        compared=compared(
            f"{METHOD}, columns as stored", verdicts, chosen.set_index("data")["optimistic"]
        ),
        text=" ".join(sentences),
        table="\n\n".join(
            f"## {data}\n\n{markdown(table(rows))}" for data, rows in of_each.items()
        ),
        figure=lambda: draw_curves(of_each),
    )
