"""Tables: as text, as CSV files, of the inner fits of a study, and columns of a stored table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

from raysel.core.arrays import LabelArray
from raysel.core.printing import csv_cell, escaped
from raysel.data.formats.isolated import isolated_table
from raysel.evaluation.records import TrialRecord

if TYPE_CHECKING:
    import pandas as pd


#: Cell without a figure, and that of a method without a result.
NONE, NO_RESULT = "-", "no result"


@dataclass(frozen=True)
class TextTable:
    """A table of strings."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""

    def is_number(self, column: int) -> bool:
        """Whether the cells of a column start with figures, to be aligned on the right."""
        cells = [row[column] for row in self.rows if row[column] not in ("", NONE)]
        figures = [cell for cell in cells if cell[0] in "0123456789+-<"]
        return (
            column > 0
            and bool(figures)
            and all(c in figures or c.startswith((NO_RESULT, NONE)) for c in cells)
        )

    @property
    def text_columns(self) -> list[int]:
        """Columns whose cells do not start with figures."""
        return [i for i in range(len(self.header)) if not self.is_number(i)]

    def markdown(self) -> str:
        """Return the table in Markdown below its title; no character of a cell has a meaning."""
        rules = ["---:"] * len(self.header)
        for i in self.text_columns:
            rules[i] = "---"
        lines = [[in_markdown(cell) for cell in line] for line in (self.header, *self.rows)]
        return f"**{in_markdown(self.title)}**\n\n{markdown_table(lines, rules)}"


def markdown_table(lines: Sequence[Sequence[str]], rules: Sequence[str] = ()) -> str:
    """Return lines of cells as a table in Markdown; the first line is its header."""
    rows = ["|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|" for line in lines]
    return "\n".join([rows[0], f"|{'|'.join(rules or ['---'] * len(lines[0]))}|", *rows[1:]])


def in_markdown(text: str) -> str:
    """Return text on one line in which no character has a meaning in Markdown's tables."""
    return re.sub(r"([\\|*_<>`\[\]#])", r"\\\1", escaped(" ".join(text.split())))


def csv_content(frame: pd.DataFrame) -> bytes:
    """Return a data frame as a CSV file, texts as `csv_cell` returns them."""
    return frame.rename(columns=csv_cell).map(csv_cell).to_csv(index=False).encode()


def trace_table(records: Iterable[TrialRecord], labels: Sequence[str]) -> pa.Table:
    """Return the objective and scores of all inner fits, one row an iteration."""
    names = [f"score_{label}" for label in labels] or ["score"]
    rows: list[tuple[object, ...]] = []
    for record in records:
        for fold, trace in record.folds.items():
            for number, inner in enumerate(trace.inner):
                # Trials that share the steps of a Pipeline compute no objective.
                objective: Sequence[float | None] = inner.objective
                if not objective:
                    objective = [None] * len(inner.scores)
                unscored = len(objective) - len(inner.scores)
                scores = [[None] * len(names)] * unscored + inner.scores
                steps = enumerate(zip(objective, scores, strict=True))
                rows += (
                    (record.id, record.name, fold, number, i, value, *row)
                    for i, (value, row) in steps
                )
    kinds = {"trial": pa.string(), "configuration": pa.string(), "fold": pa.string()}
    kinds |= {
        "inner": pa.int32(),
        "iteration": pa.int32(),
        **dict.fromkeys(("objective", *names), pa.float64()),
    }
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    return pa.table(
        [pa.array(values, kind) for values, kind in zip(columns, kinds.values(), strict=True)],
        [*kinds],
    )


def read_numbers(
    path: Path, columns: Iterable[str], n_rows: Sequence[int]
) -> dict[str, LabelArray]:
    """Read columns of numbers of a Parquet file that has one of some numbers of rows."""
    table = isolated_table(path)
    if table.num_rows not in n_rows:
        raise ValueError(f"{path.name} has {table.num_rows} rows, not {n_rows[0]}")
    return {name: _numbers(table, name, path) for name in columns}


def _numbers(table: Any, name: str, path: Path) -> LabelArray:
    position = table.schema.get_field_index(name)
    kind = pa.null()
    if position >= 0:
        kind = table.schema.field(position).type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise ValueError(f"{path.name} has no column {name} of numbers")
    values: LabelArray = table[name].to_numpy()
    return values
