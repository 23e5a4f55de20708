"""Table, figure and README of the experiment, from its results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure
from scipy import stats

from experiments.claims.tensors.planted import (
    ALPHAS,
    BLOCK,
    METHODS,
    ORDER_2,
    ORDER_3,
    SHAPE,
    TRIED_RANKS,
    UNFOLDINGS,
)
from experiments.claims.tensors.real import OWN
from experiments.protocol import LEVEL
from experiments.report import STYLE, digits, markdown, p_value, panels, write_figure
from raysel.numerics.inference import holm

COMMAND = (
    "    RAYSEL_DATA=<folder> python -m experiments.claims.tensors.run    # resumes what an earlier"
    " run left"
)
COST = """RAYSEL_DATA is the folder of Scene_multilabel.npz and LSP_sift_128x85.npz. It took {took}, with two processes
of one thread. `--fast` is a form of seconds, with few draws and configurations."""
BLOCKS = """**Planted blocks.** Samples of {shape} cells, and three classes whose means differ in a block of {block}
cells only: of each class a sum of outer products of normal vectors, as many as the true rank, with mean square 1.
*Noise* is the standard deviation of independent normal noise in all cells. Rank 3 hardly bounds blocks of this size.
*Precision* is the share of the block's {cells} cells among as many of the best. By three inner folds and the accuracy
of the method's own prediction are chosen: alpha ({alphas} of its largest; none for the Fisher score), of SMR the rank
({ranks}), and of order 2 also the axis along which the sample is unfolded. {draws} draws, the same for all methods.
Where noise is weak, most configurations predict every inner test sample, and the sparsest of these, which is chosen,
leaves cells out that the prediction does not need. ± and bands are 95 % intervals of the mean over draws; P values are
of paired t tests, in the table by Holm over all settings and rivals, of the means over settings above without a
correction."""
REAL = """**Real samples.** *Colour moments*: 2230 images of six classes, mean and variance of L, U and V on a grid of
7 x 7. Each of the six is standardised as a whole on the training samples, so that the grid keeps its contrasts.
*Orientation volume*: 2688 scenes of eight outdoor classes, eight orientations at 32 x 32 places, scaled by one range.
20 training samples a class; draws: {sizes}. Scores are accuracies of the nearest neighbour on the best cells; three
inner folds choose their number and the method's parameters ([study.yaml](study.yaml)). ± is the standard deviation over
draws; intervals and tests, these by Holm over the comparison, speak of draws from this pool of samples."""
SETTING = ["rank", "noise", "per_class"]
COLOURS = {ORDER_3: "#d95f02", ORDER_2: "#1b9e77", "SMR of vectors": "#7570b3", "RFS": "#e7298a"}
COLOURS |= {"Fisher score": "#444444"}
MARKERS = dict(zip(METHODS, "os^vD", strict=True))


def machine() -> str:
    """Processor of this machine, and how many cores a run has."""
    lines = (
        Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if Path("/proc/cpuinfo").exists()
        else []
    )
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        "processor",
    )
    return f"{len(os.sched_getaffinity(0))} cores, {model}"


def write(folder: Path) -> None:
    """Write table.md, README.md and the figure as SVG and PNG; the same results give the same
    bytes.
    """
    write_texts(folder)
    with rc_context(STYLE):
        write_figure(folder / "figure", figure(pd.read_csv(folder / "planted.csv")))


def write_texts(folder: Path) -> None:
    """Write table.md and README.md."""
    blocks, studies = pd.read_csv(folder / "planted.csv"), pd.read_csv(folder / "real.csv")
    cost = pd.read_csv(folder / "cost.csv")
    tables = "\n\n".join(
        ["## Planted blocks", markdown(block_table(blocks))]
        + [
            part
            for name, rows in studies.groupby("data", sort=False)
            for part in (f"## {name.capitalize()}", real_table(rows))
        ]
    )
    (folder / "table.md").write_text(tables + "\n", encoding="utf-8")
    (folder / "README.md").write_text(
        "\n\n".join([*page(blocks, studies, cost), tables]) + "\n", encoding="utf-8"
    )


def interval(values: pd.Series) -> tuple[float, float]:
    """Half of the 95 % interval of a mean over draws, and the P value of the mean being 0."""
    if len(values) < 2 or values.std(ddof=1) == 0.0:
        return 0.0, 1.0 if values.mean() == 0.0 else 0.0
    error = values.std(ddof=1) / np.sqrt(len(values))
    return float(stats.t.ppf(0.975, len(values) - 1) * error), float(
        stats.ttest_1samp(values, 0.0).pvalue
    )


def differences(blocks: pd.DataFrame) -> pd.DataFrame:
    """Precision of order 3 less that of each rival, in each setting: mean, half of its 95 %
    interval, P by Holm.
    """
    rows = [
        {**dict(zip(SETTING, setting, strict=True)), "rival": rival, "mean": less.mean()}
        | dict(zip(("half", "p"), interval(less), strict=True))
        for setting, own in blocks.groupby(SETTING)
        for rival in METHODS[1:]
        for less in [own[ORDER_3] - own[rival]]
    ]
    table = pd.DataFrame(rows)
    return table.assign(p=holm(list(table["p"])))


def figure(blocks: pd.DataFrame) -> Figure:
    """Draw the mean precision over the samples a class, a row of panels a rank, with 95 % bands."""
    ranks, noises = sorted(blocks["rank"].unique()), sorted(blocks["noise"].unique())
    drawn, axes = panels(len(ranks) * len(noises), len(noises), 2.2, sharex=True, sharey=True)
    for i, ax in enumerate(axes):
        rank, noise = ranks[i // len(noises)], noises[i % len(noises)]
        own = blocks[(blocks["rank"] == rank) & (blocks["noise"] == noise)]
        places = sorted(own["per_class"].unique())
        for method in METHODS[::-1]:
            of_each = [own.loc[own["per_class"] == n, method] for n in places]
            means = np.array([values.mean() for values in of_each])
            halves = np.array([interval(values)[0] for values in of_each])
            label = f"{method} (unfolding by inner folds)" if method == ORDER_2 else method
            style = {
                "color": COLOURS[method],
                "linewidth": 1,
                "markersize": 3.5,
                "marker": MARKERS[method],
            }
            ax.plot(places, means, label=label, **style)
            ax.fill_between(
                places,
                means - halves,
                means + halves,
                color=COLOURS[method],
                alpha=0.13,
                linewidth=0,
            )
        ax.set_xscale("log")
        ax.set_xticks(places, map(str, places))
        ax.minorticks_off()
        ax.set_title(f"rank {rank}, noise {noise}")
        if i // len(noises) == len(ranks) - 1:
            ax.set_xlabel("samples a class")
        if i % len(noises) == 0:
            ax.set_ylabel("precision")
    handles, labels = axes[0].get_legend_handles_labels()
    drawn.legend(
        handles[::-1], labels[::-1], loc="outside lower center", ncols=3, frameon=False, fontsize=7
    )
    return drawn


def block_table(blocks: pd.DataFrame) -> pd.DataFrame:
    """A line a setting: mean precision of each method, and what order 3 gains on the two nearest
    rivals.
    """
    pairs = differences(blocks).set_index([*SETTING, "rival"])
    lines = []
    for setting, own in blocks.groupby(SETTING):
        means = own.mean(numeric_only=True)
        line = dict(zip(("true rank", "noise", "samples a class"), setting, strict=True))
        line |= {method: digits(means[method], 2) for method in METHODS}
        line["order 2, best of the three in hindsight"] = digits(means[list(UNFOLDINGS)].max(), 2)
        for rival in (ORDER_2, "SMR of vectors"):
            pair = pairs.loc[(*setting, rival)]
            line[f"order 3 less {rival}"] = (
                f"{signed(pair['mean'])} ± {digits(pair['half'], 2)} ({p_value(pair['p'])})"
            )
        lines.append(line)
    return pd.DataFrame(lines)


def real_table(rows: pd.DataFrame) -> str:
    """A line a member: accuracy, difference to order 3 with its interval and test, cells, CPU
    time.
    """
    lines = []
    for _, row in rows.iterrows():
        line = {
            "method": row["method"],
            "accuracy": f"{digits(row['score'])} ± {digits(row['sd'])}",
        }
        if pd.isna(row["score"]):
            line["accuracy"] = row["note"]
        less = (
            ""
            if pd.isna(row.get("lower"))
            else (
                f"{signed(row['difference'], 3)} [{signed(row['lower'], 3)},"
                f" {signed(row['upper'], 3)}]"
            )
        )
        line |= {"less SMR order 3, 95 % interval": less}
        line |= {"test": "" if pd.isna(row.get("p")) else f"{p_value(row['p'])} ({row['test']})"}
        line |= {"configurations": f"{row['configurations']:.0f}", "cells chosen": row["features"]}
        lines.append(line | {"CPU s a fit": f"{row['cpu_seconds']:.2g}"})
    return markdown(pd.DataFrame(lines))


def signed(value: float, n: int = 2) -> str:
    """Return a difference with its sign, ``+.12``."""
    text = digits(abs(value), n)
    return f"{'-' if value < 0 and float(f'{value:.{n}f}') else '+'}{text}"


def page(blocks: pd.DataFrame, studies: pd.DataFrame, cost: pd.DataFrame) -> list[str]:
    """Paragraphs of README above the tables."""
    of_each = studies.groupby("data", sort=False)
    sizes = ", ".join(f"{rows['draws'].iloc[0]} of the {name}" for name, rows in of_each)
    minutes = ", ".join(
        f"{part} {n:.0f}" for part, n in zip(cost["part"], cost["minutes"], strict=True)
    )
    facts = {
        "shape": sides(SHAPE),
        "block": sides(BLOCK),
        "cells": np.prod(BLOCK),
        "draws": blocks["draw"].nunique(),
    }
    facts |= {"alphas": listed_numbers(ALPHAS), "ranks": listed_numbers(TRIED_RANKS)}
    took = f"{cost['minutes'].sum():.0f} minutes ({minutes}) on {cost['machine'].iloc[0]}"
    return [
        "# When samples of order 3 are worth keeping",
        wrapped(f"**Claim, measured.** {block_sentence(blocks)}"),
        *(wrapped(real_sentence(name, rows)) for name, rows in of_each),
        COMMAND,
        wrapped(COST.format(took=took)),
        wrapped(BLOCKS.format(**facts)),
        "![figure](figure.svg)",
        wrapped(REAL.format(sizes=sizes)),
    ]


def listed_numbers(values: Sequence[float]) -> str:
    """Numbers as a list in a sentence."""
    return ", ".join(f"{value:g}" for value in values)


def sides(shape: Sequence[int]) -> str:
    """Sides of a sample as text."""
    return " x ".join(map(str, shape))


def wrapped(text: str) -> str:
    """Return a paragraph in lines of at most 120 characters."""
    return fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)


def block_sentence(blocks: pd.DataFrame) -> str:
    """Say how far order 3 is ahead of each rival, and of the best one where: the settings where
    most and least.
    """
    pairs = differences(blocks)
    overall = []
    for rival in METHODS[1:]:
        of_draws = (blocks[ORDER_3] - blocks[rival]).groupby(blocks["draw"]).mean()
        half, p = interval(of_draws)
        overall.append(f"{rival} by {signed(of_draws.mean())} ± {digits(half, 2)} ({p_value(p)})")
    means = blocks.groupby(SETTING)[list(METHODS)].mean()
    rivals = means.drop(columns=ORDER_3)
    gains = means[ORDER_3] - rivals.max(axis=1)
    marginal = [
        f"{signed(gains.xs(value, level=name).mean())} {what.format(value)}"
        for name, what in (
            ("rank", "at rank {}"),
            ("noise", "at noise {:g}"),
            ("per_class", "with {} samples a class"),
        )
        for value in gains.index.unique(name)
    ]
    apart = (pairs["p"] < LEVEL).groupby([pairs[name] for name in SETTING]).all() & (gains > 0)
    most, least = (
        f"noise {noise:g} with {n} samples a class at rank {rank} ({signed(gains[rank, noise, n])})"
        for rank, noise, n in (gains.idxmax(), gains.idxmin())
    )
    by_size, by_noise = (gains.groupby(name).mean() for name in ("per_class", "noise"))
    where = []
    if by_size.iloc[0] > max(by_size.iloc[-1], 0.0):
        where.append(f"samples are few ({signed(by_size.iloc[0])} with {by_size.index[0]} a class)")
    if by_noise.iloc[-1] > max(by_noise.iloc[0], 0.0):
        where.append(f"noise is strong ({signed(by_noise.iloc[-1])} at {by_noise.index[-1]:g})")
    pays = f"It pays where {' or '.join(where)}." if where else "It pays in none of these settings."
    return (
        f"{pays} Of a planted block SMR of order 3 finds more than {', '.join(overall)}, as the"
        f" mean over {len(gains)} settings. Against the rival that finds most in a setting it gains"
        f" {', '.join(marginal)}. It is ahead of all in {(gains > 0).sum()} of {len(gains)}"
        f" settings, and of each with P < .05 by Holm in {apart.sum()}. It gains most at {most},"
        f" and least at {least}, where the {rivals.loc[gains.idxmin()].idxmax()} finds most."
    )


def real_sentence(name: str, rows: pd.DataFrame) -> str:
    """Say whether order 3 is better than every other selector on a data set, and what is best."""
    scored = rows.dropna(subset=["score"]).set_index("method")
    others = scored.drop(index=OWN)
    # Of the score's differences: those of the others less order 3.
    better = (others["difference"] < 0) & (others["p"] < LEVEL)
    worse = (others["difference"] > 0) & (others["p"] < LEVEL)
    unfolded = others[others.index.str.startswith("SMR order 2")]
    best = others["score"].idxmax()
    gain = "no gain" if not better[unfolded.index].all() else "a gain on every unfolding"
    return (
        f"On the {name} there is {gain}: order 3 has {digits(scored.loc[OWN, 'score'])}, the"
        f" unfoldings {', '.join(digits(value) for value in unfolded['score'])}, and most {best},"
        f" {digits(others.loc[best, 'score'])}. It is better (P < .05) than"
        f" {listed(others.index[better])}, and worse than {listed(others.index[worse])}."
    )


def listed(names: pd.Index) -> str:
    """Names as a list in a sentence that counts other methods."""
    return ", ".join(names) if len(names) else "no other method"
