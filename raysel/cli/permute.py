"""Command ``permute``, which tests a finished study by permuted labels."""

from __future__ import annotations

import argparse

from raysel.cli.command import Command, add_resampling_options, add_study


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_study(parser)
    parser.add_argument("--permutations", type=int, default=200, metavar="N", help="number of them (default: 200)")
    parser.add_argument(
        "--retune", action="store_true", help="repeat the whole search for each permutation, which makes p exact"
    )
    parser.add_argument("--seed", type=int, metavar="S", help="seed of the permutations (default: that of the study)")
    add_resampling_options(parser)


def _run(arguments: argparse.Namespace) -> int:
    from raysel.cli.resampling import permute

    return permute(arguments)


COMMAND = Command(
    "permute",
    "test a finished study by permuted labels: p values",
    _add_arguments,
    _run,
    "Test a finished study by permuted labels: p value of its honest score, and of each feature's score. Permutations "
    "that were computed before are used again.",
)
main = COMMAND.main
