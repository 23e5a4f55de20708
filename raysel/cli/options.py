"""Options that several commands take."""

from __future__ import annotations

import argparse


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where Ray runs."""
    parser.add_argument("--address", metavar="RAY_ADDRESS", help="join this Ray cluster instead of starting Ray here")
    parser.add_argument(
        "--allow-mixed-versions",
        action="store_true",
        help="use nodes of the cluster whose versions may change the last bits of numbers; it is recorded",
    )
