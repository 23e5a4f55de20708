"""Command ``compare``, which prints a comparison again, or joins those of several data sets."""

from __future__ import annotations

import argparse

from raysel.cli.command import Command

_JOINED = "raysel-comparison"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "comparison", nargs="+", metavar="DIR", help="directory or URI of a study with the key `compare`"
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        help=f"folder to write to (default: the comparison's folder `comparison`; `{_JOINED}` for several)",
    )


def _run(arguments: argparse.Namespace) -> int:
    from contextlib import ExitStack

    from raysel.cli.comparison import print_comparison, print_joined
    from raysel.core.printing import Terminal
    from raysel.core.storage.working_copy import opened_at, shown_place
    from raysel.results.comparison.data_sets import JoinedComparison
    from raysel.results.comparison.export import export_comparison, write_comparison_report
    from raysel.run.api import open_comparison
    from raysel.tracking.directory import RESULTS

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
            written = joined.export(arguments.output or _JOINED)
            print_joined(joined, out)
        shown = [shown_place(file) for file in written]
    out.print()
    for file in shown:
        out.print(file, markup=False)
    return 0


COMMAND = Command(
    "compare",
    "print a comparison again, or join those of several data sets",
    _add_arguments,
    _run,
    "Print a comparison again and write its files, or join the comparisons of several data sets: mean ranks, "
    "Friedman's test and Nemenyi's critical difference.",
)
main = COMMAND.main
