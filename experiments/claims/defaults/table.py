"""Tables of the results: scores, differences to the scripts, recovered columns and time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from raysel.numerics.inference import PairedComparison, paired_comparison

#: The drafted study, and the scripts that it is compared with.
DRAFT, SCRIPTS = "draft", ("filter-svm", "l1-logistic", "forest")
#: The script with the best mean on each data set, known in hindsight only.
_BEST_OF_THREE = "best of the three on each"


class Measured(NamedTuple):
    """Scores of a method on the outer folds of a data set, the planted columns that it found,
    and its CPU seconds.
    """

    scores: np.ndarray
    recovered: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.scores.mean():.3f} ± {self.scores.std(ddof=1):.3f}"


class Row(NamedTuple):
    """One data set: what it is, and each method's figures."""

    facts: dict[str, Any]
    methods: dict[str, Measured]

    @property
    def complete(self) -> bool:
        """Whether all methods were measured."""
        return {DRAFT, *SCRIPTS} <= set(self.methods)

    @property
    def best(self) -> str:
        """The script with the best mean."""
        return max(SCRIPTS, key=lambda name: self.methods[name].scores.mean())

    def against(self, script: str) -> PairedComparison:
        """The drafted study's scores minus a script's."""
        own, other = self.methods[DRAFT].scores, self.methods[script].scores
        return paired_comparison(own, other, float(self.facts["ratio"]), largest=1.0)


def rows_of(results: Sequence[dict[str, Any]]) -> list[Row]:
    """Join the methods of each data set."""
    found: dict[str, Row] = {}
    for one in results:
        row = found.setdefault(one["data"], Row(one, {}))
        scores = np.array(str(one["scores"]).split(), dtype=float)
        row.methods[one["method"]] = Measured(
            scores, str(one["recovered"]), float(one["cpu_seconds"])
        )
    return [row for row in found.values() if row.complete]


def interval(compared: PairedComparison) -> str:
    """Mean difference with its corrected 95 % interval, marked if that leaves out 0."""
    test, mean = compared.corrected, round(compared.mean, 9) + 0.0
    if test is None:
        return f"{mean:+.3f} ({compared.reason})"
    mark = " **worse**" if test.upper < 0 else " **better**" if test.lower > 0 else ""
    return f"{mean:+.3f} [{test.lower:+.3f}, {test.upper:+.3f}]{mark}"


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table in Markdown."""
    return [f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *lines)]


def score_lines(rows: Sequence[Row]) -> list[str]:
    """Test scores, and the difference between the draft and the best script."""
    lines = []
    for row in rows:
        facts = row.facts
        size = f"{facts['samples']} x {facts['columns']}, {facts['classes']}"
        scores = [str(row.methods[name]) for name in (DRAFT, *SCRIPTS)]
        lines.append(
            [facts["data"], size, facts["metric"], *scores, interval(row.against(row.best))]
        )
    return table(
        [
            "data",
            "samples x columns, classes",
            "metric",
            DRAFT,
            *SCRIPTS,
            "draft minus the best script",
        ],
        lines,
    )


def recovery_lines(rows: Sequence[Row]) -> list[str]:
    """Planted columns among as many of the best, and CPU seconds."""
    lines = []
    for row in rows:
        known = row.facts["telling"]
        found = [
            f"{row.methods[name].recovered} of {known}" if known else ""
            for name in (DRAFT, *SCRIPTS)
        ]
        lines.append(
            [
                row.facts["data"],
                *found,
                *(f"{row.methods[name].seconds:.0f}" for name in (DRAFT, *SCRIPTS)),
            ]
        )
    header = [f"{name}: {what}" for what in ("found", "s") for name in (DRAFT, *SCRIPTS)]
    return table(["data", *header], lines)


def best_on_average(rows: Sequence[Row]) -> str:
    """The script with the best mean over data sets."""
    return max(SCRIPTS, key=lambda name: np.mean([row.methods[name].scores.mean() for row in rows]))


def summary_lines(rows: Sequence[Row], usual: str) -> list[str]:
    """Mean difference of the draft to each script and to the best one, and how often it is worse
    or better.
    """
    lines = []
    for name in (_BEST_OF_THREE, *SCRIPTS):
        pairs = [row.against(name if name in SCRIPTS else row.best) for row in rows]
        means = np.array([pair.mean for pair in pairs]).round(4)  # the scores have four decimals
        error = means.std(ddof=1) / len(means) ** 0.5 if len(means) > 1 else np.nan
        tests = [pair.corrected for pair in pairs if pair.corrected is not None]
        counts = f"{(means > 0).sum()} / {(means == 0).sum()} / {(means < 0).sum()}"
        significant = [
            str(sum(test.lower > 0 for test in tests)),
            str(sum(test.upper < 0 for test in tests)),
        ]
        shown = f"{name} (best on average over all)" if name == usual else name
        lines.append([shown, f"{means.mean():+.4f} ± {error:.4f}", counts, *significant])
    header = [
        "draft minus",
        "mean ± SE over data sets",
        "higher / equal / lower",
        "significantly better",
        "worse",
    ]
    return table(header, lines)


def write_table(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the tables of both halves."""
    rows = rows_of(results)
    if not rows:
        return
    usual = best_on_average(rows)
    text = [f"## All {len(rows)} data sets", "", *summary_lines(rows, usual), ""]
    for half in ("looked at", "held back"):
        if part := [row for row in rows if row.facts["half"] == half]:
            parts = (summary_lines(part, usual), score_lines(part), recovery_lines(part))
            text += [
                f"## {len(part)} data sets {half}",
                *(line for lines in parts for line in ("", *lines)),
                "",
            ]
    path.write_text("\n".join(text), encoding="utf-8")
