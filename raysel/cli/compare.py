"""Command ``python -m raysel.compare``, which prints a comparison again, or joins those of several data sets."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack

from raysel.cli.arguments import print_error
from raysel.cli.comparison import print_comparison, print_joined
from raysel.core.errors import RayselError
from raysel.core.printing import Terminal
from raysel.core.storage.working_copy import opened_at, shown_place
from raysel.results.comparison.data_sets import JoinedComparison
from raysel.results.comparison.export import export_comparison, write_comparison_report
from raysel.run.api import open_comparison
from raysel.tracking.comparisons.record import RESULTS

_JOINED = "raysel-comparison"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    arguments = _parser().parse_args(argv)
    out = Terminal()
    try:
        with ExitStack() as places:
            one = len(arguments.comparison) == 1 and not arguments.output
            paths = [places.enter_context(opened_at(place, write=one)) for place in arguments.comparison]
            found = [open_comparison(path) for path in paths]
            if len(found) == 1:
                written = export_comparison(found[0], arguments.output or paths[0] / RESULTS)
                if one:
                    written.append(write_comparison_report(found[0]))
                print_comparison(found[0], out)
            else:
                joined = JoinedComparison.join(found)
                written = joined.export(arguments.output or _JOINED)
                print_joined(joined, out)
            shown = [shown_place(file) for file in written]
    except RayselError as error:
        print_error(error)
        return 2
    out.print()
    for file in shown:
        out.print(file, markup=False)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m raysel.compare",
        description="Print a comparison again and write its files, or join the comparisons of several data sets: mean "
        "ranks, Friedman's test and Nemenyi's critical difference.",
    )
    parser.add_argument(
        "comparison", nargs="+", metavar="DIR", help="directory or URI of a study with the key `compare`"
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        help=f"folder to write to (default: the comparison's folder `{RESULTS}`; `{_JOINED}` for several)",
    )
    return parser
