"""SMR, Fig. 6: accuracy over alpha and k, by inner scores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.neighbors import KNeighborsClassifier

from experiments.experiment import Experiment, Row, read, unit_scaled
from experiments.papers.printed import printed_smr
from experiments.papers.rivals import ALPHAS, fitted
from experiments.report import Report, digits, markdown, panels
from raysel.evaluation.splitters import draw_per_class, split
from raysel.numerics.least_squares import least_squares_data

#: Number of best cells, and the largest rank.
SETTINGS = {"UMIST": (100, 23), "USPS": (50, 16)}
SIZES, MIDDLE = (2, 4, 8), 4


def inner_score(
    *, path: str, per_class: int, draw: int, alpha: float, rank: int, top: int
) -> Iterator[Row]:
    """Mean inner accuracy of the nearest neighbour on the best cells, and SMR's own error on its
    training samples.
    """
    data = read(path)
    train, _ = draw_per_class(data.y, per_class, groups=None, random_state=draw)
    X, y = unit_scaled(data)[train], data.y[train]
    folds = split(y, min(3, per_class), groups=None, random_state=draw, where="inner folds")
    scores, errors, null = [], [], []
    for fit, held in folds:
        model = fitted(printed_smr(data.layout.shape, alpha, rank), X[fit], y[fit])
        best = np.argsort(-model.scores_, kind="stable")[:top]
        nearest = KNeighborsClassifier(1).fit(X[fit][:, best], y[fit])
        scores.append(nearest.score(X[held][:, best], y[held]))
        errors.append(float(np.mean(model.predict(X[fit]) != y[fit])))
        null.append(alpha >= least_squares_data(X[fit], y[fit]).alpha_max)
    yield {
        "score": float(np.mean(scores)),
        "training_error": float(np.mean(errors)),
        "null": bool(all(null)),
    }


def measure(experiment: Experiment) -> pd.DataFrame:
    """Mean inner score over the draws for each alpha, rank and training size."""
    units, names = [], {}
    for data in experiment.sets(*SETTINGS):
        path = str(experiment.path(data))
        names[path] = data
        shape = read(path).layout.shape
        top, most = SETTINGS.get(data, (shape[0] * shape[1] // 8, min(shape)))
        ranks = (1, 2, most) if experiment.fast else range(1, most + 1)
        units += [
            {"path": path, "per_class": p, "draw": draw, "alpha": alpha, "rank": rank, "top": top}
            for p in ((MIDDLE,) if experiment.fast else SIZES)
            for draw in range(2 if experiment.fast else 5)
            for alpha in (ALPHAS[2:4] if experiment.fast else ALPHAS)
            for rank in ranks
        ]
    rows = experiment.measure(inner_score, units)
    rows["data"] = rows["path"].map(names)
    groups = rows.groupby(["data", "per_class", "alpha", "rank", "top"], sort=False)
    table = groups.agg(
        runs=("score", "size"),
        score=("score", "mean"),
        sd=("score", "std"),
        training_error=("training_error", "mean"),
        null=("null", "mean"),
    )  # fmt: skip
    return table.reset_index()


def report(results: pd.DataFrame, _: pd.DataFrame) -> Report:
    """How much alpha and k move the inner score, and the curves over k."""
    lines, spreads, correlations = [], {}, {}
    for (data, p, alpha), rows in results.sort_values("rank").groupby(
        ["data", "per_class", "alpha"]
    ):
        best = rows.loc[rows["score"].idxmax()]
        spreads[data, p, alpha] = float(np.ptp(rows["score"]))
        falls = (
            np.corrcoef(rows["rank"], rows["training_error"])[0, 1]
            if rows["training_error"].std() > 0
            else np.nan
        )
        correlations[data, p, alpha] = falls
        lines.append(
            {
                "data": data,
                "p": p,
                "alpha": f"{alpha:g}",
                "zero solutions": f"{100 * rows['null'].mean():.0f} %",
                "score at k = 1": digits(rows["score"].iloc[0]),
                "best": f"{digits(best['score'])} (k = {best['rank']:.0f})",
                "at the largest k": digits(rows["score"].iloc[-1]),
                "largest less smallest": digits(spreads[data, p, alpha]),
                "training error at k = 1, largest": ", ".join(
                    digits(rows["training_error"].iloc[i]) for i in (0, -1)
                ),
                "its correlation with k": digits(falls, 2),
            }
        )  # fmt: skip
    large = [value for (_, _, alpha), value in spreads.items() if alpha >= 10]
    small = [value for (_, _, alpha), value in spreads.items() if alpha < 10]
    noise = float((results["sd"] / np.sqrt(results["runs"])).median())
    collapsed = results[results["alpha"] >= 10]["null"].mean()
    text = (
        "At alpha of 10 and more k moves the inner score by"
        f" {digits(float(np.median(large)) if large else np.nan)} (median over data and training"
        f" sizes), below by {digits(float(np.median(small)) if small else np.nan)}; the standard"
        f" error of a score is {digits(noise)}. There {100 * collapsed:.0f} % of the settings have"
        " zero as their optimum: the ranking is what 30 iterations leave of it, whatever k. Inner"
        f" scores over {int(results['runs'].max())} draws of p training images a class, three inner"
        " folds (two at p = 2); no test sample is used."
    )
    falling = all(
        correlation < 0 for correlation in correlations.values() if np.isfinite(correlation)
    )
    curves = results.sort_values("rank").groupby(["data", "per_class", "alpha"])["score"]
    not_always = bool((curves.agg("idxmax") != curves.agg(lambda score: score.index[-1])).any())
    flat = bool(large) and float(np.median(large)) < float(np.median(small))
    return Report(
        title="SMR over alpha and k",
        claim=(
            "k hardly matters at large alpha; accuracy does not always rise with k, while the"
            " fitting error falls (Fig. 6)."
        ),
        published="surfaces without numbers",
        optimistic="no test sample is used",
        honest=(
            f"k moves the inner score by {digits(float(np.median(large)) if large else np.nan)} at"
            f" alpha >= 10, by {digits(float(np.median(small)) if small else np.nan)} below"
        ),
        verdict="holds" if flat and falling and not_always else "does not hold",
        rule=(
            "Holds if k moves the inner score less at alpha of 10 and more than below (medians), if"
            " the training error falls with k wherever it varies, and if the best k is not always"
            " the largest."
        ),
        text=text,
        table=markdown(pd.DataFrame(lines)),
        figure=lambda: draw(results),
    )


def draw(results: pd.DataFrame) -> Figure:
    """Score over alpha and k at four training images a class, hatched where zero is the optimum;
    curves over k.
    """
    names = list(dict.fromkeys(results["data"]))
    figure, axes = panels(2 * len(names), 2, 2.6)
    for left, right, data in zip(axes[::2], axes[1::2], names, strict=True):
        own = results[results["data"] == data]
        grid = own[own["per_class"] == MIDDLE].pivot_table(
            index="alpha", columns="rank", values="score"
        )
        null = own[own["per_class"] == MIDDLE].pivot_table(
            index="alpha", columns="rank", values="null"
        )
        image = left.imshow(
            grid, aspect="auto", cmap="viridis", origin="lower", interpolation="nearest"
        )
        rows, columns = np.nonzero(null.to_numpy() >= 0.5)
        left.plot(columns, rows, "x", color="white", markersize=4, linestyle="none")
        left.set_yticks(range(len(grid)), [f"{alpha:g}" for alpha in grid.index])
        shown = range(0, grid.shape[1], max(1, grid.shape[1] // 8))
        left.set_xticks(list(shown), [str(grid.columns[i]) for i in shown])
        left.set(
            title=f"{data}, {MIDDLE} images a class",
            xlabel="k (x: zero is the optimum)",
            ylabel="alpha",
        )
        figure.colorbar(image, ax=left, label="inner accuracy")
        for p, colour, marker in zip(
            sorted(own["per_class"].unique()),
            ("#d95f02", "#08519c", "#009e73"),
            "os^",
            strict=False,
        ):
            of = own[own["per_class"] == p]
            alpha = of.groupby("alpha")["score"].max().idxmax()
            curve = of[of["alpha"] == alpha].sort_values("rank")
            look = {"color": colour, "marker": marker, "markersize": 3}
            right.plot(curve["rank"], curve["score"], label=f"p = {p}, alpha = {alpha:g}", **look)
            right.plot(
                curve["rank"], 1 - curve["training_error"], "--", linewidth=0.8, mfc="white", **look
            )
        right.set(
            title=f"{data}, best alpha",
            xlabel="k",
            ylabel="accuracy (dashed: training)",
            ylim=(None, 1.35),
        )
        right.xaxis.get_major_locator().set_params(integer=True)
        right.legend(frameon=False, fontsize=7, loc="upper right")
    return figure
