"""SMR, Table I and Fig. 4: accuracy of the nearest neighbour on the best pixels, against the
paper's rivals.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.experiment import Experiment, Row, read, short_grids
from experiments.papers.orders import orders_sentence, over_orders
from experiments.papers.selection import (
    CONTROL,
    METHOD,
    RIVALS,
    draw_curves,
    few,
    sentence,
    sizes_of,
    table,
)
from experiments.protocol import (
    CHANCE,
    RULE,
    Scores,
    at_each,
    joined_verdict,
    scores_of,
    triple,
    verdict,
)
from experiments.report import Report, compared, conclusion, digits, markdown

#: Training images a class, draws, numbers of pixels.
SETTINGS = {
    "ORL": (5, 20, range(50, 601, 50)),
    "PIE": (6, 8, range(50, 601, 50)),
    "UMIST": (4, 20, range(50, 601, 50)),
    "USPS": (4, 20, [*range(10, 101, 10), 150, 200]),
}
SIDES = (4, 7, 10, 12, 14, 17, 20, 24)
#: Draws of the training images with the columns in several orders.
ORDER_DRAWS = 2
#: Data that tell nothing: samples of each class, draws, and methods.
CONTROL_SIZE, CONTROL_DRAWS = 100, 5
CONTROLLED = (METHOD, "GLSPFS", "Fisher", "all features")


def changes(path: Path, data: str) -> Row:
    """Values of the configuration that depend on the data set."""
    dataset = read(str(path))
    side = min(dataset.layout.shape)
    smallest = int(np.bincount(dataset.y).min())
    per_class, draws, sizes = SETTINGS.get(data, (min(5, smallest // 2), 5, sizes_of(dataset)))
    return {
        "dataset.path": str(path),
        "cv.train_per_class": per_class,
        "cv.repeats": draws,
        "evaluation.n_features": list(sizes),
        "compare.LS21.solver.params.rank": side,
        "compare.2DLDA.solver.space.n_components": (
            [[k, k] for k in SIDES if k <= side] or [[side, side]]
        ),
    }


def permuted(experiment: Experiment, data: str) -> Path:
    """Write as many samples of each class, with the labels of all of them permuted: chance is 1
    / n_classes.
    """
    path = experiment.output / f"{CONTROL}.npz"
    if not path.exists():
        dataset, rng = read(str(experiment.path(data))), np.random.default_rng(0)
        n = min(CONTROL_SIZE, int(np.bincount(dataset.y).min()))
        kept = np.concatenate(
            [
                rng.choice(np.flatnonzero(dataset.y == c), n, replace=False)
                for c in np.unique(dataset.y)
            ]
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        X = np.asarray(dataset.X)[kept].reshape(-1, *dataset.layout.shape)
        np.savez(path, X=X, y=rng.permutation(dataset.y[kept]))
    return path


def on_permuted_labels(experiment: Experiment, data: str) -> pd.DataFrame:
    """Scores of some methods where nothing can be learnt: the honest ones must be chance."""
    config = experiment.config("study")
    methods = (METHOD, "all features") if experiment.fast else CONTROLLED
    config["compare"] = {method: config["compare"][method] for method in methods}
    changed = {
        name: value
        for name, value in changes(permuted(experiment, data), data).items()
        if "compare" not in name
    }
    changed["cv.repeats"] = 2 if experiment.fast else CONTROL_DRAWS
    changed |= short_grids(config["compare"], changed) if experiment.fast else {}
    return triple(experiment, CONTROL, experiment.compare(CONTROL, config, changed))


def measure(experiment: Experiment) -> pd.DataFrame:
    """Optimistic and honest accuracies of every method on every data set, first on labels that
    tell nothing.
    """
    names = experiment.sets(*SETTINGS)
    tables = [on_permuted_labels(experiment, names[-1])]
    for data in names:
        changed = changes(experiment.path(data), data)
        changed |= (
            few(experiment, read(str(experiment.path(data))), changed) if experiment.fast else {}
        )
        comparison: Any = experiment.compare(data, experiment.config("study"), changed)
        tables.append(triple(experiment, data, comparison))
        orders = over_orders(
            experiment,
            1 if experiment.fast else ORDER_DRAWS,
            path=str(experiment.path(data)),
            n_classes=len(np.unique(read(str(experiment.path(data))).y)),
            per_class=changed["cv.train_per_class"],
            sizes=changed["evaluation.n_features"],
        )
        tables.append(orders.assign(data=data))
        tables.append(by_dimension(experiment, data, comparison.studies["2DLDA"]))
    return pd.concat(tables, ignore_index=True)


def by_dimension(experiment: Experiment, data: str, study: Any) -> pd.DataFrame:
    """Scores of 2DLDA at each of its dimensions, which are places as numbers of pixels are."""
    scores, params = scores_of(experiment, f"{data}: 2DLDA", study)
    dimensions = np.array([np.prod(one["n_components"]) for one in params])
    of_each = [dimensions == n for n in np.unique(dimensions)]
    parts = Scores(
        *(
            np.stack([of[:, one, 0] for one in of_each], axis=2)
            for of in (scores.test, scores.inner)
        )
    )
    places = [str(n) for n in np.unique(dimensions)]
    return pd.DataFrame(
        at_each("2DLDA", places, of_each[0].sum(), parts.optimistic, parts.honest)
    ).assign(data=data)


def report(results: pd.DataFrame, published: pd.DataFrame) -> Report:
    """One table a data set, the curves, and what survives."""
    tables = dict(iter(results.groupby("data", sort=False)))
    of_each = {data: rows for data, rows in tables.items() if data != CONTROL}
    verdicts = {data: verdict(rows, METHOD, RIVALS) for data, rows in of_each.items()}
    chosen = results[results["at"] == "chosen"].set_index(["method", "data"])
    own, control = chosen.loc[METHOD].loc[list(of_each)], chosen.loc[METHOD].loc[CONTROL]
    chance = chosen.loc[CHANCE, CONTROL]["honest"]
    text = (
        "With permuted labels, where nothing can be learnt, SMR as printed has"
        f" {digits(control['honest'])} (optimistic {digits(control['optimistic'])}); chance is"
        f" {digits(chance)}. "
    )
    return Report(
        title="SMR against the selectors of its paper",
        claim="SMR's pixels give the best accuracy almost everywhere (Table I, Fig. 4).",
        published=published["where"].iloc[0].partition(": ")[2].partition(";")[0],
        optimistic=", ".join(
            f"{data} {digits(value)}" for data, value in own["optimistic"].items()
        ),
        honest=", ".join(f"{data} {digits(value)}" for data, value in own["honest"].items()),
        rule=RULE,
        verdict=joined_verdict([one.holds for one in verdicts.values()]),
        other_data="PIE in five poses",
        conclusion=conclusion(METHOD, verdicts, "On faces and digits (accuracy)"),
        compared=compared(METHOD, verdicts, own["optimistic"]),
        text=text
        + " ".join(
            f"{sentence(data, rows, verdicts[data])} {orders_sentence(data, rows)}"
            for data, rows in of_each.items()
        ),
        table="\n\n".join(f"## {data}\n\n{markdown(table(rows))}" for data, rows in tables.items()),
        figure=lambda: draw_curves(of_each),
    )
