"""Command ``python -m raysel.report``, which writes the report of a study or a comparison as one HTML file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from raysel.cli.arguments import print_error
from raysel.core.errors import RayselError
from raysel.core.printing import Terminal
from raysel.core.storage.working_copy import opened_at, shown_place
from raysel.results.comparison.export import write_comparison_report
from raysel.results.page.assemble import write_report
from raysel.run.api import open_comparison, open_study
from raysel.tracking.comparisons.directory import ComparisonDirectory
from raysel.tracking.directory import newest_study


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    arguments = _parser().parse_args(argv)
    place: str | Path = ""
    try:
        place = arguments.study or newest_study(Path())
        with opened_at(place, write=not arguments.output) as path:
            if ComparisonDirectory(Path(path)).members.exists():
                written = shown_place(write_comparison_report(open_comparison(path), arguments.output))
            else:
                written = shown_place(write_report(open_study(path), arguments.output))
    except RayselError as error:
        print_error(error, place)
        return 2
    Terminal().print(str(written), markup=False)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m raysel.report",
        description="Write the report of a finished study or of a comparison: one HTML file that needs no network.",
    )
    parser.add_argument(
        "study", nargs="?", metavar="STUDY_DIR", help="directory or URI (default: the newest below this directory)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write (default: STUDY_DIR/report.html)")
    return parser
