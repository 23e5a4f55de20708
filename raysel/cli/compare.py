"""Command ``compare``: a comparison printed again, or those of several data sets joined."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Iterable
from contextlib import ExitStack

from rich.console import Console

from raysel.cli.commands import JOINED
from raysel.cli.summary import (
    print_line,
    print_no_upload,
    print_sentence,
    print_table,
    print_upload,
)
from raysel.config import load_comparison
from raysel.core.credentials import bare_uri
from raysel.core.printing import Terminal, program
from raysel.core.storage.working_copy import opened_at, shown_place
from raysel.results.comparison.data_sets import JoinedComparison
from raysel.results.comparison.export import export_comparison, write_comparison_report
from raysel.results.comparison.result import ComparisonResult
from raysel.results.comparison.texts import comparison_text
from raysel.run.api import open_comparison
from raysel.tracking.directory import RESULTS, ComparisonRecord, StudyDirectory, started_members
from raysel.tracking.journal_upload import tracking_status


def run(arguments: Namespace) -> int:
    """Print a comparison again and write its files, or join several."""
    out = Terminal()
    with ExitStack() as places:
        one = len(arguments.comparison) == 1 and not arguments.output
        paths = [
            places.enter_context(opened_at(place, write=one)) for place in arguments.comparison
        ]
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
    out.print(text.title, markup=False, style="bold")
    if text.answer:
        _print_lines(text.answer, out)
    for table in text.tables:
        out.print()
        print_table(table, out)
        if table is text.tables[0] and text.notes:
            _print_lines(text.notes, out, style="yellow")
    _print_lines(text.remarks, out)


def print_outcome(comparison: ComparisonResult, out: Console) -> None:
    """Print the scores of a comparison and the differences to the reference, on one screen."""
    text = comparison_text(comparison)
    print_sentence(out, text.title, style="bold")
    if text.verdict:
        print_sentence(out, text.verdict, style="yellow")
    for table in filter(None, (text.tables[0], text.differences)):
        print_table(table, out)


def print_joined(joined: JoinedComparison, out: Console) -> None:
    """Print the scores and mean ranks of methods over several data sets, and their tests."""
    out.print(joined.title, markup=False, style="bold")
    out.print()
    print_table(joined.text_table(), out)
    _print_lines(joined.remarks(), out)


def print_comparison_files(directory: StudyDirectory, out: Console) -> None:
    """Print where the files and the runs of a comparison are."""
    record, place = ComparisonRecord.read(directory), shlex.quote(shown_place(directory.path))
    print_line(out, "report", shown_place(directory.report))
    print_line(out, "next", f"{program()} compare {place}")
    if not next(iter(load_comparison(directory.config).members.values())).tracking.mlflow:
        print_no_upload(directory.path, out)
        return
    print_line(out, "MLflow", f"{bare_uri(record.uri)}, experiment {record.experiment}")
    print_upload(
        directory.path, map(tracking_status, (directory, *started_members(directory))), out
    )


def _print_lines(lines: Iterable[str], out: Console, style: str | None = None) -> None:
    out.print()
    for line in lines:
        out.print(line, markup=False, style=style)
