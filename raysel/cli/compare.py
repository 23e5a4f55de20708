"""Command ``compare``: a comparison printed again, or those of several data sets joined."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from raysel.cli.commands import JOINED
from raysel.core.credentials import bare_uri
from raysel.core.printing import Terminal
from raysel.core.storage.working_copy import opened_at, shown_place
from raysel.results.comparison.data_sets import JoinedComparison
from raysel.results.comparison.export import export_comparison, write_comparison_report
from raysel.results.comparison.result import ComparisonResult
from raysel.results.comparison.words import TextTable, comparison_text
from raysel.run.api import open_comparison
from raysel.tracking.directory import RESULTS, ComparisonRecord, StudyDirectory, started_members
from raysel.tracking.journal_upload import notices, tracking_status

#: Width of the tables where the output is no terminal.
_WIDTH = 100
#: Width up to which a cell is kept from breaking.
_WIDEST = 26
#: Blanks between two columns.
_GAP = 2


def run(arguments: Namespace) -> int:
    """Print a comparison again and write its files, or join several."""
    out = Terminal()
    with ExitStack() as places:
        one = len(arguments.comparison) == 1 and not arguments.output
        paths = [places.enter_context(opened_at(place, write=one)) for place in arguments.comparison]
        comparisons = [open_comparison(path) for path in paths]
        if len(comparisons) == 1:
            written = export_comparison(comparisons[0], arguments.output or paths[0] / RESULTS)
            if one:
                written.append(write_comparison_report(comparisons[0]))
            print_comparison(comparisons[0], out)
        else:
            joined = JoinedComparison.join(comparisons)
            written = joined.export(arguments.output or JOINED)
            print_joined(joined, out)
        shown = [shown_place(file) for file in written]
    out.print()
    for file in shown:
        out.print(file)
    return 0


def print_comparison(comparison: ComparisonResult, out: Console) -> None:
    """Print the tables of a comparison with their footnotes, and how they are to be read."""
    text = comparison_text(comparison)
    out.print(text.title, style="bold", markup=False)
    for table in text.tables:
        _print_table(table, out)
        if table is text.tables[0] and text.notes:
            _print_lines(text.notes, out, style="yellow")
    _print_lines(text.remarks, out)


def print_joined(joined: JoinedComparison, out: Console) -> None:
    """Print the scores and mean ranks of methods over several data sets, and their tests."""
    out.print(joined.title, style="bold", markup=False)
    _print_table(joined.text_table(), out)
    _print_lines(joined.remarks(), out)


def print_comparison_files(directory: StudyDirectory, out: Console) -> None:
    """Print where the files and the runs of a comparison are."""
    record, status = ComparisonRecord.read(directory), tracking_status(directory)
    results = f"{shown_place(directory.results)}/ (comparison.md, comparison.csv, comparison.svg, ...)"
    out.print(f"\nreport     {shown_place(directory.report)}", markup=False)
    out.print(f"comparison {results}", markup=False)
    out.print(f"MLflow     {bare_uri(record.uri)}, experiment {record.experiment}", markup=False)
    for text in notices(map(tracking_status, (directory, *started_members(directory)))):
        out.print(f"           {text}", style="yellow", markup=False)
    if not status["complete"]:
        why = status["error"] or "MLflow was too slow"
        command = f"python -m raysel.tune --replay {shlex.quote(shown_place(directory.path))}"
        out.print(f"           not all runs are uploaded: {why}. To upload them again: {command}", markup=False)


def _print_lines(lines: Iterable[str], out: Console, style: str | None = None) -> None:
    out.print()
    for line in lines:
        out.print(line, style=style, markup=False)


def _print_table(table: TextTable, out: Console) -> None:
    """Print a table; columns that do not fit beside the others follow below, with the names of the rows again."""
    width = out.width if out.is_terminal else _WIDTH
    header = [name.replace("_", " ") for name in table.header]
    out.print()
    out.print(table.title, style="dim", markup=False)
    for number, widths in enumerate(_blocks(table, header, width)):
        shown = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
        for i, columns in widths.items():
            justify: JustifyMethod = "right" if table.is_number(i) else "left"
            shown.add_column(Text(header[i]), justify=justify, width=columns, overflow="fold")
        for row in table.rows:
            if not number or any(row[i] for i in list(widths)[1:]):
                shown.add_row(*[Text(row[i]) for i in widths])
        if number:
            out.print()
        if out.is_terminal:
            out.print(shown)
            continue
        # The width that print takes cannot exceed the console's, which is 80 without a terminal.
        before, out.width = out.width, width
        out.print(shown)
        out.width = before


def _blocks(table: TextTable, header: Sequence[str], width: int) -> Iterator[dict[int, int]]:
    """Columns that fit side by side, each with its width; the first column is in every block."""
    least, whole = [], []
    for i, name in enumerate(header):
        cells = [row[i] for row in table.rows]
        # No figure, no name of a row and no word of a header is broken; settings and long remarks may be.
        kept = cells if table.is_number(i) or not i else [word for cell in cells for word in cell.split()]
        least.append(max([min(max(map(len, kept), default=1), _WIDEST), *map(len, name.split())]))
        whole.append(max(len(name), *map(len, cells)))
    start = 1
    while start < len(header):
        block, used = [0, start], least[0] + _GAP + least[start]
        while block[-1] + 1 < len(header) and used + _GAP + least[block[-1] + 1] <= width:
            block.append(block[-1] + 1)
            used += _GAP + least[block[-1]]
        start = block[-1] + 1
        widths = {i: least[i] for i in block}
        spare = max(width - used, 0)
        for i in sorted(block, key=lambda i: whole[i] - least[i]):
            added = min(max(whole[i] - least[i], 0), spare)
            widths[i], spare = widths[i] + added, spare - added
        yield widths
