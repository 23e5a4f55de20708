"""Comparison of several studies as the commands print it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raysel.comparison.data_sets import JoinedComparison
from raysel.comparison.result import ComparisonResult
from raysel.comparison.words import TextTable, comparison_text

#: Width of the tables where the output is no terminal.
_WIDTH = 100
#: Width up to which a column is kept from breaking.
_WIDEST = 26


def print_comparison(comparison: ComparisonResult, out: Console) -> None:
    """Print the tables of a comparison with their footnotes, and how they are to be read.

    Parameters
    ----------
    comparison : ComparisonResult
        Comparison.
    out : Console
        Console to print to.
    """
    text = comparison_text(comparison)
    _print(text.title, out, style="bold")
    for table in text.tables:
        _print_table(table, out)
        if table is text.tables[0] and text.notes:
            _print_lines(text.notes, out, style="yellow")
    _print_lines(text.remarks, out)


def print_joined(joined: JoinedComparison, out: Console) -> None:
    """Print the scores and mean ranks of methods over several data sets, and their tests.

    Parameters
    ----------
    joined : JoinedComparison
        Comparisons on several data sets.
    out : Console
        Console to print to.
    """
    _print(joined.title, out, style="bold")
    _print_table(joined.text_table(), out)
    _print_lines(joined.remarks(), out)


def _print(text: str, out: Console, style: str = "") -> None:
    out.print(text, markup=False, style=style or None)


def _print_lines(lines: Iterable[str], out: Console, style: str = "") -> None:
    out.print()
    for line in lines:
        _print(line, out, style)


def _print_table(table: TextTable, out: Console) -> None:
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for i, name in enumerate(table.header):
        header = Text(name.replace("_", " "))
        # No figure and no word of a header is broken where the terminal is narrow; names and settings may be.
        cells = [row[i] for row in table.rows] if table.is_number(i) or not i else []
        least = min(max(len(part) for part in [*header.plain.split(), *cells]), _WIDEST)
        width = least if table.is_number(i) else None
        shown.add_column(header, justify="right" if width else "left", min_width=least, width=width, overflow="fold")
    for row in table.rows:
        shown.add_row(*[Text(cell) for cell in row])
    out.print()
    _print(table.title, out, style="dim")
    out.print(shown, width=None if out.is_terminal else _WIDTH)
