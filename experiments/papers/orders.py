"""SMR as printed with the columns of the samples in several orders: its start V = [I; 0] begins
at the first ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier

from experiments.experiment import Experiment, Row, read
from experiments.papers.rivals import order_of, selector
from experiments.report import digits
from raysel import Dataset, Matrix
from raysel.evaluation.splitters import draw_per_class

STORED = "as stored"
ORDERS = (STORED, "first column last", "reversed", "shuffled")
#: Start of the place of a row in results.csv.
COLUMNS = "columns "
#: Configurations that are tried in each order.
ALPHA, RANKS = 1.0, (2, 6)
#: Selector of the paper that knows no order, on the same draws.
RIVAL = "Fisher"


def ordered(order: str, n: int) -> np.ndarray:
    """Indices of n columns in one of ORDERS."""
    columns = np.arange(n)
    if order == "first column last":
        return np.roll(columns, -1)
    if order == "reversed":
        return columns[::-1]
    return np.random.default_rng(0).permutation(n) if order == "shuffled" else columns


@lru_cache(maxsize=1)
def _drawn(path: str, n_classes: int, per_class: int, draw: int) -> tuple[Any, ...]:
    """Samples of the first classes, their shape, their labels, and a draw of training and test
    samples.
    """
    dataset = read(path)
    chosen = np.isin(dataset.y, np.unique(dataset.y)[:n_classes])
    train, test = draw_per_class(dataset.y[chosen], per_class, groups=None, random_state=draw)
    return dataset.X[chosen], dataset.layout.shape, dataset.y[chosen], train, test


def in_order(
    *, order: str, method: str, params: Row, sizes: Sequence[int], **drawn: Any
) -> Iterator[Row]:
    """Accuracy of a method at each number of features, of samples whose columns have another
    order.
    """
    X, shape, y, train, test = _drawn(**drawn)
    # Places of the cells in the samples as stored, in the order of the cells that the method sees.
    cells = np.arange(X.shape[1]).reshape(shape)[:, ordered(order, shape[1])].ravel()
    low, high = X.min(), X.max()
    ranked = Dataset((X[train][:, cells] - float(low)) / (high - low), y[train], Matrix(*shape))
    best = order_of(selector(method, params, ranked), ranked.X, ranked.y)
    for s in sizes:
        part = X[:, cells[best[:s]]].astype(np.float64)
        nearest = KNeighborsClassifier(1, algorithm="brute").fit(part[train], y[train])
        yield {"s": s, "accuracy": nearest.score(part[test], y[test])}


def over_orders(experiment: Experiment, draws: int, **common: Any) -> pd.DataFrame:
    """Accuracy of SMR as printed in each of ORDERS, and of a rival: the best mean over the draws, a
    row each.

    The test samples choose the configuration and the number of features, so that each accuracy is
    optimistic. The arguments are those of `in_order`: ``path``, ``n_classes``, ``per_class``,
    ``sizes``.
    """
    sides = read(common["path"]).layout.shape
    ranks = [k for k in RANKS if k <= min(sides)]
    tried = [
        (RIVAL, STORED, {}),
        *(("SMR", order, {"alpha": ALPHA, "rank": k}) for order in ORDERS for k in ranks),
    ]
    units = [
        common | {"draw": draw, "order": order, "method": method, "params": params}
        for draw in range(draws)
        for method, order, params in tried
    ]
    rows = experiment.measure(in_order, units)
    rows["params"] = rows["params"].map(str)
    means = rows.groupby(["method", "order", "params", "s"], sort=False)["accuracy"]
    scores = means.agg(optimistic="mean", optimistic_sd="std", runs="size").reset_index()
    best = scores.loc[scores.groupby(["method", "order"], sort=False)["optimistic"].idxmax()]
    kept = best[["method", "runs", "optimistic", "optimistic_sd"]]
    return kept.assign(at=COLUMNS + best["order"])


def of_orders(rows: pd.DataFrame) -> tuple[pd.Series, float] | None:
    """Accuracy of SMR as printed by order, and that of the rival; None where they were not
    measured.
    """
    measured = rows[rows["at"].str.startswith(COLUMNS)]
    if not len(measured):
        return None
    own = measured[measured["method"] == "SMR"]
    values = pd.Series(own["optimistic"].to_numpy(), own["at"].str.removeprefix(COLUMNS))
    return values, float(measured[measured["method"] == RIVAL]["optimistic"].iloc[0])


def above_in_every_order(rows: pd.DataFrame) -> bool:
    """Whether SMR as printed is above the rival with the columns in every order; False where not
    measured.
    """
    measured = of_orders(rows)
    return measured is not None and bool((measured[0] > measured[1]).all())


def orders_sentence(data: str, rows: pd.DataFrame) -> str:
    """Say what the order of the columns does to SMR as printed."""
    measured = of_orders(rows)
    if measured is None:
        return f"{data} was not run with its columns in other orders."
    own, rival = measured
    listed = ", ".join(f"{order} {digits(value)}" for order, value in own.items())
    runs = rows[rows["at"].str.startswith(COLUMNS)]["runs"].max()
    return (
        f"{data}, SMR as printed by the order of the columns, all else equal: {listed}; {RIVAL},"
        f" which knows no order, {digits(rival)} (optimistic: k and s chosen by the test samples;"
        f" alpha = {ALPHA:g}, k = {' or '.join(map(str, RANKS))}; {runs:.0f}"
        f" draw{'s' if runs > 1 else ''})."
    )
