"""Files of an experiment: its results, its table, its figure, its README."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.protocol import CHANCE, LEVEL, Verdict

#: Width of a figure in inches: its texts can be read in print, and on a phone, which scales it to
#: its width.
WIDTH = 6.4
STYLE = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "svg.hashsalt": "raysel",
    "svg.fonttype": "none",
}


@dataclass(frozen=True)
class Report:
    """What is written of an experiment beside its results."""

    title: str
    #: What the paper claims, and its published figure or the sentence that describes it.
    claim: str
    published: str
    #: Figures of the page, each with what it is of.
    optimistic: str
    honest: str
    verdict: str
    #: What the verdict follows from, as the code decides it.
    rule: str
    #: Text of the README below the claim, in Markdown, and the whole table.
    text: str
    table: str
    #: Draws the figure.
    figure: Callable[[], Figure] | None = None
    #: Sentence on the method and the best other for the page, and their figures; of the main
    #: experiments only.
    conclusion: str = ""
    compared: pd.DataFrame | None = None
    #: Data of the published figures, where they differ from ours.
    other_data: str = ""


def write_results(folder: Path, results: pd.DataFrame) -> None:
    """Write results.csv: numbers with six significant digits."""
    folder.mkdir(parents=True, exist_ok=True)
    results.to_csv(folder / "results.csv", index=False, float_format="%.6g", lineterminator="\n")


def read_results(folder: Path) -> pd.DataFrame:
    """Read results.csv as it was written; texts stay texts."""
    return pd.read_csv(folder / "results.csv", keep_default_na=True)


def write_report(folder: Path, report: Report) -> None:
    """Write table.md, README.md and the figure as SVG and PNG; the same report gives the same
    bytes.
    """
    (folder / "table.md").write_text(report.table + "\n", encoding="utf-8")
    lines = [
        f"# {report.title}",
        f"**Claim.** {report.claim}",
        f"**Rule.** {report.rule}",
        f"**Verdict: {report.verdict}.** {report.text}",
    ]
    if report.other_data:
        lines.append(
            "**Published figures are of other data**, here for orientation only:"
            f" {report.other_data}."
        )
    if report.figure is not None:
        lines.append("![figure](figure.svg)")
        with rc_context(STYLE):
            write_figure(folder / "figure", report.figure())
    lines.append(report.table)
    (folder / "README.md").write_text("\n\n".join(lines) + "\n", encoding="utf-8")


def write_figure(path: Path, figure: Figure) -> None:
    """Write a figure as SVG and PNG, without the date."""
    for kind, metadata in (("svg", {"Date": None, "Creator": None}), ("png", {"Software": None})):
        with rc_context(STYLE):
            figure.savefig(path.with_suffix(f".{kind}"), metadata=metadata, dpi=130)


def panels(n: int, columns: int, height: float, **options: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure of n panels in rows of this height in inches; ``options`` are those of
    ``Figure.subplots``.

    It is called and drawn with the parameters of STYLE.
    """
    columns = min(columns, n)
    rows = -(-n // columns)
    figure = Figure(figsize=(WIDTH, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options).ravel()
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[n:]:
        ax.axis("off")
    return figure, list(axes[:n])


def conclusion(method: str, verdicts: Mapping[str, Verdict], where: str) -> str:
    """Say on how many data sets a method is better or worse than the best other."""
    better = sum(one.method > one.other and one.p < LEVEL for one in verdicts.values())
    worse = sum(one.method < one.other and one.p < LEVEL for one in verdicts.values())
    return (
        f"{where} {method} is better than the best other (P < {digits(LEVEL, 2)}) in {better} of"
        f" {len(verdicts)} comparisons, and worse in {worse}."
    )


def compared(method: str, verdicts: Mapping[str, Verdict], optimistic: pd.Series) -> pd.DataFrame:
    """Return a line a data set: the method, the best other by inner score, and the rival with the
    best honest score.

    ``optimistic`` are the scores of the method by data set.
    """
    return pd.DataFrame(
        [
            {"method": method, "data": data, "optimistic": digits(optimistic[data])}
            | {"honest": honest_score(one.method, optimistic[data])}
            | {"best other, by inner score": one.best_other, "its honest": digits(one.other)}
            | {"P of the difference": p_value(one.p)}
            | {"highest honest of a rival": f"{digits(one.highest_score)} ({one.highest})"}
            for data, one in verdicts.items()
        ]
    )  # fmt: skip


def draw_scores(ax: Axes, rows: pd.DataFrame, own: str) -> None:
    """Draw the optimistic and the honest score of each method, joined by a line, the best above.

    Own methods are diamonds. The axis starts below the lowest score: from chance on it would show
    no differences.
    """
    shown = (
        rows[rows["method"] != CHANCE]
        .dropna(subset=["honest"])
        .sort_values("honest")
        .reset_index(drop=True)
    )
    ax.hlines(shown.index, shown["honest"], shown["optimistic"], color="#999999", linewidth=1)
    hollow = {"markerfacecolor": "white", "color": "#555555", "markersize": 4}
    ax.plot(shown["optimistic"], shown.index, "o", label="optimistic", **hollow)
    is_own = shown["method"].str.startswith(own)
    for some, colour, marker, label in (
        (shown[~is_own], "#08519c", "o", "honest"),
        (shown[is_own], "#d95f02", "D", f"honest, {own}"),
    ):
        ax.scatter(
            some["honest"], some.index, color=colour, marker=marker, s=18, zorder=3, label=label
        )
    ax.set_yticks(
        shown.index, [fill(method, 22) for method in shown["method"]], fontsize=7, linespacing=0.9
    )
    ax.tick_params(axis="x", labelsize=7)


def markdown(table: pd.DataFrame) -> str:
    """Return a table in Markdown; missing cells are empty."""
    lines = [list(table.columns), ["---"] * table.shape[1], *table.map(_cell).to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    return "" if pd.isna(value) else str(value)


def tried(row: Mapping[str, Any] | pd.Series) -> str:
    """Return the number of configurations of a method, or why it has none."""
    return str(row["note"]) if pd.isna(row["configurations"]) else f"{row['configurations']:.0f}"


def p_value(p: float) -> str:
    """Return a P value as text."""
    return "P < .001" if p < 0.001 else f"P = {digits(p)}"


def honest_score(honest: float, optimistic: float) -> str:
    """Return an honest score as text, with a star where it is above the optimistic one."""
    star = " \\*" if round(honest, 3) > round(optimistic, 3) else ""
    return f"{digits(honest)}{star}"


def less(row: Mapping[str, Any] | pd.Series) -> str:
    """Return the method's score less that of a row, with its P value; empty for the method
    itself.
    """
    return "" if pd.isna(row["p"]) else f"{digits(-row['difference'])} ({p_value(row['p'])})"


def cpu(row: Mapping[str, Any] | pd.Series) -> str:
    """Return the CPU seconds of a fit; empty where they are not measured."""
    return "" if pd.isna(row["cpu_seconds"]) else f"{row['cpu_seconds']:.2g}"


def digits(value: float, n: int = 3) -> str:
    """Return a number below 1 as the papers print it: ``.834``; empty for NaN."""
    if not np.isfinite(value):
        return ""
    text = f"{value:.{n}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text
