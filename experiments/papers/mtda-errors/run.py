"""MTDA, Table 2: error of the nearest neighbour on three face sets, task by task, against
single-task methods.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.experiment import Experiment, Row, read, short_grids
from experiments.papers import faces
from experiments.papers.literal_mtda import error, iterate, task_of
from experiments.protocol import RULE, joined_verdict, summary, triple, verdict
from experiments.report import (
    Report,
    compared,
    conclusion,
    digits,
    draw_scores,
    markdown,
    p_value,
    panels,
    tried,
)

METHOD, RIVALS = "MTDA", ("PCA", "LDA-rt", "LDA-tr", "Aggregate")
SIZES = (9, 20, 39, 67)
#: Width d' of the paper, sizes d, and the iteration at which the literal algorithm is stopped.
WIDTH, LITERAL_SIZES, ITERATIONS = 300, (39, 99), 25


def literal(*, files: Row, per_person: int, draw: int, size: int) -> Iterator[Row]:
    """Error of each task by the literal algorithm, with random directions of the null space."""
    sets = list(faces.splits(files, per_person, draw))
    rng, width = np.random.default_rng([0, draw]), min(WIDTH, faces.n_pixels(files))
    tasks = [task_of(X, y, width, rng) for X, y, _, _ in sets]
    _, bases = list(islice(iterate(tasks, width, size, rng), ITERATIONS))[-1]
    for name, U, (X, y, X_test, y_test) in zip(files, bases, sets, strict=True):
        yield {"at": name, "error": error(U, (X, y), (X_test, y_test))}


def measure(experiment: Experiment) -> pd.DataFrame:
    """Optimistic and honest accuracy of every method on every task, for each number of training
    images.
    """
    files = faces.paths(experiment)
    draws = 2 if experiment.fast else 20
    tables = []
    for p in (2,) if experiment.fast else (2, 3, 4, 5):
        changes: Row = {"cv.train_per_class": p, "cv.repeats": draws, "cv.inner": min(p, 3)}
        changes["dataset.tasks"] = [{"name": name, "path": file} for name, file in files.items()]
        # A ratio trace ends at c - 1, the others at the rank of the smallest inner training set.
        n_classes = [len(np.unique(read(file).y)) for file in files.values()]
        left = p - -(-p // min(p, 3))  # images a person
        most = min(n_classes) * left - 1
        for label in (
            "MTDA",
            "MTDA printed, in the range",
            "PCA",
            "LDA-tr",
            "Aggregate, trace ratio in the range",
        ):
            changes[f"compare.{label}.solver.space.n_components"] = [
                None,
                *(n for n in SIZES if n <= most),
            ]
        changes["compare.LDA-rt.solver.space.n_components"] = [
            None,
            *(n for n in SIZES[:-1] if n < min(n_classes)),
        ]
        pooled = max(n_classes) * left - 1
        changes["compare.Aggregate.solver.space.n_components"] = [
            n for n in (39, 79) if n <= pooled
        ] or [pooled]
        config = experiment.config("study")
        if experiment.fast:
            changes |= short_grids(config["compare"], changes)
        comparison: Any = experiment.compare(f"p{p}", config, changes)
        tables.append(triple(experiment, f"p = {p}", comparison))
        alone = {
            "pixels": np.array(
                [refit.references["all features"] for refit in comparison.studies["PCA"].outer]
            )
        }
        for size in LITERAL_SIZES[:1] if experiment.fast else LITERAL_SIZES:
            units = [{"per_person": p, "draw": draw, "size": size} for draw in range(draws)]
            errors = experiment.measure(literal, units, files=files)["error"].to_numpy()
            alone[f"MTDA literal, d = {size}"] = 1 - errors.reshape(draws, -1)
        rows = [
            summary(
                method, task, 1, of_task, of_task
            )  # without a choice the optimistic score is the honest one
            for method, scores in alone.items()
            for task, of_task in zip(files, scores.T, strict=True)
        ]
        tables.append(pd.DataFrame(rows).assign(data=f"p = {p}"))
    return pd.concat(tables, ignore_index=True)


def report(results: pd.DataFrame, published: pd.DataFrame) -> Report:
    """Errors task by task beside the published ones, and what survives."""
    printed = {(f"p = {row.at}", row.method, row.data): row.value for row in published.itertuples()}
    of_each = dict(iter(results.groupby("data", sort=False)))
    verdicts = {data: verdict(rows, METHOD, RIVALS) for data, rows in of_each.items()}
    parts, sentences = [], []
    for data, rows in of_each.items():
        tasks = [at for at in dict.fromkeys(rows["at"]) if at not in ("mean", "chosen")]
        lines = []
        for method, of_method in rows.groupby("method", sort=False):
            own = of_method.set_index("at")
            line = {"method": method, "configurations": tried(own.iloc[-1])}
            for task in tasks if tasks[0] in own.index else ():  # a method that failed has none
                row = own.loc[task]
                line[f"{task}: published"] = digits(printed.get((data, method, task), np.nan))
                line["optimistic" + " " * len(line)] = digits(1 - row["optimistic"])
                line["honest" + " " * len(line)] = (
                    f"{digits(1 - row['honest'])} ± {digits(row['honest_sd'])}"
                )
            lines.append(line)
        parts += [f"## {data}: errors, lower is better", markdown(pd.DataFrame(lines))]
        chosen, v = rows[rows["at"] == "chosen"].set_index("method"), verdicts[data]
        sentences.append(
            f"{data}: MTDA has the error {digits(1 - v.method)}, the best other by inner score,"
            f" {v.best_other}, {digits(1 - v.other)} ({p_value(v.p)} by Holm, for these"
            f" {chosen.loc[METHOD, 'runs']:.0f} draws; mean over tasks)"
        )
    means = {
        data: rows[(rows["method"] == METHOD) & (rows["at"] == "chosen")].iloc[0]
        for data, rows in of_each.items()
    }
    mtda = [value for (_, method, _), value in printed.items() if method == METHOD]
    best = pd.Series({key: value for key, value in printed.items() if key[1] == "LDA-tr"})
    return Report(
        title="MTDA on three face sets",
        claim=(
            "MTDA has the smallest error on every task, at every number of training images"
            " (Table 2)."
        ),
        published=f"mean error {digits(float(np.mean(mtda)))}, LDA-tr {digits(float(best.mean()))}",
        optimistic="mean error "
        + ", ".join(
            f"{digits(1 - row['optimistic'])} (p = {row['data'][4:]})" for _, row in means.items()
        ),
        honest="mean error "
        + ", ".join(
            f"{digits(1 - row['honest'])} (p = {row['data'][4:]})" for _, row in means.items()
        ),
        other_data="AR of 33 x 24 pixels, PIE of 49 images a person",
        rule=f"{RULE} A data set is here one p, with the mean over its tasks.",
        verdict=joined_verdict([one.holds for one in verdicts.values()]),
        conclusion=conclusion(
            METHOD, verdicts, "With p training images a person (mean accuracy of the tasks)"
        ),
        compared=compared(
            METHOD, verdicts, pd.Series({data: row["optimistic"] for data, row in means.items()})
        ),
        text="; ".join(sentences)
        + ". Errors of the nearest neighbour; a task's figures are those of the configuration that"
        " its own inner scores choose, the mean over tasks of one configuration for all. PIE is"
        " the frontal stand-in.",
        table="\n\n".join(parts),
        figure=lambda: draw(of_each),
    )


def draw(of_each: dict[str, pd.DataFrame]) -> Figure:
    """Optimistic and honest mean error of each method, joined by a line, a panel each p."""
    figure, axes = panels(len(of_each), 2, 2.4)
    for ax, (data, rows) in zip(axes, of_each.items(), strict=True):
        chosen = rows[rows["at"] == "chosen"]
        draw_scores(
            ax,
            chosen.assign(**{name: 1 - chosen[name] for name in ("optimistic", "honest")}),
            METHOD,
        )
        ax.invert_yaxis()
        ax.set(title=data, xlabel="mean error, lower is better", xlim=(0, None))
    axes[0].legend(frameon=False, fontsize=7)
    return figure
