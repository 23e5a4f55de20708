"""Command ``stability``, which runs stability selection on a finished study."""

from __future__ import annotations

import argparse

from raysel.cli.command import Command, add_resampling_options, add_study


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_study(parser)
    add = parser.add_argument
    add("--subsamples", type=int, default=100, metavar="N", help="number of halves, two for each pair (default: 100)")
    add(
        "--top", type=int, metavar="N", help="number of features that a half selects (default: that of the final model)"
    )
    add(
        "--threshold",
        type=float,
        metavar="T",
        help="selection probability of the set, above 0.5 (default: the smallest whose unimodal bound is at most 1)",
    )
    add_resampling_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    from raysel.cli.resampling import select_stably

    return select_stably(arguments)


COMMAND = Command(
    "stability",
    "stability selection: how often each feature is selected on half of the data",
    _add_arguments,
    _run,
    "Complementary-pairs stability selection (Shah & Samworth 2013) of a finished study's winning configuration: how "
    "often each feature is selected on halves of the samples, and a set of features with a bound on the expected "
    "number of false selections. An interrupted run continues where it stopped.",
)
main = COMMAND.main
