"""The command ``raysel``, with a subcommand for each task."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from raysel.cli import compare, init, permute, report, select, stability, tune, upload
from raysel.cli.arguments import words_of
from raysel.core import __version__

COMMANDS = {
    module.COMMAND.name: module.COMMAND for module in (tune, init, select, report, compare, stability, permute, upload)
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the subcommand that the arguments name."""
    words = words_of(argv)
    parser = argparse.ArgumentParser(
        prog="raysel", description="Which features matter, and how far to trust the answer."
    )
    parser.add_argument("--version", action="version", version=f"raysel {__version__}")
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        command.fill(parsers.add_parser(name, help=command.summary))
    arguments = parser.parse_args(words)
    return COMMANDS[arguments.command].call(arguments, words[1:])
