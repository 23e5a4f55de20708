"""Report of a comparison as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from raysel.comparison.export import figure_of
from raysel.comparison.stored import StoredComparison
from raysel.comparison.tables import score_table
from raysel.comparison.words import TextTable, comparison_text
from raysel.display.page.contents import Block, Page, Picture, Section, Table, Text, csv_download
from raysel.display.page.render import render_page
from raysel.files import write_result
from raysel.printing.shortening import short
from raysel.tracking.comparisons.directory import ComparisonDirectory
from raysel.version import __version__

if TYPE_CHECKING:
    import pandas as pd


def write_comparison_report(comparison: StoredComparison, path: str | Path | None = None) -> Path:
    """Write the report of a comparison as one HTML file that needs no network, by default into its directory."""
    html = render_page(page_of_comparison(comparison))
    target = ComparisonDirectory(comparison.path).report if path is None else path
    return write_result(target, html.encode("utf-8", "replace"))


def page_of_comparison(comparison: StoredComparison) -> Page:
    """Return the contents of the report: the scores first, then every other table, a figure and how to read them."""
    text = comparison_text(comparison)
    first, *others = text.tables
    blocks: list[Block] = [_table(first, "scores.csv", score_table(comparison)), Text(text.notes, "note")]
    if comparison.studies:
        from raysel.display.page.svg import inline_svg  # noqa: PLC0415 - loads matplotlib

        caption = "Test scores of the methods, each run a point, and their differences to the reference."
        blocks.append(Picture(inline_svg(figure_of(comparison), "comparison", caption), caption, on_white=True))
    details: list[Block] = [_table(table) for table in others]
    members = [f"{member.label}: {member.path.name}/report.html" for member in comparison.finished]
    sections = [
        Section("scores", "The answer", blocks),
        *([Section("details", "In detail", details)] if details else []),
        Section("reading", "How to read it", [Text(text.remarks)]),
        Section("members", "Reports of the methods", [Text(members or ["No method has a result."])]),
    ]
    return Page(short(comparison.name, 120), text.title, sections, f"Written by raysel {__version__}.")


def _table(table: TextTable, name: str = "", frame: pd.DataFrame | None = None) -> Table:
    words = [i for i in range(len(table.header)) if not table.is_number(i)]
    data = None if frame is None else csv_download(name, list(frame.columns), frame.itertuples(index=False))
    heads = [head.replace("_", " ") for head in table.header]
    return Table(f"{table.title}.", heads, table.rows, words, download=data)
