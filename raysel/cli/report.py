"""Command ``report``, which writes the report of a study or a comparison as one HTML file."""

from __future__ import annotations

import argparse

from raysel.cli.command import Command, add_study


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_study(parser, newest=True)
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write (default: STUDY_DIR/report.html)")


def _run(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from raysel.core.printing import Terminal
    from raysel.core.storage.working_copy import opened_at, shown_place
    from raysel.results.comparison.export import write_comparison_report
    from raysel.results.page.report import write_report
    from raysel.run.api import open_comparison, open_study
    from raysel.tracking.directory import StudyDirectory, newest_study

    arguments.study = arguments.study or newest_study(Path())
    with opened_at(arguments.study, write=not arguments.output) as path:
        if StudyDirectory(path).members.exists():
            written = write_comparison_report(open_comparison(path), arguments.output)
        else:
            written = write_report(open_study(path), arguments.output)
        shown = shown_place(written)
    Terminal().print(shown, markup=False)
    return 0


COMMAND = Command(
    "report",
    "write the report of a study or of a comparison: one HTML file",
    _add_arguments,
    _run,
    "Write the report of a finished study or of a comparison: one HTML file that needs no network.",
)
main = COMMAND.main
